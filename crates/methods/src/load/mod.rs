//! Loads: the requests to a target, and their times.
//!
//! ```text
//!   AccessSpec --> Mixed   (one worker: sizes, directions, places)  \
//!   Script                 (one thing after the other)               >  Source  -->  ClosedLoop  --> Target
//!   Trace                                                           /            \-> open loop
//! ```

mod access;
mod builtin;
mod closed;
mod mixed;
mod open;
mod script;

pub use access::{AccessError, AccessLine, AccessManner, AccessSpec, LINES_MAX, REQUEST_BYTES_MAX};
pub use builtin::{database, file_server, one_size, streaming, used_for, web_server, workstation, USES};
pub use closed::{ClosedLoop, LoopOptions, Stop};
pub use mixed::{Mixed, Zone};
pub use open::{run_open, ArrivalPace, Arrivals, OpenRun, PacedSource, OUTSTANDING_MAX, WAITING_MAX};
pub use script::Script;

use crate::target::IoKind;
use openraid_units::Nanos;

/// A request without its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadRequest {
    /// Kind of the request.
    pub kind: IoKind,
    /// Offset of its first byte in the target.
    pub offset: u64,
    /// Length in bytes.
    pub len: u32,
}

/// The next step of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadStep {
    /// The worker sends this request.
    Ask(LoadRequest),
    /// When its outstanding requests have ended, the worker pauses for this time and then continues.
    Think(Nanos),
    /// The worker has ended.
    End,
}

/// A source of the workers' next steps.
pub trait LoadSource {
    /// The next step of a worker that has just become free.
    fn next(&mut self, worker: u16) -> LoadStep;
}
