//! The journal: a log on devices of its own that makes acknowledged writes durable before they are on the members.
//!
//! ```text
//!   write --> cache line (dirty, pinned to its entry) --> reply, when the entry is durable
//!                |
//!             destage --> redo entry durable --> members --> flushed --> the tail passes both entries
//! ```
//!
//! - [`devices`]: the one or two devices, and the commands to them.
//! - [`commit`]: records collect in a group. One group is written at a time; records that come meanwhile form the next one.
//! - [`log_entries`]: the entries from the tail to the head, and what still needs each of them.
//! - [`session`]: a set uses the journal only while its superblocks say so. Linux md then does not start the set without
//!   the journal.
//! - [`record_position`]: the superblocks of a set say how far the log has come, so that an older copy of it is refused.
//! - [`redo`]: the records of a write are durable in the journal before the write goes to members, so that a crash leaves no
//!   stripe half written. A record never depends on what members hold.
//! - [`redo_plan`]: which records these are, a pure function.
//! - [`tail`]: the tail passes an entry only after a flush of all members that its data was written to.
//! - [`reservation`]: how the room of the ring is divided, so that all acknowledged data can be written to the members.
//! - [`replay`]: at a start, acknowledged data of the log is loaded before the set takes requests.
//! - [`redo_backlog`]: the redo records that members do not have yet, the backlog, are written while the set serves; a row
//!   is redone before any other access to it.
//! - [`spill`]: entries that only absent arrays need are copied out of the ring, so that they do not hold up the tail.
//! - [`join`]: a device comes back, or a new one takes its place, while the journal runs: the steps that bring it up to date.
//! - [`window`]: the buffer through which the last three read the log, one at a time.
//! - [`mirror_resync`]: the same steps at a start with two devices that differ.
//! - [`journal_lost`]: a journal without a working device protects no more writes; the data that it has acknowledged goes to the
//!   members.
//!
//! Three things must never happen: a reply before its entry is durable on every device of the journal; a member write
//! before its redo record is durable; an entry forgotten that a crash would still need.

mod append_records;
mod backlogs;
pub(crate) mod commit;
pub(crate) mod devices;
mod enlist;
pub mod find_device;
pub mod found_journal;
mod group;
pub mod join;
pub(crate) mod journal_lost;
pub(crate) mod log_entries;
pub mod mirror_resync;
pub mod older_log;
pub mod open_and_detach;
pub(crate) mod record_position;
pub(crate) mod redo;
pub(crate) mod redo_backlog;
mod redo_plan;
pub(crate) mod replay;
pub(crate) mod reservation;
pub mod session;
pub(crate) mod set_journal;
pub(crate) mod spill;
mod superblock_order;
pub(crate) mod tail;
mod tail_flushes;
#[cfg(test)]
mod tests;
pub(crate) mod window;
mod window_reads;
mod write_superblocks;

use crate::journal::tail_flushes::Round;
use alloc::boxed::Box;
use alloc::vec::Vec;
use devices::{Device, DeviceState};
use group::Group;
use join::Join;
use log_entries::Log;
use older_log::Positions;
use openraid_format::{
    journal_entry_sectors, JournalRing, JournalSuperblock, RingSector, Uuid, JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES,
};
use openraid_units::{DriveId, Instant, PoolOffset, Sectors};
use replay::Replay;
use reservation::Reservation;
use spill::Spill;
use superblock_order::SuperblockWrite;
use window::Window;

use crate::limits::{Limits, FRAME_BYTES, JOURNAL_BUFFERS};

/// The state of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalState {
    /// There is none.
    None,
    /// Its superblocks are being written with a new epoch.
    Opening,
    /// It protects writes.
    Live,
    /// It protects no more writes, because it is being detached: its superblocks are being written.
    Closing,
    /// It protects no more writes. Data that it has acknowledged goes to the members.
    Lost(JournalLoss),
}

/// Why a journal protects no more writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalLoss {
    /// No device of it works any more.
    Device,
    /// The ring is full of entries that their array cannot take: it has failed, is not served, or its members refuse
    /// writes or flushes.
    Full,
}

/// Work of the journal since it was attached.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct JournalCounters {
    /// Entries written.
    pub entries: u64,
    /// Sectors of headers and payload written, on each device.
    pub sectors: u64,
    /// Records of host data, and their sectors.
    pub data_records: u64,
    /// See `data_records`.
    pub data_sectors: u64,
    /// Redo records, and the sectors of payload that were written for them.
    pub redo_records: u64,
    /// See `redo_records`.
    pub redo_sectors: u64,
    /// Rounds of flushes after which the tail moved.
    pub rounds: u64,
    /// Writes of superblocks.
    pub superblocks: u64,
    /// Sectors that were loaded as dirty when arrays were started.
    pub replayed_sectors: u64,
    /// Number of member writes that were repeated when arrays were started.
    pub replayed_redos: u64,
}

