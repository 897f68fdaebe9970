//! Runs a cell on the simulated machine that the cell describes.

use super::axes::{Axes, Axis, AxisError, CacheMode};
use super::ceiling::flag;
use super::error::CellError;
use super::max_rates::ceilings;
use super::measure::measure;
use super::result::CellResult;
use super::spec::{ArrayState, CellSpec};
use super::subject::{Level, Subject};
use super::timed_requests::replay;
use crate::reader::RequestTrace;
use crate::target::SimTarget;
use openraid_drives::DriveState;
use openraid_models::{BusProfile, DriveProfile, Library, LookupError};
use openraid_sim::machine::{self, ArrayChange, ArraySpec, CachePolicy, MachineSpec};
use openraid_units::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Cache of a machine with a journal if no size is given; it is the default of a server.
const JOURNAL_CACHE: Bytes = Bytes::mib(64);
/// The measured part of a change of shape, in percent of all that moves.
const HALF: u8 = 50;
/// Times of the slow drive, in percent of a normal drive's.
const SLOW_PERCENT: u32 = 200;

impl From<LookupError> for CellError {
    fn from(error: LookupError) -> Self {
        Self::Unknown(error.to_string())
    }
}

/// Runs a cell: makes its machine, measures, and drops the machine. The result depends only on the cell and the
/// profiles. Equal cells have equal results, byte by byte, on any thread.
///
/// # Errors
/// See [`CellError`]; [`CellError::NotApplicable`] and [`CellError::Impossible`] are answers, not failures.
pub fn run_cell(library: &Library, cell: &CellSpec) -> Result<CellResult, CellError> {
    run_cell_with(library, cell, &machine_spec(library, cell)?)
}

/// Runs a cell on a changed machine; ranges of uncertain values need this.
///
/// # Errors
/// See [`CellError`].
pub fn run_cell_with(library: &Library, cell: &CellSpec, spec: &MachineSpec) -> Result<CellResult, CellError> {
    run_counted(library, cell, spec, None, &AtomicU64::new(0))
}

/// Runs a cell's load, or the trace in its place, on this machine. The number of simulated events is added to `events`.
///
/// # Errors
/// As [`run_cell`] and [`run_trace`].
pub(crate) fn run_counted(
    library: &Library,
    cell: &CellSpec,
    spec: &MachineSpec,
    trace: Option<&RequestTrace>,
    events: &AtomicU64,
) -> Result<CellResult, CellError> {
    cell.check()?;
    let name = if trace.is_some() { &cell.system } else { &spec.controller.head.name };
    let impossible = |error: machine::MachineError| CellError::Impossible(error.to_string());
    let mut target = SimTarget::new(&format!("sim:{name}"), spec, library).map_err(impossible)?;
    let ran = match trace {
        Some(trace) => replay(&mut target, cell, trace),
        None => measure(&mut target, cell),
    };
    events.fetch_add(target.machine_counters().events, Ordering::Relaxed);
    let mut result = ran?;
    flag(&mut result, &ceilings(library, spec, cell)?);
    Ok(result)
}

/// Replays a trace on the machine that a cell describes.
///
/// # Errors
/// See [`CellError`]; a trace that does not fit is not applicable.
pub fn run_trace(library: &Library, cell: &CellSpec, trace: &RequestTrace) -> Result<CellResult, CellError> {
    run_trace_with(library, cell, &machine_spec(library, cell)?, trace)
}

/// Replays a trace on a changed machine.
///
/// # Errors
/// See [`CellError`].
pub fn run_trace_with(
    library: &Library,
    cell: &CellSpec,
    spec: &MachineSpec,
    trace: &RequestTrace,
) -> Result<CellResult, CellError> {
    run_counted(library, cell, spec, Some(trace), &AtomicU64::new(0))
}

/// The machine that a cell describes.
///
/// # Errors
/// A profile does not exist, or the controller cannot have the cache.
pub fn machine_spec(library: &Library, cell: &CellSpec) -> Result<MachineSpec, CellError> {
    let axes = &cell.axes;
    let system = library.controller(&cell.system)?;
    let controller = match &axes.ctl {
        Some(other) => library.controller(other)?,
        None => system,
    };
    let array = array(cell);
    let mut drives = regular_drives(library, cell.subject, array.drives(), axes, &system.drive)?;
    if axes.slow == Some(true) {
        if let [drive] = drives.as_slice() {
            drives = vec![drive.clone(); usize::from(array.drives())];
        }
        if let Some(last) = drives.last_mut() {
            *last = last.clone().slowed(SLOW_PERCENT);
        }
    }
    let through = axes.cache == Some(CacheMode::WriteThrough);
    let mut spec = MachineSpec::new(controller.clone(), drives[0].clone(), array);
    spec.drives = drives;
    spec.cache = CachePolicy {
        controller: if through { machine::CacheMode::WriteThrough } else { machine::CacheMode::WriteBack },
        drives: !through || !controller.drive_cache_follows,
    };
    spec.drive_cache = axes.drive_cache;
    spec.drive_read_ahead = axes.drive_read_ahead;
    spec.cache_bytes = axes.cache_mib.map(|mib| Bytes::mib(u64::from(mib)));
    if axes.cache_mib.is_none() && axes.cache == Some(CacheMode::WriteBack) && controller.cache.value.is_zero() {
        // A requested cache must have a size.
        spec.cache_bytes = Some(controller.cache_on_demand).filter(|size| !size.is_zero());
    }
    spec.journal = journal(library, cell)?;
    if !spec.journal.is_empty() {
        spec.cache_bytes = spec.cache_bytes.or(Some(JOURNAL_CACHE));
    }
    spec.bus = match &axes.bus {
        // If the slot is faster than the card, the card determines the rate.
        Some(name) => Some(library.agreed(controller, host_bus(library, name)?).clone()),
        None => None,
    };
    spec.host_speed_percent = axes.host_speed_percent.unwrap_or(100);
    spec.drive_state = drive_state(cell);
    // All loads of one run get the same drives at the same rotational positions.
    spec.seed = openraid_sim::random::mix(cell.seed ^ u64::from(axes.rep.unwrap_or(0)).rotate_left(32));
    Ok(spec)
}

