//! The arrays that a server must serve: named on the command line, recorded, or in the configuration file.

use openraid_config::{ArrayId, DesiredArray};
use openraid_runtime::member::MemberSpec;
use openraid_status::shell_quoting::command;

use serde::Serialize;

use super::super::Context;
use crate::arguments::ServeArguments;
use crate::failure::{grouped, Failure};
use crate::kept_settings::KeptSettings;
use crate::members::{in_folder, looks_like_a_name, remembered, spec, unopened, written_spec, Among};
use crate::model::LevelWord;
use crate::registry::{raw_drive_name, RegisteredArray};
use crate::server::desired::InForce;
use crate::server::reload::unknown;
use crate::server::start_problems;

#[derive(Debug, Default)]
pub struct ArraysToServe {
    pub members: Vec<MemberSpec>,
    /// Raw drives, by the name of their export.
    pub raw: Vec<(String, MemberSpec)>,
    /// Requested arrays that cannot be served, one line each.
    pub notes: Vec<Failure>,
    /// Arrays among them that are recorded, or that a service finds in its file only.
    pub asked: Vec<RegisteredArray>,
    /// Why a service cannot read the registry.
    pub unknown: Option<String>,
}

/// A requested array that is not served.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Offline)]
pub struct OfflineArray {
    /// Name of the array.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// Why a requested array is not served: the reason of the start, or its members that could not be opened.
pub fn why_offline(entry: &RegisteredArray, failed: &[(String, Failure)], reasons: &[Failure]) -> Failure {
    if let Some(known) = start_problems::of_array(entry, reasons) {
        return known;
    }
    let members: Vec<Failure> = failed
        .iter()
        .filter(|(member, _)| entry.members.contains(member))
        .map(|(_, failure)| failure.clone())
        .collect();
    if members.is_empty() {
        let doctor = command("doctor", [&entry.name]);
        let text = format!("its members do not make it; `{doctor}` says what they are");
        return Failure::refused(text).of_array(entry.label());
    }
    let count = unopened(members.len(), Among::Its(entry.members.len()));
    let text = format!("{count}: {}", grouped(&members).join("; "));
    Failure::refused(text).of_array(entry.label())
}

/// Is this a service? Then nothing is named, and a file says what it serves.
pub fn is_service(arguments: &ServeArguments, file: Option<&InForce>) -> bool {
    file.is_some() && arguments.names.is_empty() && arguments.scan.is_empty() && arguments.level.is_none()
}

/// The arrays to serve.
///
/// # Errors
/// A name does not exist, or nothing is recorded.
pub fn wanted(arguments: &ServeArguments, context: &Context, file: Option<&InForce>) -> Result<ArraysToServe, Failure> {
    let mut wanted = ArraysToServe::default();
    for folder in &arguments.scan {
        wanted.members.extend(in_folder(folder)?);
    }
    let arrays = file.map_or(&[][..], |file| &file.desired.arrays[..]);
    if is_service(arguments, file) {
        match context.registry.entries() {
            Ok(entries) => wanted.asked = entries,
            Err(failure) => wanted.unknown = Some(failure.text()),
        }
        wanted.add_all(arrays);
        return Ok(wanted);
    }
    if arguments.names.is_empty() && arguments.scan.is_empty() && arguments.level.is_none() {
        let entries = context.registry.entries()?;
        if entries.is_empty() {
            return Err(Failure::refused(
                "no array is remembered; make one with `openraid create`, or name members or a folder (--scan)",
            ));
        }
        for entry in &entries {
            wanted.add(entry, None)?;
        }
        wanted.asked = entries;
    }
    for name in &arguments.names {
        let by_name = arrays.iter().find(|desired| desired.id == ArrayId::Name(name.clone()));
        match remembered(name, &context.registry)? {
            Some(entry) => {
                wanted.add(&entry, desired_of(&entry, arrays))?;
                wanted.asked.push(entry);
            }
            None if by_name.is_some_and(|desired| !desired.members.is_empty()) => {
                by_name.into_iter().try_for_each(|desired| wanted.add_members(&desired.members))?;
            }
            None if looks_like_a_name(name) && !name.contains(':') => {
                return Err(Failure::refused(format!(
                    "{name}: no array of this name is remembered, and no file of this name is here; see `openraid list`"
                )))
            }
            None => {
                let known = context.registry.entries_if_readable();
                taken_as_file(name, &known).iter().for_each(|note| context.output.warn(note));
                wanted.members.push(written_spec(name)?);
            }
        }
    }
    Ok(wanted)
}

/// The note that a name is taken as that of a file, if a recorded array has the name, too.
fn taken_as_file(name: &str, known: &[RegisteredArray]) -> Option<String> {
    let entry = known.iter().find(|entry| entry.name == name)?;
    let array = match &entry.uuid {
        Some(uuid) => format!("with `{}`", command("serve", [uuid])),
        None => "from another folder".into(),
    };
    Some(format!(
        "{name}: a file of this name is in this folder, so it is taken as a member, and not as the array {name} that is \
         remembered: a path of a file comes before a name; serve the array {array}, or give the file as ./{name}"
    ))
}

/// The entry of the file for a recorded array.
fn desired_of<'w>(entry: &RegisteredArray, arrays: &'w [DesiredArray]) -> Option<&'w DesiredArray> {
    let by_uuid = |desired: &&DesiredArray| match &desired.id {
        ArrayId::Uuid(uuid) => entry.uuid.as_deref() == Some(uuid.to_string().as_str()),
        ArrayId::Name(_) => false,
    };
    let by_name = |desired: &&DesiredArray| desired.id == ArrayId::Name(entry.name.clone());
    arrays.iter().find(by_uuid).or_else(|| arrays.iter().find(by_name))
}

