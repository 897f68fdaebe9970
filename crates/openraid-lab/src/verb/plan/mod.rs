//! `openraid-lab plan`: compares levels for given drives and a given load; several machines in one answer.

mod advice;
mod costs_table;
mod join_parts;
mod level_tables;
mod machines;
mod rate;
mod recommend;
mod several_machines;

use std::sync::Arc;

use openraid_methods::cell::{footprint, machine_spec, ArrayState, Axes, Caches, Level, Pattern, Subject};
use openraid_methods::plan::{Lead, PlanRequest, Planned};
use openraid_models::Library;
use serde::Serialize;

use crate::arguments::{EffortWord, PlanArguments};
use crate::shared_parts::{
    asked, effort, from_file, library, refused, runs_at_once, stand_ins, state_fits, ChosenLoad,
};
use costs_table::{Price, Prices};
pub use join_parts::join;
use join_parts::PlanPart;
use machines::machines;
use openraid::failure::{Exit, Failure, Outcome};
use openraid::quantity::counted;
use openraid::verb::Context;
use rate::Reserve;
use recommend::Recommendation;

/// Levels that are compared if the command line names none; impossible ones are left out.
const USUAL_LEVELS: [Level; 6] =
    [Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6, Level::Raid50, Level::Raid60];
/// Up to this number of drives a mirror is also compared.
const MIRROR_DRIVES_MAX: u16 = 3;
/// Minimum number of outstanding requests if a rate must be carried: with fewer, an array does not show the most that it
/// carries.
const RATE_DEPTH: u32 = 32;
/// Number of requests of a trace below which the answer warns: every hundredth request decides the 99th percentile.
const TRACE_LEAST: usize = 1000;

/// Predicted figures of arrays of these drives.
#[derive(Serialize, utoipa::ToSchema)]
pub struct PlanAnswer<'a> {
    /// The first machine.
    #[serde(flatten)]
    first: &'a MachinePlan,
    /// The other machines, if several numbers of drives, drives or buses were given.
    more: &'a [MachinePlan],
    /// The gain of more drives, other drives and other buses.
    across: Vec<String>,
    /// The part of a plan, if other parts were run elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<PlanPart>,
}

/// The plan of one machine.
#[derive(Serialize, utoipa::ToSchema)]
struct MachinePlan {
    /// Its index among all machines of the plan, from 0.
    number: usize,
    /// Name of the controller's profile.
    system: String,
    /// Number of drives of each array.
    drives: u16,
    /// Name of the drives' profile.
    drive: String,
    /// Size of each drive.
    drive_bytes: u64,
    /// Number of further drives that wait for a failure.
    spares: u16,
    /// Hours until a failed drive is replaced.
    replacement_hours: u32,
    /// Chunk of the arrays.
    chunk_bytes: u64,
    /// The write cache as it was asked for, if there are several in the answer.
    cache: Option<String>,
    /// Name of the host bus; `slots` if each drive has a slot of the host for itself.
    bus: String,
    /// When writes are acknowledged, and the caches that are on.
    caches: Caches,
    /// The load in words.
    load: String,
    /// The plan of each level, or why it is impossible.
    levels: Vec<Planned>,
    /// The fastest level that survives a failure, compared with each other level that does.
    comparisons: Vec<Comparison>,
    /// Were the values of the profiles varied and other caches tried?
    thorough: bool,
    /// The cost of the levels, if prices were given.
    prices: Vec<Price>,
    /// Conclusions from the figures, a sentence each.
    advice: Vec<String>,
    /// The level to take, if one can be recommended.
    recommendation: Option<Recommendation>,
    /// Requests that are outstanding at the same time.
    outstanding: u32,
    /// Requests each second that the array must carry, if a rate is known.
    rate: Option<f64>,
    /// What each level has in reserve at that rate.
    reserves: Vec<Reserve>,
}

/// A comparison of two levels.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = LevelComparison)]
struct Comparison {
    /// The faster array, such as `raid10x8`.
    #[schema(value_type = String)]
    faster: Subject,
    /// The slower array.
    #[schema(value_type = String)]
    than: Subject,
    /// The lead of the faster array, with its range.
    #[serde(flatten)]
    lead: Lead,
}

