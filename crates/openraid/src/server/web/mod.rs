//! The HTTP interfaces of a server: requests of the crate `management` get the same answers as those of the control
//! socket.

#[cfg(test)]
mod interface_matrix;
mod late_start;
mod new_arrays;
#[cfg(test)]
mod roles;
mod stripe_map;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use openraid_management::{
    CommandResult, Controller, Creation, EventModel, KeptInput, KeptModel, Management, OfferModel, Options, PlaceModel,
    PlanModel, Refusal, ScheduleInput, SettingModel,
};

use openraid_status::alarm::AlarmModel;
use openraid_status::care::{PatrolModel, SetHistoryModel};
use openraid_status::schedules::ScheduleModel;
use openraid_status::sinks::{SinkModel, TestModel};

use openraid_management::lab::{ChoicesModel, JobInput, JobModel, LabModel, PredictionInput, PredictionModel};

use super::lab::Laboratory;
use super::stories::StoryQuery;
use super::Server;
use crate::alarms::sinks::post;
use crate::control::{Answerer, Command, ServerAnswer, ServerModel};
use crate::desired::model;
use crate::events::segments::EventEntry;
use crate::events::{plain, News};
use crate::events::{Event, EventLog};
use crate::failure::{Failure, Obstacle};
use crate::history::past_checks;
use crate::history::patrols;
use crate::model::{ArrayModel, JournalModel, LimitModel};
use crate::output::explain;
use crate::program_settings;
use openraid_status::{EventName, ReshapePlanModel, Role};

pub use late_start::start_or_retry;
pub(super) use late_start::LateConsole;

/// Events as they were read, and the times of the files then.
#[derive(Default)]
struct EventCache {
    stamps: Vec<(PathBuf, Option<SystemTime>)>,
    events: Arc<Vec<EventModel>>,
}

/// A server, as the HTTP interfaces see it.
struct Web {
    server: Arc<Server>,
    log: EventLog,
    folder: PathBuf,
    laboratory: Arc<Laboratory>,
    seen: Mutex<EventCache>,
}

/// Start the HTTP interfaces of a server.
///
/// # Errors
/// The address is taken, or the certificate cannot be read.
pub fn start(server: &Arc<Server>, mut options: Options) -> Result<Arc<Management>, Failure> {
    let folder = server.registry.folder_beside("events");
    options.folder = server.registry.folder_beside("management");
    let laboratory = Laboratory::at(server.registry.folder_beside("reports"));
    let web = Web {
        server: Arc::clone(server),
        log: EventLog::at(folder.clone()),
        folder,
        seen: Mutex::default(),
        laboratory,
    };
    let management = Management::start(options, Arc::new(web)).map_err(|error| Failure::failed(error.0))?;
    let management = Arc::new(management);
    let _ = server.management.set(Arc::clone(&management));
    Ok(management)
}

impl From<Failure> for OutgoingRefusal {
    fn from(failure: Failure) -> Self {
        let in_force = failure.obstacle == Obstacle::NotKept;
        Self(Refusal { exit: failure.exit, text: failure.text(), in_force })
    }
}

/// A failure on its way to the other crate.
struct OutgoingRefusal(Refusal);

fn refuse<T>(result: Result<T, Failure>) -> Result<T, Refusal> {
    result.map_err(|failure| OutgoingRefusal::from(failure).0)
}

fn done(answer: ServerAnswer) -> Result<CommandResult, Failure> {
    match answer {
        ServerAnswer::Done { text, array } => Ok(CommandResult { text, array }),
        ServerAnswer::Confirm { text, .. } => Err(Failure::refused(format!("{text}; repeat it with overwrite"))),
        _ => Err(Failure::failed("the server gave an answer to another question")),
    }
}

fn event(event: &Event) -> EventModel {
    let what = event.what.clone();
    EventModel {
        number: event.number,
        level: event.level,
        at_seconds: what.at_seconds,
        event: what.event,
        array: what.array,
        span: what.span,
        slot: what.slot,
        member: what.member,
        text: what.text,
        acknowledged: event.acknowledged,
    }
}

impl Web {
    /// The times at which the files of the log were written.
    fn stamps(&self) -> Vec<(PathBuf, Option<SystemTime>)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let stamp =
            |entry: fs::DirEntry| (entry.path(), entry.metadata().and_then(|metadata| metadata.modified()).ok());
        let mut stamps: Vec<_> = entries.map(stamp).collect();
        stamps.sort();
        stamps
    }
}

