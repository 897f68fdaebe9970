//! Requests of virtio-blk, and the configuration space of a disk.
//!
//! ```text
//!  request: kind u32, 0 u32, sector u64 | data | status u8        range: sector u64, sectors u32, flags u32
//! ```

use crate::bytes::{le32, le64};
use crate::chain::Chain;
use crate::limits::{QUEUES_MAX, RANGE_SECTORS_MAX, REQUEST_BYTES_MAX, SEGMENTS_MAX, SEGMENT_BYTES_MAX};
use crate::memory::{GuestMemory, SharedBytes};
use crate::violation::RingFault;

/// Features of a disk, by bit.
pub mod feature {
    pub const SEGMENT_BYTES_MAX: u64 = 1 << 1;
    pub const SEGMENTS_MAX: u64 = 1 << 2;
    pub const READ_ONLY: u64 = 1 << 5;
    pub const BLOCK_SIZE: u64 = 1 << 6;
    pub const FLUSH: u64 = 1 << 9;
    pub const TOPOLOGY: u64 = 1 << 10;
    pub const QUEUES: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const WRITE_ZEROES: u64 = 1 << 14;
}

/// Bytes of a request's head.
const HEAD_BYTES: u64 = HEAD as u64;
const HEAD: usize = 16;
/// Bytes of the name of a disk.
const SERIAL_BYTES: usize = 20;
/// Bytes of a range to discard or to zero. A request has one.
const RANGE_BYTES: u64 = RANGE as u64;
const RANGE: usize = 16;
const SECTOR_BYTES: u64 = 512;

/// Kinds of requests.
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const GET_ID: u32 = 8;
const DISCARD: u32 = 11;
const WRITE_ZEROES: u32 = 13;
/// A flag of a range: the space may be freed.
const UNMAP: u32 = 1;

/// A disk, as guests see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VhostDisk {
    /// Bytes, a multiple of 512.
    pub size: u64,
    /// Is writing refused?
    pub is_read_only: bool,
    /// Bytes of a physical block, a power of two from 512 on.
    pub physical_block: u32,
    /// Size and alignment, in bytes, from which requests are efficient.
    pub preferred: u32,
    /// Its name, of which guests see 20 bytes.
    pub serial: String,
}

impl VhostDisk {
    /// The features that a guest may have.
    pub(crate) fn features(&self) -> u64 {
        let all = feature::SEGMENT_BYTES_MAX
            | feature::SEGMENTS_MAX
            | feature::BLOCK_SIZE
            | feature::FLUSH
            | feature::TOPOLOGY
            | feature::QUEUES
            | feature::DISCARD
            | feature::WRITE_ZEROES;
        all | if self.is_read_only { feature::READ_ONLY } else { 0 }
    }

    /// The configuration space.
    pub(crate) fn config(&self) -> [u8; 60] {
        let mut config = [0; 60];
        let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
        let blocks = |bytes: u32| bytes / 512;
        put(0, &(self.size / SECTOR_BYTES).to_le_bytes());
        put(8, &SEGMENT_BYTES_MAX.to_le_bytes());
        put(12, &SEGMENTS_MAX.to_le_bytes());
        put(20, &512u32.to_le_bytes());
        put(24, &[u8::try_from(blocks(self.physical_block).max(1).ilog2()).expect("below 32")]);
        let smallest = u16::try_from(blocks(self.physical_block.max(4096))).unwrap_or(u16::MAX);
        put(26, &smallest.to_le_bytes());
        put(28, &blocks(self.preferred).to_le_bytes());
        put(34, &QUEUES_MAX.to_le_bytes());
        put(36, &RANGE_SECTORS_MAX.to_le_bytes());
        put(40, &1u32.to_le_bytes());
        put(44, &blocks(self.physical_block).max(1).to_le_bytes());
        put(48, &RANGE_SECTORS_MAX.to_le_bytes());
        put(52, &1u32.to_le_bytes());
        put(56, &[1]);
        config
    }

    fn serial_bytes(&self) -> [u8; SERIAL_BYTES] {
        let mut bytes = [0; SERIAL_BYTES];
        let len = self.serial.len().min(SERIAL_BYTES);
        bytes[..len].copy_from_slice(&self.serial.as_bytes()[..len]);
        bytes
    }
}

/// The name of a request in its session: queue, head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestId(pub u64);

/// The kind of a command for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskCommandKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// All ended writes become durable.
    Flush,
    /// The range is not needed.
    Discard,
    /// The range reads as zero.
    WriteZeroes {
        /// May the space be freed?
        may_discard: bool,
    },
}

impl DiskCommandKind {
    /// Does it change data?
    const fn is_change(self) -> bool {
        match self {
            Self::Write | Self::Discard | Self::WriteZeroes { .. } => true,
            Self::Read | Self::Flush => false,
        }
    }
}

/// A request for the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockCommand {
    /// The name of the request in its session.
    pub id: RequestId,
    /// The work for the engine.
    pub kind: DiskCommandKind,
    /// First byte.
    pub offset: u64,
    /// Number of bytes of the range.
    pub len: u64,
    /// Does its end mean that it is on stable media? Guests that know flushes do without.
    pub fua: bool,
}

/// The end of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskOutcome {
    /// It is done.
    Done,
    /// It has failed.
    Failed,
    /// There are no such requests.
    Unsupported,
}

