//! Names: small integers that stand for a thing in a table.

use core::fmt;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);
        impl $name {
            /// As an index into a table.
            #[must_use]
            #[allow(clippy::cast_possible_truncation)] // every target has at least 32-bit indices; u64 ones are checked where used
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index!(
    /// An attached drive of a controller.
    DriveId, u16
);
index!(
    /// A drive's place in a redundancy set: md's `raid_disk`, the role.
    Slot, u16
);
index!(
    /// An exported array of a controller.
    ArrayId, u16
);
index!(
    /// A redundancy set of a controller: one md array over drives.
    SetId, u16
);
index!(
    /// A row of chunks, counted from the start of the members' data areas.
    StripeIndex, u64
);

/// The host side's own name for a request; the core returns it untouched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Token(pub u64);

/// The meaning of a [`Tag`]: the receiver of the completion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum TagKind {
    /// A command to a drive.
    Drive = 1,
    /// A copy between host and frames.
    Transfer = 2,
    /// A computation on frames.
    Job = 3,
    /// A copy or a checksum of the journal's.
    Journal = 4,
}

/// The name of one outstanding action: kind, index in the core's table, and a generation that makes a late or
/// repeated completion of an earlier use recognisable.
///
/// ```text
///  63      56 55            32 31             0
///  [  kind   ][  generation   ][     index    ]
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

impl Tag {
    /// Generations wrap after this many uses of one index.
    pub const GENERATIONS: u32 = 1 << 24;

    /// Put a tag together. `generation` is taken modulo [`Tag::GENERATIONS`].
    #[must_use]
    pub const fn new(kind: TagKind, index: u32, generation: u32) -> Self {
        Self((kind as u64) << 56 | ((generation % Self::GENERATIONS) as u64) << 32 | index as u64)
    }
    /// What kind of action this names; `None` for a number that is no tag.
    #[must_use]
    pub const fn kind(self) -> Option<TagKind> {
        match self.0 >> 56 {
            1 => Some(TagKind::Drive),
            2 => Some(TagKind::Transfer),
            3 => Some(TagKind::Job),
            4 => Some(TagKind::Journal),
            _ => None,
        }
    }
    /// Index in the core's table.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // the low half is the index
    pub const fn index(self) -> u32 {
        self.0 as u32
    }
    /// Generation of that table entry.
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> 32) as u32 & (Self::GENERATIONS - 1)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({:?} #{} gen {})", self.kind(), self.index(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_gives_back_what_it_was_made_of() {
        let tag = Tag::new(TagKind::Job, u32::MAX, Tag::GENERATIONS + 5);
        assert_eq!((tag.kind(), tag.index(), tag.generation()), (Some(TagKind::Job), u32::MAX, 5));
        assert_eq!(Tag(0).kind(), None);
    }
}
