//! Start of service for arrays.

use openraid_core::admin::{AdminCommand, AdminOutcome};
use openraid_core::array::assemble::AssembleOptions;
use openraid_format::Uuid;
use openraid_runtime::member::{MemberSpec, OpenOptions, OpenedMember, ProbedMember};
use openraid_runtime::service::{AssembleRequest, Nesting, StartedArray};
use openraid_units::ArrayId;

use super::array_model::ServedArray;
use super::{recovery_line, Server, ServerAccess};
use crate::events::plain;
use crate::failure::Failure;
use crate::in_process::trial;
use crate::kept_settings::KeptSettings;
use crate::members::array_locks::{self, OpenForStart};
use crate::members::taken_by_md;
use crate::model::StateWord;
use crate::on_disk::sets;
use crate::on_disk::split_brain::SplitBrain;
use crate::output;
use crate::output::verdicts::{left_out, LeftOut};
use crate::registry::{distinct_name, RegisteredArray};
use openraid_status::EventName;

/// The result for some members.
#[derive(Debug, Default)]
pub struct StartReport {
    /// Names of the arrays that are served now.
    pub served: Vec<String>,
    /// Arrays that were not started and why, and deviations from the desired state, one a line.
    pub failed: Vec<Failure>,
    /// The recoveries of arrays that were not clean, one a line.
    pub recovered: Vec<String>,
    /// Members that are missing in started arrays: stale ones, copies, the other half of a split array.
    pub left_out: Vec<LeftOut>,
    /// Members that were named and could not be opened.
    pub unopened: Vec<String>,
}

/// The members without those of arrays of which both halves are there, and why those arrays are not started.
fn without_split(
    mut members: Vec<(OpenedMember, ProbedMember)>,
    force: bool,
    chosen_by: &str,
) -> (Vec<(OpenedMember, ProbedMember)>, Vec<Failure>) {
    let probed: Vec<ProbedMember> = members.iter().map(|(_, probed)| probed.clone()).collect();
    let mut failures = Vec::new();
    for set in sets::plan(&probed, force).0 {
        let Some(halves) = SplitBrain::of(&set, &probed) else { continue };
        failures.push(halves.refusal(chosen_by).of_array(set.label(&probed)));
        members.retain(|(_, probed)| {
            probed.look.superblock.as_ref().is_none_or(|superblock| superblock.set_uuid != set.uuid)
        });
    }
    (members, failures)
}

/// Options for the start of arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StartOptions {
    /// Use stale members, and start dirty, degraded arrays.
    pub force: bool,
    /// Start without the journal that holds acknowledged writes.
    pub journal_lost: bool,
    /// Look for stripes over arrays.
    pub nesting: Nesting,
    /// Should the journal protect the writes? `None`: as before.
    pub journalled: Option<bool>,
    /// The verb with which the half of a split array is chosen.
    pub chosen_by: &'static str,
    /// The map of a RAID 0 whose superblocks do not say it.
    pub layout: Option<u32>,
    /// Serve hosts although acknowledged writes may be lost.
    pub after_loss: bool,
}

impl Server {
    /// Lock the arrays of these members, and open the members. A server that may write first ends arrays of the kernel's md that
    /// have them, if md has changed nothing.
    pub fn open_for_start(&self, specs: &[MemberSpec], open: OpenOptions) -> OpenForStart {
        if self.access == ServerAccess::ReadWrite && self.stays {
            let is_known = |uuid: Uuid| {
                let uuid = Some(uuid.to_string());
                self.registry.entries_if_readable().iter().any(|entry| entry.uuid == uuid)
            };
            let taken = taken_by_md::take_back(specs, is_known);
            self.add_news(taken.into_iter().map(|text| plain(EventName::Recovered, text)).collect());
        }
        array_locks::open_for_start(specs, open, &mut self.locks(), &self.registry)
    }

