//! The charts for each kind of method results.

use super::super::data::{
    Bar, Bars, Better, Chart, ChartAxis, Heading, LineChart, Point, ReportCache, ReportCell, ReportRow, ReportSection,
    ReportTable, Scale, Series, Unit,
};
use super::super::findings;
use super::curve::{
    axes_words, ceilings, grouped, ideals, ideals_of_mixes, ideals_shared, lines, lines_of, reason, varying, ChartLoad,
};
use super::figure::{evidence, subject, title, Figure};
use super::rated::rated;
use super::tables::only;
use super::test_bed::formula;
use super::Ceiling;
use super::{outstanding_axis, push, push_answered, size_axis, streaming, CellTrial};
use crate::cell::{CellSpec, Direction, FileSet, FileStep, FileSystem, Level, Pattern, TraceApp, ZoneChoice};
use crate::metrics::Scheme;

/// From this request size on, the rate of random requests is in MB/s, below it in requests per second.
const LARGE: u32 = 64 << 10;

/// A direction as a participle.
pub fn done(op: Option<Direction>) -> &'static str {
    match op {
        Some(Direction::Read) => "reading",
        Some(Direction::Write) => "writing",
        None => "reading and writing",
    }
}

/// A part of the array as an adverb, with a space before it.
pub const fn within(zone: Option<ZoneChoice>) -> &'static str {
    match zone {
        Some(ZoneChoice::First32g) => " in the first 32 GB",
        Some(ZoneChoice::Full) => " on the whole array",
        None => "",
    }
}

/// The load of a chart's cells.
fn asked(trials: &[&CellTrial]) -> ChartLoad {
    let op_of = |spec: &CellSpec| match (spec.axes.op, spec.axes.rd.unwrap_or(spec.pattern.defaults().rd)) {
        (Some(op), _) => Some(op),
        (None, 100) => Some(Direction::Read),
        (None, 0) => Some(Direction::Write),
        (None, _) => None,
    };
    let ways = grouped(trials, op_of);
    let op = if let [(op, _)] = ways.as_slice() { *op } else { None };
    ChartLoad { op, stream: trials.iter().all(|trial| streaming(&trial.spec.pattern)) }
}

/// M01: requests per second over the share of reads, a chart for each queue depth.
pub fn shares(section: &mut ReportSection, all: &[&CellTrial]) {
    for (depth, trials) in grouped(all, |spec| spec.axes.qd.unwrap_or(1)) {
        let x = ChartAxis::new("reads", Unit::Percent, Scale::Linear);
        let mut drawn = lines(&trials, x, |spec| spec.axes.rd.map(f64::from), Figure::Iops);
        // The ceilings of bus and data path are far above the rate of such small requests, so they are not drawn.
        drawn
            .guides
            .extend(ideals_of_mixes(&drawn, f64::from(depth), |reads, cache| single_by_depth(all, reads, cache)));
        push(section, format!("How many requests at {depth} outstanding?"), Chart::Lines(drawn));
    }
}

/// The single drive with a write cache over the queue depth, at one share of reads.
fn single_by_depth(all: &[&CellTrial], reads: f64, cache: Option<ReportCache>) -> Option<Series> {
    let is_single =
        |spec: &CellSpec| spec.subject == crate::cell::Subject::Single && spec.axes.rd.map(f64::from) == Some(reads);
    let depth = |spec: &CellSpec| Some(f64::from(spec.axes.qd.unwrap_or(1)));
    let singles = lines(&only(all, is_single), outstanding_axis(), depth, Figure::Iops).series;
    singles.into_iter().rev().find(|single| single.subject.variant.cache() == cache)
}

