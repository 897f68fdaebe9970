//! The demonstration: eight drives made of files, RAID 6 with a spare, clients that write and verify, a drive that is
//! pulled, a rebuild, and every byte compared at the end.
//!
//! All of it runs in this process: the service, the clients, the administrator. Every step can be repeated by hand,
//! and the last lines say how.

pub(crate) mod client;
mod load;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openraid_format::MinorVersion;
use openraid_management::{Management, Options};
use openraid_runtime::service::{Listen, Service, ServiceEvent};
use openraid_runtime::ServiceConfig;
use openraid_status::Role;
use openraid_sys::{Signals, Use};
use openraid_units::{ArrayLevel, Bytes, Sectors};
use serde::Serialize;

use crate::arguments::DemoArguments;
use crate::context::Context;
use crate::control::{self, Answerer, Command};
use crate::events::{Draft, EventLog, EventWriter};
use crate::failure::{Exit, Failure, Outcome};
use crate::members::{open_every, options, spec, written_spec, NewFiles};
use crate::model::{ArrayModel, HealthWord};
use crate::new_arrays::{CreateOptions, NewShape};
use crate::output::live_state::Live;
use crate::quantity::{human, human_rate};
use crate::registry::Registry;
use crate::server::{web, Server, ServerOptions};
use load::{DemoCounters, DemoLoad};

/// Name of the array.
const NAME: &str = "demo";
/// Drives, the spare included.
const DRIVES: usize = 8;
/// Size of each.
const DRIVE_BYTES: Bytes = Bytes::mib(64);
const CHUNK: Sectors = Sectors::kib(64);
/// Clients at once.
const CLIENTS: u64 = 4;
/// The drive that is pulled.
const PULLED: usize = 2;
/// Slow enough that the rebuild can be watched: it takes about eight seconds.
const REBUILD_RATE: &str = "8M";
/// A rebuild that takes longer has failed.
const REBUILD_TIME_MAX: Duration = Duration::from_secs(180);
/// The port of the console, if it is free.
const CONSOLE_PORT: u16 = 8440;
/// How often the state is shown.
const TICK: Duration = Duration::from_millis(250);

/// The result of the demo.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct DemoBody {
    /// Number of requests that the demo's clients sent.
    requests: u64,
    /// Bytes that the clients wrote.
    written_bytes: u64,
    /// Bytes that the clients read back and compared while the demo ran.
    verified_bytes: u64,
    /// Bytes of the array that were read and compared at the end.
    compared_at_the_end_bytes: u64,
    /// Duration of the rebuild onto the spare.
    rebuild_seconds: u64,
    /// Did every byte match the written data?
    every_byte_right: bool,
}

