//! The data of work in progress: operations, the ranges that they lock, commands at the drives, computations.
//!
//! ```text
//!  op.rs, op/, footprint.rs, search.rs    what an operation is, and the sectors that it processes
//!  ops.rs, lock.rs, wait.rs               the table of operations, with ranges, waits and queues
//!  gate_marks.rs                          what must be durable before an operation writes
//!  plan.rs                                the choice of the write method, by figures alone
//!  command.rs, drive_queues.rs,
//!  sorted_queue.rs                        commands, and their queues at the drives: which goes next
//!  task_pace.rs                           how much a task works on at once
//!  drive_abilities.rs, ended.rs, head_positions.rs, job.rs, row_frames.rs, op_names.rs    drives of a set, reports, places of bytes, names
//!  log_room.rs                            the room in the journal that an operation has reserved
//! ```

pub(crate) mod command;
mod drive_abilities;
pub(crate) mod drive_queues;
pub(crate) mod ended;
pub(crate) mod footprint;
pub(crate) mod gate_marks;
pub(crate) mod head_positions;
pub(crate) mod job;
pub mod lock;
pub(crate) mod log_room;
pub(crate) mod op;
pub(crate) mod op_names;
pub(crate) mod ops;
pub mod plan;
pub(crate) mod row_frames;
pub(crate) mod search;
pub(crate) mod sorted_queue;
pub(crate) mod task_pace;
pub(crate) mod wait;
