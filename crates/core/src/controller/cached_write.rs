//! A piece of a write asks the cache: it goes into the cache and the journal, waits, or passes the cache.

use openraid_units::Sectors;
use openraid_units::SetId;
use openraid_units::SetLba;

use crate::actions::Actions;
use crate::actions::JobColumn;
use crate::actions::ReplyStatus;
use crate::cache::lines::Mask;
use crate::cache::write::LINES_AT_ONCE;
use crate::cache::write::{meets_direct_write, promise_of, push_piece_copy, session_wait, PieceWait, Promise};
use crate::call::Call;
use crate::controller::Controller;
use crate::geometry::cache_units::lines_of;
use crate::geometry::cache_units::unit_at;
use crate::geometry::cache_units::unit_number;
use crate::geometry::cache_units::LINE_SECTORS;
use crate::io::state::footprint::narrow;
use crate::limits::FRAME_BYTES;
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::requests::piece::Cached;
use crate::requests::piece::PieceEntry;
use crate::slab::NONE;

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
            let Self { cache, requests, sets, base, .. } = self;
            let call = &mut Call::new(base, actions);
            return cache.read_from_cache((requests, sets), piece, (set, at, len), call);
        }
        let promises = self.journal.is_wanted_by(self.sets.get(set));
        let promise = promise_of(&self.requests, self.sets.get(set), piece, promises);
        if promise == Promise::Journal {
            if let Some(reason) = self.would_wait_in_session(set) {
                return self.wait_for_cache(PieceWait::new(piece, (set, at), reason));
            }
        }
        if let Some(reason) = session_wait(&mut self.sets, set, promises) {
            return self.wait_for_others(PieceWait::new(piece, (set, at), reason));
        }
        if !promises && self.sets.get(set).journal.has_session() && !self.journal.is_live() {
            // It will not end. A crash would replay the journal over the data that is written now.
            self.requests.piece_mut(piece).note_error(Some(ReplyStatus::IoError));
            return Cached::Taken;
        }
        match promise {
            Promise::Volatile | Promise::Journal if self.requests.is_behind_starved(piece) => {
                self.wait_for_others(PieceWait::new(piece, (set, at), Reason::WaitedForDestage))
            }
            Promise::Volatile | Promise::Journal => self.cache_write(piece, set, (at, len), promise, actions),
            Promise::Through => self.pass_cache(piece, (set, at, len)),
        }
    }

    /// See [`Cache::pass_cache`](crate::cache::Cache::pass_cache).
    fn pass_cache(&mut self, piece: u32, place: (SetId, SetLba, Sectors)) -> Cached {
        self.cache.pass_cache((&mut self.requests, &mut self.sets), piece, place, &mut self.base.trace)
    }

    /// The piece waits for room in the cache.
    fn wait_for_cache(&mut self, wait: PieceWait) -> Cached {
        self.cache.wait_for_cache((&mut self.requests, &mut self.sets), wait, &mut self.base.trace)
    }

    /// The piece waits until something other than lines changes.
    fn wait_for_others(&mut self, wait: PieceWait) -> Cached {
        self.cache.wait_for_others((&mut self.requests, &mut self.sets), wait, &mut self.base.trace)
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
        let entry = self.requests.piece(piece);
        let (from, base) = (entry.split(), entry.frames_at());
        let (start, sectors) = unit_at(self.sets.get(set).shape(), at);
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
            if promise == Promise::Journal && meets_direct_write(&self.ops, &self.sets, set, line_number) {
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
                unit = cache.dirty_unit_of(sets, (set, start), self.base.now, self.base.limits.destage_zones);
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
                return self.pass_cache(piece, (set, at, len));
            }
            let reason = if is_full { Reason::WaitedForCache } else { fits.err().unwrap_or(Reason::WaitedForDestage) };
            return self.wait_for_cache(PieceWait::new(piece, (set, at), reason));
        }
        self.cache.note_cached(set, taken, self.cache.counters.overwritten - merged);
        push_piece_copy(&mut self.requests, piece, columns, taken.bytes().get().min(FRAME_BYTES), actions);
        let entry = self.requests.piece_mut(piece);
        entry.split_off(taken);
        entry.end_wait();
        let reason = if promise == Promise::Journal { Reason::WriteJournalled } else { Reason::WriteCached };
        self.base.trace.note(&mut self.sets, set, reason, at.get(), narrow(taken));
        let entry = if promise == Promise::Journal { self.journal.open_entry() } else { 0 };
        let sets = &self.sets;
        let unit = || unit_number(sets.get(set).shape(), start);
        self.base.trace.piece(&self.requests, piece, || StepEvent::Cached { set, unit: unit(), len: taken, entry });
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
