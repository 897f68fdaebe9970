//! The reverse test: superblocks that this crate encodes, in sparse files, decoded by `mdadm --examine`.
//!
//! If `OPENRAID_KEEP` names a folder, the files stay in it, for a test with a real md driver.

mod common;

use common::{has, number, run, value, Folder};
use openraid_format::{
    default_layout, sync_size, BitmapHeader, DeviceFlags, FarSets, MdLevel, MemberFields, MemberPlacement,
    MinorVersion, NewSet, PlacementRequest, Raid10Layout, SetName, Superblock, Timestamp, Uuid, BITMAP_HEADER_BYTES,
    SUPERBLOCK_BYTES_MAX,
};
use openraid_units::Sectors;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An array for the test.
struct Case {
    name: String,
    minor: MinorVersion,
    level: MdLevel,
    layout: u32,
    chunk: Sectors,
    members: u16,
    drive_size: Sectors,
    bitmap: bool,
}

const DRIVE: Sectors = Sectors::mib(24);

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for minor in MinorVersion::ALL {
        for level in MdLevel::ALL {
            let layouts: &[u32] = match level {
                MdLevel::Raid5 => &[0, 1, 2, 3, 4, 5],
                MdLevel::Raid6 => &[0, 1, 2, 3, 4, 5, 8, 9, 10, 16, 17, 18, 19, 20],
                MdLevel::Raid10 => &[0x102, 0x201, 0x10201, 0x103, 0x301, 0x10301],
                MdLevel::Raid0 => &[0, 1, 2],
                MdLevel::Linear | MdLevel::Raid1 | MdLevel::Raid4 => &[0],
            };
            for &layout in layouts {
                let members = if level == MdLevel::Raid6 { 5 } else { 3 };
                let name = format!("{level}-{layout:x}-{minor}");
                let bitmap = level.is_redundant() && layout % 2 == 0;
                let chunk = Sectors::kib(if level == MdLevel::Raid1 { 0 } else { 16 });
                cases.push(Case { name, minor, level, layout, chunk, members, drive_size: DRIVE, bitmap });
            }
        }
        for tib in [1u64, 3, 7] {
            let (level, layout) = (MdLevel::Raid5, default_layout(MdLevel::Raid5));
            let (name, drive_size) = (format!("large-{tib}-{minor}"), Sectors(tib << 31));
            cases.push(Case {
                name,
                minor,
                level,
                layout,
                chunk: Sectors::kib(512),
                members: 3,
                drive_size,
                bitmap: true,
            });
        }
    }
    cases
}

/// The superblocks of an array, and the files that contain them.
fn make(case: &Case, folder: &Path) -> Vec<(PathBuf, Superblock)> {
    let Case { minor, level, chunk, drive_size, .. } = *case;
    let placement = MemberPlacement::new(PlacementRequest { minor, level, chunk, drive_size }).unwrap();
    let uuid = |number: u16| {
        let mut bytes = [0x5a; 16];
        bytes[0..2].copy_from_slice(&number.to_be_bytes());
        Uuid(bytes)
    };
    let set = NewSet {
        uuid: uuid(u16::try_from(case.name.len()).unwrap() << 8 | u16::try_from(case.layout & 0xff).unwrap()),
        name: SetName::new(Some("here"), &case.name).unwrap(),
        created: Timestamp::new(1_700_000_000, 123_456),
        level,
        layout: case.layout,
        chunk,
        size: if level.is_redundant() { placement.usable } else { Sectors(0) },
        raid_disks: case.members,
        resync_from: None,
        bitmap: case.bitmap,
    };
    let members = (0..case.members).map(|slot| {
        let member = MemberFields { dev_number: slot.into(), uuid: uuid(slot), flags: DeviceFlags::default() };
        let superblock = set.superblock(member, &placement, set.roles(1));
        let path = folder.join(format!("{}-d{slot}.img", case.name));
        write(&path, drive_size, &superblock);
        (path, superblock)
    });
    members.collect()
}

