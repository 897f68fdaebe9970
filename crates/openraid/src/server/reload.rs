//! A reload of the configuration file: changes that no client notices are applied, the others are listed. Certificates and keys are
//! read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use openraid_config::{ArrayId, DesiredArray, DesiredSchedule, DesiredSink, DesiredSpare, DesiredState};

use super::array_model::ServedArray;
use super::desired::{allowed_hosts, ArrayPlan, InForce};
use super::joining_members::set_status;
use super::Server;
use crate::control::ServerAnswer;
use crate::desired::model::ReloadModel;
use crate::events::plain;
use crate::failure::Failure;
use openraid_status::EventName;

impl Server {
    /// Read the file again. A file with a problem changes nothing.
    pub(super) fn reload(&self) -> Result<ServerAnswer, Failure> {
        let done = self.reload_file();
        self.add_news(vec![match &done {
            Ok(model) => plain(EventName::ConfigurationRead, model.text()),
            Err(failure) => plain(EventName::ConfigurationRefused, failure.text()),
        }]);
        done.map(|model| ServerAnswer::Reloaded(Box::new(model)))
    }

    fn reload_file(&self) -> Result<ReloadModel, Failure> {
        let before = self.in_force().ok_or_else(|| {
            Failure::refused("this server has no configuration file; start it with `openraid serve --config FILE`")
        })?;
        self.notifier.reloading();
        let done = self.reload_from(&before);
        self.note_configuration(done.as_ref().err().map(|failure| failure.text()));
        self.notifier.ready(&self.summary());
        done
    }

    fn reload_from(&self, before: &InForce) -> Result<ReloadModel, Failure> {
        let desired = crate::desired::api_values::merged(crate::desired::load(&before.path)?, &self.registry);
        let notes = desired.notes.iter().map(ToString::to_string).collect();
        let mut model = ReloadModel { path: before.path.display().to_string(), notes, ..ReloadModel::default() };
        let keys = before.desired.server.changed_keys(&desired.server);
        model.restart.extend(keys.into_iter().map(|key| format!("server.{key}")));
        let keys = before.desired.management.changed_keys(&desired.management);
        model.restart.extend(keys.into_iter().map(str::to_owned));
        let certificates = self.fresh_certificates(&before.desired, &desired, &mut model.restart)?;
        model.applied.extend(self.put_certificates(certificates));
        let now = Arc::new(InForce { path: before.path.clone(), desired });
        self.state().in_force = Some(Arc::clone(&now));
        let all: Vec<ServedArray> = self.state().arrays.clone();
        for served in all {
            let (old, new) = (before.desired_for(&served), now.desired_for(&served));
            let hosts = allowed_hosts(new);
            if hosts != allowed_hosts(old) {
                self.handle.set_hosts(served.array, hosts)?;
                model.applied.push(format!("{}: hosts changed; others are disconnected", served.name));
            }
            if new.is_some() || old.is_some() {
                self.follow_file(&served, new, &mut model)?;
            } else {
                self.follow_exports(&served.name, None, &mut model)?;
            }
        }
        model.applied.extend(tables(&before.desired, &now.desired));
        self.take_new(before, &now, &mut model);
        model.notes.extend(self.take_own_spares());
        model.notes.extend(self.follow_sinks());
        Ok(model)
    }

    /// Apply the file's present values to an array.
    fn follow_file(
        &self,
        served: &ServedArray,
        desired: Option<&DesiredArray>,
        model: &mut ReloadModel,
    ) -> Result<(), Failure> {
        let name = &served.name;
        let status = self.status()?;
        let before = set_status(&status, served.sets()[0])?.policy;
        let ArrayPlan { plan, notes, .. } = self.plan_of(&status, served, None);
        let notes = notes.into_iter().chain(self.carry_out_plan(&status, served, &plan));
        model.notes.extend(notes.map(|note| format!("{name}: {note}")));
        model.applied.extend(before.changes_to(&plan.policy).map(|change| format!("{name}: {change}")));
        self.change_served(name, |served| {
            served.profile.clone_from(&plan.profile);
            served.readd = plan.readd;
        });
        if plan.access != served.access {
            self.set_access(name, plan.access)?;
            model.applied.push(format!("{name}: access {} -> {}", served.access.word(), plan.access.word()));
        }
        self.follow_exports(name, desired, model)
    }

