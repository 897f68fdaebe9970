//! A change of shape that is under way (md: reshape), as the superblock of one member says it.
//!
//! ```text
//!  forwards    0 ------- position ------- end      backwards   0 ------- position ------- end
//!                  new    |     old                               old      |     new
//! ```
//!
//! `level`, `layout` and `chunk` are the old shape until the end, `raid_disks` is the new one's, and `delta_disks` the
//! difference. The new shape's data begin at `data_offset + new_offset`; each member has its own shift. All fields of the
//! change have a meaning only with [`FeatureMap::RESHAPE_ACTIVE`]: md leaves those of an earlier change in place.
//!
//! [`Superblock::decode`] does all checks for which one superblock is enough, with md's rules, so the view cannot fail.
//! What needs all members (room, equal numbers, the newest position) is left to assembly.

use crate::feature::FeatureMap;
use crate::level::{MdLevel, Raid10Layout};
use crate::role::DeviceRole;
use crate::superblock::{MinorVersion, Reshape, Superblock};
use crate::superblock_checks::{self, MetadataArea, SuperblockError};
use core::fmt;
use openraid_units::{DriveLba, Sectors, SetLba};

/// The order in which a change goes through the addresses of the set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReshapeDirection {
    /// From the start: addresses below the position have the new shape.
    Forward,
    /// From the end: addresses from the position on have the new shape.
    Backward,
}

impl ReshapeDirection {
    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Backward,
            Self::Backward => Self::Forward,
        }
    }
}

impl fmt::Display for ReshapeDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forward => "forwards",
            Self::Backward => "backwards",
        })
    }
}

/// One of the two shapes of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShapeFields {
    /// The level, the same in both shapes.
    pub level: MdLevel,
    /// The layout number.
    pub layout: u32,
    /// The chunk.
    pub chunk: Sectors,
    /// Number of slots.
    pub raid_disks: u16,
}

impl ShapeFields {
    /// Data columns of a stripe of levels 4, 5 and 6; `None` for other levels.
    #[must_use]
    pub const fn data_columns(&self) -> Option<u16> {
        match self.level {
            MdLevel::Raid4 | MdLevel::Raid5 => Some(self.raid_disks - 1),
            MdLevel::Raid6 => Some(self.raid_disks - 2),
            MdLevel::Linear | MdLevel::Raid0 | MdLevel::Raid1 | MdLevel::Raid10 => None,
        }
    }

    /// Sectors of the set if this much of each member is used, in whole chunks.
    fn capacity(&self, size: Sectors) -> u128 {
        let chunks = u128::from(size / self.chunk);
        let chunks = match (self.data_columns(), Raid10Layout::from_number(self.layout)) {
            (Some(columns), _) => chunks * u128::from(columns),
            (None, Some(Raid10Layout { near, far, .. })) => {
                chunks / u128::from(far) * u128::from(self.raid_disks) / u128::from(near)
            }
            (None, None) => 0,
        };
        chunks * u128::from(self.chunk.get())
    }
}

/// A change of shape that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReshapeView {
    /// The shape before.
    pub old: ShapeFields,
    /// The shape after.
    pub new: ShapeFields,
    /// The direction.
    pub direction: ReshapeDirection,
    /// The boundary between both shapes: see [`ReshapeDirection`].
    pub position: SetLba,
    /// Sectors that are used of each member, in both shapes: whole chunks of either.
    pub size: Sectors,
}

impl ReshapeView {
    /// md takes a position only if it is a multiple of this, for levels 4, 5 and 6. Other levels have no such rule.
    #[must_use]
    pub fn step(&self) -> Option<Sectors> {
        let columns = self.new.data_columns()?;
        Some(self.old.chunk.max(self.new.chunk) * u64::from(columns))
    }

