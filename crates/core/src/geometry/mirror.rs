//! RAID 1 and RAID 10: every block on several members.
//!
//! RAID 10 has three ways to place copies, and any mix of them that md accepts. *Near* copies are next to each other in
//! the row of chunks. If the number of members is not a multiple of the copies, they continue in the next row (RAID
//! 1E). *Far* copies repeat the whole arrangement further down the members, each time rotated by the number of near
//! copies, so that one copy of everything is striped on the outer tracks. *Offset* copies repeat each row directly
//! below itself, rotated in the same way. Far sets rotate within groups of members instead of all of them.
//!
//! md accepts some mixes whose map puts two chunks at one place: near copies that continue in the next row, together
//! with offset copies, and far sets of several near copies if the number of members is not a multiple of them. These
//! are refused.

use super::{check_capacity, Fragment, GeometryError, Level, SetSpec};
use crate::slot_set::SlotSet;
use alloc::vec::Vec;
use core::iter::FusedIterator;
use openraid_units::{MemberLba, Sectors, SetLba, Slot};

/// Bits of md's layout number for RAID 10.
mod bits {
    /// Near copies, 8 bits.
    pub const NEAR: u32 = 0xff;
    /// Far copies, 8 bits from here.
    pub const FAR_SHIFT: u32 = 8;
    /// Offset copies: one row below, not far down.
    pub const OFFSET: u32 = 1 << 16;
    /// Kind of far sets, from here up.
    pub const SETS_SHIFT: u32 = 17;
}

/// Copies of everything, by rows of chunks or of the whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mirror {
    members: u16,
    capacity: Sectors,
    extent: Sectors,
    /// Copies of each block.
    copies: u16,
    /// `None`: RAID 1, each member is the set.
    rows: Option<Rows>,
    /// The slots that hold the same blocks, one entry for every different group.
    groups: Vec<SlotSet>,
}

/// The arrangement of RAID 10.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Rows {
    chunk: Sectors,
    shift: u32,
    /// Chunks of the set.
    chunks: u64,
    near: u16,
    far: u16,
    offset: bool,
    /// Rows from one far copy to the next.
    stride: u64,
    /// `[copy * members + slot]`: the slot of far copy `copy` of the chunks whose first copy is in `slot`.
    forward: Vec<u8>,
    /// `[copy * members + slot]`: the slot of the first copy of the chunks whose far copy `copy` is in `slot`.
    backward: Vec<u8>,
}

impl Mirror {
    pub(super) fn new(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        if spec.level == Level::Raid10 {
            return Self::rows(spec);
        }
        spec.check_member_size(Sectors(1))?;
        Ok(Self {
            members: spec.members,
            capacity: spec.member_size,
            extent: spec.member_size,
            copies: spec.members,
            rows: None,
            groups: [SlotSet::first_n(spec.members)].into(),
        })
    }

    /// RAID 10. md computes the rows used of each member in a longer way with the same result: rows for one copy are
    /// the member's chunks divided by the far copies; the rest is unused.
    fn rows(spec: &SetSpec<'_>) -> Result<Self, GeometryError> {
        let (near, far) = copies_of(spec)?;
        let set_size = far_set_size(spec, near, far)?;
        let shift = spec.check_chunk_power()?;
        let offset = spec.layout & bits::OFFSET != 0;
        spec.check_member_size(spec.chunk.checked_mul(u64::from(far)).unwrap_or(Sectors::MAX))?;
        let stride = (spec.member_size.0 >> shift) / u64::from(far);
        let chunks = stride * u64::from(spec.members) / u64::from(near);
        check_capacity(Sectors(chunks).checked_mul(spec.chunk.0).unwrap_or(Sectors::MAX))?;

        let overlap = GeometryError::Overlap { layout: spec.layout, members: spec.members };
        let (forward, backward) = far_slots(spec.members, near, far, set_size).ok_or(overlap)?;
        if offset && far > 1 && !spec.members.is_multiple_of(near) {
            return Err(overlap);
        }
        let mut mirror = Self {
            members: spec.members,
            capacity: Sectors(chunks << shift),
            extent: Sectors((stride * u64::from(far)) << shift),
            copies: near * far,
            rows: Some(Rows {
                chunk: spec.chunk,
                shift,
                chunks,
                near,
                far,
                offset,
                stride: if offset { 1 } else { stride },
                forward,
                backward,
            }),
            groups: Vec::new(),
        };
        // After this many chunks the first copies begin in slot 0 again.
        for chunk in 0..chunks.min(u64::from(spec.members)) {
            let group = mirror.copies(SetLba(chunk << shift)).map(|copy| copy.slot).collect();
            if !mirror.groups.contains(&group) {
                mirror.groups.push(group);
            }
        }
        Ok(mirror)
    }

