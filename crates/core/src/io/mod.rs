//! From operations to drive commands.

pub(crate) mod channel;
pub(crate) mod command;
pub(crate) mod drive_io;
pub(crate) mod elevator;
pub(crate) mod ended;
pub mod lock;
pub(crate) mod mirror_read;
pub(crate) mod op;
pub(crate) mod op_io;
pub(crate) mod ops;
pub mod plan;

mod background_op;
#[cfg(test)]
mod bench;
pub(crate) mod command_errors;
mod extent;
mod flush;
pub(crate) mod footprint;
pub(crate) mod gate;
mod issue;
pub(crate) mod job;
pub(crate) mod redo_op;
mod reparity_op;
pub(crate) mod row;
pub(crate) mod search;
mod step;
pub(crate) mod wait;
