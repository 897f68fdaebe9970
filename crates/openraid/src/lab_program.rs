//! The laboratory is a program of its own, `openraid-lab`: this module finds it, and hands it the verbs that it has.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use openraid_management::lab::ChoicesModel;
use serde::{Deserialize, Serialize};

use crate::failure::Exit;
use crate::output::warn;

/// The laboratory's program, and the package that has it.
pub const PROGRAM: &str = "openraid-lab";
/// Its verbs. A command line of `openraid` with one of them is the laboratory's.
pub const VERBS: [&str; 8] = ["simulate", "review", "merge", "compare", "rehearse", "plan", "validate", "torture"];
/// The sentence for a server whose laboratory is not installed.
pub const ABSENT: &str = "the laboratory is not installed: install openraid-lab";

/// The words that the laboratory's program knows: its answer to `console choices`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Catalogue {
    /// The words for users.
    pub choices: ChoicesModel,
    /// Names and other names of all profiles of controllers.
    pub systems: Vec<String>,
    /// Names and other names of all profiles of drives.
    pub drives: Vec<String>,
}

/// The profile for a drive: the program's answer to `console profile`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProfileChoice {
    /// Name of the profile.
    pub drive: String,
    pub title: String,
    /// Why this one was chosen.
    pub why: String,
    /// Is it the nearest profile, of another drive?
    #[serde(default)]
    pub nearest: bool,
}

/// The path of the laboratory's program: in the folder of the own program, or else in a folder of PATH. `None` if it is
/// not installed.
pub fn find() -> Option<PathBuf> {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.into_iter().chain(std::env::split_paths(&path).filter(|folder| folder.is_absolute()));
    folders.map(|folder| folder.join(PROGRAM)).find(|file| is_program(file))
}

/// A file of the program: another one after each installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    path: PathBuf,
    inode: u64,
    changed: (i64, i64),
}

/// The installed program. `None` if there is none.
pub fn installation() -> Option<Installation> {
    let path = find()?;
    let file = path.metadata().ok()?;
    Some(Installation { path, inode: file.ino(), changed: (file.ctime(), file.ctime_nsec()) })
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Replace this process by the laboratory's program with the same arguments. Returns only if that is not possible.
pub fn hand_over(verb: &str) -> Exit {
    let Some(program) = find() else {
        warn(&format!(
            "`{verb}` is a verb of {PROGRAM}, which is not installed: install it, then run `{PROGRAM} {verb}`"
        ));
        return Exit::Usage;
    };
    let error = Command::new(&program).arg0(PROGRAM).args(std::env::args_os().skip(1)).exec();
    warn(&format!("{} cannot be started: {error}", program.display()));
    Exit::Error
}
