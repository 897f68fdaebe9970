//! What a change of shape would do, and whether it can begin. Pure: it takes superblocks and decides.

use alloc::vec::Vec;
use core::fmt;
use openraid_format::{
    BitmapGeometry, ChangeBegin, Direction, FeatureMap, MdLevel, MetadataArea, ReshapeFault, ShapeFields, Superblock,
    SuperblockError,
};
use openraid_units::{DriveLba, Sectors, Slot};

use crate::geometry::change::{ChangeError, ShapeChange, Shift};
use crate::geometry::shape::Side;
use crate::geometry::takeover::{takeover, with_q_apart, NoTakeover, Takeover};
use crate::geometry::{Geometry, GeometryError, Level, Rotation, SetSpec};
use crate::slots::SlotSet;

/// Maximum shift of a change that needs new room at each step, in sectors: 64 MiB, half of the room that a large drive has.
const SHIFT_MAX: i64 = 128 << 10;
/// Maximum length of a bitmap: 128 KiB, as in mdadm.
const BITMAP_SECTORS_MAX: Sectors = Sectors::kib(128);

/// A change that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReshapeError {
    /// The array has this shape already.
    Nothing,
    /// Data of this level does not move.
    Level(MdLevel),
    /// The level cannot change like this.
    Takeover(NoTakeover),
    /// Fewer members.
    FewerMembers {
        /// Number of members now.
        now: u16,
        /// Number of members that was asked for.
        asked: u16,
    },
    /// The new shape is impossible.
    Geometry(GeometryError),
    /// Data cannot move from the one shape to the other.
    Change(ChangeError),
    /// Too few spares.
    TooFewSpares {
        /// Number of drives that the new shape needs in addition.
        need: u16,
        /// Number of spares.
        have: u16,
    },
    /// The data would not fit between its old and its new places.
    NoStep,
    /// The members have no more room than the array uses.
    NoLarger {
        /// Sectors of each member that the array uses.
        used: Sectors,
    },
    /// Far copies are not where they are on larger members.
    FarCopies,
    /// There is no room to move the data of a member.
    NoRoom {
        /// Sectors by which the start of the data moves.
        shift: i64,
        /// Why that is impossible on the member.
        why: SuperblockError,
    },
}

impl fmt::Display for ReshapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the array has this shape already"),
            Self::Level(level) => {
                write!(f, "{level} cannot change its shape while it runs; raid4, raid5, raid6 and raid10 can get more members, another chunk and another layout")
            }
            Self::Takeover(error) => write!(f, "{error}"),
            Self::FewerMembers { now, asked } => write!(
                f,
                "the array has {now} members and cannot have {asked}: only more members are possible; ask for {} or more",
                now + 1
            ),
            Self::Geometry(error) => write!(f, "{error}"),
            Self::Change(error) => write!(f, "{error}"),
            Self::TooFewSpares { need, have } => write!(
                f,
                "the new shape needs {need} more drive{}, and the array has {have} spares; add {} first",
                if *need == 1 { "" } else { "s" },
                need.saturating_sub(*have)
            ),
            Self::NoLarger { used } => write!(
                f,
                "the array uses {} of each member, and the smallest member has no more; replace each smaller drive first",
                used.readable()
            ),
            Self::FarCopies => f.write_str(
                "far copies would move if the members were larger; make an array with near or offset copies, and copy",
            ),
            Self::NoStep => f.write_str("the members have no room for the first step of this change"),
            Self::NoRoom { shift, why } => write!(
                f,
                "the start of the data must move {} by {} on each member, and a member has no room for that: {why}; \
                 replace that member by a drive whose data begins later",
                if *shift < 0 { "down" } else { "up" },
                Sectors(shift.unsigned_abs()).readable()
            ),
        }
    }
}

impl core::error::Error for ReshapeError {}

/// What shall change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReshapeGoal {
    /// The shape, to this one.
    Shape(ShapeFields),
    /// The sectors of each member that the array uses, to all that the smallest one has.
    AllRoom,
}

/// A change that can begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReshapePlan {
    /// The shape now.
    pub from: ShapeFields,
    /// The shape in which data begin to move. It can have another level than now, in which the same bytes at the same places
    /// mean the same data.
    pub old: ShapeFields,
    /// The shape after it.
    pub new: ShapeFields,
    /// Do data move?
    pub kind: PlanKind,
    /// The geometries and the direction.
    pub change: ShapeChange,
    /// Sectors by which the start of each member's data moves.
    pub shift: i64,
    /// The least room before the data of a member.
    pub room: Sectors,
}

