//! The times at which pieces that wait for lines are called again: see `requests/queues.rs`.

use crate::controller::Controller;

impl Controller {
    /// A dirty unit was written, or refused: there may be lines.
    pub(crate) fn wake_for_lines(&mut self, failed: bool) {
        if failed || self.cache.is_held() {
            // Perhaps no piece gets lines any more.
            return self.requests.wake_all();
        }
        self.requests.call_for_lines();
        self.requests.wake_others();
    }

    /// Lines are no longer being filled. If some lines are dirty, a piece that waits for lines is called when those are
    /// written. With no dirty line that may never happen.
    pub(crate) fn wake_for_filled_lines(&mut self) {
        if self.cache.dirty == 0 {
            self.requests.call_for_lines();
        }
    }

    /// Put the next piece that waits for lines in front of all other pieces, if one more line may be dirty.
    #[inline]
    pub(crate) fn call_next_waiter(&mut self) {
        if !self.requests.call_next(|| self.cache.has_room()) {
            // They wait for more destage, however much is in work: the lines may be dirty again.
            self.cache.draining = true;
        }
    }
}
