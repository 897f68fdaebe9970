//! The layout of a new array on a member.
//!
//! ```text
//!  1.2   0      8 superblock  16 bitmap's room   | bad-block log |  ...  | data_offset: data        to the end
//!  1.1          0 superblock   8 bitmap's room   | bad-block log |  ...  | data_offset: data        to the end
//!  1.0   0 data ...            | bitmap's room   | bad-block log | superblock | 8 sectors or a few more
//! ```
//!
//! The rules are those of mdadm. They were derived from mdadm's layouts of members from 1 MiB to 15 TiB. There are two
//! differences: the bitmap's room is reserved even if there is no bitmap yet, and the bad-block log always follows the
//! whole room. md accepts both, and a bitmap can later be added or enlarged without moving anything.
//!
//! - Room for the bitmap: 4 KiB. On drives from 8 GiB on it is 64 KiB, from 200 GiB on 128 KiB. Levels without
//!   redundancy have none.
//! - An array with a partial parity log has that log, 1 MiB, in place of the bitmap's room.
//! - Headroom before the data, so that a later reshape can move them. It starts at 128 MiB and is halved while it is both
//!   more than 1/1024 of the drive and at least four chunks.
//! - `data_offset`: superblock, room and headroom, rounded up to 1 MiB. It is 264192 sectors on every drive from 128 GiB
//!   on.

use crate::bitmap::{chunk_for, BitmapError};
use crate::feature::{DeviceFlags, FeatureMap};
use crate::identity::{SetName, Timestamp, Uuid};
use crate::level::MdLevel;
use crate::ppl::PPL_AREA;
use crate::role::{DeviceRole, RoleTable, ROLES_MAX};
use crate::superblock::{superblock_lba, BadBlockPlace, MinorVersion, PplPlace, Reshape, Superblock, Unassigned};
use crate::superblock_checks::{chunk_is_sane, BAD_BLOCK_LOG_MAX};
use core::fmt;
use openraid_units::{Bytes, DriveLba, Sectors, Slot};

/// Sizes of members of levels without chunks are rounded to this: 64 KiB.
pub const ROUNDING: Sectors = Sectors::kib(64);

const HEADROOM_MAX: Sectors = Sectors::mib(128);
/// The headroom is at most this fraction of the drive.
const HEADROOM_SHARE: u64 = 1024;
/// The headroom is not halved below this number of chunks.
const HEADROOM_CHUNKS: u64 = 4;
/// Superblock and the sectors around it that are always reserved.
const FIXED: Sectors = Sectors(24);
const DATA_ALIGN: Sectors = Sectors::mib(1);
/// Distance from the superblock to the first sector after it that other structures may use.
const BEHIND_SUPERBLOCK: Sectors = Sectors::kib(4);

/// The input of a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlacementRequest {
    /// The place of the superblock.
    pub minor: MinorVersion,
    /// Level of the array.
    pub level: MdLevel,
    /// Chunk of the array; ignored for level 1.
    pub chunk: Sectors,
    /// Size of the drive.
    pub drive_size: Sectors,
}

/// The places of all structures on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberPlacement {
    /// Version, which determines the place of the superblock.
    pub minor: MinorVersion,
    /// Sector of the superblock.
    pub super_offset: DriveLba,
    /// First sector of the data area.
    pub data_offset: DriveLba,
    /// Sectors of the data area.
    pub data_size: Sectors,
    /// Sectors of the data area that an array of this level and chunk can use. The smallest value of all members is the
    /// `size` of the array; RAID 0 and linear use the value of each member.
    pub usable: Sectors,
    /// Distance in sectors from the superblock to the bitmap's room; `None` for levels without redundancy.
    pub bitmap_offset: Option<i32>,
    /// Sectors reserved for the bitmap.
    pub bitmap_room: Sectors,
    /// The partial parity log, if the caller requested one; it takes the bitmap's room.
    pub ppl: Option<PplPlace>,
    /// The bad-block log.
    pub bad_blocks: BadBlockPlace,
}

