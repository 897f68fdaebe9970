//! `openraid examine`: prints the metadata of a member. Nothing is written, even if a server uses the member.

use openraid_core::array::assemble::PplArea;
use openraid_format::{md0_lba, BitmapHeader, DeviceRole, ForeignKind, Superblock};
use openraid_runtime::member::{MemberSpec, ProbedMember, Signature};
use openraid_status::ReshapeModel;
use openraid_sys::Use;
use openraid_units::{Bytes, Sectors};
use serde::Serialize;

use super::Context;
use crate::arguments::ExamineArguments;
use crate::failure::{Exit, Outcome};
use crate::members::{is_md0, open_some, options, read_md0, spec, unfit, Unfit};
use crate::model::{JournalModel, LevelWord};
use crate::on_disk::lockless::{self, Lockless};
use crate::on_disk::sets::no_member;
use crate::output::shape;
use crate::output::table::TextTable;
use crate::quantity::{counted, human, sold, utc};
use crate::words::layout_text;
use crate::words::level_word;

/// The content of members.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ExamineBody {
    /// What was found on each member.
    members: Vec<ExaminedMember>,
}

/// The content of a member.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ExaminedMember {
    /// Path or address of the member.
    member: String,
    /// Why the member cannot be read, in a sentence.
    error: Option<String>,
    /// Size of the member.
    size_bytes: Option<u64>,
    /// Logical block of the member.
    block_bytes: Option<u64>,
    /// The superblock, if there is a valid one.
    superblock: Option<SuperblockBody>,
    /// Why there is no valid superblock, in a sentence.
    superblock_error: Option<String>,
    /// The write-intent bitmap, if the member has a valid one.
    bitmap: Option<BitmapBody>,
    /// Why there is no valid bitmap, in a sentence.
    bitmap_error: Option<String>,
    /// The lockless bitmap, if the member has one. openraid cannot use it.
    lockless_bitmap: Option<LocklessBody>,
    /// The partial parity log, if the array has one.
    ppl: Option<PplBody>,
    /// Entries of the bad-block log.
    bad_ranges: Vec<BadRangeBody>,
    /// Why there is no valid bad-block log.
    bad_blocks_error: Option<String>,
    /// Other content of the member, such as a file system or a partition table.
    found: Vec<FindingBody>,
    /// The journal of which it is a device.
    journal: Option<JournalModel>,
    /// Why that journal cannot be read, in a sentence.
    journal_error: Option<String>,
}

/// A superblock.
#[derive(Serialize, utoipa::ToSchema)]
struct SuperblockBody {
    /// Version of the metadata: `1.0`, `1.1` or `1.2`.
    version: String,
    /// Name of the array in the superblock, with the host's name if it is there.
    array: String,
    /// UUID of the set.
    uuid: String,
    /// Name of the level, such as `raid5`.
    #[schema(value_type = String)]
    level: LevelWord,
    /// Number of the level, as md stores it.
    level_number: i32,
    /// mdadm's name of the layout, if the level has layouts.
    layout: Option<String>,
    /// Number of the layout, as md stores it.
    layout_number: u32,
    /// Size of a chunk; 0 if the level has no chunks.
    chunk_bytes: u64,
    /// Number of slots of the set.
    slots: u16,
    /// Size of each member that the array uses.
    used_bytes: u64,
    /// First sector of the data area on this member.
    data_offset_sectors: u64,
    /// Size of the data area on this member.
    data_bytes: u64,
    /// Sector of this member at which the superblock is.
    super_offset_sectors: u64,
    /// Number that md gave this member; it is not the slot.
    device_number: u32,
    /// UUID of this member.
    device_uuid: String,
    /// Its role in the array, in words.
    role: String,
    /// Slot of this member, if it has one.
    slot: Option<u16>,
    /// Event count of the superblock. It grows with each change of the metadata.
    events: u64,
    /// Is the clean mark set: were parity and copies in sync when it was written?
    clean: bool,
    /// The position of a resync; null after its end.
    resync_offset_sectors: Option<u64>,
    /// The position up to which this member is filled; null if it is full.
    recovery_offset_sectors: Option<u64>,
    /// When the array was made: seconds since 1970.
    created: u64,
    /// When the superblock was written: seconds since 1970.
    updated: u64,
    /// The member's flags, by mdadm's names: `write-mostly`, `failfast`.
    flags: Vec<String>,
    /// Feature bits of the superblock, as a number.
    features: u32,
    /// Feature bits that this program does not know, in words.
    unsupported_features: Option<String>,
    /// Its logical block, as written by kernels since 6.19.
    logical_block_bytes: Option<u64>,
    /// Number of corrected reads, as md counts them.
    corrected_reads: u32,
    /// The change of shape that is under way.
    reshape: Option<ReshapeModel>,
    /// First sector of the data area of the new shape on this member, during a change of shape.
    new_data_offset_sectors: Option<u64>,
    /// The roles of all members, as `mdadm --examine` writes them.
    roles: String,
}

