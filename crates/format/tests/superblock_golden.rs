//! Superblocks that the real md driver wrote: the decoded fields equal mdadm's output, and encoding gives the same
//! bytes.

mod common;

use common::{golden, Member};
use openraid_format::{
    BadBlockPlace, DeviceFlags, DeviceRole, FarSets, FeatureMap, JournalReached, LayoutWord, MdLevel, Raid10Layout,
    Superblock, SuperblockError, Uuid,
};

#[test]
fn encoding_what_was_decoded_gives_identical_bytes() {
    for member in golden() {
        let superblock =
            member.superblock().unwrap_or_else(|error| panic!("{} {}: {error}", member.case, member.index));
        let expected = member.superblock_bytes();
        let mut out = [0xa5; 4096];
        let len = superblock.encode(&mut out);
        assert_eq!(&out[..len], expected, "{} {}", member.case, member.index);
        assert!(out[len..].iter().all(|&byte| byte == 0xa5), "nothing after the last sector is touched");
    }
}

#[test]
fn decoding_says_what_mdadm_says() {
    for member in golden() {
        let superblock = member.superblock().unwrap();
        let said = mdadm_lines(&member);
        let ours = our_lines(&member, &superblock);
        assert_eq!(ours, said, "{} {}", member.case, member.index);
    }
}

/// Lines of mdadm's output that show one field of the superblock; other lines are computed from several fields.
fn mdadm_lines(member: &Member) -> Vec<String> {
    const DERIVED: [&str; 6] = ["/dev/", "Magic", "Version", "Array Size", "Unused Space", "Creation Time"];
    let lines = member.examine.iter().map(|line| line.trim().to_string());
    lines.filter(|line| !DERIVED.iter().any(|word| line.starts_with(word)) && !line.starts_with("Update")).collect()
}

/// The same lines in the same order, from the decoded superblock.
fn our_lines(member: &Member, sb: &Superblock) -> Vec<String> {
    let mut lines = vec![
        format!("Feature Map : 0x{:x}", sb.features.0),
        format!("Array UUID : {}", sb.set_uuid),
        format!("Name : {}", sb.set_name),
        format!("Raid Level : {}", sb.level),
        format!("Raid Devices : {}", sb.raid_disks),
    ];
    lines.extend(area_lines(member, sb));
    let clean = sb.resync_position().is_none();
    lines.push(format!("State : {}", if clean { "clean" } else { "active" }));
    lines.push(format!("Device UUID : {}", sb.device_uuid));
    if let Some(offset) = sb.bitmap_offset() {
        lines.push(format!("Internal Bitmap : {offset} sectors from superblock"));
    }
    if sb.features.contains(FeatureMap::RESHAPE_ACTIVE) {
        lines.extend(change_lines(member, sb));
    }
    let flags = [(DeviceFlags::WRITE_MOSTLY, "write-mostly"), (DeviceFlags::FAIL_FAST, "failfast")];
    let flags: Vec<&str> =
        flags.iter().filter(|(flag, _)| sb.device_flags.contains(*flag)).map(|(_, word)| *word).collect();
    if !flags.is_empty() {
        lines.push(format!("Flags : {}", flags.join(" ")));
    }
    if let Some(ppl) = sb.ppl() {
        lines.push(format!("PPL : {} sectors at offset {} sectors from superblock", ppl.size, ppl.offset));
    }
    if let Some(BadBlockPlace { size, offset, .. }) = sb.bad_block_log() {
        let present = if sb.features.contains(FeatureMap::BAD_BLOCKS) { " - bad blocks present." } else { "" };
        lines.push(format!(
            "Bad Block Log : {} entries available at offset {offset} sectors{present}",
            u32::from(size) * 64
        ));
    }
    lines.extend(state_lines(sb));
    lines
}

fn change_lines(member: &Member, sb: &Superblock) -> Vec<String> {
    let kib = sb.reshape.position / 2;
    // As for other sizes, the text in larger units is mdadm's own.
    let said = member.said("Reshape pos'n").and_then(|said| said.strip_prefix(&format!("{kib} (")));
    let mut lines =
        vec![said.map_or(format!("Reshape pos'n : {kib}"), |larger| format!("Reshape pos'n : {kib} ({larger}"))];
    let (now, delta) = (i32::from(sb.raid_disks), sb.reshape.delta_disks);
    if delta != 0 {
        lines.push(format!("Delta Devices : {delta} ({}->{now})", now - delta));
    }
    if sb.reshape.new_layout != sb.layout {
        let words = LayoutWord { level: sb.level, layout: sb.reshape.new_layout };
        lines.push(format!("New Layout : {words}"));
    }
    if u64::from(sb.reshape.new_chunk) != sb.chunk.get() {
        lines.push(format!("New Chunksize : {}K", sb.reshape.new_chunk / 2));
    }
    lines
}

