use super::*;
use crate::export::{ContextSet, MetaContext};
use crate::request::encode_raw;

const SIZE: u64 = 1 << 30;
const MAXIMUM: u32 = 1 << 20;

fn session() -> NbdSession {
    let all = ExportFlags::from_bits(0x0dff).without(ExportFlags::READ_ONLY);
    NbdSession {
        export: 0,
        size: Bytes(SIZE),
        flags: all,
        blocks: BlockSizes::new(512, 4096, MAXIMUM).unwrap(),
        structured: true,
        contexts: ContextSet::NONE.with(MetaContext::Allocation),
    }
}

fn parser(session: &NbdSession) -> Transmission {
    Transmission::new(session, PayloadTuning { inline_below: 8192, wait_for_small: true })
}

fn raw(flags: u16, kind: u16, offset: u64, length: u32) -> Vec<u8> {
    encode_raw(flags, kind, Cookie(77), offset, length).to_vec()
}

fn one(session: &NbdSession, flags: u16, kind: u16, offset: u64, length: u32) -> TransmissionEvent {
    let mut parser = parser(session);
    parser.parse(&raw(flags, kind, offset, length)).event
}

fn reason(event: &TransmissionEvent) -> (Reason, NbdError) {
    match event {
        TransmissionEvent::Refused(refusal) => {
            assert_eq!(refusal.cookie, Cookie(77));
            (refusal.reason, refusal.error)
        }
        other => panic!("accepted: {other:?}"),
    }
}

fn command(event: &TransmissionEvent) -> NbdCommand {
    match event {
        TransmissionEvent::Request(request, RequestPayload::None) => request.command,
        other => panic!("not a request without payload: {other:?}"),
    }
}

#[test]
fn every_command_is_recognised_with_its_flags() {
    let s = session();
    let accepted = |flags, kind| command(&one(&s, flags, kind, 512, 1024));
    assert_eq!(accepted(0, 0), NbdCommand::Read { dont_fragment: false });
    assert_eq!(accepted(4, 0), NbdCommand::Read { dont_fragment: true });
    assert_eq!(accepted(1, 0), NbdCommand::Read { dont_fragment: false }, "FUA is allowed everywhere");
    assert_eq!(accepted(0, 4), NbdCommand::Trim { fua: false });
    assert_eq!(accepted(1, 4), NbdCommand::Trim { fua: true });
    assert_eq!(accepted(0, 5), NbdCommand::Cache);
    assert_eq!(accepted(0x13, 6), NbdCommand::WriteZeroes { fua: true, no_hole: true, fast: true });
    assert_eq!(accepted(0, 6), NbdCommand::WriteZeroes { fua: false, no_hole: false, fast: false });
    assert_eq!(accepted(8, 7), NbdCommand::BlockStatus { one: true });
    assert_eq!(command(&one(&s, 1, 3, 0, 0)), NbdCommand::Flush);
    assert_eq!(one(&s, 0, 2, 0, 0), TransmissionEvent::Disconnect);
    assert_eq!(one(&s, 0xffff, 2, 9, 9), TransmissionEvent::Disconnect);
}

#[test]
fn requests_carry_cookie_offset_and_length() {
    let s = session();
    let TransmissionEvent::Request(request, _) = one(&s, 0, 0, SIZE - 512, 512) else { panic!() };
    let expected = NbdRequest {
        cookie: Cookie(77),
        command: NbdCommand::Read { dont_fragment: false },
        offset: ArrayOffset(SIZE - 512),
        length: Bytes(512),
    };
    assert_eq!(request, expected);
}

#[test]
fn unknown_commands_are_invalid_and_have_no_payload() {
    let s = session();
    for kind in [8, 9, 0xff, 0xffff] {
        let mut parser = parser(&s);
        let bytes = [raw(0, kind, 0, 512), raw(0, 0, 0, 512)].concat();
        let first = parser.parse(&bytes);
        assert_eq!(reason(&first.event), (Reason::UnknownCommand(kind), NbdError::Invalid));
        let second = parser.parse(&bytes[first.consumed..]);
        assert!(matches!(second.event, TransmissionEvent::Request(..)));
    }
}

