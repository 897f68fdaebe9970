//! Power: cut and back.

use openraid_core::actions::Actions;
use openraid_core::Controller;
use openraid_units::{DriveId, Token};

use super::{new_pool, Host, World};
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

    /// The controller's process is killed, the drives keep their power: only what was in flight is in doubt.
    pub fn kill(&mut self) -> Vec<(Token, Host)> {
        for drive in self.drives.iter_mut().flatten() {
            drive.forget_commands();
        }
        self.forget()
    }

    fn forget(&mut self) -> Vec<(Token, Host)> {
        self.due.clear();
        self.in_flight.clear();
        self.claims.clear();
        self.admin_waiting.clear();
        self.admin_answers.clear();
        self.stirred = false;
        std::mem::take(&mut self.hosts).into_iter().collect()
    }

    /// A new controller over the same drives, as after the power came back or the service was started again.
    /// Arrays are to be assembled anew. A record begins anew as well.
    ///
    /// # Panics
    /// Something is in flight.
    pub fn boot(&mut self) {
        assert!(self.is_quiet(), "a machine that runs is not booted\n{}", self.dump());
        for drive in self.drives.iter_mut().flatten() {
            drive.forget_commands();
        }
        self.in_flight.clear();
        self.claims.clear();
        let limits = self.spec.limits.clone();
        self.controller = Controller::new(limits.clone()).unwrap_or_else(|error| panic!("{error}"));
        self.actions = Actions::new(&limits);
        self.pool = new_pool(&limits);
        self.record = self.record.is_some().then(|| Record::new(limits));
        self.set_wall_clock();
        for index in 0..self.drives.len() {
            if self.drives[index].is_some() {
                self.attach(DriveId(u16::try_from(index).expect("a world has few drives")));
            }
        }
    }
}
