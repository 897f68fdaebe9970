//! Recognises the signatures at the start and at the end of a drive that openraid acts on, or that libblkid misses. All
//! others are named by libblkid's `wipefs` (docs/decisions/array-start.md#foreign-signatures).
//!
//! It must never miss a signature to save work. A signature is reported even if another one contradicts it. The only
//! content that it reads is the name.

use crate::little_endian;
use crate::superblock::{superblock_lba, MinorVersion, SUPERBLOCK_MAGIC};
use core::fmt;
use openraid_units::{Bytes, SECTOR_BYTES};

/// Number of bytes to read from the start of a drive; fewer if the drive is smaller. The last signature of libblkid at a
/// start is at 4 MiB (a copy of the LUKS header).
pub const FOREIGN_HEAD: Bytes = Bytes(Bytes::mib(4).0 + Bytes::kib(64).0);
/// Number of bytes to read from the end of a drive; fewer if the drive is smaller.
pub const FOREIGN_TAIL: Bytes = Bytes::mib(1);
/// Maximum number of signatures in the list of one drive: one each of md 0.90 and DDF, three of md 1.x, two of a journal.
const FINDINGS_MAX: usize = 7;

/// Kinds of content that are recognised without `wipefs`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ForeignKind {
    /// md 0.90.
    Md0,
    /// md 1.0, 1.1 or 1.2.
    Md1,
    /// openraid's own journal.
    OpenraidJournal,
    /// An anchor of the common format of RAID cards. libblkid knows it in two places, and only with more around it.
    Ddf,
}

impl ForeignKind {
    /// The name that `blkid` and `wipefs` use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md0 | Self::Md1 => "linux_raid_member",
            Self::OpenraidJournal => "openraid_journal",
            Self::Ddf => "ddf_raid_member",
        }
    }

    /// The usual name, for readers.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Md0 => "Linux RAID member (md 0.90)",
            Self::Md1 => "Linux RAID member (md 1.x)",
            Self::OpenraidJournal => "openraid journal",
            Self::Ddf => "DDF RAID member",
        }
    }
}

/// One signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Finding {
    /// Kind of the signature.
    pub kind: ForeignKind,
    /// Byte offset of its structure on the drive.
    pub at: Bytes,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.kind.description(), self.at.0)
    }
}

/// The findings on one drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Findings {
    found: [Finding; FINDINGS_MAX],
    len: usize,
}

impl Findings {
    const fn new() -> Self {
        Self { found: [Finding { kind: ForeignKind::Md0, at: Bytes(0) }; FINDINGS_MAX], len: 0 }
    }

    /// The signatures in the order in which they were found.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.found[..self.len]
    }

    fn push(&mut self, kind: ForeignKind, at: u64) {
        let finding = Finding { kind, at: Bytes(at) };
        if !self.list().contains(&finding) {
            self.found[self.len] = finding;
            self.len += 1;
        }
    }
}

/// Bytes that were read from a drive.
#[derive(Clone, Copy, Debug)]
pub struct ReadStretch<'a> {
    /// Byte offset of these bytes on the drive.
    pub start: Bytes,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// The parts of one drive that have been read.
#[derive(Clone, Copy)]
struct Drive<'a> {
    size: u64,
    stretches: &'a [ReadStretch<'a>],
}

impl<'a> Drive<'a> {
    /// The `len` bytes at `at`, if they were read.
    fn get(self, at: u64, len: usize) -> Option<&'a [u8]> {
        self.stretches.iter().find_map(|stretch| {
            let from = usize::try_from(at.checked_sub(stretch.start.0)?).ok()?;
            stretch.bytes.get(from..from.checked_add(len)?)
        })
    }
    fn starts_with(self, at: u64, magic: &[u8]) -> bool {
        self.get(at, magic.len()) == Some(magic)
    }
    fn u32_at(self, at: u64) -> Option<u32> {
        self.get(at, 4).map(|bytes| little_endian::u32_at(bytes, 0))
    }
}

