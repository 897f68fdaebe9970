//! Carrying out the administrator's commands.

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_format::{BitmapHeader, FeatureMap, Role, Superblock};
use openraid_units::{ArrayId, DriveId, DriveLba, Sectors, SetId, Slot, Token};

use super::assemble::is_split_off;
use super::bad::{BadList, BadRange};
use super::bitmap::Bitmap;
use super::defects::Defects;
use super::metadata::Wave;
use super::set::{Counters, Intent, Life, Member, Set};
use super::volume::Volume;
use crate::actions::{Actions, NoticeKind};
use crate::adaptive::Tuning;
use crate::admin::{AdminCommand, AdminError, AdminOutcome, AdminReply, MemberState, NewMember, Policy, WriteCache};
use crate::array::sets::Change;
use crate::array::sets::Sets;
use crate::array::table::Arrays;
use crate::controller::Controller;
use crate::events::DriveInfo;
use crate::io::command::Owner;
use crate::reason::FailReason;
use crate::slab::NONE;

/// The smallest section in which a long stream is read from the copies of a mirror in turn.
const SECTION_MIN: Sectors = Sectors::kib(4);

/// A command that is not done yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// Until the superblocks of a new set are durable.
    Start(ArrayId, SetId),
    /// Until an array has finished what it has and is marked clean.
    Stop(ArrayId),
    /// Until the journal's superblocks say their last word.
    DetachJournal,
    /// Until this generation of them, which gives something up, is durable.
    Discard(u64),
}

impl Arrays {
    pub(crate) fn set_of(&self, sets: &Sets, id: ArrayId) -> Result<SetId, AdminError> {
        let array = self.find(id).ok_or(AdminError::NoSuchArray(id))?;
        match array.volume {
            Volume::Direct(set) => match sets.get(set).life {
                Life::Running => Ok(set),
                Life::Starting | Life::Stopping | Life::Failed => Err(AdminError::Offline),
            },
            Volume::Striped { .. } => {
                Err(AdminError::NotPossible("this is a nested array: name the span that the member belongs to"))
            }
        }
    }
}

impl Controller {
    pub(crate) fn on_admin(&mut self, token: Token, command: AdminCommand, actions: &mut Actions) {
        self.sets.all_changed(Change::Session);
        let result = match command {
            AdminCommand::AttachDrive { drive, info } => self.attach(drive, info),
            AdminCommand::DetachDrive { drive } => self.detach(drive),
            AdminCommand::StartSet(assembly) => match self.start_set(&assembly) {
                Ok((array, set)) => {
                    self.admin_waiting.push((token, Waiting::Start(array, set)));
                    return;
                }
                Err(error) => Err(error),
            },
            AdminCommand::StartStriped { spans, superblocks } => self.start_striped(&spans, &superblocks),
            AdminCommand::StartPassthrough { drive } => self.start_passthrough(drive),
            AdminCommand::Stop { array } => match self.begin_stop(array) {
                Ok(()) => {
                    self.admin_waiting.push((token, Waiting::Stop(array)));
                    return;
                }
                Err(error) => Err(error),
            },
            AdminCommand::Fail { array, drive, unsynced } => self.admin_fail(array, drive, unsynced, actions),
            AdminCommand::Remove { array, drive } => self.admin_remove(array, drive),
            AdminCommand::Add { array, member } => self.admin_add(array, member, actions),
            AdminCommand::Replace { array, slot, with } => self.admin_replace(array, slot, with),
            AdminCommand::Scrub { array, mode } => self.admin_scrub(array, mode, actions),
            AdminCommand::Pause { array } => self.with_set(array, |set| set.paused = true),
            AdminCommand::Resume { array } => self.with_set(array, |set| set.paused = false),
            AdminCommand::StopScrub { array } => self.stop_scrub(array),
            AdminCommand::AttachJournal(found) => self.attach_journal(&found),
            AdminCommand::DetachJournal => match self.begin_detach_journal() {
                Ok(()) => {
                    self.admin_waiting.push((token, Waiting::DetachJournal));
                    return;
                }
                Err(error) => Err(error),
            },
            AdminCommand::JoinJournal { drive, generation, epoch } => self.join_journal(drive, (generation, epoch)),
            AdminCommand::ReleaseJournalDevice => self.release_journal_device(),
            AdminCommand::DiscardJournalled { set_uuid } => match self.begin_discard(set_uuid) {
                Ok(generation) => {
                    self.admin_waiting.push((token, Waiting::Discard(generation)));
                    return;
                }
                Err(error) => Err(error),
            },
            AdminCommand::SetPolicy { policy, .. }
                if policy.write_cache == WriteCache::Journal && self.limits.journal.is_zero() =>
            {
                Err(AdminError::NotPossible("the server has no journal; start it with --journal DEVICE"))
            }
            AdminCommand::SetPolicy { policy, .. }
                if policy.write_cache != WriteCache::Through && !self.cache.is_on() =>
            {
                Err(AdminError::NotPossible("the server has no cache; start it with --cache SIZE"))
            }
            AdminCommand::SetPolicy { array, policy } => self.set_policy(array, policy, actions),
            AdminCommand::ResetAdaptive { array } => self.arrays.set_of(&self.sets, array).map(|set| {
                self.reset_adaptive(set);
                AdminOutcome::Done
            }),
            AdminCommand::CountHosts { array } => self.count_hosts(array),
        };
        actions.admin.push(AdminReply { token, result });
    }

