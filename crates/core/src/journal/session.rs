//! A set and the journal: the time during which the set's superblocks say that the journal holds promises for it.
//!
//! ```text
//!  Off -> Settling -> Entering -> Marking -> On -> Leaving -> Unmarking -> Off
//!          |           |           |          |      |            +-- the members say so no more
//!          |           |           |          |      +-- everything is on the members: they are flushed; back to On
//!          |           |           |          |          where that fails
//!          |           |           |          +-- writes are promised by the journal
//!          |           |           +-- the members' superblocks get the mark that keeps others away
//!          |           +-- the journal's superblock says from which entry on the set counts
//!          +-- what was written without the journal is flushed
//! ```
//!
//! The mark is durable on every member before the first promise, and goes when nothing is promised any more: with
//! the clean mark when it is quiet, or because the journal is lost, switched off, or the set is stopped.

use openraid_format::{ArrayState, JournalArray, JournalSuperblock, MinorVersion, Uuid};
use openraid_units::{Sectors, SetId};

use super::redo::is_protectable;
use crate::actions::{Actions, NoticeKind};
use crate::admin::WriteCache;
use crate::array::set::{Intent, Life, Set};
use crate::controller::Controller;
use crate::geometry::Geometry;
use crate::io::command::Owner;
use crate::planted::Flaw;

/// How far the journal's protection of a set is; see the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Session {
    /// The journal holds nothing for it.
    Off,
    /// What was written without the journal is being flushed.
    Settling,
    /// Until this generation of the journal's superblock is durable.
    Entering(u64),
    /// Until this generation of the set's superblocks is durable.
    Marking(u64),
    /// Writes are promised by the journal.
    On,
    /// Everything is on the members, and they are being flushed.
    Leaving,
    /// Until this generation of the set's superblocks is durable.
    Unmarking(u64),
}

/// What a set knows of the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetJournal {
    pub session: Session,
    /// The journal that its superblocks name while they have the mark.
    pub uuid: Uuid,
    /// Its place in the journal's table.
    pub index: u8,
    /// The entry with which the session began.
    pub since: u64,
    /// Somebody wants to be promised something.
    pub wanted: bool,
    /// The mark is in the superblocks, or about to be.
    pub marked: bool,
    /// Rows are written that the lost journal does not know: the generation of the superblocks that says so.
    pub stale: Option<u64>,
    /// Operations whose redo is in the journal and not yet on the members.
    pub logged: u32,
    /// Flushes under way for a change of the session.
    pub flushes: u32,
    /// Nobody was writing when those began that end it: they have everything.
    pub settled: bool,
    /// Destage is in a hurry because the session is to end, or to begin.
    pub hurried: bool,
    /// It was told of that the journal's table has no place for it.
    pub told_full: bool,
    /// Something dirty was not taken by the members when it was written last: a session may never end, or begin.
    pub stuck: bool,
    /// Its part of the log is not loaded yet.
    pub replaying: bool,
    /// Its members lack redo records of the log: see [`super::redo_backlog`].
    pub redoing: bool,
    /// Why that was not possible.
    pub replay_error: Option<&'static str>,
}

impl SetJournal {
    pub(crate) const NONE: Self = Self {
        session: Session::Off,
        uuid: Uuid([0; 16]),
        index: 0,
        since: 0,
        wanted: false,
        marked: false,
        stale: None,
        logged: 0,
        flushes: 0,
        settled: false,
        hurried: false,
        told_full: false,
        stuck: false,
        replaying: false,
        redoing: false,
        replay_error: None,
    };
}

impl SetJournal {
    /// May the clean mark be written, as far as the session is concerned?
    pub(crate) fn may_be_clean(&self) -> bool {
        matches!(self.session, Session::Off | Session::On)
    }
}

/// Why a set's writes are not promised by the journal although its policy says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unprotected {
    /// There is no journal, or it is lost.
    NoJournal,
    /// Parity or copies are not consistent yet.
    NotConsistent,
    /// Chunks are not multiples of 4 KiB, or too many members with parity, or copies.
    Shape,
    /// Metadata 1.0 stands at the end: the members of a mirror can be mounted as they are.
    MetadataAtEnd,
    /// It has a partial parity log.
    PartialParityLog,
    /// The set does not run, a flush of it has failed, or its members do not take what was written without the journal.
    NotRunning,
    /// The journal knows as many arrays as its table has places.
    TableFull,
}

