//! The way up from operations: what they report to the layers above, and the operations that are over. The journal
//! reports the pieces whose entry is durable in the same way. The controller hands everything on before the next
//! operation moves, reports first: a piece knows its errors when its last part ends.

use alloc::collections::VecDeque;
use openraid_units::{Sectors, SetId, SetLba};

use crate::actions::ReplyStatus;
use crate::array::set::Set;
use crate::geometry::shape::Side;
use crate::io::state::footprint::{Columns, Extent, Footprint};
use crate::io::state::op::{DestageData, Op, OpKind};
use crate::limits::MEMBERS_MAX;
use crate::slab::Queue;

/// The owner of an operation's work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndedFor {
    /// A request without pieces.
    Request(u32),
    /// A dirty unit of the cache.
    Unit(SetId, DestageData),
    /// Gathered writes of several requests.
    Gather(u32),
}

/// The range that an operation has written past the cache: `len` sectors from `at`, and the same in further columns,
/// each a chunk later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Past {
    pub(in crate::io) side: Side,
    pub at: SetLba,
    pub len: Sectors,
    pub columns: u16,
}

impl Past {
    /// The side of the shape on which it is.
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// For tests: sectors of one column.
    #[cfg(test)]
    pub(crate) const fn of(side: Side, at: SetLba, len: Sectors) -> Self {
        Self { side, at, len, columns: 1 }
    }
}

/// What an operation reports while it is in work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OpReport {
    /// A part of a piece has failed.
    Failed(u32, ReplyStatus),
    /// A piece must be read again: with other frames, if a command that was given up may still write to these.
    ReadAgain { piece: u32, abandons_frames: bool },
    /// Clean lines of the cache have other bytes than the members.
    Stale(SetId, Past),
    /// A write past the cache has ended, or there is room in the journal: pieces may wait for either.
    MayContinue,
    /// A drive that had not answered no longer uses frames of hosts.
    FramesBack,
}

/// Maximum number of reports of one call: an operation reports a range for each member, and a few things besides.
const REPORTS_MAX: usize = MEMBERS_MAX as usize + 8;

/// See the module header. First in, first out.
#[derive(Debug)]
pub(crate) struct EndedOps {
    /// Are there reports, or ends of others? One look tells it, because nearly always there are none.
    has_rare: bool,
    reports: VecDeque<OpReport>,
    /// Nearly all entries: pieces with an operation, or a wait for the journal, that is over. Their errors are reports.
    pieces: Queue,
    others: VecDeque<(EndedFor, Option<ReplyStatus>)>,
}

impl EndedOps {
    /// Room for the maximum number of operations and pieces.
    pub(crate) fn new(ops_max: u32, pieces_max: u32) -> Self {
        Self {
            has_rare: false,
            reports: VecDeque::with_capacity(REPORTS_MAX),
            pieces: Queue::new(ops_max + pieces_max),
            others: VecDeque::with_capacity(ops_max as usize),
        }
    }

    /// Report something to the layers above.
    pub(crate) fn report(&mut self, report: OpReport) {
        assert!(self.reports.len() < REPORTS_MAX, "reports are handed on after each call");
        self.reports.push_back(report);
        self.has_rare = true;
    }

    /// The next report.
    #[inline(always)]
    pub(crate) fn take_report(&mut self) -> Option<OpReport> {
        self.reports.pop_front()
    }

    /// An operation for this piece has ended.
    #[inline(always)]
    pub(crate) fn push_piece(&mut self, piece: u32) {
        self.pieces.push(piece);
    }

    /// As [`EndedOps::push_piece`], with the error of the operation.
    #[inline(always)]
    pub(crate) fn end_part(&mut self, piece: u32, error: Option<ReplyStatus>) {
        if let Some(error) = error {
            self.report(OpReport::Failed(piece, error));
        }
        self.push_piece(piece);
    }

    /// The next of the pieces.
    #[inline(always)]
    pub(crate) fn pop_piece(&mut self) -> Option<u32> {
        self.pieces.pop()
    }

    /// Is nothing to be handed on?
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() & !self.has_rare
    }

    /// Are there pieces to hand on?
    #[inline(always)]
    pub(crate) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// May there be something other than pieces?
    #[inline(always)]
    pub(crate) fn has_rare(&self) -> bool {
        self.has_rare
    }

    /// OpReport and ends of others were handed on: look whether any is left.
    pub(crate) fn note_rest(&mut self) {
        self.has_rare = !(self.reports.is_empty() && self.others.is_empty());
    }

    /// An operation for something other than a piece has ended.
    pub(crate) fn push(&mut self, owner: EndedFor, error: Option<ReplyStatus>) {
        self.others.push_back((owner, error));
        self.has_rare = true;
    }

    /// The next of the others.
    pub(crate) fn pop_other(&mut self) -> Option<(EndedFor, Option<ReplyStatus>)> {
        self.others.pop_front()
    }
}

