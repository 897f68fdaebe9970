//! State that a component keeps for each set. The set itself has only what its floor asks for, so a component above it adds
//! nothing to `Set`.

use alloc::vec::Vec;
use openraid_units::SetId;

/// A value for each set, by the set's number. It grows only when a set is started.
#[derive(Debug)]
pub(crate) struct PerSet<T> {
    values: Vec<T>,
}

impl<T> PerSet<T> {
    pub(crate) const fn new() -> Self {
        Self { values: Vec::new() }
    }

    /// A set with this number is being started: nothing is left of an earlier set with the number. `value` makes one.
    pub(crate) fn begin(&mut self, set: SetId, mut value: impl FnMut() -> T) {
        while self.values.len() <= set.index() {
            self.values.push(value());
        }
        self.values[set.index()] = value();
    }

    /// The value of a set.
    #[inline(always)]
    pub(crate) fn get(&self, set: SetId) -> &T {
        &self.values[set.index()]
    }

    /// As [`PerSet::get`].
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, set: SetId) -> &mut T {
        &mut self.values[set.index()]
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