/// The work of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanKind {
    /// Data move.
    Move,
    /// Nothing moves: the superblocks say another level, in which the same bytes at the same places mean the same data.
    Takeover(Takeover),
    /// Nothing moves: the array uses more of each member, and this is the number of sectors.
    Resize(Sectors),
}

/// Plan the change of an array with these superblocks to this shape. `spares` are those of drives that become members.
///
/// # Errors
/// Why the change cannot be; see [`ReshapeError`].
pub fn plan_reshape(
    common: &Superblock,
    members: &[Superblock],
    spares: &[Superblock],
    new: ShapeFields,
) -> Result<ReshapePlan, ReshapeError> {
    let from = common.shape();
    if from == new {
        return Err(ReshapeError::Nothing);
    }
    let takeover = takeover_of(common, &new)?;
    let old = takeover.as_ref().map_or(from, |takeover| shape_after(takeover, new.level));
    if let Some(takeover) = takeover.filter(|_| old == new) {
        let change = ShapeChange::in_place(geometry_of(&from, common.size)?, geometry_of(&new, common.size)?);
        let (kind, room) = (PlanKind::Takeover(takeover), Sectors::ZERO);
        return Ok(ReshapePlan { from, old: from, new, kind, change, shift: 0, room });
    }
    if !matches!(old.level, MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 | MdLevel::Raid10) {
        return Err(ReshapeError::Level(old.level));
    }
    if new.raid_disks < old.raid_disks {
        return Err(ReshapeError::FewerMembers { now: old.raid_disks, asked: new.raid_disks });
    }
    let sides = (geometry_of(&old, common.size)?, geometry_of(&new, common.size)?);
    if sides.1.capacity() < sides.0.capacity() {
        // Backwards a change would begin, and hosts would lose the end of the array.
        let (old, new) = (sides.0.capacity(), sides.1.capacity());
        return Err(ReshapeError::Change(ChangeError::Smaller { old, new }));
    }
    let need = new.raid_disks - from.raid_disks;
    let have = u16::try_from(spares.len()).unwrap_or(u16::MAX);
    if have < need {
        return Err(ReshapeError::TooFewSpares { need, have });
    }
    let drives: Vec<&Superblock> = members.iter().chain(&spares[..usize::from(need)]).collect();
    let fields = [from, old, new];
    let forward = plan_in(Direction::Forward, fields, &sides, &drives);
    // A member that is filled on the way has a position from the start on.
    if forward.is_ok() || from != old {
        return forward;
    }
    // The first direction is the usual one: its refusal says what would help.
    plan_in(Direction::Backward, fields, &sides, &drives).or(forward)
}

/// Plan that an array uses all room that each of its members and spares has.
///
/// # Errors
/// Why that is impossible; see [`ReshapeError`].
pub fn plan_resize(common: &Superblock, drives: &[Superblock]) -> Result<ReshapePlan, ReshapeError> {
    let shape = common.shape();
    if matches!(shape.level, MdLevel::Linear | MdLevel::Raid0) {
        return Err(ReshapeError::Level(shape.level));
    }
    if common.raid10_layout().is_some_and(|layout| layout.far > 1 && !layout.offset) {
        return Err(ReshapeError::FarCopies);
    }
    let smallest = drives.iter().map(|drive| drive.data_size).min().unwrap_or(common.size);
    let size = smallest.round_down(shape.chunk.max(Sectors::kib(4)));
    if size <= common.size {
        return Err(ReshapeError::NoLarger { used: common.size });
    }
    let change = ShapeChange::in_place(geometry_of(&shape, common.size)?, geometry_of(&shape, size)?);
    let (kind, room) = (PlanKind::Resize(size), Sectors::ZERO);
    Ok(ReshapePlan { from: shape, old: shape, new: shape, kind, change, shift: 0, room })
}

/// The change of an array to this level without a move of data; none if it has this level.
fn takeover_of(common: &Superblock, new: &ShapeFields) -> Result<Option<Takeover>, ReshapeError> {
    let from = common.shape();
    let spec = spec_of(&from, common.size);
    if from.level == new.level {
        let is_mirror = from.level == MdLevel::Raid1;
        return Ok(is_mirror.then(|| Takeover::of_mirror(&spec, new.raid_disks)));
    }
    let level = new.level;
    let to = Level::from_md(level.number()).expect("levels of superblocks are known");
    let has_bitmap = common.features.contains(FeatureMap::BITMAP);
    let taken = takeover(&spec, SlotSet::EMPTY, has_bitmap, to, None).map_err(ReshapeError::Takeover)?;
    let is_redundant = |level: MdLevel| !matches!(level, MdLevel::Linear | MdLevel::Raid0);
    if !is_redundant(from.level) || !is_redundant(level) || taken.spec(&[]).member_size != common.size {
        return Err(ReshapeError::Level(from.level));
    }
    Ok(Some(taken))
}

