//! Tables: the numbers of every chart, shown next to it, and tables without a chart.
//!
//! For a cell without a result, a note below the table gives the reason.

use super::bar_chart::sorted;
use super::data::{
    AbsentPoint, Bars, Heading, Heat, LineChart, Point, ReportCell, ReportRow, ReportTable, Series, Unit,
};
use super::format::{change, drawable, number, ratio, tick, MISSING};
use super::line_chart::spread;
use super::markup::Markup;
use super::style::patch;

/// Maximum number of rows that are all shown in a table next to a chart.
const ROWS_MAX: usize = 24;
/// Number of rows shown of a longer table, evenly spaced.
const ROWS_PICKED: usize = 13;
/// Maximum length of a name that is not broken over two lines.
const TOGETHER_MAX: usize = 12;
/// If runs differ by more than this share of the median, a note mentions the noise.
pub const NOISE: f64 = 0.05;
/// The mark of a result that was not steady.
const DAGGER: &str = "\u{2020}";
/// The note below a table with such a result.
pub const UNSTEADY: &str = "not steady when it was measured: the true figure may be another";
/// Ratios at which the second and third step of the colours begin. For ratios below 1 their inverse applies.
const STEPS: [f64; 2] = [1.5, 3.0];

/// The numbers of a line chart.
#[must_use]
pub fn of_lines(lines: &LineChart) -> ReportTable {
    let mut places: Vec<f64> = Vec::new();
    for series in &lines.series {
        places.extend(series.points.iter().map(|point| point.x).filter(|&x| drawable(x, lines.x.scale)));
        places.extend(series.absent.iter().map(|absent| absent.x).filter(|&x| drawable(x, lines.x.scale)));
    }
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut notes = Vec::new();
    let rows = picked(places.len());
    if rows.len() < places.len() {
        notes.push(format!("{} of {} places.", rows.len(), places.len()));
    }
    let rows = rows.into_iter().map(|index| {
        let x = places[index];
        ReportRow { head: tick(&lines.x, x), level: None, cells: lines.series.iter().map(|one| cell(one, x)).collect() }
    });
    ReportTable {
        caption: heading(&lines.y.name, &lines.y.unit).to_string(),
        corner: heading(&lines.x.name, &lines.x.unit).to_string(),
        columns: lines.series.iter().map(|series| Heading::of(&series.subject)).collect(),
        rows: rows.collect(),
        formula: String::new(),
        notes,
    }
}

/// Indices of the rows that are shown: all of few rows, or [`ROWS_PICKED`] of many, evenly spaced, including the first
/// and the last.
fn picked(count: usize) -> Vec<usize> {
    if count <= ROWS_MAX {
        return (0..count).collect();
    }
    (0..ROWS_PICKED).map(|row| row * (count - 1) / (ROWS_PICKED - 1)).collect()
}

fn cell(series: &Series, x: f64) -> ReportCell {
    let found: Option<&Point> = series.points.iter().find(|point| point.x == x);
    let absent: Option<&AbsentPoint> = series.absent.iter().find(|absent| absent.x == x);
    match (found, absent) {
        (Some(point), _) => of_point(point),
        (None, Some(absent)) => ReportCell::NotApplicable(absent.reason.clone()),
        // Only other lines have this position, so nothing is missing here.
        (None, None) => ReportCell::Text(String::new()),
    }
}

/// One result as a cell.
#[must_use]
pub fn of_point(point: &Point) -> ReportCell {
    let (low, high) = spread(point);
    if point.unsteady {
        ReportCell::Unsteady { value: point.y, low, high }
    } else if low < high {
        ReportCell::Spread { value: point.y, low, high }
    } else {
        ReportCell::Number(point.y)
    }
}

/// A name with its unit after it.
fn heading(name: &str, unit: &Unit) -> Heading {
    let unit = match unit {
        Unit::None | Unit::Bytes => "",
        Unit::Percent => "%",
        Unit::Named(unit) => unit,
    };
    Heading { name: name.to_owned(), more: unit.to_owned() }
}

