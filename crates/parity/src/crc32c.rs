//! CRC-32C (Castagnoli, RFC 3720), as md's partial parity log and raid5 journal and our own journal use it.
//!
//! The functions take and give the plain shift register, as Linux's `crc32c()` does: a checksum in the usual
//! sense is `!crc32c(!0, bytes)`, and md's formats differ in where they invert. A long text may be given in
//! pieces, each call continuing with the result of the one before.

/// The polynomial, lowest bit first.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// One step of the register by a zero bit.
const fn shift(register: u32) -> u32 {
    (register >> 1) ^ if register & 1 == 1 { POLYNOMIAL } else { 0 }
}

/// The register after eight zero bits, by its lowest byte.
static BYTE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut register, mut bit) = (byte, 0);
        while bit < 8 {
            register = shift(register);
            bit += 1;
        }
        table[byte as usize] = register;
        byte += 1;
    }
    table
};

/// x^`power` modulo the polynomial, in `power` steps.
#[cfg(target_arch = "x86_64")]
pub(crate) const fn times_power(power: u64) -> u32 {
    let (mut register, mut step) = (1 << 31, 0);
    while step < power {
        register = shift(register);
        step += 1;
    }
    register
}

/// One byte a step.
pub(crate) fn by_table(register: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(register, |register, byte| (register >> 8) ^ BYTE[usize::from(register.to_le_bytes()[0] ^ byte)])
}

#[cfg(target_arch = "x86_64")]
pub(crate) use instruction::{by_instruction, low};

#[cfg(target_arch = "x86_64")]
mod instruction {
    use super::shift;
    use core::arch::x86_64::{_mm_crc32_u64, _mm_crc32_u8};

    /// Bytes of one of the three streams that are worked on together: the instruction takes one step a cycle
    /// and gives its result after three. Three of them and 16 bytes are a block of 4 KiB.
    const STREAM: usize = 1360;

    /// `SKIP[n][byte]`: what byte n of a register becomes after [`STREAM`] zero bytes. The register is linear
    /// in its bits, so four look-ups move it past a whole stream.
    static SKIP: [[u32; 256]; 4] = {
        let mut bits = [0; 32];
        let mut bit = 0;
        while bit < 32 {
            let (mut register, mut step) = (1 << bit, 0);
            while step < 8 * STREAM {
                register = shift(register);
                step += 1;
            }
            bits[bit] = register;
            bit += 1;
        }
        let mut table = [[0; 256]; 4];
        let mut entry = 0;
        while entry < 4 * 256 {
            let mut bit = 0;
            while bit < 8 {
                if entry >> bit & 1 == 1 {
                    table[entry / 256][entry % 256] ^= bits[entry / 256 * 8 + bit];
                }
                bit += 1;
            }
            entry += 1;
        }
        table
    };

    fn skip(register: u32) -> u32 {
        let bytes = register.to_le_bytes();
        (0..4).fold(0, |sum, n| sum ^ SKIP[n][usize::from(bytes[n])])
    }

    /// Eight bytes a step, three streams at a time.
    ///
    /// # Safety
    /// The CPU has SSE4.2.
    #[target_feature(enable = "sse4.2")]
    pub(crate) unsafe fn by_instruction(register: u32, bytes: &[u8]) -> u32 {
        let mut register = register;
        let mut rounds = bytes.chunks_exact(3 * STREAM);
        for round in &mut rounds {
            let (first, rest) = round.split_at(STREAM);
            let (second, third) = rest.split_at(STREAM);
            let (mut a, mut b, mut c) = (u64::from(register), 0, 0);
            for ((x, y), z) in first.chunks_exact(8).zip(second.chunks_exact(8)).zip(third.chunks_exact(8)) {
                a = _mm_crc32_u64(a, word(x));
                b = _mm_crc32_u64(b, word(y));
                c = _mm_crc32_u64(c, word(z));
            }
            register = skip(skip(low(a)) ^ low(b)) ^ low(c);
        }
        let mut words = rounds.remainder().chunks_exact(8);
        let register = words.by_ref().fold(u64::from(register), |register, x| _mm_crc32_u64(register, word(x)));
        words.remainder().iter().fold(low(register), |register, byte| _mm_crc32_u8(register, *byte))
    }

    fn word(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes.try_into().expect("chunks of eight"))
    }

    /// The instruction leaves the upper half zero.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn low(register: u64) -> u32 {
        register as u32
    }
}
