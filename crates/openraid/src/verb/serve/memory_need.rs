//! The memory that a server needs, and a check that the machine has that memory.

use openraid_core::cache::figures::table_bytes;
use openraid_core::limits::{Limits, POOL_BYTES_MAX};
use openraid_sys::free_memory::MemoryBound;
use openraid_units::{Bytes, Nanos};

use super::options::ServeOptions;
use crate::failure::Failure;
use crate::quantity::human;

/// Memory for writing a journal: four buffers of the largest entry.
pub const JOURNAL_BUFFERS: Bytes = Bytes::mib(4);
/// Cache of a server with a journal if no size is given.
pub const JOURNAL_CACHE: Bytes = Bytes::mib(64);
/// Maximum memory, in MiB, in the search for the minimum that works.
const LEAST_MEMORY_MIB_MAX: u64 = 1024;
/// Share of the payload memory for the engine's own work: numerator and denominator.
const WORK_SHARE: (u64, u64) = (2, 5);

/// The limits of the engine.
///
/// # Errors
/// The sizes cannot work; the text gives sizes that can.
pub fn limits_of(chosen: &ServeOptions) -> Result<Limits, Failure> {
    let frame = Bytes(openraid_core::limits::FRAME_BYTES);
    let journalled = !chosen.journal.is_empty();
    let default = if journalled { JOURNAL_CACHE } else { Bytes(0) };
    let (memory, asked) = (chosen.memory, chosen.cache.unwrap_or(default));
    check_asked(memory, asked, journalled)?;
    let cache = asked.round_down(frame);
    let journal = if journalled { JOURNAL_BUFFERS } else { Bytes(0) };
    let with = |memory: Bytes| {
        let pool = memory.round_down(frame);
        let work = (pool / WORK_SHARE.1 * WORK_SHARE.0).round_down(frame);
        let (drive_depth_max, queue_age_max) = (chosen.drive_depth, Nanos::from_secs(chosen.queue_age));
        let limits = Limits { drive_depth_max, queue_age_max, ..Limits::default() };
        Limits { pool: pool + cache + journal, work, cache, journal, ..limits }
    };
    let limits = with(memory);
    check_sizes(&limits, memory)?;
    limits.check().map_err(|error| too_little(memory, &with, &error))?;
    if let Some(bound) = openraid_sys::free_memory::bound() {
        check_memory(&limits, &bound).map_err(Failure::refused)?;
    }
    Ok(limits)
}

/// The error for memory that cannot work, with the minimum that can.
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

/// Refuses sizes that are obviously wrong, before any computation with them.
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

/// Refuses sizes here, because the errors of the limits do not name the options.
fn check_sizes(limits: &Limits, memory: Bytes) -> Result<(), Failure> {
    if limits.pool > POOL_BYTES_MAX {
        return Err(too_much(memory, limits.cache));
    }
    Ok(())
}

/// Is there enough memory? The server does not allocate all of it at once. A lack of memory would only show when the
/// kernel kills the running server.
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
        format!("give --cache {} at most", human(most))
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

/// The largest cache, in whole MiB, that fits with its tables. The tables grow in steps.
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

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::arguments::ServeArguments;

    fn limits(cache: Bytes) -> Limits {
        Limits { pool: Bytes::mib(160) + cache, cache, ..Limits::default() }
    }

    #[test]
    fn a_cache_larger_than_memory_is_refused_with_the_largest_that_fits() {
        let bound = |mib| MemoryBound { bytes: Bytes::mib(mib), by: "available".into() };
        let text = check_memory(&limits(Bytes::mib(4096)), &bound(1184)).unwrap_err();
        assert!(text.contains("--cache 4 GiB") && text.contains("there are 1.1 GiB, available"), "{text}");
        // 1,024 MiB remain for a cache and its tables. The largest proposed cache fits, and a slightly larger one does
        // not.
        let most = text.rsplit("--cache ").next().and_then(|rest| rest.strip_suffix(" MiB at most")).unwrap();
        let most: u64 = most.parse().unwrap();
        check_memory(&limits(Bytes::mib(most)), &bound(1184)).unwrap();
        check_memory(&limits(Bytes::mib(most + 1)), &bound(1184)).unwrap_err();
        assert!(most > 960, "{text}");
        let text = check_memory(&limits(Bytes(0)), &bound(100)).unwrap_err();
        assert!(text.contains("give less to --memory (160 MiB now)"), "{text}");
        check_memory(&limits(Bytes::mib(64)), &bound(256)).unwrap();
    }

    #[test]
    fn the_depth_of_a_drive_and_the_age_of_its_queue_follow_the_options() {
        let asked = |words: &[&str]| {
            let words = ["serve"].iter().chain(words);
            let command = ServeArguments::augment_args(clap::Command::new("serve"));
            let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
            let arguments = ServeArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
            limits_of(&ServeOptions::of(&arguments, None)).map_err(|failure| failure.text())
        };
        let usual = asked(&[]).unwrap();
        assert_eq!((usual.drive_depth_max, usual.queue_age_max), (128, Nanos::from_secs(2)));
        let limits = asked(&["--drive-depth", "16", "--queue-age", "5"]).unwrap();
        assert_eq!((limits.drive_depth_max, limits.queue_age_max), (16, Nanos::from_secs(5)));
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
        let text = too_little(Bytes::kib(1), &with, &"small").text();
        let least = text.rsplit("give ").next().and_then(|rest| rest.strip_suffix(" MiB at least")).expect("a figure");
        let least: u64 = least.parse().expect("a number");
        assert!(with(Bytes::mib(least)).check().is_ok(), "{text}");
        assert!((1..least).all(|less| with(Bytes::mib(less)).check().is_err()), "{text}");
    }

    #[test]
    fn sizes_that_cannot_work_are_refused_with_the_figure_that_can() {
        let memory = Bytes::mib(160);
        let refused = |cache, journalled| check_asked(memory, cache, journalled).unwrap_err().text();
        for cache in [Bytes(1), Bytes::kib(1), Bytes::kib(64)] {
            assert!(refused(cache, false).contains("give 80 KiB at least, or none"));
        }
        assert!(refused(Bytes(0), true).contains("give 80 KiB at least; a journal needs it"));
        check_asked(memory, Bytes(0), false).unwrap();
        for cache in [Bytes::mib(5 << 20), Bytes(u64::MAX)] {
            assert!(refused(cache, true).contains("more than 4 TiB cannot be addressed; give less"));
        }
        check_asked(Bytes(u64::MAX), Bytes(0), false).unwrap_err();
        // Each can be addressed, but not both together.
        check_sizes(&limits(Bytes::mib(4 << 20)), memory).unwrap_err();
        check_asked(memory, Bytes::kib(80), true).unwrap();
        check_sizes(&limits(Bytes::kib(80)), memory).unwrap();
        assert_eq!(limits(Bytes::kib(80)).check(), Ok(()));
    }
}
