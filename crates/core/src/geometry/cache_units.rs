//! How the cache divides the addresses of a set: lines, and the units that are written together.
//!
//! A unit is a stripe of a parity set, or a range of [`STRETCH_SECTORS`] of any other set. Its first sector is its name.

use crate::geometry::shape::Shape;
use crate::geometry::Geometry;
use crate::limits::FRAME_BYTES;
use openraid_units::{Sectors, SetLba};

/// Sets without parity collect dirty lines in ranges of this many sectors: 128 KiB, one large write.
pub(crate) const STRETCH_SECTORS: u64 = 256;

/// First sector of the dirty unit of a place of a set, and the unit's sectors of data.
#[inline(always)]
pub(crate) fn unit_at(shape: &Shape, at: SetLba) -> (SetLba, Sectors) {
    let reach = shape.at(at);
    match reach.geometry() {
        Geometry::Parity(parity) => (parity.stripe_start_of(at), parity.full_stripe()),
        _ => {
            let start = SetLba(at.get() - at.get() % STRETCH_SECTORS);
            (start, Sectors(STRETCH_SECTORS).min(reach.until() - start))
        }
    }
}

/// The sectors of data of the dirty unit that begins here.
#[inline(always)]
pub(crate) fn unit_sectors(shape: &Shape, start: SetLba) -> Sectors {
    let reach = shape.at(start);
    match reach.geometry() {
        Geometry::Parity(parity) => parity.full_stripe(),
        _ => Sectors(STRETCH_SECTORS).min(reach.until() - start),
    }
}

/// The number of the dirty unit that begins here, on its side, for readers.
pub(crate) fn unit_number(shape: &Shape, start: SetLba) -> u64 {
    start.get()
        / match shape.at(start).geometry() {
            Geometry::Parity(parity) => parity.full_stripe().get(),
            _ => STRETCH_SECTORS,
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
