//! Reading the devices of a journal through a driver: superblocks, the log, and which device counts.
//!
//! The driver reads; the rest is pure. Nothing is written.

use alloc::vec::Vec;
use core::fmt;
use openraid_format::{
    choose_journal_mirror, journal_superblock_lba, EntryFault, JournalEntry, JournalError, JournalScan,
    JournalSuperblock, ScanNeed, ScanOutcome, SuperblockCopy, JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES,
};
use openraid_units::{BlockSize, Bytes, DriveId, DriveLba, Sectors};

use crate::journal::found_journal::{FoundEntry, FoundJournal, KeptEntry};

/// The ring is read in pieces of this size.
const SWEEP_SECTORS: Sectors = Sectors::mib(1);

/// A device that may carry a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalDevice {
    /// The drive.
    pub drive: DriveId,
    /// Size of the drive.
    pub capacity: Sectors,
    /// Its block.
    pub block: BlockSize,
}

/// Why the content of the devices cannot be used. The text has the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FindError {
    /// No device was named, or more than two.
    Count(usize),
    /// A device does not hold a usable journal.
    Journal(DriveId, JournalError),
    /// The devices are not mirrors of each other.
    Mirrors(JournalError),
    /// The caller does not need the result any more: see [`ReadDevice::is_over`].
    GivenUp,
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "a journal is on one device or mirrored over two, not on {count}"),
            Self::Journal(drive, error) => write!(f, "journal on drive {drive}: {error}"),
            Self::Mirrors(error) => write!(f, "the two devices of the journal: {error}"),
            Self::GivenUp => f.write_str("no array waits for the journal's entries any more; search it again"),
        }
    }
}
impl core::error::Error for FindError {}

/// How a driver reads a device.
pub trait ReadDevice {
    /// Fill `bytes` from a sector of the device with this number in the list; false if it cannot be read.
    fn read(&mut self, device: usize, at: DriveLba, bytes: &mut [u8]) -> bool;
    /// CRC-32C of `bytes`, continued from `register`.
    fn crc(&self, register: u32, bytes: &[u8]) -> u32;
    /// Has the caller given up? Then the search ends with [`FindError::GivenUp`].
    fn is_over(&self) -> bool {
        false
    }
}

/// How a damaged log is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OnDamage {
    /// It is refused.
    Refuse,
    /// It counts as empty.
    GiveUp,
    /// The entries before the damage are returned.
    Tell,
}

/// The content of a journal's devices, and their faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalSearch {
    /// The content.
    pub journal: FoundJournal,
    /// The damage of the log that no device repairs; only for [`inspect_journal`].
    pub damage: Option<JournalError>,
    /// The one of two devices that has lost entries of its log; the other one has them. It is not merely stale: it was
    /// in use when they were acknowledged.
    pub damaged_half: Option<(DriveId, JournalError)>,
}

/// A device whose log was followed.
struct Followed {
    /// Its number in the list.
    number: usize,
    drive: DriveId,
    superblock: JournalSuperblock,
    outcome: ScanOutcome,
    entries: Vec<(u64, FoundEntry)>,
}

/// The superblock of one device.
///
/// # Errors
/// Neither of its copies can be used.
pub fn superblock_of(
    number: usize,
    device: &JournalDevice,
    reader: &mut impl ReadDevice,
) -> Result<JournalSuperblock, JournalError> {
    let mut copy = |copy| {
        let lba = journal_superblock_lba(copy, device.capacity).ok_or(JournalError::TooSmall(device.capacity))?;
        let mut bytes = [0; JOURNAL_BLOCK_BYTES];
        if !reader.read(number, lba, &mut bytes) {
            return Err(JournalError::Unreadable);
        }
        JournalSuperblock::decode(&bytes, copy)
    };
    let found = JournalSuperblock::newest(copy(SuperblockCopy::First), copy(SuperblockCopy::Last))?;
    found.superblock.check_device(device.capacity, device.block)?;
    Ok(found.superblock)
}

