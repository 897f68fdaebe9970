//! A server that reads from members without a write to them.
//!
//! Such a server keeps in memory all that it would write. So its members look to it as if they were written, and are as
//! before when it ends.

use super::power::LostDriveFate;
use super::{Run, RunResult};
use crate::drive::image::Image;
use crate::drive::Faults;
use crate::fault::fault_names::Fault;
use crate::fault::scenario::ControllerEnd;

impl Run<'_> {
    /// The power is cut. A server reads everything, and writes nothing to any member. It is killed, and the next one
    /// serves the arrays for writing.
    pub(super) fn start_reading(&mut self) -> RunResult {
        // With a journal the program wants its data on the members first.
        if self.scenario.journal.is_some() {
            return Ok(());
        }
        self.suspect();
        if !self.prepare_end(LostDriveFate::StayAway)? {
            return Ok(());
        }
        self.count(Fault::StartReading);
        self.count_end(ControllerEnd::Cut);
        self.go_down(ControllerEnd::Cut)?;
        let drives = (0..self.world.drives_len()).map(super::drive_id);
        let before: Vec<(Image, Faults)> = drives
            .clone()
            .map(|drive| (self.world.drive(drive).image().clone(), self.world.drive(drive).faults.clone()))
            .collect();
        let sets = self.sets.clone();
        self.boot(None)?;
        self.look()?;
        self.world.kill();
        self.session.forget();
        for (drive, (image, faults)) in drives.zip(before) {
            self.world.drive_mut(drive).put_image(&image);
            self.world.drive_mut(drive).faults = faults;
        }
        self.sets = sets;
        self.log(|| "  that server has ended, and the members are as before".into());
        self.boot(None)
    }
}
