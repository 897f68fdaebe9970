//! Drives with the answer times of a drive model, in place of random times.

use openraid_units::{DriveId, Tag};

use super::{InFlight, World};
use crate::bytes_in_flight::Ticket;
use openraid_drives::{AnyDrive, VirtualDrive};

impl World {
    /// Let a model determine the answer times of a drive. After a power cut the drive needs a new model, because the
    /// commands of the old one are lost.
    pub fn pace(&mut self, drive: DriveId, model: AnyDrive) {
        if self.paces.len() <= drive.index() {
            self.paces.resize(drive.index() + 1, None);
        }
        self.paces[drive.index()] = Some(model);
    }

    /// The time of the next event of the models.
    pub(super) fn next_pace(&self) -> Option<openraid_units::Instant> {
        self.paces.iter().flatten().filter_map(VirtualDrive::next).min()
    }

    /// Schedule the end of each command that a model has ended by now.
    pub(super) fn advance_paces(&mut self) {
        let mut ended: Vec<Tag> = Vec::new();
        let now = self.now;
        self.paces.iter_mut().flatten().for_each(|model| model.advance(now, &mut ended));
        for tag in ended {
            let is_it = |action: &InFlight| matches!(action, InFlight::Drive(command) if command.tag == tag);
            let ticket: Option<Ticket> =
                self.in_flight.iter().find(|(_, action)| is_it(action)).map(|(ticket, _)| *ticket);
            if let Some(ticket) = ticket {
                self.schedule(ticket, now);
            }
        }
    }
}
