//! The log of one slot: its state, the operations that wait for it, and the operations that its last write covers.

use alloc::vec::Vec;

use super::LOG_OPS_MAX;
use crate::slab::Queue;

/// State of a log; see the module [`super`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogState {
    /// It may be written.
    Free,
    /// Header and partial parity are being written.
    Writing {
        /// Commands under way.
        pending: u32,
    },
    /// It is durable.
    Covering {
        /// Operations that it covers and that are not finished, at least one.
        ops: u32,
    },
    /// All operations that it covers are finished. The members must be flushed before it is written again.
    Stale,
    /// The members are being flushed.
    Flushing,
}

/// See the module header.
#[derive(Debug)]
pub(crate) struct SlotLog {
    state: LogState,
    /// Operations that wait for the next write of it.
    waiting: Queue,
    /// Operations of the write that is under way.
    flying: Vec<u32>,
    /// An empty header must be written: the set is consistent now, and the header on disk does not say so.
    arm: bool,
}

impl SlotLog {
    /// A log that may be written. At most `ops_max` operations wait for it.
    pub(super) fn new(ops_max: u32) -> Self {
        Self {
            state: LogState::Free,
            waiting: Queue::new(ops_max),
            flying: Vec::with_capacity(LOG_OPS_MAX),
            arm: false,
        }
    }

    /// State of the log.
    pub(super) const fn state(&self) -> LogState {
        self.state
    }

    /// Is there a reason to write it?
    pub(super) fn is_wanted(&self) -> bool {
        !self.waiting.is_empty() || self.arm
    }

    /// Is a write of it under way?
    pub(super) const fn is_writing(&self) -> bool {
        matches!(self.state, LogState::Writing { .. })
    }

    /// Write an empty header next, if no operation needs a record before that.
    pub(super) fn arm(&mut self) {
        self.arm = true;
    }

    /// An operation needs a record. False if the log may be written now.
    pub(super) fn wait(&mut self, op: u32) -> bool {
        self.waiting.push(op);
        self.state != LogState::Free
    }

    /// No member keeps the log: no empty header is written.
    pub(super) fn disarm(&mut self) {
        self.arm = false;
    }

    /// The next operation that waits; it waits no more.
    pub(super) fn next_waiting(&mut self) -> Option<u32> {
        self.waiting.pop()
    }

    /// The next operation that waits, if the write takes one more record.
    pub(super) fn next_record(&self) -> Option<u32> {
        self.waiting.front().filter(|_| self.flying.len() < LOG_OPS_MAX)
    }

    /// A write begins.
    pub(super) fn begin_write(&mut self) {
        debug_assert_eq!(self.state, LogState::Free);
        (self.state, self.arm) = (LogState::Writing { pending: 0 }, false);
    }

    /// The record of the next operation that waits goes with this write.
    pub(super) fn take_record(&mut self) {
        let op = self.waiting.pop().expect("an operation waits");
        self.flying.push(op);
    }

    /// A command of the write is issued.
    pub(super) fn command_issued(&mut self) {
        let LogState::Writing { pending } = &mut self.state else { unreachable!("it is being written") };
        *pending += 1;
    }

    /// A command of the write has ended.
    pub(super) fn command_ended(&mut self) {
        let LogState::Writing { pending } = &mut self.state else { unreachable!("it is being written") };
        *pending -= 1;
    }

    /// The write is durable. Each operation of it is handed to `each`. True if the log may be written again at once, and
    /// should be: operations came while an empty header was being written.
    pub(super) fn land(&mut self, each: impl FnMut(u32)) -> bool {
        let ops = u32::try_from(self.flying.len()).expect("few operations");
        self.state = if ops == 0 { LogState::Free } else { LogState::Covering { ops } };
        self.flying.drain(..).for_each(each);
        ops == 0 && self.is_wanted()
    }

