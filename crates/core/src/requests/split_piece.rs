//! From a piece of a host request to operations.
//!
//! A request is cut twice. `request_life.rs` cuts it into pieces, which have frames and payload. This file cuts a piece into
//! operations. Each of them stays inside one exclusion unit: a stripe of a parity set, or 1 MiB of any other set. One
//! call makes one operation, and pieces take turns, so that a large request does not delay others. Each part of a piece
//! is first offered to the cache, which takes it, makes the piece wait, or lets it pass. A part that passes becomes an
//! operation on an extent. On a parity set, a write, or a read that may have to recover data, is processed row by row
//! instead.

use openraid_units::{Sectors, SetId, SetLba};

use crate::array::op_epochs::Epoch;
use crate::array::sets::Sets;
use crate::events::RequestKind;
use crate::geometry::Geometry;
use crate::io::state::footprint::{narrow, Columns, Extent, StripeRows};
use crate::io::state::op::{Edges, HostRange, Op, OpPayload};
use crate::io::state::search::Part;
use crate::limits::{OP_COMMANDS_MAX, REGION_SECTORS, ZERO_SECTORS};
use crate::requests::piece::{Piece, Reading, RowProgress};
use crate::requests::request::Request;
use crate::requests::Requests;

impl Requests {
    /// Are all operations of a piece made, or are no more needed?
    #[inline]
    pub(crate) fn is_split(&self, index: u32) -> bool {
        self.pieces[index].is_split()
    }

    /// Will operations of this set be made for places that were looked up in this epoch?
    pub(crate) fn has_looked_up(&self, set: SetId, epoch: Epoch) -> bool {
        let is_walk = |index: u32| {
            let progress = self.row_progress[index as usize].as_ref();
            progress.is_some_and(|progress| progress.base.0 == set && progress.epoch == epoch)
        };
        let walks = |(index, piece): (u32, &Piece)| piece.is_by_rows() && !piece.has_failed() && is_walk(index);
        self.pieces.iter().any(walks) || self.has_gathers_of(set)
    }

    /// The next row operation of a piece that is processed by rows, if there is one.
    #[inline(always)]
    pub(crate) fn next_row_op(&mut self, index: u32, sets: &Sets) -> Option<Op> {
        if !self.pieces[index].is_by_rows() {
            return None;
        }
        let RowProgress { left, base: (set, base), side, from: walk_start, epoch } =
            self.row_progress[index as usize].as_mut().expect("a piece that is processed by rows has its progress");
        let (set, base, side, walk_start, epoch) = (*set, *base, *side, *walk_start, *epoch);
        let segment = left.next();
        // The last one ends the rows.
        if left.is_over() {
            self.pieces[index].end_rows();
        }
        let segment = segment?;
        let from = walk_start + (segment.set_lba - base);
        let part = Part::whole(narrow(segment.lo), narrow(segment.hi));
        let columns = Columns::Named { first: segment.first_column, count: segment.columns };
        let rows = StripeRows::new(side, segment.stripe, part, columns);
        let parity = sets.get(set).shape().parity(side);
        let last_column = segment.set_lba + parity.chunk() * u64::from(segment.columns - 1);
        let end = walk_start + ((last_column + segment.rows()) - base);
        let piece = &mut self.pieces[index];
        piece.begin_op();
        let request = &self.table[piece.request()];
        Some(piece_op((index, piece, request), set, HostRange::Rows(rows), (from, end)).in_epoch(epoch))
    }

    /// The next operation on `len` sectors of one side of a set from `at`, the position of the piece's `split`; advances `split`. If
    /// the extent must be processed by rows, there is none, and the piece has its progress.
    #[inline(always)]
    pub(crate) fn next_extent_op(
        &mut self,
        index: u32,
        sets: &Sets,
        set_id: SetId,
        (at, len): (SetLba, Sectors),
        is_read: bool,
    ) -> Option<Op> {
        let set = sets.get(set_id);
        let piece = &mut self.pieces[index];
        let request = &self.table[piece.request()];
        let from = piece.split();
        let reach = set.shape().at(at);
        let (geometry, side) = (reach.geometry(), reach.side());
        if let Geometry::Parity(parity) = geometry {
            let whole = set.is_whole() && !set.has_bad();
            if !is_read || !whole || piece.reading() == Some(Reading::ByRows) {
                let rows_max = Sectors(u64::from(set.rows_max()));
                let rows = parity.split(at, len, rows_max);
                piece.begin_rows(len);
                let (base, epoch) = ((set_id, at), set.ops().now());
                self.row_progress[index as usize] = Some(RowProgress { left: rows, base, side, from, epoch });
                return None;
            }
        }
        let len = op_len(geometry, (at, len), is_read, piece.run().is_some());
        debug_assert!((len % set.block().sectors()).is_zero());
        piece.split_off(len);
        piece.begin_op();
        let range = HostRange::Extent(Extent::new(side, at, len));
        let op = piece_op((index, piece, request), set_id, range, (from, from + len));
        debug_assert!(op.payload() != OpPayload::None);
        Some(op)
    }
}

