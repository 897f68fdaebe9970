//! Plain English: counts patterns of the old style, folder by folder and by the kind of text: prose (comments and pages, the change log
//! too), strings of the programs (help, notices, errors, reports), and names of tests. A count may only fall.
//!
//! The counts are in `xtask/plain-english.txt`, one folder and kind to a line. `cargo xtask tidy` complains if a count has risen, and
//! says so if one has fallen. `cargo xtask plain` shows the counts by pattern and lowers the stored ones; it raises none.
//!
//! In sources, a comment of one word or two that repeats its item (`/// Which.`) counts, too.
//!
//! Names in backticks are not counted, and neither is a member that is "one event behind", which is md's own word.

use crate::rust::{strings, Code};
use crate::step::{root, Outcome};
use crate::tree::{files, SourceFile};
use std::collections::BTreeMap;

/// Where the counts are.
const STORED: &str = "xtask/plain-english.txt";
/// Titles are counted in their pages, and another program's files are its own.
const EXCLUDED: &[&str] = &["docs/SUMMARY.md", "/golden/", "/corpus/", "/snapshots/"];
/// Words that are counted wherever they are.
const WORDS: &[&str] = &["who", "whoever", "nobody", "somebody", "behind", "beside", "anew"];
/// Two words in a row that are counted.
const PAIRS: &[(&str, &str)] = &[
    ("those", "that"),
    ("what", "is"),
    ("so", "many"),
    ("so", "much"),
    ("so", "few"),
    ("true", "where"),
    ("false", "where"),
    ("panics", "where"),
];
/// Comments of their own that say nothing: the name of the item, its type or its module says more.
const FRAGMENTS: &[&str] = &[
    "All of it.",
    "All of them.",
    "As it is written.",
    "Bytes.",
    "How.",
    "How it ended.",
    "In a word.",
    "In words.",
    "Its kind.",
    "Its name.",
    "Its number.",
    "Its size.",
    "Its state.",
    "Its value.",
    "Nothing.",
    "Sectors.",
    "See the module.",
    "The array.",
    "The first.",
    "The last.",
    "The level.",
    "The member.",
    "The others.",
    "The result.",
    "These.",
    "What.",
    "What it does.",
    "What to do.",
    "When.",
    "Which.",
    "Which array.",
    "Which drive.",
    "Which set.",
    "Why.",
];
/// Names of all patterns, in the order in which they are counted.
const NAMES: [&str; WORDS.len() + PAIRS.len() + 3] = [
    "who",
    "whoever",
    "nobody",
    "somebody",
    "behind",
    "beside",
    "anew",
    "those that",
    "what is",
    "so many",
    "so much",
    "so few",
    "true where",
    "false where",
    "panics where",
    "Of ...",
    "Where ...,",
    "fragment",
];

type Counts = [usize; NAMES.len()];

/// Kinds of texts.
const PROSE: &str = "prose";
const STRINGS: &str = "strings";
const TESTS: &str = "tests";

/// Complain of each folder whose count has risen.
pub fn check(files: &[SourceFile], complaints: &mut Vec<String>) {
    let stored = files.iter().find(|file| file.path == STORED).and_then(SourceFile::text).unwrap_or_default();
    let stored = parse(stored);
    for (folder, counts) in count(files) {
        let (found, allowed) = (counts.iter().sum::<usize>(), stored.get(&folder).copied().unwrap_or(0));
        if found > allowed {
            complaints.push(format!(
                "{folder}: {found} patterns of the old style, at most {allowed}; see `cargo xtask plain`, and write: \
                 subject first, a component as the subject, one condition to a sentence"
            ));
        } else if found < allowed {
            println!("note: {folder}: {found} patterns of the old style, {allowed} stored; lower that by `cargo xtask plain`");
        }
    }
}

/// Show the counts, and lower the stored ones.
pub fn plain() -> Outcome {
    let files = files()?;
    let stored = files.iter().find(|file| file.path == STORED).and_then(SourceFile::text).map(parse);
    println!("{:32} {:>6}  {}", "folder and kind", "all", NAMES.map(|name| format!("{name:>10}")).concat());
    let mut text = String::new();
    for (folder, counts) in count(&files) {
        let found: usize = counts.iter().sum();
        println!("{folder:32} {found:6}  {}", counts.map(|count| format!("{count:10}")).concat());
        // Without a file the counts of today are the first ones.
        let allowed = stored.as_ref().map_or(found, |stored| stored.get(&folder).copied().unwrap_or(0));
        if found.min(allowed) > 0 {
            text.push_str(&format!("{folder} {}\n", found.min(allowed)));
        }
    }
    std::fs::write(root().join(STORED), text).map_err(|error| format!("{STORED}: {error}"))
}

