//! The commands that change something, carried out one at a time.

use std::time::{Duration, Instant};

use openraid_core::admin::{AdminCommand, AdminError, MemberState};
use openraid_runtime::service::{Nesting, ServiceError};
use openraid_units::{ArrayId, DriveId};

use super::members::{find, set_status, Found};
use super::start::Taking;
use super::view::Served;
use super::Server;
use crate::control::{Answer, Command};
use crate::exit::{Exit, Failure};
use crate::members::{open_some, options, spec};
use crate::model::HealthWord;
use crate::output;

/// A member may still be failing, or be made ready, for this long.
const RECORDING_TIME_MAX: Duration = Duration::from_secs(30);
/// How often that is looked at.
const RECORDING_PAUSE: Duration = Duration::from_millis(20);

/// Look until nothing has to be waited for any more, or the time is over; what was seen last.
fn wait_while<T>(look: impl Fn() -> Result<T, Failure>, is_to_wait: impl Fn(&T) -> bool) -> Result<T, Failure> {
    let until = Instant::now() + RECORDING_TIME_MAX;
    loop {
        let seen = look()?;
        if !is_to_wait(&seen) || Instant::now() >= until {
            return Ok(seen);
        }
        std::thread::sleep(RECORDING_PAUSE);
    }
}

/// What came of a command, said of the array or member that it was for.
fn told<T>(name: &str, done: Result<T, ServiceError>) -> Result<(), Failure> {
    done.map(drop).map_err(|error| Failure::from(error).of(name))
}

impl Server {
    pub(super) fn carry_out(&self, command: Command) -> Result<Answer, Failure> {
        match command {
            Command::Fail { array, member, unsynced } => self.fail(&array, &member, unsynced),
            Command::Add { array, member, leg, overwrite } => self.add(&array, &member, leg, overwrite),
            Command::Remove { array, member, spare } => self.remove(&array, &member, spare),
            Command::Replace { array, member, with, overwrite } => {
                self.replace(&array, &member, with.as_deref(), overwrite)
            }
            Command::Check { array, kind } => self.check(&array, kind),
            Command::StopCheck { array } => {
                self.each_set(&array, |array| AdminCommand::StopScrub { array })?;
                self.done(format!("check of {array} stopped"), &array)
            }
            Command::Pause { array } => {
                self.each_set(&array, |array| AdminCommand::Pause { array })?;
                self.done(format!("background work of {array} is held; go on with `openraid resume {array}`"), &array)
            }
            Command::Resume { array } => {
                self.each_set(&array, |array| AdminCommand::Resume { array })?;
                self.done(format!("background work of {array} goes on"), &array)
            }
            Command::Set { array, settings, yes } => self.set(&array, &settings, yes),
            Command::Stop { array } => {
                let text = self.stopped_text(&array)?;
                self.stop(&array)?;
                Ok(Answer::Done { text, array: None })
            }
            Command::StopAll => Ok(Answer::Done { text: "the server stops all arrays and ends".into(), array: None }),
            Command::Assemble { members, force, journal_lost } => self.assemble(&members, force, journal_lost),
            Command::JoinJournal { device, overwrite } => self.join_journal(device.as_deref(), overwrite),
            Command::DiscardJournalled { array, lost } => self.discard_journalled(&array, lost),
            Command::Hello
            | Command::List
            | Command::Show { .. }
            | Command::Journal
            | Command::Limit { .. }
            | Command::Record { .. }
            | Command::Stories { .. }
            | Command::Story { .. }
            | Command::Slowest { .. } => {
                unreachable!("answered without changing anything")
            }
        }
    }

    /// What to say of an array when it has been stopped.
    fn stopped_text(&self, name: &str) -> Result<String, Failure> {
        if self.array(name)?.health != HealthWord::Failed {
            return Ok(format!("{name} is stopped, its members are marked clean"));
        }
        let waits = format!(
            "; what the journal holds for it waits there until it is started again with its members, or is given up with \
             `openraid journal discard {name}`"
        );
        let waits = if self.has_journal() { &waits } else { "" };
        Ok(format!("{name} is stopped; it had failed, so its members still say that it was in use{waits}"))
    }

    pub(super) fn done(&self, text: String, array: &str) -> Result<Answer, Failure> {
        let array = self.array(array).ok().map(Box::new);
        Ok(Answer::Done { text, array })
    }

    fn admin(&self, name: &str, command: AdminCommand) -> Result<(), Failure> {
        told(name, self.handle.admin(command))
    }

    /// Give a command to every set of an array. Where one refuses, those before it have done it.
    pub(super) fn each_set(&self, name: &str, command: impl Fn(ArrayId) -> AdminCommand) -> Result<Served, Failure> {
        let served = self.find(name)?;
        for set in served.sets() {
            self.admin(name, command(set))?;
        }
        Ok(served)
    }

    /// The registry is a convenience: what cannot be noted there is said, and everything goes on.
    fn note(&self, name: &str) {
        if let Err(failure) = self.remember(name) {
            output::warn(&failure.text);
        }
        // A member that came in follows what the others were told.
        for failure in self.keep_drive_caches(name) {
            output::warn(&failure);
        }
    }

