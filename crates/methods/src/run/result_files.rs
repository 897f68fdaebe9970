//! Stores the results of cells in a folder, one file each, so that an interrupted run continues at its last cell.
//!
//! A file is written under another name and renamed when it is complete, so it is never incomplete. It contains the
//! cell and a stamp (the program and the profiles); if either differs, the cell is measured again.

use super::outcome::Measurement;
use crate::cell::CellSpec;
use openraid_models::Library;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Schema name of a cell's file.
pub const CELL_SCHEMA: &str = "openraid/lab-cell/1";
/// Maximum size of a cell's file in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The contents of a cell's file, for writing.
#[derive(Serialize)]
struct NewCellFile<'a> {
    schema: &'a str,
    stamp: &'a str,
    cell: &'a CellSpec,
    outcome: &'a Measurement,
}

/// The contents of a cell's file, as read.
#[derive(Deserialize)]
struct CellFile {
    schema: String,
    stamp: String,
    cell: CellSpec,
    outcome: Measurement,
}

/// The reason why a folder cannot store cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellStoreError {
    /// Path of the file or folder.
    pub path: PathBuf,
    /// The reason and the remedy.
    pub reason: String,
}

impl fmt::Display for CellStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for CellStoreError {}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The inputs of a result other than the cell: this program's file, and all profiles.
#[must_use]
pub fn fingerprint(library: &Library) -> String {
    format!("{VERSION} {:016x} {:016x}", super::program_digest(), profiles_digest(library))
}

/// The inputs as text: the version, and the first eight digits of the [`fingerprint`] of program and profiles. The
/// digits distinguish two builds of one version.
#[must_use]
pub fn build(library: &Library) -> String {
    let (program, profiles) = (super::program_digest() >> 32, profiles_digest(library) >> 32);
    format!("openraid {VERSION}, program {program:08x}, profiles {profiles:08x}")
}

fn profiles_digest(library: &Library) -> u64 {
    crate::cell::digest(&format!("{library:?}"))
}

/// A folder with stored cells.
#[derive(Clone, Debug)]
pub struct CellStore {
    folder: PathBuf,
    stamp: String,
}

impl CellStore {
    /// Opens the folder with cells; if it does not exist, it is created.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(folder: &Path, stamp: &str) -> Result<Self, CellStoreError> {
        fs::create_dir_all(folder).map_err(|error| CellStoreError {
            path: folder.into(),
            reason: format!("cannot be made: {error}; name another folder"),
        })?;
        Ok(Self { folder: folder.into(), stamp: stamp.into() })
    }

    fn path(&self, cell: &CellSpec) -> PathBuf {
        self.folder.join(format!("{:016x}.json", cell.digest()))
    }

    /// The stored result of a cell, if there is one that is still valid. Only results are stored. The reason of a
    /// missing result is found quickly, and may no longer apply the next time, for example if the target is then opened
    /// for writing.
    #[must_use]
    pub fn get(&self, cell: &CellSpec) -> Option<Measurement> {
        let mut text = String::new();
        fs::File::open(self.path(cell)).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
        let found: CellFile = serde_json::from_str(&text).ok()?;
        let fits = found.schema == CELL_SCHEMA && found.stamp == self.stamp && found.cell == *cell;
        fits.then_some(found.outcome)
    }

    /// Stores the result of a cell, if it has one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, cell: &CellSpec, outcome: &Measurement) -> Result<(), CellStoreError> {
        if outcome.result().is_none() {
            return Ok(());
        }
        let written = NewCellFile { schema: CELL_SCHEMA, stamp: &self.stamp, cell, outcome };
        let text = serde_json::to_string(&written).expect("a result is words and numbers");
        write_atomically(&self.path(cell), text.as_bytes())
    }
}

/// Writes a file so that it is never incomplete.
///
/// # Errors
/// The file cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), CellStoreError> {
    openraid_sys::replace_file(path, bytes).map_err(|error| CellStoreError {
        path: path.into(),
        reason: format!("cannot be written: {error}; make room or name another folder"),
    })
}
