//! PPL recovery, from assembly to the first request, and the log of a member that joins later.
//!
//! ```text
//!  Redo    entries are applied, one after the other (`redo_next`); unreadable ones cause a resync or a refusal
//!  Flush   the members are flushed
//!  Clear   the areas after the next header are zeroed
//!  Header  empty headers are written
//!  Ready   the set takes requests
//! ```

use alloc::boxed::Box;
use openraid_format::{PplHeader, PPL_HEADER_BYTES, PPL_HEADER_SECTORS};
use openraid_units::{BlockSize, Bytes, DriveId, PoolOffset, Sectors, SetId};

use super::area::room_of;
use super::{Redoing, SetPpl, StartStage};
use crate::admin_answer::AdminError;
use crate::array::assemble::{Assembly, PplRedo};
use crate::array::set::{Life, Set};
use crate::array::set_start::rows_max_of;
use crate::array::sets::Sets;
use crate::array::suitable_drive::check_chunk;
use crate::call::Call;
use crate::geometry::shape::Side;
use crate::io::state::command::Owner;
use crate::io::state::drive_queues::Channels;
use crate::io::state::footprint::{Columns, StripeRows};
use crate::io::state::op::Op;
use crate::io::state::ops::Ops;
use crate::io::state::search::Part;
use crate::limits::{Limits, ZERO_REGION_BYTES};
use crate::ppl::area::write_area;
use crate::ppl::write_log::next_log_generation;

/// The logical block of a set, and the maximum number of rows of one of its operations. The block is the largest of
/// its members' blocks and of the block in its superblock (Linux 6.19 and later).
pub(crate) fn block_and_rows_of(
    channels: &Channels,
    limits: &Limits,
    assembly: &Assembly,
    drives: &[DriveId],
) -> Result<(BlockSize, u32), AdminError> {
    let claimed = drives.iter().filter_map(|d| channels.get(*d));
    let largest = claimed.map(|channel| channel.info().block).max();
    let largest = largest.ok_or(AdminError::NotPossible("the array has no member"))?;
    let block = assembly.common.logical_block().map_or(largest, |asked| asked.max(largest));
    check_chunk(&assembly.common, block)?;
    Ok((block, rows_max(assembly, limits, block)?))
}

/// Number of rows that one operation of the planned set may cover: its record must fit into the logs.
///
/// # Errors
/// The work frames are too few, or the area of a log does not fit the blocks of the drives.
fn rows_max(assembly: &Assembly, limits: &Limits, block: BlockSize) -> Result<u32, AdminError> {
    if assembly.ppl.is_none() {
        let rows = rows_max_of(limits, &assembly.geometry, block, 0)?;
        return match &assembly.change {
            Some(planned) => Ok(rows.min(rows_max_of(limits, planned.change.on(Side::New), block, 0)?)),
            None => Ok(rows),
        };
    }
    let room = room_of_all(assembly, block).ok_or(AdminError::NotPossible(
        "the area of a member's partial parity log does not fit the blocks of the drives; use Linux md for this array",
    ))?;
    // Partial parity has a buffer of its own.
    let rows = rows_max_of(limits, &assembly.geometry, block, 1)?;
    Ok(rows.min(u32::try_from(room.get()).expect("at most 128 KiB")))
}

/// Give a set that is being started its logs. It takes requests when the logs are applied and empty.
pub(crate) fn start_ppl(set: &mut Set, assembly: &Assembly, ops_max: u32) {
    let Some(planned) = &assembly.ppl else { return };
    let room = room_of_all(assembly, set.block()).expect("its rows fit into it");
    set.enter(Life::Starting);
    set.ppl = Some(Box::new(SetPpl::new(planned, set.slots(), room, ops_max)));
}

