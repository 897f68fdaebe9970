//! Messages to clients, and ends of connections, that follow from the state that connections share.

use super::offers::Catalog;
use super::wire::SharedErrand;
use super::{Exports, Shared};
use crate::member::MemberQuestion;
use crate::slab::SlabKey;

impl Exports {
    /// Carry out what the state that connections share asks for.
    #[inline]
    pub(super) fn run_errands(&mut self, shared: &mut Shared) {
        self.run_errands_with(shared, Self::close);
    }

    /// The same with another way to end a connection.
    #[inline]
    pub(super) fn run_errands_with(&mut self, shared: &mut Shared, end: fn(&mut Self, SlabKey, &mut Shared)) {
        while let Some(errand) = self.common.next_errand() {
            match errand {
                SharedErrand::Close(key) => end(self, key, shared),
                SharedErrand::Deliver(key) => self.deliver(key),
            }
        }
    }

    /// Answer the questions for members.
    pub fn answer_questions(&mut self, shared: &Shared, ask: MemberQuestion<'_>) {
        for key in std::mem::take(&mut self.askers) {
            let Some(connection) = self.table.get_mut(key) else { continue };
            let (offers, states, common) = (&self.offers, &mut self.states, &mut self.common);
            let mut catalog = Catalog { offers, states, common, control: &shared.control, now: shared.now };
            connection.output.append(|out| connection.wire.answer_questions(&mut catalog, ask, out));
            self.mark_dirty(key);
        }
    }

    fn deliver(&mut self, key: SlabKey) {
        let Some(connection) = self.table.get_mut(key) else { return };
        connection.output.append(|out| connection.wire.deliver(&mut self.common, out));
        self.mark_dirty(key);
    }
}
