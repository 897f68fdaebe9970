//! Power: cut and back.

use openraid_core::actions::Actions;
use openraid_core::limits::Limits;
use openraid_core::Controller;
use openraid_units::{DriveId, Token};

use super::{new_pool, Host, World};
use crate::claims::Claims;
use crate::record::Record;

impl World {
    /// The power goes. Every drive loses what was not flushed, sector by sector as chance has it. The requests
    /// that were inside are returned: their hosts will never get an answer.
    pub fn cut_power(&mut self) -> Vec<(Token, Host)> {
        for drive in self.drives.iter_mut().flatten() {
            drive.cut_power();
        }
        self.forget()
    }

    /// The power of some drives goes, and the controller with it; the others keep theirs.
    pub fn cut_power_of(&mut self, mut goes: impl FnMut(DriveId) -> bool) -> Vec<(Token, Host)> {
        for (number, drive) in (0..).map(DriveId).zip(&mut self.drives) {
            match drive {
                Some(drive) if goes(number) => drive.cut_power(),
                Some(drive) => drive.forget_commands(),
                None => {}
            }
        }
        self.forget()
    }

    /// One drive loses its power and is gone, with what it had not made durable.
    pub fn vanish(&mut self, drive: DriveId) {
        let stuck = self.drive_mut(drive).vanish();
        self.soon(&stuck);
    }

    /// The controller's process is killed, the drives keep their power: only writes in flight are in doubt.
    pub fn kill(&mut self) -> Vec<(Token, Host)> {
        for drive in self.drives.iter_mut().flatten() {
            drive.forget_commands();
        }
        self.forget()
    }

    fn forget(&mut self) -> Vec<(Token, Host)> {
        // Models have commands under way that are gone.
        self.paces.clear();
        self.due.clear();
        self.in_flight.clear();
        self.claims.clear();
        self.admin_waiting.clear();
        self.admin_answers.clear();
        self.stirred = false;
        self.answered_early.clear();
        std::mem::take(&mut self.hosts).into_iter().collect()
    }

    /// A new controller over the same drives, as after the power came back or the service was started again. Arrays are
    /// to be assembled again. A record starts again as well.
    ///
    /// # Panics
    /// Something is in flight.
    pub fn boot(&mut self) {
        self.boot_with(self.spec.limits.clone());
    }

    /// As [`World::boot`], with other limits.
    ///
    /// # Panics
    /// Something is in flight, or the limits cannot work.
    pub fn boot_with(&mut self, limits: Limits) {
        assert!(self.is_quiet(), "a machine that runs is not booted\n{}", self.dump());
        for drive in self.drives.iter_mut().flatten() {
            drive.forget_commands();
        }
        self.in_flight.clear();
        self.controller = Controller::new(limits.clone()).unwrap_or_else(|error| panic!("{error}"));
        #[cfg(feature = "planted")]
        self.plant_in_engine();
        if limits == self.spec.limits {
            // The memory keeps its content, which no code may rely on.
            self.claims.clear();
            self.actions.clear();
        } else {
            (self.pool, self.claims) = (new_pool(&limits), Claims::new(limits.pool.get()));
            self.actions = Actions::new(&limits);
            self.spec.limits = limits.clone();
        }
        self.record = self.record.is_some().then(|| Record::new(limits));
        self.set_wall_clock();
        for index in 0..self.drives.len() {
            if self.drives[index].is_some() {
                self.attach(DriveId(u16::try_from(index).expect("a world has few drives")));
            }
        }
    }
}