impl Controller for Web {
    fn server(&self) -> Result<ServerModel, Refusal> {
        refuse(self.server.describe())
    }

    fn arrays(&self) -> Result<Vec<ArrayModel>, Refusal> {
        refuse(self.server.wanted_arrays())
    }

    fn recorded_members(&self) -> Vec<String> {
        self.server.recorded_members()
    }

    fn journal(&self) -> Result<Option<Box<JournalModel>>, Refusal> {
        refuse(self.server.journal_model()).map(|journal| journal.map(Box::new))
    }

    fn limit(&self, array: &str) -> Result<LimitModel, Refusal> {
        refuse(self.server.limit(array))
    }

    fn clients(&self, array: &str) -> Result<u64, Refusal> {
        refuse(self.server.clients_of(array))
    }

    fn place(&self, array: &str, offset: u64) -> Result<PlaceModel, Refusal> {
        refuse(self.server.place(array, offset))
    }

    fn explain(&self, array: &str) -> Result<serde_json::Value, Refusal> {
        let both = self.server.array(array).and_then(|model| Ok((self.server.limit(array)?, model)));
        refuse(both.and_then(|(limit, model)| explain::document(&model, &limit)))
    }

    fn slowest(&self, array: &str, count: u64) -> Result<serde_json::Value, Refusal> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let found = self.server.watched(array, StoryQuery::Slowest(count));
        refuse(found.and_then(|found| explain::stories_document(array, &found)))
    }

    fn story(&self, array: &str, request: u64) -> Result<serde_json::Value, Refusal> {
        let found = self.server.watched(array, StoryQuery::Request(request));
        refuse(found.and_then(|found| explain::stories_document(array, &found)))
    }

    fn lab(&self) -> Result<LabModel, Refusal> {
        refuse(self.laboratory.look())
    }

    fn choices(&self) -> Result<ChoicesModel, Refusal> {
        refuse(self.laboratory.choices())
    }

    fn begin_job(&self, input: &JobInput, user: &str) -> Result<JobModel, Refusal> {
        refuse(self.laboratory.begin(input, user))
    }

    fn cancel_job(&self, number: u64) -> Option<JobModel> {
        self.laboratory.cancel(number)
    }

    fn report(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, Refusal> {
        refuse(self.laboratory.report(name, file))
    }

    fn remove_report(&self, name: &str) -> Result<bool, Refusal> {
        refuse(self.laboratory.remove(name))
    }

    fn predict(&self, input: &PredictionInput) -> Result<PredictionModel, Refusal> {
        // It opens the drives, as a plan does.
        let _one_at_a_time = self.server.changing.lock().unwrap_or_else(PoisonError::into_inner);
        refuse(self.laboratory.predict(input))
    }

    fn settings(&self) -> Result<serde_json::Value, Refusal> {
        let config = self.server.config().and_then(|answer| match answer {
            ServerAnswer::Config(config) => serde_json::to_value(config).map_err(Failure::failed),
            _ => Err(Failure::failed("the server gave an answer to another question")),
        });
        refuse(config)
    }

    fn known_settings(&self) -> Vec<SettingModel> {
        program_settings::forms()
    }

    fn offers(&self) -> Vec<OfferModel> {
        program_settings::offers()
    }

    fn plan(&self, creation: &Creation) -> Result<PlanModel, Refusal> {
        refuse(self.server.plan_new(creation))
    }

    fn create(&self, creation: &Creation) -> Result<CommandResult, Refusal> {
        refuse(self.server.make_new(creation))
    }

    fn retire(&self, array: &str, yes: bool) -> Result<CommandResult, Refusal> {
        let stopped = self.server.answer(Command::Stop { array: array.into(), yes }).and_then(done);
        let forgotten = stopped.and_then(|done| self.server.registry.forget(array).map(|_| done));
        refuse(forgotten)
    }

    fn plan_reshape(&self, command: Command) -> Result<ReshapePlanModel, Refusal> {
        let planned = self.server.answer(command).and_then(|answer| match answer {
            ServerAnswer::ReshapePlan(plan) => Ok(*plan),
            _ => Err(Failure::failed("the server gave an answer to another question")),
        });
        refuse(planned)
    }

    fn change(&self, command: Command) -> Result<CommandResult, Refusal> {
        refuse(self.server.answer(command).and_then(done))
    }

    fn alarms(&self) -> Result<Vec<AlarmModel>, Refusal> {
        refuse(self.server.all_alarms())
    }

    fn acknowledge_alarms(&self, which: &str) -> Result<Vec<String>, Refusal> {
        Ok(self.server.acknowledge_alarms(which))
    }

    fn test_alarm(&self, sink: Option<&str>) -> Result<Vec<TestModel>, Refusal> {
        let came = self.server.test_sinks(sink).and_then(|answer| match answer {
            ServerAnswer::Tested(came) => Ok(came),
            _ => Err(Failure::failed("the server gave an answer to another question")),
        });
        refuse(came)
    }

    fn sinks(&self) -> Vec<SinkModel> {
        let failing = self.server.alarms.failing_sinks();
        let sinks = self.server.in_force().map(|file| file.desired.sinks.clone()).unwrap_or_default();
        let of_sink = |sink: &openraid_config::DesiredSink| {
            let error = failing.iter().find(|(name, _)| *name == sink.name).map(|(_, why)| why.clone());
            SinkModel { error, ..model::sink(sink) }
        };
        sinks.iter().map(of_sink).collect()
    }

    fn schedules(&self) -> Vec<ScheduleModel> {
        self.server.schedules().iter().map(model::schedule).collect()
    }

    fn keep_schedule(&self, input: &ScheduleInput) -> Result<ScheduleModel, Refusal> {
        refuse(self.server.keep_schedule(input)).map(|schedule| model::schedule(&schedule))
    }

    fn forget_schedule(&self, name: &str) -> Result<bool, Refusal> {
        refuse(self.server.forget_schedule(name))
    }

    fn kept(&self) -> KeptModel {
        self.server.api_values()
    }

    fn keep(&self, input: &KeptInput) -> Result<String, Refusal> {
        refuse(self.server.keep_config(input))
    }

    fn checks(&self, array: &str) -> Result<(Vec<SetHistoryModel>, Vec<PatrolModel>), Refusal> {
        let (array, registry) = (refuse(self.server.array(array))?, &self.server.registry);
        let patrols = array.uuid.as_ref().map(|uuid| patrols::of(uuid, registry)).unwrap_or_default();
        Ok((past_checks::of_array(&array, registry), patrols))
    }

    fn push(&self, url: &str, document: &serde_json::Value) -> Result<(), String> {
        post(url, document)
    }

    fn events(&self) -> Result<Arc<Vec<EventModel>>, Refusal> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.stamps();
        if seen.stamps == stamps {
            return Ok(Arc::clone(&seen.events));
        }
        let content = self.server.read_events();
        let content = content.map_err(|error| Failure::failed(format!("the event log cannot be read: {error}")));
        seen.events = Arc::new(refuse(content)?.events.iter().map(event).collect());
        seen.stamps = stamps;
        Ok(Arc::clone(&seen.events))
    }

    fn acknowledge(&self, from: u64, to: u64) -> Result<(), Refusal> {
        let written = self.log.append(&[EventEntry::Acknowledge { from, to }]);
        refuse(written.map_err(|error| Failure::failed(format!("the event log cannot be written: {error}"))))
    }

    fn audit(&self, array: Option<&str>, text: String) {
        let news = News { array: array.map(str::to_owned), ..plain(EventName::Changed, text) };
        self.server.add_news(vec![news]);
    }
}

