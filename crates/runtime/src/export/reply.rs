//! Answers of the engine to clients: data of reads, ends of requests, and the sends.

use openraid_core::actions::{Direction, Reply, ReplyStatus, Transfer};
use openraid_core::events::HostGone;
use openraid_nbd::server::chunk_data;
use openraid_nbd::{Command, NbdError};
use openraid_sys::{Interest, PoolRange};
use openraid_units::Bytes;

use super::connection::{in_one_piece, must_be_alone, Connection};
use super::output::{SendResult, Sent};
use super::{Exports, Shared};
use crate::hosts::{HostRequest, Payload};
use crate::slab::Key;

impl Exports {
    /// Carry out a transfer of a client's request.
    #[inline]
    pub fn transfer(&mut self, key: Key, transfer: &Transfer, shared: &mut Shared) {
        match transfer.direction {
            Direction::FromHost => self.take_from_client(key, transfer, shared),
            Direction::ToHost => self.pass_to_client(key, transfer, shared),
        }
    }

    fn take_from_client(&mut self, key: Key, transfer: &Transfer, shared: &mut Shared) {
        let host = shared.hosts.get(transfer.token);
        let (first, len) = (transfer.offset as usize, transfer.len as usize);
        let bytes = match &host.payload {
            Payload::Inbox(start) => &self.inbox[start + first..start + first + len],
            Payload::Stash(bytes) => &bytes[first..first + len],
            Payload::Stream => return self.stream_to(key, transfer, shared),
            Payload::None | Payload::Own(_) => panic!("bug: the engine asks for payload that it has: {transfer:?}"),
        };
        let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
        shared.pool.slice_mut(range).copy_from_slice(bytes);
        if transfer.last {
            shared.hosts.payload_taken(transfer.token);
        }
        shared.control.transfer_done(transfer.tag, Ok(()));
    }

    fn pass_to_client(&mut self, key: Key, transfer: &Transfer, shared: &mut Shared) {
        let host = shared.hosts.get(transfer.token);
        let request = host.request;
        let Some(connection) = self.table.get_mut(key) else {
            if transfer.last {
                shared.hosts.remove(transfer.token);
            }
            shared.control.transfer_done(transfer.tag, Err(HostGone));
            return;
        };
        let session = connection.serving().expect("requests come from clients that have chosen").session;
        let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
        let whole = transfer.last && transfer.offset == 0;
        let mut answered = range.len;
        if whole || must_be_alone(&session, &request) {
            if transfer.offset == 0 {
                let head = session.success(&request);
                connection.output.append(|out| out.extend_from_slice(head.as_bytes()));
            }
        } else if in_one_piece(&session, &request) {
            // Kept until the rest is there.
            let Payload::Own(gathered) = &mut host.payload else {
                host.payload = Payload::Own(shared.pool.slice(range).to_vec());
                return shared.control.transfer_done(transfer.tag, Ok(()));
            };
            if !transfer.last {
                gathered.extend_from_slice(shared.pool.slice(range));
                return shared.control.transfer_done(transfer.tag, Ok(()));
            }
            answered = request.length;
            let head = session.success(&request);
            connection.output.append(|out| {
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(gathered);
            });
        } else {
            let offset = request.offset + Bytes(u64::from(transfer.offset));
            let head = chunk_data(request.cookie, offset, range.len, transfer.last);
            connection.output.append(|out| out.extend_from_slice(&head));
        }
        let sent = Sent { tag: transfer.tag, len: answered.get(), last: transfer.last };
        connection.output.frames(range, sent);
        if transfer.last {
            end_alone(connection, transfer.token);
            shared.hosts.remove(transfer.token);
        } else {
            host.sent += transfer.len;
        }
        self.mark_dirty(key);
    }

    /// A request of a client ended.
    #[inline]
    pub fn reply(&mut self, key: Key, reply: &Reply, host: &HostRequest, shared: &mut Shared) {
        let Some(connection) = self.table.get_mut(key) else { return };
        let request = host.request;
        connection.requests -= 1;
        match request.command {
            Command::Write { .. } => connection.write_bytes -= request.length.get(),
            Command::Read { .. } => connection.read_bytes -= request.length.get() - u64::from(host.sent),
            _ => {}
        }
        let Some(serving) = connection.serving() else { return };
        let session = serving.session;
        if let Some(stream) = serving.stream.as_mut().filter(|stream| stream.token == reply.token) {
            assert!(stream.transfers.is_empty(), "bug: a request ended with transfers under way: {reply:?}");
            stream.discard = true;
        }
        let (error, message) = match reply.status {
            ReplyStatus::Ok => {
                let head = session.success(&request);
                connection.output.append(|out| out.extend_from_slice(head.as_bytes()));
                return self.after_reply(key, reply, shared);
            }
            ReplyStatus::IoError => (NbdError::InputOutput, "the array has lost these data, or cannot reach them"),
            ReplyStatus::OutOfRange if request.command.is_write() => (NbdError::NoSpace, "beyond the end of the array"),
            ReplyStatus::OutOfRange => (NbdError::Invalid, "beyond the end of the array"),
            ReplyStatus::NoSpace => (NbdError::NoSpace, "the storage of a member is full"),
            ReplyStatus::ReadOnly => (NbdError::NotPermitted, "the array does not take writes"),
            ReplyStatus::Offline => (NbdError::ShuttingDown, "the array is stopped"),
        };
        if host.sent > 0 && must_be_alone(&session, &request) {
            // The header announced all of the data, so an error can only be reported by closing the connection.
            return self.close(key, shared);
        }
        connection.output.append(|out| session.push_failure(&request, error, message, out));
        self.after_reply(key, reply, shared);
    }

    fn after_reply(&mut self, key: Key, reply: &Reply, shared: &mut Shared) {
        if let Some(connection) = self.table.get_mut(key) {
            end_alone(connection, reply.token);
            if connection.is_streaming() {
                self.pump(key, shared);
            }
        }
        self.mark_dirty(key);
    }

    /// Send what waits, once for each connection.
    pub fn send(&mut self, shared: &mut Shared) {
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
    }

    fn send_one(&mut self, key: Key, shared: &mut Shared) {
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
        if blocked || !connection.is_streaming() {
            connection.set_waits(blocked, moved, shared.now);
        }
        let wanted = Interest { writable: blocked, ..connection.registered };
        connection.register(&shared.epoll, wanted);
        if blocked {
            self.watch(shared.now);
        } else if connection.finishing && connection.requests == 0 {
            self.close(key, shared);
        }
    }
}

fn end_alone(connection: &mut Connection, token: openraid_units::Token) {
    if let Some(serving) = connection.serving() {
        if serving.alone == Some(token) {
            serving.alone = None;
        }
    }
}
