//! Host requests and their replies.

use std::collections::VecDeque;

use openraid_core::actions::ReplyStatus;
use openraid_core::events::{BlockRequest, RequestKind};
use openraid_units::{ArrayId, ArrayOffset, Instant, Token};

use super::World;
use crate::record::RecordEntry;

/// A request inside the controller.
#[derive(Clone, Debug)]
pub struct Host {
    pub request: BlockRequest,
    /// The time at which the host submitted it.
    pub submitted: Instant,
    /// Bytes to write, or bytes read so far.
    pub(super) payload: Vec<u8>,
    /// Bytes of the payload for which transfers were issued.
    pub(super) issued: u64,
    /// The end of the last issued transfer. The next transfer must not overtake it.
    pub(super) transfer_end: Instant,
    /// Whether the host has disconnected.
    pub(super) gone: bool,
}

/// A request that has ended.
#[derive(Clone, Debug)]
pub struct FinishedRequest {
    pub request: BlockRequest,
    pub status: ReplyStatus,
    /// Bytes read; for other requests, the bytes written.
    pub payload: Vec<u8>,
    /// The time at which the request was submitted.
    pub submitted: Instant,
    /// The time at which the request ended.
    pub ended: Instant,
    /// Whether the journal has the write.
    pub promised: bool,
}

impl World {
    /// Submit a request; `payload` has the bytes of a write.
    ///
    /// # Errors
    /// The controller is full; the payload is returned.
    ///
    /// # Panics
    /// A payload that does not fit the request.
    pub fn try_submit(
        &mut self,
        array: ArrayId,
        kind: RequestKind,
        offset: u64,
        len: u64,
        payload: Vec<u8>,
    ) -> Result<Token, Vec<u8>> {
        let writes = matches!(kind, RequestKind::Write { .. });
        assert!(!writes || payload.len() as u64 == len, "a write carries its bytes");
        let token = self.new_token();
        let request = BlockRequest { token, array, kind, offset: ArrayOffset(offset), len };
        let taken = self.controller.submit(request).is_ok();
        self.note(|| RecordEntry::Submit(request));
        if !taken {
            return Err(payload);
        }
        self.stirred = true;
        let payload = if kind == RequestKind::Read { vec![0; payload_len(len)] } else { payload };
        let now = self.now;
        let host = Host { request, submitted: now, payload, issued: 0, transfer_end: now, gone: false };
        self.hosts.insert(token, host);
        Ok(token)
    }

    /// Submit a request. If the controller is full, wait for room.
    pub fn submit(&mut self, array: ArrayId, kind: RequestKind, offset: u64, len: u64, payload: Vec<u8>) -> Token {
        let mut payload = payload;
        loop {
            match self.try_submit(array, kind, offset, len, payload) {
                Ok(token) => return token,
                Err(back) => payload = back,
            }
            self.must_step("the controller is full");
        }
    }

    /// Disconnect the host of a request: its transfers fail from now on, and no answer is kept.
    pub fn abandon(&mut self, token: Token) {
        if let Some(host) = self.hosts.get_mut(&token) {
            host.gone = true;
        }
    }

    /// Number of requests without an answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.hosts.len()
    }

    /// Take the requests that have ended, in the order of their ends.
    pub fn take_finished(&mut self) -> impl Iterator<Item = (Token, FinishedRequest)> + '_ {
        self.finished.drain(..)
    }

    /// Take the requests of one array that have ended, in the order of their ends.
    pub fn take_finished_of(&mut self, array: ArrayId) -> Vec<(Token, FinishedRequest)> {
        if self.finished.is_empty() {
            return Vec::new();
        }
        let (of_array, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.finished).into_iter().partition(|(_, done)| done.request.array == array);
        self.finished = others;
        Vec::from(of_array)
    }

    /// Wait for the end of a request.
    ///
    /// # Panics
    /// The request is not in the controller, and its end was already taken.
    pub fn run_until(&mut self, token: Token) -> FinishedRequest {
        loop {
            if let Some(at) = self.finished.iter().position(|(done, _)| *done == token) {
                return self.finished.remove(at).expect("it was found there").1;
            }
            assert!(self.hosts.contains_key(&token), "{token:?} is not outstanding");
            self.must_step("a request has no answer");
        }
    }

    fn one(&mut self, array: ArrayId, kind: RequestKind, offset: u64, len: u64, payload: Vec<u8>) -> FinishedRequest {
        let token = self.submit(array, kind, offset, len, payload);
        self.run_until(token)
    }

    /// Read, and wait for the answer.
    ///
    /// # Errors
    /// The status of the request.
    pub fn read(&mut self, array: ArrayId, offset: u64, len: u64) -> Result<Vec<u8>, ReplyStatus> {
        let finished = self.one(array, RequestKind::Read, offset, len, Vec::new());
        match finished.status {
            ReplyStatus::Ok => Ok(finished.payload),
            status => Err(status),
        }
    }

    /// Write, and wait for the answer.
    ///
    /// # Errors
    /// The status of the request.
    pub fn write(&mut self, array: ArrayId, offset: u64, bytes: &[u8]) -> Result<(), ReplyStatus> {
        let len = bytes.len() as u64;
        ended(&self.one(array, RequestKind::Write { fua: false }, offset, len, bytes.to_vec()))
    }

    /// Flush, and wait for the answer.
    ///
    /// # Errors
    /// The status of the request.
    pub fn flush(&mut self, array: ArrayId) -> Result<(), ReplyStatus> {
        ended(&self.one(array, RequestKind::Flush, 0, 0, Vec::new()))
    }

    /// Trim, and wait for the answer.
    ///
    /// # Errors
    /// The status of the request.
    pub fn trim(&mut self, array: ArrayId, offset: u64, len: u64) -> Result<(), ReplyStatus> {
        ended(&self.one(array, RequestKind::Trim { fua: false }, offset, len, Vec::new()))
    }

    /// Write zeroes, and wait for the answer.
    ///
    /// # Errors
    /// The status of the request.
    pub fn zero(&mut self, array: ArrayId, offset: u64, len: u64, may_discard: bool) -> Result<(), ReplyStatus> {
        ended(&self.one(array, RequestKind::WriteZeroes { fua: false, may_discard }, offset, len, Vec::new()))
    }

    /// A request has ended.
    pub(super) fn finish(&mut self, token: Token, status: ReplyStatus) {
        let Some(host) = self.hosts.remove(&token) else {
            panic!("{token:?} ended twice or was never there");
        };
        if host.gone {
            return;
        }
        let with_payload = matches!(host.request.kind, RequestKind::Read | RequestKind::Write { .. });
        if status == ReplyStatus::Ok && with_payload {
            assert_eq!(host.issued, host.request.len, "{:?} ended well without all of its bytes", host.request);
        }
        let Host { request, submitted, payload, .. } = host;
        let promised = request.kind != RequestKind::Read && self.controller.is_promising(request.array);
        self.finished
            .push_back((token, FinishedRequest { request, status, payload, submitted, ended: self.now, promised }));
    }
}

fn ended(finished: &FinishedRequest) -> Result<(), ReplyStatus> {
    match finished.status {
        ReplyStatus::Ok => Ok(()),
        status => Err(status),
    }
}

#[allow(clippy::cast_possible_truncation)] // a payload is in memory
fn payload_len(len: u64) -> usize {
    // No controller accepts such a length, so the request gets no payload.
    if len > openraid_core::limits::REQUEST_BYTES_MAX {
        0
    } else {
        len as usize
    }
}
