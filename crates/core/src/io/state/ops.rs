//! The table of operations, the ranges that they hold, and their queues: one for operations that can continue, one for
//! each wait.
//!
//! An operation is in one queue at most. A lower layer that ends a wait calls the operation by the function for that wait
//! and knows nothing of the queue.

use core::ops::{Deref, DerefMut};
use openraid_units::SetId;

use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::io::state::head_positions::ReadHeads;
use crate::io::state::lock::{LockRange, Locks};
use crate::io::state::op::Op;
use crate::io::state::wait::Wait;
use crate::per_set::PerSet;
use crate::slab::{Key, Queue, Slab};

/// Number of operations reserved for other operations.
const CHILD_OPS: u32 = 8;
/// Maximum number of child operations of one operation.
const CHILDREN_MAX: u32 = 2;
/// Number of operations reserved for background work, so that hosts cannot starve it.
const BACKGROUND_OPS: u32 = 8;

/// See the module header.
#[derive(Debug)]
pub(crate) struct Ops {
    table: Slab<Op>,
    /// The ranges that they hold, or wait for.
    locks: Locks,
    /// Operations that can continue.
    ready: Queue,
    /// Operations that wait for work frames, for commands, and for a change of their set.
    for_frames: Queue,
    /// Parts of moves that wait for work frames.
    moves_for_frames: Queue,
    for_commands: Queue,
    for_set: Queue,
    /// Operations that wait until their rows are redone from the journal, and for room in the journal.
    for_redo: Queue,
    for_journal: Queue,
    /// Operations that a partial parity log refused: they end with an error.
    refused: Queue,
    /// Did background work find no place in the table?
    background_waits: bool,
    /// The positions from which reads of each set choose a copy.
    heads: PerSet<ReadHeads>,
}

impl Deref for Ops {
    type Target = Slab<Op>;
    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

impl DerefMut for Ops {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.table
    }
}

impl Ops {
    /// An empty table for `ops_max` operations.
    pub(crate) fn new(ops_max: u32) -> Self {
        let queue = || Queue::new(ops_max);
        Self {
            table: Slab::new(ops_max),
            locks: Locks::new(ops_max),
            ready: queue(),
            for_frames: queue(),
            moves_for_frames: queue(),
            for_commands: queue(),
            for_set: queue(),
            for_redo: queue(),
            for_journal: queue(),
            refused: queue(),
            background_waits: false,
            heads: PerSet::new(),
        }
    }

    /// Put an operation into the table. It belongs to the epoch of its set that runs, unless its place was looked up in
    /// an earlier one.
    #[inline(always)]
    pub(crate) fn begin(&mut self, set: &mut Set, mut op: Op) -> Key {
        let epoch = op.epoch.unwrap_or(set.ops().now());
        op.epoch = Some(epoch);
        set.ops_mut().begin(epoch);
        set.count_direct_write(op.is_direct_write());
        self.table.put(op)
    }

    /// May an operation be made for a host? The last places are reserved.
    pub(crate) fn may_make_op(&self) -> bool {
        self.room() > CHILD_OPS + BACKGROUND_OPS
    }

    /// May an operation be made for background work?
    pub(crate) fn may_make_background_op(&self) -> bool {
        self.room() > CHILD_OPS
    }

    /// May an operation be made for another operation that waits for it and already uses all its places?
    pub(crate) fn may_make_awaited_op(&self) -> bool {
        self.room() > CHILDREN_MAX
    }

    /// A set with this number of slots is being started.
    pub(crate) fn begin_set(&mut self, set: SetId, slots: u16) {
        self.heads.begin(set, || ReadHeads::new(usize::from(slots)));
    }

    /// The estimated heads of a set's members.
    #[inline(always)]
    pub(in crate::io) fn heads(&self, set: SetId) -> &ReadHeads {
        self.heads.get(set)
    }