/// A write-intent bitmap.
#[derive(Serialize, utoipa::ToSchema)]
struct BitmapBody {
    /// Event count of the superblock that the bitmap was written with.
    events: u64,
    /// Event count at which bits were last cleared.
    events_cleared: u64,
    /// Size of a region: bytes of data for each bit.
    chunk_bytes: u32,
    /// Number of regions, one for each bit.
    regions: u64,
    /// Number of regions whose bit is set: they may be out of sync after a crash.
    marked: u64,
}

/// A lockless bitmap, as kernels since 6.18 have.
#[derive(Serialize, utoipa::ToSchema)]
struct LocklessBody {
    /// Event count of the superblock that the bitmap was written with.
    events: u64,
    /// Bytes of data for each entry.
    chunk_bytes: u64,
    /// Number of entries, one for each range of data.
    chunks: u64,
    /// Entries for data that were never written.
    unwritten: u64,
    /// Entries for data that are not in sync.
    unsynced: u64,
}

/// A partial parity log.
#[derive(Serialize, utoipa::ToSchema)]
struct PplBody {
    /// `valid`, `no log` or `unreadable`.
    state: String,
    /// Highest generation of the log's headers; 0 if the set was not consistent when it was written.
    generation: Option<u64>,
    /// Number of interrupted writes that the log describes.
    writes: Option<usize>,
}

/// A range that cannot be read.
#[derive(Serialize, utoipa::ToSchema)]
struct BadRangeBody {
    /// Its first sector, in the data of the member.
    at_sector: u64,
    /// Length of the range.
    sectors: u64,
}

/// Other content of a member.
#[derive(Serialize, utoipa::ToSchema)]
struct FindingBody {
    /// The kind of content, as a word.
    kind: String,
    /// The content, in words.
    text: String,
    /// Byte of the member at which it was found.
    at_byte: u64,
}

/// Runs the verb. The exit code is 0 if every member has a valid superblock. It is 2 if a member has none or an invalid
/// one, 4 if a member cannot be read, and that of a refusal if a member does not exist.
///
/// # Errors
/// A name does not exist.
pub fn run(arguments: &ExamineArguments, context: &Context) -> Outcome {
    let mut exit = Exit::Fine;
    let mut members = Vec::new();
    let mut text = String::new();
    for name in &arguments.members {
        // The members are opened one after the other, so that the user may name the same member twice.
        let spec = spec(name)?;
        let (mut opened, failed) = open_some(std::slice::from_ref(&spec), options(Use::Examine));
        let faults = read_md0(&mut opened);
        for (name, failure) in failed {
            exit = exit.max(match unfit(&spec) {
                Some(Unfit::Missing) => Exit::Refused,
                Some(Unfit::TooSmall) => Exit::Failed,
                None => Exit::CannotTell,
            });
            text.push_str(&format!("{}\n", failure.text()));
            members.push(ExaminedMember { error: Some(failure.text()), ..empty(name) });
        }
        for (_, probed) in opened {
            let journal = journal(&spec, &probed, context);
            if probed.look.superblock.is_none() && !matches!(journal, Some(Ok(_))) {
                exit = exit.max(Exit::Failed);
            }
            text.push_str(&member_text(&probed));
            text.extend(faults.iter().map(|why| format!("  {why}\n")));
            let (journal, journal_error) = match journal {
                Some(Ok(journal)) => (Some(journal), None),
                Some(Err(error)) => (None, Some(error)),
                None => (None, None),
            };
            text.extend(journal.iter().map(|journal| format!("{}\n", super::journal::text(journal))));
            text.extend(journal_error.iter().map(|error| format!("  journal  {error}\n")));
            members.push(ExaminedMember { journal, journal_error, ..member(&probed) });
        }
    }
    Ok(context.output.answer(exit, &ExamineBody { members }, &text))
}

