//! `openraid doctor`: says for each member why it can or cannot be used, and tries to start the array with all writes
//! kept in memory.

mod served;

use openraid_format::Uuid;
use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_runtime::service::Nesting;
use openraid_status::shell_quoting::{command, command_with};
use openraid_status::VerdictWord;
use openraid_sys::Use;
use openraid_units::Bytes;
use serde::Serialize;

use self::served::ServedElsewhere;
use super::Context;
use crate::arguments::DoctorArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::ReadTrial;
use crate::members::array_locks::busy_arrays;
use crate::members::{exit_of_none, named, open_some, options, word_of};
use crate::model::{ArrayModel, HealthWord, StateWord};
use crate::on_disk::sets;
use crate::output::array::{health_text, survives_text, title, unsynced_text};
use crate::output::shape;
use crate::output::verdicts::{line, set_text, set_verdict, stranger, unreadable, MemberVerdict, SetVerdict};
use crate::quantity::human;
use crate::server::array_model;
use crate::server::task_rates::TaskRates;

/// Number of bytes that are read at once.
const READ_BYTES: u64 = 1 << 20;

/// The members, and the result of the attempts to start their arrays.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DoctorBody {
    /// Each set, and whether it would start.
    sets: Vec<SetVerdict>,
    /// Members that belong to none of them.
    others: Vec<MemberVerdict>,
    /// Arrays that a server serves without some of these members. Their start is not tried.
    served: Vec<ServedElsewhere>,
    /// Arrays that were started as a test and read, without a write.
    tried: Vec<TriedArray>,
    /// Why the other sets were not started, a sentence each.
    not_started: Vec<String>,
    /// File systems without enough room for the sparse members on them, a sentence each.
    short_of_room: Vec<String>,
    /// Was nothing written? Always true.
    nothing_written: bool,
}

/// An array that was started to examine it.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct TriedArray {
    /// The array, as it would be served.
    array: ArrayModel,
    /// Did the start as a test need force?
    by_force: bool,
    /// Bytes that were read without an error.
    read_bytes: u64,
    /// The first error of these reads, if there was one.
    read_error: Option<String>,
}

