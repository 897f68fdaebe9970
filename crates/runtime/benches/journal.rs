//! What a journal costs and gains: 4 KiB random writes on RAID 5 and RAID 6, written through, written through with FUA (the
//! same promise), with the journal beside the members and with one in memory; writes with a partial parity log and without;
//! the time until a server that was killed serves again. All ways in one run, in turns, medians.
//!
//! Members are files in the folder for temporary files, and memory. A number of threads write one block each at a time, as
//! hosts at that depth do. `OPENRAID_BENCH_SECONDS` (2) and `OPENRAID_BENCH_ROUNDS` (4) set the length. The server that is
//! killed is this program again, with other arguments.

use std::fs::File;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use openraid_core::admin::{AdminCommand, Policy, Session, WriteCache};
use openraid_core::array::assemble::AssembleOptions;
use openraid_core::limits::Limits;
use openraid_format::{MdLevel, MinorVersion, SetName, Uuid};
use openraid_runtime::member::{open, open_and_probe, OpenOptions, OpenedMember};
use openraid_runtime::service::journal::{make, JournalRequest};
use openraid_runtime::service::{AssembleRequest, CreateRequest, Nesting};
use openraid_runtime::{Service, ServiceConfig, ServiceHandle};
use openraid_sys::Use;
use openraid_units::{ArrayId, Bytes, Nanos, Sectors};

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

fn limits(cache_mib: u64) -> Limits {
    let base = Limits::default();
    let (cache, journal) = (Bytes::mib(cache_mib), Bytes::mib(4));
    Limits { pool: base.pool + cache + journal, cache, journal, ..base }
}

fn started(limits: Limits) -> Service {
    Service::start(ServiceConfig { limits, touch: true, ..ServiceConfig::default() }).expect("a service")
}

/// Take the journal on a file into use.
fn attach(service: &Service, device: &str) {
    let devices = vec![device.parse().expect("a name")];
    let open = OpenOptions::new(Use::Exclusive);
    let request = JournalRequest { devices, controller: CONTROLLER, alone: false, open };
    service.handle().attach_journal(&request).expect("a journal");
    service.handle().wait_for_journal().expect("it works");
}

fn new_array(service: &Service, level: MdLevel, members: Vec<String>, ppl: bool) -> ArrayId {
    let array = service.handle().create(CreateRequest {
        name: SetName::new(None, "bench").expect("a short name"),
        level,
        layout: 2,
        chunk: Sectors::kib(64),
        minor: MinorVersion::V1_2,
        slots: members.iter().map(|name| Some(opened(name))).collect(),
        spares: Vec::new(),
        size: None,
        assume_clean: true,
        bitmap: false,
        ppl,
    });
    array.expect("an array").array
}

/// Names of new members: files, or memory.
fn members(folder: &Path, name: &str, count: usize, in_memory: bool) -> Vec<String> {
    let member = |n: usize| {
        if in_memory {
            format!("ram:{MEMBER_MIB}M")
        } else {
            file(folder, &format!("{name}-{n}"), MEMBER_MIB)
        }
    };
    (0..count).map(member).collect()
}

fn made_journal(folder: &Path, name: &str, mib: u64) -> String {
    let device = file(folder, name, mib);
    make(&[opened(&device)], Uuid([2; 16]), CONTROLLER).expect("a journal");
    device
}

