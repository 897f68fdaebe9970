//! One figure of a result, with its axis, its evidence and its subject.

use super::super::data::{
    Better, ChartAxis, Evidence, Level, MachinePart, PartLoad, Point, ReportSubject, Scale, Unit,
};
use super::super::format::capital;
use super::decisions::rates;
use super::CellTrial;
use crate::cell::{self, ArrayState, CellResult, CellSpec, PartName, Pattern};

/// The kinds of figures of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Requests per second.
    Iops,
    /// MB (10^6 bytes) per second.
    Mbps,
    /// Mean response, milliseconds.
    MeanMs,
    /// Score of an application, thousand bytes per second.
    Score,
    /// Load of the host's processor, percent.
    HostCpu,
}

impl Figure {
    /// The figure by which a pattern is judged.
    #[must_use]
    pub fn of_pattern(pattern: &Pattern) -> Self {
        match pattern {
            Pattern::ResponseTime | Pattern::Latency => Self::MeanMs,
            Pattern::Application => Self::Score,
            pattern if super::streaming(pattern) => Self::Mbps,
            _ => Self::Iops,
        }
    }

    /// The value of this figure in a result.
    #[must_use]
    pub fn of(self, result: &CellResult) -> Option<f64> {
        match self {
            Self::Iops => Some(result.iops),
            Self::Mbps => Some(result.mbps),
            Self::MeanMs => (result.requests > 0).then(|| result.mean_ms()),
            Self::Score => result.score,
            Self::HostCpu => result.host_cpu.map(|share| share * 100.0),
        }
    }

    /// The axis of the figure.
    #[must_use]
    pub fn axis(self) -> ChartAxis {
        let (name, unit, better) = match self {
            Self::Iops => ("requests", Unit::named("IOPS"), Better::Higher),
            Self::Mbps => ("speed", Unit::named("MB/s"), Better::Higher),
            Self::MeanMs => ("mean response", Unit::named("ms"), Better::Lower),
            Self::Score => ("score", Unit::named("kB/s"), Better::Higher),
            Self::HostCpu => ("share of the host's processor", Unit::Percent, Better::Lower),
        };
        ChartAxis::new(name, unit, Scale::Linear).better(better)
    }

    /// The point of all repetitions at a position: their median, lowest and highest value, and the evidence of the
    /// median.
    #[must_use]
    pub fn point(self, x: f64, trials: &[&CellTrial]) -> Option<Point> {
        let mut known: Vec<(f64, &CellResult)> = trials
            .iter()
            .filter_map(|trial| trial.outcome.result())
            .filter_map(|result| Some((self.of(result).filter(|y| y.is_finite())?, result)))
            .collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (low, high) = (known.first()?.0, known.last()?.0);
        // If the number is even, the lower one of the two in the middle is used, so that the median is a real run.
        let (y, result) = known[(known.len() - 1) / 2];
        let runs = u32::try_from(known.len()).unwrap_or(u32::MAX);
        let unsteady = known.iter().any(|(_, result)| result.is_unsteady());
        Some(Point { unsteady, ..Point::spread(x, y, low, high, runs).with(evidence(result)) })
    }
}

/// The subject of a cell, with its label and its state unless that is healthy.
pub fn subject(spec: &CellSpec) -> ReportSubject {
    let state = match spec.state {
        ArrayState::Healthy => String::new(),
        ArrayState::Degraded(missing) => format!("{missing} missing"),
        ArrayState::Rebuilding => "rebuilding".into(),
        ArrayState::Changing(to) => format!("changing to {to}"),
    };
    let label = spec.label.clone().unwrap_or_default();
    // A real target has no array for the report. The write cache is an axis only if this program created the array.
    if spec.subject == cell::Subject::Single && spec.effort.is_a_time() && spec.axes.cache.is_none() {
        let name = if label.is_empty() { &spec.system } else { &label };
        return ReportSubject::new(Level::Single, 1).named(name).variant(state);
    }
    let title = match spec.subject {
        cell::Subject::Array { .. } | cell::Subject::Single => String::new(),
        drive => drive.title(),
    };
    let mut named = ReportSubject::from(spec.subject).variant(title);
    // The label of an array may be that of its target, its write cache, or both.
    label.split(", ").for_each(|words| named.variant.add(words));
    named.different(state)
}

/// A pattern as a heading.
pub fn title(pattern: &Pattern) -> String {
    match pattern {
        Pattern::FcTest => return "FC-Test".into(),
        Pattern::MultiThreaded => return "Multi-threaded".into(),
        _ => (),
    }
    capital(&pattern.name().replace('-', " "))
}

/// The activity of the machine during the measurement of a result.
pub fn evidence(result: &CellResult) -> Evidence {
    let mut loads = Vec::new();
    for component in &result.components {
        let part = match component.name {
            // Members are added below, also for real targets.
            PartName::Members => continue,
            PartName::Controller => MachinePart::ControllerCpu,
            PartName::Xor => MachinePart::Parity,
            PartName::Host => MachinePart::HostCpu,
            PartName::DataPath => MachinePart::DataPath,
            PartName::OpenStripes => MachinePart::OpenStripes,
            PartName::Worker => MachinePart::Worker,
            PartName::Generator => MachinePart::Generator,
            PartName::Bus => MachinePart::Bus("the host bus".into()),
            PartName::Channel => MachinePart::Bus("a channel to the drives".into()),
            PartName::Memory | PartName::Journal => MachinePart::Bus(component.name.to_string()),
        };
        loads.push(PartLoad { part, busy: component.busy });
    }
    if let Some(busy) = result.members.iter().map(|member| member.busy).reduce(f64::max) {
        loads.push(PartLoad { part: MachinePart::Drives, busy });
    }
    let rates = rates(&result.reasons, result.requests);
    let commands: u64 = result.members.iter().map(|member| member.reads + member.writes).sum();
    let commands = (commands > 0 && result.requests > 0).then(|| commands as f64 / result.requests as f64);
    Evidence { loads, rates, commands }
}
