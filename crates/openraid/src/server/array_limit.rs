//! The limit of an array now, and the setting that raises it: judged by the work of its parts in the last seconds.
//!
//! ```text
//!  samples of the status --difference--> Figures --judge--> a sentence with its figures
//! ```
//!
//! The busy time of a part is the time in which it had work. From busy times and numbers of requests follow mean depth
//! and mean time (Little's law). It must never name a part that the figures do not show.

use std::collections::VecDeque;

use openraid_core::occupancy::Occupied;
use openraid_core::reason::Reason;
use openraid_runtime::service::{ArrayView, ServiceStatus};
use openraid_units::{Instant, Nanos};

use super::array_model::ServedArray;
use super::Server;
use crate::failure::Failure;
use crate::model::{LimitModel, LimitPart, PartModel};
use crate::quantity::{counted, human_rate};

/// Length of the window.
const WINDOW: Nanos = Nanos::from_secs(2);
/// Minimum length of the window for an answer.
const WINDOW_MIN: Nanos = Nanos::from_millis(200);
/// Minimum busy time of a part that limits, in per cent.
const BUSY: u64 = 85;
/// Minimum share of requests that wait for memory, if memory limits, in per cent.
const MEMORY_WAITS: u64 = 5;
/// The same for waits for the cache, and for other requests.
const CACHE_WAITS: u64 = 10;
/// See [`CACHE_WAITS`].
const LOCK_WAITS: u64 = 20;
/// Minimum mean time of a member's commands, in per cent of the other members' mean, at which it counts as slow.
const SLOWER: u64 = 150;

/// The statuses of the last seconds.
#[derive(Debug, Default)]
pub struct Samples(VecDeque<ServiceStatus>);

impl Samples {
    /// Add a status.
    pub fn keep(&mut self, status: ServiceStatus) {
        while self.0.get(1).is_some_and(|second| status.at.since(second.at) >= WINDOW) {
            self.0.pop_front();
        }
        self.0.push_back(status);
    }

    fn before(&self, now: Instant) -> Option<&ServiceStatus> {
        self.0.front().filter(|status| now.since(status.at) >= WINDOW_MIN)
    }
}

/// A drive in the window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DriveFigures {
    pub name: String,
    /// Its slot; none for a device of the journal.
    pub slot: Option<u16>,
    /// Share of the time in which it had a command, per mille.
    pub busy: u64,
    /// Mean number of its commands, in tenths.
    pub depth: u64,
    /// Number of commands.
    pub commands: u64,
    /// Mean time of a command in it.
    pub service: Nanos,
    /// Mean time of a command in its queue.
    pub queued: Nanos,
}

/// The figures of the window.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// Length of the window.
    pub window: Nanos,
    /// Requests of hosts, and writes among them.
    pub requests: u64,
    /// See `requests`.
    pub writes: u64,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Mean number of requests in the array, in tenths.
    pub depth: u64,
    /// Share of the time with a request in the array, per mille.
    pub inside: u64,
    /// Mean time of a request.
    pub mean: Nanos,
    pub members: Vec<DriveFigures>,
    /// The journal's devices.
    pub journal: Vec<DriveFigures>,
    /// Share of the time that the server's thread used a CPU, per mille.
    pub processor: u64,
    /// Share of the time that the thread polled for requests before it slept, per mille.
    pub looking: u64,
    /// Waits: for memory, for room in the cache, for the journal, for other requests.
    pub memory: u64,
    /// See `memory`.
    pub cache: u64,
    /// See `memory`.
    pub logged: LogWaits,
    /// See `memory`.
    pub locks: u64,
    /// Waits for rows that the journal redoes after a crash.
    pub redos: u64,
    /// Used part of the journal's ring, in per cent.
    pub fill: u64,
    /// Does a background task run?
    pub background: bool,
    /// Is every write acknowledged by the members?
    pub through: bool,
}

