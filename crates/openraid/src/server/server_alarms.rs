//! Alarms of the arrays and the server, and the events of a start.

use std::time::Instant;

use openraid_management::Validity;
use openraid_runtime::service::ServiceStatus;

use super::array_model::ServedArray;
use super::certificates;
use super::spares::SpareAttempts;
use super::start::StartReport;
use super::{start_problems, Server, State};
use crate::alarms::test_alarm::test;
use crate::alarms::{conditions, AlarmModel, AlarmSubject, Condition};
use crate::control::ServerAnswer;
use crate::events::Severity;
use crate::events::{plain, News};
use crate::failure::{About, ArrayLabel, Failure, Obstacle};
use crate::model::{ArrayModel, HealthWord, JournalModel, StateWord};
use crate::output::array::state_line;
use crate::quantity::counted;
use crate::registry::{raw_drive_number, RegisteredArray};
use openraid_status::alarm::DriveStep;
use openraid_status::shell_quoting::command;
use openraid_status::EventName;
use openraid_units::ArrayLevel;

/// Faults of a server that its status does not show.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// Start failures, and deviations from the desired state.
    start: Vec<Failure>,
    /// Why the registry cannot be read, so that the recorded arrays are not known.
    pub(super) registry: Option<String>,
    /// Arrays that should be served.
    pub(super) expected: Vec<RegisteredArray>,
    /// Why the last reload refused the configuration file.
    configuration: Option<String>,
    /// The journal device that had lost entries when the journal was opened, and its damage in words.
    pub(super) journal_half: Option<(String, String)>,
    /// The certificates in force.
    pub(super) certificates: Vec<Validity>,
}

impl Troubles {
    /// An array is served: the reasons why it, or one of its members, could not be started before are over.
    pub(super) fn array_started(&mut self, served: &ServedArray, members: &[String]) {
        self.start.retain(|why| match &why.about {
            About::Array(array) | About::Settings(array) => !served.has(array),
            About::Member(member) => !members.contains(member),
            About::Unnamed => true,
        });
    }

    /// The last try to start an array failed: its reason replaces that of an earlier one.
    pub(super) fn not_started(&mut self, array: ArrayLabel, why: Failure) {
        self.start.retain(|known| known.about.array().is_none_or(|known| !known.is(&array)));
        self.start.push(why.of_array(array));
    }

    /// Why this array could not be started.
    pub(super) fn reason(&self, entry: &RegisteredArray) -> Option<String> {
        let array = entry.label();
        let is_it = |why: &&Failure| why.about.not_started().is_some_and(|known| known.is(&array));
        self.start.iter().find(is_it).map(Failure::reason)
    }
}

impl Server {
    /// The events of the start. Every fault is an alarm from now on.
    pub fn alarms_at_start(&self, taken: &StartReport, expected: Vec<RegisteredArray>) -> Vec<News> {
        let faults = taken.failed.iter().filter(|failure| failure.obstacle != Obstacle::Setting);
        let problems = start_problems::by_thing(faults.cloned().collect(), &expected);
        {
            let mut state = self.state();
            state.troubles.start.clone_from(&problems);
            state.troubles.expected = expected;
            state.identify_expected();
        }
        let arrays = self.arrays().unwrap_or_default();
        self.server_alarms();
        let count = counted(arrays.len() as u64, "array", "arrays");
        let mut news = vec![plain(EventName::ServerStarted, format!("the server has started with {count}"))];
        for array in &arrays {
            let of = |event, text: String| {
                let text = format!("{}: {text}", array.name);
                News { array: Some(array.name.clone()), ..plain(event, text) }
            };
            if let Some(forced) = &array.forced {
                news.push(of(
                    EventName::ForcedStart,
                    format!("started by force: {}", forced.trim_end_matches([';', ' '])),
                ));
            }
            match array.health {
                HealthWord::Optimal | HealthWord::Offline => {}
                HealthWord::Degraded => {
                    let level = Some(Severity::of_degraded(array.survives));
                    news.push(News {
                        level,
                        ..of(EventName::DegradedArray, format!("at the start {}", state_line(array)))
                    });
                }
                HealthWord::Failed => {
                    news.push(of(EventName::FailedArray, format!("at the start {}", state_line(array))))
                }
            }
        }
        news.extend(taken.recovered.iter().map(|line| plain(EventName::Recovered, line.clone())));
        news.extend(taken.left_out.iter().map(|member| plain(EventName::LeftOut, member.to_string())));
        news.extend(self.damaged_stores());
        let unknown = self.state().troubles.registry.clone();
        news.extend(unknown.map(|why| News {
            level: Some(Severity::Critical),
            ..plain(EventName::StartProblem, format!("no recorded array is served: {why}"))
        }));
        let state = self.state();
        news.extend(problems.into_iter().map(|why| {
            let start_problems::ProblemPlace { array, member, .. } = state.place_of(&why.about);
            News { array, member, ..plain(EventName::StartProblem, why.text()) }
        }));
        news
    }

