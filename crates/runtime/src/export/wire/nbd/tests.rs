use super::super::{AllowedHosts, PathState, ProtocolState};
use super::*;
use crate::engine_access::Control;
use crate::export::offers::{Offers, StatusCache};
use crate::host_requests::RequestOwner;
use crate::slab::SlabKey;
use openraid_core::actions::Direction;
use openraid_core::limits::Limits;
use openraid_units::{ArrayOffset, Instant, PoolOffset, TagKind, Token};

const ARRAY: ArrayId = ArrayId(3);
const STRUCTURED_REPLY: u32 = 8;
const EXPORT_NAME: u32 = 1;

/// A wire with the parts of a server that it asks.
struct Side {
    wire: NbdWire,
    offers: Offers,
    states: StatusCache,
    control: Control,
    out: Vec<u8>,
}

impl Side {
    /// A client that has just connected.
    fn new() -> Self {
        let mut offers = Offers::default();
        let (name, description) = ("disk".into(), String::new());
        let size = Bytes::mib(64);
        let (read_only, rotational) = (false, false);
        offers.add(Offer {
            array: ARRAY,
            name,
            description,
            size,
            read_only,
            rotational,
            unit: 1,
            preferred: 4096,
            refused: None,
            uuid: None,
            hosts: AllowedHosts::Any,
            path: PathState::Optimized,
        });
        let control = Control::new(Limits::default(), None).expect("limits that fit together");
        let mut out = Vec::new();
        let wire = NbdWire::greet(&mut out);
        Self { wire, offers, states: StatusCache::default(), control, out }
    }

    /// A client that has chosen the array.
    fn chosen(structured: bool) -> Self {
        let mut side = Self::new();
        assert_eq!(side.step(&3_u32.to_be_bytes()), (4, WireEvent::NeedMore));
        if structured {
            let option = option(STRUCTURED_REPLY, b"");
            assert_eq!(side.step(&option), (option.len(), WireEvent::Step));
        }
        let option = option(EXPORT_NAME, b"disk");
        assert_eq!(side.step(&option), (option.len(), WireEvent::Chosen(ConnectionRole::Client(ARRAY))));
        side.out.clear();
        side
    }

    fn step(&mut self, input: &[u8]) -> (usize, WireEvent) {
        let (control, now) = (&self.control, Instant::ZERO);
        let (offers, mut common) = (&self.offers, ProtocolState::default());
        let mut catalog = Catalog { offers, states: &mut self.states, common: &mut common, control, now };
        let step = self.wire.parse(input, &mut catalog, &mut self.out);
        (step.consumed, step.event)
    }

    fn command(&mut self, input: &[u8]) -> HostCommand {
        match self.step(input) {
            (_, WireEvent::Command(command)) => command,
            other => panic!("{other:?} is no command"),
        }
    }
}

fn option(number: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("a short option");
    [&b"IHAVEOPT"[..], &number.to_be_bytes(), &length.to_be_bytes(), content].concat()
}

fn header(command: NbdCommand, offset: u64, length: u64) -> [u8; REQUEST_BYTES] {
    NbdRequest { cookie: Cookie(77), command, offset: ArrayOffset(offset), length: Bytes(length) }.encode()
}

fn host(kind: RequestKind, len: u64, payload: HostPayload) -> HostRequest {
    let owner = RequestOwner::Connection(SlabKey::from_token(Token(0)));
    HostRequest { owner, id: 77, kind, offset: ArrayOffset(4096), len, payload, sent: 0 }
}

fn transfer(number: u32, offset: u32, len: u32, last: bool) -> Transfer {
    let (tag, at) = (Tag::new(TagKind::Transfer, number, 0), PoolOffset(1 << 20 | u64::from(offset)));
    Transfer { tag, token: Token(0), direction: Direction::FromHost, at, offset, len, last }
}

