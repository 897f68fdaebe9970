//! Runs many cells on all processors, stores results in files, and continues after an interruption.

mod fill;
mod outcome;
mod overhead;
mod program;
mod shard;
mod store;
mod threads;

pub use fill::fill;
pub use outcome::{Absence, Measurement};
pub use overhead::generator_cost;
pub use program::program_digest;
pub use shard::{complete, RunShard};
pub use store::{build, fingerprint, write_atomically, CellStore, CellStoreError, CELL_SCHEMA};
pub use threads::run_all;