/// The contents of the journal on a device, if there is a journal.
fn journal(spec: &MemberSpec, probed: &ProbedMember, context: &Context) -> Option<Result<JournalModel, String>> {
    probed.look.foreign.signatures.iter().find(|found| found.is(ForeignKind::OpenraidJournal))?;
    let looked = crate::on_disk::unused_journals::of_devices(std::slice::from_ref(spec), &context.registry);
    Some(looked.map_err(|failure| failure.text()))
}

fn empty(member: String) -> ExaminedMember {
    ExaminedMember {
        member,
        error: None,
        size_bytes: None,
        block_bytes: None,
        superblock: None,
        superblock_error: None,
        bitmap: None,
        bitmap_error: None,
        lockless_bitmap: None,
        ppl: None,
        bad_ranges: Vec::new(),
        bad_blocks_error: None,
        found: Vec::new(),
        journal: None,
        journal_error: None,
    }
}

fn member(probed: &ProbedMember) -> ExaminedMember {
    let look = &probed.look;
    let finding = |found: &Signature| FindingBody {
        kind: found.name().into(),
        text: found.description(),
        at_byte: found.at.get(),
    };
    ExaminedMember {
        size_bytes: Some(probed.info.capacity.bytes().get()),
        block_bytes: Some(probed.info.block.bytes().get()),
        superblock: look.superblock.as_ref().map(|superblock| superblock_body(superblock, place(superblock, probed))),
        superblock_error: look.superblock_error.map(|(minor, error)| format!("{minor}: {error}")),
        bitmap: look.bitmap.as_deref().and_then(bitmap_body),
        bitmap_error: look.bitmap_error.as_ref().map(ToString::to_string),
        lockless_bitmap: lockless::of_member(probed).map(lockless_body),
        ppl: look.ppl.as_ref().map(ppl_body),
        bad_ranges: look
            .bad
            .iter()
            .map(|range| BadRangeBody { at_sector: range.at.get(), sectors: range.len.get() })
            .collect(),
        bad_blocks_error: look.bad_blocks_error.as_ref().map(ToString::to_string),
        found: look.foreign.signatures.iter().map(finding).collect(),
        ..empty(probed.spec.text.clone())
    }
}

/// The version of a superblock, and its sector.
fn place(superblock: &Superblock, probed: &ProbedMember) -> (String, u64) {
    match md0_lba(probed.info.capacity).filter(|_| is_md0(probed)) {
        Some(lba) => ("0.90".into(), lba.get()),
        None => (superblock.minor.to_string(), superblock.super_offset.get()),
    }
}

fn superblock_body(superblock: &Superblock, (version, super_offset_sectors): (String, u64)) -> SuperblockBody {
    let unsupported = superblock.unsupported_features();
    SuperblockBody {
        version,
        array: superblock.set_name.to_string(),
        uuid: superblock.set_uuid.to_string(),
        level: level_word(superblock),
        level_number: superblock.level.number(),
        layout: layout_text(superblock.level, superblock.layout),
        layout_number: superblock.layout,
        chunk_bytes: superblock.chunk.bytes().get(),
        slots: superblock.raid_disks,
        used_bytes: bytes(superblock.size),
        data_offset_sectors: superblock.data_offset.get(),
        data_bytes: bytes(superblock.data_size),
        super_offset_sectors,
        device_number: superblock.dev_number,
        device_uuid: superblock.device_uuid.to_string(),
        role: role_text(superblock.role()),
        slot: match superblock.role() {
            DeviceRole::Active(slot) => Some(slot.0),
            _ => None,
        },
        events: superblock.events,
        clean: superblock.resync_position().is_none(),
        resync_offset_sectors: superblock.resync_position().map(Sectors::get),
        recovery_offset_sectors: superblock.recovery_offset().map(|at| at.get()),
        created: superblock.created.seconds(),
        updated: superblock.updated.seconds(),
        flags: superblock.device_flags.names().map(Into::into).collect(),
        features: superblock.features.0,
        unsupported_features: (!unsupported.is_empty()).then(|| unsupported.to_string()),
        logical_block_bytes: superblock.logical_block().map(|block| block.bytes().get()),
        corrected_reads: superblock.corrected_reads,
        reshape: shape::recorded(superblock),
        new_data_offset_sectors: superblock.change().map(|_| superblock.new_data_offset().get()),
        roles: role_map(superblock),
    }
}

