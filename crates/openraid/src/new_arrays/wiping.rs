//! Wiping signatures of members: their bytes are overwritten with zeroes, and nothing else is.
//!
//! The writes go through a service of this process with the drive as it is, so that files, devices and remote exports
//! are treated in the same way.

use openraid_core::admin::{AdminCommand, AdminOutcome};
use openraid_format::{superblock_lba, ForeignKind, MinorVersion, SUPERBLOCK_BYTES_MAX};
use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_runtime::service::ServiceError;
use openraid_runtime::ServiceHandle;
use openraid_units::{ArrayId, Bytes, Sectors};

use crate::failure::Failure;
use crate::service_exit::Cause;

/// Bytes to zero at a signature that is not md's: libblkid looks at no longer structure.
const SIGNATURE_BYTES: u64 = 4096;
/// Zeroes of one write.
const PIECE_BYTES: u64 = 64 << 10;

/// A range of a drive, and its content.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, utoipa::ToSchema)]
pub struct ErasedArea {
    /// First byte of the area on the drive.
    pub at: u64,
    /// Length of the area.
    pub bytes: u64,
    /// What the area holds, in words.
    pub what: String,
}

/// The areas of md's metadata on a member: superblocks at all three places where one stands, the bitmap, the
/// bad-block log.
pub fn md_areas(probed: &ProbedMember) -> Vec<ErasedArea> {
    let capacity = probed.info.capacity;
    let mut areas = Vec::new();
    let founds = probed.look.foreign.signatures.iter().filter(|found| found.is(ForeignKind::Md1));
    let founds: Vec<u64> = founds.map(|found| found.at.get()).collect();
    for minor in MinorVersion::ALL {
        let Some(place) = superblock_lba(minor, capacity) else { continue };
        let at = place.offset().bytes().get();
        if founds.contains(&at) {
            areas.push(area(at, SUPERBLOCK_BYTES_MAX as u64, capacity, format!("md superblock {minor}")));
        }
    }
    if let Some(superblock) = &probed.look.superblock {
        if let Some((place, room)) = superblock.bitmap_room(capacity) {
            areas.push(area(place.offset().bytes().get(), room.bytes().get(), capacity, "bitmap".into()));
        }
        let log = superblock.bad_block_log();
        if let Some((log, place)) = log.and_then(|log| Some((log, superblock.place(log.offset)?))) {
            let bytes = Sectors(u64::from(log.size)).bytes().get();
            areas.push(area(place.offset().bytes().get(), bytes, capacity, "bad-block log".into()));
        }
    }
    areas
}

/// The areas of everything that was recognised on a drive.
pub fn all_areas(probed: &ProbedMember) -> Vec<ErasedArea> {
    let capacity = probed.info.capacity;
    let mut areas = md_areas(probed);
    for found in probed.look.foreign.signatures.iter().filter(|found| !found.is(ForeignKind::Md1)) {
        areas.push(area(found.at.get() / 512 * 512, SIGNATURE_BYTES, capacity, found.description()));
    }
    areas
}

/// An area, cut at the end of the drive.
fn area(at: u64, bytes: u64, capacity: Sectors, what: String) -> ErasedArea {
    let end = capacity.bytes().get();
    ErasedArea { at, bytes: bytes.min(end.saturating_sub(at)), what }
}

/// Zero the areas of a drive, durably, and let it go.
///
/// # Errors
/// The drive cannot be written.
pub fn wipe(service: &ServiceHandle, member: OpenedMember, areas: &[ErasedArea]) -> Result<(), Failure> {
    let zeroes = vec![0; usize::try_from(PIECE_BYTES).expect("64 KiB")];
    on_raw_drive(service, member, "its metadata cannot be wiped", |service, array| {
        for area in areas {
            let (mut at, end) = (area.at, area.at + area.bytes);
            while at < end {
                let len = usize::try_from(PIECE_BYTES.min(end - at)).expect("64 KiB");
                service.write(array, at, &zeroes[..len], false)?;
                at += Bytes(len as u64).get();
            }
        }
        service.flush(array)
    })
}

/// Do something with a drive as it is, and let it go. `trouble` says what cannot be done if it fails.
///
/// # Errors
/// The drive cannot be used, or an operation on it fails.
pub fn on_raw_drive(
    service: &ServiceHandle,
    member: OpenedMember,
    trouble: &str,
    work: impl FnOnce(&ServiceHandle, ArrayId) -> Result<(), ServiceError>,
) -> Result<(), Failure> {
    let name = member.spec.text.clone();
    let failed = |error: ServiceError| Failure::new(error.exit(), format!("{name}: {trouble}: {error}"));
    let drive = service.attach(member).map_err(failed)?;
    let started = service.admin(AdminCommand::StartPassthrough { drive }).map_err(failed)?;
    let AdminOutcome::Started(array) = started else {
        return Err(Failure::failed(format!("{name}: the engine did not take it")));
    };
    work(service, array).map_err(failed)?;
    service.stop_array(array).map_err(failed)?;
    service.detach(drive).map_err(failed)
}
