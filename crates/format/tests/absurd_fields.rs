//! Superblocks of the real driver, with one field set to an impossible value and a correct checksum. Each is refused
//! because of that field, and the largest valid value is accepted.

mod common;

use common::{case, fix_checksum};
use openraid_format::{
    DeviceRole, FeatureMap, MdLevel, MetadataArea, MinorVersion, ReshapeFault, RoleTable, Superblock, SuperblockError,
    ROLES_MAX,
};
use openraid_units::{DriveLba, Sectors, SetLba, Slot};

/// The superblock of the first member of a golden array, with some bytes replaced.
fn with(name: &str, changes: &[(usize, &[u8])]) -> Result<Superblock, SuperblockError> {
    let member = &case(name)[0];
    let mut bytes = [0; 4096];
    bytes[..member.superblock_bytes().len()].copy_from_slice(member.superblock_bytes());
    for (at, field) in changes {
        bytes[*at..at + field.len()].copy_from_slice(field);
    }
    fix_checksum(&mut bytes);
    Superblock::decode(&bytes, member.minor(), member.size)
}

fn refusal(name: &str, at: usize, field: &[u8]) -> SuperblockError {
    with(name, &[(at, field)]).expect_err("an absurd field was taken")
}

#[test]
fn the_untouched_superblocks_are_taken() {
    for name in ["raid5-left-symmetric", "raid1-10", "raid1-11", "raid10-n2", "raid6-ddf-N-restart", "linear3"] {
        assert!(with(name, &[]).is_ok(), "{name}");
    }
}

#[test]
fn the_checksum_covers_a_role_table_of_odd_length() {
    let odd = with("raid1", &[(220, &127u32.to_le_bytes()), (256 + 2 * 126, &[0x34, 0x12])]);
    assert_eq!(odd.unwrap_err(), SuperblockError::BadRole { dev_number: 126, slot: 0x1234 });
    let odd = with("raid1", &[(220, &127u32.to_le_bytes()), (256 + 2 * 126, &[1, 0])]).unwrap();
    assert_eq!(
        (odd.roles.len(), odd.roles.get(126), odd.roles.get(127)),
        (127, DeviceRole::Active(Slot(1)), DeviceRole::Spare)
    );
    let mut bytes = [0; 512];
    odd.encode(&mut bytes);
    let mut fixed = bytes;
    fix_checksum(&mut fixed);
    assert_eq!(fixed, bytes);
}

#[test]
fn levels_layouts_chunks_and_counts_are_those_of_md() {
    let raid5 = "raid5-left-symmetric";
    assert_eq!(refusal(raid5, 72, &7i32.to_le_bytes()), SuperblockError::UnknownLevel(7));
    assert_eq!(refusal(raid5, 72, &(-4i32).to_le_bytes()), SuperblockError::UnknownLevel(-4));
    let layout = SuperblockError::UnknownLayout { level: MdLevel::Raid5, layout: 6 };
    assert_eq!(refusal(raid5, 76, &[6]), layout);
    for chunk in [0u32, 1, 4, 12, 96, u32::MAX, 1 << 31] {
        let expected = SuperblockError::BadChunk { level: MdLevel::Raid5, chunk: Sectors(chunk.into()) };
        assert_eq!(refusal(raid5, 88, &chunk.to_le_bytes()), expected);
    }
    for count in [0u32, 1, 1921, 0xffff, 0x1_0003, u32::MAX] {
        let expected = SuperblockError::BadMemberCount { level: MdLevel::Raid5, count };
        assert_eq!(refusal(raid5, 92, &count.to_le_bytes()), expected);
    }
    assert!(with("raid0-chunk48", &[]).is_ok());
    let unknown = refusal("raid0-unequal-original", 76, &[3]);
    assert_eq!(unknown, SuperblockError::UnknownLayout { level: MdLevel::Raid0, layout: 3 });
    assert_eq!(with("raid0-equal", &[(76, &[3])]).unwrap().raid0_layout(), None);
    let copies = refusal("raid10-n2", 76, &0x105u32.to_le_bytes());
    assert_eq!(copies, SuperblockError::UnknownLayout { level: MdLevel::Raid10, layout: 0x105 });
}

#[test]
fn unknown_and_contradicting_features_are_named() {
    let unknown = refusal("raid1", 8, &0x8002_0001u32.to_le_bytes());
    assert_eq!(unknown, SuperblockError::UnknownFeatures(FeatureMap(0x8002_0000)));
    assert!(unknown.to_string().contains("unknown (131072), unknown (2147483648)"));
    let both = refusal("raid5-ppl", 8, &0x401u32.to_le_bytes());
    assert_eq!(both, SuperblockError::ContradictingFeatures(FeatureMap::BITMAP | FeatureMap::PPL));
    assert!(both.to_string().contains("bitmap (1), partial parity log (1024)"));
}

