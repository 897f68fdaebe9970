//! `openraid serve`: serves arrays over NBD in the foreground, until a signal or `openraid stop`.

mod arrays_to_serve;
mod choose_half;
mod early_notices;
mod http;
mod keep_listening;
mod listening_sockets;
mod lost_sector_lines;
pub(super) mod main_loop;
pub mod memory_need;
mod options;
mod tls;
mod vhost_sockets;

use std::fs::File;
use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;

use openraid_core::limits::Limits;
use openraid_format::{MinorVersion, Uuid};
use openraid_management::{NbdTlsRuns, Options};
use openraid_nbd::PORT_DEFAULT;
use openraid_runtime::member::{MemberSpec, OpenOptions, OpenedMember, ProbedMember};
use openraid_runtime::service::journal::{JournalRequest, JournalSighting};
use openraid_runtime::service::{Accept, Listen, Nesting, Service};
use openraid_runtime::ServiceConfig;
use openraid_sys::{InheritedListener, Listener, Signals, Use};
use openraid_units::{ArrayLevel, Bytes, Sectors};

use self::listening_sockets::Addresses;
use self::options::ServeOptions;
use self::tls::Tls;
use super::{print_done, Context};
use crate::alarms::{AlarmServer, AlarmStore, Keeper};
use crate::arguments::ServeArguments;
use crate::control;
use crate::desired;
use crate::events::plain;
use crate::events::{Draft, EventLog, EventWriter};
use crate::failure::{ArrayLabel, Exit, Failure, Outcome};
use crate::members::array_locks::OpenForStart;
use crate::members::{in_memory, is_memory, lasting_spec, open_every, options, protected};
use crate::new_arrays::{CreateOptions, NewShape};
use crate::output::array::{health_text, title};
use crate::output::live_state::Live;
use crate::output::server_messages::Voice;
use crate::quantity::human;
use crate::registry::{raw_drive_name, RegisteredArray};
use crate::sd_notify::Notifier;
use crate::server::desired::InForce;
use crate::server::start::{StartOptions, StartReport};
use crate::server::start_problems;
use crate::server::{ListenAddress, Server, ServerAccess, ServerOptions};
use crate::words::consistency::ConsistencyWord;
use arrays_to_serve::{is_service, wanted, why_offline, ArraysToServe, OfflineArray};
use main_loop::{MainLoop, ServeLine};
use memory_need::limits_of;
use openraid_status::shell_quoting::command_with;
use openraid_status::EventName;

/// Settings that must be made before any thread: threads share heaps, and no thread receives a signal itself.
fn before_threads() -> Result<Signals, Failure> {
    openraid_sys::free_memory::share_heaps();
    Signals::take_over().map_err(|error| Failure::failed(format!("signals cannot be taken over: {error}")))
}

