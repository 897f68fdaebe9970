//! The files of the repository.

use crate::step::root;
use std::fs;
use std::path::{Path, PathBuf};

/// A file, with its path from the root, written with '/'.
pub struct SourceFile {
    /// From the root of the repository.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl SourceFile {
    /// The text; nothing for a binary file.
    pub fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) {
            return None;
        }
        std::str::from_utf8(&self.bytes).ok()
    }

    /// Does the name end in `.extension`?
    pub fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|ending| ending == extension)
    }
}

/// All files except build output and version control's own. In the order of their paths.
pub fn files() -> Result<Vec<SourceFile>, String> {
    let mut paths = Vec::new();
    walk(&root(), &mut paths)?;
    paths.sort();
    let mut entries = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let relative = path.strip_prefix(root()).expect("found below the root");
        entries.push(SourceFile { path: relative.to_string_lossy().replace('\\', "/"), bytes });
    }
    Ok(entries)
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), String> {
    let complain = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(complain)? {
        let entry = entry.map_err(complain)?;
        let kind = entry.file_type().map_err(complain)?;
        let name = entry.file_name();
        if kind.is_dir() && name != ".git" && name != "target" && name != "node_modules" {
            walk(&entry.path(), paths)?;
        } else if kind.is_file() {
            paths.push(entry.path());
        }
    }
    Ok(())
}
