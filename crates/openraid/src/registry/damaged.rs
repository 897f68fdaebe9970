//! What a registry says that cannot be read as a whole: other software must not get the members of its arrays.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use openraid_format::Uuid;

use super::{RegisteredArray, Registry, FILE_BYTES_MAX};
use crate::kept_settings::KeptSettings;
use crate::model::LevelWord;

/// The name of an array of which only a member's path is known.
const UNNAMED: &str = "an array of the registry that cannot be read";

impl Registry {
    /// All arrays that are recorded. If the file cannot be read, the identities and paths that stand in it and in its older copy; the user
    /// is told.
    pub fn entries_or_traces(&self) -> Vec<RegisteredArray> {
        self.entries().unwrap_or_else(|failure| {
            self.tell(&failure.text());
            let mut bytes = Vec::new();
            for path in [self.path.clone(), self.beside("old")] {
                // What cannot be read has no traces.
                let _ = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
                bytes.push(b'"');
            }
            traces(&String::from_utf8_lossy(&bytes))
        })
    }
}

fn traces(text: &str) -> Vec<RegisteredArray> {
    let words: BTreeSet<&str> = text.split('"').collect();
    let of = |name: &str, uuid: Option<String>, members: Vec<String>| {
        let name = name.to_owned();
        RegisteredArray { name, uuid, level: LevelWord::Unknown, members, kept: KeptSettings::default() }
    };
    let uuids = words.iter().filter(|word| word.parse::<Uuid>().is_ok());
    let mut found: Vec<RegisteredArray> = uuids.map(|uuid| of(uuid, Some((*uuid).to_owned()), Vec::new())).collect();
    let paths = words.iter().filter(|word| word.starts_with('/')).map(|path| (*path).to_owned());
    found.push(of(UNNAMED, None, paths.collect()));
    found
}
