//! The head of every profile: its schema, its kind, its name.

use crate::reader::ProfileSection;

/// The schema of this reader.
const SCHEMA: u64 = 1;
/// Longest name, so that names fit into tables.
const NAME_MAX: usize = 40;
/// Greatest number of other names of one profile.
const ALIASES_MAX: usize = 16;

/// The beginning of a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Head {
    /// Short name, unique among profiles of its kind: small letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Other names of the same profile.
    pub aliases: Vec<String>,
    /// A title of one line.
    pub title: String,
    /// Year of the market launch; zero if it has no meaning.
    pub year: u32,
    /// Fields with a range: they make a prediction uncertain.
    pub uncertain: Vec<String>,
    /// Fields whose values are from the device itself: measured on it, or calibrated on a measurement of it.
    pub measured: Vec<String>,
}

impl Head {
    /// Read the head; `kinds` are the allowed values of `kind` in this folder. Returns the kind as well.
    pub(crate) fn read(top: &ProfileSection<'_>, kinds: &[&'static str]) -> (Self, &'static str) {
        let schema = top.plain_count("schema");
        if schema.is_some_and(|found| found != SCHEMA) {
            top.complain("schema", "this schema is not known", &format!("write schema = {SCHEMA}"));
        }
        let kind = top.word("kind", kinds).unwrap_or(0);
        let name = top.text("name").unwrap_or_default();
        if !is_name(&name) && top.has("name") {
            let remedy = "use 1 to 40 small letters, digits, '-', '_' or '.'";
            top.complain("name", &format!("'{name}' cannot be a name"), remedy);
        }
        let aliases = top.texts("aliases", ALIASES_MAX);
        for alias in aliases.iter().filter(|alias| !is_name(alias)) {
            let remedy = "use 1 to 40 small letters, digits, '-', '_' or '.'";
            top.complain("aliases", &format!("'{alias}' cannot be a name"), remedy);
        }
        let title = top.text("title").unwrap_or_default();
        let year = top.plain_count_or("year", 0);
        let year = u32::try_from(year).unwrap_or_default();
        (Self { name, aliases, title, year, uncertain: Vec::new(), measured: Vec::new() }, kinds[kind])
    }

    /// Whether this is the name of the profile, or one of its other names.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(fits)
}
