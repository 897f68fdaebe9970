//! The shape of a set, from its superblocks: one geometry, or two and the boundary between them.

use alloc::vec::Vec;
use openraid_format::{DeviceRole, FeatureMap, MdLevel, ReshapeView, ShapeFields, Superblock};
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

use super::{AssembleError, Assembly, Candidate, Membership, PlannedMember};
use crate::geometry::reshape::{filled_at, ShapeChange, Shift};
use crate::geometry::shape::{Shape, Side};
use crate::geometry::takeover::five_of;
use crate::geometry::{Geometry, Level, SetSpec};
use crate::slot_set::SlotSet;

/// A change of shape that is under way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedChange {
    /// The two geometries, and the direction.
    pub change: ShapeChange,
    /// The boundary that is recorded.
    pub moved: SetLba,
}

impl Assembly {
    /// The shape of the set.
    pub(in crate::array) fn shape(&self) -> Shape {
        match &self.change {
            Some(planned) => Shape::changing(planned.change.clone(), planned.moved),
            None => Shape::steady(self.geometry.clone()),
        }
    }
}

/// The guard of a change of shape, which keeps other programs from it, as a start finds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundGuard {
    /// No guard.
    None,
    /// The change has not begun, or the newest superblock has no guard any longer.
    TakenBack,
    /// An end, another level or size, or a turn. Superblocks that bring other members up to it have these bits.
    Kept(FeatureMap),
}

impl FoundGuard {
    /// The bits of superblocks that bring members up.
    pub(in crate::array) const fn kept(self) -> FeatureMap {
        match self {
            Self::Kept(guards) => guards,
            Self::None | Self::TakenBack => FeatureMap(0),
        }
    }
}

/// The RAID 5 from which a RAID 6 with Q on the last member was made.
fn without_q(six: &ShapeFields) -> ShapeFields {
    let layout = five_of(six.layout).unwrap_or(six.layout);
    ShapeFields { level: MdLevel::Raid5, layout, chunk: six.chunk, raid_disks: six.raid_disks - 1 }
}

/// Take a superblock to the direction of the newest one, where the change turns around.
fn turn(superblock: &mut Superblock, newest: &Superblock) {
    let (Some(former), Some(turned)) = (superblock.change(), newest.change()) else { return };
    let is_before = (former.old, former.new) == (turned.new, turned.old) && superblock.events + 1 == newest.events;
    if is_before {
        // A superblock without such a position stays as it is, and is refused.
        let _ = superblock.turn_change(turned.position);
    }
}

/// Is this position the end of a member in the new shape?
fn is_all(to: MemberLba, change: &ReshapeView) -> bool {
    to.offset() >= change.size.round_down(change.new.chunk)
}

/// Is the mark of the begin or the end of a change in its superblock?
pub(super) fn is_guarded(candidate: &Candidate) -> bool {
    candidate.superblock.features.contains(FeatureMap::SHAPE_GUARD)
}

/// The candidates without that mark. A change whose begin was cut has moved nothing, so it is taken back. One whose end was
/// cut has moved everything, so members that do not know the end yet are taken to it. The same holds for a change of level
/// in which nothing moves. A start that did so may have been cut in its turn, so the newest superblock may say the result
/// without the mark.
pub(super) fn unguarded(candidates: &[Candidate]) -> (Vec<Candidate>, FoundGuard) {
    let mut candidates = candidates.to_vec();
    // With the same events, the marked one says what was under way: a start has made the other one.
    let newest = candidates.iter().max_by_key(|candidate| (candidate.superblock.events, is_guarded(candidate)));
    let Some(newest) = newest.map(|newest| newest.superblock.clone()) else { return (candidates, FoundGuard::None) };
    let (apply, mark): (fn(&mut Superblock, &Superblock), _) = if !newest.features.contains(FeatureMap::SHAPE_GUARD) {
        (follow, FoundGuard::TakenBack)
    } else if newest.features.contains(FeatureMap::TURN_GUARD) {
        (turn, FoundGuard::Kept(FeatureMap::SHAPE_GUARD | FeatureMap::TURN_GUARD))
    } else if newest.change().is_some() {
        (take_back, FoundGuard::TakenBack)
    } else {
        (take_to_end, FoundGuard::Kept(FeatureMap::SHAPE_GUARD))
    };
    for superblock in candidates.iter_mut().map(|candidate| &mut candidate.superblock) {
        apply(superblock, &newest);
        superblock.features.set(FeatureMap::GUARDS, false);
    }
    (candidates, mark)
}

