//! `openraid update --recheck-bad-blocks`: reads the ranges of the bad-block logs again, and clears the entries that are good.
//!
//! An entry is good if the drive reads its sectors, and if the rows there agree with parity or with the other copies. The
//! engine compares: the array starts on trial without the logs, with all writes in memory, and a check runs. An entry may
//! also stand for data that was never valid, which reads well. Its rows do not agree, so it stays.

use std::thread;
use std::time::Duration;

use openraid_core::admin::{AdminCommand, Policy};
use openraid_core::array::assemble::AssembleOptions;
use openraid_core::array::BadRange;
use openraid_core::check_results::{ScrubEnd, ScrubMode, ScrubOutcome, ScrubStatus};
use openraid_core::geometry::Geometry;
use openraid_format::{BadBlockTable, DeviceRole, FeatureMap, Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_runtime::service::Nesting;
use openraid_runtime::ServiceHandle;
use openraid_sys::Use;
use openraid_units::{ArrayId, DriveLba, MemberLba, Sectors, Slot};
use serde::Serialize;

use super::Context;
use crate::arguments::UpdateArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::{quiet_service, ReadTrial};
use crate::members::{named, open_every, options};
use crate::new_arrays::wiping::on_raw_drive;
use crate::on_disk::bad_blocks;
use crate::on_disk::sets::{self, array_name, slots_text, SetPlan};
use crate::output::progress::WorkProgress;
use crate::quantity::counted;

/// Time between two looks at the check.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Reads of a drive begin and end on multiples of this.
const ALIGN: u64 = 8;

/// The entries of the logs, and what became of each.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct RecheckBody {
    /// Were the logs written? Otherwise the entries were only read and compared.
    updated: bool,
    /// The entries.
    entries: Vec<RecheckedEntry>,
}

/// An entry of a member's bad-block log.
#[derive(Clone, Serialize, utoipa::ToSchema)]
struct RecheckedEntry {
    /// Path of the member.
    member: String,
    /// First sector, from the start of the member's data.
    at_sector: u64,
    /// Number of sectors.
    sectors: u64,
    /// Why the entry stays; null if it is good.
    stays: Option<String>,
    #[serde(skip)]
    place: usize,
}

impl RecheckedEntry {
    fn range(&self) -> BadRange {
        BadRange { at: MemberLba(self.at_sector), len: Sectors(self.sectors) }
    }
}

/// Runs the verb.
///
/// # Errors
/// A member cannot be opened, an array does not start or is not in sync, or a log cannot be written.
pub(super) fn run(arguments: &UpdateArguments, context: &Context) -> Outcome {
    let specs = named(&arguments.members, &context.registry)?;
    let mut opened = open_every(&specs, options(Use::ReadExclusive))?;
    let probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    let (sets, strangers) = sets::plan(&probed, false);
    if let Some(place) = strangers.first() {
        return Err(sets::no_member(&probed[*place]).of(&probed[*place].spec));
    }
    let mut entries = Vec::new();
    for set in sets.iter().filter(|set| set.members.iter().any(|place| !probed[*place].look.bad.is_empty())) {
        check(set)?;
        entries.extend(read_again(set, &probed, &mut opened));
    }
    if !entries.is_empty() {
        opened.iter_mut().for_each(|(_, probed)| bad_blocks::ignore(probed));
        let trial = ReadTrial::start_as(opened, AssembleOptions::default(), Nesting::Ignore)?;
        for started in &trial.started.arrays {
            let set = sets.iter().find(|set| set.uuid == started.superblock.set_uuid);
            let set = set.ok_or_else(|| trial.why_nothing())?;
            if entries.iter().any(|entry| set.members.contains(&entry.place)) {
                let result = compare(&trial.handle(), started.array, &array_name(&set.newest))?;
                judge(set, &result, &mut entries);
            }
        }
    }
    let good = entries.iter().filter(|entry| entry.stays.is_none()).count();
    let writes = arguments.yes && good > 0;
    if writes {
        write(&specs, &probed, &entries)?;
    }
    let mut lines: Vec<String> = entries.iter().map(|entry| line(entry, writes)).collect();
    lines.insert(0, format!("bad-block logs: {}, {good} good", counted(entries.len() as u64, "entry", "entries")));
    let exit = if good < entries.len() { Exit::Incomplete } else { Exit::Fine };
    let exit = if good > 0 && !arguments.yes && !arguments.dry_run {
        lines.push("nothing was written; add --yes to clear the good entries".into());
        Exit::Refused
    } else {
        exit
    };
    Ok(context.output.answer(exit, &RecheckBody { updated: writes, entries }, &lines.join("\n")))
}

fn line(entry: &RecheckedEntry, writes: bool) -> String {
    let RecheckedEntry { member, at_sector, sectors, stays, .. } = entry;
    let verdict = match (stays, writes) {
        (Some(why), _) => format!("stays: {why}"),
        (None, true) => "cleared".into(),
        (None, false) => "good".into(),
    };
    format!("  {member}: {} from sector {at_sector} of the data on: {verdict}", counted(*sectors, "sector", "sectors"))
}

