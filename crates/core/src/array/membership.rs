//! What an assembly says of each drive: a member, a spare, or the reason why the array starts without it.

use core::fmt;
use openraid_units::{Sectors, Slot};

/// What a drive is to the array that is assembled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Membership {
    /// A full member of this slot.
    Member(Slot),
    /// A member of this slot that is being rebuilt and is good so far.
    Rebuilding(Slot, Sectors),
    /// Being filled next to the working member of this slot.
    Replacement(Slot, Sectors),
    /// A spare.
    Spare,
    /// Its event count is too low: it missed writes. It can be added again.
    Stale {
        /// Its events.
        events: u64,
        /// Events of the newest superblock.
        newest: u64,
    },
    /// The array has recorded that it failed. It can be added again.
    Failed,
    /// It was a member, and every slot has another one now: it was replaced, or failed and a spare took over.
    Replaced,
    /// Split brain: this member ran without the one whose superblock counts, and that one ran without it. Each may hold
    /// writes that the other lacks.
    Split {
        /// Its events.
        events: u64,
        /// Events of the newest superblock.
        newest: u64,
    },
    /// Another member of the same slot is newer or came first.
    SlotTaken(Slot),
    /// Stale, but taken because of force.
    Forced(Slot),
}

impl Membership {
    /// Does the array start without it?
    #[must_use]
    pub const fn is_left_out(self) -> bool {
        matches!(self, Self::Stale { .. } | Self::Failed | Self::Replaced | Self::Split { .. } | Self::SlotTaken(_))
    }
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(slot) => write!(f, "member of slot {slot}"),
            Self::Rebuilding(slot, to) => write!(f, "member of slot {slot}, rebuilt up to {to}"),
            Self::Replacement(slot, to) => write!(f, "replacement for slot {slot}, copied up to {to}"),
            Self::Spare => write!(f, "spare"),
            Self::Stale { events, newest } => write!(
                f,
                "stale: it has seen {events} events, the array {newest}; it missed writes and has to be added again"
            ),
            Self::Failed => write!(f, "recorded as failed by the others; it has to be added again"),
            Self::Replaced => f.write_str(
                "no member any more: every slot of the array has another member; erase it for other uses, or add it as a spare",
            ),
            Self::Split { events, newest } => write!(
                f,
                "split brain: it ran without the other half and is at event {events}, the other half is at event {newest}; each may \
                 hold writes of its own"
            ),
            Self::SlotTaken(slot) => write!(f, "slot {slot} is taken by another member with the same identity"),
            Self::Forced(slot) => write!(f, "stale, taken as member of slot {slot} because of force"),
        }
    }
}
