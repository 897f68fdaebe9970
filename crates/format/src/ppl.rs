//! The partial parity log of RAID 5: for each stripe being written, the parity of the columns that the write leaves
//! alone, so that a stripe can be repaired after a crash during the write.
//!
//! ```text
//!  header, 4096 bytes
//!    0     512 bytes of ff
//!  512     signature u32          CRC-32C of the set's UUID
//!  516     zero u32
//!  520     generation u64         grows with every log written; if several logs stand, the highest counts
//!  528     entries u32            at most 148
//!  532     checksum u32           CRC-32C of the 4096 bytes with this field zero
//!  536     entries, 24 bytes each
//!            0  data_sector u64   first array sector of the write
//!            8  pp_size u32       bytes of partial parity, 0 for a full stripe
//!           12  data_size u32     bytes of data
//!           16  parity_disk u32   slot that holds the parity of the stripe
//!           20  checksum u32      CRC-32C of the partial parity
//!  then the partial parity of all entries, in their order
//! ```
//!
//! An area may hold several logs one after the other; the one with the highest generation counts ([`scan_ppl`]).
//! Recovery is elsewhere. The log of a set that was not stopped cleanly must never be skipped.
//!
//! Source: kernel `Documentation/driver-api/md/raid5-ppl.rst`, checked against images made by Linux 6.1.

use crate::crc32c;
use crate::identity::Uuid;
use crate::little_endian;
use core::fmt;
use openraid_units::{Sectors, SetLba, SECTOR_BYTES};

/// Number of bytes of a header.
pub const PPL_HEADER_BYTES: usize = 4096;
/// Number of sectors of a header.
pub const PPL_HEADER_SECTORS: Sectors = Sectors::kib(4);
/// Sectors that a new array reserves for the area, as mdadm does.
pub const PPL_AREA: Sectors = Sectors::mib(1);
/// Maximum partial parity of one log, if the area has room for more; md has the same limit.
pub const PPL_PAYLOAD_MAX: Sectors = Sectors::kib(128);
/// Maximum number of entries in a header.
pub const PPL_ENTRIES_MAX: usize = (PPL_HEADER_BYTES - at::ENTRIES) / ENTRY_BYTES;

const ENTRY_BYTES: usize = 24;
const _: () = assert!(PPL_ENTRIES_MAX == 148);

mod at {
    pub const SIGNATURE: usize = 512;
    pub const ZERO: usize = 516;
    pub const GENERATION: usize = 520;
    pub const COUNT: usize = 528;
    pub const CHECKSUM: usize = 532;
    pub const ENTRIES: usize = 536;
    pub const DATA_SECTOR: usize = 0;
    pub const PP_SIZE: usize = 8;
    pub const DATA_SIZE: usize = 12;
    pub const PARITY_DISK: usize = 16;
    pub const PP_CHECKSUM: usize = 20;
}

/// One write that the log covers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PplEntry {
    /// First array sector of the write.
    pub data_sector: SetLba,
    /// Bytes of partial parity after the header; 0 for writes of whole stripes.
    pub pp_size: u32,
    /// Bytes of data.
    pub data_size: u32,
    /// Slot that holds the parity.
    pub parity_disk: u32,
    /// CRC-32C of the partial parity.
    pub checksum: u32,
}

/// The header of a partial parity log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PplHeader {
    /// CRC-32C of the set's UUID, see [`ppl_signature`].
    pub signature: u32,
    /// Grows with every log written.
    pub generation: u64,
    entries: [PplEntry; PPL_ENTRIES_MAX],
    len: usize,
}

/// The reason why a partial parity log cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PplError {
    /// There are fewer bytes than a header has.
    Truncated(usize),
    /// The checksum does not match: the log was never written, or not completely.
    Checksum {
        /// The value in the header.
        stored: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// There are more entries than fit.
    TooManyEntries(u32),
    /// The log belongs to another set; its signature.
    OtherSet(u32),
    /// Bytes that md fills with a fixed value have another value.
    UnknownContent,
}

impl fmt::Display for PplError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated(have) => {
                write!(
                    f,
                    "the partial parity log is cut off: {have} bytes could be read, its header has {PPL_HEADER_BYTES}"
                )
            }
            Self::Checksum { stored, computed } => {
                write!(f, "no valid partial parity log: its checksum is {stored:08x}, its bytes give {computed:08x}")
            }
            Self::TooManyEntries(count) => {
                write!(f, "damaged partial parity log: {count} entries, at most {PPL_ENTRIES_MAX} are possible")
            }
            Self::OtherSet(signature) => write!(f, "the partial parity log belongs to another array ({signature:08x})"),
            Self::UnknownContent => f.write_str("the partial parity log has content that is not known here"),
        }
    }
}
impl core::error::Error for PplError {}

