//! A test that needs more rights than this user has runs once more, as root of a Linux guest.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::console::{guest_program, installed};
use super::{missing, say};

/// Set in the guest. Set by hand, it must not be; `OPENRAID_IN_GUEST=try` on the host sends tests there although they could run here.
const INSIDE: &str = "OPENRAID_IN_GUEST";

/// Must this test go to the guest although this user has the rights?
pub fn is_wanted() -> bool {
    std::env::var_os(INSIDE).is_some_and(|word| word == "try")
}

/// Does this run in the guest?
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some_and(|word| word == "yes")
}

/// This user may not take a step of this test (`why`): run the test in the guest, by its name. Without the packages of the guest a
/// message says that it did not run. The guest's md has no RAID 6.
#[track_caller]
pub fn rerun(test: &str, why: &str) {
    run_inside(test, why, &["--no-raid6"]);
}

/// The same in a guest whose md has RAID 6.
#[track_caller]
pub fn rerun_with_raid6(test: &str, why: &str) {
    run_inside(test, why, &[]);
}

#[track_caller]
fn run_inside(test: &str, why: &str, options: &[&str]) {
    assert!(!is_inside(), "{test}: {why}, in the guest neither");
    for program in ["linux.uml", "mdadm"] {
        if !installed(program) {
            return missing(&format!("{test}: {why}, and {program} is not installed, so it did not run"));
        }
    }
    if !guest_program().exists() {
        return missing(&format!("{test}: {why}, and openraid-guest is not built, so it did not run"));
    }
    say(&format!("{test}: {why}; it runs in a Linux guest"));
    let program = std::env::current_exe().expect("the test program has a path");
    let job = format!("{INSIDE}=yes '{}' --exact {test} --nocapture --test-threads 1", program.display());
    let mut command = Command::new(guest_program());
    command.args(["--timeout", "600"]).args(options).args(["--", &job]).stdin(Stdio::null());
    let output = command.output().expect("the guest's program starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("test result: ok. 1 passed"), "{test}: {printed}");
}

/// A program of the guest, for example `mdadm --stop /dev/md9`. It succeeds. Returns what it printed.
#[track_caller]
pub fn tool(line: &str) -> String {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().expect("a program")).args(words).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device over a file, in the guest. It ends with the value.
pub struct Loop(pub String);

impl Loop {
    #[track_caller]
    pub fn over(file: &Path) -> Self {
        Self(tool(&format!("losetup --find --show {}", file.display())))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).output();
    }
}

/// SCSI disks of the kernel's test driver, in the guest: each on an adapter of its own, from which it can be pulled.
pub struct Disks {
    /// Folder of each adapter in sysfs.
    hosts: Vec<PathBuf>,
}

impl Disks {
    /// Disks of 16 MiB.
    #[track_caller]
    pub fn new(count: usize) -> Self {
        Self::with(count, "")
    }

    /// The same with further options of the driver.
    #[track_caller]
    pub fn with(count: usize, more: &str) -> Self {
        let folder = format!("/usr/lib/uml/modules/{}/kernel", tool("uname -r"));
        for module in [
            "lib/crc64",
            "crypto/crc64_rocksoft_generic",
            "lib/crc64-rocksoft",
            "block/t10-pi",
            "drivers/scsi/scsi_common",
            "drivers/scsi/scsi_mod",
            "drivers/scsi/sd_mod",
        ] {
            tool(&format!("insmod {folder}/{module}.ko"));
        }
        let options = format!("add_host={count} per_host_store=1 dev_size_mb=16 {more}");
        tool(&format!("insmod {folder}/drivers/scsi/scsi_debug.ko {options}"));
        let hosts = (0..count).map(|host| PathBuf::from(format!("/sys/class/scsi_host/host{host}"))).collect();
        let disks = Self { hosts };
        (0..count).for_each(|nth| _ = disks.node(nth));
        disks
    }

    /// The node of a disk, which has another name each time that it is put in. Waits for it.
    #[track_caller]
    pub fn node(&self, nth: usize) -> String {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let path = self
                .block(nth)
                .and_then(|folder| fs::read_dir(folder).ok()?.next()?.ok())
                .map(|entry| entry.file_name());
            if let Some(node) = path.map(|name| PathBuf::from("/dev").join(name)).filter(|node| node.exists()) {
                return node.display().to_string();
            }
            assert!(Instant::now() < until, "disk {nth} is not there");
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn block(&self, nth: usize) -> Option<PathBuf> {
        let device = self.hosts[nth].join("device").join(format!("target{nth}:0:0/{nth}:0:0:0/block"));
        device.exists().then_some(device)
    }

    #[track_caller]
    pub fn pull(&self, nth: usize) {
        let device = self.block(nth).expect("it is there");
        fs::write(device.parent().expect("a device").join("delete"), "1").expect("root");
    }

    /// Put it in again, with what it held. Returns its node.
    #[track_caller]
    pub fn put(&self, nth: usize) -> String {
        fs::write(self.hosts[nth].join("scan"), "- - -").expect("root");
        self.node(nth)
    }
}

/// A device of the device mapper over another one, in the guest. It ends with the value.
pub struct Mapped(&'static str);

impl Mapped {
    /// The table is `linear DEVICE 0` or `error`, for this many sectors.
    #[track_caller]
    pub fn new(name: &'static str, sectors: u64, table: &str) -> Self {
        dmsetup(&["create", name, "--table", &format!("0 {sectors} {table}")]);
        Self(name)
    }

    /// The path of its node.
    pub fn path(&self) -> String {
        let minor = tool(&format!("dmsetup info --columns --noheadings --options minor {}", self.0));
        format!("/dev/dm-{minor}")
    }

    /// The same device with another table.
    #[track_caller]
    pub fn become_table(&self, sectors: u64, table: &str) {
        dmsetup(&["suspend", self.0]);
        dmsetup(&["load", self.0, "--table", &format!("0 {sectors} {table}")]);
        dmsetup(&["resume", self.0]);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let _ = Command::new("dmsetup").args(["remove", "--noudevsync", self.0]).output();
    }
}

#[track_caller]
fn dmsetup(words: &[&str]) {
    let output = Command::new("dmsetup").arg("--noudevsync").args(words).output().expect("it runs");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A small file system in memory. It ends with the value.
pub struct Small<'a>(&'a Path);

impl<'a> Small<'a> {
    /// One of this size (`8M`) over a folder. If this user may not mount, the test named here runs in a Linux guest instead, and this is
    /// nothing.
    #[track_caller]
    pub fn mount(folder: &'a Path, size: &str, test: &str) -> Option<Self> {
        let options = format!("size={size}");
        let mount = || Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder).output();
        let is_mounted = !is_wanted() && mount().is_ok_and(|output| output.status.success());
        if !is_mounted {
            rerun(test, "this user may not mount a file system");
        }
        is_mounted.then_some(Self(folder))
    }

    /// Leave no space at all. A server may hold some for a moment, in a file that it cannot make and removes again: that is taken too.
    pub fn fill(&self) {
        const TRIES: u32 = 5;
        let mut filler = File::create(self.0.join("filler")).expect("room for a name");
        let mut full = 0;
        while full < TRIES {
            full += 1;
            while filler.write_all(&[1; 512]).is_ok() {
                full = 0;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}
