//! Destage: dirty units are written to the members, one operation for each unit, which locks the whole unit.
//!
//! A unit is written in bands: rows of a stripe in which the same columns are dirty, or runs of a range. When a band is
//! planned, its data is copied out of the lines. So it does not change until it is written, and is copied again if the
//! band must be planned again. Sectors that hosts write meanwhile stay dirty.

use openraid_units::{Instant, Nanos, Sectors, SetId, SetLba};

use super::dirty_bands::StripeLines;
use super::dirty_units::UnitState;
use super::shares::{AwaitedUnits, Pace};
use crate::actions::{JobKind, ReplyStatus};
use crate::array::set::{Life, Set};
use crate::array::sets::{Sets, Signal};
use crate::cache::lines::Mask;
use crate::cache::may_sweep;
use crate::cache::Cache;
use crate::call::Call;
use crate::geometry::cache_units::{lines_of, unit_sectors, LINE_SECTORS};
use crate::geometry::Geometry;
use crate::io::state::drive_queues::Channels;
use crate::io::state::footprint::{narrow, Columns, Stretch, StripeRows};
use crate::io::state::job::Job;
use crate::io::state::op::{DestageData, Op, UnitRange};
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::journal::Journal;
use crate::limits::Limits;
use crate::limits::FRAME_BYTES;
use crate::reason::Reason;
use crate::slab::NONE;
use crate::slot_set::SlotSet;

/// Maximum number of dirty units of a set in work, if the set is alone.
#[derive(Clone, Copy)]
pub(crate) struct DestagePlaces {
    /// While a write waits: for units that are written in order of address, so that the drives have something to sort.
    most: u32,
    /// For all other units.
    plain: u32,
    /// Memory or the journal is short.
    hurries: bool,
}

/// The dirty units of a set for which something waits. Units of a failed set are not written; they are held at once, so
/// that waiting pieces and requests get their error soon.
fn awaited_of(set: &Set) -> AwaitedUnits {
    if set.life() == Life::Stopping || set.has_failed() || set.journal.hurries() {
        AwaitedUnits::All
    } else if set.dirty.is_awaited() {
        AwaitedUnits::Before { epoch: set.dirty.epoch() }
    } else {
        AwaitedUnits::None
    }
}

/// How the dirty units of a set are written. If the set is being stopped, each unit is tried once.
pub(crate) fn pace_of(sets: &Sets, set: SetId, places: DestagePlaces) -> Pace {
    let Some(set) = sets.find(set) else {
        let delay = Nanos::ZERO;
        return Pace { awaited: AwaitedUnits::None, delay, again: true, sweeps: false, places: places.plain };
    };
    let (awaited, sweeps) = (awaited_of(set), set.policy().sorting && may_sweep(set));
    let hurries = places.hurries || awaited != AwaitedUnits::None;
    Pace {
        awaited,
        delay: set.tuning().destage_delay,
        again: set.life() != Life::Stopping,
        sweeps,
        places: if sweeps && hurries { places.most } else { places.plain },
    }
}

/// Lines no longer need these entries of the journal; 0 is none.
fn unpin_lines(journal: &mut Journal, pins: [u64; 2]) {
    for sequence in pins.into_iter().filter(|sequence| *sequence != 0) {
        journal.log_mut().unpin_if_held(sequence);
    }
}

impl Cache {
    /// Note whether something waits for destage.
    #[inline]
    pub(crate) fn note_hurry(
        &mut self,
        is_piece_waiting: bool,
        journal: &Journal,
        sets: &Sets,
        channels: &mut Channels,
    ) {
        let waited = is_piece_waiting | journal.is_short();
        let hurries = waited | self.draining | (journal.presses() > 0);
        channels.set_destage_hurries(hurries);
        if core::mem::take(&mut self.awaited_changed) {
            note_awaited(channels, sets);
        }
    }

    /// May one more dirty unit be in work? If operations wait for frames, the limit is the one for times without
    /// urgency, because a host may be waiting.
    pub(crate) fn may_destage(&self, ops: &Ops, limits: &Limits, places: DestagePlaces) -> bool {
        let most = if ops.are_frames_awaited() { places.plain } else { limits.destage_units_max };
        self.writing < most && ops.may_make_background_op()
    }

    /// The reason why a dirty unit with `len` sectors is written now.
    fn why_destaged(&self, sets: &Sets, journal: &Journal, unit: u32, len: Sectors) -> Reason {
        let entry = self.units.get(unit);
        if entry.urgent {
            Reason::DestageUrgent
        } else if u64::from(entry.sectors) == len.get() {
            Reason::DestageFull
        } else if awaited_of(sets.get(entry.set)).has(entry) {
            Reason::DestageUrgent
        } else if self.is_drained(entry.set) {
            Reason::DestagePressed
        } else if self.keeps_entry_below(unit, journal.presses()) {
            Reason::DestageForJournal
        } else {
            Reason::DestageAged
        }
    }

