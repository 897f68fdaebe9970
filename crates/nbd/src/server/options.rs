//! The answer to each option, and the combined result of a connection's options.

use std::borrow::Cow;

use super::handshake::{CloseReason, Policy, StartTls};
use crate::export::{BlockSizes, ContextSet, ExportInfo, MetaContext};
use crate::flags::ExportFlags;
use crate::limits::{QUERIES_MAX, STRING_MAX};
use crate::wire::{info, length_u32, option, rep, Reader, EXPORT_NAME_PADDING, MAGIC_OPTION_REPLY};
use openraid_units::Bytes;

/// The result of the negotiation: everything that the transmission phase needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NbdSession {
    /// Index of the export in the list that was passed with the last option.
    pub export: usize,
    /// Size of the export.
    pub size: Bytes,
    /// The flags that the client got.
    pub flags: ExportFlags,
    /// Sizes against which requests are checked.
    pub blocks: BlockSizes,
    /// Are reads answered with structured replies?
    pub structured: bool,
    /// Contexts of block status; empty if the client chose none.
    pub contexts: ContextSet,
}

/// The result of an option.
#[derive(Debug)]
pub enum OptionOutcome {
    Replied,
    Enter(NbdSession),
    Close(CloseReason),
}

/// Metadata contexts, and the export for which they were chosen.
#[derive(Debug)]
struct Selection {
    export: String,
    contexts: ContextSet,
}

/// The combined result of all options so far.
#[derive(Debug)]
pub struct Negotiation {
    policy: Policy,
    pub no_zeroes: bool,
    pub shutting_down: bool,
    structured: bool,
    selection: Option<Selection>,
}

/// A refusal of one option: type of the reply, and a message for the client's user.
#[derive(Debug)]
pub(super) struct Refused {
    kind: u32,
    message: Cow<'static, str>,
}

impl Refused {
    pub(super) const fn new(kind: u32, message: &'static str) -> Self {
        Self { kind, message: Cow::Borrowed(message) }
    }
}

const NO_PAYLOAD: Refused = Refused::new(rep::ERR_INVALID, "this option takes no data");
const MALFORMED: Refused = Refused::new(rep::ERR_INVALID, "the lengths in the option do not fit together");
const BAD_NAME: Refused = Refused::new(rep::ERR_INVALID, "an export name is at most 4096 bytes of UTF-8 without NUL");
const NO_SUCH_EXPORT: Refused = Refused::new(rep::ERR_UNKNOWN, "no export has this name; list the exports to see them");

impl Negotiation {
    pub fn new(policy: Policy) -> Self {
        Self { policy, no_zeroes: false, shutting_down: false, structured: false, selection: None }
    }

    /// Answers an option whose payload was too long to keep.
    pub fn too_big(&mut self, option: u32, out: &mut Vec<u8>) -> OptionOutcome {
        if option == option::SET_META_CONTEXT {
            self.selection = None;
        }
        push_refusal(out, option, &Refused::new(rep::ERR_TOO_BIG, "the option is longer than this server accepts"));
        OptionOutcome::Replied
    }

    /// Answers an option.
    pub fn answer(&mut self, option: u32, payload: &[u8], exports: &[ExportInfo], out: &mut Vec<u8>) -> OptionOutcome {
        match option {
            option::EXPORT_NAME => return self.export_name(payload, exports, out),
            option::ABORT => {
                push_reply(out, option, rep::ACK, &[]);
                return OptionOutcome::Close(CloseReason::Aborted);
            }
            _ => {}
        }
        let result = if self.shutting_down {
            Err(Refused::new(rep::ERR_SHUTDOWN, "the server is shutting down"))
        } else {
            match option {
                option::LIST => self.list(payload, exports, out),
                option::INFO | option::GO => self.info(option, payload, exports, out),
                option::STRUCTURED_REPLY => self.structured_reply(payload),
                option::LIST_META_CONTEXT | option::SET_META_CONTEXT => {
                    self.meta_context(option, payload, exports, out)
                }
                option::STARTTLS => Err(self.start_tls(payload)),
                _ => Err(Refused::new(rep::ERR_UNSUP, "this server does not know the option")),
            }
        };
        match result {
            Ok(entered) => {
                push_reply(out, option, rep::ACK, &[]);
                entered.map_or(OptionOutcome::Replied, OptionOutcome::Enter)
            }
            Err(refused) => {
                push_refusal(out, option, &refused);
                OptionOutcome::Replied
            }
        }
    }

