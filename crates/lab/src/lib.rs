//! Benchmark methods over simulated and real arrays, and the report of what they found.

#![forbid(unsafe_code)]

pub mod report;
