//! Large payloads: from the socket directly into frames, as the engine assigns the frames.
//!
//! The engine asks for the payload in pieces, in order. Nothing else is read from the connection during that time,
//! because the bytes after the payload belong to the next request. If the request fails first, the rest of its payload
//! is read and dropped.

use openraid_core::actions::Transfer;
use openraid_sys::{FramePool, Interest, PoolRange, Progress, Socket};
use openraid_units::Bytes;

use super::connection::{Phase, Serving, Stream};
use super::{Exports, Shared};
use crate::limits::STREAM_BYTES_PER_ROUND_MAX;
use crate::slab::Key;

/// The state of a payload after the socket was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// All of it is there.
    Complete,
    /// The engine has to name the frames of the next bytes.
    NoFrames,
    /// The client has to send more.
    NoBytes,
    /// The client is gone.
    Gone,
}

impl Exports {
    /// Receive more payload; true if no payload is left in the socket.
    pub(super) fn pump(&mut self, key: Key, shared: &mut Shared) -> bool {
        let Some(connection) = self.table.get_mut(key) else { return false };
        let Phase::Serving(serving) = &mut connection.phase else { return true };
        let Some(stream) = &mut serving.stream else { return true };
        let before = stream.progress(&serving.parser);
        let scratch = &mut self.inbox[self.inbox_used..];
        let state = run(&connection.socket, serving, shared, scratch);
        let Some(stream) = &mut serving.stream else { return true };
        let moved = before != stream.progress(&serving.parser);
        connection.set_waits(state == State::NoBytes, moved, shared.now);
        match state {
            State::Complete => {
                if let Some(serving) = connection.serving() {
                    serving.stream = None;
                }
                // Its own payload had the connection alone; requests that were not read continue.
                self.park(key);
                true
            }
            State::NoFrames => {
                let wanted = Interest { readable: false, ..connection.registered };
                connection.register(&shared.epoll, wanted);
                false
            }
            State::NoBytes => {
                let wanted = Interest { readable: true, ..connection.registered };
                connection.register(&shared.epoll, wanted);
                self.watch(shared.now);
                false
            }
            State::Gone => {
                self.close(key, shared);
                false
            }
        }
    }

    /// The engine names the frames of the next bytes of a payload.
    pub(super) fn stream_to(&mut self, key: Key, transfer: &Transfer, shared: &mut Shared) {
        let stream = self.table.get_mut(key).and_then(|c| c.serving()).and_then(|s| s.stream.as_mut());
        let Some(stream) = stream else {
            shared.control.transfer_done(transfer.tag, Err(openraid_core::events::HostGone));
            return;
        };
        assert!(stream.token == transfer.token, "bug: a transfer for a payload that is not the next in the socket");
        stream.transfers.push_back(*transfer);
        self.pump(key, shared);
    }
}

impl Stream {
    /// A number that grows with every byte used.
    fn progress(&self, parser: &openraid_nbd::server::Transmission) -> (usize, u32) {
        (self.early_used, parser.payload_outstanding())
    }
}

fn run(socket: &Socket, serving: &mut Serving, shared: &mut Shared, scratch: &mut [u8]) -> State {
    let Serving { stream, parser, .. } = serving;
    let stream = stream.as_mut().expect("the caller has seen it");
    let mut budget = STREAM_BYTES_PER_ROUND_MAX;
    loop {
        let outstanding = parser.payload_outstanding();
        if stream.discard {
            stream.early_used = stream.early.len();
            if outstanding == 0 {
                return State::Complete;
            }
            let room = scratch.len().min(outstanding as usize);
            match socket.receive(&mut scratch[..room]) {
                Ok(Progress::Bytes(count)) => parser.payload_received(narrow(count)),
                Ok(Progress::Blocked) => return State::NoBytes,
                Ok(Progress::Closed) | Err(_) => return State::Gone,
            };
            continue;
        }
        let Some(transfer) = stream.transfers.front().copied() else {
            let complete = outstanding == 0 && stream.early_used == stream.early.len();
            return if complete { State::Complete } else { State::NoFrames };
        };
        if budget == 0 {
            return State::NoBytes;
        }
        let left = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)))
            .part(Bytes(u64::from(stream.done)), Bytes(u64::from(transfer.len - stream.done)));
        let moved = if stream.early_used < stream.early.len() {
            take_early(stream, &mut shared.pool, left)
        } else {
            match socket.receive_into_pool(&mut shared.pool, left) {
                Ok(Progress::Bytes(count)) => {
                    parser.payload_received(narrow(count));
                    count
                }
                Ok(Progress::Blocked) => return State::NoBytes,
                Ok(Progress::Closed) | Err(_) => return State::Gone,
            }
        };
        stream.done += narrow(moved);
        budget = budget.saturating_sub(moved as u64);
        if stream.done == transfer.len {
            stream.done = 0;
            stream.transfers.pop_front();
            shared.control.transfer_done(transfer.tag, Ok(()));
        }
    }
}

fn take_early(stream: &mut Stream, pool: &mut FramePool, into: PoolRange) -> usize {
    let early = &stream.early[stream.early_used..];
    let count = early.len().min(usize::try_from(into.len.get()).expect("a piece is in memory"));
    pool.slice_mut(into.part(Bytes::ZERO, Bytes(count as u64))).copy_from_slice(&early[..count]);
    stream.early_used += count;
    count
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("a payload is below 4 GiB")
}
