//! Checks by schedule: an optimal, idle array is checked when the check is due, in the window.
//!
//! A check that outlasts the window is paused until the next one. The rate is the array's `scrub.rate`.

use std::collections::BTreeMap;

use openraid_config::{DesiredSchedule, ScheduleTask};

use super::Server;
use crate::control::Command;
use crate::events::{plain, News};
use crate::history::last_checks::{CheckWord, OutcomeModel};
use crate::model::{ArrayModel, HealthWord, TaskModel};
use openraid_status::EventName;

/// Pause after an incomplete check: a day, or less if the schedule is shorter.
const AFTER_ABORT_SECONDS: u64 = 86_400;

/// Pause after a refusal.
const AFTER_REFUSAL_SECONDS: u64 = 3600;

/// Maximum distance of a stored time in the future that is accepted.
const CLOCK_SLACK_SECONDS: u64 = 86_400;

/// The work of schedules.
#[derive(Debug, Default)]
pub(super) struct ScheduleWork {
    /// Checks that schedules began: is the check paused, by the array's name.
    running: BTreeMap<String, bool>,
    /// The time of a refused step, by the array's name.
    refused: BTreeMap<String, u64>,
}

impl ScheduleWork {
    /// An array has another name.
    pub(super) fn rename(&mut self, name: &str, to: &str) {
        if let Some(paused) = self.running.remove(name) {
            self.running.insert(to.to_owned(), paused);
        }
    }
}

/// The next step for an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Begin,
    Pause,
    Resume,
}

impl Server {
    /// Begin, pause and resume checks of these arrays by the schedules.
    pub fn follow_schedules(&self, arrays: &[ArrayModel]) {
        let mut schedules = self.schedules();
        schedules.retain(|schedule| schedule.task == ScheduleTask::Check);
        if schedules.is_empty() || self.access != super::ServerAccess::ReadWrite {
            return;
        }
        let now = openraid_sys::clock::wall_seconds();
        for array in arrays {
            let of_array =
                |schedule: &&DesiredSchedule| schedule.arrays.is_empty() || schedule.arrays.contains(&array.name);
            for schedule in schedules.iter().filter(of_array) {
                let (paused, refused) = {
                    let scheduled = &self.state().scheduled;
                    (scheduled.running.get(&array.name).copied(), scheduled.refused.get(&array.name).copied())
                };
                if refused.is_some_and(|at| now.saturating_sub(at) < AFTER_REFUSAL_SECONDS) {
                    continue;
                }
                let step = step(array, schedule, paused, now);
                let news = step.and_then(|step| self.carry_out_step(array, schedule, step, now));
                if news.is_some() {
                    self.add_news(news.into_iter().collect());
                    break;
                }
                if paused.is_some() && check_of(array).is_none() {
                    self.state().scheduled.running.remove(&array.name);
                }
            }
        }
    }

    fn carry_out_step(&self, array: &ArrayModel, schedule: &DesiredSchedule, step: Step, now: u64) -> Option<News> {
        // An administrator's command has priority: the next tick tries again.
        let _one_at_a_time = self.changing.try_lock().ok()?;
        let name = array.name.clone();
        let (command, text) = match step {
            Step::Begin => (Command::Check { array: name.clone(), kind: CheckWord::Check }, "begins a check"),
            Step::Pause => (Command::Pause { array: name.clone() }, "pauses the check until the next window"),
            Step::Resume => (Command::Resume { array: name.clone() }, "resumes the check"),
        };
        let done = self.carry_out(command);
        let text = match &done {
            Ok(_) => format!("{name}: the schedule {} {text}", schedule.name),
            Err(failure) => format!("{name}: the schedule {}: {}", schedule.name, failure.text()),
        };
        let scheduled = &mut self.state().scheduled;
        if done.is_ok() {
            scheduled.running.insert(name.clone(), step == Step::Pause);
        } else {
            scheduled.refused.insert(name.clone(), now);
        }
        Some(News { array: Some(name), ..plain(EventName::Schedule, text) })
    }
}

fn check_of(array: &ArrayModel) -> Option<&TaskModel> {
    array.tasks().map(|(_, task)| task).find(|task| task.kind.is_check())
}

/// The next step for an array. `paused` is known for a check that a schedule began.
fn step(array: &ArrayModel, schedule: &DesiredSchedule, paused: Option<bool>, now: u64) -> Option<Step> {
    let is_open = schedule.is_open(now);
    match (check_of(array), paused) {
        (Some(_), Some(false)) if !is_open => return Some(Step::Pause),
        (Some(_), Some(true)) if is_open => return Some(Step::Resume),
        _ => {}
    }
    let is_well = array.health == HealthWord::Optimal && array.is_synced() && array.tasks().next().is_none();
    // A set with bad ranges may survive no further loss, and a check is what finds out.
    let has_bad = |set: &ArrayModel| set.members.iter().any(|member| member.bad_ranges > 0);
    let is_redundant = array.sets().into_iter().all(|set| set.survives > 0 || has_bad(set));
    (is_open && is_well && is_redundant && is_due(array, schedule, now)).then_some(Step::Begin)
}

fn is_due(array: &ArrayModel, schedule: &DesiredSchedule, now: u64) -> bool {
    array.sets().into_iter().any(|set| {
        set.last_check.as_ref().is_none_or(|last| {
            let is_complete = matches!(last.outcome, OutcomeModel::Clean | OutcomeModel::Mismatches { .. });
            let every =
                if is_complete { schedule.every_seconds } else { schedule.every_seconds.min(AFTER_ABORT_SECONDS) };
            is_over(last.at_seconds, every, now)
        })
    })
}

/// Has this time passed since then? A begin in the future was written by a clock that has been set back since; the real
/// time is unknown, and counts as long ago.
pub(super) fn is_over(since: u64, seconds: u64, now: u64) -> bool {
    now.saturating_sub(since) >= seconds || since > now.saturating_add(CLOCK_SLACK_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_puts_no_check_off_for_longer_than_a_day() {
        let day = 86_400;
        assert!(!is_over(100 * day, 7 * day, 106 * day) && is_over(100 * day, 7 * day, 107 * day));
        // A step back of an hour right after a check does not begin another one; a clock that was years ahead does.
        assert!(!is_over(100 * day, 7 * day, 100 * day - 3600));
        assert!(is_over(20_000 * day, 7 * day, 100 * day));
        assert!(!is_over(100 * day, 7 * day, 101 * day) && is_over(0, u64::MAX, u64::MAX));
    }
}
