//! `openraid erase`: removes the metadata of members, so that they belong to no array.

use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_sys::Use;
use serde::Serialize;

use super::Context;
use crate::arguments::WipeMetadataArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::quiet_service;
use crate::members::contents::contents;
use crate::members::{lasting_spec, open_every, options};
use crate::new_arrays::wiping::{md_areas, wipe, ErasedArea};

/// The erased areas, or the areas that would be erased.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct EraseBody {
    /// Were the areas overwritten? Otherwise they were only listed.
    erased: bool,
    /// The members, with the areas of each.
    members: Vec<ErasedMember>,
}

/// A member that is erased.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ErasedMember {
    /// Path or address of the member.
    member: String,
    /// The metadata that is on it, in words.
    holds: String,
    /// The areas that are overwritten with zeroes.
    areas: Vec<ErasedArea>,
}

/// Runs the verb, or says what it would do.
///
/// # Errors
/// A member cannot be opened or written. If one cannot be opened, none is wiped.
pub fn run(arguments: &WipeMetadataArguments, context: &Context) -> Outcome {
    let specs = arguments.members.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
    let usage = if arguments.yes { Use::Exclusive } else { Use::ReadExclusive };
    let opened = open_every(&specs, options(usage))?;
    let members: Vec<ErasedMember> = opened.iter().map(|(_, probed)| member(probed)).collect();
    let text = text(&members, arguments.yes);
    if !arguments.yes {
        let something = members.iter().any(|member| !member.areas.is_empty());
        let exit = if something { Exit::Refused } else { Exit::Fine };
        let hint = if something { "\nnothing was done; add --yes to do it" } else { "" };
        return Ok(context.output.answer(exit, &EraseBody { erased: false, members }, &format!("{text}{hint}")));
    }
    wipe_all(opened, &members)?;
    let names: Vec<String> = specs.into_iter().map(|spec| spec.text).collect();
    if let Err(failure) = context.registry.forget_members(&names) {
        context.output.warn(&failure.text());
    }
    Ok(context.output.answer(Exit::Fine, &EraseBody { erased: true, members }, &text))
}

fn member(probed: &ProbedMember) -> ErasedMember {
    let holds = contents(probed);
    let holds = if holds.is_empty() { "nothing known".into() } else { holds };
    ErasedMember { member: probed.spec.text.clone(), holds, areas: md_areas(probed) }
}

fn wipe_all(opened: Vec<(OpenedMember, ProbedMember)>, members: &[ErasedMember]) -> Result<(), Failure> {
    let service = quiet_service()?;
    for ((opened, _), member) in opened.into_iter().zip(members) {
        if !member.areas.is_empty() {
            wipe(&service.handle(), opened, &member.areas)?;
        }
    }
    service.stop();
    Ok(())
}

fn text(members: &[ErasedMember], done: bool) -> String {
    let verb = if done { "wiped" } else { "would be wiped" };
    let mut lines = Vec::new();
    for member in members {
        lines.push(format!("{}: holds {}", member.member, member.holds));
        if member.areas.is_empty() {
            lines.push("  no md metadata: nothing to wipe".into());
        }
        for area in &member.areas {
            lines.push(format!("  {verb}: {}, {} bytes at byte {}", area.what, area.bytes, area.at));
        }
    }
    lines.join("\n")
}