/// An array that is in the file only.
fn of_file(desired: &DesiredArray) -> RegisteredArray {
    let uuid = match &desired.id {
        ArrayId::Uuid(uuid) => Some(uuid.to_string()),
        ArrayId::Name(_) => None,
    };
    let (name, members) = (desired.id.to_string(), desired.members.clone());
    RegisteredArray { name, uuid, level: LevelWord::Unknown, members, kept: KeptSettings::default() }
}

/// The failure to serve arrays of these names. If another server has such an array, this reason comes first.
pub fn served_already(failure: Failure, names: &[String], context: &Context) -> Failure {
    let served = names.iter().filter(|name| matches!(context.servers.serving(name), Ok(Some(_))));
    let lines: Vec<String> = served
        .map(|name| {
            let (show, stop) = (command("show", [name]), command("stop", [name]));
            format!("{name} is served already: `{show}` shows where, `{stop}` ends that")
        })
        .collect();
    if lines.is_empty() {
        return failure;
    }
    let text = format!("{}\n{}", lines.join("\n"), failure.text());
    failure.worded(text)
}

impl ArraysToServe {
    /// Names of the recorded arrays that have a requested member.
    pub fn names(&self, context: &Context) -> Vec<String> {
        let entries = context.registry.entries_if_readable().into_iter();
        let is_wanted = |text: &String| self.members.iter().any(|member| member.text == *text);
        entries.filter(|entry| entry.members.iter().any(is_wanted)).map(|entry| entry.name).collect()
    }

    /// Adds everything that is recorded or in the file. If one array cannot be found, the others are still served.
    fn add_all(&mut self, arrays: &[DesiredArray]) {
        let mut known = Vec::new();
        for entry in &self.asked.clone() {
            let desired = desired_of(entry, arrays);
            known.extend(desired.map(|desired| &desired.id));
            if let Err(failure) = self.add(entry, desired) {
                self.notes.push(failure.of_array(entry.label()));
            }
        }
        for desired in arrays.iter().filter(|desired| !known.contains(&&desired.id)) {
            let entry = of_file(desired);
            let added = match desired.members.as_slice() {
                [] => Err(Failure::refused(unknown(desired))),
                members => self.add_members(members),
            };
            if let Err(failure) = added {
                self.notes.push(failure.of_array(entry.label()));
            }
            self.asked.push(entry);
        }
    }

    fn add(&mut self, entry: &RegisteredArray, desired: Option<&DesiredArray>) -> Result<(), Failure> {
        if let Some(desired) = desired.filter(|desired| !desired.members.is_empty()) {
            return self.add_members(&desired.members);
        }
        if entry.uuid.is_some() {
            return self.add_members(&entry.members);
        }
        let specs = entry.members.iter().map(|member| spec(member)).collect::<Result<Vec<_>, _>>()?;
        let several = specs.len() > 1;
        let name = |nth| if several { raw_drive_name(&entry.name, nth) } else { entry.name.clone() };
        self.raw.extend((0..).zip(specs).map(|(nth, spec)| (name(nth), spec)));
        Ok(())
    }

    fn add_members(&mut self, members: &[String]) -> Result<(), Failure> {
        for member in members {
            let spec = spec(member)?;
            if !self.members.contains(&spec) {
                self.members.push(spec);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use openraid_units::ArrayLevel;

    use super::*;

    #[test]
    fn a_name_of_a_file_and_of_an_array_is_taken_as_the_file_and_the_reason_is_said() {
        let entry = RegisteredArray {
            name: "media".into(),
            uuid: Some("00000000:00000000:00000000:00000001".into()),
            level: ArrayLevel::Raid1.into(),
            members: vec!["/d1".into()],
            kept: KeptSettings::default(),
        };
        let note = taken_as_file("media", std::slice::from_ref(&entry));
        assert_eq!(
            note.as_deref(),
            Some(
                "media: a file of this name is in this folder, so it is taken as a member, and not as the array media that is \
                 remembered: a path of a file comes before a name; serve the array with `openraid serve \
                 00000000:00000000:00000000:00000001`, or give the file as ./media"
            )
        );
        assert_eq!((taken_as_file("./media", std::slice::from_ref(&entry)), taken_as_file("media", &[])), (None, None));
    }

    #[test]
    fn an_array_that_cannot_be_asked_for_keeps_the_exit_code_of_its_failure() {
        let entry = |name: &str, member: &str| RegisteredArray {
            name: name.into(),
            uuid: Some("00000000:00000000:00000000:00000001".into()),
            level: ArrayLevel::Raid1.into(),
            members: vec![member.into()],
            kept: KeptSettings::default(),
        };
        let mut wanted =
            ArraysToServe { asked: vec![entry("far", "nbd://"), entry("near", "/near")], ..ArraysToServe::default() };
        wanted.add_all(&[]);
        let refused = spec("nbd://").expect_err("it has no host");
        let [note] = &wanted.notes[..] else { panic!("{:?}", wanted.notes) };
        assert_eq!((note.exit, note.obstacle), (refused.exit, refused.obstacle));
        assert_ne!(note.exit, Failure::refused("").exit, "another code than that of a refusal");
        assert_eq!(note.text(), format!("array far: {}", refused.text()));
        assert_eq!(wanted.members.len(), 1);
    }
}