impl DiskOutcome {
    fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Unsupported => 2,
        }
    }
}

/// A request that was taken from a ring.
#[derive(Debug)]
pub struct DiskRequest {
    chain: Chain,
    /// Bytes of a read, or of the disk's name.
    wanted: u64,
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestContent {
    /// Work for the engine: kind, first byte, bytes.
    Command(DiskCommandKind, u64, u64),
    /// Nothing else is needed for the answer.
    Answered(DiskOutcome),
}

impl DiskRequest {
    /// Look at a chain of a guest that has these features.
    pub fn new<M: SharedBytes>(
        chain: Chain,
        memory: &GuestMemory<M>,
        disk: &VhostDisk,
        features: u64,
    ) -> Result<(Self, RequestContent), RingFault> {
        if chain.readable_bytes() < HEAD_BYTES || chain.writable_bytes() == 0 {
            return Err(RingFault::NoRequest);
        }
        let (payload, room) = (chain.readable_bytes() - HEAD_BYTES, chain.writable_bytes() - 1);
        let mut head = [0; HEAD];
        chain.read(memory, 0, &mut head)?;
        let offset = le64(&head, 8).checked_mul(SECTOR_BYTES);
        let (ranges, longest) = chain.payload_ranges(HEAD_BYTES, 1);
        let keeps_to_sizes = features & feature::SEGMENT_BYTES_MAX == 0 || longest <= SEGMENT_BYTES_MAX as usize;
        let fits = ranges <= SEGMENTS_MAX as usize && keeps_to_sizes;
        let mut request = Self { chain, wanted: 0 };
        let is_whole = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES) && bytes <= REQUEST_BYTES_MAX && fits;
        let failed = RequestContent::Answered(DiskOutcome::Failed);
        let asked = match (le32(&head, 0), offset) {
            (READ, Some(offset)) if is_whole(room) => {
                request.wanted = room;
                RequestContent::Command(DiskCommandKind::Read, offset, room)
            }
            (WRITE, Some(offset)) if is_whole(payload) => {
                RequestContent::Command(DiskCommandKind::Write, offset, payload)
            }
            (READ | WRITE, _) => failed,
            (FLUSH, _) => RequestContent::Command(DiskCommandKind::Flush, 0, 0),
            (GET_ID, _) => {
                request.wanted = room.min(SERIAL_BYTES as u64);
                let len = usize::try_from(request.wanted).expect("at most 20");
                request.chain.write(memory, 0, &disk.serial_bytes()[..len])?;
                RequestContent::Answered(DiskOutcome::Done)
            }
            (kind @ (DISCARD | WRITE_ZEROES), _) if payload == RANGE_BYTES => request.range(memory, kind)?,
            (DISCARD | WRITE_ZEROES, _) => failed,
            _ => RequestContent::Answered(DiskOutcome::Unsupported),
        };
        match asked {
            // The feature tells guests, and a guest need not obey.
            RequestContent::Command(kind, ..) if disk.is_read_only && kind.is_change() => Ok((request, failed)),
            RequestContent::Command(DiskCommandKind::Read | DiskCommandKind::Write, _, 0) => {
                Ok((request, RequestContent::Answered(DiskOutcome::Done)))
            }
            asked => Ok((request, asked)),
        }
    }

    fn range<M: SharedBytes>(&self, memory: &GuestMemory<M>, kind: u32) -> Result<RequestContent, RingFault> {
        let mut range = [0; RANGE];
        self.chain.read(memory, HEAD_BYTES, &mut range)?;
        let (sectors, flags) = (le32(&range, 8), le32(&range, 12));
        let kind = match (kind, flags) {
            (DISCARD, 0) => DiskCommandKind::Discard,
            (WRITE_ZEROES, 0 | UNMAP) => DiskCommandKind::WriteZeroes { may_discard: flags == UNMAP },
            _ => return Ok(RequestContent::Answered(DiskOutcome::Unsupported)),
        };
        Ok(match le64(&range, 0).checked_mul(SECTOR_BYTES) {
            Some(_) if sectors == 0 => RequestContent::Answered(DiskOutcome::Done),
            Some(offset) if sectors <= RANGE_SECTORS_MAX => {
                RequestContent::Command(kind, offset, u64::from(sectors) * SECTOR_BYTES)
            }
            _ => RequestContent::Answered(DiskOutcome::Failed),
        })
    }

    /// Copy payload of a write.
    pub fn payload<M: SharedBytes>(
        &self,
        memory: &GuestMemory<M>,
        first: u64,
        into: &mut [u8],
    ) -> Result<(), RingFault> {
        self.chain.read(memory, HEAD_BYTES + first, into)
    }

    /// Copy data of a read.
    pub fn data<M: SharedBytes>(&self, memory: &GuestMemory<M>, first: u64, from: &[u8]) -> Result<(), RingFault> {
        self.chain.write(memory, first, from)
    }

    /// Write the status. Returns the number of bytes that the guest is told.
    pub fn end<M: SharedBytes>(&self, memory: &GuestMemory<M>, outcome: DiskOutcome) -> Result<u32, RingFault> {
        self.chain.write(memory, self.chain.writable_bytes() - 1, &[outcome.status()])?;
        let data = if outcome == DiskOutcome::Done { self.wanted } else { 0 };
        Ok(u32::try_from(data + 1).expect("a request is below 4 GiB"))
    }
}
