//! The stream of a controller's inputs with their times. All its decisions depend on them.
//!
//! With the same stream, a new controller with the same limits decides the same, byte for byte. A record serves to
//! inspect a run of the service, and to test this promise.

mod codec;
pub(crate) mod schema;

use openraid_core::actions::Actions;
use openraid_core::admin::AdminCommand;
use openraid_core::events::{BlockRequest, Completion};
use openraid_core::limits::Limits;
use openraid_core::Controller;
use openraid_units::{Instant, Nanos, Token};

use crate::digest::Digest;
pub use codec::DecodeError;
use codec::{Codec, Input};

/// The first bytes of a record.
const MAGIC: [u8; 8] = *b"ORrecrd2";

/// One call of the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordEntry {
    /// [`Controller::set_wall_clock`].
    WallClock(Nanos),
    /// [`Controller::submit`], accepted or not.
    Submit(BlockRequest),
    /// [`Controller::complete`].
    Complete(Completion),
    /// [`Controller::admin`].
    Admin(Token, Box<AdminCommand>),
    /// [`Controller::advance`]; the actions were carried out and cleared.
    Advance(Instant),
}

/// All calls of a controller since its creation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The limits of the controller.
    pub limits: Limits,
    /// The calls in order.
    pub entries: Vec<RecordEntry>,
}

impl Record {
    /// The record of a new controller.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, entries: Vec::new() }
    }

    /// Add a call.
    pub fn push(&mut self, entry: RecordEntry) {
        self.entries.push(entry);
    }

    /// Replay all calls in a new controller, and hash its decisions.
    ///
    /// # Panics
    /// Limits that do not work, and any panic of the controller.
    #[must_use]
    pub fn replay(&self) -> Digest {
        let mut controller = Controller::new(self.limits.clone()).unwrap_or_else(|error| panic!("{error}"));
        let mut actions = Actions::new(&self.limits);
        let mut digest = Digest::default();
        for entry in &self.entries {
            match entry {
                RecordEntry::WallClock(at_zero) => controller.set_wall_clock(*at_zero),
                // A refusal is a part of the record: the same request is refused again.
                RecordEntry::Submit(request) => drop(controller.submit(*request)),
                RecordEntry::Complete(completion) => controller.complete(*completion),
                RecordEntry::Admin(token, command) => controller.admin(*token, (**command).clone()),
                RecordEntry::Advance(now) => {
                    controller.advance(*now, &mut actions);
                    digest.advance(*now, &actions);
                    actions.clear();
                }
            }
        }
        digest
    }

    /// The record as bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        self.limits.put(&mut bytes);
        self.entries.put(&mut bytes);
        bytes
    }

    /// The record from bytes.
    ///
    /// # Errors
    /// The fault, and its place.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(bytes);
        if <[u8; 8]>::take(&mut input)? != MAGIC {
            return Err(DecodeError { at: 0, what: "this is not a record" });
        }
        let limits = Limits::take(&mut input)?;
        let entries = Vec::take(&mut input)?;
        if !input.is_empty() {
            return input.error("something follows the record");
        }
        Ok(Self { limits, entries })
    }
}
