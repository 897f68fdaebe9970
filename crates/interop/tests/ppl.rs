//! The partial parity log between the engine and md: either repairs the stripes that the other was writing when it was
//! killed, with all members and with one missing.

use openraid_core::admin::Health;
use openraid_interop::{dump_all, machine, stamp_array, verified, write_logged, Folder, LOGGED_WRITES};
use openraid_oracle::stamp::WriteLog;
use openraid_oracle::{answer, Guest};
use openraid_sim::drive::DriveSpec;
use openraid_sim::oracle::Members;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::{ArrayShape, Rig, RigOptions, World};
use openraid_units::{ArrayId, Nanos, Sectors};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const MEMBERS: usize = 4;
const MEMBER_BYTES: u64 = 8 << 20;
const WRITTEN_BYTES: u64 = 1 << 20;
const LOG_LINES: usize = 200;
const SEED: u64 = 21;
const SPANS: u64 = 2;

/// The engine is killed in the middle of writes of up to 32 KiB, after this many steps of the last ones; with
/// `u32::MAX` when the last of them was answered.
fn killed_engine(seed: u64, steps: u32, key: &str, folder: &Folder) -> (Vec<PathBuf>, String) {
    let mut rig = Rig::new(ArrayShape::raid5(4, Sectors::kib(16)), RigOptions { ppl: true, ..RigOptions::new(seed) });
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    let sectors = (rig.session.capacity() / 512).min(1024);
    let answered = if steps == u32::MAX { LOGGED_WRITES } else { 40 };
    let log = write_logged((&mut rig.world, rig.array), (seed, SEED), sectors, answered);
    for _ in 0..if steps == u32::MAX { 0 } else { steps } {
        rig.world.step();
    }
    rig.world.kill();
    (dump_all(&rig.world, key, folder), log)
}

