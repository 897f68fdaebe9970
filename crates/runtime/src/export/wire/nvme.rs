//! NVMe/TCP: one connection of a host, and what the connections of all hosts share.
//!
//! A host has a control connection and some queues; the requests come by the queues. A large payload is sent only after a
//! question, which names the frames, so that the socket never holds a payload without a place.

use std::net::{IpAddr, SocketAddr};

use openraid_core::actions::{ReplyStatus, Transfer};
use openraid_core::events::RequestKind;
use openraid_nvme::{
    AllowedHosts, ArrivedTransfer, Closing, CommandId, CommandKind, CommandOutcome, ConnectionId, Errand, HostQueue,
    NextBytes, NvmeCommand, NvmeTarget, NvmeTargetError, PathState, PayloadSource, Port, PortId, Preferred, QueueEvent,
    QueueStep, ReadPart, Subsystem, SubsystemError, TargetSettings,
};
use openraid_sys::PoolRange;
use openraid_units::{ArrayId, BlockSize, Bytes, Instant, Tag, Token};

use super::{
    Arrival, BytesDestination, CommandPayload, ConnectionRole, DataPart, Ending, HostCommand, SharedErrand, WireEvent,
    WireStep,
};
use crate::export::offers::Offer;
use crate::host_requests::HostRequest;
use crate::limits::RECEIVE_BYTES_SCARCE;
use crate::slab::SlabKey;

const _: () = assert!(RECEIVE_BYTES_SCARCE > HostQueue::<Transfer>::BUFFER_MIN);

/// Numbers of controllers: all.
const CONTROLLERS: std::ops::RangeInclusive<u16> = 1..=0xffef;

/// What the connections of all hosts share.
#[derive(Debug)]
pub struct NvmeShared {
    target: NvmeTarget,
}

impl NvmeShared {
    /// A target that is reached by these addresses.
    pub(super) fn new(addresses: &[SocketAddr]) -> Result<Self, NvmeTargetError> {
        let port = |address: &SocketAddr| Port {
            address: Some(address.ip()).filter(|address| !address.is_unspecified()),
            service: address.port(),
        };
        let (ports, version) = (addresses.iter().map(port).collect(), env!("CARGO_PKG_VERSION").to_owned());
        Ok(Self { target: NvmeTarget::new(TargetSettings { ports, controllers: CONTROLLERS, version })? })
    }

    /// Arrays that are not offered now are not about to start.
    pub(super) fn have_started(&mut self) {
        self.target.set_starting(false);
    }

    /// Offer an array, unless it is offered by another name already or has no identity.
    pub(super) fn offer(&mut self, offer: &Offer) -> Result<(), SubsystemError> {
        let Some(uuid) = offer.uuid.filter(|_| !self.target.has(offer.array)) else { return Ok(()) };
        let preferred = Bytes(u64::from(offer.preferred));
        let block = block_of(offer);
        // A refused host is told for good: its kernel must not go on as if nothing was lost.
        let hosts = if offer.refused.is_some() { AllowedHosts::Listed(Vec::new()) } else { offer.hosts.clone() };
        self.target.offer(Subsystem {
            array: offer.array,
            uuid,
            size: offer.size,
            block,
            preferred: Preferred { write: block.bytes().max(Bytes(4096)), optimal: preferred },
            is_read_only: offer.read_only,
            has_volatile_cache: true,
            hosts,
        })?;
        self.set_path(offer.array, offer.path)
    }

    /// Offer an array no longer.
    pub(super) fn withdraw(&mut self, array: ArrayId) {
        if self.target.has(array) {
            self.target.withdraw(array).unwrap_or_else(|error| panic!("bug: {array} is offered: {error}"));
        }
    }

    /// An array has another size. Hosts keep the former one if the new one is no multiple of the block that they know.
    pub(super) fn set_size(&mut self, array: ArrayId, size: Bytes) {
        let _ = self.target.set_size(array, size);
    }

    pub(super) fn set_read_only(&mut self, array: ArrayId, read_only: bool) {
        // An array without an identity is not offered here.
        let _ = self.target.set_read_only(array, read_only);
    }

    pub(super) fn set_hosts(&mut self, array: ArrayId, hosts: &AllowedHosts) -> Result<(), SubsystemError> {
        if self.target.has(array) {
            return self.target.set_hosts(array, hosts.clone());
        }
        Ok(())
    }

    /// Change how an array is reached, by all addresses.
    pub(super) fn set_path(&mut self, array: ArrayId, state: PathState) -> Result<(), SubsystemError> {
        (0..self.target.ports()).try_for_each(|port| self.target.set_path(array, PortId(port), state))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.target.next_deadline()
    }

    pub(super) fn on_time(&mut self, now: Instant) {
        self.target.on_time(now);
    }

    pub(super) fn next_errand(&mut self) -> Option<SharedErrand> {
        let key = |connection: ConnectionId| SlabKey::from_token(Token(connection.0));
        self.target.next_errand().map(|errand| match errand {
            Errand::Deliver(connection) => SharedErrand::Deliver(key(connection)),
            Errand::Close(connection) => SharedErrand::Close(key(connection)),
        })
    }
}

/// The logical block that hosts see: that of the members if the array consists of whole ones.
fn block_of(offer: &Offer) -> BlockSize {
    let block = BlockSize::new(u64::from(offer.unit)).unwrap_or(BlockSize::B512);
    match offer.size.round_down(block.bytes()) == offer.size {
        true => block,
        false => BlockSize::B512,
    }
}

/// One connection.
#[derive(Debug)]
pub struct NvmeWire {
    queue: HostQueue<Transfer>,
    /// Payload bytes that the host was asked for and has not sent.
    asked: u64,
}