/// The journal of a controller.
#[derive(Debug)]
pub(crate) struct Journal {
    pub(in crate::journal) state: JournalState,
    pub(in crate::journal) devices: Vec<Device>,
    pub(in crate::journal) superblock: Option<Box<JournalSuperblock>>,
    /// The superblock as it is being written.
    pub(in crate::journal) snapshot: Option<Box<JournalSuperblock>>,
    pub(in crate::journal) writing: SuperblockWrite,
    /// The generation that records that a device was dropped or joins. Until it is durable no write is acknowledged.
    pub(in crate::journal) epoch_raised: u64,
    /// The position of the next entry.
    pub(in crate::journal) head: RingSector,
    pub(in crate::journal) room: Reservation,
    /// If not 0, the log is nearly full: dirty data in entries below this one is destaged whatever its age.
    pub(in crate::journal) presses: u64,
    pub(in crate::journal) log: Log,
    pub(in crate::journal) open: Group,
    pub(in crate::journal) flying: Group,
    /// Buffer in which headers are made. It has zeroes, or the last header.
    pub(in crate::journal) header: Vec<u8>,
    /// The last entry up to which all entries are durable.
    pub(in crate::journal) durable: u64,
    pub(in crate::journal) positions: Positions,
    /// Which buffers of the pool are free.
    pub(in crate::journal) buffers: [bool; JOURNAL_BUFFERS],
    /// For each buffer, the commands that were given up and point at it: drives may still read it.
    pub(in crate::journal) held: [u32; JOURNAL_BUFFERS],
    pub(in crate::journal) window: Window,
    base: PoolOffset,
    pub(in crate::journal) buffer_sectors: Sectors,
    pub(in crate::journal) round: Round,
    pub(in crate::journal) spill: Spill,
    pub(in crate::journal) join: Join,
    pub(in crate::journal) replay: Replay,
    /// Pieces whose entry was being written when the journal was lost, and pieces that are written without it since. They
    /// are answered when no data of their array is dirty any more.
    pub(in crate::journal) orphans: Vec<u32>,
    /// Time of the last record.
    pub(in crate::journal) last_append: Instant,
    pub(in crate::journal) counters: JournalCounters,
}

impl Journal {
    pub(crate) fn new(limits: &Limits) -> Self {
        let base = PoolOffset((limits.pool - limits.cache - limits.journal).get());
        let buffer = limits.journal_buffer();
        let on = !limits.journal.is_zero();
        let (pieces, ops) = if on { (limits.pieces_max, limits.ops_max) } else { (0, 0) };
        let lines = u32::try_from(limits.cache.get() / FRAME_BYTES).expect("checked with the limits");
        let entries = [limits.journal_entries_max, lines, limits.destage_units_max];
        let [of_hosts, lines, in_work] = if on { entries } else { [0; 3] };
        Self {
            state: JournalState::None,
            devices: Vec::new(),
            superblock: None,
            snapshot: None,
            writing: SuperblockWrite::default(),
            epoch_raised: 0,
            head: RingSector(0),
            room: Reservation::default(),
            presses: 0,
            log: Log::new(of_hosts, lines, in_work),
            open: Group::new(pieces, ops),
            flying: Group::new(pieces, ops),
            header: alloc::vec![0; if on { JOURNAL_BLOCK_BYTES } else { 0 }],
            durable: 0,
            positions: Positions::default(),
            buffers: [true; JOURNAL_BUFFERS],
            held: [0; JOURNAL_BUFFERS],
            window: Window::default(),
            base,
            buffer_sectors: buffer.sectors_floor(),
            round: Round::default(),
            spill: Spill::default(),
            join: Join::default(),
            replay: Replay::default(),
            // In both groups, and once more for writes past the cache.
            orphans: Vec::with_capacity(3 * pieces as usize),
            last_append: Instant::ZERO,
            counters: JournalCounters::default(),
        }
    }

    /// Were all entries that wait for this array read when the journal was opened?
    pub(crate) fn can_replay(&self, array: u8) -> bool {
        self.log.last_waiting_for(array).is_none_or(|last| self.replay.holds(last))
    }

    /// The state of the journal.
    #[inline(always)]
    pub(crate) const fn state(&self) -> JournalState {
        self.state
    }

    /// The superblock of a journal that was attached.
    fn table(&self) -> &JournalSuperblock {
        self.superblock.as_ref().expect("the journal was attached")
    }