    /// Size of the set.
    #[must_use]
    pub const fn capacity(&self) -> Sectors {
        self.capacity
    }
    /// Number of slots.
    #[must_use]
    pub const fn members(&self) -> u16 {
        self.members
    }
    /// Number of copies of each block.
    #[must_use]
    pub const fn copy_count(&self) -> u16 {
        self.copies
    }
    /// Do members hold copies of data whose first copy is on another member (far and offset copies)? Then the first
    /// copies of a stream are striped over the members.
    #[must_use]
    pub fn has_far_copies(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.far > 1)
    }
    /// Length of the used part of each member, from its start; RAID 10 may leave single chunks unused below that.
    #[must_use]
    pub const fn member_extent(&self) -> Sectors {
        self.extent
    }
    /// The chunk; RAID 1 has none.
    #[must_use]
    pub fn chunk(&self) -> Option<Sectors> {
        self.rows.as_ref().map(|rows| rows.chunk)
    }
    /// The write that uses every member once, as md counts it: if the number of members is not a multiple of the near
    /// copies, one chunk for each member.
    #[must_use]
    pub fn full_stripe(&self) -> Sectors {
        match &self.rows {
            None => super::UNIT_WITHOUT_CHUNK,
            Some(rows) if self.members.is_multiple_of(rows.near) => rows.chunk * u64::from(self.members / rows.near),
            Some(rows) => rows.chunk * u64::from(self.members),
        }
    }
    /// Does every block have a copy outside `missing`?
    #[must_use]
    pub fn survives(&self, missing: SlotSet) -> bool {
        !self.groups.iter().any(|group| group.minus(missing).is_empty())
    }
    /// Does any block have two copies left?
    #[must_use]
    pub fn is_redundant_without(&self, missing: SlotSet) -> bool {
        self.groups.iter().any(|group| group.minus(missing).len() > 1)
    }
    /// Does this slot have a block of which none of the others has a copy?
    #[must_use]
    pub fn has_only_copy(&self, slot: Slot, others: SlotSet) -> bool {
        self.groups.iter().any(|group| group.contains(slot) && !group.intersects(others.without(slot)))
    }
    /// Number of further members that may be lost in the worst case, if these are missing already.
    #[must_use]
    pub fn losses_survived_without(&self, missing: SlotSet) -> u16 {
        let least = self.groups.iter().map(|group| group.minus(missing).len()).min().expect("a set has a first chunk");
        u16::try_from(least.saturating_sub(1)).expect("a group is not larger than the set")
    }

    /// The length of each copy of `at`: to the end of the chunk, for RAID 1 to the end of the set.
    #[inline]
    #[must_use]
    pub const fn copy_len(&self, at: SetLba) -> Sectors {
        match &self.rows {
            None => Sectors(self.capacity.0 - at.0),
            Some(rows) => Sectors(rows.chunk.0 - (at.0 & (rows.chunk.0 - 1))),
        }
    }

    /// All copies of `at`, in md's order, each as long as [`Mirror::copy_len`] says. The slots differ, except in one family
    /// of layouts that md accepts with a warning: far sets of the old kind (0x20000) with more far copies than a set has
    /// members.
    #[must_use]
    pub fn copies(&self, at: SetLba) -> CopyIter<'_> {
        assert!(at.0 < self.capacity.0, "{at:?} is outside a mirrored set of {}", self.capacity);
        let len = self.copy_len(at);
        let Some(rows) = &self.rows else {
            return CopyIter { mirror: self, near: 0, far: 0, slot: 0, lba: MemberLba(at.0), len };
        };
        let within = at.0 & (rows.chunk.0 - 1);
        let place = (at.0 >> rows.shift) * u64::from(rows.near);
        let members = u64::from(self.members);
        let (row, slot) = (place / members, place % members);
        let row = if rows.offset { row * u64::from(rows.far) } else { row };
        CopyIter {
            mirror: self,
            near: 0,
            far: 0,
            slot: u16::try_from(slot).expect("a remainder by the members"),
            lba: MemberLba((row << rows.shift) + within),
            len,
        }
    }

    /// The address in the set of `at` on the member in `slot`, and the length for which it continues (to the end of the
    /// chunk, for RAID 1 of the set); `None` if nothing of the set is there.
    #[must_use]
    pub fn inverse(&self, slot: Slot, at: MemberLba) -> Option<(SetLba, Sectors)> {
        assert!(slot.0 < self.members, "slot {slot} is outside a set of {} members", self.members);
        let Some(rows) = &self.rows else {
            let run = self.capacity.saturating_sub(at.offset());
            return (!run.is_zero()).then_some((SetLba(at.0), run));
        };
        if at.0 >= self.extent.0 {
            return None;
        }
        let (member_row, within) = (at.0 >> rows.shift, at.0 & (rows.chunk.0 - 1));
        let far = u64::from(rows.far);
        let (row, copy) = match rows.offset {
            true => (member_row / far, member_row % far),
            false => (member_row % rows.stride, member_row / rows.stride),
        };
        let copy = usize::try_from(copy).expect("below the far copies, as the place is within the extent");
        let first = rows.backward[copy * usize::from(self.members) + slot.index()];
        let chunk = (row * u64::from(self.members) + u64::from(first)) / u64::from(rows.near);
        (chunk < rows.chunks).then(|| (SetLba((chunk << rows.shift) + within), Sectors(rows.chunk.0 - within)))
    }

    /// Do copies repeat the whole arrangement further down the members (far copies without offset)?
    pub(super) fn repeats_far_down(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.far > 1 && !rows.offset)
    }
    /// Near and far copies of each block; `None` for RAID 1.
    pub(super) fn near_and_far(&self) -> Option<(u16, u16)> {
        self.rows.as_ref().map(|rows| (rows.near, rows.far))
    }
    /// The first sector on a member with a copy of the chunk of `at` or of a later one; `None` if it has none.
    pub(super) fn used_from(&self, slot: Slot, at: SetLba) -> Option<MemberLba> {
        let rows = self.rows.as_ref()?;
        let (from, end) = ((at.0 >> rows.shift) * u64::from(rows.near), rows.chunks * u64::from(rows.near));
        let members = u64::from(self.members);
        let row = |copy| {
            let first = rows.first_number(self.members, slot, copy);
            let turn = from.saturating_sub(first).div_ceil(members);
            (turn * members + first < end).then(|| rows.row(turn, copy))
        };
        (0..rows.far).filter_map(row).min().map(|row| MemberLba(row << rows.shift))
    }
    /// The sector on a member after its last copy of the chunks that begin before `at`.
    pub(super) fn used_until(&self, slot: Slot, at: SetLba) -> MemberLba {
        let Some(rows) = &self.rows else { return MemberLba(self.extent.0) };
        let end = at.0.div_ceil(rows.chunk.0).min(rows.chunks) * u64::from(rows.near);
        let row = |copy| {
            let first = rows.first_number(self.members, slot, copy);
            let last = end.checked_sub(first + 1)? / u64::from(self.members);
            Some(rows.row(last, copy) + 1)
        };
        MemberLba((0..rows.far).filter_map(row).max().unwrap_or(0) << rows.shift)
    }
    /// The end of the chunks, from the start of the set, whose copies on a member are all before `limit`.
    pub(super) fn ends_before(&self, slot: Slot, limit: MemberLba) -> SetLba {
        let Some(rows) = &self.rows else { return SetLba::ZERO };
        let chunk = |copy| {
            let turns = rows.turns_before(limit.0 >> rows.shift, copy);
            let number = turns * u64::from(self.members) + rows.first_number(self.members, slot, copy);
            number / u64::from(rows.near)
        };
        let chunks = (0..rows.far).map(chunk).min().unwrap_or(0);
        SetLba(chunks.min(rows.chunks) << rows.shift)
    }
    /// The start of the chunks, to the end of the set, whose copies on a member are all not before `limit`.
    pub(super) fn begins_from(&self, slot: Slot, limit: MemberLba) -> SetLba {
        let Some(rows) = &self.rows else { return SetLba(self.capacity.0) };
        let chunk = |copy| {
            let last = rows.turns_before(limit.0.div_ceil(rows.chunk.0), copy).checked_sub(1)?;
            let number = last * u64::from(self.members) + rows.first_number(self.members, slot, copy);
            Some(number / u64::from(rows.near) + 1)
        };
        let chunks = (0..rows.far).filter_map(chunk).max().unwrap_or(0);
        SetLba(chunks.min(rows.chunks) << rows.shift)
    }
}

