//! The shape of a set: the geometry at each address.
//!
//! ```text
//!   0                                            capacity
//!   |--------------------- Side::Old ------------------|     a steady shape: one geometry, which both sides mean
//!   |------ Side::New ------|-------- Side::Old -------|     a change that runs forwards
//!   |------ Side::Old ------|-------- Side::New -------|     a change that runs backwards
//!                         moved
//! ```
//!
//! A set that grows, or changes its level, chunk or layout, has two geometries until all data has moved, and a boundary
//! between them. So the set is asked for its shape, and the shape for the geometry at an address. The answer holds for a
//! stretch of addresses, and names the side. An operation lies on one side, and keeps it in its footprint.
//!
//! Whatever outlives an operation is named by addresses that mean the same on every side: sectors of the set. The number
//! of a stripe means something on its side only. So ranges, dirty units of the cache and redos have the first sector of
//! their unit as their name.
//!
//! A shape is pure, like a geometry. The caller guarantees the addresses; one outside the set is a bug and panics.

use super::cache_units::LINE_SECTORS;
use super::reshape::ShapeChange;
use super::{Geometry, Mirror, Parity};
use crate::limits::REGION_SECTORS;
use crate::slot_set::SlotSet;
use alloc::boxed::Box;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// A part of a set with one geometry. Only a shape names it. A number of a stripe, and a sector of a member, belong to a
/// side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    /// The geometry before a change; the whole of a set that does not change its shape.
    Old,
    /// The geometry after a change.
    New,
}

/// The geometry at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach<'a> {
    geometry: &'a Geometry,
    side: Side,
    until: SetLba,
}

impl<'a> Reach<'a> {
    /// The geometry.
    #[inline(always)]
    pub(crate) const fn geometry(&self) -> &'a Geometry {
        self.geometry
    }

    /// The side.
    #[inline(always)]
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// The address from which on another answer holds.
    #[inline(always)]
    pub(crate) const fn until(&self) -> SetLba {
        self.until
    }
}

/// A change that is under way, and how far it has come.
#[derive(Clone, Debug)]
struct Changing {
    change: ShapeChange,
    /// The boundary: on one side of it everything has moved, and the superblocks say so.
    moved: SetLba,
    /// Writes wait between the boundary and this one.
    closed: SetLba,
    /// All requests wait, wherever they go.
    is_shut: bool,
}

/// The shape of a set: one geometry, or two with a boundary while the shape changes.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The old side's.
    geometry: Geometry,
    /// Kept, because each request asks for it.
    capacity: Sectors,
    changing: Option<Box<Changing>>,
}

impl Shape {
    /// A shape with one side.
    pub(crate) fn steady(geometry: Geometry) -> Self {
        let capacity = geometry.capacity();
        Self { geometry, capacity, changing: None }
    }

    /// A shape with two sides and this boundary. Hosts have the addresses that both geometries have.
    pub(crate) fn changing(change: ShapeChange, moved: SetLba) -> Self {
        let capacity = change.capacity_old().min(change.capacity_new());
        Self {
            geometry: change.on(Side::Old).clone(),
            capacity,
            changing: Some(Box::new(Changing { change, moved, closed: moved, is_shut: false })),
        }
    }

    /// Has it two sides?
    #[inline(always)]
    pub(crate) const fn is_changing(&self) -> bool {
        self.changing.is_some()
    }

    /// The geometries of all sides.
    fn geometries(&self) -> impl Iterator<Item = &Geometry> {
        core::iter::once(&self.geometry).chain(self.changing.as_ref().map(|changing| changing.change.on(Side::New)))
    }

    /// The shape of a set that is described like this.
    #[cfg(test)]
    pub(crate) fn of(spec: &super::SetSpec<'_>) -> Self {
        Self::steady(Geometry::new(spec).unwrap())
    }

    // ---- an address, or a side

