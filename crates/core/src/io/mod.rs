//! From operations to drive commands.
//!
//! ```text
//!  op.rs, op/, footprint.rs, search.rs    what an operation is, and the sectors that it processes
//!  ops.rs, lock.rs, wait.rs               the table of operations, with ranges, waits and queues
//!  claims.rs, ended.rs, heads.rs, row_frames.rs, op_steps.rs    drives of a set, what goes up, places of bytes, names
//!  op_io.rs                               what operations may use; all steps are functions of it
//!  step.rs, next_rows.rs, held.rs         beginning, dispatch by kind, end; the next rows; waits
//!  row.rs, extent.rs, flush.rs, redo_op.rs, reparity_op.rs, background_op.rs    the steps of each kind
//!  plan.rs, mirror_read.rs, background_plan.rs    choices: the write method, the copy that is read, what a unit reads
//!  gate.rs                                the rules before members are written, and before the end
//!  refit.rs, refit_copies.rs              parity and copies fit again after a refused write
//!  issue.rs, job.rs                       commands and computations
//!  command.rs, channel.rs, elevator.rs, command_errors.rs    commands at the drives, and their failures
//! ```
//!
//! Two functions are of the controller (`controller/parts.rs`). `op_io` makes the value that operations use, and `start_op`
//! begins an operation.

pub(crate) mod channel;
mod claims;
pub(crate) mod command;
pub(crate) mod elevator;
pub(crate) mod ended;
pub(crate) mod heads;
pub(crate) mod held;
pub mod lock;
pub(crate) mod mirror_read;
mod next_rows;
pub(crate) mod op;
pub(crate) mod op_io;
pub(crate) mod op_steps;
pub(crate) mod ops;
pub mod plan;
pub(crate) mod row_frames;

mod background_op;
mod background_plan;
#[cfg(test)]
mod bench;
pub(crate) mod command_errors;
mod extent;
mod flush;
pub(crate) mod footprint;
pub(crate) mod gate;
mod gathered;
mod issue;
pub(crate) mod job;
pub(crate) mod redo_op;
pub(crate) mod refit;
mod refit_copies;
mod reparity_op;
pub(crate) mod row;
pub(crate) mod search;
pub(crate) mod step;
pub(crate) mod wait;
