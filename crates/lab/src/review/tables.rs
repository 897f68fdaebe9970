//! Tables of a report: ratings, files, scores, ratios, repetitions, states.

use super::figures::{by_depth, shown, state_words, subjects, values};
use super::CellOutcome;
use crate::cell::{CacheMode, CellResult, CellSpec, FileSet, FileStep, FileSystem, Pattern};
use crate::metrics::Scheme;
use crate::report::data::{Cell, Row, Table};

/// A table cell from a result, or the reason why there is none.
fn cell(known: Option<&CellOutcome>, of: impl Fn(&CellResult) -> f64) -> Cell {
    let Some(known) = known else { return Cell::NotApplicable("not measured".into()) };
    match (known.outcome.result(), known.outcome.absence()) {
        (Some(result), _) => Cell::Number(of(result)),
        (None, absence) => Cell::NotApplicable(absence.map_or_else(String::new, |absence| absence.reason.clone())),
    }
}

fn row(cell: &CellSpec, cells: Vec<Cell>) -> Row {
    let subject = shown(cell);
    Row { head: subject.to_string(), level: Some(subject.level), cells }
}

/// Ratings of a pattern by all schemes that its depths allow.
pub(super) fn ratings(cells: &[CellOutcome]) -> Vec<Table> {
    let Some(first) = cells.first() else { return Vec::new() };
    let pattern = first.cell.pattern.clone();
    let mut tables = Vec::new();
    for zone in zones(cells) {
        let schemes: Vec<Scheme> = Scheme::ALL
            .into_iter()
            .filter(|scheme| match pattern {
                Pattern::Workstation => *scheme != Scheme::R5,
                _ => !matches!(scheme, Scheme::R2 | Scheme::R3),
            })
            .collect();
        let rows = subjects(cells).into_iter().map(|subject| {
            let iops = by_depth(cells, |cell| cell.subject == subject && cell.axes.zone == zone);
            let rated = schemes.iter().map(|scheme| match scheme.rate(&pattern, |depth| iops.get(&depth).copied()) {
                Ok(rating) => Cell::Number(rating),
                Err(error) => Cell::NotApplicable(error.to_string()),
            });
            let any = cells.iter().find(|known| known.cell.subject == subject).map_or(&first.cell, |known| &known.cell);
            row(any, rated.collect())
        });
        let formulas = schemes.iter().map(|scheme| format!("{scheme:?} = {}", scheme.formula(&pattern)));
        tables.push(Table {
            caption: format!("Ratings{}", zone.map_or(String::new(), |zone| format!(", zone {zone}"))),
            corner: "array".into(),
            columns: schemes.iter().map(|scheme| format!("{scheme:?}")).collect(),
            rows: rows.collect(),
            formula: formulas.collect::<Vec<_>>().join("; "),
            notes: vec!["qN is the number of requests each second at depth N.".into()],
        });
    }
    tables
}

fn zones(cells: &[CellOutcome]) -> Vec<Option<crate::cell::ZoneChoice>> {
    let found = values(cells, |cell| cell.axes.zone);
    if found.is_empty() {
        vec![None]
    } else {
        found.into_iter().map(Some).collect()
    }
}

/// MB/s of file sets: a table for each file system and step.
pub(super) fn files(cells: &[CellOutcome]) -> Vec<Table> {
    let sets: Vec<FileSet> = values(cells, |cell| cell.axes.set);
    let mut tables = Vec::new();
    for fs in values(cells, |cell| cell.axes.fs) {
        for step in values(cells, |cell| cell.axes.step) {
            tables.push(file_table(cells, fs, step, &sets));
        }
    }
    tables
}

fn file_table(cells: &[CellOutcome], fs: FileSystem, step: FileStep, sets: &[FileSet]) -> Table {
    let find = |subject, set| {
        cells.iter().find(|known| {
            let axes = &known.cell.axes;
            known.cell.subject == subject && axes.fs == Some(fs) && axes.step == Some(step) && axes.set == Some(set)
        })
    };
    let rows = subjects(cells).into_iter().filter_map(|subject| {
        let any = cells.iter().find(|known| known.cell.subject == subject)?;
        Some(row(&any.cell, sets.iter().map(|set| cell(find(subject, *set), |result| result.mbps)).collect()))
    });
    Table {
        caption: format!("{}, {}: MB/s", step_words(step), fs.word().to_uppercase()),
        corner: "array".into(),
        columns: sets.iter().map(|set| set.word().to_owned()).collect(),
        rows: rows.collect(),
        formula: "bytes of files / time; a copy counts its bytes once".into(),
        notes: Vec::new(),
    }
}

/// A step of the file-copy test in words.
pub(super) fn step_words(step: FileStep) -> &'static str {
    match step {
        FileStep::Create => "Creating files",
        FileStep::Read => "Reading files",
        FileStep::CopySame => "Copying files within the partition",
        FileStep::CopyOther => "Copying files to the other partition",
    }
}

