//! PDUs and pages, byte for byte, as the TCP transport specification 1.0 and the base specification 2.0 draw them.

mod support;

use openraid_nvme::{CommandKind, CommandOutcome, NvmeCommand, PathState, PayloadSource, PortId, QueueEvent, ReadPart};
use openraid_units::{ArrayOffset, Bytes};
use support::bytes::{get_log, hex, identify, le16, le32, le64, property_get, set_feature};
use support::random::Random;
use support::served::{Piece, Served, ARRAY, NQN, UUID};
use support::session::{admin, exchange, io, names, run, run_for, HOST};

const SIZE: u64 = 1 << 20;

/// A connection, and the bytes that it sends for some input.
struct Bench {
    served: Served,
    number: usize,
}

impl Bench {
    /// An I/O queue with these digests and alignment. The target has sent nothing that was not read.
    fn io(digests: u8, alignment: u8) -> Self {
        let mut served = Served::new(SIZE);
        let (_, _, controller) = admin(&mut served, 0);
        let (_, number) = io(&mut served, digests, alignment, (1, controller));
        Self { served, number }
    }

    /// Parse one PDU; the event and the output.
    fn step(&mut self, input: &[u8]) -> (QueueEvent<Piece>, Vec<u8>) {
        let mut out = Vec::new();
        let queue = self.served.connections[self.number].queue.as_mut().unwrap();
        let step = queue.parse(input, &mut self.served.target, self.served.now, &mut out);
        (step.event, out)
    }

    fn command(&mut self, input: &[u8]) -> NvmeCommand {
        match self.step(input) {
            (QueueEvent::Command(command), out) if out.is_empty() => command,
            other => panic!("no command, but {other:?}"),
        }
    }

