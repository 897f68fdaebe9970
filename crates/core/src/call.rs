//! What every component may use during a call of the controller: the drives, the trace, the limits, the time, and the
//! actions that the call returns.

use openraid_units::{DriveId, Instant, Nanos, SetId, Slot, Tag};

use crate::actions::{Actions, Notice, NoticeKind};
use crate::io::state::command::ChannelCommand;
use crate::io::state::drive_queues::Channels;
use crate::limits::Limits;
use crate::planted::Planted;
use crate::slab::Key;
use crate::trace::{Trace, TracedSets};

/// The part of it that stays between two calls. It is one field of the controller, so that a component borrows one
/// pointer instead of five.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) channels: Channels,
    /// The engine writes this for readers and never reads it.
    pub(crate) trace: Trace,
    pub(crate) limits: Limits,
    pub(crate) now: Instant,
    /// Time since 1970 at `Instant::ZERO`.
    pub(crate) wall_clock: Nanos,
    /// There was no room for all actions of the last call.
    pub(crate) more_to_do: bool,
    pub(crate) planted: Planted,
}

impl Base {
    /// No drives yet, time zero, and no planted bug.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            channels: Channels::new(&limits),
            trace: Trace::new(limits.trace_entries),
            limits,
            now: Instant::ZERO,
            wall_clock: Nanos::ZERO,
            more_to_do: false,
            planted: Planted::default(),
        }
    }

    /// A call begins at this time.
    #[inline(always)]
    pub(crate) fn set_time(&mut self, now: Instant) {
        self.now = now;
        self.trace.set_time(now);
    }
}

/// See the module header.
pub(crate) struct Call<'a> {
    base: &'a mut Base,
    actions: &'a mut Actions,
}

impl<'a> Call<'a> {
    #[inline(always)]
    pub(crate) fn new(base: &'a mut Base, actions: &'a mut Actions) -> Self {
        Self { base, actions }
    }

    /// The queues of the drives.
    #[inline(always)]
    pub(crate) fn channels(&self) -> &Channels {
        &self.base.channels
    }

    /// The queues of the drives, to change them.
    #[inline(always)]
    pub(crate) fn channels_mut(&mut self) -> &mut Channels {
        &mut self.base.channels
    }

    /// What the engine records for people.
    #[inline(always)]
    pub(crate) fn trace(&mut self) -> &mut Trace {
        &mut self.base.trace
    }

    /// Are the steps of requests kept?
    #[inline(always)]
    pub(crate) fn keeps_steps(&self) -> bool {
        self.base.trace.steps().is_on()
    }

    /// The limits of the controller.
    #[inline(always)]
    pub(crate) fn limits(&self) -> &Limits {
        &self.base.limits
    }

    /// The time of the call.
    #[inline(always)]
    pub(crate) fn now(&self) -> Instant {
        self.base.now
    }

    /// The time in whole seconds since 1970.
    pub(crate) fn unix_seconds(&self) -> u64 {
        (self.base.wall_clock + self.base.now.since(Instant::ZERO)).as_secs()
    }

    /// The bug that a test has planted.
    #[inline(always)]
    pub(crate) fn planted(&self) -> Planted {
        self.base.planted
    }

    /// The actions of the call.
    #[inline(always)]
    pub(crate) fn actions(&mut self) -> &mut Actions {
        self.actions
    }

    /// Put a command of an operation into the queue of its drive, in place. Returns its key, and whether it waits.
    #[inline(always)]
    pub(crate) fn send(&mut self, command: ChannelCommand) -> (Key, bool) {
        self.base.channels.send(self.base.now, command, self.actions)
    }

    /// A command has ended: forget it, and give its drive the next one.
    #[inline(always)]
    pub(crate) fn forget(&mut self, tag: Tag) {
        self.base.channels.forget(self.base.now, tag.index(), self.actions);
    }

    /// Give up the next command that is overdue.
    pub(crate) fn give_up_overdue(&mut self) -> Option<ChannelCommand> {
        self.base.channels.give_up_overdue(self.base.now)
    }

    /// Is there room for the actions of one more step? If not, the driver drains the actions and calls again.
    pub(crate) fn check_room(&mut self) -> bool {
        let has_room = self.actions.has_room();
        self.base.more_to_do |= !has_room;
        has_room
    }

    /// Put a command into the queue of its drive.
    pub(crate) fn push(&mut self, command: &ChannelCommand) {
        self.base.channels.push(self.base.now, command, self.actions);
    }

