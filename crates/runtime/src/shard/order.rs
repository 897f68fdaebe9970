//! The orders of other threads to a shard, and its news to them.

use std::sync::mpsc;

use openraid_core::actions::{Notice, ReplyStatus};
use openraid_core::admin::{
    AdminCommand, AdminError, AdminOutcome, ArrayStatus, CacheStatus, JournalStatus, Unprotected,
};
use openraid_core::array::reshape_plan::{ReshapeGoal, ReshapePlan};
use openraid_core::occupancy::Occupied;
use openraid_core::reason::TraceEntry;
use openraid_core::request_steps::Step;
use openraid_format::Superblock;
use openraid_sys::ProcessSignal;
use openraid_units::{ArrayId, Bytes, DriveId, Instant, Nanos};

use super::drives::{AttachError, DriveView};
use crate::export::{AllowedHosts, ExportCounters, Offer, OfferError, PathState};
use crate::member::remote::RemoteNews;
use crate::member::OpenedMember;

/// The channel for the answer.
pub type Answer<T> = mpsc::Sender<T>;

#[derive(Debug)]
pub enum Order {
    /// Accept clients from now on.
    Accept(Answer<()>),
    /// Attach a member.
    Attach(Box<OpenedMember>, Answer<Result<DriveId, OrderError>>),
    /// Release a member that no array uses.
    Detach(DriveId, Answer<Result<(), OrderError>>),
    /// Look which devices are gone, and tell the engine. Answer: the drives that were not known to be gone.
    LookForLost(Answer<Vec<DriveId>>),
    /// A command of the administrator.
    Admin(Box<AdminCommand>, Answer<Result<AdminOutcome, AdminError>>),
    /// What a change of an array's shape would do, with drives that would join before it.
    PlanReshape(ArrayId, ReshapeGoal, Vec<Superblock>, Answer<Result<ReshapePlan, AdminError>>),
    /// A request of the service itself.
    Request(ArrayId, OwnRequest, Answer<Result<Vec<u8>, ReplyStatus>>),
    /// Export an array to clients.
    Offer(Box<Offer>, Answer<Result<(), OrderError>>),
    /// Withdraw its exports.
    Withdraw(ArrayId, Answer<()>),
    /// Withdraw this name.
    Retract(String, Answer<()>),
    /// Refuse no client of an array any more.
    Admit(ArrayId, Answer<()>),
    /// Answer no write of an array any more, unless something of it is dirty in the cache. Answer: is it so?
    HoldWrites(ArrayId, Answer<bool>),
    /// Answer the writes of an array again, the waiting ones first.
    PassWrites(ArrayId, Answer<()>),
    /// Make an array read-only for clients, or writable again.
    SetReadOnly(ArrayId, bool, Answer<()>),
    /// Change which hosts may use an array.
    SetHosts(ArrayId, AllowedHosts, Answer<Result<(), OrderError>>),
    /// Change how hosts reach an array.
    SetPath(ArrayId, PathState, Answer<Result<(), OrderError>>),
    /// The whole status.
    Status(Answer<ServiceStatus>),
    /// The last decisions.
    Trace(Answer<Vec<TraceEntry>>),
    /// Record this number of steps of host requests from now on.
    KeepSteps(u32, Answer<()>),
    /// The recorded steps, and the number of steps since the recording began; `None` if none are recorded.
    Steps(Answer<Option<(Vec<Step>, u64)>>),
    /// End running requests, stop all arrays cleanly, and end.
    Stop,
}

/// A request of the service itself. Lengths up to the engine's limit.
#[derive(Debug)]
pub enum OwnRequest {
    /// Read this many bytes.
    Read {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Write these bytes.
    Write {
        /// First byte.
        offset: u64,
        bytes: Vec<u8>,
        /// Durable before the answer.
        fua: bool,
    },
    /// Make all writes durable.
    Flush,
}

/// Why an order was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OrderError {
    /// No room for the member.
    Attach(AttachError),
    /// The engine refuses.
    Refused(AdminError),
    /// The export cannot be offered.
    Export(OfferError),
    /// The name is in use.
    NameTaken(String),
    /// No such array runs.
    NoSuchArray(ArrayId),
}

impl std::fmt::Display for OrderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Attach(error) => write!(f, "{error}"),
            Self::Refused(error) => write!(f, "{error}"),
            Self::Export(error) => write!(f, "{error}"),
            Self::NameTaken(name) => write!(f, "an array named {name:?} is served already; choose another name"),
            Self::NoSuchArray(array) => write!(f, "no array {array} runs here"),
        }
    }
}
impl std::error::Error for OrderError {}

/// An array in the status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayView {
    /// The engine's status.
    pub status: ArrayStatus,
    /// Does the journal protect its writes, if its policy asks for that? If not, why not.
    pub protection: Result<(), Unprotected>,
    /// Its names for clients.
    pub exports: Vec<String>,
    /// The number of clients that have chosen it.
    pub clients: usize,
    /// Those of them that were told another size, because they connected before it changed: each size, and their number.
    pub other_sizes: Vec<(Bytes, usize)>,
    /// Requests of hosts inside it, over time.
    pub load: Occupied,
    /// Do answers to writes of clients wait for [`Order::PassWrites`]?
    pub awaits_mark: bool,
}

/// The whole status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceStatus {
    /// Arrays that run, spans of nested ones included.
    pub arrays: Vec<ArrayView>,
    /// Attached members.
    pub drives: Vec<DriveView>,
    /// Clients.
    pub exports: ExportCounters,
    /// The I/O engine in words.
    pub engine: String,
    /// Notes about fallbacks at the start of the service.
    pub notes: Vec<String>,
    /// The variant of the parity kernels.
    pub kernels: &'static str,
    /// The cache, if there is one.
    pub cache: Option<CacheStatus>,
    /// The journal, if there is one.
    pub journal: Option<JournalStatus>,
    /// The time of this status.
    pub at: Instant,
    /// CPU time of the shard's thread until then, including polls.
    pub worked: Nanos,
    /// Time that the thread has spent in polls, by the clock; the part of `worked` is at most this much.
    pub looked: Nanos,
    /// Number of rests after pipelined requests.
    pub rests: u64,
}

/// News.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServiceEvent {
    /// A notice for the administrator.
    Notice(Notice),
    /// Number of notices that were lost.
    NoticesLost(u64),
    /// The process or the machine was stopped for this long. No time limit passed in that time.
    StoodStill(Nanos),
    /// The connection to a remote member was lost or made again.
    Remote(DriveId, RemoteNews),
    /// A signal was received. Interrupts and terminations stop the service.
    Signal(ProcessSignal),
    /// The answer to a write waits for [`Order::PassWrites`]. The status says so too, because news may be lost.
    AwaitsMark(ArrayId),
    /// A virtual machine at an array, or its guest, broke a rule.
    MachineRefused(ArrayId, String),
    /// An array did not stop cleanly.
    StopFailed(ArrayId, AdminError),
    /// The service has ended.
    Stopped,
}
