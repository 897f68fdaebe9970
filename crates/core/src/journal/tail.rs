//! Moving the tail. If the oldest entries are not needed any more, the members are flushed; then the superblocks of the
//! journal say where the log begins; then the room in the ring is used again.

use openraid_format::{LogPlace, RingSector};
use openraid_units::{Instant, Nanos, Sectors};

use super::{Journal, JournalLoss};
use crate::actions::NoticeKind;
use crate::array::set::Set;
use crate::array::sets::{Sets, Signal};
use crate::cache::Cache;
use crate::call::Call;
use crate::io::state::op::Op;
use crate::io::state::ops::Ops;
use crate::journal::devices::notice_journal;
use crate::journal::reservation::{in_session, keeps_entries, may_make_room};
use crate::journal::tail_flushes::{Round, RoundPlan};
use crate::planted::{Flaw, Planted};

/// Delay after a failed flush.
const RETRY_DELAY: Nanos = Nanos::from_secs(1);

/// A round that no write waits for must free at least this share of the log; destage writes that share first.
const ROUND_SHARE: u64 = 4;

/// If more than this share of the ring, or of the cache's lines in the log, is taken, dirty data at the tail is destaged
/// whatever its age, so that a round can end before a write has to wait for it.
const PRESSED_SHARE: (u64, u64) = (3, 4);

/// `PRESSED_SHARE` of the hosts' part of the table of entries. Destage may need an entry for each line: if the table is
/// nearly full, the oldest data goes first.
const TABLE_PRESSED_SHARE: (u64, u64) = (1, 2);
const TABLE_NEARLY_FULL_SHARE: (u64, u64) = (3, 4);

impl Journal {
    /// How far the tail could move. It must not pass `held`.
    fn tail_target(&mut self, held: u64) -> u64 {
        // A session that began before the first entry holds the rest of its entries.
        self.log.first_needed(self.durable + 1).min(held).max(self.log.first)
    }

    /// Could the tail pass an entry, if it must not pass `held`?
    fn may_pass_something(&self, held: impl FnOnce() -> u64) -> bool {
        self.log.may_shrink() && self.log.first <= self.durable && self.log.first < held()
    }

    /// Does the log take much of the ring, of the `lines` of the cache, or of the table?
    fn is_log_long(&self, lines: u32) -> bool {
        self.log.used * 2 > self.ring().sectors.get()
            || self.log.lines > lines / 2
            || self.log.is_taken_to(TABLE_PRESSED_SHARE)
    }

    /// Is the ring nearly full?
    pub(super) fn is_ring_pressed(&self) -> bool {
        let (part, whole) = PRESSED_SHARE;
        self.log.used * whole > self.ring().sectors.get() * part
    }

    /// The end of the oldest data, as much as a round frees, if the log is nearly full, and a cache has `lines`. 0 if there
    /// is room. If the table is nearly full, it is all data.
    fn pressed(&self, lines: u32) -> u64 {
        let log = &self.log;
        if log.is_taken_to(TABLE_NEARLY_FULL_SHARE) {
            return u64::MAX;
        }
        let (part, whole) = PRESSED_SHARE;
        let many = u64::from(log.lines) * whole > u64::from(lines) * part || log.is_taken_to(TABLE_PRESSED_SHARE);
        if self.is_ring_pressed() || many || self.is_short() {
            log.first + log.len() as u64 / ROUND_SHARE + 1
        } else {
            0
        }
    }

    /// When a round begins that no write waits for and that frees little, if the journal is quiet until then.
    fn idle_round_at(&self, delay: Nanos) -> Instant {
        (self.last_append + delay).max(self.round.retry_at())
    }

    /// What a round would do, if it would move the tail. The tail must not pass `held`.
    fn plan_round(&mut self, held: u64) -> Option<RoundPlan> {
        let plan = RoundPlan { target: self.tail_target(held), empties: self.log.may_empty_kept() };
        let moves = plan.target > self.log.first || plan.empties;
        (moves && !self.log.is_kept_pinned()).then_some(plan)
    }

