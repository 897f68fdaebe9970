//! The machines of a plan: all combinations of the values that the command line gives.

use openraid_methods::cell::{Axes, CacheMode};
use openraid_models::Library;

use crate::arguments::{CacheChoice, PlanArguments};
use crate::shared_parts::drive_fits;
use openraid::failure::Failure;
use openraid::quantity::counted;

/// Maximum number of machines in one answer.
const MACHINES_MAX: usize = 64;
/// Hours until a drive without a spare is replaced, if arrays with and without spares are compared.
const REPLACE_AFTER: u32 = 24;

/// A machine of a plan.
#[derive(Clone, Debug)]
pub(super) struct MachineChoice {
    /// Number of drives of each array.
    pub drives: u16,
    /// Number of further drives that wait for a failure.
    pub spares: u16,
    /// Hours until a failed drive is replaced.
    pub replacement_hours: u32,
    pub axes: Axes,
    /// Price of a drive.
    pub price: Option<f64>,
    /// The write cache in words, if the command line names several.
    pub cache: Option<String>,
}

/// All combinations of drive counts, spares, drives, buses, caches and chunks.
///
/// # Errors
/// The values do not fit each other, or there are too many machines.
pub(super) fn machines(
    arguments: &PlanArguments,
    library: &Library,
    load: &Axes,
) -> Result<Vec<MachineChoice>, Failure> {
    let words = |word: &Option<String>| -> Vec<Option<String>> {
        word.as_ref().map_or_else(|| vec![None], |word| word.split(',').map(|one| Some(one.trim().into())).collect())
    };
    let all = words(&load.drive);
    if !arguments.price.is_empty() && arguments.price.len() != all.len() {
        return Err(Failure::usage(format!(
            "--price: {} for {} of --drive; give a price for each drive profile, separated by commas",
            counted(arguments.price.len() as u64, "price", "prices"),
            counted(all.len() as u64, "drive profile", "drive profiles"),
        )));
    }
    let mut machines = Vec::new();
    for (number, drive) in all.into_iter().enumerate() {
        for bus in words(&load.bus) {
            let axes = Axes { drive: drive.clone(), bus: bus.clone(), ..load.clone() };
            for (axes, cache) in with_caches(arguments, &axes)? {
                drive_fits(library, &arguments.system, &axes)?;
                let price = arguments.price.get(number).copied();
                for (drives, spares) in counts(arguments)? {
                    let replacement_hours = replacement_hours(arguments, spares);
                    let (axes, cache) = (axes.clone(), cache.clone());
                    machines.push(MachineChoice { drives, spares, replacement_hours, axes, price, cache });
                }
            }
        }
    }
    let most = MACHINES_MAX * arguments.shard.map_or(1, |shard| shard.of as usize);
    if machines.len() > most {
        let reason = format!("{} machines in one answer; give at most {MACHINES_MAX}, or use --shard", machines.len());
        return Err(Failure::usage(reason));
    }
    Ok(machines)
}

/// A spare takes the place of a failed drive at once.
fn replacement_hours(arguments: &PlanArguments, spares: u16) -> u32 {
    let usual = if arguments.spares.is_empty() { 0 } else { REPLACE_AFTER };
    if spares > 0 {
        0
    } else {
        arguments.replace_after.unwrap_or(usual)
    }
}

/// Numbers of drives of an array, and of its spares.
fn counts(arguments: &PlanArguments) -> Result<Vec<(u16, u16)>, Failure> {
    let spares: &[u16] = if arguments.spares.is_empty() { &[0] } else { &arguments.spares };
    let count = |drives: u16, spares: u16| match drives.checked_sub(spares).filter(|left| *left > 0) {
        Some(left) => Ok((left, spares)),
        None => {
            Err(Failure::usage(format!("--spares {spares}: of {drives} drives none is left for an array; give fewer")))
        }
    };
    arguments.drives.iter().flat_map(|drives| spares.iter().map(move |spares| count(*drives, *spares))).collect()
}

/// The axes with each write cache and each chunk, and the words for the cache if there are several.
fn with_caches(arguments: &PlanArguments, axes: &Axes) -> Result<Vec<(Axes, Option<String>)>, Failure> {
    let with_cache = |choice: &CacheChoice| {
        if choice.back && choice.mib == Some(0) {
            return Err(Failure::usage("--caches: a write-back cache of 0 MiB is none; give `wt`"));
        }
        let cache = Some(if choice.back { CacheMode::WriteBack } else { CacheMode::WriteThrough });
        let axes = Axes { cache, cache_mib: choice.mib, ..axes.clone() };
        axes.check().map_err(|error| Failure::usage(format!("--caches: {}", error.reason)))?;
        Ok::<_, Failure>((axes, (arguments.caches.len() > 1).then(|| choice.to_string())))
    };
    let caches = match arguments.caches.as_slice() {
        [] => vec![(axes.clone(), None)],
        caches => caches.iter().map(with_cache).collect::<Result<Vec<_>, Failure>>()?,
    };
    if arguments.chunks.is_empty() {
        return Ok(caches);
    }
    let with_chunk = |(axes, cache): &(Axes, Option<String>), bytes: u64| {
        let chunk =
            u32::try_from(bytes).ok().filter(|chunk| chunk.is_power_of_two() && (4096..=64 << 20).contains(chunk));
        let chunk = chunk.ok_or_else(|| Failure::usage("--chunks: give powers of two from 4K to 64M"))?;
        Ok::<_, Failure>((Axes { chunk: Some(chunk), ..axes.clone() }, cache.clone()))
    };
    caches.iter().flat_map(|one| arguments.chunks.iter().map(move |chunk| with_chunk(one, chunk.get()))).collect()
}
