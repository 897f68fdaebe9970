//! The md superblock, versions 1.0, 1.1 and 1.2: one structure, three places.
//!
//! ```text
//!  1.1  sector 0                     1.2  sector 8
//!  1.0  the last 4 KiB boundary that leaves at least 8 KiB to the end of the drive
//! ```
//!
//! Sizes are sectors of 512 bytes. The header has 256 bytes; two bytes for each device number follow. It must
//! never be written with a wrong checksum, and a field that has no meaning yet must come back as it was read:
//! a later kernel may have put something there.
//!
//! Source of the fields: the kernel's `md_p.h` (uapi) and `Documentation/admin-guide/md.rst`, checked against
//! images made by the driver of Linux 6.1 (`tests/golden`).

use crate::feature::{DeviceFlags, FeatureMap};
use crate::identity::{SetName, Timestamp, Uuid};
use crate::level::{MdLevel, Raid0Layout, Raid10Layout};
use crate::little_endian;
use crate::role::{DeviceRole, RoleTable, ROLES_MAX};
use crate::superblock_checks::{self, SuperblockError};
use openraid_units::{BlockSize, DriveLba, MemberLba, Sectors, SECTOR_BYTES};

/// The first four bytes of every md superblock, little-endian.
pub const SUPERBLOCK_MAGIC: u32 = 0xa92b_4efc;
/// Maximum size of a superblock in bytes; a read of this length always covers the whole superblock.
pub const SUPERBLOCK_BYTES_MAX: usize = 4096;

pub(crate) const HEADER_BYTES: usize = 256;
const MAJOR: u32 = 1;
const _: () = assert!(HEADER_BYTES + 2 * ROLES_MAX == SUPERBLOCK_BYTES_MAX);

/// Byte offsets of the fields.
pub(crate) mod at {
    pub const MAGIC: usize = 0;
    pub const MAJOR: usize = 4;
    pub const FEATURES: usize = 8;
    pub const PAD_12: usize = 12;
    pub const SET_UUID: usize = 16;
    pub const SET_NAME: usize = 32;
    pub const CREATED: usize = 64;
    pub const LEVEL: usize = 72;
    pub const LAYOUT: usize = 76;
    pub const SIZE: usize = 80;
    pub const CHUNK: usize = 88;
    pub const RAID_DISKS: usize = 92;
    pub const BITMAP_OR_PPL: usize = 96;
    pub const NEW_LEVEL: usize = 100;
    pub const RESHAPE_POSITION: usize = 104;
    pub const DELTA_DISKS: usize = 112;
    pub const NEW_LAYOUT: usize = 116;
    pub const NEW_CHUNK: usize = 120;
    pub const NEW_OFFSET: usize = 124;
    pub const DATA_OFFSET: usize = 128;
    pub const DATA_SIZE: usize = 136;
    pub const SUPER_OFFSET: usize = 144;
    pub const RECOVERY_OR_TAIL: usize = 152;
    pub const DEV_NUMBER: usize = 160;
    pub const CORRECTED_READS: usize = 164;
    pub const DEVICE_UUID: usize = 168;
    pub const DEVICE_FLAGS: usize = 184;
    pub const BAD_BLOCK_SHIFT: usize = 185;
    pub const BAD_BLOCK_SIZE: usize = 186;
    pub const BAD_BLOCK_OFFSET: usize = 188;
    pub const UPDATED: usize = 192;
    pub const EVENTS: usize = 200;
    pub const RESYNC_OFFSET: usize = 208;
    pub const CHECKSUM: usize = 216;
    pub const MAX_DEV: usize = 220;
    pub const LOGICAL_BLOCK_SIZE: usize = 224;
    /// A field of openraid; for md it is padding.
    pub const JOURNAL: usize = 228;
    /// A field of openraid; for md it is padding.
    pub const JOURNAL_REACHED: usize = 244;
    /// A field of openraid; for md it is padding.
    pub const JOURNAL_GENERATION: usize = 252;
    pub const PAD_228: usize = 228;
}

/// Place of a version-1 superblock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MinorVersion {
    /// Near the end of the drive; the data begin at sector 0.
    V1_0,
    /// At the start of the drive.
    V1_1,
    /// 4 KiB from the start of the drive.
    V1_2,
}

impl MinorVersion {
    /// Every place, in the order of the search.
    pub const ALL: [Self; 3] = [Self::V1_2, Self::V1_1, Self::V1_0];
}

