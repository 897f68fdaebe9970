//! A set between two geometries, while its data move.
//!
//! ```text
//!   forwards     0 ---- new ---- moved ---- old ---- end        backwards    0 ---- old ---- moved ---- new ---- end
//!
//!   member       |<- data offset, old                           forwards the data move down by the member's shift, so
//!             |<- data offset, new: shift below 0               the writer comes to places that the reader has left
//! ```
//!
//! Addresses mean the same in both geometries. Places do not: a sector of the drive can hold data of one address in the
//! old geometry and of another one in the new geometry. All questions about that are answered here, member by member with
//! its own shift, without state and without I/O. `reshape/room.rs` says how far the change may go.

mod room;

use super::{Geometry, Mirror, Parity};
use crate::geometry::shape::Side;
use crate::slot_set::SlotSet;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
pub use openraid_format::ReshapeDirection;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// Sectors from the start of a member's data in the old geometry to their start in the new one; below 0 if they move down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Shift(pub i64);

impl Shift {
    /// The place in the new geometry's data with the same sector of the drive. A place before them counts as their start.
    fn to_new(self, old: MemberLba) -> MemberLba {
        MemberLba(old.0.saturating_add_signed(self.0.saturating_neg()))
    }
}

/// Why two geometries are not the ends of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeError {
    /// One of the geometries has neither parity nor chunks with copies, or only one of them has parity.
    Kinds,
    /// RAID 10 with far copies: the first chunk needs room in all parts of the members.
    FarCopies,
    /// The number of copies would change.
    Copies,
    /// The geometries do not use the same part of the members.
    Extent {
        /// Used by the old geometry.
        old: Sectors,
        /// Used by the new one.
        new: Sectors,
    },
    /// More data would have to move backwards, or less data forwards.
    Direction,
    /// The set would become smaller, although it goes forwards.
    Smaller {
        /// Size before.
        old: Sectors,
        /// Size after.
        new: Sectors,
    },
    /// There is not one shift for every slot of both geometries.
    ShiftCount(usize),
    /// The data of a member would move over data that have not moved yet.
    Shift {
        /// Slot of the member.
        slot: Slot,
        /// Its shift.
        shift: Shift,
    },
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Kinds => f.write_str(
                "data move only between RAID 4, 5 and 6, or within RAID 10: other changes are made by another level in \
                 between, or by a new array",
            ),
            Self::FarCopies => f.write_str(
                "an array with far copies cannot change its shape: make a new array, and copy the data",
            ),
            Self::Copies => f.write_str(
                "the number of copies of a RAID 10 cannot change: make a new array, and copy the data",
            ),
            Self::Extent { old, new } => {
                write!(f, "{old} of each member are used before, and {new} after: first set a size that both can use")
            }
            Self::Direction => f.write_str("more data columns go forwards, fewer go backwards"),
            Self::Smaller { old, new } => {
                write!(f, "the set has {old}, and would have {new}: first make the array smaller, or choose another chunk")
            }
            Self::ShiftCount(count) => write!(f, "the shifts of {count} members are known, and all are needed"),
            Self::Shift { slot, shift } => write!(
                f,
                "the data of the member in slot {slot} would move by {} sectors, over data that have not moved yet",
                shift.0
            ),
        }
    }
}

impl core::error::Error for ChangeError {}

/// A change of a set's shape: both geometries, and the way from one to the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeChange {
    old: Geometry,
    new: Geometry,
    direction: ReshapeDirection,
    /// By slot of the larger geometry.
    shifts: Vec<Shift>,
    /// Members with old places that may be needed, and new ones.
    shared: SlotSet,
    step: Sectors,
    unit: Sectors,
}

