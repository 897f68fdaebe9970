//! Compares the layout of new members with mdadm's layout for drives of the same size.

use openraid_format::{superblock_lba, MdLevel, MemberPlacement, MinorVersion, PlacementError, PlacementRequest};
use openraid_units::{DriveLba, Sectors};

struct Row {
    request: PlacementRequest,
    bitmap: bool,
    superblock: u64,
    data_offset: u64,
    data_size: u64,
    used: u64,
    bitmap_offset: i32,
    bad_blocks_offset: i32,
}

fn rows() -> Vec<Row> {
    let text = include_str!("golden/placement.tsv");
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let word: Vec<&str> = line.split('\t').collect();
        let number = |index: usize| word[index].parse::<u64>().unwrap();
        let level = if word[2] == "linear" { -1 } else { word[2].parse().unwrap() };
        Row {
            request: PlacementRequest {
                minor: *MinorVersion::ALL.iter().find(|minor| minor.to_string() == word[1]).unwrap(),
                level: MdLevel::from_number(level).unwrap(),
                chunk: Sectors(number(4)),
                drive_size: Sectors(number(0)),
            },
            bitmap: word[3] == "internal",
            superblock: number(5),
            data_offset: number(6),
            data_size: number(7),
            used: number(8),
            bitmap_offset: word[9].parse().unwrap(),
            bad_blocks_offset: word[10].parse().unwrap(),
        }
    });
    rows.collect()
}

#[test]
fn superblock_and_data_are_where_mdadm_puts_them() {
    let rows = rows();
    assert!(rows.len() > 150);
    for Row { request, superblock, data_offset, .. } in rows {
        let placement = MemberPlacement::new(request).unwrap_or_else(|error| panic!("{request:?}: {error}"));
        assert_eq!(placement.super_offset.get(), superblock, "{request:?}");
        assert_eq!(placement.data_offset.get(), data_offset, "{request:?}");
        assert_eq!(superblock_lba(request.minor, request.drive_size), Some(placement.super_offset));
    }
}

#[test]
fn as_much_is_used_as_mdadm_uses() {
    for Row { request, bitmap, data_size, used, .. } in rows() {
        let placement = MemberPlacement::new(request).unwrap();
        // If the bitmap is at the end of the drive, mdadm reserves only the size of that bitmap. On the largest drives
        // it chooses the used size before it knows the bitmap's size.
        if request.minor == MinorVersion::V1_0 && bitmap {
            assert!(placement.data_size.get() <= data_size, "{request:?}");
            assert!(data_size - placement.data_size.get() < 256, "{request:?}");
        } else {
            assert_eq!(placement.data_size.get(), data_size, "{request:?}");
            let used = if request.level.is_redundant() { used } else { data_size };
            assert_eq!(placement.usable.get(), used, "{request:?}");
        }
    }
}

#[test]
fn bitmap_and_log_are_as_in_the_drawing() {
    for Row { request, bitmap, bitmap_offset, bad_blocks_offset, .. } in rows() {
        let placement = MemberPlacement::new(request).unwrap();
        let log = placement.bad_blocks.offset;
        assert_eq!(placement.bad_blocks.size, 8);
        let at_end = request.minor == MinorVersion::V1_0;
        if bitmap && !at_end {
            assert_eq!(placement.bitmap_offset, Some(bitmap_offset), "{request:?}");
            assert!(log >= bad_blocks_offset, "ours is after the whole room");
        } else {
            assert_eq!(log, bad_blocks_offset, "{request:?}");
        }
        let room = i32::try_from(placement.bitmap_room.get()).unwrap();
        match placement.bitmap_offset {
            Some(offset) => assert_eq!(offset + room, log, "{request:?}"),
            None => assert_eq!(room, 0),
        }
    }
}

#[test]
fn a_drive_one_sector_too_small_is_refused_and_the_size_named_suffices() {
    for minor in MinorVersion::ALL {
        for level in MdLevel::ALL {
            for chunk in [8, 128, 1024, 8192] {
                let request =
                    |size| PlacementRequest { minor, level, chunk: Sectors(chunk), drive_size: Sectors(size) };
                let Err(PlacementError::TooSmall { need, .. }) = MemberPlacement::new(request(0)) else {
                    panic!("{minor}")
                };
                let least =
                    (0..=need.get()).rev().take_while(|&size| MemberPlacement::new(request(size)).is_ok()).last();
                let least = least.unwrap_or_else(|| panic!("{minor} {level} {chunk}: {need:?} is not enough"));
                assert!(MemberPlacement::new(request(least - 1)).is_err());
                assert!(need.get() - least < 16, "{minor} {level} {chunk}: {need:?} asked, {least} is enough");
            }
        }
    }
}

#[test]
fn chunks_that_no_level_can_have_are_refused() {
    for (level, chunk) in [
        (MdLevel::Raid5, 0),
        (MdLevel::Raid5, 4),
        (MdLevel::Raid6, 24),
        (MdLevel::Raid10, 96),
        (MdLevel::Raid0, 0),
        (MdLevel::Raid0, u64::MAX),
    ] {
        let request =
            PlacementRequest { minor: MinorVersion::V1_2, level, chunk: Sectors(chunk), drive_size: Sectors(1 << 40) };
        let refused = MemberPlacement::new(request);
        assert_eq!(refused, Err(PlacementError::BadChunk { level, chunk: Sectors(chunk) }));
    }
}

/// mdadm leaves more room before the data than we do if it is told so (`--data-offset`), or if the drives were larger.
#[test]
fn a_drive_that_joins_has_its_data_where_the_other_members_have_it_or_as_near_as_there_is_room() {
    let drive = Sectors::mib(1024);
    let request = |drive_size| PlacementRequest {
        minor: MinorVersion::V1_2,
        level: MdLevel::Raid5,
        chunk: Sectors::kib(512),
        drive_size,
    };
    let others = DriveLba(Sectors::mib(8).get());
    let need = drive - Sectors::mib(8);
    let placed =
        |size, others| MemberPlacement::for_size(request(size), false, need, others).map(|placed| placed.data_offset);
    let usual = MemberPlacement::new(request(drive)).expect("it is large enough").data_offset;
    assert!(usual < others);
    // As large as the others, larger, and a little smaller: then the headroom is what the drive has room for.
    assert_eq!(placed(drive, others), Ok(others));
    assert_eq!(placed(drive * 4, others), Ok(others));
    assert_eq!(placed(drive - Sectors::mib(3), others), Ok(DriveLba(Sectors::mib(5).get())));
    assert_eq!(placed(drive - Sectors::mib(7), others), Ok(DriveLba(Sectors::mib(1).get())));
    // The alignment goes last.
    assert_eq!(placed(drive - Sectors::mib(8) + Sectors::kib(16), others), Ok(DriveLba(32)));
    // Data that begins too early for others begins as usual.
    assert_eq!(placed(drive, DriveLba(16)), Ok(usual));
}
