//! The stripe map: which members hold a byte of an array.

use openraid_core::geometry::{Geometry, StripeRole};
use openraid_management::{LocationModel, PlaceModel};
use openraid_runtime::service::ServiceStatus;
use openraid_units::{ArrayId, MemberLba, Sectors, SetLba, Slot};

use super::super::array_model::geometry;
use super::super::joining_members::set_status;
use super::super::Server;
use crate::failure::Failure;

const SECTOR_BYTES: u64 = 512;

/// A place on a member.
struct MemberPlace {
    slot: Slot,
    role: &'static str,
    lba: MemberLba,
}

impl Server {
    /// The members that hold this byte.
    pub(super) fn place(&self, name: &str, offset: u64) -> Result<PlaceModel, Failure> {
        let served = self.find(name)?;
        let status = self.status()?;
        let at = SetLba(offset / SECTOR_BYTES);
        let within = offset % SECTOR_BYTES;
        let sets = served.sets();
        let is_nested = !served.spans().is_empty();
        let (span, at) = match &served.started {
            Some(started) if is_nested => {
                let Some(Geometry::Striped(outer)) = geometry(&started.superblock) else {
                    return Err(Failure::refused(format!("{name} has no map")));
                };
                check(offset, outer.capacity())?;
                let fragment = outer.map(at);
                // The outer superblock is at the beginning of each span, and its data follow.
                let inner = fragment.lba.0 + started.superblock.data_offset.0;
                (Some(usize::from(fragment.slot.0)), SetLba(inner))
            }
            _ => (None, at),
        };
        let set = *sets.get(span.unwrap_or(0)).ok_or_else(|| Failure::refused(format!("{name} has no map")))?;
        let (stripe, found) = in_set(&status, set, at, offset)?;
        let members = found.iter().map(|found| location(&status, set, found, within)).collect::<Result<_, _>>()?;
        Ok(PlaceModel { offset_bytes: offset, span, stripe, members })
    }
}

fn check(offset: u64, capacity: Sectors) -> Result<(), Failure> {
    if offset / SECTOR_BYTES < capacity.get() {
        return Ok(());
    }
    Err(Failure::usage(format!("offset {offset}: the array has {} bytes", capacity.bytes().get())))
}

fn in_set(
    status: &ServiceStatus,
    set: ArrayId,
    at: SetLba,
    offset: u64,
) -> Result<(Option<u64>, Vec<MemberPlace>), Failure> {
    let Some(superblock) = set_status(status, set)?.superblock.as_ref() else {
        return Ok((None, vec![MemberPlace { slot: Slot(0), role: "data", lba: MemberLba(at.0) }]));
    };
    let geometry = geometry(superblock).ok_or_else(|| Failure::refused("the array has no map"))?;
    check(at.0 * SECTOR_BYTES, geometry.capacity())
        .map_err(|_| Failure::usage(format!("offset {offset}: too large")))?;
    let one = |fragment: openraid_core::geometry::Fragment, role| MemberPlace {
        slot: fragment.slot,
        role,
        lba: fragment.lba,
    };
    Ok(match geometry {
        Geometry::Passthrough(geometry) => (None, vec![one(geometry.map(at), "data")]),
        Geometry::Linear(geometry) => (None, vec![one(geometry.map(at), "data")]),
        Geometry::Striped(geometry) => (None, vec![one(geometry.map(at), "data")]),
        Geometry::Mirror(geometry) => (None, geometry.copies(at).map(|fragment| one(fragment, "copy")).collect()),
        Geometry::Parity(geometry) => {
            let (stripe, column, within) = geometry.locate(at);
            let lba = geometry.member_lba(stripe, within);
            let role = |slot: u16| match geometry.role_of(stripe, Slot(slot)) {
                StripeRole::Data(data_column) if data_column == column => "data",
                StripeRole::Data(_) => "other",
                StripeRole::P => "p",
                StripeRole::Q => "q",
            };
            let all = (0..geometry.members()).map(|slot| MemberPlace { slot: Slot(slot), role: role(slot), lba });
            (Some(stripe.0), all.collect())
        }
    })
}

fn location(status: &ServiceStatus, set: ArrayId, found: &MemberPlace, within: u64) -> Result<LocationModel, Failure> {
    let members = &set_status(status, set)?.members;
    let holder = members.iter().find(|line| line.slot == Some(found.slot) && !line.replacement);
    let drive = holder.and_then(|line| line.drive);
    let view = drive.and_then(|drive| status.drives.iter().find(|view| view.drive == drive));
    Ok(LocationModel {
        slot: found.slot.0,
        member: view.map(|view| view.member.clone()),
        role: found.role.into(),
        member_offset_bytes: found.lba.0 * SECTOR_BYTES + within,
    })
}
