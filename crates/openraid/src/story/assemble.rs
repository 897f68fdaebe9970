//! From a sequence of steps to stories: each step belongs to a request.

use std::collections::BTreeMap;

use openraid_core::request_steps::{OpName, Step, StepEvent, StepOwner, StepSubject};
use openraid_units::{ArrayId, SetId};

/// Whose story it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StoryOwner {
    /// A host request.
    Request(u64),
    /// A dirty unit of the cache that is written to the members.
    Unit(SetId, u64),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Story {
    pub owner: StoryOwner,
    /// The array of a request, if known.
    pub array: Option<ArrayId>,
    pub steps: Vec<Step>,
    /// Number of the step that ended it.
    pub ended: Option<u64>,
    /// Is its beginning there?
    pub whole: bool,
    /// Stories of the units that it left dirty, by their places.
    pub later: Vec<usize>,
}

#[derive(Default)]
struct Shelf {
    stories: Vec<Story>,
    requests: BTreeMap<u64, usize>,
    ops: BTreeMap<OpName, usize>,
    /// Requests that wait for a journal entry.
    entries: BTreeMap<u64, Vec<usize>>,
    /// Requests that made a unit dirty since it was written last.
    dirty: BTreeMap<(SetId, u64), Vec<usize>>,
}

/// The stories that these steps tell, the first of which has this number; in the order in which they began.
pub fn assemble(steps: &[Step], first: u64) -> Vec<Story> {
    let mut shelf = Shelf::default();
    for (number, step) in (first..).zip(steps) {
        match step.subject {
            StepSubject::Request(request) => shelf.request(number, request, step),
            StepSubject::Op(op) => shelf.op(number, op, step),
            StepSubject::Entry(entry) => {
                for story in shelf.entries.get(&entry).cloned().unwrap_or_default() {
                    shelf.stories[story].steps.push(*step);
                }
                if step.event == StepEvent::Durable {
                    shelf.entries.remove(&entry);
                }
            }
        }
    }
    shelf.stories
}

impl Shelf {
    fn begin(&mut self, owner: StoryOwner, whole: bool) -> usize {
        self.stories.push(Story { owner, array: None, steps: Vec::new(), ended: None, whole, later: Vec::new() });
        self.stories.len() - 1
    }

    fn request(&mut self, number: u64, request: u64, step: &Step) {
        let arrived = matches!(step.event, StepEvent::Arrived { .. });
        let at = match self.requests.get(&request) {
            Some(at) => *at,
            None => {
                let at = self.begin(StoryOwner::Request(request), arrived);
                self.requests.insert(request, at);
                at
            }
        };
        self.stories[at].steps.push(*step);
        match step.event {
            StepEvent::Arrived { array, .. } => self.stories[at].array = Some(array),
            StepEvent::Cached { set, unit, entry, .. } => {
                note(self.dirty.entry((set, unit)).or_default(), at);
                if entry != 0 {
                    note(self.entries.entry(entry).or_default(), at);
                }
            }
            StepEvent::Replied { .. } => self.stories[at].ended = Some(number),
            _ => {}
        }
    }

    fn op(&mut self, number: u64, op: OpName, step: &Step) {
        if let StepEvent::Made { owner, set, .. } = step.event {
            let at = match owner {
                StepOwner::Request(request) => match self.requests.get(&request) {
                    Some(at) => *at,
                    None => {
                        let at = self.begin(StoryOwner::Request(request), false);
                        self.requests.insert(request, at);
                        at
                    }
                },
                StepOwner::Op(parent) => match self.ops.get(&parent) {
                    Some(at) => *at,
                    None => return,
                },
                StepOwner::Unit(unit, _) => {
                    let at = self.begin(StoryOwner::Unit(set, unit), true);
                    for story in self.dirty.remove(&(set, unit)).unwrap_or_default() {
                        self.stories[story].later.push(at);
                    }
                    at
                }
            };
            self.ops.insert(op, at);
        }
        // Operations from before the first recorded step belong to no request.
        let Some(at) = self.ops.get(&op).copied() else { return };
        self.stories[at].steps.push(*step);
        match step.event {
            StepEvent::Logged { entry } => note(self.entries.entry(entry).or_default(), at),
            StepEvent::Done { .. } => {
                let owns = matches!(self.stories[at].owner, StoryOwner::Unit(..))
                    && self.stories[at].steps[0].subject == step.subject;
                if owns {
                    self.stories[at].ended = Some(number);
                }
                self.ops.remove(&op);
            }
            _ => {}
        }
    }
}

fn note(list: &mut Vec<usize>, story: usize) {
    if !list.contains(&story) {
        list.push(story);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_core::actions::ReplyStatus;
    use openraid_core::events::RequestKind;
    use openraid_core::reason::Reason;
    use openraid_core::request_steps::{StepPlace, Work};
    use openraid_units::{ArrayOffset, Instant, Sectors};

    fn steps(list: &[(StepSubject, StepEvent)]) -> Vec<Step> {
        (0..)
            .zip(list)
            .map(|(at, (subject, event))| Step { at: Instant(at), subject: *subject, event: *event })
            .collect()
    }

    fn arrived() -> StepEvent {
        StepEvent::Arrived { array: ArrayId(0), kind: RequestKind::Read, offset: ArrayOffset(0), len: 1 }
    }

    #[test]
    fn two_requests_into_one_unit_share_its_destage_and_a_third_does_not() {
        let (request, op) = (StepSubject::Request, |name| StepSubject::Op(OpName(name)));
        let cached = StepEvent::Cached { set: SetId(0), unit: 4, len: Sectors(8), entry: 9 };
        let made = StepEvent::Made {
            owner: StepOwner::Unit(4, Reason::DestageAged),
            set: SetId(0),
            work: Work::RowDestage,
            place: StepPlace::Whole,
        };
        let replied = StepEvent::Replied { status: ReplyStatus::Ok };
        let stories = assemble(
            &steps(&[
                (request(1), arrived()),
                (request(2), arrived()),
                (request(1), cached),
                (request(2), cached),
                (StepSubject::Entry(9), StepEvent::Durable),
                (request(1), replied),
                (request(2), replied),
                (op(70), made),
                (op(70), StepEvent::Done { error: None }),
                (request(3), arrived()),
                (request(3), cached),
            ]),
            100,
        );
        let later: Vec<_> = stories.iter().map(|story| (story.owner, story.later.clone(), story.ended)).collect();
        let unit = StoryOwner::Unit(SetId(0), 4);
        let expected = [
            (StoryOwner::Request(1), vec![2], Some(105)),
            (StoryOwner::Request(2), vec![2], Some(106)),
            (unit, vec![], Some(108)),
            (StoryOwner::Request(3), vec![], None),
        ];
        assert_eq!(later, expected);
        assert_eq!(stories[0].steps.len(), 4, "the entry that both waited for is in both stories");
    }

    #[test]
    fn a_story_that_began_before_the_first_step_is_incomplete_and_has_no_operations() {
        let stories = assemble(
            &steps(&[
                (StepSubject::Op(OpName(1)), StepEvent::Granted),
                (StepSubject::Request(1), StepEvent::Received { len: 1 }),
                (StepSubject::Request(2), arrived()),
            ]),
            0,
        );
        let seen: Vec<_> = stories.iter().map(|story| (story.owner, story.whole, story.steps.len())).collect();
        assert_eq!(seen, [(StoryOwner::Request(1), false, 1), (StoryOwner::Request(2), true, 1)]);
    }
}
