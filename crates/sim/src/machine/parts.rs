//! The parts of a machine in numbers: costs of the processors, rates of the ways, sizes of the tables.
//!
//! [`MachineParts`] has no names and no sources; these are in the profiles from which it is made. Every number here is
//! a cause (a time, a rate, a bound), never an outcome.

use openraid_core::admin::Policy;
use openraid_core::limits::Limits;
use openraid_units::{Bytes, Nanos};

use super::journal::JOURNAL_BUFFERS;
use super::queue_server::TransferCost;

/// The time of a request on its host thread. Half of it passes before the controller gets the request, half after the
/// request has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCost {
    /// For each read.
    pub read: Nanos,
    /// For each write, and each flush.
    pub write: Nanos,
    /// For each request that begins where the previous request of the same thread ended.
    pub sequential: Nanos,
    /// For each KiB: of a write before the controller gets it, of a read after it has ended.
    pub kib: Nanos,
    /// Processors. If there are more threads, they share the processors.
    pub processors: u32,
}

impl HostCost {
    /// No cost at all.
    pub const FREE: Self =
        Self { read: Nanos::ZERO, write: Nanos::ZERO, sequential: Nanos::ZERO, kib: Nanos::ZERO, processors: 1 };
}

/// The processor of the controller: a server, first come, first served.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessorCost {
    /// For each read request of a host.
    pub read: Nanos,
    /// For each write request of a host.
    pub write: Nanos,
    /// In addition, for each request to an array in two levels (10, 50, 60).
    pub nested: Nanos,
    /// For each command to a member.
    pub command: Nanos,
    /// For each KiB of a request.
    pub kib: Nanos,
}

/// The part that computes parity: a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ParityCost {
    /// For each job.
    pub setup: Nanos,
    /// For each member of the job's set.
    pub member: Nanos,
    /// Picoseconds for each input byte.
    pub picos: u64,
    /// The time of a job with a second syndrome, in percent of the time of a job without.
    pub second_percent: u64,
}

/// The way to the host or to the members: two directions, and a part that both may share.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WayCost {
    /// From the members towards the host.
    pub read: TransferCost,
    /// From the host towards the members.
    pub write: TransferCost,
    /// The rate that both directions share (PCI); `None` if each direction has lanes of its own.
    pub shared: Option<TransferCost>,
}

/// The parts of a way that includes a controller's own data path. The machine computes its times from the way alone.
/// These parts say which of them is the slow one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WayParts {
    /// The data path: towards the host, from the host.
    pub path: [TransferCost; 2],
    /// The bus: towards the host, from the host.
    pub bus: [TransferCost; 2],
}

#[derive(Clone, Debug)]
pub struct MachineParts {
    /// Threads of the host.
    pub host: HostCost,
    /// The controller's processor.
    pub processor: ProcessorCost,
    /// Number of controller processors that work in parallel.
    pub processors: u32,
    /// Between host and controller: payload of requests.
    pub host_way: WayCost,
    /// Between controller and members: payload of commands. If the host's own processor is the controller, the bus is
    /// part of this way.
    pub member_way: WayCost,
    /// The parts of `host_way`.
    pub way_parts: Option<WayParts>,
    /// Picoseconds for each byte that the controller's memory receives or gives; zero if the memory is no limit.
    pub memory: u64,
    /// The parity engine.
    pub parity: ParityCost,
    /// Picoseconds a byte for copies between frames and cache; zero if payload need not be copied.
    pub copy_picos: u64,
    /// Channels that several members share (U320, a port of an expander). Members are assigned to channels in turn. The
    /// list is empty if each member has a link of its own.
    pub channels: Vec<WayCost>,
    /// Requests that the controller works on at once, for each span of an array; more requests wait before it.
    pub requests_max: u32,
    /// Bytes after which the next span of a nested array begins.
    pub span_turn: Bytes,
    /// Commands that one member gets at once.
    pub depth_max: u32,
    /// Size of the cache; zero for no cache.
    pub cache: Bytes,
    /// Size of each device of the journal; zero for no journal.
    pub journal: Bytes,
    /// Dirty data in the cache in percent: the limit, and the two marks between which destage drains the cache.
    pub dirty_percent: [u64; 3],
    /// Dirty units written at once: in a hurry, and otherwise.
    pub destage_units: [u32; 2],
    /// Stripes that the controller assembles at once; if given, they are the dirty units.
    pub open_stripes: Option<u32>,
    /// Zones of a set that destage visits in order; one zone means the order of age.
    pub destage_zones: u32,
    /// Commands of destage at a drive while hosts read.
    pub destage_beside_reads: u32,
    /// Requests after which an adapting controller has decided how it treats streams of writes; zero for other
    /// controllers.
    pub adapts_after: u32,
    /// The learned state is kept when the array is deleted.
    pub keeps_lessons: bool,
    /// The controller has already learned that its loads are random.
    pub taught: bool,
    /// Each KiB of a read, up to 64 KiB, waits for this time on its way to the host if its thread has no other request
    /// outstanding.
    pub read_kib: Nanos,
    /// Picoseconds for each byte in a stripe that a write fills in part. Writes to a redundant array pass this stage
    /// before the cache, one after the other. The processor's time for two levels is added. Zero if there is no such
    /// stage.
    pub redundancy_stage: u64,
    /// Time in the stage before the engine for each stripe that a write to an array with parity fills in part.
    pub partial_stripe: Nanos,
    /// Data of a stripe, for `redundancy_stage` and `partial_stripe`.
    pub stripe: Bytes,
    /// The controller does not cache writes that are shorter than this and continue no stream; zero if it caches all
    /// writes.
    pub through_below: Bytes,
    /// Dirty data is written to members after this time.
    pub destage_delay: Nanos,
    /// A command that has waited for its member for this time precedes all others.
    pub queue_age: Nanos,
    /// The engine's policy.
    pub policy: Policy,
    /// An array is marked clean after this time. Most controllers keep such marks in memory of their own.
    pub clean_delay: Nanos,
    /// The array's metadata is on the members before the data, as in a real array of this project. If false, it takes
    /// no space of the members.
    pub metadata_in_front: bool,
}

