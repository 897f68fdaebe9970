//! Evaluate claims without the command: `validate [FILE|-] [ID-PREFIX] [CACHE-FILE]`. For work on models.

use openraid_claims::summary::{tally_by, Basis};
use openraid_claims::{read, run, Claim, RunOptions, Simulated, Store, Verdict, REVIEWS};
use openraid_lab::cell::Effort;
use openraid_models::Library;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let text = match words.first().map(String::as_str) {
        None | Some("-") => REVIEWS.to_owned(),
        Some(path) => std::fs::read_to_string(path)?,
    };
    let prefix = words.get(1).map_or("", String::as_str);
    let claims: Vec<Claim> = read(&text)?.claims.into_iter().filter(|claim| claim.id.starts_with(prefix)).collect();
    let store = match words.get(2) {
        Some(path) => Store::open(Path::new(path), "example")?,
        None => Store::in_memory(),
    };
    let metrics = Simulated::new(Library::builtin(), store, Effort::NORMAL, 1);
    let total = claims.len();
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes = run(&claims, &metrics, RunOptions { jobs }, &|count, outcome| {
        let claim = claims.iter().find(|claim| claim.id == outcome.id);
        let Some(claim) = claim.filter(|_| outcome.verdict != Verdict::Pass) else { return };
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
    for (basis, tally) in tally_by(&claims, &outcomes, Basis::of) {
        println!("{}: {tally:?}", basis.title());
    }
    for (system, tally) in tally_by(&claims, &outcomes, |claim| claim.system.clone()) {
        println!("{system}: {tally:?}");
    }
    Ok(())
}
