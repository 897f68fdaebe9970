//! What the verbs of the laboratory share: profiles, loads by name or from files, efforts, interruptions.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use openraid_lab::cell::{builtin, Axes, CacheMode, Direction, Effort, Pattern, ZoneChoice};
use openraid_lab::load::AccessSpec;
use openraid_lab::reader::{read_fio_job, read_icf, read_trace, Trace, TraceFormat};
use openraid_models::Library;

use crate::arguments::{CacheWord, EffortWord, LoadArguments, WayWord};
use crate::exit::Failure;

/// The profiles that are built in, and those of a folder.
///
/// # Errors
/// A profile of the folder is wrong.
pub fn library(folder: Option<&Path>) -> Result<Library, Failure> {
    match folder {
        None => Ok(Library::builtin()),
        Some(folder) => Library::builtin().with_dir(folder).map_err(Failure::usage),
    }
}

/// How much is measured.
pub const fn effort(word: EffortWord) -> Effort {
    match word {
        EffortWord::Quick => Effort::QUICK,
        EffortWord::Normal => Effort::NORMAL,
        EffortWord::Full => Effort::FULL,
    }
}

/// A load as it was asked for.
#[derive(Debug)]
pub enum Asked {
    /// A pattern with its axes.
    Pattern(Pattern, Box<Axes>),
    /// A trace.
    Trace(Trace),
}

/// The load that was asked for.
///
/// # Errors
/// No such load, a file that cannot be understood.
pub fn asked(arguments: &LoadArguments) -> Result<Asked, Failure> {
    let mut axes = axes(arguments)?;
    if let Some((pattern, way)) = named(&arguments.load) {
        axes.op = axes.op.or(way);
        return Ok(Asked::Pattern(pattern, Box::new(axes)));
    }
    let path = Path::new(&arguments.load);
    if !path.exists() {
        return Err(Failure::usage(format!(
            "{:?} is neither a load nor a file; loads are database, sequential, random, file-server, web-server, \
             workstation, multi-threaded, response-time, latency, streaming",
            arguments.load
        )));
    }
    from_file(path, axes)
}

fn named(word: &str) -> Option<(Pattern, Option<Direction>)> {
    let known = Pattern::from_axis(word).or_else(|| Pattern::from_workload(word));
    let plain = known
        .filter(|(pattern, _)| !matches!(pattern, Pattern::FcTest | Pattern::TransferGraph | Pattern::Application));
    plain.or_else(|| builtin(word).map(|spec| (Pattern::Custom(spec), None)))
}

fn from_file(path: &Path, mut axes: Axes) -> Result<Asked, Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let open = || File::open(path).map(BufReader::new).map_err(|error| wrong(format!("it cannot be read: {error}")));
    let mut first = Vec::new();
    let read = std::io::Read::take(open()?, 4096).read_until(b'\n', &mut first);
    read.map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let first = String::from_utf8_lossy(&first).trim().to_owned();
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if extension.as_deref() == Some("icf") || first.starts_with("Version ") {
        let file = read_icf(open()?).map_err(|error| wrong(error.to_string()))?;
        axes.qd = axes.qd.or(file.depth);
        let specs: Vec<AccessSpec> = file.specs.into_iter().map(|known| known.spec).collect();
        return one(specs, axes).map_err(wrong);
    }
    if let Some(format) = TraceFormat::of(&first).filter(|_| !first.starts_with(['[', '#', ';'])) {
        let trace = read_trace(format, open()?).map_err(|error| wrong(error.to_string()))?;
        return Ok(Asked::Trace(trace));
    }
    let jobs = read_fio_job(open()?).map_err(|error| wrong(error.to_string()))?;
    if let [job] = &jobs[..] {
        axes.qd = axes.qd.or(Some(job.depth));
        axes.workers = axes.workers.or(Some(job.workers));
    }
    one(jobs.into_iter().map(|job| job.spec).collect(), axes).map_err(wrong)
}

fn one(specs: Vec<AccessSpec>, axes: Axes) -> Result<Asked, String> {
    match <[AccessSpec; 1]>::try_from(specs) {
        Ok([spec]) => Ok(Asked::Pattern(Pattern::Custom(spec), Box::new(axes))),
        Err(specs) => {
            let names: Vec<&str> = specs.iter().map(AccessSpec::name).collect();
            Err(format!("it holds {} loads ({}); leave one in it", specs.len(), names.join(", ")))
        }
    }
}

fn axes(arguments: &LoadArguments) -> Result<Axes, Failure> {
    let bytes = |what: &str, size: Option<openraid_units::Bytes>| {
        let small = size.map(|size| u32::try_from(size.get()));
        small.transpose().map_err(|_| Failure::usage(format!("--{what}: give at most 4 GiB")))
    };
    let axes = Axes {
        rd: arguments.reads,
        qd: arguments.depth,
        workers: arguments.workers,
        bs: bytes("block", arguments.block)?,
        op: arguments.way.map(|way| match way {
            WayWord::Read => Direction::Read,
            WayWord::Write => Direction::Write,
        }),
        cache: arguments.cache.map(|cache| match cache {
            CacheWord::Wb => CacheMode::WriteBack,
            CacheWord::Wt => CacheMode::WriteThrough,
        }),
        cache_mib: arguments.cache_mib,
        bus: arguments.bus.clone(),
        chunk: bytes("chunk", arguments.chunk)?,
        zone: arguments.first_32_gb.then_some(ZoneChoice::First32g),
        ..Axes::default()
    };
    axes.check().map_err(Failure::usage)?;
    Ok(axes)
}

/// A number for people: three figures that count.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_found_by_their_names() {
        for word in ["database", "file-server", "streaming", "sr", "response-time"] {
            assert!(named(word).is_some(), "{word}");
        }
        assert!(named("fc-test").is_none() && named("nonsense").is_none());
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        assert_eq!(
            (figure(1234.5), figure(12.34), figure(1.234), figure(0.1234)),
            ("1234".into(), "12.3".into(), "1.23".into(), "0.123".into())
        );
    }
}
