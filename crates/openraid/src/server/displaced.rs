//! Files and devices that are served and are not at their paths any more: deleted, replaced, unmounted, pulled. All goes on, as long as
//! the server runs, and no command fails.

use std::collections::BTreeMap;

use openraid_runtime::member::{ModelSpec, Place};
use openraid_runtime::service::DriveView;
use openraid_status::alarm::Condition;
use openraid_status::shell::{command, command_with, word};
use openraid_status::EventName;
use openraid_sys::{Displaced, Identity};

use super::{Server, State};
use crate::events::Level;
use crate::members::spec;
use crate::model::{ArrayModel, JournalModel, MemberModel, StateWord};

/// Findings at the paths of drives, by the names of the drives.
pub(super) type AllDisplaced = BTreeMap<String, Finding>;

/// The finding at the path of a drive that is not there any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    why: Displaced,
    /// It is a block device: its data outlives the server, as that of a deleted file does not.
    is_device: bool,
}

impl Finding {
    fn of(view: &DriveView) -> Option<Self> {
        let spec = spec(&view.member).ok()?;
        let (Place::Path(path) | Place::Model(ModelSpec { file: Some(path), .. })) = &spec.place else { return None };
        let identity = view.names.identity?;
        let why = identity.displaced_from(path)?;
        Some(Self { why, is_device: matches!(identity, Identity::Block { .. }) })
    }
}

/// The consequence for a device whose node is gone.
const NOT_FOUND_LATER: &str =
    "the device is still used, but the next start does not find it there: make its node again";

impl Server {
    /// Compare the path of each drive with the open file or device.
    pub(super) fn look_at_paths(&self) {
        // An error means that the service is ending.
        let Ok(status) = self.status() else { return };
        let found = status.drives.iter().filter_map(|view| Some((view.member.clone(), Finding::of(view)?)));
        let found: AllDisplaced = found.collect();
        self.state().displaced = found;
    }
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
        _ if matches!(array.level.as_str(), "raid0" | "linear" | "jbod") => match array.addresses.first() {
            Some(address) => format!("nbdcopy {} IMAGE", word(address)),
            None => command("show", [name]),
        },
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
                level: if is_spare { Level::Warning } else { EventName::MemberDisplaced.level() },
                ..Condition::of_server(EventName::MemberDisplaced, format!("{}: {what}", model.name))
            });
        }
    }
    found
}

/// Conditions for the devices of the journal.
pub(super) fn of_journal(journal: &JournalModel, state: &State) -> Vec<Condition> {
    let of = |device: &String| {
        let Finding { why, is_device } = state.displaced.get(device)?;
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
