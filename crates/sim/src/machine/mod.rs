//! A machine in virtual time: the production engine, unchanged, on models of drives, links, buses and processors.
//!
//! ```text
//!  threads of the host -> bus -> controller's processor -> engine -> parity engine
//!                                                            |  cache (the engine's own)
//!                                                            v
//!                                  member way -> channels -> drives
//!                                             -> devices of a journal
//! ```
//!
//! Requests have no payload. Every part is a server or a drive model. The loop hands all events of one instant to the
//! engine before the engine runs. The same parts, requests and seed give the same run, to the nanosecond. A machine
//! invents no results: a fault that the models do not have (a broken cable) does not happen.

mod array;
mod calendar;
mod counters;
mod error;
mod flow;
mod journal;
mod member_station;
pub mod parts;
mod profile;
mod queue_server;
mod request_slots;
mod write_admission;

use std::collections::VecDeque;
use std::sync::OnceLock;

use openraid_core::actions::{Actions, DriveCommand, ReplyStatus};
use openraid_core::admin::TaskKind;
use openraid_core::Controller;
use openraid_models::{DriveProfile, Library};
use openraid_units::{ArrayId, Bytes, DriveId, Instant, Nanos, Sectors, Tag};

use crate::digest::Digest;
use array::{told_capacity, EngineDrive, LevelFacts, Setup, StartedArrays};
use calendar::{Calendar, CalendarEntry, CalendarLines};
use flow::{Inside, MachineEvent, PartEvent};
use journal::MachineJournal;
use member_station::{Flight, Station, Ways};
use openraid_drives::{AnyDrive, DriveKit, DriveOptions, VirtualDrive};
use parts::{HostCost, ProcessorCost};
use request_slots::Door;
use write_admission::StreamGate;

pub use array::{ArrayChange, ArraySpec};
pub use counters::{MachineCounters, MemberCounters};
pub use error::MachineError;
pub use journal::{JOURNAL_DEVICE, JOURNAL_DEVICES_MAX};
pub use openraid_models::ArrayLevel;
pub use parts::MachineParts;
pub use profile::{CacheMode, CachePolicy, LoadHistory, MachineSpec};
use queue_server::PayloadMemory;
pub use queue_server::{Servers, TransferCost, WorkServer};

/// The kind of a host's request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    Read,
    Write,
    /// A flush: every request answered before it becomes durable. Its offset and length are ignored.
    Flush,
}

/// A request of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostIo {
    /// The host's own identifier of the request.
    pub id: u64,
    /// The kind of request.
    pub kind: IoKind,
    /// First byte.
    pub offset: u64,
    pub len: u32,
    /// The thread that makes the request. A thread works for one request after the other.
    pub worker: u16,
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoDone {
    /// The host's own identifier of the request.
    pub id: u64,
    /// The time at which the host's thread gets the result.
    pub at: Instant,
    pub status: ReplyStatus,
}

/// A thread of the host.
#[derive(Debug)]
struct Worker {
    server: usize,
    line: usize,
    /// The end of the thread's last request.
    end: u64,
    /// Requests of the thread that have not ended.
    asked: u32,
}

impl Worker {
    const fn places(&self) -> (usize, usize) {
        (self.server, self.line)
    }
}

/// The numbers of the lines of events.
#[derive(Debug)]
struct Places {
    members: usize,
    to_host: usize,
    from_host: usize,
    parity: usize,
    processor: usize,
    stage: usize,
    to_members: usize,
    /// The first of the channels' lines.
    channels: usize,
}

/// The numbers of the lines that every machine has.
const PLACES: Places =
    Places { members: 0, to_host: 1, from_host: 2, parity: 3, processor: 4, stage: 5, to_members: 6, channels: 7 };

/// Calls of the engine at one instant; more calls mean an endless loop.
const TURNS_MAX: u32 = 1_000_000;

