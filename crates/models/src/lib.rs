//! Profiles of drives, buses, controllers and hosts: data with a source for every value.
//!
//! A profile is a TOML file. Each value has its unit in its key, and names its source. A value has a range if the
//! source is an estimate or a recollection. The reader never panics and never guesses. A file with missing,
//! contradictory or unknown content gives a list of errors with file, line, column, field, reason and remedy. This
//! crate does not simulate, and no result of a review is an input.

#![forbid(unsafe_code)]

mod arm_motion;
mod bus;
mod controller;
mod disk;
mod drive;
mod error;
mod host;
mod library;
mod power;
mod profile_head;
mod quirk;
mod reader;
mod reliability;
mod sourced;
mod ssd;
mod unit;

pub use arm_motion::ArmMotion;
pub use bus::{BusFile, BusProfile, Duplex, Plug};
pub use controller::{
    Adapters, ControllerKind, ControllerProfile, CpuProfile, DataPath, LevelRule, MirrorReadRule, Protection,
    ReadAheadRule, XorProfile,
};
pub use disk::{DiskProfile, QueueKind, SeekPoints, SeekTable, ShingledProfile};
pub use drive::{ConstantProfile, DriveKind, DriveProfile, ServiceLaw, SheetFigure, SheetKey};
pub use error::{ModelError, ModelErrors};
pub use host::HostProfile;
pub use library::{Library, LookupError};
pub use openraid_units::ArrayLevel;
pub use power::PowerProfile;
pub use profile_head::Head;
pub use quirk::{Quirk, QuirkKind, QuirkValue, QUIRKS};
pub use reader::{Edge, Edges};
pub use reliability::ReliabilityProfile;
pub use sourced::{Confidence, Rate, Sourced};
pub use ssd::{SlcCache, SsdProfile};
