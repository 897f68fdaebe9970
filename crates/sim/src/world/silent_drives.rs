//! The judge of silent drives: the engine gives up a command when its time is over, whatever other drives do.

use openraid_core::actions::DriveCommand;
use openraid_core::admin::{ArrayStatus, Health, MemberState};
use openraid_units::{DriveId, Nanos};

use super::World;

/// More than the time in which the engine handles all commands that are overdue at once.
const SLACK: Nanos = Nanos::from_secs(1);

impl World {
    /// A drive has taken a command that it will not answer.
    pub(super) fn expect_silence(&mut self, command: &DriveCommand) {
        let keeps = self.drive(command.drive).spec().info().keeps(command.op);
        self.silent.push((command.drive, self.now + self.spec.limits.command_timeout + keeps + SLACK));
    }

    /// The drive answers again, or reports that it is gone.
    pub(super) fn expect_answers(&mut self, drive: DriveId) {
        self.silent.retain(|(silent, _)| *silent != drive);
    }

    /// Check that the members without an answer in their time have been given up.
    pub(super) fn judge_silence(&mut self) {
        let now = self.now;
        let is_late = |(_, due): &(DriveId, openraid_units::Instant)| *due < now;
        if !self.silent.iter().any(is_late) {
            return;
        }
        let late: Vec<DriveId> =
            self.silent.iter().filter(|command| is_late(command)).map(|(drive, _)| *drive).collect();
        self.silent.retain(|command| !is_late(command));
        for drive in late {
            assert!(
                !self.counts_on(drive),
                "a drive that does not answer is noticed too late: drive {drive}\n{}",
                self.dump()
            );
        }
    }

    /// Whether an array that works has this drive as a working member.
    fn counts_on(&self, drive: DriveId) -> bool {
        let works = |state| matches!(state, MemberState::InSync | MemberState::Rebuilding { .. });
        let has = |status: ArrayStatus| {
            status.health != Health::Failed
                && status.members.iter().any(|member| member.drive == Some(drive) && works(member.state))
        };
        self.controller.arrays().filter_map(|array| self.status(array)).any(has)
    }
}
