//! The protocols of clients, as one type. A wire turns received bytes into commands for the engine, and the engine's
//! answers into bytes.
//!
//! ```text
//!  received bytes --parse--> HostCommand ------------------------> engine
//!  received bytes --incoming, payload_came--> frames <--ask_payload--|
//!  bytes to send <--data_head, data_tail, end------------------------+
//!
//!  ProtocolState: state of all clients of a protocol --SharedErrand--> connections that get a message, or are closed
//! ```
//!
//! A wire has no socket, and must never wait. Limits, stalls and the order of output belong to the connection. Only this
//! file and the file of a protocol may name the protocol.

mod nbd;
mod nvme;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;

use openraid_core::actions::{ReplyStatus, Transfer};
use openraid_core::events::RequestKind;
use openraid_nbd::{ExportError, ExportInfo};
pub use openraid_nvme::{AllowedHosts, PathState};
use openraid_nvme::{NvmeTargetError, PortId, SubsystemError};
use openraid_sys::{PoolRange, Socket};
use openraid_units::{ArrayId, ArrayOffset, Bytes, Instant, Tag};

use super::offers::{Catalog, Offer};
use crate::host_requests::HostRequest;
use crate::member::MemberQuestion;
use crate::slab::SlabKey;
use nbd::NbdWire;
use nvme::{NvmeShared, NvmeWire};

/// What the clients of an address speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Network block devices.
    Nbd,
    /// NVMe over TCP.
    Nvme,
}

/// What the clients of one listener speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListenerProtocol {
    /// Network block devices.
    Nbd,
    /// NVMe over TCP, at the listener with this number.
    Nvme(PortId),
}

/// One client's protocol, and the state of its conversation.
#[derive(Debug)]
pub enum Wire {
    /// A network block device.
    Nbd(NbdWire),
    /// A connection of an NVMe host.
    Nvme(Box<NvmeWire>),
}

/// What a client does on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionRole {
    /// It has not chosen.
    Choosing,
    /// It is a client of this array.
    Client(ArrayId),
    /// It is a client of this array, or of none and asks for the offers; its requests come by other connections.
    Control(Option<ArrayId>),
    /// Requests of a client that has a control connection.
    Queue(ArrayId),
}

impl ConnectionRole {
    #[must_use]
    #[inline]
    pub const fn array(self) -> Option<ArrayId> {
        match self {
            Self::Client(array) | Self::Queue(array) => Some(array),
            Self::Control(array) => array,
            Self::Choosing => None,
        }
    }

    /// The array of a client. A client with several connections has it once.
    #[must_use]
    pub const fn client_of(self) -> Option<ArrayId> {
        match self {
            Self::Client(array) => Some(array),
            Self::Control(array) => array,
            Self::Queue(_) | Self::Choosing => None,
        }
    }
}

/// A transfer whose payload came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub transfer: Transfer,
    /// If not, the payload was damaged on its way, and must not be used.
    pub is_intact: bool,
}

/// Something to do at a connection because of the state that connections share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedErrand {
    /// Send what [`Wire::deliver`] gives.
    Deliver(SlabKey),
    Close(SlabKey),
}

/// A request for the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostCommand {
    /// The client's name for the request, in a form that only the wire understands.
    pub id: u64,
    /// The kind of the request.
    pub kind: RequestKind,
    /// First byte.
    pub offset: ArrayOffset,
    pub len: u64,
    /// The place of its payload.
    pub payload: CommandPayload,
}

/// The place of a write's payload, and the form of a read's data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommandPayload {
    /// No payload. The data of a read are sent piece by piece, each piece with a head.
    None,
    /// The payload is complete, in this range of the input.
    Received(Range<usize>),
    /// The payload is not complete. Bytes of it may follow in the input: [`Wire::payload_left`] tells how much is payload.
    Awaited,
    /// The data of a read follow one head, with nothing between.
    OnePiece,
}

/// The result of one step of a parser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WireEvent {
    /// A request for the engine.
    Command(HostCommand),
    /// A request of this length that needs no engine; its answer is in the output.
    Answered(u64),
    /// A request of this length for which members are asked: [`Wire::answer_questions`] answers it.
    Question(u64),
    /// A step of the protocol without a request: an option, a refusal. An answer to it is in the output.
    Step,
    /// The client has chosen. All commands come after the choice.
    Chosen(ConnectionRole),
    /// Bytes of payload follow, for frames that are known: ask [`Wire::incoming`].
    Payload,
    /// All payload of a transfer came.
    Arrived(Arrival),
    /// More bytes are needed.
    NeedMore,
    /// The client ends the conversation: its running requests are answered, and later bytes are ignored.
    Goodbye,
    /// The client breaks the protocol.
    Close,
}