/// See the module header.
#[derive(Debug)]
pub struct Machine<D = AnyDrive> {
    parts: MachineParts,
    nested: bool,
    controller: Controller,
    actions: Actions,
    /// All work of the processor takes no time.
    processor_is_free: bool,
    host_is_free: bool,
    started: StartedArrays,
    capacity: Bytes,
    now: Instant,
    calendar: Calendar,
    /// The time at which the engine next wants to run. The machine asks for it after each instant in which it ran.
    engine_due: CalendarEntry,
    engine_moved: bool,
    stations: Vec<Station<D>>,
    lines: CalendarLines<MachineEvent>,
    line: Places,
    channels: Vec<Ways>,
    host_ways: Ways,
    member_ways: Ways,
    processor: Servers,
    /// The stage between the processor and the cache. Writes pass it if the array is redundant.
    stage: WorkServer,
    parity: WorkServer,
    /// The controller's memory: it takes time for payload that it receives or gives, and for the computation of parity.
    memory: PayloadMemory,
    workers: Vec<Worker>,
    host_servers: Vec<WorkServer>,
    inside: Vec<Inside>,
    free: Vec<u32>,
    door: Door,
    gate: StreamGate,
    journal: Option<MachineJournal>,
    /// The time at which the last payload reaches the host.
    to_host_last: Instant,
    /// Members of one redundant set, and bytes of a chunk.
    set_members: u64,
    chunk: u64,
    flights: Vec<Flight>,
    /// Writes on the member way, in order.
    on_way: VecDeque<DriveCommand>,
    ended: Vec<Tag>,
    stirred: bool,
    digest: Option<Digest>,
    requests: [u64; 3],
    bytes: [u64; 2],
    parity_jobs: u64,
    parity_bytes: u64,
    events: u64,
}

impl Machine {
    /// A machine of this specification, with the built-in profiles.
    ///
    /// # Errors
    /// The reason for which the machine cannot be made; a rule of the controller includes the controller's reason.
    #[allow(clippy::needless_pass_by_value)] // a specification is made for one machine
    pub fn new(spec: MachineSpec) -> Result<Self, MachineError> {
        static BUILTIN: OnceLock<Library> = OnceLock::new();
        Self::in_library(&spec, BUILTIN.get_or_init(Library::builtin))
    }

    /// A machine of this specification. Buses and hosts that the specification only names are taken from `library`.
    ///
    /// # Errors
    /// The reason for which the machine cannot be made; a rule of the controller includes the controller's reason.
    pub fn in_library(spec: &MachineSpec, library: &Library) -> Result<Self, MachineError> {
        let parts = spec.parts(library)?;
        let port = spec.port(library)?;
        let behind = |drive: &DriveProfile| match spec.is_held_back(drive, port) {
            true => DriveKit::new(&drive.clone().behind(port)),
            false => DriveKit::new(drive),
        };
        let kits: Vec<DriveKit> = spec.drives.iter().map(behind).collect();
        let build = |member: u16| {
            let kit = &kits[usize::from(member).min(kits.len() - 1)];
            let drive = spec.drives.get(usize::from(member)).or_else(|| spec.drives.first());
            let write_cache = drive.map(|drive| spec.drive_cache_of(drive));
            let read_ahead = spec.drive_read_ahead;
            let (state, seed, index) = (spec.drive_state, spec.seed, member.into());
            kit.build(&DriveOptions { write_cache, read_ahead, state, seed, index })
        };
        let drives = (0..spec.array.drives()).map(build).collect();
        let device = |(index, drive): (u64, &DriveProfile)| {
            let write_cache = Some(spec.drive_cache_of(drive));
            let index = u64::from(spec.array.drives()) + index;
            let (state, seed) = (spec.drive_state, spec.seed);
            behind(drive).build(&DriveOptions { write_cache, read_ahead: None, state, seed, index })
        };
        let journal = (0..).zip(&spec.journal).map(device).collect();
        let array = ArraySpec { chunk: Some(spec.chunk()), ..spec.array };
        let rotational = spec.drives.iter().any(DriveProfile::rotational);
        Self::with_journal(parts, &array, drives, journal, rotational)
    }
}

/// A station for each drive of the array, followed by a station for each device of the journal. Members are assigned to
/// channels in turn. The devices of a journal have no channel.
fn stations<D: VirtualDrive>(
    drives: Vec<D>,
    journal: Vec<D>,
    channels: usize,
    calendar: &mut Calendar,
) -> Vec<Station<D>> {
    let members = drives.len();
    let channel_of = |number: usize| (channels > 0 && number < members).then(|| number % channels);
    let all = drives.into_iter().chain(journal).enumerate();
    all.map(|(number, drive)| Station::new(drive, calendar, channel_of(number))).collect()
}

impl<D: VirtualDrive> Machine<D> {
    /// A machine of these parts, with a drive for each member. `rotational` says that the drives are disks.
    ///
    /// # Errors
    /// The reason for which the array cannot be made.
    pub fn with_drives(
        parts: MachineParts,
        array: &ArraySpec,
        drives: Vec<D>,
        rotational: bool,
    ) -> Result<Self, MachineError> {
        Self::with_journal(parts, array, drives, Vec::new(), rotational)
    }

