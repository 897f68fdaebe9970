//! Changes of shape that the engine made without a move of data, or with fewer members: Linux md reads and goes on with them.

use openraid_core::admin::{AdminCommand, Policy};
use openraid_core::array::assemble::{self, AssembleOptions};
use openraid_core::array::used_size::UsedSize;
use openraid_core::geometry::Level;
use openraid_format::{MdLevel, ShapeFields};
use openraid_interop::{dump_all, machine, read_array, stamp_array, Folder};
use openraid_oracle::{answer, stamp, Guest};
use openraid_sim::oracle::Members;
use openraid_sim::rig::Loss;
use openraid_sim::test_arrays::MEMBER_DATA;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Nanos, Sectors, Slot};
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(600);
const SEED: u64 = 31;
const CHUNK: Sectors = Sectors::kib(16);
/// The used size of each member before an array gets fewer of them.
const USED: Sectors = Sectors::kib(1280);

const fn raid0(members: u16) -> ArrayShape {
    ArrayShape::new(Level::Raid0, 0, members, CHUNK)
}

const fn parity_last(members: u16) -> ArrayShape {
    ArrayShape::new(Level::Raid5, 5, members, CHUNK)
}

fn fields(shape: &ArrayShape) -> ShapeFields {
    let level = MdLevel::from_number(shape.level.md_number().expect("md has it")).expect("md's number");
    ShapeFields { level, layout: shape.layout, chunk: shape.chunk, raid_disks: shape.members }
}

/// What the engine does with an array before it stops it.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// These members are taken out, and then the level changes.
    Takeover(&'static [u16], ArrayShape),
    /// The end is cut off, and then less of each member is used.
    Less(Sectors),
    /// The end is cut off, and then the array gets this shape of fewer members; it is stopped in the middle.
    Fewer(ArrayShape),
}

fn works() -> Vec<(ArrayShape, Work)> {
    let raid4 = ArrayShape::new(Level::Raid4, 0, 4, CHUNK);
    vec![
        (raid0(3), Work::Takeover(&[], raid4)),
        (raid0(3), Work::Takeover(&[], parity_last(4))),
        (raid0(2), Work::Takeover(&[], ArrayShape::raid10(0x102, 4, CHUNK))),
        (raid4, Work::Takeover(&[3], raid0(3))),
        (parity_last(4), Work::Takeover(&[3], raid0(3))),
        (ArrayShape::raid10(0x102, 4, CHUNK), Work::Takeover(&[0, 3], raid0(2))),
        (ArrayShape::raid1(2), Work::Less(Sectors::kib(1024))),
        (ArrayShape::raid5(3, CHUNK), Work::Less(Sectors::kib(1024))),
        (ArrayShape::raid10(0x102, 4, CHUNK), Work::Less(Sectors::kib(1024))),
        (ArrayShape::raid5(5, CHUNK), Work::Fewer(ArrayShape::raid5(4, CHUNK))),
        (ArrayShape::raid6(6, CHUNK), Work::Fewer(ArrayShape::raid6(5, CHUNK))),
    ]
}

fn cut_off(rig: &mut Rig, shape: ArrayShape, used: Sectors) {
    let left = ArrayShape { data: used, ..shape }.geometry().capacity();
    let limited = rig.world.admin(AdminCommand::LimitCapacity { array: rig.array, to: Some(left) });
    limited.unwrap_or_else(|error| panic!("{error}"));
}

