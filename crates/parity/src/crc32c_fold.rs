//! CRC-32C by carry-less multiplication, 256 bytes a step: four registers of 64 bytes, each of four lanes.
//!
//! The message is a polynomial over GF(2), highest power first. A lane of 16 bytes that stands `n` bits before
//! another one counts x^n times as much, and x^n may be replaced by its remainder modulo the polynomial. So a lane is
//! folded into the one `n` bits further on by two products with constants: V. Gopal et al., "Fast CRC Computation for
//! Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009. The last lane goes through the CRC instruction.
//!
//! Bit 0 of a word is its highest power. A product of two such words of 64 bits comes out one bit too low, and a
//! constant of 32 bits in the lower half of a word counts x^32 times: hence the 33 in [`Fold::over`].

use crate::crc32c::{by_instruction, low, times_power};
use core::arch::x86_64::{
    __m128i, __m512i, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_loadu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512, _mm_clmulepi64_si128, _mm_crc32_u64,
    _mm_cvtsi32_si128, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
};

/// Bytes of one register.
const REGISTER: usize = 64;
/// Registers that are folded side by side: the multiplication gives its result after four cycles.
const REGISTERS: usize = 4;
/// Bytes of one step.
const STEP: usize = REGISTERS * REGISTER;
const BITS: u64 = 8;
/// Truth table of the three-operand XOR.
const XOR3: i32 = 0x96;

/// What moves a lane of 128 bits over a distance: factors of its first and of its second word.
struct Fold {
    first: u32,
    second: u32,
}

impl Fold {
    const fn over(bits: u64) -> Self {
        Self { first: times_power(bits + 64 - 33), second: times_power(bits - 33) }
    }
}

const OVER_STEP: Fold = Fold::over(BITS * STEP as u64);
const OVER_REGISTER: Fold = Fold::over(BITS * REGISTER as u64);
const OVER_LANE: Fold = Fold::over(BITS * 16);

/// As [`by_instruction`], many bytes a step.
///
/// # Safety
/// The CPU has SSE4.2, AVX-512 F and VPCLMULQDQ.
#[target_feature(enable = "sse4.2,pclmulqdq,avx512f,vpclmulqdq")]
pub(crate) unsafe fn by_folding(register: u32, bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let Some((first, steps)) = steps.split_first() else {
        // SAFETY: the CPU has SSE4.2.
        return unsafe { by_instruction(register, bytes) };
    };
    let mut sums = load(first);
    // What went before is added to the first four bytes.
    sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(register.cast_signed())));
    let over = _mm512_broadcast_i32x4(constants(&OVER_STEP));
    for step in steps {
        let next = load(step);
        for (sum, next) in sums.iter_mut().zip(next) {
            *sum = fold(*sum, over, next);
        }
    }
    let over = _mm512_broadcast_i32x4(constants(&OVER_REGISTER));
    let [one, two, three, four] = sums;
    let sum = fold(fold(fold(one, over, two), over, three), over, four);
    let over = constants(&OVER_LANE);
    let mut lane = _mm512_extracti32x4_epi32::<0>(sum);
    lane = fold_lane(lane, over, _mm512_extracti32x4_epi32::<1>(sum));
    lane = fold_lane(lane, over, _mm512_extracti32x4_epi32::<2>(sum));
    lane = fold_lane(lane, over, _mm512_extracti32x4_epi32::<3>(sum));
    let register = _mm_crc32_u64(0, _mm_extract_epi64::<0>(lane).cast_unsigned());
    let register = _mm_crc32_u64(register, _mm_extract_epi64::<1>(lane).cast_unsigned());
    // SAFETY: the CPU has SSE4.2.
    unsafe { by_instruction(low(register), rest) }
}

#[target_feature(enable = "avx512f")]
fn load(step: &[u8; STEP]) -> [__m512i; REGISTERS] {
    // SAFETY: all four registers lie within the step.
    core::array::from_fn(|nth| unsafe { _mm512_loadu_si512(step.as_ptr().add(nth * REGISTER).cast()) })
}

#[target_feature(enable = "sse2")]
fn constants(fold: &Fold) -> __m128i {
    _mm_set_epi64x(i64::from(fold.second), i64::from(fold.first))
}

/// Each lane of `sum` moved on, added to `next`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(sum: __m512i, over: __m512i, next: __m512i) -> __m512i {
    let first = _mm512_clmulepi64_epi128::<0x00>(sum, over);
    let second = _mm512_clmulepi64_epi128::<0x11>(sum, over);
    _mm512_ternarylogic_epi64::<XOR3>(first, second, next)
}

#[target_feature(enable = "pclmulqdq")]
fn fold_lane(sum: __m128i, over: __m128i, next: __m128i) -> __m128i {
    let first = _mm_clmulepi64_si128::<0x00>(sum, over);
    let second = _mm_clmulepi64_si128::<0x11>(sum, over);
    _mm_xor_si128(_mm_xor_si128(first, second), next)
}
