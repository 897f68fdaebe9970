//! Writes of hosts and the cache: into lines if the policy says so, past them otherwise.
//!
//! A write past the cache must not meet dirty sectors, because destage would write the older data after it. It waits
//! until they are on the members. Clean lines drop its range, before it begins and when it ends: a read may bring old
//! data meanwhile.

use openraid_units::{Instant, Sectors, SetId, SetLba};

use super::dirty_units::UnitState;
use super::Cache;
use crate::actions::{Actions, JobKind, ParityJob};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::cache::lines::Mask;
use crate::cache::zone_at;
use crate::events::RequestKind;
use crate::geometry::cache_units::unit_number;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::io::state::ended::Past;
use crate::io::state::footprint::narrow;
use crate::io::state::lock::{LockMode, LockRange};
use crate::io::state::op::Phase;
use crate::io::state::ops::Ops;
use crate::journal::log_entries::Log;
use crate::journal::session::{ask_for_session, is_session_ending};
use crate::journal::Journal;
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::requests::piece::Cached;
use crate::requests::Requests;
use crate::settings::WriteCache;
use crate::trace::Trace;

/// Maximum number of lines into which one call puts a piece, so that the actions have room.
pub(crate) const LINES_AT_ONCE: u64 = 64;

/// The place in which an acknowledged write is kept until it is on the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promise {
    /// None: it is acknowledged when it is on the members.
    Through,
    /// The cache, which loses it in a power cut.
    Volatile,
    /// The journal.
    Journal,
}

/// A piece that waits, with the place in a set at which it waits, and the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceWait {
    piece: u32,
    set: SetId,
    at: SetLba,
    reason: Reason,
}

impl PieceWait {
    pub(crate) const fn new(piece: u32, (set, at): (SetId, SetLba), reason: Reason) -> Self {
        Self { piece, set, at, reason }
    }
}

/// Will a write past the cache request a range that meets this one as soon as there is room in the journal, or as
/// soon as its rows are redone? It would revoke data that was acknowledged before it.
fn begins_direct_write(ops: &Ops, set: &Set, range: LockRange) -> bool {
    ops.is_ready_or_awaits_journal(|op| {
        let is_of_set = op.set() == range.set;
        is_of_set && op.phase() == Phase::Start && op.is_direct_write() && op.lock_range(set).conflicts(&range)
    })
}

/// Issue copies for a piece: the columns of the arena from `columns` on.
pub(crate) fn push_piece_copy(requests: &mut Requests, piece: u32, columns: usize, bytes: u64, actions: &mut Actions) {
    requests.piece_mut(piece).begin_op();
    actions.jobs.push(ParityJob {
        tag: requests.piece_tag(piece),
        kind: JobKind::Copy,
        len: u32::try_from(bytes).expect("at most a line"),
        columns_start: u32::try_from(columns).expect("the arena is small"),
        columns_len: u16::try_from(actions.columns.len() - columns).expect("few lines at once"),
        p: None,
        q: None,
    });
}

/// The reason for which a write must wait for the journal session of its set, if any.
pub(crate) fn session_wait(sets: &mut Sets, set: SetId, promises: bool) -> Option<Reason> {
    if promises {
        return (!ask_for_session(sets, set)).then_some(Reason::WaitedForJournalStart);
    }
    // A session that is not wanted any more ends only if nothing is added to it.
    is_session_ending(sets.get(set)).then_some(Reason::WaitedForJournalEnd)
}

impl Cache {
    /// Has destage tried every dirty unit of a set that is being stopped? The members refuse the data that is left.
    pub(crate) fn is_all_tried(&self, set: SetId) -> bool {
        !self.is_writing(set) && !self.units.is_any_untried(set)
    }
    /// The dirty unit of a set that begins here; a new one is counted for its set.
    pub(crate) fn dirty_unit_of(
        &mut self,
        sets: &mut Sets,
        (set, start): (SetId, SetLba),
        now: Instant,
        zones: u32,
    ) -> u32 {
        if let Some(unit) = self.units.find(set, start) {
            return unit;
        }
        let entry = sets.get_mut(set);
        let epoch = entry.dirty.begin_unit();
        let zone = zone_at(entry, zones, start);
        self.units.make((set, start, zone), now, epoch)
    }