/// The numbers of a bar chart.
#[must_use]
pub fn of_bars(bars: &Bars) -> ReportTable {
    let (order, _) = sorted(bars);
    let best = order.first().map_or(f64::NAN, |bar| bar.value.y);
    let rows = order.into_iter().map(|bar| {
        let share = if best == 0.0 { f64::NAN } else { bar.value.y / best * 100.0 };
        let share = match share.is_finite() {
            // What was not steady has no place in the order.
            _ if bar.value.unsteady => String::new(),
            true => format!("{} %", number(share)),
            false => MISSING.into(),
        };
        let cells = vec![of_point(&bar.value), ReportCell::Text(share)];
        ReportRow { head: bar.subject.to_string(), level: Some(bar.subject.level), cells }
    });
    ReportTable {
        caption: heading(&bars.value.name, &bars.value.unit).to_string(),
        corner: "array".into(),
        columns: vec![heading(&bars.value.name, &bars.value.unit), "of the first".into()],
        rows: rows.collect(),
        formula: bars.formula.clone(),
        notes: Vec::new(),
    }
}

/// The numbers of a heat map, the highest row first as in the map.
#[must_use]
pub fn of_heat(heat: &Heat) -> ReportTable {
    let share = |row: usize, column: usize| heat.shares.get(row).and_then(|row| row.get(column)).copied();
    let rows = heat.rows.iter().enumerate().rev().map(|(row, head)| {
        let cells = (0..heat.columns.len()).map(|column| share(row, column).map_or(missing(), ReportCell::Number));
        ReportRow { head: head.clone(), level: None, cells: cells.collect() }
    });
    ReportTable {
        caption: format!("share of requests in %, by {} (down) and {} (across)", heat.y, heat.x),
        corner: heat.y.clone(),
        columns: heat.columns.clone(),
        rows: rows.collect(),
        ..ReportTable::default()
    }
}

fn missing() -> ReportCell {
    ReportCell::NotApplicable("not measured".into())
}

/// A cell as text, for a terminal and for the start of a cell on the page.
#[must_use]
pub fn words(cell: &ReportCell) -> String {
    match cell {
        ReportCell::Number(value) | ReportCell::Spread { value, .. } | ReportCell::Unsteady { value, .. } => {
            number(*value)
        }
        ReportCell::Ratio(value) | ReportCell::UnsteadyRatio(value) => ratio(*value),
        ReportCell::Change(value) => change(*value),
        ReportCell::Text(text) => text.clone(),
        ReportCell::NotApplicable(_) => MISSING.into(),
    }
}

/// Do the runs of this cell differ enough to be mentioned?
#[must_use]
pub fn noisy(value: f64, low: f64, high: f64) -> bool {
    (high - low).abs() > NOISE * value.abs()
}

/// A ratio at its displayed precision, and the step of its colour: 1 to 3 above 1, -1 to -3 below 1, 0 if the ratio is
/// shown as 1.
#[must_use]
pub fn step(value: f64) -> i32 {
    if !value.is_finite() || ratio(value) == "1.0" {
        return 0;
    }
    let size = if value > 1.0 { value } else { 1.0 / value.max(1e-9) };
    let step = 1 + i32::from(size >= STEPS[0]) + i32::from(size >= STEPS[1]);
    if value > 1.0 {
        step
    } else {
        -step
    }
}

/// A table as markup.
pub fn draw(m: &mut Markup, table: &ReportTable) {
    let reasons = reasons(table);
    let label = if table.caption.is_empty() { "Table" } else { table.caption.as_str() };
    m.inside("div", &[("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", label)], |m| {
        m.inside("table", &[], |m| {
            if !table.caption.is_empty() {
                m.text("caption", &[], &table.caption);
            }
            head(m, table);
            m.inside("tbody", &[], |m| {
                for row in &table.rows {
                    m.inside("tr", &[], |m| draw_row(m, row, table.columns.len(), &reasons));
                }
            });
        });
    });
    if !table.formula.is_empty() {
        m.text("p", &[("class", "formula")], &table.formula);
    }
    for (number, reason) in (1..).zip(&reasons) {
        m.text("p", &[("class", "note")], &format!("{MISSING} {number}: {reason}"));
    }
    if has_unsteady(table) {
        m.text("p", &[("class", "note")], &format!("{DAGGER} {UNSTEADY}"));
    }
    for note in &table.notes {
        m.text("p", &[("class", "note")], note);
    }
}

/// Does the table have a result that was not steady?
#[must_use]
pub fn has_unsteady(table: &ReportTable) -> bool {
    table
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .any(|cell| matches!(cell, ReportCell::Unsteady { .. } | ReportCell::UnsteadyRatio(_)))
}

