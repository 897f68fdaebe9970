//! The command line: verbs, options, help. The man pages and completions are made from these definitions.

mod alarms;
mod attach;
mod config;
mod create;
mod events;
mod hints;
mod journal;
mod manage;
mod offline;
mod serve;

pub use alarms::{AlarmsArguments, AlarmsVerb};
pub use attach::{AttachArguments, DetachArguments};
pub use config::{ConfigArguments, ConfigVerb};
pub use create::{BitmapWord, CreateArguments};
pub use events::EventsArguments;
pub use hints::{instead, typed_verb};
pub use journal::{
    JournalAdoptArguments, JournalArguments, JournalAttachArguments, JournalCreateArguments, JournalDiscardArguments,
    JournalShowArguments, JournalVerb,
};
pub use manage::{
    AddArguments, ArrayArgument, CheckArguments, ExplainArguments, FailArguments, LocateArguments, LoginArguments,
    MemberArguments, PathArguments, RecordArguments, RenameArguments, RepairArguments, ReplaceArguments, RequestWord,
    ReshapeArguments, SetArguments, ShowArguments, SpareArguments, SpareVerb, StopArguments, SwitchWord,
};
pub use offline::{
    AssembleArguments, CopyInArguments, CopyOutArguments, DoctorArguments, ExamineArguments, ForgetArguments,
    ScanArguments, UpdateArguments, WipeMetadataArguments,
};
pub use serve::{DemoArguments, ServeArguments};

use clap::{Parser, Subcommand};
use std::path::PathBuf;

const ABOUT: &str = "An open RAID controller in user space: arrays on files, drives and remote exports, \
served over NBD, in the format of Linux md";

const EXAMPLES: &str = "\
Five minutes, without root:
  openraid create data --level 5 --file-size 256M d1 d2 d3 d4
  openraid serve data --nbd-unix /tmp/data.sock &
  openraid show data
  nbdcopy some.image nbd+unix:///data?socket=/tmp/data.sock
  openraid fail data d2 && openraid remove data d2 && openraid add data --file-size 256M d5
  openraid show data --follow
  openraid stop data

`openraid demo` runs all of these steps.";

/// The exit codes and examples.
fn after_help() -> String {
    let codes = crate::failure::Exit::table();
    format!(
        "Exit codes:\n{codes}\nVerbs that change something (fail, remove, ...) end with 0 if the change was made, even if the \
         array is degraded or has failed then.\n\n{EXAMPLES}"
    )
}

/// The command.
#[derive(Parser, Debug)]
#[command(name = "openraid", version, about = ABOUT, after_help = after_help(), max_term_width = 100, infer_subcommands = false)]
pub struct Arguments {
    /// What applies to every verb.
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub verb: Verb,
}

/// What applies to every verb.
#[derive(clap::Args, Debug, Clone)]
pub struct Common {
    /// Print JSON: one document, or one per line if the verb prints continuously
    #[arg(long, global = true)]
    pub json: bool,
    /// Control socket of the server, for verbs that need a running server [default: all servers of this user]
    #[arg(long, global = true, value_name = "PATH", env = "OPENRAID_CONTROL")]
    pub control: Option<PathBuf>,
    /// File that records the members of each array, for verbs that take an array's name
    /// [default: $XDG_STATE_HOME/openraid/registry.json, for root /var/lib/openraid/registry.json]
    #[arg(long, global = true, value_name = "FILE", env = "OPENRAID_REGISTRY")]
    pub registry: Option<PathBuf>,
    /// Seconds that opening a member may take
    #[arg(long, global = true, hide = true, value_name = "SECONDS", env = "OPENRAID_OPEN_SECONDS", hide_env = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    pub open_seconds: Option<u64>,
}

