//! Constants and names of the language.
//!
//! This module must never contain a figure of a review: it has block sizes, depths and arrays.

use crate::subject::{NamedDrive, Subject, JBOD, LEVELS};
use starlark::environment::GlobalsBuilder;

/// Percentages of reads.
pub const RD: [i32; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// Depths of loads with large depths.
pub const QDL: [i32; 5] = [1, 4, 16, 64, 256];
/// Depths of the Workstation load.
pub const QDW: [i32; 6] = [1, 2, 4, 8, 16, 32];
/// Outstanding requests of all workers.
pub const OIO: [i32; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Block sizes of sequential methods: 512 B to 1 MiB.
pub const SEQ: [i32; 12] = doubling();
/// Block sizes of random methods: 512 B to 2 MiB.
pub const RND: [i32; 13] = doubling();
/// Steps of FC-Test.
pub const OPS: [&str; 4] = ["create", "read", "copy_same", "copy_other"];
/// File-sets.
pub const SETS: [&str; 5] = ["install", "iso", "mp3", "programs", "windows"];
/// Application traces.
pub const APPS: [&str; 4] = ["winmark99", "photoshop40", "soundforge40", "visualcpp50"];
/// Arrays of up to four drives.
pub const S4: [&str; 8] = ["single", "raid0x2", "raid0x3", "raid0x4", "raid1x2", "raid10x4", "raid5x3", "raid5x4"];
/// Arrays of eight drives.
pub const S8: [&str; 6] = ["single", "raid0x8", "raid5x8", "raid6x8", "raid10x8", "raid50x8"];
/// Stripes of two to six drives.
pub const R0: [&str; 5] = ["raid0x2", "raid0x3", "raid0x4", "raid0x5", "raid0x6"];

/// 512 and its successive doublings.
const fn doubling<const N: usize>() -> [i32; N] {
    let mut sizes = [512; N];
    let mut index = 1;
    while index < N {
        sizes[index] = sizes[index - 1] * 2;
        index += 1;
    }
    sizes
}

/// Names of constants; `T` is the tolerance of the claim.
const CONSTANTS: &[&str] = &[
    "K", "M", "T", "RD", "QDL", "QDW", "OIO", "SEQ", "RND", "OPS", "SETS", "APPS", "S4", "S8", "R0", "True", "False",
    "None",
];

/// Functions of Starlark that checks may use.
pub const STARLARK: &[&str] = &[
    "all",
    "any",
    "bool",
    "enumerate",
    "float",
    "int",
    "len",
    "list",
    "max",
    "min",
    "range",
    "reversed",
    "sorted",
    "str",
    "tuple",
    "zip",
];

/// Whether the name is a constant of the language.
pub fn is_constant(name: &str) -> bool {
    CONSTANTS.contains(&name)
}

/// The subject with this name.
pub fn subject(name: &str) -> Option<Subject> {
    name.parse().ok()
}

/// Whether the name is a level without a width.
pub fn is_level(name: &str) -> bool {
    name == JBOD || LEVELS.into_iter().any(|level| level.word() == name)
}

/// Define the constants.
pub fn constants(builder: &mut GlobalsBuilder) {
    builder.set("K", 1024);
    builder.set("M", 1024 * 1024);
    builder.set("RD", RD.to_vec());
    builder.set("QDL", QDL.to_vec());
    builder.set("QDW", QDW.to_vec());
    builder.set("OIO", OIO.to_vec());
    builder.set("SEQ", SEQ.to_vec());
    builder.set("RND", RND.to_vec());
    builder.set("OPS", OPS.to_vec());
    builder.set("SETS", SETS.to_vec());
    builder.set("APPS", APPS.to_vec());
    builder.set("S4", S4.to_vec());
    builder.set("S8", S8.to_vec());
    builder.set("R0", R0.to_vec());
}

/// All names that a message may propose.
pub fn all() -> Vec<String> {
    let mut names: Vec<String> = CONSTANTS.iter().chain(STARLARK).map(ToString::to_string).collect();
    names.extend(crate::metric::Metric::ALL.map(|metric| metric.name().to_owned()));
    names.extend(super::helpers::NAMES.iter().map(ToString::to_string));
    names.extend(NamedDrive::ALL.map(|drive| drive.name().to_owned()));
    names.extend(["single", "slow_single"].map(str::to_owned));
    names
}
