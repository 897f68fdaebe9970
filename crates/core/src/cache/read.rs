//! Reads of hosts and the cache: data in lines is copied, the rest is read from the members and kept.

use openraid_units::{Sectors, SetId, SetLba};

use crate::actions::{Actions, JobColumn};
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::cache::lines::Mask;
use crate::cache::write::{note_piece, push_piece_copy, PieceWait};
use crate::cache::Cache;
use crate::call::Call;
use crate::geometry::cache_units::{lines_of, LINE_SECTORS};
use crate::limits::FRAME_BYTES;
use crate::reason::Reason;
use crate::request_steps::StepEvent;
use crate::requests::piece::Cached;
use crate::requests::Requests;
use crate::slab::NONE;
use crate::trace::Trace;

/// Maximum number of lines that one call considers, so that the actions have room.
const LINES_AT_ONCE: usize = 64;

/// The source of sectors that a read requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadSource {
    /// In lines.
    Here,
    /// On their way to lines, with this piece of read-ahead.
    Coming(u32),
    /// On the members.
    There,
}

/// Issue the copies of whole lines whose columns begin at `columns`. Returns where the next ones begin.
fn push_line_copies(requests: &mut Requests, piece: u32, columns: usize, actions: &mut Actions) -> usize {
    if actions.columns.len() > columns {
        push_piece_copy(requests, piece, columns, FRAME_BYTES, actions);
    }
    actions.columns.len()
}

impl Cache {
    /// The source of the data at `at`, and the number of sectors for which that holds. A piece that is read again may
    /// find its own reservations, for which it must not wait.
    fn place_of(&self, piece: u32, set: SetId, at: SetLba, len: Sectors) -> (ReadSource, Sectors) {
        let mut place = None;
        let mut run = 0;
        for (number, first, last) in lines_of(at, len).take(LINES_AT_ONCE) {
            let line = self.lines.find(set, number).map(|index| self.lines.get(index));
            let valid = line.map_or(Mask::NONE, |line| line.valid);
            let coming = line.filter(|line| line.ahead && line.filler != piece).map_or(Mask::NONE, |line| line.filling);
            // Most lines have all of it, or nothing.
            let span = Mask::range(first, last);
            let whole = match (valid.with(coming).intersects(span), span.without(valid).is_empty()) {
                (false, _) => Some(ReadSource::There),
                (true, true) => Some(ReadSource::Here),
                (true, false) => None,
            };
            let part = |from: u64| {
                let (here, to) = valid.run(from);
                if here || coming.is_empty() {
                    return (if here { ReadSource::Here } else { ReadSource::There }, to);
                }
                let (comes, until) = coming.run(from);
                let now =
                    if comes { ReadSource::Coming(line.expect("it has a mask").filler) } else { ReadSource::There };
                (now, to.min(until))
            };
            let mut from = first;
            while from < last {
                let (now, to) = whole.map_or_else(|| part(from), |now| (now, last));
                let before = *place.get_or_insert(now);
                if before != now {
                    return (before, Sectors(run));
                }
                run += to.min(last) - from;
                from = to;
            }
        }
        (place.unwrap_or(ReadSource::There), Sectors(run))
    }

    fn line_filled(&mut self, index: u32, sectors: Mask) {
        let line = self.lines.get_mut(index);
        line.valid = line.valid.with(sectors);
        if line.ahead {
            self.counters.ahead_read += u64::from(sectors.len());
        }
    }

