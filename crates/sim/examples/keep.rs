//! Keeps a run as a file for a test: `keep [--aimed | --swarm | --changing] SEED [FILE TITLE WHY CONDITION...]`,
//! `keep --show FILE...`, or `keep --renew FILE FIRST LAST`.
//!
//! With a seed alone it prints the faults, phases and decisions that the run meets: choose the ones that the loss
//! needs. A run that still loses data is shrunk before it is written. The conditions must then hold in the shrunk run.
//! A run that no longer loses data is written whole, because its necessary steps are unknown.
//!
//! `--show` prints all conditions that saved runs meet, to choose others for their files.
//!
//! `--renew` replaces a run that no longer meets its conditions with another run of the same array. It takes the steps of the
//! first seed in the range that meets them: the old steps with other seeds, or steps that a random, an aimed, a swarm or
//! a changing run draws.

use std::process::ExitCode;

use openraid_sim::fault::scenario::ScenarioStep;
use openraid_sim::fault::shrink::shrink;
use openraid_sim::fault::{report, RunCondition, SavedRun, Scenario};
use openraid_sim::Random;

fn main() -> ExitCode {
    match keep(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("keep: {error}");
            ExitCode::FAILURE
        }
    }
}

fn keep(mut words: Vec<String>) -> Result<(), String> {
    if words.first().is_some_and(|word| word == "--renew") {
        return renew(&words[1..]);
    }
    if words.first().is_some_and(|word| word == "--show") {
        return words[1..].iter().try_for_each(|file| show(file));
    }
    let draw: fn(u64) -> Scenario = match words.first().map(String::as_str) {
        Some("--aimed") => Scenario::aimed,
        Some("--swarm") => Scenario::swarm,
        Some("--changing") => Scenario::changing,
        _ => Scenario::draw,
    };
    words.drain(..usize::from(words.first().is_some_and(|word| word.starts_with("--"))));
    let seed = words.first().and_then(|word| word.parse().ok()).ok_or("the first word is the seed of a run")?;
    let scenario = draw(seed);
    let found = report(&scenario, None);
    let [_, file, title, why, conditions @ ..] = words.as_slice() else {
        println!("{scenario}\n{:?}", found.verdict);
        RunCondition::met(&found.counts).iter().for_each(|condition| println!("{condition}"));
        return Ok(());
    };
    let scenario = match found.verdict.kind() {
        Some(kind) => shrink(&scenario, |shorter| report(shorter, None).verdict.kind().as_ref() == Some(&kind)),
        None => scenario,
    };
    let condition = |words: &String| RunCondition::from_words(words).ok_or(format!("no such condition: {words}"));
    let meets = conditions.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let kept = SavedRun { title: title.clone(), why: why.clone(), meets, scenario };
    let missed = kept.missed(&report(&kept.scenario, None).counts);
    if !missed.is_empty() {
        return Err(format!(
            "seed {seed} does not meet {}",
            missed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ));
    }
    write(file, &kept)
}

/// Prints the conditions that a saved run meets.
fn show(file: &str) -> Result<(), String> {
    let kept = read(file)?;
    println!("{file}: {}", kept.why);
    RunCondition::met(&report(&kept.scenario, None).counts).iter().for_each(|condition| println!("  {condition}"));
    Ok(())
}

fn read(file: &str) -> Result<SavedRun, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    SavedRun::parse(&text).map_err(|error| format!("{file}: {error}"))
}

/// Replaces a saved run with the first one in a range of seeds that meets its conditions.
fn renew(words: &[String]) -> Result<(), String> {
    let [file, first, last] = words else {
        return Err("--renew takes a file, the first seed and the last seed".into());
    };
    let number = |word: &String| word.parse::<u64>().map_err(|error| format!("{word}: {error}"));
    let old = read(file)?;
    for seed in number(first)?..=number(last)? {
        for steps in all_steps(&old.scenario, seed) {
            let scenario = Scenario { seed, steps, ..old.scenario.clone() };
            let kept = SavedRun { scenario, ..old.clone() };
            if kept.missed(&report(&kept.scenario, None).counts).is_empty() {
                println!("{file}: seed {seed}");
                return write(file, &kept);
            }
        }
    }
    Err(format!("{file}: no run of these seeds meets its conditions"))
}

/// The steps of a run with other seeds, and the drawn steps of this seed.
fn all_steps(old: &Scenario, seed: u64) -> Vec<Vec<ScenarioStep>> {
    let reseeded = |step: &ScenarioStep| ScenarioStep { seed: Random::derived(step.seed, seed).bits(), ..*step };
    let draws: [fn(u64) -> Scenario; 4] = [Scenario::draw, Scenario::aimed, Scenario::swarm, Scenario::changing];
    // A bounded run has none of the faults that only unbounded runs have.
    let drawn = draws.map(|draw| draw(seed)).into_iter().filter(|drawn| drawn.mode == old.mode);
    let reseeded = old.steps.iter().map(reseeded).collect();
    std::iter::once(reseeded).chain(drawn.map(|drawn| drawn.steps)).collect()
}

fn write(file: &str, kept: &SavedRun) -> Result<(), String> {
    let text = kept.to_string();
    assert_eq!(SavedRun::parse(&text).as_ref(), Ok(kept), "the file is the run");
    std::fs::write(file, text).map_err(|error| format!("{file}: {error}"))
}
