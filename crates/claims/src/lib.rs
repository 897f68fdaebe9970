//! Claims about arrays, and their evaluation.
//!
//! ```text
//!  claim file --> Claim --> check (expression) --> metric calls --> Metrics (a laboratory, or a fake)
//!                              |                     |
//!                              |                     `--> pure arithmetic: links, survivors, parity shares
//!                              `--> Outcome: pass | fail | not-applicable, with every value that was measured
//! ```
//!
//! A claim is one boolean expression over measured values. This crate implements the language. [`Metrics`] is the
//! interface to measurements, and [`Simulated`] is the laboratory in virtual time. The crate must never run a check
//! without bounds. It must never let a claim's text reach a file or the network. It must never turn a value that could
//! not be measured into a verdict.

#![forbid(unsafe_code)]

pub mod axis_arguments;
pub mod claim;
pub mod computed;
pub mod evaluate;
pub mod fold;
mod language;
pub mod metric;
pub mod other_conditions;
pub mod run;
pub mod simulated;
pub mod store;
pub mod subject;
pub mod summary;
pub mod verdict;
pub mod workload;

pub use axis_arguments::{axis_named, Axis, AxisValue, AxisValueError, AxisValues, CLAIM_AXES};
pub use claim::{read, Claim, ClaimFile, ClaimFileError, Grade, StatementKind};
pub use evaluate::{evaluate, ClaimOutcome, ClaimVerdict, MeasuredValue};
pub use language::{CheckError, CHECK_BYTES_MAX};
pub use metric::{Metric, MetricCall, MetricValue, Metrics, NotApplicable, Operations};
pub use run::{run, RunOptions};
pub use simulated::Simulated;
pub use store::{ClaimStore, ClaimStoreError};
pub use subject::{Level, Subject, SubjectNameError};
pub use verdict::{decide, Decision};
pub use workload::{ClaimLoad, ClaimWorkload};

/// The claims of the project: the findings of five published reviews.
pub const REVIEWS: &str = include_str!("../../../models/validation/claims.json");
