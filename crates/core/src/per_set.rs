//! State that a component keeps for each set, or for each array. The set and the array themselves have only what their floor
//! asks for, so a component above adds nothing to them.

use alloc::vec::Vec;
use core::marker::PhantomData;
use openraid_units::{ArrayId, SetId};

/// A number that names an entry of a table.
pub(crate) trait Id: Copy {
    /// The name of an entry, by its place.
    fn of(place: u16) -> Self;
    /// The place of the entry.
    fn place(self) -> usize;
}

impl Id for SetId {
    fn of(place: u16) -> Self {
        Self(place)
    }
    #[inline(always)]
    fn place(self) -> usize {
        self.index()
    }
}

impl Id for ArrayId {
    fn of(place: u16) -> Self {
        Self(place)
    }
    #[inline(always)]
    fn place(self) -> usize {
        self.index()
    }
}

/// A value for each set, by its number.
pub(crate) type PerSet<T> = Per<SetId, T>;
/// A value for each array, by its number.
pub(crate) type PerArray<T> = Per<ArrayId, T>;

/// See [`PerSet`] and [`PerArray`]. It grows only when a set or an array is started.
#[derive(Debug)]
pub(crate) struct Per<I, T> {
    values: Vec<T>,
    names: PhantomData<I>,
}

impl<I: Id, T> Per<I, T> {
    pub(crate) const fn new() -> Self {
        Self { values: Vec::new(), names: PhantomData }
    }

    /// A set or array with this number is being started: nothing is left of an earlier one with the number. `value` makes a
    /// value.
    pub(crate) fn begin(&mut self, id: I, mut value: impl FnMut() -> T) {
        while self.values.len() <= id.place() {
            self.values.push(value());
        }
        self.values[id.place()] = value();
    }

    /// The value of a set or array.
    #[inline(always)]
    pub(crate) fn get(&self, id: I) -> &T {
        &self.values[id.place()]
    }

    /// As [`Per::get`].
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: I) -> &mut T {
        &mut self.values[id.place()]
    }

    /// All values, in the order of the numbers; sets or arrays that have ended count too.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_is_started_has_nothing_of_an_earlier_one_with_its_number_and_others_keep_what_they_have() {
        let mut counts: PerSet<u32> = PerSet::new();
        counts.begin(SetId(2), || 0);
        counts.begin(SetId(1), || 5);
        for set in [1, 2] {
            *counts.get_mut(SetId(set)) += 1;
        }
        counts.begin(SetId(2), || 0);
        assert_eq!([1, 2].map(|set| *counts.get(SetId(set))), [6, 0]);
    }
}
