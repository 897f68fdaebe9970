//! Members that left the arrays of this server: stored in the registry, and in memory for frequent queries.

use std::collections::BTreeMap;

use openraid_core::actions::Notice;
use openraid_core::reason::FailReason;

use super::appearing_drives::is_at_path;
use super::array_model::ServedArray;
use super::start::StartReport;
use super::{Server, State};
use crate::alarms::Condition;
use crate::history::departures::{note, Departure, DepartureReason};
use crate::members::spec;
use crate::model::{ArrayModel, HealthWord, StateWord};
use crate::output;
use openraid_status::alarm::DriveStep;
use openraid_status::shell_quoting::command;
use openraid_status::{EventName, VerdictWord};

/// Members that left, by the array's UUID.
pub(super) type Departures = BTreeMap<String, Vec<Departure>>;

impl Server {
    /// An array begins to run: read the record of the members that left it.
    pub(super) fn load_departed(&self, served: &ServedArray) {
        let Some(uuid) = served.uuid() else { return };
        // If the registry cannot be read, the server has reported it at its start.
        let known = self.registry.known(Some(&uuid), &served.name).ok().flatten();
        let list = known.map(|entry| entry.kept.departed).unwrap_or_default();
        self.state().departed.insert(uuid, list);
    }

    /// Change the list of members that left an array. A failure to store it is reported.
    pub(super) fn change_departed(&self, served: &ServedArray, change: impl FnOnce(&mut Vec<Departure>)) {
        let Some(uuid) = served.uuid() else { return };
        let list = {
            let mut state = self.state();
            let list = state.departed.entry(uuid.clone()).or_default();
            let before = list.clone();
            change(list);
            if *list == before {
                return;
            }
            list.clone()
        };
        if let Err(failure) = self.registry.keep(Some(&uuid), &served.name, |kept| kept.departed = list) {
            output::warn(&failure.text());
        }
    }

    /// The engine has failed a member.
    pub(super) fn note_failed(&self, notice: &Notice, reason: FailReason) {
        let (Some(why), Some(drive)) = (DepartureReason::of(reason), notice.drive) else { return };
        let Some(served) = self.state().arrays.iter().find(|array| array.sets().contains(&notice.array)).cloned()
        else {
            return;
        };
        let Ok(status) = self.status() else { return };
        let Some(member) = status.drives.iter().find(|view| view.drive == drive).map(|view| view.member.clone()) else {
            return;
        };
        if member.parse().is_ok_and(|spec| crate::members::is_memory(&spec)) {
            return;
        }
        let lines = status.arrays.iter().flat_map(|view| &view.status.members);
        let device = lines.filter(|line| line.drive == Some(drive)).find_map(|line| line.device);
        let device = device.map(|device| device.to_string());
        let fresh = Departure::now(&member, device, why, reason.text(), openraid_sys::clock::wall_seconds());
        self.change_departed(&served, |list| note(list, fresh));
        // The message about a drive that is being removed may be lost: look at once.
        self.state().plugs.swept = None;
    }

    /// A command took out a member that had left by itself: it does not come back by itself. False if no such member is known.
    pub(super) fn keep_departed_out(&self, served: &ServedArray, member: &str) -> bool {
        let text = spec(member).map_or_else(|_| member.to_owned(), |spec| spec.text);
        let mut is_known = false;
        self.change_departed(served, |list| {
            let of_member =
                list.iter_mut().filter(|entry| entry.member == text && entry.why != DepartureReason::Returned);
            of_member.for_each(|entry| (entry.why, is_known) = (DepartureReason::Removed, true));
        });
        is_known
    }

    /// A command added or removed the member: delete the reason why it left.
    pub(super) fn forget_departed(&self, served: &ServedArray, member: &str) {
        let text = spec(member).map_or_else(|_| member.to_owned(), |spec| spec.text);
        self.change_departed(served, |list| list.retain(|entry| entry.member != text));
    }

    /// An array has been started without an absent member: the member is added again when its drive returns.
    pub(super) fn note_not_there(&self, name: &str, member: &str) {
        let Ok(served) = self.find(name) else { return };
        let reason = "it was not there when the array was started";
        let fresh = Departure::now(member, None, DepartureReason::Absent, reason, openraid_sys::clock::wall_seconds());
        self.change_departed(&served, |list| note(list, fresh));
    }

