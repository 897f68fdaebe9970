//! Chooses the recommended level and gives the reason: speed, discounted by the risk of losing data, then room.
//!
//! ```text
//!   1  levels that survive a failure; if a rate must be carried, the levels that carry it best: in all states, with a drive
//!      missing, at the low end of the range, or only healthy
//!   2  the fastest of them. A level that loses data within five years in more than 1 % of cases counts less in proportion:
//!      half as fast at 2 %. If a rate is carried, speed does not matter any more
//!   3  of all that count at most a tenth less, or are not distinguished from it, the one with the largest capacity
//! ```

use openraid_methods::cell::Subject;
use openraid_methods::plan::{LevelPlan, LossRisk, Planned};
use openraid_units::Bytes;
use serde::Serialize;

use super::advice::{possible, speed_of};
use super::level_tables::chance;
use super::rate::{carries, in_reserve, Carries};
use super::Comparison;
use openraid::quantity::{figure, sold};

/// Up to this probability of data loss within five years, the speed of a level counts in full.
const FIVE_YEARS: f64 = 0.01;
/// A level counts as fast if it has at least this share of the fastest level's value.
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

/// The chance of losing the array, and that of losing sectors, as text.
pub(super) fn losses(loss: &LossRisk) -> String {
    let (array, sector) = (chance(loss.array_five_years[0]), chance(loss.sector_five_years[0]));
    format!("loses the array within five years in {array} % of cases, sectors in {sector} %")
}

/// The share of its speed that counts, by its chance of losing data.
fn weight(plan: &LevelPlan) -> f64 {
    plan.loss.as_ref().map_or(1.0, |loss| FIVE_YEARS / loss.five_years.max(FIVE_YEARS))
}

/// The recommended level, for a rate that must be carried if one is known; none if no level survives a failure.
pub(super) fn recommend(levels: &[Planned], comparisons: &[Comparison], rate: Option<f64>) -> Option<Recommendation> {
    let surviving: Vec<&LevelPlan> = possible(levels).filter(|plan| plan.survives.0 > 0).collect();
    let tier = |plan: &LevelPlan| rate.map_or(Carries::Not, |rate| carries(plan, rate));
    let best_tier = surviving.iter().map(|plan| tier(plan)).max()?;
    let is_carried = best_tier > Carries::Not;
    let allowed: Vec<&LevelPlan> = surviving.into_iter().filter(|plan| tier(plan) == best_tier).collect();
    let value = |plan: &LevelPlan| weight(plan) * if is_carried { 1.0 } else { plan.merit() };
    let order = |one: &&LevelPlan, two: &&LevelPlan| {
        value(one).total_cmp(&value(two)).then(one.merit().total_cmp(&two.merit()))
    };
    let best = allowed.iter().copied().max_by(order)?;
    let alike = |plan: &LevelPlan| {
        let comparison =
            comparisons.iter().find(|comparison| comparison.faster == best.array && comparison.than == plan.array);
        let is_level = comparison.is_some_and(|comparison| !super::advice::is_told_apart(&comparison.lead));
        value(plan) >= AS_FAST * value(best) || (is_level && weight(plan) >= AS_FAST * weight(best))
    };
    // A difference of one hundredth in capacity decides nothing.
    let largest = allowed.iter().filter(|plan| alike(plan)).map(|plan| plan.capacity).max()?;
    let roomy = allowed.iter().copied().filter(|plan| alike(plan) && plan.capacity / 99 >= largest / 100);
    let chosen = roomy.max_by(order)?;
    let is_fastest = allowed.iter().all(|plan| plan.merit() <= chosen.merit());
    let mut reasons = vec![chosen
        .loss
        .as_ref()
        .map_or_else(|| "survives a failure; how likely it loses data is not known".into(), losses)];
    reasons.push(match rate {
        Some(rate) if is_carried => in_reserve(chosen, rate),
        Some(rate) => {
            format!(
                "no level that survives a failure carries {} requests/s; it makes {}",
                figure(rate),
                speed_of(chosen)
            )
        }
        None if is_fastest && allowed.len() > 1 => {
            format!("the fastest that survives a failure ({})", speed_of(chosen))
        }
        None if allowed.len() == 1 => speed_of(chosen),
        None if chosen.array == best.array => format!("the fastest for its safety ({})", speed_of(chosen)),
        None if chosen.merit() < AS_FAST * best.merit() => {
            format!("as good as {}, which is faster and less safe ({}), with more room", best.array, speed_of(chosen))
        }
        None => format!("as fast as {} within a tenth ({}), with more room", best.array, speed_of(chosen)),
    });
    reasons.push(sold(Bytes(chosen.capacity)));
    let others = possible(levels).filter(|plan| plan.array != chosen.array);
    let others = others.map(|plan| against(plan, chosen, rate.filter(|_| is_carried))).collect();
    Some(Recommendation { array: chosen.array, reasons, others })
}

