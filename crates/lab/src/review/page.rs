//! From results to the data of a report: each method's shape decides which charts and tables are made of it.

use super::figures::{axis, bars, lines, panel, values, WAYS};
use super::tables;
use super::{CellOutcome, MethodOutcome, ReviewResults};
use crate::cell::{CellResult, CellSpec, Direction, FileSet, FileSystem, Pattern};
use crate::method::{find, Shape};
use crate::report::data::{
    Absent, Axis, Better, Chart, Fact, Lines, Panel, Point, Review, Scale, Section, Series, Table, Unit,
};

/// Absences named one by one in a section; more are summed up.
const ABSENT_MAX: usize = 12;
/// From this size on a random request is judged by its rate.
const RATE_BYTES: u32 = 64 << 10;

/// The report of a review; [`crate::report::findings::explain`] adds the sentences.
#[must_use]
pub fn to_report(results: &ReviewResults) -> Review {
    let kind = if results.simulated { "simulated" } else { "measured" };
    let mut bed: Vec<Fact> = results.bed.iter().map(|line| fact(line)).collect();
    bed.push(Fact::new("results", kind));
    bed.push(Fact::new("version", results.stamp.clone()));
    bed.push(Fact::new("seed", results.seed.to_string()));
    bed.extend(results.rules.iter().map(|(id, text)| Fact::new(id.clone(), text.clone())));
    Review {
        title: format!("Review of {}", results.target),
        summary: Vec::new(),
        bed,
        sections: results.methods.iter().map(section).collect(),
        files: vec![Fact::new("all results", "results.json"), Fact::new("in fio's shape", "fio.json")],
        glossary: glossary(),
    }
}

fn fact(line: &str) -> Fact {
    match line.split_once(": ") {
        Some((name, value)) => Fact::new(name, value),
        None => Fact::new("note", line),
    }
}

fn glossary() -> Vec<Fact> {
    let words = [
        ("depth", "requests that one worker keeps outstanding at the same time"),
        ("IOPS", "requests that end each second"),
        ("MB/s", "million bytes each second"),
        ("write-back", "writes are acknowledged when they are in the controller's memory"),
        ("write-through", "writes are acknowledged when they are on the drives"),
        ("read-modify-write", "old data and old parity are read before a part of a stripe is written"),
        ("p99", "99 of 100 requests take no longer than this"),
    ];
    words.iter().map(|(word, meaning)| Fact::new(*word, *meaning)).collect()
}

fn section(method: &MethodOutcome) -> Section {
    let mut section = Section {
        method: format!("{} {}", method.id, method.title),
        question: method.question.clone(),
        ..Section::default()
    };
    if let Some(reason) = &method.refusal {
        section.absent.push(Absent { what: method.title.clone(), reason: reason.clone() });
        return section;
    }
    let cells = &method.cells[..];
    if let Some(shape) = find(&method.name).map(|known| known.shape) {
        let (panels, made) = drawn(shape, cells);
        section.panels = panels;
        section.tables = made;
    }
    section.absent = absent_words(cells);
    section.how = how(cells);
    section
}

fn how(cells: &[CellOutcome]) -> Vec<String> {
    let mut notes = vec![format!("{} cells", cells.len())];
    let unsteady = cells.iter().filter(|known| {
        known.outcome.result().is_some_and(|result| result.notes.iter().any(|note| note.contains("NOT steady")))
    });
    let unsteady = unsteady.count();
    if unsteady > 0 {
        notes.push(format!("{unsteady} of them had not become steady when they were measured"));
    }
    if let Some(result) = cells.iter().find_map(|known| known.outcome.result()) {
        notes.push(format!("up to {} requests each", result.spec.effort.requests));
    }
    notes
}

/// Cells without a result, those of one subject and reason together.
#[must_use]
pub fn absent_words(cells: &[CellOutcome]) -> Vec<Absent> {
    let mut found: Vec<Absent> = Vec::new();
    for known in cells {
        let Some(absence) = known.outcome.absence() else { continue };
        let absent = Absent { what: known.cell.subject.title(), reason: absence.reason.clone() };
        if !found.contains(&absent) {
            found.push(absent);
        }
    }
    if found.len() > ABSENT_MAX {
        let more = found.len() - ABSENT_MAX;
        found.truncate(ABSENT_MAX);
        found.push(Absent { what: format!("{more} more"), reason: "see the file of results".into() });
    }
    found
}

