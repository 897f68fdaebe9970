//! The accuracy of ranges for machines that the models were not built for: published figures of drives,
//! hosts and file systems of which less is known.
//!
//! `models/validation/cells.json` has the figures with their sources, the cell that predicts each one, and what the last
//! run gave: the prediction, and its range in percent below and above without the terms for unknown parts, quick and
//! with the profiles' values varied. With `OPENRAID_BLESS=1` the long test writes them, and the short one the tables in
//! docs/lab/calibration.md and models/validation/README.md.
//!
//! A term is fitted by the figures that need it, and a figure is judged by terms that were fitted without its fold: the
//! figures of one drive in one source.

use openraid_methods::cell::{run_cell, Axes, CellSpec, Direction, Effort, Level, Pattern};
use openraid_methods::plan::{
    widened, ErrorTerm, Knowledge, LoadClass, PlanRequest, Planned, ProfileFit, Range, StandIns, FRESH,
};
use openraid_models::Library;
use serde_json::Value;
use std::path::PathBuf;

const CELLS: &str = include_str!("../../../models/validation/cells.json");
const BEGIN: &str = "<!-- fresh ranges: written by a test -->\n";
const END: &str = "<!-- end of fresh ranges -->";

/// How a range was made.
#[derive(Clone, Copy)]
enum Kind {
    /// Without runs at the ends of the profiles' values.
    Quick,
    /// With them.
    Varied,
}

/// A published figure. A time counts as the rate that it is of: one divided by it.
struct Figure {
    config: String,
    fold: String,
    group: String,
    class: LoadClass,
    knowledge: Knowledge,
    /// The published figure divided by the prediction.
    ratio: f64,
    quick: (f64, f64),
    varied: (f64, f64),
}

fn rows() -> Vec<Value> {
    serde_json::from_str(CELLS).expect("a list")
}

/// The cell of a row; of the time of a rebuild, a stream of writes on its array.
fn cell(row: &Value) -> CellSpec {
    let rebuild = &row["rebuild"];
    if rebuild.is_null() {
        return serde_json::from_value(row["cell"].clone()).expect("a cell");
    }
    let text = |key: &str| rebuild[key].as_str().expect("a name").to_owned();
    let axes = Axes { drive: Some(text("drive")), op: Some(Direction::Write), ..Axes::default() };
    CellSpec::new(&text("system"), "raid1x2".parse().expect("an array"), Pattern::Sequential).with(axes)
}

fn knowledge(library: &Library, row: &Value) -> Knowledge {
    let stand_ins = StandIns { drive: row["nearest"].as_bool().expect("yes or no"), host: false };
    Knowledge::of(library, &cell(row), stand_ins).expect("profiles")
}

fn figures() -> Vec<Figure> {
    let library = Library::builtin();
    let figure = |row: &Value| {
        let number = |value: &Value| value.as_f64().expect("a number");
        let text = |key: &str| row[key].as_str().expect("a text").to_owned();
        let pair = |key: &str| (number(&row[key][0]), number(&row[key][1]));
        let ratio = number(&row["measured"]) / number(&row["model"]);
        Figure {
            config: text("config"),
            fold: text("fold"),
            group: text("group"),
            class: LoadClass::of(&cell(row)),
            knowledge: knowledge(&library, row),
            ratio: if row["unit"] == "hours" { 1.0 / ratio } else { ratio },
            quick: pair("quick"),
            varied: pair("varied"),
        }
    };
    rows().iter().map(figure).collect()
}

/// The factors of the terms, in the order of `ErrorTerm::ALL`.
type Factors = [f64; ErrorTerm::ALL.len()];

impl Figure {
    fn has(&self, term: ErrorTerm) -> bool {
        self.knowledge.terms(self.class).any(|known| known == term)
    }

    /// The range in percent below and above, with terms of these factors.
    fn range(&self, kind: Kind, factors: Factors) -> (f64, f64) {
        let terms = ErrorTerm::ALL.into_iter().zip(factors).filter(|(term, _)| self.has(*term));
        let base = if matches!(kind, Kind::Quick) { self.quick } else { self.varied };
        terms.fold(base, |range, (term, factor)| widened(range, term.percent(factor)))
    }

    fn lies_in(&self, (low, high): (f64, f64)) -> bool {
        let percent = (self.ratio - 1.0) * 100.0;
        -low <= percent && percent <= high
    }

    /// The least factor of a term, in steps of 0.01, with which the figure lies in its range. A term that only lowers a
    /// figure cannot help one that is too high.
    fn needs(&self, term: ErrorTerm, factors: Factors) -> f64 {
        let with = |factor: f64| {
            let mut factors = factors;
            factors[term as usize] = factor;
            self.lies_in(self.range(Kind::Quick, factors))
        };
        if with(1.0) || (self.ratio > 1.0 && term.percent(2.0).1 == 0.0) {
            return 1.0;
        }
        (100..2000).map(|step| f64::from(step) / 100.0).find(|factor| with(*factor)).expect("wide enough")
    }
}