    /// What an earlier server wrote down, and nothing can be read of.
    fn damaged_stores(&self) -> Vec<News> {
        let unreadable = self.read_events().map_or(0, |log| log.unreadable);
        let of_log = (unreadable > 0).then(|| {
            let files = counted(unreadable, "file", "files");
            let text = format!("{files} of the event log cannot be read: earlier events are lost");
            plain(EventName::EventsLost, text)
        });
        let of_alarms = self.alarms.was_damaged().then(|| {
            let text = "the stored alarms cannot be read: what holds is an alarm again, acknowledged or not; ended ones are lost";
            plain(EventName::StartProblem, text.into())
        });
        of_log.into_iter().chain(of_alarms).collect()
    }

    /// The registry cannot be read: none of its arrays is served, and all interfaces say so.
    pub fn note_unknown_arrays(&self, why: String) {
        self.state().troubles.registry = Some(why);
    }

    /// Read a registry that could not be read before. Its arrays are expected from then on.
    fn read_registry_again(&self) {
        if self.state().troubles.registry.is_none() {
            return;
        }
        let read = self.registry.entries();
        let troubles = &mut self.state().troubles;
        match read {
            Ok(entries) => {
                troubles.registry = None;
                let known = |entry: &RegisteredArray| troubles.expected.iter().any(|known| known.name == entry.name);
                let fresh: Vec<RegisteredArray> =
                    entries.into_iter().filter(|entry| entry.level != ArrayLevel::Jbod && !known(entry)).collect();
                troubles.expected.extend(fresh);
            }
            Err(failure) => troubles.registry = Some(failure.text()),
        }
    }

    /// Add the alarms of an array to its model.
    pub(super) fn add_alarms(
        &self,
        model: &mut ArrayModel,
        served: &ServedArray,
        status: &ServiceStatus,
        state: &State,
    ) {
        let mut found = conditions::of_array(model);
        found.extend(missing_spares(model, served, state));
        found.extend(super::departed_members::staying_out(model, served, state));
        found.extend(super::drive_care::conditions(model, status, state));
        found.extend(super::scheduled_patrols::conditions(model, state));
        found.extend(super::displaced_files::conditions(model, state));
        found.extend(super::refused_hosts::condition(model, served));
        found.extend(state.reshapes.condition(model, &served.sets(), Instant::now()));
        model.alarms = self.alarms.observe(&subject(model), &found);
    }

    /// An event shows a state: it may be over before the next look.
    pub(super) fn glimpse(&self, news: &News) {
        let Some(found) = glimpsed(news) else { return };
        // Under this lock the array is not taken away: its next look ends the states that are over.
        let state = self.state();
        let Some(name) = &found.array else { return self.alarms.glimpse(None, &found) };
        if let Some(served) = state.arrays.iter().find(|served| served.name == *name) {
            let subject = AlarmSubject::Array(served.key());
            self.alarms.glimpse(Some(&subject), &Condition { uuid: served.uuid(), ..found.clone() });
        }
    }

