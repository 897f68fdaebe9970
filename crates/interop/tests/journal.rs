//! Linux md and arrays whose acknowledged writes are in the journal: md refuses their members while the journal holds
//! data for them, and accepts the array as any other after a clean stop.

use openraid_core::admin::{AdminCommand, Policy, WriteCache};
use openraid_core::geometry::Level;
use openraid_core::limits::Limits;
use openraid_format::{superblock_lba, FeatureMap, MinorVersion, Superblock};
use openraid_interop::{dump_all, load, stamp_array, verified, Folder};
use openraid_oracle::stamp::{stamp, WriteLog};
use openraid_oracle::{answer, Guest, GuestOutput};
use openraid_sim::drive::DriveSpec;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::world::WorldSpec;
use openraid_sim::{ArrayShape, Random, RigOptions, World};
use openraid_units::{ArrayId, Bytes, DriveId, Nanos, Sectors};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(600);
const SEED: u64 = 17;
const CHUNK: Sectors = Sectors::kib(16);
const WRITES: u64 = 40;

/// An array of a case.
#[derive(Clone, Copy)]
struct Case {
    key: &'static str,
    /// The shape of each span.
    shape: ArrayShape,
    /// How many spans there are; one is no nesting.
    spans: u64,
    metadata: MinorVersion,
    /// Each of its members is tried alone, too.
    alone: bool,
}

fn cases() -> [Case; 9] {
    let case = |key, shape, spans| Case { key, shape, spans, metadata: MinorVersion::V1_2, alone: true };
    // What differs from one of the others in the place of the superblock, or in a number, is tried as a whole only.
    let whole = |key, shape, spans, metadata| Case { metadata, alone: false, ..case(key, shape, spans) };
    [
        case("raid5", ArrayShape::raid5(4, CHUNK), 1),
        case("raid6", ArrayShape::raid6(5, CHUNK), 1),
        case("raid1", ArrayShape::raid1(2), 1),
        case("raid10", ArrayShape::raid10(0x102, 4, CHUNK), 1),
        case("raid50", ArrayShape::raid5(3, CHUNK), 2),
        whole("raid4", ArrayShape::new(Level::Raid4, 0, 4, CHUNK), 1, MinorVersion::V1_2),
        whole("raid60", ArrayShape::raid6(4, CHUNK), 2, MinorVersion::V1_2),
        whole("raid5at10", ArrayShape::raid5(3, CHUNK), 1, MinorVersion::V1_0),
        whole("raid6at11", ArrayShape::raid6(4, CHUNK), 1, MinorVersion::V1_1),
    ]
}

/// A machine with an array full of stamps, and a second generation of some that the journal has promised.
struct Machine {
    world: World,
    /// The array that hosts see.
    array: ArrayId,
    /// Its spans, or itself.
    sets: Vec<ArrayId>,
    /// All writes.
    log: String,
}

fn limits() -> Limits {
    let (small, cache, journal) = (Limits::small(), Bytes::mib(1), Bytes::kib(256));
    Limits { pool: small.pool + cache + journal, cache, journal, ..small }
}

fn journalled(Case { shape, spans, metadata, .. }: Case) -> Machine {
    let mut options = RigOptions { metadata, ..RigOptions::new(SEED) };
    options.world.limits = limits();
    let mut world = World::new(options.world.clone());
    let mut sets = Vec::new();
    for span in 0..spans {
        options.world.seed = SEED * 100 + span;
        let drives: Vec<DriveId> = (0..shape.members)
            .map(|slot| world.add_drive(DriveSpec::new(BEFORE_DATA + shape.member_data(slot))))
            .collect();
        sets.push(world.create(&shape, &drives, &options));
    }
    let array = if spans > 1 { world.create_nested(&sets, CHUNK, SEED) } else { sets[0] };
    world.run_until_idle();
    stamp_array(&mut world, array, SEED);
    world.run_until_idle();
    let devices = world.make_journal(1, Sectors::mib(8));
    world.attach_journal(&devices).unwrap_or_else(|fault| panic!("{fault:?}"));
    world.run_for(Nanos::from_millis(50));
    for array in sets.iter().copied() {
        let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
        world.admin(AdminCommand::SetPolicy { array, policy }).expect("it has a journal");
    }
    let sectors = world.controller().capacity(array).expect("it runs").sectors_floor().get();
    let (mut random, mut log) = (Random::new(SEED), String::new());
    for generation in 1..=WRITES {
        let len = 1 + random.below(16);
        let lba = random.below(sectors - len);
        let mut bytes = vec![0; usize::try_from(len * 512).expect("a write is small")];
        stamp(&mut bytes, SEED, lba, generation);
        writeln!(log, "I {lba} {len} {generation}").expect("a string takes it");
        world.write(array, lba * 512, &bytes).expect("the array takes writes");
        writeln!(log, "A {lba} {len} {generation}").expect("a string takes it");
    }
    Machine { world, array, sets, log }
}

