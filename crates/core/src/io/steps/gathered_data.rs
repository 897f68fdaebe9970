//! The data of gathered writes: copied from the frames of their pieces into the work frames of their operation, so that
//! each member gets one command. `requests/gather.rs` has the rest.

use openraid_units::Sectors;

use crate::io::state::footprint::narrow;
use crate::io::state::row_frames::RowFrames;
use crate::io::steps::op_io::OpIo;

impl OpIo<'_> {
    /// The rows of a gathered write are planned, and have buffers: copy what its parts have of these rows.
    #[cold]
    pub(super) fn stage_gathered(&mut self, index: u32, gather: u32) {
        let (op, requests) = (self.ops[index], self.requests);
        let (frames, rows) = (RowFrames::of(&op), op.rows_of());
        let (from, to) = (rows.part.from(), rows.part.to());
        for part in requests.gathered_parts(gather) {
            let mut at = part.at();
            while at < part.end() {
                let set = self.sets.get(op.set);
                let (geometry, parity) = (op.geometry(set), op.parity(set));
                let (stripe, column, row) = parity.locate(at);
                let len = (part.end() - at).min(parity.chunk() - row);
                let (lo, hi) = (narrow(row).max(from), narrow(row + len).min(to));
                let slot = parity.slot_of(stripe, column);
                if lo < hi && rows.band().contains(slot) {
                    let above = Sectors(u64::from(lo)) - row;
                    let old = part.from() + ((at - part.at()) + above).bytes();
                    let new = frames.named(geometry, slot) + Sectors(u64::from(lo - from)).bytes();
                    let bytes = Sectors(u64::from(hi - lo)).bytes().get();
                    self.push_copy(index, new, old, u32::try_from(bytes).expect("less than a chunk"));
                }
                at += len;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use openraid_units::{ArrayId, ArrayOffset, Token};

    use crate::actions::{DriveOp, IoClass, ReplyStatus};
    use crate::events::{BlockRequest, RequestKind};
    use crate::io::steps::fixture::Drives;
    use crate::limits::GATHER_DELAY;

    const KIND: RequestKind = RequestKind::Write { fua: false };

    /// Reads and writes of payload areas that the drives were given until now and have not answered.
    fn commands(drives: &Drives) -> [usize; 2] {
        let ops: Vec<DriveOp> =
            drives.out.iter().filter(|c| c.class == IoClass::Foreground).map(|command| command.op).collect();
        let reads = ops.iter().filter(|op| **op == DriveOp::Read).count();
        [reads, ops.iter().filter(|op| matches!(op, DriveOp::Write { .. })).count()]
    }

    /// The limits allow 16 KiB of rows at a time: a chunk of 64 KiB takes four turns.
    #[test]
    fn two_requests_that_cover_a_stripe_cost_no_reads_and_end_together() {
        let mut drives = Drives::new();
        let len = 64 << 10;
        for number in 0..2 {
            let (array, offset) = (ArrayId(0), ArrayOffset(number * len));
            drives.controller.submit(BlockRequest { token: Token(number), array, kind: KIND, offset, len }).unwrap();
        }
        drives.rest();
        let mut total = [0, 0];
        while !drives.out.is_empty() {
            let [reads, writes] = commands(&drives);
            total = [total[0] + reads, total[1] + writes];
            drives.answer(|_| Ok(()));
        }
        assert_eq!(total, [0, 4 * 3]);
        assert_eq!(drives.replies, [(Token(0), ReplyStatus::Ok), (Token(1), ReplyStatus::Ok)]);
    }

    #[test]
    fn a_write_that_follows_one_in_work_is_held_until_that_has_ended_and_its_host_had_time_for_more() {
        let mut drives = Drives::new();
        drives.write(Token(1), 0);
        let before = drives.out.len();
        drives.write(Token(2), 4096);
        assert_eq!(drives.out.len(), before, "it is held");
        drives.answer_all();
        assert_eq!(drives.replies, [(Token(1), ReplyStatus::Ok)]);
        drives.now = drives.now + GATHER_DELAY;
        drives.rest();
        drives.answer_all();
        assert_eq!(drives.replies[1..], [(Token(2), ReplyStatus::Ok)]);
    }
}
