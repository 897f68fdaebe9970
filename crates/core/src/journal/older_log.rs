//! How far the log had come, as the superblocks of a set record it.
//!
//! A journal that is older than the members (a copy of its device, a snapshot that was restored) would write older data over
//! newer data. So each superblock that names the journal also says how far the journal had come:
//!
//! - an entry that was durable when the superblock was made. The superblocks are not written for each entry. While the log
//!   grows, they are written after [`Limits::position_interval`](crate::limits::Limits::position_interval) at the latest.
//! - the generation of the journal's superblock that entered the set in the table when its session began. So a copy from
//!   before the session is recognized, however short the session is.
//!
//! A journal that ends before that is refused. An older copy of the same session that lacks less than one interval is not
//! recognized. The same writes raise the event count, so that an older image of a member is recognized, too. Without a
//! session they are made as often while hosts write to a set with redundancy, for the event count alone.

use openraid_format::{JournalReached, JOURNAL_ARRAYS_MAX};
use openraid_units::Instant;

use crate::journal::set_journal::SetJournal;

/// The 32 bits of a journal's generation that superblocks of members have room for.
pub(crate) fn generation_of(generation: u64) -> u32 {
    u32::try_from(generation).unwrap_or(u32::MAX)
}

/// For each place of the journal's table, what the superblocks of its set can have seen of this journal. At first it is the
/// end of the log that was opened. Entries that follow do not make an older copy newer, so a set that was away since then
/// is compared with that end.
#[derive(Debug)]
pub(crate) struct Positions(pub(super) [JournalReached; JOURNAL_ARRAYS_MAX]);

impl Positions {
    /// A journal that has come this far was opened.
    pub(super) const fn opened(reached: JournalReached) -> Self {
        Self([reached; JOURNAL_ARRAYS_MAX])
    }
}

impl Default for Positions {
    fn default() -> Self {
        Self::opened(JournalReached { entry: 0, generation: 0 })
    }
}

impl SetJournal {
    /// Superblocks of the set are made now.
    pub(crate) fn note_recorded(&mut self, now: Instant) {
        self.reached.record(now);
    }

    /// Is the session on, and has the log grown since the superblocks were made?
    pub(crate) fn is_ahead(&self) -> bool {
        self.is_on() && self.reached.now.entry > self.reached.recorded
    }
}