/// Blocks written a second.
fn load(handle: &ServiceHandle, array: ArrayId, seconds: u64, seed: u64, fua: bool) -> f64 {
    let status = handle.status().expect("it runs");
    let blocks = status.arrays[0].status.capacity.bytes().get() / BLOCK;
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
                    handle.write(array, state % blocks * BLOCK, &bytes, fua).expect("the array takes writes");
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

fn lengths() -> (u64, u64) {
    (from_environment("OPENRAID_BENCH_SECONDS", 2), from_environment("OPENRAID_BENCH_ROUNDS", 4))
}

fn set_policy(handle: &ServiceHandle, array: ArrayId, write_cache: WriteCache) {
    let policy = Policy { write_cache, ..Policy::default() };
    handle.admin(AdminCommand::SetPolicy { array, policy }).expect("the policy is taken");
    handle.flush(array).expect("it flushes");
    // What is dirty goes to the members first.
    let session = || handle.status().expect("it runs").arrays.swap_remove(0).status.session;
    while write_cache == WriteCache::Through && session() != Session::Off {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where files in memory are, if the system has such a place.
fn memory_folder() -> Option<PathBuf> {
    let folder = PathBuf::from("/dev/shm");
    folder.is_dir().then_some(folder)
}

fn measure(folder: &Path, level: MdLevel, count: usize, in_memory: bool) {
    let (seconds, rounds) = lengths();
    let name = format!("{level}-{in_memory}");
    let mut journals = vec![made_journal(folder, &format!("journal-{name}"), JOURNAL_MIB)];
    if let Some(memory) = memory_folder() {
        journals.push(made_journal(&memory, &format!("openraid-bench-{}-{name}", std::process::id()), JOURNAL_MIB));
    }
    // Through, through with FUA, and each journal.
    let mut figures = vec![Vec::new(); 2 + journals.len()];
    let mut services: Vec<(Service, ArrayId)> = Vec::new();
    for (number, journal) in journals.iter().enumerate() {
        let service = started(limits(128));
        attach(&service, journal);
        let own = members(folder, &format!("{name}-{number}"), count, in_memory);
        let array = new_array(&service, level, own, false);
        services.push((service, array));
    }
    // Which comes first has an effect, as files and their system settle: each way comes first in its turn.
    let ways = figures.len();
    for round in 0..rounds {
        for turn in 0..ways {
            let way = (turn + usize::try_from(round).expect("few")) % ways;
            let (service, array) = &services[way.saturating_sub(2)];
            let handle = service.handle();
            set_policy(&handle, *array, if way < 2 { WriteCache::Through } else { WriteCache::Journal });
            figures[way].push(load(&handle, *array, seconds, round + 1, way == 1));
            set_policy(&handle, *array, WriteCache::Through);
        }
    }
    let figures: Vec<f64> = figures.into_iter().map(median).collect();
    let place = if in_memory { "memory" } else { "files" };
    println!(
        "{level} x{count}, members in {place}: 4 KiB random writes, depth {DEPTH}: through {:7.0}/s, through with FUA \
         {:7.0}/s, journal in a file {:7.0}/s (x{:.2} of through, x{:.2} of FUA){}",
        figures[0],
        figures[1],
        figures[2],
        figures[2] / figures[0],
        figures[2] / figures[1],
        figures.get(3).map_or_else(String::new, |own| format!(
            ", journal in memory {own:7.0}/s (x{:.2}, x{:.2})",
            own / figures[0],
            own / figures[1]
        ))
    );
    for (service, _) in services {
        service.stop();
    }
    for journal in journals {
        let _ = std::fs::remove_file(journal);
    }
}

/// Small writes with a partial parity log and without: how many a second, and writes of members for each.
fn measure_log(folder: &Path, in_memory: bool) {
    let (seconds, rounds) = lengths();
    let mut figures = [Vec::new(), Vec::new()];
    let mut writes = [0.0; 2];
    let services: Vec<(Service, ArrayId)> = [false, true]
        .map(|ppl| {
            let service = started(Limits::default());
            let own = members(folder, &format!("ppl-{ppl}-{in_memory}"), 4, in_memory);
            let array = new_array(&service, MdLevel::Raid5, own, ppl);
            (service, array)
        })
        .into_iter()
        .collect();
    for round in 0..rounds {
        for ((service, array), (figures, writes)) in services.iter().zip(figures.iter_mut().zip(&mut writes)) {
            let handle = service.handle();
            let counts = || {
                let status = handle.status().expect("it runs").arrays.swap_remove(0).status;
                (status.members.iter().map(|member| member.writes).sum::<u64>(), status.requests)
            };
            let before = counts().0;
            let rate = load(&handle, *array, seconds, round + 1, false);
            *writes = (counts().0 - before) as f64 / (rate * seconds as f64);
            figures.push(rate);
        }
    }
    let [without, with] = figures.map(median);
    println!(
        "RAID 5 x4, members in {}: 4 KiB random writes, depth {DEPTH}: {without:7.0}/s with {:.2} member writes each, with a \
         partial parity log {with:7.0}/s (x{:.2}) with {:.2}",
        if in_memory { "memory" } else { "files" },
        writes[0],
        with / without,
        writes[1]
    );
    for (service, _) in services {
        service.stop();
    }
}

// ---- killed and started again

const KILLED_CACHE_MIB: u64 = 640;

fn killed_limits() -> Limits {
    // Nothing is written back by age, so that it is all in the journal when the server is killed.
    let marks = Limits { destage_delay: Nanos::from_secs(3600), dirty_high_percent: 80, ..limits(KILLED_CACHE_MIB) };
    Limits { dirty_low_percent: 80, ..marks }
}

/// What a server does before it is killed.
#[derive(Clone, Copy)]
struct Deeds {
    /// It writes so many MiB, 4 KiB in each 16 KiB, over and over a region of so many MiB of blocks.
    mib: u64,
    region_mib: u64,
    /// MiB of the journal's file.
    journal_mib: u64,
    /// Its members are as slow as disks, and it writes until the ring is full instead.
    fills: bool,
}

/// The server that will be killed: it writes, says so, and waits.
fn be_killed(folder: &Path, deeds: Deeds) {
    let service = started(killed_limits());
    attach(&service, folder.join("journal").to_str().expect("UTF-8"));
    let name = |n: usize| {
        let file = folder.join(format!("killed-{n}"));
        let pace = if deeds.fills { "model:wd740gd,cache=off,size=512M,file=" } else { "" };
        format!("{pace}{}", file.to_str().expect("UTF-8"))
    };
    let array = new_array(&service, MdLevel::Raid5, (0..4).map(name).collect(), false);
    let handle = service.handle();
    set_policy(&handle, array, WriteCache::Journal);
    let (blocks, region) = ((deeds.mib << 20) / BLOCK, (deeds.region_mib << 20) / BLOCK);
    let blocks = if deeds.fills { u64::MAX } else { blocks };
    let writers: Vec<_> = (0..DEPTH)
        .map(|thread| {
            let handle = handle.clone();
            std::thread::spawn(move || {
                for block in (thread..blocks).step_by(usize::try_from(DEPTH).expect("few")) {
                    let place = block % region;
                    let bytes = [u8::try_from(place % 251).expect("a byte"); BLOCK_BYTES];
                    handle.write(array, place * 4 * BLOCK, &bytes, false).expect("it is promised");
                }
            })
        })
        .collect();
    if deeds.fills {
        wait_until_full(&handle);
    } else {
        writers.into_iter().for_each(|writer| writer.join().expect("it writes"));
    }
    println!("written");
    std::thread::sleep(Duration::from_secs(600));
}

/// Until hosts wait for room in the ring: nothing was added to it for two seconds, or it is full but for a hundredth part.
fn wait_until_full(handle: &ServiceHandle) {
    let (mut most, mut grown) = (0, Instant::now());
    while grown.elapsed() < Duration::from_secs(2) {
        let journal = handle.status().expect("it runs").journal.expect("attached");
        let (used, ring) = (journal.used.get(), journal.ring.get());
        if used * 100 >= ring * 99 {
            return;
        }
        if used > most {
            (most, grown) = (used, Instant::now());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn measure_restart(folder: &Path, deeds: Deeds, what: &str, limit: Duration) {
    let Deeds { mib, region_mib, journal_mib, fills } = deeds;
    let folder = folder.join(format!("killed-{mib}-{fills}"));
    std::fs::create_dir_all(&folder).expect("a folder");
    made_journal(&folder, "journal", journal_mib);
    for n in 0..4 {
        let file = File::create(folder.join(format!("killed-{n}"))).expect("room");
        file.set_len(512 << 20).expect("room");
    }
    let program = std::env::current_exe().expect("it has a name");
    let mut child = Command::new(program)
        .args([
            "be-killed",
            folder.to_str().expect("UTF-8"),
            &mib.to_string(),
            &region_mib.to_string(),
            &fills.to_string(),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it says something");
    assert_eq!(line.trim(), "written");
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let begin = Instant::now();
    let service = started(killed_limits());
    attach(&service, folder.join("journal").to_str().expect("UTF-8"));
    let found = begin.elapsed();
    let status = service.handle().status().expect("it runs").journal.expect("attached");
    let (used, ring) = (status.used.bytes().get() >> 20, status.ring.bytes().get() >> 20);
    let member = |n: usize| {
        let name = folder.join(format!("killed-{n}"));
        let spec = name.to_str().expect("UTF-8").parse().expect("a name");
        open_and_probe(&spec, OpenOptions::new(Use::Exclusive)).expect("it is there")
    };
    let request = AssembleRequest { options: AssembleOptions::default(), nesting: Nesting::Follow };
    let taken = service.handle().assemble((0..4).map(member).collect(), request).expect("it starts");
    let array = taken.arrays.first().unwrap_or_else(|| panic!("{:?}", taken.failed)).array;
    let mut bytes = [0; BLOCK_BYTES];
    service.handle().read(array, 4 * BLOCK, &mut bytes).expect("it reads");
    let took = begin.elapsed();
    assert_eq!(bytes, [1; BLOCK_BYTES], "what was promised is there");
    println!(
        "{what}: {used} of {ring} MiB of the ring read in {:.2} s, served after {:.2} s (limit {:.0} s)",
        found.as_secs_f64(),
        took.as_secs_f64(),
        limit.as_secs_f64()
    );
    service.stop();
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, what, folder, mib, region, fills] = &arguments[..] {
        if what == "be-killed" {
            let number = |text: &String| text.parse().expect("a number");
            let deeds = Deeds { mib: number(mib), region_mib: number(region), journal_mib: 0, fills: fills == "true" };
            return be_killed(Path::new(folder), deeds);
        }
    }
    let folder = std::env::temp_dir().join(format!("openraid-bench-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let dirty = Deeds { mib: 64, region_mib: 64, journal_mib: 512, fills: false };
    measure_restart(&folder, dirty, "killed with 64 MiB dirty", Duration::from_secs(2));
    let full = Deeds { mib: 0, region_mib: 16, journal_mib: 256, fills: true };
    measure_restart(&folder, full, "killed with a full journal of 256 MiB", Duration::from_secs(5));
    for in_memory in [false, true] {
        measure_log(&folder, in_memory);
        measure(&folder, MdLevel::Raid5, 4, in_memory);
        measure(&folder, MdLevel::Raid6, 6, in_memory);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
