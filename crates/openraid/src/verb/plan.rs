//! `openraid plan`: levels side by side, for given drives and a given load.

use openraid_lab::cell::{footprint, ArrayState, Level};
use openraid_lab::plan::{CacheSize, LevelPlan, Missing, PlanRequest, Planned, Speed};
use openraid_units::Bytes;
use serde::Serialize;

use super::Context;
use crate::arguments::PlanArguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::laboratory::{
    asked, drive_fits, effort, figure, least_certain as least, library, refused, runs_at_once, state_fits, sure_to,
    Load,
};
use crate::output::table::Table;
use crate::quantity::human;

/// Below this ratio the write cache is said to harm, above its inverse to pay.
const CACHE_HARMS: f64 = 0.95;
/// A part that is busier than this is called the limit.
const LIMIT_BUSY: f64 = 0.9;
/// Where no part is busier than this, none holds the array back: its load does, by how little it asks for at once.
const LOAD_BUSY: f64 = 0.7;
/// Percent of requests that another size of the cache must bring, or cost, to be worth it.
const CACHE_SIZE_PAYS: f64 = 5.0;
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
/// No such level, profile or load. Where none of the levels can be that is wrong usage, too, with the reasons.
pub fn run(arguments: &PlanArguments, context: &Context) -> Outcome {
    let library = library(arguments.load.models.as_deref())?;
    let Load { pattern, axes, trace: None } = asked(&arguments.load)? else {
        return Err(Failure::usage("a trace cannot be planned with; use `openraid simulate` for each array"));
    };
    drive_fits(&library, &arguments.system, &axes)?;
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
    let cells: Vec<_> = request.levels.iter().map(|level| request.cell(*level, ArrayState::Healthy)).collect();
    state_fits(&library, cells.iter())?;
    let (threads, ended) = runs_at_once();
    let mut planned = request.run(&library, threads, ended).map_err(refused)?;
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
    let exit = if body.levels.iter().any(possible) { Exit::Fine } else { Exit::Refused };
    Ok(context.output.answer(exit, &body, &text(&body, outstanding)))
}

fn level(word: &str) -> Result<Level, Failure> {
    let lower = word.trim().to_ascii_lowercase();
    let known = Level::ALL
        .into_iter()
        .filter(|known| *known != Level::Single)
        .find(|known| known.word() == lower || known.word().strip_prefix("raid").is_some_and(|number| number == lower));
    known.ok_or_else(|| {
        Failure::usage(format!("unknown level {word:?}; known levels: 0, 1, 1e, 10, 5, 6, 50, 60, linear, jbod"))
    })
}

/// A figure, or why there is none: in a few words, or below the table where something went wrong.
fn told(plan: &LevelPlan, what: &str, figure: Option<String>) -> String {
    let missing = || plan.missing.iter().find(|missing| missing.what == what);
    figure.unwrap_or_else(|| match missing() {
        Some(Missing { failed: false, reason, .. }) => reason.clone(),
        Some(_) => "see below".into(),
        None => "-".into(),
    })
}

fn speed(speed: &Speed) -> String {
    format!("{} / {} ms", figure(speed.iops), figure(speed.mean_ms))
}

fn text(body: &Body, outstanding: u32) -> String {
    let heads =
        ["ARRAY", "HOLDS", "SURVIVES", "HEALTHY", "99 % BELOW", "SURE TO", "DEGRADED", "REBUILDING", "LIMIT", "CACHE"];
    let mut table = Table::new(&heads);
    let (mut impossible, mut failed) = (Vec::new(), Vec::new());
    for planned in &body.levels {
        match planned {
            Planned::Impossible { array, reason } => impossible.push(format!("{array}: {reason}")),
            Planned::Possible(plan) => {
                table.row(row(plan, outstanding));
                let went_wrong = plan.missing.iter().filter(|missing| missing.failed);
                failed
                    .extend(went_wrong.map(|missing| format!("{}, {}: {}", plan.array, missing.what, missing.reason)));
            }
        }
    }
    let mut lines = Vec::new();
    if impossible.len() < body.levels.len() {
        let (drives, system, load) = (body.drives, &body.system, &body.load);
        lines.push(format!("{drives} drives behind {system}, {load}: requests a second / mean latency"));
        lines.push(table.text().trim_end().into());
        lines.push(
            "99 % BELOW and SURE TO are about the healthy array; SURE TO has uncertain values of the profiles, and chance by \
             itself. `openraid simulate ARRAY --degraded 1 --range` has the same of a degraded one"
                .into(),
        );
    }
    lines.extend(impossible);
    lines.extend(failed);
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
    vec![
        plan.array.to_string(),
        human(Bytes(plan.capacity)),
        survives,
        speed(&plan.healthy),
        format!("{} ms", figure(plan.healthy.p99_ms)),
        sure_to(plan.uncertain_percent, plan.chance_percent),
        told(plan, "degraded", plan.degraded.as_ref().map(speed)),
        told(plan, "rebuilding", plan.rebuilding.as_ref().map(speed)),
        limit(plan, outstanding),
        told(plan, "write_back_ratio", plan.write_back_ratio.map(|ratio| format!("x {ratio:.2}"))),
    ]
}

