//! From the superblocks of some drives to a set that can be started: which drives belong to it, which are stale, which
//! are missing.
//!
//! Pure: it takes what the driver has decoded and decides; nothing is written here. The rules are md's. The superblock
//! with the highest event count is right. A member that is one event behind is taken, because a power cut may have come
//! between the two waves. A member with an older event count is stale. A member that the newest role table calls faulty is
//! left out.

mod plan_bitmap;
mod plan_ppl;
mod plan_shape;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use openraid_format::{BitmapError, BitmapHeader, DeviceRole, FeatureMap, MdLevel, Superblock, Uuid};
use openraid_units::{DriveId, Sectors, Slot};

pub use self::plan_bitmap::PlannedBitmap;
pub use self::plan_ppl::{PlannedPpl, PplArea, PplRedo};
pub use self::plan_shape::{layout_of, PlannedChange};

use self::plan_bitmap::plan_bitmap;
use self::plan_ppl::plan_ppl;
pub use self::plan_shape::FoundGuard;
use self::plan_shape::{is_guarded, is_same_change, joined, shape_of, slots_of, unguarded};
use super::bad_blocks::BadRange;
use super::membership::Membership;
use crate::geometry::reshape::ChangeError;
use crate::geometry::shape::{Shape, Side};
use crate::geometry::{Geometry, GeometryError};
use crate::slot_set::SlotSet;

/// Event counts grow by one or two at each change of state. This many are enough for a thousand changes a second in a
/// hundred million years.
const EVENTS_MAX: u64 = 1 << 62;

/// What a driver has read from one drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The drive.
    pub drive: DriveId,
    /// Size of the drive.
    pub capacity: Sectors,
    /// Its superblock.
    pub superblock: Superblock,
    /// The bitmap area as read (header and bits), if the superblock names one and it could be read.
    pub bitmap: Option<Vec<u8>>,
    /// Entries of its bad-block log, in sectors of the data area.
    pub bad: Vec<BadRange>,
    /// The content of the area of the partial parity log; `None` if the superblock names none.
    pub ppl: Option<PplArea>,
}

/// How strict assembly is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AssembleOptions {
    /// Take stale members if the array cannot start without them, and start a dirty, degraded array.
    pub force: bool,
    /// The journal with acknowledged writes of the array is lost: start without it.
    pub journal_lost: bool,
    /// Nothing will be written to the members, so an unknown kind of bitmap does not matter.
    pub reads_only: bool,
}

/// A member of a planned set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedMember {
    /// The drive.
    pub drive: DriveId,
    /// Its superblock.
    pub superblock: Superblock,
    /// Its part in the set.
    pub verdict: Membership,
    /// Known bad ranges.
    pub bad: Vec<BadRange>,
}

/// A set that can be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    /// The common part of all superblocks.
    pub common: Superblock,
    /// Its map; during a change of shape the map before the change.
    pub geometry: Geometry,
    /// The change of shape that is under way.
    pub change: Option<PlannedChange>,
    /// Members, replacements and spares; not those left out.
    pub members: Vec<PlannedMember>,
    /// All candidates and their verdicts.
    pub verdicts: Vec<(DriveId, Membership)>,
    /// Slots without a member.
    pub missing: SlotSet,
    /// Start of the range in which members may differ, because the array was not stopped cleanly or its first sync is
    /// not complete.
    pub resync_from: Option<Sectors>,
    /// The bitmap.
    pub bitmap: Option<PlannedBitmap>,
    /// The partial parity log.
    pub ppl: Option<PlannedPpl>,
    /// The superblocks are new: all are written before the array takes requests.
    pub newly_created: bool,
    /// The mark of a change of shape: md refuses the members until their superblocks are written.
    pub mark: FoundGuard,
    /// Started by force: the text says what may be lost.
    pub forced: Option<String>,
}