impl Op {
    /// The range that it has written past the cache, if any.
    pub(crate) fn written_past(&self, set: &Set) -> Option<Past> {
        match self.kind {
            OpKind::Write | OpKind::Discard | OpKind::RowWrite => {}
            _ => return None,
        }
        match &self.footprint {
            Footprint::Extent(Extent { side, at, len }) => Some(Past { side: *side, at: *at, len: *len, columns: 1 }),
            Footprint::Rows(rows) => {
                let (side, parity) = (rows.side, self.parity(set));
                let at = rows.set_lba(parity);
                Some(match rows.columns {
                    Columns::Named { .. } | Columns::Gathered { .. } => {
                        let (lo, hi) = rows.part.range();
                        Past { side, at, len: Sectors(u64::from(hi - lo)), columns: rows.named().1 }
                    }
                    Columns::All | Columns::Dirty { .. } => Past { side, at, len: parity.full_stripe(), columns: 1 },
                })
            }
            Footprint::Set | Footprint::Stretch(_) | Footprint::Member(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::geometry::shape::{Shape, Side};
    use crate::geometry::{Level, SetSpec};
    use crate::io::state::footprint::StripeRows;
    use crate::io::state::search::Part;
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, StripeIndex};

    #[test]
    fn the_range_written_past_the_cache_is_known_for_each_kind() {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
        let set = Set::new(ArrayId(0), Shape::of(&spec), (BlockSize::B512, 8), &Limits::small());
        let rows = |lo, hi, columns| {
            Footprint::Rows(StripeRows { side: Side::Old, stripe: StripeIndex(2), part: Part::whole(lo, hi), columns })
        };
        let named = rows(2, 6, Columns::Named { first: 1, count: 2 });
        let range = |at, len, columns| Some(Past { side: Side::Old, at: SetLba(at), len: Sectors(len), columns });
        let past = |kind, footprint| Op::new(kind, SetId(0), footprint).written_past(&set);
        // Four rows in each of two columns. Stripe 2 begins with sector 2 x 24, its second column 8 later.
        assert_eq!(past(OpKind::RowWrite, named), range(48 + 8 + 2, 4, 2));
        // The whole stripe: three chunks of data.
        let whole = rows(0, 8, Columns::All);
        assert_eq!(past(OpKind::Discard, whole), range(48, 24, 1));
        let extent = Footprint::Extent(Extent { side: Side::Old, at: SetLba(5), len: Sectors(3) });
        for kind in [OpKind::Write, OpKind::Discard] {
            assert_eq!(past(kind, extent), range(5, 3, 1));
        }
        let others = [(OpKind::Read, extent), (OpKind::RowRead, named), (OpKind::Flush, Footprint::Set)];
        for (kind, footprint) in others.into_iter().chain([(OpKind::RowDestage, whole), (OpKind::Rebuild, whole)]) {
            assert_eq!(past(kind, footprint), None, "{kind:?}");
        }
    }

    #[test]
    fn ends_and_news_are_handed_on_in_their_order() {
        let mut ended = EndedOps::new(4, 4);
        (0..4).for_each(|request| ended.push(EndedFor::Request(request), None));
        for request in 0..4 {
            assert!(ended.has_rare());
            assert!(matches!(ended.pop_other(), Some((EndedFor::Request(number), None)) if number == request));
        }
        ended.note_rest();
        assert!(ended.is_empty());
        let reports = [OpReport::MayContinue, OpReport::FramesBack, OpReport::Failed(3, ReplyStatus::IoError)];
        reports.into_iter().for_each(|report| ended.report(report));
        assert!(!ended.is_empty());
        assert!(core::iter::from_fn(|| ended.take_report()).eq(reports));
        ended.note_rest();
        assert!(ended.is_empty());
    }

    #[test]
    #[should_panic(expected = "reports are handed on after each call")]
    fn news_that_are_not_handed_on_are_found() {
        let mut ended = EndedOps::new(4, 4);
        (0..=REPORTS_MAX).for_each(|_| ended.report(OpReport::MayContinue));
    }
}
