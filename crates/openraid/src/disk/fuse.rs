//! A file of nbdfuse under a loop device, for kernels without a module for either protocol. nbdkit is between nbdfuse and the server,
//! because nbdfuse does not connect again. All of them end with the disk, and the disk with each of them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::nbd::SERVER_AWAY_SECONDS;
use super::{attached_disks, blocks, in_sysfs, line_of, run, ArrayOffer, AttachWay, AttachedDisk, DiskRecord};

/// Folders of nbdfuse, below that of the records, begin so.
const BEGIN: &str = "fuse-";
/// Time for the file to come.
const FILE_TIME_MAX: Duration = Duration::from_secs(10);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

fn folder_of(name: &str) -> PathBuf {
    Path::new(attached_disks::FOLDER).join(format!("{BEGIN}{}", attached_disks::link_name(name)))
}

/// The file under the loop device of an array.
pub fn file_of(name: &str) -> PathBuf {
    folder_of(name).join("disk")
}

/// Attaches the array.
///
/// # Errors
/// Why not, in words.
pub fn attach(offer: &ArrayOffer) -> Result<AttachedDisk, String> {
    let address = offer.nbd.first().ok_or("the server offers no plain NBD (nbd-unix = [...] in [server])")?;
    for (device, module) in [("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")] {
        super::load(module);
        if !Path::new(device).exists() {
            return Err(format!("this kernel has no module {module}"));
        }
    }
    for program in ["nbdfuse", "nbdkit"] {
        run(program, &["--version"]).map_err(|error| format!("install libnbd-bin, nbdkit and fuse3: {error}"))?;
    }
    let record = DiskRecord::new(AttachWay::Fuse, &offer.identity, address.clone());
    let file = file_of(record.name());
    let attached = mount(&file, address, offer.is_read_only).and_then(|()| {
        let mut words = vec!["--find", "--show"];
        words.extend(offer.is_read_only.then_some("--read-only"));
        let path = file.display().to_string();
        words.push(&path);
        let made = run("losetup", &words)?;
        let device = made.strip_prefix("/dev/").ok_or_else(|| format!("losetup printed {made:?}"))?;
        let disk = AttachedDisk { device: device.to_owned(), record };
        disk.write().map_err(|error| format!("{}: {error}", attached_disks::FOLDER))?;
        Ok(disk)
    });
    attached.inspect_err(|_| end(&file))
}

/// Starts nbdfuse, and waits for its file.
fn mount(file: &Path, address: &str, is_read_only: bool) -> Result<(), String> {
    let folder = file.parent().expect("a file in a folder");
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = Command::new("nbdfuse");
    command.args(is_read_only.then_some("--readonly")).arg(file).arg("--command");
    command.args(["nbdkit", "-s", "--exit-with-parent", "--filter=retry", "nbd"]).arg(format!("uri={address}"));
    command.args([&format!("retries={SERVER_AWAY_SECONDS}"), "retry-delay=1", "retry-exponential=no"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut nbdfuse = command.spawn().map_err(|error| format!("nbdfuse: {error}"))?;
    let until = Instant::now() + FILE_TIME_MAX;
    while !file.exists() {
        if let Ok(Some(status)) = nbdfuse.try_wait() {
            return Err(format!("nbdfuse ended ({status}); `nbdfuse DIR {address}` says why"));
        }
        if Instant::now() > until {
            let _ = nbdfuse.kill();
            return Err(format!("nbdfuse made no file in {} s", FILE_TIME_MAX.as_secs()));
        }
        thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// Ends a disk.
///
/// # Errors
/// What losetup said.
pub fn detach(disk: &AttachedDisk) -> Result<(), String> {
    run("losetup", &["--detach", &disk.path().display().to_string()])?;
    end(&file_of(disk.record.name()));
    Ok(())
}

/// Removes loop devices and mounts of disks that were attached halfway, or whose nbdfuse has ended.
pub fn sweep() {
    let kept: Vec<PathBuf> = attached_disks::all().iter().map(|disk| file_of(disk.record.name())).collect();
    let entries = fs::read_dir(attached_disks::FOLDER).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    let is_fuse = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BEGIN));
    folders
        .filter(is_fuse)
        .map(|folder| folder.join("disk"))
        .filter(|file| !kept.contains(file))
        .for_each(|file| end(&file));
}

fn end(file: &Path) {
    let over = |device: &String| {
        line_of(in_sysfs(device).join("loop/backing_file")).is_some_and(|path| Path::new(&path) == file)
    };
    for device in blocks("loop").iter().filter(|device| over(device)) {
        let _ = run("losetup", &["--detach", &format!("/dev/{device}")]);
    }
    // A loop device that the kernel has not released yet keeps the mount busy: it goes with that.
    let folder = file.parent().expect("a file in a folder");
    let _ = run("umount", &["--lazy", &folder.display().to_string()]);
    let _ = fs::remove_dir(folder);
}
