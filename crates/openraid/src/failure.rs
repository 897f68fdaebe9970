//! Failures of commands: a text and an exit code. The table of codes is [`Exit`]: `--help` and the man pages are made
//! from it, and a test compares it with docs/commands.md.

use std::fmt;

use openraid_format::Uuid;
pub use openraid_status::Exit;

use crate::service_exit::Cause;

/// Why a command failed: the thing, the fault and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// The thing that failed.
    pub about: About,
    /// What stood in the way.
    pub obstacle: Obstacle,
    /// Apart, so that a result with a failure is small.
    words: Box<FailureWords>,
}

/// The text of a failure, in its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FailureWords {
    /// The name with which the text begins.
    name: Option<String>,
    /// The fault, without that name and the remedy.
    fault: String,
    /// What to do about it.
    remedy: Option<String>,
}

/// An array that a failure is about. Two arrays can have one name, so the identity decides if both sides know one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArrayLabel {
    pub name: String,
    /// Its identity, if it is known: of a span that fails, that of the span.
    pub uuid: Option<Uuid>,
    /// The members that it was found by. A span belongs to the array that has them.
    pub members: Vec<String>,
}

impl ArrayLabel {
    /// The array with this name and identity.
    pub fn new(name: &str, uuid: Option<Uuid>) -> Self {
        Self { name: name.to_owned(), uuid, members: Vec::new() }
    }

    /// Do both mean the same array?
    pub fn is(&self, other: &Self) -> bool {
        match (self.uuid, other.uuid) {
            (Some(uuid), Some(other)) => uuid == other,
            _ => self.name == other.name,
        }
    }
}

/// The thing that a failure is about. Callers find the failures of an array or a member by it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum About {
    /// The text names the thing, or there is none.
    #[default]
    Unnamed,
    /// An array or a span that does not start.
    Array(ArrayLabel),
    /// The settings of an array that runs.
    Settings(ArrayLabel),
    /// A member, by its path or address.
    Member(String),
}

impl About {
    /// The thing in words.
    pub fn named(&self) -> Option<String> {
        match self {
            Self::Unnamed => None,
            Self::Array(array) => Some(format!("array {}", array.name)),
            Self::Settings(array) => Some(array.name.clone()),
            Self::Member(name) => Some(name.clone()),
        }
    }

    /// The array or span that does not start.
    pub const fn not_started(&self) -> Option<&ArrayLabel> {
        match self {
            Self::Array(array) => Some(array),
            Self::Unnamed | Self::Settings(_) | Self::Member(_) => None,
        }
    }

    /// The array that it names, whether it runs or not.
    pub const fn array(&self) -> Option<&ArrayLabel> {
        match self {
            Self::Array(array) | Self::Settings(array) => Some(array),
            Self::Unnamed | Self::Member(_) => None,
        }
    }

    /// Is it the same thing?
    pub fn is(&self, other: &Self) -> bool {
        match (self.array(), other.array()) {
            (Some(array), Some(other)) => array.is(other),
            _ => self == other,
        }
    }
}

/// What stands in the way of an operation. Callers act by it, not by the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Obstacle {
    /// Anything else.
    #[default]
    Other,
    /// Another program or the kernel uses it.
    InUse,
    /// This user or this machine may not write it.
    WriteProtected,
    /// The change is in force, and the server could not keep it.
    NotKept,
    /// This server uses the drive already.
    UsedHere,
    /// A setting of the array. This is no fault.
    Setting,
}

