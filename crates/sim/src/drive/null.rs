//! A machine without bytes and without times: every action is carried out at once. It shows the cost of the engine
//! itself, and takes no memory after its start. Reads return no data, and checks always match.

use crate::rig::RigOptions;
use crate::test_arrays::ArrayShape;
use crate::world::arrays::plan_new;
use openraid_core::actions::{Actions, Direction, DriveCommand, DriveOp, IoClass, JobKind};
use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, FoundJournal, Policy, WriteCache};
use openraid_core::events::{BlockRequest, Completion, DriveInfo, ParityVerdict, QueueFull, RequestKind};
use openraid_core::limits::{Limits, LimitsError};
use openraid_core::Controller;
use openraid_format::{JournalSuperblock, Uuid};
use openraid_units::{ArrayId, ArrayOffset, BlockSize, Bytes, DriveId, Instant, Nanos, Sectors, Token};

/// Time of each turn, so that timed work happens.
const TURN: Nanos = Nanos::from_micros(1);
/// Limit of the turns of one command.
const ADMIN_TURNS_MAX: u32 = 10_000_000;

/// A controller whose drives, hosts and kernels answer at once.
#[derive(Debug)]
pub struct NullMachine {
    controller: Controller,
    actions: Actions,
    now: Instant,
    next_token: u64,
    drives: u16,
    answer: Option<Result<AdminOutcome, AdminError>>,
    /// Requests that ended.
    pub ended: u64,
    /// Number of requests in the controller.
    pub inside: u32,
    /// Drive commands carried out: reads, and others.
    pub commands: [u64; 2],
    /// If present, a list to which every drive command is added.
    pub heard: Option<Vec<DriveCommand>>,
    /// If present, writes of hosts are not carried out, and collect here until [`NullMachine::carry_out`].
    pub held: Option<Vec<DriveCommand>>,
}

impl NullMachine {
    /// A machine without drives.
    ///
    /// # Errors
    /// Limits that do not work.
    pub fn new(limits: &Limits) -> Result<Self, LimitsError> {
        Ok(Self {
            controller: Controller::new(limits.clone())?,
            actions: Actions::new(limits),
            now: Instant::ZERO,
            next_token: 1,
            drives: 0,
            answer: None,
            ended: 0,
            inside: 0,
            commands: [0; 2],
            heard: None,
            held: None,
        })
    }

    /// A machine with one array of this shape on new drives with at least this size for data.
    ///
    /// # Panics
    /// The array cannot be created.
    #[must_use]
    pub fn with_array(shape: &ArrayShape, limits: &Limits, member_data: Sectors) -> (Self, ArrayId) {
        Self::on_drives(shape, limits, member_data, false)
    }

    /// Like [`NullMachine::with_array`], on disks or on other drives.
    ///
    /// # Panics
    /// The array cannot be created.
    #[must_use]
    pub fn on_drives(shape: &ArrayShape, limits: &Limits, member_data: Sectors, rotational: bool) -> (Self, ArrayId) {
        let mut machine = Self::new(limits).unwrap_or_else(|error| panic!("{error}"));
        // The first megabytes are for metadata.
        let capacity = member_data + Sectors::mib(256);
        let mut drives = Vec::new();
        for _ in 0..shape.members {
            let info = DriveInfo { rotational, ..Self::info(capacity) };
            let drive = machine.attach(info).unwrap_or_else(|error| panic!("{error}"));
            drives.push((drive, capacity));
        }
        let command = if shape.is_passthrough() {
            AdminCommand::StartPassthrough { drive: drives[0].0 }
        } else {
            let plan = plan_new(shape, &drives, &RigOptions::new(1));
            AdminCommand::StartSet(plan.unwrap_or_else(|error| panic!("{shape}: {error}")))
        };
        match machine.admin(command) {
            Ok(AdminOutcome::Started(array)) => (machine, array),
            other => panic!("{shape} does not start: {other:?}"),
        }
    }

    /// Let a new journal on a drive of its own accept all writes of an array.
    ///
    /// # Panics
    /// The journal cannot be created, or the array cannot use it.
    pub fn promise_all(&mut self, array: ArrayId, capacity: Sectors) {
        let drive = self.add_drive(capacity).unwrap_or_else(|error| panic!("{error}"));
        let (journal, controller) = (Uuid([7; 16]), Uuid([1; 16]));
        let made = JournalSuperblock::new(journal, controller, capacity, BlockSize::B512, (0, 1));
        let superblock = made.unwrap_or_else(|error| panic!("{error}"));
        let (tail, epoch) = (superblock.tail, superblock.epoch);
        let (entries, kept) = (Vec::new(), Vec::new());
        let found = FoundJournal { devices: vec![(drive, 0)], superblock, tail, head: tail, epoch, entries, kept };
        self.admin(AdminCommand::AttachJournal(found)).unwrap_or_else(|error| panic!("{error}"));
        let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
        self.admin(AdminCommand::SetPolicy { array, policy }).unwrap_or_else(|error| panic!("{error}"));
        while self.controller.journal_protection(array).is_err() {
            self.turn();
        }
    }

