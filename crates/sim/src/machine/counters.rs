//! The counters of a machine.

use openraid_core::admin::CacheCounters;
use openraid_core::reason::Reason;
use openraid_units::Nanos;

use openraid_drives::Passing;

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
    pub sectors_read: u64,
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
    /// The devices of the journal; empty if there is no journal.
    pub journal: Vec<MemberCounters>,
    /// Time in which a device of the journal had a command outstanding, if there is a journal.
    pub journal_busy: Option<Nanos>,
    /// Requests of hosts that ended: reads, writes, flushes.
    pub requests: [u64; 3],
    /// Bytes of these requests: read, written.
    pub bytes: [u64; 2],
    /// Time for which all threads of the host together worked.
    pub host_processor: Nanos,
    /// For each of the host's processors: the cost of the requests of its threads, one after the other.
    pub host_threads: Vec<Nanos>,
    /// Processors of the controller.
    pub processors: u32,
    /// Time for which the controller's processor worked.
    pub processor: Nanos,
    /// Time for which the parity engine worked.
    pub parity: Nanos,
    pub parity_jobs: u64,
    /// Input bytes of the parity engine.
    pub parity_bytes: u64,
    /// Time for which the bus worked: towards the host, from the host.
    pub bus: [Nanos; 2],
    /// Time for which the controller's own data path worked, if it has a rate of its own: towards the host, from the
    /// host.
    pub data_path: Option<[Nanos; 2]>,
    /// Time for which the controller's memory worked, if it has a rate.
    pub memory: Option<Nanos>,
    /// Stripes that the controller gathers at once, if its profile limits them.
    pub open_stripes: Option<u32>,
    /// Time for which each shared channel worked; of two directions, the busier one.
    pub channels: Vec<Nanos>,
    /// The controller's cache.
    pub cache: CacheCounters,
    /// Filled sectors of the new member, including those filled before the rebuild began; `None` if no rebuild runs.
    pub rebuilt: Option<u64>,
    /// Sectors of the array that have moved, including the sectors that moved before the machine began, and all that move; `None` if
    /// its shape does not change.
    pub moved: Option<[u64; 2]>,
    /// The engine's reasons, each with its number of uses.
    pub reasons: Vec<(Reason, u64)>,
    /// Events: a measure of the simulation's own work.
    pub events: u64,
}
