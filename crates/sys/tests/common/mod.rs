//! Temporary folders on the available file systems, and bytes that show their position.
#![allow(dead_code)] // every test file uses its own part

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed with all its contents at the end.
pub struct TempDir(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl TempDir {
    /// A folder in the build folder, which is on a disk.
    pub fn on_disk() -> Self {
        Self::under(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// A folder in memory; `None` if there is no such file system.
    pub fn in_memory() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        memory.is_dir().then(|| Self::under(memory))
    }

    /// A folder in memory if possible. Making data durable takes no time there, even if the disk is busy.
    pub fn quick() -> Self {
        Self::in_memory().unwrap_or_else(Self::on_disk)
    }

    fn under(parent: &Path) -> Self {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("sys-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&path).expect("temporary folder");
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A file of `len` bytes whose content is [`pattern`].
    pub fn file(&self, name: &str, len: usize) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, pattern(0, len)).expect("file");
        path
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bytes that differ between positions: the number of the sector, and a mix of that number and the position in the
/// sector.
pub fn pattern(first_sector: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|n| {
            let (sector, place) = (first_sector + n as u64 / 512, n % 512);
            let mixed = (sector + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed.rotate_left(u32::try_from(place % 61).expect("small")).to_le_bytes()[place % 8]
        })
        .collect()
}

/// Runs a program. Returns its standard output, or `None` if it does not exist or fails.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// As [`run`], but an error ends the test.
#[track_caller]
pub fn must(program: &str, arguments: &[&str]) -> String {
    tried(program, arguments).unwrap_or_else(|said| panic!("{said}"))
}

/// The output, or the error message.
fn tried(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{program} {}: {}, {}", arguments.join(" "), output.status, text(&output.stderr)))
    }
}

/// Runs a step that a machine, mostly a container, may refuse even to root. If it is refused, the test says so and does
/// nothing.
pub fn allowed(program: &str, arguments: &[&str]) -> Option<String> {
    tried(program, arguments).map_err(|said| skipped(&said)).ok()
}

/// Prints that the test does nothing, and why, directly to standard error.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Do these programs exist? If not, a message says so.
pub fn has(programs: &[&str], package: &str) -> bool {
    let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let Some(program) = programs.iter().find(|program| !is_there(program)) else { return true };
    let what = format!("{program} is not installed (package {package})");
    assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "{what}");
    skipped(&what);
    false
}

/// May this process mount file systems? If not, a message says so. Root in a container usually may not.
pub fn may_mount() -> bool {
    const SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    let may = u64::from_str_radix(bits.trim(), 16).expect("hexadecimal") >> SYS_ADMIN & 1 == 1;
    if !may {
        skipped("loop devices and mounting need root (CAP_SYS_ADMIN)");
    }
    may && has(&["mount", "umount"], "mount")
}

/// A loop device over a file, removed at the end.
pub struct Loop(pub PathBuf);

impl Loop {
    /// `None`, with a message, if there is no loop device.
    pub fn over(file: &Path, options: &[&str]) -> Option<Self> {
        if !may_mount() || !has(&["losetup"], "mount") {
            return None;
        }
        if let Err(error) = std::fs::File::open("/dev/loop-control") {
            skipped(&format!("no loop devices here (/dev/loop-control: {error})"));
            return None;
        }
        let arguments = [&["--find", "--show"], options, &[file.to_str().expect("ASCII")]].concat();
        allowed("losetup", &arguments).map(|device| Self(device.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup", &["-d", self.0.to_str().expect("ASCII")]);
    }
}

/// A file system that can stop answering, like a dead file server or a suspended device mapping.
pub struct Frozen {
    target: String,
    _device: Loop,
}

impl Frozen {
    /// A file system of 64 MiB in this folder; `None`, with a message, if it cannot be made.
    pub fn make(dir: &TempDir) -> Option<Self> {
        let image = dir.path("image");
        std::fs::File::create(&image).expect("image").set_len(64 << 20).expect("sparse");
        let device = Loop::over(&image, &[])?;
        if !has(&["mkfs.ext4"], "e2fsprogs") || !has(&["fsfreeze"], "util-linux") {
            return None;
        }
        let place = dir.path("mounted");
        std::fs::create_dir(&place).expect("folder");
        let (name, target) = (device.0.to_str().expect("ASCII"), place.to_str().expect("ASCII").to_string());
        must("mkfs.ext4", &["-q", "-F", name]);
        allowed("mount", &[name, &target])?;
        Some(Self { target, _device: device })
    }

    /// A file on this file system.
    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = Path::new(&self.target).join(name);
        std::fs::write(&path, content).expect("file");
        path
    }

    /// Makes writers wait.
    pub fn freeze(&self) {
        must("fsfreeze", &["-f", &self.target]);
    }

    /// Lets writers continue.
    pub fn thaw(&self) {
        must("fsfreeze", &["-u", &self.target]);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = run("fsfreeze", &["-u", &self.target]);
        let _ = run("umount", &["-l", &self.target]);
    }
}

/// A small separate file system in memory.
pub struct Small(PathBuf);

impl Small {
    /// A file system of this number of MiB in this folder; `None`, with a message, if it cannot be made.
    pub fn make(dir: &TempDir, mib: u64) -> Option<Self> {
        if !may_mount() {
            return None;
        }
        let place = dir.path("small");
        std::fs::create_dir(&place).expect("a folder");
        allowed("mount", &["-t", "tmpfs", "-o", &format!("size={mib}m"), "none", place.to_str().expect("ASCII")])?;
        Some(Self(place))
    }

    /// A sparse file.
    pub fn file(&self, name: &str, len: u64) -> PathBuf {
        let path = self.0.join(name);
        std::fs::File::create(&path).and_then(|file| file.set_len(len)).expect("a file");
        path
    }

    /// Fills the file system, until the returned file is removed.
    pub fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut file = std::fs::File::create(&filler).expect("a file");
        while file.write_all(&[7; 4096]).is_ok() {}
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", self.0.to_str().expect("ASCII")]);
    }
}
