//! A review of a real target. The target is opened for reading unless the user typed its name; cells are measured one
//! after the other.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use openraid_methods::cell::Subject;
use openraid_methods::method::Suite;
use openraid_methods::review::{Ended, Performance, ReviewResults};
use openraid_methods::run::{generator_cost, program_digest, write_atomically, CellStore};
use openraid_methods::target::{BedLine, BedName, Choice, Destruction, RealOptions, Target, TargetError, TargetFacts};
use openraid_units::Bytes;

use super::served_target::ServedTarget;
use super::side_by_side::open_one;
use super::{guard, target, ReviewTask};
use crate::arguments::ReviewArguments;
use openraid::failure::Failure;
use openraid::output::progress::WorkProgress;
use openraid::quantity::human;
use openraid::verb::{typed_line, Context};

/// Seconds of a cell if `--seconds` is not given.
pub(super) const SECONDS: u32 = 10;
/// Size of the requests that fill a target.
const FILL_BYTES: u32 = 128 << 10;
/// Outstanding requests while a target is filled.
const FILL_DEPTH: u32 = 32;
/// Number of times that a target is filled, as the SSD test specification of the storage networking industry requires.
const FILL_ROUNDS: u64 = 2;
/// Name of the file that says which target was filled.
pub(super) const FILLED: &str = "filled";

pub(super) fn review(
    choice: &Choice,
    arguments: &ReviewArguments,
    wanted: &ReviewTask,
    context: &Context,
) -> Result<ReviewResults, Failure> {
    options(choice, arguments)?;
    let destroy = if arguments.destroy_data { Some(confirmed(choice, arguments, context)?) } else { None };
    let open = |bytes_max: u32, outstanding: u32| -> Result<Box<dyn Target>, TargetError> {
        open_one(choice, &RealOptions { outstanding, bytes_max, destroy: destroy.clone(), seed: arguments.seed })
    };
    let first = open(4096, 1).map_err(|error| match error {
        TargetError::Named { .. } => Failure::usage(error),
        _ => Failure::cannot_tell(error),
    });
    let mut facts = first?.facts().clone();
    let served = ServedTarget::of(choice, &facts.name, &context.servers);
    let state = served.state().map_err(Failure::refused)?;
    guard(&arguments.out, &facts.name, None)?;
    let inputs = TargetStamp::of(choice, &facts, arguments.precondition);
    let stamp = inputs.to_string();
    let store = CellStore::open(&arguments.out.join("cells"), &stamp).map_err(Failure::failed)?;
    if arguments.precondition {
        // The version of the program does not affect the data on the target.
        let open = |bytes, outstanding| open(bytes, outstanding).map_err(Failure::failed);
        fill(open, &arguments.out.join(FILLED), &inputs.target, context)?;
    }
    facts.bed.extend(versions());
    facts.bed.push(overhead());
    facts.bed.extend(state.clone());
    let suite = Suite {
        repeat: arguments.repeat,
        given: wanted.given.clone(),
        ..Suite::new(
            &facts.name,
            vec![Subject::Single],
            Performance::real_effort(arguments.seconds.unwrap_or(SECONDS)),
            arguments.seed,
        )
    };
    let performance = wanted.performance(suite, &store, &stamp);
    let progress = WorkProgress::counting("cells", performance.cells(&facts).len() as u64);
    let ended = |ended: Ended| progress.counted_of_which_idle(ended.cells as u64, ended.idle as u64);
    performance
        .real(&facts, |_, bytes, outstanding| open(bytes, outstanding), || served.is_still(&state), ended)
        .map_err(|error| {
            let kept = arguments.out.join("cells");
            Failure::failed(format!(
                "{error}. Finished cells are kept in {}: the same command line continues there",
                kept.display()
            ))
        })
}

/// Refuses options that have no meaning for this target.
fn options(choice: &Choice, arguments: &ReviewArguments) -> Result<(), Failure> {
    const WHAT_IT_IS: &str = "the real target decides it";
    let machine = &arguments.machine;
    let simulated_only = [
        ("arrays", arguments.arrays.is_some(), "a real target is one array"),
        ("effort", arguments.effort.is_some(), "give --seconds"),
        ("jobs", arguments.jobs.is_some(), "its cells are measured one after the other"),
        ("models", arguments.models.is_some(), "it has no profiles"),
        ("drive", machine.drive.is_some(), WHAT_IT_IS),
        ("drive-state", machine.drive_state.is_some(), WHAT_IT_IS),
        ("drive-cache", machine.drive_cache.is_some(), WHAT_IT_IS),
        ("drive-read-ahead", machine.drive_read_ahead.is_some(), WHAT_IT_IS),
        ("cache", machine.cache.is_some(), WHAT_IT_IS),
        ("cache-mib", machine.cache_mib.is_some(), WHAT_IT_IS),
        ("bus", machine.bus.is_some(), WHAT_IT_IS),
        ("chunk", machine.chunk.is_some(), WHAT_IT_IS),
        ("journal", !arguments.journal.is_empty(), WHAT_IT_IS),
    ];
    if let Some((option, _, why)) = simulated_only.into_iter().find(|(_, given, _)| *given) {
        let target = target(arguments);
        return Err(Failure::usage(format!("--{option} is for simulated targets; {target} is not one: {why}")));
    }
    if arguments.destroy_data && !choice.holds_data() {
        return Err(Failure::usage(format!("--destroy-data: {} holds no data; leave it out", target(arguments))));
    }
    Ok(())
}