    /// Number of further lines that the log may cover, if they are enough for one call.
    pub(crate) fn replay_lines(&self, log_lines: u32) -> Option<u64> {
        let all = self.lines.len();
        let lines = u64::from(all - log_lines.min(all));
        // A small cache keeps fewer lines free: a round is due when half of it is in the log.
        Some(lines).filter(|lines| *lines >= LINES_AT_ONCE.min(u64::from(all) / 4))
    }
    /// The new content of a line is in this entry of the journal, at this place (see
    /// [`super::lines::Line::logged_at`]).
    pub(crate) fn log_line(&mut self, log: &mut Log, index: u32, mask: Mask, place: Option<i16>, sequence: u64) {
        let line = self.lines.get_mut(index);
        let alone = line.dirty.without(mask).is_empty();
        let same = line.newest == sequence && line.logged_at == place;
        line.logged_at = if alone || same { place } else { None };
        line.newest = sequence;
        if line.pin == 0 {
            line.pin = sequence;
            log.pin(sequence);
        } else if line.repin == 0 && line.staged_whole {
            line.repin = sequence;
            log.pin(sequence);
        }
    }

    /// A request waits for a dirty unit: it is written next.
    pub(crate) fn hurry_unit(&mut self, unit: u32) {
        let entry = self.units.get_mut(unit);
        entry.urgent = true;
        if matches!(entry.state, UnitState::Waiting | UnitState::Resting) {
            self.counters.urgent += 1;
            self.units.set_state(unit, UnitState::Ready);
        }
    }

    /// May one more line of this place be dirty?
    pub(crate) fn may_dirty(&self, set: SetId, number: u64) -> bool {
        let dirty = |index| !self.lines.get(index).dirty.is_empty();
        self.has_dirty_room(set) || self.lines.find(set, number).is_some_and(dirty)
    }

    /// Let a write go past the cache when it meets no dirty data any more.
    pub(crate) fn pass_cache(
        &mut self,
        (requests, sets): (&mut Requests, &mut Sets),
        piece: u32,
        (set, at, len): (SetId, SetLba, Sectors),
        trace: &mut Trace,
    ) -> Cached {
        match self.dirty_unit_below(sets, trace, set, at, len) {
            Some(unit) => {
                trace.piece(requests, piece, || StepEvent::Reason { reason: Reason::WaitedForDestage, figure: 0 });
                let waiters = &mut self.units.get_mut(unit).waiters;
                *waiters = requests.wait_in_chain(piece, *waiters);
                requests.count_turn(piece);
                Cached::Waits
            }
            None => {
                requests.end_turns(piece);
                Cached::Past(len)
            }
        }
    }

    /// The first dirty unit for which an access past the cache must wait; its destage is hurried. If there is none, the
    /// clean lines have dropped these sectors.
    ///
    /// A failed set is not written any more, and a waiting piece would wait forever.
    fn dirty_unit_below(
        &mut self,
        sets: &mut Sets,
        trace: &mut Trace,
        set: SetId,
        at: SetLba,
        len: Sectors,
    ) -> Option<u32> {
        if sets.get(set).has_failed() {
            return None;
        }
        let unit = self.dirty_unit_in(sets.get(set).shape(), set, at, len);
        match unit {
            Some(unit) => {
                let number = unit_number(sets.get(set).shape(), self.units.get(unit).start);
                trace.note(sets, set, Reason::WaitedForDestage, number, 0);
                self.hurry_unit(unit);
            }
            None => self.invalidate(set, at, len),
        }
        unit
    }

    /// Let a discard of these sectors go past the cache; false if it must wait for destage. If the members refuse the
    /// dirty data, the discard is still passed on: it would wait forever, and the content of a discarded sector is not
    /// guaranteed.
    pub(crate) fn pass_discard(
        &mut self,
        sets: &mut Sets,
        trace: &mut Trace,
        set: SetId,
        at: SetLba,
        len: Sectors,
    ) -> bool {
        let below = self.dirty_unit_in(sets.get(set).shape(), set, at, len);
        if below.is_some_and(|unit| self.units.get(unit).state == UnitState::Resting) {
            self.invalidate(set, at, len);
            return true;
        }
        self.dirty_unit_below(sets, trace, set, at, len).is_none()
    }

