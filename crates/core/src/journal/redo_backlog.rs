//! The redo backlog of a set: the redo records that its members do not have yet after a crash.
//! [`redo_op`](crate::io::steps::redo_op) writes it.
//!
//! ```text
//!   Waits --> InWork: read from the journal -> written to the member --> Done
//!     ^          |
//!     +----------+ the device of the journal hangs: again, from the other one
//! ```
//!
//! A set with parity serves hosts meanwhile. An operation on rows of the backlog waits until they are redone, and these
//! rows are redone first. So no stripe is read, and no parity computed, from a mixture of old and new blocks. Sets without
//! parity have few redos and start after them.
//!
//! A pending redo pins its entry. Until the backlog is empty the set counts as one with logged writes: its session stays on,
//! the active mark and the bits of its bitmap stay set, and no task begins. After a crash the same entries are replayed
//! again, and then the entries that came later.
//!
//! If the bytes cannot be read any more, the set fails, because no other copy exists. Its entries stay in the log.
//!
//! If two records cover the same sectors of a member, only the newer one is written; if the member has newer bytes than the
//! log, neither is. The rest is cut at the borders of units (stripes; regions of sets without parity) and sorted by unit,
//! member and address. So all members are written once, upwards, and neighbouring records become one write. The first
//! sector of a stripe in the set is its name here, because it has another number on each side of a shape.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use openraid_units::{DriveLba, MemberLba, Sectors, SetId, SetLba, Slot};

use super::replay::Replay;
use crate::frames::Run;
use crate::geometry::shape::Side;
use crate::limits::{FRAME_BYTES, OP_COMMANDS_MAX};
use crate::slab::NONE;

/// The place of the bytes of a redo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    pub(super) from: DriveLba,
    /// The entry that has them: the tail must not pass it before they are on the member.
    pub(super) sequence: u64,
}

/// The newest records for places of members, collected from the newest record to the oldest.
#[derive(Default, Debug)]
pub(crate) struct Newest {
    /// By side, slot and start of a place: its end, and the bytes to be written there. No source: the member has newer bytes
    /// than the log.
    places: BTreeMap<(Side, Slot, u64), (u64, Option<Source>)>,
}

impl Newest {
    /// Add an older record: only those parts of its place count that no newer record covers.
    pub(crate) fn add(&mut self, (side, slot): (Side, Slot), (at, len): (MemberLba, Sectors), source: Option<Source>) {
        let (start, end) = (at.get(), (at + len).get());
        let before = self.places.range((side, slot, 0)..=(side, slot, start)).next_back();
        let mut from = before.map_or(start, |(_, (known_to, _))| start.max(*known_to));
        while from < end {
            let next = self.places.range((side, slot, from)..(side, slot, end)).next();
            let (to, behind) = next.map_or((end, end), |((.., next), (known_to, _))| (*next, *known_to));
            if from < to {
                let source = source.map(|source| Source { from: source.from + Sectors(from - start), ..source });
                self.places.insert((side, slot, from), (to, source));
            }
            from = behind;
        }
    }

    /// The redos, none longer than `most`, cut at the ends of units. `unit_of` gives the unit of a place on a member, and the
    /// number of sectors to its end: see [`Shape::redo_unit`](crate::geometry::shape::Shape::redo_unit).
    pub(crate) fn into_redos(
        self,
        unit_of: impl Fn(Side, MemberLba) -> (SetLba, Sectors),
        most: Sectors,
    ) -> Vec<PendingRedo> {
        let mut redos = Vec::new();
        for ((side, slot, start), (end, source)) in self.places {
            let Some(source) = source else { continue };
            let mut at = start;
            while at < end {
                let (unit, left) = unit_of(side, MemberLba(at));
                let to = end.min(at + left.get()).min(at + most.get());
                let source = Source { from: source.from + Sectors(at - start), ..source };
                redos.push(PendingRedo {
                    unit,
                    side,
                    at: MemberLba(at),
                    slot,
                    len: Sectors(to - at),
                    source,
                    state: RedoState::Waits,
                });
                at = to;
            }
        }
        redos.sort_unstable_by_key(|redo| (redo.unit, redo.slot, redo.at));
        redos
    }
}

/// The progress of a redo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RedoState {
    /// The redo waits for its turn.
    Waits,
    /// An operation works on it.
    InWork,
    /// The member has the bytes, or the slot has no member.
    Done,
}

/// A write that a member must get from the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRedo {
    /// The unit of its place, and the side of the set on which the place is.
    unit: SetLba,
    side: Side,
    pub(super) at: MemberLba,
    pub(super) slot: Slot,
    pub(super) len: Sectors,
    pub(super) source: Source,
    pub(super) state: RedoState,
}

