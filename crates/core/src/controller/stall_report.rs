//! The state of the engine in words, for a simulation that does not proceed.
//!
//! It is for debugging, not for administrators. It reads, and must never change anything.

use core::fmt::{Result, Write};

use openraid_units::SetId;

use crate::array::set::Set;
use crate::array::write_intent_bitmap::Bitmap;
use crate::controller::Controller;
use crate::limits::STATE_LINES_MAX;
use crate::slab::Queue;

impl Controller {
    /// Write the state and the wait of everything that is in work.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_waiting(&self, out: &mut dyn Write) -> Result {
        for (token, waiting) in self.admin.waiting() {
            writeln!(out, "command {token:?}: {waiting:?}")?;
        }
        for (SetId(number), set) in self.sets.iter() {
            writeln!(out, "set {number}: {}", SetLine(set))?;
        }
        self.cache.write_state(out)?;
        self.journal.write_state(out)?;
        let [lines, others] = self.requests.waiting();
        writeln!(out, "{lines} wait: for lines of the cache; {others} for the journal or a write past the cache")?;
        for (name, queue) in self.queues().filter(|(_, queue)| !queue.is_empty()) {
            writeln!(out, "{} wait: {name}", queue.len())?;
        }
        for (index, op) in self.ops.iter().take(STATE_LINES_MAX) {
            writeln!(out, "operation {index}: {op}")?;
        }
        self.requests.write_state(out, STATE_LINES_MAX)
    }

    fn queues(&self) -> impl Iterator<Item = (&'static str, &Queue)> {
        self.ops.queues().into_iter().chain(self.requests.queues())
    }
}

struct SetLine<'a>(&'a Set);

impl core::fmt::Display for SetLine<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> Result {
        let set = self.0;
        write!(f, "{:?}, {}, {} past the cache, {:?}", set.life(), set.mark, set.direct_writes(), set.dirty)?;
        write!(f, ", {:?}, flush failed {}, bad {}", set.journal, set.has_failed_flush(), set.is_bad_urgent())?;
        if let Some(metadata) = &set.metadata {
            write!(f, ", superblocks: {metadata}")?;
        }
        let of_bitmap = set.bitmap.as_ref().map_or(0, Bitmap::flushes);
        write!(f, ", {of_bitmap} flushes before bits are cleared, {}", set.tasks)
    }
}