    /// Open new exports. A removed export accepts no new clients; its connected clients stay.
    fn follow_exports(
        &self,
        name: &str,
        desired: Option<&DesiredArray>,
        model: &mut ReloadModel,
    ) -> Result<(), Failure> {
        let served = self.find(name)?;
        let wanted = self.wanted_exports(&served, desired);
        for export in wanted.iter().filter(|export| !served.exports.contains(export)) {
            if served.access != openraid_config::Access::Blocked {
                match self.open_export(&served, export) {
                    Ok(()) => model.applied.push(format!("{name}: export {export} added")),
                    Err(failure) => {
                        model.notes.push(failure.text());
                        continue;
                    }
                }
            }
            self.change_served(name, |served| served.exports.push(export.clone()));
        }
        for export in served.exports.iter().filter(|export| !wanted.contains(export)) {
            self.handle.retract(export)?;
            self.change_served(name, |served| served.exports.retain(|known| known != export));
            let clients = if self.find(name)?.access == openraid_config::Access::Blocked {
                "its clients are disconnected"
            } else {
                "its clients stay until they disconnect"
            };
            model.applied.push(format!("{name}: export {export} removed; {clients}"));
        }
        Ok(())
    }

    /// Kept values have changed: apply them. Returns the outcome, a sentence on each line.
    ///
    /// # Errors
    /// There is no configuration file, or it cannot be read any longer.
    pub(super) fn apply_kept(&self) -> Result<String, Failure> {
        let model = self.reload_file()?;
        let restart = model.restart.iter().map(|key| format!("{key} takes effect at the next start of the server"));
        let lines: Vec<String> =
            model.applied.iter().cloned().chain(restart).chain(model.notes.iter().cloned()).collect();
        Ok(if lines.is_empty() { "nothing has changed".into() } else { lines.join("\n") })
    }

    /// Start arrays that are new in the file.
    fn take_new(&self, before: &InForce, now: &InForce, model: &mut ReloadModel) {
        let served: Vec<ServedArray> = self.state().arrays.clone();
        for desired in &now.desired.arrays {
            let runs = served.iter().any(|served| now.desired_for(served).is_some_and(|array| array.id == desired.id));
            let is_new =
                !before.desired.arrays.iter().any(|array| array.id == desired.id && array.members == desired.members);
            if runs || !is_new {
                continue;
            }
            let members = self.members_of(desired);
            if members.is_empty() {
                model.notes.push(unknown(desired));
                continue;
            }
            match self.assemble(&members, false, false) {
                Ok(ServerAnswer::Done { text, .. }) => model.applied.push(text),
                Ok(_) => {}
                Err(failure) => model.notes.push(format!("{}: {}", desired.id, failure.text())),
            }
        }
    }

    fn members_of(&self, desired: &DesiredArray) -> Vec<String> {
        if !desired.members.is_empty() {
            return desired.members.clone();
        }
        let found = match &desired.id {
            ArrayId::Name(name) => self.registry.find(name),
            ArrayId::Uuid(uuid) => self.registry.known(Some(&uuid.to_string()), ""),
        };
        found.ok().flatten().map(|entry| entry.members).unwrap_or_default()
    }
}

/// Changes of the tables that are about no single array: sinks, schedules, spares, care.
fn tables(before: &DesiredState, now: &DesiredState) -> Vec<String> {
    let sinks = |all: &[DesiredSink]| {
        all.iter().map(|sink| (sink.name.clone(), DesiredSink { line: 0, ..sink.clone() })).collect()
    };
    let schedules = |all: &[DesiredSchedule]| {
        all.iter().map(|schedule| (schedule.name.clone(), DesiredSchedule { line: 0, ..schedule.clone() })).collect()
    };
    let spares = |all: &[DesiredSpare]| {
        all.iter().map(|spare| (spare.member.clone(), DesiredSpare { line: 0, ..spare.clone() })).collect()
    };
    let mut found = changes("sink", &sinks(&before.sinks), &sinks(&now.sinks));
    found.extend(changes("schedule", &schedules(&before.schedules), &schedules(&now.schedules)));
    found.extend(changes("spare", &spares(&before.spares), &spares(&now.spares)));
    if before.care != now.care {
        found.push("care changed".into());
    }
    found
}

/// Tables of one kind, by name.
fn changes<T: PartialEq>(what: &str, before: &BTreeMap<String, T>, now: &BTreeMap<String, T>) -> Vec<String> {
    let removed = before.keys().filter(|name| !now.contains_key(*name)).map(|name| format!("{what} {name} removed"));
    let others = now.iter().filter_map(|(name, entry)| match before.get(name) {
        None => Some(format!("{what} {name} added")),
        Some(old) if old != entry => Some(format!("{what} {name} changed")),
        Some(_) => None,
    });
    removed.chain(others).collect()
}

/// The note about an array with unknown members.
pub fn unknown(desired: &DesiredArray) -> String {
    format!(
        "line {}: array {} is not remembered, and the file names no members of it; write members = [\"...\"], or assemble it \
         with `openraid assemble`",
        desired.line, desired.id
    )
}
