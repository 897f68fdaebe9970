//! All sets of a controller, and the record of their changes: what changed, and whether the sets must be examined.
//!
//! A function that changes a set records the change here. The controller then wakes the operations that wait for such a
//! change, and lets every set do its due work. Nothing else makes the controller examine a set, so the engine is quiet
//! only if no change is recorded.

use core::ops::{Deref, DerefMut};
use openraid_units::{DriveId, Instant, SetId};

use super::numbered_table::Table;
use super::set::Set;
use crate::actions::ReplyStatus;
use crate::array::awaited_changes::{AwaitedChange, AwaitedChanges};
use crate::events::Wake;
use crate::limits::MEMBERS_MAX;
use crate::reason::Reason;
use crate::trace::TracedSets;
use openraid_units::ArrayId;

/// Information from the sets for the layers above them. The controller hands each signal on before anything else
/// happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// A copy of a set is lost, and its copies may differ: the cache's data of the set is void.
    CopyLost(SetId),
    /// A set has lost its end: what the cache has of that is void.
    EndCut(SetId),
    /// A member that its array needs does not flush: no journal session begins any more.
    FlushFailed,
    /// Nothing of the set is written any more.
    Ended(SetId),
    /// A set changed, or its relation to the journal: all pieces and operations that wait for either are called again.
    Changed,
    /// A set has another shape: requests of its array are cut for that from now on.
    ShapeChanged(SetId),
    /// Commands that wait for this drive end now.
    DriveLost(DriveId),
    /// A device of the journal is gone: the journal goes on without it.
    JournalDeviceGone(usize),
    /// Writes that found no room in the journal are called again.
    JournalRoom,
    /// Entries of the journal are durable, or will never be: the pieces and operations that wait for them continue.
    EntriesEnded,
    /// A piece is written without its entry: see [`Journal::orphans`](crate::journal::Journal::orphans).
    Orphaned(u32),
    /// Dirty data of some set is destaged whatever its age, or waits for its age again.
    PaceChanged,
    /// The journal is gone: no line of the cache needs an entry.
    JournalGone,
    /// A dirty unit of the cache was written, or could not be: the pieces that wait for it continue, with this error. The
    /// first of them is given.
    UnitEnded(u32, Option<ReplyStatus>),
    /// No piece may get lines any more: all that wait for the cache or for the journal are called.
    LinesHeld,
    /// A set is not started: the data that was loaded for it is dropped from the cache.
    NotStarted(SetId),
}

/// Maximum number of signals of one call: a unit of background work may fail a member in each slot, and a failure leaves
/// four signals at most.
const SIGNALS_MAX: usize = 4 * MEMBERS_MAX as usize;

/// A ring of signals that the controller has not handed on.
#[derive(Debug)]
struct Signals {
    ring: [Signal; SIGNALS_MAX],
    head: usize,
    len: usize,
}

impl Signals {
    fn push(&mut self, signal: Signal) {
        assert!(self.len < SIGNALS_MAX, "signals are handed on after each call");
        self.ring[(self.head + self.len) % SIGNALS_MAX] = signal;
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Signal> {
        if self.len == 0 {
            return None;
        }
        let signal = self.ring[self.head];
        self.head = (self.head + 1) % SIGNALS_MAX;
        self.len -= 1;
        Some(signal)
    }
}

/// All sets; see the module header.
#[derive(Debug)]
pub(crate) struct Sets {
    table: Table<SetId, Set>,
    /// The sets must be examined.
    look: bool,
    /// If no set changes, none of them has due work before this time.
    due: (Instant, Wake),
    /// A partial parity log may have work.
    logs_due: bool,
    signals: Signals,
}

impl Deref for Sets {
    type Target = Table<SetId, Set>;
    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl DerefMut for Sets {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.table
    }
}

impl Sets {
    pub(crate) fn new() -> Self {
        Self {
            table: Table::new(),
            look: false,
            due: (Instant::NEVER, Wake::CleanMark),
            logs_due: false,
            signals: Signals { ring: [Signal::Changed; SIGNALS_MAX], head: 0, len: 0 },
        }
    }

    /// Request an examination of the sets, because one of them has work.
    #[inline(always)]
    pub(crate) fn look(&mut self) {
        self.look = true;
    }

