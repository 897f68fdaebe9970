//! The choice of the copy of a mirror that is read: the rules of [`MirrorRule`], and the estimated head positions.
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

use openraid_units::{Sectors, SetId, SetLba, SECTOR_BYTES};

use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::geometry::shape::Side;
use crate::geometry::{Fragment, Mirror};
use crate::io::state::drive_queues::Channel;
use crate::io::state::drive_queues::Channels;
use crate::io::state::head_positions::ReadHeads;
use crate::io::state::op::Op;
use crate::io::steps::op_io::OpIo;
use crate::reason::Reason;
use crate::requests::Requests;
use crate::settings::MirrorRule;
use crate::slot_set::SlotSet;

/// Number of waiting commands for each copy from which the present position of a head does not predict its next one.
pub(in crate::io) const LONG_QUEUE: u32 = 4;

/// The rank of a copy: the lowest is best, and among equals the first.
type Rank = (u8, u64);
/// Members that do not rotate are preferred.
const FLASH: u8 = 0;
const SPINS: u8 = 1;
/// Maximum distance that counts, in sectors: a pebibyte.
const WAY_MAX: u64 = (1 << 41) - 1;

/// The part up to the end of its section, from the copy whose turn it is.
fn section_of(sets: &Sets, op: &Op, mirror: &Mirror, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
    let set = sets.get(op.set);
    let readable = copies_to_read((set, op.side()), mirror, at, left);
    let section = set.policy().split_section.get();
    let count = mirror.copies(at).filter(&readable).count() as u64;
    let turn = usize::try_from(at.get() / section % count.max(1)).expect("less than the copies");
    let mut copy = mirror.copies(at).filter(&readable).nth(turn)?;
    copy.len = copy.len.min(Sectors(section - at.get() % section));
    Some((copy, Reason::ReadSection))
}

/// The copy from which a stream was read before. The stream moves if another stream disturbs it there and another
/// copy is idle (with `alone`: and had no stream recently).
fn stay_with_run(
    (sets, heads): (&Sets, &ReadHeads),
    channels: &Channels,
    op: &Op,
    mirror: &Mirror,
    (at, left): (SetLba, Sectors),
    alone: bool,
) -> Option<(Fragment, Reason)> {
    let set = sets.get(op.set);
    let readable = copies_to_read((set, op.side()), mirror, at, left);
    let copy = mirror.copies(at).nth(usize::from(heads.run_at(at)?.copy))?;
    let disturbed = heads.at[copy.slot.index()] != copy.lba.get() && pending_of(sets, channels, op, &copy) > 0;
    let idle = |other: &Fragment| readable(other) && pending_of(sets, channels, op, other) == 0;
    let other = (0..)
        .zip(mirror.copies(at))
        .find(|(which, other)| disturbed && idle(other) && !(alone && heads.has_run(*which)));
    match other {
        Some((_, other)) => Some((other, Reason::ReadLeastPending)),
        None => readable(&copy).then_some((copy, Reason::ReadSequential)),
    }
}

/// The length that counts for splitting: the whole stream up to here. If streams do not count, the bytes that hosts
/// have requested at once, in one request or in the unfinished requests of the stream.
fn wanted_at_once(
    (set, heads): (&Set, &ReadHeads),
    cache: &Cache,
    requests: &Requests,
    op: &Op,
    at: SetLba,
    left: Sectors,
) -> u64 {
    if set.policy().split_streams {
        return at.get() + left.get() - heads.run_at(at).map_or(at.get(), |run| run.begun);
    }
    let Some(piece) = op.piece() else { return left.get() };
    let request = requests.of_piece(piece).asked();
    cache.streams_of(request.array).asked_at_once(at.get()).max(request.len / SECTOR_BYTES)
}

/// Number of pending commands of the member with this copy.
fn pending_of(sets: &Sets, channels: &Channels, op: &Op, copy: &Fragment) -> u32 {
    let member = sets.get(op.set).member_of(copy.slot);
    member.and_then(|member| channels.get(member.drive())).map_or(0, |channel| channel.pending())
}

