//! A folder with drives, and the built program at work in it.

#![allow(dead_code)] // every test file uses a part of this

pub mod client;
pub mod console;
pub mod guest;
pub mod journalled;
pub mod load;
pub mod prose;
pub mod readline;
pub mod rules;
pub mod web;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use client::Client;
use serde_json::Value;

/// The program under test: that of the package whose test this is. `openraid-lab` has all verbs of `openraid`.
pub const PROGRAM: &str = match (option_env!("CARGO_BIN_EXE_openraid"), option_env!("CARGO_BIN_EXE_openraid-lab")) {
    (Some(program), _) | (None, Some(program)) => program,
    (None, None) => panic!("the package has one of the two programs"),
};

/// A command that takes longer hangs.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(600);
/// Something that does not become true within this does not.
const PATIENCE: Duration = Duration::from_secs(240);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A folder for one test.
pub struct Lab {
    pub folder: PathBuf,
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Ran {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }
    /// The one JSON document on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.text(), self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
    /// It failed with this code, and says so in words that contain these.
    #[track_caller]
    pub fn refused(self, code: i32, words: &[&str]) -> Self {
        let ran = self.expect(code);
        for word in words {
            assert!(ran.err.contains(word), "{word:?} is not in: {}", ran.err);
        }
        ran
    }
}

impl Ran {
    /// Its standard output contains these.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.text().contains(word), "{word:?} is not in: {}", self.text());
        }
        self
    }
    /// It ended with this code, and says so on standard output in words that contain these.
    #[track_caller]
    pub fn refused_aloud(self, code: i32, words: &[&str]) -> Self {
        let ran = self.expect(code);
        for word in words {
            assert!(ran.text().contains(word), "{word:?} is not in: {}", ran.text());
        }
        ran
    }
}

impl Lab {
    pub fn new(name: &str) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("openraid-{name}-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder among the temporary files");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Empty drives of this many MiB.
    pub fn drives(&self, names: &[&str], mib: u64) {
        for name in names {
            File::create(self.path(name)).and_then(|file| file.set_len(mib << 20)).expect("a sparse file");
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(PROGRAM), arguments)
    }

