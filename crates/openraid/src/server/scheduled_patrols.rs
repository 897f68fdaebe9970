//! Patrol reads by schedule: the drives of an array are read one after the other, spares too, and nothing is compared.
//!
//! One array at a time. A patrol waits outside of its window, and while the array is not optimal or has a task. It
//! reads through its own descriptors, without the engine: unreadable ranges are reported, and a check repairs them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use openraid_config::{DesiredSchedule, ScheduleTask};
use openraid_runtime::member::{self, Place};
use openraid_status::care::{PatrolMemberModel, PatrolModel};
use openraid_status::shell_quoting::command;
use openraid_sys::{Direct, Use};
use openraid_units::Bytes;

use super::{Server, ServerAccess, State};
use crate::alarms::Condition;
use crate::care::patrol::{self, PatrolProgress, PatrolStep};
use crate::events::{plain, News};
use crate::history::patrols;
use crate::members::{options, spec, spins};
use crate::model::{ArrayModel, HealthWord, MemberModel, StateWord};
use crate::quantity::counted;
use openraid_status::EventName;

/// Interval at which a waiting patrol checks whether it may continue.
const WAIT: Duration = Duration::from_millis(500);
/// Pause before an incomplete patrol begins again: a day, or less if the schedule is shorter.
const AFTER_ABORT_SECONDS: u64 = 86_400;

/// The last patrol of each array, by its UUID.
pub(super) type LastPatrols = BTreeMap<String, Option<PatrolModel>>;

impl Server {
    /// Begin a patrol read if one of these arrays is due.
    pub fn begin_patrol(self: &Arc<Self>, arrays: &[ArrayModel]) {
        let schedules: Vec<DesiredSchedule> = self
            .schedules()
            .into_iter()
            .filter(|schedule| matches!(schedule.task, ScheduleTask::Patrol { .. }))
            .collect();
        if schedules.is_empty() || self.access != ServerAccess::ReadWrite || self.patrolling.load(Ordering::Relaxed) {
            return;
        }
        let now = openraid_sys::clock::wall_seconds();
        let due = schedules.iter().find_map(|schedule| {
            let array = arrays.iter().find(|array| {
                let is_meant = schedule.arrays.is_empty() || schedule.arrays.contains(&array.name);
                is_meant && schedule.is_open(now) && is_at_rest(array) && self.is_patrol_due(array, schedule, now)
            })?;
            Some((schedule.clone(), array.clone()))
        });
        let Some((schedule, array)) = due else { return };
        if self.patrolling.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = Arc::clone(self);
        let run = move || {
            server.patrol(&schedule, &array);
            server.patrolling.store(false, Ordering::Relaxed);
        };
        if thread::Builder::new().name("patrol".into()).spawn(run).is_err() {
            self.patrolling.store(false, Ordering::Relaxed);
        }
    }

    /// The last patrol of an array; the file is read once.
    fn last_patrol(&self, uuid: &str) -> Option<PatrolModel> {
        let known = self.state().patrols.get(uuid).cloned();
        known.unwrap_or_else(|| {
            let last = patrols::of(uuid, &self.registry).pop();
            self.state().patrols.insert(uuid.to_owned(), last.clone());
            last
        })
    }

    fn is_patrol_due(&self, array: &ArrayModel, schedule: &DesiredSchedule, now: u64) -> bool {
        let Some(uuid) = &array.uuid else { return false };
        self.last_patrol(uuid).is_none_or(|last| {
            let is_whole = last.ended_seconds.is_some();
            let every = if is_whole { schedule.every_seconds } else { schedule.every_seconds.min(AFTER_ABORT_SECONDS) };
            super::scheduled_checks::is_over(last.at_seconds, every, now)
        })
    }

    fn log_patrol(&self, array: &str, text: &str) {
        let news = News { array: Some(array.to_owned()), ..plain(EventName::Schedule, format!("{array}: {text}")) };
        self.add_news(vec![news]);
    }

