//! A cell is one measurement of one load on one array. Its result follows from its description.

mod accepted_axes;
mod axes;
mod bound;
mod caches;
mod ceiling;
mod error;
mod measure;
mod note;
mod open;
mod part;
mod pattern;
mod plan;
mod result;
mod run;
mod side_by_side;
mod spec;
mod steady;
mod subject;
mod warm;

pub use accepted_axes::load_axes;
pub(crate) use axes::words;
pub use axes::{
    Axes, Axis, AxisError, AxisValue, CacheMode, Cycle, Direction, FileSet, FileStep, FileSystem, Place, Recreated,
    TraceApp, ZoneChoice,
};
pub(crate) use bound::bus;
pub use bound::{ceilings, ways};
pub use caches::Caches;
pub use ceiling::{flag, Ceiling, Flag};
pub use error::CellError;
pub use measure::{builtin, footprint, measure, writes};
pub use note::CellNote;
pub use open::{replay, replay_outstanding};
pub use part::{MemberPart, PartName};
pub use pattern::{Defaults, Pattern, TraceName};
pub use plan::CellPlan;
pub use result::{CellResult, Component, LatencySummary, MemberShare, Sample, WorkerShare};
pub(crate) use run::run_counted;
pub use run::{drive_state, machine_spec, mixed, run_cell, run_cell_with, run_trace, run_trace_with};
pub use side_by_side::{OpenDrive, RealDrives};
pub(crate) use spec::digest;
pub use spec::{ArrayState, CellSpec, Effort};
pub use subject::{members_max, Level, Subject, SubjectError};
