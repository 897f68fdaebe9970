//! Parts that the verbs of the laboratory share: profiles, loads by name or from files, efforts, places for results.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::Path;
use std::sync::Mutex;

use openraid_methods::cell::{
    builtin, machine_spec, mixed, Axes, Axis, AxisError, CacheMode, CellError, CellSpec, Direction, Effort, Pattern,
    TraceName, ZoneChoice,
};
use openraid_methods::load::{used_for, AccessSpec};
use openraid_methods::plan::StandIns;
use openraid_methods::reader::{
    is_iostat, read_fio_job, read_icf, read_iostat, read_trace, FioJob, FioSection, RequestTrace, TraceFormat,
};
use openraid_methods::report::{is_report, MARK_BYTES_MAX};
use openraid_models::{DriveKind, Library};
use openraid_units::Nanos;

use crate::arguments::{
    CacheWord, DriveCacheWord, DriveReadAheadWord, DriveStateWord, EffortWord, LoadArguments, MachineArguments,
    StandInWord, WayWord,
};
use openraid::failure::Failure;
use openraid::output::progress::WorkProgress;

/// The part of a file in which its kind is looked for; comments may stand before the first line that shows it.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// The built-in profiles, and those of a folder.
///
/// # Errors
/// A profile of the folder is wrong.
pub fn library(folder: Option<&Path>) -> Result<Library, Failure> {
    match folder {
        None => Ok(Library::builtin()),
        Some(folder) => Library::builtin().with_dir(folder).map_err(Failure::usage),
    }
}

/// The length of the measurements.
pub const fn effort(word: EffortWord) -> Effort {
    match word {
        EffortWord::Quick => Effort::QUICK,
        EffortWord::Normal => Effort::NORMAL,
        EffortWord::Full => Effort::FULL,
    }
}

#[derive(Debug)]
pub struct ChosenLoad {
    pub pattern: Pattern,
    /// Its axes, and those of the machine that were given with it.
    pub axes: Axes,
    /// Its requests, if it is a trace.
    pub trace: Option<RequestTrace>,
    /// Requests each second that were recorded, if it is of iostat.
    pub rate: Option<f64>,
}

/// The chosen load.
///
/// # Errors
/// No such load, a file that cannot be read as a load, options that contradict it.
pub fn asked(arguments: &LoadArguments) -> Result<ChosenLoad, Failure> {
    load(&arguments.load, arguments.job.as_deref(), axes(arguments)?)
}

/// The loads of `simulate`, `plan` and the console, with a description of each.
pub const LOADS: [(&str, &str); 14] = [
    ("database", "random 8 KiB, two thirds reads"),
    ("sequential", "one stream of reads"),
    ("random", "4 KiB reads at random"),
    ("file-server", "many sizes at random, mostly read"),
    ("web-server", "many sizes at random, only read"),
    ("workstation", "one user: small requests, mostly random"),
    ("multi-threaded", "streams side by side"),
    ("response-time", "one sector at random"),
    ("latency", "4 KiB reads at random, two workers"),
    ("streaming", "large sequential reads of three sizes"),
    ("vm", "virtual machines"),
    ("video", "large streams, mostly read"),
    ("backup", "large streams, mostly written"),
    ("home", "files of a household"),
];

/// The names of [`LOADS`], separated by commas.
pub fn load_names() -> String {
    LOADS.map(|(name, _)| name).join(", ")
}

