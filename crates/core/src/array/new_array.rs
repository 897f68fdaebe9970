//! New arrays and new members: the superblocks they begin with. Pure, like [`super::assemble`]: the result is an
//! [`Assembly`] whose superblocks are written when it is started.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use openraid_format::{
    BitmapError, BitmapHeader, DeviceFlags, DeviceRole, MdLevel, MemberFields as MemberIdentity, MemberPlacement,
    MinorVersion, NewSet, PlacementError, PlacementRequest, SetName, Superblock, Timestamp, Uuid,
};
use openraid_units::{DriveId, DriveLba, Sectors, Slot};

use super::assemble::{Assembly, FoundGuard, PlannedBitmap, PlannedMember, PlannedPpl};
use super::membership::Membership;
use crate::geometry::{Geometry, GeometryError, Level, SetSpec};
use crate::limits::MEMBERS_MAX;
use crate::slot_set::SlotSet;

/// A drive for a new array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewDrive {
    /// Number of the drive.
    pub drive: DriveId,
    /// Size of the drive.
    pub capacity: Sectors,
    /// The identity that it gets.
    pub uuid: Uuid,
}

/// A device that joins a running array; the controller writes its superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMember {
    /// The drive, attached before.
    pub drive: DriveId,
    /// The start of its data area, its length, its identity: a superblock of the array's `set_uuid`, made by
    /// [`superblock_for_new_member`] or read from the drive.
    pub superblock: Superblock,
    /// Its superblock was read from the drive (a re-add), not made.
    pub returning: bool,
}

/// What to create.
#[derive(Clone, Debug)]
pub struct CreateSpec {
    /// Identity.
    pub uuid: Uuid,
    /// Name.
    pub name: SetName,
    /// Now.
    pub created: Timestamp,
    /// Level of the array.
    pub level: MdLevel,
    /// md's layout number. RAID 0 uses it only if members are unequal.
    pub layout: u32,
    /// Chunk; without meaning for RAID 1.
    pub chunk: Sectors,
    /// Where the superblock goes.
    pub minor: MinorVersion,
    /// A drive for each slot; `None` is a missing member.
    pub slots: Vec<Option<NewDrive>>,
    /// Spares.
    pub spares: Vec<NewDrive>,
    /// Use no more than this of each member (levels 1, 4, 5, 6 and 10).
    pub size: Option<Sectors>,
    /// The members are known to be consistent (all zero, for example): no first sync.
    pub assume_clean: bool,
    /// Keep a write-intent bitmap.
    pub bitmap: bool,
    /// Keep a partial parity log (RAID 5; not together with a bitmap).
    pub ppl: bool,
}

/// Why an array cannot be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CreateError {
    /// The shape is impossible.
    Geometry(GeometryError),
    /// A drive cannot hold a member.
    Placement {
        /// Number of the drive.
        drive: DriveId,
        /// The fault of the place.
        error: PlacementError,
    },
    /// A spare is smaller than the members.
    SpareTooSmall {
        /// The spare.
        drive: DriveId,
        /// Size of the spare.
        size: Sectors,
        /// Where its data would start.
        offset: DriveLba,
        /// Room on it.
        have: Sectors,
        /// Room needed.
        need: Sectors,
    },
    /// `size` is larger than the smallest member allows.
    SizeTooLarge {
        /// The requested size.
        asked: Sectors,
        /// The largest possible size.
        have: Sectors,
    },
    /// Too many members are missing.
    TooManyMissing(SlotSet),
    /// More members than a set can have.
    TooManyMembers(usize),
    /// No member at all, or spares for a level that cannot use them.
    NoUse(&'static str),
    /// The bitmap does not fit.
    Bitmap(BitmapError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Geometry(error) => write!(f, "{error}"),
            Self::Placement { drive, error } => write!(f, "drive {drive}: {error}"),
            Self::SpareTooSmall { drive, .. } => {
                write!(f, "drive {drive}: {}", self.too_small_text().expect("it is too small"))
            }
            Self::SizeTooLarge { asked, have } => {
                let (asked, have) = (asked.readable(), have.readable());
                write!(f, "a size of {asked} was asked for, but the smallest member has room for {have}")
            }
            Self::TooManyMissing(slots) => {
                write!(f, "without {slots}: that is more than this level survives; name more members")
            }
            Self::TooManyMembers(n) => write!(f, "{n} members are more than the {MEMBERS_MAX} that an array can have"),
            Self::NoUse(why) => f.write_str(why),
            Self::Bitmap(error) => write!(f, "bitmap: {error}"),
        }
    }
}
impl core::error::Error for CreateError {}

impl CreateError {
    fn too_small(drive: &NewDrive, placement: &MemberPlacement, need: Sectors) -> Self {
        let (offset, have) = (placement.data_offset, placement.usable);
        Self::SpareTooSmall { drive: drive.drive, size: drive.capacity, offset, have, need }
    }