/// The rate that must be carried.
///
/// # Errors
/// The load has none, or it is none.
fn rate(arguments: &PlanArguments, load: &ChosenLoad) -> Result<Option<f64>, Failure> {
    match arguments.rate {
        Some(_) if load.trace.is_some() => {
            Err(Failure::usage("--rate: a trace has a rate of its own; leave one of the two out"))
        }
        Some(rate) if rate <= 0.0 => Err(Failure::usage("--rate: give the requests per second, more than 0")),
        Some(rate) => Ok(Some(rate)),
        None => Ok(load.rate.filter(|rate| *rate > 0.0 && load.trace.is_none())),
    }
}

/// Runs the verb.
///
/// # Errors
/// A level, profile or load does not exist. If no level is possible, this is also wrong usage, with the reasons.
pub fn run(arguments: &PlanArguments, context: &Context) -> Outcome {
    let library = library(arguments.load.models.as_deref())?;
    let load = load_of(arguments)?;
    let machines = machines(arguments, &library, &load.axes)?;
    let rate = rate(arguments, &load)?;
    let trace = load.trace.map(Arc::new);
    let part = PlanPart::of(arguments, &library, machines.len(), trace.as_deref())?;
    let (mut plans, mut texts) = (Vec::new(), Vec::new());
    let all = machines.len();
    let several_spares = machines.iter().any(|one| one.spares > 0) && machines.iter().any(|one| one.spares == 0);
    let several_buses = machines.windows(2).any(|pair| pair[0].axes.bus != pair[1].axes.bus);
    let several_chunks = machines.windows(2).any(|pair| pair[0].axes.chunk != pair[1].axes.chunk);
    let shown = level_tables::Shown { bus: several_buses, chunk: several_chunks, spares: several_spares };
    for (number, machine) in machines.iter().enumerate() {
        if part.as_ref().is_some_and(|part| !part.shard.takes(number)) {
            continue;
        }
        let levels = levels(arguments, machine.drives)?;
        let request = PlanRequest {
            system: arguments.system.clone(),
            drive: machine.axes.drive.clone(),
            drives: machine.drives,
            levels,
            pattern: load.pattern.clone(),
            axes: with_depth(&machine.axes, &load.pattern, rate.is_some()),
            effort: effort(arguments.load.effort),
            seed: arguments.load.seed,
            thorough: arguments.range || arguments.load.effort != EffortWord::Quick,
            trace: trace.clone(),
            replacement_hours: machine.replacement_hours,
            stand_ins: stand_ins(&arguments.load.nearest),
        };
        let prices = Prices { drive: machine.price, kwh: arguments.kwh_price, spares: machine.spares };
        let runs = if all > 1 { format!("machine {} of {all}, runs", number + 1) } else { "runs".into() };
        let planned = one(&library, request, (arguments.levels.is_empty(), rate), &prices, &runs)?;
        let (spares, cache) = (machine.spares, machine.cache.clone());
        let body = MachinePlan { number, spares, cache, ..planned };
        texts.push(level_tables::text(&body, &prices, &shown));
        plans.push(body);
    }
    if let Some(few) = trace.as_ref().map(|trace| trace.records().len()).filter(|count| *count < TRACE_LEAST) {
        let count = counted(few as u64, "request", "requests");
        context.output.warn(&format!("the trace has {count}: too few for figures to rely on; record for longer"));
    }
    let Some((first, more)) = plans.split_first() else { return Err(Failure::usage("--drives: give a number")) };
    let possible = plans.iter().any(|body| advice::possible(&body.levels).next().is_some());
    let answer =
        PlanAnswer { first, more, across: several_machines::across(&several_machines::machines(&plans)), part };
    let mut lines = Vec::new();
    for (body, text) in plans.iter().zip(texts) {
        lines.extend(text);
        lines.extend(body.recommendation.iter().flat_map(Recommendation::lines));
        lines.push(String::new());
    }
    lines.extend(several_machines::text(&several_machines::machines(&plans), &answer.across));
    let exit = if possible { Exit::Fine } else { Exit::Refused };
    Ok(context.output.answer(exit, &answer, lines.join("\n").trim_end()))
}

