//! One connection: the parser of its PDUs, and its answers.
//!
//! ```text
//!  Opening --connection request--> Open --Connect--> Admin | Io
//! ```
//!
//! A violation or the end of the association ends every stage: from then on each step says "close".

use core::net::IpAddr;
use std::collections::VecDeque;

use openraid_units::{ArrayId, ArrayOffset, Bytes, Instant};

use crate::admin_commands::{self, AdminAnswer};
use crate::association::{AssociationKey, AssociationSubject, QueuePlace};
use crate::capsule::{Capsule, SubmissionEntry};
use crate::connect::{connect, Connected};
use crate::connection_rules::{ConnectionRules, DataSlice};
use crate::engine_command::{CommandId, CommandKind, NvmeCommand, PayloadSource};
use crate::in_flight::{CommandWork, InFlight, OpenCommand, PayloadQueue, WantedPart};
use crate::io_commands::{self, Checked, One};
use crate::limits::IN_CAPSULE_BYTES_MAX;
use crate::registers;
use crate::requested_payload::{self, Inbound};
use crate::status::{CommandOutcome, Status};
use crate::subsystem::PortId;
use crate::target::{ConnectionId, NvmeTarget};
use crate::violation::ProtocolViolation;
use crate::wire::{
    flag, narrow, pdu, u16_at, u32_at, wide, Header, COMMAND_BYTES, COMMON_BYTES, DIGEST_BYTES, IC_BYTES, TERM_BYTES,
    TERM_COPY_BYTES_MAX,
};

/// A part of a read's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadPart {
    /// First byte within the command.
    pub offset: u32,
    /// Length in bytes.
    pub len: u32,
    /// No part follows, and no error can follow.
    pub is_last: bool,
}

/// Why a connection has to be closed. Its output is to be sent before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    /// The host broke a rule. The output tells the host.
    Violation(ProtocolViolation),
    /// The host says that this target broke a rule; the status.
    HostTerminated(u16),
    /// The association has ended.
    Ended,
}

impl core::fmt::Display for Closing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Violation(violation) => write!(f, "{violation}"),
            Self::HostTerminated(status) => write!(f, "the host ended the connection with status {status}"),
            Self::Ended => f.write_str("the association of the host has ended"),
        }
    }
}

/// A transfer for which all payload came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrivedTransfer<T> {
    /// The caller's transfer.
    pub transfer: T,
    /// If not, a digest was wrong, and the engine must not use the payload. The host gets a status to try again when the
    /// command ends.
    pub is_intact: bool,
}

/// The result of one step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QueueEvent<T> {
    /// A command for the engine. Ranges count from the start of the input.
    Command(NvmeCommand),
    /// A transfer is complete.
    Arrived(ArrivedTransfer<T>),
    /// The host has chosen an array. `is_io`: by this connection commands come.
    Connected {
        /// The array; `None` for the list of all.
        array: Option<ArrayId>,
        /// Is it an I/O queue?
        is_io: bool,
    },
    /// A step without a command. An answer may be in the output.
    Step,
    /// Bytes of payload follow: ask [`HostQueue::next_bytes`].
    Payload,
    /// More bytes are needed: at least this number from the first unused one on.
    NeedMore(usize),
    /// Send the output, and close the connection.
    Close(Closing),
}

/// The number of bytes used, and the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueStep<T> {
    /// Bytes of the input that were used, payload in a capsule included.
    pub consumed: usize,
    /// Event for the target.
    pub event: QueueEvent<T>,
}

/// The destination of the next bytes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextBytes<T> {
    /// The parser.
    Pdus,
    /// Payload of this transfer, from byte `at` of the transfer on.
    Payload {
        /// The caller's transfer.
        transfer: T,
        /// Bytes of it that came.
        at: u32,
        /// Bytes that follow. More may follow later, after another header.
        left: u32,
    },
}

#[derive(Debug)]
enum Stage<T> {
    /// The connection request is missing.
    Opening,
    /// Connect is missing.
    Open,
    Admin(AssociationKey),
    Io(Box<IoQueue<T>>),
}

#[derive(Debug)]
struct IoQueue<T> {
    key: AssociationKey,
    commands: InFlight<T>,
    inbound: Inbound,
    /// Ranges of a deallocation that the engine does not have yet.
    ranges: VecDeque<(ArrayOffset, Bytes)>,
    /// That deallocation.
    ranges_of: CommandId,
}

