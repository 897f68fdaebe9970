//! Answers of the engine to clients: data of reads, ends of requests, and the sends.

use openraid_core::actions::{Direction, Reply, Transfer};
use openraid_core::events::{HostGone, RequestKind};
use openraid_sys::{Interest, PoolRange};
use openraid_units::Bytes;

use super::connection::Connection;
use super::output::{SendResult, SentTransfer};
use super::wire::{DataPart, Ending};
use super::{Exports, Shared};
use crate::host_requests::{HostPayload, HostRequest};
use crate::slab::SlabKey;

impl Exports {
    /// Carry out a transfer of a client's request.
    #[inline]
    pub fn transfer(&mut self, key: SlabKey, transfer: &Transfer, shared: &mut Shared) {
        match transfer.direction {
            Direction::FromHost => self.take_from_client(key, transfer, shared),
            Direction::ToHost => self.pass_to_client(key, transfer, shared),
        }
    }

    fn take_from_client(&mut self, key: SlabKey, transfer: &Transfer, shared: &mut Shared) {
        let host = shared.hosts.get(transfer.token);
        let (first, len) = (transfer.offset as usize, transfer.len as usize);
        let bytes = match &host.payload {
            HostPayload::Inbox(start) => &self.inbox[start + first..start + first + len],
            HostPayload::Stash(bytes) => &bytes[first..first + len],
            HostPayload::Stream => return self.stream_to(key, transfer, shared),
            HostPayload::None
            | HostPayload::Own(_)
            | HostPayload::Gathered(_)
            | HostPayload::Alone
            | HostPayload::Guest => {
                panic!("bug: the engine asks for payload that it has: {transfer:?}")
            }
        };
        let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
        shared.pool.slice_mut(range).copy_from_slice(bytes);
        if transfer.last {
            shared.hosts.payload_taken(transfer.token);
        }
        shared.control.transfer_done(transfer.tag, Ok(()));
    }

    fn pass_to_client(&mut self, key: SlabKey, transfer: &Transfer, shared: &mut Shared) {
        let host = shared.hosts.get(transfer.token);
        let Some(connection) = self.table.get_mut(key) else {
            if transfer.last {
                shared.hosts.remove(transfer.token);
            }
            shared.control.transfer_done(transfer.tag, Err(HostGone));
            return;
        };
        let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
        let all = DataPart { offset: 0, len: host.len, last: true };
        let mut gathered = Vec::new();
        let announced = match &mut host.payload {
            HostPayload::Gathered(pieces) if !transfer.last => {
                pieces.extend_from_slice(shared.pool.slice(range));
                return shared.control.transfer_done(transfer.tag, Ok(()));
            }
            HostPayload::Gathered(pieces) => {
                gathered = std::mem::take(pieces);
                Some(all)
            }
            HostPayload::Alone => (transfer.offset == 0).then_some(all),
            _ => {
                let (offset, len) = (u64::from(transfer.offset), u64::from(transfer.len));
                Some(DataPart { offset, len, last: transfer.last })
            }
        };
        let Connection { wire, output, .. } = connection;
        if let Some(part) = announced {
            output.append(|out| {
                wire.data_head(host, part, out);
                out.extend_from_slice(&gathered);
            });
        }
        let sent =
            SentTransfer { tag: transfer.tag, len: gathered.len() as u64 + range.len.get(), last: transfer.last };
        output.frames(range, sent);
        if let Some(part) = announced.filter(|_| wire.has_data_tails()) {
            output.append(|out| wire.data_tail(host, part, shared.pool.slice(range), out));
        }
        if transfer.last {
            connection.end_alone(transfer.token);
            shared.hosts.remove(transfer.token);
        } else {
            host.sent += transfer.len;
        }
        self.mark_dirty(key);
    }

    /// A request of a client ended.
    #[inline]
    pub fn reply(&mut self, key: SlabKey, reply: &Reply, host: &HostRequest, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        let Connection { wire, output, .. } = connection;
        connection.requests -= 1;
        match host.kind {
            RequestKind::Write { .. } => connection.write_bytes -= host.len,
            RequestKind::Read => connection.read_bytes -= host.len - u64::from(host.sent),
            _ => {}
        }
        match output.append(|out| wire.end(host, reply.status, out)) {
            Ending::Untellable => return self.close(key, shared),
            Ending::Answered => connection.end_alone(reply.token),
        }
        if connection.is_streaming() {
            self.pump(key, shared);
        }
        self.mark_dirty(key);
    }

    /// Send what waits, once for each connection.
    pub fn send(&mut self, shared: &mut Shared) {
        self.run_errands(shared);
        let mut dirty = std::mem::take(&mut self.dirty);
        for key in dirty.drain(..) {
            let Some(connection) = self.table.get_mut(key) else { continue };
            connection.dirty = false;
            self.send_one(key, shared);
        }
        std::mem::swap(&mut dirty, &mut self.dirty);
        if self.dirty.is_empty() {
            // Keep the memory of the longer list.
            self.dirty = dirty;
        }
        // A connection that was closed may take others with it.
        self.run_errands(shared);
    }

    fn send_one(&mut self, key: SlabKey, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        let Connection { output, socket, requests, read_bytes, .. } = connection;
        let control = &mut shared.control;
        let result = output.send(socket, &shared.pool, |sent| {
            control.transfer_done(sent.tag, Ok(()));
            *read_bytes -= sent.len;
            *requests -= u32::from(sent.last);
        });
        let (blocked, moved) = match result {
            SendResult::Gone => return self.close(key, shared),
            SendResult::Empty => (false, true),
            SendResult::Blocked(moved) => (true, moved),
        };
        let waits = blocked || connection.wire.is_asked();
        if waits || !connection.is_streaming() {
            connection.set_waits(waits, moved, shared.now);
        }
        let wanted = Interest { writable: blocked, ..connection.registered };
        connection.register(&shared.epoll, wanted);
        if waits {
            self.watch(shared.now);
        } else if connection.finishing && connection.requests == 0 {
            self.close(key, shared);
        }
    }
}
