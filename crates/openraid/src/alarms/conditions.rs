//! The conditions of an array: a pure function of the model that `show` prints.

use crate::events::Severity;
use crate::model::{ArrayModel, HealthWord, JournalModel, JournalWord, MemberModel, PolicyWord, StateWord, TaskWord};
use crate::output::array::{is_volatile, mismatches_text, state_line, VOLATILE};
use crate::output::checks::odd_member;
use crate::quantity::counted;
use openraid_core::reason::FailReason;
use openraid_status::alarm::{Condition, DriveStep};
use openraid_status::shell_quoting::{command, command_with};
use openraid_status::EventName;

/// All states of an array that need attention.
pub fn of_array(array: &ArrayModel) -> Vec<Condition> {
    let mut found = Vec::new();
    let name = &array.name;
    let of = |event: EventName, text: String| Condition {
        array: Some(name.clone()),
        uuid: array.uuid.clone(),
        ..Condition::of_server(event, format!("{name}: {text}"))
    };
    let with = |next: String, condition: Condition| Condition { next_step: Some(next), ..condition };
    found.extend(health(array, &of));
    if let Some(forced) = &array.forced {
        let text = format!("started by force: {}", forced.trim_end_matches([';', ' ']));
        let condition = Condition { until_acknowledged: true, ..of(EventName::ForcedStart, text) };
        let next = command("alarms acknowledge", [condition.id()]);
        found.push(with(next, condition));
    }
    found.extend(volatile(array, &of));
    found.extend(refused(array, &of));
    found.extend(admitted(array, &of));
    if let Some(mut text) = mismatches_text(array) {
        array.sets().into_iter().filter_map(odd_member).for_each(|odd| text.push_str(&format!("; {odd}")));
        let next = command("repair", [name]);
        found.push(with(next, of(EventName::MismatchesFound, text)));
    }
    if let Some(reason) = array.journal.as_ref().and_then(|journal| journal.reason.as_ref()) {
        if array.consistency_policy == Some(PolicyWord::ControllerJournal) && array.health != HealthWord::Failed {
            let text = format!("its writes are not protected by a journal: {reason}");
            found.push(with("openraid journal show".into(), of(EventName::NotProtected, text)));
        }
    }
    for (span, set) in array.sets().into_iter().enumerate() {
        let span = (!array.spans.is_empty()).then_some(span);
        let place = span.map_or_else(String::new, |span| format!("span {span}, "));
        found.extend(set.members.iter().filter_map(|member| {
            let of = |event: EventName, text: String| {
                let text = format!("{place}{text}");
                Condition {
                    span,
                    slot: member.slot.or(member.left_slot),
                    member: member.member.clone(),
                    ..of(event, text)
                }
            };
            failed(array, member, &of)
        }));
        found.extend(bad_ranges(set, &place, &of).into_iter().map(|condition| Condition { span, ..condition }));
        found.extend(set.members.iter().filter_map(|member| {
            let condition = of(EventName::NoRoom, format!("{place}{}", member.full.as_ref()?));
            Some(Condition { span, slot: member.slot, member: member.member.clone(), ..condition })
        }));
        found.extend(set.task.as_ref().and_then(|task| {
            let event = match task.kind {
                TaskWord::Rebuild | TaskWord::Replace => EventName::RebuildStarted,
                TaskWord::Resync => EventName::ResyncStarted,
                TaskWord::Reshape if task.paused => EventName::ReshapePaused,
                TaskWord::Reshape => EventName::ReshapeBegun,
                TaskWord::Check | TaskWord::Repair => return None,
            };
            let paused = if task.paused { " is paused" } else { " runs" };
            let condition = of(event, format!("{place}{}{paused}", task.kind.text()));
            let next = if event == EventName::ReshapePaused {
                command("resume", [name])
            } else {
                command_with("show", [name], "--follow")
            };
            Some(Condition { span, ..with(next, condition) })
        }));
    }
    found
}

/// Writes are acknowledged from memory.
fn volatile(array: &ArrayModel, of: &dyn Fn(EventName, String) -> Condition) -> Option<Condition> {
    let condition = is_volatile(array).then(|| of(EventName::CacheVolatile, format!("write cache {VOLATILE}")))?;
    Some(Condition { next_step: Some(command("alarms acknowledge", [condition.id()])), ..condition })
}

/// Hosts are refused.
fn refused(array: &ArrayModel, of: &dyn Fn(EventName, String) -> Condition) -> Option<Condition> {
    let next_step = Some(command_with("serve", [&array.name], "--after-loss"));
    Some(Condition { next_step, ..of(EventName::HostsRefused, array.refused.clone()?) })
}

/// Hosts are served although writes may be lost.
fn admitted(array: &ArrayModel, of: &dyn Fn(EventName, String) -> Condition) -> Option<Condition> {
    let condition = Condition { until_acknowledged: true, ..of(EventName::HostsAdmitted, array.admitted.clone()?) };
    Some(Condition { next_step: Some(command("alarms acknowledge", [condition.id()])), ..condition })
}

