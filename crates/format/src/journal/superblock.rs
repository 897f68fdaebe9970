//! The journal's superblock: the identity of the journal and of its controller, the ring, and the start of the log.
//!
//! ```text
//!    0  magic "ORAIDJSB"     8  version      12  checksum      16  journal uuid     32  controller uuid
//!   48  generation          56  epoch        64  epoch_start   72  device_sectors
//!   80  ring_start          88  ring_sectors 96  tail_sequence 104 tail_position
//!  112  block  116 mirrors  117 mirror  118 copy  119 clean   120 kept_sectors  128 unfinished  129 zero
//!  256  64 arrays of 32 bytes: set uuid 16, first_sequence u64, state u8, zero 7
//! 2304  zero
//! ```
//!
//! The superblock is larger than a drive's atomic write, so there are two: in the first 4 KiB of the device and in its
//! last whole 4 KiB. They are never written at the same time: the second one only when the first is durable. The good
//! copy with the higher generation counts.

use super::error::JournalError;
use super::ring::{JournalRing, LogPlace, RingSector};
use super::{
    JOURNAL_ALIGN, JOURNAL_ARRAYS_MAX, JOURNAL_BLOCK_BYTES, JOURNAL_BYTES_MIN, JOURNAL_KEEP_DEVICE_MIN,
    JOURNAL_KEEP_SHARE, JOURNAL_LBA_END, JOURNAL_MIRRORS_MAX, JOURNAL_NUMBER_END, JOURNAL_RING_MIN, JOURNAL_RING_START,
    JOURNAL_VERSION,
};
use crate::crc32c;
use crate::identity::Uuid;
use crate::little_endian;
use openraid_units::{BlockSize, DriveLba, Sectors};

const MAGIC: [u8; 8] = *b"ORAIDJSB";
const ARRAY_BYTES: usize = 32;

mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 8;
    pub const CHECKSUM: usize = 12;
    pub const JOURNAL: usize = 16;
    pub const CONTROLLER: usize = 32;
    pub const GENERATION: usize = 48;
    pub const EPOCH: usize = 56;
    pub const EPOCH_START: usize = 64;
    pub const DEVICE_SECTORS: usize = 72;
    pub const RING_START: usize = 80;
    pub const RING_SECTORS: usize = 88;
    pub const TAIL_SEQUENCE: usize = 96;
    pub const TAIL_POSITION: usize = 104;
    pub const BLOCK: usize = 112;
    pub const MIRRORS: usize = 116;
    pub const MIRROR: usize = 117;
    pub const COPY: usize = 118;
    pub const CLEAN: usize = 119;
    pub const KEPT: usize = 120;
    pub const UNFINISHED: usize = 128;
    pub const PAD_129: usize = 129;
    pub const ARRAYS: usize = 256;
    pub const END: usize = ARRAYS + super::JOURNAL_ARRAYS_MAX * super::ARRAY_BYTES;
    pub const ARRAY_SET: usize = 0;
    pub const ARRAY_FIRST: usize = 16;
    pub const ARRAY_STATE: usize = 24;
    pub const ARRAY_PAD: usize = 25;
}
const _: () = assert!(at::END == 2304 && at::END < JOURNAL_BLOCK_BYTES);

/// The two superblocks of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SuperblockCopy {
    /// In the first 4 KiB.
    First,
    /// In the last whole 4 KiB.
    Last,
}

/// The use of the journal's entries for an array in its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JournalArrayState {
    /// The array uses the journal.
    Live,
    /// The array has failed; its entries are kept until it comes back.
    Preserved,
    /// An administrator gave up the entries of this array; they are never replayed.
    Discarded,
}

/// An array in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JournalArray {
    /// Identity of the redundancy set, as in its md superblocks.
    pub set_uuid: Uuid,
    /// The use of its entries.
    pub state: JournalArrayState,
    /// Entries before this one do not apply to the array.
    pub first_sequence: u64,
}