impl Set {
    /// May a journal hold something for it? Not where it runs and does not say on its members that one does; one whose start
    /// was ended by the loss of the journal says so.
    pub(crate) fn may_be_in_journal(&self) -> bool {
        self.life == Life::Failed || self.journal.session != Session::Off || self.journal.marked
    }
}

impl Controller {
    /// Can the journal promise writes of this set?
    pub(crate) fn why_unprotected(&self, id: SetId) -> Option<Unprotected> {
        let set = self.sets.get(id);
        let Some(metadata) = &set.metadata else { return Some(Unprotected::Shape) };
        let mirror = matches!(set.geometry, Geometry::Mirror(_));
        if !self.journal.is_live() {
            Some(Unprotected::NoJournal)
        } else if set.life != Life::Running || set.has_failed_flush() || set.is_lost() {
            Some(Unprotected::NotRunning)
        } else if set.journal.session == Session::Off && set.journal.stuck {
            // It begins when nothing is dirty without it, which may be never.
            Some(Unprotected::NotRunning)
        } else if set.ppl.is_some() {
            Some(Unprotected::PartialParityLog)
        } else if !set.is_cacheable || !is_protectable(&set.geometry) {
            Some(Unprotected::Shape)
        } else if mirror && metadata.common.minor == MinorVersion::V1_0 {
            Some(Unprotected::MetadataAtEnd)
        } else if set.is_redundant() && set.consistent_to != Sectors::MAX {
            Some(Unprotected::NotConsistent)
        } else if set.journal.session == Session::Off && !self.has_place_for(metadata.common.set_uuid) {
            Some(Unprotected::TableFull)
        } else {
            None
        }
    }

    /// Does the journal's table know this set, or can it? A place that was given up by name is one.
    fn has_place_for(&self, set_uuid: Uuid) -> bool {
        let Some(superblock) = &self.journal.superblock else { return false };
        let own = |array: &JournalArray| array.set_uuid == set_uuid || array.state == ArrayState::Discarded;
        superblock.arrays.iter().any(|place| place.as_ref().is_none_or(own))
    }

    /// Are writes of this set to be promised by the journal?
    pub(crate) fn wants_journal(&self, id: SetId) -> bool {
        self.sets.get(id).policy.write_cache == WriteCache::Journal && self.why_unprotected(id).is_none()
    }

    /// Ask for a session of this set; true if it is on, so that the journal may acknowledge writes of the set.
    pub(crate) fn ask_for_session(&mut self, id: SetId) -> bool {
        let set = self.sets.get_mut(id);
        if set.journal.session == Session::On {
            if set.intent == Intent::Flushing {
                set.intent = Intent::Active;
            }
            return true;
        }
        if !set.journal.wanted {
            set.journal.wanted = true;
            self.set_changed = true;
        }
        false
    }

    /// Is its session one that nobody wants any more? Writes past it wait until it has ended: everything that is written
    /// meanwhile has to be in the journal, and a crash would bring back what a lost one has, over what was written without
    /// it, if it is found again.
    pub(crate) fn is_session_ending(&self, id: SetId) -> bool {
        let set = self.sets.get(id);
        // A set whose flush has failed stays where it is until it is started again, and so may one that is stuck.
        let stays = || set.journal.stuck || set.has_failed_flush() || set.is_lost();
        set.journal.session != Session::Off && !stays()
    }

    /// Does the journal still hold something for a set that its members do not have?
    pub(crate) fn journal_holds(&self, set: &Set) -> bool {
        set.journal.session == Session::On && (set.dirty.all() > 0 || set.journal.logged > 0)
    }

    /// Move a set's session on; true where something moved.
    pub(crate) fn pump_session(&mut self, id: SetId, actions: &mut Actions) -> bool {
        let set = self.sets.get(id);
        if set.life == Life::Failed || set.journal.replaying {
            return false;
        }
        let durable = set.metadata.as_ref().map_or(0, |m| m.durable);
        match set.journal.session {
            Session::Off => self.begin_session(id, actions),
            Session::Settling if set.journal.flushes == 0 => self.enter_session(id),
            Session::Entering(_) if !self.journal.is_live() => self.set_session(id, Session::Off),
            // A table that one device has alone counts only if the epoch says so.
            Session::Entering(generation)
                if self.journal.writing.durable >= generation && !self.journal.is_epoch_pending() =>
            {
                self.mark_session(id)
            }
            Session::Marking(generation) if durable >= generation || self.planted.has(Flaw::SessionMarkLate) => {
                // Those who have waited for it come first: it must not be quiet already.
                let now = self.now;
                self.sets.get_mut(id).last_write = now;
                self.set_session(id, Session::On)
            }
            Session::On if !self.wants_journal(id) && !set.has_failed_flush() && !set.is_lost() => {
                self.leave_session(id, actions)
            }
            Session::Leaving if set.journal.flushes == 0 => self.unmark_session(id, actions),
            Session::Unmarking(generation) if durable >= generation => self.end_session(id),
            _ => false,
        }
    }