    /// Attach a drive.
    ///
    /// # Errors
    /// The controller's refusal.
    pub fn add_drive(&mut self, capacity: Sectors) -> Result<DriveId, AdminError> {
        self.attach(Self::info(capacity))
    }

    fn attach(&mut self, info: DriveInfo) -> Result<DriveId, AdminError> {
        let drive = DriveId(self.drives);
        self.drives += 1;
        self.admin(AdminCommand::AttachDrive { drive, info })?;
        Ok(drive)
    }

    /// The description of the machine's drives.
    #[must_use]
    pub fn info(capacity: Sectors) -> DriveInfo {
        DriveInfo {
            capacity,
            block: BlockSize::B512,
            rotational: false,
            discard: false,
            discard_zeroes: false,
            write_zeroes: false,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        }
    }

    /// The engine, for inspection.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// Size of an array.
    #[must_use]
    pub fn capacity(&self, array: ArrayId) -> Option<Bytes> {
        self.controller.capacity(array)
    }

    /// Carry out a command.
    ///
    /// # Errors
    /// The controller's refusal.
    ///
    /// # Panics
    /// No answer after very many turns.
    pub fn admin(&mut self, command: AdminCommand) -> Result<AdminOutcome, AdminError> {
        let token = self.token();
        self.controller.admin(token, command);
        for _ in 0..ADMIN_TURNS_MAX {
            self.turn();
            if let Some(answer) = self.answer.take() {
                return answer;
            }
        }
        panic!("an administrative command has no answer");
    }

    fn token(&mut self) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        token
    }

    /// Submit a request.
    ///
    /// # Errors
    /// The controller is full.
    pub fn submit(&mut self, array: ArrayId, kind: RequestKind, offset: u64, len: u64) -> Result<(), QueueFull> {
        let token = self.token();
        self.controller.submit(BlockRequest { token, array, kind, offset: ArrayOffset(offset), len })?;
        self.inside += 1;
        Ok(())
    }

    /// Advance the controller once, and carry out all its actions.
    pub fn turn(&mut self) {
        self.now = self.now + TURN;
        self.actions.clear();
        self.controller.advance(self.now, &mut self.actions);
        let mut ended = self.actions.replies.len();
        if let Some(heard) = &mut self.heard {
            heard.extend_from_slice(&self.actions.drive);
        }
        for command in &self.actions.drive {
            self.commands[usize::from(command.op != DriveOp::Read)] += 1;
            let is_write = command.class == IoClass::Foreground && matches!(command.op, DriveOp::Write { .. });
            if let Some(held) = self.held.as_mut().filter(|_| is_write) {
                held.push(*command);
                continue;
            }
            self.controller.complete(Completion::Drive { tag: command.tag, result: Ok(()) });
        }
        for transfer in &self.actions.transfers {
            ended += usize::from(transfer.last && transfer.direction == Direction::ToHost);
            self.controller.complete(Completion::Transfer { tag: transfer.tag, result: Ok(()) });
        }
        for job in &self.actions.jobs {
            let verdict = match job.kind {
                JobKind::Check | JobKind::Compare => ParityVerdict::Match,
                JobKind::Checksum => ParityVerdict::Checksum(0),
                JobKind::Generate | JobKind::Update | JobKind::Recover { .. } | JobKind::Copy => ParityVerdict::Done,
            };
            self.controller.complete(Completion::Job { tag: job.tag, verdict });
        }
        for answer in self.actions.admin.drain(..) {
            self.answer = Some(answer.result);
        }
        self.ended += ended as u64;
        self.inside -= u32::try_from(ended).expect("no more end than are inside");
    }

    /// Carry out a command that was held.
    pub fn carry_out(&mut self, command: &DriveCommand) {
        self.controller.complete(Completion::Drive { tag: command.tag, result: Ok(()) });
    }

    /// Run until no request is in the controller.
    pub fn drain(&mut self) {
        while self.inside > 0 {
            self.turn();
        }
    }

    /// Keep `depth` requests in the controller until this number have ended; offsets come from `next`.
    pub fn run(
        &mut self,
        array: ArrayId,
        kind: RequestKind,
        len: u64,
        depth: u32,
        requests: u64,
        mut next: impl FnMut() -> u64,
    ) {
        self.run_mixed(array, len, depth, requests, || (kind, next()));
    }

    /// Like [`NullMachine::run`]; the requests also come from `next`.
    pub fn run_mixed(
        &mut self,
        array: ArrayId,
        len: u64,
        depth: u32,
        requests: u64,
        mut next: impl FnMut() -> (RequestKind, u64),
    ) {
        let end = self.ended + requests;
        while self.ended < end {
            while self.inside < depth {
                let (kind, offset) = next();
                if self.submit(array, kind, offset, len).is_err() {
                    break;
                }
            }
            self.turn();
        }
    }
}
