//! Runs the five reviews again on simulated machines and writes a page for each, with an index.
//!
//! Usage: `openraid-gallery FOLDER [quick|normal] [NAME ...]`. Results of cells are stored in the folder, so an
//! interrupted run continues at its last cell. Nothing is written outside this folder.

#![forbid(unsafe_code)]

use openraid_methods::cell::{CellSpec, Effort, Pattern};
use openraid_methods::gallery::{Edition, EDITIONS};
use openraid_methods::report::assemble::{bed, limits, review, Chapter};
use openraid_methods::report::data::{Fact, ReportSection, Review};
use openraid_methods::report::render;
use openraid_methods::run::{fingerprint, write_atomically, CellStore};
use openraid_models::Library;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The seed of the gallery, so that the pages are always the same.
const SEED: u64 = 1;
/// Number of cells between two lines of progress.
const PROGRESS: usize = 50;
const USAGE: &str = "usage: openraid-gallery FOLDER [quick|normal] [NAME ...]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match gallery(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("openraid-gallery: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn gallery(arguments: &[String]) -> Result<(), String> {
    let (folder, rest) = arguments.split_first().ok_or(USAGE)?;
    let (effort, names) = match rest.split_first() {
        Some((word, names)) if word == "quick" => (Effort::QUICK, names),
        Some((word, names)) if word == "normal" => (Effort::NORMAL, names),
        _ => (Effort::QUICK, rest),
    };
    if let Some(name) = names.iter().find(|name| EDITIONS.iter().all(|edition| edition.name != **name)) {
        let known: Vec<&str> = EDITIONS.iter().map(|edition| edition.name).collect();
        return Err(format!("no review is called {name:?}; there are {}", known.join(", ")));
    }
    let folder = PathBuf::from(folder);
    let library = Library::builtin();
    let store = CellStore::open(&folder.join("cells"), &fingerprint(&library)).map_err(|error| error.to_string())?;
    let mut index = Review {
        title: "Five reviews, run again on simulated machines".into(),
        summary: vec![
            "Every figure comes from models of drives, buses and controllers with the engine itself in between; no \
             result of a review went in."
                .into(),
        ],
        ..Review::default()
    };
    for edition in EDITIONS.iter().filter(|edition| names.is_empty() || names.iter().any(|name| name == edition.name)) {
        let page = one(&library, edition, effort, &store, &folder)?;
        index.sections.push(page);
    }
    write(&folder.join("index.html"), &render(&index))?;
    println!("{}", folder.join("index.html").display());
    Ok(())
}

/// Runs a review and writes its page. Returns its section of the index.
fn one(
    library: &Library,
    edition: &Edition,
    effort: Effort,
    store: &CellStore,
    folder: &Path,
) -> Result<ReportSection, String> {
    let suite = edition.suite(effort, SEED);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let chapters = edition.run(library, &suite, threads, store, |done, all| {
        if done % PROGRESS == 0 || done == all {
            eprintln!("{}: {done} of {all} cells", edition.name);
        }
    });
    let unknown = |error: openraid_models::LookupError| error.to_string();
    let first = CellSpec { seed: SEED, ..CellSpec::new(edition.system, suite.subjects[0], Pattern::Database) }
        .with(suite.machine.clone());
    let facts = bed(library, &first).map_err(|error| error.to_string())?;
    let ceilings = limits(library, &first).map_err(|error| error.to_string())?;
    let controller = library.controller(edition.system).map_err(unknown)?;
    let drive = library.drive(&controller.drive).map_err(unknown)?;
    let title = format!("{} with {}, simulated", controller.head.title, drive.head.title);
    let mut page = review(&title, facts, &chapters, &ceilings);
    page.files.push(Fact::new("All results as JSON", format!("{}.json", edition.name)));
    write(&folder.join(format!("{}.json", edition.name)), &json(&chapters)?)?;
    write(&folder.join(format!("{}.html", edition.name)), &render(&page))?;
    Ok(ReportSection {
        method: edition.name.into(),
        question: title,
        how: page.summary.clone(),
        links: vec![Fact::new("The whole review", format!("{}.html", edition.name))],
        ..ReportSection::default()
    })
}

/// Cells and their results, by method.
fn json(chapters: &[Chapter]) -> Result<String, String> {
    let mut methods = serde_json::Map::new();
    for chapter in chapters {
        let cells: Vec<serde_json::Value> = chapter
            .trials
            .iter()
            .map(|trial| serde_json::json!({ "cell": trial.spec, "outcome": trial.outcome }))
            .collect();
        methods.insert(chapter.method.name.word().into(), cells.into());
    }
    let mut text = serde_json::to_string(&methods).map_err(|error| error.to_string())?;
    text.push('\n');
    Ok(text)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    write_atomically(path, text.as_bytes()).map_err(|error| error.to_string())
}
