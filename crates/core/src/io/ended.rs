//! Operations that are over, for the layers above: pieces, requests, the cache. The journal reports the pieces whose
//! entry is durable in the same way. The controller hands all of them on before the next operation moves.

use alloc::collections::VecDeque;
use openraid_units::{Sectors, SetId, SetLba};

use crate::actions::ReplyStatus;
use crate::array::set::Set;
use crate::io::footprint::{Columns, Extent, Footprint};
use crate::io::op::{DestageData, Op, OpKind};
use crate::slab::Queue;

/// The owner of an operation's work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndedFor {
    /// A piece of a request.
    Piece(u32),
    /// A request without pieces.
    Request(u32),
    /// A dirty unit of the cache.
    Unit(SetId, DestageData),
}

/// The range that an operation has written past the cache: `len` sectors from `at`, and the same in further columns,
/// each a chunk later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Past {
    pub at: SetLba,
    pub len: Sectors,
    pub columns: u16,
}

/// An operation that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub owner: EndedFor,
    pub error: Option<ReplyStatus>,
    /// Clean lines of the cache drop this range, whether the operation succeeded or not.
    pub past: Option<(SetId, Past)>,
}

impl Ended {
    /// A part of the work for this owner has ended.
    pub(crate) const fn new(owner: EndedFor, error: Option<ReplyStatus>) -> Self {
        Self { owner, error, past: None }
    }
}

/// See the module header. First in, first out.
#[derive(Debug)]
pub(crate) struct EndedOps {
    /// Nearly all entries: pieces with an operation, or a wait for the journal, that is over, and nothing to drop from
    /// the cache. The piece has the error.
    pieces: Queue,
    others: VecDeque<Ended>,
}

impl EndedOps {
    /// Room for the maximum number of operations and pieces.
    pub(crate) fn new(ops_max: u32, pieces_max: u32) -> Self {
        Self { pieces: Queue::new(ops_max + pieces_max), others: VecDeque::with_capacity(ops_max as usize) }
    }

    /// An operation for this piece has ended.
    #[inline(always)]
    pub(crate) fn push_piece(&mut self, piece: u32) {
        self.pieces.push(piece);
    }

    /// The next of the pieces.
    #[inline(always)]
    pub(crate) fn pop_piece(&mut self) -> Option<u32> {
        self.pieces.pop()
    }

    /// Are all entries handed on?
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.others.is_empty()
    }

    pub(crate) fn push(&mut self, ended: Ended) {
        self.others.push_back(ended);
    }

    /// Are there entries other than pieces?
    #[inline(always)]
    pub(crate) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// The next of the others.
    pub(crate) fn pop_other(&mut self) -> Option<Ended> {
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
            Footprint::Extent(Extent { at, len }) => Some(Past { at: *at, len: *len, columns: 1 }),
            Footprint::Rows(rows) => {
                let (parity, at) = (set.parity(), rows.set_lba(set.parity()));
                Some(match rows.columns {
                    Columns::Named { count, .. } => {
                        let (lo, hi) = rows.part.range();
                        Past { at, len: Sectors(u64::from(hi - lo)), columns: count }
                    }
                    Columns::All | Columns::Dirty { .. } => Past { at, len: parity.full_stripe(), columns: 1 },
                })
            }
            Footprint::Set | Footprint::Stretch(_) | Footprint::Member(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::geometry::{Geometry, Level, SetSpec};
    use crate::io::footprint::StripeRows;
    use crate::io::search::Part;
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, StripeIndex};

    #[test]
    fn the_range_written_past_the_cache_is_known_for_each_kind() {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
        let set = Set::new(ArrayId(0), Geometry::new(&spec).unwrap(), (BlockSize::B512, 8), &Limits::small());
        let rows = |lo, hi, columns| {
            Footprint::Rows(StripeRows { stripe: StripeIndex(2), part: Part::whole(lo, hi), columns })
        };
        let named = rows(2, 6, Columns::Named { first: 1, count: 2 });
        let past = |kind, footprint| Op::new(kind, SetId(0), footprint).written_past(&set);
        // Four rows in each of two columns. Stripe 2 begins with sector 2 x 24, its second column 8 later.
        assert_eq!(past(OpKind::RowWrite, named), Some(Past { at: SetLba(48 + 8 + 2), len: Sectors(4), columns: 2 }));
        // The whole stripe: three chunks of data.
        let whole = rows(0, 8, Columns::All);
        assert_eq!(past(OpKind::Discard, whole), Some(Past { at: SetLba(48), len: Sectors(24), columns: 1 }));
        let extent = Footprint::Extent(Extent { at: SetLba(5), len: Sectors(3) });
        for kind in [OpKind::Write, OpKind::Discard] {
            assert_eq!(past(kind, extent), Some(Past { at: SetLba(5), len: Sectors(3), columns: 1 }));
        }
        let others = [(OpKind::Read, extent), (OpKind::RowRead, named), (OpKind::Flush, Footprint::Set)];
        for (kind, footprint) in others.into_iter().chain([(OpKind::RowDestage, whole), (OpKind::Rebuild, whole)]) {
            assert_eq!(past(kind, footprint), None, "{kind:?}");
        }
    }

    #[test]
    fn news_are_handed_on_in_their_order() {
        let mut ended = EndedOps::new(4, 4);
        (0..4).for_each(|request| ended.push(Ended::new(EndedFor::Request(request), None)));
        for request in 0..4 {
            assert!(ended.has_others());
            assert!(matches!(ended.pop_other(), Some(Ended { owner: EndedFor::Request(own), .. }) if own == request));
        }
        assert!(!ended.has_others());
    }
}
