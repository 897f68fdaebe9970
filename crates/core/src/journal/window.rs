//! The window: frames through which the log is read and copied. It has three users, one at a time.
//!
//! ```text
//!           take                      give back
//!   free --------> spill, join or replay --------> free
//! ```
//!
//! A command that is not answered in time is given up, but the drive may still execute it: it may then read from the
//! window, or write into it. While there is such a command the window has no user, and its last user stops. The wait ends
//! when the drive answers, when it is removed, or with the server.
//!
//! The window must never have two users, nor a user while a hung drive may access it. Only its user can ask for its
//! address.

use openraid_units::{DriveLba, Sectors};

use crate::io::state::command::WindowUser;

/// Why the log is neither read nor copied.
pub(crate) const SILENT: &str =
    "a device of the journal does not answer and may still use the memory through which the \
    log is read: take that device away, or restart the server";

/// The user of the window, and its content.
#[derive(Default, Debug)]
pub(crate) struct Window {
    pub(super) user: Option<WindowUser>,
    /// Commands that point at it and were given up.
    pub(super) given_up: u32,
    /// Content that replay has read: first sector on the devices, and length.
    pub(super) holds: Option<(DriveLba, Sectors)>,
}

impl Window {
    /// Take the window, or continue with it; false if another user has it, or if a hung drive may access it.
    pub(super) fn take(&mut self, user: WindowUser) -> bool {
        if self.given_up > 0 || self.user.is_some_and(|holder| holder != user) {
            return false;
        }
        self.user = Some(user);
        if user != WindowUser::Replay {
            self.holds = None;
        }
        true
    }

    /// Give the window back, if this user has it. Only commands that were given up may still be under way.
    pub(super) fn give_back(&mut self, user: WindowUser) {
        if self.user == Some(user) {
            self.user = None;
        }
    }

    /// Is the window in use?
    pub(super) fn is_used(&self) -> bool {
        self.user.is_some()
    }

    /// May a hung drive still access it?
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

    /// For the next journal: a hung drive may access the window until it answers.
    pub(super) fn for_next_journal(&self) -> Self {
        assert!(self.user.is_none(), "the user of the window ends before the journal is forgotten");
        Self { given_up: self.given_up, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_has_the_window_and_none_while_a_drive_hangs() {
        let mut window = Window::default();
        assert!(window.take(WindowUser::Replay) && window.take(WindowUser::Replay));
        assert!(!window.take(WindowUser::Spill) && !window.take(WindowUser::Join));
        window.give_back(WindowUser::Join);
        assert!(!window.take(WindowUser::Spill), "another user has it");
        window.give_up();
        assert!(!window.take(WindowUser::Replay), "its own command was given up");
        window.give_back(WindowUser::Replay);
        let mut next = window.for_next_journal();
        assert!(!next.take(WindowUser::Spill), "the drive still hangs");
        next.come_back();
        assert!(next.take(WindowUser::Spill));
    }

    #[test]
    fn the_content_that_replay_has_read_stays_until_another_user_takes_the_window_or_a_drive_hangs() {
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
