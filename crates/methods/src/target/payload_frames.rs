//! Memory for the payload of a real target: one frame for each request that may be outstanding.

use super::{HostIo, TargetError};
use openraid_sim::Random;
use openraid_sys::{FramePool, HugePages, PoolOptions, PoolRange};
use openraid_units::{Bytes, PoolOffset};

/// Maximum memory for the payload of one target.
pub const PAYLOAD_BYTES_MAX: u64 = 1 << 30;

/// Frames whose bytes no drive can compress or deduplicate.
pub(super) struct TargetFrames {
    pub pool: FramePool,
    frame: u64,
    count: u64,
}

impl TargetFrames {
    pub fn new(name: &str, outstanding: u32, bytes_max: u32, seed: u64) -> Result<Self, TargetError> {
        let frame = u64::from(bytes_max.max(512)).next_multiple_of(4096);
        let count = u64::from(outstanding.max(1));
        let wrong = |reason: String| TargetError::Open { name: name.into(), reason };
        if frame * count > PAYLOAD_BYTES_MAX {
            return Err(wrong(format!(
                "{count} outstanding requests of {bytes_max} bytes take more memory than the {PAYLOAD_BYTES_MAX} \
                 bytes that there are for them; use a smaller depth or smaller requests"
            )));
        }
        let options = PoolOptions { len: Bytes(frame * count), huge: HugePages::Advise, touch: true };
        let mut pool = FramePool::new(options)
            .map_err(|error| wrong(format!("no memory for the payload of {count} requests: {error}")))?;
        Random::derived(seed, 0xf111).fill(pool.slice_mut(PoolRange::new(PoolOffset(0), Bytes(frame * count))));
        Ok(Self { pool, frame, count })
    }

    /// The memory of a request.
    pub fn of(&self, io: &HostIo) -> PoolRange {
        assert!(io.id < self.count, "bug: request {} is more than the target was opened for", io.id);
        assert!(u64::from(io.len) <= self.frame, "bug: a request larger than the target was opened for");
        PoolRange::new(PoolOffset(io.id * self.frame), Bytes(u64::from(io.len)))
    }
}

/// Decides when a target counts as gone: it has not answered for a long time, or answers only with errors.
pub(super) struct Patience {
    name: String,
    failed_in_a_row: u32,
}

/// Number of consecutive failed requests after which a target counts as gone.
const FAILED_IN_A_ROW_MAX: u32 = 64;
/// Number of seconds without an answer after which a target counts as gone.
pub(super) const SILENCE_SECONDS_MAX: u64 = 60;

impl Patience {
    pub fn with(name: &str) -> Self {
        Self { name: name.into(), failed_in_a_row: 0 }
    }

    pub fn gone(&self, reason: String) -> TargetError {
        TargetError::Gone { name: self.name.clone(), reason }
    }

    /// Notes an answer, with or without an error.
    pub fn answer(&mut self, error: Option<String>) -> Result<(), TargetError> {
        let Some(error) = error else {
            self.failed_in_a_row = 0;
            return Ok(());
        };
        self.failed_in_a_row += 1;
        if self.failed_in_a_row < FAILED_IN_A_ROW_MAX {
            return Ok(());
        }
        let reason = format!("{FAILED_IN_A_ROW_MAX} requests in a row have failed, the last so: {error}");
        Err(self.gone(reason))
    }

    pub fn silent(&self) -> TargetError {
        self.gone(format!("no answer for {SILENCE_SECONDS_MAX} seconds; look whether it still works"))
    }
}
