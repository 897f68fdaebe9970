//! A running server: the arrays it serves, and the commands it carries out for other processes.

mod adaptive_figures;
mod api_schedules;
mod api_values;
mod appearing_drives;
mod append_drives;
mod array_limit;
pub mod array_model;
mod certificates;
pub mod change_settings;
pub mod check_results;
mod departed_members;
pub mod desired;
mod displaced_files;
mod drive_cache;
mod drive_care;
mod host_path;
pub mod joining_members;
mod journal;
mod lab;
mod locate;
mod member_names;
mod member_orders;
pub mod notices;
mod offline_arrays;
mod orders;
mod pulled_drives;
pub mod recovery_line;
mod refused_hosts;
pub mod reload;
mod rename;
mod reshape;
mod reshape_standstill;
mod resize;
mod restart_failed;
mod scheduled_checks;
mod scheduled_patrols;
pub mod server_alarms;
mod shape_steps;
mod spares;
pub mod start;
pub mod start_problems;
mod stories;
pub mod task_rates;
pub mod web;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use openraid_config::AfterPowerCut;
use openraid_format::Uuid;
use openraid_runtime::service::{Nqn, ServiceStatus, VhostPlace};
use openraid_runtime::ServiceHandle;
use openraid_status::uri::encoded;
use openraid_status::EventName;

use crate::alarms::Keeper;
use crate::control::{Answerer, Command, ServerAnswer, ServerModel};
use crate::desired::model::{self, ValueModel};
use crate::events::{plain, News};
use crate::events::{segments, EventLog};
use crate::failure::Failure;
use crate::history::last_checks::Checks;
use crate::members::array_locks::ArrayLocks;
use crate::model::{ArrayModel, HealthWord};
use crate::output;
use crate::quantity::counted;
use crate::registry::Registry;
use crate::sd_notify::Notifier;
use array_limit::Samples;
use array_model::ServedArray;
use desired::InForce;
pub use drive_cache::DriveCacheOption;
use drive_cache::DriveCaches;
use stories::{StepRecording, StoryQuery};
use task_rates::TaskRates;

#[derive(Debug)]
pub struct Server {
    handle: ServiceHandle,
    registry: Registry,
    /// Addresses for clients.
    listens: Vec<ListenAddress>,
    access: ServerAccess,
    /// What becomes of hosts after the machine went down; `None` if the administrator has not said it.
    after_power_cut: Option<AfterPowerCut>,
    without_flush: bool,
    /// The journal that it was started with.
    journal: OnceLock<journal::OwnJournal>,
    state: Mutex<State>,
    /// Held by the one command that changes arrays.
    changing: Mutex<()>,
    /// Held while a mark follows the writes of an array, or goes with it.
    marking: Mutex<()>,
    /// The locks of the arrays that are served or being started.
    locks: Mutex<ArrayLocks>,
    /// It continues when the last array is stopped.
    stays: bool,
    /// The service manager, if there is one.
    notifier: Notifier,
    /// The options that it was started with.
    chosen: Vec<ValueModel>,
    /// Is a spare being added to an array?
    giving: AtomicBool,
    /// Does a search for drives run?
    looking: AtomicBool,
    /// Do messages about devices arrive?
    hears_devices: AtomicBool,
    /// Number of them.
    heard_devices: AtomicU64,
    /// Does the care for drives run?
    caring: AtomicBool,
    /// Does a patrol read run?
    patrolling: AtomicBool,
    alarms: Keeper,
    /// The HTTP interfaces, if it has any.
    management: OnceLock<Arc<openraid_management::Management>>,
    /// HTTP interfaces that could not start yet.
    late_console: Mutex<Option<web::LateConsole>>,
    /// Held while the results of checks are written to their file.
    noting_checks: Mutex<()>,
    /// The files of the event log that were read.
    events_seen: Mutex<segments::ReadSegments>,
}

/// Where a server may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerAccess {
    /// Writes of clients, and the writes that arrays need.
    ReadWrite,
    /// Clients may not write. The journal's entries are written to the members.
    ReadOnly,
    /// No member is written: the engine's own writes stay in memory, and members may be write-protected.
    Untouched,
}

