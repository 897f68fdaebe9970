//! The way of a component to the drives.

use openraid_units::Instant;

use crate::actions::Actions;
use crate::io::channel::Channels;
use crate::io::command::Command;

/// What a component needs to send commands to drives: the channels, the time, and the actions of the present call.
pub(crate) struct DriveIo<'a> {
    channels: &'a mut Channels,
    now: Instant,
    actions: &'a mut Actions,
}

impl<'a> DriveIo<'a> {
    pub(crate) fn new(channels: &'a mut Channels, now: Instant, actions: &'a mut Actions) -> Self {
        Self { channels, now, actions }
    }

    /// The queues of the drives.
    pub(crate) fn channels(&self) -> &Channels {
        self.channels
    }

    /// The time of the present call.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The actions of the present call.
    pub(crate) fn actions(&mut self) -> &mut Actions {
        self.actions
    }

    /// Put a command into the queue of its drive.
    pub(crate) fn push(&mut self, command: &Command) {
        self.channels.push(self.now, command, self.actions);
    }
}
