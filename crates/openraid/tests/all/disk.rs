//! An array as a disk of the real kernel, and its members in Linux md: the commands of docs/tour.md and docs/disk.md that need root, in a
//! Linux guest that has the drivers. The server runs in the guest too.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::console::{blocks, guest_program, installed, page};
use crate::support::{missing, noise, skipped, Lab};

/// Makes an array of files in the guest's memory and serves it; `serve` can be called again after `halt`. The pages
/// assume a user with `sudo` and modules in another place, so both commands are functions here.
const PROLOGUE: &str = r#"
modprobe() { insmod "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/block/$1.ko"; }
sudo() { "$@"; }
export XDG_RUNTIME_DIR=/run/user OPENRAID_REGISTRY=/run/registry.json
mkdir -p /run/user /run/tour
cd /run/tour
truncate -s 80M d1 d2 d3
"$openraid" create data --level 5 --chunk 64K --assume-clean "$PWD/d1" "$PWD/d2" "$PWD/d3"
serve() {
    "$openraid" serve data --nbd-unix /run/tour/data.sock &
    server=$!
    "$openraid" show data --wait 120 >/dev/null
}
halt() { kill "$server"; wait "$server"; }
serve
"#;

/// Run a job in a guest after the prologue. Returns its output; `None` if a package is missing.
pub fn in_guest(job: &str) -> Option<String> {
    for program in ["linux.uml", "nbd-client", "qemu-nbd", "insmod", "mkfs.ext4"] {
        if !installed(program) {
            missing(&format!("{program} is not installed"));
            return None;
        }
    }
    if !guest_program().exists() {
        missing("openraid-guest is not built");
        return None;
    }
    let job = format!("openraid={}\n{PROLOGUE}\n{job}\necho all-done", env!("CARGO_BIN_EXE_openraid"));
    let mut command = Command::new(guest_program());
    command.args(["--timeout", "600", "--no-raid6", "--", &job]).stdin(Stdio::null());
    let output = command.output().expect("the guest's program starts");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("all-done"), "{printed}");
    Some(printed)
}

#[test]
fn the_kernel_mounts_a_file_system_on_an_array_by_the_commands_of_the_page() {
    let text = page("docs/disk.md");
    let block = blocks(&text).into_iter().find(|block| block.word == "nbd").expect("the block");
    let mut job = String::new();
    for step in &block.steps {
        job.push_str(&step.command.replace("/run/openraid-nbd/nbd.sock", "/run/tour/data.sock"));
        job.push('\n');
        if step.command.starts_with("sudo mount") {
            job.push_str("cp /sbin/mdadm /mnt/mdadm\n");
        }
    }
    // It is on the members: another server, another connection, no page of the first mount.
    job.push_str(
        "halt\nserve\nnbd-client -unix /run/tour/data.sock /dev/nbd0 -name data\nfsck.ext4 -fn /dev/nbd0\n\
         mount -o ro /dev/nbd0 /mnt\ncmp /sbin/mdadm /mnt/mdadm\numount /mnt\nnbd-client -d /dev/nbd0\nhalt\n",
    );
    in_guest(&job);
}

#[test]
fn linux_md_assembles_the_files_by_the_commands_of_the_tour() {
    let text = page("docs/tour.md");
    let block = blocks(&text).into_iter().find(|block| block.word == "root").expect("the block");
    // The first loop device is in use, as on many machines.
    let mut job = String::from(
        "halt\nmkdir /run/moved\ncd /run/moved\ntruncate -s 1M other\nlosetup --find other\n\
         \"$openraid\" create moved --level 5 --chunk 64K --file-size 32M --assume-clean d1 d5 d3 d4\n",
    );
    for step in &block.steps {
        job.push_str(&step.command);
        job.push('\n');
        if step.command.contains("--assemble") {
            job.push_str("grep -A 1 raid5 /proc/mdstat\n");
        }
    }
    job.push_str("losetup --list --noheadings --output BACK-FILE | sed 's/^/still used: /'\n");
    let Some(printed) = in_guest(&job) else { return };
    let promised = block.steps.iter().flat_map(|step| &step.printed);
    for line in promised.map(String::as_str).chain(["[4/4] [UUUU]"]) {
        assert!(printed.contains(line), "{line:?} is not in: {printed}");
    }
    let used: Vec<&str> = printed.lines().filter(|line| line.starts_with("still used: ")).collect();
    assert_eq!(used, ["still used: /run/moved/other"], "{printed}");
}

