//! Stories: the path of each host request through the controller, from the engine's steps.
//!
//! ```text
//! steps of the engine --assemble--> stories --model--> what the control socket and `--json` carry --text--> for people
//! ```
//!
//! The same for a served array and for a simulated one. It must never guess: a step that is not recorded any more is
//! missing, and the story says so.

mod assemble;
mod lines;
mod model;
mod text;
mod words;

pub use assemble::{assemble, Story, StoryOwner};
pub use model::{RequestModel, RequestsModel, StoriesModel, StoryModel};
pub use text::text;
pub use words::kind_word as request_word;

use std::collections::BTreeMap;

use openraid_units::{ArrayId, DriveId, SetId};

/// The names for the engine's numbers.
#[derive(Debug, Default)]
pub struct StoryNames {
    pub array: ArrayId,
    /// Its sets: one, or one for each span.
    pub sets: Vec<SetId>,
    /// Members and devices of the journal by their drives.
    pub drives: BTreeMap<DriveId, String>,
}

impl StoryNames {
    /// Is this a story of the array?
    pub fn is_of(&self, story: &Story) -> bool {
        match story.owner {
            StoryOwner::Request(_) => story.array == Some(self.array),
            StoryOwner::Unit(set, _) => self.sets.contains(&set),
        }
    }

    /// Which span a set is; nothing if the array has only one.
    fn span(&self, set: SetId) -> Option<usize> {
        if self.sets.len() < 2 {
            return None;
        }
        self.sets.iter().position(|known| *known == set)
    }
}
