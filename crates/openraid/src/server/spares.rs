//! Spares of the configuration file: for an array or span, added at once; for all arrays, added when one needs it.
//!
//! A drive for all arrays is not opened before that. It must be free, or have a superblock of the array: nothing is
//! overwritten.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use openraid_config::{DesiredSpare, SpareFor};
use openraid_core::admin::MemberState;
use openraid_units::ArrayId;

use super::array_model::ServedArray;
use super::departed_members::has;
use super::joining_members::{set_status, JoinOutcome};
use super::member_orders::Consent;
use super::{Server, ServerAccess};
use crate::events::{plain, News};
use crate::failure::Failure;
use crate::quantity::counted;
use openraid_status::shell_quoting::command;
use openraid_status::EventName;

/// A drive that could not be added is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The last attempts.
#[derive(Debug, Default)]
pub(super) struct SpareAttempts(Vec<Attempt>);

/// An attempt to add a spare.
#[derive(Debug)]
pub(super) struct Attempt {
    member: String,
    at: Instant,
    /// Why it was not added.
    pub(super) refused: Option<Failure>,
}

impl SpareAttempts {
    fn is_due(&self, member: &str) -> bool {
        self.last(member).is_none_or(|tried| tried.at.elapsed() >= RETRY_AFTER)
    }

    /// The last attempt with this drive.
    pub(super) fn last(&self, member: &str) -> Option<&Attempt> {
        self.0.iter().find(|tried| tried.member == member)
    }

    fn note(&mut self, member: &str, refused: Option<Failure>) {
        self.0.retain(|tried| tried.member != member);
        self.0.push(Attempt { member: member.to_owned(), at: Instant::now(), refused });
    }
}

impl Server {
    fn spares(&self) -> Vec<DesiredSpare> {
        self.in_force().map(|in_force| in_force.desired.spares.clone()).unwrap_or_default()
    }

    /// A command removed a drive: a spare of the file stays out until a command adds it.
    pub(super) fn keep_out(&self, served: &ServedArray, member: &str) {
        if !self.spares().iter().any(|spare| spare.member == member) {
            return;
        }
        let kept = self.registry.keep(served.uuid().as_deref(), &served.name, |kept| {
            kept.taken_out.retain(|spare| spare != member);
            kept.taken_out.push(member.to_owned());
        });
        if let Err(failure) = kept {
            crate::output::warn(&failure.text());
        }
    }

    /// A command added a drive.
    pub(super) fn let_in(&self, member: &str) {
        for entry in self.registry.entries().unwrap_or_default() {
            if entry.kept.taken_out.iter().any(|spare| spare == member) {
                let let_in =
                    |kept: &mut crate::kept_settings::KeptSettings| kept.taken_out.retain(|spare| spare != member);
                if let Err(failure) = self.registry.keep(entry.uuid.as_deref(), &entry.name, let_in) {
                    crate::output::warn(&failure.text());
                }
            }
        }
    }

    pub(super) fn is_taken_out(&self, member: &str) -> bool {
        let entries = self.registry.entries().unwrap_or_default();
        entries.iter().any(|entry| entry.kept.taken_out.iter().any(|spare| spare == member))
    }

    /// Add the spares that the file names for an array or a span, if they are missing. Returns the failures.
    pub fn take_own_spares(&self) -> Vec<String> {
        if self.access == ServerAccess::Untouched {
            return Vec::new();
        }
        let mut notes = Vec::new();
        for spare in self.spares() {
            let SpareFor::Array { name, span } = &spare.whom else { continue };
            let Ok(served) = self.find(name) else {
                notes.push(format!("spare {}: no array {name} is served", spare.member));
                continue;
            };
            let span = span.and_then(|span| usize::try_from(span).ok());
            notes.extend(self.take_own_spare(&served, span, &spare.member).err().map(|failure| failure.text()));
        }
        notes
    }