/// The number of sectors in a superblock may have any value. More than 2^64 bytes is shown as 2^64.
fn bytes(sectors: Sectors) -> u64 {
    sectors.get().saturating_mul(512)
}

fn bitmap_body(area: &[u8]) -> Option<BitmapBody> {
    let header = BitmapHeader::decode(area).ok()?;
    let geometry = header.geometry();
    let bits = area.get(openraid_format::BITMAP_HEADER_BYTES..).unwrap_or_default();
    let marked = geometry.set_bits(Bytes::ZERO, bits).filter(|bit| *bit < geometry.bits).count();
    Some(BitmapBody {
        events: header.events,
        events_cleared: header.events_cleared,
        chunk_bytes: header.chunk,
        regions: geometry.bits,
        marked: marked as u64,
    })
}

fn lockless_body(bitmap: Lockless) -> LocklessBody {
    let Lockless { header, counts } = bitmap;
    LocklessBody {
        events: header.events,
        chunk_bytes: header.chunk.bytes().get(),
        chunks: counts.chunks,
        unwritten: counts.unwritten,
        unsynced: counts.unsynced,
    }
}

fn ppl_body(area: &PplArea) -> PplBody {
    match area {
        PplArea::Unreadable => PplBody { state: "unreadable".into(), generation: None, writes: None },
        PplArea::Nothing => PplBody { state: "no log".into(), generation: None, writes: None },
        PplArea::Log(log) => PplBody {
            state: "valid".into(),
            generation: Some(log.header.generation),
            writes: Some(log.header.entries().len()),
        },
    }
}

fn ppl_text(area: &PplArea) -> String {
    match area {
        PplArea::Unreadable => "cannot be read".into(),
        PplArea::Nothing => "there is no log: none was written yet, or the last write was cut short".into(),
        PplArea::Log(log) => {
            format!(
                "generation {}, covers {}",
                log.header.generation,
                counted(log.header.entries().len() as u64, "write", "writes")
            )
        }
    }
}

fn role_text(role: DeviceRole) -> String {
    match role {
        DeviceRole::Active(slot) => format!("slot {slot}"),
        DeviceRole::Spare => "spare".into(),
        DeviceRole::Faulty => "faulty".into(),
        DeviceRole::Journal => "journal".into(),
    }
}

/// mdadm's form: A for a slot with a member, '.' for a vacant slot, R for a slot whose replacement is being filled.
fn role_map(superblock: &Superblock) -> String {
    let count =
        |slot: u16| superblock.roles.iter().filter(|role| matches!(role, DeviceRole::Active(s) if s.0 == slot)).count();
    (0..superblock.raid_disks)
        .map(|slot| match count(slot) {
            0 => '.',
            1 => 'A',
            _ => 'R',
        })
        .collect()
}