    fn patrol(&self, schedule: &DesiredSchedule, array: &ArrayModel) {
        let (Some(uuid), ScheduleTask::Patrol { rate, ssd }) = (&array.uuid, schedule.task) else { return };
        let at_seconds = openraid_sys::clock::wall_seconds();
        let (ended_seconds, schedule_name) = (None, schedule.name.clone());
        let mut model = PatrolModel { at_seconds, ended_seconds, schedule: schedule_name, members: Vec::new() };
        self.keep_patrol(uuid, &model);
        self.log_patrol(&array.name, &format!("the schedule {} begins a patrol read", schedule.name));
        for line in array.sets().into_iter().flat_map(|set| &set.members) {
            let is_used = matches!(line.state, StateWord::InSync | StateWord::Spare);
            let Some(name) = line.member.as_ref().filter(|_| is_used) else { continue };
            let Ok(spec) = spec(name) else { continue };
            if !matches!(spec.place, Place::Path(_)) {
                continue;
            }
            let of_member = self.patrol_member(schedule, &array.name, line, name, (rate, ssd));
            let is_over = of_member.trouble.is_some() && self.may_go_on(schedule, &array.name).is_err();
            if of_member.errors > 0 || of_member.trouble.is_some() {
                let errors = counted(of_member.errors, "place", "places");
                let why = of_member.trouble.as_ref().map_or_else(String::new, |why| format!("; {why}"));
                self.log_patrol(&array.name, &format!("patrol read of {name}: {errors} cannot be read{why}"));
            }
            model.members.push(of_member);
            if is_over {
                return self.keep_patrol(uuid, &model);
            }
        }
        model.ended_seconds = Some(openraid_sys::clock::wall_seconds());
        self.keep_patrol(uuid, &model);
        let end = format!("the patrol read is finished{}", left_out_text(&model));
        self.log_patrol(&array.name, &end);
    }

    fn patrol_member(
        &self,
        schedule: &DesiredSchedule,
        array: &str,
        line: &MemberModel,
        name: &str,
        (rate, ssd): (Bytes, bool),
    ) -> PatrolMemberModel {
        let mut options = options(Use::Examine);
        options.direct = Direct::Try;
        let opened = spec(name).map_err(|failure| failure.text());
        let opened = opened.and_then(|spec| member::open(&spec, options).map_err(|error| error.to_string()));
        let left_out = opened.as_ref().ok().and_then(|opened| why_left_out(spins(opened), ssd));
        let found = match opened {
            _ if left_out.is_some() => PatrolProgress::default(),
            Err(why) => PatrolProgress { trouble: Some(why), ..PatrolProgress::default() },
            Ok(mut opened) => {
                let capacity = opened.info.capacity;
                let mut read = |at, into: &mut [u8]| opened.read_at(at, into).map_err(|error| error.to_string());
                let mut next = |_: &PatrolProgress| match self.may_go_on(schedule, array) {
                    Ok(true) => PatrolStep::Go,
                    Ok(false) => {
                        thread::sleep(WAIT);
                        PatrolStep::Wait
                    }
                    Err(why) => PatrolStep::Stop(why),
                };
                patrol::read(capacity, rate, &mut read, &mut next)
            }
        };
        PatrolMemberModel {
            member: name.to_owned(),
            slot: line.slot,
            serial: line.serial.clone(),
            read_bytes: found.at.bytes().get(),
            size_bytes: line.size_bytes.unwrap_or(0),
            errors: found.errors,
            first_error_bytes: found.first.map(|at| at.offset().bytes().get()),
            trouble: found.trouble,
            left_out: left_out.map(str::to_owned),
        }
    }

    /// May a patrol read now?
    ///
    /// # Errors
    /// It must end, and why.
    fn may_go_on(&self, schedule: &DesiredSchedule, array: &str) -> Result<bool, &'static str> {
        if !self.schedules().iter().any(|known| known.name == schedule.name && known.task == schedule.task) {
            return Err("the schedule was changed");
        }
        let array = self.array(array).map_err(|_| "the array is served no more")?;
        Ok(schedule.is_open(openraid_sys::clock::wall_seconds()) && is_at_rest(&array))
    }

    fn keep_patrol(&self, uuid: &str, model: &PatrolModel) {
        self.state().patrols.insert(uuid.to_owned(), Some(model.clone()));
        if let Err(failure) = patrols::keep(uuid, model, &self.registry) {
            crate::output::warn(&failure.text());
        }
    }
}

