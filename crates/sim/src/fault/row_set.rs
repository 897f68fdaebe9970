//! A set of sectors of a member's data area: rows of a parity set, single sectors of other sets.

use openraid_units::{MemberLba, Sectors};

/// Sectors in a word of bits.
const WORD: u64 = 64;

/// A set of sectors below an end.
#[derive(Clone, Debug, Default)]
pub struct SectorSet {
    words: Vec<u64>,
    end: u64,
}

impl SectorSet {
    /// An empty set of sectors below `end`.
    #[must_use]
    pub fn new(end: Sectors) -> Self {
        let words = usize::try_from(end.get().div_ceil(WORD)).expect("a small member");
        Self { words: vec![0; words], end: end.get() }
    }

    fn place(row: u64) -> (usize, u64) {
        (usize::try_from(row / WORD).expect("a small member"), 1 << (row % WORD))
    }

    /// Add the part of a range below the end.
    pub fn insert(&mut self, at: MemberLba, len: Sectors) {
        for row in at.0..at.0.saturating_add(len.get()).min(self.end) {
            let (word, bit) = Self::place(row);
            self.words[word] |= bit;
        }
    }

    /// Add all sectors of another set with the same end.
    pub fn insert_all(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Remove all sectors.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Whether the set contains a sector.
    #[must_use]
    pub fn contains(&self, at: MemberLba) -> bool {
        let (word, bit) = Self::place(at.0);
        at.0 < self.end && self.words[word] & bit != 0
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The rows of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = MemberLba> + '_ {
        let words = self.words.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(place, word)| {
            let start = place as u64 * WORD;
            (0..WORD).filter(move |bit| word >> bit & 1 == 1).map(move |bit| MemberLba(start + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_rows_are_in_and_rows_after_the_end_are_not() {
        let mut rows = SectorSet::new(Sectors(100));
        assert!(rows.is_empty());
        rows.insert(MemberLba(62), Sectors(3));
        rows.insert(MemberLba(98), Sectors(50));
        rows.insert(MemberLba(u64::MAX), Sectors(5));
        let found: Vec<u64> = rows.iter().map(|row| row.0).collect();
        assert_eq!(found, [62, 63, 64, 98, 99]);
        assert!(rows.contains(MemberLba(64)) && !rows.contains(MemberLba(65)) && !rows.contains(MemberLba(1 << 60)));
        let mut other = SectorSet::new(Sectors(100));
        other.insert_all(&rows);
        rows.clear();
        assert!(rows.is_empty() && other.contains(MemberLba(99)));
    }
}
