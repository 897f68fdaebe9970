//! What is on the devices of a journal, for a driver that can read them: superblocks, the log, which device counts.
//!
//! Pure but for the reads that the driver does; nothing is written here.

use alloc::vec::Vec;
use core::fmt;
use openraid_format::{
    choose_journal_mirror, journal_superblock_lba, EntryFault, JournalEntry, JournalError, JournalScan,
    JournalSuperblock, ScanNeed, ScanOutcome, SuperblockCopy, JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES,
};
use openraid_units::{BlockSize, Bytes, DriveId, DriveLba, Sectors};

use super::attach::{FoundEntry, FoundJournal, KeptEntry};

/// The ring is swept in pieces of this size.
const SWEEP_SECTORS: Sectors = Sectors::mib(1);

/// A device that may carry a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalDevice {
    /// The drive.
    pub drive: DriveId,
    /// Its size.
    pub capacity: Sectors,
    /// Its block.
    pub block: BlockSize,
}

/// Why what the devices hold cannot be used. The text says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FindError {
    /// No device was named, or more than two.
    Count(usize),
    /// What a device holds is no journal that can be used.
    Journal(DriveId, JournalError),
    /// The devices do not belong together.
    Mirrors(JournalError),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "a journal is on one device or mirrored over two, not on {count}"),
            Self::Journal(drive, error) => write!(f, "journal on drive {drive}: {error}"),
            Self::Mirrors(error) => write!(f, "the two devices of the journal: {error}"),
        }
    }
}
impl core::error::Error for FindError {}

/// How a driver reads a device: `false` where it cannot be read.
pub trait ReadDevice {
    /// Fill `bytes` from a sector of the device with this place in the list.
    fn read(&mut self, device: usize, at: DriveLba, bytes: &mut [u8]) -> bool;
    /// CRC-32C in the usual sense.
    fn crc(&self, register: u32, bytes: &[u8]) -> u32;
}

struct Log {
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
            return Err(JournalError::NotAJournal);
        }
        JournalSuperblock::decode(&bytes, copy)
    };
    let found = JournalSuperblock::newest(copy(SuperblockCopy::First), copy(SuperblockCopy::Last))?;
    found.superblock.check_device(device.capacity, device.block)?;
    Ok(found.superblock)
}

/// Look at the devices of a journal. With `give_up` a damaged log is taken as empty: what it promised is lost.
///
/// # Errors
/// Why they cannot be used.
pub fn find_journal(
    devices: &[JournalDevice],
    give_up: bool,
    reader: &mut impl ReadDevice,
) -> Result<FoundJournal, FindError> {
    if devices.is_empty() || devices.len() > 2 {
        return Err(FindError::Count(devices.len()));
    }
    let mut whole = Vec::new();
    for (number, device) in devices.iter().enumerate() {
        let superblock = superblock_of(number, device, reader).map_err(|e| FindError::Journal(device.drive, e))?;
        if !superblock.unfinished {
            whole.push(number);
        }
    }
    match whole[..] {
        [] => Err(FindError::Journal(devices[0].drive, JournalError::Unfinished)),
        [number] => find_among(&devices[number..=number], give_up, &mut Only { reader, number }),
        _ => find_among(devices, give_up, reader),
    }
}

/// One of the devices of a reader.
struct Only<'a, R> {
    reader: &'a mut R,
    number: usize,
}

impl<R: ReadDevice> ReadDevice for Only<'_, R> {
    fn read(&mut self, _: usize, at: DriveLba, bytes: &mut [u8]) -> bool {
        self.reader.read(self.number, at, bytes)
    }
    fn crc(&self, register: u32, bytes: &[u8]) -> u32 {
        self.reader.crc(register, bytes)
    }
}

