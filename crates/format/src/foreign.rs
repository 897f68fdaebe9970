//! Recognises the signatures of other software at the start and at the end of a drive, so that a drive with data is not
//! mistaken for an empty one.
//!
//! It must never miss a signature to save work. A signature is reported even if another one contradicts it, and a list
//! that overflowed says so. The only content that it reads is the name.
//!
//! The places are those of libblkid, checked against `wipefs` in `tests/foreign.rs`.

use crate::le;
use crate::superblock::{superblock_lba, MinorVersion, SUPERBLOCK_MAGIC};
use core::fmt;
use openraid_units::{Bytes, SECTOR_BYTES};

/// Number of bytes to read from the start of a drive; fewer if the drive is smaller.
pub const FOREIGN_HEAD: Bytes = Bytes::mib(1);
/// Number of bytes to read from the end of a drive; fewer if the drive is smaller.
pub const FOREIGN_TAIL: Bytes = Bytes::kib(512);
/// Maximum number of signatures in the list of one drive. Further signatures are counted but not listed.
pub const FINDINGS_MAX: usize = 32;

/// Kinds of content that must not be taken for free space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)] // the names are the formats' own
pub enum ForeignKind {
    Ext2,
    Ext3,
    Ext4,
    ExtJournal,
    Xfs,
    Btrfs,
    Bcachefs,
    F2fs,
    Erofs,
    Squashfs,
    Iso9660,
    Udf,
    HfsPlus,
    Apfs,
    Ntfs,
    Refs,
    Fat,
    ExFat,
    Swap,
    Hibernation,
    Luks,
    BitLocker,
    Lvm2,
    Zfs,
    Bcache,
    Gpt,
    ProtectiveMbr,
    Mbr,
    /// md 0.90.
    Md0,
    /// md 1.0, 1.1 or 1.2.
    Md1,
    /// openraid's own journal.
    OpenraidJournal,
    Ddf,
    IntelRaid,
    LsiRaid,
    PromiseRaid,
    NvidiaRaid,
}

impl ForeignKind {
    /// The name that `blkid` and `wipefs` use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::ExtJournal => "jbd",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Bcachefs => "bcachefs",
            Self::F2fs => "f2fs",
            Self::Erofs => "erofs",
            Self::Squashfs => "squashfs",
            Self::Iso9660 => "iso9660",
            Self::Udf => "udf",
            Self::HfsPlus => "hfsplus",
            Self::Apfs => "apfs",
            Self::Ntfs => "ntfs",
            Self::Refs => "ReFS",
            Self::Fat => "vfat",
            Self::ExFat => "exfat",
            Self::Swap => "swap",
            Self::Hibernation => "swsuspend",
            Self::Luks => "crypto_LUKS",
            Self::BitLocker => "BitLocker",
            Self::Lvm2 => "LVM2_member",
            Self::Zfs => "zfs_member",
            Self::Bcache => "bcache",
            Self::Gpt => "gpt",
            Self::ProtectiveMbr => "PMBR",
            Self::Mbr => "dos",
            Self::Md0 | Self::Md1 => "linux_raid_member",
            Self::OpenraidJournal => "openraid_journal",
            Self::Ddf => "ddf_raid_member",
            Self::IntelRaid => "isw_raid_member",
            Self::LsiRaid => "lsi_mega_raid_member",
            Self::PromiseRaid => "promise_fasttrack_raid_member",
            Self::NvidiaRaid => "nvidia_raid_member",
        }
    }

    /// The usual name, for readers.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2 file system",
            Self::Ext3 => "ext3 file system",
            Self::Ext4 => "ext4 file system",
            Self::ExtJournal => "external ext journal",
            Self::Xfs => "XFS file system",
            Self::Btrfs => "Btrfs file system",
            Self::Bcachefs => "bcachefs file system",
            Self::F2fs => "F2FS file system",
            Self::Erofs => "EROFS file system",
            Self::Squashfs => "squashfs file system",
            Self::Iso9660 => "ISO 9660 file system",
            Self::Udf => "UDF file system",
            Self::HfsPlus => "HFS+ file system",
            Self::Apfs => "APFS container",
            Self::Ntfs => "NTFS file system",
            Self::Refs => "ReFS file system",
            Self::Fat => "FAT file system",
            Self::ExFat => "exFAT file system",
            Self::Swap => "swap area",
            Self::Hibernation => "hibernation image",
            Self::Luks => "LUKS encrypted volume",
            Self::BitLocker => "BitLocker encrypted volume",
            Self::Lvm2 => "LVM2 physical volume",
            Self::Zfs => "ZFS pool member",
            Self::Bcache => "bcache device",
            Self::Gpt => "GPT partition table",
            Self::ProtectiveMbr => "protective MBR of a GPT",
            Self::Mbr => "MBR partition table",
            Self::Md0 => "Linux RAID member (md 0.90)",
            Self::Md1 => "Linux RAID member (md 1.x)",
            Self::OpenraidJournal => "openraid journal",
            Self::Ddf => "DDF RAID member",
            Self::IntelRaid => "Intel RAID member",
            Self::LsiRaid => "LSI MegaRAID member",
            Self::PromiseRaid => "Promise RAID member",
            Self::NvidiaRaid => "NVIDIA RAID member",
        }
    }
}