/// The signature that the logs of a set have.
#[must_use]
pub fn ppl_signature(set_uuid: Uuid) -> u32 {
    !crc32c::update(!0, &set_uuid.0)
}

impl PplHeader {
    /// A log without entries.
    #[must_use]
    pub fn new(set_uuid: Uuid, generation: u64) -> Self {
        let none = PplEntry { data_sector: SetLba(0), pp_size: 0, data_size: 0, parity_disk: 0, checksum: 0 };
        Self { signature: ppl_signature(set_uuid), generation, entries: [none; PPL_ENTRIES_MAX], len: 0 }
    }

    /// The entries in order.
    #[must_use]
    pub fn entries(&self) -> &[PplEntry] {
        &self.entries[..self.len]
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The entry itself, if the header already has [`PPL_ENTRIES_MAX`] entries.
    pub fn push(&mut self, entry: PplEntry) -> Result<(), PplEntry> {
        let slot = self.entries.get_mut(self.len).ok_or(entry)?;
        *slot = entry;
        self.len += 1;
        Ok(())
    }

    /// Decodes the header of a log of this set.
    ///
    /// # Errors
    /// The first fault; see [`PplError`].
    pub fn decode(bytes: &[u8], set_uuid: Uuid) -> Result<Self, PplError> {
        let bytes: &[u8; PPL_HEADER_BYTES] = bytes.first_chunk().ok_or(PplError::Truncated(bytes.len()))?;
        let stored = little_endian::u32_at(bytes, at::CHECKSUM);
        let computed = checksum(bytes);
        if stored != computed {
            return Err(PplError::Checksum { stored, computed });
        }
        let signature = little_endian::u32_at(bytes, at::SIGNATURE);
        if signature != ppl_signature(set_uuid) {
            return Err(PplError::OtherSet(signature));
        }
        let count = little_endian::u32_at(bytes, at::COUNT);
        let len = usize::try_from(count).unwrap_or(usize::MAX);
        if len > PPL_ENTRIES_MAX {
            return Err(PplError::TooManyEntries(count));
        }
        let fixed =
            bytes[..at::SIGNATURE].iter().all(|&byte| byte == 0xff) && little_endian::u32_at(bytes, at::ZERO) == 0;
        if !fixed {
            return Err(PplError::UnknownContent);
        }
        let mut header = Self::new(set_uuid, little_endian::u64_at(bytes, at::GENERATION));
        for entry in bytes[at::ENTRIES..].chunks_exact(ENTRY_BYTES).take(len) {
            header.entries[header.len] = PplEntry {
                data_sector: SetLba(little_endian::u64_at(entry, at::DATA_SECTOR)),
                pp_size: little_endian::u32_at(entry, at::PP_SIZE),
                data_size: little_endian::u32_at(entry, at::DATA_SIZE),
                parity_disk: little_endian::u32_at(entry, at::PARITY_DISK),
                checksum: little_endian::u32_at(entry, at::PP_CHECKSUM),
            };
            header.len += 1;
        }
        Ok(header)
    }

    /// Encodes the header with its checksum. Bytes after the last entry are zero.
    ///
    /// # Panics
    /// `out` is shorter than [`PPL_HEADER_BYTES`].
    pub fn encode(&self, out: &mut [u8]) {
        let out: &mut [u8; PPL_HEADER_BYTES] = out.first_chunk_mut().expect("room for a whole header");
        let count = u32::try_from(self.len).expect("at most 148 entries");
        out.fill(0);
        out[..at::SIGNATURE].fill(0xff);
        little_endian::put(out, at::SIGNATURE, &self.signature.to_le_bytes());
        little_endian::put(out, at::GENERATION, &self.generation.to_le_bytes());
        little_endian::put(out, at::COUNT, &count.to_le_bytes());
        for (slot, entry) in out[at::ENTRIES..].chunks_exact_mut(ENTRY_BYTES).zip(self.entries()) {
            little_endian::put(slot, at::DATA_SECTOR, &entry.data_sector.0.to_le_bytes());
            little_endian::put(slot, at::PP_SIZE, &entry.pp_size.to_le_bytes());
            little_endian::put(slot, at::DATA_SIZE, &entry.data_size.to_le_bytes());
            little_endian::put(slot, at::PARITY_DISK, &entry.parity_disk.to_le_bytes());
            little_endian::put(slot, at::PP_CHECKSUM, &entry.checksum.to_le_bytes());
        }
        let checksum = checksum(out);
        little_endian::put(out, at::CHECKSUM, &checksum.to_le_bytes());
    }
}

/// The newest log in an area, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PplLog {
    /// Sectors from the start of the area to the header. The partial parity follows the header.
    pub at: Sectors,
    /// Its header.
    pub header: PplHeader,
}

