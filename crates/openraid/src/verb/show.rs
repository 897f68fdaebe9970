//! `openraid show`: shows one array, from its server, or from its members if no server serves it.

use std::thread;
use std::time::Duration;

use openraid_runtime::service::Nesting;
use openraid_status::shell_quoting::command;
use openraid_sys::Use;
use serde::Serialize;

use super::Context;
use crate::alarms::alarm_states::Book;
use crate::alarms::{conditions, AlarmStore};
use crate::arguments::ShowArguments;
use crate::control::{offline_text, ControlConnection};
use crate::failure::{unknown_array, Exit, Failure, Outcome};
use crate::history::last_checks::Checks;
use crate::in_process::trial::ReadTrial;
use crate::members::{self, none_opened, open_some, options};
use crate::model::{ArrayModel, TaskModel, TaskWord};
use crate::output::array::{health_text, mdstat, task_line, text};
use crate::output::checks::summary;
use crate::output::model_sentences::add_texts;
use crate::output::shape::set_recorded;
use crate::output::{self, progress::WorkProgress};
use crate::server::array_model;
use crate::server::check_results::add_checks;
use crate::server::server_alarms::subject;
use crate::server::task_rates::TaskRates;

/// Time between two queries for a task that is followed.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// An array.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ShowBody<'a> {
    /// Does a server serve the array? Otherwise this is the state on its members.
    served: bool,
    /// The state of the array.
    array: &'a ArrayModel,
}

/// Runs the verb.
///
/// # Errors
/// Neither the registry nor a server knows the array, or its members form no array.
pub fn run(arguments: &ShowArguments, context: &Context) -> Outcome {
    if let Some(seconds) = arguments.wait {
        context.servers.wait_for(&arguments.array, Duration::from_secs(seconds))?;
    }
    if arguments.follow {
        let server = context.servers.must_serve(&arguments.array)?;
        return follow(context, server, &arguments.array, Until::Idle);
    }
    let (array, served) = match context.servers.serving(&arguments.array)? {
        Some(mut server) => (server.show(&arguments.array)?, true),
        None => {
            let raw = context.servers.raw_drives(&arguments.array)?;
            if !raw.is_empty() {
                return Ok(raw_drives(context, arguments, &raw));
            }
            match unserved(&arguments.array, context) {
                Ok(array) => (array, false),
                Err(why) => return offline(&arguments.array, context, why),
            }
        }
    };
    let mut human = if arguments.mdstat { mdstat(&[&array]) } else { text(&array) };
    if !served && !arguments.mdstat {
        human.push_str(&format!(
            "\n  offline (read from the members' metadata). Start it with: {}",
            command("serve", [members::word_of(&array.name, array.uuid.as_deref())])
        ));
    }
    Ok(context.output.answer(array.exit(), &ShowBody { served, array: &array }, &human))
}

/// Prints an array that a server should serve, and whose members form no array now.
///
/// # Errors
/// No server should serve it.
fn offline(name: &str, context: &Context, why: Failure) -> Outcome {
    let Some(array) = context.servers.offline(name)? else { return Err(why) };
    Ok(context.output.answer(array.exit(), &ShowBody { served: false, array: &array }, &offline_text(&array)))
}

/// An array from its server, or from its members.
///
/// # Errors
/// No server has the array, and its members form no array.
pub fn of(name: &str, context: &Context) -> Result<ArrayModel, Failure> {
    match context.servers.serving(name)? {
        Some(mut server) => server.show(name),
        None => unserved(name, context),
    }
}

/// Several raw drives under one name.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DrivesBody<'a> {
    /// Does a server serve the drives?
    served: bool,
    /// Always null: several raw drives are no array.
    array: Option<&'a ArrayModel>,
    /// The state of each drive, as an array of level `jbod`.
    arrays: &'a [ArrayModel],
}

/// Prints raw drives that are served under one name, in sequence.
fn raw_drives(context: &Context, arguments: &ShowArguments, raw: &[ArrayModel]) -> Exit {
    let human = if arguments.mdstat {
        mdstat(&raw.iter().collect::<Vec<_>>())
    } else {
        raw.iter().map(text).collect::<Vec<_>>().join("\n")
    };
    let exit = raw.iter().map(ArrayModel::exit).max().unwrap_or(Exit::Fine);
    context.output.answer(exit, &DrivesBody { served: true, array: None, arrays: raw }, &human)
}

