//! The verbs, one file each.

pub mod add;
pub mod alarms;
pub mod assemble;
mod attach;
pub mod check;
pub mod completions;
pub mod config;
pub mod copy_in;
pub mod copy_out;
pub mod create;
pub mod demo;
mod detach;
pub mod doctor;
pub mod events;
pub mod examine;
pub mod explain;
pub mod fail;
pub mod forms;
pub mod journal;
pub mod list;
pub mod locate;
pub mod login;
pub mod man;
mod path;
pub mod pause;
pub mod recheck_bad_blocks;
pub mod record;
pub mod reload;
pub mod remove;
mod rename;
pub mod repair;
pub mod replace;
pub mod reshape;
pub mod resume;
pub mod scan;
pub mod serve;
pub mod set;
pub mod show;
pub mod spare;
pub mod stop;
pub mod udev_rules;
pub mod update;
pub mod wipe_metadata;

use std::io::{BufRead, IsTerminal};

use clap::CommandFactory;

use crate::arguments::{Arguments, Verb};
pub use crate::context::Context;
use crate::control::{Command, ControlConnection, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};
use crate::members;
use crate::model::ArrayModel;

/// Runs a verb.
///
/// # Errors
/// The reason why the verb failed.
pub fn run(verb: &Verb, context: &Context) -> Outcome {
    match verb {
        Verb::Create(arguments) => create::run(arguments, context),
        Verb::Assemble(arguments) => assemble::run(arguments, context),
        Verb::Forget(arguments) => assemble::forget(&arguments.array, context),
        Verb::Examine(arguments) => examine::run(arguments, context),
        Verb::Scan(arguments) => scan::run(arguments, context),
        Verb::Serve(arguments) => serve::run(arguments, context),
        Verb::Events(arguments) => events::run(arguments, context),
        Verb::Alarms(arguments) => alarms::run(arguments, context),
        Verb::Config(arguments) => config::run(arguments, context),
        Verb::Login(arguments) => login::run(arguments, context),
        Verb::Reload => reload::run(context),
        Verb::List => list::run(context),
        Verb::Show(arguments) => show::run(arguments, context),
        Verb::Set(arguments) => set::run(arguments, context),
        Verb::Fail(arguments) => fail::run(arguments, context),
        Verb::Locate(arguments) => locate::run(arguments, context),
        Verb::Add(arguments) => add::run(arguments, context),
        Verb::Remove(arguments) => remove::run(arguments, context),
        Verb::Replace(arguments) => replace::run(arguments, context),
        Verb::Reshape(arguments) => reshape::run(arguments, context),
        Verb::Spare(arguments) => spare::run(arguments, context),
        Verb::Check(arguments) => check::run(arguments, context),
        Verb::Repair(arguments) => repair::run(arguments, context),
        Verb::Pause(arguments) => pause::run(arguments, context),
        Verb::Rename(arguments) => rename::run(arguments, context),
        Verb::Attach(arguments) => attach::run(arguments, context),
        Verb::Detach(arguments) => detach::run(arguments, context),
        Verb::Path(arguments) => path::run(arguments, context),
        Verb::Resume(arguments) => resume::run(arguments, context),
        Verb::Stop(arguments) => stop::run(arguments, context),
        Verb::WipeMetadata(arguments) => wipe_metadata::run(arguments, context),
        Verb::Update(arguments) => update::run(arguments, context),
        Verb::Doctor(arguments) => doctor::run(arguments, context),
        Verb::CopyOut(arguments) => copy_out::run(arguments, context),
        Verb::CopyIn(arguments) => copy_in::run(arguments, context),
        Verb::Explain(arguments) => explain::run(arguments, context),
        Verb::Record(arguments) => record::run(arguments, context),
        Verb::Journal(arguments) => journal::run(arguments, context),
        Verb::Demo(arguments) => demo::run(arguments, context),
        Verb::Completions { shell } => completions::run(*shell),
        Verb::Man { folder } => man::run(Arguments::command(), folder, context),
    }
}

/// The result of a command to a server.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct DoneBody<'a> {
    /// The result in a sentence.
    done: &'a str,
    /// The array after the command, if it still exists.
    array: Option<&'a ArrayModel>,
}

/// Sends a command to the server of an array, and prints the result.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn ask(context: &Context, array: &str, command: &Command) -> Outcome {
    let answer = context.servers.must_serve(array)?.ask(command)?;
    print_done(context, &answer)
}

/// Prints what a server has done.
///
/// # Errors
/// The server sent another answer.
pub fn print_done(context: &Context, answer: &ServerAnswer) -> Outcome {
    let ServerAnswer::Done { text, array } = answer else {
        return Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version"));
    };
    // The order was carried out. The resulting state of the array is shown by `show`, not here.
    let body = DoneBody { done: text, array: array.as_deref() };
    Ok(context.output.answer(Exit::Fine, &body, text))
}

/// As [`ask`], for an order that may need a confirmation. When the user has typed the name on the terminal, the order
/// is sent again.
///
/// # Errors
/// As [`ask`], or the user did not confirm.
pub fn ask_to_confirm(context: &Context, server: &mut ControlConnection, order: &Command, again: &Command) -> Outcome {
    let mut answer = server.ask(order)?;
    if let ServerAnswer::Confirm { text, name } = &answer {
        let unconfirmed = || Failure::refused(format!("{text}; confirm that with --yes"));
        if context.output.json || !std::io::stdin().is_terminal() {
            return Err(unconfirmed());
        }
        context.output.warn(&format!("{text}. Type its name ({name}) to continue, anything else to stop:"));
        let typed = typed_line()?;
        if typed.trim_end_matches(['\r', '\n']) != name {
            return Err(unconfirmed());
        }
        answer = server.ask(again)?;
    }
    print_done(context, &answer)
}

/// The line that the user types on the terminal, with its end.
///
/// # Errors
/// Standard input cannot be read.
pub fn typed_line() -> Result<String, Failure> {
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed).map_err(Failure::failed)?;
    Ok(typed)
}

/// The identity of the member that now has this slot or number. The server refuses the order if another member has it
/// by then.
pub fn seen(server: &mut ControlConnection, array: &str, text: &str) -> Result<Option<String>, Failure> {
    let place = text.strip_prefix("slot:");
    let drive = text.strip_prefix("drive:").and_then(|number| number.parse::<u16>().ok());
    if place.is_none() && drive.is_none() {
        return Ok(None);
    }
    let array = server.show(array)?;
    let sets = array.sets();
    let (span, slot) = place.map_or((None, None), |place| match place.split_once('.') {
        Some((span, slot)) => (span.parse::<usize>().ok(), slot.parse::<u16>().ok()),
        None => (Some(0), place.parse::<u16>().ok()),
    });
    let found = match drive {
        Some(_) => sets.iter().flat_map(|set| &set.members).find(|member| member.drive == drive),
        None => span.and_then(|span| sets.get(span)).and_then(|set| {
            set.members.iter().find(|member| slot.is_some() && member.slot == slot && !member.replacement)
        }),
    };
    Ok(found.and_then(|member| member.device.clone()))
}

/// A member's name in the form that a server needs: a path is made absolute, `slot:N` and `drive:N` stay unchanged.
///
/// # Errors
/// The name does not exist.
pub fn member_name(text: &str) -> Result<String, Failure> {
    if text.starts_with("slot:") || text.starts_with("drive:") {
        return Ok(text.into());
    }
    members::written_spec(text).map(|spec| spec.text)
}
