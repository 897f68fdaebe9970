//! All profiles, found by name: the built-in ones, and those of a folder.

use crate::bus::{BusFile, BusProfile, Plug};
use crate::controller::{ControllerKind, ControllerProfile};
use crate::drive::{DriveKind, DriveProfile};
use crate::error::{ModelError, ModelErrors};
use crate::host::HostProfile;
use crate::profile_head::Head;
use crate::reader::{Edges, FILE_BYTES_MAX};
use std::fmt;
use std::io::Read as _;
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Limit of the profiles of a folder.
const FILES_MAX: usize = 10_000;

/// Profiles by name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Library {
    drives: Vec<(DriveProfile, Text)>,
    buses: Vec<(BusProfile, Text)>,
    controllers: Vec<(ControllerProfile, Text)>,
    hosts: Vec<(HostProfile, Text)>,
}

/// The file name and text of a profile. The text is read again for each end of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Text {
    file: String,
    text: String,
    /// Whether the profile is from a folder; otherwise it is built in.
    is_from_folder: bool,
}

/// A name without a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookupError {
    /// `drive`, `bus`, `controller` or `host`.
    pub kind: &'static str,
    pub name: String,
    /// The existing names.
    pub known: Vec<String>,
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = (self.kind, &self.name);
        write!(f, "there is no {kind} profile '{name}'; known are: {}. ", self.known.join(", "))?;
        write!(f, "To add one, put NAME.toml into a folder of profiles")
    }
}

impl std::error::Error for LookupError {}

/// A profile, read again from its text. If that fails, the profile as it was.
fn read_again<T: Clone>(
    all: &[(T, Text)],
    found: &T,
    named: impl Fn(&T) -> bool,
    read: impl FnOnce(&str, &str) -> Option<T>,
) -> T {
    let text = all.iter().find(|(known, _)| named(known)).map(|(_, text)| text);
    text.and_then(|text| read(&text.file, &text.text)).unwrap_or_else(|| found.clone())
}

impl Library {
    /// The built-in profiles.
    ///
    /// # Panics
    /// A built-in profile is wrong, which a test would have shown.
    #[must_use]
    pub fn builtin() -> Self {
        Self::checked_builtin().unwrap_or_else(|errors| panic!("built-in profiles are wrong:\n{errors}"))
    }

    /// The built-in profiles, or their errors.
    ///
    /// # Errors
    /// All errors of the first wrong file.
    pub fn checked_builtin() -> Result<Self, ModelErrors> {
        let mut library = Self::default();
        for (folder, file, text) in FILES {
            library.add(folder, &format!("models/{folder}/{file}"), text, false)?;
        }
        Ok(library)
    }

    /// Add the profiles of a folder with `drives`, `buses`, `controllers` and `hosts` in it. A profile with an existing
    /// name replaces the existing one.
    ///
    /// # Errors
    /// All errors of the first wrong file, or the reason for which it cannot be read. If each file is correct by
    /// itself, the mismatches between them.
    pub fn with_dir(mut self, path: &Path) -> Result<Self, ModelErrors> {
        let mut found = false;
        for folder in ["drives", "buses", "controllers", "hosts"] {
            let folder_path = path.join(folder);
            if !folder_path.is_dir() {
                continue;
            }
            found = true;
            let entries = std::fs::read_dir(&folder_path).map_err(|error| unreadable(&folder_path, &error))?;
            let mut files = Vec::new();
            for entry in entries.take(FILES_MAX) {
                let file = entry.map_err(|error| unreadable(&folder_path, &error))?.path();
                if file.extension().is_some_and(|extension| extension == "toml") {
                    files.push(file);
                }
            }
            files.sort();
            for file in files {
                let text = read_text(&file).map_err(|error| unreadable(&file, &error))?;
                self.add(folder, &file.display().to_string(), &text, true)?;
            }
        }
        if found {
            let wrong = self.dangling();
            return if wrong.is_empty() { Ok(self) } else { Err(ModelErrors(wrong)) };
        }
        if !path.exists() {
            return Err(one_error(path, "does not exist", "name a folder with profiles"));
        }
        Err(one_error(path, "has none of the folders drives, buses, controllers, hosts", "name the folder above them"))
    }

