//! Cells sorted into lines and bars: which subject, where on the axis, how much.

use super::CellOutcome;
use crate::cell::{ArrayState, CellResult, CellSpec, Direction, Subject};
use crate::report::data::{
    AbsentPoint, Axis, Bar, Bars, Better, Chart, Evidence, Level, Lines, Load, Mark, Panel, Part, Point, Rate, Scale,
    Series, Subject as Shown, Unit,
};
use std::collections::BTreeMap;

/// Reasons shown beside a result, the most frequent ones.
const REASONS_MAX: usize = 4;

/// A subject as the report knows it.
pub(super) fn shown(cell: &CellSpec) -> Shown {
    let shown = match cell.subject {
        Subject::Array { level, members } => {
            let level = Level::ALL.into_iter().find(|known| known.key() == level.word());
            Shown::new(level.unwrap_or(Level::Single), members)
        }
        Subject::Single => Shown::new(Level::Single, 1),
        other => Shown::new(Level::Single, 1).variant(other.title()),
    };
    match cell.state {
        ArrayState::Healthy => shown,
        state => shown.variant(state_words(state)),
    }
}

/// A state in words.
pub(super) fn state_words(state: ArrayState) -> String {
    match state {
        ArrayState::Healthy => "healthy".into(),
        ArrayState::Degraded(1) => "1 missing".into(),
        ArrayState::Degraded(missing) => format!("{missing} missing"),
        ArrayState::Rebuilding => "rebuilding".into(),
    }
}

/// What the machine did while a result was taken.
pub(super) fn evidence(result: &CellResult) -> Option<Evidence> {
    if result.components.is_empty() {
        return None;
    }
    let part = |name: &str| match name {
        "members" => Part::Drives,
        "controller" => Part::ControllerCpu,
        "xor" => Part::Parity,
        "host" => Part::HostCpu,
        "channel" => Part::Bus("the shared channel".into()),
        _ => Part::Bus("the host bus".into()),
    };
    let mut loads: Vec<Load> =
        result.components.iter().map(|known| Load { part: part(&known.name), busy: known.busy }).collect();
    let busiest = result.members.iter().map(|member| member.busy).fold(0.0, f64::max);
    if let Some(drives) = loads.iter_mut().find(|load| load.part == Part::Drives) {
        drives.busy = busiest;
    }
    let mut reasons: Vec<&(String, u64)> = result.reasons.iter().collect();
    reasons.sort_by(|one, two| two.1.cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
    let requests = result.requests.max(1) as f64;
    let rates = reasons.into_iter().take(REASONS_MAX);
    let rates = rates.map(|(name, count)| Rate { what: spaced(name), per_request: *count as f64 / requests }).collect();
    Some(Evidence { loads, rates })
}

/// `ReadModifyWriteFewer` as `read modify write fewer`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// Axes by what they show.
pub(super) mod axis {
    use super::{Axis, Better, Scale, Unit};

    pub fn iops() -> Axis {
        Axis::new("throughput", Unit::named("IOPS"), Scale::Linear).better(Better::Higher)
    }
    pub fn mbps() -> Axis {
        Axis::new("rate", Unit::named("MB/s"), Scale::Linear).better(Better::Higher)
    }
    pub fn outstanding() -> Axis {
        Axis::new("outstanding", Unit::None, Scale::Log2)
    }
    pub fn sizes() -> Axis {
        Axis::new("requests", Unit::Bytes, Scale::Log2)
    }
    pub fn reads() -> Axis {
        Axis::new("reads", Unit::Percent, Scale::Linear)
    }
}

/// Lines of a panel: cells that `belongs` takes, a line for each subject.
pub(super) fn lines(
    cells: &[CellOutcome],
    axes: (Axis, Axis),
    belongs: impl Fn(&CellSpec) -> bool,
    x: impl Fn(&CellSpec) -> f64,
    y: impl Fn(&CellResult) -> f64,
) -> Option<Chart> {
    let mut series: Vec<(Subject, ArrayState, Series)> = Vec::new();
    for CellOutcome { cell, outcome } in cells.iter().filter(|known| belongs(&known.cell)) {
        let key = (cell.subject, cell.state);
        let place = match series.iter().position(|known| (known.0, known.1) == key) {
            Some(place) => place,
            None => {
                let line = Series { subject: shown(cell), mark: Mark::Line, points: Vec::new(), absent: Vec::new() };
                series.push((key.0, key.1, line));
                series.len() - 1
            }
        };
        let line = &mut series[place].2;
        match (outcome.result(), outcome.absence()) {
            (Some(result), _) => {
                let point = Point::exact(x(cell), y(result));
                line.points.push(match evidence(result) {
                    Some(evidence) => point.with(evidence),
                    None => point,
                });
            }
            (None, Some(absence)) => {
                line.absent.push(AbsentPoint { x: x(cell), reason: absence.reason.clone() });
            }
            (None, None) => {}
        }
    }
    let mut series: Vec<Series> = series.into_iter().map(|(_, _, line)| line).collect();
    series.retain(|line| !line.points.is_empty());
    for line in &mut series {
        line.points.sort_by(|one, two| one.x.total_cmp(&two.x));
    }
    if series.is_empty() {
        return None;
    }
    Some(Chart::Lines(Lines { x: axes.0, y: axes.1, series, guides: Vec::new() }))
}

/// Bars of a panel.
pub(super) fn bars(
    cells: &[CellOutcome],
    value: Axis,
    formula: &str,
    belongs: impl Fn(&CellSpec) -> bool,
    y: impl Fn(&CellResult) -> f64,
) -> Option<Chart> {
    let found = cells.iter().filter(|known| belongs(&known.cell));
    let bars: Vec<Bar> = found
        .filter_map(|known| {
            let result = known.outcome.result()?;
            Some(Bar { subject: shown(&known.cell), value: Point::exact(0.0, y(result)) })
        })
        .collect();
    (!bars.is_empty()).then(|| Chart::Bars(Bars { value, bars, formula: formula.into() }))
}

/// Values of an axis that occur among cells, in order.
pub(super) fn values<T: Ord>(cells: &[CellOutcome], of: impl Fn(&CellSpec) -> Option<T>) -> Vec<T> {
    let mut found: Vec<T> = cells.iter().filter_map(|known| of(&known.cell)).collect();
    found.sort();
    found.dedup();
    found
}

/// Subjects of a list in their order.
pub(super) fn subjects(cells: &[CellOutcome]) -> Vec<Subject> {
    let mut found = Vec::new();
    for known in cells {
        if !found.contains(&known.cell.subject) {
            found.push(known.cell.subject);
        }
    }
    found
}

/// A panel, if there is anything to draw.
pub(super) fn panel(question: String, group: &str, chart: Option<Chart>) -> Option<Panel> {
    chart.map(|chart| Panel { group: group.into(), ..Panel::new(question, chart) })
}

/// Both ways, in the order of showing.
pub(super) const WAYS: [(Direction, &str); 2] = [(Direction::Read, "reading"), (Direction::Write, "writing")];

/// Requests each second by depth, of the cells that `belongs` takes.
pub(super) fn by_depth(cells: &[CellOutcome], belongs: impl Fn(&CellSpec) -> bool) -> BTreeMap<u32, f64> {
    let found = cells.iter().filter(|known| belongs(&known.cell));
    found.filter_map(|known| Some((known.cell.axes.qd?, known.outcome.result()?.iops))).collect()
}