/// An array full of stamps after the work. Returns its size.
fn worked(from: ArrayShape, work: Work, bitmap: bool) -> (Rig, u64) {
    let used = matches!(work, Work::Fewer(_)).then_some(USED);
    let bitmap = bitmap && from.level != Level::Raid0;
    let mut rig = Rig::new(from, RigOptions { used, bitmap, ..RigOptions::new(SEED) });
    rig.rest();
    stamp_array(&mut rig.world, rig.array, SEED);
    rig.world.run_until_idle();
    let array = rig.array;
    let command = match work {
        Work::Takeover(without, to) => {
            for slot in without.iter().copied().map(Slot) {
                let drive = rig.lose(slot, Loss::Failed);
                rig.rest();
                rig.world.admin(AdminCommand::Remove { array, drive }).expect("it has failed");
                rig.rest();
            }
            AdminCommand::Reshape { array, new: fields(&to) }
        }
        Work::Less(to) => {
            cut_off(&mut rig, from, to);
            AdminCommand::Resize { array, to: UsedSize::Of(to) }
        }
        Work::Fewer(to) => {
            cut_off(&mut rig, to, USED);
            let policy = Policy { rebuild_rate: Sectors::kib(64), background_depth: 1, ..Policy::default() };
            rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("the policy is taken");
            AdminCommand::Reshape { array, new: fields(&to) }
        }
    };
    rig.world.admin(command).unwrap_or_else(|error| panic!("{from}, {work:?}: {error}"));
    match work {
        Work::Takeover(..) | Work::Less(_) => rig.rest(),
        Work::Fewer(_) => {
            while rig.status().reshape.is_some_and(|reshape| reshape.moved.get() * 2 < reshape.total.get()) {
                rig.run_for(Nanos::from_millis(2));
            }
            assert!(rig.status().reshape.is_some(), "it is slow");
        }
    }
    let size = rig.world.controller().capacity(array).expect("it runs").get();
    rig.world.admin(AdminCommand::Stop { array }).expect("it stops");
    (rig, size)
}

#[test]
fn md_goes_on_with_what_the_engine_made() {
    assert!(USED < MEMBER_DATA);
    let folder = Folder::new("engine-takeovers");
    let (mut guest, mut left) = (Guest::new(), Vec::new());
    for (number, (from, work)) in works().into_iter().enumerate() {
        let key = format!("t{number}");
        let (rig, size) = worked(from, work, number % 2 == 1);
        let paths = dump_all(&rig.world, &key, &folder);
        let without: &[u16] = if let Work::Takeover(without, _) = work { without } else { &[] };
        let (images, kept) =
            (guest.images(&paths), |slot: &usize| !without.iter().any(|out| usize::from(*out) == *slot));
        let devices: Vec<String> = (0..images.len()).filter(kept).map(|slot| images[slot].clone()).collect();
        let kept: Vec<_> = (0..paths.len()).filter(kept).map(|slot| paths[slot].clone()).collect();
        guest.script(&format!(
            "assemble {key} {}; sleep 0.3; settle {key}; sleep 0.3; settle {key}; check {key}\n\
             say {key}.level \"$(</sys/block/${{md[{key}]#/dev/}}/md/level)\"\n\
             say {key}.position \"$(</sys/block/${{md[{key}]#/dev/}}/md/reshape_position)\"\n\
             say {key}.bytes $(blockdev --getsize64 ${{md[{key}]}}); stop {key}",
            devices.join(" ")
        ));
        left.push((key, from, work, size, kept));
    }
    let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
    for (key, from, work, size, paths) in left {
        let (what, said) = (format!("{key}: {from}, {work:?}"), |name: &str| output.text(&format!("{key}.{name}")));
        assert_eq!(said("assembled"), "yes", "{what}: {}", said("refusal"));
        let (Work::Takeover(_, to) | Work::Fewer(to)) = work else {
            assert_eq!((said("mismatch_cnt"), said("bytes")), ("0", size.to_string().as_str()), "{what}");
            continue;
        };
        let level = fields(&to).level.to_string();
        assert_eq!(
            (said("position"), said("level"), said("bytes")),
            ("none", level.as_str(), size.to_string().as_str()),
            "{what}"
        );
        let mut world = machine(&paths, SEED);
        let plan = assemble::plan(&world.candidates(), AssembleOptions::default()).expect("it can be planned");
        let array = world.start(AdminCommand::StartSet(plan)).expect("it starts");
        world.run_until_idle();
        let complaints = Members::of(&world, array).complaints();
        assert!(complaints.is_empty(), "{what}: {complaints:#?}");
        let mut wanted = vec![0; usize::try_from(size).expect("small")];
        stamp::stamp(&mut wanted, SEED, 0, 0);
        assert!(read_array(&mut world, array) == wanted, "{what}: the content has changed");
    }
}