    /// A command stopped the array: end its alarms here.
    pub(super) fn end_alarms(&self, served: &ServedArray) {
        self.state().troubles.expected.retain(|entry| !is_served(served, &entry.name, entry.uuid.as_deref()));
        self.end_states(served);
    }

    /// End the alarms of an array that is not served now.
    pub(super) fn end_states(&self, served: &ServedArray) {
        self.alarms.observe(&AlarmSubject::Array(served.key()), &[]);
    }

    /// The result of the last read of the configuration file: why it was refused, if it was.
    pub fn note_configuration(&self, refused: Option<String>) {
        self.state().troubles.configuration = refused;
    }

    /// Alarms of the server itself.
    pub(super) fn server_alarms(&self) -> Vec<AlarmModel> {
        let journal = self.journal_model().ok().flatten();
        let mut found = journal.as_ref().map(conditions::of_journal).unwrap_or_default();
        {
            let state = self.state();
            found.extend(journal.iter().flat_map(|journal| super::displaced_files::of_journal(journal, &state)));
            found.extend(state.troubles.start.iter().map(|why| state.start_problem(why)));
            found.extend(state.troubles.registry.iter().map(|why| Condition {
                member: Some("registry".into()),
                level: Severity::Critical,
                ..Condition::of_server(EventName::StartProblem, format!("no recorded array is served: {why}"))
            }));
            found.extend(journal.as_ref().and_then(|journal| damaged_half(journal, &state)));
            found.extend(state.troubles.configuration.iter().map(|why| Condition {
                next_step: Some("openraid config check".into()),
                ..Condition::of_server(EventName::ConfigurationRefused, why.clone())
            }));
            found.extend(certificates::conditions(&state.troubles.certificates, openraid_sys::clock::wall_seconds()));
            found.extend(super::drive_care::of_server(&state));
            found.extend(spares_for_none(&state));
            found.extend(state.missing().map(|entry| super::offline_arrays::condition(entry, &state)));
        }
        found.extend(self.console_conditions());
        found.extend(self.alarms.failing_sinks().into_iter().map(|(sink, why)| Condition {
            next_step: Some(command("alarms test", [&sink])),
            member: Some(sink),
            ..Condition::of_server(EventName::SinkFailed, format!("alarms do not arrive: {why}"))
        }));
        if self.alarms.fails() {
            let text = "alarms cannot be stored: they are lost if the server ends".into();
            found.push(Condition::of_server(EventName::StateUnwritable, text));
        }
        found.extend(self.registry.unwritten().1.map(|why| Condition {
            member: Some("registry".into()),
            ..Condition::of_server(
                EventName::StateUnwritable,
                format!("{why}; it is tried again until the server ends, and is lost then"),
            )
        }));
        self.alarms.observe_server(&found)
    }

    /// Arrays that should be served and are not: name and UUID.
    pub(super) fn disappeared(&self) -> Vec<(String, Option<String>)> {
        self.state().missing().map(|entry| (entry.name.clone(), entry.uuid.clone())).collect()
    }

    /// Is this recorded array served? Raw drives are served under names of their own.
    pub fn has_array(&self, entry: &RegisteredArray) -> bool {
        let state = self.state();
        let is_own = |served: &ServedArray| match &entry.uuid {
            Some(_) => is_served(served, &entry.name, entry.uuid.as_deref()),
            None if served.name == entry.name => true,
            None => served.uuid().is_none() && raw_drive_number(&served.name, &entry.name).is_some(),
        };
        state.arrays.iter().any(is_own)
    }

    /// Was an array of this name requested, and never served?
    pub fn is_missing(&self, name: &str) -> bool {
        self.state().missing().any(|entry| entry.name == name)
    }

