//! Bits of a superblock: features of the set, flags of the member.

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign, Not};

/// The features in use according to a superblock. If a reader does not know one of them, it must not touch the member,
/// because it cannot know what the bit changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FeatureMap(pub u32);

impl FeatureMap {
    /// No feature at all.
    pub const NONE: Self = Self(0);
    /// There is a write-intent bitmap at `bitmap_offset`.
    pub const BITMAP: Self = Self(1);
    /// This member is being rebuilt; `recovery_offset` has the frontier.
    pub const RECOVERY_OFFSET: Self = Self(2);
    /// The shape of the set changes: see [`Superblock::change`](crate::Superblock::change).
    pub const RESHAPE_ACTIVE: Self = Self(4);
    /// The bad-block log has entries. An empty log may exist without this bit.
    pub const BAD_BLOCKS: Self = Self(8);
    /// This member will replace a working member of the same slot.
    pub const REPLACEMENT: Self = Self(16);
    /// The reshape runs from the end to the start.
    pub const RESHAPE_BACKWARDS: Self = Self(32);
    /// The reshape moves the data by `new_offset`.
    pub const NEW_OFFSET: Self = Self(64);
    /// The rebuild covers only chunks that the bitmap marks. A reader that ignores this bit rebuilds everything.
    pub const RECOVERY_BITMAP: Self = Self(128);
    /// A cluster shares the bitmap.
    pub const CLUSTERED: Self = Self(256);
    /// A journal device belongs to the set (raid5-cache).
    pub const JOURNAL: Self = Self(512);
    /// There is a partial parity log; its place is in the field of the bitmap's offset.
    pub const PPL: Self = Self(1024);
    /// The area of the partial parity log holds several logs, written in turn.
    pub const MULTIPLE_PPLS: Self = Self(2048);
    /// `layout` of a RAID 0 is meaningful.
    pub const RAID0_LAYOUT: Self = Self(4096);

    /// Acknowledged writes of this set are in openraid's journal. Linux does not know this bit and therefore refuses
    /// the member; that is the purpose of the bit.
    pub const CONTROLLER_JOURNAL: Self = Self(1 << 30);
    /// Only with [`FeatureMap::CONTROLLER_JOURNAL`]: the journal was lost, and rows were written later without it. If
    /// the journal is found again, it is replayed, and a resync follows in any case.
    pub const JOURNAL_BEHIND: Self = Self(1 << 29);
    /// Only with [`FeatureMap::CONTROLLER_JOURNAL`]: `journal_reached` says how far the journal had come. A program that does
    /// not know the bit would replay an older copy of the journal, so it must refuse the member.
    pub const JOURNAL_REACHED: Self = Self(1 << 28);

    /// The superblock is the first one of a pair that begins, turns around or ends a change of shape. The same fields
    /// without this bit follow when all members have this one. Linux does not know the bit and therefore refuses the
    /// member: it would take a half-written begin or end for a whole one.
    pub const SHAPE_GUARD: Self = Self(1 << 27);
    /// Only with [`FeatureMap::SHAPE_GUARD`]: the change begins with another level, so if its begin is taken back, the set has
    /// RAID 5 again.
    pub const LEVEL_GUARD: Self = Self(1 << 26);

    /// Only with [`FeatureMap::SHAPE_GUARD`]: the change that is under way turns around here. Nothing has moved in between, so
    /// members with the old direction are at the same place.
    pub const TURN_GUARD: Self = Self(1 << 25);

    /// The marks of a change of shape that Linux does not know.
    pub const GUARDS: Self = Self(Self::SHAPE_GUARD.0 | Self::LEVEL_GUARD.0 | Self::TURN_GUARD.0);

    /// All bits that have a meaning here.
    pub const KNOWN: Self = Self(8191 | 1 << 30 | 1 << 29 | 1 << 28 | 1 << 27 | 1 << 26 | 1 << 25);
    /// Bits that this implementation supports. For any other bit the error names the bit, and the array is refused.
    pub const SUPPORTED: Self = Self(
        Self::BITMAP.0
            | Self::RECOVERY_OFFSET.0
            | Self::BAD_BLOCKS.0
            | Self::REPLACEMENT.0
            | Self::RECOVERY_BITMAP.0
            | Self::PPL.0
            | Self::MULTIPLE_PPLS.0
            | Self::RAID0_LAYOUT.0
            | Self::RESHAPE_ACTIVE.0
            | Self::RESHAPE_BACKWARDS.0
            | Self::NEW_OFFSET.0
            | Self::SHAPE_GUARD.0
            | Self::LEVEL_GUARD.0
            | Self::TURN_GUARD.0
            | Self::CONTROLLER_JOURNAL.0
            | Self::JOURNAL_BEHIND.0
            | Self::JOURNAL_REACHED.0,
    );

