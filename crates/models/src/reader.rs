//! Reads tables field by field, and records every error with its place.
//!
//! A function of the reader never fails. It records an error and returns a substitute value, so that one pass finds all
//! errors of a file. The profile is rejected at the end if there are errors.
//!
//! The configuration's reader (`config/src/table.rs`) is another one, because that is linked into the controller and has no
//! units, ranges and sources. A common reader would have the place of an error only.
//!
//! ```text
//!  seek_average_ms = { value = 5.2, range = [4.9, 5.5], from = "sheet", note = "..." }
//!  heads = 4                       # allowed where the file says `from = "sheet"` at its top
//! ```

use crate::error::{ModelError, ModelErrors, ERRORS_MAX};
use crate::sourced::{Confidence, Sourced};
use crate::unit::{ending, Dimension};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Limit of the length of a profile: a longer file is rejected.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;

/// The end of a range from which a value is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// The least value of the range.
    Low,
    /// The greatest value of the range.
    High,
}

/// Fields (`seek.read_average_ms`) that are read at an end of their range.
pub type Edges = BTreeMap<String, Edge>;

/// A file that is being read.
pub(crate) struct ProfileReader<'t> {
    file: &'t str,
    text: &'t str,
    edges: &'t Edges,
    sources: BTreeMap<String, (Confidence, String)>,
    default_source: Option<String>,
    errors: RefCell<Vec<ModelError>>,
    uncertain: RefCell<Vec<String>>,
    measured: RefCell<Vec<String>>,
}

/// The fields of a file whose values have a range, and those whose values are from the device itself.
pub(crate) struct KnownFields {
    pub uncertain: Vec<String>,
    pub measured: Vec<String>,
}

/// A table that is being read.
pub(crate) struct ProfileSection<'r> {
    reader: &'r ProfileReader<'r>,
    table: Option<&'r DeTable<'r>>,
    path: String,
    place: usize,
    asked: RefCell<BTreeSet<String>>,
    endings: RefCell<Vec<(String, Dimension)>>,
}

/// Read `text` with `read`, which gets the top table. The result is an error if any error was recorded.
pub(crate) fn read_file<T>(
    file: &str,
    text: &str,
    edges: &Edges,
    read: impl FnOnce(&ProfileSection<'_>) -> T,
) -> Result<(T, KnownFields), ModelErrors> {
    let mut reader = ProfileReader {
        file,
        text,
        edges,
        sources: BTreeMap::new(),
        default_source: None,
        errors: RefCell::default(),
        uncertain: RefCell::default(),
        measured: RefCell::default(),
    };
    if text.len() > FILE_BYTES_MAX {
        reader.complain(0, "", "a profile of more than 1 MiB is not a profile", "name the right file");
        return Err(ModelErrors(reader.errors.into_inner()));
    }
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let place = error.span().map_or(0, |span| span.start);
            let reason = format!("not TOML: {}", error.message().replace('\n', ", "));
            reader.complain(place, "", &reason, "correct the line");
            return Err(ModelErrors(reader.errors.into_inner()));
        }
    };
    reader.read_sources(root.get_ref());
    let reader = reader;
    let top = ProfileSection::new(&reader, Some(root.get_ref()), String::new(), 0);
    top.ask("sources");
    top.ask("from");
    let value = read(&top);
    top.finish();
    let errors = reader.errors.take();
    match errors.is_empty() {
        true => Ok((value, KnownFields { uncertain: reader.uncertain.take(), measured: reader.measured.take() })),
        false => Err(ModelErrors(errors)),
    }
}

