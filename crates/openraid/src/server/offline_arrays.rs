//! Arrays that are wanted and not served: their state on every interface, their alarm, and the refusal of commands.

use openraid_status::shell_quoting::command;
use openraid_status::{EventName, NextStepModel};

use super::{Server, State};
use crate::alarms::Condition;
use crate::failure::Failure;
use crate::model::ArrayModel;
use crate::output::model_sentences::add_texts;
use crate::registry::RegisteredArray;

impl Server {
    /// The state of every array that is wanted and not served, with the alarms about it.
    pub(super) fn offline_arrays(&self) -> Vec<ArrayModel> {
        let mut models: Vec<ArrayModel> = {
            let state = self.state();
            state.missing().map(|entry| entry.model(&state)).collect()
        };
        if !models.is_empty() {
            for alarm in self.server_alarms() {
                let of_alarm = models.iter_mut().find(|model| alarm.what.array.as_ref() == Some(&model.name));
                of_alarm.into_iter().for_each(|model| model.alarms.push(alarm.clone()));
            }
        }
        models
    }
}

impl Server {
    /// The members of all recorded arrays, also of arrays that are not served.
    pub(super) fn recorded_members(&self) -> Vec<String> {
        self.registry.entries_if_readable().into_iter().flat_map(|entry| entry.members).collect()
    }
}

impl RegisteredArray {
    fn model(&self, state: &State) -> ArrayModel {
        let slots = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let (name, uuid, level) = (self.name.clone(), self.uuid.clone(), self.level.clone());
        let mut model = ArrayModel::offline(name, uuid, level, slots, self.reason(state));
        add_texts(&mut model);
        let doctor = command("doctor", [&self.name]);
        model.next_step =
            Some(NextStepModel { text: "Find out why it does not start".into(), command: doctor, drive: None });
        model
    }

    fn reason(&self, state: &State) -> String {
        let unknown = || format!("it was not started; `{}` says why", command("doctor", [&self.name]));
        state.troubles.reason(self).unwrap_or_else(unknown)
    }

    /// The answer to a command about it.
    pub(super) fn refusal(&self, state: &State) -> Failure {
        let (doctor, reason) = (command("doctor", [&self.name]), self.reason(state));
        Failure::refused(format!("{} is OFFLINE: {reason}; see `{doctor}`", self.name))
    }
}

/// The alarm of an array that is wanted and not served.
pub(super) fn condition(entry: &RegisteredArray, state: &State) -> Condition {
    let name = &entry.name;
    Condition {
        array: Some(name.clone()),
        uuid: entry.uuid.clone(),
        next_step: Some(command("doctor", [name])),
        ..Condition::of_server(
            EventName::DeviceDisappeared,
            format!("{name}: the array is not there: {}", entry.reason(state)),
        )
    }
}