/// One signature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Finding {
    /// Its kind.
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
    /// Number of signatures that were found but are not in the list.
    pub unlisted: usize,
}

impl Findings {
    const fn new() -> Self {
        let none = Finding { kind: ForeignKind::Mbr, at: Bytes(0) };
        Self { found: [none; FINDINGS_MAX], len: 0, unlisted: 0 }
    }

    /// The signatures in the order in which they were found.
    #[must_use]
    pub fn list(&self) -> &[Finding] {
        &self.found[..self.len]
    }

    /// Was nothing found?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, kind: ForeignKind, at: u64) {
        let finding = Finding { kind, at: Bytes(at) };
        if self.list().contains(&finding) {
            return;
        }
        match self.found.get_mut(self.len) {
            Some(slot) => {
                *slot = finding;
                self.len += 1;
            }
            None => self.unlisted += 1,
        }
    }
}

/// Bytes that were read from a drive.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Byte offset of these bytes on the drive.
    pub start: Bytes,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// The parts of one drive that have been read.
#[derive(Clone, Copy)]
struct Drive<'a> {
    size: u64,
    stretches: &'a [Stretch<'a>],
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
    /// The offset `bytes` before the end, if the drive is large enough.
    fn before_end(self, bytes: u64) -> Option<u64> {
        self.size.checked_sub(bytes)
    }
    fn u16_at(self, at: u64) -> Option<u16> {
        self.get(at, 2).map(|bytes| le::u16_at(bytes, 0))
    }
    fn u32_at(self, at: u64) -> Option<u32> {
        self.get(at, 4).map(|bytes| le::u32_at(bytes, 0))
    }
    fn u64_at(self, at: u64) -> Option<u64> {
        self.get(at, 8).map(|bytes| le::u64_at(bytes, 0))
    }
}