/// Runs the verb.
///
/// # Errors
/// No array could be served, or an address is in use.
pub fn run(arguments: &ServeArguments, context: &Context) -> Outcome {
    // A descriptor that is missing must not be one that this process has opened.
    let sockets = listening_sockets::inherited()?;
    if let Some(done) = tell_after_loss(arguments, context)? {
        return Ok(done);
    }
    let signals = before_threads()?;
    let ready_fd = arguments.ready_fd.map(ready_descriptor).transpose()?;
    // Errors of the command line or of the file are reported first.
    let file = configuration(arguments, context)?;
    let chosen = ServeOptions::of(arguments, file.as_ref());
    let stays = is_service(arguments, file.as_ref());
    let mut web = http::options(arguments, file.as_ref())?;
    let mut addresses = addresses_of(&chosen, web.as_ref(), stays, context)?;
    if arguments.keep_listening && sockets.is_none() {
        keep_listening::check_ready(arguments.ready_fd, &addresses)?;
        return keep_listening::keep(&addresses, ready_fd, signals, context);
    }
    let ready = listening_sockets::assign(sockets, &mut addresses)?;
    web.iter_mut().for_each(|web| web.kept.clone_from(&ready.http));
    let tls = tls::bind(&chosen, file.as_ref(), std::mem::take(&mut addresses.nbd_tls), &ready)?;
    let certificates = tls.certificates(web.as_ref());
    check_journal_options(arguments, &chosen)?;
    let limits = limits_of(&chosen)?;
    let wanted = wanted(arguments, context, file.as_ref())?;
    let names = wanted.names(context);
    let (expected, unknown) = (expected(arguments, &wanted), wanted.unknown.clone());
    let notes = file.iter().flat_map(|file| file.desired.notes.iter().map(ToString::to_string));
    chosen.notes.iter().cloned().chain(notes).for_each(|note| context.output.warn(&note));
    let config = service_config(limits, &addresses, &tls, ready.plain, signals);
    let served_already = |failure| arrays_to_serve::served_already(failure, &names, context);
    let service = Service::start(config).map_err(|error| served_already(ready.crossed.explain(error)))?;
    let server = Server::new(ServerOptions {
        handle: service.handle(),
        registry: context.registry.clone(),
        listens: all_listening(&addresses, &tls, &service),
        access: access(arguments, &chosen),
        after_power_cut: chosen.after_power_cut,
        without_flush: arguments.without_flush,
        in_force: file,
        stays,
        chosen: chosen.overview.clone(),
        notifier: Notifier::from_environment(),
        alarms: alarms(context)?,
    });
    let begun = begin(arguments, &chosen, context, &server, wanted, stays).map_err(served_already);
    vhost_sockets::warn_of_unserved(context, &addresses.vhost, &service.handle());
    let begun = begun.and_then(|(taken, offline)| {
        note_unknown_arrays(context, &server, unknown);
        server.note_certificates(&certificates);
        let start = Start { taken, offline, expected, notes: ready.notes, web, tls, ready_fd };
        open_to_hosts(arguments, context, &service, &server, start)
    });
    let attended = begun.map(|Running { voice, events, tls, offline, control }| {
        let main_loop = MainLoop { context, service: &service, server: &server, events: &events, voice };
        (main_loop.until_the_end(), events, tls, offline, control)
    });
    service.stop();
    server.end_marks();
    let ((exit, mut voice), events, tls, offline, _keeps_the_socket) = attended?;
    drop(tls);
    events.note(Draft::now(&plain(EventName::ServerStopped, "the server has stopped".into())));
    for failure in server.restore_all_drive_caches() {
        context.output.warn(&failure);
    }
    voice.say(stopped(context, exit));
    voice.end();
    Ok(exit_of(exit, !stays && offline.iter().any(|entry| server.is_missing(&entry.name))))
}

/// A service at all addresses, which accepts clients when its arrays have started.
fn service_config(
    limits: Limits,
    addresses: &Addresses,
    tls: &Tls,
    kept: Vec<InheritedListener>,
    signals: Signals,
) -> ServiceConfig {
    let listen = addresses.nbd.iter().cloned().chain(tls.inside()).collect();
    let (nvme, vhost) = (addresses.nvme.clone(), addresses.vhost.clone());
    let (accept, signals) = (Accept::WhenTold, Some(signals));
    ServiceConfig { limits, listen, nvme, vhost, kept, accept, signals, ..ServiceConfig::default() }
}

/// A server whose arrays have started.
struct Start {
    taken: StartReport,
    offline: Vec<OfflineArray>,
    expected: Vec<RegisteredArray>,
    /// Addresses without a socket, and sockets without an address.
    notes: Vec<String>,
    web: Option<Options>,
    tls: Tls,
    ready_fd: Option<File>,
}

/// A server that hosts can use.
struct Running {
    voice: Voice,
    events: EventWriter,
    tls: Option<NbdTlsRuns>,
    offline: Vec<OfflineArray>,
    control: Listener,
}

/// Open all interfaces, hosts last: if one of the others does not open, no host has written anything.
fn open_to_hosts(
    arguments: &ServeArguments,
    context: &Context,
    service: &Service,
    server: &Arc<Server>,
    start: Start,
) -> Result<Running, Failure> {
    let Start { taken, offline, expected, notes, web, tls, ready_fd } = start;
    server.note_absent(&taken);
    server.take_own_spares().iter().for_each(|note| context.output.warn(note));
    let log = EventLog::at(context.registry.folder_beside("events"));
    let events = EventWriter::start(log).map_err(|error| Failure::failed(format!("no thread for events: {error}")))?;
    server.alarms_at_start(&taken, expected).iter().for_each(|news| events.note(Draft::now(news)));
    note_sockets(context, &events, notes);
    server.follow_sinks().iter().for_each(|note| context.output.warn(note));
    let answerer: Arc<dyn control::Answerer> = Arc::<Server>::clone(server);
    let (socket, control) = control::listen(context.common.control.as_deref(), answerer)?;
    let web = http::start(web, server);
    note_late_console(context, server, &events);
    let tls = tls.run(context, server)?;
    let voice = Voice::start(arguments.status.then(Live::new));
    let voice = voice.map_err(|error| Failure::failed(format!("no thread for the output: {error}")))?;
    openraid_sys::free_memory::give_back();
    // It fails if a signal has ended the service: that is no error, and the end follows.
    let _ended = service.handle().accept();
    let started = Began { taken: &taken, offline: &offline, web: web.as_deref().map(http::announcement) };
    announce_ready(context, server, &socket, started)?;
    ready_fd.map_or(Ok(()), write_ready)?;
    server.notifier().ready(&server.summary());
    warn_of_open_addresses(context, service.addresses(), "NBD");
    warn_of_open_addresses(context, service.nvme_addresses(), "NVMe/TCP");
    server.power_cut_note().iter().for_each(|note| context.output.warn(note));
    Ok(Running { voice, events, tls, offline, control })
}

