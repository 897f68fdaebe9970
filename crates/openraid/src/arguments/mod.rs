//! The command line: verbs, options, help. The man pages and completions are made from these definitions.

mod create;
mod hints;
mod journal;
mod lab;
mod manage;
mod offline;
mod serve;
mod torture;
mod validate;

pub use create::{BitmapWord, CreateArguments};
pub use hints::instead;
pub use journal::{
    JournalAdoptArguments, JournalArguments, JournalAttachArguments, JournalCreateArguments, JournalDiscardArguments,
    JournalShowArguments, JournalVerb,
};
pub use lab::{
    CacheWord, CompareArguments, DriveStateWord, EffortWord, LoadArguments, MachineArguments, PlanArguments,
    RehearseArguments, ReviewArguments, SimulateArguments, WayWord,
};
pub use manage::{
    AddArguments, ArrayArgument, CheckArguments, ExplainArguments, FailArguments, MemberArguments, RepairArguments,
    ReplaceArguments, RequestWord, SetArguments, ShowArguments, SpareArguments, SpareVerb, StopArguments, SwitchWord,
};
pub use offline::{
    AssembleArguments, CopyInArguments, CopyOutArguments, DoctorArguments, EraseArguments, ExamineArguments,
    ForgetArguments, ScanArguments, UpdateArguments,
};
pub use serve::{DemoArguments, ServeArguments};
pub use torture::TortureArguments;
pub use validate::ValidateArguments;

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

`openraid demo` shows all of it by itself.";

/// The exit codes and examples.
fn after_help() -> String {
    let codes = crate::exit::Exit::table();
    format!(
        "Exit codes:\n{codes}\nVerbs that change something (fail, remove, ...) end with 0 when they did it, whatever state that \
         leaves the array in.\n\n{EXAMPLES}"
    )
}

