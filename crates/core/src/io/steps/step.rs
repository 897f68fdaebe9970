//! Advancing an operation: the dispatch by kind and phase, the range, the edges, the end.

use openraid_units::{Bytes, Sectors, Tag};

use crate::actions::ReplyStatus;
use crate::array::sets::Sets;
use crate::background::pump_set::on_background_done;
use crate::cache::Cache;
use crate::events::ParityVerdict;
use crate::frames::Pool;
use crate::geometry::cache_units::unit_number;
use crate::io::state::ended::{EndedFor, OpReport};
use crate::io::state::footprint::{narrow, Columns, Extent, Footprint, StripeRows};
use crate::io::state::gate_marks::end_write;
use crate::io::state::op::{
    EdgeReads, Edges, HostRange, KindData, Op, OpKind, OpPayload, Outcome, Phase, WorkFrames, WorksFor,
};
use crate::io::state::op_names::{is_traced, op_name, work_of};
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::io::state::wait::Wait;
use crate::io::steps::forgotten_waits::wake_for_room;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::redo_op::on_redone;
use crate::io::steps::reparity_op::on_reparity_done;
use crate::limits::FRAME_BYTES;
use crate::ppl::write_log::end_record;
use crate::reason::Reason;
use crate::request_steps::{StepEvent, StepOwner, StepPlace, StepSubject};
use crate::requests::Requests;
use crate::trace::Trace;

fn is_one_block(sets: &Sets, op: &Op) -> bool {
    let block = sets.get(op.set).block().sectors();
    match &op.footprint {
        Footprint::Rows(rows) => {
            let (lo, hi) = rows.part.range();
            rows.named().1 == 1 && Sectors(u64::from(hi - lo)) == block
        }
        _ => op.extent().len == block,
    }
}

fn on_child_done(ops: &mut Ops, index: u32, child: &Op) {
    let parent = &mut ops[index];
    if let Some(error) = child.error().filter(|_| !parent.has_failed()) {
        parent.fail(error);
    }
    parent.frames_abandoned |= child.frames_abandoned && child.has_failed();
    parent.pending -= 1;
    if parent.pending == 0 {
        ops.wake(index);
    }
}

/// Record the step of a new operation.
#[inline(always)]
fn trace_made(ops: &mut Ops, by: (&Sets, &Requests, &Cache), trace: &mut Trace, index: u32) {
    if trace.steps().is_on() && is_traced(ops, index) {
        trace_op_made(ops, by, trace, index);
    }
}

#[cold]
fn trace_op_made(ops: &mut Ops, (sets, requests, cache): (&Sets, &Requests, &Cache), trace: &mut Trace, index: u32) {
    let op = ops[index];
    let owner = match op.works_for {
        WorksFor::Op(parent) | WorksFor::Move(parent) => StepOwner::Op(op_name(ops, parent)),
        WorksFor::Set => {
            let data = op.destage();
            let start = cache.start_of_unit(data.unit);
            StepOwner::Unit(unit_number(sets.get(op.set).shape(), start), data.why)
        }
        WorksFor::Request(request) => StepOwner::Request(requests.get(request).number()),
        WorksFor::Gather(gather) => StepOwner::Request(requests.first_of_gather(gather)),
        WorksFor::Piece(piece) | WorksFor::Ahead(piece) => StepOwner::Request(requests.of_piece(piece).number()),
    };
    let Some(work) = work_of(&op) else { return };
    let place = match &op.footprint {
        Footprint::Set => StepPlace::Whole,
        Footprint::Rows(rows) => {
            let (lo, hi) = rows.part.range();
            StepPlace::Rows { stripe: rows.stripe, lo, hi, columns: rows.named() }
        }
        Footprint::Extent(extent) => StepPlace::Extent { at: extent.at, len: extent.len },
        Footprint::Stretch(stretch) => StepPlace::Extent { at: stretch.at, len: stretch.whole().len },
        Footprint::Member(_) => return,
    };
    let name = op_name(ops, index);
    trace.step(StepSubject::Op(name), StepEvent::Made { owner, set: op.set, work, place });
}

/// A job ended.
pub(crate) fn on_job(ops: &mut Ops, trace: &mut Trace, tag: Tag, verdict: ParityVerdict) {
    let key = crate::slab::Key { index: tag.index(), generation: tag.generation() };
    assert!(ops.holds(key), "a completion names a job that is out: {tag:?}");
    let op = &mut ops[key.index];
    op.verdict = verdict;
    op.pending -= 1;
    let computing = matches!(op.phase, Phase::Computing(_));
    // An operation that also waits for the journal continues after that.
    let through = op.pending == 0;
    if through && !op.entry.waits() {
        ops.wake(key.index);
    }
    if through && computing {
        trace.op(ops, key.index, || StepEvent::Computed);
    }
}