/// Frames for requests: more than any load here needs.
const HOST_FRAMES: Bytes = Bytes::gib(1);
/// Frames for old data and parity.
const WORK_FRAMES: Bytes = Bytes::mib(512);
/// Memory that the engine itself takes, before everything else.
const ZERO_REGION: Bytes = Bytes::kib(256);
/// Longer than any command waits, even in a queue that is far too long for its drive.
const COMMAND_TIMEOUT: Nanos = Nanos::from_secs(3600);
/// A day: no array here is idle for a day.
pub const NEVER_CLEAN: Nanos = Nanos::from_secs(24 * 3600);
/// Limit of requests inside the engine.
pub const REQUESTS_MAX: u32 = 4096;

impl Default for MachineParts {
    /// All parts are free and unbounded: only the drives take time.
    fn default() -> Self {
        Self {
            host: HostCost::FREE,
            processor: ProcessorCost::default(),
            processors: 1,
            host_way: WayCost::default(),
            member_way: WayCost::default(),
            way_parts: None,
            memory: 0,
            parity: ParityCost { second_percent: 100, ..ParityCost::default() },
            copy_picos: 0,
            channels: Vec::new(),
            requests_max: REQUESTS_MAX,
            span_turn: Bytes::ZERO,
            depth_max: 32,
            cache: Bytes::ZERO,
            journal: Bytes::ZERO,
            dirty_percent: [80, 60, 40],
            destage_units: [Limits::default().destage_units_max, Limits::default().destage_units_calm],
            open_stripes: None,
            destage_zones: Limits::default().destage_zones,
            destage_beside_reads: Limits::default().destage_beside_reads,
            adapts_after: 0,
            keeps_lessons: false,
            taught: false,
            read_kib: Nanos::ZERO,
            redundancy_stage: 0,
            partial_stripe: Nanos::ZERO,
            stripe: Bytes::ZERO,
            through_below: Bytes::ZERO,
            destage_delay: Nanos::from_secs(5),
            queue_age: Nanos::from_secs(2),
            policy: Policy::default(),
            clean_delay: NEVER_CLEAN,
            metadata_in_front: false,
        }
    }
}

impl MachineParts {
    /// The engine's limits for these parts.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let cache = self.cache.round_down(Bytes::kib(4));
        let [dirty_max_percent, dirty_high_percent, dirty_low_percent] = self.dirty_percent;
        let journal = if self.journal.is_zero() { Bytes::ZERO } else { JOURNAL_BUFFERS };
        let [destage_units_max, destage_units_calm] = self.destage_units;
        Limits {
            pool: HOST_FRAMES + WORK_FRAMES + ZERO_REGION + cache + journal,
            work: WORK_FRAMES,
            cache,
            journal,
            dirty_max_percent,
            dirty_high_percent,
            dirty_low_percent,
            destage_delay: self.destage_delay,
            destage_units_max,
            destage_units_calm,
            destage_zones: self.destage_zones,
            destage_beside_reads: self.destage_beside_reads,
            queue_age_max: self.queue_age,
            // Twice the number that the controller lets in. The engine counts an ended request until it runs again, but
            // the next request may already enter at that moment.
            requests_max: 2 * REQUESTS_MAX,
            drive_depth_max: self.depth_max,
            command_timeout: COMMAND_TIMEOUT,
            clean_delay: self.clean_delay,
            trace_entries: 64,
            ..Limits::default()
        }
    }
}
