//! Levels side by side for given drives and a given load: what each holds, what it survives, how fast it is healthy,
//! degraded and rebuilding, what holds it back, whether the write cache pays, and how sure all of that is.
//!
//! Uncertainty: every value of the drive's, the controller's, the host's and the bus's profiles that has a range is put to both its ends, one
//! after the other; the changes of the result are combined as independent errors are, by the root of their squares.

use crate::cell::{
    machine_spec, run_cell, run_cell_with, ArrayState, Axes, CacheMode, CellError, CellResult, CellSpec, Effort, Level,
    Pattern, Subject,
};
use openraid_models::{Edge, Edges, Library};
use serde::Serialize;

/// What a plan is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanRequest {
    /// Controller's profile.
    pub system: String,
    /// Drive's profile; nothing: the system's own.
    pub drive: Option<String>,
    /// Drives.
    pub drives: u16,
    /// Levels to look at.
    pub levels: Vec<Level>,
    /// Load.
    pub pattern: Pattern,
    /// Its axes.
    pub axes: Axes,
    /// How much of each cell.
    pub effort: Effort,
    /// Seed.
    pub seed: u64,
}

/// How fast an array is in one state.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Speed {
    /// Requests each second.
    pub iops: f64,
    /// MB each second.
    pub mbps: f64,
    /// Mean latency.
    pub mean_ms: f64,
    /// 99th percentile of the latency.
    pub p99_ms: f64,
}

/// A part that is the limit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bottleneck {
    /// Which.
    pub part: String,
    /// Where it is the members, their part that works most, unless that is the medium.
    pub of_members: Option<String>,
    /// How busy it is, 0 to 1.
    pub busy: f64,
}

/// A level of a plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LevelPlan {
    /// Which array.
    pub array: Subject,
    /// Bytes that it holds.
    pub capacity: u64,
    /// Failures that it survives whichever drives fail, and at most.
    pub survives: (u16, u16),
    /// Healthy.
    pub healthy: Speed,
    /// With one member missing, where it survives that.
    pub degraded: Option<Speed>,
    /// While one member is filled, where it survives that.
    pub rebuilding: Option<Speed>,
    /// What holds it back when it is healthy.
    pub bottleneck: Option<Bottleneck>,
    /// Write-back by write-through, where the controller can do both and the load writes.
    pub write_back_ratio: Option<f64>,
    /// The healthy figure may be off by so many percent because of uncertain values of the profiles.
    pub uncertain_percent: f64,
    /// Values that are uncertain and what each of them changes, percent; the largest first.
    pub uncertain: Vec<(String, f64)>,
}

/// A level, or why it cannot be.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Planned {
    /// It can be.
    Possible(Box<LevelPlan>),
    /// It cannot.
    Impossible {
        /// Which array.
        array: Subject,
        /// Why.
        reason: String,
    },
}

/// Failures that an array survives whichever drives fail, and at most.
#[must_use]
pub fn survives(level: Level, members: u16) -> (u16, u16) {
    match level {
        Level::Single | Level::Jbod | Level::Linear | Level::Raid0 => (0, 0),
        Level::Raid1 => (members - 1, members - 1),
        Level::Raid1e | Level::Raid10 => (1, members / 2),
        Level::Raid5 => (1, 1),
        Level::Raid6 => (2, 2),
        Level::Raid50 => (1, 2),
        Level::Raid60 => (2, 4),
    }
}

impl PlanRequest {
    /// The cell of an array in a state.
    #[must_use]
    pub fn cell(&self, level: Level, state: ArrayState) -> CellSpec {
        let axes = Axes { drive: self.axes.drive.clone().or_else(|| self.drive.clone()), ..self.axes.clone() };
        let subject = Subject::Array { level, members: self.drives };
        let cell = CellSpec::new(&self.system, subject, self.pattern.clone()).with(axes);
        CellSpec { state, effort: self.effort, seed: self.seed, ..cell }
    }

    /// A level, measured in all its states.
    ///
    /// # Errors
    /// A profile that is not there, an axis that is wrong: no level can be planned.
    pub fn level(&self, library: &Library, level: Level) -> Result<Planned, CellError> {
        let cell = self.cell(level, ArrayState::Healthy);
        let healthy = match run_cell(library, &cell) {
            Ok(result) => result,
            Err(CellError::Impossible(reason) | CellError::NotApplicable(reason)) => {
                return Ok(Planned::Impossible { array: cell.subject, reason });
            }
            Err(error) => return Err(error),
        };
        let other = |state| run_cell(library, &self.cell(level, state)).ok().as_ref().map(speed);
        let survives = survives(level, self.drives);
        let redundant = survives.0 > 0;
        let uncertain = self.uncertain(library, &cell, &healthy)?;
        let plan = LevelPlan {
            array: cell.subject,
            capacity: healthy.capacity,
            survives,
            healthy: speed(&healthy),
            degraded: if redundant { other(ArrayState::Degraded(1)) } else { None },
            rebuilding: if redundant { other(ArrayState::Rebuilding) } else { None },
            bottleneck: healthy.bottleneck().map(|part| Bottleneck {
                part: part.name.clone(),
                of_members: healthy.member_part().filter(|_| part.name == "members").map(Into::into),
                busy: part.busy,
            }),
            write_back_ratio: self.write_back(library, &cell, &healthy),
            uncertain_percent: uncertain.iter().map(|(_, change)| change * change).sum::<f64>().sqrt(),
            uncertain,
        };
        Ok(Planned::Possible(Box::new(plan)))
    }

