//! A plan as text tables.

use openraid_methods::cell::mixed;
use openraid_methods::plan::{
    events_max, LevelPlan, LossRisk, Missing, Planned, ProfileFit, Speed, EVENT_LIMIT, FRESH, JUDGED,
};
use openraid_units::Bytes;

use super::advice::possible;
use super::costs_table::{costs, Prices};
use super::{rate, MachinePlan};
use crate::shared_parts::{below_and_above, range_of};
use openraid::output::table::TextTable;
use openraid::quantity::{counted, figure, human, sold};

/// If no part has a higher load than this, no part limits the array. The load itself is the limit, because it has too
/// few outstanding requests.
const LOAD_BUSY: f64 = 0.7;

/// A figure, or the reason why it is missing. The reason is a few words, or a note below the table if a run failed.
fn figure_or_reason(plan: &LevelPlan, what: &str, figure: Option<String>) -> String {
    let missing = || plan.missing.iter().find(|missing| missing.what == what);
    figure.unwrap_or_else(|| match missing() {
        Some(Missing { failed: false, reason, .. }) => reason.clone(),
        Some(_) => "see below".into(),
        None => "-".into(),
    })
}

/// Requests and latency; of a load of large requests the MB each second before them.
fn speed(speed: &Speed, by_throughput: bool) -> String {
    let words = format!("{} / {}", figure(speed.iops), figure(speed.mean_ms));
    if by_throughput {
        format!("{} / {words}", figure(speed.mbps))
    } else {
        words
    }
}

/// The parts of a machine that its first line names, because the answer has machines with other ones.
pub(super) struct Shown {
    pub bus: bool,
    pub chunk: bool,
    pub spares: bool,
}

/// The heads of the table of rebuilds and losses.
const RISKS: [&str; 9] = [
    "ARRAY",
    "REBUILD IDLE, h",
    "UNDER LOAD, h",
    "ARRAY LOST, %",
    "IN A YEAR",
    "IN 5 YEARS",
    "SECTOR LOST, %",
    "IN A YEAR",
    "IN 5 YEARS",
];

/// The machine and the load, a line each.
fn head(body: &MachinePlan, shown: &Shown) -> [String; 2] {
    let MachinePlan { drives, drive, drive_bytes, system, load, caches, outstanding, .. } = body;
    let each = sold(Bytes(*drive_bytes));
    let parts = mixed(drive);
    let words: Vec<String> = parts.iter().map(|(count, name)| format!("{count} x {name}")).collect();
    let drives = match words.len() {
        1 => format!("{drives} x {drive}, {each} each"),
        _ => format!("{}, {each} of each used", words.join(" and ")),
    };
    let bus = if shown.bus { format!(" with {}", body.bus) } else { String::new() };
    let chunk = if shown.chunk { format!(", chunk {}", human(Bytes(body.chunk_bytes))) } else { String::new() };
    let spares = if shown.spares { format!(", {}", spare_words(body.spares)) } else { String::new() };
    let machine = format!("{drives}{spares}, on {system}{bus}, {caches}{chunk}");
    let own_times = possible(&body.levels).any(|plan| plan.by_latency);
    let times = if own_times { "at its own times".into() } else { format!("{outstanding} outstanding") };
    let large = if possible(&body.levels).any(|plan| plan.by_throughput) { "MB/s / " } else { "" };
    [machine, format!("{load}, {times}: {large}requests/s / mean latency in ms")]
}

/// When a failed drive is replaced.
fn replaced(body: &MachinePlan) -> String {
    match (body.spares, body.replacement_hours) {
        (0, 0) => "and is replaced at once".into(),
        (0, hours) => format!("and is replaced after {hours} h"),
        _ => "and a spare takes its place".into(),
    }
}

