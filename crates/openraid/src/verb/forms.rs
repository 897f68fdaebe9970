//! The documents of `--json`, described from the printed types. A test of `openraid-lab` generates `docs/json.md` from
//! them and from its own documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use utoipa::ToSchema;

use crate::output::{schema_of, ErrorBody};

/// Endings of keys, and their units.
const UNITS: &[(&str, &str)] = &[
    ("bytes", "bytes"),
    ("bytes_max", "bytes"),
    ("sector", "512 bytes"),
    ("sectors", "512 bytes"),
    ("seconds", "s"),
    ("hours", "hours"),
    ("ms", "ms"),
    ("ns", "ns"),
    ("percent", "%"),
    ("mbps", "MB/s"),
    ("mib", "MiB"),
    ("iops", "requests/s"),
];
/// Keys that end like a unit and are numbers of sectors of the drive's own size.
const COUNTS: &[&str] = &["reallocated_sectors", "pending_sectors", "uncorrectable_sectors"];

/// A document that a verb prints.
struct Form {
    /// `openraid/VERB/NUMBER`.
    name: String,
    /// Schema of the document.
    body: Value,
}

/// Documents, and the objects in them by name.
#[derive(Default)]
pub struct Forms {
    forms: Vec<Form>,
    objects: BTreeMap<String, Value>,
}

/// Verbs that answer with one sentence.
const DONE: [&str; 13] = [
    "add",
    "fail",
    "locate",
    "pause",
    "remove",
    "rename",
    "repair",
    "replace",
    "resume",
    "set",
    "stop",
    "check",
    "journal-attach",
];

impl Forms {
    /// Adds a document: `verb` prints this type.
    ///
    /// # Panics
    /// Another type has the name of an object.
    pub fn add<T: ToSchema>(&mut self, verb: &str) {
        let mut objects = Vec::new();
        T::schemas(&mut objects);
        for (name, schema) in objects {
            let schema = serde_json::to_value(schema).expect("a schema is JSON");
            let known = self.objects.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(
                *known, schema,
                "two types have the name {name}: give one of them another by #[schema(as = ...)]"
            );
        }
        let body = serde_json::to_value(T::schema()).expect("a schema is JSON");
        self.forms.push(Form { name: schema_of(verb), body });
    }

    /// The documents of `openraid`.
    ///
    /// # Panics
    /// Two types have one name.
    pub fn of_openraid() -> Self {
        let mut all = Self::default();
        for verb in DONE {
            all.add::<super::DoneBody<'_>>(verb);
        }
        all.add::<super::alarms::Body>("alarms");
        all.add::<super::alarms::Acknowledged>("alarms-acknowledge");
        all.add::<super::alarms::Tried>("alarms-test");
        all.add::<super::assemble::Body>("assemble");
        all.add::<super::assemble::Forgotten<'_>>("assemble");
        all.add::<super::check::Body>("check-history");
        all.add::<super::config::Checked>("config-check");
        all.add::<super::config::Member<'_>>("config-member");
        all.add::<crate::desired::model::ConfigModel>("config-show");
        all.add::<super::udev_rules::UdevRules>("config-udev");
        all.add::<super::copy_in::Body<'_>>("copy-in");
        all.add::<super::copy_out::Body<'_>>("copy-out");
        all.add::<super::create::Body>("create");
        all.add::<crate::demo::Body>("demo");
        all.add::<super::doctor::Body>("doctor");
        all.add::<super::erase::Body>("erase");
        all.add::<ErrorBody<'_>>("error");
        all.add::<super::events::Body<'_>>("events");
        all.add::<super::events::Acknowledged>("events-acknowledge");
        all.add::<super::examine::Body>("examine");
        all.add::<super::explain::Body<'_>>("explain");
        all.add::<super::explain::RecordBody<'_>>("explain-record");
        all.add::<super::explain::StoriesBody<'_>>("explain-stories");
        all.add::<super::journal::AdoptBody>("journal-adopt");
        all.add::<super::journal::CreateBody>("journal-create");
        all.add::<super::journal::DiscardBody<'_>>("journal-discard");
        all.add::<super::journal::ShowBody<'_>>("journal-show");
        all.add::<super::list::Body>("list");
        all.add::<super::login::Body>("login");
        all.add::<super::man::Body>("man");
        all.add::<super::record::Body>("record");
        all.add::<crate::desired::model::ReloadModel>("reload");
        all.add::<super::scan::Body>("scan");
        all.add::<super::serve::attend::Line<'_>>("serve");
        all.add::<super::show::Body<'_>>("show");
        all.add::<super::show::Drives<'_>>("show");
        all.add::<super::spare::Body<'_>>("spare");
        all.add::<super::update::Body>("update");
        all.add::<super::recheck::Body>("update");
        all
    }

