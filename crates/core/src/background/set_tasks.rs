//! The background work of one set: its task, the task that ended last, its last check, and rewrites of single sectors.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use openraid_units::{Instant, Nanos, Sectors, Slot};

use super::reshape_task::ReshapeTask;
use super::Task;
use crate::array::sector_rewrite::SectorRewrite;
use crate::check_results::{AbortReason, End, Gap, Scrub, ScrubMode, ScrubOutcome, ScrubStatus};
use crate::io::state::task_pace::{Pacing, TaskPace};
use crate::limits::{Limits, CHECKPOINT_INTERVALS_MAX, CHECKPOINT_SHARE, SHORT_FLUSH};
use crate::set_status::TaskKind;

/// Maximum number of ranges that wait for a rewrite. Further ones are found again when they are read again.
const REWRITES_MAX: usize = 64;
/// Maximum number of rewrites of one set at once.
const REWRITES_IN_WORK_MAX: u32 = 4;

/// See the module header.
#[derive(Debug)]
pub(crate) struct SetTasks {
    pub(super) task: Option<Task>,
    /// The change of the set's shape.
    reshape: Option<Box<ReshapeTask>>,
    last_id: u32,
    /// A task that has ended or was aborted, and whose end was not reported yet.
    finished: Option<Task>,
    /// A rebuild whose member is complete, until the superblocks record that.
    filled: Option<Task>,
    /// The check or repair that runs, or the last one.
    pub(super) scrub: Box<Scrub>,
    paused: bool,
    pub(super) pacing: Pacing,
    /// Ranges to be rewritten from redundancy because a read of them failed.
    rewrites: VecDeque<SectorRewrite>,
    /// Number of rewrites in work.
    rewriting: u32,
    /// Number of flushes under way before a checkpoint, their begin, and the time that the last ones took.
    flushes: u32,
    flushing_since: Instant,
    flush_time: Nanos,
    /// Maximum number of sectors of a unit of a task.
    pub(super) unit_max: u64,
    /// Maximum number of units in the window of a task.
    pub(super) window_max: u32,
}