/// Advance a set that does not take requests yet; true if something changed.
pub(crate) fn pump_ppl_start(sets: &mut Sets, id: SetId, ops: &mut Ops, call: &mut Call) -> bool {
    let set = sets.get(id);
    let Some(ppl) = &set.ppl else { return false };
    let busy = ppl.redoing.is_some() || ppl.flushes + ppl.setups > 0 || ppl.error.is_some();
    if ppl.stage == StartStage::Ready || busy || set.has_failed() {
        return false;
    }
    if !call.channels().may_issue() || ops.room() == 0 || !call.actions().has_room() {
        ops.wait_in_background();
        return false;
    }
    match ppl.stage {
        StartStage::Redo => redo_next(sets, id, ops, call),
        StartStage::Flush if set.has_failed_flush() => {
            sets.get_mut(id).ppl.as_mut().expect("it has logs").error = Some(
                "a member failed a flush, or a record of one, while the partial parity logs were applied; the logs \
                 are unchanged; check that drive, and start the array again",
            );
        }
        // In a power cut now, a member that has failed meanwhile would come back as good, and lack data that parity
        // was computed from.
        StartStage::Flush if !set.is_failure_durable() => return false,
        StartStage::Flush => {
            enter_stage(sets, id, StartStage::Clear);
            clear_areas(sets, id, call);
        }
        StartStage::Clear => {
            enter_stage(sets, id, StartStage::Header);
            write_empty_headers(sets, id, call);
        }
        StartStage::Header => {
            let set = sets.get_mut(id);
            let dirty = set.ppl.as_ref().is_some_and(|ppl| ppl.dirty);
            if dirty {
                // The superblocks no longer say that it was not stopped cleanly.
                set.metadata.as_mut().expect("sets with logs have metadata").request();
            }
            enter_stage(sets, id, StartStage::Ready);
        }
        StartStage::Ready => unreachable!("just seen"),
    }
    sets.look();
    true
}

/// Apply the next entry; after the last one the members are flushed.
fn redo_next(sets: &mut Sets, id: SetId, ops: &mut Ops, call: &mut Call) {
    if let Some(entry) = next_entry(sets.get_mut(id)) {
        let ppl = sets.get_mut(id).ppl.as_mut().expect("it has logs");
        ppl.redoing = Some(Redoing { entry, crc: 0, sound: entry.at.is_none() });
        let rows_max = sets.get(id).rows_max();
        let side = sets.get(id).shape().work_side();
        let part = Part::first(entry.lo, entry.hi, rows_max);
        let columns = Columns::Named { first: entry.first, count: entry.columns };
        let rows = StripeRows::new(side, entry.stripe, part, columns);
        let op = Op::reparity(id, rows, entry.slot);
        let key = ops.begin(sets.get_mut(id), op);
        ops.wake(key.index);
        return;
    }
    let set = sets.get_mut(id);
    let (unread, force) = set.ppl.as_ref().map(|ppl| (ppl.unread, ppl.force)).expect("it has logs");
    let whole = set.is_whole();
    if unread && whole {
        set.distrust();
    } else if unread && !force {
        set.ppl.as_mut().expect("it has logs").error = Some(
            "the partial parity log of a member cannot be read, and the array is degraded: stripes that were being \
             written may be wrong in the missing slots; bring the missing members back, or use --force to start with \
             that risk",
        );
        return;
    }
    enter_stage(sets, id, StartStage::Flush);
    let issued = sets.flush_members(id, Owner::PplFlush, call);
    sets.get_mut(id).ppl.as_mut().expect("it has logs").flushes = issued;
}

/// The next entry that can be applied. Rows that were written while a member with larger blocks was missing may not
/// be whole blocks of it.
fn next_entry(set: &mut Set) -> Option<PplRedo> {
    let block = u32::try_from(set.block().sectors().get()).expect("a block is small");
    set.ppl.as_mut().expect("it has logs").next_entry(block)
}

impl SetPpl {
    /// The next entry whose rows are whole blocks of `block` sectors. The others count as unread.
    fn next_entry(&mut self, block: u32) -> Option<PplRedo> {
        loop {
            let entry = self.redo.pop_front()?;
            if (entry.lo | entry.hi).is_multiple_of(block) {
                return Some(entry);
            }
            self.unread = true;
        }
    }
}

fn enter_stage(sets: &mut Sets, id: SetId, stage: StartStage) {
    sets.get_mut(id).ppl.as_mut().expect("it has logs").stage = stage;
}

/// Zero the space after the next header, so that logs of an earlier time cannot be taken for newer ones.
fn clear_areas(sets: &mut Sets, id: SetId, call: &mut Call) {
    for index in 0..sets.get(id).members().len() {
        zero_area(sets, id, index, call);
    }
}

