//! `openraid reshape`: changes the shape of an array while it is served, or says what that would do.

use super::show::{self, Until};
use super::{ask, ask_to_confirm, member_name, Context};
use crate::arguments::ReshapeArguments;
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};
use crate::members::{lasting_spec, NewFiles};

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the server refuses.
pub fn run(arguments: &ReshapeArguments, context: &Context) -> Outcome {
    let mut server = context.servers.must_serve(&arguments.array)?;
    if arguments.cancel {
        let outcome = ask(context, &arguments.array, &Command::CancelReshape { array: arguments.array.clone() })?;
        return if arguments.follow {
            show::follow(context, server, &arguments.array, Until::Idle)
        } else {
            Ok(outcome)
        };
    }
    if let Some(to) = &arguments.array_size {
        let command = |yes| Command::LimitSize { array: arguments.array.clone(), to: to.clone(), yes };
        return ask_to_confirm(context, &mut server, &command(arguments.yes), &command(true));
    }
    let specs = arguments.members.iter().map(|member| lasting_spec(member)).collect::<Result<Vec<_>, _>>()?;
    let files = match arguments.file_size {
        Some(size) => Some(NewFiles::make(&specs, size)?),
        None => None,
    };
    let members = arguments.members.iter().map(|member| member_name(member)).collect::<Result<Vec<_>, _>>()?;
    let command = |yes: bool| Command::Reshape {
        array: arguments.array.clone(),
        members: members.clone(),
        raid_devices: arguments.raid_devices,
        level: arguments.level.clone(),
        chunk: arguments.chunk.clone(),
        layout: arguments.layout.clone(),
        size: arguments.size.clone(),
        plan: arguments.plan,
        overwrite: arguments.yes && arguments.overwrite,
        yes,
    };
    if arguments.plan {
        let ServerAnswer::ReshapePlan(plan) = server.ask(&command(false))? else {
            return Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version"));
        };
        return Ok(context.output.answer(Exit::Fine, &*plan, &plan.text));
    }
    let outcome = ask_to_confirm(context, &mut server, &command(arguments.yes), &command(true))?;
    if let Some(files) = files {
        files.keep();
    }
    if arguments.follow {
        return show::follow(context, server, &arguments.array, Until::Idle);
    }
    Ok(outcome)
}