    /// Nothing was asked by a host yet. What members did and why stays counted: it was done.
    fn count_hosts(&mut self, id: ArrayId) -> Result<AdminOutcome, AdminError> {
        let array = self.arrays.find_mut(id).ok_or(AdminError::NoSuchArray(id))?;
        (array.requests, array.bytes) = ([0; 4], [0; 2]);
        for number in 0..array.volume.set_count() {
            let set = self.sets.get_mut(array.volume.set(number));
            (set.cached.read_hits, set.cached.read_misses) = (0, 0);
        }
        Ok(AdminOutcome::Done)
    }

    fn set_policy(
        &mut self,
        array: ArrayId,
        policy: Policy,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let background_depth = policy.background_depth.max(1);
        let split_section = policy.split_section.max(SECTION_MIN);
        let policy = Policy { background_depth, split_section, ..policy };
        let delay = self.usual_delay(self.sets.get(id));
        let old = core::mem::replace(&mut self.sets.get_mut(id).policy, policy);
        if old.adaptive != policy.adaptive || Tuning::of(&old, delay) != Tuning::of(&policy, delay) {
            self.reset_adaptive(id);
        }
        self.sort_members(id);
        if old.split_streams != policy.split_streams {
            self.arrays.values_mut().for_each(|array| array.streams.forget_outstanding());
        }
        if old != policy {
            // Who waited because of the old one may go on.
            self.wake_all_waiters();
            self.trace.notice(&self.sets, id, None, None, NoticeKind::PolicyChanged { from: old, to: policy }, actions);
        }
        Ok(AdminOutcome::Done)
    }

    /// What waits for the members of a set is chosen as its policy says, and as they are.
    pub(super) fn sort_members(&mut self, id: SetId) {
        let set = self.sets.get_mut(id);
        let was_flash = core::mem::replace(&mut set.is_flash, true);
        for member in set.members.iter().filter(|member| !member.removed) {
            self.channels.sort(member.drive, set.policy.sorting);
            set.is_flash &= self.channels.get(member.drive).is_some_and(|channel| !channel.info.rotational);
        }
        if set.is_flash != was_flash {
            self.reset_adaptive(id);
        }
    }