impl SetTasks {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            task: None,
            reshape: None,
            last_id: 0,
            finished: None,
            filled: None,
            scrub: Box::new(Scrub::new(ScrubMode::Check, 0, Gap::NONE)),
            paused: false,
            pacing: Pacing::START,
            rewrites: VecDeque::with_capacity(REWRITES_MAX + 1),
            rewriting: 0,
            flushes: 0,
            flushing_since: Instant::ZERO,
            flush_time: Nanos::ZERO,
            unit_max: limits.background_unit_max.get(),
            window_max: limits.background_window_max,
        }
    }

    /// Sectors of a member that its task has done, or the change of its shape; none without either.
    pub(super) fn done_of_member(&self) -> Option<Sectors> {
        let done = self.task.as_ref().map(Task::done_sectors);
        done.or_else(|| self.reshape().map(|reshape| reshape.task_status(self.paused).done))
    }

    /// How much its task works on at once.
    pub(crate) const fn pace(&self) -> TaskPace {
        self.pacing.pace()
    }

    /// The task that runs.
    #[inline]
    pub(crate) const fn current(&self) -> Option<&Task> {
        self.task.as_ref()
    }

    /// As [`SetTasks::current`].
    pub(crate) const fn current_mut(&mut self) -> Option<&mut Task> {
        self.task.as_mut()
    }

    /// The change of the set's shape that is under way.
    #[inline]
    pub(crate) fn reshape(&self) -> Option<&ReshapeTask> {
        self.reshape.as_deref()
    }

    /// As [`SetTasks::reshape`].
    pub(crate) fn reshape_mut(&mut self) -> Option<&mut ReshapeTask> {
        self.reshape.as_deref_mut()
    }

    /// The set's shape changes from now on.
    pub(crate) fn begin_reshape(&mut self, reshape: ReshapeTask) {
        self.reshape = Some(Box::new(reshape));
    }

    /// The set has its new shape.
    pub(crate) fn end_reshape(&mut self) {
        self.reshape = None;
    }

    /// A number that distinguishes the next task, or the next check that cannot begin, from earlier ones.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// A check begins.
    pub(super) fn begin_scrub(&mut self, mode: ScrubMode, gap: Gap) {
        *self.scrub = Scrub::new(mode, self.last_id, gap);
    }

    /// The running task has ended or is aborted; its end will be reported.
    pub(super) fn finish(&mut self, task: Task) {
        self.finished = Some(task);
    }

    /// A rebuild has ended. Its end is reported after the generation of superblocks in `complete` is durable.
    pub(super) fn fill_ended(&mut self, task: Task) {
        self.filled = Some(task);
    }

    /// The rebuild that has ended although this durable generation of superblocks does not record its member as
    /// complete.
    pub(crate) fn unrecorded_fill(&self, durable: u64) -> Option<&Task> {
        self.filled.as_ref().filter(|task| durable < task.complete)
    }

    /// Take the rebuild whose end was not reported yet, if this durable generation of superblocks records it.
    pub(super) fn take_recorded_fill(&mut self, durable: u64) -> Option<Task> {
        self.filled.take_if(|task| durable >= task.complete)
    }

    /// A slot lost its member. True if a rebuild of the slot had ended and was not reported: it never will be.
    pub(crate) fn forget_fill(&mut self, slot: Option<Slot>) -> bool {
        self.filled.take_if(|task| task.slot() == slot).is_some()
    }

    /// The set has failed: no superblock is written any more.
    pub(crate) fn forget_fills(&mut self) {
        self.filled = None;
    }

    /// Take the task whose end was not reported yet.
    pub(super) fn take_finished(&mut self) -> Option<Task> {
        self.finished.take()
    }

    /// Take the check or repair whose end was not reported yet. The end of any other task of the set is dropped,
    /// without a report.
    pub(crate) fn take_finished_scrub(&mut self) -> Option<Task> {
        self.finished.take().filter(Task::is_scrub)
    }

    /// Drop the running task, with this reason.
    pub(crate) fn cancel(&mut self, why: AbortReason) {
        if let Some(mut task) = self.task.take() {
            task.finishing = false;
            task.aborted = Some(why);
            self.finished = Some(task);
        }
    }

    /// Drop the running task without a report: its work is recorded, or will be done again.
    pub(crate) fn forget_task(&mut self) {
        self.task = None;
    }

    /// The replacement of this slot has become its member. Filling it continues as a rebuild, from the last checkpoint.
    pub(crate) fn forget_replacement(&mut self, slot: Slot) {
        if self.task.as_ref().is_some_and(|task| task.kind() == TaskKind::Replace && task.slot() == Some(slot)) {
            self.task = None;
        }
    }

    /// An administrator pauses or resumes background work.
    pub(crate) fn pause(&mut self, is_paused: bool) {
        self.paused = is_paused;
    }

    /// Leave out the next unit of the task: a planted bug.
    pub(crate) fn skip_a_unit(&mut self) {
        if let Some(task) = self.task.as_mut().filter(|task| task.next < task.end) {
            let unit = task.next;
            task.next += 1;
            task.unit_done(unit);
        }
    }

    pub(crate) const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Number of mismatches that the running check has found so far.
    pub(crate) fn mismatches(&self) -> u64 {
        self.scrub.mismatches()
    }

    /// What the running check may change, or what the last one could change.
    pub(crate) fn scrub_mode(&self) -> ScrubMode {
        self.scrub.mode()
    }

    /// The result of the last check, if it has ended.
    pub(crate) fn scrub_status(&self) -> Option<ScrubStatus> {
        self.scrub.status()
    }

    /// Record how a check or repair ended, at this event count and time.
    pub(crate) fn end_scrub(&mut self, task: &Task, at: (u64, Instant)) -> ScrubOutcome {
        let total = Sectors(task.total);
        let done = task.done_sectors();
        let outcome = self.scrub.outcome(task.aborted, done, total);
        self.record_scrub(outcome, (total, done), at);
        outcome
    }

    /// Record that a check ended so, or could not begin.
    pub(super) fn record_scrub(
        &mut self,
        outcome: ScrubOutcome,
        (total, done): (Sectors, Sectors),
        (events, at): (u64, Instant),
    ) {
        self.scrub.end(End { outcome, at, events, total, done });
    }

    /// This number of flushes must end before a checkpoint is stored.
    pub(crate) fn begin_flushes(&mut self, count: u32, now: Instant) {
        if self.flushes == 0 {
            self.flushing_since = now;
        }
        self.flushes += count;
    }

    /// One of these flushes has ended; true if it was the last one.
    pub(crate) fn end_flush(&mut self, now: Instant) -> bool {
        self.flushes -= 1;
        if self.flushes > 0 {
            return false;
        }
        self.flush_time = now.since(self.flushing_since);
        true
    }

    /// The time from one checkpoint to the next, at least this. Flushes take at most a share of the time that the 99th
    /// percentile of hosts does not see: a disk writes its whole cache before it serves another request.
    pub(super) fn checkpoint_interval(&self, least: Nanos) -> Nanos {
        if self.flush_time <= SHORT_FLUSH {
            return least;
        }
        let rare = self.flush_time.get().saturating_mul(CHECKPOINT_SHARE);
        Nanos(rare.clamp(least.get(), least.get().saturating_mul(CHECKPOINT_INTERVALS_MAX)))
    }

    /// The last flush before a checkpoint has ended: the next one begins this interval after its begin, or later.
    pub(crate) fn space_checkpoints(&mut self, least: Nanos) {
        let next = self.flushing_since + self.checkpoint_interval(least);
        if let Some(task) = &mut self.task {
            task.next_checkpoint = task.next_checkpoint.max(next);
        }
    }

    pub(crate) const fn has_flushes(&self) -> bool {
        self.flushes > 0
    }

    /// Queue a range for rewrite, unless it is queued already or the queue is full; true if it was added.
    pub(crate) fn want_rewrite(&mut self, rewrite: SectorRewrite) -> bool {
        let is_new = self.rewrites.len() < REWRITES_MAX && !self.rewrites.contains(&rewrite);
        if is_new {
            self.rewrites.push_back(rewrite);
        }
        is_new
    }

    /// May one more rewrite begin?
    pub(super) const fn may_rewrite(&self) -> bool {
        self.rewriting < REWRITES_IN_WORK_MAX
    }

    /// The next range to be rewritten.
    pub(super) fn next_rewrite(&mut self) -> Option<SectorRewrite> {
        self.rewrites.pop_front()
    }

    /// A rewrite begins. If it covers only a part of its range, `rest` stays first in the queue.
    pub(super) fn begin_rewrite(&mut self, rest: Option<SectorRewrite>) {
        if let Some(rest) = rest {
            self.rewrites.push_front(rest);
        }
        self.rewriting += 1;
    }

    /// A rewrite is over.
    pub(super) fn end_rewrite(&mut self) {
        self.rewriting -= 1;
    }

    /// The set ends, or its shape changes: no more of these rewrites begin.
    pub(crate) fn forget_rewrites(&mut self) {
        self.rewrites.clear();
    }
}