impl PendingRedo {
    /// Its place: the slot, the first sector on the member, and the number of sectors.
    pub(crate) const fn place(&self) -> (Slot, MemberLba, Sectors) {
        (self.slot, self.at, self.len)
    }

    /// The side of its set on which it is.
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// The place of its bytes in the journal.
    pub(crate) const fn from(&self) -> DriveLba {
        self.source.from
    }
}

/// Rows of the members, in neighbouring stripes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberRows {
    /// The first and the last of the stripes, each by its first sector in the set.
    units: (SetLba, SetLba),
    from: MemberLba,
    to: MemberLba,
}

impl MemberRows {
    /// The rows from `from` to `to`, which lie in the stripes from the first to the last of `units`.
    pub(crate) const fn new(units: (SetLba, SetLba), from: MemberLba, to: MemberLba) -> Self {
        Self { units, from, to }
    }
}

/// The redo records that the members of a set do not have yet.
#[derive(Debug)]
pub(crate) struct RedoBacklog {
    set: SetId,
    /// The index of the set in the journal's table.
    array: u8,
    /// Maximum number of sectors of a member in one write.
    most: Sectors,
    /// Sorted by unit, slot and place.
    pub(super) redos: Vec<PendingRedo>,
    /// All redos before this one have begun.
    first: usize,
    /// Number of redos that are not done, and of operations in work.
    pub(super) left: usize,
    out: u32,
    /// The reason why no more redos begin. The rest stays in the log.
    error: Option<&'static str>,
    /// Does the set serve hosts already?
    pub(super) serves: bool,
    /// Frames for one write, kept in case all others are held by operations that wait for room in the journal: that room
    /// may depend on a redo.
    spare: Option<Run>,
    /// The operation that uses the spare frames.
    spare_has: u32,
    /// Has the backlog ended early? Then rows that lack a redo are neither read nor written until the set is started
    /// again.
    pub(super) is_over: bool,
}

impl RedoBacklog {
    /// A backlog of these redos, as [`Newest::into_redos`] returns them, in writes of at most `most` sectors.
    pub(crate) fn new(set: SetId, array: u8, most: Sectors, redos: Vec<PendingRedo>) -> Self {
        let left = redos.len();
        Self {
            set,
            array,
            most,
            redos,
            first: 0,
            left,
            out: 0,
            error: None,
            serves: false,
            spare: None,
            spare_has: NONE,
            is_over: false,
        }
    }

    /// Its set, and the index of the set in the journal's table.
    pub(crate) const fn owner(&self) -> (SetId, u8) {
        (self.set, self.array)
    }

    /// Number of redos that are not done, and of operations in work.
    pub(crate) const fn progress(&self) -> (usize, u32) {
        (self.left, self.out)
    }

    /// A redo of it.
    pub(crate) fn redo(&self, index: usize) -> PendingRedo {
        self.redos[index]
    }

    /// The first redo of these rows that has not begun.
    pub(crate) fn next_of(&self, rows: MemberRows) -> Option<usize> {
        self.pending(rows).find(|index| self.redos[*index].state == RedoState::Waits)
    }

    /// No more redos begin, for this reason or an earlier one.
    pub(crate) fn fail(&mut self, why: &'static str) {
        self.error.get_or_insert(why);
    }

