//! The cost of the engine itself: nanoseconds of thread CPU time for each 4 KiB host request, with drives, hosts and
//! kernels that answer at once. Prints the goal next to each figure, and reports allocations.
//!
//! `-- plain` measures only the engine without a journal, `-- journal` only with cache and journal. A level (`RAID5`),
//! members (`on8`), a depth (`32`) and a load (`read`, `write`, `66/34`) select lines. `requests=N` takes this number
//! of requests for each figure. Under a counter of instructions, the difference of two such runs is exact.
//!
//! CPU time comes from `/proc/thread-self/schedstat`, which is exact to a scheduler tick. Each figure is the median of
//! runs of some tenths of a second.

#[path = "counting.rs"]
mod counting;

use counting::{allocations, Counting};
use openraid_core::events::RequestKind;
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_sim::drive::null::NullMachine;
use openraid_sim::{ArrayShape, Random};
use openraid_units::{ArrayId, Bytes, Sectors};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const REQUEST: u64 = 4096;
const CHUNK: Sectors = Sectors::kib(64);
/// So large that random places rarely repeat while their locks are held.
const MEMBER_DATA: Sectors = Bytes::gib(8).sectors_floor();
const RUNS: usize = 5;
const DEPTHS: [u32; 3] = [1, 32, 256];

/// CPU nanoseconds of this thread; wall time if the kernel does not report them.
fn thread_nanos(start: std::time::Instant) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat");
    let text = text.ok().and_then(|line| line.split(' ').next().and_then(|word| word.parse().ok()));
    text.unwrap_or_else(|| u64::try_from(start.elapsed().as_nanos()).expect("a benchmark is short"))
}

/// Reads among a hundred requests of the mix, as in a database.
const READS: u64 = 66;

/// The requests of the hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Read,
    Write,
    Mix,
}

impl Load {
    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Mix => "66/34",
        }
    }
}

struct Cell {
    nanos: f64,
    allocations: u64,
    commands: f64,
}

fn measure(machine: &mut NullMachine, array: ArrayId, load: Load, depth: u32, requests: u64) -> Cell {
    let blocks = machine.capacity(array).expect("it runs").get() / REQUEST;
    let mut random = Random::new(u64::from(depth));
    let mut next = || {
        let reads = load == Load::Read || (load == Load::Mix && random.below(100) < READS);
        let kind = if reads { RequestKind::Read } else { RequestKind::Write { fua: false } };
        (kind, random.below(blocks) * REQUEST)
    };
    machine.run_mixed(array, REQUEST, depth, requests / 4, &mut next);
    let start = std::time::Instant::now();
    let mut figures = Vec::with_capacity(RUNS);
    let mut taken = 0;
    let commands = machine.commands[0] + machine.commands[1];
    for _ in 0..RUNS {
        let (memory, before) = (allocations(), thread_nanos(start));
        let memory_of_the_clock = allocations() - memory;
        let memory = allocations();
        machine.run_mixed(array, REQUEST, depth, requests, &mut next);
        taken += allocations() - memory;
        let nanos = thread_nanos(start) - before;
        let _ = memory_of_the_clock;
        figures.push(nanos as f64 / requests as f64);
    }
    let commands = (machine.commands[0] + machine.commands[1] - commands) as f64 / (requests * RUNS as u64) as f64;
    machine.drain();
    figures.sort_by(f64::total_cmp);
    Cell { nanos: figures[RUNS / 2], allocations: taken, commands }
}

/// Limit of the nanoseconds for a request.
fn goal(level: Level, load: Load, depth: u32) -> Option<f64> {
    match (level, load, depth) {
        (Level::Raid0 | Level::Raid1, _, 1) => Some(300.0),
        (Level::Raid0 | Level::Raid1, _, _) => Some(150.0),
        (Level::Raid5 | Level::Raid6, Load::Write, 32..) => Some(500.0),
        _ => None,
    }
}

/// Limits for data in the cache and the journal: 64 MiB of lines, a journal of 1 GiB.
fn journalled() -> Limits {
    let plain = Limits::default();
    let (cache, journal) = (Bytes::mib(64), Bytes::mib(4));
    Limits { pool: plain.pool + cache + journal, cache, journal, ..plain }
}

/// Whether the command line selects this line of this half.
fn is_picked(half: &str, level: Level, members: u16, depth: u32, load: Load) -> bool {
    let line = [half.into(), level.to_string().replace(' ', ""), format!("on{members}"), depth.to_string()];
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--") && !word.contains('='));
    words.all(|word| line.contains(&word) || word == load.name())
}

