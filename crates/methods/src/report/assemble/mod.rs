//! Makes a report from the results of cells: the lines, bars and tables that show the results of a method.
//!
//! It uses stored results and changes no figure. Charts show the median of repetitions with the lowest and highest
//! value. For a cell without a result the reason is shown.

mod comparison;
mod curve;
mod decisions;
mod figure;
mod latency;
mod mixed;
mod rated;
mod shapes;
mod tables;
mod test_bed;
mod verdict;

pub use crate::cell::Ceiling;
pub use comparison::comparison;
pub use figure::Figure;
pub use rated::{ratings, Rating};
pub use test_bed::{bed, bus_words, limits};
pub use verdict::judge;

use super::data::{
    Absent, Chart, ChartAxis, Fact, FindingKind, Panel, ReportFinding, ReportRow, ReportSection, ReportTable, Review,
    Scale, Unit,
};
use super::findings;
use crate::cell::{CellNote, CellSpec, Effort, Flag, PartName, Pattern};
use crate::method::{Method, ReportShape};
use crate::metrics::Scheme;
use crate::run::Measurement;
use figure::title;
use std::collections::BTreeSet;

/// A cell and its result.
#[derive(Clone, Debug)]
pub struct CellTrial {
    /// The cell.
    pub spec: CellSpec,
    /// Its result, or the reason why it has none.
    pub outcome: Measurement,
}

/// The result of a method.
#[derive(Clone, Debug)]
pub struct Chapter {
    pub method: &'static Method,
    /// Its cells.
    pub trials: Vec<CellTrial>,
    /// The reason why the method was refused. Empty if it was run.
    pub refusal: String,
    /// The formula that ranks the arrays. None selects the default of the load.
    pub rank: Option<Scheme>,
}

/// The report of a suite. `ceilings` are those of buses and data paths; see [`limits`].
#[must_use]
pub fn review(title: &str, bed: Vec<Fact>, chapters: &[Chapter], ceilings: &[Ceiling]) -> Review {
    let sections = chapters.iter().map(|chapter| section(chapter, ceilings)).collect();
    let mut review = Review { title: title.into(), bed, sections, glossary: glossary(), ..Review::default() };
    if mixed::is_mixed(chapters) {
        mixed::by_powers(&mut review);
        mixed::answer_apart(&mut review, chapters);
    }
    findings::explain(&mut review);
    review.summary = summary(&review);
    judge(&mut review, chapters);
    review
}

/// The section of a report for one method.
#[must_use]
pub fn section(chapter: &Chapter, ceilings: &[Ceiling]) -> ReportSection {
    let method = chapter.method;
    let all: Vec<&CellTrial> = chapter.trials.iter().collect();
    let mut section = ReportSection {
        method: format!("{} {}", method.id, method.title),
        question: method.question.into(),
        ..ReportSection::default()
    };
    if !chapter.refusal.is_empty() {
        section.absent.push(Absent { what: method.title.into(), reason: chapter.refusal.clone() });
        return section;
    }
    match method.shape {
        ReportShape::Shares => shapes::shares(&mut section, &all),
        ReportShape::Sizes => shapes::sizes(&mut section, &all, ceilings),
        ReportShape::Depths => shapes::depths(&mut section, &all, chapter.rank),
        ReportShape::Clients => shapes::clients(&mut section, &all, ceilings),
        ReportShape::Bars => shapes::bars(&mut section, &all),
        ReportShape::Files => shapes::files(&mut section, &all),
        ReportShape::Graph => shapes::graph(&mut section, &all),
        ReportShape::Scores => shapes::scores(&mut section, &all),
        ReportShape::Ratios => tables::ratios(&mut section, &all),
        ReportShape::Pairs => tables::pairs(&mut section, &all, findings::apart),
        ReportShape::BestRun => tables::best_runs(&mut section, &all),
        ReportShape::Parts => shapes::parts(&mut section, &all, chapter.rank),
        ReportShape::Outstanding => shapes::outstanding(&mut section, &all, ceilings),
        ReportShape::Latencies => latency::latencies(&mut section, &all),
        ReportShape::CacheSizes => shapes::cache_sizes(&mut section, &all),
        ReportShape::States => tables::states(&mut section, &all),
        ReportShape::Load => latency::of_given(&mut section, &all),
    }
    section.tables = joined(section.tables);
    absences(&mut section, &all);
    warnings(&mut section, &all);
    section.how.extend(how(&all));
    section
}

/// Tables with one row of the same array and with the same columns as one table, in which each has a row.
fn joined(tables: Vec<ReportTable>) -> Vec<ReportTable> {
    let is_alike = |a: &ReportTable, b: &ReportTable| {
        let alone = |table: &ReportTable| (table.rows.len() == 1).then(|| table.rows[0].head.clone());
        alone(a).is_some()
            && (alone(a), &a.columns, &a.formula, &a.notes) == (alone(b), &b.columns, &b.formula, &b.notes)
    };
    let mut groups: Vec<Vec<ReportTable>> = Vec::new();
    for table in tables {
        match groups.iter_mut().find(|group| is_alike(&group[0], &table)) {
            Some(group) => group.push(table),
            None => groups.push(vec![table]),
        }
    }
    let join = |mut group: Vec<ReportTable>| {
        if group.len() == 1 {
            return group.remove(0);
        }
        let (first, array) = (group[0].clone(), group[0].rows[0].head.clone());
        let row = |mut table: ReportTable| ReportRow { head: table.caption, ..table.rows.remove(0) };
        let rows = group.into_iter().map(row).collect();
        ReportTable { caption: array, corner: "test".into(), rows, ..first }
    };
    groups.into_iter().map(join).collect()
}

