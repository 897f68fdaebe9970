//! The keyword arguments of a metric: the valid values of each, checked once, in one canonical form.
//!
//! This module must never guess a value: an absent value stays absent, and [`crate::workload`] makes the defaults.

use crate::subject::clip;
use openraid_models::Library;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

/// A keyword argument.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    /// Percentage of reads.
    Rd,
    /// Outstanding requests of each worker.
    Qd,
    /// Outstanding requests of all workers.
    Oio,
    /// Threads of the generator.
    Workers,
    /// Simultaneous users of an application trace.
    Users,
    /// Block size in bytes.
    Bs,
    /// Sequential clients on disjoint zones.
    Th,
    /// A pattern other than the claim's own.
    Pat,
    /// Direction, or step of FC-Test.
    Op,
    /// File-set.
    Set,
    /// File system model.
    Fs,
    /// Application trace.
    App,
    /// Write-back or write-through.
    Cache,
    /// Size of the controller's cache, MiB.
    CacheMib,
    /// Another controller with the same drives.
    Ctl,
    /// Another host bus.
    Bus,
    /// Test zone.
    Zone,
    /// Place on the transfer graph.
    Pos,
    /// Cycle of the two-cycle order test.
    Cyc,
    /// The step after the random cycle.
    After,
    /// Load of the same kind before the measurement, in seconds.
    WarmS,
    /// Length of the measurement, in seconds.
    Secs,
    /// One slow member in the array.
    Slow,
    /// Number of one member.
    Member,
    /// Factor of the host's CPU speed.
    HostSpeed,
    /// Repetition.
    Rep,
    /// Members, for `survive_fraction`.
    N,
    /// Failures, for `survive_fraction`.
    K,
    /// Percentile, for `pctl_us`.
    P,
}

/// The values of an axis.
#[derive(Clone, Copy, Debug)]
enum Domain {
    /// A whole number.
    Whole(u64, u64),
    /// Any number.
    Real(f64, f64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// A controller: one of [`CONTROLLERS`], or the name of a profile.
    Controller,
}

/// All patterns of the language. `wk` is a second name of the Workstation pattern that published claims use.
const PATTERNS: &[&str] = &["db", "sr", "sw", "rr", "rw", "fs", "web", "ws", "wk", "mt", "rt", "seqssd", "rndssd"];
/// Directions, and the steps of FC-Test.
const OPERATIONS: &[&str] = &["read", "write", "create", "copy_same", "copy_other"];
/// File-sets of FC-Test.
const SETS: &[&str] = &["install", "iso", "mp3", "programs", "windows"];
/// Application traces, and the two totals of the whole suite.
const APPLICATIONS: &[&str] = &["winmark99", "photoshop40", "soundforge40", "visualcpp50", "business", "highend"];
/// Controllers, by their names in the language.
const CONTROLLERS: &[&str] = &[
    "9650se",
    "8506-8",
    "8500-8",
    "rst",
    "9260-8i",
    "8708em2",
    "hba92xx",
    "sas3041e-r",
    "icp9024ro",
    "areca1220",
    "openraid",
];
/// Host buses.
pub const BUSES: &[&str] = &[
    "pci64_33",
    "pci64_66",
    "pcix64_133",
    "pcie1_x1",
    "pcie1_x4",
    "pcie1_x8",
    "pcie2_x1",
    "pcie2_x4",
    "pcie2_x8",
    "pcie3_x1",
    "pcie3_x4",
    "pcie3_x8",
    "dmi2",
];

impl Axis {
    /// All axes, in the order in which calls are written.
    pub const ALL: [Self; 29] = [
        Self::Rd,
        Self::Qd,
        Self::Oio,
        Self::Workers,
        Self::Users,
        Self::Bs,
        Self::Th,
        Self::Pat,
        Self::Op,
        Self::Set,
        Self::Fs,
        Self::App,
        Self::Cache,
        Self::CacheMib,
        Self::Ctl,
        Self::Bus,
        Self::Zone,
        Self::Pos,
        Self::Cyc,
        Self::After,
        Self::WarmS,
        Self::Secs,
        Self::Slow,
        Self::Member,
        Self::HostSpeed,
        Self::Rep,
        Self::N,
        Self::K,
        Self::P,
    ];

