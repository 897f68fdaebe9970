//! How the cache divides the addresses of a set: lines, and the units that are written together.

use crate::geometry::Geometry;
use crate::limits::FRAME_BYTES;
use openraid_units::{Sectors, SetLba, StripeIndex};

/// Sets without parity collect dirty lines in ranges of this many sectors: 128 KiB, one large write.
pub(crate) const STRETCH_SECTORS: u64 = 256;

/// The dirty unit of a place of a set, and the unit's size in sectors of data.
pub(crate) fn unit_at(geometry: &Geometry, at: SetLba) -> (u64, u64) {
    match geometry {
        Geometry::Parity(parity) => (parity.locate(at).0 .0, parity.full_stripe().get()),
        _ => (at.get() / STRETCH_SECTORS, STRETCH_SECTORS),
    }
}

/// First sector of a dirty unit.
#[inline]
pub(crate) fn unit_start(geometry: &Geometry, number: u64) -> SetLba {
    match geometry {
        Geometry::Parity(parity) => parity.set_lba(StripeIndex(number), 0, Sectors::ZERO),
        _ => SetLba(number * STRETCH_SECTORS),
    }
}

/// First sector of a dirty unit, and its sectors of data.
pub(crate) fn unit_extent(geometry: &Geometry, number: u64) -> (SetLba, Sectors) {
    let start = unit_start(geometry, number);
    let len = match geometry {
        Geometry::Parity(parity) => parity.full_stripe(),
        _ => Sectors(STRETCH_SECTORS).min(geometry.capacity() - Sectors(start.get())),
    };
    (start, len)
}

/// Can lines of a set with this geometry be dirty? Units must consist of whole lines.
pub(crate) fn is_cacheable(geometry: &Geometry) -> bool {
    match geometry {
        Geometry::Parity(parity) => parity.chunk().get().is_multiple_of(LINE_SECTORS),
        _ => true,
    }
}

/// Sectors of a line.
pub(crate) const LINE_SECTORS: u64 = FRAME_BYTES / openraid_units::SECTOR_BYTES;

/// The lines of an extent, each with its first sector in the extent and the sector after its last one.
pub(crate) fn lines_of(at: SetLba, len: Sectors) -> impl Iterator<Item = (u64, u64, u64)> {
    let (start, end) = (at.get(), at.get() + len.get());
    (start / LINE_SECTORS..end.div_ceil(LINE_SECTORS)).map(move |number| {
        // No line of the extent begins after its end, so the shift loses nothing. It costs less than a multiplication.
        let line = number << LINE_SECTORS.trailing_zeros();
        (number, start.saturating_sub(line), (end - line).min(LINE_SECTORS))
    })
}
