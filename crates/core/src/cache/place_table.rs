//! A hash table of fixed size: the line, or the dirty unit, of a place of a set.
//!
//! A look-up usually needs one line of the processor's caches: an entry is at the slot of its hash or shortly after it.
//! Entries carry the hash, so the line itself is loaded only if it is the right one. At most every fourth entry is
//! used. When an entry is removed, later entries move closer to their own slots, so that no gaps must be skipped. The
//! order has no meaning.

use alloc::vec::Vec;
use openraid_units::SetId;

use crate::slab::NONE;

/// A place that is in the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    index: u32,
}

const EMPTY: Entry = Entry { hash: 0, index: NONE };

/// Number of bits of a hash: no table has more entries than these can distinguish.
const HASH_BITS: u32 = u32::BITS;

/// The table; see the module.
#[derive(Debug)]
pub(crate) struct Places {
    /// A power of two, and at least four times the maximum number of places. In a fuller table more entries are
    /// visited, and no processor can predict how many.
    entries: Vec<Entry>,
    /// Number of bits by which a hash is shifted, because it is too long.
    shift: u32,
}

impl Places {
    /// Number of table entries for `count` places.
    const fn entries_for(count: u64) -> u64 {
        if count == 0 {
            0
        } else {
            4 * count.next_power_of_two()
        }
    }

    /// Size in bytes of a table for `count` places.
    pub(crate) const fn table_bytes(count: u64) -> u64 {
        Self::entries_for(count) * size_of::<Entry>() as u64
    }

    /// A table with room for `count` places.
    pub(crate) fn new(count: u32) -> Self {
        let entries = usize::try_from(Self::entries_for(u64::from(count))).expect("limits bound the cache");
        let bits = if count == 0 { 0 } else { entries.trailing_zeros() };
        assert!(bits <= HASH_BITS, "limits bound the cache");
        Self { entries: alloc::vec![EMPTY; entries], shift: HASH_BITS - bits }
    }

    /// Fibonacci hashing: neighbours land far apart.
    #[allow(clippy::cast_possible_truncation)] // the upper half
    pub(crate) fn hash_of(set: SetId, number: u64) -> u32 {
        let key = number ^ (u64::from(set.0) << 48);
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> HASH_BITS) as u32
    }

    /// The slot of a hash. There are entries.
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    /// The index for a place, among the candidates for which `is_it` is true.
    #[inline]
    pub(crate) fn find(&self, set: SetId, number: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let (hash, mask) = (Self::hash_of(set, number), self.entries.len() - 1);
        let mut at = self.home(hash);
        loop {
            let entry = self.entries[at & mask];
            if entry.index == NONE {
                return None;
            }
            if entry.hash == hash && is_it(entry.index) {
                return Some(entry.index);
            }
            at += 1;
        }
    }

    /// Touch the entry of this hash, or one shortly after it.
    #[inline]
    pub(crate) fn seen(&self, hash: u32) -> u32 {
        self.entries.get(self.home(hash)).map_or(0, |entry| entry.index)
    }

    /// Add `index` for a place of this hash, which has no entry.
    pub(crate) fn insert(&mut self, hash: u32, index: u32) {
        let mask = self.entries.len() - 1;
        let mut at = self.home(hash);
        while self.entries[at & mask].index != NONE {
            at += 1;
        }
        self.entries[at & mask] = Entry { hash, index };
    }

    /// Remove the entry of `index`, which has this hash.
    pub(crate) fn remove(&mut self, hash: u32, index: u32) {
        let mask = self.entries.len() - 1;
        let mut gap = self.home(hash);
        while self.entries[gap & mask].index != index {
            assert!(self.entries[gap & mask].index != NONE, "it stands for that place");
            gap += 1;
        }
        let mut at = gap + 1;
        loop {
            let entry = self.entries[at & mask];
            if entry.index == NONE {
                break;
            }
            // Distance of the entry from its own slot, and from the gap.
            let away = at.wrapping_sub(self.home(entry.hash)) & mask;
            if away >= at - gap {
                self.entries[gap & mask] = entry;
                gap = at;
            }
            at += 1;
        }
        self.entries[gap & mask] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a plain list, with a table that is as full as allowed, and few numbers so that many repeat.
    #[test]
    fn an_inserted_entry_is_found_until_it_is_removed() {
        const COUNT: u32 = 16;
        let mut places = Places::new(COUNT);
        let mut plain: [Option<(SetId, u64)>; COUNT as usize] = [None; COUNT as usize];
        let mut state = 1_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            let (set, number) = (SetId(u16::try_from(next(2)).unwrap()), next(40));
            let expected = (0..).zip(&plain).find(|(_, place)| **place == Some((set, number))).map(|(index, _)| index);
            assert_eq!(places.find(set, number, |index| plain[index as usize] == Some((set, number))), expected);
            match expected {
                Some(index) => {
                    places.remove(Places::hash_of(set, number), index);
                    plain[index as usize] = None;
                }
                None => {
                    let Some(free) = plain.iter().position(Option::is_none) else { continue };
                    places.insert(Places::hash_of(set, number), u32::try_from(free).unwrap());
                    plain[free] = Some((set, number));
                }
            }
        }
        assert!(Places::new(0).find(SetId(0), 1, |_| true).is_none());
    }
}
