//! `openraid update`: removes fields from superblocks that older kernels refuse.
//!
//! The only such field is the logical block that Linux 6.19 stores at offset 224. It is cleared only if hosts see the
//! same blocks without it, or if the user accepts smaller ones. One sector of each member is written.

use openraid_core::array::assemble::{AssembleOptions, Assembly};
use openraid_format::{Superblock, SUPERBLOCK_BYTES_MAX};
use openraid_runtime::member::{MemberSpec, OpenedMember, ProbedMember};
use openraid_runtime::service::{AssembleRequest, Nesting, ServiceError, StartedArray};
use openraid_runtime::ServiceHandle;
use openraid_sys::Use;
use openraid_units::{BlockSize, DriveLba};
use serde::Serialize;

use super::Context;
use crate::arguments::UpdateArguments;
use crate::failure::{Exit, Failure, Outcome};
use crate::in_process::trial::{quiet_service, ReadTrial};
use crate::members::array_locks::lock_arrays;
use crate::members::{is_memory, named, open_every, options};
use crate::new_arrays::wiping::on_raw_drive;
use crate::on_disk::kernels_before_6_19::{drives_block, logical_block};
use crate::on_disk::sets::{self, array_name, assemble_error, slots_text, SetPlan};
use crate::quantity::counted;
use crate::service_exit::Cause;

/// The part of a superblock that is written: its first sector has the field and the checksum.
const SECTOR: usize = 512;

/// Superblocks that were changed, or would be.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct UpdateBody {
    /// Were the superblocks written? Otherwise the changes were only listed.
    updated: bool,
    /// The kernel version that can read them then.
    for_kernels_before: String,
    /// The arrays of the named members.
    arrays: Vec<UpdatedArray>,
    /// The superblocks that change.
    changes: Vec<SuperblockChange>,
}

/// An array whose superblocks name a logical block.
#[derive(Serialize, utoipa::ToSchema)]
struct UpdatedArray {
    /// Name of the array.
    array: String,
    /// UUID of the array.
    uuid: String,
    /// The logical block in the superblocks; none if no change is needed.
    logical_block_bytes: Option<u64>,
    /// The logical block that an older kernel gives the array.
    drives_block_bytes: u64,
    /// Numbers of the slots without a member.
    missing: Vec<u16>,
}

/// A superblock that changes.
#[derive(Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
struct SuperblockChange {
    /// Its drive, or the span whose data contain it.
    member: String,
    /// Name of the array.
    array: String,
    /// Sector of the drive at which the superblock is.
    at_sector: u64,
    /// The logical block in the superblock before the change.
    from_bytes: u64,
    /// The logical block in the superblock after the change; 0 for none.
    to_bytes: u64,
}

/// The change to make.
struct Plan {
    arrays: Vec<UpdatedArray>,
    /// Superblocks on members.
    members: Vec<SuperblockChange>,
    /// Superblocks of a stripe over several sets; they are in the data of the sets.
    outer: Vec<SuperblockChange>,
}

/// Runs the verb, or says what it would do.
///
/// # Errors
/// A member cannot be opened or written, the array does not start, or the field is needed.
pub fn run(arguments: &UpdateArguments, context: &Context) -> Outcome {
    if arguments.recheck_bad_blocks {
        return super::recheck_bad_blocks::run(arguments, context);
    }
    let specs = named(&arguments.members, &context.registry)?;
    if let Some(spec) = specs.iter().find(|spec| is_memory(spec)) {
        return Err(Failure::usage(format!("{spec}: memory has no superblock that outlives this command")));
    }
    let _locks = lock_arrays(&specs)?;
    let plan = plan(&specs, arguments)?;
    let changes: Vec<SuperblockChange> = plan.members.iter().chain(&plan.outer).cloned().collect();
    let mut lines = vec![headline(&plan, arguments)];
    let verb = if arguments.yes { "cleared" } else { "would be cleared" };
    lines.extend(changes.iter().map(|change| line(change, verb)));
    let body = |updated| UpdateBody {
        updated,
        for_kernels_before: version(arguments).into(),
        arrays: plan.arrays,
        changes: changes.clone(),
    };
    if changes.is_empty() {
        return Ok(context.output.answer(Exit::Fine, &body(false), &lines.join("\n")));
    }
    if !arguments.yes {
        lines.push("nothing was written; add --yes to do it".into());
        let exit = if arguments.dry_run { Exit::Fine } else { Exit::Refused };
        return Ok(context.output.answer(exit, &body(false), &lines.join("\n")));
    }
    write_members(&specs, &plan.members)?;
    write_outer(&specs, &plan.outer)?;
    Ok(context.output.answer(Exit::Fine, &body(true), &lines.join("\n")))
}

