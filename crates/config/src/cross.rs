//! Objects that two places of the file must not both use: a drive, an export's name, a listening address.

use std::collections::BTreeMap;

use crate::read::{ARRAYS_MAX, EXPORTS_MAX, JOURNAL_DEVICES_MAX, LISTENS_MAX, MEMBERS_MAX, SPARES_MAX};
use crate::table::{Section, Word};

/// Things by name: the line and key of the first use.
#[derive(Default)]
struct Uses(BTreeMap<String, (u32, String)>);

impl Uses {
    fn note(&mut self, section: &Section<'_>, key: &str, word: &Word, what: &str) {
        let path = section.path_of(key);
        let line = section.reader.line(word.at);
        if let Some((first, other)) = self.0.get(&word.text) {
            let text = format!("{what} {:?} is used twice", word.text);
            section.reader.complain(word.at, &path, &text, &format!("line {first} ({other}) has it already"));
        } else {
            self.0.insert(word.text.clone(), (line, path));
        }
    }

    fn note_all(&mut self, section: &Section<'_>, key: &str, words: Vec<Word>, what: &str) {
        words.iter().for_each(|word| self.note(section, key, word, what));
    }
}

/// Report drives, exports and addresses that are used twice. Values of a wrong kind were reported before; the same
/// problem counts once.
pub fn check_uses(top: &Section<'_>) {
    let (mut drives, mut exports, mut listens) = (Uses::default(), Uses::default(), Uses::default());
    if let Some(server) = top.table("server") {
        let journal = server.texts("journal", JOURNAL_DEVICES_MAX).unwrap_or_default();
        drives.note_all(&server, "journal", journal, "the drive");
        for key in ["nbd", "nbd-unix"] {
            listens.note_all(&server, key, server.texts(key, LISTENS_MAX).unwrap_or_default(), "the address");
        }
    }
    let arrays = top.table("arrays").map(|section| section.all_tables()).unwrap_or_default();
    for (_, array) in arrays.iter().take(ARRAYS_MAX) {
        drives.note_all(array, "members", array.texts("members", MEMBERS_MAX).unwrap_or_default(), "the drive");
        exports.note_all(array, "exports", array.texts("exports", EXPORTS_MAX).unwrap_or_default(), "the export");
    }
    for spare in top.tables("spares").iter().take(SPARES_MAX) {
        drives.note_all(spare, "member", spare.text("member").into_iter().collect(), "the drive");
    }
}
