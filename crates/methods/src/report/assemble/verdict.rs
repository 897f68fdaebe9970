//! Derives the scenarios of a review from its methods, and judges the reliability of all results.

use super::super::data::{Fact, Point, Review, Unit};
use super::super::findings::{self, LoadScenario, ScenarioEntry, ScenarioGroup};
use super::super::format::{list, place};
use super::super::table::noisy;
use super::curve::grouped;
use super::figure::{subject, Figure};
use super::rated::rated;
use super::tables::only;
use super::{outstanding_axis, CellTrial, Chapter};
use crate::cell::{ArrayState, CellResult, CellSpec, Direction, FileSystem, Flag, PartName, Pattern, ZoneChoice};
use crate::method::MethodName;
use crate::metrics::Scheme;

/// The share of reads at which the database is judged: that of the published load, rounded to ten percent.
const DATABASE_READS: u8 = 70;

/// Whether a trial belongs to a group of arrays.
type Belongs = fn(&CellTrial) -> bool;

/// Gives a report its short summary, its order of arrays and its verdicts, if it compares arrays. Measured arrays and
/// simulated ones are judged apart.
pub fn judge(review: &mut Review, chapters: &[Chapter]) {
    let has_both = super::mixed::is_mixed(chapters);
    let kinds: &[(&str, Belongs)] = if has_both {
        &[("measured", is_measured), ("simulated", |trial| !is_measured(trial))]
    } else {
        &[("", |_| true)]
    };
    let groups = kinds
        .iter()
        .map(|(kind, belongs)| ScenarioGroup { kind: (*kind).into(), scenarios: judged(chapters, *belongs) });
    let groups: Vec<ScenarioGroup> = groups.filter(|group| !group.scenarios.is_empty()).collect();
    let compared = groups.iter().flat_map(|group| &group.scenarios).any(|scenario| scenario.entries.len() > 1);
    if !compared {
        return;
    }
    review.brief = groups.iter().flat_map(findings::brief).collect();
    review.brief.extend(two_kinds(&groups));
    review.brief.extend(distrust(chapters));
    review.brief.extend(absent(chapters));
    review.standings = findings::standings_table(&groups);
    let all = groups.iter().flat_map(|group| group.scenarios.iter().map(|scenario| (scenario, group.kind.as_str())));
    let verdicts = all.map(|(scenario, kind)| {
        let name = if kind.is_empty() { scenario.name.clone() } else { format!("{}, {kind}", scenario.name) };
        Fact::new(name, findings::verdict(scenario))
    });
    review.verdicts = verdicts.filter(|fact| !fact.value.is_empty()).collect();
}

fn is_measured(trial: &CellTrial) -> bool {
    trial.spec.effort.is_a_time()
}

/// The scenarios of these trials.
fn judged(chapters: &[Chapter], belongs: Belongs) -> Vec<LoadScenario> {
    // If the whole file test was measured, its subset has no verdict of its own: it has the same cells.
    let whole = chapters.iter().any(|chapter| chapter.method.name == MethodName::FcTest && !chapter.trials.is_empty());
    let chapters = chapters.iter().filter(|chapter| !(whole && chapter.method.name == MethodName::FcSubset));
    chapters.flat_map(|chapter| scenarios(chapter, belongs)).filter(|scenario| !scenario.entries.is_empty()).collect()
}

/// A note if measured and simulated arrays are in one report.
fn two_kinds(groups: &[ScenarioGroup]) -> Option<String> {
    (groups.len() > 1).then(|| {
        "Measured and simulated arrays are judged apart. Their figures can be compared only if the model is that of the \
         measured drives."
            .into()
    })
}

