//! Host requests inside the engine: their owner and the place of their payload.

use openraid_core::actions::ReplyStatus;
use openraid_core::events::RequestKind;
use openraid_units::{ArrayOffset, Token};

use crate::slab::{GrowingSlab, SlabKey};

/// The owner of the request.
#[derive(Debug)]
pub enum RequestOwner {
    /// A connection, by its key; it may be closed by now.
    Connection(SlabKey),
    /// A virtual machine, by its key; it may have gone by now.
    Machine(SlabKey),
    /// The service itself, which waits for the answer.
    Service(Waiter),
}

/// The destination of an answer to the service.
pub type Waiter = std::sync::mpsc::Sender<Result<Vec<u8>, ReplyStatus>>;

/// The place of the payload: source of a write, destination of a read.
#[derive(Debug)]
pub enum HostPayload {
    /// None: the request has no payload, or all of it is in frames, or it goes to the connection piece by piece.
    None,
    /// In the shared receive buffer from this byte on, for this round only.
    Inbox(usize),
    /// In a buffer of its own.
    Stash(Vec<u8>),
    /// In the buffer of the service, which made the request.
    Own(Vec<u8>),
    /// At the client: in the socket, or not sent yet.
    Stream,
    /// In the memory of a virtual machine, which has the data of a read, too.
    Guest,
    /// The first pieces of a read. The connection sends all pieces at once.
    Gathered(Vec<u8>),
    /// A read goes to the connection piece by piece, after one head for all of it. No other answer may come between, so no
    /// other request runs.
    Alone,
}

#[derive(Debug)]
pub struct HostRequest {
    /// The owner of the request.
    pub owner: RequestOwner,
    /// The client's name for the request, in a form that only its wire understands.
    pub id: u64,
    /// The kind of the request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: ArrayOffset,
    pub len: u64,
    pub payload: HostPayload,
    /// Bytes of a read that were handed to the connection.
    pub sent: u32,
}

#[derive(Debug, Default)]
pub struct Hosts {
    table: GrowingSlab<HostRequest>,
    /// Requests whose payload may still be in the shared receive buffer.
    in_inbox: Vec<SlabKey>,
    stashed: usize,
}

impl Hosts {
    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }
    /// Payload bytes that wait in buffers of their own.
    #[must_use]
    pub fn stashed(&self) -> usize {
        self.stashed
    }

    /// Add a request.
    #[inline(always)]
    pub fn insert(&mut self, host: HostRequest) -> SlabKey {
        let inbox = matches!(host.payload, HostPayload::Inbox(_));
        if let HostPayload::Stash(bytes) = &host.payload {
            self.stashed += bytes.len();
        }
        let key = self.table.insert(host);
        if inbox {
            self.in_inbox.push(key);
        }
        key
    }

    /// The request with this token of the engine.
    ///
    /// # Panics
    /// There is none: the engine ended it twice.
    #[inline]
    pub fn get(&mut self, token: Token) -> &mut HostRequest {
        let Some(host) = self.table.get_mut(SlabKey::from_token(token)) else {
            panic!("bug: {token:?} is not a request of a host")
        };
        host
    }

    /// Remove a request that has ended.
    ///
    /// # Panics
    /// As [`Hosts::get`].
    #[inline(always)]
    pub fn remove(&mut self, token: Token) -> HostRequest {
        let Some(host) = self.table.remove(SlabKey::from_token(token)) else {
            panic!("bug: {token:?} is not a request of a host")
        };
        if let HostPayload::Stash(bytes) = &host.payload {
            self.stashed -= bytes.len();
        }
        host
    }

    /// All payload of a write is in frames: a copy of it is not needed any more.
    pub fn payload_taken(&mut self, token: Token) {
        let host = self.get(token);
        if let HostPayload::Stash(bytes) = std::mem::replace(&mut host.payload, HostPayload::None) {
            self.stashed -= bytes.len();
        }
    }

    /// The shared receive buffer will be reused: copy the payload that was not taken from it.
    pub fn leave_inbox(&mut self, inbox: &[u8]) {
        for key in self.in_inbox.drain(..) {
            let Some(host) = self.table.get_mut(key) else { continue };
            if let HostPayload::Inbox(start) = host.payload {
                let len = usize::try_from(host.len).expect("inline payload is small");
                host.payload = HostPayload::Stash(inbox[start..start + len].to_vec());
                self.stashed += len;
            }
        }
    }
}