/// Read the devices of a journal. With `give_up` a damaged log counts as empty, and its acknowledged data is lost.
///
/// # Errors
/// Why they cannot be used.
pub fn find_journal(
    devices: &[JournalDevice],
    give_up: bool,
    reader: &mut impl ReadDevice,
) -> Result<JournalSearch, FindError> {
    let on_damage = if give_up { OnDamage::GiveUp } else { OnDamage::Refuse };
    find(devices, on_damage, reader)
}

/// Read the devices of a journal that is not about to be used. A damaged log gives the entries before the damage, and the
/// error that says where it is.
///
/// # Errors
/// The devices say nothing that can be used.
pub fn inspect_journal(devices: &[JournalDevice], reader: &mut impl ReadDevice) -> Result<JournalSearch, FindError> {
    find(devices, OnDamage::Tell, reader)
}

fn find(
    devices: &[JournalDevice],
    on_damage: OnDamage,
    reader: &mut impl ReadDevice,
) -> Result<JournalSearch, FindError> {
    if devices.is_empty() || devices.len() > 2 {
        return Err(FindError::Count(devices.len()));
    }
    let mut whole = Vec::new();
    let mut journals = Vec::new();
    for (number, device) in devices.iter().enumerate() {
        let superblock = superblock_of(number, device, reader).map_err(|e| FindError::Journal(device.drive, e))?;
        journals.push(superblock.journal);
        if !superblock.unfinished {
            whole.push((number, superblock));
        }
    }
    // The check includes a device that does not count: both must be of the same journal.
    match journals[..] {
        [one, other] if one != other => return Err(FindError::Mirrors(JournalError::NotMirrors { one, other })),
        _ => {}
    }
    if whole.is_empty() {
        return Err(FindError::Journal(devices[0].drive, JournalError::Unfinished));
    }
    let follow = |(number, superblock)| follow(number, devices[number].drive, superblock, reader);
    let mut found = whole.into_iter().map(follow).collect::<Result<Vec<_>, _>>()?;
    let (best, mut damage) = choose(&found, on_damage)?;
    let given_up = damage.is_some() && on_damage == OnDamage::GiveUp;
    let highest = found.iter().map(|device| device.outcome.highest).max().unwrap_or(0);
    let epoch = found.iter().map(|device| device.outcome.epoch).max().unwrap_or(0);
    let (mut kept, kept_damage) = find_kept(&found, best, reader);
    match (kept_damage, on_damage) {
        (Some(error), OnDamage::Refuse) => return Err(FindError::Journal(found[best].drive, error)),
        (Some(_), OnDamage::GiveUp) => kept = Vec::new(),
        (found, _) => damage = damage.or(found),
    }
    let damaged_half = damaged_half(&found, best);
    let Followed { drive, mut superblock, outcome, entries, .. } = found.swap_remove(best);
    if kept.is_empty() {
        superblock.kept = Sectors::ZERO;
    }
    // The other device has the same entries as the better one, or fewer. Both are used only if both have all of them. A
    // device that was started without the other is the whole journal until the other is brought up to date.
    let is_same = |other: &Followed| {
        let log = (other.outcome.head, other.outcome.tail, other.outcome.epoch);
        let mirrors = other.superblock.mirrors == superblock.mirrors;
        mirrors && log == (outcome.head, outcome.tail, outcome.epoch) && other.superblock.kept == superblock.kept
    };
    let others = found.iter().filter(|other| is_same(other)).map(|other| (other.drive, other.superblock.mirror));
    let devices = core::iter::once((drive, superblock.mirror)).chain(others).collect();
    let (mut head, mut tail) = (outcome.head, outcome.tail);
    let mut entries: Vec<FoundEntry> =
        entries.into_iter().filter(|(sequence, _)| *sequence >= tail.sequence).map(|(_, entry)| entry).collect();
    if given_up {
        head.sequence = highest + 1;
        tail = head;
        entries = Vec::new();
    }
    let journal = FoundJournal { devices, superblock, tail, head, epoch, entries, kept };
    Ok(JournalSearch { journal, damage: damage.filter(|_| !given_up), damaged_half })
}

