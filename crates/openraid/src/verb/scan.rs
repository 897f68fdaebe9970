//! `openraid scan`: finds arrays among the files of folders, among members, or among all block devices.

use openraid_runtime::member::{MemberSpec, ProbedMember};
use openraid_status::shell_quoting::{path, word};
use openraid_status::VerdictWord;
use openraid_sys::Use;
use serde::Serialize;

use super::Context;
use crate::arguments::ScanArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::members::{block_devices, in_folder, open_some, options, spec, unfit, Unfit};
use crate::on_disk::sets;
use crate::output::verdicts::{line, set_text, set_verdict, stranger, MemberVerdict, SetVerdict};
use crate::quantity::counted;
use crate::registry::RegisteredArray;

/// Members that were found.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ScanBody {
    /// Each set, and whether it would start.
    arrays: Vec<SetVerdict>,
    /// Members that have damaged metadata.
    damaged: Vec<MemberVerdict>,
    /// Devices and files that were looked at.
    looked_at: usize,
    /// Devices and files that could not be read.
    unreadable: usize,
}

/// Runs the verb. Nothing is written. The exit code is that of the worst array.
///
/// # Errors
/// A folder cannot be read.
pub fn run(arguments: &ScanArguments, context: &Context) -> Outcome {
    let specs = if arguments.places.is_empty() { block_devices() } else { places(arguments)? };
    let (opened, mut failed) = open_some(&specs, options(Use::Examine));
    let unfit_of = |name: &String| specs.iter().find(|spec| spec.text == *name).and_then(unfit);
    // A file that is too small cannot be a member, so it is not reported.
    failed.retain(|(name, _)| unfit_of(name) != Some(Unfit::TooSmall));
    let probed: Vec<ProbedMember> = opened.into_iter().map(|(_, probed)| probed).collect();
    let (plans, strangers) = sets::plan(&probed, false);
    let arrays: Vec<SetVerdict> = plans.iter().map(|set| set_verdict(set, &probed)).collect();
    let damaged: Vec<MemberVerdict> = strangers
        .iter()
        .map(|place| stranger(&probed[*place]))
        .filter(|member| member.verdict == VerdictWord::Refused)
        .collect();
    // If the named devices cannot be read, the result is unknown. If no device is named, an unreadable one means
    // nothing, because some block devices are always in use.
    let is_unknown = !arguments.places.is_empty() && probed.is_empty() && !failed.is_empty();
    let is_nothing_there = failed.iter().all(|(name, _)| unfit_of(name) == Some(Unfit::Missing));
    let otherwise = match (is_unknown, is_nothing_there) {
        (true, true) => Exit::Refused,
        (true, false) => Exit::CannotTell,
        (false, _) => Exit::Fine,
    };
    let exit = arrays.iter().map(set_exit).max().unwrap_or(otherwise);
    let mut lines = vec![format!(
        "{} on {} ({} could not be read)",
        counted(arrays.len() as u64, "array", "arrays"),
        counted(specs.len() as u64, "file or device", "files and devices"),
        failed.len()
    )];
    lines.extend(arrays.iter().map(set_text));
    if !damaged.is_empty() {
        lines.push("  members with a damaged superblock".into());
        lines.extend(damaged.iter().map(line));
    }
    if arrays.is_empty() && !failed.is_empty() {
        lines.extend(failed.iter().take(UNREADABLE_SHOWN_MAX).map(|(_, failure)| format!("  {}", failure.text())));
    }
    lines.extend(next_step(arguments, &arrays, context)?);
    let body = ScanBody { arrays, damaged, looked_at: specs.len(), unreadable: failed.len() };
    Ok(context.output.answer(exit, &body, &lines.join("\n")))
}

/// The next step for arrays that are not recorded with the members that were found. Such members were moved, or came from
/// another machine. Members of the same array that are still at their recorded places belong to it too.
fn next_step(arguments: &ScanArguments, arrays: &[SetVerdict], context: &Context) -> Result<Option<String>, Failure> {
    let known = context.registry.entries()?;
    let is_known = |set: &SetVerdict| {
        known.iter().any(|entry| set.members.iter().all(|member| entry.members.contains(&member.member)))
    };
    let new: Vec<&SetVerdict> = arrays.iter().filter(|set| !is_known(set)).collect();
    let rest: Vec<String> = new.iter().flat_map(|set| in_place(set, &known)).collect();
    let new: Vec<&SetVerdict> = new.into_iter().filter(|set| set.starts || !in_place(set, &known).is_empty()).collect();
    if new.is_empty() {
        return Ok(None);
    }
    let place = |place: &std::path::PathBuf| {
        let option = if place.is_dir() { "--scan " } else { "" };
        format!("{option}{}", path(&place.display().to_string()))
    };
    let mut words: Vec<String> = arguments.places.iter().map(place).collect();
    if words.is_empty() {
        words = new.iter().flat_map(|set| &set.members).map(|member| word(&member.member)).collect();
    }
    words.extend(rest.iter().map(|member| word(member)));
    Ok(Some(format!("next: `openraid assemble {}` remembers where the members are", words.join(" "))))
}

/// Recorded members of a set that were not found here and are still at their places.
fn in_place(set: &SetVerdict, known: &[RegisteredArray]) -> Vec<String> {
    let entry = known.iter().find(|entry| entry.uuid.as_ref() == Some(&set.uuid));
    let members = entry.into_iter().flat_map(|entry| &entry.members);
    let is_found = |member: &&String| set.members.iter().any(|found| found.member == **member);
    let is_there = |member: &&String| spec(member).is_ok_and(|spec| unfit(&spec).is_none());
    members.filter(|member| !is_found(member) && is_there(member)).cloned().collect()
}

/// If nothing is found, the errors of at most this number of unreadable members are shown.
const UNREADABLE_SHOWN_MAX: usize = 8;

fn places(arguments: &ScanArguments) -> Result<Vec<MemberSpec>, Failure> {
    let mut specs = Vec::new();
    for place in &arguments.places {
        if place.is_dir() {
            specs.extend(in_folder(place)?);
        } else {
            let text = place.to_str().ok_or_else(|| Failure::usage("the name of a member must be UTF-8"))?;
            specs.push(spec(text)?);
        }
    }
    Ok(specs)
}

/// The exit code for an array that is not started.
pub fn set_exit(set: &SetVerdict) -> Exit {
    match (set.starts, set.degraded) {
        (true, false) => Exit::Fine,
        (true, true) => Exit::Degraded,
        (false, _) => Exit::Failed,
    }
}