    /// The same with a copy of the program, for an account that cannot enter the build folder.
    pub fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder);
        command.env("XDG_STATE_HOME", self.path("state")).env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        for name in ["OPENRAID_CONTROL", "OPENRAID_REGISTRY", "OPENRAID_CONFIG"] {
            command.env_remove(name);
        }
        command
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, Stdio::null())
    }

    /// With the words of a line as arguments.
    #[track_caller]
    pub fn line(&self, line: &str) -> Ran {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[track_caller]
    pub fn run_with(&self, arguments: &[&str], input: Stdio) -> Ran {
        let mut child = spawn(self.command(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
        let until = Instant::now() + COMMAND_TIME_MAX;
        let status = loop {
            if let Some(status) = child.try_wait().expect("the program can be waited for") {
                break status;
            }
            if Instant::now() > until {
                let _ = child.kill();
                panic!("openraid {arguments:?} hangs");
            }
            thread::sleep(Duration::from_millis(5));
        };
        let err = String::from_utf8_lossy(&err.join().expect("reader")).into_owned();
        Ran { code: status.code().unwrap_or(-1), out: out.join().expect("reader"), err }
    }

    /// With these bytes on standard input, through a pipe.
    #[track_caller]
    pub fn pipe(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let path = self.path("pipe-input");
        fs::write(&path, input).expect("room");
        let mut cat = Command::new("cat").arg(&path).stdout(Stdio::piped()).spawn().expect("cat");
        let ran = self.run_with(arguments, cat.stdout.take().expect("piped").into());
        let _ = cat.wait();
        ran
    }

    /// The content of each file, to see that nothing was written.
    pub fn fingerprints(&self, names: &[&str]) -> Vec<(String, Content)> {
        names.iter().map(|name| (name.to_string(), fingerprint(&self.path(name)))).collect()
    }

    /// Serve, and wait until it is ready.
    #[track_caller]
    pub fn serve(&self, arguments: &[&str]) -> Server {
        let socket = self.path("nbd.sock");
        let socket = socket.to_str().expect("UTF-8");
        let all = [&["serve", "--json", "--nbd-unix", socket], arguments].concat();
        Server::started(&mut self.command(&all)).unwrap_or_else(|line| panic!("not ready: {line:?}"))
    }

    /// Write a configuration file whose service listens on the socket of this lab; `@/` in the rest is the lab's folder.
    pub fn configure(&self, rest: &str) {
        let rest = rest.replace("@/", &format!("{}/", self.folder.display()));
        let text = format!("[server]\nnbd-unix = {:?}\n{rest}", self.path("nbd.sock"));
        fs::write(self.path("openraid.toml"), text).expect("room");
    }

    /// Serve as this file says, and wait until the server is ready.
    #[track_caller]
    pub fn serve_configured(&self) -> Server {
        Server::started(&mut self.command(&["serve", "--json", "--config", "openraid.toml"])).expect("ready")
    }

    /// Start a configured service whose console cannot start, and see that an alarm says why.
    #[track_caller]
    pub fn serve_without_console(&self, why: &[&str]) {
        let server = self.serve_configured();
        assert_eq!(server.ready["console"], Value::Null);
        self.wait_for_alarms(|text| {
            text.contains("the console does not run") && why.iter().all(|word| text.contains(word))
        });
        server.stop();
    }

    /// Wait until the texts of the open alarms are as wanted.
    #[track_caller]
    pub fn wait_for_alarms(&self, wanted: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let asked = Instant::now();
            let all = self.line("alarms --json").json()["alarms"].as_array().expect("a list").clone();
            let open = all.into_iter().filter(|alarm| alarm["until_seconds"].is_null());
            let text = open.map(|alarm| alarm["text"].to_string()).collect::<Vec<_>>().join("\n");
            if wanted(&text) {
                return;
            }
            rest(asked);
        }
        panic!("{}", self.line("alarms").text());
    }

    /// Wait until the texts of the logged events are as wanted.
    #[track_caller]
    pub fn wait_for_events(&self, wanted: impl Fn(&[String]) -> bool) {
        let mut texts = Vec::new();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let asked = Instant::now();
            let events = self.line("events --json").expect(0).json()["events"].as_array().expect("a list").clone();
            texts = events.iter().map(|event| format!("{}: {}", event["event"], event["text"])).collect();
            if wanted(&texts) {
                return;
            }
            rest(asked);
        }
        panic!("{texts:#?}");
    }

    /// The state of a served array.
    #[track_caller]
    pub fn show(&self, array: &str) -> Value {
        self.run(&["show", array, "--json"]).json()["array"].clone()
    }

    /// Wait until the array is as wanted.
    #[track_caller]
    pub fn wait_for(&self, array: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let asked = Instant::now();
            let state = self.show(array);
            if wanted(&state) {
                return state;
            }
            assert!(Instant::now() < until, "it does not come to that: {state:#}");
            rest(asked);
        }
    }
}

/// Rest between two questions for three times as long as the last one took: in a guest, the start of a program takes the
/// processor from the work for which the test waits.
fn rest(asked: Instant) {
    thread::sleep((asked.elapsed() * 3).clamp(Duration::from_millis(50), Duration::from_secs(2)));
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    let mut stream = stream.expect("piped");
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// The content of a file, to see that nothing was written. Whole files are compared, which is quicker than a hash without the
/// optimiser.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Vec<u8>);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

pub fn fingerprint(path: &Path) -> Content {
    Content(fs::read(path).expect("the file can be read"))
}

/// Bytes that look random and are the same each time.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub fn write_at(path: &Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = File::options().write(true).open(path).expect("the file opens");
    file.write_all_at(bytes, offset).expect("room");
}

pub fn read_at(path: &Path, offset: u64, len: usize) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; len];
    File::open(path).and_then(|file| file.read_exact_at(&mut bytes, offset)).expect("the file is long enough");
    bytes
}

/// Is this root? Then permissions mean nothing.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).expect("JSON on each line")
}

/// A server at work.
pub struct Server {
    child: Child,
    /// The lines it writes, as they come.
    lines: Receiver<String>,
    /// Lines that a test has looked at already.
    seen: Vec<Value>,
    pub ready: Value,
}

