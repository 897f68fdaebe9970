//! Arrays started on trial: by the engine itself, with all writes kept in memory, so that nothing reaches a member.

use openraid_core::admin::AdminCommand;
use openraid_core::array::assemble::AssembleOptions;
use openraid_format::Uuid;
use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_runtime::service::{AssembleRequest, Nesting, Service, StartError, Started};
use openraid_runtime::{ServiceConfig, ServiceHandle};

use crate::failure::{ArrayLabel, Exit, Failure};
use crate::members::in_memory;
use crate::on_disk::sets;
use crate::server::array_model::ServedArray;
use crate::service_exit::Cause;

/// Arrays that run in memory.
#[derive(Debug)]
pub struct ReadTrial {
    service: Service,
    /// The result of the members.
    pub started: Started,
    /// Why some of them make nothing, with their names.
    why: Vec<Failure>,
}

impl ReadTrial {
    /// Start what these members make. Background work is held: it would only fill memory.
    ///
    /// # Errors
    /// There is no room for the engine.
    pub fn start(members: Vec<(OpenedMember, ProbedMember)>, force: bool, nesting: Nesting) -> Result<Self, Failure> {
        Self::start_as(members, AssembleOptions { force, ..AssembleOptions::default() }, nesting)
    }

    /// The same by other rules.
    ///
    /// # Errors
    /// There is no room for the engine.
    pub fn start_as(
        members: Vec<(OpenedMember, ProbedMember)>,
        options: AssembleOptions,
        nesting: Nesting,
    ) -> Result<Self, Failure> {
        let why = reasons(&members, options);
        let service = quiet_service()?;
        let overlaid = members.into_iter().map(in_memory);
        let request = AssembleRequest { options, nesting };
        let started = service.handle().assemble(overlaid.collect(), request)?;
        let trial = Self { service, started, why };
        for served in trial.served() {
            for set in served.sets() {
                trial.handle().admin(AdminCommand::Pause { array: set })?;
            }
        }
        Ok(trial)
    }

    /// A way to ask the engine.
    pub fn handle(&self) -> ServiceHandle {
        self.service.handle()
    }

    /// The arrays, as a server would have them.
    pub fn served(&self) -> Vec<ServedArray> {
        self.started.arrays.iter().map(|array| ServedArray::of(array.clone())).collect()
    }

    /// The one array.
    ///
    /// # Errors
    /// There is none, or there are several; the text says why.
    pub fn only(&self) -> Result<ServedArray, Failure> {
        let mut arrays = self.served();
        match (arrays.pop(), arrays.is_empty()) {
            (Some(array), true) => Ok(array),
            (Some(_), false) => {
                Err(Failure::refused("these members make several arrays; name the members of one, or the array itself"))
            }
            (None, _) => Err(self.why_nothing()),
        }
    }

    /// Why arrays do not start although their members make one, one by one.
    pub fn refused(&self) -> Vec<Failure> {
        self.started.failed.iter().filter_map(|failed| not_started(failed, &[])).collect()
    }

    /// Why there is no array.
    pub fn why_nothing(&self) -> Failure {
        let failures: Vec<Failure> = self.why.iter().cloned().chain(self.refused()).collect();
        if failures.is_empty() {
            return Failure::refused(
                "these members make no array; `openraid doctor MEMBER...` says what each of them is",
            );
        }
        Failure::joined(&failures, Exit::Refused)
    }
}

/// Why these members make no array, one for each array and each member that belongs to none.
pub fn reasons(members: &[(OpenedMember, ProbedMember)], options: AssembleOptions) -> Vec<Failure> {
    let probed: Vec<ProbedMember> = members.iter().map(|(_, probed)| probed.clone()).collect();
    let (plans, strangers) = sets::plan_as(&probed, options);
    let name = |drive: openraid_units::DriveId| probed[drive.index()].spec.text.clone();
    let failed = plans.iter().filter_map(|set| {
        let error = set.plan.as_ref().err()?;
        Some(sets::assemble_error(error, &name).of_array(set.label(&probed)))
    });
    let strangers = strangers.iter().map(|place| sets::no_member(&probed[*place]).of_member(&probed[*place].spec.text));
    failed.chain(strangers).collect()
}

/// Why a start failed, unless it is among the [`reasons`], which name the members.
pub fn not_started(
    (uuid, name, error): &(Option<Uuid>, String, StartError),
    members: &[ProbedMember],
) -> Option<Failure> {
    let failure = match error {
        StartError::Assemble(_) | StartError::NotAMember(..) => return None,
        StartError::SpansMissing { .. } => {
            Failure::new(error.exit(), error).remedy("if its spans are independent arrays, use --flat")
        }
        _ => Failure::from(error.clone()),
    };
    let is_of = |member: &&ProbedMember| member.look.superblock.as_ref().map(|superblock| superblock.set_uuid) == *uuid;
    let members = members.iter().filter(is_of).map(|member| member.spec.text.clone()).collect();
    Some(failure.of_array(ArrayLabel { members, ..ArrayLabel::new(name, *uuid) }))
}

/// A service without clients.
///
/// # Errors
/// There is no room for it.
pub fn quiet_service() -> Result<Service, Failure> {
    Service::start(ServiceConfig::default()).map_err(Failure::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_disk::hostile::{hostile_sets, member};
    use openraid_runtime::member::{open, OpenOptions};
    use openraid_sys::Use;

    #[test]
    fn superblocks_that_decode_never_break_the_engine_whatever_they_say() {
        let (mut tried, mut readable) = (0, 0);
        let each = if std::env::var_os("OPENRAID_SOAK").is_some() { 3000 } else { 30 };
        hostile_sets(each, |superblocks| {
            let members = superblocks.into_iter().map(|superblock| {
                let probed = member("ram:64M", superblock);
                let opened = open(&probed.spec, OpenOptions::new(Use::Exclusive)).expect("memory opens");
                (opened, probed)
            });
            let trial =
                ReadTrial::start(members.collect(), tried % 2 == 0, Nesting::Follow).expect("the engine starts");
            for array in trial.served() {
                let status = trial.handle().status().expect("it runs");
                assert!(crate::server::array_model::model(&status, &array, &Default::default()).is_some());
                let mut bytes = vec![0; 256 << 10];
                readable += usize::from(trial.handle().read(array.array, 0, &mut bytes).is_ok());
            }
            tried += 1;
        });
        assert!(readable * 3 > tried, "of {tried} only {readable} could be read");
    }
}