/// The signatures on a drive of `size`. They are searched in the parts that could be read: normally the first
/// [`FOREIGN_HEAD`] and the last [`FOREIGN_TAIL`] bytes. A signature outside these parts is not found.
#[must_use]
pub fn detect(size: Bytes, stretches: &[ReadStretch<'_>]) -> Findings {
    let drive = Drive { size: size.0, stretches };
    let mut findings = Findings::new();
    md(drive, &mut findings);
    journal(drive, &mut findings);
    ddf(drive, &mut findings);
    findings
}

/// md 0.90 is at the last 64 KiB boundary that has 64 KiB after it, in either byte order. md 1.x is at one of three
/// places.
fn md(drive: Drive<'_>, findings: &mut Findings) {
    const OLD_ALIGN: u64 = 64 << 10;
    let sectors = Bytes(drive.size).sectors_floor();
    if let Some(at) = (drive.size / OLD_ALIGN * OLD_ALIGN).checked_sub(OLD_ALIGN) {
        let words = [Some(SUPERBLOCK_MAGIC), Some(SUPERBLOCK_MAGIC.swap_bytes())];
        if words.contains(&drive.u32_at(at)) && drive.u32_at(at + 4) == Some(0) {
            findings.push(ForeignKind::Md0, at);
        }
    }
    for lba in MinorVersion::ALL.iter().filter_map(|&minor| superblock_lba(minor, sectors)) {
        let at = lba.get() * SECTOR_BYTES;
        if drive.u32_at(at) == Some(SUPERBLOCK_MAGIC) && drive.u32_at(at + 4) == Some(1) {
            findings.push(ForeignKind::Md1, at);
        }
    }
}

/// The journal has a superblock in the first 4 KiB and another in the last whole 4 KiB.
fn journal(drive: Drive<'_>, findings: &mut Findings) {
    const MAGIC: &[u8] = b"ORAIDJSB";
    const BLOCK: u64 = 4096;
    let last = (drive.size / BLOCK * BLOCK).checked_sub(BLOCK).filter(|at| *at > 0);
    for at in [Some(0), last].into_iter().flatten() {
        if drive.starts_with(at, MAGIC) {
            findings.push(ForeignKind::OpenraidJournal, at);
        }
    }
}

/// The anchor is in the last sector, or wherever before it the card keeps data of its own: any sector of the end.
fn ddf(drive: Drive<'_>, findings: &mut Findings) {
    const MAGIC: &[u8] = b"\xde\x11\xde\x11";
    let first = drive.size.saturating_sub(FOREIGN_TAIL.0).next_multiple_of(SECTOR_BYTES);
    let sectors = first / SECTOR_BYTES..drive.size / SECTOR_BYTES;
    let anchor = sectors.rev().map(|sector| sector * SECTOR_BYTES).find(|at| drive.starts_with(*at, MAGIC));
    if let Some(at) = anchor {
        findings.push(ForeignKind::Ddf, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_on_an_empty_drive_or_in_no_bytes() {
        let zeroes = [0; 8192];
        for size in [0, 1, 511, 512, 8192, u64::MAX] {
            let all = [
                ReadStretch { start: Bytes(0), bytes: &zeroes },
                ReadStretch { start: Bytes(u64::MAX - 4), bytes: &[0; 4] },
            ];
            assert!(detect(Bytes(size), &all).list().is_empty());
            assert!(detect(Bytes(size), &[]).list().is_empty());
        }
    }

    #[test]
    fn a_signature_is_found_in_whichever_stretch_has_it() {
        let size = 1 << 40;
        // Cards leave room after the anchor: in 2,048 sectors it may be in any.
        for from_end in [512, 4096, 257 * 512, 1 << 20] {
            let mut tail = std::vec![0; 1 << 20];
            little_endian::put(&mut tail, (1 << 20) - from_end, b"\xde\x11\xde\x11");
            let tail = ReadStretch { start: Bytes(size - (1 << 20)), bytes: &tail };
            let found = detect(Bytes(size), &[ReadStretch { start: Bytes(0), bytes: &[0; 512] }, tail]);
            assert_eq!(found.list(), [Finding { kind: ForeignKind::Ddf, at: Bytes(size - from_end as u64) }]);
        }
    }

    #[test]
    fn a_journal_is_known_by_either_of_its_superblocks() {
        let size = (16 << 20) + 512;
        let last = (16 << 20) - 4096;
        for at in [0, last] {
            let found = detect(Bytes(size), &[ReadStretch { start: Bytes(at), bytes: b"ORAIDJSB\x01\0\0\0" }]);
            assert_eq!(found.list(), [Finding { kind: ForeignKind::OpenraidJournal, at: Bytes(at) }]);
        }
    }
}