    fn start_tls(&self, payload: &[u8]) -> Refused {
        match self.policy.start_tls {
            _ if !payload.is_empty() => NO_PAYLOAD,
            StartTls::Unsupported => Refused::new(rep::ERR_UNSUP, "this server does not speak TLS"),
            StartTls::Forbidden => Refused::new(rep::ERR_POLICY, "TLS is disabled on this server"),
        }
    }

    fn structured_reply(&mut self, payload: &[u8]) -> Result<Option<NbdSession>, Refused> {
        if !payload.is_empty() {
            return Err(NO_PAYLOAD);
        }
        self.structured = true;
        Ok(None)
    }

    fn list(&self, payload: &[u8], exports: &[ExportInfo], out: &mut Vec<u8>) -> Result<Option<NbdSession>, Refused> {
        if !payload.is_empty() {
            return Err(NO_PAYLOAD);
        }
        if !self.policy.list {
            return Err(Refused::new(rep::ERR_POLICY, "listing exports is disabled on this server"));
        }
        for export in exports.iter().filter(|export| export.refused.is_none()) {
            assert_usable(export);
            let name_length = length_u32(export.name.len()).to_be_bytes();
            let parts = [&name_length[..], export.name.as_bytes(), export.description.as_bytes()];
            push_reply(out, option::LIST, rep::SERVER, &parts);
        }
        Ok(None)
    }

    fn export_name(&mut self, payload: &[u8], exports: &[ExportInfo], out: &mut Vec<u8>) -> OptionOutcome {
        let found = (!self.shutting_down).then(|| name_of(payload).and_then(|name| find(exports, name)));
        let Some(Ok((index, export))) = found else {
            return OptionOutcome::Close(CloseReason::ExportNameRefused);
        };
        let session = self.session(index, export);
        out.extend_from_slice(&session.size.get().to_be_bytes());
        out.extend_from_slice(&session.flags.bits().to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_PADDING]);
        }
        OptionOutcome::Enter(session)
    }

    fn info(
        &self,
        option: u32,
        payload: &[u8],
        exports: &[ExportInfo],
        out: &mut Vec<u8>,
    ) -> Result<Option<NbdSession>, Refused> {
        let mut reader = Reader::new(payload);
        let name = reader.counted().ok_or(MALFORMED)?;
        let count = reader.u16().ok_or(MALFORMED)?;
        if reader.remaining() != 2 * usize::from(count) {
            return Err(MALFORMED);
        }
        let (index, export) = find(exports, name_of(name)?)?;
        let mut asked = [false; 4];
        while let Some(kind) = reader.u16() {
            if let Some(asked) = asked.get_mut(usize::from(kind)) {
                *asked = true;
            }
        }
        let session = self.session(index, export);
        push_info(out, option, info::EXPORT, &[&session.size.get().to_be_bytes(), &session.flags.bits().to_be_bytes()]);
        if asked[usize::from(info::NAME)] {
            push_info(out, option, info::NAME, &[export.name.as_bytes()]);
        }
        if asked[usize::from(info::DESCRIPTION)] && !export.description.is_empty() {
            push_info(out, option, info::DESCRIPTION, &[export.description.as_bytes()]);
        }
        if asked[usize::from(info::BLOCK_SIZE)] {
            let blocks = export.blocks;
            let sizes = [blocks.minimum(), blocks.preferred(), blocks.maximum()].map(u32::to_be_bytes);
            push_info(out, option, info::BLOCK_SIZE, &[&sizes[0], &sizes[1], &sizes[2]]);
        }
        Ok((option == option::GO).then_some(session))
    }

    fn meta_context(
        &mut self,
        option: u32,
        payload: &[u8],
        exports: &[ExportInfo],
        out: &mut Vec<u8>,
    ) -> Result<Option<NbdSession>, Refused> {
        let set = option == option::SET_META_CONTEXT;
        if set {
            self.selection = None; // even a failing option replaces what was chosen before
        }
        if !self.structured {
            return Err(Refused::new(
                rep::ERR_INVALID,
                "metadata contexts need structured replies, negotiate them first",
            ));
        }
        let mut reader = Reader::new(payload);
        let name = reader.counted().ok_or(MALFORMED)?;
        let count = reader.u32().ok_or(MALFORMED)?;
        let (_, export) = find(exports, name_of(name)?)?;
        if count > QUERIES_MAX {
            return Err(Refused::new(rep::ERR_TOO_BIG, "too many queries for metadata contexts"));
        }
        let mut chosen = if !set && count == 0 { export.contexts } else { ContextSet::NONE };
        for _ in 0..count {
            let query = reader.counted().ok_or(MALFORMED)?;
            if query.len() > STRING_MAX {
                return Err(Refused::new(rep::ERR_INVALID, "a query is at most 4096 bytes"));
            }
            let matching = export.contexts.iter().filter(|context| matches_query(*context, query, !set));
            chosen = matching.fold(chosen, ContextSet::with);
        }
        if reader.remaining() != 0 {
            return Err(MALFORMED);
        }
        for context in chosen.iter() {
            let id = if set { context.id() } else { 0 };
            push_reply(out, option, rep::META_CONTEXT, &[&id.to_be_bytes(), context.name().as_bytes()]);
        }
        if set {
            self.selection = Some(Selection { export: export.name.clone(), contexts: chosen });
        }
        Ok(None)
    }

    fn session(&self, index: usize, export: &ExportInfo) -> NbdSession {
        assert_usable(export);
        let chosen = self.selection.as_ref().filter(|selection| selection.export == export.name);
        NbdSession {
            export: index,
            size: export.size,
            flags: export.flags.negotiated(self.structured),
            blocks: export.blocks,
            structured: self.structured,
            contexts: chosen.map_or(ContextSet::NONE, |selection| selection.contexts),
        }
    }
}

