//! Care for drives: reports of programs and figures of the engine, without the server's state.

pub mod patrol;
pub mod program;
pub mod shingled;
pub mod slow;
pub mod smart;
