//! The documents of `--json` as JSON Schema, from the types that are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{json, Value};
use utoipa::ToSchema;

use crate::output::{schema_of, ErrorBody};

/// Documents by their names, and the objects in them by name.
#[derive(Default)]
pub struct Forms {
    documents: BTreeMap<String, Vec<Value>>,
    objects: BTreeMap<String, Value>,
}

/// Verbs that answer with one sentence.
const DONE: [&str; 16] = [
    "add",
    "detach",
    "fail",
    "locate",
    "path",
    "pause",
    "remove",
    "rename",
    "repair",
    "replace",
    "reshape",
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
        self.documents.entry(schema_of(verb)).or_default().push(body);
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
        all.add::<super::alarms::AlarmsBody>("alarms");
        all.add::<super::alarms::AlarmsAcknowledged>("alarms-acknowledge");
        all.add::<super::alarms::AlarmTest>("alarms-test");
        all.add::<super::assemble::AssembleBody>("assemble");
        all.add::<super::assemble::ForgottenBody<'_>>("assemble");
        all.add::<super::attach::AttachBody>("attach");
        all.add::<super::attach::AttachListBody>("attach-list");
        all.add::<super::check::CheckBody>("check-history");
        all.add::<super::config::ConfigReport>("config-check");
        all.add::<super::config::ConfigMember<'_>>("config-member");
        all.add::<crate::desired::model::ConfigModel>("config-show");
        all.add::<super::udev_rules::UdevRules>("config-udev");
        all.add::<super::copy_in::CopyInBody<'_>>("copy-in");
        all.add::<super::copy_out::CopyOutBody<'_>>("copy-out");
        all.add::<super::create::CreateBody>("create");
        all.add::<crate::demo::DemoBody>("demo");
        all.add::<super::doctor::DoctorBody>("doctor");
        all.add::<super::wipe_metadata::EraseBody>("erase");
        all.add::<ErrorBody<'_>>("error");
        all.add::<super::events::EventsBody<'_>>("events");
        all.add::<super::events::EventsAcknowledged>("events-acknowledge");
        all.add::<super::examine::ExamineBody>("examine");
        all.add::<crate::output::explain::ExplainBody<'_>>("explain");
        all.add::<super::explain::ExplainRecordBody<'_>>("explain-record");
        all.add::<crate::output::explain::StoriesBody<'_>>("explain-stories");
        all.add::<super::journal::JournalAdoptBody>("journal-adopt");
        all.add::<super::journal::JournalCreateBody>("journal-create");
        all.add::<super::journal::JournalDiscardBody<'_>>("journal-discard");
        all.add::<super::journal::JournalShowBody<'_>>("journal-show");
        all.add::<super::list::ListBody>("list");
        all.add::<super::login::LoginBody>("login");
        all.add::<super::man::ManBody>("man");
        all.add::<super::record::RecordBody>("record");
        all.add::<crate::desired::model::ReloadModel>("reload");
        all.add::<openraid_status::ReshapePlanModel>("reshape-plan");
        all.add::<super::scan::ScanBody>("scan");
        all.add::<super::serve::main_loop::ServeLine<'_>>("serve");
        all.add::<super::show::ShowBody<'_>>("show");
        all.add::<super::show::DrivesBody<'_>>("show");
        all.add::<super::spare::SpareBody<'_>>("spare");
        all.add::<super::update::UpdateBody>("update");
        all.add::<super::recheck_bad_blocks::RecheckBody>("update");
        all
    }

    /// One schema for all documents: the key `schema` of a document decides which of them it is.
    fn schema(&self, program: &str) -> Value {
        let cases = self.documents.iter().map(|(name, bodies)| {
            let body = if let [only] = bodies.as_slice() { only.clone() } else { json!({ "anyOf": bodies }) };
            json!({ "if": { "properties": { "schema": { "const": name } } }, "then": body })
        });
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("Documents that {program} --json prints"),
            "type": "object",
            "required": ["schema", "exit"],
            "properties": {
                "schema": { "enum": self.documents.keys().collect::<Vec<_>>(), "description": "The form of the document." },
                "exit": { "type": "integer", "description": "The exit code." },
            },
            "allOf": cases.collect::<Vec<_>>(),
            "$defs": self.objects,
        });
        refer_to_defs(&mut schema);
        schema
    }

    /// Keys without a description, each with the object or document that has it.
    fn silent(&self) -> BTreeSet<String> {
        let mut silent = BTreeSet::new();
        let bodies = self.documents.iter().flat_map(|(name, bodies)| bodies.iter().map(move |body| (name, body)));
        for (name, schema) in bodies.chain(&self.objects) {
            self.find_silent(name, schema, &mut silent);
        }
        silent
    }

    fn find_silent(&self, name: &str, schema: &Value, silent: &mut BTreeSet<String>) {
        for (key, form) in schema["properties"].as_object().into_iter().flatten() {
            // The name of a variant says enough.
            let is_tag = form["enum"].as_array().is_some_and(|words| words.len() == 1);
            if !is_tag && !self.is_described(form) {
                silent.insert(format!("{name}: {key}"));
            }
            self.find_silent(&format!("{name}: {key}"), form, silent);
        }
        for part in parts(schema) {
            self.find_silent(name, part, silent);
        }
    }

    fn is_described(&self, schema: &Value) -> bool {
        let target = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        schema["description"].is_string()
            || target.and_then(|name| self.objects.get(name)).is_some_and(|object| self.is_described(object))
            || parts(schema).any(|part| self.is_described(part))
    }

    /// Compares the schema with its file, or writes the file if the environment has `OPENRAID_BLESS`.
    ///
    /// # Panics
    /// The file is stale, or a key has no description.
    pub fn hold(&self, program: &str) {
        let silent = self.silent();
        assert!(silent.is_empty(), "keys without a doc comment: {silent:#?}");
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
        let path = folder.join(format!("{program}.schema.json"));
        let made = format!("{:#}\n", self.schema(program));
        if std::env::var_os("OPENRAID_BLESS").is_some() {
            std::fs::write(path, made).expect("it is writable");
            return;
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        let differs = made.lines().zip(written.lines()).find(|(made, written)| made != written);
        assert!(made == written, "{} is stale ({differs:?}); make it again with OPENRAID_BLESS=1", path.display());
    }
}

/// The schemas that apply to the same value.
fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "allOf", "anyOf"].into_iter().flat_map(|key| schema[key].as_array()).flatten()
}

/// Objects are in the same file, not in a description of an HTTP interface.
fn refer_to_defs(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            for (key, form) in keys {
                match form {
                    Value::String(path) if key == "$ref" => *path = path.replace("#/components/schemas/", "#/$defs/"),
                    _ => refer_to_defs(form),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(refer_to_defs),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_schema_describes_the_types_that_are_printed() {
        super::Forms::of_openraid().hold("openraid");
    }
}
