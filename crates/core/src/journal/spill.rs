//! Entries that only absent arrays need are copied out of the ring, so that the tail can pass them.
//!
//! ```text
//!  ring   | entry | entry | ...          the tail stands at an entry that waits for an absent array
//!             |
//!             +-- copied as it is, header and payload --> the area before the ring, durable
//!                                                              |
//!                      superblock: tail behind it, area longer <+
//! ```
//!
//! A copy is the entry byte by byte: it has its own number and checksums, and replay takes it in order, before the entries
//! in the ring. After a crash between copy and superblock the entry is still in the ring. Entries are copied whole, so a
//! copy also has records of arrays that are present: for those the superblock says, with every tail, that nothing below the
//! tail counts. An array that comes back holds the tail until its kept entries are on its members. Entries are copied once,
//! the oldest first. The area is emptied as a whole, when no entry in it is needed.
//!
//! An entry that a running array needs is never moved, and the area never takes more than its share: beyond that the log is
//! full, and the other arrays continue without it.

use openraid_format::{RingSector, JOURNAL_ALIGN};
use openraid_units::{DriveLba, Sectors};

use super::commit::JournalWrite;
use super::tail::RoundState;
use super::window::WindowUser;
use crate::actions::{Actions, Data};
use crate::controller::{CommandError, Controller};
use crate::io::command::Command;

/// The most entries that are copied before the tail moves.
const BATCH_MAX: u32 = 64;
/// Share of the cache's lines that kept entries may have, because all of them must be loaded again: one part in this
/// number.
const LINES_SHARE: u32 = 2;
/// Commands that a copy may need at once.
const COMMANDS: u32 = 16;

/// The state of copying.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spill {
    /// Sectors of the area in use. The superblock may not count all of them yet.
    pub(super) used: Sectors,
    /// The entry that is being copied; 0 if there is none.
    sequence: u64,
    /// Sectors of it that were copied, and that are being copied.
    done: Sectors,
    len: Sectors,
    /// Writes under way for that piece.
    pub(super) pending: u32,
    /// Entries that were copied since the tail moved.
    batch: u32,
    /// The ring could not be read: no more entries are copied.
    broken: bool,
}

impl Spill {
    /// Is an entry being copied?
    pub(crate) fn is_active(&self) -> bool {
        self.sequence != 0
    }

    /// The tail has moved.
    pub(crate) fn begin_batch(&mut self) {
        self.batch = 0;
    }
}

impl Controller {
    /// Is the tail neither moving nor about to move?
    pub(crate) fn is_tail_at_rest(&self) -> bool {
        let journal = &self.journal;
        journal.round.state == RoundState::Idle && !journal.spill.is_active() && !journal.join.is_copying()
    }

    /// Copy the first entry that only absent arrays need, if room is short; true if a copy began.
    pub(crate) fn pump_spill(&mut self, actions: &mut Actions) -> bool {
        let journal = &self.journal;
        let may =
            journal.is_live() && self.is_tail_at_rest() && !journal.replay.is_active() && !journal.log.is_kept_pinned();
        if !may || journal.spill.broken || journal.spill.batch >= BATCH_MAX {
            return false;
        }
        if !journal.short || self.channels.room() < COMMANDS {
            return false;
        }
        let end = journal.durable + 1;
        let Some(sequence) = self.journal.log.front_waiting(end) else { return false };
        let entry = *self.journal.log.get(sequence);
        let (_, room) = self.journal.superblock.as_ref().expect("it is live").keep_area();
        let fits = self.journal.spill.used + Sectors(entry.sectors) <= room;
        if !fits || !self.journal.log.may_keep(&entry, self.cache.line_count() / LINES_SHARE) {
            return false;
        }
        if !self.journal.window.take(WindowUser::Spill) {
            return false;
        }
        let spill = &mut self.journal.spill;
        (spill.sequence, spill.done) = (sequence, Sectors::ZERO);
        self.read_spill_piece(0, actions);
        true
    }

    fn read_spill_piece(&mut self, first: usize, actions: &mut Actions) {
        let journal = &mut self.journal;
        let Some(number) = (first..journal.devices.len()).find(|number| journal.devices[*number].state.works()) else {
            journal.spill.broken = true;
            return self.end_spill();
        };
        let entry = *journal.log.get(journal.spill.sequence);
        let left = Sectors(entry.sectors) - journal.spill.done;
        journal.spill.len = left.min(journal.buffer_sectors.round_down(JOURNAL_ALIGN));
        let lba = journal.ring().drive_lba(RingSector(entry.position)) + journal.spill.done;
        let len = journal.spill.len;
        self.read_into_window(WindowUser::Spill, number, (lba, len), actions);
    }

    /// The copy of an entry has ended: it is complete, or the entry stays in the ring.
    fn end_spill(&mut self) {
        self.journal.spill.sequence = 0;
        self.journal.window.give_back(WindowUser::Spill);
        self.sets.look();
    }

    /// A piece was read, or the other device is asked.
    pub(crate) fn on_spill_read(&mut self, command: &Command, result: Result<(), CommandError>, actions: &mut Actions) {
        self.sets.look();
        if !self.journal.is_live() {
            return self.end_spill();
        }
        match result {
            Ok(()) => {
                let at = self.spill_target() + self.journal.spill.done;
                let (len, from) = (self.journal.spill.len, self.journal.window_of(WindowUser::Spill));
                self.write_to_devices(JournalWrite::Spill, at, len, Data::Frames(from), actions);
            }
            Err(CommandError::Timeout) => {
                self.end_spill();
                self.drop_journal_device(command.journal_device(), actions);
            }
            Err(CommandError::Drive(_)) => self.read_spill_piece(command.journal_device() + 1, actions),
        }
    }

    /// Where the entry that is being copied goes.
    fn spill_target(&self) -> DriveLba {
        self.journal.superblock.as_ref().expect("it was attached").keep_area().0 + self.journal.spill.used
    }

    /// A piece is durable on a device, or the device was dropped.
    pub(crate) fn on_spilled_piece(&mut self, actions: &mut Actions) {
        self.journal.spill.pending -= 1;
        if self.journal.spill.pending > 0 {
            return;
        }
        self.sets.look();
        let at = self.spill_target();
        let journal = &mut self.journal;
        // The next read would go into memory that a hung drive still writes from.
        if journal.window.is_silent() || !journal.is_live() {
            return self.end_spill();
        }
        let spill = &mut journal.spill;
        spill.done += spill.len;
        let sectors = Sectors(journal.log.get(spill.sequence).sectors);
        if spill.done < sectors {
            return self.read_spill_piece(0, actions);
        }
        let sequence = spill.sequence;
        spill.used += sectors;
        spill.batch += 1;
        journal.log.keep(sequence);
        journal.replay.entry_moved(sequence, at);
        self.end_spill();
    }
}