/// A load by its name or from a file, with the given axes.
///
/// # Errors
/// No such load, a file that cannot be read as a load, axes that contradict it.
pub fn load(word: &str, job: Option<&str>, mut axes: Axes) -> Result<ChosenLoad, Failure> {
    if let Some((pattern, way)) = named(word) {
        if job.is_some() {
            return Err(Failure::usage(format!("--job: {word} is not a file with jobs; leave it out")));
        }
        if way.is_some() && (axes.op.is_some() || axes.rd.is_some()) {
            let text = format!("{word} says the direction already; leave --way and --reads out, or name {} instead", {
                pattern.name()
            });
            return Err(Failure::usage(text));
        }
        axes.op = axes.op.or(way);
        if let Some((_, workers, depth)) = used_for(word) {
            axes.workers = axes.workers.or(Some(workers));
            axes.qd = axes.qd.or(Some(depth));
        }
        return Ok(ChosenLoad { pattern, axes, trace: None, rate: None });
    }
    let path = Path::new(word);
    if !path.exists() {
        return Err(Failure::usage(format!(
            "{word:?} is neither a load nor a file; loads are {}; files are a fio job, an Iometer .icf, the output of \
             iostat -x, a trace (blkparse, fio iolog, CSV of MSR, SPC, Alibaba, SYSTOR '17)",
            load_names()
        )));
    }
    from_file(path, job, axes).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

fn named(word: &str) -> Option<(Pattern, Option<Direction>)> {
    let known = Pattern::from_axis(word).or_else(|| Pattern::from_workload(word));
    let plain = known
        .filter(|(pattern, _)| !matches!(pattern, Pattern::FcTest | Pattern::TransferGraph | Pattern::Application));
    let mix = || builtin(word).or_else(|| used_for(word).map(|(spec, ..)| spec));
    plain.or_else(|| mix().map(|spec| (Pattern::Custom(spec), None)))
}

/// A load from a file: a trace, a fio job, an Iometer .icf, the output of iostat.
///
/// # Errors
/// Why the file cannot be read as a load, without its name.
pub fn from_file(path: &Path, job: Option<&str>, axes: Axes) -> Result<ChosenLoad, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let open = || File::open(path).map(BufReader::new).map_err(unreadable);
    let mut head = Vec::new();
    open()?.take(HEAD_BYTES_MAX).read_to_end(&mut head).map_err(unreadable)?;
    let head = String::from_utf8_lossy(&head);
    let is_comment = |line: &str| line.is_empty() || line.starts_with(['#', ';']);
    let first = head.lines().map(str::trim).find(|line| !is_comment(line)).unwrap_or_default();
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if extension.as_deref() == Some("icf") || first.starts_with("Version ") {
        let file = read_icf(open()?).map_err(|error| error.to_string())?;
        let spec = one(file.specs, job, AccessSpec::name)?;
        let of_file = Axes {
            qd: file.depth,
            secs: seconds("the run time", file.runtime)?,
            warm_s: seconds("the ramp-up time", Some(file.ramp))?,
            ..Axes::default()
        };
        return Ok(ChosenLoad { pattern: Pattern::Custom(spec), axes: axes.or(&of_file), trace: None, rate: None });
    }
    if let Some(format) = TraceFormat::of(first) {
        if job.is_some() {
            return Err("a trace has no jobs; leave --job out".into());
        }
        let trace = read_trace(format, open()?).map_err(|error| error.to_string())?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let pattern = Pattern::Trace(TraceName { name, digest: format!("{:016x}", trace.digest()) });
        return Ok(ChosenLoad { pattern, axes, trace: Some(trace), rate: None });
    }
    if is_iostat(first) {
        let devices = read_iostat(open()?).map_err(|error| error.to_string())?;
        let device = one(devices, job, |device| &device.name)?;
        let of_device = Axes { qd: Some(device.depth), ..Axes::default() };
        let (pattern, rate) = (Pattern::Custom(device.spec), Some(device.rate));
        return Ok(ChosenLoad { pattern, axes: axes.or(&of_device), trace: None, rate });
    }
    let jobs = read_fio_job(open()?).map_err(|error| error.to_string())?;
    let job = fio_job(jobs, job)?;
    let of_job = Axes {
        qd: Some(job.depth),
        workers: Some(job.workers),
        secs: seconds("runtime", job.runtime)?,
        warm_s: seconds("ramp_time", Some(job.ramp))?,
        ..Axes::default()
    };
    Ok(ChosenLoad { pattern: Pattern::Custom(job.spec), axes: axes.or(&of_job), trace: None, rate: None })
}