    /// Add one file.
    fn add(&mut self, folder: &str, file: &str, text: &str, is_from_folder: bool) -> Result<(), ModelErrors> {
        let place = || Text { file: file.to_owned(), text: text.to_owned(), is_from_folder };
        match folder {
            "drives" => put(&mut self.drives, DriveProfile::parse(file, text)?, place(), |drive| &drive.head.name),
            "hosts" => put(&mut self.hosts, HostProfile::parse(file, text)?, place(), |host| &host.head.name),
            "buses" => {
                for bus in BusFile::parse(file, text)?.buses {
                    put(&mut self.buses, bus, place(), |bus| &bus.name);
                }
            }
            _ => {
                let controller = ControllerProfile::parse(file, text)?;
                put(&mut self.controllers, controller, place(), |controller| &controller.head.name);
            }
        }
        Ok(())
    }

    pub fn drives(&self) -> impl Iterator<Item = &DriveProfile> + Clone {
        self.drives.iter().map(|(profile, _)| profile)
    }
    pub fn buses(&self) -> impl Iterator<Item = &BusProfile> + Clone {
        self.buses.iter().map(|(profile, _)| profile)
    }
    pub fn controllers(&self) -> impl Iterator<Item = &ControllerProfile> + Clone {
        self.controllers.iter().map(|(profile, _)| profile)
    }
    pub fn hosts(&self) -> impl Iterator<Item = &HostProfile> + Clone {
        self.hosts.iter().map(|(profile, _)| profile)
    }

    /// A drive by one of its names.
    ///
    /// # Errors
    /// There is no drive of this name.
    pub fn drive(&self, name: &str) -> Result<&DriveProfile, LookupError> {
        find(self.drives(), "drive", name, |drive| &drive.head)
    }
    /// The file of a drive, if it is from a folder and not built in.
    ///
    /// # Errors
    /// There is no drive of this name.
    pub fn drive_file(&self, name: &str) -> Result<Option<&str>, LookupError> {
        let found = self.drive(name)?;
        let text = self.drives.iter().find(|(known, _)| known.head.name == found.head.name).map(|(_, text)| text);
        Ok(text.filter(|text| text.is_from_folder).map(|text| text.file.as_str()))
    }
    /// A controller by one of its names.
    ///
    /// # Errors
    /// There is no controller of this name.
    pub fn controller(&self, name: &str) -> Result<&ControllerProfile, LookupError> {
        find(self.controllers(), "controller", name, |controller| &controller.head)
    }
    /// A host by one of its names.
    ///
    /// # Errors
    /// There is no host of this name.
    pub fn host(&self, name: &str) -> Result<&HostProfile, LookupError> {
        find(self.hosts(), "host", name, |host| &host.head)
    }
    /// A bus by one of its names.
    ///
    /// # Errors
    /// There is no bus of this name.
    pub fn bus(&self, name: &str) -> Result<&BusProfile, LookupError> {
        self.buses().find(|bus| bus.answers_to(name)).ok_or_else(|| LookupError {
            kind: "bus",
            name: name.to_owned(),
            known: self.buses().map(|bus| bus.name.clone()).collect(),
        })
    }

    /// The bus on which a controller and a slot agree. For PCI Express: the older generation and the lower number of
    /// lanes of the two. For other buses: the slower one. If the bus of the card is not known: that of the slot.
    #[must_use]
    pub fn agreed<'a>(&'a self, controller: &ControllerProfile, slot: &'a BusProfile) -> &'a BusProfile {
        let Some(card) = controller.card_bus.as_ref().and_then(|name| self.bus(name).ok()) else { return slot };
        if let (Some(one), Some(other)) = (card.generation_and_lanes(), slot.generation_and_lanes()) {
            let name = format!("pcie{}_x{}", one.0.min(other.0), one.1.min(other.1));
            if let Some(both) = self.buses().find(|bus| bus.name == name) {
                return if both.name == slot.name { slot } else { both };
            }
        }
        if card.read.value < slot.read.value {
            card
        } else {
            slot
        }
    }

