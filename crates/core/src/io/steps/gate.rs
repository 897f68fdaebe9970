//! The write gate: the one place that decides when an operation of a running set may write to members, and when it may end
//! after that.
//!
//! ```text
//!  planned, computed -> 1 session -> 2 active mark -> 3 bitmap -> 4 failures -> 5 journal -> 6 log -> 7 commands -> Writing
//! ```
//!
//! The rules are numbered as in the section "The write gate" of docs/write-path.md. Their order matters: each rule may
//! change state that the later ones rely on. An operation that is held goes through all rules again when its wait ends,
//! because an earlier condition may have changed meanwhile.
//!
//! The writes of a move pass it by rules 4 and 7 alone: see `move_op.rs`.
//!
//! Two kinds of operations write without passing the gate, because they repeat after a crash what an earlier run let
//! through it: redos of the journal (`redo_op.rs`) and entries of a partial parity log (`reparity_op.rs`). The array was
//! active then, and the superblocks still say so: its active mark is not cleared before both are done. A redo's data is
//! durable in the journal, and stays there until its member is flushed. A reparity ends before the set serves hosts. Each
//! asks itself for room in the table of commands (rule 7), and passes the reply gate.

use openraid_units::SetId;

use crate::actions::ReplyStatus;
use crate::io::state::gate_marks::{await_failure_marks, begin_write};
use crate::io::state::op::{Op, OpKind, Phase};
use crate::io::state::wait::Wait;
use crate::io::state::wait::{Gate, Hindrance};
use crate::io::steps::op_io::OpIo;
use crate::journal::redo::logs_writes_of;
use crate::planted::Flaw;
use crate::ppl::write_log::record_write;
use crate::reason::Reason;

/// Open, or held by this wait.
const fn open_if(open: bool, wait: Wait) -> Gate {
    if open {
        Ok(())
    } else {
        Err(Hindrance::Waits(wait))
    }
}

impl OpIo<'_> {
    /// Let an operation that has written end: true if it may. A write is acknowledged only after each member that lacks it
    /// is recorded as failed on the others, and each range that must not be used for recovery is in the bad-block log of
    /// its member. Until then the operation waits in [`Phase::Recording`].
    ///
    /// If the array has failed, or its members do not take the record, nothing is recorded any more: a member that lacks the
    /// write may rejoin as in sync. The operation ends with an error.
    pub(crate) fn pass_reply_gate(&mut self, index: u32) -> bool {
        let set_id = self.ops[index].set;
        let set = self.sets.get(set_id);
        if set.has_failed() || set.has_stale_metadata() {
            if !self.ops[index].has_failed() {
                self.ops[index].fail(ReplyStatus::IoError);
            }
            return true;
        }
        let recorded = set.is_failure_durable() || self.call.planted().has(Flaw::AnswerBesideFailure);
        if !recorded {
            let first = self.ops[index].phase != Phase::Recording;
            self.ops[index].phase = Phase::Recording;
            if first {
                self.note(index, Reason::WaitedForFailureMark, u64::from(index), 0);
            }
            self.ops.hold_op(index, Wait::ReplyMark);
        }
        recorded
    }

    /// Let an operation that is ready to write through the gate. An operation that is held waits in the right queue; one
    /// that must not write has ended.
    pub(crate) fn pass_write_gate(&mut self, index: u32) -> Gate {
        let gate = self.ask_write_gate(index);
        match gate {
            Ok(()) => {}
            Err(Hindrance::Waits(Wait::JournalRoom(reason))) => self.hold_for_room(index, reason),
            Err(Hindrance::Waits(wait)) => self.ops.hold_op(index, wait),
            Err(Hindrance::Failed) => self.fail_op(index, ReplyStatus::IoError),
        }
        if matches!(gate, Err(Hindrance::Waits(wait)) if wait != Wait::Commands) {
            self.pass_turn_on();
        }
        gate
    }

    /// The operation may have been called because there is room for its commands, and waits for something else first. What
    /// it waits for may wait for the next operation in that queue.
    pub(super) fn pass_turn_on(&mut self) {
        if self.call.channels().may_issue() {
            self.ops.wake_for_commands();
        }
    }

    /// The rules for a part of a move: 4 and 7.
    fn ask_move_gate(&self, set: SetId) -> Gate {
        if self.sets.get(set).has_failed() {
            return Err(Hindrance::Failed);
        }
        await_failure_marks(self.sets, set, self.call.planted())?;
        open_if(self.call.channels().may_issue(), Wait::Commands)
    }

    /// The rules in their order.
    fn ask_write_gate(&mut self, index: u32) -> Gate {
        let Op { kind, set, .. } = self.ops[index];
        if self.ops[index].is_part_of_move() {
            // It is repeated after a crash.
            return self.ask_move_gate(set);
        }
        let is_data = matches!(kind, OpKind::Write | OpKind::RowWrite | OpKind::Destage | OpKind::RowDestage);
        let is_host = is_data || kind == OpKind::Discard;
        // A rebuild writes to a member that counts as stale anyway. All other writes change members in sync.
        let is_in_sync = kind != OpKind::Rebuild;
        if is_data {
            let time = (self.call.now(), self.call.limits().clean_delay);
            self.journal.await_session(self.sets, &mut self.ops[index], time)?;
        }
        if is_in_sync {
            begin_write(self.sets, self.ops, index, &mut self.call)?;
        }
        if is_host {
            await_failure_marks(self.sets, set, self.call.planted())?;
        }
        if is_data && logs_writes_of(self.sets.get(set), &self.ops[index]) {
            self.journal.log_write(index, self.ops, self.sets, self.cache, &mut self.call)?;
        }
        if is_host {
            record_write(self.sets, index, self.ops, self.call.trace())?;
        }
        open_if(self.call.channels().may_issue(), Wait::Commands)
    }
}

#[cfg(test)]
pub(super) mod tests;