/// For a change of shape: the rows of a member that copies of a range of addresses use. A copy in a row of a member has a
/// *number*: chunk times near copies plus the near copy. Numbers of one far copy rise with the rows.
impl Rows {
    /// The first number of a far copy in one member. The others follow at the distance of the members.
    fn first_number(&self, members: u16, slot: Slot, copy: u16) -> u64 {
        u64::from(self.backward[usize::from(copy) * usize::from(members) + slot.index()])
    }
    /// The row of the `turn`-th number of a far copy.
    fn row(&self, turn: u64, copy: u16) -> u64 {
        let by_turn = if self.offset { turn * u64::from(self.far) } else { turn };
        by_turn + u64::from(copy) * self.stride
    }
    /// Numbers of a far copy in the rows before this one.
    fn turns_before(&self, row: u64, copy: u16) -> u64 {
        let rows = row.saturating_sub(u64::from(copy) * self.stride);
        if self.offset {
            rows.div_ceil(u64::from(self.far))
        } else {
            rows
        }
    }
}

/// Near and far copies of the layout; md needs two in all, and no more than members.
fn copies_of(spec: &SetSpec<'_>) -> Result<(u16, u16), GeometryError> {
    let (near, far) = (spec.layout & bits::NEAR, spec.layout >> bits::FAR_SHIFT & bits::NEAR);
    let copies = near * far;
    if copies < 2 || copies > u32::from(spec.members) {
        return Err(GeometryError::Copies { layout: spec.layout, copies, members: spec.members });
    }
    let narrow = |copies: u32| u16::try_from(copies).expect("eight bits");
    Ok((narrow(near), narrow(far)))
}

