//! Check and repair: what they may change, what they have found so far, and how they ended.
//!
//! A check has one of four outcomes. The result of an earlier check is never shown for one that ended early: every end,
//! and the refusal of a set in which nothing can be compared, replaces the earlier result.

use alloc::vec::Vec;
use core::fmt;

use openraid_units::{Instant, Sectors, Slot};

use crate::set_status::TaskKind;

/// Maximum number of ranges that are reported one by one; further ones are counted.
pub const RANGES_REPORTED_MAX: usize = 64;
/// Maximum number of ranges that may still grow: rows are compared in a window, several at a time.
const RANGES_OPEN_MAX: usize = 64;

/// What a scrub may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScrubMode {
    /// Nothing: the scrub is a check.
    Check,
    /// Correct the one member that disagrees with the others, if it can be named.
    Repair,
    /// Compute parity again from the data, and copy the first copy to the others, as md's `repair` does.
    TrustData,
}

impl ScrubMode {
    /// The word for users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Repair | Self::TrustData => "repair",
        }
    }
    /// As a background task.
    #[must_use]
    pub const fn kind(self) -> TaskKind {
        match self {
            Self::Check => TaskKind::Check,
            Self::Repair | Self::TrustData => TaskKind::Repair,
        }
    }
}

/// Why a scrub ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AbortReason {
    /// A member failed.
    MemberFailed,
    /// An administrator stopped it.
    Administrator,
    /// A member became available for a vacant slot: its rebuild comes first.
    RebuildBegan,
}

impl AbortReason {
    /// The text for users.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::MemberFailed => "a member failed",
            Self::Administrator => "stopped by administrator",
            Self::RebuildBegan => "a rebuild began",
        }
    }
}

/// Why nothing could be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotComparable {
    /// The level has neither parity nor a second copy.
    NoRedundancy,
    /// Without the missing members there is neither parity to compare with nor a second copy.
    Degraded,
    /// No row could be read from enough members.
    Unreadable,
}

impl NotComparable {
    /// The text for users.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoRedundancy => "this level has no redundancy, so there is nothing to compare",
            Self::Degraded => "all redundancy is needed for the missing members, so there is nothing to compare",
            Self::Unreadable => "no row could be read from enough members",
        }
    }
}

/// How a scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScrubOutcome {
    /// Everything that was compared agrees.
    Clean,
    /// Sectors of 512 bytes in which the members did not agree.
    Mismatches {
        /// Number of all mismatches.
        count: u64,
        /// Number of corrected mismatches.
        repaired: u64,
    },
    /// It ended before everything was compared.
    Aborted {
        /// Reason of the early end.
        why: AbortReason,
        /// Progress at the end.
        percent: u8,
        /// Number of mismatches until then.
        count: u64,
        /// Number of corrected mismatches.
        repaired: u64,
    },
    /// Nothing could be compared.
    NotComparable(NotComparable),
}

impl ScrubOutcome {
    /// In words, for a scrub with this mode.
    fn write(self, mode: ScrubMode, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = |f: &mut fmt::Formatter<'_>, count: u64, repaired: u64| match (mode, count) {
            (_, 0) => f.write_str("no mismatches"),
            (ScrubMode::Check, 1) => f.write_str("1 mismatched sector"),
            (ScrubMode::Check, _) => write!(f, "{count} mismatched sectors"),
            (ScrubMode::Repair | ScrubMode::TrustData, _) => {
                let left = count - repaired;
                write!(f, "repaired {repaired}, {left} mismatch{} left", if left == 1 { "" } else { "es" })
            }
        };
        match self {
            Self::Clean => counts(f, 0, 0),
            Self::Mismatches { count, repaired } => counts(f, count, repaired),
            Self::Aborted { why, percent, count, repaired } => {
                write!(f, "aborted at {percent} %: {}", why.text())?;
                if count > 0 {
                    f.write_str("; until then ")?;
                    counts(f, count, repaired)?;
                }
                Ok(())
            }
            Self::NotComparable(why) => write!(f, "nothing compared: {}", why.text()),
        }
    }
}

/// The end of a scrub in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubEnd {
    /// What it was allowed to change.
    pub mode: ScrubMode,
    /// The outcome.
    pub outcome: ScrubOutcome,
}

impl fmt::Display for ScrubEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome.write(self.mode, f)
    }
}

