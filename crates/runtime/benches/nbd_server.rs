//! Arrays on memory, served over a unix socket, are compared with `nbdkit memory` in one run: server CPU per I/O first
//! (it repeats on a noisy machine), then I/O per second and the latency at depth 1, each as a ratio with its goal.
//!
//! The load is fio's NBD engine. Servers run in processes of their own and are measured in turns; a figure is the
//! median of its rounds. `OPENRAID_BENCH_SECONDS` (2) and `OPENRAID_BENCH_ROUNDS` (5) set the length. With the
//! arguments `serve LEVEL COUNT SOCKET` this program is the server.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use openraid_core::limits::Limits;
use openraid_format::{MdLevel, MinorVersion, SetName};
use openraid_runtime::member::{open, OpenOptions};
use openraid_runtime::service::{CreateRequest, ExportRequest, Listen};
use openraid_runtime::{Service, ServiceConfig};
use openraid_sys::Use;
use openraid_units::{Nanos, Sectors};

/// Bytes of an export that the load uses: far above the caches, quickly touched.
const LOAD_MIB: u64 = 192;
/// Ticks of a process's CPU times a second, on every Linux that matters.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, level, count, socket] = &arguments[..] {
        if verb == "serve" {
            return serve(level.parse().expect("a level"), count.parse().expect("a count"), socket);
        }
    }
    for (program, package) in [("nbdkit", "nbdkit"), ("fio", "fio")] {
        if Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            println!("nbd_server: {program} is missing; install the Debian package {package}");
            return;
        }
    }
    measure();
}

/// Be the server until the standard input ends.
fn serve(level: i32, count: u64, socket: &str) {
    let limits = Limits { drives_max: 32, clean_delay: Nanos::from_secs(3600), ..Limits::default() };
    let listen = vec![Listen::Unix(socket.into())];
    let config = ServiceConfig { limits, listen, touch: true, ..ServiceConfig::default() };
    let service = Service::start(config).expect("a service");
    let redundant = if level == 1 { count - 1 } else { 0 } + u64::from(level == 5) + 2 * u64::from(level == 6);
    let size = (LOAD_MIB + 64) / (count - redundant).max(1) + 16;
    let member = || open(&format!("ram:{size}M").parse().expect("a name"), OpenOptions::new(Use::Exclusive));
    let request = CreateRequest {
        name: SetName::new(None, "bench").expect("a short name"),
        level: MdLevel::from_number(level).expect("a level of md"),
        layout: if level >= 5 { 2 } else { 0 },
        chunk: Sectors::kib(64),
        minor: MinorVersion::V1_2,
        slots: (0..count).map(|_| Some(member().expect("memory"))).collect(),
        spares: Vec::new(),
        size: None,
        assume_clean: true,
        bitmap: false,
        ppl: false,
    };
    let array = service.handle().create(request).expect("an array").array;
    let export = ExportRequest::named(array, "disk");
    service.handle().export(&export).expect("an export");
    let _ = std::io::stdin().read(&mut [0]);
}

struct Server {
    name: String,
    child: Child,
    uri: String,
}

impl Server {
    fn start(name: &str, folder: &Path, program: &Path, arguments: &[&str], export: &str) -> Self {
        let socket = folder.join(name.replace(' ', "-"));
        let arguments = arguments.iter().map(|a| if *a == "SOCKET" { socket.as_os_str() } else { a.as_ref() });
        let child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn().expect("a server");
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
        Self { name: name.into(), child, uri }
    }

    /// CPU seconds that the server has used.
    fn cpu(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the server lives");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = |at: usize| fields[at].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / TICKS_PER_SECOND
    }