    /// The members were flushed for a round: the superblocks record the new tail. After a failed flush the round is tried
    /// again later. True if the round goes on.
    fn end_flushing(&mut self, now: Instant) -> bool {
        let Round::Flushing { plan, pending: 0, failed } = self.round else { return false };
        if failed || !self.is_live() {
            self.round = Round::Idle(now + RETRY_DELAY);
            return true;
        }
        let RoundPlan { target, empties } = plan;
        let position = if target == self.log.next() { self.head } else { RingSector(self.log.get(target).position) };
        let superblock = self.superblock.as_mut().expect("it is live");
        superblock.tail = LogPlace { sequence: target, position };
        // Kept entries do not count for arrays that do not need them: the tail has passed for those.
        for (array, index) in superblock.arrays.iter_mut().zip(0_u8..) {
            if let Some(array) = array.as_mut().filter(|_| !self.log.is_kept_for(index)) {
                array.first_sequence = array.first_sequence.max(target);
            }
        }
        superblock.kept = if empties { Sectors::ZERO } else { self.spill.used() };
        self.round = Round::Writing(plan, self.request_superblock());
        true
    }

    /// The superblocks record the new tail: the room before it is used again. True if a round has ended.
    fn end_round(&mut self) -> bool {
        let Round::Writing(RoundPlan { target, empties }, generation) = self.round else { return false };
        if !self.writing.is_durable(generation) {
            return false;
        }
        self.round = Round::default();
        self.log.drop_below(target);
        if empties {
            self.log.empty_kept();
        }
        self.spill.begin_batch(empties);
        self.end_short();
        self.counters.rounds += 1;
        true
    }

    /// The tail must not pass this entry: a device joins, or it is unknown what the members of a set have of it, because a
    /// flush has failed or a member is lost with unflushed data.
    fn held_tail(&self, sets: &Sets) -> u64 {
        let counts = |index, sequence| self.superblock.as_ref().is_some_and(|s| s.counts(index, sequence));
        let held = |set: &Set| {
            let share = set.journal.share().filter(|_| keeps_entries(set) && !takes_flush(set))?;
            counts(share.index, share.since.max(self.log.first)).then_some(share.since)
        };
        sets.values().filter_map(held).min().unwrap_or(u64::MAX).min(self.join.holds_tail())
    }

    /// Is moving the tail worth a round now? A write that finds no room may also wait because of the `lines` of the cache:
    /// then `is_full`.
    fn weigh_round(&mut self, sets: &Sets, (lines, is_full): (u32, bool), (now, delay): (Instant, Nanos)) -> bool {
        let nothing = self.log.is_empty() && !self.log.may_empty_kept();
        if (nothing && !is_full) || self.spill.is_active() || now < self.round.retry_at() {
            return false;
        }
        if self.is_short() || now >= self.idle_round_at(delay) {
            return true;
        }
        // A round costs flushes and superblocks.
        self.is_log_long(lines) && {
            let (first, len) = (self.log.first, self.log.len() as u64);
            self.tail_target(self.held_tail(sets)) - first >= len / ROUND_SHARE
        }
    }

    /// When a round is due if nothing else happens. `delay` is the time without a write after which the journal is quiet.
    pub(crate) fn round_deadline(&self, sets: &Sets, ops: &Ops, (now, delay): (Instant, Nanos)) -> Option<Instant> {
        let retry_at = self.round.retry_at();
        if self.is_live() && self.is_short() && !self.log.is_empty() && now < retry_at {
            return Some(retry_at);
        }
        let idle = self.is_live()
            && self.is_tail_at_rest()
            && !self.log.is_kept_pinned()
            && (self.may_pass_something(|| self.held_tail(sets)) || self.log.may_empty_kept())
            && leave_ops_for_round(sets, ops);
        idle.then(|| self.idle_round_at(delay))
    }

    /// The log is nearly full, and no round is under way that will make room: dirty data in entries below this one is
    /// destaged now. That is the oldest data, as much as a round frees. If the table is nearly full, or if a write can get
    /// room in no other way, it is all data, the oldest first. 0 if there is room.
    fn pressed_entry(&self, sets: &Sets, cache: &Cache) -> u64 {
        if !self.is_live() || !self.round.is_idle() {
            return 0;
        }
        // A write can get room in no other way; but destage that is under way may be enough.
        if self.is_short() && !in_session(sets).any(|id| cache.is_writing(id)) {
            return u64::MAX;
        }
        self.pressed(cache.line_count())
    }

