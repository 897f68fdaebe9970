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

use openraid_format::{JournalArray, JournalArrayState, JournalSuperblock, MinorVersion, Uuid};
use openraid_units::{Instant, SetId};

use super::redo::is_protectable;
pub use super::set_journal::Session;
use super::set_journal::{Demand, Marked, SetState, Share, Stage};
use super::Journal;
use crate::actions::NoticeKind;
use crate::array::awaited_changes::AwaitedChange;
use crate::array::set::{Life, Set};
use crate::array::sets::{Sets, Signal};
use crate::call::Call;
use crate::io::state::command::Owner;
use crate::journal::record_position::record_position;
use crate::journal::set_journal::Reached;
use crate::planted::Flaw;
use crate::settings::WriteCache;

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

/// Its UUID. A set without metadata has none.
pub(super) fn uuid_of(set: &Set) -> Option<Uuid> {
    set.metadata.as_ref().map(|metadata| metadata.common().set_uuid)
}

/// May a journal hold data for it? A running set without the mark has none. A set whose start ended with the loss of
/// the journal has the mark.
pub(crate) fn may_be_in_journal(set: &Set) -> bool {
    set.has_failed() || set.journal.is_in_use()
}

/// Must the session end first? Writes that bypass the journal wait for that: after a crash, a lost journal that is
/// found again would replay older data over them.
pub(crate) fn is_session_ending(set: &Set) -> bool {
    // A set with a failed flush keeps its session until it is started again. So may a set whose members refuse dirty
    // data.
    let stays = || set.dirty.is_refused() || set.has_failed_flush() || set.is_lost();
    set.journal.has_session() && !stays()
}

/// Does the journal hold data of a set that its members do not have?
pub(crate) fn journal_holds(set: &Set) -> bool {
    set.journal.is_on() && (set.dirty.all() > 0 || set.journal.logged > 0)
}

/// Request a session of this set; true if it is on, so that the journal may acknowledge writes of the set.
pub(crate) fn ask_for_session(sets: &mut Sets, id: SetId) -> bool {
    let set = sets.get_mut(id);
    if set.journal.is_on() {
        set.mark.keep();
        return true;
    }
    if set.journal.ask() {
        sets.look();
    }
    false
}

