//! The caches of a simulated machine, as a result names them: a figure means little without them.

use openraid_sim::machine::MachineSpec;
use openraid_units::Bytes;
use serde::Serialize;
use std::fmt;

/// When writes are acknowledged, and which caches are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, utoipa::ToSchema)]
pub struct Caches {
    /// The controller acknowledges writes from its cache; otherwise when the members have acknowledged them.
    pub write_back: bool,
    /// Size of the controller's cache; zero where it has none.
    pub controller_bytes: u64,
    /// The write caches of the drives themselves are on.
    pub drives: bool,
}

impl Caches {
    /// The caches of a machine.
    #[must_use]
    pub fn of(spec: &MachineSpec) -> Self {
        Self { write_back: spec.writes_back(), controller_bytes: spec.cache_size().get(), drives: spec.drive_caches() }
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
            (true, _) => write!(f, "write-back cache {size}")?,
            (false, 0) => f.write_str("write-through, no cache")?,
            (false, _) => write!(f, "write-through, read cache {size}")?,
        }
        write!(f, ", drive caches {}", if self.drives { "on" } else { "off" })
    }
}