    /// Follows a reference to its schema.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match target(schema) {
            Some(name) => self.objects.get(name).unwrap_or_else(|| panic!("{name} is not among the objects")),
            None => schema,
        }
    }

    /// The text that describes a value.
    fn value(&self, schema: &Value) -> String {
        if let Some(name) = target(schema) {
            let own = &self.objects[name];
            return if is_simple(own) { self.value(own) } else { link(name) };
        }
        if let Some(all) = schema["oneOf"].as_array().or_else(|| schema["allOf"].as_array()) {
            let others: Vec<String> =
                all.iter().filter(|part| part["type"] != "null").map(|part| self.value(part)).collect();
            let null = if others.len() < all.len() { " or null" } else { "" };
            return others.join(" or ") + null;
        }
        if let Some(words) = schema["enum"].as_array() {
            return either(words.iter().filter_map(Value::as_str));
        }
        let mut kinds: Vec<&str> = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            kind => kind.as_str().into_iter().collect(),
        };
        let null = if kinds.contains(&"null") { " or null" } else { "" };
        kinds.retain(|kind| *kind != "null");
        let text = match kinds.first() {
            Some(&"integer" | &"number") => "number".into(),
            Some(&"array") => match schema["prefixItems"].as_array() {
                Some(parts) => {
                    let parts: Vec<String> = parts.iter().map(|part| self.value(part)).collect();
                    format!("\\[{}\\]", parts.join(", "))
                }
                None => format!("list of {}", self.value(&schema["items"])),
            },
            Some(&"object") if !schema["additionalProperties"].is_null() => {
                format!("map of {}", self.value(&schema["additionalProperties"]))
            }
            Some(kind) => (*kind).into(),
            None => "any".into(),
        };
        text + null
    }

    /// The keys of an object, including those of nameless objects in it.
    fn rows(&self, schema: &Value, path: &str, rows: &mut Vec<Row>) {
        let schema = self.resolve(schema);
        if let Some(parts) = schema["allOf"].as_array() {
            return parts.iter().for_each(|part| self.rows(part, path, rows));
        }
        if let Some(variants) = schema["oneOf"].as_array() {
            return self.variants(variants, path, rows);
        }
        for (key, own) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}{key}");
            rows.push(Row {
                value: self.value(own),
                meaning: meaning(own).unwrap_or_default(),
                path: path.clone(),
                only: Vec::new(),
            });
            if own["properties"].is_object() {
                self.rows(own, &format!("{path}."), rows);
            }
        }
    }

    /// The keys of all variants of a value. Each row says which variants have the key.
    fn variants(&self, variants: &[Value], path: &str, rows: &mut Vec<Row>) {
        for variant in variants {
            let mut own = Vec::new();
            self.rows(variant, path, &mut own);
            let tag = own.iter().find(|row| row.is_tag()).map(|row| row.value.clone());
            for row in own {
                let known = rows.iter_mut().find(|known| known.path == row.path);
                match (known, &tag) {
                    (Some(known), Some(_)) if row.is_tag() => {
                        known.value = known.value.replace(" or ", ", ") + " or " + &row.value
                    }
                    (Some(known), Some(tag)) => known.add(row, tag),
                    (None, Some(tag)) if !row.is_tag() => rows.push(Row { only: vec![tag.clone()], ..row }),
                    (None, _) => rows.push(row),
                    (Some(known), None) => panic!("{} is in two variants without a tag", known.path),
                }
            }
        }
    }

    /// Names of the documents of the first number that have one of these keys, at any depth.
    pub fn first_forms_with(&self, keys: &[&str]) -> Vec<&str> {
        let has = |form: &&Form| form.name.ends_with("/1") && self.has_key(&form.body, keys, &mut Vec::new());
        self.forms.iter().filter(has).map(|form| form.name.as_str()).collect()
    }

    /// Does the value have one of these keys, at any depth? `seen`: objects that were followed.
    fn has_key<'a>(&'a self, schema: &'a Value, keys: &[&str], seen: &mut Vec<&'a str>) -> bool {
        if let Some(name) = target(schema) {
            if seen.contains(&name) {
                return false;
            }
            seen.push(name);
            return self.has_key(self.resolve(schema), keys, seen);
        }
        match schema {
            Value::Object(parts) => parts.iter().any(|(key, part)| {
                let is_key = key == "properties" && keys.iter().any(|wanted| !part[*wanted].is_null());
                is_key || self.has_key(part, keys, seen)
            }),
            Value::Array(parts) => parts.iter().any(|part| self.has_key(part, keys, seen)),
            _ => false,
        }
    }

    /// The tables of all documents and objects.
    ///
    /// # Panics
    /// Two variants of one value cannot be told apart.
    pub fn text(&mut self) -> String {
        self.forms.sort_by(|a, b| a.name.cmp(&b.name));
        let mut text = String::from("\n## Documents\n");
        let mut before = "";
        for form in &self.forms {
            if form.name != before {
                write!(text, "\n### {}\n", form.name).expect("a string takes it");
            }
            let lead = if form.name == before { "Or: " } else { "" };
            let about = meaning(&form.body).unwrap_or_default();
            write!(text, "\n{lead}{about}\n\n{}", self.table(&form.body)).expect("a string takes it");
            before = &form.name;
        }
        text.push_str("\n## Objects\n");
        for (name, schema) in self.objects.iter().filter(|(_, schema)| !is_simple(schema)) {
            let about = meaning(schema).unwrap_or_default();
            write!(text, "\n### {}\n\n{about}\n\n{}", shown(name), self.table(schema)).expect("a string takes it");
        }
        text.push('\n');
        text
    }

    fn table(&self, schema: &Value) -> String {
        let mut rows = Vec::new();
        self.rows(schema, "", &mut rows);
        rows.sort_by(|a, b| a.path.cmp(&b.path));
        let mut text = String::new();
        let words: Vec<&str> = schema["oneOf"].as_array().into_iter().flatten().filter_map(word).collect();
        if !words.is_empty() {
            let keys = if rows.is_empty() { "" } else { ", or an object with one of these keys" };
            write!(text, "A string, {}{keys}.\n\n", either(words.into_iter())).expect("a string takes it");
        }
        if !rows.is_empty() {
            text.push_str("| Key | Value | Unit | Meaning |\n| --- | --- | --- | --- |\n");
        }
        for row in rows {
            let Row { path, value, meaning, only } = row;
            let only = if only.is_empty() { String::new() } else { format!("Only if it is {}: ", only.join(" or ")) };
            let unit = unit(&path);
            writeln!(text, "| `{path}` | {value} | {unit} | {only}{} |", meaning.replace('|', "\\|"))
                .expect("a string takes it");
        }
        text
    }
}