/// The reasons against this level, and its advantages. `rate` is carried by the chosen one.
fn against(plan: &LevelPlan, chosen: &LevelPlan, rate: Option<f64>) -> String {
    let reason = match (&plan.loss, rate) {
        _ if plan.survives.0 == 0 => "loses everything with the first drive".to_owned(),
        (_, Some(rate)) if carries(plan, rate) < carries(chosen, rate) => {
            let state = match carries(plan, rate) {
                Carries::Not => "",
                Carries::Healthy => " at the low end of its range",
                Carries::AtLowEnd => " with a drive missing",
                Carries::Degraded | Carries::Always => " during its rebuild",
            };
            format!("does not carry {} requests/s{state}", figure(rate))
        }
        (Some(loss), Some(_)) if weight(plan) < AS_FAST * weight(chosen) => losses(loss),
        (Some(loss), None) if weight(plan) < weight(chosen) => {
            let counts = weight(plan) * 100.0;
            format!("{}: more than 1 % together, so {counts:.0} % of its speed counts", losses(loss))
        }
        (_, Some(_)) => "no more room".into(),
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
pub(super) mod tests {
    use super::*;
    use openraid_methods::cell::{Axes, Effort, Level, Pattern};
    use openraid_methods::plan::{PlanRequest, Speed, StandIns};

    /// RAID 0, 10, 5 and 6 of eight drives.
    pub fn plans() -> Vec<Planned> {
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
            replacement_hours: 0,
            stand_ins: StandIns::default(),
        };
        request.run(&openraid_models::Library::builtin(), 2, |_, _| {}).expect("a plan")
    }

    /// The same levels with these requests each second and these chances of losing sectors within five years.
    pub fn with(plans: &[Planned], figures: [(f64, f64); 4]) -> Vec<Planned> {
        let mut plans = plans.to_vec();
        for (plan, (iops, loss)) in plans.iter_mut().zip(figures) {
            let Planned::Possible(plan) = plan else { panic!("each can be") };
            plan.healthy.iops = iops;
            if let Some(of_plan) = &mut plan.loss {
                (of_plan.five_years, of_plan.array_five_years[0], of_plan.sector_five_years[0]) = (loss, 0.0, loss);
            }
        }
        plans
    }

    #[test]
    fn the_recommended_level_is_fast_for_its_safety_then_large() {
        let plans = plans();
        let of = |figures| recommend(&with(&plans, figures), &[], None).expect("one is chosen");
        // RAID 10 counts 350, RAID 5 counts 55, and RAID 6 is slow.
        let ten = of([(900.0, 0.0), (700.0, 0.02), (500.0, 0.09), (300.0, 1e-5)]);
        assert_eq!(ten.array.to_string(), "raid10x8");
        assert!(
            ten.reasons[0] == "loses the array within five years in 0.00 % of cases, sectors in 2.00 %"
                && ten.reasons[1] == "the fastest that survives a failure (700 requests/s)",
            "{:?}",
            ten.reasons
        );
        assert!(
            ten.others[0].contains("with the first drive")
                && ten.others[1].contains("sectors in 9.00 %: more than 1 % together, so 11 % of its speed counts"),
            "{:?}",
            ten.others
        );
        // A little more than one in a hundred costs a little.
        let close = of([(900.0, 0.0), (700.0, 0.0109), (500.0, 0.0), (300.0, 0.0)]);
        assert_eq!(close.array.to_string(), "raid10x8", "1.09 % are not rejected for 1.00 %");
        let far = of([(900.0, 0.0), (700.0, 0.02), (500.0, 0.09), (400.0, 1e-5)]);
        assert_eq!(
            (far.array.to_string().as_str(), far.reasons[1].as_str()),
            ("raid6x8", "the fastest for its safety (400 requests/s)")
        );
        // All levels are safe: the fastest is recommended, unless one of almost the same speed has more capacity.
        assert_eq!(of([(900.0, 0.0), (700.0, 0.0), (500.0, 0.0), (300.0, 0.0)]).array.to_string(), "raid10x8");
        assert_eq!(of([(900.0, 0.0), (700.0, 0.0), (690.0, 0.0), (300.0, 0.0)]).array.to_string(), "raid5x8");
    }

    #[test]
    fn a_level_that_carries_the_rate_needs_no_more_speed() {
        let plans = with(&plans(), [(900.0, 0.0), (700.0, 0.0), (500.0, 0.0), (400.0, 0.0)]);
        let mut plans = plans;
        for planned in &mut plans {
            let Planned::Possible(plan) = planned else { panic!("each can be") };
            (plan.degraded, plan.rebuilding) = (Some(plan.healthy), Some(plan.healthy));
        }
        let of = |rate| recommend(&plans, &[], Some(rate)).expect("one is chosen");
        assert_eq!(of(300.0).array.to_string(), "raid5x8", "the most room of the arrays that carry it");
        assert!(
            of(300.0).reasons[1].starts_with("carries 300 requests/s with 40 % in reserve"),
            "{:?}",
            of(300.0).reasons
        );
        let more = of(600.0);
        assert_eq!(more.array.to_string(), "raid10x8");
        assert!(
            more.others.iter().any(|other| other.starts_with("raid5x8: does not carry 600 requests/s")),
            "{:?}",
            more.others
        );
        // None carries 450 during a rebuild. RAID 10 carries it with a drive missing, and RAID 5 does not.
        let Some(Planned::Possible(five)) = plans.get_mut(2) else { panic!("it can be") };
        (five.degraded, five.low_percent) = (Some(Speed { iops: 440.0, ..five.healthy }), 1.0);
        for planned in &mut plans {
            let Planned::Possible(plan) = planned else { panic!("each can be") };
            plan.rebuilding = Some(Speed { iops: 100.0, ..plan.healthy });
        }
        let missing = recommend(&plans, &[], Some(450.0)).expect("one is chosen");
        assert_eq!(missing.array.to_string(), "raid10x8");
        let why = "raid5x8: does not carry 450 requests/s with a drive missing";
        assert!(missing.others.iter().any(|other| other.starts_with(why)), "{:?}", missing.others);
        let of = |rate| recommend(&plans, &[], Some(rate)).expect("one is chosen");
        assert!(
            of(1000.0).reasons[1].starts_with("no level that survives a failure carries 1000 requests/s"),
            "{:?}",
            of(1000.0).reasons
        );
    }
}