/// Prints `1.0`, `1.1` or `1.2`.
impl core::fmt::Display for MinorVersion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
        })
    }
}

/// The sector of the superblock on a drive of this size; `None` if the drive is too small for one (12 KiB is the
/// minimum).
#[must_use]
pub const fn superblock_lba(minor: MinorVersion, drive_size: Sectors) -> Option<DriveLba> {
    const LEAST: u64 = 24;
    const FROM_END: u64 = 16;
    const ALIGN: u64 = 8;
    if drive_size.0 < LEAST {
        return None;
    }
    Some(DriveLba(match minor {
        MinorVersion::V1_0 => (drive_size.0 - FROM_END) / ALIGN * ALIGN,
        MinorVersion::V1_1 => 0,
        MinorVersion::V1_2 => 8,
    }))
}

/// A reshape that is under way, or stale numbers of an earlier one. The numbers have a meaning only if
/// [`FeatureMap::RESHAPE_ACTIVE`] is set (`new_offset` only with [`FeatureMap::NEW_OFFSET`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Reshape {
    /// Number of the level before or after the reshape.
    pub new_level: i32,
    /// Number of array sectors that are reshaped.
    pub position: u64,
    /// Number of members that are added; negative if members are removed.
    pub delta_disks: i32,
    /// Layout after the reshape.
    pub new_layout: u32,
    /// Chunk after the reshape, in sectors.
    pub new_chunk: u32,
    /// Sectors to add to `data_offset`.
    pub new_offset: i32,
}

/// Place of the bad-block log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct BadBlockPlace {
    /// Base-2 logarithm of the unit of an entry, in sectors.
    pub shift: u8,
    /// Sectors of the log; 0 if there is none.
    pub size: u16,
    /// Sectors from the superblock to the log, negative if the log is before it; 0 if there is no log.
    pub offset: i32,
}

/// Place of the partial parity log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PplPlace {
    /// Sectors from the superblock to the area, negative if the area is before it.
    pub offset: i16,
    /// Sectors of the area.
    pub size: u16,
}

/// How far a journal had come when a superblock was made. A copy of the journal that ends before that is older than the
/// member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct JournalReached {
    /// This entry was durable, and all entries before it.
    pub entry: u64,
    /// The journal's superblock with this generation, or a later one, knows the set; `u32::MAX` for any above it.
    pub generation: u32,
}

/// Fields without a known meaning. They are kept so that a later write does not lose them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Unassigned {
    /// Bytes 12 to 15.
    pub pad_12: [u8; 4],
    /// Bytes 228 to 255, if they do not name a journal and say how far it had come.
    pub pad_228: [u8; 28],
}

/// A version-1 superblock with every field on disk and no derived field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Place of the superblock. It is not stored; it follows from `super_offset`.
    pub minor: MinorVersion,
    /// Features in use.
    pub features: FeatureMap,
    /// Identity of the set.
    pub set_uuid: Uuid,
    /// Name of the set.
    pub set_name: SetName,
    /// Time of creation of the set.
    pub created: Timestamp,
    /// Level of the set.
    pub level: MdLevel,
    /// Layout number; its meaning depends on the level.
    pub layout: u32,
    /// Sectors used on each member, for levels 1 and above. md also writes it for RAID 0 and linear, where it has no
    /// meaning.
    pub size: Sectors,
    /// Chunk size. For linear it is the unit to which member sizes are rounded; for RAID 1 it has no meaning.
    pub chunk: Sectors,
    /// Number of slots; during a reshape the number after the reshape.
    pub raid_disks: u16,
    /// Bytes 96 to 99 as stored: a signed bitmap offset, the place of a partial parity log, or a stale value. Use
    /// [`Superblock::bitmap_offset`] and [`Superblock::ppl`].
    pub bitmap_or_ppl: u32,
    /// The reshape.
    pub reshape: Reshape,
    /// First sector of the member's data on the drive.
    pub data_offset: DriveLba,
    /// Sectors of the drive that may hold data.
    pub data_size: Sectors,
    /// Sector of this superblock on the drive.
    pub super_offset: DriveLba,
    /// Number of rebuilt sectors, the tail of the journal, or a stale value. Use [`Superblock::recovery_offset`] and
    /// [`Superblock::journal_tail`].
    pub recovery_or_tail: u64,
    /// Index of this member in `roles`.
    pub dev_number: u32,
    /// Number of read errors that were corrected by rewriting.
    pub corrected_reads: u32,
    /// Identity of the member.
    pub device_uuid: Uuid,
    /// Flags of the member.
    pub device_flags: DeviceFlags,
    /// Place of the bad-block log.
    pub bad_blocks: BadBlockPlace,
    /// Time of the last write of the superblock.
    pub updated: Timestamp,
    /// Event count: it grows with every change of state. The member with the highest event count is the newest.
    pub events: u64,
    /// First sector whose redundancy is not in sync; `u64::MAX` if all is in sync. Use [`Superblock::resync_position`].
    pub resync_offset: u64,
    /// Offset 224: 0, or the logical block size that Linux 6.19 or later wrote. Earlier kernels refuse any value other
    /// than 0, so openraid writes 0 unless it read another value.
    pub logical_block_size: u32,
    /// Roles by device number.
    pub roles: RoleTable,
    /// The journal that may hold data of the set; present exactly if [`FeatureMap::CONTROLLER_JOURNAL`] is set.
    pub journal: Option<Uuid>,
    /// How far that journal had come; present exactly if [`FeatureMap::JOURNAL_REACHED`] is set.
    pub journal_reached: Option<JournalReached>,
    /// Bytes that have no meaning yet.
    pub unassigned: Unassigned,
}

