//! A controller that adapts to its load: what the first requests were decides how it takes writes from then on, until
//! the power is cut.
//!
//! Where they came in order, nothing changes. Random ones teach it to distrust streams: long writes, and writes that go
//! on with others, pass a gate one at a time, a chunk after the other, and wait for the medium each time.

use std::collections::VecDeque;

use super::{HostIo, IoKind};

/// A write of so many bytes is long: two chunks of the usual size.
const LONG_BYTES: u32 = 128 << 10;
/// Writes in order, the first included, that make a stream.
const STREAM_AFTER: u32 = 4;
/// Streams that are told apart.
const STREAMS_MAX: usize = 16;

/// Requests that go on with each other.
#[derive(Clone, Copy, Debug)]
struct Stream {
    next: u64,
    length: u32,
}

/// What a controller has learned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lesson {
    /// Nothing yet: requests seen, and those of them that went on with others.
    Listening { seen: u32, in_order: u32 },
    /// Loads come in order.
    Trust,
    /// Loads are random.
    Distrust,
}

/// See the module header.
#[derive(Debug)]
pub(super) struct Gate {
    /// Requests after which it has made up its mind; zero is a controller that does not adapt.
    after: u32,
    lesson: Lesson,
    streams: VecDeque<Stream>,
    waiting: VecDeque<u32>,
    /// The write at the gate, and the bytes of it that have gone in.
    at: Option<u32>,
    gone: u64,
}

impl Gate {
    /// A controller that makes up its mind after so many requests, or has learned already that loads are random.
    pub fn new(after: u32, distrust: bool) -> Self {
        let lesson = if distrust { Lesson::Distrust } else { Lesson::Listening { seen: 0, in_order: 0 } };
        Self { after, lesson, streams: VecDeque::new(), waiting: VecDeque::new(), at: None, gone: 0 }
    }

    /// A request comes in: must it pass the gate?
    pub fn holds(&mut self, io: &HostIo) -> bool {
        if self.after == 0 || self.lesson == Lesson::Trust || io.kind == IoKind::Flush {
            return false;
        }
        let length = self.follow(io);
        if let Lesson::Listening { seen, in_order } = &mut self.lesson {
            *seen += 1;
            *in_order += u32::from(length > 1);
            if *seen >= self.after {
                self.lesson = if *in_order * 2 >= *seen { Lesson::Trust } else { Lesson::Distrust };
            }
        }
        let stream = io.len >= LONG_BYTES || length >= STREAM_AFTER;
        self.lesson == Lesson::Distrust && io.kind == IoKind::Write && stream
    }

    /// How many requests, this one included, have gone on with each other.
    fn follow(&mut self, io: &HostIo) -> u32 {
        let end = io.offset + u64::from(io.len);
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.next == io.offset) {
            (stream.next, stream.length) = (end, stream.length.saturating_add(1));
            return stream.length;
        }
        if self.streams.len() == STREAMS_MAX {
            self.streams.pop_front();
        }
        self.streams.push_back(Stream { next: end, length: 1 });
        1
    }

    /// A write comes to the gate; true if it is its turn at once.
    pub fn arrive(&mut self, slot: u32) -> bool {
        if self.at.is_some() {
            self.waiting.push_back(slot);
            return false;
        }
        (self.at, self.gone) = (Some(slot), 0);
        true
    }

    /// Is this write the one at the gate?
    pub fn is_at(&self, slot: u32) -> bool {
        self.at == Some(slot)
    }

    /// The write at the gate, and how much of it has gone in.
    pub fn at_gate(&self) -> Option<(u32, u64)> {
        self.at.map(|slot| (slot, self.gone))
    }

    /// So much of it goes in.
    pub fn went_in(&mut self, bytes: u64) {
        self.gone += bytes;
    }

    /// What went in is done: is there more of it?
    pub fn has_more(&self, len: u64) -> bool {
        self.gone < len
    }

    /// It is done; the next one comes to the gate.
    pub fn leave(&mut self) {
        (self.at, self.gone) = (self.waiting.pop_front(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, len: u32) -> HostIo {
        HostIo { id: 0, kind: IoKind::Write, offset, len, worker: 0 }
    }

    #[test]
    fn long_writes_and_streams_pass_one_after_the_other() {
        let mut gate = Gate::new(100, true);
        assert!(gate.holds(&write(1 << 30, LONG_BYTES)));
        let held: Vec<bool> = (0..6).map(|number| gate.holds(&write(number * 4096, 4096))).collect();
        assert_eq!(held, [false, false, false, true, true, true]);
        assert!(!gate.holds(&write(7777 * 4096, 4096)));
        assert!(gate.arrive(1) && !gate.arrive(2));
        gate.went_in(10);
        assert!(gate.has_more(11) && !gate.has_more(10) && gate.is_at(1));
        gate.leave();
        assert_eq!(gate.at_gate(), Some((2, 0)));
        gate.leave();
        assert_eq!(gate.at_gate(), None);
    }

    #[test]
    fn the_first_requests_decide() {
        let mut random = Gate::new(10, false);
        let mut ordered = Gate::new(10, false);
        for number in 0..10 {
            random.holds(&write(number * 999_424, 4096));
            ordered.holds(&write(number * 4096, 4096));
        }
        let long = write(1 << 40, LONG_BYTES);
        assert!(random.holds(&long) && !ordered.holds(&long));
        // Nobody who does not adapt holds anything.
        assert!(!Gate::new(0, false).holds(&long));
    }
}
