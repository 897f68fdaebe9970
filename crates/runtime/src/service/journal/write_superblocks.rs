//! Writing the superblocks of a journal that is not in service: a new journal, an adopted one, discarded entries.

use openraid_format::{
    journal_superblock_lba, JournalArrayState, JournalSuperblock, SuperblockCopy, Uuid, JOURNAL_BLOCK_BYTES,
};
use openraid_units::{BlockSize, DriveLba, Sectors};

use super::find::FoundDevices;
use super::JournalStartError;
use crate::member::{Medium, OpenedMember};

/// Make a new, empty journal on one device or mirrored over two. The old content is lost.
///
/// # Errors
/// A device is too small, or cannot be written.
pub fn make(
    devices: &[OpenedMember],
    journal: Uuid,
    controller: Uuid,
) -> Result<Vec<JournalSuperblock>, JournalStartError> {
    if devices.is_empty() || devices.len() > 2 {
        return Err(JournalStartError::Count(devices.len()));
    }
    let mirrors = u8::try_from(devices.len()).expect("two at most");
    let sizes: Vec<Sectors> = devices.iter().map(|device| device.info.capacity).collect();
    if sizes.iter().any(|size| *size != sizes[0]) {
        return Err(JournalStartError::Sizes(sizes[0], sizes[1]));
    }
    // In blocks that both devices can write.
    let larger = devices.iter().any(|device| device.info.block.bytes() > BlockSize::B512.bytes());
    let block = if larger { BlockSize::B4096 } else { BlockSize::B512 };
    let mut superblocks = Vec::new();
    for (device, mirror) in devices.iter().zip(0..) {
        let refused = |error| JournalStartError::Device { device: device.spec.text.clone(), error };
        let superblock = JournalSuperblock::new(journal, controller, device.info.capacity, block, (mirror, mirrors));
        superblocks.push(superblock.map_err(refused)?);
    }
    for (device, superblock) in devices.iter().zip(&superblocks) {
        write_superblock(device, superblock)?;
    }
    Ok(superblocks)
}

/// Give a journal to another controller.
///
/// # Errors
/// A device cannot be written.
pub fn adopt(found: &mut FoundDevices, controller: Uuid) -> Result<(), JournalStartError> {
    change(found, |superblock| {
        superblock.controller = controller;
        true
    })
}

/// Discard the entries of an array in an unused journal. A stale device may have no record of the array; it gets
/// everything from the other one.
///
/// # Errors
/// It holds nothing for it, or a device cannot be written.
pub fn discard(found: &mut FoundDevices, set_uuid: Uuid) -> Result<(), JournalStartError> {
    if found.journal.superblock.index_of(set_uuid).is_none() {
        return Err(JournalStartError::NothingFor(set_uuid.to_string()));
    }
    change(found, |superblock| {
        let index = superblock.index_of(set_uuid).map(usize::from);
        let array = index.and_then(|index| superblock.arrays[index].as_mut());
        array.map(|array| array.state = JournalArrayState::Discarded).is_some()
    })
}

/// Change the superblocks, and write the valid ones.
fn change(found: &mut FoundDevices, change: impl Fn(&mut JournalSuperblock) -> bool) -> Result<(), JournalStartError> {
    for (device, superblock) in found.devices.iter().zip(&mut found.superblocks) {
        if change(superblock) {
            superblock.generation += 1;
            write_superblock(device, superblock)?;
        }
    }
    Ok(())
}

/// Write both copies, the second one after the first is durable.
pub(super) fn write_superblock(device: &OpenedMember, superblock: &JournalSuperblock) -> Result<(), JournalStartError> {
    for copy in [SuperblockCopy::First, SuperblockCopy::Last] {
        write_copy(device, superblock, copy)?;
        sync(device)?;
    }
    Ok(())
}

/// Write one copy. It is durable after [`sync`].
pub(super) fn write_copy(
    device: &OpenedMember,
    superblock: &JournalSuperblock,
    copy: SuperblockCopy,
) -> Result<(), JournalStartError> {
    let mut bytes = [0; JOURNAL_BLOCK_BYTES];
    superblock.encode(copy, &mut bytes);
    let lba = journal_superblock_lba(copy, superblock.device_sectors).expect("a superblock that can be written");
    write(device, lba, &bytes)
}

pub(super) fn write(device: &OpenedMember, at: DriveLba, bytes: &[u8]) -> Result<(), JournalStartError> {
    let Medium::Disk(disk) = &device.medium else {
        return Err(JournalStartError::NotLocal(device.spec.text.clone()));
    };
    disk.write_all_at(at, bytes)
        .map_err(|error| failed(device, &format!("sector {} cannot be written: {error}", at.get())))
}

pub(super) fn sync(device: &OpenedMember) -> Result<(), JournalStartError> {
    let Medium::Disk(disk) = &device.medium else {
        return Err(JournalStartError::NotLocal(device.spec.text.clone()));
    };
    disk.sync().map_err(|error| failed(device, &format!("the written data did not become durable: {error}")))
}

fn failed(device: &OpenedMember, why: &str) -> JournalStartError {
    JournalStartError::Io { device: device.spec.text.clone(), why: why.into() }
}
