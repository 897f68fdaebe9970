//! What the journal needs besides itself for its own work.

use crate::array::sets::Sets;
use crate::cache::Cache;
use crate::call::Call;
use crate::io::state::ops::Ops;

/// The other components, for the work of the journal.
pub(crate) struct Others<'a> {
    pub(super) sets: &'a mut Sets,
    pub(super) ops: &'a mut Ops,
    pub(super) cache: &'a mut Cache,
    /// Does a piece of a request wait for the cache or for the journal?
    pub(super) is_piece_waiting: bool,
    pub(super) call: Call<'a>,
}

impl<'a> Others<'a> {
    /// Lend these components, and say whether a piece of a request waits for the cache or for the journal.
    #[inline(always)]
    pub(crate) fn new(
        sets: &'a mut Sets,
        ops: &'a mut Ops,
        cache: &'a mut Cache,
        is_piece_waiting: bool,
        call: Call<'a>,
    ) -> Self {
        Self { sets, ops, cache, is_piece_waiting, call }
    }
}
