//! Figures of the service under load, and kills without number: soaks that print what they measured.
//!
//! `cargo test --release -p openraid --test in_service -- --ignored --test-threads 1`

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use openraid_format::crc32c;
use serde_json::json;
use support::load::Load;
use support::web::{read, Answer, Web};
use support::{Lab, Server};

/// Say it although a test's output is captured.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// An array of 128 MiB, served with HTTP, and a client that has signed in.
fn serve(name: &str) -> (Lab, Server, Web) {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 64M d0 d1 d2").expect(0);
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Administrator").expect(0).text().trim().into());
    (lab, server, web)
}

/// A connection that is used again for each request, as browsers and exporters do.
struct KeptConnection {
    reader: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl KeptConnection {
    fn to(web: &Web) -> Self {
        let token = web.token.clone().expect("signed in");
        Self { reader: BufReader::new(web.connect()), host: web.host.clone(), token }
    }

    fn get(&mut self, path: &str) -> Answer {
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n", self.host, self.token);
        self.reader.get_mut().write_all(head.as_bytes()).expect("sent");
        read(&mut self.reader).expect(200)
    }
}

/// Work on threads until it is dropped.
struct BackgroundWork {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BackgroundWork {
    fn none() -> Self {
        Self { ends: Arc::default(), threads: Vec::new() }
    }

    /// Do this again and again, with a rest each time.
    fn each(mut self, rest: Duration, mut work: impl FnMut() + Send + 'static) -> Self {
        let ends = Arc::clone(&self.ends);
        self.threads.push(thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                work();
                thread::sleep(rest);
            }
        }));
        self
    }
}

impl Drop for BackgroundWork {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("it went well"));
    }
}

/// A page of the console that is open.
fn console(web: &Web) -> TcpStream {
    let mut stream = web.connect();
    let token = web.token.as_deref().expect("signed in");
    let head = format!("GET /api/v1/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n", web.host);
    stream.write_all(head.as_bytes()).expect("sent");
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a socket");
    stream
}

/// Milliseconds below which this share of the times is.
fn below(times: &[Duration], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len() - 1);
    sorted[at].as_secs_f64() * 1e3
}

/// CPU time of the threads of a process by name, in ticks.
fn ticks(pid: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let (head, rest) = stat.rsplit_once(')').expect("a name");
        let words: Vec<&str> = rest.split_whitespace().collect();
        let of = |nth: usize| words[nth].parse::<u64>().expect("a number");
        *sums.entry(head.split_once('(').expect("a name").1.to_owned()).or_default() += of(11) + of(12);
    }
    sums
}

