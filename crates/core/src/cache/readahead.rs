//! Read-ahead: data that a stream will request is read into lines of the cache before it does.
//!
//! Read-ahead makes requests of its own, of one piece each. They take the path of any read, degraded or not, but their
//! bytes end in lines. Lines are reserved before the commands are issued. A host that requests these sectors waits for
//! them, so no sector is read twice. A write takes its sectors out of the reservation, as with reads of hosts. If the
//! read-ahead fails, the waiting pieces read for themselves.
//!
//! It uses spare resources only: it never evicts dirty data. All windows together are at most a quarter of the cache
//! ([`SHARE`]), in equal parts for all active streams, and its frames are at most a quarter of the host's frames.

use alloc::boxed::Box;
use openraid_units::{ArrayId, ArrayOffset, Bytes, Instant, Nanos, Sectors, SetId, SetLba, Token};

use super::streams::{StreamEvent, Streams};
use super::Cache;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::cache::lines::Mask;
use crate::events::{BlockRequest, RequestKind};
use crate::frames::Pool;
use crate::frames::Run;
use crate::geometry::cache_units::{lines_of, LINE_SECTORS};
use crate::limits::Limits;
use crate::limits::AHEAD_REQUESTS_MAX;
use crate::per_set::PerArray;
use crate::reason::Reason;
use crate::requests::piece::Cached;
use crate::requests::piece::Piece;
use crate::requests::Requests;
use crate::settings::ReadAhead;
use crate::trace::Trace;

/// All windows together are at most this part of the cache, and the requests in work this part of the frames.
const SHARE: u64 = 4;
/// While there are several streams, they are counted again after this time.
const COUNT_AGAIN: Nanos = Nanos::from_secs(1);
/// Maximum number of sectors of one request: 256 KiB.
const STEP_MAX: u64 = 512;

/// The read-ahead of all arrays.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Bytes of the frames of its requests.
    bytes: u64,
    bytes_max: u64,
    /// Does a stream perhaps need more read-ahead?
    wanted: bool,
    /// The array whose turn it is.
    turn: usize,
    /// Maximum number of sectors of one request.
    step: u64,
    /// Sectors of all windows together, and the number of streams that share them.
    share: u64,
    active: u64,
    /// Time of the last count.
    counted: Instant,
    /// The sequential reads of each array.
    streams: PerArray<Box<Streams>>,
}

impl Ahead {
    pub(super) fn new(limits: &Limits) -> Self {
        let bytes_max = limits.host_bytes_in_use().get() / SHARE;
        let piece = limits.piece_bytes_max.get().min(bytes_max / 2);
        let share = limits.cache.sectors_floor().get() / SHARE;
        let step = Bytes(piece).sectors_floor().get().min(STEP_MAX).min(share);
        Self {
            bytes: 0,
            bytes_max,
            wanted: false,
            turn: 0,
            step: (step - step % LINE_SECTORS).max(LINE_SECTORS),
            share,
            active: 1,
            counted: Instant::ZERO,
            streams: PerArray::new(),
        }
    }

    /// Streams end without notice: their share becomes free at the next count.
    fn is_count_old(&self, now: Instant) -> bool {
        self.active > 1 && now.since(self.counted) >= COUNT_AGAIN
    }

    /// Maximum length of a window.
    fn window_max(&self, wanted: Sectors) -> u64 {
        (self.share / self.active.max(1)).min(wanted.get())
    }
}

/// The first sector of a request and the sector after its last one, with partial blocks counted in full.
fn covered(request: &BlockRequest, block: Bytes) -> (u64, u64) {
    let mask = block.get() - 1;
    let first = Bytes(request.offset.get() & !mask).sectors_floor().get();
    let last = Bytes((request.offset.get() + request.len + mask) & !mask).sectors_floor().get();
    (first, last)
}

/// Does the rule for long reads of this set count the bytes that hosts have requested at once?
fn asks_for_ends(set: &Set) -> bool {
    set.shape().is_mirror() && !set.policy().split_streams
}

impl Cache {
    /// May there be something to read ahead?
    #[inline(always)]
    pub(crate) const fn wants_ahead(&self) -> bool {
        self.ahead.wanted
    }

