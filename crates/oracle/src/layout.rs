//! Reads md's placement of every block of an array off raw member images.
//!
//! md itself fills the array with [`pattern`]; then each block on the members is recognised by its content: it is a
//! block of the array, or the XOR of its row (P), or a sum of its row with other factors (Q). The factors of Q are not
//! assumed but solved for, as a system of linear equations over GF(2^8). So nothing here knows a layout, and the result
//! can judge code that does.

use crate::error::OracleError;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Unit of everything here: small enough for every chunk size that md takes.
pub const BLOCK_BYTES: usize = 4096;
/// Begins every block of the pattern, so that a stray match is out of the question.
const MAGIC: [u8; 8] = *b"ORLAYOUT";
/// RAID 6 of md works in the field with this polynomial, of generator 2.
const POLYNOMIAL: u16 = 0x11d;

/// The content of one block of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The block of the array with this number.
    Data(u64),
    /// The XOR of the data of the row.
    P,
    /// The sum of the data of the row; for each member that holds data, the exponent of 2 that its block is
    /// multiplied with.
    Q(BTreeMap<usize, u8>),
    /// Nothing of the array: all zero.
    Unused,
}

/// One member's data area, block by block.
pub type Column = Vec<Cell>;

/// Block `number` of the pattern.
#[must_use]
pub fn pattern(number: u64) -> Vec<u8> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    block.extend_from_slice(&MAGIC);
    block.extend_from_slice(&number.to_le_bytes());
    let mut state = number;
    while block.len() < BLOCK_BYTES {
        block.extend_from_slice(&mix(&mut state).to_le_bytes());
    }
    block
}

/// The next number of a SplitMix64 sequence: every block gets bytes of its own, so that sums tell apart.
fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Read the members' data areas, given as image, first byte and length in bytes, and recognise every block. Members may
/// have different lengths; a row is the blocks at the same offset of all members.
///
/// # Errors
/// A block that is neither data of the array, nor redundancy of its row, nor zero.
pub fn read_columns(members: &[(&Path, u64, u64)]) -> Result<Vec<Column>, OracleError> {
    let mut raw = Vec::new();
    for (path, start, length) in members {
        let mut bytes = vec![0; usize::try_from(*length).expect("images of tests fit into memory")];
        let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, *start));
        read.map_err(|error| OracleError::File { path: path.to_path_buf(), error })?;
        raw.push(bytes);
    }
    let rows = raw.iter().map(|bytes| bytes.len() / BLOCK_BYTES).max().unwrap_or(0);
    let mut columns = vec![Vec::new(); members.len()];
    for row in 0..rows {
        let blocks: Vec<Option<&[u8]>> =
            raw.iter().map(|bytes| bytes.get(row * BLOCK_BYTES..(row + 1) * BLOCK_BYTES)).collect();
        for (member, cell) in read_row(&blocks).map_err(|what| at(row, &what))?.into_iter().enumerate() {
            columns[member].extend(cell);
        }
    }
    Ok(columns)
}

fn at(row: usize, what: &str) -> OracleError {
    OracleError::Layout(format!("row {row} of blocks: {what}"))
}

/// Recognise the blocks of one row; `None` if a member has ended.
fn read_row(blocks: &[Option<&[u8]>]) -> Result<Vec<Option<Cell>>, String> {
    let mut cells: Vec<Option<Cell>> = blocks.iter().map(|block| block.and_then(recognise)).collect();
    let data: Vec<(usize, &[u8])> = (0..blocks.len())
        .filter(|m| matches!(cells[*m], Some(Cell::Data(_))))
        .map(|m| (m, blocks[m].expect("only a block can be data")))
        .collect();
    for member in 0..blocks.len() {
        let (None, Some(block)) = (&cells[member], blocks[member]) else { continue };
        let factors = solve(&data, block).ok_or_else(|| format!("member {member} is not a sum of the row's data"))?;
        cells[member] = Some(if factors.values().all(|exponent| *exponent == 0) { Cell::P } else { Cell::Q(factors) });
    }
    for redundant in [|cell: &Cell| *cell == Cell::P, |cell: &Cell| matches!(cell, Cell::Q(_))] {
        if cells.iter().flatten().filter(|cell| redundant(cell)).count() > 1 {
            return Err("two members hold the same kind of redundancy".into());
        }
    }
    Ok(cells)
}