/// Resident memory of a process, kB.
fn resident(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
#[ignore = "a minute of figures"]
fn ten_arrays_at_rest() {
    let lab = Lab::new("rest");
    let names: Vec<String> = (0..10).map(|nth| format!("a{nth}")).collect();
    for name in &names {
        let members = [0, 1, 2, 3].map(|nth| format!("{name}d{nth}")).join(" ");
        lab.line(&format!("create {name} --level 5 --file-size 64M {members}")).expect(0);
    }
    let mut arguments: Vec<&str> = names.iter().map(String::as_str).collect();
    arguments.extend(["--http", "127.0.0.1:0"]);
    let server = lab.serve(&arguments);
    for name in &names {
        lab.line(&format!("show {name} --wait 60")).expect(0);
    }
    thread::sleep(Duration::from_secs(5));
    let all = || ticks(&server.pid()).values().sum::<u64>();
    let before = all();
    thread::sleep(Duration::from_secs(30));
    // The kernel counts 100 ticks a second.
    let (spent, memory) = (all() - before, resident(&server.pid()));
    tell(&format!(
        "ten arrays at rest: {:.2} % of a core, goal 1; {:.0} MB, goal 100",
        spent as f64 / 30.0,
        memory as f64 / 1e3
    ));
    assert!(spent < 30 && memory < 100_000, "{spent} ticks, {memory} kB");
    server.stop();
}

#[test]
#[ignore = "two minutes of figures"]
fn answers_of_the_api_under_full_load_and_what_management_costs_the_load() {
    let (lab, server, web) = serve("figures");
    let load = Load::start(&lab.path("nbd.sock"), "data", 64 << 20);
    let paths = [
        "/api/v1/arrays",
        "/api/v1/arrays/data",
        "/api/v1/arrays/data/limit",
        "/api/v1/drives",
        "/api/v1/alarms",
        "/api/v1/events?limit=100",
        "/api/v1/settings",
        "/metrics",
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/data",
        "/",
    ];
    let mut client = KeptConnection::to(&web);
    let mut times: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    for nth in 0..2000 {
        let path = paths[nth % paths.len()];
        let at = Instant::now();
        client.get(path);
        times.entry(path).or_default().push(at.elapsed());
        thread::sleep(Duration::from_millis(15));
    }
    for (path, times) in &times {
        tell(&format!("{path}: median {:.2} ms, p99 {:.2} ms", below(times, 0.5), below(times, 0.99)));
    }
    let all: Vec<Duration> = times.into_values().flatten().collect();
    tell(&format!(
        "API under load, {} requests: median {:.2} ms, p99 {:.2} ms, goal 20 ms, worst {:.2} ms",
        all.len(),
        below(&all, 0.5),
        below(&all, 0.99),
        below(&all, 1.0)
    ));
    // An open page, an exporter that asks each second, and a script that asks ten times a second.
    let before = ticks(&server.pid());
    let ratio = load.ratio(60, || {
        let (mut page, mut exporter, mut script) = (console(&web), KeptConnection::to(&web), KeptConnection::to(&web));
        BackgroundWork::none()
            .each(Duration::from_millis(1), move || drop(page.read(&mut [0; 65536])))
            .each(Duration::from_millis(1000), move || drop(exporter.get("/metrics")))
            .each(Duration::from_millis(100), move || drop(script.get("/api/v1/arrays/data")))
    });
    tell(&format!(
        "load next to management / load alone: {:.4} (quartiles {:.4} and {:.4}), goal 0.98",
        ratio[1], ratio[0], ratio[2]
    ));
    let after = ticks(&server.pid());
    tell(&format!(
        "CPU ticks by thread meanwhile: {:?}",
        after.iter().map(|(name, all)| (name, all.saturating_sub(*before.get(name).unwrap_or(&0)))).collect::<Vec<_>>()
    ));
    load.stop();
    server.stop();
}

/// A client that harms.
fn hostile(web: &Web, nth: usize) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(&web.host).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(200))).ok()?;
    let token = web.token.as_deref().expect("signed in");
    let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n", web.host);
    let text = match nth % 5 {
        // A head that never ends; a body that never comes; a stream that is not read; too large a head; no HTTP.
        0 => head("GET /api/v1/arrays"),
        1 => {
            head("PATCH /api/v1/arrays/data/settings")
                + "Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{"
        }
        2 => head("GET /api/v1/stream?after=0") + "\r\n",
        3 => head("GET /") + &format!("X: {}\r\n\r\n", "x".repeat(60_000)),
        _ => "\u{16}\u{3}\u{1}".repeat(3000),
    };
    let _ = stream.write_all(text.as_bytes());
    Some(stream)
}

#[test]
#[ignore = "a minute and a half of figures"]
fn a_hundred_slow_or_hostile_clients_next_to_a_load() {
    let (lab, server, web) = serve("hostile");
    let load = Load::start(&lab.path("nbd.sock"), "data", 64 << 20);
    let ratio = load.ratio(40, || {
        let clients: Vec<Option<TcpStream>> = (0..100).map(|nth| hostile(&web, nth)).collect();
        let clients = Mutex::new(clients);
        let (web, turn) = (web.clone(), Mutex::new(0));
        // Each of them sends one byte more in a second; one that was cut off comes again.
        BackgroundWork::none().each(Duration::from_millis(10), move || {
            let mut turn = turn.lock().expect("one thread");
            let mut clients = clients.lock().expect("one thread");
            let nth = *turn % clients.len();
            let is_cut = clients[nth].as_mut().is_none_or(|stream| stream.write_all(b"x").is_err());
            if is_cut {
                clients[nth] = hostile(&web, nth);
            }
            *turn += 1;
        })
    });
    tell(&format!(
        "load next to 100 hostile clients / load alone: {:.4} (quartiles {:.4} and {:.4})",
        ratio[1], ratio[0], ratio[2]
    ));
    load.stop();
    // They have gone, and a friendly client is answered again.
    let until = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(&web.host).is_err() || !answers(&web) {
        assert!(Instant::now() < until, "no room comes back");
        thread::sleep(Duration::from_millis(500));
    }
    server.stop();
}

fn answers(web: &Web) -> bool {
    let Ok(mut stream) = TcpStream::connect(&web.host) else { return false };
    let head = format!("GET /api/v1/openapi.json HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", web.host);
    let mut first = [0; 12];
    stream.write_all(head.as_bytes()).is_ok() && stream.read_exact(&mut first).is_ok() && first.ends_with(b"200")
}

