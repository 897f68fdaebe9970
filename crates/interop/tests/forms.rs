//! Every on-disk form of an array apart from level and layout: the place of the superblock, nesting, one member,
//! features that neither side may touch, and the way there and back.

use openraid_core::admin::{AdminCommand, AdminOutcome, Health};
use openraid_core::array::assemble::{self, AssembleError, AssembleOptions};
use openraid_format::{FeatureMap, MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_interop::{dump_all, is_stamped, load, machine, stamp_array, Folder};
use openraid_oracle::{answer, Guest};
use openraid_sim::oracle::Members;
use openraid_sim::probe::probe;
use openraid_sim::rig::BEFORE_DATA;
use openraid_sim::test_arrays::MEMBER_DATA;
use openraid_sim::world::WorldSpec;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions, World};
use openraid_units::{ArrayId, DriveId, Sectors, Slot};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const MEMBER_BYTES: u64 = 8 << 20;
const SEED: u64 = 17;
const CHUNK: Sectors = Sectors::kib(16);
const METADATA: [(MinorVersion, &str); 3] =
    [(MinorVersion::V1_0, "1.0"), (MinorVersion::V1_1, "1.1"), (MinorVersion::V1_2, "1.2")];

fn stop(world: &mut World, array: ArrayId) {
    world.admin(AdminCommand::Stop { array }).unwrap_or_else(|error| panic!("the array does not stop: {error}"));
}