    const NAMES: [(Self, &'static str); 19] = [
        (Self::BITMAP, "bitmap"),
        (Self::RECOVERY_OFFSET, "recovery offset"),
        (Self::RESHAPE_ACTIVE, "reshape in progress"),
        (Self::BAD_BLOCKS, "bad blocks"),
        (Self::REPLACEMENT, "replacement"),
        (Self::RESHAPE_BACKWARDS, "reshape backwards"),
        (Self::NEW_OFFSET, "new data offset"),
        (Self::RECOVERY_BITMAP, "recovery by bitmap"),
        (Self::CLUSTERED, "clustered bitmap"),
        (Self::JOURNAL, "raid5 journal"),
        (Self::PPL, "partial parity log"),
        (Self::MULTIPLE_PPLS, "multiple partial parity logs"),
        (Self::RAID0_LAYOUT, "raid0 layout"),
        (Self::CONTROLLER_JOURNAL, "openraid journal"),
        (Self::JOURNAL_BEHIND, "openraid journal stale"),
        (Self::JOURNAL_REACHED, "openraid journal position"),
        (Self::SHAPE_GUARD, "openraid change of shape guarded"),
        (Self::LEVEL_GUARD, "openraid change of level guarded"),
        (Self::TURN_GUARD, "openraid change of shape turned"),
    ];

    /// Are all bits of `other` set?
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Is any bit of `other` set?
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    /// Is no bit set?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Sets or clears all bits of `bits`.
    pub fn set(&mut self, bits: Self, on: bool) {
        self.0 = if on { self.0 | bits.0 } else { self.0 & !bits.0 };
    }
    /// The bits that have no name.
    #[must_use]
    pub const fn unknown(self) -> Self {
        Self(self.0 & !Self::KNOWN.0)
    }
}

impl BitOr for FeatureMap {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl BitOrAssign for FeatureMap {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
impl BitAnd for FeatureMap {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}
impl Not for FeatureMap {
    type Output = Self;
    fn not(self) -> Self {
        Self(!self.0)
    }
}

/// Prints each bit with its name and its value: `raid5 journal (512), unknown (65536)`; `none` if no bit is set.
impl fmt::Display for FeatureMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        for bit in (0..u32::BITS).map(|shift| Self(1 << shift)).filter(|&bit| self.contains(bit)) {
            let name = Self::NAMES.iter().find(|(known, _)| *known == bit).map_or("unknown", |(_, name)| name);
            write!(f, "{separator}{name} ({})", bit.0)?;
            separator = ", ";
        }
        Ok(())
    }
}
impl fmt::Debug for FeatureMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FeatureMap({self})")
    }
}

/// Flags of one member. Bits without a name are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct DeviceFlags(pub u8);

impl DeviceFlags {
    /// Reads use other members if possible.
    pub const WRITE_MOSTLY: Self = Self(1);
    /// The member fails at its first error, without a retry.
    pub const FAIL_FAST: Self = Self(2);

    const NAMES: [(Self, &'static str); 2] = [(Self::WRITE_MOSTLY, "write-mostly"), (Self::FAIL_FAST, "failfast")];

    /// The names of mdadm for the bits that are set; bits without a name are left out.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, name)| name)
    }

    /// Are all bits of `other` set?
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_known_bit_has_its_name() {
        let named = FeatureMap::NAMES.iter().fold(FeatureMap::NONE, |all, (bit, _)| all | *bit);
        assert_eq!(named, FeatureMap::KNOWN);
        assert!(FeatureMap::KNOWN.contains(FeatureMap::SUPPORTED));
    }

    #[test]
    fn a_refusal_names_the_bit() {
        assert_eq!(FeatureMap::JOURNAL.to_string(), "raid5 journal (512)");
        assert_eq!((FeatureMap::BITMAP | FeatureMap(1 << 31)).to_string(), "bitmap (1), unknown (2147483648)");
        assert_eq!(FeatureMap::NONE.to_string(), "none");
        assert_eq!(FeatureMap(0xffff_ffff).unknown(), FeatureMap(0x81ff_e000));
    }
}
