//! What a change of shape would do, and whether it can begin. Pure: it takes superblocks and decides.

use alloc::vec::Vec;
use core::fmt;
use openraid_format::{
    BitmapGeometry, ChangeBegin, DeviceRole, MdLevel, MetadataArea, ReshapeDirection, ReshapeFault, ShapeFields,
    Superblock, SuperblockError,
};
use openraid_units::{DriveLba, MemberLba, Sectors, Slot};

use super::used_size::{SizeError, UsedSize};
use crate::geometry::reshape::{ChangeError, ShapeChange, Shift};
use crate::geometry::shape::Side;
use crate::geometry::takeover::{takeover, with_q_apart, NoTakeover, Takeover};
use crate::geometry::{Geometry, GeometryError, Level, Rotation, SetSpec};
use crate::slot_set::SlotSet;

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
    /// The members cannot be used like this.
    Size(SizeError),
    /// There is no room to move the data of a member.
    NoRoom {
        /// Sectors by which the start of the data moves.
        shift: i64,
        /// Why that is impossible on the member.
        why: SuperblockError,
    },
    /// There is no room to move the data of a member up.
    NoRoomAfter {
        /// Sectors by which the start of the data moves.
        shift: Sectors,
    },
}

impl fmt::Display for ReshapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the array has this shape already"),
            Self::Level(MdLevel::Raid0) => f.write_str(
                "raid0 cannot change its shape while it runs: give it redundancy first (--level 4, 5, 6 or 10, and a drive for \
                 the parity or one for each copy)",
            ),
            Self::Level(MdLevel::Linear) => {
                f.write_str("linear gets more drives at its end (--members DRIVE), and changes in no other way")
            }
            Self::Level(level) => {
                write!(f, "{level} cannot change its shape while it runs; raid4, raid5, raid6 and raid10 can get more members, another chunk and another layout")
            }
            Self::Takeover(error) => write!(f, "{error}"),
            Self::FewerMembers { now, asked } => write!(
                f,
                "the array has {now} members and cannot have {asked}: fewer are possible for raid4, raid5 and raid6 of the same \
                 level, and for mirrors; ask for {} or more",
                now + 1
            ),
            Self::NoRoomAfter { shift } => write!(
                f,
                "with fewer members the data must move up by {} on each member, and a member has no room for that: make the used \
                 size of each member smaller by that first (--size)",
                shift.readable()
            ),
            Self::Size(error) => write!(f, "{error}"),
            Self::Geometry(error) => write!(f, "{error}"),
            Self::Change(error) => write!(f, "{error}"),
            Self::TooFewSpares { need, have } => write!(
                f,
                "the new shape needs {need} more drive{}, and the array has {have} spares; add {} first",
                if *need == 1 { "" } else { "s" },
                need.saturating_sub(*have)
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

/// The goal of a change of shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReshapeGoal {
    /// The shape, to this one.
    Shape(ShapeFields),
    /// The sectors of each member that the array uses.
    Used(UsedSize),
}

impl ReshapeGoal {
    /// Does it need members to be missing? RAID 0 is made of an array that has lost all its redundancy.
    #[must_use]
    pub const fn is_without_redundancy(&self) -> bool {
        matches!(self, Self::Shape(ShapeFields { level: MdLevel::Raid0, .. }))
    }
}

/// An array as far as a plan asks.
#[derive(Clone, Copy, Debug)]
pub struct Present<'a> {
    /// The common part of its superblocks.
    pub common: &'a Superblock,
    /// Its members in sync.
    pub members: &'a [Superblock],
    /// The spares, and the drives that join as spares before the change.
    pub spares: &'a [Superblock],
    /// Slots without a member in sync.
    pub missing: SlotSet,
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
    /// Nothing moves: a linear array gets drives at its end.
    Append,
    /// Nothing moves: the array uses more of each member, and this is the number of sectors.
    Resize(Sectors),
    /// Nothing moves: the array uses less of each member, and this is the number of sectors.
    Cut(Sectors),
}