/// Why a set cannot be started. The text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AssembleError {
    /// No candidate at all.
    Nothing,
    /// Two candidates belong to different arrays.
    OtherArray {
        /// The drive that does not belong.
        drive: DriveId,
        /// The array it belongs to.
        belongs_to: Uuid,
        /// The array that is assembled.
        array: Uuid,
    },
    /// A feature that is not served here, by name and number.
    Unsupported {
        /// Whose superblock says so.
        drive: DriveId,
        /// The features.
        features: FeatureMap,
    },
    /// A bitmap of a kind that is not maintained here: after writes it would be wrong, and md would trust it.
    Bitmap {
        /// Whose bitmap.
        drive: DriveId,
        /// Its kind, in words.
        error: BitmapError,
    },
    /// The superblock describes an impossible shape.
    Geometry(GeometryError),
    /// The superblocks describe a change of shape that cannot be.
    Change(ChangeError),
    /// Members of one array disagree about its shape.
    Disagree {
        /// The drive that disagrees with the newest superblock.
        drive: DriveId,
        /// The field in which they differ.
        field: &'static str,
    },
    /// The drive is smaller than its superblock says.
    Shrunk {
        /// The drive.
        drive: DriveId,
        /// Sectors it would need.
        need: Sectors,
        /// Sectors it has.
        have: Sectors,
    },
    /// An event count that is too high for any array.
    AbsurdEvents {
        /// Whose superblock says so.
        drive: DriveId,
        /// Its event count.
        events: u64,
    },
    /// Too few members.
    TooFew {
        /// Slots that are missing.
        missing: SlotSet,
        /// Number of members that are there, without stale ones.
        have: u32,
        /// Stale members that force would take.
        stale: u32,
    },
    /// Not stopped cleanly, and degraded: some sectors may be wrong.
    DirtyDegraded {
        /// Slots that are missing.
        missing: SlotSet,
    },
}

impl AssembleError {
    /// The fault, without the remedy. Drives have their numbers.
    #[must_use]
    pub fn fault(&self) -> String {
        match self {
            Self::Nothing => "no member was given".into(),
            Self::OtherArray { drive, belongs_to, array } => {
                format!("drive {drive} belongs to array {belongs_to}, not to {array}")
            }
            Self::Unsupported { drive, features } => {
                format!("drive {drive} uses features that are not served here: {features}")
            }
            Self::Bitmap { drive, error } => format!("drive {drive}: {error}"),
            Self::Geometry(error) => format!("the superblocks describe an array that cannot be: {error}"),
            Self::Change(error) => format!("the superblocks describe a change of shape that cannot be: {error}"),
            Self::Disagree { drive, field } => {
                format!("drive {drive} disagrees with the newest superblock about the {field}")
            }
            Self::Shrunk { drive, need, have } => {
                let (have, need) = (have.readable(), need.readable());
                format!("drive {drive} has {have}, but its superblock says that it needs {need}")
            }
            Self::AbsurdEvents { drive, events } => format!(
                "drive {drive} says that it has seen {events} events, which cannot be: its superblock is damaged"
            ),
            Self::TooFew { missing, have, .. } => {
                format!("not enough members: {have} present, {missing} without one")
            }
            Self::DirtyDegraded { missing } => format!(
                "the array was not stopped cleanly, or not synced before, and {missing} without a member: stripes that \
                 were being written may be wrong in those slots"
            ),
        }
    }

    /// What to do about it, if this can be said.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Geometry(_) | Self::Change(_) => return None,
            Self::TooFew { stale, .. } if *stale > 0 => {
                return Some(format!(
                    "{stale} stale ones are there that --force would take (writes they missed are lost)"
                ))
            }
            Self::Nothing => "name the drives, or a folder to scan",
            Self::OtherArray { .. } => "leave it out or assemble that array",
            Self::Unsupported { .. } => "use Linux md for this array",
            Self::Bitmap { .. } => "`openraid copy-out` reads the array as it is",
            Self::Disagree { .. } => "examine the members and leave it out",
            Self::Shrunk { .. } => "it was cut short or is not the drive it was",
            Self::AbsurdEvents { .. } => "leave it out",
            Self::TooFew { .. } => "find the missing drives",
            Self::DirtyDegraded { .. } => "bring the missing members back, or use --force to start with that risk",
        };
        Some(remedy.into())
    }
}

impl fmt::Display for AssembleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fault())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}
impl core::error::Error for AssembleError {}