/// The wanted load of a file, or its only one.
fn one<T>(mut all: Vec<T>, wanted: Option<&str>, name: impl Fn(&T) -> &str) -> Result<T, String> {
    let place = match wanted {
        Some(wanted) => all.iter().position(|one| name(one) == wanted),
        None => (all.len() == 1).then_some(0),
    };
    let names: Vec<String> = all.iter().map(|one| format!("{:?}", name(one))).collect();
    match (place, wanted) {
        (Some(place), _) => Ok(all.swap_remove(place)),
        (None, Some(wanted)) => Err(format!("it holds no load {wanted:?}; there are {}", names.join(", "))),
        (None, None) => Err(format!("it holds {} loads; name one with --job: {}", all.len(), names.join(", "))),
    }
}

/// The wanted job of a fio job file, or its only one. Only this job has to be understood.
fn fio_job(sections: Vec<FioSection>, wanted: Option<&str>) -> Result<FioJob, String> {
    if wanted.is_none() && sections.len() > 1 {
        let shown = |section: &FioSection| match &section.job {
            Ok(_) => format!("{:?}", section.name),
            Err(error) => format!("{:?} (not understood: {error})", section.name),
        };
        let names: Vec<String> = sections.iter().map(shown).collect();
        return Err(format!("it holds {} loads; name one with --job: {}", names.len(), names.join(", ")));
    }
    one(sections, wanted, |section| &section.name)?.job.map_err(|error| error.to_string())
}

/// A time of a file in whole seconds; `None` if it is zero.
fn seconds(what: &str, time: Option<Nanos>) -> Result<Option<u32>, String> {
    const SECOND: u64 = 1_000_000_000;
    let Some(time) = time.filter(|time| *time > Nanos::ZERO) else { return Ok(None) };
    let whole = (time.get() % SECOND == 0).then_some(time.get() / SECOND);
    let fits = whole.and_then(|seconds| u32::try_from(seconds).ok()).filter(|seconds| *seconds <= 86_400);
    fits.map(Some).ok_or_else(|| format!("{what} of {time} is not possible; give whole seconds, one day at most"))
}

/// The bytes of an option as an axis.
fn bytes(what: &str, size: Option<openraid_units::Bytes>) -> Result<Option<u32>, Failure> {
    let small = size.map(|size| u32::try_from(size.get()));
    small.transpose().map_err(|_| Failure::usage(format!("--{what}: give at most 4 GiB")))
}

/// The axes of a machine.
///
/// # Errors
/// A value that is not valid.
pub fn machine(arguments: &MachineArguments) -> Result<Axes, Failure> {
    let axes = Axes {
        drive: arguments.drive.clone(),
        // A default that is given explicitly does not make another cell.
        fresh: (arguments.drive_state == Some(DriveStateWord::Fresh)).then_some(true),
        drive_cache: arguments.drive_cache.map(|word| word == DriveCacheWord::On),
        drive_read_ahead: arguments.drive_read_ahead.map(|word| word == DriveReadAheadWord::On),
        cache: arguments.cache.map(|cache| match cache {
            CacheWord::Wb => CacheMode::WriteBack,
            CacheWord::Wt => CacheMode::WriteThrough,
        }),
        cache_mib: arguments.cache_mib,
        bus: arguments.bus.clone(),
        chunk: bytes("chunk", arguments.chunk)?,
        ..Axes::default()
    };
    axes.check().map_err(|error| flagged(&error))?;
    Ok(axes)
}

/// Are there SSDs, if they should be fresh?
///
/// # Errors
/// None of the cells has any; a profile does not exist.
pub fn state_fits<'a>(library: &Library, mut cells: impl Iterator<Item = &'a CellSpec>) -> Result<(), Failure> {
    let wrong = |cell: &CellSpec| match machine_spec(library, cell) {
        Ok(spec) if spec.drives.iter().any(|drive| matches!(drive.kind, DriveKind::Ssd(_))) => None,
        Ok(spec) => Some(Failure::usage(format!(
            "--drive-state: {} is not an SSD, and is never fresh; leave it out",
            spec.drives[0].head.name
        ))),
        Err(error) => Some(refused(error)),
    };
    let Some(first) = cells.next().filter(|cell| cell.axes.fresh.is_some()) else { return Ok(()) };
    let Some(failure) = wrong(first) else { return Ok(()) };
    if cells.any(|cell| wrong(cell).is_none()) {
        Ok(())
    } else {
        Err(failure)
    }
}

