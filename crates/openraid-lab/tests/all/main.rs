//! Tests of the laboratory's program that share one test program: a link for each file takes longer than most of them run.

#[path = "../../../openraid/tests/support/mod.rs"]
mod support;

mod http_lab;
mod json;
mod laboratory;
mod own_arrays;
mod paced;
mod served_review;
mod side_by_side;
mod sweeps;
mod validate;
mod words;
