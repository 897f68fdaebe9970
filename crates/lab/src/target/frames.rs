//! Memory for the payload of a real target: one frame for each request that may be outstanding.

use super::{HostIo, TargetError};
use openraid_sim::Random;
use openraid_sys::{FramePool, HugePages, PoolOptions, PoolRange};
use openraid_units::{Bytes, PoolOffset};

/// Payload memory of one target at most.
pub const PAYLOAD_BYTES_MAX: u64 = 1 << 30;

/// Frames, filled with bytes that no drive can compress or deduplicate.
pub(super) struct Frames {
    pub pool: FramePool,
    frame: u64,
    count: u64,
}

impl Frames {
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

/// Tells when a target is gone: it has not answered for long, or answers nothing but errors.
pub(super) struct Patience {
    name: String,
    failed_in_a_row: u32,
}

/// Requests that may fail in a row before a target counts as gone.
const FAILED_IN_A_ROW_MAX: u32 = 64;
/// Seconds without an answer after which a target counts as gone.
pub(super) const SILENCE_SECONDS_MAX: u64 = 60;

impl Patience {
    pub fn with(name: &str) -> Self {
        Self { name: name.into(), failed_in_a_row: 0 }
    }

    pub fn gone(&self, reason: String) -> TargetError {
        TargetError::Gone { name: self.name.clone(), reason }
    }

    /// An answer came, good or bad.
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
