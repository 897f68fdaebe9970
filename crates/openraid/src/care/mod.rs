//! Care for drives: what programs and the engine's figures say of them, apart from the server that asks.

pub mod patrol;
pub mod program;
pub mod shingled;
pub mod slow;
pub mod smart;
