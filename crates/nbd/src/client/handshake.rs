//! The client's negotiation: a fixed sequence of options, each sent after the answer to the one before.
//!
//! ```text
//!  Greeting -> [STRUCTURED_REPLY] -> [SET_META_CONTEXT] -> GO ----------------> Ready
//!     \  \                                                   \--not known--> EXPORT_NAME -> Ready
//!      \  \--goal is a list--> LIST -> Listed
//!       \--server knows no options--> EXPORT_NAME -> Ready
//! ```
//!
//! The client works without refused extras (structured replies, contexts); a refused export ends the negotiation with
//! the server's own words. It must never keep more than one reply ([`OPTION_REPLY_MAX`]) nor follow a server that
//! answers without end ([`OPTION_REPLIES_MAX`], [`LIST_BYTES_MAX`]).

use crate::export::{BlockSizes, BlockSizesError};
use crate::flags::ExportFlags;
use crate::limits::{CLIENT_CONTEXTS_MAX, LIST_BYTES_MAX, OPTION_REPLIES_MAX, OPTION_REPLY_MAX, STRING_MAX};
use crate::wire::{
    hold, info, length_u32, option, rep, to_usize, Reader, EXPORT_NAME_PADDING, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES,
    GREETING_BYTES, MAGIC_OLDSTYLE, MAGIC_OPTION, MAGIC_OPTION_REPLY, MAGIC_SERVER, OPTION_REPLY_BYTES,
};
use core::fmt;
use openraid_units::Bytes;

/// The purpose of the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Use this export. The empty name means the server's default export.
    Use(String),
    /// Only list the exports.
    List,
}

/// The client's requirements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientOptions {
    /// The purpose of the connection.
    pub goal: Goal,
    /// Request structured replies. They cost little and allow early errors, holes and block status.
    pub structured: bool,
    /// Names of the metadata contexts to request; requires `structured`.
    pub contexts: Vec<String>,
}

/// A metadata context that the server accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChosenContext {
    /// Number in block status chunks of this connection.
    pub id: u32,
    /// Name of the context.
    pub name: String,
}

/// The result of the negotiation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientSession {
    /// Size of the export.
    pub size: Bytes,
    /// Abilities of the export.
    pub flags: ExportFlags,
    /// Sizes to respect, if the server sent them.
    pub blocks: Option<BlockSizes>,
    /// Does the server answer reads with structured replies?
    pub structured: bool,
    /// Contexts of block status.
    pub contexts: Vec<ChosenContext>,
}

/// An entry of a server's list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedExport {
    /// Name of the export.
    pub name: String,
    /// A line for readers; often empty.
    pub description: String,
}

/// The reason why a server refused an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionRefusal {
    /// The server does not know the option.
    Unsupported,
    /// The server's configuration forbids the option.
    Policy,
    /// The server considers the option invalid.
    Invalid,
    /// The server's platform does not support the option.
    Platform,
    /// The server requires TLS first.
    TlsRequired,
    /// The export does not exist.
    UnknownExport,
    /// The server is stopping.
    ShuttingDown,
    /// The server requires the client to request block sizes; this client always does.
    BlockSizeRequired,
    /// The option or its answer is too long.
    TooBig,
    /// An undefined error; the reply type.
    Other(u32),
}

impl OptionRefusal {
    fn from_type(kind: u32) -> Self {
        match kind {
            rep::ERR_UNSUP => Self::Unsupported,
            rep::ERR_POLICY => Self::Policy,
            rep::ERR_INVALID => Self::Invalid,
            rep::ERR_PLATFORM => Self::Platform,
            rep::ERR_TLS_REQD => Self::TlsRequired,
            rep::ERR_UNKNOWN => Self::UnknownExport,
            rep::ERR_SHUTDOWN => Self::ShuttingDown,
            rep::ERR_BLOCK_SIZE_REQD => Self::BlockSizeRequired,
            rep::ERR_TOO_BIG => Self::TooBig,
            other => Self::Other(other),
        }
    }
}

