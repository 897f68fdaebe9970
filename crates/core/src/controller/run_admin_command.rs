//! The administrator's commands: each is carried out at once, or answered when its work is done.

use alloc::vec::Vec;
use openraid_format::SetName;
use openraid_units::ArrayId;
use openraid_units::DriveId;
use openraid_units::SetId;
use openraid_units::Token;

use crate::actions::Actions;
use crate::actions::NoticeKind;
use crate::admin_answer::AdminError;
use crate::admin_answer::AdminOutcome;
use crate::admin_answer::AdminReply;
use crate::array::awaited_changes::AwaitedChange;
use crate::array::member::Member;
use crate::array::metadata::Metadata;
use crate::array::reshape_plan::ReshapeGoal;
use crate::array::set::Life;
use crate::array::set::Set;
use crate::array::sets::Signal;
use crate::array::volume::Volume;
use crate::array::write_intent_bitmap::Bitmap;
use crate::background::check_task::{begin_scrub, stop_scrub};
use crate::background::pump_reshape::quiesce_reshape;
use crate::background::pump_set::store_checkpoint;
use crate::call::Call;
use crate::controller::admin_queue::AdminWait;
use crate::controller::{AdminCommand, Controller};
use crate::events::DriveInfo;
use crate::io::state::command::Owner;
use crate::planted::Flaw;
use crate::settings::Policy;
use crate::settings::Tuning;
use crate::settings::WriteCache;
use openraid_units::Sectors;

/// Minimum length of the sections in which a long stream is read from the copies of a mirror in turn.
const SECTION_MIN: Sectors = Sectors::kib(4);

impl Controller {
    pub(crate) fn on_admin(&mut self, token: Token, command: AdminCommand, actions: &mut Actions) {
        self.sets.all_changed(AwaitedChange::Session);
        let result = match command {
            AdminCommand::AttachDrive { drive, info } => self.attach(drive, info),
            AdminCommand::DetachDrive { drive } => self.detach(drive),
            AdminCommand::StartSet(assembly) => {
                let begun = self.start_set(&assembly).map(|(array, set)| AdminWait::Start(array, set));
                return self.answer_later(token, begun, actions);
            }
            AdminCommand::StartStriped { spans, superblocks } => self.start_striped(&spans, &superblocks),
            AdminCommand::StartPassthrough { drive } => self.start_passthrough(drive),
            AdminCommand::Stop { array } => {
                let begun = self.begin_stop(array).map(|()| AdminWait::Stop(array));
                return self.answer_later(token, begun, actions);
            }
            AdminCommand::Fail { array, drive, unsynced } => self.admin_fail(array, drive, unsynced, actions),
            AdminCommand::Return { array, drive } => self.admin_return(array, drive, actions),
            AdminCommand::Lose { drive } => self.admin_lose(drive, actions),
            AdminCommand::Remove { array, drive } => self.admin_remove(array, drive),
            AdminCommand::Add { array, member } => self.admin_add(array, member, actions),
            AdminCommand::Replace { array, slot, with } => self.admin_replace(array, slot, with),
            AdminCommand::Scrub { array, mode } => {
                let call = &mut Call::new(&mut self.base, actions);
                self.arrays.set_of(&self.sets, array).and_then(|id| begin_scrub(&mut self.sets, id, mode, call))
            }
            AdminCommand::Pause { array } => self.with_set(array, |set| set.tasks.pause(true)),
            AdminCommand::Resume { array } => {
                let skips = self.base.planted.has(Flaw::ResumeSkipsUnit);
                self.with_set(array, |set| {
                    set.tasks.pause(false);
                    if skips {
                        set.tasks.skip_a_unit();
                    }
                })
            }
            AdminCommand::StopScrub { array } => stop_scrub(&mut self.sets, &self.arrays, array),
            AdminCommand::AttachJournal(found) => self.journal.attach(&found, &mut self.base, &mut self.sets),
            AdminCommand::DetachJournal => {
                let begun = self.journal.begin_detach(&mut self.sets).map(|()| AdminWait::DetachJournal);
                return self.answer_later(token, begun, actions);
            }
            AdminCommand::JoinJournal { drive, generation, epoch } => {
                self.journal.begin_join((&mut self.base.channels, &mut self.sets), drive, (generation, epoch))
            }
            AdminCommand::ReleaseJournalDevice => self.journal.release_device(&mut self.base.channels),
            AdminCommand::DiscardJournalled { set_uuid } => {
                let begun = self.journal.begin_discard(&mut self.sets, set_uuid).map(AdminWait::Discard);
                return self.answer_later(token, begun, actions);
            }
            AdminCommand::SetPolicy { array, policy } => self.set_policy(array, policy, actions),
            AdminCommand::ResetAdaptive { array } => self.reset_adaptive(array),
            AdminCommand::CountHosts { array } => self.count_hosts(array),
            AdminCommand::Rename { array, name } => self.rename(array, name),
            AdminCommand::CancelReshape { array } => self.cancel_reshape(array),
            AdminCommand::LimitCapacity { array, to } => {
                let begun = self.begin_limit(array, to, actions).map(|()| AdminWait::Limit(array));
                return self.answer_later(token, begun, actions);
            }
            AdminCommand::Append { array, member } => {
                let begun = self.begin_append(array, member).map(|(set, drive)| AdminWait::Append(set, drive));
                return self.answer_later(token, begun, actions);
            }
            AdminCommand::Resize { array, to } => return self.reshape(token, array, ReshapeGoal::Used(to), actions),
            AdminCommand::Reshape { array, new } => {
                return self.reshape(token, array, ReshapeGoal::Shape(new), actions);
            }
        };
        actions.admin.push(AdminReply { token, result });
    }