    /// The numbers of the superblock, checked as far as its drive does not matter.
    fn of(sb: &Superblock) -> Result<Self, ReshapeFault> {
        let (old, new) = (old_shape(sb)?, new_shape(sb)?);
        let delta = sb.reshape.delta_disks;
        let backwards_by_bit = sb.features.contains(FeatureMap::RESHAPE_BACKWARDS);
        if backwards_by_bit && delta != 0 {
            return Err(ReshapeFault::Direction { delta });
        }
        let direction =
            if backwards_by_bit || delta < 0 { ReshapeDirection::Backward } else { ReshapeDirection::Forward };
        let chunk = old.chunk.max(new.chunk);
        let size = sb.size.round_down(chunk);
        if size.is_zero() {
            return Err(ReshapeFault::Size { size: sb.size, chunk });
        }
        let change = Self { old, new, direction, position: SetLba(sb.reshape.position), size };
        change.check_position().map(|()| change)
    }

    fn check_position(&self) -> Result<(), ReshapeFault> {
        let position = self.position;
        // The new shape of levels 4, 5 and 6 has the larger set if the change goes forwards, and backwards it begins at the
        // end of the smaller set, which is the new one.
        let end = match self.new.data_columns() {
            Some(_) => self.new.capacity(self.size),
            None => self.new.capacity(self.size).max(self.old.capacity(self.size)),
        };
        if u128::from(position.get()) > end {
            return Err(ReshapeFault::PositionBeyondEnd { position });
        }
        match self.step() {
            Some(step) if !position.get().is_multiple_of(step.get()) => Err(ReshapeFault::Position { position, step }),
            _ => Ok(()),
        }
    }
}

/// What a change begins with on one member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeBegin {
    /// The shape after the change.
    pub new: ShapeFields,
    /// The direction. With more members it is forwards, with fewer backwards.
    pub direction: ReshapeDirection,
    /// The boundary at the begin: 0 forwards, the size of the smaller set backwards.
    pub position: SetLba,
    /// The place of the new shape's data on this member.
    pub new_data_offset: DriveLba,
}

/// Why the numbers of a change cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReshapeFault {
    /// No data move in a set of this level.
    Level(MdLevel),
    /// The level would change while data move.
    NewLevel {
        /// Level of the set.
        level: MdLevel,
        /// The number of the other level.
        new_level: i32,
    },
    /// The number of members before the change cannot be.
    Members {
        /// Number of members after the change.
        raid_disks: u16,
        /// The difference to the number before.
        delta: i32,
    },
    /// The level does not have the new layout with the new number of members.
    NewLayout(u32),
    /// The level cannot have the new chunk.
    NewChunk(Sectors),
    /// The number of copies would change.
    Copies {
        /// Number of copies before.
        old: u32,
        /// Number of copies after.
        new: u32,
    },
    /// One of the layouts has far copies.
    FarCopies(u32),
    /// The direction is given, but the number of members decides about it; or it is the wrong one for that number.
    Direction {
        /// Members after the change minus members before it.
        delta: i32,
    },
    /// The members are smaller than a chunk.
    Size {
        /// Sectors used of each member.
        size: Sectors,
        /// The larger chunk.
        chunk: Sectors,
    },
    /// The position is inside a stripe.
    Position {
        /// The position.
        position: SetLba,
        /// A position is a multiple of this.
        step: Sectors,
    },
    /// The position is after the end of the set.
    PositionBeyondEnd {
        /// The position.
        position: SetLba,
    },
    /// The data move the wrong way on this member.
    Shift {
        /// Sectors from the old place of the data to the new one.
        shift: i64,
        /// The direction of the change.
        direction: ReshapeDirection,
    },
    /// The new place of the data is not within the drive, or on the superblock.
    NewDataArea {
        /// Sectors from the old place of the data to the new one.
        shift: i64,
    },
    /// The new place of the data is on a bitmap or a log.
    NewDataOver(MetadataArea),
}