fn parse(text: &str) -> BTreeMap<String, usize> {
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.filter_map(|(folder, count)| Some((folder.to_owned(), count.parse().ok()?))).collect()
}

fn count(files: &[SourceFile]) -> BTreeMap<String, Counts> {
    let mut all: BTreeMap<String, Counts> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is("rs") || file.is("md")) {
        let Some(text) = file.text().filter(|_| !EXCLUDED.iter().any(|part| file.path.contains(part))) else {
            continue;
        };
        let folder = folder_of(&file.path);
        let mut add = |kind: &str, texts: &[String]| {
            let sums = all.entry(format!("{folder} {kind}")).or_default();
            texts.iter().for_each(|text| count_in(text, sums));
        };
        let prose = paragraphs(text, file.is("rs"));
        let fragments = prose.iter().filter(|text| FRAGMENTS.contains(&text.trim())).count();
        add(PROSE, &prose);
        if file.is("rs") {
            add(TESTS, &names_of_tests(text));
            if !is_of_tests(&file.path) {
                add(STRINGS, &strings_of_program(text));
            }
            all.entry(format!("{folder} {PROSE}")).or_default()[NAMES.len() - 1] += fragments;
        }
    }
    all
}

/// Do users of the program not see its strings?
fn is_of_tests(path: &str) -> bool {
    ["/tests/", "/tests.rs", "/benches/", "xtask/", "crates/oracle/", "crates/interop/"]
        .iter()
        .any(|part| path.contains(part))
}

/// The strings of a file without its tests. A string without a blank is a name, and so is the text in braces.
fn strings_of_program(text: &str) -> Vec<String> {
    let program = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let prose = |text: &String| {
        let parts = text.split('{').enumerate();
        parts.map(|(n, part)| if n == 0 { part } else { part.split_once('}').map_or("", |(_, rest)| rest) }).collect()
    };
    strings(program)
        .iter()
        .filter(|text| text.contains(' '))
        .map(prose)
        .map(|text: String| without_names(&text))
        .collect()
}

/// The names of the tests, as sentences.
fn names_of_tests(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).collect::<Vec<_>>();
    let is_test = |line: usize| {
        lines[..line].iter().rev().take_while(|line| line.starts_with("#[")).any(|attribute| *attribute == "#[test]")
    };
    let functions = Code::of(text).functions();
    functions
        .into_iter()
        .filter(|function| is_test(function.line - 1))
        .map(|function| function.name.replace('_', " "))
        .collect()
}

/// A crate, `docs/decisions`, another folder of the root, or the root itself.
fn folder_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let depth = usize::from(path.starts_with("crates/") || path.starts_with("docs/decisions/")) + 1;
    if parts.len() == 1 {
        ".".into()
    } else {
        parts[..depth.min(parts.len() - 1)].join("/")
    }
}

/// The prose of a file, a paragraph each: comments that have their lines to themselves, or a page without its code.
fn paragraphs(text: &str, is_rust: bool) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut in_code = false;
    for line in text.lines().map(str::trim) {
        let prose =
            if is_rust { line.strip_prefix("//").map_or("", |rest| rest.trim_start_matches(['/', '!'])) } else { line };
        let prose = prose.trim();
        let fence = prose.starts_with("```");
        in_code ^= fence;
        if prose.is_empty() || fence || in_code {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push_str(prose);
            last.push(' ');
        }
    }
    found.iter().filter(|paragraph| !paragraph.is_empty()).map(|paragraph| without_names(paragraph)).collect()
}

/// Without the targets of links and the text in backticks, which are names.
fn without_names(text: &str) -> String {
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    without_targets(&prose.join("`"))
}

/// Without the targets of links, which are names of files.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |sum, part| sum + "] " + part.split_once(')').map_or("", |(_, rest)| rest))
}

