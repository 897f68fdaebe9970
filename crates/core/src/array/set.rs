//! A redundancy set: one md array over drives, with its members and the state of their consistency.

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_units::{ArrayId, BlockSize, DriveId, Instant, MemberLba, Sectors, Slot};

use crate::array::active_mark::ActiveMark;
use crate::array::awaited_changes::AwaitedChanges;
use crate::array::consistency::Consistency;
use crate::array::dirty_count::DirtyCount;
use crate::array::member::{Member, Trust};
use crate::array::metadata::Metadata;
use crate::array::op_epochs::Epochs;
use crate::array::write_intent_bitmap::Bitmap;
use crate::background::set_tasks::SetTasks;
use crate::background::Task;
use crate::geometry::shape::{Shape, Side};
use crate::journal::set_journal::SetJournal;
use crate::limits::Limits;
use crate::ppl::SetPpl;
use crate::reason::ReasonCounts;
use crate::set_status::{Health, MemberState, TaskKind};
use crate::settings::{Policy, Tuning, WriteCache};
use crate::slot_set::SlotSet;

/// The member and the replacement of a slot, by their numbers in the set. A replacement that is not complete stays alone
/// if the array is assembled without the member that it replaces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct SlotMembers {
    member: Option<u32>,
    replacement: Option<u32>,
}

impl SlotMembers {
    /// The number of the member.
    #[inline(always)]
    pub(crate) const fn member(self) -> Option<u32> {
        self.member
    }

    /// The number of its replacement.
    #[inline(always)]
    pub(crate) const fn replacement(self) -> Option<u32> {
        self.replacement
    }

    /// The number of one of the two.
    pub(crate) const fn of(self, is_replacement: bool) -> Option<u32> {
        if is_replacement {
            self.replacement
        } else {
            self.member
        }
    }

    /// Both, the member first.
    #[inline(always)]
    pub(crate) fn each(self) -> impl Iterator<Item = u32> {
        let (mut next, mut last) = (self.member, self.replacement);
        if next.is_none() {
            (next, last) = (last, None);
        }
        core::iter::from_fn(move || core::mem::replace(&mut next, last.take()))
    }

    /// Set the member.
    pub(super) fn hold(&mut self, member: u32) {
        self.member = Some(member);
    }

    /// Set the replacement.
    pub(super) fn begin_replacement(&mut self, replacement: u32) {
        self.replacement = Some(replacement);
    }

    /// The replacement has failed.
    pub(super) fn end_replacement(&mut self) {
        self.replacement = None;
    }

    /// The member leaves, and the replacement, if there is one, takes its place. Returns the new member.
    pub(super) fn succeed(&mut self) -> Option<u32> {
        self.member = self.replacement.take();
        self.member
    }
}

/// The life of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Its first superblocks are being written.
    Starting,
    /// Takes requests.
    Running,
    /// It finishes its work.
    Stopping,
    /// Too many members are lost.
    Failed,
}

/// What a set has when it fails.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Remains {
    /// No write was under way.
    Whole,
    /// Writes were under way, and may have been done in part.
    Torn,
    /// It was starting or stopping, or data is lost: it has to be started again.
    Unfit,
}

/// Is the storage of any member of a set full?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Room {
    Enough,
    /// Some member is full. At `look` its place is tried again.
    Short {
        look: Instant,
    },
    /// Ranges that were recorded as bad are repaired. At `look` the next ones are, if fewer than `entries` are left.
    Healing {
        look: Instant,
        entries: usize,
    },
}