impl fmt::Display for ReshapeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Level(level) => write!(
                f,
                "damaged superblock: a change of shape is in progress, but {level} has none; use the other members and \
                 replace this one"
            ),
            Self::NewLevel { level, new_level } => write!(
                f,
                "a change from {level} to level {new_level} moves data and changes the level in one step, which Linux \
                 refuses too; finish it with the software that began it"
            ),
            Self::Members { raid_disks, delta } => write!(
                f,
                "damaged superblock: a change to {raid_disks} members with a difference of {delta} cannot be; use the \
                 other members and replace this one"
            ),
            Self::NewLayout(layout) => write!(
                f,
                "damaged superblock: the change in progress is to layout {layout} (0x{layout:x}), which the level does \
                 not have; use the other members and replace this one"
            ),
            Self::NewChunk(chunk) => write!(
                f,
                "damaged superblock: the change in progress is to a chunk of {chunk}, which the level cannot have; use \
                 the other members and replace this one"
            ),
            Self::Copies { old, new } => write!(
                f,
                "a change from {old} to {new} copies is in progress, which Linux does not have; finish it with the \
                 software that began it"
            ),
            Self::FarCopies(layout) => write!(
                f,
                "a change of far copies (layout 0x{layout:x}) is in progress, which Linux does not have; finish it with \
                 the software that began it"
            ),
            Self::Direction { delta } => write!(
                f,
                "damaged superblock: the direction of a change by {delta} members follows from that number, and the \
                 superblock says another one; use the other members and replace this one"
            ),
            Self::Size { size, chunk } => write!(
                f,
                "damaged superblock: {size} of each member are used, less than one chunk of {chunk}; use the other \
                 members and replace this one"
            ),
            _ => self.fmt_place(f),
        }
    }
}

impl ReshapeFault {
    /// The faults of addresses.
    fn fmt_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Position { position, step } => write!(
                f,
                "damaged superblock: the change in progress has come to sector {}, which is not a multiple of {step}; \
                 use the other members and replace this one",
                position.get()
            ),
            Self::PositionBeyondEnd { position } => write!(
                f,
                "damaged superblock: the change in progress has come to sector {}, which is after the end of the array; \
                 use the other members and replace this one",
                position.get()
            ),
            Self::Shift { shift, direction } => write!(
                f,
                "damaged superblock: the change in progress goes {direction} and moves the data of this member by {shift} \
                 sectors, over data that have not moved yet; use the other members and replace this one"
            ),
            Self::NewDataArea { shift } => write!(
                f,
                "damaged superblock: the change in progress moves the data of this member by {shift} sectors, out of the \
                 drive or over the superblock; use the other members and replace this one"
            ),
            Self::NewDataOver(area) => write!(
                f,
                "damaged superblock: the change in progress moves the data of this member over the {area}; use the other \
                 members and replace this one"
            ),
            _ => f.write_str("damaged superblock: the numbers of the change in progress cannot be"),
        }
    }
}

/// The number of slots before the change that is under way.
pub(crate) fn old_raid_disks(sb: &Superblock) -> Result<u16, ReshapeFault> {
    let delta = sb.reshape.delta_disks;
    let fault = ReshapeFault::Members { raid_disks: sb.raid_disks, delta };
    let before = u32::try_from(i64::from(sb.raid_disks) - i64::from(delta)).map_err(|_| fault)?;
    superblock_checks::raid_disks(sb.level, before).map_err(|_| fault)
}

fn old_shape(sb: &Superblock) -> Result<ShapeFields, ReshapeFault> {
    let moves = matches!(sb.level, MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 | MdLevel::Raid10);
    if !moves {
        return Err(ReshapeFault::Level(sb.level));
    }
    Ok(ShapeFields { level: sb.level, layout: sb.layout, chunk: sb.chunk, raid_disks: old_raid_disks(sb)? })
}

fn new_shape(sb: &Superblock) -> Result<ShapeFields, ReshapeFault> {
    let Reshape { new_level, new_layout: layout, new_chunk, .. } = sb.reshape;
    let (level, raid_disks, chunk) = (sb.level, sb.raid_disks, Sectors(u64::from(new_chunk)));
    if new_level != level.number() {
        return Err(ReshapeFault::NewLevel { level, new_level });
    }
    if !level.layout_is_known(layout, u32::from(raid_disks)) {
        return Err(ReshapeFault::NewLayout(layout));
    }
    if !superblock_checks::chunk_is_sane(level, chunk) {
        return Err(ReshapeFault::NewChunk(chunk));
    }
    if let (MdLevel::Raid10, Some(old), Some(new)) =
        (level, Raid10Layout::from_number(sb.layout), Raid10Layout::from_number(layout))
    {
        if old.copies() != new.copies() {
            return Err(ReshapeFault::Copies { old: old.copies(), new: new.copies() });
        }
        let is_far = |it: &Raid10Layout| it.far > 1 && !it.offset;
        if let Some(far) = [old, new].iter().find(|it| is_far(it)) {
            return Err(ReshapeFault::FarCopies(far.number()));
        }
    }
    Ok(ShapeFields { level, layout, chunk, raid_disks })
}