    fn out(&mut self, act: impl FnOnce(&mut openraid_nvme::HostQueue<Piece>, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        act(self.served.connections[self.number].queue.as_mut().unwrap(), &mut out);
        out
    }
}

#[test]
fn a_connection_request_gets_the_answer_of_the_specification() {
    let mut served = Served::new(SIZE);
    let number = served.accept(0);
    let mut request = hex("00 00 80 00 80000000 0000 00 03 00000000");
    request.resize(128, 0);
    served.feed(number, &request);
    let mut answer = hex("01 00 80 00 80000000 0000 00 03 00001000");
    answer.resize(128, 0);
    assert_eq!(served.connections[number].out, answer);
}

#[test]
fn connect_has_its_data_in_the_capsule_and_is_answered_with_the_controllers_number() {
    let mut served = Served::new(SIZE);
    let number = served.accept(0);
    let mut request = hex("00 00 80 00 80000000");
    request.resize(128, 0);
    served.feed(number, &request);
    served.connections[number].out.clear();
    let mut capsule = hex("04 00 48 48 48040000
         7f 40 0500 01 00000000000000000000000000000000000000
         0000000000000000 00040000 000000 01
         0000 0000 1f00 04 00 88130000 000000000000000000000000");
    let mut data = vec![0xab; 16];
    data.extend_from_slice(&[0xff, 0xff]);
    data.resize(256, 0);
    data.extend_from_slice(NQN.as_bytes());
    data.resize(512, 0);
    data.extend_from_slice(HOST.as_bytes());
    data.resize(1024, 0);
    assert_eq!(capsule.len(), 72);
    capsule.extend_from_slice(&data);
    served.feed(number, &capsule);
    assert_eq!(served.connections[number].connected, Some((Some(ARRAY), false)));
    // Without reports of the queue's place the field is ffffh here.
    let answer = hex("05 00 18 00 18000000 01000000 00000000 ffff 0000 0500 0000");
    assert_eq!(served.connections[number].out, answer);
}

#[test]
fn a_small_write_is_one_capsule_and_one_response() {
    let mut bench = Bench::io(0, 0);
    // Write, FUA, block 8, one block, 512 bytes in the capsule.
    let mut capsule = hex("04 00 48 48 48020000
         01 40 3412 01000000 0000000000000000 0000000000000000
         0000000000000000 00020000 000000 01
         0800000000000000 00000040 000000000000000000000000");
    assert_eq!(capsule.len(), 72);
    capsule.resize(72 + 512, 0x5a);
    let command = bench.command(&capsule);
    let (offset, len) = (ArrayOffset(4096), Bytes(512));
    let kind = CommandKind::Write { fua: true };
    assert_eq!(command, NvmeCommand { id: command.id, kind, offset, len, payload: PayloadSource::Received(72..584) });
    let answer = bench.out(|queue, out| queue.end(command.id, CommandOutcome::Done, out));
    assert_eq!(answer, hex("05 00 18 00 18000000 0000000000000000 0000 0100 3412 0000"));
}

/// Write of eight blocks from block 16 on, 4096 bytes that the transport carries.
const LARGE_WRITE: &str = "04 00 48 00 48000000
     01 40 0300 01000000 0000000000000000 0000000000000000
     0000000000000000 00100000 000000 5a
     1000000000000000 07000000 000000000000000000000000";

#[test]
fn a_large_write_is_asked_for_part_by_part() {
    let mut bench = Bench::io(0, 0);
    let command = bench.command(&hex(LARGE_WRITE));
    assert_eq!(command.payload, PayloadSource::Asked);
    let id = command.id;
    let piece = |offset, len| Piece { id, offset, len };
    let question = bench.out(|queue, out| queue.ask_payload(id, piece(0, 1024), (0, 1024), out));
    let tag = le16(&question, 10);
    let mut expected = hex("09 00 18 00 18000000 0300 0000 00000000 00040000 00000000");
    expected[10..12].copy_from_slice(&tag.to_le_bytes());
    assert_eq!(question, expected);
    // The host asked for no more than one question at a time.
    assert!(bench.out(|queue, out| queue.ask_payload(id, piece(1024, 3072), (1024, 3072), out)).is_empty());
    // Data of the first part, marked as the last of this question.
    let mut data = hex("06 04 18 18 18040000 0300 0000 00000000 00040000 00000000");
    data[10..12].copy_from_slice(&tag.to_le_bytes());
    assert_eq!(bench.step(&data), (QueueEvent::Payload, vec![]));
    let second = bench.out(|queue, out| {
        let arrived = queue.payload_came(&[7; 1024], out).expect("the part is complete");
        assert_eq!((arrived.transfer, arrived.is_intact), (piece(0, 1024), true));
    });
    expected[12..20].copy_from_slice(&hex("00040000 000c0000"));
    assert_eq!(second, expected);
}

#[test]
fn a_read_is_data_with_a_head_and_the_last_data_are_the_answer() {
    let mut bench = Bench::io(0, 0);
    let command = bench.command(&hex("04 00 48 00 48000000
         02 40 0900 01000000 0000000000000000 0000000000000000
         0000000000000000 00040000 000000 5a
         0000000000000000 01000000 000000000000000000000000"));
    assert_eq!((command.kind, command.offset, command.len), (CommandKind::Read, ArrayOffset(0), Bytes(1024)));
    let mut data = |offset, is_last| {
        let part = ReadPart { offset, len: 512, is_last };
        bench.out(|queue, out| {
            queue.data_head(command.id, part, out);
            out.extend_from_slice(&[0x11; 2]);
            queue.data_tail(command.id, part, &[0x11; 512], out);
        })
    };
    assert_eq!(data(0, false), hex("07 00 18 18 18020000 0900 0000 00000000 00020000 00000000 1111"));
    // LAST and SUCCESS: no response follows.
    assert_eq!(data(512, true), hex("07 0c 18 18 18020000 0900 0000 00020000 00020000 00000000 1111"));
}

#[test]
fn digests_are_crc_32c_and_data_are_aligned_as_the_host_wants() {
    // RFC 3720: 32 bytes of zero, of ones, and ascending.
    assert_eq!(support::bytes::crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(support::bytes::crc32c(&[0xff; 32]), 0x62a8_ab43);
    // Both digests, data aligned to 64 bytes.
    let mut bench = Bench::io(3, 15);
    let mut capsule = hex("04 01 48 00 4c000000
         02 40 0900 01000000 0000000000000000 0000000000000000
         0000000000000000 00020000 000000 5a
         0000000000000000 00000000 000000000000000000000000");
    capsule.extend_from_slice(&support::bytes::crc32c(&capsule).to_le_bytes());
    let command = bench.command(&capsule);
    let part = ReadPart { offset: 0, len: 512, is_last: true };
    let out = bench.out(|queue, out| {
        queue.data_head(command.id, part, out);
        queue.data_tail(command.id, part, &[0; 512], out);
    });
    let mut head = hex("07 0f 18 40 44020000 0900 0000 00000000 00020000 00000000");
    head.extend_from_slice(&support::bytes::crc32c(&head).to_le_bytes());
    head.resize(64, 0);
    assert_eq!(out[..64], head);
    assert_eq!(out[64..], support::bytes::crc32c(&[0; 512]).to_le_bytes());
}

#[test]
fn a_host_that_breaks_a_rule_is_told_the_place() {
    let mut bench = Bench::io(0, 0);
    // A command whose header claims 71 bytes.
    let mut capsule = hex(LARGE_WRITE);
    capsule[2] = 71;
    let (event, out) = bench.step(&capsule);
    assert!(matches!(event, QueueEvent::Close(_)));
    let mut expected = hex("03 00 18 00 5f000000 0100 02000000 00000000000000000000");
    expected.extend_from_slice(&capsule[..71]);
    assert_eq!(out, expected);
    assert!(bench.step(&capsule).1.is_empty(), "the host is told once");
}

#[test]
fn registers_have_the_bits_of_the_specification() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    let mut get = |register, is_long| run(&mut served, number, &mut host, &property_get(9, register, is_long)).result;
    let capabilities = get(0x00, true);
    assert_eq!(capabilities & 0xffff, 127, "queue entries less one");
    assert_eq!(capabilities >> 16 & 1, 1, "contiguous queues");
    assert!(capabilities >> 24 & 0xff > 0, "time until ready");
    assert_eq!(capabilities >> 37 & 0xff, 1, "the NVM command set only");
    assert_eq!(capabilities >> 48 & 0xff, 0, "pages of 4 KiB");
    assert_eq!(get(0x08, false), 0x0002_0000, "version 2.0");
    assert_eq!(get(0x14, false), 0x0046_0001, "as it was set");
    assert_eq!(get(0x1c, false), 1, "ready");
}

#[test]
fn the_controller_says_what_hosts_insist_on() {
    let mut served = Served::new(SIZE);
    let (mut host, number, controller) = admin(&mut served, 0);
    let page = run_for(&mut served, number, &mut host, &identify(9, 1, 0), 4096).data;
    assert_eq!(&page[4..24], b"10111213141516171819", "serial");
    assert_eq!(&page[24..32], b"openraid");
    assert_eq!(&page[64..72], b"0.1.0   ");
    assert_eq!(page[76], 0x0b, "ports, controllers, states of paths");
    assert_eq!(page[77], 8, "1 MiB");
    assert_eq!(le16(&page, 78), controller);
    assert_eq!(le32(&page, 80), 0x0002_0000);
    assert_eq!(le32(&page, 92), 0x900, "events");
    assert_eq!(page[111], 1, "an I/O controller");
    assert_eq!(page[259], 3, "four event requests");
    assert_eq!(page[261], 6, "effects; logs in parts");
    assert_eq!(le16(&page, 320), 10, "keep-alive in seconds");
    assert_eq!((page[342], page[343] & 0x1f), (10, 0x1f));
    assert_eq!((le32(&page, 344), le32(&page, 348)), (1, 1), "groups of paths");
    assert_eq!((page[512], page[513]), (0x66, 0x44));
    assert_eq!(le16(&page, 514), 128, "commands");
    assert_eq!((le32(&page, 516), le32(&page, 540)), (1, 1), "namespaces");
    assert_eq!(le16(&page, 520), 0x0c, "deallocation, Write Zeroes");
    assert_eq!(page[525], 7, "a volatile cache");
    assert_eq!(le32(&page, 536), 0x0010_0001, "descriptors");
    assert_eq!(&page[768..768 + NQN.len()], NQN.as_bytes());
    assert_eq!(le32(&page, 1792) * 16 - 64, 8192, "data in a capsule");
    assert_eq!((le32(&page, 1796), le16(&page, 1800)), (1, 0));
}

#[test]
fn the_namespace_has_size_block_and_names() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    let mut page = |kind, namespace| run_for(&mut served, number, &mut host, &identify(9, kind, namespace), 4096).data;
    let namespace = page(0, 1);
    assert_eq!((le64(&namespace, 0), le64(&namespace, 8), le64(&namespace, 16)), (2048, 2048, 2048));
    assert_eq!(namespace[25..27], [0, 0], "one format, which is used");
    assert_eq!(namespace[30], 1, "shared");
    assert_eq!((le16(&namespace, 64), le16(&namespace, 72)), (7, 127), "4 KiB and 64 KiB are efficient");
    assert_eq!(le32(&namespace, 92), 1, "group of paths");
    assert_eq!(namespace[99], 0, "writable");
    assert_eq!(namespace[104..120], UUID);
    assert_eq!(namespace[128..132], [0, 0, 9, 0], "512 bytes, no metadata");
    assert_eq!(le32(&page(2, 0), 0), 1);
    assert_eq!(le32(&page(2, 1), 0), 0, "none after the first");
    let descriptors = page(3, 1);
    assert_eq!(descriptors[..4], [2, 16, 0, 0]);
    assert_eq!(descriptors[4..20], UUID);
    assert_eq!(descriptors[20..24], [3, 16, 0, 0]);
    assert_eq!(descriptors[24..40], UUID);
    assert_eq!(descriptors[40..46], [4, 1, 0, 0, 0, 0], "the NVM command set, and the end");
    let set = page(6, 0);
    assert_eq!((set[3], le32(&set, 4)), (255, 2 << 20), "ranges, and blocks of each");
    let any = page(8, 1);
    assert_eq!((any[1], le32(&any, 4), any[14]), (1, 1, 1));
}

#[test]
fn the_log_of_paths_has_one_group() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    let mut log = |served: &mut Served| run_for(served, number, &mut host, &get_log(9, 0x0c, 52, 0), 52).data;
    assert_eq!(
        log(&mut served),
        hex("0000000000000000 0100 000000000000
             01000000 01000000 0000000000000000 01 000000000000000000000000000000 01000000")
    );
    served.target.set_path(ARRAY, PortId(0), PathState::Inaccessible).unwrap();
    served.target.set_path(ARRAY, PortId(1), PathState::NonOptimized).unwrap();
    assert_eq!(
        log(&mut served),
        hex("0200000000000000 0100 000000000000
             01000000 01000000 0200000000000000 03 000000000000000000000000000000 01000000")
    );
}

#[test]
fn the_discovery_log_has_an_entry_for_each_address() {
    let mut served = Served::new(SIZE);
    let number = served.accept(1);
    let mut host = support::host::Host::new(0, 0);
    let names = support::bytes::Names { subsystem: "nqn.2014-08.org.nvmexpress.discovery".into(), ..names() };
    support::session::connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &names);
    assert_eq!(served.connections[number].connected, Some((None, false)));
    run(&mut served, number, &mut host, &support::bytes::property_set(2, 0x14, 0x0046_0001));
    let log = run_for(&mut served, number, &mut host, &get_log(9, 0x70, 4096, 0), 4096).data;
    assert_eq!(
        (le64(&log, 0), le64(&log, 8), le16(&log, 16)),
        (2, 2, 0),
        "changes, entries without the loopback, format"
    );
    let first = &log[1024..2048];
    // TCP, IPv4, an NVM subsystem; nothing about a secure channel, and no reports of the place in the queue.
    assert_eq!(first[..4], [3, 1, 2, 4]);
    assert_eq!((le16(first, 4), le16(first, 6), le16(first, 8)), (1, 0xffff, 32));
    assert_eq!(&first[32..36], b"4420");
    assert_eq!(&first[256..256 + NQN.len() + 1], [NQN.as_bytes(), &[0]].concat());
    assert_eq!(&first[512..523], b"192.0.2.9  ", "the address that the host has reached");
    let second = &log[2048..3072];
    assert_eq!((le16(second, 4), &second[32..36], &second[512..521]), (2, &b"8009"[..], &b"10.1.2.3 "[..]));
    // The same in two parts.
    let head = run_for(&mut served, number, &mut host, &get_log(9, 0x70, 1024, 0), 1024).data;
    let rest = run_for(&mut served, number, &mut host, &get_log(9, 0x70, 2048, 1024), 2048).data;
    assert_eq!([head, rest].concat(), log[..3072]);
}

#[test]
fn other_logs_have_their_lengths_and_marks() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    let mut log = |log, len: u32| run_for(&mut served, number, &mut host, &get_log(9, log, len, 0), len as usize).data;
    let supported = log(0x00, 1024);
    let listed: Vec<usize> = (0..256).filter(|log| supported[4 * log] == 1).collect();
    assert_eq!(listed, [0, 1, 2, 3, 4, 5, 12]);
    assert_eq!(log(0x01, 64), [0; 64], "no errors");
    assert_eq!((log(0x02, 512)[0], log(0x02, 512)[3]), (0, 100));
    assert_eq!((log(0x03, 512)[0], &log(0x03, 512)[8..16]), (1, &b"0.1.0   "[..]));
    assert_eq!(log(0x04, 4096)[..4], [0; 4], "no namespace has changed");
    let effects = log(0x05, 4096);
    let admin: Vec<usize> = (0..256).filter(|opcode| effects[4 * opcode] & 1 == 1).collect();
    assert_eq!(admin, [2, 6, 8, 9, 10, 12, 24]);
    let io: Vec<(usize, u8)> =
        (0..256).map(|opcode| (opcode, effects[1024 + 4 * opcode])).filter(|(_, effect)| *effect > 0).collect();
    assert_eq!(io, [(0, 1), (1, 3), (2, 1), (8, 3), (9, 3)]);
}

#[test]
fn an_event_is_the_answer_to_a_request_that_waits() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    run(&mut served, number, &mut host, &set_feature(8, 0x0b, 0xffff_ffff));
    host.send(&support::bytes::entry(0x0c, 100, 0), &[], 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    served.target.set_size(ARRAY, Bytes(SIZE / 2)).unwrap();
    served.tick();
    // Type "notice", kind 0, log 4.
    assert_eq!(served.connections[number].out, hex("05 00 18 00 18000000 02000400 00000000 0000 0000 6400 0000"));
}
