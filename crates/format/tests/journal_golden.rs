//! Journals that a script made only from the drawing: all fields are decoded, and encoding gives the same bytes.

#[path = "common/journal.rs"]
mod journal;

use journal::{golden_device, CONTROLLER, JOURNAL};
use openraid_format::{
    journal_superblock_lba, scan_ring, EntryFault, EntryHeader, EntryKind, JournalArray, JournalArrayState,
    JournalError, JournalRecord, JournalSuperblock, LogPlace, NewestCopy, RingSector, SuperblockCopy, Uuid,
};
use openraid_units::{BlockSize, DriveLba, MemberLba, Sectors, SetLba, Slot};

const DEVICE: Sectors = Sectors(16_389);

fn place(sequence: u64, position: u64) -> LogPlace {
    LogPlace { sequence, position: RingSector(position) }
}

fn superblock_bytes(device: &[u8], copy: SuperblockCopy) -> &[u8] {
    let at = usize::try_from(journal_superblock_lba(copy, DEVICE).unwrap().offset().bytes().get()).unwrap();
    &device[at..at + 4096]
}

fn newest(device: &[u8]) -> Result<NewestCopy, JournalError> {
    let read = |copy| JournalSuperblock::decode(superblock_bytes(device, copy), copy);
    JournalSuperblock::newest(read(SuperblockCopy::First), read(SuperblockCopy::Last))
}

fn ring_of<'a>(device: &'a [u8], superblock: &JournalSuperblock) -> &'a [u8] {
    let start = usize::try_from(superblock.ring_start.offset().bytes().get()).unwrap();
    let len = usize::try_from(superblock.ring_sectors.bytes().get()).unwrap();
    &device[start..start + len]
}

fn wrapped() -> JournalSuperblock {
    let mut superblock =
        JournalSuperblock::new(JOURNAL, CONTROLLER, DEVICE, BlockSize::B512, (1, 2)).expect("a good device");
    superblock.generation = 7;
    superblock.epoch = 3;
    superblock.epoch_start = 20;
    superblock.tail = place(17, 13_800);
    superblock.clean = false;
    let array = |byte, first_sequence, state| Some(JournalArray { set_uuid: Uuid([byte; 16]), state, first_sequence });
    superblock.arrays[0] = array(0xa0, 1, JournalArrayState::Live);
    superblock.arrays[2] = array(0xa2, 5, JournalArrayState::Preserved);
    superblock.arrays[63] = array(0xff, 19, JournalArrayState::Discarded);
    superblock
}

#[test]
fn the_newer_superblock_is_read_to_the_last_field_and_written_to_the_same_bytes() {
    let device = golden_device("wrapped");
    let found = newest(&device).unwrap();
    assert_eq!(found.rewrite, Some(SuperblockCopy::First));
    assert_eq!(found.superblock, wrapped());
    let mut older = wrapped();
    older.generation = 6;
    older.tail = place(12, 13_000);
    for (copy, superblock) in [(SuperblockCopy::First, older), (SuperblockCopy::Last, wrapped())] {
        let mut out = [0xa5; 4096];
        superblock.encode(copy, &mut out);
        assert_eq!(out, superblock_bytes(&device, copy), "{copy}");
        assert!(JournalSuperblock::decode(&out, SuperblockCopy::First).is_ok() == (copy == SuperblockCopy::First));
    }
    assert!(found.superblock.counts(0, 1) && found.superblock.counts(2, 5));
    assert!(!found.superblock.counts(2, 4) && !found.superblock.counts(63, 20) && !found.superblock.counts(1, 20));
    assert_eq!(found.superblock.index_of(Uuid([0xa2; 16])), Some(2));
    assert_eq!(found.superblock.check_controller(CONTROLLER), Ok(()));
}

#[test]
fn a_new_journal_is_the_golden_one() {
    let device = golden_device("clean");
    let superblock = JournalSuperblock::new(JOURNAL, CONTROLLER, DEVICE, BlockSize::B4096, (0, 1)).unwrap();
    assert_eq!(newest(&device).unwrap(), NewestCopy { superblock: superblock.clone(), rewrite: None });
    assert_eq!((superblock.ring_start, superblock.ring_sectors), (DriveLba(2048), Sectors(14_328)));
    for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
        let mut out = [0xa5; 4096];
        superblock.encode(copy, &mut out);
        assert_eq!(out, superblock_bytes(&device, copy));
    }
    let outcome = scan_ring(&superblock, ring_of(&device, &superblock), |_, _| panic!("an entry in an empty journal"));
    assert_eq!((outcome.head, outcome.tail, outcome.entries), (place(1, 0), place(1, 0), 0));
    assert_eq!(outcome.verdict(), Ok(()));
}

