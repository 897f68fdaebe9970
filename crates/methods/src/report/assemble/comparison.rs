//! The report of a comparison: two runs of the same cells, and their differences.

use super::super::data::{
    Better, ChartAxis, Fact, FindingKind, ReportCell, ReportFinding, ReportRow, ReportSection, ReportTable, Review,
};
use super::super::format::{change, percent};
use super::super::table::NOISE;
use super::super::{findings, predicted_and_measured};
use super::curve::{axes_words, grouped, lines_of, named_axes, reason, varying};
use super::figure::{subject, title, Figure};
use super::{outstanding_axis, CellTrial};
use crate::cell::CellSpec;
use crate::compare::key;
use std::collections::BTreeSet;

/// The report of a comparison. It has a table for each load with both figures and the change. If the cells vary the
/// queue depth, one chart shows both runs, with the error of the first against the second.
#[must_use]
pub fn comparison(names: (&str, &str), first: &[CellTrial], second: &[CellTrial]) -> Review {
    let (ours, theirs) = (keys(first.iter()), keys(second.iter()));
    let both: Vec<&CellTrial> = first.iter().filter(|one| theirs.contains(&key(&one.spec))).collect();
    let mut review = Review {
        title: format!("{} and {}", names.0, names.1),
        bed: vec![Fact::new("first", names.0), Fact::new("second", names.1)],
        ..Review::default()
    };
    let (mut alike, mut all) = (0_u32, 0_u32);
    for (pattern, trials) in grouped(&both, |spec| spec.pattern.clone()) {
        let figure = Figure::of_pattern(&pattern);
        let mut section = ReportSection { method: title(&pattern), ..ReportSection::default() };
        let axes: Vec<String> = varying(&trials).into_iter().map(|(name, _)| name).collect();
        let (table, changes) = table(names, &trials, second, figure, &axes);
        all += u32::try_from(changes.len()).unwrap_or(u32::MAX);
        alike += u32::try_from(changes.iter().filter(|c| c.abs() <= NOISE).count()).unwrap_or(u32::MAX);
        overlaid(&mut section, names, &trials, second, figure, &axes);
        section.tables.push(table);
        review.sections.push(section);
    }
    let left_out = ours.symmetric_difference(&theirs).count();
    let differ = if alike == 1 { "differs" } else { "differ" };
    review.summary.push(format!("{alike} of {all} results {differ} by at most {}.", percent(NOISE)));
    if left_out > 0 {
        let cells = if left_out == 1 { "1 cell is".into() } else { format!("{left_out} cells are") };
        review.summary.push(format!("{cells} in one of the two only, and left out."));
    }
    findings::explain(&mut review);
    review
}

/// The cells of some trials, without the values in which two compared cells may differ.
fn keys<'a>(trials: impl Iterator<Item = &'a CellTrial>) -> BTreeSet<CellSpec> {
    trials.map(|trial| key(&trial.spec)).collect()
}

/// All trials of a run with the same cell.
fn partners<'a>(trials: &[&CellTrial], run: &'a [CellTrial]) -> Vec<&'a CellTrial> {
    let wanted = keys(trials.iter().copied());
    run.iter().filter(|other| wanted.contains(&key(&other.spec))).collect()
}

fn table(
    names: (&str, &str),
    trials: &[&CellTrial],
    second: &[CellTrial],
    figure: Figure,
    axes: &[String],
) -> (ReportTable, Vec<f64>) {
    let mut changes = Vec::new();
    let mut rows = Vec::new();
    for ((name, words), here) in grouped(trials, |spec| (subject(spec), axes_words(spec, axes))) {
        let there = partners(&here, second);
        let (a, b) = (figure.point(0.0, &here), figure.point(0.0, &there));
        let cell = |trials: &[&CellTrial]| super::shapes::cell(trials, figure);
        let last = match (&a, &b) {
            (Some(a), Some(b)) if a.y > 0.0 => {
                let share = b.y / a.y - 1.0;
                changes.push(share);
                match figure.axis().better {
                    Better::Higher => ReportCell::Change(share * 100.0),
                    _ => ReportCell::Text(change(share * 100.0)),
                }
            }
            _ => ReportCell::NotApplicable(reason(&there)),
        };
        let head = if words.is_empty() { name.to_string() } else { format!("{name}: {words}") };
        rows.push(ReportRow { head, level: Some(name.level), cells: vec![cell(&here), cell(&there), last] });
    }
    let table = ReportTable {
        caption: super::super::line_chart::axis_name(&figure.axis()),
        corner: "cell".into(),
        columns: vec![names.0.into(), names.1.into(), "change".into()],
        rows,
        formula: "change = second / first - 1".into(),
        notes: Vec::new(),
    };
    (table, changes)
}

/// Both runs over the queue depth, in one chart for each combination of the other axes.
fn overlaid(
    section: &mut ReportSection,
    names: (&str, &str),
    trials: &[&CellTrial],
    second: &[CellTrial],
    figure: Figure,
    axes: &[String],
) {
    let Some(axis) = ["qd", "oio"].into_iter().find(|name| axes.iter().any(|known| known == name)) else { return };
    let place = |spec: &CellSpec| named_axes(spec).get(axis).and_then(|value| value.parse().ok());
    let others: Vec<String> = axes.iter().filter(|name| *name != axis).cloned().collect();
    for (words, here) in grouped(trials, |spec| axes_words(spec, &others)) {
        let there = partners(&here, second);
        let x: ChartAxis = outstanding_axis();
        let named = |side: &str| {
            let side = side.to_owned();
            move |spec: &CellSpec| subject(spec).different(&side)
        };
        let (first, second) = (
            lines_of(&here, x.clone(), place, figure, named(names.0)),
            lines_of(&there, x.clone(), place, figure, named(names.1)),
        );
        let shape = |subject: &super::super::data::ReportSubject| (subject.level, subject.members);
        let pairs: Vec<_> = first
            .series
            .iter()
            .filter_map(|one| {
                let other = second.series.iter().find(|other| shape(&other.subject) == shape(&one.subject))?;
                Some((one.clone(), other.clone()))
            })
            .collect();
        if pairs.is_empty() {
            continue;
        }
        let with = if words.is_empty() { String::new() } else { format!(" ({words})") };
        let question = format!("How far is {} from {}{with}?", names.0, names.1);
        let (panel, _, found) = predicted_and_measured::compare(&question, &x, &figure.axis(), names, &pairs);
        section.panels.push(panel);
        section
            .findings
            .extend(found.into_iter().map(|finding| ReportFinding::new(FindingKind::Comparison, finding.text)));
    }
}
