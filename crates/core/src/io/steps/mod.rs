//! The steps of operations: functions of [`OpIo`](op_io::OpIo).
//!
//! ```text
//!  op_io.rs                               all that operations may use
//!  step.rs, next_rows.rs                  beginning, dispatch by kind, end; the next rows
//!  row_op.rs, gathered_data.rs, extent_op.rs, flush_op.rs, redo_op.rs, reparity_op.rs, background_op.rs,
//!  compare_op.rs, move_op.rs              the steps of each kind
//!  mirror_read.rs, background_plan.rs     choices: the copy that is read, what a unit reads
//!  gate.rs, forgotten_waits.rs            the rules before members are written, and before the end; waits
//!  refit_parity.rs, refit_copies.rs       parity and copies fit again after a refused write
//!  issue.rs, command_errors.rs            commands are issued; their failures
//! ```
//!
//! Two functions are of the controller (`controller/lent_parts.rs`). `op_io` makes the value that operations use, and `start_op`
//! begins an operation.

pub(crate) mod background_op;
pub(crate) mod background_plan;
pub(crate) mod command_errors;
mod compare_op;
pub(crate) mod extent_op;
#[cfg(test)]
pub(in crate::io) mod fixture;
mod flush_op;
pub(crate) mod forgotten_waits;
pub(crate) mod gate;
mod gathered_data;
pub(crate) mod issue;
pub(crate) mod mirror_read;
pub(crate) mod move_op;
mod next_rows;
pub(crate) mod op_io;
pub(crate) mod redo_op;
pub(crate) mod refit_copies;
pub(crate) mod refit_parity;
pub(crate) mod reparity_op;
pub(crate) mod row_op;
pub(crate) mod step;
