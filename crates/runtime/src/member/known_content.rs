//! What a member knows of its content without I/O: where zeroes take no room.

use openraid_units::{DriveId, DriveLba, Sectors};

/// Asks a member for the content of a range that it has.
pub type MemberQuestion<'a> = &'a dyn Fn(DriveId, DriveLba, Sectors) -> KnownContent;

/// The content from a place on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownContent {
    /// The member knows nothing of its content.
    Unknown,
    /// This many sectors are zeroes.
    Zeroes(Sectors),
    /// This many sectors may be anything.
    Data(Sectors),
}

/// The content of `len` sectors from sector `at` on, of which a whole block of 8 sectors is zero where `is_zero` says so for its number.
pub fn of_blocks(at: u64, len: Sectors, mut is_zero: impl FnMut(u64) -> bool) -> KnownContent {
    const BLOCK: u64 = 8;
    let (first, end) = (at / BLOCK, (at + len.get()).div_ceil(BLOCK));
    let zero = is_zero(first);
    let next = (first + 1..end).find(|block| is_zero(*block) != zero).unwrap_or(end);
    let len = Sectors((next * BLOCK - at).min(len.get()));
    if zero {
        KnownContent::Zeroes(len)
    } else {
        KnownContent::Data(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_zeroes_and_of_data_end_at_blocks_or_at_the_end() {
        // Blocks 0, 1 and 4 have data.
        let of = |at, len| of_blocks(at, Sectors(len), |block| ![0, 1, 4].contains(&block));
        assert_eq!(of(0, 100), KnownContent::Data(Sectors(16)));
        assert_eq!(of(5, 4), KnownContent::Data(Sectors(4)));
        assert_eq!(of(16, 100), KnownContent::Zeroes(Sectors(16)));
        assert_eq!(of(17, 3), KnownContent::Zeroes(Sectors(3)));
        assert_eq!(of(39, 9), KnownContent::Data(Sectors(1)));
        assert_eq!(of(41, 7), KnownContent::Zeroes(Sectors(7)));
    }
}
