//! The areas of the pool that hold payload: the frames of pieces, and the frames in which operations work.

use super::Frames;
use crate::limits::{Limits, ZERO_REGION_BYTES};

/// See the module header. The zero region comes first, the cache and the journal come after the work area.
#[derive(Debug)]
pub(crate) struct Pool {
    host: Frames,
    work: Frames,
    work_from: u64,
}

impl Pool {
    /// The areas of a pool with these limits, all frames free.
    pub(crate) fn new(limits: &Limits) -> Self {
        let host = limits.host_bytes().get();
        let work_from = ZERO_REGION_BYTES + host;
        Self { host: Frames::new(ZERO_REGION_BYTES, host), work: Frames::new(work_from, limits.work.get()), work_from }
    }

    /// The frames of pieces.
    #[inline(always)]
    pub(crate) const fn host(&self) -> &Frames {
        &self.host
    }

    /// As [`Pool::host`].
    #[inline(always)]
    pub(crate) fn host_mut(&mut self) -> &mut Frames {
        &mut self.host
    }

    /// The frames in which operations work.
    #[inline(always)]
    pub(crate) const fn work(&self) -> &Frames {
        &self.work
    }

    /// As [`Pool::work`].
    #[inline(always)]
    pub(crate) fn work_mut(&mut self) -> &mut Frames {
        &mut self.work
    }

    /// The first byte of the work area.
    #[inline(always)]
    pub(crate) const fn work_from(&self) -> u64 {
        self.work_from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::PoolOffset;

    #[test]
    fn payload_is_between_the_zero_region_and_the_work_area() {
        let limits = Limits::small();
        let mut pool = Pool::new(&limits);
        let first = pool.host_mut().take(1).unwrap().at;
        assert_eq!(first, PoolOffset(ZERO_REGION_BYTES));
        let work = pool.work_mut().take(1).unwrap().at;
        assert_eq!(work.0, ZERO_REGION_BYTES + limits.host_bytes().get());
        assert_eq!(work.0, pool.work_from());
        assert_eq!(pool.host().free_frames() + 1, u32::try_from(limits.host_bytes().get() / 4096).unwrap());
    }
}
