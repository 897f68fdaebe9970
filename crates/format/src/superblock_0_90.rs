//! The md superblock of version 0.90: arrays of old kernels, of some NAS, and to boot from. openraid only reads it.
//!
//! ```text
//!  the last 64 KiB boundary that leaves 64 KiB to the end of the drive: 1024 words of 32 bits, in the byte order of
//!  the machine
//!    0 magic, version   5, 13..15 UUID   7 level   8 KiB used of each member   10 slots   11 minor of /dev/mdN
//!   32 time, state      38 checksum      39 events (64 bits)   41 events of the resync position   43 that position
//!   64 layout           65 chunk in bytes
//!  128 27 descriptors of 32 words: number, major, minor, slot, state       992 the member's own descriptor
//! ```
//!
//! Source of the fields: the kernel's `md_p.h` (uapi), checked against arrays that mdadm and the driver made
//! (`crates/openraid/tests/old_arrays.rs`).

use core::fmt;

use crate::feature::{DeviceFlags, FeatureMap};
use crate::identity::{SetName, Timestamp, Uuid};
use crate::level::MdLevel;
use crate::little_endian;
use crate::role::{DeviceRole, RoleTable};
use crate::superblock::{
    superblock_lba, BadBlockPlace, MinorVersion, Reshape, Superblock, Unassigned, SUPERBLOCK_BYTES_MAX,
    SUPERBLOCK_MAGIC,
};
use crate::superblock_checks::{self, SuperblockError};
use openraid_units::{DriveLba, Sectors, Slot};

/// Words with one value each.
mod word {
    pub const MAGIC: usize = 0;
    pub const MAJOR: usize = 1;
    pub const MINOR: usize = 2;
    pub const UUID: [usize; 4] = [5, 13, 14, 15];
    pub const CREATED: usize = 6;
    pub const LEVEL: usize = 7;
    pub const SIZE_KIB: usize = 8;
    pub const RAID_DISKS: usize = 10;
    pub const MD_MINOR: usize = 11;
    pub const UPDATED: usize = 32;
    pub const STATE: usize = 33;
    pub const CHECKSUM: usize = 38;
    pub const EVENTS: usize = 39;
    pub const POSITION_EVENTS: usize = 41;
    pub const POSITION: usize = 43;
    pub const LAYOUT: usize = 64;
    pub const CHUNK_BYTES: usize = 65;
    pub const DISKS: usize = 128;
    pub const THIS_DISK: usize = 992;
}

/// Descriptors in a superblock, and words of each.
const DISKS: usize = 27;
const DISK_WORDS: usize = 32;
/// The superblock's place and the room for it.
const ALIGN: Sectors = Sectors::kib(64);
/// The minor versions: at rest, and during a reshape.
const MINOR: u32 = 90;
const MINOR_RESHAPE: u32 = 91;
/// Bit of the state: all redundancy is in sync.
const CLEAN: u32 = 1;
/// Bits of a descriptor's state.
const FAULTY: u32 = 1;
const SYNC: u32 = 1 << 2;
const WRITE_MOSTLY: u32 = 1 << 9;

/// The reason why a superblock of version 0.90 cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Md0Error {
    /// There are fewer bytes than it has.
    Truncated(usize),
    /// It is none.
    NoMagic,
    /// A machine of the other byte order wrote it.
    OtherByteOrder,
    /// The array is being reshaped, or the minor version is unknown.
    Minor(u32),
    /// The checksum does not match.
    Checksum {
        /// The checksum in the superblock.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The member's own number has no descriptor.
    Number(u32),
    /// A field has an impossible value.
    Field(SuperblockError),
}

impl fmt::Display for Md0Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(have) => write!(f, "it has {have} bytes and should have {SUPERBLOCK_BYTES_MAX}"),
            Self::NoMagic => f.write_str("it is no superblock of md 0.90"),
            Self::OtherByteOrder => f.write_str("a machine of the other byte order wrote it; assemble it there"),
            Self::Minor(MINOR_RESHAPE) => f.write_str("the array is being reshaped; let md finish that"),
            Self::Minor(minor) => write!(f, "its minor version {minor} is unknown"),
            Self::Checksum { stored, computed } => {
                write!(f, "its checksum is {stored:08x}, and that of its bytes {computed:08x}: it is damaged")
            }
            Self::Number(number) => write!(f, "its own number {number} has no descriptor"),
            Self::Field(error) => error.fmt(f),
        }
    }
}
impl core::error::Error for Md0Error {}

/// The place of a superblock of version 0.90; none on a drive that is too small.
#[must_use]
pub fn md0_lba(drive_size: Sectors) -> Option<DriveLba> {
    let end = drive_size.get() / ALIGN.get() * ALIGN.get();
    end.checked_sub(ALIGN.get()).filter(|at| *at > 0).map(DriveLba)
}

/// A superblock as words.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn u32(&self, word: usize) -> u32 {
        little_endian::u32_at(self.0, word * 4)
    }

    fn u64(&self, word: usize) -> u64 {
        little_endian::u64_at(self.0, word * 4)
    }

    /// The sum of all words except the checksum, with its carries added.
    fn checksum(&self) -> u32 {
        let all = (0..SUPERBLOCK_BYTES_MAX / 4).filter(|word| *word != word::CHECKSUM);
        let sum: u64 = all.map(|word| u64::from(self.u32(word))).sum();
        little_endian::u32_at(&((sum & u64::from(u32::MAX)) + (sum >> 32)).to_le_bytes(), 0)
    }

    /// The role and the state of the descriptor with this number.
    fn disk(&self, number: usize) -> (DeviceRole, u32) {
        let at = word::DISKS + number * DISK_WORDS;
        let (number_said, slot, state) = (self.u32(at), self.u32(at + 3), self.u32(at + 4));
        let role = match u16::try_from(slot) {
            _ if state & FAULTY != 0 || usize::try_from(number_said) != Ok(number) => DeviceRole::Faulty,
            Ok(slot) if state & SYNC != 0 => DeviceRole::Active(Slot(slot)),
            _ => DeviceRole::Spare,
        };
        (role, state)
    }
}

