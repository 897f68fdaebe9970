//! The saved runs of `tests/corpus`: each once lost data, loses none now, and still meets the fault for which it is
//! kept.

use std::path::Path;
use std::sync::Mutex;

use crate::support::two_at_a_time;
use openraid_sim::fault::{report, SavedRun, Verdict};

/// Number of known runs when files replaced seeds. A corpus never shrinks.
const FILES_MIN: usize = 104;
/// A fault in a phase, and another fault or a decision of the engine.
const CONDITIONS_MIN: usize = 2;

/// The error of a file, if it has one.
fn complaint(path: &Path) -> Option<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).expect("a file of the corpus");
    let kept = match SavedRun::parse(&text) {
        Ok(kept) => kept,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    if kept.meets.len() < CONDITIONS_MIN {
        return Some(format!(
            "{name}: one condition alone does not show that the run still meets its fault; `keep --show` lists others"
        ));
    }
    let report = report(&kept.scenario, None);
    if let Verdict::Lost(loss) = &report.verdict {
        return Some(format!(
            "{name}: lost again: {}\n{}\n{}\n{loss}",
            kept.title,
            kept.scenario,
            report.story.join("\n")
        ));
    }
    let missed: Vec<String> = kept.missed(&report.counts).iter().map(ToString::to_string).collect();
    if missed.is_empty() {
        return None;
    }
    let missed = missed.join("; ");
    Some(format!(
        "{name}: the run no longer meets: {missed}. If a decision of the engine has changed, keep another run of this kind in \
         its place: see 'A run that lost something' in CONTRIBUTING.md"
    ))
}

#[test]
fn saved_runs_lose_nothing_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = std::fs::read_dir(&folder).expect("the corpus").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert!(files.len() >= FILES_MIN, "{} files", files.len());
    let complaints = Mutex::new(Vec::new());
    two_at_a_time(files.iter(), |file| complaints.lock().unwrap().extend(complaint(file)));
    let complaints = complaints.into_inner().unwrap();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