#[test]
fn requests_become_commands_with_the_clients_name_and_the_place_of_their_payload() {
    let mut side = Side::chosen(true);
    let write = [&header(NbdCommand::Write { fua: true }, 4096, 3)[..], b"abc"].concat();
    let expected = HostCommand {
        id: 77,
        kind: RequestKind::Write { fua: true },
        offset: ArrayOffset(4096),
        len: 3,
        payload: CommandPayload::Received(REQUEST_BYTES..REQUEST_BYTES + 3),
    };
    assert_eq!(side.step(&write), (write.len(), WireEvent::Command(expected)));
    let zeroes = NbdCommand::WriteZeroes { fua: false, no_hole: true, fast: false };
    let kind = RequestKind::WriteZeroes { fua: false, may_discard: false };
    assert_eq!(side.command(&header(zeroes, 0, 512)).kind, kind);
    assert_eq!(side.command(&header(NbdCommand::Flush, 0, 0)).kind, RequestKind::Flush);
    assert!(side.out.is_empty(), "only the engine can answer these");
    assert_eq!(side.step(&header(NbdCommand::Cache, 0, 512)).1, WireEvent::Answered(512));
    assert_eq!(side.out, simple(Cookie(77), None));
}

#[test]
fn the_data_of_a_read_are_in_one_piece_if_the_client_knows_no_other_form_or_wants_it() {
    for (structured, dont_fragment, payload) in [
        (true, false, CommandPayload::None),
        (true, true, CommandPayload::OnePiece),
        (false, false, CommandPayload::OnePiece),
    ] {
        let command = Side::chosen(structured).command(&header(NbdCommand::Read { dont_fragment }, 0, 512));
        assert_eq!((command.kind, command.payload), (RequestKind::Read, payload));
    }
}

#[test]
fn each_piece_of_a_read_has_a_head_and_only_the_last_one_says_so() {
    let mut side = Side::chosen(true);
    let read = host(RequestKind::Read, 3000, HostPayload::None);
    for (offset, len, last) in [(0, 1000, false), (1000, 2000, true)] {
        side.out.clear();
        side.wire.data_head(&read, DataPart { offset, len, last }, &mut side.out);
        assert_eq!(side.out, chunk_data(Cookie(77), ArrayOffset(4096 + offset), Bytes(len), last));
    }
}

#[test]
fn a_large_payload_goes_to_the_frames_in_the_order_in_which_the_engine_names_them() {
    let mut side = Side::chosen(false);
    let early = [&header(NbdCommand::Write { fua: false }, 4096, 65_536)[..], &[7; 1000]].concat();
    assert_eq!(side.wire.head_expected(), None);
    let (consumed, event) = side.step(&early);
    assert!(matches!(event, WireEvent::Command(HostCommand { payload: CommandPayload::Awaited, .. })));
    assert_eq!((consumed, side.wire.payload_left()), (REQUEST_BYTES, 65_536), "early payload is not used here");
    assert_eq!((side.wire.head_expected(), side.wire.incoming()), (Some(REQUEST_BYTES), BytesDestination::Unplaced));

    let write = host(RequestKind::Write { fua: false }, 65_536, HostPayload::Stream);
    let (first, second) = (transfer(1, 0, 40_000, false), transfer(2, 40_000, 25_536, true));
    let frames = |offset: u64, len| BytesDestination::Frames(PoolRange::new(PoolOffset(1 << 20 | offset), Bytes(len)));
    side.wire.ask_payload(&write, &first, &mut side.out);
    assert_eq!(side.wire.incoming(), frames(0, 40_000));
    assert_eq!(side.wire.payload_came(1000), None);
    assert_eq!(side.wire.incoming(), frames(1000, 39_000));
    side.wire.ask_payload(&write, &second, &mut side.out);
    assert_eq!(side.wire.open_bytes(), 65_536);
    assert_eq!(side.wire.payload_came(39_000), Some(first));
    assert_eq!(side.wire.incoming(), frames(40_000, 25_536));
    assert_eq!(side.wire.payload_came(25_536), Some(second));
    assert_eq!((side.wire.incoming(), side.wire.payload_left()), (BytesDestination::Commands, 0));
    assert_eq!(side.command(&header(NbdCommand::Flush, 0, 0)).kind, RequestKind::Flush);
}

