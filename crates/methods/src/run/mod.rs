//! Runs many cells on all processors, stores results in files, and continues after an interruption.

mod fill;
mod generator_cost;
mod outcome;
mod program_identity;
mod result_files;
mod shard;
mod threads;

pub use fill::fill;
pub use generator_cost::generator_cost;
pub use outcome::{Absence, Measurement};
pub use program_identity::program_digest;
pub use result_files::{build, fingerprint, write_atomically, CellStore, CellStoreError, CELL_SCHEMA};
pub use shard::{complete, RunShard};
pub use threads::run_all;
