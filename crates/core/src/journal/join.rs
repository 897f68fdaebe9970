//! A device joins a journal that runs on one: the device that was dropped, or a new one in its place.
//!
//! ```text
//!  state        step                                               device         ends when
//!  Marking      superblocks say "unfinished": first, last copy     joining        both copies are durable
//!  Copying      the log is copied; new entries go to both          joining        all older entries are copied
//!  Announcing   superblocks say "one of two"                       other          they are durable
//!  Finishing    superblocks say "one of two"                       both           they are durable: both devices work
//!
//!  an error in any state: the joining device is dropped, and the other one continues alone
//! ```
//!
//! The device does not count until it has everything. A device whose superblock says "unfinished" is never followed, alone
//! or with the other one, so the power may fail at any time. The other device is first told that there are two: from then
//! on it is not used alone without confirmation, and only after that may the new one count. Entries under way when copying
//! begins are durable before it begins. Later ones are written to both devices, and are acknowledged when both have them.
//! While a place of the ring is copied, the tail stays before it, so that no entry is written over it.
//!
//! The journal must not wait for a joining device longer than for a working one, and must not take a device that may have
//! carried the journal alone: a driver reads its superblock before it asks for a join.

use openraid_format::{
    journal_superblock_lba, JournalSuperblock, RingSector, SuperblockCopy, JOURNAL_ALIGN, JOURNAL_MIRRORS_MAX,
};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::devices::{Device, DeviceState};
use super::superblock_order::{encoded, unfinished};
use super::Journal;
use crate::actions::{Data, NoticeKind};
use crate::admin_answer::{AdminError, AdminOutcome};
use crate::array::sets::Sets;
use crate::call::Call;
use crate::events::CommandError;
use crate::io::state::command::ChannelCommand;
use crate::io::state::command::JournalWrite;
use crate::io::state::command::WindowUser;
use crate::io::state::drive_queues::Channels;
use crate::journal::devices::{has_room, notice_journal};
use crate::journal::found_journal::JOURNAL_SET;
use crate::journal::window::SILENT;
use crate::planted::Flaw;

/// The progress of a join. See the module header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum JoinState {
    /// No device joins.
    #[default]
    Idle,
    /// Its superblocks are being written: the last copy when the first is durable.
    Marking(SuperblockCopy),
    /// Both copies are durable. Copying begins when the tail is at rest and the window is free.
    Marked,
    /// The log is being copied.
    Copying,
    /// Until this generation of the other device's superblock is durable.
    Announcing(u64),
    /// Until this generation is durable on both.
    Finishing(u64),
}

/// A device that joins.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Join {
    state: JoinState,
    /// Its number among the journal's devices.
    device: usize,
    /// Commands under way for it, except those of groups and superblocks of the journal.
    pending: u32,
    /// A number above all generations and epochs that the device has seen. Each copy of its superblock has a generation
    /// of its own.
    generation: u64,
    epoch: u64,
    /// Number of sectors before the ring that were copied.
    kept: Sectors,
    /// The entry that is being copied, and the length of the part that is copied.
    sequence: u64,
    done: Sectors,
    /// Entries from this one on are written to both devices.
    end: u64,
    /// The position that is being copied, and whether it is before the ring.
    at: DriveLba,
    len: Sectors,
    is_kept: bool,
    /// Number of sectors that were copied, and of all sectors at the beginning.
    copied: Sectors,
    total: Sectors,
}

/// Progress of a join.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalJoin {
    /// The device that joins.
    pub drive: DriveId,
    /// Sectors of the log that were copied, and all that were there at the beginning.
    pub copied: Sectors,
    /// See `copied`.
    pub total: Sectors,
}

impl Join {
    /// For tests: the device with this number joins, and is in this state.
    #[cfg(test)]
    pub(super) fn set_state(&mut self, state: JoinState, device: usize) {
        (self.state, self.device) = (state, device);
    }

    /// A command is issued for the device.
    pub(super) fn issued(&mut self) {
        self.pending += 1;
    }

    /// Is a command for the device under way?
    pub(super) const fn is_out(&self) -> bool {
        self.pending > 0
    }

    /// Does a device join?
    pub(crate) fn is_active(&self) -> bool {
        self.state != JoinState::Idle
    }

