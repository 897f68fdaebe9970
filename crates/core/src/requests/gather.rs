//! Gathering: adjoining writes of several requests become one write of a stripe.
//!
//! ```text
//!   request 1     2     3     4     5            pieces of a stream: each adjoins one that is in work
//!  |-----|-----|-----|-----|-----|
//!  |----- stripe 0 --------|- stripe 1 ...       parts: gathered by stripe
//!        one operation         held: work of the stream is under way, and more may follow
//! ```
//!
//! A write that covers its stripe only in part costs reads. If writes of other requests adjoin it, its part of the stripe
//! is held in a *gather*, and the parts go to the members as one operation, which copies them into its work frames. The
//! engine knows of adjoining writes from the pieces that it has: a *stream* begins when a piece follows one of another
//! request, and lasts as long as it has pieces in work, whichever of them ends first. A write that adjoins none is never
//! held, so a host that waits for each answer does not wait longer.
//!
//! A gather is held while other work of its stream, begun before its last part, is under way: the answers bring the
//! writes that complete the stripe. Without such work it goes at once if the host has as many pieces in work as it ever
//! had, and otherwise after [`GATHER_DELAY`]. A gather holds no range and no frames of operations, so nothing
//! waits for it that it waits for.
//!
//! A gathered operation that fails tells nothing about its parts: each of its pieces is written again by itself.

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_units::{ArrayId, Instant, PoolOffset, Sectors, SetId, SetLba};

use super::Requests;
use crate::actions::{ReplyStatus, JOBS_SLACK};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::events::RequestKind;
use crate::geometry::cache_units::unit_sectors;
use crate::geometry::{Geometry, Split};
use crate::io::state::footprint::{narrow, Columns, StripeRows};
use crate::io::state::op::{HostRange, Op, OpPayload};
use crate::io::state::search::Part;
use crate::limits::{Limits, GATHER_DELAY, MEMBERS_MAX};
use crate::settings::WriteCache;
use crate::slab::{Queue, Slab, NONE};

/// Maximum number of streams. Writes of further ones are not gathered.
const STREAMS_MAX: u8 = 64;
/// Maximum number of stripes that are gathered, held or in work. Parts of further ones are written by themselves.
const GATHERS_MAX: u32 = 256;
/// Number of bits of the place of an end.
const END_BITS: u32 = 8;
/// Number of ends of pieces that are remembered: a small table stays in the processor's caches.
const ENDS_MAX: usize = 1 << END_BITS;
/// Maximum number of parts of a gather. A gather with this number of parts is not held any longer.
const PARTS_MAX: u32 = 256;
const _: () = assert!(PARTS_MAX as usize + MEMBERS_MAX as usize <= JOBS_SLACK, "an operation copies all parts at once");

/// The writes that adjoin each other, and the parts of stripes that wait for more of them.
#[derive(Debug)]
pub(super) struct Gathers {
    /// The last piece that ends at a sector, by a hash of the sector. A newer piece displaces an older one.
    ends: Box<[End; ENDS_MAX]>,
    streams: Slab<Stream>,
    /// The state of each piece that is in a stream, by the number of the piece.
    members: Box<[Member]>,
    table: Slab<Gather>,
    parts: Slab<GatheredPart>,
    /// Gathers that are held, in the order in which they began.
    held: Vec<u32>,
    /// Gathers that are not held any longer and need operations.
    ready: Queue,
    /// Has a stream changed since the gathers that are held were examined, or does a gather need operations?
    wakes: bool,
    /// The time at which the gathers that are held must be examined again if no stream changes.
    due: Instant,
}

/// The sector after the last one of a piece.
#[derive(Clone, Copy, Debug)]
struct End {
    sector: Sectors,
    piece: u32,
}

/// Pieces in work of which each adjoins another one.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Its array, and the sector after the last one of its last piece.
    array: ArrayId,
    end: Sectors,
    /// Number of pieces, and the largest number so far.
    pieces: u32,
    most: u32,
    /// Pieces whose payload has not arrived.
    arriving: u32,
    /// Pieces that rest: all their work is held.
    resting: u32,
    /// Number of pieces that have ended.
    ended: u64,
}

/// What only a piece in a stream has.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The number of its parts that are held.
    held: u16,
    /// Is all its work held?
    rests: bool,
    company: Company,
}

