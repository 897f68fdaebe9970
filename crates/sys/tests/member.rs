//! Opening members: the refusals and their reasons, and that nothing is damaged or left open.

mod common;

use common::{allowed, has, must, pattern, run, Loop, TempDir};
use openraid_sys::{Direct, Identity, IoError, MemberError, MemberFile, NotAMember, Use};
use openraid_units::{BlockSize, Bytes, DriveLba, Sectors};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

fn open(path: &Path) -> Result<MemberFile, MemberError> {
    MemberFile::open(path, Use::Exclusive, Direct::Try)
}

fn refused(path: &Path) -> MemberError {
    open(path).expect_err("must be refused")
}

fn says(error: &MemberError, words: &[&str]) {
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} says {words:?}");
}

#[test]
fn a_file_that_cannot_be_a_member_is_refused_by_name_without_waiting() {
    let dir = TempDir::on_disk();
    let fifo = dir.path("fifo");
    assert!(run("mkfifo", &[fifo.to_str().expect("ASCII")]).is_some());
    let socket = dir.path("socket");
    let _listener = UnixListener::bind(&socket).expect("socket");
    let folder = dir.path("folder");
    std::fs::create_dir(&folder).expect("folder");
    for (path, kind, word) in [
        (fifo.as_path(), NotAMember::Fifo, "FIFO"),
        (&socket, NotAMember::Socket, "socket"),
        (&folder, NotAMember::Directory, "directory"),
        (Path::new("/dev/zero"), NotAMember::CharacterDevice, "character device"),
    ] {
        for usage in [Use::Examine, Use::ReadExclusive, Use::Exclusive] {
            let error = MemberFile::open(path, usage, Direct::Try).expect_err("must be refused");
            assert_eq!(error, MemberError::NotAMember { path: path.into(), kind });
            says(&error, &[word, path.to_str().expect("ASCII")]);
        }
        let link = dir.path(&format!("to-{kind:?}"));
        symlink(path, &link).expect("link");
        assert_eq!(refused(&link), MemberError::NotAMember { path: link, kind });
    }
}

#[test]
fn missing_paths_and_broken_links_are_named() {
    let dir = TempDir::on_disk();
    let missing = dir.path("missing");
    assert_eq!(refused(&missing), MemberError::Missing { path: missing.clone() });
    let link = dir.path("link");
    symlink(&missing, &link).expect("link");
    assert_eq!(refused(&link), MemberError::Missing { path: link });
    let circle = dir.path("circle");
    symlink(&circle, &circle).expect("link");
    says(&refused(&circle), &["circle", "follow"]);
    assert!(!missing.exists(), "opening makes nothing");
}

#[test]
fn files_below_a_sector_are_too_small_and_odd_tails_are_left_out() {
    let dir = TempDir::on_disk();
    for len in [0, 1, 511] {
        let path = dir.file("small", len);
        assert_eq!(refused(&path), MemberError::Empty { path, size: Bytes(len as u64) });
    }
    let path = dir.file("odd", 5 * 512 + 100);
    let member = MemberFile::open(&path, Use::Exclusive, Direct::Never).expect("open");
    assert_eq!((member.facts().size, member.facts().logical_block), (Sectors(5), BlockSize::B512));
}

#[test]
fn links_are_followed_and_both_paths_are_kept() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    let link = dir.path("link");
    symlink(&path, &link).expect("link");
    let member = open(&link).expect("open");
    assert_eq!(member.path(), link);
    assert_eq!(member.resolved(), path.canonicalize().expect("path"));
    let metadata = path.metadata().expect("metadata");
    assert_eq!(member.identity(), Identity::File { device: metadata.dev(), inode: metadata.ino() });
    assert_eq!(member.facts().size, Sectors(16));
    assert!(!member.facts().block_device && member.facts().discard_zeroes);
}

#[test]
fn one_file_under_two_paths_is_used_once() {
    let dir = TempDir::on_disk();
    let (path, hard, soft) = (dir.file("member", 8192), dir.path("hard"), dir.path("soft"));
    std::fs::hard_link(&path, &hard).expect("link");
    symlink(&path, &soft).expect("link");
    let member = open(&path).expect("open");
    for other in [&path, &hard, &soft] {
        let error = refused(other);
        assert_eq!(error, MemberError::AlreadyOpen { path: other.clone(), open_as: path.clone() });
        says(&error, &["once"]);
        let looked_at = MemberFile::open(other, Use::Examine, Direct::Try).expect("looking is always possible");
        assert!(looked_at.same_as(&member));
    }
    let different = open(&dir.file("different", 8192)).expect("open");
    assert!(!different.same_as(&member));
    drop(member);
    drop(open(&hard).expect("free again"));
    drop(MemberFile::open(&soft, Use::ReadExclusive, Direct::Try).expect("free again"));
}

