//! The lockless bitmap of Linux 6.18 (llbitmap), to be read only.
//!
//! ```text
//!  byte 0       header, the fields of the write-intent bitmap with version 6; the chunk is in sectors, not bytes
//!  byte 1024    one byte for each chunk, its state
//! ```
//!
//! The chunks cover the same sectors as the bits of a [`BitmapHeader`](crate::BitmapHeader). Parity is made when a
//! chunk is first written, not when the array is made: "clean" in a superblock says nothing about chunks that were
//! never written. The engine does not maintain these states, so it never writes to an array that has them.
//!
//! Source: the comments and structures of the kernel's `drivers/md/md-llbitmap.c`, Linux 6.18.

use crate::bitmap::{at, BitmapError, BitmapState, BITMAP_HEADER_BYTES, BITMAP_MAGIC};
use crate::identity::Uuid;
use crate::little_endian;
use openraid_units::{Bytes, Sectors};

/// Byte offset of the states.
pub const LOCKLESS_STATES_AT: usize = 1024;
/// Version of this bitmap.
const VERSION: u32 = 6;

/// The header of a lockless bitmap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocklessHeader {
    /// Identity of the set, as in its superblocks.
    pub set_uuid: Uuid,
    /// Event count of the superblock with which the bitmap was last written.
    pub events: u64,
    /// Sectors that the bitmap covers.
    pub sync_size: Sectors,
    /// State bits of the bitmap as a whole.
    pub state: BitmapState,
    /// Sectors that one state covers, a power of two.
    pub chunk: Sectors,
}

/// The state of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkState {
    /// Never written: its parity was never computed, or its copies may differ.
    Unwritten,
    /// In sync.
    Clean,
    /// A write was under way when the state was stored.
    Dirty,
    /// The chunk needs a resync.
    NeedSync,
    /// A resync of the chunk was under way.
    Syncing,
    /// The state is unknown.
    Unknown(u8),
}

impl From<u8> for ChunkState {
    fn from(byte: u8) -> Self {
        match byte {
            0 => Self::Unwritten,
            1 => Self::Clean,
            2 => Self::Dirty,
            3 => Self::NeedSync,
            4 => Self::Syncing,
            other => Self::Unknown(other),
        }
    }
}

/// Numbers of chunks by state.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LocklessCounts {
    /// All chunks.
    pub chunks: u64,
    /// Chunks that were never written.
    pub unwritten: u64,
    /// Chunks whose parity or copies may be out of sync.
    pub unsynced: u64,
}

impl LocklessHeader {
    /// Decodes the header at the start of a bitmap.
    ///
    /// # Errors
    /// The bitmap is of another kind, or its fields have impossible values.
    pub fn decode(bytes: &[u8]) -> Result<Self, BitmapError> {
        let bytes: &[u8; BITMAP_HEADER_BYTES] = bytes.first_chunk().ok_or(BitmapError::Truncated(bytes.len()))?;
        let (magic, version) = (little_endian::u32_at(bytes, at::MAGIC), little_endian::u32_at(bytes, at::VERSION));
        if magic != BITMAP_MAGIC {
            return Err(BitmapError::NoMagic(magic));
        }
        if version != VERSION {
            return Err(BitmapError::UnknownVersion(version));
        }
        let chunk = little_endian::u32_at(bytes, at::CHUNK);
        let state = BitmapState(little_endian::u32_at(bytes, at::STATE));
        // Before the first use the driver has not chosen the chunk.
        if !chunk.is_power_of_two() && !state.contains(BitmapState::FIRST_USE) {
            return Err(BitmapError::BadChunk(chunk));
        }
        Ok(Self {
            set_uuid: Uuid(little_endian::array(bytes, at::SET_UUID)),
            events: little_endian::u64_at(bytes, at::EVENTS),
            sync_size: Sectors(little_endian::u64_at(bytes, at::SYNC_SIZE)),
            state,
            chunk: Sectors(u64::from(chunk.max(1))),
        })
    }

    /// Encodes the header at the start of `out` and zeroes the bytes up to the states.
    ///
    /// # Panics
    /// `out` is shorter than [`LOCKLESS_STATES_AT`], or the chunk exceeds 32 bits.
    pub fn encode(&self, out: &mut [u8]) {
        let out = &mut out[..LOCKLESS_STATES_AT];
        out.fill(0);
        let chunk = u32::try_from(self.chunk.get()).expect("a chunk has fewer than 2^32 sectors");
        little_endian::put(out, at::MAGIC, &BITMAP_MAGIC.to_le_bytes());
        little_endian::put(out, at::VERSION, &VERSION.to_le_bytes());
        little_endian::put(out, at::SET_UUID, &self.set_uuid.0);
        little_endian::put(out, at::EVENTS, &self.events.to_le_bytes());
        little_endian::put(out, at::SYNC_SIZE, &self.sync_size.get().to_le_bytes());
        little_endian::put(out, at::STATE, &self.state.0.to_le_bytes());
        little_endian::put(out, at::CHUNK, &chunk.to_le_bytes());
    }