/// Plan the set that these candidates make.
///
/// # Errors
/// Why they make no set; see [`AssembleError`].
pub fn plan(candidates: &[Candidate], options: AssembleOptions) -> Result<Assembly, AssembleError> {
    if candidates.iter().any(is_guarded) {
        let (unmarked, mark) = unguarded(candidates);
        return plan(&unmarked, options).map(|planned| Assembly { mark, ..planned });
    }
    let newest = candidates
        .iter()
        .max_by_key(|c| (c.superblock.events, core::cmp::Reverse(c.superblock.dev_number)))
        .ok_or(AssembleError::Nothing)?;
    for candidate in candidates {
        check_belongs(candidate, newest)?;
        check_bitmap(candidate, options)?;
    }
    let mut verdicts = plan_shape::bring_up(judge(candidates, newest), candidates, &newest.superblock)?;
    let members_of = || candidates.iter().map(|candidate| &candidate.superblock).zip(verdicts.iter().copied());
    let shape = shape_of(&newest.superblock, members_of)?;
    let geometry = shape.on(Side::Old);
    let mut in_sync = members(&verdicts);
    let mut forced = make_enough(&mut verdicts, &mut in_sync, &shape, candidates, options.force)?;
    let missing = SlotSet::first_n(shape.slots()).minus(in_sync);
    let mut common = newest.superblock.clone();
    let journalled = common.features.contains(FeatureMap::CONTROLLER_JOURNAL);
    if journalled && options.journal_lost {
        common.set_journal(None, false);
        forced.get_or_insert_with(String::new).push_str("writes that only the lost journal had are lost; ");
    }
    // Writes that were under way are in the journal in full, unless the journal was lost before.
    let replays = journalled && !options.journal_lost && !common.features.contains(FeatureMap::JOURNAL_BEHIND);
    let ppl = plan_ppl(candidates, &verdicts, &newest.superblock, geometry, options.force);
    // Writes that were under way are repaired from the partial parity log before the set takes requests.
    let closed = |from: &Sectors| ppl.as_ref().is_some_and(|ppl| ppl.covers && from.is_zero());
    // `mdadm --force` marks members clean before the kernel refuses the unknown journal bit: "clean" proves nothing here.
    let unknown = (journalled && !replays).then_some(Sectors::ZERO);
    let resync_from = newest.superblock.resync_position().filter(|from| !(replays || closed(from))).or(unknown);
    let redundant = newest.superblock.level.is_redundant() && geometry.losses_survived() > 0;
    let resync_from = resync_from.filter(|_| redundant);
    if resync_from.is_some() && is_hole_open(&newest.superblock, &shape, missing, &verdicts) {
        if !options.force {
            return Err(AssembleError::DirtyDegraded { missing });
        }
        forced.get_or_insert_with(String::new).push_str(
            "the array was not stopped cleanly and is degraded: stripes that were being written may be wrong; ",
        );
    }
    if resync_from.is_some() || has_forced(&verdicts) || ppl.as_ref().is_some_and(|ppl| ppl.dirty) {
        distrust_replacements(&mut verdicts);
    }
    give_heirs_their_slots(&mut verdicts, newest.superblock.resync_position().is_none());
    note_replaced(&mut verdicts, &shape);
    let resync_from = resync_due(resync_from, &shape, missing, &verdicts);
    let bitmap = plan_bitmap(candidates, &verdicts, &newest.superblock);
    // Rows of the log may have no bits.
    let bitmap = bitmap.map(|bitmap| if unknown.is_some() { bitmap.with_all_set() } else { bitmap });
    let members = planned(candidates, &verdicts);
    common.logical_block_size = logical_block_of(&members);
    Ok(Assembly {
        common,
        geometry: geometry.clone(),
        change: shape.into_change().map(|(change, moved)| PlannedChange { change, moved }),
        members,
        verdicts: candidates.iter().map(|c| c.drive).zip(verdicts.iter().copied()).collect(),
        missing,
        resync_from,
        bitmap,
        ppl,
        newly_created: false,
        mark: FoundGuard::None,
        forced,
    })
}

/// The logical block in the common part. A member whose field was cleared, or that never had one, does not reduce it.
fn logical_block_of(members: &[PlannedMember]) -> u32 {
    members.iter().map(|member| member.superblock.logical_block_size).max().unwrap_or_default()
}