/// Scores of applications: a column for each application and cache size, then what the larger cache brings.
pub(super) fn scores(cells: &[CellOutcome]) -> Vec<Table> {
    let sizes = values(cells, |cell| cell.axes.cache_mib);
    let apps = values(cells, |cell| cell.axes.app);
    let mut tables = Vec::new();
    for fs in values(cells, |cell| cell.axes.fs) {
        let find = |subject, app, size: Option<u32>| {
            cells.iter().find(|known| {
                let axes = &known.cell.axes;
                known.cell.subject == subject && axes.fs == Some(fs) && axes.app == Some(app) && axes.cache_mib == size
            })
        };
        let of_score = |result: &CellResult| result.score.unwrap_or(0.0);
        let shown_sizes: Vec<Option<u32>> =
            if sizes.is_empty() { vec![None] } else { sizes.iter().copied().map(Some).collect() };
        let mut columns = Vec::new();
        for app in &apps {
            columns.extend(shown_sizes.iter().map(|size| match size {
                Some(size) => format!("{app} {size} MiB"),
                None => app.word().to_owned(),
            }));
            if shown_sizes.len() == 2 {
                columns.push(format!("{app} gain"));
            }
        }
        let rows = subjects(cells).into_iter().filter_map(|subject| {
            let any = cells.iter().find(|known| known.cell.subject == subject)?;
            let mut shown = Vec::new();
            for app in &apps {
                shown.extend(shown_sizes.iter().map(|size| cell(find(subject, *app, *size), of_score)));
                if let [low, high] = shown_sizes[..] {
                    shown.push(change(find(subject, *app, low), find(subject, *app, high), of_score));
                }
            }
            Some(row(&any.cell, shown))
        });
        tables.push(Table {
            caption: format!("Scores with {}, thousand bytes a second", fs.word().to_uppercase()),
            corner: "array".into(),
            columns,
            rows: rows.collect(),
            formula: "bytes / time / 1000".into(),
            notes: vec!["The applications are imitated; only ratios between cells mean something.".into()],
        });
    }
    tables
}

fn change(before: Option<&CellOutcome>, after: Option<&CellOutcome>, of: impl Fn(&CellResult) -> f64) -> Cell {
    let figure = |known: Option<&CellOutcome>| known.and_then(|known| known.outcome.result()).map(&of);
    match (figure(before), figure(after)) {
        (Some(before), Some(after)) if before > 0.0 => Cell::Change((after / before - 1.0) * 100.0),
        _ => Cell::NotApplicable("one of the two was not measured".into()),
    }
}

/// Write-back by write-through: a table for each subject, shares of reads by depth.
pub(super) fn ratios(cells: &[CellOutcome]) -> Vec<Table> {
    let depths = values(cells, |cell| cell.axes.qd);
    let shares = values(cells, |cell| cell.axes.rd);
    let tables = subjects(cells).into_iter().filter_map(|subject| {
        let of = |qd, rd, cache| {
            let known = cells.iter().find(|known| {
                let axes = &known.cell.axes;
                known.cell.subject == subject && axes.qd == Some(qd) && axes.rd == Some(rd) && axes.cache == Some(cache)
            });
            known.and_then(|known| known.outcome.result()).map(|result| result.iops)
        };
        let any = cells.iter().find(|known| known.cell.subject == subject)?;
        let rows = shares.iter().map(|rd| {
            let ratios = depths.iter().map(|qd| {
                match (of(*qd, *rd, CacheMode::WriteBack), of(*qd, *rd, CacheMode::WriteThrough)) {
                    (Some(back), Some(through)) if through > 0.0 => Cell::Ratio(back / through),
                    _ => Cell::NotApplicable("one of the two was not measured".into()),
                }
            });
            Row { head: format!("{rd} % reads"), level: None, cells: ratios.collect() }
        });
        Some(Table {
            caption: format!("{}: write-back by write-through", shown(&any.cell)),
            corner: "share of reads".into(),
            columns: depths.iter().map(|qd| format!("depth {qd}")).collect(),
            rows: rows.collect(),
            formula: "requests a second with write-back / with write-through".into(),
            notes: vec!["Above 1 the write cache helps, below 1 it harms.".into()],
        })
    });
    tables.collect()
}

