//! The description of a cell, and its identity.

use super::axes::{Axes, Axis, AxisError};
use super::pattern::Pattern;
use super::subject::Subject;
use openraid_sim::random::mix;
use serde::{Deserialize, Serialize};

/// The length of a measurement. It is part of the identity: more effort is another measurement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Effort {
    /// Maximum number of requests in the measurement.
    pub requests: u64,
    /// Maximum length of the measurement, seconds of the target's clock.
    pub seconds_max: u32,
    /// Maximum time for the load to become steady, seconds of the target's clock.
    pub warm_seconds_max: u32,
}

impl Effort {
    /// For a look: a few thousand requests.
    pub const QUICK: Self = Self { requests: 6_000, seconds_max: 60, warm_seconds_max: 600 };
    /// For a review: means of random loads within about one percent.
    pub const NORMAL: Self = Self { requests: 30_000, seconds_max: 600, warm_seconds_max: 600 };
    /// For tails.
    pub const FULL: Self = Self { requests: 300_000, seconds_max: 3_600, warm_seconds_max: 1_200 };

    /// Is it a fixed time, independent of the requests, as on a real target?
    #[must_use]
    pub const fn is_a_time(self) -> bool {
        self.requests == u64::MAX
    }
}

/// The state of the array.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ArrayState {
    /// All members work.
    #[default]
    Healthy,
    /// Number of missing members.
    Degraded(u16),
    /// One member is new and being written.
    Rebuilding,
    /// The array changes its shape to this one.
    Changing(Subject),
}

/// One measurement.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CellSpec {
    /// The system: the name of a controller's profile, which also names its drives, bus, host and chunk.
    pub system: String,
    /// The array or drive, such as `raid5x4` or `single`.
    pub subject: Subject,
    /// The kind of load.
    pub pattern: Pattern,
    /// The values of the axes. An axis that is absent has the usual value of the load.
    #[serde(default)]
    pub axes: Axes,
    /// The state of the array: healthy, with missing members, or during a rebuild.
    #[serde(default)]
    pub state: ArrayState,
    /// The maximum length of the measurement.
    pub effort: Effort,
    /// The random seed. On a simulated target the same cell gives the same result.
    pub seed: u64,
    /// The name of this target in a report of several. Empty if the array alone identifies it. It does not change the
    /// measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl CellSpec {
    /// A cell with the pattern's default values.
    #[must_use]
    pub fn new(system: &str, subject: Subject, pattern: Pattern) -> Self {
        Self {
            system: system.into(),
            subject,
            pattern,
            axes: Axes::default(),
            state: ArrayState::Healthy,
            effort: Effort::NORMAL,
            seed: 1,
            label: None,
        }
    }

    /// The same cell with these axes.
    #[must_use]
    pub fn with(mut self, axes: Axes) -> Self {
        self.axes = axes;
        self
    }

    /// Is the cell possible, and does every given axis have a meaning in it?
    ///
    /// # Errors
    /// The axis that is impossible or has no meaning.
    pub fn check(&self) -> Result<(), AxisError> {
        self.axes.check()?;
        if self.system.is_empty() {
            return Err(AxisError { axis: Axis::System, reason: "name a controller's profile".into() });
        }
        super::accepted_axes::check(self)
    }

    /// The whole cell in one line of JSON. Equal cells have equal identities.
    ///
    /// # Panics
    /// Never: a cell always has JSON.
    #[must_use]
    pub fn identity(&self) -> String {
        serde_json::to_string(self).expect("a cell is words and numbers")
    }

    /// A number that is computed from the identity, for seeds and file names. It is not safe against deliberate
    /// collisions.
    #[must_use]
    pub fn digest(&self) -> u64 {
        digest(&self.identity())
    }

    /// The seed of the cell's load. It depends only on the run's seed, the pattern and the repetition. Cells that are
    /// compared get the same requests at the same addresses, on every system and with all axes. Their differences
    /// therefore come from the change under test, and only little from chance.
    #[must_use]
    pub fn load_seed(&self) -> u64 {
        let rep = u64::from(self.axes.rep.unwrap_or(0)).rotate_left(32);
        mix(self.seed ^ digest(self.pattern.name()) ^ rep)
    }
}

/// FNV-1a over 64 bits, followed by one mixing step.
pub(crate) fn digest(text: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    mix(text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_its_identity() {
        let cell = CellSpec::new("3ware-9650se", "raid5x4".parse().unwrap(), Pattern::Database).with(Axes {
            qd: Some(16),
            rd: Some(70),
            ..Axes::default()
        });
        let again: CellSpec = serde_json::from_str(&cell.identity()).unwrap();
        assert_eq!(again, cell);
        let mut other = cell.clone();
        other.axes.qd = Some(17);
        assert_ne!(cell.digest(), other.digest());
        assert_eq!(cell.load_seed(), other.load_seed(), "the same requests for both");
        assert_ne!(cell.load_seed(), CellSpec { seed: 2, ..cell.clone() }.load_seed());
        assert_ne!(cell.load_seed(), CellSpec { pattern: Pattern::WebServer, ..cell.clone() }.load_seed());
        other.axes.rep = Some(1);
        assert_ne!(cell.load_seed(), other.load_seed());
        assert!(CellSpec { system: String::new(), ..cell }.check().is_err());
    }
}
