//! Sets of slots as bits: members that are missing, to be read, to be written.

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign, Not};
use openraid_units::Slot;

use crate::limits::MEMBERS_MAX;

/// Number of slots in the low half, which holds nearly every set as a whole. The high half is used only if needed.
const HALF: u16 = 64;

/// A set of slots of one redundancy set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct SlotSet {
    low: u64,
    high: u64,
}

/// Number of ones. Most sets have two slots at most: a column of data and its parity.
#[inline]
const fn count(bits: u64) -> u32 {
    let rest = bits & bits.wrapping_sub(1);
    if rest & rest.wrapping_sub(1) == 0 {
        (bits != 0) as u32 + (rest != 0) as u32
    } else {
        count_many(bits)
    }
}

/// Not inlined: it takes a dozen steps, and the compiler would take them before it is known whether they are needed.
#[inline(never)]
const fn count_many(bits: u64) -> u32 {
    bits.count_ones()
}

impl SlotSet {
    /// No slot.
    pub const EMPTY: Self = Self { low: 0, high: 0 };

    /// The slots `0..n`. `n` is at most [`MEMBERS_MAX`].
    #[must_use]
    pub const fn first_n(n: u16) -> Self {
        assert!(n <= MEMBERS_MAX);
        if n < HALF {
            Self { low: (1 << n) - 1, high: 0 }
        } else {
            Self { low: u64::MAX, high: if n == MEMBERS_MAX { u64::MAX } else { (1 << (n - HALF)) - 1 } }
        }
    }
    /// Only this slot.
    #[must_use]
    pub const fn one(slot: Slot) -> Self {
        assert!(slot.0 < MEMBERS_MAX);
        if slot.0 < HALF {
            Self { low: 1 << slot.0, high: 0 }
        } else {
            Self { low: 0, high: 1 << (slot.0 - HALF) }
        }
    }
    /// Is `slot` in the set?
    #[must_use]
    pub const fn contains(self, slot: Slot) -> bool {
        if slot.0 < HALF {
            self.low >> slot.0 & 1 == 1
        } else {
            slot.0 < MEMBERS_MAX && self.high >> (slot.0 - HALF) & 1 == 1
        }
    }
    /// Insert `slot`.
    pub fn insert(&mut self, slot: Slot) {
        *self = self.with(slot);
    }
    /// Remove `slot`.
    pub fn remove(&mut self, slot: Slot) {
        *self = self.without(slot);
    }
    /// The set with `slot`.
    #[must_use]
    pub const fn with(self, slot: Slot) -> Self {
        let one = Self::one(slot);
        Self { low: self.low | one.low, high: self.high | one.high }
    }
    /// The set without `slot`.
    #[must_use]
    pub const fn without(self, slot: Slot) -> Self {
        self.minus(Self::one(slot))
    }
    /// Number of slots.
    #[must_use]
    pub const fn len(self) -> u32 {
        if self.high == 0 {
            count(self.low)
        } else {
            count_many(self.low) + count_many(self.high)
        }
    }
    /// Is the set empty?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.low | self.high == 0
    }
    /// Number of slots of the set below `slot`: its place if the set's slots are laid out in order.
    #[must_use]
    pub const fn rank(self, slot: Slot) -> u32 {
        assert!(slot.0 < MEMBERS_MAX);
        if slot.0 < HALF {
            count(self.low & ((1 << slot.0) - 1))
        } else {
            count_many(self.low) + count_many(self.high & ((1 << (slot.0 - HALF)) - 1))
        }
    }
    /// The slots of `self` that are not in `other`.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { low: self.low & !other.low, high: self.high & !other.high }
    }
    /// Do the sets share a slot?
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        (self.low & other.low) | (self.high & other.high) != 0
    }
    /// The lowest slot.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // at most 127
    pub const fn first(self) -> Option<Slot> {
        if self.low != 0 {
            Some(Slot(self.low.trailing_zeros() as u16))
        } else if self.high != 0 {
            Some(Slot(HALF + self.high.trailing_zeros() as u16))
        } else {
            None
        }
    }
    /// The slots in rising order.
    #[must_use]
    pub const fn iter(self) -> Iter {
        Iter { low: self.low, high: self.high }
    }
}

/// The slots of a set in rising order.
#[derive(Clone, Copy, Debug)]
pub struct Iter {
    low: u64,
    high: u64,
}

impl Iterator for Iter {
    type Item = Slot;
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // at most 127
    fn next(&mut self) -> Option<Slot> {
        if self.low != 0 {
            let slot = self.low.trailing_zeros();
            self.low &= self.low - 1;
            Some(Slot(slot as u16))
        } else if self.high != 0 {
            let slot = 64 + self.high.trailing_zeros();
            self.high &= self.high - 1;
            Some(Slot(slot as u16))
        } else {
            None
        }
    }
}

impl IntoIterator for SlotSet {
    type Item = Slot;
    type IntoIter = Iter;
    fn into_iter(self) -> Iter {
        self.iter()
    }
}
impl FromIterator<Slot> for SlotSet {
    fn from_iter<I: IntoIterator<Item = Slot>>(slots: I) -> Self {
        slots.into_iter().fold(Self::EMPTY, Self::with)
    }
}
impl BitAnd for SlotSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self { low: self.low & other.low, high: self.high & other.high }
    }
}
impl BitOr for SlotSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self { low: self.low | other.low, high: self.high | other.high }
    }
}
impl BitOrAssign for SlotSet {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}
impl Not for SlotSet {
    type Output = Self;
    fn not(self) -> Self {
        Self { low: !self.low, high: !self.high }
    }
}
impl fmt::Display for SlotSet {
    /// As text: `slot 2`, `slots 1 and 3`, `slots 0, 2 and 4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.len() == 1 { "slot " } else { "slots " })?;
        let last = (self.len() as usize).saturating_sub(1);
        for (nth, slot) in self.iter().enumerate() {
            let before = if nth == 0 {
                ""
            } else if nth == last {
                " and "
            } else {
                ", "
            };
            write!(f, "{before}{}", slot.0)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|s| s.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_is_the_place_in_rising_order() {
        let set: SlotSet = [Slot(127), Slot(0), Slot(63), Slot(64)].into_iter().collect();
        let order: alloc::vec::Vec<_> = set.iter().collect();
        assert_eq!(order, [Slot(0), Slot(63), Slot(64), Slot(127)]);
        for (place, slot) in order.iter().enumerate() {
            assert_eq!(set.rank(*slot) as usize, place);
        }
        assert_eq!(SlotSet::first_n(128).len(), 128);
        assert_eq!(SlotSet::first_n(0), SlotSet::EMPTY);
    }

    #[test]
    fn sets_of_few_slots_and_of_many_are_counted_as_their_slots_are() {
        for (first, step) in [(0, 1), (0, 2), (1, 3), (5, 31), (60, 1), (63, 1), (64, 1), (70, 9), (127, 1)] {
            let all: alloc::vec::Vec<_> = (first..MEMBERS_MAX).step_by(step).map(Slot).collect();
            for count in 0..=all.len() {
                let set: SlotSet = all[..count].iter().copied().collect();
                assert_eq!(set.len() as usize, count, "{set:?}");
                let below = |slot: u16| all[..count].iter().filter(|other| other.0 < slot).count();
                assert!((0..MEMBERS_MAX).all(|slot| set.rank(Slot(slot)) as usize == below(slot)), "{set:?}");
            }
        }
    }
}
