//! `openraid create`: creates an array.
//!
//! All errors are found before the first write: members are opened and probed, and the whole array is planned. Then
//! foreign signatures are wiped (if the user requested it), and the engine writes the superblocks.

use openraid_core::admin::Unprotected;
use openraid_core::array::assemble::Assembly;
use openraid_format::{MdLevel, MinorVersion};
use openraid_runtime::member::{MemberSpec, OpenedMember, Place, ProbedMember};
use openraid_sys::Use;
use openraid_units::{ArrayLevel, Bytes, Sectors};
use serde::Serialize;

use super::Context;
use crate::arguments::CreateArguments;
use crate::care::shingled;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::quiet_service;
use crate::kept_settings::KeptSettings;
use crate::members::contents::contents;
use crate::members::lack_of_room::short_of_room;
use crate::members::{lasting_spec, open_every, options, word_of, NewFiles, MISSING};
use crate::model::LevelWord;
use crate::new_arrays::wiping;
use crate::new_arrays::{forget_what_was_inside, CreateOptions, NewShape};
use crate::quantity::{counted, human};
use crate::registry::RegisteredArray;
use crate::server::array_model::{survives_losses, unprotected};
use crate::server::joining_members::check_free;
use crate::words::consistency::{bitmap_wanted, ConsistencyWord};
use crate::words::{self, from_md, layout_text};
use openraid_core::slot_set::SlotSet;
use openraid_status::shell_quoting::{command, command_with};

/// The new array, or the one that would be made.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct CreateBody {
    /// Name of the array.
    name: String,
    /// UUID of the array; null for a dry run.
    uuid: Option<String>,
    /// Name of the level, such as `raid5`.
    #[schema(value_type = String)]
    level: LevelWord,
    /// mdadm's name of the layout, if the level has layouts.
    layout: Option<String>,
    /// Size of a chunk; null if the level has no chunks.
    chunk_bytes: Option<u64>,
    /// Number of spans of a nested array; 1 for any other array.
    spans: usize,
    /// Number of slots, of all spans together.
    slots: usize,
    /// Number of slots that were left vacant.
    missing: usize,
    /// Number of spares.
    spares: usize,
    /// Size of the array for hosts.
    size_bytes: u64,
    /// Number of members that can be lost, whichever they are, after the initial sync.
    survives: u32,
    /// Does it have a write-intent bitmap?
    bitmap: bool,
    /// Does it have a partial parity log?
    ppl: bool,
    /// Will it use the controller's journal?
    journalled: bool,
    /// Does an initial sync follow when it is served?
    first_sync: bool,
    /// Paths and addresses of the members, spares last.
    members: Vec<String>,
    /// Members that held something else before, which is lost.
    overwritten: Vec<String>,
    /// Drives that are poor members, and why; file systems without enough room for the sparse members on them.
    warnings: Vec<String>,
    /// Was this a dry run, which writes nothing?
    dry_run: bool,
}

