//! The electricity of an array's drives. The user gives the prices, because no profile has the current price of a
//! drive.

use crate::cell::CellResult;
use openraid_sim::machine::MachineSpec;
use serde::Serialize;

/// The hours of a year divided by 1,000: converts watts to kWh of a year.
const KILO_HOURS_OF_YEAR: f64 = 8.76;

/// Electricity of an array's drives, without controller, host and power supply.
#[derive(Clone, PartialEq, Debug, Serialize, utoipa::ToSchema)]
pub struct Energy {
    /// Power of all drives without a request, watts.
    pub idle_watts: f64,
    /// Power of all drives under the load of the plan, watts. Each drive counts by its own share of the load.
    pub watts: f64,
    /// Energy that the drives take in a year under that load, kilowatt hours.
    pub kwh_year: f64,
    /// Watts under the load for each usable TB (10^12 bytes).
    pub watts_per_tb: f64,
    /// The source of the drives' power figures.
    pub source: String,
}

impl Energy {
    /// Computes the electricity from the profiles of the drives and the healthy result. There is none if a profile has
    /// no figure.
    pub(super) fn of(spec: &MachineSpec, healthy: &CellResult) -> Option<Self> {
        let members = usize::from(healthy.spec.subject.members());
        let drive = |number: usize| spec.drives.get(number).or_else(|| spec.drives.first());
        let power = |number: usize| drive(number).and_then(|drive| drive.power.as_ref());
        let all: Option<Vec<_>> = (0..members).map(power).collect();
        let (all, busy) = (all?, |number: usize| healthy.members.get(number).map_or(0.0, |member| member.busy));
        let watts: f64 = all.iter().enumerate().map(|(number, power)| power.watts(busy(number))).sum();
        Some(Self {
            idle_watts: all.iter().map(|power| power.watts(0.0)).sum(),
            watts,
            kwh_year: watts * KILO_HOURS_OF_YEAR,
            watts_per_tb: watts / (healthy.capacity as f64 / 1e12),
            source: all.first()?.busy.source.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{machine_spec, run_cell, CellSpec, Effort, MemberPart, MemberShare, Pattern};
    use openraid_models::Library;

    #[test]
    fn a_drive_takes_its_idle_power_and_a_share_of_the_rest() {
        let library = Library::builtin();
        let cell = CellSpec::new("openraid", "raid1x2".parse().unwrap(), Pattern::Database);
        let cell = CellSpec { effort: Effort { requests: 100, seconds_max: 1, warm_seconds_max: 1 }, ..cell };
        let spec = machine_spec(&library, &cell).unwrap();
        let power = spec.drives[0].power.clone().expect("the profile has it");
        let (idle, busy) = (power.idle.value as f64 / 1e3, power.busy.value as f64 / 1e3);
        let mut result = run_cell(&library, &cell).unwrap();
        let member = |busy: f64| MemberShare { busy, part: MemberPart::Medium, reads: 0, writes: 0, sectors: 0 };
        result.members = vec![member(1.0), member(0.5)];
        result.capacity = 2_000_000_000_000;
        let energy = Energy::of(&spec, &result).unwrap();
        let expected = busy + idle + (busy - idle) / 2.0;
        assert!((energy.watts - expected).abs() < 1e-9 && (energy.idle_watts - 2.0 * idle).abs() < 1e-9, "{energy:?}");
        assert!((energy.kwh_year - expected * 24.0 * 365.0 / 1e3).abs() < 1e-6, "{energy:?}");
        assert!((energy.watts_per_tb - expected / 2.0).abs() < 1e-9, "{energy:?}");
    }
}
