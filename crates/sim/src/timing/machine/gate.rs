//! The gate of a controller that random loads have taught to distrust streams: long writes, and writes that go on
//! with others, pass one at a time, a chunk after the other, and wait for the medium each time.

use std::collections::VecDeque;

use super::HostIo;

/// A write of so many bytes is long: two chunks of the usual size.
const LONG_BYTES: u32 = 128 << 10;
/// Writes in order, the first included, that make a stream.
const STREAM_AFTER: u32 = 4;
/// Streams that are told apart.
const STREAMS_MAX: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Stream {
    next: u64,
    writes: u32,
}

/// See the module header.
#[derive(Debug, Default)]
pub(super) struct Gate {
    streams: VecDeque<Stream>,
    waiting: VecDeque<u32>,
    /// The write at the gate, and the bytes of it that have gone in.
    at: Option<u32>,
    gone: u64,
}

impl Gate {
    /// Must this write pass the gate? It is remembered as part of its stream.
    pub fn holds(&mut self, io: &HostIo) -> bool {
        let end = io.offset + u64::from(io.len);
        let writes = match self.streams.iter_mut().find(|stream| stream.next == io.offset) {
            Some(stream) => {
                (stream.next, stream.writes) = (end, stream.writes.saturating_add(1));
                stream.writes
            }
            None => {
                if self.streams.len() == STREAMS_MAX {
                    self.streams.pop_front();
                }
                self.streams.push_back(Stream { next: end, writes: 1 });
                1
            }
        };
        io.len >= LONG_BYTES || writes >= STREAM_AFTER
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
    use crate::timing::machine::IoKind;

    fn write(offset: u64, len: u32) -> HostIo {
        HostIo { id: 0, kind: IoKind::Write, offset, len, worker: 0 }
    }

    #[test]
    fn long_writes_and_streams_pass_one_after_the_other() {
        let mut gate = Gate::default();
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
}
