//! Encode and decode every byte that openraid shares with Linux md: superblocks 1.0, 1.1 and 1.2, the
//! write-intent bitmap, the bad-block log and the partial parity log; and recognise what belongs to others.
//!
//! Everything here is a pure function of bytes. The crate does no I/O, keeps no state, allocates nothing and
//! never trusts what it reads: any byte string ends in a typed value or in an error that says what is wrong.
//! The drawing of all structures is in `docs/on-disk.md`.
//!
//! All numbers on disk are little-endian, and all sectors have 512 bytes whatever the drive's block size is.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod check;
mod feature;
mod identity;
mod le;
mod level;
mod role;
mod superblock;

pub use check::{MetadataArea, SuperblockError};
pub use feature::{DeviceFlags, FeatureMap};
pub use identity::{SetName, SetNameError, Timestamp, Uuid, UuidError};
pub use level::{FarSets, MdLevel, Raid0Layout, Raid10Layout};
pub use role::{Role, RoleTable, ROLES_MAX};
pub use superblock::{
    superblock_lba, BadBlockPlace, MinorVersion, PplPlace, Reshape, Superblock, Unassigned, SUPERBLOCK_BYTES_MAX,
    SUPERBLOCK_MAGIC,
};