/// If every slot has a member, one that failed does not have to be added again.
fn note_replaced(verdicts: &mut [Membership], shape: &Shape) {
    if SlotSet::first_n(shape.slots()).minus(held(verdicts)).is_empty() {
        verdicts
            .iter_mut()
            .filter(|verdict| **verdict == Membership::Failed)
            .for_each(|verdict| *verdict = Membership::Replaced);
    }
}

/// A bitmap that the engine does not maintain must not become stale by writes.
fn check_bitmap(candidate: &Candidate, options: AssembleOptions) -> Result<(), AssembleError> {
    let has = candidate.superblock.features.contains(FeatureMap::BITMAP) && !options.reads_only;
    let error = candidate.bitmap.as_ref().filter(|_| has).and_then(|bytes| BitmapHeader::decode(bytes).err());
    match error.filter(BitmapError::is_other_kind) {
        Some(error) => Err(AssembleError::Bitmap { drive: candidate.drive, error }),
        None => Ok(()),
    }
}

/// If too few members are there and the caller allows it, take stale members as well. The return value says what may be
/// lost.
fn make_enough(
    verdicts: &mut [Membership],
    in_sync: &mut SlotSet,
    shape: &Shape,
    candidates: &[Candidate],
    force: bool,
) -> Result<Option<String>, AssembleError> {
    let (all, joined) = (SlotSet::first_n(shape.slots()), joined(verdicts, shape));
    if shape.survives(all.minus(*in_sync), joined) {
        return Ok(None);
    }
    let stale = stale_by_events(candidates, verdicts, all.minus(*in_sync));
    if !force || stale.is_empty() {
        let stale = u32::try_from(stale.len()).expect("few members");
        return Err(AssembleError::TooFew { missing: all.minus(*in_sync), have: in_sync.len(), stale });
    }
    let cost = take_stale(verdicts, in_sync, &stale, shape, candidates);
    if !shape.survives(all.minus(*in_sync), joined) {
        return Err(AssembleError::TooFew { missing: all.minus(*in_sync), have: in_sync.len(), stale: 0 });
    }
    Ok(Some(cost))
}

/// Are members missing for which no superblock says that a resync has begun without them? Then stripes that were being
/// written may give wrong data for them.
fn is_hole_open(newest: &Superblock, shape: &Shape, missing: SlotSet, verdicts: &[Membership]) -> bool {
    // A slot that a change of shape fills has no data on the old side.
    let missing = missing.minus(joined(verdicts, shape));
    let begun = is_redundant_yet(shape, missing, verdicts) && was_stopped_without(newest, missing, verdicts);
    // Parity alone is missing: no data is computed from it.
    shape.has_parity() && !shape.is_without_data(missing) && !begun
}

/// Start of the resync that is due, if the superblocks ask for one from `dirty` on.
///
/// While a parity set could lose one more column and still have its data, parity that may not match is recomputed
/// before it is used: data recovered from it would be wrong, even for rows that were not written. If the set could lose
/// no column, the missing columns are by definition what parity says, so nothing can disagree. Members that missed
/// writes match nowhere.
fn resync_due(dirty: Option<Sectors>, shape: &Shape, missing: SlotSet, verdicts: &[Membership]) -> Option<Sectors> {
    if !shape.has_parity() {
        return dirty;
    }
    let due = dirty.or(has_forced(verdicts).then_some(Sectors::ZERO));
    due.filter(|_| is_redundant_yet(shape, missing, verdicts))
}

/// Was a member taken that missed writes?
fn has_forced<'a>(verdicts: impl IntoIterator<Item = &'a Membership>) -> bool {
    verdicts.into_iter().any(|verdict| matches!(verdict, Membership::Forced(_)))
}

impl Assembly {
    /// Was a member taken that missed writes?
    #[must_use]
    pub fn has_forced(&self) -> bool {
        has_forced(self.verdicts.iter().map(|(_, verdict)| verdict))
    }
}

/// Could the set lose one more member and still have its data? A slot that is being filled counts as far as it is
/// filled.
fn is_redundant_yet(shape: &Shape, missing: SlotSet, verdicts: &[Membership]) -> bool {
    let fills = |verdict: &Membership| matches!(verdict, Membership::Rebuilding(_, done) if !done.is_zero());
    shape.is_redundant_without(missing) || verdicts.iter().any(fills)
}

