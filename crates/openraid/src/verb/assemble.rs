//! `openraid assemble`: finds the arrays that members form, records them, and passes them to a running server.

use openraid_core::array::assemble::AssembleOptions;
use openraid_runtime::member::{MemberSpec, ProbedMember};
use openraid_runtime::service::Nesting;
use openraid_status::shell_quoting::command;
use openraid_status::VerdictWord;
use openraid_sys::Use;
use serde::Serialize;

use super::Context;
use crate::arguments::AssembleArguments;
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::ReadTrial;
use crate::kept_settings::KeptSettings;
use crate::members::array_locks::lacking_held;
use crate::members::{are_in_use, in_folder, named, none_opened, open_some, options, word_of};
use crate::on_disk::sets;
use crate::output::verdicts::{line, set_text, set_verdict, stranger, unreadable, MemberVerdict, SetVerdict};
use crate::registry::RegisteredArray;
use crate::server::array_model::nested_level;
use crate::words::level_word;

/// The arrays that were found and recorded.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AssembleBody {
    /// Each set, and whether it would start.
    sets: Vec<SetVerdict>,
    /// Members that belong to none of them.
    others: Vec<MemberVerdict>,
    /// The arrays that the registry has now.
    arrays: Vec<RegisteredArray>,
    /// The server that took the arrays over and serves them; null if no server runs.
    handed_over: Option<String>,
}

/// An array whose record was removed.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ForgottenBody<'a> {
    /// Name of the array that was removed from the registry.
    forgotten: &'a str,
}

/// Runs the verb.
///
/// # Errors
/// No array starts, or a name does not exist.
pub fn run(arguments: &AssembleArguments, context: &Context) -> Outcome {
    if arguments.forget {
        let [name] = arguments.members.as_slice() else {
            return Err(Failure::usage("name one array to forget"));
        };
        return forget(name, context);
    }
    let specs = specs(arguments, context)?;
    let (opened, failed) = open_some(&specs, options(Use::ReadExclusive));
    let busy: Vec<Failure> = lacking_held(&specs, &opened, &failed).into_iter().map(|(_, failure)| failure).collect();
    if !busy.is_empty() {
        return Err(Failure::joined(&busy, Exit::Refused));
    }
    let probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    let (plans, strangers) = sets::plan(&probed, arguments.force);
    let verdicts: Vec<SetVerdict> = plans.iter().map(|set| set_verdict(set, &probed)).collect();
    // Files of a folder that are not members are not reported.
    let given = arguments.scan.is_empty();
    let mut others: Vec<MemberVerdict> = strangers
        .iter()
        .map(|place| stranger(&probed[*place]))
        .filter(|member| given || member.verdict == VerdictWord::Refused)
        .collect();
    if given {
        others.extend(failed.iter().map(|(name, failure)| unreadable(name, &failure.text())));
    }
    let mut none = opened.is_empty().then(|| none_opened("", &arguments.members, &specs, &failed, &context.registry));
    if let Some(failure) = none.as_mut().filter(|_| are_in_use(&failed)) {
        failure.exit = Exit::Refused;
    }
    let mut lines: Vec<String> = verdicts.iter().map(set_text).collect();
    // If no file could be opened, the reason has the same lines.
    lines.extend(others.iter().filter(|_| none.is_none()).map(line));
    // The contents of a journal concern only the server of the array. Nested arrays are found only when their spans
    // run, so everything is tried in memory.
    let trial = ReadTrial::start_as(
        opened,
        AssembleOptions { force: arguments.force, journal_lost: true, reads_only: false },
        Nesting::Follow,
    )?;
    let mut arrays = entries(&trial, &plans, &probed);
    for array in &mut arrays {
        let name = context.registry.free_name(array);
        if name != array.name {
            lines.push(format!("another array is remembered as {}; this array is remembered as {name}", array.name));
            array.name = name;
        }
    }
    let exit = verdicts.iter().map(super::scan::set_exit).max().unwrap_or(Exit::Refused);
    if arrays.is_empty() {
        let body = AssembleBody { sets: verdicts, others, arrays, handed_over: None };
        let why = none.unwrap_or_else(|| trial.why_nothing());
        lines.push(why.text());
        return Ok(context.output.answer(why.exit, &body, &lines.join("\n")));
    }
    drop(trial);
    let is_split = verdicts.iter().any(|set| set.halves.is_some());
    let handed_over = finish(arguments, context, &arrays, is_split, &mut lines)?;
    let body = AssembleBody { sets: verdicts, others, arrays, handed_over };
    Ok(context.output.answer(exit, &body, &lines.join("\n")))
}

