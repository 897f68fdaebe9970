//! Assembly of arrays from members with superblocks: first the spans, then the stripes over them.
//!
//! The superblock of an outer stripe is data of its spans. It is read through a running span, by ordinary requests, so
//! a degraded span provides it as a healthy one does.

use openraid_core::admin::AdminCommand;
use openraid_core::array::assemble::{self, AssembleOptions, Candidate};
use openraid_core::array::membership::Membership;
use openraid_format::{DeviceRole, JournalArrayState, MdLevel, Superblock, Uuid};
use openraid_units::{ArrayId, DriveId, Sectors};

use super::{ServiceHandle, StartError};
use crate::member::{look, OpenedMember, ProbeError, ProbedMember};

/// Does assembly look for stripes over arrays?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Nesting {
    /// An array whose data begin with the superblock of a stripe is a span of it.
    #[default]
    Follow,
    /// Every array is independent.
    Ignore,
}

/// How to assemble.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AssembleRequest {
    /// How strict the assembly is.
    pub options: AssembleOptions,
    /// Whether stripes over arrays are looked for.
    pub nesting: Nesting,
}

/// An array that runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartedArray {
    pub array: ArrayId,
    /// Its superblock: of a nested array, the outer one.
    pub superblock: Superblock,
    /// Its spans, by role; none unless nested.
    pub spans: Vec<StartedArray>,
    /// The verdict on each given member.
    pub members: Vec<(DriveId, String, Membership)>,
    /// Possible losses of a forced start.
    pub forced: Option<String>,
}

/// The result of an assembly.
#[derive(Debug, Default)]
pub struct Started {
    /// Arrays that run, nested ones in place of their spans.
    pub arrays: Vec<StartedArray>,
    /// Arrays that do not run, by identity and name, and why.
    pub failed: Vec<(Option<Uuid>, String, StartError)>,
}

/// A member with its number in the service.
struct Attached {
    drive: DriveId,
    probed: ProbedMember,
}

impl ServiceHandle {
    /// Start every array that these members make. Members of arrays that cannot be started are released.
    ///
    /// # Errors
    /// The service has ended; failures of single arrays are in the answer.
    pub fn assemble(
        &self,
        members: Vec<(OpenedMember, ProbedMember)>,
        request: AssembleRequest,
    ) -> Result<Started, StartError> {
        let mut started = Started::default();
        let mut sets: Vec<(Uuid, Vec<Attached>)> = Vec::new();
        for (opened, probed) in members {
            let Some(superblock) = &probed.look.superblock else {
                let why = match &probed.look.superblock_error {
                    Some((minor, error)) => format!("superblock {minor}: {error}"),
                    None => "no md superblock: it belongs to no array".into(),
                };
                let member = probed.spec.text.clone();
                started.failed.push((None, member.clone(), StartError::NotAMember(member, why)));
                continue;
            };
            let uuid = superblock.set_uuid;
            let drive = self.attach(opened)?;
            match sets.iter_mut().find(|(known, _)| *known == uuid) {
                Some((_, set)) => set.push(Attached { drive, probed }),
                None => sets.push((uuid, vec![Attached { drive, probed }])),
            }
        }
        for (uuid, set) in sets {
            let name = set[0].probed.look.superblock.as_ref().map_or_else(String::new, |s| s.set_name.to_string());
            match self.start_set(&set, request.options) {
                Ok(array) => started.arrays.push(array),
                Err(error) => {
                    for member in &set {
                        self.detach(member.drive)?;
                    }
                    started.failed.push((Some(uuid), name, error));
                }
            }
        }
        if request.nesting == Nesting::Follow {
            self.start_outer(&mut started)?;
        }
        for array in &started.arrays {
            self.count_hosts(array);
        }
        Ok(started)
    }

    /// No host made the reads and writes that start an array: do not count them.
    pub(super) fn count_hosts(&self, array: &StartedArray) {
        for counted in array.spans.iter().chain([array]) {
            // It is refused if the array does not run any more: then there is nothing to count.
            let _ = self.admin(AdminCommand::CountHosts { array: counted.array });
        }
    }