    /// Arrays have been started: record known members that are missing, so that they are added again when their drives
    /// return.
    pub fn note_absent(&self, taken: &StartReport) {
        let at = openraid_sys::clock::wall_seconds();
        let all = self.state().arrays.clone();
        for served in all {
            let Ok(array) = self.array(&served.name) else { continue };
            if !lacks(&array) {
                continue;
            }
            let Ok(Some(entry)) = self.registry.known(served.uuid().as_deref(), &served.name) else { continue };
            for member in entry.members.iter().filter(|member| !has(&array, member)) {
                let verdict = taken.left_out.iter().find(|left_out| left_out.member.member == **member);
                let (why, reason) = match verdict.map(|left_out| left_out.member.verdict) {
                    None if taken.unopened.contains(member) => {
                        (DepartureReason::Absent, "it could not be opened when the array was started")
                    }
                    // A command that names members leaves the others out on purpose: half of a mirror, for example.
                    None if !self.stays && spec(member).is_ok_and(|spec| is_at_path(&spec)) => {
                        (DepartureReason::Unknown, "it was there when the array was started without it")
                    }
                    None => (DepartureReason::Absent, "it was not there when the array was started"),
                    Some(VerdictWord::Stale | VerdictWord::Failed) => (DepartureReason::Unknown, "it was out already"),
                    Some(_) => continue,
                };
                let fresh = Departure::now(member, None, why, reason, at);
                self.change_departed(&served, |list| note(list, fresh));
            }
        }
    }
}

/// Does an array lack a member?
pub(super) fn lacks(array: &ArrayModel) -> bool {
    let mut members = array.sets().into_iter().flat_map(|set| &set.members);
    members.any(|member| member.state == StateWord::Missing)
}

/// Is this drive listed in an array?
pub(super) fn has(array: &ArrayModel, drive: &str) -> bool {
    let mut members = array.sets().into_iter().flat_map(|set| &set.members);
    members.any(|member| member.member.as_deref() == Some(drive))
}

/// Members that are present and missing in the array, but are not added automatically: the administrator decides.
pub(super) fn staying_out(model: &ArrayModel, served: &ServedArray, state: &State) -> Vec<Condition> {
    let list = model.uuid.as_ref().and_then(|uuid| state.departed.get(uuid));
    if !lacks(model) {
        return Vec::new();
    }
    let now = openraid_sys::clock::wall_seconds();
    // One that failed is still listed, and its drive may have been there all the time.
    let is_out = |entry: &&Departure| match entry.why {
        DepartureReason::Returned | DepartureReason::Removed => false,
        DepartureReason::Vanished | DepartureReason::Absent | DepartureReason::NoRoom => true,
        DepartureReason::Faulty | DepartureReason::Order | DepartureReason::Unknown => !has(model, &entry.member),
    };
    let out = list.into_iter().flatten().filter(is_out);
    let conditions = out.filter_map(|entry| {
        let why = entry.stays_out(now).or_else(|| {
            let is_never = served.readd == crate::kept_settings::Readd::Never;
            let never = || "members.readd=never".to_owned();
            is_never.then(never).or_else(|| state.plugs.refused(&entry.member))
        })?;
        let there = state.plugs.is_there(&entry.member);
        let (next, drive_step) = match model.health {
            HealthWord::Failed => (command("doctor", [&model.name]), None),
            // While it is listed, no drive of this name can be added.
            _ if has(model, &entry.member) => (command("remove", [&model.name, &entry.member]), None),
            _ => (command("add", [&model.name, &entry.member]), Some(DriveStep::Add)),
        };
        there.then(|| Condition {
            array: Some(model.name.clone()),
            uuid: model.uuid.clone(),
            member: Some(entry.member.clone()),
            next_step: Some(next),
            drive_step,
            ..Condition::of_server(
                EventName::MemberStaysOut,
                format!("{}: the former member {} has returned, and stays out: {why}", model.name, entry.member),
            )
        })
    });
    conditions.collect()
}
