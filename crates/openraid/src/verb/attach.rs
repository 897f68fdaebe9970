//! `openraid attach`: an array becomes a disk of this machine, by the best way that its kernel has.

use serde::Serialize;

use super::Context;
use crate::arguments::AttachArguments;
use crate::control::offline_text;
use crate::disk::{
    self, attached_disks, device_name, keeper, systemd_units, ArrayIdentity, ArrayOffer, AttachWay, AttachedDisk,
};
use crate::failure::{Exit, Failure, Outcome};
use crate::model::{AccessWord, ArrayModel, HealthWord};
use crate::output::table::TextTable;
use crate::quantity::human;
use crate::registry::is_root;
use openraid_status::shell_quoting::command;
use openraid_units::Bytes;

/// A disk.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct DiskBody {
    /// Name of the array when it was attached.
    array: String,
    /// UUID of the array; null for a raw drive, and for a disk of an older version.
    uuid: Option<String>,
    /// Its name, which stays the same.
    link: String,
    /// The kernel's device.
    device: String,
    /// How it is attached: `nvme-tcp`, `nbd`, `fuse`, or `qemu-nbd` by an older version or by hand.
    way: AttachWay,
    /// Size of the disk.
    size_bytes: u64,
    /// Does the server refuse writes?
    read_only: bool,
    /// Is a keeper at work? Only a disk by `nbd` needs one.
    kept: bool,
    /// What uses it now: a mount, swap, another device, or a process.
    used_by: Option<String>,
}

/// A way that was not taken.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct NotTaken {
    /// The way.
    way: AttachWay,
    /// Why it was not taken.
    why: String,
}

/// An attached array.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AttachBody {
    /// The disk.
    disk: DiskBody,
    /// Was it attached already?
    already: bool,
    /// Better ways, and why they were not taken.
    not_taken: Vec<NotTaken>,
    /// The unit that attaches it at every boot, if it was asked for.
    unit: Option<String>,
}

/// The attached arrays.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct AttachListBody {
    /// The disks, by the names of their arrays.
    disks: Vec<DiskBody>,
}

impl DiskBody {
    fn of(disk: &AttachedDisk) -> Self {
        Self {
            array: disk.record.name().to_owned(),
            uuid: disk.record.uuid.clone(),
            link: disk.link().display().to_string(),
            device: disk.path().display().to_string(),
            way: disk.record.way,
            size_bytes: disk.size_bytes(),
            read_only: disk.is_read_only(),
            kept: disk.record.way == AttachWay::Nbd && keeper::runs(disk),
            used_by: disk.user(),
        }
    }
}

/// Runs the verb.
///
/// # Errors
/// The array cannot be attached; the text says why and what helps.
pub fn run(arguments: &AttachArguments, context: &Context) -> Outcome {
    let Some(word) = &arguments.array else { return Ok(list(context)) };
    must_be_root()?;
    if arguments.keep {
        return keep(word, arguments.inherits, context);
    }
    if arguments.unit {
        return by_unit(word, context);
    }
    attach(word, arguments, context)
}

fn by_unit(word: &str, context: &Context) -> Outcome {
    let (identity, array) = known(word, context)?;
    let already = disk::find(&identity).is_some();
    if !already {
        usable(word, array, context)?;
    }
    let unit = systemd_units::enable(&identity.names[0])?;
    let disk = disk::find(&identity).ok_or_else(|| Failure::failed(format!("{unit} runs and has attached no disk")))?;
    Ok(answer(&disk, Attached { already, not_taken: Vec::new(), unit: Some(unit) }, context))
}

/// How a disk came to be attached.
struct Attached {
    already: bool,
    not_taken: Vec<NotTaken>,
    unit: Option<String>,
}

