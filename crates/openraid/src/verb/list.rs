//! `openraid list`: lists the arrays that are recorded or served.

use std::fmt::Write;
use std::path::Path;

use openraid_sys::DeviceNames;
use openraid_units::Bytes;
use serde::Serialize;

use super::Context;
use crate::alarms::AlarmModel;
use crate::control::{Command, ServerAnswer};
use crate::events::Severity;
use crate::failure::{Exit, Outcome};
use crate::model::{ArrayModel, HealthWord, PolicyWord};
use crate::output::array::{health_text, mismatches_text, state_text, task_line, unsynced_text};
use crate::output::table::TextTable;
use crate::quantity::{counted, human};
use crate::registry::RegisteredArray;

/// Arrays.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ListBody {
    /// Arrays that running servers serve, or should serve (health `offline`).
    served: Vec<ArrayModel>,
    /// Arrays that are in the registry, served or not.
    remembered: Vec<RegisteredArray>,
}

/// Runs the verb. The exit code is that of the worst array that is served or should be.
///
/// # Errors
/// The registry cannot be read, or the requested server does not answer.
pub fn run(context: &Context) -> Outcome {
    let (mut served, mut local) = (Vec::new(), Vec::new());
    // The recorded arrays are known without a server.
    let servers = context.servers.connect().unwrap_or_else(|failure| {
        context.output.warn(&format!("{}; the list has the remembered arrays only", failure.text()));
        Vec::new()
    });
    for mut server in servers {
        served.extend(server.list_wanted()?);
        if let ServerAnswer::Server(model) = server.ask(&Command::Hello)? {
            local.extend(model.alarms);
        }
    }
    // The alarm of an offline array is also one of its server.
    local.retain(|alarm: &AlarmModel| !served.iter().flat_map(|array| &array.alarms).any(|other| other.id == alarm.id));
    let mut remembered = context.registry.entries()?;
    remembered.retain(|entry| !served.iter().any(|array| is_same(array, entry)));
    let exit = served.iter().map(ArrayModel::exit).max().unwrap_or(Exit::Fine);
    let mut text = text(&served, &remembered);
    let open = served.iter().flat_map(|array| &array.alarms).chain(&local);
    let open = open.filter(|alarm| alarm.is_open() && alarm.what.level > Severity::Info).count();
    if open > 0 {
        let _ = write!(text, "{}; see `openraid alarms`", counted(open as u64, "open alarm", "open alarms"));
    }
    if served.is_empty() && remembered.is_empty() {
        let _ = write!(text, "no arrays; make one with `openraid create`, or find some with `openraid scan`");
    }
    Ok(context.output.answer(exit, &ListBody { served, remembered }, &text))
}

/// Raw drives of one name are served as several exports.
fn is_same(array: &ArrayModel, entry: &RegisteredArray) -> bool {
    match &array.uuid {
        Some(uuid) => entry.uuid.as_ref() == Some(uuid),
        None => array.members.iter().any(|m| m.member.as_ref().is_some_and(|member| entry.members.contains(member))),
    }
}

/// The note on an array whose journal should acknowledge its writes but does not; `openraid show` gives the reason.
const NOT_PROTECTED: &str = "NOT PROTECTED by a journal";

/// One line for each array: first served arrays, then arrays that are only recorded.
pub(crate) fn text(served: &[ArrayModel], remembered: &[RegisteredArray]) -> String {
    if served.is_empty() && remembered.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&["ARRAY", "LEVEL", "SIZE", "STATE", "MEMBERS"]);
    for array in served {
        let task: Vec<String> = array.tasks().map(|(_, task)| task_line(task)).collect();
        let asks =
            array.consistency_policy == Some(PolicyWord::ControllerJournal) && array.health != HealthWord::Failed;
        let unprotected = asks && array.journal.as_ref().is_some_and(|journal| !journal.protected);
        let unsynced = (!array.is_synced()).then(|| unsynced_text(array).to_owned());
        let state = std::iter::once(health_text(array.health).to_owned())
            .chain(array.offline.clone())
            .chain(unsynced)
            .chain(mismatches_text(array))
            .chain(unprotected.then(|| NOT_PROTECTED.to_owned()))
            .chain(task);
        let is_offline = array.health == HealthWord::Offline;
        table.row([
            array.name.clone(),
            array.level.to_string(),
            if is_offline { "-".into() } else { human(Bytes(array.size_bytes)) },
            state.collect::<Vec<_>>().join("; "),
            if is_offline { array.slots.to_string() } else { array.attached().count().to_string() },
        ]);
    }
    for entry in remembered {
        let state = "offline".into();
        table.row([entry.name.clone(), entry.level.to_string(), "-".into(), state, entry.members.len().to_string()]);
    }
    table.text() + &drives_text(served, remembered, &|member| DeviceNames::of(Path::new(member)))
}

/// The drives of all arrays by the kernel's names for them. Files, memory and remote members have none.
fn drives_text(
    served: &[ArrayModel],
    remembered: &[RegisteredArray],
    names_of: &dyn Fn(&str) -> DeviceNames,
) -> String {
    let mut table = TextTable::new(&["ARRAY", "SLOT", "MEMBER", "STATE", "SERIAL", "MODEL", "BAY"]);
    let mut count = 0;
    let cell = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let mut add = |place: [String; 4], names: [&Option<String>; 3]| {
        if names.iter().any(|name| name.is_some()) {
            count += 1;
            table.row(place.into_iter().chain(names.map(cell)));
        }
    };
    for array in served {
        for member in array.sets().into_iter().flat_map(|set| &set.members) {
            let slot = member.slot.map_or_else(|| "-".into(), |slot| slot.to_string());
            let place = [array.name.clone(), slot, cell(&member.member), state_text(member)];
            add(place, [&member.serial, &member.model, &member.bay]);
        }
    }
    for entry in remembered {
        for member in &entry.members {
            let names = names_of(member);
            // The slot is in the member's metadata, which `list` does not read.
            let place = [entry.name.clone(), "-".into(), member.clone(), "offline".into()];
            add(place, [&names.serial, &names.model, &names.bay]);
        }
    }
    if count == 0 {
        return String::new();
    }
    format!("\n{}", table.text())
}

#[cfg(test)]
mod tests {
    use openraid_units::ArrayLevel;

    use super::*;

    #[test]
    fn drives_of_offline_arrays_have_their_serial_numbers() {
        let entry = RegisteredArray {
            name: "data".into(),
            uuid: None,
            level: ArrayLevel::Raid1.into(),
            members: vec!["/dev/sdb".into(), "/srv/file".into()],
            kept: crate::kept_settings::KeptSettings::default(),
        };
        let names = |member: &str| match member {
            "/dev/sdb" => DeviceNames { serial: Some("WD-1".into()), ..DeviceNames::default() },
            _ => DeviceNames::default(),
        };
        let text = drives_text(&[], std::slice::from_ref(&entry), &names);
        let rows: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows, [["data", "-", "/dev/sdb", "offline", "WD-1", "-", "-"]], "{text}");
        assert_eq!(drives_text(&[], &[entry], &|_| DeviceNames::default()), "");
    }
}
