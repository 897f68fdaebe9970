//! Front ends and guests that break rules: each is refused in words, without a panic and without a hang, and damage in random
//! places does no more.

mod support;

use std::rc::Rc;

use openraid_vhost::{DiskOutcome, MessageHeader, MessageViolation, RingFault, RingStep, VhostSession};
use support::{
    disk, inflight, next, refusal, serve, state, tell, words, Fake, File, Guest, Part, Shared, AVAILABLE, DESCRIPTORS,
    ENTRIES, INDIRECT, MEMORY, NEXT, USED, USER, WRITE,
};

/// A table of these regions: guest address, length, address in the front end, offset.
fn table(regions: &[[u64; 4]]) -> (Vec<u8>, Vec<File>) {
    let mut payload = words(&[regions.len() as u64]);
    regions.iter().for_each(|region| payload.extend(words(region)));
    (payload, regions.iter().map(|_| File::Memory(Shared::zeros(MEMORY))).collect())
}

#[test]
fn headers_that_are_no_requests_are_refused() {
    let header = |flags: u32, len: u32| {
        MessageHeader::parse(&[1, flags, len].map(u32::to_le_bytes).concat().try_into().unwrap())
    };
    assert_eq!(header(2, 0), Err(MessageViolation::Flags(2)));
    assert_eq!(header(5, 0), Err(MessageViolation::Flags(5)));
    assert_eq!(header(1, 269), Err(MessageViolation::TooLong(269)));
    assert_eq!(header(1, u32::MAX), Err(MessageViolation::TooLong(u32::MAX)));
}

#[test]
fn memory_that_overlaps_or_is_not_there_is_refused() {
    let refused = |regions: &[[u64; 4]]| {
        let (payload, files) = table(regions);
        refusal(&mut VhostSession::new(Fake, disk()), 5, &payload, files)
    };
    assert_eq!(refused(&[]), MessageViolation::Regions(0));
    assert_eq!(refused(&[[0, 0, USER, 0]]), MessageViolation::Region(0));
    assert_eq!(refused(&[[u64::MAX, 2, USER, 0]]), MessageViolation::Region(u64::MAX));
    assert_eq!(refused(&[[0, 2, u64::MAX, 0]]), MessageViolation::Region(0));
    assert_eq!(refused(&[[0, 2, USER, u64::MAX - 1]]), MessageViolation::Region(0));
    assert_eq!(refused(&[[0, 4096, USER, 1]]), MessageViolation::FileOffset(1));
    let half = 128 << 30;
    assert_eq!(
        refused(&[[0, half, USER, 0], [half, half + 1, USER + half, 0]]),
        MessageViolation::GuestBytes(2 * half + 1)
    );
    assert_eq!(refused(&[[0, 8192, USER, 0], [4096, 8192, 0, 0]]), MessageViolation::Overlap(4096));
    assert_eq!(refused(&[[0, 8192, USER, 0], [8192, 8192, USER + 4096, 0]]), MessageViolation::Overlap(8192));
    let words = refused(&[[0, MEMORY + 1, USER, 0]]).to_string();
    assert!(words.contains("1048576 bytes"), "{words}");
    let (payload, _) = table(&[[0, 4096, USER, 0]]);
    let mut session = VhostSession::new(Fake, disk());
    assert_eq!(refusal(&mut session, 5, &payload, vec![]), MessageViolation::Files(5, 0));
    assert_eq!(
        refusal(&mut session, 5, &payload[..39], vec![File::Event(Rc::default())]),
        MessageViolation::Length(5, 39)
    );
    assert_eq!(refusal(&mut session, 5, &[], vec![]), MessageViolation::Length(5, 0));
    assert_eq!(refusal(&mut session, 3, &[], vec![File::Event(Rc::default())]), MessageViolation::Files(3, 1));
}

