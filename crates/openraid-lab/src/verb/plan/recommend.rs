//! Chooses the recommended level and gives the reason. Safety comes first, then speed, then capacity.
//!
//! ```text
//!   1  levels that survive a failure, and lose data within five years in at most 1 of 100 cases; if there is none, the
//!      one with the lowest probability of data loss
//!   2  the fastest of them, and all that are at most a tenth slower or not distinguished from it
//!   3  of these, the one with the largest capacity
//! ```

use openraid_methods::cell::Subject;
use openraid_methods::plan::{LevelPlan, Planned};
use openraid_units::Bytes;
use serde::Serialize;

use super::advice::{possible, speed_of};
use super::text::chance;
use super::Comparison;
use openraid::quantity::sold;

/// Maximum probability of data loss within five years.
const FIVE_YEARS_MAX: f64 = 0.01;
/// A level counts as fast if it has at least this share of the fastest level's speed.
const AS_FAST: f64 = 0.9;

/// A level, and why.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Recommendation {
    /// The recommended array, such as `raid6x8`.
    #[schema(value_type = String)]
    array: Subject,
    /// Why it is recommended, a sentence each.
    reasons: Vec<String>,
    /// Why each of the other levels is not recommended, a sentence each.
    others: Vec<String>,
}

impl Recommendation {
    pub const fn array(&self) -> Subject {
        self.array
    }

    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("recommended: {}: {}", self.array, self.reasons.join("; "))];
        lines.extend(self.others.iter().map(|other| format!("  not {other}")));
        lines
    }
}

fn loss(plan: &LevelPlan) -> Option<f64> {
    plan.loss.as_ref().map(|loss| loss.five_years)
}

fn is_safe(plan: &LevelPlan) -> bool {
    loss(plan).is_none_or(|loss| loss <= FIVE_YEARS_MAX)
}

/// The recommended level; none if no level survives a failure.
pub(super) fn recommend(levels: &[Planned], comparisons: &[Comparison]) -> Option<Recommendation> {
    let surviving: Vec<&LevelPlan> = possible(levels).filter(|plan| plan.survives.0 > 0).collect();
    let safe: Vec<&LevelPlan> = surviving.iter().copied().filter(|plan| is_safe(plan)).collect();
    let none_is_safe = safe.is_empty();
    let allowed = if none_is_safe {
        let least =
            surviving.iter().copied().min_by(|one, two| loss(one).unwrap_or(0.0).total_cmp(&loss(two).unwrap_or(0.0)));
        least.into_iter().collect()
    } else {
        safe
    };
    let fastest = allowed.iter().copied().max_by(|one, two| one.merit().total_cmp(&two.merit()))?;
    let alike = |plan: &LevelPlan| {
        let comparison =
            comparisons.iter().find(|comparison| comparison.faster == fastest.array && comparison.than == plan.array);
        plan.merit() >= AS_FAST * fastest.merit()
            || comparison.is_some_and(|comparison| !super::advice::is_told_apart(&comparison.lead))
    };
    // A difference of one hundredth in capacity decides nothing.
    let largest = allowed.iter().filter(|plan| alike(plan)).map(|plan| plan.capacity).max()?;
    let roomy = allowed.iter().copied().filter(|plan| alike(plan) && plan.capacity / 99 >= largest / 100);
    let chosen = roomy.max_by(|one, two| one.merit().total_cmp(&two.merit()))?;
    let mut reasons = Vec::new();
    match loss(chosen) {
        Some(loss) if none_is_safe => {
            let limit = chance(FIVE_YEARS_MAX);
            reasons.push(format!(
                "loses data within five years in {} % of cases, the least of all; none stays below {limit} %",
                chance(loss)
            ));
        }
        Some(loss) => reasons.push(format!("loses data within five years in {} % of cases", chance(loss))),
        None => reasons.push("survives a failure; how likely it loses data is not known".into()),
    }
    reasons.push(match chosen.array == fastest.array {
        true if allowed.len() > 1 => {
            format!(
                "the fastest of the {} with at most {} % ({})",
                allowed.len(),
                FIVE_YEARS_MAX * 100.0,
                speed_of(chosen)
            )
        }
        true => speed_of(chosen),
        false => format!("as fast as {} within a tenth ({}), with more room", fastest.array, speed_of(chosen)),
    });
    reasons.push(sold(Bytes(chosen.capacity)));
    let others = possible(levels).filter(|plan| plan.array != chosen.array).map(|plan| against(plan, chosen)).collect();
    Some(Recommendation { array: chosen.array, reasons, others })
}