/// The reason why a negotiation failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientError {
    /// The options of this client break the protocol.
    BadOptions(&'static str),
    /// The first bytes do not come from an NBD server.
    NotNbd,
    /// The server is of the old style, without export names and options.
    OldStyle,
    /// The server answers only `EXPORT_NAME`, so it cannot list exports.
    NoOptions,
    /// The server refused; the text is its message, if it sent one.
    Refused(OptionRefusal, String),
    /// The server broke the protocol.
    Protocol(&'static str),
    /// The server's block sizes are impossible.
    BlockSizes(BlockSizesError),
    /// An answer exceeds a limit of this client.
    TooLong(&'static str),
}

impl fmt::Display for OptionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "the NBD server does not support the request",
            Self::Policy => "the configuration of the NBD server forbids it",
            Self::Invalid => "the NBD server calls the request invalid",
            Self::Platform => "the NBD server cannot do it on its platform",
            Self::TlsRequired => "the NBD server wants TLS, which is not supported here; allow plain connections there",
            Self::UnknownExport => "the NBD server has no export of this name; list its exports to see them",
            Self::ShuttingDown => "the NBD server is shutting down; try again later",
            Self::BlockSizeRequired => "the NBD server insists on block sizes in an unusual way",
            Self::TooBig => "the NBD server finds the request too long",
            Self::Other(kind) => return write!(f, "the NBD server refused with the unknown error {kind:#x}"),
        })
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadOptions(what) => write!(f, "cannot request this from an NBD server: {what}"),
            Self::NotNbd => f.write_str("this is not an NBD server; check address and port"),
            Self::OldStyle => f.write_str("this NBD server speaks only the oldstyle protocol; use a newer server"),
            Self::NoOptions => f.write_str("this NBD server cannot list its exports; name the export"),
            Self::Refused(refusal, words) if words.is_empty() => write!(f, "{refusal}"),
            Self::Refused(refusal, words) => write!(f, "{refusal} (it says: {words})"),
            Self::Protocol(what) => write!(f, "the NBD server broke the protocol: {what}"),
            Self::BlockSizes(error) => write!(f, "the NBD server announced impossible block sizes: {error}"),
            Self::TooLong(what) => write!(f, "the NBD server sent too much: {what}"),
        }
    }
}

impl std::error::Error for ClientError {}

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientEvent {
    /// All input is used. Send the output if there is any, then receive more.
    NeedMore,
    /// The export can be used. The rest of the input is for [`ClientTransmission`](super::ClientTransmission).
    Ready(ClientSession),
    /// The list of exports. Send the output (a goodbye), then close.
    Listed(Vec<ListedExport>),
    /// Send the output if there is any, then close.
    Failed(ClientError),
}

/// The number of input bytes that a call used, and its result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientStep {
    /// Number of input bytes that were used.
    pub consumed: usize,
    /// Event for the client.
    pub event: ClientEvent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Greeting,
    ReplyHeader { option: u32 },
    ReplyPayload { option: u32, kind: u32, length: usize },
    ExportReply { length: usize },
    Finished,
}

/// The client's side of one negotiation.
#[derive(Debug)]
pub struct ClientHandshake {
    state: State,
    goal: Goal,
    want_structured: bool,
    want_contexts: Vec<String>,
    /// The bytes received so far for the step in `state`.
    held: Vec<u8>,
    no_zeroes: bool,
    replies: u32,
    size_and_flags: Option<(Bytes, ExportFlags)>,
    blocks: Option<BlockSizes>,
    structured: bool,
    contexts: Vec<ChosenContext>,
    listed: Vec<ListedExport>,
    listed_bytes: usize,
}

