//! `openraid-lab validate`: claims about arrays, compared with the simulation.
//!
//! It must never change a model to make a claim hold, and never hide one that does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use openraid_claims::claim::FILE_BYTES_MAX;
use openraid_claims::fold::{self, Mechanism};
use openraid_claims::other_conditions::{perturb, Perturbation, PerturbedClaim, PerturbedResult, PerturbedShares};
use openraid_claims::summary::{tally_by, to_json, Basis, VerdictTally};
use openraid_claims::verdict::{decide_all, Decision};
use openraid_claims::{
    read, run as evaluate_all, Claim, ClaimOutcome, ClaimStore, ClaimVerdict, RunOptions, Simulated, REVIEWS,
};
use openraid_methods::run::fingerprint;
use openraid_models::Library;

use crate::arguments::ValidateArguments;
use crate::shared_parts::{effort, library};
use openraid::failure::{Exit, Failure, Outcome};
use openraid::output::progress::WorkProgress;
use openraid::output::table::TextTable;
use openraid::output::{print, warn};
use openraid::verb::Context;

/// Name of the file with stored values in the cache folder.
const CACHE_FILE: &str = "claims.jsonl";
/// Maximum number of values of one claim that are shown; the JSON has all of them.
const VALUES_SHOWN: usize = 12;

/// Runs the verb.
///
/// # Errors
/// A claim file is invalid, no claim has an id, a profile is wrong, or the cache cannot be written.
pub fn run(arguments: &ValidateArguments, context: &Context) -> Outcome {
    let (file, claims) = chosen(arguments)?;
    let library = library(arguments.models.as_deref())?;
    let stamp = fingerprint(&library);
    let store = match cache_folder(arguments) {
        None => ClaimStore::in_memory(),
        Some(folder) => ClaimStore::open(&folder.join(CACHE_FILE), &stamp).map_err(Failure::failed)?,
    };
    warn_of_systems(&claims, &library);
    let metrics = Simulated::new(library, store, effort(arguments.effort), arguments.seed);
    let jobs = arguments.jobs.map(usize::from);
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok().map(Into::into)).unwrap_or(1);
    let progress = Mutex::new(WorkProgress::counting("claims", claims.len() as u64));
    let ended = |count: usize| {
        progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).counted(count as u64);
    };
    let options = RunOptions { jobs };
    let decisions = arguments.several_seeds.then(|| decide_all(&claims, &metrics, options, &ended));
    let outcomes: Vec<ClaimOutcome> = match &decisions {
        Some(decisions) => decisions.iter().map(Decision::counted).collect(),
        None => evaluate_all(&claims, &metrics, options, &|count, _| ended(count)),
    };
    drop(progress);
    let asked = arguments.perturb.then(|| {
        let progress = Mutex::new(None);
        let ended = |count: usize, all: usize| {
            let mut progress = progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            progress.get_or_insert_with(|| WorkProgress::counting("changed claims", all as u64)).counted(count as u64);
        };
        perturb(&claims, &outcomes, &metrics, RunOptions { jobs }, &ended)
    });
    let broken = outcomes.iter().filter(|outcome| outcome.broken).count();
    if broken > 0 {
        warn(&format!(
            "{file}: claims that cannot be evaluated: {broken}. Their checks are wrong, not the models; see the reasons"
        ));
    }
    if let Some(error) = metrics.store_lost() {
        warn(&format!("values are no longer kept: {error}"));
    }
    if context.output.json {
        print(&document(&outcomes, decisions.as_deref(), asked.as_deref()).to_string());
    } else {
        print(&text(&claims, &outcomes));
        if let Some(asked) = &asked {
            print(&perturbed(&claims, asked));
        }
    }
    Ok(if broken > 0 { Exit::CannotTell } else { Exit::Fine })
}

/// The name of the file, and the requested claims.
fn chosen(arguments: &ValidateArguments) -> Result<(String, Vec<Claim>), Failure> {
    let (name, content) = match &arguments.claims {
        None => ("the built-in claims".to_owned(), REVIEWS.to_owned()),
        Some(path) => (path.display().to_string(), file(path)?),
    };
    let found = read(&content).map_err(|error| Failure::usage(format!("{name}:\n{error}")))?;
    for warning in &found.warnings {
        warn(&format!("{name}: {warning}"));
    }
    for id in &arguments.only {
        if !found.claims.iter().any(|claim| claim.id.starts_with(id)) {
            let text = format!("--only {id}: no claim of {name} has this id, or one that begins so");
            return Err(Failure::usage(text));
        }
    }
    let wanted = |claim: &Claim| arguments.only.is_empty() || arguments.only.iter().any(|id| claim.id.starts_with(id));
    let claims = found.claims.into_iter().filter(wanted).collect();
    Ok((name, claims))
}

