//! 32 bytes in an AVX2 register. Doubling is shift and mask; other products are two byte shuffles.

use crate::gf;
use crate::lane::{load_part_by_copy, store_part_by_copy, Lane};
use core::arch::x86_64::{
    __m128i, __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpgt_epi8,
    _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_testz_si256, _mm256_xor_si256, _mm_load_si128,
};

/// 32 elements of the field.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

// SAFETY of all blocks below: a value of this type, or the caller of the function that makes one, vouches for
// AVX2; pointers are the callers' (see `Lane`).
impl Lane for Avx2 {
    const BYTES: usize = 32;
    /// Products with the low and with the high nibbles.
    type Factor = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_setzero_si256() })
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, length: usize) -> Self {
        // SAFETY: the same contract.
        unsafe { load_part_by_copy(from, length) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, length: usize) {
        // SAFETY: the same contract.
        unsafe { store_part_by_copy(self, to, length) }
    }
    #[inline(always)]
    unsafe fn factor(constant: u8) -> [__m256i; 2] {
        let nibbles: *const __m128i = gf::NIBBLES.0[usize::from(constant)].as_ptr().cast();
        // SAFETY: an entry has 32 bytes and is aligned to 32.
        unsafe {
            [
                _mm256_broadcastsi128_si256(_mm_load_si128(nibbles)),
                _mm256_broadcastsi128_si256(_mm_load_si128(nibbles.add(1))),
            ]
        }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_or_si256(self.0, other.0) })
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: see above.
        unsafe { _mm256_testz_si256(self.0, self.0) == 1 }
    }
    #[inline(always)]
    fn double(self) -> Self {
        // SAFETY: see above. A byte with its top bit set is negative, so the comparison makes its mask.
        unsafe {
            let carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), self.0);
            let reduction = _mm256_and_si256(carries, _mm256_set1_epi8(gf::POLYNOMIAL.cast_signed()));
            Self(_mm256_xor_si256(_mm256_add_epi8(self.0, self.0), reduction))
        }
    }
    #[inline(always)]
    fn multiply(self, [low, high]: [__m256i; 2]) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm256_set1_epi8(15);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, mask));
            let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), mask));
            Self(_mm256_xor_si256(of_low, of_high))
        }
    }
}

crate::loops::variant!(Avx2, "avx2", crate::crc32c::by_instruction, ["avx2"]);
