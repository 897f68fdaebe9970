//! The workload of a claim: the load, and the defaults of the axes that a check leaves out.
//!
//! A claim's workload is partly prose (`"512..1M x2"`, `"1..256"`, `"wb|wt"`). A field gives a default only if it is
//! one value. A workload must never cause an error: a field that is not one value gives no default.

use crate::axis_arguments::{Axis, AxisValue, AxisValues, CLAIM_AXES};
use crate::subject::clip;
use openraid_methods::cell::{Direction, Pattern};
use openraid_methods::metrics::Scheme;
use serde_json::{Map, Value};

/// The name of a workload without a measurement.
pub(crate) const STATIC: &str = "static-property";

/// Names in `openraid-lab review` that are no names of patterns. Latencies are measured by metrics of their own, with the
/// random load.
const REVIEW_LOADS: [(&str, Pattern); 3] =
    [("fc-subset", Pattern::FcTest), ("applications", Pattern::Application), ("latency", Pattern::SsdRandom)];

/// The names of all loads in workloads, and of none.
pub fn load_names() -> Vec<&'static str> {
    std::iter::once(STATIC).chain(Pattern::CLAIM_LOADS.map(|(name, ..)| name)).collect()
}

/// The load of a claim's measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimLoad {
    /// The laboratory's pattern.
    pub pattern: Pattern,
    /// The direction, if claims have a load for each direction: random reads and random writes.
    pub direction: Option<Direction>,
}

impl From<Pattern> for ClaimLoad {
    fn from(pattern: Pattern) -> Self {
        let direction = (pattern == Pattern::Random).then_some(Direction::Read);
        Self { pattern, direction }
    }
}

impl ClaimLoad {
    /// The load of a workload's `pattern`.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let of_review = REVIEW_LOADS.into_iter().find(|(known, _)| *known == name);
        let of_review = of_review.map(|(_, pattern)| (pattern, None));
        let (pattern, direction) = of_review.or_else(|| Pattern::from_workload(name))?;
        let load = Self::from(pattern);
        Some(Self { direction: direction.or(load.direction), ..load })
    }

    /// The load of a `pat`, and the direction that some of these words include.
    #[must_use]
    pub fn of_pat(pat: &str) -> Option<(Self, Option<Direction>)> {
        let (pattern, direction) = Pattern::from_axis(pat)?;
        let load = Self::from(pattern);
        Some((Self { direction: load.direction.and(direction), ..load }, direction))
    }

    /// The name in a workload.
    #[must_use]
    pub fn name(&self) -> &str {
        let is_it = |(_, pattern, direction): &(_, Pattern, Option<Direction>)| {
            *pattern == self.pattern
                && (direction.is_none() || self.direction.is_none() || *direction == self.direction)
        };
        Pattern::CLAIM_LOADS.into_iter().find(is_it).map_or(self.pattern.name(), |(name, ..)| name)
    }
}

/// A claim's workload.
#[derive(Clone, PartialEq, Debug)]
pub struct ClaimWorkload {
    /// The load; none if nothing is measured.
    pub load: Option<ClaimLoad>,
    /// Defaults from the fields.
    pub defaults: AxisValues,
    /// The scheme of ratings, if the workload names one.
    pub scheme: Option<Scheme>,
    /// Seconds of one step of a series, if the workload gives it: the time in which requests are counted.
    pub step_s: Option<f64>,
}

impl ClaimWorkload {
    /// The workload from the fields of a claim. Without a pattern, it is `static-property`; a word of `pat` is
    /// accepted, too.
    ///
    /// # Errors
    /// The pattern, if it is unknown.
    pub fn from_fields(fields: &Map<String, Value>) -> Result<Self, String> {
        let load = match fields.get("pattern").or_else(|| fields.get("pat")) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) if name == STATIC => None,
            Some(Value::String(name)) => {
                let load = ClaimLoad::of(name).or_else(|| ClaimLoad::of_pat(name).map(|(load, _)| load));
                Some(load.ok_or_else(|| name.clone())?)
            }
            Some(other) => return Err(other.to_string()),
        };
        let mut defaults = AxisValues::new();
        for (field, axis) in fields_of_axes() {
            let Some(value) = fields.get(field).and_then(|value| single(axis, value)) else { continue };
            // An invalid value for the axis is prose, and not a default.
            let _ = defaults.set(axis, value);
        }
        let scheme = fields.get("rating_scheme").and_then(Value::as_str).and_then(Scheme::from_words);
        let step = fields.get("step_s").and_then(|value| single(Axis::Secs, value));
        let step_s = step.and_then(|step| {
            let mut seconds = AxisValues::new();
            seconds.set(Axis::Secs, step).ok().and_then(|()| seconds.real(Axis::Secs))
        });
        Ok(Self { load, defaults, scheme, step_s })
    }

    /// All inputs of the values, in one line.
    #[must_use]
    pub fn key(&self) -> String {
        let step = self.step_s.map_or_else(String::new, |seconds| format!("|{seconds}"));
        let (load, scheme) =
            (self.load.as_ref().map_or(STATIC, ClaimLoad::name), self.scheme.map_or("-", Scheme::name));
        format!("{load}|{}|{scheme}{step}", self.defaults)
    }
}

