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

use super::Journal;
use crate::actions::Data;
use crate::array::sets::Sets;
use crate::call::Call;
use crate::events::CommandError;
use crate::io::state::command::ChannelCommand;
use crate::io::state::command::JournalWrite;
use crate::io::state::command::WindowUser;
use crate::journal::devices::has_room;

/// The most entries that are copied before the tail moves.
const BATCH_MAX: u32 = 64;
/// Share of the cache's lines that kept entries may have, because all of them must be loaded again: one part in this
/// number.
const LINES_SHARE: u32 = 2;

/// The area before the ring, and the entry that is being copied there.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Spill {
    /// Sectors of the area in use. The superblock may not count all of them yet.
    used: Sectors,
    /// The entry that is being copied.
    copy: Option<Copy>,
    /// Entries that were copied since the tail moved.
    batch: u32,
    /// The ring could not be read: no more entries are copied.
    broken: bool,
}

/// An entry that is being copied, piece by piece.
#[derive(Clone, Copy, Debug)]
struct Copy {
    sequence: u64,
    /// Sectors that were copied, and that are being copied.
    done: Sectors,
    len: Sectors,
    /// Writes under way for that piece.
    pending: u32,
}

impl Spill {
    /// The journal was opened with this many sectors of the area in use.
    pub(super) fn attach(&mut self, used: Sectors) {
        self.used = used;
    }

    /// Sectors of the area in use.
    pub(super) const fn used(&self) -> Sectors {
        self.used
    }

    /// Is an entry being copied?
    pub(crate) const fn is_active(&self) -> bool {
        self.copy.is_some()
    }

    /// The tail has moved. `empties` says that no entry in the area is needed any more.
    pub(super) fn begin_batch(&mut self, empties: bool) {
        self.batch = 0;
        if empties {
            self.used = Sectors::ZERO;
        }
    }

    /// May one more entry be copied, if it fits?
    const fn may_copy(&self) -> bool {
        !self.broken && self.batch < BATCH_MAX
    }

    /// The entry that is being copied.
    fn copy(&mut self) -> &mut Copy {
        self.copy.as_mut().expect("an entry is being copied")
    }

    /// A write of the present piece is issued.
    pub(super) fn issued(&mut self) {
        self.copy().pending += 1;
    }

    /// A write of the present piece has ended; true if it was the last one.
    fn ended(&mut self) -> bool {
        let copy = self.copy();
        copy.pending -= 1;
        copy.pending == 0
    }
}

impl Journal {
    /// Is the tail neither moving nor about to move?
    pub(super) fn is_tail_at_rest(&self) -> bool {
        self.round.is_idle() && !self.spill.is_active() && !self.join.is_copying()
    }

    /// The entry to copy next, if room is short: the first one that only absent arrays need. All kept entries together may
    /// have `lines_max` lines.
    fn next_to_spill(&mut self, lines_max: u32) -> Option<u64> {
        let may = self.is_live() && self.is_tail_at_rest() && !self.replay.is_active() && !self.log.is_kept_pinned();
        if !may || !self.spill.may_copy() || !self.is_short() {
            return None;
        }
        let sequence = self.log.front_waiting(self.durable + 1)?;
        let entry = *self.log.get(sequence);
        let (_, room) = self.table().keep_area();
        let fits = self.spill.used + Sectors(entry.sectors) <= room && self.log.may_keep(&entry, lines_max);
        fits.then_some(sequence)
    }

    /// The next piece of the entry that is being copied, on each device.
    fn next_spill_piece(&mut self) -> (DriveLba, Sectors) {
        let (ring, most) = (self.ring(), self.buffer_sectors.round_down(JOURNAL_ALIGN));
        let copy = self.spill.copy();
        let entry = self.log.get(copy.sequence);
        copy.len = (Sectors(entry.sectors) - copy.done).min(most);
        (ring.drive_lba(RingSector(entry.position)) + copy.done, copy.len)
    }

    /// The place on each device to which the present piece goes, and its length.
    fn spill_target(&mut self) -> (DriveLba, Sectors) {
        let (used, copy) = (self.spill.used, *self.spill.copy());
        (self.table().keep_area().0 + used + copy.done, copy.len)
    }

    /// A piece is durable. True if it was the last one of its entry: the place of the entry in the ring is not needed any
    /// more.
    fn spilled(&mut self) -> bool {
        let (area, _) = self.table().keep_area();
        let copy = self.spill.copy();
        copy.done += copy.len;
        let (sequence, sectors) = (copy.sequence, Sectors(self.log.get(copy.sequence).sectors));
        if copy.done < sectors {
            return false;
        }
        self.log.keep(sequence);
        self.replay.entry_moved(sequence, area + self.spill.used);
        self.spill.used += sectors;
        self.spill.batch += 1;
        true
    }

    /// Copy the log to a device that joins, and entries out of the ring; true if that advanced. The cache has `lines`.
    pub(crate) fn pump_copies(&mut self, sets: &mut Sets, lines: u32, call: &mut Call) -> bool {
        self.pump_join(sets, call) || self.pump_spill(lines, call)
    }

    /// Copy the first entry that only absent arrays need, if room is short; true if a copy began. The cache has `lines`.
    fn pump_spill(&mut self, lines: u32, call: &mut Call) -> bool {
        if !has_room(call) {
            return false;
        }
        let Some(sequence) = self.next_to_spill(lines / LINES_SHARE) else { return false };
        if !self.window.take(WindowUser::Spill) {
            return false;
        }
        self.begin_spill(sequence);
        self.read_spill_piece(0, call);
        true
    }