#[test]
fn rings_that_cannot_be_are_refused() {
    let start = |entries: u32, addresses: [u64; 3]| {
        let mut guest = Guest::new();
        let mut session = guest.prepare();
        if !entries.is_power_of_two() || entries > 1024 {
            return refusal(&mut session, 8, &state(0, entries), vec![]);
        }
        tell(&mut session, 8, &state(0, entries), vec![]);
        let [descriptors, used, available] = addresses;
        tell(&mut session, 9, &words(&[0, descriptors, used, available, 0]), vec![]);
        tell(&mut session, 12, &words(&[0]), vec![File::Event(Rc::default())]);
        refusal(&mut session, 18, &state(0, 1), vec![])
    };
    let good = [USER + DESCRIPTORS, USER + USED, USER + AVAILABLE];
    assert_eq!(start(0, good), MessageViolation::Entries(0));
    assert_eq!(start(7, good), MessageViolation::Entries(7));
    assert_eq!(start(2048, good), MessageViolation::Entries(2048));
    assert_eq!(start(8, [DESCRIPTORS, good[1], good[2]]), MessageViolation::RingPlace(DESCRIPTORS));
    assert_eq!(start(8, [good[0] + 8, good[1], good[2]]), MessageViolation::RingPlace(good[0] + 8));
    assert_eq!(start(8, [good[0], good[1], good[2] + 1]), MessageViolation::RingPlace(good[2] + 1));
    let end = USER + MEMORY - 64;
    assert_eq!(start(8, [good[0], end, good[2]]), MessageViolation::RingPlace(end));
    assert_eq!(start(8, [u64::MAX - 15, good[1], good[2]]), MessageViolation::RingPlace(u64::MAX - 15));
    // More entries than the in-flight region has.
    assert_eq!(start(32, good), MessageViolation::InflightQueue(1, 32));

    let mut guest = Guest::new();
    let mut session = guest.connect();
    assert_eq!(refusal(&mut session, 8, &state(0, 8), vec![]), MessageViolation::Running(0));
    assert_eq!(refusal(&mut session, 9, &words(&[0; 5]), vec![]), MessageViolation::Running(0));
    assert_eq!(refusal(&mut session, 8, &state(64, 8), vec![]), MessageViolation::NoQueue(64));
    assert_eq!(refusal(&mut session, 11, &state(u32::MAX, 8), vec![]), MessageViolation::NoQueue(u32::MAX));
    let file = guest.inflight.clone().unwrap();
    assert_eq!(refusal(&mut session, 32, &inflight(320, 1, ENTRIES), vec![file]), MessageViolation::Running(0));
    // Another memory without the rings.
    let (payload, files) = table(&[[0, 4096, USER, 0]]);
    assert_eq!(refusal(&mut session, 5, &payload, files), MessageViolation::RingPlace(USER + DESCRIPTORS));
    let mut bare = VhostSession::new(Fake, disk());
    let kick = vec![File::Event(Rc::default())];
    assert_eq!(refusal(&mut bare, 12, &words(&[3]), kick), MessageViolation::Unprepared(3));
}

#[test]
fn a_guest_that_writes_to_a_read_only_disk_changes_nothing() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    session.set_read_only(true);
    guest.request(0, 1, 8);
    assert_eq!(next(&mut session), None);
    session.ring_guests();
    assert_eq!(guest.status(0), 1);
    guest.request(3, 0, 8);
    let read = next(&mut session).expect("a read");
    session.end(read.id, DiskOutcome::Done);
    session.set_read_only(false);
    guest.request(0, 1, 8);
    assert_eq!(next(&mut session).map(|command| command.offset), Some(4096));
}

