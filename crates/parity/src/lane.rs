//! The kernels' interface to a vector register of any width.

/// A vector of bytes that are elements of the field.
///
/// A value can only be made by the `unsafe` functions, whose caller vouches that the CPU has the
/// instructions; all other functions rely on a value being there.
pub(crate) trait Lane: Copy {
    /// Width in bytes.
    const BYTES: usize;
    /// A constant prepared for multiplication.
    type Factor: Copy;

    /// # Safety
    /// The CPU has the instructions of this lane.
    unsafe fn zero() -> Self;
    /// # Safety
    /// As [`Lane::zero`], and `BYTES` bytes at `from` can be read.
    unsafe fn load(from: *const u8) -> Self;
    /// The first `length` bytes from memory, the others zero.
    ///
    /// # Safety
    /// As [`Lane::zero`]; `length` is below `BYTES`, and that many bytes at `from` can be read.
    unsafe fn load_part(from: *const u8, length: usize) -> Self;
    /// # Safety
    /// `BYTES` bytes at `to` can be written.
    unsafe fn store(self, to: *mut u8);
    /// # Safety
    /// `length` is below `BYTES`, and that many bytes at `to` can be written.
    unsafe fn store_part(self, to: *mut u8, length: usize);
    /// # Safety
    /// As [`Lane::zero`].
    unsafe fn factor(constant: u8) -> Self::Factor;

    fn xor(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn is_zero(self) -> bool;
    /// The product with g = 2.
    fn double(self) -> Self;
    fn multiply(self, factor: Self::Factor) -> Self;

    /// `self ^ a ^ b`.
    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self.xor(a).xor(b)
    }
    /// `self * 2 ^ other`: a step of Horner's rule.
    #[inline(always)]
    fn double_and_add(self, other: Self) -> Self {
        self.double().xor(other)
    }
}

/// Load part of a lane by way of a buffer, for lanes without masked loads.
///
/// # Safety
/// As [`Lane::load_part`].
#[inline(always)]
pub(crate) unsafe fn load_part_by_copy<L: Lane>(from: *const u8, length: usize) -> L {
    let mut buffer = [0_u8; 64];
    debug_assert!(length < L::BYTES && L::BYTES <= buffer.len());
    // SAFETY: `length` bytes can be read (caller) and fit the buffer, which has a whole lane to load.
    unsafe {
        core::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), length);
        L::load(buffer.as_ptr())
    }
}

/// Store part of a lane by way of a buffer, for lanes without masked stores.
///
/// # Safety
/// As [`Lane::store_part`].
#[inline(always)]
pub(crate) unsafe fn store_part_by_copy<L: Lane>(lane: L, to: *mut u8, length: usize) {
    let mut buffer = [0_u8; 64];
    debug_assert!(length < L::BYTES && L::BYTES <= buffer.len());
    // SAFETY: the buffer takes a whole lane; `length` bytes at `to` can be written (caller).
    unsafe {
        lane.store(buffer.as_mut_ptr());
        core::ptr::copy_nonoverlapping(buffer.as_ptr(), to, length);
    }
}