/// M02, M04: rate over the size of a request, a chart for each direction.
pub fn sizes(section: &mut ReportSection, all: &[&CellTrial], limits: &[Ceiling]) {
    let size = |spec: &CellSpec| Some(f64::from(spec.axes.bs.unwrap_or(spec.pattern.defaults().bs)));
    for (op, trials) in grouped(all, |spec| spec.axes.op) {
        let stream = trials.iter().all(|trial| streaming(&trial.spec.pattern));
        if stream {
            let mut drawn = lines(&trials, size_axis(), size, Figure::Mbps);
            drawn.guides.extend(ideals(&drawn, asked(&trials)));
            drawn.guides.extend(ceilings(limits, op));
            push(section, format!("How fast is {}, by the size of a request?", done(op)), Chart::Lines(drawn));
            continue;
        }
        for (depth, trials) in grouped(&trials, |spec| spec.axes.qd.unwrap_or(spec.pattern.defaults().qd)) {
            random_sizes(section, &trials, op, depth, limits);
        }
    }
}

/// M02: charts at depth 1, tables at other depths. Small requests are in requests per second, large ones in MB/s.
fn random_sizes(
    section: &mut ReportSection,
    all: &[&CellTrial],
    op: Option<Direction>,
    depth: u32,
    limits: &[Ceiling],
) {
    let size = |spec: &CellSpec| Some(f64::from(spec.axes.bs.unwrap_or(spec.pattern.defaults().bs)));
    for (small, figure) in [(true, Figure::Iops), (false, Figure::Mbps)] {
        let trials = only(all, |spec| spec.axes.bs.is_none_or(|bs| bs < LARGE) == small);
        let mut drawn = lines(&trials, size_axis(), size, figure);
        if depth > 1 {
            table_at(section, &drawn, &format!("random {} at depth {depth}", done(op)));
        } else if small {
            push(section, format!("How many small requests a second, {}?", done(op)), Chart::Lines(drawn));
        } else {
            drawn.guides.extend(ceilings(limits, op));
            push(section, format!("How fast are large requests, {}?", done(op)), Chart::Lines(drawn));
        }
    }
}

/// Lines as a table, if a chart would be too much.
fn table_at(section: &mut ReportSection, drawn: &LineChart, what: &str) {
    if !drawn.series.is_empty() {
        let mut table = super::super::table::of_lines(drawn);
        table.caption = format!("{what}: {}", super::super::line_chart::axis_name(&drawn.y));
        section.tables.push(table);
    }
}

/// M06 to M08, M32: requests per second over queue depth, with the rating.
pub fn depths(section: &mut ReportSection, all: &[&CellTrial], rank: Option<Scheme>) {
    let zone = |spec: &CellSpec| spec.axes.zone;
    for (place, trials) in grouped(all, zone) {
        let where_ = within(place);
        let depth = |spec: &CellSpec| spec.axes.qd.map(f64::from);
        let mut drawn = lines(&trials, outstanding_axis(), depth, Figure::Iops);
        drawn.guides.extend(ideals_shared(&drawn, asked(&trials)));
        push(section, format!("How does the speed grow with the queue{where_}?"), Chart::Lines(drawn));
        for (pattern, of_pattern) in grouped(&trials, |spec| spec.pattern.clone()) {
            let usual = if pattern == Pattern::Workstation { Scheme::R2 } else { Scheme::R1 };
            let scheme = rank.unwrap_or(usual);
            push(section, format!("Which array is best rated{where_}?"), rating(&of_pattern, &pattern, scheme));
            section.tables.extend(ratings(&of_pattern, &pattern, where_));
        }
    }
}

/// M32: requests per second over queue depth, in a part of the array and on all of it, and the ratio of both.
pub fn parts(section: &mut ReportSection, all: &[&CellTrial], rank: Option<Scheme>) {
    depths(section, all, rank);
    let of = |zone| {
        let trials = only(all, |spec| spec.axes.zone == Some(zone));
        lines(&trials, outstanding_axis(), |spec| spec.axes.qd.map(f64::from), Figure::Iops)
    };
    let (part, whole) = (of(ZoneChoice::First32g), of(ZoneChoice::Full));
    section.answer = findings::part_of_whole(&part, &whole, "The first 32 GB");
}

/// The rating of each subject that has all queue depths of the formula.
fn rating(trials: &[&CellTrial], pattern: &Pattern, scheme: Scheme) -> Chart {
    let bar = |(name, _, value)| Bar { subject: name, value };
    let bars = rated(trials, pattern, scheme).into_iter().map(bar).collect();
    let value = ChartAxis::new(format!("rating {}", scheme.name()), Unit::None, Scale::Linear).better(Better::Higher);
    Chart::Bars(Bars { value, bars, formula: formula(scheme, pattern) })
}

