//! Invalid superblocks: flipped bits, cut off, random, and impossible values with a correct checksum. No input may
//! cause a panic, and accepted bytes must be the same after decoding and encoding.
//!
//! `tests/corpus` keeps one input for each verdict that the mutations reached. With `OPENRAID_CORPUS=write` new
//! verdicts are added to it.

mod common;

use common::{fix_checksum, golden, Member, Random};
use openraid_format::{
    detect_foreign, is_raid5_journal_block, sync_size, BadBlockTable, BitmapError, BitmapHeader, DeviceRole,
    MinorVersion, PplHeader, ReadStretch, Superblock, SuperblockError, Uuid, SUPERBLOCK_BYTES_MAX,
};
use openraid_units::{Bytes, DriveLba, Sectors};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const MUTATIONS: usize = 200_000;

/// One superblock as it was read from a drive.
#[derive(Clone)]
struct ReadSuperblock {
    minor: MinorVersion,
    size: Sectors,
    bytes: Vec<u8>,
}

impl ReadSuperblock {
    fn of(member: &Member) -> Self {
        Self { minor: member.minor(), size: member.size, bytes: member.superblock_bytes().to_vec() }
    }

    /// Decodes the bytes, and calls all functions of an accepted superblock.
    fn judge(&self) -> Result<(), SuperblockError> {
        let superblock = Superblock::decode(&self.bytes, self.minor, self.size)?;
        let mut out = [0; SUPERBLOCK_BYTES_MAX];
        superblock.encode(&mut out);
        let covered = 256 + 2 * superblock.roles.len();
        assert_eq!(out[..covered], self.bytes[..covered]);
        if let Some(change) = superblock.change() {
            assert!(change.step().is_none_or(|step| change.position.get() % step.get() == 0));
            if matches!(superblock.role(), DeviceRole::Active(_)) {
                assert!(superblock.new_data_offset() + change.size <= DriveLba(self.size.get()));
            }
        }
        let room = superblock.bitmap_room(self.size);
        if let Some((start, room)) = room {
            assert!(start.get() + room.get() <= self.size.get());
        }
        let _ = (sync_size(&superblock), superblock.ppl(), superblock.journal_tail(), superblock.raid0_layout());
        let _ = (superblock.unsupported_features().to_string(), superblock.set_name.name().len(), superblock.role());
        Ok(())
    }
}

/// A short name of a verdict, for a file.
fn verdict(result: Result<(), SuperblockError>) -> String {
    let Err(error) = result else { return String::from("accepted") };
    assert!(!error.to_string().is_empty());
    let debug = format!("{error:?}");
    let name = debug.split([' ', '(', '{']).next().unwrap().to_string();
    match error {
        SuperblockError::BadMetadataArea(area) => format!("{name}-{area:?}"),
        SuperblockError::BadReshape(fault) => {
            let fault = format!("{fault:?}");
            format!("{name}-{}", fault.split([' ', '(', '{']).next().unwrap())
        }
        _ => name,
    }
}

#[test]
fn a_flipped_byte_is_always_noticed() {
    for read in golden().iter().map(ReadSuperblock::of) {
        let covered = 256 + 2 * usize::try_from(u32::from_le_bytes(read.bytes[220..224].try_into().unwrap())).unwrap();
        for index in 0..covered {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = read.clone();
                damaged.bytes[index] ^= flip;
                assert!(damaged.judge().is_err(), "byte {index} ^ {flip:02x}");
            }
        }
    }
}

#[test]
fn a_flipped_byte_under_a_right_checksum_never_panics() {
    for read in golden().iter().map(ReadSuperblock::of) {
        for index in 0..read.bytes.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = read.clone();
                damaged.bytes[index] ^= flip;
                fix_checksum(&mut damaged.bytes);
                let _ = damaged.judge();
            }
        }
    }
}

#[test]
fn a_superblock_cut_off_anywhere_is_an_error() {
    let read = ReadSuperblock::of(&golden()[0]);
    for len in 0..read.bytes.len() {
        let cut = ReadSuperblock { bytes: read.bytes[..len].to_vec(), ..read };
        assert!(matches!(cut.judge(), Err(SuperblockError::Truncated { have, .. }) if have == len));
    }
}