/// Was a resync under way without these members when the array was stopped cleanly? If writes were under way, the
/// superblocks ask for a complete resync instead.
fn was_stopped_without(newest: &Superblock, missing: SlotSet, verdicts: &[Membership]) -> bool {
    let idle = newest.resync_position().is_some_and(|from| !from.is_zero());
    let known = |slot: Slot| {
        let filled =
            verdicts.iter().any(|verdict| matches!(verdict, Membership::Rebuilding(rebuilt, _) if *rebuilt == slot));
        filled || !newest.roles.iter().any(|role| role == DeviceRole::Active(slot))
    };
    idle && missing.iter().all(known)
}

/// An interrupted write may be on the member and not on its replacement, or the reverse. Data that was read from the
/// member must not change when the replacement takes over, so replacements start again.
fn distrust_replacements(verdicts: &mut [Membership]) {
    for verdict in verdicts {
        if let Membership::Replacement(_, done) = verdict {
            *done = Sectors::ZERO;
        }
    }
}

/// If a member is absent, its replacement continues as the member of the slot, as if the member had failed while the
/// array ran: writes skip an empty slot. What the replacement has counts if the array was stopped cleanly.
fn give_heirs_their_slots(verdicts: &mut [Membership], clean: bool) {
    let taken = held(verdicts);
    for verdict in verdicts {
        match *verdict {
            Membership::Replacement(slot, done) if !taken.contains(slot) => {
                *verdict = Membership::Rebuilding(slot, if clean { done } else { Sectors::ZERO });
            }
            _ => {}
        }
    }
}

fn check_belongs(candidate: &Candidate, newest: &Candidate) -> Result<(), AssembleError> {
    let (superblock, common, drive) = (&candidate.superblock, &newest.superblock, candidate.drive);
    if superblock.set_uuid != common.set_uuid {
        return Err(AssembleError::OtherArray { drive, belongs_to: superblock.set_uuid, array: common.set_uuid });
    }
    let features = superblock.unsupported_features() | contradicting_features(superblock);
    if !features.is_empty() {
        return Err(AssembleError::Unsupported { drive, features });
    }
    if superblock.events > EVENTS_MAX {
        return Err(AssembleError::AbsurdEvents { drive, events: superblock.events });
    }
    let same = [
        (superblock.level == common.level, "level"),
        (superblock.layout == common.layout, "layout"),
        (superblock.chunk == common.chunk, "chunk"),
        (superblock.raid_disks == common.raid_disks, "number of slots"),
        (superblock.size == common.size, "size of a member"),
        (is_same_change(superblock, common), "change of shape that is under way"),
    ];
    // A stale member may remember an older shape. It is left out because of its event count, not refused.
    if superblock.events + 1 >= common.events {
        if let Some((_, field)) = same.iter().find(|(same, _)| !same) {
            return Err(AssembleError::Disagree { drive, field });
        }
    }
    let need = Sectors(superblock.data_offset.get().saturating_add(superblock.data_size.get()));
    if need > candidate.capacity {
        return Err(AssembleError::Shrunk { drive, need, have: candidate.capacity });
    }
    Ok(())
}

/// Features that exclude each other: md keeps partial parity only for RAID 5, and openraid's journal replaces it.
fn contradicting_features(superblock: &Superblock) -> FeatureMap {
    let log = superblock.features & (FeatureMap::PPL | FeatureMap::MULTIPLE_PPLS);
    let alone = superblock.level == MdLevel::Raid5 && !superblock.features.contains(FeatureMap::CONTROLLER_JOURNAL);
    if alone {
        FeatureMap::NONE
    } else {
        log
    }
}

