//! The dirty units of one set, counted by epochs. The cache counts them; the active mark and the journal session of the set
//! depend on the number.

/// Dirty units of a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct DirtyCount {
    epoch: u32,
    /// Number of dirty units of earlier epochs, and of this one.
    old: u32,
    new: u32,
    /// Number of units that are kept because the set has failed.
    held: u32,
    /// Has the write of a unit failed since no flush waits, or since the waiting flushes began to wait?
    failed: bool,
    /// Did the members refuse the last write of a dirty unit? Then a session may never end, or begin.
    refused: bool,
    /// Number of flushes that wait for the units of earlier epochs, and the number of the last request when the wait
    /// began. A flush with a number up to that one may join the wait.
    waiting: u32,
    asked: u64,
}

impl DirtyCount {
    /// Number of units that may still be written.
    pub(crate) fn all(&self) -> u32 {
        self.old + self.new
    }

    /// The epoch of a unit that becomes dirty now.
    #[inline]
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A unit becomes dirty, or dirty again; returns its epoch.
    pub(crate) fn begin_unit(&mut self) -> u32 {
        self.new += 1;
        self.epoch
    }

    /// A unit of this epoch is on the members, or belongs to another epoch from now on.
    pub(crate) fn end_unit(&mut self, epoch: u32) {
        if epoch == self.epoch {
            self.new -= 1;
        } else {
            self.old -= 1;
        }
    }

    /// A unit of this epoch is kept because its set has failed.
    pub(crate) fn hold_unit(&mut self, epoch: u32) {
        self.end_unit(epoch);
        (self.failed, self.held) = (true, self.held + 1);
    }

    /// The write of a unit has ended. `is_any_refused`: the members refused the last write of some unit.
    pub(crate) fn note_written(&mut self, has_failed: bool, is_any_refused: bool) {
        self.failed |= has_failed;
        self.refused = is_any_refused;
    }

    /// Does a flush wait?
    #[inline]
    pub(crate) const fn is_awaited(&self) -> bool {
        self.waiting > 0
    }

    /// The flush with this number requests its turn. `asked` is the number of the last request so far.
    pub(crate) fn begin_flush(&mut self, number: u64, asked: u64) -> FlushTurn {
        let turn = match self.waiting {
            0 if self.all() == 0 && !self.failed => return FlushTurn::NothingDirty,
            0 => FlushTurn::EndsEpoch,
            _ if number > self.asked => return FlushTurn::Later,
            _ => FlushTurn::Joins,
        };
        if turn == FlushTurn::EndsEpoch {
            (self.old, self.new) = (self.old + self.new, 0);
            self.epoch = self.epoch.wrapping_add(1);
            self.asked = asked;
        }
        self.waiting += 1;
        turn
    }

    /// A waiting flush ends if no unit of an earlier epoch is dirty. Then returns whether it has failed.
    pub(crate) fn end_flush(&mut self) -> Option<bool> {
        if self.old > 0 {
            return None;
        }
        let has_failed = self.failed || self.held > 0;
        self.waiting -= 1;
        // Every waiting flush gets the result.
        self.failed &= self.waiting > 0;
        Some(has_failed)
    }

    /// Did the members refuse the last write of a dirty unit? Then a session may never end, or begin.
    pub(crate) const fn is_refused(&self) -> bool {
        self.refused
    }

    /// Has the write of a unit failed since no flush waits, or since the waiting flushes began to wait?
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// A unit of this epoch turned out to have no dirty line.
    pub(crate) fn forget_unit(&mut self) {
        self.new -= 1;
    }

    /// Nothing of the set is dirty any more, because its lines were dropped.
    pub(crate) fn forget_all(&mut self) {
        (self.old, self.new) = (0, 0);
    }
}

/// The situation that a flush finds when it requests its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushTurn {
    /// It has nothing to wait for.
    NothingDirty,
    /// It ends the epoch, and waits for all units that are dirty now.
    EndsEpoch,
    /// It was requested before the flush that ended the epoch began to wait, and waits with it.
    Joins,
    /// The flushes that wait began before this one: it queues again after them.
    Later,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_the_units_that_were_dirty_when_it_began_and_for_no_later_one() {
        let mut dirty = DirtyCount::default();
        assert_eq!(dirty.begin_flush(1, 1), FlushTurn::NothingDirty);
        let first = dirty.begin_unit();
        assert_eq!((dirty.begin_flush(2, 2), dirty.is_awaited()), (FlushTurn::EndsEpoch, true));
        let second = dirty.begin_unit();
        assert!(first != second && second == dirty.epoch());
        assert_eq!(dirty.end_flush(), None);
        dirty.end_unit(first);
        assert_eq!((dirty.end_flush(), dirty.is_awaited(), dirty.all()), (Some(false), false, 1));
        dirty.end_unit(second);
        assert_eq!((dirty.all(), dirty.begin_flush(3, 3)), (0, FlushTurn::NothingDirty));
    }

    #[test]
    fn flushes_that_were_requested_before_the_wait_began_share_it_and_later_ones_come_after() {
        let mut dirty = DirtyCount::default();
        let unit = dirty.begin_unit();
        assert_eq!(dirty.begin_flush(4, 6), FlushTurn::EndsEpoch);
        assert_eq!(
            [5, 6, 7].map(|number| dirty.begin_flush(number, 7)),
            [FlushTurn::Joins, FlushTurn::Joins, FlushTurn::Later]
        );
        let late = dirty.begin_unit();
        dirty.end_unit(unit);
        assert_eq!([(); 3].map(|()| dirty.end_flush()), [Some(false); 3]);
        // The seventh request covers the unit that became dirty meanwhile.
        assert_eq!((dirty.begin_flush(7, 7), dirty.end_flush()), (FlushTurn::EndsEpoch, None));
        dirty.end_unit(late);
        assert_eq!(dirty.end_flush(), Some(false));
    }

    #[test]
    fn each_flush_that_waits_hears_of_an_error_and_the_next_one_does_not() {
        let mut dirty = DirtyCount::default();
        let unit = dirty.begin_unit();
        assert_eq!([1, 2].map(|number| dirty.begin_flush(number, 2)), [FlushTurn::EndsEpoch, FlushTurn::Joins]);
        dirty.note_written(true, true);
        assert!(dirty.has_failed() && dirty.is_refused());
        dirty.end_unit(unit);
        let again = dirty.begin_unit();
        assert_eq!([dirty.end_flush(), dirty.end_flush()], [Some(true), Some(true)]);
        dirty.note_written(false, false);
        dirty.end_unit(again);
        assert_eq!((dirty.begin_flush(3, 3), dirty.is_refused()), (FlushTurn::NothingDirty, false));
    }

    #[test]
    fn an_error_before_a_flush_is_kept_for_it_and_a_held_unit_fails_every_flush() {
        let mut dirty = DirtyCount::default();
        let unit = dirty.begin_unit();
        dirty.note_written(true, false);
        dirty.end_unit(unit);
        assert_eq!((dirty.begin_flush(1, 1), dirty.end_flush()), (FlushTurn::EndsEpoch, Some(true)));
        let held = dirty.begin_unit();
        assert_eq!(dirty.begin_flush(2, 2), FlushTurn::EndsEpoch);
        dirty.hold_unit(held);
        assert_eq!((dirty.end_flush(), dirty.all()), (Some(true), 0));
        dirty.begin_unit();
        assert_eq!(dirty.begin_flush(3, 3), FlushTurn::EndsEpoch);
        dirty.forget_all();
        assert_eq!(dirty.end_flush(), Some(true), "the data of the held unit is not on the members");
    }
}
