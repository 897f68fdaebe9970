//! The cost of a read through each engine: CPU time (this process, kernel threads of the ring included) and reads per
//! second, at depth 1 and 32, on a tmpfs file and a file on disk; with io_uring also without registered memory.
//!
//! `cargo run --release -p openraid-sys --example ring_cost [READS [BYTES]]`, 100,000 of 4096 bytes unless told. The
//! loop is the shard's: push, submit, wait with epoll, reap.

use openraid_sys::{
    clock, Completed, Direct, EngineOptions, Epoll, Events, FramePool, HugePages, Interest, IoEngine, MemberFile,
    MemberSlot, Operation, OperationKind, PoolOptions, PoolRange, Prefer, Use,
};
use openraid_units::{Bytes, DriveLba, Nanos, PoolOffset};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE_BYTES: u64 = 256 << 20;
const READS: u64 = 100_000;
const BLOCK: u64 = 4096;
/// Each engine, with all of its memory registered and with none.
const ENGINES: [(Prefer, u64, &str); 3] =
    [(Prefer::Uring, u64::MAX, "uring"), (Prefer::Uring, 0, "plain"), (Prefer::Threads, 0, "threads")];

type Failure = Box<dyn std::error::Error>;

/// The reads, and their number.
#[derive(Clone, Copy)]
struct Load {
    depth: u64,
    reads: u64,
    block: u64,
}

fn main() -> Result<(), Failure> {
    let argument = |nth, usual| std::env::args().nth(nth).map_or(Ok(usual), |text| text.parse());
    let (reads, block) = (argument(1, READS)?, argument(2, BLOCK)?);
    if !block.is_power_of_two() || !(4096..=1 << 20).contains(&block) {
        return Err("BYTES must be a power of two from 4096 to 1048576".into());
    }
    println!("{:<10} {:<9} {:<8} {:>5} {:>12} {:>12}", "file on", "cache", "engine", "depth", "us CPU/read", "reads/s");
    for folder in ["/dev/shm", "/var/tmp"] {
        let path = PathBuf::from(folder).join(format!("openraid-ring-cost-{}", std::process::id()));
        std::fs::write(&path, vec![1u8; usize::try_from(FILE_BYTES)?])?;
        let measured = measure_file(&path, folder, reads, block);
        std::fs::remove_file(&path)?;
        measured?;
    }
    Ok(())
}

fn measure_file(path: &Path, folder: &str, reads: u64, block: u64) -> Result<(), Failure> {
    for direct in [Direct::Never, Direct::Try] {
        for (prefer, registered, engine) in ENGINES {
            for depth in [1, 32] {
                let member = Arc::new(MemberFile::open(path, Use::Exclusive, direct)?);
                let cache = if member.facts().direct { "O_DIRECT" } else { "cached" };
                if cache == "cached" && direct == Direct::Try {
                    continue;
                }
                let register_pool_max = Bytes(registered);
                let options = EngineOptions { prefer, register_pool_max, ..EngineOptions::default() };
                let (cpu, elapsed) = measure(member, options, Load { depth, reads, block })?;
                println!(
                    "{folder:<10} {cache:<9} {engine:<8} {depth:>5} {:>9}.{:02} {:>12}",
                    cpu.get() / reads / 1000,
                    cpu.get() / reads % 1000 / 10,
                    reads * 1_000_000_000 / elapsed.get().max(1),
                );
            }
        }
    }
    Ok(())
}

fn measure(member: Arc<MemberFile>, options: EngineOptions, load: Load) -> Result<(Nanos, Nanos), Failure> {
    let len = Bytes(load.depth * load.block);
    let mut pool = FramePool::new(PoolOptions { len, huge: HugePages::Advise, touch: true })?;
    let mut engine = IoEngine::new(&pool, options)?;
    let slot = engine.attach(member).ok_or("no room for the member")?;
    let mut epoll = Epoll::new()?;
    epoll.add(engine.event_fd(), 0, Interest::READ)?;
    let (mut events, mut done) = (Events::new(), Vec::<Completed>::new());
    let (cpu, start) = (clock::process_cpu(), clock::now());
    let mut pushed = 0;
    while pushed < load.depth {
        push(&mut engine, &mut pool, slot, (pushed, pushed), load.block)?;
        pushed += 1;
    }
    let mut finished = 0;
    while finished < load.reads {
        engine.submit()?;
        epoll.wait(&mut events, None)?;
        engine.reap(&mut pool, &mut done)?;
        for completed in done.drain(..) {
            completed.result?;
            finished += 1;
            if pushed < load.reads {
                push(&mut engine, &mut pool, slot, (completed.user_data, pushed), load.block)?;
                pushed += 1;
            }
        }
    }
    Ok((Nanos(clock::process_cpu().get() - cpu.get()), clock::now().since(start)))
}

fn push(
    engine: &mut IoEngine,
    pool: &mut FramePool,
    member: MemberSlot,
    (frame, nth): (u64, u64),
    block: u64,
) -> Result<(), Failure> {
    // Places far apart, every block once before any comes again: the factor is odd, the number of blocks a power of 2.
    let place = nth.wrapping_mul(40_503) % (FILE_BYTES / block);
    let at = DriveLba(place * block / 512);
    let into = PoolRange::new(PoolOffset(frame * block), Bytes(block));
    engine.push(pool, Operation { member, user_data: frame, verb: OperationKind::Read { at, into } })?;
    Ok(())
}
