//! Checks of a superblock whose checksum is correct. Its fields can still have impossible values, and every field is
//! later used as an address or a size.
//!
//! If md has a rule, the rule here is the same. Values that md accepts but cannot use are also refused.

use crate::feature::FeatureMap;
use crate::level::{MdLevel, Raid0Layout};
use crate::reshape_view::{self, ReshapeFault};
use crate::role::{DeviceRole, ROLES_MAX};
use crate::superblock::{superblock_lba, MinorVersion, Superblock};
use core::fmt;
use openraid_units::{Bytes, DriveLba, Sectors};

/// Maximum chunk: 1 GiB.
pub(crate) const CHUNK_MAX: Sectors = Sectors::mib(1024);
/// Maximum size of a bad-block log: one page of 4 KiB.
pub(crate) const BAD_BLOCK_LOG_MAX: Sectors = Sectors::kib(4);
/// Stripes with parity or copies consist of whole pages of 4 KiB.
pub(crate) const PAGE: Sectors = Sectors::kib(4);
/// Maximum shift of a bad-block log: its entries count units of `1 << shift` sectors. md itself only writes 0.
const BAD_BLOCK_SHIFT_MAX: u8 = 12;
/// Maximum event count of a superblock. At a million events per second an array reaches it in a hundred thousand years.
const EVENTS_MAX: u64 = 1 << 62;

/// Maximum logical block of an array. Linux accepts up to one page of the machine.
const LOGICAL_BLOCK_MAX: u32 = 4096;

/// The reason why a superblock cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SuperblockError {
    /// There are fewer bytes than the structure has.
    Truncated {
        /// Number of bytes given.
        have: usize,
        /// Number of bytes of the structure.
        need: usize,
    },
    /// The first four bytes are not those of an md superblock.
    NoMagic(u32),
    /// The major version is not 1.
    UnknownMajor(u32),
    /// `max_dev` is larger than a superblock has room for.
    TooManyRoles(u32),
    /// The checksum does not match.
    Checksum {
        /// The checksum in the superblock.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// Feature bits with unknown meaning are set.
    UnknownFeatures(FeatureMap),
    /// Feature bits that exclude each other, or that need one which is not set.
    ContradictingFeatures(FeatureMap),
    /// md does not have the level, or the level is not an array (container, multipath, faulty).
    UnknownLevel(i32),
    /// The level does not have this layout.
    UnknownLayout {
        /// Level of the superblock.
        level: MdLevel,
        /// The layout.
        layout: u32,
    },
    /// The level cannot have this number of members.
    BadMemberCount {
        /// Level of the superblock.
        level: MdLevel,
        /// The count.
        count: u32,
    },
    /// The level cannot have this chunk.
    BadChunk {
        /// Level of the superblock.
        level: MdLevel,
        /// The chunk.
        chunk: Sectors,
    },
    /// The drive is too small for any superblock.
    DriveTooSmall(Sectors),
    /// The place in the superblock is not the place where it was found.
    WrongPlace {
        /// The place in the superblock.
        says: DriveLba,
        /// The place of superblocks of this version on this drive.
        expected: DriveLba,
    },
    /// The data area does not fit on the drive, or overlaps the superblock.
    BadDataArea {
        /// First sector.
        start: DriveLba,
        /// Length of the data area.
        size: Sectors,
        /// The sector before which the data area must end.
        limit: DriveLba,
    },
    /// The used size is larger than the data area.
    SizeBeyondData {
        /// Sectors used.
        size: Sectors,
        /// Sectors of the data area.
        data_size: Sectors,
    },
    /// The checkpoint of the rebuild is past the end of the data area.
    RecoveryBeyondData(u64),
    /// A bitmap, log or table is outside the drive, or overlaps the superblock or the data.
    BadMetadataArea(MetadataArea),
    /// An entry of the role table gives a slot that the set does not have.
    BadRole {
        /// Device number.
        dev_number: usize,
        /// The slot.
        slot: u16,
    },
    /// A change of shape is in progress, and its fields have impossible values.
    BadReshape(ReshapeFault),
    /// No array reaches this event count, and it could not be raised further.
    AbsurdEvents(u64),
    /// No drive has this logical block size in bytes, or the engine does not support it.
    BadLogicalBlock(u32),
}

