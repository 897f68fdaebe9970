//! A short list on the stack, so that no kernel call allocates or clears a table it will not use.

use core::mem::MaybeUninit;

/// Most entries of a list: 255 data blocks, and a parity block as one more source.
pub(crate) const CAPACITY: usize = crate::gf::ORDER + 1;

/// At most [`CAPACITY`] values; only those pushed are ever written.
pub(crate) struct List<T: Copy> {
    values: [MaybeUninit<T>; CAPACITY],
    length: usize,
}

impl<T: Copy> List<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { values: [const { MaybeUninit::uninit() }; CAPACITY], length: 0 }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        self.values[self.length].write(value);
        self.length += 1;
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: the first `length` entries have been written, and MaybeUninit<T> has the layout of T.
        unsafe { core::slice::from_raw_parts(self.values.as_ptr().cast(), self.length) }
    }

    #[inline(always)]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.values.as_mut_ptr().cast(), self.length) }
    }
}
