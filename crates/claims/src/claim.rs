//! Claim files: a JSON list of claims. The reader's errors name the claim and the field.
//!
//! The reader must never accept a part of a file: it reports all errors, up to a limit, and then no claim is evaluated.
//!
//! It shares nothing with the readers of TOML: a value of JSON has no place, so that an error names claim and field.

use crate::subject::clip;
use crate::workload::ClaimWorkload;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt;

/// Limit of the length of a claim file.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Limit of the number of claims in a file.
pub const CLAIMS_MAX: usize = 20_000;
/// Number of errors of one file that are reported.
const ERRORS_TOLD: usize = 20;

/// The kind of cause of the claimed behaviour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Grade {
    /// The behaviour follows from drives, buses and the level.
    Physics,
    /// The behaviour is a quirk of one controller.
    ControllerQuirk,
    /// The cause is unknown.
    Unexplained,
}

impl Grade {
    /// The name in a claim.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Physics => "physics",
            Self::ControllerQuirk => "controller-quirk",
            Self::Unexplained => "unexplained",
        }
    }
}

/// The kind of statement that a claim makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StatementKind {
    /// A figure: it need not hold for other drives or block sizes.
    Numeric,
    /// Another kind, as the file names it: order, trend, ratio, ...
    Other(String),
}

impl StatementKind {
    const NUMERIC: &'static str = "numeric";

    fn of(word: Option<String>) -> Self {
        match word {
            Some(word) if word == Self::NUMERIC => Self::Numeric,
            word => Self::Other(word.unwrap_or_else(|| "other".into())),
        }
    }

    /// The name in a claim.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Numeric => Self::NUMERIC,
            Self::Other(word) => word,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// Its name, unique in the file.
    pub id: String,
    /// The system. Its profile gives drives, controller, bus, cache and chunk.
    pub system: String,
    /// Method and defaults.
    pub workload: ClaimWorkload,
    /// Its subjects, for readers. Checks name their subjects themselves.
    pub subjects: Vec<String>,
    /// Kind of statement.
    pub kind: StatementKind,
    /// The statement in words.
    pub statement: String,
    /// The expression.
    pub check: String,
    /// The value of `T` in the expression.
    pub tolerance: f64,
    /// The cause in words.
    pub cause: String,
    /// The kind of the cause.
    pub reproducible: Grade,
    /// The parameter of the controller's profile that causes it.
    pub quirk_param: Option<String>,
    /// Rank in the short suite.
    pub suite_rank: Option<u64>,
    /// Whether the claim needs a calibration of the absolute level.
    pub needs_calibration: bool,
    /// Whether the claim was derived from the review's figures and is not a statement of the review.
    pub derived: bool,
    /// The assumptions.
    pub assumed: Option<String>,
    /// Figures of the review.
    pub values: Option<Value>,
    /// The review's exact percentage.
    pub exact_pct: Option<f64>,
    /// The expected value of the check: `false` if the review is wrong.
    pub expected: bool,
}

/// The content of a claim file.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimFile {
    /// The claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// Unknown fields: they have no effect, but may be misspelt.
    pub warnings: Vec<String>,
}

/// The reason for which a claim file is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimFileError {
    /// The file is longer than [`FILE_BYTES_MAX`].
    TooLong(usize),
    /// The file is not JSON.
    Json(String),
    /// The file is not a list.
    NoList(&'static str),
    /// The file has more than [`CLAIMS_MAX`] claims.
    TooMany(usize),
    /// Errors in claims, each with place, field and reason.
    Wrong(Vec<String>),
}

impl fmt::Display for ClaimFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => {
                write!(f, "a claim file of {bytes} bytes is too long; at most {FILE_BYTES_MAX} are read, split it")
            }
            Self::Json(text) => write!(f, "this is not JSON: {text}; a claim file is a JSON list of objects"),
            Self::NoList(found) => write!(f, "a claim file is a JSON list of objects, and this is {found}"),
            Self::TooMany(count) => {
                write!(f, "{count} claims are too many; at most {CLAIMS_MAX} are taken, split the file")
            }
            Self::Wrong(errors) => {
                for error in errors.iter().take(ERRORS_TOLD) {
                    writeln!(f, "{error}")?;
                }
                if errors.len() > ERRORS_TOLD {
                    writeln!(f, "... and {} errors more", errors.len() - ERRORS_TOLD)?;
                }
                write!(f, "nothing was run; correct the claims")
            }
        }
    }
}

