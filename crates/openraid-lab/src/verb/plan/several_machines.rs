//! Several machines in one answer: the gain of more drives, of other drives, another bus, cache or chunk, and the effect of
//! spares.

use openraid_methods::cell::{mixed, PartName, Subject};
use openraid_methods::plan::Planned;
use openraid_units::Bytes;
use serde::Deserialize;

use super::level_tables::{chance, spare_words};
use super::MachinePlan;
use openraid::output::table::TextTable;
use openraid::quantity::{figure, human, sold};

/// Minimum gain of more drives, other drives or another bus in percent, to be called one.
const DRIVES_PAY: f64 = 5.0;

/// The parts of a machine's plan by which machines are compared. They come from a plan, or from the file of a part.
#[derive(Deserialize)]
pub(super) struct PlannedMachine {
    drives: u16,
    drive: String,
    bus: String,
    #[serde(default)]
    cache: Option<String>,
    #[serde(default)]
    chunk_bytes: u64,
    #[serde(default)]
    spares: u16,
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
    by_throughput: bool,
    bottleneck: Option<Part>,
    loss: Option<LossRisk>,
}

#[derive(Deserialize)]
struct Healthy {
    iops: f64,
    mbps: f64,
    mean_ms: f64,
}

#[derive(Deserialize)]
struct Part {
    part: PartName,
    busy: f64,
}

#[derive(Deserialize)]
struct LossRisk {
    array_five_years: [f64; 2],
    sector_five_years: [f64; 2],
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
            healthy: Healthy { iops: plan.healthy.iops, mbps: plan.healthy.mbps, mean_ms: plan.healthy.mean_ms },
            by_latency: plan.by_latency,
            by_throughput: plan.by_throughput,
            bottleneck: plan.bottleneck.as_ref().map(|part| Part { part: part.part, busy: part.busy }),
            loss: plan.loss.as_ref().map(|loss| LossRisk {
                array_five_years: loss.array_five_years,
                sector_five_years: loss.sector_five_years,
            }),
        })),
    };
    PlannedMachine {
        drives: body.drives,
        drive: body.drive.clone(),
        bus: body.bus.clone(),
        cache: body.cache.clone(),
        chunk_bytes: body.chunk_bytes,
        spares: body.spares,
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
        match (self.by_latency, self.by_throughput) {
            (true, _) => format!("{} ms in the mean", figure(self.healthy.mean_ms)),
            (false, true) => format!("{} MB/s", figure(self.healthy.mbps)),
            (false, false) => format!("{} requests/s", figure(self.healthy.iops)),
        }
    }

    /// The probability of a loss within five years in percent; a dash if it is not known.
    fn lost(&self, of: fn(&LossRisk) -> [f64; 2]) -> String {
        self.loss.as_ref().map_or_else(|| "-".into(), |loss| chance(of(loss)[0]))
    }
}

/// Number of settings in which machines of one answer may differ, besides their number of drives.
const SETTINGS: usize = 5;
/// The place of the spares among the settings.
const SPARES: usize = 4;

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

    /// Drives and spares together.
    const fn all_drives(&self) -> u16 {
        self.drives + self.spares
    }

    /// The values in which machines of one answer may differ: drive, bus, cache, chunk, spares.
    fn settings(&self) -> [String; SETTINGS] {
        let cache = self.cache.clone().unwrap_or_default();
        let chunk = format!("chunk {}", human(Bytes(self.chunk_bytes)));
        [self.drive.clone(), self.bus.clone(), cache, chunk, spare_words(self.spares)]
    }

    fn chosen(&self) -> Option<&Possible> {
        let chosen = self.recommendation.as_ref()?;
        self.possible().find(|plan| plan.array == chosen.array)
    }
}

