//! Reads of the log through the window.

use crate::io::state::command::WindowUser;
use crate::journal::Journal;
use crate::limits::JOURNAL_BUFFERS;
use openraid_units::PoolOffset;

impl Journal {
    /// The address of the window, for its user. It follows the last buffer of the pool.
    pub(super) fn window_of(&self, user: WindowUser) -> PoolOffset {
        let is_alone = self.window.user == Some(user) && self.window.given_up == 0;
        assert!(is_alone, "{user:?} has the window, and has it alone: {:?}", self.window);
        self.buffer(JOURNAL_BUFFERS)
    }
}
