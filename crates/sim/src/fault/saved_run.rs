//! Runs that are kept as files: a scenario with all its draws, and the fault that it must meet.
//!
//! The run of a seed changes if the generator, a latency or a decision changes. A file has every draw, so the generator
//! may change. The file also names the faults, phases and decisions for which the run is kept, so a run that no longer
//! meets them is noticed. The form is `key = value`, one a line, followed by `steps:` and one line for each step with
//! its seed and its words. A missing key has the value of a plain scenario; an unknown key is an error. The example
//! `keep` writes such files.

mod fields;
mod step;
mod value;

use std::fmt;

use openraid_core::reason::Reason;

use super::fault_names::Fault;
use super::phase::Phase;
use super::scenario::Scenario;
use super::verdict::Counts;
use fields::{FieldReader, Writer};

/// Text between a fault and its phase.
const WHILE: &str = " | ";
/// Text before the name of a decision.
const DECISION: &str = "decision ";
/// Decisions that were renamed: old and new name.
const RENAMED: &[(&str, &str)] = &[("FlushInDoubt", "FlushFailed")];
/// The line that precedes the steps.
const STEPS: &str = "steps:";

/// A condition that a saved run must meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RunCondition {
    /// A fault: `power cut`.
    Fault(Fault),
    /// A fault in a phase of the engine: `power cut | a superblock is on its way`.
    During(Fault, Phase),
    /// A decision of the engine: `decision RedoLogged`.
    Decision(Reason),
}

impl RunCondition {
    /// Whether a run has met the condition.
    #[must_use]
    pub fn is_met(self, counts: &Counts) -> bool {
        match self {
            Self::Fault(fault) => counts.faults.contains_key(&fault),
            Self::During(fault, phase) => counts.pairs.contains_key(&(fault, phase)),
            Self::Decision(reason) => counts.reasons.contains(&reason),
        }
    }

    /// All conditions that a run has met.
    #[must_use]
    pub fn met(counts: &Counts) -> Vec<Self> {
        let faults = counts.faults.keys().map(|fault| Self::Fault(*fault));
        let pairs = counts.pairs.keys().map(|(fault, phase)| Self::During(*fault, *phase));
        faults.chain(pairs).chain(counts.reasons.iter().map(|reason| Self::Decision(*reason))).collect()
    }

    /// The condition with these words.
    #[must_use]
    pub fn from_words(words: &str) -> Option<Self> {
        if let Some(name) = words.strip_prefix(DECISION) {
            let name = RENAMED.iter().find(|(before, _)| *before == name).map_or(name, |(_, now)| now);
            return Reason::ALL.iter().find(|reason| reason.name() == name).map(|reason| Self::Decision(*reason));
        }
        match words.split_once(WHILE) {
            Some((fault, phase)) => Some(Self::During(Fault::from_words(fault)?, Phase::from_words(phase)?)),
            None => Fault::from_words(words).map(Self::Fault),
        }
    }
}

impl fmt::Display for RunCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::During(fault, phase) => write!(f, "{fault}{WHILE}{phase}"),
            Self::Decision(reason) => write!(f, "{DECISION}{}", reason.name()),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct SavedRun {
    /// The loss in a few words.
    pub title: String,
    /// The cause of the loss.
    pub why: String,
    /// The conditions that the run must meet.
    pub meets: Vec<RunCondition>,
    /// The run.
    pub scenario: Scenario,
}

impl SavedRun {
    /// The conditions that a run of the scenario did not meet.
    #[must_use]
    pub fn missed(&self, counts: &Counts) -> Vec<RunCondition> {
        self.meets.iter().copied().filter(|condition| !condition.is_met(counts)).collect()
    }