/// Its state, for a list of all work in progress.
impl fmt::Display for SetTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} repairs, {} in work, {} flushes", self.rewrites.len(), self.rewriting, self.flushes)
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::MemberLba;

    use super::*;
    use crate::geometry::shape::Side;

    fn rewrite(at: u64) -> SectorRewrite {
        SectorRewrite::restored(Side::Old, Slot(1), MemberLba(at), Sectors(64))
    }

    #[test]
    fn a_range_waits_once_for_its_rewrite_and_no_more_than_64_do() {
        let mut tasks = SetTasks::new(&Limits::small());
        assert!(tasks.want_rewrite(rewrite(0)) && !tasks.want_rewrite(rewrite(0)));
        assert_eq!((1..100).filter(|number| tasks.want_rewrite(rewrite(number * 64))).count(), 63);
        assert_eq!(tasks.next_rewrite(), Some(rewrite(0)));
        assert!(tasks.want_rewrite(rewrite(0)), "it is not waiting any more");
        tasks.forget_rewrites();
        assert_eq!(tasks.next_rewrite(), None);
    }

    #[test]
    fn the_rest_of_a_range_is_rewritten_next_and_four_rewrites_are_in_work_at_the_most() {
        let mut tasks = SetTasks::new(&Limits::small());
        (0..8).for_each(|number| assert!(tasks.want_rewrite(rewrite(number * 64))));
        for _ in 0..4 {
            assert!(tasks.may_rewrite());
            assert_eq!(tasks.next_rewrite().map(|rewrite| rewrite.slot()), Some(Slot(1)));
            tasks.begin_rewrite(Some(rewrite(7777)));
            assert_eq!(tasks.next_rewrite(), Some(rewrite(7777)));
        }
        assert!(!tasks.may_rewrite());
        tasks.end_rewrite();
        assert!(tasks.may_rewrite());
    }

    #[test]
    fn a_checkpoint_is_stored_after_the_last_of_its_flushes() {
        let mut tasks = SetTasks::new(&Limits::small());
        tasks.begin_flushes(2, Instant::ZERO);
        assert!(tasks.has_flushes() && !tasks.end_flush(Instant::ZERO));
        assert!(tasks.end_flush(Instant::ZERO) && !tasks.has_flushes());
    }

    #[test]
    fn checkpoints_whose_flushes_take_long_are_rare() {
        let mut tasks = SetTasks::new(&Limits::small());
        let after = |millis: u64| Instant::ZERO + Nanos::from_millis(millis);
        // The longest of the flushes counts, from the first one on.
        let mut interval = |millis: u64| {
            tasks.begin_flushes(2, after(1_000));
            assert!(!tasks.end_flush(after(1_000)) && tasks.end_flush(after(1_000 + millis)));
            tasks.checkpoint_interval(Nanos::from_secs(10))
        };
        let intervals = [0, 50, 1_500, 3_000, 30_000].map(&mut interval);
        assert_eq!(intervals, [10, 10, 300, 600, 600].map(Nanos::from_secs));
        // Short flushes are not felt, also if checkpoints are to be frequent.
        tasks.begin_flushes(1, after(0));
        assert!(tasks.end_flush(after(50)));
        assert_eq!(tasks.checkpoint_interval(Nanos::from_millis(1)), Nanos::from_millis(1));
    }

    #[test]
    fn each_task_and_each_check_that_cannot_begin_has_a_number_of_its_own() {
        let mut tasks = SetTasks::new(&Limits::small());
        assert_eq!([tasks.next_id(), tasks.next_id()], [1, 2]);
        tasks.begin_scrub(ScrubMode::Repair, Gap::NONE);
        assert_eq!((tasks.scrub_mode(), tasks.mismatches(), tasks.scrub_status()), (ScrubMode::Repair, 0, None));
        tasks.pause(true);
        assert!(tasks.is_paused());
    }
}