    /// As [`Journal::table`].
    fn table_mut(&mut self) -> &mut JournalSuperblock {
        self.superblock.as_mut().expect("the journal was attached")
    }

    /// The place in its table of the set with this UUID.
    pub(crate) fn index_of(&self, set: Uuid) -> Option<u8> {
        self.superblock.as_ref()?.index_of(set)
    }

    /// Is this the journal with this UUID, and does it protect writes, now or soon?
    pub(crate) fn is_working_as(&self, journal: Uuid) -> bool {
        matches!(self.state, JournalState::Live | JournalState::Opening)
            && self.superblock.as_ref().is_some_and(|superblock| superblock.journal == journal)
    }

    /// The first entry of the session in this place of the table.
    pub(crate) fn first_entry_of(&self, index: u8) -> u64 {
        self.table().arrays[usize::from(index)].map_or(1, |array| array.first_sequence)
    }

    /// The sequence number of the entry that takes records now.
    pub(crate) const fn open_entry(&self) -> u64 {
        self.open.sequence
    }

    /// Number of sectors of payload that this entry can still take.
    pub(crate) fn open_room(&self) -> Sectors {
        self.buffer_sectors - self.open.payload
    }

    /// Maximum number of sectors of payload of one entry.
    pub(crate) const fn payload_max(&self) -> Sectors {
        self.buffer_sectors
    }

    /// If this is not 0, dirty data in entries below this one must be destaged whatever its age.
    #[inline(always)]
    pub(crate) const fn presses(&self) -> u64 {
        self.presses
    }

    /// Sectors of the ring that entries take.
    pub(crate) const fn used(&self) -> Sectors {
        Sectors(self.log.used)
    }

    /// Number of cache lines whose data is in the log.
    pub(crate) const fn logged_lines(&self) -> u32 {
        self.log.lines
    }

    /// The log, for the lines of the cache: they pin its entries.
    pub(crate) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// The redo backlogs and the replay, for the operations that carry them out.
    #[inline(always)]
    pub(crate) const fn replay(&self) -> &Replay {
        &self.replay
    }

    /// As [`Journal::replay`].
    pub(crate) fn replay_mut(&mut self) -> &mut Replay {
        &mut self.replay
    }

    /// Count a redo that begins.
    pub(crate) fn count_redo(&mut self) {
        self.counters.replayed_redos += 1;
    }

    /// Number of sectors of the blocks in which the journal is read and written.
    pub(crate) fn block_sectors(&self) -> u64 {
        self.table().block.sectors().get()
    }

    /// Does any device of it work?
    pub(crate) fn has_working_device(&self) -> bool {
        self.devices.iter().any(|device| device.state.works())
    }

    /// The device to read entries from, other than the one that was tried: a working one, or one that has failed since,
    /// perhaps because of a write. A device with unanswered commands is not used.
    pub(crate) fn device_to_read(&self, tried: Option<usize>, is_silent: impl Fn(DriveId) -> bool) -> Option<usize> {
        let is_it = |number: usize, state| tried != Some(number) && self.devices[number].state == state;
        let find = |state| (0..self.devices.len()).find(|number| is_it(*number, state));
        let answers = |number: &usize| !is_silent(self.devices[*number].drive);
        find(DeviceState::Works).or_else(|| find(DeviceState::Dropped).filter(answers))
    }

    /// A drive has not answered a command with this buffer of entries, and the command is given up: the drive may
    /// still access the buffer.
    pub(crate) fn give_up_buffer(&mut self, buffer: usize) {
        self.held[buffer] += 1;
    }

    /// The drive has answered that command.
    pub(crate) fn buffer_came_back(&mut self, buffer: usize) {
        self.held[buffer] -= 1;
    }

    /// A drive has not answered a command with the window, and the command is given up.
    pub(crate) fn give_up_window(&mut self) {
        self.window.give_up();
    }

    /// The drive has answered that command.
    pub(crate) fn window_came_back(&mut self) {
        self.window.come_back();
    }

    /// Its present work, for [`Controller::write_waiting`](crate::controller::Controller::write_waiting).
    pub(crate) fn write_state(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
        writeln!(
            out,
            "journal: {:?}, short {}, presses {}, lines {}, round {:?}, superblock {:?}, open {}, flying {}, replays \
             {}, {:?}",
            self.state,
            self.is_short(),
            self.presses,
            self.log.lines,
            self.round,
            self.writing,
            self.open.sequence,
            self.flying.sequence,
            self.replay.is_active(),
            self.window,
        )
    }

    /// Does the journal protect writes?
    pub(crate) fn is_live(&self) -> bool {
        self.state == JournalState::Live
    }