/// Plan the change of an array to this shape.
///
/// # Errors
/// Why the change cannot be; see [`ReshapeError`].
pub fn plan_reshape(present: &Present<'_>, new: ShapeFields) -> Result<ReshapePlan, ReshapeError> {
    let Present { common, members, spares, .. } = *present;
    let from = common.shape();
    if from == new {
        return Err(ReshapeError::Nothing);
    }
    let takeover = takeover_of(present, &new)?;
    let old = takeover.as_ref().map_or(from, |takeover| shape_after(takeover, new.level));
    if let Some(takeover) = takeover.filter(|_| old == new) {
        let size = takeover.member_size();
        let change = ShapeChange::in_place(geometry_of(&from, size)?, geometry_of(&new, size)?);
        let (kind, room) = (PlanKind::Takeover(takeover), Sectors::ZERO);
        return Ok(ReshapePlan { from, old: from, new, kind, change, shift: 0, room });
    }
    if !matches!(old.level, MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 | MdLevel::Raid10) {
        return Err(ReshapeError::Level(old.level));
    }
    if from != old && (from.level, old.level) != (MdLevel::Raid5, MdLevel::Raid6) {
        // Data move when the array has its level. A begin that is cut is taken back, and superblocks that say the level of the
        // takeover name only the RAID 5 before a RAID 6.
        return Err(ReshapeError::Takeover(NoTakeover::Layout { given: old.layout }));
    }
    let is_fewer = new.raid_disks < old.raid_disks;
    if is_fewer && (from != old || new.data_columns() >= old.data_columns()) {
        return Err(ReshapeError::FewerMembers { now: old.raid_disks, asked: new.raid_disks });
    }
    let sides = (geometry_of(&old, common.size)?, geometry_of(&new, common.size)?);
    let fields = [from, old, new];
    if is_fewer {
        return plan_in(ReshapeDirection::Backward, fields, &sides, &members.iter().collect::<Vec<_>>());
    }
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
    let forward = plan_in(ReshapeDirection::Forward, fields, &sides, &drives);
    // A member that is filled on the way has a position from the start on.
    if forward.is_ok() || from != old {
        return forward;
    }
    // The first direction is the usual one: its refusal says what would help.
    plan_in(ReshapeDirection::Backward, fields, &sides, &drives).or(forward)
}

/// Plan that an array uses this size of each of its members and spares.
///
/// # Errors
/// Why that is impossible; see [`ReshapeError`].
pub fn plan_resize(common: &Superblock, drives: &[Superblock], to: UsedSize) -> Result<ReshapePlan, ReshapeError> {
    let shape = common.shape();
    if matches!(shape.level, MdLevel::Linear | MdLevel::Raid0) {
        return Err(ReshapeError::Level(shape.level));
    }
    if common.raid10_layout().is_some_and(|layout| layout.far > 1 && !layout.offset) {
        return Err(ReshapeError::Size(SizeError::FarCopies));
    }
    let smallest = drives.iter().map(|drive| drive.data_size).min().unwrap_or(common.size);
    let chunk = shape.chunk.max(Sectors::kib(4));
    let room = smallest.round_down(chunk);
    let size = match to {
        UsedSize::Max if room <= common.size => {
            return Err(ReshapeError::Size(SizeError::NoLarger { used: common.size }));
        }
        UsedSize::Max => room,
        UsedSize::Of(asked) if asked.is_zero() || !(asked % chunk).is_zero() => {
            return Err(ReshapeError::Size(SizeError::NotWhole { asked, chunk }));
        }
        UsedSize::Of(asked) if asked > room => return Err(ReshapeError::Size(SizeError::TooLarge { asked, room })),
        UsedSize::Of(asked) if asked == common.size => return Err(ReshapeError::Nothing),
        UsedSize::Of(asked) => asked,
    };
    let change = ShapeChange::in_place(geometry_of(&shape, common.size)?, geometry_of(&shape, size)?);
    let kind = if size > common.size { PlanKind::Resize(size) } else { PlanKind::Cut(size) };
    let room = Sectors::ZERO;
    Ok(ReshapePlan { from: shape, old: shape, new: shape, kind, change, shift: 0, room })
}