impl OpIo<'_> {
    /// A copy was chosen: remember it. Only heads need streams and regions, so without rotating members nothing is
    /// recorded.
    pub(super) fn copy_chosen(
        &mut self,
        (id, side): (SetId, Side),
        at: SetLba,
        copy: &Fragment,
        len: Sectors,
        reason: Reason,
    ) {
        self.call.trace().note(self.sets, id, reason, copy.lba.get(), u32::from(copy.slot.0));
        let (set, heads) = (self.sets.get(id), self.ops.heads_mut(id));
        let mirror = set.shape().mirror(side);
        match set.tuning().mirror_read {
            MirrorRule::RoundRobin => {
                heads.take_turn(copy.slot, mirror.copies(at).map(|copy| copy.slot).collect());
            }
            MirrorRule::TwinStor | MirrorRule::LeastPending if !set.is_flash() => {
                let same = |other: &Fragment| (other.slot, other.lba) == (copy.slot, copy.lba);
                let which = (0..).zip(mirror.copies(at)).find(|(_, other)| same(other));
                heads.went_on(at, len, which.map_or(0, |(which, _)| which));
                heads.parts[copy.slot.index()].take(copy.lba.get());
            }
            MirrorRule::TwinStor | MirrorRule::LeastPending | MirrorRule::Primary | MirrorRule::NearestHead => {}
        }
        heads.moved(copy.slot, (copy.lba + len).get());
    }

    /// The copy from which the data at `at` is read, and the length; `None` if no member has it.
    #[inline(always)]
    pub(crate) fn choose_copy(
        &self,
        op: &Op,
        mirror: &Mirror,
        at: SetLba,
        left: Sectors,
    ) -> Option<(Fragment, Reason)> {
        let (set, heads) = (self.sets.get(op.set), self.ops.heads(op.set));
        let len = mirror.copy_len(at).min(left);
        if !set.is_consistent(op.side(), at.get(), (at + len).get()) {
            return fixed_copy((set, op.side()), mirror, at, left);
        }
        let rule = set.tuning().mirror_read;
        let parts = rule == MirrorRule::LeastPending && !set.policy().split_streams;
        let is_long = parts
            && wanted_at_once((set, heads), self.cache, self.requests, op, at, left) > set.policy().split_above.get();
        let channel_of = |copy: &Fragment| self.call.channels().get(set.member_of(copy.slot)?.drive());
        let waits_long = |copy: Fragment| channel_of(&copy).is_some_and(|channel| channel.before_read() >= LONG_QUEUE);
        let rotates = |copy: Fragment| channel_of(&copy).is_none_or(|channel| channel.info().rotational);
        // Sequential order saves seeks. A member that does not rotate has none, so a read never waits for another one.
        let spins = rule == MirrorRule::LeastPending && mirror.copies(at).all(rotates);
        let mut deep = None;
        let mut best: Option<(Rank, Fragment, Reason)> = None;
        for copy in mirror.copies(at).filter(copies_to_read((set, op.side()), mirror, at, len)) {
            if rule == MirrorRule::Primary {
                return Some((copy, Reason::ReadPrimary));
            }
            let channel = channel_of(&copy)?;
            let goes_on = heads.at[copy.slot.index()] == copy.lba.get();
            if spins && !is_long && goes_on {
                return Some((copy, Reason::ReadSequential));
            }
            let may_be_deep = rule == MirrorRule::TwinStor && channel.info().rotational;
            let is_deep = may_be_deep && *deep.get_or_insert_with(|| mirror.copies(at).all(waits_long));
            let (rank, reason) = rank_of(rule, heads, channel, &copy, is_deep);
            if best.is_none_or(|(least, _, _)| rank < least) {
                best = Some((rank, copy, reason));
            }
        }
        let (rank, copy, reason) = best?;
        // If the first copies are striped, a stream is spread already, and keeping it on one member would cost a seek
        // for each chunk.
        if rank.0 == SPINS && !mirror.has_far_copies() {
            let run = match rule {
                MirrorRule::TwinStor => self.go_on_with_run(op, mirror, at, left),
                MirrorRule::LeastPending if is_long => section_of(self.sets, op, mirror, at, left),
                MirrorRule::LeastPending if spins => {
                    stay_with_run((self.sets, heads), self.call.channels(), op, mirror, (at, left), true)
                }
                _ => None,
            };
            return Some(run.unwrap_or((copy, reason)));
        }
        Some((copy, reason))
    }

    /// The `twinstor` rule for a read that continues a stream, or is long by itself.
    fn go_on_with_run(&self, op: &Op, mirror: &Mirror, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
        let (set, heads) = (self.sets.get(op.set), self.ops.heads(op.set));
        // A single read of at most one section is not split: the nearer head is better than taking turns.
        let is_single = left <= set.policy().split_section && heads.run_at(at).is_none();
        if is_single
            || wanted_at_once((set, heads), self.cache, self.requests, op, at, left) <= set.policy().split_above.get()
        {
            return stay_with_run((self.sets, heads), self.call.channels(), op, mirror, (at, left), false);
        }
        section_of(self.sets, op, mirror, at, left)
    }
}