pub(crate) fn release_work(ops: &mut Ops, pool: &mut Pool, index: u32) {
    if let Some(run) = ops[index].give_back_work() {
        pool.work_mut().release(run);
        ops.wake_for_frames();
    }
}

pub(crate) fn hold_for_commands(ops: &mut Ops, index: u32) {
    ops.hold_op(index, Wait::Commands);
}

/// As [`Controller::start_op`].
#[inline(always)]
pub(crate) fn start_op(
    ops: &mut Ops,
    sets: &mut Sets,
    trace: &mut Trace,
    (requests, cache): (&Requests, &Cache),
    op: Op,
) {
    let key = ops.begin(sets.get_mut(op.set), op);
    trace_made(ops, (sets, requests, cache), trace, key.index);
    ops.wake(key.index);
}

/// The step of a destage operation that changes the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CacheStep {
    /// It has its range, and nothing to write is chosen: choose the next dirty data.
    Choose,
    /// The chosen rows are planned and have buffers: copy the dirty lines there.
    Stage,
    /// The members have the chosen data: its lines become clean.
    Clean,
}

impl OpIo<'_> {
    /// Copy the bytes of one edge that the request does not cover from the block that was read into the payload's
    /// frames: the head first, then the tail.
    fn merge_edge(&mut self, index: u32, edges: Edges) {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let block = set.block().bytes();
        let run = op.work().expect("edges were read there");
        if edges.head > 0 {
            let rest = Edges { head: 0, ..edges };
            self.ops[index].set_edges((edges.tail > 0).then_some(rest));
            let start = op.payload_start();
            return self.push_copy(index, start, run.at, u32::from(edges.head));
        }
        self.ops[index].set_edges(None);
        let within = block - Bytes(u64::from(edges.tail));
        let read_at = run.at + Bytes(if edges.reads == EdgeReads::OneBlock { 0 } else { FRAME_BYTES });
        let end = if let Footprint::Rows(rows) = &op.footprint {
            let ((_, hi), (first, count)) = (rows.part.range(), rows.named());
            op.payload_address(set, first + count - 1, hi - narrow(block.sectors_floor()))
        } else {
            op.payload_start() + (op.extent().len.bytes() - block)
        };
        self.push_copy(index, end + within, read_at + within, u32::from(edges.tail));
    }

    /// Take work frames for an operation. If there are too few, it waits after the operations that wait already, and
    /// the answer is false. A part of a move goes first: the move has frames already, for which the others may wait.
    pub(crate) fn take_work(&mut self, index: u32, bytes: u64) -> bool {
        debug_assert!(self.ops[index].work().is_none());
        let (woken, goes_first) = (self.ops[index].answer_call(), self.ops[index].is_part_of_move());
        if woken || goes_first || !self.ops.are_frames_awaited() {
            if let Some(run) = self.pool.work_mut().take(bytes) {
                self.ops[index].work = WorkFrames::Run(run);
                // There may be enough frames for the next operation too.
                if woken {
                    self.ops.wake_for_frames();
                }
                return true;
            }
        }
        self.note(index, Reason::WaitedForFrames, u64::from(index), self.pool.work().free_frames());
        self.ops.hold_op(index, Wait::Frames(bytes));
        self.pass_turn_on();
        self.ops.wait_for_frames(index, woken);
        false
    }

    /// Advance this operation, and others that can continue, until one leaves something for other components or actions
    /// have no more room. Returns a destage that needs the cache for its next step.
    #[inline(always)]
    pub(crate) fn step_from(&mut self, mut index: u32) -> Option<(u32, CacheStep)> {
        loop {
            if let Some(step) = self.step(index) {
                return Some((index, step));
            }
            if !self.ended.is_empty()
                || self.sets.has_signal()
                || !self.ops.has_ready()
                || !self.call.actions().has_room()
            {
                return None;
            }
            index = self.ops.next_ready()?;
        }
    }

    /// Advance an operation as far as possible. Returns the step of a destage that needs the cache.
    #[inline]
    fn step(&mut self, index: u32) -> Option<CacheStep> {
        let op = &mut self.ops[index];
        op.wait = None;
        let (kind, begins) = (op.kind, matches!(op.phase, Phase::Start | Phase::Locking | Phase::Edges));
        match kind {
            OpKind::Read => self.step_read(index),
            OpKind::Flush => self.step_flush(index),
            OpKind::Reparity => self.step_reparity(index),
            OpKind::Move => self.step_move(index),
            _ if begins && !self.step_begin(index) => {}
            OpKind::Redo => self.step_redo(index),
            OpKind::Write => self.step_write(index),
            OpKind::Destage => return self.step_stretch_destage(index),
            OpKind::RowDestage => return self.step_row_destage(index),
            OpKind::Discard => self.step_discard(index),
            OpKind::RowRead => self.step_row_read(index),
            OpKind::RowWrite => self.step_row_write(index),
            OpKind::Rebuild | OpKind::Resync | OpKind::Scrub => self.step_background(index),
        }
        None
    }

    /// Advance an operation that does not have its range or its edges yet; true if it has both now.
    #[inline(never)]
    fn step_begin(&mut self, index: u32) -> bool {
        match self.ops[index].phase {
            Phase::Start => self.lock_op(index),
            Phase::Locking => {
                self.trace_op(index, || StepEvent::Granted);
                self.on_locked(index)
            }
            _ => self.on_edges(index),
        }
    }

    fn lock_op(&mut self, index: u32) -> bool {
        if self.journal.replay().is_redoing() && self.hold_for_redo(index) {
            return false;
        }
        let op = &mut self.ops[index];
        if !self.journal.reserve_room(op, self.sets, self.cache) {
            self.hold_for_room(index, Reason::WaitedForJournal);
            return false;
        }
        op.phase = Phase::Locking;
        if op.is_in_range_of_parent() {
            // The parent holds the range.
            return self.on_locked(index);
        }
        let range = op.lock_range(self.sets.get(op.set));
        if self.ops.lock(index, range) {
            self.on_locked(index)
        } else {
            self.ops.hold_op(index, Wait::Range);
            let unit = self.ops[index].unit_number();
            self.note(index, Reason::WaitedForLock, unit, 0);
            false
        }
    }

    /// An operation has its range; true if it continues at once, without edges to read.
    fn on_locked(&mut self, index: u32) -> bool {
        let op = &mut self.ops[index];
        let has_edges = op.edges().is_some();
        op.phase = if has_edges { Phase::Edges } else { Phase::Planning };
        if has_edges {
            self.read_edges(index);
        }
        !has_edges
    }

    /// Read the blocks that the request fills only in part, by operations that use this one's range.
    fn read_edges(&mut self, index: u32) {
        let op = self.ops[index];
        let edges = Self::edges_of(&op);
        if op.work().is_none() && !self.take_work(index, 2 * FRAME_BYTES) {
            return;
        }
        if self.ops.room() < 2 {
            return hold_for_commands(self.ops, index);
        }
        let at = match &op.footprint {
            Footprint::Rows(rows) => rows.set_lba(op.parity(self.sets.get(op.set))),
            _ => op.extent().at,
        };
        let missing = u32::from(edges.head) + u32::from(edges.tail);
        self.note(index, Reason::EdgeRead, at.get(), missing);
        let in_one = edges.head > 0 && is_one_block(self.sets, &op);
        let reads = if in_one { EdgeReads::OneBlock } else { EdgeReads::OwnBlocks };
        self.ops[index].set_edges(Some(Edges { reads, ..edges }));
        if edges.head > 0 {
            self.start_edge(index, false);
        }
        if edges.tail > 0 && !in_one {
            self.start_edge(index, true);
        }
    }

    /// The edges of a write, if any.
    fn edges_of(op: &Op) -> Edges {
        op.edges().expect("it has edges to read or to merge")
    }

    fn start_edge(&mut self, index: u32, tail: bool) {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let block = set.block().sectors();
        let run = op.work().expect("taken before");
        let payload = OpPayload::Host(run.at + Bytes(if tail { FRAME_BYTES } else { 0 }));
        let range = if let Footprint::Rows(stripe_rows) = &op.footprint {
            let rows = u32::try_from(block.get()).expect("a block is small");
            let ((lo, hi), (first, count)) = (stripe_rows.part.range(), stripe_rows.named());
            let (column, lo) = if tail { (first + count - 1, hi - rows) } else { (first, lo) };
            let columns = Columns::Named { first: column, count: 1 };
            let part = Part::whole(lo, lo + rows);
            HostRange::Rows(StripeRows { side: stripe_rows.side, stripe: stripe_rows.stripe, part, columns })
        } else {
            let Extent { side, at, len } = op.extent();
            let at = if tail { at + (len - block) } else { at };
            HostRange::Extent(Extent { side, at, len: block })
        };
        let child = Op::read_for(index, op.set, range, payload);
        self.ops[index].pending += 1;
        start_op(self.ops, self.sets, self.call.trace(), (self.requests, self.cache), child);
    }

    /// The edges are read, or are being merged: continue. True if the payload has them now.
    fn on_edges(&mut self, index: u32) -> bool {
        let op = self.ops[index];
        if op.frames_abandoned {
            // The frames belong to a given-up command.
            release_work(self.ops, self.pool, index);
            self.ops[index].frames_abandoned = false;
            self.ops[index].outcome = Outcome::Fine;
            self.ops[index].set_edges(Some(Edges { reads: EdgeReads::Due, ..Self::edges_of(&op) }));
            self.read_edges(index);
        } else if op.has_failed() {
            self.finish_op(index);
        } else if op.pending > 0 {
            // The other edge is being read.
        } else {
            match op.edges() {
                Some(Edges { reads: EdgeReads::Due, .. }) => self.read_edges(index),
                Some(edges) => self.merge_edge(index, edges),
                None => {
                    release_work(self.ops, self.pool, index);
                    self.ops[index].phase = Phase::Planning;
                    return true;
                }
            }
        }
        false
    }

    /// An operation has ended: release everything that it holds, and inform its owner.
    pub(crate) fn finish_op(&mut self, index: u32) {
        debug_assert_eq!(self.ops[index].pending, 0, "{:?}", self.ops[index]);
        if self.ops[index].kind == OpKind::Read {
            debug_assert!(self.ops[index].holds_nothing(), "{:?}", self.ops[index]);
        } else {
            self.release_all(index);
        }
        let op = &self.ops[index];
        let error = op.error();
        self.call.trace().op(self.ops, index, || StepEvent::Done { error });
        let (set_id, piece, has_range, is_direct) = (op.set, op.piece(), op.has_range(), op.is_direct_write());
        let epoch = op.epoch.expect("it was begun");
        let destaged = if let KindData::Destage(data) = op.data { Some(data) } else { None };
        // The operation is large, and was written just now: it is copied only if its whole content is needed.
        let plain = match op.kind {
            OpKind::Read | OpKind::RowRead => op.parent().is_none(),
            OpKind::Write | OpKind::RowWrite => piece.is_some() && !self.cache.is_on(),
            OpKind::Destage | OpKind::RowDestage => true,
            _ => false,
        };
        let whole = if plain { None } else { Some(*op) };
        self.ops.free(index);
        if has_range {
            self.ops.unlock(index);
        }
        let set = self.sets.get_mut(set_id);
        let is_awaited = set.ops_mut().end(epoch);
        if is_direct {
            set.end_direct_write();
            // Journalled writes may wait for its end.
            if set.journal.is_on() {
                self.ended.report(OpReport::MayContinue);
            }
        }
        if self.ops.end_background_wait() || is_awaited {
            self.sets.look();
        }
        self.ops.wake_for_commands();
        self.ops.wake_for_frames();
        if let Some(data) = destaged {
            self.ended.push(EndedFor::Unit(set_id, data), error);
        } else if let Some(op) = whole {
            self.whole_op_done(&op);
        } else {
            self.ended.end_part(piece.expect("what else it may work for was seen before"), error);
        }
    }

    /// Release everything that an operation holds, but its range and its place in the table.
    #[inline(always)]
    fn release_all(&mut self, index: u32) {
        let op = &mut self.ops[index];
        end_write(self.sets, op, self.call.now(), self.call.limits().clean_delay);
        self.journal.unlog(self.sets, op);
        let frees_room = self.journal.release_room(op);
        end_record(self.sets, op, self.call.planted());
        let work = op.give_back_work();
        if frees_room && self.ops.is_journal_awaited() {
            wake_for_room(self.ops, self.journal, self.sets);
            self.ended.report(OpReport::MayContinue);
        }
        if let Some(run) = work {
            self.pool.work_mut().release(run);
            self.ops.wake_for_frames();
        }
    }

    /// Inform the owner that an operation has ended.
    fn whole_op_done(&mut self, op: &Op) {
        if let (WorksFor::Piece(_) | WorksFor::Ahead(_) | WorksFor::Request(_) | WorksFor::Gather(_), true) =
            (op.works_for, self.cache.is_on())
        {
            if let Some(past) = op.written_past(self.sets.get(op.set)) {
                self.ended.report(OpReport::Stale(op.set, past));
            }
        }
        match op.works_for {
            WorksFor::Op(parent) | WorksFor::Move(parent) => on_child_done(self.ops, parent, op),
            WorksFor::Piece(piece) | WorksFor::Ahead(piece) => self.ended.end_part(piece, op.error()),
            WorksFor::Request(request) => self.ended.push(EndedFor::Request(request), op.error()),
            WorksFor::Gather(gather) => self.ended.push(EndedFor::Gather(gather), op.error()),
            WorksFor::Set => match op.kind {
                OpKind::Redo => on_redone(self.journal, self.ops, self.sets, op),
                OpKind::Reparity => on_reparity_done(self.sets, op),
                OpKind::Flush => self.journal.round_flush_ended(op),
                _ => {
                    on_background_done(self.sets, op, &mut self.call);
                }
            },
        }
    }

    /// End an operation with an error, before any member was written.
    pub(crate) fn fail_op(&mut self, index: u32, status: ReplyStatus) {
        self.ops[index].fail(status);
        self.finish_op(index);
    }
}