#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Create an array
    Create(Box<CreateArguments>),
    /// Find the array that some members form, check it, and remember it for `serve`
    Assemble(AssembleArguments),
    /// Print a member's metadata: superblock, bitmap, bad-block log, foreign signatures
    Examine(ExamineArguments),
    /// Remove an array from the registry; its members are not changed
    Forget(ForgetArguments),
    /// Find arrays among the files of a folder or among block devices
    Scan(ScanArguments),
    /// Serve arrays over NBD and NVMe/TCP, in the foreground
    Serve(Box<ServeArguments>),
    /// List the events of arrays and servers, also of earlier servers; acknowledge them
    Events(EventsArguments),
    /// List the alarms of arrays and servers: faults that exist now, since when, and which command helps
    #[command(visible_alias = "alarm")]
    Alarms(AlarmsArguments),
    /// Check a configuration file, or show the desired state in force
    Config(ConfigArguments),
    /// Have a running server read its configuration file again
    Reload,
    /// Print a link that signs in to the console once, or a token for scripts
    Login(LoginArguments),
    /// List remembered and served arrays
    List,
    /// Show an array: state, members, failures it survives now, running tasks
    Show(ShowArguments),
    /// Change settings of a served array
    Set(SetArguments),
    /// Mark a member as failed
    Fail(FailArguments),
    /// Switch on the light of a member's drive, so that it is found in its bay
    Locate(LocateArguments),
    /// Add a member to a served array: it fills a missing slot or becomes a spare
    Add(AddArguments),
    /// Remove a failed member or a spare from an array
    Remove(MemberArguments),
    /// Copy a working member to a new drive, which then replaces it
    Replace(ReplaceArguments),
    /// Change the shape of a served array: level, members, chunk or layout
    #[command(visible_alias = "grow")]
    Reshape(Box<ReshapeArguments>),
    /// Add, remove or list hot spares
    Spare(SpareArguments),
    /// Read all members and compare; change nothing
    #[command(visible_alias = "scrub")]
    Check(CheckArguments),
    /// Read all members, compare, and correct mismatches that can be attributed
    Repair(RepairArguments),
    /// Give a served array another name
    #[command(
        long_about = "Give a served array another name.\n\nThe name in the superblocks, in the registry and of the export \
                            changes; the UUID, settings, alarms and history stay. Connected clients stay connected, new ones ask for \
                            the new name."
    )]
    Rename(RenameArguments),
    /// Say how NVMe hosts reach a served array by the addresses of this server: hosts with several paths choose by it
    #[command(
        long_about = "Say how NVMe hosts reach a served array by the addresses of this server: hosts with several paths \
                            choose by it (ANA).\n\nHosts are told at once, and the state is kept for the next start. On an \
                            inaccessible path hosts wait, or use another path."
    )]
    Path(PathArguments),
    /// Make a served array a disk of this machine, or list the attached arrays
    Attach(AttachArguments),
    /// End the disk of an array
    Detach(DetachArguments),
    /// Pause the tasks of an array: rebuild, resync, check, change of shape
    Pause(ArrayArgument),
    /// Resume after `pause`
    Resume(ArrayArgument),
    /// Stop serving an array, or the whole server
    Stop(StopArguments),
    /// Clear the metadata of members, so that they belong to no array; data is not touched
    #[command(visible_alias = "erase")]
    WipeMetadata(WipeMetadataArguments),
    /// Clear superblock fields that older Linux kernels refuse
    Update(UpdateArguments),
    /// Say for each member whether it is usable and why, and try to start the array without writing
    Doctor(DoctorArguments),
    /// Write the whole content of an array to standard output, without a server
    CopyOut(CopyOutArguments),
    /// Fill an array from standard input, without a server
    CopyIn(CopyInArguments),
    /// Show what limits an array, the engine's decisions with reasons, and the path of single requests
    Explain(ExplainArguments),
    /// Record the requests to a served array as a trace, without their data
    Record(RecordArguments),
    /// Create, show, attach, adopt or discard journals
    Journal(JournalArguments),
    /// Demonstration: an array of eight drives, a client, a pulled drive, a rebuild
    Demo(DemoArguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages to a directory
    Man {
        /// The directory; created if missing
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Verb {
    /// The verb as the user types it.
    pub const fn typed(&self) -> &'static str {
        match self {
            Self::Explain(_) => "explain",
            Self::Events(_) => "events",
            Self::Alarms(arguments) => match arguments.verb {
                Some(AlarmsVerb::Acknowledge { .. }) => "alarms acknowledge",
                Some(AlarmsVerb::Test { .. }) => "alarms test",
                None => "alarms",
            },
            Self::WipeMetadata(_) => "wipe-metadata",
            Self::Reshape(_) => "reshape",
            Self::Attach(_) => "attach",
            Self::Journal(arguments) => match arguments.verb {
                JournalVerb::Create(_) => "journal create",
                JournalVerb::Show(_) => "journal show",
                JournalVerb::Attach(_) => "journal attach",
                JournalVerb::Discard(_) => "journal discard",
                JournalVerb::Adopt(_) => "journal adopt",
            },
            Self::Config(arguments) => match arguments.verb {
                ConfigVerb::Check { .. } => "config check",
                ConfigVerb::Member { .. } => "config member",
                ConfigVerb::Udev => "config udev",
                ConfigVerb::Show { .. } => "config show",
            },
            _ => self.name(),
        }
    }

    /// The name of the form in which it answers with `--json`: its own, or one of several.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Assemble(_) => "assemble",
            Self::Forget(_) => "forget",
            Self::Examine(_) => "examine",
            Self::Scan(_) => "scan",
            Self::Serve(_) => "serve",
            Self::Config(arguments) => match arguments.verb {
                ConfigVerb::Check { .. } => "config-check",
                ConfigVerb::Member { .. } => "config-member",
                ConfigVerb::Udev => "config-udev",
                ConfigVerb::Show { .. } => "config-show",
            },
            Self::Events(arguments) if arguments.acknowledge.is_some() => "events-acknowledge",
            Self::Events(_) => "events",
            Self::Alarms(arguments) => match arguments.verb {
                Some(AlarmsVerb::Acknowledge { .. }) => "alarms-acknowledge",
                Some(AlarmsVerb::Test { .. }) => "alarms-test",
                None => "alarms",
            },
            Self::Login(_) => "login",
            Self::Reload => "reload",
            Self::List => "list",
            Self::Show(_) => "show",
            Self::Set(_) => "set",
            Self::Fail(_) => "fail",
            Self::Locate(_) => "locate",
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Replace(_) => "replace",
            Self::Reshape(arguments) if arguments.plan => "reshape-plan",
            Self::Reshape(_) => "reshape",
            Self::Spare(_) => "spare",
            Self::Check(arguments) if arguments.history => "check-history",
            Self::Check(_) => "check",
            Self::Repair(_) => "repair",
            Self::Pause(_) => "pause",
            Self::Rename(_) => "rename",
            Self::Path(_) => "path",
            Self::Attach(arguments) if arguments.array.is_none() => "attach-list",
            Self::Attach(_) => "attach",
            Self::Detach(_) => "detach",
            Self::Resume(_) => "resume",
            Self::Stop(_) => "stop",
            Self::WipeMetadata(_) => "erase",
            Self::Update(_) => "update",
            Self::Doctor(_) => "doctor",
            Self::CopyOut(_) => "copy-out",
            Self::CopyIn(_) => "copy-in",
            Self::Explain(arguments) if arguments.record.is_some() => "explain-record",
            Self::Explain(arguments) if arguments.tells_stories() => "explain-stories",
            Self::Explain(_) => "explain",
            Self::Record(_) => "record",
            Self::Journal(arguments) => match arguments.verb {
                JournalVerb::Create(_) => "journal-create",
                JournalVerb::Show(_) => "journal-show",
                JournalVerb::Attach(_) => "journal-attach",
                JournalVerb::Discard(_) => "journal-discard",
                JournalVerb::Adopt(_) => "journal-adopt",
            },
            Self::Demo(_) => "demo",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
        }
    }
}

/// Reads the level of an event or alarm.
fn event_level() -> impl clap::builder::TypedValueParser<Value = crate::events::Severity> {
    use crate::events::Severity;
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Severity::ALL.map(Severity::word))
        .map(|word| Severity::named(&word).expect("the parser lets no other word through"))
}

/// The long help of an argument that takes members: its meaning, and how a member is named.
fn member_help(meaning: &str) -> String {
    format!(
        "{meaning}. A member is a file, a block device, the address of a remote export (nbd://HOST:PORT/EXPORT, \
         nbd+unix:///EXPORT?socket=PATH), or with openraid-lab model:PROFILE,file=PATH, a file with the timing of a drive of \
         that profile"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent_and_every_verb_has_its_name() {
        let command = Arguments::command();
        command.clone().debug_assert();
        for name in ["create", "copy-out", "copy-in", "doctor", "man"] {
            assert!(command.find_subcommand(name).is_some(), "{name}");
        }
    }
}
