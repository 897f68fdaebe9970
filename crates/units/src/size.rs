//! Amounts: bytes, 512-byte sectors, logical block sizes.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// log2 of [`SECTOR_BYTES`].
pub const SECTOR_SHIFT: u32 = 9;
/// Bytes in one sector. Fixed: md metadata and the Linux block layer count in 512-byte sectors on every drive.
pub const SECTOR_BYTES: u64 = 1 << SECTOR_SHIFT;

/// An amount of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

/// An amount of 512-byte sectors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sectors(pub u64);

macro_rules! amount {
    ($name:ident) => {
        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0);
            /// The largest amount that can be written down; md uses it for "all of it".
            pub const MAX: Self = Self(u64::MAX);

            /// The plain number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
            /// Is this nothing?
            #[must_use]
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
            /// Largest multiple of `unit` that is not above `self`. `unit` must not be zero.
            #[must_use]
            pub const fn round_down(self, unit: Self) -> Self {
                Self(self.0 - self.0 % unit.0)
            }
            /// Smallest multiple of `unit` that is not below `self`; `None` on overflow.
            #[must_use]
            pub const fn checked_round_up(self, unit: Self) -> Option<Self> {
                match self.0.checked_next_multiple_of(unit.0) {
                    Some(n) => Some(Self(n)),
                    None => None,
                }
            }
            /// `self - other`, or nothing if `other` is larger.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
            /// `self + other`, `None` on overflow.
            #[must_use]
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(n) => Some(Self(n)),
                    None => None,
                }
            }
            /// `self * factor`, `None` on overflow.
            #[must_use]
            pub const fn checked_mul(self, factor: u64) -> Option<Self> {
                match self.0.checked_mul(factor) {
                    Some(n) => Some(Self(n)),
                    None => None,
                }
            }
        }
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
        impl Mul<u64> for $name {
            type Output = Self;
            fn mul(self, factor: u64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Div<u64> for $name {
            type Output = Self;
            fn div(self, divisor: u64) -> Self {
                Self(self.0 / divisor)
            }
        }
        impl Div for $name {
            type Output = u64;
            fn div(self, divisor: Self) -> u64 {
                self.0 / divisor.0
            }
        }
        impl Rem for $name {
            type Output = Self;
            fn rem(self, divisor: Self) -> Self {
                Self(self.0 % divisor.0)
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, |a, b| a + b)
            }
        }
    };
}
amount!(Bytes);
amount!(Sectors);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}
/// A size for people, rounded down to a tenth of its unit: `1.5 GiB`, `64 KiB`, `512 bytes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadableBytes(Bytes);

impl fmt::Display for ReadableBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let bytes = self.0 .0;
        let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
            return write!(f, "{bytes} bytes");
        };
        let tenths = (u128::from(bytes) * 10) >> shift;
        match (tenths / 10, tenths % 10) {
            (whole, 0) => write!(f, "{whole} {unit}"),
            (whole, tenth) => write!(f, "{whole}.{tenth} {unit}"),
        }
    }
}

/// An amount of sectors for people, with the exact number: `197.5 MiB (404480 sectors)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadableSectors(Sectors);

impl fmt::Display for ReadableSectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 .0.checked_mul(SECTOR_BYTES) {
            Some(bytes) if bytes > 0 => write!(f, "{} ({})", Bytes(bytes).readable(), self.0),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Debug for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}
impl fmt::Display for Sectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "sector" } else { "sectors" })
    }
}

impl Bytes {
    /// As people read it.
    #[must_use]
    pub const fn readable(self) -> ReadableBytes {
        ReadableBytes(self)
    }
    /// `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }
    /// `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }
    /// `n` GiB.
    #[must_use]
    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
    /// Whole sectors in this amount, the rest dropped.
    #[must_use]
    pub const fn sectors_floor(self) -> Sectors {
        Sectors(self.0 >> SECTOR_SHIFT)
    }
    /// Sectors needed to hold this amount.
    #[must_use]
    pub const fn sectors_ceil(self) -> Sectors {
        Sectors(self.0.div_ceil(SECTOR_BYTES))
    }
}

impl Sectors {
    /// As people read it, and exactly.
    #[must_use]
    pub const fn readable(self) -> ReadableSectors {
        ReadableSectors(self)
    }
    /// This amount in bytes. Panics above 2^55 sectors, which no member can have.
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR_BYTES)
    }
    /// Sectors in `n` KiB.
    #[must_use]
    pub const fn kib(n: u64) -> Self {
        Self(n << 1)
    }
    /// Sectors in `n` MiB.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n << 11)
    }
}

/// The logical block size of a drive or array: the smallest unit that can be read or written, a power of two
/// from 512 to 4096 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockSize(u32);

/// A logical block size that no supported drive has; the number of bytes that was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockSizeError(pub u64);

impl fmt::Display for BlockSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "logical block size of {} bytes is not supported (512, 1024, 2048 and 4096 are)", self.0)
    }
}

impl BlockSize {
    /// 512-byte blocks (512n and 512e drives).
    pub const B512: Self = Self(512);
    /// 4096-byte blocks (4Kn drives).
    pub const B4096: Self = Self(4096);

    /// Parse a size in bytes.
    ///
    /// # Errors
    /// Anything but a power of two from 512 to 4096.
    pub const fn new(bytes: u64) -> Result<Self, BlockSizeError> {
        match bytes {
            512 => Ok(Self(512)),
            1024 => Ok(Self(1024)),
            2048 => Ok(Self(2048)),
            4096 => Ok(Self(4096)),
            _ => Err(BlockSizeError(bytes)),
        }
    }
    /// This size in bytes.
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 as u64)
    }
    /// This size in sectors, 1 to 8.
    #[must_use]
    pub const fn sectors(self) -> Sectors {
        Sectors((self.0 >> SECTOR_SHIFT) as u64)
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;

    #[test]
    fn rounding_is_exact_at_the_edges() {
        assert_eq!(Sectors(7).round_down(Sectors(8)), Sectors(0));
        assert_eq!(Sectors(8).round_down(Sectors(8)), Sectors(8));
        assert_eq!(Sectors(9).checked_round_up(Sectors(8)), Some(Sectors(16)));
        assert_eq!(Sectors::MAX.checked_round_up(Sectors(8)), None);
        assert_eq!(Bytes(513).sectors_ceil(), Sectors(2));
        assert_eq!(Bytes(513).sectors_floor(), Sectors(1));
    }

    #[test]
    fn sectors_for_people_are_exact_too_and_never_overflow() {
        let text = |sectors: u64| alloc::format!("{}", Sectors(sectors).readable());
        assert_eq!(text(404_480), "197.5 MiB (404480 sectors)");
        assert_eq!(text(1), "512 bytes (1 sector)");
        assert_eq!(text(0), "0 sectors");
        assert_eq!(text(u64::MAX), "18446744073709551615 sectors");
    }

    #[test]
    fn block_sizes_outside_the_list_are_refused() {
        assert_eq!(BlockSize::new(0), Err(BlockSizeError(0)));
        assert_eq!(BlockSize::new(520), Err(BlockSizeError(520)));
        assert_eq!(BlockSize::new(8192), Err(BlockSizeError(8192)));
        assert_eq!(BlockSize::new(4096).map(BlockSize::sectors), Ok(Sectors(8)));
    }
}