/// Finds the newest log in an area of `area` sectors. The logs follow each other from the start of the area. The newest
/// one is the last log of the series with rising generations. `None` if there is no log at the start.
///
/// # Errors
/// The error of `read`, which fills a header from this many sectors after the start of the area.
pub fn scan_ppl<E>(
    area: Sectors,
    set_uuid: Uuid,
    mut read: impl FnMut(Sectors, &mut [u8; PPL_HEADER_BYTES]) -> Result<(), E>,
) -> Result<Option<PplLog>, E> {
    let mut bytes = [0; PPL_HEADER_BYTES];
    let mut newest: Option<PplLog> = None;
    let mut at = Sectors::ZERO;
    while at + PPL_HEADER_SECTORS < area {
        read(at, &mut bytes)?;
        let Ok(header) = PplHeader::decode(&bytes, set_uuid) else { break };
        if newest.as_ref().is_some_and(|log| log.header.generation > header.generation) {
            break;
        }
        let payload: u64 = header.entries().iter().map(|entry| u64::from(entry.pp_size) / SECTOR_BYTES).sum();
        newest = Some(PplLog { at, header });
        at = at + PPL_HEADER_SECTORS + Sectors(payload);
    }
    Ok(newest)
}

fn checksum(bytes: &[u8; PPL_HEADER_BYTES]) -> u32 {
    let before = crc32c::update(!0, &bytes[..at::CHECKSUM]);
    let field = crc32c::update(before, &[0; 4]);
    !crc32c::update(field, &bytes[at::ENTRIES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_after_the_last_of_rising_generation_does_not_count() {
        let uuid = Uuid([3; 16]);
        let log = |generation: u64, sizes: &[u32]| {
            let mut header = PplHeader::new(uuid, generation);
            for size in sizes {
                header.push(PplEntry { pp_size: *size, ..PplEntry::default() }).unwrap();
            }
            header
        };
        // Generations 7 and 8 from the start, then a log of an earlier lap.
        let logs = [(0, log(7, &[4096, 512])), (17, log(8, &[0])), (25, log(3, &[]))];
        let read = |at: Sectors, bytes: &mut [u8; PPL_HEADER_BYTES]| {
            bytes.fill(0);
            if let Some((_, header)) = logs.iter().find(|(place, _)| *place == at.get()) {
                header.encode(bytes);
            }
            Ok::<(), ()>(())
        };
        let found = scan_ppl(PPL_AREA, uuid, read).unwrap().unwrap();
        assert_eq!((found.at, found.header), (Sectors(17), log(8, &[0])));
        // An area that ends before the second log, another set, and an area that cannot be read.
        assert_eq!(scan_ppl(Sectors(25), uuid, read).unwrap().map(|log| log.at), Some(Sectors(0)));
        assert_eq!(scan_ppl(PPL_AREA, Uuid([4; 16]), read), Ok(None));
        assert_eq!(scan_ppl(PPL_AREA, uuid, |_, _| Err(5)), Err(5));
    }

    #[test]
    fn a_header_comes_back_with_all_its_entries() {
        let uuid = Uuid([3; 16]);
        let mut header = PplHeader::new(uuid, 9);
        for index in 0..148 {
            header.push(PplEntry { data_sector: SetLba(index), pp_size: 512, ..PplEntry::default() }).unwrap();
        }
        assert!(header.push(PplEntry::default()).is_err());
        let mut bytes = [0; PPL_HEADER_BYTES];
        header.encode(&mut bytes);
        assert_eq!(PplHeader::decode(&bytes, uuid), Ok(header));
        assert!(matches!(PplHeader::decode(&bytes, Uuid([4; 16])), Err(PplError::OtherSet(_))));
        bytes[4095] ^= 1;
        assert!(matches!(PplHeader::decode(&bytes, uuid), Err(PplError::Checksum { .. })));
        assert_eq!(PplHeader::decode(&bytes[1..], uuid), Err(PplError::Truncated(4095)));
    }
}