/// An address for clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListenAddress {
    /// Host and port.
    Tcp(std::net::SocketAddr),
    /// A unix socket.
    Unix(std::path::PathBuf),
    /// Host and port, over TLS.
    Tls(std::net::SocketAddr),
    /// Host and port of NVMe/TCP.
    Nvme(std::net::SocketAddr),
    /// Sockets for virtual machines.
    Vhost(VhostPlace),
}

impl ListenAddress {
    /// The addresses of an array here: one for each of its exports, or that of its subsystem.
    fn uris(&self, exports: &[String], identity: Option<Uuid>) -> Vec<String> {
        match (self, identity) {
            (Self::Nvme(_), Some(identity)) => vec![self.uri(Nqn::of_uuid(identity.0).as_str())],
            (Self::Nvme(_), None) => Vec::new(),
            (Self::Vhost(place), _) => {
                exports.iter().filter_map(|name| place.socket_of(name)).map(|path| vhost_uri(&path)).collect()
            }
            _ => exports.iter().map(|name| self.uri(name)).collect(),
        }
    }

    /// The address of an export or a subsystem here.
    pub fn uri(&self, export: &str) -> String {
        let escaped = |text: &str| encoded(text, b"/:");
        match self {
            Self::Tcp(address) => format!("nbd://{address}/{}", escaped(export)),
            Self::Nvme(address) => format!("nvme+tcp://{address}/{export}"),
            Self::Tls(address) => format!("nbds://{address}/{}", escaped(export)),
            Self::Unix(path) => {
                format!("nbd+unix:///{}?socket={}", escaped(export), escaped(&path.display().to_string()))
            }
            Self::Vhost(VhostPlace::Folder(path) | VhostPlace::Socket { path, .. }) => vhost_uri(path),
        }
    }
}

/// The address of a socket for virtual machines, or of a folder of them.
fn vhost_uri(path: &Path) -> String {
    format!("vhost-user://{}", encoded(&path.display().to_string(), b"/:"))
}

#[derive(Debug, Default)]
struct State {
    arrays: Vec<ServedArray>,
    rates: TaskRates,
    /// The last statuses, to compute the limit.
    samples: Samples,
    /// The client for which steps of requests are recorded.
    keeping: StepRecording,
    /// The settings for the drives' own caches.
    drive_caches: DriveCaches,
    /// The last check of each array, and its state here.
    checks: Checks,
    seen_checks: check_results::SeenChecks,
    /// The changes of shape at the last look.
    reshapes: reshape_standstill::SeenChanges,
    /// The shapes that arrays are to have.
    shape_goals: shape_steps::ShapeGoals,
    /// Has the user stopped the last array?
    emptied: bool,
    /// The configuration of the server.
    in_force: Option<Arc<InForce>>,
    /// News of other threads that are not reported yet.
    news: Vec<News>,
    /// Spares for all arrays that were tried.
    tried_spares: spares::SpareAttempts,
    /// Members that left, by the array's UUID.
    departed: departed_members::Departures,
    /// The presence of drives, and the times of the searches.
    plugs: appearing_drives::Plugs,
    /// Facts about drives that the engine does not know.
    care: drive_care::Care,
    /// Drives that are not at their paths any more.
    displaced: displaced_files::AllDisplaced,
    /// The last patrol read of each array.
    patrols: scheduled_patrols::LastPatrols,
    /// Checks that schedules began.
    scheduled: scheduled_checks::ScheduleWork,
    /// Schedules made by the API; read at the first use.
    api_schedules: Option<Vec<api_schedules::ApiSchedule>>,
    /// Faults of the server that its status does not show.
    troubles: server_alarms::Troubles,
    /// NBD over TLS, if it is served.
    nbd_tls: Option<certificates::TlsOfNbd>,
}

