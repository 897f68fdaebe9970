//! The write-intent bitmap: the chunks that may differ between members after a crash or an absence.
//!
//! ```text
//!   byte 0       header, 256 bytes
//!   byte 256     bit 0 of byte 0 is chunk 0, bit 1 chunk 1, ..., bit 0 of byte 1 chunk 8: one string of bits,
//!                little-endian, without a gap, to the last chunk; bits after it may be set and mean nothing
//! ```
//!
//! A bit covers sectors of a member for levels 1, 4, 5 and 6, and sectors of the array for level 10. A bitmap must not
//! be used if it is older than the superblock, belongs to another set, or covers another size, because it would lack
//! chunks that were written. If the functions here return an error, the caller does a full resync.
//!
//! Source: kernel `drivers/md/md-bitmap.h` for the meaning of the fields, checked against images made by the driver of
//! Linux 6.1.

use crate::identity::Uuid;
use crate::level::{MdLevel, Raid10Layout};
use crate::little_endian;
use crate::reshape_view::ShapeFields;
use crate::superblock::Superblock;
use core::fmt;
use openraid_units::{Bytes, Sectors};

/// The first four bytes of every bitmap, little-endian: "bitm".
pub const BITMAP_MAGIC: u32 = 0x6d74_6962;
/// Bytes of the header; the bits follow directly after it.
pub const BITMAP_HEADER_BYTES: usize = 256;
/// Chunk of a new bitmap, unless its room requires a larger one.
pub const BITMAP_CHUNK_DEFAULT: Bytes = Bytes::mib(64);
/// Seconds between two rounds of clearing bits, for a new bitmap.
pub const BITMAP_DAEMON_SLEEP_DEFAULT: u32 = 5;
/// Maximum number of writes that may be under way to a write-mostly member after their request was acknowledged (md's
/// counter has 14 bits).
pub const BITMAP_WRITE_BEHIND_MAX: u32 = 0x3fff;

const CHUNK_MIN: u32 = 512;
const PAGE: u64 = 4096;
/// Number of 16-bit counters that md keeps in one page of memory.
const COUNTERS_PER_PAGE: u64 = PAGE / 2;
const NO_PAD: [u8; 120] = [0; 120];

pub(crate) mod at {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 4;
    pub const SET_UUID: usize = 8;
    pub const EVENTS: usize = 24;
    pub const EVENTS_CLEARED: usize = 32;
    pub const SYNC_SIZE: usize = 40;
    pub const STATE: usize = 48;
    pub const CHUNK: usize = 52;
    pub const DAEMON_SLEEP: usize = 56;
    pub const WRITE_BEHIND: usize = 60;
    pub const SECTORS_RESERVED: usize = 64;
    pub const NODES: usize = 68;
    pub const CLUSTER_NAME: usize = 72;
    pub const PAD: usize = 136;
}

/// Byte order of the bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BitmapVersion {
    /// Version 3: in the byte order of the machine that wrote the bitmap. Every machine that openraid supports has the
    /// order of version 4.
    HostEndian,
    /// Version 4: little-endian.
    LittleEndian,
}

/// State bits of a bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct BitmapState(pub u32);

impl BitmapState {
    /// The bits are out of date.
    pub const STALE: Self = Self(1 << 1);
    /// Writing the bitmap failed.
    pub const WRITE_ERROR: Self = Self(1 << 2);
    /// Lockless bitmaps only: the bitmap has not been used yet, and its states have still to be initialised.
    pub const FIRST_USE: Self = Self(1 << 3);
    /// The bits are in the byte order of the writer.
    pub const HOST_ENDIAN: Self = Self(1 << 15);

