//! The session of a set: the time in which its superblocks say that the journal holds data for it.
//!
//! ```text
//!  Off -> Settling -> Entering -> Marking -> On -> Leaving -> Unmarking -> Off
//!
//!  Settling    data that was written without the journal is flushed
//!  Entering    the journal's superblock is written, with the entry from which on the set counts
//!  Marking     the set's superblocks are written, with the mark that keeps Linux md and other journals away
//!  On          the journal protects writes
//!  Leaving     all data is on the members, and they are flushed; back to On if that fails
//!  Unmarking   the set's superblocks are written, without the mark
//! ```
//!
//! The mark is durable on every member before the first write is acknowledged. It is cleared when the journal holds no more
//! data of the set: with the clean mark when the set is quiet, or because the journal is lost, switched off, or the set is
//! stopped.

use openraid_format::{ArrayState, JournalArray, JournalReached, JournalSuperblock, MinorVersion, Uuid};
use openraid_units::{Instant, SetId};

use super::others::Others;
use super::position::Reached;
use super::redo::is_protectable;
use super::Journal;
use crate::actions::NoticeKind;
use crate::admin::WriteCache;
use crate::array::set::Set;
use crate::array::sets::{Change, Sets, Signal};
use crate::call::Call;
use crate::geometry::Geometry;
use crate::io::command::Owner;
use crate::planted::Flaw;

/// The progress of the session of a set, for readers. See the module header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Session {
    /// The journal protects no writes of the set.
    Off,
    /// Data that was written without the journal is being flushed.
    Settling,
    /// The journal's superblock is being written, with the set in its table.
    Entering,
    /// The set's superblocks are being written, with the mark.
    Marking,
    /// The journal protects the writes of the set.
    On,
    /// All data is on the members, and they are being flushed.
    Leaving,
    /// The set's superblocks are being written, without the mark.
    Unmarking,
}

/// The part of the journal that belongs to a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// The journal, as the superblocks of the set name it.
    pub(super) uuid: Uuid,
    /// The index of the set in the journal's table of arrays.
    pub(super) index: u8,
    /// The entry with which the session began.
    pub(super) since: u64,
}

impl Share {
    pub(crate) const fn new(uuid: Uuid, index: u8, since: u64) -> Self {
        Self { uuid, index, since }
    }
}

/// Does a write wait for a session to begin?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Demand {
    /// No write waits.
    None,
    /// A write waits.
    Asked,
    /// A write waits, and dirty data must be on the members first: destage does not wait for its age.
    Hurries,
}

/// The relation of a set to the journal. It has a tag of its own, as [`Stage`] has: a journalled write asks for it several
/// times, and a tag that is packed into other fields takes more steps to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum SetState {
    /// The journal holds nothing for the set.
    Off(Demand),
    /// See [`Session::Settling`].
    Settling,
    /// Until this generation of the journal's superblock is durable.
    Entering(Share, u64),
    /// The superblocks of the set have the mark, or may still have it.
    Marked(Marked),
}

/// A set whose superblocks may have the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marked {
    pub(super) share: Share,
    pub(super) stage: Stage,
    /// Rows were written that the lost journal does not have: the generation of the superblocks that records this.
    pub(super) stale: Option<u64>,
    /// Has a write requested the session? If a session begins with a replay, a write may request it later, or never.
    pub(super) asked: bool,
    /// The session is about to end: destage does not wait for the age of dirty data.
    pub(super) hurries: bool,
}

/// The progress of a set that has the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The set is being started, and its part of the log is not loaded yet.
    Replaying,
    /// The set cannot be started, for this reason.
    Refused(&'static str),
    /// Until this generation of the set's superblocks is durable.
    Marking(u64),
    /// See [`Session::On`].
    On,
    /// See [`Session::Leaving`].
    Leaving {
        /// When the flushes began no write was under way, so they cover all writes.
        covers_all: bool,
    },
    /// Until this generation of the set's superblocks, without the mark, is durable.
    Unmarking(u64),
}

