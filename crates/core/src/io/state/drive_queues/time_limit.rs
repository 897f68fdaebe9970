//! The time limit of a member's command, [`Limits::command_timeout`]: a command that its drive has not answered by then is given up.
//!
//! On a thin volume the limit is longer, by the time for which its pool keeps writes. [`give_up_commands`] takes the overdue commands, and
//! the member fails.
//!
//! [`Limits::command_timeout`]: crate::limits::Limits::command_timeout
//! [`give_up_commands`]: crate::controller::give_up_commands

use openraid_units::{DriveId, Instant, Nanos};

use super::Channels;
use crate::io::state::command::{ChannelCommand, Owner};
use crate::slab::NONE;

impl Channels {
    /// The time at which a command is overdue that its drive has.
    pub(super) fn due(&self, index: u32) -> Instant {
        let command = &self.commands[index];
        let channel = self.drives[command.drive.index()].as_ref().expect("commands go to attached drives");
        let issued = command.issued.expect("the drive has it");
        issued + self.timeout + channel.info.keeps(command.op)
    }

    /// May a command be overdue?
    #[inline(always)]
    pub(crate) fn may_be_overdue(&self, now: Instant) -> bool {
        now >= self.look_at
    }

    /// An overdue command as it was; it is quarantined now.
    pub(crate) fn give_up_overdue(&mut self, now: Instant) -> Option<ChannelCommand> {
        if !self.may_be_overdue(now) {
            return None;
        }
        let mut next = Instant::NEVER;
        for number in 0..self.drives.len() {
            let Some(channel) = &self.drives[number] else { continue };
            let mut index = channel.out.head;
            while index != NONE {
                let due = self.due(index);
                if due <= now {
                    return Some(self.give_up(number, index));
                }
                next = next.min(due);
                // Without a wait for room all commands have the same time limit: the first one is due first.
                index = if channel.info.room_wait == Nanos::ZERO { NONE } else { self.commands[index].next };
            }
        }
        self.look_at = next;
        None
    }

    fn give_up(&mut self, number: usize, index: u32) -> ChannelCommand {
        let channel = self.drives[number].as_mut().expect("it has commands");
        channel.out.remove(&mut self.commands, index);
        channel.issued -= 1;
        channel.ended(&self.commands[index]);
        channel.quarantined += 1;
        self.out -= 1;
        let command = self.commands[index];
        self.commands[index].owner = Owner::Quarantined;
        command
    }

    /// Give up all commands of a drive that counts as dead, one by one.
    pub(crate) fn give_up_issued(&mut self, drive: DriveId) -> Option<ChannelCommand> {
        let index = self.get(drive)?.out.head;
        (index != NONE).then(|| self.give_up(drive.index(), index))
    }

    /// No command is overdue before this time.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        (self.out > 0).then_some(self.look_at)
    }
}
