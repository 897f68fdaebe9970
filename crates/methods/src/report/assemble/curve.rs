//! Lines of results: one line for each subject, over one axis of the cells.

use super::super::data::{
    AbsentPoint, ChartAxis, Guide, GuideKind, Level, LineChart, MachinePart, Point, ReportCache, ReportSubject, Series,
};
use super::super::findings::BUSY_LIMIT;
use super::super::split_charts::{by_cache, SplitPart};
use super::figure::{subject, Figure};
use super::CellTrial;
use crate::cell::Ceiling;
use crate::cell::{CellSpec, Direction};
use std::collections::BTreeMap;

/// Groups trials by key, in the order of first appearance.
pub fn grouped<'a, K: PartialEq>(all: &[&'a CellTrial], key: impl Fn(&CellSpec) -> K) -> Vec<(K, Vec<&'a CellTrial>)> {
    let mut groups: Vec<(K, Vec<&CellTrial>)> = Vec::new();
    for &trial in all {
        let key = key(&trial.spec);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(trial),
            None => groups.push((key, vec![trial])),
        }
    }
    groups
}

/// Lines over the value that `place` returns. Cells without such a value are left out, and so are subjects without a
/// result.
pub fn lines(all: &[&CellTrial], x: ChartAxis, place: impl Fn(&CellSpec) -> Option<f64>, figure: Figure) -> LineChart {
    lines_of(all, x, place, figure, subject)
}

/// As [`lines`], with names for the lines.
pub fn lines_of(
    all: &[&CellTrial],
    x: ChartAxis,
    place: impl Fn(&CellSpec) -> Option<f64>,
    figure: Figure,
    name: impl Fn(&CellSpec) -> ReportSubject,
) -> LineChart {
    let mut series = Vec::new();
    for (subject, trials) in grouped(all, name) {
        let mut places = grouped(&trials, &place);
        places.retain(|(place, _)| place.is_some());
        places.sort_by(|a, b| a.0.unwrap_or(0.0).total_cmp(&b.0.unwrap_or(0.0)));
        let (mut points, mut absent) = (Vec::new(), Vec::new());
        for (place, trials) in places {
            let at = place.unwrap_or(0.0);
            match figure.point(at, &trials) {
                Some(point) => points.push(point),
                None => absent.push(AbsentPoint { x: at, reason: reason(&trials) }),
            }
        }
        if !points.is_empty() {
            series.push(Series { absent, ..Series::line(subject, points) });
        }
    }
    LineChart { x, y: figure.axis(), series, guides: Vec::new() }
}

/// The reason why trials have no figure.
pub fn reason(trials: &[&CellTrial]) -> String {
    let absence = trials.iter().find_map(|trial| trial.outcome.absence());
    absence.map_or_else(|| "no requests were counted".into(), |absence| absence.reason.clone())
}

/// The properties of a chart's load that determine how many drives of an array can work for the host at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChartLoad {
    /// The direction, if the load has only one.
    pub op: Option<Direction>,
    /// Is the load sequential?
    pub stream: bool,
}

/// Number of single drives whose rate an array can reach at best, if it is known. Without redundancy it is all drives.
/// For reads it is also all drives, except for sequential reads of parity levels, which skip the parity. For these, and
/// for writes, it is all drives without the parity drives. For writes to RAID 1 it is one drive, and to other mirrors
/// half of the drives. For a mix of reads and writes it is between both values, so there is none.
fn worth(subject: &ReportSubject, asked: ChartLoad) -> Option<f64> {
    let (all, data) = (f64::from(subject.members), f64::from(subject.data_drives()));
    match (subject.level, asked.op) {
        (Level::Raid0 | Level::Jbod, _) => Some(all),
        (Level::Single | Level::Linear, _) | (_, None) => None,
        (Level::Raid1, Some(Direction::Write)) => Some(1.0),
        (Level::Raid1e | Level::Raid10, Some(Direction::Write)) => Some(all / 2.0),
        (Level::Raid1 | Level::Raid1e | Level::Raid10, Some(Direction::Read)) => Some(all),
        (_, Some(Direction::Read)) if !asked.stream => Some(all),
        (Level::Raid4 | Level::Raid5 | Level::Raid6 | Level::Raid50 | Level::Raid60, Some(_)) => Some(data),
    }
}

