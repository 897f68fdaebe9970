//! `openraid serve`: arrays over NBD, in the foreground, until a signal or `openraid stop`.

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use openraid_core::cache::figures::table_bytes;
use openraid_core::limits::{Limits, POOL_BYTES_MAX};
use openraid_format::MinorVersion;
use openraid_nbd::PORT_DEFAULT;
use openraid_runtime::member::MemberSpec;
use openraid_runtime::service::journal::JournalRequest;
use openraid_runtime::service::{Listen, Nesting, Service, ServiceEvent};
use openraid_runtime::ServiceConfig;
use openraid_sys::memory::MemoryBound;
use openraid_sys::{Signals, Use};
use openraid_units::{Bytes, Nanos, Sectors};
use serde::Serialize;

use super::Context;
use crate::arguments::ServeArguments;
use crate::consistency::ConsistencyWord;
use crate::control;
use crate::exit::{Exit, Failure, Outcome};
use crate::making::{Shape, Wish};
use crate::members::{
    in_folder, in_memory, is_memory, lasting_spec, looks_like_a_name, open_every, open_some, options, refuse_protected,
    remembered, spec, written_spec,
};
use crate::model::ArrayModel;
use crate::output::array::{health_text, title};
use crate::output::live::Live;
use crate::output::members::LeftOut;
use crate::quantity::{human, utc};
use crate::registry::Entry;
use crate::server::news::News;
use crate::server::start::{Taken, Taking};
use crate::server::{Access, Listening, Server, ServerOptions};
use crate::words::LevelWord;

/// Memory through which a journal is written: four buffers of the largest entry.
const JOURNAL_BUFFERS: Bytes = Bytes::mib(4);
/// Cache of a server with a journal where nobody says how much.
const JOURNAL_CACHE: Bytes = Bytes::mib(64);
/// Where the least memory that works is looked for: a few MiB are enough.
const LEAST_MEMORY_MIB_MAX: u64 = 1024;
/// How often tasks are sampled, and the state on the terminal is redrawn.
const TICK: Duration = Duration::from_millis(500);
/// Of the memory for payload, so many parts in so many are for the engine's own work.
const WORK_SHARE: (u64, u64) = (2, 5);

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    Ready { arrays: &'a [ArrayModel], control: String, recovered: &'a [String], left_out: &'a [LeftOut] },
    News(NewsBody<'a>),
    Stopped,
}

#[derive(Serialize)]
struct NewsBody<'a> {
    news: &'a News,
}

/// Do it.
///
/// # Errors
/// Nothing could be served, or an address is taken.
pub fn run(arguments: &ServeArguments, context: &Context) -> Outcome {
    // Before any thread is made, so that no thread takes a signal for itself.
    let signals =
        Signals::take_over().map_err(|error| Failure::failed(format!("signals cannot be taken over: {error}")))?;
    let ready_fd = arguments.ready_fd.map(ready_descriptor).transpose()?;
    // What is wrong with the line itself is said first.
    let listen = listens(arguments)?;
    check_journal_options(arguments)?;
    let limits = limits_of(arguments)?;
    let wanted = wanted(arguments, context)?;
    let config = ServiceConfig { limits, listen: listen.clone(), signals: Some(signals), ..ServiceConfig::default() };
    let service = Service::start(config)?;
    let server = Server::new(ServerOptions {
        handle: service.handle(),
        registry: context.registry.clone(),
        listens: listening(&listen, service.addresses()),
        access: access(arguments),
        without_flush: arguments.without_flush,
    });
    if !arguments.journal.is_empty() {
        let devices = arguments.journal.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
        let controller = context.registry.controller()?;
        let open = options(Use::Exclusive);
        let last_uses = context.registry.last_uses()?;
        let request = JournalRequest { devices, controller, alone: arguments.journal_alone, last_uses, open };
        for note in server.open_journal(request)? {
            context.output.warn(&note);
        }
    }
    let taken = begin(arguments, context, &server, wanted)?;
    let answerer: Arc<dyn control::Answerer> = Arc::<Server>::clone(&server);
    let (socket, _keeps_the_socket) = control::listen(context.common.control.as_deref(), answerer)?;
    tell_ready(context, &server, &socket, &taken)?;
    if let Some(mut file) = ready_fd {
        // Dropped after that: the reader sees the end.
        let told = writeln!(file, "ready");
        told.map_err(|error| Failure::failed(format!("--ready-fd: it cannot be written: {error}")))?;
    }
    warn_of_open_doors(context, service.addresses());
    let exit = attend(arguments, context, &service, &server);
    service.stop();
    for failure in server.restore_all_drive_caches() {
        context.output.warn(&failure);
    }
    if context.output.json {
        context.output.document(exit, &Line::Stopped);
    } else {
        context.output.say("stopped");
    }
    Ok(exit)
}

