use super::*;

const REPLY: [u8; 8] = [0x00, 0x03, 0xe8, 0x89, 0x04, 0x55, 0x65, 0xa9];

fn reply(option: u32, kind: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&REPLY[..], &option.to_be_bytes(), &kind.to_be_bytes(), &length.to_be_bytes(), payload].concat()
}

fn use_export(name: &str, structured: bool, contexts: &[&str]) -> ClientOptions {
    let contexts = contexts.iter().map(|name| (*name).to_owned()).collect();
    ClientOptions { goal: Goal::Use(name.into()), structured, contexts }
}

struct Peer {
    client: ClientHandshake,
}

impl Peer {
    fn new(options: ClientOptions) -> Self {
        Self { client: ClientHandshake::start(options).unwrap() }
    }

    fn receive(&mut self, bytes: &[u8]) -> (ClientEvent, Vec<u8>) {
        let mut out = Vec::new();
        let step = self.client.receive(bytes, &mut out);
        (step.event, out)
    }

    fn sends(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (event, out) = self.receive(bytes);
        assert_eq!(event, ClientEvent::NeedMore);
        out
    }

    fn fails(&mut self, bytes: &[u8]) -> ClientError {
        match self.receive(bytes).0 {
            ClientEvent::Failed(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

/// Export information: 1 MiB, flags 0x0d.
const INFO_EXPORT: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x0d];

#[test]
fn go_is_asked_for_with_block_sizes_and_its_answer_is_understood() {
    let mut peer = Peer::new(use_export("disk", false, &[]));
    let sent = peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
    assert_eq!(sent, b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x0c\0\0\0\x04disk\0\x01\0\x03");
    let answer = [
        reply(7, 3, &INFO_EXPORT),
        reply(7, 3, &[0, 3, 0, 0, 2, 0, 0, 0, 0x10, 0, 0, 0x20, 0, 0]),
        reply(7, 3, b"\x12\x34whatever"),
        reply(7, 1, b""),
        b"behind".to_vec(),
    ]
    .concat();
    let mut out = Vec::new();
    let step = peer.client.receive(&answer, &mut out);
    assert_eq!((step.consumed, out), (answer.len() - 6, vec![]));
    let expected = ClientSession {
        size: Bytes(1 << 20),
        flags: ExportFlags::from_bits(0x0d),
        blocks: Some(BlockSizes::new(512, 4096, 1 << 21).unwrap()),
        structured: false,
        contexts: vec![],
    };
    assert_eq!(step.event, ClientEvent::Ready(expected));
}

#[test]
fn structured_replies_and_contexts_are_asked_for_first() {
    let mut peer = Peer::new(use_export("d", true, &["base:allocation", "x:y"]));
    assert_eq!(peer.sends(b"NBDMAGICIHAVEOPT\0\x03"), b"\0\0\0\x03IHAVEOPT\0\0\0\x08\0\0\0\0");
    let asked = b"IHAVEOPT\0\0\0\x0a\0\0\0\x23\0\0\0\x01d\0\0\0\x02\0\0\0\x0fbase:allocation\0\0\0\x03x:y";
    assert_eq!(peer.sends(&reply(8, 1, b"")), asked);
    let chosen = [reply(10, 4, b"\0\0\0\x09base:allocation"), reply(10, 4, b"\0\0\0\x01q:r"), reply(10, 1, b"")];
    assert_eq!(&peer.sends(&chosen.concat())[8..12], [0, 0, 0, 7]);
    let (event, _) = peer.receive(&[reply(7, 3, &INFO_EXPORT), reply(7, 1, b"")].concat());
    let ClientEvent::Ready(session) = event else { panic!("{event:?}") };
    assert!(session.structured);
    assert_eq!(session.contexts, [ChosenContext { id: 9, name: "base:allocation".into() }]);
}

#[test]
fn refused_extras_are_done_without() {
    let mut peer = Peer::new(use_export("d", true, &["a:b"]));
    peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
    assert_eq!(&peer.sends(&reply(8, 0x8000_0001, b"no"))[8..12], [0, 0, 0, 7]);
    let (event, _) = peer.receive(&[reply(7, 3, &INFO_EXPORT), reply(7, 1, b"")].concat());
    assert!(matches!(event, ClientEvent::Ready(ClientSession { structured: false, .. })));

    let mut peer = Peer::new(use_export("d", true, &["a:b"]));
    peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
    peer.sends(&reply(8, 1, b""));
    let refused = [reply(10, 4, b"\0\0\0\x01a:b"), reply(10, 0x8000_0009, b"")].concat();
    assert_eq!(&peer.sends(&refused)[8..12], [0, 0, 0, 7]);
    let (event, _) = peer.receive(&[reply(7, 3, &INFO_EXPORT), reply(7, 1, b"")].concat());
    let ClientEvent::Ready(session) = event else { panic!("{event:?}") };
    assert!(session.structured && session.contexts.is_empty());
}

#[test]
fn servers_without_go_or_without_options_are_asked_by_name() {
    for (flags, padding) in [(0u8, 124), (2, 0)] {
        let mut peer = Peer::new(use_export("disk", true, &["a:b"]));
        let greeting = [&b"NBDMAGICIHAVEOPT\0"[..], &[flags]].concat();
        let sent = peer.sends(&greeting);
        assert_eq!(sent, [&[0, 0, 0, flags], &b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk"[..]].concat());
        let answer = [&INFO_EXPORT[2..], &vec![0; padding]].concat();
        assert_eq!(peer.receive(&answer[..answer.len() - 1]).0, ClientEvent::NeedMore);
        let (event, _) = peer.receive(&answer[answer.len() - 1..]);
        assert!(matches!(event, ClientEvent::Ready(ClientSession { size: Bytes(0x10_0000), .. })), "{event:?}");
    }
    let mut peer = Peer::new(use_export("disk", false, &[]));
    peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
    assert_eq!(peer.sends(&reply(7, 0x8000_0001, b"")), b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    assert!(matches!(peer.receive(&INFO_EXPORT[2..]).0, ClientEvent::Ready(_)));
}

#[test]
fn a_refused_export_ends_with_the_servers_words_and_a_goodbye() {
    let mut peer = Peer::new(use_export("disk", false, &[]));
    peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
    let (event, out) = peer.receive(&reply(7, 0x8000_0006, b"never heard of it"));
    let error = ClientError::Refused(OptionRefusal::UnknownExport, "never heard of it".into());
    assert_eq!(event, ClientEvent::Failed(error));
    assert_eq!(out, b"IHAVEOPT\0\0\0\x02\0\0\0\0");
}

#[test]
fn tls_and_shutdown_end_the_negotiation_at_any_option() {
    for kind in [0x8000_0005, 0x8000_0007] {
        let mut peer = Peer::new(use_export("disk", true, &[]));
        peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
        let error = peer.fails(&reply(8, kind, b""));
        assert!(matches!(error, ClientError::Refused(OptionRefusal::TlsRequired | OptionRefusal::ShuttingDown, _)));
    }
}

#[test]
fn a_list_is_read_to_its_end() {
    let options = ClientOptions { goal: Goal::List, structured: false, contexts: vec![] };
    let mut peer = Peer::new(options.clone());
    assert_eq!(peer.sends(b"NBDMAGICIHAVEOPT\0\x03"), b"\0\0\0\x03IHAVEOPT\0\0\0\x03\0\0\0\0");
    let (event, out) =
        peer.receive(&[reply(3, 2, b"\0\0\0\x01aabout"), reply(3, 2, b"\0\0\0\0"), reply(3, 1, b"")].concat());
    let expected = [("a", "about"), ("", "")]
        .map(|(name, description)| ListedExport { name: name.into(), description: description.into() });
    assert_eq!(event, ClientEvent::Listed(expected.to_vec()));
    assert_eq!(out, b"IHAVEOPT\0\0\0\x02\0\0\0\0");
    assert_eq!(Peer::new(options.clone()).fails(b"NBDMAGICIHAVEOPT\0\0"), ClientError::NoOptions);
    let mut peer = Peer::new(options);
    peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
    assert_eq!(
        peer.fails(&reply(3, 2, b"\0\0\0\x09a")),
        ClientError::Protocol("a list entry whose name does not fit into it")
    );
}

#[test]
fn a_list_without_end_is_given_up() {
    let options = ClientOptions { goal: Goal::List, structured: false, contexts: vec![] };
    let most_replies = OPTION_REPLIES_MAX as usize;
    for (entry, last, expected) in [
        (4, most_replies, ClientError::TooLong("replies to one option without end")),
        (OPTION_REPLY_MAX, LIST_BYTES_MAX / OPTION_REPLY_MAX, ClientError::TooLong("a list of exports above 1 MiB")),
    ] {
        let mut peer = Peer::new(options.clone());
        peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
        let entry = reply(3, 2, &vec![0; entry]);
        for _ in 0..last {
            assert_eq!(peer.sends(&entry), b"");
        }
        assert_eq!(peer.fails(&entry), expected);
    }
}

#[test]
fn a_peer_that_is_no_nbd_server_is_recognised() {
    assert_eq!(Peer::new(use_export("", false, &[])).fails(b"SSH-2.0-OpenSSH_9.2"), ClientError::NotNbd);
    assert_eq!(Peer::new(use_export("", false, &[])).fails(b"NBDMAGICIHAVEOPX\0\x03"), ClientError::NotNbd);
    let old = b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\0\0";
    assert_eq!(Peer::new(use_export("", false, &[])).fails(old), ClientError::OldStyle);
}

#[test]
fn broken_answers_are_errors() {
    let long = [&REPLY[..], &[0, 0, 0, 7, 0, 0, 0, 3, 0, 1, 0, 1]].concat();
    let wrong_magic = [&[1u8][..], &reply(7, 1, b"")[1..]].concat();
    for (bytes, expected) in [
        (wrong_magic, ClientError::Protocol("a reply to an option starts with a wrong number")),
        (reply(8, 1, b""), ClientError::Protocol("a reply to an option that was not sent")),
        (long, ClientError::TooLong("a reply to an option above 64 KiB")),
        (reply(7, 2, b"\0\0\0\0"), ClientError::Protocol("a reply that does not belong to the option")),
        (reply(7, 1, b"x"), ClientError::Protocol("an acknowledgement with data")),
        (reply(7, 1, b""), ClientError::Protocol("an export without its size")),
        (reply(7, 3, b"\0"), ClientError::Protocol("information without a type")),
        (reply(7, 3, &INFO_EXPORT[..11]), ClientError::Protocol("export information of a wrong length")),
        (reply(7, 3, &[0; 13]), ClientError::Protocol("export information of a wrong length")),
        (reply(7, 3, b"\0\x03\0\0\0\x01"), ClientError::Protocol("block sizes of a wrong length")),
        (
            [reply(7, 3, &[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1]), reply(7, 1, b"")].concat(),
            ClientError::Protocol("an export of 2^63 bytes or more"),
        ),
        (
            reply(7, 3, &[0, 3, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0x20, 0, 0]),
            ClientError::BlockSizes(BlockSizesError::Minimum(0)),
        ),
    ] {
        let mut peer = Peer::new(use_export("disk", false, &[]));
        peer.sends(b"NBDMAGICIHAVEOPT\0\x03");
        assert_eq!(peer.fails(&bytes), expected);
    }
}

#[test]
fn requests_that_the_protocol_cannot_carry_are_refused_at_once() {
    let long = "a".repeat(STRING_MAX + 1);
    for options in [
        use_export(&long, false, &[]),
        use_export("a\0", false, &[]),
        use_export("a", true, &[&long]),
        use_export("a", false, &["a:b"]),
        use_export("a", true, &["a:b"; CLIENT_CONTEXTS_MAX + 1]),
    ] {
        assert!(matches!(ClientHandshake::start(options), Err(ClientError::BadOptions(_))));
    }
}
