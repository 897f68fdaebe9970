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

use core::fmt;
use openraid_format::{JournalReached, Uuid, JOURNAL_ARRAYS_MAX};
use openraid_units::{Instant, Nanos, SetId};

use super::session::SetJournal;
use super::Journal;
use crate::array::set::Set;
use crate::array::sets::Sets;

/// A journal that ends before something that members know of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OlderLog {
    /// The journal.
    pub journal: Uuid,
    /// How far it has come.
    pub ends: JournalReached,
    /// What members know of.
    pub seen: JournalReached,
}

impl fmt::Display for OlderLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { journal, ends, seen } = self;
        if seen.entry > ends.entry {
            write!(f, "this log ends at entry {}, and members have seen entry {}", ends.entry, seen.entry)?;
        } else {
            write!(
                f,
                "the superblock of this journal has generation {}, and members have seen generation {}",
                ends.generation, seen.generation
            )?;
        }
        write!(
            f,
            ": it is an older copy of journal {journal}, and what it holds is older than what the members have; start the \
             server with the device that was used last (--journal), or give up the writes that only that device has \
             (--journal-lost)"
        )
    }
}
impl core::error::Error for OlderLog {}

/// The 32 bits of a journal's generation that superblocks of members have room for.
pub(super) fn generation_of(generation: u64) -> u32 {
    u32::try_from(generation).unwrap_or(u32::MAX)
}

/// For each place of the journal's table, what the superblocks of its set can have seen of this journal. At first it is the
/// end of the log that was opened. Entries that follow do not make an older copy newer, so a set that was away since then
/// is compared with that end.
#[derive(Debug)]
pub(crate) struct Positions([JournalReached; JOURNAL_ARRAYS_MAX]);

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

/// What the superblocks of a set say about the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reached {
    /// For superblocks that are made now.
    now: JournalReached,
    /// The entry in the superblocks that were made last.
    recorded: u64,
    /// When these were made.
    at: Instant,
}

impl Reached {
    pub(super) const NONE: Self = Self::from(JournalReached { entry: 0, generation: 0 });

    /// The superblocks say this, or will say it.
    pub(super) const fn from(reached: JournalReached) -> Self {
        Self { now: reached, recorded: reached.entry, at: Instant::ZERO }
    }

    /// For superblocks that are made now.
    pub(super) const fn now(&self) -> JournalReached {
        self.now
    }

    fn record(&mut self, now: Instant) {
        (self.recorded, self.at) = (self.now.entry, now);
    }
}

impl SetJournal {
    /// Superblocks of the set are made now.
    pub(crate) fn note_recorded(&mut self, now: Instant) {
        self.reached.record(now);
    }

    /// Is the session on, and has the log grown since the superblocks were made?
    fn is_ahead(&self) -> bool {
        self.is_on() && self.reached.now.entry > self.reached.recorded
    }
}

impl Set {
    /// When superblocks are to be made again because of what was written since the last ones.
    pub(crate) fn position_due(&self, interval: Nanos) -> Option<Instant> {
        let made_at = self.journal.reached.at;
        let is_written = || self.metadata.is_some() && self.mark.is_written_since(made_at);
        let is_due = self.journal.is_ahead() || (!self.journal.is_on() && is_written());
        // A time that never comes is no deadline: the driver would not rest.
        is_due.then_some(made_at + interval).filter(|due| *due < Instant::NEVER)
    }
}

impl Journal {
    /// Has this journal come as far as the superblocks of a set with this place in its table, or with none, have seen?
    pub(crate) fn check_position(
        &self,
        index: Option<u8>,
        journal: Uuid,
        seen: JournalReached,
    ) -> Result<(), OlderLog> {
        let ends = index.map_or_else(|| self.position(), |index| self.positions.0[usize::from(index)]);
        if seen.entry > ends.entry || seen.generation > ends.generation {
            return Err(OlderLog { journal, ends, seen });
        }
        Ok(())
    }

    /// How far it has come, durably.
    pub(super) fn position(&self) -> JournalReached {
        JournalReached { entry: self.durable, generation: generation_of(self.writing.number()) }
    }

    /// Tell a set how far the log has come, for its next superblocks.
    pub(super) fn trace_position(&mut self, sets: &mut Sets, id: SetId) {
        let set = sets.get_mut(id);
        let Some(share) = set.journal.share() else { return };
        if self.superblock.as_ref().is_some_and(|own| own.journal == share.uuid) {
            let now = &mut set.journal.reached.now;
            now.entry = now.entry.max(self.durable);
            self.positions.0[usize::from(share.index)] = *now;
        }
    }
}

impl Sets {
    /// If the superblocks of a set were made long ago and hosts have written since, they are made again; true if they are.
    pub(super) fn record_position(&mut self, id: SetId, now: Instant, interval: Nanos) -> bool {
        let set = self.get_mut(id);
        let is_due = set.is_running() && set.position_due(interval).is_some_and(|due| now >= due);
        if is_due {
            set.metadata.as_mut().expect("a set whose superblocks are due has some").request();
            set.journal.reached.record(now);
        }
        is_due
    }
}
