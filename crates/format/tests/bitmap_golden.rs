//! Bitmaps, bad-block logs and partial parity logs that the real md driver wrote.

mod common;

use common::{case, golden, number, value, Member};
use openraid_format::{
    sync_size, BadBlockTable, BitmapError, BitmapHeader, FeatureMap, MdLevel, PplHeader, BITMAP_HEADER_BYTES,
    PPL_HEADER_BYTES,
};
use openraid_units::{Bytes, Sectors};

fn bitmap_bytes(member: &Member) -> Option<&[u8]> {
    let (start, _) = member.superblock().unwrap().bitmap_room(member.size)?;
    Some(member.at(start.offset().bytes().get()).expect("the bitmap was kept"))
}

fn dirty(bytes: &[u8]) -> Vec<u64> {
    BitmapHeader::decode(bytes).unwrap().geometry().set_bits(Bytes(0), bytes).collect()
}

#[test]
fn a_bitmap_says_what_mdadm_says_and_encodes_to_its_own_bytes() {
    let mut seen = 0;
    for member in golden() {
        let Some(bytes) = bitmap_bytes(&member) else { continue };
        let header = BitmapHeader::decode(bytes).unwrap();
        let mut out = [0xa5; BITMAP_HEADER_BYTES];
        header.encode(&mut out);
        assert_eq!(&out[..], &bytes[..BITMAP_HEADER_BYTES], "{}", member.case);
        if member.bitmap.is_empty() {
            continue;
        }
        let said = |key: &str| value(&member.bitmap, key).unwrap_or_else(|| panic!("{}: {key}", member.case));
        let set = dirty(bytes).len();
        assert_eq!(header.set_uuid.to_string(), said("UUID"));
        assert_eq!(header.events.to_string(), said("Events"));
        assert_eq!(header.events_cleared.to_string(), said("Events Cleared"));
        assert_eq!(said("State"), "OK");
        assert_eq!(header.state.0, 0);
        assert_eq!(i64::try_from(header.sync_size.get() / 2).unwrap(), number(said("Sync Size")));
        let unit = if said("Chunksize").ends_with("MB") { 1 << 20 } else { 1 << 10 };
        assert_eq!(i64::from(header.chunk), number(said("Chunksize")) * unit);
        assert_eq!(said("Daemon"), format!("{}s flush period", header.daemon_sleep));
        let mode = if header.write_behind == 0 {
            "Normal".into()
        } else {
            format!("Allow write behind, max {}", header.write_behind)
        };
        assert_eq!(said("Write Mode"), mode);
        let bits = said("Bitmap").split(", ").map(number).collect::<Vec<_>>();
        assert_eq!((header.geometry().bits.to_string(), set.to_string()), (bits[0].to_string(), bits[1].to_string()));
        seen += 1;
    }
    assert!(seen > 30, "{seen} bitmaps");
}

#[test]
fn every_bitmap_of_md_is_believed_by_the_rule() {
    for member in golden() {
        let Some(bytes) = bitmap_bytes(&member) else { continue };
        let superblock = member.superblock().unwrap();
        let (_, room) = superblock.bitmap_room(member.size).unwrap();
        let header = BitmapHeader::decode(bytes).unwrap();
        let covered = sync_size(&superblock).unwrap();
        let verdict = header.check(&superblock, covered, room);
        // A failed member keeps its superblock and its bitmap, and both match each other.
        assert_eq!(verdict, Ok(()), "{} {}", member.case, member.index);
        let need = header.geometry().sectors();
        let refused = header.check(&superblock, covered, need - Sectors(1));
        assert!(matches!(refused, Err(BitmapError::DoesNotFit { .. })));
    }
}

/// 64 KiB were written at the start of each of these rows of 64 KiB chunks while a member was missing. If the missing
/// block of a row was neither the data nor the parity of the write, the row is complete and was cleared.
#[test]
fn the_bits_of_a_degraded_raid5_are_the_rows_that_were_written() {
    let members = case("raid5-degraded-bits");
    let rows = [1, 9, 77, 300];
    for member in &members[..2] {
        let set = dirty(bitmap_bytes(member).unwrap());
        assert_eq!(set.len(), 3);
        assert!(set.iter().all(|row| rows.contains(row)), "{set:?}");
    }
}

/// Chunk 2 * k + 1 of the array was written for each of these k; 64 KiB chunks, 64 KiB bits.
#[test]
fn the_bits_of_a_raid10_count_chunks_of_the_array() {
    let members = case("raid10-degraded-bits");
    assert_eq!(members[0].superblock().unwrap().level, MdLevel::Raid10);
    for member in &members[..3] {
        assert_eq!(dirty(bitmap_bytes(member).unwrap()), [3, 19, 155, 601]);
    }
}

/// 4 KiB were written at each of these blocks; 4 KiB bits.
#[test]
fn bits_are_one_string_after_the_header() {
    let members = case("raid1-many-bits");
    assert_eq!(dirty(bitmap_bytes(&members[0]).unwrap()), [0, 1, 7, 8, 9, 4095, 8191]);
}

/// The first page of 4 KiB ends with bit 30719, the second with bit 63487.
#[test]
fn the_string_of_bits_continues_across_pages() {
    let members = case("raid1-two-bitmap-pages");
    assert_eq!(dirty(bitmap_bytes(&members[0]).unwrap()), [30_719, 30_720, 30_721, 40_000, 63_487, 63_488]);
}

#[test]
fn bad_blocks_are_what_mdadm_lists() {
    let mut ranges = 0;
    for member in ["raid5-badblocks", "raid6-10-badblocks"].into_iter().flat_map(case) {
        let superblock = member.superblock().unwrap();
        let log = superblock.bad_block_log().unwrap();
        let start = superblock.place(log.offset).unwrap();
        let bytes = member.at(start.offset().bytes().get()).unwrap();
        if !superblock.features.contains(FeatureMap::BAD_BLOCKS) {
            continue;
        }
        let table = BadBlockTable::decode(bytes, log.shift, member.size).unwrap();
        let ours: Vec<String> = table
            .ranges()
            .iter()
            .map(|range| format!("{} for {} sectors", range.start.get(), range.len.get()))
            .collect();
        if !member.bad_blocks.is_empty() {
            let said: Vec<&str> = member.bad_blocks[1..].iter().map(|line| line.trim()).collect();
            assert_eq!(ours, said, "{}", member.case);
        }
        let mut out = vec![0; bytes.len()];
        table.encode(log.shift, &mut out).unwrap();
        assert_eq!(out, bytes);
        ranges += ours.len();
    }
    assert!(ranges >= 6, "{ranges} ranges");
}

#[test]
fn a_partial_parity_log_decodes_and_encodes_to_its_own_bytes() {
    let mut entries = 0;
    for member in ["raid5-ppl", "raid5-ppl-active"].into_iter().flat_map(case) {
        let superblock = member.superblock().unwrap();
        let start = superblock.place(superblock.ppl().unwrap().offset.into()).unwrap();
        let bytes = member.at(start.offset().bytes().get()).unwrap();
        let header = PplHeader::decode(bytes, superblock.set_uuid).unwrap();
        let mut out = [0; PPL_HEADER_BYTES];
        header.encode(&mut out);
        assert_eq!(&out[..], bytes, "{}", member.case);
        for entry in header.entries() {
            assert!(entry.parity_disk < 3 && entry.data_size % 4096 == 0 && entry.data_size > 0, "{entry:?}");
            assert_eq!(entry.data_sector.get() % 8, 0, "{entry:?}");
        }
        entries += header.entries().len();
    }
    assert!(entries > 0, "no golden log has an entry");
}
