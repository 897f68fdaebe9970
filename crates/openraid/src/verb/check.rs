//! `openraid check`: reads and compares everything, and changes nothing.

use openraid_status::care::{PatrolModel, SetHistoryModel};
use serde::Serialize;

use super::show::{self, Until};
use super::{ask, Context};
use crate::arguments::CheckArguments;
use crate::control::Command;
use crate::failure::{Exit, Outcome};
use crate::history::last_checks::CheckWord;
use crate::history::past_checks;
use crate::history::patrols;
use crate::output::checks::outcome_text;
use crate::quantity::{counted, utc};

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &CheckArguments, context: &Context) -> Outcome {
    if arguments.history {
        return history(&arguments.array, context);
    }
    let array = arguments.array.clone();
    if arguments.stop {
        return ask(context, &arguments.array, &Command::StopCheck { array });
    }
    begin(context, &array, CheckWord::Check, arguments.follow)
}

/// Past checks and patrol reads.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct CheckBody {
    /// Checks of the set; of each span for a nested array.
    sets: Vec<SetHistoryModel>,
    /// Patrol reads of the array's drives, the newest last.
    patrols: Vec<PatrolModel>,
}

fn history(name: &str, context: &Context) -> Outcome {
    let array = show::of(name, context)?;
    let sets = past_checks::of_array(&array, &context.registry);
    let mut lines = Vec::new();
    for SetHistoryModel { uuid, checks, .. } in &sets {
        let Some(set) = array.sets().into_iter().find(|set| set.uuid.as_ref() == Some(uuid)) else { continue };
        if checks.is_empty() {
            lines.push(format!("{}: no check or repair is remembered", set.name));
        }
        for past in checks {
            let (check, at) = (&past.check, utc(past.check.at_seconds));
            lines.push(format!("{}: {at}  {}: {}", set.name, check.kind.text(), outcome_text(check, set)));
            for member in past.members.iter().filter(|member| member.mismatches > 0 || member.media_errors > 0) {
                lines.push(format!(
                    "  slot {} ({}): {}, {} repaired since the start of its server",
                    member.slot,
                    member.member.as_deref().unwrap_or("missing"),
                    counted(member.mismatches, "mismatched sector", "mismatched sectors"),
                    counted(member.media_errors.into(), "defect", "defects")
                ));
            }
        }
    }
    let patrols = array.uuid.as_ref().map(|uuid| patrols::of(uuid, &context.registry)).unwrap_or_default();
    lines.extend(patrols.iter().map(|patrol| patrol_text(&array.name, patrol)));
    Ok(context.output.answer(Exit::Fine, &CheckBody { sets, patrols }, &lines.join("\n")))
}

/// A patrol read, as text.
fn patrol_text(name: &str, patrol: &PatrolModel) -> String {
    let end = if patrol.ended_seconds.is_some() { "" } else { ", not read to the end" };
    let left_out = patrol.members.iter().filter(|member| member.left_out.is_some()).count() as u64;
    let left_out = match left_out {
        0 => String::new(),
        count => format!(", {} left out", counted(count, "member", "members")),
    };
    let mut lines = vec![format!("{name}: {}  patrol read{end}{left_out}", utc(patrol.at_seconds))];
    for member in &patrol.members {
        if let Some(why) = &member.left_out {
            lines.push(format!("  {}: left out: {why}", member.member));
            continue;
        }
        let errors = counted(member.errors, "place", "places");
        let first = member.first_error_bytes.map_or_else(String::new, |at| format!(", the first at byte {at}"));
        let why = member.trouble.as_ref().map_or_else(String::new, |why| format!("; {why}"));
        lines.push(format!("  {}: {} bytes, {errors} unreadable{first}{why}", member.member, member.read_bytes));
    }
    lines.join("\n")
}

/// Begins a check or repair. With `follow`, waits for its end.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn begin(context: &Context, name: &str, kind: CheckWord, follow: bool) -> Outcome {
    let command = Command::Check { array: name.into(), kind };
    if !follow {
        return ask(context, name, &command);
    }
    let mut server = context.servers.must_serve(name)?;
    server.ask(&command).map_err(|why| match why.exit {
        // The check may have begun: its end is not known.
        Exit::CannotTell => show::unfinished(name, kind.text(), &why),
        _ => why,
    })?;
    show::follow(context, server, name, Until::Checked)
}
