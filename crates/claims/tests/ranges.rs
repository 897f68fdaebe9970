//! The accuracy of ranges: published figures that were not used for tuning are compared with the predictions of the
//! models and their own error.
//!
//! `models/validation/figures.json` has the figures, the calls that predict each figure, and the results of the last
//! run. With `OPENRAID_BLESS=1` the long test writes the predictions, and the short one the table in
//! docs/lab/calibration.md.

use openraid_claims::fold::{self, FOLDS};
use openraid_claims::{evaluate, read, Claim, ClaimStore, MetricValue, Simulated, REVIEWS};
use openraid_methods::cell::Effort;
use openraid_methods::plan::{LoadClass, JUDGED};
use openraid_models::Library;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

const FIGURES: &str = include_str!("../../../models/validation/figures.json");
const RESULTS: &str = include_str!("../../../models/validation/results.json");
const BEGIN: &str = "<!-- ranges: written by a test -->\n";
const END: &str = "<!-- end of ranges -->";

struct Figure {
    claim: Claim,
    class: LoadClass,
    /// A call, or two calls whose ratio was published.
    calls: Vec<String>,
    published: f64,
    model: f64,
}

impl Figure {
    /// Whether the published figure is within the model's own error of the prediction.
    fn is_inside(&self) -> bool {
        self.lies_within(self.class.percent())
    }

    fn lies_within(&self, percent: f64) -> bool {
        self.error() <= percent
    }

    /// The error in percent of the prediction.
    fn error(&self) -> f64 {
        (self.published / self.model - 1.0).abs() * 100.0
    }
}

fn figures() -> Vec<Figure> {
    let claims = read(REVIEWS).expect("the built-in claims").claims;
    let list: Vec<Value> = serde_json::from_str(FIGURES).expect("a list");
    let figure = |row: &Value| {
        let (id, class) = (row["claim"].as_str().expect("an id"), row["class"].as_str().expect("a class"));
        let calls = row["calls"].as_array().expect("calls").iter();
        Figure {
            claim: claims.iter().find(|claim| claim.id == id).unwrap_or_else(|| panic!("no claim {id}")).clone(),
            class: LoadClass::ALL.into_iter().find(|known| known.name() == class).expect("a class of loads"),
            calls: calls.map(|call| call.as_str().expect("a call").to_owned()).collect(),
            published: row["published"].as_f64().expect("a number"),
            model: row["model"].as_f64().expect("a number"),
        }
    };
    list.iter().map(figure).collect()
}

fn path(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)
}

/// `inside of all`, and the share.
fn share(figures: &[&Figure]) -> String {
    let (all, inside) = (figures.len(), figures.iter().filter(|figure| figure.is_inside()).count());
    match all {
        0 => "-".into(),
        _ => format!("{inside} of {all} ({} %)", (inside * 200 + all) / (2 * all)),
    }
}

fn table(figures: &[Figure]) -> String {
    let mut text = String::from("| Fold |");
    LoadClass::ALL.iter().for_each(|class| text.push_str(&format!(" {} (+-{:.0} %) |", class.name(), class.percent())));
    text.push_str(" all |\n|---|---|---|---|---|---|\n");
    let mut row = |name: &str, of: &dyn Fn(&Figure) -> bool| {
        let pick = |class: Option<LoadClass>| {
            let is = |figure: &&Figure| of(figure) && class.is_none_or(|class| figure.class == class);
            share(&figures.iter().filter(is).collect::<Vec<_>>())
        };
        let cells: Vec<String> = LoadClass::ALL.into_iter().map(Some).chain([None]).map(pick).collect();
        text.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    };
    for number in 0..FOLDS {
        row(&(number + 1).to_string(), &|figure| fold::of(&figure.claim) == number);
    }
    row("all", &|_| true);
    text
}

/// The smallest error of the model that contains four in five of these figures.
fn fitted(figures: &[&Figure]) -> Option<f64> {
    let mut errors: Vec<f64> = figures.iter().map(|figure| figure.error()).collect();
    errors.sort_by(f64::total_cmp);
    let place = (errors.len() * 4).div_ceil(5).checked_sub(1)?;
    errors.get(place).copied()
}