/// The load, from a recording if one is given.
fn load_of(arguments: &PlanArguments) -> Result<ChosenLoad, Failure> {
    let Some(path) = &arguments.from else { return asked(&arguments.load) };
    let axes =
        asked(&crate::arguments::LoadArguments { load: "random".into(), job: None, ..arguments.load.clone() })?.axes;
    from_file(path, arguments.load.job.as_deref(), axes)
        .map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

fn levels(arguments: &PlanArguments, drives: u16) -> Result<Vec<Level>, Failure> {
    let mut levels = arguments.levels.iter().map(|word| level(word)).collect::<Result<Vec<Level>, Failure>>()?;
    if levels.is_empty() {
        levels.extend(USUAL_LEVELS);
        if drives <= MIRROR_DRIVES_MAX {
            levels.insert(1, Level::Raid1);
        }
    }
    Ok(levels)
}

/// The axes of the load with its queue depth: the given one, or that of the load's use. A trace has its own times.
fn with_depth(axes: &Axes, pattern: &Pattern, has_rate: bool) -> Axes {
    if matches!(pattern, Pattern::Trace(_)) || (axes.qd.is_none() && !has_rate && pattern.usual_depth() == 1) {
        return axes.clone();
    }
    let usual = axes.qd.unwrap_or_else(|| pattern.usual_depth());
    let workers = u32::from(axes.workers.unwrap_or(pattern.defaults().workers)).max(1);
    let depth = if has_rate { usual.max(RATE_DEPTH.div_ceil(workers)) } else { usual };
    Axes { qd: Some(depth), ..axes.clone() }
}

/// The plan of one machine, for a rate that must be carried if one is known. With `usual`, impossible levels are left
/// out. `runs` is the word of its progress.
fn one(
    library: &Library,
    request: PlanRequest,
    (usual, rate): (bool, Option<f64>),
    prices: &Prices,
    runs: &str,
) -> Result<MachinePlan, Failure> {
    let cells: Vec<_> = request.levels.iter().map(|level| request.cell(*level, ArrayState::Healthy)).collect();
    state_fits(library, cells.iter())?;
    let (threads, ended) = runs_at_once(runs);
    let mut planned = request.run(library, threads, ended).map_err(refused)?;
    let possible = |level: &Planned| matches!(level, Planned::Possible(_));
    if usual && planned.iter().any(possible) {
        planned.retain(possible);
    }
    // Does the load have more than one outstanding request?
    let cell = request.cell(Level::Raid0, ArrayState::Healthy);
    let outstanding = footprint(&cell, u64::MAX >> 1).map_or(1, |(_, outstanding)| outstanding);
    let load = request.pattern.name().to_owned();
    let machine = machine_spec(library, &cell).map_err(refused)?;
    let comparisons = advice::comparisons(&planned);
    let bus = machine.bus_name().to_owned();
    Ok(MachinePlan {
        number: 0,
        system: request.system,
        drives: request.drives,
        drive: request.axes.drive.unwrap_or_else(|| machine.drives[0].head.name.clone()),
        drive_bytes: machine.drives.iter().map(|drive| drive.capacity.value.bytes().get()).min().unwrap_or(0),
        bus,
        caches: Caches::of(&machine),
        load,
        prices: match prices {
            Prices { drive: None, kwh: None, .. } => Vec::new(),
            _ => advice::possible(&planned).map(|plan| prices.of(plan)).collect(),
        },
        advice: advice::advice(&planned, &comparisons, &machine),
        recommendation: recommend::recommend(&planned, &comparisons, rate),
        reserves: rate.map_or_else(Vec::new, |rate| rate::reserves(&planned, rate)),
        rate,
        spares: 0,
        replacement_hours: request.replacement_hours,
        chunk_bytes: machine.chunk().get(),
        cache: None,
        comparisons,
        thorough: request.thorough,
        levels: planned,
        outstanding,
    })
}

fn level(word: &str) -> Result<Level, Failure> {
    let lower = word.trim().to_ascii_lowercase();
    if matches!(lower.as_str(), "00" | "raid00") {
        return Err(Failure::usage("RAID 00 is a RAID 0 over all of its drives; give level 0"));
    }
    let known = Level::from_word(&lower).or_else(|| Level::from_word(&format!("raid{lower}")));
    known.filter(|known| *known != Level::Single).ok_or_else(|| {
        Failure::usage(format!("unknown level {word:?}; known levels: 0, 1, 1e, 10, 4, 5, 6, 50, 60, linear, jbod"))
    })
}