/// What was done about a mismatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// Nothing was changed.
    Left,
    /// Nothing; the copies of a mirror differ, and no member is known to be wrong.
    CopiesLeft,
    /// The one member that disagreed was corrected.
    Corrected,
    /// Parity was computed again from the data.
    Parity,
    /// The first copy was copied to the others.
    Copies,
}

/// A range of mismatches: sectors of each member's data area, or of the array if it is a mirror.
///
/// A mirror over many members has its chunks in turn on different members. A range that is contiguous on one member
/// then has gaps in the array: whole chunks on other members. It still counts as one range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MismatchRange {
    /// Its first sector.
    pub from: Sectors,
    /// Its length from the first to the last mismatch, gaps included.
    pub len: Sectors,
    /// Mismatches in it.
    pub count: u64,
    /// The member that disagrees with the others, if it can be named.
    pub slot: Option<Slot>,
    /// What was done about it.
    pub remedy: Remedy,
}

impl MismatchRange {
    /// One sector.
    pub(crate) const fn sector(at: Sectors, slot: Option<Slot>, remedy: Remedy) -> Self {
        Self { from: at, len: Sectors(1), count: 1, slot, remedy }
    }

    /// Is it corrected?
    #[must_use]
    pub fn is_repaired(&self) -> bool {
        !matches!(self.remedy, Remedy::Left | Remedy::CopiesLeft)
    }

    fn end(&self) -> Sectors {
        self.from + self.len
    }

    /// Are both of the same kind, and do they touch or overlap?
    fn meets(&self, other: &Self, gap: Gap) -> bool {
        let (one, two) = if self.from <= other.from { (self, other) } else { (other, self) };
        one.slot == two.slot
            && one.remedy == two.remedy
            && (two.from <= one.end() || gap.is_between(one.end(), two.from))
    }

    /// Both ranges as one.
    fn with(self, other: Self) -> Self {
        let from = self.from.min(other.from);
        Self { from, len: self.end().max(other.end()) - from, count: self.count + other.count, ..self }
    }
}

impl fmt::Display for MismatchRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, len) = (self.from.get(), self.len.get());
        match (len, self.count) {
            (1, _) => write!(f, "sector {from}"),
            (_, count) if count == len => write!(f, "sectors {from} to {}", from + len - 1),
            (_, count) => write!(f, "sectors {from} to {} ({count} of them)", from + len - 1),
        }
    }
}

/// The gaps that a range in a mirror may have: whole chunks on other members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gap {
    chunk: Sectors,
    /// Between two consecutive chunks of one member. Zero without gaps.
    max: Sectors,
}

impl Gap {
    /// Every member has the same rows.
    pub(crate) const NONE: Self = Self { chunk: Sectors(1), max: Sectors::ZERO };

    /// The gap in a mirror with chunks. Each member has at least one of N consecutive chunks, where N is the number of
    /// members.
    pub(crate) fn of_chunks(chunk: Sectors, members: u16) -> Self {
        Self { chunk, max: Sectors(chunk.get() * (u64::from(members) - 1)) }
    }

    const fn is_between(self, end: Sectors, from: Sectors) -> bool {
        let (end, from) = (end.get(), from.get());
        let chunk = self.chunk.get();
        end % chunk == 0 && from % chunk == 0 && from - end <= self.max.get()
    }
}

/// The end of a scrub.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScrubStatus {
    /// Distinguishes this scrub from an earlier one of the same set.
    pub number: u32,
    /// What it was allowed to change.
    pub mode: ScrubMode,
    /// The outcome.
    pub outcome: ScrubOutcome,
    /// The time of the end.
    pub at: Instant,
    /// md's event count at the end.
    pub events: u64,
    /// Length to be compared: sectors of each member, or of the array if it is a mirror.
    pub total: Sectors,
    /// Length that was compared.
    pub done: Sectors,
    /// Length that could not be compared, because too few members could be read there.
    pub uncompared: Sectors,
    /// Where the mismatches are.
    pub ranges: Vec<MismatchRange>,
    /// Number of further ranges.
    pub more_ranges: u64,
}

/// How and when a scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub outcome: ScrubOutcome,
    pub at: Instant,
    pub events: u64,
    pub total: Sectors,
    pub done: Sectors,
}

/// The running scrub of a set, or the last one: what it may change, and what it has found.
#[derive(Debug)]
pub(crate) struct Scrub {
    mode: ScrubMode,
    /// Distinguishes it from an earlier one.
    number: u32,
    mismatches: u64,
    repaired: u64,
    uncompared: Sectors,
    open: Ranges<RANGES_OPEN_MAX>,
    reported: Ranges<RANGES_REPORTED_MAX>,
    more_ranges: u64,
    gap: Gap,
    /// Its end; none while it runs, and before the first one.
    end: Option<End>,
}

