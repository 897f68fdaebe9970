//! Completion of the command line: verbs and options from its definition, names of arrays and members from the registry, settings from
//! their table. The shell asks this program at each key.

use std::path::PathBuf;

use clap::Command;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::output::program;
use crate::program_settings;
use crate::registry::{RegisteredArray, Registry};

/// The variable of the environment by which a shell asks.
const VARIABLE: &str = "COMPLETE";
/// Verbs whose argument `array` is an array that exists.
const WITH_ARRAY: [&str; 22] = [
    "alarms", "add", "attach", "detach", "check", "copy-in", "copy-out", "events", "explain", "fail", "forget",
    "locate", "path", "pause", "record", "remove", "rename", "repair", "replace", "resume", "show", "set",
];
/// Verbs whose argument `member` is a member that an array has.
const WITH_MEMBER: [&str; 4] = ["fail", "locate", "remove", "replace"];

/// Answer a shell about this command and end, if one asks.
pub fn attend(command: impl Fn() -> Command) {
    CompleteEnv::with_factory(command).var(VARIABLE).bin(program()).completer(program()).complete();
}

/// The script by which a shell learns to ask. Scripts of our own know that bash divides words at `=` and `:`, and that zsh finds the script
/// in a folder.
pub fn script(shell: Shell) -> Vec<u8> {
    let bytes = |text: &str| text.replace("openraid", program()).into_bytes();
    match shell {
        Shell::Bash => return bytes(include_str!("bash.sh")),
        Shell::Zsh => return bytes(include_str!("zsh.sh")),
        _ => {}
    }
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(&shell.to_string()) {
        // A list of bytes takes all of it.
        let _ = completer.write_registration(VARIABLE, program(), program(), program(), &mut script);
    }
    script
}

/// The command `openraid` with candidates for names of arrays, members and settings.
pub fn with_candidates(mut command: Command) -> Command {
    for verb in WITH_ARRAY.iter().chain(&["stop", "serve"]) {
        command = command.mut_subcommand(verb, |subcommand| with(with(subcommand, "array", arrays), "arrays", arrays));
    }
    for verb in WITH_MEMBER {
        command = command.mut_subcommand(verb, |subcommand| with(subcommand, "member", members));
    }
    command.mut_subcommand("set", |subcommand| with(subcommand, "settings", values))
}

/// The verb with candidates for one of its arguments, if it has that argument.
fn with(verb: Command, argument: &str, candidates: fn() -> Vec<CompletionCandidate>) -> Command {
    if !verb.get_arguments().any(|known| known.get_id() == argument) {
        return verb;
    }
    verb.mut_arg(argument, |argument| argument.add(ArgValueCandidates::new(candidates)))
}

fn entries() -> Vec<RegisteredArray> {
    let path = std::env::var_os("OPENRAID_REGISTRY").map(PathBuf::from);
    Registry::at(path.as_deref()).entries().unwrap_or_default()
}

fn arrays() -> Vec<CompletionCandidate> {
    entries().into_iter().map(|entry| CompletionCandidate::new(entry.name)).collect()
}

fn members() -> Vec<CompletionCandidate> {
    let all = entries().into_iter().flat_map(|entry| entry.members);
    all.map(CompletionCandidate::new).collect()
}

/// Each setting with its words, or with nothing after the sign if its values are numbers.
fn values() -> Vec<CompletionCandidate> {
    let of = |form: openraid_management::SettingModel| {
        let words = if form.words.is_empty() { vec![String::new()] } else { form.words };
        let candidate = |word: String| {
            CompletionCandidate::new(format!("{}={word}", form.name)).help(Some(form.help.clone().into()))
        };
        words.into_iter().map(candidate).collect::<Vec<_>>()
    };
    program_settings::forms().into_iter().flat_map(of).collect()
}