fn count_in(paragraph: &str, sums: &mut Counts) {
    let lower = paragraph.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let (of_words, rest) = sums.split_at_mut(WORDS.len());
    for (sum, word) in of_words.iter_mut().zip(WORDS) {
        *sum += words.iter().filter(|other| *other == word).count();
        if *word == "behind" {
            // An event count is one or more events behind another one.
            *sum -= words.windows(2).filter(|pair| pair[0].starts_with("event") && pair[1] == "behind").count();
        }
    }
    for (sum, (one, other)) in rest.iter_mut().zip(PAIRS) {
        *sum += words.windows(2).filter(|pair| pair == &[*one, *other]).count();
    }
    let sentences = paragraph.split(['.', '?', '!', '|']).map(|text| text.trim_start_matches([' ', '-', '*', '(']));
    for sentence in sentences {
        rest[PAIRS.len()] += usize::from(sentence.starts_with("Of "));
        rest[PAIRS.len() + 1] += usize::from(sentence.starts_with("Where ") && sentence.contains(','));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> usize {
        let counts = count(&[SourceFile { path: path.into(), bytes: text.into() }]);
        counts.values().flatten().sum()
    }

    #[test]
    fn every_pattern_is_counted_and_plain_prose_is_not() {
        let old = "Of the others nobody waits. Where one is beside it, whoever is behind begins anew.\n\n- What is \
                   due, and those that somebody has: who knows?\n";
        assert_eq!(of("docs/a.md", old), 11);
        let counted =
            "Room for so many, so much, so few. True where it fits; false where not. Panics where it is full.\n";
        assert_eq!(of("docs/a.md", counted), 6);
        assert_eq!(
            of("docs/a.md", "A write waits for its range. The offset of a row, where it begins, is known.\n"),
            0
        );
        assert_eq!(of("docs/a.md", "Where the limits are\n"), 0, "it is no condition");
        assert_eq!(
            of("docs/a.md", "A member two events behind, the bug `failed-one-behind`, and `who`\nis there.\n"),
            0
        );
        assert_eq!(of("docs/a.md", "`a` stands behind `b`, nobody `c`.\n"), 2);
    }

    #[test]
    fn a_comment_that_is_only_a_fragment_is_counted() {
        let text = "/// Which.\n#[a]\n/// The array.\n/// It has members.\nx: u8, // Why.\n/// Why.\n\n// In words.\n";
        assert_eq!(of("crates/a/src/b.rs", text), 3);
        assert_eq!(of("crates/a/src/b.rs", "/// Number of the array.\nfn f() { say(\"Nothing.\") }\n"), 0);
        assert_eq!(of("docs/a.md", "Nothing.\n"), 0);
    }

    #[test]
    fn code_targets_of_links_and_titles_are_not_counted() {
        assert_eq!(of("crates/a/src/b.rs", "/// Somebody\n/// waits.\nlet nobody = 1; // anew\n"), 1);
        assert_eq!(of("crates/a/src/b.rs", "//! A\n//! ```text\n//! nobody\n//! ```\n//! behind it\n"), 1);
        assert_eq!(of("docs/a.md", "See [one](redos-behind-the-start.md) and [other](b.md) behind.\n"), 1);
        assert_eq!(of("docs/SUMMARY.md", "nobody\n"), 0);
        assert_eq!(of("CHANGELOG.md", "nobody\n"), 1);
    }

    #[test]
    fn strings_of_programs_and_names_of_tests_are_counted_apart() {
        let text = "fn nobody() { say(\"nobody waits\", r#\"it is behind\"#, \"a {behind}\", \"one-behind\", 'x', \"`who`\"); }\n#[cfg(test)]\nmod tests {\n    #[test]\n    \
                    #[ignore]\n    fn whoever_waits() { check(\"nobody\") }\n    fn somebody() {}\n}\n";
        let counts = |path: &str| {
            let counts = count(&[SourceFile { path: path.into(), bytes: text.into() }]);
            let sum = |(key, counts): (String, Counts)| (key, counts.iter().sum::<usize>());
            counts.into_iter().map(sum).filter(|(_, sum)| *sum > 0).collect::<Vec<_>>()
        };
        assert_eq!(counts("crates/a/src/b.rs"), [("crates/a strings".into(), 2), ("crates/a tests".into(), 1)]);
        assert_eq!(counts("crates/a/tests/b.rs"), [("crates/a tests".into(), 1)]);
    }

    #[test]
    fn a_folder_is_a_crate_the_decisions_or_the_root() {
        let folders = ["crates/a/src/b/c.rs", "docs/x.md", "docs/decisions/x.md", "README.md", "xtask/src/main.rs"];
        assert_eq!(folders.map(folder_of), ["crates/a", "docs", "docs/decisions", ".", "xtask"]);
    }

    #[test]
    fn a_count_that_rises_is_a_complaint_and_one_that_falls_is_none() {
        let entry = |path: &str, text: &str| SourceFile { path: path.into(), bytes: text.into() };
        for (stored, complains) in
            [("docs prose 1\n", true), ("docs prose 2\n", false), ("docs prose 3\n", false), ("", true)]
        {
            let files = [entry("docs/a.md", "nobody, nobody\n"), entry(STORED, stored)];
            let mut complaints = Vec::new();
            check(&files, &mut complaints);
            assert_eq!(!complaints.is_empty(), complains, "{stored:?}: {complaints:?}");
        }
    }
}
