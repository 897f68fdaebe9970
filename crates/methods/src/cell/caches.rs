//! The caches of a simulated machine, as a result names them. A figure has no meaning without them.

use openraid_models::{DriveKind, DriveProfile};
use openraid_sim::machine::MachineSpec;
use openraid_units::Bytes;
use serde::Serialize;
use std::fmt;

/// The time of acknowledgement, and the caches in use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Caches {
    /// Does the controller acknowledge writes from its cache, or when its journal has them? Otherwise it does when the
    /// members have acknowledged them.
    pub write_back: bool,
    /// Size of the controller's cache; 0 without one.
    pub controller_bytes: u64,
    /// Are the drives' own write caches on?
    pub drives: bool,
    /// Do the drives read ahead by themselves? Absent if they do, or if they cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives_read_ahead: Option<bool>,
    /// Devices of the journal that acknowledges writes: their number and profile. Absent without a journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
}

impl Caches {
    /// The caches of a machine.
    #[must_use]
    pub fn of(spec: &MachineSpec) -> Self {
        let reads_on = |drive: &DriveProfile| spec.drive_reads_ahead(drive);
        let off = spec.drives.iter().all(|drive| can_read_ahead(drive) && !reads_on(drive));
        Self {
            write_back: spec.writes_back(),
            controller_bytes: spec.cache_size().get(),
            drives: spec.drive_caches(),
            drives_read_ahead: off.then_some(false),
            journal: journal(&spec.journal),
        }
    }
}

impl fmt::Display for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = Bytes::mib(1).get();
        let size = match self.controller_bytes % mib {
            0 => format!("{} MiB", self.controller_bytes / mib),
            _ => format!("{} KiB", self.controller_bytes >> 10),
        };
        match (self.write_back, self.controller_bytes) {
            (true, _) if self.journal.is_some() => {
                write!(f, "journal on {}, cache {size}", self.journal.as_deref().unwrap_or_default())?;
            }
            (true, _) => write!(f, "write-back cache {size}")?,
            (false, 0) => f.write_str("write-through, no cache")?,
            (false, _) => write!(f, "write-through, read cache {size}")?,
        }
        write!(f, ", drive caches {}", if self.drives { "on" } else { "off" })?;
        if self.drives_read_ahead == Some(false) {
            f.write_str(", drives do not read ahead")?;
        }
        Ok(())
    }
}

/// Whether a drive has read-ahead that can be on or off.
const fn can_read_ahead(drive: &DriveProfile) -> bool {
    matches!(drive.kind, DriveKind::Disk(_) | DriveKind::Ssd(_))
}

/// The devices of a journal, for readers.
fn journal(devices: &[DriveProfile]) -> Option<String> {
    let name = &devices.first()?.head.name;
    Some(if devices.len() > 1 { format!("{} x {name}, mirrored", devices.len()) } else { name.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::{machine_spec, Axes, CellSpec, Pattern};
    use super::*;
    use openraid_models::Library;

    #[test]
    fn a_journal_is_named_with_its_devices_and_its_cache_and_a_single_drive_has_none() {
        let library = Library::builtin();
        let said = |subject: &str, journal: Option<&str>, cache_mib: Option<u32>| {
            let axes = Axes { journal: journal.map(Into::into), cache_mib, ..Axes::default() };
            let cell = CellSpec::new("openraid", subject.parse().unwrap(), Pattern::Database).with(axes);
            Caches::of(&machine_spec(&library, &cell).unwrap()).to_string()
        };
        let one = "journal on s3500_480, cache 64 MiB, drive caches on";
        assert_eq!(said("raid5x4", Some("s3500_480"), None), one);
        let two = "journal on 2 x s3500_480, mirrored, cache 256 MiB, drive caches on";
        assert_eq!(said("raid5x4", Some("2xs3500_480"), Some(256)), two);
        assert_eq!(said("single", Some("s3500_480"), None), "write-through, no cache, drive caches on");
        assert_eq!(said("raid5x4", None, None), "write-through, no cache, drive caches on");
    }

    #[test]
    fn read_ahead_of_the_drives_is_named_if_it_is_off() {
        let library = Library::builtin();
        let caches = |drive_read_ahead| {
            let axes = Axes { drive_read_ahead, ..Axes::default() };
            let cell = CellSpec::new("openraid", "raid5x4".parse().unwrap(), Pattern::Database).with(axes);
            Caches::of(&machine_spec(&library, &cell).unwrap())
        };
        assert_eq!(caches(Some(true)), caches(None));
        let off = "write-through, no cache, drive caches on, drives do not read ahead";
        assert_eq!(caches(Some(false)).to_string(), off);
        let json = serde_json::to_value(caches(None)).unwrap();
        assert!(json.get("drives_read_ahead").is_none(), "{json}");
    }
}
