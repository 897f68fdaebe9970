//! Care for drives: reports of programs and figures of the engine, without the server's state.

pub mod patrol;
pub mod shingled;
pub mod short_program;
pub mod slow;
pub mod smart;
