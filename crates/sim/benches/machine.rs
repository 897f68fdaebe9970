//! Host requests per second of the simulated machine, with the full models, by the clock and by thread CPU time. Prints
//! the goal next to each figure. The goals are by the clock, for one idle core. On a busy core, the CPU time gives the
//! idle figure.
//!
//! `cell=N` measures one line only; the first line is 0. `requests=N` takes this number of requests for it. Under a
//! counter of instructions, the difference of two such runs is exact.
//!
//! `battery` measures the whole database test of a review: every mix at every depth on eleven arrays of one controller,
//! on two threads. The goal is ten minutes.

use openraid_models::{ArrayLevel, Library};
use openraid_sim::machine::{ArraySpec, HostIo, IoKind, Machine, MachineSpec};
use openraid_sim::Random;
use openraid_units::Instant;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads among a hundred requests.
const READS: u64 = 66;
const BLOCK: u32 = 8192;
const DRIVES: u16 = 8;

/// Controller, drive, outstanding requests, and the goal in thousands of requests per second.
const CELLS: [(&str, &str, u64, f64); 6] = [
    ("plain-hba", "service-fixed", 16, 1000.0),
    ("plain-hba", "exos_x18_18tb", 16, 1000.0),
    ("plain-hba", "mba3073rc", 16, 1000.0),
    ("plain-hba", "exos_x18_18tb", 256, 300.0),
    ("plain-hba", "mba3073rc", 256, 300.0),
    ("plain-hba", "pm893_960", 16, 500.0),
];

/// Limit of the memory for each drive of the machine in MB (10^6 bytes), including a share of the rest of the machine.
const DRIVE_MB: f64 = 50.0;
/// Limit of the time for ten times the requests, as a multiple: 15 percent above ten.
const TENFOLD: f64 = 11.5;

/// Thousands of requests per second, and events for each request.
#[derive(Clone, Copy)]
struct Rate {
    by_clock: f64,
    of_cpu: f64,
    events: f64,
}

impl Rate {
    fn verdict(self, goal: f64) -> &'static str {
        match (self.by_clock >= goal, self.of_cpu >= goal) {
            (true, _) => "ok",
            (false, true) => "short by the clock only",
            (false, false) => "SHORT",
        }
    }
}

/// CPU nanoseconds of this thread; wall time if the kernel does not report them.
fn thread_nanos(clock: std::time::Instant) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat");
    let text = text.ok().and_then(|line| line.split(' ').next().and_then(|word| word.parse().ok()));
    text.unwrap_or_else(|| u64::try_from(clock.elapsed().as_nanos()).expect("a benchmark is short"))
}

/// Bytes of memory of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Measure the rate; of a hundred requests `reads` are reads.
fn measure(machine: &mut Machine, (depth, reads): (u64, u64), requests: u64) -> Rate {
    let blocks = machine.capacity().get() / u64::from(BLOCK);
    let mut random = Random::new(depth);
    let mut next = |id| HostIo {
        id,
        kind: if random.below(100) < reads { IoKind::Read } else { IoKind::Write },
        offset: random.below(blocks) * u64::from(BLOCK),
        len: BLOCK,
        worker: 0,
    };
    let clock = std::time::Instant::now();
    let start = thread_nanos(clock);
    for id in 0..depth {
        machine.submit(next(id));
    }
    let (mut ended, mut done) = (0, Vec::new());
    while ended < requests {
        done.clear();
        machine.advance(Instant::NEVER, &mut done);
        for end in &done {
            ended += 1;
            machine.submit(next(end.id));
        }
    }
    let (cpu, wall) = ((thread_nanos(clock) - start) as f64 / 1e9, clock.elapsed().as_secs_f64());
    let thousands = |seconds: f64| ended as f64 / seconds / 1e3;
    Rate { by_clock: thousands(wall), of_cpu: thousands(cpu), events: machine.counters().events as f64 / ended as f64 }
}

/// The arrays of the battery: level, drives.
const ARRAYS: [(ArrayLevel, u16); 11] = [
    (ArrayLevel::Single, 1),
    (ArrayLevel::Raid0, 4),
    (ArrayLevel::Raid0, 8),
    (ArrayLevel::Raid10, 4),
    (ArrayLevel::Raid10, 8),
    (ArrayLevel::Raid5, 4),
    (ArrayLevel::Raid5, 8),
    (ArrayLevel::Raid50, 8),
    (ArrayLevel::Raid6, 4),
    (ArrayLevel::Raid6, 8),
    (ArrayLevel::Raid60, 8),
];
/// The mixes are 0, 10 .. 100 percent reads, the depths 1, 2 .. 256.
const MIXES: u64 = 11;
const DEPTHS: u64 = 9;