/// All checks of a change, for a superblock whose other fields are right.
pub(crate) fn check_all(sb: &Superblock) -> Result<(), ReshapeFault> {
    if !sb.features.contains(FeatureMap::RESHAPE_ACTIVE) {
        return Ok(());
    }
    check_new_data_area(sb, ReshapeView::of(sb)?.direction)
}

/// Checks the new place of the data.
fn check_new_data_area(sb: &Superblock, direction: ReshapeDirection) -> Result<(), ReshapeFault> {
    let shift = sb.shift();
    let wrong_way = match direction {
        ReshapeDirection::Forward => shift > 0,
        ReshapeDirection::Backward => shift < 0,
    };
    if wrong_way {
        return Err(ReshapeFault::Shift { shift, direction });
    }
    let fault = ReshapeFault::NewDataArea { shift };
    let start = sb.data_offset.get().checked_add_signed(shift).map(DriveLba).ok_or(fault)?;
    let data_size = sb.data_size.get().checked_add_signed(-shift).map(Sectors).ok_or(fault)?;
    let off_superblock = sb.minor == MinorVersion::V1_0 || start >= superblock_checks::superblock_end(sb);
    let is_used = matches!(sb.role(), DeviceRole::Active(_));
    if !off_superblock || data_size.is_zero() || (is_used && sb.size > data_size) {
        return Err(fault);
    }
    let end = start + sb.size.min(data_size);
    let bitmap = sb.bitmap_offset().and_then(|offset| sb.place(offset)).map(|at| (at, Sectors(1)));
    let log = sb.bad_block_log().and_then(|log| Some((sb.place(log.offset)?, Sectors(u64::from(log.size)))));
    for (area, place) in
        [(MetadataArea::Bitmap, bitmap), (MetadataArea::Ppl, sb.ppl_area()), (MetadataArea::BadBlocks, log)]
    {
        if place.is_some_and(|(at, len)| at < end && at + len > start) {
            return Err(ReshapeFault::NewDataOver(area));
        }
    }
    Ok(())
}

impl Superblock {
    /// The change of shape that is under way; `None` if there is none, whatever the fields of an earlier one say.
    ///
    /// # Panics
    /// The fields were set to values that [`Superblock::decode`] refuses.
    #[must_use]
    pub fn change(&self) -> Option<ReshapeView> {
        let active = self.features.contains(FeatureMap::RESHAPE_ACTIVE);
        active.then(|| ReshapeView::of(self).expect("a superblock with other numbers is not decoded"))
    }

    /// Sectors from the old place of this member's data to the new one; 0 without a change.
    fn shift(&self) -> i64 {
        let moves = self.features.contains(FeatureMap::RESHAPE_ACTIVE | FeatureMap::NEW_OFFSET);
        if moves {
            i64::from(self.reshape.new_offset)
        } else {
            0
        }
    }

    /// Sectors before this member's data that hold no metadata: by these the start of the data can move down.
    #[must_use]
    pub fn room_before_data(&self) -> Sectors {
        let of = |offset: Option<i32>, len: Sectors| offset.and_then(|offset| self.place(offset)).map(|at| at + len);
        let log = self.bad_block_log();
        let ends = [
            (self.minor != MinorVersion::V1_0).then(|| superblock_checks::superblock_end(self)),
            of(self.bitmap_offset(), Sectors(1)),
            of(log.map(|log| log.offset), Sectors(log.map_or(0, |log| u64::from(log.size)))),
            self.ppl_area().map(|(at, len)| at + len),
        ];
        let before = ends.into_iter().flatten().filter(|end| *end <= self.data_offset).max();
        Sectors(self.data_offset.get() - before.unwrap_or(DriveLba(0)).get())
    }

