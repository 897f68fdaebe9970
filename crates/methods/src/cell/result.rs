//! The result of a cell.

use super::ceiling::Flag;
use super::limiting_part::{MemberPart, PartName};
use super::note::CellNote;
use super::spec::CellSpec;
use crate::metrics::{Histogram, Slice, Tally};
use serde::{Deserialize, Serialize};

/// Percentiles of a summary.
pub(crate) const PERCENTILES: [f64; 9] = [1.0, 5.0, 50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// Latency in numbers. All times in nanoseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LatencySummary {
    /// Number of requests.
    pub count: u64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Standard deviation of the latency.
    pub deviation_ns: f64,
    /// Latency of the fastest request.
    pub min_ns: u64,
    /// Latency of the slowest request.
    pub max_ns: u64,
    /// Percentiles: pairs of percent and latency in nanoseconds.
    pub percentiles: Vec<(f64, u64)>,
}

impl LatencySummary {
    /// The percentiles and the mean of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let percentiles = PERCENTILES.iter().map(|percent| (*percent, histogram.percentile(*percent))).collect();
        Self {
            count: histogram.count(),
            mean_ns: histogram.mean(),
            deviation_ns: histogram.deviation(),
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            percentiles: if histogram.count() == 0 { Vec::new() } else { percentiles },
        }
    }
}

/// The work of one member during the measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MemberShare {
    /// Share of the time in which its busiest part worked: the medium (arm and platters, or the mean of the dies), its
    /// firmware, its controller's data path, its link.
    pub busy: f64,
    /// The name of that part: `medium`, `firmware`, `path`, `link`.
    #[serde(default = "medium")]
    #[schema(value_type = String)]
    pub part: MemberPart,
    /// Number of read commands that it completed.
    pub reads: u64,
    /// Number of write commands that it completed.
    pub writes: u64,
    /// Number of sectors of 512 bytes that it read and wrote.
    pub sectors: u64,
}

/// What one worker got.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WorkerShare {
    /// Requests of this worker each second.
    pub iops: f64,
    /// MB (10^6 bytes) of this worker each second.
    pub mbps: f64,
}

/// A part of the machine that may be the limit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Component {
    /// `members` (the busiest), `bus`, `data path` (the controller's own), `controller`, `xor`, `host` (all its processors), `worker` (the
    /// busiest thread of it), `channel`, `journal` (a command is at a device of it), `open stripes` (all that the controller puts together at once are in work).
    #[schema(value_type = String)]
    pub name: PartName,
    /// Share of the time in which it worked.
    pub busy: f64,
}

/// A point of a curve.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Sample {
    /// The position of the point: a byte of the array, or nanoseconds since the measurement began.
    pub at: f64,
    /// The value there; its unit is that of the curve.
    pub value: f64,
}

/// The result of a cell. Equal cells on a simulated target have equal results, byte by byte.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CellResult {
    /// The cell that was measured.
    pub spec: CellSpec,
    /// Length of the measurement, nanoseconds of the target's clock.
    pub elapsed_ns: u64,
    /// Number of requests that ended in the measurement.
    pub requests: u64,
    /// Reads and writes that ended each second.
    pub iops: f64,
    /// Number of flushes that ended in the measurement; the requests each second do not include them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flushes: u64,
    /// MB (10^6 bytes) that reads and writes moved each second.
    pub mbps: f64,
    /// Number, bytes and latency of the reads.
    pub reads: Tally,
    /// Number, bytes and latency of the writes.
    pub writes: Tally,
    /// Latency of reads and writes together.
    pub latency: LatencySummary,
    /// Number of failed requests. The other figures do not include them.
    pub errors: u64,
    /// The rates of each worker.
    pub workers: Vec<WorkerShare>,
    /// Each member of the array, if the target reports them.
    pub members: Vec<MemberShare>,
    /// Parts of the machine, the busiest first, if the target reports them.
    pub components: Vec<Component>,
    /// Share of the host's processor time that the load took, 0 to 1, if the target reports it.
    pub host_cpu: Option<f64>,
    /// Number of the engine's decisions by reason.
    pub reasons: Vec<(String, u64)>,
    /// Curve over the array (transfer graph), MB/s by byte of the array.
    pub curve: Vec<Sample>,
    /// Latency by time slice; only of the latency method (M23).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Slice>,
    /// Score of an application trace, in thousand bytes each second.
    pub score: Option<f64>,
    /// Capacity of the target, bytes.
    pub capacity: u64,
    /// Notes of the run: how the load became steady, fallbacks.
    #[schema(value_type = Vec<String>)]
    pub notes: Vec<CellNote>,
    /// Rate of a rebuild during the measurement, MB (10^6 bytes) of the new member each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild_mbps: Option<f64>,
    /// Rate of a change of shape during the measurement, MB (10^6 bytes) of the array each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reshape_mbps: Option<f64>,
    /// Reasons why the rates are not those of the drives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// Had the load become steady before the measurement? Otherwise the figures may be too high or too low, and are
    /// not a peak.
    #[serde(default = "yes")]
    pub steady: bool,
    /// Number of requests of a trace, or of a load with a rate, that were not issued because the target was too slow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub never_asked: u64,
}

const fn medium() -> MemberPart {
    MemberPart::Medium
}

const fn yes() -> bool {
    true
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl CellResult {
    /// Mean latency in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.latency.mean_ns / 1e6
    }

    /// Was the load not yet steady during the measurement? Then the figures may be too high or too low.
    #[must_use]
    pub fn is_unsteady(&self) -> bool {
        !self.steady || self.notes.iter().any(CellNote::is_unsteady)
    }

    /// Latency of all requests, as a histogram.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        let mut all = self.reads.latency.clone();
        all.merge(&self.writes.latency);
        all
    }

    /// The busiest part of the machine.
    #[must_use]
    pub fn bottleneck(&self) -> Option<&Component> {
        self.components.first()
    }

    /// The load of a part of the machine, if the target reports it.
    #[must_use]
    pub fn busy(&self, name: PartName) -> Option<f64> {
        self.components.iter().find(|part| part.name == name).map(|part| part.busy)
    }

    /// If the part is the members: the busiest part of the busiest member, unless that is the medium.
    #[must_use]
    pub fn member_part(&self, name: PartName) -> Option<MemberPart> {
        let busiest = self.members.iter().max_by(|one, two| one.busy.total_cmp(&two.busy))?;
        Some(busiest.part).filter(|part| name == PartName::Members && *part != MemberPart::Medium)
    }

    /// Reads of members for each write of the host.
    #[must_use]
    pub fn reads_per_write(&self) -> Option<f64> {
        let reads: u64 = self.members.iter().map(|member| member.reads).sum();
        (self.writes.requests > 0 && !self.members.is_empty()).then(|| reads as f64 / self.writes.requests as f64)
    }
}
