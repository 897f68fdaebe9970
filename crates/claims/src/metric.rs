//! The metrics of the language, the call of a metric, and the interface that answers it.
//!
//! An implementation must never invent a value: if a metric has no meaning, the answer is the reason.

use crate::axis_arguments::{Axis, AxisValues};
use crate::subject::Subject;
use crate::workload::ClaimWorkload;
use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Metric {
    /// Requests per second.
    Iops,
    /// 10^6 bytes per second.
    Mbps,
    /// The largest `mbps` over the pattern's block sizes.
    PeakMbps,
    /// Mean response, milliseconds.
    Lat,
    /// Mean latency, microseconds.
    MeanUs,
    /// A percentile of latency, microseconds.
    PctlUs,
    /// The pattern's rating.
    Rating,
    /// Application score, thousand bytes per second.
    Score,
    /// Score with 256 MiB of cache divided by the score with 128 MiB, minus 1.
    Gain,
    /// FC-Test speed, MB/s.
    Fct,
    /// Linear read rate, MB/s.
    Lin,
    /// Result with write-back divided by the result with write-through.
    Wbwt,
    /// Best 4 KiB requests per second over `OIO`.
    M4,
    /// Completed requests.
    Count,
    /// Share of the host's CPU.
    Cpu,
    /// Busy share of a member.
    Util,
    /// Capacity in units of 10^9 bytes.
    Capacity,
    /// MB/s per direction of a link, by its standard.
    Cap,
    /// Share of the sets of `k` failures that an array survives.
    SurviveFraction,
    /// Share of all parity that a member holds.
    ParityShare,
    /// Reads, XORs and writes of an operation.
    MemberOps,
    /// Members that an operation touches.
    MemberDisks,
    /// Member reads for each write of the host.
    ReadsPerWrite,
    /// Smallest array that a controller accepts.
    MinMembers,
}

impl Metric {
    /// All values.
    pub const ALL: [Self; 24] = [
        Self::Iops,
        Self::Mbps,
        Self::PeakMbps,
        Self::Lat,
        Self::MeanUs,
        Self::PctlUs,
        Self::Rating,
        Self::Score,
        Self::Gain,
        Self::Fct,
        Self::Lin,
        Self::Wbwt,
        Self::M4,
        Self::Count,
        Self::Cpu,
        Self::Util,
        Self::Capacity,
        Self::Cap,
        Self::SurviveFraction,
        Self::ParityShare,
        Self::MemberOps,
        Self::MemberDisks,
        Self::ReadsPerWrite,
        Self::MinMembers,
    ];

    /// The name in a claim.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iops => "iops",
            Self::Mbps => "mbps",
            Self::PeakMbps => "peak_mbps",
            Self::Lat => "lat",
            Self::MeanUs => "mean_us",
            Self::PctlUs => "pctl_us",
            Self::Rating => "rating",
            Self::Score => "score",
            Self::Gain => "gain",
            Self::Fct => "fct",
            Self::Lin => "lin",
            Self::Wbwt => "wbwt",
            Self::M4 => "M4",
            Self::Count => "count",
            Self::Cpu => "cpu",
            Self::Util => "util",
            Self::Capacity => "capacity",
            Self::Cap => "cap",
            Self::SurviveFraction => "survive_fraction",
            Self::ParityShare => "parity_share",
            Self::MemberOps => "member_ops",
            Self::MemberDisks => "member_disks",
            Self::ReadsPerWrite => "reads_per_write",
            Self::MinMembers => "min_members",
        }
    }
}

impl Metric {
    /// The name of its first argument.
    #[must_use]
    pub const fn first(self) -> &'static str {
        match self {
            Self::Cap => "link",
            Self::SurviveFraction | Self::MinMembers => "level",
            _ => "s",
        }
    }

    /// Whether an axis can have a meaning for the metric. The axes for members, failures and percentiles have one for
    /// one metric each.
    #[must_use]
    pub const fn takes(self, axis: Axis) -> bool {
        match axis {
            Axis::N | Axis::K => matches!(self, Self::SurviveFraction),
            Axis::P => matches!(self, Self::PctlUs),
            _ => true,
        }
    }
}