    /// Begin a round: flush every set in session.
    fn begin_round(&mut self, plan: RoundPlan, sets: &mut Sets, ops: &mut Ops, planted: Planted) {
        self.round = Round::Flushing { plan, pending: 0, failed: false };
        for id in sets.numbers() {
            let takes = |set: &Set| set.journal.has_session() && takes_flush(set);
            let unflushed = planted.has(Flaw::TailUnflushed) || planted.has(Flaw::RoundOfOneSet) && id.0 > 0;
            if sets.find(id).is_some_and(takes) && !unflushed {
                let key = ops.begin(sets.get_mut(id), Op::flush(id));
                ops.wake(key.index);
                self.round.flush_issued();
            }
        }
    }

    /// A flush of the round ended.
    pub(crate) fn round_flush_ended(&mut self, op: &Op) {
        self.round.flush_ended(op.has_failed());
    }

    /// Is something under way that may make room: an entry, a write whose redo records are in the log, or a user of the
    /// window, after which entries may be copied out of the ring?
    fn may_room_come(&self, sets: &Sets) -> bool {
        self.flying.is_used()
            || self.open.has_records()
            || sets.values().any(|set| !set.has_failed() && set.journal.logged > 0)
            || self.replay.is_active()
            || self.join.is_active()
            || self.window.is_used()
    }

    /// Advance a round; true if something has changed. `is_piece_waiting`: a piece of a request waits for the cache or the
    /// journal.
    pub(crate) fn pump_tail(
        &mut self,
        (sets, ops): (&mut Sets, &mut Ops),
        (cache, is_piece_waiting): (&Cache, bool),
        call: &mut Call,
    ) -> bool {
        let mut moved = self.pump_superblock(call);
        moved |= match self.round {
            Round::Idle(_) => self.is_live() && self.pump_idle_round((sets, ops), (cache, is_piece_waiting), call),
            Round::Flushing { .. } => self.end_flushing(call.now()),
            Round::Writing(..) => {
                let ended = self.end_round();
                if ended {
                    sets.look();
                    sets.signal(Signal::JournalRoom);
                }
                ended
            }
        };
        let presses = self.pressed_entry(sets, cache);
        let before = core::mem::replace(&mut self.presses, presses);
        moved | (presses > before)
    }

    /// Begin a round if it is worth it. If it would not move the tail, the journal may be full for good.
    fn pump_idle_round(
        &mut self,
        (sets, ops): (&mut Sets, &mut Ops),
        (cache, is_piece_waiting): (&Cache, bool),
        call: &mut Call,
    ) -> bool {
        // Kept entries may take all lines that a replay could load. Then a round makes no room.
        let is_full = self.is_short() && is_piece_waiting && cache.replay_lines(self.logged_lines()).is_none();
        let (lines, time) = ((cache.line_count(), is_full), (call.now(), call.limits().clean_delay));
        if !self.weigh_round(sets, lines, time) {
            return false;
        }
        let held = self.held_tail(sets);
        let Some(plan) = self.plan_round(held) else {
            return self.check_full((sets, ops), (cache, is_piece_waiting), call);
        };
        let begins = leave_ops_for_round(sets, ops);
        if begins {
            self.begin_round(plan, sets, ops, call.planted());
        }
        begins
    }

    /// A write found no room, and destage of dirty data will make none: members refused the data, or none is dirty.
    fn is_short_for_good(&self, sets: &Sets, cache: &Cache, is_piece_waiting: bool) -> bool {
        let written = |id| cache.is_writing(id) || cache.is_any_promising(id);
        if !self.is_short() || in_session(sets).any(written) {
            return false;
        }
        is_piece_waiting || in_session(sets).any(|id| sets.get(id).dirty.is_refused())
    }