/// A fixed string at a fixed place: kind, offset of the string, offset of its structure.
type Magic = (ForeignKind, u64, u64, &'static [u8]);

/// Strings at a fixed offset from the start of the drive.
const MAGICS: &[Magic] = &[
    (ForeignKind::Xfs, 0, 0, b"XFSB"),
    (ForeignKind::Squashfs, 0, 0, b"hsqs"),
    (ForeignKind::Luks, 0, 0, b"LUKS\xba\xbe"),
    (ForeignKind::Luks, 0x4000, 0x4000, b"SKUL\xba\xbe"),
    (ForeignKind::Luks, 0x8000, 0x8000, b"SKUL\xba\xbe"),
    (ForeignKind::Ntfs, 3, 0, b"NTFS    "),
    (ForeignKind::ExFat, 3, 0, b"EXFAT   "),
    (ForeignKind::BitLocker, 3, 0, b"-FVE-FS-"),
    (ForeignKind::Refs, 3, 0, b"ReFS\0"),
    (ForeignKind::Apfs, 32, 0, b"NXSB"),
    (ForeignKind::Fat, 54, 0, b"FAT12   "),
    (ForeignKind::Fat, 54, 0, b"FAT16   "),
    (ForeignKind::Fat, 82, 0, b"FAT32   "),
    (ForeignKind::Gpt, 512, 512, b"EFI PART"),
    (ForeignKind::Gpt, 4096, 4096, b"EFI PART"),
    (ForeignKind::HfsPlus, 1024, 1024, b"H+\0\x04"),
    (ForeignKind::HfsPlus, 1024, 1024, b"HX\0\x05"),
    (ForeignKind::F2fs, 1024, 1024, b"\x10\x20\xf5\xf2"),
    (ForeignKind::Erofs, 1024, 1024, b"\xe2\xe1\xf5\xe0"),
    (ForeignKind::Bcache, 4120, 4096, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    (ForeignKind::Bcachefs, 4120, 4096, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    (ForeignKind::Iso9660, 32_769, 32_768, b"CD001"),
    (ForeignKind::Btrfs, 65_600, 65_536, b"_BHRfS_M"),
];

/// Strings at a fixed offset from the end of the drive.
const MAGICS_AT_END: &[Magic] = &[
    (ForeignKind::Gpt, 512, 512, b"EFI PART"),
    (ForeignKind::Gpt, 4096, 4096, b"EFI PART"),
    (ForeignKind::Ddf, 512, 512, b"\xde\x11\xde\x11"),
    (ForeignKind::Ddf, 4096, 4096, b"\xde\x11\xde\x11"),
    (ForeignKind::IntelRaid, 1024, 1024, b"Intel Raid ISM Cfg Sig. "),
    (ForeignKind::IntelRaid, 8192, 8192, b"Intel Raid ISM Cfg Sig. "),
    (ForeignKind::NvidiaRaid, 1024, 1024, b"NVIDIA"),
    (ForeignKind::LsiRaid, 512, 512, b"$XIDE$"),
];

/// The signatures on a drive of `size`. They are searched in the parts that could be read: normally the first
/// [`FOREIGN_HEAD`] and the last [`FOREIGN_TAIL`] bytes. A signature outside these parts is not found.
#[must_use]
pub fn detect(size: Bytes, stretches: &[Stretch<'_>]) -> Findings {
    let drive = Drive { size: size.0, stretches };
    let mut findings = Findings::new();
    for &(kind, string, at, magic) in MAGICS {
        if drive.starts_with(string, magic) {
            findings.push(kind, at);
        }
    }
    for &(kind, string, at, magic) in MAGICS_AT_END {
        if let (Some(string), Some(at)) = (drive.before_end(string), drive.before_end(at)) {
            if drive.starts_with(string, magic) {
                findings.push(kind, at);
            }
        }
    }
    ext(drive, &mut findings);
    swap(drive, &mut findings);
    lvm(drive, &mut findings);
    udf(drive, &mut findings);
    zfs(drive, &mut findings);
    md(drive, &mut findings);
    journal(drive, &mut findings);
    promise(drive, &mut findings);
    mbr(drive, &mut findings);
    findings
}

/// ext2, ext3 and ext4 have the same superblock; the feature bits distinguish them.
fn ext(drive: Drive<'_>, findings: &mut Findings) {
    const SUPERBLOCK: u64 = 1024;
    const MAGIC: u16 = 0xef53;
    const HAS_JOURNAL: u32 = 0x4;
    const IS_JOURNAL: u32 = 0x8;
    /// The incompatible and read-only compatible features that ext3 supports.
    const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
    const EXT3_READ_ONLY: u32 = 0x1 | 0x2 | 0x4;
    if drive.u16_at(SUPERBLOCK + 56) != Some(MAGIC) {
        return;
    }
    let feature = |at| drive.u32_at(SUPERBLOCK + at).unwrap_or(0);
    let (compatible, incompatible, read_only) = (feature(92), feature(96), feature(100));
    let kind = if incompatible & IS_JOURNAL != 0 {
        ForeignKind::ExtJournal
    } else if incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY != 0 {
        ForeignKind::Ext4
    } else if compatible & HAS_JOURNAL != 0 {
        ForeignKind::Ext3
    } else {
        ForeignKind::Ext2
    };
    findings.push(kind, SUPERBLOCK);
}

/// The signature of a swap area is at the end of its first page. The page size depends on the machine that made the
/// swap area.
fn swap(drive: Drive<'_>, findings: &mut Findings) {
    const LENGTH: u64 = 10;
    for page in [4096, 8192, 16_384, 32_768, 65_536] {
        let at = page - LENGTH;
        if drive.starts_with(at, b"SWAPSPACE2") || drive.starts_with(at, b"SWAP-SPACE") {
            findings.push(ForeignKind::Swap, 0);
        }
        let images: [&[u8]; 4] = [b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];
        if images.iter().any(|image| drive.starts_with(at, image)) {
            findings.push(ForeignKind::Hibernation, 0);
        }
    }
}

/// An LVM2 label is in one of the first four sectors.
fn lvm(drive: Drive<'_>, findings: &mut Findings) {
    for sector in 0..4 {
        let at = sector * SECTOR_BYTES;
        if drive.starts_with(at, b"LABELONE") && drive.starts_with(at + 24, b"LVM2 001") {
            findings.push(ForeignKind::Lvm2, at);
        }
    }
}

/// The descriptor with the text "UDF" is one of several; each has 2 KiB, and the first is at 32 KiB.
fn udf(drive: Drive<'_>, findings: &mut Findings) {
    for descriptor in 0..16 {
        let at = 32_768 + descriptor * 2048;
        if drive.starts_with(at + 1, b"NSR02") || drive.starts_with(at + 1, b"NSR03") {
            findings.push(ForeignKind::Udf, at);
        }
    }
}

/// There are two labels of 256 KiB at each end of the drive. The second half of each label is a ring of uberblocks.
fn zfs(drive: Drive<'_>, findings: &mut Findings) {
    const LABEL: u64 = 256 << 10;
    const RING: u64 = 128 << 10;
    const STEP: u64 = 1024;
    const MAGIC: u64 = 0x00ba_b10c;
    let end = drive.size / LABEL * LABEL;
    for label in [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)].into_iter().flatten() {
        let uberblock = (0..RING / STEP).map(|index| label + RING + index * STEP).find(|&at| {
            let magic = drive.u64_at(at);
            magic == Some(MAGIC) || magic == Some(MAGIC.swap_bytes())
        });
        if uberblock.is_some() {
            findings.push(ForeignKind::Zfs, label);
        }
    }
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

/// The distance of the block from the end depends on the generation of the Promise controller.
fn promise(drive: Drive<'_>, findings: &mut Findings) {
    const SECTORS_FROM_END: [u64; 12] = [63, 255, 256, 16, 399, 591, 675, 735, 911, 974, 991, 951];
    for at in SECTORS_FROM_END.iter().filter_map(|sectors| drive.before_end(sectors * SECTOR_BYTES)) {
        if drive.starts_with(at, b"Promise Technology, Inc.") {
            findings.push(ForeignKind::PromiseRaid, at);
        }
    }
}

/// A partition table. The boot sector of a file system ends with the same two bytes. In a partition table the first
/// byte of each entry is 00 or 80, and at least one entry has a type.
fn mbr(drive: Drive<'_>, findings: &mut Findings) {
    const ENTRIES: usize = 446;
    const ENTRY: usize = 16;
    const TYPE: usize = 4;
    const PROTECTIVE: u8 = 0xee;
    let Some(sector) = drive.get(0, 512).filter(|sector| sector.ends_with(&[0x55, 0xaa])) else { return };
    let entries = || sector[ENTRIES..510].chunks_exact(ENTRY);
    let boot_sector = findings.list().iter().any(|finding| {
        let shares_it = matches!(
            finding.kind,
            ForeignKind::Fat | ForeignKind::ExFat | ForeignKind::Ntfs | ForeignKind::BitLocker | ForeignKind::Refs
        );
        shares_it && finding.at == Bytes(0)
    });
    let plausible = entries().all(|entry| entry[0] & 0x7f == 0) && entries().any(|entry| entry[TYPE] != 0);
    if !plausible || boot_sector {
        return;
    }
    let kind =
        if entries().any(|entry| entry[TYPE] == PROTECTIVE) { ForeignKind::ProtectiveMbr } else { ForeignKind::Mbr };
    findings.push(kind, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_on_an_empty_drive_or_in_no_bytes() {
        let zeroes = [0; 8192];
        for size in [0, 1, 511, 512, 8192, u64::MAX] {
            let all =
                [Stretch { start: Bytes(0), bytes: &zeroes }, Stretch { start: Bytes(u64::MAX - 4), bytes: &[0; 4] }];
            assert!(detect(Bytes(size), &all).is_empty());
            assert!(detect(Bytes(size), &[]).is_empty());
        }
    }

    #[test]
    fn a_signature_is_found_in_whichever_stretch_has_it() {
        let mut tail = [0; 4096];
        tail[4096 - 512..4096 - 504].copy_from_slice(b"EFI PART");
        let size = 1 << 40;
        let stretches =
            [Stretch { start: Bytes(0), bytes: &[0; 512] }, Stretch { start: Bytes(size - 4096), bytes: &tail }];
        let found = detect(Bytes(size), &stretches);
        assert_eq!(found.list(), [Finding { kind: ForeignKind::Gpt, at: Bytes(size - 512) }]);
    }

    #[test]
    fn labels_without_a_tool_to_make_them_are_known_by_their_strings() {
        let mut head = std::vec![0; 1 << 20];
        le::put(&mut head, 512, b"LABELONE");
        le::put(&mut head, 536, b"LVM2 001");
        le::put(&mut head, (128 << 10) + 5 * 1024, &0x00ba_b10c_u64.to_le_bytes());
        le::put(&mut head, (384 << 10) + 1024, &0x00ba_b10c_u64.to_be_bytes());
        le::put(
            &mut head,
            4120,
            &[0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d, 0xf7, 0xef],
        );
        let mut tail = std::vec![0; 512 << 10];
        let size = 1 << 30;
        le::put(&mut tail, (512 << 10) - 63 * 512, b"Promise Technology, Inc.");
        le::put(&mut tail, (512 << 10) - 512, b"$XIDE$");
        let tail = Stretch { start: Bytes(size - (512 << 10)), bytes: &tail };
        let found = detect(Bytes(size), &[Stretch { start: Bytes(0), bytes: &head }, tail]);
        let places: std::vec::Vec<_> = found.list().iter().map(|it| (it.kind, it.at.0)).collect();
        assert_eq!(
            places,
            [
                (ForeignKind::Bcachefs, 4096),
                (ForeignKind::LsiRaid, size - 512),
                (ForeignKind::Lvm2, 512),
                (ForeignKind::Zfs, 0),
                (ForeignKind::Zfs, 256 << 10),
                (ForeignKind::PromiseRaid, size - 63 * 512),
            ]
        );
    }

    #[test]
    fn a_journal_is_known_by_either_of_its_superblocks() {
        let size = (16 << 20) + 512;
        let last = (16 << 20) - 4096;
        for at in [0, last] {
            let found = detect(Bytes(size), &[Stretch { start: Bytes(at), bytes: b"ORAIDJSB\x01\0\0\0" }]);
            assert_eq!(found.list(), [Finding { kind: ForeignKind::OpenraidJournal, at: Bytes(at) }]);
        }
    }

    #[test]
    fn a_full_list_counts_what_it_cannot_hold() {
        let mut findings = Findings::new();
        for at in 0..40 {
            findings.push(ForeignKind::Zfs, at);
        }
        findings.push(ForeignKind::Zfs, 0);
        assert_eq!((findings.list().len(), findings.unlisted), (FINDINGS_MAX, 8));
    }
}
