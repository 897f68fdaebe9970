//! Temporary folders on the file systems at hand, and bytes that tell where they belong.
#![allow(dead_code)] // every test file uses its own part

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed with all its contents at the end.
pub struct TempDir(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl TempDir {
    /// In the build folder, which is on a disk.
    pub fn on_disk() -> Self {
        Self::under(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// In memory; `None` where there is no such file system.
    pub fn in_memory() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        memory.is_dir().then(|| Self::under(memory))
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

/// Bytes that differ from place to place: the number of the sector, and a mix of number and place within it.
pub fn pattern(first_sector: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|n| {
            let (sector, place) = (first_sector + n as u64 / 512, n % 512);
            let mixed = (sector + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed.rotate_left(u32::try_from(place % 61).expect("small")).to_le_bytes()[place % 8]
        })
        .collect()
}

/// Run a program; its standard output, or `None` if it is not there or fails.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// A loop device over a file, removed at the end.
pub struct Loop(pub PathBuf);

impl Loop {
    pub fn over(file: &Path, options: &[&str]) -> Option<Self> {
        let mut arguments = vec!["--find", "--show"];
        arguments.extend(options);
        arguments.push(file.to_str()?);
        let device = run("losetup", &arguments);
        if device.is_none() {
            println!("skipped: no loop devices here (not root, or no kernel support)");
        }
        device.map(|device| Self(device.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = run("losetup", &["-d", self.0.to_str().expect("ASCII")]);
    }
}

/// A file system that can stand still, as a dead file server or a suspended device mapping does.
pub struct Frozen {
    target: String,
    _device: Loop,
}

impl Frozen {
    /// One of 64 MiB in this folder; `None` where none can be mounted.
    pub fn make(dir: &TempDir) -> Option<Self> {
        let image = dir.path("image");
        std::fs::File::create(&image).expect("image").set_len(64 << 20).expect("sparse");
        run("mkfs.ext4", &["-q", "-F", image.to_str()?])?;
        let device = Loop::over(&image, &[])?;
        let place = dir.path("mounted");
        std::fs::create_dir(&place).expect("folder");
        let target = place.to_str()?.to_string();
        run("mount", &[device.0.to_str()?, &target])?;
        Some(Self { target, _device: device })
    }

    /// A file on it.
    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = Path::new(&self.target).join(name);
        std::fs::write(&path, content).expect("file");
        path
    }

    /// Whoever writes waits from now on.
    pub fn freeze(&self) {
        assert!(run("fsfreeze", &["-f", &self.target]).is_some(), "freeze");
    }

    /// Until now.
    pub fn thaw(&self) {
        assert!(run("fsfreeze", &["-u", &self.target]).is_some(), "thaw");
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = run("fsfreeze", &["-u", &self.target]);
        let _ = run("umount", &["-l", &self.target]);
    }
}