    /// A write waits for room, and nothing under way will make any: the journal is full of entries of a failed array. The
    /// other arrays continue without it.
    fn check_full(
        &mut self,
        (sets, ops): (&mut Sets, &mut Ops),
        (cache, is_piece_waiting): (&Cache, bool),
        call: &mut Call,
    ) -> bool {
        let waited = ops.is_journal_awaited() || self.is_short_for_good(sets, cache, is_piece_waiting);
        let is_full = waited && !may_make_room(ops, sets, cache) && !self.may_room_come(sets);
        if is_full {
            notice_journal(call, None, NoticeKind::JournalFull);
            self.lose(JournalLoss::Full, sets);
        }
        is_full
    }
}

/// Does it flush its members for a round of the journal?
fn takes_flush(set: &Set) -> bool {
    !set.is_lost() && !set.has_failed_flush()
}

/// A round flushes every set in session. If the table of operations is full, the round begins after one of them has
/// ended.
fn leave_ops_for_round(sets: &Sets, ops: &Ops) -> bool {
    let room = ops.room() as usize;
    // At the most all sets are flushed.
    room > sets.numbers_len() || room > sets.values().filter(|set| set.journal.has_session()).count()
}

#[cfg(test)]
mod tests {
    use openraid_format::{JournalArray, JournalArrayState, Uuid};

    use super::*;
    use crate::journal::log_entries::Entry;

    /// A journal with a ring of 8192 sectors and `entries` durable entries of 1024 sectors, which nothing needs.
    fn with_entries(entries: u64) -> Journal {
        let mut journal = Journal::of_ring(Sectors(8192));
        for number in 0..entries {
            journal.log.push(Entry { position: number * 1024, sectors: 1024, pins: 0, lines: 1, waiting: 0 });
        }
        journal.head = RingSector(entries * 1024 % 8192);
        journal.durable = journal.log.next() - 1;
        journal
    }

    #[test]
    fn the_tail_moves_to_the_first_entry_that_is_needed_held_or_not_durable() {
        let mut journal = with_entries(5);
        assert_eq!((journal.tail_target(u64::MAX), journal.may_pass_something(|| u64::MAX)), (6, true));
        journal.durable = 3;
        assert_eq!(journal.tail_target(u64::MAX), 4);
        assert_eq!((journal.tail_target(2), journal.may_pass_something(|| 2)), (2, true));
        assert_eq!((journal.tail_target(0), journal.may_pass_something(|| 1)), (1, false), "never back");
        let mut journal = with_entries(5);
        journal.log.pin(3);
        assert_eq!(journal.tail_target(u64::MAX), 3);
        journal.log.pin(1);
        assert!(!journal.may_pass_something(|| u64::MAX));
    }

    #[test]
    fn a_round_flushes_then_writes_the_superblocks_and_then_frees_the_room() {
        let mut journal = with_entries(5);
        journal.log.pin(4);
        journal.note_short();
        let plan = journal.plan_round(u64::MAX).unwrap();
        assert_eq!(plan, RoundPlan { target: 4, empties: false });
        journal.round = Round::Flushing { plan, pending: 0, failed: false };
        (0..2).for_each(|_| journal.round.flush_issued());
        for _ in 0..2 {
            assert!(journal.round.is_flush_out() && !journal.end_flushing(Instant::ZERO));
            journal.round.flush_ended(false);
        }
        assert!(!journal.round.is_flush_out() && journal.end_flushing(Instant::ZERO));
        let tail = journal.superblock.as_ref().unwrap().tail;
        assert_eq!((tail.sequence, tail.position), (4, RingSector(3 * 1024)));
        assert!(!journal.end_round() && journal.log.used == 5 * 1024, "the superblocks are not durable");
        journal.writing.begin();
        (0..2).for_each(|_| _ = journal.writing.advance(1, 1));
        assert!(journal.end_round() && journal.round.is_idle() && !journal.end_round());
        assert_eq!(
            (journal.log.first, journal.log.used, journal.is_short(), journal.counters.rounds),
            (4, 2 * 1024, false, 1)
        );
        assert_eq!(journal.plan_round(u64::MAX), None, "entry 4 is needed");
    }

