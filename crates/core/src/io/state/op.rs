//! The operation: a state machine for the work on one exclusion unit.
//!
//! ```text
//!  Start -> Locking -> Edges -> Planning -> ReadingOld -> Computing -> Logging -> Writing -> Recording -> Done
//!              |                  ^ ^ |         |               ^                      |
//!              +- no partial block + | +---------|- no reads ----+                      |
//!                                    +-----------+ a read failed: plan again            |
//!                                    +----------------- next rows ----------------------+
//!
//! ```
//!
//! Entering Writing is the commit point: before it, a failure means to plan again; after it, to continue. In Recording
//! the operation waits until the failure of a member is durable on the other members. Reads, rebuilds and scrubs are
//! the same operation with other phases empty.

mod data;
mod make;

use core::fmt;
use openraid_units::{PoolOffset, SetId, Slot};

use crate::actions::ReplyStatus;
use crate::array::op_epochs::Epoch;
use crate::events::ParityVerdict;
use crate::frames::Run;
use crate::geometry::shape::Side;
use crate::io::state::footprint::{Extent, Footprint, Stretch, StripeRows};
use crate::io::state::log_room::LogRoom;
use crate::io::state::plan::WriteMethod;
use crate::io::state::search::Part;
use crate::io::state::task_pace::TaskPace;
use crate::io::state::wait::Wait;
use crate::slot_set::SlotSet;

pub(crate) use data::{
    BackgroundData, DestageData, EdgeReads, Edges, EntryState, KindData, MoveData, Outcome, PartialParity, RedoData,
    RedoReads, TaskUnit, WorkFrames, WriteData,
};
pub(crate) use make::{BackgroundKind, HostRange, UnitRange};

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpKind {
    /// Read an extent of a set directly.
    Read,
    /// Read a row segment of a parity set, recovering what cannot be read.
    RowRead,
    /// Write an extent of a set without parity.
    Write,
    /// Write a row segment of a parity set.
    RowWrite,
    /// Tell members that an extent is not needed.
    Discard,
    /// Make a set's members durable.
    Flush,
    /// Restore one slot over one unit.
    Rebuild,
    /// Make parity or copies consistent over one unit.
    Resync,
    /// Read and compare one unit.
    Scrub,
    /// Write the dirty data of a range of a set without parity.
    Destage,
    /// Write the dirty data of a stripe.
    RowDestage,
    /// Write to one member again what a redo record of the journal has.
    Redo,
    /// Compute the parity for an entry of a partial parity log.
    Reparity,
    /// Move a range to the new places that a change of shape gives it.
    Move,
}

/// The progress of an operation. It has a tag of its own, because each step of an operation asks for it, and a tag that is
/// packed into the field of [`Phase::Computing`] takes more steps to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Nothing has happened yet.
    Start,
    /// Waits for its range.
    Locking,
    /// Reads the blocks that the request fills only in part.
    Edges,
    /// Chooses the method; may wait for frames.
    Planning,
    /// Reads old data.
    ReadingOld,
    /// Computes.
    Computing(Computation),
    /// Waits until the intent to write is durable.
    Logging,
    /// Writes parity, and data only after that: see [`refit`](crate::io::steps::refit_parity).
    WritingParity,
    /// Writes.
    Writing,
    /// A member refused its write: parity, or the other copies, are made to fit what the members hold.
    Refitting(Refitting),
    /// Waits until the failure of a member is durable on the others.
    Recording,
}

/// The computation that is under way, if an operation has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Computation {
    /// Copy the data to be written out of the cache.
    Stage,
    /// Recover missing columns from the others.
    Recover,
    /// Compute parity from data.
    Parity,
    /// Compare what the members hold.
    Check,
    /// Compute the parity of the columns that are not written.
    Partial,
    /// Compute the checksum of that parity.
    PartialSum,
}

/// What an operation waits for while it makes parity or copies fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refitting {
    /// The columns that were not written are read.
    Reading,
    /// The parity that fits is computed.
    Computing,
    /// It is written.
    Writing,
    /// A parity whose member refused it is read back.
    ReadingBack,
    /// It is compared with the one that fits.
    Comparing,
    /// On a mirror: the copies with this number are read.
    ReadingCopy(u16),
    /// On a mirror: their checksum is computed.
    SummingCopy(u16),
}

