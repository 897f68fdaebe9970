//! Starting sets and arrays: their places in the tables, the drives that they claim, the first state of a set.

use alloc::string::ToString;
use alloc::vec::Vec;
use openraid_format::{BitmapHeader, DeviceRole, FeatureMap, MdLevel, Superblock, BITMAP_HEADER_BYTES};
use openraid_units::{ArrayId, BlockSize, Bytes, DriveId, DriveLba, Sectors, Slot};

use super::assemble::{Assembly, FoundGuard, PlannedMember};
use super::consistency::Consistency;
use super::member::new_member;
use super::member::{Member, Seat};
use super::membership::Membership;
use super::metadata::Metadata;
use super::set::{Life, Set};
use super::suitable_drive::check_chunk;
use super::volume::{Array, Volume};
use super::write_intent_bitmap::Bitmap;
use crate::admin_answer::AdminError;
use crate::array::sets::Sets;
use crate::array::volume::Arrays;
use crate::call::Base;
use crate::frames::{Frames, RUN_BYTES_MAX};
use crate::geometry::shape::Shape;
use crate::geometry::{Divisor, Geometry, Level, SetSpec};
use crate::limits::Limits;
use crate::set_status::MemberState;

/// Number of rows that one operation may cover. Its buffers, one for each member and some more, must fit into one
/// zone of the work frames.
///
/// # Errors
/// Not one block of each member fits.
pub(crate) fn rows_max_of(
    limits: &Limits,
    geometry: &Geometry,
    block: BlockSize,
    more: u64,
) -> Result<u32, AdminError> {
    let zone = Frames::zone_bytes(limits.work.get());
    let members = u64::from(geometry.members()) + more;
    if (members * block.bytes().get()).next_power_of_two() > zone {
        return Err(AdminError::NotPossible(
            "the work memory is too small for the members of this array; give the server more (--memory)",
        ));
    }
    // Runs are powers of two, so half of the share always fits.
    let rows = ((zone / members / 2) >> openraid_units::SECTOR_SHIFT).min(limits.rows_max.get());
    // All writes of one operation must fit into one entry of the journal.
    let entry = limits.journal_buffer().sectors_floor().get() / members;
    let rows = if limits.journal.is_zero() { rows } else { rows.min(entry) };
    let rows = (rows - rows % 8).max(block.sectors().get());
    Ok(u32::try_from(rows).expect("rows are bounded by the limits"))
}

/// Length of the pieces of requests: whole stripes, up to a quarter of the frames.
fn piece_of(limits: &Limits, stripe: Bytes) -> Bytes {
    let max = limits.piece_bytes_max;
    if stripe <= max {
        max.round_down(stripe)
    } else if stripe <= limits.host_bytes() / 4 && stripe <= RUN_BYTES_MAX {
        stripe
    } else {
        max
    }
}

impl Set {
    /// The set that an assembly describes, as it starts, without partial parity logs.
    pub(crate) fn of_assembly(
        array: ArrayId,
        (block, rows_max): (BlockSize, u32),
        assembly: &Assembly,
        base: &Base,
    ) -> Self {
        let mut set = Self::new(array, assembly.shape(), (block, rows_max), &base.limits);
        let mut common = assembly.common.clone();
        common.recovery_or_tail = 0;
        set.metadata = Some(Metadata::new(common));
        for planned in &assembly.members {
            let index = u32::try_from(set.members.len()).expect("few members");
            let mut member = planned_member(planned);
            if let MemberState::Rebuilding { to } = &mut member.state {
                *to = set.filled_floor(*to);
            }
            match member.seat {
                Seat::Replaces(slot) => set.places[slot.index()].begin_replacement(index),
                Seat::Holds(slot) => set.places[slot.index()].hold(index),
                Seat::None | Seat::Returns(_) | Seat::Left(_) | Seat::Removed => {}
            }
            set.members.push(member);
        }
        set.bitmap = assembly.bitmap.as_ref().map(|planned| start_bitmap(planned, assembly));
        let look = base.now + base.limits.bitmap_clear_delay;
        set.bitmap.iter_mut().for_each(|bitmap| bitmap.look_again_at(look));
        // Some members were left out before others were complete again. The bits do not cover the writes that those
        // lack.
        let only_marked = set.bitmap.is_some() && !assembly.newly_created && !assembly.has_forced();
        set.consistency = Consistency::from(assembly.resync_from, only_marked);
        set.plant(base.planted);
        set.refresh();
        let newest = assembly.common.events;
        if assembly.members.iter().any(|m| m.verdict != Membership::Spare && m.superblock.events < newest) {
            set.metadata.as_mut().expect("just put").request_catch_up(assembly.mark.kept());
        }
        if assembly.mark != FoundGuard::None {
            set.metadata.as_mut().expect("just put").request();
        }
        note_absence(&mut set, assembly);
        record_start(&mut set, assembly);
        set
    }

