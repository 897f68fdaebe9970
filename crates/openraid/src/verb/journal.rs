//! `openraid journal`: creates, shows, adopts and discards journals.

use openraid_format::Uuid;
use openraid_runtime::member::{MemberSpec, OpenedMember};
use openraid_runtime::service::journal::{adopt, discard, look, make, tally, FoundDevices, LookFor};
use openraid_sys::Use;
use openraid_units::Bytes;
use serde::Serialize;

use super::{print_done, Context};
use crate::arguments::{
    JournalAdoptArguments, JournalArguments, JournalAttachArguments, JournalCreateArguments, JournalDiscardArguments,
    JournalShowArguments, JournalVerb,
};
use crate::control::{Command, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::quiet_service;
use crate::members::{lasting_spec, open_every, options, NewFiles};
use crate::model::{JournalArrayModel, JournalArrayWord, JournalJoinModel, JournalModel, JournalWord, LossModel};
use crate::new_arrays::wiping;
use crate::on_disk::unused_journals::{model_of, name_arrays, of_devices};
use crate::output::discard_loss::LossEstimate;
use crate::output::table::TextTable;
use crate::quantity::{counted, human};
use crate::server::joining_members::check_free;
use openraid_runtime::service::random_uuid;
use openraid_status::shell_quoting::word;

/// The new journal.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct JournalCreateBody {
    /// UUID of the journal.
    uuid: String,
    /// UUID of the controller that the journal belongs to.
    controller: String,
    /// Paths of its devices.
    devices: Vec<String>,
    /// Size of its ring.
    ring_bytes: u64,
}

/// A journal.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct JournalShowBody<'a> {
    /// The journal of the server, or the one on the devices that were named.
    journal: &'a JournalModel,
}

/// The content of a journal for an array.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct JournalDiscardBody<'a> {
    /// The result in words; null if nothing was changed.
    done: Option<&'a str>,
    /// Always null.
    #[schema(value_type = Option<String>)]
    array: Option<()>,
    /// The loss.
    #[serde(flatten)]
    loss: &'a LossModel,
}

/// A journal that this controller has adopted, or could adopt.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct JournalAdoptBody {
    /// Was the journal adopted? Otherwise nothing was written.
    adopted: bool,
    /// UUID of the journal.
    uuid: String,
    /// Paths of its devices.
    devices: Vec<String>,
    /// UUID of the controller that the journal belongs to now.
    controller: String,
}

/// Runs the verb.
///
/// # Errors
/// A device cannot be used, or neither a server nor the registry knows the journal or the array.
pub fn run(arguments: &JournalArguments, context: &Context) -> Outcome {
    match &arguments.verb {
        JournalVerb::Create(arguments) => create(arguments, context),
        JournalVerb::Show(arguments) => show(arguments, context),
        JournalVerb::Attach(arguments) => attach(arguments, context),
        JournalVerb::Discard(arguments) => discard_array(arguments, context),
        JournalVerb::Adopt(arguments) => adopt_journal(arguments, context),
    }
}

fn specs(devices: &[String]) -> Result<Vec<MemberSpec>, Failure> {
    devices.iter().map(|text| lasting_spec(text)).collect()
}

fn create(arguments: &JournalCreateArguments, context: &Context) -> Outcome {
    let specs = specs(&arguments.devices)?;
    let controller = context.registry.controller()?;
    let files = match arguments.size {
        Some(size) => Some(NewFiles::make_filled("--size", &specs, size)?),
        None => None,
    };
    let members = open_every(&specs, options(Use::Exclusive))?;
    let overwrite = arguments.overwrite && arguments.yes;
    let taken: Vec<String> = members
        .iter()
        .filter_map(|(_, probed)| check_free(probed, overwrite).err().map(|failure| failure.text()))
        .collect();
    if !taken.is_empty() {
        return Err(Failure::refused(taken.join("\n  ")));
    }
    let holds_something = members.iter().any(|(_, probed)| !wiping::all_areas(probed).is_empty());
    let members = if holds_something {
        let service = quiet_service()?;
        for (opened, probed) in members {
            wiping::wipe(&service.handle(), opened, &wiping::all_areas(&probed))?;
        }
        service.stop();
        open_every(&specs, options(Use::Exclusive))?
    } else {
        members
    };
    let opened: Vec<OpenedMember> = members.into_iter().map(|(opened, _)| opened).collect();
    let superblocks = make(&opened, random_uuid(), controller)?;
    if let Some(files) = files {
        files.keep();
    }
    let body = JournalCreateBody {
        uuid: superblocks[0].journal.to_string(),
        controller: controller.to_string(),
        devices: specs.iter().map(|spec| spec.text.clone()).collect(),
        ring_bytes: superblocks[0].ring_sectors.bytes().get(),
    };
    if let Err(failure) = context.registry.forget_members(&body.devices) {
        context.output.warn(&failure.text());
    }
    let uses: String = body.devices.iter().map(|device| format!(" --journal {}", word(device))).collect();
    let text = format!(
        "journal {} created: {} usable on {}\nuse it with: openraid serve NAME{uses}",
        body.uuid,
        human(Bytes(body.ring_bytes)),
        body.devices.join(" and ")
    );
    Ok(context.output.answer(Exit::Fine, &body, &text))
}

