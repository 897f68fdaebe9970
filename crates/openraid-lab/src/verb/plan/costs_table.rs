//! What the levels of a plan cost: the drives, and their electricity, at the prices that the user gave.

use openraid::output::table::TextTable;
use openraid_methods::cell::Subject;
use openraid_methods::plan::LevelPlan;
use serde::Serialize;

use super::advice::possible;
use super::MachinePlan;

/// Prices that the user gave, in any currency.
pub(super) struct Prices {
    /// Price of a drive.
    pub drive: Option<f64>,
    /// Price of a kilowatt hour.
    pub kwh: Option<f64>,
    /// Number of spares, which are bought, too.
    pub spares: u16,
}

/// What a level costs.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Price {
    /// The array, such as `raid6x8`.
    #[schema(value_type = String)]
    pub array: Subject,
    /// Price of the drives for each usable TB (10^12 bytes).
    pub per_tb: Option<f64>,
    /// Electricity of the drives over five years under the load.
    pub energy_five_years: Option<f64>,
}

impl Prices {
    /// What this level costs.
    pub fn of(&self, plan: &LevelPlan) -> Price {
        let drives = f64::from(plan.array.members() + self.spares);
        Price {
            array: plan.array,
            per_tb: self.drive.map(|price| price * drives / (plan.capacity as f64 / 1e12)),
            energy_five_years: self.kwh.zip(plan.energy.as_ref()).map(|(kwh, energy)| energy.kwh_year * 5.0 * kwh),
        }
    }

    fn per_tb(&self, plan: &LevelPlan) -> String {
        self.of(plan).per_tb.map_or_else(|| "-".into(), |price| format!("{price:.2}"))
    }
}

/// Electricity and costs, if anything is known about them.
pub(super) fn costs(body: &MachinePlan, prices: &Prices) -> Vec<String> {
    let plans: Vec<&LevelPlan> = possible(&body.levels).collect();
    let Some(source) = plans.iter().find_map(|plan| plan.energy.as_ref()).map(|energy| &energy.source) else {
        return match prices.drive {
            Some(_) => plans.iter().map(|plan| format!("{}: {} a TB", plan.array, prices.per_tb(plan))).collect(),
            None => Vec::new(),
        };
    };
    let mut heads = vec!["ARRAY", "WATTS IDLE", "WATTS", "kWh A YEAR", "WATTS A TB"];
    heads.extend(prices.drive.map(|_| "PRICE A TB"));
    heads.extend(prices.kwh.map(|_| "POWER, 5 YEARS"));
    let mut table = TextTable::new(&heads);
    for plan in plans {
        let Some(energy) = &plan.energy else { continue };
        let watts = |watts: f64| format!("{watts:.1}");
        let mut row = vec![
            plan.array.to_string(),
            watts(energy.idle_watts),
            watts(energy.watts),
            format!("{:.0}", energy.kwh_year),
            format!("{:.2}", energy.watts_per_tb),
        ];
        row.extend(prices.drive.map(|_| prices.per_tb(plan)));
        row.extend(prices.of(plan).energy_five_years.map(|price| format!("{price:.0}")));
        table.row(row);
    }
    vec![
        String::new(),
        format!("electricity of the drives alone, under the load ({source})"),
        table.text().trim_end().into(),
    ]
}
