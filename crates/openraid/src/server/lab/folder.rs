//! The folder of reports: each report is a folder in it. This module reads nothing else in it, and nothing outside.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use openraid_management::lab::ReportModel;
use openraid_sys::replace_file;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Maximum number of reports.
pub const REPORTS_MAX: usize = 200;
/// Maximum length of a report's name, in characters.
const NAME_CHARACTERS_MAX: usize = 64;
/// Maximum size of a file of a report.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Files of a report that can be read.
const FILES: [&str; 5] = ["report.html", "results.json", "fio.json", "plan.json", "comparison.json"];
/// The file with the origin of a report.
const ORIGIN: &str = "job.json";

/// The origin of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// The command line.
    pub command: String,
    pub user: String,
}

#[derive(Clone, Debug)]
pub struct ReportFolder(pub PathBuf);

/// Can a report have this name?
///
/// # Errors
/// It cannot.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = (1..=NAME_CHARACTERS_MAX).contains(&name.len())
        && name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{name:?}: a report's name has 1 to {NAME_CHARACTERS_MAX} letters, digits and - _ . and begins with a letter or digit"
    )))
}

impl ReportFolder {
    /// The folder of a report.
    pub fn of(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Make the folder of a report.
    ///
    /// # Errors
    /// It cannot be made; there are too many.
    pub fn begin(&self, name: &str, origin: &Origin) -> Result<(), Failure> {
        let failed = |path: &Path, error: std::io::Error| Failure::failed(format!("{}: {error}", path.display()));
        let folder = self.of(name);
        if !folder.is_dir() && self.reports()?.len() >= REPORTS_MAX {
            return Err(Failure::refused(format!("{REPORTS_MAX} reports are kept; remove one first")));
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| failed(&folder, error))?;
        let text = serde_json::to_string(origin).map_err(Failure::failed)?;
        self.write(name, ORIGIN, text.as_bytes())
    }

    /// Write a file of a report.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, file: &str, bytes: &[u8]) -> Result<(), Failure> {
        let path = self.of(name).join(file);
        replace_file(&path, bytes)
            .map_err(|error| Failure::failed(format!("{}: it cannot be written: {error}; make room", path.display())))
    }

    /// All reports, the newest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn reports(&self) -> Result<Vec<ReportModel>, Failure> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Failure::failed(format!("{}: {error}", self.0.display()))),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut reports: Vec<ReportModel> = names.filter_map(|name| self.report(name)).collect();
        reports.sort_by(|a, b| b.at_seconds.cmp(&a.at_seconds).then_with(|| a.name.cmp(&b.name)));
        Ok(reports)
    }

    /// A report, if there is one of this name.
    pub fn report(&self, name: String) -> Option<ReportModel> {
        check_name(&name).ok()?;
        let metadata = fs::symlink_metadata(self.of(&name)).ok()?;
        if !metadata.is_dir() {
            return None;
        }
        let files: Vec<String> =
            FILES.iter().filter(|file| self.size(&name, file).is_some()).map(|&f| f.into()).collect();
        let has = |file: &str| files.iter().any(|known| known == file);
        let kind = match () {
            () if has("results.json") => "review",
            () if has("plan.json") => "plan",
            () if has("comparison.json") => "comparison",
            () => "part",
        };
        let at = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let command = self.origin(&name).map(|origin| origin.command);
        Some(ReportModel { kind: kind.into(), command, at_seconds: at.map_or(0, |at| at.as_secs()), files, name })
    }

    pub fn origin(&self, name: &str) -> Option<Origin> {
        serde_json::from_slice(&self.open(name, ORIGIN).ok()??).ok()
    }

    fn size(&self, name: &str, file: &str) -> Option<u64> {
        let metadata = fs::symlink_metadata(self.of(name).join(file)).ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// A file of a report. Links are not followed, because they could lead elsewhere.
    ///
    /// # Errors
    /// It is too long, or cannot be read.
    pub fn read(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, Failure> {
        if check_name(name).is_err() || !FILES.contains(&file) {
            return Ok(None);
        }
        self.open(name, file)
    }

    fn open(&self, name: &str, file: &str) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.of(name).join(file);
        let is_folder = fs::symlink_metadata(self.of(name)).is_ok_and(|metadata| metadata.is_dir());
        let Some(size) = self.size(name, file).filter(|_| is_folder) else { return Ok(None) };
        if size > FILE_BYTES_MAX {
            return Err(Failure::refused(format!("{}: it has more than {FILE_BYTES_MAX} bytes", path.display())));
        }
        let mut bytes = Vec::new();
        let read = fs::File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
        read.map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        Ok(Some(bytes))
    }

    /// Remove a report. Was there one?
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, Failure> {
        if self.report(name.into()).is_none() {
            return Ok(false);
        }
        let path = self.of(name);
        fs::remove_dir_all(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_of_reports_can_be_read() {
        let base = std::env::temp_dir().join(format!("openraid-reports-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        let folder = ReportFolder(base.join("reports"));
        assert_eq!(folder.reports().expect("no folder yet"), []);
        let origin = Origin { command: "openraid-lab review".into(), user: "ann".into() };
        folder.begin("one", &origin).expect("made");
        assert_eq!(folder.report("one".into()).expect("there").kind, "part");
        folder.write("one", "report.html", b"<html>").expect("written");
        folder.write("one", "results.json", b"{}").expect("written");
        fs::write(base.join("secret"), "x").expect("written");
        symlink(base.join("secret"), folder.of("one").join("fio.json")).expect("a link");
        symlink(&base, folder.of("link")).expect("a link");
        fs::write(base.join("report.html"), "x").expect("written");
        let found = folder.report("one".into()).expect("there");
        assert_eq!(
            (found.kind.as_str(), found.files),
            ("review", vec!["report.html".to_owned(), "results.json".into()])
        );
        assert_eq!(folder.reports().expect("read").len(), 1);
        assert_eq!(folder.read("one", "report.html").expect("read").as_deref(), Some(&b"<html>"[..]));
        let bad =
            [("one", "fio.json"), ("one", "job.json"), ("link", "report.html"), ("..", "secret"), (".", "secret")];
        for (name, file) in bad.into_iter().chain([("one", "../one/report.html"), ("one/..", "report.html"), ("", "x")])
        {
            assert_eq!(folder.read(name, file).expect("no error"), None, "{name} {file}");
        }
        assert!(!folder.remove("..").expect("no error") && !folder.remove("link").expect("no error"));
        assert!(folder.remove("one").expect("removed") && !folder.remove("one").expect("gone"));
        assert!(base.join("secret").exists());
        fs::remove_dir_all(&base).expect("own folder");
    }
}
