//! What every component may use during a call of the controller: the drives, the trace, the limits, the time, and the
//! actions that the call returns.

use openraid_units::{DriveId, Instant, SetId, Slot, Tag};

use crate::actions::{Actions, NoticeKind};
use crate::array::sets::Sets;
use crate::io::channel::Channels;
use crate::io::command::Command;
use crate::limits::Limits;
use crate::planted::Planted;
use crate::slab::Key;
use crate::trace::Trace;

/// The part of it that stays between two calls. It is one field of the controller, so that a component borrows one
/// pointer instead of five.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) channels: Channels,
    /// The engine writes this for readers and never reads it.
    pub(crate) trace: Trace,
    pub(crate) limits: Limits,
    pub(crate) now: Instant,
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
            planted: Planted::default(),
        }
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
    pub(crate) fn send(&mut self, command: Command) -> (Key, bool) {
        self.base.channels.send(self.base.now, command, self.actions)
    }

    /// A command has ended: forget it, and give its drive the next one.
    #[inline(always)]
    pub(crate) fn forget(&mut self, tag: Tag) {
        self.base.channels.forget(self.base.now, tag.index(), self.actions);
    }

    /// Give up the next command that is overdue.
    pub(crate) fn give_up_overdue(&mut self) -> Option<Command> {
        self.base.channels.give_up_overdue(self.base.now)
    }

    /// Put a command into the queue of its drive.
    pub(crate) fn push(&mut self, command: &Command) {
        self.base.channels.push(self.base.now, command, self.actions);
    }

    /// Send the administrator a notice about a set.
    pub(crate) fn notice(
        &mut self,
        sets: &Sets,
        (id, slot): (SetId, Option<Slot>),
        drive: Option<DriveId>,
        kind: NoticeKind,
    ) {
        self.base.trace.notice(sets, id, slot, drive, kind, self.actions);
    }
}