    fn reshape(&mut self, token: Token, array: ArrayId, goal: ReshapeGoal, actions: &mut Actions) {
        let begun = self.begin_reshape(array, goal).map(AdminWait::Reshape);
        self.answer_later(token, begun, actions);
    }

    /// A command that has begun is answered when it ends, one that is refused at once.
    fn answer_later(&mut self, token: Token, begun: Result<AdminWait, AdminError>, actions: &mut Actions) {
        match begun {
            Ok(waiting) => self.admin.wait(token, waiting),
            Err(error) => actions.admin.push(AdminReply { token, result: Err(error) }),
        }
    }

    /// The superblocks get another name with their next generation, which begins at once.
    fn rename(&mut self, array: ArrayId, name: SetName) -> Result<AdminOutcome, AdminError> {
        let id = self.arrays.set_of(&self.sets, array)?;
        let Some(metadata) = &mut self.sets.get_mut(id).metadata else {
            return Err(AdminError::NotPossible("a raw drive has no superblock for a name"));
        };
        if metadata.rename(name) {
            self.sets.changed(id, AwaitedChange::Marks);
        }
        Ok(AdminOutcome::Done)
    }

    /// Count requests of hosts from here on. Figures of members and reasons continue, because that work was done.
    fn count_hosts(&mut self, id: ArrayId) -> Result<AdminOutcome, AdminError> {
        let array = self.arrays.find_mut(id).ok_or(AdminError::NoSuchArray(id))?;
        array.reset_counts();
        for number in 0..array.volume().set_count() {
            self.cache.forget_reads(array.volume().set(number));
        }
        Ok(AdminOutcome::Done)
    }

    fn reset_adaptive(&mut self, array: ArrayId) -> Result<AdminOutcome, AdminError> {
        let set = self.arrays.set_of(&self.sets, array)?;
        self.sets.reset_adaptive(&mut self.arrays, &self.base, set);
        Ok(AdminOutcome::Done)
    }

    fn set_policy(
        &mut self,
        array: ArrayId,
        policy: Policy,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        if policy.write_cache == WriteCache::Journal && self.base.limits.journal.is_zero() {
            return Err(AdminError::NotPossible("the server has no journal; start it with --journal DEVICE"));
        }
        if policy.write_cache != WriteCache::Through && !self.cache.is_on() {
            return Err(AdminError::NotPossible("the server has no cache; start it with --cache SIZE"));
        }
        let id = self.arrays.set_of(&self.sets, array)?;
        let background_depth = policy.background_depth.max(1);
        let split_section = policy.split_section.max(SECTION_MIN);
        let policy = Policy { background_depth, split_section, ..policy };
        let delay = self.sets.get(id).usual_delay(&self.base.limits);
        let old = self.sets.get_mut(id).set_policy(policy);
        if old.adaptive != policy.adaptive || Tuning::of(&old, delay) != Tuning::of(&policy, delay) {
            self.sets.reset_adaptive(&mut self.arrays, &self.base, id);
        }
        self.sets.sort_members(&mut self.arrays, &mut self.base, id);
        if old.split_streams != policy.split_streams {
            self.cache.forget_outstanding();
        }
        if old != policy {
            // Pieces and operations that waited because of the old policy may go on.
            self.sets.signal(Signal::Changed);
            Call::new(&mut self.base, actions).notice(
                &self.sets,
                (id, None),
                None,
                NoticeKind::PolicyChanged { from: old, to: policy },
            );
        }
        Ok(AdminOutcome::Done)
    }