#[derive(Debug)]
pub struct ServerOptions {
    /// The handle to the engine.
    pub handle: ServiceHandle,
    /// The registry to keep up to date.
    pub registry: Registry,
    /// Addresses for clients.
    pub listens: Vec<ListenAddress>,
    /// What the server writes.
    pub access: ServerAccess,
    /// What becomes of hosts after the machine went down; `None` if the administrator has not said it.
    pub after_power_cut: Option<AfterPowerCut>,
    /// Accept remote members without flush.
    pub without_flush: bool,
    /// The configuration, if it has one.
    pub in_force: Option<InForce>,
    /// It continues when the last array is stopped.
    pub stays: bool,
    /// The options that it was started with.
    pub chosen: Vec<ValueModel>,
    /// The service manager, if there is one.
    pub notifier: Notifier,
    pub alarms: Keeper,
}

impl ServerOptions {
    /// A server for this process alone: its registry is in its own folder, clients connect at one socket, and its
    /// alarms are not stored.
    pub fn private(handle: ServiceHandle, folder: &Path, socket: &Path) -> Self {
        Self {
            handle,
            registry: Registry::at(Some(&folder.join("registry.json"))),
            listens: vec![ListenAddress::Unix(socket.to_owned())],
            access: ServerAccess::ReadWrite,
            after_power_cut: None,
            without_flush: false,
            in_force: None,
            stays: false,
            chosen: Vec::new(),
            notifier: Notifier::default(),
            alarms: Keeper::in_memory(),
        }
    }
}

impl Server {
    /// A server without arrays.
    pub fn new(options: ServerOptions) -> Arc<Self> {
        let ServerOptions { handle, registry, listens, access, without_flush, in_force, stays, chosen, .. } = options;
        let (notifier, alarms, after_power_cut) = (options.notifier, options.alarms, options.after_power_cut);
        let state = State { checks: Checks::read(&registry), in_force: in_force.map(Arc::new), ..State::default() };
        Arc::new(Self {
            handle,
            registry,
            listens,
            access,
            after_power_cut,
            without_flush,
            journal: OnceLock::new(),
            state: Mutex::new(state),
            changing: Mutex::default(),
            marking: Mutex::default(),
            locks: Mutex::default(),
            stays,
            notifier,
            chosen,
            giving: AtomicBool::new(false),
            looking: AtomicBool::new(false),
            hears_devices: AtomicBool::new(false),
            heard_devices: AtomicU64::new(0),
            caring: AtomicBool::new(false),
            patrolling: AtomicBool::new(false),
            alarms,
            management: OnceLock::new(),
            late_console: Mutex::default(),
            noting_checks: Mutex::default(),
            events_seen: Mutex::default(),
        })
    }

    /// The handle to the engine.
    pub fn handle(&self) -> ServiceHandle {
        self.handle.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locks(&self) -> MutexGuard<'_, ArrayLocks> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> Result<ServiceStatus, Failure> {
        self.handle.status().map_err(Failure::from)
    }

    /// Take a sample of the progress of background tasks; call it about once a second.
    ///
    /// # Errors
    /// The service has ended.
    pub fn sample(&self) -> Result<(), Failure> {
        let status = self.status()?;
        self.note_checks(&status);
        self.note_reshapes(&status);
        self.take_shape_steps(&status);
        {
            let mut state = self.state();
            state.rates.sample(&status, Instant::now());
            state.samples.keep(status);
        }
        self.forget_followers()
    }

    fn find_stories(&self, array: &str, wanted: StoryQuery) -> Result<ServerAnswer, Failure> {
        self.stories(array, wanted).map(|stories| ServerAnswer::Stories(Box::new(stories)))
    }

    /// The service manager, if there is one.
    pub const fn notifier(&self) -> &Notifier {
        &self.notifier
    }

    /// Where it may write.
    pub const fn access(&self) -> ServerAccess {
        self.access
    }

    /// The state of the server in one line.
    pub fn summary(&self) -> String {
        let Ok(status) = self.status() else { return "ending".into() };
        let state = self.state();
        let count = counted(state.arrays.len() as u64, "array", "arrays");
        let bad = state.arrays.iter().filter_map(|served| {
            let health = array_model::health_of(&status, served)?;
            (health != HealthWord::Optimal).then(|| format!("{} {}", served.name, output::array::health_text(health)))
        });
        let missing = state.missing().map(|entry| format!("{} OFFLINE", entry.name));
        let refusing = state.arrays.iter().filter(|served| served.refused.is_some());
        let refusing = refusing.map(|served| format!("{} REFUSES HOSTS", served.name));
        let unknown = state.troubles.registry.as_ref().map(|_| "the registry cannot be read".to_owned());
        let bad: Vec<String> = unknown.into_iter().chain(missing).chain(refusing).chain(bad).collect();
        match bad.as_slice() {
            [] if state.arrays.is_empty() => format!("{count} served"),
            [] => format!("{count} served, all optimal"),
            bad => format!("{count} served; {}", bad.join(", ")),
        }
    }

