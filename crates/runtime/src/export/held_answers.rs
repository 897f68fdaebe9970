//! Answers that wait until what a crash would lose is marked.
//!
//! ```text
//!  passed --nothing of the array is dirty in the cache--> held --the mark is durable--> passed
//! ```
//!
//! From the change to held on, no write of the array is answered; what was answered before is on the members. So the mark of a
//! volatile cache may be taken off meanwhile, and a write costs nothing but a look at an empty list.

use openraid_core::actions::{Reply, ReplyStatus};
use openraid_core::events::RequestKind;
use openraid_units::ArrayId;

use super::{Exports, Shared};
use crate::host_requests::HostRequest;
use crate::slab::SlabKey;

/// The arrays whose writes are not answered, and the answers that wait, with the keys of their clients.
#[derive(Debug, Default)]
pub struct HeldAnswers {
    arrays: Vec<ArrayId>,
    answers: Vec<(ArrayId, SlabKey, Reply, HostRequest)>,
    /// Has an answer begun to wait since the last call of [`HeldAnswers::take_awaited_mark`]?
    news: Option<ArrayId>,
}

impl HeldAnswers {
    /// Must the answer to this request wait? The client's array is needed only rarely.
    #[inline]
    pub fn holds(&self, request: &HostRequest, reply: &Reply, array: impl FnOnce() -> Option<ArrayId>) -> bool {
        !self.arrays.is_empty() && changes(request) && reply.status == ReplyStatus::Ok && {
            array().is_some_and(|array| self.arrays.contains(&array))
        }
    }

    /// Let an answer wait for [`HeldAnswers::pass`].
    pub fn hold(&mut self, array: ArrayId, key: SlabKey, reply: Reply, request: HostRequest) {
        self.news = Some(array);
        self.answers.push((array, key, reply, request));
    }

    /// Answer no write of an array from now on. The caller has seen that nothing of it is dirty in the cache.
    pub fn hold_writes(&mut self, array: ArrayId) {
        if !self.arrays.contains(&array) {
            self.arrays.push(array);
        }
    }

    /// Hold no writes of an array any more. The answers that waited are to be given now.
    pub fn pass(&mut self, array: ArrayId) -> Vec<(SlabKey, Reply, HostRequest)> {
        self.arrays.retain(|held| *held != array);
        let waiting = self.answers.extract_if(.., |(of, ..)| *of == array);
        waiting.map(|(_, key, reply, request)| (key, reply, request)).collect()
    }

    /// Do clients of an array that are still there wait for such an answer?
    pub fn awaits(&self, array: ArrayId, is_there: impl Fn(SlabKey) -> bool) -> bool {
        self.answers.iter().any(|(of, key, ..)| *of == array && is_there(*key))
    }

    /// The array for which an answer has begun to wait, once.
    pub fn take_awaited_mark(&mut self) -> Option<ArrayId> {
        self.news.take()
    }
}

fn changes(request: &HostRequest) -> bool {
    match request.kind {
        RequestKind::Write { .. } | RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => true,
        RequestKind::Read | RequestKind::Flush => false,
    }
}

impl Exports {
    fn array_of(&self, key: SlabKey) -> Option<ArrayId> {
        self.table.get(key).and_then(|connection| connection.role.array())
    }

    /// Must the answer to this request wait?
    #[inline]
    pub fn holds(&self, key: SlabKey, request: &HostRequest, reply: &Reply) -> bool {
        self.held.holds(request, reply, || self.array_of(key))
    }

    /// Let an answer wait for [`Exports::pass_writes`].
    #[cold]
    pub fn hold(&mut self, key: SlabKey, reply: Reply, request: HostRequest) {
        if let Some(array) = self.array_of(key) {
            self.held.hold(array, key, reply, request);
        }
    }

    /// Answer no write of an array from now on. The caller has seen that nothing of it is dirty in the cache.
    pub fn hold_writes(&mut self, array: ArrayId) {
        self.held.hold_writes(array);
    }

    /// Answer the writes of an array, the waiting ones first.
    pub fn pass_writes(&mut self, array: ArrayId, shared: &mut Shared) {
        for (key, reply, request) in self.held.pass(array) {
            self.reply(key, &reply, &request, shared);
        }
    }

    /// Do clients of an array wait for such an answer?
    #[must_use]
    pub fn awaits_mark(&self, array: ArrayId) -> bool {
        self.held.awaits(array, |key| self.table.get(key).is_some())
    }

    /// The array for which an answer has begun to wait, once.
    pub fn take_awaited_mark(&mut self) -> Option<ArrayId> {
        self.held.take_awaited_mark()
    }
}
