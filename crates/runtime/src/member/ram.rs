//! A member in memory: for tests, demonstrations and measurements. Its content ends with the process.

use super::known_content::{of_blocks, KnownContent};
use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_sys::{FramePool, PoolRange};
use openraid_units::{BlockSize, Bytes, DriveLba, Nanos, Sectors};

/// The memory.
pub struct RamDisk {
    bytes: Vec<u8>,
}

impl RamDisk {
    /// A memory of this size, in whole sectors, filled with zeroes. The memory is allocated at the first write.
    #[must_use]
    pub fn new(size: Sectors) -> Self {
        Self { bytes: vec![0; index(size.bytes().get())] }
    }

    /// The engine's facts about the drive.
    #[must_use]
    pub fn info(&self) -> DriveInfo {
        DriveInfo {
            capacity: Bytes(self.bytes.len() as u64).sectors_floor(),
            block: BlockSize::B512,
            rotational: false,
            discard: true,
            discard_zeroes: true,
            write_zeroes: true,
            room_wait: Nanos::ZERO,
            flush_waits: false,
        }
    }

    /// Carry out a command at once. `metadata` is the payload if it is not in frames.
    ///
    /// # Errors
    /// [`DriveError::Protocol`] for a range beyond the end.
    #[inline]
    pub fn execute(&mut self, command: &DriveCommand, metadata: &[u8], pool: &mut FramePool) -> Result<(), DriveError> {
        if command.op == DriveOp::Flush {
            return Ok(());
        }
        let len = command.len.bytes();
        let bytes = self.range(command.lba, len).ok_or(DriveError::Protocol)?;
        match (command.op, command.data) {
            (DriveOp::Read, Data::Frames(at)) => pool.slice_mut(PoolRange::new(at, len)).copy_from_slice(bytes),
            (DriveOp::Write { .. }, Data::Frames(at)) => bytes.copy_from_slice(pool.slice(PoolRange::new(at, len))),
            (DriveOp::Write { .. }, Data::Metadata(_)) => bytes.copy_from_slice(metadata),
            (DriveOp::Discard | DriveOp::WriteZeroes { .. }, _) => bytes.fill(0),
            _ => panic!("bug: a command without its payload: {command:?}"),
        }
        Ok(())
    }

    fn range(&mut self, lba: DriveLba, len: Bytes) -> Option<&mut [u8]> {
        let start = lba.get().checked_mul(512)?;
        let end = start.checked_add(len.get())?;
        self.bytes.get_mut(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    }

    /// The content of a range, which the disk has.
    #[must_use]
    pub fn known_content(&self, lba: DriveLba, len: Sectors) -> KnownContent {
        let is_zero = |block: u64| {
            let start = index(block * 4096);
            let end = self.bytes.len().min(start + 4096);
            self.bytes.get(start..end).is_some_and(|block| block == &[0; 4096][..end - start])
        };
        of_blocks(lba.get(), len, is_zero)
    }

    /// Read a member that is not in service, for probing.
    ///
    /// # Errors
    /// The range ends beyond the disk.
    pub fn read_at(&self, lba: DriveLba, into: &mut [u8]) -> Result<(), DriveError> {
        let start = usize::try_from(lba.get().saturating_mul(512)).unwrap_or(usize::MAX);
        let end = start.checked_add(into.len()).ok_or(DriveError::Protocol)?;
        into.copy_from_slice(self.bytes.get(start..end).ok_or(DriveError::Protocol)?);
        Ok(())
    }
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a size that memory can have")
}

impl std::fmt::Debug for RamDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RamDisk({} bytes)", self.bytes.len())
    }
}
