//! A set whose superblocks say that the journal holds acknowledged writes for it is enlisted for replay.

use crate::admin_answer::AdminError;
use crate::array::set::{Life, Set};
use crate::journal::set_journal::Share;
use crate::journal::Journal;
use alloc::format;
use openraid_format::FeatureMap;
use openraid_units::SetId;

impl Journal {
    /// If the superblocks of a set say that the journal holds acknowledged writes for it, they are loaded before it
    /// runs.
    pub(crate) fn enlist_for_replay(&mut self, id: SetId, set: &mut Set) -> Result<(), AdminError> {
        let common = &set.metadata.as_ref().expect("just put").common();
        let index = self.index_of(common.set_uuid);
        let Some(named) = common.journal else {
            // The journal may still have data of the set that became void when the set was stopped or the data was
            // given up.
            if let Some(index) = index {
                self.log_mut().end_array_entries(index);
            }
            return Ok(());
        };
        let seen = common.journal_reached.unwrap_or_default();
        if self.is_working_as(named) {
            self.check_position(index, named, seen).map_err(AdminError::OlderLog)?;
        }
        // Another journal may know the set from earlier. Its data is older than that of the members.
        let (Some(index), true) = (index, self.is_working_as(named)) else {
            return Err(AdminError::Refused(format!(
                "a journal holds acknowledged writes of this array, and it is not the attached one: it is {named}; \
                 start the server with that journal (--journal), or discard those writes (--journal-lost)"
            )));
        };
        if !self.can_replay(index) {
            return Err(AdminError::NotPossible(
                "the journal holds writes of this array that came after the server was started: restart the server to \
                 read them",
            ));
        }
        if !self.is_in_blocks(index, set.block()) {
            return Err(AdminError::NotPossible(
                "the journal holds writes of this array in smaller blocks than its drives take: they were written \
                 while a drive with larger blocks was missing; start the array without that drive once, so that they \
                 are written",
            ));
        }
        let since = self.first_entry_of(index);
        let is_stale = set
            .metadata
            .as_ref()
            .is_some_and(|metadata| metadata.common().features.contains(FeatureMap::JOURNAL_BEHIND));
        set.journal.begin_replay(Share::new(named, index, since), is_stale, seen);
        set.enter(Life::Starting);
        let metadata = set.metadata.as_mut().expect("just seen");
        if metadata.steps() {
            // Before any redo, because absent members may make redos unnecessary.
            metadata.request();
        }
        self.replay_mut().want(id);
        Ok(())
    }
}
