//! Requests to the server: gathered, with payload directly from frames.

use openraid_core::events::DriveError;
use openraid_nbd::client::{Pending, RequestError};
use openraid_nbd::{NbdCommand, NbdRequest};
use openraid_sys::{Interest, PoolRange};
use openraid_units::{PoolOffset, Tag, TagKind};

use super::answered_writes::AnsweredData;
use super::link::{register, RemoteError, RemoteLink};
use super::resume::{LinkStage, Standing};
use super::{EndedCommand, Remote, Surroundings, Work};
use crate::export::output::{SendResult, SentTransfer};
use crate::limits::REMOTE_REQUESTS_MAX;
use crate::slab::SlabKey;

impl Remote {
    /// Send waiting requests, as far as the server and the socket accept them.
    pub fn pump(&mut self, around: &mut Surroundings<'_>, done: &mut Vec<EndedCommand>) {
        if self.is_up() {
            self.repeat();
            self.note_return(around.now);
            if matches!(self.stage, LinkStage::Serving) {
                self.send_queued(done);
            }
            self.send_output(around);
        }
        if self.lost.is_some() {
            self.give_up(around.now, done);
        }
    }

    fn send_queued(&mut self, done: &mut Vec<EndedCommand>) {
        self.flush_early();
        while self.outstanding < REMOTE_REQUESTS_MAX {
            let Some(key) = self.queue.front().copied() else { break };
            let command = self.parts.get(key).expect("a queued command has its parts").pending.request().command;
            if command.is_write() && self.kept.is_full() {
                break;
            }
            self.queue.pop_front();
            if let Some(result) = self.send_part(key) {
                // Only an answer of the server can close the connection.
                let _ = self.end_part(key, result, done);
            }
        }
    }

    /// Send a request. If it ends without being sent: its result.
    pub(super) fn send_part(&mut self, key: SlabKey) -> Option<Result<(), DriveError>> {
        let (frames, covers) = (self.frames_of(key), self.kept.end());
        let part = self.parts.get_mut(key).expect("a request is sent while it is there");
        part.covers = covers;
        let (work, request) = (part.work, *part.pending.request());
        let is_command = matches!(work, Work::Command { .. });
        if request.command == NbdCommand::Flush && is_command && self.standing == Standing::FlushFailed {
            // The engine gets this error once. Its writes from now on can be flushed again.
            self.standing = Standing::Repeatable;
            return Some(Err(DriveError::FlushFailed));
        }
        let RemoteLink::Up(up) = &mut self.link else { unreachable!("requests are sent while there is a connection") };
        let head = match up.parser.encode(&request) {
            Ok(head) => head,
            Err(RequestError::NotOffered) if request.command == NbdCommand::Flush && self.options.without_flush => {
                return Some(Ok(()));
            }
            Err(error) => return Some(Err(refused(error))),
        };
        up.output.append(|out| out.extend_from_slice(&head));
        if request.command.is_write() {
            self.append_payload(work, &request, frames);
        }
        self.parts.get_mut(key).expect("seen above").pending = Pending::new(request);
        self.outstanding += 1;
        None
    }

    fn append_payload(&mut self, work: Work, request: &NbdRequest, frames: Option<PoolOffset>) {
        let RemoteLink::Up(up) = &mut self.link else { unreachable!("the caller has sent the header") };
        let bytes: &[u8] = match (work, frames) {
            (_, Some(at)) => {
                let sent = SentTransfer { tag: Tag::new(TagKind::Drive, 0, 0), len: request.length.get(), last: false };
                return up.output.frames(PoolRange::new(at, request.length), sent);
            }
            (Work::Command { task, offset }, None) => {
                let task = self.tasks.get(task).expect("a command stays while it has parts");
                let start = usize::try_from(offset).expect("metadata is small");
                let len = usize::try_from(request.length.get()).expect("metadata is small");
                &task.metadata[start..start + len]
            }
            (Work::Repeat { number }, None) => match self.kept.get(number).map(|write| &write.data) {
                Some(AnsweredData::Bytes(bytes)) => bytes,
                other => unreachable!("a write is repeated with the bytes that were kept of it: {other:?}"),
            },
            (Work::Flush | Work::Identity, None) => unreachable!("these write nothing"),
        };
        up.output.append(|out| out.extend_from_slice(bytes));
    }

    fn send_output(&mut self, around: &mut Surroundings<'_>) {
        let RemoteLink::Up(up) = &mut self.link else { return };
        if up.output.is_empty() {
            return;
        }
        match up.output.send(&up.socket, around.pool, |_| {}) {
            SendResult::Empty => register(&up.socket, &mut up.registered, Interest::READ, around),
            SendResult::Blocked(_) => register(&up.socket, &mut up.registered, Interest::BOTH, around),
            SendResult::Gone => self.drop_link(RemoteError::Closed, around),
        }
    }
}

/// A request that this server would refuse.
fn refused(error: RequestError) -> DriveError {
    match error {
        RequestError::NotOffered => DriveError::Unsupported,
        RequestError::ReadOnly => DriveError::ReadOnly,
        RequestError::Empty | RequestError::OutOfRange | RequestError::Misaligned(_) | RequestError::TooLarge(_) => {
            DriveError::Protocol
        }
    }
}
