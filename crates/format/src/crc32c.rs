//! CRC-32C (Castagnoli) of metadata blocks, eight bytes per step: headers of the journal and of partial parity logs.
//!
//! The journal encodes an entry header for every group commit, so the checksum must cost less than the commit. The
//! unused records of a header are zero, and one multiplication computes the checksum over all these zeroes. The drivers
//! compute the checksums of payloads, because they hold the payload and have faster methods. All functions take and
//! return the plain register; the value on disk is `!update(!0, bytes)`.

/// The polynomial; bit 31 is the coefficient of x^0.
const POLYNOMIAL: u32 = 0x82f6_3b78;
const STEP: usize = 8;
/// `TABLES[k][b]`: the byte `b` followed by `k` zero bytes.
static TABLES: [[u32; 256]; STEP] = tables();
/// Number of lanes for long inputs. They are used only if each lane has at least this many records; for shorter inputs
/// the cost of combining the lanes is higher than the gain.
const LANES: usize = 4;
const LANE_UNITS_MIN: usize = 2;
/// Number of zero bytes in one step of [`zeroes`]: one unused record.
const ZERO_UNIT: usize = crate::journal::RECORD_BYTES;
const ZERO_UNITS_MAX: usize = crate::journal::JOURNAL_RECORDS_MAX;
/// Number of values of four bits. Polynomials are multiplied four bits per step.
const FOUR_BITS: usize = 16;
/// `ZERO_MULTIPLES[n][v]`: x^(8 * ZERO_UNIT * n) times the four bits `v` at the top of a register, reduced.
static ZERO_MULTIPLES: [[u32; FOUR_BITS]; ZERO_UNITS_MAX + 1] = zero_multiples();
/// `X4[v]`: x^4 times the four bits `v` at the bottom of a register, reduced.
static X4: [u32; FOUR_BITS] = x4();

const fn times_x(value: u32) -> u32 {
    value >> 1 ^ (POLYNOMIAL & (value & 1).wrapping_neg())
}

const fn tables() -> [[u32; 256]; STEP] {
    let mut tables = [[0; 256]; STEP];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut value = byte;
        let mut bit = 0;
        while bit < 8 * STEP {
            value = times_x(value);
            bit += 1;
            if bit % 8 == 0 {
                tables[bit / 8 - 1][byte as usize] = value;
            }
        }
        byte += 1;
    }
    tables
}

/// The product of two polynomials, reduced.
const fn product(left: u32, right: u32) -> u32 {
    let mut sum = 0;
    let mut shifted = right;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        sum ^= shifted & (left >> bit & 1).wrapping_neg();
        shifted = times_x(shifted);
    }
    sum
}

const fn zero_multiples() -> [[u32; FOUR_BITS]; ZERO_UNITS_MAX + 1] {
    const ONE: u32 = 1 << 31;
    let mut unit = ONE;
    let mut bit = 0;
    while bit < 8 * ZERO_UNIT {
        unit = times_x(unit);
        bit += 1;
    }
    let mut multiples = [[0; FOUR_BITS]; ZERO_UNITS_MAX + 1];
    let (mut power, mut n) = (ONE, 0);
    while n <= ZERO_UNITS_MAX {
        let mut value: u32 = 0;
        while (value as usize) < FOUR_BITS {
            multiples[n][value as usize] = product(value << 28, power);
            value += 1;
        }
        power = product(power, unit);
        n += 1;
    }
    multiples
}

const fn x4() -> [u32; FOUR_BITS] {
    let mut table = [0; FOUR_BITS];
    let mut value: u32 = 0;
    while (value as usize) < FOUR_BITS {
        table[value as usize] = times_x(times_x(times_x(times_x(value))));
        value += 1;
    }
    table
}

/// The checksum of these bytes, in the usual form of CRC-32C.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    !update(!0, bytes)
}

/// The register after these bytes.
pub(crate) fn update(mut register: u32, mut bytes: &[u8]) -> u32 {
    // The first lane skips this many times its own length, and the table has no larger factor.
    let units = (bytes.len() / (LANES * ZERO_UNIT)).min(ZERO_UNITS_MAX / (LANES - 1));
    if units >= LANE_UNITS_MIN {
        let (lanes, rest) = bytes.split_at(LANES * units * ZERO_UNIT);
        (register, bytes) = (update_lanes(register, lanes, units), rest);
    }
    let (steps, rest) = bytes.as_chunks::<STEP>();
    for bytes in steps {
        register = step(register, bytes);
    }
    for &byte in rest {
        let [low, ..] = register.to_le_bytes();
        register = at(0, low ^ byte) ^ register >> 8;
    }
    register
}

