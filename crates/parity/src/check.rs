//! Does the parity match the data, and if not, which block is wrong?
//!
//! With P and Q both available, one wrong block leaves a signature in each byte column: s = the error itself shows in
//! P, t = g^z times the error in Q, for a wrong data block z. So log t - log s names z. All columns that differ must
//! name the same block. Otherwise more than one block is wrong, or one is wrong in a way that cannot be told from
//! several. Then no block is named, because a repair of the wrong block destroys good data. The verdict assumes a
//! single wrong block; a single differing byte column is weak evidence if two blocks may be wrong at once.

use crate::compute::assert_sparse;
use crate::gf;
use crate::kernel_table::Sources;
use crate::short_list::BlockList;
use crate::Kernels;
use core::ops::Range;

/// Bytes of the unit in which differences are counted: the sector of all disk formats here.
pub const SECTOR_BYTES: usize = 512;

/// What P and Q say about a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PqVerdict {
    /// P and Q fit the data.
    Match,
    /// Only P is wrong.
    PWrong,
    /// Only Q is wrong.
    QWrong,
    /// Only the data block of this index is wrong.
    DataWrong {
        /// Index of the block in the row.
        index: u8,
    },
    /// Something is wrong, and no single block explains it.
    Unknown,
}

impl PqVerdict {
    /// Do P and Q differ from the data, and which block explains both differences?
    #[must_use]
    pub const fn differences(self) -> (bool, bool, Option<u8>) {
        match self {
            Self::Match => (false, false, None),
            Self::PWrong => (true, false, None),
            Self::QWrong => (false, true, None),
            Self::DataWrong { index } => (true, true, Some(index)),
            Self::Unknown => (true, true, None),
        }
    }
}

/// The differences of two byte strings, in sectors of [`SECTOR_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The first sector that differs, counted from the start of the slices.
    pub first: usize,
    /// Number of sectors that differ.
    pub sectors: usize,
}

impl Difference {
    /// Add up the differing sectors among `count`.
    fn of(count: usize, differs: impl FnMut(usize) -> bool) -> Option<Self> {
        let mut differs = differs;
        let mut differing = (0..count).filter(|&sector| differs(sector));
        let first = differing.next()?;
        Some(Self { first, sectors: 1 + differing.count() })
    }
}

/// The bytes of one granule; the last may be short.
fn granule(index: usize, bytes: usize, length: usize) -> Range<usize> {
    let start = index * bytes;
    start..length.min(start + bytes)
}

impl Kernels {
    /// Are all bytes zero? True for none.
    #[must_use]
    pub fn is_zero(&self, bytes: &[u8]) -> bool {
        // SAFETY: `Kernels` is only made for a CPU that has the features.
        unsafe { (self.table.is_zero)(bytes) }
    }