/// The scenarios of a method.
fn scenarios(chapter: &Chapter, belongs: Belongs) -> Vec<LoadScenario> {
    let healthy = |trial: &&CellTrial| trial.spec.state == ArrayState::Healthy && belongs(trial);
    let all: Vec<&CellTrial> = chapter.trials.iter().filter(healthy).collect();
    match chapter.method.name {
        MethodName::FileServer => by_depth("File server", &all, chapter.rank),
        MethodName::WebServer => by_depth("Web server", &all, chapter.rank),
        MethodName::Workstation => {
            by_depth("Workstation", &only(&all, |spec| spec.axes.zone != Some(ZoneChoice::First32g)), chapter.rank)
        }
        MethodName::Database => database(&all),
        MethodName::MultiThreaded => {
            let clients = all.iter().filter_map(|trial| trial.spec.axes.th).max().unwrap_or(1);
            let one = |spec: &CellSpec| spec.axes.th == Some(clients) && spec.axes.qd == Some(1);
            ways(&only(&all, one), ["Video server", "Recording"], |op| format!("{clients} streams {op}"))
        }
        MethodName::Sequential => {
            let largest = all.iter().filter_map(|trial| trial.spec.axes.bs).max();
            let found = ways(&only(&all, |spec| spec.axes.bs == largest), ["Playing one file", "Backup"], |op| {
                format!("one stream {op}")
            });
            found.into_iter().collect()
        }
        MethodName::Winmarks | MethodName::Applications => applications(&all),
        MethodName::FcTest | MethodName::FcSubset => files(&all),
        _ => Vec::new(),
    }
}

fn by_depth(name: &str, all: &[&CellTrial], rank: Option<Scheme>) -> Vec<LoadScenario> {
    let Some(pattern) = all.first().map(|trial| trial.spec.pattern.clone()) else { return Vec::new() };
    let usual = if pattern == Pattern::Workstation { Scheme::R2 } else { Scheme::R1 };
    let chosen = rank.map(|scheme| (scheme, rated(all, &pattern, scheme))).filter(|(_, rated)| !rated.is_empty());
    let (scheme, found) = chosen.unwrap_or_else(|| (usual, rated(all, &pattern, usual)));
    let entries = found.into_iter().map(|(name, _, value)| {
        let of_array = only(all, |spec| subject(spec) == name);
        ScenarioEntry { subject: name, value, places: depths(&of_array), flagged: flagged(&of_array) }
    });
    let unit = if scheme.is_index() { Unit::None } else { Unit::named("IOPS") };
    vec![LoadScenario {
        name: name.into(),
        what: format!("rating {}", scheme.name()),
        unit,
        entries: entries.collect(),
    }]
}

/// The results of an array over the queue depth.
fn depths(of_array: &[&CellTrial]) -> Vec<(String, Point)> {
    let all = grouped(of_array, |spec| spec.axes.qd.unwrap_or(1)).into_iter();
    let points = all.filter_map(|(depth, trials)| {
        let words = format!("at {}", place(&outstanding_axis(), f64::from(depth)));
        Some((words, Figure::Iops.point(f64::from(depth), &trials)?))
    });
    points.collect()
}

fn database(all: &[&CellTrial]) -> Vec<LoadScenario> {
    let trials = only(all, |spec| spec.axes.rd == Some(DATABASE_READS));
    let entries = grouped(&trials, subject).into_iter().filter_map(|(name, of_array)| {
        let places = depths(&of_array);
        let mean = |of: fn(&Point) -> f64| places.iter().map(|(_, point)| of(point)).sum::<f64>() / places.len() as f64;
        let (y, low, high) = (mean(|p| p.y), mean(|p| p.low), mean(|p| p.high));
        let runs = places.iter().map(|(_, point)| point.runs).max()?;
        let unsteady = places.iter().any(|(_, point)| point.unsteady);
        let value = Point { unsteady, ..Point::spread(0.0, y, low, high, runs) };
        Some(ScenarioEntry { subject: name, value, places, flagged: flagged(&of_array) })
    });
    let what = format!("mean of all depths at {DATABASE_READS} % reads");
    vec![LoadScenario { name: "Database".into(), what, unit: Unit::named("IOPS"), entries: entries.collect() }]
}