    /// Send the administrator a notice about a set.
    pub(crate) fn notice(
        &mut self,
        sets: &impl TracedSets,
        (id, slot): (SetId, Option<Slot>),
        drive: Option<DriveId>,
        kind: NoticeKind,
    ) {
        self.actions.notice(Notice { at: self.base.now, array: sets.array_of(id), slot, drive, kind });
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::{ArrayId, BlockSize, Bytes, DriveLba, PoolOffset, Sectors};

    use super::*;
    use crate::actions::{Data, DriveOp, JobColumn};
    use crate::array::set::Set;
    use crate::array::sets::Sets;
    use crate::events::DriveInfo;
    use crate::geometry::shape::Shape;
    use crate::geometry::{Level, SetSpec};
    use crate::io::state::command::Owner;

    const SECOND: u64 = 1_000_000_000;

    fn parts() -> (Base, Actions) {
        let base = Base::new(Limits::small());
        let actions = Actions::new(&base.limits);
        (base, actions)
    }

    #[test]
    fn seconds_since_1970_are_rounded_down_once_after_both_times_were_added() {
        let (mut base, mut actions) = parts();
        for (wall_clock, now, seconds) in [(0, 0, 0), (16, 6, 2), (16, 3, 1), (5, 4, 0), (90, 10, 10)] {
            (base.wall_clock, base.now) = (Nanos(wall_clock * SECOND / 10), Instant(now * SECOND / 10));
            assert_eq!(Call::new(&mut base, &mut actions).unix_seconds(), seconds, "{wall_clock} and {now} tenths");
        }
    }

    #[test]
    fn a_step_that_finds_no_room_asks_for_another_call_and_one_that_finds_room_does_not_take_that_back() {
        let (mut base, mut actions) = parts();
        assert!(Call::new(&mut base, &mut actions).check_room() && !base.more_to_do);
        let column = JobColumn { index: 0, at: PoolOffset::ZERO, old: PoolOffset::ZERO };
        actions.columns.extend([column; 16 * 1024]);
        assert!(!Call::new(&mut base, &mut actions).check_room() && base.more_to_do);
        actions.columns.clear();
        assert!(Call::new(&mut base, &mut actions).check_room() && base.more_to_do);
    }

    #[test]
    fn a_command_is_sent_with_the_time_of_the_call_and_room_for_it_is_back_when_it_is_forgotten() {
        let (mut base, mut actions) = parts();
        let (capacity, block) = (Bytes::mib(1).sectors_floor(), BlockSize::B512);
        let info = DriveInfo {
            capacity,
            block,
            rotational: false,
            discard: false,
            discard_zeroes: false,
            write_zeroes: false,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        };
        assert!(base.channels.attach(DriveId(0), info));
        base.now = Instant(7 * SECOND);
        let (room, due) = (base.channels.room(), base.now + base.limits.command_timeout);
        let mut call = Call::new(&mut base, &mut actions);
        let place = (DriveLba(8), Sectors(8));
        let read = ChannelCommand::new(Owner::Op(3), SetId(0), 0, Slot(0), DriveId(0));
        let read = read.doing(DriveOp::Read, place, Data::Frames(PoolOffset::ZERO));
        assert!(!call.send(read).1, "the drive has room");
        assert_eq!((call.channels().room(), call.channels().next_deadline()), (room - 1, Some(due)));
        assert_eq!(
            call.actions().drive.iter().map(|command| (command.lba, command.len)).collect::<alloc::vec::Vec<_>>(),
            [place]
        );
        let tag = call.actions().drive[0].tag;
        call.forget(tag);
        assert_eq!((base.channels.room(), base.channels.outstanding(DriveId(0))), (room, 0));
    }

    #[test]
    fn a_notice_about_a_set_names_its_array_and_the_time_of_the_call() {
        let (mut base, mut actions) = parts();
        let member_sizes = &[Sectors(64); 4];
        let (level, chunk, member_size) = (Level::Raid5, Sectors(8), Sectors(64));
        let spec = SetSpec { level, members: 4, chunk, layout: 2, member_size, member_sizes };
        let mut sets = Sets::new();
        sets.put(SetId(0), Set::new(ArrayId(3), Shape::of(&spec), (BlockSize::B512, 8), &Limits::small()));
        base.set_time(Instant(9));
        let place = (SetId(0), Some(Slot(1)));
        Call::new(&mut base, &mut actions).notice(&sets, place, Some(DriveId(1)), NoticeKind::Timeout);
        let (slot, drive, kind) = (Some(Slot(1)), Some(DriveId(1)), NoticeKind::Timeout);
        assert_eq!(actions.notices, [Notice { at: Instant(9), array: ArrayId(3), slot, drive, kind }]);
    }
}