    /// Do the superblocks of the device not say yet that it does not count, or has copying not begun?
    pub(crate) fn is_marking(&self) -> bool {
        matches!(self.state, JoinState::Marking(_) | JoinState::Marked)
    }

    /// Is the log being copied? Then the window is in use, and no entry is copied out of the ring.
    pub(crate) fn is_copying(&self) -> bool {
        self.state == JoinState::Copying
    }

    /// The tail must not pass this entry.
    pub(crate) fn holds_tail(&self) -> u64 {
        if self.is_copying() {
            self.sequence
        } else {
            u64::MAX
        }
    }

    /// Does this generation of the superblock go to the device that joins?
    pub(crate) fn takes_superblock(&self, generation: u64) -> bool {
        matches!(self.state, JoinState::Finishing(from) if generation >= from)
    }
}

impl Journal {
    /// Begin a join. `seen` are the highest generation and epoch in the superblock of the device, if it has one.
    pub(crate) fn begin_join(
        &mut self,
        (channels, sets): (&mut Channels, &mut Sets),
        drive: DriveId,
        seen: (u64, u64),
    ) -> Result<AdminOutcome, AdminError> {
        let place = self.place_for(channels, drive)?;
        let known = self.devices.get(place).is_some_and(|device| device.drive == drive && device.state.is_claimed());
        if !known {
            channels.claim(&[drive], JOURNAL_SET)?;
        }
        let working = self.devices.iter().find(|device| device.state.works()).expect("just seen");
        let device = Device::new(drive, 1 - working.mirror.min(1), DeviceState::Joins);
        match self.devices.get_mut(place) {
            Some(former) => *former = device,
            None => self.devices.push(device),
        }
        let superblock = self.table();
        let generation = superblock.generation.max(seen.0) + 1;
        self.join = Join {
            state: JoinState::Marking(SuperblockCopy::First),
            device: place,
            generation,
            // The epoch is above that of every device that did not finish a join, which distinguishes them.
            epoch: superblock.epoch.max(seen.1).max(self.join.epoch) + 1,
            ..Join::default()
        };
        sets.look();
        Ok(AdminOutcome::Done)
    }

    /// The number that the device gets, if it may join.
    fn place_for(&self, channels: &Channels, drive: DriveId) -> Result<usize, AdminError> {
        if !self.is_live() {
            return Err(AdminError::NotPossible("the journal does not work; a device can join one that does"));
        }
        if self.join.is_active() || self.join.is_out() {
            return Err(AdminError::NotPossible("a device of the journal is being brought up to date already"));
        }
        if self.window.is_silent() {
            return Err(AdminError::NotPossible(SILENT));
        }
        let place = self.devices.iter().position(|device| !device.state.works()).unwrap_or(self.devices.len());
        if place >= usize::from(JOURNAL_MIRRORS_MAX) {
            return Err(AdminError::NotPossible("both devices of the journal work"));
        }
        let info = channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?.info();
        if channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        if self.devices.get(place).is_some_and(|device| device.state.is_claimed() && device.drive != drive) {
            return Err(AdminError::NotPossible("the device that does not work must be released first"));
        }
        let superblock = self.table();
        let last = |sectors| journal_superblock_lba(SuperblockCopy::Last, sectors);
        if last(info.capacity) != last(superblock.device_sectors) {
            return Err(AdminError::NotPossible("the two devices of a journal must have the same size"));
        }
        if info.block.bytes() > superblock.block.bytes() {
            return Err(AdminError::NotPossible("its blocks are larger than the journal's"));
        }
        Ok(place)
    }

    /// Release the device that does not work, so that a driver can take it away.
    pub(crate) fn release_device(&mut self, channels: &mut Channels) -> Result<AdminOutcome, AdminError> {
        let dropped = self.devices.iter_mut().find(|device| device.state == DeviceState::Dropped);
        let device = dropped.ok_or(AdminError::NotPossible("no device of the journal was dropped"))?;
        if channels.outstanding(device.drive) > 0 || self.join.is_out() {
            return Err(AdminError::CommandsOutstanding(device.drive));
        }
        channels.release(&[device.drive]);
        device.state = DeviceState::Released;
        Ok(AdminOutcome::Done)
    }

