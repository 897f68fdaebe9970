//! What the journal needs besides itself for its own work.

use super::Journal;
use crate::actions::Actions;
use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::call::Call;
use crate::controller::Controller;
use crate::io::ops::Ops;

/// The other components, for the work of the journal.
pub(crate) struct Others<'a> {
    pub(super) sets: &'a mut Sets,
    pub(super) ops: &'a mut Ops,
    pub(super) cache: &'a mut Cache,
    /// Does a piece of a request wait for the cache or for the journal?
    pub(super) is_piece_waiting: bool,
    pub(super) call: Call<'a>,
}

impl Controller {
    /// The journal, and the other components.
    #[inline(always)]
    pub(crate) fn journal_and_others<'a>(&'a mut self, actions: &'a mut Actions) -> (&'a mut Journal, Others<'a>) {
        let is_piece_waiting = !self.requests.is_none_waiting();
        let Self { journal, sets, ops, cache, base, .. } = self;
        let call = Call::new(base, actions);
        (journal, Others { sets, ops, cache, is_piece_waiting, call })
    }
}