    pub(crate) fn ring(&self) -> JournalRing {
        self.table().ring()
    }

    /// First byte of a buffer of the pool. The window follows the last one.
    pub(crate) fn buffer(&self, number: usize) -> PoolOffset {
        self.base + self.buffer_sectors.bytes() * number as u64
    }

    /// Number of sectors of the largest entry of this controller.
    pub(crate) fn entry_max(&self) -> u64 {
        journal_entry_sectors(self.buffer_sectors).get()
    }

    /// Number of sectors that must be free for an entry: the largest entry, the same length for the loss at the end of
    /// the ring, and a header.
    pub(crate) fn group_room(&self) -> u64 {
        2 * self.entry_max() + JOURNAL_ALIGN.get()
    }

    /// Sectors of the ring that are not taken by entries.
    pub(crate) fn free(&self) -> u64 {
        self.ring().sectors.get() - self.log.used
    }

    /// Do new entries go to this device? They go to a joining one from the beginning of the copy.
    pub(crate) fn is_written(&self, number: usize) -> bool {
        match self.devices[number].state {
            DeviceState::Works => true,
            DeviceState::Joins => self.join.is_active() && !self.join.is_marking(),
            DeviceState::Dropped | DeviceState::Released => false,
        }
    }

    /// The first entry whose header was not written, provided that no group is being written. A filler is written with the
    /// entry that follows it.
    pub(crate) fn first_unwritten(&self) -> u64 {
        if self.open.is_used() {
            self.open.first()
        } else {
            self.log.next()
        }
    }

    /// The first entry that may be of a new epoch.
    pub(crate) fn first_open(&self) -> u64 {
        if self.open.is_used() {
            self.open.sequence
        } else {
            self.log.next()
        }
    }

    /// One device carries the journal alone from now on. Before a write is acknowledged that the other one does not have, a
    /// higher epoch says that the other one is stale.
    pub(crate) fn go_alone(&mut self) {
        let start = self.first_open();
        let superblock = self.table_mut();
        superblock.epoch += 1;
        superblock.epoch_start = start;
        self.be_one();
        self.epoch_raised = self.request_superblock();
    }

    /// The working device is the whole journal: it may be opened without the other one, but not the other one without it.
    pub(super) fn be_one(&mut self) {
        self.table_mut().mirrors = 1;
        self.devices.iter_mut().filter(|device| device.state.works()).for_each(|device| device.mirror = 0);
    }

    /// Was a higher epoch requested that is not durable yet? Until it is, a dropped device may count at the next start.
    pub(crate) fn is_epoch_pending(&self) -> bool {
        !self.writing.is_durable(self.epoch_raised)
    }

    /// For tests: a live journal with a ring of this length and entries of at most 64 KiB. 64 entries may be of hosts, and
    /// the cache has 256 lines.
    #[cfg(test)]
    pub(in crate::journal) fn of_ring(ring_sectors: Sectors) -> Self {
        use openraid_units::{BlockSize, Bytes};
        let (base, cache, journal) = (Limits::small(), Bytes::mib(1), Bytes::kib(256));
        let pool = base.pool + cache + journal;
        let mut this = Self::new(&Limits { pool, cache, journal, journal_entries_max: 64, ..base });
        let device = Bytes::mib(64).sectors_floor();
        let superblock = JournalSuperblock::new(Uuid([7; 16]), Uuid([6; 16]), device, BlockSize::B512, (0, 1));
        let superblock = JournalSuperblock { ring_sectors, ..superblock.expect("it is large enough") };
        (this.superblock, this.state) = (Some(Box::new(superblock)), JournalState::Live);
        this
    }

    /// For tests: entries that nothing needs take all places of the table that host data may use.
    #[cfg(test)]
    pub(crate) fn fill_table(&mut self) {
        while self.log.takes_group(self.entries_behind()) {
            let position = self.head.0;
            self.log.push(log_entries::Entry { position, sectors: 8, pins: 0, lines: 0, waiting: 0 });
            self.head = RingSector(position + 8);
        }
        self.durable = self.log.next() - 1;
    }

    /// For tests: writes past the cache have reserved all of the ring that `dirty` lines leave over.
    #[cfg(test)]
    pub(crate) fn leave_free(&mut self, dirty: u64) {
        let left = self.free() - self.group_room() - self.entry_max();
        self.room.set_reserved(left - dirty * reservation::REDO_SECTORS_PER_LINE);
    }

    /// Request that the changed superblock is written. Returns the generation that records the change.
    pub(crate) fn request_superblock(&mut self) -> u64 {
        self.writing.request()
    }
}
