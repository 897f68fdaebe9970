//! Commands for members: fail, add, remove, replace. Each finds its member first, and names it in the answer.

use std::time::Duration;

use openraid_core::admin::{AdminCommand, AdminError, ArrayStatus, MemberState};
use openraid_core::reason::FailReason;
use openraid_format::{MdLevel, Superblock};
use openraid_runtime::service::ServiceError;
use openraid_status::shell_quoting::{command, command_with, words};
use openraid_units::{ArrayId, DriveId, Slot};

use super::array_model::ServedArray;
use super::joining_members::{set_status, JoinOutcome};
use super::member_names::{NamedMember, ServedMembers};
use super::orders::{outcome_of, wait_at_most, wait_while};
use super::Server;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::output;

/// Maximum time until a slot that needs a member has the new one; the superblocks of all members are written before.
const TAKE_OVER_TIME_MAX: Duration = Duration::from_secs(5);

/// The consents of a user for a drive that comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Consent {
    /// The drive's content may be lost.
    pub overwrite: bool,
    /// The drive may be the other half of a split array.
    pub split: bool,
}

/// A member in texts.
pub(super) struct MemberNames {
    /// With slot and state.
    pub described: String,
    /// With its slot, for an order that changes the state.
    placed: String,
    /// Its name in a command.
    pub order: String,
}

/// A single drive has nothing that a spare could be filled with if it fails.
fn refuse_spare_of_one(name: &str, status: &ArrayStatus, member: &str) -> Result<(), Failure> {
    let shape = status.superblock.as_ref().map(Superblock::shape);
    if !shape.is_some_and(|shape| shape.level == MdLevel::Raid1 && shape.raid_disks == 1) {
        return Ok(());
    }
    let order = command_with("reshape", [name], &format!("--members {}", words([member])));
    Err(Failure::refused(format!("{name} is a single drive, and has no spares; `{order}` makes it a mirror")))
}

impl Server {
    /// If the registry cannot be written, a warning says so; nothing else depends on it.
    pub(super) fn note(&self, name: &str) {
        if let Err(failure) = self.remember(name) {
            output::warn(&failure.text());
        }
        // A new member gets the array's setting for drive caches.
        for failure in self.keep_drive_caches(name) {
            output::warn(&failure);
        }
    }

    /// A member of an array, by one of its names and the identity that the client saw.
    pub(super) fn member(
        &self,
        served: &ServedArray,
        text: &str,
        device: Option<&str>,
    ) -> Result<(NamedMember, MemberNames), Failure> {
        let status = self.status()?;
        let members = ServedMembers::of(&status, served);
        let found = members.find_seen(text, device)?;
        let (described, placed) = (members.described(&found, text), members.placed(&found, text));
        Ok((found, MemberNames { described, placed, order: members.order_name(&found) }))
    }