/// May rows of this set be compared?
fn check(set: &SetPlan) -> Result<(), Failure> {
    let name = array_name(&set.newest);
    let Ok(plan) = &set.plan else { return Ok(()) };
    if !plan.missing.is_empty() {
        return Err(Failure::refused(format!(
            "array {name}: {} without a member, so rows cannot be compared in full; name all members, or rebuild first",
            slots_text(plan.missing)
        )));
    }
    if plan.resync_from.is_some() || set.newest.journal.is_some() {
        return Err(Failure::refused(format!(
            "array {name}: it was not stopped cleanly or a journal holds writes of it, so its members may differ; serve it until \
             it is in sync, and stop it"
        )));
    }
    Ok(())
}

/// Read the sectors of each entry, on its drive and on all others that have a part of the same rows.
fn read_again(
    set: &SetPlan,
    probed: &[ProbedMember],
    opened: &mut [(OpenedMember, ProbedMember)],
) -> Vec<RecheckedEntry> {
    let mut entries = Vec::new();
    for place in &set.members {
        for range in &probed[*place].look.bad {
            let mut stays = None;
            for (other, range) in parts_of_rows(set, probed, *place, *range) {
                let superblock = probed[other].look.superblock.as_ref().expect("members of a set have one");
                let (member, looked) = &mut opened[other];
                let error = read(member, superblock.data_offset, range, looked.info.capacity);
                stays = stays.or(error.map(|error| format!("{}: {error}", member.spec)));
            }
            let (at_sector, sectors) = (range.at.get(), range.len.get());
            let member = probed[*place].spec.text.clone();
            entries.push(RecheckedEntry { member, at_sector, sectors, stays, place: *place });
        }
    }
    entries
}

/// The places of a range's rows on all members.
fn parts_of_rows(set: &SetPlan, probed: &[ProbedMember], place: usize, range: BadRange) -> Vec<(usize, BadRange)> {
    let slot_of = |place: usize| match probed[place].look.superblock.as_ref().map(Superblock::role) {
        Some(DeviceRole::Active(slot)) => Some(slot),
        _ => None,
    };
    let place_of = |slot: Slot| set.members.iter().copied().find(|place| slot_of(*place) == Some(slot));
    match set.plan.as_ref().map(|plan| &plan.geometry) {
        Ok(Geometry::Mirror(mirror)) => {
            let pieces = slot_of(place).map(|slot| bad_blocks::in_set(mirror, slot, range)).unwrap_or_default();
            let copies = pieces.iter().flat_map(|(from, to, _)| {
                let len = Sectors(to - from);
                mirror
                    .copies(openraid_units::SetLba(*from))
                    .map(move |copy| (copy.slot, BadRange { at: copy.lba, len }))
            });
            copies.filter_map(|(slot, range)| Some((place_of(slot)?, range))).collect()
        }
        _ => set.members.iter().filter(|place| slot_of(**place).is_some()).map(|place| (*place, range)).collect(),
    }
}

/// Why a range of a member cannot be read.
fn read(member: &mut OpenedMember, data: DriveLba, range: BadRange, capacity: Sectors) -> Option<String> {
    let from = (data.get() + range.at.get()) / ALIGN * ALIGN;
    let end = (data.get() + range.at.get() + range.len.get()).next_multiple_of(ALIGN).min(capacity.get());
    let mut bytes = vec![0; usize::try_from(Sectors(end.saturating_sub(from)).bytes().get()).expect("an entry")];
    member.read_at(DriveLba(from), &mut bytes).err().map(|error| error.to_string())
}

