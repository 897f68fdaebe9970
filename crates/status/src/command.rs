//! The commands to a server.

use serde::{Deserialize, Serialize};

use crate::check_results::CheckWord;
use crate::role::Role;
use crate::words::PathWord;

/// A command to a server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Command {
    /// Describe the server.
    Hello,
    /// Everything about all arrays.
    List,
    /// Everything about one array.
    Show { array: String },
    /// Fail a member.
    Fail {
        array: String,
        member: String,
        /// Also if rows that are not in sync yet need it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsynced: bool,
        /// Only if it is the one with this identity: what was seen before the order was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
    },
    /// Add a member.
    Add {
        array: String,
        member: String,
        /// For which span of a nested array.
        span: Option<usize>,
        /// Whatever is on it may be lost.
        overwrite: bool,
        /// It may be the other half of a split array: what was written to that half alone may be lost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        split: bool,
    },
    /// Take a failed member or a spare out.
    Remove {
        array: String,
        member: String,
        /// Only if it is a spare.
        spare: bool,
        /// Only if it is the one with this identity: what was seen before the order was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
    },
    /// Copy a member to another one, which takes its place.
    Replace {
        array: String,
        member: String,
        /// The other one; any spare if none.
        with: Option<String>,
        /// Whatever is on it may be lost.
        overwrite: bool,
        /// Only if it is the one with this identity: what was seen before the order was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        device: Option<String>,
        /// The new one may be the other half of a split array.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        split: bool,
    },
    /// Switch the light of a member, so that its drive is found.
    Locate {
        array: String,
        member: String,
        /// Off again?
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        off: bool,
    },
    /// Read everything and compare.
    Check {
        array: String,
        /// The blocks that the check may change.
        kind: CheckWord,
    },
    /// End a check or repair.
    StopCheck { array: String },
    /// Turn the change of an array's shape around.
    CancelReshape { array: String },
    /// Let hosts have no more than the first part of an array, or all of it again. Nothing is lost.
    LimitSize {
        array: String,
        /// The size as the user writes it; `max` is all.
        to: String,
        /// Without a question.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        yes: bool,
    },
    /// Change the shape of an array, or say what that would do.
    Reshape {
        array: String,
        /// Drives that join it first, as spares.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        members: Vec<String>,
        /// The new number of members.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raid_devices: Option<u16>,
        /// The new level, as the user writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        level: Option<String>,
        /// The new size of a chunk, as the user writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunk: Option<String>,
        /// The new layout, as the user writes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layout: Option<String>,
        /// The used size of each member; `max`: use all room of the members.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<String>,
        /// Only say what would happen.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        plan: bool,
        /// Whatever is on the drives may be lost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        overwrite: bool,
        /// Begin without a question.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        yes: bool,
    },
    /// Hold background work.
    Pause { array: String },
    /// Go on with it.
    Resume { array: String },
    /// Change settings: keys and values as the user writes them.
    Set {
        array: String,
        settings: Vec<(String, String)>,
        /// Accept what they put at risk.
        #[serde(default)]
        yes: bool,
    },
    /// Serve hosts of an array again that were refused after a loss of acknowledged writes.
    AfterLoss { array: String },
    /// Give an array another name.
    Rename {
        array: String,
        /// Its new name.
        to: String,
    },
    /// Say how NVMe hosts reach an array by the addresses of this server.
    Path {
        array: String,
        /// `optimized`, `non-optimized` or `inaccessible`.
        state: PathWord,
    },
    /// Stop an array.
    Stop {
        array: String,
        /// Also if that loses data that lives only while the server runs.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        yes: bool,
    },
    /// Stop everything and end.
    StopAll {
        /// As for one array.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        yes: bool,
    },
    /// Start and serve the arrays that these members make.
    Assemble {
        members: Vec<String>,
        /// As `--force`.
        force: bool,
        /// As `--journal-lost`.
        #[serde(default)]
        journal_lost: bool,
    },
    /// What limits an array now?
    Limit { array: String },
    /// Keep steps of requests from now on, or do not.
    Record {
        /// On?
        on: bool,
    },
    /// Stories of requests that ended; steps are kept while a client asks for them.
    Stories {
        array: String,
        /// Number of the first story.
        since: u64,
    },
    /// Requests of hosts in the order of their arrival; steps are kept while a client asks for them.
    Requests {
        array: String,
        /// Number of the first arrival.
        since: u64,
    },
    /// The story of a request, from steps that are kept.
    Story {
        array: String,
        /// Its number; nothing: the last that ended.
        request: Option<u64>,
    },
    /// The stories of the slowest requests.
    Slowest {
        array: String,
        /// Their number.
        count: usize,
    },
    /// All alarms of this server and its arrays, ended ones included.
    Alarms,
    /// Take note of alarms that hold.
    AcknowledgeAlarms {
        /// The name of an alarm, the name of an array, or `all`.
        which: String,
    },
    /// Send a test alarm.
    TestAlarm {
        /// To this sink; none: to all.
        sink: Option<String>,
    },
    /// The desired state in force.
    Config,
    /// Make a link that signs in to the console once.
    Login {
        /// `Administrator`, `Operator` or `ReadOnly`.
        role: Role,
        /// A token for scripts in place of the link.
        #[serde(default)]
        token: bool,
        /// The token gets this name, and lasts until it is revoked.
        #[serde(default)]
        name: Option<String>,
    },
    /// Revoke a token that lasts.
    RevokeToken { name: String },
    /// Read the configuration file again.
    Reload,
    /// Everything about the journal.
    Journal,
    /// Let a device join the journal.
    JoinJournal {
        /// Which; nothing: the one that was dropped.
        device: Option<String>,
        /// Whatever is on it may be lost.
        overwrite: bool,
    },
    /// Give up what the journal holds for an array that does not run.
    DiscardJournalled {
        /// Its name, or the identity of its set.
        array: String,
        /// Do it; otherwise only say what would be lost.
        lost: bool,
    },
}