#[test]
fn the_data_area_keeps_inside_the_drive_and_off_the_superblock() {
    let member = &case("raid1")[0];
    let (start, size) = (2048u64, member.size.get() - 2048);
    for (start, size) in [
        (start, size + 1),
        (start + 1, size),
        (8, 100),
        (0, 100),
        (u64::MAX, 2),
        (2, u64::MAX - 1),
        (start, u64::MAX),
        (start, 0),
    ] {
        let changes: [(usize, &[u8]); 2] = [(128, &start.to_le_bytes()), (136, &size.to_le_bytes())];
        let error = with("raid1", &changes).unwrap_err();
        let limit = DriveLba(member.size.get());
        assert_eq!(error, SuperblockError::BadDataArea { start: DriveLba(start), size: Sectors(size), limit });
    }
    let first_free: [(usize, &[u8]); 2] = [(128, &9u64.to_le_bytes()), (188, &100_000i32.to_le_bytes())];
    assert!(matches!(with("raid1", &first_free), Err(SuperblockError::BadMetadataArea(_))));
    // A superblock at the end limits the data before it.
    let end = case("raid1-10")[0].superblock().unwrap();
    let over = end.super_offset.get() + 1;
    assert!(matches!(refusal("raid1-10", 136, &over.to_le_bytes()), SuperblockError::BadDataArea { .. }));
}

#[test]
fn more_than_the_data_area_cannot_be_used_or_rebuilt() {
    let sb = with("raid5-left-symmetric", &[]).unwrap();
    let over = sb.data_size + Sectors(1);
    let expected = SuperblockError::SizeBeyondData { size: over, data_size: sb.data_size };
    assert_eq!(refusal("raid5-left-symmetric", 80, &over.get().to_le_bytes()), expected);
    assert!(matches!(refusal("raid1", 80, &[0; 8]), SuperblockError::SizeBeyondData { .. }));
    let rebuilt = |sectors: u64| with("raid1", &[(8, &[2]), (152, &sectors.to_le_bytes())]);
    let all = case("raid1")[0].superblock().unwrap().data_size.get();
    assert_eq!(rebuilt(all + 1), Err(SuperblockError::RecoveryBeyondData(all + 1)));
    assert_eq!(rebuilt(all).unwrap().recovery_offset().map(|at| at.get()), Some(all));
    assert!(rebuilt(u64::MAX).is_ok(), "md writes this at the very end of a rebuild");
}

#[test]
fn a_superblock_of_another_place_is_refused() {
    let error = refusal("raid1", 144, &16u64.to_le_bytes());
    assert_eq!(error, SuperblockError::WrongPlace { says: DriveLba(16), expected: DriveLba(8) });
    let member = &case("raid1-11")[0];
    let error = Superblock::decode(member.superblock_bytes(), MinorVersion::V1_2, member.size).unwrap_err();
    assert_eq!(error, SuperblockError::WrongPlace { says: DriveLba(0), expected: DriveLba(8) });
    let error = Superblock::decode(member.superblock_bytes(), MinorVersion::V1_1, Sectors(23)).unwrap_err();
    assert_eq!(error, SuperblockError::DriveTooSmall(Sectors(23)));
}

#[test]
fn bitmap_and_logs_keep_off_everything_else() {
    let bad = |area| SuperblockError::BadMetadataArea(area);
    // In sectors from the superblock at 8: the superblock itself, the data, before the drive, after its end, far
    // outside.
    for offset in [0i32, 2040, 2048, -9, i32::MIN, i32::MAX, 81_912, 81_911] {
        assert_eq!(refusal("raid1-bitmap", 96, &offset.to_le_bytes()), bad(MetadataArea::Bitmap), "{offset}");
        assert_eq!(with("raid1-bitmap", &[(8, &[8]), (188, &offset.to_le_bytes())]), Err(bad(MetadataArea::BadBlocks)));
    }
    assert!(with("raid1-bitmap", &[(96, &1i32.to_le_bytes())]).is_ok());
    assert!(with("raid1-bitmap", &[(96, &2039i32.to_le_bytes())]).is_ok());
    // A log that begins before the superblock and overlaps it, or ends directly before it.
    assert_eq!(refusal("raid1", 188, &(-7i32).to_le_bytes()), bad(MetadataArea::BadBlocks));
    assert!(with("raid1", &[(188, &(-8i32).to_le_bytes())]).is_ok());
    assert_eq!(refusal("raid1", 186, &9u16.to_le_bytes()), bad(MetadataArea::BadBlocks));
    assert_eq!(refusal("raid1", 185, &[13]), bad(MetadataArea::BadBlocks));
    assert!(with("raid1", &[(185, &[12])]).is_ok());
    assert_eq!(with("raid1", &[(8, &[8]), (186, &[0, 0])]), Err(bad(MetadataArea::BadBlocks)));
    assert_eq!(with("raid1", &[(186, &[0, 0])]).unwrap().bad_block_log(), None);
    for (offset, size) in [(8i16, 0u16), (8, u16::MAX), (0, 8), (-9, 8), (-4, 8)] {
        let field = [offset.to_le_bytes(), size.to_le_bytes()].concat();
        assert_eq!(refusal("raid5-ppl", 96, &field), bad(MetadataArea::Ppl), "{offset} {size}");
    }
}

