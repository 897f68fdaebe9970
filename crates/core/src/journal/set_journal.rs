//! The journal session of one set: its state, and the marks on its members.

use openraid_format::{JournalReached, Uuid};
use openraid_units::Instant;

/// The progress of the session of a set, for readers. See `session.rs`.
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
            SetState::Marked(marked) => marked.asked,
        }
    }

    /// A write requests the session; true if none did before.
    pub(super) fn ask(&mut self) -> bool {
        let is_new = !self.is_asked();
        match &mut self.state {
            SetState::Off(demand) if is_new => *demand = Demand::Asked,
            SetState::Marked(marked) => marked.asked = true,
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
            SetState::Marked(marked) => Some(marked.share),
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

    /// Does it have a session, or superblocks that name a journal?
    pub(crate) fn is_in_use(&self) -> bool {
        self.has_session() || self.marked().is_some()
    }

    /// The mark for the superblocks: the journal's UUID, how far it has come, and whether that journal is stale.
    pub(crate) fn mark(&self) -> (Option<(Uuid, JournalReached)>, bool) {
        let marked = self.marked().filter(|marked| !matches!(marked.stage, Stage::Unmarking(_)));
        let reached = self.reached.now();
        (marked.map(|marked| (marked.share.uuid, reached)), marked.is_some_and(|marked| marked.stale.is_some()))
    }

    /// The clean mark will be written in this generation: the session ends with it.
    pub(crate) fn unmark_with(&mut self, generation: u64) {
        if self.is_on() {
            self.set_stage(Stage::Unmarking(generation));
        }
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
        self.marked().and_then(|marked| marked.stale)
    }

    /// This generation of the superblocks records that the journal is stale.
    pub(super) fn set_stale(&mut self, generation: u64) {
        if let SetState::Marked(marked) = &mut self.state {
            marked.stale = Some(generation);
        }
    }

    /// Does destage hurry, because a session is to begin or to end?
    #[inline]
    pub(crate) fn hurries(&self) -> bool {
        match self.state {
            SetState::Off(demand) => demand == Demand::Hurries,
            SetState::Marked(marked) => marked.hurries,
            SetState::Settling | SetState::Entering(..) => false,
        }
    }

    /// Begin or end to destage without waiting for the age of dirty data.
    pub(super) fn set_hurries(&mut self, hurries: bool) {
        match &mut self.state {
            SetState::Off(Demand::None) | SetState::Settling | SetState::Entering(..) => {}
            SetState::Off(demand) => *demand = if hurries { Demand::Hurries } else { Demand::Asked },
            SetState::Marked(marked) => marked.hurries = hurries,
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

    pub(super) fn marked(&self) -> Option<&Marked> {
        match &self.state {
            SetState::Marked(marked) => Some(marked),
            _ => None,
        }
    }

    pub(super) fn set_stage(&mut self, stage: Stage) {
        let SetState::Marked(marked) = &mut self.state else { unreachable!("the set has the mark: {:?}", self.state) };
        marked.stage = stage;
    }

    /// Does the session permit the clean mark?
    pub(crate) fn may_be_clean(&self) -> bool {
        matches!(self.session(), Session::Off | Session::On)
    }
}

/// What the superblocks of a set say about the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reached {
    /// For superblocks that are made now.
    pub(super) now: JournalReached,
    /// The entry in the superblocks that were made last.
    pub(super) recorded: u64,
    /// When these were made.
    pub(super) at: Instant,
}

impl Reached {
    pub(super) const NONE: Self = Self::from(JournalReached { entry: 0, generation: 0 });

    /// The superblocks say this, or will say it.
    pub(super) const fn from(reached: JournalReached) -> Self {
        Self { now: reached, recorded: reached.entry, at: Instant::ZERO }
    }

    /// For superblocks that are made now.
    pub(super) const fn now(&self) -> JournalReached {
        self.now
    }

    pub(super) fn record(&mut self, now: Instant) {
        (self.recorded, self.at) = (self.now.entry, now);
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
            let journal = SetJournal { state, ..SetJournal::NONE };
            assert_eq!((journal.session(), journal.share().is_some()), (session, has_part), "{state:?}");
            assert_eq!((journal.may_be_clean(), journal.is_on()), (may_be_clean, session == Session::On), "{state:?}");
        }
    }

    #[test]
    fn a_session_is_requested_once_and_hurries_only_if_it_was_requested() {
        let mut journal = SetJournal::NONE;
        journal.set_hurries(true);
        assert!(!journal.hurries(), "no write asks for it");
        assert!(journal.ask() && !journal.ask());
        journal.set_hurries(true);
        assert!(journal.is_asked() && journal.hurries());
        journal.set_hurries(false);
        assert!(journal.is_asked() && !journal.hurries(), "the write still waits");
        // A write did not request this session: it began with a replay.
        journal.begin_replay(SHARE, true, JournalReached { entry: 7, generation: 2 });
        assert_eq!((journal.is_asked(), journal.is_replaying(), journal.stale()), (false, true, Some(0)));
        assert!(journal.ask() && journal.is_asked());
        journal.refuse("why");
        journal.forget();
        assert_eq!(journal.replay_error(), Some("why"), "the reason stays when the journal goes");
    }
}