/// The reason why a member cannot be laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlacementError {
    /// The drive is too small for the metadata and one chunk.
    TooSmall {
        /// Size of the drive.
        drive_size: Sectors,
        /// The smallest size that is sufficient.
        need: Sectors,
    },
    /// The level cannot have this chunk.
    BadChunk {
        /// Level of the new array.
        level: MdLevel,
        /// The chunk.
        chunk: Sectors,
    },
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooSmall { drive_size, need } => {
                f.write_str("the member is too small: it has ")?;
                match drive_size {
                    Sectors::ZERO => f.write_str("less than 512 bytes")?,
                    some => write!(f, "{} ({} bytes)", some.bytes().readable(), some.bytes().get())?,
                }
                let need = need.bytes();
                write!(
                    f,
                    ", metadata and one chunk need at least {} ({} bytes); use a larger member or a smaller chunk",
                    need.readable(),
                    need.get()
                )
            }
            Self::BadChunk { level, chunk } => write!(
                f,
                "{level} cannot have a chunk of {chunk}; use a power of two from 4 KiB to 1 GiB (raid0 \
                 takes any number of sectors)"
            ),
        }
    }
}
impl core::error::Error for PlacementError {}

impl MemberPlacement {
    /// Lays out one member.
    ///
    /// # Errors
    /// See [`PlacementError`].
    pub fn new(request: PlacementRequest) -> Result<Self, PlacementError> {
        Self::with_room(request, bitmap_room(request.level, request.drive_size))
    }

    /// Lays out one member that has a partial parity log and no bitmap.
    ///
    /// # Errors
    /// See [`PlacementError`].
    pub fn with_ppl(request: PlacementRequest) -> Result<Self, PlacementError> {
        Ok(Self::with_room(request, PPL_AREA)?.with_log(true))
    }

    /// With `ppl`, uses the bitmap's room for a partial parity log, if there is such room.
    fn with_log(self, ppl: bool) -> Self {
        if !ppl {
            return self;
        }
        let offset = self.bitmap_offset.and_then(|offset| i16::try_from(offset).ok());
        let size = u16::try_from(PPL_AREA.0).expect("1 MiB");
        Self { ppl: offset.map(|offset| PplPlace { offset, size }), bitmap_offset: None, ..self }
    }

    /// Lays out one member that joins an array whose members use `need` sectors, and whose data begins at `others` on one of
    /// them. A change of shape moves the data of all members by the same distance, so the data begins as late as on the
    /// others, or later, if there is room for that: members that other software made, or members on other drives, often have
    /// another headroom. If the data do not fit, the headroom becomes smaller, and the alignment is left out at last.
    ///
    /// # Errors
    /// See [`PlacementError`]. If the data do not fit even then, the drive is laid out without headroom.
    pub fn for_size(
        request: PlacementRequest,
        ppl: bool,
        need: Sectors,
        others: DriveLba,
    ) -> Result<Self, PlacementError> {
        let usual = if ppl { Self::with_ppl(request) } else { Self::new(request) };
        let room = if ppl { PPL_AREA } else { bitmap_room(request.level, request.drive_size) };
        let least = FIXED + room;
        let usual_start = usual.map_or(Sectors::ZERO, |placement| placement.data_offset.offset());
        let others = others.offset().max(least);
        let latest = request.drive_size.saturating_sub(need).round_down(DATA_ALIGN).min(usual_start.max(others));
        let mut placed = usual;
        for start in [usual_start.max(others), others, latest.max(least), least] {
            placed = Self::with_start(request, room, DriveLba(start.get())).map(|placed| placed.with_log(ppl));
            if placed.is_ok_and(|placement| placement.usable >= need) {
                break;
            }
        }
        placed
    }

