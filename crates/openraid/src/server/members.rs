//! Members of a served array: found by the names people give them, added, and released.

use std::path::Path;

use openraid_core::admin::{AdminCommand, ArrayStatus, MemberState, MemberStatus, NewMember};
use openraid_core::array::create::{superblock_for_new_member, NewDrive};
use openraid_format::{ForeignKind, Superblock};
use openraid_runtime::member::{self, OpenedMember, ProbedMember};
use openraid_runtime::service::{DriveView, ServiceStatus};
use openraid_sys::Use;
use openraid_units::{ArrayId, DriveId};

use super::view::Served;
use super::Server;
use crate::exit::Failure;
use crate::members::{options, spec};
use crate::sets;

/// A member of a served array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The set that it belongs to: the array, or one of its legs.
    pub set: ArrayId,
    /// The drive.
    pub drive: DriveId,
    /// Its line in the set's table.
    pub member: MemberStatus,
}

/// The status of a set.
pub(super) fn set_status(status: &ServiceStatus, set: ArrayId) -> Result<&ArrayStatus, Failure> {
    let view = status.arrays.iter().find(|view| view.status.array == set);
    view.map(|view| &view.status).ok_or_else(|| Failure::cannot_tell("the array does not run any more"))
}

/// Find a member by its path, its address, or its slot.
pub(super) fn find(status: &ServiceStatus, served: &Served, text: &str) -> Result<Found, Failure> {
    let sets = served.sets();
    if let Some(place) = text.strip_prefix("slot:") {
        return find_slot(status, served, &sets, place);
    }
    let mut known = Vec::new();
    for set in sets {
        for member in &set_status(status, set)?.members {
            let Some(drive) = member.drive else { continue };
            let Some(view) = status.drives.iter().find(|view| view.drive == drive) else { continue };
            if is_named(view, text) {
                return Ok(Found { set, drive, member: *member });
            }
            known.push(view.member.as_str());
        }
    }
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Err(Failure::refused(format!("{text} is no member of array {}; its members are: {known}", served.name)))
}

fn is_named(view: &DriveView, text: &str) -> bool {
    if view.member == text {
        return true;
    }
    // Another path to the same file or device.
    let resolved = |path: &str| Path::new(path).canonicalize().ok();
    resolved(text).is_some_and(|path| resolved(&view.member) == Some(path))
}

fn find_slot(status: &ServiceStatus, served: &Served, sets: &[ArrayId], place: &str) -> Result<Found, Failure> {
    let wrong = || {
        let form = if sets.len() > 1 { "slot:LEG.SLOT" } else { "slot:SLOT" };
        Failure::refused(format!(
            "slot:{place} is no slot of array {}; write {form}, as `show` counts them",
            served.name
        ))
    };
    let (leg, slot) = match place.split_once('.') {
        Some((leg, slot)) => (leg.parse::<usize>().map_err(|_| wrong())?, slot),
        None if sets.len() == 1 => (0, place),
        None => return Err(wrong()),
    };
    let slot: u16 = slot.parse().map_err(|_| wrong())?;
    let set = *sets.get(leg).ok_or_else(wrong)?;
    let members = &set_status(status, set)?.members;
    let member = members.iter().find(|member| member.slot.is_some_and(|own| own.0 == slot) && !member.replacement);
    let member = member.ok_or_else(wrong)?;
    match member.drive {
        Some(drive) => Ok(Found { set, drive, member: *member }),
        None => Err(Failure::refused(format!("slot {slot} of array {} has no member", served.name))),
    }
}

/// How a new member came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Joined {
    /// Its number.
    pub drive: DriveId,
    /// It was in the array before.
    pub returning: bool,
}

