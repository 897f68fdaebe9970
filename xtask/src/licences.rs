//! Licences, bans and sources of dependencies, checked without a tool to install.
//!
//! The lists are those of `deny.toml`; `cargo xtask deny` reads the same file with cargo-deny, which also looks
//! into the licence texts. See `docs/decisions/programs.md#licences`.

use crate::step::{cargo_output, root, Outcome};
use std::fs;

/// What `deny.toml` says.
#[derive(Debug, PartialEq, Eq)]
struct Rules {
    allowed: Vec<String>,
    banned: Vec<String>,
}

/// Check every package that is built for anything in the workspace, tests included.
pub fn licences() -> Outcome {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rules = rules(&text);
    if rules.allowed.is_empty() {
        return Err("deny.toml has no line 'allow = [' with licences".into());
    }
    let arguments = [
        "tree",
        "--workspace",
        "--edges",
        "normal,build,dev",
        "--target",
        "all",
        "--all-features",
        "--prefix",
        "none",
        "--format",
        "{p}|{l}|",
    ];
    let tree = cargo_output(&arguments, &[])?;
    let here = root().to_string_lossy().into_owned();
    let mut complaints = complaints(&String::from_utf8_lossy(&tree), &rules, &here);
    complaints.sort();
    complaints.dedup();
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        n => Err(format!("{n} complaints, see above; the rules are in deny.toml")),
    }
}

/// The lists of allowed licences and banned crates.
fn rules(toml: &str) -> Rules {
    let quoted = |text: &str| -> Vec<String> { text.split('"').skip(1).step_by(2).map(str::to_owned).collect() };
    let list = toml.split_once("\nallow = [").and_then(|(_, rest)| rest.split_once(']'));
    // A ban with exceptions is judged by cargo-deny and by the table of imports.
    let lines = toml.lines().filter(|line| !line.contains("wrappers ="));
    let bans = lines.filter_map(|line| line.trim().strip_prefix("{ crate = "));
    Rules { allowed: list.map(|(list, _)| quoted(list)).unwrap_or_default(), banned: bans.flat_map(quoted).collect() }
}

/// One sentence for each package of a tree (`name version (source)|licence|`) that breaks a rule.
fn complaints(tree: &str, rules: &Rules, here: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for line in tree.lines() {
        let mut fields = line.split('|');
        let (Some(package), Some(licence)) = (fields.next(), fields.next()) else { continue };
        let name = package.split(' ').next().unwrap_or_default();
        if rules.banned.iter().any(|banned| banned == name) {
            complaints.push(format!("{name} is banned"));
        }
        if !allows(&rules.allowed, licence) {
            complaints.push(format!("{package}: licence '{licence}' is not allowed"));
        }
        let sources = package.split('(').skip(1).map(|rest| rest.split(')').next().unwrap_or_default());
        for source in sources.filter(|source| *source != "proc-macro" && !source.starts_with(here)) {
            complaints.push(format!("{name} comes from {source}; only the registry and this repository may be used"));
        }
    }
    complaints
}

/// Can the expression be satisfied with allowed licences alone? Text that is no expression cannot.
fn allows(allowed: &[String], expression: &str) -> bool {
    // Before SPDX, "A/B" meant "A or B".
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(allowed, &mut rest) == Some(true) && rest.is_empty()
}

fn either(allowed: &[String], words: &mut &[&str]) -> Option<bool> {
    let mut good = both(allowed, words)?;
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        good |= both(allowed, words)?;
    }
    Some(good)
}

fn both(allowed: &[String], words: &mut &[&str]) -> Option<bool> {
    let mut good = one(allowed, words)?;
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        good &= one(allowed, words)?;
    }
    Some(good)
}

fn one(allowed: &[String], words: &mut &[&str]) -> Option<bool> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    if *first == "(" {
        let good = either(allowed, words)?;
        let (close, rest) = words.split_first()?;
        *words = rest;
        return (*close == ")").then_some(good);
    }
    let mut licence = (*first).to_owned();
    if let ["WITH", exception, rest @ ..] = *words {
        licence = format!("{licence} WITH {exception}");
        *words = rest;
    }
    Some(allowed.contains(&licence))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\",\n  \"Apache-2.0 WITH LLVM-exception\"]\n\
        [bans]\ndeny = [\n    { crate = \"evil\" },\n]\n";

    #[test]
    fn the_lists_are_read_from_the_file_of_cargo_deny() {
        let rules = rules(TOML);
        assert_eq!(rules.allowed, ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]);
        assert_eq!(rules.banned, ["evil"]);
    }

    #[test]
    fn licence_expressions_are_understood() {
        let allowed = rules(TOML).allowed;
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-2.0/MIT",
            "(MIT OR GPL-2.0) AND Apache-2.0",
            "MIT AND Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allows(&allowed, good), "{good}");
        }
        let bad =
            ["", "GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0 WITH Other", "(MIT", "MIT)", "MIT OR", "OR MIT", "MIT MIT"];
        for bad in bad {
            assert!(!allows(&allowed, bad), "{bad}");
        }
    }

    #[test]
    fn bans_strange_sources_and_licences_are_found() {
        let tree = "a v1.0.0 (/here/a)|MIT|\nevil v1.0.0|MIT|\nb v1.0.0 (proc-macro)|MIT|\n\
            c v1.0.0 (https://example.org/c#123)|MIT|\nd v1.0.0||\na v1.0.0 (/here/a)|MIT| (*)\n";
        let found = complaints(tree, &rules(TOML), "/here");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("evil is banned"));
        assert!(found[1].contains("example.org"));
        assert!(found[2].contains("licence ''"));
    }
}
