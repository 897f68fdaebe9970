//! An array for tests of operations: the engine's messages, without a world.

use alloc::vec::Vec;

use openraid_format::{
    JournalArray, JournalArrayState, JournalReached, JournalRecord, JournalSuperblock, LogPlace, RingSector,
    Superblock, Uuid,
};
use openraid_units::{
    ArrayId, ArrayOffset, BlockSize, Bytes, DriveId, Instant, MemberLba, Sectors, SetId, Slot, Token,
};

use crate::actions::{Actions, Direction, DriveCommand, JobKind, ReplyStatus};
use crate::controller::AdminCommand;
use crate::controller::Controller;
use crate::events::{BlockRequest, Completion, DriveError, ParityVerdict, RequestKind};
use crate::io::state::command::{ChannelCommand, Owner};
use crate::io::state::wait::Wait;
use crate::io::steps::gate::tests::{array_at_rest, drive_of, started, three_drives};
use crate::journal::found_journal::{FoundEntry, FoundJournal};
use crate::limits::{Limits, MEMBERS_MAX};
use crate::settings::{Policy, WriteCache};

/// An array whose drives answer when the test lets them. Transfers and computations end at once.
pub(in crate::io) struct Drives {
    pub controller: Controller,
    pub actions: Actions,
    pub now: Instant,
    /// Commands without an answer.
    pub out: Vec<DriveCommand>,
    pub replies: Vec<(Token, ReplyStatus)>,
}

/// The journal's first device; the second one, if there is one, has the next number.
pub(in crate::io) const JOURNAL: DriveId = DriveId(3);
const JOURNAL_UUID: Uuid = Uuid([7; 16]);
const SET_UUID: Uuid = Uuid([9; 16]);

impl Drives {
    pub fn new() -> Self {
        Self::of(array_at_rest())
    }

    fn of((controller, actions): (Controller, Actions)) -> Self {
        Self { controller, actions, now: Instant::ZERO, out: Vec::new(), replies: Vec::new() }
    }

    /// An array with partial parity logs.
    pub fn with_logs() -> Self {
        let (controller, actions, assembly) = three_drives(&Limits::small(), true);
        Self::of(started(controller, actions, assembly))
    }

    /// An array, and a journal that its policy does not use.
    pub fn with_journal() -> Self {
        let (mut controller, actions, assembly) = three_drives(&with_cache(), false);
        attach_journal(&mut controller, Vec::new());
        Self::of(started(controller, actions, assembly))
    }

    /// An array that was not stopped: its journal holds these redo records, one a 4 KiB entry, and no other data. `left_out`
    /// is a slot without a member. The members have answered everything until hosts are served.
    pub fn with_backlog(redos: &[(Slot, MemberLba)], left_out: Option<Slot>) -> Self {
        let (mut controller, actions, mut assembly) = three_drives(&with_cache(), false);
        attach_journal(&mut controller, redos.to_vec());
        assembly.newly_created = false;
        let marked = |superblock: &mut Superblock| {
            superblock.set_journal(Some((JOURNAL_UUID, JournalReached::default())), false)
        };
        marked(&mut assembly.common);
        assembly.members.iter_mut().for_each(|member| marked(&mut member.superblock));
        if let Some(slot) = left_out {
            assembly.members.remove(slot.index());
            assembly.missing.insert(slot);
        }
        let mut this = Self::of((controller, actions));
        this.rest();
        this.answer_all();
        this.controller.admin(Token(1), AdminCommand::StartSet(assembly));
        this.rest();
        this
    }