fn attach(word: &str, arguments: &AttachArguments, context: &Context) -> Outcome {
    let _lock = lock()?;
    disk::sweep();
    let (identity, array) = known(word, context)?;
    let asked = arguments.via.as_deref().and_then(AttachWay::named);
    if let Some(disk) = disk::find(&identity) {
        if let Some(way) = asked.filter(|way| *way != disk.record.way) {
            let (named, is) = (command("detach", [word]), disk.record.way.word());
            return Err(Failure::refused(format!(
                "{word} is attached by {is} already, not by {}; `{named}` first",
                way.word()
            )));
        }
        complete(&disk, None, arguments.by_unit, context)?;
        return Ok(answer(&disk, Attached { already: true, not_taken: Vec::new(), unit: None }, context));
    }
    if let Some((dead, user)) = disk::in_the_way(&identity) {
        let path = dead.path().display().to_string();
        return Err(Failure::refused(format!(
            "{word} was {path}, which is dead, and it is in use: {user}; end that first"
        )));
    }
    let array = usable(word, array, context)?;
    let offer = ArrayOffer::of(&array);
    if let Some(other) = device_name::taken(&offer.identity.names[0]) {
        let (link, name) = (other.link().display().to_string(), other.record.name().to_owned());
        return Err(Failure::refused(format!(
            "{word}: its link {link} is that of array {name}; rename one of the two"
        )));
    }
    if array.health == HealthWord::Degraded {
        let show = command("show", [&array.name]);
        context.output.warn(&format!("{} is degraded: `{show}` says what helps", array.name));
    }
    let (disk, stream, not_taken) = by_best_way(&offer, asked)?;
    complete(&disk, stream, arguments.by_unit, context)?;
    Ok(answer(&disk, Attached { already: false, not_taken, unit: None }, context))
}

type NewDisk = (AttachedDisk, Option<disk::nbd::Stream>, Vec<NotTaken>);

fn by_best_way(offer: &ArrayOffer, asked: Option<AttachWay>) -> Result<NewDisk, Failure> {
    let mut not_taken = Vec::new();
    for way in AttachWay::CHOICES.into_iter().filter(|way| asked.is_none_or(|asked| asked == *way)) {
        match disk::attach(way, offer) {
            Ok((disk, stream)) => return Ok((disk, stream, not_taken)),
            Err(why) => not_taken.push(NotTaken { way, why }),
        }
    }
    let whys: Vec<String> = not_taken.iter().map(|no| format!("\n  not by {}: {}", no.way.word(), no.why)).collect();
    Err(Failure::failed(format!("{} is not attached:{}", offer.identity.names[0], whys.concat())))
}

/// Makes what a disk needs besides its device.
fn complete(
    disk: &AttachedDisk,
    stream: Option<disk::nbd::Stream>,
    is_kept: bool,
    context: &Context,
) -> Result<(), Failure> {
    if disk.record.way != AttachWay::QemuNbd {
        disk.write().map_err(|error| Failure::failed(format!("{}: {error}", attached_disks::FOLDER)))?;
        device_name::make(disk).map_err(Failure::failed)?;
    }
    if disk.record.way == AttachWay::Nbd && !is_kept {
        keeper::start(disk, stream, context.common.control.as_deref())
            .map_err(|error| Failure::failed(format!("the keeper does not start: {error}")))?;
    }
    Ok(())
}

fn answer(disk: &AttachedDisk, attached: Attached, context: &Context) -> Exit {
    let body = DiskBody::of(disk);
    let again = if attached.already { " already" } else { "" };
    let by = if body.way == AttachWay::QemuNbd { ", which stays until it is detached" } else { "" };
    let link = if std::path::Path::new(&body.link).exists() { body.link.clone() } else { body.device.clone() };
    let mut text = format!("{} is {link}{again} ({}), by {}{by}", body.array, body.device, body.way.word());
    if body.read_only {
        text += "; the server refuses writes: it is read-only";
    }
    for no in &attached.not_taken {
        text += &format!("\nnot by {}: {}", no.way.word(), no.why);
    }
    if let Some(unit) = &attached.unit {
        text += &format!(
            "\n{unit} attaches it at every boot; a line of /etc/fstab:\n{}",
            systemd_units::fstab_line(&body.array)
        );
    }
    let Attached { already, not_taken, unit } = attached;
    context.output.answer(Exit::Fine, &AttachBody { disk: body, already, not_taken, unit }, &text)
}

