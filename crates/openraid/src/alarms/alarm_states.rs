//! The begin of each state, and its acknowledgement. No clock and no file: the caller passes the time.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::events::Severity;
use crate::quantity::counted;
use openraid_status::alarm::{AlarmModel, Condition};

/// Maximum number of open alarms; if there are more, the least severe are left out, and an alarm gives their number.
pub const ACTIVE_MAX: usize = 512;
/// Maximum number of ended alarms in the list; the oldest are dropped first.
pub const ENDED_MAX: usize = 128;
/// Maximum length of a text or a name, in bytes.
pub const TEXT_BYTES_MAX: usize = 500;
/// A warning or worse that begins again within this time of its end is the same alarm. Sinks get its end when it has stayed away
/// for as long.
pub const RETURN_SECONDS: u64 = 300;
/// Time after the start of a server in which it finds the states that held before its restart.
pub const START_SECONDS: u64 = 120;

/// The subject of a state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AlarmSubject {
    /// An array, by its UUID; a raw drive by its name.
    Array(String),
    /// A server, by its name.
    Server(String),
}

/// A stored alarm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Alarm {
    /// The fault.
    #[serde(flatten)]
    pub what: Condition,
    /// The server that it is about, if it is not about an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its begin: seconds since 1970.
    pub since: u64,
    /// Its end.
    pub until: Option<u64>,
    /// The time of its acknowledgement.
    pub acknowledged: Option<u64>,
    /// How often it has begun again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub returns: u32,
    /// The messages that sinks have accepted, by the name of the sink.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, Delivery>,
}

/// The last message about an alarm that a sink has accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Delivery {
    /// The level in the message.
    pub level: Severity,
    /// Did the message report the end?
    pub ended: bool,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Alarm {
    /// Does this sink need a message about the alarm? A sink that got the beginning also gets the end, whatever its
    /// level is now.
    fn is_pending(&self, sink: &str, least: Severity) -> bool {
        let is_new = self.acknowledged.is_none();
        match self.told.get(sink) {
            None => self.what.level >= least && (self.until.is_some() || is_new),
            Some(told) if self.until.is_some() => !told.ended,
            Some(told) if told.ended => self.what.level >= least && is_new,
            Some(told) => self.what.level > told.level && is_new,
        }
    }

    /// Has it ended a short time ago? Jobs, which have the level `info`, do not come back: the next one is another job.
    fn may_return(&self, now: u64) -> bool {
        let is_recent = |until: u64| (until..until.saturating_add(RETURN_SECONDS)).contains(&now);
        self.what.level > Severity::Info && self.until.is_some_and(is_recent)
    }

    /// For sinks: a state that came back holds until it has stayed away.
    fn damped(&self, now: u64) -> Self {
        let holds = self.returns > 0 && self.may_return(now);
        Self { until: self.until.filter(|_| !holds), ..self.clone() }
    }

    /// The level at which the sink has it as a state that holds.
    pub fn level_at(&self, sink: &str) -> Option<Severity> {
        self.told.get(sink).filter(|told| !told.ended).map(|told| told.level)
    }

    fn is_about(&self, subject: &AlarmSubject) -> bool {
        match subject {
            AlarmSubject::Array(key) => {
                self.server.is_none() && self.what.uuid.as_ref().or(self.what.array.as_ref()) == Some(key)
            }
            AlarmSubject::Server(name) => self.server.as_ref() == Some(name),
        }
    }

    /// The subject that it is about.
    pub fn subject(&self) -> AlarmSubject {
        let array = self.what.uuid.as_ref().or(self.what.array.as_ref());
        match (&self.server, array) {
            (Some(server), _) => AlarmSubject::Server(server.clone()),
            (None, Some(array)) => AlarmSubject::Array(array.clone()),
            (None, None) => AlarmSubject::Server(String::new()),
        }
    }

    /// For output.
    pub fn model(&self) -> AlarmModel {
        let mut what = self.what.clone();
        if self.returns > 0 {
            let times = counted(self.returns.into(), "time", "times");
            what.text.push_str(&format!("; it comes and goes: it has begun again {times}"));
        }
        AlarmModel {
            id: self.what.id(),
            message_id: self.what.message_id(),
            what,
            since_seconds: self.since,
            until_seconds: self.until,
            acknowledged_seconds: self.acknowledged,
        }
    }
}