#[test]
fn flags_of_other_commands_are_invalid() {
    let s = session();
    for (kind, valid) in [(0u16, 0x05u16), (1, 0x01), (3, 0x01), (4, 0x01), (5, 0x01), (6, 0x13), (7, 0x09)] {
        let length = if kind == 3 { 0 } else { 512 };
        for bit in 0..16 {
            let flag = 1 << bit;
            let event = one(&s, flag, kind, 0, length);
            if valid & flag == 0 {
                assert_eq!(reason(&event), (Reason::BadFlags(flag), NbdError::Invalid), "command {kind}");
            } else {
                assert!(!matches!(event, TransmissionEvent::Refused(_)), "command {kind} flag {flag:#x}");
            }
        }
    }
}

#[test]
fn a_command_that_was_not_advertised_is_invalid() {
    let plain = NbdSession { flags: ExportFlags::HAS_FLAGS, contexts: ContextSet::NONE, ..session() };
    for kind in [4, 5, 6] {
        assert_eq!(reason(&one(&plain, 0, kind, 0, 512)), (Reason::NotAdvertised, NbdError::Invalid));
    }
    assert_eq!(reason(&one(&plain, 0, 3, 0, 0)).0, Reason::NotAdvertised);
    assert_eq!(reason(&one(&plain, 0, 7, 0, 512)), (Reason::NoContext, NbdError::Invalid));
    assert_eq!(reason(&one(&plain, 1, 1, 0, 512)), (Reason::BadFlags(1), NbdError::Invalid));
    assert_eq!(reason(&one(&plain, 4, 0, 0, 512)), (Reason::BadFlags(4), NbdError::Invalid));
    let no_fast = NbdSession { flags: ExportFlags::WRITE_ZEROES, ..session() };
    assert_eq!(reason(&one(&no_fast, 0x10, 6, 0, 512)), (Reason::BadFlags(0x10), NbdError::Invalid));
    assert!(matches!(one(&no_fast, 2, 6, 0, 512), TransmissionEvent::Request(..)));
}

#[test]
fn a_read_only_export_permits_reads_only() {
    let s = NbdSession { flags: session().flags.with(ExportFlags::READ_ONLY), ..session() };
    for kind in [1, 4, 6] {
        assert_eq!(reason(&one(&s, 0, kind, 0, 512)), (Reason::ReadOnly, NbdError::NotPermitted));
    }
    for kind in [0, 5, 7] {
        assert!(matches!(one(&s, 0, kind, 0, 512), TransmissionEvent::Request(..)));
    }
    assert!(matches!(one(&s, 0, 3, 0, 0), TransmissionEvent::Request(..)));
}

#[test]
fn ranges_end_inside_the_export() {
    let s = session();
    for (kind, error) in [
        (0, NbdError::Invalid),
        (1, NbdError::NoSpace),
        (4, NbdError::Invalid),
        (5, NbdError::Invalid),
        (6, NbdError::NoSpace),
        (7, NbdError::Invalid),
    ] {
        for (offset, length) in [
            (SIZE, 512),
            (SIZE - 512, 1024),
            (u64::MAX - 511, 512),
            (u64::MAX, 1),
            (u64::MAX - 511, u32::MAX - 511),
            (1 << 63, 512),
            (0, 0x4000_0200),
        ] {
            if kind == 1 && length > PAYLOAD_HARD_MAX {
                continue;
            }
            assert_eq!(reason(&one(&s, 0, kind, offset, length)), (Reason::OutOfRange, error), "{kind} {offset:#x}");
        }
        if kind != 1 {
            assert!(matches!(one(&s, 0, kind, SIZE - 512, 512), TransmissionEvent::Request(..)));
        }
    }
}