/// The superblock of a journal. It has every field on disk except the number of the copy, which the writer gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalSuperblock {
    /// Identity of the journal.
    pub journal: Uuid,
    /// The controller whose acknowledged writes are in the journal.
    pub controller: Uuid,
    /// Raised with every write of the superblock.
    pub generation: u64,
    /// Raised before the first entry after each opening of the journal, and before the first acknowledgement after a
    /// mirror was dropped. The raised value is durable in both copies before that. A device gets a new epoch only if it
    /// holds every entry from the tail on.
    pub epoch: u64,
    /// The first entry of this epoch: from this entry on, entries of older epochs do not count.
    pub epoch_start: u64,
    /// Sectors of the device when the journal was created.
    pub device_sectors: Sectors,
    /// Sector of the device where the ring begins.
    pub ring_start: DriveLba,
    /// Length of the ring.
    pub ring_sectors: Sectors,
    /// An entry from which the log can be followed. The sectors between this entry and the head are never overwritten.
    /// The head can pass this entry only after a later position is durable in both copies.
    pub tail: LogPlace,
    /// Unit of writes to the device: 512 or 4096 bytes.
    pub block: BlockSize,
    /// Number of devices that carry this journal: 1 or 2.
    pub mirrors: u8,
    /// Index of this device among them, from 0.
    pub mirror: u8,
    /// No entry counts: all acknowledged writes are durable on the members, and the next entry will be at `tail`.
    pub clean: bool,
    /// Number of used sectors in the area before the ring. They hold the kept entries, which are unchanged copies of
    /// entries that only absent arrays need. Kept entries count as older than those of the ring.
    pub kept: Sectors,
    /// The device is being made up to date, and its contents do not count yet.
    pub unfinished: bool,
    /// Arrays by the index that records use.
    pub arrays: [Option<JournalArray>; JOURNAL_ARRAYS_MAX],
}

/// The copy that counts, and the copy that must be written again, if any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewestCopy {
    /// The superblock that counts.
    pub superblock: JournalSuperblock,
    /// The copy that is damaged or older.
    pub rewrite: Option<SuperblockCopy>,
}

/// The sector of a copy on a device of this size; `None` if the device is too small for a journal.
#[must_use]
pub const fn journal_superblock_lba(copy: SuperblockCopy, device: Sectors) -> Option<DriveLba> {
    if device.0 < JOURNAL_BYTES_MIN.sectors_floor().0 {
        return None;
    }
    Some(DriveLba(match copy {
        SuperblockCopy::First => 0,
        SuperblockCopy::Last => (device.0 / JOURNAL_ALIGN.0 - 1) * JOURNAL_ALIGN.0,
    }))
}

impl SuperblockCopy {
    const fn number(self) -> u8 {
        match self {
            Self::First => 0,
            Self::Last => 1,
        }
    }
}

impl JournalSuperblock {
    /// A new, empty journal on a whole device.
    ///
    /// # Errors
    /// [`JournalError::TooSmall`] or [`JournalError::TooLarge`].
    ///
    /// # Panics
    /// The mirror number is not below `mirrors`, there are more mirrors than [`JOURNAL_MIRRORS_MAX`], or the block size
    /// is neither 512 nor 4096.
    pub fn new(
        journal: Uuid,
        controller: Uuid,
        device: Sectors,
        block: BlockSize,
        (mirror, mirrors): (u8, u8),
    ) -> Result<Self, JournalError> {
        assert!(mirror < mirrors && mirrors <= JOURNAL_MIRRORS_MAX, "there is no such mirror");
        assert!(block == BlockSize::B512 || block == BlockSize::B4096, "a journal has no other blocks");
        let last = journal_superblock_lba(SuperblockCopy::Last, device).ok_or(JournalError::TooSmall(device))?;
        if device.get() > JOURNAL_LBA_END {
            return Err(JournalError::TooLarge(device));
        }
        let keep = if device < JOURNAL_KEEP_DEVICE_MIN { Sectors::ZERO } else { device / JOURNAL_KEEP_SHARE };
        let start = JOURNAL_RING_START + keep.round_down(Sectors::mib(1));
        Ok(Self {
            journal,
            controller,
            generation: 1,
            epoch: 1,
            epoch_start: 1,
            device_sectors: device,
            ring_start: DriveLba(start.get()),
            ring_sectors: last.offset() - start,
            tail: LogPlace { sequence: 1, position: RingSector(0) },
            block,
            mirrors,
            mirror,
            clean: true,
            kept: Sectors::ZERO,
            unfinished: false,
            arrays: [None; JOURNAL_ARRAYS_MAX],
        })
    }

    /// The ring.
    #[must_use]
    pub const fn ring(&self) -> JournalRing {
        JournalRing { journal: self.journal, start: self.ring_start, sectors: self.ring_sectors }
    }

    /// The area for kept entries: first sector, and number of sectors.
    #[must_use]
    pub fn keep_area(&self) -> (DriveLba, Sectors) {
        (DriveLba(JOURNAL_ALIGN.get()), self.ring_start.offset() - JOURNAL_ALIGN)
    }

    /// Does an entry with this number apply to the array with this index? Preserved arrays count, too.
    #[must_use]
    pub fn counts(&self, array: u8, sequence: u64) -> bool {
        let array = self.arrays.get(usize::from(array)).copied().flatten();
        array.is_some_and(|array| array.state != JournalArrayState::Discarded && sequence >= array.first_sequence)
    }

