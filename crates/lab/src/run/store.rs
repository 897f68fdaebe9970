//! Cells kept in a folder, one file each, so that an interrupted run continues at its last cell.
//!
//! A file is written under another name and renamed when it is complete, so it is complete or absent. It names the cell
//! and a stamp (the program and the profiles); if either differs, the cell is measured again.

use super::outcome::Outcome;
use crate::cell::CellSpec;
use openraid_models::Library;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The form of a cell's file.
pub const CELL_SCHEMA: &str = "openraid/lab-cell/1";
/// Bytes of a cell's file at most.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A cell's file.
#[derive(Serialize)]
struct Written<'a> {
    schema: &'a str,
    stamp: &'a str,
    cell: &'a CellSpec,
    outcome: &'a Outcome,
}

/// The same, read.
#[derive(Deserialize)]
struct Found {
    schema: String,
    stamp: String,
    cell: CellSpec,
    outcome: Outcome,
}

/// Why a folder cannot keep cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreError {
    /// Where.
    pub path: PathBuf,
    /// Why, and what to do.
    pub reason: String,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for StoreError {}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The inputs of a result apart from the cell: this program, to the byte, and all profiles.
#[must_use]
pub fn fingerprint(library: &Library) -> String {
    format!("{VERSION} {:016x} {:016x}", super::program_digest(), profiles_digest(library))
}

/// The same as text: the version, and of program and profiles the first eight digits of the [`fingerprint`]'s, by which
/// two builds of one version are distinguished.
#[must_use]
pub fn build(library: &Library) -> String {
    let (program, profiles) = (super::program_digest() >> 32, profiles_digest(library) >> 32);
    format!("openraid {VERSION}, program {program:08x}, profiles {profiles:08x}")
}

fn profiles_digest(library: &Library) -> u64 {
    crate::cell::digest(&format!("{library:?}"))
}

/// A folder with cells.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    stamp: String,
}

impl Store {
    /// The cells of a folder; it is made if it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(folder: &Path, stamp: &str) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(|error| StoreError {
            path: folder.into(),
            reason: format!("cannot be made: {error}; name another folder"),
        })?;
        Ok(Self { folder: folder.into(), stamp: stamp.into() })
    }

    fn path(&self, cell: &CellSpec) -> PathBuf {
        self.folder.join(format!("{:016x}.json", cell.digest()))
    }

    /// The result of a cell before, if it is kept and still holds. Results alone are: why a cell has none is found at
    /// once, and may not be so the next time, when the target is opened for writing.
    #[must_use]
    pub fn get(&self, cell: &CellSpec) -> Option<Outcome> {
        let mut text = String::new();
        fs::File::open(self.path(cell)).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
        let found: Found = serde_json::from_str(&text).ok()?;
        let fits = found.schema == CELL_SCHEMA && found.stamp == self.stamp && found.cell == *cell;
        fits.then_some(found.outcome)
    }

    /// Keep the result of a cell, if it has one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, cell: &CellSpec, outcome: &Outcome) -> Result<(), StoreError> {
        if outcome.result().is_none() {
            return Ok(());
        }
        let written = Written { schema: CELL_SCHEMA, stamp: &self.stamp, cell, outcome };
        let text = serde_json::to_string(&written).expect("a result is words and numbers");
        write_atomically(&self.path(cell), text.as_bytes())
    }
}

/// Write a file so that it is there wholly or not at all.
///
/// # Errors
/// It cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError {
        path: path.into(),
        reason: format!("cannot be written: {error}; make room or name another folder"),
    };
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut file = fs::File::create(&beside).map_err(failed)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)
}
