//! The knowledge of the machine that a figure is predicted for, and the errors that follow from its unknown parts.
//!
//! A drive's profile is of the drive itself, with values that were measured on it or from its sheet alone, or it is the
//! nearest profile, of another drive. A host's profile is of one machine or card, or of a class of them: present hosts
//! have one profile. Only the user knows that a profile stands for another part ([`StandIns`]); the rest follows from
//! the marks of the profiles' values.
//!
//! The place of a load is not known if the load uses a part of the array without a given beginning, as a file does. That
//! needs no error: the load also runs everywhere and at the end of the array (`varied_runs`).

use super::model_error::{widened, ErrorTerm, LoadClass};
use crate::cell::{machine_spec, CellError, CellSpec, Pattern};
use openraid_models::{ControllerKind, DriveKind, Library};
use serde::Serialize;

/// Parts of a machine whose profile describes another part: there is none of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StandIns {
    /// The drives' profile is the nearest one, of another drive.
    pub drive: bool,
    /// The real controller, processor or file system are others.
    pub host: bool,
}

/// What a profile is to the part that it describes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileFit {
    /// Its own, with values that were measured on it or calibrated on measurements of it.
    Measured,
    /// Its own, written from its data sheet.
    Sheet,
    /// One profile for a class of such parts.
    Class,
    /// The nearest profile, of another part.
    Nearest,
}

/// The knowledge of a machine and of the place of its load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
#[schema(as = RangeKnowledge)]
pub struct Knowledge {
    /// The drives' profile.
    pub drive: ProfileFit,
    /// The profile of the host: controller, processor and file system.
    pub host: ProfileFit,
    /// Is the place of the load in the array known?
    pub place: bool,
    /// Do the drives spin? The rate of a disk's streams is of the disk, that of an SSD's mostly of its link.
    #[serde(skip)]
    pub spins: bool,
}

impl Knowledge {
    /// What the profiles of a cell's machine say, and the user.
    ///
    /// # Errors
    /// A profile does not exist.
    pub fn of(library: &Library, cell: &CellSpec, stand_ins: StandIns) -> Result<Self, CellError> {
        let spec = machine_spec(library, cell)?;
        let (controller, host) = (&spec.controller, library.host(&spec.controller.host)?);
        let drive = match spec.drives.iter().all(|drive| !drive.head.measured.is_empty()) {
            _ if stand_ins.drive => ProfileFit::Nearest,
            true => ProfileFit::Measured,
            false => ProfileFit::Sheet,
        };
        // A card works alike in every host. The work of an array in software takes the host's time.
        let host = match controller.kind {
            _ if stand_ins.host => ProfileFit::Nearest,
            ControllerKind::Hardware if controller.head.measured.is_empty() => ProfileFit::Sheet,
            ControllerKind::Software if host.head.measured.is_empty() => ProfileFit::Class,
            _ => ProfileFit::Measured,
        };
        let spins = spec.drives.iter().any(|drive| matches!(drive.kind, DriveKind::Disk(_)));
        Ok(Self { drive, host, place: knows_place(cell), spins })
    }

    /// Nothing is left to be known.
    #[cfg(test)]
    pub(super) const ALL: Self =
        Self { drive: ProfileFit::Measured, host: ProfileFit::Measured, place: true, spins: true };

    /// The errors that a figure of this class has in addition to the model's own.
    pub fn terms(self, class: LoadClass) -> impl Iterator<Item = ErrorTerm> {
        let is_stream = class == LoadClass::Streams;
        let other_drive = self.drive == ProfileFit::Nearest && (self.spins || !is_stream);
        let other_host = matches!(self.host, ProfileFit::Class | ProfileFit::Nearest) && is_stream;
        let terms = [(other_drive, ErrorTerm::NearestDrive), (other_host, ErrorTerm::UnknownHost)];
        terms.into_iter().filter_map(|(applies, term)| applies.then_some(term))
    }

    /// The percentages below and above a figure of this class for all that is not known.
    pub(super) fn unknown_percent(self, class: LoadClass) -> (f64, f64) {
        self.terms(class).map(|term| term.percent(term.factor())).fold((0.0, 0.0), widened)
    }