    #[test]
    fn the_tail_after_the_last_entry_is_at_the_head() {
        let mut journal = with_entries(5);
        let plan = journal.plan_round(u64::MAX).unwrap();
        journal.round = Round::Flushing { plan, pending: 0, failed: false };
        assert!(journal.end_flushing(Instant::ZERO));
        assert_eq!(journal.superblock.as_ref().unwrap().tail, LogPlace { sequence: 6, position: RingSector(5 * 1024) });
    }

    #[test]
    fn after_a_failed_flush_the_tail_stays_and_the_next_round_begins_a_second_later() {
        let mut journal = with_entries(5);
        let plan = journal.plan_round(u64::MAX).unwrap();
        journal.round = Round::Flushing { plan, pending: 0, failed: false };
        (0..2).for_each(|_| journal.round.flush_issued());
        journal.round.flush_ended(true);
        journal.round.flush_ended(false);
        let now = Instant::ZERO + Nanos::from_secs(5);
        assert!(journal.end_flushing(now));
        assert_eq!(journal.round, Round::Idle(now + Nanos::from_secs(1)));
        assert_eq!(journal.superblock.as_ref().unwrap().tail.sequence, 1);
        let delay = Nanos::from_millis(200);
        assert_eq!(journal.idle_round_at(delay), now + Nanos::from_secs(1));
        journal.last_append = now + Nanos::from_secs(1);
        assert_eq!(journal.idle_round_at(delay), now + Nanos::from_secs(1) + delay);
    }

    #[test]
    fn an_array_that_needs_no_kept_entry_counts_from_the_tail_on_and_one_that_does_keeps_its_place() {
        let mut journal = with_entries(5);
        let array = |number: u8| JournalArray {
            set_uuid: Uuid([number; 16]),
            state: JournalArrayState::Live,
            first_sequence: 1,
        };
        (0..2).for_each(|number| _ = journal.superblock.as_mut().unwrap().enter(array(number)));
        journal.log.wait_for_array(1, 1);
        journal.log.keep(1);
        journal.log.end_array_entries(1);
        journal.log.wait_for_array(1, 1);
        let plan = journal.plan_round(3).unwrap();
        assert_eq!(plan, RoundPlan { target: 2, empties: false });
        journal.spill.attach(Sectors(1024));
        journal.round = Round::Flushing { plan, pending: 0, failed: false };
        assert!(journal.end_flushing(Instant::ZERO));
        let superblock = journal.superblock.as_ref().unwrap();
        let first = |index: usize| superblock.arrays[index].unwrap().first_sequence;
        assert_eq!((first(0), first(1), superblock.kept), (2, 1, Sectors(1024)));
    }

    #[test]
    fn dirty_data_is_pressed_out_at_three_quarters_of_the_ring_and_of_the_lines_and_at_half_of_the_table() {
        // Six entries of 1024 sectors are three quarters of the ring; more than that presses the oldest quarter.
        assert_eq!([with_entries(6).pressed(256), with_entries(7).pressed(256)], [0, 1 + 7 / 4 + 1]);
        // Three entries have a line each.
        assert_eq!(
            [with_entries(3).pressed(4), with_entries(4).pressed(4), with_entries(4).pressed(5)],
            [0, 1 + 1 + 1, 3]
        );
        // The table has 64 places for entries of hosts.
        let small = |entries: u64| {
            let mut journal = Journal::of_ring(Sectors(8192));
            (0..entries)
                .for_each(|_| journal.log.push(Entry { position: 0, sectors: 8, pins: 0, lines: 0, waiting: 0 }));
            journal
        };
        assert_eq!([small(32).pressed(256), small(33).pressed(256)], [0, 1 + 33 / 4 + 1]);
        assert_eq!([small(48).pressed(256), small(49).pressed(256)], [1 + 48 / 4 + 1, u64::MAX]);
        let mut short = small(4);
        short.note_short();
        assert_eq!(short.pressed(256), 1 + 1 + 1);
        assert!(small(33).is_log_long(256) && !small(32).is_log_long(256));
        assert!(with_entries(5).is_log_long(256) && !with_entries(4).is_log_long(256));
        assert!(with_entries(3).is_log_long(5) && !with_entries(3).is_log_long(6));
    }
}