    fn with_room(request: PlacementRequest, room: Sectors) -> Result<Self, PlacementError> {
        let unit = headroom_unit(request.level, request.chunk);
        Self::with_start(request, room, data_offset(room, unit, request.drive_size))
    }

    /// Lays out a member whose data begin at `start`. If the superblock is at the end, the data begin at sector 0.
    fn with_start(request: PlacementRequest, room: Sectors, start: DriveLba) -> Result<Self, PlacementError> {
        let PlacementRequest { minor, level, chunk, drive_size } = request;
        if !chunk_is_sane(level, chunk) {
            return Err(PlacementError::BadChunk { level, chunk });
        }
        let unit = if level.is_striped() { chunk } else { ROUNDING };
        let log = BAD_BLOCK_LOG_MAX;
        let data_offset = match minor {
            MinorVersion::V1_0 => DriveLba(0),
            MinorVersion::V1_1 | MinorVersion::V1_2 => start,
        };
        let super_offset = superblock_lba(minor, drive_size);
        let data_end = match minor {
            MinorVersion::V1_0 => super_offset.map(|at| at.offset().saturating_sub(room + log)),
            MinorVersion::V1_1 | MinorVersion::V1_2 => Some(drive_size),
        };
        let data_size = data_end.map_or(Sectors(0), |end| end.saturating_sub(data_offset.offset()));
        let Some(super_offset) = super_offset.filter(|_| data_size >= unit) else {
            let metadata = if minor == MinorVersion::V1_0 { FIXED + room + log } else { data_offset.offset() };
            return Err(PlacementError::TooSmall { drive_size, need: metadata + unit });
        };
        let usable = if level.is_redundant() { data_size.round_down(unit) } else { data_size };
        let (bitmap_offset, log_offset) = match minor {
            MinorVersion::V1_0 => (-offset(room + log), -offset(log)),
            MinorVersion::V1_1 | MinorVersion::V1_2 => (offset(BEHIND_SUPERBLOCK), offset(BEHIND_SUPERBLOCK + room)),
        };
        Ok(Self {
            minor,
            super_offset,
            data_offset,
            data_size,
            usable,
            bitmap_offset: level.is_redundant().then_some(bitmap_offset),
            bitmap_room: room,
            ppl: None,
            bad_blocks: BadBlockPlace { shift: 0, size: u16::try_from(log.0).expect("8 sectors"), offset: log_offset },
        })
    }

    /// The chunk in bytes for a bitmap that covers `sync_size` and fits into this member's room.
    ///
    /// # Errors
    /// [`BitmapError::DoesNotFit`], also if the level has no bitmap.
    pub fn bitmap_chunk(&self, sync_size: Sectors) -> Result<u32, BitmapError> {
        chunk_for(sync_size, self.bitmap_room)
    }
}

fn bitmap_room(level: MdLevel, drive_size: Sectors) -> Sectors {
    const LARGE: Sectors = Bytes::gib(200).sectors_floor();
    const MIDDLE: Sectors = Bytes::gib(8).sectors_floor();
    match drive_size {
        _ if !level.is_redundant() => Sectors(0),
        size if size >= LARGE => Sectors::kib(128),
        size if size >= MIDDLE => Sectors::kib(64),
        _ => Sectors::kib(4),
    }
}

/// The unit of the headroom. Levels without chunks do not limit the headroom.
fn headroom_unit(level: MdLevel, chunk: Sectors) -> Sectors {
    if level.is_striped() {
        chunk
    } else {
        Sectors(0)
    }
}

fn data_offset(room: Sectors, unit: Sectors, drive_size: Sectors) -> DriveLba {
    let mut headroom = HEADROOM_MAX;
    while !headroom.is_zero() && headroom * HEADROOM_SHARE > drive_size && headroom >= unit * HEADROOM_CHUNKS {
        headroom = headroom / 2;
    }
    let start = (FIXED + room + headroom).checked_round_up(DATA_ALIGN).expect("far below 2^64");
    DriveLba(start.0)
}

