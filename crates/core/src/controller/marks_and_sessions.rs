//! The active marks and journal sessions of sets, and the time of their next examination.

use openraid_units::Instant;
use openraid_units::SetId;

use crate::actions::Actions;
use crate::background::pump_set::{deadline_of, pump_intent};
use crate::call::Call;
use crate::controller::Controller;
use crate::events::Wake;

impl Controller {
    /// All sets were examined: note when the next examination is due, and which sets share the cache.
    pub(crate) fn note_due(&mut self) {
        self.cache.count_collectors(&self.sets);
        let due = self
            .sets
            .values()
            .filter_map(|set| deadline_of(set, &self.ops, &self.base.limits))
            .min_by_key(|(at, _)| *at);
        self.sets.set_due(due.unwrap_or((Instant::NEVER, Wake::CleanMark)));
    }

    /// Advance the mark and the journal session of a set; true if something has changed.
    pub(crate) fn pump_marks(&mut self, id: SetId, actions: &mut Actions) -> bool {
        if self.sets.get(id).metadata.is_none() {
            return false;
        }
        let call = &mut Call::new(&mut self.base, actions);
        pump_intent(&mut self.sets, id, call) | self.journal.pump_session(&mut self.sets, id, call)
    }
}