fn drawn(shape: Shape, cells: &[CellOutcome]) -> (Vec<Panel>, Vec<Table>) {
    match shape {
        Shape::Shares => (shares(cells), Vec::new()),
        Shape::Sizes => (sizes(cells), Vec::new()),
        Shape::Depths => (depths(cells), tables::ratings(cells)),
        Shape::Clients => (clients(cells), Vec::new()),
        Shape::Bars => (plain(cells), Vec::new()),
        Shape::Files => (file_bars(cells), tables::files(cells)),
        Shape::Graph => (graph(cells), Vec::new()),
        Shape::Scores => (Vec::new(), tables::scores(cells)),
        Shape::Ratios => (Vec::new(), tables::ratios(cells)),
        Shape::Pairs => (Vec::new(), tables::pairs(cells)),
        Shape::Outstanding => (outstanding(cells), Vec::new()),
        Shape::Latencies => (latencies(cells), Vec::new()),
        Shape::CacheSizes => (cache_sizes(cells), Vec::new()),
        Shape::States => (Vec::new(), tables::states(cells)),
    }
}

fn shares(cells: &[CellOutcome]) -> Vec<Panel> {
    let depths = values(cells, |cell| cell.axes.qd);
    let panels = depths.into_iter().filter_map(|qd| {
        let axes = (axis::reads(), axis::iops());
        let x = |cell: &CellSpec| f64::from(cell.axes.rd.unwrap_or(0));
        let chart = lines(cells, axes, |cell| cell.axes.qd == Some(qd), x, |result| result.iops);
        panel(format!("How many requests a second at {qd} outstanding?"), "", chart)
    });
    panels.collect()
}

fn size(cell: &CellSpec) -> f64 {
    f64::from(cell.axes.bs.unwrap_or(0))
}

fn sizes(cells: &[CellOutcome]) -> Vec<Panel> {
    let random = cells.first().is_some_and(|known| known.cell.pattern == Pattern::Random);
    let mut panels = Vec::new();
    for (way, words) in WAYS {
        let of_way = |cell: &CellSpec| cell.axes.op == Some(way);
        if random {
            let small = |cell: &CellSpec| of_way(cell) && cell.axes.bs.is_some_and(|bs| bs <= RATE_BYTES);
            let chart = lines(cells, (axis::sizes(), axis::iops()), small, size, |result| result.iops);
            panels.extend(panel(format!("Random {words}: how many small requests a second?"), "small", chart));
            let large = |cell: &CellSpec| of_way(cell) && cell.axes.bs.is_some_and(|bs| bs >= RATE_BYTES);
            let chart = lines(cells, (axis::sizes(), axis::mbps()), large, size, |result| result.mbps);
            panels.extend(panel(format!("Random {words}: which rate do large requests reach?"), "large", chart));
        } else {
            let chart = lines(cells, (axis::sizes(), axis::mbps()), of_way, size, |result| result.mbps);
            panels.extend(panel(format!("How fast is {words} in sequence?"), "", chart));
        }
    }
    panels
}

fn depth(cell: &CellSpec) -> f64 {
    f64::from(cell.axes.qd.unwrap_or(1))
}

fn depths(cells: &[CellOutcome]) -> Vec<Panel> {
    let mut zones: Vec<Option<_>> = values(cells, |cell| cell.axes.zone).into_iter().map(Some).collect();
    if zones.is_empty() {
        zones.push(None);
    }
    let panels = zones.into_iter().filter_map(|zone| {
        let axes = (axis::outstanding(), axis::iops());
        let chart = lines(cells, axes, |cell| cell.axes.zone == zone, depth, |result| result.iops);
        let words = zone.map_or(String::new(), |zone| format!(" (zone {zone})"));
        panel(format!("How many requests a second by depth{words}?"), "depth", chart)
    });
    panels.collect()
}

fn clients(cells: &[CellOutcome]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (way, words) in WAYS {
        for qd in values(cells, |cell| cell.axes.qd) {
            let of_panel = |cell: &CellSpec| cell.axes.op == Some(way) && cell.axes.qd == Some(qd);
            let x = Axis::new("clients", Unit::None, Scale::Linear);
            let of = |cell: &CellSpec| f64::from(cell.axes.th.unwrap_or(1));
            let chart = lines(cells, (x, axis::mbps()), of_panel, of, |result| result.mbps);
            let question = format!("What do several clients get together, {words} at {qd} outstanding each?");
            panels.extend(panel(question, way.word(), chart));
        }
    }
    panels
}

fn milliseconds() -> Axis {
    Axis::new("mean response", Unit::named("ms"), Scale::Linear).better(Better::Lower)
}

