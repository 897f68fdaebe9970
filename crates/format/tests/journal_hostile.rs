//! Journals with flipped bits, impossible values with correct checksums, and random bytes. No input may cause a panic,
//! and accepted bytes must be the same after decoding and encoding.
//!
//! `tests/corpus/journal` keeps one block for each verdict that the mutations reached. With `OPENRAID_CORPUS=write` new
//! verdicts are added to it.

#[path = "common/journal.rs"]
mod journal;

use journal::{commit, crc32c, fix_checksum, golden_device, put, small, Random, CONTROLLER, JOURNAL};
use openraid_format::{
    journal_superblock_lba, scan_ring, EntryFault, JournalArray, JournalEntry, JournalError, JournalRing, JournalScan,
    JournalSuperblock, LogPlace, RingSector, ScanNeed, SuperblockCopy, Uuid, JOURNAL_BYTES_MIN,
};
use openraid_units::{BlockSize, Bytes, DriveLba, Sectors};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

const RING: JournalRing = JournalRing { journal: JOURNAL, start: DriveLba(2048), sectors: Sectors(14_328) };
const RING_AT: usize = 2048 * 512;

/// The superblocks of the golden devices, with the number of the copy.
fn superblocks() -> Vec<(SuperblockCopy, Vec<u8>)> {
    let mut blocks = Vec::new();
    for device in ["wrapped", "clean"].map(golden_device) {
        blocks.push((SuperblockCopy::First, device[..4096].to_vec()));
        blocks.push((SuperblockCopy::Last, device[(16_384 - 8) * 512..][..4096].to_vec()));
    }
    blocks
}

/// The headers of the golden entries, with their positions.
fn headers() -> Vec<(RingSector, Vec<u8>)> {
    let device = golden_device("wrapped");
    let places = [13_784usize, 13_800, 13_824, 13_832, 14_320, 0, 16];
    places.map(|at| (RingSector(at as u64), device[RING_AT + at * 512..][..4096].to_vec())).to_vec()
}

/// Decodes the bytes, and calls all functions of an accepted superblock.
fn judge_superblock(bytes: &[u8], copy: SuperblockCopy) -> Result<(), JournalError> {
    let superblock = JournalSuperblock::decode(bytes, copy)?;
    let mut out = [0xa5; 4096];
    superblock.encode(copy, &mut out);
    assert_eq!(out, bytes[..4096]);
    let ring = superblock.ring();
    assert!(ring.start.get() + ring.sectors.get() <= superblock.device_sectors.get());
    assert_eq!(superblock.check_device(superblock.device_sectors, superblock.block), Ok(()));
    let _ = (superblock.counts(255, 1), JournalScan::new(&superblock).need());
    Ok(())
}

/// Decodes the bytes, and calls all functions of an accepted entry.
fn judge_entry(bytes: &[u8], ring: &JournalRing, position: RingSector) -> Result<(), EntryFault> {
    let entry = JournalEntry::decode(bytes, ring, position)?;
    let records: Vec<_> = entry.records().collect();
    assert_eq!((records.len(), records.is_empty()), (entry.len(), entry.is_empty()));
    let mut out = [0xa5; 4096];
    entry.header.encode(ring, &records, &mut out);
    assert_eq!(out, bytes[..4096]);
    let end = entry.header.sectors(ring);
    assert!(end <= ring.to_end(position) && ring.holds(entry.header.next(ring).position));
    for record in records {
        let inside = record.payload().is_none_or(|(at, len)| at + len <= entry.header.payload);
        assert!(inside && record.array() < 64);
    }
    Ok(())
}

/// The name of a verdict, for a file.
fn verdict(text: &str, debug: &str) -> String {
    assert!(!text.is_empty());
    let name: String = debug.chars().take_while(char::is_ascii_alphanumeric).collect();
    match debug.split_once("field: \"").and_then(|(_, rest)| rest.split('"').next()) {
        Some(field) => format!("{name}-{field}"),
        None => name,
    }
}

