//! Tables of a method's results: ratios, pairs that should be equal, states of an array.

use super::super::data::{
    Axis, Bar, Bars, Cell, Chart, Finding, FindingKind, Row, Scale, Section, Subject, Table, Unit,
};
use super::super::findings;
use super::super::format::{list, percent, percent_range};
use super::super::table::NOISE;
use super::curve::{axes_words, grouped, lines_of, reason, varying};
use super::figure::{subject, title, Figure};
use super::shapes::cell;
use super::{push, push_answered, Trial};
use crate::cell::{ArrayState, CacheMode, CellSpec, Cycle, Pattern};

/// The trials whose cells fulfil a condition.
pub fn only<'a>(all: &[&'a Trial], wanted: impl Fn(&CellSpec) -> bool) -> Vec<&'a Trial> {
    all.iter().copied().filter(|trial| wanted(&trial.spec)).collect()
}

/// Queue depths for which M17 has graphs of both write caches.
const RATIO_DEPTHS: [u32; 3] = [1, 16, 256];

/// M17: write-back divided by write-through in a table for each subject. Graphs show both over the share of reads, one
/// for each of three queue depths.
pub fn ratios(section: &mut Section, all: &[&Trial]) {
    let name = |spec: &CellSpec| {
        let mode = if spec.axes.cache == Some(CacheMode::WriteThrough) { "write-through" } else { "write-back" };
        let own = subject(spec);
        let variant = if own.variant.is_empty() { mode.into() } else { format!("{}, {mode}", own.variant) };
        own.variant(variant)
    };
    for depth in RATIO_DEPTHS {
        let trials = only(all, |spec| spec.axes.qd.unwrap_or(1) == depth);
        let x = Axis::new("reads", Unit::Percent, Scale::Linear);
        let drawn = lines_of(&trials, x, |spec| spec.axes.rd.map(f64::from), Figure::Iops, name);
        push(section, format!("How many requests with each write cache, at {depth} outstanding?"), Chart::Lines(drawn));
    }
    for (name, trials) in grouped(all, subject) {
        let depths: Vec<u32> = grouped(&trials, |spec| spec.axes.qd.unwrap_or(1)).into_iter().map(|g| g.0).collect();
        let rows = grouped(&trials, |spec| spec.axes.rd.unwrap_or(0)).into_iter().map(|(reads, of_share)| {
            let cells = depths.iter().map(|depth| {
                let here = only(&of_share, |spec| spec.axes.qd.unwrap_or(1) == *depth);
                let side = |mode| Figure::Iops.point(0.0, &only(&here, |spec| spec.axes.cache == Some(mode)));
                match (side(CacheMode::WriteBack), side(CacheMode::WriteThrough)) {
                    (Some(back), Some(through)) if through.y > 0.0 => Cell::Ratio(back.y / through.y),
                    _ => Cell::NotApplicable(reason(&here)),
                }
            });
            Row { head: format!("{reads} %"), level: None, cells: cells.collect() }
        });
        let table = Table {
            caption: format!("{name}: requests per second with write-back over write-through"),
            corner: "reads".into(),
            columns: depths.iter().map(|depth| format!("depth {depth}")).collect(),
            rows: rows.collect(),
            formula: "ratio = IOPS(write-back) / IOPS(write-through)".into(),
            notes: Vec::new(),
        };
        let has_figures = |row: &Row| row.cells.iter().any(|cell| matches!(cell, Cell::Ratio(_)));
        if table.rows.iter().any(has_figures) {
            section.findings.extend(findings::ratios(&table, &format!("{name}: write-back")));
            section.tables.push(table);
        }
    }
}

/// M15, M16, M18, M30: values that should be equal. Two cycles are shown next to each other; repetitions show their
/// spread. `tell` returns the sentence about the spread.
pub fn pairs(section: &mut Section, all: &[&Trial], tell: fn(&Bars) -> String) {
    let cycles = all.iter().any(|trial| trial.spec.axes.cyc.is_some());
    for (pattern, trials) in grouped(all, |spec| spec.pattern.clone()) {
        let names: Vec<String> =
            varying(&trials).into_iter().map(|(name, _)| name).filter(|name| name != "cyc").collect();
        for (words, of_kind) in grouped(&trials, |spec| axes_words(spec, &names)) {
            let figure = Figure::of_pattern(&pattern);
            let with = if words.is_empty() { String::new() } else { format!(", {words}") };
            let what = format!("{}{with}", title(&pattern));
            if cycles {
                cycle_table(section, &what, &of_kind, figure);
            } else {
                repetitions(section, &what, &of_kind, figure, tell);
            }
        }
    }
    if cycles && !section.tables.is_empty() && section.findings.is_empty() {
        let text = format!("No result differs between the cycles by more than {}.", percent(NOISE));
        section.findings.push(Finding::new(FindingKind::Comparison, text));
    }
}