/// The images of the members of a machine, span by span; the journal is left out.
fn members(machine: &Machine, shape: ArrayShape, key: &str, folder: &Folder) -> Vec<Vec<PathBuf>> {
    let images = dump_all(&machine.world, key, folder);
    let all = &images[..machine.sets.len() * usize::from(shape.members)];
    all.chunks(usize::from(shape.members)).map(<[PathBuf]>::to_vec).collect()
}

/// The engine starts the array with its journal: acknowledged writes are there.
fn judge_promises(members: &[PathBuf], journal: &Path, log: &WriteLog, folder: &Folder) {
    let mut world = World::new(WorldSpec { limits: limits(), ..WorldSpec::new(SEED) });
    for member in members {
        load(&mut world, member);
    }
    let journal = load(&mut world, journal);
    world.attach_journal(&[journal]).unwrap_or_else(|fault| panic!("{fault:?}"));
    let array = world.assemble(false).unwrap_or_else(|error| panic!("{members:?}: {error}"));
    let report = verified(&mut world, array, SEED, log, folder);
    assert!(report.is_good(), "{members:?}: {report:?}");
}

/// Does the superblock of a member say that the journal holds something for its array?
fn is_marked(path: &Path, metadata: MinorVersion) -> bool {
    let bytes = std::fs::read(path).expect("the image can be read");
    let capacity = Sectors(bytes.len() as u64 / 512);
    let lba = superblock_lba(metadata, capacity).expect("there is room for it");
    let at = usize::try_from(lba.get() * 512).expect("a small image");
    let superblock = Superblock::decode(&bytes[at..], metadata, capacity);
    superblock.expect("a good superblock").features.contains(FeatureMap::CONTROLLER_JOURNAL)
}

/// Try something, and say whether any array has come up by it: an array that is up is still up at a second look. One that md
/// is just taking away can seem to be up at the first.
const ATTEMPT: &str = r#"
running() {
    local state word
    states=
    for state in /sys/block/md*/md/array_state; do
        # One that is just going away has no state.
        word= && read -r word 2>/dev/null <"$state" || true
        case $word in "" | clear | inactive) ;; *) states="$states $state $word" ;; esac
    done
    [ -n "$states" ]
}
attempt() {
    local name=$1 up=no states
    shift
    "$@" </dev/null >"attempt.$name.txt" 2>&1 || true
    if running && sleep 0.3 && running; then up=yes; fi
    say "$name.up" "$up"
    say "$name.said" "$(tr '\n' ' ' <"attempt.$name.txt")$states"
    mdadm --stop --scan >/dev/null 2>&1 || true
}
"#;

/// An attempt with the members of one md array: a name, the commands before it, and its words.
type Attempt = (String, String, String);

fn attempts_with_all(key: &str, devices: &[String]) -> Vec<Attempt> {
    let all = devices.join(" ");
    let each =
        devices.iter().map(|device| format!("mdadm --incremental {device} </dev/null >/dev/null 2>&1 || true\n"));
    vec![
        (format!("{key}_run"), String::new(), format!("mdadm --assemble /dev/md100 --run {all}")),
        (format!("{key}_force"), String::new(), format!("mdadm --assemble /dev/md100 --run --force {all}")),
        (format!("{key}_incall"), each.collect(), "mdadm --incremental --run --scan".into()),
    ]
}

fn attempts_with_one(key: &str, devices: &[String]) -> Vec<Attempt> {
    let both = devices.iter().enumerate().flat_map(|(n, device)| {
        let forced = format!("mdadm --assemble /dev/md100 --run --force {device}");
        [(format!("{key}_one{n}"), forced), (format!("{key}_inc{n}"), format!("mdadm --incremental --run {device}"))]
    });
    both.map(|(name, words)| (name, String::new(), words)).collect()
}

/// Put all that is tried into the script; returns the names.
fn script_attempts(guest: &mut Guest, attempts: Vec<Attempt>) -> Vec<String> {
    let scripted = attempts.into_iter().map(|(name, before, words)| {
        guest.script(&format!("{before}attempt {name} {words}"));
        name
    });
    scripted.collect()
}