    /// Check all states, so that alarms begin and end without a query. Returns all arrays.
    pub fn watch(&self) -> Vec<ArrayModel> {
        let news = self.alarms.sink_news().into_iter().map(|(sink, why)| match why {
            Some(why) => plain(EventName::SinkFailed, format!("sink {sink}: {why}; it is tried again")),
            None => plain(EventName::SinkBack, format!("sink {sink}: alarms arrive again")),
        });
        self.add_news(news.collect());
        self.registry.write_again();
        self.read_registry_again();
        // An error means that the service is ending.
        let arrays = self.arrays().unwrap_or_default();
        self.server_alarms();
        arrays
    }

    /// Send alarms to the sinks of the configuration file from now on.
    pub fn follow_sinks(&self) -> Vec<String> {
        self.in_force().map(|in_force| self.alarms.set_sinks(&in_force.desired.sinks)).unwrap_or_default()
    }

    /// Send a test alarm to the sink of this name, or to all.
    pub(super) fn test_sinks(&self, name: Option<&str>) -> Result<ServerAnswer, Failure> {
        let sinks = self.in_force().map(|in_force| in_force.desired.sinks.clone()).unwrap_or_default();
        test(&sinks, name).map(ServerAnswer::Tested)
    }

    /// All alarms, ended ones included.
    pub(super) fn all_alarms(&self) -> Result<Vec<AlarmModel>, Failure> {
        self.arrays()?;
        self.server_alarms();
        Ok(self.alarms.all())
    }

    pub(super) fn acknowledge_alarms(&self, which: &str) -> Vec<String> {
        self.watch();
        let known = self.alarms.acknowledge(which);
        if !known.is_empty() {
            self.add_news(vec![plain(EventName::AlarmAcknowledged, format!("acknowledged: {}", known.join(", ")))]);
        }
        known
    }
}

impl State {
    /// Arrays that should be served and are not.
    pub(super) fn missing(&self) -> impl Iterator<Item = &RegisteredArray> {
        let is_there = |entry: &RegisteredArray| {
            self.arrays.iter().any(|served| is_served(served, &entry.name, entry.uuid.as_deref()))
        };
        self.troubles.expected.iter().filter(move |entry| !is_there(entry))
    }

    /// An array that only the configuration file names is known by its identity once it is served: it may be renamed.
    fn identify_expected(&mut self) {
        for entry in self.troubles.expected.iter_mut().filter(|entry| entry.uuid.is_none()) {
            let served = self.arrays.iter().find(|served| served.name == entry.name);
            entry.uuid = served.and_then(ServedArray::uuid);
        }
    }
}

fn is_served(served: &ServedArray, name: &str, uuid: Option<&str>) -> bool {
    match uuid {
        Some(uuid) => served.uuid().as_deref() == Some(uuid),
        None => served.name == name,
    }
}

/// The state that an event shows, named as the conditions of an array name it.
fn glimpsed(news: &News) -> Option<Condition> {
    use EventName::{
        DegradedArray, DirtyLost, Fail, FailSpare, FailedArray, FlushFailed, JournalFull, JournalLost, NoRoom,
        RebuildStarted, ResyncStarted, SectorLost,
    };
    let event = EventName::named(news.event)?;
    let of_all = Condition {
        array: news.array.clone(),
        level: news.level.unwrap_or_else(|| event.level()),
        ..Condition::of_server(event, news.text.clone())
    };
    match event {
        JournalLost | JournalFull => Some(of_all),
        // Its name is not known: it is being stopped.
        _ if news.array.is_none() => None,
        DegradedArray | FailedArray => Some(of_all),
        RebuildStarted | ResyncStarted => Some(Condition { span: news.span, ..of_all }),
        Fail | FailSpare | NoRoom | SectorLost | FlushFailed | DirtyLost => {
            Some(Condition { span: news.span, slot: news.slot, member: news.member.clone(), ..of_all })
        }
        _ => None,
    }
}