/// A key.
struct Row {
    path: String,
    value: String,
    meaning: String,
    /// The variants that have the key; empty if all have it.
    only: Vec<String>,
}

impl Row {
    /// Does the key say which variant the value is?
    fn is_tag(&self) -> bool {
        self.value.starts_with('`') && !self.value.contains(", ") && ["outcome", "event"].contains(&self.path.as_str())
    }

    /// Adds a row, also if another variant has the same key.
    fn add(&mut self, row: Self, tag: &str) {
        self.only.push(tag.into());
        if self.value != row.value {
            self.value = format!("{} or {}", self.value, row.value);
        }
        if !self.meaning.contains(&row.meaning) {
            self.meaning = format!("{} {}", self.meaning, row.meaning);
        }
    }
}

fn target(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// The text of an enum variant that is a string.
fn word(variant: &Value) -> Option<&str> {
    variant["enum"].as_array().filter(|words| words.len() == 1)?[0].as_str()
}

/// Is this a value that needs no table of its own?
fn is_simple(schema: &Value) -> bool {
    schema["properties"].is_null() && schema["oneOf"].is_null() && schema["allOf"].is_null()
}

fn meaning(schema: &Value) -> Option<String> {
    let own = schema["description"].as_str();
    let within = schema["oneOf"].as_array().or_else(|| schema["allOf"].as_array()).into_iter().flatten();
    let text = own.or_else(|| within.filter_map(|part| part["description"].as_str()).next());
    // The name of the tag is sufficient.
    let tag = schema["enum"].as_array().is_some_and(|words| words.len() == 1);
    text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .or_else(|| tag.then(|| "The form of this object, which decides what other keys it has.".into()))
}

fn unit(path: &str) -> &'static str {
    let key = path.rsplit('.').next().unwrap_or(path);
    if COUNTS.contains(&key) {
        return "";
    }
    let ends = |end: &str| key == end || key.strip_suffix(end).is_some_and(|rest| rest.ends_with('_'));
    UNITS.iter().find(|(end, _)| ends(end)).map_or("", |(_, unit)| unit)
}

/// The displayed name of an object.
fn shown(name: &str) -> &str {
    ["Model", "Body"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

fn link(name: &str) -> String {
    let name = shown(name);
    format!("[{name}](#{})", name.to_lowercase())
}

fn either<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.join(""),
    }
}