/// The number of input bytes that were used, and the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WireStep {
    /// Number of bytes, a complete payload included.
    pub consumed: usize,
    pub event: WireEvent,
}

/// The destination of the next bytes from the socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BytesDestination {
    /// They are commands, for the parser.
    Commands,
    /// They are payload, for these frames.
    Frames(PoolRange),
    /// They are payload. The engine has to name the frames.
    Unplaced,
    /// They are payload of a request that has ended: this number of bytes is dropped.
    Unneeded(u32),
}

/// A part of a read's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPart {
    /// First byte within the request.
    pub offset: u64,
    pub len: u64,
    /// No part follows, and no error can follow.
    pub last: bool,
}

/// Was the end of a request told to the client?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The answer is in the output.
    Answered,
    /// The protocol has no form for this end: the connection has to be closed.
    Untellable,
}

impl Wire {
    /// The wire of a client that was just accepted, and whose connection has this key. The server's first bytes, if the protocol
    /// has any, are appended.
    #[must_use]
    pub fn greet(
        (spoken, key): (ListenerProtocol, SlabKey),
        socket: &Socket,
        common: &ProtocolState,
        out: &mut Vec<u8>,
    ) -> Self {
        match spoken {
            ListenerProtocol::Nbd => Self::Nbd(NbdWire::greet(out)),
            ListenerProtocol::Nvme(port) => {
                let local = socket.local_address().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip());
                Self::Nvme(Box::new(NvmeWire::new(common.nvme(), key, port, local)))
            }
        }
    }

    /// Take one step in the input, and append the answer if there is one.
    #[inline]
    pub fn parse(&mut self, input: &[u8], catalog: &mut Catalog<'_>, out: &mut Vec<u8>) -> WireStep {
        match self {
            Self::Nbd(wire) => wire.parse(input, catalog, out),
            Self::Nvme(wire) => wire.parse(input, catalog.common.nvme_mut(), catalog.now, out),
        }
    }

    /// Bytes of the next command's head if its payload will probably follow in pieces. Receiving no more than the head
    /// saves a copy of the payload.
    #[must_use]
    pub fn head_expected(&self) -> Option<usize> {
        match self {
            Self::Nbd(wire) => wire.head_expected(),
            Self::Nvme(_) => None,
        }
    }

    /// The destination of the next bytes from the socket.
    #[must_use]
    pub fn incoming(&self) -> BytesDestination {
        match self {
            Self::Nbd(wire) => wire.incoming(),
            Self::Nvme(wire) => wire.incoming(),
        }
    }

    /// Number of bytes from here on that are payload; 0 if the next byte is for the parser.
    #[must_use]
    #[inline]
    pub fn payload_left(&self) -> u32 {
        match self {
            Self::Nbd(wire) => wire.payload_left(),
            Self::Nvme(wire) => wire.payload_left(),
        }
    }

    /// These payload bytes came, and are in the frames that [`Wire::incoming`] named. Returns the transfer that is complete by
    /// them. A question for more may be appended.
    pub fn payload_came(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<Arrival> {
        match self {
            Self::Nbd(wire) => {
                let count = u32::try_from(bytes.len()).expect("a payload is below 4 GiB");
                wire.payload_came(count).map(|transfer| Arrival { transfer, is_intact: true })
            }
            Self::Nvme(wire) => wire.payload_came(bytes, out),
        }
    }

    /// This number of payload bytes came that [`Wire::incoming`] said to drop.
    pub fn payload_dropped(&mut self, count: u32) {
        match self {
            Self::Nbd(wire) => {
                let complete = wire.payload_came(count);
                assert!(complete.is_none(), "bug: payload that is dropped belongs to no transfer");
            }
            Self::Nvme(_) => panic!("bug: a host sends payload only when asked"),
        }
    }

    /// Was the client asked for payload that did not come?
    #[must_use]
    #[inline]
    pub fn is_asked(&self) -> bool {
        match self {
            Self::Nbd(_) => false,
            Self::Nvme(wire) => wire.is_asked(),
        }
    }

    /// Is the client told when its array gets another size?
    #[must_use]
    pub fn learns_size(&self) -> bool {
        match self {
            Self::Nbd(_) => false,
            Self::Nvme(_) => true,
        }
    }

    /// The engine needs this part of an awaited payload. A protocol whose clients send only what they were asked for
    /// appends the question.
    pub fn ask_payload(&mut self, host: &HostRequest, transfer: &Transfer, out: &mut Vec<u8>) {
        match self {
            Self::Nbd(wire) => wire.ask_payload(host, transfer, out),
            Self::Nvme(wire) => wire.ask_payload(host, transfer, out),
        }
    }

    /// Append the head of a part of a read's data. The data follow it, and then [`Wire::data_tail`].
    #[inline]
    pub fn data_head(&mut self, host: &HostRequest, part: DataPart, out: &mut Vec<u8>) {
        match self {
            Self::Nbd(wire) => wire.data_head(host, part, out),
            Self::Nvme(wire) => wire.data_head(host, part, out),
        }
    }

    /// Does something follow the data of a part?
    #[must_use]
    #[inline]
    pub const fn has_data_tails(&self) -> bool {
        matches!(self, Self::Nvme(_))
    }

    /// Append what follows the data of a part.
    #[inline]
    pub fn data_tail(&mut self, host: &HostRequest, part: DataPart, data: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Nbd(_) => {}
            Self::Nvme(wire) => wire.data_tail(host, part, data, out),
        }
    }

    /// A request has ended without data: append the answer.
    #[inline]
    pub fn end(&mut self, host: &HostRequest, status: ReplyStatus, out: &mut Vec<u8>) -> Ending {
        match self {
            Self::Nbd(wire) => wire.end(host, status, out),
            Self::Nvme(wire) => wire.end(host, status, out),
        }
    }

    /// Bytes of all transfers that wait for payload.
    #[must_use]
    pub fn open_bytes(&self) -> u64 {
        match self {
            Self::Nbd(wire) => wire.open_bytes(),
            Self::Nvme(wire) => wire.open_bytes(),
        }
    }

    /// Answer what members were to be asked for.
    pub fn answer_questions(&mut self, catalog: &mut Catalog<'_>, ask: MemberQuestion<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Nbd(wire) => wire.answer_questions(catalog, ask, out),
            Self::Nvme(_) => {}
        }
    }

    /// Append the messages that [`SharedErrand::Deliver`] is about.
    pub fn deliver(&mut self, common: &mut ProtocolState, out: &mut Vec<u8>) {
        match self {
            Self::Nbd(_) => {}
            Self::Nvme(wire) => wire.deliver(common.nvme_mut(), out),
        }
    }

    /// The client is gone: `dropped` is called for each transfer that waits for payload.
    pub fn abandon(self, common: &mut ProtocolState, dropped: impl FnMut(Tag)) {
        match self {
            Self::Nbd(wire) => wire.abandon(dropped),
            Self::Nvme(wire) => wire.abandon(common.nvme_mut(), dropped),
        }
    }

    /// Refuse writing from the next request on, or allow it again.
    pub fn set_read_only(&mut self, read_only: bool) {
        match self {
            Self::Nbd(wire) => wire.set_read_only(read_only),
            // The state that all hosts share says it.
            Self::Nvme(_) => {}
        }
    }
}

