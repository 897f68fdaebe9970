//! One side is killed in the middle of writes, and the other takes over: no acknowledged write is lost, and a resync of
//! only the marked bits of the bitmap restores the redundancy.

use openraid_core::admin::Health;
use openraid_core::array::assemble::AssembleError;
use openraid_interop::{dump_all, machine, stamp_array, verified, write_logged, Folder};
use openraid_oracle::stamp::WriteLog;
use openraid_oracle::{answer, Guest};
use openraid_sim::oracle::Members;
use openraid_sim::world::arrays::ArrayStartError;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::Sectors;
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const MEMBER_BYTES: u64 = 8 << 20;
const SEED: u64 = 11;
/// Only the start of an array is written to, so that a bitmap has something to leave out.
const WRITTEN_BYTES: u64 = 1 << 20;
const LOG_LINES: usize = 150;

/// Name, members, arguments of `mdadm --create`.
const KILLED: &[(&str, usize, &str)] = &[
    ("raid5", 3, "--level=5 --chunk=16 --bitmap=none"),
    ("raid5b", 3, "--level=5 --chunk=16 --bitmap=internal --bitmap-chunk=64K"),
    ("raid6b", 4, "--level=6 --chunk=16 --bitmap=internal --bitmap-chunk=64K"),
    ("raid1b", 2, "--level=1 --bitmap=internal --bitmap-chunk=64K"),
    ("raid10b", 3, "--level=10 --layout=n2 --chunk=64 --bitmap=internal --bitmap-chunk=64K"),
];