/// Runs the verb.
///
/// # Errors
/// The reason why the array cannot be created. Nothing was written then, unless the engine itself had begun to write.
pub fn run(arguments: &CreateArguments, context: &Context) -> Outcome {
    let specs = specs(arguments)?;
    let bitmap = arguments.bitmap.map(|word| word == crate::arguments::BitmapWord::Internal);
    let bitmap = bitmap_wanted(arguments.consistency_policy, bitmap)?;
    check_journalled(arguments)?;
    check_name(arguments, context)?;
    if arguments.level == ArrayLevel::Jbod {
        return remember_raw(arguments, context, &specs);
    }
    let shape = NewShape::of(&creation(arguments, bitmap))?;
    let names: Vec<String> = specs.iter().map(|spec| spec.text.clone()).collect();
    if let Some(size) = arguments.file_size {
        NewFiles::check(&specs, size)?;
        let plans = shape.plan(&vec![size.sectors_floor(); specs.len()], &names);
        let plans = plans.map_err(|failure| failure.of(format!("--file-size {}", size.get())))?;
        if arguments.dry_run {
            return Ok(print_body(context, &body(arguments, &shape, &plans, names, Vec::new()), Exit::Fine));
        }
    }
    let files = match arguments.file_size {
        Some(size) => Some(new_files(arguments, &specs, size)?),
        None => None,
    };
    check_there(&specs)?;
    // With --dry-run the members are also opened for writing, so that the user sees the errors of a real run.
    let members = open_every(&specs, options(Use::Exclusive))?;
    let overwrite = arguments.overwrite && arguments.yes;
    let mut taken = Vec::new();
    let mut overwritten = Vec::new();
    for (_, probed) in &members {
        if let Err(failure) = check_free(probed, overwrite) {
            taken.push(failure.text());
        } else if !probed.look.is_blank() {
            overwritten.push(format!("{}: {}", probed.spec, contents(probed)));
        }
    }
    if !taken.is_empty() {
        return Err(Failure::refused(taken.join("\n  ")));
    }
    let sizes: Vec<Sectors> = members.iter().map(|(opened, _)| opened.info.capacity).collect();
    let plans = shape.plan(&sizes, &names)?;
    let mut body = body(arguments, &shape, &plans, names, overwritten);
    let warnings = members.iter().filter_map(|(_, probed)| warning_of(probed)).collect();
    body.warnings = if body.survives > 0 { warnings } else { Vec::new() };
    body.warnings.extend(short_of_room(body.members.iter().map(String::as_str)));
    body.warnings.iter().for_each(|warning| context.output.warn(warning));
    if arguments.dry_run {
        return Ok(print_body(context, &body, Exit::Fine));
    }
    make(&shape, &plans, members, &specs, &mut body)?;
    if let Some(files) = files {
        files.keep();
    }
    let exit = remember(context, &body);
    Ok(print_body(context, &body, exit))
}

/// A drive that is a poor member of an array with redundancy.
fn warning_of(probed: &ProbedMember) -> Option<String> {
    let why = shingled::warning(probed.names.model.as_deref(), probed.names.zoned.as_deref())?;
    Some(format!("{}: {why}", probed.spec))
}

fn specs(arguments: &CreateArguments) -> Result<Vec<MemberSpec>, Failure> {
    let there = arguments.members.iter().filter(|text| *text != MISSING);
    there.chain(&arguments.spare).map(|text| lasting_spec(text)).collect()
}

fn check_name(arguments: &CreateArguments, context: &Context) -> Result<(), Failure> {
    let name = &arguments.name;
    if context.registry.find(name)?.is_some() {
        return Err(Failure::refused(format!(
            "an array named {name} is remembered already; choose another name, or forget that one with `{}`",
            command("forget", [name])
        )));
    }
    Ok(())
}

/// Refuses the journal for an array that it can never protect.
fn check_journalled(arguments: &CreateArguments) -> Result<(), Failure> {
    let mirror = matches!(words::md_level(arguments.level), Some(MdLevel::Raid1 | MdLevel::Raid10));
    let why = if arguments.consistency_policy != Some(ConsistencyWord::ControllerJournal) {
        return Ok(());
    } else if arguments.level == ArrayLevel::Jbod {
        "raw drives have no metadata that could name a journal"
    } else if mirror && arguments.metadata == MinorVersion::V1_0 {
        unprotected(Unprotected::MetadataAtEnd)
    } else {
        return Ok(());
    };
    Err(Failure::usage(format!(
        "--consistency-policy controller-journal: the journal cannot protect this array: {why}"
    )))
}

fn creation(arguments: &CreateArguments, bitmap: Option<bool>) -> CreateOptions<'_> {
    CreateOptions {
        name: &arguments.name,
        level: arguments.level,
        layout: arguments.layout.as_deref(),
        chunk: arguments.chunk,
        spans: arguments.spans,
        members: &arguments.members,
        spares: &arguments.spare,
        size: arguments.size,
        assume_clean: arguments.assume_clean,
        bitmap,
        ppl: arguments.consistency_policy == Some(ConsistencyWord::Ppl),
        minor: arguments.metadata,
    }
}

/// Refuses files that do not exist, and names the option that creates them.
fn check_there(specs: &[MemberSpec]) -> Result<(), Failure> {
    let is_missing = |spec: &&MemberSpec| {
        let Place::Path(path) = &spec.place else { return false };
        path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    let missing = specs.iter().filter(is_missing).map(|spec| {
        let failure = Failure::refused("there is no such file or device").of(spec);
        failure.remedy("--file-size SIZE makes new files of all members")
    });
    let missing: Vec<Failure> = missing.collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Failure::joined(&missing, Exit::Refused))
    }
}

