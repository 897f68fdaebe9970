//! What the generator costs: CPU time for each request on a target that does nothing and on a file in memory, beside
//! fio on the same, if fio is at hand. `cargo bench -p openraid-lab --bench generator`.

use openraid_lab::load::{one_size, ClosedLoop, LoopOptions, Mixed, Stop, Zone};
use openraid_lab::metrics::Recorder;
use openraid_lab::target::{BlockTarget, NullTarget, RealOptions, Target};
use openraid_sys::clock;
use openraid_units::{Bytes, Instant, Nanos};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Size of the target.
const SIZE: u64 = 256 << 20;
/// Requests of one measurement.
const REQUESTS: u64 = 2_000_000;
/// Outstanding ones.
const DEPTH: u32 = 32;

/// CPU nanoseconds and requests per second of wall time.
struct Cost {
    cpu_ns: f64,
    rate: f64,
}

fn ours(target: &mut dyn Target, requests: u64) -> Cost {
    let zone = Zone { start: 0, len: SIZE };
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 1, zone, false, 1);
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

/// fio with the same load; nothing where it is not at hand or refuses.
fn fio(engine: &str, file: &Path, requests: u64) -> Option<Cost> {
    let arguments = [
        "--name=x".to_owned(),
        format!("--ioengine={engine}"),
        format!("--filename={}", file.display()),
        format!("--size={SIZE}"),
        "--rw=randread".into(),
        "--bs=4k".into(),
        format!("--iodepth={DEPTH}"),
        "--norandommap".into(),
        "--random_generator=tausworthe64".into(),
        "--time_based".into(),
        "--runtime=30".into(),
        format!("--number_ios={requests}"),
        "--output-format=json".into(),
    ];
    let output = Command::new("fio").args(arguments).output().ok()?;
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let job = &json["jobs"][0];
    let (user, system) = (job["usr_cpu"].as_f64()?, job["sys_cpu"].as_f64()?);
    let (runtime_ms, done) = (job["read"]["runtime"].as_f64()?, job["read"]["total_ios"].as_f64()?);
    let cpu_ns = (user + system) / 100.0 * runtime_ms * 1e6 / done;
    Some(Cost { cpu_ns, rate: done * 1e3 / runtime_ms })
}

fn print(what: &str, ours: &Cost, fio: Option<&Cost>) {
    println!("{what}: openraid {:.0} ns of CPU a request, {:.0} requests/s", ours.cpu_ns, ours.rate);
    match fio {
        Some(fio) => println!(
            "{what}: fio      {:.0} ns of CPU a request, {:.0} requests/s; ours takes {:.0} % of its CPU",
            fio.cpu_ns,
            fio.rate,
            ours.cpu_ns / fio.cpu_ns * 100.0
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
    let cost = {
        let mut target = BlockTarget::open(&path, &options).expect("the file was just made");
        for line in &target.facts().bed {
            println!("  {line}");
        }
        ours(&mut target, REQUESTS)
    };
    print("file in memory", &cost, fio("io_uring", &path, REQUESTS).as_ref());
    let _ = std::fs::remove_file(&path);
}