    /// The run in a file's text.
    ///
    /// # Errors
    /// Names the line that does not have this form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (head, steps) = text.split_once(&format!("\n{STEPS}\n")).ok_or(format!("the line '{STEPS}' is missing"))?;
        let mut reader = FieldReader::new(head)?;
        let mut texts = |key: &str| reader.take(key).ok_or(format!("'{key}' is missing"));
        let (title, why) = (texts("title")?, texts("why")?);
        let mut meets = Vec::new();
        while let Some(words) = reader.take("meets") {
            meets.push(
                RunCondition::from_words(&words).ok_or(format!("meets = {words}: unknown fault, phase or decision"))?,
            );
        }
        if meets.is_empty() {
            return Err("'meets' is missing: a saved run says which fault it is about".into());
        }
        let mut scenario = Scenario::plain();
        fields::all(&mut scenario, &mut reader);
        reader.finish()?;
        let step = |line: &str| step::parse(line).ok_or(format!("'{line}': not a step"));
        scenario.steps = steps.lines().map(step).collect::<Result<_, _>>()?;
        Ok(Self { title, why, meets, scenario })
    }
}

impl fmt::Display for SavedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "title = {}\nwhy = {}", self.title, self.why)?;
        self.meets.iter().try_for_each(|condition| writeln!(f, "meets = {condition}"))?;
        let mut writer = Writer::default();
        fields::all(&mut self.scenario.clone(), &mut writer);
        writeln!(f, "{}{STEPS}", writer.text())?;
        self.scenario.steps.iter().try_for_each(|step| writeln!(f, "{}", step::StepLine(*step)))
    }
}

/// The keys and values of all fields of a scenario except its steps, in the words of a file.
#[must_use]
pub fn value_of_each_field(scenario: &Scenario) -> Vec<(String, String)> {
    let mut writer = Writer::default();
    fields::all(&mut scenario.clone(), &mut writer);
    let pair = |line: &str| line.split_once(" = ").map(|(key, value)| (key.to_owned(), value.to_owned()));
    writer.text().lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::report;

    fn kept(scenario: Scenario) -> SavedRun {
        let meets = vec![RunCondition::Fault(Fault::Cut)];
        SavedRun { title: "a title".into(), why: "a reason".into(), meets, scenario }
    }

    #[test]
    fn a_run_comes_back_from_its_file() {
        for seed in 1..400 {
            for scenario in [Scenario::draw(seed), Scenario::aimed(seed)] {
                let kept = kept(scenario);
                assert_eq!(SavedRun::parse(&kept.to_string()), Ok(kept));
            }
        }
    }

    #[test]
    fn a_run_that_no_longer_meets_its_fault_is_found() {
        let mut kept = kept(Scenario::draw(1));
        let counts = report(&kept.scenario, None).counts;
        kept.meets = RunCondition::met(&counts);
        assert!(kept.meets.len() > 20 && kept.missed(&counts).is_empty());
        kept.scenario.steps.truncate(1);
        let missed = kept.missed(&report(&kept.scenario, None).counts);
        assert!(missed.iter().any(|condition| matches!(condition, RunCondition::During(..))), "{missed:?}");
        for condition in &kept.meets {
            assert_eq!(RunCondition::from_words(&condition.to_string()), Some(*condition));
        }
        let before = RunCondition::from_words("decision FlushInDoubt").expect("the old name is known");
        assert_eq!(before.to_string(), "decision FlushFailed");
    }

    #[test]
    fn a_file_of_another_form_is_refused_with_a_reason() {
        let good = kept(Scenario::draw(7)).to_string();
        let bad = [
            (good.replace("steps:", "stages:"), "the line 'steps:' is missing"),
            (good.replace("title", "name"), "'title' is missing"),
            (good.replace("meets = power cut", "meets = rain"), "meets = rain: unknown fault, phase or decision"),
            (good.replace("meets = power cut\n", ""), "'meets' is missing: a saved run says which fault it is about"),
            (good.replace("load.depth", "load.width"), "'load.width' is unknown"),
            (good.replace("spares = 0", "spares = few"), "spares = few: not a value of this key"),
            (good.clone() + "0 sleep\n", "'0 sleep': not a step"),
            (good.replace("why = ", "why "), "'why a reason': not 'key = value'"),
        ];
        for (text, words) in bad {
            assert_eq!(SavedRun::parse(&text).expect_err("it is wrong"), words);
        }
    }
}
