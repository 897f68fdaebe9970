//! The content of a member: superblock, bitmap, bad-block log, and signatures of other software. Never writes.
//!
//! The probe trusts nothing. A part that does not decode is a typed error next to the parts that did. A read is limited
//! to the room that the superblock leaves. The same steps serve a drive and a span of a nested array.

use std::fmt;

use openraid_core::array::assemble::{Candidate, PplArea};
use openraid_core::array::BadRange;
use openraid_core::events::DriveInfo;
use openraid_format::{
    md0_lba, scan_ppl, superblock_lba, BadBlockError, BadBlockTable, BitmapError, BitmapHeader, FeatureMap,
    LocklessHeader, Md0Error, MinorVersion, Superblock, SuperblockError, BITMAP_HEADER_BYTES, PPL_HEADER_SECTORS,
    SUPERBLOCK_BYTES_MAX,
};
use openraid_units::{Bytes, DriveId, DriveLba, MemberLba, Sectors};

use super::foreign_signatures::{self, Foreign};
use super::open::OpenedMember;
use super::DeviceNames;
use super::MemberSpec;

/// Reads start and end on multiples of this, except at the end of the drive.
pub(super) const ALIGN: Sectors = Sectors::kib(4);
/// The largest bitmap that is read; md's own tools make no larger one.
const BITMAP_READ_MAX: Sectors = Sectors::mib(64);

/// Why a member cannot be probed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProbeError {
    /// It cannot be read.
    Unreadable {
        lba: DriveLba,
        /// The reason in words.
        why: String,
    },
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { lba, why } => write!(f, "sector {} cannot be read: {why}", lba.get()),
        }
    }
}
impl std::error::Error for ProbeError {}

/// The content of a drive.
#[derive(Clone, Debug)]
pub struct Look {
    /// The superblock, from the first place with a good one.
    pub superblock: Option<Superblock>,
    /// A superblock that is damaged, if there is no good one.
    pub superblock_error: Option<(MinorVersion, SuperblockError)>,
    /// The bitmap area, header and bits.
    pub bitmap: Option<Vec<u8>>,
    /// The superblock names a bitmap that is damaged: the array does not use it.
    pub bitmap_error: Option<BitmapError>,
    /// Entries of the bad-block log, in sectors of the data area.
    pub bad: Vec<BadRange>,
    /// The log is damaged.
    pub bad_blocks_error: Option<BadBlockError>,
    /// The content of the partial parity log's place, as the superblock names it.
    pub ppl: Option<PplArea>,
    /// Signatures of other software, md's own superblocks, and data without a name.
    pub foreign: Foreign,
}

impl Look {
    /// No metadata of md, and these findings.
    #[must_use]
    pub const fn of(foreign: Foreign) -> Self {
        Self {
            superblock: None,
            superblock_error: None,
            bitmap: None,
            bitmap_error: None,
            bad: Vec::new(),
            bad_blocks_error: None,
            ppl: None,
            foreign,
        }
    }
}

/// A member that was probed.
#[derive(Clone, Debug)]
pub struct ProbedMember {
    pub spec: MemberSpec,
    /// The engine's facts about the drive.
    pub info: DriveInfo,
    /// The kernel's names for the drive.
    pub names: DeviceNames,
    /// Notes about fallbacks when it was opened.
    pub notes: Vec<String>,
    /// Its content.
    pub look: Look,
}

impl ProbedMember {
    /// The member as a candidate for its array; `None` without a good superblock.
    #[must_use]
    pub fn candidate(&self, drive: DriveId) -> Option<Candidate> {
        self.look.candidate(drive, self.info.capacity)
    }
}

impl Look {
    /// Is there nothing at the ends of the drive, and no metadata?
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        self.superblock.is_none() && self.superblock_error.is_none() && self.foreign.data_at.is_none()
    }

    /// As a candidate for its array; `None` without a good superblock.
    #[must_use]
    pub fn candidate(&self, drive: DriveId, capacity: Sectors) -> Option<Candidate> {
        let superblock = self.superblock.clone()?;
        let (bitmap, bad, ppl) = (self.bitmap.clone(), self.bad.clone(), self.ppl.clone());
        Some(Candidate { drive, capacity, superblock, bitmap, bad, ppl })
    }
}

/// Probe an open member.
///
/// # Errors
/// It cannot be read where a superblock would be.
pub fn probe(member: &mut OpenedMember) -> Result<ProbedMember, ProbeError> {
    let capacity = member.info.capacity;
    let found = look(capacity, &mut |lba, into| member.read_at(lba, into))?;
    if let Some(superblock) = &found.superblock {
        member.know_as(superblock);
    }
    let (spec, names, notes) = (member.spec.clone(), member.medium.names(), member.notes.clone());
    Ok(ProbedMember { spec, info: member.info, names, notes, look: found })
}