    /// A unit begins to be written: its operation.
    pub(crate) fn begin_unit(&mut self, sets: &Sets, journal: &Journal, unit: u32) -> Op {
        self.units.set_state(unit, UnitState::Writing);
        let op = self.destage_op(sets, journal, unit);
        self.units.get_mut(unit).urgent = false;
        op
    }

    #[inline(always)]
    pub(crate) fn destage_op(&self, sets: &Sets, journal: &Journal, unit: u32) -> Op {
        let entry = self.units.get(unit);
        let set = sets.get(entry.set);
        let (at, len) = (entry.start, unit_sectors(set.shape(), entry.start));
        let epoch = set.dirty.epoch();
        // Approximate number of lines that become clean.
        let lines = entry.sectors.div_ceil(narrow(Sectors(LINE_SECTORS)));
        let why = self.why_destaged(sets, journal, unit, len);
        let data = DestageData { unit, epoch, lines, why };
        let reach = set.shape().at(at);
        let side = reach.side();
        let range = if let Geometry::Parity(parity) = reach.geometry() {
            let columns = Columns::Dirty { band: SlotSet::EMPTY, next: 0 };
            let part = Part::not_begun(0, narrow(parity.chunk()));
            let stripe = parity.locate(at).0;
            UnitRange::Rows(StripeRows::new(side, stripe, part, columns))
        } else {
            UnitRange::Stretch(Stretch::new(side, at, Part::not_begun(0, narrow(len))))
        };
        Op::destage_of(entry.set, range, data)
    }

    /// The next band of a stripe: columns of the present rows that a partial parity log left for a later turn, or the
    /// next rows. False if nothing dirty is left there.
    pub(crate) fn next_band(&mut self, ops: &mut Ops, sets: &Sets, index: u32) -> bool {
        let op = &ops[index];
        let (set, op_rows) = (sets.get(op.set()), op.rows_of());
        let parity = op.parity(set);
        let rows = StripeLines::of(op_rows.stripe, parity);
        let unit = self.units.get(op.destage().unit);
        let Columns::Dirty { next, .. } = op_rows.columns else { unreachable!("destage is of dirty columns") };
        let (stripe, from, to) = (op_rows.stripe, op_rows.part.from(), op_rows.part.to());
        // Usually no columns were left for later.
        let here = if next == 0 { SlotSet::EMPTY } else { self.dirty_columns_at(unit, rows, u64::from(from)) };
        let mut left: SlotSet = here.iter().filter(|column| column.0 >= next).collect();
        let (mut first, mut columns, mut most) = (u64::from(from), here, to);
        if left.is_empty() {
            let Some(row) = self.dirty_row_from(unit, rows, u64::from(to)) else { return false };
            (first, columns) = (row, self.dirty_columns_at(unit, rows, row));
            let start = narrow(Sectors(row));
            let block = ops.block_of(sets, index);
            let rows_max = ops[index].rows_of_mut().part.search_from(start, block, set.rows_max());
            (left, most) = (columns, start.saturating_add(rows_max));
        }
        let full = u64::from(unit.sectors) == parity.full_stripe().get();
        let end = if full { rows.chunk } else { self.band_end(unit, rows, first, columns) };
        let band = if set.ppl.is_some() { side_by_side(left) } else { left };
        let next = band.iter().last().map_or(0, |column| column.0 + 1);
        let row = parity.row(stripe);
        let slots = band.iter().map(|column| row.slot_of(column.0)).collect();
        let op_rows = ops[index].rows_of_mut();
        op_rows.part.take(narrow(Sectors(first)), narrow(Sectors(end)).min(most));
        op_rows.columns = Columns::Dirty { band: slots, next: if band == left { 0 } else { next } };
        true
    }

    /// These sectors of a line are about to be copied out of it.
    pub(crate) fn stage_line(&mut self, journal: &mut Journal, index: u32, mask: Mask) {
        let line = self.lines.get_mut(index);
        line.staged = true;
        line.staged_whole = line.dirty.without(mask).is_empty();
        // Data that came since the last staging is staged now.
        let repin = core::mem::take(&mut line.repin);
        unpin_lines(journal, [repin, 0]);
    }

    /// An extent of a dirty unit is on the members.
    pub(crate) fn extent_written(&mut self, journal: &mut Journal, set: SetId, unit: u32, at: SetLba, len: Sectors) {
        let before = self.counters.destaged;
        for (number, first, last) in lines_of(at, len) {
            if let Some(line) = self.line_in_unit(unit, set, number) {
                let pins = self.mark_written(line, Mask::range(first, last));
                unpin_lines(journal, pins);
            }
        }
        self.figures.get_mut(set).destaged += self.counters.destaged - before;
    }