    /// Release the locks of arrays that are not served.
    fn release_locks(&self) {
        let state = self.state();
        self.locks().keep_only(state.arrays.iter().filter_map(|served| served.started.as_ref()));
    }

    /// Start and serve every array of these members.
    ///
    /// # Errors
    /// The service has ended.
    pub fn take(&self, members: Vec<(OpenedMember, ProbedMember)>, how: StartOptions) -> Result<StartReport, Failure> {
        let StartOptions { force, journal_lost, nesting, journalled, chosen_by, layout, after_loss } = how;
        let options = AssembleOptions { force, journal_lost, reads_only: false };
        let (mut members, split) = without_split(members, force, chosen_by);
        if let Some(layout) = layout {
            members.iter_mut().for_each(|(_, probed)| sets::say_layout(probed, layout));
        }
        let mut failed = trial::reasons(&members, options);
        failed.extend(split);
        let journal = self.status()?.journal;
        let probed: Vec<ProbedMember> = members.iter().map(|(_, probed)| probed.clone()).collect();
        let (plans, _) = sets::plan(&probed, force);
        // Arrays that are not clean get a line each.
        let recovered = plans.iter().filter_map(|set| recovery_line::line(set, journal.as_ref())).collect();
        let left_out = plans.iter().flat_map(|set| left_out(set, &probed)).collect();
        let request = AssembleRequest { options, nesting };
        let started = self.handle.assemble(members, request)?;
        failed.extend(started.failed.iter().filter_map(|failed| trial::not_started(failed, &probed)));
        let mut served = Vec::new();
        for array in started.arrays {
            self.hold_background(&array)?;
            match self.serve_journalled(array, journalled, after_loss) {
                Ok((name, notes)) => {
                    served.push(name);
                    failed.extend(notes);
                }
                Err(failure) => failed.push(failure),
            }
        }
        self.release_locks();
        Ok(StartReport { served, failed, recovered, left_out, unopened: Vec::new() })
    }

    /// If no member is written, a rebuild or a resync would only fill memory.
    fn hold_background(&self, started: &StartedArray) -> Result<(), Failure> {
        if self.access != ServerAccess::Untouched {
            return Ok(());
        }
        for set in ServedArray::of(started.clone()).sets() {
            self.handle.admin(AdminCommand::Pause { array: set })?;
        }
        Ok(())
    }

    /// Serve an array that was started.
    ///
    /// # Errors
    /// It cannot be exported; it is stopped again.
    pub fn serve_started(&self, started: StartedArray) -> Result<String, Failure> {
        self.serve_journalled(started, None, false).map(|(name, _)| name)
    }

    /// The same with choices for the journal and for lost writes, as in [`StartOptions`]. Returns the name and notes about its settings.
    ///
    /// # Errors
    /// As [`Server::serve_started`].
    pub fn serve_journalled(
        &self,
        started: StartedArray,
        journalled: Option<bool>,
        after_loss: bool,
    ) -> Result<(String, Vec<Failure>), Failure> {
        let locked = self.locks().take_started(&started);
        if let Err(failure) = locked {
            self.handle.stop_and_release(&started)?;
            return Err(failure);
        }
        let mut served = ServedArray::of(started.clone());
        if self.state().arrays.iter().any(|other| other.name == served.name) || served.name.is_empty() {
            served.name = distinct_name(&served.name, &started.superblock.set_uuid.to_string());
        }
        let name = served.name.clone();
        let (array, label) = (served.array, served.label());
        // The array has its name before any event about it, and its settings before hosts connect.
        self.put(served);
        self.look_for_loss(&name, after_loss);
        let mut notes = self.begin_array(&name, journalled);
        match self.open_exports(&name) {
            Ok(more) => notes.extend(more.into_iter().map(|failure| failure.of_settings(label.clone()))),
            Err(failure) => {
                self.state().arrays.retain(|other| other.array != array);
                self.handle.stop_and_release(&started)?;
                return Err(failure);
            }
        }
        Ok((name, notes))
    }

