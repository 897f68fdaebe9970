//! A report for a terminal: sentences, tables and bars in plain characters.
//!
//! Control characters of names and reasons never reach the terminal.

use super::bar_chart::sorted;
use super::data::{Bar, Chart, FindingKind, Panel, ReportCell, ReportFinding, ReportSection, ReportTable, Review};
use super::findings;
use super::format::number;
use super::table;

/// Minimum length of a line, even on a narrower terminal.
const WIDTH_MIN: usize = 40;
/// Maximum length of a line, even on a wider terminal, because longer lines are difficult to read.
const WIDTH_MAX: usize = 200;
/// Maximum number of characters in a bar.
const BAR_MAX: usize = 40;
/// Number of blanks between columns.
const GAP: usize = 2;
/// Maximum number of characters in a cell or heading; more are cut.
const CELL_MAX: usize = 48;

/// The whole report in lines of at most `width` characters.
#[must_use]
pub fn render(review: &Review, width: usize) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    paragraph(&mut out, &review.title, width, "");
    let underline = clean(&review.title).chars().count().min(width);
    out.push_str(&"=".repeat(underline));
    out.push('\n');
    for line in &review.brief {
        paragraph(&mut out, line, width, "- ");
    }
    if let Some(standings) = &review.standings {
        out.push('\n');
        out.push_str(&table(standings, width));
    }
    for verdict in &review.verdicts {
        out.push('\n');
        paragraph(&mut out, &format!("{}: {}", verdict.name, verdict.value), width, "");
    }
    if !review.brief.is_empty() {
        out.push('\n');
    }
    for line in &review.summary {
        paragraph(&mut out, line, width, "- ");
    }
    for section in &review.sections {
        draw_section(&mut out, section, width);
    }
    if !review.bed.is_empty() {
        out.push('\n');
        for fact in &review.bed {
            paragraph(&mut out, &format!("{}: {}", fact.name, fact.value), width, "");
        }
    }
    out
}

fn draw_section(out: &mut String, section: &ReportSection, width: usize) {
    out.push('\n');
    let head = if section.question.is_empty() { &section.method } else { &section.question };
    paragraph(out, head, width, "");
    out.push_str(&"-".repeat(clean(head).chars().count().min(width)));
    out.push('\n');
    if !section.answer.is_empty() {
        paragraph(out, &section.answer, width, "");
    }
    draw_findings(out, &section.findings, width);
    for panel in &section.panels {
        draw_panel(out, panel, width);
    }
    for one in &section.tables {
        out.push('\n');
        out.push_str(&table(one, width));
    }
    for absent in &section.absent {
        paragraph(out, &format!("not measured: {}: {}", absent.what, absent.reason), width, "");
    }
}

fn draw_findings(out: &mut String, found: &[ReportFinding], width: usize) {
    for finding in found {
        let sign = if finding.kind == FindingKind::Warning { "! " } else { "* " };
        paragraph(out, &finding.text, width, sign);
    }
}

fn draw_panel(out: &mut String, panel: &Panel, width: usize) {
    out.push('\n');
    paragraph(out, &panel.question, width, "");
    let answer = if panel.answer.is_empty() { findings::answer(&panel.chart) } else { panel.answer.clone() };
    if !answer.is_empty() {
        paragraph(out, &answer, width, "");
    }
    draw_findings(out, &panel.findings, width);
    let drawn = match &panel.chart {
        Chart::Lines(lines) => table(&table::of_lines(lines), width),
        Chart::Heat(heat) => table(&table::of_heat(heat), width),
        Chart::Bars(all) => {
            let (order, rule) = sorted(all);
            let sign = |unsteady| if unsteady { "! " } else { "" };
            let name = |bar: &Bar| format!("{}{}", sign(bar.value.unsteady), bar.subject);
            let rows: Vec<(String, f64)> = order.iter().map(|bar| (name(bar), bar.value.y)).collect();
            let mut text = bars(&rows, width);
            paragraph(&mut text, &rule, width, "");
            if order.iter().any(|bar| bar.value.unsteady) {
                paragraph(&mut text, &format!("! {}", table::UNSTEADY), width, "");
            }
            text
        }
    };
    out.push_str(&drawn);
}

