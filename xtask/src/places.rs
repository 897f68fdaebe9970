//! Files and functions that ARCHITECTURE.md and CONTRIBUTING.md name: each exists. The lines that their examples
//! take away exist too, and the lines that they add are not too long.
//!
//! ```text
//!  `core/src/io/plan.rs :: plan_write, choose`     a file, and names that are defined in it; paths may begin in crates/
//!  `core/src/io/gate.rs`, `wait.rs`                the second is next to the first
//!  `sim/src/world/`                                a folder
//!  `sim/tests/fault_*.rs`                          at least one such file
//! ```

use crate::rust::Code;
use crate::tree::SourceFile;

/// The pages whose code spans are read.
const PAGES: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// The page with the table of crates.
const TABLE: &str = "CONTRIBUTING.md";
/// The longest line of an example without its sign, as in `rustfmt.toml`.
const COLUMNS_MAX: usize = 120;
/// The words before a name that define it.
const DEFINING: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "mod"];

/// Complain of each place that does not exist.
pub fn check(files: &[SourceFile], complaints: &mut Vec<String>) {
    for page in files.iter().filter(|file| PAGES.contains(&file.path.as_str())) {
        for (number, line) in crate::links::prose(page.text().unwrap_or_default()) {
            let mut folder = String::new();
            for span in line.split('`').skip(1).step_by(2) {
                if let Err(why) = check_span(span, &mut folder, files) {
                    complaints.push(format!("{}:{number}: `{span}`: {why}", page.path));
                }
            }
        }
        check_examples(page, files, complaints);
    }
    crates_without_row(files, complaints);
}

/// Complain of each crate that the table "Where things are" of CONTRIBUTING.md does not explain.
fn crates_without_row(files: &[SourceFile], complaints: &mut Vec<String>) {
    let page = files.iter().find(|file| file.path == TABLE).and_then(SourceFile::text).unwrap_or_default();
    for file in files {
        let name = file.path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"));
        let Some(name) = name.filter(|name| !name.contains('/')) else { continue };
        if !page.lines().any(|line| line.starts_with(&format!("| `{name}` |"))) {
            complaints.push(format!("{TABLE}: the crate {name} has no row in the table of crates"));
        }
    }
}

/// Complain of lines in the page's ```` ```diff ```` blocks that cannot be taken away or would not pass `rustfmt`.
fn check_examples(page: &SourceFile, files: &[SourceFile], complaints: &mut Vec<String>) {
    let mut in_example = false;
    for (index, line) in page.text().unwrap_or_default().lines().enumerate() {
        if line.starts_with("```") {
            in_example = line == "```diff";
            continue;
        }
        let problem = match line.split_at_checked(1) {
            Some(("-", old)) if in_example && !files.iter().any(|file| has_line(file, old)) => {
                "no file has the line that this example takes away"
            }
            Some(("+", new)) if in_example && new.chars().count() > COLUMNS_MAX => "the line is too long for rustfmt",
            _ => continue,
        };
        complaints.push(format!("{}:{}: {problem}: `{line}`", page.path, index + 1));
    }
}

fn has_line(file: &SourceFile, wanted: &str) -> bool {
    !PAGES.contains(&file.path.as_str()) && file.text().is_some_and(|text| text.lines().any(|line| line == wanted))
}

fn check_span(span: &str, folder: &mut String, files: &[SourceFile]) -> Result<(), String> {
    let (path, names) = span.split_once(" :: ").unwrap_or((span, ""));
    let is_path =
        names.len() < span.len() && path.ends_with(".rs") || path.ends_with('/') && path.matches('/').count() > 1;
    if !is_path || path.contains(|c: char| c.is_whitespace() || c == '<') {
        return Ok(());
    }
    let next_to = format!("{folder}{path}");
    let tries = [path, &format!("crates/{path}"), &next_to];
    let Some(found) = tries.iter().find_map(|path| files.iter().find(|file| fits(&file.path, path))) else {
        return Err("there is no such file; correct the path".into());
    };
    let parent = found.path.rfind('/').map_or(0, |at| at + 1);
    *folder = found.path[..parent].to_owned();
    if names.is_empty() {
        return Ok(());
    }
    let words = Code::of(found.text().unwrap_or_default()).words();
    for name in names.split(',').map(str::trim) {
        let last = name.rsplit("::").next().unwrap_or(name);
        let defines = |pair: &[(usize, String)]| DEFINING.contains(&pair[0].1.as_str()) && pair[1].1 == last;
        if !words.windows(2).any(defines) {
            return Err(format!("{} does not define {last}; find where it went", found.path));
        }
    }
    Ok(())
}