impl Superblock {
    /// Decodes a superblock that was found at its place for `minor` on a drive of `drive_size`.
    ///
    /// `bytes` start at the first byte of the superblock and should have [`SUPERBLOCK_BYTES_MAX`] bytes; fewer suffice
    /// if the role table is short. Every field is checked before use: see [`SuperblockError`]. Known features that
    /// openraid does not support cause no error here, see [`Superblock::unsupported_features`].
    ///
    /// # Errors
    /// The first fault.
    pub fn decode(bytes: &[u8], minor: MinorVersion, drive_size: Sectors) -> Result<Self, SuperblockError> {
        let header = check_envelope(bytes)?;
        let level_number = little_endian::i32_at(header, at::LEVEL);
        let features = FeatureMap(little_endian::u32_at(header, at::FEATURES));
        if !features.unknown().is_empty() {
            return Err(SuperblockError::UnknownFeatures(features.unknown()));
        }
        let level = MdLevel::from_number(level_number).ok_or(SuperblockError::UnknownLevel(level_number))?;
        let raid_disks = little_endian::u32_at(header, at::RAID_DISKS);
        let superblock = Self {
            minor,
            features,
            set_uuid: Uuid(little_endian::array(header, at::SET_UUID)),
            set_name: SetName(little_endian::array(header, at::SET_NAME)),
            created: Timestamp(little_endian::u64_at(header, at::CREATED)),
            level,
            layout: little_endian::u32_at(header, at::LAYOUT),
            size: Sectors(little_endian::u64_at(header, at::SIZE)),
            chunk: Sectors(u64::from(little_endian::u32_at(header, at::CHUNK))),
            raid_disks: superblock_checks::raid_disks(level, raid_disks)?,
            bitmap_or_ppl: little_endian::u32_at(header, at::BITMAP_OR_PPL),
            reshape: Reshape {
                new_level: little_endian::i32_at(header, at::NEW_LEVEL),
                position: little_endian::u64_at(header, at::RESHAPE_POSITION),
                delta_disks: little_endian::i32_at(header, at::DELTA_DISKS),
                new_layout: little_endian::u32_at(header, at::NEW_LAYOUT),
                new_chunk: little_endian::u32_at(header, at::NEW_CHUNK),
                new_offset: little_endian::i32_at(header, at::NEW_OFFSET),
            },
            data_offset: DriveLba(little_endian::u64_at(header, at::DATA_OFFSET)),
            data_size: Sectors(little_endian::u64_at(header, at::DATA_SIZE)),
            super_offset: DriveLba(little_endian::u64_at(header, at::SUPER_OFFSET)),
            recovery_or_tail: little_endian::u64_at(header, at::RECOVERY_OR_TAIL),
            dev_number: little_endian::u32_at(header, at::DEV_NUMBER),
            corrected_reads: little_endian::u32_at(header, at::CORRECTED_READS),
            device_uuid: Uuid(little_endian::array(header, at::DEVICE_UUID)),
            device_flags: DeviceFlags(header[at::DEVICE_FLAGS]),
            bad_blocks: BadBlockPlace {
                shift: header[at::BAD_BLOCK_SHIFT],
                size: little_endian::u16_at(header, at::BAD_BLOCK_SIZE),
                offset: little_endian::i32_at(header, at::BAD_BLOCK_OFFSET),
            },
            updated: Timestamp(little_endian::u64_at(header, at::UPDATED)),
            events: little_endian::u64_at(header, at::EVENTS),
            resync_offset: little_endian::u64_at(header, at::RESYNC_OFFSET),
            logical_block_size: little_endian::u32_at(header, at::LOGICAL_BLOCK_SIZE),
            roles: decode_roles(bytes),
            journal: features
                .contains(FeatureMap::CONTROLLER_JOURNAL)
                .then(|| Uuid(little_endian::array(header, at::JOURNAL))),
            journal_reached: features.contains(FeatureMap::JOURNAL_REACHED).then(|| JournalReached {
                entry: little_endian::u64_at(header, at::JOURNAL_REACHED),
                generation: little_endian::u32_at(header, at::JOURNAL_GENERATION),
            }),
            unassigned: Unassigned {
                pad_12: little_endian::array(header, at::PAD_12),
                pad_228: unassigned_at_the_end(header, features),
            },
        };
        superblock_checks::all(&superblock, drive_size)?;
        Ok(superblock)
    }