/// Look at devices that are whole, as far as they say.
fn find_among(
    devices: &[JournalDevice],
    give_up: bool,
    reader: &mut impl ReadDevice,
) -> Result<FoundJournal, FindError> {
    let mut found = Vec::new();
    for (number, device) in devices.iter().enumerate() {
        let superblock = superblock_of(number, device, reader).map_err(|e| FindError::Journal(device.drive, e))?;
        let log = follow(number, &superblock, reader);
        found.push((superblock, log));
    }
    let best = match &found[..] {
        [one, other] => match choose_journal_mirror([(&one.0, &one.1.outcome), (&other.0, &other.1.outcome)]) {
            Ok(best) => best,
            Err(JournalError::Damaged { .. }) if give_up => 0,
            Err(error) => return Err(FindError::Mirrors(error)),
        },
        [one] => {
            if let (Err(error), false) = (one.1.outcome.verdict(), give_up) {
                return Err(FindError::Journal(devices[0].drive, error));
            }
            0
        }
        _ => unreachable!("one or two"),
    };
    let damaged = found.iter().all(|(_, log)| log.outcome.verdict().is_err());
    let highest = found.iter().map(|(_, log)| log.outcome.highest).max().unwrap_or(0);
    let epoch = found.iter().map(|(_, log)| log.outcome.epoch).max().unwrap_or(0);
    let kept = find_kept(&found, best, give_up, reader).map_err(|e| FindError::Journal(devices[best].drive, e))?;
    let (mut superblock, log) = found.swap_remove(best);
    if kept.is_empty() {
        superblock.kept = Sectors::ZERO;
    }
    let outcome = log.outcome;
    // The other device has what the better one has, or less: only where both have all of it are both used at once.
    let same = found.iter().all(|(own, other)| {
        let log = (other.outcome.head, other.outcome.tail, other.outcome.epoch);
        log == (outcome.head, outcome.tail, outcome.epoch) && own.kept == superblock.kept
    });
    let mut order: Vec<(DriveId, u8)> = Vec::from([(devices[best].drive, superblock.mirror)]);
    if same {
        let others = devices.iter().enumerate().filter(|(number, _)| *number != best);
        order.extend(others.zip(&found).map(|((_, device), (superblock, _))| (device.drive, superblock.mirror)));
    }
    let mut head = outcome.head;
    let entries = if damaged && give_up {
        head.sequence = highest + 1;
        Vec::new()
    } else {
        log.entries.into_iter().filter(|(sequence, _)| *sequence >= outcome.tail.sequence).map(|(_, e)| e).collect()
    };
    let tail = if damaged && give_up { head } else { outcome.tail };
    Ok(FoundJournal { devices: order, superblock, tail, head, epoch, entries, kept })
}

/// The entries that were copied out of the ring, from the device that counts, or from the other one if that has the
/// same.
fn find_kept(
    found: &[(JournalSuperblock, Log)],
    best: usize,
    give_up: bool,
    reader: &mut impl ReadDevice,
) -> Result<Vec<KeptEntry>, JournalError> {
    let own = &found[best].0;
    let mut kept = read_kept(best, own, reader);
    let other = found.iter().position(|(other, _)| other.mirror != own.mirror && other.generation == own.generation);
    if let (Err(_), Some(other)) = (&kept, other) {
        kept = read_kept(other, own, reader).or(kept);
    }
    if give_up {
        kept = Ok(kept.unwrap_or_default());
    }
    kept
}

fn read_kept(
    number: usize,
    superblock: &JournalSuperblock,
    reader: &mut impl ReadDevice,
) -> Result<Vec<KeptEntry>, JournalError> {
    let ring = superblock.ring();
    let (start, _) = superblock.keep_area();
    let mut kept: Vec<KeptEntry> = Vec::new();
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
        let found = FoundEntry {
            position: entry.header.position,
            sectors,
            tail: entry.header.tail.sequence,
            records: entry.records().collect(),
        };
        kept.push(KeptEntry { sequence: entry.header.sequence, at, entry: found });
        done += sectors;
    }
    Ok(kept)
}

/// Follow the log of one device.
fn follow(number: usize, superblock: &JournalSuperblock, reader: &mut impl ReadDevice) -> Log {
    let ring = superblock.ring();
    let mut scan = JournalScan::new(superblock);
    let mut entries: Vec<(u64, FoundEntry)> = Vec::new();
    let mut waiting = None;
    let mut buffer = Vec::new();
    loop {
        match scan.need() {
            ScanNeed::Header(at) => {
                let mut bytes = [0; JOURNAL_BLOCK_BYTES];
                let read = reader.read(number, ring.drive_lba(at), &mut bytes);
                if let Some(entry) = scan.header(read.then_some(&bytes[..])) {
                    let found = FoundEntry {
                        position: at,
                        sectors: entry.header.sectors(&ring),
                        tail: entry.header.tail.sequence,
                        records: entry.records().collect(),
                    };
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
                let piece = sectors.min(SWEEP_SECTORS);
                if read_into(&mut buffer, number, ring.drive_lba(at), piece, reader) {
                    scan.sweep(&buffer);
                } else {
                    scan.sweep_unreadable(piece.min(JOURNAL_ALIGN));
                }
            }
            ScanNeed::Done => return Log { outcome: scan.outcome(), entries },
        }
    }
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
