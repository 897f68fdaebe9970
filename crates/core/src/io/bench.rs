//! An array for tests of operations: the engine's messages, without a world.

use alloc::vec::Vec;

use openraid_units::{ArrayId, ArrayOffset, DriveId, Instant, SetId, Slot, Token};

use crate::actions::{Actions, DriveCommand, ReplyStatus};
use crate::controller::Controller;
use crate::events::{BlockRequest, Completion, DriveError, RequestKind, Verdict};
use crate::io::command::{Command, Owner};
use crate::io::gate::tests::array_at_rest;
use crate::io::wait::Wait;
use crate::limits::{Limits, MEMBERS_MAX};

/// An array whose drives answer when the test lets them. Transfers and computations end at once.
pub(in crate::io) struct Drives {
    pub controller: Controller,
    pub actions: Actions,
    pub now: Instant,
    /// Commands without an answer.
    pub out: Vec<DriveCommand>,
    pub replies: Vec<(Token, ReplyStatus)>,
}

impl Drives {
    pub fn new() -> Self {
        let (controller, actions) = array_at_rest();
        Self { controller, actions, now: Instant::ZERO, out: Vec::new(), replies: Vec::new() }
    }

    /// A host writes one block.
    pub fn write(&mut self, token: Token, offset: u64) {
        self.request(token, RequestKind::Write { fua: false }, offset, 4096);
    }

    /// A host sends a request.
    pub fn request(&mut self, token: Token, kind: RequestKind, offset: u64, len: u64) {
        let request = BlockRequest { token, array: ArrayId(0), kind, offset: ArrayOffset(offset), len };
        self.controller.submit(request).unwrap();
        self.rest();
    }

    /// Advance until nothing happens without a drive.
    pub fn rest(&mut self) {
        loop {
            self.actions.clear();
            self.controller.advance(self.now, &mut self.actions);
            self.out.extend_from_slice(&self.actions.drive);
            self.replies.extend(self.actions.replies.iter().map(|reply| (reply.token, reply.status)));
            if self.actions.transfers.is_empty() && self.actions.jobs.is_empty() {
                return;
            }
            for transfer in &self.actions.transfers {
                self.controller.complete(Completion::Transfer { tag: transfer.tag, result: Ok(()) });
            }
            for job in &self.actions.jobs {
                self.controller.complete(Completion::Job { tag: job.tag, verdict: Verdict::Done });
            }
        }
    }

    /// The drives answer the commands that they have now.
    pub fn answer(&mut self, result: impl Fn(&DriveCommand) -> Result<(), DriveError>) {
        for command in core::mem::take(&mut self.out) {
            self.controller.complete(Completion::Drive { tag: command.tag, result: result(&command) });
        }
        self.rest();
    }

    /// All drives answer until no command is left.
    pub fn answer_all(&mut self) {
        while !self.out.is_empty() {
            self.answer(|_| Ok(()));
        }
    }

    /// The waits of the operations now.
    pub fn waits(&self) -> Vec<Wait> {
        self.controller.ops.iter().filter_map(|(_, op)| op.wait).collect()
    }

    /// Let the command timeout pass without an answer of the first drive that has a command. The other drives answer.
    /// Returns the commands that were given up.
    pub fn give_up(&mut self) -> Vec<DriveCommand> {
        let silent = self.out[0].drive;
        let (kept, others): (Vec<_>, Vec<_>) = self.out.drain(..).partition(|command| command.drive == silent);
        self.out = others;
        self.answer_all();
        self.now = self.now + Limits::small().command_timeout;
        self.rest();
        self.answer_all();
        kept
    }

    /// Take all work frames that are left.
    pub fn take_frames(&mut self) {
        while self.controller.pool.work_mut().take(1).is_some() {}
    }

    /// Fill the table of commands until it lacks one place for an operation.
    pub fn fill_commands(&mut self) {
        let commands = &mut self.controller.channels.commands;
        while commands.room() >= 2 * u32::from(MEMBERS_MAX) {
            commands.put(Command::new(Owner::Quarantined, SetId(0), 0, Slot(0), DriveId(0)));
        }
    }
}