/// Warns once of each unknown system. Each of its claims is reported as not applicable.
fn warn_of_systems(claims: &[Claim], library: &Library) {
    let systems: BTreeSet<&str> = claims.iter().map(|claim| claim.system.as_str()).collect();
    for system in systems {
        if let Err(error) = library.controller(&system.to_ascii_lowercase()) {
            warn(&format!("claims about '{system}' do not apply: {error}"));
        }
    }
}

fn file(path: &Path) -> Result<String, Failure> {
    let wrong = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    let mut content = String::new();
    // One byte more than the maximum is read, so that a longer file is detected.
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).and_then(|file| file.take(limit).read_to_string(&mut content)).map_err(wrong)?;
    Ok(content)
}

/// The file with stored values. None if the user disabled it or has no home folder.
fn cache_folder(arguments: &ValidateArguments) -> Option<PathBuf> {
    if arguments.no_cache {
        return None;
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = || absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    arguments.cache.clone().or_else(|| base().map(|base| base.join("openraid")))
}

/// The list of outcomes. With several seeds each outcome has their number, and whether they decide. If changes were
/// requested, each outcome also has the results after the changes.
fn document(
    outcomes: &[ClaimOutcome],
    decisions: Option<&[Decision]>,
    asked: Option<&[PerturbedClaim]>,
) -> serde_json::Value {
    let one = |(index, outcome): (usize, &ClaimOutcome)| {
        let mut value = to_json(outcome);
        if let Some(decision) = decisions.map(|decisions| &decisions[index]) {
            (value["seeds"], value["decided"]) = (decision.seeds.into(), decision.decided.into());
        }
        if let Some(asked) = asked {
            let changes = asked.iter().filter(|asked| asked.claim == index);
            value["changed"] = changes.map(changed).collect();
        }
        value
    };
    outcomes.iter().enumerate().map(one).collect()
}

fn changed(asked: &PerturbedClaim) -> serde_json::Value {
    let (word, reason) = match &asked.ended {
        PerturbedResult::Holds => ("holds", "the check is true"),
        PerturbedResult::Fails(outcome) => ("fails", outcome.reason.as_str()),
        PerturbedResult::Excused(reason) => ("excused", reason.as_str()),
    };
    serde_json::json!({ "change": asked.change.to_string(), "verdict": word, "reason": reason })
}

/// The outcome of changed claims: all that fail, and the shares.
fn perturbed(claims: &[Claim], asked: &[PerturbedClaim]) -> String {
    let mut text = String::from("\nClaims that hold, measured again with other drives, block sizes and seeds\n\n");
    for asked in asked {
        if let PerturbedResult::Fails(outcome) = &asked.ended {
            let values = outcome.measured.iter().take(VALUES_SHOWN);
            let values: Vec<String> =
                values.map(|measured| format!("{} = {}", measured.call, measured.value)).collect();
            let (id, change) = (&claims[asked.claim].id, asked.change);
            text.push_str(&format!("  FAILED {id}, {change}\n         measured: {}\n", values.join("; ")));
        }
    }
    let mut table = TextTable::new(&["", "HOLD", "FAIL", "NEED NOT HOLD", "SHARE THAT HOLDS"]);
    let mut row = |name: &str, shares: PerturbedShares| {
        let counts = [shares.held, shares.fell, shares.excused].map(|count| count.to_string());
        table.row([name.to_owned()].into_iter().chain(counts).chain([percent(shares.share())]));
    };
    for (name, is) in KINDS {
        row(name, PerturbedShares::of(asked.iter().filter(|asked| is(&asked.change))));
    }
    row("all", PerturbedShares::of(asked.iter()));
    text.push_str(&table.text());
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for asked in asked {
        if let PerturbedResult::Excused(reason) = &asked.ended {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    if !reasons.is_empty() {
        text.push_str("\nReasons not to hold\n");
    }
    for (reason, count) in reasons {
        text.push_str(&format!("  {count:>4}  {reason}\n"));
    }
    text
}

/// Is a change of this kind?
type IsOf = fn(&Perturbation) -> bool;

/// The kinds of changes, as the table names them.
const KINDS: [(&str, IsOf); 4] = [
    ("other numbers of drives", |change| matches!(change, Perturbation::Drives(_))),
    ("other block sizes", |change| matches!(change, Perturbation::HalfBlocks | Perturbation::DoubleBlocks)),
    ("other seeds", |change| matches!(change, Perturbation::Chance(_))),
    ("several at once", |change| matches!(change, Perturbation::Together { .. })),
];

fn percent(tenths: Option<usize>) -> String {
    tenths.map_or_else(|| "-".into(), |share| format!("{}.{} %", share / 10, share % 10))
}

/// The causes of each fold, with the shares of claims about physics and about quirks that hold.
fn folds(claims: &[Claim], outcomes: &[ClaimOutcome]) -> String {
    let mut table = TextTable::new(&["FOLD", "PHYSICS", "", "QUIRKS", "", "CAUSES"]);
    for (number, found) in fold::tally(claims, outcomes).iter().enumerate() {
        let of = |tally: &VerdictTally| format!("{} of {}", tally.passed, tally.passed + tally.failed);
        let causes: Vec<&str> = fold::causes(claims, number).into_keys().map(Mechanism::name).collect();
        table.row([
            (number + 1).to_string(),
            of(&found.physics),
            percent(found.physics.share()),
            of(&found.quirks),
            percent(found.quirks.share()),
            causes.join(", "),
        ]);
    }
    table.text()
}

fn text(claims: &[Claim], outcomes: &[ClaimOutcome]) -> String {
    if claims.is_empty() {
        return "no claim is in the list; nothing was run\n".into();
    }
    let mut text = String::new();
    let mut groups: BTreeMap<(&str, &str), Vec<(&Claim, &ClaimOutcome)>> = BTreeMap::new();
    for (claim, outcome) in claims.iter().zip(outcomes) {
        groups.entry((&claim.system, claim.kind.name())).or_default().push((claim, outcome));
    }
    for ((system, kind), members) in &groups {
        text.push_str(&format!("{system}, {kind}\n"));
        for (claim, outcome) in members {
            one(claim, outcome, &mut text);
        }
        text.push('\n');
    }
    text.push_str(&counts(claims, outcomes));
    text.push('\n');
    text.push_str(&folds(claims, outcomes));
    text
}

fn one(claim: &Claim, outcome: &ClaimOutcome, text: &mut String) {
    let word = match outcome.verdict {
        ClaimVerdict::Pass => "passed",
        ClaimVerdict::Fail => "FAILED",
        ClaimVerdict::NotApplicable => "not applicable",
    };
    let statement = if claim.statement.is_empty() { &claim.check } else { &claim.statement };
    text.push_str(&format!("  {word:<15} {:<12} {statement}\n", claim.id));
    let mut values: Vec<String> =
        outcome.measured.iter().map(|measured| format!("{} = {}", measured.call, measured.value)).collect();
    if values.len() > VALUES_SHOWN {
        let more = values.len() - VALUES_SHOWN;
        values.truncate(VALUES_SHOWN);
        values.push(format!("and {more} more"));
    }
    if !values.is_empty() {
        text.push_str(&format!("{:18}measured: {}\n", "", values.join("; ")));
    }
    if outcome.verdict != ClaimVerdict::Pass {
        text.push_str(&format!("{:18}{}: {}\n", "", outcome.reason, claim.check));
    }
}

fn counts(claims: &[Claim], outcomes: &[ClaimOutcome]) -> String {
    let mut table = TextTable::new(&["", "PASSED", "FAILED", "NOT APPLICABLE", "OF THOSE THAT APPLY"]);
    let row = |table: &mut TextTable, name: &str, tally: &VerdictTally| {
        let counts = [tally.passed, tally.failed, tally.not_applicable].map(|count| count.to_string());
        table.row([name.to_owned()].into_iter().chain(counts).chain([percent(tally.share())]));
    };
    for (system, tally) in tally_by(claims, outcomes, |claim| claim.system.clone()) {
        row(&mut table, &system, &tally);
    }
    for (kind, tally) in tally_by(claims, outcomes, |claim| claim.kind.name().to_owned()) {
        row(&mut table, &kind, &tally);
    }
    for (basis, tally) in tally_by(claims, outcomes, Basis::of) {
        row(&mut table, basis.title(), &tally);
    }
    for (_, tally) in tally_by(claims, outcomes, |_| ()) {
        row(&mut table, "all", &tally);
    }
    table.text()
}