/// Sequential reads, and sequential writes.
fn ways(all: &[&CellTrial], names: [&str; 2], what: impl Fn(&str) -> String) -> Vec<LoadScenario> {
    let ways = [(Direction::Read, "read"), (Direction::Write, "written")];
    let scenarios = ways.into_iter().zip(names).map(|((op, word), name)| {
        let trials = only(all, |spec| spec.axes.op == Some(op));
        let entries = grouped(&trials, subject).into_iter().filter_map(|(name, of_array)| {
            let value = Figure::Mbps.point(0.0, &of_array)?;
            let places = vec![(format!("with {}", what(word)), value.clone())];
            Some(ScenarioEntry { subject: name, value, places, flagged: flagged(&of_array) })
        });
        LoadScenario { name: name.into(), what: what(word), unit: Unit::named("MB/s"), entries: entries.collect() }
    });
    scenarios.filter(|scenario| !scenario.entries.is_empty()).collect()
}

/// Parts that run in sequence: the harmonic mean of their rates. Arrays that lack a part are left out.
fn in_a_row(
    name: &str,
    what: &str,
    unit: &str,
    figure: Figure,
    all: &[&CellTrial],
    words: impl Fn(&CellSpec) -> String,
) -> Vec<LoadScenario> {
    let parts = grouped(all, &words).len();
    let entries = grouped(all, subject).into_iter().filter_map(|(name, of_array)| {
        let of_part = |(words, trials): (String, Vec<&CellTrial>)| Some((words, figure.point(0.0, &trials)?));
        let places: Vec<(String, Point)> = grouped(&of_array, &words).into_iter().filter_map(of_part).collect();
        let mean = |of: fn(&Point) -> f64| places.len() as f64 / places.iter().map(|(_, p)| 1.0 / of(p)).sum::<f64>();
        let (y, low, high) = (mean(|p| p.y), mean(|p| p.low), mean(|p| p.high));
        let runs = places.iter().map(|(_, point)| point.runs).max()?;
        let unsteady = places.iter().any(|(_, point)| point.unsteady);
        let value = Point { unsteady, ..Point::spread(0.0, y, low, high, runs) };
        (places.len() == parts).then(|| ScenarioEntry { subject: name, value, places, flagged: flagged(&of_array) })
    });
    let entries: Vec<ScenarioEntry> = entries.collect();
    let scenario = LoadScenario { name: name.into(), what: what.into(), unit: Unit::named(unit), entries };
    if scenario.entries.is_empty() {
        Vec::new()
    } else {
        vec![scenario]
    }
}

fn applications(all: &[&CellTrial]) -> Vec<LoadScenario> {
    let largest = all.iter().filter_map(|trial| trial.spec.axes.cache_mib).max();
    let trials = only(all, |spec| spec.axes.cache_mib == largest || spec.axes.cache_mib.is_none());
    let words = |spec: &CellSpec| {
        let app = spec.axes.app.map_or_else(String::new, |app| super::shapes::app_words(app).to_owned());
        let users = spec.axes.users.map_or_else(String::new, |users| format!(", {users} users"));
        format!(
            "with {app}{users}{}",
            spec.axes.fs.map_or("", |fs| if fs == FileSystem::Ntfs { " on NTFS" } else { " on FAT32" })
        )
    };
    // The method with several caches is judged at its largest one.
    let name = largest.map_or_else(|| "Applications".into(), |mib| format!("Applications with {mib} MiB of cache"));
    in_a_row(&name, "harmonic mean of the scores, imitated", "kB/s", Figure::Score, &trials, words)
}

fn files(all: &[&CellTrial]) -> Vec<LoadScenario> {
    let trials = only(all, |spec| spec.axes.fs != Some(FileSystem::Fat32));
    let words = |spec: &CellSpec| {
        let step = spec.axes.step.map_or("", super::shapes::step_words);
        format!("with {} ({step})", spec.axes.set.map_or("files", super::shapes::set_words))
    };
    in_a_row("Copying files", "harmonic mean of all sets and steps, NTFS", "MB/s", Figure::Mbps, &trials, words)
}

