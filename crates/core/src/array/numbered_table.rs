//! The tables of sets and of arrays: entries by number, where the number of a removed entry is used again.
//!
//! Tables grow only when an administrator starts an array.

use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::per_set::Id;

/// Entries by number.
#[derive(Debug)]
pub(crate) struct Table<I, T> {
    entries: Vec<Option<T>>,
    names: PhantomData<I>,
}

impl<I: Id, T> Table<I, T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), names: PhantomData }
    }

    /// The entry with this number. Panics if there is none: work that names an entry keeps it.
    #[inline(always)]
    pub(crate) fn get(&self, id: I) -> &T {
        self.entries[id.place()].as_ref().expect("an entry stays while work names it")
    }

    /// As [`Table::get`].
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: I) -> &mut T {
        self.entries[id.place()].as_mut().expect("an entry stays while work names it")
    }

    /// An entry, if there is one with this number.
    #[inline(always)]
    pub(crate) fn find(&self, id: I) -> Option<&T> {
        self.entries.get(id.place())?.as_ref()
    }

    /// As [`Table::find`].
    #[inline(always)]
    pub(crate) fn find_mut(&mut self, id: I) -> Option<&mut T> {
        self.entries.get_mut(id.place())?.as_mut()
    }

    /// All numbers that are or were in use, in order. The iterator does not borrow the table.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = I> {
        (0..).map(I::of).take(self.entries.len())
    }

    /// Number of numbers that are or were in use: at least the number of entries.
    pub(crate) fn numbers_len(&self) -> usize {
        self.entries.len()
    }

    /// All entries with their numbers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        (0..).map(I::of).zip(&self.entries).filter_map(|(id, entry)| Some((id, entry.as_ref()?)))
    }

    /// All entries, in the order of their numbers.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// As [`Table::values`].
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    /// The lowest number without an entry; nothing if all numbers are taken.
    pub(crate) fn free_number(&self) -> Option<I> {
        let place = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        u16::try_from(place).ok().map(I::of)
    }

    /// Put an entry in under a number from [`Table::free_number`].
    pub(crate) fn put(&mut self, id: I, entry: T) {
        if id.place() == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[id.place()] = Some(entry);
    }

    /// Remove an entry. Its number is free again.
    pub(crate) fn remove(&mut self, id: I) {
        self.entries[id.place()] = None;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use openraid_units::SetId;
    use std::vec;

    #[test]
    fn the_number_of_a_removed_entry_is_used_again_and_the_lowest_first() {
        let mut table: Table<SetId, char> = Table::new();
        for entry in ['a', 'b', 'c'] {
            let id = table.free_number().unwrap();
            table.put(id, entry);
        }
        table.remove(SetId(2));
        table.remove(SetId(0));
        assert_eq!(table.find(SetId(0)), None);
        assert_eq!(table.iter().collect::<Vec<_>>(), vec![(SetId(1), &'b')]);
        assert_eq!(table.numbers().count(), 3);
        let id = table.free_number().unwrap();
        table.put(id, 'd');
        assert_eq!((id, table.free_number()), (SetId(0), Some(SetId(2))));
        assert_eq!(table.values().collect::<Vec<_>>(), vec![&'d', &'b']);
        assert_eq!(table.find(SetId(9)), None);
    }
}