/// M15: repetitions of three tests, with the best of each.
pub fn best_runs(section: &mut Section, all: &[&Trial]) {
    pairs(section, all, findings::best_run);
    let tests = grouped(all, |spec| spec.pattern.clone());
    let figures = tests.iter().map(|(pattern, _)| Figure::of_pattern(pattern));
    let figures: Vec<Figure> = figures.collect();
    let best = |figure: Figure, trials: &[&Trial]| {
        let point = figure.point(0.0, trials)?;
        Some(if figure.axis().better == super::super::data::Better::Lower { point.low } else { point.high })
    };
    let rows = grouped(all, subject).into_iter().map(|(name, of_array)| {
        let cells = tests.iter().zip(&figures).map(|((pattern, _), figure)| {
            let here = only(&of_array, |spec| spec.pattern == *pattern);
            best(*figure, &here).map_or_else(|| Cell::NotApplicable(reason(&here)), Cell::Number)
        });
        Row { head: name.to_string(), level: Some(name.level), cells: cells.collect() }
    });
    let table = Table {
        caption: "Best of all runs of each test".into(),
        corner: "array".into(),
        columns: tests
            .iter()
            .zip(&figures)
            .map(|((pattern, _), figure)| heading(test_words(pattern), *figure))
            .collect(),
        rows: rows.collect(),
        ..Table::default()
    };
    if !table.rows.is_empty() {
        section.tables.insert(0, table);
    }
}

/// A test of M15.
fn test_words(pattern: &Pattern) -> &'static str {
    match pattern {
        Pattern::Application => "WinMark 99",
        Pattern::TransferGraph => "transfer graph, mean",
        _ => "access time",
    }
}

fn cycle_table(section: &mut Section, what: &str, trials: &[&Trial], figure: Figure) {
    let mut rows = Vec::new();
    for (name, of_subject) in grouped(trials, subject) {
        let of = |cycle| only(&of_subject, |spec| spec.axes.cyc == Some(cycle));
        let (first, second) = (of(Cycle::First), of(Cycle::Second));
        let (a, b) = (figure.point(0.0, &first), figure.point(0.0, &second));
        let change = match (&a, &b) {
            (Some(a), Some(b)) if a.y > 0.0 => Some(b.y / a.y - 1.0),
            _ => None,
        };
        if let Some(change) = change.filter(|change| change.abs() > NOISE) {
            let text = format!(
                "{what}: {name} depends on the order of the tests: {} in the second cycle. Something keeps a state.",
                super::super::format::change(change * 100.0)
            );
            section.findings.push(Finding::new(FindingKind::Warning, text));
        }
        let last = change.map_or_else(|| Cell::NotApplicable(reason(&of_subject)), plain_change);
        let cells = vec![cell(&first, figure), cell(&second, figure), last];
        rows.push(Row { head: name.to_string(), level: Some(name.level), cells });
    }
    section.tables.push(Table {
        caption: heading(what, figure),
        corner: "array".into(),
        columns: vec!["first cycle".into(), "second cycle".into(), "change".into()],
        rows,
        ..Table::default()
    });
}

/// A change that is neither good nor bad.
fn plain_change(change: f64) -> Cell {
    Cell::Text(super::super::format::change(change * 100.0))
}

fn heading(what: &str, figure: Figure) -> String {
    format!("{what}: {}", super::super::lines::axis_name(&figure.axis()))
}

fn repetitions(section: &mut Section, what: &str, trials: &[&Trial], figure: Figure, tell: fn(&Bars) -> String) {
    let mut bars = Vec::new();
    let mut rows = Vec::new();
    for (name, of_subject) in grouped(trials, subject) {
        let Some(point) = figure.point(0.0, &of_subject) else { continue };
        let spread = if point.y > 0.0 { (point.high - point.low) / point.y } else { 0.0 };
        let lower = figure.axis().better == super::super::data::Better::Lower;
        let best = if lower { point.low } else { point.high };
        let cells = vec![
            Cell::Number(best),
            Cell::Number(point.y),
            Cell::Number(point.low),
            Cell::Number(point.high),
            Cell::Text(percent(spread)),
        ];
        rows.push(Row { head: name.to_string(), level: Some(name.level), cells });
        bars.push(Bar { subject: name, value: point });
    }
    let columns = ["best", "median", "lowest", "highest", "spread"].map(String::from).into();
    let caption = heading(what, figure);
    if !rows.is_empty() {
        section.tables.push(Table { caption, corner: "array".into(), columns, rows, ..Table::default() });
    }
    let bars = Bars { value: figure.axis(), bars, formula: String::new() };
    push_answered(section, format!("How far apart are the repetitions: {what}?"), tell(&bars), Chart::Bars(bars));
}