/// Bars in the given order, with names before them and values after them. Values below zero have no bar.
#[must_use]
pub fn bars(rows: &[(String, f64)], width: usize) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let names: Vec<String> = rows.iter().map(|(name, _)| short(name, width / 3)).collect();
    let values: Vec<String> = rows.iter().map(|(_, value)| number(*value)).collect();
    let longest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let (left, right) = (longest(&names), longest(&values));
    let room = width.saturating_sub(left + right + 2 * GAP).min(BAR_MAX);
    let top = rows.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).fold(0.0_f64, f64::max);
    let mut out = String::new();
    for ((name, (_, value)), text) in names.iter().zip(rows).zip(&values) {
        let length = steps(value / top, room);
        out.push_str(&format!("{}{}{}\n", pad(name, left, false), " ".repeat(GAP), {
            let bar = pad(&"#".repeat(length), room, false);
            format!("{bar}{}{}", " ".repeat(GAP), pad(text, right, true))
        }));
    }
    out
}

/// A share as a number of steps out of `all`, rounded; 0 if it is not a finite number.
fn steps(share: f64, all: usize) -> usize {
    if !share.is_finite() {
        return 0;
    }
    // There are at most [`WIDTH_MAX`] steps. A linear search is exact and needs no conversion.
    (1..=all).take_while(|&n| f64::from(u32::try_from(n).unwrap_or(u32::MAX)) - 0.5 <= share * whole(all)).count()
}

fn whole(n: usize) -> f64 {
    f64::from(u32::try_from(n).unwrap_or(u32::MAX))
}

/// A table in lines of at most `width` characters. Columns that do not fit follow below the others, again with the
/// first column.
#[must_use]
pub fn table(table: &ReportTable, width: usize) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut out = String::new();
    if !table.caption.is_empty() {
        paragraph(&mut out, &table.caption, width, "");
    }
    let reasons = table::reasons(table);
    let first: Vec<String> = [&table.corner]
        .into_iter()
        .chain(table.rows.iter().map(|row| &row.head))
        .map(|t| short(t, width / 3))
        .collect();
    let columns: Vec<Vec<String>> = (0..table.columns.len()).map(|index| column(table, index, &reasons)).collect();
    let wide = |column: &[String]| column.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let head = wide(&first);
    let mut begin = 0;
    while begin < columns.len() {
        let mut end = begin;
        let mut used = head;
        while end < columns.len() && (end == begin || used + GAP + wide(&columns[end]) <= width) {
            used += GAP + wide(&columns[end]);
            end += 1;
        }
        if begin > 0 {
            out.push('\n');
        }
        for (row, name) in first.iter().enumerate() {
            let mut line = pad(name, head, false);
            for column in &columns[begin..end] {
                line.push_str(&" ".repeat(GAP));
                line.push_str(&pad(&column[row], wide(column), true));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        begin = end;
    }
    if !table.formula.is_empty() {
        paragraph(&mut out, &table.formula, width, "  ");
    }
    for (number, reason) in (1..).zip(&reasons) {
        paragraph(&mut out, &format!("n/a {number}: {reason}"), width, "  ");
    }
    if table::has_unsteady(table) {
        paragraph(&mut out, &format!("! {}", table::UNSTEADY), width, "  ");
    }
    for note in &table.notes {
        paragraph(&mut out, note, width, "  ");
    }
    out
}

/// A column with its heading.
fn column(table: &ReportTable, index: usize, reasons: &[String]) -> Vec<String> {
    let cell = |cell: Option<&ReportCell>| match cell {
        None => "n/a".to_owned(),
        Some(ReportCell::NotApplicable(reason)) => {
            format!("n/a {}", reasons.iter().position(|known| known == reason).map_or(0, |place| place + 1))
        }
        Some(one @ (ReportCell::Ratio(value) | ReportCell::UnsteadyRatio(value))) => {
            let sign = ["- ", "", "+ "][usize::try_from(table::step(*value).signum() + 1).unwrap_or(1)];
            let doubt = if matches!(one, ReportCell::UnsteadyRatio(_)) { "! " } else { "" };
            format!("{doubt}{sign}{}", table::words(one))
        }
        Some(unsteady @ ReportCell::Unsteady { .. }) => format!("! {}", table::words(unsteady)),
        Some(other) => short(&table::words(other), CELL_MAX),
    };
    let heading = short(&table.columns[index].to_string(), CELL_MAX);
    [heading].into_iter().chain(table.rows.iter().map(|row| cell(row.cells.get(index)))).collect()
}

/// Text padded to a width, at the right or left.
fn pad(text: &str, width: usize, right: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.chars().count()));
    if right {
        format!("{blanks}{text}")
    } else {
        format!("{text}{blanks}")
    }
}

