//! Counts requests that end while a cell is measured.

use super::histogram::Histogram;
use super::slices::Slices;
use serde::{Deserialize, Serialize};

/// Requests of one direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Tally {
    /// Number of requests.
    pub requests: u64,
    /// Number of bytes that they read or wrote.
    pub bytes: u64,
    /// Distribution of their latencies.
    pub latency: Histogram,
}

impl Tally {
    /// Counts one request.
    pub fn add(&mut self, bytes: u32, latency_ns: u64) {
        self.requests += 1;
        self.bytes += u64::from(bytes);
        self.latency.record(latency_ns);
    }
}

/// All counts of a measurement.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Recorder {
    pub reads: Tally,
    pub writes: Tally,
    pub flushes: u64,
    /// Requests and bytes of each worker.
    pub workers: Vec<(u64, u64)>,
    /// Number of failed requests.
    pub errors: u64,
    /// Latency by time slice, if requested.
    pub slices: Option<Slices>,
}

impl Recorder {
    /// A recorder for this number of workers.
    #[must_use]
    pub fn new(workers: u16) -> Self {
        Self { workers: vec![(0, 0); usize::from(workers)], ..Self::default() }
    }

    /// Number of successful requests of any kind.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.reads.requests + self.writes.requests + self.flushes
    }

    /// Number of bytes in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }
}
