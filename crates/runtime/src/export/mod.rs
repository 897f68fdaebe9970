//! The host side: listeners, clients, and exports.
//!
//! ```text
//!  Listener --accept--> Connection --receive (many requests a call)--> engine
//!                            ^                                            |
//!                            +---- one gathered send a round <-- transfers, replies
//! ```
//!
//! It must never wait for a client, never let a silent or greedy client stop another one, and never keep more for a
//! client than the limits allow.

mod connection;
mod content_extents;
mod errands;
mod held_answers;
mod large_payloads;
mod offers;
pub mod output;
mod receive;
mod reply;
mod slow_clients;
mod wire;

use std::collections::VecDeque;

use openraid_core::events::HostGone;
use openraid_sys::{Accepted, Epoll, Errno, FramePool, Interest, Listener, Progress, Socket};
use openraid_units::{ArrayId, Bytes, Instant};

use crate::engine_access::Control;
use crate::host_requests::Hosts;
use crate::limits::{
    ACCEPTS_PER_ROUND_MAX, ACCEPT_PAUSE, CONNECTIONS_MAX, DESCRIPTORS_KEPT, HANDSHAKE_TIME_MAX, INBOX_BYTES,
    NEGOTIATING_MAX, STASH_BYTES_MAX,
};
use crate::round_pause::RoundLoad;
use crate::slab::{GrowingSlab, SlabKey};
use connection::Connection;
pub use held_answers::HeldAnswers;
pub use offers::Offer;
use offers::{Offers, StatusCache};
pub use wire::{check as check_offer, AllowedHosts, OfferError, PathState, Protocol};
use wire::{ConnectionRole, ListenerProtocol, ProtocolState, Wire};

/// State that the parts of a shard share.
#[derive(Debug)]
pub struct Shared {
    /// The engine.
    pub control: Control,
    /// All payload.
    pub pool: FramePool,
    /// Requests inside the engine.
    pub hosts: Hosts,
    /// The place to wait.
    pub epoll: Epoll,
    /// The time of this round.
    pub now: Instant,
    /// Limits of the engine that the host side must know.
    pub requests_max: usize,
    /// Frames for payload of hosts that are in use, in bytes.
    pub host_bytes: u64,
}

impl Shared {
    /// May requests be read now?
    #[must_use]
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.control.is_full() && self.hosts.len() < self.requests_max && self.hosts.stashed() < STASH_BYTES_MAX
    }
}

/// Kernel events for this side have one of these in the top byte of their token.
pub const LISTENER_CLASS: u64 = 1 << 56;
/// See [`LISTENER_CLASS`].
pub const CONNECTION_CLASS: u64 = 2 << 56;

/// A listener, and the end of its pause after descriptors ran out.
#[derive(Debug)]
struct Door {
    listener: Listener,
    spoken: ListenerProtocol,
    rests_until: Option<Instant>,
}

/// Counters for the status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExportCounters {
    /// Connections now.
    pub connections: usize,
    /// Number of connections accepted since the start.
    pub accepted: u64,
    /// Maximum number of connections.
    pub connections_max: usize,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Clients that were disconnected because they stalled, or took too long to choose an export.
    pub stalled: u64,
    /// Clients that had not chosen an export, and were disconnected for newer ones.
    pub crowded_out: u64,
    /// Clients that broke the protocol.
    pub broken: u64,
    /// Payload bytes of streamed writes that were received with other requests, and copied.
    pub early_bytes: u64,
}

/// The host side of a shard.
#[derive(Debug)]
pub struct Exports {
    doors: Vec<Door>,
    table: GrowingSlab<Connection>,
    offers: Offers,
    /// State that the connections of a protocol share.
    common: ProtocolState,
    /// The receive buffer of all connections, and how much of it is in use in this round.
    inbox: Vec<u8>,
    inbox_used: usize,
    /// Bytes in all tails.
    tails: usize,
    /// Connections with something to send.
    dirty: Vec<SlabKey>,
    /// Connections with questions for members.
    askers: Vec<SlabKey>,
    /// Connections that must not read now.
    parked: Vec<SlabKey>,
    /// Connections whose clients have not chosen an export, oldest first, and when their time to choose ends.
    choosing: VecDeque<(Instant, SlabKey)>,
    /// Time of the next search for stalled clients.
    look_at: Option<Instant>,
    states: StatusCache,
    held: HeldAnswers,
    counters: ExportCounters,
    connections_max: usize,
    stopping: bool,
    /// Requests since [`Exports::take_round`].
    round: RoundLoad,
}

