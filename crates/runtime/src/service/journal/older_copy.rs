//! Is a journal as new as what others know of it? An older copy of its device would write older data over newer data.
//!
//! The engine compares a set's superblocks with the log before it starts the set. This check comes before that, and before
//! anything is written to the devices: an older copy that was opened once would look like the last use of the journal.

use std::fmt;

use openraid_core::admin::{JournalStatus, OlderLog};
use openraid_format::{JournalArrayState, JournalReached, Superblock, Uuid};

use super::find::FoundDevices;
use super::{JournalRequest, JournalStartError};

/// The places that know of a journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Witness {
    /// The superblock of this member.
    Member(String),
    /// The running server, which has written to it.
    Server,
    /// The registry of the controller.
    Registry,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(member) => f.write_str(member),
            Self::Server => f.write_str("this server"),
            Self::Registry => f.write_str("the registry"),
        }
    }
}

/// How far a journal had come, as one of these places knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalSighting {
    /// The journal.
    pub journal: Uuid,
    /// The set whose superblock says it. If its entries were discarded by name, it does not matter.
    pub set: Option<Uuid>,
    /// How far.
    pub reached: JournalReached,
    /// The place that knows it.
    pub witness: Witness,
}

impl JournalSighting {
    /// What the superblock of a member says.
    #[must_use]
    pub fn by_member(member: &str, superblock: &Superblock) -> Option<Self> {
        let (journal, reached) = superblock.journal.zip(superblock.journal_reached)?;
        Some(Self { journal, set: Some(superblock.set_uuid), reached, witness: Witness::Member(member.into()) })
    }

    /// What this server knows of its journal.
    pub(super) fn here(status: &JournalStatus) -> Self {
        let reached = JournalReached { entry: status.durable, generation: 0 };
        Self { journal: status.uuid, set: None, reached, witness: Witness::Server }
    }
}

/// Check that the journal that was found has come as far as others know. The registry, which may be of another time than
/// arrays and journal, does not count if the journal is to be used alone.
pub(super) fn check(found: &FoundDevices, request: &JournalRequest) -> Result<(), JournalStartError> {
    let superblock = &found.journal.superblock;
    let journal = superblock.journal;
    let generation = u32::try_from(superblock.generation).unwrap_or(u32::MAX);
    let ends = JournalReached { entry: found.journal.head.sequence - 1, generation };
    let last = request.last_use(journal).filter(|_| !request.alone);
    let registry = last.map(|last| JournalSighting {
        journal,
        set: None,
        reached: JournalReached { entry: last.entry, generation: 0 },
        witness: Witness::Registry,
    });
    let is_discarded = |set: Uuid| {
        let mut arrays = superblock.arrays.iter().flatten();
        arrays.any(|array| array.set_uuid == set && array.state == JournalArrayState::Discarded)
    };
    let counts = |seen: &&JournalSighting| seen.journal == journal && !seen.set.is_some_and(is_discarded);
    for JournalSighting { reached: seen, witness, .. } in request.seen.iter().chain(&registry).filter(counts) {
        if seen.entry > ends.entry || seen.generation > ends.generation {
            return Err(JournalStartError::OlderCopy {
                devices: found.names(),
                older: OlderLog { journal, ends, seen: *seen },
                witness: witness.clone(),
            });
        }
    }
    Ok(())
}
