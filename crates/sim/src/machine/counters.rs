//! The counters of a machine.

use openraid_core::admin::CacheCounters;
use openraid_core::reason::Reason;
use openraid_units::Nanos;

use openraid_drives::Passing;

/// The counters of one member.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MemberCounters {
    /// Read commands, without those for the array's metadata.
    pub reads: u64,
    /// Write commands, without those for the array's metadata.
    pub writes: u64,
    /// Flushes and other commands without payload.
    pub others: u64,
    /// Commands for the array's metadata.
    pub metadata: u64,
    /// Sectors read.
    pub sectors_read: u64,
    /// Sectors written.
    pub sectors_written: u64,
    /// Written sectors that are still in the drive's own cache.
    pub held: u64,
    /// Time for which its mechanism worked, or the mean of its dies.
    pub busy: Nanos,
    /// Time for which its other parts worked.
    pub passing: Passing,
}

/// All counters of a machine since its creation.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MachineCounters {
    /// By slot.
    pub members: Vec<MemberCounters>,
    /// The devices of the journal; none if there is no journal.
    pub journal: Vec<MemberCounters>,
    /// Time with a command outstanding at a device of the journal, if there is one.
    pub journal_busy: Option<Nanos>,
    /// Requests of hosts that ended: reads, writes, flushes.
    pub requests: [u64; 3],
    /// Their bytes: read, written.
    pub bytes: [u64; 2],
    /// Time that the threads of the host worked, all together.
    pub host_processor: Nanos,
    /// Each of the host's processors, with its threads: the cost of requests one after the other.
    pub host_threads: Vec<Nanos>,
    /// Processors of the controller.
    pub processors: u32,
    /// Time that the controller's processor worked.
    pub processor: Nanos,
    /// Time that the parity engine worked.
    pub parity: Nanos,
    /// Parity jobs.
    pub parity_jobs: u64,
    /// Bytes that went into the parity engine.
    pub parity_bytes: u64,
    /// Time that the bus towards the host worked, and from the host.
    pub bus: [Nanos; 2],
    /// Time that the controller's own data path worked towards the host, and from it; if it has a rate of its own.
    pub data_path: Option<[Nanos; 2]>,
    /// Time that the controller's memory worked, if it has a rate.
    pub memory: Option<Nanos>,
    /// Stripes that the controller gathers at once, if it has a bound of its own.
    pub open_stripes: Option<u32>,
    /// Time that each shared channel worked; if it has two directions, the busier one.
    pub channels: Vec<Nanos>,
    /// The controller's cache.
    pub cache: CacheCounters,
    /// Sectors of the new member that a rebuild has filled, what was filled when it began included; none while none runs.
    pub rebuilt: Option<u64>,
    /// The engine's reasons, with how often they were given.
    pub reasons: Vec<(Reason, u64)>,
    /// Things that happened: a measure of the simulation's own work.
    pub events: u64,
}
