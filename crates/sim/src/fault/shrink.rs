//! A shorter run that fails as well: steps and requests are removed while the run still fails.

use super::scenario::{Action, Scenario, ScenarioStep};

/// Limit of the tried runs.
const TRIES_MAX: u32 = 600;

/// The shortest failing run that was found; `fails` says whether a run fails.
pub fn shrink(scenario: &Scenario, mut fails: impl FnMut(&Scenario) -> bool) -> Scenario {
    let mut best = scenario.clone();
    let mut tries = TRIES_MAX;
    let mut attempt = |best: &mut Scenario, steps: Vec<ScenarioStep>| {
        if tries == 0 {
            return false;
        }
        tries -= 1;
        let shorter = Scenario { steps, ..best.clone() };
        let failed = fails(&shorter);
        if failed {
            *best = shorter;
        }
        failed
    };
    loop {
        let before = best.steps.clone();
        leave_out_steps(&mut best, &mut attempt);
        ask_for_less(&mut best, &mut attempt);
        if best.steps == before {
            return best;
        }
    }
}

/// Remove groups of steps, long groups first.
fn leave_out_steps(best: &mut Scenario, attempt: &mut impl FnMut(&mut Scenario, Vec<ScenarioStep>) -> bool) {
    let mut count = best.steps.len().div_ceil(2);
    while count > 0 {
        let mut at = 0;
        while at < best.steps.len() {
            let mut steps = best.steps.clone();
            steps.drain(at..(at + count).min(best.steps.len()));
            if !attempt(best, steps) {
                at += count;
            }
        }
        count /= 2;
    }
}

/// Make fewer requests and events in each step.
fn ask_for_less(best: &mut Scenario, attempt: &mut impl FnMut(&mut Scenario, Vec<ScenarioStep>) -> bool) {
    for at in 0..best.steps.len() {
        loop {
            let action = match best.steps[at].action {
                Action::Ask(count) if count > 1 => Action::Ask(count / 2),
                Action::Happen(count) if count > 1 => Action::Happen(count / 2),
                Action::Latent(count) if count > 1 => Action::Latent(count / 2),
                _ => break,
            };
            let mut steps = best.steps.clone();
            steps[at].action = action;
            if !attempt(best, steps) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_a_failure_does_not_need_are_removed() {
        let scenario = Scenario::draw(1);
        let steps: Vec<ScenarioStep> = (0..40).map(|seed| ScenarioStep { seed, action: Action::Ask(100) }).collect();
        let scenario = Scenario { steps, ..scenario };
        let short = shrink(&scenario, |scenario| {
            let needed = [7, 31].iter().all(|seed| scenario.steps.iter().any(|step| step.seed == *seed));
            needed && scenario.steps.iter().any(|step| matches!(step.action, Action::Ask(count) if count >= 13))
        });
        assert_eq!(short.steps.len(), 2);
        let asked: Vec<_> = short.steps.iter().map(|step| step.action).collect();
        assert!(asked.contains(&Action::Ask(25)) || asked.contains(&Action::Ask(13)), "{asked:?}");
    }
}
