//! Every limit of the engine, by name. Constants bound what types and tables can hold; [`Limits`] are the
//! sizes chosen once at start. Memory is taken then; a full table later is an answer, never an allocation.

use openraid_units::{Bytes, Nanos, Sectors};

use crate::frames::Frames;

/// Maximum number of lines of one kind in the state of the engine in words.
pub(crate) const STATE_LINES_MAX: usize = 40;

/// Maximum number of members of one redundancy set: the width of [`crate::slot_set::SlotSet`].
pub const MEMBERS_MAX: u16 = 128;
/// Memory is handed out in frames of this size: a page, and the largest logical block.
pub const FRAME_BYTES: u64 = 4096;
/// The start of the pool that is always zero: the source of written zeroes.
pub const ZERO_REGION_BYTES: u64 = 256 << 10;
/// `ZERO_REGION_BYTES` in sectors: the longest write of zeroes without frames.
pub(crate) const ZERO_SECTORS: Sectors = Bytes(ZERO_REGION_BYTES).sectors_floor();
/// The largest pool: 4 TiB.
pub const POOL_BYTES_MAX: Bytes = Bytes(1 << 42);
/// Minimum number of lines of a cache that may be dirty.
pub const CACHE_DIRTY_LINES_MIN: u64 = 16;
/// Largest payload of one host request (what NBD servers are expected to take).
pub const REQUEST_BYTES_MAX: u64 = 32 << 20;
/// Largest range that TRIM and WRITE_ZEROES may name; they carry no payload.
pub const RANGE_BYTES_MAX: u64 = u32::MAX as u64;
/// Maximum number of outstanding drive commands of one operation, except on mirrors with many copies.
pub const OP_COMMANDS_MAX: u32 = 64;
/// Sets other than parity sets lock by regions of this many sectors (1 MiB).
pub const REGION_SECTORS: u64 = 2048;
/// Largest piece of metadata in one command (a bitmap page, a superblock, a page of the bad-block log).
pub const METADATA_BYTES_MAX: usize = 4096;
/// Maximum number of zones of a set that destage visits. Their numbers have 16 bits, and one value means none.
pub const DESTAGE_ZONES_MAX: u32 = 1 << 15;
/// Maximum number of bad ranges in a member's log: 512 entries of 8 bytes in 4 KiB.
pub const BAD_BLOCKS_MAX: usize = 512;
/// Number of entries of a bad-block log in one sector, 8 bytes each.
pub const BAD_BLOCKS_PER_SECTOR: usize = 64;
/// Number of parts into which rows are divided that could not be read as a whole, to find the bad block.
pub const SEARCH_WAYS: u32 = 8;
/// Maximum number of reads of a member for one defect of 4 KiB, in a range of up to 512 blocks that redundancy does not
/// replace: the first one, eight in each of three rounds, and three until whole ranges are read again.
pub const SEARCH_COMMANDS_MAX: u32 = 1 + 3 * SEARCH_WAYS + 3;
/// Maximum number of defects of a member that are remembered, so that each counts once. It is higher than the default
/// limit of media errors ([`Limits::media_errors_max`]).
pub const DEFECTS_MAX: usize = 64;
/// Maximum length of one defect: 64 KiB. Adjacent bad sectors within it count once.
pub const DEFECT_SECTORS_MAX: Sectors = Sectors::kib(64);
/// Number of buffers for payload of the journal: one collects, one is being written, and one is spare in case a drive
/// hangs on another. The window into which replay reads follows them and has the same size.
pub const JOURNAL_BUFFERS: usize = 3;
/// Maximum number of steps of host requests that are kept while a client asks for them: 4 MiB, or the last 2,000
/// partial-stripe writes.
pub const STEPS_MAX: u32 = 32_768;
/// Maximum time for which a part of a stripe is held for adjoining writes although no work of its stream is under way. A
/// host on the same machine needs less time to follow an answer with its next request, and a disk more for one write.
pub const GATHER_DELAY: Nanos = Nanos::from_micros(200);
/// Maximum number of units that a rebuild, resync or scrub works on at once; the width of its window mask.
pub const WINDOW_ROWS_MAX: u32 = 64;
/// Pause before a member whose storage was full is tried again.
pub const ROOM_PAUSE: Nanos = Nanos::from_secs(10);
/// Maximum number of sectors of a part of background work on drives that do not rotate while hosts use them: 64 KiB. With
/// 128 KiB, hosts of a modelled SATA SSD wait up to ten times as long as without the work; with 32 KiB, the work takes
/// twice as long.
pub(crate) const BESIDE_HOSTS_PART: u32 = 128;
/// Time after which it is known whether hosts leave such work its minimum rate. Until then its commands give way.
pub(crate) const PACE_WINDOW: Nanos = Nanos::from_millis(250);
/// Time for which it then has this rate, before it gives way again.
pub(crate) const PACE_MINIMUM_TIME: Nanos = Nanos::from_secs(5);
/// One part in this number of the time goes to flushes before checkpoints: half of the hundredth that the 99th percentile of
/// hosts leaves out.
pub(crate) const CHECKPOINT_SHARE: u64 = 200;
/// The time of a flush that is no more than that at the default interval of 10 s.
pub(crate) const SHORT_FLUSH: Nanos = Nanos::from_millis(50);
/// Number of the usual intervals between two checkpoints after which there is one however long flushes take.
pub(crate) const CHECKPOINT_INTERVALS_MAX: u64 = 60;
/// Maximum number of parts of one move in work.
pub(crate) const MOVE_PARTS_MAX: u32 = 8;
/// Length of a unit of a change of shape, if whole stripes allow it: large enough for one read a member, small enough that
/// writes do not wait long for it.
pub const RESHAPE_UNIT: Sectors = Sectors::kib(1024);
/// Length of the stretch that is closed to writes before the units in work.
pub const RESHAPE_WINDOW: Sectors = Sectors::kib(16 * 1024);
/// Time between two records of the position of a change of shape, as in md, if flushes are short.
pub const RESHAPE_RECORD_INTERVAL: Nanos = Nanos::from_secs(10);
/// If no unit of a change of shape begins within this time, writes are let in.
pub const RESHAPE_PATIENCE: Nanos = Nanos::from_secs(1);
/// A unit of a change of shape that failed is tried again after this time.
pub const RESHAPE_PAUSE: Nanos = Nanos::from_secs(10);
/// Maximum length of the write that tries it.
pub const ROOM_PROBE: Sectors = Sectors(128);