/// A set's knowledge of the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetJournal {
    pub(super) state: SetState,
    /// Operations whose redo is in the journal and not yet on the members; the redo backlog counts as one.
    pub(super) logged: u32,
    /// Flushes under way for a change of the session. They may still be under way after the set has failed and the journal is
    /// forgotten.
    pub(super) flushes: u32,
    /// Its members lack redo records of the log: see [`super::redo_backlog`].
    pub(super) redoing: bool,
    /// Was the notice given that the journal's table has no place for the set?
    pub(super) full_noticed: bool,
    /// How far the log has come.
    pub(super) reached: Reached,
}

impl SetJournal {
    pub(crate) const NONE: Self = Self {
        state: SetState::Off(Demand::None),
        logged: 0,
        flushes: 0,
        redoing: false,
        full_noticed: false,
        reached: Reached::NONE,
    };

    /// For tests: a session that a write asked for is on.
    #[cfg(test)]
    pub(crate) fn make_on(&mut self, share: Share) {
        let (stage, stale) = (Stage::On, None);
        self.state = SetState::Marked(Marked { share, stage, stale, asked: true, hurries: false });
    }

    #[cfg(test)]
    pub(crate) fn set_state(&mut self, state: SetState) {
        self.state = state;
    }

    /// Flushes under way for a change of the session.
    pub(crate) const fn flushes(&self) -> u32 {
        self.flushes
    }

    /// One of them has ended.
    pub(crate) fn flush_ended(&mut self) {
        self.flushes -= 1;
    }

    /// Do its members lack redo records of the log?
    pub(crate) const fn is_redoing(&self) -> bool {
        self.redoing
    }

    /// The members lack redo records of the log.
    pub(super) fn begin_redoing(&mut self) {
        self.redoing = true;
        self.logged += 1;
    }

    /// The members have all redo records, or will never get them.
    pub(crate) fn end_redoing(&mut self) {
        self.redoing = false;
        self.logged -= 1;
    }

    /// The session, for readers.
    #[inline]
    pub(crate) fn session(&self) -> Session {
        match self.state {
            SetState::Off(_) => Session::Off,
            SetState::Settling => Session::Settling,
            SetState::Entering(..) => Session::Entering,
            SetState::Marked(Marked { stage, .. }) => match stage {
                Stage::Replaying | Stage::Refused(_) => Session::Off,
                Stage::Marking(_) => Session::Marking,
                Stage::On => Session::On,
                Stage::Leaving { .. } => Session::Leaving,
                Stage::Unmarking(_) => Session::Unmarking,
            },
        }
    }

    /// Is the set in a session, or does one begin or end?
    #[inline]
    pub(crate) fn has_session(&self) -> bool {
        self.session() != Session::Off
    }

