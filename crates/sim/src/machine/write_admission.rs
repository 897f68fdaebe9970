//! A controller's treatment of writes before its cache: it distinguishes sequential writes from others.
//!
//! A controller that adapts decides from its first requests how it treats later writes. The decision holds until the
//! array is created again. If the firmware keeps that state, the decision holds until power is cut. After sequential
//! requests nothing changes. After random requests the controller distrusts streams: single long writes and the writes
//! of long streams pass a gate one at a time, a chunk after the other, and wait for the medium each time.
//!
//! A controller with a small cache keeps parts of stripes only if it can expect the rest of the stripe. Other short
//! writes bypass the cache.

use std::collections::VecDeque;

use openraid_units::{Bytes, Instant, Nanos};

use super::{HostIo, IoKind};

/// Length from which a write is long: two chunks of the usual size.
const LONG_BYTES: u32 = 128 << 10;
/// Sequential bytes from which a stream is long; files of a few megabytes are below.
const LONG_STREAM_BYTES: u64 = 32 << 20;
/// Sequential requests, the first included, that make a stream.
const STREAM_AFTER: u32 = 4;
/// A stream without requests for this time is no longer long.
const SILENT_AFTER: Nanos = Nanos::from_millis(2);
/// Streams that are distinguished.
const STREAMS_MAX: usize = 16;

/// Requests that continue each other.
#[derive(Clone, Copy, Debug)]
struct Stream {
    next: u64,
    requests: u32,
    bytes: u64,
    at: Instant,
}

/// The learned state of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lesson {
    /// The controller does not learn.
    Fixed,
    /// No decision yet: the number of requests seen, and how many of them continued another one.
    Listening { seen: u32, in_order: u32 },
    /// Loads are sequential.
    Trust,
    /// Loads are random.
    Distrust,
}

/// The treatment of a request at the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    /// To the cache without a wait.
    Free,
    /// Past the cache.
    Through,
    /// Through the gate, with a wait.
    Held,
}

/// See the module header.
#[derive(Debug)]
pub(super) struct StreamGate {
    /// Requests after which the controller decides.
    after: u32,
    lesson: Lesson,
    /// Writes that are shorter and continue no stream bypass the cache.
    through_below: u64,
    streams: VecDeque<Stream>,
    waiting: VecDeque<u32>,
    /// The write at the gate, its bytes that were admitted, and where the admitted part ends.
    at: Option<u32>,
    gone: u64,
    ends: u64,
}

impl StreamGate {
    /// The gate of a controller that decides after `after` requests (zero: it does not adapt), or that already learned
    /// that loads are random (`distrust`). The controller does not cache writes below `through_below`, unless they
    /// continue a stream.
    pub fn new(after: u32, distrust: bool, through_below: Bytes) -> Self {
        let lesson = match (after, distrust) {
            (0, _) => Lesson::Fixed,
            (_, true) => Lesson::Distrust,
            (_, false) => Lesson::Listening { seen: 0, in_order: 0 },
        };
        Self {
            after,
            lesson,
            through_below: through_below.get(),
            streams: VecDeque::new(),
            waiting: VecDeque::new(),
            at: None,
            gone: 0,
            ends: 0,
        }
    }

    /// The array was created again: the gate forgets what it learned from the old array.
    pub fn forget(&mut self) {
        self.streams.clear();
        if self.lesson != Lesson::Fixed {
            self.lesson = Lesson::Listening { seen: 0, in_order: 0 };
        }
    }

    /// A request arrives. Returns how it passes.
    pub fn look(&mut self, io: &HostIo, now: Instant) -> Passage {
        let indifferent = matches!(self.lesson, Lesson::Fixed | Lesson::Trust) && self.through_below == 0;
        if indifferent || io.kind == IoKind::Flush {
            return Passage::Free;
        }
        let stream = self.follow(io, now);
        if let Lesson::Listening { seen, in_order } = &mut self.lesson {
            *seen += 1;
            *in_order += u32::from(stream.requests > 1);
            if *seen >= self.after {
                self.lesson = if *in_order * 2 >= *seen { Lesson::Trust } else { Lesson::Distrust };
            }
        }
        let long = io.len >= LONG_BYTES || stream.bytes >= LONG_STREAM_BYTES;
        if io.kind != IoKind::Write {
            Passage::Free
        } else if self.lesson == Lesson::Distrust && long {
            Passage::Held
        } else if u64::from(io.len) < self.through_below && stream.requests < STREAM_AFTER {
            Passage::Through
        } else {
            Passage::Free
        }
    }

