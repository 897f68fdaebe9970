//! The pictures of `docs/pictures`, which `tools/pictures` makes: each is there, small enough for a page, and shown with a text, which
//! is read aloud in its place.

use crate::links::prose;
use crate::tree::SourceFile;

/// The folder with nothing but pictures.
const FOLDER: &str = "docs/pictures/";
/// Each picture, and the size in bytes that it must not exceed.
const PICTURES: &[(&str, usize)] = &[("chart.svg", 100_000), ("console.png", 200_000), ("demo.svg", 100_000)];

/// Complain of each picture that is missing, too large, unknown, or on no page.
pub fn check(files: &[SourceFile], complaints: &mut Vec<String>) {
    let present = files.iter().filter_map(|file| Some((file.path.strip_prefix(FOLDER)?, file.bytes.len())));
    for (name, _) in present.clone().filter(|(name, _)| !PICTURES.iter().any(|(known, _)| known == name)) {
        complaints.push(format!("{FOLDER}{name}: xtask/src/pictures.rs does not name it"));
    }
    for (name, size_max) in PICTURES {
        match present.clone().find(|(path, _)| path == name) {
            None => complaints.push(format!("{FOLDER}{name} is missing; tools/pictures makes it")),
            Some((_, size)) if size > *size_max => {
                complaints.push(format!("{FOLDER}{name} has {size} bytes; at most {size_max} are allowed"));
            }
            Some(_) => (),
        }
        if !files.iter().any(|page| page.is("md") && page.text().is_some_and(|text| shows(text, name))) {
            complaints.push(format!("{FOLDER}{name} is on no page; show it with ![what it shows](pictures/{name})"));
        }
    }
}

/// Is there a picture of that name, with a text?
fn shows(text: &str, name: &str) -> bool {
    let pictures = prose(text).flat_map(|(_, line)| line.split("![").skip(1));
    let mut parts = pictures.filter_map(|part| part.split_once(')')?.0.split_once("]("));
    parts.any(|(words, target)| !words.is_empty() && target.ends_with(&format!("pictures/{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(size: usize, page: &str) -> String {
        let mut files: Vec<SourceFile> = PICTURES
            .iter()
            .map(|(name, _)| SourceFile { path: format!("{FOLDER}{name}"), bytes: vec![b'x'; size] })
            .collect();
        files.push(SourceFile { path: "README.md".into(), bytes: page.into() });
        let mut found = Vec::new();
        check(&files, &mut found);
        found.join("\n")
    }

    #[test]
    fn a_picture_is_there_small_enough_and_on_a_page_with_a_text() {
        let page = "![a](docs/pictures/chart.svg)\n![b](docs/pictures/console.png) ![c](docs/pictures/demo.svg)\n";
        assert_eq!(complaints(100_000, page), "");
        let large = complaints(100_001, page);
        assert!(large.contains("demo.svg has 100001 bytes") && !large.contains("console.png"), "{large}");
        assert!(complaints(1, &page.replace("![c]", "![]")).contains("demo.svg is on no page"));
        assert!(complaints(1, &page.replace("![c]", "[c]")).contains("demo.svg is on no page"));
        let mut found = Vec::new();
        check(&[SourceFile { path: format!("{FOLDER}x.png"), bytes: vec![] }], &mut found);
        assert!(found[0].contains("x.png: xtask/src/pictures.rs does not name it"), "{found:?}");
        assert!(found.contains(&"docs/pictures/chart.svg is missing; tools/pictures makes it".into()), "{found:?}");
    }
}
