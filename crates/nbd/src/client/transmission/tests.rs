use super::*;
use crate::client::ChosenContext;
use crate::export::{BlockSizes, MetaContext};
use crate::server;

#[derive(Default)]
struct Table(Vec<Pending>);

impl Table {
    fn of(requests: &[NbdRequest]) -> Self {
        Self(requests.iter().map(|request| Pending::new(*request)).collect())
    }
}

impl PendingTable for Table {
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending> {
        self.0.iter_mut().find(|pending| pending.request().cookie == cookie)
    }
}

fn session(structured: bool) -> ClientSession {
    let names = ["base:allocation", "openraid:degraded"];
    let contexts = names.iter().zip(1..).map(|(name, id)| ChosenContext { id, name: (*name).into() }).collect();
    ClientSession {
        size: Bytes(1 << 30),
        flags: ExportFlags::from_bits(0x0dff).without(ExportFlags::READ_ONLY),
        blocks: Some(BlockSizes::new(512, 4096, 1 << 20).unwrap()),
        structured,
        contexts: if structured { contexts } else { vec![] },
    }
}

fn request(cookie: u64, command: NbdCommand, offset: u64, length: u64) -> NbdRequest {
    NbdRequest { cookie: Cookie(cookie), command, offset: ArrayOffset(offset), length: Bytes(length) }
}

const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const STATUS: NbdCommand = NbdCommand::BlockStatus { one: false };

/// Events until nothing more comes out; data is taken as received.
fn events(structured: bool, requests: &[NbdRequest], bytes: &[u8]) -> Vec<ReplyEvent> {
    let mut client = ClientTransmission::new(session(structured));
    let mut table = Table::of(requests);
    let (mut at, mut all) = (0, Vec::new());
    loop {
        let parsed = client.parse(&bytes[at..], &mut table);
        at += parsed.consumed;
        if let ReplyEvent::Data { remaining, .. } = parsed.event {
            client.payload_received(remaining);
        }
        let stop = matches!(parsed.event, ReplyEvent::Incomplete { .. } | ReplyEvent::Violation(_));
        all.push(parsed.event);
        if stop {
            return all;
        }
    }
}

fn violation(structured: bool, request: NbdRequest, bytes: &[u8]) -> Violation {
    match events(structured, &[request], bytes).pop() {
        Some(ReplyEvent::Violation(violation)) => violation,
        other => panic!("{other:?}"),
    }
}

#[test]
fn simple_replies_end_requests_with_their_result() {
    let requests = [request(1, NbdCommand::Flush, 0, 0), request(2, NbdCommand::Write { fua: false }, 0, 512)];
    let bytes = [
        &b"\x67\x44\x66\x98\0\0\0\x1c\0\0\0\0\0\0\0\x02"[..],
        b"\x67\x44\x66\x98\0\0\0\0\0\0\0\0\0\0\0\x01",
        b"\x67\x44\x66",
    ]
    .concat();
    let expected = [
        ReplyEvent::Done { cookie: Cookie(2), result: Err(NbdError::NoSpace) },
        ReplyEvent::Done { cookie: Cookie(1), result: Ok(()) },
        ReplyEvent::Incomplete { needed: 16 },
    ];
    assert_eq!(events(false, &requests, &bytes), expected);
}

#[test]
fn data_of_a_simple_read_follows_its_header() {
    let bytes = [&server::simple(Cookie(5), None)[..], &[7; 512], &[1, 2, 3]].concat();
    let mut client = ClientTransmission::new(session(false));
    let mut table = Table::of(&[request(5, READ, 4096, 512)]);
    let parsed = client.parse(&bytes[..100], &mut table);
    let event = ReplyEvent::Data { cookie: Cookie(5), offset: ArrayOffset(4096), received: 16..100, remaining: 428 };
    assert_eq!(parsed, ReplyParsed { consumed: 100, event });
    assert_eq!((client.payload_received(400), client.payload_received(28)), (28, 0));
    let parsed = client.parse(&[], &mut table);
    let event = ReplyEvent::Done { cookie: Cookie(5), result: Ok(()) };
    assert_eq!(parsed, ReplyParsed { consumed: 0, event });
}

