//! Checks of style: each rule is one function from a file to complaints.
//!
//! A complaint names the file and line, the fault and its remedy. Limits that older code breaks are ratchets: the
//! exceptions are listed with their size, and may shrink but not grow.

use crate::layers::layers;
use crate::rust::Code;
use crate::step::Outcome;
use crate::tree::{files, SourceFile};
use std::collections::BTreeSet;

/// No source file is longer.
const FILE_LINES_MAX: usize = 1500;
/// Longer source files are listed as candidates for a split.
const FILE_LINES_WISHED: usize = 800;
/// No function is longer.
const FUNCTION_LINES_MAX: usize = 70;
/// Functions that are longer all the same: path, name, the length that they must not exceed.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Words that are left over from work in progress. In two halves, for this file is checked, too.
const LEFTOVERS: &[(&str, &str)] = &[("TO", "DO"), ("FIX", "ME"), ("XX", "X"), ("HA", "CK")];
/// Macros that must not be left in code.
const LEFTOVER_MACROS: &[&str] = &["dbg", "todo", "unimplemented"];
/// Beginnings of paths of one machine, and addresses of package registries: neither means anything elsewhere.
const PRIVATE: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("index.crates", ".io"),
    ("deb.debian", ".org"),
    ("shared", "/oracle"),
];
/// What may hold other characters than ASCII.
const NOT_ASCII: &[&str] = &["docs/", "README.md", "console/", "models/"];
/// The languages of code blocks in documentation that rustdoc takes for no example.
const NO_EXAMPLES: &[&str] = &["text", "toml"];
/// A line of documentation that begins so is code: the blank after the slashes, and four more.
const INDENTED_CODE: &str = "     ";
/// Maximum number of words of a section of a decision.
const CHOICE_WORDS_MAX: usize = 210;

/// Check all rules over all files.
pub fn tidy() -> Outcome {
    let files = files()?;
    let mut complaints = Vec::new();
    for file in &files {
        check(file, &mut complaints);
    }
    dead_files(&files, &mut complaints);
    layers(&files, &mut complaints);
    crate::links::check(&files, &mut complaints);
    crate::pictures::check(&files, &mut complaints);
    crate::places::check(&files, &mut complaints);
    crate::imports::check(&files, &mut complaints);
    crate::plain::check(&files, &mut complaints);
    crate::names::check(&files, &mut complaints);
    wish_list(&files);
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        n => Err(format!("{n} complaints, see above")),
    }
}

fn check(file: &SourceFile, complaints: &mut Vec<String>) {
    let Some(text) = file.text() else { return };
    let source = ["rs", "toml", "sh", "py"].iter().any(|extension| file.is(extension));
    lines(file, text, complaints);
    if source || file.is("md") || file.path == "Makefile" {
        private(file, text, complaints);
    }
    if source {
        leftovers(file, text, complaints);
    }
    if file.is("rs") {
        silent_skips(file, text, complaints);
        examples(file, text, complaints);
        rust(file, text, complaints);
    }
    if file.path.starts_with("docs/decisions/") && file.is("md") {
        decision(file, text, complaints);
    }
}