/// A redundancy set.
#[derive(Debug)]
pub(crate) struct Set {
    pub(super) array: ArrayId,
    /// AwaitedChanges since the operations that wait for the set were last called.
    pub(super) changes: AwaitedChanges,
    pub(super) life: Life,
    /// If it has failed: what it had then.
    pub(super) remains: Remains,
    pub(super) shape: Shape,
    /// The largest logical block of its members.
    pub(super) block: BlockSize,
    /// Parity sets: maximum number of rows of one operation.
    pub(super) rows_max: u32,
    pub(super) members: Vec<Member>,
    pub(super) places: Vec<SlotMembers>,
    /// Slots whose data is valid everywhere.
    pub(super) in_sync: SlotSet,
    /// Are these all slots?
    pub(super) is_whole: bool,
    /// Slots that take writes.
    pub(super) writable: SlotSet,
    /// Slots that a change of shape fills: their data is valid on the new side, and they have no place on the old one.
    pub(super) joined: SlotSet,
    /// Writable slots whose member is leaving: writes go to its replacement. So does parity where it can be computed,
    /// since the replacement's superblock may already say that it is filled.
    pub(super) inherited: SlotSet,
    /// Slots whose members are read only if no other copy can be: md's flag write-mostly.
    pub(super) write_mostly: SlotSet,
    /// Has any member an entry in its bad-block log?
    pub(super) has_bad: bool,
    /// Is the storage of any member full?
    pub(super) room: Room,
    /// Since the start a member had a failed flush or stale metadata. Only then all members must be examined for this.
    pub(super) suspect: bool,
    pub metadata: Option<Metadata>,
    /// The mark in its superblocks that members may differ.
    pub mark: ActiveMark,
    pub bitmap: Option<Bitmap>,
    /// Its partial parity logs.
    pub ppl: Option<Box<SetPpl>>,
    /// Where parity or copies agree.
    pub(super) consistency: Consistency,
    /// Its background work.
    pub tasks: SetTasks,
    pub(super) policy: Policy,
    pub reasons: ReasonCounts,
    /// Operations in work, and the number of operations that write past the cache.
    ops: Epochs,
    pub(super) direct_writes: u32,
    /// Its dirty units in the cache.
    pub dirty: DirtyCount,
    /// Its journal session.
    pub journal: SetJournal,
    /// None of its members rotates.
    pub(super) is_flash: bool,
    /// The policy in use, which the adaptive policy may have changed.
    pub(super) tuning: Tuning,
}

impl Set {
    /// A set of this shape that has neither members nor metadata, with `(block, rows_max)`: the largest logical block of
    /// its members, and the rows that one of its operations covers at most.
    pub(crate) fn new(array: ArrayId, shape: Shape, (block, rows_max): (BlockSize, u32), limits: &Limits) -> Self {
        let slots = usize::from(shape.slots());
        Self {
            array,
            changes: AwaitedChanges::default(),
            life: Life::Running,
            remains: Remains::Whole,
            block,
            rows_max,
            members: Vec::new(),
            places: alloc::vec![SlotMembers::default(); slots],
            in_sync: SlotSet::EMPTY,
            is_whole: false,
            writable: SlotSet::EMPTY,
            joined: SlotSet::EMPTY,
            inherited: SlotSet::EMPTY,
            write_mostly: SlotSet::EMPTY,
            has_bad: false,
            room: Room::Enough,
            suspect: false,
            metadata: None,
            mark: ActiveMark::new(),
            bitmap: None,
            ppl: None,
            consistency: Consistency::Everywhere,
            tasks: SetTasks::new(limits),
            policy: Policy::default(),
            reasons: ReasonCounts::default(),
            ops: Epochs::new(),
            direct_writes: 0,
            dirty: DirtyCount::default(),
            journal: SetJournal::NONE,
            is_flash: false,
            tuning: Tuning::of(&Policy::default(), limits.destage_delay),
            shape,
        }
    }

    /// For tests: a set of this geometry with a member in sync in each slot. The member of slot 3 is on drive 3.
    #[cfg(test)]
    pub(crate) fn with_members(spec: &crate::geometry::SetSpec<'_>) -> Self {
        let mut set = Self::new(ArrayId(0), Shape::of(spec), (BlockSize::B512, 8), &Limits::small());
        for slot in (0..set.slots()).map(Slot) {
            let (state, start) = (MemberState::InSync, openraid_units::DriveLba(2048));
            let member = super::member::new_member(DriveId(slot.0), Some(slot), state, start, None, &[]);
            let index = set.add_member(member, None);
            set.places[slot.index()].hold(index);
        }
        set.refresh();
        set
    }

    /// For tests: the member of a slot has failed.
    #[cfg(test)]
    pub(crate) fn fail_slot(&mut self, slot: Slot, reason: crate::reason::FailReason) {
        let index = self.places[slot.index()].member.unwrap();
        self.member_mut(index).state = MemberState::Failing(reason);
        self.refresh();
    }

