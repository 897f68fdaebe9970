//! Pieces are split into operations.

use crate::actions::Actions;
use crate::controller::Controller;
use crate::requests::piece::Cached;
use openraid_units::SetId;

impl Controller {
    /// Make the next operation of the first piece that needs one; true if something changed. Not inlined, because the
    /// engine checks for waiting pieces much more often than it finds one.
    #[inline(never)]
    pub(crate) fn split_next(&mut self, actions: &mut Actions) -> bool {
        loop {
            // A piece that waits for lines comes first, if one more line may be dirty.
            if !self.requests.call_next(|| self.cache.has_room()) {
                self.cache.drain();
            }
            let Some(index) = self.requests.first_to_split() else { return self.move_gathers(actions) };
            let wants = !self.requests.is_split(index);
            if wants && (!self.split_once(index, actions) || !self.requests.is_split(index)) {
                return true;
            }
            // As long as it has operations there is nothing to check, and the next piece has its turn at once.
            if !self.requests.end_splitting(index) {
                self.check_piece(index, actions);
                return true;
            }
            if wants {
                return true;
            }
        }
    }

    /// Make the next operation of a piece; false if the piece waits for the cache instead and has left the queue.
    #[inline(always)]
    fn split_once(&mut self, index: u32, actions: &mut Actions) -> bool {
        if self.make_row_op(index) {
            return true;
        }
        let piece = self.requests.piece(index);
        let (first, last) = piece.range();
        let at = first + piece.split();
        if at >= last {
            // The rows that just ended were the last ones.
            return true;
        }
        let is_in_stream = piece.stream().is_some();
        let request = self.requests.get(piece.request());
        let (array, is_read) = (request.array(), request.is_read());
        let volume = self.arrays.get(array).volume();
        let (set, set_lba, run) = volume.map(at, |set| self.sets.get(set).shape());
        if self.sets.get(set).is_closed(set_lba, is_read) {
            self.wait_for_boundary(index, set);
            return false;
        }
        let mut len = run.min(last - at);
        if self.cache.is_on() {
            match self.ask_cache(index, set, (set_lba, len), is_read, actions) {
                Cached::Taken => return true,
                Cached::Waits => {
                    self.requests.leave_splitting();
                    return false;
                }
                Cached::Past(part) => len = part,
            }
            if !is_read && !self.base.limits.journal.is_zero() {
                // A write past the cache must fit into one entry of the journal.
                len = len.min(self.journal.payload_max());
            }
        }
        if is_in_stream {
            match self.gather_part(index, set, (set_lba, len)) {
                Some(alone) => len = alone,
                None => return true,
            }
        }
        match self.requests.next_extent_op(index, &self.sets, set, (set_lba, len), is_read) {
            Some(op) => self.start_op(op),
            // Its first row is made at once, unless a changed set comes first.
            None if !self.sets.has_news() => _ = self.make_row_op(index),
            None => {}
        }
        true
    }

    /// The first of the pieces that need operations comes to a place where the change of a set's shape is at work: it waits.
    #[cold]
    fn wait_for_boundary(&mut self, index: u32, set: SetId) {
        if let Some(reshape) = self.sets.get_mut(set).tasks.reshape_mut() {
            reshape.want_boundary();
        }
        self.sets.look();
        self.requests.leave_splitting();
        self.requests.wait_for_others(index);
    }

    /// Make the next row operation of a piece that is processed by rows; false if there is none.
    #[inline(always)]
    fn make_row_op(&mut self, index: u32) -> bool {
        let Some(op) = self.requests.next_row_op(index, &self.sets) else { return false };
        self.start_op(op);
        true
    }
}