    /// The knowledge in words.
    #[must_use]
    pub fn words(self) -> String {
        let fit = |of: ProfileFit| match of {
            ProfileFit::Measured => "their own profile, with measured values",
            ProfileFit::Sheet => "their own profile, from the sheet",
            ProfileFit::Class => "a profile of the class",
            ProfileFit::Nearest => "the nearest profile, of other ones",
        };
        let host = match self.host {
            ProfileFit::Measured => "its own profile, with measured values",
            ProfileFit::Sheet => "the profile of its card",
            other => fit(other),
        };
        let place =
            if self.place { "" } else { "; place of the load in the array: not known (offset= in the job says it)" };
        format!("drives: {}; host, controller and file system: {host}{place}", fit(self.drive))
    }
}

/// Is the beginning of the part that a cell's load uses given, or is the part the whole array?
pub(super) fn knows_place(cell: &CellSpec) -> bool {
    let Pattern::Custom(spec) = &cell.pattern else { return true };
    cell.axes.zone.is_some() || spec.manner().len.is_none() || spec.manner().start.is_some()
}

/// A cell whose load uses another part of an array of `capacity` bytes: all of it, or as many bytes at its end.
pub(super) fn elsewhere(cell: &CellSpec, capacity: u64, at_end: bool) -> CellSpec {
    let mut cell = cell.clone();
    if let Pattern::Custom(spec) = &cell.pattern {
        let mut manner = spec.manner();
        let len = manner.len.filter(|_| at_end);
        manner.start = len.map(|len| capacity.saturating_sub(len) / 4096 * 4096);
        manner.len = None;
        cell.pattern = Pattern::Custom(spec.clone().in_manner(manner));
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Axes;
    use crate::load::{one_size, AccessManner};

    fn known(system: &str, drive: &str, stand_ins: StandIns) -> Knowledge {
        let cell = CellSpec::new(system, "raid5x4".parse().unwrap(), Pattern::Database);
        let cell = cell.with(Axes { drive: Some(drive.into()), ..Axes::default() });
        Knowledge::of(&Library::builtin(), &cell, stand_ins).expect("profiles")
    }

    #[test]
    fn profiles_say_how_they_are_known_and_the_user_says_what_they_stand_for() {
        let fits = |known: Knowledge| (known.drive, known.host);
        let none = StandIns::default();
        assert_eq!(fits(known("3ware-9650se", "wd740gd", none)), (ProfileFit::Measured, ProfileFit::Measured));
        assert_eq!(fits(known("plain-hba", "wd360gd", none)), (ProfileFit::Sheet, ProfileFit::Class));
        assert_eq!(known("openraid", "s3500_480", none).host, ProfileFit::Class, "its host is any present one");
        assert_eq!(fits(known("areca-1220", "f1_1tb", none)), (ProfileFit::Sheet, ProfileFit::Sheet));
        let others = StandIns { drive: true, host: true };
        assert_eq!(fits(known("3ware-9650se", "wd740gd", others)), (ProfileFit::Nearest, ProfileFit::Nearest));
    }

    #[test]
    fn streams_lose_to_a_host_that_is_not_known_and_random_requests_depend_on_the_drive() {
        let terms = |known: Knowledge, class| known.terms(class).collect::<Vec<_>>();
        let disk = known("plain-hba", "exos_x18_18tb", StandIns { drive: true, host: false });
        assert_eq!(terms(disk, LoadClass::Streams), [ErrorTerm::NearestDrive, ErrorTerm::UnknownHost]);
        assert_eq!(terms(disk, LoadClass::Reads), [ErrorTerm::NearestDrive]);
        let ssd = known("plain-hba", "evo870_1tb", StandIns { drive: true, host: false });
        assert_eq!(terms(ssd, LoadClass::Streams), [ErrorTerm::UnknownHost]);
        assert_eq!(terms(Knowledge::ALL, LoadClass::Streams), []);
    }

    #[test]
    fn a_file_lies_anywhere_and_a_part_with_its_beginning_does_not() {
        let of = |start, len| {
            let manner = AccessManner { start, len, ..AccessManner::default() };
            let spec = one_size("file", 4096, 100, 100).in_manner(manner);
            CellSpec::new("openraid", "raid5x4".parse().unwrap(), Pattern::Custom(spec))
        };
        let file = of(None, Some(1 << 30));
        assert!(knows_place(&of(None, None)) && knows_place(&of(Some(0), Some(1 << 30))) && !knows_place(&file));
        assert_eq!(elsewhere(&file, 1 << 40, false), of(None, None));
        assert_eq!(elsewhere(&file, 1 << 40, true), of(Some((1 << 40) - (1 << 30)), None));
    }
}