impl ClientHandshake {
    /// Starts a negotiation. The server sends first.
    ///
    /// # Errors
    /// The protocol cannot express a name, or there are contexts without structured replies.
    pub fn start(options: ClientOptions) -> Result<Self, ClientError> {
        let bad = |name: &String| name.len() > STRING_MAX || name.contains('\0');
        if matches!(&options.goal, Goal::Use(name) if bad(name)) {
            return Err(ClientError::BadOptions("an export name has at most 4096 bytes and no NUL"));
        }
        if options.contexts.len() > CLIENT_CONTEXTS_MAX || options.contexts.iter().any(bad) {
            return Err(ClientError::BadOptions("at most 16 contexts of at most 4096 bytes without NUL"));
        }
        if !options.structured && !options.contexts.is_empty() {
            return Err(ClientError::BadOptions("metadata contexts need structured replies"));
        }
        Ok(Self {
            state: State::Greeting,
            goal: options.goal,
            want_structured: options.structured,
            want_contexts: options.contexts,
            held: Vec::new(),
            no_zeroes: false,
            replies: 0,
            size_and_flags: None,
            blocks: None,
            structured: false,
            contexts: Vec::new(),
            listed: Vec::new(),
            listed_bytes: 0,
        })
    }

    /// Number of bytes held for the server's current answer; at most [`OPTION_REPLY_MAX`].
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Takes received bytes, and appends bytes to send to `out`.
    ///
    /// # Panics
    /// The call comes after [`ClientEvent::Ready`], [`ClientEvent::Listed`] or [`ClientEvent::Failed`].
    pub fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> ClientStep {
        let mut used = 0;
        let event = loop {
            let wanted = match self.state {
                State::Greeting => GREETING_BYTES,
                State::ReplyHeader { .. } => OPTION_REPLY_BYTES,
                State::ReplyPayload { length, .. } | State::ExportReply { length } => length,
                State::Finished => panic!("a finished negotiation was given more bytes"),
            };
            if !hold(&mut self.held, (wanted, OPTION_REPLY_MAX), input, &mut used) {
                break ClientEvent::NeedMore;
            }
            let held = core::mem::take(&mut self.held);
            let result = self.on_complete(&held, out);
            self.held = held;
            self.held.clear();
            match result {
                Ok(None) => {}
                Ok(Some(event)) => {
                    self.state = State::Finished;
                    break event;
                }
                Err(error) => {
                    self.say_goodbye(&error, out);
                    self.state = State::Finished;
                    break ClientEvent::Failed(error);
                }
            }
        };
        ClientStep { consumed: used, event }
    }

    /// After a refusal the client must end the negotiation with a goodbye. After a violation of the protocol it only
    /// closes the connection.
    fn say_goodbye(&self, error: &ClientError, out: &mut Vec<u8>) {
        if matches!(error, ClientError::Refused(..) | ClientError::BlockSizes(_)) {
            push_option(out, option::ABORT, &[]);
        }
    }

    fn on_complete(&mut self, held: &[u8], out: &mut Vec<u8>) -> Result<Option<ClientEvent>, ClientError> {
        match self.state {
            State::Greeting => self.on_greeting(held, out).map(|()| None),
            State::ReplyHeader { option } => self.on_reply_header(option, held).map(|()| None),
            State::ReplyPayload { option, kind, .. } => {
                self.state = State::ReplyHeader { option };
                self.on_reply(option, kind, held, out)
            }
            State::ExportReply { .. } => self.on_export_reply(held).map(Some),
            State::Finished => unreachable!("nothing is held after the end"),
        }
    }

