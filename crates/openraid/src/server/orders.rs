//! The commands that change arrays, carried out one at a time.

use std::time::{Duration, Instant};

use openraid_core::admin::AdminCommand;
use openraid_runtime::service::{Nesting, ServiceError};
use openraid_status::{shell_quoting, EventName};
use openraid_units::ArrayId;

use super::array_model::ServedArray;
use super::member_orders::Consent;
use super::reshape::ReshapeOrder;
use super::start::{StartOptions, StartReport};
use super::{Server, ServerAccess};
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Obstacle};
use crate::members::array_locks::OpenForStart;
use crate::members::{options, refuse_protected, spec};
use crate::model::HealthWord;

/// Maximum time for a member's failure to be recorded, or for a new member to be ready.
const RECORDING_TIME_MAX: Duration = Duration::from_secs(30);
/// Interval of the checks for that.
const RECORDING_PAUSE: Duration = Duration::from_millis(20);

/// Check until the condition ends, or the time is over. Returns the last value.
pub(super) fn wait_while<T>(
    look: impl Fn() -> Result<T, Failure>,
    is_to_wait: impl Fn(&T) -> bool,
) -> Result<T, Failure> {
    wait_at_most(RECORDING_TIME_MAX, look, is_to_wait)
}

/// As [`wait_while`], with another time.
pub(super) fn wait_at_most<T>(
    time: Duration,
    look: impl Fn() -> Result<T, Failure>,
    is_to_wait: impl Fn(&T) -> bool,
) -> Result<T, Failure> {
    let until = Instant::now() + time;
    loop {
        let seen = look()?;
        if !is_to_wait(&seen) || Instant::now() >= until {
            return Ok(seen);
        }
        std::thread::sleep(RECORDING_PAUSE);
    }
}

/// The result of a command; an error names its array or member.
pub(super) fn outcome_of<T>(name: &str, done: Result<T, ServiceError>) -> Result<(), Failure> {
    done.map(drop).map_err(|error| Failure::from(error).of(name))
}

/// The values that a command sets. Its answer lists all others, too.
fn asked_of(command: &Command) -> Option<String> {
    let Command::Set { array, settings, .. } = command else { return None };
    let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(format!("{array}: {}", words.join(" ")))
}

impl Server {
    /// Carry out a command. If the server could not keep what it changed, the command has failed, and its text names the value in force.
    pub(super) fn carry_out(&self, command: Command) -> Result<ServerAnswer, Failure> {
        let before = self.registry.unwritten().0;
        let asked = asked_of(&command);
        let answer = self.carry_out_now(command)?;
        match self.registry.unwritten() {
            (failures, Some(why)) if failures > before => {
                let done = if let ServerAnswer::Done { text, .. } = &answer { text.as_str() } else { "done" };
                let done = asked.as_deref().unwrap_or(done);
                let text =
                    format!("{done}\nthis is in force, and is lost when the server ends before it can be kept: {why}");
                Err(Failure::failed(text).hindered_by(Obstacle::NotKept))
            }
            _ => Ok(answer),
        }
    }

    fn carry_out_now(&self, command: Command) -> Result<ServerAnswer, Failure> {
        let stops = matches!(command, Command::Stop { .. } | Command::StopAll { .. });
        if self.access == ServerAccess::Untouched && !stops {
            return Err(Failure::refused(
                "the server was started with --read-only and writes nothing to any member: stop it, and serve without --read-only",
            ));
        }
        match command {
            Command::Fail { array, member, unsynced, device } => {
                self.fail(&array, &member, unsynced, device.as_deref())
            }
            Command::Add { array, member, span, overwrite, split } => {
                self.add(&array, &member, span, Consent { overwrite, split })
            }
            Command::Remove { array, member, spare, device } => self.remove(&array, &member, spare, device.as_deref()),
            Command::Replace { array, member, with, overwrite, device, split } => {
                self.replace(&array, &member, with.as_deref(), device.as_deref(), Consent { overwrite, split })
            }
            Command::Check { array, kind } => self.check(&array, kind),
            Command::StopCheck { array } => self.stop_check(&array),
            Command::CancelReshape { array } => self.cancel_reshape(&array),
            Command::LimitSize { array, to, yes } => self.limit_size(&array, &to, yes),
            Command::Reshape { array, members, raid_devices, level, chunk, layout, size, plan, overwrite, yes } => {
                let order = ReshapeOrder { members, raid_devices, level, chunk, layout, size, plan, overwrite, yes };
                self.reshape(&array, &order)
            }
            Command::Pause { array } => self.pause(&array),
            Command::Resume { array } => self.resume(&array),
            Command::Set { array, settings, yes } => self.set(&array, &settings, yes),
            Command::AfterLoss { array } => self.after_loss(&array),
            Command::Rename { array, to } => self.rename(&array, &to),
            Command::Path { array, state } => self.set_path(&array, state),
            Command::Stop { array, yes } => self.stop_for_good(&array, yes),
            Command::StopAll { yes } => {
                self.refuse_loss(None, yes)?;
                Ok(ServerAnswer::Done { text: "the server stops all arrays and ends".into(), array: None })
            }
            Command::Assemble { members, force, journal_lost } => self.assemble(&members, force, journal_lost),
            Command::JoinJournal { device, overwrite } => self.join_journal(device.as_deref(), overwrite),
            Command::DiscardJournalled { array, lost } => self.discard_journalled(&array, lost),
            Command::Reload => self.reload(),
            Command::Hello
            | Command::Alarms
            | Command::AcknowledgeAlarms { .. }
            | Command::TestAlarm { .. }
            | Command::Config
            | Command::Locate { .. }
            | Command::Login { .. }
            | Command::RevokeToken { .. }
            | Command::List
            | Command::Show { .. }
            | Command::Journal
            | Command::Limit { .. }
            | Command::Record { .. }
            | Command::Stories { .. }
            | Command::Requests { .. }
            | Command::Story { .. }
            | Command::Slowest { .. } => {
                unreachable!("answered without changing anything")
            }
        }
    }