#[test]
fn a_failed_simple_read_has_no_data() {
    let bytes = server::simple(Cookie(5), Some(NbdError::InputOutput));
    let all = events(false, &[request(5, READ, 0, 512)], &bytes);
    assert_eq!(all[0], ReplyEvent::Done { cookie: Cookie(5), result: Err(NbdError::InputOutput) });
}

#[test]
fn a_structured_read_comes_in_pieces_and_holes() {
    let read = request(5, READ, 4096, 4096);
    let hole = server::chunk_hole(Cookie(5), ArrayOffset(4096), Bytes(3584), false);
    let data = server::chunk_data(Cookie(5), ArrayOffset(7680), Bytes(512), false);
    let bytes = [&hole[..], &data, &[9; 512], &server::chunk_done(Cookie(5))].concat();
    let expected = [
        ReplyEvent::Hole { cookie: Cookie(5), offset: ArrayOffset(4096), length: Bytes(3584) },
        ReplyEvent::Data { cookie: Cookie(5), offset: ArrayOffset(7680), received: 28..540, remaining: 0 },
        ReplyEvent::Done { cookie: Cookie(5), result: Ok(()) },
        ReplyEvent::Incomplete { needed: 16 },
    ];
    assert_eq!(events(true, &[read], &bytes), expected);
    let last = server::chunk_hole(Cookie(5), ArrayOffset(4096), Bytes(4096), true);
    assert_eq!(events(true, &[read], &last)[1], ReplyEvent::Done { cookie: Cookie(5), result: Ok(()) });
}

#[test]
fn errors_have_their_text_and_their_position() {
    let read = request(5, READ, 4096, 4096);
    // By hand: the server's side sends no error at an offset.
    let at_offset = b"\x66\x8e\x33\xef\0\0\x80\x02\0\0\0\0\0\0\0\x05\0\0\0\x11\0\0\0\x05\0\x03bad\0\0\0\0\0\0\x13\x88";
    let mut bytes = at_offset.to_vec();
    server::chunk_error(&mut bytes, Cookie(5), NbdError::NoMemory, "", true);
    let first = ReplyError { error: NbdError::InputOutput, offset: Some(ArrayOffset(5000)), message: 26..29 };
    let second = ReplyError { error: NbdError::NoMemory, offset: None, message: 26..26 };
    let expected = [
        ReplyEvent::Error { cookie: Cookie(5), report: first },
        ReplyEvent::Error { cookie: Cookie(5), report: second },
        ReplyEvent::Done { cookie: Cookie(5), result: Err(NbdError::InputOutput) },
        ReplyEvent::Incomplete { needed: 16 },
    ];
    assert_eq!(events(true, &[read], &bytes), expected);
    assert_eq!(bytes[26..29], *b"bad");
}

#[test]
fn unknown_error_chunks_count_as_errors() {
    let bytes = b"\x66\x8e\x33\xef\0\x01\x80\x77\0\0\0\0\0\0\0\x05\0\0\0\x0a\0\0\0\x05\0\x01!???";
    let all = events(true, &[request(5, NbdCommand::Flush, 0, 0)], bytes);
    assert_eq!(all[1], ReplyEvent::Done { cookie: Cookie(5), result: Err(NbdError::InputOutput) });
}