#[test]
fn in_flight_files_of_other_shapes_are_refused() {
    let open = |len: u64, queues: u16, entries: u16, file: File| {
        refusal(&mut VhostSession::new(Fake, disk()), 32, &inflight(len, queues, entries), vec![file])
    };
    let zeros = |len: u64| File::Memory(Shared::zeros(len));
    assert_eq!(open(192, 0, 8, zeros(192)), MessageViolation::InflightShape(0, 8));
    assert_eq!(open(192, 65, 8, zeros(192)), MessageViolation::InflightShape(65, 8));
    assert_eq!(open(192, 1, 1025, zeros(192)), MessageViolation::InflightShape(1, 1025));
    assert_eq!(open(191, 1, 8, zeros(192)), MessageViolation::InflightSize(191, 192));
    assert_eq!(open(192, 1, 8, zeros(192)), MessageViolation::InflightQueue(0, 0));
    let mut odd = inflight(192, 1, 8);
    odd[8] = 1;
    assert_eq!(
        refusal(&mut VhostSession::new(Fake, disk()), 32, &odd, vec![zeros(256)]),
        MessageViolation::FileOffset(1)
    );
    assert!(matches!(open(192, 1, 8, zeros(100)), MessageViolation::File(_)));
    assert!(matches!(open(192, 1, 8, File::Event(Rc::default())), MessageViolation::File(_)));
    let mut session = VhostSession::new(Fake, disk());
    assert_eq!(refusal(&mut session, 31, &inflight(0, 1, 8)[..19], vec![]), MessageViolation::Length(31, 19));

    // A region with requests of another life of the ring.
    let mut guest = Guest::new();
    drop(guest.connect());
    let Some(File::Memory(region)) = guest.inflight.clone() else { panic!("no region") };
    region.put(16, &[1]);
    region.put16(14, 1000);
    let mut session = guest.prepare();
    tell(&mut session, 12, &words(&[0]), vec![File::Event(Rc::default())]);
    assert_eq!(refusal(&mut session, 18, &state(0, 1), vec![]), MessageViolation::InflightStale(0));
    // A list of ended heads that leads out of the region.
    region.put16(14, u16::MAX);
    region.put16(12, 999);
    let mut session = guest.prepare();
    tell(&mut session, 12, &words(&[0]), vec![File::Event(Rc::default())]);
    assert_eq!(refusal(&mut session, 18, &state(0, 1), vec![]), MessageViolation::InflightStale(0));
}

/// The fault that a chain of these descriptors, at head 0, is stopped with.
fn fault(prepare: impl FnOnce(&mut Guest)) -> RingFault {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    prepare(&mut guest);
    assert_eq!(next(&mut session), None);
    let (queue, fault) = session.take_fault().expect("the queue is stopped");
    assert_eq!((queue, guest.error.get(), guest.used().len()), (0, 1, 0));
    // It takes nothing more, and can be reset.
    guest.request(3, 1, 0);
    assert_eq!(next(&mut session), None);
    let reply = session.handle(MessageHeader { request: 11, wants_answer: false, len: 8 }, &state(0, 0), vec![]);
    assert!(reply.unwrap().is_some(), "it stops at once");
    fault
}

fn chain_fault(parts: &[Part]) -> RingFault {
    fault(|guest| {
        guest.chain(DESCRIPTORS, 0, parts);
        guest.make_available(0);
    })
}

#[test]
fn rings_that_break_rules_are_stopped() {
    assert_eq!(fault(|guest| guest.memory.put16(AVAILABLE + 2, 17)), RingFault::Available(17));
    assert_eq!(fault(|guest| guest.make_available(16)), RingFault::NoDescriptor(16));
    let looped = fault(|guest| {
        guest.descriptor(DESCRIPTORS, 0, (0, 16, NEXT), 1);
        guest.descriptor(DESCRIPTORS, 1, (0, 16, NEXT), 0);
        guest.make_available(0);
    });
    assert_eq!(looped, RingFault::ChainTooLong);
    let beyond = fault(|guest| {
        guest.descriptor(DESCRIPTORS, 0, (0, 16, NEXT), 77);
        guest.make_available(0);
    });
    assert_eq!(beyond, RingFault::NoDescriptor(77));
    assert_eq!(chain_fault(&[(0, 16, WRITE), (0, 16, 0)]), RingFault::Order);
    assert_eq!(chain_fault(&[(0, 16, 0)]), RingFault::NoRequest);
    assert_eq!(chain_fault(&[(0, 15, 0), (0, 1, WRITE)]), RingFault::NoRequest);
    assert_eq!(chain_fault(&[(MEMORY, 16, 0), (0, 1, WRITE)]), RingFault::Unmapped(MEMORY));
    assert_eq!(chain_fault(&[(0, 16, 0), (MEMORY - 1, 2, WRITE)]), RingFault::Unmapped(MEMORY));
    assert_eq!(chain_fault(&[(0, 16, 0), (u64::MAX, 2, WRITE)]), RingFault::Unmapped(u64::MAX));
    assert_eq!(chain_fault(&[(0x5000, 15, INDIRECT)]), RingFault::Table(15));
    assert_eq!(chain_fault(&[(0x5000, 0, INDIRECT)]), RingFault::Table(0));
    assert_eq!(chain_fault(&[(0x5000, 32, INDIRECT), (0, 1, WRITE)]), RingFault::Table(32));
    assert_eq!(chain_fault(&[(MEMORY, 32, INDIRECT)]), RingFault::Unmapped(MEMORY));
    let nested = fault(|guest| {
        guest.descriptor(0x5000, 0, (0x5000, 16, INDIRECT), 0);
        guest.descriptor(DESCRIPTORS, 0, (0x5000, 16, INDIRECT), 0);
        guest.make_available(0);
    });
    assert_eq!(nested, RingFault::Table(16));
    let long = fault(|guest| {
        guest.chain(0x5000, 0, &[(0, 1, 0); 129]);
        guest.descriptor(DESCRIPTORS, 0, (0x5000, 129 * 16, INDIRECT), 0);
        guest.make_available(0);
    });
    assert_eq!(long, RingFault::ChainTooLong);
}

