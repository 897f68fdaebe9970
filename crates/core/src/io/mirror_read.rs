//! The choice of the copy of a mirror that is read: the rules of [`MirrorRead`], and the estimated head positions.
//!
//! Drives do not report the position of a head. It is estimated as the end of the last host command on that member, at
//! first 0. Background work is ignored, because it gives way. With long queues the present position does not predict
//! where the head will be at a read's turn. Then each copy keeps to a region of its own, the one that it read recently.
//!
//! A member that is write-mostly in md's superblock is read only if no other copy can be read. If copies may differ, the
//! first copy is read in any case, because a resync takes it for the right one.
//!
//! Nearest head, two members, independent positions: the mean distance is 5/24 of the stroke if both heads are
//! anywhere, and 0.161 after a while, because each head keeps to a region of its own.

use alloc::vec::Vec;
use openraid_units::{Sectors, SetLba, Slot, SECTOR_BYTES};

use crate::adaptive::Tuning;
use crate::admin::MirrorRead;
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::table::Arrays;
use crate::geometry::{Fragment, Geometry, Mirror};
use crate::io::channel::Channel;
use crate::io::channel::Channels;
use crate::io::op::Op;
use crate::io::op_io::OpIo;
use crate::reason::Reason;
use crate::requests::Requests;
use crate::slots::SlotSet;
use crate::trace::Trace;

/// Maximum number of streams of a mirrored set that are tracked.
const RUNS_MAX: usize = 16;
/// Number of other reads after which a stream that did not advance counts as ended. Until then single reads do not
/// evict it.
const RUN_RESTS: u64 = 256;
/// A stream is active if its last read is at most this number of reads back.
const RUN_LATELY: u64 = 32;
/// About this number of reads decide in which part of a member the recent reads were.
const PART_LATELY: u64 = 32;
/// Number of waiting commands for each copy from which the present position of a head does not predict its next one.
const LONG_QUEUE: u32 = 4;
/// Unknown.
const UNKNOWN: u64 = u64::MAX;

/// Reads of a mirrored set that follow each other.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Its beginning, and the position of its next read, in the set.
    begun: u64,
    next: u64,
    /// Did a second read follow the first? Most reads of most loads are single.
    is_stream: bool,
    /// The copy from which it is read; on a stripe of mirrors it is the same number on all pairs.
    copy: u16,
    /// Time of its last use.
    used: u64,
}

/// The region of a member from which reads were taken recently.
#[derive(Clone, Copy, Debug)]
struct Part {
    middle: u64,
    width: u64,
}

impl Part {
    /// Count one more read.
    fn take(&mut self, at: u64) {
        let way = at.abs_diff(self.middle);
        let step = way / PART_LATELY;
        self.middle = if at > self.middle { self.middle + step } else { self.middle - step };
        self.width = (self.width * (PART_LATELY - 1) + way) / PART_LATELY;
    }
}

/// The estimated heads of a set's members, and how the adaptive policy uses them.
#[derive(Debug)]
pub(crate) struct MirrorReads {
    /// The end of the last command, by slot.
    at: Vec<u64>,
    /// Number of reads of each slot; a returning member starts with as many as the others.
    turns: Vec<u64>,
    /// The region of recent reads, by slot: its middle, and the mean distance of a read from the middle.
    parts: Vec<Part>,
    runs: [Run; RUNS_MAX],
    clock: u64,
    /// The policy in use, which the adaptive policy may have changed.
    pub(super) tuning: Tuning,
}

/// The rank of a copy: the lowest is best, and among equals the first.
type Rank = (u8, u64);
/// Members that do not rotate are preferred.
const FLASH: u8 = 0;
const SPINS: u8 = 1;
/// Maximum distance that counts, in sectors: a pebibyte.
const WAY_MAX: u64 = (1 << 41) - 1;

impl MirrorReads {
    pub(crate) fn new(slots: usize, tuning: Tuning) -> Self {
        let none = Run { begun: 0, next: UNKNOWN, is_stream: false, copy: 0, used: 0 };
        Self {
            at: alloc::vec![UNKNOWN; slots],
            turns: alloc::vec![0; slots],
            parts: alloc::vec![Part { middle: 0, width: 0 }; slots],
            runs: [none; RUNS_MAX],
            clock: 0,
            tuning,
        }
    }

