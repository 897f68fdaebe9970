//! Several machines in one answer: the gain of more drives, other drives and another bus.

use openraid_methods::cell::{mixed, PartName, Subject};
use openraid_methods::plan::Planned;
use openraid_units::Bytes;
use serde::Deserialize;

use super::text::chance;
use super::MachinePlan;
use openraid::output::table::TextTable;
use openraid::quantity::{figure, sold};

/// Minimum gain of more drives, other drives or another bus in percent, to be called one.
const DRIVES_PAY: f64 = 5.0;

/// The parts of a machine's plan by which machines are compared. They come from a plan, or from the file of a part.
#[derive(Deserialize)]
pub(super) struct PlannedMachine {
    drives: u16,
    drive: String,
    bus: String,
    levels: Vec<PlanLevel>,
    recommendation: Option<ChosenArray>,
    #[serde(default)]
    prices: Vec<Price>,
}

#[derive(Deserialize)]
struct Price {
    array: Subject,
    per_tb: Option<f64>,
}

#[derive(Deserialize)]
struct ChosenArray {
    array: Subject,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PlanLevel {
    Possible(Box<Possible>),
    Impossible {},
}

#[derive(Deserialize)]
struct Possible {
    array: Subject,
    capacity: u64,
    healthy: Healthy,
    by_latency: bool,
    bottleneck: Option<Part>,
    loss: Option<LossRisk>,
}

#[derive(Deserialize)]
struct Healthy {
    iops: f64,
    mean_ms: f64,
}

#[derive(Deserialize)]
struct Part {
    part: PartName,
    busy: f64,
}

#[derive(Deserialize)]
struct LossRisk {
    five_years: f64,
}

/// Converts plans to machines.
pub(super) fn machines(plans: &[MachinePlan]) -> Vec<PlannedMachine> {
    plans.iter().map(machine).collect()
}

fn machine(body: &MachinePlan) -> PlannedMachine {
    let level = |planned: &Planned| match planned {
        Planned::Impossible { .. } => PlanLevel::Impossible {},
        Planned::Possible(plan) => PlanLevel::Possible(Box::new(Possible {
            array: plan.array,
            capacity: plan.capacity,
            healthy: Healthy { iops: plan.healthy.iops, mean_ms: plan.healthy.mean_ms },
            by_latency: plan.by_latency,
            bottleneck: plan.bottleneck.as_ref().map(|part| Part { part: part.part, busy: part.busy }),
            loss: plan.loss.as_ref().map(|loss| LossRisk { five_years: loss.five_years }),
        })),
    };
    PlannedMachine {
        drives: body.drives,
        drive: body.drive.clone(),
        bus: body.bus.clone(),
        levels: body.levels.iter().map(level).collect(),
        recommendation: body.recommendation.as_ref().map(|chosen| ChosenArray { array: chosen.array() }),
        prices: body.prices.iter().map(|price| Price { array: price.array, per_tb: price.per_tb }).collect(),
    }
}

impl Possible {
    /// The figure for comparison; more is better.
    fn merit(&self) -> f64 {
        if self.by_latency {
            1e3 / self.healthy.mean_ms
        } else {
            self.healthy.iops
        }
    }

    fn speed(&self) -> String {
        if self.by_latency {
            format!("{} ms in the mean", figure(self.healthy.mean_ms))
        } else {
            format!("{} requests/s", figure(self.healthy.iops))
        }
    }
}

impl PlannedMachine {
    fn possible(&self) -> impl Iterator<Item = &Possible> {
        self.levels.iter().filter_map(|level| match level {
            PlanLevel::Possible(plan) => Some(&**plan),
            PlanLevel::Impossible {} => None,
        })
    }

    /// The price of a usable TB of the recommended level.
    fn per_tb(&self) -> Option<f64> {
        let chosen = self.chosen()?;
        self.prices.iter().find(|price| price.array == chosen.array)?.per_tb
    }

    fn chosen(&self) -> Option<&Possible> {
        let chosen = self.recommendation.as_ref()?;
        self.possible().find(|plan| plan.array == chosen.array)
    }
}

/// The gain of more drives for each level, and the gain of another drive or bus for the recommended level.
pub(super) fn across(machines: &[PlannedMachine]) -> Vec<String> {
    let mut lines = Vec::new();
    let several = |of: fn(&PlannedMachine) -> &String| machines.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]));
    let varied = Varied { drive: several(|machine| &machine.drive), bus: several(|machine| &machine.bus) };
    for machine in machines {
        let alike = |other: &&PlannedMachine| {
            other.drive == machine.drive && other.bus == machine.bus && other.drives > machine.drives
        };
        let next = machines.iter().filter(alike).min_by_key(|other| other.drives);
        let words = varied.words(machine, true, true);
        lines.extend(next.into_iter().flat_map(|next| more_drives(machine, next)).map(|line| format!("{words}{line}")));
    }
    for (number, machine) in machines.iter().enumerate() {
        let others = machines[number + 1..].iter().filter(|other| other.drives == machine.drives);
        let others = others.filter(|other| (other.drive == machine.drive) != (other.bus == machine.bus));
        let line = |other: &PlannedMachine| {
            let words = varied.words(machine, other.drive == machine.drive, other.bus == machine.bus);
            instead(machine, other).map(|line| format!("{words}{line}"))
        };
        lines.extend(others.filter_map(line));
    }
    lines
}

/// Which parts of a machine a line must name, because the answer has machines with other ones.
struct Varied {
    drive: bool,
    bus: bool,
}

