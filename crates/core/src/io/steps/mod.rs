//! The steps of operations: functions of [`OpIo`](op_io::OpIo).
//!
//! ```text
//!  op_io.rs                               all that operations may use
//!  step.rs, next_rows.rs, held.rs         beginning, dispatch by kind, end; the next rows; waits
//!  row.rs, gathered_data.rs, extent.rs, flush.rs, redo_op.rs, reparity_op.rs, background_op.rs,
//!  compare_op.rs                          the steps of each kind
//!  mirror_read.rs, background_plan.rs     choices: the copy that is read, what a unit reads
//!  gate.rs                                the rules before members are written, and before the end
//!  refit.rs, refit_copies.rs              parity and copies fit again after a refused write
//!  issue.rs, command_errors.rs            commands are issued; their failures
//! ```
//!
//! Two functions are of the controller (`controller/parts.rs`). `op_io` makes the value that operations use, and `start_op`
//! begins an operation.

pub(crate) mod background_op;
pub(crate) mod background_plan;
pub(crate) mod command_errors;
mod compare_op;
pub(crate) mod extent;
#[cfg(test)]
pub(in crate::io) mod fixture;
mod flush;
pub(crate) mod gate;
mod gathered_data;
pub(crate) mod held;
pub(crate) mod issue;
pub(crate) mod mirror_read;
pub(crate) mod move_op;
mod next_rows;
pub(crate) mod op_io;
pub(crate) mod redo_op;
pub(crate) mod refit;
pub(crate) mod refit_copies;
pub(crate) mod reparity_op;
pub(crate) mod row;
pub(crate) mod step;
