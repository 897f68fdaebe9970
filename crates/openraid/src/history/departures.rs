//! Members that left an array, and why: one that only vanished comes back by itself, one that failed does not.
//!
//! ```text
//!  vanished, absent --its drive is there again--> returned --again--> vanished ... RETURNS_MAX times in RETURNS_WINDOW
//!  no room: the same, when its file system has room for all of it
//!  faulty, order, removed, unknown: stays out until an order adds it
//! ```
//!
//! md's superblocks record that a member left, but not why. So the registry has the reason. A member whose
//! errors a removal follows has vanished: `core/src/array/member_failure.rs :: lose_member`.

use openraid_core::reason::FailReason;
use serde::{Deserialize, Serialize};

/// Maximum number of recorded members of one array; the oldest is dropped for a new one.
const DEPARTED_MAX: usize = 64;
/// A member that returns this number of times within [`RETURNS_WINDOW_SECONDS`] has a bad connection, and stays out.
pub const RETURNS_MAX: usize = 3;
/// See [`RETURNS_MAX`].
pub const RETURNS_WINDOW_SECONDS: u64 = 86_400;

/// Why a member is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Why)]
pub enum DepartureReason {
    /// It vanished, or did not answer.
    Vanished,
    /// It was absent when the array was started.
    Absent,
    /// It returned.
    Returned,
    /// It had no room: its file system, or the pool of its thin volume, was full.
    NoRoom,
    /// It had errors.
    Faulty,
    /// A command failed it.
    Order,
    /// A command took it out: its return is no alarm.
    Removed,
    /// It was left out at a start, for an unknown reason.
    Unknown,
}

impl DepartureReason {
    /// The reason for a failure that the engine reports; `None` if the member was replaced and is no longer a member.
    pub const fn of(reason: FailReason) -> Option<Self> {
        match reason {
            FailReason::Replaced => None,
            FailReason::Administrator => Some(Self::Order),
            FailReason::Gone | FailReason::Timeout => Some(Self::Vanished),
            FailReason::NoSpace => Some(Self::NoRoom),
            FailReason::WriteError
            | FailReason::FlushFailed
            | FailReason::ErrorBudget
            | FailReason::Protocol
            | FailReason::ReadOnly
            | FailReason::BadBlockLogFull => Some(Self::Faulty),
        }
    }

    /// Does it say nothing about an earlier reason?
    const fn is_weak(self) -> bool {
        matches!(self, Self::Absent | Self::Unknown)
    }
}

/// A member that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Departed)]
pub struct Departure {
    /// Path or address of the member.
    pub member: String,
    /// The identity in its superblock, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The reason, as a word.
    pub why: DepartureReason,
    /// The reason, in words.
    pub reason: String,
    /// When it left: seconds since 1970.
    pub at_seconds: u64,
    /// When it returned: seconds since 1970, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returns: Vec<u64>,
}

impl Departure {
    /// A member that leaves now.
    pub fn now(member: &str, device: Option<String>, why: DepartureReason, reason: &str, at_seconds: u64) -> Self {
        let (member, reason) = (member.to_owned(), reason.to_owned());
        Self { member, device, why, reason, at_seconds, returns: Vec::new() }
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.device, &other.device) {
            (Some(device), Some(other)) => device == other,
            _ => self.member == other.member,
        }
    }

    /// Why it stays out, if it does.
    pub fn stays_out(&self, now: u64) -> Option<String> {
        // A time in the future is of a clock that was set back since: it says nothing about the last day.
        let recent = |at: &&u64| now.checked_sub(**at).is_some_and(|age| age < RETURNS_WINDOW_SECONDS);
        match self.why {
            DepartureReason::NoRoom if !crate::members::lack_of_room::has_all(&self.member) => {
                Some(format!("it had no room ({}): make room for all of it", self.reason))
            }
            DepartureReason::Faulty => Some(format!("it failed: {}", self.reason)),
            DepartureReason::Order => Some("it was failed by a command".into()),
            DepartureReason::Removed => Some("it was taken out by a command".into()),
            DepartureReason::Unknown => Some("it was out already, and the reason is not known".into()),
            DepartureReason::Vanished | DepartureReason::Absent | DepartureReason::NoRoom
                if self.returns.iter().filter(recent).count() >= RETURNS_MAX =>
            {
                Some(format!("it came back {RETURNS_MAX} times within a day, and left again: look at its connection"))
            }
            DepartureReason::Vanished
            | DepartureReason::Absent
            | DepartureReason::NoRoom
            | DepartureReason::Returned => None,
        }
    }

    /// Is it added again automatically when it returns?
    pub fn may_return(&self, now: u64) -> bool {
        self.stays_out(now).is_none() && self.why != DepartureReason::Returned
    }
}

