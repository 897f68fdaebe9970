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

use super::before_tls;
use super::options::{NbdSession, Negotiation, OptionOutcome};
use crate::export::ExportInfo;
use crate::limits::{OPTIONS_MAX, OPTION_PAYLOAD_MAX, OPTION_SKIP_MAX};
use crate::wire::{hold, option, to_usize, Reader, FLAG_NO_ZEROES, OPTION_BYTES};
use core::fmt;

/// The server's settings for negotiations, except the exports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// May clients list the exports? A client that knows a name can use the export in any case.
    pub list: bool,
    /// The answer to a client that requests TLS.
    pub start_tls: StartTls,
}

/// The answer to a client that requests TLS. This server does not support TLS yet, so both answers refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StartTls {
    /// "The option is unknown."
    Unsupported,
    /// "The option is known, but the configuration forbids it."
    Forbidden,
}

impl Default for Policy {
    fn default() -> Self {
        Self { list: true, start_tls: StartTls::Unsupported }
    }
}

/// The reason why a connection must be closed before the transmission phase.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The client ended the negotiation. This is not an error.
    Aborted,
    /// The client sent undefined flags.
    UnknownClientFlags(u32),
    /// An option begins with these bytes instead of its magic number.
    BadOptionMagic(u64),
    /// The option is so long that skipping it would only help an attacker: option and length.
    OptionTooLong(u32, u32),
    /// The client sent more than [`OPTIONS_MAX`] options without choosing an export.
    TooManyOptions,
    /// `EXPORT_NAME` for an export that does not exist or that this client may not use. The protocol allows no other
    /// answer.
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

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HandshakeEvent {
    /// All input is used; receive more.
    NeedMore,
    /// An option was answered: send the output before the rest of the input is passed again.
    Replied,
    /// Send the output. The rest of the input is for [`Transmission`](super::Transmission).
    Ready(NbdSession),
    /// Send the output if there is any, then close the connection.
    Close(CloseReason),
}

/// The number of input bytes that a call used, and its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandshakeStep {
    /// Number of input bytes that were used.
    pub consumed: usize,
    /// Event for the server.
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
    /// The bytes received so far of the header or payload that `state` needs.
    held: Vec<u8>,
    options: u32,
    negotiation: Negotiation,
}

impl Handshake {
    /// Starts a negotiation and appends the greeting to `out`. The server sends first.
    #[must_use]
    pub fn start(policy: Policy, out: &mut Vec<u8>) -> Self {
        before_tls::greet(out);
        Self { state: State::ClientFlags, held: Vec::new(), options: 0, negotiation: Negotiation::new(policy) }
    }

    /// From this call on, every option except a goodbye is answered with "shutting down".
    pub fn shut_down(&mut self) {
        self.negotiation.shutting_down = true;
    }

    /// Number of bytes held for the client; at most [`OPTION_PAYLOAD_MAX`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Takes received bytes, and appends answers to `out`. One call handles at most one option. After the answer is
    /// sent, pass the rest of the input again. `exports` may change between calls.
    ///
    /// # Panics
    /// The call comes after [`HandshakeEvent::Ready`] or [`HandshakeEvent::Close`], or an export does not pass
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
            if !hold(&mut self.held, (wanted, OPTION_PAYLOAD_MAX), input, &mut used) {
                break HandshakeEvent::NeedMore;
            }
            if let Some(event) = self.on_complete(exports, out) {
                break event;
            }
        };
        HandshakeStep { consumed: used, event }
    }

    /// Handles `held`, which is complete for the state. `None` if only the state changed.
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
        if let Err(reason) = before_tls::check_flags(flags) {
            return Some(self.close(reason));
        }
        self.negotiation.no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
        self.state = State::Header;
        None
    }

    fn on_header(&mut self, held: &[u8]) -> Option<HandshakeEvent> {
        let (option, length) = match before_tls::header(held) {
            Ok(both) => both,
            Err(reason) => return Some(self.close(reason)),
        };
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

    /// Calls `answer` and converts its result to an event.
    fn finish(&mut self, answer: impl FnOnce(&mut Negotiation) -> OptionOutcome) -> HandshakeEvent {
        match answer(&mut self.negotiation) {
            OptionOutcome::Replied => HandshakeEvent::Replied,
            OptionOutcome::Enter(session) => {
                self.state = State::Finished;
                HandshakeEvent::Ready(session)
            }
            OptionOutcome::Close(reason) => self.close(reason),
        }
    }

    fn close(&mut self, reason: CloseReason) -> HandshakeEvent {
        self.state = State::Finished;
        HandshakeEvent::Close(reason)
    }
}

#[cfg(test)]
mod tests;