/// Trailing blanks, carriage returns, tabs in Rust, characters outside ASCII, a last line without end.
fn lines(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    // Files that another program wrote are taken as they are.
    if file.path.contains("/golden/") || file.path.contains("/corpus/") || file.path.starts_with("LICENSE") {
        return;
    }
    let ascii = !NOT_ASCII.iter().any(|prefix| file.path.starts_with(prefix));
    for (number, line) in (1..).zip(text.split('\n')) {
        if line.ends_with([' ', '\t', '\r']) {
            complaints.push(format!("{}:{number}: blank at the end of the line", file.path));
        }
        if ascii && !line.is_ascii() {
            complaints.push(format!("{}:{number}: only ASCII here; write it out", file.path));
        }
        if file.is("rs") && line.contains('\t') {
            complaints.push(format!("{}:{number}: a tab; run cargo fmt, or write \\t", file.path));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        complaints.push(format!("{}: the last line does not end", file.path));
    }
}

fn private(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    for (number, line) in (1..).zip(text.lines()) {
        for (head, tail) in PRIVATE {
            let word = format!("{head}{tail}");
            if line.contains(&word) {
                complaints.push(format!("{}:{number}: '{word}' belongs to one machine or service", file.path));
            }
        }
    }
}

fn leftovers(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    for (number, line) in (1..).zip(text.lines()) {
        for (head, tail) in LEFTOVERS {
            let word = format!("{head}{tail}");
            let alone = |c: char| !c.is_alphanumeric();
            if line.split(alone).any(|found| found == word) {
                complaints.push(format!("{}:{number}: {word} is left over; do it, or file an issue", file.path));
            }
        }
    }
}

/// A test that does nothing must print this past the harness, because the harness hides the output of tests that pass.
fn silent_skips(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    for (number, line) in (1..).zip(text.lines()) {
        let prints = ["println!(", "print!("].iter().any(|word| line.contains(word));
        if prints && line.contains("skipped") && file.path.contains("/tests/") {
            let remedy = "write it to std::io::stderr(), or let the test fail";
            complaints.push(format!("{}:{number}: nobody sees that this test is skipped; {remedy}", file.path));
        }
    }
}

/// An example in documentation that rustdoc would build and run. The whole check does not start rustdoc, so none may be there.
fn examples(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    let (mut in_fence, mut after_blank) = (false, true);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            (in_fence, after_blank) = (false, true);
            continue;
        };
        let fence = ["```", "~~~"].iter().find_map(|fence| line.trim_start().strip_prefix(fence));
        let opens = fence.is_some_and(|language| !in_fence && !NO_EXAMPLES.contains(&language.trim()));
        let is_indented = fence.is_none() && !in_fence && after_blank && line.starts_with(INDENTED_CODE);
        if opens || is_indented {
            complaints.push(format!("{}:{number}: no check runs an example here; write a test", file.path));
        }
        in_fence ^= fence.is_some();
        after_blank = line.trim().is_empty();
    }
}

fn rust(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    let count = text.lines().count();
    if count > FILE_LINES_MAX {
        complaints.push(format!("{}: {count} lines, at most {FILE_LINES_MAX}; split it by ideas", file.path));
    }
    let root_of_crate = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    let source = file.path.contains("/src/") && !file.path.ends_with("/tests.rs");
    if (root_of_crate || source) && !text.starts_with("//!") {
        complaints.push(format!("{}:1: no header; begin with //! and say what this is and must never do", file.path));
    }
    let code = Code::of(text);
    for function in code.functions() {
        let known = LONG_FUNCTIONS.iter().find(|(path, name, _)| *path == file.path && *name == function.name);
        let limit = known.map_or(FUNCTION_LINES_MAX, |(_, _, lines)| *lines);
        if function.lines > limit {
            complaints.push(format!(
                "{}:{}: fn {} has {} lines, at most {limit}; take a part out that has a name",
                file.path, function.line, function.name, function.lines
            ));
        }
    }
    for (number, line) in (1..).zip(code.lines()) {
        for name in LEFTOVER_MACROS {
            if line.contains(&format!("{name}!")) {
                complaints.push(format!("{}:{number}: {name}! is left over", file.path));
            }
        }
    }
    test_names(file, &code, complaints);
}

/// A test's name states the property that it tests.
fn test_names(file: &SourceFile, code: &Code, complaints: &mut Vec<String>) {
    let lines = code.lines();
    for function in code.functions() {
        let above = lines[..function.line - 1].iter().rev().map(|line| line.trim());
        let is_test = above.take_while(|line| line.starts_with("#[") || line.is_empty()).any(|line| line == "#[test]");
        let words = function.name.split('_').filter(|word| word.chars().any(char::is_alphabetic)).count();
        if is_test && (words < 3 || function.name.starts_with("test")) {
            complaints.push(format!(
                "{}:{}: test '{}' does not state a property; its name should be a sentence",
                file.path, function.line, function.name
            ));
        }
    }
}

