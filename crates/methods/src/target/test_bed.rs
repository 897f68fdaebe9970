//! The lines that describe a test bed. Documents keep each line as one string: its name, a colon and its value.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Separates name and value in a document.
const COLON: &str = ": ";
/// End of the name of a line about several drives.
const DRIVES: &str = " drives";

/// The name of a line. Comparison, identity and summary of a review depend on some names; all others are text for
/// readers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BedName {
    /// The profile of the drives.
    Drives,
    /// The profile of an array's drives, and their number.
    ArrayDrives(u16),
    /// The host bus.
    Bus,
    /// The caches of controller and drives.
    Cache,
    /// The chunk of arrays.
    Chunk,
    /// Has each SSD been written full?
    SsdState,
    /// The model that a drive reports.
    Model,
    /// The serial number that a drive reports.
    Serial,
    /// The processor time of the load generator.
    GeneratorCost,
    /// Any other name.
    Other(String),
}

/// Names without data, as they are written.
const NAMES: [(&str, BedName); 8] = [
    ("drives", BedName::Drives),
    ("bus", BedName::Bus),
    ("cache", BedName::Cache),
    ("chunk", BedName::Chunk),
    ("state of the SSDs", BedName::SsdState),
    ("model", BedName::Model),
    ("serial", BedName::Serial),
    ("generator's own cost", BedName::GeneratorCost),
];

impl BedName {
    fn of(text: &str) -> Self {
        let count = || text.strip_suffix(DRIVES)?.parse().ok().filter(|count: &u16| format!("{count}{DRIVES}") == text);
        match NAMES.into_iter().find(|(word, _)| *word == text) {
            Some((_, name)) => name,
            None => count().map_or_else(|| Self::Other(text.into()), Self::ArrayDrives),
        }
    }
}

impl fmt::Display for BedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArrayDrives(count) => write!(f, "{count}{DRIVES}"),
            Self::Other(text) => f.write_str(text),
            known => {
                let (word, _) = NAMES.iter().find(|(_, name)| name == known).expect("each other name has a row");
                f.write_str(word)
            }
        }
    }
}

/// A line that describes the test bed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BedLine {
    /// The name; none for a note.
    pub name: Option<BedName>,
    /// The value, or the text of a note.
    pub value: String,
}

impl BedLine {
    /// A line with a name.
    #[must_use]
    pub fn new(name: BedName, value: impl Into<String>) -> Self {
        Self { name: Some(name), value: value.into() }
    }

    /// Has the line this name?
    #[must_use]
    pub fn is(&self, name: &BedName) -> bool {
        self.name.as_ref() == Some(name)
    }

    /// The same line of one part among several, which the label names.
    #[must_use]
    pub fn labelled(&self, label: &str) -> Self {
        match &self.name {
            Some(name) => Self::new(BedName::Other(format!("{label}, {name}")), self.value.clone()),
            None => Self { name: None, value: format!("{label}, {}", self.value) },
        }
    }
}

/// A line as documents keep it.
impl From<String> for BedLine {
    fn from(text: String) -> Self {
        match text.split_once(COLON) {
            Some((name, value)) => Self::new(BedName::of(name), value),
            None => Self { name: None, value: text },
        }
    }
}

impl From<&str> for BedLine {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Display for BedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}{COLON}{}", self.value),
            None => f.write_str(&self.value),
        }
    }
}

impl Serialize for BedLine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BedLine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl utoipa::PartialSchema for BedLine {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        String::schema()
    }
}

impl utoipa::ToSchema for BedLine {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_is_written() {
        let known = NAMES.map(|(_, name)| BedLine::new(name, "a: b"));
        let others = ["kernel: 6.1", "12 drives: X", "012 drives: X", "past the page cache", "a, model: X", ": x", ""];
        for line in known.into_iter().chain(others.map(BedLine::from)) {
            assert_eq!(BedLine::from(line.to_string()), line);
        }
        assert!(others.iter().all(|text| BedLine::from(*text).to_string() == *text));
        assert_eq!(BedLine::from("12 drives: X").name, Some(BedName::ArrayDrives(12)));
        assert_eq!(BedLine::from("past the page cache").name, None);
    }

    #[test]
    fn a_label_hides_the_name_of_the_line_of_one_part() {
        let line = BedLine::new(BedName::Model, "X").labelled("a");
        assert_eq!((line.to_string().as_str(), line.is(&BedName::Model)), ("a, model: X", false));
        assert_eq!(line, BedLine::from(line.to_string()));
        assert_eq!(BedLine::from("a note").labelled("b").to_string(), "b, a note");
    }
}