/// The shape after a takeover to this level.
fn shape_after(takeover: &Takeover, level: MdLevel) -> ShapeFields {
    let SetSpec { members, chunk, layout, .. } = takeover.spec(&[]);
    ShapeFields { level, layout, chunk, raid_disks: members }
}

/// The shape to which an array with this shape changes next on its way to another one. The last step leads there. `size`:
/// the used sectors of each member.
#[must_use]
pub fn next_step(from: ShapeFields, size: Sectors, to: ShapeFields) -> ShapeFields {
    let last = Rotation::ParityLast.md_number();
    match (from.level, to.level) {
        // Q comes to the last member, and then the level changes.
        (MdLevel::Raid6, MdLevel::Raid5 | MdLevel::Raid4) => {
            let layout = if to.level == MdLevel::Raid4 { last } else { with_q_apart(to.layout) };
            let step = ShapeFields { level: MdLevel::Raid6, layout, raid_disks: to.raid_disks + 1, ..to };
            let five = ShapeFields { level: MdLevel::Raid5, layout: last, ..to };
            match (step == from, to.level) {
                (true, MdLevel::Raid4) => five,
                (true, _) => to,
                (false, _) => step,
            }
        }
        (MdLevel::Raid5, MdLevel::Raid4) if from.layout != last => {
            ShapeFields { level: MdLevel::Raid5, layout: last, ..to }
        }
        (MdLevel::Raid5, MdLevel::Raid4) => ShapeFields { level: MdLevel::Raid4, ..from },
        // Two members of RAID 5 are a mirror.
        (MdLevel::Raid1, MdLevel::Raid5 | MdLevel::Raid6) if from.raid_disks != 2 => {
            ShapeFields { raid_disks: 2, ..from }
        }
        (MdLevel::Raid1, MdLevel::Raid5 | MdLevel::Raid6) => {
            let five = takeover(&spec_of(&from, size), SlotSet::EMPTY, false, Level::Raid5, None);
            five.map_or(to, |five| shape_after(&five, MdLevel::Raid5))
        }
        // Two members have no place for Q.
        (MdLevel::Raid5, MdLevel::Raid6) if from.raid_disks < 3 => {
            ShapeFields { level: MdLevel::Raid5, raid_disks: (to.raid_disks - 1).max(3), layout: from.layout, ..to }
        }
        (MdLevel::Raid4, MdLevel::Raid5 | MdLevel::Raid6) => {
            ShapeFields { level: MdLevel::Raid5, layout: last, ..from }
        }
        _ => to,
    }
}

/// Plan the change in this direction. With more data columns each step frees room for the next one, so the least shift is
/// enough. Otherwise each step needs new room, so the shift is as large as half of the room: the other half is for the next
/// change.
fn plan_in(
    direction: Direction,
    [from, old, new]: [ShapeFields; 3],
    (before, after): &(Geometry, Geometry),
    drives: &[&Superblock],
) -> Result<ReshapePlan, ReshapeError> {
    let slots = usize::from(new.raid_disks.max(old.raid_disks));
    let fresh = (from.raid_disks..old.raid_disks).map(Slot).collect();
    let change = |shift: i64| {
        let shifts = alloc::vec![Shift(shift); slots];
        ShapeChange::new(before.clone(), after.clone(), direction, shifts, fresh).map_err(ReshapeError::Change)
    };
    let sign = if direction == Direction::Forward { -1 } else { 1 };
    let still = change(0)?;
    let least = i64::try_from(still.least_shift().get()).expect("a few stripes");
    let columns = |fields: &ShapeFields| fields.data_columns().unwrap_or(fields.raid_disks);
    let grows = columns(&new) > columns(&old);
    let room = drives.iter().map(|own| own.room_before_data()).min().unwrap_or(Sectors::ZERO);
    let mut shift = if grows { least } else { (SHIFT_MAX - SHIFT_MAX % least).max(least) };
    loop {
        let (change, shift_now) = (change(sign * shift)?, sign * shift);
        let plan = ReshapePlan { from, old, new, kind: PlanKind::Move, change, shift: shift_now, room };
        let tried = drives.iter().try_for_each(|member| plan.try_on(member));
        match tried {
            Ok(()) if plan.change.has_room_everywhere() => return Ok(plan),
            // The places of copies are not in the order of the set: some positions need more room.
            Ok(()) if grows && shift < 4 * least => shift += least,
            Ok(()) => return Err(ReshapeError::NoStep),
            Err(why) if shift == least || grows => return Err(ReshapeError::NoRoom { shift: shift_now, why }),
            Err(_) => shift = (shift / 2 - shift / 2 % least).max(least),
        }
    }
}