    pub(super) fn fail(
        &self,
        name: &str,
        member: &str,
        unsynced: bool,
        device: Option<&str>,
    ) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let (found, MemberNames { described, placed, order }) = self.member(&served, member, device)?;
        let remedy = format!("take it out with `{}`", command("remove", [name, &order]));
        // The state is the requested one already, so nothing is done.
        match found.member.state {
            MemberState::Failing(FailReason::Replaced) | MemberState::Faulty(FailReason::Replaced) => {
                return self.done(format!("{described} of {name} was replaced and is in no slot; {remedy}"), name);
            }
            MemberState::Failing(_) | MemberState::Faulty(_) => {
                return self.done(format!("{described} of {name} has failed already; {remedy}"), name);
            }
            _ => {}
        }
        let failed = self.handle.admin(AdminCommand::Fail { array: found.set, drive: found.drive, unsynced });
        if let Err(ServiceError::Admin(error @ AdminError::NeededByUnsynced)) = &failed {
            return Err(Failure::refused(format!("{described}: {error}, or fail it all the same with --yes")));
        }
        outcome_of(&described, failed)?;
        // Its state was another one when it was described.
        self.done(format!("{placed} of {name} has failed; {remedy}"), name)
    }

    pub(super) fn add(
        &self,
        name: &str,
        member: &str,
        span: Option<usize>,
        consent: Consent,
    ) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let set = self.set_for_new(&status, &served, span)?;
        refuse_spare_of_one(name, set_status(&status, set)?, member)?;
        let joined = match self.join(&served, set, member, consent)? {
            JoinOutcome::Joined(joined) => joined,
            JoinOutcome::Confirm { text } => return Ok(ServerAnswer::Confirm { text, name: member.into() }),
        };
        self.note(name);
        self.let_in(member);
        self.forget_departed(&served, member);
        let again = if joined.returning { "back in" } else { "added to" };
        let role = match self.place_of_new(set, joined.drive)? {
            Some((MemberState::Rebuilding { .. }, Some(slot))) => format!("and takes over slot {slot}"),
            Some((MemberState::InSync, Some(slot))) => format!("and is the member of slot {slot}"),
            _ => "as a spare".into(),
        };
        self.done(format!("{member} is {again} {name} {role}"), name)
    }

    /// State and slot of a drive that has just joined. A slot that needs a member gets it a moment later.
    fn place_of_new(&self, set: ArrayId, drive: DriveId) -> Result<Option<(MemberState, Option<Slot>)>, Failure> {
        let look = || {
            let status = self.status()?;
            let members = &set_status(&status, set)?.members;
            let line = members.iter().find(|line| line.drive == Some(drive)).map(|line| (line.state, line.slot));
            let has = |wanted: fn(&MemberState) -> bool| members.iter().any(|line| wanted(&line.state));
            let is_filling = has(|state| matches!(state, MemberState::Rebuilding { .. }));
            Ok((line, has(|state| *state == MemberState::Missing) && !is_filling))
        };
        let waits = |(line, is_needed): &(Option<(MemberState, Option<Slot>)>, bool)| {
            *is_needed && line.is_some_and(|(state, _)| state == MemberState::Spare)
        };
        wait_at_most(TAKE_OVER_TIME_MAX, look, waits).map(|(line, _)| line)
    }

    pub(super) fn remove(
        &self,
        name: &str,
        member: &str,
        spare_only: bool,
        device: Option<&str>,
    ) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let (found, MemberNames { described, placed, .. }) = match self.member(&served, member, device) {
            Err(_) if !spare_only && self.keep_departed_out(&served, member) => {
                // A start looks at the recorded members.
                self.note(name);
                let add = command("add", [name, member]);
                return self
                    .done(format!("{member} stays out of {name} when it comes back; `{add}` takes it in"), name);
            }
            found => found?,
        };
        // It cannot be removed until its failure is recorded on the others, which takes as long as their writes. Its
        // slot may have another member by then.
        let state_now = || {
            let status = self.status()?;
            let line = set_status(&status, found.set)?.members.iter().find(|line| line.drive == Some(found.drive));
            Ok(line.map(|line| line.state))
        };
        let state = wait_while(state_now, |state| matches!(state, Some(MemberState::Failing(_))))?;
        if spare_only && state != Some(MemberState::Spare) {
            return Err(Failure::refused(format!(
                "{described} is not a spare of {name}; see `{}`",
                command("show", [name])
            )));
        }
        if matches!(state, Some(MemberState::InSync | MemberState::Rebuilding { .. })) {
            return Err(self.works(&served, &found, member)?);
        }
        let status = self.status()?;
        let member = status.drives.iter().find(|view| view.drive == found.drive).map(|view| view.member.clone());
        outcome_of(&described, self.handle.admin(AdminCommand::Remove { array: found.set, drive: found.drive }))?;
        member.iter().for_each(|name| self.keep_out(&served, name));
        if let Some(name) = member.iter().find(|name| !self.keep_departed_out(&served, name)) {
            self.forget_departed(&served, name);
        }
        let released = self.release(found.drive);
        self.note(name);
        let text = match released {
            Ok(()) => format!("{placed} is out of {name}"),
            Err(failure) => {
                format!("{placed} is out of {name}, but this server still holds it open: {}", failure.text())
            }
        };
        self.done(text, name)
    }

    /// Why a working member is not removed. A slot does not name a working member: a command by slot means the member
    /// that failed.
    fn works(&self, served: &ServedArray, found: &NamedMember, asked: &str) -> Result<Failure, Failure> {
        let status = self.status()?;
        let members = ServedMembers::of(&status, served);
        let described = members.described(found, "");
        let name = &served.name;
        if !asked.starts_with("slot:") {
            let order = members.order_name(found);
            return Ok(Failure::refused(format!(
                "{described} is a working member of {name}; to take it out, fail it first (`{}`), or \
                 copy it to another one (`{}`)",
                command("fail", [name, &order]),
                command("replace", [name, &order])
            )));
        }
        let faulty = members.faulty();
        let instead = if faulty.is_empty() {
            format!("no member of {name} is faulty")
        } else {
            format!("faulty in {name}: {}; name the one to remove", faulty.join(", "))
        };
        Ok(Failure::refused(format!("{asked} of {name} holds {described}: it works, and is not removed; {instead}")))
    }

    pub(super) fn release(&self, drive: DriveId) -> Result<(), Failure> {
        self.handle.detach(drive).map_err(Failure::from)
    }

    pub(super) fn replace(
        &self,
        name: &str,
        member: &str,
        with: Option<&str>,
        device: Option<&str>,
        consent: Consent,
    ) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let (found, MemberNames { described, .. }) = self.member(&served, member, device)?;
        let slot = found.member.slot.filter(|_| found.member.state == MemberState::InSync).ok_or_else(|| {
            Failure::refused(format!(
                "{described} is not a working member of {name}; a failed one is replaced by `{}`",
                command("add", [name, "NEW"])
            ))
        })?;
        let (drive, joined) = match with {
            None => (None, false),
            Some(text) => match self.replacement(&served, &found, text, consent)? {
                Replacement::Spare(drive) => (Some(drive), false),
                Replacement::Joined(drive) => (Some(drive), true),
                Replacement::Confirm(text_to_show) => {
                    return Ok(ServerAnswer::Confirm { text: text_to_show, name: text.into() })
                }
            },
        };
        let replaced = self.replace_when_ready(name, &AdminCommand::Replace { array: found.set, slot, with: drive });
        replaced.map_err(|failure| match drive.filter(|_| joined) {
            // It was added only for this.
            Some(drive) => {
                let text = failure.text() + &self.take_out_again(name, found.set, drive);
                failure.worded(text)
            }
            None => failure,
        })?;
        self.note(name);
        let new = with.unwrap_or("a spare");
        self.done(format!("{described} is copied to {new}, which then takes slot {slot} of {name}"), name)
    }

    /// The drive that replaces a member: a spare of its set, or a drive that is added for it.
    fn replacement(
        &self,
        served: &ServedArray,
        found: &NamedMember,
        text: &str,
        consent: Consent,
    ) -> Result<Replacement, Failure> {
        let status = self.status()?;
        let members = ServedMembers::of(&status, served);
        if members.knows(text)? {
            let spare = members.find(text)?;
            let name = &served.name;
            return match spare.member.state {
                _ if spare.set != found.set => {
                    Err(Failure::refused(format!("{text} belongs to another span of {name}")))
                }
                MemberState::Spare => Ok(Replacement::Spare(spare.drive)),
                _ => Err(Failure::refused(members.already(&spare))),
            };
        }
        Ok(match self.join(served, found.set, text, consent)? {
            JoinOutcome::Joined(joined) => Replacement::Joined(joined.drive),
            JoinOutcome::Confirm { text } => Replacement::Confirm(text),
        })
    }

    /// A spare is not needed any more. Returns the error, if there is one.
    pub(super) fn take_out_again(&self, name: &str, array: ArrayId, drive: DriveId) -> String {
        let removed = outcome_of(name, self.handle.admin(AdminCommand::Remove { array, drive }));
        match removed.map(|()| self.release(drive)) {
            Ok(Ok(())) => String::new(),
            Ok(Err(second)) => {
                format!("; the new member is out again, but this server still holds it open: {}", second.text())
            }
            Err(second) => format!("; and the new member stays as a spare: {}", second.text()),
        }
    }

    /// Writes that make a new member a spare may still be under way.
    fn replace_when_ready(&self, name: &str, order: &AdminCommand) -> Result<(), Failure> {
        let is_busy = |replaced: &Result<_, _>| {
            matches!(replaced, Err(ServiceError::Admin(AdminError::CommandsOutstanding(_) | AdminError::PreparingLog)))
        };
        outcome_of(name, wait_while(|| Ok(self.handle.admin(order.clone())), is_busy)?)
    }
}

/// The drive that replaces a member.
enum Replacement {
    /// A spare that was there.
    Spare(DriveId),
    /// A drive that was added as a spare for this.
    Joined(DriveId),
    /// None yet: a confirmation is needed.
    Confirm(String),
}
