//! A target in virtual time that records its requests: as a simulated one, or as a real one whose clock is a number.

use openraid_methods::target::{HostIo, IoDone, QueueServers, Target, TargetCounters, TargetError, TargetFacts};
use openraid_units::{Bytes, Instant, Nanos};
use std::cell::RefCell;
use std::rc::Rc;

/// The place of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestPlace {
    pub offset: u64,
    pub len: u32,
}

impl RequestPlace {
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// The requests to several targets, in sequence.
pub type Notes = Rc<RefCell<Vec<RequestPlace>>>;

/// Servers that take the same time for every request.
pub struct Noting {
    servers: QueueServers,
    facts: TargetFacts,
    notes: Notes,
}

impl Noting {
    pub fn new(servers: usize, service: Nanos, capacity: Bytes, simulated: bool, notes: &Notes) -> Self {
        let servers = QueueServers::constant(servers, service, capacity);
        let facts = TargetFacts { simulated, ..servers.facts().clone() };
        Self { servers, facts, notes: Rc::clone(notes) }
    }

    /// The same with a link and the page cache of a host.
    #[allow(dead_code, reason = "a module of several test programs")]
    pub fn on_a_host(mut self, link_mbps: f64) -> Self {
        self.facts.link_mbps = Some(link_mbps);
        self.facts.page_cache = true;
        self
    }
}

impl Target for Noting {
    fn facts(&self) -> &TargetFacts {
        &self.facts
    }
    fn now(&self) -> Instant {
        self.servers.now()
    }
    fn submit(&mut self, io: HostIo) {
        self.notes.borrow_mut().push(RequestPlace { offset: io.offset, len: io.len });
        self.servers.submit(io);
    }
    fn wait(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Result<(), TargetError> {
        self.servers.wait(until, done)
    }
    fn counters(&self) -> Option<TargetCounters> {
        self.servers.counters()
    }
}
