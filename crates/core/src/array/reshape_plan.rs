//! What a change of shape would do, and whether it can begin. Pure: it takes superblocks and decides.

use core::fmt;
use openraid_format::{ChangeBegin, Direction, MdLevel, ShapeFields, Superblock, SuperblockError};
use openraid_units::{DriveLba, Sectors, SetLba};

use crate::geometry::change::{ChangeError, ShapeChange, Shift};
use crate::geometry::{Geometry, GeometryError, Level, SetSpec};
use crate::slots::SlotSet;

/// A change that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReshapeError {
    /// The array has this shape already.
    Nothing,
    /// Data of this level does not move.
    Level(MdLevel),
    /// Another level, chunk or layout than the array has.
    OnlyMembers,
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
                write!(f, "{level} cannot change its shape while it runs; raid4, raid5 and raid6 can get more members")
            }
            Self::OnlyMembers => {
                f.write_str("only the number of members can change: leave out the level, the chunk and the layout")
            }
            Self::FewerMembers { now, asked } => write!(
                f,
                "the array has {now} members and cannot have {asked}: only more members are possible; ask for {} or more",
                now + 1
            ),
            Self::Geometry(error) => write!(f, "{error}"),
            Self::Change(error) => write!(f, "{error}"),
            Self::TooFewSpares { need, have } => write!(
                f,
                "the new shape needs {need} more drives, and the array has {have} spares; add {} first",
                need.saturating_sub(*have)
            ),
            Self::NoStep => f.write_str("the members have no room for the first step of this change"),
            Self::NoRoom { shift, why } => write!(
                f,
                "there is no room to move the start of the data by {shift} sectors on each member: {why}"
            ),
        }
    }
}

impl core::error::Error for ReshapeError {}

/// A change that can begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReshapePlan {
    /// The shape before the change.
    pub old: ShapeFields,
    /// The shape after it.
    pub new: ShapeFields,
    /// The geometries and the direction.
    pub change: ShapeChange,
    /// Sectors by which the start of each member's data moves.
    pub shift: i64,
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
    let old =
        ShapeFields { level: common.level, layout: common.layout, chunk: common.chunk, raid_disks: common.raid_disks };
    if old == new {
        return Err(ReshapeError::Nothing);
    }
    if old.data_columns().is_none() {
        return Err(ReshapeError::Level(old.level));
    }
    if (old.level, old.layout, old.chunk) != (new.level, new.layout, new.chunk) {
        return Err(ReshapeError::OnlyMembers);
    }
    if new.raid_disks < old.raid_disks {
        return Err(ReshapeError::FewerMembers { now: old.raid_disks, asked: new.raid_disks });
    }
    let [from, to] = [old, new].map(|fields| geometry_of(&fields, common.size));
    let need = new.raid_disks - old.raid_disks;
    let have = u16::try_from(spares.len()).unwrap_or(u16::MAX);
    let (from, to) = (from?, to?);
    if have < need {
        return Err(ReshapeError::TooFewSpares { need, have });
    }
    let direction = Direction::Forward;
    let none = alloc::vec![Shift::default(); usize::from(new.raid_disks)];
    let no_shift =
        ShapeChange::new(from.clone(), to.clone(), direction, none, SlotSet::EMPTY).map_err(ReshapeError::Change)?;
    let shift = -i64::try_from(no_shift.least_shift().get()).expect("a few stripes");
    let shifts = alloc::vec![Shift(shift); usize::from(new.raid_disks)];
    let change = ShapeChange::new(from, to, direction, shifts, SlotSet::EMPTY).map_err(ReshapeError::Change)?;
    if !change.has_room(change.start()) {
        return Err(ReshapeError::NoStep);
    }
    let plan = ReshapePlan { old, new, change, shift };
    for member in members.iter().chain(&spares[..usize::from(need)]) {
        plan.begin_on(&mut member.clone()).map_err(|why| ReshapeError::NoRoom { shift, why })?;
    }
    Ok(plan)
}

impl ReshapePlan {
    /// The new start of a member's data.
    pub(crate) fn new_start(&self, member: &Superblock) -> DriveLba {
        DriveLba(member.data_offset.get().saturating_add_signed(self.shift))
    }

    /// Begin the change on a member's superblock.
    pub(crate) fn begin_on(&self, member: &mut Superblock) -> Result<(), SuperblockError> {
        member.begin_change(&ChangeBegin {
            new: self.new,
            direction: Direction::Forward,
            position: SetLba::ZERO,
            new_data_offset: self.new_start(member),
        })
    }
}

/// The geometry of a shape of an array whose members use `size` sectors each.
fn geometry_of(fields: &ShapeFields, size: Sectors) -> Result<Geometry, ReshapeError> {
    let level = Level::from_md(fields.level.number()).expect("levels of superblocks are known");
    let spec = SetSpec {
        level,
        members: fields.raid_disks,
        chunk: fields.chunk,
        layout: fields.layout,
        member_size: size,
        member_sizes: &[],
    };
    Geometry::new(&spec).map_err(ReshapeError::Geometry)
}