/// The devices of a cell's journal. There are none if the cell has no journal, or if its drives are raw drives.
fn journal(library: &Library, cell: &CellSpec) -> Result<Vec<DriveProfile>, CellError> {
    let level = cell.subject.level();
    let Some(word) =
        cell.axes.journal.as_deref().filter(|_| !matches!(level, None | Some(Level::Single | Level::Jbod)))
    else {
        return Ok(Vec::new());
    };
    let parts = mixed(word);
    let all: usize = parts.iter().map(|(count, _)| usize::from(*count)).sum();
    if all > machine::JOURNAL_DEVICES_MAX {
        let reason = format!("a journal is on one device or on two that hold the same, not on {all}");
        return Err(AxisError { axis: Axis::Journal, reason }.into());
    }
    let mut devices = Vec::new();
    for (count, name) in parts {
        devices.extend(vec![library.drive(name)?.clone(); usize::from(count)]);
    }
    Ok(devices)
}

/// The bus of a host, by name.
fn host_bus<'a>(library: &'a Library, name: &str) -> Result<&'a BusProfile, CellError> {
    let hosts = || library.buses().filter(|bus| bus.is_of_hosts());
    if let Some(bus) = hosts().find(|bus| bus.answers_to(name)) {
        return Ok(bus);
    }
    let known: Vec<&str> = hosts().map(|bus| bus.name.as_str()).collect();
    let mut reason = match library.bus(name) {
        Ok(_) => format!("{name} is a link of drives, and no bus towards a host"),
        Err(_) => format!("there is no bus '{name}'"),
    };
    reason += &format!("; choose one of: {}", known.join(", "));
    if library.bus(name).is_ok_and(|bus| bus.lanes > 1) {
        reason += ". Drives on an expander: --system openraid-expander, plain-hba-expander";
    }
    Err(AxisError { axis: Axis::Bus, reason }.into())
}

/// How full the SSDs of a cell's machine have been written.
#[must_use]
pub const fn drive_state(cell: &CellSpec) -> DriveState {
    match cell.axes.fresh {
        Some(true) => DriveState::Fresh,
        _ => DriveState::Steady,
    }
}

/// The drives of a cell's array: one profile for all members, or one for each if the axis mixes profiles.
fn regular_drives(
    library: &Library,
    subject: Subject,
    count: u16,
    axes: &Axes,
    of_system: &str,
) -> Result<Vec<DriveProfile>, CellError> {
    let mixed = axes.drive.as_deref().map_or_else(Vec::new, mixed);
    if mixed.len() < 2 {
        return regular_drive(library, subject, axes, of_system).map(|drive| vec![drive]);
    }
    let (all, members) = (mixed.iter().map(|(count, _)| u32::from(*count)).sum::<u32>(), u32::from(count));
    if all != members && members > 1 {
        let reason = format!("{all} drives are given for an array of {members}; give as many");
        return Err(AxisError { axis: Axis::Drive, reason }.into());
    }
    let mut drives = Vec::new();
    for (count, name) in mixed {
        drives.extend(vec![library.drive(name)?.clone(); usize::from(count)]);
    }
    // A single drive is the first of these.
    drives.truncate(count.into());
    Ok(drives)
}

/// The profiles in a value of the axis `drive`, each with its number of drives: `wd740gd`, or `6xwd740gd+2xwd360gd`.
#[must_use]
pub fn mixed(word: &str) -> Vec<(u16, &str)> {
    let part = |part| {
        let counted = |(count, name): (&str, _)| Some((count.parse::<u16>().ok().filter(|count| *count > 0)?, name));
        str::split_once(part, 'x').and_then(counted).unwrap_or((1, part))
    };
    word.split('+').map(part).collect()
}

fn regular_drive(library: &Library, subject: Subject, axes: &Axes, of_system: &str) -> Result<DriveProfile, CellError> {
    let regular = axes.drive.as_deref().unwrap_or(of_system);
    let regular = mixed(regular).first().map_or(regular, |(_, name)| *name);
    let name = match subject {
        Subject::Best15k => "best15k",
        Subject::Ssd2009 => "ssd2009",
        Subject::DesktopSsd => "desktop_ssd",
        Subject::S3500 => "s3500",
        Subject::S3700 => "s3700",
        Subject::Single | Subject::Array { .. } | Subject::SlowSingle => regular,
    };
    let drive = library.drive(name)?.clone();
    Ok(if subject == Subject::SlowSingle { drive.slowed(SLOW_PERCENT) } else { drive })
}

fn array(cell: &CellSpec) -> ArraySpec {
    let (level, members) = match cell.subject {
        Subject::Array { level, members } => (level, members),
        _ => (Level::Single, 1),
    };
    let mut array = ArraySpec::new(level, members);
    array.chunk = cell.axes.chunk.map(|bytes| Bytes(u64::from(bytes)));
    match cell.state {
        ArrayState::Healthy => {}
        ArrayState::Degraded(missing) => array.degraded = missing,
        ArrayState::Rebuilding => {
            array.degraded = 1;
            array.rebuilding = true;
        }
        ArrayState::Changing(to) => {
            let level = to.level().unwrap_or(Level::Single);
            array.change = Some(ArrayChange { level, members: to.members(), moved_percent: HALF });
        }
    }
    array
}