    /// Number of states.
    #[must_use]
    pub const fn chunks(&self) -> u64 {
        self.sync_size.get().div_ceil(self.chunk.get())
    }

    /// Size of the whole bitmap in bytes.
    #[must_use]
    pub const fn bytes(&self) -> Bytes {
        Bytes((LOCKLESS_STATES_AT as u64).saturating_add(self.chunks()))
    }

    /// Counts the states in `area`, which begins with the header. `events` is the superblock's event count. If the
    /// bitmap's own event count is lower, the bitmap is stale. The driver then treats every chunk that was ever written
    /// as not in sync, and this count does the same. If `area` is too short, the states that are missing count as not in
    /// sync.
    #[must_use]
    pub fn count(&self, area: &[u8], events: u64) -> LocklessCounts {
        let chunks = self.chunks();
        let bad = self.state.contains(BitmapState::STALE) || self.state.contains(BitmapState::WRITE_ERROR);
        let is_stale = bad || self.events < events;
        let all = usize::try_from(chunks).unwrap_or(usize::MAX);
        let states = area.get(LOCKLESS_STATES_AT..).unwrap_or_default();
        let states = &states[..states.len().min(all)];
        let mut counts = LocklessCounts { chunks, ..LocklessCounts::default() };
        if self.state.contains(BitmapState::FIRST_USE) {
            counts.unwritten = chunks;
            return counts;
        }
        for byte in states {
            match ChunkState::from(*byte) {
                ChunkState::Unwritten => counts.unwritten += 1,
                ChunkState::Clean if !is_stale => {}
                _ => counts.unsynced += 1,
            }
        }
        counts.unsynced += chunks - states.len() as u64;
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn header() -> LocklessHeader {
        let (set_uuid, state) = (Uuid([7; 16]), BitmapState(0));
        LocklessHeader { set_uuid, events: 9, sync_size: Sectors(1000), state, chunk: Sectors(128) }
    }

    #[test]
    fn a_header_comes_back_and_has_the_kernels_offsets() {
        let mut bytes = [0xff; LOCKLESS_STATES_AT];
        header().encode(&mut bytes);
        assert_eq!(LocklessHeader::decode(&bytes), Ok(header()));
        assert_eq!((&bytes[..8], bytes[52]), (&b"bitm\x06\0\0\0"[..], 128));
        assert_eq!(crate::BitmapHeader::decode(&bytes), Err(BitmapError::Lockless));
        assert_eq!((header().chunks(), header().bytes()), (8, Bytes(1032)));
    }

    #[test]
    fn only_chunks_that_are_clean_or_never_written_need_no_sync() {
        let mut area = vec![0; LOCKLESS_STATES_AT];
        header().encode(&mut area);
        area.extend([0, 1, 2, 3, 4, 5, 1, 0, 3, 3]);
        let counts = |header: LocklessHeader, len: usize, events| {
            let counts = header.count(&area[..len], events);
            (counts.chunks, counts.unwritten, counts.unsynced)
        };
        assert_eq!(counts(header(), area.len(), 9), (8, 2, 4));
        // If the bitmap is older than its superblock, only its state "never written" is trusted.
        assert_eq!(counts(header(), area.len(), 10), (8, 2, 6));
        assert_eq!(counts(LocklessHeader { state: BitmapState::STALE, ..header() }, area.len(), 9), (8, 2, 6));
        // Chunks after the end of the area are not in sync. Before the first use no state was ever written.
        assert_eq!(counts(header(), LOCKLESS_STATES_AT + 2, 9), (8, 1, 6));
        assert_eq!(counts(LocklessHeader { state: BitmapState::FIRST_USE, ..header() }, area.len(), 9), (8, 8, 0));
        let mut bad = area.clone();
        bad[52] = 3;
        assert_eq!(LocklessHeader::decode(&bad), Err(BitmapError::BadChunk(3)));
        assert_eq!(LocklessHeader::decode(&bad[..200]), Err(BitmapError::Truncated(200)));
    }
}
