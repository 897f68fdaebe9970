//! The times at which pieces that wait for lines are called again: see `requests/queues.rs`.

use crate::cache::Cache;
use crate::requests::Requests;

impl Cache {
    /// A dirty unit was written, or refused: there may be lines.
    pub(crate) fn wake_for_lines(&mut self, requests: &mut Requests, failed: bool) {
        if failed || self.is_held() {
            // Perhaps no piece gets lines any more.
            return requests.wake_all();
        }
        requests.call_for_lines();
        requests.wake_others();
    }

    /// Lines are no longer being filled. If some lines are dirty, a piece that waits for lines is called when those are
    /// written. With no dirty line that may never happen.
    pub(crate) fn wake_for_filled_lines(&mut self, requests: &mut Requests) {
        if self.dirty == 0 {
            requests.call_for_lines();
        }
    }

    /// Put the next piece that waits for lines in front of all other pieces, if one more line may be dirty.
    #[inline]
    pub(crate) fn call_next_waiter(&mut self, requests: &mut Requests) {
        if !requests.call_next(|| self.has_room()) {
            // They wait for more destage, however much is in work: the lines may be dirty again.
            self.draining = true;
        }
    }
}