fn member_text(probed: &ProbedMember) -> String {
    let look = &probed.look;
    let mut table = TextTable::plain().indented(2);
    let size = probed.info.capacity.bytes();
    table.row(["size", &format!("{}, {size}, blocks of {}", sold(size), probed.info.block.bytes().get())]);
    match &look.superblock {
        Some(superblock) => superblock_rows(superblock, place(superblock, probed), &mut table),
        None => table.row(["array", &no_member(probed).text()]),
    }
    if let Some(bitmap) = look.bitmap.as_deref().and_then(bitmap_body) {
        let chunk = human(Bytes(u64::from(bitmap.chunk_bytes)));
        table.row([
            "bitmap",
            &format!("{} of {} of {chunk} marked", bitmap.marked, counted(bitmap.regions, "region", "regions")),
        ]);
        table.row(["", &format!("events {}, cleared up to {}", bitmap.events, bitmap.events_cleared)]);
    }
    if let Some(error) = &look.bitmap_error {
        table.row(["bitmap", &format!("not usable: {error}")]);
    }
    if let Some(Lockless { header, counts }) = lockless::of_member(probed) {
        let chunks = counted(counts.chunks, "chunk", "chunks");
        table.row([
            "",
            &format!(
                "{} of {chunks} of {} not in sync, {} never written",
                counts.unsynced,
                human(header.chunk.bytes()),
                counts.unwritten
            ),
        ]);
    }
    if let Some(area) = &look.ppl {
        table.row(["partial parity log", &ppl_text(area)]);
    }
    if let Some(error) = &look.bad_blocks_error {
        table.row(["bad blocks", &format!("the log is of no use: {error}")]);
    }
    for range in &look.bad {
        table.row([
            "bad blocks",
            &format!("{} from sector {} of the data on", counted(range.len.get(), "sector", "sectors"), range.at.get()),
        ]);
    }
    for finding in &look.foreign.signatures {
        table.row(["found", &finding.to_string()]);
    }
    for note in &probed.notes {
        table.row(["note", note]);
    }
    format!("{}\n{}", probed.spec, table.text())
}

fn superblock_rows(superblock: &Superblock, (version, at): (String, u64), table: &mut TextTable) {
    let layout = layout_text(superblock.level, superblock.layout).map_or_else(String::new, |word| format!(", {word}"));
    let chunk = if superblock.level.is_striped() {
        format!(", chunk {}", human(superblock.chunk.bytes()))
    } else {
        String::new()
    };
    table.row(["array", &format!("{} ({})", superblock.set_name, superblock.set_uuid)]);
    table.row([
        "level",
        &format!(
            "{}, {}{layout}{chunk}",
            level_word(superblock),
            counted(superblock.raid_disks.into(), "slot", "slots")
        ),
    ]);
    if superblock.level.is_redundant() {
        table.row(["used", &format!("{} of each member", human(Bytes(bytes(superblock.size))))]);
    }
    let (data, start) = (human(Bytes(bytes(superblock.data_size))), superblock.data_offset.get());
    table.row(["data", &format!("{data} from sector {start} on")]);
    if let Some(change) = shape::recorded(superblock) {
        let (percent, new) = (shape::percent(&change), superblock.new_data_offset().get());
        table.row(["reshape", &format!("{percent} % has moved, {}; new data from sector {new} on", change.direction)]);
        shape::sides(&change).iter().for_each(|side| table.row(["", side]));
    }
    if let Some(block) = superblock.logical_block() {
        table.row([
            "logical block",
            &format!("{} bytes; {}", block.bytes().get(), crate::on_disk::kernels_before_6_19::REFUSED_BEFORE_6_19),
        ]);
    }
    table.row(["superblock", &format!("{version} at sector {at}")]);
    table.row([
        "role",
        &format!("{}, device {} ({})", role_text(superblock.role()), superblock.dev_number, superblock.device_uuid),
    ]);
    table.row(["slots", &format!("{} (A: a member, '.': none, R: being replaced)", role_map(superblock))]);
    let flags = superblock.device_flags.names().collect::<Vec<_>>().join(", ");
    if !flags.is_empty() {
        table.row(["flags", &flags]);
    }
    let state = match superblock.resync_position() {
        None => "clean".into(),
        Some(at) if at.is_zero() => "active, or its first sync is not over".into(),
        Some(at) => format!("in sync up to sector {}", at.get()),
    };
    table.row(["state", &format!("{state}; {}", counted(superblock.events, "event", "events"))]);
    if let Some(at) = superblock.recovery_offset() {
        table.row(["rebuilt", &format!("up to sector {}", at.get())]);
    }
    table.row(["created", &utc(superblock.created.seconds())]);
    table.row(["updated", &utc(superblock.updated.seconds())]);
    if superblock.corrected_reads > 0 {
        table.row(["repaired", &counted(superblock.corrected_reads.into(), "read", "reads")]);
    }
    if let Some(journal) = superblock.journal {
        table.row([
            "journal",
            &format!("journal {journal} holds writes of this array: it starts with that journal only"),
        ]);
    }
    let unsupported = superblock.unsupported_features();
    if !unsupported.is_empty() {
        table.row(["features", &format!("not supported: {unsupported}; use Linux md for this array")]);
    }
}
