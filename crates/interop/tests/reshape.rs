//! Changes of shape that one leaves in the middle and the other continues: everything is there.

use openraid_core::admin::{AdminCommand, Health, Policy};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::array::reshape_plan::next_step;
use openraid_core::array::used_size::UsedSize;
use openraid_core::geometry::{Geometry, Level};
use openraid_format::{MdLevel, ShapeFields};
use openraid_interop::{create_arguments, dump_all, machine, read_array, stamp_array, Folder};
use openraid_oracle::{answer, stamp, Guest, GuestOutput};
use openraid_sim::oracle::Members;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Nanos, Sectors};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(600);
const MEMBER_BYTES: u64 = 8 << 20;
const SEED: u64 = 29;
const CHUNK: Sectors = Sectors::kib(16);
/// Room before the data of each member, as on drives that mdadm or openraid made.
const FAR: Sectors = Sectors(2048);

/// Arrays of one guest.
const ARRAYS_MAX: usize = 10;

/// One boundary a shape, or 20 in the long run.
fn positions() -> u64 {
    if std::env::var_os("OPENRAID_SOAK").is_some() {
        20
    } else {
        1
    }
}

fn fields(shape: &ArrayShape) -> ShapeFields {
    let level = MdLevel::from_number(shape.level.md_number().expect("md has it")).expect("md's number");
    ShapeFields { level, layout: shape.layout, chunk: shape.chunk, raid_disks: shape.members }
}

/// The shapes between which data moves.
fn changes() -> Vec<(ArrayShape, ArrayShape)> {
    let raid4 = |members| ArrayShape::new(Level::Raid4, 0, members, CHUNK);
    vec![
        (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK)),
        (ArrayShape::raid6(4, CHUNK), ArrayShape::raid6(6, CHUNK)),
        (raid4(3), raid4(4)),
        (ArrayShape::raid5(4, CHUNK), ArrayShape::raid5(4, Sectors::kib(32))),
        (ArrayShape::raid5(4, CHUNK), ArrayShape::new(Level::Raid5, 1, 4, CHUNK)),
        (ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(5, CHUNK)),
        (ArrayShape::raid5(3, CHUNK), ArrayShape::raid6(5, CHUNK)),
        (ArrayShape::raid6(5, CHUNK), ArrayShape::raid5(4, CHUNK)),
        (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 6, CHUNK)),
        (ArrayShape::raid10(0x102, 4, CHUNK), ArrayShape::raid10(0x102, 4, Sectors::kib(32))),
    ]
}

