//! The adaptive policy of an array: it watches what hosts do, and chooses how to read ahead, which copy of a mirror to
//! read, and how long dirty data waits.
//!
//! ```text
//!  requests -> window (at least 1 s and 64 requests) -> Load -> best Tuning
//!                                            the same best in two windows in a row -> switch, with its figures kept
//! ```
//!
//! The policy never affects when a write is acknowledged or what a read returns. It begins with the settings of the
//! array. It forgets everything when one of the settings that it chooses is changed, when it is switched on or off or
//! reset, and when the array stops. The two thresholds of each choice differ, so that a load between them does not make
//! it alternate.

use alloc::vec::Vec;
use openraid_units::{Instant, Nanos};

use crate::events::{BlockRequest, RequestKind};
use crate::limits::STREAMS_MAX;
pub use crate::settings::{AdaptiveStatus, Load, Switch, Tuning, SWITCHES_KEPT};
use crate::settings::{MirrorRule, ReadAhead};

/// Minimum length of a window. It also has at least [`WINDOW_REQUESTS`] reads and writes.
const WINDOW_TIME: Nanos = Nanos::from_secs(1);
/// See [`WINDOW_TIME`].
const WINDOW_REQUESTS: u64 = 64;
/// After a silence of this length a new window begins.
const SILENCE: Nanos = Nanos::from_secs(10);
/// Number of windows in a row that must favour the same policy before it is used.
const WINDOWS_MIN: u32 = 2;

/// Number of recent ends of requests that are remembered: one for each stream that read-ahead can track, and as many
/// for single requests between them.
const ENDS: usize = 2 * STREAMS_MAX;

/// Share of the requests, in per cent, below which reads (or writes) are ignored.
const FEW: u32 = 5;
/// Share of sequential reads, in per cent, from which read-ahead is switched on. It is switched off below
/// [`ORDERED_FEW`].
const ORDERED_SOME: u32 = 20;
/// See [`ORDERED_SOME`].
const ORDERED_FEW: u32 = 5;
/// Share of sequential requests, in per cent, from which a load counts as streams. It no longer does below
/// [`ORDERED_HALF`].
const ORDERED_MOST: u32 = 60;
/// See [`ORDERED_MOST`].
const ORDERED_HALF: u32 = 40;
/// Mean depth, in tenths, from which copies are chosen by the pending commands of their drives. Below [`SHALLOW`] they
/// are chosen by head position.
const DEEP: u32 = 60;
/// See [`DEEP`].
const SHALLOW: u32 = 30;
/// Writes of at most this mean size are small: 64 KiB.
const SMALL_WRITE: u64 = 64 << 10;
/// Sequential writes fill their stripes by themselves; other dirty data then waits this fraction of the usual time.
/// Small random writes wait longer by [`DELAY_LONGER`], because more of them merge.
const DELAY_SHORTER: u64 = 4;
/// See [`DELAY_SHORTER`].
const DELAY_LONGER: u64 = 2;

/// Factor by which dirty data waits longer if no member rotates. Later writes merge with it, each write that is saved
/// spares the flash, and no arm would travel less if the data were written early.
pub(crate) const FLASH_PATIENCE: u64 = 4;

/// Properties of an array's members and cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdaptiveFacts {
    /// It has copies on rotating members.
    rotational: bool,
    /// There is a cache.
    cache: bool,
    /// The cache collects writes of this array.
    collects: bool,
    /// The usual time that dirty data waits.
    destage_delay: Nanos,
}

impl AdaptiveFacts {
    /// `rotational`: the array has copies on rotating members. The pair: there is a cache, and it collects the writes.
    pub(crate) const fn new(rotational: bool, (cache, collects): (bool, bool), destage_delay: Nanos) -> Self {
        Self { rotational, cache, collects, destage_delay }
    }

    /// The usual time that dirty data waits.
    pub(crate) const fn destage_delay(self) -> Nanos {
        self.destage_delay
    }
}

/// Sums of one window.
#[derive(Clone, Copy, Default, Debug)]
struct Sums {
    reads: u64,
    writes: u64,
    ordered_reads: u64,
    ordered_writes: u64,
    read_bytes: u64,
    write_bytes: u64,
    depths: u64,
}

/// The policy of one array.
#[derive(Debug)]
pub(crate) struct Adaptive {
    since: Instant,
    last_request: Instant,
    sums: Sums,
    /// Ends of recent requests, the oldest first.
    ends: [u64; ENDS],
    load: Option<Load>,
    windows: u64,
    favoured: Option<Tuning>,
    windows_in_favour: u32,
    switches: u64,
    last: [Option<Switch>; SWITCHES_KEPT],
}