/// md refuses such an array; the superblock's feature stays, so the bitmap must come back.
#[test]
fn a_bitmap_that_is_damaged_on_all_members_is_made_again_and_md_takes_the_array() {
    let folder = Folder::new("bitmap");
    let mut guest = Guest::new();
    guest.without_raid6();
    let mut rig = Rig::new(ArrayShape::raid5(3, CHUNK), RigOptions { bitmap: true, ..RigOptions::new(SEED) });
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    stop(&mut rig.world, rig.array);
    let files = dump_all(&rig.world, "damaged", &folder);
    for file in &files {
        let mut bytes = std::fs::read(file).expect("a member");
        let size = Sectors(bytes.len() as u64 / 512);
        let superblock =
            Superblock::decode(&bytes[4096..4096 + SUPERBLOCK_BYTES_MAX], MinorVersion::V1_2, size).expect("good");
        let (place, _) = superblock.bitmap_room(size).expect("it names a bitmap");
        let at = usize::try_from(place.offset().bytes().get()).expect("a small file");
        bytes[at..at + 512].fill(0);
        std::fs::write(file, bytes).expect("written");
    }
    let mut world = machine(&files, SEED);
    let array = world.assemble(false).expect("it starts");
    assert!(is_stamped(&mut world, array, SEED));
    world.run_until_idle();
    stop(&mut world, array);
    let damaged = guest.images(&files);
    let remade = guest.images(&dump_all(&world, "remade", &folder));
    guest.script(&format!(
        "assemble damaged {}\nassemble remade {}\nsay remade.bitmap $(mdadm --examine-bitmap {} | sed -n 's/^ *Magic : //p')\n\
         stamp remade check {SEED}; check remade; stop remade",
        damaged.join(" "),
        remade.join(" "),
        remade[0]
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.text("damaged.assembled"), "no", "md takes an array without its bitmap");
    assert_eq!(output.text("remade.assembled"), "yes", "{}", output.text("remade.refusal"));
    assert_eq!(output.text("remade.bitmap"), "6d746962");
    assert_eq!(output.text("remade.stamp"), "good");
    assert_eq!(output.text("remade.mismatch_cnt"), "0");
}

#[test]
fn superblocks_at_the_end_at_the_start_and_after_it_are_read_by_both() {
    let folder = Folder::new("metadata");
    let mut guest = Guest::new();
    let mut theirs = Vec::new();
    for (metadata, word) in METADATA {
        let key = format!("ours{}", word.replace('.', ""));
        let options = RigOptions { metadata, bitmap: true, ..RigOptions::new(SEED) };
        let mut rig = Rig::new(ArrayShape::raid6(5, CHUNK), options);
        rig.rest();
        stamp_array(&mut rig.world, rig.array, SEED);
        stop(&mut rig.world, rig.array);
        let all = guest.images(&dump_all(&rig.world, &key, &folder));
        guest.script(&format!(
            "say {key}.version $(mdadm --examine {} | sed -n 's/^ *Version : //p')\n\
             assemble {key} {}\nstamp {key} check {SEED}; check {key}; stop {key}",
            all[0],
            all.join(" ")
        ));
        let key = format!("md{}", word.replace('.', ""));
        let files = folder.empties(&key, 4, MEMBER_BYTES);
        let all = guest.images(&files);
        guest.script(&format!(
            "create {key} --metadata={word} --level=5 --chunk=16 --bitmap=internal --assume-clean --raid-devices=4 {}\n\
             stamp {key} write {SEED}\nstop {key}",
            all.join(" ")
        ));
        theirs.push((key, files));
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (_, word) in METADATA {
        let key = format!("ours{}", word.replace('.', ""));
        assert_eq!(output.text(&format!("{key}.version")), word);
        assert_eq!(output.text(&format!("{key}.assembled")), "yes", "{}", output.text(&format!("{key}.refusal")));
        assert_eq!(output.text(&format!("{key}.stamp")), "good", "{word}");
        assert_eq!(output.text(&format!("{key}.mismatch_cnt")), "0", "{word}");
    }
    for (key, files) in theirs {
        for few in [&files[..], &files[1..]] {
            let mut world = machine(few, SEED);
            let array = world.assemble(false).unwrap_or_else(|error| panic!("{key}: {error}"));
            assert!(is_stamped(&mut world, array, SEED), "{key}");
        }
    }
}

/// The spans of a machine's drives, each assembled, and the stripe over them.
fn nested_array(world: &mut World) -> ArrayId {
    let mut sets: Vec<(openraid_format::Uuid, Vec<assemble::Candidate>)> = Vec::new();
    for candidate in world.candidates() {
        let uuid = candidate.superblock.set_uuid;
        match sets.iter_mut().find(|(known, _)| *known == uuid) {
            Some((_, members)) => members.push(candidate),
            None => sets.push((uuid, vec![candidate])),
        }
    }
    let mut spans = Vec::new();
    for (_, members) in sets {
        let plan = assemble::plan(&members, AssembleOptions::default()).expect("a span");
        let span = world.start(AdminCommand::StartSet(plan)).expect("the span starts");
        let capacity = world.controller().capacity(span).expect("it runs").sectors_floor();
        let start = world.read(span, 0, 64 << 10).expect("the span is read");
        let read = |lba: openraid_units::DriveLba, bytes: &mut [u8]| {
            let from = usize::try_from(lba.get() * 512).expect("a small place").min(start.len());
            let len = bytes.len().min(start.len() - from);
            bytes[..len].copy_from_slice(&start[from..from + len]);
            Ok::<(), std::convert::Infallible>(())
        };
        let outer = probe(DriveId(0), capacity, read).expect("an outer superblock").superblock;
        spans.push((outer.dev_number, span, outer));
    }
    spans.sort_by_key(|(number, _, _)| *number);
    let superblocks = spans.iter().map(|(_, _, superblock)| superblock.clone()).collect();
    let spans = spans.into_iter().map(|(_, span, _)| span).collect();
    match world.admin(AdminCommand::StartStriped { spans, superblocks }) {
        Ok(AdminOutcome::Started(array)) => array,
        other => panic!("the nested array does not start: {other:?}"),
    }
}

#[test]
fn arrays_of_arrays_go_both_ways() {
    let folder = Folder::new("nested");
    let mut guest = Guest::new();
    for (key, span, spans) in [("ours50", ArrayShape::raid5(3, CHUNK), 2), ("ours60", ArrayShape::raid6(4, CHUNK), 3)] {
        let mut world = World::new(WorldSpec::new(SEED));
        let mut arrays = Vec::new();
        for number in 0..spans {
            let mut options = RigOptions::new(SEED);
            options.world.seed = SEED * 100 + number;
            let drives: Vec<DriveId> = (0..span.members)
                .map(|_| world.add_drive(openraid_sim::drive::DriveSpec::new(BEFORE_DATA + MEMBER_DATA)))
                .collect();
            arrays.push(world.create(&span, &drives, &options));
        }
        let outer = world.create_nested(&arrays, Sectors::kib(64), SEED);
        stamp_array(&mut world, outer, SEED);
        stop(&mut world, outer);
        for span in arrays {
            stop(&mut world, span);
        }
        let all = guest.images(&dump_all(&world, key, &folder));
        let mut names = Vec::new();
        for (number, members) in all.chunks(usize::from(span.members)).enumerate() {
            // The last span comes without a member.
            let few = if number == 1 { &members[1..] } else { members };
            guest.script(&format!("assemble {key}{number} {}", few.join(" ")));
            names.push(format!("${{md[{key}{number}]}}"));
        }
        guest.script(&format!("assemble {key} {}\nstamp {key} check {SEED}\nstop {key}", names.join(" ")));
        for number in 0..spans {
            guest.script(&format!("check {key}{number}\nstop {key}{number}"));
        }
    }
    let files = folder.empties("md50", 6, MEMBER_BYTES);
    let all = guest.images(&files);
    let span = "--level=5 --chunk=16 --bitmap=none --assume-clean --raid-devices=3";
    guest.script(&format!(
        "create a {span} {}\ncreate b {span} {}\ncreate o --level=0 --chunk=64 --raid-devices=2 ${{md[a]}} ${{md[b]}}\n\
         say o.bytes $(blockdev --getsize64 ${{md[o]}})\nstamp o write {SEED}\nstop o\nstop a\nstop b",
        all[..3].join(" "),
        all[3..].join(" ")
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (key, spans) in [("ours50", 2), ("ours60", 3)] {
        assert_eq!(output.text(&format!("{key}.assembled")), "yes", "{}", output.text(&format!("{key}.refusal")));
        assert_eq!(output.text(&format!("{key}.stamp")), "good", "{key}");
        for number in (0..spans).filter(|number| *number != 1) {
            assert_eq!(output.text(&format!("{key}{number}.mismatch_cnt")), "0", "{key}, span {number}");
        }
    }
    let few: Vec<PathBuf> =
        files.iter().enumerate().filter(|(n, _)| ![1, 5].contains(n)).map(|(_, f)| f.clone()).collect();
    for paths in [files, few] {
        let mut world = machine(&paths, SEED);
        let array = nested_array(&mut world);
        let bytes = world.controller().capacity(array).expect("it runs").get();
        assert_eq!(output.text("o.bytes"), bytes.to_string());
        assert!(is_stamped(&mut world, array, SEED));
    }
}

#[test]
fn an_array_goes_there_and_back_losing_members_on_both_sides() {
    let folder = Folder::new("there-and-back");
    // Ours, one member lost, written to without it.
    let shape = ArrayShape::raid6(5, CHUNK);
    let mut rig = Rig::new(shape, RigOptions::new(SEED));
    rig.rest();
    rig.lose(Slot(3), Loss::Failed);
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    stop(&mut rig.world, rig.array);
    let ours = dump_all(&rig.world, "a", &folder);
    // Md takes it, loses another one, restores one from a new drive.
    let mut guest = Guest::new();
    let mut all = guest.images(&ours);
    let new = folder.empty("new", 0, std::fs::metadata(&ours[0]).expect("it is there").len());
    all.push(guest.image(&new));
    guest.script(&format!(
        "assemble a {}\nstamp a check {SEED}\nmdadm ${{md[a]}} --fail {} \nadd a {}\nstamp a write {}\nstop a",
        [&all[0], &all[1], &all[2], &all[4]].map(String::as_str).join(" "),
        all[0],
        all[5],
        SEED + 1
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.text("a.stamp"), "good");
    // Ours again: what md wrote, the lost member restored from a new drive, and all is whole.
    let members: Vec<PathBuf> = [1, 2, 4].map(|n| ours[n].clone()).into_iter().chain([new]).collect();
    let mut world = machine(&members, SEED);
    let array = world.assemble(false).expect("it starts");
    assert_eq!(world.status(array).expect("it runs").health, Health::Degraded);
    assert!(is_stamped(&mut world, array, SEED + 1));
    let blank = folder.empty("blank", 0, std::fs::metadata(&ours[0]).expect("it is there").len());
    let drive = load(&mut world, &blank);
    world.add_member(array, drive).expect("the drive is taken");
    stamp_array(&mut world, array, SEED + 2);
    world.run_until_idle();
    assert_eq!(world.status(array).expect("it runs").health, Health::Optimal, "{}", world.dump());
    assert!(Members::of(&world, array).complaints().is_empty());
    stop(&mut world, array);
    // And md has the last word.
    let mut guest = Guest::new();
    let all = guest.images(&dump_all(&world, "b", &folder));
    guest.script(&format!("assemble b {}\nstamp b check {}\ncheck b\nstop b", all.join(" "), SEED + 2));
    let output = answer(guest.run(BOOT_TIMEOUT)).expect("the packages were there a moment ago");
    assert_eq!(output.text("b.assembled"), "yes", "{}", output.text("b.refusal"));
    assert_eq!((output.text("b.stamp"), output.text("b.mismatch_cnt")), ("good", "0"));
    assert_eq!(output.text("b.state"), "clean");
}

#[test]
fn unknown_features_are_refused_by_both_and_mds_journals_by_name() {
    let folder = Folder::new("features");
    let mut guest = Guest::new();
    guest.without_raid6();
    // A bit that no version of md has given a meaning.
    let mut rig = Rig::new(ArrayShape::raid5(3, CHUNK), RigOptions::new(SEED));
    rig.rest();
    stop(&mut rig.world, rig.array);
    let unknown = dump_all(&rig.world, "unknown", &folder);
    for path in &unknown {
        let mut bytes = std::fs::read(path).expect("the image is there");
        let place = 8 * 512..8 * 512 + SUPERBLOCK_BYTES_MAX;
        let capacity = Sectors(bytes.len() as u64 / 512);
        let mut superblock =
            Superblock::decode(&bytes[place.clone()], MinorVersion::V1_2, capacity).expect("it was written just now");
        superblock.features.set(FeatureMap(1 << 20), true);
        let mut encoded = [0; SUPERBLOCK_BYTES_MAX];
        let len = superblock.encode(&mut encoded);
        bytes[place.start..place.start + len].copy_from_slice(&encoded[..len]);
        std::fs::write(path, bytes).expect("there is room");
    }
    let all = guest.images(&unknown);
    guest.script(&format!("assemble unknown {}", all.join(" ")));
    let files = folder.empties("journal", 4, MEMBER_BYTES);
    let all = guest.images(&files);
    guest.script(&format!(
        "create journal --level=5 --chunk=16 --raid-devices=3 {} --write-journal {}\nsettle journal\nstop journal",
        all[..3].join(" "),
        all[3]
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.text("unknown.assembled"), "no", "md takes a feature that it does not know");
    for (key, name) in [("unknown", "unknown (1048576)"), ("journal", "journal")] {
        let files: Vec<PathBuf> = (0..3).map(|member| folder.image(key, member)).collect();
        let said = refusal(&files).to_lowercase();
        assert!(said.contains(name), "{key}: {said}");
    }
}

/// The remedy of docs/journal.md, step by step.
#[test]
fn an_array_whose_own_journal_was_taken_out_as_documented_is_taken() {
    let folder = Folder::new("journal-out");
    let mut guest = Guest::new();
    guest.without_raid6();
    let files = folder.empties("out", 4, MEMBER_BYTES);
    let all = guest.images(&files);
    let (members, journal) = (all[..3].join(" "), &all[3]);
    guest.script(&format!(
        "create out --level=5 --chunk=16 --raid-devices=3 {members} --write-journal {journal}\nsettle out\n\
         stamp out write {SEED}\nstop out\n\
         assemble out {members} {journal}\nfolder=/sys/block/${{md[out]#/dev/}}/md\n\
         say before $(cat $folder/consistency_policy)\n\
         echo write-through >$folder/journal_mode\n\
         mdadm ${{md[out]}} --fail {journal} --remove {journal}\n\
         echo resync >$folder/consistency_policy\n\
         say after $(cat $folder/consistency_policy)\n\
         stamp out check {SEED}\nstop out"
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.text("out.assembled"), "yes", "{}", output.text("out.refusal"));
    assert_eq!((output.text("before"), output.text("after")), ("journal", "resync"));
    assert_eq!(output.text("out.stamp"), "good");
    let mut world = machine(&files[..3], SEED);
    let array = world.assemble(false).unwrap_or_else(|error| panic!("{error}"));
    assert!(is_stamped(&mut world, array, SEED));
}

/// Why the engine does not take these members.
fn refusal(files: &[PathBuf]) -> String {
    let mut candidates = Vec::new();
    for (number, path) in (0..).zip(files) {
        let content = std::fs::read(path).expect("the image is there");
        let read = |lba: openraid_units::DriveLba, bytes: &mut [u8]| {
            let from = usize::try_from(lba.get() * 512).expect("a small place");
            bytes.copy_from_slice(&content[from..from + bytes.len()]);
            Ok::<(), std::convert::Infallible>(())
        };
        match probe(DriveId(number), Sectors(content.len() as u64 / 512), read) {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => return format!("{error:?}: {error}"),
        }
    }
    match assemble::plan(&candidates, AssembleOptions::default()) {
        Err(error @ AssembleError::Unsupported { .. }) => error.to_string(),
        other => panic!("these are not refused for what they use: {other:?}"),
    }
}

#[test]
fn one_member_alone_is_an_array_for_both() {
    let folder = Folder::new("single");
    let mut guest = Guest::new();
    guest.without_raid6();
    let mut rig = Rig::new(ArrayShape::raid1(1), RigOptions::new(SEED));
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    stop(&mut rig.world, rig.array);
    let ours = guest.images(&dump_all(&rig.world, "ours", &folder));
    guest.script(&format!("assemble ours {}\nstamp ours check {SEED}\nstop ours", ours.join(" ")));
    let files = folder.empties("theirs", 1, MEMBER_BYTES);
    let theirs = guest.images(&files);
    guest.script(&format!(
        "create theirs --level=1 --force --raid-devices=1 --bitmap=none {}\nstamp theirs write {SEED}\nstop theirs",
        theirs.join(" ")
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    assert_eq!(output.text("ours.assembled"), "yes", "{}", output.text("ours.refusal"));
    assert_eq!(output.text("ours.stamp"), "good");
    let mut world = machine(&files, SEED);
    let array = world.assemble(false).expect("it starts");
    assert!(is_stamped(&mut world, array, SEED));
}
