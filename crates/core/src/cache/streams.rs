//! The streams of an array: sequential reads, recognised by the expected start of the next one.
//!
//! ```text
//!   a stream     |-- read --|-- read --|.......... window ..........|
//!                                   next                 asked up to `ahead`
//! ```
//!
//! Pure. This module decides when read-ahead for a stream begins and how its window grows. [`super::readahead`] decides
//! whether it may begin and how long windows may be, and carries it out.

use openraid_units::{Instant, Nanos};

use crate::geometry::cache_units::LINE_SECTORS;
use crate::limits::STREAMS_MAX;
use crate::settings::ReadAhead;

/// Number of sequential reads, including the first, from which adaptive read-ahead begins.
const START_AFTER: u32 = 3;
/// Minimum length of the first window, in sectors: 64 KiB.
const WINDOW_MIN: u64 = 128;
/// Length of the first window as a multiple of the read that begins it.
const WINDOW_READS: u64 = 4;
/// Maximum distance of a late read before the end of its stream, in sectors: 256 KiB. The read after it has overtaken
/// it.
const LATE_MAX: u64 = 512;
/// Time without reads after which a stream makes room for others.
const SILENT_AFTER: Nanos = Nanos::from_secs(2);

/// Sequential reads.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where it began.
    begun: u64,
    /// The expected start of the next read, in sectors of the array.
    next: u64,
    /// The end of the data that was requested ahead.
    ahead: u64,
    /// Length to read beyond `next`; 0 without read-ahead.
    window: u64,
    /// Number of sectors before `next` whose reads have not ended; kept only if ends are reported.
    out: u64,
    /// Number of sectors read since the window grew.
    consumed: u64,
    reads: u32,
    at: Instant,
}

/// The effect of a read on the streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StreamEvent {
    /// Nothing new.
    None,
    /// Read-ahead begins, with this window.
    Started(u64),
    /// Its window grew.
    Grown(u64),
}

/// The streams of an array. Most reads of most loads belong to none, and every read compares with all of them, so the
/// data for that is stored together. A new stream replaces the least recently used one.
#[derive(Debug)]
pub(crate) struct Streams {
    streams: [Stream; STREAMS_MAX],
    /// The low half of each stream's `next`, again.
    lows: [u32; STREAMS_MAX],
    order: Order,
    /// Bit sets of the streams with a window, and of the streams with several sequential reads or a window.
    windows: u32,
    followed: u32,
    len: usize,
    /// Bit set of the streams that need more read-ahead.
    wanting: u32,
    /// The stream whose turn it is.
    turn: u32,
}

impl Streams {
    pub(crate) fn new() -> Self {
        let none = Stream { begun: 0, next: 0, ahead: 0, window: 0, out: 0, consumed: 0, reads: 0, at: Instant::ZERO };
        Self {
            streams: [none; STREAMS_MAX],
            lows: [u32::MAX; STREAMS_MAX],
            order: Order::new(),
            windows: 0,
            followed: 0,
            len: 0,
            wanting: 0,
            turn: 0,
        }
    }

    /// Number of streams with read-ahead and with recent reads.
    pub(crate) fn active(&self, now: Instant) -> u64 {
        self.streams[..self.len].iter().filter(|s| s.window > 0 && now.since(s.at) < SILENT_AFTER).count() as u64
    }

    fn find(&self, first: u64) -> Option<usize> {
        // Without an early exit: the compiler compares several at once.
        let low = low_half(first);
        let mut hits = (0..).zip(&self.lows).fold(0_u32, |hits, (place, next)| hits | u32::from(*next == low) << place);
        while hits != 0 {
            let place = hits.trailing_zeros() as usize;
            if self.streams[place].next == first && place < self.len {
                return Some(place);
            }
            hits &= hits - 1;
        }
        let mut left = self.followed;
        while left != 0 {
            let place = left.ilog2();
            let stream = &self.streams[place as usize];
            let skipped = stream.window > 0 && (stream.next..stream.ahead).contains(&first);
            let late = stream.reads >= START_AFTER && first < stream.next && first + LATE_MAX >= stream.next;
            if skipped || late {
                return Some(place as usize);
            }
            left &= !(1 << place);
        }
        None
    }

