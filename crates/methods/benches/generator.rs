//! The cost of the generator: CPU time for each request, on a target that does nothing and on a file in memory, next to
//! fio on the same, if fio is installed. `cargo bench -p openraid-methods --bench generator`.

use openraid_methods::load::{one_size, ClosedLoop, LoopOptions, Mixed, Stop, Zone};
use openraid_methods::metrics::Recorder;
use openraid_methods::target::{BlockTarget, NullTarget, RealOptions, Target};
use openraid_sys::clock;
use openraid_units::{Bytes, Instant, Nanos};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the target.
const SIZE: u64 = 256 << 20;
/// Requests of one measurement.
const REQUESTS: u64 = 2_000_000;
/// Both in turn this many times on the file, as a noisy machine gives other figures each time.
const ROUNDS: u32 = 3;
/// Outstanding ones.
const DEPTH: u32 = 32;

/// CPU nanoseconds and requests per second of wall time.
struct Cost {
    cpu_ns: f64,
    rate: f64,
}

fn ours(target: &mut dyn Target, requests: u64) -> Cost {
    let zone = Zone { start: 0, len: SIZE };
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 1, zone, 1, 1);
    let mut closed = ClosedLoop::new(LoopOptions { workers: 1, depth: DEPTH, jitter: Nanos::ZERO, seed: 1 });
    let mut recorder = Recorder::new(1);
    let (cpu, wall) = (clock::process_cpu(), clock::now());
    let stop = Stop { requests, at: Instant::NEVER };
    closed.run(target, &mut source, stop, Some(&mut recorder)).expect("it does not go away");
    let (cpu, wall) = (clock::process_cpu().get() - cpu.get(), clock::now().since(wall).get());
    closed.drain(target, None).expect("it does not go away");
    let done = recorder.requests() as f64;
    Cost { cpu_ns: cpu as f64 / done, rate: done * 1e9 / wall as f64 }
}

/// CPU nanoseconds of all children that have ended, the kernel's threads that worked for them included: fio's own
/// figures leave those out, ours do not. From `/proc/self/stat` (`cutime` and `cstime`, in ticks of 10 ms).
fn children_cpu() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let words: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = words.get(13)?.parse::<f64>().ok()? + words.get(14)?.parse::<f64>().ok()?;
    Some(ticks * 1e7)
}

/// One run of fio: its CPU nanoseconds, and requests per second.
fn fio_run(engine: &str, file: &Path, requests: u64) -> Option<(f64, f64)> {
    let arguments = [
        "--name=x".to_owned(),
        format!("--ioengine={engine}"),
        format!("--filename={}", file.display()),
        format!("--size={SIZE}"),
        format!("--io_size={}", requests * 4096),
        "--rw=randread".into(),
        "--bs=4k".into(),
        format!("--iodepth={DEPTH}"),
        "--norandommap".into(),
        "--random_generator=tausworthe64".into(),
        "--output-format=json".into(),
    ];
    // What our generator asks the kernel for, too.
    let same = ["--direct=1", "--registerfiles=1", "--fixedbufs=1"];
    let before = children_cpu()?;
    let mut command = Command::new("fio");
    command.args(arguments);
    if engine == "io_uring" {
        command.args(same);
    }
    let output = command.output().ok()?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let rate = json["jobs"][0]["read"]["iops"].as_f64()?;
    let done = json["jobs"][0]["read"]["total_ios"].as_u64()?;
    assert_eq!(done, requests, "fio did something else");
    Some((children_cpu()? - before, rate))
}

/// fio with the same load, its start taken off; nothing if it is not at hand or refuses.
fn fio(engine: &str, file: &Path, requests: u64) -> Option<Cost> {
    let (start, _) = fio_run(engine, file, 1)?;
    let (cpu, rate) = fio_run(engine, file, requests)?;
    Some(Cost { cpu_ns: (cpu - start) / requests as f64, rate })
}

fn print(what: &str, ours: &Cost, fio: Option<&Cost>) {
    println!("{what}: openraid {:.0} ns of CPU a request, {:.0} requests/s", ours.cpu_ns, ours.rate);
    match fio {
        Some(fio) => println!(
            "{what}: fio      {:.0} ns of CPU a request, {:.0} requests/s; ours takes {:.0} % of its CPU; \
             at most fio's: {}",
            fio.cpu_ns,
            fio.rate,
            ours.cpu_ns / fio.cpu_ns * 100.0,
            if ours.cpu_ns <= fio.cpu_ns { "yes" } else { "NO" }
        ),
        None => println!("{what}: fio is not at hand"),
    }
}

fn main() {
    let mut null = NullTarget::new(Bytes(SIZE));
    let null_file = Path::new("/dev/null");
    let cost = ours(&mut null, REQUESTS * 5);
    print("null target", &cost, fio("null", null_file, REQUESTS * 5).as_ref());
    let shm = Path::new("/dev/shm");
    let folder: PathBuf = if shm.is_dir() { shm.into() } else { std::env::temp_dir() };
    let path = folder.join(format!("openraid-generator-{}", std::process::id()));
    let bytes = vec![0x5a; usize::try_from(SIZE).expect("fits in memory")];
    std::fs::write(&path, bytes).expect("there is room in memory");
    let options = RealOptions { outstanding: DEPTH, bytes_max: 4096, destroy: None, seed: 1 };
    for round in 1..=ROUNDS {
        let cost = {
            let mut target = BlockTarget::open(&path, &options).expect("the file was just made");
            if round == 1 {
                for line in &target.facts().bed {
                    println!("  {line}");
                }
            }
            ours(&mut target, REQUESTS)
        };
        print("file in memory", &cost, fio("io_uring", &path, REQUESTS).as_ref());
    }
    let _ = std::fs::remove_file(&path);
}
