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
use crate::hosts::HostRequest;
use crate::slab::SlabKey;

/// The arrays whose writes are not answered, and the answers that wait.
#[derive(Debug, Default)]
pub struct HeldAnswers {
    arrays: Vec<ArrayId>,
    answers: Vec<(ArrayId, SlabKey, Reply, HostRequest)>,
    /// Has an answer begun to wait since the last call of [`Exports::take_awaited_mark`]?
    news: Option<ArrayId>,
}

impl Exports {
    /// Must the answer to this request wait?
    #[inline]
    pub fn holds(&self, key: SlabKey, request: &HostRequest, reply: &Reply) -> bool {
        !self.held.arrays.is_empty() && self.holds_answer(key, request, reply)
    }

    fn holds_answer(&self, key: SlabKey, request: &HostRequest, reply: &Reply) -> bool {
        let changes = match request.kind {
            RequestKind::Write { .. } | RequestKind::Trim { .. } | RequestKind::WriteZeroes { .. } => true,
            RequestKind::Read | RequestKind::Flush => false,
        };
        let array = self.table.get(key).and_then(|connection| connection.role.array());
        changes && reply.status == ReplyStatus::Ok && array.is_some_and(|array| self.held.arrays.contains(&array))
    }

    /// Let an answer wait for [`Exports::pass_writes`].
    #[cold]
    pub fn hold(&mut self, key: SlabKey, reply: Reply, request: HostRequest) {
        let Some(array) = self.table.get(key).and_then(|connection| connection.role.array()) else { return };
        self.held.news = Some(array);
        self.held.answers.push((array, key, reply, request));
    }

    /// Answer no write of an array from now on. The caller has seen that nothing of it is dirty in the cache.
    pub fn hold_writes(&mut self, array: ArrayId) {
        if !self.held.arrays.contains(&array) {
            self.held.arrays.push(array);
        }
    }

    /// Answer the writes of an array, the waiting ones first.
    pub fn pass_writes(&mut self, array: ArrayId, shared: &mut Shared) {
        self.held.arrays.retain(|held| *held != array);
        let waiting: Vec<_> = self.held.answers.extract_if(.., |(of, ..)| *of == array).collect();
        for (_, key, reply, request) in waiting {
            self.reply(key, &reply, &request, shared);
        }
    }

    /// Do clients of an array wait for such an answer?
    #[must_use]
    pub fn awaits_mark(&self, array: ArrayId) -> bool {
        self.held.answers.iter().any(|(of, key, ..)| *of == array && self.table.get(*key).is_some())
    }

    /// The array for which an answer has begun to wait, once.
    pub fn take_awaited_mark(&mut self) -> Option<ArrayId> {
        self.held.news.take()
    }
}
