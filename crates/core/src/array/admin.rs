//! Carrying out the administrator's commands.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use openraid_format::{BitmapHeader, FeatureMap, MdLevel, Role, Superblock, BITMAP_HEADER_BYTES};
use openraid_units::{ArrayId, BlockSize, Bytes, DriveId, DriveLba, Instant, Sectors, SetId, Slot, Token};

use super::assemble::{Assembly, PlannedMember, Verdict};
use super::bad::{BadList, BadRange};
use super::bitmap::Bitmap;
use super::metadata::Metadata;
use super::set::{Counters, Intent, Life, Member, Place, Set, REPAIRS_MAX};
use super::volume::{Array, Volume};
use crate::actions::{Actions, NoticeKind};
use crate::adaptive::{Adaptive, Tuning};
use crate::admin::{
    AdminCommand, AdminError, AdminOutcome, AdminReply, MemberState, NewMember, Policy, TaskKind, WriteCache,
};
use crate::cache::figures::CacheFigures;
use crate::cache::is_cacheable;
use crate::cache::streams::Streams;
use crate::cache::sync::DirtyCount;
use crate::controller::Controller;
use crate::events::DriveInfo;
use crate::frames::{Frames, RUN_BYTES_MAX};
use crate::geometry::{Geometry, Level, SetSpec};
use crate::io::channel::Owner;
use crate::io::heads::Heads;
use crate::journal::session::{Session, SetJournal};
use crate::journal::JournalState;
use crate::occupancy::Occupancy;
use crate::reason::{FailReason, ReasonCounts};
use crate::slab::NONE;
use crate::slots::SlotSet;

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
}