/// All alarms.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Book {
    /// Open and ended alarms, in the order of their begins.
    pub alarms: Vec<Alarm>,
    /// Known sinks: a new sink gets no messages about alarms that ended before.
    #[serde(default)]
    pub sinks: BTreeSet<String>,
    /// When this server started: seconds since 1970.
    #[serde(skip)]
    pub started: u64,
}

impl Book {
    /// A subject has these states now, and no others. Returns whether anything changed.
    pub fn observe(&mut self, subject: &AlarmSubject, now: u64, conditions: &[Condition]) -> bool {
        let mut changed = false;
        for alarm in self.alarms.iter_mut().filter(|alarm| alarm.until.is_none() && alarm.is_about(subject)) {
            match conditions.iter().find(|condition| condition.is_same(&alarm.what)) {
                Some(condition) => changed |= alarm.follow(condition),
                None if alarm.what.until_acknowledged && alarm.acknowledged.is_none() => {}
                None => {
                    alarm.until = Some(now.max(alarm.since));
                    changed = true;
                }
            }
        }
        for condition in conditions {
            changed |= self.begin(subject, now, condition);
        }
        if changed {
            self.limit();
        }
        changed
    }

    /// An event shows a state that may be over before the next look: it holds until then. Returns whether anything changed.
    pub fn glimpse(&mut self, subject: &AlarmSubject, now: u64, condition: &Condition) -> bool {
        let changed = self.begin(subject, now, condition);
        if changed {
            self.limit();
        }
        changed
    }

    /// Open the alarm of a state; false if it is open.
    fn begin(&mut self, subject: &AlarmSubject, now: u64, condition: &Condition) -> bool {
        let is_it = |alarm: &&mut Alarm| alarm.is_about(subject) && alarm.what.is_same(condition);
        let mut known: Vec<&mut Alarm> = self.alarms.iter_mut().filter(is_it).collect();
        if known.iter().any(|alarm| alarm.until.is_none()) {
            return false;
        }
        let what = shortened(condition);
        let starts = (self.started..self.started.saturating_add(START_SECONDS)).contains(&now);
        if let Some(alarm) = known.iter_mut().rev().find(|alarm| alarm.may_return(now)) {
            // It held before the restart, and holds: only the server went away.
            if starts && alarm.since < self.started {
                (alarm.what, alarm.until) = (what, None);
                return true;
            }
            (alarm.what, alarm.until, alarm.acknowledged) = (what, None, None);
            alarm.returns = alarm.returns.saturating_add(1);
            return true;
        }
        let server = match subject {
            AlarmSubject::Server(name) => Some(name.clone()),
            AlarmSubject::Array(_) => None,
        };
        self.alarms.push(Alarm {
            what,
            server,
            since: now,
            until: None,
            acknowledged: None,
            returns: 0,
            told: BTreeMap::new(),
        });
        true
    }

    /// Acknowledge the open alarms that fit. Returns their names.
    pub fn acknowledge(&mut self, now: u64, fits: impl Fn(&Alarm) -> bool) -> Vec<String> {
        let open = |alarm: &&mut Alarm| alarm.until.is_none() && alarm.acknowledged.is_none();
        let fitting = self.alarms.iter_mut().filter(open).filter(|alarm| fits(alarm));
        fitting
            .map(|alarm| {
                alarm.acknowledged = Some(now.max(alarm.since));
                alarm.what.id()
            })
            .collect()
    }

    /// End the alarms of unknown arrays, and give the alarms of ended servers to this one.
    pub fn retire(&mut self, now: u64, is_known: impl Fn(&str) -> bool, heir: &str, is_gone: impl Fn(&str) -> bool) {
        for alarm in self.alarms.iter_mut().filter(|alarm| alarm.until.is_none()) {
            match alarm.subject() {
                AlarmSubject::Array(key) if !is_known(&key) => alarm.until = Some(now.max(alarm.since)),
                AlarmSubject::Server(name) if is_gone(&name) => alarm.server = Some(heir.into()),
                AlarmSubject::Array(_) | AlarmSubject::Server(_) => {}
            }
        }
    }

