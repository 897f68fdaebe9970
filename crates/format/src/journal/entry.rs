//! The header of an entry: one group commit.
//!
//! ```text
//!    0  magic "ORAIDJEN"     8  version      12  checksum      16  journal uuid
//!   32  sequence            40  epoch        48  position      56  promised
//!   64  tail_sequence       72  tail_position
//!   80  payload_sectors     84  payload_crc  88  kind          90  record count     92  zero
//!  256  120 records of 32 bytes, the unused ones zero
//! ```
//!
//! The header is at a multiple of [`JOURNAL_ALIGN`](super::JOURNAL_ALIGN) of the ring. Its payload follows, and the
//! next header is at the next multiple. A header must not be used before its checksum was verified: it is larger than a
//! drive's atomic write.

use super::error::EntryFault;
use super::record::{JournalRecord, RECORD_BYTES};
use super::ring::{entry_sectors, JournalRing, LogPlace, RingSector};
use super::{JOURNAL_ALIGN, JOURNAL_BLOCK_BYTES, JOURNAL_NUMBER_END, JOURNAL_PAYLOAD_MAX, JOURNAL_RECORDS_MAX};
use super::{JOURNAL_RECORDS_MAX as RECORDS, JOURNAL_VERSION};
use crate::crc32c;
use crate::identity::Uuid;
use crate::little_endian;
use openraid_units::Sectors;

const MAGIC: [u8; 8] = *b"ORAIDJEN";
const KIND_COMMIT: u8 = 1;
const KIND_WRAP: u8 = 2;

mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const CHECKSUM: usize = 12;
    pub const JOURNAL: usize = 16;
    pub const SEQUENCE: usize = 32;
    pub const EPOCH: usize = 40;
    pub const POSITION: usize = 48;
    pub const PROMISED: usize = 56;
    pub const TAIL_SEQUENCE: usize = 64;
    pub const TAIL_POSITION: usize = 72;
    pub const PAYLOAD_SECTORS: usize = 80;
    pub const PAYLOAD_CRC: usize = 84;
    pub const KIND: usize = 88;
    pub const PAD_89: usize = 89;
    pub const COUNT: usize = 90;
    pub const PAD_92: usize = 92;
    pub const RECORDS: usize = 256;
}
const _: () = assert!(at::RECORDS + RECORDS * RECORD_BYTES == JOURNAL_BLOCK_BYTES);

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EntryKind {
    /// A group commit.
    Commit,
    /// A filler up to the end of the ring; the next entry is at the start of the ring.
    Wrap,
}

/// The fixed part of an entry's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryHeader {
    /// Number of the entry, one higher than that of the entry before.
    pub sequence: u64,
    /// The writer's epoch, see [`JournalSuperblock::epoch`](super::JournalSuperblock::epoch).
    pub epoch: u64,
    /// Position of this header.
    pub position: RingSector,
    /// Every entry up to this number was durable when this header was encoded, so its writes may have been
    /// acknowledged. Less than `sequence`.
    pub promised: u64,
    /// The oldest entry that was still needed when this header was encoded. If no older entry was needed, this entry
    /// itself.
    pub tail: LogPlace,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// Length of the payload. The bytes between its end and the next header have no meaning.
    pub payload: Sectors,
    /// CRC-32C of the payload; 0 without a payload.
    pub payload_crc: u32,
}

/// The header of an entry and its records, all checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalEntry<'a> {
    /// The fixed part.
    pub header: EntryHeader,
    records: &'a [[u8; RECORD_BYTES]],
}

/// The fields that identify an entry. They keep their places in every later version.
pub(super) struct Envelope<'a> {
    bytes: &'a [u8; JOURNAL_BLOCK_BYTES],
    pub version: u32,
    pub sequence: u64,
    pub epoch: u64,
}

impl EntryHeader {
    /// Sectors from this header to the next one.
    #[must_use]
    pub const fn sectors(&self, ring: &JournalRing) -> Sectors {
        match self.kind {
            EntryKind::Commit => entry_sectors(self.payload),
            EntryKind::Wrap => ring.to_end(self.position),
        }
    }

    /// Position of the next header.
    #[must_use]
    pub const fn next(&self, ring: &JournalRing) -> LogPlace {
        LogPlace { sequence: self.sequence + 1, position: ring.behind(self.position, self.sectors(ring)) }
    }

