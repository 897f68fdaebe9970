//! From operations to drive commands, in two rooms:
//!
//! - `steps` is the upper one: functions that take an operation from state to state and ask the layers above for facts.
//! - `state` is the lower one: the data of operations, ranges, commands and computations, with their own rules.
//!   It does not know the steps.

pub(crate) mod state;
pub(crate) mod steps;