    /// The size of a drive that is too small to be a member, and the size that would do, without the drive's name.
    #[must_use]
    pub fn too_small_text(&self) -> Option<String> {
        let Self::SpareTooSmall { size, offset, have, need, .. } = self else { return None };
        let least = *size + need.saturating_sub(*have);
        Some(format!(
            "too small: it has {}, of which {} can hold data, from sector {} on, and a member needs {}; use a drive of at least {}",
            size.readable(),
            have.readable(),
            offset.get(),
            need.readable(),
            least.readable()
        ))
    }
}

/// Plan a new array.
///
/// # Errors
/// Why it is impossible; see [`CreateError`].
pub fn plan(spec: &CreateSpec) -> Result<Assembly, CreateError> {
    let raid_disks = u16::try_from(spec.slots.len())
        .ok()
        .filter(|n| *n <= MEMBERS_MAX)
        .ok_or(CreateError::TooManyMembers(spec.slots.len()))?;
    let redundant = spec.level.is_redundant();
    if !redundant && !spec.spares.is_empty() {
        return Err(CreateError::NoUse("this level has no redundancy, so a spare could never take over; leave it out"));
    }
    if spec.ppl && spec.level != MdLevel::Raid5 {
        return Err(CreateError::NoUse("a partial parity log is for RAID 5 only; choose another consistency policy"));
    }
    if spec.ppl && spec.bitmap {
        return Err(CreateError::NoUse("an array has a bitmap or a partial parity log, not both; leave one out"));
    }
    let place = |d: &NewDrive| {
        let request =
            PlacementRequest { minor: spec.minor, level: spec.level, chunk: spec.chunk, drive_size: d.capacity };
        let placement = if spec.ppl { MemberPlacement::with_ppl(request) } else { MemberPlacement::new(request) };
        placement.map_err(|error| CreateError::Placement { drive: d.drive, error })
    };
    let mut placements = Vec::new();
    for drive in spec.slots.iter().flatten().chain(&spec.spares) {
        placements.push((*drive, place(drive)?));
    }
    let present = spec.slots.iter().flatten().count();
    let smallest = placements[..present].iter().map(|(_, p)| p.usable).min();
    let smallest = smallest.ok_or(CreateError::NoUse("an array needs at least one member that is there"))?;
    let size = member_size(spec, redundant, smallest)?;
    check_spares(&placements[present..], size)?;
    let missing: SlotSet = (0..raid_disks).map(Slot).filter(|slot| spec.slots[slot.index()].is_none()).collect();
    let sizes: Vec<Sectors> = slot_sizes(spec, &placements);
    let unequal = sizes.windows(2).any(|w| w[0] != w[1]);
    let layout = if spec.level == MdLevel::Raid0 && !unequal { 0 } else { spec.layout };
    let geometry = Geometry::new(&SetSpec {
        level: Level::from_md(spec.level.number()).expect("md's levels are known"),
        members: raid_disks,
        chunk: spec.chunk,
        layout,
        member_size: size,
        member_sizes: &sizes,
    })
    .map_err(CreateError::Geometry)?;
    if !geometry.survives(missing) {
        return Err(CreateError::TooManyMissing(missing));
    }
    // If the set could lose no further member, the members that are there define the missing ones, and there is nothing
    // to compare.
    let resync = geometry.is_redundant_without(missing) && !spec.assume_clean;
    let set = NewSet {
        uuid: spec.uuid,
        name: spec.name,
        created: spec.created,
        level: spec.level,
        layout,
        chunk: if spec.level == MdLevel::Raid1 { Sectors::ZERO } else { spec.chunk },
        size: if redundant { size } else { Sectors::ZERO },
        raid_disks,
        resync_from: resync.then_some(Sectors::ZERO),
        bitmap: spec.bitmap && redundant,
    };
    finish(spec, &set, geometry, missing, &placements)
}

fn member_size(spec: &CreateSpec, redundant: bool, smallest: Sectors) -> Result<Sectors, CreateError> {
    let chunked = |size: Sectors| {
        if spec.level == MdLevel::Raid1 || spec.chunk.is_zero() {
            size
        } else {
            size.round_down(spec.chunk)
        }
    };
    match spec.size {
        Some(asked) if redundant && asked > smallest => Err(CreateError::SizeTooLarge { asked, have: smallest }),
        Some(asked) if redundant => Ok(chunked(asked)),
        Some(_) => Err(CreateError::NoUse("a size can be given only for levels with redundancy")),
        None => Ok(chunked(smallest)),
    }
}

fn check_spares(spares: &[(NewDrive, MemberPlacement)], need: Sectors) -> Result<(), CreateError> {
    match spares.iter().find(|(_, p)| p.usable < need) {
        Some((drive, p)) => Err(CreateError::too_small(drive, p, need)),
        None => Ok(()),
    }
}

