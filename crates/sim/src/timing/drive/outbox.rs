//! Completions that are decided but not due yet, in order of time.

use openraid_units::{Instant, Tag};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Completions by the time at which they are due; equal times in the order in which they were decided.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    heap: BinaryHeap<Due>,
    decided: u64,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    order: u64,
    tag: Tag,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    /// The earliest is the greatest, as the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl Outbox {
    /// A command will be done at this time.
    pub fn push(&mut self, at: Instant, tag: Tag) {
        self.decided += 1;
        self.heap.push(Due { at, order: self.decided, tag });
    }
    /// When the first is due.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|due| due.at)
    }
    /// The first one that is due, with its time.
    pub fn pop_due(&mut self, now: Instant) -> Option<(Instant, Tag)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|due| (due.at, due.tag))
    }
    /// Completions that are not due yet, or not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// Is none left?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
