//! Linux md and arrays whose writes the journal promises: md takes none of their members while it holds something for
//! them, and takes the array as any other when it was stopped in good order.

use openraid_core::admin::{AdminCommand, Policy, WriteCache};
use openraid_core::limits::Limits;
use openraid_format::{FeatureMap, MinorVersion, Superblock};
use openraid_interop::{dump_all, stamp_array, Folder};
use openraid_oracle::stamp::stamp;
use openraid_oracle::{answer, Guest};
use openraid_sim::{Random, Rig, RigOptions, Shape};
use openraid_units::{Bytes, Nanos, Sectors};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const SEED: u64 = 17;
const CHUNK: Sectors = Sectors::kib(16);
const WRITES: u64 = 40;

fn cases() -> [(&'static str, Shape); 4] {
    [
        ("raid5", Shape::raid5(4, CHUNK)),
        ("raid6", Shape::raid6(5, CHUNK)),
        ("raid1", Shape::raid1(2)),
        ("raid10", Shape::raid10(0x102, 4, CHUNK)),
    ]
}

/// An array full of stamps, with a second generation of some that the journal has promised, and a log of all writes.
fn journalled(shape: Shape) -> (Rig, String) {
    let mut options = RigOptions::new(SEED);
    let small = Limits::small();
    let (cache, journal) = (Bytes::mib(1), Bytes::kib(256));
    options.world.limits = Limits { pool: small.pool + cache + journal, cache, journal, ..small };
    let mut rig = Rig::new(shape, options);
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    rig.world.run_until_idle();
    let devices = rig.world.make_journal(1, Sectors::mib(8));
    rig.world.attach_journal(&devices).unwrap_or_else(|fault| panic!("{fault:?}"));
    rig.world.run_for(Nanos::from_millis(50));
    let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("it has a journal");
    let sectors = rig.session.capacity() / 512;
    let (mut random, mut log) = (Random::new(SEED), String::new());
    for generation in 1..=WRITES {
        let len = 1 + random.below(16);
        let lba = random.below(sectors - len);
        let mut bytes = vec![0; usize::try_from(len * 512).expect("a write is small")];
        stamp(&mut bytes, SEED, lba, generation);
        writeln!(log, "I {lba} {len} {generation}").expect("a string takes it");
        rig.world.write(rig.array, lba * 512, &bytes).expect("the array takes writes");
        writeln!(log, "A {lba} {len} {generation}").expect("a string takes it");
    }
    (rig, log)
}

/// Does the superblock of a member say that the journal holds something for its array?
fn is_marked(path: &Path) -> bool {
    let bytes = std::fs::read(path).expect("the image can be read");
    let superblock = Superblock::decode(&bytes[4096..], MinorVersion::V1_2, Sectors(bytes.len() as u64 / 512));
    superblock.expect("a good superblock").features.contains(FeatureMap::CONTROLLER_JOURNAL)
}

/// Try something, and say whether any array has come up by it.
const ATTEMPT: &str = r#"
attempt() {
    local name=$1 up=no state
    shift
    "$@" </dev/null >"attempt.$name.txt" 2>&1 || true
    for state in /sys/block/md*/md/array_state; do
        [ -e "$state" ] || continue
        case $(cat "$state") in clear | inactive | none) ;; *) up=yes ;; esac
    done
    say "$name.up" "$up"
    say "$name.said" "$(tr '\n' ' ' <"attempt.$name.txt")"
    mdadm --stop --scan >/dev/null 2>&1 || true
}
"#;

#[test]
fn md_takes_no_member_of_an_array_that_was_promised_something_and_all_of_them_when_it_was_stopped() {
    let folder = Folder::new("journalled");
    let mut guest = Guest::new();
    guest.script(ATTEMPT);
    let mut attempts = Vec::new();
    let mut orderly = String::new();
    for (key, shape) in cases() {
        let (mut rig, _) = journalled(shape);
        rig.world.kill();
        let killed: Vec<PathBuf> = dump_all(&rig.world, &format!("{key}k"), &folder);
        let members = &killed[..usize::from(shape.members)];
        assert!(members.iter().all(|path| is_marked(path)), "{shape}: promises without the mark");
        let devices: Vec<String> = members.iter().map(|path| guest.image(path)).collect();
        let all = devices.join(" ");
        let mut tries: Vec<(String, String)> = Vec::new();
        let mut attempt = |name: String, words: String| tries.push((name, words));
        attempt(format!("{key}_run"), format!("mdadm --assemble /dev/md100 --run {all}"));
        attempt(format!("{key}_force"), format!("mdadm --assemble /dev/md100 --run --force {all}"));
        for (n, device) in devices.iter().enumerate() {
            attempt(format!("{key}_one{n}"), format!("mdadm --assemble /dev/md100 --run --force {device}"));
            attempt(format!("{key}_inc{n}"), format!("mdadm --incremental --run {device}"));
        }
        for (name, words) in tries {
            guest.script(&format!("attempt {name} {words}"));
            attempts.push(name);
        }
        for device in &devices {
            guest.script(&format!("mdadm --incremental {device} </dev/null >/dev/null 2>&1 || true"));
        }
        guest.script(&format!("attempt {key}_incall mdadm --incremental --run --scan"));
        attempts.push(format!("{key}_incall"));

        let (mut rig, log) = journalled(shape);
        rig.world.admin(AdminCommand::Stop { array: rig.array }).expect("the array stops");
        let stopped = dump_all(&rig.world, &format!("{key}s"), &folder);
        let members = &stopped[..usize::from(shape.members)];
        assert!(!members.iter().any(|path| is_marked(path)), "{shape}: the mark stays behind");
        let log_path = folder.image(key, 99);
        std::fs::write(&log_path, log).expect("there is room for the log");
        let devices: Vec<String> = members.iter().map(|path| guest.image(path)).collect();
        write!(
            orderly,
            "assemble {key} {}\nif assembled {key}; then settle {key}; stamp {key} verify {} {SEED}; check {key}; stop {key}; fi\n",
            devices.join(" "),
            log_path.display()
        )
        .expect("a string takes it");
    }
    guest.script(&orderly);
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let value = |key: String| output.text(&key);
    for name in attempts {
        assert_eq!(value(format!("{name}.up")), "no", "{name}: {}", value(format!("{name}.said")));
    }
    for (key, shape) in cases() {
        assert_eq!(value(format!("{key}.assembled")), "yes", "{shape}: {}", value(format!("{key}.refusal")));
        assert_eq!(value(format!("{key}.stamp")), "good", "{shape}");
        assert_eq!(value(format!("{key}.mismatch_cnt")), "0", "{shape}");
    }
}
