//! The mark in the superblocks: may members differ because a write was under way?
//!
//! ```text
//!            a write                  recorded
//!   Clean -----------> Marking(g) --------------> Active <----------+
//!     ^                                             | quiet         | a write
//!     |            recorded                         v               |
//!     +-------------------------- Unmarking(g) <-- Flushing --------+
//!                                          flushed
//! ```

use core::fmt;
use openraid_units::{Instant, Nanos};

/// The progress of the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Intent {
    /// The members say: clean.
    Clean,
    /// The active mark is being written; it is durable with this generation.
    Marking(u64),
    /// The members say: active.
    Active,
    /// The members are being flushed.
    Flushing,
    /// The clean mark is being written; it is durable with this generation.
    Unmarking(u64),
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct ActiveMark {
    intent: Intent,
    /// Number of flushes under way before the clean mark.
    flushes: u32,
    /// Number of operations in work that count as writes.
    writers: u32,
    last_write: Instant,
}

impl ActiveMark {
    pub(crate) const fn new() -> Self {
        Self { intent: Intent::Clean, flushes: 0, writers: 0, last_write: Instant::ZERO }
    }

    /// Count an operation as a write from now on.
    #[inline]
    pub(crate) fn begin_write(&mut self, now: Instant) {
        self.writers += 1;
        self.last_write = now;
    }

    /// An operation that counted as a write has ended.
    #[inline]
    pub(crate) fn end_write(&mut self, now: Instant) {
        self.writers -= 1;
        self.last_write = now;
    }

    /// A write is about to begin: the set counts as active again.
    pub(crate) fn note_write(&mut self, now: Instant) {
        self.last_write = now;
    }

    /// Do the members say active, and was there a write after this time, or is one under way?
    pub(crate) fn is_written_since(&self, at: Instant) -> bool {
        self.is_active() && (self.writers > 0 || self.last_write > at)
    }

    pub(crate) const fn has_writers(&self) -> bool {
        self.writers > 0
    }

    /// Do the members say clean, durably?
    pub(crate) const fn is_clean(&self) -> bool {
        matches!(self.intent, Intent::Clean)
    }

    /// Do the members say active, durably?
    pub(crate) const fn is_active(&self) -> bool {
        matches!(self.intent, Intent::Active | Intent::Flushing)
    }

    /// Is the active mark being written?
    pub(crate) const fn is_marking(&self) -> bool {
        matches!(self.intent, Intent::Marking(_))
    }

    /// Are the members being flushed before the clean mark?
    pub(crate) const fn is_flushing(&self) -> bool {
        matches!(self.intent, Intent::Flushing)
    }

    /// Is the clean mark being written, or the flush before it under way?
    pub(crate) const fn is_unmarking(&self) -> bool {
        matches!(self.intent, Intent::Flushing | Intent::Unmarking(_))
    }

    /// Is no mark being written, and no write under way?
    pub(crate) const fn is_at_rest(&self) -> bool {
        matches!(self.intent, Intent::Clean | Intent::Active) && self.writers == 0
    }