impl Journal {
    /// Can the journal protect writes of this set? The error is the reason why not.
    pub(crate) fn protects(&self, set: &Set) -> Result<(), Unprotected> {
        let Some(metadata) = &set.metadata else { return Err(Unprotected::Shape) };
        let mirror = set.shape().is_mirror();
        if !self.is_live() {
            Err(Unprotected::NoJournal)
        } else if !set.is_running() || set.has_failed_flush() || set.is_lost() {
            Err(Unprotected::NotRunning)
        } else if !set.journal.has_session() && set.dirty.is_refused() {
            // A session begins when no data is dirty without it, which may never be.
            Err(Unprotected::NotRunning)
        } else if set.ppl.is_some() {
            Err(Unprotected::PartialParityLog)
        } else if !set.shape().is_cacheable() || !is_protectable(set.shape()) {
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
        let is_place = |array: &JournalArray| array.set_uuid == set_uuid || array.state == JournalArrayState::Discarded;
        superblock.arrays.iter().any(|place| place.as_ref().is_none_or(is_place))
    }

    /// Should the journal protect writes of this set, and can it?
    #[inline(always)]
    pub(crate) fn is_wanted_by(&self, set: &Set) -> bool {
        set.write_cache() == WriteCache::Journal && self.protects(set).is_ok()
    }

    /// Advance the session of a set; true if something has changed.
    pub(crate) fn pump_session(&mut self, sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
        self.trace_position(sets, id);
        let recorded = record_position(sets, id, call.now(), call.limits().position_interval);
        let set = sets.get(id);
        let marked = match set.journal.state {
            _ if recorded => return true,
            _ if set.has_failed() => return false,
            SetState::Off(demand) => return self.begin_session(sets, id, demand, call),
            SetState::Settling if set.journal.flushes == 0 => return self.enter_session(sets, id),
            SetState::Entering(..) if !self.is_live() => return set_session(sets, id, SetState::Off(Demand::Asked)),
            // A table that is on one device alone counts only if the epoch says so.
            SetState::Entering(share, generation)
                if self.writing.is_durable(generation) && !self.is_epoch_pending() =>
            {
                sets.get_mut(id).journal.reached = Reached::from(self.position());
                self.trace_position(sets, id);
                return mark_session(sets, id, share, call.now());
            }
            SetState::Settling | SetState::Entering(..) => return false,
            SetState::Marked(marked) => marked,
        };
        let durable = set.durable_generation();
        match marked.stage {
            Stage::Marking(generation) if durable >= generation || call.planted().has(Flaw::SessionMarkLate) => {
                // Writes that have waited for the session come first: the set must not be quiet already.
                sets.get_mut(id).mark.note_write(call.now());
                set_stage(sets, id, Stage::On)
            }
            Stage::On if !self.is_wanted_by(set) && !set.has_failed_flush() && !set.is_lost() => {
                if journal_holds(set) {
                    hurry_destage(sets, id)
                } else {
                    flush_session(sets, id, call)
                }
            }
            Stage::Leaving { covers_all } if set.journal.flushes == 0 => unmark_session(sets, id, covers_all, call),
            Stage::Unmarking(generation) if durable >= generation => self.end_session(sets, id),
            _ => false,
        }
    }

    fn begin_session(&mut self, sets: &mut Sets, id: SetId, demand: Demand, call: &mut Call) -> bool {
        let set = sets.get(id);
        let is_asked = demand != Demand::None;
        if !is_asked || !self.is_wanted_by(set) {
            self.notice_table_full(sets, id, call);
            return if is_asked { end_session(sets, id) } else { false };
        }
        if !set.is_at_rest() {
            // Hosts wait for destage.
            return if set.dirty.all() > 0 { hurry_destage(sets, id) } else { false };
        }
        end_hurry(sets, id);
        flush_for_session(sets, id, call);
        set_session(sets, id, SetState::Settling)
    }

    fn enter_session(&mut self, sets: &mut Sets, id: SetId) -> bool {
        let set = sets.get(id);
        if !self.is_wanted_by(set) {
            return set_session(sets, id, SetState::Off(Demand::Asked));
        }
        let uuid = uuid_of(set).expect("sets in the journal have metadata");
        let first = self.first_open();
        let array = JournalArray { set_uuid: uuid, state: JournalArrayState::Live, first_sequence: first };
        let superblock = self.superblock.as_mut().expect("it is live");
        if superblock.index_of(uuid).is_none() && superblock.arrays.iter().all(Option::is_some) {
            forget_oldest_discarded(superblock);
        }
        let Ok(index) = superblock.enter(array) else {
            // Another set took the last place of the table. This one is not protected.
            return set_session(sets, id, SetState::Off(Demand::Asked));
        };
        superblock.arrays[usize::from(index)] = Some(array);
        let share = Share { uuid: superblock.journal, index, since: first };
        let generation = self.request_superblock();
        sets.get_mut(id).journal.full_noticed = false;
        set_session(sets, id, SetState::Entering(share, generation))
    }

    /// The policy asks for the journal, and its table is full: one notice each time that it becomes full.
    fn notice_table_full(&self, sets: &mut Sets, id: SetId, call: &mut Call) {
        let set = sets.get(id);
        let asked = set.write_cache() == WriteCache::Journal && !set.journal.full_noticed;
        if asked && self.protects(set) == Err(Unprotected::TableFull) {
            sets.get_mut(id).journal.full_noticed = true;
            call.notice(sets, (id, None), None, NoticeKind::JournalTableFull);
        }
    }

    pub(super) fn end_session(&mut self, sets: &mut Sets, id: SetId) -> bool {
        let set = sets.get(id);
        if set.has_stale_metadata() {
            // The superblock of some member still has the mark.
            return set_stage(sets, id, Stage::On);
        }
        // No entry of the log counts for the set any more. If that is not durable before a crash, the superblocks of the
        // members say the same.
        let index = usize::from(set.journal.index());
        if let Some(place) = self.superblock.as_mut().map(|superblock| &mut superblock.arrays[index]) {
            place.take_if(|array| Some(array.set_uuid) == uuid_of(set));
        }
        end_session(sets, id)
    }

    /// The set takes requests from now on. Its lines and redos pin the entries that it still needs.
    pub(crate) fn begin_to_serve(&mut self, sets: &mut Sets, id: SetId, array: u8, now: Instant) {
        let set = sets.get_mut(id);
        // The set may already be stopping.
        if set.life() == Life::Starting {
            set.enter(Life::Running);
        }
        self.log.end_array_entries(array);
        resume_session(sets, id, now);
    }
}

/// The session has changed: pieces and operations that wait for it or for the journal are called. Always true.
fn set_session(sets: &mut Sets, id: SetId, state: SetState) -> bool {
    sets.get_mut(id).journal.state = state;
    sets.changed(id, AwaitedChange::Session);
    sets.signal(Signal::Changed);
    true
}

/// Destage waits for the age of dirty data again.
fn end_hurry(sets: &mut Sets, id: SetId) {
    if sets.get_mut(id).journal.end_hurry() {
        sets.signal(Signal::PaceChanged);
    }
}

fn set_stage(sets: &mut Sets, id: SetId, stage: Stage) -> bool {
    let journal = &mut sets.get_mut(id).journal;
    journal.set_stage(stage);
    let state = journal.state;
    set_session(sets, id, state)
}

/// The set has no session, and no write waits for one.
fn end_session(sets: &mut Sets, id: SetId) -> bool {
    end_hurry(sets, id);
    set_session(sets, id, SetState::Off(Demand::None))
}

/// Put the mark into the superblocks of a set, unless the clean mark is being written.
fn mark_session(sets: &mut Sets, id: SetId, share: Share, now: Instant) -> bool {
    let set = sets.get_mut(id);
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
    set_session(sets, id, SetState::Marked(Marked { share, stage, stale, asked, hurries: false }))
}

/// A set whose part of the log was loaded takes requests from now on: its session goes on.
fn resume_session(sets: &mut Sets, id: SetId, now: Instant) {
    let share = sets.get(id).journal.share().expect("a set that is replayed has a part in the journal");
    let begins = mark_session(sets, id, share, now);
    assert!(begins, "a set that did not serve yet writes no clean mark");
}

fn flush_for_session(sets: &mut Sets, id: SetId, call: &mut Call) {
    let issued = sets.flush_members(id, Owner::SessionFlush, call);
    sets.get_mut(id).journal.flushes = issued;
}

/// Flush the members before the session ends.
fn flush_session(sets: &mut Sets, id: SetId, call: &mut Call) -> bool {
    // Writes that continue without a lost journal may still be under way.
    let covers_all = !sets.get(id).mark.has_writers();
    flush_for_session(sets, id, call);
    set_stage(sets, id, Stage::Leaving { covers_all })
}

/// Destage dirty data whatever its age, because a session is to end or to begin.
pub(super) fn hurry_destage(sets: &mut Sets, id: SetId) -> bool {
    let journal = &mut sets.get_mut(id).journal;
    let begins = !journal.hurries();
    journal.set_hurries(true);
    if begins {
        sets.signal(Signal::PaceChanged);
    }
    begins
}

fn unmark_session(sets: &mut Sets, id: SetId, covers_all: bool, call: &mut Call) -> bool {
    let set = sets.get_mut(id);
    // It is unknown what the members have, or one is lost with unflushed data: the journal keeps it.
    if set.has_failed_flush() || set.is_lost() {
        return set_stage(sets, id, Stage::On);
    }
    // Writes past the cache wait until the session has ended and all earlier writes are flushed, so the set is
    // clean as well. Otherwise a crash would require a resync, or force if a member is missing, although the
    // journal had everything. A clean mark that is being written comes first.
    if set.mark.is_flushing() {
        return false;
    }
    let is_clean = set.mark.is_idle();
    if is_clean && !covers_all {
        return flush_session(sets, id, call);
    }
    let generation = set.metadata.as_mut().expect("sets in the journal have metadata").request();
    if is_clean {
        set.mark.unmark_with(generation);
    }
    set_stage(sets, id, Stage::Unmarking(generation))
}

/// Free the place in the table of the array that was discarded first. Its entries do not count for the new array, whose
/// entries are younger. If the discarded array comes back, its journal counts as lost.
fn forget_oldest_discarded(superblock: &mut JournalSuperblock) {
    let discarded = |place: &&mut Option<JournalArray>| place.is_some_and(|a| a.state == JournalArrayState::Discarded);
    let oldest = superblock.arrays.iter_mut().filter(discarded).min_by_key(|place| place.map(|a| a.first_sequence));
    if let Some(place) = oldest {
        *place = None;
    }
}
