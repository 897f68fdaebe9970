//! The arithmetic of redundancy: XOR, P and Q, their update and check, recovery of any one or two data blocks,
//! and CRC-32C.
//!
//! [`Kernels`] is a table of functions chosen once at start for the CPU. Its functions are safe, take slices of any
//! length and alignment, panic if lengths disagree, and neither allocate nor block. This crate must never know members,
//! layouts or arrays: the caller gives the data blocks of a row in the order of their coefficients, and `data[i]`
//! counts in Q with g^i (see [`gf`]).
//!
//! Speed is highest for blocks of 4 to 64 KiB whose data has just been touched; `benches/isal.rs` compares it with
//! Intel's ISA-L.

#![no_std]

/// Only to ask the CPU for its features.
#[cfg(target_arch = "x86_64")]
extern crate std;

pub mod gf;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod check;
mod compute;
mod crc32c;
#[cfg(target_arch = "x86_64")]
mod crc32c_fold;
mod dispatch;
#[cfg(target_arch = "x86_64")]
mod gfni;
mod kernel_table;
mod lane;
mod loops;
mod recover;
mod reference;
mod short_list;
mod word;

pub use check::{Difference, PqVerdict, SECTOR_BYTES};
pub use dispatch::Kernels;
pub use kernel_table::ParityChange;
pub use recover::TooManyLost;
pub use short_list::BlockList;

/// All blocks are as long as the first.
#[inline]
fn assert_lengths<'a>(length: usize, mut blocks: impl Iterator<Item = &'a [u8]>) {
    assert!(blocks.all(|block| block.len() == length), "blocks of different lengths");
}

/// The data blocks fit one row: equal lengths, and each has a coefficient of its own.
#[inline]
fn assert_row<'a>(length: usize, blocks: impl ExactSizeIterator<Item = &'a [u8]>) {
    assert!(blocks.len() <= gf::ORDER, "more than 255 data blocks in a row");
    assert_lengths(length, blocks);
}
