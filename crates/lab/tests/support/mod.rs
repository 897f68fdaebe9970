//! What the tests of the report share.

pub mod sample;
pub mod xml;
