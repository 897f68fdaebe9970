//! A table whose keys name one use of an entry: a late message for an earlier use of the entry finds nothing.

use openraid_units::Token;

/// The key of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlabKey {
    index: u32,
    generation: u32,
}

impl SlabKey {
    /// As a number that comes back from an engine, a kernel or a client.
    #[must_use]
    pub const fn token(self) -> Token {
        Token((self.generation as u64) << 32 | self.index as u64)
    }
    /// From such a number, which may have any value.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the halves of the number
    pub const fn from_token(token: Token) -> Self {
        Self { index: token.0 as u32, generation: (token.0 >> 32) as u32 }
    }
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// The table. It grows to the largest number of entries that it ever had.
#[derive(Debug)]
pub struct GrowingSlab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

/// Generations take 24 bits, so that a key with 8 bits more in front still fits 64.
const GENERATIONS: u32 = 1 << 24;

impl<T> Default for GrowingSlab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> GrowingSlab<T> {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of the next entry.
    ///
    /// # Panics
    /// There are 2^32 entries.
    #[must_use]
    pub fn next_key(&self) -> SlabKey {
        match self.free.last() {
            Some(&index) => SlabKey { index, generation: self.entries[index as usize].generation },
            None => {
                let index = u32::try_from(self.entries.len()).expect("limits keep tables far below 2^32 entries");
                SlabKey { index, generation: 0 }
            }
        }
    }

    /// Insert a value.
    ///
    /// # Panics
    /// There are 2^32 entries.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> SlabKey {
        let Some(index) = self.free.pop() else { return self.grow(value) };
        let entry = &mut self.entries[index as usize];
        entry.value = Some(value);
        SlabKey { index, generation: entry.generation }
    }

    #[cold]
    fn grow(&mut self, value: T) -> SlabKey {
        let key = self.next_key();
        self.entries.push(Entry { generation: 0, value: Some(value) });
        key
    }

    /// The value of a key, if it is still in the table.
    #[must_use]
    #[inline]
    pub fn get(&self, key: SlabKey) -> Option<&T> {
        let entry = self.entries.get(key.index as usize)?;
        if entry.generation == key.generation {
            entry.value.as_ref()
        } else {
            None
        }
    }
    /// The same, for changes.
    #[inline]
    pub fn get_mut(&mut self, key: SlabKey) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation == key.generation {
            entry.value.as_mut()
        } else {
            None
        }
    }

    /// Remove the value of a key, if it is still in the table.
    #[inline]
    pub fn remove(&mut self, key: SlabKey) -> Option<T> {
        let entry = self.entries.get_mut(key.index as usize)?;
        if entry.generation != key.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = (entry.generation + 1) % GENERATIONS;
        self.free.push(key.index);
        Some(value)
    }

    /// All entries, in the order of their indices.
    pub fn iter(&self) -> impl Iterator<Item = (SlabKey, &T)> {
        self.entries.iter().zip(0..).filter_map(|(entry, index)| {
            let key = SlabKey { index, generation: entry.generation };
            entry.value.as_ref().map(|value| (key, value))
        })
    }

    /// The keys of all entries.
    #[must_use]
    pub fn keys(&self) -> Vec<SlabKey> {
        self.iter().map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_an_earlier_use_finds_nothing() {
        let mut slab = GrowingSlab::default();
        let old = slab.insert('a');
        assert_eq!(slab.remove(old), Some('a'));
        let next = slab.next_key();
        let new = slab.insert('b');
        assert_eq!(new, next);
        assert_eq!(slab.remove(old), None);
        assert_eq!((slab.get(old), slab.get(new)), (None, Some(&'b')));
        assert_eq!(SlabKey::from_token(new.token()), new);
        assert_eq!((slab.len(), slab.keys()), (1, vec![new]));
    }
}
