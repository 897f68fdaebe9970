//! Objects that two places of the file must not both use: a drive, an export's name, a listening address.

use std::collections::BTreeMap;
use std::path::Path;

use openraid_nbd::{NbdUri, Transport};

use crate::read::{ARRAYS_MAX, EXPORTS_MAX, JOURNAL_DEVICES_MAX, LISTENS_MAX, MEMBERS_MAX, SPARES_MAX};
use crate::table::{Section, Word};

/// Things by name: the line and key of the first use.
#[derive(Default)]
struct Uses(BTreeMap<String, (u32, String)>);

impl Uses {
    fn note(&mut self, section: &Section<'_>, key: &str, word: &Word, what: &str) {
        self.note_as(section, key, word, word.text.clone(), what);
    }

    /// Note a use under a name that is the same for all notations.
    fn note_as(&mut self, section: &Section<'_>, key: &str, word: &Word, name: String, what: &str) {
        let path = section.path_of(key);
        let line = section.reader.line(word.at);
        if let Some((first, other)) = self.0.get(&name) {
            let text = format!("{what} {:?} is used twice", word.text);
            section.reader.complain(word.at, &path, &text, &format!("line {first} ({other}) has it already"));
        } else {
            self.0.insert(name, (line, path));
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
        for key in ["nbd", "nbd-tls", "nvme"] {
            for word in server.texts(key, LISTENS_MAX).unwrap_or_default().iter().filter(is_fixed) {
                listens.note_as(&server, key, word, at_loopback(&word.text), "the address");
            }
        }
        let sockets = server.texts("nbd-unix", LISTENS_MAX).unwrap_or_default();
        listens.note_all(&server, "nbd-unix", sockets, "the address");
    }
    if let Some(management) = top.table("management") {
        if let Some(word) = management.text("listen").filter(|word| is_fixed(&word)) {
            listens.note_as(&management, "listen", &word, at_loopback(&word.text), "the address");
        }
    }
    let own_addresses = OwnAddresses::of(top);
    let arrays = top.table("arrays").map(|section| section.all_tables()).unwrap_or_default();
    for (_, array) in arrays.iter().take(ARRAYS_MAX) {
        let members = array.texts("members", MEMBERS_MAX).unwrap_or_default();
        members.iter().for_each(|word| own_addresses.note(array, "members", word));
        drives.note_all(array, "members", members, "the drive");
        exports.note_all(array, "exports", array.texts("exports", EXPORTS_MAX).unwrap_or_default(), "the export");
    }
    for spare in top.tables("spares").iter().take(SPARES_MAX) {
        let member: Vec<Word> = spare.text("member").into_iter().collect();
        member.iter().for_each(|word| own_addresses.note(spare, "member", word));
        drives.note_all(spare, "member", member, "the drive");
    }
}

/// Port 0 is a free port, another one each time.
fn is_fixed(word: &&Word) -> bool {
    word.text != "0" && !word.text.ends_with(":0")
}

/// A port alone is one of the loopback.
fn at_loopback(text: &str) -> String {
    if text.contains(':') {
        text.to_owned()
    } else {
        format!("127.0.0.1:{text}")
    }
}

/// The addresses of this server: an array whose member is served there would wait for itself.
struct OwnAddresses {
    sockets: Vec<String>,
    listens: Vec<String>,
}

impl OwnAddresses {
    fn of(top: &Section<'_>) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let words = top.table("server").and_then(|server| server.texts(key, LISTENS_MAX)).unwrap_or_default();
            words.into_iter().map(|word| word.text).collect()
        };
        Self { sockets: texts("nbd-unix"), listens: texts("nbd").iter().map(|text| at_loopback(text)).collect() }
    }

    /// Addresses are compared as they are written; the server itself finds other notations when it opens the member.
    fn has(&self, member: &str) -> bool {
        match member.parse::<NbdUri>().map(|uri| uri.transport) {
            Ok(Transport::Unix { socket }) => self.sockets.iter().any(|known| Path::new(known) == socket),
            Ok(Transport::Tcp { host, port }) => {
                let host = if host == "localhost" { "127.0.0.1" } else { &host };
                let is_ipv6 = host.contains(':');
                let address = if is_ipv6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
                self.listens.contains(&address)
            }
            Err(_) => false,
        }
    }

    /// A note, and no problem: the server refuses that member only, and serves the other arrays.
    fn note(&self, section: &Section<'_>, key: &str, word: &Word) {
        if self.has(&word.text) {
            let what = format!("{:?} is an export of this server, and no array can wait for itself", word.text);
            section.reader.note(word.at, &section.path_of(key), &what, "name a drive, or an export of another server");
        }
    }
}