    /// Number of bytes that [`Superblock::encode`] writes: the header and the role table in whole sectors.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // a sector has 512 bytes
    pub const fn encoded_len(&self) -> usize {
        (HEADER_BYTES + 2 * self.roles.len()).next_multiple_of(SECTOR_BYTES as usize)
    }

    /// Encodes the superblock with its checksum at the start of `out`, and returns its length. The rest of the last
    /// sector, after the role table, is unused and zeroed.
    ///
    /// # Panics
    /// `out` is shorter than [`Superblock::encoded_len`], or the chunk exceeds 32 bits.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let len = self.encoded_len();
        assert!(out.len() >= len, "a buffer of {} bytes cannot take a superblock of {len}", out.len());
        let out = &mut out[..len];
        out.fill(0);
        self.encode_set(out);
        self.encode_member(out);
        for (index, role) in self.roles.iter().enumerate() {
            little_endian::put(out, HEADER_BYTES + 2 * index, &role.code().to_le_bytes());
        }
        let checksum = checksum(out, self.roles.len());
        little_endian::put(out, at::CHECKSUM, &checksum.to_le_bytes());
        len
    }

    fn encode_set(&self, out: &mut [u8]) {
        let chunk = u32::try_from(self.chunk.0).expect("a chunk has fewer than 2^32 sectors");
        little_endian::put(out, at::MAGIC, &SUPERBLOCK_MAGIC.to_le_bytes());
        little_endian::put(out, at::MAJOR, &MAJOR.to_le_bytes());
        little_endian::put(out, at::FEATURES, &self.features.0.to_le_bytes());
        little_endian::put(out, at::PAD_12, &self.unassigned.pad_12);
        little_endian::put(out, at::SET_UUID, &self.set_uuid.0);
        little_endian::put(out, at::SET_NAME, &self.set_name.0);
        little_endian::put(out, at::CREATED, &self.created.0.to_le_bytes());
        little_endian::put(out, at::LEVEL, &self.level.number().to_le_bytes());
        little_endian::put(out, at::LAYOUT, &self.layout.to_le_bytes());
        little_endian::put(out, at::SIZE, &self.size.0.to_le_bytes());
        little_endian::put(out, at::CHUNK, &chunk.to_le_bytes());
        little_endian::put(out, at::RAID_DISKS, &u32::from(self.raid_disks).to_le_bytes());
        little_endian::put(out, at::BITMAP_OR_PPL, &self.bitmap_or_ppl.to_le_bytes());
        little_endian::put(out, at::NEW_LEVEL, &self.reshape.new_level.to_le_bytes());
        little_endian::put(out, at::RESHAPE_POSITION, &self.reshape.position.to_le_bytes());
        little_endian::put(out, at::DELTA_DISKS, &self.reshape.delta_disks.to_le_bytes());
        little_endian::put(out, at::NEW_LAYOUT, &self.reshape.new_layout.to_le_bytes());
        little_endian::put(out, at::NEW_CHUNK, &self.reshape.new_chunk.to_le_bytes());
        little_endian::put(out, at::NEW_OFFSET, &self.reshape.new_offset.to_le_bytes());
    }

    fn encode_member(&self, out: &mut [u8]) {
        let max_dev = u32::try_from(self.roles.len()).expect("a role table is short");
        little_endian::put(out, at::DATA_OFFSET, &self.data_offset.0.to_le_bytes());
        little_endian::put(out, at::DATA_SIZE, &self.data_size.0.to_le_bytes());
        little_endian::put(out, at::SUPER_OFFSET, &self.super_offset.0.to_le_bytes());
        little_endian::put(out, at::RECOVERY_OR_TAIL, &self.recovery_or_tail.to_le_bytes());
        little_endian::put(out, at::DEV_NUMBER, &self.dev_number.to_le_bytes());
        little_endian::put(out, at::CORRECTED_READS, &self.corrected_reads.to_le_bytes());
        little_endian::put(out, at::DEVICE_UUID, &self.device_uuid.0);
        out[at::DEVICE_FLAGS] = self.device_flags.0;
        out[at::BAD_BLOCK_SHIFT] = self.bad_blocks.shift;
        little_endian::put(out, at::BAD_BLOCK_SIZE, &self.bad_blocks.size.to_le_bytes());
        little_endian::put(out, at::BAD_BLOCK_OFFSET, &self.bad_blocks.offset.to_le_bytes());
        little_endian::put(out, at::UPDATED, &self.updated.0.to_le_bytes());
        little_endian::put(out, at::EVENTS, &self.events.to_le_bytes());
        little_endian::put(out, at::RESYNC_OFFSET, &self.resync_offset.to_le_bytes());
        little_endian::put(out, at::MAX_DEV, &max_dev.to_le_bytes());
        little_endian::put(out, at::LOGICAL_BLOCK_SIZE, &self.logical_block_size.to_le_bytes());
        little_endian::put(out, at::PAD_228, &self.unassigned.pad_228);
        if let Some(journal) = self.journal {
            little_endian::put(out, at::JOURNAL, &journal.0);
        }
        if let Some(reached) = self.journal_reached {
            little_endian::put(out, at::JOURNAL_REACHED, &reached.entry.to_le_bytes());
            little_endian::put(out, at::JOURNAL_GENERATION, &reached.generation.to_le_bytes());
        }
    }

    /// Sets the journal that may hold data of the set and how far it has come, or none. `behind` says that rows were
    /// written without the journal. The feature bits follow.
    pub fn set_journal(&mut self, journal: Option<(Uuid, JournalReached)>, behind: bool) {
        self.features.set(FeatureMap::CONTROLLER_JOURNAL | FeatureMap::JOURNAL_REACHED, journal.is_some());
        self.features.set(FeatureMap::JOURNAL_BEHIND, behind);
        (self.journal, self.journal_reached) = journal.unzip();
    }

    /// Features in use that this implementation does not support. If there are any, the member must not be touched.
    /// Their [`Display`](core::fmt::Display) names every bit.
    #[must_use]
    pub fn unsupported_features(&self) -> FeatureMap {
        self.features & !FeatureMap::SUPPORTED
    }

    /// This member's own role.
    #[must_use]
    pub fn role(&self) -> DeviceRole {
        self.roles.get(self.dev_number)
    }

    /// The minimum logical block size according to the superblock; `None` if it has no value (kernels before 6.19).
    #[must_use]
    pub fn logical_block(&self) -> Option<BlockSize> {
        BlockSize::new(self.logical_block_size.into()).ok()
    }

    /// Sectors from the superblock to the write-intent bitmap, if there is one.
    #[must_use]
    pub const fn bitmap_offset(&self) -> Option<i32> {
        if self.features.contains(FeatureMap::BITMAP) {
            Some(i32::from_le_bytes(self.bitmap_or_ppl.to_le_bytes()))
        } else {
            None
        }
    }
    /// Sets the place of the write-intent bitmap, or none; the feature bit follows.
    pub fn set_bitmap_offset(&mut self, offset: Option<i32>) {
        self.features.set(FeatureMap::BITMAP, offset.is_some());
        self.bitmap_or_ppl = u32::from_le_bytes(offset.unwrap_or(0).to_le_bytes());
    }
    /// Place of the partial parity log, if there is one.
    #[must_use]
    pub fn ppl(&self) -> Option<PplPlace> {
        let bytes = self.bitmap_or_ppl.to_le_bytes();
        self.features.intersects(FeatureMap::PPL | FeatureMap::MULTIPLE_PPLS).then(|| PplPlace {
            offset: i16::from_le_bytes([bytes[0], bytes[1]]),
            size: u16::from_le_bytes([bytes[2], bytes[3]]),
        })
    }
    /// Sets the place of the partial parity log. Two feature bits announce such a log; if neither is set, one is set.
    pub fn set_ppl(&mut self, place: PplPlace) {
        if self.ppl().is_none() {
            self.features.set(FeatureMap::PPL, true);
        }
        let (offset, size) = (place.offset.to_le_bytes(), place.size.to_le_bytes());
        self.bitmap_or_ppl = u32::from_le_bytes([offset[0], offset[1], size[0], size[1]]);
    }
    /// The area of the partial parity log on the drive: its first sector and its length.
    #[must_use]
    pub fn ppl_area(&self) -> Option<(DriveLba, Sectors)> {
        let ppl = self.ppl()?;
        Some((self.place(i32::from(ppl.offset))?, Sectors(u64::from(ppl.size))))
    }
    /// First sector of the metadata around the superblock on the member, and the sector after their end: the
    /// superblock, the room for a bitmap or a partial parity log, the bad-block log. `None` if the offsets are outside
    /// the drive.
    #[must_use]
    pub fn metadata_extent(&self) -> Option<(DriveLba, Sectors)> {
        let block = (self.super_offset, Sectors((SUPERBLOCK_BYTES_MAX / 512) as u64));
        let log = match self.bad_block_log() {
            Some(log) => Some((self.place(log.offset)?, Sectors(u64::from(log.size)))),
            None => None,
        };
        let bitmap = match self.bitmap_offset() {
            Some(offset) => Some((self.place(offset)?, Sectors(1))),
            None => None,
        };
        let parts = [Some(block), log, bitmap, self.ppl_area()];
        let from = parts.iter().flatten().map(|(at, _)| *at).min()?;
        let to = parts.iter().flatten().map(|(at, len)| *at + *len).max()?;
        Some((from, to - from))
    }
    /// The frontier of the rebuild of this member; `None` if it is not being rebuilt. `u64::MAX` is the end.
    #[must_use]
    pub const fn recovery_offset(&self) -> Option<MemberLba> {
        if self.features.contains(FeatureMap::RECOVERY_OFFSET) {
            Some(MemberLba(self.recovery_or_tail))
        } else {
            None
        }
    }
    /// Sets the frontier of the rebuild of this member, or marks it as in sync; the feature bit follows.
    pub fn set_recovery_offset(&mut self, done: Option<MemberLba>) {
        self.features.set(FeatureMap::RECOVERY_OFFSET, done.is_some());
        self.recovery_or_tail = done.map_or(0, MemberLba::get);
    }
    /// The sector of the journal's oldest valid block; `None` unless this member is a journal.
    #[must_use]
    pub fn journal_tail(&self) -> Option<MemberLba> {
        (self.features.contains(FeatureMap::JOURNAL) && self.role() == DeviceRole::Journal)
            .then_some(MemberLba(self.recovery_or_tail))
    }
    /// First sector whose redundancy is not in sync; `None` if all is in sync (md's "clean"). For RAID 10 it counts
    /// sectors of the array, otherwise sectors of a member.
    #[must_use]
    pub const fn resync_position(&self) -> Option<Sectors> {
        match self.resync_offset {
            u64::MAX => None,
            sector => Some(Sectors(sector)),
        }
    }
    /// Place of the bad-block log, if there is one. The feature bit says whether it has entries.
    #[must_use]
    pub const fn bad_block_log(&self) -> Option<BadBlockPlace> {
        if self.bad_blocks.size == 0 || self.bad_blocks.offset == 0 {
            None
        } else {
            Some(self.bad_blocks)
        }
    }
    /// The layout of a RAID 0, if the superblock has it. Without it the data of members of unequal size are ambiguous.
    #[must_use]
    pub fn raid0_layout(&self) -> Option<Raid0Layout> {
        if self.level == MdLevel::Raid0 && self.features.contains(FeatureMap::RAID0_LAYOUT) {
            Raid0Layout::from_number(self.layout)
        } else {
            None
        }
    }
    /// The copies of a RAID 10; `None` for other levels.
    #[must_use]
    pub fn raid10_layout(&self) -> Option<Raid10Layout> {
        (self.level == MdLevel::Raid10).then(|| Raid10Layout::from_number(self.layout)).flatten()
    }
    /// Place of the write-intent bitmap, and the number of sectors up to the next structure on a drive of this size;
    /// `None` if there is no bitmap.
    #[must_use]
    pub fn bitmap_room(&self, drive_size: Sectors) -> Option<(DriveLba, Sectors)> {
        let start = self.place(self.bitmap_offset()?)?;
        let log = self.bad_block_log().and_then(|log| self.place(log.offset));
        let data = (!self.data_size.is_zero()).then_some(self.data_offset);
        let moved = data.map(|_| self.new_data_offset());
        let next = [log, data, moved, Some(self.super_offset), Some(DriveLba(drive_size.get()))];
        let end = next.into_iter().flatten().filter(|&place| place >= start).min()?;
        Some((start, end - start))
    }
    /// The sector at `offset` sectors from this superblock, if it is on a drive.
    #[must_use]
    pub fn place(&self, offset: i32) -> Option<DriveLba> {
        self.super_offset.0.checked_add_signed(i64::from(offset)).map(DriveLba)
    }
}