/// State that the connections of a protocol share.
#[derive(Debug, Default)]
pub struct ProtocolState {
    /// There is an address for it.
    nvme: Option<NvmeShared>,
}

impl ProtocolState {
    /// The state for listeners of these protocols and addresses, and the protocol of each of them.
    ///
    /// # Errors
    /// Too many addresses.
    pub fn new(listeners: &[(Protocol, Option<SocketAddr>)]) -> Result<(Self, Vec<ListenerProtocol>), NvmeTargetError> {
        let mut addresses = Vec::new();
        let spoken = listeners.iter().map(|(protocol, address)| match (protocol, address) {
            (Protocol::Nvme, Some(address)) => {
                addresses.push(*address);
                ListenerProtocol::Nvme(PortId(u16::try_from(addresses.len() - 1).unwrap_or(u16::MAX)))
            }
            (Protocol::Nvme, None) => panic!("bug: NVMe over TCP has TCP addresses"),
            (Protocol::Nbd, _) => ListenerProtocol::Nbd,
        });
        let spoken = spoken.collect();
        let nvme = (!addresses.is_empty()).then(|| NvmeShared::new(&addresses)).transpose()?;
        Ok((Self { nvme }, spoken))
    }

    fn nvme(&self) -> &NvmeShared {
        self.nvme.as_ref().expect("its connections come by its addresses")
    }

