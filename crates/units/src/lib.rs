//! Newtypes for time, addresses and sizes, and the levels as users name them.
//!
//! Every number that is an address, a size, a time or an index has its own type here, so that a member
//! address cannot be used where an array address is meant. There are no conversions between address
//! spaces in this crate: only `openraid-core`'s geometry maps one space to another.
//!
//! The sector of this crate is always 512 bytes, whatever a drive's logical block size is; that is the unit
//! of the md superblock and of the kernel's block layer.

#![no_std]
#![forbid(unsafe_code)]

mod address;
mod index;
mod level;
mod size;
mod time;

pub use address::{ArrayOffset, DriveLba, MemberLba, PoolOffset, SetLba};
pub use index::{ArrayId, DriveId, SetId, Slot, StripeIndex, Tag, TagKind, Token};
pub use level::ArrayLevel;
pub use size::{BlockSize, BlockSizeError, Bytes, ReadableBytes, ReadableSectors, Sectors, SECTOR_BYTES, SECTOR_SHIFT};
pub use time::{Instant, Nanos};
