//! Parity from data, and parity brought up to date.

use crate::gf;
use crate::kernel_table::{ParityChange, Sources};
use crate::short_list::BlockList;
use crate::{assert_lengths, assert_row, Kernels};

impl Kernels {
    /// `destination` = XOR of `sources`; zeroes for none. P of RAID 4, 5 and 6.
    ///
    /// Panics if the lengths differ.
    pub fn xor(&self, destination: &mut [u8], sources: &[&[u8]]) {
        assert_lengths(destination.len(), sources.iter().copied());
        // SAFETY: `Kernels` is only made for a CPU that has the features, and the lengths are equal.
        unsafe { (self.table.xor)(destination, sources, false) }
    }

    /// `destination` ^= XOR of `sources`. Panics if the lengths differ.
    pub fn xor_into(&self, destination: &mut [u8], sources: &[&[u8]]) {
        assert_lengths(destination.len(), sources.iter().copied());
        // SAFETY: as in `xor`.
        unsafe { (self.table.xor)(destination, sources, true) }
    }

    /// P and Q of a row, `data[i]` with the coefficient g^i in Q.
    ///
    /// Panics if the lengths differ or there are more than 255 blocks.
    pub fn pq(&self, p: &mut [u8], q: &mut [u8], data: &[&[u8]]) {
        assert_row(p.len(), data.iter().copied());
        let mut blocks = BlockList::new();
        blocks.extend(data.iter().copied().map(Some));
        self.pq_checked(p, q, blocks.as_slice());
    }

    /// P and Q of a row in which `None` stands for a block of zeroes. Panics as [`Kernels::pq`].
    pub fn pq_sparse(&self, p: &mut [u8], q: &mut [u8], data: &[Option<&[u8]>]) {
        assert_sparse(p.len(), data);
        self.pq_checked(p, q, data);
    }

    fn pq_checked(&self, p: &mut [u8], q: &mut [u8], data: Sources<'_>) {
        assert_eq!(p.len(), q.len(), "blocks of different lengths");
        // SAFETY: the features are there, and the lengths are equal.
        unsafe { (self.table.pq)(p, q, data) }
    }

    /// Q alone. Panics as [`Kernels::pq`].
    pub fn q(&self, q: &mut [u8], data: &[&[u8]]) {
        assert_row(q.len(), data.iter().copied());
        let mut blocks = BlockList::new();
        blocks.extend(data.iter().copied().map(Some));
        // SAFETY: the features are there, and the lengths are equal.
        unsafe { (self.table.q)(q, blocks.as_slice()) }
    }

    /// Q alone, of a row in which `None` stands for a block of zeroes. Panics as [`Kernels::pq`].
    pub fn q_sparse(&self, q: &mut [u8], data: &[Option<&[u8]>]) {
        assert_sparse(q.len(), data);
        // SAFETY: the features are there, and the lengths are equal.
        unsafe { (self.table.q)(q, data) }
    }

    /// Bring P up to date with data blocks that change. Panics if the lengths differ.
    pub fn p_update(&self, p: &mut [u8], changes: &[ParityChange<'_>]) {
        assert_changes(p.len(), changes);
        // SAFETY: the features are there, and the lengths are equal.
        unsafe { (self.table.update)(Some(p), None, changes) }
    }

    /// Bring Q up to date with data blocks that change. Panics if the lengths differ or an index is 255.
    pub fn q_update(&self, q: &mut [u8], changes: &[ParityChange<'_>]) {
        assert_changes(q.len(), changes);
        // SAFETY: the features are there, and the lengths are equal.
        unsafe { (self.table.update)(None, Some(q), changes) }
    }

    /// Bring P and Q up to date with data blocks that change. Panics as [`Kernels::q_update`].
    pub fn pq_update(&self, p: &mut [u8], q: &mut [u8], changes: &[ParityChange<'_>]) {
        assert_changes(p.len(), changes);
        assert_eq!(p.len(), q.len(), "blocks of different lengths");
        // SAFETY: the features are there, and the lengths are equal.
        unsafe { (self.table.update)(Some(p), Some(q), changes) }
    }

    /// Run CRC-32C on from `register` over `bytes`. This is the plain register, as Linux's `crc32c()`: the
    /// usual checksum is `!crc32c(!0, bytes)`, and each md format says where it inverts.
    #[must_use]
    pub fn crc32c(&self, register: u32, bytes: &[u8]) -> u32 {
        // SAFETY: the features are there.
        unsafe { (self.table.crc32c)(register, bytes) }
    }
}

/// The blocks that are there fit one row.
pub(crate) fn assert_sparse(length: usize, data: Sources<'_>) {
    assert!(data.len() <= gf::ORDER, "more than 255 data blocks in a row");
    assert_lengths(length, data.iter().copied().flatten());
}

fn assert_changes(length: usize, changes: &[ParityChange<'_>]) {
    for change in changes {
        assert!(change.old.len() == length && change.new.len() == length, "blocks of different lengths");
        assert!(usize::from(change.index) < gf::ORDER, "data index 255 has no coefficient of its own");
    }
}