impl std::error::Error for ClaimFileError {}

/// Read the text of a claim file.
///
/// # Errors
/// The text is not a list of claims; the error names every wrong claim.
pub fn read(text: &str) -> Result<ClaimFile, ClaimFileError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(ClaimFileError::TooLong(text.len()));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| ClaimFileError::Json(error.to_string()))?;
    let Value::Array(items) = value else { return Err(ClaimFileError::NoList(sort(&value))) };
    if items.len() > CLAIMS_MAX {
        return Err(ClaimFileError::TooMany(items.len()));
    }
    let mut reader = Reader::default();
    let mut claims = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        reader.place = format!("claim {}", index + 1);
        match item {
            Value::Object(fields) => claims.extend(reader.claim(fields)),
            other => reader.complain(format!("expected an object, found {}", sort(other))),
        }
    }
    if reader.errors.is_empty() {
        Ok(ClaimFile { claims, warnings: reader.warnings })
    } else {
        Err(ClaimFileError::Wrong(reader.errors))
    }
}

/// All fields that a claim may have.
const FIELDS: &[&str] = &[
    "id",
    "system",
    "workload",
    "subjects",
    "kind",
    "statement",
    "check",
    "tolerance",
    "cause",
    "reproducible",
    "quirk_param",
    "suite_rank",
    "needs_calibration",
    "derived",
    "assumed",
    "values",
    "exact_pct",
    "expected",
];

#[derive(Default)]
struct Reader {
    place: String,
    ids: BTreeSet<String>,
    errors: Vec<String>,
    warnings: Vec<String>,
}

impl Reader {
    fn complain(&mut self, text: String) {
        self.errors.push(format!("{}: {text}", self.place));
    }

    /// One claim; `None` if it has an error.
    fn claim(&mut self, fields: &Map<String, Value>) -> Option<Claim> {
        let before = self.errors.len();
        let id = self.text(fields, "id").unwrap_or_default();
        if !id.is_empty() {
            self.place = format!("{} ({})", self.place, clip(&id));
            if !self.ids.insert(id.clone()) {
                self.complain("field 'id': another claim has the same id; every claim needs its own".into());
            }
        }
        for field in fields.keys().filter(|field| !FIELDS.contains(&field.as_str())) {
            self.warnings.push(format!("{}: field '{}' is not known and does nothing", self.place, clip(field)));
        }
        let claim = Claim {
            id,
            system: self.text(fields, "system").unwrap_or_default(),
            workload: self.workload(fields),
            subjects: self.subjects(fields),
            kind: StatementKind::of(self.remark(fields, "kind")),
            statement: self.remark(fields, "statement").unwrap_or_default(),
            check: self.text(fields, "check").unwrap_or_default(),
            tolerance: self.tolerance(fields),
            cause: self.remark(fields, "cause").unwrap_or_default(),
            reproducible: self.grade(fields),
            quirk_param: self.remark(fields, "quirk_param"),
            suite_rank: self.skim(fields, "suite_rank", "a whole number", Value::as_u64),
            needs_calibration: self.skim(fields, "needs_calibration", "true or false", Value::as_bool).unwrap_or(false),
            derived: self.skim(fields, "derived", "true or false", Value::as_bool).unwrap_or(false),
            assumed: self.remark(fields, "assumed"),
            values: fields.get("values").filter(|value| !value.is_null()).cloned(),
            exact_pct: self.skim(fields, "exact_pct", "a number", Value::as_f64),
            expected: self.take(fields, "expected", "true or false", Value::as_bool).unwrap_or(true),
        };
        (self.errors.len() == before).then_some(claim)
    }