fn show(arguments: &JournalShowArguments, context: &Context) -> Outcome {
    let journal = if arguments.devices.is_empty() {
        of_server(context)?
    } else {
        of_named(&specs(&arguments.devices)?, context)?
    };
    let exit = match journal.state {
        JournalWord::Lost | JournalWord::Full => Exit::Failed,
        _ if journal.damage.is_some() => Exit::Degraded,
        _ if journal.other_missing || journal.devices.iter().any(|device| !device.works) => Exit::Degraded,
        _ => Exit::Fine,
    };
    Ok(context.output.answer(exit, &JournalShowBody { journal: &journal }, &text(&journal)))
}

fn of_server(context: &Context) -> Result<JournalModel, Failure> {
    for mut server in context.servers.connect()? {
        if let ServerAnswer::Journal(Some(journal)) = server.ask(&Command::Journal)? {
            return Ok(*journal);
        }
    }
    Err(Failure::cannot_tell(
        "no running server has a journal; name the devices of one, or start a server with `openraid serve NAME --journal \
         DEVICE`",
    ))
}

/// The contents of journal devices. If a server uses the devices, it is asked first, because it knows more than the
/// devices currently show.
fn of_named(specs: &[MemberSpec], context: &Context) -> Result<JournalModel, Failure> {
    let resolved = |path: &str| std::path::Path::new(path).canonicalize().ok();
    let paths: Vec<_> = specs.iter().filter_map(|spec| resolved(&spec.text)).collect();
    let servers = context.servers.connect().unwrap_or_else(|failure| {
        context.output.warn(&format!("{}; the answer shows the records on the devices", failure.text()));
        Vec::new()
    });
    for mut server in servers {
        // If a server does not answer, the lock that it holds shows that it runs.
        let Ok(ServerAnswer::Journal(Some(journal))) = server.ask(&Command::Journal) else { continue };
        if journal.devices.iter().filter_map(|device| resolved(&device.device)).any(|path| paths.contains(&path)) {
            return Ok(*journal);
        }
    }
    of_devices(specs, &context.registry)
}

/// The progress of a device that is being made up to date.
fn joining_text(join: Option<&JournalJoinModel>) -> String {
    let percent = join
        .map_or(0, |progress| progress.copied_bytes.saturating_mul(100).checked_div(progress.total_bytes).unwrap_or(0));
    format!(" (is being brought up to date: {percent} %)")
}

/// The state of a journal as text.
const fn state_text(state: JournalWord) -> &'static str {
    match state {
        JournalWord::Live => "active",
        JournalWord::Opening => "being opened",
        JournalWord::Closing => "being closed",
        JournalWord::Lost => "LOST: no device of it works; writes are acknowledged when they are on the members",
        JournalWord::InUse => "in use by another program: this answer may be out of date",
        JournalWord::Full => "FULL of entries that their array cannot take; the other arrays work without the journal",
        JournalWord::Unused => "not in use",
    }
}

