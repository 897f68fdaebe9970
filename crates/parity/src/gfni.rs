//! 64 bytes in an AVX-512 register with GFNI: any product is one instruction, given the constant's matrix. The CPUs
//! that have GFNI in these registers multiply without carry in them too, which the checksum uses.

use crate::avx512::Avx512;
use crate::gf;
use crate::lane::Lane;
use core::arch::x86_64::{__m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_set1_epi64};

/// 64 elements of the field.
#[derive(Clone, Copy)]
pub(crate) struct Gfni(Avx512);

// SAFETY of all blocks below: as in `avx512`, and the same for GFNI.
impl Lane for Gfni {
    const BYTES: usize = Avx512::BYTES;
    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the same contract.
        Self(unsafe { Avx512::zero() })
    }
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the same contract.
        Self(unsafe { Avx512::load(from) })
    }
    #[inline(always)]
    unsafe fn load_part(from: *const u8, length: usize) -> Self {
        // SAFETY: the same contract.
        Self(unsafe { Avx512::load_part(from, length) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the same contract.
        unsafe { self.0.store(to) }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, length: usize) {
        // SAFETY: the same contract.
        unsafe { self.0.store_part(to, length) }
    }
    #[inline(always)]
    unsafe fn factor(constant: u8) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi64(gf::MATRICES[usize::from(constant)].cast_signed()) }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(self.0.xor(other.0))
    }
    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        Self(self.0.xor3(a.0, b.0))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        self.0.is_zero()
    }
    #[inline(always)]
    fn double(self) -> Self {
        // SAFETY: see above.
        self.multiply(unsafe { Self::factor(2) })
    }
    #[inline(always)]
    fn multiply(self, factor: __m512i) -> Self {
        // SAFETY: see above.
        Self(Avx512(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0 .0, factor) }))
    }
}

crate::loops::variant!(Gfni, "gfni", crate::crc32c_fold::by_folding, ["avx512f" "avx512bw" "gfni"]);
