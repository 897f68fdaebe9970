//! Writes of hosts and the cache: into lines if the policy says so, past them otherwise.
//!
//! A write past the cache must not meet dirty sectors, because destage would write the older data after it. It waits
//! until they are on the members. Clean lines drop its range, before it begins and when it ends: a read may bring old
//! data meanwhile.

use openraid_units::{Instant, Sectors, SetId, SetLba};

use super::lines::{lines_of, Mask, LINE_SECTORS};
use super::units::UnitState;
use super::Cache;
use super::{unit_at, unit_extent, unit_start, zone_at};
use crate::actions::{Actions, JobColumn, JobKind, ParityJob, ReplyStatus};
use crate::admin::WriteCache;
use crate::array::sets::Sets;
use crate::cache::callers::Callers;
use crate::controller::Controller;
use crate::events::RequestKind;
use crate::geometry::Geometry;
use crate::io::ended::Past;
use crate::io::footprint::narrow;
use crate::io::lock::{LockMode, LockRange};
use crate::io::op::Phase;
use crate::io::ops::Ops;
use crate::journal::log::Log;
use crate::journal::Journal;
use crate::limits::{FRAME_BYTES, REGION_SECTORS};
use crate::reason::Reason;
use crate::requests::piece::PieceEntry;
use crate::requests::Requests;
use crate::slab::NONE;
use crate::steps::What;
use crate::trace::Trace;

/// Maximum number of lines into which one call puts a piece, so that the actions have room.
const LINES_AT_ONCE: u64 = 64;

/// The place in which an acknowledged write is kept until it is on the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Promise {
    /// None: it is acknowledged when it is on the members.
    Through,
    /// The cache, which loses it in a power cut.
    Volatile,
    /// The journal.
    Journal,
}

/// The cache's answer for a part of a read or a write.
pub(crate) enum Cached {
    /// It has handled the first part.
    Taken,
    /// This number of sectors bypasses the cache.
    Past(Sectors),
    /// The piece waits, for lines or for a dirty unit; it is called again.
    Waits,
}

