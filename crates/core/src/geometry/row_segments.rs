//! Splitting an extent of a parity set into rectangles: pieces with the same columns in every row.
//!
//! Parity is computed by rows, so the write method and the columns to read are the same for all rows of such a piece.
//! An extent begins and ends in the middle of chunks; in one stripe that gives at most three pieces:
//!
//! ```text
//!          column 0   1   2   3              0   1   2   3
//!   row 0         .   .   #   #      A       .   .   #   .    A
//!       1         .   .   #   #              .   .   .   .
//!       2         .   #   #   #      B       .   .   .   .
//!       3         .   #   #   .      C       .   #   .   .    B
//! ```

use core::iter::FusedIterator;
use openraid_units::{Sectors, SetLba, StripeIndex};

/// A piece of one stripe: rows `lo..hi` of the columns `first_column..first_column + columns`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowSegment {
    /// The stripe.
    pub stripe: StripeIndex,
    /// First row, counted from the start of the chunk.
    pub lo: Sectors,
    /// The row after the last one of the piece; above `lo`, at most the chunk.
    pub hi: Sectors,
    /// First column.
    pub first_column: u16,
    /// Number of columns, at least one.
    pub columns: u16,
    /// The address of row `lo` of the first column in the set; each further column is one chunk further on.
    pub set_lba: SetLba,
}

impl RowSegment {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> Sectors {
        self.hi - self.lo
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Piece {
    lo: u64,
    hi: u64,
    first_column: u64,
    columns: u64,
}

/// The pieces of an extent, by rising stripe and row: see [`super::Parity::split`].
#[derive(Clone, Debug)]
pub struct Split {
    shift: u32,
    data_columns: u64,
    rows_max: u64,
    /// The rest that is not split yet.
    at: u64,
    end: u64,
    /// The stripe in work, its pieces, and the number of pieces that are still to come.
    stripe: u64,
    pieces: [Piece; 3],
    next: usize,
    count: usize,
}

impl Split {
    pub(super) fn new(shift: u32, data_columns: u16, at: SetLba, len: Sectors, rows_max: Sectors) -> Self {
        assert!(!rows_max.is_zero(), "a piece needs at least one row");
        Self {
            shift,
            data_columns: u64::from(data_columns),
            rows_max: rows_max.0,
            at: at.0,
            end: at.0 + len.0,
            stripe: 0,
            pieces: [Piece::default(); 3],
            next: 0,
            count: 0,
        }
    }

    /// Is the split complete?
    pub(crate) fn is_over(&self) -> bool {
        self.next == self.count && self.at == self.end
    }

    /// Split the part in the next stripe.
    fn enter_stripe(&mut self) {
        let chunk = 1 << self.shift;
        let (first_chunk, last_chunk) = (self.at >> self.shift, (self.end - 1) >> self.shift);
        self.stripe = first_chunk / self.data_columns;
        let base = self.stripe * self.data_columns;
        (self.next, self.count) = (0, 0);

        let first = first_chunk - base;
        let top = self.at & (chunk - 1);
        let (last, bottom, at) = if last_chunk < base + self.data_columns {
            (last_chunk - base, self.end - (last_chunk << self.shift), self.end)
        } else {
            (self.data_columns - 1, chunk, (base + self.data_columns) << self.shift)
        };
        self.at = at;
        if first == last {
            return self.push(top, bottom, first, first);
        }
        // The first column is written from `top` on, the last one up to `bottom`, those between in full.
        self.push(0, top.min(bottom), first + 1, last);
        if bottom <= top {
            self.push(bottom, top, first + 1, last - 1);
        } else {
            self.push(top, bottom, first, last);
        }
        self.push(top.max(bottom), chunk, first, last - 1);
    }

    /// Add the piece of these rows and columns (`last` included), if there is anything in it.
    fn push(&mut self, lo: u64, hi: u64, first: u64, last: u64) {
        if lo < hi && first <= last {
            self.pieces[self.count] = Piece { lo, hi, first_column: first, columns: last - first + 1 };
            self.count += 1;
        }
    }
}

impl Iterator for Split {
    type Item = RowSegment;

    fn next(&mut self) -> Option<RowSegment> {
        if self.is_over() {
            return None;
        }
        if self.next == self.count {
            self.enter_stripe();
        }
        let piece = &mut self.pieces[self.next];
        let Piece { lo, hi, first_column, columns } = *piece;
        let hi_now = if hi - lo > self.rows_max { lo + self.rows_max } else { hi };
        if hi_now == hi {
            self.next += 1;
        } else {
            piece.lo = hi_now;
        }
        let column = |number: u64| u16::try_from(number).expect("below the members");
        Some(RowSegment {
            stripe: StripeIndex(self.stripe),
            lo: Sectors(lo),
            hi: Sectors(hi_now),
            first_column: column(first_column),
            columns: column(columns),
            set_lba: SetLba(((self.stripe * self.data_columns + first_column) << self.shift) + lo),
        })
    }
}

impl FusedIterator for Split {}
