//! `openraid copy-out`: the whole content of an array on standard output. Nothing is written to any member: what the
//! engine itself would note on them stays in memory.

use std::io::Write;
use std::sync::mpsc::{sync_channel, Receiver};
use std::thread;

use openraid_runtime::service::{Nesting, ServiceError};
use openraid_runtime::ServiceHandle;
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes};
use serde::Serialize;

use super::Context;
use crate::arguments::CopyOutArguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::members::{named, open_some, options};
use crate::model::ArrayModel;
use crate::output::{self, progress::Progress};
use crate::quantity::human;
use crate::server::rates::Rates;
use crate::server::view;
use crate::trial::Trial;

/// Bytes of one read.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Reads under way at once.
pub const PIECES_AHEAD: u64 = 8;

#[derive(Serialize)]
struct Body<'a> {
    array: &'a str,
    bytes: u64,
}

/// Do it.
///
/// # Errors
/// The members make no array, or it cannot be read.
pub fn run(arguments: &CopyOutArguments, context: &Context) -> Outcome {
    if output::is_terminal() {
        return Err(Failure::usage("standard output is a terminal; send it to a file or a pipe: ... > image"));
    }
    let specs = named(&arguments.members, &context.registry)?;
    let (opened, failed) = open_some(&specs, options(Use::ReadExclusive));
    for (_, failure) in &failed {
        context.output.warn(&failure.text);
    }
    let nesting = if arguments.flat { Nesting::Ignore } else { Nesting::Follow };
    let trial = Trial::start(opened, arguments.force, nesting)?;
    let served = trial.only()?;
    let status = trial.handle().status()?;
    let model = view::model(&status, &served, &Rates::default());
    let model = model.ok_or_else(|| Failure::failed("the array does not run"))?;
    warn_of(&model, context);
    copy(&trial.handle(), served.array, &model)?;
    let body = Body { array: &model.name, bytes: model.size_bytes };
    let text = format!("openraid copy-out: {} of {} copied", human(Bytes(model.size_bytes)), model.name);
    Ok(context.output.answer_aside(model.exit().min(Exit::Degraded), &body, &text))
}

fn warn_of(array: &ArrayModel, context: &Context) {
    if array.health != crate::model::HealthWord::Optimal {
        context.output.warn(&format!("{} is degraded; it is read through its redundancy", array.name));
    }
    if let Some(forced) = &array.forced {
        context.output.warn(&format!("{}: started by force: {}", array.name, forced.trim_end_matches([';', ' '])));
    }
}

type Piece = Result<Vec<u8>, (u64, ServiceError)>;

/// A thread that reads every so-manieth piece, one ahead of what was taken from it.
fn reader(handle: ServiceHandle, array: ArrayId, first: u64, size: u64) -> Receiver<Piece> {
    let (sender, pieces) = sync_channel(1);
    thread::spawn(move || {
        let mut at = first * PIECE_BYTES;
        while at < size {
            let len = usize::try_from(PIECE_BYTES.min(size - at)).expect("1 MiB");
            let mut bytes = vec![0; len];
            let result = handle.read(array, at, &mut bytes).map(|()| bytes).map_err(|error| (at, error));
            let failed = result.is_err();
            if sender.send(result).is_err() || failed {
                return;
            }
            at += PIECES_AHEAD * PIECE_BYTES;
        }
    });
    pieces
}

fn copy(handle: &ServiceHandle, array: ArrayId, model: &ArrayModel) -> Result<(), Failure> {
    let size = model.size_bytes;
    let readers: Vec<_> = (0..PIECES_AHEAD).map(|first| reader(handle.clone(), array, first, size)).collect();
    let progress = Progress::new("copy-out", size);
    let mut out = std::io::stdout().lock();
    let mut at = 0;
    for pieces in readers.iter().cycle() {
        if at >= size {
            break;
        }
        let piece = pieces.recv().map_err(|_| Failure::failed("a reader ended too early"))?;
        let bytes = piece.map_err(|(at, error)| {
            Failure::failed(format!("{}: byte {at} and what follows cannot be read: {error}", model.name))
        })?;
        out.write_all(&bytes).map_err(|error| Failure::failed(format!("standard output takes no more: {error}")))?;
        at += bytes.len() as u64;
        progress.at(at);
    }
    out.flush().map_err(|error| Failure::failed(format!("standard output takes no more: {error}")))
}