/// The verdict on each candidate, by events and roles.
fn judge(candidates: &[Candidate], freshest: &Candidate) -> Vec<Membership> {
    let common = &freshest.superblock;
    let slots = slots_of(common);
    let mut taken = SlotSet::EMPTY;
    let mut replaced = SlotSet::EMPTY;
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|i| core::cmp::Reverse(candidates[*i].superblock.events));
    let mut verdicts = alloc::vec![Membership::Spare; candidates.len()];
    for index in order {
        let superblock = &candidates[index].superblock;
        let newest = common.events;
        let same_number = order_of_same_number(candidates, index);
        let role = common.roles.get(superblock.dev_number);
        verdicts[index] = match role {
            DeviceRole::Active(slot) if slot.0 >= slots => Membership::Failed,
            DeviceRole::Active(slot) if same_number => Membership::SlotTaken(slot),
            _ if !same_number && is_split_from(superblock, common, role) => {
                Membership::Split { events: superblock.events, newest }
            }
            DeviceRole::Active(_) if superblock.events + 1 < newest => {
                Membership::Stale { events: superblock.events, newest }
            }
            // The power failed between the two waves. The drive does not know yet that it is to be filled, so it cannot
            // say how far it is. A drive that came back says that it is faulty if superblocks were being written when
            // it joined.
            DeviceRole::Active(_) if !matches!(superblock.role(), DeviceRole::Active(_)) => Membership::Spare,
            DeviceRole::Active(slot) => {
                let done = superblock.recovery_offset().map(|at| Sectors(at.get()));
                let replacement = superblock.features.contains(FeatureMap::REPLACEMENT);
                let places = if replacement { &mut replaced } else { &mut taken };
                if places.contains(slot) {
                    Membership::SlotTaken(slot)
                } else {
                    places.insert(slot);
                    match (replacement, done) {
                        (true, done) => Membership::Replacement(slot, done.unwrap_or(Sectors::MAX)),
                        (false, Some(done)) => Membership::Rebuilding(slot, done),
                        (false, None) => Membership::Member(slot),
                    }
                }
            }
            DeviceRole::Spare
                if superblock.events + 1 < newest && matches!(superblock.role(), DeviceRole::Active(_)) =>
            {
                Membership::Stale { events: superblock.events, newest }
            }
            // A drive that was to join at the end, and of which the array knows nothing.
            DeviceRole::Spare if common.level == MdLevel::Linear => Membership::Failed,
            DeviceRole::Spare => Membership::Spare,
            DeviceRole::Faulty | DeviceRole::Journal => Membership::Failed,
        };
    }
    // A complete replacement is the member if the member that it replaces is absent, or was already recorded as faulty.
    for verdict in &mut verdicts {
        match *verdict {
            Membership::Replacement(slot, Sectors::MAX) if !taken.contains(slot) => {
                taken.insert(slot);
                *verdict = Membership::Member(slot);
            }
            _ => {}
        }
    }
    verdicts
}

/// Does a superblock say that the member whose superblock counts is out? This is mdadm's rule.
///
/// A member with `common`'s events less one may not know yet that the newest member has joined: the power may have
/// failed between the two waves.
fn is_split_from(superblock: &Superblock, common: &Superblock, role: DeviceRole) -> bool {
    let (DeviceRole::Active(_), DeviceRole::Active(slot)) = (superblock.role(), common.role()) else { return false };
    let between_waves = matches!(role, DeviceRole::Active(_)) && superblock.events + 1 == common.events;
    !between_waves
        && !has_active(superblock, slot)
        && !matches!(superblock.roles.get(common.dev_number), DeviceRole::Active(_))
}

/// Does a superblock have a working member in this slot?
fn has_active(superblock: &Superblock, slot: Slot) -> bool {
    superblock.roles.iter().any(|role| role == DeviceRole::Active(slot))
}

/// Did a member that is to return to an array run without members that work there (`in_sync`)? Then it may hold writes
/// that the array lacks, and the array's bitmap does not mark them. `common` is the common part of the array's
/// superblocks.
#[must_use]
pub fn is_split_off(superblock: &Superblock, common: &Superblock, in_sync: SlotSet) -> bool {
    let DeviceRole::Active(mine) = superblock.role() else { return false };
    let others = in_sync.without(mine);
    let numbers = 0..u32::try_from(common.roles.len()).unwrap_or(u32::MAX);
    numbers.filter(|number| matches!(common.roles.get(*number), DeviceRole::Active(slot) if others.contains(slot))).any(
        |number| {
            let DeviceRole::Active(slot) = common.roles.get(number) else { return false };
            // A spare that has taken over a slot since then does not count as a member either: md calls absent members
            // spares.
            let is_out = match superblock.roles.get(number) {
                DeviceRole::Faulty => true,
                DeviceRole::Spare => number < u32::from(common.raid_disks),
                DeviceRole::Active(_) | DeviceRole::Journal => false,
            };
            is_out && !has_active(superblock, slot)
        },
    )
}

