//! The shape of a set: the geometry at each address.
//!
//! ```text
//!   0                                            capacity
//!   |------------------- Side::Only -------------------|     a steady shape: one side, one geometry
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

use super::units::LINE_SECTORS;
use super::{Geometry, Mirror, Parity};
use crate::limits::REGION_SECTORS;
use crate::slots::SlotSet;
use openraid_units::{MemberLba, Sectors, SetLba};

/// A part of a set with one geometry. Only a shape names it. A number of a stripe, and a sector of a member, belong to a
/// side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    /// The whole of a set that does not change its shape.
    Only,
}

/// The geometry at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach<'a> {
    pub geometry: &'a Geometry,
    pub side: Side,
    /// The address from which on another answer holds.
    pub until: SetLba,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    geometry: Geometry,
    /// Kept, because each request asks for it.
    capacity: Sectors,
}

impl Shape {
    /// A shape with one side.
    pub(crate) fn steady(geometry: Geometry) -> Self {
        let capacity = geometry.capacity();
        Self { geometry, capacity }
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
        Reach { geometry: &self.geometry, side: Side::Only, until: SetLba(self.capacity.get()) }
    }

    /// The geometry of a side.
    #[inline(always)]
    pub(crate) const fn on(&self, side: Side) -> &Geometry {
        match side {
            Side::Only => &self.geometry,
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
        Side::Only
    }

    /// The first sector of the exclusion unit of an address, and the place of the address in it: of a row in its stripe,
    /// or of a sector in its region.
    #[inline]
    pub(crate) fn exclusion_unit(&self, at: SetLba) -> (SetLba, Sectors) {
        match self.at(at).geometry {
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

    /// Number of slots, missing ones included.
    #[inline]
    pub(crate) fn slots(&self) -> u16 {
        self.geometry.members()
    }

    /// See [`Geometry::survives`].
    pub(crate) fn survives(&self, missing: SlotSet) -> bool {
        self.geometry.survives(missing)
    }

    /// See [`Geometry::losses_survived_without`].
    pub(crate) fn losses_survived_without(&self, missing: SlotSet) -> u16 {
        self.geometry.losses_survived_without(missing)
    }

    /// See [`Geometry::is_redundant_without`].
    pub(crate) fn is_redundant_without(&self, missing: SlotSet) -> bool {
        self.geometry.is_redundant_without(missing)
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
        match &self.geometry {
            Geometry::Parity(parity) => parity.chunk().get().is_multiple_of(LINE_SECTORS),
            _ => true,
        }
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
        match &self.geometry {
            Geometry::Parity(parity) => to.round_down(parity.chunk()),
            _ => to,
        }
    }

    /// The sectors of the set that are restored when a rebuild of the only missing slot has filled its member up to
    /// `filled`; none if sectors of the members are not in the order of the set.
    pub(crate) fn restored_by(&self, filled: MemberLba) -> Sectors {
        match &self.geometry {
            // A unit may be shorter than a chunk: a stripe is complete when all of its rows are.
            Geometry::Parity(parity) => parity.full_stripe() * (filled.get() / parity.chunk().get()),
            Geometry::Mirror(mirror) if mirror.chunk().is_none() => filled.offset(),
            _ => Sectors::ZERO,
        }
    }
}
