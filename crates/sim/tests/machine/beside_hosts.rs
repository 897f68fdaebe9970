//! Background work next to hosts, on drives that do not rotate: the length and number of its commands, and its rate.

use std::sync::{Arc, Mutex};

use openraid_core::actions::{DriveCommand, DriveOp, IoClass};
use openraid_drives::{AnyDrive, VirtualDrive};
use openraid_sim::machine::{ArrayChange, ArrayLevel, ArraySpec, HostIo, IoKind, Machine, MachineParts};
use openraid_sim::Random;
use openraid_units::{Bytes, Instant, Nanos, Sectors, Tag};

use crate::support::{closed_loop, constant};

/// Background commands that drives were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct BackgroundSeen {
    longest: Sectors,
    /// Maximum number of them at one drive.
    most: usize,
}

/// A drive that notes them.
#[derive(Clone, Debug)]
struct Watched {
    drive: AnyDrive,
    background: Vec<Tag>,
    seen: Arc<Mutex<BackgroundSeen>>,
}

impl VirtualDrive for Watched {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }
    fn submit(&mut self, now: Instant, command: &DriveCommand) {
        if matches!(command.class, IoClass::Rebuild | IoClass::Scrub) && command.op != DriveOp::Flush {
            self.background.push(command.tag);
            let mut seen = self.seen.lock().expect("no thread has panicked");
            seen.longest = seen.longest.max(command.len);
            seen.most = seen.most.max(self.background.len());
        }
        self.drive.submit(now, command);
    }
    fn next(&self) -> Option<Instant> {
        self.drive.next()
    }
    fn advance(&mut self, now: Instant, done: &mut Vec<Tag>) {
        let from = done.len();
        self.drive.advance(now, done);
        self.background.retain(|tag| !done[from..].contains(tag));
    }
    fn busy(&self, now: Instant) -> Nanos {
        self.drive.busy(now)
    }
}

/// An array with background work, and what it gave to its drives.
struct Case {
    machine: Machine<Watched>,
    seen: Arc<Mutex<BackgroundSeen>>,
    random: Random,
}

impl Case {
    fn new(array: &ArraySpec) -> Self {
        let seen = Arc::default();
        let watched = |drive| Watched { drive, background: Vec::new(), seen: Arc::clone(&seen) };
        let drives = constant(array.drives(), Nanos::from_micros(100)).into_iter().map(watched).collect();
        let parts = MachineParts { metadata_in_front: true, ..MachineParts::default() };
        let machine = Machine::with_drives(parts, array, drives, false).expect("it can run");
        Self { machine, seen, random: Random::new(1) }
    }

    /// What drives were given since the last call.
    fn take(&self) -> BackgroundSeen {
        std::mem::take(&mut *self.seen.lock().expect("no thread has panicked"))
    }

    /// Let time pass without hosts.
    fn rest(&mut self, time: Nanos) {
        let until = self.machine.now() + time;
        while self.machine.now() < until {
            self.machine.advance(until, &mut Vec::new());
        }
    }

    /// Serve reads and writes of 4 KiB at random places. Returns the rate of the work in MiB of a member each second.
    fn serve(&mut self, depth: u64, requests: u64) -> f64 {
        let blocks = self.machine.capacity().get() / 4096;
        let done = |machine: &Machine<Watched>| {
            let counters = machine.counters();
            // A change has four data columns at its end.
            counters.moved.map_or_else(|| counters.rebuilt.unwrap_or(0), |[moved, _]| moved / 4)
        };
        let before = done(&self.machine);
        let random = &mut self.random;
        let next = |id: u64| {
            let kind = if random.below(4) == 0 { IoKind::Write } else { IoKind::Read };
            HostIo { id, kind, offset: random.below(blocks) * 4096, len: 4096, worker: 0 }
        };
        let (time, _) = closed_loop(&mut self.machine, depth, requests, next);
        (done(&self.machine) - before) as f64 / 2048.0 * 1e9 / time.get() as f64
    }
}

/// A change of shape and a rebuild, with chunks of 512 KiB.
fn arrays() -> [ArraySpec; 2] {
    let change = ArrayChange { level: ArrayLevel::Raid5, members: 5, moved_percent: 0 };
    let array = ArraySpec { chunk: Some(Bytes::kib(512)), ..ArraySpec::new(ArrayLevel::Raid5, 4) };
    [ArraySpec { change: Some(change), ..array }, ArraySpec { degraded: 1, rebuilding: true, ..array }]
}

#[test]
fn background_commands_are_short_and_alone_while_hosts_use_flash_and_long_before_and_after() {
    for array in arrays() {
        let mut case = Case::new(&array);
        let second = Nanos::from_secs(1);
        case.rest(second);
        let alone = case.take();
        assert_eq!(alone.longest, Sectors::kib(256));
        // The units that were in work end first.
        case.serve(2, 1_000);
        case.take();
        case.serve(2, 10_000);
        assert_eq!(case.take(), BackgroundSeen { longest: Sectors::kib(64), most: 1 });
        case.rest(second);
        case.take();
        case.rest(second);
        assert_eq!(case.take().longest, alone.longest);
    }
}

#[test]
fn hosts_that_always_have_commands_at_flash_leave_background_work_its_minimum() {
    for (array, name) in arrays().into_iter().zip(["change", "rebuild"]) {
        let mut case = Case::new(&array);
        case.serve(64, 20_000);
        // It gives way to hosts for a window of twenty-one, and its last unit may be unfinished.
        let rate = case.serve(64, 200_000);
        assert!(rate >= 17.0, "{name}: {rate:.1} MiB/s");
    }
}