/// May the parts of a piece be gathered?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Company {
    /// With those of other pieces.
    Others,
    /// A gathered write of it failed: it is written again by itself when all its operations have ended.
    NoneDue,
    /// It is written by itself.
    None,
}

impl Member {
    const NEW: Self = Self { held: 0, rests: false, company: Company::Others };
}

/// The parts of one stripe that were gathered.
#[derive(Clone, Debug)]
pub(crate) struct Gather {
    stream: u8,
    set: SetId,
    /// The first sector of the stripe.
    stripe: SetLba,
    is_fua: bool,
    /// Its parts, in order of address.
    first: u32,
    last: u32,
    count: u32,
    covered: Sectors,
    state: GatherState,
    has_failed: bool,
}

#[derive(Clone, Debug)]
enum GatherState {
    /// Until this number of pieces of the stream has ended; and the time until which it is held after that. Neither is
    /// known until the gather is examined.
    Held { until: Option<u64>, due: Option<Instant> },
    /// Its operations are made: the first part of the run in work, the rest of the run, the operations in work.
    Making { run: u32, left: Option<Split>, ops: u32 },
    /// All operations are made; this number is in work.
    Working { ops: u32 },
}

/// A part of a stripe, from one piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatheredPart {
    piece: u32,
    /// Its sectors in the set, and its bytes in the pool.
    at: SetLba,
    len: Sectors,
    from: PoolOffset,
    next: u32,
}

impl GatheredPart {
    /// The first sector.
    pub(crate) const fn at(&self) -> SetLba {
        self.at
    }

    /// The sector after the last one.
    pub(crate) fn end(&self) -> SetLba {
        self.at + self.len
    }

    /// The place of its bytes in the pool.
    pub(crate) const fn from(&self) -> PoolOffset {
        self.from
    }
}

impl Gathers {
    pub(super) fn new(limits: &Limits) -> Self {
        // No piece ends at sector 0.
        let none = End { sector: Sectors::ZERO, piece: NONE };
        Self {
            ends: Box::new([none; ENDS_MAX]),
            streams: Slab::new(STREAMS_MAX.into()),
            members: alloc::vec![Member::NEW; limits.pieces_max as usize].into(),
            table: Slab::new(GATHERS_MAX),
            parts: Slab::new(limits.pieces_max * 2),
            held: Vec::with_capacity(GATHERS_MAX as usize),
            ready: Queue::new(GATHERS_MAX),
            wakes: false,
            due: Instant::NEVER,
        }
    }

