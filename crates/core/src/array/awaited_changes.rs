//! Changes of a set that operations wait for.

macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        /// A change of a set that operations may wait for.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub(crate) enum AwaitedChange {
            $($(#[$doc])* $name = $bit,)*
        }
        impl AwaitedChange {
            /// All kinds of changes.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}
changes! {
    /// A generation of superblocks or a bad-block log is durable, or the active mark changed. The next examination of
    /// the set advances mark and session, so operations that wait for either are called after that.
    Marks = 1,
    /// Bits of the bitmap are durable.
    Bits = 2,
    /// The journal session, or a condition that decides whether the set should have one.
    Session = 4,
    /// The array failed, or the array cannot do without a member that does not flush or does not take superblocks.
    Life = 8,
}

/// Changes since the operations that wait for a set were last called.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct AwaitedChanges(u8);

impl AwaitedChanges {
    pub(super) const fn insert(&mut self, change: AwaitedChange) {
        self.0 |= change as u8;
    }

    /// Is this change among them?
    pub(crate) const fn has(self, change: AwaitedChange) -> bool {
        self.0 & change as u8 != 0
    }
}