    /// The tuning in use.
    #[inline(always)]
    pub(crate) const fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Use this tuning from now on.
    pub(crate) fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning = tuning;
    }

    /// A host command on a member ends at this position.
    pub(crate) fn moved(&mut self, slot: Slot, end: u64) {
        self.at[slot.index()] = end;
    }

    fn distance(&self, slot: Slot, to: u64) -> u64 {
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
    fn behind_queue(&self, slot: Slot, to: u64, pending: u32) -> u64 {
        let part = &self.parts[slot.index()];
        u64::from(pending).saturating_mul(part.width.max(1)).saturating_add(part.middle.abs_diff(to))
    }

    /// Count one more read for a copy, among these.
    fn take_turn(&mut self, slot: Slot, among: SlotSet) {
        let most = among.iter().map(|other| self.turns[other.index()]).max().unwrap_or(0);
        let turn = &mut self.turns[slot.index()];
        *turn = (*turn + 1).max(most);
    }

    /// Was a stream read from this copy recently?
    fn has_run(&self, copy: u16) -> bool {
        self.runs.iter().any(|run| run.next != UNKNOWN && run.copy == copy && self.clock - run.used < RUN_LATELY)
    }

    fn run_at(&self, at: SetLba) -> Option<&Run> {
        self.runs.iter().find(|run| run.next == at.get())
    }

    /// The place that was used longest ago, single reads first. The order is one number for each place, because every
    /// single read asks for it.
    fn oldest_run(&self) -> usize {
        let lately = self.clock.saturating_sub(RUN_RESTS - 1);
        let age = |run: &Run| (u64::from(run.is_stream && run.used >= lately) << 63) | run.used;
        let (mut oldest, mut least) = (0, u64::MAX);
        for (place, run) in self.runs.iter().enumerate() {
            let age = age(run);
            (oldest, least) = if age < least { (place, age) } else { (oldest, least) };
        }
        oldest
    }

    /// A part of a stream was read from a copy. A new stream takes the place that was used longest ago, single reads
    /// first.
    fn went_on(&mut self, at: SetLba, len: Sectors, copy: u16) {
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

impl Sets {
    /// The part up to the end of its section, from the copy whose turn it is.
    fn section(&self, op: &Op, mirror: &Mirror, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
        let set = self.get(op.set);
        let readable = set.copies_to_read(mirror, at, left);
        let section = set.policy().split_section.get();
        let count = mirror.copies(at).filter(&readable).count() as u64;
        let turn = usize::try_from(at.get() / section % count.max(1)).expect("less than the copies");
        let mut copy = mirror.copies(at).filter(&readable).nth(turn)?;
        copy.len = copy.len.min(Sectors(section - at.get() % section));
        Some((copy, Reason::ReadSection))
    }
}

impl Sets {
    /// The copy from which a stream was read before. The stream moves if another stream disturbs it there and another
    /// copy is idle (with `alone`: and had no stream recently).
    fn stay_with_run(
        &self,
        channels: &Channels,
        op: &Op,
        mirror: &Mirror,
        (at, left): (SetLba, Sectors),
        alone: bool,
    ) -> Option<(Fragment, Reason)> {
        let set = self.get(op.set);
        let readable = set.copies_to_read(mirror, at, left);
        let copy = mirror.copies(at).nth(usize::from(set.mirror_reads.run_at(at)?.copy))?;
        let disturbed =
            set.mirror_reads.at[copy.slot.index()] != copy.lba.get() && self.pending_of(channels, op, &copy) > 0;
        let idle = |other: &Fragment| readable(other) && self.pending_of(channels, op, other) == 0;
        let other = (0..)
            .zip(mirror.copies(at))
            .find(|(which, other)| disturbed && idle(other) && !(alone && set.mirror_reads.has_run(*which)));
        match other {
            Some((_, other)) => Some((other, Reason::ReadLeastPending)),
            None => readable(&copy).then_some((copy, Reason::ReadSequential)),
        }
    }

    /// The length that counts for splitting: the whole stream up to here. If streams do not count, the bytes that hosts
    /// have requested at once, in one request or in the unfinished requests of the stream.
    fn wanted_at_once(&self, arrays: &Arrays, requests: &Requests, op: &Op, at: SetLba, left: Sectors) -> u64 {
        let set = self.get(op.set);
        if set.policy().split_streams {
            return at.get() + left.get() - set.mirror_reads.run_at(at).map_or(at.get(), |run| run.begun);
        }
        let Some(piece) = op.piece() else { return left.get() };
        let request = requests.of_piece(piece).asked();
        let array = arrays.get(request.array);
        array.streams().asked_at_once(at.get()).max(request.len / SECTOR_BYTES)
    }

    /// Number of pending commands of the member with this copy.
    fn pending_of(&self, channels: &Channels, op: &Op, copy: &Fragment) -> u32 {
        let member = self.get(op.set).member_of(copy.slot);
        member.and_then(|member| channels.get(member.drive())).map_or(0, |channel| channel.pending())
    }

    /// A copy was chosen: remember it. Only heads need streams and regions, so without rotating members nothing is
    /// recorded.
    pub(crate) fn copy_chosen(
        &mut self,
        trace: &mut Trace,
        id: openraid_units::SetId,
        at: SetLba,
        copy: &Fragment,
        len: Sectors,
        reason: Reason,
    ) {
        trace.note(self, id, reason, copy.lba.get(), u32::from(copy.slot.0));
        let set = self.get_mut(id);
        let Geometry::Mirror(mirror) = set.geometry() else { unreachable!("mirrors have copies") };
        match set.mirror_reads.tuning.mirror_read {
            MirrorRead::RoundRobin => {
                set.mirror_reads.take_turn(copy.slot, mirror.copies(at).map(|copy| copy.slot).collect());
            }
            MirrorRead::TwinStor | MirrorRead::LeastPending if !set.is_flash() => {
                let same = |other: &Fragment| (other.slot, other.lba) == (copy.slot, copy.lba);
                let which = (0..).zip(mirror.copies(at)).find(|(_, other)| same(other));
                set.mirror_reads.went_on(at, len, which.map_or(0, |(which, _)| which));
                set.mirror_reads.parts[copy.slot.index()].take(copy.lba.get());
            }
            MirrorRead::TwinStor | MirrorRead::LeastPending | MirrorRead::Primary | MirrorRead::NearestHead => {}
        }
        set.mirror_reads.moved(copy.slot, (copy.lba + len).get());
    }
}

impl OpIo<'_> {
    /// The copy from which the data at `at` is read, and the length; `None` if no member has it.
    pub(crate) fn choose_copy(
        &self,
        op: &Op,
        mirror: &Mirror,
        at: SetLba,
        left: Sectors,
    ) -> Option<(Fragment, Reason)> {
        let set = self.sets.get(op.set);
        // All copies are as long as the first.
        let len = mirror.copies(at).next()?.len.min(left);
        if !set.is_consistent(at.get(), (at + len).get()) {
            return fixed_copy(set, mirror, at, left);
        }
        let rule = set.mirror_reads.tuning.mirror_read;
        let parts = rule == MirrorRead::LeastPending && !set.policy().split_streams;
        let is_long = parts
            && self.sets.wanted_at_once(self.arrays, self.requests, op, at, left) > set.policy().split_above.get();
        let channel_of = |copy: &Fragment| self.call.channels().get(set.member_of(copy.slot)?.drive());
        let waits_long = |copy: Fragment| channel_of(&copy).is_some_and(|channel| channel.before_read() >= LONG_QUEUE);
        let rotates = |copy: Fragment| channel_of(&copy).is_none_or(|channel| channel.info().rotational);
        // Sequential order saves seeks. A member that does not rotate has none, so a read never waits for another one.
        let spins = rule == MirrorRead::LeastPending && mirror.copies(at).all(rotates);
        let mut deep = None;
        let mut best: Option<(Rank, Fragment, Reason)> = None;
        for copy in mirror.copies(at).filter(set.copies_to_read(mirror, at, len)) {
            if rule == MirrorRead::Primary {
                return Some((copy, Reason::ReadPrimary));
            }
            let channel = channel_of(&copy)?;
            let goes_on = set.mirror_reads.at[copy.slot.index()] == copy.lba.get();
            if spins && !is_long && goes_on {
                return Some((copy, Reason::ReadSequential));
            }
            let may_be_deep = rule == MirrorRead::TwinStor && channel.info().rotational;
            let is_deep = may_be_deep && *deep.get_or_insert_with(|| mirror.copies(at).all(waits_long));
            let (rank, reason) = rank_of(rule, &set.mirror_reads, channel, &copy, is_deep);
            if best.is_none_or(|(least, _, _)| rank < least) {
                best = Some((rank, copy, reason));
            }
        }
        let (rank, copy, reason) = best?;
        // If the first copies are striped, a stream is spread already, and keeping it on one member would cost a seek
        // for each chunk.
        if rank.0 == SPINS && !mirror.has_far_copies() {
            let run = match rule {
                MirrorRead::TwinStor => self.go_on_with_run(op, mirror, at, left),
                MirrorRead::LeastPending if is_long => self.sets.section(op, mirror, at, left),
                MirrorRead::LeastPending if spins => {
                    self.sets.stay_with_run(self.call.channels(), op, mirror, (at, left), true)
                }
                _ => None,
            };
            return Some(run.unwrap_or((copy, reason)));
        }
        Some((copy, reason))
    }

    /// The `twinstor` rule for a read that continues a stream, or is long by itself.
    fn go_on_with_run(&self, op: &Op, mirror: &Mirror, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
        let set = self.sets.get(op.set);
        // A single read of at most one section is not split: the nearer head is better than taking turns.
        let is_single = left <= set.policy().split_section && set.mirror_reads.run_at(at).is_none();
        if is_single
            || self.sets.wanted_at_once(self.arrays, self.requests, op, at, left) <= set.policy().split_above.get()
        {
            return self.sets.stay_with_run(self.call.channels(), op, mirror, (at, left), false);
        }
        self.sets.section(op, mirror, at, left)
    }
}

/// The rank of a copy by a rule, and the reason to report. With long queues (`is_deep`) head positions do not count.
fn rank_of(rule: MirrorRead, heads: &MirrorReads, channel: &Channel, copy: &Fragment, is_deep: bool) -> (Rank, Reason) {
    let (at, before) = (copy.lba.get(), channel.before_read());
    match rule {
        MirrorRead::RoundRobin | MirrorRead::Primary => {
            ((SPINS, heads.turns[copy.slot.index()]), Reason::ReadRoundRobin)
        }
        MirrorRead::LeastPending => {
            // Among equals, the member that does not rotate.
            let waits = u64::from(before) * 2 + u64::from(channel.info().rotational);
            ((SPINS, waits), Reason::ReadLeastPending)
        }
        MirrorRead::NearestHead | MirrorRead::TwinStor if !channel.info().rotational => {
            ((FLASH, u64::from(before)), Reason::ReadLeastPending)
        }
        MirrorRead::NearestHead => ((SPINS, heads.distance(copy.slot, at)), Reason::ReadNearestHead),
        MirrorRead::TwinStor if is_deep => {
            ((SPINS, heads.behind_queue(copy.slot, at, before)), Reason::ReadNearestHead)
        }
        // Pending commands count first.
        MirrorRead::TwinStor => {
            let way = heads.distance(copy.slot, at).min(WAY_MAX);
            ((SPINS, u64::from(before) * (WAY_MAX + 1) + way), Reason::ReadNearestHead)
        }
    }
}

impl Set {
    /// May this copy of an extent be read? One on a write-mostly member only if no other copy can be.
    #[inline]
    fn copies_to_read(&self, mirror: &Mirror, at: SetLba, len: Sectors) -> impl Fn(&Fragment) -> bool + '_ {
        let readable = move |copy: &Fragment| self.readable(copy.lba, copy.lba + copy.len.min(len)).contains(copy.slot);
        let flagged = self.write_mostly();
        let other = |copy: Fragment| !flagged.contains(copy.slot) && readable(&copy);
        let avoided = if !flagged.is_empty() && mirror.copies(at).any(other) { flagged } else { SlotSet::EMPTY };
        move |copy| !avoided.contains(copy.slot) && readable(copy)
    }
}