/// Assemble the spans and the array over them, compare the content with the log, look for parity mismatches.
fn script_orderly(guest: &mut Guest, key: &str, spans: &[Vec<String>], log: &Path) {
    let names: Vec<String> = (0..spans.len()).map(|span| format!("{key}span{span}")).collect();
    for (name, devices) in names.iter().zip(spans) {
        guest.script(&format!("assemble {name} {}", devices.join(" ")));
    }
    let top = if spans.len() > 1 { key.to_owned() } else { names[0].clone() };
    if spans.len() > 1 {
        let over: Vec<String> = names.iter().map(|name| format!("${{md[{name}]:-}}")).collect();
        guest.script(&format!("assemble {key} {}", over.join(" ")));
    }
    guest.script(&format!("if assembled {top}; then settle {top}; stamp {top} verify {} {SEED}; fi", log.display()));
    if spans.len() > 1 {
        guest.script(&format!("if assembled {key}; then stop {key}; fi"));
    }
    for name in names {
        guest.script(&format!("if assembled {name}; then check {name}; stop {name}; fi"));
    }
}

/// What md says of the arrays that were stopped in good order.
fn judge_orderly(output: &GuestOutput) {
    let value = |key: String| output.text(&key);
    for Case { key, shape, spans, .. } in cases() {
        let top = if spans > 1 { key.to_owned() } else { format!("{key}span0") };
        assert_eq!(value(format!("{top}.assembled")), "yes", "{shape}: {}", value(format!("{top}.refusal")));
        assert_eq!(value(format!("{top}.stamp")), "good", "{shape}");
        for span in 0..spans {
            assert_eq!(value(format!("{key}span{span}.mismatch_cnt")), "0", "{shape}");
        }
    }
}

#[test]
fn md_refuses_members_of_an_array_in_a_journal_session_and_accepts_them_after_a_stop() {
    let folder = Folder::new("journalled");
    let mut guest = Guest::new();
    guest.script(ATTEMPT);
    let (mut refused, mut taken, mut promised) = (Vec::new(), Vec::new(), Vec::new());
    for case in cases() {
        let Case { key, shape, spans, metadata, alone } = case;
        let is_marked = |path: &PathBuf| is_marked(path, metadata);
        let mut machine = journalled(case);
        machine.world.kill();
        let killed = members(&machine, shape, &format!("{key}k"), &folder);
        assert!(killed.iter().flatten().all(is_marked), "{shape}: promises without the mark");
        // One span is as the other.
        let devices: Vec<String> = killed[0].iter().map(|path| guest.image(path)).collect();
        let with_all = attempts_with_all(&format!("{key}k"), &devices);
        refused.extend(script_attempts(&mut guest, with_all));
        if alone {
            let with_one = attempts_with_one(&format!("{key}k"), &devices);
            refused.extend(script_attempts(&mut guest, with_one));
        }
        promised.push((killed, machine.log));

        let mut machine = journalled(case);
        let outer = Some(machine.array).filter(|_| spans > 1);
        for array in outer.into_iter().chain(machine.sets.iter().copied()) {
            machine.world.admin(AdminCommand::Stop { array }).expect("the array stops");
        }
        let stopped = members(&machine, shape, &format!("{key}s"), &folder);
        assert!(!stopped.iter().flatten().any(is_marked), "{shape}: the mark is still there");
        let log = folder.image(key, 99);
        std::fs::write(&log, machine.log).expect("there is room for the log");
        let devices: Vec<Vec<String>> =
            stopped.iter().map(|span| span.iter().map(|path| guest.image(path)).collect()).collect();
        script_orderly(&mut guest, key, &devices, &log);
        // md accepts the same attempts if nothing is wrong with the members: the same words, the same judge.
        let with_all = attempts_with_all(&format!("{key}s"), &devices[0]);
        taken.extend(script_attempts(&mut guest, with_all));
        if shape.level == Level::Raid1 {
            let with_one = attempts_with_one(&format!("{key}s"), &devices[0]);
            taken.extend(script_attempts(&mut guest, with_one));
        }
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let value = |key: String| output.text(&key);
    for name in refused {
        let said = value(format!("{name}.said"));
        assert_eq!(value(format!("{name}.up")), "no", "{name}: {said}");
        // As the kernel says it of a feature that it does not know; of members that are too few it says otherwise.
        assert!(said.contains("Invalid argument"), "{name}: {said}");
    }
    for name in taken {
        assert_eq!(value(format!("{name}.up")), "yes", "{name}: {}", value(format!("{name}.said")));
    }
    judge_orderly(&output);
    // mdadm has written "clean" into members of parity sets before the kernel refused them.
    for (Case { key, shape, spans, metadata, .. }, (killed, log)) in cases().into_iter().zip(promised) {
        assert!(killed.iter().flatten().all(|path| is_marked(path, metadata)), "{shape}: md has taken the mark away");
        if spans == 1 {
            let journal = folder.image(&format!("{key}k"), killed[0].len());
            judge_promises(&killed[0], &journal, &WriteLog::parse(&log), &folder);
        }
    }
}