    /// News of other threads since the last call.
    pub fn take_news(&self) -> Vec<News> {
        std::mem::take(&mut self.state().news)
    }

    /// The event log. Only files that have changed since the last call are read.
    fn read_events(&self) -> io::Result<segments::LogContent> {
        let mut seen = self.events_seen.lock().unwrap_or_else(PoisonError::into_inner);
        EventLog::at(self.registry.folder_beside("events")).read_again(&mut seen)
    }

    /// No interface will ask for the event log: free its memory.
    pub fn forget_events(&self) {
        *self.events_seen.lock().unwrap_or_else(PoisonError::into_inner) = segments::ReadSegments::default();
    }

    /// Add news for the thread that reports them.
    pub fn add_news(&self, news: Vec<News>) {
        self.state().news.extend(news);
    }

    /// The desired state in force.
    fn config(&self) -> Result<ServerAnswer, Failure> {
        let in_force = self.in_force();
        let path = in_force.as_ref().map(|file| file.path.display().to_string());
        let desired = in_force.as_ref().map(|file| file.desired.clone()).unwrap_or_default();
        let mut server = self.chosen.clone();
        let of_file = model::server_values(&desired);
        server.extend(
            of_file.into_iter().filter(|value| self.chosen.iter().all(|value_chosen| value_chosen.key != value.key)),
        );
        let mut config = model::config(path, server, &desired, &self.registry.entries()?);
        config.schedules = self.schedules().iter().map(model::schedule).collect();
        Ok(ServerAnswer::Config(Box::new(config)))
    }

    /// Has a command stopped the last array, so that the server ends?
    pub fn is_emptied(&self) -> bool {
        !self.stays && self.state().emptied
    }

    /// The state of every array that is wanted: served ones, and offline ones with the reason. Every interface shows these.
    ///
    /// # Errors
    /// The service has ended.
    pub fn wanted_arrays(&self) -> Result<Vec<ArrayModel>, Failure> {
        let mut arrays = self.arrays()?;
        arrays.extend(self.offline_arrays());
        arrays.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(arrays)
    }

    /// All arrays that are served.
    ///
    /// # Errors
    /// The service has ended.
    pub fn arrays(&self) -> Result<Vec<ArrayModel>, Failure> {
        let status = self.status()?;
        self.note_checks(&status);
        let state = self.state();
        Ok(state.arrays.iter().filter_map(|served| self.model(&status, served, &state)).collect())
    }

    fn model(&self, status: &ServiceStatus, served: &ServedArray, state: &State) -> Option<ArrayModel> {
        let mut model = array_model::model(status, served, &state.rates)?;
        check_results::add_checks(&mut model, &state.checks);
        self.add_drive_caches(&mut model, state.drive_caches.option(&served.name));
        add_readd(&mut model, served);
        drive_care::add_health(&mut model, state);
        displaced_files::add_displaced(&mut model, state);
        if served.refused.is_none() {
            let identity = served.started.as_ref().map(|started| started.superblock.set_uuid);
            model.addresses = self.listens.iter().flat_map(|at| at.uris(&model.exports, identity)).collect();
        }
        self.add_alarms(&mut model, served, status, state);
        output::model_sentences::add_texts(&mut model);
        Some(model)
    }