/// A member left. A weak reason does not replace a better one.
pub fn note(list: &mut Vec<Departure>, mut fresh: Departure) {
    if let Some(at) = list.iter().position(|entry| entry.is(&fresh)) {
        if fresh.why.is_weak() && list[at].why != DepartureReason::Returned {
            return;
        }
        let old = list.remove(at);
        fresh.returns = old.returns;
        fresh.device = fresh.device.or(old.device);
    }
    let more = (list.len() + 1).saturating_sub(DEPARTED_MAX);
    list.drain(..more);
    list.push(fresh);
}

/// A member was added again automatically, under this name. The number of its returns is recorded.
pub fn note_return(list: &mut [Departure], member: &str, name: &str, now: u64) {
    if let Some(entry) = list.iter_mut().find(|entry| entry.member == member) {
        (entry.why, entry.member) = (DepartureReason::Returned, name.into());
        entry.returns.push(now);
        let more = entry.returns.len().saturating_sub(RETURNS_MAX);
        entry.returns.drain(..more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(why: DepartureReason, at: u64) -> Departure {
        Departure::now("/d1", Some("u1".into()), why, "write error", at)
    }

    #[test]
    fn only_a_member_that_vanished_comes_back() {
        let reasons = [
            (FailReason::Gone, true),
            (FailReason::Timeout, true),
            (FailReason::WriteError, false),
            (FailReason::FlushFailed, false),
            (FailReason::ErrorBudget, false),
            (FailReason::Protocol, false),
            // The device "/d1" does not exist, and has no room.
            (FailReason::NoSpace, false),
            (FailReason::ReadOnly, false),
            (FailReason::BadBlockLogFull, false),
            (FailReason::Administrator, false),
        ];
        for (reason, returns) in reasons {
            let entry = left(DepartureReason::of(reason).expect("it is out"), 5);
            assert_eq!((entry.may_return(6), entry.stays_out(6).is_none()), (returns, returns), "{reason:?}");
        }
        assert_eq!(DepartureReason::of(FailReason::Replaced), None);
        assert!(left(DepartureReason::Absent, 5).may_return(6) && !left(DepartureReason::Unknown, 5).may_return(6));
        assert!(!left(DepartureReason::Removed, 5).may_return(6));
    }

    #[test]
    fn an_unknown_reason_replaces_no_known_one_and_a_member_that_flaps_stays_out() {
        let mut list = Vec::new();
        note(&mut list, left(DepartureReason::Faulty, 1));
        note(&mut list, left(DepartureReason::Absent, 2));
        note(&mut list, Departure { device: None, ..left(DepartureReason::Unknown, 3) });
        assert_eq!((list.len(), list[0].why), (1, DepartureReason::Faulty), "it failed, and is not there now");
        note(&mut list, left(DepartureReason::Vanished, 4));
        assert!(list.len() == 1 && list[0].may_return(5), "its errors were the beginning of its removal");
        list.clear();
        for nth in 0..3 {
            note(&mut list, left(DepartureReason::Vanished, nth * 10));
            assert!(list[0].may_return(nth * 10 + 1), "time {nth}");
            note_return(&mut list, "/d1", "/d1", nth * 10 + 2);
            assert!(!list[0].may_return(nth * 10 + 3), "it is in");
        }
        note(&mut list, left(DepartureReason::Absent, 40));
        assert!(list[0].stays_out(41).expect("too often").contains("3 times"));
        assert!(list[0].may_return(RETURNS_WINDOW_SECONDS + 13), "a day later it is tried again");
        assert!(list[0].may_return(21), "the clock was set back: the last return is in the future");
        for nth in 0..100 {
            note(&mut list, Departure::now(&format!("/e{nth}"), None, DepartureReason::Vanished, "gone", nth));
        }
        assert_eq!((list.len(), list[63].member.as_str()), (64, "/e99"));
    }
}