/// Why a patrol leaves out a drive, if it does. A drive of unknown medium, such as a file, is read.
fn why_left_out(spins: Option<bool>, ssd: bool) -> Option<&'static str> {
    (spins == Some(false) && !ssd).then_some("it is an SSD, and the schedule does not say ssd = true")
}

/// The members that were left out, as the end of a sentence.
fn left_out_text(patrol: &PatrolModel) -> String {
    let count = patrol.members.iter().filter(|member| member.left_out.is_some()).count() as u64;
    let are = match count {
        0 => return String::new(),
        1 => "it is an SSD",
        _ => "they are SSDs",
    };
    let members = counted(count, "member", "members");
    format!("; {members} left out: {are}, and the schedule does not say ssd = true")
}

/// Is it optimal, and without a task?
fn is_at_rest(array: &ArrayModel) -> bool {
    array.health == HealthWord::Optimal && array.tasks().next().is_none()
}

/// Conditions for ranges that the last patrol could not read.
pub(super) fn conditions(model: &ArrayModel, state: &State) -> Vec<Condition> {
    let last = model.uuid.as_ref().and_then(|uuid| state.patrols.get(uuid)).and_then(Option::as_ref);
    let members = last.into_iter().flat_map(|last| &last.members).filter(|member| member.errors > 0);
    let is_in = |name: &str| super::departed_members::has(model, name);
    let conditions = members.filter(|member| is_in(&member.member)).map(|member| {
        let places = counted(member.errors, "place", "places");
        let text = format!("{}: {}: the last patrol read could not read {places}", model.name, member.member);
        Condition {
            array: Some(model.name.clone()),
            uuid: model.uuid.clone(),
            slot: member.slot,
            member: Some(member.member.clone()),
            next_step: Some(command("check", [&model.name])),
            ..Condition::of_server(EventName::PatrolFound, text)
        }
    });
    conditions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spins: Option<bool>, ssd: bool) -> PatrolMemberModel {
        PatrolMemberModel {
            member: "/dev/sdx".into(),
            slot: Some(0),
            serial: None,
            read_bytes: 0,
            size_bytes: 0,
            errors: 0,
            first_error_bytes: None,
            trouble: None,
            left_out: why_left_out(spins, ssd).map(str::to_owned),
        }
    }

    fn text(facts: &[Option<bool>], ssd: bool) -> String {
        let members = facts.iter().map(|spins| read(*spins, ssd)).collect();
        let (at_seconds, schedule) = (1, "reads".to_owned());
        left_out_text(&PatrolModel { at_seconds, ended_seconds: None, schedule, members })
    }

    #[test]
    fn ssds_are_left_out_unless_the_schedule_wants_them_and_an_unknown_medium_is_read() {
        let (disk, ssd, unknown) = (Some(true), Some(false), None);
        assert_eq!(text(&[disk, unknown], false), "");
        let why = "and the schedule does not say ssd = true";
        assert_eq!(text(&[disk, ssd, unknown], false), format!("; 1 member left out: it is an SSD, {why}"));
        assert_eq!(text(&[ssd, ssd, disk], false), format!("; 2 members left out: they are SSDs, {why}"));
        assert_eq!(text(&[disk, ssd, unknown], true), "");
    }

    #[test]
    fn a_device_whose_medium_the_kernel_does_not_say_is_read() {
        let path = std::env::temp_dir().join(format!("openraid-medium-{}", std::process::id()));
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a file");
        let member = openraid_sys::MemberFile::open(&path, Use::Examine, Direct::Never).expect("it opens");
        std::fs::remove_file(&path).expect("it is there");
        let device = |rotational| openraid_sys::Facts { block_device: true, rotational, ..member.facts().clone() };
        let left_out = |rotational| why_left_out(crate::members::spins_by(&device(rotational)), false).is_some();
        assert_eq!([None, Some(true), Some(false)].map(left_out), [false, false, true]);
    }

    #[test]
    fn the_medium_of_a_plain_file_is_unknown() {
        let path = std::env::temp_dir().join(format!("openraid-patrol-{}", std::process::id()));
        std::fs::File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a file");
        let spec = spec(path.to_str().expect("UTF-8")).expect("a path");
        let opened = member::open(&spec, options(Use::Examine)).expect("it opens");
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!((spins(&opened), why_left_out(spins(&opened), false)), (None, None));
    }
}