/// With `--after-loss`, arrays that a server has already are served to hosts again by that server. `None` if none of them is.
///
/// # Errors
/// A server has some of them and not all, or refuses.
fn tell_after_loss(arguments: &ServeArguments, context: &Context) -> Result<Option<Exit>, Failure> {
    let (mut servers, mut others) = (Vec::new(), Vec::new());
    for name in arguments.names.iter().filter(|_| arguments.after_loss) {
        // Without a server at the control socket that was named, this is the server.
        match context.servers.serving(name) {
            Ok(Some(server)) => servers.push((name, server)),
            _ => others.push(name),
        }
    }
    if !servers.is_empty() && !others.is_empty() {
        let again = command_with("serve", servers.iter().map(|(name, _)| name), "--after-loss");
        let start = command_with("serve", &others, "--after-loss");
        let lines: Vec<String> = others.iter().map(|name| format!("{name} is not served")).collect();
        return Err(Failure::refused(format!(
            "{}, and the others have a server already; nothing was changed: run `{again}`, then `{start}` with the options of a server",
            lines.join(", ")
        )));
    }
    let mut done = None;
    for (name, mut server) in servers {
        let answer = server.ask(&control::Command::AfterLoss { array: name.clone() })?;
        done = Some(print_done(context, &answer)?);
    }
    Ok(done)
}

/// The addresses at which clients are awaited.
fn addresses_of(
    chosen: &ServeOptions,
    web: Option<&Options>,
    stays: bool,
    context: &Context,
) -> Result<Addresses, Failure> {
    let nbd = listens(chosen, stays, context)?;
    let nvme = chosen.nvme.iter().map(|text| addresses("--nvme", text)).collect::<Result<Vec<_>, _>>()?;
    let (nbd_tls, nvme) = (tls::listen(chosen)?, nvme.concat());
    Ok(Addresses { nbd, nbd_tls, nvme, vhost: vhost_sockets::places(chosen)?, http: web.map(|web| web.listen) })
}

fn note_sockets(context: &Context, events: &EventWriter, notes: Vec<String>) {
    for note in notes {
        context.output.warn(&note);
        events.note(Draft::now(&plain(EventName::StartProblem, note)));
    }
}

fn note_unknown_arrays(context: &Context, server: &Server, why: Option<String>) {
    if let Some(why) = why {
        context.output.warn(&why);
        server.note_unknown_arrays(why);
    }
}

fn note_late_console(context: &Context, server: &Server, events: &EventWriter) {
    if let Some(why) = server.console_trouble() {
        let text = format!("the console does not run: {why}");
        context.output.warn(&text);
        events.note(Draft::now(&plain(EventName::StartProblem, text)));
    }
}

/// Say that clients can connect. The descriptor is closed after this, so the reader sees the end.
fn write_ready(mut file: File) -> Result<(), Failure> {
    let written = writeln!(file, "ready");
    written.map_err(|error| Failure::failed(format!("--ready-fd: it cannot be written: {error}")))
}

/// The last line that a server prints.
fn stopped(context: &Context, exit: Exit) -> String {
    match context.output.json {
        true => context.output.line_of(exit, &ServeLine::Stopped),
        false => "stopped".into(),
    }
}