/// The single drive; for drives side by side, one of them.
fn single(lines: &LineChart) -> Option<&Series> {
    let plain = || lines.series.iter().filter(|one| one.subject.variant.is_empty() && !one.points.is_empty());
    let alone = plain().find(|one| one.subject.level == Level::Jbod && one.subject.members == 1);
    plain().find(|one| one.subject.level == Level::Single).or(alone)
}

/// Is another part than the drive the limit of a single drive's result? Then more drives promise no gain.
fn held_back(point: &Point) -> bool {
    let loads = point.evidence.iter().flat_map(|evidence| &evidence.loads);
    loads.into_iter().any(|load| load.part != MachinePart::Drives && load.busy >= BUSY_LIMIT)
}

/// The arrays whose ideals are drawn, with the number of drives for each: the best array without redundancy (JBOD if
/// none is striped), the best one with parity, and the best mirror.
fn measures(lines: &LineChart, asked: ChartLoad) -> Vec<(&ReportSubject, f64)> {
    const KINDS: [&[Level]; 4] = [
        &[Level::Raid0],
        &[Level::Jbod],
        &[Level::Raid4, Level::Raid5, Level::Raid6, Level::Raid50, Level::Raid60],
        &[Level::Raid1, Level::Raid1e, Level::Raid10],
    ];
    let best = |levels: &&[Level]| {
        let plain = lines.series.iter().filter(|one| one.subject.variant.is_empty() && !one.points.is_empty());
        let of_kind = plain.map(|one| &one.subject).filter(|subject| levels.contains(&subject.level));
        let known = of_kind.filter_map(|subject| Some((subject, worth(subject, asked)?)));
        known.filter(|(_, worth)| *worth > 1.0).max_by(|a, b| a.1.total_cmp(&b.1))
    };
    let mut found: Vec<(&ReportSubject, f64)> = KINDS.iter().filter_map(best).collect();
    if found.iter().any(|(subject, _)| subject.level == Level::Raid0) {
        found.retain(|(subject, _)| subject.level != Level::Jbod);
    }
    found
}

fn times_single(subject: &ReportSubject, worth: f64, corners: Vec<(f64, f64)>) -> Option<Guide> {
    let label = format!("{}{worth} single drives", Guide::IDEAL);
    let guide = Guide { label, kind: GuideKind::Ideal, subject: Some(subject.clone()), corners };
    // With one corner the guide would be a horizontal line.
    (guide.corners.len() > 1).then_some(guide)
}

/// The ideals of the arrays of each write cache, by the single drive with that cache.
fn of_each_cache(lines: &LineChart, ideals: impl Fn(&LineChart, Option<ReportCache>) -> Vec<Guide>) -> Vec<Guide> {
    let of_part = |part: SplitPart| {
        let mut guides = ideals(&part.lines, part.cache);
        if let Some(cache) = part.cache {
            let subjects = guides.iter_mut().filter_map(|guide| guide.subject.as_mut());
            subjects.for_each(|subject| subject.variant.add(cache.words()));
        }
        guides
    };
    by_cache(lines).into_iter().flat_map(of_part).collect()
}

/// The figures that arrays would reach if every drive that can work were as fast as the single one under the same load.
pub fn ideals(lines: &LineChart, asked: ChartLoad) -> Vec<Guide> {
    of_each_cache(lines, |lines, _| {
        let Some(single) = single(lines) else { return Vec::new() };
        let free = || single.points.iter().filter(|point| !held_back(point));
        let guide = |(subject, worth): (&ReportSubject, f64)| {
            times_single(subject, worth, free().map(|point| (point.x, point.y * worth)).collect())
        };
        measures(lines, asked).into_iter().filter_map(guide).collect()
    })
}

/// The figures that arrays would reach if their drives shared the queue evenly and each were as fast as the single
/// drive with its share. With fewer requests than drives, only as many drives work as there are requests.
pub fn ideals_shared(lines: &LineChart, asked: ChartLoad) -> Vec<Guide> {
    of_each_cache(lines, |lines, _| {
        let Some(single) = single(lines) else { return Vec::new() };
        let free = free(single);
        let guide = |(subject, worth): (&ReportSubject, f64)| {
            let series = lines.series.iter().find(|one| one.subject == *subject)?;
            let corner = |x: f64| Some((x, worth * at_share(&free, x / worth)?));
            times_single(subject, worth, series.points.iter().filter_map(|point| corner(point.x)).collect())
        };
        measures(lines, asked).into_iter().filter_map(guide).collect()
    })
}

