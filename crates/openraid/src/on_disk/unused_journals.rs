//! Journals on devices that no server of this process uses: their contents, as far as the devices tell, with names of arrays.

use openraid_format::JournalArrayState;
use openraid_runtime::member::{open, MemberSpec, OpenError};
use openraid_runtime::service::journal::{look, tally, ArrayTally, FoundDevices, LookFor};
use openraid_sys::Use;

use super::sets::array_name;
use crate::failure::Failure;
use crate::members::{open_some, options, spec};
use crate::model::{JournalArrayModel, JournalArrayWord, JournalDeviceModel, JournalModel, JournalWord};
use crate::registry::Registry;

/// The contents of journal devices, read from the devices without a server.
///
/// # Errors
/// The device is not a journal, or the log cannot be followed.
pub fn of_devices(specs: &[MemberSpec], registry: &Registry) -> Result<JournalModel, Failure> {
    let locked = |spec: &MemberSpec| open(spec, options(Use::ReadExclusive)).err().filter(OpenError::is_in_use);
    let holder = specs.iter().find_map(locked);
    // While a server writes to a device, the log can look damaged without being so.
    let wanted = LookFor { damaged: holder.is_none(), ..LookFor::default() };
    let found = look(specs, options(Use::Examine), &wanted).map_err(|error| match &holder {
        Some(holder) => Failure::cannot_tell(format!("{error}; it is in use meanwhile ({holder}): ask its server")),
        None => Failure::from(error),
    })?;
    let mut journal = model_of(&found);
    if holder.is_some() {
        journal.state = JournalWord::InUse;
    }
    name_arrays(&mut journal, registry);
    Ok(journal)
}

/// Sets the names of arrays that have none. The registry has them by identity. For the spans of a nested array they
/// come from the superblocks of the members.
pub fn name_arrays(journal: &mut JournalModel, registry: &Registry) {
    let unnamed = |journal: &JournalModel| journal.arrays.iter().any(|array| array.name.is_none());
    let Some(entries) = unnamed(journal).then(|| registry.entries().ok()).flatten() else { return };
    for array in journal.arrays.iter_mut().filter(|array| array.name.is_none()) {
        let known = entries.iter().find(|entry| entry.uuid.as_ref() == Some(&array.uuid));
        array.name = known.map(|entry| entry.name.clone());
    }
    let nested = entries.iter().filter(|entry| entry.uuid.is_some() && entry.level.is_nested());
    for entry in nested {
        if !unnamed(journal) {
            return;
        }
        let specs: Vec<MemberSpec> = entry.members.iter().filter_map(|member| spec(member).ok()).collect();
        let (opened, _) = open_some(&specs, options(Use::Examine));
        for superblock in opened.into_iter().filter_map(|(_, probed)| probed.look.superblock) {
            let uuid = superblock.set_uuid.to_string();
            let unnamed = journal.arrays.iter_mut().find(|array| array.uuid == uuid && array.name.is_none());
            if let Some(array) = unnamed {
                array.name = Some(array_name(&superblock));
            }
        }
    }
}

/// The contents of journal devices, as far as they are known without a server.
pub fn model_of(found: &FoundDevices) -> JournalModel {
    let superblock = &found.journal.superblock;
    let ring = superblock.ring();
    let used = ring.distance(found.journal.tail.position, found.journal.head.position);
    let array = |tally: &ArrayTally| JournalArrayModel {
        uuid: tally.set_uuid.to_string(),
        name: None,
        state: array_word(tally.state),
        waiting_entries: tally.entries,
        data_bytes: Some(tally.data.bytes().get()),
    };
    let used_by_log = |number: usize| found.journal.devices.iter().any(|(drive, _)| drive.index() == number);
    let devices = found.devices.iter().enumerate();
    JournalModel {
        state: JournalWord::Unused,
        trouble: None,
        damage: found.damage.map(|error| error.to_string()),
        uuid: Some(superblock.journal.to_string()),
        controller: Some(superblock.controller.to_string()),
        devices: devices
            .map(|(n, device)| JournalDeviceModel { device: device.spec.text.clone(), works: used_by_log(n) })
            .collect(),
        other_missing: found.is_half(),
        ring_bytes: ring.sectors.bytes().get(),
        used_bytes: used.bytes().get(),
        joining: None,
        entries: found.journal.entries.len() as u64,
        kept_bytes: superblock.kept.bytes().get(),
        kept_bytes_max: superblock.keep_area().1.bytes().get(),
        arrays: tally(&found.journal).iter().map(array).collect(),
        counters: None,
    }
}

/// The journal's record of an array, for its model.
pub const fn array_word(state: JournalArrayState) -> JournalArrayWord {
    match state {
        JournalArrayState::Live => JournalArrayWord::Live,
        JournalArrayState::Preserved => JournalArrayWord::Preserved,
        JournalArrayState::Discarded => JournalArrayWord::Discarded,
    }
}
