//! Names that the core had once and must not get again, each with the name that it has now.
//!
//! They were renamed because a reader could not tell from the name what it does, or because one name meant several
//! things. A word counts as a whole identifier, or as its beginning if the entry ends with `*`.

use crate::tree::Entry;

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

/// Find the old names in the core.
pub fn check(files: &[Entry], complaints: &mut Vec<String>) {
    let own = files.iter().filter(|file| file.is("rs") && file.path.starts_with(CORE));
    for file in own {
        let Some(text) = file.text() else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.split("//").next().unwrap_or_default();
            for (old, new) in code.split(|c: char| c != '_' && !c.is_alphanumeric()).filter_map(renamed) {
                complaints.push(format!("{}:{number}: the name {old} is not used any more; use {new}", file.path));
            }
        }
    }
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
            check(&[Entry { path: format!("{CORE}io/a.rs"), bytes: text.into() }], &mut complaints);
            complaints.len()
        };
        assert_eq!(of("fn settle_array(&self) { self.promises_nothing() }\n"), 2);
        assert_eq!(
            of("let a = 1; // the legs settle\n/// A debts table.\nfn unsettled(leg_room: u8, Settling: u8) {}\n"),
            0
        );
    }
}