fn version(arguments: &UpdateArguments) -> &str {
    arguments.for_kernels_before.as_deref().unwrap_or_default()
}

fn headline(plan: &Plan, arguments: &UpdateArguments) -> String {
    let names: Vec<&str> = plan.arrays.iter().map(|array| array.array.as_str()).collect();
    let (names, version) = (names.join(", "), version(arguments));
    let count = plan.members.len() + plan.outer.len();
    if count == 0 {
        return format!(
            "{names}: no superblock names a logical block; kernels before {version} have nothing to refuse there"
        );
    }
    let superblocks = counted(count as u64, "superblock", "superblocks");
    format!("{names}: for kernels before {version}, the logical block in {superblocks} is taken out")
}

fn line(change: &SuperblockChange, verb: &str) -> String {
    let SuperblockChange { member, array, at_sector, from_bytes, .. } = change;
    format!("  {member}: superblock of {array} at sector {at_sector}: {from_bytes} bytes at offset 224 {verb}")
}

/// Examines the members and the arrays that they form.
fn plan(specs: &[MemberSpec], arguments: &UpdateArguments) -> Result<Plan, Failure> {
    let opened = open_every(specs, options(Use::ReadExclusive))?;
    let probed: Vec<ProbedMember> = opened.iter().map(|(_, probed)| probed.clone()).collect();
    let (sets, strangers) = sets::plan(&probed, false);
    if let Some(place) = strangers.first() {
        return Err(sets::no_member(&probed[*place]).of(&probed[*place].spec));
    }
    for set in &sets {
        check(set, &probed, arguments)?;
    }
    let trial = ReadTrial::start_as(opened, AssembleOptions::default(), Nesting::Ignore)?;
    if trial.started.arrays.len() < sets.len() {
        return Err(trial.why_nothing());
    }
    let outer = outer_changes(&trial.handle(), &trial.started.arrays, &sets, &probed, arguments)?;
    let array = |set: &SetPlan| UpdatedArray {
        array: array_name(&set.newest),
        uuid: set.uuid.to_string(),
        logical_block_bytes: logical_block(set, &probed).map(|block| block.bytes().get()),
        drives_block_bytes: drives_block(set, &probed).bytes().get(),
        missing: assembly(set).map_or_else(Vec::new, |plan| plan.missing.iter().map(|slot| slot.0).collect()),
    };
    let members = sets.iter().flat_map(|set| member_changes(set, &probed)).collect();
    Ok(Plan { arrays: sets.iter().map(array).collect(), members, outer })
}

fn assembly(set: &SetPlan) -> Option<&Assembly> {
    set.plan.as_ref().ok()
}

/// May the field be removed from this set?
fn check(set: &SetPlan, probed: &[ProbedMember], arguments: &UpdateArguments) -> Result<(), Failure> {
    let name = array_name(&set.newest);
    let names = |drive: openraid_units::DriveId| probed[drive.index()].spec.text.clone();
    let plan = set.plan.as_ref().map_err(|error| assemble_error(error, &names).of(format_args!("array {name}")))?;
    if !plan.missing.is_empty() && !arguments.degraded {
        return Err(Failure::refused(format!(
            "array {name}: {} without a member, and a member that keeps its field is refused by older kernels when it \
             comes back; name all members, or add --degraded to update the array without them",
            slots_text(plan.missing)
        )));
    }
    if set.newest.journal.is_some() {
        return Err(Failure::refused(format!(
            "array {name}: a journal holds writes of this array, and no Linux kernel takes it before they are on the members; \
             serve it with that journal and stop it first"
        )));
    }
    let Some(named) = logical_block(set, probed) else { return Ok(()) };
    check_block(&name, named, drives_block(set, probed), arguments)
}