/// A machine's plan as text, without the recommendation.
pub(super) fn text(body: &MachinePlan, prices: &Prices, shown: &Shown) -> Vec<String> {
    let units = Units::of(possible(&body.levels).map(|plan| plan.capacity).max().unwrap_or(0));
    let heads = [
        "ARRAY",
        units.names[0],
        units.names[1],
        "SURVIVES",
        "HEALTHY",
        "P99, ms",
        "RANGE",
        "DEGRADED",
        "REBUILDING",
        "LIMIT",
        if body.caches.journal.is_some() { "WITHOUT JOURNAL" } else { "WRITE-BACK" },
    ];
    let (mut table, mut risk) = (TextTable::new(&heads), TextTable::new(&RISKS));
    let (mut impossible, mut failed) = (Vec::new(), Vec::new());
    for planned in &body.levels {
        match planned {
            Planned::Impossible { array, reason } => impossible.push(format!("{array}: {reason}")),
            Planned::Possible(plan) => {
                table.row(row(plan, body.outstanding, body.caches.journal.is_some(), &units));
                risk.row(risk_row(plan));
                failed.extend(cautions(plan));
            }
        }
    }
    let mut lines: Vec<String> = Vec::new();
    if impossible.len() < body.levels.len() {
        lines.extend(head(body, shown));
        lines.push(table.text().trim_end().into());
        lines.extend(range_note(body));
        lines.push(String::new());
        if let Some(rate) = body.rate {
            lines.extend(rate::lines(&body.levels, rate, body.outstanding));
            lines.push(String::new());
        }
        let what = "time of the rebuild, and chance of losing the array, and of losing sectors";
        lines.push(format!("a drive fails, {}: {what}", replaced(body)));
        lines.push(risk.text().trim_end().into());
        lines.extend(risk_note(body));
        lines.extend(costs(body, prices));
        lines.push(String::new());
    }
    lines.extend(impossible);
    lines.extend(failed);
    lines.extend(limit_note(&body.levels, body.thorough));
    lines.extend(body.advice.iter().cloned());
    lines
}

/// What to distrust in a level's figures: runs that failed, that were not steady, or that caches took part in.
fn cautions(plan: &LevelPlan) -> Vec<String> {
    let array = &plan.array;
    let went_wrong = plan.missing.iter().filter(|missing| missing.failed);
    let unsteady = (!plan.steady).then_some("healthy").into_iter();
    let unsteady = unsteady.chain(plan.unsteady_beside.iter().map(String::as_str));
    let mut lines: Vec<String> =
        went_wrong.map(|missing| format!("{array}, {}: {}", missing.what, missing.reason)).collect();
    lines.extend(unsteady.map(|run| {
        format!("{array}, {run}: CAUTION: not steady when it was measured; it may be faster or slower than this")
    }));
    lines.extend(plan.flags.iter().map(|flag| format!("{array}: CAUTION: {flag}")));
    lines.extend(plan.flags_beside.iter().map(|(run, flag)| format!("{array}, {run}: CAUTION: {flag}")));
    lines.dedup();
    lines
}

/// The note that a plan has reached its limit and begins no more runs, with the remedy.
fn limit_note(levels: &[Planned], thorough: bool) -> Option<String> {
    let missing = possible(levels).flat_map(|plan| &plan.missing);
    let left_out = missing.filter(|missing| missing.reason == EVENT_LIMIT).count() as u64;
    let millions = events_max(thorough) / 1_000_000;
    let longer = if thorough { "a load of fewer requests" } else { "--effort normal, which may take hours" };
    (left_out > 0).then(|| {
        format!(
            "STOPPED: {} not begun, as the others took {millions} million simulated events, the limit of a plan; name fewer levels with \
             --levels, or choose {longer}",
            counted(left_out, "run was", "runs were")
        )
    })
}

/// What the ranges consist of, what they know, and how they were judged.
fn range_note(body: &MachinePlan) -> Vec<String> {
    let what = if body.thorough {
        "P99 and RANGE are of the healthy array. RANGE: by chance, by the profiles' estimated values, by the model's own \
         error, and by unknown parts. `openraid-lab simulate ARRAY --degraded 1 --range` prints it for a degraded array"
    } else {
        "P99 and RANGE are of the healthy array. RANGE: by chance, by the model's own error, and by unknown parts. --range also varies the \
         estimated values of the profiles and the cache, and takes minutes"
    };
    let known = possible(&body.levels).next().map(|plan| {
        let unknown = match plan.unknown_percent {
            [low, high] if low.max(high) < 0.5 => String::new(),
            unknown => format!("; {} of RANGE for unknown parts", below_and_above(unknown)),
        };
        let hint = match plan.knowledge.drive {
            ProfileFit::Nearest => "",
            _ => "; say --nearest drive if the profile is of another drive",
        };
        format!("{}{unknown}{hint}", plan.knowledge.words())
    });
    std::iter::once(what.into()).chain(known).chain(judged()).collect()
}