    /// Answer commands that were waiting.
    pub(crate) fn answer_admin(&mut self, actions: &mut Actions) {
        let mut at = 0;
        while at < self.admin_waiting.len() {
            let (token, waiting) = self.admin_waiting[at];
            let result = match waiting {
                Waiting::Start(array, set) => self.check_started(array, set),
                Waiting::Stop(array) => self.check_stopped(array, actions),
                Waiting::DetachJournal => self.check_detached(),
                Waiting::Discard(generation) => self.check_discarded(generation),
            };
            match result {
                Some(result) => {
                    self.admin_waiting.remove(at);
                    match waiting {
                        Waiting::Stop(_) => self.answer_others(waiting, &result, actions),
                        // It was taken back: who has asked for its end has that.
                        Waiting::Start(array, _) if self.arrays.find(array).is_none() => {
                            self.answer_others(Waiting::Stop(array), &Ok(AdminOutcome::Done), actions);
                            at = 0;
                        }
                        _ => {}
                    }
                    actions.admin.push(AdminReply { token, result });
                }
                None => at += 1,
            }
        }
    }

    /// Who waits for the same thing is told the same: it is gone now, and nobody could ask after it any more.
    fn answer_others(&mut self, same: Waiting, result: &Result<AdminOutcome, AdminError>, actions: &mut Actions) {
        let others = self.admin_waiting.extract_if(.., |(_, waiting)| *waiting == same);
        actions.admin.extend(others.map(|(token, _)| AdminReply { token, result: result.clone() }));
    }

    fn attach(&mut self, drive: DriveId, info: DriveInfo) -> Result<AdminOutcome, AdminError> {
        if self.channels.attach(drive, info) {
            Ok(AdminOutcome::Done)
        } else {
            Err(AdminError::DriveBusy(drive))
        }
    }

    fn detach(&mut self, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let channel = self.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        if channel.set.is_some() {
            return Err(AdminError::DriveBusy(drive));
        }
        if self.channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        self.channels.drives[drive.index()] = None;
        Ok(AdminOutcome::Done)
    }

    fn check_started(&mut self, array: ArrayId, id: SetId) -> Option<Result<AdminOutcome, AdminError>> {
        let set = self.sets.get_mut(id);
        let log_error = set.ppl.as_ref().and_then(|ppl| ppl.error);
        if let Some(why) = set.journal.replay_error().or(log_error) {
            if set.is_busy() {
                return None;
            }
            self.take_back(array, id);
            return Some(Err(AdminError::NotPossible(why)));
        }
        match set.life {
            Life::Starting | Life::Stopping if set.is_replaying() => return None,
            Life::Starting if set.ppl.as_ref().is_some_and(|ppl| !ppl.is_ready()) => return None,
            Life::Failed => return Some(Err(AdminError::Offline)),
            Life::Starting => {
                let metadata = set.metadata.as_ref().expect("fresh sets have metadata");
                if metadata.durable < metadata.wanted.min(1) {
                    return None;
                }
                set.life = Life::Running;
            }
            Life::Running | Life::Stopping => {}
        }
        self.sets.changed(id, Change::Session);
        Some(Ok(AdminOutcome::Started(array)))
    }

    fn begin_stop(&mut self, id: ArrayId) -> Result<(), AdminError> {
        let array = self.arrays.find_mut(id).ok_or(AdminError::NoSuchArray(id))?;
        if array.outer > 0 {
            return Err(AdminError::NotPossible("a nested array runs on this one; stop that one first"));
        }
        if core::mem::replace(&mut array.stopping, true) {
            // Somebody else has asked for that already: both get the answer.
            return Ok(());
        }
        if let Volume::Direct(set_id) = array.volume {
            let set = self.sets.get_mut(set_id);
            if set.life != Life::Failed {
                set.life = Life::Stopping;
            }
            set.repairs.clear();
            // What is dirty is written without delay from here on: what rests is tried once more.
            self.cache.units.end_rest(set_id);
            self.cache.awaited_changed = true;
        }
        self.wake_all_waiters();
        Ok(())
    }

