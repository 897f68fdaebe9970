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
    journal_superblock_lba, JournalSuperblock, RingSector, SuperblockCopy, JOURNAL_BLOCK_BYTES, JOURNAL_MIRRORS_MAX,
};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::attach::JOURNAL_SET;
use super::commit::JournalWrite;
use super::window::{WindowUser, SILENT};
use super::{Device, DeviceState};
use crate::actions::{Actions, Data, NoticeKind};
use crate::admin::{AdminError, AdminOutcome};
use crate::controller::{CommandError, Controller};
use crate::io::command::Command;

/// Commands that a step may need at once.
const COMMANDS: u32 = 16;

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
    pub(super) state: JoinState,
    /// Its number among the journal's devices.
    device: usize,
    /// Commands under way for it, except those of groups and superblocks of the journal.
    pub(super) pending: u32,
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
        matches!(self.state, JoinState::Finishing(own) if generation >= own)
    }
}

impl Controller {
    /// Begin a join. `seen` are the highest generation and epoch in the superblock of the device, if it has one.
    pub(crate) fn join_journal(&mut self, drive: DriveId, seen: (u64, u64)) -> Result<AdminOutcome, AdminError> {
        let place = self.place_for(drive)?;
        let known = self.journal.devices.get(place).is_some_and(|own| own.drive == drive && own.state.is_claimed());
        if !known {
            self.channels.claim(&[drive], JOURNAL_SET)?;
        }
        let journal = &mut self.journal;
        let working = journal.devices.iter().find(|own| own.state.works()).expect("just seen");
        let mirror = 1 - working.mirror.min(1);
        let device = Device { drive, mirror, written_as: mirror, state: DeviceState::Joins };
        match journal.devices.get_mut(place) {
            Some(own) => *own = device,
            None => journal.devices.push(device),
        }
        let superblock = journal.superblock.as_ref().expect("it is live");
        let generation = superblock.generation.max(seen.0) + 1;
        journal.join = Join {
            state: JoinState::Marking(SuperblockCopy::First),
            device: place,
            generation,
            // The epoch is above that of every device that did not finish a join, which distinguishes them.
            epoch: superblock.epoch.max(seen.1).max(journal.join.epoch) + 1,
            ..Join::default()
        };
        self.sets.look();
        Ok(AdminOutcome::Done)
    }

