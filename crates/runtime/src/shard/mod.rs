//! A shard: one thread that drives one engine of the core.
//!
//! ```text
//!  wait -> read all ready sockets -> hand in -> advance -> carry out the actions, including those that end at once
//!    ^                                            ^               |
//!    |                                            +--- more ended-+
//!    +---- send once per connection <- members' commands to the kernel, what has ended back
//! ```
//!
//! The clock is read once a round. The shard must block only in its one place to wait.

mod carry_out;
mod clock;
mod drives;
mod order;
mod polling;
mod run_orders;
mod stop;

use std::sync::mpsc;

use openraid_core::limits::{Limits, LimitsError};
use openraid_core::Actions;
use openraid_parity::Kernels;
use openraid_sys::{
    EngineOptions, Epoll, Errno, Events, FramePool, InheritedListener, Interest, IoEngine, Listener, PoolOptions,
    ReadyEvent, Signals, Waker,
};
use openraid_units::{DriveId, Instant, Nanos, Token};

pub use drives::{AttachError, DriveView};
pub use order::{ArrayView, Order, OrderError, OwnRequest, ServiceEvent, ServiceStatus};

use crate::engine_access::Control;
use crate::engine_recorder::Recorder;
use crate::export::{DoorsError, Exports, Protocol, Shared, CONNECTION_CLASS, LISTENER_CLASS};
use crate::host_requests::Hosts;
use crate::limits::{LOOK_TIME, STANDSTILL_TOLD_MIN};
use crate::service::Accept;
use crate::slab::{GrowingSlab, SlabKey};
use crate::vhost::{Machines, VhostPlace, VHOST_KICKS_CLASS, VHOST_LISTENER_CLASS, VHOST_SOCKET_CLASS};
use clock::{ShardClock, Wait};
use drives::{ShardDrives, REMOTE_CLASS};
use polling::Looks;

/// The tokens of other kernel events.
const ENGINE: u64 = 4 << 56;
const WAKER: u64 = 5 << 56;
const SIGNALS: u64 = 6 << 56;
const CLASS: u64 = 0xff << 56;

/// Maximum number of calls of the engine in one round without a result; more are an endless loop.
const IDLE_ADVANCES_MAX: u32 = 10_000;

/// The parts of a new shard.
pub struct ShardConfig {
    /// Sizes of the engine's tables.
    pub limits: Limits,
    /// The kind of pages to request, and whether to touch them; the pool's length is taken from the limits.
    pub pool: PoolOptions,
    /// The kernel's engine for members.
    pub engine: EngineOptions,
    pub listeners: Vec<(Listener, Protocol)>,
    /// Where the sockets for virtual machines are.
    pub vhost: Vec<VhostPlace>,
    /// Listeners for some of them, which another process keeps.
    pub vhost_kept: Vec<InheritedListener>,
    /// From when on clients are accepted.
    pub accept: Accept,
    /// Stores the stream of events.
    pub recorder: Option<Box<dyn Recorder>>,
    /// Signals that stop the service.
    pub signals: Option<Signals>,
    /// Orders. `waker` wakes the shard for them.
    pub orders: mpsc::Receiver<Order>,
    /// See `orders`.
    pub waker: Waker,
    pub news: mpsc::SyncSender<ServiceEvent>,
}

/// Why a shard cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShardError {
    /// Limits that do not fit together.
    Limits(LimitsError),
    /// No memory for the frames.
    Pool(Errno),
    /// No io_uring, or no epoll set.
    System(Errno),
    /// Addresses that cannot all be served.
    Addresses(String),
}

impl std::fmt::Display for ShardError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Limits(error) => write!(f, "{error}"),
            Self::Pool(error) => {
                write!(f, "the system gives no memory for payload: {error}; give less to --cache or --memory")
            }
            Self::Addresses(why) => write!(f, "{why}"),
            Self::System(error) => write!(f, "the system has no room for the service: {error}"),
        }
    }
}
impl std::error::Error for ShardError {}

