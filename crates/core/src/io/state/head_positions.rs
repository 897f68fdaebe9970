//! The estimated positions of the heads of a set's members, and the streams that are read from them.

use crate::slot_set::SlotSet;
use alloc::vec::Vec;
use openraid_units::{Sectors, SetLba, Slot};

/// Maximum number of streams of a mirrored set that are tracked.
pub(crate) const RUNS_MAX: usize = 16;

/// Number of other reads after which a stream that did not advance counts as ended. Until then single reads do not
/// evict it.
pub(crate) const RUN_RESTS: u64 = 256;

/// A stream is active if its last read is at most this number of reads back.
pub(crate) const RUN_LATELY: u64 = 32;

/// About this number of reads decide in which part of a member the recent reads were.
pub(crate) const PART_LATELY: u64 = 32;

/// Unknown.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// Reads of a mirrored set that follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRun {
    /// Its beginning, and the position of its next read, in the set.
    pub(in crate::io) begun: u64,
    pub(in crate::io) next: u64,
    /// Did a second read follow the first? Most reads of most loads are single.
    pub(super) is_stream: bool,
    /// The copy from which it is read; on a stripe of mirrors it is the same number on all pairs.
    pub(in crate::io) copy: u16,
    /// Time of its last use.
    pub(in crate::io) used: u64,
}

/// The region of a member from which reads were taken recently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(super) middle: u64,
    pub(super) width: u64,
}

impl Region {
    /// Count one more read.
    pub(in crate::io) fn take(&mut self, at: u64) {
        let way = at.abs_diff(self.middle);
        let step = way / PART_LATELY;
        self.middle = if at > self.middle { self.middle + step } else { self.middle - step };
        self.width = (self.width * (PART_LATELY - 1) + way) / PART_LATELY;
    }
}

/// The estimated heads of a set's members.
#[derive(Debug)]
pub(crate) struct ReadHeads {
    /// The end of the last command, by slot.
    pub(in crate::io) at: Vec<u64>,
    /// Number of reads of each slot; a returning member starts with as many as the others.
    pub(in crate::io) turns: Vec<u64>,
    /// The region of recent reads, by slot: its middle, and the mean distance of a read from the middle.
    pub(in crate::io) parts: Vec<Region>,
    pub(in crate::io) runs: [StreamRun; RUNS_MAX],
    pub(super) clock: u64,
}

impl ReadHeads {
    pub(crate) fn new(slots: usize) -> Self {
        let none = StreamRun { begun: 0, next: UNKNOWN, is_stream: false, copy: 0, used: 0 };
        Self {
            at: alloc::vec![UNKNOWN; slots],
            turns: alloc::vec![0; slots],
            parts: alloc::vec![Region { middle: 0, width: 0 }; slots],
            runs: [none; RUNS_MAX],
            clock: 0,
        }
    }

    /// A host command on a member ends at this position.
    pub(crate) fn moved(&mut self, slot: Slot, end: u64) {
        self.at[slot.index()] = end;
    }

    pub(in crate::io) fn distance(&self, slot: Slot, to: u64) -> u64 {
        let at = self.at[slot.index()];
        if at == UNKNOWN {
            to
        } else {
            at.abs_diff(to)
        }
    }

    /// The rank of a copy with a long queue: each waiting command counts as the mean distance within the copy's region,
    /// plus the distance from the middle of the region. As a result, copies keep to regions of their own, and their
    /// seeks become short.
    pub(in crate::io) fn behind_queue(&self, slot: Slot, to: u64, pending: u32) -> u64 {
        let part = &self.parts[slot.index()];
        u64::from(pending).saturating_mul(part.width.max(1)).saturating_add(part.middle.abs_diff(to))
    }

    /// Count one more read for a copy, among these.
    pub(in crate::io) fn take_turn(&mut self, slot: Slot, among: SlotSet) {
        let most = among.iter().map(|other| self.turns[other.index()]).max().unwrap_or(0);
        let turn = &mut self.turns[slot.index()];
        *turn = (*turn + 1).max(most);
    }

    /// Was a stream read from this copy recently?
    pub(in crate::io) fn has_run(&self, copy: u16) -> bool {
        self.runs.iter().any(|run| run.next != UNKNOWN && run.copy == copy && self.clock - run.used < RUN_LATELY)
    }

    pub(in crate::io) fn run_at(&self, at: SetLba) -> Option<&StreamRun> {
        self.runs.iter().find(|run| run.next == at.get())
    }

    /// The place that was used longest ago, single reads first. The order is one number for each place, because every
    /// single read asks for it.
    pub(super) fn oldest_run(&self) -> usize {
        let lately = self.clock.saturating_sub(RUN_RESTS - 1);
        let age = |run: &StreamRun| (u64::from(run.is_stream && run.used >= lately) << 63) | run.used;
        let (mut oldest, mut least) = (0, u64::MAX);
        for (place, run) in self.runs.iter().enumerate() {
            let age = age(run);
            (oldest, least) = if age < least { (place, age) } else { (oldest, least) };
        }
        oldest
    }

