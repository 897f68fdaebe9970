//! The rates of background tasks, measured over the last seconds, so that a pause or a new limit shows soon.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use openraid_core::admin::{TaskKind, TaskStatus};
use openraid_runtime::service::ServiceStatus;
use openraid_units::ArrayId;

/// Maximum age of samples.
const WINDOW: Duration = Duration::from_secs(20);
/// Minimum length of samples for a rate.
const WINDOW_MIN: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct Track {
    kind: TaskKind,
    samples: VecDeque<(Instant, u64)>,
}

/// The tasks of all arrays.
#[derive(Debug, Default)]
pub struct TaskRates {
    tracks: HashMap<ArrayId, Track>,
}

impl TaskRates {
    /// Note the progress of every task.
    pub fn sample(&mut self, status: &ServiceStatus, now: Instant) {
        for view in &status.arrays {
            let array = view.status.array;
            match &view.status.task {
                Some(task) => self.note(array, task, now),
                None => drop(self.tracks.remove(&array)),
            }
        }
        self.tracks.retain(|array, _| status.arrays.iter().any(|view| view.status.array == *array));
    }

    fn note(&mut self, array: ArrayId, task: &TaskStatus, now: Instant) {
        let track = self.tracks.entry(array).or_insert_with(|| Track { kind: task.kind, samples: VecDeque::new() });
        let done = task.done.bytes().get();
        let other = track.kind != task.kind || track.samples.back().is_some_and(|(_, before)| *before > done);
        if other || task.paused {
            track.samples.clear();
            track.kind = task.kind;
        }
        track.samples.push_back((now, done));
        while track.samples.front().is_some_and(|(at, _)| now.duration_since(*at) > WINDOW) {
            track.samples.pop_front();
        }
    }

    /// Bytes of each member a second; 0 if the rate is unknown.
    pub fn of(&self, array: ArrayId) -> u64 {
        let Some(track) = self.tracks.get(&array) else { return 0 };
        let (Some((first, from)), Some((last, to))) = (track.samples.front(), track.samples.back()) else { return 0 };
        let time = last.duration_since(*first);
        if time < WINDOW_MIN {
            return 0;
        }
        u64::try_from(u128::from(to - from) * 1000 / time.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Sectors;

    fn task(done: u64, paused: bool) -> TaskStatus {
        TaskStatus {
            kind: TaskKind::Rebuild,
            done: Sectors(done),
            total: Sectors(1 << 20),
            paused,
            since: openraid_units::Instant::ZERO,
            done_at_start: Sectors::ZERO,
            mismatches: 0,
            scrub: None,
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_a_pause_resets_it() {
        let (mut rates, array, start) = (TaskRates::default(), ArrayId(0), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in 0..100 {
            // Slow for a long time, then ten times as fast.
            let done = if second < 50 { second * 2 } else { 100 + (second - 50) * 20 };
            rates.note(array, &task(done, false), at(second));
        }
        assert_eq!(rates.of(array), 20 * 512);
        rates.note(array, &task(1100, true), at(100));
        assert_eq!(rates.of(array), 0);
        rates.note(array, &task(0, false), at(101));
        assert_eq!(rates.of(array), 0, "a task that begins again has no rate yet");
        assert_eq!(rates.of(ArrayId(9)), 0);
    }
}
