//! Work that one began and the other ends: rebuilds, replacements, bad sectors that are known, members that are out
//! and members that come back.

use openraid_core::admin::{AdminCommand, Health, MemberState, Policy};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::array::membership::Membership;
use openraid_interop::{dump_all, is_stamped, machine, stamp_array, Folder};
use openraid_oracle::{answer, Guest, GuestOutput};
use openraid_sim::drive::Defect;
use openraid_sim::oracle::Members;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions, World};
use openraid_units::{ArrayId, DriveId, MemberLba, Nanos, Sectors, Slot};
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const MEMBER_BYTES: u64 = 8 << 20;
const SEED: u64 = 13;
const CHUNK: Sectors = Sectors::kib(16);
const RAID5: ArrayShape = ArrayShape::raid5(4, CHUNK);

/// An array of the engine, full of stamps.
fn filled(shape: ArrayShape, options: RigOptions) -> Rig {
    let mut rig = Rig::new(shape, options);
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    rig.world.run_until_idle();
    rig
}

fn stop(world: &mut World, array: ArrayId) {
    world.admin(AdminCommand::Stop { array }).unwrap_or_else(|error| panic!("the array does not stop: {error}"));
}

fn slowly(rig: &mut Rig) {
    let policy = Policy { rebuild_rate: Sectors::kib(64), background_depth: 1, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("the policy is taken");
}

/// Advance the array's background work to somewhere in its middle.
fn halfway(rig: &mut Rig) {
    let mut left = 10_000;
    loop {
        let task = rig.status().task.expect("something is being done");
        if task.done * 3 > task.total {
            break;
        }
        rig.run_for(Nanos::from_millis(100));
        left -= 1;
        assert!(left > 0, "the task does not go on: {task:?}");
    }
}

/// All is there, redundancy fits, every stamp is right.
fn judge(world: &mut World, array: ArrayId, what: &str) {
    world.run_until_idle();
    assert_eq!(world.status(array).expect("it runs").health, Health::Optimal, "{what}: {}", world.dump());
    let complaints = Members::of(world, array).complaints();
    assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    assert!(is_stamped(world, array, SEED), "{what}");
}

/// md's result for an array whose work it continues: complete, consistent, every stamp right.
fn judged_by_md(output: &GuestOutput, key: &str) {
    assert_eq!(output.text(&format!("{key}.assembled")), "yes", "{key}: {}", output.text(&format!("{key}.refusal")));
    assert_eq!(output.text(&format!("{key}.end")), "clean", "{key}");
    assert_eq!(output.text(&format!("{key}.mismatch_cnt")), "0", "{key}");
    assert_eq!(output.text(&format!("{key}.stamp")), "good", "{key}");
}

fn finish_script(key: &str) -> String {
    format!(
        "settle {key}; sleep 0.3; settle {key}; check {key}; stamp {key} check {SEED}; \
         say {key}.end \"$(mdadm --detail ${{md[{key}]}} | sed -n 's/^ *State : //p' | sed 's/ *$//' | sed 's/active/clean/')\"; \
         stop {key}\n"
    )
}

#[test]
fn md_continues_a_rebuild_and_a_replacement_where_the_engine_stopped() {
    let folder = Folder::new("engine-rebuilds");
    let mut guest = Guest::new();
    guest.without_raid6();
    for key in ["rebuild", "replace"] {
        let mut rig = filled(RAID5, RigOptions::new(SEED));
        slowly(&mut rig);
        if key == "rebuild" {
            rig.lose(Slot(1), Loss::Failed);
            rig.run_for(Nanos::from_secs(1));
        }
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).expect("the drive is taken");
        if key == "replace" {
            let array = rig.array;
            rig.world.admin(AdminCommand::Replace { array, slot: Slot(2), with: None }).expect("there is a spare");
        }
        halfway(&mut rig);
        stop(&mut rig.world, rig.array);
        let all = guest.images(&dump_all(&rig.world, key, &folder));
        guest.script(&format!(
            "say {key}.offset $(mdadm --examine {} | sed -n 's/.*Recovery Offset : \\([0-9]*\\).*/\\1/p')\n\
             assemble {key} {}\n{}",
            all[4],
            all.join(" "),
            finish_script(key)
        ));
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for key in ["rebuild", "replace"] {
        let offset: u64 = output.text(&format!("{key}.offset")).parse().expect("a recovery offset");
        assert!(offset > 0, "{key}: md would start over");
        judged_by_md(&output, key);
    }
}

#[test]
fn the_engine_continues_a_rebuild_and_a_replacement_where_md_stopped() {
    let folder = Folder::new("md-rebuilds");
    let mut guest = Guest::new();
    guest.without_raid6();
    let mut paths = Vec::new();
    for key in ["rebuild", "replace"] {
        let files = folder.empties(key, 5, MEMBER_BYTES);
        let all = guest.images(&files);
        paths.push(files);
        let first = all[..4].join(" ");
        let begin = if key == "rebuild" {
            format!("mdadm ${{md[{key}]}} --fail {0} --remove {0}; mdadm ${{md[{key}]}} --add {1}", all[1], all[4])
        } else {
            format!("mdadm ${{md[{key}]}} --add {1}; mdadm ${{md[{key}]}} --replace {0} --with {1}", all[1], all[4])
        };
        guest.script(&format!(
            "create {key} --level=5 --chunk=16 --bitmap=none --assume-clean --raid-devices=4 {first}\n\
             stamp {key} write {SEED}\nsys=/sys/block/${{md[{key}]#/dev/}}/md\n\
             echo 400 >$sys/sync_speed_max; echo 400 >$sys/sync_speed_min\n{begin}\n\
             for n in $(seq 1 200); do \
               d=$(cut -d' ' -f1 $sys/sync_completed); [ \"$d\" != none ] && [ \"$d\" != delayed ] && [ \"$d\" -gt 3000 ] && break; sleep 0.1; done\n\
             echo frozen >$sys/sync_action || true\nstop {key}"
        ));
    }
    let Some(_) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (key, paths) in ["rebuild", "replace"].into_iter().zip(paths) {
        let mut world = machine(&paths, SEED);
        let plan = assemble::plan(&world.candidates(), AssembleOptions::default()).expect("it can be planned");
        let to = plan.verdicts.iter().find_map(|(drive, verdict)| match verdict {
            Membership::Rebuilding(_, to) if key == "rebuild" && *drive == DriveId(4) => Some(*to),
            Membership::Replacement(_, to) if key == "replace" && *drive == DriveId(4) => Some(*to),
            _ => None,
        });
        let to = to.unwrap_or_else(|| panic!("{key}: {:?}", plan.verdicts));
        assert!(to > Sectors::ZERO && to < Sectors(MEMBER_BYTES / 512), "{key}: md came to {to}");
        let array = world.assemble(false).expect("it starts");
        judge(&mut world, array, key);
        let written = world.status(array).expect("it runs").members.into_iter().find(|m| m.drive == Some(DriveId(4)));
        let written = written.expect("the new member").sectors_written;
        assert!(written <= MEMBER_BYTES / 512 - to.get(), "{key}: {written} sectors written after {to}");
    }
}

#[test]
fn sectors_that_one_has_lost_the_other_knows_as_lost() {
    let folder = Folder::new("bad-blocks");
    let mut guest = Guest::new();
    guest.without_raid6();
    // Ours: a degraded array meets a sector that cannot be read, and a rebuild records the loss.
    let mut rig = filled(RAID5, RigOptions::new(SEED));
    rig.lose(Slot(0), Loss::Failed);
    rig.rest();
    let (drive, lba) = Members::of(&rig.world, rig.array).place(Slot(2), MemberLba(777)).expect("slot 2 is there");
    rig.world.drive_mut(drive).faults.add_defects(lba, Sectors(1), Defect::UntilWritten);
    let new = rig.new_drive();
    rig.world.add_member(rig.array, new).expect("the drive is taken");
    rig.rest();
    let known = rig.world.controller().bad_ranges(rig.array);
    assert!(!known.is_empty());
    let known: Vec<_> =
        known.into_iter().map(|(slot, range)| (rig.drive_in(slot.expect("a slot")).expect("a drive"), range)).collect();
    stop(&mut rig.world, rig.array);
    let ours = guest.images(&dump_all(&rig.world, "ours", &folder));
    guest.script(&format!(
        "assemble ours {}\nfor n in 1 2 3 4; do f=/sys/block/${{md[ours]#/dev/}}/md/dev-loop$n/bad_blocks; \
         [ -e $f ] && say ours.$n \"$(tr '\\n' ';' <$f)\"; done\nstop ours",
        ours[1..].join(" ")
    ));
    // md writes its log of bad sectors when it next changes its superblocks. If md read these sectors, it would rewrite
    // them and drop them from the log.
    let files = folder.empties("theirs", 4, MEMBER_BYTES);
    let theirs = guest.images(&files);
    let name = theirs[1].trim_start_matches("/dev/").to_owned();
    guest.script(&format!(
        "create theirs --level=5 --chunk=16 --bitmap=none --assume-clean --raid-devices=4 {}\nstamp theirs write {SEED}\n\
         d=/sys/block/${{md[theirs]#/dev/}}/md/dev-{name}\necho '5000 3' >$d/bad_blocks\n\
         dd if=${{md[theirs]}} of=start bs=64K count=1 status=none\n\
         dd if=start of=${{md[theirs]}} bs=64K oflag=direct conv=notrunc status=none\nsay theirs.bad \"$(cat $d/bad_blocks)\"\n\
         say theirs.offset $(cat $d/offset)\nstop theirs",
        theirs.join(" ")
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (drive, range) in known {
        let place = Sectors(range.at.get()) + Sectors(2048);
        let seen = output.text(&format!("ours.{}", drive.0));
        assert_eq!(seen, format!("{} {};", place.get(), range.len.get()), "drive {drive}");
    }
    assert_eq!(output.text("theirs.bad"), "5000 3");
    let offset: u64 = output.text("theirs.offset").parse().expect("a data offset");
    let mut world = machine(&files, SEED);
    let array = world.assemble(false).expect("it starts");
    let bad = world.controller().bad_ranges(array);
    let (slot, range) = bad.first().copied().expect("the bad sectors are known");
    assert_eq!((bad.len(), slot), (1, Some(Slot(1))));
    assert_eq!((range.at, range.len), (MemberLba(5000 - offset), Sectors(3)));
    // They are read around, and every byte is right.
    assert!(is_stamped(&mut world, array, SEED));
}

#[test]
fn a_member_that_one_has_failed_is_stale_for_the_other_and_comes_back_by_the_bitmap() {
    let folder = Folder::new("stale");
    // md fails a member and continues to write. The engine leaves the member out, and adds it again by the bitmap.
    let files = folder.empties("theirs", 3, MEMBER_BYTES);
    let mut guest = Guest::new();
    guest.without_raid6();
    let theirs = guest.images(&files);
    guest.script(&format!(
        "create theirs --level=5 --chunk=16 --bitmap=internal --bitmap-chunk=64K --assume-clean --raid-devices=3 {all}\n\
         stamp theirs write {SEED}\nsleep 17\nmdadm ${{md[theirs]}} --fail {out} --remove {out}\n\
         dd if=/dev/zero of=${{md[theirs]}} bs=64K count=4 seek=8 oflag=direct status=none\nstop theirs",
        all = theirs.join(" "),
        out = theirs[1]
    ));
    // The engine does the same.
    let mut rig = filled(ArrayShape::raid5(3, CHUNK), RigOptions { bitmap: true, ..RigOptions::new(SEED) });
    rig.run_for(Nanos::from_secs(30));
    let out = rig.lose(Slot(1), Loss::Failed);
    rig.run_for(Nanos::from_secs(1));
    rig.world.admin(AdminCommand::Remove { array: rig.array, drive: out }).expect("it is out");
    rig.world.write(rig.array, 512 << 10, &[0; 64 << 10]).expect("the array takes writes");
    stop(&mut rig.world, rig.array);
    let ours = guest.images(&dump_all(&rig.world, "ours", &folder));
    guest.script(&format!(
        "assemble ours {}\nsay ours.before \"$(mdadm --detail ${{md[ours]}} | sed -n 's/^ *State : //p')\"\n\
         mdadm ${{md[ours]}} --re-add {} 2>&1 | tee readd.txt || true\nsay ours.readd \"$(cat readd.txt)\"\n\
         sleep 0.3; settle ours\nsay ours.reads $(awk '{{print $3}}' /sys/block/{}/stat)\n\
         check ours\nsay ours.after \"$(mdadm --detail ${{md[ours]}} | sed -n 's/^ *State : //p' | sed 's/ *$//')\"\nstop ours",
        ours.join(" "),
        ours[1],
        ours[1].trim_start_matches("/dev/"),
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };

    let mut world = machine(&files, SEED);
    let plan = assemble::plan(&world.candidates(), AssembleOptions::default()).expect("it can be planned");
    let verdict = plan.verdicts[1].1;
    assert!(matches!(verdict, Membership::Stale { .. } | Membership::Failed), "{verdict:?}");
    let array = world.assemble(false).expect("it starts");
    assert_eq!(world.status(array).expect("it runs").health, Health::Degraded);
    world.re_add_member(array, DriveId(1)).expect("it is taken back");
    world.run_until_idle();
    let status = world.status(array).expect("it runs");
    assert_eq!(status.health, Health::Optimal, "{}", world.dump());
    let member = status.members.iter().find(|member| member.drive == Some(DriveId(1))).expect("it is back");
    assert_eq!(member.state, MemberState::InSync);
    let (written, all) = (member.sectors_written, MEMBER_BYTES / 512);
    assert!(written > 0 && written < all / 4, "{written} of {all} sectors were restored");
    let complaints = Members::of(&world, array).complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");

    assert_eq!(output.text("ours.assembled"), "yes", "{}", output.text("ours.refusal"));
    assert!(output.text("ours.before").contains("degraded"), "{}", output.text("ours.before"));
    assert!(output.text("ours.readd").contains("re-added"), "{}", output.text("ours.readd"));
    assert_eq!(output.text("ours.mismatch_cnt"), "0");
    assert!(["clean", "active"].contains(&output.text("ours.after")), "{}", output.text("ours.after"));
}

#[test]
fn halves_that_md_ran_alone_are_split_and_what_one_missed_is_not_left_to_the_bitmap() {
    let folder = Folder::new("halves");
    let files = folder.empties("theirs", 2, MEMBER_BYTES);
    let mut guest = Guest::new();
    guest.without_raid6();
    let theirs = guest.images(&files);
    guest.script(&format!(
        "create theirs --level=1 --bitmap=internal --bitmap-chunk=64K --assume-clean --raid-devices=2 {}\n\
         stamp theirs write {SEED}\nstop theirs",
        theirs.join(" ")
    ));
    for (half, seek) in theirs.iter().zip([8, 24]) {
        guest.script(&format!(
            "mdadm --assemble --run /dev/md77 {half}\n\
             dd if=/dev/urandom of=/dev/md77 bs=64K count=2 seek={seek} oflag=direct status=none\n\
             sleep 0.5\nmdadm --stop /dev/md77"
        ));
    }
    let Some(_output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let mut world = machine(&files, SEED);
    let candidates = world.candidates();
    let events: Vec<u64> = candidates.iter().map(|candidate| candidate.superblock.events).collect();
    assert_eq!(events[0], events[1], "both halves did the same");
    let plan = assemble::plan(&candidates, AssembleOptions::default()).expect("it can be planned");
    let split = Membership::Split { events: events[1], newest: events[0] };
    assert_eq!([plan.verdicts[0].1, plan.verdicts[1].1], [Membership::Member(Slot(0)), split]);
    let array = world.assemble(false).expect("one half starts");
    world.re_add_member(array, DriveId(1)).expect("it is taken back");
    world.run_until_idle();
    assert_eq!(world.status(array).expect("it runs").health, Health::Optimal, "{}", world.dump());
    let complaints = Members::of(&world, array).complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
}