/// Checks magic number, version, size of the role table and checksum before any other field is read.
fn check_envelope(bytes: &[u8]) -> Result<&[u8; HEADER_BYTES], SuperblockError> {
    let header: &[u8; HEADER_BYTES] =
        bytes.first_chunk().ok_or(SuperblockError::Truncated { have: bytes.len(), need: HEADER_BYTES })?;
    let magic = little_endian::u32_at(header, at::MAGIC);
    if magic != SUPERBLOCK_MAGIC {
        return Err(SuperblockError::NoMagic(magic));
    }
    let major = little_endian::u32_at(header, at::MAJOR);
    if major != MAJOR {
        return Err(SuperblockError::UnknownMajor(major));
    }
    let max_dev = little_endian::u32_at(header, at::MAX_DEV);
    let entries = usize::try_from(max_dev).unwrap_or(usize::MAX);
    if entries > ROLES_MAX {
        return Err(SuperblockError::TooManyRoles(max_dev));
    }
    let need = HEADER_BYTES + 2 * entries;
    if bytes.len() < need {
        return Err(SuperblockError::Truncated { have: bytes.len(), need });
    }
    let stored = little_endian::u32_at(header, at::CHECKSUM);
    let computed = checksum(bytes, entries);
    if stored != computed {
        return Err(SuperblockError::Checksum { stored, computed });
    }
    Ok(header)
}