    fn begin_spill(&mut self, sequence: u64) {
        self.spill.copy = Some(Copy { sequence, done: Sectors::ZERO, len: Sectors::ZERO, pending: 0 });
    }

    fn read_spill_piece(&mut self, first: usize, call: &mut Call) {
        let Some(number) = self.working_from(first) else {
            // The ring cannot be read.
            self.spill.broken = true;
            return self.end_spill();
        };
        let place = self.next_spill_piece();
        self.read_into_window(WindowUser::Spill, number, place, call);
    }

    fn end_spill(&mut self) {
        self.spill.copy = None;
        self.window.give_back(WindowUser::Spill);
    }

    /// A piece was read, or the other device is asked. True if the device is to be dropped.
    pub(super) fn spill_read_ended(
        &mut self,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
        call: &mut Call,
    ) -> bool {
        match result {
            _ if !self.is_live() => self.end_spill(),
            Ok(()) => {
                let (place, from) = (self.spill_target(), self.window_of(WindowUser::Spill));
                self.write_to_devices(JournalWrite::Spill, place, Data::Frames(from), call);
            }
            Err(CommandError::Timeout) => {
                self.end_spill();
                return true;
            }
            Err(CommandError::Drive(_)) => self.read_spill_piece(command.journal_device() + 1, call),
        }
        false
    }

    /// A piece is durable on a device, or the device was dropped. True if no other device is awaited.
    pub(super) fn spill_written(&mut self, call: &mut Call) -> bool {
        if !self.spill.ended() {
            return false;
        }
        // The next read would go into memory that a hung drive still writes from.
        if self.window.is_silent() || !self.is_live() || self.spilled() {
            self.end_spill();
        } else {
            self.read_spill_piece(0, call);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::log_entries::Entry;

    /// A journal whose entries have these lengths, and wait for an absent array. Room is short.
    fn journal(entries: &[u64]) -> Journal {
        let mut journal = Journal::of_ring(Sectors(8192));
        let mut position = 0;
        for sectors in entries {
            journal.log.push(Entry { position, sectors: *sectors, pins: 0, lines: 1, waiting: 1 });
            position += sectors;
        }
        journal.durable = journal.log.next() - 1;
        journal.note_short();
        journal
    }

    #[test]
    fn an_entry_is_copied_in_pieces_to_the_end_of_the_area_and_its_place_in_the_ring_is_free_then() {
        // A buffer has 128 sectors: the second entry needs two pieces.
        let mut journal = journal(&[16, 136]);
        journal.spill.attach(Sectors(24));
        let (ring, area) = (journal.ring().drive_lba(RingSector(0)), DriveLba(8));
        for (sequence, pieces, at) in [(1, &[(0, 16)][..], 24), (2, &[(16, 128), (16 + 128, 8)], 40)] {
            assert_eq!(journal.next_to_spill(100), Some(sequence));
            journal.begin_spill(sequence);
            assert_eq!(journal.next_to_spill(100), None, "one at a time");
            let mut done = 0;
            for (number, (from, len)) in pieces.iter().enumerate() {
                assert_eq!(journal.next_spill_piece(), (ring + Sectors(*from), Sectors(*len)));
                assert_eq!(journal.spill_target(), (area + Sectors(at + done), Sectors(*len)));
                // On two devices.
                (0..2).for_each(|_| journal.spill.issued());
                assert!(!journal.spill.ended() && journal.spill.ended());
                assert_eq!(journal.spilled(), number + 1 == pieces.len());
                done += len;
            }
            journal.end_spill();
        }
        assert_eq!(journal.spill.used(), Sectors(24 + 16 + 136));
        assert!(journal.log.is_kept_for(0) && journal.log.may_shrink());
        assert_eq!(journal.next_to_spill(100), None, "nothing is left");
    }

    #[test]
    fn no_entry_is_copied_that_lacks_room_or_lines_or_that_a_running_array_needs() {
        let area = 2048 - 8;
        for (used, lines, pinned, found) in
            [(area - 16, 1, false, Some(1)), (area - 15, 1, false, None), (0, 0, false, None), (0, 1, true, None)]
        {
            let mut journal = journal(&[16]);
            journal.spill.attach(Sectors(used));
            // A device of 64 MiB has 1 MiB before the ring, and a reserved part.
            assert!(journal.superblock.as_ref().unwrap().keep_area().1 >= Sectors(area));
            let room = journal.superblock.as_ref().unwrap().keep_area().1;
            journal.spill.attach(Sectors(used + room.get() - area));
            if pinned {
                journal.log.pin(1);
            }
            assert_eq!(journal.next_to_spill(lines), found, "{used} {lines} {pinned}");
        }
        let mut journal = journal(&[16]);
        journal.end_short();
        assert_eq!(journal.next_to_spill(100), None, "there is room");
    }

    #[test]
    fn the_tail_moves_after_64_entries_and_a_ring_that_cannot_be_read_is_left_as_it_is() {
        let mut journal = journal(&[16; 65]);
        for sequence in 1..=64 {
            assert_eq!(journal.next_to_spill(100), Some(sequence));
            journal.begin_spill(sequence);
            journal.next_spill_piece();
            assert!(journal.spilled());
            journal.end_spill();
        }
        assert_eq!((journal.next_to_spill(100), journal.spill.used()), (None, Sectors(64 * 16)));
        journal.spill.begin_batch(false);
        assert_eq!((journal.next_to_spill(100), journal.spill.used()), (Some(65), Sectors(64 * 16)));
        journal.spill.broken = true;
        assert_eq!(journal.next_to_spill(100), None);
        journal.spill.begin_batch(true);
        assert_eq!(journal.spill.used(), Sectors::ZERO);
    }
}