    /// The place of a sector in the table of ends.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // the highest bits
    fn end_at(sector: Sectors) -> usize {
        (sector.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - END_BITS)) as usize
    }

    /// A stream.
    fn stream(&mut self, stream: u8) -> &mut Stream {
        &mut self.streams[stream.into()]
    }

    /// The stream that has come to this sector of an array. Its last piece may be over before the others.
    fn stream_to(&self, array: ArrayId, end: Sectors) -> Option<u8> {
        if self.streams.len() == 0 {
            return None;
        }
        let (index, _) = self.streams.iter().find(|(_, stream)| stream.end == end && stream.array == array)?;
        Some(u8::try_from(index).expect("a place of a stream"))
    }

    /// The state of a piece in a stream.
    fn member(&mut self, piece: u32) -> &mut Member {
        &mut self.members[piece as usize]
    }

    /// The parts of a gather, in order of address.
    fn parts_of(&self, first: u32) -> impl Iterator<Item = &GatheredPart> {
        let mut at = first;
        core::iter::from_fn(move || {
            if at == NONE {
                return None;
            }
            let part = &self.parts[at];
            at = part.next;
            Some(part)
        })
    }

    /// Put a part into a gather, in its place by address; false if it overlaps another part.
    fn insert(&mut self, number: u32, part: GatheredPart) -> bool {
        let gather = &self.table[number];
        let (mut before, mut after) = (gather.last, NONE);
        if before != NONE && self.parts[before].end() > part.at {
            (before, after) = (NONE, gather.first);
            while after != NONE && self.parts[after].at < part.at {
                (before, after) = (after, self.parts[after].next);
            }
            let overlaps = before != NONE && self.parts[before].end() > part.at;
            if overlaps || (after != NONE && part.end() > self.parts[after].at) {
                return false;
            }
        }
        let index = self.parts.put(GatheredPart { next: after, ..part }).index;
        if before != NONE {
            self.parts[before].next = index;
        }
        let gather = &mut self.table[number];
        if before == NONE {
            gather.first = index;
        }
        if after == NONE {
            gather.last = index;
        }
        gather.count += 1;
        gather.covered += part.len;
        true
    }

    /// Has a gather all of its stripe, or as many parts as it may have?
    fn is_full(&self, index: u32, sets: &Sets) -> bool {
        let gather = &self.table[index];
        gather.covered == unit_sectors(sets.get(gather.set).shape(), gather.stripe) || gather.count >= PARTS_MAX
    }

    /// Is a gather held further, although it is not full?
    fn holds_on(&mut self, index: u32, now: Instant) -> bool {
        let gather = &mut self.table[index];
        let stream = &self.streams[gather.stream.into()];
        let GatherState::Held { until, due } = &mut gather.state else { unreachable!("asked for one that is held") };
        let at_work = stream.pieces.saturating_sub(stream.resting + stream.arriving);
        if at_work > 0 && stream.ended < *until.get_or_insert(stream.ended + u64::from(at_work)) {
            *due = None;
            return true;
        }
        let is_more_likely = stream.pieces < stream.most || stream.arriving > 0;
        let due = *due.get_or_insert(now + GATHER_DELAY);
        let holds = is_more_likely && now < due;
        if holds {
            self.due = self.due.min(due);
        } else {
            // The host had the time for more, or has none.
            self.streams[gather.stream.into()].most = stream.pieces;
        }
        holds
    }

    /// The gather that is held for this stripe and may have one more part.
    fn held_for(&self, stream: u8, set: SetId, stripe: SetLba, is_fua: bool) -> Option<u32> {
        let is_it = |index: &u32| {
            let gather = &self.table[*index];
            let is_of_stream = gather.stream == stream && gather.is_fua == is_fua && gather.count < PARTS_MAX;
            is_of_stream && gather.stripe == stripe && gather.set == set
        };
        self.held.iter().rev().copied().find(is_it)
    }

    /// The run of adjoining parts from this one on: its end, the number of parts, and the part after it.
    fn run(&self, first: u32) -> (SetLba, u32, u32) {
        let (mut end, mut count, mut next) = (self.parts[first].end(), 1, self.parts[first].next);
        while next != NONE && self.parts[next].at == end {
            (end, count, next) = (self.parts[next].end(), count + 1, self.parts[next].next);
        }
        (end, count, next)
    }
}

/// May writes of a set be gathered? A cache gathers by itself. A partial parity log keeps both contents of a block whose
/// write was cut only if the write has one column: gathered writes of several columns would lose that.
fn may_gather(set: &Set) -> bool {
    set.write_cache() == WriteCache::Through
        && !set.journal.has_session()
        && set.ppl.is_none()
        && !set.shape().is_changing()
}

impl Requests {
    /// A piece of a write with payload begins: does it follow a piece in work? Then both are of one stream.
    #[inline(always)]
    pub(super) fn note_end(&mut self, index: u32, (first, last): (Sectors, Sectors), arrays: &Arrays) {
        let ends = &mut self.gathers.ends;
        let before = ends[Gathers::end_at(first)];
        ends[Gathers::end_at(last)] = End { sector: last, piece: index };
        if before.sector == first {
            self.join_stream(index, before.piece, arrays);
        }
    }

    /// A piece begins where another one ended, which may be over.
    #[cold]
    fn join_stream(&mut self, index: u32, before: u32, arrays: &Arrays) {
        let array = self.of_piece(index).array();
        if !arrays.get(array).gathers() || !self.pieces[index].is_whole_blocks() {
            return;
        }
        let first = self.pieces[index].range().0;
        let Some(stream) = self.stream_before(index, before).or_else(|| self.gathers.stream_to(array, first)) else {
            return;
        };
        self.enter_stream(index, stream);
    }

