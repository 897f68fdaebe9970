//! The two books: the controller's of `docs/`, the laboratory's of `docs/lab`. mdBook builds them, and every link in the pages that
//! come out is followed, also from one book to the other.
//!
//! [`crate::links`] checks the sources. This chore checks what a reader gets: mdBook leaves out a page that the table of
//! contents does not have, and makes the names of headings itself.

use crate::step::{cargo, root, Outcome};
use crate::tree::files;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A fixed version gives the same pages everywhere. Its minimal Rust is 1.82, below ours.
const VERSION: &str = "0.4.52";
/// Where `book.toml` puts the pages. The laboratory's book is a folder in it, as its sources are a folder of `docs`.
const BOOK: &str = "target/book";
/// The folders with a `book.toml`. mdBook empties the folder that it builds, so the outer book comes first.
const BOOKS: [&str; 2] = [".", "docs/lab"];

/// Build the books, after installing mdBook if it is missing (one to four minutes, once per machine).
pub fn docs() -> Outcome {
    dead_links_in_sources()?;
    if !installed() {
        println!("mdbook is missing; installing version {VERSION}");
        let package = format!("mdbook@{VERSION}");
        let install = ["install", "--locked", "--quiet", "--no-default-features", "--features", "search", &package];
        cargo(&install, &[]).map_err(|error| format!("{error}; get it with: cargo install --locked {package}"))?;
    }
    let folder = root().join(BOOK);
    if folder.exists() {
        // An old page would hide a dead link.
        fs::remove_dir_all(&folder).map_err(|error| format!("{BOOK} cannot be emptied: {error}"))?;
    }
    for book in BOOKS {
        let status = Command::new("mdbook").args(["build", book]).current_dir(root()).status();
        let status =
            status.map_err(|error| format!("mdbook does not start: {error}; is cargo's bin folder in PATH?"))?;
        if !status.success() {
            return Err(format!("`mdbook build {book}` ended with {status}"));
        }
    }
    let mut pages = BTreeMap::new();
    let mut others = BTreeSet::new();
    walk(&folder, "", &mut pages, &mut others)?;
    let complaints = dead_links(&pages, &others);
    report(&complaints)?;
    println!(
        "{} pages, every link leads somewhere; begin with {BOOK}/index.html and {BOOK}/lab/index.html",
        pages.len()
    );
    Ok(())
}

fn dead_links_in_sources() -> Outcome {
    let mut complaints = Vec::new();
    crate::links::check(&files()?, &mut complaints);
    report(&complaints)
}

fn report(complaints: &[String]) -> Outcome {
    for complaint in complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        n => Err(format!("{n} complaints, see above")),
    }
}

fn installed() -> bool {
    let mut command = Command::new("mdbook");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Collect the pages with their text, and the paths of all other files.
fn walk(
    folder: &Path,
    prefix: &str,
    pages: &mut BTreeMap<String, String>,
    others: &mut BTreeSet<String>,
) -> Result<(), String> {
    let complain = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(complain)? {
        let entry = entry.map_err(complain)?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            walk(&entry.path(), &format!("{path}/"), pages, others)?;
        } else if path.ends_with(".html") {
            pages.insert(path, fs::read_to_string(entry.path()).map_err(complain)?);
        } else {
            others.insert(path);
        }
    }
    Ok(())
}

/// One complaint for each link of a page that leads to no file or to no heading.
fn dead_links(pages: &BTreeMap<String, String>, others: &BTreeSet<String>) -> Vec<String> {
    let names: BTreeMap<&String, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path, attributes(text, "id").collect())).collect();
    let mut complaints = Vec::new();
    for (path, text) in pages {
        // The page that a web server shows for a wrong address has links from the root of the server.
        if path.ends_with("404.html") {
            continue;
        }
        for target in attributes(text, "href").chain(attributes(text, "src")) {
            if target.contains(':') || target.starts_with("//") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { crate::links::resolve(path, file) };
            match names.get(&file) {
                Some(names) if anchor.is_empty() || names.contains(anchor) => {}
                Some(_) => complaints.push(format!("{BOOK}/{path}: {file} has no heading '{anchor}'")),
                None if others.contains(&file) => {}
                None => complaints.push(format!("{BOOK}/{path}: the link to '{target}' leads out of the book")),
            }
        }
    }
    complaints
}

/// The values of an attribute, in double quotes as mdBook writes them.
fn attributes<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let values: Vec<&str> = text.split(&start).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0)).collect();
    values.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(link: &str) -> String {
        let pages = BTreeMap::from([
            ("a.html".to_owned(), format!("<h1 id=\"top\">A</h1><a class=\"x\" href=\"{link}\">x</a>")),
            ("more/b.html".to_owned(), "<h2 id=\"flush\">B</h2><a href=\"../a.html#top\">a</a>".to_owned()),
        ]);
        dead_links(&pages, &BTreeSet::from(["book.js".to_owned()])).join("\n")
    }

    #[test]
    fn links_between_pages_and_headings_are_followed() {
        for link in ["more/b.html", "more/b.html#flush", "#top", "book.js", "https://a.b/c", "mailto:a@b"] {
            assert_eq!(complaints(link), "", "{link}");
        }
        assert!(complaints("more/c.html").contains("a.html: the link to 'more/c.html' leads out of the book"));
        assert!(complaints("../README.md").contains("leads out of the book"));
        assert!(complaints("more/b.html#fua").contains("more/b.html has no heading 'fua'"));
    }
}