/// A report of cells that belong to no method. It has lines over the axis with most values, or a table if there is no
/// such axis.
#[must_use]
pub fn sweep(heading: &str, bed: Vec<Fact>, trials: &[CellTrial]) -> Review {
    let mut sections = Vec::new();
    let all: Vec<&CellTrial> = trials.iter().collect();
    for (pattern, of_pattern) in curve::grouped(&all, |spec| spec.pattern.clone()) {
        let mut section = ReportSection { method: title(&pattern), ..ReportSection::default() };
        shapes::free(&mut section, &of_pattern);
        absences(&mut section, &of_pattern);
        warnings(&mut section, &of_pattern);
        sections.push(section);
    }
    let mut review = Review { title: heading.into(), bed, sections, ..Review::default() };
    findings::explain(&mut review);
    review
}

/// The answer of each section's first chart.
fn summary(review: &Review) -> Vec<String> {
    let first = |section: &ReportSection| {
        let name = section.method.split_once(' ').map_or(section.method.as_str(), |(_, name)| name);
        if !section.answer.is_empty() {
            return Some(format!("{name}: {}", section.answer));
        }
        let panel = section.panels.iter().find(|panel| !panel.answer.is_empty());
        let finding = section.findings.iter().find(|finding| finding.kind == FindingKind::Comparison);
        match (panel, finding) {
            (Some(panel), _) if section.panels.len() == 1 => Some(format!("{name}: {}", panel.answer)),
            (Some(panel), _) => Some(format!("{name}. {} {}", panel.question, panel.answer)),
            (None, Some(finding)) => Some(format!("{name}: {}", finding.text)),
            (None, None) => None,
        }
    };
    review.sections.iter().filter_map(first).collect()
}

/// Subjects, directions and zones without any result, with each reason once.
fn absences(section: &mut ReportSection, all: &[&CellTrial]) {
    let missing = |trials: &[&CellTrial]| trials.iter().all(|trial| trial.outcome.result().is_none());
    for (name, trials) in curve::grouped(all, called) {
        if !missing(&trials) {
            let ways = curve::grouped(&trials, |spec| spec.axes.op).into_iter();
            let ways = ways.map(|(op, part)| (shapes::done(op), part));
            let zones = curve::grouped(&trials, |spec| spec.axes.zone).into_iter();
            let zones = zones.map(|(zone, part)| (shapes::within(zone).trim_start(), part));
            for (words, part) in ways.chain(zones).filter(|(_, part)| missing(part)) {
                section.absent.push(Absent { what: format!("{name}, {words}"), reason: curve::reason(&part) });
            }
            continue;
        }
        let reasons: BTreeSet<&str> =
            trials.iter().filter_map(|trial| trial.outcome.absence()).map(|absence| absence.reason.as_str()).collect();
        let reason = reasons.into_iter().collect::<Vec<_>>().join("; ");
        section.absent.push(Absent { what: name, reason });
    }
}

/// The name of the measured load within a sentence.
fn called(spec: &CellSpec) -> String {
    let name = figure::subject(spec).name;
    if name.is_empty() {
        spec.subject.title()
    } else {
        name
    }
}

/// Maximum number of smaller sets that are reported; the notes of the cells have all of them.
const SCALED_TOLD: usize = 3;