#[test]
fn md_puts_right_what_the_engine_was_writing() {
    let folder = Folder::new("ppl-engine-killed");
    let mut guest = Guest::new();
    guest.without_raid6();
    let mut keys = Vec::new();
    // At the end of all writes, and in the middle of some.
    for (number, steps) in [u32::MAX, 20, 110].into_iter().enumerate() {
        for missing in [None, Some(number % MEMBERS)] {
            let key = format!("k{number}{}", if missing.is_some() { "m" } else { "" });
            let (paths, log) = killed_engine(SEED + number as u64, steps, &key, &folder);
            let log_path = folder.image(&key, 99);
            std::fs::write(&log_path, log).expect("there is room for the log");
            let there = paths.iter().enumerate().filter(|(slot, _)| Some(*slot) != missing);
            let devices: Vec<String> = there.map(|(_, path)| guest.image(path)).collect();
            // An administrator's next attempts must do no harm either.
            let force = if number == 1 { "--force " } else { "" };
            guest.script(&format!(
                "assemble {key} {force}{}\nif assembled {key}; then settle {key}; stamp {key} verify {} {SEED}",
                devices.join(" "),
                log_path.display()
            ));
            let check = if missing.is_none() { format!("check {key};") } else { String::new() };
            let resyncs = format!("$(dmesg | grep -c \"resync of RAID array ${{md[{key}]#/dev/}}\" || true)");
            guest.script(&format!("{check} say {key}.resyncs \"{resyncs}\"; stop {key}; fi"));
            keys.push((key, missing, steps == u32::MAX));
        }
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let value = |key: String| output.text(&key);
    for (key, missing, quiet) in keys {
        assert_eq!(value(format!("{key}.assembled")), "yes", "{key}: {}", value(format!("{key}.refusal")));
        assert_eq!(value(format!("{key}.stamp")), "good", "{key}");
        // A log that md does not believe in full makes it resync, and so does one that was still on its way.
        assert!(!quiet || value(format!("{key}.resyncs")) == "0", "{key}: {:?}", output.values);
        if missing.is_none() {
            assert_eq!(value(format!("{key}.mismatch_cnt")), "0", "{key}");
        }
    }
}

/// The spans of an array are killed in the middle of writes; hosts see the stripe over the spans. If `missing` says so,
/// one member of each span is missing.
fn script_spans(guest: &mut Guest, folder: &Folder, key: &str, missing: bool) {
    let shape = ArrayShape::raid5(3, Sectors::kib(16));
    let options = |span: u64| RigOptions { ppl: true, ..RigOptions::new(SEED * 100 + span) };
    let mut world = World::new(options(0).world);
    let spans: Vec<ArrayId> = (0..SPANS)
        .map(|span| {
            // Room for the log, too.
            let capacity = BEFORE_DATA + shape.member_data(0) + Sectors::mib(1);
            let drives: Vec<_> = (0..shape.members).map(|_| world.add_drive(DriveSpec::new(capacity))).collect();
            world.create(&shape, &drives, &options(span))
        })
        .collect();
    world.run_until_idle();
    let array = world.create_nested(&spans, Sectors::kib(16), SEED);
    stamp_array(&mut world, array, SEED);
    world.run_until_idle();
    let log = write_logged((&mut world, array), (SEED, SEED), 1024, 40);
    (0..110).for_each(|_| assert!(world.step()));
    world.kill();
    let log_path = folder.image(key, 99);
    std::fs::write(&log_path, log).expect("there is room for the log");
    let paths = dump_all(&world, key, folder);
    for (span, members) in paths.chunks(usize::from(shape.members)).enumerate() {
        let there = &members[usize::from(missing)..];
        let devices: Vec<String> = there.iter().map(|path| guest.image(path)).collect();
        guest.script(&format!("assemble {key}span{span} {}", devices.join(" ")));
    }
    let over: Vec<String> = (0..SPANS).map(|span| format!("${{md[{key}span{span}]:-}}")).collect();
    guest.script(&format!(
        "assemble {key} {}\nif assembled {key}; then stamp {key} verify {} {SEED}; stop {key}; fi",
        over.join(" "),
        log_path.display()
    ));
    for span in 0..SPANS {
        let check = if missing { String::new() } else { format!("settle {key}span{span}; check {key}span{span};") };
        guest.script(&format!("if assembled {key}span{span}; then {check} stop {key}span{span}; fi"));
    }
}

#[test]
fn md_puts_right_the_spans_of_what_the_engine_was_writing() {
    let folder = Folder::new("ppl-spans-killed");
    let mut guest = Guest::new();
    guest.without_raid6();
    for (key, missing) in [("whole", false), ("short", true)] {
        script_spans(&mut guest, &folder, key, missing);
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let value = |key: String| output.text(&key);
    for key in ["whole", "short"] {
        assert_eq!(value(format!("{key}.assembled")), "yes", "{key}: {:?}", output.values);
        assert_eq!(value(format!("{key}.stamp")), "good", "{key}");
    }
    for span in 0..SPANS {
        assert_eq!(value(format!("wholespan{span}.mismatch_cnt")), "0", "span {span}");
    }
}

#[test]
fn the_engine_puts_right_what_md_was_writing() {
    let folder = Folder::new("ppl-md-killed");
    let keys = ["near", "wide"];
    let mut guest = Guest::new();
    guest.without_raid6();
    for (key, chunk) in keys.into_iter().zip([16, 64]) {
        let disks: Vec<String> =
            (0..MEMBERS).map(|member| guest.disk(folder.empty(key, member, MEMBER_BYTES))).collect();
        guest.script(&format!(
            "create {key} --level=5 --chunk={chunk} --consistency-policy=ppl --assume-clean --raid-devices={MEMBERS} {}\n\
             stamp {key} write {SEED}\n\
             \"$STAMP\" churn ${{md[{key}]}} /run/out/log.{key} 3600 {SEED} 3 64 {WRITTEN_BYTES} >churn.{key}.txt 2>&1 &",
            disks.join(" ")
        ));
    }
    guest.script("say ready yes\nwait");
    let Some(mut running) = answer(guest.start()) else { return };
    running.wait_for("ready", BOOT_TIMEOUT).expect("the arrays are made");
    let lines = |key: &str| running.file(&format!("log.{key}")).expect("the log is readable").lines().count();
    let begin = std::time::Instant::now();
    while keys.iter().any(|key| lines(key) < LOG_LINES) {
        assert!(begin.elapsed() < BOOT_TIMEOUT, "md writes nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
    running.power_cut();
    for key in keys {
        let log = WriteLog::parse(&running.file(&format!("log.{key}")).expect("the log is readable"));
        let paths: Vec<PathBuf> = (0..MEMBERS).map(|member| folder.image(key, member)).collect();
        for missing in [None, Some(0), Some(1), Some(2), Some(3)] {
            let there: Vec<PathBuf> = paths
                .iter()
                .enumerate()
                .filter(|(slot, _)| Some(*slot) != missing)
                .map(|(_, path)| path.clone())
                .collect();
            for force in [false, true] {
                let mut world = machine(&there, SEED);
                let array = world.assemble(force).unwrap_or_else(|error| panic!("{key} without {missing:?}: {error}"));
                let status = world.status(array).expect("it runs");
                assert!(status.task.is_none(), "{key}: a resync although the logs say what was being written");
                let health = if missing.is_none() { Health::Optimal } else { Health::Degraded };
                assert_eq!(status.health, health);
                let complaints = Members::of(&world, array).complaints();
                assert!(missing.is_some() || complaints.is_empty(), "{key}: {complaints:#?}");
                let report = verified(&mut world, array, SEED, &log, &folder);
                assert!(report.is_good() && log.acknowledged_sectors() > 0, "{key} without {missing:?}: {report}");
                // It is served on, and stops in good order.
                stamp_array(&mut world, array, SEED);
                world.run_for(Nanos::from_secs(1));
            }
        }
    }
}