impl ProfileReader<'_> {
    fn complain(&self, place: usize, field: &str, reason: &str, remedy: &str) {
        let before = self.text.get(..place).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let mut errors = self.errors.borrow_mut();
        let error = ModelError {
            file: self.file.to_owned(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            field: field.to_owned(),
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        };
        // A value and both ends of its range may have the same error.
        if errors.len() < ERRORS_MAX && !errors.contains(&error) {
            errors.push(error);
        }
    }

    fn read_sources(&mut self, root: &DeTable<'_>) {
        let mut sources = BTreeMap::new();
        if let Some(table) = root.get("sources") {
            let Some(entries) = table.get_ref().as_table() else {
                return self.complain(table.span().start, "sources", "is not a table", "write [sources.NAME] tables");
            };
            for (key, entry) in entries {
                let field = format!("sources.{}", key.get_ref());
                let texts = |name: &str| entry.get_ref().get(name).and_then(|found| found.get_ref().as_str());
                let word = texts("confidence").unwrap_or_default();
                let confidence = Confidence::WORDS.iter().find(|(known, _)| *known == word);
                let text = texts("text").unwrap_or_default();
                if confidence.is_none() || text.is_empty() {
                    let remedy = "write { confidence = \"measured\" | \"sheet\" | \"review\" | \"calibrated\" | \
                                  \"derived\" | \"memory\", text = \"where it is found\" }";
                    self.complain(key.span().start, &field, "a source needs a confidence and a text", remedy);
                    continue;
                }
                let confidence = confidence.map_or(Confidence::Memory, |(_, confidence)| *confidence);
                sources.insert(key.get_ref().to_string(), (confidence, text.to_owned()));
            }
        }
        if let Some(default) = root.get("from") {
            match default.get_ref().as_str() {
                Some(name) if sources.contains_key(name) => self.default_source = Some(name.to_owned()),
                _ => self.complain(default.span().start, "from", "names no source of this file", "add it to [sources]"),
            }
        }
        self.sources = sources;
    }
}

impl<'r> ProfileSection<'r> {
    fn new(reader: &'r ProfileReader<'r>, table: Option<&'r DeTable<'r>>, path: String, place: usize) -> Self {
        Self { reader, table, path, place, asked: RefCell::default(), endings: RefCell::default() }
    }

    fn field(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    fn ask(&self, key: &str) {
        self.asked.borrow_mut().insert(key.to_owned());
    }

    fn get(&self, key: &str) -> Option<&'r Spanned<DeValue<'r>>> {
        self.ask(key);
        self.table.and_then(|table| table.get(key))
    }

    /// Whether the table has this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Whether no error of this file was recorded so far. Comparisons of substitute values make no sense.
    pub(crate) fn clean(&self) -> bool {
        self.reader.errors.borrow().is_empty()
    }

    /// The keys of this table.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.table.map(|table| table.keys().map(|key| key.get_ref().to_string()).collect()).unwrap_or_default()
    }

    /// Record an error of a field of this table. A name without a unit finds the key with its unit.
    pub(crate) fn complain(&self, key: &str, reason: &str, remedy: &str) {
        let fits =
            |found: &str| found == key || ending(found).is_some_and(|end| &found[..found.len() - end.len()] == key);
        let found = self.table.and_then(|table| table.iter().find(|(found, _)| fits(found.get_ref())));
        let (place, name) =
            found.map_or((self.place, key), |(found, _)| (found.span().start, found.get_ref().as_ref()));
        self.reader.complain(place, &self.field(name), reason, remedy);
    }