    /// A set changed.
    pub(crate) fn changed(&mut self, id: SetId, change: AwaitedChange) {
        self.look = true;
        if let Some(set) = self.table.find_mut(id) {
            set.changes.insert(change);
        }
    }

    /// Something changed that all sets depend on.
    pub(crate) fn all_changed(&mut self, change: AwaitedChange) {
        self.look = true;
        self.table.values_mut().for_each(|set| set.changes.insert(change));
    }

    /// Leave a signal for the layers above the sets.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
    }

    /// Is there room for this many signals?
    pub(crate) const fn has_signal_room(&self, count: usize) -> bool {
        self.signals.len + count <= SIGNALS_MAX
    }

    /// Is there a signal to hand on?
    #[inline]
    pub(crate) fn has_signal(&self) -> bool {
        self.signals.len > 0
    }

    /// The next signal to hand on.
    #[inline]
    pub(crate) fn take_signal(&mut self) -> Option<Signal> {
        self.signals.pop()
    }

    /// Must the sets be examined because one of them changed or has work?
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.look
    }

    /// A partial parity log has work.
    pub(crate) fn logs_are_due(&mut self) {
        self.logs_due = true;
    }

    /// Does a partial parity log have work?
    #[inline(always)]
    pub(crate) const fn are_logs_due(&self) -> bool {
        self.logs_due
    }

    /// As [`Sets::are_logs_due`], and forget it.
    pub(crate) fn take_logs_due(&mut self) -> bool {
        core::mem::take(&mut self.logs_due)
    }

    /// The controller examines the sets now; true if one had changed or had work.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.look)
    }

    /// The operations that wait for changes were called.
    pub(crate) fn forget_changes(&mut self) {
        self.table.values_mut().for_each(|set| set.changes = AwaitedChanges::default());
    }

    /// The time at which the sets must be examined even if none changes, and the reason.
    #[inline(always)]
    pub(crate) const fn due(&self) -> (Instant, Wake) {
        self.due
    }

    /// All sets were examined; this is the time at which the next examination is due.
    pub(crate) fn set_due(&mut self, due: (Instant, Wake)) {
        self.due = due;
    }

    /// Something will be due at `at` that the last examination of the sets did not know. If nothing is due then after
    /// all, one examination is wasted. That costs less than examining every set at each step.
    #[inline]
    pub(crate) fn look_at(&mut self, at: Instant, why: Wake) {
        if at < self.due.0 {
            self.due = (at, why);
        }
    }
}

impl TracedSets for Sets {
    #[inline(always)]
    fn count_reason(&mut self, set: SetId, reason: Reason) {
        self.get_mut(set).reasons.count(reason);
    }

    fn array_of(&self, set: SetId) -> ArrayId {
        self.get(set).array()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_handed_on_in_their_order_round_the_ring() {
        let mut sets = Sets::new();
        for number in 0..5 {
            sets.signal(Signal::Ended(SetId(number)));
            sets.signal(Signal::Changed);
            sets.signal(Signal::DriveLost(DriveId(number)));
            assert_eq!(sets.take_signal(), Some(Signal::Ended(SetId(number))));
            assert_eq!(sets.take_signal(), Some(Signal::Changed));
            assert_eq!(sets.take_signal(), Some(Signal::DriveLost(DriveId(number))));
            assert_eq!(sets.take_signal(), None);
        }
    }

    #[test]
    #[should_panic(expected = "signals are handed on after each call")]
    fn a_signal_that_is_not_handed_on_is_found() {
        let mut sets = Sets::new();
        (0..=SIGNALS_MAX).for_each(|_| sets.signal(Signal::FlushFailed));
    }

    #[test]
    fn the_earliest_look_counts_until_all_sets_were_looked_at() {
        let mut sets = Sets::new();
        sets.look_at(Instant(50), Wake::Bitmap);
        sets.look_at(Instant(70), Wake::CleanMark);
        assert_eq!(sets.due(), (Instant(50), Wake::Bitmap));
        sets.set_due((Instant::NEVER, Wake::CleanMark));
        sets.look_at(Instant(70), Wake::CleanMark);
        assert_eq!(sets.due(), (Instant(70), Wake::CleanMark));
        assert!(!sets.has_news());
        sets.changed(SetId(3), AwaitedChange::Marks);
        assert!(sets.take_news() && !sets.take_news(), "a change of a set that is gone makes the others looked at");
    }
}
