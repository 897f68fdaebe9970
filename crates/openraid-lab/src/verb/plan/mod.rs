//! `openraid-lab plan`: compares levels for given drives and a given load; several machines in one answer.

mod advice;
mod join_parts;
mod prices;
mod recommend;
mod several_machines;
mod text;

use std::sync::Arc;

use openraid_methods::cell::{footprint, machine_spec, ArrayState, Axes, Caches, Level, Subject};
use openraid_methods::plan::{Lead, PlanRequest, Planned};
use openraid_models::Library;
use serde::Serialize;

use crate::arguments::{EffortWord, PlanArguments};
use crate::shared_parts::{
    asked, drive_fits, effort, from_file, library, refused, runs_at_once, state_fits, ChosenLoad,
};
pub use join_parts::join;
use join_parts::PlanPart;
use openraid::failure::{Exit, Failure, Outcome};
use openraid::quantity::counted;
use openraid::verb::Context;
use prices::{Price, Prices};
use recommend::Recommendation;

/// Levels that are compared if the command line names none; impossible ones are left out.
const USUAL_LEVELS: [Level; 6] =
    [Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6, Level::Raid50, Level::Raid60];
/// Up to this number of drives a mirror is also compared.
const MIRROR_DRIVES_MAX: u16 = 3;
/// Maximum number of machines in one answer.
const MACHINES_MAX: usize = 64;
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
    /// Name of the host bus.
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
    #[serde(skip)]
    outstanding: u32,
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

/// Runs the verb.
///
/// # Errors
/// A level, profile or load does not exist. If no level is possible, this is also wrong usage, with the reasons.
pub fn run(arguments: &PlanArguments, context: &Context) -> Outcome {
    let library = library(arguments.load.models.as_deref())?;
    let load = load_of(arguments)?;
    let machines = machines(arguments, &library, &load.axes)?;
    let trace = load.trace.map(Arc::new);
    let part = PlanPart::of(arguments, &library, machines.len(), trace.as_deref())?;
    let (mut plans, mut texts) = (Vec::new(), Vec::new());
    let all = machines.len();
    let several_buses = machines.windows(2).any(|pair| pair[0].1.bus != pair[1].1.bus);
    for (number, (drives, axes, price)) in machines.into_iter().enumerate() {
        if part.as_ref().is_some_and(|part| !part.shard.takes(number)) {
            continue;
        }
        let levels = levels(arguments, drives)?;
        let request = PlanRequest {
            system: arguments.system.clone(),
            drive: axes.drive.clone(),
            drives,
            levels,
            pattern: load.pattern.clone(),
            axes,
            effort: effort(arguments.load.effort),
            seed: arguments.load.seed,
            thorough: arguments.range || arguments.load.effort != EffortWord::Quick,
            trace: trace.clone(),
        };
        let prices = Prices { drive: price, kwh: arguments.kwh_price };
        let runs = if all > 1 { format!("machine {} of {all}, runs", number + 1) } else { "runs".into() };
        let body = MachinePlan { number, ..one(&library, request, arguments.levels.is_empty(), &prices, &runs)? };
        texts.push(text::text(&body, &prices, several_buses));
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

/// All combinations of drive counts, drives and buses, each with the price of a drive.
fn machines(
    arguments: &PlanArguments,
    library: &Library,
    load: &Axes,
) -> Result<Vec<(u16, Axes, Option<f64>)>, Failure> {
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
            for drives in &arguments.drives {
                let axes = Axes { drive: drive.clone(), bus: bus.clone(), ..load.clone() };
                drive_fits(library, &arguments.system, &axes)?;
                machines.push((*drives, axes, arguments.price.get(number).copied()));
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

/// The plan of one machine. With `usual`, impossible levels are left out. `runs` is the word of its progress.
fn one(
    library: &Library,
    request: PlanRequest,
    usual: bool,
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
    let bus = machine.bus.as_ref().map_or_else(|| machine.controller.bus.clone(), |bus| bus.name.clone());
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
            Prices { drive: None, kwh: None } => Vec::new(),
            _ => advice::possible(&planned).map(|plan| prices.of(plan)).collect(),
        },
        advice: advice::advice(&planned, &comparisons),
        recommendation: recommend::recommend(&planned, &comparisons),
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
