//! `openraid copy-in`: fills an array from standard input, through the engine, so that its redundancy is correct.

use std::fs::File;
use std::io::{IsTerminal, Read, Seek};
use std::os::fd::AsFd;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use openraid_core::admin::{AdminCommand, ArrayStatus, Health, Policy, TaskKind};
use openraid_core::array::assemble::AssembleOptions;
use openraid_runtime::member::{look, ProbeError};
use openraid_runtime::service::{AssembleRequest, Nesting, Service, ServiceError};
use openraid_runtime::ServiceHandle;
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes, DriveLba, Sectors};
use serde::Serialize;

use super::copy_out::{PIECES_AHEAD, PIECE_BYTES};
use super::Context;
use crate::arguments::CopyInArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::{quiet_service, reasons};
use crate::members::array_locks::{open_for_start, ArrayLocks, OpenForStart};
use crate::members::contents::named_in;
use crate::members::{are_in_use, named, none_opened, options, refuse_protected};
use crate::output::progress::WorkProgress;
use crate::quantity::human;
use crate::server::array_model::ServedArray;

/// Time between two checks of a resync for which the user waits.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A copy into an array.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct CopyInBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// Number of bytes that were copied into the array.
    bytes: u64,
    /// Size of the array for hosts.
    size_bytes: u64,
    /// Are parity and copies in sync now?
    in_sync: bool,
}

/// Runs the verb.
///
/// # Errors
/// The members form no array, the input is too long, or the array cannot be written.
pub fn run(arguments: &CopyInArguments, context: &Context) -> Outcome {
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage("standard input is a terminal; give it a file or a pipe: ... < image"));
    }
    let specs = named(&arguments.members, &context.registry)?;
    let mut locks = ArrayLocks::default();
    let OpenForStart { opened, failed, busy } =
        open_for_start(&specs, options(Use::Exclusive), &mut locks, &context.registry);
    if !busy.is_empty() {
        let failures: Vec<Failure> = busy.into_iter().map(|(_, failure)| failure).collect();
        return Err(Failure::joined(&failures, Exit::Refused));
    }
    if opened.is_empty() {
        let none = none_opened("", &arguments.members, &specs, &failed, &context.registry);
        return Err(if are_in_use(&failed) { none.exiting(Exit::Refused) } else { none });
    }
    refuse_protected(&specs, &opened, &failed)?;
    for (_, failure) in &failed {
        context.output.warn(&failure.text());
    }
    let why = reasons(&opened, AssembleOptions::default());
    let service = quiet_service()?;
    let request = AssembleRequest { options: AssembleOptions::default(), nesting: Nesting::Follow };
    let mut started = service.handle().assemble(opened, request)?;
    let array = match (started.arrays.pop(), started.arrays.is_empty()) {
        (Some(array), true) => ServedArray::of(array),
        (Some(_), false) => return Err(Failure::refused("these members make several arrays; name the members of one")),
        (None, _) => {
            let outer = started
                .failed
                .into_iter()
                .map(|(_, name, error)| Failure::from(error).of(format_args!("array {name}")));
            let failures: Vec<Failure> = if why.is_empty() { outer.collect() } else { why };
            return Err(Failure::joined(&failures, Exit::Refused));
        }
    };
    fill(arguments, context, service, &array)
}

fn fill(arguments: &CopyInArguments, context: &Context, service: Service, array: &ServedArray) -> Outcome {
    let handle = service.handle();
    let status = handle.status()?;
    let view = status.arrays.iter().find(|view| view.status.array == array.array);
    let view = view.ok_or_else(|| Failure::failed("the array does not run"))?;
    let (size, health) = (view.status.capacity.bytes().get(), view.status.health);
    check_input(size, &array.name)?;
    if !(arguments.overwrite && arguments.yes) {
        check_content(&handle, array, view.status.capacity)?;
    }
    // A resync would read data that are about to be overwritten, so it is paused and continues afterwards.
    each_set(&handle, array, |array| AdminCommand::Pause { array })?;
    let unbounded = Policy { rebuild_rate: Sectors::ZERO, ..Policy::default() };
    each_set(&handle, array, |array| AdminCommand::SetPolicy { array, policy: unbounded })?;
    let result = copy(&handle, array, size);
    each_set(&handle, array, |array| AdminCommand::Resume { array })?;
    let bytes = result?;
    handle.flush(array.array)?;
    let in_sync = if arguments.no_sync { !is_syncing(&handle, array)? } else { wait_for_sync(&handle, array)? };
    let reached = sets(&handle, array)?.iter().map(|set| set.consistent_to).min().unwrap_or_default();
    if let Some(started) = &array.started {
        handle.stop_and_release(started)?;
    }
    service.stop();
    let degraded = health != Health::Optimal;
    let exit = if degraded { Exit::Degraded } else { Exit::Fine };
    let mut text = format!("{} written to {} ({})", human(Bytes(bytes)), array.name, human(Bytes(size)));
    if degraded {
        text.push_str("; it is degraded");
    }
    if !in_sync {
        text.push_str(&if reached.is_zero() {
            "; its parity or copies are not in sync: the sync begins when it is served".to_owned()
        } else {
            let done = human(reached.bytes());
            format!(
                "; its parity or copies are in sync up to {done} of each member: the sync goes on when it is served"
            )
        });
    }
    let body = CopyInBody { array: &array.name, bytes, size_bytes: size, in_sync };
    Ok(context.output.answer(exit, &body, &text))
}

