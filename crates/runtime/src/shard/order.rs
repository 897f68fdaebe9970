//! What other threads ask of a shard, and what it tells them.

use std::sync::mpsc;

use openraid_core::actions::{Notice, ReplyStatus};
use openraid_core::admin::{
    AdminCommand, AdminError, AdminOutcome, ArrayStatus, CacheStatus, JournalStatus, Unprotected,
};
use openraid_core::occupancy::Occupied;
use openraid_core::reason::TraceEntry;
use openraid_core::steps::Step;
use openraid_nbd::ExportError;
use openraid_sys::Signal;
use openraid_units::{ArrayId, DriveId, Instant, Nanos};

use super::drives::{AttachError, DriveView};
use crate::export::{ExportCounters, Offer};
use crate::member::remote::RemoteNews;
use crate::member::OpenedMember;

/// The way back to the caller.
pub type Answer<T> = mpsc::Sender<T>;

/// Something to do.
#[derive(Debug)]
pub enum Order {
    /// Take a member in.
    Attach(Box<OpenedMember>, Answer<Result<DriveId, OrderError>>),
    /// Let a member go that no array uses.
    Detach(DriveId, Answer<Result<(), OrderError>>),
    /// A command of the administrator.
    Admin(Box<AdminCommand>, Answer<Result<AdminOutcome, AdminError>>),
    /// A request of the service itself.
    Request(ArrayId, OwnRequest, Answer<Result<Vec<u8>, ReplyStatus>>),
    /// Offer an array to clients.
    Offer(Box<Offer>, Answer<Result<(), OrderError>>),
    /// Offer it no more.
    Withdraw(ArrayId, Answer<()>),
    /// Offer this name no more.
    Retract(String, Answer<()>),
    /// Refuse writing to an array, or allow it again.
    SetReadOnly(ArrayId, bool, Answer<()>),
    /// Tell everything.
    Status(Answer<ServiceStatus>),
    /// Tell the last decisions.
    Trace(Answer<Vec<TraceEntry>>),
    /// Keep this many steps of host requests from now on.
    KeepSteps(u32, Answer<()>),
    /// Tell the steps that are kept, and how many there were; nothing if none are kept.
    Steps(Answer<Option<(Vec<Step>, u64)>>),
    /// Finish what runs, stop all arrays cleanly, end.
    Stop,
}

/// A request of the service itself. Lengths up to the engine's limit.
#[derive(Debug)]
pub enum OwnRequest {
    /// Read this many bytes.
    Read {
        /// First byte.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Write these bytes.
    Write {
        /// First byte.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
        /// Durable before the answer.
        fua: bool,
    },
    /// Make everything durable.
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
    Export(ExportError),
    /// The name is taken.
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

/// An array as the status tells of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayView {
    /// All that the engine tells.
    pub status: ArrayStatus,
    /// Are its writes promised by the journal, if its policy says so? If not, why not.
    pub protection: Result<(), Unprotected>,
    /// Names under which clients see it.
    pub exports: Vec<String>,
    /// Requests of hosts inside it, over time.
    pub load: Occupied,
}

/// Everything there is to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceStatus {
    /// Arrays that run, spans of nested ones included.
    pub arrays: Vec<ArrayView>,
    /// Attached members.
    pub drives: Vec<DriveView>,
    /// Clients.
    pub exports: ExportCounters,
    /// The kernel's engine in words.
    pub engine: String,
    /// Fallbacks taken when the service started.
    pub notes: Vec<String>,
    /// The variant of the parity kernels.
    pub kernels: &'static str,
    /// The cache, if there is one.
    pub cache: Option<CacheStatus>,
    /// The journal, if there is one.
    pub journal: Option<JournalStatus>,
    /// When all this was so.
    pub at: Instant,
    /// CPU time of the shard's thread until then, looks before sleeping included.
    pub worked: Nanos,
    /// How long the thread has looked for requests before it went to sleep. Time by the clock: at most as much of `worked`.
    pub looked: Nanos,
    /// How often the thread has rested after pipelined requests.
    pub rests: u64,
}

/// News.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ServiceEvent {
    /// Something an administrator may want to know.
    Notice(Notice),
    /// Notices that could not be kept.
    NoticesLost(u64),
    /// The process or the machine was stopped for this long. No time limit passed meanwhile.
    StoodStill(Nanos),
    /// The connection to a remote member was lost, or is there again.
    Remote(DriveId, RemoteNews),
    /// A signal came. Interrupts and terminations stop the service.
    Signal(Signal),
    /// An array did not stop cleanly.
    StopFailed(ArrayId, AdminError),
    /// The service has ended.
    Stopped,
}