    /// A required table inside this one.
    pub(crate) fn section(&self, key: &str) -> ProfileSection<'r> {
        match self.optional_section(key) {
            Some(section) => section,
            None => {
                if !self.has(key) {
                    self.complain(key, "this table is missing", &format!("add [{}]", self.field(key)));
                }
                // No further errors for its missing fields.
                ProfileSection::new(self.reader, None, self.field(key), self.place)
            }
        }
    }

    /// An optional table inside this one.
    pub(crate) fn optional_section(&self, key: &str) -> Option<ProfileSection<'r>> {
        let found = self.get(key)?;
        let Some(table) = found.get_ref().as_table() else {
            self.complain(key, "is not a table", &format!("write [{}] and its fields below", self.field(key)));
            return None;
        };
        Some(ProfileSection::new(self.reader, Some(table), self.field(key), found.span().start))
    }

    fn missing(&self, key: &str, remedy: &str) {
        if self.table.is_some() {
            self.complain(key, "is missing", remedy);
        }
    }

    /// A required value with a unit, between `least` and `most` base units.
    pub(crate) fn quantity(&self, base: &str, dimension: Dimension, least: u64, most: u64) -> Sourced<u64> {
        self.optional_quantity(base, dimension, least, most).unwrap_or_else(|| {
            let units = dimension.units();
            if dimension != Dimension::Count && self.has(base) {
                self.ask(base);
                let (reason, remedy) = without_unit(base, dimension, base);
                self.complain(base, &reason, &remedy);
            } else if self.table.is_some() && !units.iter().any(|(end, _)| self.has(&format!("{base}{end}"))) {
                let (end, _) = units[units.len() / 2];
                let remedy = format!("add {base}{end} = {{ value = ..., from = \"...\" }}");
                self.complain(base, &format!("the {} is missing", dimension.name()), &remedy);
            }
            Sourced::exact(least)
        })
    }

    /// An optional value with a unit.
    pub(crate) fn optional_quantity(
        &self,
        base: &str,
        dimension: Dimension,
        least: u64,
        most: u64,
    ) -> Option<Sourced<u64>> {
        self.endings.borrow_mut().push((base.to_owned(), dimension));
        let mut found = None;
        for (end, worth) in dimension.units() {
            let key = format!("{base}{end}");
            let Some(value) = self.get(&key) else { continue };
            if found.is_some() {
                self.complain(&key, "is given twice, in two units", "keep one of them");
                continue;
            }
            found = Some(self.sourced(&key, value, dimension, *worth, (least, most.min(dimension.largest()))));
        }
        found
    }

    fn sourced(
        &self,
        key: &str,
        found: &Spanned<DeValue<'_>>,
        dimension: Dimension,
        worth: f64,
        (least, most): (u64, u64),
    ) -> Sourced<u64> {
        let stand_in = Sourced::exact(least);
        let Some((number, range, source)) = self.parts(key, found, &[]) else { return stand_in };
        let base = |number: f64| {
            let exact = number * worth;
            let fits =
                exact.is_finite() && exact >= 0.0 && exact.round() <= most as f64 && exact.round() >= least as f64;
            if !fits {
                let (low, high) = (least as f64 / worth, most as f64 / worth);
                let reason = format!("{number} is not a possible {}", dimension.name());
                self.complain(key, &reason, &format!("give a number from {low} to {high}"));
            }
            // In the range that was just checked.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            fits.then(|| exact.round() as u64)
        };
        let (Some(value), Some(low), Some(high)) = (base(number), base(range.0), base(range.1)) else {
            return stand_in;
        };
        self.at_edge(key, value, (low, high), source)
    }

    /// A value, or the requested end of its range. A value with a range is uncertain.
    fn at_edge<T: Copy + PartialOrd>(
        &self,
        key: &str,
        value: T,
        (low, high): (T, T),
        (confidence, source): (Confidence, String),
    ) -> Sourced<T> {
        let field = self.field(key);
        let value = match self.reader.edges.get(&field) {
            Some(Edge::Low) => low,
            Some(Edge::High) => high,
            None => value,
        };
        if matches!(confidence, Confidence::Measured | Confidence::Calibrated) {
            self.reader.measured.borrow_mut().push(field.clone());
        }
        if low < high {
            self.reader.uncertain.borrow_mut().push(field);
        }
        Sourced { value, low, high, confidence, source }
    }

    /// A number of at least zero, in the unit of its key. Its table may have the keys value, range, from and note, and
    /// the `others`, which are read elsewhere.
    pub(crate) fn number(&self, key: &str, others: &[&str]) -> Option<Sourced<f64>> {
        let (value, (low, high), source) = self.parts(key, self.get(key)?, others)?;
        if low < 0.0 || !high.is_finite() {
            self.complain(key, &format!("{value} or its range is below zero, or endless"), "give numbers from 0 on");
            return None;
        }
        Some(self.at_edge(key, value, (low, high), source))
    }

    /// Number, range and source of a value. Its table may also have the keys `others`.
    #[allow(clippy::type_complexity)] // three things that are taken apart at once
    fn parts(
        &self,
        key: &str,
        found: &Spanned<DeValue<'_>>,
        others: &[&str],
    ) -> Option<(f64, (f64, f64), (Confidence, String))> {
        if let Some(plain) = number(found.get_ref()) {
            let source = self.source(key, None)?;
            return self.with_range(key, plain, None, source);
        }
        let Some(table) = found.get_ref().as_table() else {
            self.complain(key, "is not a number", "write a number, or { value = ..., from = \"...\" }");
            return None;
        };
        let known = ["value", "range", "from", "note"];
        for (other, _) in table {
            let name = other.get_ref().as_ref();
            if !known.contains(&name) && !others.contains(&name) {
                let field = format!("{}.{}", self.field(key), other.get_ref());
                let remedy = format!("a value has {}", [&known[..], others].concat().join(", "));
                self.reader.complain(other.span().start, &field, "is not known", &remedy);
            }
        }
        let Some(value) = table.get("value").and_then(|value| number(value.get_ref())) else {
            self.complain(key, "has no number", "add value = ...");
            return None;
        };
        let range = match table.get("range") {
            None => None,
            Some(range) => {
                let numbers: Option<Vec<f64>> =
                    range.get_ref().as_array().map(|array| array.iter().filter_map(|n| number(n.get_ref())).collect());
                match numbers.as_deref() {
                    Some([low, high]) => Some((*low, *high)),
                    _ => {
                        self.complain(key, "has a range that is none", "write range = [least, most]");
                        return None;
                    }
                }
            }
        };
        let source = self.source(key, table.get("from").map(|from| from.get_ref().as_str().unwrap_or_default()))?;
        self.with_range(key, value, range, source)
    }

    #[allow(clippy::type_complexity)] // as above
    fn with_range(
        &self,
        key: &str,
        value: f64,
        range: Option<(f64, f64)>,
        source: (Confidence, String),
    ) -> Option<(f64, (f64, f64), (Confidence, String))> {
        if range.is_none() && source.0.needs_range() {
            let reason = format!("is known by '{}' only and has no range", source.0);
            self.complain(key, &reason, "add range = [least, most] that it may be in truth");
            return None;
        }
        let (low, high) = range.unwrap_or((value, value));
        if !(low <= value && value <= high) {
            let reason = format!("{value} is outside of its own range, {low} to {high}");
            self.complain(key, &reason, "correct the value or the range");
            return None;
        }
        Some((value, (low, high), source))
    }

    /// The source of a value, by its own name or that of the file. A missing source is an error.
    pub(crate) fn source(&self, key: &str, named: Option<&str>) -> Option<(Confidence, String)> {
        let Some(name) = named.or(self.reader.default_source.as_deref()) else {
            self.complain(
                key,
                "has no source",
                "write { value = ..., from = \"NAME\" }, or from = \"NAME\" for the file",
            );
            return None;
        };
        let source = self.reader.sources.get(name).cloned();
        if source.is_none() {
            self.complain(
                key,
                &format!("comes from '{name}', which is not a source of this file"),
                "add it to [sources]",
            );
        }
        source
    }

    /// A required text, or `{ value = "...", from = "..." }`.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = self.optional_text(key);
        if text.is_none() && !self.has(key) {
            self.missing(key, &format!("add {key} = \"...\""));
        }
        text
    }

    pub(crate) fn optional_text(&self, key: &str) -> Option<String> {
        let found = self.get(key)?;
        if let Some(text) = found.get_ref().as_str() {
            return Some(text.to_owned());
        }
        let table = found.get_ref().as_table();
        let Some(text) = table.and_then(|table| table.get("value")).and_then(|value| value.get_ref().as_str()) else {
            self.complain(key, "is not text", "write it in quotes");
            return None;
        };
        let from = table.and_then(|table| table.get("from")).and_then(|from| from.get_ref().as_str());
        self.source(key, from)?;
        Some(text.to_owned())
    }

    /// A list of texts, which may be absent.
    pub(crate) fn texts(&self, key: &str, most: usize) -> Vec<String> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let texts: Option<Vec<String>> = found
            .get_ref()
            .as_array()
            .and_then(|array| array.iter().map(|entry| entry.get_ref().as_str().map(str::to_owned)).collect());
        match texts {
            Some(texts) if texts.len() <= most => texts,
            _ => {
                self.complain(key, "is not a list of texts, or too long", &format!("write at most {most} texts in []"));
                Vec::new()
            }
        }
    }

    /// The index of a text in `words`. A missing or another text is an error.
    pub(crate) fn word(&self, key: &str, words: &[&str]) -> Option<usize> {
        let text = self.text(key)?;
        let index = words.iter().position(|word| *word == text);
        if index.is_none() {
            self.complain(key, &format!("'{text}' is not known"), &format!("write one of: {}", words.join(", ")));
        }
        index
    }

    /// A required truth value, or `{ value = true, from = "..." }`.
    pub(crate) fn truth(&self, key: &str) -> bool {
        let Some(found) = self.get(key) else {
            self.missing(key, &format!("add {key} = true or false"));
            return false;
        };
        if let Some(truth) = found.get_ref().as_bool() {
            return truth;
        }
        let table = found.get_ref().as_table();
        let truth = table.and_then(|table| table.get("value")).and_then(|value| value.get_ref().as_bool());
        if truth.is_none() {
            self.complain(key, "is neither true nor false", "write true or false");
        } else {
            self.source(key, table.and_then(|table| table.get("from")).and_then(|from| from.get_ref().as_str()));
        }
        truth.unwrap_or_default()
    }

    /// A truth value, or `default` if the file does not have it.
    pub(crate) fn truth_or(&self, key: &str, default: bool) -> bool {
        if self.get(key).is_some() {
            self.truth(key)
        } else {
            default
        }
    }

    /// A required whole number without a source.
    pub(crate) fn plain_count(&self, key: &str) -> Option<u64> {
        let Some(found) = self.get(key) else {
            self.missing(key, &format!("add {key} = ..."));
            return None;
        };
        let count = found.get_ref().as_integer().and_then(|n| u64::from_str_radix(n.as_str(), n.radix()).ok());
        if count.is_none() {
            self.complain(key, "is not a whole number", "write digits only");
        }
        count
    }

    /// A whole number without a source; `absent` if it is missing.
    pub(crate) fn plain_count_or(&self, key: &str, absent: u64) -> u64 {
        if self.has(key) {
            self.plain_count(key).unwrap_or(absent)
        } else {
            self.ask(key);
            absent
        }
    }

    /// Rows of two numbers each, at most `most` rows; `None` if they are missing.
    pub(crate) fn pairs(&self, key: &str, most: usize) -> Option<Vec<(f64, f64)>> {
        let found = self.get(key)?;
        let pair = |row: &Spanned<DeValue<'_>>| {
            let numbers = row.get_ref().as_array()?;
            let at = |n: usize| numbers.get(n).and_then(|entry| number(entry.get_ref()));
            (numbers.len() == 2).then_some((at(0)?, at(1)?))
        };
        let rows: Option<Vec<_>> = found.get_ref().as_array().and_then(|rows| rows.iter().map(pair).collect());
        if rows.as_ref().is_none_or(|rows| rows.len() > most) {
            self.complain(
                key,
                "is not a list of pairs, or too long",
                &format!("write at most {most} pairs: [[0, 0.5], ...]"),
            );
            return None;
        }
        rows
    }

    /// Numbers without a source; empty if they are missing.
    pub(crate) fn numbers(&self, key: &str, most: usize) -> Vec<f64> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let numbers: Option<Vec<f64>> =
            found.get_ref().as_array().and_then(|array| array.iter().map(|entry| number(entry.get_ref())).collect());
        match numbers {
            Some(numbers) if numbers.len() <= most => numbers,
            _ => {
                self.complain(
                    key,
                    "is not a list of numbers, or too long",
                    &format!("write at most {most} numbers in []"),
                );
                Vec::new()
            }
        }
    }

    /// Record an error for every key that was not read and is not in `known`.
    pub(crate) fn finish_known(&self, known: &[&str]) {
        for name in known {
            self.ask(name);
        }
        self.finish();
    }

    /// Record an error for every key that was not read.
    pub(crate) fn finish(&self) {
        let Some(table) = self.table else { return };
        let asked = self.asked.borrow();
        for (key, _) in table {
            let name: &str = key.get_ref().as_ref();
            if asked.contains(name) {
                continue;
            }
            let (reason, remedy) = self.about_unknown(name, &asked);
            self.reader.complain(key.span().start, &self.field(name), &reason, &remedy);
        }
    }

    fn about_unknown(&self, name: &str, asked: &BTreeSet<String>) -> (String, String) {
        let endings = self.endings.borrow();
        let stem = ending(name).map_or(name, |end| &name[..name.len() - end.len()]);
        if let Some((base, dimension)) = endings.iter().find(|(base, _)| base == name || base == stem) {
            return without_unit(base, *dimension, name);
        }
        let near = asked.iter().map(|known| (strsim::levenshtein(name, known), known)).min();
        let remedy = match near {
            Some((far, known)) if far <= 2.max(name.len() / 3) => format!("perhaps {known} is meant"),
            _ => format!("remove it; known here: {}", asked.iter().cloned().collect::<Vec<_>>().join(", ")),
        };
        (String::from("is not known"), remedy)
    }
}

/// The error of a key without a unit, or with a unit of another dimension.
fn without_unit(base: &str, dimension: Dimension, name: &str) -> (String, String) {
    let units: Vec<String> = dimension.units().iter().map(|(end, _)| format!("{base}{end}")).collect();
    let what = dimension.name();
    let reason = match base == name {
        true => format!("a {what} without a unit"),
        false => format!("the unit is not one of a {what}"),
    };
    (reason, format!("write one of: {}", units.join(", ")))
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    if let Some(integer) = value.as_integer() {
        let whole = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
        return Some(whole as f64);
    }
    value.as_float().and_then(|float| float.as_str().parse().ok())
}
