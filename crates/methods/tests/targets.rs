//! Real targets: files and NBD exports are measured without damage, and refused if they cannot be measured.

use openraid_methods::load::{one_size, ClosedLoop, LoopOptions, Mixed, Stop, Zone};
use openraid_methods::metrics::Recorder;
use openraid_methods::target::{BlockTarget, Choice, Destruction, NbdTarget, NullTarget, RealOptions, Target};
use openraid_units::{Bytes, Instant, Nanos};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const SIZE: u64 = 8 << 20;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("openraid-methods-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        let bytes: Vec<u8> = (0..SIZE).map(|n| u8::try_from(n / 4096 % 251).unwrap()).collect();
        File::create(&path).unwrap().write_all(&bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn options(destroy: Option<Destruction>) -> RealOptions {
    RealOptions { outstanding: 8, bytes_max: 65_536, destroy, seed: 1 }
}

fn run(target: &mut dyn Target, read: u8, requests: u64) -> Recorder {
    let zone = Zone { start: 0, len: SIZE };
    let mut source = Mixed::new(&one_size("x", 4096, read, 100), 2, zone, 1, 3);
    let mut closed = ClosedLoop::new(LoopOptions { workers: 2, depth: 4, jitter: Nanos::ZERO, seed: 1 });
    let mut recorder = Recorder::new(2);
    let stop = Stop { requests, at: Instant::NEVER };
    closed.run(target, &mut source, stop, Some(&mut recorder)).unwrap();
    closed.drain(target, Some(&mut recorder)).unwrap();
    recorder
}

fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn reading_a_file_counts_every_request_and_changes_no_byte() {
    let folder = Folder::new("read");
    let path = folder.file("disk");
    let before = content(&path);
    let mut target = BlockTarget::open(&path, &options(None)).unwrap();
    let recorder = run(&mut target, 100, 1000);
    assert!((1000..1000 + 16).contains(&recorder.reads.requests), "{}", recorder.reads.requests);
    assert_eq!((recorder.errors, recorder.reads.bytes), (0, recorder.reads.requests * 4096));
    assert!(!target.facts().writable && target.facts().capacity == Bytes(SIZE));
    drop(target);
    assert_eq!(content(&path), before);
}

#[test]
#[should_panic(expected = "opened for reading")]
fn a_target_without_permission_to_destroy_data_gets_no_writes() {
    let folder = Folder::new("nowrite");
    let path = folder.file("disk");
    let mut target = BlockTarget::open(&path, &options(None)).unwrap();
    run(&mut target, 0, 10);
}

#[test]
fn a_proof_for_another_target_does_not_open_this_one_for_writing() {
    let folder = Folder::new("proof");
    let path = folder.file("disk");
    let other = Destruction::confirmed(&Choice::parse("/dev/other").unwrap(), "other").unwrap();
    let target = BlockTarget::open(&path, &options(Some(other))).unwrap();
    assert!(!target.facts().writable);
    drop(target);
    let destruction = Destruction::confirmed(&Choice::Path(path.clone()), "disk").unwrap();
    let mut target = BlockTarget::open(&path, &options(Some(destruction))).unwrap();
    let recorder = run(&mut target, 0, 500);
    assert!(recorder.writes.requests >= 500 && recorder.errors == 0);
    drop(target);
    assert_ne!(content(&path)[..4096], [0; 4096][..], "random payload was written");
}

#[test]
fn targets_that_cannot_be_measured_say_why() {
    let folder = Folder::new("refused");
    let open = |path: &Path, proof| BlockTarget::open(path, &options(proof)).map(drop).unwrap_err().to_string();
    assert!(open(&folder.0.join("missing"), None).contains("no such file"));
    assert!(open(&folder.0, None).contains("must be a regular file"));
    let small = folder.0.join("small");
    fs::write(&small, [0; 4096]).unwrap();
    assert!(open(&small, None).contains("less than one request of 65536 bytes"));
    let path = folder.file("used");
    let held = BlockTarget::open(&path, &options(None)).unwrap();
    let error = open(&path, None);
    assert!(error.contains("already in use"), "{error}");
    drop(held);
    let huge = RealOptions { outstanding: 4096, bytes_max: 1 << 20, ..options(None) };
    let error = BlockTarget::open(&path, &huge).map(drop).unwrap_err().to_string();
    assert!(error.contains("more memory"), "{error}");
    let error = NbdTarget::open(&"nbd+unix:///x?socket=/nowhere".parse().unwrap(), &options(None)).map(drop);
    assert!(error.is_err());
}

#[test]
fn a_file_that_is_cut_short_ends_the_measurement_with_a_reason() {
    let folder = Folder::new("cut");
    let path = folder.file("disk");
    let mut target = BlockTarget::open(&path, &options(None)).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    let zone = Zone { start: 0, len: SIZE };
    let mut source = Mixed::new(&one_size("x", 4096, 100, 100), 1, zone, 1, 3);
    let mut closed = ClosedLoop::new(LoopOptions { workers: 1, depth: 4, jitter: Nanos::ZERO, seed: 1 });
    let error = closed.run(&mut target, &mut source, Stop::NEVER, None).unwrap_err().to_string();
    assert!(error.contains("64 requests in a row have failed") && error.contains("made shorter"), "{error}");
}

#[test]
fn the_null_target_ends_everything_at_once() {
    let mut target = NullTarget::new(Bytes(SIZE));
    let recorder = run(&mut target, 50, 10_000);
    assert!(recorder.requests() >= 10_000);
}

/// An independent server of the same protocol, if it is installed.
struct Nbdkit {
    child: std::process::Child,
    socket: PathBuf,
}

impl Nbdkit {
    fn start(folder: &Folder, arguments: &[&str]) -> Option<Self> {
        let socket = folder.0.join("nbd.sock");
        let mut command = std::process::Command::new("nbdkit");
        let Ok(child) = command.args(["-f", "-U"]).arg(&socket).args(arguments).spawn() else {
            assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "nbdkit is not installed");
            return None;
        };
        let mut server = Self { child, socket };
        // The name of the socket exists before the server listens. Only a connection shows that it serves.
        while std::os::unix::net::UnixStream::connect(&server.socket).is_err() {
            assert!(server.child.try_wait().unwrap().is_none(), "nbdkit ended at once: see what it printed");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Some(server)
    }

    fn uri(&self) -> openraid_nbd::NbdUri {
        format!("nbd+unix:///?socket={}", self.socket.display()).parse().unwrap()
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_export_is_read_and_written_and_its_bytes_are_counted() {
    let folder = Folder::new("nbd");
    let Some(server) = Nbdkit::start(&folder, &["memory", "8M"]) else { return };
    let uri = server.uri();
    let mut target = NbdTarget::open(&uri, &options(None)).unwrap();
    let recorder = run(&mut target, 100, 2000);
    assert!(recorder.reads.requests >= 2000 && recorder.errors == 0 && !target.facts().writable);
    drop(target);
    let choice = Choice::Nbd(uri.clone());
    let proof = Destruction::confirmed(&choice, &choice.short_name()).unwrap();
    let mut target = NbdTarget::open(&uri, &options(Some(proof))).unwrap();
    assert_eq!(target.facts().capacity, Bytes(SIZE));
    let recorder = run(&mut target, 30, 2000);
    assert!(recorder.writes.requests > 1000 && recorder.reads.requests > 400 && recorder.errors == 0);
}

#[test]
fn an_export_that_is_read_only_or_disappears_is_reported() {
    let folder = Folder::new("nbd-gone");
    let Some(server) = Nbdkit::start(&folder, &["-r", "memory", "8M"]) else { return };
    let uri = server.uri();
    let choice = Choice::Nbd(uri.clone());
    let proof = Destruction::confirmed(&choice, &choice.short_name()).unwrap();
    let error = NbdTarget::open(&uri, &options(Some(proof))).map(drop).unwrap_err().to_string();
    assert!(error.contains("read-only"), "{error}");
    let mut target = NbdTarget::open(&uri, &options(None)).unwrap();
    drop(server);
    let zone = Zone { start: 0, len: SIZE };
    let mut source = Mixed::new(&one_size("x", 4096, 100, 100), 1, zone, 1, 3);
    let mut closed = ClosedLoop::new(LoopOptions { workers: 1, depth: 4, jitter: Nanos::ZERO, seed: 1 });
    let error = closed.run(&mut target, &mut source, Stop::NEVER, None).unwrap_err().to_string();
    assert!(error.contains("gone in the middle"), "{error}");
}