    /// Where `a` and `b` differ; `None` where they are equal. Panics if the lengths differ.
    #[must_use]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Option<Difference> {
        assert_eq!(a.len(), b.len(), "blocks of different lengths");
        // SAFETY: the features are there, and the lengths are equal.
        let equal = |a: &[u8], b: &[u8]| unsafe { (self.table.equal)(a, b) };
        if equal(a, b) {
            return None;
        }
        Difference::of(a.len().div_ceil(SECTOR_BYTES), |sector| {
            let range = granule(sector, SECTOR_BYTES, a.len());
            !equal(&a[range.clone()], &b[range])
        })
    }

    /// Where `p` is not the XOR of `data`; `None` where it is. Panics if the lengths differ.
    #[must_use]
    pub fn check_p(&self, p: &[u8], data: &[&[u8]]) -> Option<Difference> {
        crate::assert_lengths(p.len(), data.iter().copied());
        // SAFETY: the features are there, and the lengths are equal.
        if unsafe { (self.table.p_agrees)(p, data) } {
            return None;
        }
        let mut buffer = [0; SECTOR_BYTES];
        Difference::of(p.len().div_ceil(SECTOR_BYTES), |sector| {
            let range = granule(sector, SECTOR_BYTES, p.len());
            let sum = &mut buffer[..range.len()];
            sum.copy_from_slice(&p[range.clone()]);
            data.iter().for_each(|block| self.xor_into(sum, &[&block[range.clone()]]));
            !self.is_zero(sum)
        })
    }

    /// Judge a whole row as one: P, Q and all its data, `data[i]` with the coefficient g^i.
    ///
    /// Panics if the lengths differ or there are more than 255 blocks.
    #[must_use]
    pub fn check_pq(&self, p: &[u8], q: &[u8], data: &[&[u8]]) -> PqVerdict {
        let mut blocks = BlockList::new();
        blocks.extend(data.iter().copied().map(Some));
        let mut verdict = PqVerdict::Match;
        self.check_pq_each(p.len().max(1), p, q, blocks.as_slice(), |_, found| verdict = found);
        verdict
    }

    /// Judge a row in granules of `bytes` (one sector, as a rule), each by itself: errors in different blocks
    /// of different sectors are still told apart. `None` stands for a block of zeroes. `report` is called with the byte
    /// range and the verdict of each granule that does not match, in ascending order. A row without errors costs one
    /// pass.
    ///
    /// Panics if the lengths differ, there are more than 255 blocks, or `bytes` is 0.
    pub fn check_pq_each(
        &self,
        bytes: usize,
        p: &[u8],
        q: &[u8],
        data: Sources<'_>,
        mut report: impl FnMut(Range<usize>, PqVerdict),
    ) {
        assert!(bytes > 0, "a granule of no bytes");
        assert_eq!(p.len(), q.len(), "blocks of different lengths");
        assert_sparse(p.len(), data);
        // SAFETY: the features are there, and the lengths are equal.
        if unsafe { (self.table.pq_agrees)(p, q, data) } {
            return;
        }
        for index in 0..p.len().div_ceil(bytes) {
            let range = granule(index, bytes, p.len());
            let verdict = self.locate(p, q, data, range.clone());
            if verdict != PqVerdict::Match {
                report(range, verdict);
            }
        }
    }

    /// The verdict of one granule, a sector at a time, byte by byte where it differs.
    fn locate(&self, p: &[u8], q: &[u8], data: Sources<'_>, range: Range<usize>) -> PqVerdict {
        let mut verdict = PqVerdict::Match;
        let (mut in_p, mut in_q) = ([0; SECTOR_BYTES], [0; SECTOR_BYTES]);
        for piece in 0..range.len().div_ceil(SECTOR_BYTES) {
            let start = range.start + piece * SECTOR_BYTES;
            let piece = start..range.end.min(start + SECTOR_BYTES);
            let (in_p, in_q) = (&mut in_p[..piece.len()], &mut in_q[..piece.len()]);
            let mut blocks = BlockList::new();
            blocks.extend(data.iter().map(|block| block.map(|block| &block[piece.clone()])));
            self.pq_sparse(in_p, in_q, blocks.as_slice());
            self.xor_into(in_p, &[&p[piece.clone()]]);
            self.xor_into(in_q, &[&q[piece]]);
            for found in in_p.iter().zip(in_q).map(|(in_p, in_q)| blame(*in_p, *in_q, data.len())) {
                if verdict == PqVerdict::Match {
                    verdict = found;
                } else if found != PqVerdict::Match && found != verdict {
                    return PqVerdict::Unknown;
                }
            }
        }
        verdict
    }
}

/// The verdict of one byte column from the errors seen in P and in Q.
fn blame(in_p: u8, in_q: u8, blocks: usize) -> PqVerdict {
    match (in_p, in_q) {
        (0, 0) => PqVerdict::Match,
        (_, 0) => PqVerdict::PWrong,
        (0, _) => PqVerdict::QWrong,
        (error, weighted) => {
            let index = gf::logarithm(gf::divide(weighted, error));
            if usize::from(index) < blocks {
                PqVerdict::DataWrong { index }
            } else {
                PqVerdict::Unknown
            }
        }
    }
}