    /// The geometry at an address, and the stretch of addresses for which the answer holds.
    #[inline(always)]
    pub(crate) fn at(&self, at: SetLba) -> Reach<'_> {
        debug_assert!(at.offset() < self.capacity, "{at:?} is outside a set of {}", self.capacity);
        if let Some(changing) = &self.changing {
            return self.at_one_side(changing, at);
        }
        Reach { geometry: &self.geometry, side: Side::Old, until: SetLba(self.capacity.get()) }
    }

    #[cold]
    fn at_one_side<'a>(&'a self, changing: &'a Changing, at: SetLba) -> Reach<'a> {
        let (side, mut until) = changing.change.side_at(changing.moved, at);
        // No answer crosses the end of the stretch that is closed to writes.
        if at < changing.closed {
            until = until.min(changing.closed);
        }
        Reach { geometry: self.on(side), side, until: until.min(SetLba(self.capacity.get())) }
    }

    /// Does a write to this address, or a read of it, wait until the boundary has passed it? The answer holds as far as
    /// [`Shape::at`] says.
    #[inline(always)]
    pub(crate) fn is_closed(&self, at: SetLba, is_read: bool) -> bool {
        self.changing.as_ref().is_some_and(|changing| {
            let (low, high) = (changing.moved.min(changing.closed), changing.moved.max(changing.closed));
            changing.is_shut || (!is_read && low <= at && at < high)
        })
    }

    /// The geometry of a side.
    #[inline(always)]
    pub(crate) fn on(&self, side: Side) -> &Geometry {
        match (side, &self.changing) {
            (Side::New, Some(changing)) => changing.change.on(Side::New),
            _ => &self.geometry,
        }
    }

    /// The geometry of a side of a set with parity. Panics for any other: only parity sets have rows.
    #[inline(always)]
    pub(crate) fn parity(&self, side: Side) -> &Parity {
        let Geometry::Parity(parity) = self.on(side) else { unreachable!("rows are of parity sets") };
        parity
    }

    /// The geometry of a side of a mirrored set. Panics for any other.
    #[inline(always)]
    pub(crate) fn mirror(&self, side: Side) -> &Mirror {
        let Geometry::Mirror(mirror) = self.on(side) else { unreachable!("copies are of mirrored sets") };
        mirror
    }

    /// The side on which background work counts its units, in sectors of the members or of the set. Such work is for
    /// sets that do not change their shape.
    #[inline(always)]
    pub(crate) const fn work_side(&self) -> Side {
        Side::Old
    }

    /// The first sector of the exclusion unit of an address, and the place of the address in it: of a row in its stripe,
    /// or of a sector in its region.
    #[inline]
    pub(crate) fn exclusion_unit(&self, at: SetLba) -> (SetLba, Sectors) {
        match self.at(at).geometry() {
            Geometry::Parity(parity) => {
                let (stripe, _, row) = parity.locate(at);
                (parity.stripe_start(stripe), row)
            }
            _ => {
                let within = at.get() % REGION_SECTORS;
                (SetLba(at.get() - within), Sectors(within))
            }
        }
    }

    /// The unit to which a redo of this place of a member belongs, and the number of sectors to its end on the member. The
    /// unit of a stripe is the stripe, by its first sector in the set; operations on the stripe wait for its redos. No
    /// operation of a set without parity waits, so regions of its members do for an order.
    pub(crate) fn redo_unit(&self, side: Side, at: MemberLba) -> (SetLba, Sectors) {
        match self.on(side) {
            Geometry::Parity(parity) => match parity.stripe_at(at) {
                Some((stripe, row)) => (parity.stripe_start(stripe), parity.chunk() - row),
                // Only a damaged record is there.
                None => (SetLba(self.capacity.get()), Sectors(u64::MAX - at.get())),
            },
            _ => {
                let within = at.get() % REGION_SECTORS;
                (SetLba(at.get() - within), Sectors(REGION_SECTORS - within))
            }
        }
    }

    // ---- the set as a whole

    /// Size of the set.
    #[inline(always)]
    pub(crate) const fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Number of slots of both sides, missing ones included.
    #[inline]
    pub(crate) fn slots(&self) -> u16 {
        let new = self.changing.as_ref().map_or(0, |changing| changing.change.on(Side::New).members());
        self.geometry.members().max(new)
    }

    /// Is all data of both sides available? See [`Geometry::survives`]. `joined` are slots that are missing on the old
    /// side only.
    pub(crate) fn survives(&self, missing: SlotSet, joined: SlotSet) -> bool {
        self.geometry.survives(missing)
            && self
                .changing
                .as_ref()
                .is_none_or(|changing| changing.change.on(Side::New).survives(missing.minus(joined)))
    }

    /// Has the member in this slot, which the change fills up to here, all that has moved? Not if the shape is steady.
    pub(crate) fn is_joined(&self, slot: Slot, to: Sectors) -> bool {
        let filled_to = |changing: &Changing| changing.change.filled_at(changing.moved);
        let fills = |changing: &Changing| changing.change.fills(slot);
        let changing = self.changing.as_deref().filter(|changing| fills(changing));
        changing.and_then(filled_to).is_some_and(|need| need <= to)
    }

    /// The change that is under way.
    pub(crate) fn change(&self) -> Option<&ShapeChange> {
        self.changing.as_ref().map(|changing| &changing.change)
    }

    /// Its boundary. Panics for a steady shape.
    pub(crate) fn boundary(&self) -> SetLba {
        self.changing.as_ref().expect("its shape changes").moved
    }

    /// Everything up to this distance has moved, and the superblocks say so.
    pub(crate) fn set_boundary(&mut self, distance: Sectors) {
        let changing = self.changing.as_mut().expect("its shape changes");
        changing.moved = changing.change.boundary(distance);
    }

    /// Writes wait between the boundary and this distance.
    pub(crate) fn close_to(&mut self, distance: Sectors) {
        let changing = self.changing.as_mut().expect("its shape changes");
        changing.closed = changing.change.boundary(distance);
    }

    /// The new side is the only one from now on. Hosts have the addresses that both had until [`Shape::open_all`].
    pub(crate) fn end_old_side(&mut self) {
        let changing = self.changing.take().expect("its shape changes");
        self.geometry = changing.change.on(Side::New).clone();
    }

    /// All requests wait.
    pub(crate) fn shut(&mut self) {
        let changing = self.changing.take().unwrap_or_else(|| Self::closed(&self.geometry));
        self.changing = Some(Box::new(Changing { is_shut: true, ..*changing }));
    }

    /// A change in place, to whose end writes wait.
    fn closed(geometry: &Geometry) -> Box<Changing> {
        let change = ShapeChange::in_place(geometry.clone(), geometry.clone());
        let (moved, closed) = (change.start(), change.end());
        Box::new(Changing { change, moved, closed, is_shut: false })
    }

    /// Nothing is in work: the same bytes have this geometry from now on. Writes wait.
    pub(crate) fn exchange(&mut self, geometry: Geometry) {
        self.changing = Some(Self::closed(&geometry));
        self.geometry = geometry;
    }

    /// Nothing waits any longer.
    pub(crate) fn reopen(&mut self) {
        self.changing = None;
    }

    /// Hosts have all addresses.
    pub(crate) fn open_all(&mut self) {
        self.capacity = self.geometry.capacity();
    }

    /// The change that is under way, and its boundary.
    pub(crate) fn into_change(self) -> Option<(ShapeChange, SetLba)> {
        self.changing.map(|changing| (changing.change, changing.moved))
    }

    /// On the weaker side: see [`Geometry::losses_survived_without`].
    pub(crate) fn losses_survived_without(&self, missing: SlotSet) -> u16 {
        self.geometries().map(|geometry| geometry.losses_survived_without(missing)).min().expect("it has a side")
    }

    /// On both sides: see [`Geometry::is_redundant_without`].
    pub(crate) fn is_redundant_without(&self, missing: SlotSet) -> bool {
        self.geometries().all(|geometry| geometry.is_redundant_without(missing))
    }

    /// Have these slots no data on any side, but parity alone?
    pub(crate) fn is_without_data(&self, slots: SlotSet) -> bool {
        self.geometries().all(|geometry| match geometry {
            Geometry::Parity(parity) => slots.minus(parity.slots_without_data()).is_empty(),
            _ => slots.is_empty(),
        })
    }

    /// The most copies that a block has.
    #[inline]
    pub(crate) const fn copies(&self) -> u16 {
        match &self.geometry {
            Geometry::Mirror(mirror) => mirror.copy_count(),
            Geometry::Passthrough(_) | Geometry::Linear(_) | Geometry::Striped(_) | Geometry::Parity(_) => 1,
        }
    }

    /// Is there a copy or parity to restore a member from, if no member is missing?
    #[inline]
    pub(crate) const fn is_redundant(&self) -> bool {
        self.has_parity() || self.copies() > 1
    }

    /// Has the set parity? Then it is written by rows.
    #[inline(always)]
    pub(crate) const fn has_parity(&self) -> bool {
        matches!(self.geometry, Geometry::Parity(_))
    }

    /// Is it a mirror (RAID 1 or 10)?
    #[inline(always)]
    pub(crate) const fn is_mirror(&self) -> bool {
        matches!(self.geometry, Geometry::Mirror(_))
    }

    /// Does each member hold the set, sector by sector (RAID 1)?
    pub(crate) fn is_plain_mirror(&self) -> bool {
        matches!(&self.geometry, Geometry::Mirror(mirror) if mirror.chunk().is_none())
    }

    /// Is it a mirror with chunks (RAID 10)? Then marks and checks count sectors of the set, not of a member.
    pub(crate) fn is_striped_mirror(&self) -> bool {
        matches!(&self.geometry, Geometry::Mirror(mirror) if mirror.chunk().is_some())
    }

    /// Can lines of the cache be dirty? Dirty units must consist of whole lines.
    #[inline]
    pub(crate) fn is_cacheable(&self) -> bool {
        let fits = |geometry: &Geometry| match geometry {
            Geometry::Parity(parity) => parity.chunk().get().is_multiple_of(LINE_SECTORS),
            _ => true,
        };
        // Not by an iterator over both sides: each cached write asks for it.
        fits(&self.geometry) && self.changing.as_ref().is_none_or(|changing| fits(changing.change.on(Side::New)))
    }

    /// Is it a drive as it is?
    pub(crate) const fn is_passthrough(&self) -> bool {
        matches!(self.geometry, Geometry::Passthrough(_))
    }

    /// Are the members used one after the other?
    #[inline(always)]
    pub(crate) const fn is_linear(&self) -> bool {
        matches!(self.geometry, Geometry::Linear(_))
    }

    /// The greatest position on a member, not above `to`, that has only whole stripes before it. A set without parity has
    /// no stripes.
    pub(crate) fn whole_stripes(&self, to: Sectors) -> Sectors {
        match self.on(Side::New) {
            Geometry::Parity(parity) => to.round_down(parity.chunk()),
            _ => to,
        }
    }

    /// The sectors of the set that are restored when a rebuild of the only missing slot has filled its member up to
    /// `filled`; none if sectors of the members are not in the order of the set.
    pub(crate) fn restored_by(&self, filled: MemberLba) -> Sectors {
        match &self.geometry {
            _ if self.is_changing() => Sectors::ZERO,
            // A unit may be shorter than a chunk: a stripe is complete when all of its rows are.
            Geometry::Parity(parity) => parity.full_stripe() * (filled.get() / parity.chunk().get()),
            Geometry::Mirror(mirror) if mirror.chunk().is_none() => filled.offset(),
            _ => Sectors::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::cache_units::{unit_at, unit_number, unit_sectors, STRETCH_SECTORS};
    use crate::geometry::{Fragment, Level, SetSpec};
    use alloc::vec::Vec;

    /// Small sets of each level and layout. Those without parity have several regions.
    fn shapes() -> Vec<Shape> {
        let mut shapes = Vec::new();
        let mut add = |level, members: u16, chunk, layout, member_size| {
            let sizes = alloc::vec![Sectors(member_size); usize::from(members)];
            let (chunk, member_size) = (Sectors(chunk), Sectors(member_size));
            shapes.push(Shape::of(&SetSpec { level, members, chunk, layout, member_size, member_sizes: &sizes }));
        };
        add(Level::Passthrough, 1, 0, 0, 5000);
        add(Level::Linear, 3, 0, 0, 1500);
        for chunk in [8, 32] {
            add(Level::Raid0, 3, chunk, 2, 1700);
            for (members, layout) in [(4, 0x102), (5, 0x102), (4, 0x201), (4, 0x1_0201), (3, 0x103)] {
                add(Level::Raid10, members, chunk, layout, 2100);
            }
            for members in 3..6 {
                add(Level::Raid4, members, chunk, 0, 70);
                (0..6).for_each(|layout| add(Level::Raid5, members, chunk, layout, 130));
                for layout in [0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 20] {
                    add(Level::Raid6, members + 1, chunk, layout, 130);
                }
            }
        }
        (1..4).for_each(|members| add(Level::Raid1, members, 0, 0, 4500));
        shapes
    }

    fn addresses(shape: &Shape) -> impl Iterator<Item = SetLba> {
        (0..shape.capacity().get()).map(SetLba)
    }

    /// The place of a sector on a member, of its first copy.
    fn place_of(geometry: &Geometry, at: SetLba) -> Fragment {
        match geometry {
            Geometry::Passthrough(map) => map.map(at),
            Geometry::Linear(map) => map.map(at),
            Geometry::Striped(map) => map.map(at),
            Geometry::Mirror(map) => map.copies(at).next().unwrap(),
            Geometry::Parity(map) => {
                let (stripe, column, row) = map.locate(at);
                let (slot, lba) = (map.slot_of(stripe, column), map.member_lba(stripe, row));
                Fragment { slot, lba, len: map.chunk() - row }
            }
        }
    }

    #[test]
    fn a_steady_shape_has_one_geometry_at_each_of_its_addresses() {
        for shape in shapes() {
            let geometry = shape.on(Side::Old);
            assert_eq!((shape.capacity(), shape.slots()), (geometry.capacity(), geometry.members()));
            for at in addresses(&shape) {
                let reach = shape.at(at);
                assert_eq!((reach.side(), reach.until().offset()), (Side::Old, geometry.capacity()));
                assert!(core::ptr::eq(reach.geometry(), geometry));
            }
        }
    }

    #[test]
    fn an_exclusion_unit_is_a_stripe_or_a_region_and_its_first_sector_names_it() {
        for shape in shapes() {
            for at in addresses(&shape) {
                let (unit, within) = shape.exclusion_unit(at);
                assert!(unit <= at);
                assert_eq!(shape.exclusion_unit(unit), (unit, Sectors::ZERO), "{shape:?} {at:?}");
                let Geometry::Parity(parity) = shape.on(Side::Old) else {
                    assert_eq!(unit + within, at);
                    assert_eq!((unit.get() % REGION_SECTORS, within.get()), (0, at.get() % REGION_SECTORS));
                    continue;
                };
                // Sectors of one row of a stripe are in the same place of their members, so they exclude each other.
                let stripe = parity.locate(at).0;
                assert_eq!(parity.locate(unit), (stripe, 0, Sectors::ZERO));
                assert_eq!(place_of(shape.at(at).geometry(), at).lba, parity.member_lba(stripe, within));
            }
        }
    }

    #[test]
    fn dirty_units_divide_a_set_without_gaps_and_each_lies_in_one_exclusion_unit() {
        for shape in shapes() {
            let (mut start, mut number) = (SetLba::ZERO, 0);
            while start.offset() < shape.capacity() {
                let (unit, len) = unit_at(&shape, start);
                assert!(!len.is_zero() && start + len <= SetLba::ZERO + shape.capacity());
                assert_eq!((unit, unit_sectors(&shape, start), unit_number(&shape, start)), (start, len, number));
                if !shape.has_parity() {
                    assert_eq!(len, Sectors(STRETCH_SECTORS).min(shape.capacity() - start.offset()));
                }
                for at in (start.get()..(start + len).get()).map(SetLba) {
                    assert_eq!(unit_at(&shape, at), (start, len), "{shape:?} {at:?}");
                    assert_eq!(shape.exclusion_unit(at).0, shape.exclusion_unit(start).0);
                }
                (start, number) = (start + len, number + 1);
            }
        }
    }

    #[test]
    fn a_redo_on_a_member_belongs_to_the_stripe_of_its_rows() {
        for shape in shapes().into_iter().filter(Shape::has_parity) {
            let parity = shape.parity(Side::Old);
            for at in addresses(&shape) {
                let (unit, row) = shape.exclusion_unit(at);
                let lba = place_of(shape.at(at).geometry(), at).lba;
                assert_eq!(shape.redo_unit(Side::Old, lba), (unit, parity.chunk() - row), "{shape:?} {at:?}");
            }
            let end = MemberLba::ZERO + parity.member_extent();
            let (unit, left) = shape.redo_unit(Side::Old, end);
            assert!(unit.offset() == shape.capacity() && left > parity.chunk(), "it comes after all stripes");
        }
        let mirror = shapes().into_iter().find(Shape::is_plain_mirror).unwrap();
        let unit = mirror.redo_unit(Side::Old, MemberLba(REGION_SECTORS + 7));
        assert_eq!(unit, (SetLba(REGION_SECTORS), Sectors(REGION_SECTORS - 7)));
    }

    #[test]
    fn what_a_rebuild_has_restored_ends_before_the_first_stripe_that_lacks_a_row() {
        for shape in shapes().into_iter().filter(|shape| shape.has_parity() || shape.is_plain_mirror()) {
            let geometry = shape.on(Side::Old);
            for filled in (0..140).map(MemberLba) {
                let open = addresses(&shape).find(|at| place_of(geometry, *at).lba >= filled);
                let first = |at: SetLba| if shape.has_parity() { shape.exclusion_unit(at).0 } else { at };
                if let Some(open) = open.map(first) {
                    assert_eq!(shape.restored_by(filled), open.offset(), "{shape:?} {filled:?}");
                }
                let floor = shape.whole_stripes(filled.offset());
                let ends = |to: u64| !shape.has_parity() || to.is_multiple_of(shape.parity(Side::Old).chunk().get());
                assert_eq!(Some(floor.get()), (0..=filled.get()).rev().find(|to| ends(*to)));
            }
        }
    }

    #[test]
    fn a_set_is_redundant_if_it_survives_the_loss_of_some_member() {
        for shape in shapes() {
            let slots = SlotSet::first_n(shape.slots());
            let survives_one = slots.iter().any(|slot| shape.survives(SlotSet::one(slot), SlotSet::EMPTY));
            assert_eq!(shape.is_redundant(), survives_one, "{shape:?}");
            assert_eq!(shape.is_redundant_without(SlotSet::EMPTY), survives_one);
            assert_eq!(shape.losses_survived_without(SlotSet::EMPTY) > 0, survives_one);
            assert_eq!(shape.is_mirror(), shape.is_plain_mirror() || shape.is_striped_mirror());
        }
    }

    /// The slots that Linux md names in `only_parity`.
    #[test]
    fn slots_with_parity_in_all_stripes_have_no_data() {
        for (level, layout, expected) in [
            (Level::Raid4, 0, &[4][..]),
            (Level::Raid5, 2, &[]),
            (Level::Raid5, 4, &[0]),
            (Level::Raid5, 5, &[4]),
            (Level::Raid6, 2, &[]),
            (Level::Raid6, 4, &[0, 1]),
            (Level::Raid6, 5, &[3, 4]),
            (Level::Raid6, 9, &[]),
            (Level::Raid6, 16, &[4]),
            (Level::Raid6, 19, &[4]),
            (Level::Raid6, 20, &[0, 4]),
        ] {
            let (chunk, member_size) = (Sectors(8), Sectors(130));
            let shape = Shape::of(&SetSpec { level, members: 5, chunk, layout, member_size, member_sizes: &[] });
            let without: Vec<u16> = shape.parity(Side::Old).slots_without_data().iter().map(|slot| slot.0).collect();
            assert_eq!(without, expected, "{level:?} {layout}");
        }
    }
}