/// Members of one far set.
fn far_set_size(spec: &SetSpec<'_>, near: u16, far: u16) -> Result<u16, GeometryError> {
    match spec.layout >> bits::SETS_SHIFT {
        0 => Ok(spec.members),
        1 => Ok(spec.members / far),
        2 => Ok(near * far),
        _ => Err(GeometryError::Layout { level: spec.level, layout: spec.layout }),
    }
}

/// The place of each far copy of a slot's chunks, and the inverse; `None` if two slots would have the same place.
///
/// From copy to copy the slot moves by the number of near copies, modulo its far set. The members that do not fill a
/// set belong to the last one. md takes a slot for one of these members if it moved to a slot *after* the first of the
/// last set, and so does this function.
fn far_slots(members: u16, near: u16, far: u16, set_size: u16) -> Option<(Vec<u8>, Vec<u8>)> {
    let rest = members % set_size;
    let last_start = (members / set_size - 1) * set_size;
    let last_size = set_size + rest;
    let next = |slot: u16| {
        let moved = slot + near;
        if rest != 0 && moved > last_start {
            (moved - last_start) % last_size + last_start
        } else {
            moved % set_size + slot / set_size * set_size
        }
    };
    let width = usize::from(members);
    let mut forward = Vec::with_capacity(width * usize::from(far));
    let mut backward = Vec::with_capacity(width * usize::from(far));
    for first in 0..members {
        let slot = u8::try_from(first).expect("members are fewer than 254");
        forward.push(slot);
        backward.push(slot);
    }
    for copy in 1..usize::from(far) {
        let mut taken = SlotSet::EMPTY;
        backward.resize((copy + 1) * width, 0);
        for first in 0..width {
            let slot = next(u16::from(forward[(copy - 1) * width + first]));
            if slot >= members || taken.contains(Slot(slot)) {
                return None;
            }
            taken.insert(Slot(slot));
            forward.push(u8::try_from(slot).expect("below the members"));
            backward[copy * width + usize::from(slot)] = u8::try_from(first).expect("below the members");
        }
    }
    Some((forward, backward))
}

/// The places of one block: see [`Mirror::copies`].
#[derive(Clone, Debug)]
pub struct CopyIter<'a> {
    mirror: &'a Mirror,
    near: u16,
    far: u16,
    /// Slot and place of the first far copy of the current near copy.
    slot: u16,
    lba: MemberLba,
    len: Sectors,
}

impl Iterator for CopyIter<'_> {
    type Item = Fragment;

    /// The copies of RAID 1 are in the caller's code, because each request asks for them.
    #[inline]
    fn next(&mut self) -> Option<Fragment> {
        if self.mirror.rows.is_some() {
            return self.next_in_rows();
        }
        if self.slot == self.mirror.members {
            return None;
        }
        self.slot += 1;
        Some(Fragment { slot: Slot(self.slot - 1), lba: self.lba, len: self.len })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let done = match &self.mirror.rows {
            None => self.slot,
            Some(rows) => self.near * rows.far + self.far,
        };
        let left = usize::from(self.mirror.copies - done);
        (left, Some(left))
    }
}

impl CopyIter<'_> {
    /// The next copy of a mirror with chunks.
    fn next_in_rows(&mut self) -> Option<Fragment> {
        let rows = self.mirror.rows.as_ref()?;
        if self.near == rows.near {
            return None;
        }
        let slot = rows.forward[usize::from(self.far) * usize::from(self.mirror.members) + usize::from(self.slot)];
        let down = rows.chunk * (u64::from(self.far) * rows.stride);
        let fragment = Fragment { slot: Slot(u16::from(slot)), lba: self.lba + down, len: self.len };
        self.far += 1;
        if self.far == rows.far {
            self.far = 0;
            self.near += 1;
            self.slot += 1;
            if self.slot == self.mirror.members {
                self.slot = 0;
                self.lba += rows.chunk;
            }
        }
        Some(fragment)
    }
}

impl ExactSizeIterator for CopyIter<'_> {}
impl FusedIterator for CopyIter<'_> {}