    const fn row(self) -> (&'static str, Domain) {
        use Domain::{Real, Whole, Words};
        const MIB: u64 = 1 << 20;
        match self {
            Self::Rd => ("rd", Whole(0, 100)),
            Self::Qd => ("qd", Whole(1, 256)),
            Self::Oio => ("oio", Whole(1, 4096)),
            Self::Workers => ("workers", Whole(1, 64)),
            Self::Users => ("users", Whole(1, 256)),
            Self::Bs => ("bs", Whole(512, 16 * MIB)),
            Self::Th => ("th", Whole(1, 4)),
            Self::Pat => ("pat", Words(PATTERNS)),
            Self::Op => ("op", Words(OPERATIONS)),
            Self::Set => ("set", Words(SETS)),
            Self::Fs => ("fs", Words(&["ntfs", "fat32"])),
            Self::App => ("app", Words(APPLICATIONS)),
            Self::Cache => ("cache", Words(&["wb", "wt"])),
            Self::CacheMib => ("cache_mib", Whole(0, 65_536)),
            Self::Ctl => ("ctl", Domain::Controller),
            Self::Bus => ("bus", Words(BUSES)),
            Self::Zone => ("zone", Words(&["full", "32g"])),
            Self::Pos => ("pos", Words(&["begin", "end"])),
            Self::Cyc => ("cyc", Whole(1, 2)),
            Self::After => ("after", Words(&["recreate", "power_cycle"])),
            Self::WarmS => ("warm_s", Real(0.0, 86_400.0)),
            Self::Secs => ("secs", Real(0.001, 86_400.0)),
            Self::Slow => ("slow", Whole(0, 1)),
            Self::Member => ("member", Whole(0, 383)),
            Self::HostSpeed => ("host_speed", Real(0.01, 100.0)),
            Self::Rep => ("rep", Whole(0, 1000)),
            Self::N => ("n", Whole(1, 384)),
            Self::K => ("k", Whole(0, 384)),
            Self::P => ("p", Real(0.0, 100.0)),
        }
    }

    /// The name in a claim.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The axis with this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }
}

/// The value of an axis.
#[derive(Clone, PartialEq, Debug)]
pub enum AxisValue {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
}

impl fmt::Display for AxisValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => write!(f, "'{word}'"),
        }
    }
}

/// Axes with their checked values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axes(BTreeMap<Axis, AxisValue>);

impl Axes {
    /// No axes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Set the value of an axis.
    ///
    /// # Errors
    /// The value is not valid for the axis.
    pub fn set(&mut self, axis: Axis, value: AxisValue) -> Result<(), AxisError> {
        let (name, domain) = axis.row();
        let fits = match (&value, domain) {
            (AxisValue::Number(number), Domain::Whole(least, most)) => whole(*number, least, most).is_some(),
            (AxisValue::Number(number), Domain::Real(least, most)) => (least..=most).contains(number),
            (AxisValue::Word(word), Domain::Words(words)) => words.contains(&word.as_str()),
            (AxisValue::Word(word), Domain::Controller) => is_controller(word),
            _ => false,
        };
        if !fits {
            return Err(AxisError { axis: name, given: clip(&value.to_string()), takes: takes(domain) });
        }
        self.0.insert(axis, value);
        Ok(())
    }

    /// The same axes with another one, for axes and values that are known to be valid.
    ///
    /// # Panics
    /// The value is not valid for the axis.
    #[must_use]
    pub fn with(mut self, axis: Axis, value: AxisValue) -> Self {
        self.set(axis, value).unwrap_or_else(|error| panic!("bug: {error}"));
        self
    }
    /// The same axes with a number for another one.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // every whole axis is below 2^53
    pub fn number(self, axis: Axis, value: u64) -> Self {
        self.with(axis, AxisValue::Number(value as f64))
    }
    /// The same axes with a word for another one.
    #[must_use]
    pub fn word(self, axis: Axis, value: &str) -> Self {
        self.with(axis, AxisValue::Word(value.to_owned()))
    }
    /// The same axes without one of them.
    #[must_use]
    pub fn without(mut self, axis: Axis) -> Self {
        self.0.remove(&axis);
        self
    }

    /// Whether the axis has a value.
    #[must_use]
    pub fn has(&self, axis: Axis) -> bool {
        self.0.contains_key(&axis)
    }
    /// The value of an axis.
    #[must_use]
    pub fn get(&self, axis: Axis) -> Option<&AxisValue> {
        self.0.get(&axis)
    }
    /// The value of an axis as a whole number.
    #[must_use]
    pub fn whole(&self, axis: Axis) -> Option<u64> {
        match self.0.get(&axis) {
            Some(AxisValue::Number(number)) => whole(*number, 0, u64::MAX),
            _ => None,
        }
    }
    /// The value of an axis as a number.
    #[must_use]
    pub fn real(&self, axis: Axis) -> Option<f64> {
        match self.0.get(&axis) {
            Some(AxisValue::Number(number)) => Some(*number),
            _ => None,
        }
    }
    /// The value of an axis as a word.
    #[must_use]
    pub fn text(&self, axis: Axis) -> Option<&str> {
        match self.0.get(&axis) {
            Some(AxisValue::Word(word)) => Some(word),
            _ => None,
        }
    }
    /// All axes with values.
    pub fn iter(&self) -> impl Iterator<Item = (Axis, &AxisValue)> {
        self.0.iter().map(|(axis, value)| (*axis, value))
    }
    /// These axes, with the values of `defaults` for the absent ones.
    #[must_use]
    pub fn or(&self, defaults: &Self) -> Self {
        let mut both = defaults.clone();
        both.0.extend(self.0.iter().map(|(axis, value)| (*axis, value.clone())));
        both
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (axis, value)) in self.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{}={value}", axis.name())?;
        }
        Ok(())
    }
}