/// Sizes of the controller's tables, chosen at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Frame pool that the driver provides, in bytes; a multiple of [`FRAME_BYTES`].
    pub pool: Bytes,
    /// Part of the pool, at its end, for dirty data and for data that was read; 0 means no cache.
    pub cache: Bytes,
    /// Part of the pool, before the cache, through which the journal is written: four parts of equal size, 64 KiB to
    /// 1 MiB each; 0 means no journal.
    pub journal: Bytes,
    /// Maximum number of journal entries with host data that may be needed at once. Entries for redo records are added,
    /// one for each line of the cache.
    pub journal_entries_max: u32,
    /// Maximum percentage of the cache that may be dirty.
    pub dirty_max_percent: u64,
    /// Percentage of dirty lines above which destage begins; it ends at the low mark.
    pub dirty_high_percent: u64,
    /// See `dirty_high_percent`.
    pub dirty_low_percent: u64,
    /// Maximum age of dirty data before destage writes it.
    pub destage_delay: Nanos,
    /// Maximum number of dirty units in work at once.
    pub destage_units_max: u32,
    /// Limit of `destage_units_max` without pressure (memory, journal, waiting writes): short queues help reads. Sets
    /// that destage by age always use it.
    pub destage_units_calm: u32,
    /// Number of zones of each set that destage visits in order of address if members rotate, a power of two. With 1,
    /// destage goes by age.
    pub destage_zones: u32,
    /// Maximum number of destage commands at a drive while hosts read from it, unless memory is short or a write waits
    /// for destage. A read waits for at most this number of them.
    pub destage_beside_reads: u32,
    /// Part of the pool that is reserved for work of the engine (old data, parity), so that host payload cannot starve
    /// it.
    pub work: Bytes,
    /// Maximum number of host requests inside the controller.
    pub requests_max: u32,
    /// Maximum number of pieces in work; each holds one run of frames.
    pub pieces_max: u32,
    /// Maximum size of a piece of a host request.
    pub piece_bytes_max: Bytes,
    /// Maximum number of operations in work (one exclusion unit each).
    pub ops_max: u32,
    /// Maximum number of drive commands, issued or waiting.
    pub commands_max: u32,
    /// Maximum number of commands at one drive; others wait in the controller's queue.
    pub drive_depth_max: u32,
    /// Age from which a command in that queue goes before all others.
    pub queue_age_max: Nanos,
    /// Maximum number of attached drives.
    pub drives_max: u16,
    /// Maximum number of rows (sectors of one member) of an operation on a parity set.
    pub rows_max: Sectors,
    /// Time without an answer after which a drive has failed.
    pub command_timeout: Nanos,
    /// Time without writes after which the clean mark is written.
    pub clean_delay: Nanos,
    /// Time without writes after which a bitmap bit is cleared.
    pub bitmap_clear_delay: Nanos,
    /// Maximum time between two checkpoints of a rebuild or resync.
    pub checkpoint_interval: Nanos,
    /// Maximum number of sectors of a unit of a rebuild, resync or scrub, a power of two: also for a chunk that is larger,
    /// unless one operation reads more at once.
    pub background_unit_max: Sectors,
    /// Maximum number of units between the first one that is not done and the last one that has begun.
    pub background_window_max: u32,
    /// Maximum number of units that one call may skip because the bitmap does not mark them.
    pub background_skips_max: u32,
    /// Maximum size of a piece of a request that writes zeroes without a payload.
    pub range_piece_bytes_max: Bytes,
    /// Maximum time until the superblocks of a set say how far its journal has come, while the journal grows. `Nanos(u64::MAX)`: no limit.
    pub position_interval: Nanos,
    /// Maximum number of media errors of one member that are repaired before the member fails.
    pub media_errors_max: u32,
    /// Number of entries of the ring of explained decisions.
    pub trace_entries: u32,
}

