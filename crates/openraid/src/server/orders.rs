//! The commands that change something, carried out one at a time.

use std::time::{Duration, Instant};

use openraid_core::admin::{AdminCommand, MemberState, PartialWritePolicy, Policy, Unprotected, WriteCache};
use openraid_runtime::service::{Nesting, ServiceStatus};
use openraid_units::{ArrayId, DriveId};

use super::members::{find, set_status};
use super::start::Taking;
use super::view::{unprotected, Served};
use super::Server;
use crate::control::{Answer, Command};
use crate::exit::Failure;
use crate::members::{open_some, options, spec};
use crate::output;
use crate::quantity::{human, rate};

/// A member that is to be removed may still be failing for this long.
const RECORDING_TIME_MAX: Duration = Duration::from_secs(30);
/// How often that is looked at.
const RECORDING_PAUSE: Duration = Duration::from_millis(20);

impl Server {
    pub(super) fn carry_out(&self, command: Command) -> Result<Answer, Failure> {
        match command {
            Command::Fail { array, member } => self.fail(&array, &member),
            Command::Add { array, member, leg, overwrite } => self.add(&array, &member, leg, overwrite),
            Command::Remove { array, member, spare } => self.remove(&array, &member, spare),
            Command::Replace { array, member, with, overwrite } => {
                self.replace(&array, &member, with.as_deref(), overwrite)
            }
            Command::Check { array, repair } => self.check(&array, repair),
            Command::StopCheck { array } => {
                self.each_set(&array, |array| AdminCommand::StopScrub { array })?;
                self.done(format!("the check of {array} is ended"), &array)
            }
            Command::Pause { array } => {
                self.each_set(&array, |array| AdminCommand::Pause { array })?;
                self.done(format!("background work of {array} is held; go on with `openraid resume {array}`"), &array)
            }
            Command::Resume { array } => {
                self.each_set(&array, |array| AdminCommand::Resume { array })?;
                self.done(format!("background work of {array} goes on"), &array)
            }
            Command::Set { array, settings } => self.set(&array, &settings),
            Command::Stop { array } => {
                self.stop(&array)?;
                Ok(Answer::Done { text: format!("{array} is stopped, its members are marked clean"), array: None })
            }
            Command::StopAll => {
                self.handle.begin_stop();
                Ok(Answer::Done { text: "the server stops all arrays and ends".into(), array: None })
            }
            Command::Assemble { members, force, journal_lost } => self.assemble(&members, force, journal_lost),
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

    fn done(&self, text: String, array: &str) -> Result<Answer, Failure> {
        let array = self.array(array).ok().map(Box::new);
        Ok(Answer::Done { text, array })
    }

    fn admin(&self, name: &str, command: AdminCommand) -> Result<(), Failure> {
        let done = self.handle.admin(command);
        done.map(drop).map_err(|error| Failure::failed(format!("{name}: {error}")))
    }

    /// Give a command to every set of an array. Where one refuses, those before it have done it.
    fn each_set(&self, name: &str, command: impl Fn(ArrayId) -> AdminCommand) -> Result<Served, Failure> {
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
    }

    fn fail(&self, name: &str, member: &str) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let found = find(&self.status()?, &served, member)?;
        self.admin(member, AdminCommand::Fail { array: found.set, drive: found.drive })?;
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
        let mut found = find(&self.status()?, &served, member)?;
        // Until its failure is recorded on the others it cannot go, and that takes as long as their writes.
        let until = Instant::now() + RECORDING_TIME_MAX;
        while matches!(found.member.state, MemberState::Failing(_)) && Instant::now() < until {
            std::thread::sleep(RECORDING_PAUSE);
            found = find(&self.status()?, &served, member)?;
        }
        if spare_only && found.member.state != MemberState::Spare {
            return Err(Failure::usage(format!("{member} is no spare of {name}; see `openraid show {name}`")));
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
        self.handle.detach(drive).map_err(Failure::failed)
    }

    fn replace(&self, name: &str, member: &str, with: Option<&str>, overwrite: bool) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let found = find(&status, &served, member)?;
        let slot = found.member.slot.filter(|_| found.member.state == MemberState::InSync).ok_or_else(|| {
            Failure::usage(format!(
                "{member} is no working member of {name}; a failed one is replaced by `openraid add {name} NEW`"
            ))
        })?;
        let (drive, joined) = match with {
            None => (None, false),
            Some(text) => match find(&status, &served, text) {
                Ok(spare) if spare.set == found.set => (Some(spare.drive), false),
                Ok(_) => return Err(Failure::usage(format!("{text} belongs to another leg of {name}"))),
                Err(_) => (Some(self.join(found.set, text, overwrite)?.drive), true),
            },
        };
        let replaced = self.admin(name, AdminCommand::Replace { array: found.set, slot, with: drive });
        if let (Err(failure), Some(drive), true) = (&replaced, drive, joined) {
            // It was added for this alone.
            let removed = self.admin(name, AdminCommand::Remove { array: found.set, drive });
            removed.and_then(|()| self.release(drive)).map_err(|second| {
                Failure::failed(format!("{}; and the new member stays as a spare: {}", failure.text, second.text))
            })?;
        }
        replaced?;
        self.note(name);
        let new = with.unwrap_or("a spare");
        self.done(format!("{member} is copied to {new}, which then takes slot {slot} of {name}"), name)
    }

    fn check(&self, name: &str, repair: bool) -> Result<Answer, Failure> {
        self.each_set(name, |array| AdminCommand::Scrub { array, repair })?;
        let what = if repair { "repair" } else { "check" };
        self.done(format!("the {what} of {name} runs; watch it with `openraid show {name} --follow`"), name)
    }

    fn set(&self, name: &str, settings: &[(String, String)]) -> Result<Answer, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let mut policy = set_status(&status, served.sets()[0])?.policy;
        for (key, value) in settings {
            apply(&mut policy, key, value).map_err(Failure::usage)?;
        }
        if policy.write_cache == WriteCache::Journal {
            check_protectable(&status, &served)?;
        }
        if !settings.is_empty() {
            self.each_set(name, |array| AdminCommand::SetPolicy { array, policy })?;
        }
        if settings.iter().any(|(key, value)| super::reading::is_reset(key, value)) {
            self.each_set(name, |array| AdminCommand::ResetAdaptive { array })?;
        }
        if settings.iter().any(|(key, _)| key == "write.cache") {
            let journalled = policy.write_cache == WriteCache::Journal;
            if let Some(entry) = self.registry.find(name)?.filter(|entry| entry.journalled != journalled) {
                if let Err(failure) = self.registry.remember(crate::registry::Entry { journalled, ..entry }) {
                    output::warn(&failure.text);
                }
            }
        }
        let mut text = policy_text(&policy);
        if let Some(journal) = self.array(name)?.journal {
            text.push_str(&format!("\njournal: {}", output::array::protection_text(&journal)));
        }
        self.done(text, name)
    }