    fn fail(&self, name: &str, member: &str, unsynced: bool) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let found = find(&self.status()?, &served, member)?;
        let failed = self.handle.admin(AdminCommand::Fail { array: found.set, drive: found.drive, unsynced });
        if let Err(ServiceError::Admin(error @ AdminError::NeededByUnsynced)) = &failed {
            return Err(Failure::refused(format!("{member}: {error}, or fail it all the same with --yes")));
        }
        told(member, failed)?;
        let remedy = format!("take it out with `openraid remove {name} {member}`");
        self.done(format!("{member} of {name} has failed; {remedy}"), name)
    }

    fn add(&self, name: &str, member: &str, leg: Option<usize>, overwrite: bool) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let set = self.set_for_new(&self.status()?, &served, leg)?;
        let joined = self.join(set, member, overwrite)?;
        self.note(name);
        let status = self.status()?;
        let line = set_status(&status, set)?.members.iter().find(|line| line.drive == Some(joined.drive));
        let again = if joined.returning { "back in" } else { "added to" };
        let role = match line.map(|line| (line.state, line.slot)) {
            Some((MemberState::Rebuilding { .. }, Some(slot))) => format!("and takes over slot {slot}"),
            Some((MemberState::InSync, Some(slot))) => format!("and is the member of slot {slot}"),
            _ => "as a spare".into(),
        };
        self.done(format!("{member} is {again} {name} {role}"), name)
    }

    fn remove(&self, name: &str, member: &str, spare_only: bool) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        // Until its failure is recorded on the others it cannot go, and that takes as long as their writes.
        let is_failing = |found: &Found| matches!(found.member.state, MemberState::Failing(_));
        let found = wait_while(|| find(&self.status()?, &served, member), is_failing)?;
        if spare_only && found.member.state != MemberState::Spare {
            return Err(Failure::refused(format!("{member} is no spare of {name}; see `openraid show {name}`")));
        }
        self.admin(member, AdminCommand::Remove { array: found.set, drive: found.drive })?;
        let released = self.release(found.drive);
        self.note(name);
        let text = match released {
            Ok(()) => format!("{member} is out of {name}"),
            Err(failure) => {
                format!("{member} is out of {name}, but this server still holds it open: {}", failure.text)
            }
        };
        self.done(text, name)
    }

    fn release(&self, drive: DriveId) -> Result<(), Failure> {
        self.handle.detach(drive).map_err(Failure::from)
    }

    fn replace(&self, name: &str, member: &str, with: Option<&str>, overwrite: bool) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let found = find(&status, &served, member)?;
        let slot = found.member.slot.filter(|_| found.member.state == MemberState::InSync).ok_or_else(|| {
            Failure::refused(format!(
                "{member} is no working member of {name}; a failed one is replaced by `openraid add {name} NEW`"
            ))
        })?;
        let (drive, joined) = match with {
            None => (None, false),
            Some(text) => match find(&status, &served, text) {
                Ok(spare) if spare.set == found.set => (Some(spare.drive), false),
                Ok(_) => return Err(Failure::refused(format!("{text} belongs to another leg of {name}"))),
                Err(_) => (Some(self.join(found.set, text, overwrite)?.drive), true),
            },
        };
        let replaced = self.replace_when_ready(name, &AdminCommand::Replace { array: found.set, slot, with: drive });
        replaced.map_err(|failure| match drive.filter(|_| joined) {
            // It was added for this alone.
            Some(drive) => Failure { text: failure.text + &self.take_out_again(name, found.set, drive), ..failure },
            None => failure,
        })?;
        self.note(name);
        let new = with.unwrap_or("a spare");
        self.done(format!("{member} is copied to {new}, which then takes slot {slot} of {name}"), name)
    }

    /// A spare is not needed any more; what went wrong with that.
    fn take_out_again(&self, name: &str, array: ArrayId, drive: DriveId) -> String {
        match self.admin(name, AdminCommand::Remove { array, drive }).map(|()| self.release(drive)) {
            Ok(Ok(())) => String::new(),
            Ok(Err(second)) => {
                format!("; the new member is out again, but this server still holds it open: {}", second.text)
            }
            Err(second) => format!("; and the new member stays as a spare: {}", second.text),
        }
    }

    /// What was written to a new member to make it a spare may still be under way.
    fn replace_when_ready(&self, name: &str, order: &AdminCommand) -> Result<(), Failure> {
        let is_busy = |replaced: &Result<_, _>| {
            matches!(replaced, Err(ServiceError::Admin(AdminError::CommandsOutstanding(_) | AdminError::PreparingLog)))
        };
        told(name, wait_while(|| Ok(self.handle.admin(order.clone())), is_busy)?)
    }

    fn assemble(&self, members: &[String], force: bool, journal_lost: bool) -> Result<Answer, Failure> {
        let specs = members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?;
        let mut options = options(openraid_sys::Use::Exclusive);
        options.without_flush = self.without_flush;
        let (opened, failed) = open_some(&specs, options);
        // It may be the array that filled it.
        self.open_full_journal()?;
        let how = Taking { force, journal_lost, nesting: Nesting::Follow, journalled: None };
        let taken = self.take(opened, how)?;
        let mut failures: Vec<Failure> = failed.into_iter().map(|(_, failure)| failure).collect();
        failures.extend(taken.failed);
        if taken.served.is_empty() {
            return Err(Failure::joined(&failures, Exit::Refused));
        }
        for name in &taken.served {
            self.note(name);
        }
        let mut lines = vec![format!("served now: {}", taken.served.join(", "))];
        lines.extend(taken.recovered);
        lines.extend(failures.into_iter().map(|failure| failure.text));
        let array = taken.served.first().and_then(|name| self.array(name).ok()).map(Box::new);
        Ok(Answer::Done { text: lines.join("\n  "), array })
    }
}