#[test]
fn a_request_with_too_much_payload_fails_and_its_queue_goes_on() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    for (count, wanted) in [(32, true), (33, false)] {
        let data = std::iter::repeat_n((0, 1 << 20, WRITE), count);
        let parts: Vec<_> = std::iter::once((0x9000, 16, 0)).chain(data).chain([(0x8000, 1, WRITE)]).collect();
        guest.chain(0x5000, 0, &parts);
        let bytes = 16 * u32::try_from(parts.len()).unwrap();
        guest.descriptor(DESCRIPTORS, 0, (0x5000, bytes, INDIRECT), 0);
        guest.make_available(0);
        let command = next(&mut session);
        assert_eq!(command.is_some(), wanted, "{count} MiB");
        command.iter().for_each(|command| session.end(command.id, DiskOutcome::Done));
    }
    assert_eq!((guest.memory.get(0x8000, 1), guest.used()), (vec![1], vec![(0, (32 << 20) + 1), (0, 1)]));
}

#[test]
fn a_request_beyond_the_sizes_that_its_guest_was_told_fails_and_its_queue_goes_on() {
    let mut guest = Guest::new();
    guest.features |= 1 << 1;
    let mut session = guest.connect();
    let longest = 256 << 10;
    let cases: [(&[u32], bool); 4] =
        [(&[longest; 3], true), (&[512, longest + 512, 512], false), (&[512; 126], true), (&[512; 127], false)];
    for (lengths, wanted) in cases {
        // The head shares its descriptor with the first range, so all of these chains are short enough for their ring.
        let data = lengths.iter().enumerate().map(|(nth, len)| (0, len + if nth == 0 { 16 } else { 0 }, 0));
        let parts: Vec<_> = data.chain([(0x8000, 1, WRITE)]).collect();
        guest.head(0, 1, 0);
        guest.chain(0x5000, 0, &parts);
        let bytes = 16 * u32::try_from(parts.len()).unwrap();
        guest.descriptor(DESCRIPTORS, 0, (0x5000, bytes, INDIRECT), 0);
        guest.make_available(0);
        let command = next(&mut session);
        assert_eq!(command.map(|command| command.len), wanted.then(|| lengths.iter().map(|len| u64::from(*len)).sum()));
        command.iter().for_each(|command| session.end(command.id, DiskOutcome::Done));
        assert_eq!(guest.memory.get(0x8000, 1), [u8::from(!wanted)]);
    }
    assert_eq!(guest.used().len(), 4);
}

#[test]
fn a_channel_that_is_none_is_refused() {
    let refused = |files: Vec<File>, payload: &[u8]| refusal(&mut VhostSession::new(Fake, disk()), 21, payload, files);
    let event = || File::Event(Rc::default());
    assert_eq!(refused(vec![], &[]), MessageViolation::Files(21, 0));
    assert_eq!(refused(vec![event(), event()], &[]), MessageViolation::Files(21, 2));
    assert_eq!(refused(vec![event()], &[0; 8]), MessageViolation::Length(21, 8));
    assert_eq!(refused(vec![event()], &[]), MessageViolation::File("this is no channel".into()));
}

