//! Changes: each checks the version that the client has seen, is carried out as the command line would, and is written to the
//! event log with the user's name.

use std::collections::BTreeMap;

use openraid_status::check_results::CheckWord;
use openraid_status::{ArrayModel, Command};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::named;
use super::state_version;
use crate::controller::{CommandResult, Creation, OfferModel, Refusal, SettingModel};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::{MEMBERS_MAX, SETTINGS_MAX};

/// The result of a change.
#[derive(Serialize, ToSchema)]
pub struct DoneModel {
    /// The result in a sentence.
    pub text: String,
    /// The array after the change, if it still exists.
    pub array: Option<ArrayModel>,
    /// Does it outlive the server? Otherwise it is in force, the text says why it could not be kept, and it is tried again.
    pub kept: bool,
}

/// Settings to change.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetInput {
    /// Names and values of the settings, as in `openraid set`.
    settings: BTreeMap<String, String>,
    /// Accept that a setting may lose data, as `--yes` does on the command line.
    #[serde(default)]
    accept_risk: bool,
}

/// A member to fail.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailInput {
    /// The member: its path or address, `drive:NUMBER` or `slot:SLOT`.
    member: String,
    /// Fail it even if rows that are not in sync yet need it.
    #[serde(default)]
    unsynced: bool,
    /// Fail it only if its superblock has this identity.
    #[serde(default)]
    device: Option<String>,
    /// Name of the array, typed again as a confirmation.
    confirm: String,
}

/// A drive to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddInput {
    /// Path or address of the drive.
    member: String,
    /// Number of the span of a nested array, from 0.
    #[serde(default, alias = "leg")]
    span: Option<usize>,
    /// Add the drive even if it holds something, which is lost.
    #[serde(default)]
    overwrite: bool,
    /// Name of the array, typed again; required with `overwrite`.
    #[serde(default)]
    confirm: Option<String>,
}

/// A member to remove.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveInput {
    /// The member: its path or address, `drive:NUMBER` or `slot:SLOT`.
    member: String,
    /// Remove it only if it is a spare.
    #[serde(default)]
    spare: bool,
    /// Remove it only if its superblock has this identity.
    #[serde(default)]
    device: Option<String>,
}

/// A member to replace.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceInput {
    /// The member to be replaced: its path or address, `drive:NUMBER` or `slot:SLOT`.
    member: String,
    /// Path or address of the drive that replaces it; without it, a spare of the array does.
    #[serde(default)]
    with: Option<String>,
    /// Use the drive even if it holds something, which is lost.
    #[serde(default)]
    overwrite: bool,
    /// Replace the member only if its superblock has this identity.
    #[serde(default)]
    device: Option<String>,
    /// Name of the array, typed again; required with `overwrite`.
    #[serde(default)]
    confirm: Option<String>,
}

/// Another shape.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReshapeInput {
    /// Paths or addresses of drives that join the array first, as spares.
    #[serde(default)]
    members: Vec<String>,
    /// The new number of members; without it, the present number and the drives above.
    #[serde(default)]
    raid_devices: Option<u16>,
    /// The new level.
    #[serde(default)]
    level: Option<String>,
    /// The new size of a chunk, as in `64K`.
    #[serde(default)]
    chunk: Option<String>,
    /// The new layout, as mdadm names it.
    #[serde(default)]
    layout: Option<String>,
    /// The used size of each member, as in `20G`; `max`: all room, after smaller drives were replaced. Without the fields above.
    #[serde(default)]
    size: Option<String>,
    /// The part of the array that hosts have, as in `20G`; `max`: all of it again. Nothing is lost, and the next server forgets it.
    /// Without the fields above; it has no plan.
    #[serde(default)]
    array_size: Option<String>,
    /// Use the drives even if they hold something, which is lost.
    #[serde(default)]
    overwrite: bool,
    /// Name of the array, typed again as a confirmation. A plan needs none.
    #[serde(default)]
    confirm: Option<String>,
}

/// A light to switch.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LocateInput {
    /// The member: its path or address, `drive:NUMBER` or `slot:SLOT`.
    member: String,
    /// Switch it off again.
    #[serde(default)]
    off: bool,
}

/// Another name.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameInput {
    /// New name of the array.
    name: String,
}

/// A check.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckInput {
    /// What the check may change: nothing, blocks whose error can be attributed to one member, or parity and copies.
    #[serde(default = "check_only")]
    kind: CheckWord,
}

const fn check_only() -> CheckWord {
    CheckWord::Check
}

/// Every setting that an array has.
#[derive(Serialize, ToSchema)]
pub struct SettingsModel {
    /// All settings, in the order of the documentation.
    settings: Vec<SettingModel>,
    /// Values that suit a class of drives better than the defaults.
    offers: Vec<OfferModel>,
}

