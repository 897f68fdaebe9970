//! The field GF(2^8) of RAID 6: addition is XOR, multiplication is modulo x^8 + x^4 + x^3 + x^2 + 1
//! (0x11d), and g = 2 generates all 255 non-zero elements.
//!
//! These are the numbers that Linux md, and so every array we open or make, uses for Q
//! (H. P. Anvin, "The mathematics of RAID-6"). They must never change. All tables are computed by the
//! compiler from [`multiply_by_shifting`]; the tests prove the field's axioms over all elements.

/// The reduction polynomial without its x^8 term.
pub const POLYNOMIAL: u8 = 0x1d;

/// Number of non-zero elements: the period of g, and so the largest number of data blocks in one row.
pub const ORDER: usize = 255;

/// The product by the school method; the definition that everything else is measured against.
#[must_use]
pub const fn multiply_by_shifting(a: u8, b: u8) -> u8 {
    let (mut shifted, mut rest, mut product) = (a, b, 0);
    while rest != 0 {
        if rest & 1 != 0 {
            product ^= shifted;
        }
        shifted = double(shifted);
        rest >>= 1;
    }
    product
}

/// The product with g = 2.
#[must_use]
pub const fn double(a: u8) -> u8 {
    (a << 1) ^ if a & 0x80 != 0 { POLYNOMIAL } else { 0 }
}

/// `POWERS[i]` = g^i for i up to twice the order, so that a sum of two logarithms needs no reduction.
static POWERS: [u8; 2 * ORDER] = {
    let mut table = [0; 2 * ORDER];
    let (mut i, mut element) = (0, 1);
    while i < table.len() {
        table[i] = element;
        element = double(element);
        i += 1;
    }
    table
};

/// `LOGARITHMS[POWERS[i]]` = i for i below the order. The entry of 0 is never read.
static LOGARITHMS: [u8; 256] = {
    let mut table = [0; 256];
    let (mut exponent, mut element): (u8, u8) = (0, 1);
    while exponent != 255 {
        table[element as usize] = exponent;
        element = double(element);
        exponent += 1;
    }
    table
};

/// g^`exponent`: the coefficient of data block `exponent` in Q.
#[must_use]
pub fn power(exponent: u8) -> u8 {
    POWERS[usize::from(exponent)]
}

/// The exponent, 0 to 254, of a non-zero element. Panics on 0, which has none.
#[must_use]
pub fn logarithm(element: u8) -> u8 {
    assert!(element != 0, "zero has no logarithm");
    LOGARITHMS[usize::from(element)]
}

/// The product of two elements.
#[must_use]
pub fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    POWERS[usize::from(LOGARITHMS[usize::from(a)]) + usize::from(LOGARITHMS[usize::from(b)])]
}

/// `a / b`. Panics if `b` is 0.
#[must_use]
pub fn divide(a: u8, b: u8) -> u8 {
    assert!(b != 0, "division by zero");
    if a == 0 {
        return 0;
    }
    POWERS[usize::from(LOGARITHMS[usize::from(a)]) + ORDER - usize::from(LOGARITHMS[usize::from(b)])]
}

/// For each constant c: its products with the 16 low nibbles, then with the 16 high nibbles. Two byte
/// shuffles and a XOR then multiply a whole vector by c.
#[repr(C, align(32))]
pub struct Nibbles(pub [[u8; 32]; 256]);

/// See [`Nibbles`].
#[allow(clippy::cast_possible_truncation)] // indices below 256
pub static NIBBLES: Nibbles = {
    let mut table = [[0; 32]; 256];
    let mut c = 0;
    while c < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            table[c][nibble] = multiply_by_shifting(c as u8, nibble as u8);
            table[c][16 + nibble] = multiply_by_shifting(c as u8, (nibble as u8) << 4);
            nibble += 1;
        }
        c += 1;
    }
    Nibbles(table)
};

/// For each constant c: multiplication by c as an 8x8 bit matrix, in the layout of the instruction
/// GF2P8AFFINEQB (the row that makes output bit i is byte 7 - i). The instruction's own product is modulo
/// another polynomial (0x11b) and of no use here; the matrix form serves any.
pub static MATRICES: [u64; 256] = {
    let mut table = [0; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = matrix(c);
        c += 1;
    }
    table
};

#[allow(clippy::cast_possible_truncation)] // c below 256
const fn matrix(c: usize) -> u64 {
    let mut rows = [0_u8; 8];
    let mut input_bit = 0;
    while input_bit < 8 {
        let product = multiply_by_shifting(c as u8, 1 << input_bit);
        let mut output_bit = 0;
        while output_bit < 8 {
            rows[7 - output_bit] |= (product >> output_bit & 1) << input_bit;
            output_bit += 1;
        }
        input_bit += 1;
    }
    u64::from_le_bytes(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_product_is_the_school_product_for_all_pairs() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply_by_shifting(a, b), "{a} * {b}");
            }
        }
    }

    #[test]
    fn the_axioms_of_a_field_hold() {
        for a in 0..=255_u8 {
            assert_eq!(multiply(a, 1), a);
            assert_eq!(multiply(a, 0), 0);
            if a != 0 {
                assert_eq!(multiply(a, divide(1, a)), 1, "every non-zero element has an inverse");
            }
            for b in 0..=255 {
                assert_eq!(multiply(a, b), multiply(b, a));
                if b != 0 {
                    assert_eq!(multiply(divide(a, b), b), a);
                }
                for c in [1, 2, 3, 0x1d, 0x53, 0x80, 0xca, 0xff] {
                    assert_eq!(multiply(a, multiply(b, c)), multiply(multiply(a, b), c));
                    assert_eq!(multiply(a, b ^ c), multiply(a, b) ^ multiply(a, c));
                }
            }
        }
    }

    #[test]
    fn two_generates_all_non_zero_elements() {
        let mut seen = [false; 256];
        for exponent in 0..=254 {
            let element = power(exponent);
            assert!(element != 0 && !seen[usize::from(element)]);
            seen[usize::from(element)] = true;
            assert_eq!(logarithm(element), exponent);
        }
        assert_eq!(power(255), 1);
    }

    #[test]
    fn known_powers_of_two() {
        // The first reductions, worked by hand with 0x11d.
        let known = [1, 2, 4, 8, 16, 32, 64, 128, 0x1d, 0x3a, 0x74, 0xe8, 0xcd, 0x87, 0x13, 0x26];
        for (exponent, element) in (0..).zip(known) {
            assert_eq!(power(exponent), element);
        }
        assert_eq!(power(254), 0x8e, "the inverse of 2");
    }

    #[test]
    fn nibble_tables_and_matrices_multiply() {
        for c in 0..=255_u8 {
            let nibbles = &NIBBLES.0[usize::from(c)];
            let rows = MATRICES[usize::from(c)].to_le_bytes();
            for x in 0..=255_u8 {
                let product = multiply_by_shifting(c, x);
                assert_eq!(nibbles[usize::from(x & 15)] ^ nibbles[16 + usize::from(x >> 4)], product);
                let by_matrix =
                    (0..8).fold(0_u8, |byte, bit| byte | u8::from((rows[7 - bit] & x).count_ones() % 2 == 1) << bit);
                assert_eq!(by_matrix, product);
            }
        }
    }
}
