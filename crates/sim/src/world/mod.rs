//! A machine in virtual time: one controller, its frame pool, its drives, its hosts.
//!
//! The world is a driver of the core, like the service. But time is a number, and chance comes from one seed: the same
//! seed gives the same run, action for action. The world carries real bytes, so the hosts' reads can be compared with
//! their writes. Events at the same time happen in the order in which they were scheduled. The controller gets all
//! events of one instant before it advances.
//!
//! No wait is endless. The world panics with a list of the outstanding work if a request takes longer than
//! [`REQUEST_TIME_MAX`] of virtual time, or if no event is left that could end it.

pub mod arrays;
mod carry_out;
mod drive_times;
mod host;
pub mod journal;
mod outstanding_work;
mod power;
mod silent_drives;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use openraid_core::actions::{Actions, DriveCommand, JobColumn, Notice, ParityJob, Transfer};
use openraid_core::admin::{AdminCommand, AdminOutcome, AdminReply, ArrayStatus, Health};
use openraid_core::events::Completion;
use openraid_core::limits::Limits;
use openraid_core::Controller;
use openraid_parity::Kernels;
use openraid_units::{ArrayId, DriveId, Instant, Nanos, Sectors, Tag, Token};

use crate::bytes_in_flight::{BytesInFlight, Ticket};
use crate::digest::Digest;
use crate::drive::{DriveSpec, Latency, MemoryDrive};
use crate::fault::planted::{Bug, PlantedBug};
use crate::random::Random;
use crate::record::{Record, RecordEntry};
pub use host::{FinishedRequest, Host};
use openraid_drives::AnyDrive;

/// Limit of the time of a host request: many consecutive command timeouts of 30 seconds.
pub const REQUEST_TIME_MAX: Nanos = Nanos::from_secs(600);
/// Limit of the time of an administrative command: stopping waits for requests.
pub const ADMIN_TIME_MAX: Nanos = Nanos::from_secs(1200);
/// Limit of the time until the world is idle: rebuilds of small arrays at low rates.
pub const IDLE_TIME_MAX: Nanos = Nanos::from_secs(24 * 3600);
/// Limit of the commands at a drive that a planted bug adds to the engine's own.
const PLANTED_COMMANDS_MAX: u32 = 1 << 16;
/// Limit of calls of `advance` at one instant that change nothing; more calls mean an endless loop.
const EMPTY_ADVANCES_MAX: u32 = 1000;
/// Limit of the looks without an action, as a multiple of [`WorldSpec::events_max`].
const IDLE_LOOKS_MAX: u64 = 16;
/// Seconds since 1970 at the world's zero: the start of 2026.
pub const WALL_CLOCK_AT_ZERO: u64 = 1_767_225_600;

/// The specification of a world.
#[derive(Clone, Debug)]
pub struct WorldSpec {
    /// The seed of all random choices.
    pub seed: u64,
    /// Limits of the controller's tables.
    pub limits: Limits,
    /// Times of transfers.
    pub transfers: Latency,
    /// Times of parity jobs.
    pub jobs: Latency,
    /// Whether a record of all events is kept.
    pub record: bool,
    /// Limit of the events of a run in which the controller acts; more events mean an endless loop.
    pub events_max: u64,
}

impl WorldSpec {
    /// A specification with small limits, so that all limited resources run out in tests.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let quick = Latency { least: Nanos::ZERO, most: Nanos::from_micros(20), grain: Nanos::from_micros(5) };
        Self { seed, limits: Limits::small(), transfers: quick, jobs: quick, record: false, events_max: u64::MAX }
    }
}

/// An event with its time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due {
    at: Instant,
    /// The order of events at the same time: first scheduled, first served.
    sequence: u64,
    ticket: Ticket,
}

/// An action that was issued and has not ended.
#[derive(Clone, Debug)]
enum InFlight {
    Drive(DriveCommand),
    Transfer(Transfer),
    /// The job, its columns, and a hash of its inputs when it was issued.
    Job(ParityJob, Vec<JobColumn>, u64),
    /// A command that a planted bug does not give to its drive, or answers before its end.
    Pretended(Tag),
    /// The drive's own work on a command that was answered early.
    Answered(DriveCommand),
}

impl InFlight {
    fn tag(&self) -> Tag {
        match self {
            Self::Drive(command) => command.tag,
            Self::Transfer(transfer) => transfer.tag,
            Self::Job(job, ..) => job.tag,
            Self::Pretended(tag) => *tag,
            Self::Answered(command) => command.tag,
        }
    }
}