    /// The stream of the piece that this one follows, if that is in work. It is new if that piece is in none.
    fn stream_before(&mut self, index: u32, other: u32) -> Option<u8> {
        let (array, first) = (self.of_piece(index).array(), self.pieces[index].range().0);
        // The place may have another piece by now.
        let piece = self.pieces.find(other).filter(|piece| piece.range().1 == first)?;
        let request = &self.table[piece.request()];
        if request.array() != array || !matches!(request.kind(), RequestKind::Write { .. }) {
            return None;
        }
        // A request that is alone in the engine is not held for its own pieces.
        let begins = piece.is_whole_blocks() && piece.request() != self.pieces[index].request();
        if piece.stream().is_some() || !begins || self.gathers.streams.room() == 0 {
            return piece.stream();
        }
        let end = piece.range().1;
        let new = Stream { array, end, pieces: 0, most: 0, arriving: 0, resting: 0, ended: 0 };
        let stream = u8::try_from(self.gathers.streams.put(new).index).expect("a place of a stream");
        self.enter_stream(other, stream);
        Some(stream)
    }

    /// A piece is in a stream from now on.
    fn enter_stream(&mut self, index: u32, stream: u8) {
        let piece = &mut self.pieces[index];
        piece.enter_stream(stream);
        let (end, is_arriving) = (piece.range().1, piece.is_receiving());
        *self.gathers.member(index) = Member::NEW;
        let stream = self.gathers.stream(stream);
        stream.end = end;
        stream.pieces += 1;
        stream.most = stream.most.max(stream.pieces);
        stream.arriving += u32::from(is_arriving);
    }

    /// The payload of a piece of this stream has arrived.
    #[cold]
    pub(super) fn stream_received(&mut self, stream: u8) {
        self.gathers.stream(stream).arriving -= 1;
        self.gathers.wakes = true;
    }

    /// A piece of a stream is removed. `is_arriving`: its payload never came.
    #[cold]
    pub(super) fn leave_stream(&mut self, number: u8, is_arriving: bool) {
        let stream = self.gathers.stream(number);
        stream.pieces -= 1;
        stream.arriving -= u32::from(is_arriving);
        stream.ended += 1;
        let is_over = stream.pieces == 0;
        if is_over {
            self.gathers.streams.free(number.into());
        }
        self.gathers.wakes = true;
    }

    /// The part of a piece of a stream that goes to the members by itself, of `len` sectors from `at`: whole stripes, or
    /// a part that cannot be gathered. `None` if the next part was gathered.
    pub(crate) fn gather(&mut self, index: u32, set: &Set, id: SetId, (at, len): (SetLba, Sectors)) -> Option<Sectors> {
        let Geometry::Parity(parity) = set.shape().at(at).geometry() else { return Some(len) };
        let Some(stream) = self.pieces[index].stream() else { return Some(len) };
        let full = parity.full_stripe();
        let into = Sectors(at.get()) % full;
        if into.is_zero() && len >= full {
            return Some(len.round_down(full));
        }
        let len = len.min(full - into);
        if !may_gather(set) || self.gathers.member(index).company == Company::None {
            return Some(len);
        }
        let part = GatheredPart { piece: index, at, len, from: self.payload_of(index), next: NONE };
        let is_fua = self.of_piece(index).is_fua_write();
        if !self.put_part(stream, id, SetLba(at.get() - into.get()), is_fua, part) {
            return Some(len);
        }
        self.pieces[index].begin_op();
        self.pieces[index].split_off(len);
        self.note_rest(index);
        None
    }

    /// Operations of a piece of a stream were made, held or let go, or have ended: does it rest now?
    fn note_rest(&mut self, index: u32) {
        let piece = &self.pieces[index];
        let stream = piece.stream().expect("asked for a piece of a stream");
        let member = self.gathers.member(index);
        let rests = member.held > 0 && piece.ops() == u32::from(member.held) && piece.is_split();
        if core::mem::replace(&mut member.rests, rests) != rests {
            let stream = self.gathers.stream(stream);
            stream.resting = if rests { stream.resting + 1 } else { stream.resting - 1 };
            self.gathers.wakes = true;
        }
    }

