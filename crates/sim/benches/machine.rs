//! Host requests per second of thread CPU time of the simulated machine. Prints the goal beside each figure.

use openraid_sim::timing::drive::{AnyDrive, ConstantDrive};
use openraid_sim::timing::machine::plant::{HostCost, ParityCost, ProcessorCost, WayCost};
use openraid_sim::timing::machine::{ArrayLevel, ArraySpec, HostIo, IoKind, Machine, Plant, Rate};
use openraid_sim::Random;
use openraid_units::{Instant, Nanos};

/// Nanoseconds that this thread has run; wall time where the kernel does not say.
fn thread_nanos(clock: std::time::Instant) -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat");
    let told = told.ok().and_then(|line| line.split(' ').next().and_then(|word| word.parse().ok()));
    told.unwrap_or_else(|| u64::try_from(clock.elapsed().as_nanos()).expect("a benchmark is short"))
}

fn plant() -> Plant {
    Plant {
        host: HostCost { submit: Nanos(4000), complete: Nanos(2700), kib: Nanos(0) },
        processor: ProcessorCost {
            read: Nanos(20_000),
            write: Nanos(20_000),
            nested: Nanos(0),
            command: Nanos(10_000),
        },
        host_way: WayCost { read: Rate::mb_per_second(750), write: Rate::mb_per_second(750), shared: None },
        parity: ParityCost { setup: Nanos(5_000), column: Nanos(0), picos: 2_000, second_percent: 200 },
        ..Plant::default()
    }
}

fn main() {
    let quick = std::env::args().any(|word| word == "--test");
    let requests: u64 = if quick { 10_000 } else { 1_000_000 };
    for (level, depth, time) in
        [(ArrayLevel::Raid5, 16, 8000), (ArrayLevel::Raid5, 256, 8000), (ArrayLevel::Raid0, 16, 8000)]
    {
        let array = ArraySpec::new(level, 8);
        let drives =
            (0..8).map(|_| AnyDrive::Constant(ConstantDrive::new(1 << 28, Nanos::from_micros(time)))).collect();
        let mut machine = Machine::with_drives(plant(), &array, drives, true).expect("it can be");
        let blocks = machine.capacity().get() / 8192;
        let mut random = Random::new(1);
        let mut next = |id| HostIo {
            id,
            kind: if random.below(100) < 66 { IoKind::Read } else { IoKind::Write },
            offset: random.below(blocks) * 8192,
            len: 8192,
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
        let seconds = (thread_nanos(clock) - start) as f64 / 1e9;
        let counters = machine.counters();
        println!(
            "{level} depth {depth}: {:.0} thousand requests a second, {:.0} ns and {:.1} events a request",
            requests as f64 / seconds / 1e3,
            seconds * 1e9 / requests as f64,
            counters.events as f64 / requests as f64
        );
    }
}
