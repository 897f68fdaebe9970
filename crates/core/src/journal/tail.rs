//! Moving the tail. If the oldest entries are not needed any more, the members are flushed; then the superblocks of the
//! journal say where the log begins; then the room in the ring is used again.

use openraid_format::{LogPlace, RingSector};
use openraid_units::{Instant, Nanos, Sectors};

use super::{JournalLoss, JournalState};
use crate::actions::Actions;
use crate::controller::Controller;
use crate::io::op::Op;
use crate::planted::Flaw;

/// Delay after a failed flush.
const RETRY_DELAY: Nanos = Nanos::from_secs(1);

/// A round that no write waits for must free at least this share of the log; destage writes that share first.
const ROUND_SHARE: u64 = 4;

/// If more than this share of the ring, or of the cache's lines in the log, is taken, dirty data at the tail is destaged
/// whatever its age, so that a round can end before a write has to wait for it.
const PRESSED_SHARE: (u64, u64) = (3, 4);

/// The same for the hosts' part of the table of entries: destage may need an entry for each line, so if the table is nearly
/// full, the oldest data goes first.
const TABLE_PRESSED_SHARE: (u64, u64) = (1, 2);
const TABLE_NEARLY_FULL_SHARE: (u64, u64) = (3, 4);

/// How far a round is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum RoundState {
    /// None is under way.
    #[default]
    Idle,
    /// The members are flushed.
    Flushing,
    /// The superblocks are being written, with this generation.
    Writing(u64),
}

/// A round: one move of the tail.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Round {
    pub(super) state: RoundState,
    /// The tail after this round.
    pub(super) target: u64,
    pub(super) pending: u32,
    failed: bool,
    retry_at: Instant,
    /// The kept entries are not needed after this round.
    empties: bool,
}

impl Controller {
    /// The tail must not pass this entry, because it is unknown what the members of a set have of it: a flush has failed,
    /// or a member is lost with unflushed data.
    fn held_tail(&self) -> u64 {
        let counts = |index, sequence| self.journal.superblock.as_ref().is_some_and(|s| s.counts(index, sequence));
        let pins_tail = |set: &crate::array::set::Set| {
            set.journal.has_session()
                && !set.has_failed()
                && (set.has_failed_flush() || set.is_lost())
                && set.journal.share().is_some_and(|own| counts(own.index, own.since.max(self.journal.log.first)))
        };
        let held = self
            .sets
            .values()
            .filter(|set| pins_tail(set))
            .filter_map(|set| set.journal.share())
            .map(|own| own.since)
            .min();
        held.unwrap_or(u64::MAX).min(self.journal.join.holds_tail())
    }

    /// How far the tail could move.
    fn tail_target(&mut self) -> u64 {
        let (end, held) = (self.journal.durable + 1, self.held_tail());
        // A session that began before the first entry holds the rest of its entries.
        self.journal.log.first_needed(end).min(held).max(self.journal.log.first)
    }

    /// Is moving the tail worth a round now?
    fn weigh_round(&mut self) -> bool {
        let journal = &self.journal;
        let nothing = journal.log.is_empty() && !journal.log.may_empty_kept();
        // Kept entries may take all lines that a replay could load. Then a round makes no room.
        let full = journal.short
            && !self.requests.is_none_waiting()
            && self.cache.replay_lines(self.journal.log.lines).is_none();
        if (nothing && !full) || journal.spill.is_active() || self.now < journal.round.retry_at {
            return false;
        }
        let many = self.is_log_long();
        if journal.short || self.now >= self.idle_round_at() {
            return true;
        }
        // A round costs flushes and superblocks.
        let (first, len) = (self.journal.log.first, self.journal.log.len() as u64);
        many && self.tail_target() - first >= len / ROUND_SHARE
    }

    /// Does the log take much of the ring, the lines, or the table?
    fn is_log_long(&self) -> bool {
        let journal = &self.journal;
        journal.log.used * 2 > journal.ring().sectors.get()
            || journal.log.lines > self.cache.line_count() / 2
            || journal.log.is_taken_to(TABLE_PRESSED_SHARE)
    }

    fn idle_round_at(&self) -> Instant {
        (self.journal.last_append + self.limits.clean_delay).max(self.journal.round.retry_at)
    }

    fn may_pass_something(&self) -> bool {
        let log = &self.journal.log;
        log.may_shrink() && log.first <= self.journal.durable && log.first < self.held_tail()
    }

    /// A round flushes every set in session. If the table of operations is full, the round begins after one of them has
    /// ended.
    fn has_ops_for_round(&self) -> bool {
        let room = self.ops.room() as usize;
        // At the most all sets are flushed.
        room > self.sets.numbers_len() || room > self.sets.values().filter(|set| set.journal.has_session()).count()
    }

    /// When a round is due if nothing else happens.
    pub(crate) fn round_deadline(&self) -> Option<Instant> {
        let journal = &self.journal;
        let retry_at = journal.round.retry_at;
        if journal.is_live() && journal.short && !journal.log.is_empty() && self.now < retry_at {
            return Some(retry_at);
        }
        let idle = journal.is_live()
            && self.is_tail_at_rest()
            && !journal.log.is_kept_pinned()
            && (self.may_pass_something() || journal.log.may_empty_kept())
            && self.has_ops_for_round();
        idle.then(|| self.idle_round_at())
    }

    /// Advance a round; true if something has changed.
    pub(crate) fn pump_tail(&mut self, actions: &mut Actions) -> bool {
        if self.journal.state == JournalState::None {
            return false;
        }
        let mut moved = self.pump_journal_superblock(actions);
        let round = self.journal.round;
        moved |= match round.state {
            RoundState::Idle => self.journal.is_live() && self.weigh_round() && self.begin_round(),
            RoundState::Flushing => round.pending == 0 && self.end_flushing(),
            RoundState::Writing(generation) => self.journal.writing.durable >= generation && self.end_round(),
        };
        let presses = self.pressed_entry();
        let before = core::mem::replace(&mut self.journal.presses, presses);
        moved | (presses > before)
    }