/// Number of results in which a cache took part.
fn flagged(trials: &[&CellTrial]) -> usize {
    trials.iter().filter_map(|trial| trial.outcome.result()).filter(|result| !result.flags.is_empty()).count()
}

/// A reason for doubt in a result, as text after a number.
type Doubt = (fn(&CellResult) -> bool, &'static str);

const DOUBTS: [Doubt; 7] = [
    (CellResult::is_unsteady, "not steady"),
    (|result| has(result, |flag| matches!(flag, Flag::AboveCeiling { .. })), "above what a bus or the drives carry"),
    (|result| has(result, |flag| matches!(flag, Flag::StillInCaches { .. })), "with writes still in caches"),
    (|result| has(result, |flag| matches!(flag, Flag::ReadFromCache { .. })), "partly read from a cache"),
    (|result| has(result, |flag| matches!(flag, Flag::PageCache)), "through this machine's page cache"),
    (|result| has(result, |flag| matches!(flag, Flag::FlushOwed { .. })), "with writes that only a flush made durable"),
    (
        |result| result.busy(PartName::Generator).is_some_and(|busy| busy >= findings::BUSY_LIMIT),
        "limited by the load generator",
    ),
];

fn has(result: &CellResult, wanted: fn(&Flag) -> bool) -> bool {
    result.flags.iter().any(wanted)
}

/// The results to doubt, by method.
fn distrust(chapters: &[Chapter]) -> Option<String> {
    let results = |chapter: &Chapter| {
        chapter.trials.iter().filter_map(|trial| trial.outcome.result()).cloned().collect::<Vec<_>>()
    };
    let all: usize = chapters.iter().map(|chapter| results(chapter).len()).sum();
    if all == 0 {
        return None;
    }
    let mut words = Vec::new();
    for (doubt, what) in DOUBTS {
        let by_method = chapters.iter().filter_map(|chapter| {
            let count = results(chapter).iter().filter(|result| doubt(result)).count();
            (count > 0).then_some((chapter.method.title, count))
        });
        let by_method: Vec<(&str, usize)> = by_method.collect();
        let sum: usize = by_method.iter().map(|(_, count)| count).sum();
        if sum > 0 {
            let names: Vec<String> = by_method.iter().map(|(title, count)| format!("{title} {count}")).collect();
            words.push(format!("{sum} {what} ({})", names.join(", ")));
        }
    }
    let noisy: usize = chapters.iter().map(noisy_results).sum();
    if noisy > 0 {
        words.push(format!("{noisy} with repetitions that differ by more than 5 %"));
    }
    Some(match words.as_slice() {
        [] => {
            format!("Nothing to distrust: all {all} results were steady, and none is above what bus and drives carry.")
        }
        words => format!("Distrust, of {all} results: {}.", list(words)),
    })
}

/// Number of results whose runs differ much.
fn noisy_results(chapter: &Chapter) -> usize {
    let all: Vec<&CellTrial> = chapter.trials.iter().collect();
    let once = |spec: &CellSpec| {
        let axes = crate::cell::Axes { rep: None, ..spec.axes.clone() };
        CellSpec { axes, ..spec.clone() }
    };
    let repeated = all.iter().any(|trial| trial.spec.axes.rep.is_some());
    if !repeated {
        return 0;
    }
    let groups = grouped(&all, once).into_iter();
    let points = groups.filter_map(|(spec, trials)| Figure::of_pattern(&spec.pattern).point(0.0, &trials));
    points.filter(|point| point.runs > 1 && noisy(point.y, point.low, point.high)).count()
}

/// Methods that were refused.
fn absent(chapters: &[Chapter]) -> Option<String> {
    let missing = chapters.iter().filter(|chapter| {
        !chapter.refusal.is_empty() || chapter.trials.iter().all(|trial| trial.outcome.result().is_none())
    });
    let names: Vec<String> = missing.map(|chapter| format!("{} {}", chapter.method.id, chapter.method.title)).collect();
    (!names.is_empty()).then(|| format!("Not measured: {}; the reasons are in their sections.", list(&names)))
}
