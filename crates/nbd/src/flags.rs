//! The abilities of an export, as the 16 transmission flags.

use core::fmt;

/// A set of transmission flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExportFlags(u16);

impl ExportFlags {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// The field is valid; always sent.
    pub const HAS_FLAGS: Self = Self(1 << 0);
    /// The server refuses writes.
    pub const READ_ONLY: Self = Self(1 << 1);
    /// The server supports `FLUSH`.
    pub const FLUSH: Self = Self(1 << 2);
    /// The server supports the flag "force unit access" on every command.
    pub const FUA: Self = Self(1 << 3);
    /// Seeks take time, so clients may sort their requests.
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// The server supports `TRIM`.
    pub const TRIM: Self = Self(1 << 5);
    /// The server supports `WRITE_ZEROES` with `NO_HOLE`.
    pub const WRITE_ZEROES: Self = Self(1 << 6);
    /// Clients may request a read in one piece. Only sent with structured replies.
    pub const DONT_FRAGMENT: Self = Self(1 << 7);
    /// A flush on one connection covers acknowledged writes of all connections.
    pub const MULTI_CONN: Self = Self(1 << 8);
    /// The server supports `CACHE`.
    pub const CACHE: Self = Self(1 << 10);
    /// Clients may request that `WRITE_ZEROES` is fast or fails.
    pub const FAST_ZERO: Self = Self(1 << 11);

    const NAMES: [(Self, &'static str); 11] = [
        (Self::HAS_FLAGS, "has-flags"),
        (Self::READ_ONLY, "read-only"),
        (Self::FLUSH, "flush"),
        (Self::FUA, "fua"),
        (Self::ROTATIONAL, "rotational"),
        (Self::TRIM, "trim"),
        (Self::WRITE_ZEROES, "write-zeroes"),
        (Self::DONT_FRAGMENT, "dont-fragment"),
        (Self::MULTI_CONN, "multi-conn"),
        (Self::CACHE, "cache"),
        (Self::FAST_ZERO, "fast-zero"),
    ];

    /// The set in a received field. Unknown bits are kept and have no meaning.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
    /// The field to send.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// Are all flags of `other` in this set?
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// This set with `other` added.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The flags that may be sent to a client: a flag that requires an absent flag is removed.
    #[must_use]
    pub(crate) const fn negotiated(self, structured: bool) -> Self {
        let mut flags = self.with(Self::HAS_FLAGS);
        if !structured {
            flags = flags.without(Self::DONT_FRAGMENT);
        }
        if !flags.contains(Self::WRITE_ZEROES) {
            flags = flags.without(Self::FAST_ZERO);
        }
        flags
    }
}

impl fmt::Debug for ExportFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.iter().filter(|(flag, _)| self.contains(*flag)).map(|(_, name)| name);
        write!(f, "ExportFlags({:#06x}", self.0)?;
        names.into_iter().try_for_each(|name| write!(f, " {name}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dont_fragment_needs_structured_replies_and_fast_zero_needs_write_zeroes() {
        let all = ExportFlags::from_bits(0x0dff);
        assert_eq!(all.negotiated(true).bits(), 0x0dff);
        assert_eq!(all.negotiated(false).bits(), 0x0d7f);
        assert_eq!(ExportFlags::FAST_ZERO.negotiated(true), ExportFlags::HAS_FLAGS);
    }

    #[test]
    fn the_set_prints_its_names() {
        assert_eq!(format!("{:?}", ExportFlags::from_bits(5)), "ExportFlags(0x0005 has-flags flush)");
    }
}