/// A page of decisions has a section for each choice. It begins with the choice in bold type and says what was rejected.
fn decision(file: &SourceFile, text: &str, complaints: &mut Vec<String>) {
    let choices: Vec<&str> = text.split("\n## ").skip(1).collect();
    if choices.is_empty() {
        complaints.push(format!("{}: a page of decisions has a section for each choice", file.path));
    }
    for choice in choices {
        let (heading, body) = choice.split_once('\n').unwrap_or((choice, ""));
        let mut complain = |fault: &str| complaints.push(format!("{}: the choice '{heading}' {fault}", file.path));
        if !body.trim_start().starts_with("**") {
            complain("begins with the choice in bold type");
        }
        if !body.contains("\nRejected: ") {
            complain("needs a paragraph 'Rejected: ...'");
        }
        if body.split_whitespace().count() > CHOICE_WORDS_MAX {
            complain(&format!("has more than {CHOICE_WORDS_MAX} words"));
        }
    }
    let name = file.path.rsplit('/').next().unwrap_or_default();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        complaints.push(format!("{}: a page of decisions is named by its theme, without a number", file.path));
    }
}

/// Rust files that no `mod` names, so that the compiler never sees them.
fn dead_files(files: &[SourceFile], complaints: &mut Vec<String>) {
    let mut alive = BTreeSet::new();
    for file in files.iter().filter(|file| file.is("rs")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let stem = name.trim_end_matches(".rs");
        let root = matches!(stem, "lib" | "main" | "mod") || is_target(&file.path);
        for module in file.text().map(modules).unwrap_or_default() {
            // A root's modules are next to it, another file's in a folder of its name; `#[path]` has both.
            let base = if root { folder.to_owned() } else { format!("{folder}/{stem}") };
            alive.insert(format!("{base}/{module}.rs"));
            alive.insert(format!("{base}/{module}/mod.rs"));
        }
        for included in file.text().map(paths_in_attributes).unwrap_or_default() {
            alive.insert(format!("{folder}/{included}"));
        }
    }
    for file in files.iter().filter(|file| file.is("rs")) {
        if !is_target(&file.path) && !alive.contains(&file.path) {
            complaints.push(format!("{}: no mod names this file; remove it or name it", file.path));
        }
    }
}

/// Does cargo itself find this file?
fn is_target(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let tail = |n: usize| parts.len().checked_sub(n).map(|at| parts[at]);
    let file = tail(1).unwrap_or_default();
    matches!((tail(2), file), (Some("src"), "lib.rs" | "main.rs"))
        || file == "build.rs"
        || matches!(tail(2), Some("tests" | "benches" | "examples" | "fuzz_targets"))
        || (tail(2) == Some("bin") && tail(3) == Some("src"))
        || (file == "main.rs" && matches!(tail(3), Some("tests" | "benches" | "examples" | "bin")))
}

/// Names in `mod name;`.
fn modules(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in Code::of(text).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            if pair[0] == "mod" && pair[1].ends_with(';') {
                found.push(pair[1].trim_end_matches(';').to_owned());
            }
        }
    }
    found
}

/// Files in `#[path = "..."]` and `include!("...")`.
fn paths_in_attributes(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains("#[path = \"") || line.contains("include!(\""));
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

