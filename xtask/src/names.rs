//! Names that the core had once and must not get again, each with the name that it has now; types of the core with one name;
//! and types that are called by a question word or a participle.
//!
//! They were renamed because a reader could not tell from the name what it does, or because one name meant several
//! things. A word counts as a whole identifier, or as its beginning if the entry ends with `*`.
//!
//! In all crates a variable is called after its thing: `own` says only that it is this one. Public types of different files
//! have different names, in all crates together.

use crate::rust::Code;
use crate::tree::SourceFile;
use std::collections::{BTreeMap, BTreeSet};

/// The source of the core, with the slash at its end.
const CORE: &str = "crates/core/src/";

/// An old name, and the present one.
const RENAMED: &[(&str, &str)] = &[
    ("settle*", "a verb for the very change: release, revoke, free, end; or at_rest, durable, covers_all"),
    ("is_settled", "is_at_rest, is_all_durable"),
    ("promises_nothing", "is_durability_lost"),
    ("waits_for_redo", "hold_for_redo"),
    ("is_walking", "is_by_rows"),
    ("begin_walk", "begin_rows"),
    ("owed", "pending redos, redo backlog"),
    ("debts", "pending redos, redo backlog"),
    ("unpaid", "pending redos, redo backlog"),
    ("in_doubt", "flush_failed, metadata_stale, journal_stale"),
    ("leg", "span"),
    ("legs", "spans"),
    ("tell_*", "trace_*, notice"),
    ("deed", "the action itself"),
    ("wish", "best, wanted"),
    ("BehindUnsaid", "StaleJournalUnmarked"),
];

/// Question words and participles that no type is called by: alone, they do not say which thing it is.
const NO_NOUNS: &[&str] = &[
    "Announced",
    "Arrived",
    "Asked",
    "Asking",
    "Awaited",
    "Begun",
    "Beside",
    "Chosen",
    "Done",
    "For",
    "Found",
    "Given",
    "Held",
    "How",
    "Incoming",
    "Kept",
    "Known",
    "Left",
    "Looked",
    "Offered",
    "Other",
    "Others",
    "Outgoing",
    "Seen",
    "Sent",
    "Spoken",
    "Taken",
    "Told",
    "Tried",
    "Waiting",
    "Wanted",
    "Way",
    "What",
    "When",
    "Where",
    "Which",
    "Who",
    "Why",
    "Written",
];

/// Find old names, variables without a name of their thing, and types with one name.
pub fn check(files: &[SourceFile], complaints: &mut Vec<String>) {
    of_core(files, complaints);
    no_nouns(files, complaints);
    owns(files, complaints);
    shared_names(files, complaints);
}

/// Find types that are called by a question word or a participle.
fn no_nouns(files: &[SourceFile], complaints: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.is("rs")) {
        let words = Code::of(file.text().unwrap_or_default()).words();
        let types = words.windows(2).filter(|pair| ["struct", "enum", "trait", "type", "union"].contains(&&*pair[0].1));
        for (line, name) in types.map(|pair| &pair[1]).filter(|(_, name)| NO_NOUNS.contains(&&**name)) {
            complaints.push(format!("{}:{line}: the type {name} has no noun: call it after its thing", file.path));
        }
    }
}

/// Find variables called `own`.
fn owns(files: &[SourceFile], complaints: &mut Vec<String>) {
    for file in files.iter().filter(|file| file.is("rs")) {
        let words = Code::of(file.text().unwrap_or_default()).words();
        complaints.extend(words.iter().filter(|(_, word)| word == "own").map(|(line, _)| {
            format!("{}:{line}: own says only that it is this one: call the variable after its thing", file.path)
        }));
    }
}

/// Find names that public types of several files have.
fn shared_names(files: &[SourceFile], complaints: &mut Vec<String>) {
    let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is("rs") && file.path.contains("src/")) {
        for name in file.text().unwrap_or_default().lines().filter_map(visible_type) {
            types.entry(name).or_default().insert(&file.path);
        }
    }
    for (name, files) in types.iter().filter(|(_, files)| files.len() > 1) {
        let files: Vec<&str> = files.iter().copied().collect();
        complaints.push(format!("{} have public types of one name, {name}: call one after its part", files.join(", ")));
    }
}