    /// Handle the first part of an extent that a read requests: copy lines that are there, wait for lines that are
    /// being filled, or return the number of sectors to read from the members.
    pub(crate) fn read_from_cache(
        &mut self,
        (requests, sets): (&mut Requests, &mut Sets),
        piece: u32,
        (set, at, len): (SetId, SetLba, Sectors),
        call: &mut Call,
    ) -> Cached {
        let (place, run) = self.place_of(piece, set, at, len);
        match place {
            ReadSource::There => {
                self.counters.read_misses += run.get();
                self.figures.get_mut(set).read_misses += run.get();
                self.begin_fill(requests, sets, piece, set, at, run);
                return Cached::Past(run);
            }
            ReadSource::Coming(ahead) => {
                wait_for_ahead((requests, sets), piece, ahead, (set, at), call.trace());
                return Cached::Waits;
            }
            ReadSource::Here => self.counters.read_hits += run.get(),
        }
        let entry = requests.piece(piece);
        let (from, base) = (entry.split(), entry.frames_at());
        let mut done = Sectors::ZERO;
        while done < run {
            let columns = call.actions().columns.len();
            let mut bytes = 0;
            for (number, first, last) in lines_of(at + done, run - done) {
                let len = Sectors(last - first);
                let whole = last - first == LINE_SECTORS;
                if bytes > 0 && !whole {
                    break;
                }
                let line = self.lines.find(set, number).expect("it was found before");
                self.line_used(line);
                let old = self.lines.frame(line, first);
                call.actions().columns.push(JobColumn { index: 0, at: base + (from + done).bytes(), old });
                done += len;
                bytes = len.bytes().get().min(FRAME_BYTES);
                if !whole {
                    break;
                }
            }
            push_piece_copy(requests, piece, columns, bytes, call.actions());
        }
        requests.piece_mut(piece).split_off(run);
        sets.get_mut(set).reasons.count(Reason::ReadCached);
        self.figures.get_mut(set).read_hits += run.get();
        call.trace().piece(requests, piece, || StepEvent::Found { len: run });
        Cached::Taken
    }

    /// These sectors are read from the members: reserve lines for them, unless memory is short.
    fn begin_fill(&mut self, requests: &mut Requests, sets: &Sets, piece: u32, set: SetId, at: SetLba, len: Sectors) {
        let keeps = sets.get(set).policy().read_cache && sets.get(set).shape().is_cacheable();
        // Only half of the available lines, because writes need some too.
        let room = u64::from(self.lines.room() / 2);
        if !keeps || len.get() / LINE_SECTORS >= room {
            return;
        }
        for (number, first, last) in lines_of(at, len) {
            let Some(index) = self.line_for(set, number) else { return };
            let line = self.lines.get_mut(index);
            let wanted = Mask::range(first, last).without(line.valid);
            if line.filling.is_empty() && !wanted.is_empty() {
                (line.filling, line.filler) = (wanted, piece);
                requests.piece_mut(piece).begin_fill();
            } else {
                self.release_unless_used(index);
            }
        }
    }

    /// A read has all its bytes: keep the data that its lines still need. True if pieces that wait for lines are to be
    /// called: its lines are no longer being filled, and none is dirty, so that no destage calls them.
    pub(crate) fn end_fill(
        &mut self,
        requests: &mut Requests,
        arrays: &Arrays,
        sets: &Sets,
        piece: u32,
        keep: bool,
        actions: &mut Actions,
    ) -> bool {
        if !requests.piece_mut(piece).end_fill() {
            return false;
        }
        let (first, last) = requests.piece(piece).range();
        let mut at = first;
        let array = requests.of_piece(piece).array();
        while at < last {
            let volume = arrays.find(array).expect("requests belong to arrays").volume();
            let (set, set_lba, run) = volume.map(at, |set| sets.get(set).shape());
            let len = run.min(last - at);
            let from = at - first;
            self.fill_extent(requests, piece, set, (set_lba, from, len), keep, actions);
            at += len;
        }
        self.dirty == 0
    }

    /// An extent of the set, which begins `from` sectors into the piece.
    fn fill_extent(
        &mut self,
        requests: &mut Requests,
        piece: u32,
        set: SetId,
        (at, from, len): (SetLba, Sectors, Sectors),
        keep: bool,
        actions: &mut Actions,
    ) {
        let base = requests.piece(piece).run().map(|run| run.at).filter(|_| keep);
        let mut columns = actions.columns.len();
        for (number, first, last) in lines_of(at, len) {
            let Some(index) = self.lines.find(set, number) else { continue };
            let line = self.lines.get_mut(index);
            if line.filler != piece || line.filling.is_empty() {
                continue;
            }
            let filling = core::mem::take(&mut line.filling);
            line.filler = NONE;
            if let Some(base) = base {
                // The part before the extent belongs to another extent of the piece, or to none.
                let source =
                    |sector: u64| base + (from + (Sectors(number * LINE_SECTORS + sector) - at.offset())).bytes();
                if filling == Mask::range(0, LINE_SECTORS) {
                    let target = self.lines.frame(index, 0);
                    actions.columns.push(JobColumn { index: 0, at: target, old: source(0) });
                } else {
                    columns = push_line_copies(requests, piece, columns, actions);
                    let mut sector = first;
                    while sector < last {
                        let (inside, to) = filling.run(sector);
                        let to = to.min(last);
                        if inside {
                            let target = self.lines.frame(index, sector);
                            actions.columns.push(JobColumn { index: 0, at: target, old: source(sector) });
                            push_piece_copy(requests, piece, columns, Sectors(to - sector).bytes().get(), actions);
                            columns = actions.columns.len();
                        }
                        sector = to;
                    }
                }
                self.line_filled(index, filling);
            }
            self.release_unless_used(index);
        }
        push_line_copies(requests, piece, columns, actions);
    }
}

