//! Exclusion: ranges of stripes or regions that operations lock.
//!
//! A unit is a stripe of a parity set, or a region of [`crate::limits::REGION_SECTORS`] of any other set. Its first sector
//! in the set is its name, because a stripe has another number on each side of a shape. A range is in sectors of one
//! member within the unit. An operation holds at most one range, so no two operations can wait for each
//! other. Conflicting ranges are granted in the order of their requests. Two shared ranges never conflict.
//!
//! All bookkeeping is in two tables that are as long as the table of operations.

use alloc::vec::Vec;
use openraid_units::{SetId, SetLba};

use crate::slab::NONE;

/// Maximum number of hash buckets. Few operations are in work at once, and a small table stays in the processor's
/// caches.
const BUCKETS_MAX: usize = 1024;

/// How a range is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Others may read at the same time.
    Shared,
    /// One holder.
    Exclusive,
}

/// A range of an exclusion unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRange {
    /// The set of the lock.
    pub set: SetId,
    /// First sector of the unit in the set.
    pub unit: SetLba,
    /// First sector within the unit.
    pub lo: u32,
    /// The sector after the range.
    pub hi: u32,
    /// The mode of the lock.
    pub mode: LockMode,
}

impl LockRange {
    /// Must one of the two wait for the other?
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        self.unit == other.unit
            && self.set == other.set
            && self.lo < other.hi
            && other.lo < self.hi
            && !(self.mode == LockMode::Shared && other.mode == LockMode::Shared)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    range: LockRange,
    /// Earlier ranges that conflict with this one.
    blockers: u32,
    previous: u32,
    next: u32,
}

/// Ranges whose units have the same hash, in the order of their requests.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    head: u32,
    tail: u32,
}

/// All ranges that are held or waited for.
#[derive(Debug)]
pub struct Locks {
    entries: Vec<Option<Entry>>,
    buckets: Vec<Bucket>,
    held: u32,
}

impl Locks {
    /// A table for operations with numbers below `ops`.
    #[must_use]
    pub fn new(ops: u32) -> Self {
        let bucket = Bucket { head: NONE, tail: NONE };
        let buckets = alloc::vec![bucket; (ops as usize).next_power_of_two().min(BUCKETS_MAX)];
        Self { entries: alloc::vec![None; ops as usize], buckets, held: 0 }
    }

    /// Is no range held or waited for?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    #[allow(clippy::cast_possible_truncation)] // masked to the table
    fn bucket(&self, range: &LockRange) -> usize {
        let mixed = (range.unit.get() ^ (u64::from(range.set.0) << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.buckets.len() - 1)
    }

    /// The operations that hold, or wait for, a conflicting range, in order.
    pub fn conflicting(&self, range: LockRange) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.buckets[self.bucket(&range)].head;
        core::iter::from_fn(move || {
            while at != NONE {
                let entry = self.entry(at);
                let here = core::mem::replace(&mut at, entry.next);
                if entry.range.conflicts(&range) {
                    return Some(here);
                }
            }
            None
        })
    }

    /// Request a range for operation `op`; true if it is granted at once. Otherwise a later [`Locks::release`] grants
    /// it.
    #[inline(always)]
    pub fn acquire(&mut self, op: u32, range: LockRange) -> bool {
        assert!(range.lo < range.hi, "a range has sectors");
        assert!(self.entries[op as usize].is_none(), "an operation holds one range");
        let bucket = self.bucket(&range);
        let mut blockers = 0;
        let Bucket { head, tail } = self.buckets[bucket];
        let mut at = head;
        while at != NONE {
            let entry = self.entry(at);
            blockers += u32::from(entry.range.conflicts(&range));
            at = entry.next;
        }
        self.entries[op as usize] = Some(Entry { range, blockers, previous: tail, next: NONE });
        if tail == NONE {
            self.buckets[bucket].head = op;
        } else {
            self.entry_mut(tail).next = op;
        }
        self.buckets[bucket].tail = op;
        self.held += 1;
        blockers == 0
    }

    /// Does `op` hold its range, and no longer wait for it?
    pub(crate) fn is_granted(&self, op: u32) -> bool {
        self.entries[op as usize].as_ref().is_some_and(|entry| entry.blockers == 0)
    }

    /// Release the range of `op`; `granted` is called with each operation whose range is granted by that.
    pub fn release(&mut self, op: u32, mut granted: impl FnMut(u32)) {
        let entry = self.entries[op as usize].take().expect("the operation holds a range");
        assert_eq!(entry.blockers, 0, "a range is released after it was held");
        let bucket = self.bucket(&entry.range);
        if entry.previous == NONE {
            self.buckets[bucket].head = entry.next;
        } else {
            self.entry_mut(entry.previous).next = entry.next;
        }
        if entry.next == NONE {
            self.buckets[bucket].tail = entry.previous;
        } else {
            self.entry_mut(entry.next).previous = entry.previous;
        }
        self.held -= 1;
        let mut at = entry.next;
        while at != NONE {
            let later = self.entry_mut(at);
            let next = later.next;
            if later.range.conflicts(&entry.range) {
                later.blockers -= 1;
                if later.blockers == 0 {
                    granted(at);
                }
            }
            at = next;
        }
    }

    fn entry(&self, op: u32) -> &Entry {
        self.entries[op as usize].as_ref().expect("linked entries are in use")
    }
    fn entry_mut(&mut self, op: u32) -> &mut Entry {
        self.entries[op as usize].as_mut().expect("linked entries are in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn range(unit: u64, lo: u32, hi: u32, mode: LockMode) -> LockRange {
        LockRange { set: SetId(0), unit: SetLba(unit), lo, hi, mode }
    }

    #[test]
    fn conflicting_ranges_are_granted_in_order_and_others_at_once() {
        let mut locks = Locks::new(8);
        assert!(locks.acquire(0, range(5, 0, 8, LockMode::Exclusive)));
        assert!(locks.acquire(1, range(5, 8, 16, LockMode::Exclusive)));
        assert!(!locks.acquire(2, range(5, 4, 12, LockMode::Exclusive)));
        assert!(!locks.acquire(3, range(5, 0, 1, LockMode::Shared)));
        assert!(locks.acquire(4, range(6, 0, 8, LockMode::Exclusive)));
        let mut granted = Vec::new();
        locks.release(0, |op| granted.push(op));
        assert_eq!(granted, [3], "3 conflicts with 0 only; 2 still waits for 1");
        locks.release(1, |op| granted.push(op));
        assert_eq!(granted, [3, 2]);
    }

    #[test]
    fn a_late_reader_does_not_overtake_a_waiting_writer() {
        let mut locks = Locks::new(4);
        assert!(locks.acquire(0, range(1, 0, 8, LockMode::Shared)));
        assert!(!locks.acquire(1, range(1, 0, 8, LockMode::Exclusive)));
        assert!(!locks.acquire(2, range(1, 0, 8, LockMode::Shared)));
        let mut granted = Vec::new();
        locks.release(0, |op| granted.push(op));
        assert_eq!(granted, [1]);
        locks.release(1, |op| granted.push(op));
        assert_eq!(granted, [1, 2]);
    }
}