/// The register after four lanes of `units` records each. Each step of a lane depends on the step before it, so the CPU
/// overlaps the steps of four independent lanes. The register of a lane is computed as if the lanes after it were zero.
fn update_lanes(register: u32, bytes: &[u8], units: usize) -> u32 {
    let (steps, _) = bytes.as_chunks::<STEP>();
    let (front, back) = steps.split_at(steps.len() / 2);
    let ((one, two), (three, four)) = (front.split_at(front.len() / 2), back.split_at(back.len() / 2));
    let mut registers = [register, 0, 0, 0];
    for (((a, b), c), d) in one.iter().zip(two).zip(three).zip(four) {
        registers = [step(registers[0], a), step(registers[1], b), step(registers[2], c), step(registers[3], d)];
    }
    // The four steps are independent of each other, so the CPU overlaps them.
    let [a, b, c, d] = registers;
    zeroes(a, 3 * units) ^ zeroes(b, 2 * units) ^ zeroes(c, units) ^ d
}

#[inline(always)]
fn step(register: u32, bytes: &[u8; STEP]) -> u32 {
    let [e, f, g, h, i, j, k, l] = *bytes;
    let [a, b, c, d] = (register ^ u32::from_le_bytes([e, f, g, h])).to_le_bytes();
    let front = at(7, a) ^ at(6, b) ^ at(5, c) ^ at(4, d);
    // Numbers of eight bytes are almost never that large, so this half of three of four words of a record is zero.
    if [i, j, k, l] == [0; 4] {
        return front;
    }
    front ^ at(3, i) ^ at(2, j) ^ at(1, k) ^ at(0, l)
}

fn at(table: usize, byte: u8) -> u32 {
    TABLES[table][usize::from(byte)]
}

/// The register after `units` records of zeroes.
pub(crate) fn zeroes(register: u32, units: usize) -> u32 {
    let multiples = &ZERO_MULTIPLES[units];
    let four_bits = |value: u32| (value & 15) as usize;
    // The highest powers are in the lowest bits and come first.
    (0..8).fold(0, |sum, step| sum >> 4 ^ X4[four_bits(sum)] ^ multiples[four_bits(register >> (4 * step))])
}

/// The CRC-32C of two byte strings in sequence, from the CRC-32C of each string and the length of the second in bytes.
/// The register after `n` more zero bytes is the polynomial times x^8n.
#[must_use]
pub fn crc32c_of_both(first: u32, second: u32, second_len: u64) -> u32 {
    // Bit 31 is the coefficient of 1.
    let (mut factor, mut power, mut left) = (1 << 31, 1 << 23, second_len);
    while left > 0 {
        if left & 1 == 1 {
            factor = product(factor, power);
        }
        power = product(power, power);
        left >>= 1;
    }
    product(first, factor) ^ second
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn bit_by_bit(register: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(register, |register, &byte| (0..8).fold(register ^ u32::from(byte), |r, _| times_x(r)))
    }

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(!update(!0, b"123456789"), 0xe306_9283);
        let bytes: Vec<u8> = (0..2000u32).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        for len in (0..1100).chain([3840, 4000, 4096, 5119, 5120, 5121, 6000, 8000]) {
            assert_eq!(update(7, &bytes[..len]), bit_by_bit(7, &bytes[..len]), "{len} bytes");
        }
    }

    #[test]
    fn zeroes_in_one_step_are_zeroes_one_by_one() {
        for units in 0..=ZERO_UNITS_MAX {
            let long = bit_by_bit(0x1234_5678, &vec![0; units * ZERO_UNIT]);
            assert_eq!(zeroes(0x1234_5678, units), long, "{units} records");
        }
    }

    #[test]
    fn the_checksum_of_a_string_follows_from_those_of_its_parts() {
        let bytes: [u8; 999] = core::array::from_fn(|at| u8::try_from(at * 37 % 251).unwrap());
        for cut in [0, 1, 7, 512, 998, 999] {
            let (first, second) = bytes.split_at(cut);
            let both = crc32c_of_both(!update(!0, first), !update(!0, second), second.len() as u64);
            assert_eq!(both, !update(!0, &bytes), "cut at {cut}");
        }
    }
}