/// Measure the engine with cache and journal. Returns the number of figures that miss their goals.
fn with_journal(requests: u64) -> u32 {
    let mut short = 0;
    let mut mixes = Vec::new();
    for (level, members) in [(Level::Raid0, 4), (Level::Raid1, 2), (Level::Raid5, 4), (Level::Raid6, 8)] {
        let chunk = if level == Level::Raid1 { Sectors(0) } else { CHUNK };
        let layout = if level == Level::Raid1 { 0 } else { 2 };
        let shape = ArrayShape::new(level, layout, members, chunk);
        let mut cells = vec![(1, Load::Write), (32, Load::Write), (32, Load::Mix)];
        cells.retain(|(depth, load)| is_picked("journal", level, members, *depth, *load));
        if cells.is_empty() {
            continue;
        }
        let (mut machine, array) = NullMachine::with_array(&shape, &journalled(), MEMBER_DATA);
        machine.promise_all(array, Bytes::gib(1).sectors_floor());
        for (depth, load) in cells {
            let cell = measure(&mut machine, array, load, depth, requests);
            let goal = if depth == 32 { "500" } else { "" };
            let verdict = if depth < 32 || cell.nanos <= 500.0 { "" } else { "SHORT" };
            short += u32::from(verdict == "SHORT");
            if load == Load::Mix {
                mixes.push(cell.nanos);
            }
            let name = format!("{level} on {members}, journal");
            println!(
                "{name:<28} {:>6} {depth:>6} {:>9.1} {goal:>7} {:>9.2}  {} {verdict}",
                load.name(),
                cell.nanos,
                cell.commands,
                cell.allocations
            );
            assert_eq!(cell.allocations, 0, "the engine took memory: {name}, depth {depth}");
        }
    }
    if !mixes.is_empty() {
        let mean = mixes.iter().sum::<f64>() / mixes.len() as f64;
        println!("{:<28} {:>6} {:>6} {mean:>9.1} {:>7}", "mean of these, journal", Load::Mix.name(), 32, 500);
    }
    short
}

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    let quick = std::env::args().any(|word| word == "--test");
    let asked = std::env::args().find_map(|word| word.strip_prefix("requests=")?.parse().ok());
    let requests = asked.unwrap_or(if quick { 2000 } else { 400_000 });
    println!("engine: thread CPU a 4 KiB host request, null drives, random places (median of {RUNS})");
    println!("{:<28} {:>6} {:>6} {:>9} {:>7} {:>9}  memory", "array", "what", "depth", "ns", "goal", "commands");
    let mut short = 0;
    let levels = [(Level::Raid0, 2), (Level::Raid1, 0), (Level::Raid5, 2), (Level::Raid6, 2)];
    for (level, layout) in levels {
        for members in [4, 8] {
            let chunk = if level == Level::Raid1 { Sectors(0) } else { CHUNK };
            let members = if level == Level::Raid1 { members / 2 } else { members };
            let picks = |load, depth| is_picked("plain", level, members, depth, load);
            let loads = [Load::Read, Load::Write];
            if !loads.iter().any(|load| DEPTHS.iter().any(|depth| picks(*load, *depth))) {
                continue;
            }
            let shape = ArrayShape::new(level, layout, members, chunk);
            let (mut machine, array) = NullMachine::with_array(&shape, &Limits::default(), MEMBER_DATA);
            for load in loads {
                for depth in DEPTHS.into_iter().filter(|depth| picks(load, *depth)) {
                    let cell = measure(&mut machine, array, load, depth, requests);
                    let goal = goal(level, load, depth);
                    let verdict = goal.map_or("", |goal| if cell.nanos <= goal { "ok" } else { "SHORT" });
                    short += u32::from(verdict == "SHORT");
                    let name = format!("{level} on {members}");
                    let what = load.name();
                    let goal = goal.map_or_else(String::new, |goal| format!("{goal:.0}"));
                    println!(
                        "{name:<28} {what:>6} {depth:>6} {:>9.1} {goal:>7} {:>9.2}  {} {verdict}",
                        cell.nanos, cell.commands, cell.allocations
                    );
                    assert_eq!(cell.allocations, 0, "the engine took memory: {name}, {what}, depth {depth}");
                }
            }
        }
    }
    short += with_journal(requests);
    println!("{short} figures short of their goals");
}