/// Limits that cannot work; the text says which relation is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsError(pub &'static str);

impl core::fmt::Display for LimitsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "controller limits: {}", self.0)
    }
}

impl Default for Limits {
    /// A service on a small machine: 160 MiB of frames, half of them in use unless drives hang.
    fn default() -> Self {
        Self {
            pool: Bytes::mib(160),
            work: Bytes::mib(64),
            cache: Bytes(0),
            journal: Bytes(0),
            journal_entries_max: 65_536,
            dirty_max_percent: 80,
            dirty_high_percent: 60,
            dirty_low_percent: 40,
            destage_delay: Nanos::from_secs(5),
            destage_units_max: 128,
            destage_units_calm: 32,
            destage_zones: 1024,
            destage_beside_reads: 2,
            requests_max: 4096,
            pieces_max: 4096,
            piece_bytes_max: Bytes::mib(1),
            ops_max: 8192,
            commands_max: 32768,
            drive_depth_max: 128,
            queue_age_max: Nanos::from_secs(2),
            drives_max: 256,
            rows_max: Sectors::kib(256),
            command_timeout: Nanos::from_secs(30),
            clean_delay: Nanos::from_millis(200),
            bitmap_clear_delay: Nanos::from_secs(5),
            checkpoint_interval: Nanos::from_secs(10),
            background_unit_max: Sectors::kib(256),
            background_window_max: WINDOW_ROWS_MAX,
            background_skips_max: 65_536,
            range_piece_bytes_max: Bytes::mib(16),
            position_interval: Nanos::from_secs(10),
            media_errors_max: 20,
            trace_entries: 4096,
        }
    }
}

impl Limits {
    /// Small tables for tests and simulations, so that every limit is met.
    #[must_use]
    pub fn small() -> Self {
        Self {
            pool: Bytes::kib(256 + 1024 + 1024),
            work: Bytes::mib(1),
            requests_max: 16,
            pieces_max: 16,
            piece_bytes_max: Bytes::kib(128),
            destage_units_max: 32,
            ops_max: 64,
            commands_max: 512,
            drive_depth_max: 8,
            drives_max: 32,
            rows_max: Sectors::kib(16),
            // Simulations that want it choose an interval.
            position_interval: Nanos(u64::MAX),
            trace_entries: 64,
            ..Self::default()
        }
    }

    /// Size of the smallest cache: [`CACHE_DIRTY_LINES_MIN`] of its lines may be dirty.
    #[must_use]
    pub fn cache_bytes_min(&self) -> Bytes {
        let lines = (CACHE_DIRTY_LINES_MIN * 100).div_ceil(self.dirty_max_percent.max(1));
        Bytes(lines * FRAME_BYTES)
    }

    /// Frames of the pool that hold host payload.
    #[must_use]
    pub fn host_bytes(&self) -> Bytes {
        self.pool - self.work - self.cache - self.journal - Bytes(ZERO_REGION_BYTES)
    }

    /// The part of the host's frames that is in use while no drive hangs: the first zone.
    #[must_use]
    pub fn host_bytes_in_use(&self) -> Bytes {
        let host = self.host_bytes();
        host - Bytes(2 * Frames::zone_bytes(host.get()))
    }

    /// One buffer of the journal: the payload of the largest entry.
    pub(crate) fn journal_buffer(&self) -> Bytes {
        self.journal / (JOURNAL_BUFFERS as u64 + 1)
    }