    /// The operation that writes a dirty unit of a set has ended. Returns whether the pieces that wait for lines may get
    /// some; if not, perhaps no piece gets lines any more.
    #[must_use]
    pub(crate) fn on_destaged(
        &mut self,
        sets: &mut Sets,
        now: Instant,
        set: SetId,
        data: DestageData,
        error: Option<ReplyStatus>,
    ) -> bool {
        let DestageData { unit, epoch: begun, lines, .. } = data;
        self.end_writing(now, set, lines);
        if sets.get(set).journal.is_asked() {
            sets.look();
        }
        let failed = error.is_some();
        self.units.was_written(unit, failed);
        let are_lines_free = !failed && !self.is_held();
        let is_any_refused = self.units.is_any_refused(set);
        sets.get_mut(set).dirty.note_written(failed, is_any_refused);
        if !failed {
            self.note_destaged(now, set, unit);
        }
        let entry = *self.units.get(unit);
        self.release_waiters(sets, unit, error);
        let dirty = &mut sets.get_mut(set).dirty;
        let is_old = entry.epoch != dirty.epoch();
        if entry.sectors > 0 && is_old && begun != dirty.epoch() && !failed {
            // A flush came while the unit was being written. Data that was dirty then may lie in rows that the
            // operation has passed.
            self.units.set_state(unit, UnitState::Ready);
            return are_lines_free;
        }
        dirty.end_unit(entry.epoch);
        if entry.sectors == 0 {
            self.units.free(unit);
            return are_lines_free;
        }
        // The unit was written to meanwhile, or was not written: its age starts again.
        let epoch = dirty.begin_unit();
        let again = self.units.get_mut(unit);
        (again.epoch, again.since) = (epoch, now);
        let len = unit_sectors(sets.get(set).shape(), entry.start);
        let at_once = !failed && (entry.urgent || u64::from(entry.sectors) == len.get());
        let state = match (failed, at_once) {
            // In that state it is held.
            (true, _) if sets.get(set).has_failed() => UnitState::Ready,
            (true, _) => UnitState::Resting,
            (false, true) => UnitState::Ready,
            (false, false) => UnitState::Waiting,
        };
        self.units.set_state(unit, state);
        are_lines_free
    }

    /// The pieces that wait for a dirty unit continue, with an error if it could not be written.
    fn release_waiters(&mut self, sets: &mut Sets, unit: u32, error: Option<ReplyStatus>) {
        let first = core::mem::replace(&mut self.units.get_mut(unit).waiters, NONE);
        if first != NONE {
            sets.signal(Signal::UnitEnded(first, error));
        }
    }

    /// The set of a dirty unit has failed: the unit's data stays until the set is stopped.
    pub(crate) fn hold_unit(&mut self, sets: &mut Sets, journal: &mut Journal, unit: u32) {
        self.units.set_state(unit, UnitState::Held);
        let entry = *self.units.get(unit);
        // While the set is failed, the journal keeps the set's entries, whatever the cache holds.
        let mut index = entry.lines.head;
        while index != NONE {
            let line = self.lines.get_mut(index);
            let pins = line.release_pins();
            index = self.lines.next(index);
            self.held += 1;
            unpin_lines(journal, pins);
        }
        let dirty = &mut sets.get_mut(entry.set).dirty;
        dirty.hold_unit(entry.epoch);
        self.release_waiters(sets, unit, Some(ReplyStatus::IoError));
        sets.signal(Signal::LinesHeld);
    }
}

/// A flush or a stop begins or ends to wait for the dirty data of one set. Meanwhile the drives of that set do not
/// give way to reads; other drives do.
#[inline(never)]
fn note_awaited(channels: &mut Channels, sets: &Sets) {
    channels.set_hurries_of_sets(|id| sets.find(id).is_some_and(|set| awaited_of(set) != AwaitedUnits::None));
}

/// Few units if nothing waits for them, so that reads find short queues.
pub(crate) fn destage_places(channels: &Channels, limits: &Limits) -> DestagePlaces {
    let most = limits.destage_units_max;
    let plain = most.min(limits.destage_units_calm);
    DestagePlaces { most, plain, hurries: channels.destage_hurries() }
}

pub(crate) fn push_staging(ops: &mut Ops, index: u32, columns: usize, call: &mut Call) {
    if call.actions().columns.len() > columns {
        let bytes = u32::try_from(FRAME_BYTES).expect("a line is small");
        ops.push_job(index, Job::new(JobKind::Copy, bytes, columns), call);
    }
}

