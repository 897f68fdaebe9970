//! Asynchronous events: what a host has to be told, and the requests with which it waits.
//!
//! ```text
//!  Quiet --something changed--> Owed --a request of the host is there--> Told --the host reads the log--> Quiet
//!                                |                                                                          ^
//!                                +-----------------------the host reads the log-----------------------------+
//! ```
//!
//! A change in the state Told needs no second event: the log, which the host has still to read, shows the newest state.

use crate::limits::EVENT_REQUESTS_MAX;
use crate::status::Status;

/// A kind of news.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostNotice {
    /// The namespace has another size or access.
    Namespace,
    /// The state of a path.
    Paths,
    /// The list of subsystems.
    Discovery,
}

impl HostNotice {
    const ALL: [Self; 3] = [Self::Namespace, Self::Paths, Self::Discovery];

    /// The bit of the feature that enables the event, and of the field that announces it.
    pub const fn bit(self) -> u32 {
        match self {
            Self::Namespace => 1 << 8,
            Self::Paths => 1 << 11,
            Self::Discovery => 1 << 31,
        }
    }

    /// The log with the details.
    pub const fn log(self) -> u8 {
        match self {
            Self::Namespace => crate::log_pages::CHANGED_NAMESPACES,
            Self::Paths => crate::log_pages::PATHS,
            Self::Discovery => crate::log_pages::DISCOVERY,
        }
    }

    /// The event in the result of a request: type "notice", the kind, and the log.
    const fn event(self) -> u32 {
        let kind = match self {
            Self::Namespace => 0,
            Self::Paths => 3,
            Self::Discovery => 0xf0,
        };
        2 | kind << 8 | (self.log() as u32) << 16
    }

    const fn index(self) -> usize {
        match self {
            Self::Namespace => 0,
            Self::Paths => 1,
            Self::Discovery => 2,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Debt {
    #[default]
    Quiet,
    Owed,
    Told,
}

/// The events of one association.
#[derive(Clone, Debug, Default)]
pub struct OwedEvents {
    /// Command ids of the requests that wait.
    requests: [u16; EVENT_REQUESTS_MAX],
    waiting: usize,
    /// Bits of the events that the host wants.
    pub enabled: u32,
    debts: [Debt; HostNotice::ALL.len()],
}

impl OwedEvents {
    /// Keep a request until there is news.
    pub fn hold(&mut self, command: u16) -> Result<(), Status> {
        let place = self.requests.get_mut(self.waiting).ok_or(Status::EVENT_LIMIT)?;
        *place = command;
        self.waiting += 1;
        Ok(())
    }

    /// Does a request with this command id wait?
    pub fn has(&self, command: u16) -> bool {
        self.requests[..self.waiting].contains(&command)
    }

    /// Something changed.
    pub fn note(&mut self, notice: HostNotice) {
        let debt = &mut self.debts[notice.index()];
        if *debt == Debt::Quiet {
            *debt = Debt::Owed;
        }
    }

    /// Is there something that the host has not read?
    pub fn is_unread(&self, notice: HostNotice) -> bool {
        self.debts[notice.index()] != Debt::Quiet
    }

    /// The host has read the log.
    pub fn read(&mut self, notice: HostNotice) {
        self.debts[notice.index()] = Debt::Quiet;
    }

    fn due(&self) -> Option<HostNotice> {
        let is_due = |notice: &HostNotice| {
            self.enabled & notice.bit() != 0 && self.debts[notice.index()] == Debt::Owed && self.waiting > 0
        };
        HostNotice::ALL.into_iter().find(is_due)
    }

    /// Can a request be answered now?
    pub fn is_due(&self) -> bool {
        self.due().is_some()
    }

    /// The next answer: command id and result.
    pub fn next(&mut self) -> Option<(u16, u32)> {
        let notice = self.due()?;
        self.debts[notice.index()] = Debt::Told;
        let command = self.requests[0];
        self.requests.copy_within(1..self.waiting, 0);
        self.waiting -= 1;
        Some((command, notice.event()))
    }
}