/// Is this the file, is it in the folder, or does it fit the pattern with one `*`?
fn fits(path: &str, wanted: &str) -> bool {
    match wanted.split_once('*') {
        Some((head, tail)) => path.starts_with(head) && path.ends_with(tail),
        None if wanted.ends_with('/') => path.starts_with(wanted),
        None => path == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> String {
        let entry = |path: &str, text: &str| SourceFile { path: path.into(), bytes: text.into() };
        let files = [
            entry("ARCHITECTURE.md", text),
            entry("crates/core/src/io/plan.rs", "//! fn gone\npub fn plan_write() {}\nenum Choice {}\n"),
            entry("crates/core/src/io/gate.rs", ""),
            entry("xtask/src/tidy.rs", ""),
        ];
        let mut found = Vec::new();
        check(&files, &mut found);
        found.join("\n")
    }

    #[test]
    fn places_that_exist_are_no_complaint() {
        for text in [
            "`core/src/io/plan.rs :: plan_write, Choice`",
            "`crates/core/src/io/plan.rs`, `gate.rs`",
            "`core/src/io/`, `xtask/src/tidy.rs`, `core/src/io/p*.rs`",
            "`Volume::map`, `a -> b/`, `units`",
            "```text\n`core/src/gone.rs`\n```",
        ] {
            assert_eq!(complaints(text), "", "{text}");
        }
    }

    #[test]
    fn an_example_takes_away_lines_that_exist_and_adds_short_ones() {
        assert_eq!(complaints("```diff\n-enum Choice {}\n+enum Choice { A }\n```\n-enum Gone {}"), "");
        assert!(complaints("```diff\n-enum Gone {}\n```").contains("ARCHITECTURE.md:2: no file has the line"));
        assert!(complaints(&format!("```diff\n+{}\n```", "x".repeat(121))).contains("too long"));
    }

    #[test]
    fn each_crate_has_a_row_in_the_table() {
        let entry = |path: &str, text: &str| SourceFile { path: path.into(), bytes: text.into() };
        let crates = ["crates/a/Cargo.toml", "crates/b/Cargo.toml", "crates/b/fuzz/Cargo.toml", "xtask/Cargo.toml"];
        let mut files: Vec<SourceFile> = crates.iter().map(|path| entry(path, "")).collect();
        files.push(entry(TABLE, "| `a` | one |\nThe crate `b`\n"));
        let mut found = Vec::new();
        crates_without_row(&files, &mut found);
        assert_eq!(found, ["CONTRIBUTING.md: the crate b has no row in the table of crates"]);
    }

    #[test]
    fn a_file_or_a_function_that_went_elsewhere_is_named_with_its_line() {
        assert!(complaints("\n`core/src/io/plan.rs :: plan_write, gone`").contains(
            "ARCHITECTURE.md:2: `core/src/io/plan.rs :: plan_write, gone`: crates/core/src/io/plan.rs does not define gone"
        ));
        assert!(complaints("`core/src/io/plans.rs :: plan_write`").contains("no such file"));
        assert!(complaints("`core/src/io/plan.rs`, `gone.rs`").contains("`gone.rs`: there is no such file"));
        assert!(complaints("`core/src/cache/`").contains("no such file"));
        assert!(complaints("`core/src/io/x*.rs`").contains("no such file"));
    }
}
