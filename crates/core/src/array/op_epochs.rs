//! Epochs of a set: has everything ended that began before a moment?
//!
//! ```text
//!   epoch 0: ops in work | turn | epoch 1: new ops ... | epoch 0 is empty: all that began before the turn has ended
//! ```
//!
//! An operation belongs to the epoch in which its place was looked up, and keeps the geometry of that moment. A change of
//! shape turns the epoch, and waits until the one before is empty, before it writes over places or reads what others write.

/// The epoch to which an operation belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Epoch {
    /// One of two that take turns.
    Even,
    /// The other of the two.
    Odd,
}

impl Epoch {
    const fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }
}

/// The operations of a set in work, by epoch.
#[derive(Debug)]
pub(crate) struct Epochs {
    counts: [u32; 2],
    now: Epoch,
    /// Does something wait until the epoch before is empty?
    is_awaited: bool,
}

impl Epochs {
    pub(crate) const fn new() -> Self {
        Self { counts: [0; 2], now: Epoch::Even, is_awaited: false }
    }

    /// The epoch that runs.
    #[inline(always)]
    pub(crate) const fn now(&self) -> Epoch {
        self.now
    }

    /// An operation begins that belongs to this epoch.
    #[inline(always)]
    pub(crate) fn begin(&mut self, epoch: Epoch) {
        self.counts[epoch as usize] += 1;
    }

    /// An operation has ended; true if that is waited for.
    #[inline(always)]
    pub(crate) fn end(&mut self, epoch: Epoch) -> bool {
        self.counts[epoch as usize] -= 1;
        self.is_awaited && self.counts[epoch as usize] == 0
    }

    /// Number of operations in work.
    #[inline(always)]
    pub(crate) const fn all(&self) -> u32 {
        self.counts[0] + self.counts[1]
    }

    /// A new epoch begins. Panics if the one before it is still waited for.
    pub(crate) fn turn(&mut self) {
        assert!(!self.is_awaited, "one turn at a time");
        self.now = self.now.other();
        self.is_awaited = true;
    }

    /// The epoch whose end is waited for.
    pub(crate) fn awaited(&self) -> Option<Epoch> {
        self.is_awaited.then_some(self.now.other())
    }

    /// Have all operations of the epoch before ended?
    pub(crate) const fn is_old_empty(&self) -> bool {
        self.counts[self.now.other() as usize] == 0
    }

    /// Nothing waits for the epoch before any more.
    pub(crate) fn end_wait(&mut self) {
        self.is_awaited = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_before_a_turn_is_waited_for_and_what_begins_after_it_is_not() {
        let mut epochs = Epochs::new();
        let before = epochs.now();
        (0..2).for_each(|_| epochs.begin(before));
        assert!(!epochs.end(before), "nothing waits");
        epochs.turn();
        let after = epochs.now();
        epochs.begin(after);
        assert_eq!((epochs.awaited(), epochs.is_old_empty(), epochs.all()), (Some(before), false, 2));
        // A walk that began before the turn makes one more operation.
        epochs.begin(before);
        assert!(!epochs.end(before) && epochs.end(before) && epochs.is_old_empty());
        epochs.end_wait();
        assert!(!epochs.end(after) && epochs.all() == 0);
    }
}