/// The machine.
#[derive(Debug)]
pub struct World {
    spec: WorldSpec,
    controller: Controller,
    actions: Actions,
    kernels: Kernels,
    pool: Vec<u8>,
    claims: BytesInFlight,
    drives: Vec<Option<MemoryDrive>>,
    /// For each drive, the model that gives the ends of its commands, if there is one.
    paces: Vec<Option<AnyDrive>>,
    now: Instant,
    sequence: u64,
    due: BinaryHeap<Reverse<Due>>,
    in_flight: BTreeMap<u64, InFlight>,
    hosts: BTreeMap<Token, Host>,
    finished: VecDeque<(Token, FinishedRequest)>,
    next_token: u64,
    /// Commands that drives took and do not answer, each with its drive and the time at which it must be given up.
    silent: Vec<(DriveId, Instant)>,
    admin_waiting: BTreeMap<Token, Instant>,
    admin_answers: BTreeMap<Token, AdminReply>,
    notices: Vec<Notice>,
    random: Random,
    digest: Digest,
    record: Option<Record>,
    /// Distance between the metadata of new members and their data, besides the usual one.
    pub far: Sectors,
    /// Whether the controller got an input since the last `advance`.
    stirred: bool,
    /// Number of events.
    events: u64,
    /// Number of events in which the controller looked at something and did nothing.
    idle_looks: u64,
    /// A planted bug in the driver loop.
    planted: Option<PlantedBug>,
    /// A planted bug in the engine.
    #[cfg(feature = "planted")]
    flaw: Option<openraid_core::planted::Flaw>,
    /// Requests that a bug has answered before the engine did.
    answered_early: BTreeSet<Token>,
}

/// The users of the run's seed.
mod user {
    pub const WORLD: u64 = 1 << 32;
    pub const DRIVE: u64 = 2 << 32;
}

#[allow(clippy::cast_possible_truncation)] // the pool is in memory
fn new_pool(limits: &Limits) -> Vec<u8> {
    vec![0; limits.pool.get() as usize]
}

impl World {
    /// A machine without drives.
    ///
    /// # Panics
    /// Limits that do not work.
    #[must_use]
    pub fn new(spec: WorldSpec) -> Self {
        let controller = Controller::new(spec.limits.clone()).unwrap_or_else(|error| panic!("{error}"));
        let mut world = Self {
            controller,
            actions: Actions::new(&spec.limits),
            kernels: Kernels::detect(),
            pool: new_pool(&spec.limits),
            claims: BytesInFlight::new(spec.limits.pool.get()),
            drives: Vec::new(),
            paces: Vec::new(),
            now: Instant::ZERO,
            sequence: 0,
            due: BinaryHeap::new(),
            in_flight: BTreeMap::new(),
            hosts: BTreeMap::new(),
            finished: VecDeque::new(),
            next_token: 1,
            silent: Vec::new(),
            admin_waiting: BTreeMap::new(),
            admin_answers: BTreeMap::new(),
            notices: Vec::new(),
            random: Random::derived(spec.seed, user::WORLD),
            digest: Digest::default(),
            record: spec.record.then(|| Record::new(spec.limits.clone())),
            far: Sectors::ZERO,
            stirred: false,
            events: 0,
            idle_looks: 0,
            planted: None,
            #[cfg(feature = "planted")]
            flaw: None,
            answered_early: BTreeSet::new(),
            spec,
        };
        world.set_wall_clock();
        world
    }

    fn set_wall_clock(&mut self) {
        let at_zero = Nanos::from_secs(WALL_CLOCK_AT_ZERO);
        self.controller.set_wall_clock(at_zero);
        self.note(|| RecordEntry::WallClock(at_zero));
    }

    fn note(&mut self, entry: impl FnOnce() -> RecordEntry) {
        if let Some(record) = &mut self.record {
            record.push(entry());
        }
    }