    /// Does the journal protect the writes of the set?
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        matches!(self.state, SetState::Marked(Marked { stage: Stage::On, .. }))
    }

    /// Has a write requested the session, or that one begins?
    pub(crate) fn is_asked(&self) -> bool {
        match self.state {
            SetState::Off(demand) => demand != Demand::None,
            SetState::Settling | SetState::Entering(..) => true,
            SetState::Marked(own) => own.asked,
        }
    }

    /// A write requests the session; true if none did before.
    fn ask(&mut self) -> bool {
        let is_new = !self.is_asked();
        match &mut self.state {
            SetState::Off(demand) if is_new => *demand = Demand::Asked,
            SetState::Marked(own) => own.asked = true,
            SetState::Off(_) | SetState::Settling | SetState::Entering(..) => {}
        }
        is_new
    }

    /// The set's share of the journal, if it has one.
    #[inline]
    pub(crate) fn share(&self) -> Option<Share> {
        match self.state {
            SetState::Off(_) | SetState::Settling => None,
            SetState::Entering(share, _) => Some(share),
            SetState::Marked(own) => Some(own.share),
        }
    }

    /// The place of the set in the journal's table.
    ///
    /// # Panics
    /// The set has no part in the journal.
    #[inline]
    pub(crate) fn index(&self) -> u8 {
        self.share().expect("the set has a part in the journal").index
    }

    /// The set will be started: the log is read first. `seen` is what its superblocks say of it.
    pub(crate) fn begin_replay(&mut self, share: Share, is_stale: bool, seen: JournalReached) {
        let stale = is_stale.then_some(0);
        self.reached = Reached::from(seen);
        self.state = SetState::Marked(Marked { share, stage: Stage::Replaying, stale, asked: false, hurries: false });
    }

    /// Must the set's part of the log still be loaded?
    pub(crate) fn is_replaying(&self) -> bool {
        matches!(self.state, SetState::Marked(Marked { stage: Stage::Replaying, .. }))
    }

    /// The set cannot be started.
    pub(super) fn refuse(&mut self, why: &'static str) {
        self.set_stage(Stage::Refused(why));
    }

    /// Why the set cannot be started.
    pub(crate) fn replay_error(&self) -> Option<&'static str> {
        match self.state {
            SetState::Marked(Marked { stage: Stage::Refused(why), .. }) => Some(why),
            _ => None,
        }
    }

    /// The journal is gone, and the set has failed. The reason why a set is not started stays.
    pub(super) fn forget(&mut self) {
        if self.has_session() {
            self.state = SetState::Off(Demand::None);
        }
    }

    /// The generation of the superblocks that records that the journal is stale.
    pub(crate) fn stale(&self) -> Option<u64> {
        self.marked().and_then(|own| own.stale)
    }

    /// This generation of the superblocks records that the journal is stale.
    pub(super) fn set_stale(&mut self, generation: u64) {
        if let SetState::Marked(own) = &mut self.state {
            own.stale = Some(generation);
        }
    }

    /// Does destage hurry, because a session is to begin or to end?
    #[inline]
    pub(crate) fn hurries(&self) -> bool {
        match self.state {
            SetState::Off(demand) => demand == Demand::Hurries,
            SetState::Marked(own) => own.hurries,
            SetState::Settling | SetState::Entering(..) => false,
        }
    }

    /// Begin or end to destage without waiting for the age of dirty data.
    fn set_hurries(&mut self, hurries: bool) {
        match &mut self.state {
            SetState::Off(Demand::None) | SetState::Settling | SetState::Entering(..) => {}
            SetState::Off(demand) => *demand = if hurries { Demand::Hurries } else { Demand::Asked },
            SetState::Marked(own) => own.hurries = hurries,
        }
    }

    /// Destage waits for the age of dirty data again; false if it does already.
    pub(crate) fn end_hurry(&mut self) -> bool {
        let hurries = self.hurries();
        if hurries {
            self.set_hurries(false);
        }
        hurries
    }

    fn marked(&self) -> Option<&Marked> {
        match &self.state {
            SetState::Marked(own) => Some(own),
            _ => None,
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        let SetState::Marked(own) = &mut self.state else { unreachable!("the set has the mark: {:?}", self.state) };
        own.stage = stage;
    }

    /// Does the session permit the clean mark?
    pub(crate) fn may_be_clean(&self) -> bool {
        matches!(self.session(), Session::Off | Session::On)
    }
}

/// Why the journal does not protect a set's writes although its policy says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unprotected {
    /// There is no journal, or it is lost.
    NoJournal,
    /// Parity or copies are not consistent yet.
    NotConsistent,
    /// Chunks are not multiples of 4 KiB, or too many members with parity, or copies.
    Shape,
    /// Metadata 1.0 is at the end of the members, so the members of a mirror could be mounted as they are.
    MetadataAtEnd,
    /// It has a partial parity log.
    PartialParityLog,
    /// The set does not run, or one of its flushes failed, or its members do not accept dirty data that was written
    /// without the journal.
    NotRunning,
    /// The journal's table is full.
    TableFull,
}

impl Set {
    /// Its UUID. A set without metadata has none.
    pub(super) fn uuid(&self) -> Option<Uuid> {
        self.metadata.as_ref().map(|metadata| metadata.common().set_uuid)
    }

