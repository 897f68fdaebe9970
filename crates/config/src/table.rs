//! Reads tables key by key and collects every problem with its line.
//!
//! A reader function never fails: it notes the problem and leaves the key out, so that one pass finds all mistakes. Whether the
//! file may be used is decided at the end, by whether there are problems.
//!
//! The reader of profiles (`models/src/reader.rs`) is another one, because the laboratory's profiles have units, ranges and sources,
//! and the controller is linked without it.

use std::cell::RefCell;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

use crate::nearest::nearest;
use crate::problem::{ConfigProblem, PROBLEMS_MAX};

/// A text that is being read.
pub struct FileReader<'t> {
    text: &'t str,
    problems: RefCell<Vec<ConfigProblem>>,
    notes: RefCell<Vec<ConfigProblem>>,
    /// The table that a key belongs in, for keys that stand in another one.
    pub elsewhere: &'t dyn Fn(&str) -> Option<String>,
}

impl<'t> FileReader<'t> {
    /// For this text.
    pub fn new(text: &'t str, elsewhere: &'t dyn Fn(&str) -> Option<String>) -> Self {
        Self { text, problems: RefCell::default(), notes: RefCell::default(), elsewhere }
    }

    fn place(&self, at: usize) -> (u32, u32) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }

    /// The line of a place, counted from 1.
    pub fn line(&self, at: usize) -> u32 {
        self.place(at).0
    }

    fn problem(&self, at: usize, key: &str, what: &str, remedy: &str) -> ConfigProblem {
        let (line, column) = self.place(at);
        ConfigProblem { line, column, key: key.into(), what: what.into(), remedy: remedy.into() }
    }

    /// Something is wrong here.
    pub fn complain(&self, at: usize, key: &str, what: &str, remedy: &str) {
        let mut problems = self.problems.borrow_mut();
        if problems.len() < PROBLEMS_MAX {
            problems.push(self.problem(at, key, what, remedy));
        }
    }

    /// Something may not be meant.
    pub fn note(&self, at: usize, key: &str, what: &str, remedy: &str) {
        self.notes.borrow_mut().push(self.problem(at, key, what, remedy));
    }

    /// The problems and the notes, each in the order of lines.
    pub fn found(self) -> (Vec<ConfigProblem>, Vec<ConfigProblem>) {
        let (mut problems, mut notes) = (self.problems.into_inner(), self.notes.into_inner());
        problems.sort();
        problems.dedup();
        notes.sort();
        (problems, notes)
    }
}

/// A table that is being read.
#[derive(Clone)]
pub struct Section<'r> {
    /// The whole.
    pub reader: &'r FileReader<'r>,
    table: &'r DeTable<'r>,
    /// The keys that lead here: `arrays.data`.
    pub path: String,
    /// Where it begins.
    pub at: usize,
}

/// A text with its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    pub text: String,
    /// Where it stands.
    pub at: usize,
}

impl<'r> Section<'r> {
    /// The table of the whole file.
    pub fn top(reader: &'r FileReader<'r>, table: &'r DeTable<'r>) -> Self {
        Self { reader, table, path: String::new(), at: 0 }
    }