/// The rank of a copy by a rule, and the reason to report. With long queues (`is_deep`) head positions do not count.
fn rank_of(rule: MirrorRule, heads: &ReadHeads, channel: &Channel, copy: &Fragment, is_deep: bool) -> (Rank, Reason) {
    let (at, before) = (copy.lba.get(), channel.before_read());
    match rule {
        MirrorRule::RoundRobin | MirrorRule::Primary => {
            ((SPINS, heads.turns[copy.slot.index()]), Reason::ReadRoundRobin)
        }
        MirrorRule::LeastPending => {
            // Among equals, the member that does not rotate.
            let waits = u64::from(before) * 2 + u64::from(channel.info().rotational);
            ((SPINS, waits), Reason::ReadLeastPending)
        }
        MirrorRule::NearestHead | MirrorRule::TwinStor if !channel.info().rotational => {
            ((FLASH, u64::from(before)), Reason::ReadLeastPending)
        }
        MirrorRule::NearestHead => ((SPINS, heads.distance(copy.slot, at)), Reason::ReadNearestHead),
        MirrorRule::TwinStor if is_deep => {
            ((SPINS, heads.behind_queue(copy.slot, at, before)), Reason::ReadNearestHead)
        }
        // Pending commands count first.
        MirrorRule::TwinStor => {
            let way = heads.distance(copy.slot, at).min(WAY_MAX);
            ((SPINS, u64::from(before) * (WAY_MAX + 1) + way), Reason::ReadNearestHead)
        }
    }
}

/// May this copy of an extent be read? One on a write-mostly member only if no other copy can be.
#[inline]
fn copies_to_read<'a>(
    (set, side): (&'a Set, Side),
    mirror: &Mirror,
    at: SetLba,
    len: Sectors,
) -> impl Fn(&Fragment) -> bool + 'a {
    let readable =
        move |copy: &Fragment| set.readable(side, copy.lba, copy.lba + copy.len.min(len)).contains(copy.slot);
    let flagged = set.write_mostly();
    let other = |copy: Fragment| !flagged.contains(copy.slot) && readable(&copy);
    let avoided = if !flagged.is_empty() && mirror.copies(at).any(other) { flagged } else { SlotSet::EMPTY };
    move |copy| !avoided.contains(copy.slot) && readable(copy)
}

/// The copy for all reads while copies may differ: the first readable one.
fn fixed_copy((set, side): (&Set, Side), mirror: &Mirror, at: SetLba, left: Sectors) -> Option<(Fragment, Reason)> {
    let first = mirror.copies(at).find_map(|copy| {
        let readable = set.readable(side, copy.lba, copy.lba + copy.len.min(left)).contains(copy.slot);
        if readable {
            Some(copy)
        } else {
            filled_part((set, side), copy)
        }
    });
    first.map(|copy| (copy, Reason::ReadFixedCopy))
}

/// The filled part of a copy. While copies may differ, a sector is always read from the same copy, whether the read
/// extends beyond that part or not.
fn filled_part((set, side): (&Set, Side), copy: Fragment) -> Option<Fragment> {
    let end = set.filled_to(copy.slot);
    let good = copy.lba < end && set.readable(side, copy.lba, end).contains(copy.slot);
    good.then(|| Fragment { len: end - copy.lba, ..copy })
}
