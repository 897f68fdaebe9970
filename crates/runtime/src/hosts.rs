//! Host requests that are inside the engine: whose they are and where their payload is.

use openraid_core::actions::ReplyStatus;
use openraid_nbd::Request;
use openraid_units::Token;

use crate::slab::{Key, Slab};

/// The owner of the request.
#[derive(Debug)]
pub enum Owner {
    /// A connection, by its key; it may be gone by now.
    Connection(Key),
    /// The service itself, which waits for the answer.
    Service(Waiter),
}

/// The destination of an answer to the service.
pub type Waiter = std::sync::mpsc::Sender<Result<Vec<u8>, ReplyStatus>>;

/// The place of the payload: source of a write, destination of a read.
#[derive(Debug)]
pub enum Payload {
    /// Nowhere: there is none, or it is all in frames, or it goes to the connection.
    None,
    /// In the shared receive buffer from this byte on, for this round only.
    Inbox(usize),
    /// In a buffer of its own.
    Stash(Vec<u8>),
    /// In the bytes of the service, which asked itself.
    Own(Vec<u8>),
    /// Still in the socket.
    Stream,
}

/// A host request.
#[derive(Debug)]
pub struct HostRequest {
    /// The owner of the request.
    pub owner: Owner,
    /// What.
    pub request: Request,
    /// Payload.
    pub payload: Payload,
    /// Bytes of a read that were handed to the connection.
    pub sent: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Hosts {
    table: Slab<HostRequest>,
    /// Requests whose payload may still be in the shared receive buffer.
    in_inbox: Vec<Key>,
    stashed: usize,
}

impl Hosts {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }
    /// Payload bytes that wait in buffers of their own.
    #[must_use]
    pub fn stashed(&self) -> usize {
        self.stashed
    }

    /// One more.
    pub fn insert(&mut self, host: HostRequest) -> Key {
        let inbox = matches!(host.payload, Payload::Inbox(_));
        if let Payload::Stash(bytes) = &host.payload {
            self.stashed += bytes.len();
        }
        let key = self.table.insert(host);
        if inbox {
            self.in_inbox.push(key);
        }
        key
    }

    /// The request that the engine calls by this name.
    ///
    /// # Panics
    /// There is none: the engine ended it twice.
    #[inline]
    pub fn get(&mut self, token: Token) -> &mut HostRequest {
        let Some(host) = self.table.get_mut(Key::from_token(token)) else {
            panic!("bug: {token:?} is not a request of a host")
        };
        host
    }

    /// The request is over.
    ///
    /// # Panics
    /// As [`Hosts::get`].
    #[inline]
    pub fn remove(&mut self, token: Token) -> HostRequest {
        let Some(host) = self.table.remove(Key::from_token(token)) else {
            panic!("bug: {token:?} is not a request of a host")
        };
        if let Payload::Stash(bytes) = &host.payload {
            self.stashed -= bytes.len();
        }
        host
    }

    /// All payload of a write is in frames: its own copy is not needed any more.
    pub fn payload_taken(&mut self, token: Token) {
        let host = self.get(token);
        if let Payload::Stash(bytes) = std::mem::replace(&mut host.payload, Payload::None) {
            self.stashed -= bytes.len();
        }
    }

    /// The shared receive buffer is about to be reused: keep what was not taken from it.
    pub fn leave_inbox(&mut self, inbox: &[u8]) {
        for key in self.in_inbox.drain(..) {
            let Some(host) = self.table.get_mut(key) else { continue };
            if let Payload::Inbox(start) = host.payload {
                let len = usize::try_from(host.request.length.get()).expect("inline payload is small");
                host.payload = Payload::Stash(inbox[start..start + len].to_vec());
                self.stashed += len;
            }
        }
    }
}