/// The given configuration file, or the one at the default path, with the kept values.
fn configuration(arguments: &ServeArguments, context: &Context) -> Result<Option<InForce>, Failure> {
    let Some(path) = arguments.config.clone().or_else(desired::default_path) else { return Ok(None) };
    if path == Path::new("/dev/null") {
        return Ok(None);
    }
    let path = std::path::absolute(&path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let desired = desired::api_values::merged(desired::load(&path)?, &context.registry);
    let of_server = [
        desired.server.cache.as_ref().map(|placed| placed.line),
        desired.server.journal.as_ref().map(|placed| placed.line),
    ];
    if of_server.contains(&Some(0)) {
        let kept = context.registry.folder_beside(desired::api_values::FILE);
        context.output.warn(&format!("cache or journal were set in the console, and stand in {}", kept.display()));
    }
    Ok(Some(InForce { desired, path }))
}

/// The stored alarms. If the control socket of a server has a name of its own, the alarms are stored under that name.
fn alarms(context: &Context) -> Result<Keeper, Failure> {
    let store = AlarmStore::at(context.registry.folder_beside("alarms"));
    let process = || AlarmServer::Process(std::process::id());
    let socket = |path: &std::path::PathBuf| AlarmServer::Socket(path.display().to_string());
    let alarm_server = context.common.control.as_ref().map_or_else(process, socket);
    // Arrays that are named by their members are served without it.
    let entries = context.registry.entries_if_readable();
    let is_known = |key: &str| entries.iter().any(|entry| entry.uuid.as_deref() == Some(key) || entry.name == key);
    let started = Keeper::start(store, &alarm_server, openraid_sys::clock::wall_seconds(), is_known);
    started.map_err(|error| Failure::failed(format!("no thread for alarms: {error}")))
}

/// The arrays that must be served, without raw drives. With --flat, the spans are served and not the array over them.
fn expected(arguments: &ServeArguments, wanted: &ArraysToServe) -> Vec<RegisteredArray> {
    let asked = wanted.asked.iter().filter(|entry| entry.level != ArrayLevel::Jbod && !arguments.flat);
    asked.cloned().collect()
}

/// The exit code of a server. A named array that was never there is a failure, although the others were served.
fn exit_of(exit: Exit, is_missing: bool) -> Exit {
    if exit == Exit::Fine && is_missing {
        return Exit::Failed;
    }
    exit
}

fn open_journal(
    arguments: &ServeArguments,
    chosen: &ServeOptions,
    context: &Context,
    server: &Server,
    members: &[(OpenedMember, ProbedMember)],
) -> Result<(), Failure> {
    if chosen.journal.is_empty() {
        return Ok(());
    }
    let devices = chosen.journal.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
    let controller = context.registry.controller()?;
    let open = options(Use::Exclusive);
    let last_uses = context.registry.last_uses()?;
    // Arrays that give their journal up do not need a newer one.
    let members = members.iter().filter(|_| !arguments.journal_lost);
    let of_member =
        |probed: &ProbedMember| JournalSighting::by_member(&probed.spec.text, probed.look.superblock.as_ref()?);
    let seen = members.filter_map(|(_, probed)| of_member(probed)).collect();
    let request = JournalRequest { devices, controller, alone: arguments.journal_alone, last_uses, seen, open };
    server.open_journal(request)?.iter().for_each(|note| context.output.warn(note));
    Ok(())
}

/// The addresses of NBD. A service listens where its file says: at the default address every account of the machine could write.
fn listens(chosen: &ServeOptions, stays: bool, context: &Context) -> Result<Vec<Listen>, Failure> {
    let mut listens = Vec::new();
    for text in &chosen.nbd {
        listens.extend(addresses("--nbd", text)?.into_iter().map(Listen::Tcp));
    }
    for path in &chosen.nbd_unix {
        let absolute =
            std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        listens.push(Listen::Unix(absolute));
    }
    let has_others = !(chosen.nbd_tls.is_empty() && chosen.nvme.is_empty() && chosen.vhost.is_empty());
    match listens.is_empty() && !has_others {
        true if stays => context.output.warn(
            "the configuration file names no address for clients: add nvme, nbd-unix, nbd, nbd-tls or vhost to [server]",
        ),
        true => listens.push(Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], PORT_DEFAULT)))),
        false => {}
    }
    Ok(listens)
}

/// The port of NVMe/TCP that is registered with IANA.
const NVME_PORT: u16 = 4420;

