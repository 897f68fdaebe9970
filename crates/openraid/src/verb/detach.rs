//! `openraid detach`: an array is no disk of this machine any more.

use super::attach::{known, lock, must_be_root};
use super::{Context, DoneBody};
use crate::arguments::DetachArguments;
use crate::disk::{self, attached_disks, systemd_units};
use crate::failure::{Exit, Failure, Outcome};

/// Runs the verb.
///
/// # Errors
/// The array is not attached, or its disk is in use.
pub fn run(arguments: &DetachArguments, context: &Context) -> Outcome {
    let word = &arguments.array;
    must_be_root()?;
    let _lock = lock()?;
    // A disk outlives the name of its array, and another array may have that now.
    let attached =
        attached_disks::all().into_iter().map(|disk| disk.record.identity()).find(|identity| identity.is_called(word));
    let identity = attached.map_or_else(|| known(word, context).map(|(identity, _)| identity), Ok)?;
    let dead = disk::in_the_way(&identity).map(|(disk, _)| disk);
    let Some(disk) = dead.or_else(|| disk::find(&identity)) else {
        disk::sweep();
        let text = format!("{word} is not attached; `openraid attach` lists the attached arrays");
        // A unit that stops has what it wants.
        return if arguments.by_unit { Ok(done(&text, context)) } else { Err(Failure::refused(text)) };
    };
    let path = disk.path().display().to_string();
    if let Some(user) = disk.lasting_user() {
        return Err(Failure::refused(format!("{word} is in use ({path}): {user}; end that first")));
    }
    disk::detach(&disk).map_err(|why| Failure::failed(format!("{word}: {why}")))?;
    disk::sweep();
    let mut text = format!("{word} is detached from {path}");
    let name = disk.record.name();
    if !arguments.by_unit && systemd_units::is_enabled(name) {
        let unit = systemd_units::unit_of(name);
        text += &format!("; `systemctl disable --now '{unit}'` keeps it away at the next boot");
    }
    Ok(done(&text, context))
}

fn done(text: &str, context: &Context) -> Exit {
    context.output.answer(Exit::Fine, &DoneBody { done: text, array: None }, text)
}