impl Server {
    /// The set that a new member is for: the leg that was asked for, else the one that needs it.
    pub(super) fn set_for_new(
        &self,
        status: &ServiceStatus,
        served: &Served,
        leg: Option<usize>,
    ) -> Result<ArrayId, Failure> {
        let sets = served.sets();
        if let Some(leg) = leg {
            let legs = served.legs().len();
            return served.legs().get(leg).copied().ok_or_else(|| {
                let why = if legs == 0 { "has no legs".into() } else { format!("has the legs 0 to {}", legs - 1) };
                Failure::refused(format!("array {} {why}; --leg {leg} names none", served.name))
            });
        }
        let needs = |set: &ArrayId| {
            set_status(status, *set).is_ok_and(|status| {
                let waits = status.members.iter().any(|member| member.state == MemberState::Spare);
                !waits && status.health != openraid_core::admin::Health::Optimal
            })
        };
        match sets.as_slice() {
            [only] => Ok(*only),
            _ => sets.iter().copied().find(needs).ok_or_else(|| {
                Failure::refused(format!(
                    "no leg of array {} needs a member; say with --leg which one gets it as a spare",
                    served.name
                ))
            }),
        }
    }

    /// Open a drive and add it to a set.
    pub(super) fn join(&self, set: ArrayId, text: &str, overwrite: bool) -> Result<Joined, Failure> {
        let spec = spec(text)?;
        let mut options = options(Use::Exclusive);
        options.without_flush = self.without_flush;
        let (opened, probed) = member::open_and_probe(&spec, options)?;
        let status = self.status()?;
        let set_status = set_status(&status, set)?;
        let array = set_status.superblock.clone().ok_or_else(|| {
            Failure::refused("a raw drive has no redundancy, so nothing can be added to it; make an array instead")
        })?;
        let returning = probed.look.superblock.clone().filter(|own| own.set_uuid == array.set_uuid);
        if returning.is_none() {
            check_free(&probed, overwrite)?;
        }
        self.attach_and_add(set, &array, returning, opened)
    }

    fn attach_and_add(
        &self,
        set: ArrayId,
        array: &Superblock,
        returning: Option<Superblock>,
        opened: OpenedMember,
    ) -> Result<Joined, Failure> {
        let (name, capacity) = (opened.spec.text.clone(), opened.info.capacity);
        let drive = self.handle.attach(opened)?;
        let was_here = returning.is_some();
        let result = match returning {
            Some(superblock) => Ok(superblock),
            None => {
                let new = NewDrive { drive, capacity, uuid: crate::making::random_uuid() };
                superblock_for_new_member(array, &new)
                    .map_err(|error| Failure::refused(sets::create_error(&error, &|_| name.clone())))
            }
        };
        let added = result.and_then(|superblock| {
            let member = NewMember { drive, superblock, returning: was_here };
            let added = self.handle.admin(AdminCommand::Add { array: set, member });
            added.map_err(|error| Failure::from(error).of(&name))
        });
        match added {
            Ok(_) => Ok(Joined { drive, returning: was_here }),
            Err(failure) => {
                self.handle.detach(drive)?;
                Err(failure)
            }
        }
    }
}

/// Refuse a drive that holds something, unless the user said that it may be lost.
///
/// # Errors
/// What is on it, and how to use it all the same.
pub fn check_free(probed: &ProbedMember, overwrite: bool) -> Result<(), Failure> {
    if overwrite || probed.look.foreign.is_empty() && probed.look.superblock_error.is_none() {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{}: it holds {}; look at it with `openraid examine`, and if all of it may be lost, add --yes --overwrite",
        probed.spec,
        contents(probed)
    )))
}

/// What stands on a drive, for people.
pub fn contents(probed: &ProbedMember) -> String {
    let mut found: Vec<String> = Vec::new();
    if let Some(superblock) = &probed.look.superblock {
        found.push(format!("a member of array {} ({})", superblock.set_name, superblock.set_uuid));
    }
    if let Some((minor, _)) = &probed.look.superblock_error {
        found.push(format!("a damaged md superblock {minor}"));
    }
    let others = probed.look.foreign.list().iter().filter(|finding| finding.kind != ForeignKind::Md1);
    found.extend(others.map(ToString::to_string));
    if found.is_empty() {
        found.extend(probed.look.foreign.list().iter().map(ToString::to_string));
    }
    found.join(", ")
}
