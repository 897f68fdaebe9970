//! The only access to the engine: hands in events, keeps requests that did not fit, and can record the whole stream of
//! events.
//!
//! Every event must go through here. Otherwise a recording is not complete.

use std::collections::VecDeque;

use openraid_core::admin::{AdminCommand, AdminError, ArrayStatus, CacheStatus, JournalStatus, Unprotected};
use openraid_core::array::reshape_plan::{ReshapeGoal, ReshapePlan};
use openraid_core::events::{BlockRequest, Completion, DriveError, HostGone, ParityVerdict, QueueFull};
use openraid_core::limits::{Limits, LimitsError};
use openraid_core::occupancy::{DriveLoad, Occupied};
use openraid_core::reason::TraceEntry;
use openraid_core::request_steps::Step;
use openraid_core::{Actions, ContentPlaces, Controller};
use openraid_format::Superblock;
use openraid_sys::clock;
use openraid_units::{ArrayId, DriveId, Instant, Nanos, Sectors, Tag, Token};

use crate::engine_recorder::{EngineCall, Recorder};

/// The engine's time of day may differ from the wall clock by this much; superblocks have whole seconds.
const WALL_CLOCK_DRIFT_MAX: Nanos = Nanos::from_millis(10);

/// The wall clock at the engine's zero, computed from the wall clock now and the engine's clock now.
fn wall_clock_at_zero(now: Instant) -> Nanos {
    Nanos(clock::wall().get().saturating_sub(now.since(Instant::ZERO).get()))
}

/// The engine and its inbox.
pub struct Control {
    controller: Controller,
    recorder: Option<Box<dyn Recorder>>,
    /// Requests that found the engine full; nothing new is read while there are any.
    deferred: VecDeque<BlockRequest>,
    /// Something was handed in since the last `advance`.
    stirred: bool,
    /// The wall clock at [`Instant::ZERO`], as the engine has it.
    wall_clock_at_zero: Nanos,
}

impl Control {
    /// An engine without drives.
    ///
    /// # Errors
    /// Limits that do not fit together.
    pub fn new(limits: Limits, recorder: Option<Box<dyn Recorder>>) -> Result<Self, LimitsError> {
        let controller = Controller::new(limits)?;
        let mut control =
            Self { controller, recorder, deferred: VecDeque::new(), stirred: false, wall_clock_at_zero: Nanos::ZERO };
        control.set_wall_clock(clock::now());
        Ok(control)
    }

    /// Tell the engine the wall clock at this time of its own clock.
    pub fn set_wall_clock(&mut self, now: Instant) {
        self.wall_clock_at_zero = wall_clock_at_zero(now);
        self.controller.set_wall_clock(self.wall_clock_at_zero);
        if let Some(recorder) = &mut self.recorder {
            recorder.event(EngineCall::WallClock(self.wall_clock_at_zero));
        }
    }

    /// Tell it again if the wall clock and the engine's clock have drifted apart: the clock was set, or the machine
    /// slept.
    pub fn follow_wall_clock(&mut self, now: Instant) {
        if wall_clock_at_zero(now).get().abs_diff(self.wall_clock_at_zero.get()) >= WALL_CLOCK_DRIFT_MAX.get() {
            self.set_wall_clock(now);
        }
    }

    /// Hand in a host request; it waits here while the engine is full.
    #[inline]
    pub fn submit(&mut self, request: BlockRequest) {
        if !self.deferred.is_empty() || !self.try_submit(request) {
            self.deferred.push_back(request);
        }
    }

    #[inline]
    fn try_submit(&mut self, request: BlockRequest) -> bool {
        if let Some(recorder) = &mut self.recorder {
            recorder.event(EngineCall::Submit(&request));
        }
        match self.controller.submit(request) {
            Ok(()) => {
                self.stirred = true;
                true
            }
            Err(QueueFull(_)) => false,
        }
    }

    /// Do requests wait for room in the engine?
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// A drive command ended.
    #[inline]
    pub fn drive_done(&mut self, tag: Tag, result: Result<(), DriveError>) {
        self.complete(Completion::Drive { tag, result });
    }
    /// A transfer ended.
    #[inline]
    pub fn transfer_done(&mut self, tag: Tag, result: Result<(), HostGone>) {
        self.complete(Completion::Transfer { tag, result });
    }
    /// A parity job ended.
    #[inline]
    pub fn job_done(&mut self, tag: Tag, verdict: ParityVerdict) {
        self.complete(Completion::Job { tag, verdict });
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        if let Some(recorder) = &mut self.recorder {
            recorder.event(EngineCall::Complete(&completion));
        }
        self.stirred = true;
        self.controller.complete(completion);
    }