/// An area that a superblock points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetadataArea {
    /// Write-intent bitmap.
    Bitmap,
    /// Bad-block log.
    BadBlocks,
    /// Partial parity log.
    Ppl,
}

impl fmt::Display for MetadataArea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bitmap => "write-intent bitmap",
            Self::BadBlocks => "bad-block log",
            Self::Ppl => "partial parity log",
        })
    }
}

impl fmt::Display for SuperblockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { have, need } => {
                write!(f, "the superblock is cut off: {have} bytes could be read, it has {need}")
            }
            Self::NoMagic(magic) => write!(f, "no md superblock here (it would begin with a92b4efc, not {magic:08x})"),
            Self::UnknownMajor(major) => {
                write!(f, "md superblock of version {major}; only version 1 (1.0, 1.1, 1.2) can be used")
            }
            Self::TooManyRoles(count) => {
                write!(f, "damaged superblock: it claims {count} devices, at most {ROLES_MAX} are possible")
            }
            Self::Checksum { stored, computed } => write!(
                f,
                "damaged superblock: its checksum is {stored:08x}, its bytes give {computed:08x}; use \
                 the other members and replace this one"
            ),
            Self::UnknownFeatures(bits) => {
                write!(f, "the array uses features that are not known here: {bits}; use the software that made it")
            }
            Self::ContradictingFeatures(bits) => {
                write!(f, "damaged superblock: features that do not go together: {bits}")
            }
            Self::UnknownLevel(level) => {
                write!(f, "RAID level {level} is not supported (linear, 0, 1, 4, 5, 6, 10 are)")
            }
            Self::UnknownLayout { level, layout } => write!(f, "{level} has no layout {layout} (0x{layout:x})"),
            Self::BadMemberCount { level, count } => write!(f, "{level} cannot have {count} members"),
            Self::BadChunk { level, chunk } => write!(f, "{level} cannot have a chunk of {chunk}"),
            Self::DriveTooSmall(size) => write!(f, "a drive of {size} is too small to hold a superblock"),
            Self::WrongPlace { says, expected } => write!(
                f,
                "the superblock says it belongs to sector {}, but on this drive it is at {}: a copy, \
                 a partition mix-up, or the drive's size has changed",
                says.0, expected.0
            ),
            Self::BadDataArea { start, size, limit } => write!(
                f,
                "the data area ({size} from sector {}) does not fit on the drive (usable up to sector \
                 {}): the drive is smaller than it was, or the superblock is damaged",
                start.0, limit.0
            ),
            Self::SizeBeyondData { size, data_size } => {
                write!(f, "damaged superblock: {size} are used, but the data area has {data_size}")
            }
            Self::RecoveryBeyondData(sector) => {
                write!(f, "damaged superblock: rebuilt up to sector {sector}, which is beyond the data area")
            }
            Self::BadMetadataArea(area) => {
                write!(f, "damaged superblock: the {area} is outside the drive or overlaps another area")
            }
            Self::BadRole { dev_number, slot } => {
                write!(f, "damaged superblock: device {dev_number} has slot {slot}, which the array does not have")
            }
            Self::AbsurdEvents(events) => {
                write!(f, "damaged superblock: {events} events are more than any array has ever seen")
            }
            Self::BadLogicalBlock(bytes) if bytes.is_power_of_two() && bytes > LOGICAL_BLOCK_MAX => write!(
                f,
                "the array's logical block of {bytes} bytes is not supported (512, 1024, 2048 and 4096 are); use the \
                 Linux kernel that made the array"
            ),
            Self::BadLogicalBlock(bytes) => write!(
                f,
                "damaged superblock: {bytes} B is not a possible logical block (512, 1024, 2048 and 4096 B are); use \
                 the other members and replace this one"
            ),
            Self::BadReshape(fault) => fault.fmt(f),
        }
    }
}
impl core::error::Error for SuperblockError {}

/// Converts the member count to the number of slots of this level.
pub(crate) fn raid_disks(level: MdLevel, count: u32) -> Result<u16, SuperblockError> {
    let in_bounds = count >= level.members_min() && usize::try_from(count).is_ok_and(|count| count <= ROLES_MAX);
    match u16::try_from(count) {
        Ok(count) if in_bounds => Ok(count),
        _ => Err(SuperblockError::BadMemberCount { level, count }),
    }
}