    /// The number that the device gets, if it may join.
    fn place_for(&self, drive: DriveId) -> Result<usize, AdminError> {
        let journal = &self.journal;
        if !journal.is_live() {
            return Err(AdminError::NotPossible("the journal does not work; a device can join one that does"));
        }
        if journal.join.is_active() || journal.join.pending > 0 {
            return Err(AdminError::NotPossible("a device of the journal is being brought up to date already"));
        }
        if journal.window.is_silent() {
            return Err(AdminError::NotPossible(SILENT));
        }
        let place = journal.devices.iter().position(|own| !own.state.works()).unwrap_or(journal.devices.len());
        if place >= usize::from(JOURNAL_MIRRORS_MAX) {
            return Err(AdminError::NotPossible("both devices of the journal work"));
        }
        let info = self.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?.info();
        if self.channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        let other = journal.devices.get(place).filter(|own| own.state.is_claimed() && own.drive != drive);
        if other.is_some() {
            return Err(AdminError::NotPossible("the device that does not work must be released first"));
        }
        let superblock = journal.superblock.as_ref().expect("it is live");
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
    pub(crate) fn release_journal_device(&mut self) -> Result<AdminOutcome, AdminError> {
        let dropped = self.journal.devices.iter().position(|own| own.state == DeviceState::Dropped);
        let number = dropped.ok_or(AdminError::NotPossible("no device of the journal was dropped"))?;
        let drive = self.journal.devices[number].drive;
        if self.channels.outstanding(drive) > 0 || self.journal.join.pending > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        self.channels.release(&[drive]);
        self.journal.devices[number].state = DeviceState::Released;
        Ok(AdminOutcome::Done)
    }

    /// The device that joins, and its progress.
    pub(crate) fn join_status(&self) -> Option<JournalJoin> {
        let join = &self.journal.join;
        let drive = join.is_active().then(|| self.journal.devices[join.device].drive)?;
        Some(JournalJoin { drive, copied: join.copied.min(join.total), total: join.total })
    }

    /// Drop the device that joins, because of an error or because the journal ends.
    pub(crate) fn leave_out(&mut self) {
        let join = &mut self.journal.join;
        let state = core::mem::take(&mut join.state);
        if state == JoinState::Idle {
            return;
        }
        self.journal.devices[join.device].state = DeviceState::Dropped;
        self.check_copied();
        self.sets.look();
        if matches!(state, JoinState::Announcing(_) | JoinState::Finishing(_)) {
            // The other device may say that there are two, and this one that it counts.
            self.journal.go_alone();
        }
    }

    /// Advance the join; true if something has changed.
    pub(crate) fn pump_join(&mut self, actions: &mut Actions) -> bool {
        let (journal, writing) = (&self.journal, self.journal.writing);
        let state = journal.join.state;
        if state == JoinState::Idle || journal.join.pending > 0 || self.channels.room() < COMMANDS {
            return false;
        }
        if !journal.is_live() {
            self.leave_out();
            return true;
        }
        match state {
            JoinState::Marking(copy) => self.mark_unfinished(copy, actions),
            JoinState::Marked => self.begin_copying(),
            JoinState::Copying => self.copy_next(actions),
            JoinState::Announcing(generation) if writing.is_durable(generation) => {
                let generation = self.journal.request_superblock();
                self.journal.join.state = JoinState::Finishing(generation);
                true
            }
            JoinState::Finishing(generation) if writing.is_durable(generation) => {
                self.journal.join.state = JoinState::Idle;
                let device = &mut self.journal.devices[self.journal.join.device];
                device.state = DeviceState::Works;
                let drive = device.drive;
                self.journal_notice(Some(drive), NoticeKind::JournalMirrored, actions);
                self.sets.look();
                true
            }
            JoinState::Idle | JoinState::Announcing(_) | JoinState::Finishing(_) => false,
        }
    }

    /// Write superblocks that say that the device does not count, before anything else on it changes.
    fn mark_unfinished(&mut self, copy: SuperblockCopy, actions: &mut Actions) -> bool {
        let join = self.journal.join;
        let journal = &self.journal;
        let superblock = journal.superblock.as_ref().expect("it is live");
        let mirror = journal.devices[join.device].mirror;
        let unfinished = JournalSuperblock {
            generation: join.generation,
            epoch: join.epoch,
            mirrors: JOURNAL_MIRRORS_MAX,
            mirror,
            clean: false,
            unfinished: true,
            kept: Sectors::ZERO,
            ..(**superblock).clone()
        };
        let lba = journal_superblock_lba(copy, superblock.device_sectors).expect("checked when it was attached");
        let mut bytes = [0; JOURNAL_BLOCK_BYTES];
        unfinished.encode(copy, &mut bytes);
        self.write_block_to(join.device, JournalWrite::Join, lba, &bytes, actions);
        true
    }

    /// Begin to copy, if no entry is under way that the device does not get.
    fn begin_copying(&mut self) -> bool {
        let journal = &self.journal;
        let at_rest = journal.round.is_idle() && !journal.flying.is_used() && !journal.replay.is_active();
        if !at_rest || !self.journal.window.take(WindowUser::Join) {
            return false;
        }
        let journal = &self.journal;
        let end = journal.first_unwritten();
        let (first, used) = (journal.log.first.min(end), Sectors(journal.log.used));
        let join = &mut self.journal.join;
        join.state = JoinState::Copying;
        (join.sequence, join.end, join.total) = (first, end, used + self.journal.spill.used());
        true
    }

    /// Read the next piece of the log from the device that works.
    fn copy_next(&mut self, actions: &mut Actions) -> bool {
        let window = self.journal.buffer_sectors.round_down(openraid_format::JOURNAL_ALIGN);
        let journal = &mut self.journal;
        let (start, _) = journal.superblock.as_ref().expect("it is live").keep_area();
        let ring = journal.ring();
        let join = &mut journal.join;
        join.is_kept = join.kept < journal.spill.used();
        if join.is_kept {
            (join.at, join.len) = (start + join.kept, (journal.spill.used() - join.kept).min(window));
        } else if join.sequence < join.end {
            let first = journal.log.get(join.sequence);
            join.at = ring.drive_lba(RingSector(first.position)) + join.done;
            let left = Sectors(first.sectors) - join.done;
            join.len = left.min(window);
            // Whole entries that follow, as long as they fit.
            let mut next = join.sequence + 1;
            while join.len >= left && next < join.end {
                let entry = journal.log.get(next);
                let reaches = ring.drive_lba(RingSector(entry.position)) == join.at + join.len;
                if !reaches || join.len + Sectors(entry.sectors) > window {
                    break;
                }
                join.len += Sectors(entry.sectors);
                next += 1;
            }
        } else {
            return self.announce();
        }
        let (at, len) = (join.at, join.len);
        let number = journal.devices.iter().position(|own| own.state.works()).expect("it is live");
        journal.join.pending += 1;
        self.read_into_window(WindowUser::Join, number, (at, len), actions);
        true
    }

    /// The window is free when the log is not being copied and no command of the copy is under way.
    fn check_copied(&mut self) {
        let journal = &mut self.journal;
        if !journal.join.is_copying() && journal.join.pending == 0 {
            journal.window.give_back(WindowUser::Join);
        }
    }

    /// The device has everything: the superblock of the other one must say that there are two.
    fn announce(&mut self) -> bool {
        let journal = &mut self.journal;
        let start = journal.first_open();
        let (generation, epoch) = (journal.join.generation, journal.join.epoch);
        let superblock = journal.superblock.as_mut().expect("it is live");
        // Other content of its ring has an older epoch.
        superblock.epoch = superblock.epoch.max(epoch) + 1;
        superblock.epoch_start = start;
        superblock.generation = superblock.generation.max(generation);
        superblock.mirrors = JOURNAL_MIRRORS_MAX;
        let generation = journal.request_superblock();
        journal.epoch_raised = generation;
        journal.join.state = JoinState::Announcing(generation);
        self.check_copied();
        self.sets.look();
        true
    }

    /// The read of a piece has ended.
    pub(crate) fn on_join_read(&mut self, command: &Command, result: Result<(), CommandError>, actions: &mut Actions) {
        self.sets.look();
        self.journal.join.pending -= 1;
        match result {
            Err(CommandError::Timeout) => self.drop_journal_device(command.journal_device(), actions),
            Err(CommandError::Drive(_)) if self.journal.join.is_copying() => {
                self.journal_notice(Some(command.drive()), NoticeKind::JournalUnreadable, actions);
                self.leave_out();
            }
            Ok(()) if self.journal.join.is_copying() => {
                let join = self.journal.join;
                let from = Data::Frames(self.journal.window_of(WindowUser::Join));
                self.write_to_device(join.device, JournalWrite::Join, (join.at, join.len), from, actions);
            }
            Ok(()) | Err(CommandError::Drive(_)) => {}
        }
        self.check_copied();
    }

    /// A write to the device that joins is durable, or the device was dropped.
    pub(crate) fn on_joined_piece(&mut self) {
        self.sets.look();
        let journal = &mut self.journal;
        let join = &mut journal.join;
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
                    let sectors = Sectors(journal.log.get(join.sequence).sectors);
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