    /// The stream of a request, this one included.
    fn follow(&mut self, io: &HostIo, now: Instant) -> Stream {
        let end = io.offset + u64::from(io.len);
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.next == io.offset) {
            if now.since(stream.at) > SILENT_AFTER {
                stream.bytes = 0;
            }
            (stream.next, stream.at) = (end, now);
            stream.requests = stream.requests.saturating_add(1);
            stream.bytes += u64::from(io.len);
            return *stream;
        }
        if self.streams.len() == STREAMS_MAX {
            self.streams.pop_front();
        }
        let stream = Stream { next: end, requests: 1, bytes: u64::from(io.len), at: now };
        self.streams.push_back(stream);
        stream
    }

    /// A write arrives at the gate. Returns true if it can pass at once.
    pub fn arrive(&mut self, slot: u32) -> bool {
        if self.at.is_some() {
            self.waiting.push_back(slot);
            return false;
        }
        (self.at, self.gone) = (Some(slot), 0);
        true
    }

    /// Whether this write is the one at the gate.
    pub fn is_at(&self, slot: u32) -> bool {
        self.at == Some(slot)
    }

    /// The write at the gate, and its bytes that were admitted.
    pub fn at_gate(&self) -> Option<(u32, u64)> {
        self.at.map(|slot| (slot, self.gone))
    }

    /// `bytes` more of the write are admitted; this part ends at `end`.
    pub fn went_in(&mut self, bytes: u64, end: u64) {
        self.gone += bytes;
        self.ends = end;
    }

    /// The admitted part is done. Returns whether the write has more.
    pub fn has_more(&self, len: u64) -> bool {
        self.gone < len
    }

    /// The write at the gate is done; the next write may pass. Time at the gate does not count as silence of the
    /// stream.
    pub fn leave(&mut self, now: Instant) {
        for stream in &mut self.streams {
            if stream.next >= self.ends && stream.next - self.ends <= LONG_STREAM_BYTES {
                stream.at = now;
            }
        }
        (self.at, self.gone) = (self.waiting.pop_front(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Nanos = Nanos::from_micros(100);

    fn write(offset: u64, len: u32) -> HostIo {
        HostIo { id: 0, kind: IoKind::Write, offset, len, worker: 0 }
    }

    #[test]
    fn long_writes_and_long_streams_pass_one_after_the_other() {
        let mut gate = StreamGate::new(100, true, Bytes::ZERO);
        let mut now = Instant::ZERO;
        assert_eq!(gate.look(&write(1 << 30, LONG_BYTES), now), Passage::Held);
        // 512 requests of 64 KiB are 32 MiB: the last of them is held, and so are later ones.
        let mut held = Vec::new();
        for number in 0..516 {
            now = now + SOON;
            held.push(gate.look(&write(number << 16, 64 << 10), now) == Passage::Held);
        }
        assert_eq!(held.iter().position(|held| *held), Some(511));
        assert!(held[511..].iter().all(|held| *held));
        // Silence ends a stream, unless the stream was at the gate for all that time.
        let later = now + Nanos::from_millis(50);
        assert!(gate.arrive(1) && !gate.arrive(2));
        gate.went_in(64 << 10, 516 << 16);
        gate.leave(later);
        assert_eq!(gate.look(&write(516 << 16, 64 << 10), later), Passage::Held);
        assert_eq!(gate.look(&write(517 << 16, 64 << 10), later + Nanos::from_millis(3)), Passage::Free);
    }

    #[test]
    fn writes_go_in_bit_by_bit_and_one_after_the_other() {
        let mut gate = StreamGate::new(100, true, Bytes::ZERO);
        assert!(gate.arrive(1) && !gate.arrive(2));
        gate.went_in(10, 10);
        assert!(gate.has_more(11) && !gate.has_more(10) && gate.is_at(1));
        gate.leave(Instant::ZERO);
        assert_eq!(gate.at_gate(), Some((2, 0)));
        gate.leave(Instant::ZERO);
        assert_eq!(gate.at_gate(), None);
    }

    #[test]
    fn the_first_requests_decide() {
        let mut random = StreamGate::new(10, false, Bytes::ZERO);
        let mut ordered = StreamGate::new(10, false, Bytes::ZERO);
        for number in 0..10 {
            random.look(&write(number * 999_424, 4096), Instant::ZERO);
            ordered.look(&write(number * 4096, 4096), Instant::ZERO);
        }
        let long = write(1 << 40, LONG_BYTES);
        assert_eq!(random.look(&long, Instant::ZERO), Passage::Held);
        assert_eq!(ordered.look(&long, Instant::ZERO), Passage::Free);
        // The new array has taught the controller nothing yet, and teaches it as the first array did.
        random.forget();
        assert_eq!(random.look(&long, Instant::ZERO), Passage::Free);
        for number in 0..10 {
            random.look(&write(number * 999_424, 4096), Instant::ZERO);
        }
        assert_eq!(random.look(&long, Instant::ZERO), Passage::Held);
        // A controller that does not adapt holds no write.
        let mut fixed = StreamGate::new(0, false, Bytes::ZERO);
        fixed.forget();
        assert_eq!((fixed.look(&long, Instant::ZERO), fixed.lesson), (Passage::Free, Lesson::Fixed));
    }

    #[test]
    fn parts_of_stripes_are_cached_where_the_rest_can_be_expected() {
        let mut gate = StreamGate::new(0, false, Bytes::kib(192));
        let mut passages = Vec::new();
        for number in 0..6 {
            passages.push(gate.look(&write(number * 8192, 8192), Instant::ZERO));
        }
        assert_eq!(passages[..3], [Passage::Through; 3]);
        assert_eq!(passages[3..], [Passage::Free; 3]);
        assert_eq!(gate.look(&write(1 << 30, 8192), Instant::ZERO), Passage::Through);
        assert_eq!(gate.look(&write(1 << 31, 192 << 10), Instant::ZERO), Passage::Free);
        let read = HostIo { kind: IoKind::Read, ..write(1 << 32, 8192) };
        assert_eq!(gate.look(&read, Instant::ZERO), Passage::Free);
    }
}
