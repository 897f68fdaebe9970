//! One queue of a disk: what its front end has said about it, its ring, and its requests.
//!
//! ```text
//!  stopped --kick, enabled, addresses, entries--> running --GET_VRING_BASE--> stopping --no request runs--> stopped
//!                                                    \--a rule of the ring broken--> broken --GET_VRING_BASE--> stopping
//! ```
//!
//! A running queue that is disabled keeps its ring, and takes nothing until it is enabled again.

use std::collections::VecDeque;

use crate::block::{DiskOutcome, DiskRequest, RequestContent, VhostDisk};
use crate::inflight::Inflight;
use crate::memory::{GuestMemory, SharedBytes};
use crate::ring::{RingAddresses, VirtRing};
use crate::violation::{MessageViolation, RingFault};

/// The state of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueState {
    /// It has no ring.
    #[default]
    Stopped,
    /// Requests are taken.
    Running,
    /// No requests are taken but those of a former process; the front end waits until none runs.
    Stopping,
    /// The guest broke a rule: no requests are taken.
    Broken,
}

/// A queue.
#[derive(Debug)]
pub struct VhostQueue<F> {
    pub number: u16,
    pub state: QueueState,
    /// What the front end has said, for the next start.
    pub entries: u16,
    pub addresses: Option<RingAddresses>,
    pub base: u16,
    /// `None`: it has not said whether the queue is enabled.
    pub enabled: Option<bool>,
    pub kick: Option<F>,
    pub call: Option<F>,
    pub error: Option<F>,
    ring: Option<VirtRing>,
    /// Requests under way, by head.
    requests: Vec<Option<DiskRequest>>,
    under_way: u16,
    /// Heads that a former process has left.
    again: VecDeque<u16>,
    counter: u64,
}

/// What a queue works on.
pub struct RingSurroundings<'a, M> {
    pub memory: &'a GuestMemory<M>,
    pub inflight: Option<&'a Inflight<M>>,
    pub disk: &'a VhostDisk,
    /// The features that the guest has taken.
    pub features: u64,
}

impl<F> VhostQueue<F> {
    pub fn new(number: u16) -> Self {
        Self {
            number,
            state: QueueState::Stopped,
            entries: 0,
            addresses: None,
            base: 0,
            enabled: None,
            kick: None,
            call: None,
            error: None,
            ring: None,
            requests: Vec::new(),
            under_way: 0,
            again: VecDeque::new(),
            counter: 0,
        }
    }

    /// Begin to take requests.
    pub fn start<M: SharedBytes>(
        &mut self,
        around: &RingSurroundings<'_, M>,
        has_events: bool,
    ) -> Result<(), MessageViolation> {
        let (Some(addresses), 1..) = (&self.addresses, self.entries) else {
            return Err(MessageViolation::Unprepared(self.number));
        };
        let mut ring = VirtRing::new(around.memory, addresses, self.entries, has_events)?;
        ring.set_next(self.base);
        self.counter = 0;
        if let Some(inflight) = around.inflight {
            if !inflight.has(self.number, self.entries) {
                return Err(MessageViolation::InflightQueue(1, self.entries));
            }
            let left = inflight.recover(self.number, self.entries, ring.used_index())?;
            let count = u16::try_from(left.heads.len()).expect("at most one for each entry");
            ring.set_next(ring.used_index().wrapping_add(count));
            self.counter = left.counter;
            self.again = left.heads.into();
        }
        self.requests = std::iter::repeat_with(|| None).take(usize::from(self.entries)).collect();
        self.ring = Some(ring);
        self.state = QueueState::Running;
        Ok(())
    }

    /// The memory was replaced.
    pub fn move_to<M: SharedBytes>(&mut self, memory: &GuestMemory<M>) -> Result<(), MessageViolation> {
        match (&mut self.ring, &self.addresses) {
            (Some(ring), Some(addresses)) => ring.move_to(memory, addresses),
            _ => Ok(()),
        }
    }