fn zero_area(sets: &mut Sets, id: SetId, index: usize, call: &mut Call) {
    let member = &sets.get(id).members()[index];
    let Some((_, size)) = member.ppl_area().filter(|_| member.has_metadata()) else { return };
    let mut at = PPL_HEADER_SECTORS;
    while at < size {
        let len = (size - at).min(Bytes(ZERO_REGION_BYTES).sectors_floor());
        sets.get_mut(id).ppl.as_mut().expect("it has logs").setups += 1;
        let owner = Owner::PplSetup;
        write_area(sets, (id, index), owner, (at, len), PoolOffset::ZERO, None, call);
        at += len;
    }
}

fn write_empty_headers(sets: &mut Sets, id: SetId, call: &mut Call) {
    let generation = next_log_generation(sets.get_mut(id));
    for index in 0..sets.get(id).members().len() {
        write_empty_header(sets, id, index, generation, call);
    }
}

fn write_empty_header(sets: &mut Sets, id: SetId, index: usize, generation: u64, call: &mut Call) {
    let set = sets.get_mut(id);
    let member = &set.members()[index];
    if !member.has_metadata() || member.ppl_area().is_none() {
        return;
    }
    set.ppl.as_mut().expect("it has logs").setups += 1;
    let uuid = set.metadata.as_ref().expect("sets with logs have metadata").common().set_uuid;
    let mut bytes = [0; PPL_HEADER_BYTES];
    PplHeader::new(uuid, generation).encode(&mut bytes);
    write_log_header(sets, (id, index), Owner::PplSetup, &bytes, call);
}

pub(super) fn write_log_header(
    sets: &mut Sets,
    (id, index): (SetId, usize),
    owner: Owner,
    bytes: &[u8; PPL_HEADER_BYTES],
    call: &mut Call,
) {
    let member = sets.get_mut(id).member_mut(u32::try_from(index).expect("few members"));
    member.count_write(PPL_HEADER_SECTORS);
    let (lba, _) = member.ppl_area().expect("it was chosen for its log");
    sets.write_metadata((id, index), owner, lba, (bytes, PPL_HEADER_BYTES), call);
}

/// A member joins: the content of its area does not belong to its new slot. Its header states, as the others' do,
/// whether parity is consistent: when the member has been filled, it may be the only one that is left.
pub(crate) fn prepare_log(sets: &mut Sets, id: SetId, index: usize, call: &mut Call) {
    if sets.get(id).ppl.is_some() {
        let generation = next_log_generation(sets.get_mut(id));
        zero_area(sets, id, index, call);
        write_empty_header(sets, id, index, generation, call);
    }
}

/// A write to an area that is being prepared ended.
pub(crate) fn on_ppl_setup(sets: &mut Sets, id: SetId) {
    sets.get_mut(id).ppl.as_mut().expect("its logs were prepared").setups -= 1;
}

/// Size of the partial parity that a log takes on every member.
fn room_of_all(assembly: &Assembly, block: BlockSize) -> Option<Sectors> {
    let mut least = Sectors::MAX;
    for member in &assembly.members {
        least = least.min(room_of(member.superblock.ppl_area()?, block)?);
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    use openraid_units::{Slot, StripeIndex};

    use super::*;
    use crate::array::assemble::PlannedPpl;

    #[test]
    fn entries_whose_rows_are_no_whole_blocks_are_left_out_and_the_set_counts_as_not_recovered_completely() {
        let entry = |lo, hi| {
            let (slot, stripe) = (Slot(1), StripeIndex(0));
            PplRedo { slot, at: None, stripe, lo, hi, first: 0, columns: 1, checksum: 0 }
        };
        // Rows of 512 bytes, blocks of 4 KiB.
        for (rows, whole) in [((0, 8), true), ((8, 24), true), ((4, 8), false), ((8, 12), false), ((1, 9), false)] {
            let entries = [(0, 8), rows, (16, 24)].map(|(lo, hi)| entry(lo, hi));
            let planned = PlannedPpl { redo: entries.into(), ..PlannedPpl::default() };
            let mut ppl = SetPpl::new(&planned, 4, Sectors(128), 8);
            let found = core::iter::from_fn(|| ppl.next_entry(8)).map(|entry| (entry.lo, entry.hi));
            let expected = [(0, 8), rows, (16, 24)].into_iter().filter(|range| whole || *range != rows);
            assert!(found.eq(expected) && ppl.unread != whole, "{rows:?}");
        }
    }
}