    /// The shape, while no change is under way.
    #[must_use]
    pub const fn shape(&self) -> ShapeFields {
        ShapeFields { level: self.level, layout: self.layout, chunk: self.chunk, raid_disks: self.raid_disks }
    }

    /// Sets the shape, of which the caller knows that nothing moves. Members that have no slot in it are spares.
    pub fn set_shape(&mut self, shape: &ShapeFields) {
        let ShapeFields { level, layout, chunk, raid_disks } = *shape;
        (self.level, self.layout, self.chunk, self.raid_disks) = (level, layout, chunk, raid_disks);
        // The bit is for RAID 0 over members of unequal size, and these keep their level.
        self.features.set(FeatureMap::RAID0_LAYOUT, false);
        self.drop_roles();
    }

    /// Sets another shape, in which the same bytes at the same places mean the same data, and the used size of each member.
    pub fn take_over(&mut self, shape: &ShapeFields, size: Sectors) {
        self.set_shape(shape);
        self.size = size;
        if shape.level == MdLevel::Raid0 {
            // RAID 0 uses all of the data area, and has no bitmap.
            self.data_size = size;
            self.set_bitmap_offset(None);
        }
    }

    /// First sector of this member's data in the new shape; `data_offset` if they do not move.
    ///
    /// # Panics
    /// As [`Superblock::change`].
    #[must_use]
    pub fn new_data_offset(&self) -> DriveLba {
        let moved = self.data_offset.get().checked_add_signed(self.shift());
        DriveLba(moved.expect("a superblock with another shift is not decoded"))
    }

    /// Sets the first sector of this member's data in the new shape. Without a change nothing happens.
    pub fn set_new_data_offset(&mut self, start: DriveLba) {
        let shift = start.get().cast_signed() - self.data_offset.get().cast_signed();
        let moves = self.features.contains(FeatureMap::RESHAPE_ACTIVE) && shift != 0;
        self.features.set(FeatureMap::NEW_OFFSET, moves);
        if self.features.contains(FeatureMap::RESHAPE_ACTIVE) {
            self.reshape.new_offset = i32::try_from(shift).expect("a shift that was decoded");
        }
    }

    /// Begins a change: the superblock then says the new shape and the position, and the old shape as before. The roles
    /// are left to the caller.
    ///
    /// # Errors
    /// The fault that [`Superblock::decode`] would find; nothing has changed then.
    ///
    /// # Panics
    /// A change is under way.
    pub fn begin_change(&mut self, begin: &ChangeBegin) -> Result<(), SuperblockError> {
        assert!(!self.features.contains(FeatureMap::RESHAPE_ACTIVE), "a change ends before the next one begins");
        let ChangeBegin { new, direction, position, new_data_offset } = *begin;
        let chunk = u32::try_from(new.chunk.get());
        let new_chunk = chunk.map_err(|_| SuperblockError::BadReshape(ReshapeFault::NewChunk(new.chunk)))?;
        let delta = i32::from(new.raid_disks) - i32::from(self.raid_disks);
        let (from, to) = (i128::from(self.data_offset.get()), i128::from(new_data_offset.get()));
        let beyond = if to > from { i64::MAX } else { i64::MIN };
        let shift = i64::try_from(to - from).unwrap_or(beyond);
        let fault = SuperblockError::BadReshape(ReshapeFault::NewDataArea { shift });
        let new_offset = i32::try_from(shift).map_err(|_| fault)?;
        // The number of members decides about the direction, and no field could say another one.
        let other = match delta.signum() {
            0 => direction,
            1 => ReshapeDirection::Forward,
            _ => ReshapeDirection::Backward,
        };
        if direction != other {
            return Err(SuperblockError::BadReshape(ReshapeFault::Direction { delta }));
        }
        self.try_change(|sb| {
            sb.features.set(FeatureMap::RESHAPE_ACTIVE, true);
            sb.features.set(FeatureMap::RESHAPE_BACKWARDS, delta == 0 && direction == ReshapeDirection::Backward);
            sb.features.set(FeatureMap::NEW_OFFSET, new_offset != 0);
            sb.raid_disks = new.raid_disks;
            sb.reshape = Reshape {
                new_level: new.level.number(),
                position: position.get(),
                delta_disks: delta,
                new_layout: new.layout,
                new_chunk,
                new_offset,
            };
        })
    }

