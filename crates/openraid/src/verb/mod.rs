//! The verbs, one file each.

pub mod add;
pub mod assemble;
pub mod check;
pub mod compare;
pub mod completions;
pub mod copy_in;
pub mod copy_out;
pub mod create;
pub mod demo;
pub mod doctor;
pub mod erase;
pub mod examine;
pub mod explain;
pub mod fail;
pub mod journal;
pub mod list;
pub mod man;
pub mod pause;
pub mod plan;
pub mod rehearse;
pub mod remove;
pub mod repair;
pub mod replace;
pub mod resume;
pub mod review;
pub mod scan;
pub mod serve;
pub mod set;
pub mod show;
pub mod simulate;
pub mod spare;
pub mod stop;
pub mod torture;
pub mod validate;

use crate::arguments::{Common, Verb};
use crate::control::{Answer, Command, Servers};
use crate::exit::{Exit, Outcome};
use crate::model::ArrayModel;
use crate::output::Output;
use crate::registry::Registry;

/// What every verb has.
#[derive(Debug)]
pub struct Context {
    /// How to answer.
    pub output: Output,
    /// What is remembered.
    pub registry: Registry,
    /// Who can be asked.
    pub servers: Servers,
    /// What applies to every verb.
    pub common: Common,
}

/// Do it.
///
/// # Errors
/// Why it was not done.
pub fn run(verb: &Verb, context: &Context) -> Outcome {
    match verb {
        Verb::Create(arguments) => create::run(arguments, context),
        Verb::Assemble(arguments) => assemble::run(arguments, context),
        Verb::Forget(arguments) => assemble::forget(&arguments.array, context),
        Verb::Examine(arguments) => examine::run(arguments, context),
        Verb::Scan(arguments) => scan::run(arguments, context),
        Verb::Serve(arguments) => serve::run(arguments, context),
        Verb::List => list::run(context),
        Verb::Show(arguments) => show::run(arguments, context),
        Verb::Set(arguments) => set::run(arguments, context),
        Verb::Fail(arguments) => fail::run(arguments, context),
        Verb::Add(arguments) => add::run(arguments, context),
        Verb::Remove(arguments) => remove::run(arguments, context),
        Verb::Replace(arguments) => replace::run(arguments, context),
        Verb::Spare(arguments) => spare::run(arguments, context),
        Verb::Check(arguments) => check::run(arguments, context),
        Verb::Repair(arguments) => repair::run(arguments, context),
        Verb::Pause(arguments) => pause::run(arguments, context),
        Verb::Resume(arguments) => resume::run(arguments, context),
        Verb::Stop(arguments) => stop::run(arguments, context),
        Verb::Erase(arguments) => erase::run(arguments, context),
        Verb::Doctor(arguments) => doctor::run(arguments, context),
        Verb::CopyOut(arguments) => copy_out::run(arguments, context),
        Verb::CopyIn(arguments) => copy_in::run(arguments, context),
        Verb::Explain(arguments) => explain::run(arguments, context),
        Verb::Journal(arguments) => journal::run(arguments, context),
        Verb::Demo(arguments) => demo::run(arguments, context),
        Verb::Simulate(arguments) => simulate::run(arguments, context),
        Verb::Review(arguments) => review::run(arguments, context),
        Verb::Compare(arguments) => compare::run(arguments, context),
        Verb::Plan(arguments) => plan::run(arguments, context),
        Verb::Rehearse(arguments) => rehearse::run(arguments, context),
        Verb::Validate(arguments) => validate::run(arguments, context),
        Verb::Torture(arguments) => torture::run(arguments, context),
        Verb::Completions { shell } => completions::run(*shell),
        Verb::Man { folder } => man::run(folder, context),
    }
}

/// What a command to a server came to.
#[derive(serde::Serialize)]
struct DoneBody<'a> {
    done: &'a str,
    array: Option<&'a ArrayModel>,
}

/// Have the server of an array do something, and tell what came of it.
///
/// # Errors
/// Nobody serves the array, or the server refuses.
pub fn ask(context: &Context, array: &str, command: &Command) -> Outcome {
    let answer = context.servers.must_serve(array)?.ask(command)?;
    tell_done(context, &answer)
}

/// Tell what a server has done.
///
/// # Errors
/// It answered something else.
pub fn tell_done(context: &Context, answer: &Answer) -> Outcome {
    let Answer::Done { text, array } = answer else {
        return Err(crate::exit::Failure::cannot_tell("the server's answer does not fit the question"));
    };
    // It did what it was asked: what state that leaves the array in is for `show` to say.
    let body = DoneBody { done: text, array: array.as_deref() };
    Ok(context.output.answer(Exit::Fine, &body, text))
}

/// A member's name as the server must be told it: a path is made absolute, `slot:N` stays.
///
/// # Errors
/// It names nothing.
pub fn member_name(text: &str) -> Result<String, crate::exit::Failure> {
    if text.starts_with("slot:") {
        return Ok(text.into());
    }
    crate::members::written_spec(text).map(|spec| spec.text)
}
