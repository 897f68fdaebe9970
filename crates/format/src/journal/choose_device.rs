//! Chooses the authoritative one of two devices of the same journal.
//!
//! - A device with an older epoch has missed entries, so the device with the newer epoch is chosen.
//! - If the epochs are equal, a device that says that it is the whole journal is chosen. It was started without the
//!   other device. The other device may have got the number of that epoch before, with entries that were never
//!   acknowledged.
//! - If two mirrors have the same epoch, the mirror with the longer log is chosen. Every acknowledged entry was durable on
//!   both, so the shorter log ends at an entry that was never acknowledged, or at damage.
//!
//! The chosen log must have all entries that either device knows to be acknowledged.

use super::error::JournalError;
use super::scan::ScanOutcome;
use super::superblock::JournalSuperblock;

/// The index of the authoritative device; the other device must be made up to date from it.
///
/// # Errors
/// - [`JournalError::NotMirrors`], [`JournalError::SameMirror`] and [`JournalError::BothAlone`] if the devices do not
///   belong together.
/// - [`JournalError::Damaged`] if acknowledged entries are missing on the better device, too.
pub fn choose_journal_mirror(devices: [(&JournalSuperblock, &ScanOutcome); 2]) -> Result<usize, JournalError> {
    let [(one, found_one), (other, found_other)] = devices;
    if one.journal != other.journal || one.controller != other.controller {
        return Err(JournalError::NotMirrors { one: one.journal, other: other.journal });
    }
    if one.mirrors == 1 && other.mirrors == 1 {
        return Err(JournalError::BothAlone);
    }
    // If the other device was dropped, the remaining device says that it is copy 0 of one.
    if one.mirror == other.mirror && one.mirrors == other.mirrors {
        return Err(JournalError::SameMirror(one.mirror));
    }
    let rank = |(superblock, found): (&JournalSuperblock, &ScanOutcome)| {
        (superblock.epoch, superblock.mirrors == 1, found.head.sequence, superblock.generation)
    };
    let best = usize::from(rank(devices[1]) > rank(devices[0]));
    let promised = found_one.promised.max(found_other.promised);
    devices[best].1.verdict_with(promised)?;
    Ok(best)
}
