//! Files and devices that are served and are not at their paths any more: deleted, replaced, unmounted, pulled. All goes on, as long as
//! the server runs, and no command fails.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use openraid_runtime::member::{ModelSpec, Place};
use openraid_runtime::service::{DriveView, ServiceStatus};
use openraid_status::alarm::Condition;
use openraid_status::shell_quoting::{command, command_with, word};
use openraid_status::EventName;
use openraid_sys::{Displaced, Identity};
use openraid_units::ArrayLevel;

use super::{Server, State};
use crate::events::Severity;
use crate::events::{plain, News};
use crate::failure::Failure;
use crate::members::spec;
use crate::model::{ArrayModel, JournalModel, LevelWord, MemberModel, StateWord};

/// Findings at the paths of drives, by the names of the drives.
pub(super) type AllDisplaced = BTreeMap<String, DisplacedMember>;

/// The finding at the path of a drive that is not there any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct DisplacedMember {
    why: Displaced,
    /// It is a block device: its data outlives the server, as that of a deleted file does not.
    is_device: bool,
}

impl DisplacedMember {
    fn of(view: &DriveView) -> Option<Self> {
        let spec = spec(&view.member).ok()?;
        let (Place::Path(path) | Place::Model(ModelSpec { file: Some(path), .. })) = &spec.place else { return None };
        let identity = view.names.identity?;
        let why = identity.displaced_from(path)?;
        Some(Self { why, is_device: matches!(identity, Identity::Block { .. }) })
    }
}

/// Maximum time to look at all paths before a stop.
const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// The consequence for a device whose node is gone.
const NOT_FOUND_LATER: &str =
    "the device is still used, but the next start does not find it there: make its node again";

impl Server {
    /// Compare the path of each drive with the open file or device.
    pub(super) fn look_at_paths(&self) {
        // An error means that the service is ending.
        let Ok(status) = self.status() else { return };
        self.note_displaced(find(&status));
    }

    /// Keep the findings, and report new ones.
    fn note_displaced(&self, found: AllDisplaced) {
        let before = std::mem::replace(&mut self.state().displaced, found.clone());
        if found.keys().all(|name| before.contains_key(name)) {
            return;
        }
        let (Ok(arrays), Ok(journal)) = (self.arrays(), self.journal_model()) else { return };
        let state = self.state();
        let all = arrays.iter().flat_map(|array| conditions(array, &state));
        let all = all.chain(journal.iter().flat_map(|journal| of_journal(journal, &state)));
        let is_new = |condition: &Condition| condition.member.as_ref().is_some_and(|name| !before.contains_key(name));
        let news: Vec<News> = all.filter(is_new).map(reported).collect();
        drop(state);
        self.add_news(news);
    }

    /// Refuse to end an array, or all of them, with members whose data ends with the server. The paths are looked at once
    /// more, but a file system that hangs does not keep an array from being stopped.
    ///
    /// # Errors
    /// There are such members, and their loss is not accepted.
    pub(super) fn refuse_loss(&self, array: Option<&str>, yes: bool) -> Result<(), Failure> {
        let (status, (sender, receiver)) = (self.status()?, mpsc::channel());
        // An error means that the receiver waits no longer.
        let look = move || sender.send(find(&status)).unwrap_or(());
        if thread::Builder::new().name("paths".into()).spawn(look).is_ok() {
            if let Ok(found) = receiver.recv_timeout(LOOK_TIME_MAX) {
                self.note_displaced(found);
            }
        }
        let models: Vec<ArrayModel> = match array {
            Some(name) => vec![self.array(name)?],
            None => self.arrays()?,
        };
        let losses: Vec<String> = models.iter().filter_map(|model| loss_text(model, &self.state())).collect();
        if losses.is_empty() || yes {
            return Ok(());
        }
        let again =
            array.map_or_else(|| "openraid stop --all --yes".into(), |name| command_with("stop", [name], "--yes"));
        Err(Failure::refused(format!("{}. To stop and lose it: `{again}`", losses.join("; "))))
    }
}

/// The findings at the paths of all drives.
fn find(status: &ServiceStatus) -> AllDisplaced {
    status.drives.iter().filter_map(|view| Some((view.member.clone(), DisplacedMember::of(view)?))).collect()
}

/// A condition as an event.
fn reported(condition: Condition) -> News {
    let Condition { array, span, slot, member, level, text, .. } = condition;
    News { array, span, slot, member, level: Some(level), ..plain(EventName::MemberDisplaced, text) }
}

