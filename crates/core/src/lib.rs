//! The controller engine: no I/O, no clock, no payload bytes, no allocation after start.
//!
//! The core is a function of (state, events, now). A driver (the service, the timing simulation, the fault simulation)
//! hands in requests and completions, calls [`Controller::advance`] with the time, and carries out the resulting
//! actions. User bytes are in a frame pool that the driver owns; the core only names ranges of the pool.

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

pub mod actions;
mod admin_answer;
pub mod array;
mod background;
pub mod cache;
mod call;
pub mod check_results;
mod controller;
pub mod events;
mod frames;
pub mod geometry;
mod io;
pub mod journal;
pub mod limits;
pub mod notice_text;
pub mod occupancy;
mod per_set;
pub mod planted;
mod ppl;
pub mod reason;
pub mod request_steps;
mod requests;
mod set_status;
pub mod settings;
mod slab;
pub mod slot_set;
#[cfg(test)]
mod test_random;
mod trace;

pub use actions::Actions;
pub use array::adaptive;
pub use controller::content_places::ContentPlaces;
pub use controller::Controller;
pub use events::Wake;
pub use io::state::{lock, plan};

/// The side of the administrator: commands, their answers, settings and status.
pub mod admin {
    pub use crate::admin_answer::{AdminError, AdminOutcome, AdminReply, OlderLog};
    pub use crate::array::new_array::NewMember;
    pub use crate::cache::figures::CacheStatus;
    pub use crate::cache::set_figures::CacheFigures;
    pub use crate::cache::CacheCounters;
    pub use crate::controller::array_status::ArrayStatus;
    pub use crate::controller::AdminCommand;
    pub use crate::journal::found_journal::{FoundEntry, FoundJournal, KeptEntry};
    pub use crate::journal::join::JournalJoin;
    pub use crate::journal::open_and_detach::{JournalArrayStatus, JournalStatus};
    pub use crate::journal::session::Unprotected;
    pub use crate::journal::set_journal::Session;
    pub use crate::journal::{JournalCounters, JournalLoss, JournalState};
    pub use crate::set_status::{
        BitmapStatus, Health, MemberState, MemberStatus, ReshapeStage, ReshapeStatus, TaskKind, TaskStatus,
    };
    pub use crate::settings::{MirrorRule, PartialWritePolicy, Policy, Profile, ReadAhead, WriteCache};
}