impl Server {
    /// A link that signs in to the console, or a token; with a name it lasts until it is revoked.
    ///
    /// # Errors
    /// The server has no HTTP interfaces, or the token cannot be stored.
    pub(super) fn login(&self, role: Role, token: bool, name: Option<&str>) -> Result<ServerAnswer, Failure> {
        let management = self.console()?;
        let text = match name {
            Some(name) => management.lasting_token(name, role).map_err(Failure::refused)?,
            None if token => management.token(role),
            None => management.login(role),
        };
        Ok(ServerAnswer::Done { text, array: None })
    }

    /// Revoke a token that lasts.
    ///
    /// # Errors
    /// The server has no HTTP interfaces, or there is no such token.
    pub(super) fn revoke_token(&self, name: &str) -> Result<ServerAnswer, Failure> {
        self.console()?.revoke(name).map_err(|error| Failure::refused(error.to_string()))?;
        Ok(ServerAnswer::Done { text: format!("the token {name} is revoked"), array: None })
    }

    fn console(&self) -> Result<&Management, Failure> {
        self.management.get().map(|management| &**management).ok_or_else(|| {
            if let Some(why) = self.console_trouble() {
                return Failure::refused(format!("the console does not run: {why}"));
            }
            Failure::refused(
                "this server has no console: start it with `openraid serve --http 127.0.0.1:8440`, or write listen into \
                 [management] of its configuration",
            )
        })
    }
}