/// The fixed parts and records of the golden entries, written independently a second time.
fn entries() -> Vec<(EntryHeader, Vec<JournalRecord>)> {
    let header = |sequence, epoch, position, promised, tail, payload, payload_crc| EntryHeader {
        sequence,
        epoch,
        position: RingSector(position),
        promised,
        tail,
        kind: EntryKind::Commit,
        payload: Sectors(payload),
        payload_crc,
    };
    let redo = |slot, payload_at| JournalRecord::Redo {
        array: 0,
        slot: Slot(slot),
        member_lba: MemberLba(0x1000),
        sectors: Sectors(3),
        payload_at: Sectors(payload_at),
    };
    let data = |set_lba, sectors, payload_at| JournalRecord::Data {
        array: 0,
        set_lba: SetLba(set_lba),
        sectors: Sectors(sectors),
        payload_at: Sectors(payload_at),
    };
    let reference = JournalRecord::RedoRef {
        array: 0,
        slot: Slot(1919),
        member_lba: MemberLba((1 << 55) - 2),
        sectors: Sectors(2),
        at: RingSector(13_815),
    };
    let (zero, revoke) = (SetLba(8), SetLba(0));
    let tail = place(17, 13_800);
    let later = place(18, 13_824);
    let crc = |seed, sectors| journal::crc32c(&payload(seed, sectors));
    vec![
        (header(17, 2, 13_800, 16, tail, 9, crc(17, 9)), vec![data(0x0123_4567_89ab, 3, 0), redo(4, 3), redo(5, 6)]),
        (
            header(18, 2, 13_824, 17, tail, 0, 0),
            vec![
                JournalRecord::Zero { array: 2, set_lba: zero, sectors: Sectors(1 << 40) },
                JournalRecord::Revoke { array: 2, set_lba: revoke, sectors: Sectors(7) },
                JournalRecord::Release { array: 63 },
            ],
        ),
        (header(19, 2, 13_832, 18, tail, 480, crc(19, 480)), vec![reference, data(0, 1, 479)]),
        (EntryHeader { kind: EntryKind::Wrap, ..header(20, 3, 14_320, 18, later, 0, 0) }, vec![]),
        (header(21, 3, 0, 20, later, 8, crc(21, 8)), vec![data(64, 8, 0); 120]),
    ]
}

fn payload(seed: u8, sectors: usize) -> Vec<u8> {
    (0..sectors).flat_map(|number| [seed, u8::try_from(number % 256).unwrap()].repeat(256)).collect()
}

#[test]
fn the_log_is_followed_over_the_end_of_the_ring_and_ends_at_the_remains_of_the_crash() {
    let device = golden_device("wrapped");
    let superblock = newest(&device).unwrap().superblock;
    let mut found = Vec::new();
    let outcome = scan_ring(&superblock, ring_of(&device, &superblock), |entry, bytes| {
        let seed = entry.header.sequence.to_le_bytes()[0];
        assert_eq!(bytes, payload(seed, usize::try_from(entry.header.payload.get()).unwrap()));
        found.push((entry.header, entry.records().collect::<Vec<_>>()));
    });
    assert_eq!(found, entries());
    assert_eq!(outcome.head, place(22, 16));
    assert_eq!(outcome.tail, place(18, 13_824));
    assert_eq!((outcome.entries, outcome.promised, outcome.epoch, outcome.highest), (5, 20, 3, 22));
    assert_eq!(outcome.stop, EntryFault::OlderEpoch(2));
    assert!(!outcome.restarted);
    assert_eq!(outcome.verdict(), Ok(()));
}

#[test]
fn entries_are_written_to_the_golden_bytes_whether_the_payload_is_known_before_or_later() {
    let device = golden_device("wrapped");
    let superblock = wrapped();
    let ring = ring_of(&device, &superblock);
    for (header, records) in entries() {
        let at = usize::try_from(header.position.0 * 512).unwrap();
        let mut out = [0xa5; 4096];
        header.encode(&superblock.ring(), &records, &mut out);
        assert_eq!(out, ring[at..at + 4096], "entry {}", header.sequence);
        EntryHeader { payload_crc: 0, ..header }.encode(&superblock.ring(), &records, &mut out);
        EntryHeader::seal(&mut out, header.payload_crc);
        assert_eq!(out, ring[at..at + 4096], "entry {}", header.sequence);
    }
}

#[test]
fn an_entry_that_is_written_over_another_one_leaves_nothing_of_it() {
    let device = golden_device("wrapped");
    let superblock = wrapped();
    let ring = ring_of(&device, &superblock);
    let mut out = [0; 4096];
    let (up, down) = (entries(), entries().into_iter().rev());
    for (header, records) in up.into_iter().chain(down) {
        let at = usize::try_from(header.position.0 * 512).unwrap();
        header.encode_over(&superblock.ring(), &records, &mut out);
        assert_eq!(out, ring[at..at + 4096], "entry {}", header.sequence);
    }
}

#[test]
fn a_stale_first_superblock_finds_the_same_log() {
    let device = golden_device("wrapped");
    // The first copy's tail, entry 12 at 13000, no longer exists.
    let stale = JournalSuperblock::decode(superblock_bytes(&device, SuperblockCopy::First), SuperblockCopy::First);
    let mut sequences = Vec::new();
    let superblock = stale.unwrap();
    let outcome = scan_ring(&superblock, ring_of(&device, &superblock), |entry, _| {
        sequences.push(entry.header.sequence);
    });
    assert!(outcome.restarted);
    assert_eq!((outcome.head, outcome.tail), (place(22, 16), place(18, 13_824)));
    assert_eq!(sequences, [18, 19, 20, 21]);
    assert_eq!(outcome.verdict(), Ok(()));
}
