//! The configuration file in this program: its path, its words, and its output.

pub mod api_values;
pub mod model;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use openraid_config::{DesiredState, Problems, Words, FILE_BYTES_MAX};
use openraid_runtime::member::MemberSpec;
use openraid_units::Bytes;

use crate::failure::Failure;
use crate::program_settings;
use crate::quantity::{self, counted};
use crate::registry::is_root;
use crate::words;

/// The file of the whole machine.
const SYSTEM_PATH: &str = "/etc/openraid/openraid.toml";

/// The words of the command line.
struct CommandLine;

impl Words for CommandLine {
    fn settings(&self) -> Vec<&'static str> {
        program_settings::names()
    }
    fn check_setting(&self, key: &str, value: &str) -> Result<(), String> {
        program_settings::check(key, value)
    }
    fn size(&self, text: &str) -> Result<Bytes, String> {
        quantity::size(text)
    }
    fn check_name(&self, text: &str) -> Result<(), String> {
        words::array_name(text).map(drop)
    }
    fn check_member(&self, text: &str) -> Result<(), String> {
        text.parse::<MemberSpec>().map(drop).map_err(|error| error.to_string())
    }
}

/// The file that is read if none is named, if it exists: the machine's file for root, or the user's own.
pub fn default_path() -> Option<PathBuf> {
    let system = PathBuf::from(SYSTEM_PATH);
    if is_root() && system.exists() {
        return Some(system);
    }
    let folder = match (std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME")) {
        (Some(config), _) if !config.is_empty() => PathBuf::from(config),
        (_, Some(home)) if !home.is_empty() => PathBuf::from(home).join(".config"),
        _ => return None,
    };
    Some(folder.join("openraid").join("openraid.toml")).filter(|path| path.exists())
}

/// The text of a configuration.
///
/// # Errors
/// It cannot be read, is not a file, or is not text.
pub fn text_of(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let refuse = |why: String| Failure::refused(format!("the configuration {shown} {why}"));
    let metadata = fs::metadata(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    if !metadata.is_file() && path != Path::new("/dev/null") {
        return Err(refuse("is not a regular file".into()));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| refuse(format!("cannot be read: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|error| refuse(format!("is not UTF-8 text (byte {})", error.utf8_error().valid_up_to())))
}

/// Parse a configuration.
///
/// # Errors
/// All its problems.
pub fn parse(text: &str) -> Result<DesiredState, Problems> {
    openraid_config::parse(text, &CommandLine)
}

/// All problems as one failure.
pub fn failure(path: &Path, problems: &Problems) -> Failure {
    let count = counted(problems.0.len() as u64, "problem", "problems");
    let lines: String = problems.0.iter().map(|problem| format!("\n  {problem}")).collect();
    Failure::refused(format!("{}: {count}, nothing of it takes effect{lines}", path.display()))
}

/// Read a configuration.
///
/// # Errors
/// It cannot be read, or all its problems.
pub fn load(path: &Path) -> Result<DesiredState, Failure> {
    parse(&text_of(path)?).map_err(|problems| failure(path, &problems))
}