    /// The index of the array with this identity.
    #[must_use]
    pub fn index_of(&self, set_uuid: Uuid) -> Option<u8> {
        let index = self.arrays.iter().position(|array| array.is_some_and(|array| array.set_uuid == set_uuid))?;
        u8::try_from(index).ok()
    }

    /// Adds an array and returns its index. If the table has the array, only returns the index.
    ///
    /// # Errors
    /// [`JournalError::TableFull`].
    pub fn enter(&mut self, array: JournalArray) -> Result<u8, JournalError> {
        if let Some(index) = self.index_of(array.set_uuid) {
            return Ok(index);
        }
        let free = self.arrays.iter().position(Option::is_none).ok_or(JournalError::TableFull)?;
        self.arrays[free] = Some(array);
        u8::try_from(free).map_err(|_| JournalError::TableFull)
    }

    /// Decodes the copy that was found at its place.
    ///
    /// # Errors
    /// The first fault. [`JournalSuperblock::check_device`] checks that the device is complete, and
    /// [`JournalSuperblock::check_controller`] checks the owner.
    pub fn decode(bytes: &[u8], copy: SuperblockCopy) -> Result<Self, JournalError> {
        let bytes = check_envelope(bytes)?;
        let bad = |field, value| JournalError::BadField { field, value };
        if bytes[at::COPY] != copy.number() {
            return Err(bad("copy", bytes[at::COPY].into()));
        }
        let block = little_endian::u32_at(bytes, at::BLOCK);
        let block = match block {
            512 => BlockSize::B512,
            4096 => BlockSize::B4096,
            other => return Err(bad("block", other.into())),
        };
        let clean = match bytes[at::CLEAN] {
            0 => false,
            1 => true,
            other => return Err(bad("clean", other.into())),
        };
        let unfinished = match bytes[at::UNFINISHED] {
            0 => false,
            1 => true,
            other => return Err(bad("unfinished", other.into())),
        };
        let mut superblock = Self {
            journal: Uuid(little_endian::array(bytes, at::JOURNAL)),
            controller: Uuid(little_endian::array(bytes, at::CONTROLLER)),
            generation: little_endian::u64_at(bytes, at::GENERATION),
            epoch: little_endian::u64_at(bytes, at::EPOCH),
            epoch_start: little_endian::u64_at(bytes, at::EPOCH_START),
            device_sectors: Sectors(little_endian::u64_at(bytes, at::DEVICE_SECTORS)),
            ring_start: DriveLba(little_endian::u64_at(bytes, at::RING_START)),
            ring_sectors: Sectors(little_endian::u64_at(bytes, at::RING_SECTORS)),
            tail: LogPlace {
                sequence: little_endian::u64_at(bytes, at::TAIL_SEQUENCE),
                position: RingSector(little_endian::u64_at(bytes, at::TAIL_POSITION)),
            },
            block,
            mirrors: bytes[at::MIRRORS],
            mirror: bytes[at::MIRROR],
            clean,
            kept: Sectors(little_endian::u64_at(bytes, at::KEPT)),
            unfinished,
            arrays: [None; JOURNAL_ARRAYS_MAX],
        };
        let unused = bytes[at::PAD_129..at::ARRAYS].iter().chain(&bytes[at::END..]);
        if unused.fold(0, |any, byte| any | byte) != 0 {
            return Err(JournalError::UnknownContent);
        }
        let (arrays, _) = bytes[at::ARRAYS..at::END].as_chunks::<ARRAY_BYTES>();
        for (index, bytes) in arrays.iter().enumerate() {
            superblock.arrays[index] = decode_array(bytes, index)?;
        }
        superblock.check_fields()?;
        Ok(superblock)
    }

