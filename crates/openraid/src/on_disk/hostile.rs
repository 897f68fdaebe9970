//! For tests: superblocks with right checksums over changed fields.

use openraid_core::events::DriveInfo;
use openraid_format::{MinorVersion, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_runtime::member::{DeviceNames, Foreign, Look, ProbedMember};
use openraid_units::{BlockSize, Nanos, Sectors};

use crate::new_arrays::{CreateOptions, NewShape};

/// Size of every drive.
pub const SIZE: Sectors = Sectors::mib(64);
/// Arrays whose superblocks are changed.
const SHAPES: [(&str, usize); 7] = [("0", 3), ("1", 2), ("linear", 3), ("5", 4), ("6", 5), ("10", 5), ("4", 3)];
/// Bytes after the magic and the version that may be changed: the header, and roles.
const CHANGED: std::ops::Range<usize> = 8..388;

/// A drive with this superblock.
pub fn member(name: &str, superblock: Superblock) -> ProbedMember {
    let look = Look { superblock: Some(superblock), ..Look::of(Foreign::default()) };
    let info = DriveInfo {
        capacity: SIZE,
        block: BlockSize::B512,
        rotational: false,
        discard: false,
        discard_zeroes: false,
        write_zeroes: false,
        room_wait: Nanos::ZERO,
        flush_waits: false,
    };
    ProbedMember {
        spec: crate::members::spec(name).expect("a name"),
        info,
        names: DeviceNames::default(),
        notes: Vec::new(),
        look,
    }
}

/// The superblocks of a new array on drives of 64 MiB, as bytes.
fn superblocks(level: &str, count: usize) -> Vec<Vec<u8>> {
    let members: Vec<String> = (0..count).map(|n| format!("/d{n}")).collect();
    let options = CreateOptions {
        name: "data",
        level: crate::words::level(level).expect("a level"),
        layout: None,
        chunk: None,
        spans: None,
        members: &members,
        spares: &[],
        size: None,
        assume_clean: false,
        bitmap: None,
        ppl: false,
        minor: MinorVersion::V1_2,
    };
    let plans = NewShape::of(&options).and_then(|shape| shape.plan(&vec![SIZE; count], &members)).expect("a plan");
    let bytes = plans[0].members.iter().map(|member| {
        let mut bytes = vec![0; SUPERBLOCK_BYTES_MAX];
        member.superblock.encode(&mut bytes);
        bytes
    });
    bytes.collect()
}

/// Correct the checksum: the sum of the words, with carries added once, and the checksum itself as zero.
fn mend(bytes: &mut [u8]) {
    let entries = usize::try_from(u32::from_le_bytes([bytes[220], bytes[221], bytes[222], bytes[223]])).expect("u32");
    let end = (256 + 2 * entries.min(1000)).min(bytes.len());
    bytes[216..220].fill(0);
    let sum: u64 =
        bytes[..end].chunks(4).map(|word| word.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))).sum();
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    bytes[216..220].copy_from_slice(&folded.to_le_bytes()[..4]);
}

fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).expect("31 bits")
}

/// Sets of superblocks, `each` for each shape: the same change on some or all members, so that they may still agree.
/// Superblocks that do not decode are left out.
pub fn hostile_sets(each: usize, mut use_them: impl FnMut(Vec<Superblock>)) {
    let mut state = 0x5eed_5eed;
    for (level, count) in SHAPES {
        let good = superblocks(level, count);
        for _ in 0..each {
            let mut all = good.clone();
            let mut change = || {
                let byte = [0, 1, 0x7f, 0x80, 0xff][random(&mut state) % 5];
                (CHANGED.start + random(&mut state) % CHANGED.len(), byte)
            };
            let changes = [change(), change(), change()];
            let used = 1 + random(&mut state) % changes.len();
            let whom = random(&mut state) % (count + 1);
            for bytes in all.iter_mut().skip(if whom == count { 0 } else { whom }) {
                changes[..used].iter().for_each(|(at, byte)| bytes[*at] = *byte);
                mend(bytes);
            }
            let decoded = all.iter().filter_map(|bytes| Superblock::decode(bytes, MinorVersion::V1_2, SIZE).ok());
            use_them(decoded.collect());
        }
    }
}
