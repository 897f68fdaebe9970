//! A member of a set: its place, its state, and facts about its drive. `member_places.rs` changes places, `member_failure.rs` and
//! `revival.rs` states.

use alloc::boxed::Box;
use openraid_format::{DeviceFlags, Superblock};
use openraid_units::{DriveId, DriveLba, Instant, MemberLba, Sectors, Slot};

use super::bad_blocks::{BadList, BadRange, DriveRange};
use super::defects::Defects;
use crate::geometry::shape::Side;
use crate::reason::FailReason;
use crate::set_status::MemberState;

/// A drive in a set.
#[derive(Debug)]
pub(crate) struct Member {
    pub(super) drive: DriveId,
    pub(super) seat: Seat,
    pub(super) state: MemberState,
    /// Starts of its data area on the drive, by [`Side`]; equal if the set does not change its shape.
    pub(super) starts: [DriveLba; 2],
    /// Its own superblock fields; the common ones are in the set's [`Metadata`](super::metadata::Metadata).
    pub(super) superblock: Option<Box<Superblock>>,
    pub(super) bad: BadList,
    /// The end of a write for which it had no room, if it has none.
    pub(super) lacks_room: Option<DriveRange>,
    /// Written since its last flush was issued.
    pub(super) unflushed: bool,
    /// Number of flushes under way.
    pub(super) flushing: u32,
    pub(super) trust: Trust,
    /// The time of its failure, if it failed after the start of its set.
    pub(super) failed_at: Option<Instant>,
    /// If it failed: may it be taken back as it was?
    pub(super) comeback: Comeback,
    /// Number of defects since it was added, and where they are.
    pub(super) media_errors: u32,
    pub(super) defects: Defects,
    pub(super) counters: Counters,
}

/// The place of a member in its set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seat {
    /// It has no slot and had none.
    None,
    /// It has no slot. It came back, and needs only what the bitmap marks if it gets this slot.
    Returns(Slot),
    /// It is the member of this slot.
    Holds(Slot),
    /// It is filled next to the member of this slot, and then takes the slot.
    Replaces(Slot),
    /// It failed or was replaced in this slot.
    Left(Slot),
    /// It was taken out of the array, and its entry may be used again.
    Removed,
}

/// What a working member that the array cannot do without may have dropped. This lasts until the array is assembled
/// again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Trust {
    /// It dropped nothing.
    Sound,
    /// A flush of it failed: data that it had in its cache may be lost. No flush succeeds and nothing is marked clean.
    FlushFailed,
    /// Its superblock or bitmap could not be written. No flush succeeds, and the marks that writes wait for are not
    /// durable.
    MetadataStale,
}

/// May a member that failed be taken back as it was?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comeback {
    /// No: it has not failed, or it lacks writes.
    No,
    /// It was in sync when it was out of reach.
    Possible,
    /// It is back, too.
    Ready,
}

impl Comeback {
    /// A member that was in sync fails for this reason.
    pub(super) const fn after(reason: FailReason) -> Self {
        match reason {
            FailReason::Gone | FailReason::Timeout => Self::Possible,
            _ => Self::No,
        }
    }
}

/// Commands and bytes to and from a member.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) flushes: u64,
    pub(super) sectors_read: u64,
    pub(super) sectors_written: u64,
}