    /// Answer commands that were waiting.
    pub(crate) fn answer_admin(&mut self, actions: &mut Actions) {
        let mut at = 0;
        while let Some((_, waiting)) = self.admin.waiting().get(at).copied() {
            let result = match waiting {
                AdminWait::Start(array, set) => self.check_started(array, set),
                AdminWait::Stop(array) => self.check_stopped(array, actions),
                AdminWait::DetachJournal => self.journal.check_detached(&mut self.base, &mut self.sets),
                AdminWait::Discard(generation) => self.journal.check_discarded(generation),
                AdminWait::Reshape(set) => self.check_reshape_begun(set),
                AdminWait::Append(set, drive) => self.check_appended(set, drive),
                AdminWait::Limit(array) => self.check_limited(array),
            };
            let Some(result) = result else {
                at += 1;
                continue;
            };
            let token = self.admin.take(at);
            match waiting {
                AdminWait::Stop(_) => self.admin.answer_all(waiting, &result, actions),
                // The start was undone: a command that asked to stop the array is complete.
                AdminWait::Start(array, _) if self.arrays.find(array).is_none() => {
                    self.admin.answer_all(AdminWait::Stop(array), &Ok(AdminOutcome::Done), actions);
                    at = 0;
                }
                _ => {}
            }
            actions.admin.push(AdminReply { token, result });
        }
    }

    fn attach(&mut self, drive: DriveId, info: DriveInfo) -> Result<AdminOutcome, AdminError> {
        if self.base.channels.attach(drive, info) {
            Ok(AdminOutcome::Done)
        } else {
            Err(AdminError::DriveBusy(drive))
        }
    }

    fn detach(&mut self, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let channel = self.base.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        if channel.is_claimed() {
            return Err(AdminError::DriveBusy(drive));
        }
        if self.base.channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        self.base.channels.detach(drive);
        Ok(AdminOutcome::Done)
    }

    fn check_started(&mut self, array: ArrayId, id: SetId) -> Option<Result<AdminOutcome, AdminError>> {
        let set = self.sets.get_mut(id);
        let log_error = set.ppl.as_ref().and_then(|ppl| ppl.error());
        if let Some(why) = set.journal.replay_error().or(log_error) {
            if set.is_busy() {
                return None;
            }
            self.take_back(array, id);
            return Some(Err(AdminError::NotPossible(why)));
        }
        match set.life() {
            Life::Starting | Life::Stopping if set.journal.is_replaying() => return None,
            Life::Starting if set.ppl.as_ref().is_some_and(|ppl| !ppl.is_ready()) => return None,
            Life::Failed => return Some(Err(AdminError::Offline)),
            Life::Starting => {
                let metadata = set.metadata.as_ref().expect("new sets have metadata");
                if !metadata.is_begun() {
                    return None;
                }
                set.enter(Life::Running);
            }
            Life::Running | Life::Stopping => {}
        }
        self.sets.changed(id, AwaitedChange::Session);
        Some(Ok(AdminOutcome::Started(array)))
    }

    fn begin_stop(&mut self, id: ArrayId) -> Result<(), AdminError> {
        let array = self.arrays.find_mut(id).ok_or(AdminError::NoSuchArray(id))?;
        if array.is_span() {
            return Err(AdminError::NotPossible("a nested array runs on this one; stop that one first"));
        }
        if array.begin_to_stop() {
            // Another command has asked for that already: both get the same answer.
            return Ok(());
        }
        if let Volume::Direct(set_id) = *array.volume() {
            let set = self.sets.get_mut(set_id);
            if !set.has_failed() {
                set.enter(Life::Stopping);
            }
            set.tasks.forget_rewrites();
            // Dirty data is written without delay from here on. Resting units are tried once more.
            self.cache.end_rest(set_id);
            self.cache.wait_changed();
        }
        self.sets.signal(Signal::Changed);
        Ok(())
    }