fn area_lines(member: &Member, sb: &Superblock) -> Vec<String> {
    // mdadm computes the size in other units itself, so that text is copied.
    let sizes = |sectors: u64| {
        let said = member.examine.iter().find_map(|line| line.split_once(&format!(": {sectors} sectors (")));
        said.map_or(format!("{sectors} sectors"), |(_, text)| format!("{sectors} sectors ({text}"))
    };
    let mut lines = vec![format!("Avail Dev Size : {}", sizes(sb.data_size.get()))];
    if member.said("Used Dev Size").is_some() {
        lines.push(format!("Used Dev Size : {}", sizes(sb.size.get())));
    }
    if sb.data_offset.get() != 0 {
        lines.push(format!("Data Offset : {} sectors", sb.data_offset.get()));
    }
    if sb.features.contains(FeatureMap::NEW_OFFSET) {
        let new = sb.data_offset.get().checked_add_signed(i64::from(sb.reshape.new_offset)).unwrap();
        lines.push(format!("New Offset : {new} sectors"));
    }
    lines.push(format!("Super Offset : {} sectors", sb.super_offset.get()));
    if let Some(done) = sb.recovery_offset() {
        lines.push(format!("Recovery Offset : {} sectors", done.get()));
    }
    lines
}

fn state_lines(sb: &Superblock) -> Vec<String> {
    let mut out = [0; 4096];
    sb.encode(&mut out);
    let checksum = u32::from_le_bytes(out[216..220].try_into().unwrap());
    let mut lines = vec![format!("Checksum : {checksum:x} - correct"), format!("Events : {}", sb.events)];
    match (sb.level, sb.raid10_layout()) {
        (_, Some(layout)) => lines.push(format!("Layout : {}", raid10_words(layout))),
        (MdLevel::Raid5 | MdLevel::Raid6, None) => {
            lines.push(format!("Layout : {}", LayoutWord { level: sb.level, layout: sb.layout }));
        }
        (MdLevel::Raid0, None) if sb.raid0_layout().is_some() => {
            lines.push(format!("Layout : {}", LayoutWord { level: sb.level, layout: sb.layout }));
        }
        _ => {}
    }
    match sb.level {
        MdLevel::Linear => lines.push(format!("Rounding : {}K", sb.chunk.get() / 2)),
        MdLevel::Raid1 => {}
        _ => lines.push(format!("Chunk Size : {}K", sb.chunk.get() / 2)),
    }
    lines.push(match sb.role() {
        DeviceRole::Active(slot) if sb.features.contains(FeatureMap::REPLACEMENT) => {
            format!("Device Role : Replacement device {slot}")
        }
        DeviceRole::Active(slot) => format!("Device Role : Active device {slot}"),
        DeviceRole::Spare | DeviceRole::Faulty => String::from("Device Role : spare"),
        DeviceRole::Journal => String::from("Device Role : Journal"),
    });
    lines.push(format!("Array State : {} ('A' == active, '.' == missing, 'R' == replacing)", slots(sb)));
    lines
}

fn raid10_words(layout: Raid10Layout) -> String {
    assert_eq!(layout.far_sets, FarSets::Whole);
    match layout {
        Raid10Layout { near, far: 1, .. } => format!("near={near}"),
        Raid10Layout { far, offset: true, .. } => format!("offset={far}"),
        Raid10Layout { far, .. } => format!("far={far}"),
    }
}

/// One letter for each slot, of the larger shape if it changes.
fn slots(sb: &Superblock) -> String {
    let holders =
        |slot: u16| sb.roles.iter().filter(|role| matches!(role, DeviceRole::Active(it) if it.0 == slot)).count();
    let slots = sb.change().map_or(sb.raid_disks, |change| change.old.raid_disks.max(change.new.raid_disks));
    (0..slots)
        .map(|slot| match holders(slot) {
            0 => '.',
            1 => 'A',
            _ => 'R',
        })
        .collect()
}