fn wish_list(files: &[SourceFile]) {
    for file in files.iter().filter(|file| file.is("rs")) {
        let count = file.text().map_or(0, |text| text.lines().count());
        if count > FILE_LINES_WISHED {
            println!("note: {} has {count} lines; above {FILE_LINES_WISHED} think of splitting it", file.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> String {
        let mut found = Vec::new();
        check(&SourceFile { path: path.into(), bytes: text.into() }, &mut found);
        found.join("\n")
    }

    #[test]
    fn a_tidy_file_has_no_complaints() {
        let text = "//! A crate.\n\nfn one() {}\n\n#[test]\nfn one_is_called_one() {}\n";
        assert_eq!(complaints("crates/a/src/lib.rs", text), "");
    }

    #[test]
    fn every_rule_finds_what_it_is_for() {
        let long = format!("//! A.\nfn f() {{\n{}}}\n", "\n".repeat(FUNCTION_LINES_MAX));
        assert!(complaints("a/src/lib.rs", &long).contains("fn f has 72 lines"));
        let edge = format!("//! A.\nfn f() {{\n{}}}\n", "\n".repeat(FUNCTION_LINES_MAX - 2));
        assert_eq!(complaints("a/src/lib.rs", &edge), "");
        assert!(complaints("a/src/lib.rs", &format!("//! A.\n{}", "\n".repeat(FILE_LINES_MAX))).contains("1501 lines"));
        assert!(complaints("a/src/lib.rs", "fn f() {}\n").contains("no header"));
        assert!(complaints("a/src/lib.rs", "//! A. \n").contains("blank"));
        assert!(complaints("a/src/lib.rs", "//! A").contains("does not end"));
        assert!(complaints("a/src/lib.rs", "//! \u{e9}\n").contains("ASCII"));
        assert!(complaints("a/src/lib.rs", &format!("//! {}{}\n", "TO", "DO")).contains("left over"));
        assert!(complaints("a/src/lib.rs", &format!("//! A\nfn f() {{ {}!(1) }}\n", "dbg")).contains("left over"));
        assert!(complaints("a/src/lib.rs", &format!("//! see {}{}x\n", "/wo", "rk/")).contains("one machine"));
        assert!(complaints("a/tests/b.rs", "#[test]\nfn test1() {}\n").contains("property"));
        assert!(complaints("a/tests/b.rs", "fn f() { println!(\"skipped: no root\") }\n").contains("nobody sees"));
        let choice = "# X\n\n## Y\n\n**Y is so.** Why.\n\nRejected: Z.\n";
        assert_eq!(complaints("docs/decisions/x.md", choice), "");
        assert!(complaints("docs/decisions/0001-x.md", choice).contains("without a number"));
        assert!(complaints("docs/decisions/x.md", "# X\n\n## Y\n\nWhy.\n\nRejected: Z.\n").contains("bold type"));
        assert!(complaints("docs/decisions/x.md", "# X\n\n## Y\n\n**Y is so.** Why.\n").contains("Rejected"));
        assert!(complaints("docs/decisions/x.md", &choice.replace("Why", &"why ".repeat(CHOICE_WORDS_MAX)))
            .contains("more than"));
    }

    #[test]
    fn no_example_in_documentation_goes_unseen() {
        for seen in ["```\n/// f();\n/// ```", "```rust,no_run\n/// ```", "~~~\n/// ~~~", "A.\n///\n///     f();"] {
            let text = format!("/// {seen}\nfn f() {{}}\n");
            assert!(complaints("a/tests/b.rs", &text).contains("no check runs an example"), "{text}");
        }
        let texts = "/// ```text\n///     f\n///\n///     g\n/// ```\n/// - A\n///     list.\nfn f() {}\n//     g\n";
        assert_eq!(complaints("a/tests/b.rs", texts), "");
    }

    #[test]
    fn a_file_that_no_mod_names_is_dead() {
        let entry = |path: &str, text: &str| SourceFile { path: path.into(), bytes: text.into() };
        let files = [
            entry("c/src/lib.rs", "mod a;\npub mod b;\n// mod dead;\n"),
            entry("c/src/a.rs", "mod deep;\n"),
            entry("c/src/a/deep.rs", ""),
            entry("c/src/b/mod.rs", "pub(crate) mod leaf;\n"),
            entry("c/src/b/leaf.rs", ""),
            entry("c/src/dead.rs", ""),
            entry("c/src/bin/tool.rs", ""),
            entry("c/tests/t.rs", "mod common;\n#[path = \"odd/name.rs\"]\nmod odd;\n"),
            entry("c/tests/common/mod.rs", ""),
            entry("c/tests/odd/name.rs", ""),
            entry("c/tests/common/dead.rs", ""),
        ];
        let mut found = Vec::new();
        dead_files(&files, &mut found);
        let found: Vec<&str> = found.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(found, ["c/src/dead.rs", "c/tests/common/dead.rs"]);
    }
}