    /// A host reads `first..last` sectors of the array; a window may be `limit` sectors long. A new stream inherits the
    /// window of the stream that it replaces.
    pub(crate) fn note(
        &mut self,
        (first, last): (u64, u64),
        now: Instant,
        mode: ReadAhead,
        limit: u64,
    ) -> (StreamEvent, Option<u64>) {
        let (place, stopped) = match self.find(first) {
            Some(place) => (place, None),
            None => self.begin(first, now),
        };
        let stream = &mut self.streams[place];
        stream.reads = stream.reads.saturating_add(1);
        stream.out = stream.out.saturating_add(last - first);
        stream.at = now;
        if last > stream.next {
            stream.consumed += last - stream.next.max(first);
            stream.next = last;
        }
        stream.ahead = stream.ahead.max(stream.next);
        stream.window = stream.window.min(limit);
        // A window shorter than a request completes no request: each would wait for its first part, and then for the
        // rest.
        let is_too_long = last - first > limit;
        if is_too_long {
            stream.window = 0;
        }
        let starts = !is_too_long && stream.window == 0 && (mode == ReadAhead::Always || stream.reads >= START_AFTER);
        let event = if starts {
            stream.window = ((last - first) * WINDOW_READS).max(WINDOW_MIN).min(limit);
            stream.consumed = 0;
            StreamEvent::Started(stream.window)
        } else if stream.window > 0 && stream.window < limit && stream.consumed * 2 >= stream.window {
            stream.window = (stream.window * 2).min(limit);
            stream.consumed = 0;
            StreamEvent::Grown(stream.window)
        } else {
            StreamEvent::None
        };
        self.lows[place] = low_half(stream.next);
        self.order.make_last(place);
        let (bit, has_window) = (1 << place, stream.window > 0);
        let is_followed = has_window || stream.reads >= START_AFTER;
        self.windows = if has_window { self.windows | bit } else { self.windows & !bit };
        self.followed = if is_followed { self.followed | bit } else { self.followed & !bit };
        if has_window {
            self.wanting |= bit;
        }
        (event, stopped)
    }

    /// A read that was noted has ended.
    pub(crate) fn ended(&mut self, first: u64, last: u64) {
        let has = |s: &&mut Stream| s.begun <= first && last <= s.next;
        if let Some(stream) = self.streams[..self.len].iter_mut().find(has) {
            stream.out = stream.out.saturating_sub(last - first);
        }
    }

    /// Ends are reported from here on. Earlier reads that have not ended were not counted.
    pub(crate) fn forget_outstanding(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.out = 0);
    }

    /// Length of the unfinished requests of the stream around a position, if ends are reported.
    pub(crate) fn asked_at_once(&self, at: u64) -> u64 {
        let has = |s: &&Stream| at <= s.ahead.max(s.next) && at.saturating_add(s.out) >= s.next;
        self.streams[..self.len].iter().filter(has).map(|stream| stream.out).max().unwrap_or(0)
    }

    /// A place for a new stream: a free one, or else the least recently used; streams without read-ahead, or silent
    /// ones, go first.
    fn begin(&mut self, first: u64, now: Instant) -> (usize, Option<u64>) {
        let place = if self.len < STREAMS_MAX {
            self.len += 1;
            self.len - 1
        } else {
            let busy =
                |place: usize| self.windows >> place & 1 == 1 && now.since(self.streams[place].at) < SILENT_AFTER;
            let free = self.order.iter().find(|place| !busy(*place));
            free.or_else(|| self.order.iter().next()).expect("there are some")
        };
        let stream = &mut self.streams[place];
        let stopped = (stream.window > 0).then_some(stream.window);
        *stream = Stream { begun: first, next: first, ahead: first, window: 0, out: 0, consumed: 0, reads: 0, at: now };
        self.wanting &= !(1 << place);
        (place, stopped)
    }

    /// The next stream in turn that needs more: its number, and the range to read. `step` limits one request, which
    /// ends at a multiple of it if possible.
    pub(crate) fn next_wanted(&mut self, capacity: u64, step: u64) -> Option<(usize, u64, u64)> {
        while self.wanting != 0 {
            let behind = self.wanting >> self.turn << self.turn;
            let place = if behind == 0 { self.wanting } else { behind }.trailing_zeros();
            let stream = &self.streams[place as usize];
            let to = stream.target(capacity, step).min((stream.ahead / step + 1) * step);
            if to > stream.ahead {
                return Some((place as usize, stream.ahead, to));
            }
            self.wanting &= !(1 << place);
        }
        None
    }

    /// The request was made: it is the turn of the next stream.
    #[allow(clippy::cast_possible_truncation)] // few streams
    pub(crate) fn asked(&mut self, place: usize, to: u64) {
        self.streams[place].ahead = to;
        self.turn = (place as u32 + 1) % STREAMS_MAX as u32;
    }
}

