//! Flush: every write that was acknowledged before becomes durable on the members.

use openraid_units::{MemberLba, Sectors, SetId};

use crate::actions::{DriveOp, ReplyStatus};
use crate::io::state::op::Phase;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::hold_for_commands;
use crate::reason::Reason;
use crate::set_status::Health;

impl OpIo<'_> {
    pub(crate) fn step_flush(&mut self, index: u32) {
        if self.ops[index].phase == Phase::Start {
            if !self.call.channels().may_issue() {
                return hold_for_commands(self.ops, index);
            }
            self.ops[index].phase = Phase::Writing;
            let set = self.ops[index].set;
            if !self.sets.get(set).has_failed_flush() {
                // Data that a member had not flushed when it was lost cannot be made durable any more.
                if self.sets.get(set).health() == Health::Failed {
                    self.ops[index].fail(ReplyStatus::IoError);
                    return self.finish_op(index);
                }
                self.issue_flushes(index, set);
            }
            if self.ops[index].pending > 0 {
                return;
            }
        }
        // A flush that was under way at the same time may have failed: the member has dropped the data of that flush,
        // and the success of the next one does not cover it.
        if !self.ops[index].has_failed() && self.sets.get(self.ops[index].set).has_failed_flush() {
            self.note(index, Reason::FlushFailed, 0, 0);
            self.ops[index].fail(ReplyStatus::IoError);
        }
        if self.ops[index].has_failed() || self.pass_reply_gate(index) {
            self.finish_op(index);
        }
    }

    fn issue_flushes(&mut self, index: u32, set: SetId) {
        for member in 0..self.sets.get(set).members().len() {
            if self.sets.begin_flush(set, member) {
                let member = u32::try_from(member).expect("few members");
                self.issue_plain(index, member, DriveOp::Flush, MemberLba::ZERO, Sectors::ZERO);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use openraid_units::Token;

    use crate::actions::{DriveOp, ReplyStatus};
    use crate::events::{DriveError, RequestKind};
    use crate::io::steps::fixture::Drives;

    #[test]
    fn a_flush_goes_once_to_each_member_that_was_written_since_the_last_one() {
        let mut drives = Drives::new();
        // The first flush also covers metadata of all members.
        for (token, count) in [(Token(1), 3), (Token(2), 2), (Token(3), 0)] {
            if count > 0 {
                drives.write(Token(10), 0);
                drives.answer_all();
            }
            drives.request(token, RequestKind::Flush, 0, 0);
            let flushed: Vec<_> = drives.out.iter().filter(|c| c.op == DriveOp::Flush).map(|c| c.drive).collect();
            assert_eq!(flushed.len(), count, "a write of one block goes to its member and to parity: {flushed:?}");
            drives.answer_all();
            assert_eq!(drives.replies.pop(), Some((token, ReplyStatus::Ok)));
        }
    }

    #[test]
    fn a_failed_flush_fails_its_member_and_then_succeeds_but_not_if_the_array_needs_the_member() {
        let mut drives = Drives::new();
        for (number, status) in [(1, ReplyStatus::Ok), (2, ReplyStatus::IoError), (3, ReplyStatus::IoError)] {
            drives.write(Token(10), 0);
            drives.answer_all();
            drives.request(Token(number), RequestKind::Flush, 0, 0);
            let mut failed = false;
            while !drives.out.is_empty() {
                let is_flush = |op| op == DriveOp::Flush && !failed;
                let first = drives.out.iter().find(|command| is_flush(command.op)).map(|command| command.tag);
                failed |= first.is_some();
                drives.answer(|c| if Some(c.tag) == first { Err(DriveError::FlushFailed) } else { Ok(()) });
            }
            assert_eq!(drives.replies.pop(), Some((Token(number), status)), "flush {number}");
        }
    }
}
