//! Imitates the loads of programs that cannot run here: file copies on a file system, applications, a transfer graph.
//!
//! docs/lab/methods.md describes each model with its numbers. None of them reads or writes files of the host: they make
//! the requests that the program and its file system would have made.

mod apps;
mod files;
mod graph;
mod page_cache;
mod volume;

pub use apps::{AppModel, AppUsers};
pub use files::{bytes_of, file_sizes, sizes_within, FileCopy};
pub use graph::{Graph, GRAPH_REQUEST_BYTES, PLACES, PLACE_BYTES};
pub use volume::{Partition, PARTITION_BYTES};

/// Size of the pieces in which programs read and write files, in bytes.
pub const PIECE_BYTES: u32 = 64 << 10;
