//! The stream of events that the engine receives, offered to a recorder.
//!
//! All decisions of the engine depend on its limits, on these events in this order, and on the times of its `advance`
//! calls. A new engine with the same limits and the same stream gives the same actions, byte for byte. So a run of the
//! service can be repeated. The recorder chooses the form of the stream in bytes.

use openraid_core::admin::AdminCommand;
use openraid_core::events::{BlockRequest, Completion};
use openraid_core::Actions;
use openraid_units::{Instant, Nanos, Token};

/// One call of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineCall<'a> {
    /// The time since 1970 at the zero of time.
    WallClock(Nanos),
    /// A host request was handed in, with or without room for it.
    Submit(&'a BlockRequest),
    /// The end of an action was handed in.
    Complete(&'a Completion),
    /// A command of the administrator was handed in.
    Admin(Token, &'a AdminCommand),
}

/// Stores the stream.
pub trait Recorder: Send {
    /// The engine received this event.
    fn event(&mut self, event: EngineCall<'_>);
    /// The engine decided at this time, with these actions.
    fn advanced(&mut self, now: Instant, actions: &Actions);
    /// The service stops: this is the end of the stream.
    fn end(&mut self) {}
}