/// The first of these columns and the columns adjacent to it: one record of a partial parity log covers adjacent
/// columns.
fn side_by_side(columns: SlotSet) -> SlotSet {
    let Some(first) = columns.first() else { return columns };
    columns.iter().zip(first.0..).take_while(|(column, beside)| column.0 == *beside).map(|(column, _)| column).collect()
}

#[cfg(test)]
mod tests {
    use openraid_units::Slot;

    use super::*;
    use crate::cache::fixture::{Bench, SET};
    use crate::geometry::Level;

    /// A unit with eight dirty sectors, of which `written` are on the members, ends: its state, if it is still dirty.
    fn end(written: u64, error: Option<ReplyStatus>) -> (Option<UnitState>, Bench) {
        let mut bench = Bench::new(Level::Raid5);
        let unit = bench.dirty(0, 8);
        let line = bench.cache.find_line(SET, 0).unwrap();
        bench.cache.units.set_state(unit, UnitState::Writing);
        bench.cache.begin_writing(Instant::ZERO, SET, 1);
        bench.cache.stage_line(&mut bench.journal, line, Mask::range(0, written));
        let Bench { cache, sets, journal, .. } = &mut bench;
        cache.extent_written(journal, SET, unit, SetLba(0), Sectors(written));
        let data = DestageData { unit, epoch: 0, lines: 1, why: Reason::DestageAged };
        _ = cache.on_destaged(sets, Instant(7), SET, data, error);
        let state = (cache.units.find(SET, SetLba(0)) == Some(unit)).then(|| cache.units.get(unit).state);
        (state, bench)
    }

    #[test]
    fn a_unit_that_is_on_the_members_is_free_and_one_that_is_not_waits_again() {
        let (state, bench) = end(8, None);
        assert_eq!((state, bench.cache.dirty_lines(), bench.sets.get(SET).dirty.all()), (None, 0, 0));
        assert_eq!(bench.cache.counters.destaged, 8);
        let (state, bench) = end(3, None);
        assert_eq!(
            (state, bench.cache.dirty_lines(), bench.sets.get(SET).dirty.all()),
            (Some(UnitState::Waiting), 1, 1)
        );
        let unit = bench.cache.units.find(SET, SetLba(0)).unwrap();
        assert_eq!((bench.cache.units.get(unit).sectors, bench.cache.units.get(unit).since), (5, Instant(7)));
    }

    #[test]
    fn pieces_get_lines_after_a_unit_was_written_if_another_one_can_be() {
        for (has_other, error, are_free) in
            [(true, None, true), (true, Some(ReplyStatus::IoError), false), (false, None, false)]
        {
            let mut bench = Bench::new(Level::Raid5);
            let unit = bench.dirty(0, 8);
            if has_other {
                bench.dirty(1 << 12, 8);
            }
            bench.cache.units.set_state(unit, UnitState::Writing);
            bench.cache.begin_writing(Instant::ZERO, SET, 1);
            let data = DestageData { unit, epoch: 0, lines: 1, why: Reason::DestageAged };
            let Bench { cache, sets, .. } = &mut bench;
            assert_eq!(cache.on_destaged(sets, Instant(7), SET, data, error), are_free, "{has_other} {error:?}");
        }
    }

    #[test]
    fn a_unit_that_the_members_refuse_rests() {
        let (state, bench) = end(0, Some(ReplyStatus::IoError));
        assert_eq!(state, Some(UnitState::Resting));
        assert!(bench.cache.is_held() && bench.sets.get(SET).dirty.has_failed());
    }

    #[test]
    fn a_sector_that_is_written_to_during_destage_stays_dirty() {
        let mut bench = Bench::new(Level::Raid5);
        let unit = bench.dirty(0, 8);
        let line = bench.cache.find_line(SET, 0).unwrap();
        bench.cache.stage_line(&mut bench.journal, line, Mask::range(0, 8));
        bench.dirty(2, 1);
        let Bench { cache, journal, .. } = &mut bench;
        cache.extent_written(journal, SET, unit, SetLba(0), Sectors(8));
        assert_eq!((bench.cache.dirty_lines(), bench.cache.units.get(unit).sectors), (1, 8));
    }

    #[test]
    fn a_turn_takes_the_first_dirty_column_and_those_next_to_it() {
        let of = |columns: &[u16]| columns.iter().map(|column| Slot(*column)).collect::<SlotSet>();
        for (dirty, taken) in [(&[0, 1, 2][..], &[0, 1, 2][..]), (&[1, 2, 4], &[1, 2]), (&[3, 5], &[3]), (&[], &[])] {
            assert_eq!(side_by_side(of(dirty)), of(taken), "{dirty:?}");
        }
    }
}
