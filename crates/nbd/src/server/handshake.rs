//! The framing of the negotiation: bytes in, whole options out, each answered before the next is looked at.
//!
//! ```text
//!  ClientFlags --4 bytes--> Header --16 bytes--> Payload --all--> (answer) --> Header
//!      |                      |  \--too long--> Skip --all--> (too big) ----> Header
//!      |                      |                     (GO, EXPORT_NAME) ------> Finished, session handed over
//!      \--unknown flags-------\--bad magic, abort, limits-------------------> Finished, connection closed
//! ```
//!
//! It must never keep more than one option ([`OPTION_PAYLOAD_MAX`]) and never produce the answers of two options in
//! one call: the output of a call is bounded by the longest answer, which is the list of exports.

use super::options::{Negotiation, Outcome, Session};
use crate::export::ExportInfo;
use crate::limits::{OPTIONS_MAX, OPTION_PAYLOAD_MAX, OPTION_SKIP_MAX};
use crate::wire::{
    option, to_usize, Reader, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, MAGIC_OPTION, MAGIC_SERVER, OPTION_BYTES,
};
use core::fmt;

/// The server's requirements, apart from the exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// May clients list the exports? A client that knows the name can use an export anyway.
    pub list: bool,
    /// How a client that asks for TLS is answered.
    pub start_tls: StartTls,
}

/// The answer to a client that wants TLS. This server speaks none yet, so both refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartTls {
    /// "I do not know the option."
    Unsupported,
    /// "I know the option and the configuration forbids it."
    Forbidden,
}

impl Default for Policy {
    fn default() -> Self {
        Self { list: true, start_tls: StartTls::Unsupported }
    }
}

/// Why a connection has to be closed before it was of use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The client said goodbye. Nothing is wrong.
    Aborted,
    /// Undefined client flags.
    UnknownClientFlags(u32),
    /// The bytes where an option should start.
    BadOptionMagic(u64),
    /// An option so long that skipping it would only serve an attacker: option and length.
    OptionTooLong(u32, u32),
    /// More than [`OPTIONS_MAX`] options and still no export chosen.
    TooManyOptions,
    /// `EXPORT_NAME` for an export that is not there (or is none of the client's business), which cannot be
    /// answered in any other way.
    ExportNameRefused,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted => f.write_str("the client ended the negotiation"),
            Self::UnknownClientFlags(flags) => {
                write!(f, "the client set flags {flags:#x}, of which this server knows only 0x3; is it an NBD client?")
            }
            Self::BadOptionMagic(magic) => {
                write!(f, "the client sent {magic:#018x} where an NBD option starts; is it an NBD client?")
            }
            Self::OptionTooLong(option, length) => {
                write!(f, "the client announced {length} bytes for option {option}; {OPTION_SKIP_MAX} is the limit")
            }
            Self::TooManyOptions => write!(f, "the client sent {OPTIONS_MAX} options without choosing an export"),
            Self::ExportNameRefused => f.write_str("the client asked for an export that is not available"),
        }
    }
}

impl std::error::Error for CloseReason {}

/// The outcome of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HandshakeEvent {
    /// All input is used; more is needed.
    NeedMore,
    /// An option was answered: send the output before handing in the rest of the input.
    Replied,
    /// Send the output; what follows in the input belongs to [`Transmission`](super::Transmission).
    Ready(Session),
    /// Send the output if there is any, then close the connection.
    Close(CloseReason),
}

/// How much input a call used, and its outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandshakeStep {
    /// Bytes of the input that are used up.
    pub consumed: usize,
    /// What happened.
    pub event: HandshakeEvent,
}

#[derive(Clone, Copy, Debug)]
enum State {
    ClientFlags,
    Header,
    Payload { option: u32, length: usize },
    Skip { option: u32, left: usize },
    Finished,
}

/// The server's side of one negotiation.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    /// The bytes so far of the header or payload that `state` waits for.
    held: Vec<u8>,
    options: u32,
    negotiation: Negotiation,
}

