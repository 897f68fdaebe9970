//! Servers: each takes one piece of work after the other, first come, first served.
//!
//! A server is three numbers. Work that arrives at `now` begins when the server is free, and ends after its own time.
//! Both times are known at once, so a server needs no queue. The result is exact if work is handed in in the order of
//! arrival. The machine's loop ensures that order.

use openraid_units::{Instant, Nanos};

/// Picoseconds in a nanosecond.
const PICOS: u64 = 1000;

/// A server. See the module header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct WorkServer {
    free: Instant,
    busy: Nanos,
}

impl WorkServer {
    /// Work that takes `time` arrives. Returns when it ends.
    pub fn take(&mut self, now: Instant, time: Nanos) -> Instant {
        self.free = self.free.max(now) + time;
        self.busy += time;
        self.free
    }

    /// Time for which the server has worked, including accepted work that has not ended.
    #[must_use]
    pub const fn busy(&self) -> Nanos {
        self.busy
    }
}

/// Parallel servers: work is given to the server that is free first. Work ends in the order of arrival, as from a
/// controller that processes a queue.
#[derive(Clone, Debug)]
pub struct Servers {
    servers: Vec<WorkServer>,
    last: Instant,
}

impl Servers {
    /// `count` servers, at least one.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self { servers: vec![WorkServer::default(); count.max(1) as usize], last: Instant::ZERO }
    }

    /// Work that takes `time` arrives. Returns when it ends.
    pub fn take(&mut self, now: Instant, time: Nanos) -> Instant {
        let server = match self.servers.as_mut_slice() {
            [one] => one,
            many => many.iter_mut().min_by_key(|server| server.free).expect("at least one"),
        };
        self.last = self.last.max(server.take(now, time));
        self.last
    }

    /// Time for which all servers together have worked.
    #[must_use]
    pub fn busy(&self) -> Nanos {
        self.servers.iter().fold(Nanos::ZERO, |sum, server| sum + server.busy())
    }
}

/// The cost of moving bytes: a time for each transfer, and one for each byte.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TransferCost {
    /// For each transfer.
    pub setup: Nanos,
    /// Picoseconds a byte: 1,000,000 divided by MB/s (10^6 bytes a second). Zero means no limit.
    pub picos: u64,
}

impl TransferCost {
    /// A rate that takes no time.
    pub const FREE: Self = Self { setup: Nanos::ZERO, picos: 0 };

    /// A rate in units of 10^6 bytes a second.
    ///
    /// # Panics
    /// The rate is zero.
    #[must_use]
    pub const fn mb_per_second(rate: u64) -> Self {
        assert!(rate > 0, "nothing moves at no speed");
        Self { setup: Nanos::ZERO, picos: 1_000_000 / rate }
    }

    /// A rate in bytes a second, and a time for each transfer.
    ///
    /// # Panics
    /// The rate is zero.
    #[must_use]
    pub fn new(bytes_per_second: u64, setup: Nanos) -> Self {
        Self { setup, picos: 1_000_000_000_000 / bytes_per_second }
    }

    /// The time that `bytes` take.
    #[must_use]
    pub const fn time(self, bytes: u64) -> Nanos {
        Nanos(self.setup.0 + bytes * self.picos / PICOS)
    }

    /// Whether transfers take no time.
    #[must_use]
    pub const fn is_free(self) -> bool {
        self.setup.0 == 0 && self.picos == 0
    }
}

/// A way for bytes: a row of servers that a transfer passes at the same time (cut-through). The transfer ends when the
/// last server is done with it, and never before the previous transfer.
#[derive(Clone, Copy, Default, Debug)]
pub struct BytePath {
    server: WorkServer,
    rate: TransferCost,
    last: Instant,
}

impl BytePath {
    /// A way that shares nothing with others.
    #[must_use]
    pub fn new(rate: TransferCost) -> Self {
        Self { rate, ..Self::default() }
    }

    /// A transfer arrives. Returns when it ends. `shared` is the server that this way shares with others, and its rate.
    pub fn take(&mut self, now: Instant, bytes: u64, shared: Option<(&mut WorkServer, TransferCost)>) -> Instant {
        let done = self.server.take(now, self.rate.time(bytes));
        let end = shared.map_or(done, |(server, rate)| done.max(server.take(now, rate.time(bytes))));
        self.last = self.last.max(end);
        self.last
    }

    /// Time for which the way has worked.
    #[must_use]
    pub const fn busy(&self) -> Nanos {
        self.server.busy()
    }
}

/// The memory of a controller: a server for every byte that it receives or gives. Payload of hosts waits for it. Drives
/// and the parity engine only occupy it, because their wait would be short.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct PayloadMemory {
    server: WorkServer,
    picos: u64,
}

impl PayloadMemory {
    /// A server that takes `picos` picoseconds for a byte; zero means no limit.
    pub fn new(picos: u64) -> Self {
        Self { server: WorkServer::default(), picos }
    }

    /// `bytes` pass. Returns when the last byte has passed.
    #[inline]
    pub fn pass(&mut self, now: Instant, bytes: u64) -> Instant {
        if self.picos == 0 || bytes == 0 {
            return now;
        }
        self.server.take(now, Nanos(bytes * self.picos / PICOS))
    }

    /// Time for which the memory has worked.
    pub const fn busy(&self) -> Nanos {
        self.server.busy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_order_and_counted() {
        let mut server = WorkServer::default();
        assert_eq!(server.take(Instant(100), Nanos(10)), Instant(110));
        assert_eq!(server.take(Instant(105), Nanos(10)), Instant(120));
        assert_eq!(server.take(Instant(500), Nanos(1)), Instant(501));
        assert_eq!(server.busy(), Nanos(21));
    }

    #[test]
    fn servers_side_by_side_share_the_work() {
        let mut servers = Servers::new(2);
        let ends: Vec<u64> = (0..4).map(|_| servers.take(Instant(0), Nanos(10)).0).collect();
        assert_eq!((ends, servers.busy()), (vec![10, 10, 20, 20], Nanos(40)));
        assert_eq!(servers.take(Instant(100), Nanos(50)), Instant(150));
        assert_eq!(servers.take(Instant(100), Nanos(5)), Instant(150));
    }

    #[test]
    fn a_rate_is_bytes_by_time() {
        // 750 MB/s: 1333 ps a byte, 65536 bytes in 87.36 us.
        let rate = TransferCost::mb_per_second(750);
        assert_eq!(rate.time(65_536), Nanos(87_359));
        assert!(TransferCost::FREE.is_free() && !rate.is_free());
    }

    #[test]
    fn the_slowest_part_of_a_way_decides() {
        let mut shared = WorkServer::default();
        let mut way = BytePath::new(TransferCost { setup: Nanos(0), picos: 1000 });
        let slow = TransferCost { setup: Nanos(0), picos: 2000 };
        assert_eq!(way.take(Instant(0), 100, Some((&mut shared, slow))), Instant(200));
        assert_eq!(way.take(Instant(0), 100, Some((&mut shared, slow))), Instant(400));
        assert_eq!(way.take(Instant(1000), 100, None), Instant(1100));
    }
}