impl Scrub {
    pub(crate) const fn new(mode: ScrubMode, number: u32, gap: Gap) -> Self {
        Self {
            mode,
            number,
            mismatches: 0,
            repaired: 0,
            uncompared: Sectors::ZERO,
            open: Ranges::EMPTY,
            reported: Ranges::EMPTY,
            more_ranges: 0,
            gap,
            end: None,
        }
    }

    pub(crate) const fn end(&mut self, end: End) {
        self.end = Some(end);
    }

    /// Its result, if it has ended.
    pub(crate) fn status(&self) -> Option<ScrubStatus> {
        let end = self.end?;
        Some(ScrubStatus {
            number: self.number,
            mode: self.mode,
            outcome: end.outcome,
            at: end.at,
            events: end.events,
            total: end.total,
            done: end.done,
            uncompared: self.uncompared,
            ranges: self.reported.as_slice().to_vec(),
            more_ranges: self.more_ranges,
        })
    }

    /// What it may change.
    pub(crate) const fn mode(&self) -> ScrubMode {
        self.mode
    }

    /// Number of sectors so far that did not match.
    pub(crate) const fn mismatches(&self) -> u64 {
        self.mismatches
    }

    /// This number of sectors could not be compared.
    pub(crate) fn note_uncompared(&mut self, len: Sectors) {
        self.uncompared += len;
    }

    /// This number of sectors that did not agree was written.
    pub(crate) fn note_repaired(&mut self, sectors: u64) {
        self.repaired += sectors;
    }

    /// A sector did not match. Returns a range that must be reported now, because there is no room for another one.
    pub(crate) fn note(&mut self, sector: MismatchRange) -> Option<MismatchRange> {
        self.mismatches += 1;
        let full = if self.open.is_full() { self.open.take_first() } else { None };
        self.open.add(sector, self.gap);
        full.filter(|range| self.keep(*range))
    }

    /// The next range that ends below this position, so that it can no longer grow, if it must be reported.
    pub(crate) fn take_ended(&mut self, below: Sectors) -> Option<MismatchRange> {
        loop {
            // In a mirror with chunks a range may continue after a gap.
            let ends = |range: &MismatchRange| below == Sectors::MAX || range.end() + self.gap.max < below;
            let first = self.open.first().filter(ends)?;
            self.open.take_first();
            if self.keep(first) {
                return Some(first);
            }
        }
    }

    fn keep(&mut self, range: MismatchRange) -> bool {
        if self.reported.is_full() {
            self.more_ranges += 1;
            return false;
        }
        self.reported.add(range, self.gap);
        true
    }