/// The place of an operation's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpPayload {
    /// In the frames of a piece, from this offset on. Each further column of a row is one chunk later.
    Host(PoolOffset),
    /// It is all zero, and may become holes.
    Zero { may_discard: bool },
    /// There is no payload.
    None,
}

/// The owner of an operation's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorksFor {
    /// For its set, or for the set's cache or journal.
    Set,
    /// For a piece of a host's request.
    Piece(u32),
    /// For a piece of read-ahead: no host has requested it yet.
    Ahead(u32),
    /// For a request without pieces.
    Request(u32),
    /// For gathered writes of several requests.
    Gather(u32),
    /// For another operation, inside the range that this one holds.
    Op(u32),
    /// For a move, inside the range that hosts do not write.
    Move(u32),
}

/// The slots of the rows in work, or of a part of a range.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Plan {
    /// They are read.
    pub(in crate::io) read: SlotSet,
    /// They are recovered from what was read.
    pub(in crate::io) lost: SlotSet,
    /// Their parity is computed.
    pub(in crate::io) parity: SlotSet,
    /// They are written.
    pub(in crate::io) write: SlotSet,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(in crate::io) kind: OpKind,
    pub(in crate::io) data: KindData,
    pub(in crate::io) phase: Phase,
    /// The wait that holds it, from then until it is called again.
    pub(in crate::io) wait: Option<Wait>,
    pub(in crate::io) set: SetId,
    /// The side of its footprint, which each of its steps asks for.
    pub(in crate::io) side: Side,
    /// The epoch of its set in which its place was looked up; none until it is in the table.
    pub(in crate::io) epoch: Option<Epoch>,
    pub(in crate::io) works_for: WorksFor,
    pub(in crate::io) footprint: Footprint,
    pub(in crate::io) payload: OpPayload,
    /// Number of outstanding commands, jobs and child operations.
    pub(in crate::io) pending: u32,
    /// Slots whose members failed in this operation: its plan does without them.
    pub(in crate::io) excluded: SlotSet,
    pub(in crate::io) work: WorkFrames,
    /// The slots that have a buffer in its work frames, in rank order.
    pub(in crate::io) buffers: SlotSet,
    /// The method by which a write of rows gets its parity.
    pub(in crate::io) method: WriteMethod,
    pub(in crate::io) plan: Plan,
    /// It counts as a writer of its set: for the active mark and for the bitmap.
    pub(in crate::io) is_writer: bool,
    /// The result of the last job.
    pub(in crate::io) verdict: ParityVerdict,
    /// A given-up command may still use its frames, so this operation must not use them any more.
    pub(in crate::io) frames_abandoned: bool,
    /// State of the journal entry with its records, until the members have the data.
    pub(in crate::io) entry: EntryState,
    /// Room in the journal that it has reserved.
    pub(in crate::io) reserved: LogRoom,
    /// Its record in the partial parity log, and the partial parity of the rows in work.
    pub(in crate::io) partial: Partial,
    pub(in crate::io) partial_parity: PartialParity,
    pub(in crate::io) outcome: Outcome,
}

/// Its state, for a list of all work in progress.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} of {:?}, waits for {:?}, ", self.kind, self.phase, self.set, self.wait)?;
        write!(f, "for {:?}, at {:?}", self.works_for, self.footprint)?;
        write!(f, ", {} pending, range {}, writes {}", self.pending, self.has_range(), self.is_writer)?;
        write!(f, ", {:?}, {:?}, {:?}", self.data, self.entry, self.partial)?;
        write!(f, ", frames abandoned {}, excluded {:?}", self.frames_abandoned, self.excluded)?;
        write!(f, ", {:?}", self.outcome)
    }
}

