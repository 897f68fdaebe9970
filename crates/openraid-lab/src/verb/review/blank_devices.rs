//! Checks that the devices of a review are blank or its own, and records which ones the review used.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use openraid_format::{ForeignKind, JournalSuperblock, SuperblockCopy, Uuid, JOURNAL_BLOCK_BYTES};
use openraid_methods::run::write_atomically;
use openraid_methods::target::Choice;
use openraid_runtime::member::{Look, MemberSpec, Place, ProbedMember};
use openraid_runtime::service::random_uuid;
use openraid_sys::next_data;
use serde::{Deserialize, Serialize};

use crate::arguments::ReviewArguments;
use openraid::failure::Failure;
use openraid::members::contents::contents;
use openraid::output::warn;
use openraid::verb::{typed_line, Context};

/// Name of the file that lists the devices that this folder's review has used.
pub(super) const KNOWN: &str = "members.json";
/// Schema name of this file.
const KNOWN_SCHEMA: &str = "openraid/review-members/1";
/// Number of positions of a large device that are read to check that the device is blank; the first and the last MiB
/// are two of them.
const PLACES: u64 = 64;
const PLACE_BYTES: u64 = 1 << 20;
/// Up to this size a device is read in whole. A file is read in whole at any size, except for its holes.
const WHOLE_BYTES_MAX: u64 = 1 << 30;

/// The text and the identity of a device.
type Device = (String, String);

/// The stored data about the devices.
#[derive(Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct DeviceRecord {
    schema: String,
    /// The name of all arrays that this folder's review creates.
    pub(super) array: String,
    pub(super) members: Vec<Device>,
    /// The devices of the journal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journal: Vec<Device>,
    /// The controller that all journals of this folder's review belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    controller: Option<String>,
    /// The settings of each measured array, as a line of the test bed.
    #[serde(default)]
    pub(super) policies: BTreeMap<String, String>,
}

impl DeviceRecord {
    fn new() -> Self {
        Self {
            schema: KNOWN_SCHEMA.into(),
            array: format!("review-{:.16}", hex(&random_uuid().0)),
            members: Vec::new(),
            journal: Vec::new(),
            controller: None,
            policies: BTreeMap::new(),
        }
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).expect("words");
        write_atomically(file, text.as_bytes()).map_err(Failure::failed)
    }

    /// The controller that the journals belong to; zero if there is no journal.
    pub(super) fn controller(&self) -> Uuid {
        self.controller.as_deref().and_then(|text| text.parse().ok()).unwrap_or(Uuid([0; 16]))
    }
}

/// Checks that members and devices of a journal are blank, or have only data of this folder's review. They are recorded
/// before the first write.
pub(super) fn check(
    arguments: &ReviewArguments,
    members: &[ProbedMember],
    journal: &[ProbedMember],
    context: &Context,
) -> Result<DeviceRecord, Failure> {
    let file = arguments.out.join(KNOWN);
    let read = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<DeviceRecord>(&text).ok());
    let mut known = read.filter(|known| known.schema == KNOWN_SCHEMA).unwrap_or_else(DeviceRecord::new);
    let mut taken = Vec::new();
    let mut check = |probed: &ProbedMember, devices: &[Device], of_others: &dyn Fn(&ProbedMember) -> Option<String>| {
        let used = devices.contains(&device(probed));
        let found = if used { of_others(probed) } else { not_blank(probed)? };
        if let Some(found) = found {
            if !is_typed(arguments, probed, &found, context)? {
                let words = if arguments.destroy_data { "give" } else { "add --destroy-data" };
                taken.push(format!(
                    "{}: it is not blank: {found}; if all of it may be lost, {words} --name {}",
                    probed.spec,
                    name_of(probed)
                ));
            }
        }
        Ok::<_, Failure>(())
    };
    for probed in members {
        check(probed, &known.members, &|probed| of_others(probed, &known.array))?;
    }
    for probed in journal {
        check(probed, &known.journal, &|probed| of_another_journal(probed, known.controller()))?;
    }
    if !taken.is_empty() {
        return Err(Failure::refused(taken.join("\n  ")));
    }
    add(&mut known.members, members);
    add(&mut known.journal, journal);
    if !journal.is_empty() && known.controller.is_none() {
        known.controller = Some(random_uuid().to_string());
    }
    fs::create_dir_all(&arguments.out)
        .map_err(|error| Failure::failed(format!("{}: it cannot be made: {error}", arguments.out.display())))?;
    known.write(&file)?;
    Ok(known)
}

