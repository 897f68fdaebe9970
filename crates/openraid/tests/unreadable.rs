//! What cannot be read, and what cannot be written: copies around bad places, and members that are write-protected.

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::json;
use support::guest::{is_wanted, rerun};
use support::{is_root, noise, Lab};

const MEMBER_MIB: u64 = 8;
/// A bad place of the member, 4 KiB of its data.
const BAD: u64 = (3 << 20) + 5 * 4096;

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of this file that cannot read 4 KiB of the file.
fn with_a_bad_place(lab: &Lab, file: &str) -> (Killed, String) {
    let (file, socket) = (lab.path(file), lab.path("bad.sock"));
    let size = MEMBER_MIB << 20;
    let (from, to) = (BAD, BAD + 4096);
    let read = format!(
        "if [ $4 -lt {to} ] && [ $(($4 + $3)) -gt {from} ]; then echo 'EIO bad place' >&2; exit 1; fi; \
         dd iflag=skip_bytes,count_bytes skip=$4 count=$3 if={} bs=1M status=none",
        file.display()
    );
    let child = Command::new("nbdkit")
        .args(["-f", "-U"])
        .arg(&socket)
        .args(["eval", &format!("get_size=echo {size}"), &format!("pread={read}"), "can_write=exit 3"])
        .stderr(Stdio::null())
        .spawn();
    let mut child = Killed(child.expect("nbdkit starts"));
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(child.0.try_wait().expect("it is ours").is_none(), "nbdkit ended at once");
        thread::sleep(Duration::from_millis(10));
    }
    (child, format!("nbd+unix:///?socket={}", socket.display()))
}

#[test]
fn a_copy_continues_after_a_bad_range_and_names_it() {
    let lab = Lab::new("bad-place");
    lab.drives(&["a", "b"], MEMBER_MIB);
    lab.line("create data --level 1 --assume-clean a b").expect(0);
    let image = noise(9, 6 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let (_server, uri) = with_a_bad_place(&lab, "a");
    let ran = lab.run(&["copy-out", &uri]);
    assert!(ran.code != 0 && ran.err.contains("--skip-bad"), "{ran:?}");
    let ran = lab.run(&["copy-out", "--skip-bad", "--json", &uri]).expect(7);
    let summary: serde_json::Value =
        serde_json::from_str(ran.err.lines().last().expect("a summary")).expect("JSON on standard error");
    let offset = BAD - (1 << 20);
    assert_eq!(summary["skipped"], json!([{ "offset": offset, "bytes": 4096 }]));
    assert_eq!((&summary["skipped_bytes"], &summary["exit"]), (&json!(4096), &json!(7)));
    let mut wanted = image;
    wanted[usize::try_from(offset).expect("small")..][..4096].fill(0);
    assert!(ran.out[..wanted.len()] == wanted);
    let ran = lab.run(&["copy-out", "--skip-bad", &uri]).expect(7);
    assert!(ran.err.contains(&format!("4096 bytes from byte {offset} on could not be read")), "{}", ran.err);
}

/// Members that cannot be written, while this lives.
enum Protected {
    Files(Vec<PathBuf>),
    Mount(PathBuf),
}

impl Protected {
    /// For root permissions mean nothing: there it is a mount. If that is not possible here, the test named here runs in a Linux guest,
    /// and this is nothing.
    fn new(lab: &Lab, folder: &str, names: &[&str], test: &str) -> Option<Self> {
        if !is_root() {
            let files: Vec<PathBuf> = names.iter().map(|name| lab.path(folder).join(name)).collect();
            for file in &files {
                fs::set_permissions(file, Permissions::from_mode(0o444)).expect("it is ours");
            }
            return Some(Self::Files(files));
        }
        let folder = lab.path(folder);
        let mount = |arguments: &[&str]| {
            let done = Command::new("mount").args(arguments).arg(&folder).output();
            done.is_ok_and(|output| output.status.success())
        };
        let path = folder.to_str().expect("UTF-8").to_owned();
        if is_wanted() || !mount(&["--bind", &path]) || !mount(&["-o", "remount,bind,ro"]) {
            // Root of a machine whose kernel does not let it mount, as in most containers.
            rerun(test, "this user may not mount a file system");
            return None;
        }
        Some(Self::Mount(folder))
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        match self {
            Self::Files(files) => {
                for file in files {
                    let _ = fs::set_permissions(file, Permissions::from_mode(0o644));
                }
            }
            Self::Mount(folder) => {
                let _ = Command::new("umount").arg("-l").arg(folder).output();
            }
        }
    }
}

#[test]
fn write_protected_members_are_served_read_only_and_stay_as_they_are() {
    let lab = Lab::new("protected");
    fs::create_dir(lab.path("ro")).expect("a folder");
    let members = ["ro/a", "ro/b", "ro/c"];
    lab.drives(&members, MEMBER_MIB);
    lab.run(&[&["create", "data", "--level", "5"][..], &members].concat()).expect(0);
    let image = noise(3, 5 << 20);
    lab.pipe(&["copy-in", "data"], &image).expect(0);
    let before = lab.fingerprints(&members);
    let test = "write_protected_members_are_served_read_only_and_stay_as_they_are";
    let Some(_protected) = Protected::new(&lab, "ro", &["a", "b", "c"], test) else { return };
    let server = lab.serve(&["data", "--read-only"]);
    assert_eq!(server.ready["arrays"][0]["health"], "optimal");
    let uri = server.uri();
    let out = lab.path("out");
    let copied = Command::new("nbdcopy").arg(&uri).arg(&out).status().expect("nbdcopy");
    assert!(copied.success());
    assert!(fs::read(&out).expect("a copy")[..image.len()] == image);
    lab.line("fail data ro/a").refused(65, &["--read-only"]);
    lab.line("check data").refused(65, &["--read-only"]);
    server.stop();
    assert_eq!(lab.fingerprints(&members), before);
}

#[test]
fn a_write_protected_member_is_not_left_out_without_an_option() {
    let lab = Lab::new("behind");
    fs::create_dir(lab.path("ro")).expect("a folder");
    let members = ["a", "b", "ro/c"];
    lab.drives(&members, MEMBER_MIB);
    lab.run(&[&["create", "data", "--level", "5", "--assume-clean"][..], &members].concat()).expect(0);
    let before = lab.fingerprints(&members);
    let test = "a_write_protected_member_is_not_left_out_without_an_option";
    let Some(protected) = Protected::new(&lab, "ro", &["c"], test) else { return };
    let socket = lab.path("refused.sock");
    let serve = ["serve", "data", "--nbd-unix", socket.to_str().expect("UTF-8")];
    lab.run(&serve).refused(65, &["ro/c", "write-protected", "--degraded", "--read-only"]);
    assert_eq!(lab.fingerprints(&members), before, "nothing was written");
    // A service starts without the array, and with the others.
    lab.line("create more --level 1 --assume-clean --file-size 8M m0 m1").expect(0);
    fs::write(lab.path("openraid.toml"), format!("[server]\nnbd-unix = {socket:?}\n")).expect("room");
    let mut service = lab.command(&["serve", "--json", "--config", "openraid.toml"]);
    let service = support::Server::started(&mut service).expect("ready");
    let served = service.ready["arrays"].as_array().expect("a list");
    assert_eq!((served.len(), &served[0]["name"]), (1, &"more".into()));
    service.stop();
    assert_eq!(lab.fingerprints(&members), before, "nothing was written");
    let server = lab.serve(&["data", "--degraded"]);
    assert_eq!(server.ready["arrays"][0]["health"], "degraded");
    server.stop();
    drop(protected);
}