fn make(
    shape: &NewShape,
    plans: &[Assembly],
    members: Vec<(OpenedMember, ProbedMember)>,
    specs: &[MemberSpec],
    body: &mut CreateBody,
) -> Result<(), Failure> {
    let service = quiet_service()?;
    let handle = service.handle();
    let members = if body.overwritten.is_empty() {
        members
    } else {
        for (opened, probed) in members {
            wiping::wipe(&handle, opened, &wiping::all_areas(&probed))?;
        }
        open_every(specs, options(Use::Exclusive))?
    };
    let opened = members.into_iter().map(|(opened, _)| opened).collect();
    let started = shape.make(&handle, plans, opened)?;
    body.uuid = Some(started.superblock.set_uuid.to_string());
    let status = handle.status()?;
    if let Some(view) = status.arrays.iter().find(|view| view.status.array == started.array) {
        body.size_bytes = view.status.capacity.bytes().get();
    }
    forget_what_was_inside(&handle, &started, body.size_bytes, shape.assume_clean)?;
    handle.stop_and_release(&started)?;
    service.stop();
    Ok(())
}

fn body(
    arguments: &CreateArguments,
    shape: &NewShape,
    plans: &[Assembly],
    members: Vec<String>,
    overwritten: Vec<String>,
) -> CreateBody {
    let slots: usize = shape.spans.iter().map(|span| span.slots.len()).sum();
    let there: usize = shape.spans.iter().map(|span| span.slots.iter().flatten().count()).sum();
    let present = |plan: &Assembly| SlotSet::first_n(plan.geometry.members()).minus(plan.missing);
    let size = shape.size(plans);
    let level = match shape.level {
        ArrayLevel::Raid50 | ArrayLevel::Raid60 | ArrayLevel::Single => shape.level.into(),
        _ => from_md(shape.md).into(),
    };
    CreateBody {
        name: arguments.name.clone(),
        uuid: None,
        level,
        layout: layout_text(shape.md, shape.layout),
        chunk_bytes: (!shape.chunk.is_zero()).then(|| shape.chunk.bytes().get()),
        spans: shape.spans.len(),
        slots,
        missing: slots - there,
        spares: arguments.spare.len(),
        size_bytes: size.bytes().get(),
        survives: plans.iter().map(|plan| survives_losses(&plan.geometry, present(plan))).min().unwrap_or(0),
        bitmap: plans.iter().any(|plan| plan.bitmap.is_some()),
        ppl: plans.iter().any(|plan| plan.ppl.is_some()),
        journalled: arguments.consistency_policy == Some(ConsistencyWord::ControllerJournal),
        first_sync: plans.iter().any(|plan| plan.resync_from.is_some()),
        members,
        overwritten,
        warnings: Vec::new(),
        dry_run: arguments.dry_run,
    }
}

fn print_body(context: &Context, body: &CreateBody, exit: Exit) -> Exit {
    let mut lines = Vec::new();
    let verb = if body.dry_run { "would be created" } else { "created" };
    let mut shape = vec![body.level.to_string(), counted(body.slots as u64, "slot", "slots")];
    if body.spans > 1 {
        shape.push(counted(body.spans as u64, "span", "spans"));
    }
    if let Some(layout) = &body.layout {
        shape.push(layout.clone());
    }
    if let Some(chunk) = body.chunk_bytes {
        shape.push(format!("chunk {}", human(Bytes(chunk))));
    }
    if body.bitmap {
        shape.push("bitmap".into());
    }
    if body.ppl {
        shape.push("partial parity log".into());
    }
    if body.spares > 0 {
        shape.push(counted(body.spares as u64, "spare", "spares"));
    }
    lines.push(format!("array {} {verb}: {}", body.name, shape.join(", ")));
    lines.push(format!("  size      {} ({} bytes)", human(Bytes(body.size_bytes)), body.size_bytes));
    let survives = crate::output::array::survives_text(body.survives);
    let when = if body.first_sync && body.survives > 0 { "after the initial sync: " } else { "" };
    lines.push(format!("  survives  {when}{survives}"));
    if let Some(uuid) = &body.uuid {
        lines.push(format!("  uuid      {uuid}"));
    }
    let lost = if body.dry_run { "would be lost" } else { "lost" };
    lines.extend(body.overwritten.iter().map(|line| format!("  {lost}  {line}")));
    if body.missing > 0 {
        lines.push(format!("  {} without a member: it starts degraded", counted(body.missing as u64, "slot", "slots")));
    }
    if body.first_sync {
        lines.push("  the initial sync starts when the array is first served".into());
    }
    let named = word_of(&body.name, body.uuid.as_deref());
    if body.dry_run {
        lines.push("nothing was written".into());
    } else if context.servers.connect().is_ok_and(|servers| !servers.is_empty()) {
        let members = body.members.iter().map(String::as_str);
        lines.push(format!("the running server serves it after: {}", command("assemble", members)));
    } else if body.journalled {
        lines.push("its writes go through the controller's journal".into());
        lines.push(format!("serve it with: {}", command_with("serve", [named], "--journal DEVICE")));
    } else {
        lines.push(format!("serve it with: {}", command("serve", [named])));
    }
    context.output.answer(exit, body, &lines.join("\n"))
}

