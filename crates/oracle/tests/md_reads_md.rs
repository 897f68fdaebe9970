//! Proves the harness: real md makes arrays in one boot, finds them again in the next, and loses nothing that
//! it acknowledged when its power is cut.

use openraid_oracle::{answer, Guest, OracleError};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(120);
const MEMBER_BYTES: u64 = 4 << 20;

/// Name, members, arguments of `mdadm --create`, members to leave out in the degraded assembly.
const ARRAYS: &[(&str, usize, &str, &[usize])] = &[
    ("linear", 3, "--level=linear", &[]),
    ("raid0", 3, "--level=0 --chunk=64", &[]),
    ("raid1", 2, "--level=1 --bitmap=internal", &[0]),
    ("raid4", 3, "--level=4 --chunk=64", &[1]),
    ("raid5", 4, "--level=5 --chunk=16", &[2]),
    ("raid6", 5, "--level=6 --chunk=32", &[0, 3]),
    ("raid6ddf", 4, "--level=6 --layout=ddf-N-restart --chunk=16", &[1, 2]),
    ("raid10", 4, "--level=10 --layout=n2 --chunk=64", &[1, 2]),
    ("raid10f", 3, "--level=10 --layout=f2 --chunk=64", &[1]),
];

/// A folder that goes away with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("openraid-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files is writable");
        Self(path)
    }

    fn image(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        if !path.exists() {
            File::create(&path).and_then(|file| file.set_len(MEMBER_BYTES)).expect("there is room for images");
        }
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn devices(guest: &mut Guest, folder: &Folder, key: &str, members: usize) -> Vec<String> {
    (0..members).map(|m| guest.image(folder.image(&format!("{key}-{m}")))).collect()
}

#[test]
#[ignore = "soak: md against md"]
fn md_finds_what_md_wrote_in_another_boot_and_with_members_missing() {
    let folder = Folder::new("md-reads-md");
    let mut guest = Guest::new();
    for (key, members, arguments, _) in ARRAYS {
        let devices = devices(&mut guest, &folder, key, *members).join(" ");
        let clean = if matches!(*key, "linear" | "raid0") { "" } else { "--assume-clean" };
        guest.script(&format!(
            "create {key} {arguments} --raid-devices={members} {clean} {devices}\nstamp {key} write\nstop {key}"
        ));
    }
    let Some(made) = answer(guest.run(BOOT_TIMEOUT)) else { return };

    let mut guest = Guest::new();
    for (key, members, _, missing) in ARRAYS {
        let all = devices(&mut guest, &folder, key, *members);
        let present: Vec<&str> = (0..*members).filter(|m| !missing.contains(m)).map(|m| all[m].as_str()).collect();
        guest.script(&format!("assemble {key} {}\ncheck {key}\nstamp {key} check\nstop {key}", all.join(" ")));
        if !missing.is_empty() {
            let few = format!("{key}.degraded");
            guest.script(&format!("assemble {few} {}\nstamp {few} check\nstop {few}", present.join(" ")));
        }
    }
    let read = answer(guest.run(BOOT_TIMEOUT)).expect("the packages were there a moment ago");
    println!("created in {:.1} s, read in {:.1} s", made.took.as_secs_f64(), read.took.as_secs_f64());
    for (key, _, _, missing) in ARRAYS {
        let value = |what: &str| read.values.get(&format!("{key}.{what}")).map(String::as_str);
        assert_eq!(value("assembled"), Some("yes"), "{key}");
        assert_eq!(value("size"), made.values.get(&format!("{key}.size")).map(String::as_str), "{key}");
        assert_eq!(value("stamp"), Some("good"), "{key}");
        if !missing.is_empty() {
            assert_eq!(value("mismatch_cnt"), Some("0"), "{key}");
            assert_eq!(value("degraded.state"), Some("clean, degraded"), "{key}");
            assert_eq!(value("degraded.stamp"), Some("good"), "{key}");
        }
    }
}

#[test]
#[ignore = "soak: md against md"]
fn arrays_of_arrays_and_drives_of_large_blocks_can_be_made() {
    let folder = Folder::new("md-nested");
    let mut guest = Guest::new();
    let spans = devices(&mut guest, &folder, "span", 6);
    let large: Vec<String> =
        (0..2).map(|m| guest.image_with_blocks(folder.image(&format!("large-{m}")), 4096)).collect();
    let raid5 = "--level=5 --raid-devices=3 --chunk=16 --assume-clean";
    guest.script(&format!("create a {raid5} {}\ncreate b {raid5} {}", spans[..3].join(" "), spans[3..].join(" ")));
    guest.script("create outer --level=0 --raid-devices=2 --chunk=64 ${md[a]} ${md[b]}");
    guest.script("stamp outer write\nstop outer\ncheck a\ncheck b\nstop a\nstop b");
    guest.script(&format!("assemble a2 {}\nassemble b2 {}", spans[..3].join(" "), spans[4..].join(" ")));
    guest.script("assemble outer2 ${md[a2]} ${md[b2]}\nstamp outer2 check\nstop outer2");
    guest.script(&format!("create large --level=1 --raid-devices=2 --assume-clean --bitmap=none {}", large.join(" ")));
    guest.script("say large.block $(blockdev --getss ${md[large]})\nstamp large write\nstop large");
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let value = |key: &str| output.value(key).expect("was reported").to_owned();
    assert_eq!((value("a.mismatch_cnt"), value("b.mismatch_cnt")), ("0".to_owned(), "0".to_owned()));
    assert_eq!(value("b2.state"), "clean, degraded");
    assert_eq!(value("outer2.stamp"), "good");
    assert_eq!(value("large.block"), "4096");
    assert_eq!(value("large.stamp"), "good");
}

#[test]
fn a_block_that_was_changed_without_md_is_found() {
    let folder = Folder::new("md-planted");
    let mut guest = Guest::new();
    let members = devices(&mut guest, &folder, "m", 3);
    let all = members.join(" ");
    // Data begins 1 MiB into the member; in row 128 of chunks, 2 MiB further on, parity is on the first member.
    guest.script(&format!(
        "create a --level=5 --raid-devices=3 --chunk=16 --data-offset=1M --assume-clean {all}\nstamp a write\nstop a\n\
         printf spoilt | dd of={} bs=1M seek=3 conv=notrunc,fsync status=none\n\
         assemble a {all}\ncheck a\nstamp a check\nstop a",
        members[1]
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.value("a.mismatch_cnt").expect("was reported"), "8", "one stripe of 4 KiB is inconsistent");
    assert!(output.value("a.stamp").expect("was reported").contains("foreign=1"), "{:?}", output.values);
}

#[test]
#[ignore = "soak: md against md"]
fn acknowledged_writes_survive_a_power_cut() {
    let folder = Folder::new("md-power-cut");
    let mut guest = Guest::new();
    let members: Vec<String> = (0..3).map(|m| guest.disk(folder.image(&format!("m{m}")))).collect();
    let all = members.join(" ");
    guest.script(&format!(
        "create a --level=5 --raid-devices=3 --chunk=16 --assume-clean {all}\nstamp a write\nsay ready yes"
    ));
    guest.script("\"$STAMP\" churn ${md[a]} /run/out/log 3600");
    let Some(mut running) = answer(guest.start()) else { return };
    running.wait_for("ready", BOOT_TIMEOUT).expect("the array is made");
    while running.file("log").expect("the log is readable").lines().count() < 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    running.power_cut();
    // Only now is the log complete: each intent was in it before its write was issued.
    let log = running.file("log").expect("the log is readable");
    let log_file = folder.0.join("log");
    fs::write(&log_file, &log).expect("there is room for the log");

    let mut guest = Guest::new();
    let all: Vec<String> = (0..3).map(|m| guest.disk(folder.image(&format!("m{m}")))).collect();
    guest.script(&format!(
        "mdadm --examine {} | grep -q 'State : active' && say dirty yes\nassemble a {}\nsettle a\n\
         stamp a verify {}\ncheck a\nstop a",
        all[0],
        all.join(" "),
        log_file.display()
    ));
    let output = answer(guest.run(BOOT_TIMEOUT)).expect("the packages were there a moment ago");
    assert_eq!(output.value("dirty").expect("an array cut amid writes is dirty"), "yes");
    assert_eq!(output.value("a.stamp").expect("was reported"), "good");
    assert_eq!(output.value("a.mismatch_cnt").expect("was reported"), "0", "the resync made the parity right");
}

#[test]
fn a_guest_that_hangs_is_killed_with_all_its_processes() {
    let mut guest = Guest::new();
    guest.script("say here yes\nsleep 3600");
    let Some(mut running) = answer(guest.start()) else { return };
    let group = running.id();
    running.wait_for("here", BOOT_TIMEOUT).expect("the job has begun");
    match running.wait(Duration::ZERO) {
        Err(OracleError::Timeout { .. }) => {}
        other => panic!("expected a timeout, got {other:?}"),
    }
    let left = fs::read_dir("/proc").expect("proc is mounted").flatten().filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        // After the name: state, parent, process group. A dead process that waits for its reaper does not count.
        fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
    });
    assert_eq!(left.count(), 0, "processes of the guest live on");
}

#[test]
fn a_failing_job_says_which_command_failed() {
    let mut guest = Guest::new();
    guest.script("false_command_of_this_test");
    match guest.run(BOOT_TIMEOUT) {
        Err(error @ OracleError::Missing { .. }) => drop(answer::<()>(Err(error))),
        Err(OracleError::JobFailed { log, .. }) => assert!(log.contains("false_command_of_this_test"), "{log}"),
        other => panic!("expected a failed job, got {other:?}"),
    }
}
