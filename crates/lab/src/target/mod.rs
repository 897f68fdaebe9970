//! Targets of a load: a simulated machine, a file or block device, an NBD export, or nothing at all.
//!
//! A target takes requests at its own present time and reports when they ended. It never reorders or retries requests,
//! and writes nothing else.

mod block;
mod choice;
mod fake;
mod frames;
mod link;
mod null;
mod remote;
mod simulated;

pub use block::{BlockTarget, RealOptions};
pub use choice::{Choice, Destruction};
pub use fake::Servers;
pub use frames::PAYLOAD_BYTES_MAX;
pub use null::NullTarget;
pub use openraid_core::actions::ReplyStatus;
pub use openraid_sim::machine::{HostIo, IoDone, IoKind};
pub use remote::NbdTarget;
pub use simulated::SimTarget;
pub(crate) use simulated::{shared_port, ssd_state};

use openraid_units::{Bytes, Instant, Nanos};
use std::fmt;

/// Facts about a target.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetFacts {
    /// As the user named it.
    pub name: String,
    /// How much can be read and written.
    pub capacity: Bytes,
    /// The smallest unit of reads and writes.
    pub block: Bytes,
    /// Its time is a number, not a clock.
    pub simulated: bool,
    /// It was opened for writing.
    pub writable: bool,
    /// Requests go through the page cache of this machine.
    pub page_cache: bool,
    /// What its link can carry, MB (10^6 bytes) each second, where the system tells.
    pub link_mbps: Option<f64>,
    /// Lines for the description of the test bed.
    pub bed: Vec<String>,
}

/// The work of a target's parts since it was made. Times are busy times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Each member.
    pub members: Vec<MemberCounters>,
    /// Parts of the machine by name: time that they worked. If several share a name, the busiest counts.
    pub components: Vec<(&'static str, Nanos)>,
    /// The host's processor: time that it worked, over all its workers.
    pub host: Option<Nanos>,
    /// Bytes acknowledged and not yet written to members.
    pub dirty: Option<Bytes>,
    /// Bytes written to members that are still in the members' own caches.
    pub held: Option<Bytes>,
    /// Bytes of reads that the controller's cache answered.
    pub read_hits: Option<Bytes>,
    /// Bytes of a new member that a rebuild has filled, while one runs.
    pub rebuilt: Option<Bytes>,
    /// Number of the engine's decisions by reason.
    pub reasons: Vec<(&'static str, u64)>,
}

/// The work of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberCounters {
    /// Commands.
    pub reads: u64,
    /// Commands.
    pub writes: u64,
    /// Sectors both ways.
    pub sectors: u64,
    /// Sectors written.
    pub written: u64,
    /// Time that each of its parts worked, as in [`MEMBER_PARTS`].
    pub busy: [Nanos; MEMBER_PARTS.len()],
}

/// Parts of a member. What does not tell parts apart has only the first.
pub const MEMBER_PARTS: [&str; 6] = ["medium", "firmware", "path", "path", "link", "link"];

/// Something that takes requests.
pub trait Target {
    /// The facts about it.
    fn facts(&self) -> &TargetFacts;
    /// Its time.
    fn now(&self) -> Instant;
    /// Take a request, now.
    fn submit(&mut self, io: HostIo);
    /// Let time pass until `until`, or until something has ended, which is put into `done`.
    ///
    /// # Errors
    /// The target is gone.
    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError>;
    /// What its parts have done, if it tells.
    fn counters(&self) -> Option<Counters>;
    /// Delete its array and create it again between two loads, with nothing outstanding. A real target ignores this.
    fn make_anew(&mut self) {}
    /// How late it writes to its members; nothing if it writes at once, or does not tell.
    fn destage(&self) -> Option<Late> {
        None
    }
}

/// How late a simulated target writes to its members what it has acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// The age at which dirty data goes out anyway.
    pub age: Nanos,
}

/// Ages of destage that a measurement lasts for.
const AGES: u64 = 10;

impl Late {
    /// The time in which what comes and what goes out is the same, but for a tenth.
    #[must_use]
    pub const fn ages(self) -> Nanos {
        Nanos(self.age.get() * AGES)
    }
}

/// Why a target cannot be used, or not any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetError {
    /// It is gone, or broke off.
    Gone {
        /// Its name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The named thing is no target: it does not exist, or cannot be one.
    Named {
        /// Its name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
    /// It cannot be opened.
    Open {
        /// Its name.
        name: String,
        /// Why, and what to do.
        reason: String,
    },
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { name, reason } => write!(f, "{name}: gone in the middle of the measurement: {reason}"),
            Self::Named { name, reason } | Self::Open { name, reason } => write!(f, "{name}: {reason}"),
        }
    }
}

impl std::error::Error for TargetError {}
