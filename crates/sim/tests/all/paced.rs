//! Next to hosts on flash a task works in short parts. A member that is lost between two parts of a unit, and an error in a later
//! part, cost no more than they do without parts.

use crate::support::{seeds, Case};
use openraid_core::actions::ReplyStatus;
use openraid_core::admin::{AdminCommand, Health, MemberState, Policy};
use openraid_core::events::RequestKind;
use openraid_core::geometry::{Geometry, StripeRole};
use openraid_format::{MdLevel, ShapeFields};
use openraid_sim::drive::Defect;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::redundancy::superblock_on;
use openraid_sim::oracle::{Content, Members};
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors, Slot, StripeIndex};

const CHUNK: Sectors = Sectors::kib(16);
/// A quarter of the 16 KiB that an operation may have at once in these simulations.
const PART: Sectors = Sectors::kib(4);

/// An array with data, whose task gives way to hosts however slow it is.
fn machine(shape: ArrayShape, options: RigOptions) -> Rig {
    let mut rig = Rig::new(shape, options);
    let policy = Policy { rebuild_minimum: Sectors::ZERO, ..Policy::default() };
    rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy }).expect("the policy is taken");
    for at in (0..rig.session.capacity()).step_by(128 << 10) {
        let end = (at + (128 << 10)).min(rig.session.capacity());
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, at..end);
    }
    rig.rest();
    // Hosts use the drives from now on.
    let hosts = hosts(&rig);
    rig.session.run(&mut rig.world, &hosts, 20);
    rig
}

/// Hosts that read, two requests at once, in the second half of the array.
fn hosts(rig: &Rig) -> Workload {
    let capacity = rig.session.capacity();
    Workload { depth: 2, len_max: 4096, align: 4096, range: capacity / 2..capacity, mix: [1, 0, 0, 0, 0] }
}

/// The drive that is filled in a slot, and the start of its data.
fn filled_drive(rig: &mut Rig, slot: Slot) -> (DriveId, DriveLba) {
    let hosts = hosts(rig);
    loop {
        let found = rig.drive_in(slot).and_then(|drive| Some((drive, superblock_on(&rig.world, drive)?)));
        match found {
            Some((drive, superblock)) if superblock.change().is_some() => return (drive, superblock.new_data_offset()),
            Some((drive, superblock)) if matches!(rig.state_of(slot), MemberState::Rebuilding { .. }) => {
                return (drive, superblock.data_offset);
            }
            _ => rig.session.run_on(&mut rig.world, &hosts, 1),
        }
    }
}

/// Serve hosts that read until a part of a unit is on this drive, and the next part is not.
fn serve_until_between_parts(rig: &mut Rig, (drive, start): (DriveId, DriveLba)) {
    let hosts = hosts(rig);
    loop {
        rig.world.drive_mut(drive).faults.written = Some(Vec::new());
        rig.session.run_on(&mut rig.world, &hosts, 1);
        let written = rig.world.drive_mut(drive).faults.written.take().expect("just asked for");
        if let Some((at, len)) = written.into_iter().rfind(|(at, _)| *at >= start) {
            assert!(len <= PART, "{len} at {at:?}");
            if !(at + len - start).get().is_multiple_of(CHUNK.get()) {
                return;
            }
        }
    }
}

/// Serve hosts that read until the task has ended, and return the longest write to this drive.
fn serve_to_the_end(rig: &mut Rig, (drive, start): (DriveId, DriveLba)) -> Sectors {
    let hosts = hosts(rig);
    rig.world.drive_mut(drive).faults.written = Some(Vec::new());
    while rig.status().task.is_some() {
        rig.session.run_on(&mut rig.world, &hosts, 1);
    }
    let written = rig.world.drive_mut(drive).faults.written.take().expect("just asked for");
    rig.rest();
    written.into_iter().filter(|(at, _)| *at >= start).map(|(_, len)| len).max().expect("it was written")
}

/// The order for a fourth member.
fn grow(rig: &mut Rig) {
    let new = ShapeFields { level: MdLevel::Raid5, layout: 2, chunk: CHUNK, raid_disks: 4 };
    rig.world.admin(AdminCommand::Reshape { array: rig.array, new }).unwrap_or_else(|error| panic!("{error}"));
    rig.session.hear(&mut rig.world);
}

/// Everything comes to rest, with this shape and all members.
fn end(rig: &mut Rig, shape: ArrayShape) {
    let all = Workload { mix: [1, 2, 0, 0, 0], range: 0..rig.session.capacity(), ..hosts(rig) };
    rig.session.run(&mut rig.world, &all, 60);
    rig.rest();
    rig.shape = shape;
    rig.session.learn_capacity(&rig.world, Content::Zeroes);
    assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
    rig.judge();
}