    /// Are all bits of `other` set?
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The header of a write-intent bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BitmapHeader {
    /// Byte order of the bits.
    pub version: BitmapVersion,
    /// Identity of the set, as in its superblocks.
    pub set_uuid: Uuid,
    /// Event count of the superblock with which the bitmap was last written.
    pub events: u64,
    /// Event count when bits were last cleared. It stops advancing while the set is degraded. A member with at least
    /// this event count needs only the chunks in the bitmap to become up to date.
    pub events_cleared: u64,
    /// Sectors that the bitmap covers.
    pub sync_size: Sectors,
    /// State bits.
    pub state: BitmapState,
    /// Bytes that one bit covers, a power of two.
    pub chunk: u32,
    /// Seconds between two rounds of clearing.
    pub daemon_sleep: u32,
    /// Maximum number of writes to write-mostly members that may be under way after their request was acknowledged; 0
    /// if none may.
    pub write_behind: u32,
    /// Sectors reserved for the bitmap, 0 if unknown.
    pub sectors_reserved: u32,
    /// Number of nodes of a cluster; 0 without a cluster.
    pub nodes: u32,
    /// Name of the cluster.
    pub cluster_name: [u8; 64],
}

/// The reason why a bitmap cannot be trusted. The whole set needs a resync then; the array of a bitmap of another kind
/// ([`Self::is_other_kind`]) is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BitmapError {
    /// The bitmap has fewer bytes than a header.
    Truncated(usize),
    /// The first four bytes are not those of a bitmap.
    NoMagic(u32),
    /// Version 5: shared by a cluster.
    Clustered,
    /// Version 6: the lockless bitmap of Linux 6.18 and later.
    Lockless,
    /// The version is unknown.
    UnknownVersion(u32),
    /// The chunk is not a power of two, or is below 512.
    BadChunk(u32),
    /// The value of a field is one that md also refuses.
    BadCount {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u32,
    },
    /// Bytes after the known fields are not zero.
    UnknownContent,
    /// The bitmap belongs to another set.
    OtherSet(Uuid),
    /// The bitmap was not written together with the superblock.
    OutOfDate {
        /// Events of the bitmap.
        bitmap: u64,
        /// Events of the superblock.
        superblock: u64,
    },
    /// The bitmap's state bits say that it is stale or could not be written.
    MarkedBad(BitmapState),
    /// The bitmap covers another size than that of the set.
    OtherSize {
        /// Sectors that the bitmap covers.
        covers: Sectors,
        /// Sectors of the set.
        expected: Sectors,
    },
    /// The bits do not fit between the start of the bitmap and the next structure.
    DoesNotFit {
        /// Sectors that the bitmap needs.
        need: Sectors,
        /// Sectors that are available.
        room: Sectors,
    },
}

impl fmt::Display for BitmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated(have) => {
                write!(f, "the bitmap is cut off: {have} bytes could be read, its header has {BITMAP_HEADER_BYTES}")
            }
            Self::NoMagic(magic) => write!(f, "no bitmap here (it would begin with 6d746962, not {magic:08x})"),
            Self::Clustered => f.write_str(
                "the bitmap is shared by a cluster (version 5), which is not supported; stop the array \
                 on all nodes and remove the bitmap there with mdadm --grow --bitmap=none",
            ),
            Self::Lockless => f.write_str(
                "the bitmap is a lockless one (version 6, Linux 6.18), which is not supported; on the system that \
                 made it, change it with mdadm --grow --bitmap=none and --bitmap=internal",
            ),
            Self::UnknownVersion(version) => write!(f, "bitmap of the unknown version {version} (3 and 4 can be used)"),
            Self::BadChunk(chunk) => write!(f, "damaged bitmap: a chunk of {chunk} bytes"),
            Self::BadCount { field, value } => write!(f, "damaged bitmap: {field} is {value}"),
            Self::UnknownContent => f.write_str("the bitmap's header has content that is not known here"),
            Self::OtherSet(uuid) => write!(f, "the bitmap belongs to another array ({uuid})"),
            Self::OutOfDate { bitmap, superblock } => {
                write!(f, "the bitmap is of event {bitmap}, the superblock of {superblock}: it missed writes")
            }
            Self::MarkedBad(state) => write!(f, "the bitmap is marked as unusable (state {:x})", state.0),
            Self::OtherSize { covers, expected } => {
                write!(f, "the bitmap covers {covers}, the array has {expected}")
            }
            Self::DoesNotFit { need, room } => write!(f, "the bitmap needs {need}, there is room for {room}"),
        }
    }
}
impl core::error::Error for BitmapError {}

impl BitmapError {
    /// Does other software maintain this bitmap, in a form that openraid does not know? If a bitmap is only damaged or
    /// out of date, a new one may replace it.
    #[must_use]
    pub const fn is_other_kind(&self) -> bool {
        matches!(self, Self::Clustered | Self::Lockless | Self::UnknownVersion(_))
    }
}

impl BitmapHeader {
    /// A header for a set that has no bitmap yet.
    #[must_use]
    pub const fn new(set_uuid: Uuid, events: u64, sync_size: Sectors, chunk: u32) -> Self {
        Self {
            version: BitmapVersion::LittleEndian,
            set_uuid,
            events,
            events_cleared: events,
            sync_size,
            state: BitmapState(0),
            chunk,
            daemon_sleep: BITMAP_DAEMON_SLEEP_DEFAULT,
            write_behind: 0,
            sectors_reserved: 0,
            nodes: 0,
            cluster_name: [0; 64],
        }
    }

