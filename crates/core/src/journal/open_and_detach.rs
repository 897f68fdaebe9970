//! Opening and detaching a journal, its status, and discarding what it holds for an array.

use alloc::boxed::Box;
use alloc::vec::Vec;
use openraid_format::{JournalArrayState, JournalRecord, JournalSuperblock, LogPlace, Uuid};
use openraid_units::{DriveId, Sectors};

use super::devices::{Device, DeviceState};
use super::found_journal::JOURNAL_SET;
pub use super::found_journal::{FoundEntry, FoundJournal, KeptEntry};
use super::join::JournalJoin;
use super::log_entries::{Entry, KEPT_MAX};
use super::older_log::Positions;
use super::{Journal, JournalCounters, JournalState};
use crate::admin_answer::{AdminError, AdminOutcome};
use crate::array::awaited_changes::AwaitedChange;
use crate::array::sets::{Sets, Signal};
use crate::call::Base;
use crate::geometry::cache_units::lines_of;
use crate::journal::reservation::keeps_entries;
use crate::journal::session::{may_be_in_journal, uuid_of};
use crate::limits::Limits;

/// The error if no entries can be discarded now.
const LOST: &str =
    "the journal is lost, and what is given up cannot be written down: put its device right first, or stop the \
                    server and use --on DEVICE";

const NO_JOURNAL: AdminError = AdminError::NotPossible("the server has no journal");

/// The journal's table entry for an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalArrayStatus {
    /// UUID of the set.
    pub set_uuid: Uuid,
    /// Whether its entries count.
    pub state: JournalArrayState,
    /// Number of its entries that were not replayed, because the array was not started yet.
    pub waiting: u64,
}

/// The status of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalStatus {
    /// State of the journal.
    pub state: JournalState,
    /// Identity of the journal.
    pub uuid: Uuid,
    /// Its durable epoch. A device with a lower epoch is stale.
    pub epoch: u64,
    /// Was a higher epoch requested that is not durable yet?
    pub epoch_pending: bool,
    /// Its devices, and whether each works.
    pub devices: Vec<(DriveId, bool)>,
    /// The device that is being brought up to date.
    pub joining: Option<JournalJoin>,
    /// Length of the ring.
    pub ring: Sectors,
    /// Sectors of the ring that entries take.
    pub used: Sectors,
    /// Number of entries from the tail to the head.
    pub entries: u64,
    /// Number of sectors before the ring with entries that only absent arrays need, and the maximum.
    pub kept: Sectors,
    /// See `kept`.
    pub keep_room: Sectors,
    /// The last entry up to which all entries are durable.
    pub durable: u64,
    /// The arrays of its table.
    pub arrays: Vec<JournalArrayStatus>,
    /// Redo records of the log that members do not have yet, since arrays were started.
    pub pending_redos: u64,
    /// Its counters.
    pub counters: JournalCounters,
}

impl Journal {
    /// Open a journal. It protects writes when its superblocks are durable.
    pub(crate) fn attach(
        &mut self,
        found: &FoundJournal,
        base: &mut Base,
        sets: &mut Sets,
    ) -> Result<AdminOutcome, AdminError> {
        if base.limits.journal.is_zero() {
            return Err(AdminError::NotPossible("the server has no memory for a journal; start it with --journal"));
        }
        match self.state {
            JournalState::None => {}
            JournalState::Lost(_) if self.is_quiet(sets) && self.is_nothing_out(sets) => {
                self.end(base, sets);
            }
            _ => return Err(AdminError::NotPossible("the server has a journal already")),
        }
        let drives: Vec<DriveId> = found.devices.iter().map(|(drive, _)| *drive).collect();
        base.channels.claim(&drives, JOURNAL_SET)?;
        if !self.log.has_room(found.entries.len()) || found.kept.len() > KEPT_MAX {
            base.channels.release(&drives);
            return Err(AdminError::Full("journal entry"));
        }
        self.open_log(found);
        self.release_unused_places(sets);
        sets.all_changed(AwaitedChange::Session);
        Ok(AdminOutcome::Done)
    }