fn offset(sectors: Sectors) -> i32 {
    i32::try_from(sectors.0).expect("metadata stand within a few hundred KiB")
}

/// The values that all members of a new array share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewSet {
    /// Identity of the set.
    pub uuid: Uuid,
    /// Name of the set.
    pub name: SetName,
    /// Time of creation.
    pub created: Timestamp,
    /// Level of the set.
    pub level: MdLevel,
    /// Layout number.
    pub layout: u32,
    /// Chunk. For linear: the unit to which member sizes are rounded.
    pub chunk: Sectors,
    /// Sectors used on each member; 0 for linear and RAID 0.
    pub size: Sectors,
    /// Number of slots.
    pub raid_disks: u16,
    /// `None` if all redundancy is in sync, else the sector at which the resync begins.
    pub resync_from: Option<Sectors>,
    /// Is the bitmap's room in use?
    pub bitmap: bool,
}

/// The fields that differ from member to member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberFields {
    /// Index of the member in the role table.
    pub dev_number: u32,
    /// Identity of the member.
    pub uuid: Uuid,
    /// Flags of the member.
    pub flags: DeviceFlags,
}

/// Number of entries in the role table of a new array: 128, which fill one sector, or whole sectors for more devices.
///
/// # Panics
/// More than [`ROLES_MAX`] devices.
#[must_use]
pub fn role_table_len(devices: usize) -> usize {
    const FIRST: usize = 128;
    const FURTHER: usize = 256;
    assert!(devices <= ROLES_MAX, "an array has at most {ROLES_MAX} devices");
    FIRST + devices.saturating_sub(FIRST).next_multiple_of(FURTHER)
}

impl NewSet {
    /// The first superblock of a member, with `events` 0. The caller provides `roles`: for a slot without a device, a
    /// device number has the role [`DeviceRole::Faulty`].
    ///
    /// The RAID 0 layout bit is set if `layout` is not 0. Kernels before 5.4 refuse the bit, so only arrays whose
    /// members differ in size have it.
    #[must_use]
    pub fn superblock(&self, member: MemberFields, placement: &MemberPlacement, roles: RoleTable) -> Superblock {
        let mut superblock = Superblock {
            minor: placement.minor,
            features: FeatureMap::NONE,
            set_uuid: self.uuid,
            set_name: self.name,
            created: self.created,
            level: self.level,
            layout: self.layout,
            size: self.size,
            chunk: self.chunk,
            raid_disks: self.raid_disks,
            bitmap_or_ppl: 0,
            reshape: Reshape::default(),
            data_offset: placement.data_offset,
            data_size: placement.data_size,
            super_offset: placement.super_offset,
            recovery_or_tail: 0,
            dev_number: member.dev_number,
            corrected_reads: 0,
            device_uuid: member.uuid,
            device_flags: member.flags,
            bad_blocks: placement.bad_blocks,
            updated: self.created,
            events: 0,
            resync_offset: self.resync_from.map_or(u64::MAX, Sectors::get),
            logical_block_size: 0,
            roles,
            journal: None,
            journal_reached: None,
            unassigned: Unassigned::default(),
        };
        let says_layout = self.level == MdLevel::Raid0 && self.layout != 0;
        superblock.features.set(FeatureMap::RAID0_LAYOUT, says_layout);
        if self.bitmap {
            superblock.set_bitmap_offset(placement.bitmap_offset);
        }
        superblock
    }

    /// A role table with a device for every slot, in order, followed by `spares` spares.
    ///
    /// # Panics
    /// More than [`ROLES_MAX`] devices together.
    #[must_use]
    pub fn roles(&self, spares: usize) -> RoleTable {
        let devices = usize::from(self.raid_disks) + spares;
        let mut roles = RoleTable::new(role_table_len(devices));
        for slot in 0..self.raid_disks {
            roles.set(usize::from(slot), DeviceRole::Active(Slot(slot)));
        }
        roles
    }
}
