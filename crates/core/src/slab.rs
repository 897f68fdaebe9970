//! A table of fixed size with a free list and generations, and queues linked through table entries.
//!
//! All memory is taken by [`Slab::new`]. An entry is named by a [`Key`]. Its generation distinguishes it from earlier
//! uses of the entry.

use alloc::vec::Vec;

/// No entry.
pub const NONE: u32 = u32::MAX;

/// The name of an entry: index and generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Place in the table.
    pub index: u32,
    /// Number of the use of that place; below 2^24, as in [`openraid_units::Tag`].
    pub generation: u32,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    /// Next free entry, while this one is free.
    next_free: u32,
    value: Option<T>,
}

/// A table of at most `capacity` values.
#[derive(Debug)]
pub struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: u32,
    len: u32,
}

impl<T> Slab<T> {
    /// An empty table with room for `capacity` values.
    pub fn new(capacity: u32) -> Self {
        assert!(capacity < NONE);
        let entries = (0..capacity)
            .map(|i| Entry { generation: 0, next_free: if i + 1 < capacity { i + 1 } else { NONE }, value: None })
            .collect();
        Self { entries, free: if capacity == 0 { NONE } else { 0 }, len: 0 }
    }

    /// Number of values in the table.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Number of free places.
    #[allow(clippy::cast_possible_truncation)] // the capacity is a u32
    pub fn room(&self) -> u32 {
        self.entries.len() as u32 - self.len
    }

    /// Insert a value; returns it if the table is full.
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        let index = self.free;
        if index == NONE {
            return Err(value);
        }
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.value.is_none());
        self.free = entry.next_free;
        entry.value = Some(value);
        self.len += 1;
        Ok(Key { index, generation: entry.generation })
    }

    /// Insert a value for which there is room. Panics if the table is full.
    ///
    /// Inlined, so that a value which is constructed in the call is constructed in place: a large one would be copied
    /// before the processor has finished writing it, and would have to wait for that.
    #[inline(always)]
    pub fn put(&mut self, value: T) -> Key {
        let index = self.free;
        assert!(index != NONE, "room is asked for before anything is put in");
        let entry = &mut self.entries[index as usize];
        debug_assert!(entry.value.is_none());
        self.free = entry.next_free;
        entry.value = Some(value);
        self.len += 1;
        Key { index, generation: entry.generation }
    }

    /// Remove a value. Panics if there is none.
    #[inline]
    pub fn remove(&mut self, index: u32) -> T {
        let entry = &mut self.entries[index as usize];
        let value = entry.value.take().expect("the entry is in use");
        entry.generation = entry.generation.wrapping_add(1) % openraid_units::Tag::GENERATIONS;
        entry.next_free = self.free;
        self.free = index;
        self.len -= 1;
        value
    }

    /// Free the place of a value, without moving the value. Panics if there is none.
    #[inline]
    pub fn free(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        assert!(entry.value.is_some(), "the entry is in use");
        entry.value = None;
        entry.generation = entry.generation.wrapping_add(1) % openraid_units::Tag::GENERATIONS;
        entry.next_free = self.free;
        self.free = index;
        self.len -= 1;
    }

    /// The value at this place, if there is one.
    pub fn find(&self, index: u32) -> Option<&T> {
        self.entries.get(index as usize)?.value.as_ref()
    }

    /// Is this the key of a value that is in the table now?
    pub fn holds(&self, key: Key) -> bool {
        self.entries
            .get(key.index as usize)
            .is_some_and(|entry| entry.value.is_some() && entry.generation == key.generation)
    }

    /// The generation of the present use of `index`.
    pub fn generation(&self, index: u32) -> u32 {
        self.entries[index as usize].generation
    }

    /// Values with their indices, in order of index. The free places after the last value are not visited: places are
    /// taken again soon, so a table that was never full is short.
    #[allow(clippy::cast_possible_truncation)] // the capacity is a u32
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let values = self.entries.iter().enumerate().filter_map(|(i, e)| e.value.as_ref().map(|v| (i as u32, v)));
        values.take(self.len as usize)
    }
}

impl<T> core::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        self.entries[index as usize].value.as_ref().expect("the entry is in use")
    }
}

impl<T> core::ops::IndexMut<u32> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.entries[index as usize].value.as_mut().expect("the entry is in use")
    }
}

/// First-in first-out queue of table indices with a fixed capacity: a ring.
#[derive(Debug)]
pub struct Queue {
    ring: Vec<u32>,
    head: usize,
    len: usize,
}

impl Queue {
    /// An empty queue with room for `capacity` indices.
    pub fn new(capacity: u32) -> Self {
        Self { ring: alloc::vec![NONE; capacity as usize], head: 0, len: 0 }
    }
    /// Is nothing queued?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of queued indices.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Append. Panics if the queue is full: its capacity is that of the table it indexes.
    pub fn push(&mut self, index: u32) {
        assert!(self.len < self.ring.len(), "a queue of indices holds each index once");
        let mut at = self.head + self.len;
        if at >= self.ring.len() {
            at -= self.ring.len();
        }
        self.ring[at] = index;
        self.len += 1;
    }
    /// Put an index in front of all others. Panics if the queue is full.
    pub fn push_front(&mut self, index: u32) {
        assert!(self.len < self.ring.len(), "a queue of indices holds each index once");
        self.head = if self.head == 0 { self.ring.len() - 1 } else { self.head - 1 };
        self.ring[self.head] = index;
        self.len += 1;
    }
    /// The first index, left in place.
    pub fn front(&self) -> Option<u32> {
        (self.len > 0).then(|| self.ring[self.head])
    }
    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|n| self.ring[(self.head + n) % self.ring.len()])
    }
    /// Remove an index, wherever it is.
    pub fn remove(&mut self, index: u32) {
        for _ in 0..self.len {
            let first = self.pop().expect("counted");
            if first != index {
                self.push(first);
            }
        }
    }
    /// Remove the first index.
    pub fn pop(&mut self) -> Option<u32> {
        let first = self.front()?;
        self.head += 1;
        self.len -= 1;
        // An empty queue starts at its beginning again: otherwise it would move through its ring and displace other
        // memory in the processor's caches.
        if (self.len == 0) | (self.head == self.ring.len()) {
            self.head = 0;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_an_earlier_use_is_recognised() {
        let mut slab = Slab::new(2);
        let a = slab.insert('a').unwrap();
        let b = slab.insert('b').unwrap();
        assert_eq!(slab.insert('c'), Err('c'));
        assert_eq!(slab.remove(a.index), 'a');
        let c = slab.insert('c').unwrap();
        assert_eq!(c.index, a.index);
        assert!(!slab.holds(a) && slab.holds(b) && slab.holds(c));
        assert_eq!((slab.len(), slab.room()), (2, 0));
    }

    #[test]
    fn a_queue_keeps_order_round_its_ring() {
        let mut queue = Queue::new(3);
        for round in 0..10 {
            queue.push(round);
            queue.push(round + 100);
            assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(round), Some(round + 100), None));
        }
    }
}
