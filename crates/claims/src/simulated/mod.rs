//! The metrics of the language, answered by the simulated laboratory.
//!
//! ```text
//!  MetricCall --> aim: pattern and axes --> cells --> Reading (kept in the store) --> the metric's formula
//! ```
//!
//! A cell is run once for all callers. Answers must depend on cells and profiles alone: no figure of a claim is an
//! input.

mod call_meaning;
mod stored_figures;

use crate::axis_arguments::{Axis, AxisValue};
use crate::computed::{self, ParityUpdate};
use crate::metric::{Metric, MetricCall, MetricTarget, MetricValue, Metrics, NotApplicable};
use crate::store::ClaimStore;
use crate::subject::{Level, Subject};
use call_meaning::Aim;
use openraid_methods::cell::{self, CellSpec, Direction, Effort, Pattern};
use openraid_methods::metrics::Scheme;
use openraid_methods::target::{SimTarget, Target as _};
use openraid_models::{ControllerKind, ControllerProfile, Library};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use stored_figures::CellReading;

/// The laboratory of claims.
pub struct Simulated {
    library: Library,
    store: ClaimStore,
    effort: Effort,
    seed: u64,
    /// Calls with a value of a load that had not become steady.
    unsteady: Mutex<BTreeSet<String>>,
}

/// Depths among which an RST method searches its peak: 1 to 64 for each worker.
const RST_DEPTHS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Seconds of the response-time method for each direction.
const RESPONSE_TIME_SECONDS: f64 = 600.0;
/// Seconds of the sequential method for each block size.
const SEQUENTIAL_SECONDS: f64 = 60.0;
/// Cache sizes that `gain` compares, MiB.
const GAIN_CACHES: (u64, u64) = (256, 128);

/// The highest rate; each rate has a mark whether it is unsteady. An unsteady rate is not a peak, because a cache that
/// still fills accepts more than the array.
fn highest(values: &[(f64, bool)]) -> Result<f64, NotApplicable> {
    let steady = values.iter().filter(|(_, unsteady)| !unsteady).map(|(value, _)| *value);
    steady.max_by(f64::total_cmp).ok_or_else(|| NotApplicable::new("no load became steady, so there is no peak"))
}

impl Simulated {
    /// A laboratory with these profiles. The store keeps its measurements.
    #[must_use]
    pub const fn new(library: Library, store: ClaimStore, effort: Effort, seed: u64) -> Self {
        Self { library, store, effort, seed, unsteady: Mutex::new(BTreeSet::new()) }
    }

    /// Note or forget that the value of a call rests on a load that had not become steady.
    fn note_unsteady(&self, call: &MetricCall, unsteady: bool) {
        let mut known = self.unsteady.lock().unwrap_or_else(PoisonError::into_inner);
        if unsteady {
            known.insert(call.key());
        } else {
            known.remove(&call.key());
        }
    }

    /// The reason for which values are no longer stored, if there is one.
    #[must_use]
    pub fn store_lost(&self) -> Option<String> {
        self.store.lost()
    }

    fn controller(&self, name: &str) -> Result<&ControllerProfile, NotApplicable> {
        self.library.controller(&name.to_ascii_lowercase()).map_err(|error| NotApplicable::new(error.to_string()))
    }

    /// The cell of an aim.
    fn cell(&self, call: &MetricCall, aim: &Aim) -> Result<CellSpec, NotApplicable> {
        let subject = call.subject()?;
        subject.check().map_err(|error| NotApplicable::new(error.to_string()))?;
        let system = self.controller(&call.system)?.head.name.clone();
        let mut cell = CellSpec::new(&system, subject, aim.pattern()).with(aim.cell_axes()?);
        // Tails and shares of members need more requests than means.
        cell.effort = if matches!(aim.pattern(), Pattern::Latency) { Effort::FULL } else { self.effort };
        cell.seed = self.seed;
        Ok(cell)
    }

    /// Run a cell, or take its result from the store. `percentile` is read from its histogram.
    fn read(&self, call: &MetricCall, aim: &Aim, percentile: f64) -> Result<CellReading, NotApplicable> {
        let cell = self.cell(call, aim)?;
        let key = match aim.pattern() {
            Pattern::Latency => format!("{}|{percentile}", cell.identity()),
            _ => cell.identity(),
        };
        let value = self.store.get_or(&key, || match cell::run_cell(&self.library, &cell) {
            Ok(result) => CellReading::of(&result, percentile).to_json(),
            Err(error) => CellReading::absent(&error.to_string()),
        });
        let reading = CellReading::from_json(&value)?;
        if reading.unsteady {
            self.note_unsteady(call, true);
        }
        Ok(reading)
    }