    /// Hold background work.
    fn pause(&self, array: &str) -> Result<ServerAnswer, Failure> {
        self.each_set(array, |array| AdminCommand::Pause { array })?;
        self.tell_of_reshape(array, EventName::ReshapePaused, "the change of shape is paused");
        let resume = shell_quoting::command("resume", [array]);
        self.done(format!("background work of {array} is paused; continue it with `{resume}`"), array)
    }

    /// Let background work go on.
    fn resume(&self, array: &str) -> Result<ServerAnswer, Failure> {
        self.each_set(array, |array| AdminCommand::Resume { array })?;
        self.tell_of_reshape(array, EventName::ReshapeContinued, "the change of shape goes on");
        self.done(format!("background work of {array} continues"), array)
    }

    /// Stop an array, unless that loses data without a consent.
    fn stop_for_good(&self, array: &str, yes: bool) -> Result<ServerAnswer, Failure> {
        self.refuse_loss(Some(array), yes)?;
        let text = self.stopped_text(array)?;
        self.stop(array)?;
        Ok(ServerAnswer::Done { text, array: None })
    }

    /// The answer after an array has been stopped.
    fn stopped_text(&self, name: &str) -> Result<String, Failure> {
        if self.access == ServerAccess::Untouched {
            return Ok(format!("{name} is stopped, nothing was written to its members"));
        }
        if self.array(name)?.health != HealthWord::Failed {
            return Ok(format!("{name} is stopped, its members are marked clean"));
        }
        let waits = format!(
            "; its entries stay in the journal until it is started again with its members, or until they are discarded \
             with `{}`",
            shell_quoting::command("journal discard", [name])
        );
        let waits = if self.has_journal() { &waits } else { "" };
        Ok(format!("{name} is stopped; it had failed, so its members are not marked clean{waits}"))
    }

    pub(super) fn done(&self, text: String, array: &str) -> Result<ServerAnswer, Failure> {
        let array = self.array(array).ok().map(Box::new);
        Ok(ServerAnswer::Done { text, array })
    }

    fn admin(&self, name: &str, command: AdminCommand) -> Result<(), Failure> {
        outcome_of(name, self.handle.admin(command))
    }

    /// Send a command to every set of an array. If one refuses, the sets before it have carried it out.
    pub(super) fn each_set(
        &self,
        name: &str,
        command: impl Fn(ArrayId) -> AdminCommand,
    ) -> Result<ServedArray, Failure> {
        let served = self.find(name)?;
        for set in served.sets() {
            self.admin(name, command(set))?;
        }
        Ok(served)
    }

    pub(super) fn assemble(
        &self,
        members: &[String],
        force: bool,
        journal_lost: bool,
    ) -> Result<ServerAnswer, Failure> {
        self.start_array(members, force, journal_lost).map(|(answer, _)| answer)
    }

    /// Start the array of these members. Returns the answer, and what became of them.
    pub(super) fn start_array(
        &self,
        members: &[String],
        force: bool,
        journal_lost: bool,
    ) -> Result<(ServerAnswer, StartReport), Failure> {
        let specs = members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?;
        specs.iter().try_for_each(|spec| self.refuse_own_export(spec))?;
        let mut options = options(openraid_sys::Use::Exclusive);
        options.without_flush = self.without_flush;
        let OpenForStart { opened, failed, busy } = self.open_for_start(&specs, options);
        if !force {
            refuse_protected(&specs, &opened, &failed)?;
        }
        // This may be the array that filled the journal.
        self.open_full_journal()?;
        let how = StartOptions {
            force,
            journal_lost,
            nesting: Nesting::Follow,
            journalled: None,
            chosen_by: "assemble",
            ..StartOptions::default()
        };
        let taken = self.take(opened, how)?;
        let mut failures: Vec<Failure> = failed.into_iter().map(|(_, failure)| failure).collect();
        failures.extend(busy.into_iter().map(|(_, failure)| failure));
        failures.extend(taken.failed.iter().cloned());
        if taken.served.is_empty() {
            return Err(Failure::joined(&failures, Exit::Refused));
        }
        for name in &taken.served {
            self.note(name);
            if let Ok(served) = self.find(name) {
                self.state().troubles.array_started(&served, members);
            }
        }
        let mut lines = vec![format!("served now: {}", taken.served.join(", "))];
        lines.extend(taken.left_out.iter().map(ToString::to_string));
        lines.extend(taken.recovered.iter().cloned());
        lines.extend(failures.into_iter().map(|failure| failure.text()));
        let array = taken.served.first().and_then(|name| self.array(name).ok()).map(Box::new);
        Ok((ServerAnswer::Done { text: lines.join("\n  "), array }, taken))
    }
}