/// What the ranges were judged by.
fn judged() -> [String; 2] {
    let (inside, all) = JUDGED;
    let (fresh_inside, fresh) = FRESH.iter().fold((0, 0), |sum, group| (sum.0 + group.1, sum.1 + group.2));
    let groups: Vec<String> = FRESH.iter().map(|(name, inside, all)| format!("{name} {inside} of {all}")).collect();
    [
        format!(
            "{inside} of {all} figures of the five reviews whose cards and drives have profiles lie within the model's own error \
             of the prediction; nothing was tuned on them"
        ),
        format!(
            "{fresh_inside} of {fresh} published figures of other machines lie in such a range, fitted without their source: {}",
            groups.join(", ")
        ),
    ]
}

/// The assumptions of the times and probabilities in the second table.
fn risk_note(body: &MachinePlan) -> Vec<String> {
    let Some(loss) = possible(&body.levels).filter_map(|plan| plan.loss.as_ref()).next() else { return Vec::new() };
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let estimated = if loss.estimated { " (estimated: no data sheet at hand)" } else { "" };
    vec![
        "the engine's rebuild, simulated at the beginning, in the middle and near the end of the drive, with its range; at most \
         200 MiB/s (rebuild.rate), and under load at least 20 MiB/s (rebuild.minimum) if the drives can"
            .into(),
        format!(
            "chances for a rebuild under load: {} of drives fail in a year, 1 sector in {} bits cannot be read{estimated}; \
             in brackets with {} a year and the longest rebuild; in a year and in five with every drive replaced when it fails. A lost sector is a few KiB of \
             one file. Independent failures only: docs/lab/reliability.md",
            percent(loss.afr[0]),
            power(1.0 / loss.errors_per_bit),
            percent(loss.afr[1]),
        ),
    ]
}

/// The spares of a machine.
pub(super) fn spare_words(spares: u16) -> String {
    match spares {
        0 => "no spare".into(),
        spares => counted(spares.into(), "spare", "spares"),
    }
}

/// A number, as `10^N` if it is a power of ten.
fn power(number: f64) -> String {
    let exponent = number.log10();
    if (exponent - exponent.round()).abs() < 1e-6 {
        format!("10^{exponent:.0}")
    } else {
        format!("{number:.1e}")
    }
}

/// Hours; a time below three minutes is marked as such.
fn hours(hours: f64) -> String {
    if hours < 0.05 {
        return "<0.1".into();
    }
    format!("{hours:.1}")
}

/// Hours with the least and the most that they may be.
fn hours_within(time: f64, range: Option<[f64; 2]>) -> String {
    range.map_or_else(|| hours(time), |[least, most]| format!("{} ({} - {})", hours(time), hours(least), hours(most)))
}

/// A probability from 0 to 1 in percent. If it rounds to zero, the text says that it is below the smallest step.
pub(super) fn chance(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.005 {
        return "<0.01".into();
    }
    format!("{percent:.2}")
}

/// The units for the capacities in a plan: decimal units, in which drives are sold, and powers of two.
struct Units {
    names: [&'static str; 2],
    sizes: [u64; 2],
}

impl Units {
    /// The units for the largest of these sizes.
    fn of(largest: u64) -> Self {
        if largest >= 1_000_000_000_000 {
            Self { names: ["TB", "TiB"], sizes: [1_000_000_000_000, 1 << 40] }
        } else {
            Self { names: ["GB", "GiB"], sizes: [1_000_000_000, 1 << 30] }
        }
    }