/// Do the given drives and journal fit the ports of a system? Without given drives, the system has its own.
///
/// # Errors
/// They do not; a profile does not exist.
pub fn drive_fits(library: &Library, system: &str, machine: &Axes) -> Result<(), Failure> {
    for (option, wanted) in [("--drive", &machine.drive), ("--journal", &machine.journal)] {
        let words = wanted.as_deref().map_or_else(Vec::new, mixed);
        words.into_iter().try_for_each(|(_, name)| one_drive_fits(library, system, option, name))?;
    }
    Ok(())
}

fn one_drive_fits(library: &Library, system: &str, option: &str, wanted: &str) -> Result<(), Failure> {
    let controller = library.controller(system).map_err(Failure::usage)?;
    let drive = library.drive(wanted).map_err(Failure::usage)?;
    let fits = |drive, controller| library.fits(drive, controller).map_err(Failure::usage);
    if fits(drive, controller)? {
        return Ok(());
    }
    let (link, port) = (library.bus(&drive.link), library.bus(&controller.link));
    let (link, port) = (link.map_err(Failure::usage)?, port.map_err(Failure::usage)?);
    let real = library.drives().filter(|drive| !matches!(drive.kind, DriveKind::Constant(_)));
    let others: Vec<&str> =
        real.filter(|other| fits(other, controller).unwrap_or(false)).map(|other| other.head.name.as_str()).collect();
    let systems: Vec<&str> = library
        .controllers()
        .filter(|other| fits(drive, other).unwrap_or(false))
        .map(|other| other.head.name.as_str())
        .collect();
    Err(Failure::usage(format!(
        "{option}: {} ({}) does not fit the ports of {} ({}); choose a drive that does: {}; or a controller that takes \
         it: {}",
        drive.head.name,
        link.title,
        controller.head.name,
        port.title,
        named_or_none(&others),
        named_or_none(&systems)
    )))
}

fn named_or_none(names: &[&str]) -> String {
    if names.is_empty() {
        "there is none".into()
    } else {
        names.join(", ")
    }
}

fn axes(arguments: &LoadArguments) -> Result<Axes, Failure> {
    let axes = Axes {
        rd: arguments.reads,
        qd: arguments.depth,
        workers: arguments.workers,
        bs: bytes("block", arguments.block)?,
        op: arguments.way.map(|way| match way {
            WayWord::Read => Direction::Read,
            WayWord::Write => Direction::Write,
        }),
        zone: arguments.first_32_gb.then_some(ZoneChoice::First32g),
        journal: arguments.journal.clone(),
        ..machine(&arguments.machine)?
    };
    axes.check().map_err(|error| flagged(&error))?;
    Ok(axes)
}

/// An axis by the name of its option.
pub fn flagged(error: &AxisError) -> Failure {
    let option = match error.axis {
        Axis::Rd => "--reads",
        Axis::Qd => "--depth",
        Axis::Workers => "--workers",
        Axis::Bs => "--block",
        Axis::Op => "--way",
        Axis::CacheMib => "--cache-mib",
        Axis::Zone => "--first-32-gb",
        Axis::Drive => "--drive",
        Axis::Journal => "--journal",
        Axis::Cache => "--cache",
        Axis::Bus => "--bus",
        Axis::Chunk => "--chunk",
        other => other.word(),
    };
    Failure::usage(format!("{option}: {}", error.reason))
}

