//! Links between the pages of this repository: each leads to a file that exists, and to a heading that it has. Every page of
//! `docs/` is in the table of contents of its book, the `SUMMARY.md` in the nearest folder above it.

use crate::tree::SourceFile;

/// The name of a table of contents, in the form that mdBook reads.
const SUMMARY: &str = "SUMMARY.md";

/// Complain of each link that leads nowhere, and of each page that is not in exactly the table of contents of its book.
pub fn check(files: &[SourceFile], complaints: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.is("md")) {
        for (line, target) in file.text().map(links).unwrap_or_default() {
            if let Some(why) = why_dead(&file.path, &target, files) {
                complaints.push(format!("{}:{line}: the link to '{target}' is dead: {why}", file.path));
            }
        }
    }
    let pages = files.iter().filter(|file| file.is("md") && file.path.starts_with("docs/"));
    let (summaries, pages): (Vec<&SourceFile>, Vec<&SourceFile>) = pages.partition(|file| file.path.ends_with(SUMMARY));
    for summary in &summaries {
        let folder = summary.path.trim_end_matches(SUMMARY);
        let targets = summary.text().map(links).unwrap_or_default().into_iter();
        let listed: Vec<String> = targets.map(|(_, target)| resolve(&summary.path, &target)).collect();
        for (at, path) in listed.iter().enumerate() {
            if listed[..at].contains(path) {
                complaints.push(format!("{}: {path} is listed twice, and mdBook refuses that", summary.path));
            }
            if summary_of(path, &summaries) != Some(&summary.path) {
                complaints.push(format!("{}: {path} is a page of another book", summary.path));
            }
        }
        for page in pages.iter().filter(|page| summary_of(&page.path, &summaries) == Some(&summary.path)) {
            if !listed.contains(&page.path) {
                let name = page.path.trim_start_matches(folder);
                complaints.push(format!("{}: {} does not list it; add '- [Title]({name})'", page.path, summary.path));
            }
        }
    }
}

/// The table of contents in the nearest folder above a page.
fn summary_of<'a>(page: &str, summaries: &[&'a SourceFile]) -> Option<&'a String> {
    let paths = summaries.iter().map(|summary| &summary.path);
    paths.filter(|path| page.starts_with(path.trim_end_matches(SUMMARY))).max_by_key(|path| path.len())
}

fn why_dead(from: &str, target: &str, files: &[SourceFile]) -> Option<String> {
    let scheme = target.split(['/', '#']).next().unwrap_or_default();
    if scheme.contains(':') {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.to_owned() } else { resolve(from, path) };
    let Some(file) = files.iter().find(|file| file.path == path) else {
        let is_folder = files.iter().any(|file| file.path.starts_with(&format!("{}/", path.trim_end_matches('/'))));
        return (!is_folder).then(|| "there is no such file".into());
    };
    let has_it = anchor.is_empty() || file.text().is_some_and(|text| anchors(text).iter().any(|known| known == anchor));
    (!has_it).then(|| format!("{path} has no such heading"))
}

/// A path from the root, of a link in a file.
pub fn resolve(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The targets of links in a page, with their lines. Code is none.
fn links(text: &str) -> Vec<(usize, String)> {
    prose(text).flat_map(|(number, line)| targets(line).map(move |target| (number, target))).collect()
}

fn targets(line: &str) -> impl Iterator<Item = String> + '_ {
    // Text in backticks is code: every second part.
    let outside: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let found: Vec<String> =
        outside.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect();
    found.into_iter()
}

/// Lines with their numbers, without code blocks.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    })
}

/// Headings, as links name them: in small letters, without marks, with a hyphen for each blank.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text)
        .filter_map(|(_, line)| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let letter = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|line| line.trim().to_lowercase().chars().filter(|c| letter(*c)).collect::<String>().replace(' ', "-"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(pages: &[(&str, &str)]) -> String {
        let files: Vec<SourceFile> =
            pages.iter().map(|(path, text)| SourceFile { path: (*path).into(), bytes: (*text).into() }).collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        found.join("\n")
    }

    #[test]
    fn a_link_leads_to_a_file_and_to_a_heading_of_it() {
        let other = ("docs/more/b.md", "# A `b`\n\n## Flush and FUA\n");
        let page = |text| complaints(&[("docs/a.md", text), other]);
        assert_eq!(
            page("[b](more/b.md), [up](../docs/more/b.md#flush-and-fua), [all](more/), [web](https://a.b/c)\n"),
            ""
        );
        assert!(
            page("[c](more/c.md)\n").contains("docs/a.md:1: the link to 'more/c.md' is dead: there is no such file")
        );
        assert!(page("[b](more/b.md#fua)\n").contains("docs/more/b.md has no such heading"));
        assert!(page("# A\n\n[here](#b)\n").contains("docs/a.md:3"));
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(complaints(&[("a.md", "`[b](c.md)`\n\n```text\n[b](c.md)\n```\n")]), "");
    }

    #[test]
    fn a_page_that_the_table_of_contents_does_not_have_is_a_complaint() {
        let summary = ("docs/SUMMARY.md", "# Contents\n\n- [A](a.md)\n");
        assert_eq!(complaints(&[summary, ("docs/a.md", "# A\n"), ("README.md", "# R\n")]), "");
        assert!(complaints(&[summary, ("docs/a.md", ""), ("docs/b.md", "")]).contains("docs/b.md: docs/SUMMARY.md"));
        let twice = ("docs/SUMMARY.md", "# Contents\n\n- [A](a.md)\n- [A again](a.md)\n");
        assert!(complaints(&[twice, ("docs/a.md", "")]).contains("a.md is listed twice"));
    }

    #[test]
    fn a_page_is_in_the_table_of_contents_of_its_own_book() {
        let outer = ("docs/SUMMARY.md", "# Contents\n\n- [A](a.md)\n");
        let inner = ("docs/lab/SUMMARY.md", "# Contents\n\n- [B](b.md)\n");
        let pages = [("docs/a.md", "[b](lab/b.md)\n"), ("docs/lab/b.md", "[a](../a.md)\n")];
        assert_eq!(complaints(&[outer, inner, pages[0], pages[1]]), "");
        let empty = ("docs/lab/SUMMARY.md", "# Contents\n");
        assert!(complaints(&[outer, empty, pages[0], pages[1]]).contains("docs/lab/b.md: docs/lab/SUMMARY.md"));
        let both = ("docs/SUMMARY.md", "# Contents\n\n- [A](a.md)\n- [B](lab/b.md)\n");
        assert!(complaints(&[both, inner, pages[0], pages[1]]).contains("docs/lab/b.md is a page of another book"));
    }
}