/// The target of a call: an array or drive, a level, or a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MetricTarget {
    /// An array or a drive.
    Subject(Subject),
    /// A level, for any width.
    Level(crate::subject::Level),
    Link(String),
}

impl fmt::Display for MetricTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subject(subject) => subject.fmt(f),
            Self::Level(level) => f.write_str(level.word()),
            Self::Link(link) => f.write_str(link),
        }
    }
}

/// One call of a metric within a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct MetricCall {
    /// The claim's system. Its profile gives drives, controller, bus, cache and chunk.
    pub system: String,
    pub metric: Metric,
    pub target: MetricTarget,
    /// The axes that the check gives.
    pub axes: AxisValues,
    /// The claim's workload, which gives the other axes.
    pub workload: ClaimWorkload,
}

impl MetricCall {
    /// The subject, if the target is a subject.
    ///
    /// # Errors
    /// The target is a level or a link.
    pub fn subject(&self) -> Result<Subject, NotApplicable> {
        match &self.target {
            MetricTarget::Subject(subject) => Ok(*subject),
            other => Err(NotApplicable::new(format!("{} needs an array, not '{other}'", self.metric.name()))),
        }
    }

    /// All inputs of the value, in one line.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}|{self}|{}", self.system, self.workload.key())
    }
}

impl fmt::Display for MetricCall {
    /// The call in the form in which a claim writes it, without the values of the workload.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = self.axes.to_string();
        let comma = if axes.is_empty() { "" } else { ", " };
        write!(f, "{}({}{comma}{axes})", self.metric.name(), self.target)
    }
}

/// Reads, XORs and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operations {
    /// Member reads.
    pub reads: u32,
    /// XOR passes.
    pub xors: u32,
    /// Member writes.
    pub writes: u32,
}

/// The result of a metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum MetricValue {
    /// A figure.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// The cost of a write on the members.
    Operations(Operations),
}

impl MetricValue {
    /// The value as JSON.
    #[must_use]
    pub fn to_json(self) -> serde_json::Value {
        match self {
            Self::Number(number) => number.into(),
            Self::Count(count) => count.into(),
            Self::Operations(Operations { reads, xors, writes }) => {
                serde_json::json!({ "r": reads, "x": xors, "w": writes })
            }
        }
    }

    /// The value from JSON.
    #[must_use]
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        if let Some(count) = value.as_u64() {
            return Some(Self::Count(count));
        }
        if let Some(number) = value.as_f64() {
            return Some(Self::Number(number));
        }
        let part = |name: &str| value.get(name)?.as_u64().and_then(|part| u32::try_from(part).ok());
        Some(Self::Operations(Operations { reads: part("r")?, xors: part("x")?, writes: part("w")? }))
    }
}

impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) if number.abs() >= 1000.0 => write!(f, "{number:.0}"),
            Self::Number(number) if number.abs() >= 10.0 => write!(f, "{number:.1}"),
            Self::Number(number) => write!(f, "{number:.3}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Operations(Operations { reads, xors, writes }) => {
                write!(f, "{reads} reads, {xors} XORs, {writes} writes")
            }
        }
    }
}

/// A metric without a meaning here, with the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotApplicable {
    /// The reason in words.
    pub reason: String,
}

impl NotApplicable {
    /// The error with this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for NotApplicable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NotApplicable {}

/// The source of measurements: a simulated laboratory, or a fake in tests. Several threads call it.
pub trait Metrics: Sync {
    /// Measure. Equal calls must give equal values.
    ///
    /// # Errors
    /// The metric has no meaning for this subject, system or target.
    fn measure(&self, call: &MetricCall) -> Result<MetricValue, NotApplicable>;

    /// Whether a measured value rests on a load that had not become steady. It may then be too high or too low.
    fn is_unsteady(&self, call: &MetricCall) -> bool {
        let _ = call;
        false
    }
}
