//! `openraid plan`: levels side by side, for given drives and a given load.

use openraid_lab::cell::{footprint, machine_spec, ArrayState, Caches, Level};
use openraid_lab::plan::{CacheSize, Gain, Lead, LevelPlan, Missing, PlanRequest, Planned, Rebuild, Speed};
use openraid_units::Bytes;
use serde::Serialize;

use super::Context;
use crate::arguments::{EffortWord, PlanArguments};
use crate::exit::{Exit, Failure, Outcome};
use crate::laboratory::{
    asked, drive_fits, effort, figure, least_certain as least, library, refused, runs_at_once, state_fits, uncertainty,
    Load,
};
use crate::output::table::Table;
use crate::quantity::sold;

/// Percent of requests that the write cache must bring, or cost, to be worth a word.
const CACHE_PAYS: f64 = 5.0;
/// A part that is busier than this is called the limit.
const LIMIT_BUSY: f64 = 0.9;
/// Where no part is busier than this, none holds the array back: its load does, by how little it asks for at once.
const LOAD_BUSY: f64 = 0.7;
/// Percent of requests that another size of the cache must bring, or cost, to be worth it.
const CACHE_SIZE_PAYS: f64 = 5.0;
/// Levels that are compared if the command line names none; impossible ones are left out.
const USUAL_LEVELS: [Level; 6] =
    [Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6, Level::Raid50, Level::Raid60];
/// With so few drives a mirror is also a usual choice.
const MIRROR_DRIVES_MAX: u16 = 3;

#[derive(Serialize)]
struct Body {
    system: String,
    drives: u16,
    /// Profile of the drives.
    drive: String,
    drive_bytes: u64,
    caches: Caches,
    load: String,
    levels: Vec<Planned>,
    /// The fastest level that survives a failure against each other one that does.
    comparisons: Vec<Comparison>,
    /// The values of the profiles were varied, and other caches tried.
    thorough: bool,
    advice: Vec<String>,
}

/// A level against another.
#[derive(Serialize)]
struct Comparison {
    faster: String,
    than: String,
    #[serde(flatten)]
    lead: Lead,
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
        thorough: arguments.range || arguments.load.effort != EffortWord::Quick,
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
    let machine = machine_spec(&library, &cell).map_err(refused)?;
    let comparisons = comparisons(&planned);
    let body = Body {
        system: request.system,
        drives: request.drives,
        drive: machine.drives[0].head.name.clone(),
        drive_bytes: machine.drives[0].capacity.value.bytes().get(),
        caches: Caches::of(&machine),
        load,
        advice: advice(&planned, &comparisons),
        comparisons,
        thorough: request.thorough,
        levels: planned,
    };
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
    format!("{} / {}", figure(speed.iops), figure(speed.mean_ms))
}

fn text(body: &Body, outstanding: u32) -> String {
    let units = Units::of(possible(&body.levels).map(|plan| plan.capacity).max().unwrap_or(0));
    let heads = [
        "ARRAY",
        units.names[0],
        units.names[1],
        "SURVIVES",
        "HEALTHY",
        "P99, ms",
        "UNCERTAINTY",
        "DEGRADED",
        "REBUILDING",
        "LIMIT",
        "WRITE-BACK",
    ];
    let risks = ["ARRAY", "REBUILD IDLE, h", "UNDER LOAD, h", "ARRAY LOST, %", "SECTOR LOST, %", "LOSS IN A YEAR, %"];
    let (mut table, mut risk) = (Table::new(&heads), Table::new(&risks));
    let (mut impossible, mut failed) = (Vec::new(), Vec::new());
    for planned in &body.levels {
        match planned {
            Planned::Impossible { array, reason } => impossible.push(format!("{array}: {reason}")),
            Planned::Possible(plan) => {
                table.row(row(plan, outstanding, body.thorough, &units));
                risk.row(risk_row(plan));
                let went_wrong = plan.missing.iter().filter(|missing| missing.failed);
                failed
                    .extend(went_wrong.map(|missing| format!("{}, {}: {}", plan.array, missing.what, missing.reason)));
                failed.extend(plan.flags.iter().map(|flag| format!("{}: CAUTION: {flag}", plan.array)));
            }
        }
    }
    let mut lines = Vec::new();
    if impossible.len() < body.levels.len() {
        let Body { drives, drive, drive_bytes, system, load, caches, .. } = body;
        let each = sold(Bytes(*drive_bytes));
        lines.push(format!("{drives} x {drive}, {each} each, behind {system}, {caches}"));
        lines.push(format!("{load}: requests/s / mean latency in ms"));
        lines.push(table.text().trim_end().into());
        lines.push(uncertainty_note(body.thorough).into());
        lines.push(String::new());
        lines.push("a drive fails, and is replaced at once: time of the rebuild, and chance of losing data".into());
        lines.push(risk.text().trim_end().into());
        lines.extend(risk_note(body));
        lines.push(String::new());
    }
    lines.extend(impossible);
    lines.extend(failed);
    lines.extend(body.advice.iter().cloned());
    lines.join("\n")
}