/// Record the array. If this is not possible, the user is told.
fn remember(context: &Context, body: &CreateBody) -> Exit {
    let entry = RegisteredArray {
        name: body.name.clone(),
        uuid: body.uuid.clone(),
        level: body.level.clone(),
        members: body.members.clone(),
        kept: KeptSettings { journalled: body.journalled, ..KeptSettings::default() },
    };
    // Arrays whose members were overwritten are no more. Raw drives keep what they hold.
    let forgotten = if body.uuid.is_some() { context.registry.forget_members(&body.members) } else { Ok(()) };
    let kept = forgotten.and_then(|()| context.registry.remember(entry));
    if let Err(failure) = &kept {
        context.output.warn(&format!("the array was created, but: {}; serve it by naming its members", failure.text()));
    }
    kept.map_or(Exit::Error, |()| Exit::Fine)
}

/// New files for the members: sparse ones, or with all of their space.
fn new_files(arguments: &CreateArguments, specs: &[MemberSpec], size: Bytes) -> Result<NewFiles, Failure> {
    if arguments.allocate {
        return NewFiles::make_filled("--file-size", specs, size);
    }
    NewFiles::make(specs, size)
}

/// Raw drives have no metadata. They are opened to check that this is possible, and are recorded.
fn remember_raw(arguments: &CreateArguments, context: &Context, specs: &[MemberSpec]) -> Outcome {
    let only_for_arrays = [
        (arguments.layout.is_some(), "--layout"),
        (arguments.chunk.is_some(), "--chunk"),
        (arguments.spans.is_some(), "--spans"),
        (!arguments.spare.is_empty(), "--spare"),
        (arguments.bitmap.is_some(), "--bitmap"),
        (arguments.size.is_some(), "--size"),
        (arguments.members.iter().any(|text| text == MISSING), MISSING),
    ];
    if let Some((_, what)) = only_for_arrays.iter().find(|(given, _)| *given) {
        return Err(Failure::usage(format!("jbod serves drives as they are, so {what} has no meaning; leave it out")));
    }
    let (files, members) = match arguments.file_size {
        Some(size) if arguments.dry_run => (NewFiles::check(specs, size).map(|()| None)?, Vec::new()),
        Some(size) => (Some(new_files(arguments, specs, size)?), open_every(specs, options(Use::ReadExclusive))?),
        None => {
            check_there(specs)?;
            (None, open_every(specs, options(Use::ReadExclusive))?)
        }
    };
    let planned = arguments.file_size.map_or(Sectors::ZERO, |size| size.sectors_floor() * specs.len() as u64);
    let there: Sectors = members.iter().map(|(opened, _)| opened.info.capacity).sum();
    let size = if members.is_empty() { planned } else { there };
    let body = CreateBody {
        name: arguments.name.clone(),
        uuid: None,
        level: ArrayLevel::Jbod.into(),
        layout: None,
        chunk_bytes: None,
        spans: 1,
        slots: specs.len(),
        missing: 0,
        spares: 0,
        size_bytes: size.bytes().get(),
        survives: 0,
        bitmap: false,
        ppl: false,
        journalled: false,
        first_sync: false,
        members: specs.iter().map(|spec| spec.text.clone()).collect(),
        overwritten: Vec::new(),
        warnings: Vec::new(),
        dry_run: arguments.dry_run,
    };
    let mut exit = Exit::Fine;
    if !arguments.dry_run {
        drop(members);
        if let Some(files) = files {
            files.keep();
        }
        exit = remember(context, &body);
    }
    Ok(print_body(context, &body, exit))
}