#[test]
fn empty_misaligned_and_oversize_requests_are_invalid() {
    let s = session();
    for kind in [0, 1, 4, 5, 6, 7] {
        assert_eq!(reason(&one(&s, 0, kind, 512, 0)), (Reason::Empty, NbdError::Invalid));
        assert_eq!(reason(&one(&s, 0, kind, 1, 512)), (Reason::Misaligned, NbdError::Invalid));
        assert_eq!(reason(&one(&s, 0, kind, 512, 513)), (Reason::Misaligned, NbdError::Invalid));
    }
    for kind in [0, 1] {
        assert_eq!(reason(&one(&s, 0, kind, 0, MAXIMUM + 512)), (Reason::TooLarge, NbdError::Invalid));
    }
    for kind in [4, 5, 6, 7] {
        assert!(matches!(one(&s, 0, kind, 0, 1 << 30), TransmissionEvent::Request(..)), "no payload, no limit");
    }
    assert!(matches!(one(&s, 0, 0, 0, MAXIMUM), TransmissionEvent::Request(..)));
}

#[test]
fn a_flush_has_no_range() {
    let s = session();
    assert_eq!(reason(&one(&s, 0, 3, 512, 0)), (Reason::FlushWithRange, NbdError::Invalid));
    assert_eq!(reason(&one(&s, 0, 3, 0, 512)), (Reason::FlushWithRange, NbdError::Invalid));
}

#[test]
fn small_payload_stays_in_the_buffer_and_large_payload_is_announced() {
    let s = session();
    let mut parser = parser(&s);
    let bytes = [raw(0, 1, 0, 512), vec![5; 512], raw(0, 1, 0, 8192), vec![6; 100]].concat();
    let first = parser.parse(&bytes);
    assert_eq!(first.consumed, 28 + 512);
    assert!(
        matches!(&first.event, TransmissionEvent::Request(_, RequestPayload::Inline(range)) if *range == (28..540))
    );
    let second = parser.parse(&bytes[540..]);
    assert_eq!(second.consumed, 128);
    let TransmissionEvent::Request(_, payload) = second.event else { panic!() };
    assert_eq!(payload, RequestPayload::Streaming { received: 28..128, remaining: 8092 });
    assert_eq!((parser.payload_received(92), parser.payload_received(8000)), (8000, 0));
    assert_eq!(parser.parse(&[]).event, TransmissionEvent::Incomplete { needed: 28 });
}

#[test]
fn part_of_a_small_payload_is_waited_for_or_announced() {
    let s = session();
    let bytes = [raw(0, 1, 0, 512), vec![5; 511]].concat();
    let parsed = parser(&s).parse(&bytes);
    assert_eq!(parsed, Parsed { consumed: 0, event: TransmissionEvent::Incomplete { needed: 540 } });
    let mut eager = Transmission::new(&s, PayloadTuning { inline_below: 8192, wait_for_small: false });
    let TransmissionEvent::Request(_, payload) = eager.parse(&bytes).event else { panic!() };
    assert_eq!(payload, RequestPayload::Streaming { received: 28..539, remaining: 1 });
    assert_eq!((eager.payload_outstanding(), eager.buffer_min()), (1, 28));
}

#[test]
#[should_panic(expected = "8064 bytes of the last payload are still outstanding")]
fn payload_cannot_be_parsed_as_a_request() {
    let s = session();
    let mut parser = parser(&s);
    let parsed = parser.parse(&[raw(0, 1, 0, 8192), vec![0; 128]].concat());
    assert_eq!(parsed.consumed, 156);
    parser.parse(&[]);
}

#[test]
#[should_panic(expected = "9 bytes received of 8 outstanding")]
fn more_payload_than_announced_is_a_bug() {
    let s = session();
    let mut parser = parser(&s);
    parser.parse(&[raw(0, 1, 0, 8192), vec![0; 8184]].concat());
    parser.payload_received(9);
}

