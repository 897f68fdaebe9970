//! The output queue of a connection: headers in one buffer, payload still in frames, in order.
//!
//! All output of one round goes out in one gathered send. Frames are returned to the engine after the kernel has copied
//! them. The queue must never reorder output, and never copy payload.

use std::collections::VecDeque;

use openraid_sys::{FramePool, MessagePiece, PoolRange, Progress, Socket, PIECES_PER_SEND_MAX};
use openraid_units::Tag;

use crate::limits::REPLIES_KEPT;

/// A transfer whose bytes the kernel has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentTransfer {
    /// The engine's name for it.
    pub tag: Tag,
    /// Payload bytes of the request that are answered with it.
    pub len: u64,
    /// It was the end of its request.
    pub last: bool,
}

/// The result of a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendResult {
    /// The queue is empty.
    Empty,
    /// The kernel's buffer is full; `true` if it accepted some bytes before.
    Blocked(bool),
    /// The client is gone.
    Gone,
}

#[derive(Clone, Copy, Debug)]
enum Queued {
    /// A range of the buffer.
    Bytes { start: usize, len: usize },
    /// Payload.
    Frames { range: PoolRange, sent: SentTransfer },
}

impl Queued {
    fn len(&self) -> usize {
        match self {
            Self::Bytes { len, .. } => *len,
            Self::Frames { range, .. } => usize::try_from(range.len.get()).expect("frames are in memory"),
        }
    }
}

/// The queue of one connection.
#[derive(Debug, Default)]
pub struct ConnectionOutput {
    bytes: Vec<u8>,
    queue: VecDeque<Queued>,
    /// Bytes of the first piece that are sent.
    skip: usize,
    frame_bytes: u64,
}

impl ConnectionOutput {
    /// Is the queue empty?
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// Bytes of the buffer in use.
    #[must_use]
    #[inline]
    pub fn buffered(&self) -> usize {
        self.bytes.len()
    }
    /// Payload bytes in frames that wait.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// Append what `write` appends to the buffer.
    #[inline]
    pub fn append<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let start = self.bytes.len();
        let result = write(&mut self.bytes);
        let len = self.bytes.len() - start;
        if len > 0 {
            match self.queue.back_mut() {
                Some(Queued::Bytes { start: first, len: before }) if *first + *before == start => *before += len,
                _ => self.queue.push_back(Queued::Bytes { start, len }),
            }
        }
        result
    }

    /// Append payload.
    #[inline]
    pub fn frames(&mut self, range: PoolRange, sent: SentTransfer) {
        self.frame_bytes += range.len.get();
        self.queue.push_back(Queued::Frames { range, sent });
    }

    /// Send as much as the kernel accepts; `done` is called for each transfer that is sent.
    pub fn send(&mut self, socket: &Socket, pool: &FramePool, mut done: impl FnMut(SentTransfer)) -> SendResult {
        let mut progress = false;
        while !self.queue.is_empty() {
            let count = self.queue.len().min(PIECES_PER_SEND_MAX);
            let mut pieces = Vec::with_capacity(count);
            let mut total = 0;
            for queued in self.queue.iter().take(count) {
                total += queued.len();
                pieces.push(match queued {
                    Queued::Bytes { start, len } => MessagePiece::Bytes(&self.bytes[*start..*start + *len]),
                    Queued::Frames { range, .. } => MessagePiece::Pool(*range),
                });
            }
            match socket.send(pool, &pieces, self.skip) {
                Ok(Progress::Bytes(sent)) => {
                    let short = self.skip + sent < total;
                    progress = true;
                    self.advance(sent, &mut done);
                    if short {
                        // The kernel would refuse the rest now: wait for room instead of another call.
                        return SendResult::Blocked(progress);
                    }
                }
                Ok(Progress::Blocked) => return SendResult::Blocked(progress),
                Ok(Progress::Closed) | Err(_) => return SendResult::Gone,
            }
        }
        SendResult::Empty
    }

    fn advance(&mut self, sent: usize, done: &mut impl FnMut(SentTransfer)) {
        self.skip += sent;
        while let Some(first) = self.queue.front() {
            if self.skip < first.len() {
                return;
            }
            self.skip -= first.len();
            if let Queued::Frames { range, sent } = first {
                self.frame_bytes -= range.len.get();
                done(*sent);
            }
            self.queue.pop_front();
        }
        assert!(self.skip == 0, "bug: more was sent than was queued");
        self.bytes.clear();
        if self.bytes.capacity() > REPLIES_KEPT {
            self.bytes = Vec::new();
        }
    }

    /// Drop the queue; `dropped` is called for each transfer that will not be sent.
    pub fn abandon(&mut self, mut dropped: impl FnMut(SentTransfer)) {
        for queued in self.queue.drain(..) {
            if let Queued::Frames { sent, .. } = queued {
                dropped(sent);
            }
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_sys::PoolOptions;
    use openraid_units::{Bytes, PoolOffset, TagKind};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn pieces_arrive_in_order_and_frames_are_given_back_when_all_of_them_is_sent() {
        let mut pool = FramePool::new(PoolOptions::of(Bytes::mib(2))).expect("pool");
        let range = PoolRange::new(PoolOffset(4096), Bytes(1 << 20));
        pool.slice_mut(range).fill(7);
        let (ours, mut theirs) = UnixStream::pair().expect("socket pair");
        let socket = Socket::from(ours);
        let mut output = ConnectionOutput::default();
        let sent = SentTransfer { tag: Tag::new(TagKind::Transfer, 1, 2), len: 1 << 20, last: true };
        output.append(|bytes| bytes.extend_from_slice(b"head"));
        output.append(|bytes| bytes.extend_from_slice(b"er"));
        output.frames(range, sent);
        output.append(|bytes| bytes.extend_from_slice(b"tail"));
        assert_eq!(output.queue.len(), 3, "headers next to each other are one piece");
        let mut done = Vec::new();
        let first = output.send(&socket, &pool, |sent| done.push(sent));
        assert_eq!((first, done.len()), (SendResult::Blocked(true), 0), "a unix socket takes less than a MiB");
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            theirs.read_to_end(&mut bytes).map(|_| bytes)
        });
        while output.send(&socket, &pool, |sent| done.push(sent)) != SendResult::Empty {
            std::thread::yield_now();
        }
        assert_eq!((done, output.buffered(), output.frame_bytes()), (vec![sent], 0, 0));
        drop(socket);
        let bytes = reader.join().expect("reader").expect("read");
        assert_eq!(
            (&bytes[..6], &bytes[bytes.len() - 4..], bytes.len()),
            (&b"header"[..], &b"tail"[..], (1 << 20) + 10)
        );
        assert!(bytes[6..bytes.len() - 4].iter().all(|&byte| byte == 7));
    }
}