    /// A part of a stream was read from a copy. A new stream takes the place that was used longest ago, single reads
    /// first.
    pub(in crate::io) fn went_on(&mut self, at: SetLba, len: Sectors, copy: u16) {
        self.clock += 1;
        let known = self.runs.iter().position(|run| run.next == at.get());
        let place = known.unwrap_or_else(|| {
            let oldest = self.oldest_run();
            self.runs[oldest].begun = at.get();
            oldest
        });
        let run = &mut self.runs[place];
        (run.next, run.is_stream, run.copy, run.used) = (at.get() + len.get(), known.is_some(), copy, self.clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::steps::mirror_read::LONG_QUEUE;

    #[test]
    fn copies_take_turns_and_a_returning_one_gets_no_more_than_its_share() {
        let mut heads = ReadHeads::new(3);
        let among = SlotSet::first_n(3);
        let next = |heads: &ReadHeads| among.iter().min_by_key(|slot| (heads.turns[slot.index()], slot.0)).unwrap();
        for round in 0..9 {
            let slot = next(&heads);
            assert_eq!(slot.0, round % 3);
            heads.take_turn(slot, among);
        }
        heads.turns = alloc::vec![0, 1000, 1000];
        let order: Vec<u16> = (0..7)
            .map(|_| {
                let slot = next(&heads);
                heads.take_turn(slot, among);
                slot.0
            })
            .collect();
        assert_eq!(order, [0, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn a_stream_is_recognised_by_its_next_position_and_the_oldest_is_evicted() {
        let mut heads = ReadHeads::new(2);
        for number in 0..RUNS_MAX as u64 {
            heads.went_on(SetLba(number * 1000), Sectors(8), 1);
        }
        heads.went_on(SetLba(8), Sectors(8), 0);
        assert_eq!(heads.run_at(SetLba(16)).map(|run| (run.begun, run.copy)), Some((0, 0)));
        heads.went_on(SetLba(99_999), Sectors(1), 0);
        assert!(heads.run_at(SetLba(1008)).is_none(), "the oldest made room");
        assert!(heads.run_at(SetLba(2008)).is_some());
    }

    #[test]
    fn single_reads_take_no_place_from_a_stream_until_it_has_ended() {
        let mut heads = ReadHeads::new(2);
        let far = |number: u64| SetLba((1 << 40) + number * 1_000_003);
        heads.went_on(SetLba(0), Sectors(8), 1);
        heads.went_on(SetLba(8), Sectors(8), 1);
        for number in 1..RUN_RESTS {
            heads.went_on(far(number), Sectors(8), 0);
        }
        assert_eq!(heads.run_at(SetLba(16)).map(|run| (run.begun, run.copy)), Some((0, 1)));
        for number in 0..=RUNS_MAX as u64 {
            heads.went_on(far(RUN_RESTS + number), Sectors(8), 0);
        }
        assert!(heads.run_at(SetLba(16)).is_none());
    }

    /// Closed form: of two heads at independent positions, the nearer one is on average 5/24 of the stroke away; a
    /// single head is a third away.
    #[test]
    fn the_nearer_of_two_heads_anywhere_has_five_parts_of_24_to_go() {
        const STROKE: u64 = 1 << 32;
        const DRAWS: u64 = 200_000;
        let mut heads = ReadHeads::new(2);
        let mut state = 1_u64;
        let mut place = || {
            // Numerical Recipes' constants; the upper half counts.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32
        };
        let (mut nearest, mut alone) = (0, 0);
        for _ in 0..DRAWS {
            for slot in [Slot(0), Slot(1)] {
                heads.moved(slot, place());
            }
            let at = place();
            nearest += [Slot(0), Slot(1)].map(|slot| heads.distance(slot, at)).into_iter().min().unwrap();
            alone += heads.distance(Slot(0), at);
        }
        // Within one per cent.
        assert!((nearest / DRAWS * 24).abs_diff(5 * STROKE) < STROKE / 20, "{}", nearest / DRAWS);
        assert!((alone / DRAWS * 3).abs_diff(STROKE) < STROKE / 100, "{}", alone / DRAWS);
    }

    /// Closed form: two copies that each keep to a half are on average an eighth of the stroke away from its middle; a
    /// copy that is read everywhere is a quarter away.
    #[test]
    fn with_long_queues_each_copy_keeps_to_a_region_of_its_own() {
        const STROKE: u64 = 1 << 32;
        const DRAWS: u64 = 100_000;
        let slots = [Slot(0), Slot(1)];
        let mut heads = ReadHeads::new(2);
        let mut state = 1_u64;
        let (mut ways, mut given) = (0, [0; 2]);
        for draw in 0..2 * DRAWS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = state >> 32;
            let slot = slots.into_iter().min_by_key(|slot| heads.behind_queue(*slot, at, LONG_QUEUE)).unwrap();
            if draw >= DRAWS {
                ways += heads.parts[slot.index()].middle.abs_diff(at);
                given[slot.index()] += 1;
            }
            heads.parts[slot.index()].take(at);
        }
        // The middle of 32 reads differs a little from that of the half.
        let way = ways / DRAWS;
        assert!((STROKE / 8..STROKE / 8 + STROKE / 50).contains(&way), "{way} of {STROKE}");
        assert!(given.iter().all(|reads| *reads > DRAWS * 2 / 5), "{given:?}");
        // With five more commands before it, the other copy is chosen.
        let near = heads.parts[0].middle;
        assert!(heads.behind_queue(Slot(0), near, 9) > heads.behind_queue(Slot(1), near, 4));
    }
}
