//! A short list on the stack, so that no call allocates or clears a table that it will not use.

use core::mem::MaybeUninit;

/// Most entries of a list: 255 data blocks, and a parity block as one more source.
pub(crate) const CAPACITY: usize = crate::gf::ORDER + 1;

/// At most 256 values: 255 data blocks, and one more source. Only pushed values are ever written.
///
/// Fill it in place: as a result of a function all 4 KiB of it would be copied.
pub struct BlockList<T: Copy> {
    values: [MaybeUninit<T>; CAPACITY],
    length: usize,
}

impl<T: Copy> BlockList<T> {
    /// An empty list.
    #[inline(always)]
    #[must_use]
    pub fn new() -> Self {
        Self { values: [const { MaybeUninit::uninit() }; CAPACITY], length: 0 }
    }

    /// Append a value. Panics if the list is full.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        self.values[self.length].write(value);
        self.length += 1;
    }

    /// All values.
    #[inline(always)]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: the first `length` entries have been written, and MaybeUninit<T> has the layout of T.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr().cast(), self.length) }
    }

    /// All values, to be changed.
    #[inline(always)]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), self.length) }
    }
}

impl<T: Copy> Default for BlockList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Extend<T> for BlockList<T> {
    #[inline(always)]
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}