    fn check_stopped(&mut self, id: ArrayId, actions: &mut Actions) -> Option<Result<AdminOutcome, AdminError>> {
        let array = self.arrays.find(id)?;
        if self.requests.iter().any(|(_, r)| r.request.array == id) {
            return None;
        }
        if let Volume::Striped { spans, .. } = &array.volume {
            let sets: Vec<SetId> = spans.iter().map(|(set, _)| *set).collect();
            for set in sets {
                let span = self.sets.get(set).array;
                self.arrays.get_mut(span).outer -= 1;
            }
            self.arrays.remove(id);
            return Some(Ok(AdminOutcome::Done));
        }
        let Volume::Direct(set_id) = array.volume else { unreachable!("the other kind is dealt with") };
        let set = self.sets.get_mut(set_id);
        let failed = set.life == Life::Failed;
        // What is read of the journal for it comes to its end first.
        let busy =
            set.is_busy() || set.is_replaying() || (!failed && set.dirty.all() > 0 && !self.cache.is_all_tried(set_id));
        if busy {
            return None;
        }
        if !failed && !self.quiesce_set(set_id, actions) {
            return None;
        }
        let log = &mut self.journal.log;
        let lost = self.cache.forget_set(set_id, |sequence| log.unpin_if_held(sequence));
        let preserved = self.preserve_entries(set_id);
        if lost > 0 && !preserved {
            self.trace.notice(&self.sets, set_id, None, None, NoticeKind::DirtyLost { sectors: lost }, actions);
        }
        self.wake_cache_waiters();
        self.cache.awaited_changed = true;
        self.end_hurry(set_id);
        self.journal.replay.forget_backlog(set_id);
        let drives: Vec<DriveId> = self.sets.get(set_id).members.iter().map(|m| m.drive).collect();
        self.channels.release(&drives);
        self.sets.remove(set_id);
        self.arrays.remove(id);
        Some(Ok(AdminOutcome::Done))
    }

    /// Write what a stopping set still has to write: the progress of its task, the clean mark, its bitmap. True when all of
    /// it is durable.
    fn quiesce_set(&mut self, id: SetId, actions: &mut Actions) -> bool {
        let set = self.sets.get_mut(id);
        if let Some(task) = &mut set.task {
            if task.position > task.flushed {
                task.flushed = task.position;
                let issued = self.sets.flush_members(id, Owner::CheckpointFlush, &mut self.channels, self.now, actions);
                self.sets.get_mut(id).checkpoint_flushes = issued;
                if issued > 0 {
                    return false;
                }
            }
            self.store_checkpoint(id);
            self.sets.get_mut(id).task = None;
            return false;
        }
        let set = self.sets.get(id);
        let written = set.metadata.as_ref().is_none_or(|m| m.durable == m.wanted && m.wave == Wave::Idle);
        // A set in doubt stays marked active.
        let ended = !set.journal.has_session();
        // Nor does the session of a set end whose members do not take what it holds, or of which one is gone with what it had
        // not flushed: it is replayed at the next start.
        let stuck = set.journal.is_on() && (set.dirty.refused || set.is_lost());
        let marked = (set.intent == Intent::Clean && ended) || set.has_failed_flush() || stuck;
        if !written || !marked || set.bitmap.as_ref().is_some_and(Bitmap::is_writing) {
            return false;
        }
        // The clean mark comes after a flush; sets that have none are flushed here.
        let issued = self.sets.flush_members(id, Owner::CheckpointFlush, &mut self.channels, self.now, actions);
        self.sets.get_mut(id).checkpoint_flushes += issued;
        issued == 0
    }

    fn with_set(&mut self, array: ArrayId, change: impl FnOnce(&mut Set)) -> Result<AdminOutcome, AdminError> {
        let set = self.arrays.set_of(&self.sets, array)?;
        change(self.sets.get_mut(set));
        Ok(AdminOutcome::Done)
    }