/// Checks that the members are drives, which may have a write cache of their own. This is done before anything is written.
pub(super) fn may_have_caches(members: &[ProbedMember]) -> Result<(), Failure> {
    let is_drive = |probed: &&ProbedMember| {
        let metadata = path(&probed.spec).and_then(|path| fs::metadata(path).ok());
        metadata.is_some_and(|metadata| metadata.file_type().is_block_device())
    };
    match members.iter().find(|probed| !is_drive(probed)) {
        Some(other) => Err(Failure::refused(format!(
            "--drive-cache: {} is not a block device, and has no write cache of its own; leave the option out",
            other.spec
        ))),
        None => Ok(()),
    }
}

/// Adds devices to a sorted list. A device of the same name is replaced.
fn add(known: &mut Vec<Device>, probed: &[ProbedMember]) {
    let devices: Vec<Device> = probed.iter().map(device).collect();
    known.retain(|(text, _)| !devices.iter().any(|(devices, _)| devices == text));
    known.extend(devices);
    known.sort();
}

fn device(probed: &ProbedMember) -> Device {
    (probed.spec.text.clone(), identity(probed))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The identity of the file or device.
pub(super) fn identity(probed: &ProbedMember) -> String {
    let size = probed.info.capacity.bytes().get();
    let Some(metadata) = path(&probed.spec).and_then(|path| fs::metadata(path).ok()) else {
        return format!("{} bytes", size);
    };
    if metadata.rdev() != 0 {
        return format!("node {}, {size} bytes", metadata.rdev());
    }
    format!("node {} {}, {size} bytes", metadata.dev(), metadata.ino())
}

fn path(spec: &MemberSpec) -> Option<&PathBuf> {
    match &spec.place {
        Place::Path(path) => Some(path),
        Place::Model(model) => model.file.as_ref(),
        Place::Ram(_) | Place::Remote(_) => None,
    }
}

/// Data on a member of this review that the review did not write.
fn of_others(probed: &ProbedMember, array: &str) -> Option<String> {
    let look = &probed.look;
    if let Some(superblock) = &look.superblock {
        let name = superblock.set_name.to_string();
        let is_of_array = name == array || name.strip_prefix(array).is_some_and(|rest| rest.starts_with('.'));
        return (!is_of_array).then(|| format!("it holds {}", contents(probed)));
    }
    let holds = !look.foreign.signatures.is_empty() || look.superblock_error.is_some();
    holds.then(|| format!("it holds {}", contents(probed)))
}

/// Data on a journal's device of this review that the review did not write: anything but a journal of the review's own
/// controller.
fn of_another_journal(probed: &ProbedMember, controller: Uuid) -> Option<String> {
    let signatures = &probed.look.foreign.signatures;
    let others = signatures.iter().any(|found| !found.is(ForeignKind::OpenraidJournal));
    if others || probed.look.superblock_error.is_some() {
        return Some(format!("it holds {}", contents(probed)));
    }
    let superblock_of_journal = || {
        let mut bytes = vec![0; JOURNAL_BLOCK_BYTES];
        File::open(path(&probed.spec)?).and_then(|file| file.read_exact_at(&mut bytes, 0)).ok()?;
        JournalSuperblock::decode(&bytes, SuperblockCopy::First).ok()
    };
    let is_journal = !signatures.is_empty();
    let is_own = superblock_of_journal().is_some_and(|superblock| superblock.controller == controller);
    (is_journal && !is_own).then(|| format!("it holds {}", contents(probed)))
}

/// The contents of a device: a known signature, or any byte other than zero at the positions that are read.
fn not_blank(probed: &ProbedMember) -> Result<Option<String>, Failure> {
    // Data without a name is looked for below, which says its exact place.
    let Look { foreign, superblock, superblock_error, .. } = &probed.look;
    if !foreign.signatures.is_empty() || superblock_error.is_some() || superblock.is_some() {
        return Ok(Some(format!("it holds {}", contents(probed))));
    }
    if matches!(probed.spec.place, Place::Remote(_)) {
        return Ok(Some("the content of a remote member is not checked".into()));
    }
    let Some(path) = path(&probed.spec) else { return Ok(None) };
    let failed = |error| Failure::cannot_tell(format!("{}: it cannot be read: {error}", probed.spec));
    let file = File::open(path).map_err(failed)?;
    let size = probed.info.capacity.bytes().get();
    let sampled = is_sampled(&file, size).map_err(failed)?;
    let at = if sampled { first_byte_of_places(&file, size) } else { first_byte(&file, size) };
    let found = at.map_err(failed)?.map(|at| format!("there is data at byte {at}"));
    if sampled && found.is_none() {
        warn(&format!(
            "{}: it is taken as blank, but only {PLACES} places of 1 MiB were read, and they are zero: data between them \
             would not be seen, and will be lost",
            probed.spec
        ));
    }
    Ok(found)
}

/// Is only a sample of this device read? A file is read in whole.
fn is_sampled(file: &File, size: u64) -> std::io::Result<bool> {
    Ok(size > WHOLE_BYTES_MAX && !file.metadata()?.file_type().is_file())
}

/// The first byte that is not zero. Holes of a sparse file are not read.
fn first_byte(file: &File, size: u64) -> std::io::Result<Option<u64>> {
    let is_file = file.metadata()?.file_type().is_file();
    let part = |from: u64| if is_file { next_data(file, from) } else { Ok((from < size).then_some(from..size)) };
    let mut from = 0;
    while let Some(range) = part(from)? {
        let end = range.end.min(size);
        for at in (range.start..end).step_by(usize::try_from(PLACE_BYTES).expect("1 MiB")) {
            let found = byte_within(file, at..end.min(at + PLACE_BYTES))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        from = range.end;
    }
    Ok(None)
}

/// The first byte that is not zero, at some places of a large device.
fn first_byte_of_places(file: &File, size: u64) -> std::io::Result<Option<u64>> {
    let last = size.saturating_sub(PLACE_BYTES);
    for place in 0..PLACES {
        let at = u128::from(last) * u128::from(place) / u128::from(PLACES - 1);
        let at = u64::try_from(at).unwrap_or(last);
        let found = byte_within(file, at..size.min(at + PLACE_BYTES))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The first byte of a range of at most 1 MiB that is not zero.
fn byte_within(file: &File, range: Range<u64>) -> std::io::Result<Option<u64>> {
    let mut buffer = vec![0; usize::try_from(range.end - range.start).expect("1 MiB")];
    file.read_exact_at(&mut buffer, range.start)?;
    Ok(buffer.iter().position(|byte| *byte != 0).map(|byte| range.start + byte as u64))
}

/// The name that is typed to confirm the loss of a member's data.
fn name_of(probed: &ProbedMember) -> String {
    Choice::Path(path(&probed.spec).cloned().unwrap_or_else(|| probed.spec.text.clone().into())).short_name()
}

/// Was the member's name typed or given?
fn is_typed(
    arguments: &ReviewArguments,
    probed: &ProbedMember,
    found: &str,
    context: &Context,
) -> Result<bool, Failure> {
    if !arguments.destroy_data {
        return Ok(false);
    }
    let name = name_of(probed);
    if !arguments.name.is_empty() {
        return Ok(arguments.name.contains(&name));
    }
    context
        .output
        .warn(&format!("{}: {found}. ALL DATA on it will be lost. Type its name ({name}) to continue:", probed.spec));
    Ok(typed_line()?.trim() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unnamed sparse file with three bytes at a position.
    fn sparse(name: &str, size: u64, at: u64) -> File {
        let path = std::env::temp_dir().join(format!("openraid-blank-{name}-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("made");
        fs::remove_file(&path).expect("unnamed");
        file.set_len(size).expect("sparse");
        file.write_all_at(b"xyz", at).expect("written");
        file
    }

    #[test]
    fn a_file_of_any_size_is_read_in_whole_and_a_sample_has_both_ends() {
        let size = 5 << 30;
        for at in [0, 1_234_567_891, size - 3] {
            let file = sparse("whole", size, at);
            assert_eq!(first_byte(&file, size).expect("read"), Some(at));
            assert!(!is_sampled(&file, size).expect("known"));
            let seen = first_byte_of_places(&file, size).expect("read");
            assert_eq!(seen, (at == 0 || at == size - 3).then_some(at));
        }
        // Bytes after the end of the device are not read.
        assert_eq!(first_byte(&sparse("end", size, size - 3), size - 4096).expect("read"), None);
    }
}