/// A number as a whole number between `least` and `most`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn whole(number: f64, least: u64, most: u64) -> Option<u64> {
    // Above 2^53, a float cannot represent every whole number.
    let exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
    let value = number as u64;
    (exact && (least..=most).contains(&value)).then_some(value)
}

/// Whether a controller has this name. Profiles have other names, too, and the language accepts them as a claim's
/// system.
fn is_controller(word: &str) -> bool {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let known = || LIBRARY.get_or_init(Library::builtin).controller(&word.to_ascii_lowercase()).is_ok();
    CONTROLLERS.contains(&word) || known()
}

fn takes(domain: Domain) -> String {
    match domain {
        Domain::Whole(least, most) => format!("a whole number from {least} to {most}"),
        Domain::Real(least, most) => format!("a number from {least} to {most}"),
        Domain::Words(words) => format!("one of {}", words.join(", ")),
        Domain::Controller => format!("one of {}, or the name of a controller's profile", CONTROLLERS.join(", ")),
    }
}

/// A value that is not valid for its axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisError {
    /// The axis.
    pub axis: &'static str,
    /// The given value.
    pub given: String,
    /// The valid values.
    pub takes: String,
}

impl fmt::Display for AxisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} makes no sense; {} takes {}", self.axis, self.given, self.axis, self.takes)
    }
}

impl std::error::Error for AxisError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_takes_its_bounds_and_refuses_what_lies_beyond() {
        for axis in Axis::ALL {
            assert_eq!(Axis::of(axis.name()), Some(axis));
            let mut axes = Axes::new();
            let number = |value: f64| AxisValue::Number(value);
            match axis.row().1 {
                #[allow(clippy::cast_precision_loss)]
                Domain::Whole(least, most) => {
                    let (least, most) = (least as f64, most as f64);
                    assert!(axes.set(axis, number(least)).is_ok() && axes.set(axis, number(most)).is_ok());
                    for bad in [least - 1.0, most + 1.0, least + 0.5, f64::NAN, f64::INFINITY] {
                        assert!(axes.set(axis, number(bad)).is_err(), "{axis:?} {bad}");
                    }
                    assert!(axes.set(axis, AxisValue::Word("1".into())).is_err());
                    assert_eq!(axes.real(axis), Some(most), "what was refused is not kept");
                }
                Domain::Real(least, most) => {
                    assert!(axes.set(axis, number(least)).is_ok() && axes.set(axis, number(most)).is_ok());
                    assert!(axes.set(axis, number(most * 1.01)).is_err() && axes.set(axis, number(f64::NAN)).is_err());
                }
                Domain::Words(_) | Domain::Controller => {
                    let words = match axis.row().1 {
                        Domain::Words(words) => words,
                        _ => &[CONTROLLERS, &["3ware-9650se", "LSI-9260-8i"]].concat(),
                    };
                    for word in words {
                        assert!(axes.set(axis, AxisValue::Word((*word).into())).is_ok());
                        assert_eq!(axes.text(axis), Some(*word));
                    }
                    let error = axes.set(axis, AxisValue::Word("nonsense".into())).expect_err("no word of it");
                    assert!(error.to_string().contains(words[0]), "{error}");
                    assert!(axes.set(axis, number(1.0)).is_err());
                }
            }
        }
    }

    #[test]
    fn given_values_win_over_defaults_and_the_text_is_canonical() {
        let defaults = Axes::new().number(Axis::Qd, 4).word(Axis::Fs, "ntfs");
        let given = Axes::new().word(Axis::Fs, "fat32").number(Axis::Rd, 0);
        let both = given.or(&defaults);
        assert_eq!(both.to_string(), "rd=0, qd=4, fs='fat32'");
        assert_eq!((both.whole(Axis::Qd), both.text(Axis::Fs), both.has(Axis::Bs)), (Some(4), Some("fat32"), false));
        assert_eq!(both.without(Axis::Qd).to_string(), "rd=0, fs='fat32'");
    }
}
