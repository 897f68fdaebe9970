//! The problems of a start: one for each array, member or other thing, and the alarm of each.

use openraid_status::EventName;

use super::State;
use crate::alarms::Condition;
use crate::failure::{grouped, About, Failure};
use crate::members::{unopened, Among};
use crate::quantity::counted;
use crate::registry::RegisteredArray;

/// Is this a reason why the array, or a span of it, does not start?
pub fn is_of(entry: &RegisteredArray, why: &Failure) -> bool {
    why.about.not_started().is_some_and(|array| entry.label().is(array) || entry.has_span(array))
}

/// The one reason why an array does not start: those of its spans if there are any, because they are the cause.
pub fn of_array(entry: &RegisteredArray, reasons: &[Failure]) -> Option<Failure> {
    let is_span = |why: &&Failure| why.about.not_started().is_some_and(|array| entry.has_span(array));
    let (spans, others): (Vec<_>, Vec<_>) = reasons.iter().filter(|why| is_of(entry, why)).partition(is_span);
    if spans.is_empty() {
        let why = *others.first()?;
        return Some(why.clone().unnamed().of_array(entry.label()));
    }
    let spans: Vec<Failure> = spans.into_iter().cloned().collect();
    let count = counted(spans.len() as u64, "span does", "spans do");
    let text = format!("{count} not start: {}", grouped(&spans).join("; "));
    Some(Failure::merged(&spans, text).of_array(entry.label()))
}

/// The problems with one for each thing. Members of one array that could not be opened are one problem of the array.
pub(super) fn by_thing(problems: Vec<Failure>, arrays: &[RegisteredArray]) -> Vec<Failure> {
    let mut left = problems;
    for entry in arrays {
        let is_member = |why: &Failure| matches!(&why.about, About::Member(member) if entry.members.contains(member));
        let members: Vec<Failure> = left.iter().filter(|why| is_member(why)).cloned().collect();
        let is_named = left.iter().any(|why| is_of(entry, why));
        if members.len() < 2 && !is_named {
            continue;
        }
        left.retain(|why| !is_member(why));
        if !is_named {
            let text = format!("{}: {}", unopened(members.len(), Among::Some), grouped(&members).join("; "));
            left.push(Failure::refused(text).of_array(entry.label()));
        }
    }
    let mut single: Vec<Failure> = Vec::new();
    for why in left {
        match single.iter_mut().find(|known| known.about.is(&why.about)) {
            Some(known) if known.reason() == why.reason() => {}
            Some(known) => *known = known.clone().and(why.reason()),
            None => single.push(why),
        }
    }
    single
}

/// The array and the member that a failure is about, as alarms and events have them.
#[derive(Default)]
pub(super) struct ProblemPlace {
    pub array: Option<String>,
    pub uuid: Option<String>,
    pub member: Option<String>,
}

impl State {
    /// The place of a failure. An array has the name under which it is known now.
    pub(super) fn place_of(&self, about: &About) -> ProblemPlace {
        let place =
            |name: &str, uuid: Option<String>| ProblemPlace { array: Some(name.to_owned()), uuid, member: None };
        match about {
            About::Unnamed => ProblemPlace::default(),
            About::Member(member) => {
                let entry = self.troubles.expected.iter().find(|entry| entry.members.contains(member));
                let array = entry.map(|entry| self.place_of(&About::Array(entry.label()))).unwrap_or_default();
                ProblemPlace { member: Some(member.clone()), ..array }
            }
            About::Array(array) | About::Settings(array) => match self.arrays.iter().find(|served| served.has(array)) {
                Some(served) => place(&served.name, served.uuid()),
                None => place(&array.name, array.uuid.map(|uuid| uuid.to_string())),
            },
        }
    }

    /// The alarm of a problem.
    pub(super) fn start_problem(&self, why: &Failure) -> Condition {
        let ProblemPlace { array, uuid, member } = self.place_of(&why.about);
        Condition { array, uuid, member, ..Condition::of_server(EventName::StartProblem, why.text()) }
    }
}