#[test]
fn the_page_mounts_a_disk_by_its_line_of_fstab() {
    let text = page("docs/disk.md");
    // The line of the page, for another folder; without systemd, whose options are not for mount.
    let entry = text.lines().find(|line| line.starts_with("/dev/openraid/data /srv/data")).expect("the line of fstab");
    let entry = entry.replace("/srv/data", "/run/data");
    let job = format!(
        "modprobe nbd\nmkdir /run/data\n\"$openraid\" attach data\nmkfs.ext4 -q /dev/openraid/data\n\
         echo '{entry}' >/run/fstab\nmount -T /run/fstab /run/data\ncp /sbin/mdadm /run/data/before\nsync\nhalt\n\
         (cp /sbin/mdadm /run/data/after; sync) & writer=$!\nsleep 2; serve; wait \"$writer\"\n\
         echo 3 >/proc/sys/vm/drop_caches\ncmp /sbin/mdadm /run/data/before\ncmp /sbin/mdadm /run/data/after\n\
         umount /run/data\n\"$openraid\" detach data\n\"$openraid\" stop --all\n",
    );
    in_guest(&job);
}

/// Run a program, which must do it.
#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().expect("it is installed");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A mount of an export by nbdfuse, and of the file system in it by a loop device; both end with it.
struct Mounts<'a>(&'a Path);

impl Mounts<'_> {
    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Mounts<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-q", &self.path("mnt")]).status();
        let _ = Command::new("fusermount3").args(["-q", "-u", &self.path("disk")]).status();
    }
}

#[test]
fn a_file_system_is_mounted_by_nbdfuse_and_a_loop_device() {
    for program in ["nbdfuse", "fusermount3", "mkfs.ext4", "debugfs", "losetup"] {
        if !installed(program) {
            return missing(&format!("{program} is not installed"));
        }
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        if File::options().write(true).open(device).is_err() {
            return skipped(&format!("{device} cannot be opened"));
        }
    }
    let lab = Lab::new("loop");
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d1 d2 d3").expect(0);
    let server = lab.serve(&["data"]);
    let mounts = Mounts(&lab.folder);
    let (disk, file, mnt) = (mounts.path("disk"), mounts.path("disk/data"), mounts.path("mnt"));
    fs::create_dir(&disk).and_then(|()| fs::create_dir(&mnt)).expect("folders");
    let uri = format!("nbd+unix:///data?socket={}", lab.path("nbd.sock").display());
    let mut fuse = Command::new("nbdfuse").args([&file, &uri]).stdin(Stdio::null()).spawn().expect("it is installed");
    while !Path::new(&file).exists() {
        assert!(fuse.try_wait().expect("a child").is_none(), "nbdfuse ended");
        thread::sleep(Duration::from_millis(20));
    }
    run("mkfs.ext4", &["-q", &file]);
    // A kernel or a sandbox may have no loop devices in spite of the control device.
    let mounted = Command::new("mount").args(["-o", "loop", &file, &mnt]).output().expect("mount");
    if !mounted.status.success() {
        let why = String::from_utf8_lossy(&mounted.stderr).into_owned();
        drop(mounts);
        let _ = fuse.wait();
        return skipped(&format!("mount -o loop: {why}"));
    }
    let content = noise(7, 1 << 20);
    fs::write(lab.path("mnt/file"), &content).expect("room");
    run("umount", &[&mnt]);
    run("fusermount3", &["-u", &disk]);
    let _ = fuse.wait();
    server.stop();
    // The members say so, without the server and without a mount.
    let image = lab.path("image").display().to_string();
    fs::write(&image, lab.line("copy-out d1 d2 d3").expect(0).out).expect("room");
    run("fsck.ext4", &["-fn", &image]);
    run("debugfs", &["-R", &format!("dump /file {}", mounts.path("found")), &image]);
    assert!(fs::read(lab.path("found")).expect("it was there") == content, "the file differs");
}