/// The command.
#[derive(Parser, Debug)]
#[command(name = "openraid", version, about = ABOUT, after_help = after_help(), max_term_width = 100, infer_subcommands = false)]
pub struct Arguments {
    /// What applies to every verb.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What applies to every verb.
#[derive(clap::Args, Debug, Clone)]
pub struct Common {
    /// Answer in JSON: one document, or one for each line where the verb goes on talking
    #[arg(long, global = true)]
    pub json: bool,
    /// The control socket of the server, for verbs that ask one [default: ask all servers of this user]
    #[arg(long, global = true, value_name = "PATH", env = "OPENRAID_CONTROL")]
    pub control: Option<PathBuf>,
    /// The file that remembers which members an array has, for verbs that take its name
    /// [default: $XDG_STATE_HOME/openraid/registry.json, for root /var/lib/openraid/registry.json]
    #[arg(long, global = true, value_name = "FILE", env = "OPENRAID_REGISTRY")]
    pub registry: Option<PathBuf>,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Verb {
    /// Make a new array
    Create(Box<CreateArguments>),
    /// Check what some members make, say what each of them is, and remember the array
    Assemble(AssembleArguments),
    /// Say what stands on a member: superblock, bitmap, bad blocks, signatures of others
    Examine(ExamineArguments),
    /// Forget an array that is remembered; its members stay as they are
    Forget(ForgetArguments),
    /// Find arrays among the files of a folder or among block devices
    Scan(ScanArguments),
    /// Serve arrays over NBD, in the foreground
    Serve(Box<ServeArguments>),
    /// List the arrays that are remembered or served
    List,
    /// Show an array: members, state, what it survives now, what is going on
    Show(ShowArguments),
    /// Change settings of a served array
    Set(SetArguments),
    /// Fail a member, as if it had broken
    Fail(FailArguments),
    /// Add a member to a served array: it takes over a missing slot, or becomes a spare
    Add(AddArguments),
    /// Take a failed member or a spare out of an array
    Remove(MemberArguments),
    /// Copy a working member to a new one, which then takes its place
    Replace(ReplaceArguments),
    /// Add, remove or list hot spares
    Spare(SpareArguments),
    /// Read everything and compare; change nothing
    #[command(visible_alias = "scrub")]
    Check(CheckArguments),
    /// Read everything, compare, and correct what can be attributed
    Repair(RepairArguments),
    /// Hold rebuild, resync and check of an array
    Pause(ArrayArgument),
    /// Go on after `pause`
    Resume(ArrayArgument),
    /// Stop serving an array, or the whole server
    Stop(StopArguments),
    /// Wipe the metadata of members, so that they belong to no array; their data stay
    #[command(name = "wipe-metadata", visible_alias = "erase")]
    Erase(EraseArguments),
    /// Take out of the superblocks what older Linux kernels refuse
    Update(UpdateArguments),
    /// Say why each member is or is not usable, and try the array without writing anything
    Doctor(DoctorArguments),
    /// Write the whole content of an array to standard output, without a server
    CopyOut(CopyOutArguments),
    /// Fill an array from standard input, without a server
    CopyIn(CopyInArguments),
    /// Say what limits an array, what the engine decided and why, and the story of each request
    Explain(ExplainArguments),
    /// Make, show, adopt or give up journals
    Journal(JournalArguments),
    /// Show it all: an array of eight drives, a client, a drive that is pulled, a rebuild
    Demo(DemoArguments),
    /// Predict what one load gets from one array, in virtual time
    Simulate(Box<SimulateArguments>),
    /// Measure or simulate with the methods of storage reviews, and write a report
    Review(Box<ReviewArguments>),
    /// Two reviews side by side
    Compare(CompareArguments),
    /// Hold a prediction against service: the same loads on a simulated array, and served on paced members
    Rehearse(Box<RehearseArguments>),
    /// Levels side by side for given drives and a given load
    Plan(Box<PlanArguments>),
    /// Hold claims about arrays against the simulation: what passes, what fails, and the values
    Validate(ValidateArguments),
    /// Cut the power thousands of times in a simulated machine, and see that nothing promised is lost
    Torture(TortureArguments),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder
    Man {
        /// The folder; it is made if it is not there
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Verb {
    /// The verb as the user types it.
    pub const fn typed(&self) -> &'static str {
        match self {
            Self::Explain(_) => "explain",
            Self::Erase(_) => "wipe-metadata",
            Self::Journal(arguments) => match arguments.verb {
                JournalVerb::Create(_) => "journal create",
                JournalVerb::Show(_) => "journal show",
                JournalVerb::Attach(_) => "journal attach",
                JournalVerb::Discard(_) => "journal discard",
                JournalVerb::Adopt(_) => "journal adopt",
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
            Self::List => "list",
            Self::Show(_) => "show",
            Self::Set(_) => "set",
            Self::Fail(_) => "fail",
            Self::Add(_) => "add",
            Self::Remove(_) => "remove",
            Self::Replace(_) => "replace",
            Self::Spare(_) => "spare",
            Self::Check(_) => "check",
            Self::Repair(_) => "repair",
            Self::Pause(_) => "pause",
            Self::Resume(_) => "resume",
            Self::Stop(_) => "stop",
            Self::Erase(_) => "erase",
            Self::Update(_) => "update",
            Self::Doctor(_) => "doctor",
            Self::CopyOut(_) => "copy-out",
            Self::CopyIn(_) => "copy-in",
            Self::Explain(arguments) if arguments.record.is_some() => "explain-record",
            Self::Explain(arguments) if arguments.tells_stories() => "explain-stories",
            Self::Explain(_) => "explain",
            Self::Journal(arguments) => match arguments.verb {
                JournalVerb::Create(_) => "journal-create",
                JournalVerb::Show(_) => "journal-show",
                JournalVerb::Attach(_) => "journal-attach",
                JournalVerb::Discard(_) => "journal-discard",
                JournalVerb::Adopt(_) => "journal-adopt",
            },
            Self::Demo(_) => "demo",
            Self::Simulate(_) => "simulate",
            Self::Review(_) => "review",
            Self::Compare(_) => "compare",
            Self::Plan(_) => "plan",
            Self::Rehearse(_) => "rehearse",
            Self::Validate(_) => "validate",
            Self::Torture(_) => "torture",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
        }
    }
}

/// Members may be named so.
pub const MEMBER_HELP: &str = "A file, a block device, or the address of a remote export \
(nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH); or model:PROFILE,file=PATH, a file that answers as a drive of \
that profile would";

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
