//! The controller: the one door to the engine.
//!
//! ```text
//!  submit(request)   ->  inbox  \
//!  complete(event)   ->  inbox   >  advance(now)  ->  actions
//!  admin(command)    ->  inbox  /
//! ```
//!
//! Events are queued; [`Controller::advance`] is the only place that decides. It handles completions in order of
//! arrival, then commands, then new requests, then work that is due by time, and then lets every operation that can
//! continue do so. Equal events at equal times give equal actions, byte for byte.

mod admin_command;
mod admin_queue;
mod append_drive_command;
mod array_start;
pub(crate) mod array_status;
mod cached_write;
pub mod content_places;
mod destage_steps;
mod gathered_op;
mod give_up_commands;
mod host_requests;
mod lent_parts;
mod marks_and_sessions;
mod member_commands;
mod piece_ops;
mod reshape_command;
mod run_admin_command;
mod run_flush_discard;
mod stall_report;
mod status;
mod watch_load;

pub use admin_command::AdminCommand;

use admin_queue::AdminQueue;
use alloc::vec::Vec;
use openraid_units::{ArrayId, Bytes, Instant, Nanos, TagKind, Token};

use crate::actions::{Actions, ReplyStatus};
use crate::array::sets::{Sets, Signal};
use crate::array::volume::Arrays;
use crate::background::bitmap_clear::on_bitmap_flushed;
use crate::background::pump_set::{pump_set, store_checkpoint};
use crate::cache::Cache;
use crate::call::{Base, Call};
use crate::events::{BlockRequest, CommandError, Completion, ParityVerdict, QueueFull, Wake};
use crate::frames::Pool;
use crate::io::state::command::JournalWork;
use crate::io::state::command::{ChannelCommand, Owner};
use crate::io::state::ended::{EndedFor, EndedOps, OpReport};
use crate::io::state::ops::Ops;
use crate::io::steps::forgotten_waits::wake_for_room;
use crate::io::steps::step::on_job;
use crate::journal::commit::entry_ended;
use crate::journal::open_and_detach::JournalStatus;
use crate::journal::session::Unprotected;
use crate::journal::{Journal, JournalState};
use crate::limits::{Limits, LimitsError};
use crate::ppl::recovery::on_ppl_setup;
use crate::ppl::write_log::{on_log_written, on_ppl_flushed, pump_logs};
use crate::reason::TraceEntry;
use crate::requests::piece::PieceEntry;
use crate::requests::Requests;

/// The controller engine. See the module header.
#[derive(Debug)]
pub struct Controller {
    pub(crate) base: Base,
    inbox: Vec<Completion>,
    pub(crate) admin: AdminQueue,
    pub(crate) requests: Requests,
    pub(crate) ops: Ops,
    /// Operations that have ended and were not handed on yet.
    pub(crate) ended: EndedOps,
    pub(crate) pool: Pool,
    pub(crate) cache: Cache,
    pub(crate) journal: Journal,
    pub(crate) sets: Sets,
    pub(crate) arrays: Arrays,
}

impl Controller {
    /// A controller without drives. All memory that host I/O needs is taken here.
    ///
    /// # Errors
    /// A relation between the limits that does not hold.
    pub fn new(limits: Limits) -> Result<Self, LimitsError> {
        limits.check()?;
        Ok(Self {
            inbox: Vec::with_capacity((limits.commands_max + limits.ops_max * 2 + limits.pieces_max * 2) as usize),
            admin: AdminQueue::default(),
            requests: Requests::new(&limits),
            ops: Ops::new(limits.ops_max),
            ended: EndedOps::new(limits.ops_max, limits.pieces_max),
            pool: Pool::new(&limits),
            cache: Cache::new(&limits),
            journal: Journal::new(&limits),
            sets: Sets::new(),
            arrays: Arrays::new(),
            base: Base::new(limits),
        })
    }

