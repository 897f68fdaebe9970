//! The evaluation of one claim.
//!
//! The evaluation must never hide the reason: every verdict has its values and a reason.

use crate::claim::Claim;
use crate::computed;
use crate::language::{self, EvaluationStop};
use crate::metric::{Metric, MetricCall, MetricValue, Metrics, NotApplicable};
use std::collections::BTreeSet;

/// The result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ClaimVerdict {
    /// The claim holds. If the review is wrong: the claim does not hold, as expected.
    Pass,
    /// The claim does not hold.
    Fail,
    /// A metric of the claim has no meaning.
    NotApplicable,
}

impl ClaimVerdict {
    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::NotApplicable => "not-applicable",
        }
    }
}

/// A value that a check used.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredValue {
    /// The call, in the form in which a check writes it.
    pub call: String,
    pub value: MetricValue,
}

/// The verdict of a claim with its values.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimOutcome {
    /// The claim.
    pub id: String,
    pub verdict: ClaimVerdict,
    /// All values that the check used, in the order of their first use.
    pub measured: Vec<MeasuredValue>,
    /// All calls of the check, as the check wrote them, in the same order, including calls without a value.
    pub asked: Vec<MetricCall>,
    /// The reason in words.
    pub reason: String,
    /// Whether the error is in the check itself, and not in the models.
    pub broken: bool,
}

/// Evaluate a claim.
#[must_use]
pub fn evaluate(claim: &Claim, metrics: &dyn Metrics) -> ClaimOutcome {
    evaluate_changed(claim, metrics, &MetricCall::clone)
}

/// Evaluate a claim, with changed calls in place of the check's own.
#[must_use]
pub fn evaluate_changed(
    claim: &Claim,
    metrics: &dyn Metrics,
    change: &dyn Fn(&MetricCall) -> MetricCall,
) -> ClaimOutcome {
    let (measured, asked) = (Vec::new(), Vec::new());
    let (known, reported) = (BTreeSet::new(), BTreeSet::new());
    let mut record = Record { metrics, measured, asked, known, reported, unsteady: Vec::new() };
    let (verdict, reason, broken) = match language::evaluate(claim, &mut |call| record.answer(&call, change)) {
        Ok(came) => {
            let (verdict, reason) = said(came, claim.expected);
            (verdict, format!("{reason}{}", unsteady(&record.unsteady)), false)
        }
        Err(EvaluationStop::NotApplicable(reason)) => (ClaimVerdict::NotApplicable, reason.reason, false),
        Err(EvaluationStop::Wrong(error)) => {
            (ClaimVerdict::Fail, format!("the check cannot be evaluated: {error}"), true)
        }
    };
    let (measured, asked) = (record.measured, record.asked);
    ClaimOutcome { id: claim.id.clone(), verdict, measured, asked, reason, broken }
}

struct Record<'a> {
    metrics: &'a dyn Metrics,
    measured: Vec<MeasuredValue>,
    asked: Vec<MetricCall>,
    known: BTreeSet<String>,
    reported: BTreeSet<String>,
    /// Calls with a value of a load that had not become steady.
    unsteady: Vec<String>,
}

/// What a verdict says of values that rest on loads that had not become steady.
fn unsteady(calls: &[String]) -> String {
    let Some((first, others)) = calls.split_first() else { return String::new() };
    let others = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    format!("; it rests on values of loads that had not become steady: {first}{others}")
}

impl Record<'_> {
    /// Answer a call, and record the value or the reason for which it has no meaning.
    fn answer(
        &mut self,
        asked: &MetricCall,
        change: &dyn Fn(&MetricCall) -> MetricCall,
    ) -> Result<MetricValue, NotApplicable> {
        let call = &change(asked);
        if self.known.insert(asked.to_string()) {
            self.asked.push(asked.clone());
        }
        let value = match call.metric {
            Metric::Cap | Metric::SurviveFraction | Metric::ParityShare => computed::answer(call),
            _ => self.metrics.measure(call),
        };
        let value = match value {
            Ok(MetricValue::Number(number)) if !number.is_finite() => {
                Err(NotApplicable::new("the result is not a number"))
            }
            other => other,
        };
        let text = call.to_string();
        match value {
            Ok(value) => {
                if self.reported.insert(text.clone()) {
                    if self.metrics.is_unsteady(call) {
                        self.unsteady.push(text.clone());
                    }
                    self.measured.push(MeasuredValue { call: text, value });
                }
                Ok(value)
            }
            Err(reason) => Err(NotApplicable::new(format!("{text}: {reason}"))),
        }
    }
}

const fn said(came: bool, expected: bool) -> (ClaimVerdict, &'static str) {
    match (came, expected) {
        (true, true) => (ClaimVerdict::Pass, "the check is true"),
        (false, true) => (ClaimVerdict::Fail, "the check is false"),
        (false, false) => (ClaimVerdict::Pass, "the check is false, as expected: the review is wrong here"),
        (true, false) => (ClaimVerdict::Fail, "the check is true, though the review is held to be wrong here"),
    }
}