/// A rating without the range of its repetitions, for which a table of all formulas has no room.
fn rated_cell(bar: &Bar) -> ReportCell {
    let y = bar.value.y;
    super::super::table::of_point(&Point { low: y, high: y, ..bar.value.clone() })
}

/// The ratings of every scheme whose queue depths were measured, with their formulas.
fn ratings(trials: &[&CellTrial], pattern: &Pattern, where_: &str) -> Option<ReportTable> {
    let rated = |scheme: Scheme| -> Vec<Bar> {
        let Chart::Bars(bars) = rating(trials, pattern, scheme) else { return Vec::new() };
        bars.bars
    };
    let all: Vec<(Scheme, Vec<Bar>)> = Scheme::ALL.into_iter().map(|scheme| (scheme, rated(scheme))).collect();
    let known: Vec<&(Scheme, Vec<Bar>)> = all.iter().filter(|(_, bars)| !bars.is_empty()).collect();
    let rows = grouped(trials, subject).into_iter().map(|(name, _)| {
        let cells = known.iter().map(|(_, bars)| {
            let bar = bars.iter().find(|bar| bar.subject == name);
            bar.map_or_else(|| ReportCell::NotApplicable("a depth is missing".into()), rated_cell)
        });
        ReportRow { head: name.to_string(), level: Some(name.level), cells: cells.collect() }
    });
    (!known.is_empty()).then(|| ReportTable {
        caption: format!("{}{where_}: ratings by all formulas", title(pattern)),
        corner: "array".into(),
        columns: known.iter().map(|(scheme, _)| scheme.name().into()).collect(),
        rows: rows.collect(),
        formula: "qN is IOPS at depth N".into(),
        notes: known.iter().map(|(scheme, _)| format!("{} = {}", scheme.name(), scheme.formula(pattern))).collect(),
    })
}

/// M05: rate over the number of clients; charts at depth 1, tables at other depths.
pub fn clients(section: &mut ReportSection, all: &[&CellTrial], limits: &[Ceiling]) {
    for (op, trials) in grouped(all, |spec| spec.axes.op) {
        for (depth, trials) in grouped(&trials, |spec| spec.axes.qd.unwrap_or(1)) {
            let x = ChartAxis::new("clients", Unit::None, Scale::Linear);
            let mut drawn = lines(&trials, x, |spec| spec.axes.th.map(f64::from), Figure::Mbps);
            if depth == 1 {
                drawn.guides.extend(ideals(&drawn, asked(&trials)));
                drawn.guides.extend(ceilings(limits, op));
                push(section, format!("What do several streams get together, {}?", done(op)), Chart::Lines(drawn));
            } else {
                table_at(section, &drawn, &format!("{} at depth {depth}", done(op)));
            }
        }
    }
}

/// Bars of a figure, one for each subject that has it.
pub fn bars_of(trials: &[&CellTrial], figure: Figure) -> Chart {
    let mut bars = Vec::new();
    for (name, of_subject) in grouped(trials, subject) {
        bars.extend(figure.point(0.0, &of_subject).map(|value| Bar { subject: name, value }));
    }
    Chart::Bars(Bars { value: figure.axis(), bars, formula: String::new() })
}

/// M03, M13: one figure for each subject, by load and direction.
pub fn bars(section: &mut ReportSection, all: &[&CellTrial]) {
    for ((pattern, op), trials) in grouped(all, |spec| (spec.pattern.clone(), spec.axes.op)) {
        let figure = Figure::of_pattern(&pattern);
        let question = match (figure, op) {
            (Figure::MeanMs, Some(op)) => format!("How long does {} one sector take?", done(Some(op))),
            (Figure::MeanMs, None) => "How long does an access take?".into(),
            (_, op) => format!("How fast is {}?", done(op.or(Some(Direction::Read)))),
        };
        push(section, question, bars_of(&trials, figure));
        let known = trials.iter().filter_map(|trial| trial.outcome.result()).any(|result| result.host_cpu.is_some());
        if op.is_none() && known {
            let question = format!("What does it cost the host's processor ({})?", title(&pattern));
            push(section, question, bars_of(&trials, Figure::HostCpu));
        }
    }
}

