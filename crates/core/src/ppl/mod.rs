//! The partial parity log: it closes the write hole of RAID 5 without a device of its own.
//!
//! Before a stripe is written, its parity member takes a record: the rows and columns that are about to be written, and
//! the parity of the columns that are not. After a crash the parity of those rows is computed from that record and from
//! the content of the written columns on the members, old or new. So columns that were not being written can still be
//! recovered.
//!
//! ```text
//!  one log for each slot, with one write of it under way at a time
//!
//!  Free -> Writing -> Covering -> Stale -> Flushing -> Free
//!            |           |          |         +-- the members are flushed, and their failures are recorded
//!            |           |          +-- all writes that it covers are complete; it is needed again
//!            |           +-- it is durable: the writes that it covers are under way
//!            +-- header and partial parity are being written; records that arrive meanwhile go with the next write
//! ```
//!
//! A log is overwritten only after a successful flush of the members: until then the writes that it covers may be lost
//! in a power cut. A failure on the way is durable on the other members before any operation continues.
//!
//! Must never: let an operation write before its record is durable; skip the log if a set was not stopped cleanly.
//!
//! Format and placement are md's (`openraid_format::PplHeader`). A header of generation 0 says that the set was not yet
//! consistent when it was written, so it does not replace a resync.

pub(crate) mod area;
pub(crate) mod recovery;
mod slot_log;
pub(crate) mod write_log;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use openraid_units::Sectors;

use crate::array::assemble::{PlannedPpl, PplRedo};
use crate::planted::{Flaw, Planted};
use openraid_format::crc32c_of_both;
use slot_log::{LogState, SlotLog};

/// Maximum number of operations whose records one write of a log takes: their commands must fit next to others.
pub(crate) const LOG_OPS_MAX: usize = 64;
const _: () = assert!(LOG_OPS_MAX <= openraid_format::PPL_ENTRIES_MAX);

/// Progress of a set from assembly to its first request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StartStage {
    /// The entries of the logs are being applied, one after the other.
    Redo,
    /// The members are being flushed.
    Flush,
    /// The areas are being zeroed.
    Clear,
    /// Empty headers are being written.
    Header,
    /// The set takes requests.
    Ready,
}

/// An entry that is being applied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Redoing {
    pub(in crate::ppl) entry: PplRedo,
    /// CRC-32C of the partial parity read so far.
    pub(in crate::ppl) crc: u32,
    /// Its partial parity matches its checksum.
    pub(in crate::ppl) sound: bool,
}

impl Redoing {
    /// The entry.
    pub(crate) const fn entry(&self) -> &PplRedo {
        &self.entry
    }

    /// Does its partial parity match its checksum?
    pub(crate) const fn is_sound(&self) -> bool {
        self.sound
    }
}

/// The partial parity logs of a set.
#[derive(Debug)]
pub(crate) struct SetPpl {
    pub(in crate::ppl) logs: Vec<SlotLog>,
    /// The generation of the last header written.
    pub(in crate::ppl) generation: u64,
    /// Maximum size of the partial parity that one write of a log takes, on every member.
    pub(in crate::ppl) room: Sectors,
    /// Flushes under way.
    pub(in crate::ppl) flushes: u32,
    /// Writes to areas of members that are being prepared.
    pub(in crate::ppl) setups: u32,
    pub(in crate::ppl) stage: StartStage,
    /// Entries still to be applied, and the one in work.
    pub(in crate::ppl) redo: VecDeque<PplRedo>,
    pub(in crate::ppl) redoing: Option<Redoing>,
    /// Some entry could not be applied because its partial parity could not be read, or because its rows are not whole
    /// blocks.
    pub(in crate::ppl) unread: bool,
    /// The set was not stopped cleanly.
    pub(in crate::ppl) dirty: bool,
    pub(in crate::ppl) force: bool,
    /// The reason why it cannot be started.
    pub(in crate::ppl) error: Option<&'static str>,
    pub(in crate::ppl) planted: Planted,
}

impl SetPpl {
    pub(crate) fn new(planned: &PlannedPpl, slots: u16, room: Sectors, ops_max: u32) -> Self {
        Self {
            logs: (0..slots).map(|_| SlotLog::new(ops_max)).collect(),
            generation: planned.generation,
            room,
            flushes: 0,
            setups: 0,
            stage: StartStage::Redo,
            redo: planned.redo.iter().copied().collect(),
            redoing: None,
            unread: false,
            dirty: planned.dirty,
            force: planned.force,
            error: None,
            planted: Planted::default(),
        }
    }

    /// Are areas of members being prepared?
    pub(crate) const fn is_preparing(&self) -> bool {
        self.setups > 0
    }

    /// The reason why the set cannot be started.
    pub(crate) const fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// Was the set not stopped cleanly, and is it not serving yet?
    pub(crate) fn is_recovering(&self) -> bool {
        self.dirty && !self.is_ready()
    }