fn superblock_verdict(bytes: &[u8], copy: SuperblockCopy) -> String {
    match judge_superblock(bytes, copy) {
        Ok(()) => String::from("accepted"),
        Err(error) => verdict(&error.to_string(), &format!("{error:?}")),
    }
}

fn entry_verdict(bytes: &[u8], position: RingSector) -> String {
    match judge_entry(bytes, &RING, position) {
        Ok(()) => String::from("accepted"),
        Err(fault) => verdict(&fault.to_string(), &format!("{fault:?}")),
    }
}

#[test]
fn every_flipped_bit_of_a_superblock_is_noticed() {
    for (copy, good) in superblocks() {
        assert_eq!(judge_superblock(&good, copy), Ok(()));
        let mut bytes = good.clone();
        for bit in 0..4096 * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let expected = matches!(
                judge_superblock(&bytes, copy),
                Err(JournalError::Checksum { .. } | JournalError::NotAJournal)
            );
            assert!(expected, "bit {bit}");
            bytes[bit / 8] = good[bit / 8];
        }
    }
}

#[test]
fn every_flipped_bit_of_an_entry_ends_the_log_or_is_reported_when_it_was_promised() {
    let superblock = small(64);
    let ring = superblock.ring();
    let mut random = Random(3);
    let tail = superblock.tail;
    let mut image = vec![0; 64 * 512];
    let mut place = tail;
    let mut ends = Vec::new();
    for _ in 0..3 {
        let (header, bytes) = commit(&ring, place, 1, place.sequence - 1, tail, &random.bytes(3 * 512));
        put(&mut image, place.position, &bytes);
        ends.push((place, bytes.len()));
        place = header.next(&ring);
    }
    for (index, &(victim, len)) in ends.iter().enumerate() {
        let start = usize::try_from(victim.position.0 * 512).unwrap();
        for bit in 0..len * 8 {
            image[start + bit / 8] ^= 1 << (bit % 8);
            let mut count = 0;
            let outcome = scan_ring(&superblock, &image, |_, _| count += 1);
            assert_eq!((outcome.head, count), (victim, index), "bit {bit}");
            // The last entry may or may not have been acknowledged: nothing on the medium shows it.
            assert_eq!(outcome.verdict().is_ok(), index == 2, "bit {bit}");
            image[start + bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert_eq!(scan_ring(&superblock, &image, |_, _| ()).head, place);
}

#[test]
fn blocks_cut_off_anywhere_are_errors() {
    let (copy, superblock) = superblocks().remove(0);
    let (position, header) = headers().remove(1);
    for len in 0..4096 {
        assert_eq!(judge_superblock(&superblock[..len], copy), Err(JournalError::Truncated(len)));
        assert_eq!(judge_entry(&header[..len], &RING, position), Err(EntryFault::Truncated(len)));
    }
}

/// Changes a few bytes, or sets a field to an extreme number.
fn mutate(bytes: &mut [u8], within: u64, random: &mut Random) {
    const EXTREMES: [u64; 16] =
        [0, 1, 2, 3, 4, 7, 8, 63, 64, 120, 0x7fff_ffff, 0xffff_ffff, 1 << 55, 1 << 62, i64::MAX as u64, u64::MAX];
    for _ in 0..=random.below(2) {
        let at = usize::try_from(random.below(within)).unwrap();
        match random.below(3) {
            0 => bytes[at] = random.next().to_le_bytes()[0],
            1 => bytes[at] ^= 1 << random.below(8),
            _ => {
                let width = [1, 2, 4, 8][usize::try_from(random.below(4)).unwrap()];
                let at = at / width * width;
                let value = EXTREMES[usize::try_from(random.below(16)).unwrap()];
                bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
        }
    }
}

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/journal")
}

/// Writes a block of the corpus: its original position on the first line, then rows of 32 bytes without rows of zeroes.
fn keep(name: &str, place: u64, bytes: &[u8]) {
    let path = corpus().join(format!("{name}.txt"));
    if std::env::var_os("OPENRAID_CORPUS").is_none() || path.exists() {
        return;
    }
    let mut text = format!("{place} {}\n", bytes.len());
    for (index, row) in bytes.chunks(32).enumerate().filter(|(_, row)| row.iter().any(|&byte| byte != 0)) {
        let hex: String = row.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{} {hex}\n", index * 32);
    }
    fs::create_dir_all(corpus()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn mutations_under_a_right_checksum_reach_every_verdict_and_never_panic() {
    let mut random = Random(17);
    let mut reached = BTreeSet::new();
    let (superblocks, headers) = (superblocks(), headers());
    for round in 0..60_000usize {
        let (copy, good) = &superblocks[round % superblocks.len()];
        let mut bytes = good.clone();
        mutate(&mut bytes, if round % 3 == 0 { 2560 } else { 128 }, &mut random);
        if round % 8 > 0 {
            fix_checksum(&mut bytes);
        }
        let name = format!("superblock-{}", superblock_verdict(&bytes, *copy));
        keep(&name, u64::from(*copy == SuperblockCopy::Last), &bytes);
        reached.insert(name);

        let (position, good) = &headers[round % headers.len()];
        let mut bytes = good.clone();
        mutate(&mut bytes, if round % 3 == 0 { 352 } else { 96 }, &mut random);
        if round % 8 > 0 {
            fix_checksum(&mut bytes);
        }
        let name = format!("entry-{}", entry_verdict(&bytes, *position));
        keep(&name, position.0, &bytes);
        reached.insert(name);
    }
    for field in ["generation", "epoch", "epoch_start", "tail_sequence", "tail_position", "device_sectors", "version"]
        .into_iter()
        .chain(["ring_start", "ring_sectors", "block", "mirrors", "mirror", "copy", "clean", "kept_sectors"])
    {
        assert!(reached.contains(&format!("superblock-BadField-{field}")), "{field}");
    }
    for field in ["sequence", "epoch", "promised", "tail_sequence", "tail_position", "payload_sectors", "version"]
        .into_iter()
        .chain(["payload_crc", "kind", "record_count"])
    {
        assert!(reached.contains(&format!("entry-BadField-{field}")), "{field}");
    }
    for field in ["kind", "array", "slot", "payload_at", "lba", "sectors", "ring_sector"] {
        assert!(reached.contains(&format!("entry-BadRecord-{field}")), "{field}");
    }
    for name in ["superblock-BadArray-state", "superblock-BadArray-first_sequence", "superblock-UnknownContent"]
        .into_iter()
        .chain(["superblock-NewerVersion", "entry-NewerVersion", "entry-UnknownContent", "entry-OtherPosition"])
        .chain(["entry-OtherJournal", "entry-HeaderChecksum", "entry-NotAnEntry", "entry-accepted"])
    {
        assert!(reached.contains(name), "{name} of {reached:?}");
    }
}

#[test]
fn every_block_of_the_corpus_gets_the_verdict_it_is_named_after() {
    let mut seen = 0;
    for file in fs::read_dir(corpus()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let (place, len) = lines.next().unwrap().split_once(' ').unwrap();
        let place: u64 = place.parse().unwrap();
        let mut bytes = vec![0; len.parse().unwrap()];
        for line in lines {
            let (at, hex) = line.split_once(' ').unwrap();
            let at: usize = at.parse().unwrap();
            for index in 0..hex.len() / 2 {
                bytes[at + index] = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap();
            }
        }
        let named = path.file_stem().unwrap().to_string_lossy().into_owned();
        let found = if named.starts_with("superblock") {
            let copy = if place == 0 { SuperblockCopy::First } else { SuperblockCopy::Last };
            format!("superblock-{}", superblock_verdict(&bytes, copy))
        } else {
            format!("entry-{}", entry_verdict(&bytes, RingSector(place)))
        };
        assert_eq!(found, named);
        seen += 1;
    }
    assert!(seen >= 40, "the corpus is missing");
}

/// Runs a scan as a device would: pieces of any length, some of them unreadable.
fn scan_in_pieces(superblock: &JournalSuperblock, image: &[u8], bad: u64, random: &mut Random) -> usize {
    let at = |position: RingSector| usize::try_from(position.0 * 512).unwrap();
    let len = |sectors: Sectors| usize::try_from(sectors.bytes().get()).unwrap();
    let mut scan = JournalScan::new(superblock);
    let mut steps = 0;
    loop {
        steps += 1;
        let fails = random.below(100) < bad;
        match scan.need() {
            ScanNeed::Header(position) => {
                let header = &image[at(position)..][..4096];
                let _ = scan.header((!fails).then_some(header));
            }
            ScanNeed::Payload { at: position, sectors } => {
                let payload = &image[at(position)..][..len(sectors)];
                let _ = scan.payload((!fails).then(|| crc32c(payload)));
            }
            ScanNeed::Sweep { at: position, sectors } => {
                let piece = Sectors(8 * (1 + random.below(sectors.get() / 8)));
                if fails {
                    scan.sweep_unreadable(piece);
                } else {
                    scan.sweep(&image[at(position)..][..len(piece)]);
                }
            }
            ScanNeed::Done => break,
        }
    }
    if bad == 0 {
        assert_eq!(scan.outcome(), scan_ring(superblock, image, |_, _| ()));
    }
    let _ = scan.outcome().verdict().map_err(|error| error.to_string());
    steps
}

#[test]
fn scans_of_mutated_and_unreadable_rings_end_in_bounded_steps() {
    let mut random = Random(23);
    for round in 0..4_000 {
        let sectors = 24 + 8 * random.below(20);
        let mut superblock = small(sectors);
        superblock.epoch = 2;
        superblock.epoch_start = 1 + random.below(30);
        let ring = superblock.ring();
        let mut image = vec![0; usize::try_from(sectors * 512).unwrap()];
        let mut place = superblock.tail;
        let mut tail = place;
        for _ in 0..random.below(40) {
            let sectors = random.below(9);
            if ring.needs_wrap(place.position, Sectors(sectors)) {
                // Without a filler there is a gap, sometimes also in the numbers.
                place = LogPlace { sequence: place.sequence + random.below(2), position: RingSector(0) };
            }
            if place.position.0 == 0 || random.below(4) == 0 {
                tail = place;
            }
            let payload = random.bytes(usize::try_from(512 * sectors).unwrap());
            let epoch = 1 + random.below(2);
            let (header, bytes) = commit(&ring, place, epoch, place.sequence - 1, tail, &payload);
            put(&mut image, place.position, &bytes);
            place = header.next(&ring);
        }
        superblock.tail = LogPlace { sequence: 1 + random.below(place.sequence), position: superblock.tail.position };
        for _ in 0..random.below(6) {
            let block = usize::try_from(random.below(sectors / 8)).unwrap() * 4096;
            mutate(&mut image[block..block + 4096], 352, &mut random);
            fix_checksum(&mut image[block..block + 4096]);
        }
        let steps = scan_in_pieces(&superblock, &image, if round % 2 == 0 { 0 } else { 10 }, &mut random);
        let most = usize::try_from(sectors / 8).unwrap() * 5 + 4;
        assert!(steps <= most, "{steps} steps over {sectors} sectors");
    }
}

#[test]
fn an_entry_that_a_newer_program_wrote_is_not_taken_for_the_end_of_the_log() {
    let device = golden_device("wrapped");
    let last = journal_superblock_lba(SuperblockCopy::Last, Sectors(16_389)).unwrap();
    let at = usize::try_from(last.get() * 512).unwrap();
    let superblock = JournalSuperblock::decode(&device[at..], SuperblockCopy::Last).unwrap();
    let good = &device[RING_AT..][..14_328 * 512];
    for (offset, value) in [(8, 2), (256, 8), (92, 1), (88, 3)] {
        let mut image = good.to_vec();
        image[offset] = value;
        fix_checksum(&mut image[..4096]);
        let outcome = scan_ring(&superblock, &image, |_, _| ());
        // This is the last entry. No header says that it was acknowledged, but it is not torn either.
        assert_eq!((outcome.head.sequence, outcome.promised), (21, 18));
        let Err(error @ JournalError::Damaged { sequence: 21, .. }) = outcome.verdict() else { panic!("{outcome:?}") };
        assert!(error.to_string().contains("newer openraid"), "{error}");
    }
}

#[test]
fn an_older_epoch_never_follows_a_newer_one_even_when_the_superblock_knows_neither() {
    let device = golden_device("wrapped");
    let mut superblock = JournalSuperblock::decode(&device, SuperblockCopy::First).unwrap();
    superblock.tail = LogPlace { sequence: 17, position: RingSector(13_800) };
    superblock.epoch = 1;
    superblock.epoch_start = 1;
    let outcome = scan_ring(&superblock, &device[RING_AT..][..14_328 * 512], |_, _| ());
    assert_eq!((outcome.head.sequence, outcome.epoch, outcome.stop), (22, 3, EntryFault::OlderEpoch(2)));
}

#[test]
fn a_reference_reaches_only_what_lies_between_the_tail_and_its_entry() {
    let device = golden_device("wrapped");
    // Entry 20 made a commit with one reference; its tail is 18 at 13824. Entry 21 is after the end of the ring.
    for position in [14_320u64, 0] {
        let log: Vec<u64> = (13_824..14_328).take_while(|&sector| position == 0 || sector < position).collect();
        let mut header = device[RING_AT + usize::try_from(position).unwrap() * 512..][..4096].to_vec();
        header[88] = 1;
        header[80..88].fill(0);
        header[90] = 1;
        header[256..].fill(0);
        header[256] = 3;
        for (at, sectors) in
            [(13_823u64, 1u64), (13_824, 1), (13_824, 496), (13_824, 497), (13_824, 504), (13_824, 505)]
                .into_iter()
                .chain([(14_319, 1), (14_320, 1), (14_327, 1), (14_327, 2), (0, 1), (14_328, 1), (1 << 60, 1)])
        {
            header[272..280].copy_from_slice(&sectors.to_le_bytes());
            header[280..288].copy_from_slice(&at.to_le_bytes());
            fix_checksum(&mut header);
            let inside = (at..at + sectors).all(|sector| log.contains(&sector));
            let fault = EntryFault::BadRecord { index: 0, field: "ring_sector", value: at };
            let expected = if inside { Ok(()) } else { Err(fault) };
            assert_eq!(judge_entry(&header, &RING, RingSector(position)), expected, "{sectors} at {at}");
        }
    }
}

#[test]
fn a_log_that_fills_the_whole_ring_ends_where_it_began() {
    let superblock = small(32);
    let ring = superblock.ring();
    let mut image = vec![0; 32 * 512];
    let mut place = superblock.tail;
    for _ in 0..2 {
        let (header, bytes) = commit(&ring, place, 1, place.sequence - 1, superblock.tail, &[7; 8 * 512]);
        put(&mut image, place.position, &bytes);
        place = header.next(&ring);
    }
    let outcome = scan_ring(&superblock, &image, |_, _| ());
    assert_eq!((outcome.head, outcome.entries, outcome.stop), (place, 2, EntryFault::EndOfLog));
    assert_eq!((place.position, outcome.verdict()), (RingSector(0), Ok(())));
}

#[test]
fn the_newer_of_two_good_superblocks_counts() {
    let read = |device: &[u8]| {
        let first = JournalSuperblock::decode(&device[..4096], SuperblockCopy::First);
        JournalSuperblock::newest(first, JournalSuperblock::decode(&device[16_376 * 512..], SuperblockCopy::Last))
    };
    let good = golden_device("wrapped");
    assert_eq!(read(&good).unwrap().superblock.generation, 7);
    let mut torn = good.clone();
    torn[16_376 * 512 + 600] ^= 1;
    let newest = read(&torn).unwrap();
    assert_eq!((newest.superblock.generation, newest.rewrite), (6, Some(SuperblockCopy::Last)));
    torn[100] ^= 1;
    assert!(matches!(read(&torn), Err(JournalError::Checksum { .. })));
    torn[0] ^= 1;
    assert!(matches!(read(&torn), Err(JournalError::Checksum { .. })), "more telling than no journal at all");

    let change = |offset: usize, value: u8| {
        let mut device = good.clone();
        device[offset] = value;
        fix_checksum(&mut device[..4096]);
        read(&device)
    };
    let other = Uuid([7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(change(16, 7), Err(JournalError::TwoJournals { first: other, last: JOURNAL }));
    assert_eq!(change(48, 7), Err(JournalError::CopiesDiffer(7)));
    assert_eq!(change(8, 2), Err(JournalError::NewerVersion(2)));
    assert_eq!(change(48, 8).unwrap().superblock.tail.sequence, 12);
}

#[test]
fn devices_that_cannot_carry_a_journal_are_refused() {
    let least = JOURNAL_BYTES_MIN.sectors_floor();
    let make = |device| JournalSuperblock::new(JOURNAL, CONTROLLER, device, BlockSize::B4096, (0, 1));
    let journal = make(least).unwrap();
    let mut out = [0; 4096];
    journal.encode(SuperblockCopy::Last, &mut out);
    assert_eq!(JournalSuperblock::decode(&out, SuperblockCopy::Last), Ok(journal.clone()));
    let small = least - Sectors(1);
    assert_eq!(make(small), Err(JournalError::TooSmall(small)));
    assert!(JournalError::TooSmall(small).to_string().starts_with("8388096 bytes are too small"));
    assert_eq!(make(Sectors::MAX), Err(JournalError::TooLarge(Sectors::MAX)));
    assert!(!JournalError::TooSmall(Sectors::MAX).to_string().is_empty());
    let shrunk = JournalError::DeviceTruncated { made: least, now: small };
    assert_eq!(journal.check_device(small, BlockSize::B512), Err(shrunk));
    assert_eq!(journal.check_device(least + Sectors(9), BlockSize::B512), Ok(()));
    let mut fine = journal;
    fine.block = BlockSize::B512;
    let larger = JournalError::LargerBlocks { made: BlockSize::B512, now: BlockSize::B4096 };
    assert_eq!(fine.check_device(least, BlockSize::B4096), Err(larger));
    assert_eq!(Bytes::mib(8), JOURNAL_BYTES_MIN);
}

#[test]
fn a_full_table_of_arrays_refuses_another_one_and_finds_its_own() {
    let mut superblock = small(64);
    let array = |byte| JournalArray {
        set_uuid: Uuid([byte; 16]),
        state: openraid_format::JournalArrayState::Live,
        first_sequence: 1,
    };
    for byte in 0..64 {
        assert_eq!(superblock.enter(array(byte)), Ok(byte));
    }
    assert_eq!(superblock.enter(array(64)), Err(JournalError::TableFull));
    assert_eq!(superblock.enter(array(5)), Ok(5));
    let mut twice = golden_device("wrapped");
    twice.copy_within(256..272, 256 + 64);
    fix_checksum(&mut twice[..4096]);
    let error = JournalError::BadArray { index: 2, field: "set_uuid" };
    assert_eq!(JournalSuperblock::decode(&twice, SuperblockCopy::First), Err(error));
}
