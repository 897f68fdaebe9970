//! Requests to the server: gathered, payload straight out of frames.

use openraid_core::events::DriveError;
use openraid_nbd::client::{Pending, RequestError};
use openraid_nbd::Command;
use openraid_sys::{Interest, PoolRange};
use openraid_units::{Tag, TagKind};

use super::link::{register, Link, RemoteError};
use super::{Done, Remote, Surroundings};
use crate::export::output::{SendResult, Sent};
use crate::limits::REMOTE_REQUESTS_MAX;
use crate::slab::Key;

impl Remote {
    /// Send what waits, as far as the server and the socket take it.
    pub fn pump(&mut self, around: &mut Surroundings<'_>, done: &mut Vec<Done>) {
        if self.is_up() {
            while self.outstanding < REMOTE_REQUESTS_MAX {
                let Some(key) = self.queue.pop_front() else { break };
                self.push(key, done);
            }
        }
        let Link::Up(up) = &mut self.link else { return };
        if up.output.is_empty() {
            return;
        }
        match up.output.send(&up.socket, around.pool, |_| {}) {
            SendResult::Empty => register(&up.socket, &mut up.registered, Interest::READ, around),
            SendResult::Blocked(_) => register(&up.socket, &mut up.registered, Interest::BOTH, around),
            SendResult::Gone => self.drop_link(RemoteError::Closed, around),
        }
    }

    fn push(&mut self, key: Key, done: &mut Vec<Done>) {
        let (frames, covers) = (self.frames_of(key), self.answered_writes);
        let part = self.parts.get_mut(key).expect("what is queued is there");
        let request = *part.pending.request();
        if request.command == Command::Flush {
            part.covers = covers;
            if std::mem::take(&mut self.in_doubt) {
                // Told once, the engine knows; what it writes from now on can be flushed again.
                self.durable_writes = self.answered_writes;
                return self.end_part(key, Err(DriveError::FlushFailed), done);
            }
        }
        let Link::Up(up) = &mut self.link else { return };
        let head = match up.parser.encode(&request) {
            Ok(head) => head,
            Err(RequestError::NotOffered) if request.command == Command::Flush && self.options.without_flush => {
                return self.end_part(key, Ok(()), done);
            }
            Err(error) => return self.end_part(key, Err(refused(error)), done),
        };
        up.output.append(|out| out.extend_from_slice(&head));
        if request.command.is_write() {
            match frames {
                Some(at) => {
                    let sent = Sent { tag: Tag::new(TagKind::Drive, 0, 0), len: request.length.get(), last: false };
                    up.output.frames(PoolRange::new(at, request.length), sent);
                }
                None => {
                    let part = self.parts.get(key).expect("seen above");
                    let task = self.tasks.get(part.task).expect("a command stays while it has parts");
                    let start = usize::try_from(part.offset).expect("metadata is small");
                    let len = usize::try_from(request.length.get()).expect("metadata is small");
                    up.output.append(|out| out.extend_from_slice(&task.metadata[start..start + len]));
                }
            }
        }
        self.parts.get_mut(key).expect("seen above").pending = Pending::new(request);
        self.outstanding += 1;
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
