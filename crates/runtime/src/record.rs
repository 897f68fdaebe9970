//! The stream of events that the engine is told, offered to a recorder.
//!
//! All that the engine decides depends on its limits, on these events in this order, and on the times of its
//! `advance` calls. Told the same stream, a fresh engine with the same limits gives the same actions, byte for
//! byte: that is how a run of the service is looked at again. How the stream is laid down in bytes is not decided
//! here.

use openraid_core::admin::AdminCommand;
use openraid_core::events::{BlockRequest, Completion};
use openraid_core::Actions;
use openraid_units::{Instant, Nanos, Token};

/// One call of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// The time since 1970 at the zero of time.
    WallClock(Nanos),
    /// A host request was handed in, whether there was room for it or not.
    Submit(&'a BlockRequest),
    /// The end of an action was handed in.
    Complete(&'a Completion),
    /// A command of the administrator was handed in.
    Admin(Token, &'a AdminCommand),
}

/// Keeps the stream.
pub trait Recorder: Send {
    /// The engine was told this.
    fn event(&mut self, event: Event<'_>);
    /// The engine was asked to decide at this time, and these are the actions that came of it.
    fn advanced(&mut self, now: Instant, actions: &Actions);
    /// The service stops: nothing more comes.
    fn end(&mut self) {}
}