    /// A field that may be absent or null. Any other value must have the `wanted` type, which `pick` finds.
    fn take<T>(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        wanted: &str,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        field(fields, name, wanted, pick).unwrap_or_else(|wrong| {
            self.complain(wrong);
            None
        })
    }

    /// Like [`Reader::take`], for a field for readers only. A wrong type changes no verdict, so the field is ignored
    /// with a warning.
    fn skim<T>(
        &mut self,
        fields: &Map<String, Value>,
        name: &str,
        wanted: &str,
        pick: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        field(fields, name, wanted, pick).unwrap_or_else(|wrong| {
            self.warnings.push(format!("{}: {wrong}; passed over", self.place));
            None
        })
    }

    /// An optional text for readers.
    fn remark(&mut self, fields: &Map<String, Value>, name: &str) -> Option<String> {
        self.skim(fields, name, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn optional_text(&mut self, fields: &Map<String, Value>, name: &str) -> Option<String> {
        self.take(fields, name, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// A required text.
    fn text(&mut self, fields: &Map<String, Value>, name: &str) -> Option<String> {
        let before = self.errors.len();
        let text = self.optional_text(fields, name).filter(|text| !text.trim().is_empty());
        if text.is_none() && self.errors.len() == before {
            self.complain(format!("field '{name}': it is missing or empty; every claim needs it"));
        }
        text
    }

    fn tolerance(&mut self, fields: &Map<String, Value>) -> f64 {
        let found = self.take(fields, "tolerance", "a number", Value::as_f64).unwrap_or(0.0);
        if !(0.0..=1e12).contains(&found) {
            self.complain(format!("field 'tolerance': {found} is not a tolerance; take a number from 0 up"));
        }
        found
    }

    fn grade(&mut self, fields: &Map<String, Value>) -> Grade {
        let grades = [Grade::Physics, Grade::ControllerQuirk, Grade::Unexplained];
        let Some(text) = self.remark(fields, "reproducible") else { return Grade::Unexplained };
        let found = grades.into_iter().find(|grade| grade.name() == text);
        found.unwrap_or_else(|| {
            let words = grades.map(Grade::name).join(", ");
            self.warnings.push(format!(
                "{}: field 'reproducible': '{}' is none of {words}; counted as unexplained",
                self.place,
                clip(&text)
            ));
            Grade::Unexplained
        })
    }

    fn subjects(&mut self, fields: &Map<String, Value>) -> Vec<String> {
        let texts = |value: &Value| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        };
        self.skim(fields, "subjects", "a list of texts", texts).unwrap_or_default()
    }

    fn workload(&mut self, fields: &Map<String, Value>) -> ClaimWorkload {
        let none = Map::new();
        let given = match fields.get("workload") {
            None | Some(Value::Null) => &none,
            Some(Value::Object(given)) => given,
            Some(other) => {
                self.complain(format!("field 'workload': expected an object, found {}", sort(other)));
                &none
            }
        };
        for odd in crate::workload::not_understood(given) {
            self.warnings.push(format!("{}: field 'workload.{odd}", self.place));
        }
        ClaimWorkload::from_fields(given).unwrap_or_else(|pattern| {
            self.warnings.push(format!(
                "{}: field 'workload.pattern': no method is called '{}'; known are {}; metrics without pat do not apply",
                self.place,
                clip(&pattern),
                crate::workload::load_names().join(", ")
            ));
            let mut rest = given.clone();
            rest.remove("pattern");
            rest.remove("pat");
            ClaimWorkload::from_fields(&rest).unwrap_or_else(|_| panic!("bug: a workload without a pattern has none to miss"))
        })
    }
}

/// The value that `pick` finds in a field; `None` if it is absent or null.
///
/// # Errors
/// The type of the field's value, in words, if `pick` finds nothing in it.
fn field<T>(
    fields: &Map<String, Value>,
    name: &str,
    wanted: &str,
    pick: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, String> {
    let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    pick(value).map(Some).ok_or_else(|| format!("field '{name}': expected {wanted}, found {}", sort(value)))
}

/// The type of a value, in words.
const fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