/// Has an earlier candidate the same device number? It is a copy of a member, or the same member twice.
fn order_of_same_number(candidates: &[Candidate], index: usize) -> bool {
    let superblock = &candidates[index].superblock;
    candidates.iter().enumerate().any(|(other, c)| {
        other != index
            && c.superblock.dev_number == superblock.dev_number
            && (c.superblock.events, core::cmp::Reverse(other)) > (superblock.events, core::cmp::Reverse(index))
    })
}

fn members(verdicts: &[Membership]) -> SlotSet {
    verdicts
        .iter()
        .filter_map(|v| match v {
            Membership::Member(slot) | Membership::Forced(slot) => Some(*slot),
            _ => None,
        })
        .collect()
}

/// Slots that have a member, or one that is being rebuilt.
fn held(verdicts: &[Membership]) -> SlotSet {
    let rebuilding = |v: &Membership| if let Membership::Rebuilding(slot, _) = v { Some(*slot) } else { None };
    members(verdicts).iter().chain(verdicts.iter().filter_map(rebuilding)).collect()
}

/// Stale members of these slots, the newest first.
fn stale_by_events(candidates: &[Candidate], verdicts: &[Membership], slots: SlotSet) -> Vec<usize> {
    let mut stale: Vec<usize> = (0..candidates.len())
        .filter(|i| matches!(verdicts[*i], Membership::Stale { .. } | Membership::Failed | Membership::Split { .. }))
        .filter(|i| matches!(candidates[*i].superblock.role(), DeviceRole::Active(slot) if slots.contains(slot)))
        .filter(|i| candidates[*i].superblock.recovery_offset().is_none())
        .collect();
    stale.sort_by_key(|i| core::cmp::Reverse(candidates[*i].superblock.events));
    stale
}

/// Would a member in this slot add data? A stale copy of data that a present member has would only be read as well.
fn is_needed(shape: &Shape, slot: Slot, in_sync: SlotSet) -> bool {
    match shape.on(Side::Old) {
        Geometry::Mirror(mirror) => mirror.has_only_copy(slot, in_sync),
        _ => true,
    }
}

fn take_stale(
    verdicts: &mut [Membership],
    in_sync: &mut SlotSet,
    stale: &[usize],
    shape: &Shape,
    candidates: &[Candidate],
) -> String {
    let (all, joined) = (SlotSet::first_n(shape.slots()), joined(verdicts, shape));
    let mut text = String::new();
    let mut taken = None;
    for index in stale {
        // Members that were lost together with this one missed the same writes. With all of them, each column is the
        // content of its member. Without them, it would be computed from members with different histories.
        let events = candidates[*index].superblock.events;
        if shape.survives(all.minus(*in_sync), joined) && taken != Some(events) {
            break;
        }
        let DeviceRole::Active(slot) = candidates[*index].superblock.role() else { continue };
        if in_sync.contains(slot) || !is_needed(shape, slot, *in_sync) {
            continue;
        }
        taken = Some(events);
        in_sync.insert(slot);
        // A member that was being filled for this slot has newer data in parts. Use either one, never both.
        for verdict in verdicts.iter_mut() {
            if matches!(verdict, Membership::Rebuilding(other, _) | Membership::Replacement(other, _) if *other == slot)
            {
                *verdict = Membership::SlotTaken(slot);
            }
        }
        verdicts[*index] = Membership::Forced(slot);
        let behind = candidates[*index].superblock.events;
        text.push_str(&alloc::format!(
            "slot {slot} is used as it was at event {behind}: later writes to its chunks are lost; "
        ));
    }
    let left = all.minus(*in_sync);
    if !left.is_empty() && shape.has_parity() {
        text.push_str(&alloc::format!(
            "the data of {left} is computed from members of different times: ranges that were written since then may \
             be wrong; "
        ));
    }
    text
}

fn planned(candidates: &[Candidate], verdicts: &[Membership]) -> Vec<PlannedMember> {
    candidates
        .iter()
        .zip(verdicts)
        .filter(|(_, v)| !v.is_left_out())
        .map(|(c, v)| PlannedMember {
            drive: c.drive,
            superblock: c.superblock.clone(),
            verdict: *v,
            bad: c.bad.clone(),
        })
        .collect()
}