    fn assemble(&self, members: &[String], force: bool, journal_lost: bool) -> Result<Answer, Failure> {
        let specs = members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?;
        let mut options = options(openraid_sys::Use::Exclusive);
        options.without_flush = self.without_flush;
        let (opened, failed) = open_some(&specs, options);
        let how = Taking { force, journal_lost, nesting: Nesting::Follow, journalled: false };
        let taken = self.take(opened, how)?;
        let mut lines: Vec<String> = failed.into_iter().map(|(_, failure)| failure.text).collect();
        lines.extend(taken.failed);
        if taken.served.is_empty() {
            return Err(Failure::failed(lines.join("\n  ")));
        }
        for name in &taken.served {
            self.note(name);
        }
        lines.insert(0, format!("served now: {}", taken.served.join(", ")));
        let array = taken.served.first().and_then(|name| self.array(name).ok()).map(Box::new);
        Ok(Answer::Done { text: lines.join("\n  "), array })
    }
}

/// Refuse the journal for an array that it can never protect.
fn check_protectable(status: &ServiceStatus, served: &Served) -> Result<(), Failure> {
    let sets = served.sets();
    let never = status.arrays.iter().filter(|view| sets.contains(&view.status.array)).find_map(|view| {
        let superblock = view.status.superblock.as_ref();
        match view.protection {
            Err(why @ (Unprotected::Shape | Unprotected::MetadataAtEnd | Unprotected::PartialParityLog)) => Some(why),
            _ if superblock.is_none() => Some(Unprotected::Shape),
            _ => None,
        }
    });
    never.map_or(Ok(()), |why| {
        Err(Failure::usage(format!("{}: the journal cannot protect it: {}", served.name, unprotected(why))))
    })
}