    /// A read-ahead request has ended, with or without an error.
    pub(crate) fn ahead_ended(&mut self, request: &BlockRequest) {
        self.ahead.bytes -= request.len;
        self.ahead.wanted = true;
    }

    /// A host has requested a line.
    pub(crate) fn line_used(&mut self, index: u32) {
        self.lines.touch(index);
        let line = self.lines.get_mut(index);
        if line.ahead && line.filling.is_empty() {
            line.ahead = false;
            self.counters.ahead_used += u64::from(line.valid.len());
        }
    }

    /// A host reads: note the read for the streams, and start or extend read-ahead.
    pub(crate) fn note_read(
        &mut self,
        arrays: &Arrays,
        sets: &mut Sets,
        trace: &mut Trace,
        now: Instant,
        request: &BlockRequest,
    ) {
        if self.ahead.is_count_old(now) {
            self.count_streams(arrays, now);
        }
        let array = arrays.get(request.array);
        let set_id = array.volume().set(0);
        let set = sets.get(set_id);
        let mode = set.tuning().read_ahead;
        let longest = self.ahead.window_max(set.policy().read_ahead_max);
        let ahead = self.is_on() && mode != ReadAhead::None && longest >= LINE_SECTORS;
        if !ahead && !asks_for_ends(set) {
            return;
        }
        let limit = if ahead { longest } else { 0 };
        let (first, last) = covered(request, array.block().bytes());
        let (event, stopped) = self.ahead.streams.get_mut(request.array).note((first, last), now, mode, limit);
        self.ahead.wanted |= ahead;
        let began = match event {
            StreamEvent::None => None,
            StreamEvent::Started(window) => Some((Reason::ReadAheadStarted, window)),
            StreamEvent::Grown(window) => Some((Reason::ReadAheadGrown, window)),
        };
        let ended = stopped.map(|window| (Reason::ReadAheadStopped, window));
        for (reason, window) in ended.into_iter().chain(began) {
            let kib = u32::try_from(Sectors(window).bytes().get() >> 10).unwrap_or(u32::MAX);
            trace.note(sets, set_id, reason, first, kib);
            self.count_streams(arrays, now);
        }
    }

    fn count_streams(&mut self, arrays: &Arrays, now: Instant) {
        self.ahead.active = arrays.iter().map(|(id, _)| self.ahead.streams.get(id).active(now)).sum();
        self.ahead.counted = now;
    }

    /// Read ahead for the stream whose turn it is; true if a request was made.
    pub(crate) fn pump_read_ahead(
        &mut self,
        (arrays, sets): (&Arrays, &Sets),
        requests: &mut Requests,
        pool: &mut Pool,
        limits: &Limits,
    ) -> bool {
        let count = arrays.numbers_len();
        for _ in 0..count {
            let at = self.ahead.turn % count;
            let id = ArrayId(u16::try_from(at).expect("few arrays"));
            self.ahead.turn = at + 1;
            let Some(array) = arrays.find(id).filter(|array| !array.is_stopping()) else { continue };
            let capacity = array.capacity(|set| sets.get(set).shape()).get();
            let step = self.ahead.step;
            let Some((stream, from, to)) = self.ahead.streams.get_mut(id).next_wanted(capacity, step) else {
                continue;
            };
            let Some(run) = self.take_ahead(requests, pool, limits, Sectors(to - from)) else {
                // This function is called again when a request ends, or when a host reads.
                break;
            };
            self.start_ahead(requests, id, from, to, run);
            self.ahead.streams.get_mut(id).asked(stream, to);
            return true;
        }
        self.ahead.wanted = false;
        false
    }

    /// Frames for a read-ahead request, if all resources suffice.
    fn take_ahead(&mut self, requests: &Requests, pool: &mut Pool, limits: &Limits, len: Sectors) -> Option<Run> {
        let bytes = len.bytes().get();
        let lines = u64::from(self.lines.room());
        let enough = requests.ahead() < AHEAD_REQUESTS_MAX
            && self.ahead.bytes + bytes <= self.ahead.bytes_max
            && requests.room_for_pieces() > limits.pieces_max / 2
            && lines > len.get().div_ceil(LINE_SECTORS) + u64::from(self.lines.len()) / SHARE / 2;
        if !enough {
            return None;
        }
        pool.host_mut().take(bytes)
    }