    /// Moves the boundary of the change that is under way.
    ///
    /// # Errors
    /// As [`Superblock::begin_change`].
    pub fn set_change_position(&mut self, position: SetLba) -> Result<(), SuperblockError> {
        self.try_change(|sb| sb.reshape.position = position.get())
    }

    /// Turns the change that is under way around at this position: the old shape is the new one, and the data move back. The
    /// position must be one of the other direction. Without a change nothing happens.
    ///
    /// # Errors
    /// As [`Superblock::begin_change`].
    pub fn turn_change(&mut self, position: SetLba) -> Result<(), SuperblockError> {
        let Some(ReshapeView { old, new, direction, .. }) = self.change() else { return Ok(()) };
        let shift = self.shift();
        let fault = SuperblockError::BadReshape(ReshapeFault::NewDataArea { shift });
        let new_offset = i32::try_from(-shift).map_err(|_| fault)?;
        self.try_change(|sb| {
            sb.move_data();
            (sb.raid_disks, sb.layout, sb.chunk) = (old.raid_disks, new.layout, new.chunk);
            sb.reshape.position = position.get();
            sb.reshape.delta_disks = -sb.reshape.delta_disks;
            sb.reshape.new_layout = old.layout;
            sb.reshape.new_chunk = u32::try_from(old.chunk.get()).expect("a chunk has 32 bits in a superblock");
            sb.reshape.new_offset = new_offset;
            let backwards = direction == ReshapeDirection::Forward && sb.reshape.delta_disks == 0;
            sb.features.set(FeatureMap::RESHAPE_BACKWARDS, backwards);
        })
    }

    /// Ends the change that is under way: the superblock says the new shape only. As md does, it leaves the other fields
    /// of the change as they are, without a meaning. Without a change nothing happens.
    pub fn end_change(&mut self) {
        let Some(change) = self.change() else { return };
        self.move_data();
        (self.layout, self.chunk) = (change.new.layout, change.new.chunk);
        let bits = FeatureMap::RESHAPE_ACTIVE | FeatureMap::RESHAPE_BACKWARDS | FeatureMap::NEW_OFFSET;
        self.features.set(bits, false);
    }

    /// Sets fields of a change, unless a reader would refuse them.
    fn try_change(&mut self, set: impl FnOnce(&mut Self)) -> Result<(), SuperblockError> {
        let Self { features, raid_disks, layout, chunk, reshape, data_offset, data_size, .. } = *self;
        set(self);
        check_all(self).map_err(|fault| {
            (self.features, self.raid_disks, self.layout, self.chunk) = (features, raid_disks, layout, chunk);
            (self.reshape, self.data_offset, self.data_size) = (reshape, data_offset, data_size);
            SuperblockError::BadReshape(fault)
        })
    }

    /// The data area begins here from now on, and ends at the same sector as before.
    pub fn move_data_to(&mut self, start: DriveLba) {
        let end = self.data_offset + self.data_size;
        (self.data_offset, self.data_size) = (start, end - start);
    }

    /// Takes back a change that has moved nothing: the superblock says the old shape only, and members that have no slot in
    /// it are spares. Without a change nothing happens.
    pub fn forget_change(&mut self) {
        let Some(change) = self.change() else { return };
        self.raid_disks = change.old.raid_disks;
        let bits = FeatureMap::RESHAPE_ACTIVE | FeatureMap::RESHAPE_BACKWARDS | FeatureMap::NEW_OFFSET;
        self.features.set(bits, false);
        self.drop_roles();
    }

    /// Members of slots that there are not any more are spares.
    fn drop_roles(&mut self) {
        for number in 0..self.roles.len() {
            if matches!(self.roles.iter().nth(number), Some(DeviceRole::Active(slot)) if slot.0 >= self.raid_disks) {
                self.roles.set(number, DeviceRole::Spare);
            }
        }
    }

    /// The data area begins at the place of the new shape and ends at the same sector as before.
    fn move_data(&mut self) {
        let end = self.data_offset + self.data_size;
        self.data_offset = self.new_data_offset();
        self.data_size = end - self.data_offset;
    }
}