/// Can this level have this chunk?
pub(crate) fn chunk_is_sane(level: MdLevel, chunk: Sectors) -> bool {
    if chunk > CHUNK_MAX {
        return false;
    }
    match level {
        MdLevel::Linear | MdLevel::Raid1 => true,
        MdLevel::Raid0 => !chunk.is_zero(),
        MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 | MdLevel::Raid10 => {
            chunk >= PAGE && chunk.get().is_power_of_two()
        }
    }
}

/// Does all checks that need only one superblock and the size of its drive.
pub(crate) fn all(sb: &Superblock, drive_size: Sectors) -> Result<(), SuperblockError> {
    features(sb)?;
    shape(sb)?;
    place(sb, drive_size)?;
    roles(sb)?;
    let used_end = data_area(sb, drive_size)?;
    if let Some(done) = sb.recovery_offset() {
        if done.get() != u64::MAX && done.get() > sb.data_size.get() {
            return Err(SuperblockError::RecoveryBeyondData(done.get()));
        }
    }
    metadata_areas(sb, drive_size, used_end)?;
    change_features(sb)?;
    reshape_view::check_all(sb).map_err(SuperblockError::BadReshape)
}

fn features(sb: &Superblock) -> Result<(), SuperblockError> {
    let log = FeatureMap::PPL | FeatureMap::MULTIPLE_PPLS;
    let both = FeatureMap::BITMAP | log;
    if sb.features.contains(FeatureMap::BITMAP) && sb.features.intersects(log) {
        return Err(SuperblockError::ContradictingFeatures(sb.features & both));
    }
    let of_journal = FeatureMap::JOURNAL_BEHIND | FeatureMap::JOURNAL_REACHED;
    if sb.features.intersects(of_journal) && !sb.features.contains(FeatureMap::CONTROLLER_JOURNAL) {
        return Err(SuperblockError::ContradictingFeatures(sb.features & of_journal));
    }
    Ok(())
}

/// The features of a change of shape that exclude others, or have no meaning without the change.
fn change_features(sb: &Superblock) -> Result<(), SuperblockError> {
    let log = FeatureMap::PPL | FeatureMap::MULTIPLE_PPLS;
    let of_change = FeatureMap::RESHAPE_BACKWARDS | FeatureMap::NEW_OFFSET;
    let excluded = FeatureMap::JOURNAL | log;
    if sb.features.contains(FeatureMap::RESHAPE_ACTIVE) {
        // md begins no change with a log, and starts no array with both.
        if sb.features.intersects(excluded) {
            let both = FeatureMap::RESHAPE_ACTIVE | excluded;
            return Err(SuperblockError::ContradictingFeatures(sb.features & both));
        }
    } else if sb.features.intersects(of_change) {
        return Err(SuperblockError::ContradictingFeatures(sb.features & of_change));
    }
    Ok(())
}

fn shape(sb: &Superblock) -> Result<(), SuperblockError> {
    let (level, layout) = (sb.level, sb.layout);
    let slots = slots_before(sb)?;
    if !level.layout_is_known(layout, u32::from(slots)) {
        return Err(SuperblockError::UnknownLayout { level, layout });
    }
    let layout_is_said = level == MdLevel::Raid0 && sb.features.contains(FeatureMap::RAID0_LAYOUT);
    if layout_is_said && Raid0Layout::from_number(layout).is_none() {
        return Err(SuperblockError::UnknownLayout { level, layout });
    }
    if !chunk_is_sane(level, sb.chunk) {
        return Err(SuperblockError::BadChunk { level, chunk: sb.chunk });
    }
    if sb.events > EVENTS_MAX {
        return Err(SuperblockError::AbsurdEvents(sb.events));
    }
    if sb.logical_block_size != 0 && sb.logical_block().is_none() {
        return Err(SuperblockError::BadLogicalBlock(sb.logical_block_size));
    }
    Ok(())
}

