//! Power cuts, and starts of new controllers.

use openraid_core::actions::Actions;
use openraid_core::limits::Limits;
use openraid_core::Controller;
use openraid_units::{DriveId, Token};

use super::{new_pool, Host, World};
use crate::bytes_in_flight::BytesInFlight;
use crate::record::Record;

impl World {
    /// Cut the power. Every drive keeps or loses each unflushed sector at random. Returns the requests in the
    /// controller; their hosts never get an answer.
    pub fn cut_power(&mut self) -> Vec<(Token, Host)> {
        for drive in self.drives.iter_mut().flatten() {
            drive.cut_power();
        }
        self.forget()
    }

    /// Cut the power of the controller and of some drives; the other drives keep theirs.
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

    /// Cut the power of one drive. The drive is absent, and loses its unflushed writes.
    pub fn vanish(&mut self, drive: DriveId) {
        let stuck = self.drive_mut(drive).vanish();
        self.expect_answers(drive);
        self.soon(&stuck);
    }

    /// Kill the controller's process. The drives keep their power, so only writes in flight are in doubt.
    pub fn kill(&mut self) -> Vec<(Token, Host)> {
        for drive in self.drives.iter_mut().flatten() {
            drive.forget_commands();
        }
        self.forget()
    }

    fn forget(&mut self) -> Vec<(Token, Host)> {
        // Commands in the models are lost.
        self.paces.clear();
        self.due.clear();
        self.silent.clear();
        self.in_flight.clear();
        self.claims.clear();
        self.admin_waiting.clear();
        self.admin_answers.clear();
        self.stirred = false;
        self.answered_early.clear();
        std::mem::take(&mut self.hosts).into_iter().collect()
    }

    /// Start a new controller on the same drives, as after the return of power or a restart of the service. Arrays must
    /// be assembled again. A record begins again.
    ///
    /// # Panics
    /// Actions are in flight.
    pub fn boot(&mut self) {
        self.boot_with(self.spec.limits.clone());
    }

    /// Like [`World::boot`], with other limits.
    ///
    /// # Panics
    /// Actions are in flight, or the limits do not work.
    pub fn boot_with(&mut self, limits: Limits) {
        assert!(self.is_quiet(), "a machine that runs is not booted\n{}", self.dump());
        for drive in self.drives.iter_mut().flatten() {
            drive.forget_commands();
        }
        self.in_flight.clear();
        self.silent.clear();
        self.controller = Controller::new(limits.clone()).unwrap_or_else(|error| panic!("{error}"));
        #[cfg(feature = "planted")]
        self.plant_in_engine();
        if limits == self.spec.limits {
            // The frames keep their content, but no code may rely on it.
            self.claims.clear();
            self.actions.clear();
        } else {
            (self.pool, self.claims) = (new_pool(&limits), BytesInFlight::new(limits.pool.get()));
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
