//! The steps of a destage operation that need the cache: the next band is chosen, copied and made clean.

use openraid_units::Instant;
use openraid_units::PoolOffset;
use openraid_units::Sectors;
use openraid_units::SetLba;

use crate::actions::Actions;
use crate::actions::JobColumn;
use crate::actions::JobKind;
use crate::cache::destage::{destage_places, pace_of, push_staging};
use crate::cache::lines::Mask;
use crate::call::Call;
use crate::controller::Controller;
use crate::geometry::cache_units::lines_of;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::io::state::footprint::narrow;
use crate::io::state::footprint::Extent;
use crate::io::state::gate_marks::end_write;
use crate::io::state::job::Job;
use crate::io::state::op::Computation;
use crate::io::state::op::DestageData;
use crate::io::state::op::OpKind;
use crate::io::state::op::OpPayload;
use crate::io::state::op::Phase;
use crate::io::state::row_frames::RowFrames;
use crate::io::steps::step::{release_work, CacheStep};
use crate::ppl::write_log::end_record;

impl Controller {
    /// Begin to write dirty units, as many as may be in work; true if one began.
    #[inline(never)]
    pub(crate) fn pump_destage(&mut self) -> bool {
        if self.journal.holds_destage() {
            return false;
        }
        let (mut moved, places) = (false, destage_places(&self.base.channels, &self.base.limits));
        while self.cache.may_destage(&self.ops, &self.base.limits, places) && self.sets.has_signal_room(2) {
            let presses = self.journal.presses();
            let Self { cache, sets, .. } = self;
            let Some(unit) = cache.pick(self.base.now, |set| pace_of(sets, set, places), presses) else { break };
            let entry = *self.cache.units.get(unit);
            if !core::mem::replace(&mut moved, true) {
                let sweeps = pace_of(&self.sets, entry.set(), places).sweeps();
                self.cache.glance_at_units(entry.set(), sweeps);
            }
            if self.sets.get(entry.set()).has_failed() {
                self.cache.hold_unit(&mut self.sets, &mut self.journal, unit);
                continue;
            }
            let op = self.cache.begin_unit(&self.sets, &self.journal, unit);
            let data = *op.destage();
            self.sets.get_mut(entry.set()).reasons.count(data.why);
            self.cache.begin_writing(self.base.now, entry.set(), data.lines);
            self.start_op(op);
        }
        moved
    }

    /// The time at which destage must be called again.
    pub(crate) fn destage_deadline(&self) -> Option<Instant> {
        let places = destage_places(&self.base.channels, &self.base.limits);
        if !self.cache.may_destage(&self.ops, &self.base.limits, places) || self.journal.holds_destage() {
            return None;
        }
        self.cache.next_due(self.base.now, |set| pace_of(&self.sets, set, places), self.journal.presses())
    }

    /// Do a step of a destage that changes the cache, and the steps after it that follow at once.
    pub(crate) fn step_destage(&mut self, index: u32, mut step: CacheStep, actions: &mut Actions) {
        if self.ops[index].kind() == OpKind::Destage {
            if step == CacheStep::Clean {
                self.run_written(index);
            }
            return self.next_run(index, actions);
        }
        loop {
            let next = match step {
                CacheStep::Choose => self.next_band(index, actions),
                CacheStep::Stage => {
                    self.stage_rows(index, actions);
                    self.op_io(actions).read_old(index).of_destage()
                }
                CacheStep::Clean => {
                    self.band_written(index);
                    self.next_band(index, actions)
                }
            };
            let Some(next) = next else { return };
            step = next;
        }
    }

    // ---- stripes

    /// Begin with the next dirty band of a stripe. If there is none, the operation has ended.
    fn next_band(&mut self, index: u32, actions: &mut Actions) -> Option<CacheStep> {
        if self.cache.next_band(&mut self.ops, &self.sets, index) {
            return self.op_io(actions).step_row_destage(index);
        }
        self.op_io(actions).finish_op(index);
        None
    }