    /// Position of the payload; `None` without a payload.
    #[must_use]
    pub const fn payload_at(&self) -> Option<RingSector> {
        if self.payload.is_zero() {
            None
        } else {
            Some(RingSector(self.position.0 + JOURNAL_ALIGN.0))
        }
    }

    /// Encodes the header with its records and its checksum.
    ///
    /// # Panics
    /// As [`EntryHeader::encode_over`].
    pub fn encode(&self, ring: &JournalRing, records: &[JournalRecord], out: &mut [u8]) {
        out[..JOURNAL_BLOCK_BYTES].fill(0);
        self.encode_over(ring, records, out);
    }

    /// As [`EntryHeader::encode`], but `out` must be zero or hold a header that this function wrote. Bytes that are
    /// known to be zero are not written again.
    ///
    /// # Panics
    /// `out` is shorter than [`JOURNAL_BLOCK_BYTES`], or decoding would refuse the header and records. The panic finds
    /// such a bug before the bytes are on disk.
    pub fn encode_over(&self, ring: &JournalRing, records: &[JournalRecord], out: &mut [u8]) {
        assert!(records.len() <= JOURNAL_RECORDS_MAX, "the group commit has too many records");
        self.check(ring, records.len()).unwrap_or_else(|fault| panic!("journal entry {}: {fault}", self.sequence));
        let out: &mut [u8; JOURNAL_BLOCK_BYTES] = out.first_chunk_mut().expect("room for a whole header");
        let count = u16::try_from(records.len()).expect("at most 120 records");
        let payload = u32::try_from(self.payload.get()).expect("at most 1 MiB");
        let kind = match self.kind {
            EntryKind::Commit => KIND_COMMIT,
            EntryKind::Wrap => KIND_WRAP,
        };
        let before = usize::from(little_endian::u16_at(out, at::COUNT));
        little_endian::put(out, at::MAGIC, &MAGIC);
        little_endian::put(out, at::VERSION, &JOURNAL_VERSION.to_le_bytes());
        little_endian::put(out, at::JOURNAL, &ring.journal.0);
        little_endian::put(out, at::SEQUENCE, &self.sequence.to_le_bytes());
        little_endian::put(out, at::EPOCH, &self.epoch.to_le_bytes());
        little_endian::put(out, at::POSITION, &self.position.0.to_le_bytes());
        little_endian::put(out, at::PROMISED, &self.promised.to_le_bytes());
        little_endian::put(out, at::TAIL_SEQUENCE, &self.tail.sequence.to_le_bytes());
        little_endian::put(out, at::TAIL_POSITION, &self.tail.position.0.to_le_bytes());
        little_endian::put(out, at::PAYLOAD_SECTORS, &payload.to_le_bytes());
        little_endian::put(out, at::KIND, &[kind]);
        little_endian::put(out, at::COUNT, &count.to_le_bytes());
        let (slots, _) = out[at::RECORDS..].as_chunks_mut::<RECORD_BYTES>();
        let log = ring.distance(self.tail.position, self.position);
        for (index, (slot, record)) in slots.iter_mut().zip(records).enumerate() {
            self.check_record(ring, log, record, index)
                .unwrap_or_else(|fault| panic!("journal entry {}: {fault}", self.sequence));
            record.encode(slot);
        }
        if let Some(left) = slots.get_mut(records.len()..before) {
            left.as_flattened_mut().fill(0);
        }
        little_endian::put(out, at::PAYLOAD_CRC, &self.payload_crc.to_le_bytes());
        let checksum = checksum_without(out, records.len());
        little_endian::put(out, at::CHECKSUM, &checksum.to_le_bytes());
    }

    /// Sets the checksum of the payload in a header that was encoded before the payload was known, and computes the
    /// checksum of the header again.
    ///
    /// # Panics
    /// `out` is shorter than [`JOURNAL_BLOCK_BYTES`].
    pub fn seal(out: &mut [u8], payload_crc: u32) {
        let out: &mut [u8; JOURNAL_BLOCK_BYTES] = out.first_chunk_mut().expect("room for a whole header");
        little_endian::put(out, at::PAYLOAD_CRC, &payload_crc.to_le_bytes());
        let checksum = checksum(out);
        little_endian::put(out, at::CHECKSUM, &checksum.to_le_bytes());
    }

