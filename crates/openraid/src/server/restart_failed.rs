//! Failed arrays whose members are back: stopped and started again with them, as a restart of the service would do.
//!
//! A failed array acknowledges no write. So nothing is lost if it starts without force from superblocks that know each
//! failure before. A member that was in sync when the array failed has such a superblock: the array waits for one.

use std::collections::BTreeSet;
use std::time::Duration;

use openraid_core::array::assemble::AssembleOptions;
use openraid_runtime::member::{MemberSpec, ProbedMember};
use openraid_status::shell_quoting::command;
use openraid_status::EventName;
use openraid_sys::Use;

use super::appearing_drives::{is_at_path, RETRY_AFTER};
use super::array_model::ServedArray;
use super::Server;
use crate::events::{plain, News};
use crate::failure::Failure;
use crate::history::departures::{note_return, Departure};
use crate::in_process::trial;
use crate::kept_settings::Readd;
use crate::members::{open_some, options, spec};
use crate::model::{ArrayModel, StateWord};

/// Does a member work, as far as its superblock goes?
const fn works(state: StateWord) -> bool {
    matches!(state, StateWord::InSync | StateWord::Rebuilding)
}

/// Is a member there, in each set, that knows every failure that was recorded before the array failed? One that works does. Without
/// one, all must be back.
fn knows_all(array: &ArrayModel, back: &[(&Departure, MemberSpec)]) -> bool {
    let is_back = |name: &str| back.iter().any(|(entry, _)| entry.member == name);
    array.sets().into_iter().all(|set| {
        let has_working = set.members.iter().any(|member| member.state == StateWord::InSync);
        has_working || set.members.iter().all(|member| member.member.as_deref().is_some_and(is_back))
    })
}

impl Server {
    /// Start a failed array again if its members are back. `others`: a device has appeared, maybe one under another name.
    pub(super) fn start_failed_again(&self, array: &ArrayModel, served: &ServedArray, others: bool) -> Option<News> {
        let list = served.uuid().and_then(|uuid| self.state().departed.get(&uuid).cloned())?;
        let now = openraid_sys::clock::wall_seconds();
        if served.readd == Readd::Never {
            return None;
        }
        let mut is_due = others;
        let mut back: Vec<(&Departure, MemberSpec)> = Vec::new();
        for entry in list.iter().filter(|entry| entry.may_return(now)) {
            is_due |= self.is_due(&entry.member).is_some();
            back.extend(spec(&entry.member).ok().filter(is_at_path).map(|spec| (entry, spec)));
        }
        if others {
            let is_lost = |entry: &&Departure| entry.may_return(now) && !back.iter().any(|(other, _)| other == entry);
            let lost: Vec<&Departure> = list.iter().filter(is_lost).collect();
            back.extend(self.renamed(&lost));
        }
        if !is_due || back.is_empty() || !knows_all(array, &back) {
            return None;
        }
        // A command has priority: the next look tries again.
        let Ok(_one_at_a_time) = self.changing.try_lock() else {
            self.state().plugs.search_again(Duration::ZERO);
            return None;
        };
        if let Err(failure) = self.restart_with(array, served, &back) {
            back.iter().for_each(|(entry, _)| self.note_try(&entry.member, Some(failure.text())));
            self.state().plugs.search_again(RETRY_AFTER);
            return None;
        }
        let started = self.array(&served.name).ok()?;
        for (entry, spec) in &back {
            if super::departed_members::has(&started, &spec.text) {
                self.change_departed(served, |list| note_return(list, &entry.member, &spec.text, now));
            }
        }
        // One that lacks writes is added by the next look, by whatever name it has now.
        self.state().plugs.search_again(Duration::ZERO);
        let names: Vec<&str> = back.iter().map(|(_, spec)| spec.text.as_str()).collect();
        let text = format!(
            "{}: it had failed; {} {} back, nothing was lost, and it is served again",
            served.name,
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" }
        );
        Some(News { array: Some(served.name.clone()), ..plain(EventName::NewArray, text) })
    }

    /// Start an array again with the members that work and these, if they start it without force.
    fn restart_with(
        &self,
        array: &ArrayModel,
        served: &ServedArray,
        back: &[(&Departure, MemberSpec)],
    ) -> Result<(), Failure> {
        let members = || array.sets().into_iter().flat_map(|set| &set.members);
        let kept = members().filter(|member| works(member.state) || member.state == StateWord::Spare);
        let mut names: Vec<String> = kept.filter_map(|member| member.member.clone()).collect();
        names.extend(back.iter().map(|(_, spec)| spec.text.clone()));
        let specs = names.iter().map(|name| spec(name)).collect::<Result<Vec<_>, _>>()?;
        let (opened, failed) = open_some(&specs, options(Use::Examine));
        if let Some((_, failure)) = failed.into_iter().next() {
            return Err(failure);
        }
        let is_same = |(entry, spec): &(&Departure, MemberSpec)| {
            let look = opened.iter().find(|(_, probed)| probed.spec.text == spec.text).map(|(_, probed)| probed);
            let device = look
                .and_then(|probed| probed.look.superblock.as_ref())
                .map(|superblock| superblock.device_uuid.to_string());
            device.is_some() && (entry.device.is_none() || entry.device == device)
        };
        if let Some((entry, _)) = back.iter().find(|entry| !is_same(entry)) {
            return Err(Failure::refused(format!("{}: another drive is in its place", entry.member)));
        }
        let probed = opened.iter().filter_map(|(_, ProbedMember { look, .. })| look.superblock.as_ref());
        let sets: BTreeSet<String> = probed.map(|superblock| superblock.set_uuid.to_string()).collect();
        if !array.sets().into_iter().all(|set| set.uuid.as_ref().is_some_and(|uuid| sets.contains(uuid))) {
            return Err(Failure::refused("a span has no member yet"));
        }
        let reasons = trial::reasons(&opened, AssembleOptions::default());
        if let Some(first) = reasons.into_iter().next() {
            let (stop, doctor) = (command("stop", [&served.name]), command("doctor", [&served.name]));
            return Err(first.and(format_args!("`{stop}`, then `{doctor}`")));
        }
        if array.cache.as_ref().is_some_and(|cache| cache.dirty_bytes > 0) && !self.has_journal() {
            let stop = command("stop", [&served.name]);
            return Err(Failure::refused(format!("the write cache has data that no member has; `{stop}` gives it up")));
        }
        drop(opened);
        self.release_array(&served.name)?;
        let started = self.assemble(&names, false, false);
        if let Err(failure) = &started {
            // It is offline from now on, and wanted as before.
            self.give_up(served, failure.clone());
        }
        started.map(drop)
    }
}