    #[inline(always)]
    pub(crate) const fn array(&self) -> ArrayId {
        self.array
    }

    /// What changed since the operations that wait for the set were called.
    #[inline(always)]
    pub(crate) const fn changes(&self) -> AwaitedChanges {
        self.changes
    }

    #[inline(always)]
    pub(crate) const fn life(&self) -> Life {
        self.life
    }

    #[inline(always)]
    pub(crate) fn has_failed(&self) -> bool {
        self.life == Life::Failed
    }

    #[inline(always)]
    pub(crate) fn is_running(&self) -> bool {
        self.life == Life::Running
    }

    /// Enter this state of its life. Only [`Sets`](super::sets::Sets) ends it.
    pub(crate) fn enter(&mut self, life: Life) {
        debug_assert!(life != Life::Failed, "what waits for the set has to hear of it");
        self.life = life;
    }

    /// For tests: it has failed.
    #[cfg(test)]
    pub(crate) fn fail(&mut self) {
        self.life = Life::Failed;
    }

    /// The geometry at each of its addresses.
    #[inline(always)]
    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The largest logical block of its members.
    #[inline(always)]
    pub(crate) const fn block(&self) -> BlockSize {
        self.block
    }

    /// Parity sets: maximum number of rows of one operation.
    #[inline(always)]
    pub(crate) const fn rows_max(&self) -> u32 {
        self.rows_max
    }

    /// From now on no operation covers more rows than this.
    pub(crate) fn limit_rows(&mut self, rows_max: u32) {
        self.rows_max = self.rows_max.min(rows_max);
    }

    /// The store in which writes are kept before the members have them. A set that changes its shape writes through.
    #[inline(always)]
    pub(crate) fn write_cache(&self) -> WriteCache {
        if self.tasks.reshape().is_some() {
            WriteCache::Through
        } else {
            self.policy.write_cache
        }
    }

