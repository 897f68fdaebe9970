//! News of operations that are over, for what stands above operations: pieces, requests, the cache. The journal leaves news of
//! the pieces whose entry is durable in the same way. The controller hands all of them on before the next operation moves.

use alloc::collections::VecDeque;
use openraid_units::{Sectors, SetId, SetLba};

use crate::actions::ReplyStatus;
use crate::array::set::Set;
use crate::io::op::{DestageData, Op, OpKind};
use crate::slab::Queue;

/// For what an operation was.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndedFor {
    /// A piece of a request.
    Piece(u32),
    /// A request without pieces.
    Request(u32),
    /// A dirty unit of the cache.
    Unit(SetId, DestageData),
}

/// What an operation has written past the cache: `len` sectors from `at`, and in as many columns, each a chunk after the
/// one before.
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
    /// Clean lines of the cache forget this, whether the operation succeeded or not.
    pub past: Option<(SetId, Past)>,
}

impl Ended {
    /// A part of the work for this owner is over.
    pub(crate) const fn new(owner: EndedFor, error: Option<ReplyStatus>) -> Self {
        Self { owner, error, past: None }
    }
}

/// See the module header. First in, first out.
#[derive(Debug)]
pub(crate) struct EndedOps {
    /// Pieces for which an operation, or the wait for the journal, is over and nothing is to be forgotten: nearly all.
    /// The piece has the error.
    pub pieces: Queue,
    others: VecDeque<Ended>,
}

impl EndedOps {
    /// Room for the news of as many operations and pieces as there may be.
    pub(crate) fn new(ops_max: u32, pieces_max: u32) -> Self {
        Self { pieces: Queue::new(ops_max + pieces_max), others: VecDeque::with_capacity(ops_max as usize) }
    }

    pub(crate) fn push(&mut self, ended: Ended) {
        self.others.push_back(ended);
    }

    /// Are there others than those of [`EndedOps::pieces`]?
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
    /// What it has written past the cache, if anything.
    pub(crate) fn written_past(&self, set: &Set) -> Option<Past> {
        match self.kind {
            OpKind::Write => Some(Past { at: self.at, len: self.len, columns: 1 }),
            OpKind::Discard if !self.is_by_rows(set) => Some(Past { at: self.at, len: self.len, columns: 1 }),
            OpKind::RowWrite => {
                Some(Past { at: self.at, len: Sectors(u64::from(self.hi - self.lo)), columns: self.columns })
            }
            OpKind::Discard => {
                let parity = set.parity();
                let at = parity.set_lba(self.stripe, 0, Sectors::ZERO);
                Some(Past { at, len: parity.full_stripe(), columns: 1 })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::geometry::{Geometry, Level, SetSpec};
    use crate::limits::Limits;
    use openraid_units::{ArrayId, BlockSize, StripeIndex};

    #[test]
    fn what_was_written_past_the_cache_is_named_by_kind() {
        let member_size = Sectors(512);
        let member_sizes = &[member_size; 4];
        let spec = SetSpec { level: Level::Raid5, members: 4, chunk: Sectors(8), layout: 2, member_size, member_sizes };
        let controller = Controller::new(Limits::small()).unwrap();
        let set = controller.new_set(ArrayId(0), Geometry::new(&spec).unwrap(), BlockSize::B512, 8);
        let op =
            |kind| Op { at: SetLba(50), stripe: StripeIndex(2), lo: 2, hi: 6, columns: 3, ..Op::new(kind, SetId(0)) };
        let past = |kind| op(kind).written_past(&set);
        // Four rows in each of three columns.
        assert_eq!(past(OpKind::RowWrite), Some(Past { at: SetLba(50), len: Sectors(4), columns: 3 }));
        // The whole stripe: three chunks of data.
        assert_eq!(past(OpKind::Discard), Some(Past { at: SetLba(48), len: Sectors(24), columns: 1 }));
        for kind in [OpKind::Read, OpKind::RowRead, OpKind::RowDestage, OpKind::Flush, OpKind::Rebuild] {
            assert_eq!(past(kind), None, "{kind:?}");
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