/// A log of `count` events, as servers write it.
fn write_log(lab: &Lab, count: u64) {
    const SEGMENT: usize = 256 << 10;
    let folder = lab.path("state/openraid/registry.json.events");
    fs::create_dir_all(&folder).expect("room");
    let (mut bytes, mut first) = (Vec::new(), 1);
    let write = |first: u64, mut bytes: Vec<u8>| {
        bytes.resize(SEGMENT, 0);
        fs::write(folder.join(format!("events-{first:020}.log")), bytes).expect("room");
    };
    for number in 1..=count {
        let record = json!({"record": "event", "number": number, "level": (["info", "warning", "critical"][usize::try_from(number % 3).expect("small")]),
            "at_seconds": 1_764_000_000 + number, "event": "Changed", "array": "data", "span": null, "slot": null, "member": null,
            "text": format!("an administrator by HTTP: set rebuild.rate={number}M: done"), "acknowledged": false});
        let text = record.to_string();
        let line = format!("{:08x} {text}\n", crc32c(text.as_bytes()));
        if bytes.len() + line.len() > SEGMENT {
            write(first, std::mem::take(&mut bytes));
            first = number;
        }
        bytes.extend_from_slice(line.as_bytes());
    }
    write(first, bytes);
}

#[test]
#[ignore = "half a minute of figures"]
fn ten_thousand_events_are_browsed_page_by_page_next_to_a_load() {
    let lab = Lab::new("browsed");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 64M d0 d1 d2").expect(0);
    write_log(&lab, 10_000);
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role ReadOnly").expect(0).text().trim().into());
    let load = Load::start(&lab.path("nbd.sock"), "data", 64 << 20);
    for more in ["", "&level=critical&unacknowledged=true"] {
        let mut client = KeptConnection::to(&web);
        let (mut times, mut numbers) = (Vec::new(), Vec::new());
        let mut before = u64::MAX >> 1;
        loop {
            let at = Instant::now();
            let page = client.get(&format!("/api/v1/events?limit=100&before={before}{more}")).json();
            times.push(at.elapsed());
            let mut found: Vec<u64> = page["events"]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|event| event["number"].as_u64())
                .collect();
            before = *found.first().expect("a page");
            found.append(&mut numbers);
            numbers = found;
            if page["more"] == false {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(numbers.windows(2).all(|pair| pair[1] > pair[0]), "each event once, in order");
        assert!(numbers.len() >= if more.is_empty() { 10_000 } else { 3333 }, "{}", numbers.len());
        tell(&format!(
            "{} events{more} in {} pages under load: median {:.2} ms, worst page {:.2} ms",
            numbers.len(),
            times.len(),
            below(&times, 0.5),
            below(&times, 1.0)
        ));
    }
    let at = Instant::now();
    lab.line("events --json --last 100").expect(0);
    tell(&format!("openraid events --last 100: {:.0} ms", at.elapsed().as_secs_f64() * 1e3));
    load.stop();
    server.stop();
}

/// Every file of the console, and what its first page asks for.
#[test]
#[ignore = "a figure"]
fn the_consoles_first_page_next_to_a_load() {
    let (lab, server, web) = serve("page");
    let load = Load::start(&lab.path("nbd.sock"), "data", 64 << 20);
    let mut times = Vec::new();
    for _ in 0..20 {
        let at = Instant::now();
        let mut client = KeptConnection::to(&web);
        let page = client.get("/").text();
        let mut wanted = vec!["console/style.css".to_owned(), "console/main.js".into()];
        let mut seen: Vec<String> = Vec::new();
        assert!(page.contains("main.js"), "{page}");
        while let Some(path) = wanted.pop() {
            if seen.contains(&path) {
                continue;
            }
            let text = client.get(&format!("/{path}")).text();
            let imports = text.split("from \"./").skip(1).filter_map(|rest| rest.split_once('"')).map(|(file, _)| file);
            wanted.extend(imports.map(|file| format!("console/{file}")));
            seen.push(path);
        }
        for path in ["/api/v1/session", "/api/v1/arrays", "/api/v1/events?limit=100", "/api/v1/alarms"] {
            client.get(path);
        }
        assert!(seen.len() > 8, "{seen:?}");
        times.push(at.elapsed());
        thread::sleep(Duration::from_millis(500));
    }
    tell(&format!("the console's files and first documents, one after the other, under load: median {:.0} ms, worst {:.0} ms, goal 1000 ms", below(&times, 0.5), below(&times, 1.0)));
    load.stop();
    server.stop();
}