    #[inline(always)]
    pub(crate) const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The policy in use, which the adaptive policy may have changed.
    #[inline(always)]
    pub(crate) const fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Use this tuning from now on.
    pub(crate) fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning = tuning;
    }

    /// Set its policy; returns the one before.
    pub(crate) fn set_policy(&mut self, policy: Policy) -> Policy {
        core::mem::replace(&mut self.policy, policy)
    }

    /// Do none of its members rotate?
    #[inline(always)]
    pub(crate) const fn is_flash(&self) -> bool {
        self.is_flash
    }

    /// Where parity or copies agree.
    pub(crate) const fn consistency(&self) -> Consistency {
        self.consistency
    }

    /// Are parity or copies consistent everywhere?
    #[inline(always)]
    pub(crate) fn is_consistent_everywhere(&self) -> bool {
        self.consistency.is_everywhere()
    }

    /// Parity or copies may differ anywhere.
    pub(crate) fn distrust(&mut self) {
        self.differ_from(Sectors::ZERO);
    }

    /// Parity or copies may differ from this position on.
    pub(crate) fn differ_from(&mut self, to: Sectors) {
        self.consistency = Consistency::Below { to, only_marked: false };
    }

    /// A resync has reached this position, durably.
    pub(crate) fn resynced_to(&mut self, to: Sectors) {
        self.consistency.advance(to);
    }

    /// A resync is complete.
    pub(crate) fn resynced(&mut self) {
        self.consistency = Consistency::Everywhere;
        if let Some(bitmap) = &mut self.bitmap {
            bitmap.mark_consistent();
        }
    }

    #[cfg(test)]
    pub(crate) fn set_consistency(&mut self, consistency: Consistency) {
        self.consistency = consistency;
    }

    /// Its operations in work.
    #[inline(always)]
    pub(crate) const fn ops(&self) -> &Epochs {
        &self.ops
    }

    /// As [`Set::ops`].
    #[inline(always)]
    pub(crate) fn ops_mut(&mut self) -> &mut Epochs {
        &mut self.ops
    }

    /// An operation that writes past the cache begins.
    #[inline(always)]
    pub(crate) fn count_direct_write(&mut self, is_one: bool) {
        self.direct_writes += u32::from(is_one);
    }

    /// An operation that wrote past the cache is over.
    #[inline(always)]
    pub(crate) fn end_direct_write(&mut self) {
        self.direct_writes -= 1;
    }

    /// Operations in work that write past the cache.
    #[inline(always)]
    pub(crate) const fn direct_writes(&self) -> u32 {
        self.direct_writes
    }

    /// Slots whose bytes are valid in these sectors of the members.
    #[inline]
    pub(crate) fn readable(&self, side: Side, from: MemberLba, to: MemberLba) -> SlotSet {
        if self.writable == self.in_sync && !self.has_bad {
            return self.in_sync;
        }
        self.readable_in_part(side, from, to)
    }

    /// The same, if a member is being filled or has bad blocks.
    #[inline(never)]
    fn readable_in_part(&self, side: Side, from: MemberLba, to: MemberLba) -> SlotSet {
        self.good(self.in_sync | self.filled(side, from, to), side, from, to)
    }

    /// The slots among `slots` whose members have no bad block in these sectors.
    #[inline]
    pub(crate) fn good(&self, mut slots: SlotSet, side: Side, from: MemberLba, to: MemberLba) -> SlotSet {
        if self.has_bad {
            for slot in slots {
                if self.member_of(slot).is_some_and(|m| m.is_bad(side, from, to - from)) {
                    slots.remove(slot);
                }
            }
        }
        slots
    }

    /// Slots whose members are read only if no other copy can be.
    #[inline]
    pub(crate) const fn write_mostly(&self) -> SlotSet {
        self.write_mostly
    }

    /// Slots that are being filled and are already filled in these sectors. A change of shape fills the new side only.
    #[inline]
    pub(crate) fn filled(&self, side: Side, from: MemberLba, to: MemberLba) -> SlotSet {
        if self.writable == self.in_sync {
            return SlotSet::EMPTY;
        }
        let done = self.tasks.current().filter(|task| task.is_done(side, from.get(), to.get()));
        let by_task = done.and_then(Task::filling).map_or(SlotSet::EMPTY, SlotSet::one);
        if side == Side::Old && self.shape.is_changing() {
            by_task
        } else {
            by_task | self.filled_before(to)
        }
    }

    /// The slot that a rebuild fills, if it has restored any of these sectors. The rebuild does not return there, so a
    /// write must not leave out its parity. A unit of a rebuild may be shorter than a chunk, so a write may straddle
    /// the position of the rebuild.
    #[inline]
    pub(crate) fn filled_in_part(&self, side: Side, from: MemberLba, to: MemberLba) -> SlotSet {
        if self.writable == self.in_sync {
            return SlotSet::EMPTY;
        }
        let done = self.tasks.current().filter(|task| task.is_done_in_part(side, from.get(), to.get()));
        done.and_then(Task::filling).map_or(SlotSet::EMPTY, SlotSet::one)
    }

    /// Slots that are filled below this position according to their superblocks. This includes the member that is being
    /// filled now. If none is, the next task continues from there, and so does the next start of the server. So no
    /// write may leave parity out below it, whether a journal, a partial parity log or a host asks for the write. The
    /// copy that is read, of several that may differ, does not change with the task either.
    fn filled_before(&self, to: MemberLba) -> SlotSet {
        let filled = |member: &&Member| {
            matches!(member.state, MemberState::Rebuilding { to: end } if to.get() <= end.get())
                && !member.is_replacement()
        };
        self.members.iter().filter(filled).filter_map(Member::slot).collect()
    }

    /// The position up to which the member in a slot is filled, in whole blocks; 0 if it is not being filled.
    pub(crate) fn filled_to(&self, slot: Slot) -> MemberLba {
        let Some(MemberState::Rebuilding { to }) = self.member_of(slot).map(|member| member.state) else {
            return MemberLba::ZERO;
        };
        let task = self.tasks.current().filter(|task| task.filling() == Some(slot));
        let to = task.map_or(to, |task| to.max(task.done_sectors())).get();
        MemberLba(to - to % self.block.sectors().get())
    }

    /// Do parity or copies agree in these sectors (of a member; of the set for RAID 10)?
    pub(crate) fn is_consistent(&self, side: Side, from: u64, to: u64) -> bool {
        let is_made = || self.tasks.current().is_some_and(|task| task.is_resync() && task.is_done(side, from, to));
        // What a resync wrote may be lost on a member whose flush failed.
        self.consistency.reaches(to) || is_made() && !self.is_durability_lost()
    }

    /// The answer of [`Self::is_consistent`] for the begin of a range, and the number of sectors for which it holds: a resync
    /// may have done a part of the range.
    pub(crate) fn consistent_run(&self, side: Side, at: u64, len: u64) -> (bool, u64) {
        let end = at + len;
        let recorded = self.consistency.position().get();
        let resync = self.tasks.current().filter(|task| task.is_resync());
        let next = |from: u64| {
            let unit_end = resync.map_or(end, |task| task.unit_end(from));
            let recorded = if recorded > from { recorded } else { end };
            unit_end.min(recorded).min(end)
        };
        let mut to = next(at);
        let answer = self.is_consistent(side, at, to);
        while to < end && self.is_consistent(side, to, next(to)) == answer {
            to = next(to);
        }
        (answer, to - at)
    }

    /// The member in a slot.
    pub(crate) fn member_of(&self, slot: Slot) -> Option<&Member> {
        self.places[slot.index()].member.map(|index| self.member(index))
    }

    /// Number of slots.
    pub(crate) fn slots(&self) -> u16 {
        self.shape.slots()
    }

    /// Find a member by its drive.
    pub(crate) fn member_by_drive(&self, drive: DriveId) -> Option<u32> {
        self.find_member(|member| member.drive == drive && !member.is_removed())
    }

    /// The state as a word.
    pub(crate) fn health(&self) -> Health {
        let missing = self.missing();
        if self.life == Life::Failed || !self.shape.survives(missing, self.joined) {
            Health::Failed
        } else if missing.is_empty() {
            Health::Optimal
        } else {
            Health::Degraded
        }
    }

    /// Is some of its data unavailable?
    pub(crate) fn is_lost(&self) -> bool {
        self.life == Life::Failed || !(self.is_whole || self.shape.survives(self.missing(), self.joined))
    }

    /// Does a bad-block log on disk lack a range that must not be used for recovery?
    pub(crate) fn is_bad_urgent(&self) -> bool {
        self.has_bad && self.members.iter().any(|m| m.bad.urgent && m.is_active())
    }

    /// Did a flush of some working member fail?
    pub(crate) fn has_failed_flush(&self) -> bool {
        self.suspect && self.members.iter().any(|m| m.trust != Trust::Sound && m.is_active())
    }

    /// Does only the journal hold data that some working member may have dropped? A member that is filled from that one
    /// would lack the data, and the journal could drop it. The next start replays it first.
    pub(crate) fn is_kept_by_journal(&self) -> bool {
        self.has_failed_flush() && self.journal.has_session()
    }

    /// Did a flush, or a write of metadata, fail on a member that the set needs? Then no written data is certain to be
    /// durable.
    pub(crate) fn is_durability_lost(&self) -> bool {
        self.has_failed_flush() || self.has_stale_metadata()
    }

    /// Is the metadata of some working member stale? Then neither a mark nor the failure of another member is durable.
    pub(crate) fn has_stale_metadata(&self) -> bool {
        self.suspect && self.members.iter().any(|m| m.trust == Trust::MetadataStale && m.is_active())
    }

    /// The position, in sectors of the set, up to which a rebuild has restored it. It applies if the rebuild fills the
    /// only slot that is not in sync, and sectors of the members are in the order of the set.
    pub(crate) fn restored_to(&self) -> Sectors {
        let open = self.missing();
        let filling = self.tasks.current().filter(|t| t.kind() == TaskKind::Rebuild && t.slot() == open.first());
        let Some(task) = filling.filter(|_| open.len() == 1) else { return Sectors::ZERO };
        self.shape.restored_by(MemberLba::ZERO + task.done_sectors())
    }

    /// The generation of superblocks that is durable.
    pub(crate) fn durable_generation(&self) -> u64 {
        self.metadata.as_ref().map_or(0, Metadata::durable)
    }

    /// The rebuild that has filled a member completely and that the superblocks do not record yet. After a power cut now
    /// the member would be filled from the last checkpoint on, and until then no other one may be lost. So it is reported
    /// as running.
    pub(crate) fn unrecorded_fill(&self) -> Option<&Task> {
        self.tasks.unrecorded_fill(self.durable_generation())
    }

    /// As [`Set::health`], for administrators: a member counts when the superblocks record it.
    pub(crate) fn recorded_health(&self) -> Health {
        match self.health() {
            Health::Optimal if self.unrecorded_fill().is_some() => Health::Degraded,
            health => health,
        }
    }

    /// Slots without a full member.
    pub(crate) fn missing(&self) -> SlotSet {
        SlotSet::first_n(self.slots()).minus(self.in_sync)
    }

    /// Can parity or copies be made to agree? Parity that is needed in full for the missing columns has nothing to
    /// agree with.
    pub(crate) fn can_resync(&self) -> bool {
        self.shape.is_mirror() || self.shape.is_redundant_without(self.missing())
    }

    /// Would rows that are not in sync yet read differently without the member in this slot? Their parity may not
    /// match. On a mirror, hosts read the first copy.
    pub(crate) fn unsynced_need(&self, slot: Slot) -> bool {
        if self.is_consistent_everywhere() {
            return false;
        }
        if self.shape.is_plain_mirror() {
            self.in_sync.first() == Some(slot)
        } else {
            self.shape.is_mirror() || self.shape.has_parity()
        }
    }

    /// Is there a copy or parity to restore a member from?
    pub(crate) fn is_redundant(&self) -> bool {
        self.shape.is_redundant()
    }

    /// Recompute everything that depends on the members' states.
    pub(crate) fn refresh(&mut self) {
        let mut in_sync = SlotSet::EMPTY;
        let mut writable = SlotSet::EMPTY;
        let mut joined = SlotSet::EMPTY;
        let mut inherited = SlotSet::EMPTY;
        let mut write_mostly = SlotSet::EMPTY;
        for (slot, place) in (0..self.shape.slots()).map(Slot).zip(&self.places) {
            let Some(index) = place.member else { continue };
            if self.member(index).is_write_mostly() {
                write_mostly.insert(slot);
            }
            match self.member(index).state {
                MemberState::InSync => {
                    in_sync.insert(slot);
                    writable.insert(slot);
                }
                MemberState::Rebuilding { to } => {
                    writable.insert(slot);
                    if self.trusts_new_members() {
                        in_sync.insert(slot);
                    }
                    if self.shape.is_joined(slot, to) {
                        joined.insert(slot);
                    }
                }
                // Its replacement continues at its position. Until it has the slot, no write may skip it.
                MemberState::Failing(_) if place.replacement.is_some_and(|index| self.member(index).is_active()) => {
                    writable.insert(slot);
                    inherited.insert(slot);
                }
                MemberState::Missing | MemberState::Spare | MemberState::Failing(_) | MemberState::Faulty(_) => {}
            }
        }
        self.in_sync = in_sync;
        self.is_whole = self.missing().is_empty();
        self.writable = writable;
        self.joined = joined;
        self.inherited = inherited;
        self.write_mostly = write_mostly;
        self.refresh_bad();
    }

    /// A write leaves out the parity in this slot, and its member is not filled there. The running task will fill it
    /// later if it has not come there yet. Otherwise, or if no task runs, it is filled again from this stripe on.
    pub(crate) fn leave_out(&mut self, slot: Slot, from: MemberLba) {
        if self.tasks.current().is_some_and(|task| task.filling() == Some(slot)) {
            return;
        }
        let from = self.filled_floor(from.offset());
        let place = self.places[slot.index()];
        for member in place.each() {
            if let MemberState::Rebuilding { to } = &mut self.member_mut(member).state {
                *to = (*to).min(from);
            }
        }
    }

    /// The position up to which a member counts as filled if it is filled to `to`. A stripe that is filled in part
    /// takes no part in writes, and its task begins with whole stripes. md records any position.
    pub(crate) fn filled_floor(&self, to: Sectors) -> Sectors {
        if to == Sectors::MAX {
            to
        } else {
            self.shape.whole_stripes(to)
        }
    }

    /// Recompute whether bad blocks must be considered.
    pub(crate) fn refresh_bad(&mut self) {
        self.has_bad = self.members.iter().any(|m| !m.bad.ranges().is_empty());
    }
}
