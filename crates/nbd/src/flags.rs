//! The abilities of an export, as the 16 transmission flags.

use core::fmt;

/// A set of transmission flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ExportFlags(u16);

impl ExportFlags {
    /// No flag at all.
    pub const NONE: Self = Self(0);
    /// The field is valid; always sent.
    pub const HAS_FLAGS: Self = Self(1 << 0);
    /// Writing is refused.
    pub const READ_ONLY: Self = Self(1 << 1);
    /// `FLUSH` is understood.
    pub const FLUSH: Self = Self(1 << 2);
    /// The flag "force unit access" is understood on every command.
    pub const FUA: Self = Self(1 << 3);
    /// Seeks cost time: clients may sort their requests.
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// `TRIM` is understood.
    pub const TRIM: Self = Self(1 << 5);
    /// `WRITE_ZEROES` with `NO_HOLE` is understood.
    pub const WRITE_ZEROES: Self = Self(1 << 6);
    /// Reads can be asked for in one piece. Only sent with structured replies.
    pub const DONT_FRAGMENT: Self = Self(1 << 7);
    /// A flush on one connection covers writes answered on every other one.
    pub const MULTI_CONN: Self = Self(1 << 8);
    /// `CACHE` is understood.
    pub const CACHE: Self = Self(1 << 10);
    /// `WRITE_ZEROES` can be asked to be fast or to fail.
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

    /// The set in a field that was received. Unknown bits are kept and mean nothing.
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
    /// This set and `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// This set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// What may be sent to a client: flags that need another one are dropped where it is missing.
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
