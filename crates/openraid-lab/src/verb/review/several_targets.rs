//! A review of several targets: each has a folder of its own, and one report covers all.

use openraid_methods::cell::mixed;
use openraid_methods::report;
use openraid_methods::report::assemble;
use openraid_methods::report::data::Fact;
use openraid_methods::review::{merge, ReviewPart, ReviewResults};
use openraid_methods::target::Choice;
use openraid_models::Library;

use super::{bed_facts, guard, made_arrays, one, side_by_side, write, ReviewTask};
use crate::arguments::{MachineArguments, ReviewArguments};
use openraid::failure::Failure;
use openraid::verb::Context;

/// Name of arrays that are created from members, next to named targets.
const SERVED: &str = "served";

/// Are there several targets, named targets, or arrays to create?
pub(super) fn is_wanted(arguments: &ReviewArguments) -> bool {
    let named = arguments.target.iter().any(|word| split(word).is_some());
    !arguments.members.is_empty() || arguments.target.len() > 1 || named
}

/// Splits a target with a name: `md=/dev/md0`. If a file has this name with an equals sign, it is taken as a file.
fn split(word: &str) -> Option<(&str, &str)> {
    let (name, target) = word.split_once('=')?;
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._- ".contains(c));
    (plain && !target.is_empty() && !std::path::Path::new(word).exists()).then_some((name, target))
}

/// Reviews all targets, and writes the report of all.
pub(super) fn review(
    arguments: &ReviewArguments,
    wanted: &ReviewTask,
    library: &Library,
    context: &Context,
) -> Result<ReviewResults, Failure> {
    let named = named(arguments)?;
    let whole = whole(arguments, &named);
    guard(&arguments.out, &whole, None)?;
    let mut typed = typed(arguments, &named, context)?;
    let (profiles, devices) = journals(arguments, &named, library)?;
    typed.journal = devices;
    let arguments = &typed;
    let mut parts = Vec::new();
    if !arguments.members.is_empty() {
        let label = if named.is_empty() { "" } else { arguments.label.as_deref().unwrap_or(SERVED) };
        parts.extend(made_arrays::review(&of_members(arguments, &named), label, wanted, context)?);
    }
    // All real targets together are one measurement of drives side by side. Each simulated target has its own.
    let alone = ReviewTask { methods: side_by_side::methods(wanted, false), ..wanted.clone() };
    for (name, target) in &named {
        let wanted_here = if is_simulated(target) { wanted } else { &alone };
        if wanted_here.methods.is_empty() {
            continue;
        }
        let journal = if is_simulated(target) { profiles.clone() } else { Vec::new() };
        let own_arguments = ReviewArguments { journal, ..of_one(arguments, &named, name, target)? };
        let results = one(&own_arguments, wanted_here, library, context)?;
        parts.push(ReviewPart { label: name.clone(), results });
    }
    let real = named.iter().filter(|(_, target)| !is_simulated(target));
    let real: Vec<(String, Choice)> =
        real.filter_map(|(name, target)| Some((name.clone(), Choice::parse(target).ok()?))).collect();
    if let Some(results) = side_by_side::of_targets(arguments, wanted, &real, context)? {
        let others = parts.iter().any(|part| side_by_side::is_in(&part.results));
        parts.push(ReviewPart { label: if others { "real targets".into() } else { String::new() }, results });
    }
    let mut results = merge(&whole, &parts);
    results.rank = arguments.rank;
    let mut bed = bed_facts(library, &results);
    bed.extend(results.rules.iter().map(|(id, text)| Fact::new(id.clone(), text.clone())));
    let mut page = assemble::review(&format!("Review of {whole}"), bed, &results.chapters(), &[]);
    page.files = vec![Fact::new("all results", "results.json"), Fact::new("in fio's shape", "fio.json")];
    page.files.extend(named.iter().map(|(name, _)| Fact::new(format!("{name} alone"), format!("{name}/report.html"))));
    write(&arguments.out, &results, &report::render(&page))?;
    Ok(results)
}

/// The given names and targets.
fn named(arguments: &ReviewArguments) -> Result<Vec<(String, String)>, Failure> {
    let mut found: Vec<(String, String)> = Vec::new();
    for word in &arguments.target {
        let Some((name, target)) = split(word) else {
            return Err(Failure::usage(format!(
                "--target {word}: several targets are reviewed, so each needs a name: give --target NAME={word}"
            )));
        };
        if found.iter().any(|(known, _)| known == name) || name.starts_with('.') || name == "cells" {
            let why = "the name is used already, or a folder cannot have it; give each target another name";
            return Err(Failure::usage(format!("--target {word}: {why}")));
        }
        Choice::parse(target).map_err(Failure::usage)?;
        found.push((name.into(), target.into()));
    }
    Ok(found)
}