    /// Set the list of sinks. Pending messages to other sinks are dropped.
    pub fn set_sinks(&mut self, names: &BTreeSet<String>) {
        for alarm in &mut self.alarms {
            alarm.told.retain(|name, _| names.contains(name));
            let new = names.iter().filter(|name| alarm.until.is_some() && !self.sinks.contains(*name));
            let told = Delivery { level: alarm.what.level, ended: true };
            alarm.told.extend(new.map(|name| (name.clone(), told)));
        }
        self.sinks.clone_from(names);
    }

    /// The alarms for which a sink needs a message.
    pub fn pending(&self, sink: &str, least: Severity, now: u64, is_own: impl Fn(&AlarmSubject) -> bool) -> Vec<Alarm> {
        self.damped(now, is_own).filter(|alarm| alarm.is_pending(sink, least)).collect()
    }

    /// The alarms that a sink has as states that hold, and that do hold.
    pub fn standing(&self, sink: &str, now: u64, is_own: impl Fn(&AlarmSubject) -> bool) -> Vec<Alarm> {
        self.damped(now, is_own).filter(|alarm| alarm.until.is_none() && alarm.level_at(sink).is_some()).collect()
    }

    /// The alarms of some subjects for sinks: see [`Alarm::damped`].
    fn damped<F: Fn(&AlarmSubject) -> bool>(&self, now: u64, is_own: F) -> impl Iterator<Item = Alarm> + use<'_, F> {
        self.alarms.iter().filter(move |alarm| is_own(&alarm.subject())).map(move |alarm| alarm.damped(now))
    }

    /// A sink has accepted messages about these alarms, in this state. Returns whether this is new.
    pub fn note_sent(&mut self, sink: &str, sent: &[Alarm]) -> bool {
        let mut is_new = false;
        for alarm in &mut self.alarms {
            let is_it = |sent: &&Alarm| sent.since == alarm.since && sent.what.is_same(&alarm.what);
            if let Some(sent) = sent.iter().find(is_it) {
                let told = Delivery { level: sent.what.level, ended: sent.until.is_some() };
                is_new |= alarm.told.insert(sink.to_owned(), told) != Some(told);
            }
        }
        is_new
    }

    /// The open alarms of a subject, the most severe first.
    pub fn of(&self, subject: &AlarmSubject) -> Vec<AlarmModel> {
        let about = self.alarms.iter().filter(|alarm| alarm.until.is_none() && alarm.is_about(subject));
        let mut models: Vec<AlarmModel> = about.map(Alarm::model).collect();
        models.sort_by(|a, b| b.what.level.cmp(&a.what.level).then(a.since_seconds.cmp(&b.since_seconds)));
        models
    }

    /// Take the alarms of other subjects from another book.
    pub fn merge_others(&mut self, other: Self, is_own: impl Fn(&AlarmSubject) -> bool) {
        self.alarms.retain(|alarm| is_own(&alarm.subject()));
        self.alarms.extend(other.alarms.into_iter().filter(|alarm| !is_own(&alarm.subject())));
        self.alarms.sort_by_key(|alarm| alarm.since);
        self.limit();
    }

    fn limit(&mut self) {
        let mut more = self.alarms.iter().filter(|alarm| alarm.until.is_some()).count().saturating_sub(ENDED_MAX);
        // Alarms that every sink knows are dropped first.
        for all_told in [true, false] {
            let is_told =
                |alarm: &Alarm| self.sinks.iter().all(|sink| alarm.told.get(sink).is_some_and(|told| told.ended));
            self.alarms.retain(|alarm| {
                let goes = alarm.until.is_some() && more > 0 && (!all_told || is_told(alarm));
                more -= usize::from(goes);
                !goes
            });
        }
        for level in [Severity::Info, Severity::Warning, Severity::Critical] {
            let mut more = self.alarms.iter().filter(|alarm| alarm.until.is_none()).count().saturating_sub(ACTIVE_MAX);
            self.alarms.retain(|alarm| {
                let goes = alarm.until.is_none() && alarm.what.level == level && more > 0;
                more -= usize::from(goes);
                !goes
            });
        }
    }
}

impl Alarm {
    /// The state continues; its text may have changed. If it became worse, it must be acknowledged again.
    fn follow(&mut self, condition: &Condition) -> bool {
        let what = shortened(condition);
        if what == self.what {
            return false;
        }
        if what.level > self.what.level {
            self.acknowledged = None;
        }
        self.what = what;
        true
    }
}