impl Sums {
    fn load(&self) -> Load {
        let percent = |part: u64, whole: u64| u32::try_from(part * 100 / whole.max(1)).expect("at most a hundred");
        let requests = self.reads + self.writes;
        Load {
            requests,
            read_percent: percent(self.reads, requests),
            ordered_read_percent: percent(self.ordered_reads, self.reads),
            ordered_write_percent: percent(self.ordered_writes, self.writes),
            depth_tenths: u32::try_from(self.depths * 10 / requests.max(1)).unwrap_or(u32::MAX),
            read_bytes: self.read_bytes / self.reads.max(1),
            write_bytes: self.write_bytes / self.writes.max(1),
        }
    }
}

fn has_reads(load: &Load) -> bool {
    load.read_percent >= FEW
}

fn has_writes(load: &Load) -> bool {
    load.read_percent <= 100 - FEW
}

/// The best tuning for this load. A choice that does not depend on the load stays as it is.
fn best_tuning(load: &Load, now: Tuning, facts: AdaptiveFacts) -> Tuning {
    let mut best = now;
    if facts.cache && has_reads(load) {
        if load.ordered_read_percent >= ORDERED_SOME && now.read_ahead == ReadAhead::None {
            best.read_ahead = ReadAhead::Adaptive;
        } else if load.ordered_read_percent < ORDERED_FEW {
            best.read_ahead = ReadAhead::None;
        }
    }
    if facts.rotational && has_reads(load) {
        best.mirror_read = best_mirror_read(load, now.mirror_read);
    }
    if facts.collects && has_writes(load) {
        let usual = facts.destage_delay;
        let streams = load.ordered_write_percent;
        best.destage_delay = if streams >= ORDERED_MOST {
            Nanos(usual.get() / DELAY_SHORTER)
        } else if streams < ORDERED_HALF && load.write_bytes < SMALL_WRITE {
            Nanos(usual.get() * DELAY_LONGER)
        } else if streams < ORDERED_HALF {
            usual
        } else {
            now.destage_delay
        };
    }
    best
}

fn best_mirror_read(load: &Load, now: MirrorRule) -> MirrorRule {
    let was_stream = now == MirrorRule::TwinStor;
    let mark = if was_stream { ORDERED_HALF } else { ORDERED_MOST };
    if load.ordered_read_percent >= mark {
        return MirrorRule::TwinStor;
    }
    let mark = if now == MirrorRule::LeastPending { SHALLOW } else { DEEP };
    if load.depth_tenths >= mark {
        MirrorRule::LeastPending
    } else {
        MirrorRule::NearestHead
    }
}

impl Adaptive {
    /// Number of windows so far.
    pub(crate) const fn windows(&self) -> u64 {
        self.windows
    }

    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            last_request: now,
            sums: Sums::default(),
            ends: [u64::MAX; ENDS],
            load: None,
            windows: 0,
            favoured: None,
            windows_in_favour: 0,
            switches: 0,
            last: [None; SWITCHES_KEPT],
        }
    }

    /// A request arrives while `depth` requests are in the array, itself included. True if a window is complete.
    pub(crate) fn note(&mut self, request: &BlockRequest, depth: u32, now: Instant) -> bool {
        let is_read = match request.kind {
            RequestKind::Read => true,
            RequestKind::Write { .. } => false,
            RequestKind::Flush | RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => return false,
        };
        if now.since(self.last_request) >= SILENCE {
            (self.sums, self.since) = (Sums::default(), now);
        }
        self.last_request = now;
        let (start, end) = (request.offset.get(), request.offset.get() + request.len);
        let known = self.ends.iter().position(|known| *known == start);
        // A stream moves to the newest place. Only the places after its old one get older.
        self.ends.copy_within(known.unwrap_or(0) + 1.., known.unwrap_or(0));
        self.ends[ENDS - 1] = end;
        let ordered = u64::from(known.is_some());
        let sums = &mut self.sums;
        sums.depths += u64::from(depth);
        if is_read {
            (sums.reads, sums.ordered_reads) = (sums.reads + 1, sums.ordered_reads + ordered);
            sums.read_bytes += request.len;
        } else {
            (sums.writes, sums.ordered_writes) = (sums.writes + 1, sums.ordered_writes + ordered);
            sums.write_bytes += request.len;
        }
        sums.reads + sums.writes >= WINDOW_REQUESTS && now.since(self.since) >= WINDOW_TIME
    }

    /// A window is complete: returns the new tuning, if it changes.
    pub(crate) fn end_window(&mut self, tuning: Tuning, facts: AdaptiveFacts, now: Instant) -> Option<Switch> {
        let load = core::mem::take(&mut self.sums).load();
        self.since = now;
        self.windows += 1;
        self.load = Some(load);
        let best = best_tuning(&load, tuning, facts);
        if best == tuning {
            (self.favoured, self.windows_in_favour) = (None, 0);
            return None;
        }
        self.windows_in_favour = if self.favoured == Some(best) { self.windows_in_favour + 1 } else { 1 };
        self.favoured = Some(best);
        if self.windows_in_favour < WINDOWS_MIN {
            return None;
        }
        (self.favoured, self.windows_in_favour) = (None, 0);
        let switch = Switch { at: now, from: tuning, to: best, load };
        let place = usize::try_from(self.switches % SWITCHES_KEPT as u64).expect("a few");
        self.last[place] = Some(switch);
        self.switches += 1;
        Some(switch)
    }

    /// State and history for readers.
    pub(crate) fn status(&self, on: bool, tuning: Tuning) -> AdaptiveStatus {
        let mut last: Vec<Switch> = self.last.iter().flatten().copied().collect();
        if self.switches > SWITCHES_KEPT as u64 {
            last.rotate_left(usize::try_from(self.switches % SWITCHES_KEPT as u64).expect("a few"));
        }
        AdaptiveStatus { on, tuning, load: self.load, windows: self.windows, switches: self.switches, last }
    }
}