    /// The outcome, after `done` of `total`.
    pub(crate) fn outcome(&self, aborted: Option<AbortReason>, done: Sectors, total: Sectors) -> ScrubOutcome {
        let (count, repaired) = (self.mismatches, self.repaired);
        match aborted {
            Some(why) => ScrubOutcome::Aborted { why, percent: percent(done, total), count, repaired },
            None if count > 0 => ScrubOutcome::Mismatches { count, repaired },
            None if self.uncompared >= total => ScrubOutcome::NotComparable(NotComparable::Unreadable),
            None => ScrubOutcome::Clean,
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // at most 100
fn percent(done: Sectors, total: Sectors) -> u8 {
    let done = u128::from(done.min(total).get()) * 100;
    done.checked_div(u128::from(total.get())).unwrap_or(100) as u8
}

/// Ranges in ascending order of their first sectors; ranges that meet are merged.
#[derive(Clone, Copy, Debug)]
struct Ranges<const N: usize> {
    all: [MismatchRange; N],
    len: usize,
}

impl<const N: usize> Ranges<N> {
    const EMPTY: Self = Self { all: [MismatchRange::sector(Sectors::ZERO, None, Remedy::Left); N], len: 0 };

    fn as_slice(&self) -> &[MismatchRange] {
        &self.all[..self.len]
    }

    const fn is_full(&self) -> bool {
        self.len == N
    }

    fn first(&self) -> Option<MismatchRange> {
        self.as_slice().first().copied()
    }

    fn take_first(&mut self) -> Option<MismatchRange> {
        let first = self.first()?;
        self.all.copy_within(1..self.len, 0);
        self.len -= 1;
        Some(first)
    }

    /// Add a range, for which there is room. It is merged with each range that it meets.
    fn add(&mut self, mut range: MismatchRange, gap: Gap) {
        let mut place = 0;
        while let Some(other) = self.as_slice().get(place) {
            if other.meets(&range, gap) {
                range = range.with(*other);
                self.all.copy_within(place + 1..self.len, place);
                self.len -= 1;
            } else {
                place += 1;
            }
        }
        assert!(self.len < N, "bug: no room for another range");
        let place = self.as_slice().partition_point(|other| other.from < range.from);
        self.all.copy_within(place..self.len, place + 1);
        self.all[place] = range;
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(from: u64) -> MismatchRange {
        MismatchRange::sector(Sectors(from), None, Remedy::Left)
    }

    fn scrub() -> Scrub {
        Scrub::new(ScrubMode::Check, 1, Gap::NONE)
    }

    #[test]
    fn sectors_that_touch_are_one_range_in_whatever_order_they_are_found() {
        let mut scrub = scrub();
        for from in [16, 8, 10, 9, 17, 40, 15, 14, 13, 12, 11] {
            assert_eq!(scrub.note(sector(from)), None);
        }
        assert_eq!(scrub.take_ended(Sectors(18)), None, "the next unit may make it longer");
        let first = MismatchRange { len: Sectors(10), count: 10, ..sector(8) };
        assert_eq!(scrub.take_ended(Sectors(19)), Some(first));
        assert_eq!(scrub.take_ended(Sectors(41)), None);
        assert_eq!(scrub.take_ended(Sectors::MAX), Some(sector(40)));
        assert_eq!((scrub.mismatches, scrub.reported.as_slice()), (11, &[first, sector(40)][..]));
    }

    #[test]
    fn the_mismatches_of_one_member_are_a_separate_range() {
        let mut scrub = scrub();
        for (from, slot) in [(8, None), (9, Some(Slot(1))), (10, Some(Slot(1))), (11, Some(Slot(2)))] {
            scrub.note(MismatchRange { slot, ..sector(from) });
        }
        let lens: Vec<u64> =
            core::iter::from_fn(|| scrub.take_ended(Sectors::MAX)).map(|range| range.len.get()).collect();
        assert_eq!(lens, [1, 2, 1]);
    }

    #[test]
    fn ranges_beyond_the_limit_are_counted() {
        let mut scrub = scrub();
        let reported = (0..1000).filter(|nth| scrub.note(sector(nth * 2)).is_some()).count();
        let rest = core::iter::from_fn(|| scrub.take_ended(Sectors::MAX)).count();
        assert_eq!((reported + rest, scrub.more_ranges, scrub.mismatches), (RANGES_REPORTED_MAX, 1000 - 64, 1000));
    }

    #[test]
    fn a_range_on_one_member_of_a_mirror_with_chunks_is_one_although_it_has_gaps_in_the_array() {
        let chunked = || Scrub::new(ScrubMode::Check, 1, Gap::of_chunks(Sectors(128), 4));
        let rest = |scrub: &mut Scrub| -> Vec<(u64, u64, u64)> {
            let reported = core::iter::from_fn(|| scrub.take_ended(Sectors::MAX));
            reported.map(|range| (range.from.get(), range.len.get(), range.count)).collect()
        };
        // Every second chunk, the chunks in no order.
        let mut scrub = chunked();
        for chunk in [2, 0, 6, 4] {
            (0..128).for_each(|nth| assert_eq!(scrub.note(sector(chunk * 128 + nth)), None));
        }
        assert_eq!(scrub.take_ended(Sectors(8 * 128)), None, "it may go on");
        assert_eq!(rest(&mut scrub), [(0, 7 * 128, 4 * 128)]);
        // Gaps that are not whole chunks, and more chunks than are on other members.
        let mut scrub = chunked();
        for at in [0, 130, 255, 512, 127 + 1024, 5 * 128 + 1024] {
            scrub.note(sector(at));
        }
        assert_eq!(rest(&mut scrub), [(0, 1, 1), (130, 1, 1), (255, 258, 2), (1151, 1, 1), (1664, 1, 1)]);
        // Two bad members by turns.
        let mut scrub = chunked();
        for nth in 0..8 * 128 {
            scrub.note(MismatchRange { slot: Some(Slot(u16::from(nth / 128 % 2 == 1))), ..sector(nth) });
        }
        assert_eq!(rest(&mut scrub), [(0, 7 * 128, 512), (128, 7 * 128, 512)]);
    }
}
