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

pub use access::{AccessError, AccessLine, AccessSpec, Manner, LINES_MAX, REQUEST_BYTES_MAX};
pub use builtin::{database, file_server, one_size, streaming, used_for, web_server, workstation, USES};
pub use closed::{ClosedLoop, LoopOptions, Stop};
pub use mixed::{Mixed, Zone};
pub use open::{run_open, Arrivals, OpenRun, Pace, Paced, OUTSTANDING_MAX, WAITING_MAX};
pub use script::Script;

use crate::target::IoKind;
use openraid_units::Nanos;

/// One request, before it has a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What.
    pub kind: IoKind,
    /// First byte of the target.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
}

/// The next step of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It asks for this.
    Ask(Request),
    /// The worker thinks for this long once its outstanding requests have ended, then asks again.
    Think(Nanos),
    /// It has nothing more to do.
    End,
}

/// Something that says what workers do next.
pub trait Source {
    /// The next step of a worker, which has just become free.
    fn next(&mut self, worker: u16) -> Step;
}