    /// One array.
    ///
    /// # Errors
    /// It is not served here.
    pub fn array(&self, name: &str) -> Result<ArrayModel, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        self.note_checks(&status);
        let state = self.state();
        self.model(&status, &served, &state).ok_or_else(|| not_served(name))
    }

    fn find(&self, name: &str) -> Result<ServedArray, Failure> {
        let state = self.state();
        let served = state.arrays.iter().find(|served| served.name == name).cloned();
        served.ok_or_else(|| match state.missing().find(|entry| entry.name == name) {
            Some(entry) => entry.refusal(&state),
            None => not_served(name),
        })
    }

    /// The array with this number, and the index of its span.
    pub fn name_of(&self, array: openraid_units::ArrayId) -> Option<(String, Option<usize>)> {
        self.state().arrays.iter().find_map(|served| {
            if served.array == array {
                return Some((served.name.clone(), None));
            }
            let span = served.spans().iter().position(|span| *span == array)?;
            Some((served.name.clone(), Some(span)))
        })
    }

    /// The number of clients that are connected to an array.
    fn clients_of(&self, name: &str) -> Result<u64, Failure> {
        let (array, status) = (self.find(name)?.array, self.status()?);
        let view = status.arrays.iter().find(|view| view.status.array == array);
        Ok(view.map_or(0, |view| view.clients as u64))
    }

    /// A description of this server.
    ///
    /// # Errors
    /// The service has ended.
    pub fn describe(&self) -> Result<ServerModel, Failure> {
        let status = self.status()?;
        Ok(ServerModel {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").into(),
            listens: self.listens.iter().map(|at| at.uri("")).collect(),
            clients: status.exports.connections as u64,
            engine: status.engine,
            kernels: status.kernels.into(),
            notes: status.notes,
            stays: self.stays,
            alarms: self.server_alarms(),
        })
    }
}

/// Add the setting that the engine does not know.
fn add_readd(model: &mut ArrayModel, served: &ServedArray) {
    for set in model.spans.iter_mut().map(|span| &mut span.settings).chain([&mut model.settings]) {
        crate::program_settings::add_json(set, crate::kept_settings::READD, served.readd.word());
    }
}

fn not_served(name: &str) -> Failure {
    Failure::refused(format!("this server serves no array named {name:?}; see `openraid list`"))
}

impl Answerer for Server {
    fn changed(&self, array: Option<&str>, what: &str) {
        let about = array.map(|array| format!("{array}: ")).unwrap_or_default();
        let text = format!("{about}by the command line: {what}");
        self.add_news(vec![News { array: array.map(str::to_owned), ..plain(EventName::Changed, text) }]);
    }

    fn answer(&self, command: Command) -> Result<ServerAnswer, Failure> {
        let exclusive = || self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match command {
            Command::Hello => self.describe().map(ServerAnswer::Server),
            Command::List => self.wanted_arrays().map(ServerAnswer::Arrays),
            Command::Config => self.config(),
            Command::Alarms => self.all_alarms().map(ServerAnswer::Alarms),
            Command::TestAlarm { sink } => self.test_sinks(sink.as_deref()),
            Command::AcknowledgeAlarms { which } => Ok(ServerAnswer::Acknowledged(self.acknowledge_alarms(&which))),
            Command::Journal => self.journal_model().map(|journal| ServerAnswer::Journal(journal.map(Box::new))),
            Command::Show { array } => self.array(&array).map(|array| ServerAnswer::Array(Box::new(array))),
            Command::Limit { array } => self.limit(&array).map(|limit| ServerAnswer::Limit(Box::new(limit))),
            Command::Record { on } => self.record(on),
            Command::Stories { array, since } => self.find_stories(&array, StoryQuery::Since(since)),
            Command::Requests { array, since } => {
                self.requests(&array, since).map(|requests| ServerAnswer::Requests(Box::new(requests)))
            }
            Command::Story { array, request } => {
                self.find_stories(&array, request.map_or(StoryQuery::Last, StoryQuery::Request))
            }
            Command::Slowest { array, count } => self.find_stories(&array, StoryQuery::Slowest(count)),
            Command::Login { role, token, name } => self.login(role, token, name.as_deref()),
            Command::RevokeToken { name } => self.revoke_token(&name),
            // Its program may take seconds, and nothing waits for it.
            Command::Locate { array, member, off } => self.locate(&array, &member, off),
            command => {
                let _one_at_a_time = exclusive();
                self.carry_out(command)
            }
        }
    }

    fn end(&self) {
        self.notifier.stopping();
        self.handle.begin_stop();
    }
}