/// Runs the verb.
///
/// # Errors
/// A name does not exist.
pub fn run(arguments: &DoctorArguments, context: &Context) -> Outcome {
    let specs = named(&arguments.members, &context.registry)?;
    let (mut opened, mut failed) = open_some(&specs, options(Use::ReadExclusive));
    let mut probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    // Without the members that a server uses, half of a split mirror would look like a degraded array.
    let served = ServedElsewhere::find(&probed, context);
    for array in &served {
        let used = array.look_at_used();
        failed.retain(|(name, _)| !used.iter().any(|member| member.spec.text == *name));
        probed.extend(used);
        opened.retain(|(member, _)| !array.leaves(&member.spec.text));
    }
    let (_locks, busy) = busy_arrays(&specs, &opened, &failed, &context.registry);
    let is_busy = |member: &ProbedMember| {
        let set = member.look.superblock.as_ref().map(|superblock| superblock.set_uuid);
        busy.iter().any(|(uuid, _)| Some(*uuid) == set)
    };
    opened.retain(|(_, probed)| !is_busy(probed));
    let (plans, strangers) = sets::plan(&probed, false);
    let mut sets: Vec<SetVerdict> = plans.iter().map(|set| set_verdict(set, &probed)).collect();
    sets.iter_mut().for_each(|set| refuse_busy(set, &busy));
    let mut others: Vec<MemberVerdict> = strangers.iter().map(|place| stranger(&probed[*place])).collect();
    others.extend(failed.iter().map(|(name, failure)| unreadable(name, &failure.text())));
    let mut lines = vec!["members".to_owned()];
    lines.extend(sets.iter().map(set_text));
    lines.extend(others.iter().map(line));
    let to_try: Vec<_> = opened.iter().map(|(member, _)| member.spec.clone()).collect();
    let (mut tried, mut not_started) = match to_try.is_empty() {
        true => Default::default(),
        false => try_out(opened, false, arguments.read)?,
    };
    let of_sets = sets.iter().map(super::scan::set_exit).max().unwrap_or(Exit::Refused);
    let unreadable = sets.iter().any(|set| set.unreadable_bytes > 0);
    let of_sets = if unreadable { of_sets.max(Exit::Failed) } else { of_sets };
    let mut exit = verdict(&tried).max(of_sets);
    lines.push(String::new());
    if probed.is_empty() {
        lines.push(unopened_text(arguments, context));
    } else if to_try.is_empty() {
        lines.extend((!served.is_empty()).then(|| "next".into()));
    } else if tried.is_empty() {
        // If a member could not be opened before, another attempt would again take its whole time limit.
        let (opened, _) = open_some(&to_try, options(Use::ReadExclusive));
        (tried, not_started) = try_out(opened, true, arguments.read)?;
        lines.push(match (tried.is_empty(), not_started.is_empty()) {
            (true, true) => "tried in memory: no array starts, not even by force".into(),
            (true, false) => "tried in memory: no array starts, not even by force:".into(),
            (false, _) => "tried in memory: the array starts only with --force".into(),
        });
        exit = exit.max(of_sets);
    } else {
        lines.push("tried in memory".into());
    }
    if !not_started.is_empty() {
        exit = Exit::Failed;
    }
    tried.iter_mut().for_each(|tried| set_change(tried, &probed));
    lines.extend(tried.iter().map(|tried| tried_text(tried, &sets, &named_to_serve(&tried.array, context))));
    lines.extend(not_started.iter().map(|why| format!("  not started: {why}")));
    lines.extend(served.iter().map(|array| array.text(&sets)));
    let short_of_room =
        crate::members::lack_of_room::short_of_room(probed.iter().map(|member| member.spec.text.as_str()));
    lines.extend(short_of_room.iter().map(|text| format!("  room: {text}")));
    lines.push("nothing was written to any member".into());
    if tried.is_empty() && probed.is_empty() && !failed.is_empty() {
        exit = exit_of_none(&arguments.members, &specs, &context.registry);
    }
    let body = DoctorBody { sets, others, served, tried, not_started, short_of_room, nothing_written: true };
    Ok(context.output.answer(exit, &body, &lines.join("\n")))
}

/// The change of shape as the members record it.
fn set_change(tried: &mut TriedArray, probed: &[ProbedMember]) {
    shape::set_recorded(&mut tried.array, probed.iter().filter_map(|member| member.look.superblock.as_ref()));
}

/// An array that another program has, or a member of it, does not start, whichever of its members are there.
fn refuse_busy(set: &mut SetVerdict, busy: &[(Uuid, Failure)]) {
    if let Some((_, failure)) = busy.iter().find(|(uuid, _)| uuid.to_string() == set.uuid) {
        (set.starts, set.problem) = (false, Some(failure.text()));
    }
}

/// The text if no member could be opened and nothing was tried. A server may hold the members.
fn unopened_text(arguments: &DoctorArguments, context: &Context) -> String {
    let is_served = |name: &&String| matches!(context.servers.serving(name), Ok(Some(_)));
    let served: Vec<String> = arguments.members.iter().filter(is_served).map(|name| command("show", [name])).collect();
    if served.is_empty() {
        return "nothing was tried: no member could be opened".into();
    }
    format!("nothing was tried: a server has the members; it shows their state: {}", served.join(", "))
}

fn verdict(tried: &[TriedArray]) -> Exit {
    let of = |tried: &TriedArray| {
        if tried.read_error.is_some() {
            Exit::Failed
        } else {
            tried.array.exit()
        }
    };
    tried.iter().map(of).max().unwrap_or(Exit::Fine)
}

/// The arrays that start, and the reasons why others do not start although their members are there.
fn try_out(
    opened: Vec<(OpenedMember, ProbedMember)>,
    force: bool,
    read: Bytes,
) -> Result<(Vec<TriedArray>, Vec<String>), Failure> {
    let trial = ReadTrial::start(opened, force, Nesting::Follow)?;
    let status = trial.handle().status().map_err(Failure::cannot_tell)?;
    let mut tried = Vec::new();
    for served in trial.served() {
        let Some(array) = array_model::model(&status, &served, &TaskRates::default()) else { continue };
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
        tried.push(TriedArray { array, by_force: force, read_bytes: done, read_error: error });
    }
    Ok((tried, trial.refused().into_iter().map(|failure| failure.text()).collect()))
}