/// A block that names itself.
fn recognise(block: &[u8]) -> Option<Cell> {
    if block.iter().all(|byte| *byte == 0) {
        return Some(Cell::Unused);
    }
    let number = u64::from_le_bytes(block[8..16].try_into().expect("eight bytes"));
    (block[..8] == MAGIC && block == pattern(number)).then_some(Cell::Data(number))
}

/// Exponents of 2 with which the sum of the data is `sum`; `None` if there are none.
fn solve(data: &[(usize, &[u8])], sum: &[u8]) -> Option<BTreeMap<usize, u8>> {
    // One equation for each byte position. After the header the bytes are random: a few more positions than unknowns
    // are enough for full rank.
    let width = data.len();
    let mut system: Vec<Vec<u8>> = (16..16 + 4 * width.max(1))
        .map(|position| data.iter().map(|(_, block)| block[position]).chain([sum[position]]).collect())
        .collect();
    for column in 0..width {
        let pivot = (column..system.len()).find(|row| system[*row][column] != 0)?;
        system.swap(column, pivot);
        let inverse = power(system[column][column], 254);
        system[column].iter_mut().for_each(|value| *value = multiply(*value, inverse));
        let source = system[column].clone();
        for (row, equation) in system.iter_mut().enumerate() {
            let factor = equation[column];
            if row != column && factor != 0 {
                equation.iter_mut().zip(&source).for_each(|(value, s)| *value ^= multiply(*s, factor));
            }
        }
    }
    let factors: Vec<u8> = (0..width).map(|row| system[row][width]).collect();
    let fits = (0..BLOCK_BYTES).all(|position| {
        let terms = data.iter().zip(&factors).map(|((_, block), factor)| multiply(block[position], *factor));
        terms.fold(0, |total, term| total ^ term) == sum[position]
    });
    let exponents = data.iter().zip(&factors).map(|((member, _), factor)| Some((*member, exponent(*factor)?)));
    if fits {
        exponents.collect()
    } else {
        None
    }
}

/// Product in GF(2^8), by shifting: slow and plain, as an oracle should be.
fn multiply(a: u8, b: u8) -> u8 {
    let mut product = 0u16;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            product ^= u16::from(a) << bit;
        }
    }
    for bit in (8..16).rev() {
        if product >> bit & 1 == 1 {
            product ^= POLYNOMIAL << (bit - 8);
        }
    }
    u8::try_from(product).expect("reduced to eight bits")
}

fn power(base: u8, exponent: u32) -> u8 {
    (0..exponent).fold(1, |product, _| multiply(product, base))
}

/// The exponent e, from 0 to 254, with 2^e = `value`; zero has none.
fn exponent(value: u8) -> Option<u8> {
    let mut product = 1;
    for e in 0..255 {
        if product == value {
            return Some(e);
        }
        product = multiply(product, 2);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_has_a_generator_of_order_255() {
        assert_eq!(multiply(0x80, 2), 0x1d);
        assert_eq!(power(2, 255), 1);
        assert_eq!((1..=255).filter(|value| exponent(*value).is_some()).count(), 255);
        assert_eq!(exponent(0), None);
    }

    #[test]
    fn the_factors_of_a_sum_are_found_and_a_wrong_sum_has_none() {
        let blocks: Vec<Vec<u8>> = (10..14).map(pattern).collect();
        let data: Vec<(usize, &[u8])> = blocks.iter().enumerate().map(|(n, block)| (n, block.as_slice())).collect();
        let exponents = [3u8, 0, 250, 17];
        let mut sum = vec![0; BLOCK_BYTES];
        for (block, e) in blocks.iter().zip(exponents) {
            let factor = power(2, u32::from(e));
            sum.iter_mut().zip(block).for_each(|(s, b)| *s ^= multiply(*b, factor));
        }
        let found = solve(&data, &sum).expect("it is a sum");
        assert_eq!(found.into_values().collect::<Vec<_>>(), exponents);
        *sum.last_mut().expect("not empty") ^= 1;
        assert_eq!(solve(&data, &sum), None);
    }
}
