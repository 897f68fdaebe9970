//! A disk in memory that several connections share.

use openraid_nbd::{BlockSizes, ContextSet, ExportFlags, ExportInfo, StatusExtent};
use openraid_units::Bytes;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Unit of extents in bytes.
pub const STATUS_UNIT: usize = 64 << 10;

pub struct Disk {
    bytes: RwLock<Vec<u8>>,
}

impl Disk {
    pub fn new(size: usize) -> Self {
        Self { bytes: RwLock::new(vec![0; size]) }
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Consecutive extents from `offset` with a total length of `length` bytes. A unit that consists only of zeroes is
    /// a hole.
    pub fn extents(&self, offset: usize, length: usize) -> Vec<StatusExtent> {
        let bytes = self.read();
        let (mut at, end, mut out) = (offset, offset + length, Vec::new());
        while at < end {
            let stop = ((at / STATUS_UNIT + 1) * STATUS_UNIT).min(end);
            let status = if is_zero(&bytes[at..stop]) { StatusExtent::HOLE | StatusExtent::ZERO } else { 0 };
            out.push(StatusExtent { length: u32::try_from(stop - at).expect("a unit is small"), status });
            at = stop;
        }
        out
    }
}

pub fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// An export with all abilities.
pub fn export(name: &str, size: usize) -> ExportInfo {
    let flags = [
        ExportFlags::FLUSH,
        ExportFlags::FUA,
        ExportFlags::TRIM,
        ExportFlags::WRITE_ZEROES,
        ExportFlags::FAST_ZERO,
        ExportFlags::DONT_FRAGMENT,
        ExportFlags::MULTI_CONN,
        ExportFlags::CACHE,
    ];
    ExportInfo {
        name: name.into(),
        description: "a disk in memory".into(),
        size: Bytes(size as u64),
        flags: flags.into_iter().fold(ExportFlags::NONE, ExportFlags::with),
        blocks: BlockSizes::new(1, 4096, 32 << 20).expect("sizes the protocol allows"),
        contexts: ContextSet::ALL,
        refused: None,
    }
}
