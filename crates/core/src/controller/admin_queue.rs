//! The administrator's commands that are not done: commands that have not begun, and commands that wait for something.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use openraid_units::{ArrayId, DriveId, SetId, Token};

use crate::actions::Actions;
use crate::admin_answer::{AdminError, AdminOutcome, AdminReply};
use crate::controller::AdminCommand;

/// The wait of a command that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AdminWait {
    /// Until the superblocks of a new set are durable.
    Start(ArrayId, SetId),
    /// Until an array has finished its work and is marked clean.
    Stop(ArrayId),
    /// Until the superblocks say that the shape of an array changes.
    Reshape(SetId),
    /// Until a linear array has got this drive.
    Append(SetId, DriveId),
    /// Until no request is in work beyond the size of an array.
    Limit(ArrayId),
    /// Until the journal's last superblocks are durable.
    DetachJournal,
    /// Until this generation of the journal's superblocks, with the discard, is durable.
    Discard(u64),
}

/// See the module header.
#[derive(Default, Debug)]
pub(crate) struct AdminQueue {
    commanded: VecDeque<(Token, AdminCommand)>,
    /// In the order in which they began to wait.
    waiting: Vec<(Token, AdminWait)>,
}

impl AdminQueue {
    /// Hand in a command.
    pub(crate) fn push(&mut self, token: Token, command: AdminCommand) {
        self.commanded.push_back((token, command));
    }

    /// The next command that has not begun.
    pub(crate) fn next(&mut self) -> Option<(Token, AdminCommand)> {
        self.commanded.pop_front()
    }

    /// A command waits.
    pub(crate) fn wait(&mut self, token: Token, waiting: AdminWait) {
        self.waiting.push((token, waiting));
    }

    /// Does no command wait?
    #[inline(always)]
    pub(crate) fn is_none_waiting(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The commands that wait, in order.
    pub(crate) fn waiting(&self) -> &[(Token, AdminWait)] {
        &self.waiting
    }

    /// The command at this place of the order waits no more. Returns its token, for the answer.
    pub(crate) fn take(&mut self, at: usize) -> Token {
        self.waiting.remove(at).0
    }

    /// Give all commands with this wait the same answer: the array is gone, and a later query would find nothing.
    pub(crate) fn answer_all(
        &mut self,
        same: AdminWait,
        result: &Result<AdminOutcome, AdminError>,
        actions: &mut Actions,
    ) {
        let others = self.waiting.extract_if(.., |(_, waiting)| *waiting == same);
        actions.admin.extend(others.map(|(token, _)| AdminReply { token, result: result.clone() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::DriveId;

    #[test]
    fn commands_begin_in_their_order() {
        let mut queue = AdminQueue::default();
        for number in 1..4 {
            queue.push(Token(number), AdminCommand::DetachDrive { drive: DriveId(7) });
        }
        assert!(queue.is_none_waiting(), "commands that have not begun do not wait");
        let begun: Vec<u64> = core::iter::from_fn(|| queue.next()).map(|(token, _)| token.0).collect();
        assert_eq!(begun, [1, 2, 3]);
    }

    #[test]
    fn the_end_of_an_array_answers_all_commands_that_wait_for_it_and_no_others() {
        let (mut queue, mut actions) = (AdminQueue::default(), Actions::default());
        let waits = [
            AdminWait::Stop(ArrayId(3)),
            AdminWait::Start(ArrayId(4), SetId(4)),
            AdminWait::Stop(ArrayId(3)),
            AdminWait::Stop(ArrayId(5)),
            AdminWait::Discard(9),
        ];
        for (number, wait) in (10..).zip(waits) {
            queue.wait(Token(number), wait);
        }
        assert_eq!(queue.take(1), Token(11));
        queue.answer_all(AdminWait::Stop(ArrayId(3)), &Ok(AdminOutcome::Done), &mut actions);
        let answers: Vec<_> = actions.admin.iter().map(|reply| (reply.token.0, reply.result.is_ok())).collect();
        assert_eq!(answers, [(10, true), (12, true)]);
        let left: Vec<u64> = queue.waiting().iter().map(|(token, _)| token.0).collect();
        assert_eq!((left, queue.is_none_waiting()), (alloc::vec![13, 14], false));
    }
}