    /// May a journal hold data for it? A running set without the mark has none. A set whose start ended with the loss of
    /// the journal has the mark.
    pub(crate) fn may_be_in_journal(&self) -> bool {
        self.has_failed() || self.is_in_journal()
    }

    /// Does it have a session, or superblocks that name a journal?
    pub(crate) fn is_in_journal(&self) -> bool {
        self.journal.has_session() || self.journal.marked().is_some()
    }

    /// Is a session still on that the set should not have? Writes past the cache wait until it has ended: until then all
    /// writes must be in the journal, and after a crash a lost journal that is found again would replay older data over
    /// writes without it.
    pub(crate) fn is_session_ending(&self) -> bool {
        // A set with a failed flush keeps its session until it is started again. So may a set whose members refuse dirty
        // data.
        let stays = || self.dirty.is_refused() || self.has_failed_flush() || self.is_lost();
        self.journal.has_session() && !stays()
    }

    /// Does the journal hold data of a set that its members do not have?
    pub(crate) fn journal_holds(&self) -> bool {
        self.journal.is_on() && (self.dirty.all() > 0 || self.journal.logged > 0)
    }

    /// Is no write under way, and no data dirty that the journal would need to have?
    pub(crate) fn is_at_rest(&self) -> bool {
        self.mark.is_at_rest() && self.dirty.all() == 0
    }

    /// The mark for the superblocks: the journal's UUID, how far it has come, and whether that journal is stale.
    pub(crate) fn journal_mark(&self) -> (Option<(Uuid, JournalReached)>, bool) {
        let own = self.journal.marked().filter(|own| !matches!(own.stage, Stage::Unmarking(_)));
        let reached = self.journal.reached.now();
        (own.map(|own| (own.share.uuid, reached)), own.is_some_and(|own| own.stale.is_some()))
    }

    /// The clean mark will be written in this generation: the session ends with it.
    pub(crate) fn unmark_with(&mut self, generation: u64) {
        if self.journal.is_on() {
            self.journal.set_stage(Stage::Unmarking(generation));
        }
    }
}

impl Sets {
    /// Request a session of this set; true if it is on, so that the journal may acknowledge writes of the set.
    pub(crate) fn ask_for_session(&mut self, id: SetId) -> bool {
        let set = self.get_mut(id);
        if set.journal.is_on() {
            set.mark.keep();
            return true;
        }
        if set.journal.ask() {
            self.look();
        }
        false
    }
}

impl Journal {
    /// Can the journal protect writes of this set? The error is the reason why not.
    pub(crate) fn protects(&self, set: &Set) -> Result<(), Unprotected> {
        let Some(metadata) = &set.metadata else { return Err(Unprotected::Shape) };
        let mirror = matches!(set.geometry(), Geometry::Mirror(_));
        if !self.is_live() {
            Err(Unprotected::NoJournal)
        } else if !set.is_running() || set.has_failed_flush() || set.is_lost() {
            Err(Unprotected::NotRunning)
        } else if !set.journal.has_session() && set.dirty.is_refused() {
            // A session begins when no data is dirty without it, which may never be.
            Err(Unprotected::NotRunning)
        } else if set.ppl.is_some() {
            Err(Unprotected::PartialParityLog)
        } else if !set.is_cacheable() || !is_protectable(set.geometry()) {
            Err(Unprotected::Shape)
        } else if mirror && metadata.common().minor == MinorVersion::V1_0 {
            Err(Unprotected::MetadataAtEnd)
        } else if set.is_redundant() && !set.is_consistent_everywhere() {
            Err(Unprotected::NotConsistent)
        } else if !set.journal.has_session() && !self.has_place_for(metadata.common().set_uuid) {
            Err(Unprotected::TableFull)
        } else {
            Ok(())
        }
    }

    /// Does the journal's table have a place for this set? The place of a discarded array is one.
    fn has_place_for(&self, set_uuid: Uuid) -> bool {
        let Some(superblock) = &self.superblock else { return false };
        let own = |array: &JournalArray| array.set_uuid == set_uuid || array.state == ArrayState::Discarded;
        superblock.arrays.iter().any(|place| place.as_ref().is_none_or(own))
    }