pub const fn step_words(step: FileStep) -> &'static str {
    match step {
        FileStep::Create => "create",
        FileStep::Read => "read",
        FileStep::CopySame => "copy near",
        FileStep::CopyOther => "copy far",
    }
}

pub const fn set_words(set: FileSet) -> &'static str {
    match set {
        FileSet::Install => "Install",
        FileSet::Iso => "ISO",
        FileSet::Mp3 => "MP3",
        FileSet::Programs => "Programs",
        FileSet::Windows => "Windows",
    }
}

const fn fs_words(fs: FileSystem) -> &'static str {
    match fs {
        FileSystem::Ntfs => "NTFS",
        FileSystem::Fat32 => "FAT32",
    }
}

/// M09, M10: bars of the sets that the review discusses, tables of all sets.
pub fn files(section: &mut ReportSection, all: &[&CellTrial]) {
    let key = |spec: &CellSpec| (spec.axes.fs.unwrap_or(FileSystem::Ntfs), spec.axes.step.unwrap_or(FileStep::Read));
    for ((fs, step), trials) in grouped(all, key) {
        let sets = grouped(&trials, |spec| spec.axes.set.unwrap_or(FileSet::Install));
        for (set, of_set) in &sets {
            let discussed = matches!(set, FileSet::Install | FileSet::Iso | FileSet::Programs);
            if fs == FileSystem::Ntfs && discussed && matches!(step, FileStep::Create | FileStep::Read) {
                let question = format!("How fast: {} {}?", step_words(step), set_words(*set));
                push(section, question, bars_of(of_set, Figure::Mbps));
            }
        }
        let rows = grouped(&trials, subject).into_iter().map(|(name, of_subject)| {
            let cells = sets.iter().map(|(set, _)| {
                let here: Vec<&CellTrial> = of_subject
                    .iter()
                    .copied()
                    .filter(|trial| trial.spec.axes.set.unwrap_or(FileSet::Install) == *set)
                    .collect();
                cell(&here, Figure::Mbps)
            });
            ReportRow { head: name.to_string(), level: Some(name.level), cells: cells.collect() }
        });
        section.tables.push(ReportTable {
            caption: format!("{}, {}: MB/s", fs_words(fs), step_words(step)),
            corner: "array".into(),
            columns: sets.iter().map(|(set, _)| set_words(*set).into()).collect(),
            rows: rows.collect(),
            ..ReportTable::default()
        });
    }
}

/// The figure of some trials as a cell of a table.
pub fn cell(trials: &[&CellTrial], figure: Figure) -> ReportCell {
    match figure.point(0.0, trials) {
        Some(point) => super::super::table::of_point(&point),
        None => ReportCell::NotApplicable(reason(trials)),
    }
}

/// M11: rate over the position, one line for each subject.
pub fn graph(section: &mut ReportSection, all: &[&CellTrial]) {
    let mut series = Vec::new();
    for (name, trials) in grouped(all, subject) {
        let results: Vec<_> = trials.iter().filter_map(|trial| trial.outcome.result()).collect();
        let Some(first) = results.first() else { continue };
        let known = evidence(first);
        let place = |number: usize, at: f64| {
            // Every repetition reads the same positions.
            let mut values: Vec<f64> =
                results.iter().filter_map(|result| Some(result.curve.get(number)?.value)).collect();
            values.sort_by(f64::total_cmp);
            let (low, high) = (values.first().copied()?, values.last().copied()?);
            let runs = u32::try_from(values.len()).unwrap_or(u32::MAX);
            let middle = values[(values.len() - 1) / 2];
            Some(Point::spread(at / 1e9, middle, low, high, runs).with(known.clone()))
        };
        let points: Vec<Point> =
            first.curve.iter().enumerate().filter_map(|(number, sample)| place(number, sample.at)).collect();
        if !points.is_empty() {
            series.push(Series::line(name, points));
        }
    }
    let x = ChartAxis::new("place", Unit::named("GB"), Scale::Linear);
    let drawn = LineChart { x, y: Figure::Mbps.axis(), series, guides: Vec::new() };
    push(section, "How fast is each place read?", Chart::Lines(drawn));
}