    /// The limits it was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.base.limits
    }

    /// Plant a bug, also in arrays that run already.
    #[cfg(feature = "planted")]
    pub fn plant(&mut self, flaw: crate::planted::Flaw) {
        self.base.planted = crate::planted::Planted::new(flaw);
        let planted = self.base.planted;
        self.sets.values_mut().for_each(|set| set.plant(planted));
        self.base.channels.plant(planted);
    }

    /// Set the wall clock: the time since 1970 at [`Instant::ZERO`]. It is used in superblocks only.
    pub fn set_wall_clock(&mut self, at_zero: Nanos) {
        self.base.wall_clock = at_zero;
    }

    /// Hand in a host request. The number of requests is limited: the controller refuses instead of growing, and the
    /// export stops reading its socket.
    ///
    /// # Errors
    /// [`QueueFull`] with the request if the limit is reached.
    pub fn submit(&mut self, request: BlockRequest) -> Result<(), QueueFull> {
        self.requests.submit(request)
    }

    /// Hand in the end of an action.
    pub fn complete(&mut self, completion: Completion) {
        self.inbox.push(completion);
    }

    /// Hand in a command of the administrator; answered by [`Actions::admin`] with the same token.
    pub fn admin(&mut self, token: Token, command: AdminCommand) {
        self.admin.push(token, command);
    }

    /// Handle all events and advance everything that can continue. `now` never goes back.
    pub fn advance(&mut self, now: Instant, actions: &mut Actions) {
        assert!(now >= self.base.now, "time went back");
        self.base.set_time(now);
        self.base.more_to_do = false;
        let mut inbox = core::mem::take(&mut self.inbox);
        inbox.iter().for_each(|completion| self.on_completion(*completion, actions));
        inbox.clear();
        self.inbox = inbox;
        while let Some((token, command)) = self.admin.next() {
            self.on_admin(token, command, actions);
            self.hand_on(actions);
        }
        if self.requests.submitted().len() > 1 && self.cache.is_on() {
            self.cache.glance_at_requests(self.requests.submitted(), &self.arrays, &self.sets);
        }
        while let Some(request) = self.requests.next_submitted() {
            self.admit(request, actions);
        }
        if self.base.channels.may_be_overdue(self.base.now) {
            self.check_timeouts(actions);
        }
        self.requests.note_gather_time(self.base.now);
        self.run(actions);
    }

    fn on_completion(&mut self, completion: Completion, actions: &mut Actions) {
        match completion {
            Completion::Drive { tag, result } => {
                if result.is_ok() && self.op_io(actions).ended_plainly(tag) {
                    return;
                }
                let command = self.base.channels.answered(self.base.now, tag, actions);
                self.command_ended(&command, result.map_err(CommandError::Drive), actions);
            }
            Completion::Transfer { tag, result } => self.on_transfer(tag, result, actions),
            Completion::Job { tag, verdict } => match tag.kind() {
                Some(TagKind::Transfer) => self.on_transfer(tag, Ok(()), actions),
                Some(TagKind::Job) => on_job(&mut self.ops, &mut self.base.trace, tag, verdict),
                Some(TagKind::Journal) => {
                    if let ParityVerdict::Checksum(crc) = verdict {
                        let call = &mut Call::new(&mut self.base, actions);
                        self.journal.checksum_known(crc, &mut self.sets, call);
                        self.hand_on(actions);
                        self.hand_on_ended(actions);
                    } else {
                        self.journal.replay_mut().copy_ended();
                        self.sets.look();
                    }
                }
                _ => panic!("a completion names a job that is out: {tag:?}"),
            },
        }
    }

    /// A command has ended, by its drive's answer or by being given up.
    fn command_ended(&mut self, command: &ChannelCommand, result: Result<(), CommandError>, actions: &mut Actions) {
        match command.owner() {
            Owner::Quarantined => {
                self.op_io(actions).given_up_came_back(command);
                self.hand_news_on();
            }
            Owner::Op(op) => {
                let failure = self.op_io(actions).on_op_command(op, command, result);
                // Other parts react to the member's failure before the operation does.
                self.hand_on(actions);
                self.op_io(actions).op_command_done(op, command, failure);
                self.hand_news_on();
            }
            Owner::PplRead(op) => {
                self.op_io(actions).on_partial_read(op, command, result);
                self.hand_on(actions);
            }
            Owner::Journal(JournalWork::Redo(op)) => {
                if command.is_issued() && result == Err(CommandError::Timeout) {
                    self.drop_journal_device(command.journal_device(), actions);
                }
                self.op_io(actions).on_redo_read(op, command, result);
                self.hand_on(actions);
                self.hand_on_ended(actions);
            }
            Owner::Journal(work) => {
                self.journal_command_ended(work, command, result, actions);
                self.hand_on(actions);
                self.hand_on_ended(actions);
            }
            Owner::Superblock
            | Owner::BitmapPage(_)
            | Owner::BadBlocks
            | Owner::CleanFlush
            | Owner::BitmapFlush
            | Owner::CheckpointFlush
            | Owner::SessionFlush
            | Owner::PplLog
            | Owner::PplFlush
            | Owner::PplSetup => self.set_command_ended(command, result, actions),
        }
    }

    /// A command of the journal has ended. A device whose write failed is dropped before the write ends. A device whose read
    /// failed is dropped after the read has ended.
    fn journal_command_ended(
        &mut self,
        work: JournalWork,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
        actions: &mut Actions,
    ) {
        let number = command.journal_device();
        if result.is_err() && work.is_write() {
            self.drop_journal_device(number, actions);
        }
        let (sets, call) = (&mut self.sets, &mut Call::new(&mut self.base, actions));
        if self.journal.command_ended(work, command, result, sets, call) {
            self.journal.drop_device(number, sets, call);
        }
    }

    /// A device of the journal has failed, and its commands end.
    fn drop_journal_device(&mut self, number: usize, actions: &mut Actions) {
        self.journal.drop_device(number, &mut self.sets, &mut Call::new(&mut self.base, actions));
        self.hand_on(actions);
    }

    /// A command of a set itself has ended: first the effect on its member, then on the things that wait for it.
    fn set_command_ended(&mut self, command: &ChannelCommand, result: Result<(), CommandError>, actions: &mut Actions) {
        self.sets.on_set_command(command, result, &mut Call::new(&mut self.base, actions));
        self.hand_on(actions);
        self.sets.look();
        match command.owner() {
            Owner::CheckpointFlush => {
                let (now, least) = (self.base.now, self.base.limits.checkpoint_interval);
                let tasks = &mut self.sets.get_mut(command.set()).tasks;
                if tasks.end_flush(now) {
                    tasks.space_checkpoints(least);
                    store_checkpoint(&mut self.sets, self.base.planted, command.set());
                }
            }
            Owner::BitmapFlush => on_bitmap_flushed(self.sets.get_mut(command.set())),
            Owner::PplLog => on_log_written(&mut self.sets, command.set(), command.slot()),
            Owner::PplFlush => on_ppl_flushed(&mut self.sets, command.set()),
            Owner::PplSetup => on_ppl_setup(&mut self.sets, command.set()),
            _ => {
                let call = &mut Call::new(&mut self.base, actions);
                self.sets.on_metadata_written(command, result.is_ok(), call);
            }
        }
    }

    /// Advance the journal: superblocks, the tail, the next group, replay. Not inlined, because it is called more often
    /// than it has work.
    #[inline(never)]
    fn pump_journal(&mut self, actions: &mut Actions) -> bool {
        let is_piece_waiting = !self.requests.is_none_waiting();
        let Self { journal, sets, ops, cache, base, .. } = self;
        let call = &mut Call::new(base, actions);
        let mut moved = journal.pump_copies(sets, cache.line_count(), call)
            || journal.pump_tail((sets, ops), (cache, is_piece_waiting), call);
        if !moved && journal.is_plain() {
            moved = journal.pump_replay(sets, cache, call) || journal.seal_group(sets, call);
        } else if !moved {
            moved = self.requests.answer_orphans(&mut self.journal, &self.arrays, &self.sets, &mut self.ended)
                || self.pump_backlogs(actions);
        }
        self.hand_on(actions);
        self.hand_on_ended(actions);
        moved
    }

    /// Advance the redo backlogs and the loading of sets, and begin to write the next group.
    fn pump_backlogs(&mut self, actions: &mut Actions) -> bool {
        let moved = self.op_io(actions).pump_redos();
        let call = &mut Call::new(&mut self.base, actions);
        moved | self.journal.pump_replay(&mut self.sets, &mut self.cache, call)
            || self.journal.seal_group(&mut self.sets, call)
    }

    /// Advance the partial parity logs. The operations that they refuse end.
    fn pump_logs(&mut self, actions: &mut Actions) -> bool {
        let call = &mut Call::new(&mut self.base, actions);
        let has_moved = pump_logs(&mut self.sets, &mut self.ops, call);
        while let Some(op) = self.ops.next_refused() {
            self.op_io(actions).fail_op(op, ReplyStatus::IoError);
        }
        self.hand_on_ended(actions);
        has_moved
    }

    /// Hand on the signals of the sets, in order.
    #[inline(always)]
    fn hand_on(&mut self, actions: &mut Actions) {
        if self.sets.has_signal() {
            self.hand_signals_on(actions);
        }
    }

    #[inline(never)]
    fn hand_signals_on(&mut self, actions: &mut Actions) {
        while let Some(signal) = self.sets.take_signal() {
            match signal {
                Signal::CopyLost(set) | Signal::EndCut(set) => self.cache.invalidate_set(set),
                Signal::FlushFailed => self.requests.wake_all(),
                Signal::Ended(set) => {
                    self.journal.wait_for_set_to_return(self.sets.get(set));
                    self.cache.end_rest(set);
                }
                Signal::Changed => {
                    self.requests.wake_all();
                    self.wake_journal_waiters();
                }
                Signal::ShapeChanged(set) => self.fit_array(set),
                Signal::DriveLost(drive) => self.end_queued(drive, actions),
                Signal::JournalDeviceGone(number) => self.drop_journal_device(number, actions),
                Signal::PaceChanged => self.cache.wait_changed(),
                Signal::UnitEnded(first, error) => self.requests.release_chain(first, error),
                Signal::LinesHeld => self.requests.wake_all(),
                Signal::JournalRoom
                | Signal::EntriesEnded
                | Signal::Orphaned(_)
                | Signal::JournalGone
                | Signal::NotStarted(_) => self.hand_journal_on(signal),
            }
        }
    }

    /// Hand a signal of the journal to the components that wait for it.
    fn hand_journal_on(&mut self, signal: Signal) {
        let Self { journal, cache, requests, ops, ended, base, .. } = self;
        match signal {
            Signal::EntriesEnded => {
                journal.give_out_ended(|piece| ended.push_piece(piece), |op| entry_ended(ops, op, &mut base.trace));
            }
            Signal::Orphaned(piece) => {
                if requests.wait_for_entry(piece, PieceEntry::Orphaned) {
                    journal.add_orphan(piece);
                }
            }
            Signal::JournalGone => cache.release_all_pins(),
            Signal::NotStarted(set) => {
                cache.forget_set(set, |sequence| journal.log_mut().unpin_if_held(sequence));
                requests.wake_all();
            }
            _ => self.wake_journal_waiters(),
        }
    }

    /// Wake writes that found no room in the journal.
    pub(crate) fn wake_journal_waiters(&mut self) {
        self.requests.wake_others();
        wake_for_room(&mut self.ops, &mut self.journal, &mut self.sets);
    }

    /// Advance everything that can continue. Not inlined: events and operations together have too many values for the
    /// registers of a processor.
    #[inline(never)]
    fn run(&mut self, actions: &mut Actions) {
        loop {
            if !actions.has_room() {
                self.base.more_to_do = true;
                return;
            }
            if let Some(op) = self.ops.next_ready() {
                self.step_from(op, actions);
            } else if self.is_quiet() {
                debug_assert!(!self.run_one_waiting(actions), "the engine counts as quiet, but has work");
                break;
            } else if !self.run_waiting(actions) {
                break;
            }
        }
        if cfg!(debug_assertions) {
            assert!(!self.sets.has_signal() && self.ended.is_empty(), "reports are handed on at once");
            let forgotten = self.op_io(actions).find_forgotten();
            assert!(forgotten.is_none(), "an operation waits for a state that has come: {forgotten:?}");
        }
    }

    /// Advance operations, this one first, until one leaves something to hand on, and do that.
    #[inline]
    fn step_from(&mut self, op: u32, actions: &mut Actions) {
        if let Some((index, step)) = self.op_io(actions).step_from(op) {
            self.step_destage(index, step, actions);
        }
        self.hand_on(actions);
        self.hand_on_ended(actions);
    }

    /// Hand on what operations report, in order.
    #[inline(always)]
    fn hand_news_on(&mut self) {
        while let Some(report) = self.ended.take_report() {
            self.on_report(report);
        }
        self.ended.note_rest();
    }

    #[inline(never)]
    fn on_report(&mut self, report: OpReport) {
        match report {
            OpReport::Failed(piece, error) => self.requests.piece_mut(piece).note_error(Some(error)),
            OpReport::ReadAgain { piece, abandons_frames } => {
                self.requests.piece_mut(piece).read_again(abandons_frames)
            }
            OpReport::Stale(set, range) => self.cache.forget_written(&self.sets, set, range),
            OpReport::MayContinue => self.requests.wake_others(),
            OpReport::FramesBack => self.requests.frames_came_back(),
        }
    }

    /// Hand on the reports and the ends of operations.
    #[inline(always)]
    fn hand_on_ended(&mut self, actions: &mut Actions) {
        if self.ended.is_empty() {
            return;
        }
        if self.ended.has_rare() {
            self.hand_news_on();
        }
        loop {
            while let Some(piece) = self.ended.pop_piece() {
                self.on_piece_op(piece, None, actions);
            }
            if !self.ended.has_rare() {
                return;
            }
            self.hand_on_others(actions);
            if !self.ended.has_pieces() {
                return;
            }
        }
    }

    /// Hand on the results of operations that worked for something other than a piece.
    #[inline(never)]
    fn hand_on_others(&mut self, actions: &mut Actions) {
        while let Some((owner, error)) = self.ended.pop_other() {
            match owner {
                EndedFor::Request(_) | EndedFor::Gather(_) => self.end_host_op(owner, error, actions),
                EndedFor::Unit(set, data) => {
                    if self.cache.on_destaged(&mut self.sets, self.base.now, set, data, error) {
                        self.requests.lines_are_free();
                    } else {
                        self.requests.wake_all();
                    }
                    self.hand_on(actions);
                }
            }
        }
        self.ended.note_rest();
    }

    /// Advance pieces, sets and the journal until an operation can continue or the room for actions is short; false if
    /// nothing can continue.
    #[inline(never)]
    fn run_waiting(&mut self, actions: &mut Actions) -> bool {
        while self.run_one_waiting(actions) {
            if self.ops.has_ready() || !actions.has_room() {
                return true;
            }
        }
        false
    }

    /// Would [`Controller::run_one_waiting`] find nothing? Without a cache that is the usual case, and it is quick to
    /// check here.
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        // With a cache there may be something to destage, and only with a cache there is a journal.
        if self.cache.is_on() {
            return false;
        }
        let waits = !self.requests.are_quiet() | !self.admin.is_none_waiting();
        let is_due = self.sets.has_news()
            | self.sets.are_logs_due()
            | self.cache.wants_ahead()
            | (self.base.now >= self.sets.due().0);
        !(waits || is_due)
    }

    #[inline(always)]
    fn run_one_waiting(&mut self, actions: &mut Actions) -> bool {
        if self.sets.take_news() {
            self.ops.wake_changed(&mut self.sets);
            self.look_at_sets(actions);
            return true;
        }
        self.requests.retry_restarts(self.pool.host_mut());
        if self.requests.payloadless_len() > 0 && self.run_flush_or_discard(actions) {
            return true;
        }
        if self.requests.wants_ops() && self.ops.may_make_op() && self.split_next(actions) {
            return true;
        }
        if self.requests.wants_pieces() && self.cut_pieces(actions) {
            return true;
        }
        self.run_other_work(actions)
    }

    /// The rest of [`Controller::run_one_waiting`]. Not inlined, because the work of a flush or discard is all before it.
    #[inline(never)]
    fn run_other_work(&mut self, actions: &mut Actions) -> bool {
        if self.requests.may_starve() && self.end_starved(actions) {
            return true;
        }
        if self.cache.wants_ahead()
            && self.cache.pump_read_ahead(
                (&self.arrays, &self.sets),
                &mut self.requests,
                &mut self.pool,
                &self.base.limits,
            )
        {
            return true;
        }
        if self.cache.is_on() {
            let waits = !self.requests.is_none_waiting();
            self.cache.note_hurry(waits, &self.journal, &self.sets, &mut self.base.channels);
            if self.pump_destage() {
                self.hand_on(actions);
                return true;
            }
        }
        if self.journal.state() != JournalState::None && self.pump_journal(actions) {
            return true;
        }
        if self.sets.are_logs_due() && self.pump_logs(actions) {
            return true;
        }
        if self.base.now < self.sets.due().0 && self.admin.is_none_waiting() {
            return false;
        }
        self.look_at_sets(actions) || self.sets.has_news() || self.ops.has_ready()
    }

    /// Let every set do its due work, and answer the commands that waited for that; true if something changed.
    fn look_at_sets(&mut self, actions: &mut Actions) -> bool {
        let mut moved = false;
        for id in self.sets.numbers() {
            if self.sets.find(id).is_some() {
                moved |= self.pump_marks(id, actions);
                self.hand_on(actions);
                let awaited = self.sets.get(id).ops().awaited();
                let is_looked_up = awaited.is_some_and(|epoch| self.requests.has_looked_up(id, epoch));
                let call = &mut Call::new(&mut self.base, actions);
                moved |= pump_set(&mut self.sets, id, &mut self.ops, is_looked_up, call);
            }
        }
        self.answer_admin(actions);
        self.hand_on(actions);
        self.note_due();
        moved
    }

    /// The time for the next call of [`Controller::advance`] if nothing else happens, and the reason.
    #[must_use]
    pub fn next_deadline(&self) -> Option<(Instant, Wake)> {
        if self.base.more_to_do {
            return Some((self.base.now, Wake::MoreToDo));
        }
        let mut first = self.sets.due();
        let mut consider = |deadline: Option<Instant>, wake: Wake| {
            if let Some(at) = deadline.filter(|at| *at < first.0) {
                first = (at, wake);
            }
        };
        consider(self.base.channels.next_deadline(), Wake::CommandTimeout);
        consider(self.requests.starved_deadline(self.base.limits.command_timeout), Wake::CommandTimeout);
        // Without a place for an operation, the end of one comes first.
        consider(self.requests.gather_deadline().filter(|_| self.ops.may_make_op()), Wake::Gather);
        if self.cache.is_on() {
            consider(self.destage_deadline(), Wake::Destage);
        }
        if self.journal.is_live() {
            let time = (self.base.now, self.base.limits.clean_delay);
            consider(self.journal.round_deadline(&self.sets, &self.ops, time), Wake::Journal);
        }
        (first.0 != Instant::NEVER).then_some(first)
    }

    /// The status of the journal, if there is one.
    #[must_use]
    pub fn journal_status(&self) -> Option<JournalStatus> {
        self.journal.status()
    }

    /// Are writes of an array protected by the journal now?
    ///
    /// # Errors
    /// Why not.
    pub fn journal_protection(&self, array: ArrayId) -> Result<(), Unprotected> {
        let Some(array) = self.arrays.find(array) else { return Err(Unprotected::NotRunning) };
        let volume = array.volume();
        (0..volume.set_count()).try_for_each(|n| self.journal.protects(self.sets.get(volume.set(n))))
    }

    /// Does the journal protect a write of this array that is acknowledged now? In addition to
    /// [`Controller::journal_protection`], the policy must ask for it, and the superblocks of the members must have the
    /// mark.
    #[must_use]
    pub fn is_promising(&self, array: ArrayId) -> bool {
        let Some(array) = self.arrays.find(array) else { return false };
        let mut sets = (0..array.volume().set_count()).map(|n| self.sets.get(array.volume().set(n)));
        sets.all(|set| set.journal.is_on() && self.journal.is_wanted_by(set))
    }

    /// Size of an array, if it runs.
    #[must_use]
    pub fn capacity(&self, array: ArrayId) -> Option<Bytes> {
        self.arrays.find(array).map(|a| a.capacity(|set| self.sets.get(set).shape()).bytes())
    }

    /// Is no work of a host in progress?
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_idle()
    }

    /// The last decisions, oldest first.
    pub fn trace(&self) -> impl Iterator<Item = &TraceEntry> {
        self.base.trace.entries()
    }
}