    /// Copy the dirty sectors of the band into the operation's own frames.
    fn stage_rows(&mut self, index: u32, actions: &mut Actions) {
        let frames = RowFrames::of(&self.ops[index]);
        for slot in self.ops[index].band() {
            let op = &self.ops[index];
            let set = self.sets.get(op.set());
            let ((at, len), to) = (op.band_extent(set, slot), frames.named(op.geometry(set), slot));
            self.stage_extent(index, at, len, to, actions);
        }
    }

    /// The band is on the members: sectors that were not written since are clean.
    fn band_written(&mut self, index: u32) {
        let set = self.ops[index].set();
        let DestageData { unit: cache_unit, .. } = *self.ops[index].destage();
        for slot in self.ops[index].band() {
            let (at, len) = self.ops[index].band_extent(self.sets.get(self.ops[index].set()), slot);
            self.cache.extent_written(&mut self.journal, set, cache_unit, at, len);
        }
        self.journal.unlog(&mut self.sets, &mut self.ops[index]);
        end_record(&mut self.sets, &mut self.ops[index], self.base.planted);
        release_work(&mut self.ops, &mut self.pool, index);
        let op = &mut self.ops[index];
        op.rows_of_mut().end_band();
        op.plan_next_rows();
    }

    // ---- stretches

    /// Begin with the next dirty run of a stretch. If there is none, the operation has ended.
    fn next_run(&mut self, index: u32, actions: &mut Actions) {
        let op = &self.ops[index];
        let unit = self.cache.units.get(op.destage().unit);
        let stretch = op.stretch();
        let run = self.cache.dirty_run(unit, stretch.at, u64::from(stretch.part.to()));
        let Some((from, to)) = run else { return self.op_io(actions).finish_op(index) };
        if !self.op_io(actions).take_work(index, Sectors(to - from).bytes().get()) {
            return;
        }
        let op = &mut self.ops[index];
        op.part_mut().take(narrow(Sectors(from)), narrow(Sectors(to)));
        op.enter(Phase::Computing(Computation::Stage));
        let run = op.work().expect("just taken");
        op.bring(OpPayload::Host(run.at));
        let Extent { at, len, .. } = op.extent();
        self.stage_extent(index, at, len, run.at, actions);
    }

    /// The run is on the members.
    fn run_written(&mut self, index: u32) {
        let (set, Extent { at, len, .. }) = (self.ops[index].set(), self.ops[index].extent());
        self.cache.extent_written(&mut self.journal, set, self.ops[index].destage().unit, at, len);
        end_write(&mut self.sets, &mut self.ops[index], self.base.now, self.base.limits.clean_delay);
        self.journal.unlog(&mut self.sets, &mut self.ops[index]);
        release_work(&mut self.ops, &mut self.pool, index);
        let op = &mut self.ops[index];
        op.enter(Phase::Planning);
    }

    // ---- both

    /// Copy the lines of an extent, all of which is dirty, to `to`.
    fn stage_extent(&mut self, index: u32, at: SetLba, len: Sectors, to: PoolOffset, actions: &mut Actions) {
        let (set, cache_unit) = (self.ops[index].set(), self.ops[index].destage().unit);
        let mut columns = actions.columns.len();
        for (number, first, last) in lines_of(at, len) {
            let line = self.cache.line_in_unit(cache_unit, set, number).expect("dirty lines are not evicted");
            self.cache.stage_line(&mut self.journal, line, Mask::range(first, last));
            let place = Sectors(number * LINE_SECTORS + first - at.get()).bytes();
            let column = JobColumn { index: 0, at: to + place, old: self.cache.lines.frame(line, first) };
            if last - first < LINE_SECTORS {
                push_staging(&mut self.ops, index, columns, &mut Call::new(&mut self.base, actions));
                let start = actions.columns.len();
                actions.columns.push(column);
                let bytes = u32::try_from(Sectors(last - first).bytes().get()).expect("less than a line");
                self.ops.push_job(
                    index,
                    Job::new(JobKind::Copy, bytes, start),
                    &mut Call::new(&mut self.base, actions),
                );
                columns = actions.columns.len();
            } else {
                actions.columns.push(column);
            }
        }
        push_staging(&mut self.ops, index, columns, &mut Call::new(&mut self.base, actions));
    }
}