    /// Checks for faults that a correct checksum does not exclude.
    fn check(&self, ring: &JournalRing, records: usize) -> Result<(), EntryFault> {
        let bad = |field, value| Err(EntryFault::BadField { field, value });
        if self.sequence == 0 || self.sequence >= JOURNAL_NUMBER_END {
            return bad("sequence", self.sequence);
        }
        if self.epoch == 0 || self.epoch >= JOURNAL_NUMBER_END {
            return bad("epoch", self.epoch);
        }
        if !ring.holds(self.position) {
            return bad("position", self.position.0);
        }
        if self.tail.sequence == 0 || self.tail.sequence > self.sequence {
            return bad("tail_sequence", self.tail.sequence);
        }
        if !ring.holds(self.tail.position) || !self.tail_is_reachable(ring) {
            return bad("tail_position", self.tail.position.0);
        }
        // All entries before the tail were acknowledged.
        if self.promised >= self.sequence || self.promised < self.tail.sequence - 1 {
            return bad("promised", self.promised);
        }
        let fits = match self.kind {
            EntryKind::Commit => self.payload <= JOURNAL_PAYLOAD_MAX && !ring.needs_wrap(self.position, self.payload),
            EntryKind::Wrap => self.payload.is_zero(),
        };
        if !fits {
            return bad("payload_sectors", self.payload.get());
        }
        if self.payload.is_zero() && self.payload_crc != 0 {
            return bad("payload_crc", self.payload_crc.into());
        }
        if self.kind == EntryKind::Wrap && self.position.0 == 0 {
            return bad("kind", KIND_WRAP.into());
        }
        if self.kind == EntryKind::Wrap && records > 0 {
            return bad("record_count", records as u64);
        }
        Ok(())
    }

    /// Is there enough room for the entries between the tail and this one? Each has at least a header.
    fn tail_is_reachable(&self, ring: &JournalRing) -> bool {
        let between = self.sequence - self.tail.sequence;
        let distance = ring.distance(self.tail.position, self.position);
        match between.checked_mul(JOURNAL_ALIGN.0) {
            Some(0) => distance.is_zero(),
            Some(least) => least <= distance.0,
            None => false,
        }
    }

    /// `log` is the distance from the tail to the entry.
    #[inline]
    fn check_record(
        &self,
        ring: &JournalRing,
        log: Sectors,
        record: &JournalRecord,
        index: usize,
    ) -> Result<(), EntryFault> {
        record.check(index, self.payload, |at, len| {
            let inside = at.0 < ring.sectors.0 && len <= ring.to_end(at);
            inside && ring.distance(self.tail.position, at).checked_add(len).is_some_and(|end| end <= log)
        })
    }
}

impl<'a> JournalEntry<'a> {
    /// Decodes the header that was found at `position` of the ring, with all its records.
    ///
    /// # Errors
    /// The first fault; see [`EntryFault`]. This function does not check whether the entry is the expected next one, or
    /// whether its payload is complete; [`JournalScan`](super::JournalScan) does.
    pub fn decode(bytes: &'a [u8], ring: &JournalRing, position: RingSector) -> Result<Self, EntryFault> {
        Envelope::open(bytes, ring, position)?.entry(ring, position)
    }

    /// Decodes the header of a kept entry, which was copied out of the ring. The header itself has its former position.
    ///
    /// # Errors
    /// As [`JournalEntry::decode`].
    pub fn decode_kept(bytes: &'a [u8], ring: &JournalRing) -> Result<Self, EntryFault> {
        let position = bytes.get(at::POSITION..at::POSITION + 8).map_or(0, |field| little_endian::u64_at(field, 0));
        Self::decode(bytes, ring, RingSector(position))
    }

    /// Number of records.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Are there no records?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records, in the order in which they apply.
    pub fn records(&self) -> impl ExactSizeIterator<Item = JournalRecord> + 'a {
        let decode = |(index, bytes)| JournalRecord::decode(bytes, index).expect("checked when the entry was decoded");
        self.records.iter().enumerate().map(decode)
    }
}