/// Fields of a workload whose name differs from that of their axis.
const FIELDS: [(&str, Axis); 5] = [
    ("block", Axis::Bs),
    ("read_pct", Axis::Rd),
    ("streams", Axis::Th),
    ("duration_s", Axis::Secs),
    ("cycle", Axis::Cyc),
];

/// Fields without an axis: their content is elsewhere, or describes the review's test system.
const OTHER_FIELDS: [&str; 6] = ["pattern", "pat", "rating_scheme", "step_s", "random_pct", "partition_gb"];

/// All fields with an axis. The axis's own name is last and has precedence.
fn fields_of_axes() -> impl Iterator<Item = (&'static str, Axis)> {
    let by_name = CLAIM_AXES.into_iter().filter(|axis| *axis != Axis::Pat).map(|axis| (axis.word(), axis));
    FIELDS.into_iter().chain(by_name)
}

/// The value of a field if it is a single one: a number, a number as text (also `128K`), a word.
fn single(axis: Axis, value: &Value) -> Option<AxisValue> {
    match value {
        Value::Number(number) => number.as_f64().map(AxisValue::Number),
        Value::String(text) if axis == Axis::Cache => cache(text).map(|word| AxisValue::Word(word.into())),
        Value::String(text) => Some(match size(text) {
            Some(number) => AxisValue::Number(number),
            None => AxisValue::Word(text.clone()),
        }),
        _ => None,
    }
}

/// Unknown fields, and fields that are neither a single value nor a series nor a choice: `qd' says ...` with the
/// reason.
pub fn not_understood(fields: &Map<String, Value>) -> Vec<String> {
    let known = |name: &str| OTHER_FIELDS.contains(&name) || fields_of_axes().any(|(field, _)| field == name);
    let unknown = fields.keys().filter(|name| !known(name));
    let mut odd: Vec<String> = unknown.map(|name| format!("{}' is not known and does nothing", clip(name))).collect();
    if let Some(text) = fields.get("rating_scheme").filter(|value| !value.is_null()) {
        if text.as_str().and_then(Scheme::from_words).is_none() {
            let text = clip(&text.to_string());
            odd.push(format!(
                "rating_scheme': {text} is none of R1 to R5; ratings are made as the pattern's usually are"
            ));
        }
    }
    for (field, axis) in fields_of_axes().chain([("step_s", Axis::Secs)]) {
        let Some(value) = fields.get(field).filter(|value| !value.is_null()) else { continue };
        if value.as_str().is_some_and(is_series) {
            continue;
        }
        match single(axis, value).map(|one| AxisValues::new().set(axis, one)) {
            Some(Ok(())) => {}
            Some(Err(error)) => odd.push(format!("{field}': {error}; it gives no default")),
            None => odd.push(format!("{field}': {} is not one value; it gives no default", clip(&value.to_string()))),
        }
    }
    odd
}

/// Whether a text means several values (`1..256`, `wb|wt`, `512..64K mix`).
fn is_series(text: &str) -> bool {
    text.contains("..") || text.contains('|') || text.split_whitespace().any(|word| word == "mix")
}

/// `wb` and `wt` may precede remarks; both together give no default.
fn cache(text: &str) -> Option<&'static str> {
    let word = |wanted: &str| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == wanted);
    match (word("wb"), word("wt")) {
        (true, false) => Some("wb"),
        (false, true) => Some("wt"),
        _ => None,
    }
}