pub const fn app_words(app: TraceApp) -> &'static str {
    match app {
        TraceApp::Winmark99 => "WinMark 99",
        TraceApp::Photoshop40 => "Photoshop 4.0",
        TraceApp::Soundforge40 => "Sound Forge 4.0",
        TraceApp::Visualcpp50 => "Visual C++ 5.0",
    }
}

/// The programs of the suite's second total, which run in sequence.
const HIGH_END: [TraceApp; 3] = [TraceApp::Photoshop40, TraceApp::Soundforge40, TraceApp::Visualcpp50];

/// The definition of the total, and its limits: the suite's weights and its other parts are not published.
const HIGH_END_FORMULA: &str = "High-End here = harmonic mean of Photoshop 4.0, Sound Forge 4.0 and Visual C++ 5.0; the suite's \
                                own is a weighted average of these and of AVS/Express 3.4, FrontPage 98, MicroStation SE \
                                and Premiere 4.2";

/// The second total of each file system, if all of its parts were measured with one cache. It is their harmonic mean,
/// because the parts run in sequence.
fn high_end(section: &mut ReportSection, all: &[&CellTrial]) {
    for (fs, trials) in grouped(all, |spec| spec.axes.fs) {
        if grouped(&trials, |spec| spec.axes.cache_mib).len() != 1 {
            continue;
        }
        let mut bars = Vec::new();
        for (name, of_subject) in grouped(&trials, subject) {
            let part = |app: TraceApp| Figure::Score.point(0.0, &only(&of_subject, |spec| spec.axes.app == Some(app)));
            let parts: Option<Vec<Point>> = HIGH_END.into_iter().map(part).collect();
            let Some(parts) = parts else { continue };
            let mean =
                |of: fn(&Point) -> f64| parts.len() as f64 / parts.iter().map(|part| 1.0 / of(part)).sum::<f64>();
            let value = Point::spread(0.0, mean(|p| p.y), mean(|p| p.low), mean(|p| p.high), parts[0].runs);
            bars.push(Bar { subject: name, value });
        }
        let question = format!(
            "Which array scores best: High-End, 3 of 7 parts{}?",
            fs.map_or("", |fs| match fs {
                FileSystem::Ntfs => ", NTFS",
                FileSystem::Fat32 => ", FAT32",
            })
        );
        let formula = HIGH_END_FORMULA.into();
        push(section, question, Chart::Bars(Bars { value: Figure::Score.axis(), bars, formula }));
    }
}

/// The program of an application cell.
#[derive(Clone, Copy, PartialEq)]
struct Program {
    app: TraceApp,
    fs: Option<FileSystem>,
    users: u16,
}

impl Program {
    fn of(spec: &CellSpec) -> Self {
        let app = spec.axes.app.unwrap_or(TraceApp::Winmark99);
        Self { app, fs: spec.axes.fs, users: spec.axes.users.unwrap_or(1) }
    }

    fn heading(self) -> Heading {
        let fs = self.fs.map(|fs| fs_words(fs).to_owned());
        let users = (self.users != 1).then(|| format!("{} users", self.users));
        let more: Vec<String> = fs.into_iter().chain(users).collect();
        Heading { name: app_words(self.app).to_owned(), more: more.join(", ") }
    }
}

/// The two sizes of the cache, if the cells have exactly two.
fn two_sizes(all: &[&CellTrial]) -> Option<(u32, u32)> {
    match grouped(all, |spec| spec.axes.cache_mib).as_slice() {
        [(Some(less), _), (Some(more), _)] => Some((*less, *more)),
        _ => None,
    }
}