impl Op {
    /// An operation without data, for the constructors.
    #[inline(always)]
    fn bare(kind: OpKind, set: SetId, footprint: Footprint) -> Self {
        Self {
            kind,
            data: KindData::None,
            phase: Phase::Start,
            wait: None,
            set,
            side: footprint.side(),
            epoch: None,
            works_for: WorksFor::Set,
            footprint,
            payload: OpPayload::None,
            pending: 0,
            excluded: SlotSet::EMPTY,
            work: WorkFrames::None,
            buffers: SlotSet::EMPTY,
            method: WriteMethod::FullStripe,
            plan: Plan::default(),
            is_writer: false,
            verdict: ParityVerdict::Done,
            frames_abandoned: false,
            entry: EntryState::None,
            reserved: LogRoom::NONE,
            partial: Partial::No,
            partial_parity: PartialParity::None,
            outcome: Outcome::Fine,
        }
    }

    /// Its place was looked up in this epoch of its set.
    #[inline(always)]
    pub(crate) const fn in_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Set its payload.
    #[inline(always)]
    pub(crate) fn bring(&mut self, payload: OpPayload) {
        self.payload = payload;
    }

    #[inline(always)]
    pub(crate) const fn kind(&self) -> OpKind {
        self.kind
    }

    #[inline(always)]
    pub(crate) const fn set(&self) -> SetId {
        self.set
    }

    #[inline(always)]
    pub(crate) const fn works_for(&self) -> WorksFor {
        self.works_for
    }

    #[inline(always)]
    pub(crate) const fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    #[inline(always)]
    pub(crate) const fn payload(&self) -> OpPayload {
        self.payload
    }

    /// Its own work frames, if it has some.
    #[inline(always)]
    pub(crate) const fn work(&self) -> Option<Run> {
        match self.work {
            WorkFrames::Run(run) => Some(run),
            WorkFrames::None | WorkFrames::Called => None,
        }
    }

    /// Take its work frames away.
    #[inline(always)]
    pub(in crate::io) fn give_back_work(&mut self) -> Option<Run> {
        let run = self.work();
        if run.is_some() {
            self.work = WorkFrames::None;
        }
        run
    }

    /// Its work frames came back to the pool while it waited for some: it tries first.
    pub(super) fn call_for_frames(&mut self) {
        self.work = WorkFrames::Called;
    }

    /// Was it called because frames came back? From now on it was not.
    #[inline(always)]
    pub(in crate::io) fn answer_call(&mut self) -> bool {
        core::mem::replace(&mut self.work, WorkFrames::None) == WorkFrames::Called
    }

    #[inline(always)]
    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Enter this phase.
    #[inline(always)]
    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Plan the next rows. Slots that failed in earlier rows are used again.
    pub(crate) fn plan_next_rows(&mut self) {
        (self.excluded, self.phase) = (SlotSet::EMPTY, Phase::Planning);
    }

    /// Are commands, jobs or child operations outstanding?
    #[inline(always)]
    pub(crate) const fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// The slots that the rows in work are written to.
    pub(crate) const fn written_slots(&self) -> SlotSet {
        self.plan.write
    }

    /// The slots whose parity is computed for the rows in work.
    pub(crate) const fn computed_slots(&self) -> SlotSet {
        self.plan.parity
    }

    /// Is parity computed from old data and old parity?
    pub(crate) fn is_read_modify_write(&self) -> bool {
        self.method == WriteMethod::ReadModifyWrite
    }

    /// Has it met an error with which it will end?
    pub(crate) const fn has_failed(&self) -> bool {
        self.outcome.error().is_some()
    }

    /// The error with which it will end, if any.
    #[inline(always)]
    pub(crate) const fn error(&self) -> Option<ReplyStatus> {
        self.outcome.error()
    }

    /// It will end with this error.
    pub(in crate::io) fn fail(&mut self, error: ReplyStatus) {
        self.outcome = match self.outcome {
            Outcome::Fine | Outcome::Failed(_) => Outcome::Failed(error),
            Outcome::Unwritten(_, slots) => Outcome::Unwritten(error, slots),
            Outcome::Torn(_) => Outcome::Torn(error),
        };
    }

    /// The member of this slot refused a write of its rows, and stays.
    pub(in crate::io) fn refuse(&mut self, slot: Slot, error: ReplyStatus) {
        let before = self.refused();
        self.outcome = Outcome::Unwritten(error, before.with(slot));
    }

    /// The slots whose members refused a write of its rows.
    pub(in crate::io) const fn refused(&self) -> SlotSet {
        match self.outcome {
            Outcome::Unwritten(_, slots) => slots,
            Outcome::Fine | Outcome::Failed(_) | Outcome::Torn(_) => SlotSet::EMPTY,
        }
    }