/// Everything that was measured more than once: its values and how far they lie apart.
pub(super) fn pairs(cells: &[CellOutcome]) -> Vec<Table> {
    let label = |cell: &CellSpec| {
        let mut parts = vec![cell.pattern.name().to_owned()];
        let axes = &cell.axes;
        parts.extend(axes.op.map(|op| op.word().to_owned()));
        parts.extend(axes.step.map(|step| step.word().to_owned()));
        parts.extend(axes.set.map(|set| set.word().to_owned()));
        parts.extend(axes.bs.map(|bs| format!("{bs} bytes")));
        parts.extend(axes.qd.map(|qd| format!("depth {qd}")));
        parts.join(", ")
    };
    let mut labels: Vec<String> = Vec::new();
    for known in cells {
        let text = label(&known.cell);
        if !labels.contains(&text) {
            labels.push(text);
        }
    }
    let runs = |cell: &CellSpec| match (cell.axes.cyc, cell.axes.rep) {
        (Some(cycle), _) => format!("cycle {cycle}"),
        (None, Some(rep)) => format!("run {rep}"),
        (None, None) => "run".into(),
    };
    let tables = labels.into_iter().filter_map(|text| {
        let of_label: Vec<&CellOutcome> = cells.iter().filter(|known| label(&known.cell) == text).collect();
        let mut columns: Vec<String> = Vec::new();
        for known in &of_label {
            let run = runs(&known.cell);
            if !columns.contains(&run) {
                columns.push(run);
            }
        }
        let (unit, of) = figure(&of_label.first()?.cell);
        let rows = subjects(cells).into_iter().filter_map(|subject| {
            let own: Vec<&&CellOutcome> = of_label.iter().filter(|known| known.cell.subject == subject).collect();
            let find = |run: &String| own.iter().find(|known| runs(&known.cell) == *run);
            let mut shown: Vec<Cell> = columns.iter().map(|run| cell(find(run).map(|known| **known), of)).collect();
            shown.push(spread(&shown));
            Some(row(&own.first()?.cell, shown))
        });
        let rows = rows.collect();
        columns.push("spread".into());
        Some(Table {
            caption: format!("{text}: {unit}"),
            corner: "array".into(),
            columns,
            rows,
            formula: "spread = (largest - least) / mean".into(),
            notes: Vec::new(),
        })
    });
    tables.collect()
}

/// The figure that a pattern is judged by, and its unit.
fn figure(cell: &CellSpec) -> (&'static str, fn(&CellResult) -> f64) {
    match cell.pattern {
        Pattern::ResponseTime | Pattern::Latency => ("ms", CellResult::mean_ms),
        Pattern::Application => ("thousand bytes a second", |result| result.score.unwrap_or(0.0)),
        Pattern::Sequential | Pattern::MultiThreaded | Pattern::FcTest | Pattern::TransferGraph => {
            ("MB/s", |result| result.mbps)
        }
        Pattern::Random if cell.axes.bs.is_some_and(|bs| bs >= 65_536) => ("MB/s", |result| result.mbps),
        _ => ("requests a second", |result| result.iops),
    }
}

fn spread(shown: &[Cell]) -> Cell {
    let numbers: Vec<f64> = shown
        .iter()
        .filter_map(|cell| match cell {
            Cell::Number(number) => Some(*number),
            _ => None,
        })
        .collect();
    if numbers.len() < 2 {
        return Cell::NotApplicable("fewer than two runs".into());
    }
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let (least, most) = numbers.iter().fold((f64::MAX, f64::MIN), |(low, high), n| (low.min(*n), high.max(*n)));
    if mean == 0.0 {
        return Cell::NotApplicable("the mean is zero".into());
    }
    Cell::Text(format!("{:.1} %", (most - least) / mean * 100.0))
}

/// Figures of an array healthy, degraded, rebuilding.
pub(super) fn states(cells: &[CellOutcome]) -> Vec<Table> {
    let column = |cell: &CellSpec| {
        let (unit, _) = figure(cell);
        let way = match (cell.axes.op, cell.axes.rd) {
            (Some(op), _) => op.word().to_owned(),
            (None, Some(rd)) => format!("{rd} % reads"),
            (None, None) => String::new(),
        };
        format!("{} {way}, {unit}", cell.pattern.name())
    };
    let mut columns: Vec<String> = Vec::new();
    for known in cells {
        let text = column(&known.cell);
        if !columns.contains(&text) {
            columns.push(text);
        }
    }
    let mut rows = Vec::new();
    for subject in subjects(cells) {
        let own: Vec<&CellOutcome> = cells.iter().filter(|known| known.cell.subject == subject).collect();
        let mut states = Vec::new();
        for known in &own {
            if !states.contains(&known.cell.state) {
                states.push(known.cell.state);
            }
        }
        for state in states {
            let find = |text: &String| {
                own.iter().find(|known| known.cell.state == state && column(&known.cell) == *text).copied()
            };
            let shown_cells = columns.iter().map(|text| {
                let known = find(text);
                cell(known, |result| known.map_or(0.0, |known| figure(&known.cell).1(result)))
            });
            let base = CellSpec { state: crate::cell::ArrayState::Healthy, ..own[0].cell.clone() };
            let mut line = row(&base, shown_cells.collect());
            line.head = format!("{}, {}", line.head, state_words(state));
            rows.push(line);
        }
    }
    vec![Table {
        caption: "Healthy, degraded, rebuilding".into(),
        corner: "array".into(),
        columns,
        rows,
        formula: String::new(),
        notes: Vec::new(),
    }]
}