impl Varied {
    /// The words before a line about this machine. `drive` and `bus` say that the line is about machines with the same.
    fn words(&self, machine: &PlannedMachine, drive: bool, bus: bool) -> String {
        match (self.drive && drive, self.bus && bus) {
            (true, true) => format!("{} on {}: ", machine.drive, machine.bus),
            (true, false) => format!("{}: ", machine.drive),
            (false, true) => format!("{}: ", machine.bus),
            (false, false) => String::new(),
        }
    }
}

fn more_drives(fewer: &PlannedMachine, more: &PlannedMachine) -> Vec<String> {
    let gain = |plan: &Possible| {
        let other = more.possible().find(|other| other.array.level() == plan.array.level())?;
        let percent = (other.merit() / plan.merit() - 1.0) * 100.0;
        let limit = other.bottleneck.as_ref().filter(|part| part.part != PartName::Members);
        let why = limit.map(|part| format!("; the {} is busy for {:.0} % of the time", part.part, part.busy * 100.0));
        let verdict = match percent {
            percent if percent < -DRIVES_PAY => "more drives cost speed",
            percent if percent < DRIVES_PAY => "more drives bring no speed",
            _ => "more drives bring speed",
        };
        let (from, to, why) = (&plan.array, &other.array, why.unwrap_or_default());
        Some(format!("{from} to {to}: {}: {verdict}{why}", signed(percent)))
    };
    fewer.possible().filter_map(gain).collect()
}

/// The gain of another drive or another bus for the recommended level; without one, for the fastest.
fn instead(machine: &PlannedMachine, other: &PlannedMachine) -> Option<String> {
    let fastest = || machine.possible().max_by(|a, b| a.merit().total_cmp(&b.merit()));
    let plan = machine.chosen().or_else(fastest)?;
    let its = other.possible().find(|its| its.array == plan.array)?;
    let percent = (its.merit() / plan.merit() - 1.0) * 100.0;
    let what = if machine.bus == other.bus { (&other.drive, &machine.drive) } else { (&other.bus, &machine.bus) };
    let verdict = if percent.abs() < DRIVES_PAY { ": hardly a difference" } else { "" };
    Some(format!("{}: {} instead of {}: {}{verdict}", plan.array, what.0, what.1, signed(percent)))
}

/// Percent with a sign; a value that rounds to zero has a plus.
fn signed(percent: f64) -> String {
    format!("{:+.0} %", percent.round() + 0.0)
}

/// A table with the recommended level of each machine.
pub(super) fn text(machines: &[PlannedMachine], across: &[String]) -> Vec<String> {
    if machines.len() < 2 {
        return Vec::new();
    }
    let mut heads = vec!["MACHINE", "RECOMMENDED", "ROOM", "SPEED", "LOSS IN 5 YEARS, %"];
    let priced = machines.iter().any(|machine| machine.per_tb().is_some());
    heads.extend(priced.then_some("PRICE A TB"));
    let mut table = TextTable::new(&heads);
    for machine in machines {
        let of = |words: fn(&Possible) -> String| machine.chosen().map_or_else(|| "-".into(), words);
        let drives = if mixed(&machine.drive).len() > 1 {
            machine.drive.clone()
        } else {
            format!("{} x {}", machine.drives, machine.drive)
        };
        let mut row = vec![
            format!("{drives} on {}", machine.bus),
            of(|plan| plan.array.to_string()),
            of(|plan| sold(Bytes(plan.capacity))),
            of(Possible::speed),
            of(|plan| plan.loss.as_ref().map_or_else(|| "-".into(), |loss| chance(loss.five_years))),
        ];
        row.extend(priced.then(|| machine.per_tb().map_or_else(|| "-".into(), |price| format!("{price:.2}"))));
        table.row(row);
    }
    let mut lines = vec![table.text().trim_end().to_owned()];
    lines.extend(across.iter().cloned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_methods::cell::Level;

    fn machine(drives: u16, bus: &str, iops: f64, part: PartName) -> PlannedMachine {
        let array = Subject::Array { level: Level::Raid6, members: drives };
        let bottleneck = Some(Part { part, busy: 0.97 });
        let (healthy, loss) = (Healthy { iops, mean_ms: 1.0 }, None);
        let plan = Possible { array, capacity: 1, healthy, by_latency: false, bottleneck, loss };
        let levels = vec![PlanLevel::Possible(Box::new(plan)), PlanLevel::Impossible {}];
        let recommendation = Some(ChosenArray { array });
        PlannedMachine { drives, drive: "d".into(), bus: bus.into(), levels, recommendation, prices: Vec::new() }
    }

    #[test]
    fn a_change_that_rounds_to_nothing_has_a_plus() {
        assert_eq!((signed(-0.3), signed(0.3), signed(-1.6)), ("+0 %".into(), "+0 %".into(), "-2 %".into()));
    }

    #[test]
    fn more_drives_on_a_full_bus_gain_nothing_and_another_bus_does() {
        let found = across(&[
            machine(4, "dmi2", 100.0, PartName::Members),
            machine(6, "dmi2", 102.0, PartName::Bus),
            machine(6, "pcie3_x8", 153.0, PartName::Members),
            machine(6, "pcie3_x16", 151.0, PartName::Members),
            machine(8, "pcie3_x8", 128.0, PartName::Members),
        ]);
        assert_eq!(
            found,
            [
                "dmi2: raid6x4 to raid6x6: +2 %: more drives bring no speed; the bus is busy for 97 % of the time",
                "pcie3_x8: raid6x6 to raid6x8: -16 %: more drives cost speed",
                "raid6x6: pcie3_x8 instead of dmi2: +50 %",
                "raid6x6: pcie3_x16 instead of dmi2: +48 %",
                "raid6x6: pcie3_x16 instead of pcie3_x8: -1 %: hardly a difference",
            ]
        );
    }
}