/// An operation for the part of a piece of this request from `from` to `end`, which is this range of a set.
#[inline(always)]
fn piece_op(
    (index, piece, request): (u32, &Piece, &Request),
    set: SetId,
    range: HostRange,
    (from, end): (Sectors, Sectors),
) -> Op {
    let payload = match piece.run() {
        Some(run) => OpPayload::Host(run.at + from.bytes()),
        None => {
            let kind = request.kind();
            OpPayload::Zero { may_discard: matches!(kind, RequestKind::WriteZeroes { may_discard: true, .. }) }
        }
    };
    let op = if request.is_read() {
        Op::read(set, range, payload)
    } else {
        Op::write(set, range, payload, edges_of_part(piece, from, end))
    };
    op.for_piece(index, request.is_ahead(), request.is_fua_write())
}

/// The blocks at the ends of the part of a piece from `from` to `end` that must be read before it can be written.
#[inline(always)]
fn edges_of_part(piece: &Piece, from: Sectors, end: Sectors) -> Option<Edges> {
    // Without frames there is no part of a block.
    let (head, tail) = if piece.run().is_some() { piece.skips() } else { (0, 0) };
    let head = if from.is_zero() { head } else { 0 };
    let tail = if end == piece.sectors() { tail } else { 0 };
    (head != 0 || tail != 0).then(|| Edges::new(head, tail))
}

/// Length of the first operation on an extent that is not processed by rows. It has at most [`OP_COMMANDS_MAX`] commands, a
/// write stays within one region, and a write without frames has no more zeroes than the zero region.
#[inline(always)]
fn op_len(geometry: &Geometry, (at, len): (SetLba, Sectors), is_read: bool, has_frames: bool) -> Sectors {
    let len = match geometry {
        Geometry::Parity(parity) => len.min(parity.chunk() * u64::from(OP_COMMANDS_MAX - 1)),
        Geometry::Mirror(mirror) => {
            let copies = if is_read { 1 } else { u64::from(mirror.copy_count()) };
            let fragments = (u64::from(OP_COMMANDS_MAX) / copies).max(2) - 1;
            mirror.chunk().map_or(len, |chunk| len.min(chunk * fragments))
        }
        Geometry::Striped(striped) => len.min(striped.chunk() * u64::from(OP_COMMANDS_MAX - 1)),
        Geometry::Linear(_) | Geometry::Passthrough(_) => len,
    };
    if is_read {
        return len;
    }
    // Writes lock ranges, and ranges are within regions.
    let len = len.min(Sectors(REGION_SECTORS - at.get() % REGION_SECTORS));
    if has_frames {
        len
    } else {
        len.min(ZERO_SECTORS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Level, SetSpec};

    const CHUNK: Sectors = Sectors::kib(4);

    fn geometry(level: Level, members: u16, layout: u32, chunk: Sectors) -> Geometry {
        let member_size = Sectors::kib(1 << 20);
        let member_sizes = &alloc::vec![member_size; usize::from(members)];
        Geometry::new(&SetSpec { level, members, chunk, layout, member_size, member_sizes }).unwrap()
    }

    /// Sectors of the first operations on 2 GiB from here: a read, a write, a write of zeroes without frames.
    fn lens(geometry: &Geometry, at: u64) -> [u64; 3] {
        let extent = (SetLba(at), Sectors::kib(2 << 20));
        [(true, true), (false, true), (false, false)].map(|(read, frames)| op_len(geometry, extent, read, frames).get())
    }

    #[test]
    fn an_operation_has_no_more_commands_than_it_may_and_a_write_stays_in_its_region() {
        // 63 chunks of 8 sectors touch at most 64 chunks: one command each.
        let striped = geometry(Level::Raid0, 4, 2, CHUNK);
        assert_eq!(lens(&striped, 0), [504, 504, 504]);
        assert_eq!(lens(&striped, 2040), [504, 8, 8]);
        // Two copies of 31 chunks, which touch 32, are 64 commands; a read has one copy.
        let near = geometry(Level::Raid10, 4, 0x102, CHUNK);
        assert_eq!(lens(&near, 0), [504, 248, 248]);
        assert_eq!(lens(&geometry(Level::Raid5, 4, 2, CHUNK), 3)[0], 504);
    }

    #[test]
    fn a_mirror_without_chunks_is_read_at_once_and_written_region_by_region() {
        let mirror = geometry(Level::Raid1, 2, 0, Sectors::ZERO);
        // The zero region has 256 KiB.
        assert_eq!(lens(&mirror, 0), [4 << 20, REGION_SECTORS, 512]);
        assert_eq!(lens(&mirror, REGION_SECTORS - 100), [4 << 20, 100, 100]);
        assert_eq!(op_len(&mirror, (SetLba(7), Sectors(9)), false, true), Sectors(9), "no longer than the extent");
    }
}
