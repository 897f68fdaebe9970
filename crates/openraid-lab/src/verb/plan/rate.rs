//! Which levels carry a rate of requests, and what they have in reserve.

use openraid_methods::cell::Subject;
use openraid_methods::plan::{LevelPlan, Planned, Speed};
use serde::Serialize;

use super::advice::possible;
use openraid::quantity::figure;

/// What an array has in reserve at the rate that it must carry.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Reserve {
    /// The array, such as `raid6x8`.
    #[schema(value_type = String)]
    array: Subject,
    /// Share of its speed that the rate leaves free, percent; below zero if the array does not carry the rate.
    healthy_percent: f64,
    /// The same at the low end of the figure's range.
    low_percent: f64,
    /// The same with a drive missing, if the array survives that.
    degraded_percent: Option<f64>,
    /// The same during a rebuild.
    rebuilding_percent: Option<f64>,
}

/// Percent of a speed that a rate leaves free.
fn free(iops: f64, rate: f64) -> f64 {
    (1.0 - rate / iops) * 100.0
}

fn reserve(plan: &LevelPlan, rate: f64) -> Reserve {
    let of = |speed: &Option<Speed>| speed.as_ref().map(|speed| free(speed.iops, rate));
    Reserve {
        array: plan.array,
        healthy_percent: free(plan.healthy.iops, rate),
        low_percent: free(plan.healthy.iops * (1.0 - plan.low_percent / 100.0).max(0.0), rate),
        degraded_percent: of(&plan.degraded),
        rebuilding_percent: of(&plan.rebuilding),
    }
}

/// The reserves of all possible levels.
pub(super) fn reserves(levels: &[Planned], rate: f64) -> Vec<Reserve> {
    possible(levels).map(|plan| reserve(plan, rate)).collect()
}

/// How well an array carries a rate, the best last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Carries {
    /// Not with all of its drives.
    Not,
    /// With all of its drives, but not at the low end of the figure's range.
    Healthy,
    /// Also at the low end of the range.
    AtLowEnd,
    /// Also with a drive missing.
    Degraded,
    /// Also during a rebuild: in each state that it survives.
    Always,
}

impl Reserve {
    /// A figure that is not known carries nothing.
    fn carries(&self) -> Carries {
        let is_enough = |percent: Option<f64>| percent.is_some_and(|percent| percent >= 0.0);
        if self.healthy_percent < 0.0 {
            return Carries::Not;
        }
        match (is_enough(self.degraded_percent), is_enough(self.rebuilding_percent)) {
            (true, true) => Carries::Always,
            (true, false) => Carries::Degraded,
            _ if self.low_percent >= 0.0 => Carries::AtLowEnd,
            _ => Carries::Healthy,
        }
    }

    /// `58 % in reserve (30 % at the low end of the range), 51 % with a drive missing, 44 % during a rebuild`.
    fn words(&self) -> String {
        let low = match self.low_percent {
            low if low >= 0.0 => format!("{low:.0} % at the low end of the range"),
            _ => "none at the low end of the range".into(),
        };
        let mut words = format!("{:.0} % in reserve ({low})", self.healthy_percent);
        let mut too_slow = Vec::new();
        for (percent, state) in
            [(self.degraded_percent, "with a drive missing"), (self.rebuilding_percent, "during a rebuild")]
        {
            match percent {
                Some(percent) if percent >= 0.0 => words.push_str(&format!(", {percent:.0} % {state}")),
                Some(_) => too_slow.push(state),
                None => {}
            }
        }
        if !too_slow.is_empty() {
            words.push_str(&format!(", but does not carry it {}", too_slow.join(" or ")));
        }
        words
    }
}

/// How well an array carries a rate.
pub(super) fn carries(plan: &LevelPlan, rate: f64) -> Carries {
    reserve(plan, rate).carries()
}

/// What an array has in reserve, in words.
pub(super) fn in_reserve(plan: &LevelPlan, rate: f64) -> String {
    format!("carries {} requests/s with {}", figure(rate), reserve(plan, rate).words())
}

/// The answer: a line for each level.
pub(super) fn lines(levels: &[Planned], rate: f64, outstanding: u32) -> Vec<String> {
    let line = |plan: &LevelPlan| match reserve(plan, rate) {
        reserve if reserve.carries() > Carries::Not => format!("  {}: carries it with {}", plan.array, reserve.words()),
        _ => format!("  {}: does not carry it: {} requests/s at most", plan.array, figure(plan.healthy.iops)),
    };
    let head = format!(
        "{} requests/s must be carried; the most that each level carries, with {outstanding} outstanding:",
        figure(rate)
    );
    std::iter::once(head).chain(possible(levels).map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::recommend::tests::{plans, with};
    use super::*;

    #[test]
    fn each_level_says_what_it_has_in_reserve_at_the_rate_of_iostat() {
        let mut plans = with(&plans(), [(900.0, 0.0), (600.0, 0.0), (400.0, 0.0), (250.0, 0.0)]);
        for planned in &mut plans {
            let Planned::Possible(plan) = planned else { panic!("each can be") };
            plan.low_percent = 40.0;
            let slower = |share: f64| Some(Speed { iops: plan.healthy.iops * share, ..plan.healthy });
            if plan.survives.0 > 0 {
                (plan.degraded, plan.rebuilding) = (slower(0.8), slower(0.7));
            }
        }
        let wanted = [
            "300 requests/s must be carried; the most that each level carries, with 32 outstanding:",
            "  raid0x8: carries it with 67 % in reserve (44 % at the low end of the range)",
            "  raid10x8: carries it with 50 % in reserve (17 % at the low end of the range), 38 % with a drive missing, 29 % \
             during a rebuild",
            "  raid5x8: carries it with 25 % in reserve (none at the low end of the range), 6 % with a drive missing, but does \
             not carry it during a rebuild",
            "  raid6x8: does not carry it: 250 requests/s at most",
        ];
        assert_eq!(lines(&plans, 300.0, 32), wanted);
        let found: Vec<Carries> = possible(&plans).map(|plan| carries(plan, 300.0)).collect();
        assert_eq!(found, [Carries::AtLowEnd, Carries::Always, Carries::Degraded, Carries::Not]);
        // With a drive missing 320 and during a rebuild 280 are too few for 330.
        assert!(lines(&plans, 330.0, 32)[3].ends_with("but does not carry it with a drive missing or during a rebuild"));
        let Some(Planned::Possible(unknown)) = plans.get_mut(1) else { panic!("it can be") };
        unknown.degraded = None;
        assert_eq!(carries(unknown, 300.0), Carries::AtLowEnd, "a run that failed carries nothing");
    }
}