impl Superblock {
    /// Decodes a superblock of version 0.90 as the one of version 1.0 that says the same. It must never be written: the
    /// place of version 1.0 is another one. Its bitmap is left out, because a reader does not need it.
    ///
    /// # Errors
    /// The first fault.
    pub fn decode_md0(bytes: &[u8], drive_size: Sectors) -> Result<Self, Md0Error> {
        let bytes = bytes.get(..SUPERBLOCK_BYTES_MAX).ok_or(Md0Error::Truncated(bytes.len()))?;
        let words = Words(bytes);
        match (words.u32(word::MAGIC), words.u32(word::MAJOR), words.u32(word::MINOR)) {
            (SUPERBLOCK_MAGIC, 0, MINOR) => {}
            (SUPERBLOCK_MAGIC, 0, minor) => return Err(Md0Error::Minor(minor)),
            (magic, ..) if magic.swap_bytes() == SUPERBLOCK_MAGIC => return Err(Md0Error::OtherByteOrder),
            _ => return Err(Md0Error::NoMagic),
        }
        let (stored, computed) = (words.u32(word::CHECKSUM), words.checksum());
        if stored != computed {
            return Err(Md0Error::Checksum { stored, computed });
        }
        let superblock = words.superblock(drive_size)?;
        superblock_checks::all(&superblock, drive_size).map_err(Md0Error::Field)?;
        Ok(superblock)
    }
}

impl Words<'_> {
    fn superblock(&self, drive_size: Sectors) -> Result<Superblock, Md0Error> {
        let too_small = Md0Error::Field(SuperblockError::DriveTooSmall(drive_size));
        let at = md0_lba(drive_size).ok_or(too_small)?;
        let super_offset = superblock_lba(MinorVersion::V1_0, drive_size).ok_or(too_small)?;
        let number = little_endian::i32_at(self.0, word::LEVEL * 4);
        let level = MdLevel::from_number(number).ok_or(Md0Error::Field(SuperblockError::UnknownLevel(number)))?;
        let number_said = self.u32(word::THIS_DISK);
        let place = usize::try_from(number_said)
            .ok()
            .filter(|number_said| *number_said < DISKS)
            .ok_or(Md0Error::Number(number_said))?;
        let mut roles = RoleTable::new(DISKS);
        (0..DISKS).for_each(|number| roles.set(number, self.disk(number).0));
        let set_uuid = self.uuid();
        // The superblock has no identity of the member: the set and the number are one.
        let mut device_uuid = set_uuid;
        device_uuid.0[0] ^= self.0[word::THIS_DISK * 4] | 0x80;
        let mut device_flags = DeviceFlags::default();
        if self.disk(place).1 & WRITE_MOSTLY != 0 {
            device_flags = DeviceFlags::WRITE_MOSTLY;
        }
        Ok(Superblock {
            minor: MinorVersion::V1_0,
            features: FeatureMap::default(),
            set_uuid,
            set_name: self.name(),
            created: Timestamp::new(u64::from(self.u32(word::CREATED)), 0),
            level,
            layout: self.u32(word::LAYOUT),
            size: Sectors(u64::from(self.u32(word::SIZE_KIB)) * 2),
            chunk: Sectors(u64::from(self.u32(word::CHUNK_BYTES) / 512)),
            raid_disks: superblock_checks::raid_disks(level, self.u32(word::RAID_DISKS)).map_err(Md0Error::Field)?,
            bitmap_or_ppl: 0,
            reshape: Reshape::default(),
            data_offset: DriveLba::ZERO,
            data_size: Sectors(at.get()),
            super_offset,
            recovery_or_tail: 0,
            dev_number: number_said,
            corrected_reads: 0,
            device_uuid,
            device_flags,
            bad_blocks: BadBlockPlace::default(),
            updated: Timestamp::new(u64::from(self.u32(word::UPDATED)), 0),
            events: self.u64(word::EVENTS),
            resync_offset: self.resync_offset(),
            logical_block_size: 0,
            roles,
            journal: None,
            journal_reached: None,
            unassigned: Unassigned::default(),
        })
    }

    /// The words in the order in which mdadm prints them.
    fn uuid(&self) -> Uuid {
        let mut uuid = [0; 16];
        for (bytes, word) in uuid.chunks_exact_mut(4).zip(word::UUID) {
            bytes.copy_from_slice(&self.u32(word).to_be_bytes());
        }
        Uuid(uuid)
    }

    /// The array has no name: the kernel calls it by its minor number.
    fn name(&self) -> SetName {
        let (mut digits, mut rest) = ([0; 10], self.u32(word::MD_MINOR));
        let mut first = digits.len();
        while first == digits.len() || rest > 0 {
            first -= 1;
            digits[first] = b'0' + (rest % 10).to_le_bytes()[0];
            rest /= 10;
        }
        let mut name = SetName([0; SetName::BYTES]);
        name.0[..2].copy_from_slice(b"md");
        name.0[2..][..digits.len() - first].copy_from_slice(&digits[first..]);
        name
    }

    fn resync_offset(&self) -> u64 {
        if self.u32(word::STATE) & CLEAN != 0 {
            u64::MAX
        } else if self.u64(word::POSITION_EVENTS) == self.u64(word::EVENTS) {
            u64::from(self.u32(word::POSITION))
        } else {
            0
        }
    }
}
