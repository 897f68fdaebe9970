//! Lines of results: one for each subject, over one axis of the cells.

use super::super::data::{AbsentPoint, Axis, Guide, GuideKind, Level, Lines, Series, Subject};
use super::bed::Ceiling;
use super::figure::{subject, Figure};
use super::Trial;
use crate::cell::{CellSpec, Direction};
use std::collections::BTreeMap;

/// Trials in groups of equal keys, in the order of first appearance.
pub fn grouped<'a, K: PartialEq>(all: &[&'a Trial], key: impl Fn(&CellSpec) -> K) -> Vec<(K, Vec<&'a Trial>)> {
    let mut groups: Vec<(K, Vec<&Trial>)> = Vec::new();
    for &trial in all {
        let key = key(&trial.spec);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(trial),
            None => groups.push((key, vec![trial])),
        }
    }
    groups
}

/// Lines over the place that `place` gives; cells without a place are left out, subjects without a result too.
pub fn lines(all: &[&Trial], x: Axis, place: impl Fn(&CellSpec) -> Option<f64>, figure: Figure) -> Lines {
    lines_of(all, x, place, figure, subject)
}

/// The same with names for the lines.
pub fn lines_of(
    all: &[&Trial],
    x: Axis,
    place: impl Fn(&CellSpec) -> Option<f64>,
    figure: Figure,
    name: impl Fn(&CellSpec) -> Subject,
) -> Lines {
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
    Lines { x, y: figure.axis(), series, guides: Vec::new() }
}

/// Why trials have no figure.
pub fn reason(trials: &[&Trial]) -> String {
    let absence = trials.iter().find_map(|trial| trial.outcome.absence());
    absence.map_or_else(|| "no requests were counted".into(), |absence| absence.reason.clone())
}

/// What the widest stripe would reach if every drive were as fast as the single one.
pub fn ideal(lines: &Lines) -> Option<Guide> {
    let plain = |one: &&Series| one.subject.variant.is_empty();
    let single = lines.series.iter().filter(plain).find(|one| one.subject.level == Level::Single)?;
    let stripes = lines.series.iter().filter(plain).filter(|one| one.subject.level == Level::Raid0);
    let widest = stripes.max_by_key(|one| one.subject.members)?;
    let members = widest.subject.members;
    let corners = single.points.iter().map(|point| (point.x, point.y * f64::from(members))).collect();
    let label = format!("{members} x single");
    Some(Guide { label, kind: GuideKind::Ideal, subject: Some(widest.subject.clone()), corners })
}

/// What buses and data paths carry in a direction, as guides.
pub fn ceilings(ceilings: &[Ceiling], op: Option<Direction>) -> Vec<Guide> {
    let guide = |ceiling: &Ceiling| {
        let mbps = if op == Some(Direction::Write) { ceiling.write_mbps } else { ceiling.read_mbps };
        let label = format!("{} {:.0} MB/s", ceiling.name, mbps);
        Guide { label, kind: GuideKind::Limit, subject: None, corners: vec![(0.0, mbps)] }
    };
    ceilings.iter().map(guide).collect()
}

/// The axes that a cell names, as words.
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

/// The axes whose values differ between cells, with how many values each has. Repetitions do not count.
pub fn varying(all: &[&Trial]) -> Vec<(String, usize)> {
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

/// The values of some axes of a cell in words: `qd 16, op read`.
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
                "th" => format!("{value} clients"),
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
