//! Verdicts that do not depend on one seed.
//!
//! A claim is evaluated with three seeds. If all three have the same verdict, that is the verdict. Otherwise six more seeds
//! follow, and the nine make three groups of three. The means of a group's values give one verdict for each group. If all
//! three are the same, that is the verdict. If not, the claim is not decided: its arrays are as far apart as runs differ.
//!
//! If the two outcomes of one seed were equally likely, three seeds would agree by chance in one case of four, and so
//! would the three groups.

use crate::axis_arguments::{Axis, AxisValue};
use crate::claim::Claim;
use crate::evaluate::{evaluate_changed, ClaimOutcome, ClaimVerdict};
use crate::metric::{MetricCall, MetricValue, Metrics, NotApplicable};
use crate::run::{each, RunOptions};

/// Seeds of a group.
const GROUP: u64 = 3;
/// The axis `rep` has this value plus [`SEEDS_APART`] for each further seed, so that no seed is that of another `rep`.
const SEEDS_FROM: u64 = 300;
const SEEDS_APART: u64 = 20;

/// A verdict with the runs that it rests on.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// The outcome of the first seed; of the means of all seeds, if the first three differ.
    pub outcome: ClaimOutcome,
    /// Number of seeds.
    pub seeds: u64,
    /// Whether all three seeds, or all three groups, have the same verdict.
    pub decided: bool,
}

impl Decision {
    /// The outcome as it counts: a claim that is not decided has failed.
    #[must_use]
    pub fn counted(&self) -> ClaimOutcome {
        let mut outcome = self.outcome.clone();
        if !self.decided {
            outcome.verdict = ClaimVerdict::Fail;
            outcome.reason =
                format!("{} seeds do not decide it: its values are no farther apart than runs are", self.seeds);
        }
        outcome
    }
}

/// The means of several seeds of other metrics.
struct Means<'a> {
    metrics: &'a dyn Metrics,
    seeds: std::ops::Range<u64>,
}

impl Metrics for Means<'_> {
    fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
        let (mut sum, mut count) = (0.0, 0.0);
        for seed in self.seeds.clone() {
            match self.metrics.measure(&drawn(call, seed))? {
                MetricValue::Number(value) => (sum, count) = (sum + value, count + 1.0),
                // Whole numbers and operations follow from the array alone.
                other => return Ok(other),
            }
        }
        Ok(MetricValue::Number(sum / count))
    }

    fn is_unsteady(&self, call: &MetricCall) -> bool {
        self.seeds.clone().any(|seed| self.metrics.is_unsteady(&drawn(call, seed)))
    }
}

/// The call with all random choices drawn again. Seed 0 is the call itself.
fn drawn(call: &MetricCall, seed: u64) -> MetricCall {
    let mut call = call.clone();
    if seed > 0 {
        #[allow(clippy::cast_precision_loss)] // small numbers
        let rep = (call.axes.whole(Axis::Rep).unwrap_or(0) + SEEDS_FROM + SEEDS_APART * seed) as f64;
        call.axes = call.axes.with(Axis::Rep, AxisValue::Number(rep));
    }
    call
}

/// Evaluate a claim with three seeds, or with nine if three differ.
#[must_use]
pub fn decide(claim: &Claim, metrics: &dyn Metrics) -> Decision {
    let by = |seeds: std::ops::Range<u64>| evaluate_changed(claim, &Means { metrics, seeds }, &MetricCall::clone);
    let first = by(0..1);
    let same =
        |outcomes: &[ClaimOutcome], verdict: ClaimVerdict| outcomes.iter().all(|outcome| outcome.verdict == verdict);
    if first.verdict == ClaimVerdict::NotApplicable || first.broken {
        return Decision { outcome: first, seeds: 1, decided: true };
    }
    let others = [by(1..2), by(2..3)];
    if same(&others, first.verdict) {
        return Decision { outcome: first, seeds: GROUP, decided: true };
    }
    let groups = [by(0..GROUP), by(GROUP..2 * GROUP), by(2 * GROUP..3 * GROUP)];
    let decided = same(&groups, groups[0].verdict);
    Decision { outcome: by(0..3 * GROUP), seeds: 3 * GROUP, decided }
}

/// Decide many claims on several threads. Decisions are in the order of the claims. `ended` gets the number of decided
/// ones.
pub fn decide_all(
    claims: &[Claim],
    metrics: &dyn Metrics,
    options: RunOptions,
    ended: &(dyn Fn(usize) + Sync),
) -> Vec<Decision> {
    each(claims, options, |claim| decide(claim, metrics), &|count, _| ended(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::read;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    /// A laboratory whose value depends on the seed alone.
    struct Seeds<F>(F, Mutex<BTreeSet<u64>>);

    impl<F: Fn(u64) -> f64 + Sync> Metrics for Seeds<F> {
        fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
            let seed = call.axes.whole(Axis::Rep).unwrap_or(0).saturating_sub(SEEDS_FROM) / SEEDS_APART;
            self.1.lock().unwrap().insert(seed);
            Ok(MetricValue::Number(self.0(seed)))
        }
    }

    fn decision(value: impl Fn(u64) -> f64 + Sync) -> (ClaimVerdict, u64, bool, usize) {
        let text =
            r#"[{"id": "t", "system": "9650se", "workload": {"pattern": "database"}, "check": "iops(single) > 100"}]"#;
        let claim = read(text).unwrap().claims.remove(0);
        let metrics = Seeds(value, Mutex::new(BTreeSet::new()));
        let decision = decide(&claim, &metrics);
        let asked = metrics.1.lock().unwrap().len();
        if !decision.decided {
            let counted = decision.counted();
            assert!(counted.verdict == ClaimVerdict::Fail && counted.reason.contains("9 seeds"), "{}", counted.reason);
        }
        (decision.outcome.verdict, decision.seeds, decision.decided, asked)
    }

    #[test]
    fn three_seeds_that_agree_decide() {
        assert_eq!(decision(|_| 101.0), (ClaimVerdict::Pass, 3, true, 3));
        assert_eq!(decision(|seed| 97.0 + seed as f64), (ClaimVerdict::Fail, 3, true, 3));
    }

    #[test]
    fn groups_decide_by_their_means_and_not_by_counts_of_seeds() {
        // Two of three seeds are above by 1, one is below by 5: each mean is below.
        let outlier = |seed: u64| if seed.is_multiple_of(3) { 95.0 } else { 101.0 };
        assert_eq!(decision(outlier), (ClaimVerdict::Fail, 9, true, 9));
    }

    #[test]
    fn groups_that_differ_leave_a_claim_undecided() {
        // The first group is below, the others above: the mean of all is above.
        let drift = |seed: u64| if seed < 2 { 98.0 } else { 102.0 };
        assert_eq!(decision(drift), (ClaimVerdict::Pass, 9, false, 9));
    }
}
