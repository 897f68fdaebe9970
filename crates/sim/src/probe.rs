//! A driver's reads from a drive before the array exists: superblock, bitmap, bad-block log.
//!
//! The code is pure except for the reads, which the caller carries out. So the same steps serve a drive in memory and a
//! real drive. All reads start and end at multiples of 4 KiB, except at the end of the drive, so they suit every block
//! size. The input is not trusted: undecodable bytes give an error, and the room in the superblock limits the reads.

use openraid_core::array::assemble::{Candidate, PplArea};
use openraid_core::array::BadRange;
use openraid_format::{
    scan_ppl, superblock_lba, BadBlockError, BadBlockTable, BitmapHeader, FeatureMap, MinorVersion, Superblock,
    SuperblockError, BITMAP_HEADER_BYTES, PPL_HEADER_SECTORS, SUPERBLOCK_BYTES_MAX,
};
use openraid_units::{DriveId, DriveLba, MemberLba, Sectors};

/// Reads start and end on multiples of this.
const ALIGN: Sectors = Sectors::kib(4);
/// The largest bitmap that is read: 2^32 bits, more than the room before the data of any member.
const BITMAP_READ_MAX: Sectors = Sectors::mib(512);

/// The reason for which a drive gives no candidate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CandidateError<E> {
    /// The drive has no superblock at any of its places.
    NotAMember,
    /// The drive has an invalid superblock.
    Superblock(MinorVersion, SuperblockError),
    /// The bad-block log is invalid.
    BadBlocks(BadBlockError),
    /// The drive could not be read.
    Read(E),
}

impl<E: std::fmt::Display> std::fmt::Display for CandidateError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAMember => write!(f, "no md superblock: this drive belongs to no array"),
            Self::Superblock(minor, error) => write!(f, "superblock {minor}: {error}"),
            Self::BadBlocks(error) => write!(f, "bad-block log: {error}"),
            Self::Read(error) => write!(f, "the metadata cannot be read: {error}"),
        }
    }
}

/// Read a drive's description of its array.
///
/// `read` fills the buffer from a sector on. Both are multiples of 4 KiB except at the end of the drive.
///
/// # Errors
/// See [`CandidateError`]. A bitmap that cannot be read or decoded is not an error: the array works without it.
pub fn probe<E>(
    drive: DriveId,
    capacity: Sectors,
    mut read: impl FnMut(DriveLba, &mut [u8]) -> Result<(), E>,
) -> Result<Candidate, CandidateError<E>> {
    let superblock = find_superblock(capacity, &mut read)?;
    let bitmap = read_bitmap(&superblock, capacity, &mut read);
    let bad = read_bad_blocks(&superblock, capacity, &mut read)?;
    let ppl = read_ppl(&superblock, capacity, &mut read);
    Ok(Candidate { drive, capacity, superblock, bitmap, bad, ppl })
}

fn read_ppl<E>(
    superblock: &Superblock,
    capacity: Sectors,
    read: &mut impl FnMut(DriveLba, &mut [u8]) -> Result<(), E>,
) -> Option<PplArea> {
    let (lba, area) = superblock.ppl_area()?;
    let found = scan_ppl(area, superblock.set_uuid, |at, header| {
        let bytes = read_range(lba + at, PPL_HEADER_SECTORS, capacity, read)?;
        header[..bytes.len()].copy_from_slice(&bytes);
        Ok::<(), E>(())
    });
    Some(match found {
        Ok(Some(log)) => PplArea::Log(Box::new(log)),
        Ok(None) => PplArea::Nothing,
        Err(_) => PplArea::Unreadable,
    })
}

fn find_superblock<E>(
    capacity: Sectors,
    read: &mut impl FnMut(DriveLba, &mut [u8]) -> Result<(), E>,
) -> Result<Superblock, CandidateError<E>> {
    let mut wrong = CandidateError::NotAMember;
    for minor in MinorVersion::ALL {
        let Some(lba) = superblock_lba(minor, capacity) else { continue };
        let bytes = read_range(lba, Sectors((SUPERBLOCK_BYTES_MAX / 512) as u64), capacity, read);
        let bytes = bytes.map_err(CandidateError::Read)?;
        match Superblock::decode(&bytes, minor, capacity) {
            Ok(superblock) => return Ok(superblock),
            Err(SuperblockError::NoMagic(_)) => {}
            Err(error) if matches!(wrong, CandidateError::NotAMember) => {
                wrong = CandidateError::Superblock(minor, error)
            }
            Err(_) => {}
        }
    }
    Err(wrong)
}

/// `len` sectors from `lba` on, or fewer at the end of the drive.
fn read_range<E>(
    lba: DriveLba,
    len: Sectors,
    capacity: Sectors,
    read: &mut impl FnMut(DriveLba, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let start = lba.offset().round_down(ALIGN);
    let end = (lba.offset() + len).get().next_multiple_of(ALIGN.get()).min(capacity.get());
    let mut bytes = vec![0; byte_count(Sectors(end).saturating_sub(start))];
    read(DriveLba(start.get()), &mut bytes)?;
    bytes.drain(..byte_count(lba.offset() - start).min(bytes.len()));
    bytes.truncate(byte_count(len));
    Ok(bytes)
}

fn read_bitmap<E>(
    superblock: &Superblock,
    capacity: Sectors,
    read: &mut impl FnMut(DriveLba, &mut [u8]) -> Result<(), E>,
) -> Option<Vec<u8>> {
    let (lba, room) = superblock.bitmap_room(capacity)?;
    let header = Sectors((BITMAP_HEADER_BYTES / 512 + 1) as u64);
    if room < header {
        return None;
    }
    let bytes = read_range(lba, header, capacity, read).ok()?;
    let need = BitmapHeader::decode(&bytes).ok()?.geometry().sectors();
    if need > room || need > BITMAP_READ_MAX {
        return None;
    }
    read_range(lba, need, capacity, read).ok()
}

fn read_bad_blocks<E>(
    superblock: &Superblock,
    capacity: Sectors,
    read: &mut impl FnMut(DriveLba, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<BadRange>, CandidateError<E>> {
    // An area without entries keeps its bytes, which have no meaning.
    let Some(log) = superblock.bad_block_log().filter(|_| superblock.features.contains(FeatureMap::BAD_BLOCKS)) else {
        return Ok(Vec::new());
    };
    let Some(lba) = superblock.place(log.offset) else { return Ok(Vec::new()) };
    let bytes = read_range(lba, Sectors(u64::from(log.size)), capacity, read).map_err(CandidateError::Read)?;
    let table = BadBlockTable::decode(&bytes, log.shift, capacity).map_err(CandidateError::BadBlocks)?;
    // The log counts from the start of the drive, the engine from the start of the data area.
    let in_data = table.ranges().iter().filter(|range| range.start >= superblock.data_offset);
    Ok(in_data
        .map(|range| BadRange { at: MemberLba((range.start - superblock.data_offset).get()), len: range.len })
        .collect())
}

#[allow(clippy::cast_possible_truncation)] // metadata fit into memory
fn byte_count(len: Sectors) -> usize {
    len.bytes().get() as usize
}