    /// Like [`Machine::with_drives`], with a drive for each device of a journal: none, one, or two with equal content.
    /// The parts give the size of a device.
    ///
    /// # Errors
    /// The reason for which the array or its journal cannot be made.
    pub fn with_journal(
        parts: MachineParts,
        array: &ArraySpec,
        drives: Vec<D>,
        journal: Vec<D>,
        rotational: bool,
    ) -> Result<Self, MachineError> {
        array.check()?;
        if drives.len() != usize::from(array.drives()) {
            return Err(MachineError::Drives { have: drives.len(), members: array.drives() });
        }
        let limits = parts.limits();
        let controller = Controller::new(limits.clone()).map_err(|error| MachineError::Part(error.to_string()))?;
        let mut calendar = Calendar::new();
        let channels: Vec<Ways> = parts.channels.iter().map(Ways::new).collect();
        let journal_state = (!journal.is_empty()).then(|| MachineJournal::new(drives.len()));
        let stations = stations(drives, journal, channels.len(), &mut calendar);
        let mut lines = CalendarLines::new(MachineEvent::NONE);
        (0..PLACES.channels + channels.len()).for_each(|_| lines.add(&mut calendar));
        let mut machine = Self {
            nested: array.level.is_nested(),
            controller,
            actions: Actions::new(&limits),
            processor_is_free: parts.processor == ProcessorCost::default(),
            host_is_free: HostCost { processors: 1, ..parts.host } == HostCost::FREE,
            started: StartedArrays { arrays: Vec::new(), sets: Vec::new() },
            capacity: Bytes::ZERO,
            now: Instant::ZERO,
            calendar,
            engine_due: CalendarEntry::NEVER,
            engine_moved: false,
            stations,
            lines,
            line: PLACES,
            channels,
            host_ways: Ways::new(&parts.host_way),
            member_ways: Ways::new(&parts.member_way),
            processor: Servers::new(parts.processors),
            stage: WorkServer::default(),
            parity: WorkServer::default(),
            memory: PayloadMemory::new(parts.memory),
            workers: Vec::new(),
            host_servers: vec![WorkServer::default(); parts.host.processors.max(1) as usize],
            inside: Vec::new(),
            free: Vec::new(),
            door: Door::new(array.spans(), parts.span_turn, parts.requests_max),
            gate: StreamGate::new(parts.adapts_after, parts.taught, parts.through_below),
            journal: journal_state,
            to_host_last: Instant::ZERO,
            chunk: array.chunk.unwrap_or(DEFAULT_CHUNK).get(),
            set_members: u64::from(array.members / array.spans()),
            flights: Vec::new(),
            on_way: VecDeque::new(),
            ended: Vec::new(),
            stirred: true,
            digest: None,
            requests: [0; 3],
            bytes: [0; 2],
            parity_jobs: 0,
            parity_bytes: 0,
            events: 0,
            parts,
        };
        machine.start(array, rotational)?;
        Ok(machine)
    }

    fn start(&mut self, array: &ArraySpec, rotational: bool) -> Result<(), MachineError> {
        let chunk = array.chunk.unwrap_or(DEFAULT_CHUNK).sectors_floor();
        let sizes: Vec<Sectors> = self.stations.iter().map(|station| Sectors(station.sectors())).collect();
        let (sizes, devices) = sizes.split_at(array.drives().into());
        let engine_drives: Result<Vec<EngineDrive>, MachineError> = sizes
            .iter()
            .map(|sectors| {
                let front = self.parts.metadata_in_front;
                let capacity = if front { *sectors } else { told_capacity(array.level, chunk, *sectors)? };
                Ok(EngineDrive { capacity, rotational })
            })
            .collect();
        let engine_drives = engine_drives?;
        let metadata_in_front = self.parts.metadata_in_front;
        let mut setup = Setup { controller: &mut self.controller, actions: &mut self.actions, metadata_in_front };
        for (number, drive) in (0..).zip(&engine_drives) {
            setup.attach(DriveId(number), *drive)?;
        }
        if let Some(least) = devices.iter().min() {
            setup.journal(array.drives(), devices.len(), self.parts.journal.sectors_floor().min(*least))?;
        }
        let started = setup.array(array, chunk, &engine_drives)?;
        setup.policy(&started, self.parts.policy)?;
        let controller = &self.controller;
        self.capacity = started.arrays.iter().map(|array| controller.capacity(*array).expect("it was started")).sum();
        self.started = started;
        Ok(())
    }

