//! The stored part of a cell's result: the figures from which metrics are computed.
//!
//! If a cell has no result, the store must never keep one: it keeps the reason.

use crate::metric::NotApplicable;
use openraid_methods::cell::CellResult;
use serde_json::{json, Value};

/// A member, or a worker.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PartReading {
    /// Share of the time for which it worked.
    pub busy: f64,
    /// Commands or requests per second.
    pub iops: f64,
    /// MB per second.
    pub mbps: f64,
}

/// The figures of a cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CellReading {
    /// Requests per second.
    pub iops: f64,
    /// MB per second.
    pub mbps: f64,
    /// Mean latency.
    pub mean_ns: f64,
    /// Mean latency of reads, and of writes.
    pub mean_each_ns: [f64; 2],
    /// The requested percentile.
    pub percentile_ns: f64,
    /// Number of requests.
    pub requests: f64,
    /// Number of writes among the requests.
    pub writes: f64,
    /// Read commands of all members.
    pub member_reads: f64,
    /// Share of the host's processor time.
    pub cpu: Option<f64>,
    /// Thousand bytes per second.
    pub score: Option<f64>,
    pub members: Vec<PartReading>,
    pub workers: Vec<PartReading>,
    /// Rates over the array, from beginning to end.
    pub curve: Vec<f64>,
    /// Whether the load did not become steady: the rates may be those of a cache that fills.
    pub unsteady: bool,
}

const SECTOR: f64 = 512.0;

#[allow(clippy::cast_precision_loss)] // counts of a measurement are far below 2^53
impl CellReading {
    /// The figures of a result.
    pub fn of(result: &CellResult, percentile: f64) -> Self {
        let seconds = result.elapsed_ns.max(1) as f64 / 1e9;
        let member = |member: &openraid_methods::cell::MemberShare| PartReading {
            busy: member.busy,
            iops: (member.reads + member.writes) as f64 / seconds,
            mbps: member.sectors as f64 * SECTOR / 1e6 / seconds,
        };
        Self {
            iops: result.iops,
            mbps: result.mbps,
            mean_ns: result.latency.mean_ns,
            mean_each_ns: [result.reads.latency.mean(), result.writes.latency.mean()],
            percentile_ns: result.histogram().percentile(percentile) as f64,
            requests: result.requests as f64,
            writes: result.writes.requests as f64,
            member_reads: result.members.iter().map(|member| member.reads as f64).sum(),
            cpu: result.host_cpu,
            score: result.score,
            members: result.members.iter().map(member).collect(),
            workers: result
                .workers
                .iter()
                .map(|worker| PartReading { busy: 0.0, iops: worker.iops, mbps: worker.mbps })
                .collect(),
            curve: result.curve.iter().map(|sample| sample.value).collect(),
            unsteady: result.is_unsteady(),
        }
    }

    /// The value in place of a reading: the reason for its absence.
    pub fn absent(reason: &str) -> Value {
        json!({ "absent": reason })
    }

    pub fn to_json(&self) -> Value {
        let parts = |parts: &[PartReading]| -> Vec<[f64; 3]> {
            parts.iter().map(|part| [part.busy, part.iops, part.mbps]).collect()
        };
        json!({
            "iops": self.iops, "mbps": self.mbps, "mean_ns": self.mean_ns, "percentile_ns": self.percentile_ns,
            "read_mean_ns": self.mean_each_ns[0], "write_mean_ns": self.mean_each_ns[1],
            "requests": self.requests, "writes": self.writes, "member_reads": self.member_reads,
            "cpu": self.cpu, "score": self.score, "members": parts(&self.members), "workers": parts(&self.workers),
            "curve": self.curve, "unsteady": self.unsteady,
        })
    }

    /// # Errors
    /// The reason, if there is no reading.
    pub fn from_json(value: &Value) -> Result<Self, NotApplicable> {
        if let Some(reason) = value.get("absent") {
            return Err(NotApplicable::new(reason.as_str().unwrap_or("no reason was kept")));
        }
        let number = |name: &str| value.get(name).and_then(Value::as_f64);
        let figure =
            |name: &str| number(name).ok_or_else(|| NotApplicable::new(format!("the value kept has no {name}")));
        let list = |name: &str| value.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let part = |value: &Value| {
            let at = |index: usize| value.get(index).and_then(Value::as_f64).unwrap_or(0.0);
            PartReading { busy: at(0), iops: at(1), mbps: at(2) }
        };
        Ok(Self {
            iops: figure("iops")?,
            mbps: figure("mbps")?,
            mean_ns: figure("mean_ns")?,
            mean_each_ns: [figure("read_mean_ns")?, figure("write_mean_ns")?],
            percentile_ns: figure("percentile_ns")?,
            requests: figure("requests")?,
            writes: figure("writes")?,
            member_reads: figure("member_reads")?,
            cpu: number("cpu"),
            score: number("score"),
            members: list("members").iter().map(part).collect(),
            workers: list("workers").iter().map(part).collect(),
            curve: list("curve").iter().filter_map(Value::as_f64).collect(),
            unsteady: value.get("unsteady").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_survives_a_round_trip_through_json() {
        let reading = CellReading {
            iops: 1.5,
            mean_ns: 0.1,
            score: Some(2.0),
            members: vec![PartReading { busy: 0.5, iops: 3.0, mbps: 4.0 }],
            curve: vec![9.0, 8.0],
            unsteady: true,
            ..CellReading::default()
        };
        let text = reading.to_json().to_string();
        let back = serde_json::from_str(&text).expect("JSON");
        assert_eq!(CellReading::from_json(&back), Ok(reading));
        assert_eq!(CellReading::from_json(&CellReading::absent("why")), Err(NotApplicable::new("why")));
        assert!(CellReading::from_json(&json!({})).is_err());
    }
}