const fn uncertainty_note(thorough: bool) -> &'static str {
    if thorough {
        "P99 and UNCERTAINTY are about the healthy array: UNCERTAINTY is what estimated values of the profiles and chance \
         move, and chance by itself. `openraid simulate ARRAY --degraded 1 --range` has it of a degraded array"
    } else {
        "P99 and UNCERTAINTY are about the healthy array. UNCERTAINTY is chance alone here: --range varies the \
         estimated values of the profiles, and the cache, too, and takes minutes"
    }
}

/// What times and chances of the second table stand on.
fn risk_note(body: &Body) -> Vec<String> {
    let plans = body.levels.iter().filter_map(|planned| match planned {
        Planned::Possible(plan) => Some(plan),
        Planned::Impossible { .. } => None,
    });
    let Some(loss) = plans.filter_map(|plan| plan.loss.as_ref()).next() else { return Vec::new() };
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let estimated = if loss.estimated { " (estimated: no data sheet at hand)" } else { "" };
    vec![
        "the engine's rebuild, simulated at the beginning, in the middle and near the end of the drive; at most 200 MiB/s \
         (rebuild.rate), with no minimum rate under load"
            .into(),
        format!(
            "chances for a rebuild under load: {} of drives fail in a year, 1 sector in {} bits cannot be read{estimated}; \
             in brackets with {} a year. Independent failures only: docs/reliability.md",
            percent(loss.afr[0]),
            power(1.0 / loss.errors_per_bit),
            percent(loss.afr[1]),
        ),
    ]
}

/// A large number as a power of ten, where it is one.
fn power(number: f64) -> String {
    let exponent = number.log10();
    if (exponent - exponent.round()).abs() < 1e-6 {
        format!("10^{exponent:.0}")
    } else {
        format!("{number:.1e}")
    }
}

/// Hours; what takes less than three minutes is shown as such.
fn hours(hours: f64) -> String {
    if hours < 0.05 {
        return "<0.1".into();
    }
    format!("{hours:.1}")
}

/// A chance from 0 to 1 in percent; one that rounds to nothing is not told as nothing.
fn chance(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.005 {
        return "<0.01".into();
    }
    format!("{percent:.2}")
}

/// The units in which the arrays of a plan are told: as drives are sold, and in powers of two.
struct Units {
    names: [&'static str; 2],
    sizes: [u64; 2],
}

impl Units {
    /// Those for the largest of these sizes.
    fn of(largest: u64) -> Self {
        if largest >= 1_000_000_000_000 {
            Self { names: ["TB", "TiB"], sizes: [1_000_000_000_000, 1 << 40] }
        } else {
            Self { names: ["GB", "GiB"], sizes: [1_000_000_000, 1 << 30] }
        }
    }