#[test]
fn a_member_that_is_lost_between_two_parts_of_a_rebuild_costs_nothing() {
    for seed in seeds(4, 200) {
        for (slot, how) in
            [(0, Loss::Failed), (0, Loss::Pulled), (2, Loss::Failed), (2, Loss::Pulled), (2, Loss::ReadOnly)]
        {
            let shape = ArrayShape::raid6(5, CHUNK);
            let _case = Case::new(seed, format!("{shape}, slot {slot}: {how:?}"));
            let mut rig = machine(shape, RigOptions { spares: 2, ..RigOptions::new(seed) });
            rig.lose(Slot(0), Loss::Failed);
            let filled = filled_drive(&mut rig, Slot(0));
            serve_until_between_parts(&mut rig, filled);
            rig.lose(Slot(slot), how);
            end(&mut rig, shape);
        }
    }
}

#[test]
fn a_member_that_is_lost_between_two_parts_of_a_move_costs_nothing() {
    let (from, to) = (ArrayShape::raid5(3, CHUNK), ArrayShape::raid5(4, CHUNK));
    for seed in seeds(4, 200) {
        for (slot, how) in [(1, Loss::Failed), (1, Loss::Pulled), (1, Loss::ReadOnly), (3, Loss::Failed)] {
            let _case = Case::new(seed, format!("slot {slot}: {how:?}"));
            let mut rig = machine(from, RigOptions { spares: 2, far: Sectors(512), ..RigOptions::new(seed) });
            grow(&mut rig);
            let filled = filled_drive(&mut rig, Slot(3));
            serve_until_between_parts(&mut rig, filled);
            rig.lose(Slot(slot), how);
            end(&mut rig, to);
        }
    }
}

/// Defects of the member in slot 1, in the second, third and fourth part of a chunk: sectors of its data.
const DEFECTS: [u64; 3] = [11, 5 * 32 + 17, 9 * 32 + 31];

fn add_defects(rig: &mut Rig) -> DriveId {
    let mut places = DEFECTS.map(|at| Members::of(&rig.world, rig.array).place(Slot(1), MemberLba(at)));
    places.iter_mut().map(|place| place.take().expect("it has a member")).fold(DriveId(0), |_, (drive, at)| {
        rig.world.drive_mut(drive).faults.add_defects(at, Sectors(1), Defect::UntilWritten);
        drive
    })
}

/// The sectors of the array in the rows with a defect that are on the first two members.
fn sectors_without_a_source(shape: &ArrayShape) -> Vec<u64> {
    let Geometry::Parity(parity) = shape.geometry() else { unreachable!("it has parity") };
    let mut lost: Vec<u64> = DEFECTS
        .iter()
        .flat_map(|at| [(*at, Slot(0)), (*at, Slot(1))])
        .filter_map(|(at, slot)| {
            let stripe = StripeIndex(at / CHUNK.get());
            match parity.role_of(stripe, slot) {
                StripeRole::Data(column) => Some(parity.set_lba(stripe, column, Sectors(at % CHUNK.get())).get()),
                StripeRole::P | StripeRole::Q => None,
            }
        })
        .collect();
    lost.sort_unstable();
    lost
}

#[test]
fn an_error_in_a_later_part_of_a_rebuild_costs_its_sectors_alone() {
    for seed in seeds(4, 200) {
        for (shape, lost) in [
            (ArrayShape::raid6(5, CHUNK), Vec::new()),
            (ArrayShape::raid5(4, CHUNK), sectors_without_a_source(&ArrayShape::raid5(4, CHUNK))),
        ] {
            let _case = Case::new(seed, shape);
            let mut rig = machine(shape, RigOptions { spares: 1, ..RigOptions::new(seed) });
            add_defects(&mut rig);
            rig.lose(Slot(0), Loss::Failed);
            let filled = filled_drive(&mut rig, Slot(0));
            assert!(serve_to_the_end(&mut rig, filled) <= PART);
            assert_eq!(rig.health(), Health::Optimal, "{}", rig.world.dump());
            for sector in 0..rig.session.capacity() / 512 {
                let begun = rig.session.versions_mut().begin_read();
                match rig.world.read(rig.array, sector * 512, 512) {
                    Ok(bytes) => {
                        assert!(!lost.contains(&sector), "{sector} is there");
                        let read = rig.session.versions_mut().end_read(begun, sector * 512, &bytes);
                        read.unwrap_or_else(|wrong| panic!("sector {sector}: {}", wrong.text));
                    }
                    Err(error) => {
                        rig.session.versions_mut().drop_read(begun);
                        assert_eq!((error, lost.contains(&sector)), (ReplyStatus::IoError, true), "sector {sector}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_error_in_a_later_part_of_a_move_costs_nothing() {
    for seed in seeds(4, 200) {
        let _case = Case::new(seed, "RAID 5 of three");
        let mut rig =
            machine(ArrayShape::raid5(3, CHUNK), RigOptions { spares: 1, far: Sectors(512), ..RigOptions::new(seed) });
        let drive = add_defects(&mut rig);
        grow(&mut rig);
        let filled = filled_drive(&mut rig, Slot(3));
        assert!(serve_to_the_end(&mut rig, filled) <= PART);
        end(&mut rig, ArrayShape::raid5(4, CHUNK));
        assert!(rig.status().members.iter().any(|member| member.drive == Some(drive) && member.media_errors == 3));
    }
}
