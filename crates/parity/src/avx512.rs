//! 64 bytes in an AVX-512 register (F and BW). Doubling is shift and masked XOR; other products are two byte shuffles.
//! The ends of slices use masked loads and stores, which do not fault on the masked bytes.

use crate::gf;
use crate::lane::Lane;
use core::arch::x86_64::{
    __m128i, __m512i, __mmask64, _mm512_add_epi8, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_loadu_si512,
    _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_maskz_mov_epi8, _mm512_movepi8_mask, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_srli_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64, _mm512_test_epi64_mask, _mm512_xor_si512, _mm_load_si128,
};

/// Truth table of the three-operand XOR.
const XOR3: i32 = 0x96;

/// 64 elements of the field.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(pub(crate) __m512i);

/// The first `length` bytes of a register, for a length below 64.
#[inline(always)]
pub(crate) fn first(length: usize) -> __mmask64 {
    debug_assert!(length < 64);
    (1 << length) - 1
}

// SAFETY of all blocks below: a value of this type, or the caller of the function that makes one, vouches for
// AVX-512 F and BW; pointers are the callers' (see `Lane`).
impl Lane for Avx512 {
    const BYTES: usize = 64;
    /// Products with the low and with the high nibbles.
    type Factor = [__m512i; 2];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_setzero_si512() })
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, length: usize) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_maskz_loadu_epi8(first(length), from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, length: usize) {
        // SAFETY: see above.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), first(length), self.0) }
    }
    #[inline(always)]
    unsafe fn factor(constant: u8) -> [__m512i; 2] {
        let nibbles: *const __m128i = gf::NIBBLES.0[usize::from(constant)].as_ptr().cast();
        // SAFETY: an entry has 32 bytes and is aligned to 32.
        unsafe {
            [_mm512_broadcast_i32x4(_mm_load_si128(nibbles)), _mm512_broadcast_i32x4(_mm_load_si128(nibbles.add(1)))]
        }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_ternarylogic_epi64::<XOR3>(self.0, a.0, b.0) })
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: see above.
        unsafe { _mm512_test_epi64_mask(self.0, self.0) == 0 }
    }
    #[inline(always)]
    fn double(self) -> Self {
        // SAFETY: see above.
        self.double_and_add(unsafe { Self::zero() })
    }
    #[inline(always)]
    fn double_and_add(self, other: Self) -> Self {
        // SAFETY: see above. Bytes with their top bit set need the reduction.
        unsafe {
            let polynomial = _mm512_set1_epi8(gf::POLYNOMIAL.cast_signed());
            let reduction = _mm512_maskz_mov_epi8(_mm512_movepi8_mask(self.0), polynomial);
            Self(_mm512_ternarylogic_epi64::<XOR3>(_mm512_add_epi8(self.0, self.0), reduction, other.0))
        }
    }
    #[inline(always)]
    fn multiply(self, [low, high]: [__m512i; 2]) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm512_set1_epi8(15);
            let of_low = _mm512_shuffle_epi8(low, _mm512_and_si512(self.0, mask));
            let of_high = _mm512_shuffle_epi8(high, _mm512_and_si512(_mm512_srli_epi64::<4>(self.0), mask));
            Self(_mm512_xor_si512(of_low, of_high))
        }
    }
}

crate::loops::variant!(Avx512, "avx512", crate::crc32c::by_instruction, ["avx512f" "avx512bw"]);
