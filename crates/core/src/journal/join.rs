//! A device comes to a journal that runs with one: the one that was dropped, or a new one in its place.
//!
//! ```text
//!            its superblocks       what is written goes      the other one's         its own superblocks
//!            say "unfinished"      to both; the log is       superblocks say         say that it counts
//!                                  copied behind             "one of two"
//!   Idle --> Marking ------------> Copying ----------------> Announcing -----------> Finishing --> Idle
//!     ^                                                                                             it works
//!     +---- an error of either, at any time: it is left out, and the other one goes on alone
//! ```
//!
//! It counts for nothing until it has everything: a device whose superblock says "unfinished" is never followed, alone or
//! beside the other one, so the power may go at any time. The other one is told first that there are two: from then
//! on it is not taken alone without being asked, and only then the new one may be. Entries that were on their way when
//! copying begins are durable before it does; what comes later is written to both, and is acknowledged when both have it.
//! While a place of the ring is copied the tail stays behind it, so that nothing new is written there meanwhile.
//!
//! It must never make the journal wait for a device longer than for one that works, nor take a device that may have
//! carried the journal alone: who reads its superblock before asks for that.

use openraid_format::{
    journal_superblock_lba, JournalSuperblock, RingSector, SuperblockCopy, JOURNAL_BLOCK_BYTES, JOURNAL_MIRRORS_MAX,
};
use openraid_units::{DriveId, DriveLba, Sectors};

use super::attach::JOURNAL_SET;
use super::commit::JournalWrite;
use super::tail::RoundState;
use super::window::{WindowUser, SILENT};
use super::{Device, DeviceState};
use crate::actions::{Actions, Data, NoticeKind};
use crate::admin::{AdminError, AdminOutcome};
use crate::controller::{CommandError, Controller};
use crate::io::command::Command;

/// Commands that a step may need at once.
const COMMANDS: u32 = 16;

/// How far it is; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum JoinState {
    /// Nobody joins.
    #[default]
    Idle,
    /// Its superblocks are being written: the last copy when the first is durable.
    Marking(SuperblockCopy),
    /// The log is being copied.
    Copying,
    /// Until this generation of the other one's superblock is durable.
    Announcing(u64),
    /// Until this generation is durable on both.
    Finishing(u64),
}

/// A device that joins.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Join {
    pub state: JoinState,
    /// Its place among the journal's devices.
    device: usize,
    /// Commands that are out for it, groups and superblocks of the journal not counted.
    pub pending: u32,
    /// Above all generations and epochs that it has seen. Each copy of its superblock has a generation of its own.
    generation: u64,
    epoch: u64,
    /// Of what is kept before the ring so much was copied.
    kept: Sectors,
    /// The entry whose place is being copied, and what of it was.
    sequence: u64,
    done: Sectors,
    /// Entries from this one on are written to both.
    end: u64,
    /// What is being copied now, and whether that is kept before the ring.
    at: DriveLba,
    len: Sectors,
    is_kept: bool,
    /// Sectors that were copied, and all that were to be when it began.
    copied: Sectors,
    total: Sectors,
}

/// How far a device is that joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalJoin {
    /// Which.
    pub drive: DriveId,
    /// Sectors of the log that it has, of those that were there when it began.
    pub copied: Sectors,
    /// See `copied`.
    pub total: Sectors,
}

impl Join {
    /// Is a device on its way in?
    pub(crate) fn is_active(&self) -> bool {
        self.state != JoinState::Idle
    }