    /// Drop from clean lines the range that an operation has written past the cache: a read may have brought old data
    /// meanwhile.
    pub(crate) fn forget_written(&mut self, sets: &Sets, id: SetId, past: Past) {
        let chunk = || sets.get(id).shape().parity(past.side()).chunk();
        let columns_apart = if past.columns > 1 { chunk() } else { Sectors::ZERO };
        for column in 0..u64::from(past.columns) {
            self.invalidate(id, past.at + columns_apart * column, past.len);
        }
    }

    /// A piece waits. It is called again at each event that may end the wait, and that still counts as one wait.
    fn note_wait(&self, (requests, sets): (&mut Requests, &mut Sets), wait: PieceWait, trace: &mut Trace) {
        if requests.piece_mut(wait.piece).begin_wait(wait.reason) {
            note_piece((requests, sets), wait, self.dirty, trace);
        }
    }

    /// A piece waits until something other than lines changes.
    pub(crate) fn wait_for_others(
        &self,
        (requests, sets): (&mut Requests, &mut Sets),
        wait: PieceWait,
        trace: &mut Trace,
    ) -> Cached {
        self.note_wait((requests, sets), wait, trace);
        requests.wait_for_others(wait.piece);
        Cached::Waits
    }

    /// A piece waits for room.
    pub(crate) fn wait_for_cache(
        &mut self,
        (requests, sets): (&mut Requests, &mut Sets),
        wait: PieceWait,
        trace: &mut Trace,
    ) -> Cached {
        self.note_wait((requests, sets), wait, trace);
        self.draining = true;
        match wait.reason {
            Reason::WaitedForCache => requests.wait_for_lines(wait.piece, self.has_room()),
            _ => requests.wait_for_others(wait.piece),
        }
        Cached::Waits
    }

    /// Number of further lines that the log may cover, because more could not be loaded again. If they are too few, a
    /// round is requested.
    pub(crate) fn replay_room(&mut self, journal: &mut Journal) -> Result<u64, Reason> {
        let lines = self.replay_lines(journal.logged_lines());
        if lines.is_none() {
            journal.note_short();
        }
        lines.ok_or(Reason::WaitedForReplayRoom)
    }
}

/// The place in which this piece of a write is kept until the members have it. The cache takes only whole blocks;
/// `promises` says whether the journal is to protect writes of the set.
pub(crate) fn promise_of(requests: &Requests, set: &Set, piece: u32, promises: bool) -> Promise {
    let entry = requests.piece(piece);
    let RequestKind::Write { fua } = requests.get(entry.request()).kind() else { return Promise::Through };
    let cached = set.is_running() && set.shape().is_cacheable() && entry.is_whole_blocks();
    match set.write_cache() {
        WriteCache::Volatile if cached && !fua && !set.journal.has_session() => Promise::Volatile,
        WriteCache::Journal if cached && promises => Promise::Journal,
        _ => Promise::Through,
    }
}

/// Note that a piece waits, with a figure.
pub(super) fn note_piece(
    (requests, sets): (&Requests, &mut Sets),
    PieceWait { piece, set, at, reason }: PieceWait,
    figure: u32,
    trace: &mut Trace,
) {
    trace.note(sets, set, reason, at.get(), figure);
    trace.piece(requests, piece, || StepEvent::Reason { reason, figure });
}