/// Text on one line, cut to at most `most` characters.
fn short(text: &str, most: usize) -> String {
    let text = clean(text);
    if text.chars().count() <= most {
        return text;
    }
    format!("{}...", text.chars().take(most.saturating_sub(3)).collect::<String>())
}

/// Text without control characters, and with single blanks.
fn clean(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().map(|c| if c.is_control() || turns(c) { '?' } else { c }).collect())
        .collect();
    words.join(" ")
}

/// A paragraph in lines of at most `width` characters. The first line begins with a sign, the others with blanks.
fn paragraph(out: &mut String, text: &str, width: usize, sign: &str) {
    let indent = " ".repeat(sign.len());
    let mut line = sign.to_owned();
    let mut empty = true;
    for word in clean(text).split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if !empty && line.chars().count() + 1 + word.len() > width {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        // A word that is longer than a line is broken.
        while line.chars().count() + word.len() > width {
            let rest = word.split_off(width - line.chars().count());
            line.extend(word);
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&indent);
            word = rest;
        }
        line.extend(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::ReportRow;

    #[test]
    fn bars_are_in_proportion() {
        let rows = [("RAID 0 x4".to_owned(), 200.0), ("single".to_owned(), 50.0), ("none".to_owned(), f64::NAN)];
        let line =
            |name: &str, length: usize, value: &str| format!("{name:<9}  {:<40}  {value:>4}", "#".repeat(length));
        let wanted = [line("RAID 0 x4", 40, "200"), line("single", 10, "50.0"), line("none", 0, "n/a")];
        assert_eq!(bars(&rows, 80).lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn wide_tables_go_on_below_with_their_first_column() {
        let row = |head: &str| ReportRow {
            head: head.into(),
            level: None,
            cells: vec![
                ReportCell::Number(1.5),
                ReportCell::Ratio(6.0),
                ReportCell::NotApplicable("needs a battery".into()),
            ],
        };
        let table = ReportTable {
            caption: "ratios".into(),
            corner: "reads".into(),
            columns: vec!["outstanding one".into(), "outstanding two".into(), "outstanding three".into()],
            rows: vec![row("0 %"), row("100 %")],
            ..ReportTable::default()
        };
        let wanted = "\
ratios
reads  outstanding one  outstanding two
0 %               1.50            + 6.0
100 %             1.50            + 6.0

reads  outstanding three
0 %                n/a 1
100 %              n/a 1
  n/a 1: needs a battery
";
        assert_eq!(super::table(&table, 40), wanted);
    }

    #[test]
    fn nothing_that_a_terminal_acts_upon_gets_through() {
        let mut out = String::new();
        paragraph(&mut out, "a\u{1b}[2J b\u{7}\n\u{202e}c", 40, "! ");
        assert_eq!(out, "! a?[2J b? ?c\n");
        let mut out = String::new();
        paragraph(&mut out, &"x".repeat(95), 40, "");
        assert_eq!(out.lines().map(str::len).collect::<Vec<_>>(), [40, 40, 15]);
    }
}