/// The argument that `serve` needs for this array: its name if its members are at the paths in the registry, otherwise
/// the paths.
fn named_to_serve(array: &ArrayModel, context: &Context) -> Vec<String> {
    let members = array.sets().into_iter().flat_map(|set| &set.members).filter_map(|member| member.member.clone());
    let members: Vec<String> = members.collect();
    let known = context.registry.find(&array.name).ok().flatten();
    let is_known = known.is_some_and(|entry| members.iter().all(|member| entry.members.contains(member)));
    if is_known {
        vec![word_of(&array.name, array.uuid.as_deref()).to_owned()]
    } else {
        members
    }
}

fn tried_text(tried: &TriedArray, sets: &[SetVerdict], to_serve: &[String]) -> String {
    let array = &tried.array;
    let unsynced = if array.is_synced() { String::new() } else { format!(", {}", unsynced_text(array)) };
    let mut lines = vec![
        format!("  {}: {}, {}", array.name, title(array), human(Bytes(array.size_bytes))),
        format!("    it starts {}{unsynced}; it survives {}", health_text(array.health), survives_text(array.survives)),
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
    for change in array.sets().into_iter().filter_map(|set| set.shape.as_ref()) {
        lines.extend(shape::advice(change).into_iter().map(|line| format!("    {line}")));
    }
    let lost: u64 = sets_of(array, sets).map(|set| set.unreadable_bytes).sum();
    if lost > 0 {
        lines.push(format!("    but {lost} bytes of it cannot be read: see the bad-block logs above"));
    }
    let serve = command_with("serve", to_serve, if tried.by_force { "--force" } else { "" });
    let halves = split_off(array, sets);
    if !halves.is_empty() {
        lines.push(choice_text(array, &halves));
    } else if array.health == HealthWord::Degraded {
        lines.push(format!(
            "    next: {serve}, then a new member for each that is missing: {}",
            command("add", [&array.name, "NEW"])
        ));
    } else if tried.by_force {
        lines.push(format!("    next: {serve}"));
    }
    lines.join("\n")
}

/// The verdicts on the sets of an array.
fn sets_of<'a>(array: &ArrayModel, sets: &'a [SetVerdict]) -> impl Iterator<Item = &'a SetVerdict> {
    let uuids: Vec<String> = array.sets().into_iter().filter_map(|set| set.uuid.clone()).collect();
    sets.iter().filter(move |set| uuids.contains(&set.uuid))
}

/// The members that are split off from the members with which the array starts.
fn split_off(array: &ArrayModel, sets: &[SetVerdict]) -> Vec<String> {
    let split = sets_of(array, sets).flat_map(|set| &set.members).filter(|member| member.verdict == VerdictWord::Split);
    split.map(|member| member.member.clone()).collect()
}

/// The commands that add members of another half again, over its own writes.
fn add_over(array: &str, members: &[impl AsRef<str>]) -> String {
    let add = |member: &_| command_with("add", [array, AsRef::as_ref(member)], "--yes");
    let adds: Vec<String> = members.iter().map(add).collect();
    adds.join("; ")
}

/// Both halves ran without each other. An administrator must decide with which half the array continues.
fn choice_text(array: &ArrayModel, halves: &[String]) -> String {
    let name = &array.name;
    let working = |set: &&ArrayModel| {
        let in_sync = set.members.iter().filter(|member| member.state == StateWord::InSync);
        in_sync.filter_map(|member| member.member.clone()).collect::<Vec<_>>()
    };
    let kept = array.sets().iter().flat_map(working).collect::<Vec<_>>();
    let (newer, other) = (kept.join(" "), halves.join(" "));
    [
        format!(
            "    next: choose the half to keep. The other one is overwritten when it is added: `{}`",
            command("copy-out", halves)
        ),
        format!("      or `{}` shows what it holds", command("serve --read-only", halves)),
        format!("      to keep {newer}: {}; {}", command("serve", &kept), add_over(name, halves)),
        format!("      to keep {other}: {}; {}", command("serve", halves), add_over(name, &kept)),
    ]
    .join("\n")
}