/// The change of an array to this level without a move of data; none if it has this level.
fn takeover_of(present: &Present<'_>, new: &ShapeFields) -> Result<Option<Takeover>, ReshapeError> {
    let Present { common, members, missing, .. } = *present;
    let from = common.shape();
    let is_striped = from.level == MdLevel::Raid0;
    let sizes: Vec<Sectors> = members.iter().filter(|_| is_striped).map(|member| member.data_size).collect();
    let spec = SetSpec { member_sizes: &sizes, ..spec_of(&from, common.size) };
    if from.level == new.level {
        let is_mirror = from.level == MdLevel::Raid1;
        return Ok(is_mirror.then(|| Takeover::of_mirror(&spec, new.raid_disks)));
    }
    let to = Level::from_md(new.level.number()).expect("levels of superblocks are known");
    let taken = takeover(&spec, missing, to, None).map_err(ReshapeError::Takeover)?;
    if !is_striped && taken.member_size() != common.size {
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
        (MdLevel::Raid5, MdLevel::Raid4) => ShapeFields { level: MdLevel::Raid4, layout: 0, ..from },
        // Two members of RAID 5 are a mirror.
        (MdLevel::Raid1, MdLevel::Raid5 | MdLevel::Raid6) if from.raid_disks != 2 => {
            ShapeFields { raid_disks: 2, ..from }
        }
        (MdLevel::Raid1, MdLevel::Raid5 | MdLevel::Raid6) => {
            let five = takeover(&spec_of(&from, size), SlotSet::EMPTY, Level::Raid5, None);
            five.map_or(to, |five| shape_after(&five, MdLevel::Raid5))
        }
        // Two members have no place for Q.
        (MdLevel::Raid5, MdLevel::Raid6) if from.raid_disks < 3 => {
            ShapeFields { level: MdLevel::Raid5, raid_disks: (to.raid_disks - 1).max(3), layout: from.layout, ..to }
        }
        (MdLevel::Raid4, MdLevel::Raid5 | MdLevel::Raid6) => {
            ShapeFields { level: MdLevel::Raid5, layout: last, ..from }
        }
        // The members get an empty one for the parity, or one each for the copies.
        (MdLevel::Raid0, MdLevel::Raid5 | MdLevel::Raid6) => {
            ShapeFields { level: MdLevel::Raid5, layout: last, raid_disks: from.raid_disks + 1, ..from }
        }
        (MdLevel::Raid0, MdLevel::Raid4) => {
            ShapeFields { level: MdLevel::Raid4, layout: 0, raid_disks: from.raid_disks + 1, ..from }
        }
        (MdLevel::Raid0, MdLevel::Raid10) => {
            let layout = openraid_format::default_layout(MdLevel::Raid10);
            ShapeFields { level: MdLevel::Raid10, layout, raid_disks: 2 * from.raid_disks, ..from }
        }
        _ => to,
    }
}