/// A folder that is removed at the end.
struct Folder {
    path: PathBuf,
    keep: bool,
    made: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.made && !self.keep {
            // A failure leaves only temporary files.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The demonstration as it runs.
struct Demo<'a> {
    context: &'a Context,
    service: &'a Service,
    server: Arc<Server>,
    events: EventWriter,
    console: Arc<Management>,
    live: Live,
    since: Instant,
    last: (Instant, u64, u64),
    interrupted: bool,
}

/// Do it.
///
/// # Errors
/// A byte was wrong, or something did not work.
pub fn run(arguments: &DemoArguments, context: &Context) -> Outcome {
    let signals =
        Signals::take_over().map_err(|error| Failure::failed(format!("signals cannot be taken over: {error}")))?;
    let folder = folder(arguments)?;
    let socket = folder.path.join("nbd.sock");
    let listen = vec![Listen::Unix(socket.clone())];
    let config = ServiceConfig { listen, signals: Some(signals), ..ServiceConfig::default() };
    let service = Service::start(config).map_err(Failure::failed)?;
    let server = Server::new(ServerOptions::private(service.handle(), &folder.path, &socket));
    let answerer: Arc<dyn Answerer> = Arc::<Server>::clone(&server);
    let (_, _keeps_the_socket) = control::listen(context.common.control.as_deref(), answerer)?;
    let console = console(&server)?;
    let log = EventLog::at(Registry::at(Some(&folder.path.join("registry.json"))).folder_beside("events"));
    let events = EventWriter::start(log).map_err(|error| Failure::failed(format!("no thread for events: {error}")))?;
    let drives = drives(&folder.path, arguments.model.as_deref())?;
    make(&server, &drives)?;
    let now = Instant::now();
    let mut demo = Demo {
        context,
        service: &service,
        server,
        events,
        console,
        live: Live::new(),
        since: now,
        last: (now, 0, 0),
        interrupted: false,
    };
    let result = demo.play(arguments, &socket, &drives);
    let interrupted = demo.interrupted;
    if let (Ok(_), true, false) = (&result, arguments.keep, interrupted) {
        demo.keep_running();
    }
    drop(demo);
    service.stop();
    if interrupted {
        return Err(Failure::new(Exit::Aborted, "interrupted"));
    }
    let body = result?;
    if context.output.json {
        context.output.document(Exit::Fine, &body);
    }
    Ok(Exit::Fine)
}

/// The console, at its usual port or at a free one.
fn console(server: &Arc<Server>) -> Result<Arc<Management>, Failure> {
    let at = |port| Options {
        kept: None,
        listen: SocketAddr::from(([127, 0, 0, 1], port)),
        folder: PathBuf::new(),
        certificate: None,
        client_ca: None,
        names: Vec::new(),
        metrics_md: false,
        drives: Vec::new(),
    };
    web::start(server, at(CONSOLE_PORT)).or_else(|_| web::start(server, at(0)))
}

fn folder(arguments: &DemoArguments) -> Result<Folder, Failure> {
    let path = match &arguments.folder {
        Some(path) => {
            std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?
        }
        None => std::env::temp_dir().join(format!("openraid-demo-{}", std::process::id())),
    };
    let made = !path.exists();
    fs::create_dir_all(&path)
        .map_err(|error| Failure::failed(format!("{}: the folder cannot be made: {error}", path.display())))?;
    Ok(Folder { path, keep: arguments.keep, made })
}

fn drives(folder: &Path, model: Option<&str>) -> Result<Vec<String>, Failure> {
    let name = |number: usize| {
        let path = folder.join(format!("drive{number}")).display().to_string();
        model.map_or(path.clone(), |profile| format!("model:{profile},file={path}"))
    };
    let drives: Vec<String> = (1..=DRIVES).map(name).collect();
    let specs = drives.iter().map(|drive| written_spec(drive)).collect::<Result<Vec<_>, _>>()?;
    NewFiles::make(&specs, DRIVE_BYTES)?.keep();
    Ok(drives)
}

fn make(server: &Arc<Server>, drives: &[String]) -> Result<(), Failure> {
    let (members, spares) = drives.split_at(DRIVES - 1);
    let shape = NewShape::of(&CreateOptions {
        name: NAME,
        level: ArrayLevel::Raid6,
        layout: None,
        chunk: Some(CHUNK),
        spans: None,
        members,
        spares,
        size: None,
        // New files are all zero, and zeroes are consistent.
        assume_clean: true,
        bitmap: Some(false),
        ppl: false,
        minor: MinorVersion::V1_2,
    })?;
    let specs = drives.iter().map(|drive| spec(drive)).collect::<Result<Vec<_>, _>>()?;
    let opened: Vec<_> = open_every(&specs, options(Use::Exclusive))?.into_iter().map(|(opened, _)| opened).collect();
    let sizes: Vec<Sectors> = opened.iter().map(|member| member.info.capacity).collect();
    let plans = shape.plan(&sizes, drives)?;
    let started = shape.make(&server.handle(), &plans, opened)?;
    server.serve_started(started)?;
    let settings = vec![("rebuild.rate".to_owned(), REBUILD_RATE.to_owned())];
    server.answer(Command::Set { array: NAME.into(), settings, yes: false }).map(drop)
}

impl Demo<'_> {
    fn say(&mut self, text: &str) {
        if !self.context.output.json {
            self.live.say(&format!("[{:>3} s] {text}", self.since.elapsed().as_secs()));
        }
    }

    fn play(&mut self, arguments: &DemoArguments, socket: &Path, drives: &[String]) -> Result<DemoBody, Failure> {
        let array = self.server.array(NAME)?;
        self.say(&format!(
            "{} drives of {} each are files in {}",
            DRIVES,
            human(DRIVE_BYTES),
            socket.parent().unwrap_or(Path::new("/")).display()
        ));
        self.say(&format!(
            "RAID 6 over {} of them, {} with a spare: {} for data, survives any 2 losses",
            DRIVES - 1,
            1,
            human(Bytes(array.size_bytes))
        ));
        if let Some(profile) = &arguments.model {
            self.say(&format!("each answers when a {profile} would, by the model of the simulation"));
        }
        self.say(&format!("served at {}", array.addresses.join(" ")));
        self.say(&format!("console (signs in once): {}", self.console.login(Role::Administrator)));
        let load = DemoLoad::start(socket, NAME, CLIENTS).map_err(Failure::failed)?;
        self.say(&format!("{CLIENTS} clients write random data, read it back and compare"));
        let counters = Arc::clone(&load.counters);
        let half = Duration::from_secs(u64::from(arguments.seconds)) / 2;
        self.watch(&load, half, |_| false)?;
        self.say(&format!("PULLED: {} (the clients continue)", drives[PULLED]));
        self.server.answer(Command::Fail {
            array: NAME.into(),
            member: drives[PULLED].clone(),
            unsynced: true,
            device: None,
        })?;
        let begun = Instant::now();
        self.watch(&load, Duration::from_millis(500), |_| false)?;
        self.say("the spare has taken over the slot; the rebuild runs under load");
        let rebuilt = self.watch(&load, REBUILD_TIME_MAX, |array| array.health == HealthWord::Optimal)?;
        if !rebuilt {
            return Err(Failure::failed("the rebuild did not end in time"));
        }
        let rebuild_seconds = begun.elapsed().as_secs();
        // A client that failed ends the watch early. Its error is reported below.
        if !load.has_failed() {
            self.say(&format!("rebuilt after {rebuild_seconds} s: full redundancy again"));
        }
        self.watch(&load, half, |_| false)?;
        self.say("the clients stop; every byte is read and compared");
        let compared = load.verify().map_err(Failure::failed)?;
        self.say(&format!("{} compared, every byte was right", human(Bytes(compared))));
        let body = DemoBody {
            requests: counters.requests.load(Ordering::Relaxed),
            written_bytes: counters.written.load(Ordering::Relaxed),
            verified_bytes: counters.verified.load(Ordering::Relaxed),
            compared_at_the_end_bytes: compared,
            rebuild_seconds,
            every_byte_right: true,
        };
        self.summary(&body);
        Ok(body)
    }

