//! Bytes of the specifications: answers, the configuration space, requests, the in-flight region.

mod support;

use std::cell::RefCell;
use std::rc::Rc;

use openraid_vhost::{DiskCommandKind, DiskOutcome, MessageHeader, VhostSession};
use support::{
    ask, disk, inflight, next, send, serve, state, tell, words, Fake, File, Guest, AVAILABLE, DESCRIPTORS, ENTRIES,
    EVENTS, INDIRECT, USED, WRITE,
};

#[test]
fn a_header_is_twelve_bytes_and_tells_what_follows() {
    let bytes = [5, 0, 0, 0, 9, 0, 0, 0, 40, 0, 0, 0];
    assert_eq!(MessageHeader::parse(&bytes), Ok(MessageHeader { request: 5, wants_answer: true, len: 40 }));
}

#[test]
fn offers_and_answers_have_the_numbers_of_the_protocol() {
    let mut session = VhostSession::new(Fake, disk());
    let bits = |bits: &[u32]| bits.iter().map(|bit| 1u64 << bit).sum::<u64>();
    assert_eq!(ask(&mut session, 1, &[]), words(&[bits(&[1, 2, 6, 9, 10, 12, 13, 14, 28, 29, 30, 32])]));
    assert_eq!(ask(&mut session, 15, &[]), words(&[bits(&[0, 3, 5, 9, 12])]));
    assert_eq!(ask(&mut session, 17, &[]), words(&[64]));
    // An answer to a message that has none is given when it was negotiated and is wanted.
    let wanted = MessageHeader { request: 3, wants_answer: true, len: 0 };
    assert!(session.handle(wanted, &[], vec![]).unwrap().is_none());
    tell(&mut session, 16, &words(&[1 << 3]), vec![]);
    let reply = session.handle(wanted, &[], vec![]).unwrap().unwrap();
    assert_eq!(reply.bytes, [3, 0, 0, 0, 5, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let refused = session.handle(MessageHeader { request: 99, wants_answer: true, len: 0 }, &[], vec![]).unwrap_err();
    assert_eq!(refused.reply.unwrap().bytes[12], 1);
}

#[test]
fn the_configuration_space_says_size_blocks_and_limits() {
    let mut session = VhostSession::new(Fake, disk());
    let mut question = [0u32.to_le_bytes(), 60u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    question.extend([0; 60]);
    let answer = ask(&mut session, 24, &question);
    let space = &answer[12..];
    assert_eq!(space.len(), 60);
    assert_eq!(space[..8], 2048u64.to_le_bytes());
    assert_eq!(space[8..16], [256 << 10, 126u32].map(u32::to_le_bytes).concat());
    assert_eq!(space[20..24], 512u32.to_le_bytes());
    assert_eq!(space[24..32], [3, 0, 8, 0, 128, 0, 0, 0]);
    assert_eq!(space[34..36], [64, 0]);
    assert_eq!(space[36..56], [0x40_0000u32, 1, 8, 0x40_0000, 1].map(u32::to_le_bytes).concat());
    assert_eq!(space[56..], [1, 0, 0, 0]);
}

#[test]
fn a_write_and_a_read_move_their_bytes_and_end_in_the_used_ring() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    assert_eq!(next(&mut session), None);
    guest.memory.put(0x1_1000, &[7; 4096]);
    guest.request(0, 1, 16);
    let write = next(&mut session).unwrap();
    assert_eq!((write.kind, write.offset, write.len), (DiskCommandKind::Write, 8192, 4096));
    let mut payload = [0; 1000];
    session.copy_from_guest(write.id, 3096, &mut payload).unwrap();
    assert_eq!(payload, [7; 1000]);
    assert_eq!((guest.marks(), guest.used()), (vec![0], vec![]));
    session.end(write.id, DiskOutcome::Done);
    assert_eq!((guest.marks(), guest.used(), guest.status(0)), (vec![], vec![(0, 1)], 0));
    session.ring_guests();
    assert_eq!(guest.call.get(), 1);

    guest.request(3, 0, 24);
    let read = next(&mut session).unwrap();
    assert_eq!((read.kind, read.offset, read.len), (DiskCommandKind::Read, 12288, 4096));
    session.copy_to_guest(read.id, 4090, &[9; 6]).unwrap();
    assert_eq!(guest.memory.get(0x4_1000 + 4088, 8), [0, 0, 9, 9, 9, 9, 9, 9]);
    session.end(read.id, DiskOutcome::Done);
    assert_eq!(guest.used(), [(0, 1), (3, 4097)]);
    guest.request(0, 0, 0);
    let lost = next(&mut session).unwrap();
    session.end(lost.id, DiskOutcome::Failed);
    assert_eq!((guest.used()[2], guest.status(0)), ((0, 1), 1));
}

#[test]
fn an_indirect_table_is_a_request_of_several_ranges() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.head(0x2_0000, 0, 1);
    let parts = [(0x2_0000, 16, 0), (0x3_0000, 100, WRITE), (0x4_0000, 412, WRITE), (0x2_0010, 1, WRITE)];
    guest.chain(0x5_0000, 0, &parts);
    guest.descriptor(DESCRIPTORS, 5, (0x5_0000, 64, INDIRECT), 0);
    guest.make_available(5);
    let read = next(&mut session).unwrap();
    assert_eq!((read.offset, read.len), (512, 512));
    session.copy_to_guest(read.id, 98, &[1, 2, 3, 4]).unwrap();
    assert_eq!((guest.memory.get(0x3_0000 + 98, 2), guest.memory.get(0x4_0000, 2)), (vec![1, 2], vec![3, 4]));
}

#[test]
fn other_requests_are_flushes_ranges_and_the_name() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    let mut ask = |kind: u32, payload: &[u8], room: u32| {
        guest.head(0x2_0000, kind, 0);
        guest.memory.put(0x2_1000, payload);
        let len = u32::try_from(payload.len()).unwrap();
        let mut parts = vec![(0x2_0000, 16, 0), (0x2_1000, len, 0), (0x2_2000, room, WRITE), (0x2_0010, 1, WRITE)];
        parts.retain(|part| part.1 > 0);
        guest.chain(DESCRIPTORS, 0, &parts);
        guest.make_available(0);
        let command = next(&mut session).map(|command| {
            session.end(command.id, DiskOutcome::Done);
            (command.kind, command.offset, command.len)
        });
        (command, guest.memory.get(0x2_0010, 1)[0], guest.memory.get(0x2_2000, 5))
    };
    let range = |sector: u64, sectors: u32, flags: u32| {
        [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
    };
    let may = |may_discard| DiskCommandKind::WriteZeroes { may_discard };
    assert_eq!(ask(4, &[], 0).0, Some((DiskCommandKind::Flush, 0, 0)));
    assert_eq!(ask(11, &range(8, 16, 0), 0).0, Some((DiskCommandKind::Discard, 4096, 8192)));
    assert_eq!(ask(13, &range(8, 16, 0), 0).0, Some((may(false), 4096, 8192)));
    assert_eq!(ask(13, &range(8, 16, 1), 0).0, Some((may(true), 4096, 8192)));
    assert_eq!(ask(8, &[], 20), (None, 0, b"data\0".to_vec()));
    // Unknown kinds and flags are unsupported. Other requests with a wrong length fail.
    assert_eq!(ask(77, &[], 0).1, 2);
    assert_eq!(ask(11, &range(8, 16, 1), 0).1, 2);
    assert_eq!(ask(11, &range(8, 0x40_0001, 0), 0).1, 1);
    assert_eq!(ask(11, &[0; 32], 0).1, 1);
    assert_eq!(ask(1, &[0; 100], 0).1, 1);
    assert_eq!(ask(0, &[], 513).1, 1);
}

#[test]
fn a_guest_without_flushes_gets_durable_writes() {
    let mut guest = Guest::new();
    guest.features &= !(1 << 9);
    let mut session = guest.connect();
    guest.request(0, 1, 0);
    assert!(next(&mut session).unwrap().fua);
    guest.features |= 1 << 9;
    assert!(!next(&mut guest.connect()).unwrap().fua);
}

#[test]
fn events_are_sent_only_when_the_index_that_was_asked_for_is_passed() {
    let mut guest = Guest::new();
    guest.features |= EVENTS;
    let mut session = guest.connect();
    // The guest wants an event at used index 2: after the third request.
    guest.memory.put16(AVAILABLE + 4 + 2 * u64::from(ENTRIES), 2);
    for (wanted, head) in [0, 0, 1, 1].into_iter().zip([0, 3, 0, 3]) {
        guest.request(head, 1, 0);
        assert_eq!(serve(&mut session), 1);
        assert_eq!(guest.call.get(), wanted, "after {:?}", guest.used());
    }
    // And this side wants one at the next request.
    assert_eq!(guest.memory.get16(USED + 4 + 8 * u64::from(ENTRIES)), 4);
    // Without the feature, a flag says it.
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.memory.put16(AVAILABLE, 1);
    guest.request(0, 1, 0);
    serve(&mut session);
    assert_eq!(guest.call.get(), 0);
}

#[test]
fn the_in_flight_region_has_the_bytes_of_the_protocol() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    for head in [4, 1] {
        guest.request(head, 1, 0);
    }
    let first = next(&mut session).unwrap();
    next(&mut session).unwrap();
    let Some(File::Memory(region)) = &guest.inflight else { panic!("no region") };
    let entry = |head: u64| region.get(16 + 16 * head, 16);
    // Version 1, 16 entries, no last head, used index 0.
    assert_eq!(region.get(0, 16), [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0]);
    assert_eq!(entry(4), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(entry(1), [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    session.end(first.id, DiskOutcome::Done);
    assert_eq!(region.get(12, 4), [4, 0, 1, 0]);
    assert_eq!(entry(4)[0], 0);
}

#[test]
fn a_stopped_queue_says_where_it_continues_when_its_requests_have_ended() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 1, 0);
    let command = next(&mut session).unwrap();
    assert!(send(&mut session, 11, &state(0, 0), vec![]).unwrap().is_none());
    assert!(session.is_stopping() && session.take_reply().is_none());
    guest.request(3, 1, 0);
    assert_eq!(next(&mut session), None, "a queue that stops takes no more");
    session.end(command.id, DiskOutcome::Done);
    let reply = session.take_reply().unwrap();
    assert_eq!(reply.bytes[12..], [0, 0, 0, 0, 1, 0, 0, 0]);
    assert!(!session.is_stopping() && session.under_way() == 0);
    // It goes on at the next request.
    tell(&mut session, 10, &state(0, 1), vec![]);
    guest.start(&mut session);
    assert_eq!(serve(&mut session), 1);
    assert_eq!(guest.used(), [(0, 1), (3, 1)]);
    session.take_no_more();
    guest.request(0, 1, 0);
    assert_eq!(next(&mut session), None);
    let again = inflight(0, 1, ENTRIES);
    assert_eq!(send(&mut session, 31, &again[..20], vec![]).unwrap().unwrap().bytes.len(), 12 + 20);
}

/// The size in the configuration space, in sectors.
fn sectors(session: &mut VhostSession<Fake>) -> u64 {
    let question = [&[0u32.to_le_bytes(), 8u32.to_le_bytes(), 0u32.to_le_bytes()].concat()[..], &[0; 8]].concat();
    u64::from_le_bytes(ask(session, 24, &question)[12..].try_into().unwrap())
}

#[test]
fn a_front_end_with_a_channel_is_told_that_its_disk_has_another_size() {
    let sent = Rc::new(RefCell::new(Vec::new()));
    for (features, is_told) in [(1 << 5 | 1 << 9, true), (1 << 9, false), (1 << 5, false)] {
        let mut session = VhostSession::new(Fake, disk());
        tell(&mut session, 16, &words(&[features]), vec![]);
        assert!(!session.set_size(4 << 20), "there is no channel yet");
        tell(&mut session, 21, &[], vec![File::Channel(sent.clone())]);
        assert_eq!((session.set_size(4 << 20), sectors(&mut session)), (is_told, if is_told { 8192 } else { 2048 }));
    }
    assert_eq!(*sent.borrow(), [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_disabled_queue_takes_nothing_until_it_is_enabled_and_ends_what_it_has() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 1, 0);
    let first = next(&mut session).unwrap();
    tell(&mut session, 18, &state(0, 0), vec![]);
    guest.request(3, 1, 8);
    assert_eq!(next(&mut session), None);
    session.end(first.id, DiskOutcome::Done);
    assert_eq!((next(&mut session), guest.used()), (None, vec![(0, 1)]));
    tell(&mut session, 18, &state(0, 1), vec![]);
    assert_eq!((serve(&mut session), guest.used()), (1, vec![(0, 1), (3, 1)]));
    // What a killed server has left waits, too; a stop does it, because it counts as taken.
    guest.request(0, 1, 16);
    next(&mut session).unwrap();
    let mut session = guest.connect();
    tell(&mut session, 18, &state(0, 0), vec![]);
    assert_eq!(next(&mut session), None);
    assert!(send(&mut session, 11, &state(0, 0), vec![]).unwrap().is_none());
    assert_eq!(serve(&mut session), 1);
    assert_eq!(session.take_reply().unwrap().bytes[12..], [0, 0, 0, 0, 3, 0, 0, 0]);
}