    /// Why no more redos begin.
    pub(crate) const fn error(&self) -> Option<&'static str> {
        self.error
    }

    /// A redo begins, with the neighbours that share its write.
    pub(crate) fn begin(&mut self, index: usize, count: usize) {
        self.set_state(index, count, RedoState::InWork);
        self.out += 1;
    }

    /// A redo has ended. If it failed, it waits again.
    pub(crate) fn end_work(&mut self, index: usize, count: usize, failed: bool) {
        self.out -= 1;
        if failed {
            self.set_state(index, count, RedoState::Waits);
        }
    }

    /// Does it serve hosts, and lack the spare frames, while none of its redos is in work?
    pub(crate) const fn needs_spare(&self) -> bool {
        self.spare.is_none() && (!self.serves || self.out == 0)
    }

    /// Keep these spare frames.
    pub(crate) fn keep_spare(&mut self, run: Option<Run>) {
        self.spare = run;
    }

    /// Are there spare frames?
    pub(crate) const fn has_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Take the spare frames out.
    pub(crate) fn take_spare(&mut self) -> Option<Run> {
        self.spare.take()
    }

    /// Give the spare frames to this operation.
    pub(crate) fn spare_goes_to(&mut self, op: u32) {
        self.spare_has = op;
    }

    /// This operation has ended; true if it had the spare frames.
    pub(crate) fn spare_comes_back(&mut self, op: u32) -> bool {
        let had = self.spare_has == op;
        if had {
            self.spare_has = NONE;
        }
        had
    }

    /// The set begins to serve hosts while the rest is done; false if it serves them already.
    pub(crate) fn begin_to_serve(&mut self) -> bool {
        !core::mem::replace(&mut self.serves, true)
    }

    /// End the backlog: no further redo is done.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Has it ended?
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Number of bytes of the longest write, including the parts of the journal's blocks beyond its ends.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.most.bytes().get() + 2 * FRAME_BYTES
    }

    /// Redos in the units of these rows.
    fn near(&self, (first, last): (SetLba, SetLba)) -> core::ops::Range<usize> {
        let start = self.redos.partition_point(|redo| redo.unit < first);
        start..self.redos.partition_point(|redo| redo.unit <= last)
    }

    /// The redos of these rows, on any member, that are not done.
    pub(crate) fn pending(&self, rows: MemberRows) -> impl Iterator<Item = usize> + '_ {
        self.near(rows.units).filter(move |index| {
            let redo = &self.redos[*index];
            redo.state != RedoState::Done && redo.at < rows.to && redo.at + redo.len > rows.from
        })
    }

    /// The first redo that waits.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let rest = &self.redos[self.first..];
        let skip = rest.iter().position(|redo| redo.state == RedoState::Waits).unwrap_or(rest.len());
        self.first += skip;
        (self.first < self.redos.len()).then_some(self.first)
    }

    /// Number of redos from this one on that become one write, and the length of the write: neighbours on one member,
    /// in one unit. Only at the start of the first and at the end of the last one a block of the journal's devices may
    /// extend beyond the write.
    pub(crate) fn run_from(&self, index: usize, block: u64) -> (usize, Sectors) {
        let first = &self.redos[index];
        let (mut count, mut len) = (1, first.len);
        let whole =
            |redo: &PendingRedo| redo.source.from.get().is_multiple_of(block) && redo.len.get().is_multiple_of(block);
        for pair in self.redos[index..].windows(2) {
            let next = &pair[1];
            let adjoins = next.slot == first.slot && next.at == first.at + len && next.unit == first.unit;
            let fits = len + next.len <= self.most && count < OP_COMMANDS_MAX as usize;
            if !(adjoins && fits && whole(&pair[0]) && whole(next) && next.state == RedoState::Waits) {
                break;
            }
            (count, len) = (count + 1, len + next.len);
        }
        (count, len)
    }

    /// Change the state of these redos.
    pub(crate) fn set_state(&mut self, index: usize, count: usize, state: RedoState) {
        self.redos[index..index + count].iter_mut().for_each(|redo| redo.state = state);
        match state {
            RedoState::Done => self.left -= count,
            RedoState::Waits => self.first = self.first.min(index),
            RedoState::InWork => {}
        }
    }
}

impl Replay {
    /// Does a set have a redo backlog, or did it have one when it failed?
    #[inline(always)]
    pub(crate) fn is_redoing(&self) -> bool {
        !self.backlogs.is_empty()
    }

    /// Number of redos that are not done.
    pub(super) fn pending(&self) -> u64 {
        self.backlogs.iter().map(|backlog| backlog.left as u64).sum()
    }

    /// Number of backlogs.
    pub(crate) fn len(&self) -> usize {
        self.backlogs.len()
    }

    /// A backlog by its number.
    pub(crate) fn backlog(&self, number: usize) -> &RedoBacklog {
        &self.backlogs[number]
    }

    /// As [`Replay::backlog`].
    pub(crate) fn backlog_mut(&mut self, number: usize) -> &mut RedoBacklog {
        &mut self.backlogs[number]
    }

    /// The number of the backlog of a set.
    pub(crate) fn number_of(&self, set: SetId) -> Option<usize> {
        self.backlogs.iter().position(|backlog| backlog.set == set)
    }

    /// A backlog is done; the last one takes its number.
    pub(crate) fn remove(&mut self, number: usize) {
        self.backlogs.swap_remove(number);
    }

    /// An operation waits for redos: they must begin before all others.
    pub(crate) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// Has an operation called [`Replay::ask`] since the last call?
    pub(crate) fn take_asked(&mut self) -> bool {
        core::mem::take(&mut self.is_asked)
    }

    pub(crate) fn backlog_of(&mut self, set: SetId) -> Option<&mut RedoBacklog> {
        self.backlogs.iter_mut().find(|backlog| backlog.set == set)
    }