/// The copy for all reads while copies may differ: the first readable one.
fn fixed_copy(set: &Set, mirror: &Mirror, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
    let first = mirror.copies(at).find_map(|copy| {
        let readable = set.readable(copy.lba, copy.lba + copy.len.min(left)).contains(copy.slot);
        if readable {
            Some(copy)
        } else {
            filled_part(set, copy)
        }
    });
    first.map(|copy| (copy, Reason::ReadFixedCopy))
}

/// The filled part of a copy. While copies may differ, a sector is always read from the same copy, whether the read
/// extends beyond that part or not.
fn filled_part(set: &Set, copy: Fragment) -> Option<Fragment> {
    let end = set.filled_to(copy.slot);
    let good = copy.lba < end && set.readable(copy.lba, end).contains(copy.slot);
    good.then(|| Fragment { len: end - copy.lba, ..copy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::Policy;

    fn tuning() -> Tuning {
        Tuning::of(&Policy::default(), openraid_units::Nanos::ZERO)
    }

    #[test]
    fn copies_take_turns_and_a_returning_one_gets_no_more_than_its_share() {
        let mut heads = MirrorReads::new(3, tuning());
        let among = SlotSet::first_n(3);
        let next = |heads: &MirrorReads| among.iter().min_by_key(|slot| (heads.turns[slot.index()], slot.0)).unwrap();
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
        let mut heads = MirrorReads::new(2, tuning());
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
        let mut heads = MirrorReads::new(2, tuning());
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
        let mut heads = MirrorReads::new(2, tuning());
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
        let mut heads = MirrorReads::new(2, tuning());
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