    fn load(&self, load: &Load, seconds: u64) -> Sample {
        let before = self.cpu();
        let iops = fio(&self.uri, load, seconds);
        let cpu = self.cpu() - before;
        Sample { iops, cpu_us: cpu * 1e6 / (iops * seconds as f64) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    rw: &'static str,
    block: &'static str,
    depth: u32,
}

#[derive(Clone, Copy)]
struct Sample {
    iops: f64,
    cpu_us: f64,
}

/// Run fio and return its I/Os per second, both ways together.
fn fio(uri: &str, load: &Load, seconds: u64) -> f64 {
    let arguments = [
        "--name=load".into(),
        "--ioengine=nbd".into(),
        format!("--uri={uri}"),
        format!("--rw={}", load.rw),
        format!("--bs={}", load.block),
        format!("--iodepth={}", load.depth),
        format!("--size={LOAD_MIB}M"),
        "--randrepeat=0".into(),
        "--norandommap".into(),
        "--time_based".into(),
        format!("--runtime={seconds}"),
        "--output-format=terse".into(),
        "--terse-version=3".into(),
    ];
    let output = Command::new("fio").args(&arguments).stderr(Stdio::null()).output().expect("fio runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.starts_with("3;")).unwrap_or_else(|| panic!("fio said: {text}"));
    let fields: Vec<&str> = line.split(';').collect();
    let iops = |at: usize| fields[at].parse::<f64>().expect("a number");
    iops(7) + iops(48)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

const READ_1: Load = Load { name: "4 KiB random read, depth 1", rw: "randread", block: "4k", depth: 1 };
const READ_64: Load = Load { name: "4 KiB random read, depth 64", rw: "randread", block: "4k", depth: 64 };
const WRITE_64: Load = Load { name: "4 KiB random write, depth 64", rw: "randwrite", block: "4k", depth: 64 };
const READ_1M: Load = Load { name: "1 MiB sequential read, depth 4", rw: "read", block: "1m", depth: 4 };
const WRITE_1M: Load = Load { name: "1 MiB sequential write, depth 4", rw: "write", block: "1m", depth: 4 };

/// A load, the arrays that meet it (indices), and the goals: CPU at most, I/O per second at least, latency at most.
type Case = (Load, &'static [usize], Option<f64>, Option<f64>, Option<f64>);

fn measure() {
    let folder: PathBuf = std::env::temp_dir().join(format!("openraid-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let size = format!("{}M", LOAD_MIB + 64);
    let peer_arguments = ["-f", "-U", "SOCKET", "memory", &size];
    let peer = Server::start("nbdkit memory", &folder, Path::new("nbdkit"), &peer_arguments, "");
    let array = |name, level, count| Server::start(name, &folder, &program, &["serve", level, count, "SOCKET"], "disk");
    let arrays = [
        array("raid0 x4", "0", "4"),
        array("raid1 x2", "1", "2"),
        array("raid5 x4", "5", "4"),
        array("raid6 x6", "6", "6"),
    ];
    for server in arrays.iter().chain([&peer]) {
        // Memory is slow at its first touch.
        server.load(&Load { name: "fill", rw: "write", block: "1m", depth: 4 }, 1);
    }
    let cases: [Case; 6] = [
        (READ_64, &[0, 1], Some(0.6), Some(1.3), None),
        (WRITE_64, &[0, 1], Some(0.6), Some(1.3), None),
        (WRITE_64, &[2], Some(1.0), None, None),
        (WRITE_64, &[3], Some(1.3), None, None),
        (READ_1, &[0, 1], None, None, Some(0.6)),
        (READ_1M, &[0, 1, 2], None, Some(0.9), None),
    ];
    let last: Case = (WRITE_1M, &[0, 1, 2], None, Some(0.9), None);
    for case in cases.iter().chain([&last]) {
        run_case(case, &peer, &arrays);
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn run_case((load, which, cpu_goal, iops_goal, latency_goal): &Case, peer: &Server, arrays: &[Server]) {
    let (seconds, rounds) =
        (from_environment("OPENRAID_BENCH_SECONDS", 2), from_environment("OPENRAID_BENCH_ROUNDS", 5));
    let servers: Vec<&Server> = std::iter::once(peer).chain(which.iter().map(|nth| &arrays[*nth])).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
    for _ in 0..rounds {
        for (server, samples) in servers.iter().zip(&mut samples) {
            samples.push(server.load(load, seconds));
        }
    }
    let figures: Vec<Sample> = samples
        .iter()
        .map(|samples| Sample {
            iops: median(samples.iter().map(|s| s.iops).collect()),
            cpu_us: median(samples.iter().map(|s| s.cpu_us).collect()),
        })
        .collect();
    println!("{}", load.name);
    let base = figures[0];
    for (server, figure) in servers.iter().zip(&figures) {
        let goal = |goal: &Option<f64>, sign| goal.map_or(String::new(), |goal| format!(" ({sign} {goal})"));
        println!(
            "  {:14} CPU {:6.2} us/IO  x{:.2}{:9}  {:7.0} IO/s  x{:.2}{:9}  latency x{:.2}{}",
            server.name,
            figure.cpu_us,
            figure.cpu_us / base.cpu_us,
            goal(cpu_goal, "<="),
            figure.iops,
            figure.iops / base.iops,
            goal(iops_goal, ">="),
            base.iops / figure.iops,
            goal(latency_goal, "<=")
        );
    }
}