fn each_set(
    handle: &ServiceHandle,
    array: &ServedArray,
    command: impl Fn(ArrayId) -> AdminCommand,
) -> Result<(), Failure> {
    for set in array.sets() {
        handle.admin(command(set))?;
    }
    Ok(())
}

/// Refuse an array with content that has a name. Bytes without a name are expected: members had other data before.
fn check_content(handle: &ServiceHandle, array: &ServedArray, capacity: Sectors) -> Result<(), Failure> {
    let mut read = |lba: DriveLba, into: &mut [u8]| {
        let unreadable = |error: ServiceError| ProbeError::Unreadable { lba, why: error.to_string() };
        handle.read(array.array, lba.offset().bytes().get(), into).map_err(unreadable)
    };
    let look = look(capacity, &mut read).map_err(|error| Failure::failed(error).of(&array.name))?;
    if look.foreign.signatures.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{}: it holds {}; if all of it may be lost, add --yes --overwrite",
        array.name,
        named_in(&look)
    )))
}

/// The length of a file is checked before anything is written.
fn check_input(size: u64, name: &str) -> Result<(), Failure> {
    let Ok(fd) = std::io::stdin().as_fd().try_clone_to_owned() else { return Ok(()) };
    let mut input = File::from(fd);
    let Ok(metadata) = input.metadata() else { return Ok(()) };
    let left = metadata.len().saturating_sub(input.stream_position().unwrap_or(0));
    if metadata.is_file() && left > size {
        return Err(Failure::refused(format!(
            "the input has {left} bytes, {name} holds {size}: it does not fit; nothing was written"
        )));
    }
    Ok(())
}

type Work = (u64, Vec<u8>);
type WriteResult = Result<(), (u64, ServiceError)>;

/// A thread that writes pieces in sequence.
fn writer(handle: ServiceHandle, array: ArrayId) -> (SyncSender<Work>, Receiver<WriteResult>) {
    let (work, pieces) = sync_channel::<Work>(1);
    let (sender, done) = sync_channel(2);
    thread::spawn(move || {
        for (at, bytes) in pieces {
            let result = handle.write(array, at, &bytes, false).map_err(|error| (at, error));
            if sender.send(result).is_err() {
                return;
            }
        }
    });
    (work, done)
}

fn copy(handle: &ServiceHandle, array: &ServedArray, size: u64) -> Result<u64, Failure> {
    let writers: Vec<_> = (0..PIECES_AHEAD).map(|_| writer(handle.clone(), array.array)).collect();
    let failed = |(at, error): (u64, ServiceError)| {
        Failure::failed(format!("{}: cannot write from byte {at} on: {error}", array.name))
    };
    let ended = || Failure::failed("a writer ended too early");
    let progress = WorkProgress::new("copy-in", size);
    let mut input = std::io::stdin().lock();
    let (mut at, mut pieces) = (0, 0);
    for (work, done) in writers.iter().cycle() {
        let room = size - at;
        let mut bytes = Vec::new();
        // The read requests one byte more than there is room for, to detect further input.
        let want = PIECE_BYTES.min(room + 1);
        let read = (&mut input).take(want).read_to_end(&mut bytes);
        read.map_err(|error| Failure::failed(format!("standard input cannot be read: {error}")))?;
        if bytes.is_empty() {
            break;
        }
        if bytes.len() as u64 > room {
            return Err(Failure::failed(format!(
                "the input is longer than {}, which holds {size} bytes: its first {at} bytes were written, the rest \
                 does not fit",
                array.name
            )));
        }
        if pieces >= PIECES_AHEAD {
            done.recv().map_err(|_| ended())?.map_err(failed)?;
        }
        let len = bytes.len() as u64;
        work.send((at, bytes)).map_err(|_| ended())?;
        (at, pieces) = (at + len, pieces + 1);
        progress.at(at);
    }
    for (work, done) in writers {
        drop(work);
        for result in done {
            result.map_err(failed)?;
        }
    }
    Ok(at)
}

/// The present state of the array's sets.
fn sets(handle: &ServiceHandle, array: &ServedArray) -> Result<Vec<ArrayStatus>, Failure> {
    let status = handle.status()?;
    let sets = array.sets();
    Ok(status.arrays.into_iter().map(|view| view.status).filter(|status| sets.contains(&status.array)).collect())
}

fn needs_sync(set: &ArrayStatus) -> bool {
    set.consistent_to != Sectors::MAX || set.task.as_ref().is_some_and(|task| task.kind == TaskKind::Resync)
}

fn is_syncing(handle: &ServiceHandle, array: &ServedArray) -> Result<bool, Failure> {
    Ok(sets(handle, array)?.iter().any(needs_sync))
}

fn wait_for_sync(handle: &ServiceHandle, array: &ServedArray) -> Result<bool, Failure> {
    let mut progress: Option<WorkProgress> = None;
    loop {
        let sets = sets(handle, array)?;
        if sets.iter().any(|set| set.health == Health::Failed) {
            return Err(Failure::array_failed(format!("{} has failed during the sync", array.name)));
        }
        if !sets.iter().any(needs_sync) {
            return Ok(true);
        }
        let tasks: Vec<_> = sets.iter().filter_map(|set| set.task.as_ref()).collect();
        let total = tasks.iter().map(|task| task.total.bytes().get()).sum();
        let done = tasks.iter().map(|task| task.done.bytes().get()).sum();
        progress.get_or_insert_with(|| WorkProgress::new("sync", total)).at(done);
        thread::sleep(LOOK_INTERVAL);
    }
}
