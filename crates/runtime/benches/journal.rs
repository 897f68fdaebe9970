//! 4 KiB random writes on RAID 5 and RAID 6: write-back with a journal beside write-through, in one run, in turns.
//!
//! Members are files in the folder for temporary files, and memory; the journal is a file beside the members. A number
//! of threads write one block each at a time, as hosts at that depth do; a figure is the median of its rounds.
//! `OPENRAID_BENCH_SECONDS` (2) and `OPENRAID_BENCH_ROUNDS` (3) set the length.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use openraid_core::admin::{AdminCommand, Policy, WriteCache};
use openraid_core::limits::Limits;
use openraid_format::{MdLevel, MinorVersion, SetName, Uuid};
use openraid_runtime::member::{open, OpenOptions, OpenedMember};
use openraid_runtime::service::journal::{make, JournalRequest};
use openraid_runtime::service::CreateRequest;
use openraid_runtime::{Service, ServiceConfig, ServiceHandle};
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes, Sectors};

const BLOCK_BYTES: usize = 4096;
const BLOCK: u64 = BLOCK_BYTES as u64;
const DEPTH: u64 = 32;
const MEMBER_MIB: u64 = 128;
const JOURNAL_MIB: u64 = 256;
const CONTROLLER: Uuid = Uuid([1; 16]);

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn opened(name: &str) -> OpenedMember {
    open(&name.parse().expect("a name"), OpenOptions::new(Use::Exclusive)).expect("it opens")
}

/// A file with every byte written, as drives have them.
fn file(folder: &Path, name: &str, mib: u64) -> String {
    let path = folder.join(name);
    let mut file = File::create(&path).expect("room");
    for _ in 0..mib {
        std::io::Write::write_all(&mut file, &[0x5a; 1 << 20]).expect("room");
    }
    file.sync_all().expect("room");
    path.to_str().expect("UTF-8").into()
}

fn service(folder: &Path, level: MdLevel, count: usize, in_memory: bool) -> (Service, ArrayId) {
    let base = Limits::default();
    let (cache, journal) = (Bytes::mib(128), Bytes::mib(4));
    let limits = Limits { pool: base.pool + cache + journal, cache, journal, ..base };
    let service = Service::start(ServiceConfig { limits, touch: true, ..ServiceConfig::default() }).expect("a service");
    let name = format!("journal-{level}-{in_memory}");
    let device = file(folder, &name, JOURNAL_MIB);
    make(&[opened(&device)], Uuid([2; 16]), CONTROLLER).expect("a journal");
    let devices = vec![device.parse().expect("a name")];
    let open = OpenOptions::new(Use::Exclusive);
    let request = JournalRequest { devices, controller: CONTROLLER, alone: false, open };
    service.handle().attach_journal(&request).expect("a journal");
    service.handle().wait_for_journal().expect("it works");
    let member = |n: usize| {
        let name =
            if in_memory { format!("ram:{MEMBER_MIB}M") } else { file(folder, &format!("{level}-{n}"), MEMBER_MIB) };
        Some(opened(&name))
    };
    let array = service.handle().create(CreateRequest {
        name: SetName::new(None, "bench").expect("a short name"),
        level,
        layout: 2,
        chunk: Sectors::kib(64),
        minor: MinorVersion::V1_2,
        slots: (0..count).map(member).collect(),
        spares: Vec::new(),
        size: None,
        assume_clean: true,
        bitmap: false,
        ppl: false,
    });
    (service, array.expect("an array").array)
}

/// Blocks written a second.
fn load(handle: &ServiceHandle, array: ArrayId, blocks: u64, seconds: u64, seed: u64) -> f64 {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..DEPTH {
            let (stop, count) = (&stop, &count);
            scope.spawn(move || {
                let mut state = (seed * DEPTH + thread).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
                let bytes = [7; BLOCK_BYTES];
                while !stop.load(Ordering::Relaxed) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    handle.write(array, state % blocks * BLOCK, &bytes, false).expect("the array takes writes");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(folder: &Path, level: MdLevel, count: usize, in_memory: bool) {
    let (seconds, rounds) =
        (from_environment("OPENRAID_BENCH_SECONDS", 2), from_environment("OPENRAID_BENCH_ROUNDS", 3));
    let (service, array) = service(folder, level, count, in_memory);
    let handle = service.handle();
    let status = handle.status().expect("it runs");
    let blocks = status.arrays[0].status.capacity.bytes().get() / BLOCK;
    let mut figures = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (write_cache, figures) in [WriteCache::Through, WriteCache::Journal].into_iter().zip(&mut figures) {
            let policy = Policy { write_cache, ..Policy::default() };
            handle.admin(AdminCommand::SetPolicy { array, policy }).expect("the policy is taken");
            handle.flush(array).expect("it flushes");
            figures.push(load(&handle, array, blocks, seconds, round + 1));
        }
    }
    let [through, journal] = figures.map(median);
    let members = if in_memory { "members in memory" } else { "members in files" };
    println!(
        "{level} x{count}, {members}: 4 KiB random writes, depth {DEPTH}: write-through {through:7.0}/s, journal {journal:7.0}/s, \
         x{:.2}",
        journal / through
    );
    service.stop();
}

fn main() {
    let folder = std::env::temp_dir().join(format!("openraid-bench-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for in_memory in [false, true] {
        measure(&folder, MdLevel::Raid5, 4, in_memory);
        measure(&folder, MdLevel::Raid6, 6, in_memory);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
