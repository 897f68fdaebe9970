//! The console's files, which are a part of the program.

use std::sync::OnceLock;

use crate::auth::secret;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

include!(concat!(env!("OUT_DIR"), "/console.rs"));

const PAGE: &str = "index.html";
const JS: &str = "text/javascript; charset=utf-8";
/// The text below an address with the right version never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// The digest of all files, which is a part of their addresses.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let all: Vec<&str> = FILES.iter().map(|(_, text, _)| *text).collect();
        secret::digest(&all.concat())[..16].to_owned()
    })
}

fn found(name: &str) -> Option<(&'static str, &'static [u8])> {
    FILES.iter().find(|(known, ..)| *known == name).map(|(_, text, packed)| (*text, *packed))
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "html")) => "text/html; charset=utf-8",
        _ => JS,
    }
}

/// The page. It names the version of the files.
pub fn page(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let (text, _) = found(PAGE).unwrap_or_default();
    Ok(HttpReply::text(kind(PAGE), text.replace("/console/", &format!("/console/{}/", version()))))
}

/// A file, compressed if the browser takes that. A browser with the page of another version of the program gets the present file.
pub fn file(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let [asked, name] = request.parts.as_slice() else { unreachable!("the route has two parts") };
    let file = found(name).filter(|_| name != PAGE);
    let (text, packed) = file.ok_or_else(|| Problem::missing(format!("the console has no file {name}")))?;
    let takes = request.header("accept-encoding").unwrap_or_default();
    let reply = match takes.split(',').any(|word| word.trim() == "gzip") {
        true => HttpReply::text(kind(name), packed).with("content-encoding", "gzip"),
        false => HttpReply::text(kind(name), text),
    };
    let reply = reply.with("vary", "accept-encoding");
    Ok(if asked == version() { reply.with("cache-control", FOR_EVER) } else { reply })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    fn modules() -> impl Iterator<Item = (&'static str, &'static str)> {
        FILES.iter().filter(|(name, ..)| kind(name) == JS).map(|(name, text, _)| (*name, *text))
    }

    fn page_text() -> &'static str {
        found(PAGE).expect("the page").0
    }

    /// The names in braces, without their other names here.
    fn names(list: &str) -> Vec<&str> {
        list.split(',').filter_map(|name| name.split_whitespace().next()).collect()
    }

    #[test]
    fn every_module_takes_only_what_another_one_gives() {
        let text_of = |name: &str| found(name).map(|(text, _)| text);
        let mut imports = 0;
        for (name, text) in modules() {
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
        for part in page_text().split("/console/").skip(1) {
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
        for (name, text) in modules() {
            for word in NEVER {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
        assert!(!page_text().contains("<script>"), "the policy of the page's content refuses scripts in it");
    }

    /// The program that unpacks is not the one of the build.
    #[test]
    fn each_file_is_there_compressed_and_all_are_below_80_kb() {
        let mut total = 0;
        for (name, text, packed) in FILES {
            let python = "import gzip, sys; sys.stdout.buffer.write(gzip.decompress(sys.stdin.buffer.read()))";
            let mut child =
                Command::new("python3").args(["-c", python]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
            let child = child.as_mut().expect("python3");
            // The files are smaller than a pipe holds, and the program reads all before it writes.
            child.stdin.take().expect("a pipe").write_all(packed).expect("it reads");
            let mut out = String::new();
            child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("it writes");
            assert!(child.wait().expect("it ends").success() && out == *text, "{name}");
            total += packed.len();
        }
        assert!((10_000..80 * 1024).contains(&total), "{total} bytes");
    }
}
