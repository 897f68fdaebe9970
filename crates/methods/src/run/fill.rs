//! Fills a target from start to end, so that an SSD was written completely before it is measured.

use crate::load::{ClosedLoop, LoadRequest, LoadSource, LoadStep, LoopOptions, Stop};
use crate::target::{IoKind, Target, TargetError};
use openraid_units::{Instant, Nanos};

/// Number of requests between two reports of progress.
const REQUESTS_PER_WORD: u64 = 1024;

struct Filling {
    at: u64,
    end: u64,
    capacity: u64,
    bytes: u32,
}

impl LoadSource for Filling {
    fn next(&mut self, _worker: u16) -> LoadStep {
        if self.at >= self.end {
            return LoadStep::End;
        }
        let offset = self.at % self.capacity;
        // The last request of a round may be shorter.
        let left = self.capacity - offset;
        let len = u32::try_from(left.min(u64::from(self.bytes))).expect("a request");
        self.at += u64::from(len);
        LoadStep::Ask(LoadRequest { kind: IoKind::Write, offset, len })
    }
}

/// Writes a target completely, `rounds` times in sequence. `done` gets the number of bytes so far.
///
/// # Errors
/// The target is gone.
///
/// # Panics
/// The target was opened only for reading.
pub fn fill(
    target: &mut dyn Target,
    bytes: u32,
    depth: u32,
    rounds: u64,
    mut done: impl FnMut(u64),
) -> Result<(), TargetError> {
    assert!(target.facts().writable, "bug: filling a target that was opened for reading");
    let block = target.facts().block.get().max(512);
    let capacity = target.facts().capacity.get() / block * block;
    let mut source = Filling { at: 0, end: capacity * rounds, capacity, bytes };
    let mut closed = ClosedLoop::new(LoopOptions { workers: 1, depth, jitter: Nanos::ZERO, seed: 0 });
    loop {
        let stop = Stop { requests: REQUESTS_PER_WORD, at: Instant::NEVER };
        if closed.run(target, &mut source, stop, None)? == 0 {
            return Ok(());
        }
        done(source.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::QueueServers;
    use openraid_units::Bytes;

    #[test]
    fn every_byte_is_written_as_often_as_asked() {
        let mut target = QueueServers::constant(4, Nanos(1000), Bytes((1 << 20) + 4096));
        let mut last = 0;
        fill(&mut target, 128 << 10, 8, 2, |bytes| last = bytes).unwrap();
        let sectors = target.counters().unwrap().members[0].sectors;
        assert_eq!((sectors * 512, last), (2 * ((1 << 20) + 4096), 2 * ((1 << 20) + 4096)));
    }
}
