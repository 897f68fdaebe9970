//! `openraid copy-out`: copies the whole content of an array to standard output. No member is written: the engine's own
//! metadata writes stay in memory.

use std::io::Write;
use std::sync::mpsc::{sync_channel, Receiver};
use std::thread;

use openraid_core::actions::ReplyStatus;
use openraid_core::array::assemble::AssembleOptions;
use openraid_runtime::member::ProbedMember;
use openraid_runtime::service::{Nesting, ServiceError};
use openraid_runtime::ServiceHandle;
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes, SECTOR_BYTES};
use serde::Serialize;

use super::Context;
use crate::arguments::CopyOutArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::ReadTrial;
use crate::members::{named, none_opened, open_some, options, read_md0};
use crate::model::ArrayModel;
use crate::on_disk::bad_blocks;
use crate::on_disk::lockless;
use crate::on_disk::sets;
use crate::output::{self, progress::WorkProgress};
use crate::quantity::human;
use crate::server::array_model;
use crate::server::task_rates::TaskRates;

/// Number of bytes of one read.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Maximum number of reads under way.
pub const PIECES_AHEAD: u64 = 8;

/// Maximum number of ranges that are listed; further ones are counted.
const GAPS_TOLD_MAX: usize = 1000;

/// What to do about a range that cannot be read.
const REMEDY: &str =
    "; --skip-bad copies zeroes in its place and continues, and --ignore-bad-blocks reads what only a bad-block \
                      log excludes";

/// A copy out of an array.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct CopyOutBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// Number of copied bytes, gaps included.
    bytes: u64,
    /// Number of bytes that could not be read; they are zero in the copy.
    skipped_bytes: u64,
    /// Ranges of the array that could not be read.
    skipped: &'a [Gap],
}

/// A range that could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug, utoipa::ToSchema)]
struct Gap {
    /// First byte of the range in the array.
    offset: u64,
    /// Length of the range.
    bytes: u64,
}

/// Runs the verb.
///
/// # Errors
/// The members form no array, or the array cannot be read.
pub fn run(arguments: &CopyOutArguments, context: &Context) -> Outcome {
    if output::is_terminal() {
        return Err(Failure::usage("standard output is a terminal; send it to a file or a pipe: ... > image"));
    }
    let specs = named(&arguments.members, &context.registry)?;
    let (mut opened, failed) = open_some(&specs, options(Use::ReadExclusive));
    if opened.is_empty() {
        return Err(none_opened("", &arguments.members, &specs, &failed, &context.registry));
    }
    for (_, failure) in &failed {
        context.output.warn(&failure.text());
    }
    read_md0(&mut opened).iter().for_each(|why| context.output.warn(why));
    if arguments.ignore_bad_blocks {
        opened.iter_mut().for_each(|(_, probed)| bad_blocks::ignore(probed));
    }
    if let Some(layout) = arguments.layout {
        opened.iter_mut().for_each(|(_, probed)| sets::say_layout(probed, layout));
    }
    let nesting = if arguments.flat { Nesting::Ignore } else { Nesting::Follow };
    let probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    let rules = AssembleOptions { force: arguments.force, journal_lost: false, reads_only: true };
    let trial = ReadTrial::start_as(opened, rules, nesting)?;
    let served = trial.only()?;
    let status = trial.handle().status()?;
    let model = array_model::model(&status, &served, &TaskRates::default());
    let model = model.ok_or_else(|| Failure::failed("the array does not run"))?;
    warn_of(&model, context);
    for doubt in model.sets().into_iter().filter_map(|set| lockless::doubts(&probed, set)) {
        context.output.warn(&doubt);
    }
    bad_blocks::copied_logs(&probed).iter().for_each(|note| context.output.warn(note));
    let gaps = copy(&trial.handle(), served.array, &model, arguments.skip_bad)?;
    let skipped_bytes = gaps.iter().map(|gap| gap.bytes).sum();
    let shown = &gaps[..gaps.len().min(GAPS_TOLD_MAX)];
    for gap in shown {
        let Gap { offset, bytes } = gap;
        context.output.warn(&format!("{bytes} bytes from byte {offset} on could not be read: zeroes were copied"));
    }
    if gaps.len() > shown.len() {
        context.output.warn(&format!("ranges that could not be read, in all: {}", gaps.len()));
    }
    let body = CopyOutBody { array: &model.name, bytes: model.size_bytes, skipped_bytes, skipped: shown };
    let mut text = format!("openraid copy-out: {} of {} copied", human(Bytes(model.size_bytes)), model.name);
    if skipped_bytes > 0 {
        text += &format!(", but {skipped_bytes} bytes could not be read");
    }
    let exit = if gaps.is_empty() { model.exit().min(Exit::Degraded) } else { Exit::Incomplete };
    Ok(context.output.answer_aside(exit, &body, &text))
}