    /// Take no more requests. Requests of a former process, which count as taken, are done before.
    pub fn begin_stop(&mut self) {
        match self.state {
            QueueState::Stopped => {}
            QueueState::Running | QueueState::Stopping | QueueState::Broken => self.state = QueueState::Stopping,
        }
    }

    /// Do nothing of what a former process has left: the ring is broken.
    pub fn forget_former(&mut self) {
        self.again.clear();
    }

    /// Has every request ended after [`VhostQueue::begin_stop`]?
    pub fn has_stopped(&self) -> bool {
        self.state == QueueState::Stopped || self.under_way == 0 && self.again.is_empty()
    }

    /// Forget the ring. Returns the index at which it continues.
    pub fn finish_stop(&mut self) -> u16 {
        if let Some(ring) = self.ring.take() {
            self.base = ring.next();
        }
        self.state = QueueState::Stopped;
        self.requests = Vec::new();
        self.base
    }

    fn is_paused(&self) -> bool {
        self.state == QueueState::Running && self.enabled == Some(false)
    }

    /// The next request: its head, and what it asks for.
    pub fn take<M: SharedBytes>(
        &mut self,
        around: &RingSurroundings<'_, M>,
    ) -> Result<Option<(u16, RequestContent)>, RingFault> {
        if self.is_paused() {
            return Ok(None);
        }
        let Some(ring) = &mut self.ring else { return Ok(None) };
        let head = match (self.state, self.again.pop_front()) {
            (QueueState::Stopped | QueueState::Broken, _) | (QueueState::Stopping, None) => return Ok(None),
            (QueueState::Running | QueueState::Stopping, Some(head)) => head,
            (QueueState::Running, None) => {
                let Some(head) = ring.available(around.memory)? else { return Ok(None) };
                if self.requests[usize::from(head)].is_some() {
                    return Err(RingFault::Twice(head));
                }
                if let Some(inflight) = around.inflight {
                    inflight.mark(self.number, head, self.counter);
                    self.counter = self.counter.wrapping_add(1);
                }
                ring.advance();
                head
            }
        };
        let chain = ring.chain(around.memory, head)?;
        let (request, asked) = DiskRequest::new(chain, around.memory, around.disk, around.features)?;
        self.requests[usize::from(head)] = Some(request);
        self.under_way += 1;
        Ok(Some((head, asked)))
    }

    /// A request under way.
    pub fn request(&self, head: u16) -> &DiskRequest {
        let request = self.requests.get(usize::from(head)).and_then(Option::as_ref);
        request.unwrap_or_else(|| panic!("bug: no request {head} is under way in queue {}", self.number))
    }

    /// A request ended.
    pub fn end<M: SharedBytes>(
        &mut self,
        around: &RingSurroundings<'_, M>,
        head: u16,
        outcome: DiskOutcome,
    ) -> Result<(), RingFault> {
        let written = self.request(head).end(around.memory, outcome);
        self.requests[usize::from(head)] = None;
        self.under_way -= 1;
        let written = written?;
        let ring = self.ring.as_mut().expect("a queue keeps its ring while requests run");
        if let Some(inflight) = around.inflight {
            inflight.before_used(self.number, head);
        }
        ring.push(around.memory, head, written);
        if let Some(inflight) = around.inflight {
            inflight.after_used(self.number, head, ring.used_index());
        }
        Ok(())
    }

    /// Ask for an event at the next request. True if there is one already.
    pub fn arm<M: SharedBytes>(&self, memory: &GuestMemory<M>) -> bool {
        self.state == QueueState::Running
            && !self.is_paused()
            && self.ring.as_ref().is_some_and(|ring| ring.arm(memory))
    }

    /// Does the guest wait for an event?
    pub fn take_event_wish<M: SharedBytes>(&mut self, memory: &GuestMemory<M>) -> bool {
        self.ring.as_mut().is_some_and(|ring| ring.take_event_wish(memory))
    }
}
