//! A move: a range of a set whose shape changes is read at its old places and written at its new ones.
//!
//! ```text
//!  Start: frames for the range -> ReadingOld: reads on the old side -> Writing: whole stripes on the new side -> end
//! ```
//!
//! Reads and writes are operations like those of hosts, for parts of the range, and take ranges: a host may write
//! to the rest of an old stripe that reaches beyond the range, and recovery reads that. Sectors beyond the end of the old
//! side are zero. If the power fails, the range is moved again, so its writes need neither the active mark, nor the bitmap, nor
//! the journal.
//!
//! If a part cannot be read, the range is moved in bands: the rows of one block in all columns of a new stripe, or one block
//! of a set without parity. After the band is written, a block that no member has is entered in the bad-block logs of
//! its new places, and of the parity of its rows (S7).

use openraid_units::{Bytes, MemberLba, PoolOffset, Sectors, SetLba, Slot};

use crate::actions::ReplyStatus;
use crate::array::set::Set;
use crate::geometry::shape::Side;
use crate::geometry::Geometry;
use crate::io::state::footprint::{narrow, Columns, Extent, StripeRows};
use crate::io::state::op::{HostRange, MoveData, Op, OpPayload, Outcome, Phase, WorksFor};
use crate::io::state::search::Part;
use crate::io::state::task_pace::TaskPace;
use crate::io::steps::op_io::OpIo;
use crate::io::steps::step::{hold_for_commands, release_work, start_op};
use crate::limits::{MEMBERS_MAX, OP_COMMANDS_MAX, REGION_SECTORS, ZERO_SECTORS};
use crate::planted::Flaw;
use crate::reason::FailReason;