    /// The present time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// The engine, for inspection.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }
    /// Let the engine keep the last `count` steps of requests from now on.
    pub fn keep_steps(&mut self, count: u32) {
        self.controller.keep_steps(count);
    }
    /// The limits of the engine.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.spec.limits
    }
    /// Number of events so far. It serves as a position in a run for a power cut.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Plant a bug in the driver loop or the engine.
    pub fn plant(&mut self, bug: Bug) {
        #[cfg(feature = "planted")]
        if let Bug::Engine(flaw) = bug {
            self.flaw = Some(flaw);
            return self.plant_in_engine();
        }
        self.planted = Some(PlantedBug::new(bug, self.spec.seed));
        self.drives.iter_mut().flatten().for_each(|drive| drive.make_room(PLANTED_COMMANDS_MAX));
    }
    /// Plant the bug in the engine, which has it from its first moment on.
    #[cfg(feature = "planted")]
    fn plant_in_engine(&mut self) {
        if let Some(flaw) = self.flaw {
            self.controller.plant(flaw);
        }
    }
    /// The hash of all decisions so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
    /// The record so far, if one is kept. Only a new controller begins a new record.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }
    /// Take the notices since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Attach a drive and announce it to the controller.
    ///
    /// # Panics
    /// The controller refuses the drive.
    pub fn add_drive(&mut self, spec: DriveSpec) -> DriveId {
        let drive = DriveId(u16::try_from(self.drives.len()).expect("a world has few drives"));
        let random = Random::derived(self.spec.seed, user::DRIVE + u64::from(drive.0));
        let mut memory = MemoryDrive::new(spec, self.spec.limits.drive_depth_max, random);
        if self.planted.is_some() {
            memory.make_room(PLANTED_COMMANDS_MAX);
        }
        self.drives.push(Some(memory));
        self.attach(drive);
        drive
    }

    fn attach(&mut self, drive: DriveId) {
        let info = self.drive(drive).spec().info();
        let result = self.admin(AdminCommand::AttachDrive { drive, info });
        result.unwrap_or_else(|error| panic!("drive {drive} is not taken: {error}"));
    }

    /// Number of drives that were attached.
    #[must_use]
    pub fn drives_len(&self) -> usize {
        self.drives.len()
    }
    /// A drive.
    ///
    /// # Panics
    /// There is no such drive.
    #[must_use]
    pub fn drive(&self, drive: DriveId) -> &MemoryDrive {
        self.drives[drive.index()].as_ref().expect("the drive is there")
    }
    /// A drive, for changes of its faults.
    ///
    /// # Panics
    /// There is no such drive.
    pub fn drive_mut(&mut self, drive: DriveId) -> &mut MemoryDrive {
        self.drives[drive.index()].as_mut().expect("the drive is there")
    }

    /// Pull a drive: commands in flight and later commands end with an error.
    pub fn pull(&mut self, drive: DriveId) {
        let stuck = self.drive_mut(drive).pull();
        self.expect_answers(drive);
        self.soon(&stuck);
    }
    /// Let a drive that hung answer again, late.
    pub fn release(&mut self, drive: DriveId) {
        let stuck = self.drive_mut(drive).release();
        self.expect_answers(drive);
        self.soon(&stuck);
    }
    /// Lose the connection to a drive: see [`MemoryDrive::disconnect`].
    pub fn disconnect(&mut self, drive: DriveId) {
        self.never(|command| command.drive == drive);
        self.drive_mut(drive).disconnect();
    }
    /// There is room again for a drive: its storage carries out what it has kept.
    pub fn give_room(&mut self, drive: DriveId) {
        let kept = self.drive_mut(drive).give_room();
        self.never(|command| kept.contains(&command.tag));
        self.soon(&kept);
    }
    /// No scheduled event ends these commands.
    fn never(&mut self, which: impl Fn(&DriveCommand) -> bool) {
        let is_one = |action: &InFlight| matches!(action, InFlight::Drive(command) if which(command));
        let tickets: BTreeSet<Ticket> =
            self.in_flight.iter().filter(|(_, action)| is_one(action)).map(|(ticket, _)| *ticket).collect();
        self.due.retain(|Reverse(due)| !tickets.contains(&due.ticket));
    }
    pub(super) fn soon(&mut self, tags: &[Tag]) {
        let stuck = |action: &InFlight| matches!(action, InFlight::Drive(command) if tags.contains(&command.tag));
        let tickets: Vec<Ticket> =
            self.in_flight.iter().filter(|(_, action)| stuck(action)).map(|(ticket, _)| *ticket).collect();
        for ticket in tickets {
            let delay = self.spec.transfers.draw(&mut self.random);
            self.schedule(ticket, self.now + delay);
        }
    }

    fn schedule(&mut self, ticket: Ticket, at: Instant) {
        self.sequence += 1;
        self.due.push(Reverse(Due { at, sequence: self.sequence, ticket }));
    }

    /// The controller's status of an array.
    #[must_use]
    pub fn status(&self, array: ArrayId) -> Option<ArrayStatus> {
        self.controller.status(array)
    }

    /// Whether any array lacks a member.
    #[must_use]
    pub fn is_any_degraded(&self) -> bool {
        let health = |array| self.status(array).map(|status| status.health);
        self.controller.arrays().any(|array| health(array) == Some(Health::Degraded))
    }

    /// Submit a command; the answer comes later.
    pub fn start_admin(&mut self, command: AdminCommand) -> Token {
        let token = self.new_token();
        self.admin_waiting.insert(token, self.now);
        self.note(|| RecordEntry::Admin(token, Box::new(command.clone())));
        self.controller.admin(token, command);
        self.stirred = true;
        token
    }

    /// Take the answer to a command.
    pub fn take_answer(&mut self, token: Token) -> Option<AdminReply> {
        self.admin_answers.remove(&token)
    }

    /// Submit a command and wait for its answer.
    ///
    /// # Errors
    /// The controller's refusal.
    ///
    /// # Panics
    /// No answer in [`ADMIN_TIME_MAX`].
    pub fn admin(&mut self, command: AdminCommand) -> Result<AdminOutcome, openraid_core::admin::AdminError> {
        let token = self.start_admin(command);
        loop {
            if let Some(answer) = self.take_answer(token) {
                return answer.result;
            }
            self.must_step("an administrative command has no answer");
        }
    }

    fn new_token(&mut self) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        token
    }

    /// Handle the next event: the controller processes its inputs, or time advances to the next event. Returns false if
    /// no event is left.
    pub fn step(&mut self) -> bool {
        if !self.stirred && !self.deadline_is_due() {
            let Some(next) = self.next_time() else {
                return false;
            };
            self.now = self.now.max(next);
            self.complete_due();
            self.judge_silence();
        }
        self.events += 1;
        self.idle_looks += u64::from(!self.advance());
        self.check_number_of_events();
        self.check_patience();
        true
    }

    /// Limits may give short pauses between looks. Thousands of looks then pass while a slow drive answers one command.
    fn check_number_of_events(&self) {
        let (most, idle) = (self.spec.events_max, self.idle_looks);
        let is_endless = self.events - idle > most || idle > most.saturating_mul(IDLE_LOOKS_MAX);
        assert!(!is_endless, "more events than any run should have\n{}", self.dump());
    }

    fn must_step(&mut self, what: &str) {
        if !self.step() {
            panic!("{what}, and nothing is left to happen\n{}", self.dump());
        }
    }

    fn deadline_is_due(&self) -> bool {
        self.controller.next_deadline().is_some_and(|(at, _)| at <= self.now)
    }

    /// The time of the next event that needs no input.
    fn next_time(&self) -> Option<Instant> {
        let due = self.due.peek().map(|Reverse(due)| due.at);
        let deadline = self.controller.next_deadline().map(|(at, _)| at);
        due.into_iter().chain(deadline).chain(self.next_pace()).min()
    }

    fn complete_due(&mut self) {
        self.advance_paces();
        while let Some(Reverse(due)) = self.due.peek().copied() {
            if due.at > self.now {
                break;
            }
            self.due.pop();
            if let Some(completion) = self.carry_out(due.ticket) {
                self.tell(completion);
            }
        }
    }

    fn tell(&mut self, completion: Completion) {
        self.note(|| RecordEntry::Complete(completion));
        self.controller.complete(completion);
        self.stirred = true;
    }

    /// Let the controller work. Returns whether it acted.
    fn advance(&mut self) -> bool {
        self.stirred = false;
        let (mut empty, mut acted) = (0, false);
        loop {
            let now = self.now;
            self.note(|| RecordEntry::Advance(now));
            self.controller.advance(now, &mut self.actions);
            self.digest.advance(now, &self.actions);
            if self.actions.is_empty() {
                empty += 1;
                let due = self.controller.next_deadline();
                assert!(
                    empty < EMPTY_ADVANCES_MAX,
                    "the controller is due ({due:?}) and does nothing\n{}",
                    self.dump()
                );
            } else {
                (empty, acted) = (0, true);
                self.issue_all();
            }
            if !self.deadline_is_due() {
                return acted;
            }
        }
    }

    fn check_patience(&self) {
        let too_old = |since: Instant, limit: Nanos| self.now.since(since) > limit;
        // Tokens increase with time: the first is the oldest.
        let host = self.hosts.values().next().is_some_and(|host| too_old(host.submitted, REQUEST_TIME_MAX));
        let admin = self.admin_waiting.values().next().is_some_and(|since| too_old(*since, ADMIN_TIME_MAX));
        assert!(!host && !admin, "a request waits too long\n{}", self.dump());
    }

    /// Let time pass.
    pub fn run_for(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.stirred || self.next_time().is_some_and(|next| next <= end) {
            self.must_step("time stands still");
        }
        self.now = end;
    }

    /// Whether no request is under way, and no action is in flight except those on silent drives.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        !self.stirred
            && self.due.is_empty()
            && self.next_pace().is_none()
            && self.hosts.is_empty()
            && self.admin_waiting.is_empty()
    }

    /// Run until all requests and commands have ended; background work may continue.
    pub fn run_until_answered(&mut self) {
        while !self.hosts.is_empty() || !self.admin_waiting.is_empty() {
            self.must_step("requests have no answer");
        }
    }

    /// Whether the world is idle: no action is in flight, and the controller waits for no time.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_quiet() && self.controller.next_deadline().is_none()
    }

    /// Run until the world is idle: no action is in flight, and the controller waits for no time.
    ///
    /// # Panics
    /// The world is not idle after [`IDLE_TIME_MAX`].
    pub fn run_until_idle(&mut self) {
        let begin = self.now;
        while !self.is_idle() {
            self.must_step("requests have no answer");
            assert!(self.now.since(begin) <= IDLE_TIME_MAX, "no rest\n{}", self.dump());
        }
    }
}