    /// Decodes the header at the start of a bitmap.
    ///
    /// # Errors
    /// The first fault; see [`BitmapError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BitmapError> {
        let bytes: &[u8; BITMAP_HEADER_BYTES] = bytes.first_chunk().ok_or(BitmapError::Truncated(bytes.len()))?;
        let magic = little_endian::u32_at(bytes, at::MAGIC);
        if magic != BITMAP_MAGIC {
            return Err(BitmapError::NoMagic(magic));
        }
        let version = match little_endian::u32_at(bytes, at::VERSION) {
            3 => BitmapVersion::HostEndian,
            4 => BitmapVersion::LittleEndian,
            5 => return Err(BitmapError::Clustered),
            6 => return Err(BitmapError::Lockless),
            other => return Err(BitmapError::UnknownVersion(other)),
        };
        if bytes[at::PAD..] != NO_PAD {
            return Err(BitmapError::UnknownContent);
        }
        let header = Self {
            version,
            set_uuid: Uuid(little_endian::array(bytes, at::SET_UUID)),
            events: little_endian::u64_at(bytes, at::EVENTS),
            events_cleared: little_endian::u64_at(bytes, at::EVENTS_CLEARED),
            sync_size: Sectors(little_endian::u64_at(bytes, at::SYNC_SIZE)),
            state: BitmapState(little_endian::u32_at(bytes, at::STATE)),
            chunk: little_endian::u32_at(bytes, at::CHUNK),
            daemon_sleep: little_endian::u32_at(bytes, at::DAEMON_SLEEP),
            write_behind: little_endian::u32_at(bytes, at::WRITE_BEHIND),
            sectors_reserved: little_endian::u32_at(bytes, at::SECTORS_RESERVED),
            nodes: little_endian::u32_at(bytes, at::NODES),
            cluster_name: little_endian::array(bytes, at::CLUSTER_NAME),
        };
        header.check_fields()?;
        Ok(header)
    }

    fn check_fields(&self) -> Result<(), BitmapError> {
        if !self.chunk.is_power_of_two() || self.chunk < CHUNK_MIN {
            return Err(BitmapError::BadChunk(self.chunk));
        }
        if self.daemon_sleep == 0 {
            return Err(BitmapError::BadCount { field: "daemon_sleep", value: self.daemon_sleep });
        }
        if self.write_behind > BITMAP_WRITE_BEHIND_MAX {
            return Err(BitmapError::BadCount { field: "write_behind", value: self.write_behind });
        }
        Ok(())
    }

    /// Encodes the header at the start of `out` and zeroes the rest of its 256 bytes.
    ///
    /// # Panics
    /// `out` is shorter than [`BITMAP_HEADER_BYTES`].
    pub fn encode(&self, out: &mut [u8]) {
        let version: u32 = match self.version {
            BitmapVersion::HostEndian => 3,
            BitmapVersion::LittleEndian => 4,
        };
        let out = &mut out[..BITMAP_HEADER_BYTES];
        out.fill(0);
        little_endian::put(out, at::MAGIC, &BITMAP_MAGIC.to_le_bytes());
        little_endian::put(out, at::VERSION, &version.to_le_bytes());
        little_endian::put(out, at::SET_UUID, &self.set_uuid.0);
        little_endian::put(out, at::EVENTS, &self.events.to_le_bytes());
        little_endian::put(out, at::EVENTS_CLEARED, &self.events_cleared.to_le_bytes());
        little_endian::put(out, at::SYNC_SIZE, &self.sync_size.0.to_le_bytes());
        little_endian::put(out, at::STATE, &self.state.0.to_le_bytes());
        little_endian::put(out, at::CHUNK, &self.chunk.to_le_bytes());
        little_endian::put(out, at::DAEMON_SLEEP, &self.daemon_sleep.to_le_bytes());
        little_endian::put(out, at::WRITE_BEHIND, &self.write_behind.to_le_bytes());
        little_endian::put(out, at::SECTORS_RESERVED, &self.sectors_reserved.to_le_bytes());
        little_endian::put(out, at::NODES, &self.nodes.to_le_bytes());
        little_endian::put(out, at::CLUSTER_NAME, &self.cluster_name);
    }

    /// Number and places of the bits.
    #[must_use]
    pub const fn geometry(&self) -> BitmapGeometry {
        BitmapGeometry::new(self.sync_size, Bytes(self.chunk as u64).sectors_floor())
    }

    /// Does the bitmap mark every chunk that a member with this event count has missed? If so, copying those chunks
    /// makes the member up to date. If not, the whole member needs a rebuild.
    #[must_use]
    pub const fn covers_absence_since(&self, member_events: u64) -> bool {
        member_events >= self.events_cleared
    }

    /// Can the bits be trusted for the member with this superblock? The member covers `sync_size` (see [`sync_size`])
    /// and has `room` for the bitmap (see [`Superblock::bitmap_room`]).
    ///
    /// The event rule: a bitmap gets the event count of a superblock update just before the superblocks are written.
    /// Its count is therefore equal to that of the superblock, or one higher if a power cut came between the two
    /// writes.
    ///
    /// # Errors
    /// The reason why the bits cannot be trusted.
    pub fn check(&self, superblock: &Superblock, sync_size: Sectors, room: Sectors) -> Result<(), BitmapError> {
        if self.set_uuid != superblock.set_uuid {
            return Err(BitmapError::OtherSet(self.set_uuid));
        }
        if !events_are_acceptable(self.events, superblock.events) {
            return Err(BitmapError::OutOfDate { bitmap: self.events, superblock: superblock.events });
        }
        let bad = BitmapState(self.state.0 & (BitmapState::STALE.0 | BitmapState::WRITE_ERROR.0));
        if bad.0 != 0 {
            return Err(BitmapError::MarkedBad(bad));
        }
        if self.sync_size != sync_size {
            return Err(BitmapError::OtherSize { covers: self.sync_size, expected: sync_size });
        }
        let need = self.geometry().sectors();
        if need > room {
            return Err(BitmapError::DoesNotFit { need, room });
        }
        Ok(())
    }
}

