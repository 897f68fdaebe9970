//! Guests on processors with AMX need a library in front of the C library. `extended-state.c` gives the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::OracleError;

const SOURCE: &str = include_str!("extended-state.c");

/// The library that must be loaded in front of the C library, built into this folder; none on other processors.
///
/// # Errors
/// There is no C compiler, or it fails.
pub(crate) fn library(folder: &Path) -> Result<Option<PathBuf>, OracleError> {
    if !fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" amx_tile")) {
        return Ok(None);
    }
    let (source, library) = (folder.join("extended-state.c"), folder.join("extended-state.so"));
    fs::write(&source, SOURCE).map_err(|error| OracleError::File { path: source.clone(), error })?;
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").output();
    match built {
        Ok(output) if output.status.success() => Ok(Some(library)),
        Ok(output) => Err(OracleError::NoResult { console: String::from_utf8_lossy(&output.stderr).into_owned() }),
        Err(_) => Err(OracleError::Missing { program: "cc", package: "gcc" }),
    }
}