/// Members with bad ranges. Rows that one member lacks are read from the others.
fn bad_ranges(set: &ArrayModel, place: &str, of: &dyn Fn(EventName, String) -> Condition) -> Vec<Condition> {
    let has_bad = |member: &&MemberModel| member.bad_ranges > 0;
    let bad_slots = set.members.iter().filter(has_bad).filter(|member| member.slot.is_some()).count();
    let others_have = set.health == HealthWord::Optimal && bad_slots == 1;
    let then = if others_have {
        "the other members are read there, and it is written again when that is possible"
    } else {
        "reads there fail until the blocks are written again"
    };
    let conditions = set.members.iter().filter(has_bad).map(|member| {
        let drive = member.member.as_deref().unwrap_or("a member");
        let ranges = counted(member.bad_ranges.into(), "bad range is", "bad ranges are");
        let condition = of(EventName::SectorLost, format!("{place}{ranges} recorded on {drive}: {then}"));
        let level = if others_have { Severity::Warning } else { condition.level };
        Condition { slot: member.slot, member: member.member.clone(), level, ..condition }
    });
    conditions.collect()
}

fn health(array: &ArrayModel, of: &dyn Fn(EventName, String) -> Condition) -> Option<Condition> {
    let name = &array.name;
    match array.health {
        // The alarm of an array that is not served is the server's.
        HealthWord::Optimal | HealthWord::Offline => None,
        HealthWord::Failed => {
            let text = "FAILED: its data cannot be read".into();
            let next = command("doctor", [name]);
            Some(Condition { next_step: Some(next), ..of(EventName::FailedArray, text) })
        }
        HealthWord::Degraded => {
            let level = Severity::of_degraded(array.survives);
            let is_filled = array.tasks().any(|(_, task)| matches!(task.kind, TaskWord::Rebuild));
            let (next, drive_step) = if is_filled {
                (command_with("show", [name], "--follow"), None)
            } else {
                (command("add", [name, "DRIVE"]), Some(DriveStep::Add))
            };
            let mut text = state_line(array);
            if array.survives == 0 {
                text.push_str("; the loss of one more member loses data");
            }
            Some(Condition { next_step: Some(next), drive_step, level, ..of(EventName::DegradedArray, text) })
        }
    }
}

fn failed(array: &ArrayModel, member: &MemberModel, of: &dyn Fn(EventName, String) -> Condition) -> Option<Condition> {
    if !matches!(member.state, StateWord::Faulty | StateWord::Failing) {
        return None;
    }
    let drive = member.member.as_deref().unwrap_or("a drive");
    let (event, place) = match member.slot.or(member.left_slot) {
        Some(slot) => (EventName::Fail, format!("slot {slot} ({drive})")),
        None => (EventName::FailSpare, format!("the spare {drive}")),
    };
    // The event's level, until a spare has taken its slot.
    let level = if array.health == HealthWord::Optimal { Severity::Warning } else { event.level() };
    let reason = member.reason.as_deref().unwrap_or("the reason is not known");
    // All that is left of a failed array is needed: `doctor` looks at it.
    let is_gone = member.failed == Some(FailReason::Gone);
    let (next, drive_step) = match (array.health, member.drive) {
        (HealthWord::Failed, _) => (Some(command("doctor", [&array.name])), None),
        // It comes back by itself when it is connected again. A drive that was removed by a command stays out.
        _ if is_gone => (Some(command("show", [&array.name])), None),
        (_, Some(number)) => {
            (Some(command("remove", [&array.name, &format!("drive:{number}")])), Some(DriveStep::Remove(number)))
        }
        (_, None) => (None, None),
    };
    let remedy = if is_gone { "; connect it again, or add another drive" } else { "" };
    Some(Condition { next_step: next, drive_step, level, ..of(event, format!("{place} failed: {reason}{remedy}")) })
}

/// Faults of a server's journal.
pub fn of_journal(journal: &JournalModel) -> Vec<Condition> {
    let why = journal.trouble.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let of = |event, text: String| Condition {
        next_step: Some("openraid journal show".into()),
        ..Condition::of_server(event, text)
    };
    match journal.state {
        JournalWord::Lost => {
            let text =
                format!("no device of the journal works: writes are acknowledged when they are on the members{why}");
            vec![of(EventName::JournalLost, text)]
        }
        JournalWord::Full => {
            let text = "the journal is full of entries that their array cannot take".into();
            vec![of(EventName::JournalFull, text)]
        }
        _ => {
            let away = journal.devices.iter().filter(|device| !device.works);
            let of_device = |device: &crate::model::JournalDeviceModel| Condition {
                member: Some(device.device.clone()),
                next_step: Some("openraid journal attach DEVICE".into()),
                ..of(
                    EventName::JournalDegraded,
                    format!(
                        "the journal device {} does not work; the other one carries the journal alone{why}",
                        device.device
                    ),
                )
            };
            away.map(of_device).collect()
        }
    }
}