/// The event rule of [`BitmapHeader::check`]: the counts are equal, or that of the bitmap is one higher.
#[must_use]
pub const fn events_are_acceptable(bitmap: u64, superblock: u64) -> bool {
    bitmap == superblock || (superblock != u64::MAX && bitmap == superblock + 1)
}

/// Sectors that a bitmap (and `resync_offset`) of this set covers: sectors of a member, or of the array for RAID 10. While the
/// shape changes, the larger one counts. `None` for levels without redundancy.
///
/// # Panics
/// As [`Superblock::change`].
#[must_use]
pub fn sync_size(superblock: &Superblock) -> Option<Sectors> {
    match superblock.change() {
        Some(change) => sync_size_of(&change.old, change.size).max(sync_size_of(&change.new, change.size)),
        None => sync_size_of(&superblock.shape(), superblock.size),
    }
}

/// `size`: sectors of a member.
fn sync_size_of(shape: &ShapeFields, size: Sectors) -> Option<Sectors> {
    match shape.level {
        MdLevel::Linear | MdLevel::Raid0 => None,
        MdLevel::Raid1 | MdLevel::Raid4 | MdLevel::Raid5 | MdLevel::Raid6 => Some(size),
        MdLevel::Raid10 => {
            let layout = Raid10Layout::from_number(shape.layout)?;
            let chunks = size / shape.chunk / u64::from(layout.far);
            let chunks = chunks.checked_mul(u64::from(shape.raid_disks))? / u64::from(layout.near);
            shape.chunk.checked_mul(chunks)
        }
    }
}

/// Number and places of the bits of a bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BitmapGeometry {
    /// Sectors that one bit covers, a power of two.
    pub chunk: Sectors,
    /// Number of bits.
    pub bits: u64,
    /// Number of 4 KiB pages that header and bits occupy.
    pub pages: u64,
}

impl BitmapGeometry {
    /// The bits that cover `sync_size`, one bit for each `chunk`.
    ///
    /// # Panics
    /// `chunk` is 0.
    #[must_use]
    pub const fn new(sync_size: Sectors, chunk: Sectors) -> Self {
        let bits = sync_size.0.div_ceil(chunk.0);
        let bytes = BITMAP_HEADER_BYTES as u64 + bits.div_ceil(8);
        Self { chunk, bits, pages: bytes.div_ceil(PAGE) }
    }

