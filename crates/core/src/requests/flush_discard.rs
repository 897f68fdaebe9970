//! Requests without payload: flush and discard. Each becomes operations, one set or one unit after the other.

use openraid_units::{Sectors, SetId, SetLba};

use crate::array::member::Member;
use crate::array::sets::Sets;
use crate::call::Base;
use crate::geometry::Geometry;
use crate::io::state::footprint::{narrow, Columns, Extent, StripeRows};
use crate::io::state::op::{HostRange, Op};
use crate::io::state::search::Part;
use crate::limits::REGION_SECTORS;
use crate::planted::Flaw;
use crate::requests::Requests;

impl Requests {
    /// Number of requests without payload that need operations.
    #[inline(always)]
    pub(crate) fn payloadless_len(&self) -> usize {
        self.payloadless.len()
    }

    /// The first request without payload.
    pub(crate) fn first_payloadless(&self) -> Option<u32> {
        self.payloadless.front()
    }

    /// All operations of the first of them are made: it leaves the queue.
    pub(crate) fn leave_payloadless(&mut self) {
        self.payloadless.pop();
    }

    /// The first of them waits for the cache: the others have their turns before it.
    pub(crate) fn end_payloadless_turn(&mut self) {
        if let Some(first) = self.payloadless.pop() {
            self.payloadless.push(first);
        }
    }
}

/// The operation that discards the first part of an extent, and the length of that part. There is no operation if
/// the members cannot keep parity right.
pub(crate) fn discard_op(
    sets: &Sets,
    base: &Base,
    request: u32,
    set_id: SetId,
    at: SetLba,
    len: Sectors,
) -> (Sectors, Option<Op>) {
    let (set, channels) = (sets.get(set_id), &base.channels);
    let op = |range| Op::discard(set_id, range).for_request(request);
    let info = |m: &Member| channels.get(m.drive()).map(|c| c.info());
    let reach = set.shape().at(at);
    let side = reach.side();
    if let Geometry::Parity(parity) = reach.geometry() {
        let trusted = base.planted.has(Flaw::DiscardTrusted)
            && set.members().iter().filter(|m| m.is_active()).all(|m| info(m).is_some_and(|i| i.discard));
        let safe = trusted || channels.discards_to_zeroes(set);
        let (stripe, column, within) = parity.locate(at);
        let to_end = parity.full_stripe() - (parity.chunk() * u64::from(column) + within);
        if !safe || column != 0 || !within.is_zero() || len < to_end {
            return (len.min(to_end), None);
        }
        let part = Part::whole(0, narrow(parity.chunk()));
        return (to_end, Some(op(HostRange::Rows(StripeRows::new(side, stripe, part, Columns::All)))));
    }
    let in_region = Sectors(REGION_SECTORS - at.get() % REGION_SECTORS);
    let len = len.min(in_region);
    let any = set.members().iter().any(|m| m.is_active() && info(m).is_some_and(|i| i.discard));
    (len, any.then(|| op(HostRange::Extent(Extent::new(side, at, len)))))
}
