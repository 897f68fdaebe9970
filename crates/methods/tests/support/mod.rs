//! Shared by the tests of the report.

pub mod sample;
pub mod xml;