impl Member {
    /// Does it hold, or is it about to hold, data of its slot?
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.state, MemberState::InSync | MemberState::Rebuilding { .. })
    }

    /// Did it leave because it was replaced, or by a command of an administrator?
    pub(crate) fn left_in_order(&self) -> bool {
        matches!(
            self.state,
            MemberState::Failing(FailReason::Administrator)
                | MemberState::Faulty(FailReason::Administrator | FailReason::Replaced)
        )
    }

    /// Has it kept all that it acknowledged?
    pub(crate) fn is_sound(&self) -> bool {
        self.trust == Trust::Sound
    }

    /// It is back as it was.
    pub(crate) fn come_back(&mut self) {
        self.comeback = Comeback::Ready;
    }

    /// Is it to be read only if no other copy can be?
    pub(crate) fn is_write_mostly(&self) -> bool {
        let superblock = self.superblock.as_ref();
        superblock.is_some_and(|superblock| superblock.device_flags.contains(DeviceFlags::WRITE_MOSTLY))
    }

    /// Is its superblock kept up to date?
    pub(crate) fn has_metadata(&self) -> bool {
        self.is_active() || self.state == MemberState::Spare
    }

    #[inline(always)]
    pub(crate) const fn drive(&self) -> DriveId {
        self.drive
    }

    /// Its slot; none for a spare.
    #[inline(always)]
    pub(crate) const fn slot(&self) -> Option<Slot> {
        match self.seat {
            Seat::Holds(slot) | Seat::Replaces(slot) => Some(slot),
            Seat::None | Seat::Returns(_) | Seat::Left(_) | Seat::Removed => None,
        }
    }

    /// The slot that a failed or replaced member had.
    pub(crate) const fn left(&self) -> Option<Slot> {
        match self.seat {
            Seat::Left(slot) => Some(slot),
            _ => None,
        }
    }

    pub(crate) const fn state(&self) -> MemberState {
        self.state
    }

    /// Its superblock, of which only the fields of the member count.
    pub(crate) fn superblock(&self) -> Option<&Superblock> {
        self.superblock.as_deref()
    }

    /// Is it being filled next to the working member of its slot?
    pub(crate) const fn is_replacement(&self) -> bool {
        matches!(self.seat, Seat::Replaces(_))
    }

    /// Was it taken out of the array, so that its entry may be used again?
    pub(crate) const fn is_removed(&self) -> bool {
        matches!(self.seat, Seat::Removed)
    }

    /// If it came back and needs only what the bitmap marks: its slot.
    pub(crate) const fn returns_to(&self) -> Option<Slot> {
        match self.seat {
            Seat::Returns(slot) => Some(slot),
            _ => None,
        }
    }

    /// The place on its drive of a place in its data area.
    #[inline(always)]
    pub(crate) fn on_drive(&self, side: Side, at: MemberLba) -> DriveLba {
        self.starts[side as usize] + at.offset()
    }

    /// The place in its data area of a place on its drive.
    #[inline(always)]
    pub(crate) fn in_data(&self, side: Side, at: DriveLba) -> MemberLba {
        MemberLba((at - self.starts[side as usize]).get())
    }

    /// The place in its data area of a range on its drive; none if the range begins before the area.
    pub(crate) fn range_in_data(&self, side: Side, range: DriveRange) -> Option<MemberLba> {
        range.at().get().checked_sub(self.starts[side as usize].get()).map(MemberLba)
    }

    /// Does its bad-block log name any of these sectors?
    pub(crate) fn is_bad(&self, side: Side, from: MemberLba, len: Sectors) -> bool {
        let from = self.on_drive(side, from);
        self.bad.touches(from.get(), from.get() + len.get())
    }

    /// The part of this range, from its begin on, of which its bad-block log names all sectors, or none.
    pub(crate) fn sectors_alike(&self, side: Side, from: MemberLba, len: Sectors) -> Sectors {
        let from = self.on_drive(side, from);
        Sectors(self.bad.alike(from.get(), from.get() + len.get()))
    }

    /// The place of its partial parity log.
    pub(crate) fn ppl_area(&self) -> Option<(DriveLba, Sectors)> {
        self.superblock.as_ref()?.ppl_area()
    }

    /// A read of this member begins.
    #[inline(always)]
    pub(crate) fn count_read(&mut self, len: Sectors) {
        self.counters.reads += 1;
        self.counters.sectors_read += len.get();
    }

    /// A write to this member begins.
    #[inline(always)]
    pub(crate) fn count_write(&mut self, len: Sectors) {
        self.counters.writes += 1;
        self.counters.sectors_written += len.get();
    }

    /// Its drive may have data in its volatile cache that no flush covers.
    #[inline(always)]
    pub(crate) fn note_written(&mut self) {
        self.unflushed = true;
    }

    /// Is a flush of it under way?
    pub(crate) const fn is_flushing(&self) -> bool {
        self.flushing > 0
    }

    /// A flush of it has ended.
    pub(crate) fn end_flush(&mut self) {
        self.flushing -= 1;
    }

    /// A read of this range failed. If this is a new defect, returns the number of its defects.
    pub(crate) fn meet_defect(&mut self, at: DriveLba, len: Sectors) -> Option<u32> {
        self.defects.meet(at, len).then(|| {
            self.media_errors += 1;
            self.media_errors
        })
    }

    /// This range was rewritten: an error there from now on is another defect.
    pub(crate) fn rewritten(&mut self, at: DriveLba, len: Sectors) {
        self.defects.rewritten(at, len);
    }

    /// Its number in the role table.
    pub(crate) fn number(&self) -> Option<u32> {
        self.superblock.as_ref().map(|s| s.dev_number)
    }
}

/// A drive enters a set.
pub(crate) fn new_member(
    drive: DriveId,
    slot: Option<Slot>,
    state: MemberState,
    data_offset: DriveLba,
    superblock: Option<Superblock>,
    known_bad: &[BadRange],
) -> Member {
    Member {
        drive,
        seat: slot.map_or(Seat::None, Seat::Holds),
        state,
        starts: [data_offset; 2],
        bad: BadList::new(superblock.as_ref(), data_offset, known_bad),
        lacks_room: None,
        failed_at: None,
        comeback: Comeback::No,
        superblock: superblock.map(Box::new),
        // Data that was written before this start may still be in the drive's cache.
        unflushed: true,
        trust: Trust::Sound,
        flushing: 0,
        media_errors: 0,
        defects: Defects::new(),
        counters: Counters::default(),
    }
}