    /// An operation of a piece of a stream has ended. If it was the last one, and a gathered write of the piece failed,
    /// the piece begins again from its first sector, by itself.
    #[cold]
    pub(super) fn stream_op_ended(&mut self, index: u32) {
        let (piece, member) = (&mut self.pieces[index], self.gathers.member(index));
        let begins = member.company == Company::NoneDue && !piece.has_ops() && !piece.is_by_rows();
        if begins && !piece.has_failed() {
            member.company = Company::None;
            piece.begin_again();
            if !piece.is_queued() {
                self.want_ops(index);
            }
        }
        self.note_rest(index);
    }

    /// The place of the bytes of a piece that have no operation yet.
    fn payload_of(&self, index: u32) -> PoolOffset {
        let piece = &self.pieces[index];
        piece.frames_at() + piece.split().bytes()
    }

    /// Put a part into the gather of its stripe; false if it cannot be gathered.
    fn put_part(&mut self, stream: u8, set: SetId, stripe: SetLba, is_fua: bool, part: GatheredPart) -> bool {
        let gathers = &mut self.gathers;
        if gathers.parts.room() == 0 {
            return false;
        }
        let gather = match gathers.held_for(stream, set, stripe, is_fua) {
            Some(gather) => gather,
            None if gathers.table.room() == 0 => return false,
            None => {
                let state = GatherState::Held { until: None, due: None };
                let (first, last, count, covered, has_failed) = (NONE, NONE, 0, Sectors::ZERO, false);
                let new = Gather { stream, set, stripe, is_fua, first, last, count, covered, state, has_failed };
                let index = gathers.table.put(new).index;
                gathers.held.push(index);
                index
            }
        };
        if !gathers.insert(gather, part) {
            return false;
        }
        gathers.member(part.piece).held += 1;
        gathers.table[gather].state = GatherState::Held { until: None, due: None };
        gathers.wakes = true;
        true
    }

    /// Examine the gathers that are held: which of them go now? Full ones are first, because their pieces are work for
    /// which the others are held.
    pub(crate) fn release_gathers(&mut self, sets: &Sets, now: Instant) {
        (self.gathers.wakes, self.gathers.due) = (false, Instant::NEVER);
        for is_for_full in [true, false] {
            let mut place = 0;
            while let Some(index) = self.gathers.held.get(place).copied() {
                let goes =
                    if is_for_full { self.gathers.is_full(index, sets) } else { !self.gathers.holds_on(index, now) };
                if goes {
                    self.gathers.held.remove(place);
                    self.let_go(index);
                } else {
                    place += 1;
                }
            }
        }
    }

    /// A gather is not held any longer.
    fn let_go(&mut self, index: u32) {
        let first = self.gathers.table[index].first;
        let mut at = first;
        while at != NONE {
            let part = self.gathers.parts[at];
            self.gathers.member(part.piece).held -= 1;
            self.note_rest(part.piece);
            at = part.next;
        }
        self.gathers.table[index].state = GatherState::Making { run: first, left: None, ops: 0 };
        self.gathers.ready.push(index);
        self.gathers.wakes = true;
    }

    /// Are writes of this set gathered now?
    pub(super) fn has_gathers_of(&self, set: SetId) -> bool {
        self.gathers.table.iter().any(|(_, gather)| gather.set == set)
    }

    /// Can gathers go, or need they operations?
    #[inline(always)]
    pub(crate) const fn may_gathers_move(&self) -> bool {
        self.gathers.wakes
    }

    /// It is this time now: can gathers go?
    #[inline(always)]
    pub(crate) fn note_gather_time(&mut self, now: Instant) {
        if now >= self.gathers.due {
            self.gathers.wakes = true;
        }
    }

    /// The time at which a gather that is held goes, if nothing happens before. Pieces that find no room for operations
    /// come first, and have no time.
    pub(crate) fn gather_deadline(&self) -> Option<Instant> {
        let has_time = self.gathers.due != Instant::NEVER && !self.gathers.wakes;
        (has_time && self.queues.splitting().is_empty()).then_some(self.gathers.due)
    }

    /// The parts of a gather, in order of address.
    pub(crate) fn gathered_parts(&self, gather: u32) -> impl Iterator<Item = &GatheredPart> {
        self.gathers.parts_of(self.gathers.table[gather].first)
    }

    /// The request of its first part.
    pub(crate) fn first_of_gather(&self, gather: u32) -> u64 {
        let part = &self.gathers.parts[self.gathers.table[gather].first];
        self.of_piece(part.piece).number()
    }