    /// There is no journal any more. Its drives are free.
    fn end(&mut self, base: &mut Base, sets: &mut Sets) {
        let drives: Vec<DriveId> = self.claimed().map(|device| device.drive).collect();
        base.channels.release(&drives);
        // Entries of a failed set stay in the journal, and are found again with it.
        sets.signal(Signal::JournalGone);
        let mut is_pace_changed = false;
        for set in sets.values_mut().filter(|set| set.has_failed()) {
            is_pace_changed |= set.journal.end_hurry();
            set.journal.forget();
        }
        if is_pace_changed {
            sets.signal(Signal::PaceChanged);
        }
        self.forget(&base.limits);
    }

    /// Finish detaching, if the journal is free to go.
    pub(crate) fn check_detached(
        &mut self,
        base: &mut Base,
        sets: &mut Sets,
    ) -> Option<Result<AdminOutcome, AdminError>> {
        let is_closing = self.state == JournalState::Closing;
        if !self.is_nothing_out(sets) || is_closing && !self.writing.is_all_durable() {
            return None;
        }
        if is_closing || matches!(self.state, JournalState::Lost(_)) {
            self.end(base, sets);
        }
        Some(Ok(AdminOutcome::Done))
    }

    /// Continue the log that was found. The journal protects writes when its superblocks are durable.
    fn open_log(&mut self, found: &FoundJournal) {
        let devices = found.devices.iter().map(|(drive, mirror)| Device::new(*drive, *mirror, DeviceState::Works));
        self.devices = devices.collect();
        let mut superblock = Box::new(found.superblock.clone());
        superblock.epoch = found.epoch + 1;
        superblock.epoch_start = found.head.sequence;
        superblock.clean = false;
        superblock.tail = found.tail;
        self.log.clear(found.tail.sequence);
        for (sequence, entry) in (found.tail.sequence..).zip(&found.entries) {
            self.log.push(found_entry(&superblock, sequence, entry));
        }
        self.head = found.head.position;
        self.durable = found.head.sequence - 1;
        if self.log.next() != found.head.sequence {
            // The log was discarded: none of its entries counts, and later numbers are above theirs.
            self.log.clear(found.head.sequence);
            superblock.tail = found.head;
        }
        for kept in &found.kept {
            self.log.load_kept(kept.sequence, &found_entry(&superblock, kept.sequence, &kept.entry));
        }
        self.spill.attach(superblock.kept);
        self.superblock = Some(superblock);
        if found.devices.len() == 1 {
            // The device was used without the other one before, and this needs no new confirmation: the other one is stale
            // from now on.
            self.be_one();
        }
        self.replay.load(found);
        self.state = JournalState::Opening;
        self.writing.attach(found.superblock.epoch, found.superblock.generation);
        self.positions = Positions::opened(self.position());
        self.request_superblock();
    }

    /// Release the table entries of running sets that have no data in a journal that comes back.
    fn release_unused_places(&mut self, sets: &Sets) {
        let superblock = self.superblock.as_mut().expect("just put");
        for uuid in sets.values().filter(|set| !may_be_in_journal(set)).filter_map(uuid_of) {
            if let Some(index) = superblock.index_of(uuid) {
                superblock.arrays[usize::from(index)] = None;
                self.log.end_array_entries(index);
            }
        }
    }

    /// Does it hold no data that a later journal would not know of?
    fn is_quiet(&self, sets: &Sets) -> bool {
        sets.values().all(|set| !keeps_entries(set))
            && !self.spill.is_active()
            && self.orphans.is_empty()
            && !self.flying.is_used()
            && !self.open.has_records()
            && !self.replay.is_active()
    }

    /// Have all superblock writes, flushes, writes to a joining device, and logged operations ended or been given up?
    /// The end of a later one would be taken for one of the next journal.
    fn is_nothing_out(&self, sets: &Sets) -> bool {
        let is_out = self.join.is_out() || self.writing.is_out() || self.round.is_flush_out();
        !is_out && sets.values().all(|set| set.journal.logged == 0)
    }

    /// There is no journal from now on.
    fn forget(&mut self, limits: &Limits) {
        // Buffers that a hung drive may still read stay held until it answers. Writes that have reserved room release it
        // when they end.
        let (held, room, window) = (self.held, self.room.for_next_journal(), self.window.for_next_journal());
        // Rows of a failed set that were not redone stay incomplete until the set is started again.
        let replay = self.replay.for_next_journal();
        *self = Self { held, room, window, replay, ..Self::new(limits) };
    }