pub struct Shard {
    shared: Shared,
    clock: ShardClock,
    exports: Exports,
    machines: Machines,
    drives: ShardDrives,
    actions: Actions,
    kernels: Kernels,
    events: Events,
    orders: mpsc::Receiver<Order>,
    waker: Waker,
    signals: Option<Signals>,
    news: mpsc::SyncSender<ServiceEvent>,
    news_lost: u64,
    waiting: GrowingSlab<run_orders::WaitingCaller>,
    stopping: Option<stop::Stopping>,
    notes: Vec<String>,
    ended: bool,
    looks: Looks,
    /// Time spent in polls.
    looked: Nanos,
    /// Number of rests.
    rests: u64,
}

impl Shard {
    /// Make a shard. Call it on the thread that will run it.
    ///
    /// # Errors
    /// The missing resource.
    pub fn new(config: ShardConfig) -> Result<Self, ShardError> {
        openraid_sys::clock::make_timers_exact();
        let limits = config.limits;
        let control = Control::new(limits.clone(), config.recorder).map_err(ShardError::Limits)?;
        let pool = FramePool::new(PoolOptions { len: limits.pool, ..config.pool }).map_err(ShardError::Pool)?;
        // The cache is the end of the pool. Its lines are used by copies only; no command ever points there.
        let register_pool_max = config.engine.register_pool_max.min(limits.pool - limits.cache);
        let engine = EngineOptions { register_pool_max, ..config.engine };
        let engine = IoEngine::new(&pool, engine).map_err(ShardError::System)?;
        let epoll = Epoll::new().map_err(ShardError::System)?;
        epoll.add(engine.event_fd(), ENGINE, Interest::READ).map_err(ShardError::System)?;
        epoll.add(&config.waker, WAKER, Interest::READ).map_err(ShardError::System)?;
        if let Some(signals) = &config.signals {
            epoll.add(signals, SIGNALS, Interest::READ).map_err(ShardError::System)?;
        }
        let exports = Exports::new(config.listeners, &epoll);
        let mut exports = exports.map_err(|error| match error {
            DoorsError::System(error) => ShardError::System(error),
            DoorsError::Protocol(why) => ShardError::Addresses(why),
        })?;
        let machines = Machines::new(config.vhost, config.vhost_kept, &epoll);
        let mut machines = machines.map_err(ShardError::System)?;
        if config.accept == Accept::AtOnce {
            exports.accept(&epoll);
            machines.accept(&epoll);
        }
        let notes = pool.notes().iter().chain(engine.notes()).map(ToString::to_string).collect();
        let drives = ShardDrives::new(engine, usize::from(limits.drives_max), limits.commands_max as usize);
        let clock = ShardClock::new(openraid_sys::clock::now());
        let shared = Shared {
            control,
            pool,
            hosts: Hosts::default(),
            epoll,
            now: clock.now(),
            requests_max: limits.requests_max as usize,
            host_bytes: limits.host_bytes_in_use().get(),
        };
        Ok(Self {
            shared,
            clock,
            exports,
            machines,
            drives,
            actions: Actions::new(&limits),
            kernels: Kernels::detect(),
            events: Events::new(),
            orders: config.orders,
            waker: config.waker,
            signals: config.signals,
            news: config.news,
            news_lost: 0,
            waiting: GrowingSlab::default(),
            stopping: None,
            notes,
            ended: false,
            looks: Looks::new(),
            looked: Nanos::ZERO,
            rests: 0,
        })
    }

    /// Serve until an order to stop.
    pub fn run(mut self) {
        while !self.ended {
            self.wait();
            // Clients that disconnect make room for new ones, so listeners come last.
            for listeners in [false, true] {
                for nth in 0..self.events.len() {
                    if self.events.get(nth).is_some_and(|e| (e.token & CLASS == LISTENER_CLASS) == listeners) {
                        self.on_event(nth);
                    }
                }
            }
            self.on_time();
            self.run_round();
            self.go_on_stopping();
        }
        self.drives.part(&self.shared.pool);
        self.tell(ServiceEvent::Stopped);
    }

