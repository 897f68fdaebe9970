//! Entries that only arrays need which are not there leave the ring, so that the tail passes them.
//!
//! ```text
//!  ring   | entry | entry | ...          the tail stands at an entry that waits for an absent array
//!             |
//!             +-- copied as it is, header and payload --> the area before the ring, durable
//!                                                              |
//!                      superblock: tail behind it, area longer <+
//! ```
//!
//! A copy is the entry byte by byte: it says itself which one it is, its checksums hold, and replay takes it in its
//! order, before what is in the ring. A crash between copy and superblock leaves the entry where it was. Entries are
//! copied whole, so that a copy also has what it said of arrays that are there: for those the superblock says, with every
//! tail, that nothing below the tail counts. An array that comes back holds the tail until what was kept for it is on its
//! members. Entries are copied once, the oldest first; the area is emptied as a whole, when nobody needs anything in it.
//!
//! It never moves what a living array needs, and never takes more than its share: then the log is full, and the others go
//! on without it, as before.

use openraid_format::{RingSector, JOURNAL_ALIGN};
use openraid_units::{DriveLba, Sectors};

use super::commit::JournalWrite;
use super::tail::RoundState;
use super::window::WindowUser;
use crate::actions::{Actions, Data};
use crate::controller::{CommandError, Controller};
use crate::io::command::Command;

/// Entries that are copied before the tail moves.
const BATCH_MAX: u32 = 64;
/// Of the lines of the cache one part in so many may be in entries that are kept: all of them have to be loaded again.
const LINES_SHARE: u32 = 2;
/// Commands that a copy may need at once.
const COMMANDS: u32 = 16;

/// Copying entries out of the ring.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spill {
    /// What the area holds, of that what no superblock says yet included.
    pub used: Sectors,
    /// The entry that is being copied; 0 is none.
    sequence: u64,
    /// Of it so many sectors have a copy, and so many are being copied.
    done: Sectors,
    len: Sectors,
    /// Writes of that piece.
    pub pending: u32,
    /// Entries since the tail moved.
    batch: u32,
    /// The ring could not be read: nothing is copied any more.
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
    /// Is the tail neither moving nor about to?
    pub(crate) fn is_tail_at_rest(&self) -> bool {
        let journal = &self.journal;
        journal.round.state == RoundState::Idle && !journal.spill.is_active() && !journal.join.is_copying()
    }

    /// Copy the first entry that is needed by nobody who is there, if room is short; true where that has begun.
    pub(crate) fn pump_spill(&mut self, actions: &mut Actions) -> bool {
        let journal = &self.journal;
        let may =
            journal.is_live() && self.is_tail_at_rest() && !journal.replay.is_active() && !journal.log.is_kept_pinned();
        if !may || journal.spill.broken || journal.spill.batch >= BATCH_MAX {
            return false;
        }
        if !journal.short || self.channels.commands.room() < COMMANDS {
            return false;
        }
        let end = journal.durable + 1;
        let Some(sequence) = self.journal.log.front_waiting(end) else { return false };
        let entry = *self.journal.log.get(sequence);
        let (_, room) = self.journal.superblock.as_ref().expect("it is live").keep_area();
        let fits = self.journal.spill.used + Sectors(entry.sectors) <= room;
        if !fits || !self.journal.log.may_keep(&entry, self.cache.lines.len() / LINES_SHARE) {
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

    /// No entry is being copied any more: it is where it should be, or stays where it is.
    fn end_spill(&mut self) {
        self.journal.spill.sequence = 0;
        self.journal.window.give_back(WindowUser::Spill);
        self.sets.look();
    }

    /// A piece was read, or not: then the other device is asked.
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
                self.drop_journal_device(command.member as usize, actions);
            }
            Err(CommandError::Drive(_)) => self.read_spill_piece(command.member as usize + 1, actions),
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
        // The next piece, or the next entry, would be read into what a silent drive still writes from.
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