#[test]
fn a_head_that_comes_twice_stops_its_queue_and_its_request_still_ends() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 1, 0);
    let command = next(&mut session).unwrap();
    guest.make_available(0);
    assert_eq!(next(&mut session), None);
    assert_eq!(session.take_fault(), Some((0, RingFault::Twice(0))));
    session.end(command.id, DiskOutcome::Done);
    assert_eq!(guest.used(), [(0, 1)]);
}

#[test]
fn a_descriptor_that_changes_after_it_was_read_changes_nothing() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 0, 8);
    // As soon as the length of the payload was read, it becomes 4 GiB at an address that does not exist.
    let payload = DESCRIPTORS + 16;
    let mut other = words(&[u64::MAX]);
    other.extend([0xff; 4]);
    guest.memory.ambush(payload + 8, payload, &other);
    let read = next(&mut session).unwrap();
    assert_eq!((read.offset, read.len), (4096, 4096));
    session.copy_to_guest(read.id, 0, &[5; 4096]).unwrap();
    session.end(read.id, DiskOutcome::Done);
    assert_eq!((guest.memory.get(0x1_1000, 4096), guest.used()), (vec![5; 4096], vec![(0, 4097)]));
    // The head of a request, too.
    guest.request(3, 1, 8);
    guest.memory.ambush(0x4_0000, 0x4_0008, &[0xff; 8]);
    assert_eq!(next(&mut session).unwrap().offset, 4096);
}

#[test]
fn memory_that_goes_away_under_a_request_is_noticed() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 0, 0);
    let read = next(&mut session).unwrap();
    // The rings stay; the request's memory does not.
    let mut payload = words(&[1]);
    payload.extend(words(&[0, 0x8000, USER, 0]));
    tell(&mut session, 5, &payload, vec![File::Memory(guest.memory.clone())]);
    assert!(session.copy_to_guest(read.id, 0, &[1; 512]).is_err());
    session.end(read.id, DiskOutcome::Done);
    assert_eq!(session.take_fault(), Some((0, RingFault::Unmapped(0x1_0010))));
}

#[test]
fn a_guest_that_always_has_one_more_request_gets_no_more_than_its_steps() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    for _ in 0..1000 {
        guest.request(0, 77, 0);
        assert_eq!(session.next_step(), RingStep::Answered);
    }
    // An index that moves to and fro is looked at once a step.
    guest.memory.ambush(AVAILABLE + 2, AVAILABLE + 2, &guest.available.wrapping_add(1).to_le_bytes());
    assert_eq!(session.next_step(), RingStep::Answered);
}

#[test]
fn random_damage_in_rings_and_descriptors_is_refused_or_served() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let (mut served, mut faults) = (0, 0);
    for _ in 0..20_000 {
        let mut guest = Guest::new();
        let mut session = guest.connect();
        for head in [0, 3] {
            guest.request(head, u32::try_from(random(3)).unwrap(), random(64));
        }
        for _ in 0..random(4) {
            let at = [DESCRIPTORS, AVAILABLE, USED, 0x1_0000][usize::try_from(random(4)).unwrap()] + random(96);
            guest.memory.put(at, &[u8::try_from(random(256)).unwrap()]);
        }
        served += serve(&mut session);
        faults += usize::from(session.take_fault().is_some());
    }
    assert!(served > 10_000 && faults > 1000, "{served} served, {faults} stopped");
}

#[test]
fn random_messages_are_refused_or_taken() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % limit).unwrap()
    };
    let mut refused = 0;
    for _ in 0..20_000 {
        let mut guest = Guest::new();
        let mut session = guest.connect();
        for _ in 0..4 {
            let mut payload = vec![0; [0, 8, 20, 24, 40, 72][random(6)]];
            for _ in 0..random(4) {
                if let Some(place) = payload.get_mut(random(48)) {
                    *place = u8::try_from(random(256)).unwrap();
                }
            }
            let file = [File::Event(Rc::default()), File::Memory(guest.memory.clone())][random(2)].clone();
            let files = vec![file; random(3)];
            let request = u32::try_from(random(34)).unwrap();
            let header = MessageHeader { request, wants_answer: false, len: payload.len() };
            if session.handle(header, &payload, files).is_err() {
                refused += 1;
                break;
            }
            guest.request(0, 1, 0);
            serve(&mut session);
            session.take_reply();
        }
    }
    assert!(refused > 10_000, "{refused} refused");
}
