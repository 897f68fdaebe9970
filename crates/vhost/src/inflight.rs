//! The in-flight region: which requests of a queue were taken and not ended, in a file that outlives this process.
//!
//! ```text
//!  each queue, at a multiple of 64 bytes:
//!  features u64 = 0, version u16 = 1, entries u16, last head u16, used index u16
//!  for each head: under way u8, 0 [u8; 5], the head that ended before it u16, counter u64
//! ```
//!
//! Order of a request: `mark`, the available index is moved, the request runs, `before_used`, the used index is moved,
//! `after_used`. A kill between any two of these leaves a region from which [`Inflight::recover`] finds what has to be done again.

use crate::bytes::{le16, le64};
use crate::limits::{QUEUES_MAX, QUEUE_ENTRIES_MAX};
use crate::memory::SharedBytes;
use crate::violation::MessageViolation;

const VERSION: u16 = 1;
const HEAD_BYTES: u64 = 16;
const ENTRY_BYTES: u64 = 16;
const ALIGN: u64 = 64;
/// Places in the head of a queue.
const LAST_HEAD: u64 = 12;
const USED_INDEX: u64 = 14;
/// Places in an entry.
const PREVIOUS: u64 = 6;
const COUNTER: u64 = 8;

/// Number of queues, and of entries of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InflightShape {
    pub queues: u16,
    pub entries: u16,
}

impl InflightShape {
    /// Is such a region possible?
    pub fn check(self) -> Result<Self, MessageViolation> {
        let is_possible = (1..=QUEUES_MAX).contains(&self.queues) && (1..=QUEUE_ENTRIES_MAX).contains(&self.entries);
        match is_possible {
            true => Ok(self),
            false => Err(MessageViolation::InflightShape(self.queues, self.entries)),
        }
    }

    fn stride(self) -> u64 {
        (HEAD_BYTES + ENTRY_BYTES * u64::from(self.entries)).next_multiple_of(ALIGN)
    }

    /// Bytes of the region.
    pub fn bytes(self) -> u64 {
        self.stride() * u64::from(self.queues)
    }
}

/// The region of a session.
#[derive(Debug)]
pub struct Inflight<M> {
    memory: M,
    shape: InflightShape,
}

/// What a former process left.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Heads that have to be done again, in this order.
    pub heads: Vec<u16>,
    /// The first counter that is free.
    pub counter: u64,
}

impl<M: SharedBytes> Inflight<M> {
    /// Write the heads of a new region of zeros.
    pub fn format(memory: M, shape: InflightShape) {
        for queue in 0..shape.queues {
            let start = shape.stride() * u64::from(queue);
            memory.store_u16(start + 8, VERSION);
            memory.store_u16(start + 10, shape.entries);
        }
    }

    /// A region that a front end has kept.
    pub fn open(memory: M, shape: InflightShape) -> Result<Self, MessageViolation> {
        for queue in 0..shape.queues {
            let start = shape.stride() * u64::from(queue);
            let (version, entries) = (memory.load_u16(start + 8), memory.load_u16(start + 10));
            if version != VERSION || entries != shape.entries {
                return Err(MessageViolation::InflightQueue(version, entries));
            }
        }
        Ok(Self { memory, shape })
    }

    fn start(&self, queue: u16) -> u64 {
        self.shape.stride() * u64::from(queue)
    }

    fn entry(&self, queue: u16, head: u16) -> u64 {
        self.start(queue) + HEAD_BYTES + ENTRY_BYTES * u64::from(head)
    }

    /// Can it have all heads of this queue?
    pub fn has(&self, queue: u16, entries: u16) -> bool {
        queue < self.shape.queues && entries <= self.shape.entries
    }

    /// A request is about to be taken.
    pub fn mark(&self, queue: u16, head: u16, counter: u64) {
        let entry = self.entry(queue, head);
        self.memory.write(entry + COUNTER, &counter.to_le_bytes());
        self.memory.store_u16(entry, 1);
    }

    /// The used index is about to be moved over a request.
    pub fn before_used(&self, queue: u16, head: u16) {
        let last = self.start(queue) + LAST_HEAD;
        self.memory.store_u16(self.entry(queue, head) + PREVIOUS, self.memory.load_u16(last));
        self.memory.store_u16(last, head);
    }

    /// The used index was moved.
    pub fn after_used(&self, queue: u16, head: u16, used_index: u16) {
        self.memory.store_u16(self.entry(queue, head), 0);
        self.memory.store_u16(self.start(queue) + USED_INDEX, used_index);
    }

    /// Find what has to be done again. The used index of the ring is the truth.
    pub fn recover(&self, queue: u16, entries: u16, used_index: u16) -> Result<Recovered, MessageViolation> {
        let start = self.start(queue);
        let ended = used_index.wrapping_sub(self.memory.load_u16(start + USED_INDEX));
        if ended <= entries {
            // The last batch has ended, but some of its marks may stand.
            let mut head = self.memory.load_u16(start + LAST_HEAD);
            for _ in 0..ended {
                if head >= entries {
                    return Err(MessageViolation::InflightStale(queue));
                }
                self.memory.store_u16(self.entry(queue, head), 0);
                head = self.memory.load_u16(self.entry(queue, head) + PREVIOUS);
            }
        }
        let mut marked = Vec::new();
        for head in 0..entries {
            let mut entry = [0; 16];
            self.memory.read(self.entry(queue, head), &mut entry);
            if le16(&entry, 0) & 0xff != 0 {
                marked.push((le64(&entry, 8), head));
            }
        }
        if ended > entries && !marked.is_empty() {
            return Err(MessageViolation::InflightStale(queue));
        }
        self.memory.store_u16(start + USED_INDEX, used_index);
        marked.sort_unstable();
        let counter = marked.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        Ok(Recovered { heads: marked.into_iter().map(|(_, head)| head).collect(), counter })
    }
}
