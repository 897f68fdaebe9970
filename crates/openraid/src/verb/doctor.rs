//! `openraid doctor`: why each member is or is not usable, and the array tried out with all writes kept in memory.

use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_runtime::service::Nesting;
use openraid_sys::Use;
use openraid_units::Bytes;
use serde::Serialize;

use super::Context;
use crate::arguments::DoctorArguments;
use crate::exit::{Exit, Failure, Outcome};
use crate::members::{named, open_some, options};
use crate::model::ArrayModel;
use crate::output::array::{health_text, survives_text, title};
use crate::output::members::{line, set_text, set_verdict, stranger, unreadable, MemberVerdict, SetVerdict};
use crate::quantity::human;
use crate::server::rates::Rates;
use crate::server::view;
use crate::sets;
use crate::trial::Trial;

/// Read in one go.
const READ_BYTES: u64 = 1 << 20;

#[derive(Serialize)]
struct Body {
    sets: Vec<SetVerdict>,
    others: Vec<MemberVerdict>,
    tried: Vec<Tried>,
    not_started: Vec<String>,
    nothing_written: bool,
}

#[derive(Serialize)]
struct Tried {
    array: ArrayModel,
    by_force: bool,
    read_bytes: u64,
    read_error: Option<String>,
}

/// Do it.
///
/// # Errors
/// A name that names nothing.
pub fn run(arguments: &DoctorArguments, context: &Context) -> Outcome {
    let specs = named(&arguments.members, &context.registry)?;
    let (opened, failed) = open_some(&specs, options(Use::ReadExclusive));
    let probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    let (plans, strangers) = sets::plan(&probed, false);
    let sets: Vec<SetVerdict> = plans.iter().map(|set| set_verdict(set, &probed)).collect();
    let mut others: Vec<MemberVerdict> = strangers.iter().map(|place| stranger(&probed[*place])).collect();
    others.extend(failed.iter().map(|(name, failure)| unreadable(name, &failure.text)));
    let mut lines = vec!["members".to_owned()];
    lines.extend(sets.iter().map(set_text));
    lines.extend(others.iter().map(line));
    let (mut tried, mut not_started) = try_out(opened, false, arguments.read)?;
    let of_sets = sets.iter().map(super::scan::set_exit).max().unwrap_or(Exit::Refused);
    let mut exit = verdict(&tried).max(of_sets);
    lines.push(String::new());
    if tried.is_empty() {
        // Those that could not be opened a moment ago cost their time limit again.
        let again: Vec<_> = probed.iter().map(|member| member.spec.clone()).collect();
        let (opened, _) = open_some(&again, options(Use::ReadExclusive));
        (tried, not_started) = try_out(opened, true, arguments.read)?;
        lines.push(match (tried.is_empty(), not_started.is_empty()) {
            (true, true) => "tried in memory: no array starts, not even by force".into(),
            (true, false) => "tried in memory: no array starts, not even by force:".into(),
            (false, _) => "tried in memory: no array starts by itself; by force this one would".into(),
        });
        exit = exit.max(of_sets);
    } else {
        lines.push("tried in memory".into());
    }
    if !not_started.is_empty() {
        exit = Exit::Failed;
    }
    lines.extend(tried.iter().map(tried_text));
    lines.extend(not_started.iter().map(|why| format!("  not started: {why}")));
    lines.push("nothing was written to any member".into());
    if tried.is_empty() && probed.is_empty() && !failed.is_empty() {
        exit = Exit::CannotTell;
    }
    let body = Body { sets, others, tried, not_started, nothing_written: true };
    Ok(context.output.answer(exit, &body, &lines.join("\n")))
}

fn verdict(tried: &[Tried]) -> Exit {
    let of = |tried: &Tried| {
        if tried.read_error.is_some() {
            Exit::Failed
        } else {
            tried.array.exit()
        }
    };
    tried.iter().map(of).max().unwrap_or(Exit::Fine)
}

/// What starts, and why the rest does not although members make it.
fn try_out(
    opened: Vec<(OpenedMember, ProbedMember)>,
    force: bool,
    read: Bytes,
) -> Result<(Vec<Tried>, Vec<String>), Failure> {
    let trial = Trial::start(opened, force, Nesting::Follow)?;
    let status = trial.handle().status().map_err(Failure::cannot_tell)?;
    let mut tried = Vec::new();
    for served in trial.served() {
        let Some(array) = view::model(&status, &served, &Rates::default()) else { continue };
        let want = read.get().min(array.size_bytes);
        let mut buffer = vec![0; usize::try_from(READ_BYTES.min(want)).expect("1 MiB")];
        let mut done = 0;
        let mut error = None;
        while done < want && error.is_none() {
            let len = usize::try_from(READ_BYTES.min(want - done)).expect("1 MiB");
            match trial.handle().read(served.array, done, &mut buffer[..len]) {
                Ok(()) => done += len as u64,
                Err(why) => error = Some(format!("at byte {done}: {why}")),
            }
        }
        tried.push(Tried { array, by_force: force, read_bytes: done, read_error: error });
    }
    Ok((tried, trial.refused().into_iter().map(|failure| failure.text).collect()))
}

fn tried_text(tried: &Tried) -> String {
    let array = &tried.array;
    let mut lines = vec![
        format!("  {}: {}, {}", array.name, title(array), human(Bytes(array.size_bytes))),
        format!("    it starts {}; it survives {}", health_text(array.health), survives_text(array.survives)),
    ];
    if let Some(forced) = &array.forced {
        lines.push(format!("    force would risk: {}", forced.trim_end_matches([';', ' '])));
    } else if tried.by_force {
        lines.push("    force would start it as if it had been stopped cleanly".into());
    }
    lines.push(match &tried.read_error {
        None => format!("    the first {} can be read", human(Bytes(tried.read_bytes))),
        Some(error) => format!("    reading failed {error}"),
    });
    let force = if tried.by_force { " --force" } else { "" };
    let serve = format!("openraid serve {}{force}", array.name);
    if array.health == crate::model::HealthWord::Degraded {
        lines.push(format!(
            "    next: {serve}, then a new member for each that is missing: openraid add {} NEW",
            array.name
        ));
    } else if tried.by_force {
        lines.push(format!("    next: {serve}"));
    }
    lines.join("\n")
}