    /// Does it make parity or copies fit after a member refused its write with this error? On a mirror, the copy of a
    /// member that refuses for another reason is not read any more.
    pub(in crate::io) fn refits(&self, error: ReplyStatus) -> bool {
        match self.kind {
            OpKind::RowWrite | OpKind::RowDestage => true,
            OpKind::Write | OpKind::Destage => error == ReplyStatus::NoSpace,
            _ => false,
        }
    }

    /// One of its writes failed on a member that the array cannot do without.
    pub(in crate::io) fn tear(&mut self) {
        self.outcome = Outcome::Torn(self.error().unwrap_or(ReplyStatus::IoError));
    }

    /// Did one of its writes fail on a member that the array cannot do without?
    pub(in crate::io) const fn is_torn(&self) -> bool {
        matches!(self.outcome, Outcome::Torn(_))
    }

    /// Does it count as a write of its set?
    #[inline(always)]
    pub(crate) const fn is_writer(&self) -> bool {
        self.is_writer
    }

    /// Begin or end to count it as a writer of its set.
    #[inline(always)]
    pub(crate) fn count_as_writer(&mut self, counts: bool) {
        self.is_writer = counts;
    }

    /// State of its journal entry.
    #[inline(always)]
    pub(crate) const fn entry(&self) -> EntryState {
        self.entry
    }

    /// Set the state of its journal entry.
    #[inline(always)]
    pub(crate) fn set_entry(&mut self, entry: EntryState) {
        self.entry = entry;
    }

    /// The room that it has reserved in the journal.
    pub(crate) const fn reserved(&self) -> LogRoom {
        self.reserved
    }