/// The other device than the better one, if its log lacks entries that were acknowledged while it was in use.
fn damaged_half(found: &[Followed], best: usize) -> Option<(DriveId, JournalError)> {
    let promised = found.iter().map(|device| device.outcome.promised).max()?;
    let was_in_use = |device: &&Followed| {
        let (superblock, best) = (&device.superblock, &found[best].superblock);
        (superblock.epoch, superblock.mirrors) == (best.epoch, best.mirrors)
    };
    let mut others = found.iter().filter(|device| device.number != found[best].number).filter(was_in_use);
    others.find_map(|device| Some((device.drive, device.outcome.verdict_with(promised).err()?)))
}

/// Choose the device that counts. Returns also the damage of its log that the other device does not repair.
fn choose(found: &[Followed], on_damage: OnDamage) -> Result<(usize, Option<JournalError>), FindError> {
    match found {
        [one, other] => {
            match choose_journal_mirror([(&one.superblock, &one.outcome), (&other.superblock, &other.outcome)]) {
                Ok(best) => Ok((best, None)),
                Err(error @ JournalError::Damaged { .. }) if on_damage != OnDamage::Refuse => {
                    let rank = |device: &Followed| {
                        (device.superblock.epoch, device.outcome.head.sequence, device.superblock.generation)
                    };
                    Ok((usize::from(rank(other) > rank(one)), Some(error)))
                }
                Err(error) => Err(FindError::Mirrors(error)),
            }
        }
        [one] => match one.outcome.verdict() {
            Err(error) if on_damage == OnDamage::Refuse => Err(FindError::Journal(one.drive, error)),
            verdict => Ok((0, verdict.err())),
        },
        _ => unreachable!("one or two"),
    }
}

/// Read the entries that were copied out of the ring, as far as they can be read, and their damage. They are read from
/// the device that counts, or from the other one if that has the same entries.
fn find_kept(found: &[Followed], best: usize, reader: &mut impl ReadDevice) -> (Vec<KeptEntry>, Option<JournalError>) {
    let superblock = &found[best].superblock;
    let mut kept = Vec::new();
    let mut read = read_kept(found[best].number, superblock, reader, &mut kept);
    let has_same =
        |other: &JournalSuperblock| other.mirror != superblock.mirror && other.generation == superblock.generation;
    let other = found.iter().find(|other| has_same(&other.superblock));
    if let (Err(_), Some(other)) = (read, other) {
        let mut mirrored = Vec::new();
        if read_kept(other.number, superblock, reader, &mut mirrored).is_ok() {
            (kept, read) = (mirrored, Ok(()));
        }
    }
    (kept, read.err())
}

fn read_kept(
    number: usize,
    superblock: &JournalSuperblock,
    reader: &mut impl ReadDevice,
    kept: &mut Vec<KeptEntry>,
) -> Result<(), JournalError> {
    let ring = superblock.ring();
    let (start, _) = superblock.keep_area();
    let mut buffer = Vec::new();
    let mut done = Sectors::ZERO;
    while done < superblock.kept {
        let at = start + done;
        let damaged = |fault| {
            let sequence = kept.last().map_or(1, |last| last.sequence + 1);
            JournalError::Damaged { sequence, promised: sequence, at, sectors: JOURNAL_ALIGN, fault }
        };
        let mut bytes = [0; JOURNAL_BLOCK_BYTES];
        if !reader.read(number, at, &mut bytes) {
            return Err(damaged(EntryFault::Unreadable));
        }
        let entry = JournalEntry::decode_kept(&bytes, &ring).map_err(damaged)?;
        let payload = entry.header.payload;
        if !payload.is_zero() {
            let read = read_into(&mut buffer, number, at + JOURNAL_ALIGN, payload, reader);
            let crc = read.then(|| reader.crc(0, &buffer)).ok_or_else(|| damaged(EntryFault::Unreadable))?;
            if crc != entry.header.payload_crc {
                return Err(damaged(EntryFault::PayloadChecksum { stored: entry.header.payload_crc, computed: crc }));
            }
        }
        let sectors = entry.header.sectors(&ring);
        kept.push(KeptEntry { sequence: entry.header.sequence, at, entry: FoundEntry::of(&entry, &ring) });
        done += sectors;
    }
    Ok(())
}

