//! What a 4 KiB read costs through each engine: CPU time (this process, kernel threads of the ring included) and
//! reads per second, at depth 1 and 32, on a tmpfs file and a file on disk.
//!
//! `cargo run --release -p openraid-sys --example ring_cost [READS]`. The loop is the shard's: push, submit, wait with
//! epoll, reap.

use openraid_sys::{
    clock, Completed, Direct, EngineOptions, Epoll, Events, FramePool, HugePages, Interest, IoEngine, Member,
    MemberSlot, Operation, PoolOptions, PoolRange, Prefer, Use, Verb,
};
use openraid_units::{Bytes, DriveLba, Nanos, PoolOffset};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE_BYTES: u64 = 256 << 20;
const BLOCK: u64 = 4096;
const READS: u64 = 100_000;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let reads = std::env::args().nth(1).map_or(Ok(READS), |text| text.parse())?;
    println!("{:<10} {:<9} {:<8} {:>5} {:>12} {:>12}", "file on", "cache", "engine", "depth", "us CPU/read", "reads/s");
    for folder in ["/dev/shm", "/var/tmp"] {
        let path = PathBuf::from(folder).join(format!("openraid-ring-cost-{}", std::process::id()));
        std::fs::write(&path, vec![1u8; usize::try_from(FILE_BYTES)?])?;
        let measured = measure_file(&path, folder, reads);
        std::fs::remove_file(&path)?;
        measured?;
    }
    Ok(())
}

fn measure_file(path: &Path, folder: &str, reads: u64) -> Result<(), Failure> {
    for direct in [Direct::Never, Direct::Try] {
        for prefer in [Prefer::Uring, Prefer::Threads] {
            for depth in [1, 32] {
                let member = Arc::new(Member::open(path, Use::Exclusive, direct)?);
                let cache = if member.facts().direct { "O_DIRECT" } else { "cached" };
                if cache == "cached" && direct == Direct::Try {
                    continue;
                }
                let (cpu, elapsed) = measure(member, prefer, depth, reads)?;
                println!(
                    "{folder:<10} {cache:<9} {:<8} {depth:>5} {:>9}.{:02} {:>12}",
                    format!("{prefer:?}"),
                    cpu.get() / reads / 1000,
                    cpu.get() / reads % 1000 / 10,
                    reads * 1_000_000_000 / elapsed.get().max(1),
                );
            }
        }
    }
    Ok(())
}

fn measure(member: Arc<Member>, prefer: Prefer, depth: u64, reads: u64) -> Result<(Nanos, Nanos), Failure> {
    let mut pool = FramePool::new(PoolOptions { len: Bytes::mib(2), huge: HugePages::Advise, touch: true })?;
    let mut engine = IoEngine::new(&pool, EngineOptions { prefer, ..EngineOptions::default() })?;
    let slot = engine.attach(member).ok_or("no room for the member")?;
    let mut epoll = Epoll::new()?;
    epoll.add(engine.event_fd(), 0, Interest::READ)?;
    let (mut events, mut done) = (Events::new(), Vec::<Completed>::new());
    let (cpu, start) = (clock::process_cpu(), clock::now());
    let mut pushed = 0;
    for frame in 0..depth {
        push(&mut engine, &mut pool, slot, frame, pushed)?;
        pushed += 1;
    }
    let mut finished = 0;
    while finished < reads {
        engine.submit()?;
        epoll.wait(&mut events, None)?;
        engine.reap(&mut pool, &mut done)?;
        for completed in done.drain(..) {
            completed.result?;
            finished += 1;
            if pushed < reads {
                push(&mut engine, &mut pool, slot, completed.user_data, pushed)?;
                pushed += 1;
            }
        }
    }
    Ok((Nanos(clock::process_cpu().get() - cpu.get()), clock::now().since(start)))
}

fn push(engine: &mut IoEngine, pool: &mut FramePool, member: MemberSlot, frame: u64, nth: u64) -> Result<(), Failure> {
    // Places far apart, every block once before any comes again: the factor is odd, the number of blocks a power of 2.
    let block = nth.wrapping_mul(40_503) % (FILE_BYTES / BLOCK);
    let at = DriveLba(block * BLOCK / 512);
    let into = PoolRange::new(PoolOffset(frame * BLOCK), Bytes(BLOCK));
    engine.push(pool, Operation { member, user_data: frame, verb: Verb::Read { at, into } })?;
    Ok(())
}