/// QEMU locks bytes of its images, and locks of whole files do not meet these.
#[test]
fn a_lock_of_bytes_is_respected_and_a_process_that_has_the_file_open_is_named() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    let mut child = std::process::Command::new("sh");
    child.args(["-c", "exec 3<\"$0\"; echo; exec cat"]).arg(&path);
    let piped = std::process::Stdio::piped;
    let mut child = child.stdin(piped()).stdout(piped()).spawn().expect("sh");
    let mut ready = [0];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut ready).expect("it runs");
    let file = File::open(&path).expect("file");
    let set = |kind: libc::c_int| {
        let short = |value: libc::c_int| libc::c_short::try_from(value).expect("small");
        let lock = libc::flock { l_type: short(kind), l_whence: 0, l_start: 100, l_len: 1, l_pid: 0 };
        // SAFETY: F_OFD_SETLK reads one `flock`.
        let set = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
        assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    };
    drop(open(&path).expect("it is open elsewhere, and not locked"));
    set(libc::F_RDLCK);
    let error = refused(&path);
    says(&error, &[&format!("locked by process {} (", child.id()), "stop that first"]);
    drop(MemberFile::open(&path, Use::Examine, Direct::Never).expect("looking is always possible"));
    set(libc::F_UNLCK);
    drop(open(&path).expect("free again"));
    drop(child.stdin.take());
    child.wait().expect("own child");
}

#[test]
fn a_lock_of_another_process_is_respected_and_its_owner_named() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    let file = File::open(&path).expect("file");
    file.lock().expect("lock");
    let error = refused(&path);
    assert!(matches!(error, MemberError::Locked { .. }), "{error:?}");
    says(&error, &["locked by"]);
    if Path::new("/proc/locks").exists() {
        says(&error, &[&std::process::id().to_string()]);
    }
    file.unlock().expect("unlock");
    let member = open(&path).expect("free again");
    assert!(file.try_lock_shared().is_err(), "a member keeps others out");
    let held_by_a_ring = member.as_fd().try_clone_to_owned().expect("descriptor");
    drop(member);
    assert!(file.try_lock().is_ok(), "and lets them in at its end, even if the file is still open elsewhere");
    drop(held_by_a_ring);
}

#[test]
fn write_protection_is_an_error_of_its_own_and_examining_still_works() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    let Some(device) = Loop::over(&path, &["--read-only"]) else { return };
    assert_eq!(refused(&device.0), MemberError::ReadOnly { path: device.0.clone() });
    let member = MemberFile::open(&device.0, Use::ReadExclusive, Direct::Try).expect("open");
    let mut bytes = [0; 1000];
    assert_eq!(member.read_exact_at(DriveLba(3), &mut bytes), Ok(()));
    assert_eq!(bytes[..], pattern(3, 1000));
}

#[test]
fn files_that_may_not_be_written_are_denied() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).expect("mode");
    if OpenOptions::new().write(true).open(&path).is_ok() {
        common::skipped("this user may write everything (root)");
        return;
    }
    assert_eq!(refused(&path), MemberError::Denied { path: path.clone(), usage: Use::Exclusive });
    assert!(MemberFile::open(&path, Use::Examine, Direct::Try).is_ok());
}

#[test]
fn a_file_under_a_loop_device_is_held_by_it() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 1 << 20);
    let Some(device) = Loop::over(&path, &[]) else { return };
    let error = refused(&path);
    assert!(matches!(error, MemberError::HeldByKernel { .. }), "{error:?}");
    says(&error, &[device.0.file_name().and_then(|n| n.to_str()).expect("name"), "losetup -d"]);
    let looked_at = MemberFile::open(&path, Use::Examine, Direct::Try).expect("looking is always possible");
    assert!(looked_at.kernel_holder().is_some());
    let number = MetadataExt::rdev(&device.0.metadata().expect("a device"));
    assert_eq!(openraid_sys::backing_file(number), path.canonicalize().ok());
    drop(device);
    // The kernel detaches a loop device when its last user has closed it, and other programs also open loop devices.
    let free = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        looked_at.kernel_holder().is_none()
    });
    assert!(free && open(&path).is_ok());
}

