//! Actions by the clock: slow clients, listeners that pause, and reports of an array's state.

use openraid_core::admin::Health;
use openraid_nbd::server::{chunk_status, Session};
use openraid_nbd::{Extent, MetaContext, Request};
use openraid_sys::Interest;
use openraid_units::{ArrayId, Instant, Nanos};

use super::connection::{Connection, Phase};
use super::{Exports, Shared, LISTENER_CLASS};
use crate::control::Control;
use crate::limits::{
    SLOW_TIME_PRESSED_MAX, STALL_LOOK_INTERVAL, STALL_TIME_MAX, STALL_TIME_PRESSED_MAX, STATUS_AGE_MAX,
};
use crate::slab::Key;

impl Exports {
    /// A request waits for a client: watch that client.
    pub(super) fn watch(&mut self, now: Instant) {
        self.look_at.get_or_insert(now + STALL_LOOK_INTERVAL);
    }

    /// The time of the next call of [`Exports::on_time`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let choosing = self.choosing.front().map(|(at, _)| *at);
        let doors = self.doors.iter().filter_map(|door| door.rests_until).min();
        [choosing, doors, self.look_at].into_iter().flatten().min()
    }

    /// Carry out the actions that are due.
    pub fn on_time(&mut self, shared: &mut Shared) {
        let now = shared.now;
        while let Some((_, key)) = self.choosing.front().copied().filter(|(at, _)| *at <= now) {
            self.choosing.pop_front();
            self.counters.stalled += 1;
            self.close(key, shared);
        }
        for (number, door) in self.doors.iter_mut().enumerate() {
            if door.rests_until.is_some_and(|until| until <= now) {
                door.rests_until = None;
                let _ = shared.epoll.modify(&door.listener, LISTENER_CLASS | number as u64, Interest::READ);
            }
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.look_at = None;
            self.look_for_stalled(shared);
        }
    }

    fn look_for_stalled(&mut self, shared: &mut Shared) {
        let waiting: Vec<Waits> = self
            .table
            .iter()
            .filter(|(_, connection)| connection.waits)
            .map(|(key, connection)| Waits {
                key,
                bytes: connection.held_bytes(),
                requests: connection.requests as usize,
                still: shared.now.since(connection.progress_at),
                behind: shared.now.since(connection.waits_since),
            })
            .collect();
        let bytes: u64 = waiting.iter().map(|waits| waits.bytes).sum();
        let requests: usize = waiting.iter().map(|waits| waits.requests).sum();
        let pressed = bytes > shared.host_bytes / 2 || requests > shared.requests_max / 2;
        for waits in &waiting {
            let must_go = if pressed {
                waits.still >= STALL_TIME_PRESSED_MAX || waits.behind >= SLOW_TIME_PRESSED_MAX
            } else {
                waits.still >= STALL_TIME_MAX
            };
            if must_go {
                self.counters.stalled += 1;
                self.close(waits.key, shared);
            }
        }
        if !waiting.is_empty() {
            self.watch(shared.now);
        }
    }
}

/// A connection that waits for its client.
struct Waits {
    key: Key,
    /// The memory and requests that it holds.
    bytes: u64,
    requests: usize,
    /// How long its client has neither received nor sent a byte, and how long it has been slow.
    still: Nanos,
    behind: Nanos,
}

impl Connection {
    /// Frames and buffers that wait for the client.
    fn held_bytes(&self) -> u64 {
        let streamed = match &self.phase {
            Phase::Serving(serving) => serving
                .stream
                .as_ref()
                .map_or(0, |stream| stream.transfers.iter().map(|transfer| u64::from(transfer.len)).sum()),
            Phase::Negotiating(_) => 0,
        };
        self.output.frame_bytes() + self.output.buffered() as u64 + streamed
    }
}

/// The recent state of the arrays, because clients may ask as often as they like.
#[derive(Debug, Default)]
pub struct StatusCache {
    known: Vec<(ArrayId, Instant, ArrayExtent)>,
}

/// The state of an array, as two extents: whole so far, and the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayExtent {
    /// Bytes that have all their redundancy.
    whole: u64,
    /// The report on the rest.
    rest: u32,
}

impl StatusCache {
    /// The state of an array.
    pub fn extents(&mut self, array: ArrayId, control: &Control, now: Instant) -> ArrayExtent {
        self.known.retain(|(_, at, _)| now.since(*at) < STATUS_AGE_MAX && STATUS_AGE_MAX > Nanos::ZERO);
        if let Some((_, _, extent)) = self.known.iter().find(|(known, _, _)| *known == array) {
            return *extent;
        }
        let whole = control.status(array).map_or(0, |status| status.whole_to.bytes().get());
        let extent = ArrayExtent { whole, rest: flags(array, control) };
        self.known.push((array, now, extent));
        extent
    }
}

/// The worst of an array and its spans.
fn flags(array: ArrayId, control: &Control) -> u32 {
    let Some(status) = control.status(array) else { return Extent::LOST };
    let own = match status.health {
        Health::Optimal => 0,
        Health::Degraded => Extent::DEGRADED,
        Health::Failed => Extent::LOST | Extent::DEGRADED,
    };
    status.spans.iter().fold(own, |worst, span| worst | flags(*span, control))
}

impl ArrayExtent {
    /// Append the answer to a block status request. Everything is reported as allocated, because an array does not know
    /// holes.
    pub fn answer(self, session: &Session, request: &Request, out: &mut Vec<u8>) {
        let length = u32::try_from(request.length.get()).expect("a request has a 32-bit length");
        let count = session.contexts.iter().count();
        for (number, context) in session.contexts.iter().enumerate() {
            let last = number + 1 == count;
            match context {
                MetaContext::Allocation => chunk_status(out, request, context, [Extent { length, status: 0 }], last),
                MetaContext::Degraded => {
                    chunk_status(out, request, context, self.degraded(request.offset.get(), length), last);
                }
            }
        }
    }

    /// The two extents of a range; one of them may be empty.
    fn degraded(self, offset: u64, length: u32) -> [Extent; 2] {
        let whole = self.whole.saturating_sub(offset).min(u64::from(length));
        let whole = u32::try_from(whole).expect("no more than a length");
        [Extent { length: whole, status: 0 }, Extent { length: length - whole, status: self.rest }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_complete_up_to_the_rebuild_frontier_and_degraded_beyond() {
        let state = ArrayExtent { whole: 1000, rest: Extent::DEGRADED };
        let lengths = |offset, length| state.degraded(offset, length).map(|extent| extent.length);
        assert_eq!(lengths(0, 1000), [1000, 0]);
        assert_eq!(lengths(0, 1001), [1000, 1]);
        assert_eq!(lengths(999, 7), [1, 6]);
        assert_eq!(lengths(1000, 7), [0, 7]);
        assert_eq!(lengths(5000, 7), [0, 7]);
        assert_eq!(state.degraded(0, 1).map(|extent| extent.status), [0, Extent::DEGRADED]);
    }
}
