//! The table of imports in ARCHITECTURE.md says what the manifests say.
//!
//! ```text
//!  | `a`               | b, c (for that) | d, e                  |    exactly these, without the text in parentheses
//!  | `a`               | -               | the main ones: d      |    none; these, and maybe others
//!  | `a` (the program) | all above but b | -                     |    the crates of the rows above, without these
//! ```

use crate::tree::SourceFile;
use std::collections::BTreeSet;

/// The page with the table, and the heading above it.
const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Which crate may import which";
/// The one of our packages whose name has no such beginning.
const PROGRAM: &str = "openraid";
/// What names of our packages begin with.
const OURS: &str = "openraid-";

/// Complain of each row that differs from its manifest, and of each crate without a row.
pub fn check(files: &[SourceFile], complaints: &mut Vec<String>) {
    let text = |path: &str| files.iter().find(|file| file.path == path).and_then(SourceFile::text);
    let Some((_, table)) = text(PAGE).and_then(|page| page.split_once(HEADING)) else { return };
    let mut above = BTreeSet::new();
    for row in table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).skip(2)
    {
        let cells: Vec<String> = row.split('|').map(without_remarks).collect();
        let [_, name, ours_said, outside, ..] = &cells[..] else { continue };
        let name = name.trim_matches('`').to_owned();
        let Some(manifest) = text(&format!("crates/{name}/Cargo.toml")) else {
            complaints.push(format!("{PAGE}: the table of imports has '{name}', and there is no such crate"));
            continue;
        };
        let (ours, others) = dependencies(manifest);
        let said = match ours_said.strip_prefix("all above but ") {
            Some(without) => &above - &names(&without.replace(" and ", ", ")),
            None => names(ours_said),
        };
        if said != ours {
            complaints.push(format!("{PAGE}: the manifest of '{name}' has {ours:?} of ours, and the table {said:?}"));
        }
        let said = names(outside.trim_start_matches("the main ones:"));
        let fits = if outside.contains(':') { said.is_subset(&others) } else { said == others };
        if !fits {
            complaints
                .push(format!("{PAGE}: the manifest of '{name}' has {others:?} from outside, and the table {said:?}"));
        }
        above.insert(name);
    }
    let crates = files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"));
    for name in crates.filter(|name| !name.contains('/') && !above.contains(*name)) {
        complaints.push(format!("{PAGE}: the table of imports does not have '{name}'"));
    }
}

/// The text of a cell, without its parts in parentheses.
fn without_remarks(cell: &str) -> String {
    let parts = cell.split('(').map(|part| part.split_once(')').map_or(part, |(_, rest)| rest).trim_end());
    parts.collect::<String>().trim().to_owned()
}

/// The names of a list with commas; `-` is the empty list.
fn names(list: &str) -> BTreeSet<String> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "-").map(str::to_owned).collect()
}

/// The dependencies in a manifest: our own without the beginning of their names, and the others.
fn dependencies(manifest: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut ours, mut others) = (BTreeSet::new(), BTreeSet::new());
    let mut is_list = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_list = line.ends_with("dependencies]") && !line.contains("dev-") && !line.contains("build-");
            continue;
        }
        let end = line.find(|c: char| c != '-' && c != '_' && !c.is_alphanumeric()).unwrap_or(line.len());
        let name = &line[..end];
        if is_list && !name.is_empty() {
            match name.strip_prefix(OURS).or(Some(name).filter(|name| *name == PROGRAM)) {
                Some(crate_name) => ours.insert(crate_name.to_owned()),
                None => others.insert(name.to_owned()),
            };
        }
    }
    (ours, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(rows: &str, more: &[(&str, &str)]) -> String {
        let page = format!("{HEADING}\n\n| Crate | ours | outside |\n| --- | --- | --- |\n{rows}\nEnd.\n");
        let a =
            "[package]\nname = \"openraid-a\"\n[dependencies]\nlibc.workspace = true\n[dev-dependencies]\nfoo = 1\n";
        let b = "[dependencies]\nopenraid-a.workspace = true\n\n[features]\nx = []\n";
        let mut all = vec![(PAGE, page.as_str()), ("crates/a/Cargo.toml", a), ("crates/b/Cargo.toml", b)];
        all.extend(more);
        let files: Vec<SourceFile> =
            all.into_iter().map(|(path, text)| SourceFile { path: path.into(), bytes: text.into() }).collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        found.join("\n")
    }

    #[test]
    fn a_table_that_says_what_the_manifests_say_is_no_complaint() {
        assert_eq!(complaints("| `a` | - | libc |\n| `b` (the program) | a (for that) | - |", &[]), "");
        let c = ("crates/c/Cargo.toml", "[dependencies]\nopenraid-b = 1\nclap = 1\nserde = { version = 1 }\n");
        let rows = "| `a` | - | libc |\n| `b` | a | - |\n| `c` | all above but a | the main ones: clap |";
        assert_eq!(complaints(rows, &[c]), "");
    }

    #[test]
    fn each_difference_from_a_manifest_is_a_complaint() {
        assert!(complaints("| `a` | b | libc |\n| `b` | a | - |", &[]).contains("manifest of 'a' has {} of ours"));
        assert!(complaints("| `a` | - | - |\n| `b` | a | - |", &[]).contains("'a' has {\"libc\"} from outside"));
        assert!(complaints("| `a` | - | libc |", &[]).contains("does not have 'b'"));
        assert!(complaints("| `c` | - | - |", &[]).contains("has 'c', and there is no such crate"));
        assert!(complaints("| `a` | - | the main ones: foo |\n| `b` | a | - |", &[]).contains("from outside"));
    }
}