    /// A drive with some of its values at an end of their range. [`Head::uncertain`] names the fields with a range.
    ///
    /// # Errors
    /// No drive has this name.
    ///
    /// # Panics
    /// Never: text that was read once can be read again. If the ends of ranges contradict each other, the values
    /// between them are used.
    pub fn drive_at(&self, name: &str, edges: &Edges) -> Result<DriveProfile, LookupError> {
        let found = self.drive(name)?;
        let named = |known: &DriveProfile| known.head.name == found.head.name;
        Ok(read_again(&self.drives, found, named, |file, text| DriveProfile::parse_at(file, text, edges).ok()))
    }

    /// A controller with some of its values at an end of their range.
    ///
    /// # Errors
    /// There is no controller of this name.
    pub fn controller_at(&self, name: &str, edges: &Edges) -> Result<ControllerProfile, LookupError> {
        let found = self.controller(name)?;
        let named = |known: &ControllerProfile| known.head.name == found.head.name;
        Ok(read_again(&self.controllers, found, named, |file, text| {
            ControllerProfile::parse_at(file, text, edges).ok()
        }))
    }

    /// A host with some of its values at an end of their range.
    ///
    /// # Errors
    /// There is no host of this name.
    pub fn host_at(&self, name: &str, edges: &Edges) -> Result<HostProfile, LookupError> {
        let found = self.host(name)?;
        let named = |known: &HostProfile| known.head.name == found.head.name;
        Ok(read_again(&self.hosts, found, named, |file, text| HostProfile::parse_at(file, text, edges).ok()))
    }

    /// A bus with some of its values at an end of their range.
    ///
    /// # Errors
    /// There is no bus of this name.
    pub fn bus_at(&self, name: &str, edges: &Edges) -> Result<BusProfile, LookupError> {
        let found = self.bus(name)?;
        let named = |known: &BusProfile| known.name == found.name;
        let read = |file: &_, text: &_| BusFile::parse_at(file, text, edges).ok()?.buses.into_iter().find(named);
        Ok(read_again(&self.buses, found, named, read))
    }

    /// Whether a drive can be plugged in at this controller. A drive with a synthetic service time fits everywhere. If
    /// the host does the work, its slots accept drives for slots. A link without a plug in its profile accepts every
    /// drive.
    ///
    /// # Errors
    /// There is no such link.
    pub fn fits(&self, drive: &DriveProfile, controller: &ControllerProfile) -> Result<bool, LookupError> {
        let (plug, port) = (self.bus(&drive.link)?.plug, self.bus(&controller.link)?.plug);
        let slot = plug == Some(Plug::Pcie) && controller.kind == ControllerKind::Software;
        let taken = matches!(drive.kind, DriveKind::Constant(_)) || slot;
        Ok(taken || plug.zip(port).is_none_or(|(plug, port)| plug.fits(port)))
    }

