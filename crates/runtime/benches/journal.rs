//! What a journal costs and gains: 4 KiB random writes on RAID 5 and RAID 6, written through, written through with FUA (the
//! same promise), with the journal on the disk of the members and with one in memory; writes with a partial parity log and without;
//! the time until a server that was killed serves again, and until the members have what the log has for them. All ways in
//! one run, in turns, medians.
//!
//! Members are files in the folder for temporary files, and memory. A number of threads write one block each at a time, as
//! hosts at that depth do. `OPENRAID_BENCH_SECONDS` (2) and `OPENRAID_BENCH_ROUNDS` (4) set the length;
//! `OPENRAID_BENCH_OVERWRITES` (8) is for how many seconds blocks are overwritten before a kill, and with
//! `OPENRAID_BENCH_RESTART_ONLY` there is nothing but the kills. The server that is killed is this program again, with other
//! arguments.

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
    let request =
        JournalRequest { devices, controller: CONTROLLER, alone: false, last_uses: Vec::new(), seen: Vec::new(), open };
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
    // Dirty data goes to the members first.
    let session = || handle.status().expect("it runs").arrays.swap_remove(0).status.session;
    while write_cache == WriteCache::Through && session() != Session::Off {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The folder for files in memory, if the system has one.
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
        let members = members(folder, &format!("{name}-{number}"), count, in_memory);
        let array = new_array(&service, level, members, false);
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
        figures.get(3).map_or_else(String::new, |fastest| format!(
            ", journal in memory {fastest:7.0}/s (x{:.2}, x{:.2})",
            fastest / figures[0],
            fastest / figures[1]
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
            let members = members(folder, &format!("ppl-{ppl}-{in_memory}"), 4, in_memory);
            let array = new_array(&service, MdLevel::Raid5, members, ppl);
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
/// The cache of a server by default.
const USUAL_CACHE_MIB: u64 = 64;

fn killed_limits(load: Load) -> Limits {
    if load == Load::Overwrites {
        return limits(USUAL_CACHE_MIB);
    }
    // Nothing is written back by age, so that it is all in the journal when the server is killed.
    let marks = Limits { destage_delay: Nanos::from_secs(3600), dirty_high_percent: 80, ..limits(KILLED_CACHE_MIB) };
    Limits { dirty_low_percent: 80, ..marks }
}

/// The writes until the server is killed, and their target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Load {
    /// A number of blocks, which stay in the cache.
    Once,
    /// Blocks to members as slow as disks, until the ring is full.
    Fills,
    /// Blocks anywhere for some seconds, with destage at work all the time, as in everyday use.
    Overwrites,
}

impl Load {
    const ALL: [Self; 3] = [Self::Once, Self::Fills, Self::Overwrites];

    fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|load| format!("{load:?}") == name).expect("it was named by this program")
    }
}

/// What a server does before it is killed.
#[derive(Clone, Copy)]
struct Actions {
    /// It writes `mib` MiB, 4 KiB in each 16 KiB, over and over into a region of `region_mib` MiB.
    mib: u64,
    region_mib: u64,
    /// MiB of the journal's file.
    journal_mib: u64,
    load: Load,
    /// Its members are as slow as disks without a cache.
    slow: bool,
}

/// The content of a block: one of 251, by its place.
fn content_of(place: u64) -> [u8; BLOCK_BYTES] {
    [u8::try_from(place % 251).expect("a byte"); BLOCK_BYTES]
}