    fn write_back(&self, library: &Library, cell: &CellSpec, healthy: &CellResult) -> Option<f64> {
        let can = library.controller(&self.system).is_ok_and(|controller| controller.write_back);
        if !can || healthy.writes.requests == 0 || cell.axes.cache == Some(CacheMode::WriteThrough) {
            return None;
        }
        let mut through = cell.clone();
        through.axes.cache = Some(CacheMode::WriteThrough);
        let through = run_cell(library, &through).ok()?;
        (through.iops > 0.0).then(|| healthy.iops / through.iops)
    }

    /// Uncertain values with what they change, the largest first.
    fn uncertain(
        &self,
        library: &Library,
        cell: &CellSpec,
        healthy: &CellResult,
    ) -> Result<Vec<(String, f64)>, CellError> {
        let base = machine_spec(library, cell)?;
        let (drive, controller) = (&base.drives[0].head, &base.controller.head);
        let host = &library.host(&base.controller.host)?.head;
        let bus = library.bus(base.bus.as_ref().map_or(&base.controller.bus, |bus| &bus.name))?;
        let parts = [
            (Part::Drive, &drive.name, &drive.uncertain),
            (Part::Controller, &controller.name, &controller.uncertain),
            (Part::Host, &host.name, &host.uncertain),
            (Part::Bus, &bus.name, &bus.uncertain),
        ];
        let mut found = Vec::new();
        for (part, whose, field) in
            parts.into_iter().flat_map(|(part, whose, fields)| fields.iter().map(move |field| (part, whose, field)))
        {
            let mut most: f64 = 0.0;
            for edge in [Edge::Low, Edge::High] {
                let edges = Edges::from([(field.clone(), edge)]);
                let mut spec = base.clone();
                match part {
                    Part::Drive => spec.drives = vec![library.drive_at(whose, &edges)?],
                    Part::Controller => spec.controller = library.controller_at(whose, &edges)?,
                    Part::Host => spec.host = Some(library.host_at(whose, &edges)?),
                    Part::Bus => spec.bus = Some(library.bus_at(whose, &edges)?),
                }
                if let Ok(result) = run_cell_with(library, cell, &spec) {
                    most = most.max((result.iops / healthy.iops - 1.0).abs() * 100.0);
                }
            }
            found.push((format!("{whose}: {field}"), most));
        }
        found.sort_by(|one, two| two.1.total_cmp(&one.1).then_with(|| one.0.cmp(&two.0)));
        Ok(found)
    }
}

/// Profiles that a machine is made of.
#[derive(Clone, Copy)]
enum Part {
    Drive,
    Controller,
    Host,
    Bus,
}

fn speed(result: &CellResult) -> Speed {
    Speed {
        iops: result.iops,
        mbps: result.mbps,
        mean_ms: result.mean_ms(),
        p99_ms: result.histogram().percentile(99.0) as f64 / 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_costs_makes_the_answer_uncertain_where_the_host_is_the_limit() {
        let request = PlanRequest {
            system: "intel-rst".into(),
            drive: Some("s3500_480".into()),
            drives: 6,
            levels: vec![Level::Raid0],
            pattern: Pattern::Random,
            axes: Axes { rd: Some(100), bs: Some(4096), qd: Some(64), workers: Some(2), ..Axes::default() },
            effort: Effort { requests: 2_000, ..Effort::QUICK },
            seed: 1,
        };
        let library = Library::builtin();
        let Planned::Possible(plan) = request.level(&library, Level::Raid0).unwrap() else { panic!("it can be") };
        let host = library.host("win7-haswell").unwrap();
        let (low, high) = (host.read.low.0 as f64, host.read.high.0 as f64);
        let now = host.read.value.0 as f64;
        // A thread that costs less lets more through, unless something else is full then.
        let (least, most) = ((1.0 - now / high) * 100.0, (now / low - 1.0) * 100.0);
        assert!(plan.uncertain_percent >= least * 0.9, "{:?}", plan.uncertain);
        let (value, change) = &plan.uncertain[0];
        assert_eq!(value, "win7-haswell: cost.read_us");
        assert!(*change >= least * 0.9 && *change <= most * 1.1, "{change} of {least} to {most}");
    }

    #[test]
    fn levels_survive_what_their_redundancy_covers() {
        assert_eq!(survives(Level::Raid0, 4), (0, 0));
        assert_eq!(survives(Level::Raid1, 3), (2, 2));
        assert_eq!(survives(Level::Raid10, 8), (1, 4));
        assert_eq!(survives(Level::Raid6, 8), (2, 2));
        assert_eq!(survives(Level::Raid60, 8), (2, 4));
    }
}
