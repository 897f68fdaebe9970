//! Counting requests that end while a cell is measured.

use super::histogram::Histogram;
use super::slices::Slices;
use serde::{Deserialize, Serialize};

/// Requests of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Tally {
    /// Their number.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their latencies.
    pub latency: Histogram,
}

impl Tally {
    /// Count one.
    pub fn add(&mut self, bytes: u32, latency_ns: u64) {
        self.requests += 1;
        self.bytes += u64::from(bytes);
        self.latency.record(latency_ns);
    }
}

/// Everything that is counted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recorder {
    /// Reads.
    pub reads: Tally,
    /// Writes.
    pub writes: Tally,
    /// Flushes.
    pub flushes: u64,
    /// Requests and bytes of each worker.
    pub workers: Vec<(u64, u64)>,
    /// Number of failed requests.
    pub errors: u64,
    /// Latency by time slice, if that is wanted.
    pub slices: Option<Slices>,
}

impl Recorder {
    /// A recorder for this number of workers.
    #[must_use]
    pub fn new(workers: u16) -> Self {
        Self { workers: vec![(0, 0); usize::from(workers)], ..Self::default() }
    }

    /// Requests of any kind that succeeded.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads.requests + self.writes.requests + self.flushes
    }

    /// Bytes both ways.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }
}
