//! The drives that an array accepts as members, and the reason for which it refuses others.

use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, NewMember};
use openraid_core::array::new_array::{superblock_for_new_member, NewDrive};
use openraid_format::{Superblock, Uuid};
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{BlockSize, DriveId, Sectors};

/// A RAID 5 of three with a bitmap that has a bit for each 4 KiB, and a new drive.
fn array_and_drive() -> (Rig, DriveId) {
    let options = RigOptions { bitmap: true, bitmap_chunk: Some(4096), ..RigOptions::new(1) };
    let mut rig = Rig::new(ArrayShape::raid5(3, Sectors::kib(64)), options);
    let drive = rig.new_drive();
    (rig, drive)
}

/// The superblock that the drive would have as a member.
fn superblock(rig: &Rig, drive: DriveId) -> Superblock {
    let of_array =
        rig.world.status(rig.array).and_then(|status| status.superblock).expect("the array has a superblock");
    let capacity = rig.world.drive(drive).spec().capacity;
    superblock_for_new_member(&of_array, &NewDrive { drive, capacity, uuid: Uuid([7; 16]) }).expect("it fits")
}

fn add(rig: &mut Rig, drive: DriveId, superblock: Superblock) -> Result<AdminOutcome, AdminError> {
    let member = NewMember { drive, superblock, returning: false };
    rig.world.admin(AdminCommand::Add { array: rig.array, member })
}

fn refusal(answer: Result<AdminOutcome, AdminError>) -> String {
    answer.expect_err("it is refused").to_string()
}

#[test]
fn a_drive_that_fits_is_taken() {
    let (mut rig, drive) = array_and_drive();
    let superblock = superblock(&rig, drive);
    assert_eq!(add(&mut rig, drive, superblock), Ok(AdminOutcome::Done));
}

#[test]
fn a_drive_with_larger_blocks_is_refused_with_both_sizes() {
    let (mut rig, drive) = array_and_drive();
    let spec = *rig.world.drive(drive).spec();
    let coarse = rig.world.add_drive(openraid_sim::drive::DriveSpec { block: BlockSize::B4096, ..spec });
    let superblock = superblock(&rig, coarse);
    let text = refusal(add(&mut rig, coarse, superblock));
    assert!(text.contains("logical block is 4096 bytes, the array's 512"), "{text}");
}

#[test]
fn a_member_that_comes_back_with_a_smaller_data_area_is_refused_with_the_area_and_the_need() {
    let (mut rig, drive) = array_and_drive();
    let mut superblock = superblock(&rig, drive);
    let need = superblock.data_size.get();
    superblock.data_size = Sectors(need - 128);
    let text = refusal(add(&mut rig, drive, superblock.clone()));
    let (have, offset) = (need - 128, superblock.data_offset.get());
    assert!(text.contains(&format!(" ({have} sectors) from sector {offset} on")), "{text}");
    assert!(text.contains(&format!(" ({need} sectors) of each member")), "{text}");
}

#[test]
fn a_drive_without_room_for_the_bitmap_is_refused_with_the_room_and_the_need() {
    let (mut rig, drive) = array_and_drive();
    let mut superblock = superblock(&rig, drive);
    let capacity = rig.world.drive(drive).spec().capacity;
    let (_, room) = superblock.bitmap_room(capacity).expect("it has a bitmap");
    let offset = superblock.bitmap_offset().expect("it has a bitmap");
    // No sector is free between the bitmap and the next area.
    superblock.set_bitmap_offset(Some(offset + i32::try_from(room.get()).expect("small")));
    let text = refusal(add(&mut rig, drive, superblock));
    assert!(text.contains("write-intent bitmap needs") && text.contains("room for 0 sectors between"), "{text}");
}