    /// Show the state for so long, or until `enough`; true if it was enough.
    fn watch(
        &mut self,
        load: &DemoLoad,
        time: Duration,
        enough: impl Fn(&ArrayModel) -> bool,
    ) -> Result<bool, Failure> {
        let until = Instant::now() + time;
        loop {
            self.hear()?;
            if self.interrupted {
                return Err(Failure::new(Exit::Aborted, "interrupted"));
            }
            let array = self.server.array(NAME)?;
            self.show(std::slice::from_ref(&array), Some(&load.counters));
            if load.has_failed() {
                return Ok(true);
            }
            if enough(&array) {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }

    /// Take the engine's news for a tick.
    fn hear(&mut self) -> Result<(), Failure> {
        let until = Instant::now() + TICK;
        self.server.sample()?;
        for news in self.server.take_news() {
            self.events.note(Draft::now(&news));
        }
        loop {
            match self.service.events().recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(ServiceEvent::Signal(_) | ServiceEvent::Stopped) | Err(RecvTimeoutError::Disconnected) => {
                    self.interrupted = true;
                    return Ok(());
                }
                Ok(event) => {
                    if let Some(news) = self.server.news(&event) {
                        self.events.note(Draft::now(&news));
                        self.say(&news.text);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(()),
            }
        }
    }

    fn show(&mut self, arrays: &[ArrayModel], counters: Option<&DemoCounters>) {
        if self.context.output.json {
            return;
        }
        let mut extra = Vec::new();
        if let Some(counters) = counters {
            let now = Instant::now();
            let requests = counters.requests.load(Ordering::Relaxed);
            let bytes = counters.written.load(Ordering::Relaxed) + counters.verified.load(Ordering::Relaxed);
            let (before, old_requests, old_bytes) = self.last;
            let millis = u64::try_from(now.duration_since(before).as_millis()).unwrap_or(u64::MAX).max(1);
            self.last = (now, requests, bytes);
            extra.push(format!(
                "  clients: {} requests/s, {}",
                (requests - old_requests) * 1000 / millis,
                human_rate((bytes - old_bytes) * 1000 / millis)
            ));
        }
        self.live.update(arrays, &extra);
    }

    fn summary(&mut self, body: &DemoBody) {
        if self.context.output.json {
            return;
        }
        self.live.say(&format!(
            "\nWhat happened: {} requests; {} written, {} read and compared on the way, {} compared at the end.\n\
             A drive was pulled under load, no client noticed, and a spare took its place.\n\n\
             The same by hand:\n  \
             openraid create data --level 6 --chunk 64K --file-size 64M --spare d8 d1 d2 d3 d4 d5 d6 d7\n  \
             openraid serve data --nbd-unix /tmp/data.sock --status &\n  \
             nbdinfo 'nbd+unix:///data?socket=/tmp/data.sock'      (any NBD client: nbdcopy, qemu, fio, nbd-client)\n  \
             openraid set data rebuild.rate=8M\n  \
             openraid fail data d3\n  \
             openraid show data --follow\n  \
             openraid check data --follow\n  \
             openraid explain data\n  \
             openraid stop data",
            body.requests,
            human(Bytes(body.written_bytes)),
            human(Bytes(body.verified_bytes)),
            human(Bytes(body.compared_at_the_end_bytes)),
        ));
    }

    /// Until Ctrl-C.
    fn keep_running(&mut self) {
        self.say("the demo runs until Ctrl-C; in another terminal: openraid show demo");
        while !self.interrupted {
            if self.hear().is_err() {
                return;
            }
            if let Ok(arrays) = self.server.arrays() {
                self.show(&arrays, None);
            }
        }
        self.interrupted = false;
    }
}
