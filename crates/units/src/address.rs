//! Places: one type for each address space.
//!
//! ```text
//!  host byte        ArrayOffset   bytes from the start of the exported array
//!    | volume       SetLba        sectors from the start of one redundancy set's data
//!    | geometry     MemberLba     sectors from the start of one member's data area
//!    | data_offset  DriveLba      sectors from the start of the drive
//! ```

use crate::size::{Bytes, Sectors, SECTOR_SHIFT};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

macro_rules! address {
    ($(#[$doc:meta])* $name:ident, $amount:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The first address of the space.
            pub const ZERO: Self = Self(0);
            /// The plain number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
            /// Distance from the start of the space.
            #[must_use]
            pub const fn offset(self) -> $amount {
                $amount(self.0)
            }
        }
        impl Add<$amount> for $name {
            type Output = Self;
            fn add(self, by: $amount) -> Self {
                Self(self.0 + by.0)
            }
        }
        impl AddAssign<$amount> for $name {
            fn add_assign(&mut self, by: $amount) {
                self.0 += by.0;
            }
        }
        impl Sub for $name {
            type Output = $amount;
            fn sub(self, earlier: Self) -> $amount {
                $amount(self.0 - earlier.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({}", $unit, ")"), self.0)
            }
        }
    };
}

address!(
    /// Bytes from the start of an exported array. Hosts may address single bytes (NBD does).
    ArrayOffset, Bytes, "B"
);
address!(
    /// Sectors from the start of the data of one redundancy set (one md array, or one span of a nested one).
    SetLba, Sectors, "s"
);
address!(
    /// Sectors from the start of the data area of one member (after its `data_offset`).
    MemberLba, Sectors, "s"
);
address!(
    /// Sectors from the start of a drive, the address a drive command carries.
    DriveLba, Sectors, "s"
);
address!(
    /// Bytes from the start of the frame pool: the memory that all payload passes through.
    PoolOffset, Bytes, "B"
);

impl SetLba {
    /// The same place in bytes.
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 << SECTOR_SHIFT)
    }
}
