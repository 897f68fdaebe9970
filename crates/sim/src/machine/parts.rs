//! The parts of a machine, in numbers: costs of the processors, rates of the ways, sizes of the tables.
//!
//! A parts has no names and no sources: those are in the profiles that it is made from. Everything here is a
//! cause (a time, a rate, a bound), never an outcome.

use openraid_core::admin::Policy;
use openraid_core::limits::Limits;
use openraid_units::{Bytes, Nanos};

use super::journal::JOURNAL_BUFFERS;
use super::server::Rate;

/// The cost of a request on its host thread. Half of it is spent before the request is with the controller, half when
/// it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCost {
    /// For each read.
    pub read: Nanos,
    /// For each write, and each flush.
    pub write: Nanos,
    /// For each request that begins where the one before of the same thread ended.
    pub sequential: Nanos,
    /// For each KiB: of a write on the way there, of a read on the way back.
    pub kib: Nanos,
    /// Processors: threads beyond that number share them.
    pub processors: u32,
}

impl HostCost {
    /// Nothing.
    pub const FREE: Self =
        Self { read: Nanos::ZERO, write: Nanos::ZERO, sequential: Nanos::ZERO, kib: Nanos::ZERO, processors: 1 };
}

/// The processor of the controller: a server, first come, first served.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessorCost {
    /// For each request of a host, read and write.
    pub read: Nanos,
    /// See `read`.
    pub write: Nanos,
    /// In addition, for each request to an array in two levels (10, 50, 60).
    pub nested: Nanos,
    /// For each command to a member.
    pub command: Nanos,
    /// For each KiB of a request.
    pub kib: Nanos,
}

/// The engine that computes parity: a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ParityCost {
    /// For each job.
    pub setup: Nanos,
    /// For each member of the set that a job is for.
    pub member: Nanos,
    /// Picoseconds for each byte that goes in.
    pub picos: u64,
    /// A job with a second syndrome takes this many percent of one without.
    pub second_percent: u64,
}

/// The way to the host or to the members: two directions and what they share.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WayCost {
    /// From the members towards the host.
    pub read: Rate,
    /// From the host towards the members.
    pub write: Rate,
    /// The rate that both directions share (PCI); none if each has its own lanes.
    pub shared: Option<Rate>,
}

/// The parts of a way that includes a controller's own data path. The machine's times come from the way alone; this
/// says which part of it is the slow one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WayParts {
    /// The data path: towards the host, from it.
    pub path: [Rate; 2],
    /// The bus, likewise.
    pub bus: [Rate; 2],
}

/// All of it.
#[derive(Clone, Debug)]
pub struct MachineParts {
    /// Threads of the host.
    pub host: HostCost,
    /// The controller's processor.
    pub processor: ProcessorCost,
    /// How many of them work side by side.
    pub processors: u32,
    /// Between host and controller: payload of requests.
    pub host_way: WayCost,
    /// Between controller and members: payload of commands. If the host's own processor is the controller, the bus is
    /// here.
    pub member_way: WayCost,
    /// The parts of `host_way`.
    pub way_parts: Option<WayParts>,
    /// Picoseconds for each byte that goes into the controller's memory or out of it; zero if that is no limit.
    pub memory: u64,
    /// The parity engine.
    pub parity: ParityCost,
    /// Picoseconds a byte for copies between frames and cache; zero if the payload need not be copied.
    pub copy_picos: u64,
    /// Channels that several members share (U320, a port of an expander); members are spread over them in turn. None
    /// where each has a link of its own.
    pub channels: Vec<WayCost>,
    /// Requests that the controller works on at once; more wait at its door.
    pub requests_max: u32,
    /// Commands that one member gets at once.
    pub depth_max: u32,
    /// The cache, none if zero.
    pub cache: Bytes,
    /// The size of each device of the journal; zero for none.
    pub journal: Bytes,
    /// The part of the cache that may be dirty, in percent: at most, and the marks between which it drains.
    pub dirty_percent: [u64; 3],
    /// Dirty units written at once, and while nothing hurries.
    pub destage_units: [u32; 2],
    /// They are the stripes that the controller puts together at once, this many.
    pub open_stripes: Option<u32>,
    /// Parts of a set that destage goes over in order of place; one is the order of age.
    pub destage_zones: u32,
    /// Commands that destage has at a drive while hosts read.
    pub destage_beside_reads: u32,
    /// Requests after which a controller that adapts has made up its mind about streams of writes; zero for others.
    pub adapts_after: u32,
    /// Its learned state outlives the array.
    pub keeps_lessons: bool,
    /// It has learned before that its loads are random.
    pub taught: bool,
    /// Each KiB of a read, 64 KiB at most, waits for this long on its way to the host if its thread has asked for
    /// nothing else.
    pub read_kib: Nanos,
    /// Picoseconds in the stage before the cache of an array with redundancy, one write after the other: of each byte in a
    /// stripe that the write fills in part. In addition the processor's time for two levels. Zero if there is no such stage.
    pub redundancy_stage: u64,
    /// Each stripe that a write to an array with parity fills in part takes this time of the stage before the engine.
    pub partial_stripe: Nanos,
    /// Data of a stripe: see `redundancy_stage` and `partial_stripe`.
    pub stripe: Bytes,
    /// Writes shorter than this that go on with no stream are not cached by the controller; zero where all are.
    pub through_below: Bytes,
    /// Dirty data is written after this time.
    pub destage_delay: Nanos,
    /// A command that has waited so long for its member goes before all others.
    pub queue_age: Nanos,
    /// The engine's policy.
    pub policy: Policy,
    /// An array is marked clean after this time; most controllers keep such marks in memory of their own.
    pub clean_delay: Nanos,
    /// The array's description stands in front of the data, as on a real array of this project, or in a place
    /// that takes nothing of the members.
    pub metadata_in_front: bool,
}

/// Frames for requests: more than any load here has outstanding.
const HOST_FRAMES: Bytes = Bytes::gib(1);
/// Frames for old data and parity.
const WORK_FRAMES: Bytes = Bytes::mib(512);
/// Memory that the engine itself takes, before everything else.
const ZERO_REGION: Bytes = Bytes::kib(256);
/// Longer than any command waits in a queue that is far too long for its drive.
const COMMAND_TIMEOUT: Nanos = Nanos::from_secs(3600);
/// A day: no array is idle for this long.
pub const NEVER_CLEAN: Nanos = Nanos::from_secs(24 * 3600);
/// Requests inside the engine at most.
pub const REQUESTS_MAX: u32 = 4096;

impl Default for MachineParts {
    /// Everything is free and unbounded: only the engine and its drives take time.
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
    /// The engine's limits for this parts.
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
            // Twice as many as the door lets in: one that has ended in this moment still counts for the engine until it
            // moves, while the next is at the door already.
            requests_max: 2 * REQUESTS_MAX,
            drive_depth_max: self.depth_max,
            command_timeout: COMMAND_TIMEOUT,
            clean_delay: self.clean_delay,
            trace_entries: 64,
            ..Limits::default()
        }
    }
}
