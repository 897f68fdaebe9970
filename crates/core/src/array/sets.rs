//! All sets of a controller, and the news of them: what changed, and whether the sets are to be looked at.
//!
//! A function that changes a set says so here. The controller then wakes the operations that wait for such a change,
//! and lets every set do its due work. Nothing else makes it look at a set, so this is also what keeps the engine from
//! being quiet.

use core::ops::{Deref, DerefMut};
use openraid_units::{DriveId, Instant, SetId};

use super::set::Set;
use super::table::Table;
use crate::controller::Wake;

/// What changed of a set in a way that operations may wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Change {
    /// A generation of superblocks or a bad-block log is durable, or the active mark moved. The look at the set that comes
    /// next moves mark and session on, so that operations that wait for either find it moved.
    Marks = 1,
    /// Bits of the bitmap are durable.
    Bits = 2,
    /// The journal session, or what decides whether the set should have one.
    Session = 4,
    /// The array failed, or the array cannot do without a member that does not flush or does not take superblocks.
    Life = 8,
}

/// Changes since the operations that wait for a set were called last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Changes(u8);

impl Changes {
    const fn insert(&mut self, change: Change) {
        self.0 |= change as u8;
    }

    /// Is this change among them?
    pub(crate) const fn has(self, change: Change) -> bool {
        self.0 & change as u8 != 0
    }
}

/// News of the sets for what stands above them. The controller hands each on before anything else happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Signal {
    /// A copy of a set is lost whose copies may differ: what the cache has of the set is void.
    CopyLost(SetId),
    /// A member that its array needs does not flush: no journal session begins any more.
    FlushFailed,
    /// Nothing of the set is written any more.
    Ended(SetId),
    /// An array lost a member that it needs, or rows: what waits for the set or for the journal is asked again.
    Lost,
    /// Commands that the drive was never given end now.
    DriveLost(DriveId),
}

/// Signals that one call leaves at most: a unit of background work may fail a member in each slot.
const SIGNALS_MAX: usize = 4 * 64;

/// Signals that the controller has not handed on, a ring.
#[derive(Debug)]
struct Signals {
    ring: [Option<Signal>; SIGNALS_MAX],
    head: usize,
    len: usize,
}

impl Signals {
    fn push(&mut self, signal: Signal) {
        assert!(self.len < SIGNALS_MAX, "signals are handed on after each call");
        self.ring[(self.head + self.len) % SIGNALS_MAX] = Some(signal);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<Signal> {
        let signal = self.ring[self.head].take()?;
        self.head = (self.head + 1) % SIGNALS_MAX;
        self.len -= 1;
        Some(signal)
    }
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct Sets {
    table: Table<SetId, Set>,
    /// The sets are to be looked at.
    look: bool,
    /// Nothing of the sets' own is due before this, unless one changes.
    due: (Instant, Wake),
    /// A partial parity log may have to be moved on.
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
            signals: Signals { ring: [None; SIGNALS_MAX], head: 0, len: 0 },
        }
    }

    /// Have the sets looked at: one of them has something to do.
    #[inline(always)]
    pub(crate) fn look(&mut self) {
        self.look = true;
    }

    /// A set changed.
    pub(crate) fn changed(&mut self, id: SetId, change: Change) {
        self.look = true;
        if let Some(set) = self.table.find_mut(id) {
            set.changes.insert(change);
        }
    }

    /// Something changed that all sets depend on.
    pub(crate) fn all_changed(&mut self, change: Change) {
        self.look = true;
        self.table.values_mut().for_each(|set| set.changes.insert(change));
    }

    /// Leave news for what stands above the sets.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
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

    /// Are the sets to be looked at because one of them changed or has something to do?
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.look
    }

    /// A partial parity log has something to do.
    pub(crate) fn logs_are_due(&mut self) {
        self.logs_due = true;
    }

    /// Has one?
    #[inline(always)]
    pub(crate) const fn are_logs_due(&self) -> bool {
        self.logs_due
    }

    /// Has one had since this was called last?
    pub(crate) fn take_logs_due(&mut self) -> bool {
        core::mem::take(&mut self.logs_due)
    }

    /// The controller looks at the sets now; true if there was news.
    pub(crate) fn take_news(&mut self) -> bool {
        core::mem::take(&mut self.look)
    }

    /// The operations that wait for changes were called.
    pub(crate) fn forget_changes(&mut self) {
        self.table.values_mut().for_each(|set| set.changes = Changes::default());
    }

    /// When the sets are to be looked at even if none changes, and why.
    #[inline(always)]
    pub(crate) const fn due(&self) -> (Instant, Wake) {
        self.due
    }

    /// All sets were looked at: the next look is due then.
    pub(crate) fn set_due(&mut self, due: (Instant, Wake)) {
        self.due = due;
    }

    /// Something will be due at `at` that the last look at the sets did not know of. It may turn out not to be: then the
    /// look was for nothing, which costs less than to ask every set at each step.
    #[inline]
    pub(crate) fn look_at(&mut self, at: Instant, why: Wake) {
        if at < self.due.0 {
            self.due = (at, why);
        }
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
            sets.signal(Signal::Lost);
            sets.signal(Signal::DriveLost(DriveId(number)));
            assert_eq!(sets.take_signal(), Some(Signal::Ended(SetId(number))));
            assert_eq!(sets.take_signal(), Some(Signal::Lost));
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
        sets.changed(SetId(3), Change::Marks);
        assert!(sets.take_news() && !sets.take_news(), "a change of a set that is gone makes the others looked at");
    }
}
