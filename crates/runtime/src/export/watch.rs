//! What happens by the clock: clients that are too slow, listeners that rest, and what is told of an array's state.

use openraid_core::admin::Health;
use openraid_nbd::server::{chunk_status, Session};
use openraid_nbd::{Extent, MetaContext, Request};
use openraid_sys::Interest;
use openraid_units::{ArrayId, Instant, Nanos};

use super::connection::Phase;
use super::{Exports, Shared, LISTENER_CLASS};
use crate::control::Control;
use crate::limits::{STALL_LOOK_INTERVAL, STALL_TIME_MAX, STALL_TIME_PRESSED_MAX, STATUS_AGE_MAX};

impl Exports {
    /// Somebody waits for a client: look after it.
    pub(super) fn watch(&mut self, now: Instant) {
        self.look_at.get_or_insert(now + STALL_LOOK_INTERVAL);
    }

    /// When [`Exports::on_time`] has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let choosing = self.choosing.front().map(|(at, _)| *at);
        let doors = self.doors.iter().filter_map(|door| door.rests_until).min();
        [choosing, doors, self.look_at].into_iter().flatten().min()
    }

    /// Do what the time has come for.
    pub fn on_time(&mut self, shared: &mut Shared) {
        let now = shared.now;
        while let Some((_, key)) = self.choosing.front().copied().filter(|(at, _)| *at <= now) {
            self.choosing.pop_front();
            if self.table.get(key).is_some_and(|c| matches!(c.phase, Phase::Negotiating(_))) {
                self.counters.stalled += 1;
                self.close(key, shared);
            }
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
        let mut waiting = Vec::new();
        let (mut bytes, mut requests) = (0, 0);
        for (key, connection) in self.table.iter().filter(|(_, connection)| connection.waits) {
            let streamed = match &connection.phase {
                Phase::Serving(serving) => serving
                    .stream
                    .as_ref()
                    .map_or(0, |stream| stream.transfers.iter().map(|transfer| u64::from(transfer.len)).sum()),
                Phase::Negotiating(_) => 0,
            };
            bytes += connection.output.frame_bytes() + connection.output.buffered() as u64 + streamed;
            requests += connection.requests as usize;
            waiting.push((key, connection.progress_at));
        }
        let pressed = bytes > shared.host_bytes / 2 || requests > shared.requests_max / 2;
        let patience = if pressed { STALL_TIME_PRESSED_MAX } else { STALL_TIME_MAX };
        for (key, progress_at) in &waiting {
            if shared.now.since(*progress_at) >= patience {
                self.counters.stalled += 1;
                self.close(*key, shared);
            }
        }
        if !waiting.is_empty() {
            self.watch(shared.now);
        }
    }
}

/// What was known of the arrays a moment ago: clients may ask as often as they like.
#[derive(Debug, Default)]
pub struct StatusCache {
    known: Vec<(ArrayId, Instant, u32)>,
}

/// The state of a whole array, as one extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayExtent {
    degraded: u32,
}

impl StatusCache {
    /// What there is to say of an array.
    pub fn extents(&mut self, array: ArrayId, control: &Control, now: Instant) -> ArrayExtent {
        self.known.retain(|(_, at, _)| now.since(*at) < STATUS_AGE_MAX && STATUS_AGE_MAX > Nanos::ZERO);
        if let Some((_, _, degraded)) = self.known.iter().find(|(known, _, _)| *known == array) {
            return ArrayExtent { degraded: *degraded };
        }
        let degraded = flags(array, control);
        self.known.push((array, now, degraded));
        ArrayExtent { degraded }
    }
}

/// The worst of an array and its legs.
fn flags(array: ArrayId, control: &Control) -> u32 {
    let Some(status) = control.status(array) else { return Extent::LOST };
    let own = match status.health {
        Health::Optimal => 0,
        Health::Degraded => Extent::DEGRADED,
        Health::Failed => Extent::LOST | Extent::DEGRADED,
    };
    status.legs.iter().fold(own, |worst, leg| worst | flags(*leg, control))
}

impl ArrayExtent {
    /// Append the answer to a block status request. Everything is allocated: an array does not know holes.
    pub fn answer(self, session: &Session, request: &Request, out: &mut Vec<u8>) {
        let length = u32::try_from(request.length.get()).expect("a request has a 32-bit length");
        let count = session.contexts.iter().count();
        for (number, context) in session.contexts.iter().enumerate() {
            let status = match context {
                MetaContext::Allocation => 0,
                MetaContext::Degraded => self.degraded,
            };
            chunk_status(out, request, context, [Extent { length, status }], number + 1 == count);
        }
    }
}