/// A state as the heading of a column.
fn state_words(state: ArrayState) -> String {
    match state {
        ArrayState::Healthy => "healthy".into(),
        ArrayState::Degraded(missing) => format!("{missing} missing"),
        ArrayState::Rebuilding => "rebuilding".into(),
    }
}

/// M31: figures by the state of the array, and their share of the healthy figure.
pub fn states(section: &mut Section, all: &[&Trial]) {
    let columns: Vec<ArrayState> = grouped(all, |spec| spec.state).into_iter().map(|group| group.0).collect();
    let mut left: Vec<(Subject, String, f64, f64)> = Vec::new();
    for (pattern, trials) in grouped(all, |spec| spec.pattern.clone()) {
        let names: Vec<String> = varying(&trials).into_iter().map(|(name, _)| name).collect();
        let figure = Figure::of_pattern(&pattern);
        for (words, of_kind) in grouped(&trials, |spec| axes_words(spec, &names)) {
            let what = if words.is_empty() { title(&pattern) } else { format!("{}, {words}", title(&pattern)) };
            let rows = state_rows(&of_kind, &columns, figure, &mut left);
            section.tables.push(Table {
                caption: heading(&what, figure),
                corner: "array".into(),
                columns: columns.iter().map(|state| state_words(*state)).collect(),
                rows,
                ..Table::default()
            });
            let redundant = only(&of_kind, |spec| spec.state != ArrayState::Healthy);
            let kept = only(&of_kind, |spec| redundant.iter().any(|other| other.spec.subject == spec.subject));
            // If there is a mixed load, its chart is the most informative one.
            let mixed = of_kind.iter().any(|trial| trial.spec.axes.rd.is_some_and(|reads| reads > 0 && reads < 100));
            if mixed && section.panels.is_empty() {
                let mut bars = Vec::new();
                for (name, of_subject) in grouped(&kept, subject) {
                    bars.extend(figure.point(0.0, &of_subject).map(|value| Bar { subject: name, value }));
                }
                let chart = Chart::Bars(Bars { value: figure.axis(), bars, formula: String::new() });
                push(section, format!("How much speed is left: {what}?"), chart);
            }
        }
    }
    section.answer = answer(&left);
    for (name, state, low, high) in left {
        let text = format!("{name}, {state}: {} of the healthy array's speed.", percent_range(low, high));
        section.findings.push(Finding::new(FindingKind::Comparison, text));
    }
}

/// The lowest and the highest share that any load keeps, by state.
fn answer(left: &[(Subject, String, f64, f64)]) -> String {
    let mut states: Vec<(&str, f64, f64)> = Vec::new();
    for (_, state, low, high) in left {
        match states.iter_mut().find(|(known, ..)| known == state) {
            Some((_, least, most)) => (*least, *most) = (least.min(*low), most.max(*high)),
            None => states.push((state, *low, *high)),
        }
    }
    let words: Vec<String> =
        states.iter().map(|(state, low, high)| format!("{} with {state}", percent_range(*low, *high))).collect();
    if words.is_empty() {
        return String::new();
    }
    let words = list(&words).replace("with rebuilding", "while rebuilding");
    format!("Arrays keep {words}, depending on level and load.")
}

fn state_rows(
    trials: &[&Trial],
    columns: &[ArrayState],
    figure: Figure,
    left: &mut Vec<(Subject, String, f64, f64)>,
) -> Vec<Row> {
    let lower = figure.axis().better == super::super::data::Better::Lower;
    let mut rows = Vec::new();
    for (array, of_array) in grouped(trials, |spec| spec.subject) {
        let name = subject(&CellSpec::new("", array, of_array[0].spec.pattern.clone()));
        let at = |state: ArrayState| only(&of_array, |spec| spec.state == state);
        let healthy = figure.point(0.0, &at(ArrayState::Healthy)).map(|point| point.y);
        let cells = columns.iter().map(|state| {
            let here = at(*state);
            if here.is_empty() {
                return Cell::NotApplicable("the level does not survive it".into());
            }
            if let (Some(healthy), Some(point), true) =
                (healthy, figure.point(0.0, &here), *state != ArrayState::Healthy)
            {
                let share = if lower { healthy / point.y } else { point.y / healthy };
                note(left, &name, &state_words(*state), share);
            }
            cell(&here, figure)
        });
        rows.push(Row { head: name.to_string(), level: Some(name.level), cells: cells.collect() });
    }
    rows
}

/// Notes the lowest and the highest share in a state.
fn note(left: &mut Vec<(Subject, String, f64, f64)>, name: &Subject, state: &str, share: f64) {
    if !share.is_finite() {
        return;
    }
    match left.iter_mut().find(|(known, of, ..)| known == name && of == state) {
        Some((_, _, low, high)) => (*low, *high) = (low.min(share), high.max(share)),
        None => left.push((name.clone(), state.to_owned(), share, share)),
    }
}