    fn set_session(&mut self, id: SetId, session: Session) -> bool {
        self.sets.get_mut(id).journal.session = session;
        self.set_changed = true;
        self.wake_all_waiters();
        true
    }

    fn begin_session(&mut self, id: SetId, actions: &mut Actions) -> bool {
        let set = self.sets.get(id);
        if !set.journal.wanted {
            self.tell_table_full(id, actions);
            return false;
        }
        if !self.wants_journal(id) {
            self.sets.get_mut(id).journal.wanted = false;
            self.end_hurry(id);
            self.tell_table_full(id, actions);
            self.set_changed = true;
            self.wake_all_waiters();
            return true;
        }
        if !set.is_settled() {
            // Hosts wait for that.
            return set.dirty.all() > 0 && self.hurry_destage(id);
        }
        self.end_hurry(id);
        let issued = self.flush_members(id, Owner::SessionFlush, actions);
        self.sets.get_mut(id).journal.flushes = issued;
        self.set_session(id, Session::Settling)
    }

    fn enter_session(&mut self, id: SetId) -> bool {
        if !self.wants_journal(id) {
            return self.set_session(id, Session::Off);
        }
        let uuid = self.sets.get(id).metadata.as_ref().expect("sets in the journal have metadata").common.set_uuid;
        let journal = &mut self.journal;
        let first = if journal.open.is_used() { journal.open.sequence } else { journal.log.next() };
        let array = JournalArray { set_uuid: uuid, state: ArrayState::Live, first_sequence: first };
        let superblock = journal.superblock.as_mut().expect("it is live");
        if superblock.index_of(uuid).is_none() && superblock.arrays.iter().all(Option::is_some) {
            forget_oldest_discarded(superblock);
        }
        let Ok(index) = superblock.enter(array) else {
            // Another one was quicker. There is no protection, rather than another's place.
            return self.set_session(id, Session::Off);
        };
        superblock.arrays[usize::from(index)] = Some(array);
        let own = superblock.journal;
        let generation = journal.request_superblock();
        let set = self.sets.get_mut(id);
        (set.journal.uuid, set.journal.index, set.journal.since) = (own, index, first);
        set.journal.told_full = false;
        self.set_session(id, Session::Entering(generation))
    }

    /// The policy asks for the journal, and its table has no place: once for each time that it becomes full.
    fn tell_table_full(&mut self, id: SetId, actions: &mut Actions) {
        let set = self.sets.get(id);
        let asked = set.policy.write_cache == WriteCache::Journal && !set.journal.told_full;
        if asked && self.why_unprotected(id) == Some(Unprotected::TableFull) {
            self.sets.get_mut(id).journal.told_full = true;
            self.trace.notice(&self.sets, id, None, None, NoticeKind::JournalTableFull, actions);
        }
    }

    pub(crate) fn mark_session(&mut self, id: SetId) -> bool {
        let set = self.sets.get_mut(id);
        if matches!(set.intent, Intent::Flushing | Intent::Unmarking(_)) {
            return false;
        }
        set.journal.marked = true;
        let generation = set.metadata.as_mut().expect("sets in the journal have metadata").request();
        if set.intent == Intent::Clean && set.needs_mark() {
            set.intent = Intent::Marking(generation);
        }
        let now = self.now;
        self.sets.get_mut(id).last_write = now;
        self.set_session(id, Session::Marking(generation))
    }

    fn leave_session(&mut self, id: SetId, actions: &mut Actions) -> bool {
        if self.journal_holds(self.sets.get(id)) {
            return self.hurry_destage(id);
        }
        self.flush_session(id, actions)
    }