    /// The figure of one cell, for the array or for one member.
    fn figure(&self, call: &MetricCall, aim: &Aim, of: Figure) -> Result<f64, NotApplicable> {
        if aim.pattern() == Pattern::TransferGraph && aim.axes.has(Axis::Pos) {
            return match of {
                Figure::Mbps => self.linear(call, aim),
                Figure::Iops => Err(NotApplicable::new("a place of the transfer graph has MB/s; ask for lin or mbps")),
            };
        }
        let reading = self.read(call, aim, MEDIAN)?;
        let member = aim.axes.whole(Axis::Member);
        match (member, of) {
            (None, Figure::Iops) => Ok(reading.iops),
            (None, Figure::Mbps) => Ok(reading.mbps),
            (Some(member), _) => {
                let index = usize::try_from(member).unwrap_or(usize::MAX);
                // By default, a JBOD has a worker for each drive. The members of an array have commands only.
                let has_workers =
                    call.subject()?.level() == Some(Level::Jbod) && reading.workers.len() == reading.members.len();
                let parts = if has_workers { &reading.workers } else { &reading.members };
                let part = parts.get(index).ok_or_else(|| no_member(member, parts.len()))?;
                Ok(if of == Figure::Iops { part.iops } else { part.mbps })
            }
        }
    }

    fn peak(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        let mut values = Vec::new();
        for aim in aim.peak_aims(&RST_DEPTHS) {
            values.push((self.figure(call, &aim, Figure::Mbps)?, self.read(call, &aim, MEDIAN)?.unsteady));
        }
        // It does not rest on the others.
        self.note_unsteady(call, false);
        highest(&values)
    }

    /// The pattern's own metric, for ratios.
    fn of_pattern(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        match aim.pattern() {
            Pattern::Sequential | Pattern::MultiThreaded | Pattern::SsdSequential | Pattern::FcTest => {
                self.figure(call, aim, Figure::Mbps)
            }
            Pattern::Application => self.score(call, aim),
            Pattern::TransferGraph => self.linear(call, aim),
            _ => self.figure(call, aim, Figure::Iops),
        }
    }

    fn rating(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        let pattern = aim.pattern();
        let scheme = call.workload.scheme.unwrap_or(match pattern {
            Pattern::Workstation => Scheme::R2,
            _ => Scheme::R1,
        });
        let depths = scheme.depths(&pattern);
        let over_depths = |call: &MetricCall, aim: &Aim| {
            let at = |depth: &u32| {
                let at = aim.clone().at(Axis::Qd, u64::from(*depth));
                Ok((*depth, self.figure(call, &at, Figure::Iops)?))
            };
            depths.iter().map(at).collect::<Result<BTreeMap<u32, f64>, NotApplicable>>()
        };
        let measured = over_depths(call, aim)?;
        let single = if scheme.is_index() {
            let call = MetricCall { target: MetricTarget::Subject(Subject::Single), ..call.clone() };
            over_depths(&call, &aim.clone().of_regular_drive())?
        } else {
            BTreeMap::new()
        };
        let rating = scheme.rate(&pattern, |depth| measured.get(&depth).copied(), |depth| single.get(&depth).copied());
        rating.map_err(|error| NotApplicable::new(error.to_string()))
    }

    /// The score of an application, or one of the suite's two totals. Business is the office program's own trace.
    /// High-End is the harmonic mean of the others, which the suite runs one after the other.
    fn score(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        let parts: &[&str] = match aim.axes.text(Axis::App) {
            Some("business") => &["winmark99"],
            Some("highend") => &["photoshop40", "soundforge40", "visualcpp50"],
            Some(_) => &[],
            None => return Err(NotApplicable::new("app is missing: no application is named")),
        };
        let one = |aim: &Aim| {
            let reading = self.read(call, aim, MEDIAN)?;
            reading.score.ok_or_else(|| NotApplicable::new("the laboratory gave no score"))
        };
        whole(call, aim)?;
        if parts.is_empty() {
            return one(aim);
        }
        let mut sum = 0.0;
        for app in parts {
            sum += 1.0 / one(&aim.clone().word(Axis::App, app))?;
        }
        #[allow(clippy::cast_precision_loss)] // three
        Ok(parts.len() as f64 / sum)
    }

    fn linear(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        whole(call, aim)?;
        let reading = self.read(call, aim, MEDIAN)?;
        let place = match aim.axes.text(Axis::Pos) {
            Some("end") => reading.curve.last(),
            Some(_) => reading.curve.first(),
            None => return Ok(reading.mbps),
        };
        place.copied().ok_or_else(|| NotApplicable::new("the laboratory drew no graph"))
    }