    /// Wait for an event. After a round with one request the shard polls for a moment, because its client may wait for
    /// each answer. After a round of pipelined requests that are all answered the shard rests: their client is sending
    /// more, and they come in one call.
    fn wait(&mut self) {
        let round = self.exports.take_round();
        if !self.events.is_empty() && round.largest_batch <= 1 && self.looks.pays() && self.look() {
            return;
        }
        if let Some(rest) = round.rest().filter(|rest| self.may_rest(*rest)) {
            std::thread::sleep(std::time::Duration::from_nanos(rest.get()));
            self.rests += 1;
        }
        let wait = Wait::until(self.time_left());
        self.wait_for(wait);
    }

    /// Can no command end during this rest?
    fn may_rest(&self, rest: Nanos) -> bool {
        self.shared.hosts.len() == 0
            && self.drives.are_quiet()
            && !self.exports.has_to_send()
            && self.time_left().is_none_or(|due| due > rest)
    }

    /// Poll without sleeping; true if an event came.
    fn look(&mut self) -> bool {
        self.read_clock(Wait::UpTo(Nanos::ZERO));
        let from = self.shared.now;
        let until = self.time_left().map_or(from + LOOK_TIME, |due| from + due.min(LOOK_TIME));
        while self.shared.now < until {
            self.wait_for(Wait::UpTo(Nanos::ZERO));
            if !self.events.is_empty() {
                break;
            }
        }
        let found = !self.events.is_empty();
        self.looked += self.shared.now.since(from);
        self.looks.note(found);
        found
    }

    fn wait_for(&mut self, wait: Wait) {
        if let Err(error) = self.shared.epoll.wait(&mut self.events, wait.timeout()) {
            panic!("bug: the place to wait is broken: {error}");
        }
        self.read_clock(wait);
    }

    /// Read the clock after such a wait.
    #[inline]
    fn read_clock(&mut self, wait: Wait) {
        if let Some(stood) = self.clock.advance(openraid_sys::clock::now(), wait) {
            self.on_standstill(stood);
        }
        self.shared.now = self.clock.now();
        if wait.sleeps() {
            self.shared.control.follow_wall_clock(self.shared.now);
        }
    }

    /// The loop stood still for this long: set the wall clock again.
    #[cold]
    fn on_standstill(&mut self, stood: Nanos) {
        self.shared.control.set_wall_clock(self.clock.now());
        if stood >= STANDSTILL_TOLD_MIN {
            self.tell(ServiceEvent::StoodStill(stood));
        }
    }

    /// The time until the next deadline, if there is one.
    fn time_left(&self) -> Option<Nanos> {
        if self.machines.wants_turn(&self.shared) {
            return Some(Nanos::ZERO);
        }
        let deadlines = [
            self.shared.control.next_deadline(),
            self.exports.next_deadline(),
            self.machines.next_deadline(),
            self.drives.next_deadline(),
            self.stopping.as_ref().and_then(stop::Stopping::deadline),
        ];
        let next: Option<Instant> = deadlines.into_iter().flatten().min();
        // Time has passed since the round began: an early wake-up costs less than a late one.
        next.map(|at| at.since(self.shared.now))
    }