impl Handshake {
    /// Starts a negotiation and appends the greeting, which the server sends first, to `out`.
    #[must_use]
    pub fn start(policy: Policy, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&MAGIC_SERVER.to_be_bytes());
        out.extend_from_slice(&MAGIC_OPTION.to_be_bytes());
        out.extend_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
        Self { state: State::ClientFlags, held: Vec::new(), options: 0, negotiation: Negotiation::new(policy) }
    }

    /// From now on every option but a goodbye is answered with "shutting down".
    pub fn shut_down(&mut self) {
        self.negotiation.shutting_down = true;
    }

    /// Bytes of memory held for the client; at most [`OPTION_PAYLOAD_MAX`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Takes received bytes, appends answers to `out`. At most one option is handled in a call; hand in the rest
    /// of the input again after sending the answer. `exports` may change from call to call.
    ///
    /// # Panics
    /// When called after [`HandshakeEvent::Ready`] or [`HandshakeEvent::Close`], and on exports that do not pass
    /// [`ExportInfo::check`].
    pub fn receive(&mut self, input: &[u8], exports: &[ExportInfo], out: &mut Vec<u8>) -> HandshakeStep {
        let mut used = 0;
        let event = loop {
            let wanted = match self.state {
                State::ClientFlags => 4,
                State::Header => OPTION_BYTES,
                State::Payload { length, .. } => length,
                State::Skip { option, left } => {
                    let skipped = left.min(input.len() - used);
                    used += skipped;
                    if skipped < left {
                        self.state = State::Skip { option, left: left - skipped };
                        break HandshakeEvent::NeedMore;
                    }
                    self.state = State::Header;
                    break self.finish(|negotiation| negotiation.too_big(option, out));
                }
                State::Finished => panic!("a finished negotiation was given more bytes"),
            };
            if !self.hold(wanted, input, &mut used) {
                break HandshakeEvent::NeedMore;
            }
            if let Some(event) = self.on_complete(exports, out) {
                break event;
            }
        };
        HandshakeStep { consumed: used, event }
    }

    /// Moves input to `held` until it has `wanted` bytes. Memory grows with received bytes, never with an announced
    /// length.
    fn hold(&mut self, wanted: usize, input: &[u8], used: &mut usize) -> bool {
        let take = (wanted - self.held.len()).min(input.len() - *used);
        let needed = self.held.len() + take;
        if needed > self.held.capacity() {
            self.held.reserve_exact(needed.max(2 * self.held.len()).min(OPTION_PAYLOAD_MAX) - self.held.len());
        }
        self.held.extend_from_slice(&input[*used..*used + take]);
        *used += take;
        self.held.len() == wanted
    }

    /// `held` is complete for the state: decide. `None` when only the state changed.
    fn on_complete(&mut self, exports: &[ExportInfo], out: &mut Vec<u8>) -> Option<HandshakeEvent> {
        let held = core::mem::take(&mut self.held);
        let event = match self.state {
            State::ClientFlags => self.on_client_flags(&held),
            State::Header => self.on_header(&held),
            State::Payload { option, .. } => {
                self.state = State::Header;
                Some(self.finish(|negotiation| negotiation.answer(option, &held, exports, out)))
            }
            State::Skip { .. } | State::Finished => unreachable!("nothing is held in this state"),
        };
        self.held = held;
        self.held.clear();
        event
    }

    fn on_client_flags(&mut self, held: &[u8]) -> Option<HandshakeEvent> {
        let flags = Reader::new(held).u32().expect("four bytes are held");
        if flags & !u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES) != 0 {
            return Some(self.close(CloseReason::UnknownClientFlags(flags)));
        }
        self.negotiation.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
        self.state = State::Header;
        None
    }

    fn on_header(&mut self, held: &[u8]) -> Option<HandshakeEvent> {
        let mut reader = Reader::new(held);
        let magic = reader.u64().expect("an option header is held");
        let option = reader.u32().expect("an option header is held");
        let length = reader.u32().expect("an option header is held");
        if magic != MAGIC_OPTION {
            return Some(self.close(CloseReason::BadOptionMagic(magic)));
        }
        if self.options == OPTIONS_MAX {
            return Some(self.close(CloseReason::TooManyOptions));
        }
        self.options += 1;
        if to_usize(length) <= OPTION_PAYLOAD_MAX {
            self.state = State::Payload { option, length: to_usize(length) };
            return None;
        }
        if length > OPTION_SKIP_MAX {
            return Some(self.close(CloseReason::OptionTooLong(option, length)));
        }
        if option == option::EXPORT_NAME {
            return Some(self.close(CloseReason::ExportNameRefused));
        }
        self.state = State::Skip { option, left: to_usize(length) };
        None
    }

    /// Runs `answer` and turns its outcome into an event.
    fn finish(&mut self, answer: impl FnOnce(&mut Negotiation) -> Outcome) -> HandshakeEvent {
        match answer(&mut self.negotiation) {
            Outcome::Replied => HandshakeEvent::Replied,
            Outcome::Enter(session) => {
                self.state = State::Finished;
                HandshakeEvent::Ready(session)
            }
            Outcome::Close(reason) => self.close(reason),
        }
    }

    fn close(&mut self, reason: CloseReason) -> HandshakeEvent {
        self.state = State::Finished;
        HandshakeEvent::Close(reason)
    }
}

#[cfg(test)]
mod tests;