impl OpIo<'_> {
    pub(super) fn step_move(&mut self, index: u32) {
        if matches!(self.ops[index].phase, Phase::Start) && !self.begin_move(index) {
            return;
        }
        while self.ops[index].pending == 0 {
            let op = self.ops[index];
            if op.frames_abandoned {
                // A given-up command may still use the frames.
                release_work(self.ops, self.pool, index);
                self.ops[index].frames_abandoned = false;
                self.ops[index].outcome = Outcome::Fine;
                // It may have to wait for other frames.
                self.ops[index].phase = Phase::Start;
                if !self.begin_move(index) {
                    return;
                }
                continue;
            }
            let goes_on = match (op.phase, op.of_move().band) {
                (Phase::ReadingOld, None) if op.has_failed() && !self.sets.get(op.set).has_failed() => {
                    self.ops[index].outcome = Outcome::Fine;
                    self.ops[index].move_band(0);
                    true
                }
                (Phase::ReadingOld, Some(band)) => self.read_band(index, band),
                _ if op.has_failed() => return self.finish_op(index),
                (Phase::ReadingOld, None) => self.start_parts(index, Side::Old, Phase::Writing),
                (Phase::Writing, None) => self.start_parts(index, Side::New, Phase::Recording),
                (Phase::Writing, Some(band)) => self.band_written(index, band),
                (Phase::Recording, _) => return self.finish_op(index),
                (phase, _) => unreachable!("a move is never in {phase:?}"),
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Take frames for the range, and fill what lies beyond the end of the old side with zeroes.
    fn begin_move(&mut self, index: u32) -> bool {
        let Extent { at, len, .. } = self.ops[index].extent();
        if !self.take_work(index, len.bytes().get()) {
            return false;
        }
        let op = &mut self.ops[index];
        op.phase = Phase::ReadingOld;
        op.move_whole(self.sets.get(op.set).tasks.pace());
        let run = op.work().expect("just taken");
        let end = self.sets.get(self.ops[index].set).shape().on(Side::Old).capacity();
        let mut from = end.saturating_sub(at.offset()).min(len);
        while from < len {
            let part = (len - from).min(ZERO_SECTORS);
            let bytes = u32::try_from(part.bytes().get()).expect("the zero region is small");
            self.push_copy(index, run.at + from.bytes(), PoolOffset::ZERO, bytes);
            from += part;
        }
        true
    }

    /// Begin parts of the range on this side. If all have ended, the operation is in the `next` phase. False if it waits.
    fn start_parts(&mut self, index: u32, side: Side, next: Phase) -> bool {
        loop {
            let op = self.ops[index];
            let set = self.sets.get(op.set);
            let Extent { at, len, .. } = op.extent();
            let geometry = set.shape().on(side);
            let len = len.min(geometry.capacity().saturating_sub(at.offset()));
            let MoveData { pace, begun, .. } = *op.of_move();
            let part = part_of(geometry, side, (at, len), (pace, set.rows_max()), begun);
            match part {
                None if op.pending == 0 => {
                    self.ops[index].phase = next;
                    self.ops[index].set_parts_begun(0);
                    return true;
                }
                Some((range, from)) if op.pending < set.tasks.pace().parts() => {
                    if !self.start_part(index, side, range, from) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }

    /// Begin one part of the range: these sectors of a side, and their place in the range. False if it waits for a place in
    /// the table.
    fn start_part(&mut self, index: u32, side: Side, range: HostRange, from: Bytes) -> bool {
        let op = self.ops[index];
        if !self.ops.may_make_awaited_op() {
            if op.pending == 0 {
                hold_for_commands(self.ops, index);
            }
            return false;
        }
        let payload = OpPayload::Host(op.work().expect("taken at its start").at + from);
        let part = match side {
            Side::Old => Op::read(op.set, range, payload),
            Side::New => Op::write(op.set, range, payload, None),
        };
        self.ops[index].pending += 1;
        self.ops[index].set_parts_begun(op.of_move().begun + 1);
        let part = Op { works_for: WorksFor::Move(index), ..part };
        start_op(self.ops, self.sets, self.call.trace(), (self.requests, self.cache), part);
        true
    }

    // ---- bands

    /// Read the next block of a band, and write the band after its last block. False if it waits.
    fn read_band(&mut self, index: u32, band: u32) -> bool {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        if set.has_failed() {
            self.finish_op(index);
            return false;
        }
        let block = Band::of(set, &op, band);
        let column = op.of_move().begun;
        if op.has_failed() {
            // The last block that was read is lost.
            self.ops[index].outcome = Outcome::Fine;
            self.ops[index].lose_column(column - 1);
            let run = op.work().expect("taken at its start");
            let bytes = u32::try_from(block.len.bytes().get()).expect("a block is small");
            self.push_copy(index, run.at + block.place(column - 1).bytes(), PoolOffset::ZERO, bytes);
            return false;
        }
        let Extent { at, .. } = op.extent();
        if column < block.columns {
            let place = block.place(column);
            let old = set.shape().on(Side::Old);
            if (at + place).offset() >= old.capacity() {
                // It is zero.
                self.ops[index].set_parts_begun(column + 1);
                return true;
            }
            let rows = (TaskPace::Full, set.rows_max());
            let (range, _) = part_of(old, Side::Old, (at + place, block.len), rows, 0).expect("it has one block");
            return self.start_part(index, Side::Old, range, place.bytes()) && self.ops[index].pending == 0;
        }
        let (range, from) = block.rows(set, at);
        self.ops[index].phase = Phase::Writing;
        if !self.start_part(index, Side::New, range, from) {
            self.ops[index].phase = Phase::ReadingOld;
        }
        false
    }

    /// A band is on the members: enter what it lacks, and take the next one.
    fn band_written(&mut self, index: u32, band: u32) -> bool {
        let op = self.ops[index];
        let set = self.sets.get(op.set);
        let block = Band::of(set, &op, band);
        if !op.of_move().lost.is_empty() && !self.call.planted().has(Flaw::LostBecomesZero) {
            self.record_lost_columns(index, &block);
        }
        self.ops[index].phase = if band + 1 == block.bands { Phase::Recording } else { Phase::ReadingOld };
        self.ops[index].move_band(band + 1);
        true
    }

    /// Blocks that no member had are lost at their new places, and no redundancy restores them.
    fn record_lost_columns(&mut self, index: u32, band: &Band) {
        let op = self.ops[index];
        let Extent { at, .. } = op.extent();
        for column in op.of_move().lost {
            let lost = at + band.place(u32::from(column.0));
            let mut places = [(Slot(0), MemberLba::ZERO); MEMBERS_MAX as usize];
            let mut count = 0;
            let mut add = |place: (Slot, MemberLba)| {
                places[count] = place;
                count += 1;
            };
            match self.sets.get(op.set).shape().on(Side::New) {
                Geometry::Parity(parity) => {
                    let (stripe, column, row) = parity.locate(lost);
                    let here = parity.member_lba(stripe, row);
                    add((parity.slot_of(stripe, column), here));
                    add((parity.p_slot(stripe), here));
                    parity.q_slot(stripe).into_iter().for_each(|q| add((q, here)));
                }
                Geometry::Mirror(mirror) => mirror.copies(lost).for_each(|copy| add((copy.slot, copy.lba))),
                Geometry::Striped(striped) => add((striped.map(lost).slot, striped.map(lost).lba)),
                Geometry::Linear(_) | Geometry::Passthrough(_) => unreachable!("their data does not move"),
            }
            for (slot, lba) in &places[..count] {
                let Some(member) = self.sets.get(op.set).place(*slot).member() else { continue };
                let recorded = self.sets.record_lost((op.set, Side::New), member, *lba, band.len, &mut self.call);
                if !recorded && !self.fail_member((op.set, member), FailReason::BadBlockLogFull) {
                    // It must not become good.
                    self.ops[index].fail(ReplyStatus::IoError);
                }
            }
        }
    }
}

/// One block of each column of a new stripe, or one block of a set without parity.
struct Band {
    /// Number of bands of the range.
    bands: u32,
    columns: u32,
    /// Its first sector in the range, the distance between two columns, and the length of a block.
    from: Sectors,
    chunk: Sectors,
    len: Sectors,
}

impl Band {
    /// The band of a move with this number.
    fn of(set: &Set, op: &Op, number: u32) -> Self {
        let (block, whole) = (set.block().sectors(), op.extent().len);
        let Geometry::Parity(parity) = set.shape().on(Side::New) else {
            let bands = narrow(whole / block.get());
            return Self { bands, columns: 1, from: block * u64::from(number), chunk: whole, len: block };
        };
        let (chunk, stripe) = (parity.chunk(), parity.full_stripe());
        let of_stripe = chunk.get() / block.get();
        let (in_unit, row) = (u64::from(number) / of_stripe, u64::from(number) % of_stripe);
        Self {
            bands: narrow(Sectors(whole.get() / stripe.get() * of_stripe)),
            columns: parity.data_columns().into(),
            from: stripe * in_unit + block * row,
            chunk,
            len: block,
        }
    }

    /// The place of a column's block in the range.
    fn place(&self, column: u32) -> Sectors {
        self.from + self.chunk * u64::from(column)
    }

    /// The sectors that are written, and their place in the range that begins at `at`.
    fn rows(&self, set: &Set, at: SetLba) -> (HostRange, Bytes) {
        let start = at + self.from;
        let range = match set.shape().on(Side::New) {
            Geometry::Parity(parity) => {
                let (stripe, _, row) = parity.locate(start);
                let part = Part::whole(narrow(row), narrow(row + self.len));
                let columns = Columns::Named { first: 0, count: parity.data_columns() };
                HostRange::Rows(StripeRows::new(Side::New, stripe, part, columns))
            }
            _ => HostRange::Extent(Extent::new(Side::New, start, self.len)),
        };
        (range, self.from.bytes())
    }
}

/// The part of a range with this number, and its place in the range; none if there are fewer.
fn part_of(
    geometry: &Geometry,
    side: Side,
    (at, len): (SetLba, Sectors),
    (pace, rows_max): (TaskPace, u32),
    number: u32,
) -> Option<(HostRange, Bytes)> {
    if len.is_zero() {
        return None;
    }
    if let Geometry::Parity(parity) = geometry {
        let rows_max = Sectors(pace.rows(rows_max).into());
        let segment = parity.split(at, len, rows_max).nth(number as usize)?;
        let columns = Columns::Named { first: segment.first_column, count: segment.columns };
        let part = Part::whole(narrow(segment.lo), narrow(segment.hi));
        let rows = StripeRows::new(side, segment.stripe, part, columns);
        return Some((HostRange::Rows(rows), (segment.set_lba - at).bytes()));
    }
    // No part crosses a region, and none has more commands than an operation may.
    let chunk = match geometry {
        Geometry::Mirror(mirror) => mirror.chunk(),
        Geometry::Striped(striped) => Some(striped.chunk()),
        Geometry::Parity(_) | Geometry::Linear(_) | Geometry::Passthrough(_) => None,
    };
    let copies = if let Geometry::Mirror(mirror) = geometry { u64::from(mirror.copy_count()) } else { 1 };
    let most = chunk.map_or(Sectors(REGION_SECTORS), |chunk| chunk * (u64::from(OP_COMMANDS_MAX) / copies / 2).max(1));
    let most = most.min(Sectors(pace.rows(u32::MAX).into()));
    let part_at = |from: Sectors| {
        let in_region = Sectors(REGION_SECTORS - (at + from).get() % REGION_SECTORS);
        (len - from).min(most).min(in_region)
    };
    let from = (0..number).fold(Sectors::ZERO, |from, _| from + part_at(from));
    let part = part_at(from);
    (!part.is_zero()).then(|| (HostRange::Extent(Extent::new(side, at + from, part)), from.bytes()))
}