    /// As [`Ops::heads`].
    #[inline(always)]
    pub(in crate::io) fn heads_mut(&mut self, set: SetId) -> &mut ReadHeads {
        self.heads.get_mut(set)
    }

    /// The logical block of an operation's set, in sectors.
    pub(crate) fn block_of(&self, sets: &Sets, index: u32) -> u32 {
        let block = sets.get(self[index].set()).block().sectors();
        u32::try_from(block.get()).expect("a block is small")
    }

    /// The operation can continue.
    #[inline(always)]
    pub(crate) fn wake(&mut self, index: u32) {
        self.ready.push(index);
    }

    /// The next operation that can continue.
    #[inline(always)]
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        self.ready.pop()
    }

    /// Can an operation continue?
    #[inline(always)]
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// A command of an operation has ended. The operation advances after its last one.
    #[inline(always)]
    pub(crate) fn command_ended(&mut self, index: u32) {
        let op = &mut self.table[index];
        op.pending -= 1;
        if op.pending == 0 {
            self.ready.push(index);
        }
    }

    /// The ranges that operations hold, or wait for.
    pub(crate) fn locks(&self) -> &Locks {
        &self.locks
    }

    /// Request a range for an operation; true if it has it at once. Otherwise it continues when it has it.
    pub(in crate::io) fn lock(&mut self, index: u32, range: LockRange) -> bool {
        self.locks.acquire(index, range)
    }

    /// An operation has ended: its range is free. The operations that get a range by that continue.
    pub(in crate::io) fn unlock(&mut self, index: u32) {
        self.locks.release(index, |granted| self.ready.push(granted));
    }

    /// The operation waits for work frames: before all others of its queue if it was called for them and found too few.
    pub(in crate::io) fn wait_for_frames(&mut self, index: u32, was_called: bool) {
        let is_first = self[index].is_part_of_move();
        let queue = if is_first { &mut self.moves_for_frames } else { &mut self.for_frames };
        if was_called {
            queue.push_front(index);
        } else {
            queue.push(index);
        }
    }

    /// Does an operation wait for work frames?
    #[inline(always)]
    pub(crate) fn are_frames_awaited(&self) -> bool {
        !self.for_frames.is_empty() || !self.moves_for_frames.is_empty()
    }

    /// There may be enough work frames for the operation that has waited longest. Parts of moves go first: the others may wait
    /// for frames that the move has.
    #[inline(always)]
    pub(in crate::io) fn wake_for_frames(&mut self) {
        if self.are_frames_awaited() {
            self.wake_first_for_frames();
        }
    }

    #[inline(never)]
    fn wake_first_for_frames(&mut self) {
        if let Some(index) = self.moves_for_frames.pop().or_else(|| self.for_frames.pop()) {
            self.table[index].call_for_frames();
            self.ready.push(index);
        }
    }

    /// The operation waits for room in the table of commands.
    pub(super) fn wait_for_commands(&mut self, index: u32) {
        self.for_commands.push(index);
    }

    /// The table of commands may have room for the operation that has waited longest.
    #[inline]
    pub(in crate::io) fn wake_for_commands(&mut self) {
        if let Some(index) = self.for_commands.pop() {
            self.ready.push(index);
        }
    }

    /// Does every operation wait for work frames or for room in the table of commands, so that none of them will end?
    pub(in crate::io) fn is_none_at_work(&self) -> bool {
        let for_frames = self.for_frames.len() + self.moves_for_frames.len();
        (self.for_commands.len() + for_frames) as u64 == u64::from(self.table.len())
    }

    /// The operation waits for a change of its set.
    pub(super) fn wait_for_set(&mut self, index: u32) {
        self.for_set.push(index);
    }

    /// Call the operations that wait for a change of their set and for which this is it. The others keep their order.
    pub(super) fn wake_for_sets(&mut self, is_it: impl Fn(&Op) -> bool) {
        for _ in 0..self.for_set.len() {
            let index = self.for_set.pop().expect("counted");
            if is_it(&self.table[index]) {
                self.ready.push(index);
            } else {
                self.for_set.push(index);
            }
        }
    }

    /// The operation waits until its rows are redone from the journal.
    pub(super) fn wait_for_redo(&mut self, index: u32) {
        self.for_redo.push(index);
    }

    /// Number of operations that wait for redos.
    pub(crate) fn redo_waiters(&self) -> usize {
        self.for_redo.len()
    }

    /// The operation that waits for redos and whose turn it is; then it is the turn of the next one.
    pub(in crate::io) fn next_redo_waiter(&mut self) -> Option<u32> {
        let index = self.for_redo.pop()?;
        self.for_redo.push(index);
        Some(index)
    }

    /// Rows were redone, or no more will be: call all operations that wait for redos.
    pub(in crate::io) fn wake_for_redos(&mut self) {
        while let Some(index) = self.for_redo.pop() {
            self.ready.push(index);
        }
    }

    /// The operation waits for room in the journal.
    pub(crate) fn wait_for_journal(&mut self, index: u32) {
        self.for_journal.push(index);
    }

    /// The operations that wait for room in the journal, in order.
    pub(crate) fn journal_waiters(&self) -> impl Iterator<Item = u32> + '_ {
        self.for_journal.iter()
    }

    /// Does an operation wait for room in the journal?
    #[inline(always)]
    pub(crate) fn is_journal_awaited(&self) -> bool {
        !self.for_journal.is_empty()
    }

    /// The journal may have room: call all operations that wait for it.
    pub(crate) fn wake_for_journal(&mut self) {
        while let Some(index) = self.for_journal.pop() {
            self.ready.push(index);
        }
    }

    /// A partial parity log refuses the operation: it ends with an error when the controller takes it.
    pub(crate) fn refuse(&mut self, index: u32) {
        self.refused.push(index);
    }

    /// The next operation that a log refused.
    pub(crate) fn next_refused(&mut self) -> Option<u32> {
        self.refused.pop()
    }

    /// Background work waits until an operation ends, because it found no place in the table.
    pub(crate) fn wait_in_background(&mut self) {
        self.background_waits = true;
    }

    /// An operation has ended; true if background work waited for that.
    #[inline(always)]
    pub(in crate::io) fn end_background_wait(&mut self) -> bool {
        core::mem::take(&mut self.background_waits)
    }

    /// The operations that wait: all that wait for their set or for redos, and the first of each other queue.
    pub(in crate::io) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        let firsts = [&self.moves_for_frames, &self.for_frames, &self.for_commands, &self.for_journal]
            .into_iter()
            .filter_map(Queue::front);
        self.for_set.iter().chain(self.for_redo.iter()).chain(firsts)
    }

    /// The queues with their names, for a list of all that is in work.
    pub(crate) fn queues(&self) -> [(&'static str, &Queue); 7] {
        [
            ("for a turn", &self.ready),
            ("for room in the journal", &self.for_journal),
            ("for work frames", &self.for_frames),
            ("for work frames, as parts of moves", &self.moves_for_frames),
            ("for commands", &self.for_commands),
            ("for a change of the set", &self.for_set),
            ("for redos", &self.for_redo),
        ]
    }

    /// Is the operation in a queue of operations that can continue, or that wait for the journal?
    pub(crate) fn is_ready_or_awaits_journal(&self, is_it: impl Fn(&Op) -> bool) -> bool {
        let waiting = [&self.for_journal, &self.for_redo, &self.ready];
        waiting.into_iter().flat_map(Queue::iter).any(|index| is_it(&self.table[index]))
    }

    /// Call the operations that wait for a change which their set has had, in the order in which their waits began.
    pub(crate) fn wake_changed(&mut self, sets: &mut Sets) {
        self.wake_for_sets(|op| {
            let wait = op.wait.expect("an operation in a queue says what it waits for");
            wait.ends_with_any(sets.get(op.set).changes())
        });
        sets.forget_changes();
    }

    /// Let an operation wait, in the queue of its wait.
    pub(crate) fn hold_op(&mut self, index: u32, wait: Wait) {
        self[index].wait = Some(wait);
        match wait {
            Wait::Session | Wait::ActiveMark | Wait::Bitmap | Wait::FailureMark | Wait::StaleMark | Wait::ReplyMark => {
                self.wait_for_set(index);
            }
            Wait::JournalRoom(_) => self.wait_for_journal(index),
            Wait::Redo => self.wait_for_redo(index),
            Wait::Commands => self.wait_for_commands(index),
            // The table of ranges, the queue for frames, the journal's group and the log know the operations that wait
            // for them.
            Wait::Range | Wait::Frames(_) | Wait::Entry | Wait::Record => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::SetId;

    use super::*;
    use crate::io::state::footprint::Footprint;
    use crate::io::state::op::{OpKind, WorksFor};

    fn ops(count: u32) -> Ops {
        let mut ops = Ops::new(count);
        (0..count).for_each(|_| _ = ops.put(Op::new(OpKind::Flush, SetId(0), Footprint::Set)));
        ops
    }

    fn called(ops: &mut Ops) -> alloc::vec::Vec<u32> {
        core::iter::from_fn(|| ops.next_ready()).collect()
    }

    #[test]
    fn frames_and_commands_call_one_operation_each_and_one_that_found_too_few_frames_stays_the_first() {
        let mut ops = ops(4);
        (0..2).for_each(|index| ops.wait_for_frames(index, false));
        (2..4).for_each(|index| ops.wait_for_commands(index));
        ops.wake_for_frames();
        ops.wake_for_commands();
        assert_eq!(called(&mut ops), [0, 2]);
        assert_eq!([0, 1].map(|index| ops[index].answer_call()), [true, false]);
        ops.wait_for_frames(0, true);
        assert_eq!(ops.waiting().collect::<alloc::vec::Vec<_>>(), [0, 3], "the first of each queue");
        ops.wake_for_frames();
        ops.wake_for_frames();
        assert_eq!((called(&mut ops), ops.are_frames_awaited()), (alloc::vec![0, 1], false));
    }

    #[test]
    fn parts_of_moves_get_frames_before_an_operation_that_was_called_and_found_too_few() {
        let mut ops = Ops::new(2);
        ops.put(Op::new(OpKind::Flush, SetId(0), Footprint::Set));
        let part = Op { works_for: WorksFor::Move(0), ..Op::new(OpKind::Flush, SetId(0), Footprint::Set) };
        ops.put(part);
        let part = 1;
        ops.wait_for_frames(0, false);
        ops.wake_for_frames();
        ops.wait_for_frames(part, false);
        ops.wait_for_frames(0, true);
        ops.wake_for_frames();
        assert_eq!(called(&mut ops), [0, part]);
    }

    #[test]
    fn background_work_without_a_place_waits_for_one_end() {
        let mut ops = ops(1);
        assert!(!ops.end_background_wait());
        ops.wait_in_background();
        ops.wait_in_background();
        assert_eq!([ops.end_background_wait(), ops.end_background_wait()], [true, false]);
    }

    #[test]
    fn a_change_calls_the_operations_that_it_is_for_and_the_others_keep_their_order() {
        let mut ops = ops(5);
        (0..5).for_each(|index| ops.wait_for_set(index));
        ops[1].frames_abandoned = true;
        ops[3].frames_abandoned = true;
        ops.wake_for_sets(|op| op.frames_abandoned);
        assert_eq!(called(&mut ops), [1, 3]);
        ops.wake_for_sets(|_| true);
        assert_eq!(called(&mut ops), [0, 2, 4]);
    }

    #[test]
    fn the_last_command_of_an_operation_calls_it() {
        let mut ops = ops(1);
        ops[0].pending = 2;
        ops.command_ended(0);
        assert!(!ops.has_ready());
        ops.command_ended(0);
        assert_eq!(called(&mut ops), [0]);
    }
}