#[test]
fn payload_of_refused_writes_is_skipped_however_it_arrives() {
    let s = session();
    let cases = [(0, MAXIMUM + 512), (SIZE, 512), (1, 512), (SIZE, PAYLOAD_HARD_MAX)];
    for (offset, length) in cases {
        for first_part in [0, 1, 300, 512] {
            let mut parser = parser(&s);
            // A payload that looks like requests must not be taken for them.
            let payload = raw(0, 2, 0, 0).repeat(to_usize(length).div_ceil(28))[..to_usize(length)].to_vec();
            let parsed = parser.parse(&[&raw(0, 1, offset, length)[..], &payload[..first_part]].concat());
            assert!(matches!(parsed.event, TransmissionEvent::Refused(_)));
            assert_eq!(parsed.consumed, 28 + first_part);
            let rest = [&payload[first_part..], &raw(0, 0, 0, 512)].concat();
            let half = rest.len() / 3;
            let parsed = parser.parse(&rest[..half]);
            let mut at = parsed.consumed;
            assert!(matches!(parsed.event, TransmissionEvent::Incomplete { .. }));
            let parsed = parser.parse(&rest[at..]);
            at += parsed.consumed;
            assert!(matches!(parsed.event, TransmissionEvent::Request(..)), "{parsed:?}");
            assert_eq!(at, rest.len());
        }
    }
}

#[test]
fn a_monstrous_write_closes_the_connection_and_a_monstrous_read_does_not() {
    let s = session();
    for length in [PAYLOAD_HARD_MAX + 1, u32::MAX] {
        assert_eq!(one(&s, 0, 1, 0, length), TransmissionEvent::Fatal(Fatal::PayloadTooLarge(length)));
        assert!(matches!(one(&s, 0, 0, 0, length), TransmissionEvent::Refused(_)));
    }
}

#[test]
fn a_wrong_magic_closes_the_connection() {
    let mut bytes = raw(0, 0, 0, 512);
    bytes[0] = 0x26;
    let parsed = parser(&session()).parse(&bytes);
    assert_eq!(parsed, Parsed { consumed: 0, event: TransmissionEvent::Fatal(Fatal::BadMagic(0x2660_9513)) });
}

#[test]
fn many_requests_come_out_of_one_buffer() {
    let s = session();
    let mut parser = parser(&s);
    let mut bytes = Vec::new();
    for n in 0..200u64 {
        bytes.extend(encode_raw(0, u16::from(n % 2 == 0), Cookie(n), n * 512, 512));
        if n % 2 == 0 {
            bytes.extend([u8::try_from(n).unwrap(); 512]);
        }
    }
    bytes.truncate(bytes.len() - 5);
    let mut at = 0;
    for n in 0..199 {
        let parsed = parser.parse(&bytes[at..]);
        let TransmissionEvent::Request(request, payload) = parsed.event else { panic!() };
        assert_eq!(request.cookie, Cookie(n));
        if let RequestPayload::Inline(range) = payload {
            assert_eq!(bytes[at..][range], [u8::try_from(n).unwrap(); 512]);
        }
        at += parsed.consumed;
    }
    let parsed = parser.parse(&bytes[at..]);
    assert_eq!(parsed, Parsed { consumed: 0, event: TransmissionEvent::Incomplete { needed: 28 } });
    assert_eq!(bytes.len() - at, 23);
}

#[test]
fn minimum_block_sizes_are_enforced_to_their_unit() {
    for minimum in [1u32, 2, 512, 4096, 65536] {
        let blocks = BlockSizes::new(minimum, minimum.max(4096), 1 << 25).unwrap();
        let s = NbdSession { blocks, ..session() };
        let unit = u64::from(minimum);
        assert!(matches!(one(&s, 0, 0, 3 * unit, minimum), TransmissionEvent::Request(..)));
        if minimum > 1 {
            assert_eq!(reason(&one(&s, 0, 0, 3 * unit + unit / 2, minimum)).0, Reason::Misaligned);
            assert_eq!(reason(&one(&s, 0, 0, unit, minimum + minimum / 2)).0, Reason::Misaligned);
        }
    }
}