    pub(crate) fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// The entry that is being applied.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn redoing(&self) -> &Redoing {
        self.redoing.as_ref().expect("an entry is in work")
    }

    /// A part of its partial parity was read, with this checksum.
    pub(crate) fn sum_partial(&mut self, crc: u32, bytes: u64) {
        let redoing = self.redoing.as_mut().expect("an entry is in work");
        redoing.crc = crc32c_of_both(redoing.crc, crc, bytes);
    }

    /// All of its partial parity was read: does it match its checksum?
    pub(crate) fn judge_partial(&mut self) -> bool {
        let redoing = self.redoing.as_mut().expect("an entry is in work");
        redoing.sound = redoing.crc == redoing.entry.checksum;
        redoing.sound
    }

    /// It was applied, or skipped.
    pub(crate) fn end_entry(&mut self) {
        self.redoing = None;
    }

    /// Its partial parity could not be read.
    pub(crate) fn entry_unread(&mut self) {
        self.unread = true;
    }

    /// The generation of the next header: 0 while parity is not consistent everywhere.
    pub(in crate::ppl) fn next_generation(&mut self, is_consistent: bool) -> u64 {
        self.generation += u64::from(is_consistent && !self.planted.has(Flaw::LogNeverArmed));
        if is_consistent {
            self.generation
        } else {
            0
        }
    }

    /// The flush for stale logs has ended, as `failed` says. True if a log changed.
    pub(in crate::ppl) fn end_flush(&mut self, failed: bool) -> bool {
        self.logs.iter_mut().fold(false, |moved, log| log.end_flush(failed) | moved)
    }

    /// Must the members be flushed before a log can be written that is needed?
    pub(in crate::ppl) fn is_flush_due(&self) -> bool {
        let is_flushing = self.logs.iter().any(|log| log.state() == LogState::Flushing);
        !is_flushing && self.logs.iter().any(|log| log.state() == LogState::Stale && log.is_wanted())
    }

    /// The members are being flushed for all stale logs.
    pub(in crate::ppl) fn begin_flush(&mut self) {
        self.logs.iter_mut().for_each(SlotLog::begin_flush);
    }

    /// Is work of the logs under way that no operation waits for?
    pub(crate) fn is_busy(&self) -> bool {
        self.setups + self.flushes > 0 || self.logs.iter().any(SlotLog::is_writing)
    }

    /// May the set take requests?
    pub(crate) fn is_ready(&self) -> bool {
        self.stage == StartStage::Ready
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::{Slot, StripeIndex};

    use super::*;

    fn logs(slots: u16) -> SetPpl {
        SetPpl::new(&PlannedPpl { generation: 6, ..PlannedPpl::default() }, slots, Sectors(128), 8)
    }

    /// A log that is stale.
    fn make_stale(log: &mut SlotLog) {
        log.wait(1);
        log.begin_write();
        log.take_record();
        log.land(|_| {});
        log.end_op(false);
    }

    #[test]
    fn headers_have_a_generation_only_while_parity_is_consistent() {
        let mut ppl = logs(4);
        assert_eq!([false, true, false, true].map(|consistent| ppl.next_generation(consistent)), [0, 7, 0, 8]);
    }

    #[test]
    fn one_flush_serves_all_stale_logs_and_is_due_only_if_one_of_them_is_needed() {
        let mut ppl = logs(4);
        make_stale(&mut ppl.logs[1]);
        make_stale(&mut ppl.logs[3]);
        assert!(!ppl.is_flush_due(), "no write needs these logs");
        ppl.logs[0].wait(2);
        assert!(!ppl.is_flush_due(), "this one needs no flush");
        ppl.logs[3].wait(3);
        assert!(ppl.is_flush_due());
        ppl.begin_flush();
        assert!(!ppl.is_flush_due(), "one is under way");
        make_stale(&mut ppl.logs[2]);
        ppl.logs[2].wait(4);
        assert!(!ppl.is_flush_due(), "this log was not stale when the flush began");
        assert!(ppl.end_flush(false) && !ppl.end_flush(false));
        let states: Vec<_> = ppl.logs.iter().map(SlotLog::state).collect();
        assert_eq!(states, [LogState::Free, LogState::Free, LogState::Stale, LogState::Free]);
        assert!(ppl.is_flush_due());
    }

    #[test]
    fn writes_setups_and_flushes_keep_the_logs_busy() {
        let mut ppl = logs(2);
        assert!(!ppl.is_busy());
        ppl.logs[1].begin_write();
        assert!(ppl.is_busy());
        ppl.logs[1].land(|_| {});
        (ppl.setups, ppl.flushes) = (1, 0);
        assert!(ppl.is_busy() && ppl.is_preparing());
        (ppl.setups, ppl.flushes) = (0, 1);
        assert!(ppl.is_busy() && !ppl.is_preparing());
    }

    #[test]
    fn an_entry_is_sound_if_the_checksum_of_all_its_parts_is_its_own() {
        let (one, other) = ([1_u8; 512], [2_u8; 512]);
        let crc = |bytes: &[u8]| openraid_format::crc32c(bytes);
        let whole = crc(&[one, other].concat());
        for (checksum, sound) in [(whole, true), (whole ^ 1, false)] {
            let mut ppl = logs(2);
            let (slot, stripe) = (Slot(1), StripeIndex(0));
            let entry = PplRedo { slot, at: None, stripe, lo: 0, hi: 2, first: 0, columns: 1, checksum };
            ppl.redoing = Some(Redoing { entry, crc: 0, sound: false });
            ppl.sum_partial(crc(&one), 512);
            ppl.sum_partial(crc(&other), 512);
            assert_eq!((ppl.judge_partial(), ppl.redoing().is_sound()), (sound, sound));
            ppl.end_entry();
            assert!(ppl.redoing.is_none());
        }
    }
}