#[test]
fn the_golden_images_cover_every_level_place_and_state() {
    let all: Vec<_> = golden().iter().map(|member| member.superblock().unwrap()).collect();
    for level in MdLevel::ALL {
        assert!(all.iter().any(|sb| sb.level == level), "{level}");
    }
    let features = all.iter().fold(FeatureMap::NONE, |seen, sb| seen | sb.features);
    for bit in [1, 2, 4, 8, 16, 64, 512, 1024, 4096] {
        assert!(features.contains(FeatureMap(bit)), "{}", FeatureMap(bit));
    }
    assert!(all.iter().any(|sb| sb.role() == DeviceRole::Faulty || sb.role() == DeviceRole::Spare));
    assert!(all.iter().any(|sb| sb.role() == DeviceRole::Journal && sb.journal_tail().is_some()));
    assert!(all.iter().any(|sb| sb.resync_position().is_some_and(|at| at.get() > 0)));
}

#[test]
fn arrays_with_features_we_cannot_serve_are_named() {
    let refused = common::case("raid5-journal")[0].superblock().unwrap().unsupported_features();
    assert_eq!(refused.to_string(), "raid5 journal (512)");
    for member in golden() {
        let sb = member.superblock().unwrap();
        let expected = sb.features & FeatureMap(0x300);
        assert_eq!(sb.unsupported_features(), expected, "{}", member.case);
    }
}

#[test]
fn the_partial_parity_log_is_where_mdadm_puts_it() {
    for member in common::case("raid5-ppl") {
        let superblock = member.superblock().unwrap();
        let request = openraid_format::PlacementRequest {
            minor: superblock.minor,
            level: superblock.level,
            chunk: superblock.chunk,
            drive_size: member.size,
        };
        let placement = openraid_format::MemberPlacement::with_ppl(request).unwrap();
        assert_eq!(superblock.ppl(), placement.ppl);
        assert_eq!(superblock.data_offset, placement.data_offset);
    }
}

/// The drawing of docs/on-disk.md with all bytes different. The checksum was computed by a program of its own, from md's
/// superblock of the case and these bytes.
#[test]
fn the_journal_and_how_far_it_had_come_are_at_the_end_of_the_header() {
    let member = golden().into_iter().find(|member| member.case == "raid1" && member.index == 0).expect("a case");
    let plain = member.superblock_bytes().to_vec();
    let mut superblock = member.superblock().expect("md wrote it");
    let journal = Uuid(core::array::from_fn(|at| 0x10 + u8::try_from(at).expect("few")));
    let reached = JournalReached { entry: 0x0102_0304_0506_0708, generation: 0x0a0b_0c0d };
    superblock.set_journal(Some((journal, reached)), false);
    let mut out = [0; 4096];
    let len = superblock.encode(&mut out);
    assert_eq!(out[8..12], [0, 0, 0, 0x50], "features 2^30 and 2^28");
    assert_eq!(out[216..220], [0xfc, 0x52, 0xfd, 0x71]);
    assert_eq!(out[228..244], *b"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
    assert_eq!(out[244..256], [8, 7, 6, 5, 4, 3, 2, 1, 0xd, 0xc, 0xb, 0xa]);
    let read = Superblock::decode(&out[..len], superblock.minor, member.size).expect("it is ours");
    assert_eq!((read.journal, read.journal_reached), (Some(journal), Some(reached)));
    assert_eq!(read, superblock);
    // Without the session nothing of it stays: Linux md refuses padding that is not zero.
    superblock.set_journal(None, false);
    let len = superblock.encode(&mut out);
    assert_eq!(out[..len], plain);
}

/// A superblock of a program that does not know the position: it is read and written as it is.
#[test]
fn a_journal_without_a_position_is_read_as_such() {
    let member = golden().into_iter().find(|member| member.case == "raid1" && member.index == 0).expect("a case");
    let mut superblock = member.superblock().expect("md wrote it");
    superblock.set_journal(Some((Uuid([7; 16]), JournalReached::default())), true);
    superblock.features.set(FeatureMap::JOURNAL_REACHED, false);
    superblock.journal_reached = None;
    let mut out = [0; 4096];
    let len = superblock.encode(&mut out);
    assert_eq!(Superblock::decode(&out[..len], superblock.minor, member.size), Ok(superblock.clone()));
    // The position alone makes no sense.
    superblock.set_journal(None, false);
    superblock.features.set(FeatureMap::JOURNAL_REACHED, true);
    superblock.journal_reached = Some(JournalReached::default());
    let len = superblock.encode(&mut out);
    let refused = Err(SuperblockError::ContradictingFeatures(FeatureMap::JOURNAL_REACHED));
    assert_eq!(Superblock::decode(&out[..len], superblock.minor, member.size), refused);
}
