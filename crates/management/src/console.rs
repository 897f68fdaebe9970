//! The console's files, which are a part of the program.

use crate::http::reply::{Problem, Reply};
use crate::http::request::Request;

const PAGE: &str = include_str!("../console/index.html");

const JS: &str = "text/javascript; charset=utf-8";

/// Files by name, with their types.
const FILES: &[(&str, &str, &str)] = &[
    ("style.css", "text/css; charset=utf-8", include_str!("../console/style.css")),
    ("main.js", JS, include_str!("../console/main.js")),
    ("ui.js", JS, include_str!("../console/ui.js")),
    ("api.js", JS, include_str!("../console/api.js")),
    ("words.js", JS, include_str!("../console/words.js")),
    ("overview.js", JS, include_str!("../console/overview.js")),
    ("chart.js", JS, include_str!("../console/chart.js")),
    ("array.js", JS, include_str!("../console/array.js")),
    ("explain.js", JS, include_str!("../console/explain.js")),
    ("map.js", JS, include_str!("../console/map.js")),
    ("lab.js", JS, include_str!("../console/lab.js")),
    ("drives.js", JS, include_str!("../console/drives.js")),
    ("journal.js", JS, include_str!("../console/journal.js")),
    ("create.js", JS, include_str!("../console/create.js")),
    ("history.js", JS, include_str!("../console/history.js")),
    ("events.js", JS, include_str!("../console/events.js")),
    ("settings.js", JS, include_str!("../console/settings.js")),
];

/// The page.
pub fn page(_: &Request) -> Result<Reply, Problem> {
    Ok(Reply::text("text/html; charset=utf-8", PAGE))
}

/// A file.
pub fn file(request: &Request) -> Result<Reply, Problem> {
    let name = request.parts.first().map(String::as_str).unwrap_or_default();
    let found = FILES.iter().find(|(own, ..)| *own == name);
    let (_, kind, text) = found.ok_or_else(|| Problem::missing(format!("the console has no file {name}")))?;
    Ok(Reply::text(kind, *text))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    /// The names in braces, without their other names here.
    fn names(list: &str) -> Vec<&str> {
        list.split(',').filter_map(|name| name.split_whitespace().next()).collect()
    }

    #[test]
    fn every_module_takes_only_what_another_one_gives_and_every_file_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            assert!(name == "index.html" || FILES.iter().any(|(own, ..)| *own == name), "{name} is not served");
        }
        let text_of = |name: &str| FILES.iter().find(|(own, ..)| *own == name).map(|(_, _, text)| *text);
        let mut imports = 0;
        for (name, _, text) in FILES.iter().filter(|(_, kind, _)| *kind == JS) {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let list = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).expect("names").0;
                let from = line.split_once("from \"./").and_then(|(_, rest)| rest.split_once('"')).expect("a file").0;
                let other = text_of(from).unwrap_or_else(|| panic!("{name}: there is no {from}"));
                for wanted in names(list) {
                    let is_given = ["function", "async function", "const", "class"].iter().any(|word| {
                        let begin = format!("export {word} {wanted}");
                        other.lines().any(|line| {
                            let rest = line.strip_prefix(&begin);
                            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
                        })
                    });
                    assert!(is_given, "{name} takes {wanted} of {from}, which does not give it");
                    imports += 1;
                }
            }
        }
        assert!(imports > 50, "{imports}");
        for part in PAGE.split("/console/").skip(1) {
            let name = part.split('"').next().unwrap_or_default();
            assert!(text_of(name).is_some(), "the page asks for {name}");
        }
    }

    /// Text of the server never becomes markup or code. Debian's eslint is too old for the modules, so that this is asked here.
    #[test]
    fn no_module_makes_markup_or_code_out_of_text() {
        const NEVER: [&str; 9] = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "srcdoc",
            "eval(",
            "Function(",
            "javascript:",
        ];
        for (name, _, text) in FILES.iter().filter(|(_, kind, _)| *kind == JS) {
            for word in NEVER {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
        assert!(!PAGE.contains("<script>"), "the policy of the page's content refuses scripts in it");
    }

    #[test]
    fn the_console_is_below_80_kb_compressed() {
        let mut total = 0;
        for text in FILES.iter().map(|(_, _, text)| *text).chain([PAGE]) {
            let mut gzip = Command::new("gzip").args(["-9", "-n"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let gzip = gzip.as_mut().expect("gzip, which every Debian has");
            // The files are smaller than a pipe holds, and gzip reads all before it writes.
            gzip.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
            let mut out = Vec::new();
            gzip.stdout.take().expect("a pipe").read_to_end(&mut out).expect("it writes");
            assert!(gzip.wait().expect("it ends").success());
            total += out.len();
        }
        assert!((10_000..80 * 1024).contains(&total), "{total} bytes");
    }
}