    /// Should the journal protect writes of this set, and can it?
    #[inline(always)]
    pub(crate) fn is_wanted_by(&self, set: &Set) -> bool {
        set.policy().write_cache == WriteCache::Journal && self.protects(set).is_ok()
    }

    /// Advance the session of a set; true if something has changed.
    pub(crate) fn pump_session(&mut self, id: SetId, with: &mut Others<'_>) -> bool {
        let Others { sets, call, .. } = with;
        self.trace_position(sets, id);
        let recorded = sets.record_position(id, call.now(), call.limits().position_interval);
        let set = sets.get(id);
        let own = match set.journal.state {
            _ if recorded => return true,
            _ if set.has_failed() => return false,
            SetState::Off(demand) => return self.begin_session(id, demand, with),
            SetState::Settling if set.journal.flushes == 0 => return self.enter_session(sets, id),
            SetState::Entering(..) if !self.is_live() => return sets.set_session(id, SetState::Off(Demand::Asked)),
            // A table that is on one device alone counts only if the epoch says so.
            SetState::Entering(share, generation)
                if self.writing.is_durable(generation) && !self.is_epoch_pending() =>
            {
                sets.get_mut(id).journal.reached = Reached::from(self.position());
                self.trace_position(sets, id);
                return sets.mark_session(id, share, call.now());
            }
            SetState::Settling | SetState::Entering(..) => return false,
            SetState::Marked(own) => own,
        };
        let durable = set.durable_generation();
        match own.stage {
            Stage::Marking(generation) if durable >= generation || call.planted().has(Flaw::SessionMarkLate) => {
                // Writes that have waited for the session come first: the set must not be quiet already.
                sets.get_mut(id).mark.note_write(call.now());
                sets.set_stage(id, Stage::On)
            }
            Stage::On if !self.is_wanted_by(set) && !set.has_failed_flush() && !set.is_lost() => {
                if set.journal_holds() {
                    sets.hurry_destage(id)
                } else {
                    sets.flush_session(id, call)
                }
            }
            Stage::Leaving { covers_all } if set.journal.flushes == 0 => sets.unmark_session(id, covers_all, call),
            Stage::Unmarking(generation) if durable >= generation => self.end_session(sets, id),
            _ => false,
        }
    }

    fn begin_session(&mut self, id: SetId, demand: Demand, with: &mut Others<'_>) -> bool {
        let Others { sets, call, .. } = with;
        let set = sets.get(id);
        let is_asked = demand != Demand::None;
        if !is_asked || !self.is_wanted_by(set) {
            self.notice_table_full(sets, id, call);
            return if is_asked { sets.end_session(id) } else { false };
        }
        if !set.is_at_rest() {
            // Hosts wait for destage.
            return if set.dirty.all() > 0 { sets.hurry_destage(id) } else { false };
        }
        sets.end_hurry(id);
        sets.flush_for_session(id, call);
        sets.set_session(id, SetState::Settling)
    }

    fn enter_session(&mut self, sets: &mut Sets, id: SetId) -> bool {
        let set = sets.get(id);
        if !self.is_wanted_by(set) {
            return sets.set_session(id, SetState::Off(Demand::Asked));
        }
        let uuid = set.uuid().expect("sets in the journal have metadata");
        let first = self.first_open();
        let array = JournalArray { set_uuid: uuid, state: ArrayState::Live, first_sequence: first };
        let superblock = self.superblock.as_mut().expect("it is live");
        if superblock.index_of(uuid).is_none() && superblock.arrays.iter().all(Option::is_some) {
            forget_oldest_discarded(superblock);
        }
        let Ok(index) = superblock.enter(array) else {
            // Another set took the last place of the table. This one is not protected.
            return sets.set_session(id, SetState::Off(Demand::Asked));
        };
        superblock.arrays[usize::from(index)] = Some(array);
        let share = Share { uuid: superblock.journal, index, since: first };
        let generation = self.request_superblock();
        sets.get_mut(id).journal.full_noticed = false;
        sets.set_session(id, SetState::Entering(share, generation))
    }