/// An array to stop.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopInput {
    /// Name of the array, typed again as a confirmation.
    confirm: String,
    /// Remove it from the registry as well, so that it is no longer served by its name. Its members keep their data.
    #[serde(default)]
    forget: bool,
    /// Stop it although files of members were deleted or replaced, so that their data is lost, as `--yes` does on the command line.
    #[serde(default)]
    accept_risk: bool,
}

/// Changes that lose redundancy or data need the array's name as a confirmation.
fn confirmed(array: &ArrayModel, typed: Option<&str>) -> Result<(), Problem> {
    if typed == Some(&array.name) {
        return Ok(());
    }
    let text = format!("confirm={}: type the name of the array, {}, to confirm this", typed.unwrap_or(""), array.name);
    Err(Problem::new(428, "confirm", text))
}

/// The array that a change is for, if it is still as the client has seen it.
///
/// # Errors
/// There is none, or it has changed.
pub fn target(request: &HttpRequest) -> Result<ArrayModel, Problem> {
    request.state.forget_snapshot();
    let array = named(request)?;
    state_version::check(request, &array)?;
    Ok(array)
}

/// Carry out a change, and write it to the event log.
///
/// # Errors
/// The server's refusal.
pub fn answered(
    request: &HttpRequest,
    array: &str,
    what: &str,
    done: Result<CommandResult, Refusal>,
) -> Result<HttpReply, Problem> {
    request.state.forget_snapshot();
    let user = request.user();
    let came = match &done {
        Ok(_) => "done".to_owned(),
        Err(refusal) if refusal.in_force => {
            format!("in force, not kept: {}", refusal.text.lines().last().unwrap_or_default())
        }
        Err(refusal) => format!("refused: {}", refusal.text.lines().next().unwrap_or_default()),
    };
    request.state.controller.audit(Some(array), format!("{array}: {user} by HTTP: {what}: {came}"));
    let kept = done.is_ok();
    let CommandResult { text, array } = done.or_else(|refusal| in_force(request, array, refusal))?;
    let version = array.as_ref().map(|array| state_version::of(array));
    let reply = HttpReply::json(200, &DoneModel { text, array: array.map(|array| *array), kept });
    Ok(match version {
        Some(version) => reply.with("etag", version),
        None => reply,
    })
}

/// A change that could not be kept is done for the client, if it is in force.
fn in_force(request: &HttpRequest, array: &str, refusal: Refusal) -> Result<CommandResult, Refusal> {
    if !refusal.in_force {
        return Err(refusal);
    }
    let array = request.state.controller.arrays()?.into_iter().find(|known| known.name == array).map(Box::new);
    Ok(CommandResult { text: refusal.text, array })
}

fn change(request: &HttpRequest, array: &ArrayModel, what: &str, command: Command) -> Result<HttpReply, Problem> {
    answered(request, &array.name, what, request.state.controller.change(command))
}

/// Change settings.
pub fn set(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let input: SetInput = request.input()?;
    if input.settings.is_empty() || input.settings.len() > SETTINGS_MAX {
        return Err(Problem::bad(format!("settings: 1 to {SETTINGS_MAX} of them")));
    }
    // A profile goes first, as in the configuration: the other settings differ from it.
    let mut settings: Vec<(String, String)> = input.settings.into_iter().collect();
    settings.sort_by_key(|(key, _)| key != "profile");
    let words: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let what = format!("set {}", words.join(" "));
    let command = Command::Set { array: array.name.clone(), settings, yes: input.accept_risk };
    change(request, &array, &what, command)
}

/// Fail a member.
pub fn fail(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let FailInput { member, unsynced, device, confirm } = request.input()?;
    confirmed(&array, Some(&confirm))?;
    let what = format!("fail {member}");
    change(request, &array, &what, Command::Fail { array: array.name.clone(), member, unsynced, device })
}

/// Add a member.
pub fn add(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let AddInput { member, span, overwrite, confirm } = request.input()?;
    if overwrite {
        confirmed(&array, confirm.as_deref())?;
    }
    let what = format!("add {member}");
    let command = Command::Add { array: array.name.clone(), member, span, overwrite, split: false };
    change(request, &array, &what, command)
}

/// A change of shape, and its confirmation.
fn reshaping(request: &HttpRequest, name: &str, plan: bool) -> Result<(Command, Option<String>), Problem> {
    let ReshapeInput { members, raid_devices, level, chunk, layout, size, array_size, overwrite, confirm } =
        request.input()?;
    if members.len() > MEMBERS_MAX {
        return Err(Problem::bad(format!("an array has {MEMBERS_MAX} members and spares at most")));
    }
    let array = name.to_owned();
    let yes = !plan;
    if let Some(to) = array_size {
        let others = [&level, &chunk, &layout, &size];
        if plan || overwrite || !members.is_empty() || raid_devices.is_some() || others.into_iter().any(Option::is_some)
        {
            return Err(Problem::bad(
                "array_size changes what hosts have, and nothing else: ask for it alone, without a plan",
            ));
        }
        return Ok((Command::LimitSize { array, to, yes }, confirm));
    }
    let command = Command::Reshape { array, members, raid_devices, level, chunk, layout, size, plan, overwrite, yes };
    Ok((command, confirm))
}