/// All targets in one line; a folder has reviews of only these.
fn whole(arguments: &ReviewArguments, named: &[(String, String)]) -> String {
    let mut words: Vec<String> = named.iter().map(|(name, target)| format!("{name} ({target})")).collect();
    if !arguments.members.is_empty() {
        words.insert(0, format!("arrays of {}", arguments.members.join(", ")));
    }
    words.join(", ")
}

fn is_simulated(target: &str) -> bool {
    Choice::parse(target).is_ok_and(|choice| matches!(choice, Choice::Simulated(_)))
}

/// The journal of simulated targets, as drive profiles, and that of the arrays made of members, as devices.
fn journals(
    arguments: &ReviewArguments,
    named: &[(String, String)],
    library: &Library,
) -> Result<(Vec<String>, Vec<String>), Failure> {
    let is_profile = |word: &String| mixed(word).iter().all(|(_, name)| library.drive(name).is_ok());
    let (profiles, devices): (Vec<String>, Vec<String>) = arguments.journal.iter().cloned().partition(is_profile);
    if let Some(profile) = profiles.first().filter(|_| !named.iter().any(|(_, target)| is_simulated(target))) {
        return Err(Failure::usage(format!(
            "--journal {profile}: it is a drive profile, and no target is simulated; name a blank file or drive for the \
             arrays of --members"
        )));
    }
    if let Some(device) = devices.first().filter(|_| arguments.members.is_empty()) {
        return Err(Failure::usage(format!(
            "--journal {device}: there is no such drive profile, and a device is for the arrays of --members"
        )));
    }
    Ok((profiles, devices))
}

/// The arguments with the names that the user types on the terminal. Each is requested once, and all are checked before
/// the first target is measured.
fn typed(
    arguments: &ReviewArguments,
    named: &[(String, String)],
    context: &Context,
) -> Result<ReviewArguments, Failure> {
    let mut answered = arguments.clone();
    let are_given = !arguments.name.is_empty();
    if !arguments.destroy_data || (!are_given && !arguments.members.is_empty()) {
        return Ok(answered);
    }
    for (_, target) in named {
        let choice = Choice::parse(target).map_err(Failure::usage)?;
        if choice.holds_data() {
            let one = ReviewArguments { target: vec![target.clone()], ..arguments.clone() };
            super::real_target::confirmed(&choice, &one, context)?;
            if !are_given {
                answered.name.push(choice.short_name());
            }
        }
    }
    Ok(answered)
}

/// The options of the arrays made of members, without those for simulated targets if there are such targets.
fn of_members(arguments: &ReviewArguments, named: &[(String, String)]) -> ReviewArguments {
    let arguments = arguments.clone();
    if named.iter().any(|(_, target)| is_simulated(target)) {
        without_simulated(arguments)
    } else {
        arguments
    }
}

/// The options, without the options for simulated targets.
fn without_simulated(arguments: ReviewArguments) -> ReviewArguments {
    let machine = MachineArguments {
        drive: None,
        drive_state: None,
        drive_cache: None,
        drive_read_ahead: None,
        cache: None,
        bus: None,
        ..arguments.machine
    };
    ReviewArguments { arrays: None, effort: None, jobs: None, models: None, machine, ..arguments }
}

/// The options of one target. If an option applies only to the other kind of target, it is left out if there is a
/// target of that kind.
fn of_one(
    arguments: &ReviewArguments,
    named: &[(String, String)],
    name: &str,
    target: &str,
) -> Result<ReviewArguments, Failure> {
    let mut one = ReviewArguments {
        target: vec![target.into()],
        members: Vec::new(),
        out: arguments.out.join(name),
        ..arguments.clone()
    };
    let real = !arguments.members.is_empty() || named.iter().any(|(_, other)| !is_simulated(other));
    if is_simulated(target) {
        if one.arrays.is_none() && !arguments.levels.is_empty() {
            let subjects = made_arrays::subjects(&arguments.levels)?;
            one.arrays = Some(subjects.iter().map(ToString::to_string).collect());
        }
        if real {
            one = ReviewArguments { seconds: None, destroy_data: false, precondition: false, ..one };
        }
    } else if named.iter().any(|(_, other)| is_simulated(other)) {
        one = without_simulated(one);
        // The chunk and the cache of a target that exists are its own.
        (one.machine.chunk, one.machine.cache_mib) = (None, None);
    }
    Ok(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_before_the_first_equals_sign_and_an_address_is_no_name() {
        assert_eq!(split("md=/dev/md0"), Some(("md", "/dev/md0")));
        assert_eq!(split("a=nbd+unix:///x?socket=/tmp/s"), Some(("a", "nbd+unix:///x?socket=/tmp/s")));
        assert_eq!(split("nbd+unix:///x?socket=/tmp/s"), None);
        assert_eq!(split("/dev/md0"), None);
        assert_eq!(split("=x"), None);
    }
}