fn slot_sizes(spec: &CreateSpec, placements: &[(NewDrive, MemberPlacement)]) -> Vec<Sectors> {
    let mut given = placements.iter();
    spec.slots
        .iter()
        .map(|slot| match slot {
            Some(_) => given.next().map_or(Sectors::ZERO, |(_, p)| p.data_size),
            None => Sectors::ZERO,
        })
        .collect()
}

fn finish(
    spec: &CreateSpec,
    set: &NewSet,
    geometry: Geometry,
    missing: SlotSet,
    placements: &[(NewDrive, MemberPlacement)],
) -> Result<Assembly, CreateError> {
    let mut roles = set.roles(spec.spares.len());
    for slot in missing {
        roles.set(slot.index(), DeviceRole::Faulty);
    }
    let mut members = Vec::new();
    let mut placed = placements.iter();
    let slots = spec.slots.iter().enumerate().filter(|(_, d)| d.is_some()).map(|(number, _)| number);
    let numbers = slots.chain(spec.slots.len()..spec.slots.len() + spec.spares.len());
    for number in numbers {
        let (drive, placement) = placed.next().expect("one placement for each device");
        let slot = Slot(u16::try_from(number).expect("few devices"));
        let is_member = number < spec.slots.len();
        let identity = MemberIdentity {
            dev_number: u32::try_from(number).expect("few devices"),
            uuid: drive.uuid,
            flags: DeviceFlags::default(),
        };
        let mut superblock = set.superblock(identity, placement, roles.clone());
        if let Some(place) = placement.ppl {
            superblock.set_ppl(place);
        }
        members.push(PlannedMember {
            drive: drive.drive,
            superblock,
            verdict: if is_member { Membership::Member(slot) } else { Membership::Spare },
            bad: Vec::new(),
        });
    }
    let common = members[0].superblock.clone();
    let bitmap = if set.bitmap { Some(new_bitmap(set, &common, placements)?) } else { None };
    Ok(Assembly {
        verdicts: members.iter().map(|m| (m.drive, m.verdict)).collect(),
        common,
        geometry,
        change: None,
        members,
        missing,
        resync_from: set.resync_from,
        bitmap,
        ppl: spec.ppl.then(PlannedPpl::default),
        newly_created: true,
        mark: FoundGuard::None,
        forced: None,
    })
}

fn new_bitmap(
    set: &NewSet,
    common: &Superblock,
    placements: &[(NewDrive, MemberPlacement)],
) -> Result<PlannedBitmap, CreateError> {
    let covers =
        openraid_format::sync_size(common).ok_or(CreateError::NoUse("a bitmap is for levels with redundancy"))?;
    let mut chunk = 0;
    for (_, placement) in placements {
        chunk = chunk.max(placement.bitmap_chunk(covers).map_err(CreateError::Bitmap)?);
    }
    let header = BitmapHeader::new(set.uuid, 0, covers, chunk);
    Ok(PlannedBitmap { header, bits: Vec::new(), valid: true, alike: true })
}

/// The superblock with which a new device joins a running array as a spare. `array` is a superblock of the array
/// ([`crate::admin::ArrayStatus::superblock`]); `number` a device number that its role table does not use.
///
/// # Errors
/// Why the drive cannot be a member.
pub fn superblock_for_new_member(array: &Superblock, drive: &NewDrive) -> Result<Superblock, CreateError> {
    let request =
        PlacementRequest { minor: array.minor, level: array.level, chunk: array.chunk, drive_size: drive.capacity };
    // Linux md writes a size into all superblocks; without redundancy it has no meaning.
    let need = if array.level.is_redundant() { array.size } else { Sectors::ZERO };
    let placement = MemberPlacement::for_size(request, array.ppl().is_some(), need, array.data_offset);
    let placement = placement.map_err(|error| CreateError::Placement { drive: drive.drive, error })?;
    if placement.usable < need {
        return Err(CreateError::too_small(drive, &placement, need));
    }
    let mut superblock = array.clone();
    superblock.data_offset = placement.data_offset;
    superblock.data_size = placement.data_size;
    superblock.super_offset = placement.super_offset;
    superblock.bad_blocks = placement.bad_blocks;
    superblock.device_uuid = drive.uuid;
    superblock.device_flags = DeviceFlags::default();
    superblock.corrected_reads = 0;
    superblock.set_recovery_offset(None);
    if array.bitmap_offset().is_some() {
        superblock.set_bitmap_offset(placement.bitmap_offset);
    }
    if let Some(place) = placement.ppl {
        superblock.set_ppl(place);
    }
    superblock.dev_number = u32::MAX;
    Ok(superblock)
}