/// The subject of an array's alarms.
pub fn subject(array: &ArrayModel) -> AlarmSubject {
    AlarmSubject::Array(array.uuid.clone().unwrap_or_else(|| array.name.clone()))
}

/// mdadm's SparesMissing: the file names a spare for this array, or for all, and the spare is not available.
fn missing_spares(model: &ArrayModel, served: &ServedArray, state: &State) -> Vec<Condition> {
    let Some(in_force) = &state.in_force else { return Vec::new() };
    let members = || model.sets().into_iter().flat_map(|set| &set.members);
    let lacks = members().any(|member| member.state == StateWord::Missing);
    let has = |drive: &str| members().any(|member| member.member.as_deref() == Some(drive));
    let spare_add = |drive: &str| command("spare add", [&model.name, drive]);
    let of = |drive: &str, next: String, text: String| Condition {
        array: Some(model.name.clone()),
        uuid: model.uuid.clone(),
        member: Some(drive.to_owned()),
        next_step: Some(next),
        ..Condition::of_server(EventName::SparesMissing, format!("{}: {text}", model.name))
    };
    let mut found = Vec::new();
    for spare in &in_force.desired.spares {
        let drive = &spare.member;
        match &spare.whom {
            openraid_config::SpareFor::Array { name, .. } if *name == served.name && !has(drive) => {
                let text = format!("the spare {drive} of the configuration file is not in the array");
                found.push(of(drive, spare_add(drive), text));
            }
            // A spare that has taken over is a member.
            openraid_config::SpareFor::All if lacks && !has(drive) => {
                // A drive of another array does not help here.
                let next = |why: &Failure| match why.obstacle {
                    Obstacle::UsedHere => (command("add", [&model.name, "DRIVE"]), Some(DriveStep::Add)),
                    _ => (spare_add(drive), None),
                };
                found.extend(state.tried_spares.refused(drive).map(|why| {
                    let (next, drive_step) = next(why);
                    Condition { drive_step, ..of(drive, next, format!("a member is missing, and {why}")) }
                }));
            }
            _ => {}
        }
    }
    found
}

/// A device of the journal had lost entries. It has them again, but it may lose others.
fn damaged_half(journal: &JournalModel, state: &State) -> Option<Condition> {
    let (device, why) = state.troubles.journal_half.as_ref()?;
    let is_used = journal.devices.iter().any(|entry| entry.device == *device);
    is_used.then(|| Condition {
        member: Some(device.clone()),
        next_step: Some("openraid journal show".into()),
        ..Condition::of_server(
            EventName::JournalUnreadable,
            format!(
                "the journal device {device}: {why}; check it (smartctl, dmesg), and give the journal another one if it does so again"
            ),
        )
    })
}

/// Spares of the configuration file for arrays that neither exist nor are expected: after a rename, or a slip of the pen.
fn spares_for_none(state: &State) -> Vec<Condition> {
    let Some(in_force) = &state.in_force else { return Vec::new() };
    let is_known = |name: &str| {
        state.arrays.iter().any(|served| served.name == name)
            || state.troubles.expected.iter().any(|entry| entry.name == name)
    };
    let of = |spare: &openraid_config::DesiredSpare| {
        let openraid_config::SpareFor::Array { name, .. } = &spare.whom else { return None };
        let (drive, line) = (&spare.member, spare.line);
        let text = format!(
            "line {line} of the configuration file: the spare {drive} is for {name}, and no array has this name"
        );
        (!is_known(name)).then(|| Condition {
            member: Some(drive.clone()),
            next_step: Some("openraid list".into()),
            ..Condition::of_server(EventName::SparesMissing, text)
        })
    };
    in_force.desired.spares.iter().filter_map(of).collect()
}

impl SpareAttempts {
    /// Why the last attempt to add this spare failed.
    fn refused(&self, member: &str) -> Option<&Failure> {
        self.last(member).and_then(|tried| tried.refused.as_ref())
    }
}
