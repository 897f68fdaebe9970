//! The texts in an array's model, for interfaces that show a state to people and have no words of their own: the console.

use openraid_status::alarm::DriveStep;
use openraid_status::{AccessWord, NextStepModel};

use super::array::{access_text, protection_text, state_line, state_text, survives, task_line};
use super::checks::last_check;
use crate::model::{ArrayModel, StateWord};

/// Puts all texts of the state into the model. Everything else in it must be there already.
pub fn add_texts(array: &mut ArrayModel) {
    for span in &mut array.spans {
        add_texts(span);
    }
    array.sentence = sentence(array);
    array.next_step = next_step(array);
    if let Some(task) = &mut array.task {
        task.text = task_line(task);
    }
    for member in &mut array.members {
        member.text = state_text(member);
    }
    if let Some(journal) = &mut array.journal {
        journal.text = protection_text(journal);
    }
    let checks = [&array.last_check, &array.last_complete_check].into_iter().flatten();
    array.check_text = checks.flat_map(|check| last_check(check, array)).collect();
}

/// State, losses that it survives, missing protection, access. Figures that change by themselves are not in it.
fn sentence(array: &ArrayModel) -> String {
    let mut text = format!("{} is {}.", array.name, state_line(array));
    if array.is_usable() {
        text.push_str(&format!(" It survives {}.", survives(array)));
    }
    if let Some(journal) = array.journal.as_ref().filter(|journal| !journal.protected) {
        text.push_str(&format!(" The journal: {}.", protection_text(journal)));
    }
    if !matches!(array.access, AccessWord::Unknown | AccessWord::ReadWrite) {
        text.push_str(&format!(" Its access is {}.", access_text(array.access)));
    }
    text
}

/// The step that the most severe open alarm asks for, by a command; for a member, with its name.
fn next_step(array: &ArrayModel) -> Option<NextStepModel> {
    let alarm = array.alarms.iter().find(|alarm| alarm.is_open() && alarm.what.next_step.is_some())?;
    let command = alarm.what.next_step.clone()?;
    let mut members = array.sets().into_iter().flat_map(|set| &set.members);
    let gone = members.find(|member| {
        let number = member.drive.map(DriveStep::Remove);
        matches!(member.state, StateWord::Faulty | StateWord::Replaced)
            && number.is_some_and(|remove| alarm.what.drive_step == Some(remove))
    });
    let text = match gone.and_then(|member| member.member.as_deref()) {
        Some(name) => format!("Remove {name}"),
        None if alarm.what.drive_step == Some(DriveStep::Add) => "Add a drive".into(),
        None => alarm.what.text.clone(),
    };
    Some(NextStepModel { text, command, drive: gone.and_then(|member| member.drive) })
}