impl NvmeWire {
    /// A connection that was accepted at this port, on this address.
    pub(super) fn new(shared: &NvmeShared, connection: SlabKey, port: PortId, local: IpAddr) -> Self {
        let connection = ConnectionId(connection.token().0);
        Self { queue: HostQueue::new(&shared.target, connection, port, local), asked: 0 }
    }

    #[inline]
    pub(super) fn parse(&mut self, input: &[u8], shared: &mut NvmeShared, now: Instant, out: &mut Vec<u8>) -> WireStep {
        let QueueStep { consumed, event } = self.queue.parse(input, &mut shared.target, now, out);
        let event = match event {
            QueueEvent::Command(command) => WireEvent::Command(host_command(command)),
            QueueEvent::Arrived(arrived) => WireEvent::Arrived(self.arrival(arrived)),
            QueueEvent::Connected { array: Some(array), is_io: true } => {
                WireEvent::Chosen(ConnectionRole::Queue(array))
            }
            QueueEvent::Connected { array, .. } => WireEvent::Chosen(ConnectionRole::Control(array)),
            QueueEvent::Step => WireEvent::Step,
            QueueEvent::Payload => WireEvent::Payload,
            QueueEvent::NeedMore(_) => WireEvent::NeedMore,
            QueueEvent::Close(Closing::Violation(_) | Closing::HostTerminated(_)) => WireEvent::Close,
            QueueEvent::Close(Closing::Ended) => WireEvent::Goodbye,
        };
        WireStep { consumed, event }
    }

    pub(super) fn incoming(&self) -> BytesDestination {
        match self.queue.next_bytes() {
            NextBytes::Pdus => BytesDestination::Commands,
            NextBytes::Payload { transfer, at, left } => {
                let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
                BytesDestination::Frames(range.part(Bytes(u64::from(at)), Bytes(u64::from(left))))
            }
        }
    }

    #[inline]
    pub(super) fn payload_left(&self) -> u32 {
        match self.queue.next_bytes() {
            NextBytes::Pdus => 0,
            NextBytes::Payload { left, .. } => left,
        }
    }

    pub(super) fn payload_came(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<Arrival> {
        let arrived = self.queue.payload_came(bytes, out)?;
        Some(self.arrival(arrived))
    }

    fn arrival(&mut self, arrived: ArrivedTransfer<Transfer>) -> Arrival {
        let ArrivedTransfer { transfer, is_intact } = arrived;
        self.asked -= u64::from(transfer.len);
        Arrival { transfer, is_intact }
    }

    /// Does the host owe payload?
    pub(super) fn is_asked(&self) -> bool {
        self.asked > 0
    }

    pub(super) fn open_bytes(&self) -> u64 {
        self.asked
    }

    pub(super) fn ask_payload(&mut self, host: &HostRequest, transfer: &Transfer, out: &mut Vec<u8>) {
        self.asked += u64::from(transfer.len);
        self.queue.ask_payload(CommandId(host.id), *transfer, (transfer.offset, transfer.len), out);
    }

    #[inline]
    pub(super) fn data_head(&mut self, host: &HostRequest, part: DataPart, out: &mut Vec<u8>) {
        self.queue.data_head(CommandId(host.id), read_part(part), out);
    }

    #[inline]
    pub(super) fn data_tail(&mut self, host: &HostRequest, part: DataPart, data: &[u8], out: &mut Vec<u8>) {
        self.queue.data_tail(CommandId(host.id), read_part(part), data, out);
    }

    #[inline]
    pub(super) fn end(&mut self, host: &HostRequest, status: ReplyStatus, out: &mut Vec<u8>) -> Ending {
        let outcome = match status {
            ReplyStatus::Ok => CommandOutcome::Done,
            ReplyStatus::IoError => CommandOutcome::Lost,
            ReplyStatus::OutOfRange => CommandOutcome::OutOfRange,
            ReplyStatus::ReadOnly => CommandOutcome::ReadOnly,
            ReplyStatus::NoSpace => CommandOutcome::NoSpace,
            ReplyStatus::Offline => CommandOutcome::Offline,
        };
        self.queue.end(CommandId(host.id), outcome, out);
        Ending::Answered
    }

    pub(super) fn deliver(&mut self, shared: &mut NvmeShared, out: &mut Vec<u8>) {
        self.queue.deliver(&mut shared.target, out);
    }

    pub(super) fn abandon(self, shared: &mut NvmeShared, mut dropped: impl FnMut(Tag)) {
        self.queue.leave(&mut shared.target, |transfer| dropped(transfer.tag));
    }
}

fn read_part(part: DataPart) -> ReadPart {
    let narrow = |bytes: u64| u32::try_from(bytes).expect("a read of a host is at most a MiB");
    ReadPart { offset: narrow(part.offset), len: narrow(part.len), is_last: part.last }
}

#[inline]
fn host_command(command: NvmeCommand) -> HostCommand {
    let NvmeCommand { id: CommandId(id), kind, offset, len, payload } = command;
    let kind = match kind {
        CommandKind::Read => RequestKind::Read,
        CommandKind::Write { fua } => RequestKind::Write { fua },
        CommandKind::Flush => RequestKind::Flush,
        CommandKind::Deallocate => RequestKind::Trim { fua: false },
        CommandKind::WriteZeroes { fua, may_deallocate } => {
            RequestKind::WriteZeroes { fua, may_discard: may_deallocate }
        }
    };
    let payload = match payload {
        PayloadSource::None => CommandPayload::None,
        PayloadSource::Received(range) => CommandPayload::Received(range),
        PayloadSource::Asked => CommandPayload::Awaited,
    };
    HostCommand { id, kind, offset, len: len.get(), payload }
}