    /// The policy asks for the journal, and its table is full: one notice each time that it becomes full.
    fn notice_table_full(&self, sets: &mut Sets, id: SetId, call: &mut Call) {
        let set = sets.get(id);
        let asked = set.policy().write_cache == WriteCache::Journal && !set.journal.full_noticed;
        if asked && self.protects(set) == Err(Unprotected::TableFull) {
            sets.get_mut(id).journal.full_noticed = true;
            call.notice(sets, (id, None), None, NoticeKind::JournalTableFull);
        }
    }

    pub(super) fn end_session(&mut self, sets: &mut Sets, id: SetId) -> bool {
        let set = sets.get(id);
        if set.has_stale_metadata() {
            // The superblock of some member still has the mark.
            return sets.set_stage(id, Stage::On);
        }
        // No entry of the log counts for the set any more. If that is not durable before a crash, the superblocks of the
        // members say the same.
        let index = usize::from(set.journal.index());
        if let Some(place) = self.superblock.as_mut().map(|superblock| &mut superblock.arrays[index]) {
            place.take_if(|array| Some(array.set_uuid) == set.uuid());
        }
        sets.end_session(id)
    }
}

impl Sets {
    /// The session has changed: pieces and operations that wait for it or for the journal are called. Always true.
    fn set_session(&mut self, id: SetId, state: SetState) -> bool {
        self.get_mut(id).journal.state = state;
        self.changed(id, Change::Session);
        self.signal(Signal::Changed);
        true
    }

    /// Destage waits for the age of dirty data again.
    fn end_hurry(&mut self, id: SetId) {
        if self.get_mut(id).journal.end_hurry() {
            self.signal(Signal::PaceChanged);
        }
    }

    fn set_stage(&mut self, id: SetId, stage: Stage) -> bool {
        let own = &mut self.get_mut(id).journal;
        own.set_stage(stage);
        let state = own.state;
        self.set_session(id, state)
    }

    /// The set has no session, and no write waits for one.
    fn end_session(&mut self, id: SetId) -> bool {
        self.end_hurry(id);
        self.set_session(id, SetState::Off(Demand::None))
    }

    /// Put the mark into the superblocks of a set, unless the clean mark is being written.
    fn mark_session(&mut self, id: SetId, share: Share, now: Instant) -> bool {
        let set = self.get_mut(id);
        if set.mark.is_unmarking() {
            return false;
        }
        let generation = set.metadata.as_mut().expect("sets in the journal have metadata").request();
        if set.mark.is_clean() && set.needs_mark() {
            set.mark.mark_with(generation);
        }
        set.mark.note_write(now);
        let stage = Stage::Marking(generation);
        let (stale, asked) = (set.journal.stale(), set.journal.is_asked());
        self.set_session(id, SetState::Marked(Marked { share, stage, stale, asked, hurries: false }))
    }

    /// A set whose part of the log was loaded takes requests from now on: its session goes on.
    pub(super) fn resume_session(&mut self, id: SetId, now: Instant) {
        let share = self.get(id).journal.share().expect("a set that is replayed has a part in the journal");
        let begins = self.mark_session(id, share, now);
        assert!(begins, "a set that did not serve yet writes no clean mark");
    }

    fn flush_for_session(&mut self, id: SetId, call: &mut Call) {
        let issued = self.flush_members(id, Owner::SessionFlush, call);
        self.get_mut(id).journal.flushes = issued;
    }

    /// Flush the members before the session ends.
    fn flush_session(&mut self, id: SetId, call: &mut Call) -> bool {
        // Writes that continue without a lost journal may still be under way.
        let covers_all = !self.get(id).mark.has_writers();
        self.flush_for_session(id, call);
        self.set_stage(id, Stage::Leaving { covers_all })
    }