impl Cache {
    /// Has destage tried every dirty unit of a set that is being stopped? The members refuse the data that is left.
    pub(crate) fn is_all_tried(&self, set: SetId) -> bool {
        !self.is_writing(set) && !self.units.is_any_untried(set)
    }
    /// The dirty unit of a set with this number; a new one is counted for its set.
    pub(crate) fn dirty_unit_of(
        &mut self,
        sets: &mut Sets,
        (set, number): (SetId, u64),
        now: Instant,
        zones: u32,
    ) -> u32 {
        if let Some(unit) = self.units.find(set, number) {
            return unit;
        }
        let entry = sets.get_mut(set);
        let epoch = entry.dirty.begin_unit();
        let at = unit_start(entry.geometry(), number);
        let zone = zone_at(entry, zones, at);
        self.units.make((set, number, zone), now, epoch)
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
}

impl Cache {
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
    fn may_dirty(&self, set: SetId, number: u64) -> bool {
        let dirty = |index| !self.lines.get(index).dirty.is_empty();
        self.has_dirty_room(set) || self.lines.find(set, number).is_some_and(dirty)
    }
}

impl Ops {
    /// Will a write past the cache request a range that meets this one as soon as there is room in the journal, or as
    /// soon as its rows are redone? It would revoke data that was acknowledged before it.
    fn begins_direct_write(&self, range: LockRange) -> bool {
        self.is_ready_or_awaits_journal(|op| {
            op.phase() == Phase::Start && op.is_direct_write() && op.lock_range().conflicts(&range)
        })
    }
}

impl Requests {
    /// Issue copies for a piece: the columns of the arena from `columns` on.
    pub(crate) fn push_piece_copy(&mut self, piece: u32, columns: usize, bytes: u64, actions: &mut Actions) {
        self.piece_mut(piece).begin_op();
        actions.jobs.push(ParityJob {
            tag: self.piece_tag(piece),
            kind: JobKind::Copy,
            len: u32::try_from(bytes).expect("at most a line"),
            columns_start: u32::try_from(columns).expect("the arena is small"),
            columns_len: u16::try_from(actions.columns.len() - columns).expect("few lines at once"),
            p: None,
            q: None,
        });
    }
}

impl Sets {
    /// The reason for which a write must wait for the journal session of its set, if any.
    fn session_wait(&mut self, set: SetId, promises: bool) -> Option<Reason> {
        if promises {
            return (!self.ask_for_session(set)).then_some(Reason::WaitedForJournalStart);
        }
        // A session that is not wanted any more ends only if nothing is added to it.
        self.get(set).is_session_ending().then_some(Reason::WaitedForJournalEnd)
    }
}

impl Cache {
    /// Let a write go past the cache when it meets no dirty data any more.
    fn pass_cache(&mut self, with: &mut Callers<'_>, piece: u32, set: SetId, at: SetLba, len: Sectors) -> Cached {
        match self.dirty_unit_below(with.sets, with.trace, set, at, len) {
            Some(unit) => {
                with.trace.piece(with.requests, piece, || What::Reason { reason: Reason::WaitedForDestage, figure: 0 });
                let waiters = &mut self.units.get_mut(unit).waiters;
                *waiters = with.requests.wait_in_chain(piece, *waiters);
                with.requests.count_turn(piece);
                Cached::Waits
            }
            None => {
                with.requests.end_turns(piece);
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
        let geometry = sets.get(set).geometry();
        let unit = self.dirty_unit_in(geometry, set, at, len);
        match unit {
            Some(unit) => {
                trace.note(sets, set, Reason::WaitedForDestage, self.units.get(unit).number, 0);
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
        let geometry = sets.get(set).geometry();
        let below = self.dirty_unit_in(geometry, set, at, len);
        if below.is_some_and(|unit| self.units.get(unit).state == UnitState::Resting) {
            self.invalidate(set, at, len);
            return true;
        }
        self.dirty_unit_below(sets, trace, set, at, len).is_none()
    }

    /// Drop from clean lines the range that an operation has written past the cache: a read may have brought old data
    /// meanwhile.
    pub(crate) fn forget_written(&mut self, sets: &Sets, id: SetId, past: Past) {
        let columns_apart = if past.columns > 1 { sets.get(id).parity().chunk() } else { Sectors::ZERO };
        for column in 0..u64::from(past.columns) {
            self.invalidate(id, past.at + columns_apart * column, past.len);
        }
    }

    /// A piece waits, for this reason. It is called again at each event that may end the wait, and that still counts as
    /// one wait.
    fn note_wait(&self, with: &mut Callers<'_>, piece: u32, set: SetId, reason: Reason, at: SetLba) {
        if with.requests.piece_mut(piece).begin_wait(reason) {
            with.note_piece(piece, set, reason, at.get(), self.dirty);
        }
    }

    /// A piece waits for this reason until something other than lines changes.
    fn wait_for_others(&self, with: &mut Callers<'_>, piece: u32, set: SetId, reason: Reason, at: SetLba) -> Cached {
        self.note_wait(with, piece, set, reason, at);
        with.requests.wait_for_others(piece);
        Cached::Waits
    }

    /// A piece waits for room.
    fn wait_for_cache(&mut self, with: &mut Callers<'_>, piece: u32, set: SetId, reason: Reason, at: SetLba) -> Cached {
        self.note_wait(with, piece, set, reason, at);
        self.draining = true;
        match reason {
            Reason::WaitedForCache => with.requests.wait_for_lines(piece, self.has_room()),
            _ => with.requests.wait_for_others(piece),
        }
        Cached::Waits
    }

    /// Number of further lines that the log may cover, because more could not be loaded again. If they are too few, a
    /// round is requested.
    fn replay_room(&mut self, journal: &mut Journal) -> Result<u64, Reason> {
        let lines = self.replay_lines(journal.logged_lines());
        if lines.is_none() {
            journal.note_short();
        }
        lines.ok_or(Reason::WaitedForReplayRoom)
    }
}

impl Callers<'_> {
    /// The place in which this piece of a write is kept until the members have it. The cache takes only whole blocks;
    /// `promises` says whether the journal is to protect writes of the set.
    fn promise_of(&self, piece: u32, id: SetId, promises: bool) -> Promise {
        let entry = self.requests.piece(piece);
        let RequestKind::Write { fua } = self.requests.get(entry.request()).kind() else { return Promise::Through };
        let set = self.sets.get(id);
        let cached = set.is_running() && set.is_cacheable() && entry.is_whole_blocks();
        match set.policy().write_cache {
            WriteCache::Volatile if cached && !fua && !set.journal.has_session() => Promise::Volatile,
            WriteCache::Journal if cached && promises => Promise::Journal,
            _ => Promise::Through,
        }
    }

    /// Note the reason for which a piece waits.
    pub(crate) fn note_piece(&mut self, piece: u32, set: SetId, reason: Reason, unit: u64, figure: u32) {
        self.trace.note(self.sets, set, reason, unit, figure);
        self.trace.piece(self.requests, piece, || What::Reason { reason, figure });
    }
}

impl Ops {
    /// Is a write past the cache under way on this line? The sectors next to its own that it writes may be older than
    /// this write, and the journal would take them for newer.
    fn meets_direct_write(&self, sets: &Sets, id: SetId, number: u64) -> bool {
        let set = sets.get(id);
        if set.direct_writes() == 0 {
            return false;
        }
        let at = SetLba(number * LINE_SECTORS);
        let (unit, from) = match set.geometry() {
            Geometry::Parity(parity) => {
                let (stripe, _, row) = parity.locate(at);
                (stripe.0, row.get())
            }
            _ => (at.get() / REGION_SECTORS, at.get() % REGION_SECTORS),
        };
        let lo = narrow(Sectors(from));
        let range = LockRange { set: id, unit, lo, hi: lo + narrow(Sectors(LINE_SECTORS)), mode: LockMode::Exclusive };
        self.locks().conflicting(range).any(|op| self[op].is_direct_write()) || self.begins_direct_write(range)
    }
}

impl Controller {
    /// The cache's answer for a part of a piece, which lies in one set.
    pub(crate) fn ask_cache(
        &mut self,
        piece: u32,
        set: SetId,
        (at, len): (SetLba, Sectors),
        is_read: bool,
        actions: &mut Actions,
    ) -> Cached {
        if is_read {
            if self.requests.of_piece(piece).is_ahead() {
                return self.cache.reserve_ahead(&mut self.requests, &self.sets, piece, set, at, len);
            }
            let (cache, mut with) = self.cache_and_callers();
            return cache.read_from_cache(&mut with, piece, set, at, len, actions);
        }
        let promises = self.journal.is_wanted_by(self.sets.get(set));
        let promise = self.cache_and_callers().1.promise_of(piece, set, promises);
        if promise == Promise::Journal {
            if let Some(reason) = self.would_wait_in_session(set) {
                let (cache, mut with) = self.cache_and_callers();
                return cache.wait_for_cache(&mut with, piece, set, reason, at);
            }
        }
        if let Some(reason) = self.sets.session_wait(set, promises) {
            let (cache, mut with) = self.cache_and_callers();
            return cache.wait_for_others(&mut with, piece, set, reason, at);
        }
        if !promises && self.sets.get(set).journal.has_session() && !self.journal.is_live() {
            // It will not end. A crash would replay the journal over the data that is written now.
            self.requests.piece_mut(piece).note_error(Some(ReplyStatus::IoError));
            return Cached::Taken;
        }
        match promise {
            Promise::Volatile | Promise::Journal if self.requests.is_behind_starved(piece) => {
                let (cache, mut with) = self.cache_and_callers();
                cache.wait_for_others(&mut with, piece, set, Reason::WaitedForDestage, at)
            }
            Promise::Volatile | Promise::Journal => self.cache_write(piece, set, (at, len), promise, actions),
            Promise::Through => {
                let (cache, mut with) = self.cache_and_callers();
                cache.pass_cache(&mut with, piece, set, at, len)
            }
        }
    }

    /// The reason for which a write would wait in a session that begins for it. While other sets fill the cache, the
    /// ring, or the lines that replay may load, the session would become quiet and end before there is room, and begin
    /// again for the same piece.
    fn would_wait_in_session(&mut self, id: SetId) -> Option<Reason> {
        let journal = &self.sets.get(id).journal;
        if journal.has_session() || journal.is_asked() || self.cache.is_held() {
            return None;
        }
        if !self.cache.has_dirty_room(id) {
            return Some(Reason::WaitedForCache);
        }
        let spare = self.journal.room_behind_data(&self.sets, &self.cache, LINES_AT_ONCE);
        self.cache.replay_room(&mut self.journal).err().or_else(|| self.journal.ring_takes_group(spare).err())
    }

    /// Cache as many sectors of a piece as there are lines for: whole lines, or one partial line.
    fn cache_write(
        &mut self,
        piece: u32,
        set: SetId,
        (at, len): (SetLba, Sectors),
        promise: Promise,
        actions: &mut Actions,
    ) -> Cached {
        let own = self.requests.piece(piece);
        let (from, base) = (own.split(), own.frames_at());
        let (number, _) = unit_at(self.sets.get(set).geometry(), at);
        let (start, sectors) = unit_extent(self.sets.get(set).geometry(), number);
        let len = len.min((start + sectors) - at);
        let fits = if promise == Promise::Journal { self.fit_into_entry(at, len) } else { Ok(len) };
        let len = fits.unwrap_or(Sectors::ZERO);
        let columns = actions.columns.len();
        let (mut taken, mut unit, mut is_full) = (Sectors::ZERO, NONE, false);
        let merged = self.cache.counters.overwritten;
        for (count, (line_number, first, last)) in (0..).zip(lines_of(at, len)) {
            if len.is_zero() {
                break;
            }
            let whole = last - first == LINE_SECTORS;
            if promise == Promise::Journal && self.ops.meets_direct_write(&self.sets, set, line_number) {
                break;
            }
            if count == LINES_AT_ONCE || (count > 0 && !whole) {
                break;
            }
            let line = self.cache.may_dirty(set, line_number).then(|| self.cache.line_for(set, line_number)).flatten();
            let Some(line) = line else {
                is_full = true;
                break;
            };
            if unit == NONE {
                let Self { cache, sets, .. } = self;
                unit = cache.dirty_unit_of(sets, (set, number), self.base.now, self.base.limits.destage_zones);
            }
            let (mask, old) = (Mask::range(first, last), base + (from + taken).bytes());
            if promise == Promise::Journal {
                let to = self.append_line(piece, set, (at, taken), (line, first, last));
                actions.columns.push(JobColumn { index: 0, at: to, old });
            }
            self.cache.mark_dirty(line, mask, unit, sectors.get());
            actions.columns.push(JobColumn { index: 0, at: self.cache.lines.frame(line, first), old });
            taken += Sectors(last - first);
            if !whole {
                break;
            }
        }
        if taken.is_zero() {
            if is_full && self.cache.is_held() {
                let (cache, mut with) = self.cache_and_callers();
                return cache.pass_cache(&mut with, piece, set, at, len);
            }
            let reason = if is_full { Reason::WaitedForCache } else { fits.err().unwrap_or(Reason::WaitedForDestage) };
            let (cache, mut with) = self.cache_and_callers();
            return cache.wait_for_cache(&mut with, piece, set, reason, at);
        }
        self.sets.note_cached(set, taken, self.cache.counters.overwritten - merged);
        self.requests.push_piece_copy(piece, columns, taken.bytes().get().min(FRAME_BYTES), actions);
        let own = self.requests.piece_mut(piece);
        own.split_off(taken);
        own.end_wait();
        let reason = if promise == Promise::Journal { Reason::WriteJournalled } else { Reason::WriteCached };
        self.base.trace.note(&mut self.sets, set, reason, at.get(), narrow(taken));
        let entry = if promise == Promise::Journal { self.journal.open_entry() } else { 0 };
        self.base.trace.piece(&self.requests, piece, || What::Cached { set, unit: number, len: taken, entry });
        Cached::Taken
    }

    /// Number of sectors of an extent that the open entry of the journal can take now; if none, the reason to wait.
    fn fit_into_entry(&mut self, at: SetLba, len: Sectors) -> Result<Sectors, Reason> {
        let lines = self.cache.replay_room(&mut self.journal)?;
        let spare = self.journal.room_behind_data(&self.sets, &self.cache, LINES_AT_ONCE);
        let first = lines_of(at, len).next().map_or(0, |(_, first, last)| last - first);
        // A small cache has fewer lines than one call may take.
        let len = len.min(Sectors(first + (lines - 1) * LINE_SECTORS));
        self.journal.group_takes(1, first, spare)?;
        let room = self.journal.open_room();
        if room >= len {
            return Ok(len);
        }
        // Whole lines.
        let end = at + room;
        Ok(Sectors(first.max((end.get() - end.get() % LINE_SECTORS).saturating_sub(at.get()))))
    }

    /// Append a line that is about to be written to the open entry. Returns the place to which its bytes are to be
    /// copied.
    fn append_line(
        &mut self,
        piece: u32,
        set: SetId,
        (at, taken): (SetLba, Sectors),
        (line, first, last): (u32, u64, u64),
    ) -> openraid_units::PoolOffset {
        let len = Sectors(last - first);
        debug_assert!(self.journal.logged_lines() < self.cache.lines.len(), "what the log holds can be loaded again");
        let array = self.sets.get(set).journal.index();
        if self.requests.wait_for_entry(piece, PieceEntry::Waits(self.journal.open_entry())) {
            self.journal.add_piece(piece);
        }
        let (payload_at, to) = self.journal.append_data(array, (at + taken, len), taken.is_zero(), self.base.now);
        let payload_at = i16::try_from(payload_at.get()).expect("a payload is at most 1 MiB");
        let place = payload_at - i16::try_from(first).expect("a line is short");
        let sequence = self.journal.open_entry();
        self.cache.log_line(self.journal.log_mut(), line, Mask::range(first, last), Some(place), sequence);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Policy;
    use crate::cache::bench::{Bench, SET, WRITE};
    use crate::geometry::Level;
    use crate::io::op::DestageData;

    fn pass(bench: &mut Bench, piece: u32, at: u64) -> Cached {
        let (cache, mut with, _) = bench.parts();
        cache.pass_cache(&mut with, piece, SET, SetLba(at), Sectors(8))
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
        bench.cache.forget_written(&bench.sets, SET, Past { at: SetLba(8), len: Sectors(8), columns: 1 });
        assert!(!valid(&bench));
    }

    #[test]
    fn a_wait_is_counted_once_however_often_its_piece_is_called() {
        let mut bench = Bench::new(Level::Raid5);
        let piece = bench.piece(WRITE, 0, 8);
        for reason in [Reason::WaitedForCache, Reason::WaitedForCache, Reason::WaitedForDestage] {
            let (cache, mut with, _) = bench.parts();
            assert!(matches!(cache.wait_for_cache(&mut with, piece, SET, reason, SetLba(0)), Cached::Waits));
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
            bench.parts().1.promise_of(piece, SET, journal)
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
        assert_eq!(bench.parts().1.promise_of(plain, SET, true), Promise::Through, "a failed set takes nothing");
    }
}