/// What is to be served.
#[derive(Debug, Default)]
struct Wanted {
    /// Members of arrays.
    members: Vec<MemberSpec>,
    /// Raw drives, by the name of their export.
    raw: Vec<(String, MemberSpec)>,
}

fn wanted(arguments: &ServeArguments, context: &Context) -> Result<Wanted, Failure> {
    let mut wanted = Wanted::default();
    for folder in &arguments.scan {
        wanted.members.extend(in_folder(folder)?);
    }
    let nothing_named = arguments.names.is_empty() && arguments.scan.is_empty();
    if nothing_named && arguments.level.is_none() {
        let entries = context.registry.entries()?;
        if entries.is_empty() {
            return Err(Failure::refused(
                "no array is remembered; make one with `openraid create`, or name members or a folder (--scan)",
            ));
        }
        for entry in &entries {
            wanted.add(entry)?;
        }
    }
    for name in &arguments.names {
        match remembered(name, &context.registry)? {
            Some(entry) => wanted.add(&entry)?,
            None if looks_like_a_name(name) && !name.contains(':') => {
                return Err(Failure::refused(format!(
                    "{name}: no array of this name is remembered, and no file of this name is here; see `openraid list`"
                )))
            }
            None => wanted.members.push(written_spec(name)?),
        }
    }
    Ok(wanted)
}

impl Wanted {
    fn add(&mut self, entry: &Entry) -> Result<(), Failure> {
        let specs = entry.members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?;
        if entry.uuid.is_some() {
            self.members.extend(specs);
        } else {
            let several = specs.len() > 1;
            let name = |nth: usize| if several { format!("{}-{nth}", entry.name) } else { entry.name.clone() };
            self.raw.extend(specs.into_iter().enumerate().map(|(nth, spec)| (name(nth), spec)));
        }
        Ok(())
    }
}

fn listens(arguments: &ServeArguments) -> Result<Vec<Listen>, Failure> {
    let mut listens = Vec::new();
    for text in &arguments.nbd {
        listens.extend(addresses(text)?.into_iter().map(Listen::Tcp));
    }
    for path in &arguments.nbd_unix {
        let absolute =
            std::path::absolute(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        listens.push(Listen::Unix(absolute));
    }
    if listens.is_empty() {
        listens.push(Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], PORT_DEFAULT))));
    }
    Ok(listens)
}