    /// Is the log being copied? Then the window is in use, and no entry leaves the ring by another way.
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
    /// Let a device join; `seen` are the highest generation and epoch that its superblock tells of, if it has one.
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
            // Above that of every device that did not finish: those that stay behind are told apart by it.
            epoch: superblock.epoch.max(seen.1).max(journal.join.epoch) + 1,
            ..Join::default()
        };
        self.sets.look();
        Ok(AdminOutcome::Done)
    }

    /// Where a device comes in, and whether it may.
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
        let info = self.channels.get(drive).ok_or(AdminError::NoSuchDrive(drive))?.info;
        if self.channels.outstanding(drive) > 0 {
            return Err(AdminError::CommandsOutstanding(drive));
        }
        let other = journal.devices.get(place).filter(|own| own.state.is_claimed() && own.drive != drive);
        if other.is_some() {
            return Err(AdminError::NotPossible("the device that does not work has to be let go of first"));
        }
        let superblock = journal.superblock.as_ref().expect("it is live");
        let last = |sectors| journal_superblock_lba(SuperblockCopy::Last, sectors);
        if last(info.capacity) != last(superblock.device_sectors) {
            return Err(AdminError::NotPossible("the two devices of a journal must have the same size"));
        }
        if info.block.bytes() > superblock.block.bytes() {
            return Err(AdminError::NotPossible("its blocks are larger than those that the journal was made for"));
        }
        Ok(place)
    }

    /// Let go of the device that does not work, so that a driver can take it away.
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

    /// Which device joins, and how far it is.
    pub(crate) fn join_status(&self) -> Option<JournalJoin> {
        let join = &self.journal.join;
        let drive = join.is_active().then(|| self.journal.devices[join.device].drive)?;
        Some(JournalJoin { drive, copied: join.copied.min(join.total), total: join.total })
    }

    /// The device that joins is left out: an error, or the journal ends.
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
            // The other one may say that there are two, and this one that it counts.
            self.journal.go_alone();
        }
    }

    /// Move a device that joins on; true where something moved.
    pub(crate) fn pump_join(&mut self, actions: &mut Actions) -> bool {
        let (journal, durable) = (&self.journal, self.journal.writing.durable);
        let state = journal.join.state;
        if state == JoinState::Idle || journal.join.pending > 0 || self.channels.commands.room() < COMMANDS {
            return false;
        }
        if !journal.is_live() {
            self.leave_out();
            return true;
        }
        match state {
            JoinState::Marking(copy) => self.mark_unfinished(copy, actions),
            JoinState::Copying => self.copy_next(actions),
            JoinState::Announcing(generation) if durable >= generation => {
                let generation = self.journal.request_superblock();
                self.journal.join.state = JoinState::Finishing(generation);
                true
            }
            JoinState::Finishing(generation) if durable >= generation => {
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

    /// Nothing on it counts: its superblocks are to say so before anything else of it is changed. When they do, and
    /// nothing is on its way that it does not get, copying begins.
    fn mark_unfinished(&mut self, copy: SuperblockCopy, actions: &mut Actions) -> bool {
        let join = self.journal.join;
        let journal = &self.journal;
        if join.len.is_zero() {
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
            return true;
        }
        let at_rest =
            journal.round.state == RoundState::Idle && !journal.flying.is_used() && !journal.replay.is_active();
        if !at_rest || !self.journal.window.take(WindowUser::Join) {
            return false;
        }
        let journal = &self.journal;
        let end = journal.first_unwritten();
        let (first, used) = (journal.log.first.min(end), Sectors(journal.log.used));
        let join = &mut self.journal.join;
        (join.state, join.len) = (JoinState::Copying, Sectors::ZERO);
        (join.sequence, join.end, join.total) = (first, end, used + self.journal.spill.used);
        true
    }

    /// Read the next piece of the log from the device that works.
    fn copy_next(&mut self, actions: &mut Actions) -> bool {
        let window = self.journal.buffer_sectors.round_down(openraid_format::JOURNAL_ALIGN);
        let journal = &mut self.journal;
        let (start, _) = journal.superblock.as_ref().expect("it is live").keep_area();
        let ring = journal.ring();
        let join = &mut journal.join;
        join.is_kept = join.kept < journal.spill.used;
        if join.is_kept {
            (join.at, join.len) = (start + join.kept, (journal.spill.used - join.kept).min(window));
        } else if join.sequence < join.end {
            let first = journal.log.get(join.sequence);
            join.at = ring.drive_lba(RingSector(first.position)) + join.done;
            let left = Sectors(first.sectors) - join.done;
            join.len = left.min(window);
            // Whole entries that lie behind it, as long as they fit.
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

    /// Is the log not copied any more, and nothing of that on its way? Then the window is free.
    fn check_copied(&mut self) {
        let journal = &mut self.journal;
        if !journal.join.is_copying() && journal.join.pending == 0 {
            journal.window.give_back(WindowUser::Join);
        }
    }

    /// It has everything: the other one is to say that there are two.
    fn announce(&mut self) -> bool {
        let journal = &mut self.journal;
        let start = journal.first_open();
        let (generation, epoch) = (journal.join.generation, journal.join.epoch);
        let superblock = journal.superblock.as_mut().expect("it is live");
        // Whatever else is in its ring is of an older epoch.
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

    /// A piece was read, or not.
    pub(crate) fn on_join_read(&mut self, command: &Command, result: Result<(), CommandError>, actions: &mut Actions) {
        self.sets.look();
        self.journal.join.pending -= 1;
        match result {
            Err(CommandError::Timeout) => self.drop_journal_device(command.member as usize, actions),
            Err(CommandError::Drive(_)) if self.journal.join.is_copying() => {
                self.journal_notice(Some(command.drive), NoticeKind::JournalUnreadable, actions);
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

    /// A write to the device that joins is durable, or it was left out.
    pub(crate) fn on_joined_piece(&mut self) {
        self.sets.look();
        let journal = &mut self.journal;
        let join = &mut journal.join;
        join.pending -= 1;
        match join.state {
            // The tail may have moved on meanwhile. Copies of one generation that differ would be refused at the next start.
            JoinState::Marking(SuperblockCopy::First) => {
                (join.state, join.generation) = (JoinState::Marking(SuperblockCopy::Last), join.generation + 1);
            }
            // Its length says that both are there.
            JoinState::Marking(SuperblockCopy::Last) => join.len = openraid_format::JOURNAL_ALIGN,
            // Nobody may need it any more meanwhile.
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
            JoinState::Idle | JoinState::Announcing(_) | JoinState::Finishing(_) => {}
        }
        self.check_copied();
    }
}