    /// The log is nearly full, and no round is under way that will make room: dirty data in entries below this one is
    /// destaged now. That is the oldest data, as much as a round frees. If the table is nearly full, or if a write can get
    /// room in no other way, it is all data, the oldest first. 0 if there is room.
    fn pressed_entry(&self) -> u64 {
        let (journal, log) = (&self.journal, &self.journal.log);
        if !journal.is_live() || journal.round.state != RoundState::Idle {
            return 0;
        }
        // A write can get room in no other way; but destage that is under way may be enough.
        let is_out_of_room = || journal.short && !self.sets_in_session().any(|id| self.cache.is_writing(id));
        if log.is_taken_to(TABLE_NEARLY_FULL_SHARE) || is_out_of_room() {
            return u64::MAX;
        }
        let (part, whole) = PRESSED_SHARE;
        let lines = u64::from(log.lines) * whole > u64::from(self.cache.line_count()) * part;
        let many = log.is_taken_to(TABLE_PRESSED_SHARE);
        if self.is_ring_pressed() || many || lines || journal.short {
            log.first + log.len() as u64 / ROUND_SHARE + 1
        } else {
            0
        }
    }

    /// Is the ring nearly full?
    pub(super) fn is_ring_pressed(&self) -> bool {
        let (part, whole) = PRESSED_SHARE;
        self.journal.log.used * whole > self.journal.ring().sectors.get() * part
    }

    fn begin_round(&mut self) -> bool {
        let target = self.tail_target();
        let empties = self.journal.log.may_empty_kept();
        let stays = target <= self.journal.log.first && !empties;
        if stays || self.journal.log.is_kept_pinned() {
            return self.check_full();
        }
        if !self.has_ops_for_round() {
            return false;
        }
        let round = &mut self.journal.round;
        (round.state, round.target, round.pending, round.failed) = (RoundState::Flushing, target, 0, false);
        round.empties = empties;
        let unflushed = self.planted.has(Flaw::TailUnflushed);
        for id in self.sets.numbers() {
            let takes = |set: &crate::array::set::Set| {
                set.journal.has_session() && !set.is_lost() && !set.has_failed_flush() && !unflushed
            };
            if !self.sets.find(id).is_some_and(takes) {
                continue;
            }
            let op = Op::flush(id);
            let key = self.ops.put(op);
            self.sets.get_mut(id).begin_op();
            self.ops.wake(key.index);
            self.journal.round.pending += 1;
        }
        true
    }

    /// A flush of the round ended.
    pub(crate) fn on_round_flush(&mut self, op: &Op) {
        let round = &mut self.journal.round;
        round.pending -= 1;
        round.failed |= op.has_failed();
    }

    fn end_flushing(&mut self) -> bool {
        let now = self.now;
        let round = &self.journal.round;
        let failed = round.failed || !self.journal.is_live();
        let round = &mut self.journal.round;
        if failed {
            (round.state, round.retry_at) = (RoundState::Idle, now + RETRY_DELAY);
            return true;
        }
        let target = round.target;
        let journal = &mut self.journal;
        let position =
            if target == journal.log.next() { journal.head } else { RingSector(journal.log.get(target).position) };
        let superblock = journal.superblock.as_mut().expect("it is live");
        superblock.tail = LogPlace { sequence: target, position };
        // Kept entries do not count for arrays that do not need them: the tail has passed for those.
        for (array, index) in superblock.arrays.iter_mut().zip(0_u8..) {
            if let Some(array) = array.as_mut().filter(|_| !journal.log.is_kept_for(index)) {
                array.first_sequence = array.first_sequence.max(target);
            }
        }
        superblock.kept = if journal.round.empties { Sectors::ZERO } else { journal.spill.used };
        let generation = journal.request_superblock();
        journal.round.state = RoundState::Writing(generation);
        true
    }

    fn end_round(&mut self) -> bool {
        let journal = &mut self.journal;
        journal.round.state = RoundState::Idle;
        journal.log.drop_below(journal.round.target);
        if journal.round.empties {
            journal.log.empty_kept();
            journal.spill.used = Sectors::ZERO;
        }
        journal.spill.begin_batch();
        journal.short = false;
        journal.counters.rounds += 1;
        self.sets.look();
        self.wake_journal_waiters();
        true
    }

    /// A write found no room, and destage of dirty data will make none: members refused the data, or none is dirty.
    fn is_short_for_good(&self) -> bool {
        let written = |id| self.cache.is_writing(id) || self.cache.is_any_promising(id);
        if !self.journal.short || self.sets_in_session().any(written) {
            return false;
        }
        !self.requests.is_none_waiting() || self.sets_in_session().any(|id| self.sets.get(id).dirty.is_refused())
    }

    /// A write waits for room, and nothing under way will make any: the journal is full of entries of a failed array. The
    /// other arrays continue without it.
    fn check_full(&mut self) -> bool {
        let waited = self.ops.is_journal_awaited() || self.is_short_for_good();
        let journal = &self.journal;
        let quiet = !journal.flying.is_used() && journal.open.records.is_empty();
        let logged = self.sets.values().any(|set| !set.has_failed() && set.journal.logged > 0);
        if !waited || self.may_room_come() {
            return false;
        }
        // A user of the window returns it, and then entries may be copied out of the ring.
        let copies = journal.replay.is_active() || journal.join.is_active() || journal.window.is_used();
        if !quiet || logged || copies {
            return false;
        }
        self.lose_journal(JournalLoss::Full);
        true
    }
}