impl Controller {
    pub(crate) fn on_admin(&mut self, token: Token, command: AdminCommand, actions: &mut Actions) {
        self.set_changed = true;
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
            AdminCommand::StartStriped { legs, superblocks } => self.start_striped(&legs, &superblocks),
            AdminCommand::StartPassthrough { drive } => self.start_passthrough(drive),
            AdminCommand::Stop { array } => match self.begin_stop(array) {
                Ok(()) => {
                    self.admin_waiting.push((token, Waiting::Stop(array)));
                    return;
                }
                Err(error) => Err(error),
            },
            AdminCommand::Fail { array, drive } => self.admin_fail(array, drive, actions),
            AdminCommand::Remove { array, drive } => self.admin_remove(array, drive),
            AdminCommand::Add { array, member } => self.admin_add(array, member, actions),
            AdminCommand::Replace { array, slot, with } => self.admin_replace(array, slot, with),
            AdminCommand::Scrub { array, repair } => self.admin_scrub(array, repair, actions),
            AdminCommand::Pause { array } => self.with_set(array, |set| set.paused = true),
            AdminCommand::Resume { array } => self.with_set(array, |set| set.paused = false),
            AdminCommand::StopScrub { array } => self.with_set(array, |set| {
                if set.task.as_ref().is_some_and(|t| matches!(t.kind, TaskKind::Check | TaskKind::Repair)) {
                    set.task = None;
                }
            }),
            AdminCommand::AttachJournal(found) => self.attach_journal(&found),
            AdminCommand::DetachJournal => match self.begin_detach_journal() {
                Ok(()) => {
                    self.admin_waiting.push((token, Waiting::DetachJournal));
                    return;
                }
                Err(error) => Err(error),
            },
            AdminCommand::DiscardJournalled { set_uuid } => self.discard_journalled(set_uuid),
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
            AdminCommand::ResetAdaptive { array } => self.set_of(array).map(|set| {
                self.reset_adaptive(set);
                AdminOutcome::Done
            }),
        };
        actions.admin.push(AdminReply { token, result });
    }

    fn set_policy(
        &mut self,
        array: ArrayId,
        policy: Policy,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.set_of(array)?;
        let background_depth = policy.background_depth.max(1);
        let split_section = policy.split_section.max(SECTION_MIN);
        let policy = Policy { background_depth, split_section, ..policy };
        let delay = self.limits.destage_delay;
        let old = core::mem::replace(&mut self.set_mut(id).policy, policy);
        if old.adaptive != policy.adaptive || Tuning::of(&old, delay) != Tuning::of(&policy, delay) {
            self.reset_adaptive(id);
        }
        self.sort_members(id);
        if old != policy {
            self.notice(id, None, None, NoticeKind::PolicyChanged { from: old, to: policy }, actions);
        }
        Ok(AdminOutcome::Done)
    }

    /// What waits for the members of a set is chosen as its policy says, and as they are.
    fn sort_members(&mut self, id: SetId) {
        let set = self.sets[id.index()].as_mut().expect("asked for a set that is there");
        set.is_flash = true;
        for member in set.members.iter().filter(|member| !member.removed) {
            self.channels.sort(member.drive, set.policy.sorting);
            set.is_flash &= self.channels.get(member.drive).is_some_and(|channel| !channel.info.rotational);
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
            };
            match result {
                Some(result) => {
                    self.admin_waiting.remove(at);
                    actions.admin.push(AdminReply { token, result });
                }
                None => at += 1,
            }
        }
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

    fn free_set(&mut self) -> Result<SetId, AdminError> {
        let index = self.sets.iter().position(Option::is_none).unwrap_or(self.sets.len());
        let id = u16::try_from(index).map_err(|_| AdminError::Full("set"))?;
        if index == self.sets.len() {
            self.sets.push(None);
        }
        Ok(SetId(id))
    }

    fn add_array(
        &mut self,
        capacity: Sectors,
        block: BlockSize,
        stripe: Sectors,
        volume: Volume,
    ) -> Result<ArrayId, AdminError> {
        let index = self.arrays.iter().position(Option::is_none).unwrap_or(self.arrays.len());
        let id = u16::try_from(index).map_err(|_| AdminError::Full("array"))?;
        let piece = self.piece_of(stripe.bytes());
        let array = Array {
            capacity,
            block,
            volume,
            piece,
            stopping: false,
            outer: 0,
            requests: [0; 4],
            bytes: [0; 2],
            streams: Box::new(Streams::new()),
            adaptive: Box::new(Adaptive::new(self.now)),
            is_adaptive: false,
            inside: Occupancy::default(),
        };
        if index == self.arrays.len() {
            self.arrays.push(Some(array));
        } else {
            self.arrays[index] = Some(array);
        }
        Ok(ArrayId(id))
    }

    /// How long pieces of requests are: whole stripes, up to a quarter of the frames.
    fn piece_of(&self, stripe: Bytes) -> Bytes {
        let max = self.limits.piece_bytes_max;
        if stripe <= max {
            max.round_down(stripe)
        } else if stripe <= self.limits.host_bytes() / 4 && stripe <= RUN_BYTES_MAX {
            stripe
        } else {
            max
        }
    }

    pub(crate) fn claim(&mut self, drives: &[DriveId], set: SetId) -> Result<(), AdminError> {
        for (at, drive) in drives.iter().enumerate() {
            let channel = self.channels.get(*drive).ok_or(AdminError::NoSuchDrive(*drive))?;
            if channel.set.is_some() || drives[..at].contains(drive) {
                return Err(AdminError::DriveBusy(*drive));
            }
        }
        for drive in drives {
            self.channels.get_mut(*drive).expect("just seen").set = Some(set);
        }
        Ok(())
    }

    fn start_set(&mut self, assembly: &Assembly) -> Result<(ArrayId, SetId), AdminError> {
        let id = self.free_set()?;
        let drives: Vec<DriveId> = assembly.members.iter().map(|m| m.drive).collect();
        self.claim(&drives, id)?;
        let block = drives
            .iter()
            .filter_map(|d| self.channels.get(*d))
            .map(|c| c.info.block)
            .max()
            .ok_or(AdminError::NotPossible("the array has no member"))?;
        let rows_max = match self.rows_max_with_log(assembly, block) {
            Ok(rows) => rows,
            Err(error) => {
                self.release_drives(&drives);
                return Err(error);
            }
        };
        let capacity = assembly.geometry.capacity().round_down(block.sectors());
        let array = match self.add_array(capacity, block, assembly.geometry.full_stripe(), Volume::Direct(id)) {
            Ok(array) => array,
            Err(error) => {
                self.release_drives(&drives);
                return Err(error);
            }
        };
        let mut set = self.new_set(array, assembly.geometry.clone(), block, rows_max);
        let mut common = assembly.common.clone();
        common.recovery_or_tail = 0;
        set.metadata = Some(Metadata::new(common));
        for planned in &assembly.members {
            let index = u32::try_from(set.members.len()).expect("few members");
            let member = planned_member(planned);
            if let Some(slot) = member.slot {
                let place = &mut set.places[slot.index()];
                if member.replacement {
                    place.replacement = index
                } else {
                    place.member = index
                }
            }
            set.members.push(member);
        }
        set.bitmap = assembly.bitmap.as_ref().map(|planned| start_bitmap(planned, assembly));
        set.resync_by_bitmap = set.bitmap.is_some() && !assembly.fresh;
        set.consistent_to = assembly.resync_from.unwrap_or(Sectors::MAX);
        set.refresh();
        let newest = assembly.common.events;
        if assembly.members.iter().any(|m| m.verdict != Verdict::Spare && m.superblock.events < newest) {
            set.metadata.as_mut().expect("just put").request_catch_up();
        }
        note_absence(&mut set, assembly);
        if assembly.fresh || assembly.forced.is_some() {
            set.metadata.as_mut().expect("just put").request();
            set.life = if assembly.fresh { Life::Starting } else { Life::Running };
        }
        self.start_ppl(&mut set, assembly);
        if let Err(error) = self.enlist_for_replay(id, &mut set) {
            self.release_drives(&drives);
            self.arrays[array.index()] = None;
            return Err(error);
        }
        self.sets[id.index()] = Some(set);
        self.sort_members(id);
        Ok((array, id))
    }

    /// A set whose members say that the journal holds promises for it is loaded from there before it runs.
    fn enlist_for_replay(&mut self, id: SetId, set: &mut Set) -> Result<(), AdminError> {
        let common = &set.metadata.as_ref().expect("just put").common;
        let index = self.journal.superblock.as_ref().and_then(|superblock| superblock.index_of(common.set_uuid));
        if !common.features.contains(FeatureMap::CONTROLLER_JOURNAL) {
            // What the journal still has of it was void when it was stopped, or given up.
            if let Some(index) = index {
                self.journal.log.settle_array(index);
            }
            return Ok(());
        }
        let works = matches!(self.journal.state, JournalState::Live | JournalState::Opening);
        let (Some(index), true) = (index, works) else {
            return Err(AdminError::NotPossible(
                "a journal holds writes that this array has promised to keep, and it is not the one that is here: start the \
                 server with that journal (--journal), or give those writes up (assemble with --journal-lost)",
            ));
        };
        if !self.journal.can_replay(index) {
            return Err(AdminError::NotPossible(
                "the journal keeps writes of this array that came after the server was started: start the server anew, so that \
                 it reads them",
            ));
        }
        let superblock = self.journal.superblock.as_ref().expect("just seen");
        set.journal.since = superblock.arrays[usize::from(index)].map_or(1, |array| array.first_sequence);
        set.journal.index = index;
        (set.journal.marked, set.journal.replaying) = (true, true);
        set.life = Life::Starting;
        self.journal.replay.want(id);
        Ok(())
    }

    /// A set that could not be started is as if it had never been.
    fn take_back(&mut self, array: ArrayId, id: SetId) {
        let log = &mut self.journal.log;
        self.cache.forget_set(id, |sequence| log.unpin_if_held(sequence));
        let drives: Vec<DriveId> = self.set(id).members.iter().map(|m| m.drive).collect();
        self.release_drives(&drives);
        self.sets[id.index()] = None;
        self.arrays[array.index()] = None;
    }

    fn new_set(&self, array: ArrayId, geometry: Geometry, block: BlockSize, rows_max: u32) -> Set {
        let slots = usize::from(geometry.members());
        Set {
            array,
            life: Life::Running,
            block,
            rows_max,
            members: Vec::new(),
            places: alloc::vec![Place { member: NONE, replacement: NONE }; slots],
            in_sync: SlotSet::EMPTY,
            writable: SlotSet::EMPTY,
            has_bad: false,
            metadata: None,
            intent: Intent::Clean,
            bitmap: None,
            ppl: None,
            clean_flushes: 0,
            bitmap_flushes: 0,
            checkpoint_flushes: 0,
            bitmap_next_look: self.now + self.limits.bitmap_clear_delay,
            consistent_to: Sectors::MAX,
            resync_by_bitmap: false,
            task: None,
            next_task_id: 0,
            finished: None,
            last_scrub_mismatches: None,
            paused: false,
            repairs: VecDeque::with_capacity(REPAIRS_MAX + 1),
            repairing: 0,
            policy: Policy::default(),
            reasons: ReasonCounts::default(),
            ops: 0,
            direct_writes: 0,
            writers: 0,
            last_write: Instant::ZERO,
            dirty: DirtyCount::default(),
            journal: SetJournal::NONE,
            is_flash: false,
            cached: CacheFigures::default(),
            is_cacheable: is_cacheable(&geometry),
            heads: Heads::new(slots, Tuning::of(&Policy::default(), self.limits.destage_delay)),
            geometry,
        }
    }

    /// Rows that one operation may cover, so that its buffers, one for each member and so many more, fit into a zone of
    /// the work frames.
    pub(crate) fn rows_max_of(&self, geometry: &Geometry, block: BlockSize, more: u64) -> Result<u32, AdminError> {
        let zone = Frames::zone_bytes(self.limits.work.get());
        let members = u64::from(geometry.members()) + more;
        if (members * block.bytes().get()).next_power_of_two() > zone {
            return Err(AdminError::NotPossible(
                "the work frames are too few for so many members; give the server more",
            ));
        }
        // Runs are powers of two: half of the share is sure to fit.
        let rows = ((zone / members / 2) >> openraid_units::SECTOR_SHIFT).min(self.limits.rows_max.get());
        // All that one operation writes must fit into one entry of the journal.
        let entry = self.journal.buffer_sectors.get() / members;
        let rows = if self.limits.journal.is_zero() { rows } else { rows.min(entry) };
        let rows = (rows - rows % 8).max(block.sectors().get());
        Ok(u32::try_from(rows).expect("rows are bounded by the limits"))
    }

    fn start_striped(&mut self, legs: &[ArrayId], superblocks: &[Superblock]) -> Result<AdminOutcome, AdminError> {
        if legs.is_empty() || legs.len() != superblocks.len() {
            return Err(AdminError::NotPossible("a nested array needs one outer superblock for each leg"));
        }
        let outer = &superblocks[0];
        if outer.level != MdLevel::Raid0 || usize::from(outer.raid_disks) != legs.len() {
            return Err(AdminError::NotPossible(
                "the legs' outer superblocks are not of a RAID 0 over just these legs",
            ));
        }
        let mut pairs = Vec::new();
        let mut block = BlockSize::B512;
        for (leg, superblock) in legs.iter().zip(superblocks) {
            let array = self.array(*leg).ok_or(AdminError::NoSuchArray(*leg))?;
            let Volume::Direct(set) = array.volume else {
                return Err(AdminError::NotPossible("a leg of a nested array cannot be nested itself"));
            };
            let need = Sectors(superblock.data_offset.get().saturating_add(superblock.data_size.get()));
            if need > array.capacity {
                return Err(AdminError::TooSmall { have: array.capacity, need });
            }
            block = block.max(array.block);
            pairs.push((set, superblock.data_offset.offset()));
        }
        let sizes: Vec<Sectors> = superblocks.iter().map(|s| s.data_size).collect();
        let said = outer.features.contains(FeatureMap::RAID0_LAYOUT);
        let spec = SetSpec {
            level: Level::Raid0,
            members: outer.raid_disks,
            chunk: outer.chunk,
            layout: if said { outer.layout } else { 0 },
            member_size: Sectors::ZERO,
            member_sizes: &sizes,
        };
        let geometry = Geometry::new(&spec).map_err(|e| AdminError::Refused(e.to_string()))?;
        let Geometry::Striped(geometry) = geometry else { unreachable!("RAID 0 is striped") };
        let capacity = geometry.capacity().round_down(block.sectors());
        let array =
            self.add_array(capacity, block, geometry.full_stripe(), Volume::Striped { geometry, legs: pairs })?;
        for leg in legs {
            let entry = self.arrays[leg.index()].as_mut().expect("just seen");
            entry.outer += 1;
            // Requests are cut on the outer array's blocks: a leg that lacks its coarsest member takes them too.
            entry.block = block;
            let Volume::Direct(set) = entry.volume else { unreachable!("just seen") };
            self.set_mut(set).block = block;
        }
        let Some(Volume::Striped { legs: sets, .. }) = self.array(array).map(|array| &array.volume) else {
            unreachable!("just made")
        };
        let first = sets[0].0;
        self.reset_adaptive(first);
        Ok(AdminOutcome::Started(array))
    }

    fn start_passthrough(&mut self, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let id = self.free_set()?;
        let info = self.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?.info;
        let spec = SetSpec {
            level: Level::Passthrough,
            members: 1,
            chunk: Sectors::ZERO,
            layout: 0,
            member_size: info.capacity,
            member_sizes: &[],
        };
        let geometry = Geometry::new(&spec).map_err(|e| AdminError::Refused(e.to_string()))?;
        let rows_max = self.rows_max_of(&geometry, info.block, 0)?;
        self.claim(&[drive], id)?;
        let capacity = info.capacity.round_down(info.block.sectors());
        let array = self.add_array(capacity, info.block, geometry.full_stripe(), Volume::Direct(id))?;
        let mut set = self.new_set(array, geometry, info.block, rows_max);
        set.members.push(new_member(drive, Some(Slot(0)), MemberState::InSync, DriveLba::ZERO, None, &[]));
        set.places[0].member = 0;
        set.refresh();
        self.sets[id.index()] = Some(set);
        self.sort_members(id);
        Ok(AdminOutcome::Started(array))
    }

    pub(crate) fn release_drives(&mut self, drives: &[DriveId]) {
        for drive in drives {
            if let Some(channel) = self.channels.get_mut(*drive) {
                channel.set = None;
            }
        }
    }

    fn check_started(&mut self, array: ArrayId, id: SetId) -> Option<Result<AdminOutcome, AdminError>> {
        let set = self.set_mut(id);
        let log_error = set.ppl.as_ref().and_then(|ppl| ppl.error);
        if let Some(why) = set.journal.replay_error.or(log_error) {
            self.take_back(array, id);
            return Some(Err(AdminError::NotPossible(why)));
        }
        match set.life {
            Life::Starting if set.is_replaying() || set.ppl.as_ref().is_some_and(|ppl| !ppl.is_ready()) => return None,
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
        self.set_changed = true;
        Some(Ok(AdminOutcome::Started(array)))
    }

    fn begin_stop(&mut self, id: ArrayId) -> Result<(), AdminError> {
        let array = self.arrays.get_mut(id.index()).and_then(Option::as_mut).ok_or(AdminError::NoSuchArray(id))?;
        if array.outer > 0 {
            return Err(AdminError::NotPossible("a nested array runs on this one; stop that one first"));
        }
        array.stopping = true;
        if let Volume::Direct(set) = array.volume {
            let set = self.set_mut(set);
            if set.life != Life::Failed {
                set.life = Life::Stopping;
            }
            set.repairs.clear();
            // What is dirty is written without delay from here on.
            self.cache.syncs += 1;
        }
        Ok(())
    }

    fn check_stopped(&mut self, id: ArrayId, actions: &mut Actions) -> Option<Result<AdminOutcome, AdminError>> {
        let array = self.array(id)?;
        if self.requests.iter().any(|(_, r)| r.request.array == id) {
            return None;
        }
        if let Volume::Striped { legs, .. } = &array.volume {
            let sets: Vec<SetId> = legs.iter().map(|(set, _)| *set).collect();
            for set in sets {
                let leg = self.set(set).array;
                self.arrays[leg.index()].as_mut().expect("legs outlive the outer array").outer -= 1;
            }
            self.arrays[id.index()] = None;
            return Some(Ok(AdminOutcome::Done));
        }
        let Volume::Direct(set_id) = array.volume else { unreachable!("the other kind is dealt with") };
        let set = self.set_mut(set_id);
        let failed = set.life == Life::Failed;
        if !failed && !set.dirty.failed && set.dirty.all() > 0 {
            return None;
        }
        let flushes = set.clean_flushes + set.bitmap_flushes + set.checkpoint_flushes;
        let busy = set.ops > 0 || flushes > 0 || set.is_ppl_busy();
        if busy {
            return None;
        }
        if !failed && !self.is_settled(set_id, actions) {
            return None;
        }
        let log = &mut self.journal.log;
        let lost = self.cache.forget_set(set_id, |sequence| log.unpin_if_held(sequence));
        let preserved = self.preserve_entries(set_id);
        if lost > 0 && !preserved {
            self.notice(set_id, None, None, NoticeKind::DirtyLost { sectors: lost }, actions);
        }
        self.cache.syncs -= 1;
        let drives: Vec<DriveId> = self.set(set_id).members.iter().map(|m| m.drive).collect();
        self.release_drives(&drives);
        self.sets[set_id.index()] = None;
        self.arrays[id.index()] = None;
        Some(Ok(AdminOutcome::Done))
    }

    /// Nothing of a stopping set is left to be written: the progress of its task, the clean mark, its bitmap.
    fn is_settled(&mut self, id: SetId, actions: &mut Actions) -> bool {
        let set = self.set_mut(id);
        if let Some(task) = &mut set.task {
            if task.position > task.flushed {
                task.flushed = task.position;
                let issued = self.flush_members(id, Owner::CheckpointFlush, actions);
                self.set_mut(id).checkpoint_flushes = issued;
                if issued > 0 {
                    return false;
                }
            }
            self.store_checkpoint(id);
            self.set_mut(id).task = None;
            return false;
        }
        let set = self.set(id);
        let written =
            set.metadata.as_ref().is_none_or(|m| m.durable == m.wanted && m.wave == super::metadata::Wave::Idle);
        // A set in doubt stays marked active.
        let ended = set.journal.session == Session::Off;
        // Nor does the session of a set end whose members do not take what it holds: it is replayed at the next start.
        let stuck = set.journal.session == Session::On && set.journal.stuck;
        let marked = (set.intent == Intent::Clean && ended) || set.is_in_doubt() || stuck;
        if !written || !marked || set.bitmap.as_ref().is_some_and(Bitmap::is_writing) {
            return false;
        }
        // The clean mark comes after a flush; sets that have none are flushed here.
        let issued = self.flush_members(id, Owner::CheckpointFlush, actions);
        self.set_mut(id).checkpoint_flushes += issued;
        issued == 0
    }

    fn set_of(&self, id: ArrayId) -> Result<SetId, AdminError> {
        let array = self.array(id).ok_or(AdminError::NoSuchArray(id))?;
        match array.volume {
            Volume::Direct(set) => match self.set(set).life {
                Life::Running => Ok(set),
                Life::Starting | Life::Stopping | Life::Failed => Err(AdminError::Offline),
            },
            Volume::Striped { .. } => {
                Err(AdminError::NotPossible("this is a nested array: name the leg that the member belongs to"))
            }
        }
    }

    fn with_set(&mut self, array: ArrayId, change: impl FnOnce(&mut Set)) -> Result<AdminOutcome, AdminError> {
        let set = self.set_of(array)?;
        change(self.set_mut(set));
        Ok(AdminOutcome::Done)
    }

    fn admin_fail(
        &mut self,
        array: ArrayId,
        drive: DriveId,
        actions: &mut Actions,
    ) -> Result<AdminOutcome, AdminError> {
        let id = self.set_of(array)?;
        let set = self.set(id);
        if !set.is_redundant() {
            return Err(AdminError::NoRedundancy);
        }
        let index = set.member_by_drive(drive).ok_or(AdminError::NoSuchDrive(drive))?;
        let member = &set.members[index];
        if member.state == MemberState::InSync && !member.replacement {
            let slot = member.slot.expect("a working member has a slot");
            if !self.survives_without(id, slot) {
                return Err(AdminError::WouldLoseArray);
            }
        }
        let index = u32::try_from(index).expect("few members");
        self.fail_member(id, index, FailReason::Administrator, actions);
        Ok(AdminOutcome::Done)
    }

    fn admin_remove(&mut self, array: ArrayId, drive: DriveId) -> Result<AdminOutcome, AdminError> {
        let id = self.set_of(array)?;
        let set = self.set_mut(id);
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
        let id = self.set_of(array)?;
        if !self.set(id).is_redundant() {
            return Err(AdminError::NoRedundancy);
        }
        if self.channels.outstanding(new.drive) > 0 {
            return Err(AdminError::CommandsOutstanding(new.drive));
        }
        let info = self.channels.get(new.drive).ok_or(AdminError::NoSuchDrive(new.drive))?.info;
        let set = self.set(id);
        if info.block > set.block {
            return Err(AdminError::NotPossible(
                "the drive's logical block is larger than the array's; it cannot hold its writes",
            ));
        }
        let need = set.metadata.as_ref().map_or(Sectors::ZERO, |m| m.common.size);
        if new.superblock.data_size < need {
            return Err(AdminError::TooSmall { have: new.superblock.data_size, need });
        }
        self.claim(&[new.drive], id)?;
        let by_bitmap = self.slot_by_bitmap(id, &new.superblock).filter(|_| new.returning);
        let set = self.set_mut(id);
        let used = |n: u32| set.members.iter().any(|m| !m.removed && m.number() == Some(n));
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
        let vacant = set.members.iter().position(|m| m.removed && m.flushing == 0);
        match vacant {
            Some(index) => set.members[index] = member,
            None => set.members.push(member),
        }
        let index = vacant.unwrap_or(set.members.len() - 1);
        self.prepare_log(id, index, actions);
        self.sort_members(id);
        Ok(AdminOutcome::Done)
    }

    /// A member that comes back needs only what the bitmap marks, if it was in this array when the bits of what
    /// it has missed were not yet cleared, and if the slot that it had is still vacant: that slot.
    fn slot_by_bitmap(&self, id: SetId, superblock: &Superblock) -> Option<Slot> {
        let set = self.set(id);
        let header = BitmapHeader::decode(set.bitmap.as_ref()?.header()).ok()?;
        let metadata = set.metadata.as_ref()?;
        let Role::Active(slot) = superblock.role() else { return None };
        let returns = superblock.set_uuid == metadata.common.set_uuid
            && slot.0 < set.slots()
            && set.places[slot.index()].member == NONE
            && superblock.recovery_offset().is_none()
            // What its bad-block log names is bad there whatever the bits say: all of it is restored.
            && !superblock.features.contains(FeatureMap::BAD_BLOCKS)
            && superblock.events >= header.events_cleared;
        returns.then_some(slot)
    }

    fn admin_replace(&mut self, array: ArrayId, slot: Slot, with: Option<DriveId>) -> Result<AdminOutcome, AdminError> {
        let id = self.set_of(array)?;
        let set = self.set(id);
        if slot.0 >= set.slots() || !set.in_sync.contains(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if set.places[slot.index()].replacement != NONE {
            return Err(AdminError::NotPossible("this member is being replaced already"));
        }
        let suits =
            |m: &Member| m.state == MemberState::Spare && !m.removed && with.is_none_or(|drive| m.drive == drive);
        let spare = set
            .members
            .iter()
            .position(suits)
            .ok_or(AdminError::NotPossible("there is no spare to replace it with; add one first"))?;
        if set.ppl.as_ref().is_some_and(|ppl| ppl.setups > 0) {
            return Err(AdminError::NotPossible(
                "the partial parity log of a spare is being prepared; try again in a moment",
            ));
        }
        if self.channels.outstanding(set.members[spare].drive) > 0 {
            return Err(AdminError::CommandsOutstanding(set.members[spare].drive));
        }
        let set = self.set_mut(id);
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

    fn admin_scrub(&mut self, array: ArrayId, repair: bool, actions: &mut Actions) -> Result<AdminOutcome, AdminError> {
        let id = self.set_of(array)?;
        let set = self.set(id);
        if !set.is_redundant() {
            return Err(AdminError::NoRedundancy);
        }
        if set.task.is_some() {
            return Err(AdminError::NotPossible("another task is running on this array; wait for it or stop it"));
        }
        let kind = if repair { TaskKind::Repair } else { TaskKind::Check };
        self.put_task(id, kind, None, Sectors::ZERO, false);
        self.notice(id, None, None, NoticeKind::CheckStarted, actions);
        Ok(AdminOutcome::Done)
    }
}

impl Member {
    /// Its number in the role table.
    pub(crate) fn number(&self) -> Option<u32> {
        self.superblock.as_ref().map(|s| s.dev_number)
    }
}

fn new_member(
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
        replacement: false,
        state,
        data_offset,
        bad: BadList::new(superblock.as_ref(), known_bad),
        superblock: superblock.map(Box::new),
        // What was written before this start may still be in the drive's cache.
        unflushed: true,
        in_doubt: false,
        flushing: 0,
        media_errors: 0,
        by_bitmap: None,
        removed: false,
        counters: Counters::default(),
    }
}

/// If the superblocks call somebody a member who is not there, what is recorded next says so.
fn note_absence(set: &mut Set, assembly: &Assembly) {
    let missing = |role: Role| matches!(role, Role::Active(slot) if assembly.missing.contains(slot));
    if assembly.fresh || !assembly.common.roles.iter().any(missing) {
        return;
    }
    let metadata = set.metadata.as_mut().expect("sets that were assembled have metadata");
    metadata.note_absence();
    if assembly.resync_from.is_some() || assembly.ppl.as_ref().is_some_and(|ppl| ppl.dirty) {
        // It is marked as active already: nothing else would be recorded before the first write is answered.
        metadata.request_failure();
    }
}

fn planned_member(planned: &PlannedMember) -> Member {
    let (slot, state, replacement) = match planned.verdict {
        Verdict::Member(slot) | Verdict::Forced(slot) => (Some(slot), MemberState::InSync, false),
        Verdict::Rebuilding(slot, to) => (Some(slot), MemberState::Rebuilding { to }, false),
        Verdict::Replacement(slot, to) => (Some(slot), MemberState::Rebuilding { to }, true),
        Verdict::Spare => (None, MemberState::Spare, false),
        Verdict::Stale { .. } | Verdict::Failed | Verdict::SlotTaken(_) => {
            unreachable!("these are left out of the plan")
        }
    };
    let superblock = planned.superblock.clone();
    let mut member = new_member(planned.drive, slot, state, superblock.data_offset, Some(superblock), &planned.bad);
    member.replacement = replacement;
    member
}

fn start_bitmap(planned: &super::assemble::PlannedBitmap, assembly: &Assembly) -> Bitmap {
    let mut header = [0; BITMAP_HEADER_BYTES];
    let fixed: &BitmapHeader = &planned.header;
    fixed.encode(&mut header);
    let geometry = fixed.geometry();
    let mut bitmap = Bitmap::new(&header, &planned.bits, geometry.chunk, geometry.bits);
    // A crash in the first sync of a new array leaves it to the bits to say what is still to be done: all.
    if !planned.valid || (assembly.fresh && assembly.resync_from.is_some()) {
        bitmap.set_all();
    }
    if assembly.resync_from.is_some() {
        bitmap.mark_stale();
    }
    if assembly.fresh || !planned.valid {
        bitmap.touch_all();
    }
    bitmap
}