/// The reasons against this level, and its advantages.
fn against(plan: &LevelPlan, chosen: &LevelPlan) -> String {
    let reason = match loss(plan) {
        _ if plan.survives.0 == 0 => "loses everything with the first drive".to_owned(),
        Some(loss) if loss > FIVE_YEARS_MAX => format!("loses data within five years in {} % of cases", chance(loss)),
        _ if plan.merit() < AS_FAST * chosen.merit() => {
            format!("{:.0} % slower", (1.0 - plan.merit() / chosen.merit()) * 100.0)
        }
        _ => "no faster, and no more room".to_owned(),
    };
    let mut pros = Vec::new();
    if plan.merit() > chosen.merit() * 1.02 {
        pros.push(format!("{:.0} % faster", (plan.merit() / chosen.merit() - 1.0) * 100.0));
    }
    if plan.capacity / 100 > chosen.capacity / 99 {
        pros.push(format!("{} more room", sold(Bytes(plan.capacity - chosen.capacity))));
    }
    let pros = if pros.is_empty() { String::new() } else { format!(" (but {})", pros.join(", ")) };
    format!("{}: {reason}{pros}", plan.array)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_methods::cell::{Axes, Effort, Level, Pattern};
    use openraid_methods::plan::PlanRequest;

    #[test]
    fn the_recommended_level_is_safe_then_fast_then_large() {
        let request = PlanRequest {
            system: "openraid".into(),
            drive: None,
            drives: 8,
            levels: vec![Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6],
            pattern: Pattern::ResponseTime,
            axes: Axes::default(),
            effort: Effort { requests: 20, seconds_max: 1, warm_seconds_max: 1 },
            seed: 1,
            thorough: false,
            trace: None,
        };
        let plans = request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan");
        let with = |figures: [(f64, f64); 4]| {
            let mut plans = plans.clone();
            for (plan, (iops, loss)) in plans.iter_mut().zip(figures) {
                let Planned::Possible(plan) = plan else { panic!("each can be") };
                plan.healthy.iops = iops;
                if let Some(of_plan) = &mut plan.loss {
                    of_plan.five_years = loss;
                }
            }
            recommend(&plans, &[]).expect("one is chosen")
        };
        // Only RAID 6 is safe. Its speed does not matter, and the others are listed with the reasons against them.
        let six = with([(900.0, 0.0), (700.0, 0.02), (500.0, 0.09), (300.0, 1e-5)]);
        assert_eq!(six.array.to_string(), "raid6x8");
        assert!(
            six.others[0].contains("with the first drive")
                && six.others[1].contains("2.00 % of cases (but 133 % faster"),
            "{:?}",
            six.others
        );
        // All levels are safe: the fastest is recommended, unless one of almost the same speed has more capacity.
        assert_eq!(with([(900.0, 0.0), (700.0, 0.0), (500.0, 0.0), (300.0, 0.0)]).array.to_string(), "raid10x8");
        assert_eq!(with([(900.0, 0.0), (700.0, 0.0), (690.0, 0.0), (300.0, 0.0)]).array.to_string(), "raid5x8");
        // No level is safe: the one with the lowest probability of data loss is recommended.
        let least = with([(900.0, 0.0), (700.0, 0.02), (500.0, 0.09), (300.0, 0.03)]);
        assert!(
            least.array.to_string() == "raid10x8" && least.reasons[0].contains("none stays below"),
            "{:?}",
            least.reasons
        );
    }
}