/// Number of slots before the change of shape that is under way. Without one it is the present number.
fn slots_before(sb: &Superblock) -> Result<u16, SuperblockError> {
    match sb.features.contains(FeatureMap::RESHAPE_ACTIVE) {
        true => reshape_view::old_raid_disks(sb).map_err(SuperblockError::BadReshape),
        false => Ok(sb.raid_disks),
    }
}

fn place(sb: &Superblock, drive_size: Sectors) -> Result<(), SuperblockError> {
    let expected = superblock_lba(sb.minor, drive_size).ok_or(SuperblockError::DriveTooSmall(drive_size))?;
    if sb.super_offset != expected {
        return Err(SuperblockError::WrongPlace { says: sb.super_offset, expected });
    }
    Ok(())
}

fn roles(sb: &Superblock) -> Result<(), SuperblockError> {
    let slots = slots_before(sb)?.max(sb.raid_disks);
    for (dev_number, role) in sb.roles.iter().enumerate() {
        if let DeviceRole::Active(slot) = role {
            if slot.0 >= slots {
                return Err(SuperblockError::BadRole { dev_number, slot: slot.0 });
            }
        }
    }
    Ok(())
}

/// Checks that the data area is inside the drive and does not overlap the superblock. Returns the end of the used part.
/// Between that end and the end of the area there may be metadata: md puts a bitmap there that is added later.
fn data_area(sb: &Superblock, drive_size: Sectors) -> Result<DriveLba, SuperblockError> {
    let (start, size) = (sb.data_offset, sb.data_size);
    let limit = match sb.minor {
        MinorVersion::V1_0 => sb.super_offset,
        MinorVersion::V1_1 | MinorVersion::V1_2 => DriveLba(drive_size.get()),
    };
    let off_superblock = sb.minor == MinorVersion::V1_0 || start >= superblock_end(sb);
    let end = start.get().checked_add(size.get());
    if !off_superblock || size.is_zero() || end.is_none_or(|end| end > limit.get()) {
        return Err(SuperblockError::BadDataArea { start, size, limit });
    }
    let uses_size = sb.level.is_redundant() && matches!(sb.role(), DeviceRole::Active(_));
    if uses_size && (sb.size > size || sb.size.is_zero()) {
        return Err(SuperblockError::SizeBeyondData { size: sb.size, data_size: size });
    }
    let used = if sb.level.is_redundant() { sb.size.min(size) } else { size };
    Ok(start + used)
}

pub(crate) fn superblock_end(sb: &Superblock) -> DriveLba {
    sb.super_offset + Bytes(sb.encoded_len() as u64).sectors_ceil()
}

fn metadata_areas(sb: &Superblock, drive_size: Sectors, used_end: DriveLba) -> Result<(), SuperblockError> {
    let check = |area, offset: i32, size: Sectors| {
        let start = sb.place(offset).filter(|_| offset != 0 && !size.is_zero());
        let end = start.and_then(|start| start.get().checked_add(size.get()));
        match (start, end) {
            (Some(start), Some(end)) if end <= drive_size.get() => {
                let end = DriveLba(end);
                let off_superblock = end <= sb.super_offset || start >= superblock_end(sb);
                let off_data = end <= sb.data_offset || start >= used_end;
                if off_superblock && off_data {
                    Ok(())
                } else {
                    Err(SuperblockError::BadMetadataArea(area))
                }
            }
            _ => Err(SuperblockError::BadMetadataArea(area)),
        }
    };
    if let Some(offset) = sb.bitmap_offset() {
        check(MetadataArea::Bitmap, offset, Sectors(1))?;
    }
    if let Some(ppl) = sb.ppl() {
        check(MetadataArea::Ppl, i32::from(ppl.offset), Sectors(u64::from(ppl.size)))?;
    }
    let log = sb.bad_blocks;
    let log_is_used = sb.features.contains(FeatureMap::BAD_BLOCKS) || sb.bad_block_log().is_some();
    if log_is_used {
        let size = Sectors(u64::from(log.size));
        if size > BAD_BLOCK_LOG_MAX || log.shift > BAD_BLOCK_SHIFT_MAX {
            return Err(SuperblockError::BadMetadataArea(MetadataArea::BadBlocks));
        }
        check(MetadataArea::BadBlocks, log.offset, size)?;
    }
    Ok(())
}
