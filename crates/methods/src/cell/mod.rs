//! A cell is one measurement of one load on one array. Its result follows from its description.

mod axes;
mod beside;
mod bound;
mod caches;
mod ceiling;
mod error;
mod measure;
mod open;
mod pattern;
mod plan;
mod result;
mod run;
mod spec;
mod steady;
mod subject;
mod taken;
mod warm;

pub use axes::{
    Axes, Axis, AxisError, CacheMode, Cycle, Direction, FileSet, FileStep, FileSystem, Place, Recreated, TraceApp,
    ZoneChoice,
};
pub use beside::{OpenDrive, RealDrives};
pub(crate) use bound::bus;
pub use bound::{ceilings, ways};
pub use caches::Caches;
pub use ceiling::{flag, Ceiling, Flag};
pub use error::CellError;
pub use measure::{builtin, footprint, measure, writes};
pub use open::{replay, replay_outstanding};
pub use pattern::{Defaults, Pattern, TraceName};
pub use plan::CellPlan;
pub use result::{CellResult, Component, LatencySummary, MemberShare, Sample, WorkerShare};
pub(crate) use run::run_counted;
pub use run::{drive_state, machine_spec, mixed, run_cell, run_cell_with, run_trace, run_trace_with};
pub(crate) use spec::digest;
pub use spec::{ArrayState, CellSpec, Effort};
pub use subject::{members_max, Level, Subject, SubjectError};
pub use taken::load_axes;