    /// Destage dirty data whatever its age, because a session is to end or to begin.
    pub(super) fn hurry_destage(&mut self, id: SetId) -> bool {
        let own = &mut self.get_mut(id).journal;
        let begins = !own.hurries();
        own.set_hurries(true);
        if begins {
            self.signal(Signal::PaceChanged);
        }
        begins
    }

    fn unmark_session(&mut self, id: SetId, covers_all: bool, call: &mut Call) -> bool {
        let set = self.get_mut(id);
        // It is unknown what the members have, or one is lost with unflushed data: the journal keeps it.
        if set.has_failed_flush() || set.is_lost() {
            return self.set_stage(id, Stage::On);
        }
        // Writes past the cache wait until the session has ended and all earlier writes are flushed, so the set is
        // clean as well. Otherwise a crash would require a resync, or force if a member is missing, although the
        // journal had everything. A clean mark that is being written comes first.
        if set.mark.is_flushing() {
            return false;
        }
        let is_clean = set.mark.is_idle();
        if is_clean && !covers_all {
            return self.flush_session(id, call);
        }
        let generation = set.metadata.as_mut().expect("sets in the journal have metadata").request();
        if is_clean {
            set.mark.unmark_with(generation);
        }
        self.set_stage(id, Stage::Unmarking(generation))
    }
}

/// Free the place in the table of the array that was discarded first. Its entries do not count for the new array, whose
/// entries are younger. If the discarded array comes back, its journal counts as lost.
fn forget_oldest_discarded(superblock: &mut JournalSuperblock) {
    let discarded = |place: &&mut Option<JournalArray>| place.is_some_and(|a| a.state == ArrayState::Discarded);
    let oldest = superblock.arrays.iter_mut().filter(discarded).min_by_key(|place| place.map(|a| a.first_sequence));
    if let Some(place) = oldest {
        *place = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: Share = Share { uuid: Uuid([7; 16]), index: 3, since: 9 };

    fn marked(stage: Stage) -> SetState {
        SetState::Marked(Marked { share: SHARE, stage, stale: None, asked: false, hurries: false })
    }

    #[test]
    fn each_state_of_a_set_is_one_session_with_or_without_a_part_of_the_journal() {
        let table = [
            (SetState::Off(Demand::None), Session::Off, false, true),
            (SetState::Settling, Session::Settling, false, false),
            (SetState::Entering(SHARE, 4), Session::Entering, true, false),
            (marked(Stage::Replaying), Session::Off, true, true),
            (marked(Stage::Refused("no")), Session::Off, true, true),
            (marked(Stage::Marking(5)), Session::Marking, true, false),
            (marked(Stage::On), Session::On, true, true),
            (marked(Stage::Leaving { covers_all: true }), Session::Leaving, true, false),
            (marked(Stage::Unmarking(6)), Session::Unmarking, true, false),
        ];
        for (state, session, has_part, may_be_clean) in table {
            let own = SetJournal { state, ..SetJournal::NONE };
            assert_eq!((own.session(), own.share().is_some()), (session, has_part), "{state:?}");
            assert_eq!((own.may_be_clean(), own.is_on()), (may_be_clean, session == Session::On), "{state:?}");
        }
    }

    #[test]
    fn a_session_is_requested_once_and_hurries_only_if_it_was_requested() {
        let mut own = SetJournal::NONE;
        own.set_hurries(true);
        assert!(!own.hurries(), "no write asks for it");
        assert!(own.ask() && !own.ask());
        own.set_hurries(true);
        assert!(own.is_asked() && own.hurries());
        own.set_hurries(false);
        assert!(own.is_asked() && !own.hurries(), "the write still waits");
        // A write did not request this session: it began with a replay.
        own.begin_replay(SHARE, true, JournalReached { entry: 7, generation: 2 });
        assert_eq!((own.is_asked(), own.is_replaying(), own.stale()), (false, true, Some(0)));
        assert!(own.ask() && own.is_asked());
        own.refuse("why");
        own.forget();
        assert_eq!(own.replay_error(), Some("why"), "the reason stays when the journal goes");
    }
}