/// Say what a change of shape would do.
pub fn plan_reshape(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    let (command, _) = reshaping(request, &array.name, true)?;
    Ok(HttpReply::json(200, &request.state.controller.plan_reshape(command)?))
}

/// Turn a change of shape around.
pub fn cancel_reshape(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    change(request, &array, "reshape --cancel", Command::CancelReshape { array: array.name.clone() })
}

/// Begin a change of shape.
pub fn reshape(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let (command, confirm) = reshaping(request, &array.name, false)?;
    confirmed(&array, confirm.as_deref())?;
    let what = command.change().map_or_else(String::new, |(_, what)| what);
    change(request, &array, &what, command)
}

/// Switch the light of a member.
pub fn locate(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let LocateInput { member, off } = request.input()?;
    let what = format!("locate {member}{}", if off { " --off" } else { "" });
    change(request, &array, &what, Command::Locate { array: array.name.clone(), member, off })
}

/// Take a member out.
pub fn remove(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let RemoveInput { member, spare, device } = request.input()?;
    let what = format!("remove {member}");
    change(request, &array, &what, Command::Remove { array: array.name.clone(), member, spare, device })
}

/// Replace a member.
pub fn replace(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let ReplaceInput { member, with, overwrite, device, confirm } = request.input()?;
    if overwrite {
        confirmed(&array, confirm.as_deref())?;
    }
    let what = format!("replace {member} with {}", with.as_deref().unwrap_or("a spare"));
    let command = Command::Replace { array: array.name.clone(), member, with, overwrite, device, split: false };
    change(request, &array, &what, command)
}

/// Begin a check.
pub fn check(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let CheckInput { kind } = request.input()?;
    change(request, &array, kind.text(), Command::Check { array: array.name.clone(), kind })
}

/// End a check.
pub fn stop_check(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    change(request, &array, "stop the check", Command::StopCheck { array: array.name.clone() })
}

/// Give an array another name.
pub fn rename(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let RenameInput { name } = request.input()?;
    let what = format!("rename to {name}");
    change(request, &array, &what, Command::Rename { array: array.name.clone(), to: name })
}

/// Hold background work.
pub fn pause(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    change(request, &array, "pause", Command::Pause { array: array.name.clone() })
}

/// Go on with background work.
pub fn resume(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    change(request, &array, "resume", Command::Resume { array: array.name.clone() })
}

/// Stop an array.
pub fn stop(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = target(request)?;
    let StopInput { confirm, forget, accept_risk } = request.input()?;
    confirmed(&array, Some(&confirm))?;
    if forget {
        let done = request.state.controller.retire(&array.name, accept_risk);
        return answered(request, &array.name, "stop and forget", done);
    }
    change(request, &array, "stop", Command::Stop { array: array.name.clone(), yes: accept_risk })
}

fn creation(request: &HttpRequest) -> Result<Creation, Problem> {
    let creation: Creation = request.input()?;
    checked(&creation)?;
    Ok(creation)
}

/// Has it a bounded number of members, all of this machine?
///
/// # Errors
/// It has not.
pub fn checked(creation: &Creation) -> Result<(), Problem> {
    if creation.members.len() + creation.spares.len() > MEMBERS_MAX {
        return Err(Problem::bad(format!("an array has {MEMBERS_MAX} members and spares at most")));
    }
    if let Some(other) = creation.members.iter().chain(&creation.spares).find(|member| !member.starts_with('/')) {
        return Err(Problem::bad(format!("{other:?} is not an absolute path")));
    }
    Ok(())
}

/// Plan an array.
pub fn plan(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.plan(&creation(request)?)?))
}

/// Make an array.
pub fn create(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let creation = creation(request)?;
    let what = format!("create, level {}, of {}", creation.level, creation.members.join(" "));
    let done = request.state.controller.create(&creation);
    let reply = answered(request, &creation.name, &what, done)?;
    Ok(HttpReply { status: 201, ..reply }.with("location", format!("/api/v1/arrays/{}", creation.name)))
}

pub fn server(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.server()?))
}

/// Every setting that an array has.
pub fn known_settings(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(
        200,
        &SettingsModel {
            settings: request.state.controller.known_settings(),
            offers: request.state.controller.offers(),
        },
    ))
}

/// The desired state in force.
pub fn settings(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.settings()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_former_name_of_a_span_is_accepted() {
        for word in ["span", "leg"] {
            let input: AddInput =
                serde_json::from_str(&format!(r#"{{"member": "/dev/sdb", "{word}": 1}}"#)).expect("a body");
            assert_eq!(input.span, Some(1), "{word}");
        }
        assert!(serde_json::from_str::<AddInput>(r#"{"member": "/dev/sdb", "foot": 1}"#).is_err());
    }
}