/// The server that will be killed: it writes, says so, and waits.
fn be_killed(folder: &Path, actions: Actions) {
    // Without touching memory before it is used, as the program starts.
    let config = ServiceConfig { limits: killed_limits(actions.load), ..ServiceConfig::default() };
    let service = Service::start(config).expect("a service");
    attach(&service, folder.join("journal").to_str().expect("UTF-8"));
    let array = new_array(&service, MdLevel::Raid5, killed_members(folder, actions), false);
    let handle = service.handle();
    set_policy(&handle, array, WriteCache::Journal);
    let (blocks, region) = ((actions.mib << 20) / BLOCK, (actions.region_mib << 20) / BLOCK);
    let blocks = if actions.load == Load::Once { blocks } else { u64::MAX };
    let anywhere = actions.load == Load::Overwrites;
    let writers: Vec<_> = (0..DEPTH)
        .map(|thread| {
            let handle = handle.clone();
            std::thread::spawn(move || {
                let mut state = (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                for block in (thread..blocks).step_by(usize::try_from(DEPTH).expect("few")) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    let place = if anywhere { state % region } else { block % region };
                    handle.write(array, place * 4 * BLOCK, &content_of(place), false).expect("it is promised");
                }
            })
        })
        .collect();
    match actions.load {
        Load::Once => writers.into_iter().for_each(|writer| writer.join().expect("it writes")),
        Load::Fills => wait_until_full(&handle),
        Load::Overwrites => std::thread::sleep(Duration::from_secs(from_environment("OPENRAID_BENCH_OVERWRITES", 8))),
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

fn killed_members(folder: &Path, actions: Actions) -> Vec<String> {
    let pace = if actions.slow { "model:wd740gd,cache=off,size=512M,file=" } else { "" };
    (0..4).map(|n| format!("{pace}{}", folder.join(format!("killed-{n}")).to_str().expect("UTF-8"))).collect()
}

/// Start the program again as a server, and kill it when it has written.
fn kill_one(folder: &Path, actions: Actions) {
    let Actions { mib, region_mib, load, slow, .. } = actions;
    let program = std::env::current_exe().expect("it has a name");
    let folder = folder.to_str().expect("UTF-8");
    let (load, slow) = (format!("{load:?}"), slow.to_string());
    let mut child = Command::new(program)
        .args(["be-killed", folder, &mib.to_string(), &region_mib.to_string(), &load, &slow])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it says something");
    assert_eq!(line.trim(), "written");
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
}

/// Measure the time until a killed server returns the data that it acknowledged. True if the time is above the limit.
fn measure_restart(folder: &Path, actions: Actions, what: &str, limit: Duration) -> bool {
    let folder = folder.join(format!("killed-{:?}-{}", actions.load, actions.slow));
    std::fs::create_dir_all(&folder).expect("a folder");
    made_journal(&folder, "journal", actions.journal_mib);
    for n in 0..4 {
        let file = File::create(folder.join(format!("killed-{n}"))).expect("room");
        file.set_len(512 << 20).expect("room");
    }
    kill_one(&folder, actions);
    let begin = Instant::now();
    let service = started(killed_limits(actions.load));
    attach(&service, folder.join("journal").to_str().expect("UTF-8"));
    let found = begin.elapsed();
    let handle = service.handle();
    let journal = || handle.status().expect("it runs").journal.expect("attached");
    let (used, ring) = (journal().used.bytes().get() >> 20, journal().ring.bytes().get() >> 20);
    let member = |name: &String| {
        let spec = name.parse().expect("a name");
        open_and_probe(&spec, OpenOptions::new(Use::Exclusive)).expect("it is there")
    };
    let members = killed_members(&folder, actions);
    let request = AssembleRequest { options: AssembleOptions::default(), nesting: Nesting::Follow };
    let taken = handle.assemble(members.iter().map(member).collect(), request).expect("it starts");
    let array = taken.arrays.first().unwrap_or_else(|| panic!("{:?}", taken.failed)).array;
    let mut bytes = [0; BLOCK_BYTES];
    handle.read(array, 4 * BLOCK, &mut bytes).expect("it reads");
    let served = begin.elapsed();
    let pending = journal().pending_redos;
    // Unwritten blocks are still zero.
    assert!(
        bytes == content_of(1) || (actions.load == Load::Overwrites && bytes == [0; BLOCK_BYTES]),
        "{:?}",
        bytes[0]
    );
    while journal().pending_redos > 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let done = begin.elapsed();
    println!(
        "{what}: {used} of {ring} MiB of the ring read in {:.2} s, served after {:.2} s (limit {:.0} s) {}; {} MiB loaded; of \
         {} redos {pending} were left then, none after {:.2} s",
        found.as_secs_f64(),
        served.as_secs_f64(),
        limit.as_secs_f64(),
        if served > limit { "SHORT" } else { "ok" },
        (journal().counters.replayed_sectors << 9) >> 20,
        journal().counters.replayed_redos,
        done.as_secs_f64(),
    );
    service.stop();
    served > limit
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, what, folder, mib, region, load, slow] = &arguments[..] {
        if what == "be-killed" {
            let number = |text: &String| text.parse().expect("a number");
            let (load, slow) = (Load::named(load), slow == "true");
            let actions = Actions { mib: number(mib), region_mib: number(region), journal_mib: 0, load, slow };
            return be_killed(Path::new(folder), actions);
        }
    }
    let folder = std::env::temp_dir().join(format!("openraid-bench-journal-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // Acknowledged data is served within two seconds if little must be read, and within five seconds if much must be
    // read.
    let (soon, whole) = (Duration::from_secs(2), Duration::from_secs(5));
    let dirty = Actions { mib: 64, region_mib: 64, journal_mib: 512, load: Load::Once, slow: false };
    let mut short = u32::from(measure_restart(&folder, dirty, "killed with 64 MiB dirty", soon));
    let full = Actions { mib: 0, region_mib: 16, journal_mib: 256, load: Load::Fills, slow: true };
    short += u32::from(measure_restart(&folder, full, "killed with a full journal of 256 MiB", whole));
    for slow in [false, true] {
        let actions = Actions { mib: 0, region_mib: 352, journal_mib: 256, load: Load::Overwrites, slow };
        let on = if slow { "disks without a cache" } else { "files" };
        let what = format!("killed after random overwrites of members in {on}, destage at work");
        short += u32::from(measure_restart(&folder, actions, &what, soon));
    }
    if short > 0 {
        println!("{short} figures short of their goals");
    }
    if from_environment("OPENRAID_BENCH_RESTART_ONLY", 0) > 0 {
        let _ = std::fs::remove_dir_all(&folder);
        return;
    }
    for in_memory in [false, true] {
        measure_log(&folder, in_memory);
        measure(&folder, MdLevel::Raid5, 4, in_memory);
        measure(&folder, MdLevel::Raid6, 6, in_memory);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