/// Plan the change in this direction. With more data columns forwards, or fewer backwards, each step frees room for the next
/// one, so the least shift is enough. Otherwise each step needs new room, so the shift is as large as half of the room: the other half is for the next
/// change.
fn plan_in(
    direction: ReshapeDirection,
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
    let sign = if direction == ReshapeDirection::Forward { -1 } else { 1 };
    let still = change(0)?;
    let least = i64::try_from(still.least_shift().get()).expect("a few stripes");
    let columns = |fields: &ShapeFields| fields.data_columns().unwrap_or(fields.raid_disks);
    let frees = columns(&new) != columns(&old);
    let room = drives.iter().map(|drive| drive.room_before_data()).min().unwrap_or(Sectors::ZERO);
    let mut shift = if frees { least } else { (SHIFT_MAX - SHIFT_MAX % least).max(least) };
    loop {
        let (change, shift_now) = (change(sign * shift)?, sign * shift);
        let plan = ReshapePlan { from, old, new, kind: PlanKind::Move, change, shift: shift_now, room };
        let tried = drives.iter().try_for_each(|member| plan.try_on(member));
        match tried {
            Ok(()) if plan.change.has_room_everywhere() => return Ok(plan),
            // The places of copies are not in the order of the set: some positions need more room.
            Ok(()) if frees && shift < 4 * least => shift += least,
            Ok(()) => return Err(ReshapeError::NoStep),
            Err(_) if frees && sign > 0 => {
                return Err(ReshapeError::NoRoomAfter { shift: Sectors(shift.unsigned_abs()) })
            }
            Err(why) if shift == least || frees => return Err(ReshapeError::NoRoom { shift: shift_now, why }),
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
            PlanKind::Takeover(_) | PlanKind::Append | PlanKind::Cut(_) => false,
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
            PlanKind::Takeover(_) | PlanKind::Append | PlanKind::Resize(_) | PlanKind::Cut(_) => SlotSet::EMPTY,
        }
    }

    /// Sectors of the set before and after the change.
    #[must_use]
    pub fn capacities(&self) -> [Sectors; 2] {
        self.geometries().map(Geometry::capacity)
    }

    /// Slots that have no member in sync after a change without a move: drives that join are filled.
    #[must_use]
    pub fn left_empty(&self, missing: SlotSet) -> SlotSet {
        let PlanKind::Takeover(takeover) = self.kind else { return SlotSet::EMPTY };
        (0..self.new.raid_disks).map(Slot).filter(|slot| takeover.source(*slot, missing).is_none()).collect()
    }

    /// The common part of an array's superblocks after a change without a move.
    #[must_use]
    pub fn after(&self, common: &Superblock) -> Superblock {
        let mut after = common.clone();
        match self.kind {
            PlanKind::Takeover(takeover) => after.take_over(&self.new, takeover.member_size()),
            PlanKind::Resize(size) | PlanKind::Cut(size) => after.size = size,
            PlanKind::Append => after.set_shape(&self.new),
            PlanKind::Move => {}
        }
        after
    }

    /// If hosts would lose the end of the set: the size that is left.
    #[must_use]
    pub fn cuts_to(&self) -> Option<Sectors> {
        let [before, after] = self.capacities();
        (after < before).then_some(after)
    }

    /// Sectors that are written to each member whose used size is `size` now.
    #[must_use]
    pub fn written_to_each(&self, size: Sectors) -> Sectors {
        match self.kind {
            PlanKind::Move => self.change.member_share(self.change.total()),
            PlanKind::Takeover(_) | PlanKind::Append | PlanKind::Cut(_) => Sectors::ZERO,
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

    /// The superblocks of an array in the middle of this change, of which this percentage of the data has moved: those of `members`,
    /// and of the `spares` that get the new slots. A model begins there; a real array comes there by moving its data.
    ///
    /// # Errors
    /// A member has no room for the change.
    ///
    /// # Panics
    /// The plan is of other drives, or nothing moves in it.
    pub fn begun_at(
        &self,
        members: &[Superblock],
        spares: &[Superblock],
        percent: u8,
    ) -> Result<Vec<Superblock>, SuperblockError> {
        assert!(self.kind == PlanKind::Move, "nothing moves");
        let moved = Sectors(self.change.total().get() / 100 * u64::from(percent.min(100)));
        let boundary = self.change.boundary(moved.round_down(self.change.unit()));
        let mut roles = members.first().expect("an array has members").roles.clone();
        let joining: Vec<(Slot, &Superblock)> =
            (self.from.raid_disks..self.new.raid_disks).map(Slot).zip(spares).collect();
        joining.iter().for_each(|(slot, spare)| roles.set(spare.dev_number as usize, DeviceRole::Active(*slot)));
        let begun = |slot: Option<Slot>, superblock: &Superblock| {
            let mut begun = superblock.clone();
            self.begin_on(&mut begun)?;
            begun.roles = roles.clone();
            begun.set_change_position(boundary)?;
            if let Some(slot) = slot {
                let filled = self.change.filled_at(boundary).filter(|_| self.change.fills(slot));
                begun.set_recovery_offset(filled.map(|to| MemberLba(to.get())));
            }
            Ok(begun)
        };
        let joined = joining.iter().map(|(slot, spare)| begun(Some(*slot), spare));
        members.iter().map(|member| begun(None, member)).chain(joined).collect()
    }
}

/// Do the data fit after their new start? The superblock of a spare, which gets its role later, is not refused for this.
pub(super) fn has_new_data_area(member: &Superblock) -> bool {
    member.new_data_offset() + member.size <= member.data_offset + member.data_size
}

/// The geometry of a shape of an array whose members use `size` sectors each.
fn geometry_of(fields: &ShapeFields, size: Sectors) -> Result<Geometry, ReshapeError> {
    let is_striped = fields.level == MdLevel::Raid0;
    let sizes = alloc::vec![size; if is_striped { usize::from(fields.raid_disks) } else { 0 }];
    let layout = if is_striped { 0 } else { fields.layout };
    let spec = SetSpec { member_sizes: &sizes, layout, ..spec_of(fields, size) };
    Geometry::new(&spec).map_err(ReshapeError::Geometry)
}

fn spec_of(fields: &ShapeFields, member_size: Sectors) -> SetSpec<'static> {
    let level = Level::from_md(fields.level.number()).expect("levels of superblocks are known");
    let ShapeFields { chunk, layout, raid_disks: members, .. } = *fields;
    SetSpec { level, members, chunk, layout, member_size, member_sizes: &[] }
}