    /// Begin to detach the journal. It is refused while the journal holds data of running arrays. If no entry is needed any
    /// more, the last superblock says that the log is empty.
    pub(crate) fn begin_detach(&mut self, sets: &mut Sets) -> Result<(), AdminError> {
        match self.state {
            JournalState::None => return Err(NO_JOURNAL),
            JournalState::Closing => return Err(AdminError::NotPossible("the journal is being detached already")),
            JournalState::Opening | JournalState::Live | JournalState::Lost(_) => {}
        }
        if !self.is_quiet(sets) {
            return Err(AdminError::NotPossible("arrays use the journal: stop them, or change their policy, first"));
        }
        if self.leave_out() {
            sets.look();
        }
        if matches!(self.state, JournalState::Lost(_)) {
            return Ok(());
        }
        let end = self.durable + 1;
        if self.log.first_needed(end) == end {
            let position = self.head;
            let superblock = self.table_mut();
            superblock.tail = LogPlace { sequence: end, position };
            superblock.clean = true;
        }
        self.state = JournalState::Closing;
        self.request_superblock();
        Ok(())
    }

    /// Discard the entries of an array that is not running. Returns the generation of the superblocks that says so.
    pub(crate) fn begin_discard(&mut self, sets: &mut Sets, set_uuid: Uuid) -> Result<u64, AdminError> {
        if sets.values().any(|set| uuid_of(set) == Some(set_uuid) && !set.has_failed()) {
            return Err(AdminError::NotPossible("the array is running: there is nothing to discard"));
        }
        if matches!(self.state, JournalState::Lost(_)) {
            return Err(AdminError::NotPossible(LOST));
        }
        let superblock = self.superblock.as_mut().ok_or(NO_JOURNAL)?;
        let index = superblock
            .index_of(set_uuid)
            .ok_or(AdminError::NotPossible("the journal holds nothing for an array of this name"))?;
        superblock.arrays[usize::from(index)].as_mut().expect("just found").state = JournalArrayState::Discarded;
        self.log.end_array_entries(index);
        sets.all_changed(AwaitedChange::Session);
        Ok(self.request_superblock())
    }

    /// Is it durable that entries were discarded? Until then a crash would bring them back.
    pub(crate) fn check_discarded(&self, generation: u64) -> Option<Result<AdminOutcome, AdminError>> {
        match self.state {
            JournalState::Lost(_) | JournalState::None => Some(Err(AdminError::NotPossible(LOST))),
            // With the old table a dropped device would count.
            _ if self.is_epoch_pending() => None,
            _ => (self.writing.is_durable(generation)).then_some(Ok(AdminOutcome::Done)),
        }
    }

    /// The status of the journal, if there is one.
    pub(crate) fn status(&self) -> Option<JournalStatus> {
        let superblock = self.superblock.as_ref()?;
        let arrays = superblock.arrays.iter().zip(0_u8..).filter_map(|(array, index)| {
            array.map(|array| JournalArrayStatus {
                set_uuid: array.set_uuid,
                state: array.state,
                waiting: self.log.waiting_for(index),
            })
        });
        Some(JournalStatus {
            state: self.state,
            uuid: superblock.journal,
            epoch: self.writing.epoch(),
            epoch_pending: self.is_epoch_pending(),
            devices: self.claimed().map(|device| (device.drive, device.state.works())).collect(),
            joining: self.join_status(),
            ring: superblock.ring_sectors,
            used: Sectors(self.log.used),
            entries: self.log.len() as u64,
            kept: self.spill.used(),
            keep_room: superblock.keep_area().1,
            durable: self.durable,
            arrays: arrays.collect(),
            pending_redos: self.replay.pending(),
            counters: self.counters,
        })
    }
}

fn found_entry(superblock: &JournalSuperblock, sequence: u64, found: &FoundEntry) -> Entry {
    let (mut waiting, mut lines) = (0, 0);
    for record in &found.records {
        if superblock.counts(record.array(), sequence) {
            waiting |= 1 << record.array();
        }
        if let JournalRecord::Data { set_lba, sectors, .. } = record {
            lines += u32::try_from(lines_of(*set_lba, *sectors).count()).unwrap_or(u32::MAX / 2);
        }
    }
    Entry { position: found.position.0, sectors: found.sectors.get(), pins: 0, lines, waiting }
}