    /// Flush what the session has brought to the members, before it ends.
    fn flush_session(&mut self, id: SetId, actions: &mut Actions) -> bool {
        // Those that go on without a journal that was lost may be writing still.
        let settled = self.sets.get(id).writers == 0;
        let issued = self.flush_members(id, Owner::SessionFlush, actions);
        let own = &mut self.sets.get_mut(id).journal;
        (own.flushes, own.settled) = (issued, settled);
        self.set_session(id, Session::Leaving)
    }

    /// Whatever is dirty is written without delay, because a session is to end or to begin; true where that is new.
    fn hurry_destage(&mut self, id: SetId) -> bool {
        let is_new = !core::mem::replace(&mut self.sets.get_mut(id).journal.hurried, true);
        if is_new {
            self.cache.awaited_changed = true;
        }
        is_new
    }

    /// Nothing is in a hurry any more because of a session of this set.
    pub(crate) fn end_hurry(&mut self, id: SetId) {
        if core::mem::take(&mut self.sets.get_mut(id).journal.hurried) {
            self.cache.awaited_changed = true;
        }
    }

    fn unmark_session(&mut self, id: SetId, actions: &mut Actions) -> bool {
        let set = self.sets.get(id);
        // Nothing says what its members have, or one is gone with what it had not flushed: the journal goes on to hold it.
        if set.has_failed_flush() || set.is_lost() {
            return self.set_session(id, Session::On);
        }
        // Writes past the session wait until it has ended, and everything before is flushed: it is clean as well. Else a crash
        // would ask for a resync, or for force where a member is missing, of what the journal had in full. So the clean mark that
        // is on its way comes first.
        if set.intent == Intent::Flushing {
            return false;
        }
        let is_clean = set.intent == Intent::Active && set.writers == 0;
        if is_clean && !set.journal.settled {
            return self.flush_session(id, actions);
        }
        let set = self.sets.get_mut(id);
        set.journal.marked = false;
        let generation = set.metadata.as_mut().expect("sets in the journal have metadata").request();
        if is_clean {
            set.intent = Intent::Unmarking(generation);
        }
        self.set_session(id, Session::Unmarking(generation))
    }

    /// The clean mark is about to be written: the session ends with it.
    pub(crate) fn unmark_with(&mut self, id: SetId, generation: u64) {
        let set = self.sets.get_mut(id);
        if set.journal.session == Session::On {
            set.journal.marked = false;
            set.journal.session = Session::Unmarking(generation);
        }
    }

    fn end_session(&mut self, id: SetId) -> bool {
        if self.sets.get(id).has_stale_metadata() {
            // Some member goes on to say that the journal holds something.
            self.sets.get_mut(id).journal.marked = true;
            return self.set_session(id, Session::On);
        }
        // Nothing in the log counts for it any more. If that does not reach the disk before a crash, its members say
        // the same.
        let index = self.sets.get(id).journal.index;
        let uuid = self.sets.get(id).metadata.as_ref().map(|metadata| metadata.common.set_uuid);
        if let Some(place) = self.journal.superblock.as_mut().map(|s| &mut s.arrays[usize::from(index)]) {
            if place.map(|array| array.set_uuid) == uuid {
                *place = None;
            }
        }
        let set = self.sets.get_mut(id);
        (set.journal.wanted, set.journal.stale) = (false, None);
        self.end_hurry(id);
        self.set_session(id, Session::Off)
    }
}

/// A place of the table is given to somebody else: that of the array which was given up first. What the log has of it
/// does not count for whoever gets the place, because that one's entries are younger. If the array comes back after all,
/// it is one whose journal is lost.
fn forget_oldest_discarded(superblock: &mut JournalSuperblock) {
    let discarded = |place: &&mut Option<JournalArray>| place.is_some_and(|a| a.state == ArrayState::Discarded);
    let oldest = superblock.arrays.iter_mut().filter(discarded).min_by_key(|place| place.map(|a| a.first_sequence));
    if let Some(place) = oldest {
        *place = None;
    }
}

impl Set {
    /// Is nothing under way that the journal would have to know of?
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.intent, Intent::Clean | Intent::Active) && self.writers == 0 && self.dirty.all() == 0
    }

    /// The mark that keeps others away, as it belongs into its superblocks: which journal, and whether that does not know
    /// everything.
    pub(crate) fn journal_mark(&self) -> (Option<Uuid>, bool) {
        let journal = self.journal.marked.then_some(self.journal.uuid);
        (journal, journal.is_some() && self.journal.stale.is_some())
    }
}