/// One connection. `T` is the caller's name for a transfer of payload.
#[derive(Debug)]
pub struct HostQueue<T> {
    place: QueuePlace,
    line: ConnectionRules,
    stage: Stage<T>,
    closing: Option<Closing>,
}

/// Maximum length of a command capsule.
const CAPSULE_BYTES_MAX: usize = u8::MAX as usize + IN_CAPSULE_BYTES_MAX as usize + DIGEST_BYTES;

impl<T: Copy> HostQueue<T> {
    /// Minimum size of the receive buffer in bytes.
    pub const BUFFER_MIN: usize = CAPSULE_BYTES_MAX;

    /// A connection that was just accepted at a port, and the address of this machine that the host chose.
    #[must_use]
    pub fn new(target: &NvmeTarget, connection: ConnectionId, port: PortId, local: IpAddr) -> Self {
        let place = QueuePlace { connection, port, local };
        Self { place, line: ConnectionRules::new(target.kernels()), stage: Stage::Opening, closing: None }
    }

    /// Does the next step in `input`, which begins with the first unused byte. An answer is appended to `out`.
    ///
    /// # Panics
    /// Payload is outstanding: see [`HostQueue::next_bytes`].
    #[inline]
    pub fn parse(&mut self, input: &[u8], target: &mut NvmeTarget, now: Instant, out: &mut Vec<u8>) -> QueueStep<T> {
        if let Some(closing) = self.closing {
            return close(closing);
        }
        match &mut self.stage {
            Stage::Io(queue) => {
                if let Some((offset, len)) = queue.ranges.pop_front() {
                    let kind = CommandKind::Deallocate;
                    let command = NvmeCommand { id: queue.ranges_of, kind, offset, len, payload: PayloadSource::None };
                    return QueueStep { consumed: 0, event: QueueEvent::Command(command) };
                }
                match queue.inbound {
                    Inbound::Pdus => {}
                    Inbound::Payload { left, .. } => panic!("bug: {left} bytes of payload are outstanding"),
                    Inbound::Digest { id, register } => return self.on_data_digest((id, register), input, out),
                }
            }
            Stage::Opening | Stage::Open | Stage::Admin(_) => {}
        }
        let Some(header) = input.first_chunk() else { return need(COMMON_BYTES) };
        let header = Header::read(header);
        let step = match header.kind {
            pdu::COMMAND => self.on_capsule(header, input, target, now, out),
            pdu::H2C_DATA => self.on_data(header, input),
            pdu::IC_REQ => self.on_request(header, input, out),
            pdu::H2C_TERM => self.on_term(header, input),
            kind => Err(ProtocolViolation::Type(kind)),
        };
        let step = step.unwrap_or_else(|violation| self.fail(violation, header, input, out));
        if let QueueEvent::Close(closing) = step.event {
            self.closing = Some(closing);
        }
        step
    }

    #[cold]
    fn fail(&self, violation: ProtocolViolation, header: Header, input: &[u8], out: &mut Vec<u8>) -> QueueStep<T> {
        let violation = match (&self.stage, violation) {
            (Stage::Opening, ProtocolViolation::Type(_)) => ProtocolViolation::NoRequest(header.kind),
            (_, violation) => violation,
        };
        let len = usize::from(header.header_len).min(input.len());
        violation.tell(&input[..len], out);
        close(Closing::Violation(violation))
    }