/// The factors that contain four in five of these figures. The drives' term comes first, from the figures that have no
/// other: no host is known in any figure of a stream.
fn fitted(figures: &[&Figure]) -> Factors {
    let mut factors = [1.0; ErrorTerm::ALL.len()];
    for term in ErrorTerm::ALL {
        let is_alone = |figure: &&&Figure| {
            term != ErrorTerm::NearestDrive || figure.knowledge.terms(figure.class).all(|known| known == term)
        };
        let of_term = figures.iter().filter(|figure| figure.has(term)).filter(is_alone);
        let mut needed: Vec<f64> = of_term.map(|figure| figure.needs(term, factors)).collect();
        needed.sort_by(f64::total_cmp);
        let place = (needed.len() * 4).div_ceil(5).checked_sub(1);
        factors[term as usize] = place.map_or(1.0, |place| needed[place]);
    }
    factors
}

/// The factors for a figure, fitted without its fold.
fn of_others(all: &[Figure], figure: &Figure) -> Factors {
    fitted(&all.iter().filter(|other| other.fold != figure.fold).collect::<Vec<_>>())
}

fn path(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)
}

#[test]
fn four_of_five_figures_of_other_machines_lie_in_a_range_fitted_without_their_source() {
    let all = figures();
    let factors = fitted(&all.iter().collect::<Vec<_>>());
    for (term, factor) in ErrorTerm::ALL.into_iter().zip(factors) {
        let rounded = (factor * 20.0 - 1e-9).ceil() / 20.0;
        assert!((term.factor() - rounded).abs() < 1e-9, "{term:?}: {factor} is needed, {} stated", term.factor());
    }
    let inside: Vec<&Figure> =
        all.iter().filter(|figure| figure.lies_in(figure.range(Kind::Quick, of_others(&all, figure)))).collect();
    let found: Vec<(&str, usize, usize)> = FRESH
        .iter()
        .map(|(group, ..)| {
            let of = |figure: &&Figure| figure.group == *group;
            (*group, inside.iter().copied().filter(of).count(), all.iter().filter(of).count())
        })
        .collect();
    assert_eq!(found, FRESH, "a plan tells these shares");
    assert_eq!(found.iter().map(|group| group.2).sum::<usize>(), all.len(), "each figure is in a group");
    assert!(inside.len() * 5 >= all.len() * 4, "{} of {}", inside.len(), all.len());
}

#[test]
fn varied_values_never_make_a_range_narrower() {
    for figure in figures() {
        let (quick, varied) = (figure.quick, figure.varied);
        assert!(varied.0 > quick.0 - 0.1 && varied.1 > quick.1 - 0.1, "{}: {quick:?} {varied:?}", figure.config);
    }
}

/// A row of the table: figures inside of all, and the mean width, for the model's error alone and with the terms by fold.
fn row(name: &str, all: &[Figure], of: impl Fn(&Figure) -> bool) -> String {
    let figures: Vec<&Figure> = all.iter().filter(|figure| of(figure)).collect();
    let plain = |figure: &Figure| (figure.class.percent(), figure.class.percent());
    let share = |range: &dyn Fn(&Figure) -> (f64, f64)| {
        let inside = figures.iter().filter(|figure| figure.lies_in(range(figure))).count();
        let widths: f64 = figures.iter().map(|figure| range(figure)).map(|(low, high)| low + high).sum();
        format!("{inside} of {}, {:.0} %", figures.len(), widths / figures.len().max(1) as f64)
    };
    let by_fold = |kind: Kind| move |figure: &Figure| figure.range(kind, of_others(all, figure));
    let (quick, varied) = (by_fold(Kind::Quick), by_fold(Kind::Varied));
    format!("| {name} | {} | {} | {} |\n", share(&plain), share(&quick), share(&varied))
}

/// The table of the groups of figures.
fn group_table(all: &[Figure]) -> String {
    let mut text = String::from("| Group | model's error alone | plan, quick | with `--range` |\n|---|---|---|---|\n");
    FRESH.iter().for_each(|(group, ..)| text.push_str(&row(group, all, |figure| figure.group == *group)));
    text.push_str(&row("all", all, |_| true));
    text
}

/// The table of all figures, each with its range.
fn figure_table(all: &[Figure]) -> String {
    let mut text = String::from("| Figure | published / predicted | quick range by fold |\n|---|---|---|\n");
    for figure in all {
        let (low, high) = figure.range(Kind::Quick, of_others(all, figure));
        let word = if figure.lies_in((low, high)) { "" } else { ", outside" };
        text.push_str(&format!(
            "| {} | {:.2} | {:.2} to {:.2}{word} |\n",
            figure.config,
            figure.ratio,
            1.0 - low / 100.0,
            1.0 + high / 100.0
        ));
    }
    text
}