    /// Number of bytes of header and bits.
    #[must_use]
    pub const fn bytes(&self) -> Bytes {
        Bytes(BITMAP_HEADER_BYTES as u64 + self.bits.div_ceil(8))
    }
    /// Number of sectors of header and bits.
    #[must_use]
    pub const fn sectors(&self) -> Sectors {
        self.bytes().sectors_ceil()
    }
    /// Number of memory pages in which md would keep counters; `/proc/mdstat` shows this number.
    #[must_use]
    pub const fn counter_pages(&self) -> u64 {
        self.bits.div_ceil(COUNTERS_PER_PAGE)
    }
    /// The index of the bit for the chunk that contains this sector.
    #[must_use]
    pub const fn bit_of(&self, sector: Sectors) -> u64 {
        sector.0 / self.chunk.0
    }
    /// The place of a bit: its byte from the start of the bitmap, and its mask in that byte.
    ///
    /// # Panics
    /// The bitmap has no such bit.
    #[must_use]
    pub const fn place_of(&self, bit: u64) -> (Bytes, u8) {
        assert!(bit < self.bits, "the bitmap does not have this bit");
        (Bytes(BITMAP_HEADER_BYTES as u64 + bit / 8), 1 << (bit % 8))
    }
    /// The indices of the set bits in a part of the bitmap. The part starts at byte `from` of the bitmap. Header bytes,
    /// and bits after the last chunk, are skipped.
    pub fn set_bits<'a>(&self, from: Bytes, stretch: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
        let bits = self.bits;
        let numbered = stretch.iter().enumerate();
        numbered
            .filter_map(move |(index, &byte)| {
                let place = from.0.checked_add(index as u64)?.checked_sub(BITMAP_HEADER_BYTES as u64)?;
                Some((place.checked_mul(8)?, byte))
            })
            .flat_map(|(first, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| first + bit))
            .take_while(move |&bit| bit < bits)
    }
}

/// The chunk for a new bitmap: [`BITMAP_CHUNK_DEFAULT`], doubled until header and bits fit into `room`.
///
/// # Errors
/// [`BitmapError::DoesNotFit`] if even the largest chunk that the header can express (2 GiB) gives too many bits.
pub fn chunk_for(sync_size: Sectors, room: Sectors) -> Result<u32, BitmapError> {
    let mut chunk = BITMAP_CHUNK_DEFAULT;
    loop {
        let need = BitmapGeometry::new(sync_size, chunk.sectors_floor()).sectors();
        if need <= room {
            return u32::try_from(chunk.0).map_err(|_| BitmapError::DoesNotFit { need, room });
        }
        if chunk.0 > u64::from(u32::MAX / 2) {
            return Err(BitmapError::DoesNotFit { need, room });
        }
        chunk = chunk * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_follow_the_header_without_a_gap_at_page_ends() {
        let geometry = BitmapGeometry::new(Sectors(8 * 40_000), Sectors(8));
        assert_eq!((geometry.bits, geometry.pages, geometry.counter_pages()), (40_000, 2, 20));
        assert_eq!(geometry.place_of(0), (Bytes(256), 1));
        assert_eq!(geometry.place_of(30_719), (Bytes(4095), 0x80));
        assert_eq!(geometry.place_of(30_720), (Bytes(4096), 1));
        assert_eq!(geometry.bit_of(Sectors(15)), 1);
    }

    #[test]
    fn the_chunk_grows_until_the_bits_fit() {
        assert_eq!(chunk_for(Sectors(1 << 31), Sectors(8)), Ok(64 << 20));
        let bits_in_a_page = (4096 - 256) * 8;
        let full = Bytes::mib(64).sectors_floor() * bits_in_a_page;
        assert_eq!(chunk_for(full, Sectors(8)), Ok(64 << 20));
        assert_eq!(chunk_for(full + Sectors(1), Sectors(8)), Ok(128 << 20));
        assert!(matches!(chunk_for(Sectors::MAX, Sectors(8)), Err(BitmapError::DoesNotFit { .. })));
        assert!(matches!(chunk_for(Sectors(8), Sectors(0)), Err(BitmapError::DoesNotFit { .. })));
    }

    #[test]
    fn only_the_superblocks_event_or_the_next_is_believed() {
        assert!(events_are_acceptable(7, 7));
        assert!(events_are_acceptable(8, 7));
        assert!(!events_are_acceptable(6, 7));
        assert!(!events_are_acceptable(9, 7));
        assert!(!events_are_acceptable(0, u64::MAX));
    }

    #[test]
    fn versions_of_others_are_refused_by_name() {
        let mut bytes = [0; 256];
        BitmapHeader::new(Uuid([7; 16]), 3, Sectors(100), 4096).encode(&mut bytes);
        assert_eq!(BitmapHeader::decode(&bytes).map(|header| header.geometry().bits), Ok(13));
        for (version, error) in
            [(5, BitmapError::Clustered), (6, BitmapError::Lockless), (7, BitmapError::UnknownVersion(7))]
        {
            bytes[at::VERSION] = version;
            assert_eq!(BitmapHeader::decode(&bytes), Err(error));
        }
        assert_eq!(BitmapHeader::decode(&bytes[..255]), Err(BitmapError::Truncated(255)));
    }
}