    /// Keep a hash of all decisions of the engine from now on.
    pub fn keep_digest(&mut self) {
        self.digest = Some(Digest::default());
    }

    /// The hash of all decisions of the engine since [`Machine::keep_digest`].
    #[must_use]
    pub fn digest(&self) -> Option<u64> {
        self.digest.map(|digest| digest.value())
    }

    /// The engine, for inspection.
    #[must_use]
    pub const fn engine(&self) -> &Controller {
        &self.controller
    }

    /// Let the engine keep the last `count` steps of requests. This does not change its decisions.
    pub fn keep_steps(&mut self, count: u32) {
        self.controller.keep_steps(count);
    }

    /// The running arrays: one, or one for each drive of a JBOD.
    #[must_use]
    pub fn arrays(&self) -> &[ArrayId] {
        &self.started.arrays
    }

    /// Size of the array. For a JBOD: of all drives together.
    #[must_use]
    pub const fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// The age at which the cache writes dirty data to members; `None` without a cache.
    #[must_use]
    pub fn destage_age(&self) -> Option<Nanos> {
        (!self.parts.cache.is_zero()).then_some(self.parts.destage_delay)
    }

    /// The present time of the machine.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Requests that have not ended.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.inside.len() - self.free.len()
    }

    /// Delete the array and create it again, while the controller keeps running. The controller forgets what it learned
    /// from loads, unless its firmware keeps it.
    pub fn make_again(&mut self) {
        if !self.parts.keeps_lessons {
            self.gate.forget();
        }
    }

    /// Submit a request now. First its thread works for it, then the bus and the controller.
    ///
    /// A request that does not fit the array ends with an error. On a JBOD, a request must lie on one drive.
    pub fn submit(&mut self, io: HostIo) {
        let worker = self.worker(io.worker);
        let host = self.host_cost(worker, &io);
        self.workers[worker].asked += 1;
        let entry = Inside { io, status: ReplyStatus::Ok, host };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.inside[slot as usize] = entry;
                slot
            }
            None => {
                self.inside.push(entry);
                u32::try_from(self.inside.len() - 1).expect("requests fit in memory")
            }
        };
        let (server, line) = self.workers[worker].places();
        let time = host + self.payload_cost(&io, IoKind::Write);
        let at = self.host_servers[server].take(self.now, time);
        self.push(line, at, MachineEvent::of(PartEvent::Arrive, slot));
    }

    /// The time that a request takes on its thread, in each direction.
    fn host_cost(&mut self, worker: usize, io: &HostIo) -> Nanos {
        let cost = &self.parts.host;
        let end = &mut self.workers[worker].end;
        let follows = io.kind != IoKind::Flush && *end == io.offset;
        *end = io.offset + u64::from(io.len);
        let whole = match io.kind {
            _ if follows => cost.sequential,
            IoKind::Read => cost.read,
            IoKind::Write | IoKind::Flush => cost.write,
        };
        Nanos(whole.0 / 2)
    }

    /// The thread of this number; its first use makes it.
    #[inline]
    fn worker(&mut self, number: u16) -> usize {
        if self.workers.len() <= usize::from(number) {
            self.add_workers(number);
        }
        usize::from(number)
    }

    #[cold]
    fn add_workers(&mut self, number: u16) {
        while self.workers.len() <= usize::from(number) {
            let server = self.workers.len() % self.host_servers.len();
            self.workers.push(Worker { server, line: self.lines.len(), end: u64::MAX, asked: 0 });
            self.lines.add(&mut self.calendar);
        }
    }

    /// The array at an offset, and the offset within that array.
    fn place(&self, offset: u64) -> (ArrayId, u64) {
        let arrays = &self.started.arrays;
        if arrays.len() == 1 {
            return (arrays[0], offset);
        }
        let mut from = 0;
        for array in arrays {
            let size = self.controller.capacity(*array).map_or(0, Bytes::get);
            if offset < from + size {
                return (*array, offset - from);
            }
            from += size;
        }
        (arrays[arrays.len() - 1], offset)
    }

    /// Run until a request has ended, or until `until`. Returns the time that is then reached. The requests that ended
    /// at that time are added to `done`.
    ///
    /// # Panics
    /// The engine loops endlessly.
    pub fn advance(&mut self, until: Instant, done: &mut Vec<IoDone>) -> Instant {
        let before = done.len();
        let (mut turns, mut due, limit) = (0, CalendarEntry::last_of(self.now), CalendarEntry::last_of(until));
        loop {
            let first = self.lines.earliest(&self.calendar);
            if first > due {
                if self.stirred {
                    self.engine_moves(done);
                    continue;
                }
                if self.engine_moved {
                    self.ask_engine();
                    if self.engine_due <= due {
                        self.stirred = true;
                        turns += 1;
                        assert!(turns < TURNS_MAX, "the engine stands still at {:?}", self.now);
                        continue;
                    }
                }
                if done.len() > before {
                    return self.now;
                }
                let next = first.min(self.engine_due);
                if next > limit {
                    if until != Instant::NEVER {
                        self.now = self.now.max(until);
                    }
                    return self.now;
                }
                (self.now, turns, due) = (next.at(), 0, next.last());
                if self.engine_due <= due {
                    self.stirred = true;
                    if first > due {
                        continue;
                    }
                }
            }
            self.happen(first.station(), due, done);
            turns += 1;
            assert!(turns < TURNS_MAX, "the machine stands still at {:?}", self.now);
        }
    }

    /// Ask the engine when it next wants to run, after all events of an instant have happened.
    #[inline]
    fn ask_engine(&mut self) {
        self.engine_moved = false;
        self.engine_due =
            self.controller.next_deadline().map_or(CalendarEntry::NEVER, |(at, _)| CalendarEntry::new(0, at));
    }

    /// The busy times of the bus and of the controller's data path. If both are one server with the slower rate, the
    /// share of the faster one is computed from the bytes.
    fn bus_and_path(&self) -> ([Nanos; 2], Option<[Nanos; 2]>) {
        let ways = if self.host_ways.is_free() { &self.member_ways } else { &self.host_ways };
        let (bus, Some(parts)) = (ways.busy(), self.parts.way_parts) else { return (ways.busy(), None) };
        if ways.is_shared() {
            return (bus, Some(ways.own_busy()));
        }
        let share = |direction: usize| {
            let [path, of_bus] = [parts.path, parts.bus].map(|rates| rates[direction].picos);
            let worked = bus[direction];
            let time = |picos: u64| (self.bytes[direction] * picos / 1000).min(worked.0);
            (Nanos(worked.0 - (time(of_bus.max(path)) - time(of_bus))), Nanos(time(path)))
        };
        let ((out, path_out), (inward, path_in)) = (share(0), share(1));
        ([out, inward], Some([path_out, path_in]))
    }

    /// The counters since the creation of the machine.
    #[must_use]
    pub fn counters(&self) -> MachineCounters {
        let (mut reasons, mut rebuilt, mut moved) = (Vec::new(), None, None);
        for set in &self.started.sets {
            let Some(status) = self.controller.status(*set) else { continue };
            if let Some(task) = status.task.filter(|task| task.kind == TaskKind::Rebuild) {
                rebuilt = Some(rebuilt.unwrap_or(0) + task.done.get());
            }
            moved = status.reshape.map(|reshape| [reshape.moved, reshape.total].map(Sectors::get)).or(moved);
            for (reason, count) in status.reasons {
                match reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, total)) => *total += count,
                    None => reasons.push((reason, count)),
                }
            }
        }
        let cache = self.controller.cache_counters();
        let (bus, data_path) = self.bus_and_path();
        let members = self.journal.as_ref().map_or(self.stations.len(), |journal| journal.first);
        MachineCounters {
            members: self.stations[..members].iter().map(|station| station.counters(self.now)).collect(),
            journal: self.stations[members..].iter().map(|station| station.counters(self.now)).collect(),
            journal_busy: self.journal.as_ref().map(|journal| journal.busy(self.now)),
            requests: self.requests,
            bytes: self.bytes,
            host_processor: self.host_servers.iter().fold(Nanos::ZERO, |sum, server| sum + server.busy()),
            host_threads: self.host_servers.iter().map(WorkServer::busy).collect(),
            processors: self.parts.processors,
            processor: self.processor.busy(),
            parity: self.parity.busy(),
            parity_jobs: self.parity_jobs,
            parity_bytes: self.parity_bytes,
            bus,
            data_path,
            memory: (self.parts.memory > 0).then(|| self.memory.busy()),
            open_stripes: self.parts.open_stripes,
            channels: self.channels.iter().filter_map(|channel| channel.busy().into_iter().max()).collect(),
            cache,
            rebuilt,
            moved,
            reasons,
            events: self.events,
        }
    }
}

const DEFAULT_CHUNK: Bytes = Bytes::kib(64);