#[test]
fn devices_in_use_are_refused_and_free_ones_are_claimed() {
    let dir = TempDir::on_disk();
    let image = dir.path("image");
    File::create(&image).expect("image").set_len(64 << 20).expect("sparse");
    let Some(device) = Loop::over(&image, &[]) else { return };
    if !has(&["mkfs.ext4"], "e2fsprogs") {
        return;
    }
    let name = device.0.to_str().expect("ASCII");
    must("mkfs.ext4", &["-q", "-F", name]);
    let place = dir.path("a place");
    std::fs::create_dir(&place).expect("folder");
    let target = place.to_str().expect("ASCII");
    if allowed("mount", &[name, target]).is_none() {
        return;
    }
    let error = refused(&device.0);
    let unmounted = run("umount", &[target]);
    assert!(matches!(error, MemberError::HeldByKernel { .. }), "{error:?}");
    says(&error, &["mounted on", "a place"]);
    assert!(unmounted.is_some());

    let member = open(&device.0).expect("free");
    let facts = member.facts();
    assert_eq!((facts.block_device, facts.size, facts.logical_block), (true, Sectors(131_072), BlockSize::B512));
    assert!(facts.discard && !facts.discard_zeroes && facts.fast_zero);
    assert!(run("mount", &[name, target]).is_none(), "the kernel respects our claim");
    let alias = dir.path("alias");
    symlink(&device.0, &alias).expect("link");
    assert_eq!(refused(&alias), MemberError::AlreadyOpen { path: alias, open_as: device.0.clone() });
}

#[test]
fn a_device_with_large_blocks_has_whole_blocks_only() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 12 << 10);
    let Some(device) = Loop::over(&path, &["--sector-size", "4096"]) else { return };
    let member = open(&device.0).expect("open");
    assert_eq!((member.facts().logical_block, member.facts().size), (BlockSize::B4096, Sectors(24)));
    let mut bytes = vec![0; 5000];
    assert_eq!(member.read_exact_at(DriveLba(7), &mut bytes), Ok(()), "any range can be read");
    assert_eq!(bytes, pattern(7, 5000));
    let refused = member.write_all_at(DriveLba(1), &[1; 4096]).map_err(|e| e.to_string());
    assert!(refused.is_err(), "only whole blocks can be written");
    assert_eq!(member.write_all_at(DriveLba(8), &[1; 4096]), Ok(()));
    assert_eq!(member.sync(), Ok(()));
    assert_eq!(member.read_exact_at(DriveLba(7), &mut bytes), Ok(()));
    assert_eq!((&bytes[..512], &bytes[512..4608]), (&pattern(7, 512)[..], &[1; 4096][..]));
}

#[test]
fn tools_read_and_write_any_length_and_never_past_the_end() {
    for dir in [Some(TempDir::on_disk()), TempDir::in_memory()].into_iter().flatten() {
        let path = dir.file("member", 300 << 10);
        let member = open(&path).expect("open");
        let mut bytes = vec![0; (200 << 10) + 77];
        assert_eq!(member.read_exact_at(DriveLba(5), &mut bytes), Ok(()));
        assert!(bytes == pattern(5, bytes.len()));
        let end = DriveLba(600 - 2);
        assert_eq!(member.read_exact_at(end, &mut bytes[..1024]), Ok(()));
        assert_eq!(member.read_exact_at(end, &mut bytes[..1025]), Err(IoError::Truncated { done: 1024 }));
        assert_eq!(member.write_all_at(DriveLba(592), &[9; 8192]), Err(IoError::Truncated { done: 0 }));
        assert_eq!(member.write_all_at(DriveLba(8), &vec![9; 100 << 10]), Ok(()));
        let mut oracle = pattern(0, 300 << 10);
        oracle[4096..4096 + (100 << 10)].fill(9);
        assert!(std::fs::read(&path).expect("file") == oracle);
    }
}

#[test]
fn examining_never_writes() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    let member = MemberFile::open(&path, Use::Examine, Direct::Try).expect("open");
    assert!(member.write_all_at(DriveLba(0), &[1; 4096]).is_err());
    assert_eq!(std::fs::read(&path).expect("file"), pattern(0, 8192));
}