/// Sum of the 32-bit words of header and role table, including a last half word. The checksum itself counts as zero;
/// the carries are added once.
fn checksum(bytes: &[u8], entries: usize) -> u32 {
    let bytes = &bytes[..HEADER_BYTES + 2 * entries];
    let words = bytes.chunks_exact(4);
    let rest = words.remainder();
    let mut sum: u64 = words.map(|word| u64::from(little_endian::u32_at(word, 0))).sum();
    if !rest.is_empty() {
        sum += u64::from(little_endian::u16_at(rest, 0));
    }
    sum -= u64::from(little_endian::u32_at(bytes, at::CHECKSUM));
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    u32::try_from(folded & 0xffff_ffff).expect("masked to 32 bits")
}

/// Bytes 228 to 255 without the journal's name and position. Both are removed if the journal holds no more data of the set.
fn unassigned_at_the_end(header: &[u8], features: FeatureMap) -> [u8; 28] {
    let mut pad = little_endian::array(header, at::PAD_228);
    if features.contains(FeatureMap::CONTROLLER_JOURNAL) {
        pad[..size_of::<Uuid>()].fill(0);
    }
    if features.contains(FeatureMap::JOURNAL_REACHED) {
        pad[at::JOURNAL_REACHED - at::PAD_228..].fill(0);
    }
    pad
}

/// The role table after a header that passed [`check_envelope`].
fn decode_roles(bytes: &[u8]) -> RoleTable {
    let entries = usize::try_from(little_endian::u32_at(bytes, at::MAX_DEV)).expect("bounded by the envelope");
    let mut roles = RoleTable::new(entries);
    for index in 0..entries {
        roles.set(index, DeviceRole::from_code(little_endian::u16_at(bytes, HEADER_BYTES + 2 * index)));
    }
    roles
}