/// The gain of the larger cache in percent.
fn gain(trials: &[&CellTrial], (less, more): (u32, u32)) -> Option<f64> {
    let score = |mib| Figure::Score.point(0.0, &only(trials, |spec| spec.axes.cache_mib == Some(mib)));
    let (a, b) = (score(less)?, score(more)?);
    (a.y > 0.0).then(|| (b.y / a.y - 1.0) * 100.0)
}

/// All programs in one table: a row for each array and size of its cache, and one for the gain of the larger of two.
fn application_table(all: &[&CellTrial]) -> Option<ReportTable> {
    let sizes: Vec<Option<u32>> = grouped(all, |spec| spec.axes.cache_mib).into_iter().map(|(size, _)| size).collect();
    let programs: Vec<Program> = grouped(all, Program::of).into_iter().map(|(program, _)| program).collect();
    let mut rows = Vec::new();
    for (name, of_array) in grouped(all, subject) {
        let of = |program: &Program| only(&of_array, |spec| Program::of(spec) == *program);
        let row = |words: String, of_program: &dyn Fn(&Program) -> ReportCell| {
            let head = if words.is_empty() { name.to_string() } else { format!("{name}, {words}") };
            ReportRow { head, level: Some(name.level), cells: programs.iter().map(of_program).collect() }
        };
        for size in &sizes {
            let words = size.filter(|_| sizes.len() > 1).map_or_else(String::new, |mib| format!("{mib} MiB of cache"));
            rows.push(row(words, &|program| {
                cell(&only(&of(program), |spec| spec.axes.cache_mib == *size), Figure::Score)
            }));
        }
        if let Some(both) = two_sizes(all) {
            rows.push(row("gain".into(), &|program| {
                let trials = of(program);
                gain(&trials, both).map_or_else(|| ReportCell::NotApplicable(reason(&trials)), ReportCell::Change)
            }));
        }
    }
    (programs.len() > 1 && !rows.is_empty()).then(|| ReportTable {
        caption: "All programs: score, thousand bytes per second".into(),
        corner: "array".into(),
        columns: programs.iter().map(|program| program.heading()).collect(),
        rows,
        formula: two_sizes(all)
            .map_or_else(String::new, |(less, more)| format!("gain = score({more} MiB) / score({less} MiB) - 1")),
        notes: vec!["The requests are imitated: compare within this table only.".into()],
    })
}

/// M12, M14: scores, and the gain of the larger cache if there are two.
pub fn scores(section: &mut ReportSection, all: &[&CellTrial]) {
    section.tables.extend(application_table(all));
    high_end(section, all);
    let both = two_sizes(all);
    let mut gains: Vec<(f64, String)> = Vec::new();
    for (program, trials) in grouped(all, Program::of) {
        let name = program.heading().to_string();
        let sizes = grouped(&trials, |spec| spec.axes.cache_mib);
        let Some((_, largest)) = sizes.last() else { continue };
        let with = match sizes.as_slice() {
            [_, .., (Some(mib), _)] => format!(", {mib} MiB of cache"),
            _ => String::new(),
        };
        push(section, format!("Which array scores best: {name}{with}?"), bars_of(largest, Figure::Score));
        for (array, of_array) in grouped(&trials, subject) {
            gains.extend(both.and_then(|both| gain(&of_array, both)).map(|gain| (gain, format!("{array}, {name}"))));
        }
    }
    if let (Some((less, more)), Some(words)) = (both, findings::changes(&gains)) {
        section.answer = format!("{more} MiB of cache instead of {less} MiB bring {words}.");
    }
}

/// Outstanding requests of all workers. If every drive has a worker of its own, outstanding requests of each drive.
fn outstanding_of(spec: &CellSpec) -> Option<f64> {
    if let (Some(Level::Jbod), Some(depth)) = (spec.subject.level(), spec.axes.qd) {
        return Some(f64::from(depth));
    }
    let workers = spec.axes.workers.unwrap_or(spec.pattern.defaults().workers);
    spec.axes.oio.or_else(|| Some(spec.axes.qd? * u32::from(workers))).map(f64::from)
}

