//! Lost data blocks from the survivors.
//!
//! With s = P ^ the XOR of the surviving data and t = Q ^ their weighted sum, one lost block x is s, or
//! t / g^x. Two lost blocks x and y satisfy s = Dx ^ Dy and t = g^x Dx ^ g^y Dy, hence
//! Dx = (g^y s ^ t) / (g^x ^ g^y) and Dy = s ^ Dx. The divisor is never zero for x != y below 255.

use crate::gf;
use crate::short_list::BlockList;
use crate::{assert_row, Kernels};
use core::fmt;

/// Why lost data cannot be computed from the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TooManyLost {
    /// One data block is lost, and both P and Q with it.
    NoParity,
    /// Two data blocks are lost, and P or Q with them.
    OneParity,
    /// More data blocks are lost than any two parities restore.
    TooMany {
        /// Number of lost data blocks.
        lost: usize,
    },
}

impl fmt::Display for TooManyLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoParity => f.write_str("one data block of the row is lost and neither P nor Q is there"),
            Self::OneParity => f.write_str("two data blocks of the row are lost and only one of P and Q is there"),
            Self::TooMany { lost } => write!(f, "{lost} data blocks of the row are lost; P and Q restore at most two"),
        }?;
        f.write_str(": bring back one of the missing members, or restore this range from a backup")
    }
}

impl core::error::Error for TooManyLost {}

impl Kernels {
    /// Compute the lost data blocks of a row, whichever they are.
    ///
    /// `present` are the surviving data blocks and `lost` the blocks to compute, each with its index in the
    /// row, in any order. An index in neither list is a block of zeroes. P and Q are given where they are
    /// there and to be trusted; if both are given and one block is lost, P serves, which is faster.
    ///
    /// # Errors
    /// Not enough parity; `lost` is untouched.
    ///
    /// # Panics
    /// Lengths that differ, an index twice, an index above 254.
    pub fn recover(
        &self,
        present: &[(u8, &[u8])],
        p: Option<&[u8]>,
        q: Option<&[u8]>,
        lost: &mut [(u8, &mut [u8])],
    ) -> Result<(), TooManyLost> {
        match (lost, p, q) {
            ([], _, _) => {}
            ([(index, lost)], Some(p), _) => self.recover_one_with_p(present, p, *index, lost),
            ([(index, lost)], None, Some(q)) => self.recover_one_with_q(present, q, *index, lost),
            ([_], None, None) => return Err(TooManyLost::NoParity),
            ([(x, lost_x), (y, lost_y)], Some(p), Some(q)) => {
                self.recover_two(present, p, q, (*x, lost_x), (*y, lost_y));
            }
            ([_, _], _, _) => return Err(TooManyLost::OneParity),
            (lost, _, _) => return Err(TooManyLost::TooMany { lost: lost.len() }),
        }
        Ok(())
    }

    /// Data block `index` from P and the others. Panics as [`Kernels::recover`].
    pub fn recover_one_with_p(&self, present: &[(u8, &[u8])], p: &[u8], index: u8, lost: &mut [u8]) {
        assert_eq!(p.len(), lost.len(), "blocks of different lengths");
        let mut row = BlockList::new();
        by_coefficient(&mut row, present, &[index], lost.len());
        let mut sources = BlockList::new();
        sources.push(p);
        sources.extend(row.as_slice().iter().copied().flatten());
        // SAFETY: the features are there, and `by_coefficient` and the assertion have compared the lengths.
        unsafe { (self.table.xor)(lost, sources.as_slice(), false) }
    }

    /// Data block `index` from Q and the others, P being lost too. Panics as [`Kernels::recover`].
    pub fn recover_one_with_q(&self, present: &[(u8, &[u8])], q: &[u8], index: u8, lost: &mut [u8]) {
        assert_eq!(q.len(), lost.len(), "blocks of different lengths");
        let mut row = BlockList::new();
        by_coefficient(&mut row, present, &[index], lost.len());
        let factor = gf::divide(1, gf::power(index));
        // SAFETY: the features are there, and `by_coefficient` and the assertion have compared the lengths.
        unsafe { (self.table.solve_with_q)(lost, row.as_slice(), q, factor) }
    }

    /// Two data blocks, each given by its index and its place, from P, Q and the others. Panics as
    /// [`Kernels::recover`].
    pub fn recover_two(
        &self,
        present: &[(u8, &[u8])],
        p: &[u8],
        q: &[u8],
        (x, lost_x): (u8, &mut [u8]),
        (y, lost_y): (u8, &mut [u8]),
    ) {
        let length = lost_x.len();
        assert!([p.len(), q.len(), lost_y.len()] == [length; 3], "blocks of different lengths");
        let mut row = BlockList::new();
        by_coefficient(&mut row, present, &[x, y], length);
        let divisor = gf::power(x) ^ gf::power(y);
        let factors = [gf::divide(gf::power(y), divisor), gf::divide(1, divisor)];
        // SAFETY: the features are there, and `by_coefficient` and the assertion have compared the lengths.
        unsafe { (self.table.solve_with_pq)([lost_x, lost_y], row.as_slice(), p, q, factors) }
    }
}

/// Puts the surviving blocks into `row` in the order of their indices.
fn by_coefficient<'a>(row: &mut BlockList<Option<&'a [u8]>>, present: &[(u8, &'a [u8])], lost: &[u8], length: usize) {
    let highest = present.iter().map(|(index, _)| *index).chain(lost.iter().copied()).max();
    let count = highest.map_or(0, |index| usize::from(index) + 1);
    assert!(count <= gf::ORDER, "data index 255 has no coefficient of its own");
    assert!(lost.len() < 2 || lost[0] != lost[1], "data block {} is lost twice", lost[0]);
    assert_row(length, present.iter().map(|(_, block)| *block));
    row.extend((0..count).map(|_| None));
    let blocks = row.as_mut_slice();
    for (index, block) in present {
        assert!(!lost.contains(index), "data block {index} is both present and lost");
        let earlier = blocks[usize::from(*index)].replace(*block);
        assert!(earlier.is_none(), "data block {index} is present twice");
    }
}
