//! Evaluates claims without the command: `validate [FILE|-] [ID-PREFIX,...] [CACHE-FILE] [quick]`. For work on models.
//! The cache is not checked for changes of the models.

use openraid_claims::fold::{self, Mechanism};
use openraid_claims::summary::{tally_by, Basis};
use openraid_claims::{read, run, Claim, ClaimStore, ClaimVerdict, RunOptions, Simulated, REVIEWS};
use openraid_methods::cell::Effort;
use openraid_models::Library;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let text = match words.first().map(String::as_str) {
        None | Some("-") => REVIEWS.to_owned(),
        Some(path) => std::fs::read_to_string(path)?,
    };
    let prefix = words.get(1).map_or("", String::as_str);
    let wanted = |claim: &Claim| prefix.split(',').any(|prefix| claim.id.starts_with(prefix));
    let claims: Vec<Claim> = read(&text)?.claims.into_iter().filter(wanted).collect();
    let effort = if words.get(3).is_some_and(|word| word == "quick") { Effort::QUICK } else { Effort::NORMAL };
    let store = match words.get(2) {
        Some(path) => ClaimStore::open(Path::new(path), "example")?,
        None => ClaimStore::in_memory(),
    };
    let metrics = Simulated::new(Library::builtin(), store, effort, 1);
    let total = claims.len();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes = run(&claims, &metrics, RunOptions { jobs }, &|count, outcome| {
        let claim = claims.iter().find(|claim| claim.id == outcome.id);
        let Some(claim) = claim.filter(|_| outcome.verdict != ClaimVerdict::Pass) else { return };
        let values: Vec<String> =
            outcome.measured.iter().map(|measured| format!("{}={}", measured.call, measured.value)).collect();
        println!(
            "{count}/{total} {} {} [{}] T={}\n  {}\n  {}\n  {}\n  {}",
            claim.id,
            outcome.verdict.name(),
            Basis::of(claim).title(),
            claim.tolerance,
            claim.statement,
            claim.check,
            outcome.reason,
            values.join("; ")
        );
    });
    for (claim, outcome) in claims.iter().zip(&outcomes) {
        let (basis, mechanism) = (Basis::of(claim).title(), Mechanism::of(claim).name());
        println!("= {} {} {} {basis}, {mechanism}", claim.id, outcome.verdict.name(), fold::of(claim) + 1);
    }
    for (number, fold) in (1..).zip(fold::tally(&claims, &outcomes)) {
        println!("fold {number}: physics {:?}, quirks {:?}", fold.physics, fold.quirks);
    }
    for (basis, tally) in tally_by(&claims, &outcomes, Basis::of) {
        println!("{}: {tally:?}", basis.title());
    }
    for (system, tally) in tally_by(&claims, &outcomes, |claim| claim.system.clone()) {
        println!("{system}: {tally:?}");
    }
    Ok(())
}
