//! An exported volume: a set, or a stripe over sets (50, 60).

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_units::{BlockSize, Sectors, SetId, SetLba};

use crate::adaptive::Adaptive;
use crate::cache::streams::Streams;
use crate::events::{BlockRequest, RequestKind};
use crate::geometry::{Divisor, Striped};
use crate::occupancy::Occupancy;

/// The map from an array to its sets.
#[derive(Debug)]
pub(crate) enum Volume {
    /// The set as it is.
    Direct(SetId),
    /// A stripe over sets; in each, the data follows the outer superblock, at its `data_offset`.
    Striped {
        /// Slots are spans.
        geometry: Striped,
        /// Set and start of the data in it, by span.
        spans: Vec<(SetId, Sectors)>,
    },
}

impl Volume {
    /// The place of `at`, and how far it continues there.
    pub(crate) fn map(&self, at: Sectors, set_capacity: impl Fn(SetId) -> Sectors) -> (SetId, SetLba, Sectors) {
        match self {
            Self::Direct(set) => (*set, SetLba(at.get()), set_capacity(*set) - at),
            Self::Striped { geometry, spans } => {
                let fragment = geometry.map(SetLba(at.get()));
                let (set, data_offset) = spans[fragment.slot.index()];
                (set, SetLba(fragment.lba.get()) + data_offset, fragment.len)
            }
        }
    }

    /// Number of sets.
    pub(crate) fn set_count(&self) -> usize {
        match self {
            Self::Direct(_) => 1,
            Self::Striped { spans, .. } => spans.len(),
        }
    }

    /// The set with this number.
    pub(crate) fn set(&self, index: usize) -> SetId {
        match self {
            Self::Direct(set) => *set,
            Self::Striped { spans, .. } => spans[index].0,
        }
    }
}

/// An array that takes host requests.
#[derive(Debug)]
pub(crate) struct Array {
    pub capacity: Sectors,
    pub block: BlockSize,
    pub volume: Volume,
    /// Requests are cut at multiples of so many bytes: whole stripes, where frames allow.
    pub piece: Divisor,
    pub stopping: bool,
    /// It is a span of this many nested arrays that run.
    pub outer: u32,
    /// Reads, writes, flushes, others.
    pub requests: [u64; 4],
    /// Bytes read and written.
    pub bytes: [u64; 2],
    /// Reads that come in order.
    pub streams: Box<Streams>,
    /// What it has learned of its hosts, and whether it does.
    pub(super) adaptive: Box<Adaptive>,
    pub is_adaptive: bool,
    /// Requests inside.
    pub inside: Occupancy,
}

impl Array {
    pub(crate) fn count(&mut self, request: &BlockRequest) {
        match request.kind {
            RequestKind::Read => {
                self.requests[0] += 1;
                self.bytes[0] += request.len;
            }
            RequestKind::Write { .. } => {
                self.requests[1] += 1;
                self.bytes[1] += request.len;
            }
            RequestKind::Flush => self.requests[2] += 1,
            RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => self.requests[3] += 1,
        }
    }
}