impl ShapeChange {
    /// The change between two geometries. `fresh` are slots of the old geometry whose members have nothing of it: they are
    /// filled by the change, and the old places of their slots are never read.
    ///
    /// # Errors
    /// The geometries or the shifts do not go together.
    pub(crate) fn new(
        old: Geometry,
        new: Geometry,
        direction: ReshapeDirection,
        shifts: Vec<Shift>,
        fresh: SlotSet,
    ) -> Result<Self, ChangeError> {
        let (step, unit, wider) = match (&old, &new) {
            (Geometry::Parity(old), Geometry::Parity(new)) => parity_steps(old, new)?,
            (Geometry::Mirror(old), Geometry::Mirror(new)) => mirror_steps(old, new)?,
            _ => return Err(ChangeError::Kinds),
        };
        match (direction, wider) {
            (ReshapeDirection::Forward, Ordering::Less) | (ReshapeDirection::Backward, Ordering::Greater) => {
                return Err(ChangeError::Direction);
            }
            (ReshapeDirection::Forward, _) if new.capacity() < old.capacity() => {
                return Err(ChangeError::Smaller { old: old.capacity(), new: new.capacity() });
            }
            _ => {}
        }
        if shifts.len() != usize::from(old.members().max(new.members())) {
            return Err(ChangeError::ShiftCount(shifts.len()));
        }
        let shared = SlotSet::first_n(old.members().min(new.members())).minus(fresh);
        let wrong_way = |shift: Shift| match direction {
            ReshapeDirection::Forward => shift.0 > 0,
            ReshapeDirection::Backward => shift.0 < 0,
        };
        if let Some(slot) = shared.iter().find(|slot| wrong_way(shifts[slot.index()])) {
            return Err(ChangeError::Shift { slot, shift: shifts[slot.index()] });
        }
        Ok(Self { old, new, direction, shifts, shared, step, unit })
    }

    /// The change between two geometries in which the same bytes at the same places mean the same data: nothing moves.
    pub(crate) fn in_place(old: Geometry, new: Geometry) -> Self {
        let shifts = alloc::vec![Shift(0); usize::from(old.members().max(new.members()))];
        let (direction, step) = (ReshapeDirection::Forward, Sectors::kib(4));
        Self { old, new, direction, shifts, shared: SlotSet::EMPTY, step, unit: step }
    }

    /// Can it turn around? A member that it fills has nothing of the old geometry.
    pub(crate) fn can_turn(&self) -> bool {
        self.shared == SlotSet::first_n(self.old.members().min(self.new.members()))
    }

    /// The change back, and its boundary where this one has come to `boundary`; none if md has no such position.
    pub(crate) fn turned(&self, boundary: SetLba) -> Option<(Self, SetLba)> {
        let back = self.shifts.iter().map(|shift| Shift(-shift.0)).collect();
        let (old, new) = (self.new.clone(), self.old.clone());
        let turned = Self::new(old, new, self.direction.reversed(), back, SlotSet::EMPTY).ok()?;
        // Beyond the end of the smaller set there are no data.
        let boundary = match turned.direction {
            ReshapeDirection::Forward => boundary,
            ReshapeDirection::Backward => boundary.min(turned.start()),
        };
        let is_position = boundary == turned.start() || boundary.get().is_multiple_of(turned.step.get());
        (self.can_turn() && is_position && turned.has_room(boundary)).then_some((turned, boundary))
    }

    /// The geometry of a side.
    pub(crate) const fn on(&self, side: Side) -> &Geometry {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }
    /// The direction.
    pub(crate) const fn direction(&self) -> ReshapeDirection {
        self.direction
    }
    /// The shift of a member; a slot is one of either geometry.
    pub(crate) fn shift(&self, slot: Slot) -> Shift {
        self.shifts[slot.index()]
    }
    /// Size of the set before the change.
    pub(crate) fn capacity_old(&self) -> Sectors {
        self.old.capacity()
    }
    /// Size of the set after the change.
    pub(crate) fn capacity_new(&self) -> Sectors {
        self.new.capacity()
    }
    /// The distance of the positions that md takes; for a mirror, where md takes any, of the ends of both chunks.
    pub(crate) const fn step(&self) -> Sectors {
        self.step
    }
    /// The distance of the positions that go through no stripe of either geometry, so that the change can turn around.
    pub(crate) const fn unit(&self) -> Sectors {
        self.unit
    }
    /// The boundary before anything has moved. What the new set has beyond the end of the old one becomes zero.
    pub(crate) fn start(&self) -> SetLba {
        match self.direction {
            ReshapeDirection::Forward => SetLba::ZERO,
            ReshapeDirection::Backward => SetLba(self.capacity_new().0),
        }
    }
    /// The boundary after everything has moved.
    pub(crate) fn end(&self) -> SetLba {
        match self.direction {
            ReshapeDirection::Forward => SetLba(self.capacity_new().0),
            ReshapeDirection::Backward => SetLba::ZERO,
        }
    }