    /// Check the relations between the limits.
    ///
    /// # Errors
    /// The first relation that does not hold.
    pub fn check(&self) -> Result<(), LimitsError> {
        let ensure = |holds: bool, text| if holds { Ok(()) } else { Err(LimitsError(text)) };
        let frame = Bytes(FRAME_BYTES);
        ensure((self.pool % frame).is_zero(), "the pool must be a multiple of 4096 bytes")?;
        ensure((self.work % frame).is_zero(), "the work area must be a multiple of 4096 bytes")?;
        let others = [self.cache, self.journal, Bytes(ZERO_REGION_BYTES)];
        let others = others.iter().fold(self.work.get(), |sum, part| sum.saturating_add(part.get()));
        ensure(others < self.pool.get(), "the pool must be larger than the work area, the cache and the zero region")?;
        ensure((self.cache % frame).is_zero(), "the cache must be a multiple of 4096 bytes")?;
        let buffer = self.journal_buffer();
        ensure((self.journal % (frame * 4)).is_zero(), "the journal's buffers must be multiples of 4096 bytes")?;
        ensure(
            buffer.is_zero() || (Bytes::kib(64)..=Bytes::mib(1)).contains(&buffer),
            "a buffer of the journal must have 64 KiB to 1 MiB",
        )?;
        ensure(buffer.is_zero() || !self.cache.is_zero(), "a journal needs a cache")?;
        ensure(buffer.is_zero() || self.journal_entries_max >= 64, "a journal needs at least 64 entries")?;
        ensure(
            self.dirty_low_percent <= self.dirty_high_percent
                && self.dirty_high_percent <= self.dirty_max_percent
                && self.dirty_max_percent <= 95,
            "the marks of the cache must rise: low, high, at most, and at most 95 percent",
        )?;
        ensure(
            self.cache.is_zero() || self.cache >= self.cache_bytes_min(),
            "a cache must hold at least 16 dirty lines",
        )?;
        ensure(self.destage_units_max >= 1 && self.destage_units_calm >= 1, "at least one dirty unit must be in work")?;
        ensure(
            self.destage_units_max <= self.ops_max / 2,
            "dirty units in work must leave half of the operations to others",
        )?;
        ensure(
            self.destage_zones.is_power_of_two() && self.destage_zones <= DESTAGE_ZONES_MAX,
            "the zones of destage must be a power of two, at most 32768",
        )?;
        ensure(self.destage_beside_reads >= 1, "destage must be allowed one command next to reads")?;
        ensure(self.pool <= POOL_BYTES_MAX, "a pool above 4 TiB is not addressable")?;
        ensure(self.piece_bytes_max >= frame * 4, "a piece must be at least 16 KiB")?;
        ensure(
            Frames::zone_bytes(self.host_bytes().get()) >= self.piece_bytes_max.get().next_power_of_two(),
            "a quarter of the host frames must hold a piece",
        )?;
        ensure(self.work >= Bytes(2 * FRAME_BYTES * 128), "the work area must be at least 1 MiB")?;
        ensure(self.requests_max >= 1 && self.pieces_max >= 2, "at least one request and two pieces")?;
        ensure(self.ops_max >= 32, "at least 32 operations")?;
        ensure(self.commands_max >= 4 * u32::from(MEMBERS_MAX), "at least 512 drive commands")?;
        ensure(self.drive_depth_max >= 1, "a drive must be allowed one command")?;
        ensure(self.rows_max.get() >= 8, "an operation must cover at least 4 KiB of a member")?;
        let unit = self.background_unit_max;
        ensure(
            unit.get().is_power_of_two() && (Sectors::kib(4)..=Sectors(REGION_SECTORS)).contains(&unit),
            "a unit of background work must be a power of two from 4 KiB to 1 MiB",
        )?;
        ensure(
            (1..=WINDOW_ROWS_MAX).contains(&self.background_window_max),
            "the window of background work must have 1 to 64 units",
        )?;
        ensure(self.background_skips_max >= 1, "a call must be allowed to skip a unit")?;
        let range = self.range_piece_bytes_max;
        ensure(!range.is_zero() && (range % frame).is_zero(), "a piece of zeroes must be a multiple of 4096 bytes")
    }
}

/// Maximum number of streams of one array that are tracked. More sequential readers at once look random.
pub(crate) const STREAMS_MAX: usize = 32;

/// Maximum number of read-ahead requests in work.
pub(crate) const AHEAD_REQUESTS_MAX: u32 = 64;