/// Scales `delay`, which was chosen for the usual delay `reference`, to a set whose usual delay is `usual`.
pub(crate) fn in_proportion(delay: Nanos, usual: Nanos, reference: Nanos) -> Nanos {
    // The product of two times of seconds in nanoseconds does not fit 64 bits.
    let product = u128::from(delay.get()) * u128::from(usual.get());
    Nanos(u64::try_from(product / u128::from(reference.get().max(1))).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Policy;
    use openraid_units::{ArrayId, ArrayOffset, Token};

    const USUAL: Nanos = Nanos::from_secs(5);
    const FACTS: AdaptiveFacts = AdaptiveFacts { rotational: true, cache: true, collects: true, destage_delay: USUAL };

    fn tuning() -> Tuning {
        Tuning::of(&Policy::default(), USUAL)
    }

    #[test]
    fn a_delay_of_many_seconds_stays_what_was_chosen_and_is_longer_on_flash() {
        let seconds = Nanos::from_secs;
        assert_eq!(in_proportion(seconds(10), seconds(5), seconds(5)), seconds(10));
        assert_eq!(in_proportion(seconds(10), seconds(20), seconds(5)), seconds(40));
        assert_eq!(in_proportion(seconds(40), seconds(5), seconds(20)), seconds(10));
        assert_eq!(in_proportion(Nanos(7), seconds(5), Nanos::ZERO), Nanos(35_000_000_000));
        assert_eq!(in_proportion(Nanos(u64::MAX), seconds(9), seconds(3)), Nanos(u64::MAX));
    }

    /// This number of windows of a load: kind by number, offset by number, bytes, depth.
    struct Driver {
        policy: Adaptive,
        tuning: Tuning,
        now: Instant,
        number: u64,
        facts: AdaptiveFacts,
    }

    impl Driver {
        fn new() -> Self {
            let (policy, now) = (Adaptive::new(Instant::ZERO), Instant::ZERO);
            Self { policy, tuning: tuning(), now, number: 0, facts: FACTS }
        }

        fn windows(&mut self, count: u64, depth: u32, load: impl Fn(u64) -> (bool, u64, u64)) -> u64 {
            let before = self.policy.switches;
            let end = self.policy.windows + count;
            while self.policy.windows < end {
                let (is_read, offset, len) = load(self.number);
                self.number += 1;
                self.now = self.now + Nanos::from_millis(4);
                let kind = if is_read { RequestKind::Read } else { RequestKind::Write { fua: false } };
                let offset = ArrayOffset(offset);
                let request = BlockRequest { token: Token(0), array: ArrayId(0), kind, offset, len };
                if self.policy.note(&request, depth, self.now) {
                    if let Some(switch) = self.policy.end_window(self.tuning, self.facts, self.now) {
                        self.tuning = switch.to;
                    }
                }
            }
            self.policy.switches - before
        }
    }

    fn anywhere(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24 & !4095
    }

    #[test]
    fn the_figures_are_those_of_the_load() {
        let mut driver = Driver::new();
        // One request of four is a write of 16 KiB anywhere, three are sequential reads of 64 KiB.
        driver.windows(1, 7, |n| {
            if n % 4 == 3 {
                (false, anywhere(n) | 1 << 50, 16 << 10)
            } else {
                (true, (n - n / 4) << 16, 64 << 10)
            }
        });
        let load = driver.policy.load.unwrap();
        assert_eq!((load.read_percent, load.ordered_write_percent, load.depth_tenths), (75, 0, 70));
        assert!(load.ordered_read_percent >= 98, "all but the first: {load:?}");
        assert_eq!((load.read_bytes, load.write_bytes, load.requests), (64 << 10, 16 << 10, 250));
    }

    #[test]
    fn as_many_streams_as_read_ahead_tells_apart_are_seen_among_as_many_single_reads() {
        let mut driver = Driver::new();
        let streams = STREAMS_MAX as u64;
        driver.windows(4, 7, |n| {
            let (turn, single) = (n / 2 / streams, n % 2 == 1);
            let stream = n / 2 % streams;
            let at = if single { anywhere(n) | 1 << 50 } else { (stream << 40) + (turn << 16) };
            (true, at, 64 << 10)
        });
        let load = driver.policy.load.unwrap();
        assert_eq!(load.ordered_read_percent, 50, "{load:?}");
        assert_eq!(driver.tuning.read_ahead, ReadAhead::Adaptive);
    }

    #[test]
    fn writes_that_nothing_collects_change_nothing() {
        let mut driver = Driver::new();
        driver.facts.collects = false;
        driver.windows(6, 32, |n| (false, anywhere(n), 4096));
        assert_eq!(driver.tuning.destage_delay, USUAL);
        driver.facts.collects = true;
        driver.windows(2, 32, |n| (false, anywhere(n), 4096));
        assert_eq!(driver.tuning.destage_delay, Nanos(USUAL.get() * DELAY_LONGER));
    }

    #[test]
    fn each_load_gets_what_suits_it_after_two_windows_that_say_the_same() {
        let mut driver = Driver::new();
        assert_eq!(driver.windows(1, 1, |n| (true, anywhere(n), 4096)), 0, "one window is not enough");
        assert_eq!(driver.windows(1, 1, |n| (true, anywhere(n), 4096)), 1);
        let random = Tuning { read_ahead: ReadAhead::None, mirror_read: MirrorRule::NearestHead, ..tuning() };
        assert_eq!(driver.tuning, random);
        driver.windows(3, 32, |n| (true, anywhere(n), 4096));
        assert_eq!(driver.tuning, Tuning { mirror_read: MirrorRule::LeastPending, ..random });
        driver.windows(3, 1, |n| (true, n << 16, 64 << 10));
        let stream = Tuning { read_ahead: ReadAhead::Adaptive, mirror_read: MirrorRule::TwinStor, ..tuning() };
        assert_eq!(driver.tuning, stream);
        driver.windows(3, 8, |n| (false, anywhere(n), 4096));
        assert_eq!(driver.tuning, Tuning { destage_delay: USUAL + USUAL, ..stream });
        driver.windows(3, 8, |n| (false, n << 16, 64 << 10));
        assert_eq!(driver.tuning.destage_delay.get(), USUAL.get() / 4);
        let status = driver.policy.status(true, driver.tuning);
        assert_eq!((status.switches, status.last.len()), (5, 5));
        assert!(status.last.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].at < pair[1].at));
    }

    #[test]
    fn a_load_in_the_middle_does_not_make_it_swing() {
        let mut driver = Driver::new();
        driver.windows(4, 1, |n| (true, n << 16, 64 << 10));
        assert_eq!(driver.tuning.mirror_read, MirrorRule::TwinStor);
        // Half of the reads continue the stream, half do not.
        let half = |n: u64| (true, if n.is_multiple_of(2) { n << 15 } else { anywhere(n) }, 64 << 10);
        assert_eq!(driver.windows(50, 4, half), 0);
        assert_eq!(driver.policy.status(true, driver.tuning).last.len(), 1);
    }

    #[test]
    fn silence_begins_a_new_window() {
        let mut driver = Driver::new();
        driver.windows(1, 1, |n| (true, anywhere(n), 4096));
        for n in 0..100 {
            let request = BlockRequest {
                token: Token(0),
                array: ArrayId(0),
                kind: RequestKind::Read,
                offset: ArrayOffset(anywhere(n)),
                len: 4096,
            };
            driver.now = driver.now + SILENCE;
            assert!(!driver.policy.note(&request, 1, driver.now));
        }
    }
}