    /// Sectors of the set that move.
    pub(crate) fn total(&self) -> Sectors {
        Sectors(self.start().0.abs_diff(self.end().0))
    }
    /// The boundary at a distance from the start.
    pub(crate) fn boundary(&self, distance: Sectors) -> SetLba {
        match self.direction {
            ReshapeDirection::Forward => SetLba(distance.0),
            ReshapeDirection::Backward => SetLba(self.start().0 - distance.0),
        }
    }
    /// The distance of a boundary from the start.
    pub(crate) fn distance(&self, boundary: SetLba) -> Sectors {
        Sectors(self.start().0.abs_diff(boundary.0))
    }
    /// The first address of the sectors at a distance from the start.
    pub(crate) fn extent(&self, at: Sectors, len: Sectors) -> SetLba {
        match self.direction {
            ReshapeDirection::Forward => self.boundary(at),
            ReshapeDirection::Backward => self.boundary(at + len),
        }
    }
    /// Sectors of a member that these sectors of the set take in the new geometry.
    pub(crate) fn member_share(&self, len: Sectors) -> Sectors {
        match &self.new {
            Geometry::Parity(new) => len / u64::from(new.data_columns()),
            Geometry::Mirror(new) => len * u64::from(new.copy_count()) / u64::from(new.members()),
            _ => len,
        }
    }
    /// See [`filled_at`].
    pub(crate) fn filled_at(&self, boundary: SetLba) -> Option<Sectors> {
        filled_at(&self.new, self.direction, boundary)
    }
    /// Does the change fill the member in this slot? Then the slot has no data on the old side.
    pub(crate) fn fills(&self, slot: Slot) -> bool {
        slot.0 < self.old.members().min(self.new.members()) && !self.shared.contains(slot)
    }

    /// The side of an address if everything up to `moved` has moved, and the address from which on another answer holds.
    pub(crate) fn side_at(&self, moved: SetLba, at: SetLba) -> (Side, SetLba) {
        let (side, until) = match (self.direction, at < moved) {
            (ReshapeDirection::Forward, true) => (Side::New, moved),
            (ReshapeDirection::Forward, false) => (Side::Old, SetLba(self.capacity_old().0)),
            (ReshapeDirection::Backward, true) => (Side::Old, moved),
            (ReshapeDirection::Backward, false) => (Side::New, SetLba(self.capacity_new().0)),
        };
        assert!(at < until, "{at:?} is outside of a set that ends at {until:?}");
        (side, until)
    }
}

/// Sectors that a member which a change to this geometry fills has when everything up to this boundary has moved. Backwards
/// nothing says what it has, because marks of members count from the start of their data.
pub(crate) fn filled_at(new: &Geometry, direction: ReshapeDirection, boundary: SetLba) -> Option<Sectors> {
    match direction {
        ReshapeDirection::Forward => Some(new.extent_below(boundary)),
        ReshapeDirection::Backward => None,
    }
}

impl Geometry {
    /// Sectors of a member, from the start of its data, that addresses before this one take, if the set has parity. No other
    /// set is filled by a change.
    pub(crate) fn extent_below(&self, at: SetLba) -> Sectors {
        match self {
            Self::Parity(parity) => parity.used_until(at).offset(),
            _ => Sectors::MAX,
        }
    }
}

/// The rows of a mirror that hold one row of chunks and its copies, in sectors of a member.
fn group_of(mirror: &Mirror) -> Sectors {
    let (_, far) = mirror.near_and_far().unwrap_or((1, 1));
    mirror.chunk().unwrap_or(Sectors::ZERO) * u64::from(far)
}

/// Sectors of the set after which the places of its chunks repeat.
fn row_of(mirror: &Mirror) -> Sectors {
    mirror.chunk().unwrap_or(Sectors::ZERO) * u64::from(mirror.members())
}

/// Step and unit of sets with parity; and whether a row of the new geometry has more data.
fn parity_steps(old: &Parity, new: &Parity) -> Result<(Sectors, Sectors, Ordering), ChangeError> {
    if old.member_extent() != new.member_extent() {
        return Err(ChangeError::Extent { old: old.member_extent(), new: new.member_extent() });
    }
    let chunk = old.chunk().max(new.chunk());
    let (before, after) = (u64::from(old.data_columns()), u64::from(new.data_columns()));
    let unit = chunk * lcm(before, after);
    Ok((chunk * after, unit, after.cmp(&before)))
}