#[test]
fn the_engine_takes_over_from_md_that_was_killed_while_it_wrote() {
    let folder = Folder::new("md-killed");
    let mut guest = Guest::new();
    let images = |key: &str, count: usize| -> Vec<PathBuf> { (0..count).map(|n| folder.image(key, n)).collect() };
    for (key, members, arguments) in KILLED {
        let disks: Vec<String> =
            (0..*members).map(|member| guest.disk(folder.empty(key, member, MEMBER_BYTES))).collect();
        guest.script(&format!(
            "create {key} {arguments} --assume-clean --raid-devices={members} {}\nstamp {key} write {SEED}",
            disks.join(" ")
        ));
    }
    // Wait until md has cleared the bits of the initial fill, so that only later writes are marked.
    guest.script("sleep 17");
    for (key, _, _) in KILLED {
        // However slow this machine is: an array that is written to is not called clean between two writes.
        guest.script(&format!("echo 3600 >\"/sys/block/${{md[{key}]##*/}}/md/safe_mode_delay\""));
        guest.script(&format!(
            "\"$STAMP\" churn ${{md[{key}]}} /run/out/log.{key} 3600 {SEED} 2 32 {WRITTEN_BYTES} >/dev/null 2>&1 &"
        ));
    }
    guest.script("say ready yes\nwait");
    let Some(mut running) = answer(guest.start()) else { return };
    running.wait_for("ready", BOOT_TIMEOUT).expect("the arrays are made");
    let lines = |key: &str| running.file(&format!("log.{key}")).expect("the log is readable").lines().count();
    let begin = std::time::Instant::now();
    while KILLED.iter().any(|(key, _, _)| lines(key) < LOG_LINES) {
        assert!(begin.elapsed() < BOOT_TIMEOUT, "md writes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.power_cut();
    for (key, members, arguments) in KILLED {
        let log = WriteLog::parse(&running.file(&format!("log.{key}")).expect("the log is readable"));
        let paths = images(key, *members);
        let mut world = machine(&paths, SEED);
        let array = world.assemble(false).unwrap_or_else(|error| panic!("{key}: {error}"));
        let status = world.status(array).expect("it runs");
        assert!(status.active || status.consistent_to < Sectors::MAX, "{key} was killed while it wrote");
        world.run_until_idle();
        let status = world.status(array).expect("it runs");
        assert_eq!(status.health, Health::Optimal, "{key}");
        let complaints = Members::of(&world, array).complaints();
        assert!(complaints.is_empty(), "{key}: {complaints:#?}");
        let all = MEMBER_BYTES / 512;
        let read: u64 = status.members.iter().map(|member| member.sectors_read).max().expect("members");
        if arguments.contains("internal") {
            assert!(read > 0 && read < all / 2, "{key}: {read} of {all} sectors of a member were read");
        } else {
            assert!(read > all / 2, "{key}: only {read} of {all} sectors of a member were read");
        }
        let report = verified(&mut world, array, SEED, &log, &folder);
        assert!(report.is_good() && log.acknowledged_sectors() > 0, "{key}: {report:?}");

        // With a member missing, the right content is unknown.
        if arguments.contains("level=5") || arguments.contains("level=6") {
            let mut world = machine(&paths[1..], SEED);
            match world.assemble(false) {
                Err(ArrayStartError::Assemble(AssembleError::DirtyDegraded { .. })) => {}
                other => panic!("{key}: dirty and degraded is refused, not {other:?}"),
            }
            world.assemble(true).unwrap_or_else(|error| panic!("{key}, by force: {error}"));
        }
    }
}

/// Writes of a second generation at random places, logged; the engine is killed when the last ones are under way.
fn killed_engine(shape: ArrayShape, bitmap: bool, key: &str, folder: &Folder) -> (Vec<PathBuf>, String) {
    let mut rig = Rig::new(shape, RigOptions { bitmap, ..RigOptions::new(SEED) });
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    rig.world.run_until_idle();
    let sectors = rig.session.capacity() / 512;
    let log = write_logged((&mut rig.world, rig.array), (SEED, SEED), sectors, 40);
    for _ in 0..25 {
        rig.world.step();
    }
    rig.world.kill();
    (dump_all(&rig.world, key, folder), log)
}

#[test]
fn md_takes_over_from_the_engine_that_was_killed_while_it_wrote() {
    let folder = Folder::new("engine-killed");
    let chunk = Sectors::kib(16);
    let cases = [
        ("raid5", ArrayShape::raid5(4, chunk), false),
        ("raid5b", ArrayShape::raid5(4, chunk), true),
        ("raid6b", ArrayShape::raid6(5, chunk), true),
        ("raid1", ArrayShape::raid1(2), false),
        ("raid1b", ArrayShape::raid1(3), true),
        ("raid10b", ArrayShape::raid10(0x102, 3, chunk), true),
    ];
    let mut guest = Guest::new();
    for (key, shape, bitmap) in cases {
        let (paths, log) = killed_engine(shape, bitmap, key, &folder);
        let log_path = folder.image(key, 99);
        std::fs::write(&log_path, log).expect("there is room for the log");
        let devices: Vec<String> = paths.iter().map(|path| guest.image(path)).collect();
        let few = devices[1..].join(" ");
        if key.starts_with("raid5") || key.starts_with("raid6") {
            guest.script(&format!("assemble {key}_few {few}\nif assembled {key}_few; then stop {key}_few; fi"));
        }
        guest.script(&format!(
            "assemble {key} {}\nif assembled {key}; then settle {key}; stamp {key} verify {} {SEED}; check {key}; stop {key}; fi",
            devices.join(" "),
            log_path.display()
        ));
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let value = |key: String| output.text(&key);
    for (key, shape, _) in cases {
        assert_eq!(value(format!("{key}.assembled")), "yes", "{shape}: {}", value(format!("{key}.refusal")));
        assert_eq!(value(format!("{key}.stamp")), "good", "{shape}");
        assert_eq!(value(format!("{key}.mismatch_cnt")), "0", "{shape}");
        if key.starts_with("raid5") || key.starts_with("raid6") {
            assert_eq!(value(format!("{key}_few.assembled")), "no", "{shape}: dirty and degraded is refused");
        }
    }
}