    fn check_fields(&self) -> Result<(), JournalError> {
        let bad = |field, value| Err(JournalError::BadField { field, value });
        let numbers = [
            ("generation", self.generation),
            ("epoch", self.epoch),
            ("epoch_start", self.epoch_start),
            ("tail_sequence", self.tail.sequence),
        ];
        if let Some((field, value)) = numbers.into_iter().find(|&(_, it)| it == 0 || it >= JOURNAL_NUMBER_END) {
            return bad(field, value);
        }
        let last = match journal_superblock_lba(SuperblockCopy::Last, self.device_sectors) {
            Some(last) if self.device_sectors.get() <= JOURNAL_LBA_END => last,
            _ => return bad("device_sectors", self.device_sectors.get()),
        };
        let start = self.ring_start.offset();
        if start < JOURNAL_ALIGN || start > last.offset() || !(start % JOURNAL_ALIGN).is_zero() {
            return bad("ring_start", start.get());
        }
        let len = self.ring_sectors;
        if len < JOURNAL_RING_MIN || len > last.offset() - start || !(len % JOURNAL_ALIGN).is_zero() {
            return bad("ring_sectors", len.get());
        }
        if self.kept > self.keep_area().1 || !(self.kept % JOURNAL_ALIGN).is_zero() {
            return bad("kept_sectors", self.kept.get());
        }
        if !self.ring().holds(self.tail.position) {
            return bad("tail_position", self.tail.position.0);
        }
        if self.mirrors == 0 || self.mirrors > JOURNAL_MIRRORS_MAX {
            return bad("mirrors", self.mirrors.into());
        }
        if self.mirror >= self.mirrors {
            return bad("mirror", self.mirror.into());
        }
        for (index, array) in self.arrays.iter().enumerate() {
            let Some(array) = array else { continue };
            if array.first_sequence == 0 || array.first_sequence >= JOURNAL_NUMBER_END {
                return Err(JournalError::BadArray { index, field: "first_sequence" });
            }
            if self.arrays[..index].iter().flatten().any(|earlier| earlier.set_uuid == array.set_uuid) {
                return Err(JournalError::BadArray { index, field: "set_uuid" });
            }
        }
        Ok(())
    }

    /// Encodes the superblock as this copy, with its checksum.
    ///
    /// # Panics
    /// `out` is shorter than [`JOURNAL_BLOCK_BYTES`], or decoding would refuse the superblock. The panic finds such a
    /// bug before the bytes are on disk.
    pub fn encode(&self, copy: SuperblockCopy, out: &mut [u8]) {
        self.check_fields().unwrap_or_else(|error| panic!("a journal superblock that cannot be: {error}"));
        let block = u32::try_from(self.block.bytes().get()).expect("at most 4096");
        let out: &mut [u8; JOURNAL_BLOCK_BYTES] = out.first_chunk_mut().expect("room for a whole superblock");
        out.fill(0);
        little_endian::put(out, at::MAGIC, &MAGIC);
        little_endian::put(out, at::VERSION, &JOURNAL_VERSION.to_le_bytes());
        little_endian::put(out, at::JOURNAL, &self.journal.0);
        little_endian::put(out, at::CONTROLLER, &self.controller.0);
        little_endian::put(out, at::GENERATION, &self.generation.to_le_bytes());
        little_endian::put(out, at::EPOCH, &self.epoch.to_le_bytes());
        little_endian::put(out, at::EPOCH_START, &self.epoch_start.to_le_bytes());
        little_endian::put(out, at::DEVICE_SECTORS, &self.device_sectors.0.to_le_bytes());
        little_endian::put(out, at::RING_START, &self.ring_start.0.to_le_bytes());
        little_endian::put(out, at::RING_SECTORS, &self.ring_sectors.0.to_le_bytes());
        little_endian::put(out, at::TAIL_SEQUENCE, &self.tail.sequence.to_le_bytes());
        little_endian::put(out, at::TAIL_POSITION, &self.tail.position.0.to_le_bytes());
        little_endian::put(out, at::BLOCK, &block.to_le_bytes());
        little_endian::put(out, at::MIRRORS, &[self.mirrors, self.mirror, copy.number(), u8::from(self.clean)]);
        little_endian::put(out, at::KEPT, &self.kept.0.to_le_bytes());
        little_endian::put(out, at::UNFINISHED, &[u8::from(self.unfinished)]);
        let (arrays, _) = out[at::ARRAYS..at::END].as_chunks_mut::<ARRAY_BYTES>();
        for (bytes, array) in arrays.iter_mut().zip(&self.arrays) {
            let Some(array) = array else { continue };
            little_endian::put(bytes, at::ARRAY_SET, &array.set_uuid.0);
            little_endian::put(bytes, at::ARRAY_FIRST, &array.first_sequence.to_le_bytes());
            little_endian::put(bytes, at::ARRAY_STATE, &[array.state.number()]);
        }
        let checksum = checksum(out);
        little_endian::put(out, at::CHECKSUM, &checksum.to_le_bytes());
    }

