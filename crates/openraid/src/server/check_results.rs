//! Storing the results of checks.

use std::sync::PoisonError;

use openraid_core::admin::{AdminCommand, AdminError, TaskKind};
use openraid_runtime::service::{ArrayView, ServiceError, ServiceStatus};
use openraid_status::shell_quoting::command_with;
use openraid_units::{ArrayId, Instant};

use super::Server;
use crate::control::ServerAnswer;
use crate::failure::{Exit, Failure};
use crate::history::last_checks::{CheckModel, CheckWord, Checks};
use crate::history::past_checks::{self, CheckEntry, CheckHistory};
use crate::model::ArrayModel;
use crate::output;

/// The state of an array's checks at the last look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CheckState {
    /// A check has been running since this time.
    Running(Instant),
    /// A check has ended.
    Ended(u32, Instant),
}

impl CheckState {
    const fn at(self) -> Instant {
        match self {
            Self::Running(at) | Self::Ended(_, at) => at,
        }
    }

    fn of(view: &ArrayView) -> Option<Self> {
        let running = view.status.task.as_ref().filter(|task| task.scrub.is_some());
        let ended = || view.status.last_scrub.as_ref().map(|ended| Self::Ended(ended.number, ended.at));
        running.map(|task| Self::Running(task.since)).or_else(ended)
    }
}

impl Server {
    /// Store the changes of checks since the last call.
    ///
    /// News and commands call this at the same time. If another thread has seen a change first, this waits until the
    /// change is in the file: an answered command is stored.
    pub(super) fn note_checks(&self, status: &ServiceStatus) {
        let _one_at_a_time = self.noting_checks.lock().unwrap_or_else(PoisonError::into_inner);
        let at = openraid_sys::clock::wall_seconds();
        let (mut fresh, mut past) = (Vec::new(), Vec::new());
        {
            let mut state = self.state();
            let state = &mut *state;
            state.seen_checks.retain(|array, _| status.arrays.iter().any(|view| view.status.array == *array));
            for view in &status.arrays {
                let Some(seen) = CheckState::of(view) else { continue };
                let Some(superblock) = &view.status.superblock else { continue };
                // A status that was read earlier, but arrives later, has nothing new.
                let known = state.seen_checks.get(&view.status.array).copied();
                if known.is_some_and(|known| known == seen || known.at() > seen.at()) {
                    continue;
                }
                state.seen_checks.insert(view.status.array, seen);
                let uuid = superblock.set_uuid.to_string();
                let check = check_now(view, at);
                state.checks.put(&uuid, check.clone());
                let ends_newest = matches!((known, seen), (Some(CheckState::Running(_)), CheckState::Ended(..)));
                past.push(CheckEntry {
                    uuid: uuid.clone(),
                    past: past_checks::past(&check, view, status),
                    ends_newest,
                });
                fresh.push((uuid, check));
            }
        }
        if fresh.is_empty() {
            return;
        }
        // If the file cannot be written, a warning says so; nothing else depends on it.
        let kept = Checks::keep(&self.registry, &fresh);
        if let Err(failure) = kept.and_then(|()| CheckHistory::keep(&self.registry, past)) {
            output::warn(&failure.text());
        }
    }

    /// Begin a check or repair of all sets of an array that can be compared.
    pub(super) fn check(&self, name: &str, kind: CheckWord) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let mut began = 0;
        let mut left_out = Vec::new();
        let sets = served.sets();
        for (span, array) in sets.iter().copied().enumerate() {
            match self.handle.admin(AdminCommand::Scrub { array, mode: kind.mode() }) {
                Ok(_) => began += 1,
                Err(ServiceError::Admin(AdminError::NotComparable(why))) => left_out.push((span, why.text())),
                Err(ServiceError::Admin(AdminError::TaskRuns(task))) => return Err(task_runs(name, task)),
                Err(error) => return Err(Failure::from(error).of(name)),
            }
        }
        self.note_checks(&self.status()?);
        let what = kind.text();
        if began == 0 {
            let why = left_out.first().map_or("", |(_, why)| why);
            return Err(Failure::new(Exit::NotComparable, format!("{name}: nothing compared: {why}")));
        }
        let mut text =
            format!("the {what} of {name} runs; watch it with `{}`", command_with("show", [name], "--follow"));
        for (span, why) in left_out {
            text.push_str(&format!("\n  span {span} is left out: {why}"));
        }
        self.done(text, name)
    }

    /// End the check or repair of all sets of an array that run one.
    pub(super) fn stop_check(&self, name: &str) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let mut what = None;
        for array in served.sets() {
            let view = status.arrays.iter().find(|view| view.status.array == array);
            let mode = view.and_then(|view| view.status.task.as_ref()?.scrub).map_or(CheckWord::Check, CheckWord::from);
            match self.handle.admin(AdminCommand::StopScrub { array }) {
                Ok(_) => what = Some(mode.text()),
                Err(ServiceError::Admin(AdminError::NoScrub)) => {}
                Err(error) => return Err(Failure::from(error).of(name)),
            }
        }
        let Some(what) = what else {
            return Err(Failure::refused(AdminError::NoScrub).of(name));
        };
        self.done(format!("{what} of {name} stopped"), name)
    }
}

/// A check cannot begin during another task. Only a check or repair can be stopped.
fn task_runs(name: &str, task: TaskKind) -> Failure {
    let what = task.name();
    let or_stop = match task {
        TaskKind::Check | TaskKind::Repair => format!(", or stop it with `{}`", command_with(what, [name], "--stop")),
        TaskKind::Rebuild | TaskKind::Replace | TaskKind::Resync | TaskKind::Reshape => String::new(),
    };
    let follow = command_with("show", [name], "--follow");
    Failure::refused(format!("{name}: a {what} runs; wait for its end with `{follow}`{or_stop}"))
}

fn check_now(view: &ArrayView, at: u64) -> CheckModel {
    let status = &view.status;
    match (&status.last_scrub, &status.task) {
        (Some(ended), _) => CheckModel::of(ended, at),
        (None, task) => {
            let mode = task.as_ref().and_then(|task| task.scrub).map_or(CheckWord::Check, CheckWord::from);
            let total = task.as_ref().map_or(0, |task| task.total.bytes().get());
            CheckModel::begun(mode, at, status.events, total)
        }
    }
}

/// Add the results of the last checks to an array and its spans; nothing while one runs.
pub fn add_checks(array: &mut ArrayModel, checks: &Checks) {
    for span in &mut array.spans {
        add_checks(span, checks);
    }
    let runs = array.task.as_ref().is_some_and(|task| task.kind.is_check());
    if let (false, Some(uuid)) = (runs, &array.uuid) {
        array.last_check = checks.of(uuid, array.events).cloned();
        array.last_complete_check = checks.complete_of(uuid, array.events).cloned();
    }
    let found = |set: &ArrayModel| set.last_check.as_ref().and_then(CheckModel::found);
    array.last_check_mismatches = array.sets().into_iter().map(found).try_fold(0, |sum, found| Some(sum + found?));
}

/// The states at the last look, by array.
pub(super) type SeenChecks = std::collections::HashMap<ArrayId, CheckState>;
