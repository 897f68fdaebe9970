//! The keyword arguments of a metric, which are axes of the laboratory: the valid values of each, checked once, in one
//! canonical form.
//!
//! This module must never guess a value: an absent value stays absent, and [`crate::workload`] makes the defaults.

use crate::subject::clip;
pub use openraid_methods::cell::{Axis, AxisValue};
use openraid_methods::cell::{
    CacheMode, Direction, FileSet, FileStep, FileSystem, Pattern, Place, Recreated, TraceApp, ZoneChoice,
};
use openraid_models::Library;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

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
    /// A word for a pattern.
    Pattern,
}

/// Directions, and the steps of FC-Test.
const OPERATIONS: &[&str] = &[
    Direction::Read.word(),
    Direction::Write.word(),
    FileStep::Create.word(),
    FileStep::CopySame.word(),
    FileStep::CopyOther.word(),
];
/// Application traces, and the two totals of the whole suite.
const APPLICATIONS: &[&str] = &[
    TraceApp::Winmark99.word(),
    TraceApp::Photoshop40.word(),
    TraceApp::Soundforge40.word(),
    TraceApp::Visualcpp50.word(),
    "business",
    "highend",
];
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

/// The axes of the language, in the order in which calls are written.
pub const CLAIM_AXES: [Axis; 29] = [
    Axis::Rd,
    Axis::Qd,
    Axis::Oio,
    Axis::Workers,
    Axis::Users,
    Axis::Bs,
    Axis::Th,
    Axis::Pat,
    Axis::Op,
    Axis::Set,
    Axis::Fs,
    Axis::App,
    Axis::Cache,
    Axis::CacheMib,
    Axis::Ctl,
    Axis::Bus,
    Axis::Zone,
    Axis::Pos,
    Axis::Cyc,
    Axis::After,
    Axis::WarmS,
    Axis::Secs,
    Axis::Slow,
    Axis::Member,
    Axis::HostSpeed,
    Axis::Rep,
    Axis::N,
    Axis::K,
    Axis::P,
];

/// The axis of the language with this name.
#[must_use]
pub fn axis_named(name: &str) -> Option<Axis> {
    CLAIM_AXES.into_iter().find(|axis| axis.word() == name)
}

const fn domain(axis: Axis) -> Domain {
    use Domain::{Real, Whole, Words};
    const MIB: u64 = 1 << 20;
    match axis {
        Axis::Rd => Whole(0, 100),
        Axis::Qd => Whole(1, 256),
        Axis::Oio => Whole(1, 4096),
        Axis::Workers => Whole(1, 64),
        Axis::Users => Whole(1, 256),
        Axis::Bs => Whole(512, 16 * MIB),
        Axis::Th => Whole(1, 4),
        Axis::Pat => Domain::Pattern,
        Axis::Op => Words(OPERATIONS),
        Axis::Set => Words(FileSet::WORDS),
        Axis::Fs => Words(FileSystem::WORDS),
        Axis::App => Words(APPLICATIONS),
        Axis::Cache => Words(CacheMode::WORDS),
        Axis::CacheMib => Whole(0, 65_536),
        Axis::Ctl => Domain::Controller,
        Axis::Bus => Words(BUSES),
        Axis::Zone => Words(ZoneChoice::WORDS),
        Axis::Pos => Words(Place::WORDS),
        Axis::Cyc => Whole(1, 2),
        Axis::After => Words(Recreated::WORDS),
        Axis::WarmS => Real(0.0, 86_400.0),
        Axis::Secs => Real(0.001, 86_400.0),
        Axis::Slow => Whole(0, 1),
        Axis::Member => Whole(0, 383),
        Axis::HostSpeed => Real(0.01, 100.0),
        Axis::Rep => Whole(0, 1000),
        Axis::N => Whole(1, 384),
        Axis::K => Whole(0, 384),
        Axis::P => Real(0.0, 100.0),
        // The system of a claim is not an argument, and these axes are only of cells.
        Axis::System | Axis::Step | Axis::Drive | Axis::Journal | Axis::Chunk => Words(&[]),
    }
}

/// Axes with their checked values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AxisValues(BTreeMap<Axis, AxisValue>);

impl AxisValues {
    /// No axes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Set the value of an axis.
    ///
    /// # Errors
    /// The value is not valid for the axis.
    pub fn set(&mut self, axis: Axis, value: AxisValue) -> Result<(), AxisValueError> {
        let domain = domain(axis);
        let fits = match (&value, domain) {
            (AxisValue::Number(number), Domain::Whole(least, most)) => whole(*number, least, most).is_some(),
            (AxisValue::Number(number), Domain::Real(least, most)) => (least..=most).contains(number),
            (AxisValue::Word(word), Domain::Words(words)) => words.contains(&word.as_str()),
            (AxisValue::Word(word), Domain::Controller) => is_controller(word),
            (AxisValue::Word(word), Domain::Pattern) => Pattern::from_axis(word).is_some(),
            _ => false,
        };
        if !fits {
            return Err(AxisValueError { axis, given: clip(&value.to_string()), takes: takes(domain) });
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

impl fmt::Display for AxisValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (axis, value)) in self.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{}={value}", axis.word())?;
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
        Domain::Pattern => format!("one of {}", Pattern::AXIS_WORDS.map(|(word, ..)| word).join(", ")),
        Domain::Controller => format!("one of {}, or the name of a controller's profile", CONTROLLERS.join(", ")),
    }
}

/// A value that is not valid for its axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisValueError {
    pub axis: Axis,
    /// The given value.
    pub given: String,
    /// The valid values.
    pub takes: String,
}

impl fmt::Display for AxisValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} makes no sense; {} takes {}", self.axis, self.given, self.axis, self.takes)
    }
}

impl std::error::Error for AxisValueError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_takes_its_bounds_and_refuses_what_lies_beyond() {
        for axis in CLAIM_AXES {
            assert_eq!(axis_named(axis.word()), Some(axis));
            let mut axes = AxisValues::new();
            let number = |value: f64| AxisValue::Number(value);
            match domain(axis) {
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
                Domain::Words(_) | Domain::Controller | Domain::Pattern => {
                    let words = match domain(axis) {
                        Domain::Words(words) => words.to_vec(),
                        Domain::Pattern => Pattern::AXIS_WORDS.map(|(word, ..)| word).to_vec(),
                        _ => [CONTROLLERS, &["3ware-9650se", "LSI-9260-8i"]].concat(),
                    };
                    for word in &words {
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
        let defaults = AxisValues::new().number(Axis::Qd, 4).word(Axis::Fs, "ntfs");
        let given = AxisValues::new().word(Axis::Fs, "fat32").number(Axis::Rd, 0);
        let both = given.or(&defaults);
        assert_eq!(both.to_string(), "rd=0, qd=4, fs='fat32'");
        assert_eq!((both.whole(Axis::Qd), both.text(Axis::Fs), both.has(Axis::Bs)), (Some(4), Some("fat32"), false));
        assert_eq!(both.without(Axis::Qd).to_string(), "rd=0, fs='fat32'");
    }
}