    /// The policy of the array: the journal protects writes, or no cache does.
    pub fn use_journal(&mut self, write_cache: WriteCache) {
        let policy = Policy { write_cache, ..Policy::default() };
        self.controller.admin(Token(2), AdminCommand::SetPolicy { array: ArrayId(0), policy });
        self.rest();
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
                // The last transfer of a read is its reply.
                if transfer.last && transfer.direction == Direction::ToHost {
                    self.replies.push((transfer.token, ReplyStatus::Ok));
                }
                self.controller.complete(Completion::Transfer { tag: transfer.tag, result: Ok(()) });
            }
            for job in &self.actions.jobs {
                let verdict =
                    if job.kind == JobKind::Checksum { ParityVerdict::Checksum(0) } else { ParityVerdict::Done };
                self.controller.complete(Completion::Job { tag: job.tag, verdict });
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

    /// The drives answer until an operation waits for this.
    pub fn answer_until(&mut self, wait: Wait) {
        while !self.waits().contains(&wait) {
            assert!(!self.out.is_empty(), "no operation waits for {wait:?}");
            self.answer(|_| Ok(()));
        }
    }

    /// All commands are answered but these.
    pub fn answer_but(&mut self, is_kept: impl Fn(&DriveCommand) -> bool) {
        loop {
            let (kept, others): (Vec<_>, Vec<_>) = self.out.drain(..).partition(&is_kept);
            self.out = others;
            if self.out.is_empty() {
                self.out = kept;
                return;
            }
            self.answer(|_| Ok(()));
            self.out.extend(kept);
        }
    }

    /// One drive is gone; the others answer the commands that they have.
    pub fn lose(&mut self, drive: DriveId) {
        self.answer(|command| if command.drive == drive { Err(DriveError::Gone) } else { Ok(()) });
    }

    /// These drives refuse everything from now on; the others answer until no command is left.
    pub fn answer_without(&mut self, gone: &[DriveId]) {
        while !self.out.is_empty() {
            self.answer(|command| if gone.contains(&command.drive) { Err(DriveError::Gone) } else { Ok(()) });
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
        let commands = &mut self.controller.base.channels.commands;
        while commands.room() >= 2 * u32::from(MEMBERS_MAX) {
            commands.put(ChannelCommand::new(Owner::Quarantined, SetId(0), 0, Slot(0), DriveId(0)));
        }
    }
}

/// The smallest limits with a cache and a journal: 256 lines, 64 entries of hosts, and entries of at most 64 KiB.
fn with_cache() -> Limits {
    let (base, cache, journal) = (Limits::small(), Bytes::mib(1), Bytes::kib(256));
    Limits { pool: base.pool + cache + journal, cache, journal, journal_entries_max: 64, ..base }
}

/// Attach a journal on one device with these redo records, each with 4 KiB of payload in an entry of its own.
fn attach_journal(controller: &mut Controller, redos: Vec<(Slot, MemberLba)>) {
    let capacity = Bytes::mib(16).sectors_floor();
    controller.admin(Token(0), AdminCommand::AttachDrive { drive: JOURNAL, info: drive_of(capacity) });
    let superblock = JournalSuperblock::new(JOURNAL_UUID, Uuid([6; 16]), capacity, BlockSize::B512, (0, 1));
    let mut superblock = superblock.expect("it is large enough");
    let array = JournalArray { set_uuid: SET_UUID, state: JournalArrayState::Live, first_sequence: 1 };
    if !redos.is_empty() {
        superblock.enter(array).expect("its table is empty");
    }
    let (payload, sectors) = (Sectors::kib(4), Sectors::kib(8));
    let entries = redos.iter().zip(0_u64..).map(|((slot, member_lba), number)| FoundEntry {
        position: RingSector(number * sectors.get()),
        sectors,
        tail: 1,
        records: alloc::vec![JournalRecord::Redo {
            array: 0,
            slot: *slot,
            member_lba: *member_lba,
            sectors: payload,
            payload_at: Sectors::ZERO,
        }],
    });
    let entries: Vec<_> = entries.collect();
    let count = entries.len() as u64;
    let found = FoundJournal {
        devices: alloc::vec![(JOURNAL, 0)],
        tail: superblock.tail,
        head: LogPlace { sequence: 1 + count, position: RingSector(count * sectors.get()) },
        epoch: superblock.epoch,
        superblock,
        entries,
        kept: Vec::new(),
    };
    controller.admin(Token(0), AdminCommand::AttachJournal(found));
}
