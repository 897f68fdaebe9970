//! Stories for the control socket and `--json`. Times are in nanoseconds from the beginning of the story.

use serde::{Deserialize, Serialize};

/// The kinds of steps. Documents have them as words: `member-read`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A request arrived.
    #[default]
    Arrived,
    /// Its payload arrived.
    Received,
    /// Its data is in the cache.
    Cached,
    /// Its data was found in the cache.
    Found,
    /// Its data was sent.
    Sent,
    /// Its answer was sent.
    Replied,
    /// An operation began.
    Operation,
    /// A decision.
    Reason,
    /// A wait.
    Wait,
    /// The commands of an operation were chosen.
    Plan,
    /// A record went to a log.
    Logged,
    /// An entry went to the journal.
    Journal,
    /// An entry is durable.
    Durable,
    /// An operation ended.
    Done,
    MemberRead,
    MemberWrite,
    MemberFlush,
    MemberDiscard,
    MemberWriteZeroes,
    /// Parity is computed.
    Parity,
    /// Lost columns are computed.
    Recover,
    Compare,
    Checksum,
    Copy,
}

impl StepKind {
    /// Is it a command to a member?
    pub const fn is_of_member(self) -> bool {
        matches!(
            self,
            Self::MemberRead | Self::MemberWrite | Self::MemberFlush | Self::MemberDiscard | Self::MemberWriteZeroes
        )
    }
}

/// One step of a story, which may take time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepModel {
    /// When the step began, by the server's monotonic clock.
    pub at_ns: u64,
    /// The operation of the story, counted from 1; none: the request itself.
    pub op: Option<u32>,
    /// The kind of step, as a word: `arrived`, `received`, `operation`, `reason`, `plan`, `member-read`, `parity`, ...
    #[schema(value_type = String)]
    pub step: StepKind,
    /// The step in words.
    pub text: String,
    /// The name of the reason, as in the totals.
    pub reason: Option<String>,
    /// Slot of the member that the step reads or writes.
    pub slot: Option<u16>,
    /// Path or address of the member, or of the journal's device, that the step reads or writes.
    pub member: Option<String>,
    /// First sector of 512 bytes on that drive.
    pub sector: Option<u64>,
    /// Number of sectors of 512 bytes.
    pub sectors: Option<u64>,
    /// Time that the command waited in the controller's queue of its drive.
    pub queued_ns: Option<u64>,
    /// Duration of the step or of the wait. None if it has not ended, or takes no time.
    pub took_ns: Option<u64>,
    /// Sequence number of the journal's entry.
    pub entry: Option<u64>,
}

/// A story: of a request, or of a dirty unit that was written to the members.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoryModel {
    /// The request of the server's clients, counted from 1; none: dirty data.
    pub request: Option<u64>,
    /// `read`, `write`, `flush`, `trim`, `write-zeroes`, `destage`; `unknown` if its beginning is not kept any more.
    pub kind: String,
    /// First byte of the request in the array.
    pub offset_bytes: Option<u64>,
    /// Length of the request.
    pub len_bytes: Option<u64>,
    /// The dirty unit: stripe of a parity set, 128 KiB of any other.
    pub unit: Option<u64>,
    /// Number of the span of a nested array, from 0.
    pub span: Option<usize>,
    /// Its begin, by the server's monotonic clock.
    pub began_ns: u64,
    /// Its duration; none if it has not ended.
    pub took_ns: Option<u64>,
    /// `ok`, or the error; none if it has not ended.
    pub status: Option<String>,
    /// Are all of its steps recorded? Otherwise the beginning is missing.
    pub whole: bool,
    /// Its steps, in the order in which they began.
    pub steps: Vec<StepModel>,
    /// Later work on the data that it left in the cache.
    #[schema(no_recursion)]
    pub later: Vec<StoryModel>,
}

/// A request of a host, without its data.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RequestModel {
    /// When it arrived, by the clock of the server (monotonic).
    pub at_ns: u64,
    /// `read`, `write`, `flush`, `trim`, `write-zeroes`.
    pub kind: String,
    /// First byte in the array.
    pub offset_bytes: u64,
    pub len_bytes: u64,
}

/// Requests of hosts, and how to ask for the next ones.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RequestsModel {
    /// In the order of their arrival.
    pub requests: Vec<RequestModel>,
    /// The number to ask with for requests that arrive from now on.
    pub next: u64,
    /// There are more already: ask again at once.
    pub more: bool,
    /// Steps that were lost since the number that was asked with: too much happened meanwhile.
    pub lost_steps: u64,
}

/// Stories, and how to ask for the next ones.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoriesModel {
    /// Stories that have ended, in the order of their ends; or the stories that were asked for.
    pub stories: Vec<StoryModel>,
    /// The number to ask with for requests that end from now on.
    pub next: u64,
    /// Stories that ended and are not among them, because there were too many at once.
    pub left_out: u64,
    /// Steps that were lost since the number that was asked with: too much happened meanwhile.
    pub lost_steps: u64,
    /// Numbers of the first and the last request of the array that is kept.
    pub kept: Option<(u64, u64)>,
}