    /// The path of a key of this table.
    pub fn path_of(&self, key: &str) -> String {
        let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let key = if plain { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() {
            key
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// Complain of every key that is not known.
    pub fn know(&self, known: &[&str]) {
        for key in self.table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let word = key.get_ref().as_ref();
            let remedy = match (nearest(word, known), (self.reader.elsewhere)(word)) {
                (Some(near), _) => format!("did you mean {near}?"),
                (None, Some(place)) => format!("it belongs in {place}"),
                (None, None) => format!("known keys here: {}", known.join(", ")),
            };
            self.reader.complain(key.span().start, &self.path_of(word), "unknown key", &remedy);
        }
    }

    /// Where a key stands.
    pub fn at_key(&self, key: &str) -> usize {
        let found = self.table.keys().find(|name| name.get_ref().as_ref() == key);
        found.map_or(self.at, |name| name.span().start)
    }

    /// Is there such a key, whatever its value is?
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn get(&self, key: &str) -> Option<&'r Spanned<DeValue<'r>>> {
        self.table.get(key)
    }

    /// Complain of a value of this key.
    pub fn complain(&self, at: usize, key: &str, what: &str, remedy: &str) {
        self.reader.complain(at, &self.path_of(key), what, remedy);
    }

    pub fn text(&self, key: &str) -> Option<Word> {
        let value = self.get(key)?;
        let Some(text) = value.get_ref().as_str() else {
            let what = format!("{} where a text belongs", kind(value.get_ref()));
            self.complain(self.at_key(key), key, &what, &format!("write {key} = \"...\""));
            return None;
        };
        Some(Word { text: text.to_owned(), at: value.span().start })
    }

    /// A list of texts; a single text is a list of one.
    pub fn texts(&self, key: &str, count_max: usize) -> Option<Vec<Word>> {
        let value = self.get(key)?;
        if value.get_ref().as_str().is_some() {
            return self.text(key).map(|word| vec![word]);
        }
        let Some(values) = value.get_ref().as_array() else {
            let what = format!("{} where a list of texts belongs", kind(value.get_ref()));
            self.complain(self.at_key(key), key, &what, &format!("write {key} = [\"...\"]"));
            return None;
        };
        if values.len() > count_max {
            let what = format!("{} entries", values.len());
            self.complain(self.at_key(key), key, &what, &format!("{count_max} is the most"));
            return None;
        }
        let mut words = Vec::new();
        for value in values.iter() {
            match value.get_ref().as_str() {
                Some(text) => words.push(Word { text: text.to_owned(), at: value.span().start }),
                None => {
                    let what = format!("{} in a list of texts", kind(value.get_ref()));
                    self.complain(value.span().start, key, &what, "write it in quotes");
                }
            }
        }
        Some(words)
    }

    /// A whole number in these bounds.
    pub fn number(&self, key: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.get(key)?;
        let number = value.get_ref().as_integer().and_then(|n| i128::from_str_radix(n.as_str(), n.radix()).ok());
        let fits = number.and_then(|number| u64::try_from(number).ok()).filter(|n| (least..=most).contains(n));
        if fits.is_none() {
            let what = match number {
                Some(number) => format!("{number} is out of range"),
                None => format!("{} where a number belongs", kind(value.get_ref())),
            };
            self.complain(self.at_key(key), key, &what, &format!("write a number from {least} to {most}"));
        }
        fits
    }

    /// `true` or `false`.
    pub fn switch(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            let what = format!("{} where true or false belongs", kind(value.get_ref()));
            self.complain(self.at_key(key), key, &what, "write true or false");
        }
        switch
    }

    /// A table below this one.
    pub fn table(&self, key: &str) -> Option<Section<'r>> {
        let value = self.get(key)?;
        let Some(table) = value.get_ref().as_table() else {
            let what = format!("{} where a table belongs", kind(value.get_ref()));
            self.complain(self.at_key(key), key, &what, &format!("write [{}]", self.path_of(key)));
            return None;
        };
        Some(Section { reader: self.reader, table, path: self.path_of(key), at: self.at_key(key) })
    }

    /// The tables of a list: `[[spares]]`.
    pub fn tables(&self, key: &str) -> Vec<Section<'r>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let path = self.path_of(key);
        let mut sections = Vec::new();
        for value in value.get_ref().as_array().into_iter().flat_map(|values| values.iter()) {
            let Some(table) = value.get_ref().as_table() else {
                sections.clear();
                break;
            };
            sections.push(Section { reader: self.reader, table, path: path.clone(), at: value.span().start });
        }
        if sections.is_empty() {
            self.complain(self.at_key(key), key, "not a list of tables", &format!("write [[{path}]]"));
        }
        sections
    }

    /// All tables below this one, by their keys.
    pub fn all_tables(&self) -> Vec<(String, Section<'r>)> {
        let keys = self.table.keys().map(|key| key.get_ref().to_string());
        keys.filter_map(|key| self.table(&key).map(|section| (key, section))).collect()
    }

    /// Every value below this table by its dotted key: `rebuild.rate = "50M"` and `"rebuild.rate" = "50M"` are the same.
    /// Numbers and switches become the texts that the command line takes.
    pub fn settings(&self) -> Vec<(String, Word)> {
        let mut all = Vec::new();
        self.add_settings("", &mut all);
        all
    }

    fn add_settings(&self, before: &str, all: &mut Vec<(String, Word)>) {
        for (key, value) in self.table.iter() {
            let word = key.get_ref().as_ref();
            let name = if before.is_empty() { word.to_owned() } else { format!("{before}.{word}") };
            let at = key.span().start;
            let text = match value.get_ref() {
                DeValue::Table(_) if before.matches('.').count() < 2 => {
                    if let Some(below) = self.table(word) {
                        below.add_settings(&name, all);
                    }
                    continue;
                }
                DeValue::String(text) => text.to_string(),
                DeValue::Boolean(on) => if *on { "on" } else { "off" }.into(),
                DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
                other => {
                    let what = format!("{} where the value of a setting belongs", kind(other));
                    self.complain(at, word, &what, &format!("write {name} = \"...\", as openraid set takes it"));
                    continue;
                }
            };
            all.push((name, Word { text, at }));
        }
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a broken number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