    fn on_greeting(&mut self, held: &[u8], out: &mut Vec<u8>) -> Result<(), ClientError> {
        let mut reader = Reader::new(held);
        let (first, second, flags) = (reader.u64(), reader.u64(), reader.u16().unwrap_or(0));
        if first != Some(MAGIC_SERVER) {
            return Err(ClientError::NotNbd);
        }
        if second == Some(MAGIC_OLDSTYLE) {
            return Err(ClientError::OldStyle);
        }
        if second != Some(MAGIC_OPTION) {
            return Err(ClientError::NotNbd);
        }
        let answer = flags & (FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        self.no_zeroes = flags & FLAG_NO_ZEROES != 0;
        if flags & FLAG_FIXED_NEWSTYLE == 0 {
            let Goal::Use(_) = &self.goal else { return Err(ClientError::NoOptions) };
            out.extend_from_slice(&u32::from(answer).to_be_bytes());
            self.send_export_name(out);
            return Ok(());
        }
        out.extend_from_slice(&u32::from(answer).to_be_bytes());
        match self.goal {
            Goal::List => self.send(option::LIST, &[], out),
            Goal::Use(_) if self.want_structured => self.send(option::STRUCTURED_REPLY, &[], out),
            Goal::Use(_) => self.send_go(out),
        }
        Ok(())
    }

    fn on_reply_header(&mut self, option: u32, held: &[u8]) -> Result<(), ClientError> {
        let mut reader = Reader::new(held);
        if reader.u64() != Some(MAGIC_OPTION_REPLY) {
            return Err(ClientError::Protocol("a reply to an option starts with a wrong number"));
        }
        if reader.u32() != Some(option) {
            return Err(ClientError::Protocol("a reply to an option that was not sent"));
        }
        let kind = reader.u32().expect("a reply header is held");
        let length = to_usize(reader.u32().expect("a reply header is held"));
        if length > OPTION_REPLY_MAX {
            return Err(ClientError::TooLong("a reply to an option above 64 KiB"));
        }
        self.replies += 1;
        if self.replies > OPTION_REPLIES_MAX {
            return Err(ClientError::TooLong("replies to one option without end"));
        }
        self.state = State::ReplyPayload { option, kind, length };
        Ok(())
    }

    fn on_reply(
        &mut self,
        option: u32,
        kind: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent>, ClientError> {
        if kind & rep::ERROR_BIT != 0 {
            return self.on_refusal(option, kind, payload, out).map(|()| None);
        }
        match (option, kind) {
            (option::LIST, rep::SERVER) => self.on_listed(payload)?,
            (option::GO, rep::INFO) => self.on_info(payload)?,
            (option::SET_META_CONTEXT, rep::META_CONTEXT) => self.on_context(payload)?,
            (_, rep::ACK) if !payload.is_empty() => {
                return Err(ClientError::Protocol("an acknowledgement with data"));
            }
            (option::LIST, rep::ACK) => {
                push_option(out, option::ABORT, &[]);
                return Ok(Some(ClientEvent::Listed(core::mem::take(&mut self.listed))));
            }
            (option::GO, rep::ACK) => return self.session().map(Some),
            (option::STRUCTURED_REPLY, rep::ACK) => {
                self.structured = true;
                if self.want_contexts.is_empty() {
                    self.send_go(out);
                } else {
                    self.send_contexts(out);
                }
            }
            (option::SET_META_CONTEXT, rep::ACK) => self.send_go(out),
            _ => return Err(ClientError::Protocol("a reply that does not belong to the option")),
        }
        Ok(None)
    }

    /// Handles a refusal: the client works without the option, uses another one, or fails.
    fn on_refusal(&mut self, option: u32, kind: u32, words: &[u8], out: &mut Vec<u8>) -> Result<(), ClientError> {
        use OptionRefusal::{ShuttingDown, TlsRequired, Unsupported};
        match (option, OptionRefusal::from_type(kind)) {
            (option::STRUCTURED_REPLY, refusal) if !matches!(refusal, ShuttingDown | TlsRequired) => self.send_go(out),
            (option::SET_META_CONTEXT, refusal) if !matches!(refusal, ShuttingDown | TlsRequired) => {
                self.contexts.clear();
                self.send_go(out);
            }
            (option::GO, Unsupported) => self.send_export_name(out),
            (_, refusal) => {
                let words = &words[..words.len().min(STRING_MAX)];
                return Err(ClientError::Refused(refusal, String::from_utf8_lossy(words).into_owned()));
            }
        }
        Ok(())
    }

    fn on_listed(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        const BROKEN: ClientError = ClientError::Protocol("a list entry whose name does not fit into it");
        let mut reader = Reader::new(payload);
        let name = reader.counted().ok_or(BROKEN)?;
        let description = reader.bytes(reader.remaining()).ok_or(BROKEN)?;
        self.listed_bytes += payload.len();
        if self.listed_bytes > LIST_BYTES_MAX {
            return Err(ClientError::TooLong("a list of exports above 1 MiB"));
        }
        self.listed.push(ListedExport {
            name: String::from_utf8_lossy(name).into_owned(),
            description: String::from_utf8_lossy(description).into_owned(),
        });
        Ok(())
    }

    fn on_info(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let mut reader = Reader::new(payload);
        let kind = reader.u16().ok_or(ClientError::Protocol("information without a type"))?;
        match kind {
            info::EXPORT => {
                let (Some(size), Some(flags), 0) = (reader.u64(), reader.u16(), reader.remaining()) else {
                    return Err(ClientError::Protocol("export information of a wrong length"));
                };
                self.size_and_flags = Some((Bytes(size), ExportFlags::from_bits(flags)));
            }
            info::BLOCK_SIZE => {
                let (Some(minimum), Some(preferred), Some(maximum), 0) =
                    (reader.u32(), reader.u32(), reader.u32(), reader.remaining())
                else {
                    return Err(ClientError::Protocol("block sizes of a wrong length"));
                };
                self.blocks = Some(BlockSizes::new(minimum, preferred, maximum).map_err(ClientError::BlockSizes)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_context(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let mut reader = Reader::new(payload);
        let id = reader.u32().ok_or(ClientError::Protocol("a metadata context without a number"))?;
        let name = reader.bytes(reader.remaining()).unwrap_or(&[]);
        let wanted = self.want_contexts.iter().find(|wanted| wanted.as_bytes() == name);
        let Some(wanted) = wanted else { return Ok(()) };
        if self.contexts.iter().any(|context| context.id == id || context.name == *wanted) {
            return Err(ClientError::Protocol("a metadata context announced twice"));
        }
        self.contexts.push(ChosenContext { id, name: wanted.clone() });
        Ok(())
    }

    fn on_export_reply(&mut self, held: &[u8]) -> Result<ClientEvent, ClientError> {
        let mut reader = Reader::new(held);
        if let (Some(size), Some(flags)) = (reader.u64(), reader.u16()) {
            self.size_and_flags = Some((Bytes(size), ExportFlags::from_bits(flags)));
        }
        self.session()
    }

    fn session(&mut self) -> Result<ClientEvent, ClientError> {
        let Some((size, flags)) = self.size_and_flags else {
            return Err(ClientError::Protocol("an export without its size"));
        };
        if i64::try_from(size.get()).is_err() {
            return Err(ClientError::Protocol("an export of 2^63 bytes or more"));
        }
        let contexts = core::mem::take(&mut self.contexts);
        let blocks = self.blocks;
        Ok(ClientEvent::Ready(ClientSession { size, flags, blocks, structured: self.structured, contexts }))
    }

    fn send(&mut self, option: u32, payload: &[u8], out: &mut Vec<u8>) {
        push_option(out, option, payload);
        self.replies = 0;
        self.state = State::ReplyHeader { option };
    }

    fn export(&self) -> &str {
        match &self.goal {
            Goal::Use(name) => name,
            Goal::List => panic!("a client that only lists has no export"),
        }
    }

    fn send_go(&mut self, out: &mut Vec<u8>) {
        let mut payload = counted(self.export().as_bytes());
        payload.extend_from_slice(&1u16.to_be_bytes());
        payload.extend_from_slice(&info::BLOCK_SIZE.to_be_bytes());
        self.send(option::GO, &payload, out);
    }

    fn send_contexts(&mut self, out: &mut Vec<u8>) {
        let mut payload = counted(self.export().as_bytes());
        payload.extend_from_slice(&length_u32(self.want_contexts.len()).to_be_bytes());
        for context in &self.want_contexts {
            payload.extend_from_slice(&counted(context.as_bytes()));
        }
        self.send(option::SET_META_CONTEXT, &payload, out);
    }

    fn send_export_name(&mut self, out: &mut Vec<u8>) {
        push_option(out, option::EXPORT_NAME, self.export().as_bytes());
        let padding = if self.no_zeroes { 0 } else { EXPORT_NAME_PADDING };
        self.state = State::ExportReply { length: 10 + padding };
        self.size_and_flags = None;
        self.blocks = None;
    }
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    let mut out = length_u32(bytes.len()).to_be_bytes().to_vec();
    out.extend_from_slice(bytes);
    out
}

fn push_option(out: &mut Vec<u8>, option: u32, payload: &[u8]) {
    out.extend_from_slice(&MAGIC_OPTION.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&length_u32(payload.len()).to_be_bytes());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests;
