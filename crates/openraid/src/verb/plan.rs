//! `openraid plan`: levels side by side, for given drives and a given load.

use openraid_lab::cell::{footprint, ArrayState, Level};
use openraid_lab::plan::{LevelPlan, PlanRequest, Planned, Speed};
use openraid_lab::run::run_all;
use openraid_units::Bytes;
use serde::Serialize;

use super::Context;
use crate::arguments::PlanArguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::laboratory::{asked, effort, figure, library, refused, Load};
use crate::output::progress::Progress;
use crate::output::table::Table;
use crate::quantity::human;

/// Below this ratio the write cache is said to harm, above its inverse to pay.
const CACHE_HARMS: f64 = 0.95;
/// A part that is busier than this is called the limit.
const LIMIT_BUSY: f64 = 0.9;
/// Where no part is busier than this, none holds the array back: its load does, by how little it asks for at once.
const LOAD_BUSY: f64 = 0.7;
/// Levels that are looked at where nobody names any; those that cannot be are left out then.
const USUAL_LEVELS: [Level; 6] =
    [Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6, Level::Raid50, Level::Raid60];
/// Of so few drives a mirror is one of the usual choices, too.
const MIRROR_DRIVES_MAX: u16 = 3;

#[derive(Serialize)]
struct Body {
    system: String,
    drives: u16,
    load: String,
    levels: Vec<Planned>,
    advice: Vec<String>,
}

/// Do it.
///
/// # Errors
/// No such level, profile or load. Where none of the levels can be it fails, with the reasons.
pub fn run(arguments: &PlanArguments, context: &Context) -> Outcome {
    let library = library(arguments.load.models.as_deref())?;
    let Load { pattern, axes, trace: None } = asked(&arguments.load)? else {
        return Err(Failure::usage("a trace cannot be planned with; use `openraid simulate` for each array"));
    };
    let mut levels = arguments.levels.iter().map(|word| level(word)).collect::<Result<Vec<Level>, Failure>>()?;
    let usual = levels.is_empty();
    if usual {
        levels.extend(USUAL_LEVELS);
        if arguments.drives <= MIRROR_DRIVES_MAX {
            levels.insert(1, Level::Raid1);
        }
    }
    let request = PlanRequest {
        system: arguments.system.clone(),
        drive: arguments.load.machine.drive.clone(),
        drives: arguments.drives,
        levels,
        pattern,
        axes,
        effort: effort(arguments.load.effort),
        seed: arguments.load.seed,
    };
    let threads = std::thread::available_parallelism().map_or(1, Into::into);
    let progress = std::sync::Mutex::new(Progress::counting("levels", request.levels.len() as u64));
    let ended = |done: usize| {
        progress.lock().expect("nobody panics with the lock").counted(done as u64);
        true
    };
    let planned = run_all(&request.levels, threads, |level| request.level(&library, *level), ended);
    let mut planned = planned.into_iter().flatten().collect::<Result<Vec<Planned>, _>>().map_err(refused)?;
    let possible = |level: &Planned| matches!(level, Planned::Possible(_));
    if usual && planned.iter().any(possible) {
        planned.retain(possible);
    }
    // One request at a time, or more?
    let cell = request.cell(Level::Raid0, ArrayState::Healthy);
    let outstanding = footprint(&cell, u64::MAX >> 1).map_or(1, |(_, outstanding)| outstanding);
    let load = request.pattern.name().to_owned();
    let advice = advice(&planned);
    let body = Body { system: request.system, drives: request.drives, load, levels: planned, advice };
    drop(progress);
    let exit = if body.levels.iter().any(possible) { Exit::Fine } else { Exit::Failed };
    Ok(context.output.answer(exit, &body, &text(&body, outstanding)))
}

fn level(word: &str) -> Result<Level, Failure> {
    let lower = word.trim().to_ascii_lowercase();
    let known = Level::ALL
        .into_iter()
        .filter(|known| *known != Level::Single)
        .find(|known| known.word() == lower || known.word().strip_prefix("raid").is_some_and(|number| number == lower));
    known.ok_or_else(|| {
        Failure::usage(format!("{word:?} is no level; write 0, 1, 1e, 10, 5, 6, 50, 60, linear or jbod"))
    })
}