    /// Requests that are completed in the given time: the check's, or else the workload's (the whole, or one step of a
    /// series), or else the method's.
    fn count(&self, call: &MetricCall, mut aim: Aim) -> Result<f64, NotApplicable> {
        if !aim.axes.has(Axis::Secs) {
            let step = call.workload.step_s.filter(|_| aim.load == call.workload.load);
            let of_method = match aim.pattern() {
                Pattern::ResponseTime => Some(RESPONSE_TIME_SECONDS),
                Pattern::Sequential => Some(SEQUENTIAL_SECONDS),
                _ => None,
            };
            let Some(seconds) = step.or(of_method) else {
                return Err(NotApplicable::new("count needs a time: give secs, or the workload's duration_s"));
            };
            aim.axes = aim.axes.with(Axis::Secs, AxisValue::Number(seconds));
        }
        let reading = self.read(call, &aim, MEDIAN)?;
        if let Some(part) = aim.part {
            whole(call, &aim)?;
            return Ok(if part == Direction::Write { reading.writes } else { reading.requests - reading.writes });
        }
        if !aim.axes.has(Axis::Member) {
            return Ok(reading.requests);
        }
        // The other times are equal for all subjects.
        let rate = self.figure(call, &aim, Figure::Iops)?;
        Ok((rate * reading.requests / reading.iops).round())
    }

    /// Member reads for each write of the host. In a load with reads, the member reads of these reads count, too.
    fn reads_per_write(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        whole(call, aim)?;
        let reading = self.read(call, aim, MEDIAN)?;
        if reading.writes == 0.0 {
            return Err(NotApplicable::new("the load does not write; give rd or op"));
        }
        Ok(reading.member_reads / reading.writes)
    }

    fn capacity(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        let cell = self.cell(call, aim)?;
        let spec = cell::machine_spec(&self.library, &cell).map_err(|error| NotApplicable::new(error.to_string()))?;
        let target = SimTarget::new("capacity", &spec, &self.library);
        let target = target.map_err(|error| NotApplicable::new(error.to_string()))?;
        #[allow(clippy::cast_precision_loss)] // far below 2^53
        let bytes = target.facts().capacity.get() as f64;
        let subject = call.subject()?;
        match (subject, aim.axes.whole(Axis::Member)) {
            (_, None) => Ok(bytes / 1e9),
            (Subject::Array { level: Level::Jbod, members }, Some(member)) if member >= members.into() => {
                Err(no_member(member, members.into()))
            }
            // The drives of a JBOD are equal.
            (Subject::Array { level: Level::Jbod, members }, Some(_)) => Ok(bytes / f64::from(members) / 1e9),
            _ => whole(call, aim).map(|()| bytes / 1e9),
        }
    }

    /// Mean response time: of all requests, or of the requests in one direction.
    fn mean_ns(&self, call: &MetricCall, aim: &Aim) -> Result<f64, NotApplicable> {
        whole(call, aim)?;
        let reading = self.read(call, aim, MEDIAN)?;
        let (requests, mean) = match aim.part {
            None => return Ok(reading.mean_ns),
            Some(Direction::Read) => (reading.requests - reading.writes, reading.mean_each_ns[0]),
            Some(Direction::Write) => (reading.writes, reading.mean_each_ns[1]),
        };
        if requests == 0.0 {
            return Err(NotApplicable::new("the load has no requests of this direction"));
        }
        Ok(mean)
    }

    /// The controller of a call: the system's, or that of `ctl`.
    fn controller_of(&self, call: &MetricCall) -> Result<&ControllerProfile, NotApplicable> {
        let other = call.axes.text(Axis::Ctl).or_else(|| call.workload.defaults.text(Axis::Ctl));
        self.controller(other.unwrap_or(&call.system))
    }

    fn min_members(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
        let controller = self.controller_of(call)?;
        let level = match &call.target {
            MetricTarget::Level(level) => *level,
            MetricTarget::Subject(drives) => drives.level().unwrap_or(Level::Single),
            MetricTarget::Link(_) => return Err(NotApplicable::new("min_members is asked of a level")),
        };
        let rule = controller
            .level(level)
            .ok_or_else(|| NotApplicable::new(format!("{} has no {level}", controller.head.title)))?;
        Ok(MetricValue::Count(rule.members_min.into()))
    }

