//! Clean stop: clients first, then arrays from the outside in; each is flushed and marked clean.

use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome};
use openraid_units::{ArrayId, Instant};

use super::run_orders::WaitingCaller;
use super::{ServiceEvent, Shard};
use crate::limits::STOP_TIME_MAX;

/// How far a shard is with stopping.
///
/// ```text
///  Clients --all gone, or time over--> Arrays --all stopped--> Journal --detached, if there is one--> ended
/// ```
#[derive(Debug)]
pub(super) enum Stopping {
    /// Clients receive their last answers.
    Clients {
        /// Until this time at most.
        until: Instant,
    },
    /// Arrays are stopped, the last of the list first.
    Arrays {
        /// Arrays still to be stopped.
        left: Vec<ArrayId>,
        /// One is being stopped.
        waiting: bool,
    },
    /// The journal records that it holds nothing valid any more.
    Journal,
}

impl Stopping {
    /// When to check again, without an event.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Clients { until } => Some(*until),
            Self::Arrays { .. } | Self::Journal => None,
        }
    }
}

impl Shard {
    pub(super) fn begin_stop(&mut self) {
        if self.stopping.is_none() {
            self.exports.stop(&mut self.shared);
            self.machines.stop(&mut self.shared);
            self.stopping = Some(Stopping::Clients { until: self.shared.now + STOP_TIME_MAX });
            self.run_round();
        }
    }

    /// Called after each round: the next steps, if the last one is done.
    pub(super) fn go_on_stopping(&mut self) {
        if let Some(Stopping::Clients { until }) = &self.stopping {
            if !(self.exports.is_empty() && self.machines.is_empty()) && *until > self.shared.now {
                return;
            }
            self.exports.close_all(&mut self.shared);
            self.machines.close_all(&mut self.shared);
            // Nested arrays are stopped first: the last of the list.
            let control = &self.shared.control;
            let mut left = control.arrays();
            left.sort_by_key(|array| control.status(*array).is_some_and(|status| !status.spans.is_empty()));
            self.stopping = Some(Stopping::Arrays { left, waiting: false });
        }
        while matches!(self.stopping, Some(Stopping::Arrays { waiting: false, .. })) && !self.ended {
            self.stop_next();
        }
    }

    fn stop_next(&mut self) {
        let Some(Stopping::Arrays { left, waiting }) = &mut self.stopping else { return };
        match left.pop() {
            Some(array) => {
                *waiting = true;
                self.ask(AdminCommand::Stop { array }, WaitingCaller::Stop(array));
                self.run_round();
            }
            None if self.shared.control.journal().is_some() => {
                self.stopping = Some(Stopping::Journal);
                self.ask(AdminCommand::DetachJournal, WaitingCaller::StopJournal);
                self.run_round();
            }
            None => self.ended = true,
        }
    }

    pub(super) fn on_array_stopped(&mut self, array: ArrayId, result: Result<AdminOutcome, AdminError>) {
        if let Err(error) = result {
            self.tell(ServiceEvent::StopFailed(array, error));
        }
        if let Some(Stopping::Arrays { waiting, .. }) = &mut self.stopping {
            *waiting = false;
        }
    }
}
