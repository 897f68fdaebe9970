//! The state of arrays, members, drives and the cache, for readers.

use alloc::vec::Vec;
use openraid_units::ArrayId;
use openraid_units::DriveId;
use openraid_units::Instant;
use openraid_units::Sectors;
use openraid_units::Slot;

use crate::array::set::Life;
use crate::array::set::Set;
use crate::array::volume::Volume;
use crate::background::task_status;
use crate::cache::figures::CacheStatus;
use crate::cache::set_figures::CacheFigures;
use crate::controller::array_status::ArrayStatus;
use crate::controller::Controller;
use crate::io::state::drive_queues::DriveLoad;
use crate::journal::session::may_be_in_journal;
use crate::limits::STEPS_MAX;
use crate::occupancy::Occupied;
use crate::planted::Flaw;
use crate::request_steps::Step;
use crate::set_status::Health;
use crate::set_status::TaskKind;

impl Controller {
    /// Work of a drive since it was attached, at this time, which is not before that of the last `advance`.
    #[must_use]
    pub fn drive_load(&self, drive: DriveId, now: Instant) -> Option<DriveLoad> {
        self.base.channels.load(drive, now.max(self.base.now))
    }

    /// Requests of hosts inside an array, at this time, which is not before that of the last `advance`.
    #[must_use]
    pub fn host_load(&self, array: ArrayId, now: Instant) -> Option<Occupied> {
        self.arrays.find(array).map(|array| array.load().0.at(now.max(self.base.now)))
    }

    /// The arrays that run, spans of nested ones included.
    pub fn arrays(&self) -> impl Iterator<Item = ArrayId> + '_ {
        self.arrays.iter().map(|(id, _)| id)
    }

    /// The status of an array.
    #[must_use]
    pub fn status(&self, id: ArrayId) -> Option<ArrayStatus> {
        let array = self.arrays.find(id)?;
        let numbers = || (0..array.volume().set_count()).map(|number| array.volume().set(number));
        let sets: Vec<&Set> = numbers().map(|set| self.sets.get(set)).collect();
        let health = sets.iter().map(|s| s.recorded_health()).max_by_key(|h| match h {
            Health::Optimal => 0,
            Health::Degraded => 1,
            Health::Failed => 2,
        })?;
        let early = self.base.planted.has(Flaw::OptimalEarly) && health == Health::Degraded;
        let rebuilds = |set: &&Set| set.tasks.current().is_some_and(|task| task.kind() == TaskKind::Rebuild);
        let health = if early && sets.iter().any(rebuilds) { Health::Optimal } else { health };
        let direct = matches!(array.volume(), Volume::Direct(_)).then(|| sets[0]);
        let metadata = direct.and_then(|s| s.metadata.as_ref());
        let capacity = array.capacity(|set| self.sets.get(set).shape());
        Some(ArrayStatus {
            array: id,
            capacity,
            whole_to: match direct {
                _ if sets.iter().all(|s| s.health() == Health::Optimal) => capacity,
                Some(set) => set.restored_to().min(capacity),
                None => Sectors::ZERO,
            },
            health,
            members: direct.map(|s| s.member_table(|drive| self.base.channels.outstanding(drive))).unwrap_or_default(),
            sets: numbers().collect(),
            spans: if direct.is_some() { Vec::new() } else { sets.iter().map(|s| s.array()).collect() },
            task: direct.and_then(|s| {
                let task = s.unrecorded_fill().or(s.tasks.current()).map(|task| task_status(s, task));
                task.or_else(|| s.tasks.reshape().map(|reshape| reshape.task_status(s.tasks.is_paused())))
            }),
            reshape: direct.and_then(|s| s.tasks.reshape().map(|reshape| reshape.status())),
            active: direct.is_some_and(|s| !s.mark.is_clean()),
            events: metadata.map_or(0, |m| m.common().events),
            consistent_to: direct.map_or(Sectors::MAX, |s| s.consistency().position()),
            bitmap: direct.and_then(|s| s.bitmap.as_ref()).map(crate::array::write_intent_bitmap::Bitmap::status),
            reasons: direct.map(|s| s.reasons.iter().collect()).unwrap_or_default(),
            requests: array.hosted().0,
            bytes: array.hosted().1,
            cached: numbers().map(|set| self.cache.figures_of(set)).fold(CacheFigures::default(), |sum, set| sum + set),
            ops: sets.iter().map(|s| s.ops().all()).sum(),
            superblock: metadata.map(|m| m.common().clone()),
            block: array.block(),
            policy: *sets[0].policy(),
            session: sets[0].journal.session(),
            in_journal: sets.iter().any(|s| may_be_in_journal(s)),
            adaptive: array.load().1.status(sets[0].policy().adaptive, *sets[0].tuning()),
            stopping: sets.iter().any(|s| s.life() == Life::Stopping),
            last_scrub: direct.and_then(|s| s.tasks.scrub_status()),
        })
    }

    /// Known bad ranges of an array's members: slot and range.
    #[must_use]
    pub fn bad_ranges(&self, id: ArrayId) -> Vec<(Option<Slot>, crate::array::BadRange)> {
        let Some(array) = self.arrays.find(id) else { return Vec::new() };
        let Volume::Direct(set) = array.volume() else { return Vec::new() };
        self.sets.get(*set).bad_ranges()
    }

    /// The status of the cache, if there is one.
    #[must_use]
    pub fn cache_status(&self) -> Option<CacheStatus> {
        self.cache.status(self.base.now)
    }

    /// Figures of the cache since it started.
    #[must_use]
    pub fn cache_counters(&self) -> crate::cache::CacheCounters {
        self.cache.counters(self.base.now)
    }

    /// Keep the last `count` steps from now on, at most [`STEPS_MAX`]; with 0, keep none. Earlier steps are dropped.
    /// This takes memory, and is not an event: the engine's decisions do not change.
    pub fn keep_steps(&mut self, count: u32) {
        self.base.trace.keep_steps(count.min(STEPS_MAX) as usize);
    }

    /// The steps that are kept, the oldest first.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.base.trace.steps().kept()
    }

    /// Number of steps since [`Controller::keep_steps`], including dropped ones; `None` if none are kept.
    #[must_use]
    pub fn steps_traced(&self) -> Option<u64> {
        self.base.trace.steps().traced()
    }
}
