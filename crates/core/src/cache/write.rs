//! Writes of hosts and the cache: into lines where the policy says so, past them otherwise.
//!
//! A write past the cache must not meet dirty sectors: they would be written after it. It waits until they are on
//! the members. Clean lines forget what it writes, before it begins and when it ends: what a read brings meanwhile
//! may be old.

use openraid_units::{Sectors, SetId, SetLba, Tag, TagKind};

use super::lines::{lines_of, Mask, LINE_SECTORS};
use super::units::UnitState;
use super::{unit_at, unit_extent};
use crate::actions::{Actions, JobColumn, JobKind, ParityJob};
use crate::admin::WriteCache;
use crate::array::set::Life;
use crate::controller::Controller;
use crate::events::RequestKind;
use crate::io::op::{Op, OpKind};
use crate::io::split::narrow;
use crate::limits::FRAME_BYTES;
use crate::reason::Reason;
use crate::slab::NONE;

/// Lines that one look puts a piece into at the most, so that the actions have room.
const LINES_AT_ONCE: u64 = 64;

/// What the cache makes of a part of a read or a write.
pub(crate) enum Cached {
    /// It has dealt with the first part.
    Taken,
    /// So many sectors are to be read or written past it.
    Past(Sectors),
    /// The piece waits, for lines or for a dirty unit; it is called again.
    Waits,
}

impl Controller {
    /// What the cache makes of a part of a piece, which lies in one set.
    pub(crate) fn ask_cache(
        &mut self,
        piece: u32,
        set: SetId,
        (at, len): (SetLba, Sectors),
        is_read: bool,
        actions: &mut Actions,
    ) -> Cached {
        if is_read {
            if self.requests[self.pieces[piece].request].ahead {
                return self.reserve_ahead(piece, set, at, len);
            }
            return self.read_from_cache(piece, set, at, len, actions);
        }
        if self.is_cached_write(piece, set) {
            return self.cache_write(piece, set, at, len, actions);
        }
        if let Some(unit) = self.dirty_unit_below(set, at, len) {
            self.pieces[piece].next_waiter = core::mem::replace(&mut self.cache.units.get_mut(unit).waiters, piece);
            return Cached::Waits;
        }
        Cached::Past(len)
    }

    /// Is this piece of a write to be cached? Only what fills blocks is.
    fn is_cached_write(&self, piece: u32, set: SetId) -> bool {
        let entry = &self.pieces[piece];
        let plain = self.requests[entry.request].request.kind == RequestKind::Write { fua: false };
        let set = self.set(set);
        plain
            && set.policy.write_cache == WriteCache::Volatile
            && set.life == Life::Running
            && set.is_cacheable
            && entry.head_skip == 0
            && entry.tail_skip == 0
    }

    /// The first dirty unit that something which goes past the cache has to wait for; it is hurried. Where there is
    /// none the clean lines of these sectors have forgotten them.
    fn dirty_unit_below(&mut self, set: SetId, at: SetLba, len: Sectors) -> Option<u32> {
        let geometry = &self.sets[set.index()].as_ref().expect("operations belong to sets").geometry;
        let unit = self.cache.dirty_unit_in(geometry, set, at, len);
        match unit {
            Some(unit) => {
                self.explain(set, Reason::WaitedForDestage, self.cache.units.get(unit).number, 0);
                self.hurry_unit(unit);
            }
            None => self.cache.invalidate(set, at, len),
        }
        unit
    }

    /// May a discard of these sectors go past the cache now?
    pub(crate) fn may_pass_cache(&mut self, set: SetId, at: SetLba, len: Sectors) -> bool {
        self.dirty_unit_below(set, at, len).is_none()
    }

    /// What an operation has written past the cache is not what a read brought while it was under way.
    pub(crate) fn forget_written(&mut self, op: &Op) {
        match op.kind {
            OpKind::Write => self.cache.invalidate(op.set, op.at, op.len),
            OpKind::Discard if !self.is_row_op(op) => self.cache.invalidate(op.set, op.at, op.len),
            OpKind::RowWrite => {
                let chunk = self.parity_of(op).chunk();
                for column in 0..u64::from(op.columns) {
                    let rows = Sectors(u64::from(op.hi - op.lo));
                    self.cache.invalidate(op.set, op.at + chunk * column, rows);
                }
            }
            OpKind::Discard => {
                let parity = self.parity_of(op);
                let (at, len) = (parity.set_lba(op.stripe, 0, Sectors::ZERO), parity.full_stripe());
                self.cache.invalidate(op.set, at, len);
            }
            _ => {}
        }
    }