/// The state that an array would have that is not served: it is started in memory, examined and dropped.
fn unserved(name: &str, context: &Context) -> Result<ArrayModel, Failure> {
    let Some(entry) = context.registry.find(name)? else {
        return Err(unknown_array(name));
    };
    if entry.uuid.is_none() {
        return Err(Failure::cannot_tell(format!(
            "{name} is not served; start it with `{}`",
            command("serve", [name])
        )));
    }
    let specs = members::named(&entry.members, &context.registry)?;
    let (opened, failed) = open_some(&specs, options(Use::ReadExclusive));
    if opened.is_empty() {
        let whose = format!(" of {name}");
        return Err(none_opened(&whose, &[name.into()], &specs, &failed, &context.registry));
    }
    for (_, failure) in &failed {
        context.output.warn(&failure.text());
    }
    let superblocks: Vec<_> = opened.iter().filter_map(|(_, probed)| probed.look.superblock.clone()).collect();
    let trial = ReadTrial::start(opened, false, Nesting::Follow)?;
    let served = trial.only().map_err(|failure| failure.exiting(Exit::Failed))?;
    let status = trial.handle().status().map_err(Failure::cannot_tell)?;
    let array = array_model::model(&status, &served, &TaskRates::default());
    let mut array = array.ok_or_else(|| Failure::cannot_tell("the array does not run"))?;
    add_checks(&mut array, &Checks::read(&context.registry));
    // No background work runs here, so no task is shown, and the array is not marked active.
    (array.task, array.active) = (None, false);
    set_recorded(&mut array, superblocks.iter());
    for span in &mut array.spans {
        (span.task, span.active) = (None, false);
    }
    // The alarms that a server would find at its start. Nothing is stored.
    let mut book: Book = AlarmStore::at(context.registry.folder_beside("alarms")).read().unwrap_or_default();
    let subject = subject(&array);
    book.observe(&subject, openraid_sys::clock::wall_seconds(), &conditions::of_array(&array));
    array.alarms = book.of(&subject);
    add_texts(&mut array);
    Ok(array)
}

/// The end for which the user waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// The end of all tasks.
    Idle,
    /// The end of a check or repair, with its result.
    Checked,
}

/// Follows the tasks of an array to their end.
///
/// # Errors
/// The array is stopped, or its server ends, before the tasks have ended.
pub fn follow(context: &Context, mut server: ControlConnection, name: &str, until: Until) -> Outcome {
    let mut last = String::new();
    let mut bar: Option<(TaskWord, WorkProgress)> = None;
    let mut array = match until {
        Until::Idle => server.show(name)?,
        Until::Checked => server.show(name).map_err(|why| unfinished(name, "check", &why))?,
    };
    loop {
        let is_followed = |task: &TaskModel| until == Until::Idle || task.kind.is_check();
        let Some((_, task)) = array.tasks().find(|(_, task)| is_followed(task)) else { break };
        if context.output.json {
            context.output.document(array.exit(), &ShowBody { served: true, array: &array });
        } else if output::is_error_terminal() {
            show_bar(&mut bar, name, task);
        } else {
            // If the output is not a terminal, one line is printed for each whole percent.
            let line = format!("{} {} %", task.kind.text(), task.percent());
            if line != last {
                context.output.say(&format!("{name}: {}", task_line(task)));
                last = line;
            }
        }
        thread::sleep(FOLLOW_INTERVAL);
        array = again(&mut server, &array).map_err(|why| unfinished(name, task.kind.text(), &why))?;
    }
    drop(bar);
    Ok(finished(context, &array, until))
}

/// The array as it is now, by whatever name.
fn again(server: &mut ControlConnection, before: &ArrayModel) -> Result<ArrayModel, Failure> {
    let same = |array: &ArrayModel| array.uuid.is_some() && array.uuid == before.uuid;
    server.show(&before.name).or_else(|why| server.list()?.into_iter().find(same).ok_or(why))
}

/// The end of what was followed was not met.
pub fn unfinished(name: &str, what: &str, why: &Failure) -> Failure {
    let text = format!("{name}: the {what} has not come to its end here: {}", why.text());
    Failure::new(Exit::Aborted, text)
}

fn show_bar(bar: &mut Option<(TaskWord, WorkProgress)>, name: &str, task: &TaskModel) {
    let new = bar.as_ref().is_none_or(|(kind, _)| *kind != task.kind);
    if new {
        *bar = Some((task.kind, WorkProgress::new(&format!("{name}: {}", task.kind.text()), task.total_bytes)));
    }
    if let Some((_, bar)) = bar {
        bar.show(task.done_bytes, task.rate, task.eta_seconds);
        if task.paused {
            bar.say("paused");
        }
    }
}

fn finished(context: &Context, array: &ArrayModel, until: Until) -> Exit {
    let mut text = format!("{}: {}, ", array.name, health_text(array.health));
    match array.tasks().next() {
        None => text.push_str("idle"),
        Some((_, task)) => text.push_str(&task_line(task)),
    }
    if let Some(found) = summary(array) {
        text.push_str(&format!(". Last check: {found}"));
    }
    let exit = match until {
        Until::Idle => array.exit(),
        Until::Checked => array.check_exit(),
    };
    context.output.answer(exit, &ShowBody { served: true, array }, &text)
}
