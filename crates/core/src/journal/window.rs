//! The window: frames through which the log is read and copied. Three do that, one at a time.
//!
//! ```text
//!             take                     give back
//!   nobody --------> keep, join or replay --------> nobody
//! ```
//!
//! A command on it that a drive does not answer is given up, and the drive may still carry it out: read what is in the
//! window by then, or write into it. As long as there is such a command nobody gets the window, and who has it goes no
//! further; it ends when the drive answers after all, or is taken away, or with the server.
//!
//! It must never have two users, nor one beside a silent drive: where it is is told to its user only.

use openraid_units::{DriveLba, PoolOffset, Sectors};

use super::commit::{JournalRead, JournalWork};
use super::Journal;
use crate::actions::{Actions, Data, DriveOp, IoClass};
use crate::controller::Controller;
use crate::io::command::{Command, Hold, Owner};
use crate::limits::JOURNAL_BUFFERS;

/// Why the log is neither read nor copied.
pub(super) const SILENT: &str =
    "a device of the journal does not answer and may still use the memory through which the \
    log is read: take that device away, or start the server anew";

/// Who may have the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WindowUser {
    /// Copying entries out of the ring.
    Spill,
    /// Copying the log to a device that joins.
    Join,
    /// Reading payload for a set that is started.
    Replay,
}

/// Who has the window, and what it holds.
#[derive(Default, Debug)]
pub(crate) struct Window {
    user: Option<WindowUser>,
    /// Commands that point at it and were given up.
    given_up: u32,
    /// What replay has read: so many sectors of the devices, from this one on.
    pub holds: Option<(DriveLba, Sectors)>,
}

impl Window {
    /// Take it, or go on with it; false where another one has it, or a silent drive may use it.
    pub(super) fn take(&mut self, user: WindowUser) -> bool {
        if self.given_up > 0 || self.user.is_some_and(|own| own != user) {
            return false;
        }
        self.user = Some(user);
        if user != WindowUser::Replay {
            self.holds = None;
        }
        true
    }

    /// Give it back, if it is this one's: nothing of his is on its way any more but what was given up.
    pub(super) fn give_back(&mut self, user: WindowUser) {
        if self.user == Some(user) {
            self.user = None;
        }
    }

    /// Does somebody have it?
    pub(super) fn is_used(&self) -> bool {
        self.user.is_some()
    }

    /// May a drive that does not answer still use it?
    pub(super) fn is_silent(&self) -> bool {
        self.given_up > 0
    }

    /// A command that points at it was given up.
    pub(crate) fn give_up(&mut self) {
        self.given_up += 1;
        self.holds = None;
    }

    /// A command that was given up has come back.
    pub(crate) fn come_back(&mut self) {
        self.given_up -= 1;
    }

    /// For the next journal: what silent drives may use is theirs as long as they are silent.
    pub(super) fn for_next_journal(&self) -> Self {
        assert!(self.user.is_none(), "who has the window ends before the journal is forgotten");
        Self { given_up: self.given_up, ..Self::default() }
    }
}

impl Journal {
    /// Where the window is, for who has it: behind the last buffer of the pool.
    pub(super) fn window_of(&self, user: WindowUser) -> PoolOffset {
        let own = self.window.user == Some(user) && self.window.given_up == 0;
        assert!(own, "{user:?} has the window, and has it alone: {:?}", self.window);
        self.buffer(JOURNAL_BUFFERS)
    }
}

impl Controller {
    /// Read a place of a device into the window.
    pub(super) fn read_into_window(
        &mut self,
        user: WindowUser,
        number: usize,
        (lba, len): (DriveLba, Sectors),
        actions: &mut Actions,
    ) {
        let (read, class) = match user {
            WindowUser::Spill => (JournalRead::Spill, IoClass::Metadata),
            WindowUser::Join => (JournalRead::Join, IoClass::Rebuild),
            WindowUser::Replay => (JournalRead::Replay, IoClass::Metadata),
        };
        let member = u32::try_from(number).expect("two at the most");
        let command = Command {
            op: DriveOp::Read,
            lba,
            len,
            data: Data::Frames(self.journal.window_of(user)),
            class,
            hold: Some(Hold::Window),
            ..Self::journal_command(Owner::Journal(JournalWork::Read(read)), member, self.journal.devices[number].drive)
        };
        self.channels.push(self.now, &command, actions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_window_and_nobody_beside_a_silent_drive() {
        let mut window = Window::default();
        assert!(window.take(WindowUser::Replay) && window.take(WindowUser::Replay));
        assert!(!window.take(WindowUser::Spill) && !window.take(WindowUser::Join));
        window.give_back(WindowUser::Join);
        assert!(!window.take(WindowUser::Spill), "it was somebody else's");
        window.give_up();
        assert!(!window.take(WindowUser::Replay), "its own command was given up");
        window.give_back(WindowUser::Replay);
        let mut next = window.for_next_journal();
        assert!(!next.take(WindowUser::Spill), "the drive is as silent as before");
        next.come_back();
        assert!(next.take(WindowUser::Spill));
    }

    #[test]
    fn what_replay_has_read_is_there_until_another_one_has_the_window_or_a_drive_is_silent() {
        let place = Some((DriveLba(8), Sectors(8)));
        let mut window = Window { holds: place, ..Window::default() };
        assert!(window.take(WindowUser::Replay));
        window.give_back(WindowUser::Replay);
        assert!(window.take(WindowUser::Replay) && window.holds == place);
        window.give_up();
        assert_eq!(window.holds, None);
        let mut window = Window { holds: place, ..Window::default() };
        assert!(window.take(WindowUser::Spill));
        assert_eq!(window.holds, None);
    }
}