/// A size such as `65536`, `128K`, `2M`.
fn size(text: &str) -> Option<f64> {
    let (digits, factor) = match text.strip_suffix(['K', 'M']) {
        Some(digits) if text.ends_with('K') => (digits, 1024.0),
        Some(digits) => (digits, 1_048_576.0),
        None => (text, 1.0),
    };
    let plain = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse::<f64>().map_or(0.0, |number| number * factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> ClaimWorkload {
        ClaimWorkload::from_fields(value.as_object().expect("an object")).expect("a pattern")
    }

    #[test]
    fn single_values_are_defaults_and_ranges_are_not() {
        let load = of(json!({
            "pattern": "database", "block": 8192, "read_pct": "0..100 step 10", "random_pct": 100, "qd": 16,
            "streams": 1, "cache": "wb+readahead, controller and drives (Performance mode)",
        }));
        assert_eq!(load.load, ClaimLoad::of("database"));
        assert_eq!(load.defaults.to_string(), "qd=16, bs=8192, th=1, cache='wb'");
        let load =
            of(json!({"pattern": "sequential", "block": "128K", "qd": "1|16", "cache": "wb|wt", "cycle": "1|2"}));
        assert_eq!(load.defaults.to_string(), "bs=131072");
        let load = of(json!({"pattern": "fc-test", "block": null, "fs": "ntfs|fat32", "op": "create", "cycle": 2}));
        assert_eq!(load.defaults.to_string(), "op='create', cyc=2");
        assert_eq!(of(json!({})).load, None);
        assert_eq!(of(json!({"pattern": "static-property"})).load, None);
    }

    #[test]
    fn every_axis_is_a_field_by_its_own_name() {
        let load = of(json!({"pat": "db", "rd": 0, "bs": "64K", "th": 2, "cyc": 1, "secs": 30, "block": 8192}));
        assert_eq!(load.load, ClaimLoad::of("database"));
        assert_eq!(load.defaults.to_string(), "rd=0, bs=65536, th=2, cyc=1, secs=30");
        for axis in CLAIM_AXES.into_iter().filter(|axis| *axis != Axis::Pat) {
            assert!(fields_of_axes().any(|(field, known)| (field, known) == (axis.word(), axis)), "{axis:?}");
        }
    }

    #[test]
    fn a_value_that_is_neither_plain_nor_a_series_is_reported() {
        let odd = |value: Value| not_understood(value.as_object().expect("an object"));
        let fine = json!({
            "block": "512..64K mix", "qd": "1..64 per worker", "cache": "wb|wt", "read_pct": null, "fs": "ntfs|fat32",
            "streams": 2, "zone": "32g", "step_s": 60, "random_pct": "any",
        });
        assert_eq!(odd(fine), Vec::<String>::new());
        let odd_ones = odd(json!({"drive": "x", "foo": 1, "rating_scheme": "R9"}));
        for words in ["drive' is not known", "foo' is not known", "rating_scheme': \"R9\" is none of"] {
            assert!(odd_ones.iter().any(|one| one.starts_with(words)), "{words}: {odd_ones:?}");
        }
        let odd_ones = odd(json!({"qd": 0, "zone": "32 GB", "workers": [1, 4], "step_s": -1, "oio": "4 per worker"}));
        for words in
            ["qd': qd=0 makes no sense", "zone': zone='32 GB'", "workers': [1,4] is not one", "step_s': ", "oio': "]
        {
            assert!(odd_ones.iter().any(|one| one.starts_with(words)), "{words}: {odd_ones:?}");
        }
        assert_eq!(odd_ones.len(), 5);
        assert_eq!(of(json!({"pattern": "sequential", "step_s": 60})).step_s, Some(60.0));
    }

    #[test]
    fn every_load_and_every_pattern_word_is_known() {
        for (name, ..) in Pattern::CLAIM_LOADS {
            assert_eq!(ClaimLoad::of(name).expect(name).name(), name);
        }
        // Names in `openraid-lab review`.
        for (name, other) in [
            ("multi-threaded", "multithreaded"),
            ("random", "random-read-by-block"),
            ("latency", "rst-random"),
            ("fc-subset", "fc-test"),
            ("transfer-graph", "winbench99-transfer-graph"),
            ("applications", "winbench99"),
            ("application", "winbench99"),
        ] {
            assert_eq!(ClaimLoad::of(name), ClaimLoad::of(other), "{name}");
        }
        for (pat, name) in [("rr", "random-read-by-block"), ("rw", "random-write-by-block"), ("sw", "sequential")] {
            assert_eq!(ClaimLoad::of_pat(pat).map(|(load, _)| load), ClaimLoad::of(name), "{pat}");
        }
        for (pat, pattern, _) in Pattern::AXIS_WORDS {
            assert_eq!(ClaimLoad::of_pat(pat).map(|(load, _)| load.pattern), Some(pattern), "{pat}");
        }
        assert!(ClaimLoad::of_pat("xy").is_none() && ClaimLoad::of("xy").is_none());
        let strange = json!({"pattern": "xy"});
        assert_eq!(ClaimWorkload::from_fields(strange.as_object().expect("object")), Err("xy".into()));
    }
}
