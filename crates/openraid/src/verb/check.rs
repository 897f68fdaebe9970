//! `openraid check`: everything is read and compared, nothing is changed.

use serde::Serialize;

use super::show::{self, Until};
use super::{ask, Context};
use crate::arguments::CheckArguments;
use crate::check_history::{CheckHistory, PastCheckModel};
use crate::checks::CheckWord;
use crate::control::Command;
use crate::exit::{Exit, Outcome};
use crate::output::checks::outcome_text;
use crate::quantity::{counted, utc};

/// Do it.
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

#[derive(Serialize)]
struct Body {
    sets: Vec<SetHistory>,
}

/// The checks of an array, or of a span of it.
#[derive(Serialize)]
struct SetHistory {
    name: String,
    uuid: String,
    checks: Vec<PastCheckModel>,
}

fn history(name: &str, context: &Context) -> Outcome {
    let array = show::of(name, context)?;
    let known = CheckHistory::read(&context.registry);
    let (mut sets, mut lines) = (Vec::new(), Vec::new());
    for set in array.sets() {
        let Some(uuid) = &set.uuid else { continue };
        let checks = known.of(uuid).to_vec();
        if checks.is_empty() {
            lines.push(format!("{}: no check or repair is remembered", set.name));
        }
        for past in &checks {
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
        sets.push(SetHistory { name: set.name.clone(), uuid: uuid.clone(), checks });
    }
    Ok(context.output.answer(Exit::Fine, &Body { sets }, &lines.join("\n")))
}

/// Begin a check or repair, and wait for its end where that is wanted.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn begin(context: &Context, name: &str, kind: CheckWord, follow: bool) -> Outcome {
    let command = Command::Check { array: name.into(), kind };
    if !follow {
        return ask(context, name, &command);
    }
    context.servers.must_serve(name)?.ask(&command)?;
    show::follow(context, name, Until::Checked)
}