impl Failure {
    /// With this exit code.
    pub fn new(exit: Exit, text: impl fmt::Display) -> Self {
        let (about, obstacle) = (About::Unnamed, Obstacle::Other);
        let words = FailureWords { name: None, fault: text.to_string(), remedy: None };
        Self { exit, about, obstacle, words: Box::new(words) }
    }
    /// The failure for an error of which the parts are known.
    pub fn of_cause(cause: &(impl Cause + ?Sized)) -> Self {
        let mut failure = Self::new(cause.exit(), cause.fault());
        (failure.words.name, failure.words.remedy) = (cause.name(), cause.remedy());
        failure
    }
    /// The operation failed.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::new(Exit::Error, text)
    }
    /// The command is understood, but would do harm or does not fit the state. Nothing was changed.
    pub fn refused(text: impl fmt::Display) -> Self {
        Self::new(Exit::Refused, text)
    }
    /// The array has failed, or does not start.
    pub fn array_failed(text: impl fmt::Display) -> Self {
        Self::new(Exit::Failed, text)
    }
    /// The state is unknown.
    pub fn cannot_tell(text: impl fmt::Display) -> Self {
        Self::new(Exit::CannotTell, text)
    }
    /// The command line makes no sense.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// The same, for an object.
    #[must_use]
    pub fn of(mut self, name: impl fmt::Display) -> Self {
        (self.words.fault, self.words.name) = (self.named_fault(), Some(name.to_string()));
        self
    }

    /// The same with what stood in the way.
    #[must_use]
    pub fn hindered_by(self, obstacle: Obstacle) -> Self {
        Self { obstacle, ..self }
    }

    /// The same with another exit code.
    #[must_use]
    pub fn exiting(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl fmt::Display) -> Self {
        self.words.remedy = Some(remedy.to_string());
        self
    }

    /// The same with another text.
    #[must_use]
    pub fn worded(mut self, text: impl fmt::Display) -> Self {
        *self.words = FailureWords { name: None, fault: text.to_string(), remedy: None };
        self
    }

    /// The same with another fault or remedy at its end.
    #[must_use]
    pub fn and(mut self, more: impl fmt::Display) -> Self {
        self.words.fault = format!("{}; {more}", self.reason());
        self.words.remedy = None;
        self
    }

    /// The same with a sentence at its end.
    #[must_use]
    pub fn sentence(mut self, sentence: &str) -> Self {
        let last = self.words.remedy.as_mut().unwrap_or(&mut self.words.fault);
        *last = format!("{last}. {sentence}");
        self
    }

    /// The same without the name of the thing.
    #[must_use]
    pub fn unnamed(mut self) -> Self {
        (self.words.name, self.about) = (None, About::Unnamed);
        self
    }

    /// The same, about an array or a span that does not start.
    #[must_use]
    pub fn of_array(self, array: ArrayLabel) -> Self {
        self.named(About::Array(array))
    }

    /// The same, about the settings of an array.
    #[must_use]
    pub fn of_settings(self, array: ArrayLabel) -> Self {
        self.named(About::Settings(array))
    }

    /// The same, about a member with this path or address.
    #[must_use]
    pub fn of_member(self, name: &str) -> Self {
        self.named(About::Member(name.to_owned()))
    }

    fn named(mut self, about: About) -> Self {
        let name = about.named();
        if self.words.name != name {
            self.words.fault = self.named_fault();
        }
        // Words that came from elsewhere may begin with the name.
        if let Some(rest) = name.as_ref().and_then(|name| self.words.fault.strip_prefix(&format!("{name}: "))) {
            self.words.fault = rest.to_owned();
        }
        (self.words.name, self.about) = (name, about);
        self
    }

    /// The fault after the name of the thing.
    fn named_fault(&self) -> String {
        let head = self.words.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
        head + &self.words.fault
    }

    /// In words: name, fault and remedy.
    pub fn text(&self) -> String {
        with_remedy(self.named_fault(), self.words.remedy.as_deref())
    }

    /// Fault and remedy without the name of the thing.
    pub fn reason(&self) -> String {
        with_remedy(self.words.fault.clone(), self.words.remedy.as_deref())
    }

    /// Several failures as one: a line for each, and the most severe exit code.
    pub fn joined(failures: &[Self], otherwise: Exit) -> Self {
        let exit = most_severe(failures).unwrap_or(otherwise);
        match failures {
            [only] => {
                let mut failure = Self::new(exit, only.named_fault());
                failure.words.remedy.clone_from(&only.words.remedy);
                failure
            }
            _ => Self::new(exit, grouped(failures).join("\n  ")),
        }
    }

    /// Several failures as one that says this, with the most severe exit code, and the obstacle if they have the same.
    pub fn merged(failures: &[Self], text: impl fmt::Display) -> Self {
        let obstacle = failures.first().map_or(Obstacle::Other, |first| first.obstacle);
        let is_common = failures.iter().all(|failure| failure.obstacle == obstacle);
        let exit = most_severe(failures).unwrap_or(Exit::Refused);
        Self { obstacle: if is_common { obstacle } else { Obstacle::Other }, ..Self::new(exit, text) }
    }
}

/// The most severe exit code. An array that does not start is more severe than a failed operation, and that is more severe
/// than a refusal.
fn most_severe(failures: &[Failure]) -> Option<Exit> {
    let weight = |exit: &Exit| match exit {
        Exit::Failed => 3,
        Exit::Error => 2,
        Exit::Refused => 1,
        _ => 0,
    };
    failures.iter().map(|failure| failure.exit).max_by_key(weight)
}

