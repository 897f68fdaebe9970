//! Copies of writes that the server has answered and not made durable yet.
//!
//! A server that restarts may have lost these writes. They are written again when it is back, so nothing is lost. A
//! flush that succeeds frees the copies, so early flushes limit the memory.

use std::collections::VecDeque;

use crate::limits::{REMOTE_KEPT_BYTES_MAX, REMOTE_KEPT_ENTRY_BYTES};

/// The data of one kept write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum AnsweredData {
    Bytes(Vec<u8>),
    Zeroes { length: u64, no_hole: bool },
}

impl AnsweredData {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeroes { length, .. } => *length,
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len() + REMOTE_KEPT_ENTRY_BYTES,
            Self::Zeroes { .. } => REMOTE_KEPT_ENTRY_BYTES,
        }
    }
}

/// One write, and its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AnsweredWrite {
    pub offset: u64,
    pub data: AnsweredData,
}

impl AnsweredWrite {
    pub(super) fn overlaps(&self, offset: u64, length: u64) -> bool {
        self.offset < offset + length && offset < self.offset + self.data.len()
    }
}

/// The writes in the order of their answers. Writes that overlap are never under way together, so this is also the
/// order in which they must be repeated.
#[derive(Debug, Default)]
pub(super) struct AnsweredWrites {
    writes: VecDeque<AnsweredWrite>,
    /// The number of the next write; the writes here have the numbers before it.
    end: u64,
    bytes: usize,
}

impl AnsweredWrites {
    /// The number of the oldest write here.
    pub(super) fn start(&self) -> u64 {
        self.end - self.writes.len() as u64
    }
    /// See [`AnsweredWrites::end`] of the structure: one more than the number of the newest write.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
    pub(super) fn get(&self, number: u64) -> Option<&AnsweredWrite> {
        self.writes.get(usize::try_from(number.checked_sub(self.start())?).ok()?)
    }
    /// Should an early flush begin, so that there will be room?
    pub(super) fn wants_flush(&self) -> bool {
        self.bytes >= REMOTE_KEPT_BYTES_MAX / 2
    }
    /// Must further writes wait for a flush?
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= REMOTE_KEPT_BYTES_MAX
    }

    pub(super) fn overlaps(&self, offset: u64, length: u64) -> bool {
        self.writes.iter().any(|write| write.overlaps(offset, length))
    }

    pub(super) fn push(&mut self, offset: u64, data: AnsweredData) {
        self.bytes += data.memory();
        self.end += 1;
        self.writes.push_back(AnsweredWrite { offset, data });
    }

    /// Writes below this number are durable.
    pub(super) fn let_go(&mut self, below: u64) {
        while self.start() < below {
            let Some(write) = self.writes.pop_front() else { break };
            self.bytes -= write.data.memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_keep_their_numbers_and_leave_in_order() {
        let mut kept = AnsweredWrites::default();
        for nth in 0..3_u8 {
            kept.push(u64::from(nth) * 512, AnsweredData::Bytes(vec![nth; 512]));
        }
        kept.push(8192, AnsweredData::Zeroes { length: 4096, no_hole: true });
        assert_eq!((kept.start(), kept.end()), (0, 4));
        assert!(kept.overlaps(1023, 1) && kept.overlaps(8191, 2) && !kept.overlaps(1536, 512));
        kept.let_go(2);
        assert_eq!((kept.start(), kept.get(1)), (2, None));
        assert_eq!(kept.get(2).map(|write| write.offset), Some(1024));
        assert!(!kept.overlaps(0, 1024));
        kept.let_go(9);
        assert_eq!((kept.start(), kept.end(), kept.bytes), (4, 4, 0));
    }

    #[test]
    fn half_of_the_room_asks_for_a_flush_and_all_of_it_holds_writes_back() {
        let mut kept = AnsweredWrites::default();
        kept.push(0, AnsweredData::Zeroes { length: 1 << 40, no_hole: false });
        assert!(!kept.wants_flush(), "zeroes need no room");
        kept.push(0, AnsweredData::Bytes(vec![0; REMOTE_KEPT_BYTES_MAX / 2]));
        assert!(kept.wants_flush() && !kept.is_full());
        kept.push(0, AnsweredData::Bytes(vec![0; REMOTE_KEPT_BYTES_MAX / 2]));
        assert!(kept.is_full());
        kept.let_go(2);
        assert!(kept.wants_flush() && !kept.is_full());
    }
}