/// Read the superblock of version 0.90, if the member has one and no other. The caller must not write to the member.
///
/// # Errors
/// The superblock cannot be used.
pub fn probe_md0(member: &mut OpenedMember, probed: &mut ProbedMember) -> Result<(), Md0Error> {
    let Some(lba) = md0_lba(probed.info.capacity).filter(|_| probed.look.superblock.is_none()) else { return Ok(()) };
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    if member.read_at(lba, &mut bytes).is_err() {
        return Ok(());
    }
    match Superblock::decode_md0(&bytes, probed.info.capacity) {
        Ok(superblock) => {
            (probed.look.superblock, probed.look.superblock_error) = (Some(superblock), None);
            Ok(())
        }
        Err(Md0Error::NoMagic) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads whole sectors from a place.
pub type SectorReader<'a> = dyn FnMut(DriveLba, &mut [u8]) -> Result<(), ProbeError> + 'a;

/// Probe all readable parts.
///
/// # Errors
/// It cannot be read where a superblock would be.
pub fn look(capacity: Sectors, read: &mut SectorReader<'_>) -> Result<Look, ProbeError> {
    let mut found = Look::of(foreign_signatures::look(capacity, read)?);
    for minor in MinorVersion::ALL {
        let Some(lba) = superblock_lba(minor, capacity) else { continue };
        let bytes = read_range(lba, Sectors((SUPERBLOCK_BYTES_MAX / 512) as u64), capacity, read)?;
        match Superblock::decode(&bytes, minor, capacity) {
            Ok(superblock) => {
                found.superblock = Some(superblock);
                break;
            }
            Err(SuperblockError::NoMagic(_)) => {}
            Err(error) => {
                found.superblock_error.get_or_insert((minor, error));
            }
        }
    }
    if let Some(superblock) = found.superblock.clone() {
        found.superblock_error = None;
        read_bitmap(&superblock, capacity, read, &mut found)?;
        read_bad_blocks(&superblock, capacity, read, &mut found)?;
        found.ppl = read_ppl(&superblock, capacity, read);
    }
    Ok(found)
}

/// A log that cannot be read is not an error here: the assembly decides what it means for the array.
fn read_ppl(superblock: &Superblock, capacity: Sectors, read: &mut SectorReader<'_>) -> Option<PplArea> {
    let (lba, area) = superblock.ppl_area()?;
    let found = scan_ppl(area, superblock.set_uuid, |at, header| {
        let bytes = read_range(lba + at, PPL_HEADER_SECTORS, capacity, read)?;
        header[..bytes.len()].copy_from_slice(&bytes);
        Ok::<(), ProbeError>(())
    });
    Some(match found {
        Ok(Some(log)) => PplArea::Log(Box::new(log)),
        Ok(None) => PplArea::Nothing,
        Err(_) => PplArea::Unreadable,
    })
}

/// `len` sectors from `lba` on, or fewer at the end of the drive.
pub(super) fn read_range(
    lba: DriveLba,
    len: Sectors,
    capacity: Sectors,
    read: &mut SectorReader<'_>,
) -> Result<Vec<u8>, ProbeError> {
    let start = lba.offset().round_down(ALIGN);
    let end = (lba.offset() + len).get().next_multiple_of(ALIGN.get()).min(capacity.get());
    let mut bytes = vec![0; index(Sectors(end).saturating_sub(start).bytes())];
    if !bytes.is_empty() {
        read(DriveLba(start.get()), &mut bytes)?;
    }
    bytes.drain(..index((lba.offset() - start).bytes()).min(bytes.len()));
    bytes.truncate(index(len.bytes()));
    Ok(bytes)
}

fn read_bitmap(
    superblock: &Superblock,
    capacity: Sectors,
    read: &mut SectorReader<'_>,
    found: &mut Look,
) -> Result<(), ProbeError> {
    let Some((lba, room)) = superblock.bitmap_room(capacity) else { return Ok(()) };
    let header = Sectors((BITMAP_HEADER_BYTES / 512 + 1) as u64);
    let bytes = read_range(lba, header.min(room), capacity, read)?;
    let decoded = BitmapHeader::decode(&bytes);
    let checked = decoded.and_then(|mut bitmap| {
        let covers = openraid_format::sync_size(superblock).unwrap_or(bitmap.sync_size);
        // A bitmap is made larger before a change of shape, which may be taken back.
        bitmap.sync_size = bitmap.sync_size.min(covers);
        bitmap.check(superblock, covers, room).map(|()| bitmap)
    });
    match checked {
        Ok(bitmap) if bitmap.geometry().sectors() <= room.min(BITMAP_READ_MAX) => {
            found.bitmap = Some(read_range(lba, bitmap.geometry().sectors(), capacity, read)?);
        }
        Ok(_) => {}
        Err(error) => {
            found.bitmap_error = Some(error);
            // The engine must see that there is one that it does not know.
            if error.is_other_kind() {
                let len = LocklessHeader::decode(&bytes).map_or(header, |header| header.bytes().sectors_ceil());
                found.bitmap = Some(read_range(lba, len.min(room).min(BITMAP_READ_MAX), capacity, read)?);
            }
        }
    }
    Ok(())
}

fn read_bad_blocks(
    superblock: &Superblock,
    capacity: Sectors,
    read: &mut SectorReader<'_>,
    found: &mut Look,
) -> Result<(), ProbeError> {
    // An area without entries is left as it was found: its bytes have no meaning.
    let log = superblock.bad_block_log().filter(|_| superblock.features.contains(FeatureMap::BAD_BLOCKS));
    let Some((log, lba)) = log.and_then(|log| Some((log, superblock.place(log.offset)?))) else { return Ok(()) };
    let bytes = read_range(lba, Sectors(u64::from(log.size)), capacity, read)?;
    match BadBlockTable::decode(&bytes, log.shift, capacity) {
        Ok(table) => {
            // The log counts from the start of the drive; the core counts from the start of the data area.
            let in_data = table.ranges().iter().filter(|range| range.start >= superblock.data_offset);
            let shift = |range: &openraid_format::BadBlockRange| BadRange {
                at: MemberLba((range.start - superblock.data_offset).get()),
                len: range.len,
            };
            found.bad = in_data.map(shift).collect();
        }
        Err(error) => found.bad_blocks_error = Some(error),
    }
    Ok(())
}

fn index(bytes: Bytes) -> usize {
    usize::try_from(bytes.get()).expect("metadata fit into memory")
}
