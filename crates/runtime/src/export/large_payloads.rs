//! Large payloads: from the socket directly into frames, as the engine assigns the frames.
//!
//! The wire knows the frames for the next bytes of the socket. While these bytes are payload, no commands are read from the
//! connection. If the request fails first, the rest of its payload is read and dropped.

use openraid_core::actions::Transfer;
use openraid_core::events::HostGone;
use openraid_sys::{FramePool, Interest, PoolRange, Progress};
use openraid_units::Bytes;

use super::connection::{Connection, EarlyPayload};
use super::wire::{Arrival, BytesDestination};
use super::{Exports, Shared};
use crate::limits::STREAM_BYTES_PER_ROUND_MAX;
use crate::slab::SlabKey;

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
    pub(super) fn pump(&mut self, key: SlabKey, shared: &mut Shared) -> bool {
        let Some(connection) = self.table.get_mut(key) else { return false };
        if !connection.is_streaming() {
            return true;
        }
        let scratch = &mut self.inbox[self.inbox_used..];
        let before = connection.output.buffered();
        let (state, moved) = run(connection, shared, scratch);
        let waits = state == State::NoBytes || connection.wire.is_asked();
        connection.set_waits(waits, moved, shared.now);
        if connection.output.buffered() > before {
            self.mark_dirty(key);
        }
        let Some(connection) = self.table.get_mut(key) else { return false };
        match state {
            State::Complete => {
                // The payload had the connection alone; requests that were not read continue.
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
    pub(super) fn stream_to(&mut self, key: SlabKey, transfer: &Transfer, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else {
            return shared.control.transfer_done(transfer.tag, Err(HostGone));
        };
        let Connection { wire, output, .. } = connection;
        let before = output.buffered();
        output.append(|out| wire.ask_payload(shared.hosts.get(transfer.token), transfer, out));
        if output.buffered() > before {
            self.mark_dirty(key);
        }
        self.pump(key, shared);
    }
}

/// Bring payload to its destination until that has to wait. Returns the state, and whether any byte came.
fn run(connection: &mut Connection, shared: &mut Shared, scratch: &mut [u8]) -> (State, bool) {
    let mut budget = STREAM_BYTES_PER_ROUND_MAX;
    let mut moved = false;
    loop {
        let Connection { wire, early, socket, output, .. } = connection;
        let incoming = wire.incoming();
        let progress = match incoming {
            BytesDestination::Commands => return (State::Complete, moved),
            BytesDestination::Unplaced => return (State::NoFrames, moved),
            BytesDestination::Frames(_) if budget == 0 => return (State::NoBytes, moved),
            BytesDestination::Frames(range) if early.rest().is_empty() => {
                socket.receive_into_pool(&mut shared.pool, range)
            }
            BytesDestination::Frames(range) => Ok(Progress::Bytes(take_early(early, &mut shared.pool, range))),
            BytesDestination::Unneeded(left) if early.rest().is_empty() => {
                let room = scratch.len().min(left as usize);
                socket.receive(&mut scratch[..room])
            }
            BytesDestination::Unneeded(_) => {
                let count = early.rest().len();
                early.advance(count);
                Ok(Progress::Bytes(count))
            }
        };
        let count = match progress {
            Ok(Progress::Bytes(count)) => count,
            Ok(Progress::Blocked) => return (State::NoBytes, moved),
            Ok(Progress::Closed) | Err(_) => return (State::Gone, moved),
        };
        moved = true;
        budget = budget.saturating_sub(count as u64);
        match incoming {
            BytesDestination::Frames(range) => {
                let bytes = shared.pool.slice(range.part(Bytes::ZERO, Bytes(count as u64)));
                if let Some(arrival) = output.append(|out| wire.payload_came(bytes, out)) {
                    arrived(connection, arrival, shared);
                }
            }
            BytesDestination::Unneeded(_) => wire.payload_dropped(narrow(count)),
            BytesDestination::Commands | BytesDestination::Unplaced => panic!("bug: no payload could come"),
        }
    }
}

/// All payload of a transfer came.
pub(super) fn arrived(connection: &mut Connection, arrival: Arrival, shared: &mut Shared) {
    let Arrival { transfer, is_intact } = arrival;
    connection.end_wait_for_payload(shared.now);
    if transfer.last {
        shared.hosts.payload_taken(transfer.token);
    }
    // Damaged payload ends the request; its client is told by the wire.
    shared.control.transfer_done(transfer.tag, if is_intact { Ok(()) } else { Err(HostGone) });
}

fn take_early(early: &mut EarlyPayload, pool: &mut FramePool, into: PoolRange) -> usize {
    let bytes = early.rest();
    let count = bytes.len().min(usize::try_from(into.len.get()).expect("a piece is in memory"));
    pool.slice_mut(into.part(Bytes::ZERO, Bytes(count as u64))).copy_from_slice(&bytes[..count]);
    early.advance(count);
    count
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("a payload is below 4 GiB")
}
