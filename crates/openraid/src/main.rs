//! The openraid command.
fn main() {}
