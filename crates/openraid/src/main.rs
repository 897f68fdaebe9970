//! The openraid command.

#![forbid(unsafe_code)]

fn main() {}