    fn start_ahead(&mut self, requests: &mut Requests, array: ArrayId, from: u64, to: u64, run: Run) {
        let len = Sectors(to - from).bytes().get();
        let offset = ArrayOffset(Sectors(from).bytes().get());
        let request = BlockRequest { token: Token(u64::MAX), array, kind: RequestKind::Read, offset, len };
        self.ahead.bytes += len;
        requests.insert_ahead(request, |request| Piece::ahead(request, Sectors(from), Sectors(to), run));
    }

    /// Reserve lines for the first part of an extent that is read ahead. Data that is in lines, or that a host is
    /// reading, is left out.
    pub(crate) fn reserve_ahead(
        &mut self,
        requests: &mut Requests,
        sets: &Sets,
        piece: u32,
        set: SetId,
        at: SetLba,
        len: Sectors,
    ) -> Cached {
        let mut run = Sectors::ZERO;
        let mut reads = None;
        for (number, first, last) in lines_of(at, len) {
            let mask = Mask::range(first, last);
            let wanted = self.is_wanted_ahead(sets, piece, set, number, mask);
            if reads.is_some_and(|reads| reads != wanted) {
                break;
            }
            if wanted {
                let Some(index) = self.line_for(set, number) else { break };
                let line = self.lines.get_mut(index);
                (line.filling, line.filler, line.ahead) = (mask, piece, true);
            }
            reads = Some(wanted);
            run += Sectors(last - first);
        }
        match reads {
            Some(true) => {
                requests.piece_mut(piece).begin_fill();
                Cached::Past(run)
            }
            Some(false) => {
                requests.piece_mut(piece).split_off(run);
                Cached::Taken
            }
            // No line is available.
            None => {
                requests.piece_mut(piece).split_off(len);
                Cached::Taken
            }
        }
    }

    /// Is none of these sectors of a line in the cache or being read?
    fn is_wanted_ahead(&self, sets: &Sets, piece: u32, set: SetId, number: u64, mask: Mask) -> bool {
        if !sets.get(set).shape().is_cacheable() {
            return false;
        }
        let Some(index) = self.lines.find(set, number) else { return true };
        let line = self.lines.get(index);
        (line.filling.is_empty() || line.filler == piece) && mask.without(line.valid) == mask
    }

    /// An array with this number is being started: it has no streams yet.
    pub(crate) fn begin_array(&mut self, id: ArrayId) {
        self.ahead.streams.begin(id, || Box::new(Streams::new()));
    }

    /// The sequential reads of an array.
    pub(crate) fn streams_of(&self, id: ArrayId) -> &Streams {
        self.ahead.streams.get(id)
    }

    /// The bytes that hosts have requested and not received count no longer, for no array.
    pub(crate) fn forget_outstanding(&mut self) {
        self.ahead.streams.values_mut().for_each(|streams| streams.forget_outstanding());
    }

    /// A read of a host has ended. Only the rule for long reads of mirrors needs this.
    pub(crate) fn note_read_ended(&mut self, arrays: &Arrays, sets: &Sets, request: &BlockRequest) {
        let Some(array) = arrays.find(request.array) else { return };
        let set = sets.find(array.volume().set(0));
        if set.is_some_and(asks_for_ends) {
            let (first, last) = covered(request, array.block().bytes());
            self.ahead.streams.get_mut(request.array).ended(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_windows_together_are_a_share_of_the_cache_and_no_window_is_longer_than_the_policy_says() {
        let limits = Limits { cache: Bytes::mib(4), pool: Bytes::mib(8), ..Limits::small() };
        let mut ahead = Ahead::new(&limits);
        let quarter = Bytes::mib(1).sectors_floor().get();
        assert_eq!(ahead.window_max(Sectors(u64::MAX)), quarter);
        assert_eq!(ahead.window_max(Sectors(64)), 64);
        ahead.active = 4;
        assert_eq!(ahead.window_max(Sectors(u64::MAX)), quarter / 4);
        // Streams end without notice: several are counted again after a second, one is not.
        let later = Instant::ZERO + COUNT_AGAIN;
        assert!(ahead.is_count_old(later));
        ahead.active = 1;
        assert!(!ahead.is_count_old(later));
    }
}