#[allow(clippy::cast_possible_truncation)] // meant
fn low_half(sector: u64) -> u32 {
    sector as u32
}

/// Places in the order of their last use: a ring through all of them and one extra entry.
#[derive(Debug)]
struct Order {
    before: [u8; STREAMS_MAX + 1],
    behind: [u8; STREAMS_MAX + 1],
}

/// The extra entry of an [`Order`], which is its start and its end.
const ENDS: u8 = 32;
const _: () = assert!(ENDS as usize == STREAMS_MAX);

impl Order {
    /// Each place is a ring of its own.
    fn new() -> Self {
        let mut order = [0; STREAMS_MAX + 1];
        order.iter_mut().zip(0..).for_each(|(place, number)| *place = number);
        Self { before: order, behind: order }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // few places
    fn make_last(&mut self, place: usize) {
        let (before, behind) = (self.before[place], self.behind[place]);
        (self.behind[usize::from(before)], self.before[usize::from(behind)]) = (behind, before);
        let last = self.before[STREAMS_MAX];
        (self.before[place], self.behind[place]) = (last, ENDS);
        (self.behind[usize::from(last)], self.before[STREAMS_MAX]) = (place as u8, place as u8);
    }

    /// All places that were used, least recently used first.
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let mut at = self.behind[STREAMS_MAX];
        core::iter::from_fn(move || {
            let here = at;
            at = self.behind[usize::from(here)];
            (here != ENDS).then_some(usize::from(here))
        })
    }
}

