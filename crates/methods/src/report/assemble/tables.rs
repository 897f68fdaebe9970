//! Tables of a method's results: ratios, pairs that should be equal, states of an array.

use super::super::data::{
    Bar, Bars, Chart, ChartAxis, FindingKind, Heading, Point, ReportCache, ReportCell, ReportFinding, ReportRow,
    ReportSection, ReportSubject, ReportTable, Scale, Unit,
};
use super::super::findings;
use super::super::format::{list, percent, percent_range};
use super::super::table::NOISE;
use super::curve::{axes_words, grouped, lines_of, reason, varying};
use super::figure::{subject, title, Figure};
use super::shapes::cell;
use super::{push, push_answered, CellTrial};
use crate::cell::{ArrayState, CacheMode, CellSpec, Cycle, Pattern};

/// The trials whose cells fulfil a condition.
pub fn only<'a>(all: &[&'a CellTrial], wanted: impl Fn(&CellSpec) -> bool) -> Vec<&'a CellTrial> {
    all.iter().copied().filter(|trial| wanted(&trial.spec)).collect()
}

/// Queue depths for which M17 has graphs of both write caches.
const RATIO_DEPTHS: [u32; 3] = [1, 16, 256];

/// M17: write-back divided by write-through in a table for each subject. Graphs show both over the share of reads, one
/// for each of three queue depths.
pub fn ratios(section: &mut ReportSection, all: &[&CellTrial]) {
    let name = |spec: &CellSpec| {
        let is_through = spec.axes.cache == Some(CacheMode::WriteThrough);
        subject(spec).different(if is_through { ReportCache::Through } else { ReportCache::Back }.words())
    };
    for depth in RATIO_DEPTHS {
        let trials = only(all, |spec| spec.axes.qd.unwrap_or(1) == depth);
        let x = ChartAxis::new("reads", Unit::Percent, Scale::Linear);
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
                    (Some(back), Some(through)) if through.y > 0.0 => {
                        let is_unsteady = back.unsteady || through.unsteady;
                        (if is_unsteady { ReportCell::UnsteadyRatio } else { ReportCell::Ratio })(back.y / through.y)
                    }
                    _ => ReportCell::NotApplicable(reason(&here)),
                }
            });
            ReportRow { head: format!("{reads} %"), level: None, cells: cells.collect() }
        });
        let table = ReportTable {
            caption: format!("{name}: requests per second with write-back over write-through"),
            corner: "reads".into(),
            columns: depths.iter().map(|depth| format!("depth {depth}").into()).collect(),
            rows: rows.collect(),
            formula: "ratio = IOPS(write-back) / IOPS(write-through)".into(),
            notes: Vec::new(),
        };
        let has_figures = |row: &ReportRow| {
            row.cells.iter().any(|cell| matches!(cell, ReportCell::Ratio(_) | ReportCell::UnsteadyRatio(_)))
        };
        if table.rows.iter().any(has_figures) {
            section.findings.extend(findings::ratios(&table, &format!("{name}: write-back")));
            section.tables.push(table);
        }
    }
}

/// M15, M16, M18, M30: values that should be equal. Two cycles are shown next to each other; repetitions show their
/// spread. `tell` returns the sentence about the spread.
pub fn pairs(section: &mut ReportSection, all: &[&CellTrial], tell: fn(&Bars) -> String) {
    let cycles = all.iter().any(|trial| trial.spec.axes.cyc.is_some());
    let mut compared = Compared::default();
    for (pattern, trials) in grouped(all, |spec| spec.pattern.clone()) {
        let names: Vec<String> =
            varying(&trials).into_iter().map(|(name, _)| name).filter(|name| name != "cyc").collect();
        for (words, of_kind) in grouped(&trials, |spec| axes_words(spec, &names)) {
            let figure = Figure::of_pattern(&pattern);
            let with = if words.is_empty() { String::new() } else { format!(", {words}") };
            let is_runs = trials.iter().any(|trial| trial.spec.axes.app.is_some());
            let name = if is_runs { test_words(&pattern).into() } else { title(&pattern) };
            let what = format!("{name}{with}");
            if cycles {
                cycle_table(section, &what, &of_kind, figure, &mut compared);
            } else {
                repetitions(section, &what, &of_kind, figure, tell);
            }
        }
    }
    section.findings.extend(compared.once());
    if compared.steady > 0 && section.findings.is_empty() {
        let text = format!("No {}result differs between the cycles by more than {}.", compared.which(), percent(NOISE));
        section.findings.push(ReportFinding::new(FindingKind::Comparison, text));
    }
}