/// Changes a few bytes, or sets a field to an extreme number.
fn mutate(bytes: &mut [u8], random: &mut Random) {
    const EXTREMES: [u64; 12] =
        [0, 1, 2, 7, 8, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 54, i64::MAX as u64, 1 << 63, u64::MAX];
    for _ in 0..=random.index(3) {
        let at = random.index(bytes.len().min(288));
        if random.index(2) == 0 {
            bytes[at] = random.next().to_le_bytes()[0];
        } else {
            let width = [1, 2, 4, 8][random.index(4)];
            let at = (at / width * width).min(bytes.len() - width);
            let number = EXTREMES[random.index(EXTREMES.len())].wrapping_add(random.next() % 3).wrapping_sub(1);
            bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
        }
    }
}

#[test]
fn random_mutations_never_panic_and_reach_the_deep_checks() {
    let images: Vec<ReadSuperblock> = golden().iter().map(ReadSuperblock::of).collect();
    let mut random = Random(0x0de5_1f00);
    let mut verdicts: BTreeMap<String, (usize, ReadSuperblock)> = BTreeMap::new();
    for _ in 0..MUTATIONS {
        let mut read = images[random.index(images.len())].clone();
        mutate(&mut read.bytes, &mut random);
        // Most mutations keep the envelope valid, so that the fields after it are checked.
        if random.index(16) != 0 {
            read.bytes[..8].copy_from_slice(&[0xfc, 0x4e, 0x2b, 0xa9, 1, 0, 0, 0]);
            fix_checksum(&mut read.bytes);
        }
        let verdict = verdict(read.judge());
        verdicts.entry(verdict).or_insert((0, read)).0 += 1;
    }
    for name in [
        "accepted",
        "BadChunk",
        "BadDataArea",
        "BadMemberCount",
        "BadMetadataArea-BadBlocks",
        "BadMetadataArea-Bitmap",
        "BadMetadataArea-Ppl",
        "BadReshape-Direction",
        "BadReshape-Members",
        "BadReshape-NewChunk",
        "BadReshape-NewDataArea",
        "BadReshape-NewLayout",
        "BadReshape-NewLevel",
        "BadReshape-Position",
        "BadReshape-PositionBeyondEnd",
        "BadReshape-Shift",
        "BadRole",
        "Checksum",
        "ContradictingFeatures",
        "NoMagic",
        "RecoveryBeyondData",
        "SizeBeyondData",
        "TooManyRoles",
        "Truncated",
        "UnknownFeatures",
        "UnknownLayout",
        "UnknownLevel",
        "UnknownMajor",
        "WrongPlace",
    ] {
        assert!(verdicts.contains_key(name), "no mutation led to {name}");
    }
    if std::env::var("OPENRAID_CORPUS").is_ok_and(|mode| mode == "write") {
        keep(&verdicts);
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Writes a file of the corpus: version and drive size on the first line, then the bytes without rows of zeroes.
fn keep(verdicts: &BTreeMap<String, (usize, ReadSuperblock)>) {
    for (name, (_, read)) in verdicts {
        let path = corpus().join(format!("{name}.txt"));
        if path.exists() {
            continue;
        }
        let mut text = format!("{} {} {}\n", read.minor, read.size.get(), read.bytes.len());
        for (row, bytes) in read.bytes.chunks(32).enumerate().filter(|(_, bytes)| bytes.iter().any(|&byte| byte != 0)) {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            text.push_str(&format!("{} {hex}\n", row * 32));
        }
        fs::write(path, text).unwrap();
    }
}

#[test]
fn every_input_of_the_corpus_gets_the_verdict_it_is_named_after() {
    let mut seen = 0;
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        let first: Vec<&str> = lines.next().unwrap().split(' ').collect();
        let minor = *MinorVersion::ALL.iter().find(|minor| minor.to_string() == first[0]).unwrap();
        let mut bytes = vec![0; first[2].parse().unwrap()];
        for line in lines {
            let (at, hex) = line.split_once(' ').unwrap();
            let at: usize = at.parse().unwrap();
            for index in 0..hex.len() / 2 {
                bytes[at + index] = u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap();
            }
        }
        let read = ReadSuperblock { minor, size: Sectors(first[1].parse().unwrap()), bytes };
        let named = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(verdict(read.judge()), named.split('~').next().unwrap(), "{named}");
        seen += 1;
    }
    assert!(seen >= 20, "the corpus is missing");
}

#[test]
fn bitmaps_logs_and_signatures_of_random_bytes_never_panic() {
    let mut random = Random(7);
    let mut bitmap = [0; 256];
    BitmapHeader::new(Uuid([1; 16]), 5, Sectors(1 << 20), 1 << 16).encode(&mut bitmap);
    let mut log = [0; 4096];
    PplHeader::new(Uuid([1; 16]), 5).encode(&mut log);
    for _ in 0..20_000 {
        let mut bytes = bitmap;
        mutate(&mut bytes[8..], &mut random);
        if let Ok(header) = BitmapHeader::decode(&bytes) {
            let mut out = [0; 256];
            header.encode(&mut out);
            assert_eq!(out, bytes);
            let geometry = header.geometry();
            let _ = (geometry.sectors(), geometry.counter_pages());
            let from = Bytes(random.next() >> random.index(64));
            assert!(geometry.set_bits(from, &bytes).all(|bit| bit < geometry.bits));
        }
        let mut bytes: Vec<u8> = (0..random.index(600)).map(|_| random.next().to_le_bytes()[0]).collect();
        let _ = BadBlockTable::decode(&bytes, random.next().to_le_bytes()[0], Sectors(random.next()));
        let _ = is_raid5_journal_block(&bytes);
        bytes.resize(70_000, 0);
        let stretch = ReadStretch { start: Bytes(random.next() >> random.index(64)), bytes: &bytes };
        let _ = detect_foreign(Bytes(random.next() >> random.index(64)), &[stretch]);
    }
    let mut accepted = 0;
    for _ in 0..2_000 {
        let mut bytes = log;
        mutate(&mut bytes[512..], &mut random);
        bytes[532..536].fill(0);
        let checksum = crc32c(&bytes);
        bytes[532..536].copy_from_slice(&checksum.to_le_bytes());
        let Ok(header) = PplHeader::decode(&bytes, Uuid([1; 16])) else { continue };
        let mut out = [0; 4096];
        header.encode(&mut out);
        let entries_end = 536 + 24 * header.entries().len();
        assert_eq!(out[536..entries_end], bytes[536..entries_end]);
        accepted += 1;
    }
    assert!(accepted > 100, "the mutations never got past the checksum");
}

/// A short name for the bitmap parser's verdict on some bytes.
fn bitmap_verdict(bytes: &[u8]) -> String {
    let Err(error) = BitmapHeader::decode(bytes) else { return String::from("accepted") };
    assert!(!error.to_string().is_empty());
    let debug = format!("{error:?}");
    let name = debug.split([' ', '(', '{']).next().unwrap().to_string();
    match error {
        BitmapError::BadCount { field, .. } => format!("{name}-{field}"),
        _ => name,
    }
}

/// `tests/corpus/bitmap` keeps one header for each verdict that mutations reached, as `tests/corpus` does of superblocks.
#[test]
fn every_bitmap_of_the_corpus_gets_the_verdict_it_is_named_after() {
    let folder = corpus().join("bitmap");
    if std::env::var_os("OPENRAID_CORPUS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        let mut good = [0; 256];
        BitmapHeader::new(Uuid([1; 16]), 5, Sectors(1 << 20), 1 << 16).encode(&mut good);
        let mut random = Random(11);
        for round in 0..200_000 {
            let mut bytes = good;
            mutate(&mut bytes[if round % 2 == 0 { 0 } else { 4 }..80], &mut random);
            let length = if round % 50 == 0 { random.index(256) } else { 256 };
            let path = folder.join(format!("{}.txt", bitmap_verdict(&bytes[..length])));
            if !path.exists() {
                let hex = |row: &[u8]| row.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
                fs::write(path, bytes[..length].chunks(32).map(hex).collect::<String>()).unwrap();
            }
        }
    }
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let digits: Vec<u8> = fs::read(&path).unwrap().into_iter().filter(u8::is_ascii_hexdigit).collect();
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        assert_eq!(bitmap_verdict(&bytes), path.file_stem().unwrap().to_string_lossy(), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 7, "the corpus is missing");
}

/// CRC-32C by long division over the reversed message, in the opposite direction to the library.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut register = u32::MAX;
    for bit in bytes.iter().flat_map(|byte| (0..8).map(move |shift| byte >> shift & 1)) {
        let top = register >> 31 == 1;
        register <<= 1;
        if top != (bit == 1) {
            register ^= 0x1edc_6f41;
        }
    }
    !register.reverse_bits()
}