/// If hosts would see smaller blocks without the field, it stays, unless the user accepts smaller blocks.
fn check_block(name: &str, named: BlockSize, drives: BlockSize, arguments: &UpdateArguments) -> Result<(), Failure> {
    if named <= drives || arguments.smaller_blocks {
        return Ok(());
    }
    let (named, drives) = (named.bytes().get(), drives.bytes().get());
    Err(Failure::refused(format!(
        "array {name}: its logical block is {named} bytes, and its drives have {drives}: without the field hosts would see blocks \
         of {drives} bytes, and a partition table that was written for {named} is not found then; copy the data to a new array, \
         or add --smaller-blocks if no host needs blocks of {named} bytes"
    )))
}

/// The superblocks of a set that have the field. Members with a slot come last: until they are written, older kernels
/// do not start the set.
fn member_changes(set: &SetPlan, probed: &[ProbedMember]) -> Vec<SuperblockChange> {
    let mut places = set.members.clone();
    let in_slot = |place: &usize| {
        let member =
            assembly(set).and_then(|plan| plan.members.iter().find(|member| member.drive == sets::number(*place)));
        member.is_some_and(|member| matches!(member.superblock.role(), openraid_format::DeviceRole::Active(_)))
    };
    places.sort_by_key(in_slot);
    let changes = places.iter().filter_map(|place| {
        let member = &probed[*place];
        change(member.spec.text.clone(), member.look.superblock.as_ref()?)
    });
    changes.collect()
}

fn change(member: String, superblock: &Superblock) -> Option<SuperblockChange> {
    let block = superblock.logical_block()?;
    Some(SuperblockChange {
        member,
        array: array_name(superblock),
        at_sector: superblock.super_offset.get(),
        from_bytes: block.bytes().get(),
        to_bytes: 0,
    })
}

/// The superblocks of a stripe over several sets, if one of them has the field.
fn outer_changes(
    service: &ServiceHandle,
    spans: &[StartedArray],
    sets: &[SetPlan],
    probed: &[ProbedMember],
    arguments: &UpdateArguments,
) -> Result<Vec<SuperblockChange>, Failure> {
    let drives = sets.iter().map(|set| drives_block(set, probed)).max().unwrap_or(BlockSize::B512);
    let mut changes = Vec::new();
    for span in spans {
        let Some(superblock) = outer_superblock(service, span)? else { continue };
        if let Some(named) = superblock.logical_block() {
            check_block(&array_name(&superblock), named, drives, arguments)?;
        }
        changes.extend(change(array_name(&span.superblock), &superblock));
    }
    Ok(changes)
}

fn outer_superblock(service: &ServiceHandle, span: &StartedArray) -> Result<Option<Superblock>, Failure> {
    let status = service.status()?;
    let view = status.arrays.iter().find(|view| view.status.array == span.array);
    let capacity = view.map(|view| view.status.capacity).unwrap_or_default();
    let found = service.superblock_inside(span.array, capacity);
    let found = found.map_err(|error| Failure::failed(error).of(array_name(&span.superblock)))?;
    Ok(found.filter(|outer| outer.level == openraid_format::MdLevel::Raid0))
}

fn changed_meanwhile(name: &str) -> Failure {
    Failure::refused(format!("{name}: its superblock has changed meanwhile; nothing more was written, try again"))
}