/// The ideals for a load at one queue depth, over the share of its reads. `single` gives the single drive with a write
/// cache over its queue depth at such a share. For mixes the number of drives is known only for arrays without
/// redundancy.
pub fn ideals_of_mixes(
    lines: &LineChart,
    depth: f64,
    single: impl Fn(f64, Option<ReportCache>) -> Option<Series>,
) -> Vec<Guide> {
    of_each_cache(lines, |lines, cache| {
        let guide = |(subject, worth): (&ReportSubject, f64)| {
            let series = lines.series.iter().find(|one| one.subject == *subject)?;
            let corner = |x: f64| Some((x, worth * at_share(&free(&single(x, cache)?), depth / worth)?));
            times_single(subject, worth, series.points.iter().filter_map(|point| corner(point.x)).collect())
        };
        measures(lines, ChartLoad { op: None, stream: false }).into_iter().filter_map(guide).collect()
    })
}

/// The first part of the single drive's line, in which no other part is the limit.
fn free(single: &Series) -> Series {
    let points = single.points.iter().take_while(|point| !held_back(point)).cloned().collect();
    Series { points, ..single.clone() }
}

/// The value of a series at `x`: linear between its points, and linear from zero to its first point. None after its
/// last point.
fn at_share(series: &Series, x: f64) -> Option<f64> {
    let first = series.points.first()?;
    if x <= first.x {
        return (first.x > 0.0).then(|| first.y * x / first.x);
    }
    let pair = series.points.windows(2).find(|pair| x <= pair[1].x)?;
    Some(pair[0].y + (pair[1].y - pair[0].y) * (x - pair[0].x) / (pair[1].x - pair[0].x))
}

/// The ceilings of buses and data paths in a direction, as guides.
pub fn ceilings(ceilings: &[Ceiling], op: Option<Direction>) -> Vec<Guide> {
    let guide = |ceiling: &Ceiling| {
        let mbps = if op == Some(Direction::Write) { ceiling.write_mbps } else { ceiling.read_mbps };
        let label = format!("{} {:.0} MB/s", ceiling.name, mbps);
        Guide { label, kind: GuideKind::Limit, subject: None, corners: vec![(0.0, mbps)] }
    };
    ceilings.iter().map(guide).collect()
}

/// The axes of a cell that have a value, as text.
pub fn named_axes(spec: &CellSpec) -> BTreeMap<String, String> {
    let mut axes = BTreeMap::new();
    if let Ok(serde_json::Value::Object(found)) = serde_json::to_value(&spec.axes) {
        for (name, value) in found {
            let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            axes.insert(name, words);
        }
    }
    axes
}

/// The axes whose values differ between cells, with the number of values of each. Repetitions do not count.
pub fn varying(all: &[&CellTrial]) -> Vec<(String, usize)> {
    let mut values: BTreeMap<String, Vec<Option<String>>> = BTreeMap::new();
    let of_all: Vec<BTreeMap<String, String>> = all.iter().map(|trial| named_axes(&trial.spec)).collect();
    for name in of_all.iter().flat_map(BTreeMap::keys) {
        if name == "rep" || values.contains_key(name) {
            continue;
        }
        let mut found: Vec<Option<String>> = of_all.iter().map(|axes| axes.get(name).cloned()).collect();
        found.sort_unstable();
        found.dedup();
        values.insert(name.clone(), found);
    }
    values.into_iter().filter(|(_, found)| found.len() > 1).map(|(name, found)| (name, found.len())).collect()
}

/// The values of some axes of a cell, as text: `qd 16, op read`.
pub fn axes_words(spec: &CellSpec, names: &[String]) -> String {
    let axes = named_axes(spec);
    let words: Vec<String> = names
        .iter()
        .filter_map(|name| {
            let value = axes.get(name)?;
            Some(match name.as_str() {
                "rd" => format!("{value} % reads"),
                "qd" => format!("depth {value}"),
                "oio" => format!("{value} outstanding"),
                "bs" => value.parse().map_or_else(|_| value.clone(), super::super::format::bytes),
                "th" => format!("{value} client{}", if value == "1" { "" } else { "s" }),
                "op" | "step" | "set" | "fs" | "app" | "ctl" | "bus" | "drive" => value.replace('_', " "),
                "cache" => if value == "wb" { "write-back" } else { "write-through" }.into(),
                "cache_mib" => format!("{value} MiB of cache"),
                "zone" => if value == "32g" { "first 32 GB" } else { "whole array" }.into(),
                "cyc" => format!("cycle {value}"),
                other => format!("{other} {value}"),
            })
        })
        .collect();
    words.join(", ")
}