/// The members of an array whose data ends with the server.
fn loss_text(model: &ArrayModel, state: &State) -> Option<String> {
    let lost = |member: &&MemberModel| {
        let name = member.member.as_ref()?;
        let is_file = state.displaced.get(name).is_some_and(|found| !found.is_device);
        let why = member.displaced.as_ref().filter(|_| is_file && member.state != StateWord::Spare)?;
        Some((format!("{name}: {why}"), next_step(model, member)))
    };
    let members = model.sets().into_iter().flat_map(|set| &set.members);
    let (names, steps): (Vec<_>, Vec<_>) = members.filter_map(|member| lost(&member)).unzip();
    let step = steps.first()?;
    let (names, name) = (names.join(", "), &model.name);
    Some(format!("{name}: {names}. The data lives only while the server runs: copy it out first, as by `{step}`"))
}

/// Add the findings at the paths of members to the model. A member that failed is not needed any more.
pub(super) fn add_displaced(model: &mut ArrayModel, state: &State) {
    let sets = model.spans.iter_mut().flat_map(|span| &mut span.members).chain(&mut model.members);
    for member in sets {
        let is_used = matches!(member.state, StateWord::InSync | StateWord::Rebuilding | StateWord::Spare);
        let known = member.member.as_ref().filter(|_| is_used).and_then(|name| state.displaced.get(name));
        member.displaced = known.map(|found| found.why.to_string());
    }
}

/// The command that brings the content of a member to a place that lasts.
fn next_step(array: &ArrayModel, member: &MemberModel) -> String {
    let (name, drive) = (&array.name, format!("drive:{}", member.drive.unwrap_or_default()));
    match member.state {
        StateWord::Spare => command("spare remove", [name, &drive]),
        StateWord::Rebuilding => command("fail", [name, &drive]),
        _ if matches!(array.level, LevelWord::Of(ArrayLevel::Raid0 | ArrayLevel::Linear | ArrayLevel::Jbod)) => {
            match array.addresses.first() {
                Some(address) => format!("nbdcopy {} IMAGE", word(address)),
                None => command("show", [name]),
            }
        }
        _ => command_with("replace", [name, &drive], "--with DRIVE"),
    }
}

/// Conditions for the members of an array.
pub(super) fn conditions(model: &ArrayModel, state: &State) -> Vec<Condition> {
    let mut found = Vec::new();
    for (place, set) in model.sets().into_iter().enumerate() {
        for member in &set.members {
            let (Some(why), Some(name)) = (&member.displaced, &member.member) else { continue };
            let is_spare = member.state == StateWord::Spare;
            let is_device = state.displaced.get(name).is_some_and(|found| found.is_device);
            let loss =
                if is_device { NOT_FOUND_LATER } else { "its data lives only while the server runs: copy it out" };
            let what = match (is_spare, member.slot) {
                (true, _) => format!("the spare {name}: {why}"),
                (false, slot) => {
                    format!("slot {} ({name}): {why}: {loss}", slot.map_or_else(|| "-".into(), |slot| slot.to_string()))
                }
            };
            found.push(Condition {
                array: Some(model.name.clone()),
                uuid: model.uuid.clone(),
                span: (!model.spans.is_empty()).then_some(place),
                slot: member.slot,
                member: Some(name.clone()),
                next_step: Some(next_step(model, member)),
                level: if is_spare { Severity::Warning } else { EventName::MemberDisplaced.level() },
                ..Condition::of_server(EventName::MemberDisplaced, format!("{}: {what}", model.name))
            });
        }
    }
    found
}

/// Conditions for the devices of the journal.
pub(super) fn of_journal(journal: &JournalModel, state: &State) -> Vec<Condition> {
    let of = |device: &String| {
        let DisplacedMember { why, is_device } = state.displaced.get(device)?;
        let loss = if *is_device {
            NOT_FOUND_LATER
        } else {
            "acknowledged writes in it live only while the server runs: give the journal another device, or stop the arrays that use it"
        };
        let text = format!("the journal device {device}: {why}: {loss}");
        let next_step = Some(command("journal attach", ["DEVICE"]));
        Some(Condition {
            member: Some(device.clone()),
            next_step,
            ..Condition::of_server(EventName::MemberDisplaced, text)
        })
    };
    journal.devices.iter().filter(|device| device.works).filter_map(|device| of(&device.device)).collect()
}
