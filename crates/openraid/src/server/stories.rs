//! Stories of requests for other processes. Steps are recorded while a client wants them.

use std::time::{Duration, Instant};

use openraid_core::limits::STEPS_MAX;
use openraid_core::request_steps::StepEvent;
use openraid_runtime::service::ServiceStatus;
use openraid_status::shell_quoting::command_with;

use super::array_model::ServedArray;
use super::Server;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::story::{
    assemble, request_word, RequestModel, RequestsModel, StoriesModel, Story, StoryModel, StoryNames, StoryOwner,
};

/// Maximum number of stories in one answer.
const STORIES_MAX: usize = 200;
/// Maximum number of requests in one answer.
const REQUESTS_MAX: usize = 8_192;
/// A follower that made no request for this time has left: steps are not recorded for it any more.
const FOLLOWER_SILENCE_MAX: Duration = Duration::from_secs(5);

/// The client for which steps are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StepRecording {
    /// No client.
    #[default]
    Off,
    /// A follower that asked at this time.
    Follower(Instant),
    /// Every client, until a command ends it.
    On,
}

/// The requested stories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoryQuery {
    /// Requests that ended since this number.
    Since(u64),
    /// The story of this request, ended or not.
    Request(u64),
    /// The story of the last request that ended.
    Last,
    /// This number of the slowest requests.
    Slowest(usize),
}

impl Server {
    /// Record steps from now on, or stop recording.
    ///
    /// # Errors
    /// The service has ended.
    pub fn record(&self, on: bool) -> Result<ServerAnswer, Failure> {
        self.handle.keep_steps(if on { STEPS_MAX } else { 0 })?;
        self.state().keeping = if on { StepRecording::On } else { StepRecording::Off };
        let text = if on {
            format!(
                "the last {STEPS_MAX} steps of requests are recorded from now on; see openraid explain NAME --request \
                 last"
            )
        } else {
            "steps of requests are not recorded any more".into()
        };
        Ok(ServerAnswer::Done { text, array: None })
    }

    /// Stop recording for followers that have left.
    pub(super) fn forget_followers(&self) -> Result<(), Failure> {
        let gone = match self.state().keeping {
            StepRecording::Follower(asked) => asked.elapsed() > FOLLOWER_SILENCE_MAX,
            StepRecording::Off | StepRecording::On => false,
        };
        if gone {
            self.state().keeping = StepRecording::Off;
            self.handle.keep_steps(0)?;
        }
        Ok(())
    }

    /// The stories of an array.
    ///
    /// # Errors
    /// It is not served here, steps are not recorded, or the request's steps are gone.
    pub fn stories(&self, name: &str, wanted: StoryQuery) -> Result<StoriesModel, Failure> {
        let served = self.find(name)?;
        if let StoryQuery::Since(_) = wanted {
            self.follow()?;
        }
        let Some((steps, recorded)) = self.handle.steps()? else {
            return Err(Failure::refused(format!(
                "steps of requests are not recorded; begin with `{}`, or watch with `{}`",
                command_with("explain", [name], "--record on"),
                command_with("explain", [name], "--follow")
            )));
        };
        let names = names(&self.status()?, &served);
        let first = recorded - steps.len() as u64;
        // A number from before the present recording is void; the largest number asks for no steps yet.
        let wanted = match wanted {
            StoryQuery::Since(since) if since > recorded && since != u64::MAX => StoryQuery::Since(0),
            wanted => wanted,
        };
        let all = assemble(&steps, first);
        let chosen = choose(&all, &names, name, wanted)?;
        let left_out = chosen.len().saturating_sub(STORIES_MAX);
        let stories = chosen[left_out..].iter().map(|story| StoryModel::of(story, &all, &names)).collect();
        let lost_steps = if let StoryQuery::Since(since) = wanted { first.saturating_sub(since) } else { 0 };
        Ok(StoriesModel { stories, next: recorded, left_out: left_out as u64, lost_steps, kept: kept(&all, &names) })
    }

    /// Stories of the slowest requests, or of one, recorded while clients ask for them.
    ///
    /// # Errors
    /// It is not served here; the request is unknown.
    pub fn watched(&self, name: &str, wanted: StoryQuery) -> Result<StoriesModel, Failure> {
        self.find(name)?;
        self.follow()?;
        self.stories(name, wanted)
    }