/// A journal as text.
pub fn text(journal: &JournalModel) -> String {
    let mut facts = TextTable::plain().indented(2);
    facts.row(["state", state_text(journal.state)]);
    if let Some(trouble) = &journal.trouble {
        facts.row(["not back", trouble]);
    }
    if let Some(damage) = &journal.damage {
        facts.row(["DAMAGED", damage]);
        facts.row(["readable", "only up to the damage: the entries after it cannot be counted"]);
    }
    for device in &journal.devices {
        let joins = journal.joining.as_ref().filter(|join| join.device == device.device);
        let works = match (device.works, journal.state) {
            _ if joins.is_some() => joining_text(joins),
            (true, _) => String::new(),
            (false, JournalWord::Unused | JournalWord::InUse) => {
                " (stale: it is brought up to date when the journal is used)".into()
            }
            (false, _) => " (does not work)".into(),
        };
        facts.row(["device", &format!("{}{works}", device.device)]);
    }
    if journal.other_missing {
        facts.row(["alone", "one of two devices: the other one was not named, and may hold more; name both"]);
    }
    if let Some(percent) = journal.used_bytes.saturating_mul(100).checked_div(journal.ring_bytes) {
        let (used, ring) = (human(Bytes(journal.used_bytes)), human(Bytes(journal.ring_bytes)));
        facts.row([
            "fill",
            &format!("{used} of {ring} ({percent} %), {}", counted(journal.entries, "entry", "entries")),
        ]);
    }
    if journal.kept_bytes > 0 {
        let (kept, most) = (human(Bytes(journal.kept_bytes)), human(Bytes(journal.kept_bytes_max)));
        facts.row(["kept", &format!("{kept} of {most}, before the ring, for arrays that are not there")]);
    }
    if let Some(counters) = &journal.counters {
        let (written, data) = (human(Bytes(counters.written_bytes)), human(Bytes(counters.data_bytes)));
        facts.row([
            "written",
            &format!("{}, {written}, of that {data} of hosts", counted(counters.entries, "entry", "entries")),
        ]);
        if counters.replayed_bytes + counters.replayed_redos > 0 {
            let replayed = human(Bytes(counters.replayed_bytes));
            facts.row([
                "replayed",
                &format!("{replayed}, and {} to members", counted(counters.replayed_redos, "write", "writes")),
            ]);
        }
    }
    if let Some(controller) = &journal.controller {
        facts.row(["controller", controller]);
    }
    let mut lines = vec![format!("journal {}", journal.uuid.as_deref().unwrap_or("-")), facts.text().trim_end().into()];
    if !journal.arrays.is_empty() {
        let mut table = TextTable::new(&["ARRAY", "NAME", "STATE", "ENTRIES WAITING", "DATA"]).indented(2);
        for array in &journal.arrays {
            table.row([
                array.uuid.clone(),
                array.name.clone().unwrap_or_else(|| "-".into()),
                array.state.to_string(),
                array.waiting_entries.to_string(),
                array.data_bytes.map_or_else(|| "-".into(), |bytes| human(Bytes(bytes))),
            ]);
        }
        lines.push(table.text().trim_end().into());
    }
    lines.join("\n")
}

fn attach(arguments: &JournalAttachArguments, context: &Context) -> Outcome {
    let device = match &arguments.device {
        Some(text) => Some(lasting_spec(text)?.text),
        None => None,
    };
    let command = Command::JoinJournal { device, overwrite: arguments.overwrite && arguments.yes };
    for mut server in context.servers.connect()? {
        if matches!(server.ask(&Command::Journal)?, ServerAnswer::Journal(Some(_))) {
            let answer = server.ask(&command)?;
            return print_done(context, &answer);
        }
    }
    Err(Failure::cannot_tell(
        "no running server has a journal; start one with `openraid serve NAME --journal DEVICE --journal DEVICE`: if one \
         of two devices is stale, it is brought up to date",
    ))
}

fn discard_array(arguments: &JournalDiscardArguments, context: &Context) -> Outcome {
    if !arguments.on.is_empty() {
        return discard_offline(arguments, context);
    }
    let command = Command::DiscardJournalled { array: arguments.array.clone(), lost: arguments.lost };
    for mut server in context.servers.connect()? {
        if matches!(server.ask(&Command::Journal)?, ServerAnswer::Journal(Some(_))) {
            return match server.ask(&command)? {
                ServerAnswer::Loss(loss) => Ok(print_loss(context, &loss)),
                _ => Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
            };
        }
    }
    Err(Failure::cannot_tell("no running server has a journal; name the devices of one that no server uses with --on"))
}

/// The identities for an array's name: those of the sets in the superblocks of its members.
fn identities(array: &str, context: &Context) -> Result<Vec<Uuid>, Failure> {
    if let Ok(uuid) = array.parse() {
        return Ok(vec![uuid]);
    }
    let entry = context.registry.find(array)?.ok_or_else(|| {
        Failure::refused(format!(
            "no array named {array:?} is remembered; name its identity, as `openraid journal show DEVICE` has it"
        ))
    })?;
    let specs = entry.members.iter().map(|member| crate::members::spec(member)).collect::<Result<Vec<_>, _>>()?;
    let (opened, _) = crate::members::open_some(&specs, options(Use::Examine));
    let mut uuids: Vec<Uuid> = opened.into_iter().filter_map(|(_, p)| Some(p.look.superblock?.set_uuid)).collect();
    uuids.sort_by_key(|uuid| uuid.0);
    uuids.dedup();
    Ok(uuids)
}