    /// The set of one drive that is passed through.
    pub(crate) fn passed_through(
        array: ArrayId,
        geometry: Geometry,
        drive: DriveId,
        (block, rows_max): (BlockSize, u32),
        limits: &Limits,
    ) -> Self {
        let mut set = Self::new(array, Shape::steady(geometry), (block, rows_max), limits);
        set.members.push(new_member(drive, Some(Slot(0)), MemberState::InSync, DriveLba::ZERO, None, &[]));
        set.places[0].hold(0);
        set.refresh();
        set
    }
}

impl Array {
    /// Its requests are cut at stripes of this length, and gathered if its set has parity.
    pub(crate) fn fit(&mut self, limits: &Limits, stripe: Sectors, gathers: bool) {
        self.piece = Divisor::new(piece_of(limits, stripe.bytes()).get());
        self.set_gathers(gathers);
    }
}

impl Arrays {
    pub(crate) fn add_array(
        &mut self,
        base: &Base,
        block: BlockSize,
        stripe: Sectors,
        volume: Volume,
    ) -> Result<ArrayId, AdminError> {
        let id = self.free_number().ok_or(AdminError::Full("array"))?;
        let piece = Divisor::new(piece_of(&base.limits, stripe.bytes()).get());
        self.put(id, Array::new(block, volume, piece, base.now));
        Ok(id)
    }

    pub(crate) fn start_striped(
        &mut self,
        sets: &mut Sets,
        base: &Base,
        spans: &[ArrayId],
        superblocks: &[Superblock],
    ) -> Result<ArrayId, AdminError> {
        if spans.is_empty() || spans.len() != superblocks.len() {
            return Err(AdminError::NotPossible("a nested array needs one outer superblock for each span"));
        }
        let outer = &superblocks[0];
        if outer.level != MdLevel::Raid0 || usize::from(outer.raid_disks) != spans.len() {
            return Err(AdminError::NotPossible(
                "the spans' outer superblocks are not of a RAID 0 over just these spans",
            ));
        }
        let mut pairs = Vec::new();
        let mut block = BlockSize::B512;
        for (span, superblock) in spans.iter().zip(superblocks) {
            let array = self.find(*span).ok_or(AdminError::NoSuchArray(*span))?;
            let Volume::Direct(set) = array.volume else {
                return Err(AdminError::NotPossible("a span of a nested array cannot be nested itself"));
            };
            let need = Sectors(superblock.data_offset.get().saturating_add(superblock.data_size.get()));
            let have = array.capacity(|set| sets.get(set).shape());
            if need > have {
                return Err(AdminError::TooSmall { have, need });
            }
            block = block.max(array.block).max(superblock.logical_block().unwrap_or(BlockSize::B512));
            pairs.push((set, superblock.data_offset.offset()));
        }
        check_chunk(outer, block)?;
        let sizes: Vec<Sectors> = superblocks.iter().map(|s| s.data_size).collect();
        let said = outer.features.contains(FeatureMap::RAID0_LAYOUT);
        let spec = SetSpec {
            level: Level::Raid0,
            members: outer.raid_disks,
            chunk: outer.chunk,
            layout: if said { outer.layout } else { 0 },
            member_size: Sectors::ZERO,
            member_sizes: &sizes,
        };
        let geometry = Geometry::new(&spec).map_err(|e| AdminError::Refused(e.to_string()))?;
        let Geometry::Striped(geometry) = geometry else { unreachable!("RAID 0 is striped") };
        let stripe = geometry.full_stripe();
        let array = self.add_array(base, block, stripe, Volume::Striped { geometry, spans: pairs })?;
        let mut gathers = false;
        for span in spans {
            let entry = self.get_mut(*span);
            entry.outer += 1;
            // Requests are cut at the blocks of the outer array, so a span without its member with the largest block
            // accepts them too.
            entry.block = block;
            let Volume::Direct(set) = entry.volume else { unreachable!("just seen") };
            sets.get_mut(set).block = block;
            gathers |= entry.gathers;
        }
        self.get_mut(array).gathers = gathers;
        let Some(Volume::Striped { spans, .. }) = self.find(array).map(|array| &array.volume) else {
            unreachable!("just made")
        };
        let first = spans[0].0;
        sets.reset_adaptive(self, base, first);
        Ok(array)
    }
}