impl ReshapePlan {
    /// Has a member room for a bitmap of the new shape, with regions of this length?
    pub(crate) fn has_bitmap_room(&self, member: &Superblock, chunk: Sectors) -> bool {
        let mut after = member.clone();
        let drive = Sectors(member.data_offset.get()) + member.data_size;
        let is_known = match self.kind {
            PlanKind::Move => self.begin_on(&mut after).is_ok(),
            PlanKind::Takeover(_) => false,
            PlanKind::Resize(size) => {
                after.size = size;
                true
            }
        };
        if !is_known || after.bitmap_offset().is_none() {
            return true;
        }
        let (Some(covers), Some((_, room))) = (openraid_format::sync_size(&after), after.bitmap_room(drive)) else {
            return true;
        };
        BitmapGeometry::new(covers, chunk).sectors() <= room
    }

    /// Can the data move back before the end?
    #[must_use]
    pub fn can_be_cancelled(&self) -> bool {
        self.kind == PlanKind::Move && self.change.can_turn()
    }

    /// Slots that the change fills: they are empty in the shape in which it begins.
    pub(crate) fn fills(&self) -> SlotSet {
        match self.kind {
            PlanKind::Move => (self.from.raid_disks..self.old.raid_disks).map(Slot).collect(),
            PlanKind::Takeover(_) | PlanKind::Resize(_) => SlotSet::EMPTY,
        }
    }

    /// Sectors of the set before and after the change.
    #[must_use]
    pub fn capacities(&self) -> [Sectors; 2] {
        self.geometries().map(Geometry::capacity)
    }

    /// Sectors that are written to each member whose used size is `size` now.
    #[must_use]
    pub fn written_to_each(&self, size: Sectors) -> Sectors {
        match self.kind {
            PlanKind::Move => self.change.member_share(self.change.total()),
            PlanKind::Takeover(_) => Sectors::ZERO,
            // A resync follows.
            PlanKind::Resize(larger) => larger - size,
        }
    }

    /// The geometries before and after the change.
    #[must_use]
    pub fn geometries(&self) -> [&Geometry; 2] {
        [self.change.on(Side::Old), self.change.on(Side::New)]
    }

    /// The new start of a member's data.
    pub(crate) fn new_start(&self, member: &Superblock) -> DriveLba {
        DriveLba(member.data_offset.get().saturating_add_signed(self.shift))
    }

    /// Can the change begin on a member's superblock?
    fn try_on(&self, member: &Superblock) -> Result<(), SuperblockError> {
        let mut trial = member.clone();
        self.begin_on(&mut trial)?;
        let fault = ReshapeFault::NewDataArea { shift: self.shift };
        has_new_data_area(&trial).then_some(()).ok_or(SuperblockError::BadReshape(fault))
    }

    /// Begin the change on a member's superblock.
    pub(crate) fn begin_on(&self, member: &mut Superblock) -> Result<(), SuperblockError> {
        member.set_shape(&self.old);
        member.begin_change(&ChangeBegin {
            new: self.new,
            direction: self.change.direction(),
            position: self.change.start(),
            new_data_offset: self.new_start(member),
        })?;
        // The length of a bitmap is not in the superblock.
        let start = member.new_data_offset();
        let bitmap = member.bitmap_offset().and_then(|offset| member.place(offset));
        match bitmap.filter(|at| *at <= start && start < *at + BITMAP_SECTORS_MAX) {
            Some(_) => Err(SuperblockError::BadReshape(ReshapeFault::NewDataOver(MetadataArea::Bitmap))),
            None => Ok(()),
        }
    }
}

/// Do the data fit after their new start? The superblock of a spare, which gets its role later, is not refused for this.
pub(super) fn has_new_data_area(member: &Superblock) -> bool {
    member.new_data_offset() + member.size <= member.data_offset + member.data_size
}

/// The geometry of a shape of an array whose members use `size` sectors each.
fn geometry_of(fields: &ShapeFields, size: Sectors) -> Result<Geometry, ReshapeError> {
    Geometry::new(&spec_of(fields, size)).map_err(ReshapeError::Geometry)
}

fn spec_of(fields: &ShapeFields, member_size: Sectors) -> SetSpec<'static> {
    let level = Level::from_md(fields.level.number()).expect("levels of superblocks are known");
    let ShapeFields { chunk, layout, raid_disks: members, .. } = *fields;
    SetSpec { level, members, chunk, layout, member_size, member_sizes: &[] }
}
