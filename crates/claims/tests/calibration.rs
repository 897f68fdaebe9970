//! The table of folds in docs/lab/calibration.md must match the recorded results.
//!
//! `models/validation/results.json` has the claims that failed in the last run of all claims, the claims that nine seeds did not decide,
//! and the claims by which a constant was chosen. `OPENRAID_BLESS=1` writes the table again.

use openraid_claims::fold::{self, Mechanism, FOLDS};
use openraid_claims::summary::Basis;
use openraid_claims::verdict::decide_all;
use openraid_claims::{read, Claim, ClaimStore, ClaimVerdict, Decision, RunOptions, Simulated, REVIEWS};
use openraid_methods::cell::Effort;
use openraid_models::Library;
use std::collections::BTreeSet;
use std::path::PathBuf;

const RESULTS: &str = include_str!("../../../models/validation/results.json");
const BEGIN: &str = "<!-- folds: written by a test -->\n";
const END: &str = "<!-- end of folds -->";

struct Recorded {
    run: String,
    failed: BTreeSet<String>,
    undecided: BTreeSet<String>,
    tuned: BTreeSet<String>,
}

fn recorded() -> Recorded {
    let value: serde_json::Value = serde_json::from_str(RESULTS).expect("a document");
    let ids = |name: &str| {
        let list = value[name].as_array().expect("a list");
        list.iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
    };
    let run = value["run"].as_str().expect("words").to_owned();
    Recorded { run, failed: ids("failed"), undecided: ids("undecided"), tuned: ids("tuned") }
}

/// `held of all`, and the share.
fn share(claims: &[&Claim], recorded: &Recorded) -> String {
    let all = claims.len();
    // A claim that is not decided does not hold.
    let fails = |id: &String| recorded.failed.contains(id) || recorded.undecided.contains(id);
    let held = claims.iter().filter(|claim| !fails(&claim.id)).count();
    match all {
        0 => "-".into(),
        _ => format!("{held} of {all} ({} %)", (held * 200 + all) / (2 * all)),
    }
}

fn table(claims: &[Claim], recorded: &Recorded) -> String {
    let mut text = format!("Run: {}.\n\n", recorded.run);
    text.push_str("| Fold | Causes | Physics: tuned on | held out | Quirks: tuned on | held out |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    let row = |name: &str, causes: &str, of: &dyn Fn(&Claim) -> bool| {
        let pick = |basis: Basis, tuned: bool| {
            let is = |claim: &&Claim| Basis::of(claim) == basis && recorded.tuned.contains(&claim.id) == tuned;
            share(&claims.iter().filter(|claim| of(claim)).filter(is).collect::<Vec<_>>(), recorded)
        };
        let [physics, quirks] = [Basis::Physics, Basis::Quirk].map(|basis| [pick(basis, true), pick(basis, false)]);
        format!("| {name} | {causes} | {} | {} | {} | {} |\n", physics[0], physics[1], quirks[0], quirks[1])
    };
    for number in 0..FOLDS {
        let cause =
            |(mechanism, systems): (Mechanism, Vec<String>)| format!("{} ({})", mechanism.name(), systems.join(", "));
        let causes: Vec<String> = fold::causes(claims, number).into_iter().map(cause).collect();
        text.push_str(&row(&(number + 1).to_string(), &causes.join("; "), &|claim| fold::of(claim) == number));
    }
    text.push_str(&row("all", "", &|_| true));
    text
}

#[test]
fn the_page_has_what_the_recorded_results_come_to() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/calibration.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let claims = read(REVIEWS).expect("the built-in claims").claims;
    let recorded = recorded();
    for id in recorded.failed.iter().chain(&recorded.undecided).chain(&recorded.tuned) {
        assert!(claims.iter().any(|claim| claim.id == *id), "results.json names {id}, which is no claim");
    }
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (found, after) = rest.split_once(END).expect("the end of the table");
    let wanted = table(&claims, &recorded);
    if std::env::var_os("OPENRAID_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).expect("written");
        return;
    }
    assert_eq!(
        found, wanted,
        "docs/lab/calibration.md and results.json differ: OPENRAID_BLESS=1 writes the table again"
    );
}

/// Evaluates all claims again, which takes a long time. The recorded run matches if the same claims fail.
#[test]
#[ignore = "soak: all claims with quick effort"]
fn all_claims_fail_and_hold_as_recorded() {
    let claims = read(REVIEWS).expect("the built-in claims").claims;
    let metrics = Simulated::new(Library::builtin(), ClaimStore::in_memory(), Effort::QUICK, 1);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let decisions = decide_all(&claims, &metrics, RunOptions { jobs }, &|_| {});
    let ids = |is: &dyn Fn(&Decision) -> bool| -> BTreeSet<String> {
        decisions.iter().filter(|decision| is(decision)).map(|decision| decision.outcome.id.clone()).collect()
    };
    let recorded = recorded();
    assert_eq!(
        (ids(&|one| one.decided && one.outcome.verdict != ClaimVerdict::Pass), ids(&|one| !one.decided)),
        (recorded.failed, recorded.undecided),
        "results.json is of another state: write down what failed, with the run's date"
    );
}
