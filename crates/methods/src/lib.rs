//! The laboratory's library; its program is `openraid-lab`. It has the methods of storage reviews: the same on a simulated
//! machine, on a file, a drive or an export.
//!
//! ```text
//!  method   M01 to M33: what to vary, what to measure
//!    | cells {system, subject, pattern, axes}
//!  cell     one measurement, found again by its identity
//!    |
//!  load     access patterns, closed and open loops, traces      reader   fio jobs, Iometer files, traces
//!    |
//!  target   simulated machine, io_uring, NBD, null
//!    |
//!  metrics  histograms, ratings, fio's JSON                     run      many cells on both cores, stored in files
//! ```
//!
//! It must never write to a target unless the user named that target for destruction. The result of a cell must depend
//! only on the cell's identity: on a simulated target the same identity gives the same bytes.

#![forbid(unsafe_code)]

pub mod cell;
pub mod compare;
pub mod gallery;
pub mod imitation;
pub mod load;
pub mod method;
pub mod metrics;
pub mod plan;
pub mod reader;
pub mod report;
pub mod review;
pub mod run;
pub mod target;