/// The results of two cycles that were compared.
#[derive(Default)]
struct Compared {
    /// Number of pairs that count.
    steady: usize,
    /// Number of pairs of a real target of which one was not steady, and which therefore say nothing.
    unsteady: usize,
    /// Pairs of a real target that differ, but that were measured once: the change, and what changed.
    differing: Vec<(f64, String)>,
}

impl Compared {
    /// The warning about a pair, if the order of the tests is the only explanation of its change.
    fn pair(&mut self, name: &str, (a, b): (&Point, &Point), change: f64, is_real: bool) -> Option<ReportFinding> {
        if is_real && (a.unsteady || b.unsteady) {
            self.unsteady += 1;
            return None;
        }
        self.steady += 1;
        let repeated = a.runs > 1 && b.runs > 1;
        let overlap = a.low <= b.high && b.low <= a.high;
        if change.abs() <= NOISE || (repeated && overlap) {
            return None;
        }
        if is_real && !repeated {
            self.differing.push((change * 100.0, name.into()));
            return None;
        }
        let text = format!(
            "{name} depends on the order of the tests: {} in the second cycle. Something keeps a state.",
            super::super::format::change(change * 100.0)
        );
        Some(ReportFinding::new(FindingKind::Warning, text))
    }

    const fn which(&self) -> &'static str {
        if self.unsteady > 0 {
            "steady "
        } else {
            ""
        }
    }

    /// A real target differs from run to run. If each cell was measured once, no cause can be named.
    fn once(&self) -> Option<ReportFinding> {
        let words = findings::changes(&self.differing)?;
        let (count, which) = (self.differing.len(), self.which());
        let text = format!(
            "{count} of {} {which}results differ between the cycles by more than {}: {words}. Each was measured once, and a real \
             target also differs from run to run: --repeat 3 shows whether the order of the tests is the cause.",
            self.steady,
            percent(NOISE)
        );
        Some(ReportFinding::new(FindingKind::Warning, text))
    }
}