    /// Chooses the copy of one device that counts.
    ///
    /// # Errors
    /// Neither copy can be used (the more specific reason), a newer program wrote one of them, or they contradict each
    /// other.
    pub fn newest(
        first: Result<Self, JournalError>,
        last: Result<Self, JournalError>,
    ) -> Result<NewestCopy, JournalError> {
        let newer = [&first, &last].into_iter().find_map(|copy| match *copy {
            Err(error @ JournalError::NewerVersion(_)) => Some(error),
            _ => None,
        });
        if let Some(error) = newer {
            return Err(error);
        }
        match (first, last) {
            (Ok(superblock), Err(_)) => Ok(NewestCopy { superblock, rewrite: Some(SuperblockCopy::Last) }),
            (Err(_), Ok(superblock)) => Ok(NewestCopy { superblock, rewrite: Some(SuperblockCopy::First) }),
            (Err(JournalError::NotAJournal), Err(error)) | (Err(error), Err(_)) => Err(error),
            (Ok(first), Ok(last)) if first.journal != last.journal => {
                Err(JournalError::TwoJournals { first: first.journal, last: last.journal })
            }
            (Ok(first), Ok(last)) if first == last => Ok(NewestCopy { superblock: first, rewrite: None }),
            (Ok(first), Ok(last)) if first.generation == last.generation => {
                Err(JournalError::CopiesDiffer(first.generation))
            }
            (Ok(first), Ok(last)) if first.generation > last.generation => {
                Ok(NewestCopy { superblock: first, rewrite: Some(SuperblockCopy::Last) })
            }
            (Ok(_), Ok(last)) => Ok(NewestCopy { superblock: last, rewrite: Some(SuperblockCopy::First) }),
        }
    }

    /// Is this the device on which the journal was created? The device may have grown.
    ///
    /// # Errors
    /// [`JournalError::DeviceTruncated`], [`JournalError::LargerBlocks`].
    pub fn check_device(&self, device: Sectors, block: BlockSize) -> Result<(), JournalError> {
        if device < self.device_sectors {
            return Err(JournalError::DeviceTruncated { made: self.device_sectors, now: device });
        }
        if block.bytes() > self.block.bytes() {
            return Err(JournalError::LargerBlocks { made: self.block, now: block });
        }
        Ok(())
    }

    /// Does the journal belong to this controller?
    ///
    /// # Errors
    /// [`JournalError::OtherController`].
    pub fn check_controller(&self, controller: Uuid) -> Result<(), JournalError> {
        if self.controller == controller {
            Ok(())
        } else {
            Err(JournalError::OtherController { owner: self.controller, controller })
        }
    }
}

impl JournalArrayState {
    const fn number(self) -> u8 {
        match self {
            Self::Live => 1,
            Self::Preserved => 2,
            Self::Discarded => 3,
        }
    }
}

fn decode_array(bytes: &[u8; ARRAY_BYTES], index: usize) -> Result<Option<JournalArray>, JournalError> {
    let state = match bytes[at::ARRAY_STATE] {
        0 if *bytes == [0; ARRAY_BYTES] => return Ok(None),
        1 => JournalArrayState::Live,
        2 => JournalArrayState::Preserved,
        3 => JournalArrayState::Discarded,
        _ => return Err(JournalError::BadArray { index, field: "state" }),
    };
    if bytes[at::ARRAY_PAD..] != [0; ARRAY_BYTES - at::ARRAY_PAD] {
        return Err(JournalError::UnknownContent);
    }
    let set_uuid = Uuid(little_endian::array(bytes, at::ARRAY_SET));
    let first_sequence = little_endian::u64_at(bytes, at::ARRAY_FIRST);
    Ok(Some(JournalArray { set_uuid, state, first_sequence }))
}

/// Checks magic number, checksum and version, which keep their places in every later version.
fn check_envelope(bytes: &[u8]) -> Result<&[u8; JOURNAL_BLOCK_BYTES], JournalError> {
    let bytes: &[u8; JOURNAL_BLOCK_BYTES] = bytes.first_chunk().ok_or(JournalError::Truncated(bytes.len()))?;
    if bytes[at::MAGIC..at::VERSION] != MAGIC {
        return Err(JournalError::NotAJournal);
    }
    let stored = little_endian::u32_at(bytes, at::CHECKSUM);
    let computed = checksum(bytes);
    if stored != computed {
        return Err(JournalError::Checksum { stored, computed });
    }
    match little_endian::u32_at(bytes, at::VERSION) {
        JOURNAL_VERSION => Ok(bytes),
        0 => Err(JournalError::BadField { field: "version", value: 0 }),
        newer => Err(JournalError::NewerVersion(newer)),
    }
}

/// CRC-32C of the superblock; the field of the checksum counts as zero.
fn checksum(bytes: &[u8; JOURNAL_BLOCK_BYTES]) -> u32 {
    let before = crc32c::update(!0, &bytes[..at::CHECKSUM]);
    let field = crc32c::update(before, &[0; 4]);
    !crc32c::update(field, &bytes[at::JOURNAL..])
}
