//! A judge of printed texts: no debug text, right plurals, standard terms.

use super::Lab;

/// Signs of a value that was printed for programmers.
const DEBUG: &[&str] =
    &["Some(", "None,", "Ok(", "Err(", "DriveLba(", "DriveId(", "Slot(", "Sectors(", "{ ", "{0", "{1", "{2", "{3"];
/// Words that were found odd once.
const OLD: &[&str] = &[
    "is made",
    "made consistent in the background",
    "takes promises",
    "for promises",
    "everything fits",
    "nothing runs in the background",
    "not served; its members",
    "told is what stands",
    "is not a level",
    "is not a setting",
    "no members were given that can be used",
    "make it larger",
    "in use by the kernel",
    "makes no sense",
    "redundancy is reduced",
];

/// A count of one with a plural: `1 spares`.
pub fn odd_plural(text: &str) -> Option<String> {
    // The last number of a row and the first word of the next one belong to different things.
    text.lines().find_map(odd_plural_in)
}

fn odd_plural_in(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_noun = |word: &str| {
        let word = word.trim_end_matches([',', '.', ';', ':', ')']);
        word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && word.chars().all(|c| c.is_ascii_lowercase())
    };
    let known = ["is", "has", "was", "this", "us", "ms", "holds", "covers", "does", "survives", "needs", "works"];
    let mut pairs = words.windows(2);
    let odd =
        pairs.find(|pair| pair[0].trim_start_matches('(') == "1" && is_noun(pair[1]) && !known.contains(&pair[1]));
    odd.map(|pair| pair.join(" "))
}

/// Odd words in a text.
fn odd(text: &str) -> Vec<String> {
    let wrong = DEBUG.iter().chain(OLD).filter(|wrong| text.contains(**wrong)).map(ToString::to_string);
    wrong.chain(odd_plural(text)).collect()
}

/// Run a line; all that it says.
#[track_caller]
pub fn said(lab: &Lab, line: &str) -> String {
    let ran = lab.line(line);
    assert!(!ran.err.contains("panicked"), "{line}: {}", ran.err);
    format!("{}{}", ran.text(), ran.err)
}

/// Run lines and look at all that they say.
#[track_caller]
pub fn read_well(lab: &Lab, lines: &[&str]) {
    let mut complaints = Vec::new();
    for line in lines {
        let text = said(lab, line);
        let odd = odd(&text);
        if !odd.is_empty() {
            complaints.push(format!("openraid {line}: {odd:?} in\n{text}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