/// M20, M21: rate over the number of outstanding requests.
pub fn outstanding(section: &mut ReportSection, all: &[&CellTrial], limits: &[Ceiling]) {
    for ((pattern, op), trials) in grouped(all, |spec| (spec.pattern.clone(), spec.axes.op)) {
        let figure = Figure::of_pattern(&pattern);
        let alone =
            |trial: &&CellTrial| trial.spec.subject.level() == Some(Level::Jbod) && trial.spec.axes.oio.is_none();
        let each = trials.iter().all(alone);
        let x = if each {
            ChartAxis::new("outstanding at each drive", Unit::None, Scale::Log2)
        } else {
            outstanding_axis()
        };
        let mut drawn = lines(&trials, x, outstanding_of, figure);
        let asked = asked(&trials);
        // Large requests span several members, so it is not known how the members share the queue.
        drawn.guides.extend(match (each, asked.stream) {
            (true, _) => ideals(&drawn, asked),
            (false, false) => ideals_shared(&drawn, asked),
            (false, true) => Vec::new(),
        });
        let what = if figure == Figure::Mbps {
            drawn.guides.extend(ceilings(limits, op));
            "large requests in sequence"
        } else {
            "small requests at random"
        };
        push(section, format!("How does {} {what} grow with the queue?", done(op)), Chart::Lines(drawn));
    }
}

/// M29: rate over the size of the cache.
pub fn cache_sizes(section: &mut ReportSection, all: &[&CellTrial]) {
    for (pattern, trials) in grouped(all, |spec| spec.pattern.clone()) {
        let x = ChartAxis::new("cache", Unit::named("MiB"), Scale::Linear);
        let drawn = lines(&trials, x, |spec| spec.axes.cache_mib.map(f64::from), Figure::of_pattern(&pattern));
        let answer = findings::enough(&drawn, "cache");
        push_answered(section, format!("How much cache pays ({})?", title(&pattern)), answer, Chart::Lines(drawn));
    }
}

/// Cells of no method: lines over the numeric axis with most values, and one chart for each value of the other axes.
pub fn free(section: &mut ReportSection, all: &[&CellTrial]) {
    const NUMERIC: [&str; 7] = ["qd", "oio", "bs", "rd", "th", "cache_mib", "workers"];
    let changing = varying(all);
    let numeric = changing.iter().filter(|(name, _)| NUMERIC.contains(&name.as_str()));
    let axis = numeric.max_by_key(|(_, count)| *count).map(|(name, _)| name.clone());
    let others: Vec<String> =
        changing.iter().map(|(name, _)| name.clone()).filter(|name| Some(name) != axis.as_ref()).collect();
    for (words, trials) in grouped(all, |spec| axes_words(spec, &others)) {
        let Some(first) = trials.first() else { continue };
        let figure = Figure::of_pattern(&first.spec.pattern);
        let with = if words.is_empty() { String::new() } else { format!(" ({words})") };
        let Some(axis) = &axis else {
            push(section, format!("Which array is best{with}?"), bars_of(&trials, figure));
            continue;
        };
        let x = match axis.as_str() {
            "bs" => size_axis(),
            "rd" => ChartAxis::new("reads", Unit::Percent, Scale::Linear),
            "cache_mib" => ChartAxis::new("cache", Unit::named("MiB"), Scale::Linear),
            "th" => ChartAxis::new("clients", Unit::None, Scale::Linear),
            "workers" => ChartAxis::new("workers", Unit::None, Scale::Log2),
            _ => outstanding_axis(),
        };
        let place = |spec: &CellSpec| super::curve::named_axes(spec).get(axis).and_then(|value| value.parse().ok());
        let drawn = lines_of(&trials, x, place, figure, subject);
        push(section, format!("How does the speed change with {}{with}?", spoken(axis)), Chart::Lines(drawn));
    }
}

/// The name of an axis within a sentence.
fn spoken(axis: &str) -> &str {
    match axis {
        "bs" => "the size of a request",
        "rd" => "the share of reads",
        "cache_mib" => "the cache",
        "th" => "the number of clients",
        "workers" => "the number of workers",
        _ => "the queue",
    }
}