impl Stream {
    /// The end of the range to read now.
    fn target(&self, capacity: u64, step: u64) -> u64 {
        let end = self.next.saturating_add(self.window);
        if end >= capacity {
            return capacity;
        }
        // Not line by line, but in whole lines: half a window, or a step.
        let grain = (self.window / 2).clamp(LINE_SECTORS, step);
        end - end % (grain - grain % LINE_SECTORS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;
    const STEP: u64 = 512;

    fn drain(streams: &mut Streams, capacity: u64) -> alloc::vec::Vec<(usize, u64, u64)> {
        let mut all = alloc::vec::Vec::new();
        while let Some((place, from, to)) = streams.next_wanted(capacity, STEP) {
            all.push((place, from, to));
            streams.asked(place, to);
        }
        all
    }

    #[test]
    fn three_reads_in_order_begin_a_window_that_doubles_as_it_is_used_up() {
        let mut streams = Streams::new();
        let mut note = |at: u64| streams.note((at, at + 8), NOW, ReadAhead::Adaptive, 1000).0;
        assert_eq!([note(0), note(8), note(16)], [StreamEvent::None, StreamEvent::None, StreamEvent::Started(128)]);
        let events: alloc::vec::Vec<_> = (3..64).map(|n| note(n * 8)).filter(|e| *e != StreamEvent::None).collect();
        assert_eq!(events, [StreamEvent::Grown(256), StreamEvent::Grown(512), StreamEvent::Grown(1000)]);
    }

    #[test]
    fn the_length_requested_at_once_counts_unfinished_requests() {
        let mut streams = Streams::new();
        for number in 0..4 {
            streams.note((number * 256, number * 256 + 256), NOW, ReadAhead::Adaptive, 4096);
        }
        streams.note((1 << 30, (1 << 30) + 8), NOW, ReadAhead::Adaptive, 4096);
        assert_eq!((streams.asked_at_once(256), streams.asked_at_once(1 << 30)), (1024, 8));
        for (first, left) in [(256, 768), (0, 512), (512, 256), (768, 0)] {
            streams.ended(first, first + 256);
            assert_eq!(streams.asked_at_once(1024), left);
        }
        assert_eq!(streams.asked_at_once(1 << 29), 0);
    }

    #[test]
    fn reads_longer_than_a_window_are_not_read_ahead() {
        let mut streams = Streams::new();
        for number in 0..10 {
            let at = number * 256;
            assert_eq!(streams.note((at, at + 256), NOW, ReadAhead::Adaptive, 128), (StreamEvent::None, None));
            assert_eq!(drain(&mut streams, 1 << 30), []);
        }
        // Shorter requests that continue it are read ahead.
        assert_eq!(streams.note((2560, 2568), NOW, ReadAhead::Adaptive, 128), (StreamEvent::Started(128), None));
    }

    #[test]
    fn read_ahead_is_gapless_and_ends_with_the_array() {
        let mut streams = Streams::new();
        let (capacity, mut at, mut asked) = (10_000, 0, 0);
        while at < capacity {
            let last = (at + 24).min(capacity);
            streams.note((at, last), NOW, ReadAhead::Always, 2048);
            for (place, from, to) in drain(&mut streams, capacity) {
                assert!(place == 0 && from == asked.max(last) && to > from && to - from <= STEP, "{from}..{to}");
                asked = to;
            }
            assert!(asked <= (last + 2048).min(capacity));
            at = last;
        }
        assert_eq!(asked, capacity);
    }

    #[test]
    fn a_stream_that_begins_at_once_tells_of_the_one_whose_place_it_took() {
        let mut streams = Streams::new();
        let mut note = |number: u64| streams.note((number << 30, (number << 30) + 8), NOW, ReadAhead::Always, 1000);
        for number in 0..STREAMS_MAX as u64 {
            assert_eq!(note(number), (StreamEvent::Started(128), None));
        }
        assert_eq!(note(99), (StreamEvent::Started(128), Some(128)));
    }

    #[test]
    fn streams_take_turns() {
        let mut streams = Streams::new();
        for place in 0..3 {
            streams.note((place * 100_000, place * 100_000 + 512), NOW, ReadAhead::Always, 4096);
        }
        let order: alloc::vec::Vec<_> = drain(&mut streams, 1 << 30).into_iter().map(|(place, ..)| place).collect();
        assert_eq!(order[..9], [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn reads_that_overtake_each_other_are_one_stream_and_random_ones_do_not_end_it() {
        let mut streams = Streams::new();
        for at in [0, 8, 16, 32, 24, 48, 40] {
            streams.note((at, at + 8), NOW, ReadAhead::Adaptive, 4096);
            drain(&mut streams, 1 << 30);
        }
        assert_eq!((streams.len, streams.streams[0].next), (1, 56));
        for number in 1..1000 {
            let at = number * 1_000_003;
            streams.note((at, at + 8), NOW, ReadAhead::Adaptive, 4096);
        }
        assert!(streams.streams[0].window > 0 && streams.active(NOW) == 1);
        assert_eq!(streams.active(NOW + SILENT_AFTER), 0);
    }

    #[test]
    fn a_new_stream_takes_the_place_that_was_used_longest_ago() {
        let mut streams = Streams::new();
        // The places in the order of their last use, the oldest first.
        let mut used = alloc::vec::Vec::<usize>::new();
        let places: alloc::vec::Vec<usize> = (0..STREAMS_MAX).collect();
        for number in 0..2000_u64 {
            let goes_on = number % 3 == 0 && used.len() == STREAMS_MAX;
            let next = if goes_on { streams.streams[used[11]].next } else { (number + 1) << 33 };
            let place = match (goes_on, used.len()) {
                (true, _) => used.remove(11),
                (false, STREAMS_MAX) => used.remove(0),
                (false, count) => count,
            };
            used.push(place);
            streams.note((next, next + 8), NOW, ReadAhead::Adaptive, 0);
            assert_eq!(streams.streams[place].next, next + 8);
            assert_eq!(streams.order.iter().collect::<alloc::vec::Vec<_>>(), used);
        }
        used.sort_unstable();
        assert_eq!(used, places);
    }
}