    fn on_event(&mut self, nth: usize) {
        let Some(event) = self.events.get(nth) else { return };
        let name = event.token & !CLASS;
        match event.token & CLASS {
            CONNECTION_CLASS => {
                let key = SlabKey::from_token(Token(name));
                if event.writable {
                    self.exports.on_writable(key);
                }
                if event.readable {
                    self.exports.on_readable(key, &mut self.shared);
                }
                if event.closed {
                    self.exports.on_broken(key, &mut self.shared);
                }
            }
            LISTENER_CLASS => {
                let door = usize::try_from(name).expect("few listeners");
                self.exports.on_listener(door, &mut self.shared);
            }
            VHOST_LISTENER_CLASS | VHOST_SOCKET_CLASS | VHOST_KICKS_CLASS => self.on_machine(event),
            REMOTE_CLASS => {
                let drive = DriveId(u16::try_from(name).expect("drive numbers are small"));
                let Shared { epoll, pool, now, .. } = &mut self.shared;
                self.drives.on_remote(drive, epoll, pool, *now);
            }
            WAKER => {
                self.waker.clear();
                self.take_orders();
            }
            SIGNALS => self.on_signal(),
            // Ended commands are collected in any case.
            ENGINE => {}
            other => panic!("bug: an event that was not requested: {other:#x}"),
        }
    }

    fn on_machine(&mut self, event: ReadyEvent) {
        let key = SlabKey::from_token(Token(event.token & !CLASS));
        match event.token & CLASS {
            VHOST_LISTENER_CLASS => self.machines.on_listener(key, self.exports.offered(), &self.shared),
            VHOST_KICKS_CLASS => self.machines.on_kicks(key),
            _ => {
                self.machines.on_socket(key, &mut self.shared);
                if event.closed {
                    self.machines.on_broken(key, &mut self.shared);
                }
            }
        }
    }

    fn on_time(&mut self) {
        let now = self.shared.now;
        if self.exports.next_deadline().is_some_and(|at| at <= now) {
            self.exports.on_time(&mut self.shared);
        }
        self.machines.on_time(&self.shared);
        if self.drives.next_deadline().is_some_and(|at| at <= now) {
            let Shared { epoll, pool, control, .. } = &mut self.shared;
            self.drives.on_time(epoll, pool, control, now);
        }
        if self.shared.control.next_deadline().is_some_and(|at| at <= now) {
            // A command that has ended is not overdue, however late the shard collects it.
            let Shared { epoll, pool, control, .. } = &mut self.shared;
            self.drives.exchange(epoll, pool, control, now);
        }
    }

    /// Advance everything that can advance without waiting.
    fn run_round(&mut self) {
        self.advance_all();
        for (drive, news) in self.drives.take_news() {
            self.tell(ServiceEvent::Remote(drive, news));
        }
        for (array, why) in self.machines.take_refusals() {
            self.tell(ServiceEvent::MachineRefused(array, why));
        }
    }

    fn advance_all(&mut self) {
        self.machines.take_requests(&mut self.shared);
        loop {
            let mut idle = 0;
            while self.shared.control.wants_advance(self.shared.now) {
                self.shared.control.advance(self.shared.now, &mut self.actions);
                idle = if self.actions.is_empty() { idle + 1 } else { 0 };
                assert!(
                    idle < IDLE_ADVANCES_MAX,
                    "bug: the engine wants to be called again and again, and does nothing"
                );
                self.carry_out();
            }
            let Shared { epoll, pool, control, now, .. } = &mut self.shared;
            self.drives.exchange(epoll, pool, control, *now);
            if control.is_stirred() {
                // Commands that the kernel answers from its memory end within the round, one after the other, which
                // takes time.
                self.read_clock(Wait::UpTo(Nanos::ZERO));
                continue;
            }
            self.exports.answer_questions(&self.shared, &|drive, lba, len| self.drives.known_content(drive, lba, len));
            self.exports.end_round(&mut self.shared);
            self.exports.send(&mut self.shared);
            self.exports.resume(&mut self.shared);
            self.machines.tell(&mut self.shared);
            if !self.shared.control.wants_advance(self.shared.now) && !self.exports.has_to_send() {
                self.exports.end_round(&mut self.shared);
                return;
            }
        }
    }

    fn tell(&mut self, event: ServiceEvent) {
        if self.news_lost > 0 && self.news.try_send(ServiceEvent::NoticesLost(self.news_lost)).is_ok() {
            self.news_lost = 0;
        }
        if self.news.try_send(event).is_err() {
            self.news_lost += 1;
        }
    }
}