    /// The size with one decimal place, rounded down as all sizes are.
    fn cells(&self, bytes: u64) -> [String; 2] {
        self.sizes.map(|size| format!("{}.{}", bytes / size, bytes % size * 10 / size))
    }
}

fn risk_row(plan: &LevelPlan) -> Vec<String> {
    let none = || if plan.survives.0 == 0 { "data lost".to_owned() } else { "-".to_owned() };
    let time =
        |hours: Option<f64>, range: Option<[f64; 2]>| hours.map_or_else(none, |hours| hours_within(hours, range));
    let idle = plan.rebuild.as_ref().map(|rebuild| time(rebuild.idle_hours, rebuild.idle_hours_range));
    let loaded = plan.rebuild.as_ref().map(|rebuild| time(rebuild.loaded_hours, rebuild.loaded_hours_range));
    let loss = |of: fn(&LossRisk) -> String| plan.loss.as_ref().map_or_else(none, of);
    let of_years = |[usual, high]: [f64; 2]| format!("{} ({})", chance(usual), chance(high));
    let five_years = |of: fn(&LossRisk) -> [f64; 2]| plan.loss.as_ref().map_or_else(none, |loss| of_years(of(loss)));
    vec![
        plan.array.to_string(),
        idle.unwrap_or_else(none),
        loaded.unwrap_or_else(none),
        loss(|loss| chance(loss.risk.array)),
        loss(|loss| chance(loss.risk.array_year)),
        five_years(|loss| loss.array_five_years),
        loss(|loss| chance(loss.risk.sector)),
        loss(|loss| chance(loss.risk.sector_year)),
        five_years(|loss| loss.sector_five_years),
    ]
}

/// The limit of an array.
fn limit(plan: &LevelPlan, outstanding: u32) -> String {
    let Some(part) = &plan.bottleneck else { return "-".into() };
    match (part.busy >= LOAD_BUSY, outstanding) {
        (true, _) => {
            let of_members = part.of_members.as_ref().map(|members| format!(" ({members})")).unwrap_or_default();
            format!("{}{of_members} {:.0} %", part.part, part.busy * 100.0)
        }
        (false, 0 | 1) => "one request at a time".into(),
        (false, _) => "few requests at a time".into(),
    }
}

fn row(plan: &LevelPlan, outstanding: u32, journal: bool, units: &Units) -> Vec<String> {
    let (always, most) = plan.survives;
    let survives = if always == most { always.to_string() } else { format!("{always} - {most}") };
    let [sold, binary] = units.cells(plan.capacity);
    let speed = |of: &Speed| speed(of, plan.by_throughput);
    vec![
        plan.array.to_string(),
        sold,
        binary,
        survives,
        speed(&plan.healthy),
        figure(plan.healthy.p99_ms),
        range_of(plan.low_percent, plan.high_percent, plan.chance_percent),
        figure_or_reason(plan, "degraded", plan.degraded.as_ref().map(&speed)),
        figure_or_reason(plan, "rebuilding", plan.rebuilding.as_ref().map(&speed)),
        limit(plan, outstanding),
        match (journal, &plan.journal) {
            (true, effect) => {
                figure_or_reason(plan, "without journal", effect.as_ref().map(|effect| speed(&effect.without)))
            }
            _ => figure_or_reason(plan, "write_back_ratio", plan.write_back_ratio.map(|ratio| format!("x {ratio:.2}"))),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_methods::cell::{Axes, Effort, Level, Pattern};
    use openraid_methods::plan::{PlanRequest, StandIns};
    use openraid_models::Library;

    #[test]
    fn a_column_of_times_sizes_or_chances_has_one_unit_and_one_precision() {
        assert_eq!(hours_within(27.44, Some([24.8, 50.71])), "27.4 (24.8 - 50.7)");
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

    #[test]
    fn a_plan_that_reached_its_limit_gives_the_number_of_missing_runs_and_a_remedy() {
        let request = PlanRequest {
            system: "openraid".into(),
            drive: Some("wd740gd".into()),
            drives: 4,
            levels: vec![Level::Raid5],
            pattern: Pattern::FileServer,
            axes: Axes { qd: Some(4), ..Axes::default() },
            effort: Effort { requests: 50, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
            thorough: false,
            trace: None,
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        };
        let within = |most| request.run_within(&Library::builtin(), 2, most, |_, _| {}).expect("a plan");
        let note = limit_note(&within(1), false).expect("nothing but the healthy array was run");
        assert!(note.starts_with("STOPPED: 11 runs were not begun, as the others took 200 million"), "{note}");
        assert!(note.ends_with("--levels, or choose --effort normal, which may take hours"), "{note}");
        assert_eq!(limit_note(&within(u64::MAX), false), None);
    }
}