    fn start_set(&self, set: &[Attached], mut options: AssembleOptions) -> Result<StartedArray, StartError> {
        let uuid = set[0].probed.look.superblock.as_ref().map(|superblock| superblock.set_uuid);
        // Data that was discarded by name is lost.
        options.journal_lost |= self.status()?.journal.is_some_and(|journal| {
            journal
                .arrays
                .iter()
                .any(|known| Some(known.set_uuid) == uuid && known.state == JournalArrayState::Discarded)
        });
        let candidates: Vec<Candidate> = set.iter().filter_map(|m| m.probed.candidate(m.drive)).collect();
        let plan = assemble::plan(&candidates, options).map_err(StartError::Assemble)?;
        let text =
            |drive| set.iter().find(|m| m.drive == drive).map_or_else(String::new, |m| m.probed.spec.text.clone());
        let members = plan.verdicts.iter().map(|(drive, verdict)| (*drive, text(*drive), *verdict)).collect();
        let (superblock, forced) = (plan.common.clone(), plan.forced.clone());
        let unused: Vec<DriveId> = set
            .iter()
            .map(|member| member.drive)
            .filter(|drive| !plan.members.iter().any(|planned| planned.drive == *drive))
            .collect();
        let array = self.admin_start(AdminCommand::StartSet(plan))?;
        for drive in unused {
            self.detach(drive)?;
        }
        Ok(StartedArray { array, superblock, spans: Vec::new(), members, forced })
    }

    /// The superblock at the start of an array's data, if there is one.
    ///
    /// # Errors
    /// The array cannot be read.
    pub fn superblock_inside(&self, array: ArrayId, capacity: Sectors) -> Result<Option<Superblock>, ProbeError> {
        let mut read = |lba: openraid_units::DriveLba, into: &mut [u8]| {
            let offset = lba.offset().bytes().get();
            self.read(array, offset, into).map_err(|error| ProbeError::Unreadable { lba, why: error.to_string() })
        };
        look(capacity, &mut read).map(|found| found.superblock)
    }

    /// Stripes over the arrays that run.
    fn start_outer(&self, started: &mut Started) -> Result<(), StartError> {
        let status = self.status()?;
        let mut outers: Vec<(Uuid, Vec<(Superblock, StartedArray)>)> = Vec::new();
        for span in std::mem::take(&mut started.arrays) {
            let view = status.arrays.iter().find(|view| view.status.array == span.array);
            let capacity = view.map_or(Sectors::ZERO, |view| view.status.capacity);
            let inside = self.superblock_inside(span.array, capacity).ok().flatten();
            match inside.filter(|outer| outer.level == MdLevel::Raid0) {
                None => started.arrays.push(span),
                Some(outer) => match outers.iter_mut().find(|(uuid, _)| *uuid == outer.set_uuid) {
                    Some((_, spans)) => spans.push((outer, span)),
                    None => outers.push((outer.set_uuid, vec![(outer, span)])),
                },
            }
        }
        for (uuid, spans) in outers {
            let name = spans[0].0.set_name.to_string();
            match self.start_striped(spans) {
                Ok(array) => started.arrays.push(array),
                Err((error, spans)) => {
                    // A span contains only parts of the stripe, so it is not exported.
                    for span in spans {
                        self.stop_and_release(&span)?;
                    }
                    started.failed.push((Some(uuid), name, error));
                }
            }
        }
        Ok(())
    }

    fn start_striped(
        &self,
        mut spans: Vec<(Superblock, StartedArray)>,
    ) -> Result<StartedArray, (StartError, Vec<StartedArray>)> {
        let role = |superblock: &Superblock| match superblock.role() {
            DeviceRole::Active(slot) => slot.0,
            _ => u16::MAX,
        };
        spans.sort_by_key(|(superblock, _)| role(superblock));
        let need = usize::from(spans[0].0.raid_disks);
        let in_order = spans.iter().zip(0..).all(|((superblock, _), slot)| role(superblock) == slot);
        let (superblocks, spans): (Vec<_>, Vec<_>) = spans.into_iter().unzip();
        if spans.len() != need || !in_order {
            return Err((StartError::SpansMissing { have: spans.len(), need }, spans));
        }
        let numbers = spans.iter().map(|span| span.array).collect();
        let command = AdminCommand::StartStriped { spans: numbers, superblocks: superblocks.clone() };
        match self.admin_start(command) {
            Ok(array) => {
                let superblock = superblocks.into_iter().next().expect("a nested array has spans");
                Ok(StartedArray { array, superblock, spans, members: Vec::new(), forced: None })
            }
            Err(error) => Err((StartError::Service(error), spans)),
        }
    }

    /// Stop an array with all its spans, and release its members.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn stop_and_release(&self, array: &StartedArray) -> Result<(), StartError> {
        let status = self.status()?;
        self.stop_array(array.array)?;
        for span in &array.spans {
            self.stop_and_release(span)?;
        }
        let members = status.arrays.iter().filter(|view| view.status.array == array.array);
        for member in members.flat_map(|view| &view.status.members) {
            if let Some(drive) = member.drive {
                self.detach(drive)?;
            }
        }
        Ok(())
    }
}