fn assert_usable(export: &ExportInfo) {
    if let Err(error) = export.check() {
        panic!("export {:?} must be checked before it is offered: {error}", export.name);
    }
}

fn name_of(bytes: &[u8]) -> Result<&str, Refused> {
    match core::str::from_utf8(bytes) {
        Ok(name) if name.len() <= STRING_MAX && !name.contains('\0') => Ok(name),
        _ => Err(BAD_NAME),
    }
}

/// The export with this name. If there is only one export, the empty name means that export.
fn find<'e>(exports: &'e [ExportInfo], name: &str) -> Result<(usize, &'e ExportInfo), Refused> {
    let named = exports.iter().enumerate().find(|(_, export)| export.name == name);
    let found = match exports {
        _ if named.is_some() => named.ok_or(NO_SUCH_EXPORT),
        [only] if name.is_empty() => Ok((0, only)),
        _ => Err(NO_SUCH_EXPORT),
    };
    let (index, export) = found?;
    match &export.refused {
        None => Ok((index, export)),
        Some(why) => Err(Refused { kind: rep::ERR_POLICY, message: Cow::Owned(why.clone()) }),
    }
}

/// Does a query match this context? In a list, a namespace with its colon matches all contexts of the namespace.
fn matches_query(context: MetaContext, query: &[u8], wildcard: bool) -> bool {
    let name = context.name().as_bytes();
    query == name || (wildcard && query.ends_with(b":") && name.starts_with(query))
}

pub(super) fn push_reply(out: &mut Vec<u8>, option: u32, kind: u32, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&MAGIC_OPTION_REPLY.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&length_u32(length).to_be_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn push_info(out: &mut Vec<u8>, option: u32, kind: u16, parts: &[&[u8]]) {
    let kind = kind.to_be_bytes();
    let mut all = [&[][..]; 4];
    all[0] = &kind;
    all[1..=parts.len()].copy_from_slice(parts);
    push_reply(out, option, rep::INFO, &all[..=parts.len()]);
}

pub(super) fn push_refusal(out: &mut Vec<u8>, option: u32, refused: &Refused) {
    push_reply(out, option, refused.kind, &[refused.message.as_bytes()]);
}