fn plain(cells: &[CellOutcome]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for way in [None, Some(Direction::Read), Some(Direction::Write)] {
        let words = way.map_or("", |way| if way == Direction::Read { " of reads" } else { " of writes" });
        let response = |cell: &CellSpec| cell.pattern == Pattern::ResponseTime && cell.axes.op == way;
        let chart = bars(cells, milliseconds(), "", response, CellResult::mean_ms);
        panels.extend(panel(format!("What is the mean response time{words}?"), "", chart));
        let rate = |cell: &CellSpec| cell.pattern == Pattern::Sequential && cell.axes.op == way;
        let chart = bars(cells, axis::mbps(), "", rate, |result| result.mbps);
        panels.extend(panel(format!("How fast is one stream{words}?"), "", chart));
        let share = Axis::new("host's processor", Unit::Percent, Scale::Linear).better(Better::Lower);
        let busy = |result: &CellResult| result.host_cpu.unwrap_or(0.0) * 100.0;
        let chart = if way.is_none() { bars(cells, share, "", rate, busy) } else { None };
        panels.extend(panel("How much of the host's processor does one stream take?".into(), "", chart));
    }
    panels
}

fn file_bars(cells: &[CellOutcome]) -> Vec<Panel> {
    let panels = values(cells, |cell| cell.axes.step).into_iter().filter_map(|step| {
        let of_panel = |cell: &CellSpec| {
            let axes = &cell.axes;
            axes.step == Some(step) && axes.set == Some(FileSet::Iso) && axes.fs == Some(FileSystem::Ntfs)
        };
        let chart = bars(cells, axis::mbps(), "bytes of files / time", of_panel, |result| result.mbps);
        panel(format!("{}: how fast with large files?", tables::step_words(step)), "", chart)
    });
    panels.collect()
}

/// A line over the place for each cell.
fn graph(cells: &[CellOutcome]) -> Vec<Panel> {
    let series = cells.iter().filter_map(|known| {
        let result = known.outcome.result()?;
        let capacity = result.capacity.max(1) as f64;
        let points = result.curve.iter().map(|sample| Point::exact(sample.at / capacity * 100.0, sample.value));
        Some(Series::line(super::figures::shown(&known.cell), points.collect()))
    });
    let series: Vec<Series> = series.collect();
    if series.is_empty() {
        return Vec::new();
    }
    let x = Axis::new("of the capacity", Unit::Percent, Scale::Linear);
    let chart = Chart::Lines(Lines { x, y: axis::mbps(), series, guides: Vec::new() });
    vec![Panel::new("How fast is it read from begin to end?", chart)]
}

fn outstanding(cells: &[CellOutcome]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (pattern, name) in [(Pattern::SsdSequential, "128 KiB in sequence"), (Pattern::SsdRandom, "4 KiB at random")] {
        for (way, words) in WAYS {
            let of_panel = |cell: &CellSpec| cell.pattern == pattern && cell.axes.op == Some(way);
            let x = |cell: &CellSpec| {
                let workers = u32::from(cell.subject.members().max(1));
                f64::from(cell.axes.oio.unwrap_or_else(|| cell.axes.qd.unwrap_or(1) * workers))
            };
            let rate = pattern == Pattern::SsdSequential;
            let y = if rate { axis::mbps() } else { axis::iops() };
            let of = |result: &CellResult| if rate { result.mbps } else { result.iops };
            let chart = lines(cells, (axis::outstanding(), y), of_panel, x, of);
            panels.extend(panel(format!("{name}, {words}: what do more outstanding requests bring?"), "", chart));
        }
    }
    panels
}

/// Latency by percentile.
fn latencies(cells: &[CellOutcome]) -> Vec<Panel> {
    let panels = WAYS.into_iter().filter_map(|(way, words)| {
        let of_way = cells.iter().filter(|known| known.cell.axes.op == Some(way));
        let series = of_way.filter_map(|known| {
            let result = known.outcome.result()?;
            let points = result.latency.percentiles.iter();
            let points = points.map(|(percent, value)| Point::exact(*percent, *value as f64 / 1e3)).collect();
            Some(Series::line(super::figures::shown(&known.cell), points))
        });
        let series: Vec<Series> = series.collect();
        if series.is_empty() {
            return None;
        }
        let x = Axis::new("of requests", Unit::Percent, Scale::Nines);
        let y = Axis::new("response", Unit::named("us"), Scale::Log10).better(Better::Lower);
        let chart = Chart::Lines(Lines { x, y, series, guides: Vec::new() });
        Some(Panel::new(format!("How long do the fastest and the slowest requests take, {words}?"), chart))
    });
    panels.collect()
}

fn cache_sizes(cells: &[CellOutcome]) -> Vec<Panel> {
    let panels = [Pattern::Database, Pattern::FileServer].into_iter().filter_map(|pattern| {
        let x = Axis::new("MiB of cache", Unit::None, Scale::Linear);
        let of = |cell: &CellSpec| f64::from(cell.axes.cache_mib.unwrap_or(0));
        let chart = lines(cells, (x, axis::iops()), |cell| cell.pattern == pattern, of, |result| result.iops);
        panel(format!("{}: what does more cache bring at 16 outstanding?", pattern.name()), "", chart)
    });
    panels.collect()
}