/// The inputs of a target's results other than the cell.
pub(super) struct TargetStamp {
    /// Version and digest of this program.
    program: String,
    /// Identity and state of the target.
    target: String,
}

impl fmt::Display for TargetStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} real: {}", self.program, self.target)
    }
}

impl TargetStamp {
    /// The inputs for a target.
    pub(super) fn of(choice: &Choice, facts: &TargetFacts, filled: bool) -> Self {
        let program = format!("{} {:016x}", env!("CARGO_PKG_VERSION"), program_digest());
        Self { program, target: identity(choice, facts, filled) }
    }
}

/// The identity and the state of a target.
fn identity(choice: &Choice, facts: &TargetFacts, filled: bool) -> String {
    let named = facts.bed.iter().filter(|line| matches!(line.name, Some(BedName::Model | BedName::Serial)));
    let mut identity: Vec<String> = named.map(ToString::to_string).collect();
    if let Choice::Path(path) = choice {
        // Another file of the same name is another target. Devices are distinguished by model and serial number.
        if let Ok(file) = fs::metadata(path).map_err(drop).and_then(|known| known.is_file().then_some(known).ok_or(()))
        {
            let born = file.created().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            let born = born.map_or(0, |since| since.as_nanos());
            identity.push(format!("file {} {} {born}", file.dev(), file.ino()));
        }
    }
    let (name, capacity, identity) = (&facts.name, facts.capacity.get(), identity.join(", "));
    format!("{name} of {capacity} bytes, {identity}{}", if filled { ", filled" } else { "" })
}

/// The generator's own cost, as a line of the test bed.
pub(super) fn overhead() -> BedLine {
    let us = generator_cost() / 1e3;
    let cost = format!(
        "{us:.2} us of processor time for a request, on a target that makes no system call; those of this target come on \
         top"
    );
    BedLine::new(BedName::GeneratorCost, cost)
}

/// The versions of this program and of the kernel.
pub(super) fn versions() -> Vec<BedLine> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = if kernel.is_empty() { "not known" } else { kernel.trim() };
    let mut lines: Vec<BedLine> =
        vec![concat!("version: openraid ", env!("CARGO_PKG_VERSION")).into(), format!("kernel: {kernel}").into()];
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total =
        memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    lines.extend(total.map(|kib: u64| {
        let size = human(Bytes::kib(kib));
        format!("memory of this machine: {size}; its page cache is passed by unless a line here says otherwise").into()
    }));
    lines
}

/// Fills a target, unless the mark says that it was already filled for this folder.
pub(super) fn fill(
    open: impl Fn(u32, u32) -> Result<Box<dyn Target>, Failure>,
    mark: &Path,
    which: &str,
    context: &Context,
) -> Result<(), Failure> {
    if fs::read_to_string(mark).is_ok_and(|known| known == which) {
        context.output.warn(&format!("it was filled before; remove {} to fill it again", mark.display()));
        return Ok(());
    }
    let mut target = open(FILL_BYTES, FILL_DEPTH)?;
    let capacity = target.facts().capacity.get();
    let progress = WorkProgress::of_bytes_in_lines("filling", capacity * FILL_ROUNDS);
    openraid_methods::run::fill(&mut *target, FILL_BYTES, FILL_DEPTH, FILL_ROUNDS, |bytes| progress.at(bytes))
        .map_err(Failure::failed)?;
    write_atomically(mark, which.as_bytes()).map_err(Failure::failed)
}

/// Checks that the user typed the target's name.
pub(super) fn confirmed(
    choice: &Choice,
    arguments: &ReviewArguments,
    context: &Context,
) -> Result<Destruction, Failure> {
    if let Some(first) = arguments.name.first() {
        let short = choice.short_name();
        let name = arguments.name.iter().find(|name| name.trim() == short).unwrap_or(first);
        return Destruction::confirmed(choice, name).map_err(Failure::refused);
    }
    let name = choice.short_name();
    context.output.warn(&format!(
        "ALL DATA on {} will be lost. Type its name ({name}) to continue, anything else to stop:",
        target(arguments)
    ));
    Destruction::confirmed(choice, &typed_line()?).map_err(Failure::refused)
}
