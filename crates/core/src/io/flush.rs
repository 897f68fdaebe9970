//! Flush: every write that was acknowledged before becomes durable on the members.

use openraid_units::{MemberLba, Sectors, SetId};

use crate::actions::{Actions, DriveOp, ReplyStatus};
use crate::admin::Health;
use crate::controller::Controller;
use crate::io::op::Phase;
use crate::reason::Reason;

impl Controller {
    pub(crate) fn step_flush(&mut self, index: u32, actions: &mut Actions) {
        if self.ops[index].phase == Phase::Start {
            if !self.channels.may_issue() {
                return self.wait_for_commands(index);
            }
            self.ops[index].phase = Phase::Writing;
            let set = self.ops[index].set;
            if !self.sets.get(set).has_failed_flush() {
                // Data that a member had not flushed when it was lost cannot be made durable any more.
                if self.sets.get(set).health() == Health::Failed {
                    self.ops[index].error = Some(ReplyStatus::IoError);
                    return self.finish_op(index, actions);
                }
                self.issue_flushes(index, set, actions);
            }
            if self.ops[index].pending > 0 {
                return;
            }
        }
        // A flush that was under way at the same time may have failed: the member has dropped the data of that flush,
        // and the success of the next one does not cover it.
        if self.ops[index].error.is_none() && self.sets.get(self.ops[index].set).has_failed_flush() {
            self.trace.note_op(&mut self.sets, &self.ops, index, Reason::FlushFailed, 0, 0);
            self.ops[index].error = Some(ReplyStatus::IoError);
        }
        if self.ops[index].error.is_some() || self.pass_reply_gate(index) {
            self.finish_op(index, actions);
        }
    }

    fn issue_flushes(&mut self, index: u32, set: SetId, actions: &mut Actions) {
        for member in 0..self.sets.get(set).members().len() {
            if self.sets.begin_flush(set, member) {
                let member = u32::try_from(member).expect("few members");
                self.issue_plain(index, member, DriveOp::Flush, MemberLba::ZERO, Sectors::ZERO, actions);
            }
        }
    }
}