fn specs(arguments: &AssembleArguments, context: &Context) -> Result<Vec<MemberSpec>, Failure> {
    let mut specs = named(&arguments.members, &context.registry)?;
    for folder in &arguments.scan {
        specs.extend(in_folder(folder)?);
    }
    if specs.is_empty() {
        return Err(Failure::usage("no members were named; name them, or a folder with --scan"));
    }
    Ok(specs)
}

/// The registry entries of all arrays that started.
fn entries(trial: &ReadTrial, plans: &[sets::SetPlan], probed: &[ProbedMember]) -> Vec<RegisteredArray> {
    let members_of = |uuid| -> Vec<String> {
        let set = plans.iter().filter(|set| set.uuid == uuid).flat_map(|set| &set.members);
        set.map(|place| probed[*place].spec.text.clone()).collect()
    };
    let entry = |array: &openraid_runtime::service::StartedArray| {
        let (level, members) = match array.spans.first() {
            None => (level_word(&array.superblock), members_of(array.superblock.set_uuid)),
            Some(span) => {
                let members = array.spans.iter().flat_map(|span| members_of(span.superblock.set_uuid));
                (nested_level(&span.superblock), members.collect())
            }
        };
        let uuid = Some(array.superblock.set_uuid.to_string());
        RegisteredArray {
            name: sets::array_name(&array.superblock),
            uuid,
            level,
            members,
            kept: KeptSettings::default(),
        }
    };
    trial.started.arrays.iter().map(entry).collect()
}

/// Records the arrays. If a server runs, it serves them.
fn finish(
    arguments: &AssembleArguments,
    context: &Context,
    arrays: &[RegisteredArray],
    is_split: bool,
    lines: &mut Vec<String>,
) -> Result<Option<String>, Failure> {
    for entry in arrays {
        if let Err(failure) = context.registry.remember(entry.clone()) {
            context.output.warn(&failure.text());
        }
    }
    let names: Vec<&str> = arrays.iter().map(|entry| word_of(&entry.name, entry.uuid.as_deref())).collect();
    // The arrays are recorded in any case. A server that does not answer cannot serve them.
    let mut servers = match arguments.no_serve {
        true => Vec::new(),
        false => context.servers.connect().unwrap_or_else(|failure| {
            context.output.warn(&format!("{}; the arrays are remembered, and no server has them yet", failure.text()));
            Vec::new()
        }),
    };
    if servers.len() > 1 {
        lines.push("several servers run: say with --control which one is to serve the array".into());
    }
    let [server] = servers.as_mut_slice() else {
        lines.push(match is_split {
            true => "remembered; of a split array name the half to serve, as above".into(),
            false => format!("remembered; serve with: {}", command("serve", names)),
        });
        return Ok(None);
    };
    let members = arrays.iter().flat_map(|entry| entry.members.clone()).collect();
    match server.ask(&Command::Assemble { members, force: arguments.force, journal_lost: arguments.journal_lost })? {
        ServerAnswer::Done { text, .. } => {
            lines.push(text.clone());
            Ok(Some(text))
        }
        _ => Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
    }
}

/// Removes an array from the registry.
///
/// # Errors
/// The registry does not have the array, or cannot be written.
pub fn forget(name: &str, context: &Context) -> Outcome {
    if !context.registry.forget(name)? {
        return Err(Failure::refused(format!("no array named {name:?} is remembered; see `openraid list`")));
    }
    let text = format!("{name} is forgotten; its members are unchanged");
    Ok(context.output.answer(Exit::Fine, &ForgottenBody { forgotten: name }, &text))
}