/// Check the whole array.
fn compare(handle: &ServiceHandle, array: ArrayId, name: &str) -> Result<ScrubStatus, Failure> {
    let unbounded = Policy { scrub_rate: Sectors::ZERO, ..Policy::default() };
    handle.admin(AdminCommand::SetPolicy { array, policy: unbounded })?;
    handle.admin(AdminCommand::Resume { array })?;
    handle.admin(AdminCommand::Scrub { array, mode: ScrubMode::Check })?;
    let mut progress = None;
    loop {
        let status = handle.status()?;
        let view = status.arrays.iter().find(|view| view.status.array == array);
        let status = &view.ok_or_else(|| Failure::failed("the array does not run").of(name))?.status;
        if let Some(ended) = &status.last_scrub {
            return match ended.outcome {
                ScrubOutcome::Clean | ScrubOutcome::Mismatches { .. } => Ok(ended.clone()),
                outcome => {
                    let end = ScrubEnd { mode: ScrubMode::Check, outcome };
                    Err(Failure::failed(format!("array {name}: its members cannot be compared: {end}")))
                }
            };
        }
        if let Some(task) = &status.task {
            let total = task.total.bytes().get();
            progress.get_or_insert_with(|| WorkProgress::new("check", total)).at(task.done.bytes().get());
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

/// An entry whose rows do not agree stays.
fn judge(set: &SetPlan, result: &ScrubStatus, entries: &mut [RecheckedEntry]) {
    for entry in entries.iter_mut().filter(|entry| set.members.contains(&entry.place) && entry.stays.is_none()) {
        if result.more_ranges > 0 {
            entry.stays = Some("the array has too many mismatches to list them; check it first".into());
        } else if disagrees(set, result, entry) {
            entry.stays = Some("it reads well, but its rows do not agree".into());
        }
    }
}

/// Does a mismatch lie in the rows of this entry?
fn disagrees(set: &SetPlan, result: &ScrubStatus, entry: &RecheckedEntry) -> bool {
    let Ok(plan) = &set.plan else { return true };
    let slot = plan.members.iter().find(|member| member.drive == sets::number(entry.place));
    let slot = slot.map(|slot| slot.superblock.role());
    let (Some(DeviceRole::Active(slot)), range) = (slot, entry.range()) else { return true };
    let ranges: Vec<(u64, u64)> = match &plan.geometry {
        Geometry::Mirror(mirror) => {
            bad_blocks::in_set(mirror, slot, range).into_iter().map(|(from, to, _)| (from, to)).collect()
        }
        // Sectors of the members.
        Geometry::Parity(_) => vec![(range.at.get(), range.at.get() + range.len.get())],
        // Nothing to compare with.
        _ => return true,
    };
    let hit = |(from, to): (u64, u64)| {
        result.ranges.iter().any(|range| range.from.get() < to && from < range.from.get() + range.len.get())
    };
    ranges.into_iter().any(hit)
}

/// Write the logs without the good entries. A log that becomes empty is no longer announced by its superblock.
fn write(
    specs: &[openraid_runtime::member::MemberSpec],
    probed: &[ProbedMember],
    entries: &[RecheckedEntry],
) -> Result<(), Failure> {
    let service = quiet_service()?;
    for (place, (mut member, now)) in open_every(specs, options(Use::Exclusive))?.into_iter().enumerate() {
        let of_place: Vec<&RecheckedEntry> = entries.iter().filter(|entry| entry.place == place).collect();
        if of_place.iter().all(|entry| entry.stays.is_some()) {
            continue;
        }
        if now.look.superblock != probed[place].look.superblock || now.look.bad != probed[place].look.bad {
            return Err(Failure::refused("it has changed meanwhile; nothing more was written, try again").of(&now.spec));
        }
        let superblock = now.look.superblock.as_ref().expect("it has entries");
        let (at, bytes) = match of_place.iter().any(|entry| entry.stays.is_some()) {
            true => log_of(superblock, &of_place).map_err(|error| error.of(&now.spec))?,
            false => unannounced(superblock, &mut member)?,
        };
        on_raw_drive(&service.handle(), member, "its bad-block log cannot be written", |service, array| {
            service.write(array, at.offset().bytes().get(), &bytes, true)?;
            service.flush(array)
        })?;
    }
    service.stop();
    Ok(())
}

/// The log with the entries that stay.
fn log_of(superblock: &Superblock, entries: &[&RecheckedEntry]) -> Result<(DriveLba, Vec<u8>), Failure> {
    let log = superblock.bad_block_log().and_then(|log| Some((log, superblock.place(log.offset)?)));
    let (log, at) = log.ok_or_else(|| Failure::failed("it has no bad-block log"))?;
    let mut table = BadBlockTable::new();
    for entry in entries.iter().filter(|entry| entry.stays.is_some()) {
        let range = openraid_format::BadBlockRange {
            start: superblock.data_offset + Sectors(entry.at_sector),
            len: Sectors(entry.sectors),
        };
        table.push(range).map_err(Failure::failed)?;
    }
    let mut bytes = vec![0; usize::from(log.size) * 512];
    table.encode(log.shift, &mut bytes).map_err(Failure::failed)?;
    Ok((at, bytes))
}

/// The superblock's first block, without the announcement of a log.
fn unannounced(superblock: &Superblock, member: &mut OpenedMember) -> Result<(DriveLba, Vec<u8>), Failure> {
    let mut changed = superblock.clone();
    changed.features.set(FeatureMap::BAD_BLOCKS, false);
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    member.read_at(changed.super_offset, &mut bytes).map_err(|error| Failure::failed(error).of(&member.spec))?;
    let mut encoded = [0; SUPERBLOCK_BYTES_MAX];
    changed.encode(&mut encoded);
    bytes[..512].copy_from_slice(&encoded[..512]);
    let block = usize::try_from(member.info.block.bytes().get()).expect("at most 4096");
    Ok((changed.super_offset, bytes[..block].to_vec()))
}