    /// Serve a drive as it is. `after_loss`: as in [`StartOptions`].
    ///
    /// # Errors
    /// It cannot be attached or exported.
    pub fn take_raw(&self, name: &str, member: OpenedMember, after_loss: bool) -> Result<(), Failure> {
        let drive = self.handle.attach(member)?;
        let started = self.handle.admin(AdminCommand::StartPassthrough { drive }).map_err(Failure::from);
        let result = started.and_then(|outcome| match outcome {
            AdminOutcome::Started(array) => {
                self.put(ServedArray::raw(name, array));
                self.look_for_loss(name, after_loss);
                let notes = self.begin_array(name, None);
                let opened = self.open_exports(name);
                if opened.is_err() {
                    self.state().arrays.retain(|other| other.array != array);
                }
                Ok([notes, opened?].concat())
            }
            AdminOutcome::Done => Err(Failure::failed("the engine started nothing")),
        });
        match result {
            Ok(notes) => {
                notes.iter().for_each(|note| output::warn(&note.text()));
                Ok(())
            }
            Err(failure) => {
                self.handle.detach(drive)?;
                Err(failure)
            }
        }
    }

    fn put(&self, served: ServedArray) {
        let mut state = self.state();
        state.emptied = false;
        state.arrays.push(served);
        state.arrays.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Stop an array and end its service.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn stop(&self, name: &str) -> Result<(), Failure> {
        let served = self.release_array(name)?;
        {
            let mut state = self.state();
            state.emptied = state.arrays.is_empty();
        }
        self.end_alarms(&served);
        Ok(())
    }

    /// Stop an array and release its members. It is still wanted, and its alarms hold.
    pub(super) fn release_array(&self, name: &str) -> Result<ServedArray, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let stopped = match &served.started {
            Some(started) => self.handle.stop_and_release(started).map_err(Failure::from),
            None => self.stop_raw(served.array),
        };
        stopped.map_err(|failure| failure.of(name))?;
        for failure in self.restore_drive_caches(&status, &served) {
            output::warn(&failure);
        }
        let marking = self.marking();
        self.end_mark(&status, name);
        self.state().arrays.retain(|other| other.name != name);
        drop(marking);
        self.release_locks();
        Ok(served)
    }

    /// An array that was released could not be started again: it is offline, for this reason.
    pub(super) fn give_up(&self, served: &ServedArray, why: Failure) {
        let mut state = self.state();
        state.emptied = state.arrays.is_empty();
        state.troubles.not_started(served.label(), why);
        drop(state);
        self.end_states(served);
    }

    fn stop_raw(&self, array: ArrayId) -> Result<(), Failure> {
        let status = self.status()?;
        self.handle.stop_array(array)?;
        let view = status.arrays.iter().find(|view| view.status.array == array);
        for member in view.iter().flat_map(|view| &view.status.members) {
            if let Some(drive) = member.drive {
                self.handle.detach(drive)?;
            }
        }
        Ok(())
    }

    /// Update the registry with the present members of an array.
    ///
    /// # Errors
    /// The registry cannot be written.
    pub fn remember(&self, name: &str) -> Result<(), Failure> {
        let array = self.array(name)?;
        let members: Vec<String> = array
            .sets()
            .iter()
            .flat_map(|set| &set.members)
            .filter(|member| !matches!(member.state, StateWord::Faulty | StateWord::Failing | StateWord::Replaced))
            .filter_map(|member| member.member.clone())
            .collect();
        let specs = members.iter().filter_map(|member| member.parse().ok());
        if specs.into_iter().any(|spec| crate::members::is_memory(&spec)) {
            return Ok(());
        }
        let kept = KeptSettings::default();
        self.registry.remember(RegisteredArray {
            name: name.into(),
            uuid: array.uuid,
            level: array.level,
            members,
            kept,
        })
    }
}