    /// Errors between profiles: names without a profile (a controller's bus, a drive's link), drives that are faster
    /// than their link, buses of hosts that are links of drives, drives of a test system that do not fit.
    #[must_use]
    pub fn dangling(&self) -> Vec<ModelError> {
        let mut wrong = Vec::new();
        for (drive, text) in &self.drives {
            let bus = self.bus(&drive.link);
            match (&bus, drive.link_rate()) {
                (Ok(bus), Some(rate)) if rate > bus.theory.value => {
                    let reason = format!("{rate} are more than {} carries, {}", bus.name, bus.theory.value);
                    wrong.push(text.complain(
                        "interface",
                        "link_rate",
                        reason,
                        "correct the rate, or name the link that it has",
                    ));
                }
                _ => wrong.extend(bus.err().map(|error| text.unknown("interface", "link", &error))),
            }
        }
        for (controller, text) in &self.controllers {
            let mut note = |table: &str, key: &str, error: Option<LookupError>| {
                wrong.extend(error.map(|error| text.unknown(table, key, &error)));
            };
            note("host", "bus", self.bus(&controller.bus).err());
            note("ports", "link", self.bus(&controller.link).err());
            let adapters = controller.adapters.as_ref();
            note("ports", "adapter_bus", adapters.and_then(|adapters| self.bus(&adapters.bus).err()));
            note("host", "card_bus", controller.card_bus.as_ref().and_then(|card| self.bus(card).err()));
            note("test_bed", "host", self.host(&controller.host).err());
            note("test_bed", "drive", self.drive(&controller.drive).err());
            if let Some(bus) = self.bus(&controller.bus).ok().filter(|bus| !bus.is_of_hosts()) {
                let reason = format!("{} is a link of drives", bus.name);
                wrong.push(text.complain("host", "bus", reason, "name the bus towards the host"));
            }
            if let Some(agreed) = self.bus(&controller.bus).ok().filter(|bus| self.agreed(controller, bus) != *bus) {
                let reason = format!("{} is more than the card can, {:?}", agreed.name, controller.card_bus);
                wrong.push(text.complain("host", "bus", reason, "name what both can, or correct card_bus"));
            }
            let drive = self.drive(&controller.drive);
            if drive.is_ok_and(|drive| self.fits(drive, controller) == Ok(false)) {
                let reason = format!("{} does not fit ports of {}", controller.drive, controller.link);
                wrong.push(text.complain("test_bed", "drive", reason, "name a drive that does, or correct the link"));
            }
        }
        wrong
    }
}

impl Text {
    /// An error of a key in a table; the key in the file may end in a unit.
    fn complain(&self, table: &str, key: &str, reason: String, remedy: &str) -> ModelError {
        let (header, mut inside, mut line) = (format!("[{table}]"), false, 1);
        for (number, text) in (1..).zip(self.text.lines()) {
            let text = text.trim_start();
            if text.starts_with('[') {
                inside = text.starts_with(&header);
            }
            let name = text.split(['=', ' ', '\t']).next().unwrap_or_default();
            if inside && (name == key || name.strip_prefix(key).is_some_and(|rest| rest.starts_with('_'))) {
                line = number;
                break;
            }
        }
        let (file, field) = (self.file.clone(), format!("{table}.{key}"));
        ModelError { file, line, column: 1, field, reason, remedy: remedy.to_owned() }
    }

    fn unknown(&self, table: &str, key: &str, error: &LookupError) -> ModelError {
        let LookupError { kind, name, known } = error;
        let remedy = format!("write one of: {}; or add its profile to the folder", known.join(", "));
        self.complain(table, key, format!("there is no {kind} profile '{name}'"), &remedy)
    }
}

fn put<T>(list: &mut Vec<(T, Text)>, profile: T, text: Text, name: impl Fn(&T) -> &String) {
    match list.iter_mut().find(|(known, _)| name(known) == name(&profile)) {
        Some(place) => *place = (profile, text),
        None => list.push((profile, text)),
    }
}

fn find<'l, T>(
    mut list: impl Iterator<Item = &'l T> + Clone,
    kind: &'static str,
    name: &str,
    head: impl Fn(&T) -> &Head,
) -> Result<&'l T, LookupError> {
    let all = list.clone();
    // A name precedes another profile's alias.
    let by_name = all.clone().find(|profile| head(profile).name == name);
    by_name.or_else(|| list.find(|profile| head(profile).answers_to(name))).ok_or_else(|| LookupError {
        kind,
        name: name.to_owned(),
        known: all.map(|profile| head(profile).name.clone()).collect(),
    })
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn unreadable(path: &Path, error: &std::io::Error) -> ModelErrors {
    one_error(path, &format!("cannot be read: {error}"), "check the name and the rights")
}

fn one_error(path: &Path, reason: &str, remedy: &str) -> ModelErrors {
    ModelErrors(vec![ModelError {
        file: path.display().to_string(),
        line: 0,
        column: 0,
        field: String::new(),
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    }])
}
