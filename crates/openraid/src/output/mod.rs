//! The one place that writes to standard output and standard error.
//!
//! With `--json` a verb prints one document (or one on each line, if it prints more than once), which names its schema:
//! `openraid/VERB/NUMBER`. New fields do not change the number; a field that changes or disappears does.

pub mod array;
pub mod cache;
pub mod checks;
pub mod discard_loss;
pub mod explain;
pub(crate) mod live_state;
pub mod model_sentences;
pub mod progress;
pub mod server_messages;
pub mod shape;
pub mod table;
pub mod verdicts;

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use serde::Serialize;
use utoipa::ToSchema;

use crate::failure::{Exit, Failure};
use openraid_status::shell_quoting::seen;

/// Forms that have changed: they have the number 2; all others have the number 1.
const SECOND_FORMS: &[&str] = &[
    // The keys `span` and `spans` were `leg` and `legs`.
    "add",
    "alarms",
    "check",
    "create",
    "doctor",
    "events",
    "explain",
    "explain-stories",
    "fail",
    "journal-attach",
    "list",
    "locate",
    "pause",
    "remove",
    "rename",
    "repair",
    "replace",
    "resume",
    "serve",
    "set",
    "show",
    "simulate",
    "stop",
];

static PROGRAM: OnceLock<&str> = OnceLock::new();

/// Let the messages of this process begin with another program's name than `openraid`. Only the first call has an effect.
pub fn set_program(name: &'static str) {
    let _ = PROGRAM.set(name);
}

/// The name of this program.
pub fn program() -> &'static str {
    PROGRAM.get().unwrap_or(&"openraid")
}

/// The form of the answers.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub json: bool,
    /// The verb in the names of its documents.
    pub verb: &'static str,
    /// The verb as the user types it.
    pub typed: &'static str,
}

/// A document with its schema first and the exit code last.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: String,
    #[serde(flatten)]
    body: &'a T,
    exit: u8,
}

/// The error of a verb.
#[derive(Serialize, utoipa::ToSchema)]
pub struct ErrorBody<'a> {
    /// Name of the verb that failed.
    verb: &'a str,
    /// The cause and the remedy, as text.
    error: &'a str,
}

impl Output {
    /// Answer once: the document in JSON, or the text.
    pub fn answer<T: Serialize + ToSchema>(&self, exit: Exit, body: &T, text: &str) -> Exit {
        if self.json {
            self.document(exit, body);
        } else {
            print(text);
        }
        exit
    }

    /// A document of a verb with several documents, as a line.
    pub fn line_of<T: Serialize + ToSchema>(&self, exit: Exit, body: &T) -> String {
        json(&Document { schema: self.schema(), body, exit: exit.code() })
    }

    /// One document on a line of its own.
    pub fn document<T: Serialize + ToSchema>(&self, exit: Exit, body: &T) {
        print_json(&Document { schema: self.schema(), body, exit: exit.code() });
    }

    /// The document of a successful command, for a file.
    pub fn kept<T: Serialize + ToSchema>(&self, body: &T) -> String {
        let document = Document { schema: self.schema(), body, exit: Exit::Fine.code() };
        json(&document) + "\n"
    }

    fn schema(&self) -> String {
        schema_of(self.verb)
    }

    /// Answer on standard error, because standard output carries data.
    pub fn answer_aside<T: Serialize + ToSchema>(&self, exit: Exit, body: &T, text: &str) -> Exit {
        let document = Document { schema: self.schema(), body, exit: exit.code() };
        let line = if self.json { json(&document) } else { seen(text).into_owned() };
        let _ = writeln!(io::stderr().lock(), "{line}");
        exit
    }

    /// A line of text; nothing in JSON.
    pub fn say(&self, text: &str) {
        if !self.json {
            print(text);
        }
    }

    /// A warning that does not end the command.
    pub fn warn(&self, text: &str) {
        warn(text);
    }

    /// The end of a failed command: text on standard error, and JSON if `--json` was given.
    pub fn fail(&self, failure: &Failure) -> Exit {
        if self.json {
            let schema = "openraid/error/1".into();
            let body = ErrorBody { verb: self.verb, error: &failure.text() };
            print_json(&Document { schema, body: &body, exit: failure.exit.code() });
        }
        self.complain(failure)
    }

    /// The same with the verb's own document, which has more details than the text.
    pub fn fail_with<T: Serialize + ToSchema>(&self, failure: &Failure, body: &T) -> Exit {
        if self.json {
            self.document(failure.exit, body);
        }
        self.complain(failure)
    }

    fn complain(&self, failure: &Failure) -> Exit {
        let _ = writeln!(io::stderr().lock(), "{} {}: {}", program(), self.typed, seen(&failure.text()));
        failure.exit
    }
}

/// The name of the form of a verb.
pub fn schema_of(verb: &str) -> String {
    let number = if SECOND_FORMS.contains(&verb) { 2 } else { 1 };
    format!("openraid/{verb}/{number}")
}

fn print_json<T: Serialize>(value: &T) {
    print_bytes(json(value).as_bytes());
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| panic!("bug: a document that is not JSON: {error}"))
}

/// Print a text with a line end to standard output. Names and paths give no orders to a terminal.
pub fn print(text: &str) {
    print_bytes(seen(text.trim_end_matches('\n')).as_bytes());
}

/// A line on standard output. A closed pipe does not stop the work.
fn print_bytes(line: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(line);
    let _ = out.write_all(b"\n");
    let _ = out.flush();
}

/// A warning on standard error.
pub fn warn(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}: {}", program(), seen(text));
}

/// Is standard output a terminal?
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Is standard error a terminal?
pub fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}