/// Find the old names in the core, and two types with one name that are both visible outside their files.
fn of_core(files: &[SourceFile], complaints: &mut Vec<String>) {
    let sources = files.iter().filter(|file| file.is("rs") && file.path.starts_with(CORE));
    let mut types = BTreeMap::new();
    for file in sources {
        let Some(text) = file.text() else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(earlier) = visible_type(line).and_then(|name| types.insert(name, &file.path)) {
                complaints.push(format!("{}:{number}: {earlier} has a type of the same name", file.path));
            }
            let code = line.split("//").next().unwrap_or_default();
            for (old, new) in code.split(|c: char| c != '_' && !c.is_alphanumeric()).filter_map(renamed) {
                complaints.push(format!("{}:{number}: the name {old} is not used any more; use {new}", file.path));
            }
        }
    }
}

/// The name of a type that a line declares for other files.
fn visible_type(line: &str) -> Option<&str> {
    let mut words = line.split([' ', '<', '(', ';']).skip_while(|word| !["struct", "enum", "trait"].contains(word));
    words.nth(1).filter(|_| line.starts_with("pub"))
}

/// The entry of a name.
fn renamed(word: &str) -> Option<(&'static str, &'static str)> {
    let is_it = |old: &str| old.strip_suffix('*').map_or(word == old, |start| word.starts_with(start));
    RENAMED.iter().copied().find(|(old, _)| is_it(old))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_name_in_code_is_found_and_a_word_in_a_comment_or_a_longer_name_is_not() {
        let of = |text: &str| {
            let mut complaints = Vec::new();
            check(&[SourceFile { path: format!("{CORE}io/a.rs"), bytes: text.into() }], &mut complaints);
            complaints.len()
        };
        assert_eq!(of("fn settle_array(&self) { self.promises_nothing() }\n"), 2);
        assert_eq!(
            of("let a = 1; // the legs settle\n/// A debts table.\nfn unsettled(leg_room: u8, Settling: u8) {}\n"),
            0
        );
    }

    #[test]
    fn a_variable_called_own_is_found_in_code_and_not_in_a_comment_or_a_text() {
        let of = |path: &str, text: &str| {
            let mut complaints = Vec::new();
            check(&[SourceFile { path: path.into(), bytes: text.into() }], &mut complaints);
            complaints.join("\n")
        };
        let found = of("crates/sys/src/a.rs", "fn f() {\n    all.iter().map(|own| own.len());\n}\n");
        assert!(found.starts_with("crates/sys/src/a.rs:2: own says only") && found.lines().count() == 2, "{found}");
        assert_eq!(of("crates/sys/src/a.rs", "// its own\nconst A: &str = \"own\";\nfn own_address() {}\n"), "");
    }

    #[test]
    fn a_type_called_by_a_participle_is_found_and_a_variant_of_that_name_is_not() {
        let of = |text: &str| {
            let mut complaints = Vec::new();
            check(&[SourceFile { path: "crates/sys/src/a.rs".into(), bytes: text.into() }], &mut complaints);
            complaints.join("\n")
        };
        let found = of("mod tests {\n    struct Found<T>(T);\n}\npub type Kept = u8;\n");
        assert!(found.starts_with("crates/sys/src/a.rs:2: the type Found has no noun"), "{found}");
        assert_eq!(found.lines().count(), 2, "{found}");
        assert_eq!(of("enum State {\n    Found,\n}\n/// A type Kept.\nstruct FoundMark;\n"), "");
    }

    #[test]
    fn two_types_of_one_name_are_found_if_both_are_visible_outside_their_files() {
        let complaints = |one: &str, other: &str| {
            let file = |name: &str, text: &str| SourceFile { path: format!("{CORE}{name}.rs"), bytes: text.into() };
            let mut complaints = Vec::new();
            check(&[file("a", one), file("b", other)], &mut complaints);
            complaints.join("\n")
        };
        let found = complaints("pub(crate) struct Log {\n", "//! B.\npub(in crate::ppl) enum Log<T> {\n");
        let of_all = format!("{CORE}a.rs, {CORE}b.rs have public types of one name, Log: call one after its part");
        assert_eq!(found, format!("{CORE}b.rs:2: {CORE}a.rs has a type of the same name\n{of_all}"));
        assert_eq!(complaints("pub struct Log;\n", "struct Log;\npub struct LogState(u8);\n"), "");
    }
}