/// A read waits until a read-ahead request has ended.
fn wait_for_ahead(
    (requests, sets): (&mut Requests, &mut Sets),
    piece: u32,
    ahead: u32,
    place: (SetId, SetLba),
    trace: &mut Trace,
) {
    requests.wait_for_ahead(piece, ahead);
    note_piece((requests, sets), PieceWait::new(piece, place, Reason::WaitedForReadAhead), 0, trace);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::fixture::{Bench, SET};
    use crate::events::RequestKind;
    use crate::geometry::Level;

    fn read(bench: &mut Bench, at: u64, len: u64) -> (u32, Cached) {
        let piece = bench.piece(RequestKind::Read, at, len);
        let (cache, requests, mut call) = bench.parts();
        (piece, cache.read_from_cache(requests, piece, (SET, SetLba(at), Sectors(len)), &mut call))
    }

    fn fill(bench: &mut Bench, piece: u32, at: u64, len: u64, keep: bool) {
        let extent = (SetLba(at), Sectors::ZERO, Sectors(len));
        bench.cache.fill_extent(&mut bench.requests, piece, SET, extent, keep, &mut bench.actions);
    }

    #[test]
    fn the_data_of_a_read_stays_in_lines_and_the_next_read_copies_it() {
        let mut bench = Bench::new(Level::Raid5);
        let (first, found) = read(&mut bench, 0, 16);
        assert!(matches!(found, Cached::Past(Sectors(16))) && bench.requests.piece(first).is_filling());
        assert!(matches!(read(&mut bench, 0, 16).1, Cached::Past(Sectors(16))), "it is not there yet");
        fill(&mut bench, first, 0, 16, true);
        assert_eq!((bench.actions.jobs.len(), bench.actions.columns.len()), (1, 2), "one copy of two whole lines");
        let from = bench.requests.piece(first).frames_at();
        assert_eq!(bench.actions.columns[1].old, from + Sectors(8).bytes());
        let (second, found) = read(&mut bench, 4, 8);
        assert!(matches!(found, Cached::Taken));
        assert_eq!(bench.requests.piece(second).split(), Sectors(8));
        assert_eq!((bench.cache.counters.read_hits, bench.cache.counters.read_misses), (8, 32));
    }

    #[test]
    fn a_read_that_failed_leaves_nothing() {
        let mut bench = Bench::new(Level::Raid5);
        let (first, _) = read(&mut bench, 0, 16);
        fill(&mut bench, first, 0, 16, false);
        assert!(bench.actions.jobs.is_empty());
        assert!(matches!(read(&mut bench, 0, 16).1, Cached::Past(Sectors(16))));
    }

    #[test]
    fn a_read_is_divided_where_its_source_changes() {
        let mut bench = Bench::new(Level::Raid5);
        bench.dirty(12, 8);
        assert!(matches!(read(&mut bench, 0, 32).1, Cached::Past(Sectors(12))), "up to the dirty sectors");
        let (piece, found) = read(&mut bench, 12, 20);
        assert!(matches!(found, Cached::Taken));
        assert_eq!(bench.requests.piece(piece).split(), Sectors(8));
    }

    #[test]
    fn a_write_takes_its_sectors_out_of_a_read_under_way() {
        let mut bench = Bench::new(Level::Raid5);
        let (first, _) = read(&mut bench, 0, 8);
        bench.dirty(2, 2);
        fill(&mut bench, first, 0, 8, true);
        // Sectors 0 and 1, and 4 to 7: each range has its own copy.
        let lens = bench.actions.jobs.iter().map(|job| job.len);
        assert!(lens.eq([1024, 2048]));
    }
}