/// M15: repetitions of three tests, with the best of each.
pub fn best_runs(section: &mut ReportSection, all: &[&CellTrial]) {
    pairs(section, all, findings::best_run);
    let tests = grouped(all, |spec| spec.pattern.clone());
    let figures = tests.iter().map(|(pattern, _)| Figure::of_pattern(pattern));
    let figures: Vec<Figure> = figures.collect();
    let best = |figure: Figure, trials: &[&CellTrial]| {
        let point = figure.point(0.0, trials)?;
        Some(if figure.axis().better == super::super::data::Better::Lower { point.low } else { point.high })
    };
    let rows = grouped(all, subject).into_iter().map(|(name, of_array)| {
        let cells = tests.iter().zip(&figures).map(|((pattern, _), figure)| {
            let here = only(&of_array, |spec| spec.pattern == *pattern);
            best(*figure, &here).map_or_else(|| ReportCell::NotApplicable(reason(&here)), ReportCell::Number)
        });
        ReportRow { head: name.to_string(), level: Some(name.level), cells: cells.collect() }
    });
    let table = ReportTable {
        caption: "Best of all runs of each test".into(),
        corner: "array".into(),
        columns: tests
            .iter()
            .zip(&figures)
            .map(|((pattern, _), figure)| heading(test_words(pattern), *figure).into())
            .collect(),
        rows: rows.collect(),
        ..ReportTable::default()
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

fn cycle_table(
    section: &mut ReportSection,
    what: &str,
    trials: &[&CellTrial],
    figure: Figure,
    compared: &mut Compared,
) {
    let mut rows = Vec::new();
    for (name, of_subject) in grouped(trials, subject) {
        let of = |cycle| only(&of_subject, |spec| spec.axes.cyc == Some(cycle));
        let (first, second) = (of(Cycle::First), of(Cycle::Second));
        let (a, b) = (figure.point(0.0, &first), figure.point(0.0, &second));
        let change = match (&a, &b) {
            (Some(a), Some(b)) if a.y > 0.0 => Some(b.y / a.y - 1.0),
            _ => None,
        };
        if let (Some(a), Some(b), Some(change)) = (&a, &b, change) {
            let is_real = of_subject.iter().any(|trial| trial.spec.effort.is_a_time());
            section.findings.extend(compared.pair(&format!("{what}: {name}"), (a, b), change, is_real));
        }
        let last = change.map_or_else(|| ReportCell::NotApplicable(reason(&of_subject)), plain_change);
        let cells = vec![cell(&first, figure), cell(&second, figure), last];
        rows.push(ReportRow { head: name.to_string(), level: Some(name.level), cells });
    }
    section.tables.push(ReportTable {
        caption: heading(what, figure),
        corner: "array".into(),
        columns: vec!["first cycle".into(), "second cycle".into(), "change".into()],
        rows,
        ..ReportTable::default()
    });
}

/// A change that is neither good nor bad.
fn plain_change(change: f64) -> ReportCell {
    ReportCell::Text(super::super::format::change(change * 100.0))
}

fn heading(what: &str, figure: Figure) -> String {
    format!("{what}: {}", super::super::line_chart::axis_name(&figure.axis()))
}

fn repetitions(
    section: &mut ReportSection,
    what: &str,
    trials: &[&CellTrial],
    figure: Figure,
    tell: fn(&Bars) -> String,
) {
    let mut bars = Vec::new();
    let mut rows = Vec::new();
    for (name, of_subject) in grouped(trials, subject) {
        let Some(point) = figure.point(0.0, &of_subject) else { continue };
        let spread = if point.y > 0.0 { (point.high - point.low) / point.y } else { 0.0 };
        let lower = figure.axis().better == super::super::data::Better::Lower;
        let best = if lower { point.low } else { point.high };
        let cells = vec![
            ReportCell::Number(best),
            ReportCell::Number(point.y),
            ReportCell::Number(point.low),
            ReportCell::Number(point.high),
            ReportCell::Text(percent(spread)),
        ];
        rows.push(ReportRow { head: name.to_string(), level: Some(name.level), cells });
        bars.push(Bar { subject: name, value: point });
    }
    let columns = ["best", "median", "lowest", "highest", "spread"].map(Heading::from).into();
    let caption = heading(what, figure);
    if !rows.is_empty() {
        section.tables.push(ReportTable { caption, corner: "array".into(), columns, rows, ..ReportTable::default() });
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
        ArrayState::Changing(to) => format!("changing to {to}"),
    }
}

/// M31: figures by the state of the array, and their share of the healthy figure.
pub fn states(section: &mut ReportSection, all: &[&CellTrial]) {
    let columns: Vec<ArrayState> = grouped(all, |spec| spec.state).into_iter().map(|group| group.0).collect();
    let mut left = StateShares::default();
    for (pattern, trials) in grouped(all, |spec| spec.pattern.clone()) {
        let names: Vec<String> = varying(&trials).into_iter().map(|(name, _)| name).collect();
        let figure = Figure::of_pattern(&pattern);
        for (words, of_kind) in grouped(&trials, |spec| axes_words(spec, &names)) {
            let what = if words.is_empty() { title(&pattern) } else { format!("{}, {words}", title(&pattern)) };
            let rows = state_rows(&of_kind, &columns, figure, &mut left);
            section.tables.push(ReportTable {
                caption: heading(&what, figure),
                corner: "array".into(),
                columns: columns.iter().map(|state| state_words(*state).into()).collect(),
                rows,
                ..ReportTable::default()
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
    section.answer = left.answer();
    for (name, state, low, high) in &left.steady {
        let text = format!("{name}, {state}: {} of the healthy array's speed.", percent_range(*low, *high));
        section.findings.push(ReportFinding::new(FindingKind::Comparison, text));
    }
}

/// The lowest and the highest share of the healthy speed that an array keeps in a state.
type HealthyShare = (ReportSubject, String, f64, f64);

/// What arrays keep, by state. Results that were not steady say nothing.
#[derive(Default)]
struct StateShares {
    /// Shares of which both results were steady.
    steady: Vec<HealthyShare>,
    /// Number of shares with a result that was not steady.
    unsteady: usize,
}

impl StateShares {
    fn note(&mut self, name: &ReportSubject, state: &str, share: f64, unsteady: bool) {
        if !share.is_finite() {
            return;
        }
        if unsteady {
            self.unsteady += 1;
            return;
        }
        match self.steady.iter_mut().find(|(known, of, ..)| known == name && of == state) {
            Some((_, _, low, high)) => (*low, *high) = (low.min(share), high.max(share)),
            None => self.steady.push((name.clone(), state.to_owned(), share, share)),
        }
    }

    /// The lowest and the highest share that any load keeps, by state.
    fn answer(&self) -> String {
        let mut states: Vec<(&str, f64, f64)> = Vec::new();
        for (_, state, low, high) in &self.steady {
            match states.iter_mut().find(|(known, ..)| known == state) {
                Some((_, least, most)) => (*least, *most) = (least.min(*low), most.max(*high)),
                None => states.push((state, *low, *high)),
            }
        }
        let words: Vec<String> =
            states.iter().map(|(state, low, high)| format!("{} with {state}", percent_range(*low, *high))).collect();
        let left_out = match self.unsteady {
            0 if words.is_empty() => return String::new(),
            _ if words.is_empty() => return "No answer: none of this was steady when it was measured.".into(),
            0 => String::new(),
            1 => " Left out: 1 comparison with a result that was not steady.".into(),
            count => format!(" Left out: {count} comparisons with a result that was not steady."),
        };
        let words = list(&words).replace("with rebuilding", "while rebuilding");
        format!("Arrays keep {words}, depending on level and load.{left_out}")
    }
}

fn state_rows(trials: &[&CellTrial], columns: &[ArrayState], figure: Figure, left: &mut StateShares) -> Vec<ReportRow> {
    let lower = figure.axis().better == super::super::data::Better::Lower;
    let mut rows = Vec::new();
    let array = |spec: &CellSpec| subject(&CellSpec { state: ArrayState::Healthy, ..spec.clone() });
    for (name, of_array) in grouped(trials, array) {
        let at = |state: ArrayState| only(&of_array, |spec| spec.state == state);
        let healthy = figure.point(0.0, &at(ArrayState::Healthy));
        let cells = columns.iter().map(|state| {
            let here = at(*state);
            if here.is_empty() {
                return ReportCell::NotApplicable("the level does not survive it".into());
            }
            if let (Some(healthy), Some(point), true) =
                (&healthy, figure.point(0.0, &here), *state != ArrayState::Healthy)
            {
                let share = if lower { healthy.y / point.y } else { point.y / healthy.y };
                left.note(&name, &state_words(*state), share, healthy.unsteady || point.unsteady);
            }
            cell(&here, figure)
        });
        rows.push(ReportRow { head: name.to_string(), level: Some(name.level), cells: cells.collect() });
    }
    rows
}