fn warn_of(array: &ArrayModel, context: &Context) {
    if array.health != crate::model::HealthWord::Optimal {
        context.output.warn(&format!("{} is degraded; it is read through its redundancy", array.name));
    }
    if let Some(forced) = &array.forced {
        context.output.warn(&format!("{}: started by force: {}", array.name, forced.trim_end_matches([';', ' '])));
    }
}

/// The bytes of a piece and its unreadable ranges. Or the offset at which reading ended, and the reason.
type Piece = Result<(Vec<u8>, Vec<Gap>), (u64, ServiceError)>;

/// A thread that reads every n-th piece, always one piece before it is needed.
fn reader(handle: ServiceHandle, array: ArrayId, first: u64, size: u64, skip_bad: bool) -> Receiver<Piece> {
    let (sender, pieces) = sync_channel(1);
    thread::spawn(move || {
        let mut at = first * PIECE_BYTES;
        while at < size {
            let len = usize::try_from(PIECE_BYTES.min(size - at)).expect("1 MiB");
            let (mut bytes, mut gaps) = (vec![0; len], Vec::new());
            let result = match handle.read(array, at, &mut bytes) {
                Err(ServiceError::Request(ReplyStatus::IoError)) if skip_bad => {
                    read_around(&handle, array, at, &mut bytes, &mut gaps)
                }
                other => other,
            };
            let result = result.map(|()| (bytes, gaps)).map_err(|error| (at, error));
            let failed = result.is_err();
            if sender.send(result).is_err() || failed {
                return;
            }
            at += PIECES_AHEAD * PIECE_BYTES;
        }
    });
    pieces
}

/// If a range cannot be read, it is read in halves, down to single sectors. A sector that cannot be read becomes
/// zeroes.
fn read_around(
    handle: &ServiceHandle,
    array: ArrayId,
    at: u64,
    bytes: &mut [u8],
    gaps: &mut Vec<Gap>,
) -> Result<(), ServiceError> {
    let sector = usize::try_from(SECTOR_BYTES).expect("small");
    if bytes.len() <= sector {
        bytes.fill(0);
        add_gap(gaps, Gap { offset: at, bytes: bytes.len() as u64 });
        return Ok(());
    }
    let half = (bytes.len() / 2).next_multiple_of(sector);
    let (left, right) = bytes.split_at_mut(half);
    for (at, part) in [(at, left), (at + half as u64, right)] {
        match handle.read(array, at, part) {
            Err(ServiceError::Request(ReplyStatus::IoError)) => read_around(handle, array, at, part, gaps)?,
            other => other?,
        }
    }
    Ok(())
}

/// Adjacent gaps are merged.
fn add_gap(gaps: &mut Vec<Gap>, gap: Gap) {
    match gaps.last_mut().filter(|last| last.offset + last.bytes == gap.offset) {
        Some(last) => last.bytes += gap.bytes,
        None => gaps.push(gap),
    }
}

/// Copies everything. If the user allows it, unreadable ranges are left out.
fn copy(handle: &ServiceHandle, array: ArrayId, model: &ArrayModel, skip_bad: bool) -> Result<Vec<Gap>, Failure> {
    let size = model.size_bytes;
    let readers: Vec<_> = (0..PIECES_AHEAD).map(|first| reader(handle.clone(), array, first, size, skip_bad)).collect();
    let progress = WorkProgress::new("copy-out", size);
    let (mut out, mut all_gaps, mut at) = (std::io::stdout().lock(), Vec::new(), 0);
    for pieces in readers.iter().cycle() {
        if at >= size {
            break;
        }
        let piece = pieces.recv().map_err(|_| Failure::failed("a reader ended too early"))?;
        let (bytes, gaps) = piece.map_err(|(at, error)| {
            let remedy = if skip_bad { "" } else { REMEDY };
            Failure::failed(format!("{}: cannot read from byte {at} on: {error}{remedy}", model.name))
        })?;
        gaps.into_iter().for_each(|gap| add_gap(&mut all_gaps, gap));
        out.write_all(&bytes).map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))?;
        at += bytes.len() as u64;
        progress.at(at);
    }
    out.flush().map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")))?;
    Ok(all_gaps)
}