    /// Do the members say active although no write is under way?
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.intent, Intent::Active) && self.writers == 0
    }

    /// Must superblocks that are made now say active?
    pub(crate) const fn says_active(&self) -> bool {
        matches!(self.intent, Intent::Marking(_) | Intent::Active | Intent::Flushing)
    }

    /// This generation of superblocks says active.
    pub(crate) fn mark_with(&mut self, generation: u64) {
        self.intent = Intent::Marking(generation);
    }

    /// This generation of superblocks says clean.
    pub(crate) fn unmark_with(&mut self, generation: u64) {
        self.intent = Intent::Unmarking(generation);
    }

    /// A write came before the clean mark was made: the members continue to say active.
    pub(crate) fn keep(&mut self) {
        if self.is_flushing() {
            self.intent = Intent::Active;
        }
    }

    /// Superblocks are durable up to this generation; true if the mark that was being written is durable now.
    pub(crate) fn advance(&mut self, durable: u64) -> bool {
        self.intent = match self.intent {
            Intent::Marking(generation) if durable >= generation => Intent::Active,
            Intent::Unmarking(generation) if durable >= generation => Intent::Clean,
            _ => return false,
        };
        true
    }

    /// The time since which no write is under way, so that the members could be flushed and marked clean.
    pub(crate) fn quiet_since(&self) -> Option<Instant> {
        (self.is_idle() && self.flushes == 0).then_some(self.last_write)
    }

    /// Was there no write for `delay`? A set that stops does not wait.
    pub(crate) fn is_quiet(&self, now: Instant, delay: Nanos, is_stopping: bool) -> bool {
        self.quiet_since().is_some_and(|since| is_stopping || now >= since + delay)
    }

    /// Flush the members before the clean mark.
    pub(crate) fn begin_flush(&mut self) {
        self.intent = Intent::Flushing;
    }

    /// This number of flushes was issued for the clean mark.
    pub(crate) fn add_flushes(&mut self, count: u32) {
        self.flushes += count;
    }

    /// One of them has ended.
    pub(crate) fn end_flush(&mut self) {
        self.flushes -= 1;
    }

    /// Flushes under way.
    pub(crate) const fn flushes(&self) -> u32 {
        self.flushes
    }

    /// Have all of them ended?
    pub(crate) const fn is_flushed(&self) -> bool {
        self.is_flushing() && self.flushes == 0
    }

    #[cfg(test)]
    pub(crate) fn set(&mut self, intent: Intent) {
        self.intent = intent;
    }
}

/// Its state, for a list of all work in progress.
impl fmt::Display for ActiveMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} writers, {} flushes before the clean mark", self.intent, self.writers, self.flushes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Nanos = Nanos(100);

    /// A mark that is active. Its last write was at time 10 and has ended.
    fn active() -> ActiveMark {
        let mut mark = ActiveMark::new();
        mark.begin_write(Instant(5));
        mark.mark_with(3);
        assert!(mark.is_marking() && mark.says_active() && !mark.is_active() && !mark.is_clean());
        assert!(!mark.advance(2), "the generation is not durable");
        assert!(mark.advance(3) && mark.is_active() && !mark.advance(4));
        mark.end_write(Instant(10));
        mark
    }

    #[test]
    fn a_set_is_quiet_a_while_after_its_last_write_and_at_once_if_it_stops() {
        let mut mark = active();
        assert!(!mark.is_quiet(Instant(109), DELAY, false) && mark.is_quiet(Instant(110), DELAY, false));
        assert!(mark.is_quiet(Instant(11), DELAY, true));
        mark.begin_write(Instant(20));
        assert!(!mark.is_quiet(Instant(500), DELAY, false) && !mark.is_quiet(Instant(500), DELAY, true));
        assert!(!mark.is_at_rest() && !mark.is_idle() && mark.has_writers());
        mark.end_write(Instant(30));
        mark.note_write(Instant(40));
        assert_eq!((mark.quiet_since(), mark.is_at_rest()), (Some(Instant(40)), true));
        assert!(!ActiveMark::new().is_quiet(Instant(500), DELAY, true), "it is clean already");
    }

    #[test]
    fn the_clean_mark_is_made_when_the_last_flush_has_ended() {
        let mut mark = active();
        mark.begin_flush();
        mark.add_flushes(2);
        assert!(mark.is_active() && mark.is_unmarking() && !mark.is_flushed() && !mark.is_at_rest());
        mark.end_flush();
        assert!(!mark.is_flushed());
        mark.end_flush();
        assert!(mark.is_flushed());
        mark.unmark_with(7);
        assert!(mark.is_unmarking() && !mark.is_active() && !mark.says_active() && !mark.is_clean());
        assert!(mark.advance(7) && mark.is_clean());
    }

    #[test]
    fn a_write_that_comes_during_the_flush_keeps_the_active_mark() {
        let mut mark = active();
        mark.begin_flush();
        mark.add_flushes(1);
        mark.keep();
        assert!(mark.is_active() && !mark.is_flushing());
        assert_eq!(mark.quiet_since(), None, "the flush is still under way");
        mark.end_flush();
        assert_eq!(mark.quiet_since(), Some(Instant(10)));
        mark.unmark_with(7);
        mark.keep();
        assert!(mark.is_unmarking(), "it is too late: the clean mark is on its way");
    }
}
