//! The place of the log of a slot: on its member and, while that is being replaced, on its replacement.

use openraid_format::{PPL_HEADER_SECTORS, PPL_PAYLOAD_MAX};
use openraid_units::{BlockSize, DriveLba, PoolOffset, Sectors, SetId, Slot};

use crate::actions::{Data, DriveOp, IoClass};
use crate::array::set::Set;
use crate::array::sets::Sets;
use crate::call::Call;
use crate::io::state::command::{ChannelCommand, Owner};
use crate::io::state::op::Partial;
use crate::io::state::op::{Op, PartialParity};
use crate::slot_set::SlotSet;

/// Size of the partial parity that one log takes in an area of this size; `None` if the area cannot be used with these
/// blocks.
pub(crate) fn room_of((start, size): (DriveLba, Sectors), block: BlockSize) -> Option<Sectors> {
    let block = block.sectors();
    let room = size.saturating_sub(PPL_HEADER_SECTORS).min(PPL_PAYLOAD_MAX).round_down(Sectors::kib(4));
    ((start.offset() % block).is_zero() && !room.is_zero()).then_some(room)
}

/// The members that keep the log of a slot.
pub(super) fn log_keepers(set: &Set, slot: Slot) -> [Option<usize>; 2] {
    let place = set.place(slot);
    [place.member(), place.replacement()].map(|index| {
        let index = index?;
        let member = set.member(index);
        (member.is_active() && member.ppl_area().is_some()).then_some(index as usize)
    })
}

/// Does a write of these slots need a record, and with partial parity? `parity` are the parities that it writes.
pub(crate) fn record_for(op: &Op, set: &Set, named: SlotSet, parity: SlotSet) -> (Partial, PartialParity) {
    if set.ppl.is_none() {
        return (Partial::No, PartialParity::None);
    }
    let map = op.parity(set);
    let p = map.p_slot(op.rows_of().stripe);
    let (from, to) = op.member_rows(set);
    // Parity that is being filled here is made again after a crash.
    let believed = set.in_sync() | set.filled(op.side(), from, to) | set.inherited();
    if !parity.contains(p) || !believed.contains(p) {
        return (Partial::No, PartialParity::None);
    }
    let is_partial = named.len() < u32::from(map.data_columns());
    (Partial::Due, if is_partial { PartialParity::Buffered } else { PartialParity::None })
}

/// Write to the area of a member's log, durably.
pub(super) fn write_area(
    sets: &mut Sets,
    (id, index): (SetId, usize),
    owner: Owner,
    (at, len): (Sectors, Sectors),
    frames: PoolOffset,
    hold: Option<crate::io::state::command::Hold>,
    call: &mut Call,
) {
    let member = sets.get_mut(id).member_mut(u32::try_from(index).expect("few members"));
    member.count_write(len);
    let (start, _) = member.ppl_area().expect("it was chosen for its log");
    let (slot, drive) = (member.slot().unwrap_or_default(), member.drive());
    let member = u32::try_from(index).expect("few members");
    let command = ChannelCommand::new(owner, id, member, slot, drive)
        .doing(DriveOp::Write { fua: true }, (start + at, len), Data::Frames(frames))
        .of_class(IoClass::Metadata)
        .holding(hold);
    call.push(&command);
}
