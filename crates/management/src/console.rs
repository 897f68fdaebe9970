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