/// Change one setting.
fn apply(policy: &mut Policy, key: &str, value: &str) -> Result<(), String> {
    match key {
        "rebuild.rate" => policy.rebuild_rate = rate(value)?,
        "scrub.rate" => policy.scrub_rate = rate(value)?,
        "write.partial" => {
            policy.partial_write = match value {
                "fewest" => PartialWritePolicy::Fewest,
                "rmw" => PartialWritePolicy::ReadModifyWrite,
                _ => return Err(format!("write.partial={value}: use fewest or rmw")),
            };
        }
        "background.depth" => {
            let depth = value.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth));
            policy.background_depth =
                depth.ok_or_else(|| format!("background.depth={value}: use a number from 1 to {DEPTH_MAX}"))?;
        }
        "write.cache" => {
            policy.write_cache = match value {
                "through" => WriteCache::Through,
                "volatile" => WriteCache::Volatile,
                "journal" => WriteCache::Journal,
                _ => return Err(format!("write.cache={value}: use through, journal or volatile")),
            };
        }
        "read.cache" => {
            policy.read_cache = match value {
                "on" => true,
                "off" => false,
                _ => return Err(format!("read.cache={value}: use on or off")),
            };
        }
        _ => {
            return super::reading::apply(policy, key, value).unwrap_or_else(|| {
                Err(format!(
                "{key:?} is no setting; there are rebuild.rate, scrub.rate, write.partial, write.cache, read.cache, \
                     background.depth, {}",
                super::reading::KEYS
            ))
            })
        }
    }
    Ok(())
}

/// Rows in work at once in the background, at most.
const DEPTH_MAX: u32 = openraid_core::limits::WINDOW_ROWS_MAX;

fn policy_text(policy: &Policy) -> String {
    let settings = super::view::settings(policy);
    let rate =
        |bytes: u64| if bytes == 0 { "none".into() } else { format!("{}/s", human(openraid_units::Bytes(bytes))) };
    format!(
        "rebuild.rate={}\nscrub.rate={}\nwrite.partial={}\nwrite.cache={}\nread.cache={}\nbackground.depth={}\n{}",
        rate(settings.rebuild_rate),
        rate(settings.scrub_rate),
        settings.write_partial,
        settings.write_cache,
        if settings.read_cache { "on" } else { "off" },
        settings.background_depth,
        super::reading::text(policy)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Sectors;

    #[test]
    fn settings_are_taken_by_name_and_nonsense_is_refused() {
        let mut policy = Policy::default();
        apply(&mut policy, "rebuild.rate", "50M").unwrap();
        apply(&mut policy, "scrub.rate", "none").unwrap();
        apply(&mut policy, "write.partial", "rmw").unwrap();
        apply(&mut policy, "background.depth", "3").unwrap();
        assert_eq!((policy.rebuild_rate, policy.scrub_rate), (Sectors::mib(50), Sectors::ZERO));
        assert_eq!((policy.partial_write, policy.background_depth), (PartialWritePolicy::ReadModifyWrite, 3));
        let before = policy;
        for (key, value) in [
            ("rebuild.rate", "fast"),
            ("rebuild.rate", "-1M"),
            ("write.partial", "most"),
            ("background.depth", "0"),
            ("background.depth", "1000"),
            ("cache", "on"),
        ] {
            assert!(apply(&mut policy, key, value).is_err(), "{key}={value}");
        }
        assert_eq!(policy, before);
        assert!(policy_text(&policy).contains("rebuild.rate=50 MiB/s\nscrub.rate=none\n"));
    }
}