impl Command {
    /// The array and the words of a command that changes something, for the event log. Commands that only read have none, nor have
    /// those whose own events say as much: a reload, an acknowledgement, a test, the end of the server.
    #[must_use]
    pub fn change(&self) -> Option<(Option<&str>, String)> {
        let switch = |on: bool, word: &'static str| if on { word } else { "" };
        let (array, what) = match self {
            Self::Fail { array, member, .. } => (array, format!("fail {member}")),
            Self::Add { array, member, .. } => (array, format!("add {member}")),
            Self::Remove { array, member, .. } => (array, format!("remove {member}")),
            Self::Replace { array, member, with, .. } => {
                (array, format!("replace {member} with {}", with.as_deref().unwrap_or("a spare")))
            }
            Self::Locate { array, member, off } => (array, format!("locate {member}{}", switch(*off, " --off"))),
            Self::Check { array, kind } => (array, kind.text().to_owned()),
            Self::StopCheck { array } => (array, "end the check".to_owned()),
            Self::CancelReshape { array } => (array, "reshape --cancel".to_owned()),
            Self::LimitSize { array, to, .. } => (array, format!("reshape --array-size {to}")),
            Self::Reshape { plan: true, .. } => return None,
            Self::Reshape { array, members, raid_devices, level, chunk, layout, size, .. } => {
                let option = |name: &str, value: Option<&str>| value.map(|value| format!(" --{name} {value}"));
                let number = raid_devices.map(|number| number.to_string());
                let named = (!members.is_empty()).then(|| format!(" --members {}", members.join(" ")));
                let options = [
                    option("raid-devices", number.as_deref()),
                    option("level", level.as_deref()),
                    option("chunk", chunk.as_deref()),
                    option("layout", layout.as_deref()),
                    option("size", size.as_deref()),
                    named,
                ];
                (array, format!("reshape{}", options.into_iter().flatten().collect::<String>()))
            }
            Self::Pause { array } => (array, "pause".to_owned()),
            Self::Resume { array } => (array, "resume".to_owned()),
            Self::Set { array, settings, .. } => {
                let words: Vec<String> = settings.iter().map(|(key, value)| format!(" {key}={value}")).collect();
                (array, format!("set{}", words.concat()))
            }
            Self::AfterLoss { array } => (array, "serve --after-loss".to_owned()),
            Self::Rename { array, to } => (array, format!("rename {to}")),
            Self::Path { array, state } => (array, format!("path {state}")),
            Self::Stop { array, .. } => (array, "stop".to_owned()),
            Self::DiscardJournalled { array, lost: true } => (array, "give up what the journal holds".to_owned()),
            Self::Assemble { members, .. } => return Some((None, format!("assemble {}", members.join(" ")))),
            Self::JoinJournal { device, .. } => {
                return Some((
                    None,
                    format!("journal attach {}", device.as_deref().unwrap_or("the device that was dropped")),
                ));
            }
            Self::Login { role, token, name } => {
                let what = if *token { "token" } else { "link" };
                let name = name.as_ref().map_or(String::new(), |name| format!(" with the name {name}"));
                return Some((None, format!("a {what}{name} to sign in as {role} was made")));
            }
            Self::RevokeToken { name } => return Some((None, format!("the token {name} was revoked"))),
            _ => return None,
        };
        Some((Some(array), what))
    }
}