pub(super) fn head(m: &mut Markup, table: &ReportTable) {
    m.inside("thead", &[], |m| {
        m.inside("tr", &[], |m| {
            if table.corner.is_empty() {
                m.text("td", &[], "");
            } else {
                m.text("th", &[("scope", "col")], &table.corner);
            }
            for column in &table.columns {
                m.text("th", &[("scope", "col")], &together(column));
            }
        });
    });
}

/// A heading whose name is not broken over two lines if it is short, as `RAID 5 x4` is.
fn together(heading: &Heading) -> String {
    if heading.name.chars().count() > TOGETHER_MAX {
        return heading.to_string();
    }
    Heading { name: heading.name.replace(' ', "\u{a0}"), more: heading.more.clone() }.to_string()
}

fn draw_row(m: &mut Markup, row: &ReportRow, columns: usize, reasons: &[String]) {
    m.inside("th", &[("scope", "row")], |m| {
        if let Some(level) = row.level {
            patch(m, level);
        }
        m.words(&row.head);
    });
    for index in 0..columns {
        match row.cells.get(index) {
            Some(cell) => draw_cell(m, cell, reasons),
            None => m.text("td", &[("class", "none")], MISSING),
        }
    }
}

fn draw_cell(m: &mut Markup, cell: &ReportCell, reasons: &[String]) {
    let text = words(cell);
    match cell {
        ReportCell::Number(_) => m.text("td", &[], &text),
        ReportCell::Spread { value, low, high } => draw_spread(m, &text, (*value, *low, *high)),
        ReportCell::Unsteady { value, low, high } => {
            let text = format!("{text}{DAGGER}");
            if low < high {
                draw_spread(m, &text, (*value, *low, *high));
            } else {
                m.text("td", &[], &text);
            }
        }
        ReportCell::Ratio(value) => draw_step(m, &text, step(*value)),
        ReportCell::UnsteadyRatio(value) => draw_step(m, &format!("{text}{DAGGER}"), step(*value)),
        ReportCell::Change(value) => draw_step(m, &text, if text == "0.0 %" { 0 } else { step(1.0 + value / 100.0) }),
        ReportCell::Text(_) => {
            let digits = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-'));
            m.text("td", &[("class", if digits { "" } else { "words" })], &text);
        }
        ReportCell::NotApplicable(reason) => {
            let number = reasons.iter().position(|known| known == reason).map_or(0, |index| index + 1);
            m.text("td", &[("class", "none"), ("title", reason)], &format!("{MISSING} {number}"));
        }
    }
}

/// A ratio or a change with the colour and the triangle of its step.
fn draw_step(m: &mut Markup, text: &str, step: i32) {
    match step {
        0 => m.text("td", &[], text),
        1.. => m.text("td", &[("class", &format!("up{step}"))], &format!("\u{25b2} {text}")),
        _ => m.text("td", &[("class", &format!("down{}", -step))], &format!("\u{25bc} {text}")),
    }
}

/// A number with its lowest and highest run below it.
fn draw_spread(m: &mut Markup, text: &str, (value, low, high): (f64, f64, f64)) {
    let noise = noisy(value, low, high);
    m.inside("td", &[("class", if noise { "noisy" } else { "" })], |m| {
        m.words(text);
        let dash = if low < 0.0 { " to " } else { "\u{2013}" };
        m.text("small", &[], &format!("{}{dash}{}", number(low), number(high)));
        if noise {
            m.text("small", &[], "noisy");
        }
    });
}

/// The different reasons of cells without a result, in the order of appearance.
#[must_use]
pub fn reasons(table: &ReportTable) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for row in &table.rows {
        for cell in row.cells.iter().take(table.columns.len()) {
            match cell {
                ReportCell::NotApplicable(reason) if !found.contains(reason) => found.push(reason.clone()),
                _ => (),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_coloured_by_their_displayed_value() {
        assert_eq!([1.04, 0.951, 1.06, 0.94].map(step), [0, 0, 1, -1]);
        assert_eq!([1.5, 3.0, 6.0, 0.66, 0.3].map(step), [2, 3, 3, -2, -3]);
        assert_eq!([f64::NAN, f64::INFINITY, 0.0].map(step), [0, 0, -3]);
    }

    #[test]
    fn long_tables_keep_their_ends_and_equal_steps() {
        assert_eq!(picked(3), [0, 1, 2]);
        let rows = picked(1000);
        assert_eq!((rows.len(), rows[0], rows[ROWS_PICKED - 1]), (ROWS_PICKED, 0, 999));
        assert!(rows.windows(2).all(|pair| (83..=84).contains(&(pair[1] - pair[0]))));
    }
}
