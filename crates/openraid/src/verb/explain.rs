//! `openraid explain`: shows the limit of an array, the engine's decisions by reason, and the stories of its requests.

use std::time::Duration;

use super::Context;
use crate::arguments::{ExplainArguments, RequestWord, SwitchWord};
use crate::control::{Command, ControlConnection, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::explain::{body, text, StoriesBody};
use crate::quantity::counted;
use crate::story::{self, StoriesModel};

/// Recording was switched.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct ExplainRecordBody<'a> {
    /// Name of the array.
    array: &'a str,
    /// The result in a sentence.
    done: &'a str,
}

/// Time between two queries for requests that have ended.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(250);

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the request is not recorded.
pub fn run(arguments: &ExplainArguments, context: &Context) -> Outcome {
    let name = arguments.array.as_str();
    let mut server = context.servers.must_serve(name)?;
    if let Some(switch) = arguments.record {
        let answer = server.ask(&Command::Record { on: switch == SwitchWord::On })?;
        let ServerAnswer::Done { text, .. } = answer else { return Err(strange()) };
        return Ok(context.output.answer(Exit::Fine, &ExplainRecordBody { array: name, done: &text }, &text));
    }
    if arguments.follow {
        return follow(&mut server, name, context);
    }
    if arguments.tells_stories() {
        let array = name.to_owned();
        let command = match (arguments.request, arguments.slowest) {
            (Some(RequestWord::Number(number)), _) => Command::Story { array, request: Some(number) },
            (_, Some(count)) => Command::Slowest { array, count: usize::from(count) },
            _ => Command::Story { array, request: None },
        };
        return Ok(print_stories(&stories(&mut server, &command)?, name, context));
    }
    totals(&mut server, name, context)
}

fn strange() -> Failure {
    Failure::cannot_tell("unexpected answer of the server: it may be of another version")
}

fn stories(server: &mut ControlConnection, command: &Command) -> Result<StoriesModel, Failure> {
    match server.ask(command)? {
        ServerAnswer::Stories(stories) => Ok(*stories),
        _ => Err(strange()),
    }
}

/// Prints stories when their requests end, until the server ends or the user stops the program.
fn follow(server: &mut ControlConnection, name: &str, context: &Context) -> Outcome {
    // Requests that ended before are not printed.
    let mut since = stories(server, &Command::Stories { array: name.into(), since: u64::MAX })?.next;
    loop {
        std::thread::sleep(FOLLOW_INTERVAL);
        let found = stories(server, &Command::Stories { array: name.into(), since })?;
        since = found.next;
        if !found.stories.is_empty() || found.lost_steps > 0 {
            print_stories(&found, name, context);
        }
    }
}

fn print_stories(found: &StoriesModel, name: &str, context: &Context) -> Exit {
    let StoriesModel { stories, left_out, lost_steps, .. } = found;
    let mut texts: Vec<String> = stories.iter().map(story::text).collect();
    if *left_out > 0 {
        texts.push(format!("(left out: {} that ended meanwhile)", counted(*left_out, "story", "stories")));
    }
    if *lost_steps > 0 {
        texts.push(format!(
            "({} not recorded, because requests came too fast: stories are missing)",
            counted(*lost_steps, "step was", "steps were")
        ));
    }
    let body = StoriesBody { array: name, stories, left_out: *left_out, lost_steps: *lost_steps };
    context.output.answer(Exit::Fine, &body, &texts.join("\n"))
}

/// The limit of the array, and totals by reason.
fn totals(server: &mut ControlConnection, name: &str, context: &Context) -> Outcome {
    let array = server.show(name)?;
    let ServerAnswer::Limit(limit) = server.ask(&Command::Limit { array: name.into() })? else { return Err(strange()) };
    let body = body(&array, &limit);
    let text = text(&array, &body);
    Ok(context.output.answer(array.exit(), &body, &text))
}