    fn check_stopped(&mut self, id: ArrayId, actions: &mut Actions) -> Option<Result<AdminOutcome, AdminError>> {
        let array = self.arrays.find(id)?;
        if self.requests.iter().any(|request| request.array() == id) {
            return None;
        }
        if let Volume::Striped { spans, .. } = array.volume() {
            let sets: Vec<SetId> = spans.iter().map(|(set, _)| *set).collect();
            for set in sets {
                let span = self.sets.get(set).array();
                self.arrays.get_mut(span).left_by_outer();
            }
            self.arrays.remove(id);
            return Some(Ok(AdminOutcome::Done));
        }
        let Volume::Direct(set_id) = *array.volume() else { unreachable!("the other kind is dealt with") };
        let set = self.sets.get_mut(set_id);
        let failed = set.has_failed();
        // The replay of the set ends first.
        let busy = set.is_busy()
            || set.journal.is_replaying()
            || (!failed && set.dirty.all() > 0 && !self.cache.is_all_tried(set_id));
        if busy {
            return None;
        }
        if !failed && !self.quiesce_set(set_id, actions) {
            return None;
        }
        let log = self.journal.log_mut();
        let lost = self.cache.forget_set(set_id, |sequence| log.unpin_if_held(sequence));
        let preserved = self.journal.preserve_entries(self.sets.get(set_id));
        if lost > 0 && !preserved {
            Call::new(&mut self.base, actions).notice(
                &self.sets,
                (set_id, None),
                None,
                NoticeKind::DirtyLost { sectors: lost },
            );
        }
        self.requests.wake_all();
        self.cache.wait_changed();
        self.sets.get_mut(set_id).journal.end_hurry();
        self.journal.replay_mut().forget_backlog(set_id);
        let drives: Vec<DriveId> = self.sets.get(set_id).members().iter().map(Member::drive).collect();
        self.base.channels.release(&drives);
        self.sets.remove(set_id);
        self.arrays.remove(id);
        Some(Ok(AdminOutcome::Done))
    }

    /// Write the remaining metadata of a stopping set: the progress of its task, the clean mark, its bitmap. True when
    /// all of it is durable.
    fn quiesce_set(&mut self, id: SetId, actions: &mut Actions) -> bool {
        if !quiesce_reshape(&mut self.sets, id, &mut Call::new(&mut self.base, actions)) {
            return false;
        }
        let set = self.sets.get_mut(id);
        if let Some(task) = set.tasks.current_mut() {
            if task.begin_checkpoint() {
                let io = &mut Call::new(&mut self.base, actions);
                let issued = self.sets.flush_members(id, Owner::CheckpointFlush, io);
                self.sets.get_mut(id).tasks.begin_flushes(issued, self.base.now);
                if issued > 0 {
                    return false;
                }
            }
            store_checkpoint(&mut self.sets, self.base.planted, id);
            self.sets.get_mut(id).tasks.forget_task();
            return false;
        }
        let set = self.sets.get(id);
        let written = set.metadata.as_ref().is_none_or(Metadata::is_at_rest);
        // A set with a failed flush stays marked active.
        let ended = !set.journal.has_session();
        // The session does not end either if members refuse the set's data, or if a member is lost with unflushed data:
        // the journal is replayed at the next start.
        let needs_journal = set.journal.is_on() && (set.dirty.is_refused() || set.is_lost());
        let marked = (set.mark.is_clean() && ended) || set.has_failed_flush() || needs_journal;
        if !written || !marked || set.bitmap.as_ref().is_some_and(Bitmap::is_writing) {
            return false;
        }
        // The clean mark comes after a flush; sets that have none are flushed here.
        let io = &mut Call::new(&mut self.base, actions);
        let issued = self.sets.flush_members(id, Owner::CheckpointFlush, io);
        self.sets.get_mut(id).tasks.begin_flushes(issued, self.base.now);
        issued == 0
    }

    fn with_set(&mut self, array: ArrayId, change: impl FnOnce(&mut Set)) -> Result<AdminOutcome, AdminError> {
        let set = self.arrays.set_of(&self.sets, array)?;
        change(self.sets.get_mut(set));
        Ok(AdminOutcome::Done)
    }
}