/// `HOST:PORT`, `:PORT` or `PORT` (both on the loopback).
fn addresses(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let wrong = |why: String| Failure::usage(format!("--nbd {text}: {why}; write HOST:PORT, as in 127.0.0.1:10809"));
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

/// The addresses as they became: port 0 has taken a free one.
fn listening(listen: &[Listen], tcp: &[SocketAddr]) -> Vec<Listening> {
    let mut tcp = tcp.iter();
    let one = |place: &Listen| match place {
        Listen::Tcp(asked) => Listening::Tcp(*tcp.next().unwrap_or(asked)),
        Listen::Unix(path) => Listening::Unix(path.clone()),
    };
    listen.iter().map(one).collect()
}

fn check_journal_options(arguments: &ServeArguments) -> Result<(), Failure> {
    if arguments.journal.len() > 2 {
        return Err(Failure::usage("a journal is on one device or mirrored over two: give --journal once or twice"));
    }
    match arguments.consistency_policy {
        Some(ConsistencyWord::ControllerJournal) if arguments.journal.is_empty() => {
            Err(Failure::usage("--consistency-policy controller-journal: say with --journal which journal"))
        }
        Some(policy @ (ConsistencyWord::Bitmap | ConsistencyWord::Ppl)) => Err(Failure::usage(format!(
            "--consistency-policy {}: that is chosen when an array is created, and needs no word here",
            policy.text()
        ))),
        _ => Ok(()),
    }
}

fn limits_of(arguments: &ServeArguments) -> Result<Limits, Failure> {
    let frame = Bytes(openraid_core::limits::FRAME_BYTES);
    let journalled = !arguments.journal.is_empty();
    let default = if journalled { JOURNAL_CACHE } else { Bytes(0) };
    let (memory, asked) = (arguments.memory, arguments.cache.unwrap_or(default));
    check_asked(memory, asked, journalled)?;
    let cache = asked.round_down(frame);
    let journal = if journalled { JOURNAL_BUFFERS } else { Bytes(0) };
    let with = |memory: Bytes| {
        let pool = memory.round_down(frame);
        let work = (pool / WORK_SHARE.1 * WORK_SHARE.0).round_down(frame);
        let (drive_depth_max, queue_age_max) = (arguments.drive_depth, Nanos::from_secs(arguments.queue_age));
        let own = Limits { drive_depth_max, queue_age_max, ..Limits::default() };
        Limits { pool: pool + cache + journal, work, cache, journal, ..own }
    };
    let limits = with(memory);
    check_sizes(&limits, memory)?;
    limits.check().map_err(|error| too_little(memory, &with, &error))?;
    if let Some(bound) = openraid_sys::memory::bound() {
        check_memory(&limits, &bound).map_err(Failure::refused)?;
    }
    Ok(limits)
}

/// Memory that cannot work, with the least that can.
fn too_little(memory: Bytes, with: &dyn Fn(Bytes) -> Limits, error: &dyn std::fmt::Display) -> Failure {
    let mut steps = (1..=LEAST_MEMORY_MIB_MAX).map(Bytes::mib);
    let least = steps.find(|least| *least > memory && with(*least).check().is_ok());
    Failure::usage(match least {
        Some(least) => {
            let (memory, least) = (human(memory), human(least));
            format!("--memory {memory}: it is too little to work; give {least} at least")
        }
        None => format!("--memory {}, --cache {}: {error}", human(memory), human(with(memory).cache)),
    })
}

/// Sizes that cannot be meant, before anything is reckoned with them.
fn check_asked(memory: Bytes, cache: Bytes, journalled: bool) -> Result<(), Failure> {
    let least = Limits::default().cache_bytes_min();
    if memory > POOL_BYTES_MAX || cache > POOL_BYTES_MAX {
        return Err(too_much(memory, cache));
    }
    if cache < least && (journalled || !cache.is_zero()) {
        let or = if journalled { "; a journal needs it" } else { ", or none" };
        let (cache, least) = (human(cache), human(least));
        return Err(Failure::usage(format!("--cache {cache}: it is too small to work; give {least} at least{or}")));
    }
    Ok(())
}

fn too_much(memory: Bytes, cache: Bytes) -> Failure {
    let (memory, cache, most) = (human(memory), human(cache), human(POOL_BYTES_MAX));
    Failure::usage(format!("--memory {memory}, --cache {cache}: more than {most} cannot be addressed; give less"))
}

/// What the limits would refuse without knowing the options.
fn check_sizes(limits: &Limits, memory: Bytes) -> Result<(), Failure> {
    if limits.pool > POOL_BYTES_MAX {
        return Err(too_much(memory, limits.cache));
    }
    Ok(())
}

/// Is there so much memory? It is not taken at once, and what is missing would be found out when the kernel ends the
/// server in the middle of its work.
fn check_memory(limits: &Limits, bound: &MemoryBound) -> Result<(), String> {
    let tables = table_bytes(limits.cache);
    let need = limits.pool + tables;
    if need <= bound.bytes {
        return Ok(());
    }
    let rest = limits.pool - limits.cache;
    let most = cache_that_fits(Bytes(bound.bytes.get().saturating_sub(rest.get())));
    let remedy = if most.is_zero() {
        format!("give less to --memory ({} now)", human(rest))
    } else {
        format!("give --cache {} at the most", human(most))
    };
    Err(format!(
        "the server would need {}: {} for payload, --cache {}, and {} for the tables of the cache; there are {}, {}; {remedy}",
        human(need),
        human(rest),
        human(limits.cache),
        human(tables),
        human(bound.bytes),
        bound.by
    ))
}

/// The largest cache, in whole MiB, that has room here with its tables, which grow by steps.
fn cache_that_fits(room: Bytes) -> Bytes {
    let fits = |mib| Bytes::mib(mib) + table_bytes(Bytes::mib(mib)) <= room;
    let (mut most, mut too_much) = (0, room / Bytes::mib(1) + 1);
    while too_much - most > 1 {
        let middle = most.midpoint(too_much);
        if fits(middle) {
            most = middle;
        } else {
            too_much = middle;
        }
    }
    Bytes::mib(most)
}

/// The descriptor that is told when clients can come.
fn ready_descriptor(number: i32) -> Result<File, Failure> {
    openraid_sys::take_descriptor(number).map_err(|error| {
        Failure::usage(format!(
            "--ready-fd {number}: it is not open for writing here: {error}; as in: --ready-fd 3 3>FIFO"
        ))
    })
}

/// What is written. What a journal holds for an array is a part of its content, and belongs on the members.
fn access(arguments: &ServeArguments) -> Access {
    match (arguments.read_only, arguments.journal.is_empty()) {
        (false, _) => Access::ReadWrite,
        (true, true) => Access::Untouched,
        (true, false) => Access::ReadOnly,
    }
}

/// Start what is wanted, and say why the rest of it was not started.
fn begin(
    arguments: &ServeArguments,
    context: &Context,
    server: &Arc<Server>,
    wanted: Wanted,
) -> Result<Taken, Failure> {
    if let Some(level) = arguments.level {
        return make(arguments, context, server, level, &wanted.members).map(|()| Taken::default());
    }
    let mut reasons = Vec::new();
    let untouched = access(arguments) == Access::Untouched;
    let mut open = options(if untouched { Use::ReadExclusive } else { Use::Exclusive });
    open.without_flush = arguments.without_flush;
    let (mut opened, failed) = open_some(&wanted.members, open);
    if untouched {
        opened = opened.into_iter().map(in_memory).collect();
    } else if !arguments.degraded {
        refuse_protected(&wanted.members, &opened, &failed)?;
    }
    reasons.extend(failed.into_iter().map(|(_, failure)| failure));
    // In a folder there may be other files; of what was named, everything should belong to an array.
    let named = arguments.scan.is_empty();
    let opened = opened
        .into_iter()
        .filter(|(_, probed)| named || probed.look.superblock.is_some() || probed.look.superblock_error.is_some());
    let nesting = if arguments.flat { Nesting::Ignore } else { Nesting::Follow };
    let how = Taking {
        force: arguments.force,
        journal_lost: arguments.journal_lost,
        nesting,
        journalled: journalled(arguments),
    };
    let mut taken = server.take(opened.collect(), how)?;
    reasons.append(&mut taken.failed);
    let mut served = taken.served.len();
    for (name, spec) in wanted.raw {
        let raw = open_every(std::slice::from_ref(&spec), open);
        let raw = raw.and_then(|opened| opened.into_iter().try_for_each(|(member, _)| server.take_raw(&name, member)));
        match raw {
            Ok(()) => served += 1,
            Err(failure) => reasons.push(failure),
        }
    }
    if served == 0 {
        if reasons.is_empty() {
            reasons.push(Failure::refused("none of the files holds a member of an array"));
        }
        let why = Failure::joined(&reasons, Exit::Refused);
        return Err(Failure { text: format!("nothing can be served:\n  {}", why.text), ..why });
    }
    for reason in reasons {
        context.output.warn(&reason.text);
    }
    Ok(taken)
}

/// Are all arrays to use the journal, or is none to?
fn journalled(arguments: &ServeArguments) -> Option<bool> {
    arguments.consistency_policy.map(|policy| policy == ConsistencyWord::ControllerJournal)
}

/// An array that lives as long as the server.
fn make(
    arguments: &ServeArguments,
    context: &Context,
    server: &Arc<Server>,
    level: LevelWord,
    specs: &[MemberSpec],
) -> Result<(), Failure> {
    let name = arguments.name.as_deref().unwrap_or("scratch");
    if level == LevelWord::Jbod {
        for (nth, (member, _)) in open_every(specs, options(Use::Exclusive))?.into_iter().enumerate() {
            let name = if specs.len() > 1 { format!("{name}-{nth}") } else { name.into() };
            server.take_raw(&name, member)?;
        }
        return Ok(());
    }
    let names: Vec<String> = specs.iter().map(|spec| spec.text.clone()).collect();
    let shape = Shape::of(&Wish {
        name,
        level,
        layout: None,
        chunk: arguments.chunk,
        spans: None,
        members: &names,
        spares: &[],
        size: None,
        // Memory is all zero, and zeroes are consistent; and nobody finds it dirty later.
        assume_clean: specs.iter().all(is_memory),
        bitmap: specs.iter().all(is_memory).then_some(false),
        ppl: false,
        minor: MinorVersion::V1_2,
    })?;
    let members = open_every(specs, options(Use::Exclusive))?;
    for (_, probed) in &members {
        crate::server::members::check_free(probed, false)?;
    }
    let sizes: Vec<Sectors> = members.iter().map(|(opened, _)| opened.info.capacity).collect();
    let plans = shape.plan(&sizes, &names)?;
    let opened = members.into_iter().map(|(opened, _)| opened).collect();
    let started = shape.make(&server.handle(), &plans, opened)?;
    let (name, note) = server.serve_journalled(started, journalled(arguments))?;
    if let Some(note) = note {
        context.output.warn(&note);
    }
    let remembered = server.remember(&name);
    let wish = journalled(arguments).map_or(Ok(()), |wish| server.remember_journalled(&name, wish));
    if let Err(failure) = remembered.and(wish) {
        context.output.warn(&failure.text);
    }
    Ok(())
}

fn tell_ready(context: &Context, server: &Server, socket: &std::path::Path, taken: &Taken) -> Result<(), Failure> {
    let arrays = server.arrays()?;
    let Taken { recovered, left_out, .. } = taken;
    if context.output.json {
        let control = socket.display().to_string();
        context.output.document(Exit::Fine, &Line::Ready { arrays: &arrays, control, recovered, left_out });
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
        for address in &array.addresses {
            context.output.say(&format!("  {address}"));
        }
    }
    for member in left_out {
        context.output.warn(&member.to_string());
    }
    for line in recovered {
        context.output.say(line);
    }
    context.output.say(&format!("ready (control socket {}; Ctrl-C stops)", socket.display()));
    Ok(())
}

fn warn_of_open_doors(context: &Context, addresses: &[SocketAddr]) {
    for address in addresses.iter().filter(|address| !address.ip().is_loopback()) {
        context.output.warn(&format!(
            "{address} is open to the network: NBD has no password and no encryption, so anyone who can reach it can read \
             and write the arrays"
        ));
    }
}

/// Tell news and show the state until the service ends.
fn attend(arguments: &ServeArguments, context: &Context, service: &Service, server: &Arc<Server>) -> Exit {
    let mut live = arguments.status.then(Live::new);
    let mut exit = Exit::Fine;
    let mut next = Instant::now();
    loop {
        match service.events().recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(ServiceEvent::Stopped) | Err(RecvTimeoutError::Disconnected) => {
                // What came since the last tick is told, too.
                for news in server.journal_news() {
                    tell_news(context, live.as_mut(), &news);
                }
                return exit;
            }
            Ok(event) => {
                if matches!(event, ServiceEvent::StopFailed(..)) {
                    exit = Exit::Error;
                }
                if let Some(news) = server.news(&event) {
                    tell_news(context, live.as_mut(), &news);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                next = Instant::now() + TICK;
                // An error means that it is ending: the event comes.
                let _ = server.sample();
                for news in server.journal_news() {
                    tell_news(context, live.as_mut(), &news);
                }
                if let (Some(live), Ok(arrays)) = (&mut live, server.arrays()) {
                    live.update(&arrays, &[]);
                }
                if server.is_emptied() {
                    service.handle().begin_stop();
                }
            }
        }
    }
}

fn tell_news(context: &Context, live: Option<&mut Live>, news: &News) {
    if context.output.json {
        return context.output.document(Exit::Fine, &Line::News(NewsBody { news }));
    }
    let text = format!("{}  {}", utc(openraid_sys::clock::wall_seconds()), news.text);
    match live {
        Some(live) => live.say(&text),
        None => context.output.say(&text),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;

    fn limits(cache: Bytes) -> Limits {
        Limits { pool: Bytes::mib(160) + cache, cache, ..Limits::default() }
    }

    #[test]
    fn a_cache_larger_than_memory_is_refused_with_the_largest_that_fits() {
        let bound = |mib| MemoryBound { bytes: Bytes::mib(mib), by: "available".into() };
        let text = check_memory(&limits(Bytes::mib(4096)), &bound(1184)).unwrap_err();
        assert!(text.contains("--cache 4 GiB") && text.contains("there are 1.1 GiB, available"), "{text}");
        // 1,024 MiB are left for a cache and its tables: the largest that is proposed fits, and not by much.
        let most = text.rsplit("--cache ").next().and_then(|rest| rest.strip_suffix(" MiB at the most")).unwrap();
        let most: u64 = most.parse().unwrap();
        check_memory(&limits(Bytes::mib(most)), &bound(1184)).unwrap();
        check_memory(&limits(Bytes::mib(most + 1)), &bound(1184)).unwrap_err();
        assert!(most > 960, "{text}");
        let text = check_memory(&limits(Bytes(0)), &bound(100)).unwrap_err();
        assert!(text.contains("give less to --memory (160 MiB now)"), "{text}");
        check_memory(&limits(Bytes::mib(64)), &bound(256)).unwrap();
    }

    #[test]
    fn how_many_commands_a_drive_gets_and_how_long_others_wait_is_as_asked() {
        let asked = |words: &[&str]| {
            let words = ["serve"].iter().chain(words);
            let command = ServeArguments::augment_args(clap::Command::new("serve"));
            let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
            let arguments = ServeArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
            limits_of(&arguments).map_err(|failure| failure.text)
        };
        let usual = asked(&[]).unwrap();
        assert_eq!((usual.drive_depth_max, usual.queue_age_max), (128, Nanos::from_secs(2)));
        let own = asked(&["--drive-depth", "16", "--queue-age", "5"]).unwrap();
        assert_eq!((own.drive_depth_max, own.queue_age_max), (16, Nanos::from_secs(5)));
        for words in [["--drive-depth", "0"], ["--drive-depth", "129"], ["--queue-age", "0"], ["--queue-age", "31"]] {
            assert!(asked(&words).unwrap_err().contains("is not in"), "{words:?}");
        }
    }

    #[test]
    fn memory_that_cannot_work_is_refused_with_the_least_that_can() {
        let frame = Bytes(openraid_core::limits::FRAME_BYTES);
        let with = |memory: Bytes| {
            let work = (memory / WORK_SHARE.1 * WORK_SHARE.0).round_down(frame);
            Limits { pool: memory.round_down(frame), work, cache: Bytes(0), journal: Bytes(0), ..Limits::default() }
        };
        let text = too_little(Bytes::kib(1), &with, &"small").text;
        let least = text.rsplit("give ").next().and_then(|rest| rest.strip_suffix(" MiB at least")).expect("a figure");
        let least: u64 = least.parse().expect("a number");
        assert!(with(Bytes::mib(least)).check().is_ok(), "{text}");
        assert!((1..least).all(|less| with(Bytes::mib(less)).check().is_err()), "{text}");
    }

    #[test]
    fn sizes_that_cannot_work_are_refused_with_the_figure_that_can() {
        let memory = Bytes::mib(160);
        let refused = |cache, journalled| check_asked(memory, cache, journalled).unwrap_err().text;
        for cache in [Bytes(1), Bytes::kib(1), Bytes::kib(64)] {
            assert!(refused(cache, false).contains("give 80 KiB at least, or none"));
        }
        assert!(refused(Bytes(0), true).contains("give 80 KiB at least; a journal needs it"));
        check_asked(memory, Bytes(0), false).unwrap();
        for cache in [Bytes::mib(5 << 20), Bytes(u64::MAX)] {
            assert!(refused(cache, true).contains("more than 4 TiB cannot be addressed; give less"));
        }
        check_asked(Bytes(u64::MAX), Bytes(0), false).unwrap_err();
        // Each can be addressed, and both together cannot.
        check_sizes(&limits(Bytes::mib(4 << 20)), memory).unwrap_err();
        check_asked(memory, Bytes::kib(80), true).unwrap();
        check_sizes(&limits(Bytes::kib(80)), memory).unwrap();
        assert_eq!(limits(Bytes::kib(80)).check(), Ok(()));
    }
}
