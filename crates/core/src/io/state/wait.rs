//! The waits of operations.
//!
//! An operation that cannot continue names its wait, and is in one queue. The event that ends the wait puts it into the
//! queue of ready operations. In debug builds the engine checks, whenever it comes to rest, that no operation waits for
//! a condition that is already met: otherwise a wake-up was forgotten, and the operation might wait forever.

use crate::array::awaited_changes::{AwaitedChange, AwaitedChanges};
use crate::reason::Reason;

macro_rules! waits {
    ($($(#[$doc:meta])* $name:ident $(($kind:ty = $sample:expr))?,)*) => {
        /// The wait of an operation. The rules are those of the write gate.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Wait {
            $($(#[$doc])* $name $(($kind))?,)*
        }
        #[cfg(test)]
        impl Wait {
            /// All of them, with an example of what a wait says besides its name.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name $(($sample))?,)*];
        }
    };
}
waits! {
    /// Another operation holds a part of its range.
    Range,
    /// There are too few work frames for a run of this number of bytes.
    Frames(u64 = 4096),
    /// Some of its rows must be redone from the journal first.
    Redo,
    /// Rule 1, and rule 5 again: the journal session of the set is beginning or ending.
    Session,
    /// Rule 2: the superblocks do not say yet that the array is active.
    ActiveMark,
    /// Rule 3: the bitmap bits of the range are not durable.
    Bitmap,
    /// Rule 4: the failure of a member is not durable on the others.
    FailureMark,
    /// Rule 5: the journal was lost, and the superblocks do not say yet that it is stale.
    StaleMark,
    /// The journal has no room: rule 5 for the records, and earlier for the room that a write past the cache reserves.
    JournalRoom(Reason = Reason::WaitedForJournal),
    /// Rule 5: the journal entry with the records is not durable.
    Entry,
    /// Rule 6: the record in the partial parity log is not durable.
    Record,
    /// Rule 7, and for reads: the table of commands has no room for all members.
    Commands,
    /// The write is done. The failure of a member that lacks it is not durable on the others.
    ReplyMark,
}

impl Wait {
    /// Does this change of the set end the wait, or may it?
    pub(crate) const fn ends_with(self, change: AwaitedChange) -> bool {
        match self {
            Self::ActiveMark | Self::FailureMark | Self::ReplyMark => {
                matches!(change, AwaitedChange::Marks | AwaitedChange::Life)
            }
            Self::Bitmap => matches!(change, AwaitedChange::Bits | AwaitedChange::Life),
            Self::Session | Self::StaleMark => {
                matches!(change, AwaitedChange::Marks | AwaitedChange::Session | AwaitedChange::Life)
            }
            Self::Range
            | Self::Frames(_)
            | Self::Redo
            | Self::JournalRoom(_)
            | Self::Entry
            | Self::Record
            | Self::Commands => false,
        }
    }

    /// May one of these changes end the wait?
    pub(crate) fn ends_with_any(self, changes: AwaitedChanges) -> bool {
        AwaitedChange::ALL.iter().any(|change| changes.has(*change) && self.ends_with(*change))
    }
}

/// The answer of the gate, and of each of its rules: the operation may write now, or it is held.
pub(crate) type Gate = Result<(), Hindrance>;

/// The reason why an operation may not write now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hindrance {
    /// The operation is called again when this wait ends.
    Waits(Wait),
    /// The operation must not write. It has ended with an error when the gate returns this.
    Failed,
}

#[cfg(test)]
mod journal_tests;
#[cfg(test)]
mod tests;