/// Parses `HOST:PORT`, `:PORT` or `PORT` (the last two on the loopback).
fn addresses(option: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let port = if option == "--nvme" { NVME_PORT } else { PORT_DEFAULT };
    let example = match text.parse::<Ipv6Addr>() {
        Ok(host) => format!("[{host}]:{port}"),
        Err(_) => format!("127.0.0.1:{port}"),
    };
    let wrong = |why: String| Failure::usage(format!("{option} {text}: {why}; write HOST:PORT, as in {example}"));
    let plain = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = plain.parse::<u16>() {
        return Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?.collect();
    match found.first() {
        Some(first) => Ok(vec![*first]),
        None => Err(wrong("this host has no address".into())),
    }
}

/// The addresses in use: for port 0 the port that the kernel chose.
fn listening(listen: &[Listen], service: &Service) -> Vec<ListenAddress> {
    let mut tcp = service.addresses().iter();
    let one = |place: &Listen| match place {
        Listen::Tcp(asked) => ListenAddress::Tcp(*tcp.next().unwrap_or(asked)),
        Listen::Unix(path) => ListenAddress::Unix(path.clone()),
    };
    listen.iter().map(one).collect()
}

fn all_listening(addresses: &Addresses, tls: &Tls, service: &Service) -> Vec<ListenAddress> {
    let (nbd, vhost) = (listening(&addresses.nbd, service), vhost_sockets::listening(&addresses.vhost));
    [nbd, tls.listening(), nvme_listening(service), vhost].concat()
}

fn nvme_listening(service: &Service) -> Vec<ListenAddress> {
    service.nvme_addresses().iter().map(|address| ListenAddress::Nvme(*address)).collect()
}

fn check_journal_options(arguments: &ServeArguments, chosen: &ServeOptions) -> Result<(), Failure> {
    if arguments.journal_alone && chosen.journal.is_empty() {
        return Err(Failure::usage("--journal-alone: say with --journal which journal"));
    }
    if chosen.journal.len() > 2 {
        return Err(Failure::usage("a journal is on one device or mirrored over two: give --journal once or twice"));
    }
    match arguments.consistency_policy {
        Some(ConsistencyWord::ControllerJournal) if chosen.journal.is_empty() => {
            Err(Failure::usage("--consistency-policy controller-journal: say with --journal which journal"))
        }
        Some(policy @ (ConsistencyWord::Bitmap | ConsistencyWord::Ppl)) => Err(Failure::usage(format!(
            "--consistency-policy {}: it is chosen when an array is created; leave it out",
            policy.text()
        ))),
        _ => Ok(()),
    }
}

/// The descriptor on which the server says that clients can connect.
fn ready_descriptor(number: i32) -> Result<File, Failure> {
    openraid_sys::take_descriptor(number).map_err(|error| {
        Failure::usage(format!(
            "--ready-fd {number}: it is not open for writing here: {error}; as in: --ready-fd 3 3>FIFO"
        ))
    })
}

/// What the server may write. Data of an array in a journal are part of its content, and belong on the members.
fn access(arguments: &ServeArguments, chosen: &ServeOptions) -> ServerAccess {
    match (arguments.read_only, chosen.journal.is_empty()) {
        (false, _) => ServerAccess::ReadWrite,
        (true, true) => ServerAccess::Untouched,
        (true, false) => ServerAccess::ReadOnly,
    }
}

/// Starts the requested arrays, and gives the reasons why others were not started.
fn begin(
    arguments: &ServeArguments,
    chosen: &ServeOptions,
    context: &Context,
    server: &Arc<Server>,
    wanted: ArraysToServe,
    stays: bool,
) -> Result<(StartReport, Vec<OfflineArray>), Failure> {
    if let Some(level) = arguments.level {
        open_journal(arguments, chosen, context, server, &[])?;
        return make(arguments, context, server, level, &wanted.members).map(|()| (StartReport::default(), Vec::new()));
    }
    let mut reasons = wanted.notes;
    let untouched = server.access() == ServerAccess::Untouched;
    let mut open = options(if untouched { Use::ReadExclusive } else { Use::Exclusive });
    open.without_flush = arguments.without_flush;
    let OpenForStart { mut opened, failed, busy } = server.open_for_start(&wanted.members, open);
    open_journal(arguments, chosen, context, server, &opened)?;
    if untouched {
        opened = opened.into_iter().map(in_memory).collect();
    } else if !arguments.degraded {
        let refused = protected(&wanted.members, &opened, &failed);
        let (sets, failures): (Vec<Uuid>, Vec<Failure>) = refused.into_iter().unzip();
        if !failures.is_empty() && !stays {
            return Err(Failure::joined(&failures, Exit::Refused));
        }
        // A service does not serve these arrays; their members are released.
        opened.retain(|(_, probed)| !probed.look.superblock.as_ref().is_some_and(|s| sets.contains(&s.set_uuid)));
        reasons.extend(failures);
    }
    let is_busy = !busy.is_empty();
    let unopened = failed.iter().map(|(text, _)| text.clone()).collect();
    reasons.extend(failed.iter().map(|(_, failure)| failure.clone()));
    reasons.extend(busy.into_iter().map(|(_, failure)| failure));
    // A folder may contain other files, but every named member should belong to an array.
    let named = arguments.scan.is_empty();
    let opened = opened
        .into_iter()
        .filter(|(_, probed)| named || probed.look.superblock.is_some() || probed.look.superblock_error.is_some());
    let mut opened: Vec<_> = opened.collect();
    if !stays {
        choose_half::choose(context, &mut opened, arguments.force)?;
    }
    let nesting = if arguments.flat { Nesting::Ignore } else { Nesting::Follow };
    let how = StartOptions {
        force: arguments.force,
        journal_lost: arguments.journal_lost,
        nesting,
        journalled: journalled(arguments),
        // A service keeps running.
        chosen_by: if stays { "assemble" } else { "serve" },
        layout: arguments.layout,
        after_loss: arguments.after_loss,
    };
    let mut taken = server.take(opened, how)?;
    reasons.append(&mut taken.failed);
    let served = taken.served.len() + take_raw(server, (wanted.raw, arguments.after_loss), open, &mut reasons);
    if served == 0 && !stays {
        return Err(nothing_served(reasons, is_busy));
    }
    let is_offline = |entry: &&RegisteredArray| !arguments.flat && !server.has_array(entry);
    let offline = wanted.asked.iter().filter(is_offline).map(|entry| name_offline(entry, &failed, &mut reasons));
    let offline = offline.collect();
    // Arrays that are only in the file are recorded now, so that their settings can be stored.
    reasons.extend(taken.served.iter().filter_map(|name| server.remember_of_file(name).err()));
    reasons.iter().for_each(|reason| context.output.warn(&reason.text()));
    taken.failed = reasons;
    taken.unopened = unopened;
    Ok((taken, offline))
}

/// The failure if no array is served.
fn nothing_served(mut reasons: Vec<Failure>, is_busy: bool) -> Failure {
    if reasons.is_empty() {
        reasons.push(Failure::refused("none of the files holds a member of an array"));
    }
    let why = Failure::joined(&reasons, Exit::Refused);
    // A busy span makes the whole nested array impossible, and the array is still only refused.
    let exit = if is_busy { Exit::Refused } else { why.exit };
    Failure::new(exit, format!("nothing can be served:\n  {}", why.text()))
}

/// Leave one reason for an array that is not served.
fn name_offline(entry: &RegisteredArray, failed: &[(String, Failure)], reasons: &mut Vec<Failure>) -> OfflineArray {
    let why = why_offline(entry, failed, reasons);
    let offline = OfflineArray { name: entry.name.clone(), reason: why.reason() };
    reasons.retain(|known| !start_problems::is_of(entry, known));
    reasons.push(why);
    offline
}

/// Serves raw drives, with the consent to a loss if it was given. Returns their number.
fn take_raw(
    server: &Server,
    (raw, after_loss): (Vec<(String, MemberSpec)>, bool),
    open: OpenOptions,
    reasons: &mut Vec<Failure>,
) -> usize {
    let mut served = 0;
    for (name, spec) in raw {
        let raw = open_every(std::slice::from_ref(&spec), open);
        let take = |(member, _)| server.take_raw(&name, member, after_loss);
        let raw = raw.and_then(|opened| opened.into_iter().try_for_each(take));
        match raw {
            Ok(()) => served += 1,
            Err(failure) => reasons.push(failure.of_array(ArrayLabel::new(&name, None))),
        }
    }
    served
}

/// Must all arrays use the journal, or none?
fn journalled(arguments: &ServeArguments) -> Option<bool> {
    arguments.consistency_policy.map(|policy| policy == ConsistencyWord::ControllerJournal)
}

/// Creates an array that exists as long as the server.
fn make(
    arguments: &ServeArguments,
    context: &Context,
    server: &Arc<Server>,
    level: ArrayLevel,
    specs: &[MemberSpec],
) -> Result<(), Failure> {
    let name = arguments.name.as_deref().unwrap_or("scratch");
    if level == ArrayLevel::Jbod {
        for (nth, (member, _)) in (0..).zip(open_every(specs, options(Use::Exclusive))?) {
            let name = if specs.len() > 1 { raw_drive_name(name, nth) } else { name.into() };
            server.take_raw(&name, member, arguments.after_loss)?;
        }
        return Ok(());
    }
    let names: Vec<String> = specs.iter().map(|spec| spec.text.clone()).collect();
    let shape = NewShape::of(&CreateOptions {
        name,
        level,
        layout: None,
        chunk: arguments.chunk,
        spans: None,
        members: &names,
        spares: &[],
        size: None,
        // Memory consists of zeroes, which are in sync, and no later start finds it dirty.
        assume_clean: specs.iter().all(is_memory),
        bitmap: specs.iter().all(is_memory).then_some(false),
        ppl: false,
        minor: MinorVersion::V1_2,
    })?;
    let members = open_every(specs, options(Use::Exclusive))?;
    for (_, probed) in &members {
        crate::server::joining_members::check_free(probed, false)?;
    }
    let sizes: Vec<Sectors> = members.iter().map(|(opened, _)| opened.info.capacity).collect();
    let plans = shape.plan(&sizes, &names)?;
    let opened = members.into_iter().map(|(opened, _)| opened).collect();
    let started = shape.make(&server.handle(), &plans, opened)?;
    let (name, notes) = server.serve_journalled(started, journalled(arguments), false)?;
    notes.iter().for_each(|note| context.output.warn(&note.text()));
    let remembered = server.remember(&name);
    let journal_noted = journalled(arguments).map_or(Ok(()), |wanted| server.remember_journalled(&name, wanted));
    if let Err(failure) = remembered.and(journal_noted) {
        context.output.warn(&failure.text());
    }
    Ok(())
}

/// What a server has to say at its start.
struct Began<'a> {
    taken: &'a StartReport,
    offline: &'a [OfflineArray],
    /// The address of the console, and a link that signs in.
    web: Option<(String, Option<String>)>,
}