fn speed(speed: Option<&Speed>) -> String {
    speed.map_or_else(|| "-".into(), |speed| format!("{} / {} ms", figure(speed.iops), figure(speed.mean_ms)))
}

fn text(body: &Body, outstanding: u32) -> String {
    let mut table =
        Table::new(&["ARRAY", "HOLDS", "SURVIVES", "HEALTHY", "DEGRADED", "REBUILDING", "LIMIT", "CACHE", "SURE TO"]);
    let mut impossible = Vec::new();
    for planned in &body.levels {
        match planned {
            Planned::Impossible { array, reason } => impossible.push(format!("{array}: {reason}")),
            Planned::Possible(plan) => table.row(row(plan, outstanding)),
        }
    }
    let mut lines = Vec::new();
    if impossible.len() < body.levels.len() {
        let (drives, system, load) = (body.drives, &body.system, &body.load);
        lines.push(format!("{drives} drives behind {system}, {load}: requests a second / mean latency"));
        lines.push(table.text().trim_end().into());
    }
    lines.extend(impossible);
    lines.extend(body.advice.iter().cloned());
    lines.join("\n")
}

/// What holds an array back.
fn limit(plan: &LevelPlan, outstanding: u32) -> String {
    let Some(part) = &plan.bottleneck else { return "-".into() };
    match (part.busy >= LOAD_BUSY, outstanding) {
        (true, _) => {
            let of_members = part.of_members.as_ref().map(|own| format!(" ({own})")).unwrap_or_default();
            format!("{}{of_members} {:.0} %", part.part, part.busy * 100.0)
        }
        (false, 0 | 1) => "one request at a time".into(),
        (false, _) => "few requests at a time".into(),
    }
}

fn row(plan: &LevelPlan, outstanding: u32) -> Vec<String> {
    let (always, most) = plan.survives;
    let survives = if always == most { always.to_string() } else { format!("{always} - {most}") };
    let cache = plan.write_back_ratio.map_or_else(|| "-".into(), |ratio| format!("x {ratio:.2}"));
    vec![
        plan.array.to_string(),
        human(Bytes(plan.capacity)),
        survives,
        speed(Some(&plan.healthy)),
        speed(plan.degraded.as_ref()),
        speed(plan.rebuilding.as_ref()),
        limit(plan, outstanding),
        cache,
        format!("+-{:.0} %", plan.uncertain_percent),
    ]
}

fn advice(levels: &[Planned]) -> Vec<String> {
    let plans: Vec<&LevelPlan> = levels
        .iter()
        .filter_map(|planned| match planned {
            Planned::Possible(plan) => Some(&**plan),
            Planned::Impossible { .. } => None,
        })
        .collect();
    let mut advice = Vec::new();
    let safe = plans.iter().filter(|plan| plan.survives.0 > 0);
    if let Some(best) = safe.clone().max_by(|one, two| one.healthy.iops.total_cmp(&two.healthy.iops)) {
        advice.push(format!(
            "fastest that survives a failure: {} ({} requests/s)",
            best.array,
            figure(best.healthy.iops)
        ));
    }
    if let Some(most) = safe.max_by_key(|plan| plan.capacity) {
        advice.push(format!("most room that survives a failure: {} ({})", most.array, human(Bytes(most.capacity))));
    }
    for plan in &plans {
        if let Some(part) = plan.bottleneck.as_ref().filter(|part| part.busy >= LIMIT_BUSY && part.part != "members") {
            advice.push(format!("{}: the {} is the limit; more or faster drives bring nothing", plan.array, part.part));
        }
        match plan.write_back_ratio {
            Some(ratio) if ratio < CACHE_HARMS => {
                advice.push(format!("{}: write-through is faster here (write-back x {ratio:.2})", plan.array));
            }
            Some(ratio) if ratio > 1.0 / CACHE_HARMS => {
                advice.push(format!(
                    "{}: the write cache pays (x {ratio:.2}); it needs a battery or a journal",
                    plan.array
                ));
            }
            _ => {}
        }
        if let Some((value, change)) = plan.uncertain.first().filter(|(_, change)| *change >= 1.0) {
            advice.push(format!("{}: least certain is {value} (up to {change:.0} %)", plan.array));
        }
    }
    advice
}