    pub(super) fn take_own_spare(
        &self,
        served: &ServedArray,
        span: Option<usize>,
        member: &str,
    ) -> Result<(), Failure> {
        let of_spare = |failure: Failure| failure.of(format_args!("spare {member}"));
        let status = self.status().map_err(of_spare)?;
        if super::member_names::ServedMembers::of(&status, served).knows(member).map_err(of_spare)? {
            return Ok(());
        }
        let sets = served.sets();
        let set = *sets.get(span.unwrap_or(0)).ok_or_else(|| {
            let spans = counted(served.spans().len() as u64, "span", "spans");
            Failure::refused(format!("spare {member}: array {} has {spans}, counted from 0", served.name))
        })?;
        self.take_in(served, set, member)
    }

    fn take_in(&self, served: &ServedArray, set: ArrayId, member: &str) -> Result<(), Failure> {
        if self.is_taken_out(member) {
            let order = command("spare add", [&served.name, member]);
            let text = format!("spare {member}: it was removed by a command, and comes back by `{order}`");
            return Err(Failure::refused(text));
        }
        let consent = Consent { overwrite: false, split: false };
        match self.join(served, set, member, consent) {
            Ok(JoinOutcome::Joined(_)) => {
                self.note(&served.name);
                Ok(())
            }
            Ok(JoinOutcome::Confirm { text }) => Err(Failure::refused(format!("spare {member}: {text}"))),
            Err(failure) => Err(failure.of(format_args!("spare {member}"))),
        }
    }

    /// Check in another thread whether an array needs a spare for all arrays: the open of a drive may take long.
    pub fn begin_giving_spares(self: &Arc<Self>) {
        let has_any = self.spares().iter().any(|spare| spare.whom == SpareFor::All);
        if !has_any || self.needy().is_none() || self.giving.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = Arc::clone(self);
        let give = move || {
            let news = server.give_spares();
            server.add_news(news);
            server.giving.store(false, Ordering::Relaxed);
        };
        if thread::Builder::new().name("spares".into()).spawn(give).is_err() {
            self.giving.store(false, Ordering::Relaxed);
        }
    }

    /// Add a spare for all arrays to a set that lacks a member and has no spare of its own. Returns the result.
    fn give_spares(&self) -> Vec<News> {
        let pool: Vec<DesiredSpare> = self.spares().into_iter().filter(|spare| spare.whom == SpareFor::All).collect();
        if pool.is_empty() || self.access == ServerAccess::Untouched {
            return Vec::new();
        }
        // A command that changes arrays has priority: the next tick tries again.
        let Ok(_one_at_a_time) = self.changing.try_lock() else { return Vec::new() };
        let Some((served, set)) = self.needy() else { return Vec::new() };
        let Ok(array) = self.array(&served.name) else { return Vec::new() };
        let mut news = Vec::new();
        // One that has taken over here is a member.
        for spare in pool.into_iter().filter(|spare| !has(&array, &spare.member)) {
            if !self.state().tried_spares.is_due(&spare.member) {
                continue;
            }
            let taken = self.take_in(&served, set, &spare.member);
            self.state().tried_spares.note(&spare.member, taken.clone().err());
            match taken {
                Ok(()) => {
                    let text = format!("{}: the spare {} for all arrays is taken in", served.name, spare.member);
                    news.push(News { array: Some(served.name), ..plain(EventName::SpareTaken, text) });
                    break;
                }
                Err(why) => {
                    let text = format!("{}: a member is missing, and {why}", served.name);
                    news.push(News { array: Some(served.name.clone()), ..plain(EventName::SpareRefused, text) });
                }
            }
        }
        news
    }

    /// A set that lacks more members than its own spares can replace.
    fn needy(&self) -> Option<(ServedArray, ArrayId)> {
        let status = self.status().ok()?;
        let all: Vec<ServedArray> = self.state().arrays.clone();
        all.into_iter().filter(|served| served.started.is_some()).find_map(|served| {
            let needs = |set: &ArrayId| {
                let Ok(status_of_set) = set_status(&status, *set) else { return false };
                let is_redundant =
                    status_of_set.superblock.as_ref().is_some_and(|superblock| superblock.level.is_redundant());
                let count = |state| status_of_set.members.iter().filter(|line| line.state == state).count();
                is_redundant && count(MemberState::Missing) > count(MemberState::Spare)
            };
            let set = served.sets().into_iter().find(needs)?;
            Some((served, set))
        })
    }
}