    /// With one digit after the point, rounded down as all sizes are.
    fn cells(&self, bytes: u64) -> [String; 2] {
        self.sizes.map(|size| format!("{}.{}", bytes / size, bytes % size * 10 / size))
    }
}

fn risk_row(plan: &LevelPlan) -> Vec<String> {
    let none = || if plan.survives.0 == 0 { "data lost".to_owned() } else { "-".to_owned() };
    let time = |of: fn(&Rebuild) -> Option<f64>| plan.rebuild.as_ref().and_then(of).map_or_else(none, hours);
    let loss = |of: fn(&openraid_lab::plan::Loss) -> String| plan.loss.as_ref().map_or_else(none, of);
    vec![
        plan.array.to_string(),
        time(|rebuild| rebuild.idle_hours),
        time(|rebuild| rebuild.loaded_hours),
        loss(|loss| chance(loss.risk.array)),
        loss(|loss| chance(loss.risk.sector)),
        loss(|loss| format!("{} ({})", chance(loss.risk.year), chance(loss.year_high))),
    ]
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

fn row(plan: &LevelPlan, outstanding: u32, thorough: bool, units: &Units) -> Vec<String> {
    let (always, most) = plan.survives;
    let survives = if always == most { always.to_string() } else { format!("{always} - {most}") };
    let [sold, binary] = units.cells(plan.capacity);
    vec![
        plan.array.to_string(),
        sold,
        binary,
        survives,
        speed(&plan.healthy),
        figure(plan.healthy.p99_ms),
        if thorough {
            uncertainty(plan.uncertain_percent, plan.chance_percent)
        } else {
            format!("chance {:.1} %", plan.chance_percent)
        },
        told(plan, "degraded", plan.degraded.as_ref().map(speed)),
        told(plan, "rebuilding", plan.rebuilding.as_ref().map(speed)),
        limit(plan, outstanding),
        told(plan, "write_back_ratio", plan.write_back_ratio.map(|ratio| format!("x {ratio:.2}"))),
    ]
}

/// The fastest level that survives a failure, held against each other one that does.
fn comparisons(levels: &[Planned]) -> Vec<Comparison> {
    let safe: Vec<&LevelPlan> = possible(levels).filter(|plan| plan.survives.0 > 0).collect();
    let Some(best) = safe.iter().max_by(|one, two| one.healthy.iops.total_cmp(&two.healthy.iops)) else {
        return Vec::new();
    };
    let against = |other: &&LevelPlan| {
        let lead = best.lead_over(other).filter(|_| other.array != best.array)?;
        Some(Comparison { faster: best.array.to_string(), than: other.array.to_string(), lead })
    };
    let mut found: Vec<Comparison> = safe.iter().filter_map(against).collect();
    found.sort_by(|one, two| one.lead.gain.percent.total_cmp(&two.lead.gain.percent));
    found
}

/// How large a gain is, and how well that is known.
fn gained(gain: &Gain) -> String {
    let signed = |percent: f64| format!("{:+.0}", percent.round() + 0.0);
    match (gain.low_percent, gain.high_percent) {
        (Some(low), Some(high)) => format!("{} % (95 %: {} to {})", signed(gain.percent), signed(low), signed(high)),
        _ => format!("{} % in one run", signed(gain.percent)),
    }
}

/// The fastest level, and how certain its lead is.
fn fastest(safe: &[&LevelPlan], comparisons: &[Comparison]) -> Vec<String> {
    let Some(best) = safe.iter().max_by(|one, two| one.healthy.iops.total_cmp(&two.healthy.iops)) else {
        return Vec::new();
    };
    let (apart, level): (Vec<&Comparison>, Vec<&Comparison>) =
        comparisons.iter().partition(|own| is_told_apart(&own.lead));
    let alike = |plan: &&&LevelPlan| level.iter().any(|own| own.than == plan.array.to_string());
    let told = |plan: &LevelPlan| format!("{} ({} requests/s)", plan.array, figure(plan.healthy.iops));
    let mut first = vec![told(best)];
    first.extend(safe.iter().filter(alike).map(|plan| told(plan)));
    let mut lines = vec![match first.len() {
        1 => format!("fastest that survives a failure: {}", first[0]),
        _ => format!("fastest that survive a failure, not told apart by these runs: {}", first.join(", ")),
    }];
    for Comparison { than, lead, .. } in apart {
        let known = gained(&lead.gain);
        lines.push(match &lead.most {
            _ if lead.clear => format!("  against {than}: {known}"),
            Some((value, percent)) => {
                format!("  against {than}: {known}; with {value} at the end of its range {percent:+.0} %")
            }
            None => format!("  against {than}: {known}; estimated values may change that"),
        });
    }
    lines
}

/// Is one level faster than the other by more than chance?
fn is_told_apart(lead: &Lead) -> bool {
    lead.clear || lead.gain.is_above(0.0)
}

/// What a larger cache gains, and whether a smaller one is enough. Differences within chance are left out.
fn cache_size(plan: &LevelPlan) -> Option<String> {
    let words = |size: &CacheSize| {
        let gain = size.gain.filter(|_| size.steady)?;
        let more = size.cache_mib > plan.cache_mib;
        let worth = match more {
            true if gain.is_above(CACHE_SIZE_PAYS) => "worth it",
            true if gain.is_below(CACHE_SIZE_PAYS) => "not worth it",
            false if gain.is_above(-CACHE_SIZE_PAYS) => "enough",
            false if gain.is_below(-CACHE_SIZE_PAYS) => "too little",
            _ => "these runs do not tell",
        };
        let instead = if more { format!(" instead of {}", plan.cache_mib) } else { String::new() };
        Some(format!("of {} MiB{instead}: {}: {worth}", size.cache_mib, gained(&gain)))
    };
    // What more brings is the question; what less would cost comes after it.
    let told: Vec<String> = plan.cache_sizes.iter().rev().filter_map(words).collect();
    (!told.is_empty()).then(|| format!("{}: a cache {}", plan.array, told.join("; one ")))
}

fn possible(levels: &[Planned]) -> impl Iterator<Item = &LevelPlan> {
    levels.iter().filter_map(|planned| match planned {
        Planned::Possible(plan) => Some(&**plan),
        Planned::Impossible { .. } => None,
    })
}

/// What makes a healthy figure uncertain most of all, where that is worth a word.
fn least_certain(plan: &LevelPlan) -> Option<String> {
    least(&plan.uncertain, plan.chance_percent).map(|words| format!("{}: {words}", plan.array))
}

fn advice(levels: &[Planned], comparisons: &[Comparison]) -> Vec<String> {
    let safe: Vec<&LevelPlan> = possible(levels).filter(|plan| plan.survives.0 > 0).collect();
    let mut advice = fastest(&safe, comparisons);
    if let Some(most) = safe.iter().max_by_key(|plan| plan.capacity) {
        advice.push(format!("most room that survives a failure: {}, {}", most.array, sold(Bytes(most.capacity))));
    }
    for plan in possible(levels) {
        if let Some(part) = plan.bottleneck.as_ref().filter(|part| part.busy >= LIMIT_BUSY && part.part != "members") {
            advice.push(format!("{}: the {} is the limit; more or faster drives bring nothing", plan.array, part.part));
        }
        advice.extend(write_cache(plan));
        advice.extend(cache_size(plan));
        advice.extend(least_certain(plan));
    }
    advice
}

/// Whether a write-back cache pays or harms, where that is more than chance.
fn write_cache(plan: &LevelPlan) -> Option<String> {
    let gain = plan.write_back?;
    if gain.is_below(-CACHE_PAYS) {
        Some(format!("{}: write-through is faster here: write-back {}", plan.array, gained(&gain)))
    } else if gain.is_above(CACHE_PAYS) {
        let known = gained(&gain);
        Some(format!("{}: a write-back cache pays: {known}; it needs a battery or a journal", plan.array))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_of_another_size_is_told_with_what_it_brings_and_noise_is_no_advice() {
        let request = PlanRequest {
            system: "3ware-9650se".into(),
            drive: None,
            drives: 2,
            levels: vec![Level::Raid1],
            pattern: openraid_lab::cell::Pattern::ResponseTime,
            axes: openraid_lab::cell::Axes::default(),
            effort: openraid_lab::cell::Effort { requests: 100, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
            thorough: true,
        };
        let planned = request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan").remove(0);
        let Planned::Possible(plan) = planned else { panic!("a mirror can be") };
        assert_eq!((plan.cache_mib, plan.cache_sizes.len()), (256, 2));
        let told = |less: f64, more: f64, half: f64, steady: bool| {
            let mut cache_sizes = plan.cache_sizes.clone();
            for (size, percent) in cache_sizes.iter_mut().zip([less, more]) {
                let (low_percent, high_percent) = (Some(percent - half), Some(percent + half));
                let gain = Some(Gain { percent, low_percent, high_percent, pairs: 3 });
                *size = CacheSize { gain, steady, ..*size };
            }
            let mut plan = plan.clone();
            plan.cache_sizes = cache_sizes;
            cache_size(&plan)
        };
        assert_eq!(
            told(-0.3, 3.2, 1.0, true).as_deref(),
            Some(
                "raid1x2: a cache of 1024 MiB instead of 256: +3 % (95 %: +2 to +4): not worth it; \
                 one of 64 MiB: +0 % (95 %: -1 to +1): enough"
            )
        );
        let large = told(-22.4, 41.0, 1.0, true).expect("a sentence");
        assert!(large.contains(": worth it") && large.ends_with(": too little"), "{large}");
        // What chance may have done is no advice, whichever way it points.
        let noise = told(-8.0, 8.0, 9.0, true).expect("a sentence");
        assert_eq!(noise.matches("these runs do not tell").count(), 2, "{noise}");
        assert_eq!(told(0.0, 60.0, 1.0, false), None, "what was not steady is no advice");
        let mut none = plan.clone();
        none.cache_sizes.clear();
        assert_eq!(cache_size(&none), None);
    }

    #[test]
    fn levels_that_are_not_told_apart_are_not_ranked() {
        let request = PlanRequest {
            system: "openraid".into(),
            drive: None,
            drives: 4,
            levels: vec![Level::Raid10, Level::Raid5, Level::Raid6],
            pattern: openraid_lab::cell::Pattern::ResponseTime,
            axes: openraid_lab::cell::Axes::default(),
            effort: openraid_lab::cell::Effort { requests: 50, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
            thorough: false,
        };
        let mut plans = request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan");
        for (plan, iops) in plans.iter_mut().zip([719.0, 717.0, 440.0]) {
            let Planned::Possible(plan) = plan else { panic!("each can be") };
            plan.healthy.iops = iops;
        }
        let safe: Vec<&LevelPlan> = possible(&plans).collect();
        let against = |than: &str, percent: f64, half: f64| {
            let (low_percent, high_percent) = (Some(percent - half), Some(percent + half));
            let gain = Gain { percent, low_percent, high_percent, pairs: 3 };
            let lead = Lead { gain, clear: false, most: None };
            Comparison { faster: "raid10x4".into(), than: than.into(), lead }
        };
        let told = fastest(&safe, &[against("raid5x4", 0.3, 2.0), against("raid6x4", 63.0, 4.0)]);
        assert_eq!(
            told,
            [
                "fastest that survive a failure, not told apart by these runs: raid10x4 (719 requests/s), raid5x4 (717 requests/s)",
                "  against raid6x4: +63 % (95 %: +59 to +67); estimated values may change that"
            ]
        );
        let told = fastest(&safe, &[against("raid5x4", 9.0, 2.0), against("raid6x4", 63.0, 4.0)]);
        assert_eq!((told.len(), told[0].as_str()), (3, "fastest that survives a failure: raid10x4 (719 requests/s)"));
    }

    #[test]
    fn a_column_of_times_sizes_or_chances_has_one_unit_and_one_precision() {
        assert_eq!((hours(0.02), hours(27.44), hours(326.0)), ("<0.1".into(), "27.4".into(), "326.0".into()));
        assert_eq!(
            (chance(0.635), chance(0.0012), chance(2e-7), chance(0.0)),
            ("63.50".into(), "0.12".into(), "<0.01".into(), "0.00".into())
        );
        let large = Units::of(72_000_831_750_144);
        assert_eq!((large.names, large.cells(18_000_207_937_536)), (["TB", "TiB"], ["18.0".into(), "16.3".into()]));
        assert_eq!(Units::of(480_103_981_056).cells(480_103_981_056), ["480.1", "447.1"]);
        assert_eq!((power(1e15), power(2.5e14)), ("10^15".into(), "2.5e14".into()));
    }
}