fn list(context: &Context) -> Exit {
    let disks: Vec<DiskBody> = attached_disks::all().iter().filter(|disk| disk.is_alive()).map(DiskBody::of).collect();
    let mut table = TextTable::new(&["ARRAY", "DISK", "DEVICE", "BY", "SIZE", "USED BY"]);
    for disk in &disks {
        let used = disk.used_by.clone().unwrap_or_else(|| "-".into());
        let (way, size) = (disk.way.word().to_owned(), human(Bytes(disk.size_bytes)));
        table.row([disk.array.clone(), disk.link.clone(), disk.device.clone(), way, size, used]);
    }
    let text = match disks.is_empty() {
        true => "no array is attached; `openraid attach NAME` makes one a disk of this machine".to_owned(),
        false => table.text(),
    };
    context.output.answer(Exit::Fine, &AttachListBody { disks }, &text)
}

fn keep(word: &str, inherits: bool, context: &Context) -> Outcome {
    let mut all = attached_disks::all().into_iter().filter(AttachedDisk::is_alive);
    match all.find(|disk| disk.record.identity().is_called(word)) {
        Some(disk) if disk.record.way == AttachWay::Nbd => keeper::run(&disk, inherits, &context.servers),
        Some(disk) => {
            context.output.say(&format!("{word} is attached by {}: it needs no keeper", disk.record.way.word()));
            Ok(Exit::Fine)
        }
        None => {
            context.output.say(&format!("{word} is not attached: there is nothing to keep"));
            Ok(Exit::Fine)
        }
    }
}

/// # Errors
/// This is another user.
pub(super) fn must_be_root() -> Result<(), Failure> {
    if is_root() {
        return Ok(());
    }
    Err(Failure::failed("only root may attach and detach: the kernel makes the disk; try it with sudo"))
}

/// # Errors
/// The folder of the records cannot be written.
pub(super) fn lock() -> Result<std::fs::File, Failure> {
    attached_disks::lock().map_err(|error| Failure::failed(format!("{}: {error}", attached_disks::FOLDER)))
}

/// An array that is known by a name, an export or a UUID, and its state if a server has it.
type NamedArray = (ArrayIdentity, Option<ArrayModel>);

/// # Errors
/// No server, no registry and no record knows it.
pub(super) fn known(word: &str, context: &Context) -> Result<NamedArray, Failure> {
    // An attached array is known without a server.
    for mut server in context.servers.connect().unwrap_or_default() {
        for array in server.list_wanted().unwrap_or_default() {
            let identity = ArrayIdentity::of_model(&array);
            if identity.is_called(word) {
                return Ok((identity, Some(array)));
            }
        }
    }
    let remembered = context.registry.entries_if_readable().into_iter().map(|entry| {
        let uuid = entry.uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        ArrayIdentity { uuid, names: vec![entry.name] }
    });
    let attached = attached_disks::all().into_iter().map(|disk| disk.record.identity());
    let mut all = attached.chain(remembered);
    match all.find(|identity| identity.is_called(word)) {
        Some(identity) => Ok((identity, None)),
        None => Err(not_served(word, context)),
    }
}

/// Why no server has it.
fn not_served(word: &str, context: &Context) -> Failure {
    context
        .servers
        .must_serve(word)
        .err()
        .unwrap_or_else(|| Failure::cannot_tell(format!("{word}: the server went away; try again")))
}

/// The array, if hosts may use it now.
fn usable(word: &str, array: Option<ArrayModel>, context: &Context) -> Result<ArrayModel, Failure> {
    let Some(array) = array else { return Err(not_served(word, context)) };
    let name = &array.name;
    if let Some(why) = &array.refused {
        let serve = command("serve", [name]);
        return Err(Failure::refused(format!("{name}: hosts are refused: {why}; then `{serve} --after-loss`")));
    }
    match (array.health, array.access) {
        (HealthWord::Offline, _) => Err(Failure::new(Exit::Failed, offline_text(&array))),
        (HealthWord::Failed, _) => {
            let doctor = command("doctor", [name]);
            Err(Failure::array_failed(format!(
                "{name} has failed, so a disk of it would too; `{doctor}` says what helps"
            )))
        }
        (_, AccessWord::Blocked) => Err(Failure::refused(format!(
            "{name}: its hosts are blocked; set arrays.{name}.access in the configuration"
        ))),
        _ => Ok(array),
    }
}
