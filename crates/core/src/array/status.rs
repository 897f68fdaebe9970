//! The status of the controller's arrays.

use alloc::vec::Vec;
use openraid_format::DeviceFlags;
use openraid_units::{ArrayId, DriveId, Instant, Sectors, Slot};

use super::set::{Life, Set};
use super::volume::Volume;
use crate::admin::{ArrayStatus, Health, MemberState, MemberStatus, TaskKind, TaskStatus};
use crate::cache::figures::CacheFigures;
use crate::controller::Controller;
use crate::io::channel::DriveLoad;
use crate::occupancy::Occupied;
use crate::planted::Flaw;

impl Controller {
    /// Work of a drive since it was attached, at this time, which is not before that of the last `advance`.
    #[must_use]
    pub fn drive_load(&self, drive: DriveId, now: Instant) -> Option<DriveLoad> {
        self.base.channels.load(drive, now.max(self.base.now))
    }

    /// Requests of hosts inside an array, at this time, which is not before that of the last `advance`.
    #[must_use]
    pub fn host_load(&self, array: ArrayId, now: Instant) -> Option<Occupied> {
        self.arrays.find(array).map(|array| array.inside.at(now.max(self.base.now)))
    }

    /// The arrays that run, spans of nested ones included.
    pub fn arrays(&self) -> impl Iterator<Item = ArrayId> + '_ {
        self.arrays.iter().map(|(id, _)| id)
    }

    /// The status of an array.
    #[must_use]
    pub fn status(&self, id: ArrayId) -> Option<ArrayStatus> {
        let array = self.arrays.find(id)?;
        let sets: Vec<&Set> = (0..array.volume.set_count()).map(|i| self.sets.get(array.volume.set(i))).collect();
        let health = sets.iter().map(|s| s.recorded_health()).max_by_key(|h| match h {
            Health::Optimal => 0,
            Health::Degraded => 1,
            Health::Failed => 2,
        })?;
        let early = self.base.planted.has(Flaw::OptimalEarly) && health == Health::Degraded;
        let rebuilds = |set: &&Set| set.tasks.current().is_some_and(|task| task.kind() == TaskKind::Rebuild);
        let health = if early && sets.iter().any(rebuilds) { Health::Optimal } else { health };
        let direct = matches!(array.volume, Volume::Direct(_)).then(|| sets[0]);
        let metadata = direct.and_then(|s| s.metadata.as_ref());
        Some(ArrayStatus {
            array: id,
            capacity: array.capacity,
            whole_to: match direct {
                _ if sets.iter().all(|s| s.health() == Health::Optimal) => array.capacity,
                Some(set) => set.restored_to().min(array.capacity),
                None => Sectors::ZERO,
            },
            health,
            members: direct.map(|s| self.member_table(s)).unwrap_or_default(),
            sets: (0..sets.len()).map(|number| array.volume.set(number)).collect(),
            spans: if direct.is_some() { Vec::new() } else { sets.iter().map(|s| s.array).collect() },
            task: direct.and_then(|s| s.unrecorded_fill().or(s.tasks.current()).map(|t| task_status(s, t))),
            active: direct.is_some_and(|s| !s.mark.is_clean()),
            events: metadata.map_or(0, |m| m.common.events),
            consistent_to: direct.map_or(Sectors::MAX, |s| s.consistency.position()),
            bitmap: direct.and_then(|s| s.bitmap.as_ref()).map(super::bitmap::Bitmap::status),
            reasons: direct.map(|s| s.reasons.iter().collect()).unwrap_or_default(),
            requests: array.requests,
            bytes: array.bytes,
            cached: sets.iter().fold(CacheFigures::default(), |sum, set| sum + set.cached.figures()),
            ops: sets.iter().map(|s| s.ops).sum(),
            superblock: metadata.map(|m| (*m.common).clone()),
            block: array.block,
            policy: sets[0].policy,
            session: sets[0].journal.session(),
            in_journal: sets.iter().any(|s| s.may_be_in_journal()),
            adaptive: array.adaptive.status(sets[0].policy.adaptive, *sets[0].mirror_reads.tuning()),
            stopping: sets.iter().any(|s| s.life == Life::Stopping),
            last_scrub: direct.and_then(|s| s.tasks.scrub_status()),
        })
    }

    fn member_table(&self, set: &Set) -> Vec<MemberStatus> {
        let mut table = Vec::new();
        for (slot, place) in (0..set.slots()).map(Slot).zip(&set.places) {
            table.push(place.member().map_or_else(|| missing(slot), |index| self.member_status(set, index as usize)));
            table.extend(place.replacement().map(|index| self.member_status(set, index as usize)));
        }
        for (index, member) in set.members.iter().enumerate() {
            if member.slot().is_none() && !member.is_removed() {
                table.push(self.member_status(set, index));
            }
        }
        table
    }

    fn member_status(&self, set: &Set, index: usize) -> MemberStatus {
        let member = &set.members[index];
        let mut state = member.state;
        if let (MemberState::Rebuilding { to }, Some(task)) = (&mut state, set.tasks.current()) {
            let mine = task.slot() == member.slot();
            if mine && (member.is_replacement() == (task.kind() == TaskKind::Replace)) {
                *to = task.done_sectors();
            }
        }
        let unrecorded = set.unrecorded_fill().filter(|fill| fill.slot() == member.slot() && !member.is_replacement());
        if let (MemberState::InSync, Some(fill)) = (state, unrecorded) {
            state = MemberState::Rebuilding { to: Sectors(fill.total()) };
        }
        MemberStatus {
            slot: member.slot(),
            left: member.left(),
            drive: Some(member.drive),
            device: member.superblock.as_ref().map(|own| own.device_uuid),
            state,
            replacement: member.is_replacement(),
            flags: member.superblock.as_ref().map_or(DeviceFlags::default(), |own| own.device_flags),
            is_full: member.is_full(),
            media_errors: member.media_errors,
            bad_blocks: u32::try_from(member.bad.ranges().len()).expect("bounded"),
            outstanding: self.base.channels.outstanding(member.drive),
            sectors_read: member.counters.sectors_read,
            sectors_written: member.counters.sectors_written,
            reads: member.counters.reads,
            writes: member.counters.writes,
            flushes: member.counters.flushes,
        }
    }

    /// Known bad ranges of an array's members: slot and range.
    #[must_use]
    pub fn bad_ranges(&self, id: ArrayId) -> Vec<(Option<Slot>, super::BadRange)> {
        let Some(array) = self.arrays.find(id) else { return Vec::new() };
        let Volume::Direct(set) = array.volume else { return Vec::new() };
        self.sets.get(set).members.iter().flat_map(|m| m.bad.ranges().iter().map(|b| (m.slot(), *b))).collect()
    }
}

fn missing(slot: Slot) -> MemberStatus {
    MemberStatus {
        slot: Some(slot),
        left: None,
        drive: None,
        device: None,
        state: MemberState::Missing,
        replacement: false,
        flags: DeviceFlags::default(),
        is_full: false,
        media_errors: 0,
        bad_blocks: 0,
        outstanding: 0,
        sectors_read: 0,
        sectors_written: 0,
        reads: 0,
        writes: 0,
        flushes: 0,
    }
}

fn task_status(set: &Set, task: &crate::background::Task) -> TaskStatus {
    TaskStatus {
        kind: task.kind(),
        done: task.done_sectors(),
        total: Sectors(task.total()),
        paused: set.tasks.is_paused(),
        since: task.since(),
        done_at_start: task.done_at_start(),
        mismatches: if task.is_scrub() { set.tasks.mismatches() } else { 0 },
        scrub: task.is_scrub().then_some(set.tasks.scrub_mode()),
    }
}