/// The number of connections for which the process can have descriptors, up to the limit.
fn connections_max() -> usize {
    let descriptors = openraid_sys::raise_descriptor_limit((CONNECTIONS_MAX + DESCRIPTORS_KEPT) as u64);
    let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
    descriptors.saturating_sub(DESCRIPTORS_KEPT).clamp(1, CONNECTIONS_MAX)
}

/// Why the listeners cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DoorsError {
    /// The kernel has no room for one more thing to wait for.
    System(Errno),
    /// A protocol cannot have these addresses.
    Protocol(String),
}

impl Exports {
    /// Take connections from these listeners, from [`Exports::accept`] on. Until then clients wait in their queues.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn new(listeners: Vec<(Listener, Protocol)>, epoll: &Epoll) -> Result<Self, DoorsError> {
        let addresses: Vec<_> = listeners.iter().map(|(door, protocol)| (*protocol, door.tcp_address())).collect();
        let (common, spoken) =
            ProtocolState::new(&addresses).map_err(|error| DoorsError::Protocol(error.to_string()))?;
        let mut doors = Vec::new();
        for ((listener, _), spoken) in listeners.into_iter().zip(spoken) {
            epoll.add(&listener, LISTENER_CLASS | doors.len() as u64, Interest::NONE).map_err(DoorsError::System)?;
            doors.push(Door { listener, spoken, rests_until: None });
        }
        Ok(Self {
            doors,
            common,
            table: GrowingSlab::default(),
            offers: Offers::default(),
            inbox: vec![0; INBOX_BYTES],
            inbox_used: 0,
            tails: 0,
            dirty: Vec::new(),
            askers: Vec::new(),
            parked: Vec::new(),
            choosing: VecDeque::new(),
            look_at: None,
            states: StatusCache::default(),
            held: HeldAnswers::default(),
            counters: ExportCounters::default(),
            connections_max: connections_max(),
            stopping: false,
            round: RoundLoad::default(),
        })
    }

    /// The requests that came since the last call.
    pub fn take_round(&mut self) -> RoundLoad {
        std::mem::take(&mut self.round)
    }

    /// Take connections from all listeners. The arrays have started.
    pub fn accept(&mut self, epoll: &Epoll) {
        self.common.have_started();
        for (number, door) in self.doors.iter().enumerate() {
            // The listener was added, so the kernel has room for it.
            let _ = epoll.modify(&door.listener, LISTENER_CLASS | number as u64, Interest::READ);
        }
    }

    /// Offer an array. The caller has checked the offer and that its name is not taken.
    ///
    /// # Errors
    /// A protocol with state of its own cannot offer it.
    pub fn offer(&mut self, offer: Offer) -> Result<(), OfferError> {
        self.common.offer(&offer)?;
        self.offers.add(offer);
        Ok(())
    }

    /// Is this name offered?
    #[must_use]
    pub fn offers(&self, name: &str) -> bool {
        self.offers.list().iter().any(|offer| offer.name == name)
    }

    /// Withdraw an array's exports: its clients are disconnected after their requests are answered.
    pub fn withdraw(&mut self, array: ArrayId, shared: &mut Shared) {
        self.offers.withdraw(array);
        self.common.withdraw(array);
        for key in self.table.keys() {
            if self.table.get(key).is_some_and(|connection| connection.role.array() == Some(array)) {
                self.finish(key, shared);
            }
        }
        self.run_errands_with(shared, Self::finish);
    }

    /// Withdraw this name. Clients that connected by it stay connected.
    pub fn retract(&mut self, name: &str) {
        self.offers.retract(name);
    }

    /// Refuse writing to an array, or allow it again. For a connected client this holds from its next request on. A
    /// client that connects later sees it in the announcement.
    pub fn set_read_only(&mut self, array: ArrayId, read_only: bool) {
        self.offers.set_read_only(array, read_only);
        self.common.set_read_only(array, read_only);
        for key in self.table.keys() {
            let connection = self.table.get_mut(key);
            if let Some(connection) = connection.filter(|connection| connection.role.array() == Some(array)) {
                connection.wire.set_read_only(read_only);
            }
        }
    }

    /// Refuse no client of an array any more.
    pub fn admit(&mut self, array: ArrayId) {
        self.offers.admit(array);
        for offer in self.offers.list().iter().filter(|offer| offer.array == array) {
            // The hosts were checked when they were set.
            let _ = self.common.set_hosts(array, &offer.hosts);
        }
    }

    /// An array has another size: clients that connect from now on are told it. Connected ones keep the former one, unless
    /// their protocol has a message for a change.
    pub fn set_size(&mut self, array: ArrayId, size: Bytes) {
        self.offers.set_size(array, size);
        self.common.set_size(array, size);
        for key in self.table.keys() {
            let connection = self.table.get_mut(key).filter(|connection| connection.role.array() == Some(array));
            if let Some(connection) = connection.filter(|connection| connection.wire.learns_size()) {
                connection.told = size;
            }
        }
    }

    /// Change which hosts may use an array. Others are disconnected.
    ///
    /// # Errors
    /// Too many hosts.
    pub fn set_hosts(&mut self, array: ArrayId, hosts: &AllowedHosts) -> Result<(), OfferError> {
        let is_refused = self.offers.list().iter().any(|offer| offer.array == array && offer.refused.is_some());
        if !is_refused {
            self.common.set_hosts(array, hosts)?;
        }
        self.offers.set_hosts(array, hosts);
        Ok(())
    }

    /// Change how hosts reach an array. Hosts that are refused find it so when they are refused no more.
    ///
    /// # Errors
    /// The array is not offered, or no protocol here has paths.
    pub fn set_path(&mut self, array: ArrayId, state: PathState) -> Result<(), OfferError> {
        match self.common.set_path(array, state) {
            Err(error) if error.is_unknown() && self.offers.refuses(array) => {}
            set => set?,
        }
        self.offers.set_path(array, state);
        Ok(())
    }

    /// The clients of an array that were told another size than this: each size, and the number of clients.
    #[must_use]
    pub fn other_sizes(&self, array: ArrayId, size: Bytes) -> Vec<(Bytes, usize)> {
        let mut others: Vec<(Bytes, usize)> = Vec::new();
        let of_array = self.table.iter().filter(|(_, connection)| connection.role.client_of() == Some(array));
        for told in of_array.map(|(_, connection)| connection.told).filter(|told| *told != size) {
            match others.iter_mut().find(|(known, _)| *known == told) {
                Some((_, count)) => *count += 1,
                None => others.push((told, 1)),
            }
        }
        others
    }

    #[must_use]
    pub fn offered(&self) -> &[Offer] {
        self.offers.list()
    }

    /// The names under which an array is offered.
    #[must_use]
    pub fn names_of(&self, array: ArrayId) -> Vec<String> {
        let offers = self.offers.list().iter().filter(|offer| offer.array == array);
        offers.map(|offer| offer.name.clone()).collect()
    }

    /// The number of clients that have chosen an array.
    pub fn clients(&self, array: ArrayId) -> usize {
        self.table.iter().filter(|(_, connection)| connection.role.client_of() == Some(array)).count()
    }

    #[must_use]
    pub fn counters(&self) -> ExportCounters {
        ExportCounters { connections: self.table.len(), connections_max: self.connections_max, ..self.counters }
    }

    /// A listener has a new client.
    pub fn on_listener(&mut self, door: usize, shared: &mut Shared) {
        // The order to stop, which drops the listeners, may have come in the same round as this event.
        if self.stopping {
            return;
        }
        for _ in 0..ACCEPTS_PER_ROUND_MAX {
            match self.doors[door].listener.accept() {
                Ok(Accepted::Socket(socket)) => self.on_accepted(socket, self.doors[door].spoken, shared),
                Ok(Accepted::NoConnection) => return,
                // The listener stays readable until there are descriptors again: wait instead of polling it.
                Ok(Accepted::Exhausted(_)) | Err(_) => {
                    let _ =
                        shared.epoll.modify(&self.doors[door].listener, LISTENER_CLASS | door as u64, Interest::NONE);
                    self.doors[door].rests_until = Some(shared.now + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn on_accepted(&mut self, socket: Socket, spoken: ListenerProtocol, shared: &mut Shared) {
        if self.stopping || !self.make_room(shared) {
            self.counters.refused += 1;
            return;
        }
        let mut greeting = Vec::new();
        let wire = Wire::greet((spoken, self.table.next_key()), &socket, &self.common, &mut greeting);
        // The greeting always fits into an empty socket buffer; the rest of a larger output waits as usual.
        let sent = match greeting.is_empty() {
            true => Ok(Progress::Blocked),
            false => socket.send(&shared.pool, &[openraid_sys::MessagePiece::Bytes(&greeting)], 0),
        };
        let sent = match sent {
            Ok(Progress::Bytes(sent)) => sent,
            Ok(Progress::Blocked) => 0,
            Ok(Progress::Closed) | Err(_) => return,
        };
        let mut connection = Connection::new(socket, wire, shared.now);
        connection.output.append(|bytes| bytes.extend_from_slice(&greeting[sent..]));
        let key = self.table.insert(connection);
        let event_token = CONNECTION_CLASS | key.token().0;
        let connection = self.table.get_mut(key).expect("just inserted");
        connection.event_token = event_token;
        if shared.epoll.add(&connection.socket, event_token, Interest::READ).is_err() {
            self.table.remove(key);
            self.counters.refused += 1;
            return;
        }
        self.counters.accepted += 1;
        self.choosing.push_back((shared.now + HANDSHAKE_TIME_MAX, key));
        self.mark_dirty(key);
    }

    /// Is there a place for one more connection? Clients that have chosen an export keep theirs. The oldest of the others
    /// loses its place.
    fn make_room(&mut self, shared: &mut Shared) -> bool {
        let is_crowded = self.choosing.len() >= NEGOTIATING_MAX.min(self.connections_max.div_ceil(2));
        if !is_crowded && self.table.len() < self.connections_max {
            return true;
        }
        let Some((_, oldest)) = self.choosing.pop_front() else { return false };
        self.counters.crowded_out += 1;
        self.close(oldest, shared);
        true
    }

    /// May requests of this connection be read now?
    #[inline(always)]
    fn may_read(connection: &Connection, shared: &Shared) -> bool {
        connection.may_take() && (shared.is_open() || !connection.needs_engine()) || connection.must_take()
    }

    /// Does a connection wait for its turn to send?
    #[must_use]
    pub fn has_to_send(&self) -> bool {
        !self.dirty.is_empty() || !self.askers.is_empty()
    }

    fn mark_dirty(&mut self, key: SlabKey) {
        if let Some(connection) = self.table.get_mut(key) {
            if !connection.dirty {
                connection.dirty = true;
                self.dirty.push(key);
            }
        }
    }

    fn park(&mut self, key: SlabKey) {
        if let Some(connection) = self.table.get_mut(key) {
            if !connection.parked {
                connection.parked = true;
                self.parked.push(key);
            }
        }
    }

    /// The receive buffer is not needed any more for this round.
    pub fn end_round(&mut self, shared: &mut Shared) {
        if self.inbox_used > 0 {
            shared.hosts.leave_inbox(&self.inbox);
            self.inbox_used = 0;
        }
    }

    /// Read no more requests of this client, answer the running ones, then close.
    fn finish(&mut self, key: SlabKey, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        if connection.is_streaming() || connection.wire.is_asked() {
            return self.close(key, shared);
        }
        connection.finishing = true;
        self.mark_dirty(key);
    }

    /// The client is gone, or must be disconnected: nothing more is sent.
    fn close(&mut self, key: SlabKey, shared: &mut Shared) {
        let Some(mut connection) = self.table.remove(key) else { return };
        self.tails -= connection.tail.len();
        // Closing the descriptor would remove it as well, unless another process has a copy of it.
        let _ = shared.epoll.remove(&connection.socket);
        connection.output.abandon(|sent| {
            shared.control.transfer_done(sent.tag, Err(HostGone));
        });
        connection.wire.abandon(&mut self.common, |tag| shared.control.transfer_done(tag, Err(HostGone)));
        if connection.role == ConnectionRole::Choosing {
            self.choosing.retain(|(_, choosing)| *choosing != key);
        }
    }

    /// Begin to stop: no more connections, no more requests.
    pub fn stop(&mut self, shared: &mut Shared) {
        self.stopping = true;
        for door in self.doors.drain(..) {
            let _ = shared.epoll.remove(&door.listener);
        }
        for key in self.table.keys() {
            match self.table.get(key).map(|connection| connection.role) {
                Some(ConnectionRole::Choosing) => self.close(key, shared),
                Some(_) => self.finish(key, shared),
                None => {}
            }
        }
    }

    /// Disconnect all clients at once.
    pub fn close_all(&mut self, shared: &mut Shared) {
        for key in self.table.keys() {
            self.close(key, shared);
        }
    }

    /// Are there no connections?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}