/// Start a program. One that a test has just copied is busy until the children have begun that other threads started meanwhile.
pub fn spawn(command: &mut Command) -> Child {
    for _ in 0..100 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => thread::sleep(Duration::from_millis(50)),
            started => return started.expect("the program starts"),
        }
    }
    panic!("the program stays busy: {command:?}")
}

impl Server {
    /// The server that this command starts.
    ///
    /// # Errors
    /// Its first line, if that does not say that it is ready.
    pub fn started(command: &mut Command) -> Result<Self, String> {
        Self::of(spawn(command.stdin(Stdio::null()).stdout(Stdio::piped())))
    }

    /// The server that was started as this child.
    ///
    /// # Errors
    /// As of [`Server::started`].
    pub fn of(mut child: Child) -> Result<Self, String> {
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let Some(ready) = serde_json::from_str(&line).ok().filter(|ready: &Value| ready["event"] == "ready") else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(line);
        };
        let (sender, lines) = channel();
        thread::spawn(move || {
            // The loop ends when the receiver is gone.
            let _ = out.lines().try_for_each(|line| sender.send(line.expect("UTF-8")));
        });
        Ok(Self { child, lines, seen: Vec::new(), ready })
    }

    /// Wait until it has printed this event `times` times. It prints events at its next tick only.
    #[track_caller]
    pub fn wait_for_news(&mut self, event: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.seen.iter().filter(|line| line["news"]["event"] == event).count() < times {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("{event} not told {times} times: {:?}", self.seen));
            self.seen.push(parsed(&line));
        }
    }

    /// The first address of its first array.
    pub fn uri(&self) -> String {
        self.ready["arrays"][0]["addresses"][0].as_str().expect("an address").to_owned()
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Wait for its end: exit code and the lines it wrote.
    pub fn end(mut self) -> (i32, Vec<Value>) {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the server can be waited for") {
                break status;
            }
            assert!(Instant::now() < until, "the server does not end");
            thread::sleep(Duration::from_millis(10));
        };
        let mut lines = std::mem::take(&mut self.seen);
        lines.extend(self.lines.iter().map(|line| parsed(&line)));
        (status.code().unwrap_or(-1), lines)
    }

    /// Stop cleanly.
    pub fn stop(self) -> Vec<Value> {
        self.signal("-TERM");
        let (code, lines) = self.end();
        assert_eq!(code, 0);
        lines
    }

    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only if a test has failed in the middle.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that a test needs is not there: the test says so and passes, or fails where all packages are promised.
pub fn missing(what: &str) {
    assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "{what}");
    skipped(what);
}

/// As [`missing`], for what no package brings: the test has done nothing, and why.
pub fn skipped(what: &str) {
    say(&format!("skipped: {what}"));
}

/// A line on standard error, without a test's capture in between.
pub fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Write a little to the first array of a server, with the protocol's simplest words.
pub fn write_some(lab: &Lab, server: &Server) {
    ask(lab, server, &[(WRITE, 4096, &[5; 4096])]);
}

/// Kill a server while it writes to its first array, so that the array is not clean.
pub fn kill_under_writes(lab: &Lab, server: Server) {
    let name = server.ready["arrays"][0]["name"].as_str().expect("a name").to_owned();
    let mut client = Client::open(&lab.path("nbd.sock"), &name);
    assert_eq!(client.ask(WRITE, 4096, &[5; 4096]), 0, "the request is acknowledged");
    thread::scope(|scope| {
        scope.spawn(|| while client.try_ask(WRITE, 4096, &[5; 4096]).is_ok() {});
        server.kill();
    });
}

/// Commands of the protocol.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const FLUSH: u16 = 3;

/// One request after the other to the first array of a server: command, offset, payload (of a read: as long as that).
pub fn ask(lab: &Lab, server: &Server, requests: &[(u16, u64, &[u8])]) {
    let name = server.ready["arrays"][0]["name"].as_str().expect("a name");
    let mut client = Client::open(&lab.path("nbd.sock"), name);
    for (command, offset, payload) in requests {
        assert_eq!(client.ask(*command, *offset, payload), 0, "the request is acknowledged");
    }
}
