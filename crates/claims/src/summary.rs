//! Counts of outcomes, and outcomes as JSON.
//!
//! A table must never count a claim twice.

use crate::claim::{Claim, Grade};
use crate::evaluate::{ClaimOutcome, ClaimVerdict};
use crate::metric::Metric;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;

/// Numbers of claims by verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerdictTally {
    pub passed: usize,
    pub failed: usize,
    pub not_applicable: usize,
}

impl VerdictTally {
    /// Count a verdict.
    pub fn add(&mut self, verdict: ClaimVerdict) {
        match verdict {
            ClaimVerdict::Pass => self.passed += 1,
            ClaimVerdict::Fail => self.failed += 1,
            ClaimVerdict::NotApplicable => self.not_applicable += 1,
        }
    }
    /// Their sum.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.passed + self.failed + self.not_applicable
    }
    /// Share of passed claims among the applicable ones, in tenths of a percent; `None` if there are none.
    #[must_use]
    pub fn share(&self) -> Option<usize> {
        (self.passed * 1000).checked_div(self.passed + self.failed)
    }
}

/// Counts by a property of a claim.
#[must_use]
pub fn tally_by<K: Ord>(
    claims: &[Claim],
    outcomes: &[ClaimOutcome],
    key: impl Fn(&Claim) -> K,
) -> BTreeMap<K, VerdictTally> {
    let mut tallies: BTreeMap<K, VerdictTally> = BTreeMap::new();
    for (claim, outcome) in claims.iter().zip(outcomes) {
        tallies.entry(key(claim)).or_default().add(outcome.verdict);
    }
    tallies
}

/// The basis of a claim, for the separate shares: application scores come from synthetic traces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Basis {
    /// Physics, without application scores.
    Physics,
    /// A quirk of one controller, without application scores.
    Quirk,
    /// The cause is unknown; application scores are not included.
    Unexplained,
    /// The claim uses an application score.
    Application,
}

impl Basis {
    /// The basis of a claim.
    #[must_use]
    pub fn of(claim: &Claim) -> Self {
        let asks = |metric: Metric| calls(&claim.check, metric.name());
        match claim.reproducible {
            _ if asks(Metric::Score) || asks(Metric::Gain) => Self::Application,
            Grade::Physics => Self::Physics,
            Grade::ControllerQuirk => Self::Quirk,
            Grade::Unexplained => Self::Unexplained,
        }
    }
    /// The name in words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Physics => "physics",
            Self::Quirk => "controller quirk",
            Self::Unexplained => "unexplained",
            Self::Application => "application score",
        }
    }
}

/// Whether the check calls this function.
pub(crate) fn calls(check: &str, name: &str) -> bool {
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    check.match_indices(name).any(|(at, _)| {
        let before = check[..at].chars().next_back().is_some_and(is_word);
        !before && check[at + name.len()..].trim_start().starts_with('(')
    })
}

/// One outcome as JSON: `id`, `verdict`, `measured` (call to value), `reason`.
#[must_use]
pub fn to_json(outcome: &ClaimOutcome) -> Value {
    let measured: Map<String, Value> =
        outcome.measured.iter().map(|measured| (measured.call.clone(), measured.value.to_json())).collect();
    json!({
        "id": outcome.id,
        "verdict": outcome.verdict.name(),
        "measured": measured,
        "reason": outcome.reason,
    })
}