/// Fill the array with stamps, and let its background work be slow from then on. Returns its size.
fn stamp_and_slow_down(rig: &mut Rig) -> u64 {
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    rig.world.run_until_idle();
    let policy = Policy { rebuild_rate: Sectors::kib(64), background_depth: 1, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("the policy is taken");
    rig.world.controller().capacity(rig.array).expect("it runs").get()
}

/// An array full of stamps whose change was stopped when this part of it had moved, and its size before.
fn left_in_the_middle(from: ArrayShape, to: ArrayShape, part: u64, of: u64) -> (Rig, u64) {
    let spares = to.members.saturating_sub(from.members);
    let mut rig = Rig::new(
        from,
        RigOptions { spares, far: FAR, bitmap: part.is_multiple_of(2) || of == 2, ..RigOptions::new(SEED) },
    );
    let size = stamp_and_slow_down(&mut rig);
    let common = rig.status().superblock.expect("it has metadata");
    let new = next_step(common.shape(), common.size, fields(&to));
    let begun = rig.world.admin(AdminCommand::Reshape { array: rig.array, new });
    begun.unwrap_or_else(|error| panic!("{from} to {to}: {error}"));
    loop {
        let reshape = rig.status().reshape.expect("it is slow");
        if reshape.moved.get() * of >= reshape.total.get() * part {
            break;
        }
        rig.run_for(Nanos::from_millis(2));
    }
    rig.world.admin(AdminCommand::Stop { array: rig.array }).expect("it stops");
    (rig, size)
}

/// A change that the engine left in the middle.
struct LeftChange {
    key: String,
    what: String,
    size: u64,
    paths: Vec<PathBuf>,
}

/// The engine reads what md finished: everything is there, and redundancy fits.
fn judge(change: &LeftChange, output: &GuestOutput) {
    let LeftChange { key, what, size, paths } = change;
    let said = |name: &str| output.text(&format!("{key}.{name}"));
    assert_eq!(said("assembled"), "yes", "{what}: {}", said("refusal"));
    assert_eq!((said("position"), said("mismatch_cnt")), ("none", "0"), "{what}");
    let mut world = machine(paths, SEED);
    let plan = assemble::plan(&world.candidates(), AssembleOptions::default()).expect("it can be planned");
    assert_eq!(plan.common.change(), None, "{what}");
    let array = world.start(AdminCommand::StartSet(plan)).expect("it starts");
    world.run_until_idle();
    assert_eq!(world.status(array).expect("it runs").health, Health::Optimal, "{what}");
    let complaints = Members::of(&world, array).complaints();
    assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    let mut wanted = vec![0; usize::try_from(*size).expect("small")];
    stamp::stamp(&mut wanted, SEED, 0, 0);
    let content = read_array(&mut world, array);
    assert!(content[..wanted.len()] == wanted, "{what}: the content has changed");
}

#[test]
fn md_finishes_what_the_engine_left() {
    let folder = Folder::new("engine-reshapes");
    let places: Vec<_> = changes()
        .into_iter()
        .enumerate()
        .flat_map(|change| (1..=positions()).map(move |part| (change, part)))
        .collect();
    for group in places.chunks(ARRAYS_MAX) {
        let (mut guest, mut left) = (Guest::new(), Vec::new());
        for ((number, (from, to)), part) in group.iter().copied() {
            let key = format!("c{number}p{part}");
            let (rig, size) = left_in_the_middle(from, to, part, positions() + 1);
            let paths = dump_all(&rig.world, &key, &folder);
            let devices = guest.images(&paths).join(" ");
            guest.script(&format!(
                "assemble {key} {devices}; sleep 0.3; settle {key}; sleep 0.3; settle {key}; check {key}\n\
                 say {key}.position \"$(</sys/block/${{md[{key}]#/dev/}}/md/reshape_position)\"; stop {key}"
            ));
            left.push(LeftChange { what: format!("{key}: {from} to {to}"), key, size, paths });
        }
        let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
        for change in left {
            judge(&change, &output);
            change.paths.iter().for_each(|path| std::fs::remove_file(path).expect("it is there"));
        }
    }
}

/// An array full of stamps on used drives that has got more of each member, and was stopped in the resync of the new part. The
/// size is the one before.
fn left_in_the_resync(shape: ArrayShape, bitmap: bool) -> (Rig, u64) {
    let options = RigOptions { junk: true, bitmap, used: Some(Sectors::kib(640)), ..RigOptions::new(SEED) };
    let mut rig = Rig::new(shape, options);
    let size = stamp_and_slow_down(&mut rig);
    let begun = rig.world.admin(AdminCommand::Resize { array: rig.array, to: UsedSize::Max });
    begun.unwrap_or_else(|error| panic!("{shape}: {error}"));
    while rig.status().task.expect("a slow resync").done.is_zero() {
        rig.run_for(Nanos::from_millis(2));
    }
    rig.world.admin(AdminCommand::Stop { array: rig.array }).expect("it stops");
    (rig, size)
}

#[test]
fn md_has_the_room_that_the_engine_gave_and_ends_the_resync() {
    let folder = Folder::new("engine-resizes");
    let (mut guest, mut left) = (Guest::new(), Vec::new());
    let shapes = [
        ArrayShape::raid1(2),
        ArrayShape::raid5(3, CHUNK),
        ArrayShape::raid6(5, CHUNK),
        ArrayShape::raid10(0x102, 4, CHUNK),
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        let key = format!("s{number}");
        let (rig, before) = left_in_the_resync(shape, number % 2 == 1);
        let paths = dump_all(&rig.world, &key, &folder);
        let devices = guest.images(&paths).join(" ");
        guest.script(&format!(
            "assemble {key} {devices}; settle {key}; check {key}\n\
             say {key}.position \"$(</sys/block/${{md[{key}]#/dev/}}/md/reshape_position)\"\n\
             say {key}.bytes $(blockdev --getsize64 ${{md[{key}]}}); stop {key}"
        ));
        let after = Geometry::capacity(&shape.geometry()).bytes().get();
        assert!(after > before, "{shape}");
        left.push((LeftChange { what: format!("{key}: {shape}"), key, size: before, paths }, after));
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (change, after) in left {
        judge(&change, &output);
        assert_eq!(output.text(&format!("{}.bytes", change.key)), after.to_string(), "{}", change.what);
    }
}

/// The changes in which md's first run keeps the data.
fn changes_of_md() -> Vec<(ArrayShape, &'static str, u16)> {
    vec![
        (ArrayShape::raid5(3, CHUNK), "--raid-devices=4", 4),
        (ArrayShape::raid5(3, CHUNK), "--raid-devices=5", 5),
        (ArrayShape::raid6(4, CHUNK), "--raid-devices=5", 5),
        (ArrayShape::new(Level::Raid4, 0, 3, CHUNK), "--raid-devices=4", 4),
        (ArrayShape::raid10(0x102, 4, CHUNK), "--raid-devices=5", 5),
        (ArrayShape::raid10(0x102, 4, CHUNK), "--chunk=32", 4),
    ]
}

#[test]
fn the_engine_finishes_what_md_left() {
    let folder = Folder::new("md-reshapes");
    let (mut guest, mut left) = (Guest::new(), Vec::new());
    for (number, (from, words, members)) in changes_of_md().into_iter().enumerate() {
        let key = format!("m{number}");
        let paths = folder.empties(&key, usize::from(members), MEMBER_BYTES);
        let devices = guest.images(&paths);
        let (first, more) = devices.split_at(usize::from(from.members));
        let add =
            if more.is_empty() { "true".into() } else { format!("mdadm ${{md[{key}]}} --add {}", more.join(" ")) };
        guest.script(&format!(
            "create {key} {} --data-offset=2048 {}\nstamp {key} write {SEED}\n{add}\n\
             sys=/sys/block/${{md[{key}]#/dev/}}/md; echo 400 >$sys/sync_speed_max; echo 400 >$sys/sync_speed_min\n\
             mdadm --grow ${{md[{key}]}} {words}\n\
             for n in $(seq 1 200); do d=$(cat $sys/reshape_position); [ \"$d\" != none ] && [ \"$d\" -gt 2000 ] && break; sleep 0.1; done\n\
             echo frozen >$sys/sync_action || true\nsay {key}.position $(cat $sys/reshape_position)\nstop {key}",
            create_arguments(&from),
            first.join(" ")
        ));
        left.push((key, from, words, members, paths));
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (key, from, words, members, paths) in left {
        let what = format!("{from} {words}");
        let position: u64 = output.text(&format!("{key}.position")).parse().expect("md is in the middle");
        assert!(position > 0, "{what}");
        let mut world = machine(&paths, SEED);
        let plan = assemble::plan(&world.candidates(), AssembleOptions::default()).expect("it can be planned");
        assert!(plan.common.change().is_some(), "{what}: md has finished");
        let array = world.start(AdminCommand::StartSet(plan)).expect("it starts");
        world.run_until_idle();
        let status = world.status(array).expect("it runs");
        assert_eq!((status.health, status.reshape.is_some()), (Health::Optimal, false), "{what}");
        assert_eq!(status.superblock.expect("it has metadata").raid_disks, members, "{what}");
        let complaints = Members::of(&world, array).complaints();
        assert!(complaints.is_empty(), "{what}: {complaints:#?}");
        let size: usize = output.text(&format!("{key}.size")).parse().expect("a size");
        let mut wanted = vec![0; size];
        stamp::stamp(&mut wanted, SEED, 0, 0);
        let content = read_array(&mut world, array);
        assert!(content[..size] == wanted, "{what}: the content has changed");
    }
}