/// If the superblocks call an absent device a member, the next record marks the device as absent. The rule also holds
/// for two devices that share a slot with a present one: a replacement that is absent while the old member is present,
/// and an old member that is absent while its complete replacement is present.
pub(crate) fn note_absence(set: &mut Set, assembly: &Assembly) {
    let present: Vec<u32> =
        set.members.iter().filter_map(|m| m.superblock.as_ref()).map(|superblock| superblock.dev_number).collect();
    let absent = |number: u32, role: DeviceRole| matches!(role, DeviceRole::Active(_)) && !present.contains(&number);
    let roles = &assembly.common.roles;
    let numbers = 0..u32::try_from(roles.len()).expect("few devices");
    let absent: Vec<u32> = numbers.filter(|number| absent(*number, roles.get(*number))).collect();
    // A complete replacement has taken the slot of a member that may come back.
    let replaced = |member: &PlannedMember| {
        matches!(member.verdict, Membership::Member(_)) && member.superblock.features.contains(FeatureMap::REPLACEMENT)
    };
    let replaced = assembly.members.iter().any(replaced);
    if assembly.newly_created || !replaced && absent.is_empty() {
        return;
    }
    let metadata = set.metadata.as_mut().expect("sets that were assembled have metadata");
    // As in md, a member that is absent is faulty.
    metadata.note_absence(absent);
    if replaced || assembly.resync_from.is_some() || assembly.ppl.as_ref().is_some_and(|ppl| ppl.dirty) {
        // The superblocks say "active" already, so nothing else would be recorded before the first write is answered.
        metadata.request_failure();
    }
}

/// Record in the superblocks what must be durable before the first write.
pub(crate) fn record_start(set: &mut Set, assembly: &Assembly) {
    let distrusts = assembly.members.iter().any(is_distrusted);
    if assembly.newly_created || assembly.forced.is_some() || distrusts {
        set.metadata.as_mut().expect("sets that were assembled have metadata").request();
        // Hosts may read only when the deciding superblocks are on disk.
        set.life = if assembly.newly_created || distrusts { Life::Starting } else { Life::Running };
    }
}

/// Is a replacement worth less than its superblock says? If the member that it replaces is missing at the next start,
/// the replacement would be trusted.
fn is_distrusted(planned: &PlannedMember) -> bool {
    let said = planned.superblock.recovery_offset().map_or(Sectors::MAX, openraid_units::MemberLba::offset);
    matches!(planned.verdict, Membership::Replacement(_, to) if to < said)
}

pub(crate) fn planned_member(planned: &PlannedMember) -> Member {
    let (seat, state) = match planned.verdict {
        Membership::Member(slot) | Membership::Forced(slot) => (Seat::Holds(slot), MemberState::InSync),
        Membership::Rebuilding(slot, to) => (Seat::Holds(slot), MemberState::Rebuilding { to }),
        Membership::Replacement(slot, to) => (Seat::Replaces(slot), MemberState::Rebuilding { to }),
        Membership::Spare => (Seat::None, MemberState::Spare),
        Membership::Stale { .. }
        | Membership::Failed
        | Membership::Replaced
        | Membership::Split { .. }
        | Membership::SlotTaken(_) => {
            unreachable!("these are left out of the plan")
        }
    };
    let superblock = planned.superblock.clone();
    let starts = [superblock.data_offset, superblock.new_data_offset()];
    let member = new_member(planned.drive, None, state, superblock.data_offset, Some(superblock), &planned.bad);
    Member { seat, starts, ..member }
}

pub(crate) fn start_bitmap(planned: &super::assemble::PlannedBitmap, assembly: &Assembly) -> Bitmap {
    let mut header = [0; BITMAP_HEADER_BYTES];
    let fixed: &BitmapHeader = &planned.header;
    fixed.encode(&mut header);
    let geometry = fixed.geometry();
    let mut bitmap = Bitmap::new(&header, &planned.bits, geometry.chunk, geometry.bits);
    // After a crash in the first sync of a new array, only the bits say what remains: everything.
    if !planned.valid || (assembly.newly_created && assembly.resync_from.is_some()) {
        bitmap.set_all();
    }
    if assembly.resync_from.is_some() {
        bitmap.mark_stale();
    }
    if assembly.newly_created || !planned.alike {
        bitmap.touch_all();
    }
    bitmap
}