    /// An operation that the log covers has finished. True if it was the last one, and the log should be written again.
    /// `reused` plants a bug: it is written again without a flush.
    pub(super) fn end_op(&mut self, reused: bool) -> bool {
        let LogState::Covering { ops } = &mut self.state else { unreachable!("it covers an operation") };
        *ops -= 1;
        if *ops > 0 {
            return false;
        }
        self.state = if reused { LogState::Free } else { LogState::Stale };
        self.is_wanted()
    }

    /// The members are being flushed for it, if it is stale.
    pub(super) fn begin_flush(&mut self) {
        if self.state == LogState::Stale {
            self.state = LogState::Flushing;
        }
    }

    /// The members were flushed, or a flush has failed. True if this log waited for the flush.
    pub(super) fn end_flush(&mut self, failed: bool) -> bool {
        let was_flushing = self.state == LogState::Flushing;
        if was_flushing {
            self.state = if failed { LogState::Stale } else { LogState::Free };
        }
        was_flushing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn landed(log: &mut SlotLog) -> (Vec<u32>, bool) {
        let mut ops = Vec::new();
        let is_due = log.land(|op| ops.push(op));
        (ops, is_due)
    }

    /// A log whose write of this number of records is durable.
    fn covering(records: u32) -> SlotLog {
        let mut log = SlotLog::new(128);
        (0..records).for_each(|op| _ = log.wait(op));
        log.begin_write();
        (0..records).for_each(|_| log.take_record());
        landed(&mut log);
        log
    }

    #[test]
    fn records_that_come_while_a_write_is_under_way_wait_for_the_next_one() {
        let mut log = SlotLog::new(8);
        assert!(!log.is_wanted() && !log.wait(3), "it may be written at once");
        log.begin_write();
        log.take_record();
        log.command_issued();
        log.command_issued();
        assert!(log.wait(4) && log.is_writing());
        log.command_ended();
        assert_eq!(log.state(), LogState::Writing { pending: 1 });
        log.command_ended();
        assert_eq!(log.state(), LogState::Writing { pending: 0 });
        assert_eq!(landed(&mut log), (alloc::vec![3], false), "it cannot be written before it was flushed");
        assert_eq!((log.state(), log.is_wanted(), log.is_writing()), (LogState::Covering { ops: 1 }, true, false));
        assert!(log.end_op(false));
        assert_eq!(log.state(), LogState::Stale);
    }

    #[test]
    fn a_log_is_written_again_only_after_all_that_it_covers_and_a_flush_that_succeeded() {
        let mut log = covering(3);
        assert!(!log.end_flush(false), "no flush is for it");
        assert!(!log.end_op(false) && !log.end_op(false));
        assert_eq!(log.state(), LogState::Covering { ops: 1 });
        log.begin_flush();
        assert_eq!(log.state(), LogState::Covering { ops: 1 }, "a flush now comes too early");
        assert!(!log.end_op(false), "nothing waits for it");
        log.begin_flush();
        assert_eq!(log.state(), LogState::Flushing);
        assert!(log.end_flush(true));
        assert_eq!(log.state(), LogState::Stale);
        log.begin_flush();
        assert!(log.end_flush(false));
        assert_eq!(log.state(), LogState::Free);
    }

    #[test]
    fn an_empty_header_covers_nothing_and_records_that_came_meanwhile_are_due_at_once() {
        let mut log = SlotLog::new(8);
        log.arm();
        assert!(log.is_wanted());
        log.begin_write();
        assert!(!log.is_wanted(), "it is being written");
        assert!(log.wait(7));
        assert_eq!(landed(&mut log), (Vec::new(), true));
        assert_eq!(log.state(), LogState::Free);
        log.arm();
        log.disarm();
        assert_eq!((log.next_waiting(), log.next_waiting(), log.is_wanted()), (Some(7), None, false));
    }

    #[test]
    fn one_write_takes_64_records() {
        let mut log = SlotLog::new(128);
        (0..65).for_each(|op| _ = log.wait(op));
        log.begin_write();
        let mut count = 0;
        while log.next_record() == Some(count) {
            log.take_record();
            count += 1;
        }
        assert_eq!((count, log.next_record()), (64, None));
        landed(&mut log);
        assert_eq!(log.next_record(), Some(64));
    }
}
