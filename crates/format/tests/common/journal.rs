//! Shared by several tests of the journal: an independent checksum, golden devices, small rings.
#![allow(dead_code)] // each test file uses a part of this

#[path = "random.rs"]
mod random;
#[allow(unused_imports)] // not every test file needs numbers
pub use random::Random;

use openraid_format::{
    EntryHeader, EntryKind, JournalRecord, JournalRing, JournalSuperblock, LogPlace, RingSector, Uuid,
};
use openraid_units::{BlockSize, DriveLba, Sectors, SetLba};
use std::fs;
use std::path::Path;

pub const JOURNAL: Uuid = Uuid([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
pub const CONTROLLER: Uuid = Uuid([64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79]);

/// CRC-32C with one table of single bytes, computed by long division from the top; the library uses another method.
pub fn crc32c(bytes: &[u8]) -> u32 {
    use std::sync::OnceLock;
    static TABLE: OnceLock<Vec<u32>> = OnceLock::new();
    let divide = |byte: u32| {
        let top = (0..8).fold(byte.reverse_bits(), |register, _| {
            let carry = register >> 31 == 1;
            register << 1 ^ if carry { 0x1edc_6f41 } else { 0 }
        });
        top.reverse_bits()
    };
    let table = TABLE.get_or_init(|| (0..256).map(divide).collect());
    !bytes.iter().fold(u32::MAX, |register, &byte| register >> 8 ^ table[usize::from(register.to_le_bytes()[0] ^ byte)])
}

/// Writes the correct checksum into a superblock or a header.
pub fn fix_checksum(block: &mut [u8]) {
    block[12..16].fill(0);
    let checksum = crc32c(&block[..4096]);
    block[12..16].copy_from_slice(&checksum.to_le_bytes());
}

/// A golden device, in the form that `golden/journal/make.py` describes.
pub fn golden_device(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal").join(format!("{name}.txt"));
    let mut device = vec![0; 16389 * 512];
    for line in fs::read_to_string(path).unwrap().lines() {
        let mut words = line.split(' ');
        let at: usize = words.next().unwrap().parse().unwrap();
        let hex = words.next().unwrap();
        let times = words.next().map_or(1, |times| times[1..].parse().unwrap());
        let row: Vec<u8> = (0..32).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap()).collect();
        device[at..at + 32 * times].copy_from_slice(&row.repeat(times));
    }
    device
}

/// The superblock of a journal with a ring of any length; `encode` may refuse it.
pub fn small(sectors: u64) -> JournalSuperblock {
    let device = Sectors::mib(8);
    let mut superblock = JournalSuperblock::new(JOURNAL, CONTROLLER, device, BlockSize::B512, (0, 1)).unwrap();
    superblock.ring_start = DriveLba(8);
    superblock.ring_sectors = Sectors(sectors);
    superblock.clean = false;
    superblock
}

/// A commit with one record over its whole payload, as bytes of the ring.
pub fn commit(
    ring: &JournalRing,
    place: LogPlace,
    epoch: u64,
    promised: u64,
    tail: LogPlace,
    payload: &[u8],
) -> (EntryHeader, Vec<u8>) {
    let sectors = Sectors(payload.len() as u64 / 512);
    let data = JournalRecord::Data { array: 3, set_lba: SetLba(place.sequence << 8), sectors, payload_at: Sectors(0) };
    let records: &[JournalRecord] = if payload.is_empty() { &[] } else { &[data] };
    let header = EntryHeader {
        sequence: place.sequence,
        epoch,
        position: place.position,
        promised,
        tail,
        kind: EntryKind::Commit,
        payload: sectors,
        payload_crc: if payload.is_empty() { 0 } else { crc32c(payload) },
    };
    let mut bytes = vec![0xa5; 4096];
    header.encode(ring, records, &mut bytes);
    bytes.extend_from_slice(payload);
    (header, bytes)
}

/// A filler.
pub fn wrap(ring: &JournalRing, place: LogPlace, epoch: u64, promised: u64, tail: LogPlace) -> (EntryHeader, Vec<u8>) {
    let header = EntryHeader {
        sequence: place.sequence,
        epoch,
        position: place.position,
        promised,
        tail,
        kind: EntryKind::Wrap,
        payload: Sectors(0),
        payload_crc: 0,
    };
    let mut bytes = vec![0xa5; 4096];
    header.encode(ring, &[], &mut bytes);
    (header, bytes)
}

/// Writes bytes into a ring.
pub fn put(image: &mut [u8], at: RingSector, bytes: &[u8]) {
    let at = usize::try_from(at.0 * 512).unwrap();
    image[at..at + bytes.len()].copy_from_slice(bytes);
}