#[test]
fn the_payload_of_a_write_that_failed_is_dropped_before_the_next_request() {
    let mut side = Side::chosen(false);
    side.command(&header(NbdCommand::Write { fua: false }, 0, 65_536));
    let write = host(RequestKind::Write { fua: false }, 65_536, HostPayload::Stream);
    side.wire.ask_payload(&write, &transfer(1, 0, 4096, false), &mut side.out);
    assert!(side.wire.payload_came(4096).is_some() && side.out.is_empty());
    assert_eq!(side.wire.end(&write, ReplyStatus::IoError, &mut side.out), Ending::Answered);
    assert_eq!(side.out, simple(Cookie(77), Some(NbdError::InputOutput)));
    assert_eq!(side.wire.incoming(), BytesDestination::Unneeded(61_440));
    assert_eq!(side.wire.payload_came(61_440), None);
    assert_eq!(side.wire.incoming(), BytesDestination::Commands);
    assert_eq!(side.command(&header(NbdCommand::Flush, 0, 0)).kind, RequestKind::Flush);
}

#[test]
fn transfers_that_wait_for_payload_are_given_back_when_the_client_is_gone() {
    let mut side = Side::chosen(false);
    side.command(&header(NbdCommand::Write { fua: false }, 0, 65_536));
    let write = host(RequestKind::Write { fua: false }, 65_536, HostPayload::Stream);
    let transfers = [transfer(1, 0, 4096, false), transfer(2, 4096, 4096, false)];
    transfers.iter().for_each(|transfer| side.wire.ask_payload(&write, transfer, &mut side.out));
    let mut dropped = Vec::new();
    side.wire.abandon(|tag| dropped.push(tag));
    assert_eq!(dropped, transfers.map(|transfer| transfer.tag));
}

#[test]
fn every_status_of_the_engine_has_its_error() {
    let write = RequestKind::Write { fua: false };
    for (kind, status, error) in [
        (write, ReplyStatus::Ok, None),
        (write, ReplyStatus::IoError, Some(NbdError::InputOutput)),
        (write, ReplyStatus::OutOfRange, Some(NbdError::NoSpace)),
        (RequestKind::Read, ReplyStatus::OutOfRange, Some(NbdError::Invalid)),
        (RequestKind::Trim { fua: false }, ReplyStatus::OutOfRange, Some(NbdError::Invalid)),
        (write, ReplyStatus::NoSpace, Some(NbdError::NoSpace)),
        (write, ReplyStatus::ReadOnly, Some(NbdError::NotPermitted)),
        (RequestKind::Flush, ReplyStatus::Offline, Some(NbdError::ShuttingDown)),
    ] {
        let mut side = Side::chosen(false);
        assert_eq!(side.wire.end(&host(kind, 512, HostPayload::None), status, &mut side.out), Ending::Answered);
        assert_eq!(side.out, simple(Cookie(77), error), "{kind:?} {status:?}");
    }
}

#[test]
fn an_error_cannot_be_told_after_the_head_that_announced_all_data() {
    let mut side = Side::chosen(false);
    let alone = |sent| HostRequest { sent, ..host(RequestKind::Read, 1 << 20, HostPayload::Alone) };
    assert_eq!(side.wire.end(&alone(4096), ReplyStatus::IoError, &mut side.out), Ending::Untellable);
    assert!(side.out.is_empty());
    assert_eq!(side.wire.end(&alone(0), ReplyStatus::IoError, &mut side.out), Ending::Answered);
    assert_eq!(side.out, simple(Cookie(77), Some(NbdError::InputOutput)));
}

#[test]
fn a_range_is_complete_up_to_the_rebuild_frontier_and_degraded_beyond() {
    let state = ArrayExtent { whole: 1000, rest: RestReport { degraded: true, lost: false } };
    let lengths = |offset, length| degraded(state, offset, length).map(|extent| extent.length);
    assert_eq!(lengths(0, 1000), [1000, 0]);
    assert_eq!(lengths(0, 1001), [1000, 1]);
    assert_eq!(lengths(999, 7), [1, 6]);
    assert_eq!(lengths(1000, 7), [0, 7]);
    assert_eq!(lengths(5000, 7), [0, 7]);
    assert_eq!(degraded(state, 0, 1).map(|extent| extent.status), [0, StatusExtent::DEGRADED]);
}