/// Is a write past the cache under way on this line? The sectors next to its own that it writes may be older than
/// this write, and the journal would take them for newer.
pub(crate) fn meets_direct_write(ops: &Ops, sets: &Sets, id: SetId, number: u64) -> bool {
    let set = sets.get(id);
    if set.direct_writes() == 0 {
        return false;
    }
    let (unit, from) = set.shape().exclusion_unit(SetLba(number * LINE_SECTORS));
    let lo = narrow(from);
    let range = LockRange { set: id, unit, lo, hi: lo + narrow(Sectors(LINE_SECTORS)), mode: LockMode::Exclusive };
    ops.locks().conflicting(range).any(|op| ops[op].is_direct_write()) || begins_direct_write(ops, set, range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::fixture::{Bench, SET, WRITE};
    use crate::geometry::shape::Side;
    use crate::geometry::Level;
    use crate::io::state::op::DestageData;
    use crate::settings::Policy;

    fn pass(bench: &mut Bench, piece: u32, at: u64) -> Cached {
        let (cache, requests, mut call) = bench.parts();
        cache.pass_cache(requests, piece, (SET, SetLba(at), Sectors(8)), call.trace())
    }

    #[test]
    fn a_write_past_the_cache_waits_for_dirty_data_and_goes_on_when_the_members_have_it() {
        let mut bench = Bench::new(Level::Raid5);
        let unit = bench.dirty(0, 8);
        let piece = bench.piece(WRITE, 0, 8);
        assert!(matches!(pass(&mut bench, piece, 0), Cached::Waits));
        assert_eq!(bench.cache.units.get(unit).waiters, piece);
        assert!(bench.cache.units.get(unit).urgent, "its destage is hurried");
        let other = bench.piece(WRITE, 8, 8);
        assert!(matches!(pass(&mut bench, other, 8), Cached::Past(Sectors(8))), "nothing is dirty there");
        assert!(!bench.requests.wants_ops());
        let data = DestageData { unit, epoch: 0, lines: 1, why: Reason::DestageAged };
        bench.cache.units.set_state(unit, UnitState::Writing);
        bench.cache.begin_writing(Instant::ZERO, SET, 1);
        _ = bench.cache.on_destaged(&mut bench.sets, Instant::ZERO, SET, data, None);
        bench.hand_on();
        assert!(bench.requests.wants_ops());
    }

    #[test]
    fn a_write_past_the_cache_drops_clean_data_before_it_begins_and_after_it() {
        let mut bench = Bench::new(Level::Raid1);
        let keep = |bench: &mut Bench| {
            let line = bench.cache.line_for(SET, 1).unwrap();
            bench.cache.lines.get_mut(line).valid = Mask::range(0, 8);
            bench.cache.release_unless_used(line);
        };
        let valid = |bench: &Bench| {
            bench.cache.find_line(SET, 1).is_some_and(|line| !bench.cache.lines.get(line).valid.is_empty())
        };
        keep(&mut bench);
        let piece = bench.piece(WRITE, 8, 8);
        assert!(valid(&bench) && matches!(pass(&mut bench, piece, 8), Cached::Past(_)) && !valid(&bench));
        // A read has brought old data meanwhile.
        keep(&mut bench);
        bench.cache.forget_written(&bench.sets, SET, Past::of(Side::Old, SetLba(8), Sectors(8)));
        assert!(!valid(&bench));
    }

    #[test]
    fn a_wait_is_counted_once_however_often_its_piece_is_called() {
        let mut bench = Bench::new(Level::Raid5);
        let piece = bench.piece(WRITE, 0, 8);
        for reason in [Reason::WaitedForCache, Reason::WaitedForCache, Reason::WaitedForDestage] {
            let (cache, requests, mut call) = bench.parts();
            let wait = PieceWait::new(piece, (SET, SetLba(0)), reason);
            let waits = cache.wait_for_cache(requests, wait, call.trace());
            assert!(matches!(waits, Cached::Waits));
        }
        let reasons = &bench.sets.get(SET).reasons;
        assert_eq!([Reason::WaitedForCache, Reason::WaitedForDestage].map(|reason| reasons.get(reason)), [1, 1]);
        assert_eq!((bench.requests.waiting(), bench.cache.draining), ([2, 1], true));
    }

    #[test]
    fn the_promise_follows_from_the_policy_and_from_the_write() {
        let mut bench = Bench::new(Level::Raid5);
        let fua = RequestKind::Write { fua: true };
        let [plain, durable] = [WRITE, fua].map(|kind| bench.piece(kind, 0, 8));
        let mut of = |write_cache, piece, journal| {
            bench.sets.get_mut(SET).set_policy(Policy { write_cache, ..Policy::default() });
            promise_of(&bench.requests, bench.sets.get(SET), piece, journal)
        };
        assert_eq!(of(WriteCache::Through, plain, true), Promise::Through);
        assert_eq!(
            [plain, durable].map(|piece| of(WriteCache::Volatile, piece, false)),
            [Promise::Volatile, Promise::Through]
        );
        assert_eq!(
            [true, false].map(|live| of(WriteCache::Journal, durable, live)),
            [Promise::Journal, Promise::Through]
        );
        bench.sets.get_mut(SET).fail();
        let of_failed = promise_of(&bench.requests, bench.sets.get(SET), plain, true);
        assert_eq!(of_failed, Promise::Through, "a failed set takes nothing");
    }
}