#[test]
fn extents_come_as_far_as_they_are_there() {
    let status = request(5, STATUS, 0, 4096);
    let mut bytes = Vec::new();
    let extents = [(512, 0), (512, 3), (3072, 0)].map(|(length, status)| StatusExtent { length, status });
    server::chunk_status(&mut bytes, &status, MetaContext::Allocation, extents, false);
    server::chunk_status(&mut bytes, &status, MetaContext::Degraded, [StatusExtent { length: 4096, status: 0 }], true);
    let mut client = ClientTransmission::new(session(true));
    let mut table = Table::of(&[status]);
    let (mut at, mut end, mut seen) = (0, 0, Vec::new());
    loop {
        let parsed = client.parse(&bytes[at..end], &mut table);
        if let ReplyEvent::Extents { context, records, .. } = &parsed.event {
            seen.extend(StatusExtent::from_wire(&bytes[at..][records.clone()]).map(|e| (*context, e.length, e.status)));
        }
        at += parsed.consumed;
        match parsed.event {
            ReplyEvent::Done { result, .. } => break assert_eq!(result, Ok(())),
            ReplyEvent::Incomplete { .. } => end += 1,
            ReplyEvent::Extents { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [(1, 512, 0), (1, 512, 3), (1, 3072, 0), (2, 4096, 0)]);
    assert_eq!(at, bytes.len());
}

#[test]
fn a_read_without_all_its_bytes_is_never_a_success() {
    let read = request(5, READ, 4096, 4096);
    assert_eq!(violation(true, read, &server::chunk_done(Cookie(5))), Violation::Incomplete(0));
    let part = [&server::chunk_data(Cookie(5), ArrayOffset(4096), Bytes(512), true)[..], &[0; 512]].concat();
    assert_eq!(violation(true, read, &part), Violation::Incomplete(512));
}

#[test]
fn data_that_was_not_requested_is_a_violation() {
    let read = request(5, READ, 4096, 4096);
    for (offset, length) in [(0, 4096), (4095, 512), (8192, 1), (4096, 4097), (u64::MAX, 512), (7681, 512)] {
        let data = server::chunk_data(Cookie(5), ArrayOffset(offset), Bytes(length), false);
        assert_eq!(violation(true, read, &data), Violation::OutsideRequest, "{offset} {length}");
        let hole = server::chunk_hole(Cookie(5), ArrayOffset(offset), Bytes(length), false);
        assert_eq!(violation(true, read, &hole), Violation::OutsideRequest, "{offset} {length}");
    }
    let twice = [server::chunk_hole(Cookie(5), ArrayOffset(4096), Bytes(2049), false); 2].concat();
    assert_eq!(violation(true, read, &twice), Violation::OutsideRequest);
}

#[test]
fn replies_that_do_not_fit_are_violations() {
    let read = request(5, READ, 0, 512);
    let flush = request(5, NbdCommand::Flush, 0, 0);
    let status = request(5, STATUS, 0, 512);
    let chunk = |kind: u16, flags: u16, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap();
        let head = [&[0x66, 0x8e, 0x33, 0xef][..], &flags.to_be_bytes(), &kind.to_be_bytes()].concat();
        [&head[..], &5u64.to_be_bytes(), &length.to_be_bytes(), payload].concat()
    };
    assert_eq!(violation(false, flush, &[0; 16]), Violation::BadMagic(0));
    assert_eq!(violation(false, flush, &server::simple(Cookie(6), None)), Violation::UnknownCookie(Cookie(6)));
    assert_eq!(violation(true, flush, &server::chunk_done(Cookie(6))), Violation::UnknownCookie(Cookie(6)));
    assert_eq!(violation(false, flush, &server::chunk_done(Cookie(5))), Violation::NotNegotiated);
    assert_eq!(violation(true, read, &server::simple(Cookie(5), None)), Violation::SimpleReplyNotAllowed);
    assert_eq!(violation(true, status, &server::simple(Cookie(5), None)), Violation::SimpleReplyNotAllowed);
    for kind in [3, 4, 5, 6, 0x7fff] {
        assert_eq!(violation(true, read, &chunk(kind, 1, &[0; 12])), Violation::UnexpectedChunk(kind));
    }
    for kind in [1, 2, 5] {
        assert_eq!(violation(true, flush, &chunk(kind, 1, &[0; 12])), Violation::UnexpectedChunk(kind));
    }
    assert_eq!(violation(true, flush, &chunk(0, 1, &[0])), Violation::ChunkLength(0, 1));
    assert_eq!(violation(true, flush, &chunk(0, 0, &[])), Violation::ChunkLength(0, 0));
    assert_eq!(violation(true, read, &chunk(1, 0, &[0; 8])), Violation::ChunkLength(1, 8));
    assert_eq!(violation(true, read, &chunk(2, 0, &[0; 13])), Violation::ChunkLength(2, 13));
    assert_eq!(violation(true, status, &chunk(5, 0, &[0; 4])), Violation::ChunkLength(5, 4));
    assert_eq!(violation(true, status, &chunk(5, 0, &[0; 16])), Violation::ChunkLength(5, 16));
    assert_eq!(violation(true, status, &chunk(5, 0, &[0; 12])), Violation::WrongContexts);
    assert_eq!(violation(true, status, &chunk(5, 0, &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])), Violation::EmptyExtent);
    let good = chunk(5, 1, &[0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0]);
    assert_eq!(violation(true, status, &good), Violation::WrongContexts, "one of two contexts");
    let first = chunk(5, 0, &[0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0]);
    assert_eq!(violation(true, status, &first.repeat(2)), Violation::WrongContexts);
    assert_eq!(violation(true, flush, &chunk(0x8001, 1, &[0; 5])), Violation::ChunkLength(0x8001, 5));
    assert_eq!(violation(true, flush, &chunk(0x8001, 1, &[0; 6])), Violation::ErrorWithoutError);
    assert_eq!(violation(true, flush, &chunk(0x8001, 1, &[0, 0, 0, 5, 0, 1])), Violation::ChunkLength(0x8001, 6));
    assert_eq!(violation(true, flush, &chunk(0x8002, 1, &[0, 0, 0, 5, 0, 0])), Violation::ChunkLength(0x8002, 6));
    let long = u32::try_from(ERROR_CHUNK_MAX).unwrap() + 1;
    let long_chunk = chunk(0x8001, 1, &vec![1; ERROR_CHUNK_MAX + 1]);
    assert_eq!(violation(true, flush, &long_chunk), Violation::ChunkLength(0x8001, long));
}