fn shortened(condition: &Condition) -> Condition {
    let cut = |text: &str| {
        let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text[..end.unwrap_or(0)].to_owned()
    };
    Condition {
        text: cut(&condition.text),
        member: condition.member.as_deref().map(cut),
        next_step: condition.next_step.as_deref().map(cut),
        ..condition.clone()
    }
}

#[cfg(test)]
mod tests {
    use openraid_status::EventName;

    use super::*;

    fn condition(event: EventName, level: Severity) -> Condition {
        let array = Some("data".to_owned());
        let uuid = Some("1".to_owned());
        Condition { array, uuid, level, ..Condition::of_server(event, format!("data: {}", event.word())) }
    }

    fn times(book: &Book) -> Vec<(String, u64, Option<u64>, Option<u64>)> {
        book.alarms.iter().map(|alarm| (alarm.what.id(), alarm.since, alarm.until, alarm.acknowledged)).collect()
    }

    #[test]
    fn a_state_has_a_beginning_and_an_end_and_comes_back_as_another_alarm() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        let degraded = condition(EventName::DegradedArray, Severity::Warning);
        assert!(book.observe(&data, 10, std::slice::from_ref(&degraded)));
        assert!(!book.observe(&data, 20, std::slice::from_ref(&degraded)), "nothing new");
        assert!(book.observe(&data, 30, &[]));
        assert!(!book.observe(&data, 40, &[]));
        let later = 30 + RETURN_SECONDS;
        assert!(book.observe(&data, later, std::slice::from_ref(&degraded)));
        let id = "data:DegradedArray".to_owned();
        assert_eq!(times(&book), [(id.clone(), 10, Some(30), None), (id, later, None, None)]);
        assert_eq!(book.of(&data)[0].message_id, "StorageDevice.1.2.VolumeDegraded");
    }

    #[test]
    fn an_alarm_follows_its_array_through_a_new_name_and_is_open_again_when_it_gets_worse() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        book.observe(&data, 10, &[condition(EventName::DegradedArray, Severity::Warning)]);
        assert_eq!(book.acknowledge(11, |_| true), ["data:DegradedArray"]);
        assert_eq!(book.acknowledge(12, |_| true), [""; 0], "once");
        let renamed = Condition { array: Some("new".into()), ..condition(EventName::DegradedArray, Severity::Warning) };
        book.observe(&data, 20, std::slice::from_ref(&renamed));
        assert_eq!(times(&book), [("new:DegradedArray".into(), 10, None, Some(11))]);
        book.observe(&data, 30, &[Condition { level: Severity::Critical, ..renamed }]);
        assert_eq!(times(&book), [("new:DegradedArray".into(), 10, None, None)]);
    }

    #[test]
    fn a_forced_start_is_an_alarm_until_acknowledged_and_is_not_raised_twice() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        let forced = Condition { until_acknowledged: true, ..condition(EventName::ForcedStart, Severity::Critical) };
        book.observe(&data, 10, std::slice::from_ref(&forced));
        book.observe(&data, 20, &[]);
        assert_eq!(times(&book), [("data:ForcedStart".into(), 10, None, None)], "the next start was clean");
        book.observe(&data, 30, std::slice::from_ref(&forced));
        book.acknowledge(31, |_| true);
        book.observe(&data, 32, std::slice::from_ref(&forced));
        assert_eq!(times(&book), [("data:ForcedStart".into(), 10, None, Some(31))]);
        book.observe(&data, 40, &[]);
        assert_eq!(times(&book), [("data:ForcedStart".into(), 10, Some(40), Some(31))]);
    }

    #[test]
    fn subjects_are_separate_and_a_server_takes_over_the_alarms_of_ended_servers() {
        let mut book = Book::default();
        let server = |name: &str| AlarmSubject::Server(name.into());
        let lost = Condition::of_server(EventName::JournalLost, "lost".into());
        book.observe(&server("7"), 10, std::slice::from_ref(&lost));
        book.observe(&AlarmSubject::Array("1".into()), 10, &[condition(EventName::Fail, Severity::Critical)]);
        book.observe(&server("8"), 20, &[]);
        assert_eq!(book.alarms.iter().filter(|alarm| alarm.until.is_none()).count(), 2);
        book.retire(30, |uuid| uuid == "9", "8", |name| name == "7");
        assert_eq!(book.of(&server("8")).len(), 1);
        assert_eq!(times(&book)[1], ("data:Fail".into(), 10, Some(30), None), "the array is not remembered");
        // A clock that was set back does not let an alarm end before it began.
        book.observe(&server("8"), 5, &[]);
        assert_eq!(times(&book)[0].2, Some(10));
    }

    #[test]
    fn a_sink_gets_each_state_once_and_its_end_and_nothing_older_than_itself() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        let pending = |book: &Book| -> Vec<(String, Option<u64>)> {
            let pending = book.pending("mail", Severity::Warning, 50, |_| true);
            pending.into_iter().map(|alarm| (alarm.what.event, alarm.until)).collect()
        };
        let fail = condition(EventName::Fail, Severity::Warning);
        book.observe(&data, 10, std::slice::from_ref(&fail));
        book.observe(&data, 11, &[]);
        book.set_sinks(&BTreeSet::from(["mail".to_owned()]));
        assert_eq!(pending(&book), [], "it ended before there was a sink");
        let degraded = condition(EventName::DegradedArray, Severity::Warning);
        book.observe(&data, 20, &[degraded.clone(), condition(EventName::RebuildStarted, Severity::Info)]);
        assert_eq!(pending(&book), [("DegradedArray".into(), None)]);
        let sent = book.pending("mail", Severity::Warning, 20, |_| true);
        // It becomes worse while the message is being sent: that is another message.
        book.observe(&data, 21, &[Condition { level: Severity::Critical, ..degraded.clone() }]);
        book.note_sent("mail", &sent);
        assert_eq!(pending(&book), [("DegradedArray".into(), None)]);
        book.note_sent("mail", &book.pending("mail", Severity::Warning, 21, |_| true));
        assert_eq!(pending(&book), []);
        book.observe(&data, 30, &[]);
        assert_eq!(pending(&book), [("DegradedArray".into(), Some(30))]);
        // A state that came and went while the sink could not be reached is reported, too.
        let spare = condition(EventName::FailSpare, Severity::Warning);
        book.observe(&data, 40, std::slice::from_ref(&spare));
        book.observe(&data, 41, &[]);
        assert_eq!(pending(&book), [("DegradedArray".into(), Some(30)), ("FailSpare".into(), Some(41))]);
        book.set_sinks(&BTreeSet::from(["mail".to_owned()]));
        assert_eq!(pending(&book).len(), 2, "a restart forgets nothing");
        book.set_sinks(&BTreeSet::new());
        book.set_sinks(&BTreeSet::from(["mail".to_owned()]));
        assert_eq!(pending(&book), []);
        // An acknowledged state needs no message.
        book.observe(&data, 50, std::slice::from_ref(&degraded));
        book.acknowledge(51, |_| true);
        assert_eq!(pending(&book), []);
    }

    /// The states that a sink hears of, a letter for each message: it holds, or it is over.
    fn messages(book: &mut Book, now: u64) -> String {
        let sent = book.pending("mail", Severity::Warning, now, |_| true);
        book.note_sent("mail", &sent);
        sent.iter().map(|alarm| if alarm.until.is_none() { 'h' } else { 'o' }).collect()
    }

    #[test]
    fn a_state_that_comes_and_goes_is_one_alarm_whose_end_is_told_when_it_stays_away() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        book.set_sinks(&BTreeSet::from(["mail".to_owned()]));
        let degraded = condition(EventName::DegradedArray, Severity::Warning);
        let mut heard = String::new();
        for round in 0..100 {
            for (now, found) in [(round * 30, std::slice::from_ref(&degraded)), (round * 30 + 10, &[])] {
                book.observe(&data, now, found);
                heard.push_str(&messages(&mut book, now));
            }
        }
        assert_eq!(heard, "hoh", "the first end, and that it came back");
        assert_eq!(times(&book), [("data:DegradedArray".into(), 0, Some(2980), None)], "one alarm");
        let standing = |book: &Book, now| book.standing("mail", now, |_| true).len();
        assert_eq!((standing(&book, 2980 + RETURN_SECONDS - 1), standing(&book, 2980 + RETURN_SECONDS)), (1, 0));
        let text = book.alarms[0].model().what.text;
        assert!(text.ends_with("; it comes and goes: it has begun again 99 times"), "{text}");
        assert_eq!(messages(&mut book, 2980 + RETURN_SECONDS - 1), "");
        assert_eq!(messages(&mut book, 2980 + RETURN_SECONDS), "o");
        // An acknowledged one that comes back is open again. A job is another job each time.
        book.observe(&data, 9000, std::slice::from_ref(&degraded));
        book.acknowledge(9001, |_| true);
        book.observe(&data, 9002, &[]);
        let job = condition(EventName::RebuildStarted, Severity::Info);
        for (now, found) in [(9003, vec![degraded, job.clone()]), (9004, Vec::new()), (9005, vec![job])] {
            book.observe(&data, now, &found);
        }
        let rebuild = |since, until| ("data:RebuildStarted".to_owned(), since, until, None);
        let wanted =
            [("data:DegradedArray".to_owned(), 9000, Some(9004), None), rebuild(9003, Some(9004)), rebuild(9005, None)];
        assert_eq!(times(&book)[1..], wanted);
    }

    #[test]
    fn a_state_that_holds_over_a_restart_has_not_come_back() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        let degraded = condition(EventName::DegradedArray, Severity::Warning);
        let shown = |book: &Book| {
            let all = book.alarms.iter();
            all.map(|alarm| (alarm.since, alarm.until, alarm.acknowledged, alarm.returns)).collect::<Vec<_>>()
        };
        book.observe(&data, 10, std::slice::from_ref(&degraded));
        book.acknowledge(11, |_| true);
        for started in [100, 200] {
            book.observe(&data, started - 1, &[]);
            book.started = started;
            book.observe(&data, started + 20, std::slice::from_ref(&degraded));
            assert_eq!(shown(&book), [(10, None, Some(11), 0)], "it is the same alarm");
        }
        book.observe(&data, 310, &[]);
        book.observe(&data, 200 + START_SECONDS, std::slice::from_ref(&degraded));
        assert_eq!(shown(&book), [(10, None, None, 1)], "that was no restart");
    }

    #[test]
    fn a_state_that_only_an_event_shows_is_an_alarm_until_the_next_look() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        book.set_sinks(&BTreeSet::from(["mail".to_owned()]));
        let fail = condition(EventName::Fail, Severity::Critical);
        assert!(book.glimpse(&data, 10, &fail));
        assert!(!book.glimpse(&data, 10, &fail), "it is open");
        book.observe(&data, 11, std::slice::from_ref(&fail));
        assert_eq!(times(&book), [("data:Fail".into(), 10, None, None)], "the state is found");
        let degraded = condition(EventName::DegradedArray, Severity::Critical);
        book.glimpse(&data, 12, &degraded);
        book.observe(&data, 12, &[fail]);
        assert_eq!(times(&book)[1], ("data:DegradedArray".into(), 12, Some(12), None));
        assert_eq!(messages(&mut book, 12), "ho");
    }

    #[test]
    fn a_book_is_bounded_and_the_important_alarms_stay() {
        let (mut book, data) = (Book::default(), AlarmSubject::Array("1".into()));
        let member =
            |nth: usize, level| Condition { member: Some(nth.to_string()), ..condition(EventName::Fail, level) };
        let many: Vec<Condition> = (0..600).map(|nth| member(nth, Severity::Info)).collect();
        book.observe(&data, 1, &many);
        assert_eq!(book.alarms.len(), ACTIVE_MAX);
        let mut all = vec![member(1000, Severity::Critical)];
        all.extend(many);
        book.observe(&data, 2, &all);
        assert_eq!((book.alarms.len(), book.of(&data)[0].what.member.as_deref()), (ACTIVE_MAX, Some("1000")));
        book.observe(&data, 3, &[]);
        assert_eq!(book.alarms.len(), ENDED_MAX);
        let long = Condition { text: "\u{e9}".repeat(TEXT_BYTES_MAX), ..member(1, Severity::Info) };
        book.observe(&data, 4, &[long]);
        assert_eq!(book.of(&data)[0].what.text.len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn an_alarm_that_was_stored_with_the_former_name_of_a_span_is_read() {
        let second = Condition { span: Some(1), ..condition(EventName::Fail, Severity::Critical) };
        let now = serde_json::to_string(&second).expect("JSON");
        let before = now.replace("\"span\"", "\"leg\"");
        assert_ne!(now, before);
        assert_eq!(serde_json::from_str::<Condition>(&before).expect("it is read"), second);
    }
}