/// The fastest, and all that may be as fast.
fn fastest(safe: &[&LevelPlan]) -> Option<String> {
    let best = safe.iter().max_by(|one, two| one.healthy.iops.total_cmp(&two.healthy.iops))?;
    let mut level: Vec<&&LevelPlan> = safe.iter().filter(|other| !best.is_faster_than(other)).collect();
    level.sort_by(|one, two| two.healthy.iops.total_cmp(&one.healthy.iops));
    let words: Vec<String> =
        level.iter().map(|plan| format!("{} ({} requests/s)", plan.array, figure(plan.healthy.iops))).collect();
    let unclear = if words.len() > 1 { "no clear difference: " } else { "" };
    Some(format!("fastest that survives a failure: {unclear}{}", words.join(", ")))
}

/// What more of the cache brings, and whether less of it would do.
fn cache_size(plan: &LevelPlan) -> Option<String> {
    let pays = |change: f64| change > CACHE_SIZE_PAYS && change > plan.chance_percent;
    let words = |size: &CacheSize| {
        // No minus in front of a zero.
        let percent = size.change_percent.round() + 0.0;
        let more = size.cache_mib > plan.cache_mib;
        let worth = match (size.steady, more) {
            (false, _) => "not steady yet, more --effort tells more",
            (true, true) if pays(size.change_percent) => "worth it",
            (true, true) => "not worth it",
            (true, false) if pays(-size.change_percent) => "too little",
            (true, false) => "enough",
        };
        let instead = if more { format!(" instead of {}", plan.cache_mib) } else { String::new() };
        format!("of {} MiB{instead}: {percent:+} %: {worth}", size.cache_mib)
    };
    // What more brings is the question; what less would cost comes behind it.
    let told: Vec<String> = plan.cache_sizes.iter().rev().map(words).collect();
    (!told.is_empty()).then(|| format!("{}: a cache {}", plan.array, told.join("; one ")))
}

/// What makes a healthy figure uncertain most of all, where that is worth a word.
fn least_certain(plan: &LevelPlan) -> Option<String> {
    least(&plan.uncertain, plan.chance_percent).map(|words| format!("{}: {words}", plan.array))
}

fn advice(levels: &[Planned]) -> Vec<String> {
    let plans: Vec<&LevelPlan> = levels
        .iter()
        .filter_map(|planned| match planned {
            Planned::Possible(plan) => Some(&**plan),
            Planned::Impossible { .. } => None,
        })
        .collect();
    let safe: Vec<&LevelPlan> = plans.iter().copied().filter(|plan| plan.survives.0 > 0).collect();
    let mut advice: Vec<String> = fastest(&safe).into_iter().collect();
    if let Some(most) = safe.iter().max_by_key(|plan| plan.capacity) {
        advice.push(format!("most room that survives a failure: {} ({})", most.array, human(Bytes(most.capacity))));
    }
    for plan in &plans {
        if let Some(part) = plan.bottleneck.as_ref().filter(|part| part.busy >= LIMIT_BUSY && part.part != "members") {
            advice.push(format!("{}: the {} is the limit; more or faster drives bring nothing", plan.array, part.part));
        }
        advice.extend(write_cache(plan));
        advice.extend(cache_size(plan));
        advice.extend(least_certain(plan));
    }
    advice
}

/// Whether the write cache pays or harms, where that is more than chance.
fn write_cache(plan: &LevelPlan) -> Option<String> {
    let ratio = plan.write_back_ratio?;
    let beyond_chance = |times: f64| (times - 1.0) * 100.0 > plan.chance_percent;
    if ratio < CACHE_HARMS && beyond_chance(1.0 / ratio) {
        Some(format!("{}: write-through is faster here (write-back x {ratio:.2})", plan.array))
    } else if ratio > 1.0 / CACHE_HARMS && beyond_chance(ratio) {
        Some(format!("{}: the write cache pays (x {ratio:.2}); it needs a battery or a journal", plan.array))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_of_another_size_is_told_with_what_it_brings() {
        let request = PlanRequest {
            system: "3ware-9650se".into(),
            drive: None,
            drives: 2,
            levels: vec![Level::Raid1],
            pattern: openraid_lab::cell::Pattern::ResponseTime,
            axes: openraid_lab::cell::Axes::default(),
            effort: openraid_lab::cell::Effort { requests: 100, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
        };
        let planned = request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan").remove(0);
        let Planned::Possible(plan) = planned else { panic!("a mirror can be") };
        assert_eq!((plan.cache_mib, plan.cache_sizes.len()), (256, 2));
        let told = |less: f64, more: f64, chance_percent: f64, steady: bool| {
            let mut cache_sizes = plan.cache_sizes.clone();
            for (size, change_percent) in cache_sizes.iter_mut().zip([less, more]) {
                *size = CacheSize { change_percent, steady, ..*size };
            }
            let mut plan = plan.clone();
            (plan.cache_sizes, plan.chance_percent) = (cache_sizes, chance_percent);
            cache_size(&plan).expect("a sentence")
        };
        assert_eq!(
            told(-0.3, 3.2, 1.0, true),
            "raid1x2: a cache of 1024 MiB instead of 256: +3 %: not worth it; one of 64 MiB: +0 %: enough"
        );
        assert_eq!(
            told(-22.4, 41.0, 1.0, true),
            "raid1x2: a cache of 1024 MiB instead of 256: +41 %: worth it; one of 64 MiB: -22 %: too little"
        );
        // Less than chance brings by itself.
        assert!(told(-8.0, 8.0, 9.0, true).ends_with("+8 %: not worth it; one of 64 MiB: -8 %: enough"));
        assert!(told(0.0, 60.0, 1.0, false).contains("+60 %: not steady yet"));
        let mut none = plan.clone();
        none.cache_sizes.clear();
        assert_eq!(cache_size(&none), None);
    }
}