#[test]
fn no_figure_is_one_that_something_was_tuned_on() {
    let results: Value = serde_json::from_str(RESULTS).expect("a document");
    let tuned: BTreeSet<&str> = results["tuned"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for figure in figures() {
        assert!(!tuned.contains(figure.claim.id.as_str()), "{} was tuned on", figure.claim.id);
    }
}

#[test]
fn four_of_five_figures_that_nothing_was_tuned_on_lie_in_their_range() {
    let figures = figures();
    let inside = figures.iter().filter(|figure| figure.is_inside()).count();
    let outside: Vec<String> = figures
        .iter()
        .filter(|figure| !figure.is_inside())
        .map(|figure| format!("{}: {} published, {} predicted", figure.claim.id, figure.published, figure.model))
        .collect();
    assert_eq!((inside, figures.len()), JUDGED, "a plan tells this share: {outside:?}");
    assert!(inside * 5 >= figures.len() * 4, "{inside} of {}: {outside:?}", figures.len());
    // The same for an error that is fitted on four folds and judged on the fifth, for each fold in turn.
    let mut held = 0;
    for number in 0..FOLDS {
        let (fold, others): (Vec<&Figure>, Vec<&Figure>) =
            figures.iter().partition(|figure| fold::of(&figure.claim) == number);
        for figure in fold {
            let class: Vec<&Figure> = others.iter().copied().filter(|other| other.class == figure.class).collect();
            let percent = fitted(&class).unwrap_or(figure.class.percent()).max(figure.class.percent());
            held += usize::from(figure.lies_within(percent));
        }
    }
    assert!(held * 5 >= figures.len() * 4, "{held} of {}", figures.len());
}

#[test]
fn the_page_has_what_the_recorded_figures_come_to() {
    let page = path("docs/lab/calibration.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (found, after) = rest.split_once(END).expect("the end of the table");
    let wanted = table(&figures());
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("written");
        return;
    }
    assert_eq!(
        found, wanted,
        "docs/lab/calibration.md and figures.json differ: OPENRAID_BLESS=1 writes the table again"
    );
}

/// The models' present prediction of a figure.
fn predicted(figure: &Figure, metrics: &Simulated) -> f64 {
    let check = format!("{} > 0", figure.calls.join(" / "));
    let outcome = evaluate(&Claim { check, ..figure.claim.clone() }, metrics);
    let values: Vec<f64> = outcome
        .measured
        .iter()
        .map(|measured| match measured.value {
            MetricValue::Number(number) => number,
            other => panic!("{}: {other:?} is no rate", figure.claim.id),
        })
        .collect();
    match (values.as_slice(), figure.calls.len()) {
        ([one], 1) => *one,
        ([one, other], 2) => one / other,
        _ => panic!("{}: {:?}: {}", figure.claim.id, figure.calls, outcome.reason),
    }
}

/// Predicts all figures again. They may differ from the recorded ones within the variation between runs.
#[test]
#[ignore = "soak: every figure with quick effort"]
fn the_models_give_the_recorded_figures() {
    let metrics = Simulated::new(Library::builtin(), ClaimStore::in_memory(), Effort::QUICK, 1);
    let mut list: Vec<Value> = serde_json::from_str(FIGURES).expect("a list");
    for (row, figure) in list.iter_mut().zip(figures()) {
        let now = predicted(&figure, &metrics);
        if std::env::var_os("OPENRAID_BLESS").is_some() {
            row["model"] = ((now * 1000.0).round() / 1000.0).into();
        } else {
            let id = &figure.claim.id;
            assert!((now / figure.model - 1.0).abs() < 0.02, "{id}: {now} now, {} recorded", figure.model);
        }
    }
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        let rows: Vec<String> = list.iter().map(|row| format!(" {row}")).collect();
        std::fs::write(path("models/validation/figures.json"), format!("[\n{}\n]\n", rows.join(",\n")))
            .expect("written");
    }
}
