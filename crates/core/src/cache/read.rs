//! Reads of hosts and the cache: what lines have is copied, the rest comes from the members and is kept.

use openraid_units::{Sectors, SetId, SetLba};

use super::lines::{lines_of, Mask, LINE_SECTORS};
use crate::actions::{Actions, JobColumn};
use crate::controller::Controller;
use crate::limits::FRAME_BYTES;
use crate::reason::Reason;
use crate::slab::NONE;

/// Lines that one look takes into account at the most, so that the actions have room.
const LINES_AT_ONCE: usize = 64;

impl Controller {
    /// The first part of an extent that a read wants: `Some` sectors where the members have to be asked, `None`
    /// where the cache had it (the piece's `split` has moved).
    pub(crate) fn read_from_cache(
        &mut self,
        piece: u32,
        set: SetId,
        at: SetLba,
        len: Sectors,
        actions: &mut Actions,
    ) -> Option<Sectors> {
        let (hit, run) = self.cached_run(set, at, len);
        if !hit {
            self.cache.counters.read_misses += run.get();
            self.begin_fill(piece, set, at, run);
            return Some(run);
        }
        self.cache.counters.read_hits += run.get();
        let from = self.pieces[piece].split;
        let base = self.pieces[piece].run.expect("reads have frames").at;
        let mut done = Sectors::ZERO;
        while done < run {
            let columns = actions.columns.len();
            let mut bytes = 0;
            for (number, first, last) in lines_of(at + done, run - done) {
                let len = Sectors(last - first);
                let whole = last - first == LINE_SECTORS;
                if bytes > 0 && !whole {
                    break;
                }
                let line = self.cache.lines.find(set, number).expect("it was found before");
                self.cache.lines.touch(line);
                let old = self.cache.lines.frame(line, first);
                actions.columns.push(JobColumn { index: 0, at: base + (from + done).bytes(), old });
                done += len;
                bytes = len.bytes().get().min(FRAME_BYTES);
                if !whole {
                    break;
                }
            }
            self.push_piece_copy(piece, columns, bytes, actions);
        }
        self.pieces[piece].split += run;
        self.set_mut(set).reasons.count(Reason::ReadCached);
        None
    }

    /// Does the cache have what stands at `at`, and for how many sectors is that so?
    fn cached_run(&self, set: SetId, at: SetLba, len: Sectors) -> (bool, Sectors) {
        let mut first_hit = None;
        let mut run = 0;
        for (number, first, last) in lines_of(at, len).take(LINES_AT_ONCE) {
            let valid = self.cache.lines.find(set, number).map_or(Mask::NONE, |i| self.cache.lines.get(i).valid);
            let mut from = first;
            while from < last {
                let (hit, to) = valid.run(from);
                if *first_hit.get_or_insert(hit) != hit {
                    return (!hit, Sectors(run));
                }
                run += to.min(last) - from;
                from = to;
            }
        }
        (first_hit.unwrap_or(false), Sectors(run))
    }

    /// The members are asked for these sectors: lines are kept ready for them, unless memory is short.
    fn begin_fill(&mut self, piece: u32, set: SetId, at: SetLba, len: Sectors) {
        let keeps = self.set(set).policy.read_cache && self.set(set).is_cacheable;
        // Not all that can be had: writes need some too.
        let room = u64::from(self.cache.lines.room() / 2);
        if !keeps || len.get() / LINE_SECTORS >= room {
            return;
        }
        for (number, first, last) in lines_of(at, len) {
            let Some(index) = self.cache.line_for(set, number) else { return };
            let line = self.cache.lines.get_mut(index);
            let wanted = Mask::range(first, last).without(line.valid);
            if line.filling.is_empty() && !wanted.is_empty() {
                (line.filling, line.filler) = (wanted, piece);
                self.pieces[piece].fills = true;
            } else {
                self.cache.settle_unless_used(index);
            }
        }
    }

    /// A read has all its bytes: keep what its lines still want.
    pub(crate) fn end_fill(&mut self, piece: u32, keep: bool, actions: &mut Actions) {
        if !core::mem::take(&mut self.pieces[piece].fills) {
            return;
        }
        let (mut at, last) = (self.pieces[piece].first, self.pieces[piece].last);
        let array = self.requests[self.pieces[piece].request].request.array;
        while at < last {
            let volume = &self.array(array).expect("requests belong to arrays").volume;
            let (set, set_lba, run) = volume.map(at, |set| self.set(set).geometry.capacity());
            let len = run.min(last - at);
            let from = at - self.pieces[piece].first;
            self.fill_extent(piece, set, (set_lba, from, len), keep, actions);
            at += len;
        }
    }

    /// An extent of the set, which begins `from` sectors into the piece.
    fn fill_extent(
        &mut self,
        piece: u32,
        set: SetId,
        (at, from, len): (SetLba, Sectors, Sectors),
        keep: bool,
        actions: &mut Actions,
    ) {
        let base = self.pieces[piece].run.map(|run| run.at);
        for (number, first, last) in lines_of(at, len) {
            let Some(index) = self.cache.lines.find(set, number) else { continue };
            let line = self.cache.lines.get_mut(index);
            if line.filler != piece || line.filling.is_empty() {
                continue;
            }
            let mut filling = core::mem::take(&mut line.filling);
            line.filler = NONE;
            let wanted = Mask::range(first, last);
            let mut sector = first;
            while let (true, Some(base)) = (keep && !Mask(filling.0 & wanted.0).is_empty(), base) {
                let (inside, to) = filling.run(sector);
                if inside {
                    let to = to.min(last);
                    let place = Sectors(number * LINE_SECTORS + sector) - Sectors(at.get());
                    let columns = actions.columns.len();
                    let target = self.cache.lines.frame(index, sector);
                    actions.columns.push(JobColumn { index: 0, at: target, old: base + (from + place).bytes() });
                    self.push_piece_copy(piece, columns, Sectors(to - sector).bytes().get(), actions);
                    let part = Mask::range(sector, to);
                    let line = self.cache.lines.get_mut(index);
                    line.valid = line.valid.with(part);
                    filling = filling.without(part);
                }
                sector = to;
            }
            self.cache.settle_unless_used(index);
        }
    }
}