/// The shape before a change whose begin is marked in this superblock.
fn shape_before(marked: &Superblock) -> ShapeFields {
    let has_new_level = marked.features.contains(FeatureMap::LEVEL_GUARD);
    match marked.change() {
        Some(change) if has_new_level && change.old.level == MdLevel::Raid6 => without_q(&change.old),
        Some(change) => change.old,
        None => marked.shape(),
    }
}

/// The begin of the change is taken back.
fn take_back(superblock: &mut Superblock, newest: &Superblock) {
    if superblock.change().is_some() {
        superblock.forget_change();
    }
    if superblock.events + 1 >= newest.events {
        superblock.set_shape(&shape_before(newest));
    }
}

/// The change has ended.
fn take_to_end(superblock: &mut Superblock, newest: &Superblock) {
    if let Some(change) = superblock.change() {
        // A member that the change has filled.
        if superblock.recovery_offset().is_some_and(|to| is_all(to, &change)) {
            superblock.set_recovery_offset(None);
        }
        superblock.end_change();
    }
    if superblock.events + 1 >= newest.events {
        let has_slot = matches!(superblock.role(), DeviceRole::Active(_)) && superblock.shape() != newest.shape();
        superblock.take_over(&newest.shape(), newest.size);
        if has_slot {
            // The slots may have other numbers.
            superblock.roles = newest.roles.clone();
        }
    }
}

/// A start has taken back the begin, and this superblock does not know that yet.
fn follow(superblock: &mut Superblock, newest: &Superblock) {
    let is_marked = superblock.features.contains(FeatureMap::SHAPE_GUARD) && superblock.events + 1 >= newest.events;
    // A drive that was to join at the end of a linear set, and was absent when the set went on without it.
    let is_stranger = superblock.level == MdLevel::Linear && superblock.raid_disks > newest.raid_disks;
    if is_marked && is_stranger && newest.level == MdLevel::Linear {
        superblock.set_shape(&newest.shape());
    }
    if is_marked
        && newest.change().is_none()
        && superblock.change().is_some()
        && shape_before(superblock) == newest.shape()
    {
        superblock.forget_change();
        superblock.set_shape(&newest.shape());
    }
}

/// The geometry of a set with these members, before the change if one is under way, and the change.
///
/// # Errors
/// The superblocks describe no set.
pub fn layout_of(
    common: &Superblock,
    members: &[PlannedMember],
) -> Result<(Geometry, Option<PlannedChange>), AssembleError> {
    let shape = shape_of(common, || members.iter().map(|member| (&member.superblock, member.verdict)))?;
    let geometry = shape.on(Side::Old).clone();
    Ok((geometry, shape.into_change().map(|(change, moved)| PlannedChange { change, moved })))
}

