//! Actions by the clock: slow clients, and listeners that pause.

use openraid_sys::Interest;
use openraid_units::{Instant, Nanos};

use super::connection::Connection;
use super::{Exports, Shared, LISTENER_CLASS};
use crate::limits::{SLOW_TIME_PRESSED_MAX, STALL_LOOK_INTERVAL, STALL_TIME_MAX, STALL_TIME_PRESSED_MAX};
use crate::slab::SlabKey;

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
        [choosing, doors, self.look_at, self.common.next_deadline()].into_iter().flatten().min()
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
        self.common.on_time(now);
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
    key: SlabKey,
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
        self.output.frame_bytes() + self.output.buffered() as u64 + self.wire.open_bytes()
    }
}