    /// Hand in a command of the administrator.
    pub fn admin(&mut self, token: Token, command: AdminCommand) {
        if let Some(recorder) = &mut self.recorder {
            recorder.event(EngineCall::Admin(token, &command));
        }
        self.stirred = true;
        self.controller.admin(token, command);
    }

    /// Is there a reason to call [`Control::advance`] at this time?
    #[must_use]
    #[inline]
    pub fn wants_advance(&self, now: Instant) -> bool {
        self.stirred || self.next_deadline().is_some_and(|at| at <= now)
    }

    /// Let the engine decide.
    #[inline]
    pub fn advance(&mut self, now: Instant, actions: &mut Actions) {
        self.stirred = false;
        self.controller.advance(now, actions);
        if let Some(recorder) = &mut self.recorder {
            recorder.advanced(now, actions);
        }
        // Requests that ended have made room.
        while let Some(request) = self.deferred.front().copied() {
            if !self.try_submit(request) {
                break;
            }
            self.deferred.pop_front();
        }
    }

    /// When the engine wants to be called next, if nothing happens before.
    #[must_use]
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.controller.next_deadline().map(|(at, _)| at)
    }

    /// Was something handed in since the last [`Control::advance`]?
    #[must_use]
    #[inline]
    pub fn is_stirred(&self) -> bool {
        self.stirred
    }

    /// The arrays that run, spans of nested ones included.
    #[must_use]
    pub fn arrays(&self) -> Vec<ArrayId> {
        self.controller.arrays().collect()
    }

    /// The last decisions, oldest first.
    #[must_use]
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.controller.trace().copied().collect()
    }

    /// Keep the last `count` steps of host requests from now on; 0 keeps none.
    pub fn keep_steps(&mut self, count: u32) {
        self.controller.keep_steps(count);
    }

    /// The steps that are kept, the oldest first, and how many there were in all; none if they are not kept.
    #[must_use]
    pub fn steps(&self) -> Option<(Vec<Step>, u64)> {
        Some((self.controller.steps().copied().collect(), self.controller.steps_traced()?))
    }

    /// The load of a drive until now.
    #[must_use]
    pub fn drive_load(&self, drive: DriveId, now: Instant) -> DriveLoad {
        self.controller.drive_load(drive, now).unwrap_or_default()
    }

    /// Requests of hosts inside an array until now.
    #[must_use]
    pub fn host_load(&self, array: ArrayId, now: Instant) -> Occupied {
        self.controller.host_load(array, now).unwrap_or_default()
    }

    /// The status of an array.
    #[must_use]
    pub fn status(&self, array: ArrayId) -> Option<ArrayStatus> {
        self.controller.status(array)
    }

    /// The places of an array's content: see [`Controller::content_places`].
    #[must_use]
    pub fn content_places(&self, array: ArrayId, at: Sectors, len: Sectors) -> ContentPlaces {
        self.controller.content_places(array, at, len)
    }

    /// Are zeroes written faster than data? See [`Controller::zeroes_are_fast`].
    #[must_use]
    pub fn zeroes_are_fast(&self, array: ArrayId) -> bool {
        self.controller.zeroes_are_fast(array)
    }

    /// What a change of an array's shape would do: see [`Controller::plan_reshape`].
    ///
    /// # Errors
    /// Why the change cannot begin.
    pub fn plan_reshape(
        &self,
        array: ArrayId,
        goal: ReshapeGoal,
        joining: &[Superblock],
    ) -> Result<ReshapePlan, AdminError> {
        self.controller.plan_reshape(array, goal, joining)
    }

    /// The status of the cache.
    #[must_use]
    pub fn cache(&self) -> Option<CacheStatus> {
        self.controller.cache_status()
    }

    /// The status of the journal.
    #[must_use]
    pub fn journal(&self) -> Option<JournalStatus> {
        self.controller.journal_status()
    }

    /// Does the journal protect the writes of an array?
    ///
    /// # Errors
    /// The reason if it does not.
    pub fn protection(&self, array: ArrayId) -> Result<(), Unprotected> {
        self.controller.journal_protection(array)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.end();
        }
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Control({} requests deferred, recorded: {})", self.deferred.len(), self.recorder.is_some())
    }
}