#[test]
fn the_pages_have_what_the_recorded_ranges_come_to() {
    let all = figures();
    for (page, wanted) in
        [("docs/lab/calibration.md", group_table(&all)), ("models/validation/README.md", figure_table(&all))]
    {
        let text = std::fs::read_to_string(path(page)).expect("the page");
        let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
        let (found, after) = rest.split_once(END).expect("the end of the table");
        if std::env::var_os("OPENRAID_BLESS").is_some() {
            std::fs::write(path(page), format!("{before}{BEGIN}{wanted}{END}{after}")).expect("written");
        } else {
            assert_eq!(found, wanted, "{page} and cells.json differ: OPENRAID_BLESS=1 writes the table again");
        }
    }
}

/// A range without the terms of unknown parts.
fn without((low, high): (f64, f64), unknown: [f64; 2]) -> (f64, f64) {
    let rest = |all: f64, term: f64| (all * all - term * term).max(0.0).sqrt();
    let below = |percent: f64| -(-percent / 100.0).ln_1p();
    let above = |percent: f64| (percent / 100.0).ln_1p();
    let low = -(-rest(below(low), below(unknown[0]))).exp_m1() * 100.0;
    (low, rest(above(high), above(unknown[1])).exp_m1() * 100.0)
}

/// The time of a rebuild without load in hours, and its range as one of the rate.
fn rebuild(library: &Library, row: &Value, varied: bool) -> (f64, (f64, f64)) {
    let spec = cell(row);
    let request = PlanRequest {
        system: spec.system.clone(),
        drive: spec.axes.drive.clone(),
        drives: 2,
        levels: vec![Level::Raid1],
        pattern: Pattern::Random,
        axes: Axes::default(),
        effort: Effort { requests: 100, ..Effort::QUICK },
        seed: 1,
        thorough: varied,
        trace: None,
        replacement_hours: 0,
        stand_ins: StandIns::default(),
    };
    let planned = request.run(library, 2, |_, _| {}).expect("a plan");
    let [Planned::Possible(plan)] = planned.as_slice() else { panic!("a mirror is possible") };
    let rebuild = plan.rebuild.as_ref().expect("a mirror survives a failure");
    let hours = rebuild.idle_hours.expect("a time");
    let [least, most] = rebuild.idle_hours_range.expect("a range");
    let terms = knowledge(library, row).terms(LoadClass::Streams).filter(|term| *term == ErrorTerm::UnknownHost);
    let (low, high) = terms.map(|term| term.percent(term.factor())).fold((0.0, 0.0), widened);
    (hours, without(((1.0 - hours / most) * 100.0, (hours / least - 1.0) * 100.0), [low, high]))
}

/// Today's prediction of a row, and its range without terms, quick and varied.
fn predicted(library: &Library, row: &Value) -> (f64, [(f64, f64); 2]) {
    if !row["rebuild"].is_null() {
        let (hours, quick) = rebuild(library, row, false);
        return (hours, [quick, rebuild(library, row, true).1]);
    }
    let result = run_cell(library, &cell(row)).expect("it runs");
    let known = Knowledge { drive: ProfileFit::Sheet, host: ProfileFit::Sheet, ..knowledge(library, row) };
    let range = |varied| {
        let range = Range::run(library, &result, (known, varied), 2, |_, _| {}).expect("a range");
        (range.low_percent, range.high_percent)
    };
    let figure = if row["unit"] == "mbps" { result.mbps } else { result.iops };
    (figure, [range(false), range(true)])
}

/// Predicts all figures again. They may differ from the recorded ones within the variation between runs.
#[test]
#[ignore = "soak: every range of the cells, with quick effort"]
fn the_models_give_the_recorded_cells() {
    let library = Library::builtin();
    let blesses = std::env::var_os("OPENRAID_BLESS").is_some();
    let round = |number: f64, steps: f64| Value::from((number * steps).round() / steps);
    let mut lines = Vec::new();
    for mut row in rows() {
        let (model, ranges) = predicted(&library, &row);
        if !blesses {
            let recorded = row["model"].as_f64().expect("a number");
            assert!((model / recorded - 1.0).abs() < 0.02, "{}: {model} now, {recorded} recorded", row["config"]);
        }
        row["model"] = round(model, 10_000.0);
        for (key, (low, high)) in ["quick", "varied"].into_iter().zip(ranges) {
            let moved =
                (row[key][0].as_f64().unwrap_or(0.0) - low).abs() + (row[key][1].as_f64().unwrap_or(0.0) - high).abs();
            assert!(blesses || moved < 4.0, "{}: {key} -{low} to +{high}", row["config"]);
            row[key] = Value::from(vec![round(low, 10.0), round(high, 10.0)]);
        }
        lines.push(format!(" {row}"));
    }
    if blesses {
        std::fs::write(path("models/validation/cells.json"), format!("[\n{}\n]\n", lines.join(",\n")))
            .expect("written");
    }
}