/// Follow the log of one device.
fn follow(
    number: usize,
    drive: DriveId,
    superblock: JournalSuperblock,
    reader: &mut impl ReadDevice,
) -> Result<Followed, FindError> {
    let ring = superblock.ring();
    let mut scan = JournalScan::new(&superblock);
    let mut entries: Vec<(u64, FoundEntry)> = Vec::new();
    let mut waiting = None;
    let mut buffer = Vec::new();
    // The rest of a piece that could not be read is read block by block, because its other blocks may have later
    // headers.
    let mut in_blocks = Sectors::ZERO;
    while !reader.is_over() {
        match scan.need() {
            ScanNeed::Header(at) => {
                let mut bytes = [0; JOURNAL_BLOCK_BYTES];
                let read = reader.read(number, ring.drive_lba(at), &mut bytes);
                if let Some(entry) = scan.header(read.then_some(&bytes[..])) {
                    let found = FoundEntry::of(&entry, &ring);
                    let sequence = entry.header.sequence;
                    entries.retain(|(older, _)| *older < sequence);
                    if entry.header.payload.is_zero() {
                        entries.push((sequence, found));
                    } else {
                        waiting = Some((sequence, found));
                    }
                }
            }
            ScanNeed::Payload { at, sectors } => {
                let read = read_into(&mut buffer, number, ring.drive_lba(at), sectors, reader);
                let crc = read.then(|| reader.crc(0, &buffer));
                let counts = scan.payload(crc);
                if let (true, Some(entry)) = (counts, waiting.take()) {
                    entries.push(entry);
                }
            }
            ScanNeed::Sweep { at, sectors } => {
                let is_block = !in_blocks.is_zero();
                let piece = sectors.min(if is_block { JOURNAL_ALIGN } else { SWEEP_SECTORS });
                match read_into(&mut buffer, number, ring.drive_lba(at), piece, reader) {
                    true => scan.sweep(&buffer),
                    false if is_block => scan.sweep_unreadable(piece),
                    false => {
                        in_blocks = piece;
                        continue;
                    }
                }
                in_blocks -= in_blocks.min(piece);
            }
            ScanNeed::Done => {
                let outcome = scan.outcome();
                return Ok(Followed { number, drive, superblock, outcome, entries });
            }
        }
    }
    Err(FindError::GivenUp)
}

fn read_into(
    buffer: &mut Vec<u8>,
    number: usize,
    at: DriveLba,
    sectors: Sectors,
    reader: &mut impl ReadDevice,
) -> bool {
    let len = usize::try_from(Bytes(sectors.bytes().get()).get()).expect("pieces are small");
    buffer.clear();
    buffer.resize(len, 0);
    reader.read(number, at, buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// A device of zeroes whose first superblock, or both, cannot be read.
    struct Failing {
        whole: bool,
    }

    impl ReadDevice for Failing {
        fn read(&mut self, _device: usize, at: DriveLba, bytes: &mut [u8]) -> bool {
            bytes.fill(0);
            !self.whole && at.get() > 1000
        }
        fn crc(&self, _register: u32, _bytes: &[u8]) -> u32 {
            0
        }
    }

    /// All is zero.
    struct Blank;

    impl ReadDevice for Blank {
        fn read(&mut self, _device: usize, _at: DriveLba, bytes: &mut [u8]) -> bool {
            bytes.fill(0);
            true
        }
        fn crc(&self, _register: u32, _bytes: &[u8]) -> u32 {
            0
        }
    }

    #[test]
    fn a_device_that_cannot_be_read_is_not_called_blank() {
        let block = BlockSize::new(512).expect("a size");
        let device = JournalDevice { drive: DriveId(0), capacity: Sectors::mib(16), block };
        for whole in [true, false] {
            let error = superblock_of(0, &device, &mut Failing { whole }).expect_err("it fails");
            assert_eq!(error, JournalError::Unreadable, "both copies: {whole}");
            let text = error.to_string();
            assert!(text.contains("make no new journal on it") && !text.contains("not an openraid journal"), "{text}");
        }
        assert_eq!(superblock_of(0, &device, &mut Blank), Err(JournalError::NotAJournal));
    }
}