/// Writes the members in sequence; each is durable before the next is written. If the update is interrupted, the next
/// update completes it.
fn write_members(specs: &[MemberSpec], changes: &[SuperblockChange]) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut opened = open_every(specs, options(Use::Exclusive))?;
    let service = quiet_service()?;
    for wanted in changes {
        let place = opened.iter().position(|(_, probed)| probed.spec.text == wanted.member);
        let (member, probed) = opened.remove(place.ok_or_else(|| changed_meanwhile(&wanted.member))?);
        let superblock = probed.look.superblock.as_ref();
        if superblock.and_then(|superblock| change(probed.spec.text.clone(), superblock)).as_ref() != Some(wanted) {
            return Err(changed_meanwhile(&wanted.member));
        }
        write_member(&service.handle(), member, superblock.expect("just seen"))?;
    }
    service.stop();
    Ok(())
}

fn write_member(service: &ServiceHandle, mut member: OpenedMember, superblock: &Superblock) -> Result<(), Failure> {
    let name = member.spec.text.clone();
    let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
    let block = usize::try_from(member.info.block.bytes().get()).expect("at most 4096");
    member.read_at(superblock.super_offset, &mut bytes).map_err(|error| Failure::failed(error).of(&name))?;
    clear(superblock, &mut bytes);
    let at = byte_of(superblock.super_offset);
    on_raw_drive(service, member, "its superblock cannot be written", |service, array| {
        write_durably(service, array, at, &bytes[..block])
    })
}

/// Writes, flushes, and reads the sector again.
fn write_durably(
    service: &ServiceHandle,
    array: openraid_units::ArrayId,
    at: u64,
    bytes: &[u8],
) -> Result<(), ServiceError> {
    service.write(array, at, bytes, true)?;
    service.flush(array)
}

fn byte_of(lba: DriveLba) -> u64 {
    lba.offset().bytes().get()
}

/// Clears the field in the first sector of a superblock.
fn clear(superblock: &Superblock, sectors: &mut [u8]) {
    let mut encoded = [0; SUPERBLOCK_BYTES_MAX];
    let cleared = Superblock { logical_block_size: 0, ..superblock.clone() };
    cleared.encode(&mut encoded);
    sectors[..SECTOR].copy_from_slice(&encoded[..SECTOR]);
}

/// Superblocks of a stripe are data of its spans, so they are written through the spans, like data of hosts.
fn write_outer(specs: &[MemberSpec], changes: &[SuperblockChange]) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    let service = quiet_service()?;
    let handle = service.handle();
    let request = AssembleRequest { options: AssembleOptions::default(), nesting: Nesting::Ignore };
    let started = handle.assemble(open_every(specs, options(Use::Exclusive))?, request)?;
    for span in &started.arrays {
        let name = array_name(&span.superblock);
        let superblock = outer_superblock(&handle, span)?.filter(|superblock| superblock.logical_block().is_some());
        if let Some(superblock) = superblock {
            let mut bytes = [0; SUPERBLOCK_BYTES_MAX];
            let at = byte_of(superblock.super_offset);
            let done = handle.read(span.array, at, &mut bytes).and_then(|()| {
                clear(&superblock, &mut bytes);
                write_durably(&handle, span.array, at, &bytes)
            });
            done.map_err(|error| Failure::new(error.exit(), error).of(&name))?;
        }
        handle.stop_and_release(span)?;
    }
    service.stop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on_disk::hostile::hostile_sets;

    #[test]
    fn only_the_field_and_the_checksum_change() {
        let mut seen = 0;
        hostile_sets(20, |superblocks| {
            for superblock in superblocks {
                let superblock = Superblock { logical_block_size: 4096, ..superblock };
                let mut before = [0; SUPERBLOCK_BYTES_MAX];
                superblock.encode(&mut before);
                let mut after = before;
                clear(&superblock, &mut after);
                let changed: Vec<usize> = (0..before.len()).filter(|at| before[*at] != after[*at]).collect();
                let expected = |at: &usize| (216..220).contains(at) || (224..228).contains(at);
                assert!(changed.iter().all(expected), "{changed:?}");
                assert_eq!(after[224..228], [0; 4]);
                seen += 1;
            }
        });
        assert!(seen > 100, "most changes decode: {seen}");
    }
}