    fn on_request(
        &mut self,
        header: Header,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<QueueStep<T>, ProtocolViolation> {
        if !matches!(self.stage, Stage::Opening) {
            return Err(ProtocolViolation::SecondRequest);
        }
        if usize::from(header.header_len) != IC_BYTES {
            return Err(ProtocolViolation::HeaderLength(header.header_len));
        }
        if wide(header.len) != IC_BYTES {
            return Err(ProtocolViolation::Length(header.len));
        }
        let Some(request) = input.first_chunk() else { return Ok(need(IC_BYTES)) };
        crate::icreq::open(request, &mut self.line, out)?;
        self.stage = Stage::Open;
        Ok(QueueStep { consumed: IC_BYTES, event: QueueEvent::Step })
    }

    fn on_term(&self, header: Header, input: &[u8]) -> Result<QueueStep<T>, ProtocolViolation> {
        if !(TERM_BYTES..=TERM_BYTES + TERM_COPY_BYTES_MAX).contains(&wide(header.len)) {
            return Err(ProtocolViolation::Length(header.len));
        }
        if input.len() < TERM_BYTES {
            return Ok(need(TERM_BYTES));
        }
        Ok(close(Closing::HostTerminated(u16_at(input, 8))))
    }

    #[inline]
    fn on_capsule(
        &mut self,
        header: Header,
        input: &[u8],
        target: &mut NvmeTarget,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<QueueStep<T>, ProtocolViolation> {
        if matches!(self.stage, Stage::Opening) {
            return Err(ProtocolViolation::NoRequest(header.kind));
        }
        let Some((data_at, data_len)) = self.shape(header)? else { return Err(ProtocolViolation::Length(header.len)) };
        let len = wide(header.len);
        if input.len() < len {
            return Ok(need(len));
        }
        requested_payload::check_digest(&self.line, input, COMMAND_BYTES)?;
        let entry = SubmissionEntry(input[COMMON_BYTES..].first_chunk().expect("a capsule has an entry"));
        let data = &input[data_at..data_at + data_len];
        self.line.count_command();
        if data_len > 0 && self.line.data_digest && u32_at(input, data_at + data_len) != self.line.checksum(data) {
            self.line.respond(entry.id(), Status::TRANSIENT_TRANSPORT, 0, out);
            return Ok(QueueStep { consumed: len, event: QueueEvent::Step });
        }
        let capsule = Capsule { entry, data, data_at };
        let event = match &self.stage {
            Stage::Io(_) => self.on_io(&capsule, target, now, out)?,
            Stage::Admin(key) => {
                let key = *key;
                self.on_admin(entry, key, target, now, out)
            }
            Stage::Opening | Stage::Open => self.on_connect(&capsule, target, now, out),
        };
        Ok(QueueStep { consumed: if matches!(event, QueueEvent::Close(_)) { 0 } else { len }, event })
    }

    /// Place and length of the data in a capsule; `None` if the capsule is too short or too long for it.
    #[inline]
    fn shape(&self, header: Header) -> Result<Option<(usize, usize)>, ProtocolViolation> {
        if usize::from(header.header_len) != COMMAND_BYTES {
            return Err(ProtocolViolation::HeaderLength(header.header_len));
        }
        if (header.flags & flag::HEADER_DIGEST != 0) != self.line.header_digest {
            return Err(ProtocolViolation::DigestFlags(header.flags));
        }
        let (len, end) = (wide(header.len), self.line.sealed(COMMAND_BYTES));
        if len == end {
            return Ok(Some((end, 0)));
        }
        if len < end || len > CAPSULE_BYTES_MAX {
            return Ok(None);
        }
        let start = usize::from(header.data_offset);
        if start < end || !start.is_multiple_of(4) {
            return Err(ProtocolViolation::DataOffset(header.data_offset));
        }
        if (header.flags & flag::DATA_DIGEST != 0) != self.line.data_digest {
            return Err(ProtocolViolation::DigestFlags(header.flags));
        }
        let data = len.checked_sub(start + self.line.data_digest_bytes());
        Ok(data.filter(|data| *data <= wide(IN_CAPSULE_BYTES_MAX)).map(|data| (start, data)))
    }

    fn on_connect(
        &mut self,
        capsule: &Capsule<'_>,
        target: &mut NvmeTarget,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> QueueEvent<T> {
        let entry = capsule.entry;
        if entry.opcode() != registers::OPCODE || entry.fabrics_type() != registers::CONNECT {
            self.line.respond(entry.id(), for_now(Status::COMMAND_SEQUENCE, target), 0, out);
            return QueueEvent::Step;
        }
        let (queue, controller) = match connect(capsule, (target, &mut self.line), self.place, now) {
            Ok(connected) => connected,
            Err(refusal) => {
                let status = for_now(refusal.status, target);
                self.line.respond(entry.id(), status, u64::from(refusal.result), out);
                return QueueEvent::Step;
            }
        };
        self.line.respond_to_connect(entry.id(), u64::from(controller), out);
        match queue {
            Connected::Admin(key, subject) => {
                self.stage = Stage::Admin(key);
                let array = match subject {
                    AssociationSubject::Discovery => None,
                    AssociationSubject::Array(index) => Some(target.at(index).subsystem.array),
                };
                QueueEvent::Connected { array, is_io: false }
            }
            Connected::Io(key, array) => {
                let commands = InFlight::new(self.line.entries);
                let (ranges, ranges_of) = (VecDeque::new(), CommandId(0));
                let queue = IoQueue { key, commands, inbound: Inbound::Pdus, ranges, ranges_of };
                self.stage = Stage::Io(Box::new(queue));
                QueueEvent::Connected { array: Some(array), is_io: true }
            }
        }
    }

    fn on_admin(
        &mut self,
        entry: SubmissionEntry<'_>,
        key: AssociationKey,
        target: &mut NvmeTarget,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> QueueEvent<T> {
        let Some(association) = target.association(key) else { return QueueEvent::Close(Closing::Ended) };
        association.heard_at = now;
        match admin_commands::handle(entry, target, key) {
            Ok(AdminAnswer::Done(result)) => self.line.respond(entry.id(), Status::SUCCESS, result, out),
            Ok(AdminAnswer::Data(data)) => self.line.answer(entry.id(), &data, out),
            Ok(AdminAnswer::Held) => {}
            Err(status) => self.line.respond(entry.id(), for_now(status, target), 0, out),
        }
        self.deliver(target, out);
        QueueEvent::Step
    }

    /// Append the events that are owed to the host, as far as the host waits for them.
    pub fn deliver(&mut self, target: &mut NvmeTarget, out: &mut Vec<u8>) {
        let Stage::Admin(key) = self.stage else { return };
        let Some(association) = target.association(key) else { return };
        association.is_announced = false;
        while let Some((command, event)) = association.events.next() {
            self.line.respond(command, Status::SUCCESS, u64::from(event), out);
        }
    }

    #[inline]
    fn on_io(
        &mut self,
        capsule: &Capsule<'_>,
        target: &mut NvmeTarget,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Result<QueueEvent<T>, ProtocolViolation> {
        let Stage::Io(queue) = &mut self.stage else { panic!("bug: the stage is not that of an I/O queue") };
        let Some(view) = target.io_view(queue.key, now) else { return Ok(QueueEvent::Close(Closing::Ended)) };
        let id = capsule.entry.id();
        if queue.commands.is_full() {
            return Err(ProtocolViolation::TooManyCommands);
        }
        let checked = match capsule.entry.opcode() {
            _ if queue.commands.has(id) => Err(Status::COMMAND_ID_CONFLICT),
            registers::OPCODE if capsule.entry.fabrics_type() == registers::CONNECT => Err(Status::COMMAND_SEQUENCE),
            _ => io_commands::check(capsule, &view),
        };
        Ok(match checked {
            Ok(Checked::One(one)) => QueueEvent::Command(queue.begin(id, one)),
            Ok(Checked::Ranges(ranges)) => queue.begin_ranges(id, ranges),
            Ok(Checked::Nothing) => {
                self.line.respond(id, Status::SUCCESS, 0, out);
                QueueEvent::Step
            }
            Err(status) => {
                self.line.respond(id, for_now(status, target), 0, out);
                QueueEvent::Step
            }
        })
    }

    fn on_data(&mut self, header: Header, input: &[u8]) -> Result<QueueStep<T>, ProtocolViolation> {
        let Stage::Io(queue) = &mut self.stage else { return Err(ProtocolViolation::Type(header.kind)) };
        Ok(match requested_payload::begin(header, input, &self.line, &queue.commands)? {
            Some((consumed, inbound)) => {
                queue.inbound = inbound;
                QueueStep { consumed, event: QueueEvent::Payload }
            }
            None => need(usize::from(header.data_offset)),
        })
    }

    fn on_data_digest(&mut self, (id, register): (CommandId, u32), input: &[u8], out: &mut Vec<u8>) -> QueueStep<T> {
        let Stage::Io(queue) = &mut self.stage else { panic!("bug: the stage is not that of an I/O queue") };
        let Some(digest) = input.first_chunk() else { return need(DIGEST_BYTES) };
        queue.inbound = Inbound::Pdus;
        let ended = (id, requested_payload::fits(register, *digest));
        let event = match requested_payload::end(&mut queue.commands, ended, &self.line, out) {
            Some((transfer, is_intact)) => QueueEvent::Arrived(ArrivedTransfer { transfer, is_intact }),
            None => QueueEvent::Step,
        };
        QueueStep { consumed: DIGEST_BYTES, event }
    }

    /// The destination of the next bytes of the connection.
    #[must_use]
    pub fn next_bytes(&self) -> NextBytes<T> {
        let Stage::Io(queue) = &self.stage else { return NextBytes::Pdus };
        let Inbound::Payload { id, left, .. } = queue.inbound else { return NextBytes::Pdus };
        match queue.commands.wanted(id) {
            Some((wanted, at)) => NextBytes::Payload { transfer: wanted.transfer, at, left },
            None => panic!("bug: payload of a command that has ended: {id:?}"),
        }
    }

    /// These bytes of payload came, and are where [`HostQueue::next_bytes`] said. Returns the transfer that is complete by them.
    /// The host may be asked for the next part.
    ///
    /// # Panics
    /// More bytes than announced.
    pub fn payload_came(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<ArrivedTransfer<T>> {
        let queue = io_queue(&mut self.stage);
        let after = requested_payload::take(&mut queue.commands, &self.line, queue.inbound, bytes);
        let Inbound::Payload { id, left: 0, .. } = after else {
            queue.inbound = after;
            return None;
        };
        queue.inbound = Inbound::Pdus;
        let (transfer, is_intact) = requested_payload::end(&mut queue.commands, (id, true), &self.line, out)?;
        Some(ArrivedTransfer { transfer, is_intact })
    }

    /// The engine wants a part of a payload: ask the host, or wait until the host has sent the part before.
    ///
    /// # Panics
    /// The command's payload is not at the host.
    pub fn ask_payload(&mut self, id: CommandId, transfer: T, (offset, len): (u32, u32), out: &mut Vec<u8>) {
        let queue = io_queue(&mut self.stage);
        let tag = queue.commands.transfer_tag(id);
        let (open, host_id) = queue.commands.get(id);
        let CommandWork::Write(incoming) = &mut open.work else {
            panic!("bug: a transfer of a payload that is not at the host: {id:?}")
        };
        let part = DataSlice { offset, len, is_last: false };
        assert!(
            len > 0 && offset <= open.len && len <= open.len - offset,
            "bug: a transfer beyond the payload: {part:?}"
        );
        let wanted = WantedPart { transfer, part };
        if incoming.open.is_some() {
            incoming.waiting.push_back(wanted);
        } else {
            incoming.open = Some((wanted, 0));
            self.line.ask(host_id, tag, part, out);
        }
    }

    /// Append the head of a part of a read's data. The data follow, and then the output of [`HostQueue::data_tail`].
    ///
    /// # Panics
    /// The part is not the next one of a read.
    #[inline]
    pub fn data_head(&mut self, id: CommandId, part: ReadPart, out: &mut Vec<u8>) {
        let (open, host_id) = io_queue(&mut self.stage).commands.get(id);
        let CommandWork::Read { sent } = &mut open.work else {
            panic!("bug: data for a command that is no read: {id:?}")
        };
        let is_next = part.offset == *sent && part.len <= open.len - *sent;
        assert!(
            is_next && part.is_last == (part.len == open.len - *sent),
            "bug: not the next data of a read: {part:?}"
        );
        *sent += part.len;
        self.line.data_head(host_id, part.into(), out);
    }

    /// Append what follows the data of a part. With the last part the command ends.
    ///
    /// # Panics
    /// The data are not those of the part.
    #[inline]
    pub fn data_tail(&mut self, id: CommandId, part: ReadPart, data: &[u8], out: &mut Vec<u8>) {
        assert!(data.len() == wide(part.len), "bug: {} bytes of data for {part:?}", data.len());
        let commands = &mut io_queue(&mut self.stage).commands;
        let host_id = if part.is_last { commands.remove(id) } else { commands.get(id).1 };
        self.line.data_tail(host_id, part.into(), data, out);
    }

    /// The engine has ended a command, or one range of a deallocation: append the answer.
    ///
    /// # Panics
    /// Transfers of the command are under way, or it is a read that succeeded.
    #[inline]
    pub fn end(&mut self, id: CommandId, outcome: CommandOutcome, out: &mut Vec<u8>) {
        let queue = io_queue(&mut self.stage);
        let (open, _) = queue.commands.get(id);
        let mut status = outcome.status(open.kind);
        match &mut open.work {
            CommandWork::Ends { left, failed } => {
                *left -= 1;
                if failed.is_none() && status != Status::SUCCESS {
                    *failed = Some(status);
                }
                if *left > 0 {
                    return;
                }
                status = failed.unwrap_or(Status::SUCCESS);
            }
            CommandWork::Read { .. } => {
                assert!(outcome != CommandOutcome::Done, "bug: a read ends with its data: {id:?}")
            }
            CommandWork::Write(incoming) => {
                assert!(incoming.open.is_none(), "bug: a command ended with transfers under way: {id:?}");
                if incoming.is_damaged {
                    status = Status::TRANSIENT_TRANSPORT;
                }
            }
        }
        let host_id = queue.commands.remove(id);
        self.line.respond(host_id, status, 0, out);
    }

    /// Bytes of all transfers that wait for payload.
    #[must_use]
    pub fn open_bytes(&self) -> u64 {
        match &self.stage {
            Stage::Io(queue) => queue.commands.transfers().map(|wanted| u64::from(wanted.part.len)).sum(),
            Stage::Opening | Stage::Open | Stage::Admin(_) => 0,
        }
    }

    /// The connection is closed. `dropped` is called for each transfer that waits for payload.
    pub fn leave(self, target: &mut NvmeTarget, mut dropped: impl FnMut(T)) {
        match self.stage {
            Stage::Admin(key) => target.leave_admin(key),
            Stage::Io(queue) => {
                queue.commands.transfers().for_each(|wanted| dropped(wanted.transfer));
                if let Some(association) = target.association(queue.key) {
                    association.leave(self.line.queue, self.place.connection);
                }
            }
            Stage::Opening | Stage::Open => {}
        }
    }
}

impl<T: Copy> IoQueue<T> {
    #[inline]
    fn begin(&mut self, host_id: u16, one: One) -> NvmeCommand {
        let One { kind, offset, len, payload } = one;
        let work = match (kind, &payload) {
            (CommandKind::Read, _) => CommandWork::Read { sent: 0 },
            (_, PayloadSource::Asked) => CommandWork::Write(PayloadQueue::new()),
            _ => CommandWork::Ends { left: 1, failed: None },
        };
        // Only a command without data can be longer.
        let data = u32::try_from(len.get()).unwrap_or(u32::MAX);
        let id = self.commands.insert(host_id, OpenCommand { kind, len: data, work });
        NvmeCommand { id, kind, offset, len, payload }
    }

    fn begin_ranges<U>(&mut self, host_id: u16, ranges: Vec<(ArrayOffset, Bytes)>) -> QueueEvent<U> {
        let work = CommandWork::Ends { left: narrow(ranges.len()), failed: None };
        self.ranges_of = self.commands.insert(host_id, OpenCommand { kind: CommandKind::Deallocate, len: 0, work });
        self.ranges = ranges.into();
        QueueEvent::Step
    }
}

impl From<ReadPart> for DataSlice {
    fn from(part: ReadPart) -> Self {
        let ReadPart { offset, len, is_last } = part;
        Self { offset, len, is_last }
    }
}

/// While arrays start, no refusal is final.
fn for_now(status: Status, target: &NvmeTarget) -> Status {
    if target.is_starting() {
        status.for_now()
    } else {
        status
    }
}

fn io_queue<T>(stage: &mut Stage<T>) -> &mut IoQueue<T> {
    match stage {
        Stage::Io(queue) => queue,
        Stage::Opening | Stage::Open | Stage::Admin(_) => {
            panic!("bug: a command of a connection that is no I/O queue")
        }
    }
}

fn close<T>(closing: Closing) -> QueueStep<T> {
    QueueStep { consumed: 0, event: QueueEvent::Close(closing) }
}

fn need<T>(bytes: usize) -> QueueStep<T> {
    QueueStep { consumed: 0, event: QueueEvent::NeedMore(bytes) }
}
