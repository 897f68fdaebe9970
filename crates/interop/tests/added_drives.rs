//! Drives that the engine adds to arrays that Linux md made, and the reverse: at the end of a linear array, and as a member of an
//! array whose data begin later than the engine would let them begin.

use openraid_core::admin::AdminCommand;
use openraid_format::ShapeFields;
use openraid_interop::{dump_all, is_stamped, load, machine, stamp_array, Folder};
use openraid_oracle::{answer, Guest};
use openraid_sim::drive::{DriveSpec, FreshContent};
use openraid_sim::oracle::Members;
use openraid_sim::world::World;
use openraid_units::{ArrayId, DriveLba, Sectors};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
const MEMBER: Sectors = Sectors::mib(20);
const SEED: u64 = 37;
/// The start of the data on members that md made.
const START: DriveLba = DriveLba(Sectors::mib(8).get());

fn with_new_drive(paths: &[PathBuf]) -> (World, ArrayId) {
    let mut world = machine(paths, SEED);
    world.add_drive(DriveSpec { fresh: FreshContent::Zeroes, ..DriveSpec::new(MEMBER) });
    let array = world.assemble(false).unwrap_or_else(|error| panic!("{error}"));
    world.run_until_idle();
    assert!(is_stamped(&mut world, array, SEED));
    (world, array)
}

fn last_drive(world: &World) -> openraid_units::DriveId {
    openraid_units::DriveId(u16::try_from(world.drives_len() - 1).expect("few drives"))
}

fn stopped(mut world: World, array: ArrayId, key: &str, folder: &Folder) -> Vec<PathBuf> {
    stamp_array(&mut world, array, SEED);
    world.admin(AdminCommand::Stop { array }).expect("it stops");
    dump_all(&world, key, folder)
}

/// md's linear array gets a drive.
fn appended(paths: &[PathBuf], folder: &Folder) -> Vec<PathBuf> {
    let (mut world, array) = with_new_drive(paths);
    let before = world.status(array).expect("it runs").capacity;
    let token = world.start_append(array, last_drive(&world));
    world.run_until_idle();
    world.take_answer(token).expect("it has ended").result.unwrap_or_else(|error| panic!("{error}"));
    assert!(world.status(array).expect("it runs").capacity > before + Sectors::mib(10));
    stopped(world, array, "linear-engine", folder)
}

/// md's RAID 5 gets a drive, and becomes one of four members.
fn grown(paths: &[PathBuf], folder: &Folder) -> Vec<PathBuf> {
    let (mut world, array) = with_new_drive(paths);
    world.add_member(array, last_drive(&world)).unwrap_or_else(|error| panic!("{error}"));
    world.run_until_idle();
    let superblock = openraid_sim::oracle::redundancy::superblock_on(&world, last_drive(&world));
    assert_eq!(superblock.expect("it is a spare").data_offset, START);
    let common = world.status(array).expect("it runs").superblock.expect("it has metadata");
    let new = ShapeFields { raid_disks: 4, ..common.shape() };
    world.admin(AdminCommand::Reshape { array, new }).unwrap_or_else(|error| panic!("{error}"));
    world.run_until_idle();
    let status = world.status(array).expect("it runs");
    assert!(status.reshape.is_none() && status.superblock.is_some_and(|now| now.raid_disks == 4));
    let complaints = Members::of(&world, array).complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
    stopped(world, array, "five-engine", folder)
}

#[test]
fn drives_of_the_engine_and_of_md_make_one_array() {
    let folder = Folder::new("added-drives");
    let bytes = MEMBER.bytes().get();
    let (linear, five) = (folder.empties("linear", 2, bytes), folder.empties("five", 3, bytes));
    let mut guest = Guest::new();
    guest.without_raid6();
    let images = [guest.images(&linear), guest.images(&five)].map(|images| images.join(" "));
    guest.script(&format!(
        "create linear --level=linear --raid-devices=2 {}; stamp linear write {SEED}; stop linear\n\
         create five --level=5 --raid-devices=3 --chunk=16 --data-offset=8M {}; settle five\n\
         stamp five write {SEED}; settle five; stop five",
        images[0], images[1]
    ));
    let Some(_) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    let (linear, five) = (appended(&linear, &folder), grown(&five, &folder));
    // Then md gives the linear array one more.
    let last = folder.empty("linear-last", 0, bytes);
    let mut guest = Guest::new();
    guest.without_raid6();
    let images =
        [guest.images(&linear), guest.images(&five), vec![guest.image(last.clone())]].map(|images| images.join(" "));
    guest.script(&format!(
        "assemble five {}; stamp five check {SEED}; check five; stop five\n\
         assemble linear {}; stamp linear check {SEED}\n\
         mdadm --grow ${{md[linear]}} --add {}; stamp linear write {SEED}; stop linear",
        images[1], images[0], images[2]
    ));
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for key in ["five", "linear"] {
        let said = |name: &str| output.text(&format!("{key}.{name}"));
        assert_eq!((said("assembled"), said("stamp")), ("yes", "good"), "{key}");
    }
    assert_eq!(output.text("five.mismatch_cnt"), "0");
    let mut world = machine(&linear, SEED);
    load(&mut world, &last);
    let array = world.assemble(false).unwrap_or_else(|error| panic!("{error}"));
    assert!(world.status(array).expect("it runs").capacity > Sectors::mib(60));
    assert!(is_stamped(&mut world, array, SEED));
}