    /// The device that joins, and its progress.
    pub(super) fn join_status(&self) -> Option<JournalJoin> {
        let join = &self.join;
        let drive = join.is_active().then(|| self.devices[join.device].drive)?;
        Some(JournalJoin { drive, copied: join.copied.min(join.total), total: join.total })
    }

    /// Drop the device that joins, because of an error or because the journal ends. False if none joins.
    pub(super) fn leave_out(&mut self) -> bool {
        let state = core::mem::take(&mut self.join.state);
        if state == JoinState::Idle {
            return false;
        }
        self.devices[self.join.device].state = DeviceState::Dropped;
        self.check_copied();
        if matches!(state, JoinState::Announcing(_) | JoinState::Finishing(_)) {
            // The other device may say that there are two, and this one that it counts.
            self.go_alone();
        }
        true
    }

    /// Advance the join; true if something has changed.
    pub(super) fn pump_join(&mut self, sets: &mut Sets, call: &mut Call) -> bool {
        if !self.join.is_active() || self.join.is_out() || !has_room(call) {
            return false;
        }
        if !self.is_live() {
            self.leave_out();
            sets.look();
            return true;
        }
        match self.join.state {
            JoinState::Marking(copy) => self.mark_unfinished(copy, call),
            JoinState::Marked => self.begin_copying(),
            JoinState::Copying => self.copy_next(sets, call),
            JoinState::Announcing(generation) if self.writing.is_durable(generation) => {
                self.join.state = JoinState::Finishing(self.request_superblock());
                true
            }
            JoinState::Finishing(generation) if self.writing.is_durable(generation) => {
                self.join.state = JoinState::Idle;
                let device = &mut self.devices[self.join.device];
                device.state = DeviceState::Works;
                notice_journal(call, Some(device.drive), NoticeKind::JournalMirrored);
                sets.look();
                true
            }
            JoinState::Idle | JoinState::Announcing(_) | JoinState::Finishing(_) => false,
        }
    }

    /// Write superblocks that say that the device does not count, before anything else on it changes.
    fn mark_unfinished(&mut self, copy: SuperblockCopy, call: &mut Call) -> bool {
        let (join, mirror) = (&self.join, self.devices[self.join.device].mirror);
        let superblock = self.table().clone();
        let whole = JournalSuperblock { mirrors: JOURNAL_MIRRORS_MAX, mirror, epoch: join.epoch, ..superblock };
        let unfinished = unfinished(whole, join.generation);
        let (lba, bytes) = encoded(&unfinished, copy);
        self.write_block_to(self.join.device, JournalWrite::Join, lba, &bytes, call);
        true
    }

    /// Begin to copy, if no entry is under way that the device does not get.
    pub(super) fn begin_copying(&mut self) -> bool {
        let at_rest = self.round.is_idle() && !self.flying.is_used() && !self.replay.is_active();
        if !at_rest || !self.window.take(WindowUser::Join) {
            return false;
        }
        let end = self.first_unwritten();
        let join = &mut self.join;
        join.state = JoinState::Copying;
        (join.sequence, join.end) = (self.log.first.min(end), end);
        join.total = Sectors(self.log.used) + self.spill.used();
        true
    }

    /// Read the next piece of the log from the device that works.
    fn copy_next(&mut self, sets: &mut Sets, call: &mut Call) -> bool {
        if call.planted().has(Flaw::JoinedEarly) {
            return self.announce(sets);
        }
        let Some(place) = self.next_to_copy() else { return self.announce(sets) };
        let working = self.working_from(0).expect("it is live");
        self.join.issued();
        self.read_into_window(WindowUser::Join, working, place, call);
        true
    }

    /// Choose the next piece of the log to copy; `None` if all of it is copied.
    pub(super) fn next_to_copy(&mut self) -> Option<(DriveLba, Sectors)> {
        let window = self.buffer_sectors.round_down(JOURNAL_ALIGN);
        let (start, _) = self.table().keep_area();
        let ring = self.ring();
        let place = |sequence| {
            let entry = self.log.get(sequence);
            (ring.drive_lba(RingSector(entry.position)), Sectors(entry.sectors))
        };
        let join = &mut self.join;
        join.is_kept = join.kept < self.spill.used();
        if join.is_kept {
            (join.at, join.len) = (start + join.kept, (self.spill.used() - join.kept).min(window));
            return Some((join.at, join.len));
        }
        if join.sequence >= join.end {
            return None;
        }
        let (at, sectors) = place(join.sequence);
        let left = sectors - join.done;
        (join.at, join.len) = (at + join.done, left.min(window));
        // Whole entries that follow, as long as they fit.
        let mut next = join.sequence + 1;
        while join.len >= left && next < join.end {
            let (at, sectors) = place(next);
            if at != join.at + join.len || join.len + sectors > window {
                break;
            }
            join.len += sectors;
            next += 1;
        }
        Some((join.at, join.len))
    }

