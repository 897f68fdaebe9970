//! Evaluate claims with several seeds, and print a line of JSON for each as soon as it is decided. The results are
//! recorded in `models/validation/results.json`.
//!
//! `cargo run --release -p openraid-claims --example record -- 8506- 9650se-096` evaluates the claims whose ids begin so,
//! with `--effort quick`; `--perturb` before them asks each claim that holds with other drives, blocks and seeds, too.

use openraid_claims::other_conditions::{perturb, PerturbedResult};
use openraid_claims::{decide, read, ClaimStore, RunOptions, Simulated, REVIEWS};
use openraid_methods::cell::Effort;
use openraid_models::Library;

fn main() {
    let mut wanted: Vec<String> = std::env::args().skip(1).collect();
    let perturbed = wanted.iter().any(|word| word == "--perturb");
    wanted.retain(|word| word != "--perturb");
    let claims = read(REVIEWS).expect("the built-in claims").claims;
    let metrics = Simulated::new(Library::builtin(), ClaimStore::in_memory(), Effort::QUICK, 1);
    for claim in claims.iter().filter(|claim| wanted.iter().any(|start| claim.id.starts_with(start))) {
        let decision = decide(claim, &metrics);
        let outcome = &decision.outcome;
        let values: Vec<String> =
            outcome.measured.iter().map(|measured| format!("{} = {}", measured.call, measured.value)).collect();
        let mut line = serde_json::json!({
            "id": claim.id, "verdict": outcome.verdict.name(), "seeds": decision.seeds, "decided": decision.decided,
            "measured": values,
        });
        if perturbed {
            let asked = perturb(
                std::slice::from_ref(claim),
                std::slice::from_ref(outcome),
                &metrics,
                RunOptions { jobs: 1 },
                &|_, _| {},
            );
            let changes = asked.iter().map(|asked| match &asked.ended {
                PerturbedResult::Holds => format!("{}: holds", asked.change),
                PerturbedResult::Fails(_) => format!("{}: fails", asked.change),
                PerturbedResult::Excused(reason) => format!("{}: excused: {reason}", asked.change),
            });
            line["changed"] = changes.collect::<Vec<_>>().into();
        }
        println!("{line}");
    }
}