    /// Somebody waits for a dirty unit: it is written next.
    pub(crate) fn hurry_unit(&mut self, unit: u32) {
        let entry = self.cache.units.get_mut(unit);
        entry.urgent = true;
        if entry.state == UnitState::Waiting {
            self.cache.counters.urgent += 1;
            self.cache.units.set_state(unit, UnitState::Ready);
        }
    }

    /// Take as many sectors of a piece as there are lines for: whole lines, or one that is not whole.
    fn cache_write(&mut self, piece: u32, set: SetId, at: SetLba, len: Sectors, actions: &mut Actions) -> Cached {
        let from = self.pieces[piece].split;
        let run = self.pieces[piece].run.expect("writes have frames");
        let (number, _) = unit_at(&self.set(set).geometry, at);
        let (start, sectors) = unit_extent(&self.set(set).geometry, number);
        let len = len.min((start + sectors) - at);
        let columns = actions.columns.len();
        let (mut taken, mut unit) = (Sectors::ZERO, NONE);
        for (count, (line_number, first, last)) in (0..).zip(lines_of(at, len)) {
            let whole = last - first == LINE_SECTORS;
            if count == LINES_AT_ONCE || (count > 0 && !whole) || !self.may_dirty(set, line_number) {
                break;
            }
            let Some(line) = self.cache.line_for(set, line_number) else { break };
            if unit == NONE {
                unit = self.dirty_unit_of(set, number);
            }
            self.cache.mark_dirty(line, Mask::range(first, last), unit, sectors.get());
            let old = run.at + (from + taken).bytes();
            actions.columns.push(JobColumn { index: 0, at: self.cache.lines.frame(line, first), old });
            taken += Sectors(last - first);
            if !whole {
                break;
            }
        }
        if taken.is_zero() {
            self.explain(set, Reason::WaitedForCache, at.get(), self.cache.dirty);
            self.cache.draining = true;
            self.cache_waiters.push(piece);
            return Cached::Waits;
        }
        let bytes = taken.bytes().get().min(FRAME_BYTES);
        self.push_piece_copy(piece, columns, bytes, actions);
        self.pieces[piece].split += taken;
        self.explain(set, Reason::WriteCached, at.get(), narrow(taken));
        Cached::Taken
    }

    /// May one more line of this place be dirty?
    fn may_dirty(&self, set: SetId, number: u64) -> bool {
        let dirty = |index| !self.cache.lines.get(index).dirty.is_empty();
        self.cache.dirty < self.cache.dirty_max || self.cache.lines.find(set, number).is_some_and(dirty)
    }

    /// The dirty unit of this number; a new one counts for its set.
    fn dirty_unit_of(&mut self, set: SetId, number: u64) -> u32 {
        if let Some(unit) = self.cache.units.find(set, number) {
            return unit;
        }
        let now = self.now;
        let entry = self.set_mut(set);
        entry.dirty.new += 1;
        let epoch = entry.dirty.epoch;
        self.cache.units.make(set, number, now, epoch)
    }

    /// Copies in the name of a piece: the columns of the arena from `columns` on.
    pub(crate) fn push_piece_copy(&mut self, piece: u32, columns: usize, bytes: u64, actions: &mut Actions) {
        self.pieces[piece].ops += 1;
        actions.jobs.push(ParityJob {
            tag: Tag::new(TagKind::Transfer, piece, self.pieces.generation(piece)),
            kind: JobKind::Copy,
            len: u32::try_from(bytes).expect("at most a line"),
            columns_start: u32::try_from(columns).expect("the arena is small"),
            columns_len: u16::try_from(actions.columns.len() - columns).expect("few lines at once"),
            p: None,
            q: None,
        });
    }

    /// Lines may be had again: the pieces that wait for some try it.
    pub(crate) fn wake_cache_waiters(&mut self) {
        while let Some(piece) = self.cache_waiters.pop() {
            self.splitting.push(piece);
        }
    }
}