fn announce_ready(context: &Context, server: &Server, socket: &Path, began: Began<'_>) -> Result<(), Failure> {
    let arrays = server.arrays()?;
    let Began { taken: StartReport { recovered, left_out, .. }, offline, web } = began;
    if context.output.json {
        let control = socket.display().to_string();
        let (console, login) = web.map_or((None, None), |(console, login)| (Some(console), login));
        context.output.document(
            Exit::Fine,
            &ServeLine::Ready { arrays: &arrays, offline, control, recovered, left_out, console, login },
        );
        return Ok(());
    }
    for note in server.describe()?.notes {
        context.output.warn(&note);
    }
    for array in &arrays {
        let state = health_text(array.health);
        context.output.say(&format!("{}: {}, {}, {state}", array.name, title(array), human(Bytes(array.size_bytes))));
        if let Some(forced) = &array.forced {
            context.output.warn(&format!("{}: started by force: {}", array.name, forced.trim_end_matches([';', ' '])));
        }
        if let Some(refused) = &array.refused {
            context.output.warn(&format!("{}: hosts are refused: {refused}", array.name));
        }
        for address in &array.addresses {
            context.output.say(&format!("  {address}"));
        }
    }
    for OfflineArray { name, reason } in offline {
        context.output.say(&format!("{name}: OFFLINE, not served: {reason}"));
    }
    for member in left_out {
        context.output.warn(&member.to_string());
    }
    for line in recovered {
        context.output.say(line);
    }
    if let Some((console, login)) = web {
        context.output.say(&format!("console: {console}"));
        if let Some(login) = login {
            context.output.say(&format!("  first sign-in, once within 15 minutes: {login}"));
        }
    }
    context.output.say(&format!("ready (control socket {}; Ctrl-C stops)", socket.display()));
    Ok(())
}

fn warn_of_open_addresses(context: &Context, addresses: &[SocketAddr], protocol: &str) {
    for address in addresses.iter().filter(|address| !address.ip().is_loopback()) {
        context.output.warn(&format!(
            "{address} is open to the network: {protocol} has no password and no encryption, so every client that can reach it can read \
             and write the arrays"
        ));
    }
}