impl<'a> Envelope<'a> {
    /// Checks that there is a complete header of this journal for this position.
    pub fn open(bytes: &'a [u8], ring: &JournalRing, position: RingSector) -> Result<Self, EntryFault> {
        let bytes: &[u8; JOURNAL_BLOCK_BYTES] = bytes.first_chunk().ok_or(EntryFault::Truncated(bytes.len()))?;
        if bytes[at::MAGIC..at::VERSION] != MAGIC {
            return Err(EntryFault::NotAnEntry);
        }
        let stored = little_endian::u32_at(bytes, at::CHECKSUM);
        let computed = checksum(bytes);
        if stored != computed {
            return Err(EntryFault::HeaderChecksum { stored, computed });
        }
        let journal = Uuid(little_endian::array(bytes, at::JOURNAL));
        if journal != ring.journal {
            return Err(EntryFault::OtherJournal(journal));
        }
        let stands = RingSector(little_endian::u64_at(bytes, at::POSITION));
        if stands != position {
            return Err(EntryFault::OtherPosition(stands));
        }
        let version = little_endian::u32_at(bytes, at::VERSION);
        let (sequence, epoch) = (little_endian::u64_at(bytes, at::SEQUENCE), little_endian::u64_at(bytes, at::EPOCH));
        Ok(Self { bytes, version, sequence, epoch })
    }

    /// Decodes and checks the other fields of the header.
    pub fn entry(&self, ring: &JournalRing, position: RingSector) -> Result<JournalEntry<'a>, EntryFault> {
        let bytes = self.bytes;
        let bad = |field, value| EntryFault::BadField { field, value };
        match self.version {
            JOURNAL_VERSION => {}
            0 => return Err(bad("version", 0)),
            newer => return Err(EntryFault::NewerVersion(newer)),
        }
        let kind = match bytes[at::KIND] {
            KIND_COMMIT => EntryKind::Commit,
            KIND_WRAP => EntryKind::Wrap,
            other => return Err(bad("kind", other.into())),
        };
        let count = usize::from(little_endian::u16_at(bytes, at::COUNT));
        if count > JOURNAL_RECORDS_MAX {
            return Err(bad("record_count", count as u64));
        }
        let header = EntryHeader {
            sequence: self.sequence,
            epoch: self.epoch,
            position,
            promised: little_endian::u64_at(bytes, at::PROMISED),
            tail: LogPlace {
                sequence: little_endian::u64_at(bytes, at::TAIL_SEQUENCE),
                position: RingSector(little_endian::u64_at(bytes, at::TAIL_POSITION)),
            },
            kind,
            payload: Sectors(little_endian::u32_at(bytes, at::PAYLOAD_SECTORS).into()),
            payload_crc: little_endian::u32_at(bytes, at::PAYLOAD_CRC),
        };
        header.check(ring, count)?;
        let (all, _) = bytes[at::RECORDS..].as_chunks::<RECORD_BYTES>();
        let (records, unused) = all.split_at(count);
        let pad = bytes[at::PAD_89] == 0 && is_zero(&bytes[at::PAD_92..at::RECORDS]);
        if !pad || !is_zero(unused.as_flattened()) {
            return Err(EntryFault::UnknownContent);
        }
        let log = ring.distance(header.tail.position, position);
        for (index, bytes) in records.iter().enumerate() {
            let record = JournalRecord::decode(bytes, index)?;
            header.check_record(ring, log, &record, index)?;
        }
        Ok(JournalEntry { header, records })
    }
}

/// CRC-32C of the header; the field of the checksum counts as zero.
fn checksum(bytes: &[u8; JOURNAL_BLOCK_BYTES]) -> u32 {
    let used = usize::from(little_endian::u16_at(bytes, at::COUNT)).min(RECORDS);
    if is_zero(&bytes[at::RECORDS + used * RECORD_BYTES..]) {
        // The shorter computation gives the same number.
        return checksum_without(bytes, used);
    }
    checksum_without(bytes, RECORDS)
}

/// The checksum of a header whose records after the first `used` are known to be zero.
fn checksum_without(bytes: &[u8; JOURNAL_BLOCK_BYTES], used: usize) -> u32 {
    let before = crc32c::update(!0, &bytes[..at::CHECKSUM]);
    let field = crc32c::update(before, &[0; 4]);
    let register = crc32c::update(field, &bytes[at::JOURNAL..at::RECORDS + used * RECORD_BYTES]);
    !crc32c::zeroes(register, RECORDS - used)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |any, byte| any | byte) == 0
}
