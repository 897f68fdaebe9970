//! Failures of commands: a text and an exit code. The table of codes is [`Exit`]: `--help` and the man pages are made
//! from it, and a test compares it with docs/commands.md.

use std::fmt;

use openraid_format::Uuid;
pub use openraid_status::Exit;

/// Why a command failed. The text names the object and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// In words. It begins with the name of the thing that the failure is about.
    pub text: String,
    /// The thing that failed.
    pub about: About,
    /// What stood in the way.
    pub obstacle: Obstacle,
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

    /// How a text about it begins.
    fn head(&self) -> String {
        self.named().map_or_else(String::new, |name| name + ": ")
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
        Self { exit, text: text.to_string(), about: About::Unnamed, obstacle: Obstacle::Other }
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
    pub fn of(self, name: impl fmt::Display) -> Self {
        Self { text: format!("{name}: {}", self.text), ..self }
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

    fn named(self, about: About) -> Self {
        let head = about.head();
        let text = if self.text.starts_with(&head) { self.text } else { head + &self.text };
        Self { text, about, ..self }
    }

    /// The text without the name of the thing.
    pub fn fault(&self) -> &str {
        self.text.strip_prefix(&self.about.head()).unwrap_or(&self.text)
    }

    /// Several failures as one: a line for each, and the most severe exit code.
    pub fn joined(failures: &[Self], otherwise: Exit) -> Self {
        Self::new(most_severe(failures).unwrap_or(otherwise), grouped(failures).join("\n  "))
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
    let mut faults: Vec<(Vec<Option<String>>, &str)> = Vec::new();
    for failure in failures {
        let (name, fault) = (failure.about.named(), failure.fault());
        match faults.iter_mut().find(|entry| entry.1 == fault && entry.0.contains(&None) == name.is_none()) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => faults.push((vec![name], fault)),
        }
    }
    let mut remedies: Vec<(Vec<String>, &str)> = Vec::new();
    for (names, fault) in faults {
        let (fault, remedy) = fault.rsplit_once("; ").unwrap_or((fault, ""));
        let names: Vec<String> = names.into_iter().flatten().collect();
        let text = if names.is_empty() { fault.to_owned() } else { format!("{}: {fault}", names.join(", ")) };
        match remedies.iter_mut().find(|entry| !remedy.is_empty() && entry.1 == remedy) {
            Some((texts, _)) => texts.push(text),
            None => remedies.push((vec![text], remedy)),
        }
    }
    let with_remedy = |(mut texts, remedy): (Vec<String>, &str)| {
        match texts.as_mut_slice() {
            [only] if !remedy.is_empty() => *only = format!("{only}; {remedy}"),
            [_, ..] if !remedy.is_empty() => texts.push(format!("for each of these: {remedy}")),
            _ => {}
        }
        texts
    };
    remedies.into_iter().flat_map(with_remedy).collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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
        let (md, plain) = ("md has it (idle); stop md", || Failure::refused("plain"));
        let all = [of("/a", md), of("/b", md), of("/c", "in use; end it"), plain(), plain()];
        let wanted = "/a, /b: md has it (idle); stop md\n  /c: in use; end it\n  plain";
        assert_eq!(Failure::joined(&all, Exit::Refused).text, wanted);
        // Faults that differ have one remedy.
        let all =
            [("/a", "held by x; end it"), ("/d", "gone"), ("/b", "held by y; end it"), ("/c", "held by y; end it")];
        let all = all.map(|(name, fault)| of(name, fault));
        let wanted = ["/a: held by x", "/b, /c: held by y", "for each of these: end it", "/d: gone"];
        assert_eq!(grouped(&all), wanted);
    }
}