    /// Requests of an array that arrived since this number, in their order; the largest number asks for none yet.
    ///
    /// # Errors
    /// It is not served here, or the service has ended.
    pub fn requests(&self, name: &str, since: u64) -> Result<RequestsModel, Failure> {
        let served = self.find(name)?;
        self.follow()?;
        let Some((steps, recorded)) = self.handle.steps()? else {
            return Err(Failure::refused(format!("{name}: steps of requests are not recorded any more; try again")));
        };
        let first = recorded - steps.len() as u64;
        // A number that is older than the recorded steps has no meaning any more.
        let since = if since > recorded && since != u64::MAX { 0 } else { since };
        let arrived = (first..).zip(&steps).filter(|(number, _)| *number >= since);
        let arrived = arrived.filter_map(|(number, step)| match step.event {
            StepEvent::Arrived { array, kind, offset, len } if array == served.array => {
                let kind = request_word(kind).to_owned();
                Some((number, RequestModel { at_ns: step.at.0, kind, offset_bytes: offset.get(), len_bytes: len }))
            }
            _ => None,
        });
        let found: Vec<(u64, RequestModel)> = arrived.take(REQUESTS_MAX + 1).collect();
        let next = found.get(REQUESTS_MAX).map_or(recorded, |(number, _)| *number);
        let more = found.len() > REQUESTS_MAX;
        let requests = found.into_iter().take(REQUESTS_MAX).map(|(_, request)| request).collect();
        let lost_steps = if since == u64::MAX { 0 } else { first.saturating_sub(since) };
        Ok(RequestsModel { requests, next, more, lost_steps })
    }

    fn follow(&self) -> Result<(), Failure> {
        let begins = {
            let mut state = self.state();
            let begins = state.keeping == StepRecording::Off;
            if state.keeping != StepRecording::On {
                state.keeping = StepRecording::Follower(Instant::now());
            }
            begins
        };
        if begins {
            self.handle.keep_steps(STEPS_MAX)?;
        }
        Ok(())
    }
}

fn names(status: &ServiceStatus, served: &ServedArray) -> StoryNames {
    let view = status.arrays.iter().find(|view| view.status.array == served.array);
    StoryNames {
        array: served.array,
        sets: view.map(|view| view.status.sets.clone()).unwrap_or_default(),
        drives: status.drives.iter().map(|view| (view.drive, view.member.clone())).collect(),
    }
}

/// Numbers of the first and the last recorded request of the array.
fn kept(all: &[Story], names: &StoryNames) -> Option<(u64, u64)> {
    let mut numbers = all.iter().filter(|story| names.is_of(story)).filter_map(|story| match story.owner {
        StoryOwner::Request(number) => Some(number),
        StoryOwner::Unit(..) => None,
    });
    let first = numbers.next()?;
    Some((first, numbers.max().unwrap_or(first)))
}

fn choose<'a>(all: &'a [Story], names: &StoryNames, name: &str, wanted: StoryQuery) -> Result<Vec<&'a Story>, Failure> {
    let of_client = || all.iter().filter(|story| names.is_of(story));
    let requests = || of_client().filter(|story| matches!(story.owner, StoryOwner::Request(_)));
    let took = |story: &Story| Some(story.steps.last()?.at.since(story.steps.first()?.at));
    match wanted {
        StoryQuery::Since(since) => {
            let mut ended: Vec<&Story> =
                of_client().filter(|story| story.ended.is_some_and(|at| at >= since)).collect();
            ended.sort_by_key(|story| story.ended);
            Ok(ended)
        }
        StoryQuery::Request(number) => {
            let found: Vec<&Story> = requests().filter(|story| story.owner == StoryOwner::Request(number)).collect();
            if found.is_empty() {
                let there = match kept(all, names) {
                    Some((first, last)) => format!("requests {first} to {last} are kept"),
                    None => "no request has come since steps are recorded".into(),
                };
                return Err(Failure::refused(format!("{name}: nothing is known of request {number}; {there}")));
            }
            Ok(found)
        }
        StoryQuery::Last => {
            let last = requests().filter(|story| story.ended.is_some()).max_by_key(|story| story.ended);
            last.map(|story| vec![story])
                .ok_or_else(|| Failure::refused(format!("{name}: no request has ended since steps are recorded")))
        }
        StoryQuery::Slowest(count) => {
            let mut ended: Vec<&Story> = requests().filter(|story| story.ended.is_some() && story.whole).collect();
            ended.sort_by_key(|story| std::cmp::Reverse(took(story)));
            ended.truncate(count.min(STORIES_MAX));
            Ok(ended)
        }
    }
}
