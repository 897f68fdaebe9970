//! Commands that a drive does not answer in time end with an error. The commands that wait for the drive end, too.

use openraid_units::DriveId;

use crate::actions::Actions;
use crate::controller::Controller;
use crate::events::{CommandError, DriveError};

impl Controller {
    /// Commands that wait for this drive end now.
    pub(super) fn end_queued(&mut self, drive: DriveId, actions: &mut Actions) {
        while let Some(command) = self.base.channels.cancel_queued(drive) {
            self.command_ended(&command, Err(CommandError::Drive(DriveError::Gone)), actions);
        }
    }

    /// Give up the commands that were not answered in time, and all others of their drives.
    #[inline(never)]
    pub(super) fn check_timeouts(&mut self, actions: &mut Actions) {
        let mut condemned = None;
        loop {
            if let Some(command) = self.op_io(actions).give_up_next(condemned) {
                self.command_ended(&command, Err(CommandError::Timeout), actions);
                condemned = Some(command.drive());
            } else if let Some(drive) = condemned.take() {
                // Commands that the drive was never given end too: if the member was replaced during the wait, nothing
                // else ends them.
                self.end_queued(drive, actions);
            } else {
                return;
            }
        }
    }
}