    /// The window is free when the log is not being copied and no command of the copy is under way.
    fn check_copied(&mut self) {
        if !self.join.is_copying() && !self.join.is_out() {
            self.window.give_back(WindowUser::Join);
        }
    }

    /// The device has everything: the superblock of the other one must say that there are two.
    fn announce(&mut self, sets: &mut Sets) -> bool {
        let start = self.first_open();
        let superblock = self.superblock.as_mut().expect("it is live");
        // Other content of its ring has an older epoch.
        superblock.epoch = superblock.epoch.max(self.join.epoch) + 1;
        superblock.epoch_start = start;
        superblock.generation = superblock.generation.max(self.join.generation);
        superblock.mirrors = JOURNAL_MIRRORS_MAX;
        self.epoch_raised = self.request_superblock();
        self.join.state = JoinState::Announcing(self.epoch_raised);
        self.check_copied();
        sets.look();
        true
    }

    /// The read of a piece has ended. True if the device that was read is to be dropped.
    pub(super) fn join_read_ended(
        &mut self,
        command: &ChannelCommand,
        result: Result<(), CommandError>,
        call: &mut Call,
    ) -> bool {
        self.join.pending -= 1;
        match result {
            Err(CommandError::Drive(_)) if self.join.is_copying() => {
                notice_journal(call, Some(command.drive()), NoticeKind::JournalUnreadable);
                self.leave_out();
            }
            Ok(()) if self.join.is_copying() => {
                let from = Data::Frames(self.window_of(WindowUser::Join));
                let place = (self.join.at, self.join.len);
                self.write_to_device(self.join.device, JournalWrite::Join, place, from, call);
            }
            Ok(()) | Err(_) => {}
        }
        self.check_copied();
        result == Err(CommandError::Timeout)
    }

    /// A write to the device that joins is durable, or the device was dropped.
    pub(super) fn join_written(&mut self) {
        let join = &mut self.join;
        join.pending -= 1;
        match join.state {
            // The tail may have moved between the copies. Copies of one generation that differ would be refused at the next
            // start.
            JoinState::Marking(SuperblockCopy::First) => {
                (join.state, join.generation) = (JoinState::Marking(SuperblockCopy::Last), join.generation + 1);
            }
            JoinState::Marking(SuperblockCopy::Last) => join.state = JoinState::Marked,
            // The tail may have passed these entries by now.
            JoinState::Copying if join.is_kept => {
                (join.kept, join.copied) = (join.kept + join.len, join.copied + join.len);
            }
            JoinState::Copying => {
                join.copied += join.len;
                join.done += join.len;
                while join.sequence < join.end {
                    let sectors = Sectors(self.log.get(join.sequence).sectors);
                    if join.done < sectors {
                        break;
                    }
                    join.done -= sectors;
                    join.sequence += 1;
                }
            }
            JoinState::Idle | JoinState::Marked | JoinState::Announcing(_) | JoinState::Finishing(_) => {}
        }
        self.check_copied();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_copying_holds_the_tail_and_only_a_later_superblock_goes_to_the_device_that_joins() {
        let at = |state| Join { state, sequence: 7, ..Join::default() };
        let states = [JoinState::Idle, JoinState::Copying, JoinState::Announcing(5), JoinState::Finishing(5)];
        assert_eq!(states.map(|state| at(state).holds_tail()), [u64::MAX, 7, u64::MAX, u64::MAX]);
        let takes = |state| [4, 5, 6].map(|generation| at(state).takes_superblock(generation));
        assert_eq!(takes(JoinState::Finishing(5)), [false, true, true]);
        assert_eq!(takes(JoinState::Announcing(5)), [false; 3]);
        assert!(!at(JoinState::Idle).is_active() && at(JoinState::Copying).is_copying());
    }
}
