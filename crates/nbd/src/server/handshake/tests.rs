use super::*;
use crate::export::{BlockSizes, ContextSet, MetaContext};
use crate::flags::ExportFlags;
use crate::limits::{QUERIES_MAX, STRING_MAX};
use openraid_units::Bytes;

const REPLY_MAGIC: [u8; 8] = [0x00, 0x03, 0xe8, 0x89, 0x04, 0x55, 0x65, 0xa9];

/// Eight bytes on the wire: 00 00 00 11 22 33 44 55.
const SIZE: u64 = 0x0011_2233_4455;

fn export(name: &str) -> ExportInfo {
    ExportInfo {
        name: name.into(),
        description: "eight disks".into(),
        size: Bytes(SIZE),
        flags: ExportFlags::from_bits(0x0dff).without(ExportFlags::READ_ONLY),
        blocks: BlockSizes::new(512, 65536, 1 << 25).unwrap(),
        contexts: ContextSet::ALL,
        refused: None,
    }
}

fn opt(option: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn reply(option: u32, kind: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = REPLY_MAGIC.to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn counted(text: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text);
    bytes
}

fn go_payload(name: &[u8], infos: &[u16]) -> Vec<u8> {
    let mut bytes = counted(name);
    bytes.extend(u16::try_from(infos.len()).unwrap().to_be_bytes());
    infos.iter().for_each(|info| bytes.extend(info.to_be_bytes()));
    bytes
}

fn context_payload(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut bytes = counted(name);
    bytes.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    queries.iter().for_each(|query| bytes.extend(counted(query)));
    bytes
}

struct Peer {
    handshake: Handshake,
    exports: Vec<ExportInfo>,
}

impl Peer {
    fn new(exports: Vec<ExportInfo>, policy: Policy) -> Self {
        let mut greeting = Vec::new();
        let mut handshake = Handshake::start(policy, &mut greeting);
        assert_eq!(greeting, *b"NBDMAGICIHAVEOPT\x00\x03");
        let step = handshake.receive(&[0, 0, 0, 3], &exports, &mut greeting);
        assert_eq!(step, HandshakeStep { consumed: 4, event: HandshakeEvent::NeedMore });
        Self { handshake, exports }
    }

    fn plain() -> Self {
        Self::new(vec![export("disk")], Policy::default())
    }

    fn send(&mut self, bytes: &[u8]) -> (HandshakeEvent, Vec<u8>) {
        let mut out = Vec::new();
        let step = self.handshake.receive(bytes, &self.exports, &mut out);
        if !matches!(step.event, HandshakeEvent::Close(_)) {
            assert_eq!(step.consumed, bytes.len());
        }
        (step.event, out)
    }

    /// The kind of the last reply of an option, which must not end the negotiation.
    fn verdict(&mut self, option: u32, payload: &[u8]) -> u32 {
        let (event, out) = self.send(&opt(option, payload));
        assert_eq!(event, HandshakeEvent::Replied);
        let mut rest = &out[..];
        loop {
            let (head, tail) = rest.split_at(20);
            assert_eq!((&head[..8], &head[8..12]), (&REPLY_MAGIC[..], &option.to_be_bytes()[..]));
            let length = u32::from_be_bytes(head[16..20].try_into().unwrap()) as usize;
            rest = &tail[length..];
            if rest.is_empty() {
                return u32::from_be_bytes(head[12..16].try_into().unwrap());
            }
        }
    }
}

const UNSUP: u32 = 0x8000_0001;
const POLICY: u32 = 0x8000_0002;
const INVALID: u32 = 0x8000_0003;
const UNKNOWN: u32 = 0x8000_0006;
const SHUTDOWN: u32 = 0x8000_0007;
const TOO_BIG: u32 = 0x8000_0009;

#[test]
fn go_is_answered_with_export_block_sizes_and_ack() {
    let mut peer = Peer::plain();
    let (event, out) = peer.send(&opt(7, &go_payload(b"disk", &[3, 1, 2, 900])));
    let mut expected = reply(7, 3, &[0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x0d, 0x7d]);
    expected.extend(reply(7, 3, b"\x00\x01disk"));
    expected.extend(reply(7, 3, b"\x00\x02eight disks"));
    expected.extend(reply(7, 3, &[0, 3, 0, 0, 2, 0, 0, 1, 0, 0, 2, 0, 0, 0]));
    expected.extend(reply(7, 1, &[]));
    assert_eq!(out, expected);
    let HandshakeEvent::Ready(session) = event else { panic!("{event:?}") };
    assert_eq!((session.export, session.size, session.structured), (0, Bytes(SIZE), false));
    assert!(session.contexts.is_empty() && !session.flags.contains(ExportFlags::DONT_FRAGMENT));
}

#[test]
fn info_answers_like_go_and_the_negotiation_continues() {
    let mut peer = Peer::plain();
    let (_, info) = peer.send(&opt(6, &go_payload(b"disk", &[3])));
    let (event, go) = peer.send(&opt(7, &go_payload(b"disk", &[3])));
    assert!(matches!(event, HandshakeEvent::Ready(_)));
    assert_eq!(info.len(), go.len());
    assert_eq!(info[11], 6);
    assert_eq!(go[11], 7);
    assert_eq!(info[12..32], go[12..32]);
}

#[test]
fn export_name_is_answered_with_size_flags_and_padding_unless_renounced() {
    let mut peer = Peer::plain();
    let (event, out) = peer.send(&opt(1, b"disk"));
    assert!(matches!(event, HandshakeEvent::Ready(_)));
    assert_eq!(out, [0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x0d, 0x7d]);

    let mut out = Vec::new();
    let exports = [export("disk")];
    let mut handshake = Handshake::start(Policy::default(), &mut out);
    let _ = handshake.receive(&[0, 0, 0, 1], &exports, &mut out);
    out.clear();
    let step = handshake.receive(&opt(1, b"disk"), &exports, &mut out);
    assert!(matches!(step.event, HandshakeEvent::Ready(_)));
    assert_eq!(out.len(), 8 + 2 + 124);
    assert_eq!(out[10..], [0; 124]);
}

#[test]
fn the_empty_name_means_the_only_export() {
    assert!(matches!(Peer::plain().send(&opt(1, b"")).0, HandshakeEvent::Ready(_)));
    assert!(matches!(Peer::plain().send(&opt(7, &go_payload(b"", &[]))).0, HandshakeEvent::Ready(_)));
    let mut two = Peer::new(vec![export("a"), export("b")], Policy::default());
    assert_eq!(two.verdict(7, &go_payload(b"", &[])), UNKNOWN);
    let mut named = Peer::new(vec![export("a"), export("")], Policy::default());
    let (event, _) = named.send(&opt(7, &go_payload(b"", &[])));
    assert!(matches!(event, HandshakeEvent::Ready(NbdSession { export: 1, .. })), "{event:?}");
}

#[test]
fn an_unknown_export_is_an_error_for_go_and_the_end_for_export_name() {
    let mut peer = Peer::plain();
    assert_eq!(peer.verdict(6, &go_payload(b"no", &[])), UNKNOWN);
    assert_eq!(peer.verdict(7, &go_payload(b"no", &[])), UNKNOWN);
    assert_eq!(peer.send(&opt(1, b"no")), (HandshakeEvent::Close(CloseReason::ExportNameRefused), vec![]));
}

#[test]
fn a_refused_export_is_not_listed_and_its_clients_are_told_why() {
    let refused = ExportInfo { refused: Some("writes were lost".into()), ..export("lost") };
    let mut peer = Peer::new(vec![refused.clone(), export("disk")], Policy::default());
    for option in [6, 7] {
        let (event, out) = peer.send(&opt(option, &go_payload(b"lost", &[])));
        assert_eq!((event, out), (HandshakeEvent::Replied, reply(option, 0x8000_0002, b"writes were lost")));
    }
    let (_, listed) = peer.send(&opt(3, &[]));
    let of_disk = [counted(b"disk"), b"eight disks".to_vec()].concat();
    assert_eq!(listed, [reply(3, 2, &of_disk), reply(3, 1, &[])].concat());
    assert_eq!(peer.send(&opt(1, b"lost")).0, HandshakeEvent::Close(CloseReason::ExportNameRefused));
    // Also by the empty name, which means the only export.
    let mut only = Peer::new(vec![refused], Policy::default());
    assert_eq!(only.send(&opt(7, &go_payload(b"", &[]))).1, reply(7, 0x8000_0002, b"writes were lost"));
}

#[test]
fn malformed_options_are_invalid_and_the_next_one_is_understood() {
    let mut peer = Peer::plain();
    for payload in [&b""[..], b"\0\0\0", b"\0\0\0\x05disk", b"\xff\xff\xff\xff", b"\0\0\0\x04disk", b"\0\0\0\x04disk\0"]
    {
        assert_eq!(peer.verdict(7, payload), INVALID, "{payload:?}");
    }
    assert_eq!(peer.verdict(7, &[go_payload(b"disk", &[]), vec![0]].concat()), INVALID);
    assert_eq!(peer.verdict(7, b"\0\0\0\x04disk\0\x02\0\x03"), INVALID);
    assert_eq!(peer.verdict(7, &go_payload(b"di\xffk", &[])), INVALID);
    assert_eq!(peer.verdict(7, &go_payload(b"di\0k", &[])), INVALID);
    assert_eq!(peer.verdict(7, &go_payload(&[b'a'; STRING_MAX + 1], &[])), INVALID);
    assert_eq!(peer.verdict(7, &go_payload(&[b'a'; STRING_MAX], &[])), UNKNOWN);
    assert_eq!(peer.verdict(3, b"x"), INVALID);
    assert_eq!(peer.verdict(5, b"x"), INVALID);
    assert_eq!(peer.verdict(8, b"x"), INVALID);
    assert!(matches!(peer.send(&opt(7, &go_payload(b"disk", &[]))).0, HandshakeEvent::Ready(_)));
}

#[test]
fn unknown_options_tls_and_extended_headers_are_refused_and_the_session_continues() {
    let mut peer = Peer::plain();
    for option in [0, 4, 5, 11, 12, 0x7fff_ffff, u32::MAX] {
        assert_eq!(peer.verdict(option, &[]), UNSUP, "option {option}");
    }
    let policy = Policy { list: false, start_tls: StartTls::Forbidden };
    let mut strict = Peer::new(vec![export("disk")], policy);
    assert_eq!(strict.verdict(5, &[]), POLICY);
    assert_eq!(strict.verdict(3, &[]), POLICY);
    assert!(matches!(strict.send(&opt(7, &go_payload(b"disk", &[]))).0, HandshakeEvent::Ready(_)));
}

#[test]
fn list_names_every_export_with_its_description() {
    let mut peer = Peer::new(vec![export("a"), export("bb")], Policy::default());
    let (event, out) = peer.send(&opt(3, &[]));
    assert_eq!(event, HandshakeEvent::Replied);
    let expected =
        [reply(3, 2, b"\0\0\0\x01aeight disks"), reply(3, 2, b"\0\0\0\x02bbeight disks"), reply(3, 1, b"")].concat();
    assert_eq!(out, expected);
}

#[test]
fn abort_is_acknowledged_whatever_it_carries() {
    let (event, out) = Peer::plain().send(&opt(2, b"bye"));
    assert_eq!(event, HandshakeEvent::Close(CloseReason::Aborted));
    assert_eq!(out, reply(2, 1, &[]));
}

#[test]
fn structured_replies_bring_dont_fragment() {
    let mut peer = Peer::plain();
    assert_eq!(peer.verdict(8, &[]), 1);
    let (event, _) = peer.send(&opt(7, &go_payload(b"disk", &[])));
    let HandshakeEvent::Ready(session) = event else { panic!("{event:?}") };
    assert!(session.structured && session.flags.contains(ExportFlags::DONT_FRAGMENT));
}

#[test]
fn contexts_are_listed_by_name_and_by_namespace() {
    let mut peer = Peer::plain();
    assert_eq!(peer.verdict(9, &context_payload(b"disk", &[])), INVALID, "needs structured replies");
    assert_eq!(peer.verdict(8, &[]), 1);
    let base = reply(9, 4, b"\0\0\0\0base:allocation");
    let degraded = reply(9, 4, b"\0\0\0\0openraid:degraded");
    let ack = reply(9, 1, b"");
    let mut listed = |queries: &[&[u8]]| peer.send(&opt(9, &context_payload(b"disk", queries))).1;
    assert_eq!(listed(&[]), [&base[..], &degraded, &ack].concat());
    assert_eq!(listed(&[b"base:"]), [&base[..], &ack].concat());
    assert_eq!(listed(&[b"openraid:", b"openraid:degraded"]), [&degraded[..], &ack].concat());
    assert_eq!(listed(&[b"qemu:", b"base", b"", b":", b"base:allocation2"]), ack);
}

#[test]
fn chosen_contexts_hold_for_their_export_only() {
    let mut peer = Peer::new(vec![export("a"), export("b")], Policy::default());
    assert_eq!(peer.verdict(8, &[]), 1);
    let (_, out) = peer.send(&opt(10, &context_payload(b"a", &[b"base:allocation", b"base:", b"x-y:z"])));
    assert_eq!(out, [reply(10, 4, b"\0\0\0\x01base:allocation"), reply(10, 1, b"")].concat());
    let (event, _) = peer.send(&opt(7, &go_payload(b"a", &[])));
    let HandshakeEvent::Ready(session) = event else { panic!("{event:?}") };
    assert_eq!(session.contexts, ContextSet::NONE.with(MetaContext::Allocation));

    let mut other = Peer::new(vec![export("a"), export("b")], Policy::default());
    assert_eq!(other.verdict(8, &[]), 1);
    assert_eq!(other.verdict(10, &context_payload(b"a", &[b"base:allocation"])), 1);
    let (event, _) = other.send(&opt(7, &go_payload(b"b", &[])));
    let HandshakeEvent::Ready(session) = event else { panic!("{event:?}") };
    assert!(session.contexts.is_empty());
}

#[test]
fn a_failing_choice_of_contexts_drops_the_earlier_one() {
    for (bad, verdict) in [
        (context_payload(b"no", &[]), UNKNOWN),
        (b"\0\0\0\x04disk\0\0\0\x01\0\0\0\x09abc".to_vec(), INVALID),
        ([context_payload(b"disk", &[b"base:allocation"]), vec![0]].concat(), INVALID),
        (context_payload(b"disk", &vec![&b"a:b"[..]; QUERIES_MAX as usize + 1]), TOO_BIG),
        (vec![0; OPTION_PAYLOAD_MAX + 1], TOO_BIG),
        (context_payload(b"disk", &[&[b'a'; STRING_MAX + 1]]), INVALID),
    ] {
        let mut peer = Peer::plain();
        assert_eq!(peer.verdict(8, &[]), 1);
        assert_eq!(peer.verdict(10, &context_payload(b"disk", &[b"base:allocation"])), 1);
        assert_eq!(peer.verdict(10, &bad), verdict);
        let (event, _) = peer.send(&opt(7, &go_payload(b"disk", &[])));
        let HandshakeEvent::Ready(session) = event else { panic!("{event:?}") };
        assert!(session.contexts.is_empty());
    }
}

#[test]
fn a_refused_option_leaves_no_half_of_an_answer() {
    let mut peer = Peer::plain();
    assert_eq!(peer.verdict(8, &[]), 1);
    let bad = [context_payload(b"disk", &[b"base:allocation"]), vec![0]].concat();
    let (_, out) = peer.send(&opt(10, &bad));
    assert_eq!(u32::from_be_bytes(out[12..16].try_into().unwrap()), INVALID);
}

#[test]
fn unknown_client_flags_close_the_connection() {
    for flags in [4u32, 1 << 31, 0x4948_4156] {
        let mut out = Vec::new();
        let mut handshake = Handshake::start(Policy::default(), &mut out);
        out.clear();
        let step = handshake.receive(&flags.to_be_bytes(), &[], &mut out);
        assert_eq!(step.event, HandshakeEvent::Close(CloseReason::UnknownClientFlags(flags)));
        assert!(out.is_empty());
    }
}

#[test]
fn a_wrong_magic_closes_the_connection() {
    let (event, out) = Peer::plain().send(b"GET / HTTP/1.1\r\n\r\n");
    let magic = u64::from_be_bytes(*b"GET / HT");
    assert_eq!((event, out), (HandshakeEvent::Close(CloseReason::BadOptionMagic(magic)), vec![]));
}

#[test]
fn long_payloads_are_skipped_without_being_kept() {
    let mut peer = Peer::plain();
    let long = u32::try_from(OPTION_PAYLOAD_MAX + 1).unwrap();
    let mut head = opt(7, &[]);
    head[12..16].copy_from_slice(&long.to_be_bytes());
    assert_eq!(peer.send(&head).0, HandshakeEvent::NeedMore);
    assert_eq!(peer.send(&[7; OPTION_PAYLOAD_MAX]).0, HandshakeEvent::NeedMore);
    assert!(peer.handshake.held_bytes() <= 64);
    let (event, out) = peer.send(&[7]);
    assert_eq!((event, &out[12..16]), (HandshakeEvent::Replied, &TOO_BIG.to_be_bytes()[..]));
    assert!(matches!(peer.send(&opt(7, &go_payload(b"disk", &[]))).0, HandshakeEvent::Ready(_)));
}

#[test]
fn absurd_lengths_close_the_connection() {
    for (option, length) in [(7, OPTION_SKIP_MAX + 1), (999, u32::MAX)] {
        let mut head = opt(option, &[]);
        head[12..16].copy_from_slice(&length.to_be_bytes());
        let event = Peer::plain().send(&head).0;
        assert_eq!(event, HandshakeEvent::Close(CloseReason::OptionTooLong(option, length)));
    }
}

#[test]
fn announced_payload_takes_memory_only_as_it_arrives() {
    let mut peer = Peer::plain();
    let mut head = opt(7, &[]);
    head[12..16].copy_from_slice(&u32::try_from(OPTION_PAYLOAD_MAX).unwrap().to_be_bytes());
    assert_eq!(peer.send(&head).0, HandshakeEvent::NeedMore);
    assert!(peer.handshake.held_bytes() <= 64, "{}", peer.handshake.held_bytes());
    for sent in 1..OPTION_PAYLOAD_MAX {
        assert_eq!(peer.send(&[0]).0, HandshakeEvent::NeedMore);
        assert!(peer.handshake.held_bytes() <= (2 * sent).clamp(64, OPTION_PAYLOAD_MAX));
    }
}

#[test]
fn endless_negotiation_is_ended() {
    let mut peer = Peer::plain();
    for _ in 0..OPTIONS_MAX {
        assert_eq!(peer.verdict(8, &[]), 1);
    }
    assert_eq!(peer.send(&opt(8, &[])).0, HandshakeEvent::Close(CloseReason::TooManyOptions));
}

#[test]
fn one_call_answers_one_option_and_hands_back_what_follows_go() {
    let mut peer = Peer::plain();
    let first = opt(8, &[]);
    let second = opt(7, &go_payload(b"disk", &[]));
    let all = [&first[..], &second, b"request"].concat();
    let mut out = Vec::new();
    let step = peer.handshake.receive(&all, &peer.exports, &mut out);
    assert_eq!(step, HandshakeStep { consumed: first.len(), event: HandshakeEvent::Replied });
    let step = peer.handshake.receive(&all[first.len()..], &peer.exports, &mut out);
    assert!(matches!(step.event, HandshakeEvent::Ready(_)));
    assert_eq!(step.consumed, second.len());
}

#[test]
fn shutting_down_refuses_everything_but_goodbye() {
    let mut peer = Peer::plain();
    peer.handshake.shut_down();
    assert_eq!(peer.verdict(7, &go_payload(b"disk", &[])), SHUTDOWN);
    assert_eq!(peer.verdict(3, &[]), SHUTDOWN);
    assert_eq!(peer.send(&opt(2, &[])).0, HandshakeEvent::Close(CloseReason::Aborted));
    let mut peer = Peer::plain();
    peer.handshake.shut_down();
    assert_eq!(peer.send(&opt(1, b"disk")).0, HandshakeEvent::Close(CloseReason::ExportNameRefused));
}

#[test]
#[should_panic(expected = "must be checked before it is offered")]
fn an_export_that_breaks_the_protocol_is_a_bug() {
    let mut peer = Peer::new(vec![export(&"a".repeat(5000))], Policy::default());
    peer.send(&opt(3, &[]));
}