    fn admin_fail(
        &mut self,
        array: ArrayId,
        drive: DriveId,
        unsynced: bool,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get(id);
        if !set.is_redundant() {
            return Err(AdminError::NoRedundancy);
        }
        let index = set.member_by_drive(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        let member = &set.members[index];
        if member.state == MemberState::InSync && !member.replacement {
            let slot = member.slot.expect("a working member has a slot");
            if !self.sets.survives_without(id, slot) {
                return Err(AdminError::WouldLoseArray);
            }
            if !unsynced && set.unsynced_need(slot) {
                return Err(AdminError::NeededByUnsynced);
            }
        }
        let index = u32::try_from(index).expect("few members");
        self.sets.fail_member((id, index), FailReason::Administrator, (&self.trace, self.now), actions);
        self.hand_on(actions);
        Ok(AdminOutcome::Done)
    }

    fn admin_remove(&mut self, array: ArrayId, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get_mut(id);
        let index = set.member_by_drive(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        match set.members[index].state {
            MemberState::Faulty(_) | MemberState::Spare | MemberState::Missing => {}
            MemberState::InSync | MemberState::Rebuilding { .. } | MemberState::Failing(_) => {
                return Err(AdminError::MemberInUse(drive));
            }
        }
        let was_spare = set.members[index].state == MemberState::Spare;
        let member = &mut set.members[index];
        member.removed = true;
        member.state = MemberState::Faulty(FailReason::Administrator);
        if was_spare {
            set.metadata.as_mut().ok_or(AdminError::NoRedundancy)?.request();
        }
        if let Some(channel) = self.channels.get_mut(drive) {
            channel.set = None;
        }
        Ok(AdminOutcome::Done)
    }

    fn admin_add(&mut self, array: ArrayId, new: NewMember, actions: &mut Actions) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        if !self.sets.get(id).is_redundant() {
            return Err(AdminError::NoRedundancy);
        }
        let info = self.channels.get(new.drive).ok_or(AdminError::NoSuchDrive(new.drive))?.info;
        let set = self.sets.get(id);
        self.check_suits(set, &new, info)?;
        self.channels.claim(&[new.drive], id)?;
        let by_bitmap = self.slot_by_bitmap(id, &new.superblock).filter(|_| new.returning);
        let set = self.sets.get_mut(id);
        // Superblocks that are on their way say what they said when they began, and would make a member of whoever joins with
        // the number of one that is not there.
        let under_way = set.metadata.as_ref().filter(|metadata| metadata.wave != Wave::Idle);
        let called = |n| under_way.is_some_and(|own| matches!(own.snapshot.roles.get(n), Role::Active(_)));
        let used = |n: u32| called(n) || set.members.iter().any(|m| !m.removed && m.number() == Some(n));
        let own = new.superblock.dev_number;
        let number = if by_bitmap.is_some() && !used(own) {
            own
        } else {
            let first = u32::from(set.geometry.members());
            (first..).find(|n| !used(*n)).expect("numbers do not run out")
        };
        let mut superblock = new.superblock;
        superblock.dev_number = number;
        superblock.set_recovery_offset(None);
        let mut member = new_member(new.drive, None, MemberState::Spare, superblock.data_offset, Some(superblock), &[]);
        member.by_bitmap = by_bitmap;
        let metadata = set.metadata.as_mut().expect("redundant sets have metadata");
        metadata.common.roles = super::create::grow_roles(&metadata.common.roles, number);
        metadata.request();
        // What a drive that was removed has not answered yet is told to its place.
        let (set, channels) = (self.sets.get(id), &self.channels);
        let is_free = |own: &Member| own.removed && own.flushing == 0 && channels.outstanding(own.drive) == 0;
        let vacant = set.members.iter().position(is_free);
        let set = self.sets.get_mut(id);
        match vacant {
            Some(index) => set.members[index] = member,
            None => set.members.push(member),
        }
        let index = vacant.unwrap_or(set.members.len() - 1);
        self.prepare_log(id, index, actions);
        self.sort_members(id);
        Ok(AdminOutcome::Done)
    }

    /// Can the drive be a member: its blocks, the room for data, the room for the bitmap?
    fn check_suits(&self, set: &Set, new: &NewMember, info: DriveInfo) -> Result<(), AdminError> {
        if info.block > set.block {
            return Err(AdminError::LargerBlock { drive: info.block, array: set.block });
        }
        let need = set.metadata.as_ref().map_or(Sectors::ZERO, |m| m.common.size);
        if new.superblock.data_size < need {
            let offset = new.superblock.data_offset;
            return Err(AdminError::TooSmallMember { have: new.superblock.data_size, need, offset });
        }
        let header = set.bitmap.as_ref().and_then(|bitmap| BitmapHeader::decode(bitmap.header()).ok());
        let room = new.superblock.bitmap_room(info.capacity).map_or(Sectors::ZERO, |(_, room)| room);
        match header.map(|header| header.geometry().sectors()).filter(|need| *need > room) {
            Some(need) => Err(AdminError::BitmapTooLarge { have: room, need }),
            None => Ok(()),
        }
    }

    /// A member that comes back needs only what the bitmap marks, if it was in this array when the bits of what
    /// it has missed were not yet cleared, and if the slot that it had is still vacant: that slot.
    fn slot_by_bitmap(&self, id: SetId, superblock: &Superblock) -> Option<Slot> {
        let set = self.sets.get(id);
        let header = BitmapHeader::decode(set.bitmap.as_ref()?.header()).ok()?;
        let metadata = set.metadata.as_ref()?;
        let Role::Active(slot) = superblock.role() else { return None };
        let returns = superblock.set_uuid == metadata.common.set_uuid
            && slot.0 < set.slots()
            && set.places[slot.index()].member == NONE
            && superblock.recovery_offset().is_none()
            // The bits say what the array wrote without it, not what it wrote without the array.
            && !is_split_off(superblock, &metadata.common, set.in_sync)
            // What its bad-block log names is bad there whatever the bits say: all of it is restored.
            && !superblock.features.contains(FeatureMap::BAD_BLOCKS)
            && superblock.events >= header.events_cleared;
        returns.then_some(slot)
    }

    fn admin_replace(&mut self, array: ArrayId, slot: Slot, with: Option<DriveId>) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let set = self.sets.get(id);
        if slot.0 >= set.slots() || !set.in_sync.contains(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if set.places[slot.index()].replacement != NONE {
            return Err(AdminError::NotPossible("this member is being replaced already"));
        }
        if set.is_kept_by_journal() {
            return Err(AdminError::NotPossible(
                "a flush of a member failed, and only the journal has what that member may have dropped: start the server anew, \
                 which brings it back, before anything is copied",
            ));
        }
        let suits =
            |m: &Member| m.state == MemberState::Spare && !m.removed && with.is_none_or(|drive| m.drive == drive);
        let spare = set
            .members
            .iter()
            .position(suits)
            .ok_or(AdminError::NotPossible("there is no spare to replace it with; add one first"))?;
        if set.ppl.as_ref().is_some_and(|ppl| ppl.setups > 0) {
            return Err(AdminError::PreparingLog);
        }
        if self.channels.outstanding(set.members[spare].drive) > 0 {
            return Err(AdminError::CommandsOutstanding(set.members[spare].drive));
        }
        let set = self.sets.get_mut(id);
        let member = &mut set.members[spare];
        member.state = MemberState::Rebuilding { to: Sectors::ZERO };
        member.slot = Some(slot);
        member.replacement = true;
        set.places[slot.index()].replacement = u32::try_from(spare).expect("few members");
        if let Some(bitmap) = &mut set.bitmap {
            bitmap.touch_all();
        }
        set.metadata.as_mut().expect("redundant sets have metadata").request();
        Ok(AdminOutcome::Done)
    }
}

impl Member {
    /// Its number in the role table.
    pub(crate) fn number(&self) -> Option<u32> {
        self.superblock.as_ref().map(|s| s.dev_number)
    }
}

pub(super) fn new_member(
    drive: DriveId,
    slot: Option<Slot>,
    state: MemberState,
    data_offset: DriveLba,
    superblock: Option<Superblock>,
    known_bad: &[BadRange],
) -> Member {
    Member {
        drive,
        slot,
        left: None,
        replacement: false,
        state,
        data_offset,
        bad: BadList::new(superblock.as_ref(), known_bad),
        superblock: superblock.map(Box::new),
        // What was written before this start may still be in the drive's cache.
        unflushed: true,
        flush_failed: false,
        metadata_stale: false,
        flushing: 0,
        media_errors: 0,
        defects: Defects::new(),
        by_bitmap: None,
        removed: false,
        counters: Counters::default(),
    }
}