fn write(path: &Path, drive_size: Sectors, superblock: &Superblock) {
    let file = File::create(path).unwrap();
    file.set_len(drive_size.bytes().get()).unwrap();
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    let len = superblock.encode(&mut bytes);
    file.write_all_at(&bytes[..len], superblock.super_offset.offset().bytes().get()).unwrap();
    if let Some((start, room)) = superblock.bitmap_room(drive_size) {
        let covered = sync_size(superblock).unwrap();
        let chunk = openraid_format::bitmap_chunk_for(covered, room).unwrap();
        let header = BitmapHeader::new(superblock.set_uuid, superblock.events, covered, chunk);
        header.check(superblock, covered, room).unwrap();
        let mut bytes = [0; BITMAP_HEADER_BYTES];
        header.encode(&mut bytes);
        file.write_all_at(&bytes, start.offset().bytes().get()).unwrap();
        // mdadm reads the bitmap of a plain file only if it is in a separate file.
        let mut alone = vec![0; usize::try_from(header.geometry().bytes().get()).unwrap()];
        alone[..BITMAP_HEADER_BYTES].copy_from_slice(&bytes);
        alone[BITMAP_HEADER_BYTES] = 1;
        std::fs::write(path.with_extension("bitmap"), alone).unwrap();
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(String::from).collect()
}

#[test]
fn mdadm_reads_back_every_field_of_superblocks_made_here() {
    let folder = Folder::new("mdadm");
    let kept = std::env::var_os("OPENRAID_KEEP").map(PathBuf::from);
    let folder = kept.as_deref().unwrap_or(&folder.0);
    let has_mdadm = has("mdadm");
    for case in cases() {
        for (path, superblock) in make(&case, folder) {
            if has_mdadm {
                let said = lines(&run(&format!("mdadm --examine {}", path.display())));
                compare(&case, &superblock, &said);
                let bitmap = path.with_extension("bitmap");
                if bitmap.exists() {
                    compare_bitmap(&case, &superblock, &lines(&run(&format!("mdadm -X {}", bitmap.display()))));
                }
            }
            if kept.is_none() {
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}

fn compare(case: &Case, sb: &Superblock, said: &[String]) {
    let text = |key: &str| value(said, key).unwrap_or_else(|| panic!("{}: no line {key}: {said:#?}", case.name));
    let sectors = |key: &str| u64::try_from(number(text(key))).unwrap();
    assert_eq!(text("Version"), case.minor.to_string());
    assert_eq!(text("Feature Map"), format!("0x{:x}", sb.features.0));
    assert_eq!(text("Array UUID"), sb.set_uuid.to_string());
    assert_eq!(text("Device UUID"), sb.device_uuid.to_string());
    assert!(text("Name").starts_with(&sb.set_name.to_string()));
    assert_eq!(text("Raid Level"), case.level.to_string());
    assert_eq!(text("Raid Devices"), case.members.to_string());
    assert_eq!(sectors("Avail Dev Size"), sb.data_size.get());
    if let Some(used) = value(said, "Used Dev Size") {
        assert_eq!(u64::try_from(number(used)).unwrap(), sb.size.get());
    } else {
        assert!(sb.size == sb.data_size || !case.level.is_redundant(), "{}", case.name);
    }
    assert_eq!(value(said, "Data Offset").map_or(0, number), i64::try_from(sb.data_offset.get()).unwrap());
    assert_eq!(sectors("Super Offset"), sb.super_offset.get());
    assert_eq!(text("State"), "clean");
    assert_eq!(value(said, "Internal Bitmap").map(number), sb.bitmap_offset().map(i64::from));
    let log = sb.bad_block_log().unwrap();
    assert_eq!(text("Bad Block Log"), format!("512 entries available at offset {} sectors", log.offset));
    assert!(text("Checksum").ends_with("- correct"), "{}", case.name);
    assert_eq!(text("Events"), "0");
    assert_eq!(text("Device Role"), format!("Active device {}", sb.dev_number));
    let all = "A".repeat(case.members.into());
    assert!(text("Array State").starts_with(&format!("{all} (")), "{}", text("Array State"));
    let chunk = if case.level == MdLevel::Linear { "Rounding" } else { "Chunk Size" };
    if case.level != MdLevel::Raid1 {
        assert_eq!(text(chunk), format!("{}K", case.chunk.get() / 2));
    }
    if let Some(word) = layout_word(case) {
        assert_eq!(text("Layout"), word, "{}", case.name);
    }
}

/// mdadm's word for the layout, written here independently.
fn layout_word(case: &Case) -> Option<String> {
    let word = match (case.level, case.layout) {
        (MdLevel::Raid0, 1) => "original",
        (MdLevel::Raid0, 2) => "alternate",
        (MdLevel::Raid5 | MdLevel::Raid6, 0) => "left-asymmetric",
        (MdLevel::Raid5 | MdLevel::Raid6, 1) => "right-asymmetric",
        (MdLevel::Raid5 | MdLevel::Raid6, 2) => "left-symmetric",
        (MdLevel::Raid5 | MdLevel::Raid6, 3) => "right-symmetric",
        (MdLevel::Raid5 | MdLevel::Raid6, 4) => "parity-first",
        (MdLevel::Raid5 | MdLevel::Raid6, 5) => "parity-last",
        (MdLevel::Raid6, 8) => "ddf-zero-restart",
        (MdLevel::Raid6, 9) => "ddf-N-restart",
        (MdLevel::Raid6, 10) => "ddf-N-continue",
        (MdLevel::Raid6, 16) => "left-asymmetric-6",
        (MdLevel::Raid6, 17) => "right-asymmetric-6",
        (MdLevel::Raid6, 18) => "left-symmetric-6",
        (MdLevel::Raid6, 19) => "right-symmetric-6",
        (MdLevel::Raid6, 20) => "parity-first-6",
        (MdLevel::Raid10, layout) => {
            let copies = Raid10Layout::from_number(layout).unwrap();
            assert_eq!(copies.far_sets, FarSets::Whole);
            return Some(match layout & 0xf_ff00 {
                0x100 => format!("near={}", copies.near),
                far if far >= 0x1_0000 => format!("offset={}", copies.far),
                _ => format!("far={}", copies.far),
            });
        }
        _ => return None,
    };
    Some(word.to_string())
}

fn compare_bitmap(case: &Case, sb: &Superblock, said: &[String]) {
    let text = |key: &str| value(said, key).unwrap_or_else(|| panic!("{}: no line {key}: {said:#?}", case.name));
    assert_eq!(text("Version"), "4");
    assert_eq!(text("UUID"), sb.set_uuid.to_string());
    assert_eq!(text("State"), "OK");
    assert_eq!(number(text("Sync Size")), i64::try_from(sync_size(sb).unwrap().get() / 2).unwrap());
    let covered = sync_size(sb).unwrap().get();
    let bits = covered.div_ceil(64 << 11);
    assert!(text("Bitmap").starts_with(&format!("{bits} bits (chunks), 1 dirty")), "{}: {}", case.name, text("Bitmap"));
}

#[test]
fn an_image_made_here_is_decoded_here_to_the_same_values() {
    let folder = Folder::new("own");
    for case in cases() {
        for (path, superblock) in make(&case, &folder.0) {
            let file = File::open(&path).unwrap();
            let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
            file.read_exact_at(&mut bytes, superblock.super_offset.offset().bytes().get()).unwrap();
            assert_eq!(Superblock::decode(&bytes, case.minor, case.drive_size), Ok(superblock), "{}", case.name);
            std::fs::remove_file(&path).unwrap();
        }
    }
}