#[test]
fn requests_the_server_would_refuse_are_not_sent() {
    let client = ClientTransmission::new(session(true));
    let encode = |command, offset, length| client.encode(&request(1, command, offset, length)).map(|_| ());
    assert_eq!(encode(READ, (1 << 30) - 512, 512), Ok(()));
    assert_eq!(encode(READ, 1 << 30, 512), Err(RequestError::OutOfRange));
    assert_eq!(encode(READ, u64::MAX, 512), Err(RequestError::OutOfRange));
    assert_eq!(encode(READ, 0, 1 << 32), Err(RequestError::OutOfRange));
    assert_eq!(encode(READ, 0, 0), Err(RequestError::Empty));
    assert_eq!(encode(READ, 1, 512), Err(RequestError::Misaligned(512)));
    assert_eq!(encode(READ, 0, (1 << 20) + 512), Err(RequestError::TooLarge(1 << 20)));
    assert_eq!(encode(NbdCommand::Trim { fua: false }, 0, 1 << 30), Ok(()));
    assert_eq!(encode(NbdCommand::Flush, 0, 0), Ok(()));
    assert_eq!(encode(NbdCommand::Flush, 0, 512), Err(RequestError::Empty));

    let plain = ClientSession { flags: ExportFlags::HAS_FLAGS, contexts: vec![], ..session(false) };
    let client = ClientTransmission::new(plain.clone());
    for command in [
        NbdCommand::Read { dont_fragment: true },
        NbdCommand::Write { fua: true },
        NbdCommand::Flush,
        NbdCommand::Trim { fua: false },
        NbdCommand::Cache,
        NbdCommand::WriteZeroes { fua: false, no_hole: false, fast: false },
        STATUS,
    ] {
        assert_eq!(client.encode(&request(1, command, 0, 512)), Err(RequestError::NotOffered), "{command:?}");
    }
    let locked = ClientSession { flags: ExportFlags::READ_ONLY, ..plain };
    let client = ClientTransmission::new(locked);
    let write = request(1, NbdCommand::Write { fua: false }, 0, 512);
    assert_eq!(client.encode(&write), Err(RequestError::ReadOnly));
}

#[test]
fn goodbye_is_a_request_without_range() {
    let expected = [&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 2][..], &[0; 20]].concat();
    assert_eq!(ClientTransmission::disconnect(), expected[..]);
}

#[test]
#[should_panic(expected = "412 bytes of the last data are still outstanding")]
fn data_cannot_be_parsed_as_a_reply() {
    let bytes = [&server::simple(Cookie(5), None)[..], &[7; 100]].concat();
    events_without_receiving(&bytes);
}

fn events_without_receiving(bytes: &[u8]) {
    let mut client = ClientTransmission::new(session(false));
    let mut table = Table::of(&[request(5, READ, 0, 512)]);
    let parsed = client.parse(bytes, &mut table);
    client.parse(&bytes[parsed.consumed..], &mut table);
}
