//! Eight bytes in a general register: for CPUs without the vector instructions of the other variants.

use crate::gf;
use crate::lane::{load_part_by_copy, store_part_by_copy, Lane};

/// Eight elements of the field.
#[derive(Clone, Copy)]
pub(crate) struct WordLane(u64);

const BYTES_OF_ONE: u64 = 0x0101_0101_0101_0101;

impl Lane for WordLane {
    const BYTES: usize = 8;
    type Factor = u8;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self(0)
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: eight bytes can be read (caller); the read needs no alignment.
        Self(unsafe { from.cast::<u64>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, length: usize) -> Self {
        // SAFETY: the same contract.
        unsafe { load_part_by_copy(from, length) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: eight bytes can be written (caller); the write needs no alignment.
        unsafe { to.cast::<u64>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, length: usize) {
        // SAFETY: the same contract.
        unsafe { store_part_by_copy(self, to, length) }
    }
    #[inline(always)]
    unsafe fn factor(constant: u8) -> u8 {
        constant
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.0 == 0
    }
    #[inline(always)]
    fn double(self) -> Self {
        let carries = self.0 >> 7 & BYTES_OF_ONE;
        let shifted = self.0 << 1 & !BYTES_OF_ONE;
        Self(shifted ^ carries.wrapping_mul(u64::from(gf::POLYNOMIAL)))
    }
    #[inline(always)]
    fn multiply(self, factor: u8) -> Self {
        let (mut power, mut product) = (self, 0);
        for bit in 0..8 {
            product ^= power.0 & u64::from(factor >> bit & 1).wrapping_neg();
            power = power.double();
        }
        Self(product)
    }
}

crate::loops::variant!(WordLane, "word", crate::crc32c::by_table, []);