#[test]
fn roles_name_slots_the_array_has() {
    assert_eq!(refusal("raid1", 258, &2u16.to_le_bytes()), SuperblockError::BadRole { dev_number: 1, slot: 2 });
    assert_eq!(refusal("raid1", 510, &[0xfc, 0xff]), SuperblockError::BadRole { dev_number: 127, slot: 0xfffc });
    assert_eq!(refusal("raid1", 220, &1921u32.to_le_bytes()), SuperblockError::TooManyRoles(1921));
    assert_eq!(with("raid1", &[(160, &[0xff; 4])]).unwrap().role(), DeviceRole::Spare);
    // While a set shrinks, the slots that will be removed still have their members.
    let member = &case("change-raid5-4-to-5")[0];
    let shrinking = |slot: u16| {
        let mut superblock = member.superblock().expect("md wrote it");
        superblock.set_change_position(SetLba(1536)).expect("the end of stripes of both shapes");
        superblock.turn_change(SetLba(superblock.reshape.position)).expect("the end of stripes of both shapes");
        superblock.roles.set(4, DeviceRole::Active(Slot(slot)));
        let mut bytes = [0; 4096];
        superblock.encode(&mut bytes);
        Superblock::decode(&bytes, member.minor(), member.size)
    };
    assert_eq!(shrinking(4).expect("of five slots").raid_disks, 4);
    assert_eq!(shrinking(5), Err(SuperblockError::BadRole { dev_number: 4, slot: 5 }));
    // RAID 1 has no change that moves data.
    let mirror = |delta: i32| with("raid1", &[(8, &[4]), (112, &delta.to_le_bytes()), (258, &[2, 0])]);
    let members = |delta| Err(SuperblockError::BadReshape(ReshapeFault::Members { raid_disks: 2, delta }));
    assert_eq!(mirror(-1), Err(SuperblockError::BadReshape(ReshapeFault::Level(MdLevel::Raid1))));
    assert_eq!(mirror(1), Err(SuperblockError::BadRole { dev_number: 1, slot: 2 }));
    assert_eq!(mirror(2), members(2));
    assert_eq!(mirror(i32::MIN), members(i32::MIN));
    assert_eq!(mirror(i32::MAX), members(i32::MAX));
}

#[test]
fn the_largest_role_table_fills_4096_bytes() {
    let mut sb = with("raid1", &[(8, &[0])]).unwrap();
    sb.roles = RoleTable::new(ROLES_MAX);
    sb.roles.set(0, DeviceRole::Active(Slot(0)));
    sb.roles.set(ROLES_MAX - 1, DeviceRole::Faulty);
    let mut bytes = [0; 4096];
    assert_eq!(sb.encode(&mut bytes), 4096);
    // Exactly 8 sectors after the superblock is the first valid place of the log.
    sb.bad_blocks.offset = 8;
    sb.encode(&mut bytes);
    assert_eq!(Superblock::decode(&bytes, MinorVersion::V1_2, case("raid1")[0].size), Ok(sb));
}

#[test]
fn a_logical_block_size_at_224_is_kept_and_not_invented() {
    let sb = with("raid1", &[(224, &4096u32.to_le_bytes()), (228, &[9; 28]), (12, &[7; 4])]).unwrap();
    assert_eq!(sb.logical_block_size, 4096);
    let mut bytes = [0; 512];
    sb.encode(&mut bytes);
    assert_eq!((&bytes[224..228], &bytes[228..256], &bytes[12..16]), (&[0, 16, 0, 0][..], &[9; 28][..], &[7; 4][..]));
    for member in common::golden() {
        assert_eq!(member.superblock().unwrap().logical_block_size, 0);
    }
}