    fn small_write(&self, call: &MetricCall) -> Result<computed::SmallWrite, NotApplicable> {
        let controller = self.controller_of(call)?;
        let (level, members) = match call.subject()? {
            Subject::Array { level, members } => (level, members),
            _ => (Level::Raid0, 1),
        };
        // Cards read old data and parity at every width. This project's engine chooses the cheaper way.
        let manner = match controller.kind {
            ControllerKind::Hardware => ParityUpdate::ReadModifyWrite,
            ControllerKind::Software => ParityUpdate::Cheapest,
        };
        computed::small_write(level, members, manner)
    }
}

/// The default percentile.
const MEDIAN: f64 = 50.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    Iops,
    Mbps,
}

/// Reject a member for metrics of the whole array, for which members are not measured. The only member of a single
/// drive is the whole.
fn whole(call: &MetricCall, aim: &Aim) -> Result<(), NotApplicable> {
    let members = call.subject()?.members();
    match aim.axes.whole(Axis::Member) {
        None => Ok(()),
        Some(0) if members == 1 => Ok(()),
        Some(member) if member >= members.into() => Err(no_member(member, members.into())),
        Some(_) => {
            let reason = format!("{} is of all members together; leave member out", call.metric.name());
            Err(NotApplicable::new(reason))
        }
    }
}

fn no_member(member: u64, count: usize) -> NotApplicable {
    NotApplicable::new(format!("there is no member {member} of {count}; they count from 0"))
}

impl Metrics for Simulated {
    fn is_unsteady(&self, call: &MetricCall) -> bool {
        self.unsteady.lock().unwrap_or_else(PoisonError::into_inner).contains(&call.key())
    }

    fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable> {
        let aim = || Aim::of(call);
        let number = match call.metric {
            Metric::Iops => self.figure(call, &aim()?, Figure::Iops)?,
            Metric::Mbps | Metric::Fct => self.figure(call, &aim()?, Figure::Mbps)?,
            Metric::PeakMbps => self.peak(call, &aim()?)?,
            Metric::Lat => self.mean_ns(call, &aim()?)? / 1e6,
            Metric::MeanUs => self.mean_ns(call, &aim()?)? / 1e3,
            Metric::PctlUs => {
                let asked = call.axes.real(Axis::P).or_else(|| call.workload.defaults.real(Axis::P));
                let percentile = asked.unwrap_or(MEDIAN);
                let aim = aim()?;
                whole(call, &aim)?;
                self.read(call, &aim, percentile)?.percentile_ns / 1e3
            }
            Metric::Rating => self.rating(call, &aim()?)?,
            Metric::Score => self.score(call, &aim()?)?,
            Metric::Gain => {
                let (large, small) = GAIN_CACHES;
                let at = |mib| Ok(aim()?.at(Axis::CacheMib, mib));
                self.score(call, &at(large)?)? / self.score(call, &at(small)?)? - 1.0
            }
            Metric::Lin => self.linear(call, &aim()?)?,
            Metric::Wbwt => {
                let with = |word| Ok(aim()?.word(Axis::Cache, word));
                self.of_pattern(call, &with("wb")?)? / self.of_pattern(call, &with("wt")?)?
            }
            Metric::M4 => {
                let mut best = f64::MIN;
                for oio in crate::language::names::OIO {
                    let at = aim()?.at(Axis::Oio, oio);
                    best = best.max(self.figure(call, &at, Figure::Iops)?);
                }
                best
            }
            Metric::Count => self.count(call, aim()?)?,
            Metric::Cpu => {
                let aim = aim()?;
                whole(call, &aim)?;
                let cpu = self.read(call, &aim, MEDIAN)?.cpu;
                cpu.ok_or_else(|| NotApplicable::new("the target does not tell what its host did"))?
            }
            Metric::Util => {
                let aim = aim()?;
                let member = aim.axes.whole(Axis::Member).unwrap_or(0);
                let members = self.read(call, &aim, MEDIAN)?.members;
                let index = usize::try_from(member).unwrap_or(usize::MAX);
                members.get(index).ok_or_else(|| no_member(member, members.len()))?.busy
            }
            Metric::Capacity => self.capacity(call, &aim()?)?,
            Metric::ReadsPerWrite => self.reads_per_write(call, &aim()?)?,
            Metric::MinMembers => return self.min_members(call),
            Metric::MemberOps => return self.small_write(call).map(|cost| MetricValue::Operations(cost.operations)),
            Metric::MemberDisks => return self.small_write(call).map(|cost| MetricValue::Count(cost.members.into())),
            Metric::Cap | Metric::SurviveFraction | Metric::ParityShare => return computed::answer(call),
        };
        Ok(MetricValue::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsteady_value_is_no_peak() {
        assert_eq!(highest(&[(70.0, false), (99.0, true), (71.0, false)]).ok(), Some(71.0));
        assert!(highest(&[(99.0, true)]).is_err());
    }
}
