//! The caches of a simulated machine, as a result names them. A figure has no meaning without them.

use openraid_models::DriveProfile;
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
    /// Devices of the journal that acknowledges writes: their number and profile. Absent without a journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
}

impl Caches {
    /// The caches of a machine.
    #[must_use]
    pub fn of(spec: &MachineSpec) -> Self {
        Self {
            write_back: spec.writes_back(),
            controller_bytes: spec.cache_size().get(),
            drives: spec.drive_caches(),
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
        write!(f, ", drive caches {}", if self.drives { "on" } else { "off" })
    }
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
}