fn discard_offline(arguments: &JournalDiscardArguments, context: &Context) -> Outcome {
    let usage = if arguments.lost { Use::Exclusive } else { Use::ReadExclusive };
    let wanted = LookFor { damaged: true, ..LookFor::default() };
    let mut found = look(&specs(&arguments.on)?, options(usage), &wanted)?;
    if found.is_half() && !arguments.alone {
        return Err(half(&found, "name both with --on"));
    }
    let uuids = identities(&arguments.array, context)?;
    let known: Vec<_> = tally(&found.journal).into_iter().filter(|tally| uuids.contains(&tally.set_uuid)).collect();
    if known.is_empty() {
        let array = &arguments.array;
        return Err(Failure::refused(format!(
            "the journal holds nothing for array {array}; there is nothing to discard"
        )));
    }
    let loss = LossEstimate::of(&found.journal, &uuids);
    let damage = found.damage.map(|error| error.to_string());
    let behind = if damage.is_some() { " before the damage, and an unknown number after it" } else { "" };
    let what = format!("{}{behind}", loss.text());
    let model = |given_up, text| LossModel { damage: damage.clone(), ..loss.model(given_up, text) };
    if !arguments.lost {
        let remedy = match &damage {
            Some(damage) => format!("add --lost to discard all of it: {damage}"),
            None => "start the array with it to get them, or add --lost to discard them".into(),
        };
        let text = format!("the journal holds {what} for {}; {remedy}", arguments.array);
        return Ok(print_loss(context, &model(false, text)));
    }
    for tally in &known {
        discard(&mut found, tally.set_uuid)?;
    }
    let others = if damage.is_some() { still_hurt(&found, &uuids, context) } else { String::new() };
    Ok(print_loss(context, &model(true, format!("discarded: {what}{others}"))))
}

/// The arrays that still have data in a damaged log, as text. The journal can be used again when there are no such
/// arrays.
fn still_hurt(found: &FoundDevices, given_up: &[Uuid], context: &Context) -> String {
    let mut journal = model_of(found);
    name_arrays(&mut journal, &context.registry);
    let is_given_up = |array: &JournalArrayModel| given_up.iter().any(|uuid| uuid.to_string() == array.uuid);
    let others =
        journal.arrays.iter().filter(|array| array.state != JournalArrayWord::Discarded && !is_given_up(array));
    let names: Vec<&str> = others.map(|array| array.name.as_ref().unwrap_or(&array.uuid).as_str()).collect();
    if names.is_empty() {
        return "; the journal can be used again".into();
    }
    format!("; the journal can be used again when the entries of {} are discarded, too", names.join(" and "))
}

/// If nothing was changed, the exit code is that of a refusal, so that a script does not take the order for done.
fn print_loss(context: &Context, loss: &LossModel) -> Exit {
    let done = loss.given_up.then_some(loss.text.as_str());
    let body = JournalDiscardBody { done, array: None, loss };
    if loss.given_up {
        context.output.answer(Exit::Fine, &body, &loss.text)
    } else {
        context.output.fail_with(&Failure::refused(&loss.text), &body)
    }
}

/// The error if only one of two devices is given, and no option says that the other one is lost.
fn half(found: &FoundDevices, remedy: &str) -> Failure {
    let whole = found.superblocks.iter().position(|superblock| !superblock.unfinished).unwrap_or(0);
    let also = found
        .devices
        .get(1 - whole)
        .map_or_else(String::new, |other| format!(" ({} did not finish joining and does not count)", other.spec.text));
    Failure::refused(format!(
        "journal {}: this is copy {} of a journal on two devices, and the other one is missing{also}. It may hold acknowledged \
         writes that this one lacks; {remedy}, or if the other one is lost for good, add --alone",
        found.devices[whole].spec.text, found.superblocks[whole].mirror
    ))
}

fn adopt_journal(arguments: &JournalAdoptArguments, context: &Context) -> Outcome {
    let usage = if arguments.yes { Use::Exclusive } else { Use::ReadExclusive };
    let mut found = look(&specs(&arguments.devices)?, options(usage), &LookFor::default())?;
    if found.is_half() && !arguments.alone {
        return Err(half(&found, "name both"));
    }
    let controller = context.registry.controller()?;
    if arguments.yes {
        adopt(&mut found, controller)?;
    }
    let superblock = &found.journal.superblock;
    let is_own = superblock.controller == controller;
    let body = JournalAdoptBody {
        adopted: arguments.yes,
        uuid: superblock.journal.to_string(),
        devices: found.devices.iter().map(|device| device.spec.text.clone()).collect(),
        controller: controller.to_string(),
    };
    let (exit, text) = if arguments.yes {
        (Exit::Fine, format!("journal {} belongs to this controller now", body.uuid))
    } else if is_own && !found.is_half() {
        (Exit::Fine, format!("journal {} belongs to this controller already: nothing to do", body.uuid))
    } else if is_own {
        let text = format!(
            "journal {} belongs to this controller already; add --yes to use this device alone: the other one is then \
             refused if it comes back",
            body.uuid
        );
        (Exit::Refused, text)
    } else {
        let text = format!(
            "journal {} belongs to controller {}, this one is {controller}; if that one does not use it any more, add --yes",
            body.uuid, superblock.controller
        );
        (Exit::Refused, text)
    };
    Ok(context.output.answer(exit, &body, &text))
}