/// A kind of flag, and the sentence about cells with that flag.
type Flagged = (fn(&Flag) -> bool, &'static str);

/// Flags and the texts of their warnings.
const FLAGGED: [Flagged; 5] = [
    (
        |flag| matches!(flag, Flag::AboveCeiling { .. }),
        "had a rate above the limit of a bus or of the members: a cache has answered",
    ),
    (
        |flag| matches!(flag, Flag::StillInCaches { .. }),
        "ended with part of the writes still in caches: the drives are slower than these figures",
    ),
    (
        |flag| matches!(flag, Flag::ReadFromCache { .. }),
        "read part of the data from the controller's cache, not from drives",
    ),
    (|flag| matches!(flag, Flag::PageCache), "went through the page cache of this machine"),
    (
        |flag| matches!(flag, Flag::FlushOwed { .. }),
        "needed a long flush afterwards: the writes were in caches until then",
    ),
];

/// Warnings about cells with failed requests, cells that were not steady, and cells that failed.
fn warnings(section: &mut ReportSection, all: &[&CellTrial]) {
    let results = || all.iter().filter_map(|trial| trial.outcome.result());
    let mut warn = |count: usize, words: &str| {
        if count > 0 {
            let text = format!("{count} of {} cells {words}.", all.len());
            section.findings.push(ReportFinding::new(FindingKind::Warning, text));
        }
    };
    warn(results().filter(|result| result.errors > 0).count(), "had requests that failed; these are not counted");
    let count = results().filter(|result| result.is_unsteady()).count();
    let real = all.iter().any(|trial| trial.spec.effort.is_a_time());
    let more = if real { "more --seconds" } else { "more --effort" };
    warn(count, &format!("had not become steady when measured: use {more}"));
    for flag in FLAGGED {
        warn(results().filter(|result| result.flags.iter().any(flag.0)).count(), flag.1);
    }
    let cut = || results().filter(|result| result.never_asked > 0);
    let never = super::format::fixed(cut().map(|result| result.never_asked as f64).sum(), 0);
    let words = format!("ended early, as the target could not keep up: {never} requests were never issued");
    warn(cut().count(), &words);
    let generator = |result: &&crate::cell::CellResult| {
        result.busy(PartName::Generator).is_some_and(|busy| busy >= findings::BUSY_LIMIT)
    };
    let count = results().filter(generator).count();
    warn(count, "reached the limit of the load generator, whose thread had no time left: the target may be faster");
    for (note, count) in scaled(all) {
        warn(count, &format!("had {note}"));
    }
    let wrong = |trial: &&&CellTrial| trial.outcome.absence().is_some_and(|absence| !absence.not_applicable);
    warn(all.iter().filter(wrong).count(), "failed and gave no result");
}

/// The notes of cells about sets that were made smaller for a small target, with the number of cells.
fn scaled(all: &[&CellTrial]) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let notes = all.iter().filter_map(|trial| trial.outcome.result()).flat_map(|result| &result.notes);
    for note in notes.filter_map(CellNote::scaled) {
        let words = format!("a smaller set than in the reviews: {note}");
        match found.iter_mut().find(|(known, _)| *known == words) {
            Some((_, count)) => *count += 1,
            None => found.push((words, 1)),
        }
    }
    found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    found.truncate(SCALED_TOLD);
    found
}

/// The method of measurement, as far as it is the same for all cells. The warm-up may have differed.
fn how(all: &[&CellTrial]) -> Vec<String> {
    let mut efforts: Vec<_> =
        all.iter().map(|trial| (Effort { warm_seconds_max: 0, ..trial.spec.effort }, trial.spec.seed)).collect();
    efforts.dedup();
    let [(effort, seed)] = efforts.as_slice() else { return Vec::new() };
    let warm = || all.iter().map(|trial| trial.spec.effort.warm_seconds_max);
    let (least, most) = (warm().min().unwrap_or(0), warm().max().unwrap_or(0));
    let warm = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let seconds = effort.seconds_max;
    let amount = if effort.is_a_time() {
        format!("of {seconds} s")
    } else {
        format!("of at most {} requests or {seconds} s", super::format::fixed(effort.requests as f64, 0))
    };
    vec![format!("Each result is {amount}, after at most {warm} s of warming up; seed {seed}.")]
}

fn glossary() -> Vec<Fact> {
    vec![
        Fact::new("outstanding", "requests that wait for their answer at the same time, of all workers together"),
        Fact::new("read-modify-write", "a small write reads the old data and parity, then writes both"),
        Fact::new("reconstruct-write", "a write reads the rest of the stripe and computes the parity"),
        Fact::new("full stripe", "a write that covers a whole row of chunks and needs to read nothing"),
        Fact::new("distributed parity", "the parity moves from drive to drive, so that none has all of its work"),
        Fact::new("write-back", "a write is answered when it is in the cache; write-through: when it is on the drives"),
    ]
}

/// Adds a chart if it is not empty.
fn push(section: &mut ReportSection, question: impl Into<String>, chart: Chart) {
    push_answered(section, question, String::new(), chart);
}

/// Adds a chart with its answer if it is not empty. An empty answer is made from the data.
fn push_answered(section: &mut ReportSection, question: impl Into<String>, answer: String, chart: Chart) {
    let shows = match &chart {
        Chart::Lines(lines) => !lines.series.is_empty(),
        Chart::Bars(bars) => !bars.bars.is_empty(),
        Chart::Heat(heat) => !heat.rows.is_empty(),
    };
    if shows {
        section.panels.push(Panel { answer, ..Panel::new(question, chart) });
    }
}

/// The axis of outstanding requests.
fn outstanding_axis() -> ChartAxis {
    ChartAxis::new("outstanding", Unit::None, Scale::Log2)
}

/// The axis of request sizes.
fn size_axis() -> ChartAxis {
    ChartAxis::new("size of a request", Unit::Bytes, Scale::Log2)
}

/// Does the load have large requests? Then its rate is in MB/s.
fn streaming(pattern: &Pattern) -> bool {
    matches!(
        pattern,
        Pattern::Sequential
            | Pattern::MultiThreaded
            | Pattern::SsdSequential
            | Pattern::FcTest
            | Pattern::TransferGraph
    )
}

#[cfg(test)]
mod tests;