/// The texts of failures, `NAME: FAULT; REMEDY`, with each fault and each remedy once: things with the same fault are named
/// together, and a remedy of several faults follows the last one of them.
pub fn grouped(failures: &[Failure]) -> Vec<String> {
    let mut faults: Vec<NamedFault> = Vec::new();
    for failure in failures {
        // Failures about nothing that a caller knows are told apart by their names, too.
        let name = failure.about.named();
        let fault = if name.is_none() { failure.named_fault() } else { failure.words.fault.clone() };
        let remedy = failure.words.remedy.as_deref();
        let is_same = |known: &&mut NamedFault| {
            (&known.fault, known.remedy, known.names.is_empty()) == (&fault, remedy, name.is_none())
        };
        match (faults.iter_mut().find(is_same), name) {
            (Some(known), Some(name)) if !known.names.contains(&name) => known.names.push(name),
            (Some(_), _) => {}
            (None, name) => faults.push(NamedFault { names: name.into_iter().collect(), fault, remedy }),
        }
    }
    let mut remedies: Vec<(Vec<String>, Option<&str>)> = Vec::new();
    for NamedFault { names, fault, remedy } in faults {
        let text = if names.is_empty() { fault } else { format!("{}: {fault}", names.join(", ")) };
        match remedies.iter_mut().find(|entry| remedy.is_some() && entry.1 == remedy) {
            Some((texts, _)) => texts.push(text),
            None => remedies.push((vec![text], remedy)),
        }
    }
    let lines = |(mut texts, remedy): (Vec<String>, Option<&str>)| match (texts.len(), remedy) {
        (1, _) => texts.into_iter().map(|text| with_remedy(text, remedy)).collect(),
        (_, Some(remedy)) => {
            texts.push(format!("for each of these: {remedy}"));
            texts
        }
        (_, None) => texts,
    };
    remedies.into_iter().flat_map(lines).collect()
}

/// A fault with the names of the things that have it.
struct NamedFault<'a> {
    names: Vec<String>,
    fault: String,
    remedy: Option<&'a str>,
}

/// A fault with its remedy.
fn with_remedy(fault: String, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) => format!("{fault}; {remedy}"),
        None => fault,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
impl std::error::Error for Failure {}

/// No array has this name.
pub fn unknown_array(name: &str) -> Failure {
    Failure::refused(format!(
        "no array named {name:?} is served or remembered; see `openraid list`, or name its members to `openraid assemble`"
    ))
}

/// The result of every verb.
pub type Outcome = Result<Exit, Failure>;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    /// Lines without their margins, joined, so that wrapping does not matter.
    fn flat(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The rows of the table below the heading "Exit codes" of docs/commands.md.
    fn documented() -> Vec<(u8, String)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let text = std::fs::read_to_string(path).expect("the page");
        let rows = text.split("\n## Exit codes\n").nth(1).expect("a section on exit codes");
        let rows = rows.split("\n## ").next().unwrap().lines().filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            Some((cells.next()?.parse().ok()?, cells.next()?.to_owned()))
        });
        rows.collect()
    }

    #[test]
    fn the_docs_the_help_and_the_man_pages_have_the_same_codes() {
        let wanted: Vec<_> = Exit::ALL.map(|exit| (exit.code(), exit.meaning().to_owned())).into();
        assert_eq!(documented(), wanted);
        let mut command = Arguments::command();
        let help = flat(&command.render_help().to_string());
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).expect("memory");
        let page = flat(&String::from_utf8(page).expect("UTF-8").replace("\\-", "-").replace("\\'", "'"));
        for (code, meaning) in wanted {
            let row = format!("{code} {meaning}");
            assert!(help.contains(&row), "{row:?} is not in the help");
            assert!(page.contains(&row), "{row:?} is not in the man page");
        }
    }

    #[test]
    fn codes_come_back_as_they_went_and_unknown_ones_are_errors() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_code(exit.code()), exit);
        }
        assert_eq!(Exit::from_code(63), Exit::Error);
    }

    #[test]
    fn an_array_that_does_not_start_is_the_most_severe_failure() {
        let all = [Failure::refused("a"), Failure::array_failed("b"), Failure::failed("c")];
        assert_eq!(Failure::joined(&all, Exit::Refused), Failure::array_failed("a\n  b\n  c"));
        assert_eq!(Failure::joined(&all[..1], Exit::Error).exit, Exit::Refused);
        assert_eq!(Failure::joined(&[], Exit::Error).exit, Exit::Error);
    }

    #[test]
    fn a_fault_of_several_members_and_their_remedy_are_said_once() {
        let of = |name: &str, fault: &str| Failure::refused(fault).of_member(name);
        let (md, plain) = ("md has it (idle)", || Failure::refused("plain"));
        let of_md = |name| of(name, md).remedy("stop md");
        let all = [of_md("/a"), of_md("/b"), of("/c", "in use").remedy("end it"), plain(), plain()];
        let wanted = "/a, /b: md has it (idle); stop md\n  /c: in use; end it\n  plain";
        assert_eq!(Failure::joined(&all, Exit::Refused).text(), wanted);
        // Faults that differ have one remedy.
        let held = |name, fault| of(name, fault).remedy("end it");
        let all = [held("/a", "held by x"), of("/d", "gone"), held("/b", "held by y"), held("/c", "held by y")];
        let wanted = ["/a: held by x", "/b, /c: held by y", "for each of these: end it", "/d: gone"];
        assert_eq!(grouped(&all), wanted);
    }
}