    #[inline]
    fn nvme_mut(&mut self) -> &mut NvmeShared {
        self.nvme.as_mut().expect("its connections come by its addresses")
    }

    /// Arrays that are not offered now are not about to start.
    pub fn have_started(&mut self) {
        self.nvme.iter_mut().for_each(NvmeShared::have_started);
    }

    /// Offer an array.
    ///
    /// # Errors
    /// The rule that the offer breaks.
    pub fn offer(&mut self, offer: &Offer) -> Result<(), OfferError> {
        self.nvme.iter_mut().try_for_each(|nvme| nvme.offer(offer)).map_err(OfferError::Nvme)
    }

    /// Offer an array no longer.
    pub fn withdraw(&mut self, array: ArrayId) {
        self.nvme.iter_mut().for_each(|nvme| nvme.withdraw(array));
    }

    /// An array has another size.
    pub fn set_size(&mut self, array: ArrayId, size: Bytes) {
        self.nvme.iter_mut().for_each(|nvme| nvme.set_size(array, size));
    }

    /// Refuse writing to an array, or allow it again.
    pub fn set_read_only(&mut self, array: ArrayId, read_only: bool) {
        self.nvme.iter_mut().for_each(|nvme| nvme.set_read_only(array, read_only));
    }

    /// Change which hosts may use an array. Others are disconnected.
    ///
    /// # Errors
    /// Too many hosts.
    pub fn set_hosts(&mut self, array: ArrayId, hosts: &AllowedHosts) -> Result<(), OfferError> {
        self.nvme.iter_mut().try_for_each(|nvme| nvme.set_hosts(array, hosts)).map_err(OfferError::Nvme)
    }

    /// Change how hosts reach an array.
    ///
    /// # Errors
    /// The array is not offered, or no protocol here has paths.
    pub fn set_path(&mut self, array: ArrayId, state: PathState) -> Result<(), OfferError> {
        let nvme = self.nvme.as_mut().ok_or(OfferError::NoPaths)?;
        nvme.set_path(array, state).map_err(OfferError::Nvme)
    }

    /// The time of the next call of [`ProtocolState::on_time`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.nvme.as_ref().and_then(NvmeShared::next_deadline)
    }

    /// Carry out the actions that are due. Received bytes are to be parsed before.
    pub fn on_time(&mut self, now: Instant) {
        self.nvme.iter_mut().for_each(|nvme| nvme.on_time(now));
    }

    /// The next connection that needs attention, until there is none.
    #[inline]
    pub fn next_errand(&mut self) -> Option<SharedErrand> {
        self.nvme.as_mut().and_then(NvmeShared::next_errand)
    }
}

/// The offers in the form in which each protocol announces them, in the order of the offers.
#[derive(Debug, Default)]
pub struct Announcements {
    nbd: Vec<ExportInfo>,
}

impl Announcements {
    /// The announcement of these offers.
    #[must_use]
    pub fn of(offers: &[Offer]) -> Self {
        Self { nbd: offers.iter().map(nbd::announce).collect() }
    }
}

/// Why an array cannot be offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfferError {
    /// A network block device cannot have this form.
    Nbd(ExportError),
    /// An NVMe namespace cannot have this form.
    Nvme(SubsystemError),
    /// No address is one of a protocol that has paths.
    NoPaths,
    /// The socket for virtual machines cannot be made.
    Vhost(String),
}

impl OfferError {
    /// Is the array not offered?
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::Nvme(SubsystemError::Unknown)
    }
}

impl std::fmt::Display for OfferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nbd(error) => write!(f, "{error}"),
            Self::Nvme(error) => write!(f, "{error}"),
            Self::Vhost(why) => f.write_str(why),
            Self::NoPaths => f.write_str("this server has no address for NVMe/TCP; start it with --nvme HOST:PORT"),
        }
    }
}
impl std::error::Error for OfferError {}

/// Can every protocol announce this offer?
///
/// # Errors
/// The first rule that the offer breaks.
pub fn check(offer: &Offer) -> Result<(), OfferError> {
    nbd::announce(offer).check().map_err(OfferError::Nbd)
}