/// Step and unit of mirrors with chunks; and whether a row of the new geometry has more data.
fn mirror_steps(old: &Mirror, new: &Mirror) -> Result<(Sectors, Sectors, Ordering), ChangeError> {
    let (Some(before), Some(after)) = (old.chunk(), new.chunk()) else { return Err(ChangeError::Kinds) };
    if old.repeats_far_down() || new.repeats_far_down() {
        return Err(ChangeError::FarCopies);
    }
    if old.copy_count() != new.copy_count() {
        return Err(ChangeError::Copies);
    }
    let chunk = before.max(after);
    Ok((chunk, chunk, new.members().cmp(&old.members())))
}

/// The least common multiple.
const fn lcm(a: u64, b: u64) -> u64 {
    let (mut high, mut low) = (a, b);
    while low != 0 {
        (high, low) = (low, high % low);
    }
    a / high * b
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Level, SetSpec, StripeRole};
    use alloc::vec;
    use openraid_units::StripeIndex;

    /// Small members, in whole chunks of every size that is used here.
    const MEMBER: Sectors = Sectors(192);
    const NEAR_2: u32 = 0x102;
    const NEAR_3: u32 = 0x103;
    const OFFSET_2: u32 = 0x1_0201;

    fn geometry(level: Level, members: u16, chunk: u64, layout: u32) -> Geometry {
        let spec = SetSpec { level, members, chunk: Sectors(chunk), layout, member_size: MEMBER, member_sizes: &[] };
        Geometry::new(&spec).expect("a possible set")
    }

    /// Something of the set on a member: the addresses that are needed to read or write it as a whole.
    #[derive(Clone, Copy)]
    struct UsedSector {
        slot: usize,
        lba: u64,
        from: u64,
        to: u64,
    }

    /// Every used sector of every member, by asking for the place of each chunk and each parity.
    fn places(geometry: &Geometry) -> Vec<UsedSector> {
        let mut held = Vec::new();
        let mut hold = |slot: Slot, lba: MemberLba, len: u64, from: u64, to: u64| {
            held.extend((0..len).map(|row| UsedSector { slot: slot.index(), lba: lba.0 + row, from, to }));
        };
        match geometry {
            Geometry::Parity(parity) => {
                for stripe in (0..parity.stripes()).map(StripeIndex) {
                    let from = parity.stripe_start(stripe).0;
                    for slot in (0..parity.members()).map(Slot) {
                        let lba = parity.member_lba(stripe, Sectors::ZERO);
                        if let StripeRole::Data(column) = parity.role_of(stripe, slot) {
                            assert_eq!(parity.slot_of(stripe, column), slot);
                        }
                        hold(slot, lba, parity.chunk().0, from, from + parity.full_stripe().0);
                    }
                }
            }
            Geometry::Mirror(mirror) => {
                let chunk = mirror.chunk().expect("chunks").0;
                for at in (0..mirror.capacity().0 / chunk).map(|number| number * chunk) {
                    for copy in mirror.copies(SetLba(at)) {
                        hold(copy.slot, copy.lba, copy.len.0, at, at + chunk);
                    }
                }
            }
            _ => unreachable!("not a shape of these tests"),
        }
        held
    }

    fn positions(change: &ShapeChange) -> Vec<SetLba> {
        let (start, end) = (change.start().0.min(change.end().0), change.start().0.max(change.end().0));
        (0..)
            .map(|n| n * change.step().0)
            .take_while(|at| *at < end)
            .filter(|at| *at >= start)
            .chain([end])
            .map(SetLba)
            .collect()
    }

    /// The drives of a change, sector by sector. A drive's sector is numbered from the old data offset plus this.
    const BASE: i64 = 256;

    struct Brute {
        /// By slot and sector: the addresses whose old stripe is there.
        old: Vec<Vec<Option<(u64, u64)>>>,
        /// The new places, on the same drives.
        new: Vec<(usize, usize, u64, u64)>,
    }

    impl Brute {
        fn of(change: &ShapeChange, fresh: SlotSet) -> Self {
            let on_drive = |lba: u64, shift: Shift| usize::try_from(lba as i64 + BASE + shift.0).expect("on the drive");
            let mut old = vec![vec![None; 1024]; change.shifts.len()];
            for held in places(&change.old) {
                if !fresh.contains(Slot(u16::try_from(held.slot).expect("few"))) {
                    old[held.slot][on_drive(held.lba, Shift(0))] = Some((held.from, held.to));
                }
            }
            let new = places(&change.new).into_iter();
            let new =
                new.map(|held| (held.slot, on_drive(held.lba, change.shifts[held.slot]), held.from, held.to)).collect();
            Self { old, new }
        }

        /// Does a write of the addresses between these two boundaries destroy nothing that a restart at `recorded` reads?
        fn is_free(&self, direction: ReshapeDirection, recorded: SetLba, from: SetLba, to: SetLba) -> bool {
            let needed = |(from, to): (u64, u64)| match direction {
                ReshapeDirection::Forward => to > recorded.0,
                ReshapeDirection::Backward => from < recorded.0,
            };
            let written = self.new.iter().filter(|(_, _, start, end)| *start < to.0 && *end > from.0);
            written.clone().all(|&(slot, sector, _, _)| !self.old[slot][sector].is_some_and(needed))
        }

        /// The furthest boundary, step by step, if everything from `since` on is written after `recorded`.
        fn free_until(&self, change: &ShapeChange, recorded: SetLba, since: SetLba) -> SetLba {
            let mut steps = positions(change);
            if change.direction == ReshapeDirection::Backward {
                steps.reverse();
            }
            let ahead = steps.into_iter().skip_while(|at| *at != recorded).skip(1);
            let free = ahead.take_while(|to| self.is_free(change.direction, recorded, since.min(*to), since.max(*to)));
            free.last().unwrap_or(recorded)
        }
    }

    /// All shifts of a change that are tried: none, the same one for all, and a different one for each member.
    fn shifts(members: u16, direction: ReshapeDirection, least: i64) -> Vec<Vec<Shift>> {
        let sign = if direction == ReshapeDirection::Forward { -1 } else { 1 };
        let each = |shift: &dyn Fn(i64) -> i64| (0..i64::from(members)).map(|slot| Shift(sign * shift(slot))).collect();
        vec![each(&|_| 0), each(&|_| 8), each(&|_| least), each(&|_| 72), each(&|slot| least + 8 * (slot * 5 % 4))]
    }

    fn judge(old: &Geometry, new: &Geometry, direction: ReshapeDirection, fresh: SlotSet) -> usize {
        let members = old.members().max(new.members());
        let none = vec![Shift(0); usize::from(members)];
        let Ok(plain) = ShapeChange::new(old.clone(), new.clone(), direction, none, fresh) else { return 0 };
        let least = plain.least_shift().0 as i64;
        let is_near =
            |it: &Geometry| matches!(it, Geometry::Mirror(it) if it.near_and_far().is_some_and(|it| it.1 == 1));
        let near = is_near(old) && is_near(new);
        // Near copies that do not divide the members continue in the next row, which needs more room than md's rule says.
        let is_even = |it: &Geometry| match it {
            Geometry::Mirror(it) => it.members().is_multiple_of(it.copy_count()),
            _ => true,
        };
        let is_ruled = matches!(old, Geometry::Parity(_)) || near && is_even(old) && is_even(new);
        let mut judged = 0;
        for shifts in shifts(members, direction, least) {
            let roomy = shifts.iter().all(|shift| shift.0.abs() >= least);
            let change =
                ShapeChange::new(old.clone(), new.clone(), direction, shifts, fresh).expect("as without shifts");
            let brute = Brute::of(&change, fresh);
            for recorded in positions(&change) {
                let free = change.free_until(recorded);
                let furthest = brute.free_until(&change, recorded, recorded);
                let at = alloc::format!("{change:?} at {recorded:?}: {free:?} {furthest:?}");
                match (old, direction) {
                    (Geometry::Parity(_), _) => assert_eq!(free, furthest, "{at}"),
                    // A mirror may have a free place before its first needed one. Such a hole is not used.
                    (_, ReshapeDirection::Forward) => assert!(free <= furthest, "{at}"),
                    (_, ReshapeDirection::Backward) => assert!(free >= furthest, "{at}"),
                }
                if near {
                    assert_eq!(free, brute.free_until(&change, recorded, change.start()), "{at}");
                }
                assert_eq!(change.has_room(recorded), free != recorded || recorded == change.end());
                assert!(!(roomy && is_ruled) || change.has_room(recorded), "{change:?} has no room at {recorded:?}");
                judged += 1;
            }
        }
        judged
    }

    fn both_ways(old: &Geometry, new: &Geometry) -> usize {
        [ReshapeDirection::Forward, ReshapeDirection::Backward]
            .into_iter()
            .map(|direction| judge(old, new, direction, SlotSet::EMPTY))
            .sum()
    }

    #[test]
    fn parity_sets_have_exactly_the_room_that_a_map_of_every_sector_shows() {
        let mut judged = 0;
        for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
            let counts = level.members_min()..=7;
            for (before, after) in counts.clone().flat_map(|before| counts.clone().map(move |after| (before, after))) {
                for (chunk, next) in [(8, 8), (8, 16), (16, 8), (8, 32), (32, 16), (32, 32)] {
                    let (old, new) = (geometry(level, before, chunk, 2), geometry(level, after, next, 2));
                    judged += both_ways(&old, &new);
                }
            }
        }
        assert!(judged > 10_000, "{judged}");
    }

    #[test]
    fn every_layout_of_parity_has_the_same_room() {
        for level in [Level::Raid5, Level::Raid6] {
            let layouts = (0..=20).filter(|layout| crate::geometry::Rotation::from_md(level, *layout).is_some());
            for layout in layouts {
                assert!(both_ways(&geometry(level, 5, 16, layout), &geometry(level, 5, 16, 2)) > 0);
                assert!(both_ways(&geometry(level, 4, 8, 2), &geometry(level, 6, 16, layout)) > 0);
            }
        }
    }

    #[test]
    fn mirrors_with_chunks_never_get_more_room_than_a_map_of_every_sector_shows() {
        let mut judged = 0;
        for (copies, layouts) in [(2, &[NEAR_2, OFFSET_2][..]), (3, &[NEAR_3])] {
            for (before, after) in (copies..=7).flat_map(|before| (copies..=7).map(move |after| (before, after))) {
                for (from, to) in layouts.iter().flat_map(|from| layouts.iter().map(move |to| (*from, *to))) {
                    for (chunk, next) in [(8, 8), (8, 16), (32, 16)] {
                        let old = geometry(Level::Raid10, before, chunk, from);
                        judged += both_ways(&old, &geometry(Level::Raid10, after, next, to));
                    }
                }
            }
        }
        assert!(judged > 5_000, "{judged}");
    }

    #[test]
    fn a_member_that_the_change_fills_needs_no_room() {
        // RAID 0 of three and of four members, as md stores them while they change: RAID 4 without the parity member.
        let (old, new) = (geometry(Level::Raid4, 4, 16, 0), geometry(Level::Raid4, 5, 16, 0));
        let fresh = SlotSet::one(Slot(3));
        assert!(judge(&old, &new, ReshapeDirection::Forward, fresh) > 0);
        let shifts = vec![Shift(-64), Shift(-64), Shift(-64), Shift(0), Shift(0)];
        let kept =
            ShapeChange::new(old.clone(), new.clone(), ReshapeDirection::Forward, shifts.clone(), SlotSet::EMPTY);
        let filled = ShapeChange::new(old, new, ReshapeDirection::Forward, shifts, fresh);
        assert!(!kept.expect("a change").has_room(SetLba::ZERO));
        assert!(filled.expect("a change").has_room(SetLba::ZERO));
    }

    #[test]
    fn each_address_is_on_the_side_that_the_boundary_gives() {
        let (small, large) = (geometry(Level::Raid5, 4, 8, 2), geometry(Level::Raid5, 5, 16, 2));
        for (old, new, direction) in
            [(&small, &large, ReshapeDirection::Forward), (&large, &small, ReshapeDirection::Backward)]
        {
            let change = ShapeChange::new(old.clone(), new.clone(), direction, vec![Shift(0); 5], SlotSet::EMPTY);
            let change = change.expect("a change");
            assert_eq!((change.on(Side::Old), change.on(Side::New)), (old, new));
            assert_eq!((change.direction(), change.shift(Slot(4))), (direction, Shift(0)));
            for moved in positions(&change) {
                for at in (0..small.capacity().0).map(SetLba) {
                    let is_new = match direction {
                        ReshapeDirection::Forward => at < moved,
                        ReshapeDirection::Backward => at >= moved,
                    };
                    let (side, until) = change.side_at(moved, at);
                    assert_eq!(side == Side::New, is_new);
                    let end = change.on(side).capacity().0;
                    assert_eq!(until.0, if at < moved { moved.0 } else { end });
                }
            }
        }
    }

    #[test]
    fn steps_units_and_least_shifts_are_those_of_md() {
        let big = |level, members, chunk, layout| {
            let spec = SetSpec {
                level,
                members,
                chunk: Sectors(chunk),
                layout,
                member_size: Sectors(1 << 17),
                member_sizes: &[],
            };
            Geometry::new(&spec).expect("a possible set")
        };
        // Step, unit, and the shift that mdadm chose on members with little room.
        let cases = [
            (big(Level::Raid5, 4, 128, 2), big(Level::Raid5, 5, 128, 2), 512, 1536, 512),
            (big(Level::Raid5, 3, 128, 2), big(Level::Raid5, 5, 128, 2), 512, 512, 256),
            (big(Level::Raid6, 4, 128, 18), big(Level::Raid6, 5, 128, 2), 384, 768, 384),
            (big(Level::Raid5, 4, 128, 2), big(Level::Raid5, 4, 256, 2), 768, 768, 256),
            (big(Level::Raid10, 4, 128, NEAR_2), big(Level::Raid10, 5, 128, NEAR_2), 128, 128, 128),
            (big(Level::Raid10, 4, 128, NEAR_2), big(Level::Raid10, 4, 128, OFFSET_2), 128, 128, 256),
        ];
        for (old, new, step, unit, least) in cases {
            let shifts = vec![Shift::default(); usize::from(new.members())];
            let change =
                ShapeChange::new(old, new, ReshapeDirection::Forward, shifts, SlotSet::EMPTY).expect("a change");
            let seen = (change.step(), change.unit(), change.least_shift());
            assert_eq!(seen, (Sectors(step), Sectors(unit), Sectors(least)));
        }
    }

    #[test]
    fn geometries_that_cannot_change_into_each_other_are_refused() {
        let refused = |old: &Geometry, new: &Geometry, direction, shifts: Vec<Shift>| {
            let error =
                ShapeChange::new(old.clone(), new.clone(), direction, shifts, SlotSet::EMPTY).expect_err("refused");
            assert!(!alloc::format!("{error}").is_empty());
            error
        };
        let none = |count: usize| vec![Shift::default(); count];
        let (four, five) = (geometry(Level::Raid5, 4, 8, 2), geometry(Level::Raid5, 5, 8, 2));
        let (forward, backward) = (ReshapeDirection::Forward, ReshapeDirection::Backward);
        assert_eq!(refused(&four, &five, backward, none(5)), ChangeError::Direction);
        assert_eq!(refused(&five, &four, forward, none(5)), ChangeError::Direction);
        assert_eq!(refused(&four, &five, forward, none(4)), ChangeError::ShiftCount(4));
        let mut up = none(5);
        up[2] = Shift(8);
        let wrong = ChangeError::Shift { slot: Slot(2), shift: Shift(8) };
        assert_eq!(refused(&four, &five, forward, up.clone()), wrong);
        up[2] = Shift(-8);
        assert!(matches!(refused(&five, &four, backward, up), ChangeError::Shift { .. }));
        let mirror = geometry(Level::Raid10, 4, 8, NEAR_2);
        assert_eq!(refused(&four, &mirror, forward, none(4)), ChangeError::Kinds);
        let plain = geometry(Level::Raid1, 2, 8, 0);
        assert_eq!(refused(&plain, &plain, forward, none(2)), ChangeError::Kinds);
        let far = geometry(Level::Raid10, 4, 8, 0x201);
        assert_eq!(refused(&mirror, &far, forward, none(4)), ChangeError::FarCopies);
        let three = geometry(Level::Raid10, 6, 8, NEAR_3);
        assert_eq!(refused(&mirror, &three, forward, none(6)), ChangeError::Copies);
        // 192 sectors are not whole chunks of 128: the new geometry would use less of each member.
        let coarse = geometry(Level::Raid5, 5, 128, 2);
        assert_eq!(
            refused(&four, &coarse, forward, none(5)),
            ChangeError::Extent { old: Sectors(192), new: Sectors(128) }
        );
        let coarse = geometry(Level::Raid10, 4, 128, NEAR_2);
        assert_eq!(
            refused(&mirror, &coarse, forward, none(4)),
            ChangeError::Smaller { old: Sectors(384), new: Sectors(256) }
        );
    }
}