    /// Set the room that it has reserved in the journal. Returns the room before.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, room: LogRoom) -> LogRoom {
        core::mem::replace(&mut self.reserved, room)
    }

    /// Its record in the partial parity log.
    pub(crate) const fn record(&self) -> Partial {
        self.partial
    }

    /// Set the state of its record in the partial parity log. Returns the state before.
    #[inline(always)]
    pub(crate) fn set_record(&mut self, record: Partial) -> Partial {
        core::mem::replace(&mut self.partial, record)
    }

    /// The partial parity of the rows in work.
    pub(crate) const fn partial_parity(&self) -> PartialParity {
        self.partial_parity
    }

    /// The place of its partial parity: at the end of its work frames.
    pub(crate) fn partial_buffer(&self) -> PoolOffset {
        let staged = self.band().len();
        let before = u64::from(self.buffers.len() + staged);
        self.work().expect("buffers were taken").at + openraid_units::Sectors(before * u64::from(self.rows())).bytes()
    }

    /// The checksum of its partial parity, or of the copies that count, is known.
    pub(crate) fn keep_partial_sum(&mut self) {
        let ParityVerdict::Checksum(crc) = self.verdict else { unreachable!("a checksum was asked for") };
        self.partial_parity = PartialParity::Summed(crc);
    }

    /// The piece that it works for.
    #[inline(always)]
    pub(crate) fn piece(&self) -> Option<u32> {
        match self.works_for {
            WorksFor::Piece(piece) | WorksFor::Ahead(piece) => Some(piece),
            WorksFor::Set | WorksFor::Request(_) | WorksFor::Gather(_) | WorksFor::Op(_) | WorksFor::Move(_) => None,
        }
    }

    /// The operation that it works for.
    #[inline(always)]
    pub(crate) fn parent(&self) -> Option<u32> {
        match self.works_for {
            WorksFor::Op(parent) | WorksFor::Move(parent) => Some(parent),
            _ => None,
        }
    }

    /// Does its parent hold the range in which it works?
    pub(crate) const fn is_in_range_of_parent(&self) -> bool {
        matches!(self.works_for, WorksFor::Op(_))
    }

    /// Does it hold a range of its own, or wait for one?
    pub(crate) fn has_range(&self) -> bool {
        let takes_none =
            matches!(self.kind, OpKind::Read | OpKind::Flush | OpKind::Redo | OpKind::Reparity | OpKind::Move);
        !takes_none && self.phase != Phase::Start && !self.is_in_range_of_parent()
    }

    /// Does it write host data past the cache?
    pub(crate) fn is_direct_write(&self) -> bool {
        matches!(self.kind, OpKind::Write | OpKind::RowWrite)
    }

    /// Does it write dirty data of the cache?
    pub(crate) fn is_destage(&self) -> bool {
        matches!(self.kind, OpKind::Destage | OpKind::RowDestage)
    }

    /// Has it no intent to write, no log entry, no reservation and no frames? Every [`OpKind::Read`] is like this, and
    /// its end relies on that.
    pub(crate) fn holds_nothing(&self) -> bool {
        let writes = self.is_writer
            || self.entry.sequence().is_some()
            || self.reserved != LogRoom::NONE
            || self.partial != Partial::No;
        !writes && self.work().is_none()
    }

    /// Does it work for the set itself, not for a host?
    pub(crate) fn is_background(&self) -> bool {
        matches!(self.kind, OpKind::Rebuild | OpKind::Resync | OpKind::Scrub)
    }

    /// Does it rewrite a range that could not be read?
    pub(crate) fn is_sector_rewrite(&self) -> bool {
        self.kind == OpKind::Rebuild && self.background().task.is_none()
    }

    /// Does it write back what a member holds, to see whether there is room?
    pub(in crate::io) fn is_rewrite(&self) -> bool {
        matches!(&self.data, KindData::Background(data) if data.is_rewrite)
    }

    /// Data of a destage. Panics for any other kind.
    pub(crate) fn destage(&self) -> &DestageData {
        let KindData::Destage(data) = &self.data else { unreachable!("asked of a destage") };
        data
    }

    /// Data of background work. Panics for any other kind.
    pub(crate) fn background(&self) -> &BackgroundData {
        let KindData::Background(data) = &self.data else { unreachable!("asked of background work") };
        data
    }

    /// As [`Op::background`].
    pub(crate) fn background_mut(&mut self) -> &mut BackgroundData {
        let KindData::Background(data) = &mut self.data else { unreachable!("asked of background work") };
        data
    }

    /// The edges that its payload lacks.
    #[inline(always)]
    pub(crate) fn edges(&self) -> Option<Edges> {
        match self.data {
            KindData::Write(write) => write.edges,
            _ => None,
        }
    }

    /// The reads of its edges have advanced, or the payload has some of the edges.
    pub(in crate::io) fn set_edges(&mut self, edges: Option<Edges>) {
        let KindData::Write(write) = &mut self.data else { unreachable!("only writes have edges") };
        write.edges = edges;
    }

    /// Must it be durable before it is acknowledged?
    #[inline(always)]
    pub(in crate::io) const fn is_fua(&self) -> bool {
        matches!(&self.data, KindData::Write(write) if write.fua)
    }

    /// The rows of a stripe on which it works. Panics for an operation without rows.
    #[inline(always)]
    pub(crate) fn rows_of(&self) -> &StripeRows {
        let Footprint::Rows(rows) = &self.footprint else { unreachable!("asked of rows") };
        rows
    }

    /// As [`Op::rows_of`].
    #[inline(always)]
    pub(crate) fn rows_of_mut(&mut self) -> &mut StripeRows {
        let Footprint::Rows(rows) = &mut self.footprint else { unreachable!("asked of rows") };
        rows
    }

    /// The range of a set without parity on which it works. Panics for any other form.
    #[inline(always)]
    pub(crate) fn stretch(&self) -> &Stretch {
        let Footprint::Stretch(stretch) = &self.footprint else { unreachable!("asked of a stretch") };
        stretch
    }

    /// The sectors of its set that are in work: the whole extent, or the part of a range that is processed in parts.
    /// Panics for any other form.
    #[inline(always)]
    pub(crate) fn extent(&self) -> Extent {
        match &self.footprint {
            Footprint::Extent(extent) => *extent,
            Footprint::Stretch(stretch) => stretch.in_work(),
            Footprint::Set | Footprint::Rows(_) | Footprint::Member(_) => unreachable!("asked of an extent"),
        }
    }

    /// The part in work of a footprint that is processed in parts. Panics for any other form.
    #[inline(always)]
    pub(crate) fn part(&self) -> &Part {
        match &self.footprint {
            Footprint::Rows(rows) => &rows.part,
            Footprint::Stretch(stretch) => &stretch.part,
            Footprint::Set | Footprint::Extent(_) | Footprint::Member(_) => unreachable!("asked of parts"),
        }
    }

    /// As [`Op::part`].
    #[inline(always)]
    pub(crate) fn part_mut(&mut self) -> &mut Part {
        match &mut self.footprint {
            Footprint::Rows(rows) => &mut rows.part,
            Footprint::Stretch(stretch) => &mut stretch.part,
            Footprint::Set | Footprint::Extent(_) | Footprint::Member(_) => unreachable!("asked of parts"),
        }
    }

    /// The slot of the parity that is computed after a crash. Panics for any other kind.
    pub(crate) fn parity_slot(&self) -> Slot {
        let KindData::Reparity(slot) = self.data else { unreachable!("asked of an entry of a log") };
        slot
    }

    /// Data of a move. Panics for any other kind.
    pub(crate) fn of_move(&self) -> &MoveData {
        let KindData::Move(data) = &self.data else { unreachable!("asked of a move") };
        data
    }

    fn of_move_mut(&mut self) -> &mut MoveData {
        let KindData::Move(data) = &mut self.data else { unreachable!("asked of a move") };
        data
    }

    /// This number of parts of a move was begun.
    pub(in crate::io) fn set_parts_begun(&mut self, begun: u32) {
        self.of_move_mut().begun = begun;
    }

    /// A move begins, or begins again: the range is moved as a whole.
    pub(in crate::io) fn move_whole(&mut self, pace: TaskPace) {
        let data = self.of_move_mut();
        *data = MoveData { at: data.at, pace, begun: 0, band: None, lost: SlotSet::EMPTY };
    }

    /// A move takes this band next.
    pub(in crate::io) fn move_band(&mut self, band: u32) {
        let data = self.of_move_mut();
        (data.begun, data.band, data.lost) = (0, Some(band), SlotSet::EMPTY);
    }

    /// No member has the block of this column of a band.
    pub(in crate::io) fn lose_column(&mut self, column: u32) {
        let column = Slot(u16::try_from(column).expect("fewer than members"));
        self.of_move_mut().lost.insert(column);
    }

    /// Is it a part of a move?
    #[inline(always)]
    pub(crate) const fn is_part_of_move(&self) -> bool {
        matches!(self.works_for, WorksFor::Move(_))
    }

    /// Data of a redo. Panics for any other kind.
    pub(crate) fn redo(&self) -> &RedoData {
        let KindData::Redo(data) = &self.data else { unreachable!("asked of a redo") };
        data
    }

    /// A read of a redo will not bring its data: the redo writes nothing.
    pub(crate) fn lose_redo(&mut self) {
        let KindData::Redo(data) = &mut self.data else { unreachable!("asked of a redo") };
        let (RedoReads::Going(failed) | RedoReads::Lost(failed)) = data.reads;
        data.reads = RedoReads::Lost(failed);
    }

    /// Will a read of a redo not bring its data?
    pub(in crate::io) fn is_redo_lost(&self) -> bool {
        matches!(self.redo().reads, RedoReads::Lost(_))
    }

    /// A read of a redo has failed. Returns the number of its reads that did.
    pub(in crate::io) fn count_failed_read(&mut self) -> u32 {
        let KindData::Redo(data) = &mut self.data else { unreachable!("asked of a redo") };
        let (RedoReads::Going(failed) | RedoReads::Lost(failed)) = &mut data.reads;
        *failed += 1;
        *failed
    }

    /// Rows in work now, in sectors.
    #[inline(always)]
    pub(crate) fn rows(&self) -> u32 {
        self.part().len()
    }

    /// Rows in work now, in bytes.
    pub(crate) fn row_bytes(&self) -> u32 {
        self.rows() << openraid_units::SECTOR_SHIFT
    }
}

/// State of an operation's record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Partial {
    /// It needs none.
    No,
    /// It needs one before it writes.
    Due,
    /// It waits until the record is durable.
    Waiting,
    /// The record is durable, and covers its writes.
    Logged,
}