/// The gain of more drives for each level, and the gain of another drive, bus, cache or chunk, and the effect of spares,
/// for the recommended level.
pub(super) fn across(machines: &[PlannedMachine]) -> Vec<String> {
    let mut lines = Vec::new();
    let words = |machine: &PlannedMachine, left_out: Option<usize>| {
        let settings = machine.settings();
        let is_named = |place: &usize| {
            Some(*place) != left_out && machines.iter().any(|other| other.settings()[*place] != settings[*place])
        };
        let named: Vec<&str> = (0..SETTINGS).filter(is_named).map(|place| settings[place].as_str()).collect();
        if named.is_empty() {
            return String::new();
        }
        format!("{}: ", named.join(", "))
    };
    for machine in machines {
        let alike = |other: &&PlannedMachine| other.settings() == machine.settings() && other.drives > machine.drives;
        let next = machines.iter().filter(alike).min_by_key(|other| other.drives);
        let words = words(machine, None);
        lines.extend(next.into_iter().flat_map(|next| more_drives(machine, next)).map(|line| format!("{words}{line}")));
    }
    for (number, machine) in machines.iter().enumerate() {
        let others = machines[number + 1..].iter().filter(|other| other.all_drives() == machine.all_drives());
        for other in others {
            let (ours, theirs) = (machine.settings(), other.settings());
            let differ: Vec<usize> = (0..SETTINGS).filter(|place| ours[*place] != theirs[*place]).collect();
            if let [place] = differ[..] {
                let line = instead(machine, other, place);
                lines.extend(line.map(|line| format!("{}{line}", words(machine, Some(place)))));
            }
        }
    }
    lines
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

/// The gain of the one setting in which another machine differs, for the recommended level; without one, for the fastest.
fn instead(machine: &PlannedMachine, other: &PlannedMachine, place: usize) -> Option<String> {
    let fastest = || machine.possible().max_by(|a, b| a.merit().total_cmp(&b.merit()));
    let plan = machine.chosen().or_else(fastest)?;
    let its = other.possible().find(|its| its.array.level() == plan.array.level())?;
    let percent = (its.merit() / plan.merit() - 1.0) * 100.0;
    let (array, theirs, ours) = (&plan.array, &other.settings()[place], &machine.settings()[place]);
    if place == SPARES {
        let lost = |of: fn(&LossRisk) -> [f64; 2]| format!("{} against {} %", its.lost(of), plan.lost(of));
        return Some(format!(
            "{} with {theirs} instead of {array} with {ours}: {}, {} against {} of room; loses the array within five years in \
             {} of cases, sectors in {}",
            its.array,
            signed(percent),
            sold(Bytes(its.capacity)),
            sold(Bytes(plan.capacity)),
            lost(|loss| loss.array_five_years),
            lost(|loss| loss.sector_five_years)
        ));
    }
    let verdict = if percent.abs() < DRIVES_PAY { ": hardly a difference" } else { "" };
    Some(format!("{array}: {theirs} instead of {ours}: {}{verdict}", signed(percent)))
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
    let lost = ["ARRAY LOST IN 5 YEARS, %", "SECTOR LOST IN 5 YEARS, %"];
    let mut heads = vec!["MACHINE", "RECOMMENDED", "ROOM", "SPEED"];
    heads.extend(lost);
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
        let settings = machine.settings();
        let differs = |place: &usize| machines.iter().any(|other| other.settings()[*place] != settings[*place]);
        // Drive and bus are always named.
        let others: String = (2..SETTINGS).filter(differs).map(|place| format!(", {}", settings[place])).collect();
        let mut row = vec![
            format!("{drives} on {}{others}", machine.bus),
            of(|plan| plan.array.to_string()),
            of(|plan| sold(Bytes(plan.capacity))),
            of(Possible::speed),
            of(|plan| plan.lost(|loss| loss.array_five_years)),
            of(|plan| plan.lost(|loss| loss.sector_five_years)),
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
        let (healthy, loss) = (Healthy { iops, mbps: 1.0, mean_ms: 1.0 }, None);
        let plan = Possible { array, capacity: 1, healthy, by_latency: false, by_throughput: false, bottleneck, loss };
        let levels = vec![PlanLevel::Possible(Box::new(plan)), PlanLevel::Impossible {}];
        let recommendation = Some(ChosenArray { array });
        let (drive, bus, prices) = ("d".into(), bus.into(), Vec::new());
        let (cache, chunk_bytes, spares) = (None, 65_536, 0);
        PlannedMachine { drives, drive, bus, cache, chunk_bytes, spares, levels, recommendation, prices }
    }

    #[test]
    fn caches_chunks_and_spares_are_compared_in_one_answer() {
        let with = |cache: &str, chunk_bytes: u64, spares: u16, iops: f64, array: f64| {
            let mut one = machine(8 - spares, "b", iops, PartName::Members);
            (one.cache, one.chunk_bytes, one.spares) = (Some(cache.into()), chunk_bytes, spares);
            if let PlanLevel::Possible(plan) = &mut one.levels[0] {
                plan.capacity = u64::from(8 - spares) * 1_000_000_000_000;
                plan.loss = Some(LossRisk { array_five_years: [array; 2], sector_five_years: [array * 2.0; 2] });
            }
            one
        };
        let machines = [
            with("write-through", 65_536, 0, 100.0, 0.02),
            with("write-through", 65_536, 1, 88.0, 0.01),
            with("write-through", 524_288, 0, 103.0, 0.02),
            with("write-back 256 MiB", 65_536, 0, 160.0, 0.02),
        ];
        let found = across(&machines);
        assert_eq!(
            found,
            [
                "write-through, chunk 64 KiB: raid6x7 with 1 spare instead of raid6x8 with no spare: -12 %, 7.0 TB (6.3 TiB) \
                 against 8.0 TB (7.2 TiB) of room; loses the array within five years in 1.00 against 2.00 % of cases, sectors \
                 in 2.00 against 4.00 %",
                "write-through, no spare: raid6x8: chunk 512 KiB instead of chunk 64 KiB: +3 %: hardly a difference",
                "chunk 64 KiB, no spare: raid6x8: write-back 256 MiB instead of write-through: +60 %",
            ]
        );
        let table = text(&machines, &found);
        assert!(table[0].contains("7 x d on b, write-through, chunk 64 KiB, 1 spare"), "{}", table[0]);
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