/// Waits for the journal, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogWaits {
    /// Room in its ring.
    pub room: u64,
    /// The previous entry, which is being written to the device.
    pub device: u64,
    /// A cache that could load more of it again.
    pub cache: u64,
}

impl Server {
    /// The limit of an array now.
    ///
    /// # Errors
    /// It is not served here.
    pub fn limit(&self, name: &str) -> Result<LimitModel, Failure> {
        let served = self.find(name)?;
        let now = self.status()?;
        let state = self.state();
        let figures = state.samples.before(now.at).and_then(|before| figures(before, &now, &served));
        Ok(figures.map_or_else(unknown, |figures| judge(name, &figures)))
    }
}

fn view<'a>(status: &'a ServiceStatus, served: &ServedArray) -> Option<&'a ArrayView> {
    status.arrays.iter().find(|view| view.status.array == served.array)
}

fn per_mille(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 1000 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

/// The mean number, in tenths.
fn mean_inside(before: &Occupied, now: &Occupied, window: Nanos) -> u64 {
    let stays = now.stays.saturating_sub(before.stays);
    u64::try_from(stays * 10 / u128::from(window.get().max(1))).unwrap_or(u64::MAX)
}

fn mean_stay(before: &Occupied, now: &Occupied, count: u64) -> Nanos {
    let stays = now.stays.saturating_sub(before.stays);
    Nanos(u64::try_from(stays / u128::from(count.max(1))).unwrap_or(u64::MAX))
}

/// The difference of two statuses.
fn figures(before: &ServiceStatus, now: &ServiceStatus, served: &ServedArray) -> Option<Figures> {
    let (old, new) = (view(before, served)?, view(now, served)?);
    let window = now.at.since(before.at);
    let since = |kind: usize| new.status.requests[kind].saturating_sub(old.status.requests[kind]);
    let requests: u64 = (0..4).map(since).sum();
    let sets = served.sets();
    let of_sets = |status: &ServiceStatus, reason: Reason| -> u64 {
        let views = status.arrays.iter().filter(|view| sets.contains(&view.status.array));
        let counts = views.flat_map(|view| view.status.reasons.iter());
        counts.filter(|(known, _)| *known == reason).map(|(_, count)| count).sum()
    };
    let waits = |reason: Reason| of_sets(now, reason).saturating_sub(of_sets(before, reason));
    let drive = |drive: openraid_units::DriveId, slot: Option<u16>| -> Option<DriveFigures> {
        let find = |status: &'_ ServiceStatus| status.drives.iter().find(|view| view.drive == drive).cloned();
        let (old, new) = (find(before)?, find(now)?);
        let commands = new.load.commands.saturating_sub(old.load.commands);
        let busy = new.load.working.busy.get().saturating_sub(old.load.working.busy.get());
        Some(DriveFigures {
            name: new.member,
            slot,
            busy: per_mille(busy, window.get()),
            depth: mean_inside(&old.load.working, &new.load.working, window),
            commands,
            service: mean_stay(&old.load.working, &new.load.working, commands),
            queued: mean_stay(&old.load.waiting, &new.load.waiting, commands),
        })
    };
    let of_array = now.arrays.iter().filter(|view| sets.contains(&view.status.array));
    let members = of_array.clone().flat_map(|view| &view.status.members);
    let members = members.filter_map(|member| drive(member.drive?, Some(member.slot?.0)));
    let journal = now.journal.iter().flat_map(|journal| &journal.devices).filter_map(|(id, _)| drive(*id, None));
    let busy = new.load.busy.get().saturating_sub(old.load.busy.get());
    Some(Figures {
        window,
        requests,
        writes: since(1),
        bytes: (0..2).map(|way| new.status.bytes[way].saturating_sub(old.status.bytes[way])).sum(),
        depth: mean_inside(&old.load, &new.load, window),
        inside: per_mille(busy, window.get()),
        mean: mean_stay(&old.load, &new.load, requests),
        members: members.collect(),
        journal: journal.collect(),
        processor: per_mille(now.worked.get().saturating_sub(before.worked.get()), window.get()),
        looking: per_mille(now.looked.get().saturating_sub(before.looked.get()), window.get()),
        memory: waits(Reason::WaitedForHostFrames) + waits(Reason::WaitedForFrames),
        cache: waits(Reason::WaitedForCache),
        logged: LogWaits {
            room: waits(Reason::WaitedForJournal),
            device: waits(Reason::WaitedForJournalWrite),
            cache: waits(Reason::WaitedForReplayRoom),
        },
        locks: waits(Reason::WaitedForLock),
        redos: waits(Reason::WaitedForRedo),
        fill: now.journal.as_ref().map_or(0, |journal| per_mille(journal.used.get(), journal.ring.get()) / 10),
        background: of_array.clone().any(|view| view.status.task.as_ref().is_some_and(|task| !task.paused)),
        through: new.status.policy.write_cache == openraid_core::admin::WriteCache::Through,
    })
}

fn millis(time: Nanos) -> String {
    format!("{}.{:02} ms", time.get() / 1_000_000, time.get() / 10_000 % 100)
}

fn tenths(value: u64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

/// A part that may limit: its name in `--json`, its work, and the remedy.
struct Verdict {
    part: LimitPart,
    what: String,
    suggestion: String,
}

/// The limiting part, in a sentence.
pub fn judge(name: &str, figures: &Figures) -> LimitModel {
    let verdict = verdict(figures);
    let seconds = tenths(figures.window.get() / 100_000_000);
    let load = format!(
        "{} requests a second ({}), {} inside on average, {} each",
        figures.requests.saturating_mul(1_000_000_000) / figures.window.get().max(1),
        human_rate(figures.bytes.saturating_mul(1000) / (figures.window.get() / 1_000_000).max(1)),
        tenths(figures.depth),
        millis(figures.mean)
    );
    let parts = figures.members.iter().map(|member| part(LimitPart::Member, member));
    let parts = parts.chain(figures.journal.iter().map(|device| part(LimitPart::Journal, device)));
    let processor = PartModel {
        part: LimitPart::Processor,
        name: None,
        slot: None,
        busy_percent: figures.processor / 10,
        depth_tenths: 0,
        commands: 0,
        service_ns: 0,
        queued_ns: 0,
    };
    LimitModel {
        part: verdict.part,
        text: format!("what limits {name} now: {}; in the last {seconds} s there were {load}", verdict.what),
        suggestion: verdict.suggestion,
        window_ms: figures.window.get() / 1_000_000,
        requests: figures.requests,
        bytes: figures.bytes,
        depth_tenths: figures.depth,
        mean_ns: figures.mean.get(),
        waits_for_memory: figures.memory,
        waits_for_cache: figures.cache,
        waits_for_journal: figures.logged.room + figures.logged.device + figures.logged.cache,
        waits_for_others: figures.locks,
        parts: parts.chain([processor]).collect(),
    }
}

fn part(kind: LimitPart, drive: &DriveFigures) -> PartModel {
    PartModel {
        part: kind,
        name: Some(drive.name.clone()),
        slot: drive.slot,
        busy_percent: drive.busy / 10,
        depth_tenths: drive.depth,
        commands: drive.commands,
        service_ns: drive.service.get(),
        queued_ns: drive.queued.get(),
    }
}

fn verdict(figures: &Figures) -> Verdict {
    let share = |waits: u64, of: u64| waits * 100 / of.max(1);
    if figures.requests == 0 && figures.inside == 0 {
        let suggestion = "none".into();
        return Verdict { part: LimitPart::Nothing, what: unasked(figures), suggestion };
    }
    if let Some(device) = figures.journal.iter().max_by_key(|device| device.busy) {
        if device.busy / 10 >= BUSY && figures.writes > 0 {
            return Verdict {
                part: LimitPart::Journal,
                what: format!("the journal, {}: {}", device.name, drive_text(device)),
                suggestion: "a faster device for the journal, or more writes at once: a group of them costs one write"
                    .into(),
            };
        }
    }
    if share(figures.memory, figures.requests) >= MEMORY_WAITS {
        return Verdict {
            part: LimitPart::Memory,
            what: format!("memory for payload: requests and operations waited for it {}", times(figures.memory)),
            suggestion: "serve with more --memory, or let clients have fewer requests under way".into(),
        };
    }
    // Polling ends as soon as a request comes: it keeps a CPU busy, but no request waits for it.
    let worked = figures.processor.saturating_sub(figures.looking) / 10;
    if worked >= BUSY {
        return Verdict {
            part: LimitPart::Processor,
            what: format!("the processor: the server's thread worked {worked} % of the time"),
            suggestion: "larger requests cost less for each byte; another array may have a server of its own".into(),
        };
    }
    let member = figures.members.iter().max_by_key(|member| member.busy);
    if let Some(member) = member.filter(|member| member.busy / 10 >= BUSY) {
        return busiest(figures, member);
    }
    if let Some(found) = by_cached_writes(figures) {
        return found;
    }
    if share(figures.redos, figures.requests) >= LOCK_WAITS {
        return Verdict {
            part: LimitPart::Redo,
            what: format!(
                "the rows that the journal redoes after the crash: requests waited for them {}",
                times(figures.redos)
            ),
            suggestion:
                "none: it ends when the journal is replayed, and the rows that a request waits for are redone next"
                    .into(),
        };
    }
    if share(figures.locks, figures.requests) >= LOCK_WAITS {
        return Verdict {
            part: LimitPart::Locks,
            what: format!("requests wait for others on the same rows: {}", times(figures.locks)),
            suggestion: "a smaller chunk, or clients that do not write side by side into one stripe".into(),
        };
    }
    by_depth(figures, member)
}

fn times(count: u64) -> String {
    counted(count, "time", "times")
}

/// The most frequent wait of writes for the cache and the journal, if it was frequent enough.
fn by_cached_writes(figures: &Figures) -> Option<Verdict> {
    let LogWaits { room, device, cache: reload } = figures.logged;
    let most = room.max(device).max(reload).max(figures.cache);
    if most * 100 / figures.writes.max(1) < CACHE_WAITS {
        return None;
    }
    Some(if most == room {
        Verdict {
            part: LimitPart::Journal,
            what: format!(
                "the journal has no room: writes waited for it {}; {} % of its ring is taken, and the rest is \
                 reserved for the redo records of dirty data",
                times(room),
                figures.fill
            ),
            suggestion:
                "a larger journal (openraid journal create --size): three times the cache is plenty; a smaller --cache \
                   needs less of it; otherwise more or faster members"
                    .into(),
        }
    } else if most == device {
        Verdict {
            part: LimitPart::Journal,
            what: format!("the journal's device: writes waited {} until it had the entry before theirs", times(device)),
            suggestion: "a faster device for the journal; a larger one does not help".into(),
        }
    } else if most == reload {
        Verdict {
            part: LimitPart::Cache,
            what: format!(
                "the cache is small for a journal: writes waited {} because it could not load more of the \
                 log again after a crash; {} % of the journal's ring is taken",
                times(reload),
                figures.fill
            ),
            suggestion: "serve with a larger --cache; a larger journal does not help; otherwise more or faster members"
                .into(),
        }
    } else {
        Verdict {
            part: LimitPart::Cache,
            what: format!("the cache is full of dirty data: writes waited for room {}", times(most)),
            suggestion: "serve with a larger --cache if the load comes in bursts; otherwise more or faster members"
                .into(),
        }
    })
}

/// No client sends requests: the work of the members in spite of that.
fn unasked(figures: &Figures) -> String {
    let nothing = "nothing: no client sends requests";
    let Some(member) = figures.members.iter().filter(|member| member.commands > 0).max_by_key(|member| member.busy)
    else {
        return nothing.into();
    };
    let why =
        if figures.background { "background work continues" } else { "earlier requests are written to the members" };
    format!("{nothing}; {why} (the busiest, {}: {})", member.name, drive_text(member))
}

fn drive_text(drive: &DriveFigures) -> String {
    format!(
        "busy {} % of the time with {} commands at once, {} each",
        drive.busy / 10,
        tenths(drive.depth),
        millis(drive.service)
    )
}

/// A member limits: it is slower than the others, or all have too much work.
fn busiest(figures: &Figures, member: &DriveFigures) -> Verdict {
    let others: Vec<&DriveFigures> = figures.members.iter().filter(|other| other.slot != member.slot).collect();
    let mean = others.iter().map(|other| other.service.get()).sum::<u64>() / (others.len() as u64).max(1);
    let slower = !others.is_empty() && member.service.get() * 100 >= mean * SLOWER;
    let place = member.slot.map_or_else(String::new, |slot| format!("slot {slot}, "));
    let what = format!("the member in {place}{}: {}", member.name, drive_text(member));
    let suggestion = if slower {
        format!(
            "its commands take {}, those of the others {}: check it, and replace it (openraid replace)",
            millis(member.service),
            millis(Nanos(mean))
        )
    } else if figures.background {
        "background work takes part of it: openraid set NAME rebuild.rate=... or scrub.rate=... leaves more".into()
    } else if figures.through && figures.writes * 2 >= figures.requests {
        "a write cache merges writes into whole stripes: write.cache=journal (serve --journal) or volatile; otherwise \
         more or faster members"
            .into()
    } else {
        "more or faster members; for repeated reads a larger --cache".into()
    };
    Verdict { part: LimitPart::Member, what, suggestion }
}

/// No part is busy: the clients send too few requests at once.
fn by_depth(figures: &Figures, member: Option<&DriveFigures>) -> Verdict {
    let idle = 100 - (figures.inside / 10).min(100);
    let busy = member.map_or(0, |member| member.busy / 10);
    let what = if idle >= 50 {
        format!("the clients: they sent no request for {idle} % of the time")
    } else {
        format!(
            "the clients: they have {} requests under way at once, and no part has more to do than the busiest member, \
             {busy} % of the time",
            tenths(figures.depth)
        )
    };
    Verdict {
        part: LimitPart::Clients,
        what,
        suggestion: "more requests at once (queue depth, more clients), or larger ones".into(),
    }
}

fn unknown() -> LimitModel {
    LimitModel {
        part: LimitPart::Unknown,
        text: "the limit is not known yet: ask again in a second".into(),
        suggestion: "none".into(),
        ..LimitModel::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(slot: u16, busy: u64, depth: u64, micros: u64) -> DriveFigures {
        DriveFigures {
            name: format!("/srv/d{slot}"),
            slot: Some(slot),
            busy,
            depth,
            commands: 100,
            service: Nanos::from_micros(micros),
            queued: Nanos::ZERO,
        }
    }

    fn figures() -> Figures {
        Figures {
            window: Nanos::from_secs(2),
            requests: 400,
            writes: 0,
            bytes: 400 << 12,
            depth: 10,
            inside: 1000,
            mean: Nanos::from_millis(5),
            members: (0..4).map(|slot| drive(slot, 250, 2, 5000)).collect(),
            through: true,
            ..Figures::default()
        }
    }

    #[test]
    fn the_part_that_is_named_is_the_one_that_the_figures_show() {
        let part = |figures: &Figures| judge("data", figures).part;
        let at_depth_one = figures();
        assert_eq!(part(&at_depth_one), LimitPart::Clients);
        assert!(judge("data", &at_depth_one).text.contains("1.0 requests under way at once"));
        let mut deep = figures();
        deep.members[2] = drive(2, 980, 43, 11_300);
        let found = judge("data", &deep);
        assert_eq!(found.part, LimitPart::Member);
        assert!(found.text.contains("slot 2, /srv/d2: busy 98 % of the time with 4.3 commands at once, 11.30 ms each"));
        assert!(found.suggestion.contains("11.30 ms, those of the others 5.00 ms"), "{}", found.suggestion);
        let mut even = figures();
        even.members = (0..4).map(|slot| drive(slot, 900, 30, 5000)).collect();
        assert!(judge("data", &even).suggestion.contains("more or faster members"));
        even.writes = 300;
        assert!(judge("data", &even).suggestion.contains("write.cache=journal"));
        even.background = true;
        assert!(judge("data", &even).suggestion.contains("rebuild.rate"));
        let mut worn = even.clone();
        worn.journal = vec![drive(9, 950, 10, 8000)];
        assert_eq!(part(&worn), LimitPart::Journal);
        let hungry = Figures { memory: 40, ..even.clone() };
        assert_eq!(part(&hungry), LimitPart::Memory);
        assert_eq!(part(&Figures { processor: 900, ..figures() }), LimitPart::Processor);
        let looks = judge("data", &Figures { processor: 900, looking: 100, ..figures() });
        assert_eq!(
            (looks.part, looks.parts[4].busy_percent),
            (LimitPart::Clients, 90),
            "looks are counted, and limit nothing"
        );
        assert_eq!(part(&Figures { writes: 100, cache: 50, ..figures() }), LimitPart::Cache);
        assert_eq!(part(&Figures { locks: 200, ..figures() }), LimitPart::Locks);
        let redone = judge("data", &Figures { redos: 200, ..figures() });
        assert_eq!(redone.part, LimitPart::Redo);
        assert!(!redone.suggestion.contains("chunk"), "{}", redone.suggestion);
        let idle = Figures { requests: 0, inside: 0, ..figures() };
        assert_eq!(part(&idle), LimitPart::Nothing);
        let text = judge("data", &idle).text;
        assert!(text.contains("requests are written to the members (the busiest, /srv/d3: busy 25 %"), "{text}");
        let resting = Figures { members: Vec::new(), ..idle };
        assert!(judge("data", &resting).text.contains("no client sends requests; in the last"));
        assert_eq!(unknown().part, LimitPart::Unknown);
    }

    #[test]
    fn a_full_ring_a_slow_device_and_a_small_cache_are_distinguished() {
        let waits = |room, device, cache| LogWaits { room, device, cache };
        let writes = Figures { writes: 100, cache: 3, ..figures() };
        let full = judge("data", &Figures { logged: waits(50, 4, 0), fill: 97, ..writes.clone() });
        assert_eq!((full.part, full.waits_for_journal), (LimitPart::Journal, 54));
        assert!(full.text.contains("waited for it 50 times; 97 % of its ring is taken"), "{}", full.text);
        assert!(full.suggestion.starts_with("a larger journal"), "{}", full.suggestion);
        // The ring is empty: a larger one would not help.
        let small = judge("data", &Figures { logged: waits(0, 4, 50), fill: 0, ..writes.clone() });
        assert_eq!((small.part, small.waits_for_journal), (LimitPart::Cache, 54));
        assert!(small.text.contains("0 % of the journal's ring is taken"), "{}", small.text);
        assert!(
            small.suggestion.starts_with("serve with a larger --cache; a larger journal does not help"),
            "{}",
            small.suggestion
        );
        let slow = judge("data", &Figures { logged: waits(4, 50, 0), fill: 1, ..writes.clone() });
        assert_eq!(slow.part, LimitPart::Journal);
        assert!(slow.suggestion.starts_with("a faster device"), "{}", slow.suggestion);
        let dirty = Figures { cache: 60, logged: waits(50, 4, 20), fill: 97, ..writes.clone() };
        assert!(judge("data", &dirty)
            .text
            .contains("the cache is full of dirty data: writes waited for room 60 times"));
        // Nine waits in a hundred writes are too few to name a cause.
        assert_eq!(judge("data", &Figures { logged: waits(9, 9, 9), ..writes }).part, LimitPart::Clients);
    }
}
