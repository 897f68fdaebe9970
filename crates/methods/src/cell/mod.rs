//! A cell is one measurement of one load on one array. Its result follows from its description.

mod accepted_axes;
mod axes;
mod caches;
mod ceiling;
mod error;
mod limiting_part;
mod max_rates;
mod measure;
mod note;
mod pattern;
mod plan;
mod result;
mod run;
mod side_by_side;
mod spec;
mod steady;
mod subject;
mod timed_requests;
mod warm;

pub use accepted_axes::load_axes;
pub(crate) use axes::words;
pub use axes::{
    Axes, Axis, AxisError, AxisValue, CacheMode, Cycle, Direction, FileSet, FileStep, FileSystem, Place, Recreated,
    TraceApp, ZoneChoice,
};
pub use caches::Caches;
pub use ceiling::{flag, Ceiling, Flag};
pub use error::CellError;
pub use limiting_part::{MemberPart, PartName};
pub(crate) use max_rates::bus;
pub use max_rates::{ceilings, ways};
pub use measure::{builtin, footprint, measure, writes};
pub use note::CellNote;
pub use pattern::{Defaults, Pattern, TraceName};
pub use plan::CellPlan;
pub use result::{CellResult, Component, LatencySummary, MemberShare, Sample, WorkerShare};
pub(crate) use run::run_counted;
pub use run::{drive_state, machine_spec, mixed, run_cell, run_cell_with, run_trace, run_trace_with};
pub use side_by_side::{OpenDrive, RealDrives};
pub(crate) use spec::digest;
pub use spec::{ArrayState, CellSpec, Effort};
pub use subject::{members_max, Level, Subject, SubjectError};
pub use timed_requests::{replay, replay_outstanding};