    /// The next operation of the first gather that needs one.
    pub(crate) fn next_gathered_op(&mut self, sets: &Sets) -> Op {
        let index = self.gathers.ready.front().expect("a gather needs one");
        let gather = &self.gathers.table[index];
        let (id, is_fua) = (gather.set, gather.is_fua);
        let GatherState::Making { run, ref left, ops } = gather.state else { unreachable!("it needs operations") };
        let set = sets.get(id);
        let (first, (end, count, next)) = (self.gathers.parts[run], self.gathers.run(run));
        let side = set.shape().at(first.at).side();
        let parity = set.shape().parity(side);
        let new = || parity.split(first.at, Sectors(end.get() - first.at.get()), Sectors(set.rows_max().into()));
        let mut left = left.clone().unwrap_or_else(new);
        let segment = left.next().expect("a run that is over has no rest");
        let is_over = left.is_over();
        let ops = ops + u32::from(count > 1);
        self.gathers.table[index].state = if is_over && next == NONE {
            GatherState::Working { ops }
        } else if is_over {
            GatherState::Making { run: next, left: None, ops }
        } else {
            GatherState::Making { run, left: Some(left), ops }
        };
        let part = Part::whole(narrow(segment.lo), narrow(segment.hi));
        let (first_column, columns) = (segment.first_column, segment.columns);
        if count > 1 {
            let row = parity.row(segment.stripe);
            let band = (first_column..first_column + columns).map(|column| row.slot_of(column)).collect();
            let columns = Columns::Gathered { first: first_column, band };
            return Op::gathered(id, StripeRows::new(side, segment.stripe, part, columns), is_fua, index);
        }
        let payload = OpPayload::Host(first.from + (segment.set_lba - first.at).bytes());
        let columns = Columns::Named { first: first_column, count: columns };
        let range = HostRange::Rows(StripeRows::new(side, segment.stripe, part, columns));
        self.pieces[first.piece].begin_op();
        Op::write(id, range, payload, None).for_piece(first.piece, false, is_fua)
    }

    /// Does no gather need operations?
    pub(crate) fn is_no_gather_ready(&self) -> bool {
        self.gathers.ready.is_empty()
    }

    /// All operations of the first gather that needs some were made.
    pub(crate) fn end_first_gather(&mut self) {
        self.gathers.ready.pop();
    }

    /// The set and the stripe of a gather, and the number of its parts.
    pub(crate) fn place_of_gather(&self, gather: u32) -> (SetId, u64, u32) {
        let gather = &self.gathers.table[gather];
        (gather.set, gather.stripe.get(), gather.count)
    }

    /// Has an operation of a gather failed?
    pub(crate) fn has_gather_failed(&self, gather: u32) -> bool {
        self.gathers.table[gather].has_failed
    }

    /// The first gather that needs operations has all of them now.
    pub(crate) fn gather_made(&self) -> Option<u32> {
        let index = self.gathers.ready.front()?;
        matches!(self.gathers.table[index].state, GatherState::Working { .. }).then_some(index)
    }

    /// An operation of a gather has ended.
    pub(crate) fn gathered_op_ended(&mut self, index: u32, error: Option<ReplyStatus>) {
        let gather = &mut self.gathers.table[index];
        gather.has_failed |= error.is_some();
        let (GatherState::Making { ops, .. } | GatherState::Working { ops }) = &mut gather.state else {
            unreachable!("a gather that is held has no operations")
        };
        *ops -= 1;
    }

    /// Have all operations of a gather ended?
    pub(crate) fn is_gather_over(&self, index: u32) -> bool {
        matches!(self.gathers.table[index].state, GatherState::Working { ops: 0 })
    }

    /// Take the first part of a gather that is over. Returns its piece, which is written alone if the gather has failed.
    /// After the last part, the gather is gone.
    pub(crate) fn take_part(&mut self, index: u32) -> Option<u32> {
        let gather = &mut self.gathers.table[index];
        if gather.first == NONE {
            self.gathers.table.free(index);
            return None;
        }
        let part = self.gathers.parts.remove(gather.first);
        gather.first = part.next;
        if gather.has_failed {
            self.gathers.member(part.piece).company = Company::NoneDue;
        }
        Some(part.piece)
    }
}