/// Why a cell has no result, as a command's error.
pub fn refused(error: CellError) -> Failure {
    match error {
        CellError::Axis(error) => flagged(&error),
        // An impossible array, like an unknown word, or a load that this array cannot have, is wrong usage.
        CellError::Unknown(_) | CellError::Impossible(_) | CellError::NotApplicable(_) => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

/// The number of parallel runs, which is the number of processors, and a callback for the number of ended runs and of
/// all runs. The bar learns the number of all runs on the way.
pub fn runs_at_once(what: &str) -> (usize, impl Fn(usize, usize) + Sync) {
    let progress = Mutex::new(WorkProgress::counting(what, 0));
    let ended = move |done: usize, all: usize| {
        let progress = progress.lock().expect("no thread panics with the lock");
        progress.expect(all as u64);
        progress.counted(done as u64);
    };
    (std::thread::available_parallelism().map_or(1, Into::into), ended)
}

/// Parts whose profile the user knows to be of another part.
pub fn stand_ins(words: &[StandInWord]) -> StandIns {
    StandIns { drive: words.contains(&StandInWord::Drive), host: words.contains(&StandInWord::Host) }
}

/// The largest source of uncertainty of a figure, if it is worth a sentence: from values with their effects, the
/// largest first, and chance, all in percent.
pub fn least_certain(values: &[(String, f64)], chance_percent: f64) -> Option<String> {
    let value = values.first().filter(|(_, change)| *change >= 1.0 && *change >= chance_percent);
    match value {
        Some((value, change)) => Some(format!("largest uncertainty: {value} (up to {change:.0} %)")),
        None if chance_percent >= 1.0 => Some(format!(
            "largest uncertainty: chance (other seeds differ by {chance_percent:.0} %); a greater --effort reduces it"
        )),
        None => None,
    }
}

/// Percentages below and above a figure.
pub fn below_and_above([low, high]: [f64; 2]) -> String {
    match (low, high) {
        (low, high) if low < 0.5 && high < 0.5 => "nothing".into(),
        (low, high) => format!("-{low:.0} to +{high:.0} %"),
    }
}

/// The range of a figure for a table: percent below and above, and the part of chance in it.
pub fn range_of(low_percent: f64, high_percent: f64, chance_percent: f64) -> String {
    format!("-{low_percent:.0} to +{high_percent:.0} %, chance {chance_percent:.1} %")
}

/// May a page be written here? Only if there is no file, or a page of this program.
///
/// # Errors
/// There is another file.
pub fn may_be_written(path: &Path) -> Result<(), Failure> {
    let refused = |why: &str| {
        Err(Failure::refused(format!("{}: {why}, and would be lost; name another file, or remove it", path.display())))
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::failed(format!("{}: it cannot be looked at: {error}", path.display()))),
        Ok(metadata) if !metadata.is_file() => refused("it is not a regular file"),
        Ok(_) => {
            let mut begin = Vec::new();
            let limit = u64::try_from(MARK_BYTES_MAX).unwrap_or(u64::MAX);
            let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut begin));
            if read.is_ok() && is_report(&begin) {
                Ok(())
            } else {
                refused("it is not a report of this program")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use openraid_methods::load::USES;

    use super::*;

    #[test]
    fn loads_are_found_by_their_names() {
        for word in ["database", "file-server", "streaming", "sr", "response-time"] {
            assert!(named(word).is_some(), "{word}");
        }
        assert!(named("fc-test").is_none() && named("nonsense").is_none());
    }

    #[test]
    fn the_offered_loads_exist_and_the_help_names_them() {
        use clap::CommandFactory;
        let of = |pattern: &Pattern| LOADS.iter().any(|(name, _)| *name == pattern.name());
        let other = |pattern: &Pattern| pattern.name().starts_with("rst-") || named(pattern.name()).is_none();
        assert!(Pattern::ALL.iter().all(|pattern| of(pattern) != other(pattern)));
        assert!(USES.iter().all(|name| LOADS.iter().any(|(load, _)| load == name)));
        let command = crate::arguments::LabArguments::command();
        let simulate = command.find_subcommand("simulate").expect("a verb");
        let load = simulate.get_arguments().find(|option| option.get_id() == "load").expect("an option");
        let help = load.get_long_help().or(load.get_help()).expect("a help").to_string();
        for (name, _) in LOADS {
            assert!(named(name).is_some() && help.contains(name), "{name}");
        }
    }

    #[test]
    fn times_of_files_are_whole_seconds() {
        assert_eq!(seconds("runtime", Some(Nanos::from_secs(30))), Ok(Some(30)));
        assert_eq!((seconds("runtime", None), seconds("runtime", Some(Nanos::ZERO))), (Ok(None), Ok(None)));
        assert!(seconds("runtime", Some(Nanos::from_millis(1500))).is_err());
        assert!(seconds("runtime", Some(Nanos::from_secs(100_000))).is_err());
    }
}