/// Run all cells of the battery on two threads, and measure the time.
fn battery(library: &Library, requests: u64) {
    let (Ok(controller), Ok(drive)) = (library.controller("lsi-9260-8i"), library.drive("mba3073rc")) else { return };
    let cells = ARRAYS.len() as u64 * MIXES * DEPTHS;
    let (next, clock) = (AtomicU64::new(0), std::time::Instant::now());
    let work = || {
        let mut busy = 0.0;
        loop {
            let cell = next.fetch_add(1, Ordering::Relaxed);
            if cell >= cells {
                return busy;
            }
            let (level, drives) = ARRAYS[usize::try_from(cell % ARRAYS.len() as u64).expect("a few")];
            let (depth, reads) = (1 << (cell / ARRAYS.len() as u64 % DEPTHS), cell / ARRAYS.len() as u64 / DEPTHS * 10);
            let spec = MachineSpec::new(controller.clone(), drive.clone(), ArraySpec::new(level, drives));
            let mut machine = Machine::in_library(&spec, library).unwrap_or_else(|error| panic!("{error}"));
            let rate = measure(&mut machine, (depth, reads), requests);
            busy += requests as f64 / rate.of_cpu / 1e3;
        }
    };
    let busy: f64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.into_iter().map(|thread| thread.join().expect("a cell ends")).sum()
    });
    let wall = clock.elapsed().as_secs_f64() / 60.0;
    println!(
        "battery: {cells} cells of {requests} requests, {wall:.1} minutes by the clock (goal 10), {:.1} of two processors; \
         {:.0} thousand requests a second of each",
        busy / 120.0,
        (cells * requests) as f64 / busy / 1e3
    );
}

/// The number with this name on the command line.
fn asked(name: &str) -> Option<u64> {
    std::env::args().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    let quick = std::env::args().any(|word| word == "--test");
    let requests = asked("requests").unwrap_or(if quick { 2_000 } else { 1_000_000 });
    let only = asked("cell");
    let library = Library::builtin();
    if std::env::args().any(|word| word == "battery") {
        return battery(&library, asked("requests").unwrap_or(300_000));
    }
    println!("machine: RAID 5 on 8 drives, {READS} % reads of 8 KiB; thousand requests a second, MB for each drive");
    println!(
        "{:<12} {:<16} {:>6} {:>9} {:>9} {:>7} {:>8} {:>9} {:>7}",
        "controller", "drive", "depth", "by clock", "of CPU", "goal", "events", "MB/drive", "goal"
    );
    for (number, (controller, drive, depth, goal)) in (0..).zip(CELLS) {
        if only.is_some_and(|only| only != number) {
            continue;
        }
        let (Ok(controller), Ok(drive)) = (library.controller(controller), library.drive(drive)) else {
            println!("{controller} {drive}: no such profile");
            continue;
        };
        let array = ArraySpec::new(ArrayLevel::Raid5, DRIVES);
        let spec = MachineSpec::new(controller.clone(), drive.clone(), array);
        let before = resident();
        let mut machine = Machine::in_library(&spec, &library).unwrap_or_else(|error| panic!("{error}"));
        let rate = measure(&mut machine, (depth, READS), requests);
        let megabytes = resident().saturating_sub(before) as f64 / 1e6 / f64::from(DRIVES);
        let (controller, drive) = (&controller.head.name, &drive.head.name);
        let Rate { by_clock, of_cpu, events } = rate;
        let memory = if megabytes <= DRIVE_MB { "" } else { ", TOO LARGE" };
        println!(
            "{controller:<12} {drive:<16} {depth:>6} {by_clock:>9.0} {of_cpu:>9.0} {goal:>7.0} {events:>8.1} \
             {megabytes:>9.1} {DRIVE_MB:>7.0}  {}{memory}",
            rate.verdict(goal)
        );
    }
    if quick || only.is_some() {
        return;
    }
    // Ten times the requests must take ten times as long.
    let (controller, drive) = (library.controller("plain-hba"), library.drive("exos_x18_18tb"));
    let (Ok(controller), Ok(drive)) = (controller, drive) else { return };
    let spec = MachineSpec::new(controller.clone(), drive.clone(), ArraySpec::new(ArrayLevel::Raid5, DRIVES));
    let seconds = [1_000_000_u64, 10_000_000].map(|requests| {
        let mut machine = Machine::in_library(&spec, &library).unwrap_or_else(|error| panic!("{error}"));
        let Rate { by_clock, of_cpu, .. } = measure(&mut machine, (16, READS), requests);
        println!("{requests} requests: {by_clock:.0} thousand a second by the clock, {of_cpu:.0} of CPU time");
        [by_clock, of_cpu].map(|rate| requests as f64 / rate / 1e3)
    });
    let [by_clock, of_cpu] = [0, 1].map(|which| seconds[1][which] / seconds[0][which]);
    let verdict = if of_cpu <= TENFOLD { "ok" } else { "NOT LINEAR" };
    println!(
        "ten times as many take {by_clock:.2} times as long by the clock, {of_cpu:.2} of CPU time \
         (goal 10, at most {TENFOLD})  {verdict}"
    );
}
