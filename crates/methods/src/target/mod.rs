//! Targets of a load: a simulated machine, a file or block device, an NBD export, or a target that does nothing.
//!
//! A target accepts requests at its present time and reports when they ended. It never reorders or retries requests,
//! and sends no writes of its own.

mod block;
mod fake;
mod link_capacity;
mod null;
mod payload_frames;
mod remote;
mod simulated;
mod target_name;
mod test_bed;

pub use block::{BlockTarget, RealOptions};
pub use fake::QueueServers;
pub use null::NullTarget;
pub use openraid_core::actions::ReplyStatus;
pub use openraid_sim::machine::{HostIo, IoDone, IoKind};
pub use payload_frames::PAYLOAD_BYTES_MAX;
pub use remote::NbdTarget;
pub use simulated::SimTarget;
pub(crate) use simulated::{shared_way, ssd_state};
pub use target_name::{Choice, Destruction};
pub use test_bed::{BedLine, BedName};

use crate::cell::{MemberPart, PartName};
use openraid_units::{Bytes, Instant, Nanos};
use std::fmt;

/// Facts about a target.
#[derive(Clone, PartialEq, Debug)]
pub struct TargetFacts {
    /// The target as the user named it.
    pub name: String,
    /// Capacity in bytes.
    pub capacity: Bytes,
    /// The smallest unit of reads and writes.
    pub block: Bytes,
    /// Is the time virtual, and not that of a clock?
    pub simulated: bool,
    /// Is the target open for writing?
    pub writable: bool,
    /// Do requests use the page cache of this machine?
    pub page_cache: bool,
    /// Maximum rate of its link in MB/s (10^6 bytes), if the system reports it.
    pub link_mbps: Option<f64>,
    /// Lines for the description of the test bed.
    pub bed: Vec<BedLine>,
}

/// The work of a target's parts since its creation. All times are times under load.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TargetCounters {
    /// Each member.
    pub members: Vec<MemberWork>,
    /// Parts of the machine by name, with the time under load. If several parts have the same name, the busiest counts.
    pub components: Vec<(PartName, Nanos)>,
    /// Time under load of the host's processor, over all workers.
    pub host: Option<Nanos>,
    /// Acknowledged bytes that are not yet written to members.
    pub dirty: Option<Bytes>,
    /// Bytes that were written to members and are still in the members' own caches.
    pub held: Option<Bytes>,
    /// Bytes of reads that came from the controller's cache.
    pub read_hits: Option<Bytes>,
    /// Bytes of a new member that a running rebuild has filled.
    pub rebuilt: Option<Bytes>,
    /// Bytes of the array that a running change of shape has moved, and all that move.
    pub moved: Option<[Bytes; 2]>,
    /// Number of the engine's decisions by reason.
    pub reasons: Vec<(&'static str, u64)>,
}

/// The work of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberWork {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of sectors in both directions.
    pub sectors: u64,
    /// Number of written sectors.
    pub written: u64,
    /// Time under load of each part, in the order of [`MEMBER_PARTS`].
    pub busy: [Nanos; MEMBER_PARTS.len()],
}

/// Parts of a member; data path and link have one for each direction. If a model does not distinguish parts, only the
/// first is used.
pub const MEMBER_PARTS: [MemberPart; 6] =
    [MemberPart::Medium, MemberPart::Firmware, MemberPart::Path, MemberPart::Path, MemberPart::Link, MemberPart::Link];

/// A target that accepts requests.
pub trait Target {
    /// The facts about the target.
    fn facts(&self) -> &TargetFacts;
    /// The target's present time.
    fn now(&self) -> Instant;
    /// Submits a request at the present time.
    fn submit(&mut self, io: HostIo);
    /// Lets time pass until `until`, or until a request has ended. Ended requests are added to `done`.
    ///
    /// # Errors
    /// The target is gone.
    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError>;
    /// The work of the target's parts, if the target reports it.
    fn counters(&self) -> Option<TargetCounters>;
    /// Deletes the array and creates it again, between two loads and without outstanding requests. A real target
    /// ignores this.
    fn make_again(&mut self) {}
    /// The delay of writes to members. None if the target writes at once or does not report the delay.
    fn destage(&self) -> Option<Late> {
        None
    }
    /// Memory in which a simulated host keeps descriptions of files, if its profile says so.
    fn kept_descriptions(&self) -> Option<Bytes> {
        None
    }
}

/// The delay with which a simulated target writes acknowledged data to its members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// Maximum age of dirty data before destage.
    pub age: Nanos,
}

/// Length of a measurement in ages of destage.
const AGES: u64 = 10;

impl Late {
    /// The time over which the bytes into and out of the cache are equal to within a tenth.
    #[must_use]
    pub const fn ages(self) -> Nanos {
        Nanos(self.age.get() * AGES)
    }
}

/// The reason why a target cannot be used, or not any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TargetError {
    /// The target is gone, or its connection was closed.
    Gone {
        /// Name of the target.
        name: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The name does not exist, or cannot be a target.
    Named {
        /// Name of the target.
        name: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// The target cannot be opened.
    Open {
        /// Name of the target.
        name: String,
        /// The reason and the remedy.
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