/// The shape that the newest superblock describes. `members`: the superblocks of members, and their parts in the set.
pub(super) fn shape_of<'a, M>(common: &Superblock, members: impl Fn() -> M) -> Result<Shape, AssembleError>
where
    M: Iterator<Item = (&'a Superblock, Membership)>,
{
    let Some(change) = common.change() else {
        return geometry_of(&common.shape(), members(), common).map(Shape::steady);
    };
    let old = geometry_of(&change.old, members(), common)?;
    let new = geometry_of(&change.new, members(), common)?;
    let known = || {
        members().filter_map(|(superblock, verdict)| match verdict {
            Membership::Member(slot) | Membership::Forced(slot) | Membership::Rebuilding(slot, _) => {
                let shift =
                    superblock.new_data_offset().get().cast_signed() - superblock.data_offset.get().cast_signed();
                Some((slot, Shift(shift)))
            }
            _ => None,
        })
    };
    // A slot without a member moves as the one that moves least: without a shift, the change would have no room.
    let least = known().map(|(_, shift)| shift).min_by_key(|shift| shift.0.abs()).unwrap_or_default();
    let mut shifts = alloc::vec![least; usize::from(slots_of(common))];
    known().for_each(|(slot, shift)| shifts[slot.index()] = shift);
    // A member that is rebuilt for both sides gets its old places before anything moves on. Its position may be that of one
    // which the change fills, but such a one is only in a slot that has no data on the old side.
    let without_data = match &old {
        Geometry::Parity(old) => old.slots_without_data(),
        _ => SlotSet::EMPTY,
    };
    let need = filled_at(&new, change.direction, change.position);
    let is_filled = |verdict: Membership| match verdict {
        Membership::Rebuilding(slot, to) if need.is_some_and(|need| need <= to) => Some(slot),
        _ => None,
    };
    let filled: SlotSet = members().filter_map(|(_, verdict)| is_filled(verdict)).collect();
    let planned =
        ShapeChange::new(old, new, change.direction, shifts, filled & without_data).map_err(AssembleError::Change)?;
    Ok(Shape::changing(planned, change.position))
}

/// The verdicts, with what members that the change fills have. The power may have failed while superblocks were written, and a
/// member knows the position before the newest one. A position is recorded after a flush of all members, so a member that
/// had everything up to its position has everything up to the newest one.
pub(super) fn bring_up(
    mut verdicts: Vec<Membership>,
    candidates: &[Candidate],
    newest: &Superblock,
) -> Result<Vec<Membership>, AssembleError> {
    let Some(change) = newest.change() else { return Ok(verdicts) };
    let superblocks = candidates.iter().map(|candidate| &candidate.superblock);
    let new = geometry_of(&change.new, superblocks.clone().zip(verdicts.iter().copied()), newest)?;
    let filled = |position| filled_at(&new, change.direction, position);
    for (verdict, superblock) in verdicts.iter_mut().zip(superblocks) {
        let known = superblock.change().filter(|_| is_same_change(superblock, newest));
        let had = known.and_then(|known| filled(known.position));
        if let (Membership::Rebuilding(_, to), Some(had), Some(has)) = (verdict, had, filled(change.position)) {
            if had <= *to {
                *to = has.max(*to);
            }
        }
    }
    Ok(verdicts)
}

/// Number of slots of both sides.
pub(super) fn slots_of(common: &Superblock) -> u16 {
    common.change().map_or(common.raid_disks, |change| change.old.raid_disks.max(change.new.raid_disks))
}

/// The geometry that one side of the superblocks describes.
fn geometry_of<'a>(
    fields: &ShapeFields,
    members: impl Iterator<Item = (&'a Superblock, Membership)>,
    common: &Superblock,
) -> Result<Geometry, AssembleError> {
    let level = Level::from_md(fields.level.number()).expect("decoded levels are known");
    let mut sizes = alloc::vec![Sectors::ZERO; usize::from(fields.raid_disks)];
    let mut missing: SlotSet = (0..fields.raid_disks.min(crate::limits::MEMBERS_MAX)).map(Slot).collect();
    for (superblock, verdict) in members {
        if let Membership::Member(slot) | Membership::Forced(slot) = verdict {
            if let Some(size) = sizes.get_mut(slot.index()) {
                *size = superblock.data_size;
                missing.remove(slot);
            }
        }
    }
    if matches!(level, Level::Linear | Level::Raid0) && !missing.is_empty() {
        let have = u32::from(fields.raid_disks) - missing.len();
        return Err(AssembleError::TooFew { missing, have, stale: 0 });
    }
    // Without the feature bit md's layout number of a RAID 0 means nothing.
    let said = fields.level != MdLevel::Raid0 || common.features.contains(FeatureMap::RAID0_LAYOUT);
    let spec = SetSpec {
        level,
        members: fields.raid_disks,
        chunk: fields.chunk,
        layout: if said { fields.layout } else { 0 },
        member_size: common.size,
        member_sizes: &sizes,
    };
    Geometry::new(&spec).map_err(AssembleError::Geometry)
}

/// Do two superblocks describe the same change, or none? The positions may differ by one record.
pub(super) fn is_same_change(superblock: &Superblock, common: &Superblock) -> bool {
    match (superblock.change(), common.change()) {
        (None, None) => true,
        (Some(superblock), Some(common)) => {
            (superblock.old, superblock.new, superblock.direction) == (common.old, common.new, common.direction)
        }
        _ => false,
    }
}

/// Slots that the change fills, and that have everything that has moved.
pub(super) fn joined(verdicts: &[Membership], shape: &Shape) -> SlotSet {
    let has_moved = |verdict: &Membership| match verdict {
        Membership::Rebuilding(slot, to) if shape.is_joined(*slot, *to) => Some(*slot),
        _ => None,
    };
    verdicts.iter().filter_map(has_moved).collect()
}
