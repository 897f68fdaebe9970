//! Of two devices of a journal, the one that is behind gets what the other one has: first it is marked as unfinished, then
//! the log, then the superblocks, each durable before the next.

use openraid_format::{journal_superblock_lba, JournalSuperblock, SuperblockCopy, JOURNAL_BLOCK_BYTES};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::find::FoundDevices;
use super::make::{write, write_superblock};
use super::JournalStartError;

/// The log is copied in pieces of this size.
const PIECE: Sectors = Sectors::mib(1);

/// Bring a device that is behind up to date, so that both are used. One that cannot be written is left out: both were read,
/// so the other one has everything.
///
/// # Errors
/// The better device cannot be read or written.
pub fn heal(found: &mut FoundDevices, notes: &mut Vec<String>) -> Result<(), JournalStartError> {
    let [(best, mirror)] = found.journal.devices[..] else { return Ok(()) };
    if found.devices.len() != 2 {
        return Ok(());
    }
    let behind = 1 - best.index();
    match bring_up(found, behind, (best, mirror)) {
        Ok(()) => {
            let device = &found.devices[behind].spec.text;
            notes.push(format!("{device}: this device of the journal was behind and has been brought up to date"));
        }
        Err((failed, error)) if failed == behind => {
            let whole = &found.devices[best.index()].spec.text;
            notes.push(format!("{error}; this device of the journal is behind, and {whole} is used alone"));
            found.devices.remove(behind);
            found.superblocks.remove(behind);
            found.journal.devices[0].0 = DriveId(0);
        }
        Err((_, error)) => return Err(error),
    }
    Ok(())
}

/// What went wrong, and on which device.
type Failed = (usize, JournalStartError);

fn bring_up(found: &mut FoundDevices, behind: usize, (best, mirror): (DriveId, u8)) -> Result<(), Failed> {
    // Until it has everything nothing on it counts, whoever looks at it alone.
    let highest = found.superblocks.iter().map(|own| own.generation).max().unwrap_or(0);
    let other = 1 - mirror.min(1);
    let unfinished = JournalSuperblock {
        mirrors: 2,
        mirror: other,
        generation: highest + 1,
        clean: false,
        unfinished: true,
        kept: Sectors::ZERO,
        ..found.journal.superblock.clone()
    };
    let on = |device: usize| move |error| (device, error);
    write_superblock(&found.devices[behind], &unfinished).map_err(on(behind))?;
    copy_log(found, best.index(), behind)?;
    let superblock =
        JournalSuperblock { mirrors: 2, mirror, generation: highest + 2, ..found.journal.superblock.clone() };
    for (number, mirror) in [(behind, other), (best.index(), mirror)] {
        let own = JournalSuperblock { mirror, ..superblock.clone() };
        write_superblock(&found.devices[number], &own).map_err(on(number))?;
        found.superblocks[number] = own;
    }
    found.journal.superblock = superblock;
    let drive = DriveId(u16::try_from(behind).expect("two devices"));
    found.journal.devices.push((drive, other));
    Ok(())
}

/// Copy the entries that are kept before the ring, and those from the tail to the head.
fn copy_log(found: &mut FoundDevices, from: usize, to: usize) -> Result<(), Failed> {
    let ring = found.journal.superblock.ring();
    let room = journal_superblock_lba(SuperblockCopy::Last, found.devices[to].info.capacity).map_or(0, DriveLba::get);
    if room < ring.start.get() + ring.sectors.get() {
        let device = found.devices[to].spec.text.clone();
        let why = "it has become smaller than the other device's log".into();
        return Err((to, JournalStartError::Io { device, why }));
    }
    let mut at = found.journal.tail.position;
    let mut left = ring.distance(at, found.journal.head.position);
    // Entries that fill the whole ring begin and end at one place.
    if left.is_zero() && !found.journal.entries.is_empty() {
        left = ring.sectors;
    }
    while !left.is_zero() {
        let len = left.min(PIECE).min(ring.to_end(at));
        copy_piece(found, (from, to), ring.drive_lba(at), len)?;
        at = ring.behind(at, len);
        left -= len;
    }
    let (start, kept) = (found.journal.superblock.keep_area().0, found.journal.superblock.kept);
    let mut done = Sectors::ZERO;
    while done < kept {
        let len = (kept - done).min(PIECE);
        copy_piece(found, (from, to), start + done, len)?;
        done += len;
    }
    super::make::sync(&found.devices[to]).map_err(|error| (to, error))
}

fn copy_piece(found: &mut FoundDevices, (from, to): (usize, usize), at: DriveLba, len: Sectors) -> Result<(), Failed> {
    let mut buffer = vec![0; usize::try_from(len.bytes().get()).expect("1 MiB")];
    if let Err(error) = found.devices[from].read_at(at, &mut buffer) {
        let device = found.devices[from].spec.text.clone();
        return Err((from, JournalStartError::Io { device, why: error.to_string() }));
    }
    write(&found.devices[to], at, &buffer).map_err(|error| (to, error))
}

const _: () = assert!(PIECE.get().is_multiple_of(JOURNAL_BLOCK_BYTES as u64 / 512));