    /// Forget the backlog of a set that has ended.
    pub(crate) fn forget_backlog(&mut self, set: SetId) {
        self.backlogs.retain(|backlog| backlog.set != set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_random::draws;

    fn source(from: u64, sequence: u64) -> Option<Source> {
        Some(Source { from: DriveLba(from), sequence })
    }

    fn place(at: u64, len: u64) -> (MemberLba, Sectors) {
        (MemberLba(at), Sectors(len))
    }

    /// The units of a set whose stripes have this number of rows and two data columns.
    fn units(rows: u64) -> impl Fn(Side, MemberLba) -> (SetLba, Sectors) {
        move |_, at| (SetLba(at.get() / rows * rows * 2), Sectors(rows - at.get() % rows))
    }

    /// Rows of the first stripe.
    fn rows(from: u64, to: u64) -> MemberRows {
        MemberRows { units: (SetLba(0), SetLba(0)), from: MemberLba(from), to: MemberLba(to) }
    }

    /// The source of each sector of a member, found by writing all records from the oldest to the newest.
    fn written(records: &[(Slot, u64, u64, Option<Source>)], slot: Slot, sectors: u64) -> Vec<Option<u64>> {
        let mut written = alloc::vec![None; usize::try_from(sectors).unwrap()];
        for (record_slot, at, len, source) in records.iter().rev().filter(|record| record.0 == slot) {
            for sector in 0..*len {
                assert_eq!(*record_slot, slot);
                written[usize::try_from(at + sector).unwrap()] = source.map(|source| source.from.get() + sector);
            }
        }
        written
    }

    #[test]
    fn the_newest_redo_of_each_sector_counts_and_none_if_the_member_has_newer_bytes() {
        let mut random = draws(7);
        for _ in 0..200 {
            let records: Vec<_> = (0..random(40))
                .map(|n| {
                    let (at, len) = (random(96), 1 + random(24));
                    let source = if random(5) == 0 { None } else { source(1000 * (n + 1), 50 - n) };
                    (Slot(u16::try_from(random(3)).unwrap()), at, len, source)
                })
                .collect();
            let mut newest = Newest::default();
            records
                .iter()
                .for_each(|(slot, at, len, source)| newest.add((Side::Old, *slot), place(*at, *len), *source));
            let redos = newest.into_redos(units(16), Sectors(8));
            for slot in (0..3).map(Slot) {
                let mut found = alloc::vec![None; 128];
                for redo in redos.iter().filter(|redo| redo.slot == slot) {
                    assert_eq!(redo.at.get() / 16, (redo.at.get() + redo.len.get() - 1) / 16, "it lies in its unit");
                    assert!(redo.len <= Sectors(8));
                    for sector in 0..redo.len.get() {
                        let at = usize::try_from(redo.at.get() + sector).unwrap();
                        assert_eq!(found[at], None, "each place is written once");
                        found[at] = Some(redo.source.from.get() + sector);
                    }
                }
                assert_eq!(found, written(&records, slot, 128));
            }
        }
    }

    #[test]
    fn neighbours_of_one_member_and_unit_go_together() {
        let mut newest = Newest::default();
        let slot = Slot(1);
        for (n, at) in [0, 8, 16, 32, 40, 64].into_iter().enumerate() {
            newest.add((Side::Old, slot), place(at, 8), source(800 - 8 * n as u64, 1));
        }
        newest.add((Side::Old, Slot(0)), place(24, 8), source(1600, 1));
        let mut backlog = RedoBacklog::new(SetId(0), 0, Sectors(16), newest.into_redos(units(48), Sectors(16)));
        let order: Vec<u64> = backlog.redos.iter().map(|redo| redo.at.get()).collect();
        assert_eq!(order, [24, 0, 8, 16, 32, 40, 64]);
        assert_eq!(backlog.run_from(0, 8), (1, Sectors(8)));
        assert_eq!(backlog.run_from(1, 8), (2, Sectors(16)), "no longer than it may be");
        assert_eq!(backlog.run_from(1, 64), (1, Sectors(8)), "its blocks reach over its ends");
        assert_eq!(backlog.run_from(5, 8), (1, Sectors(8)), "the next unit is another one's");
        assert_eq!(backlog.pending(rows(4, 30)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        backlog.set_state(1, 3, RedoState::Done);
        assert_eq!(backlog.pending(rows(4, 30)).collect::<Vec<_>>(), [0]);
        backlog.set_state(0, 1, RedoState::InWork);
        assert_eq!((backlog.next(), backlog.left), (Some(4), 4));
        backlog.set_state(0, 1, RedoState::Waits);
        assert_eq!(backlog.next(), Some(0));
    }
}
