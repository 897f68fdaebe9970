//! Each rule that a host can break: the answer names it, and other hosts go on.

mod support;

use openraid_nvme::limits::{
    ASSOCIATIONS_MAX, EVENT_REQUESTS_MAX, IN_CAPSULE_BYTES_MAX, IO_QUEUES_MAX, QUEUE_ENTRIES_MAX, TRANSFER_BYTES_MAX,
};
use openraid_nvme::{
    AllowedHosts, Closing, Nqn, NvmeTarget, NvmeTargetError, Port, ProtocolViolation, Subsystem, SubsystemError,
    TargetSettings,
};
use openraid_units::{ArrayId, Bytes};
use support::bytes::{
    access, by_transport, connect, dword, entry, get_feature, get_log, ic_request, identify, in_capsule, le16,
    property_get, property_set, set, set_feature,
};
use support::host::Host;
use support::random::Random;
use support::served::{settings, subsystem, Served, ARRAY};
use support::session::{admin, connect_queue, exchange, io, names, run};

const SIZE: u64 = 4 << 20;
const FINAL: u16 = 1 << 14;

/// A target with one host whose I/O queue has these digests: the host, its connection.
fn one_queue(digests: u8) -> (Served, Host, usize) {
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let (host, number) = io(&mut served, digests, 0, (1, controller));
    (served, host, number)
}

fn violation(served: &Served, number: usize) -> ProtocolViolation {
    match served.connections[number].closed {
        Some(Closing::Violation(violation)) => violation,
        other => panic!("no violation, but {other:?}"),
    }
}

/// The violation by these bytes on a fresh connection.
fn first(bytes: &[u8]) -> ProtocolViolation {
    let mut served = Served::new(SIZE);
    let number = served.accept(0);
    served.feed(number, bytes);
    violation(&served, number)
}

#[test]
fn a_connection_begins_with_a_request_of_the_right_form() {
    let changed = |at: usize, value: u8| {
        let mut request = ic_request(0, 0);
        request[at] = value;
        first(&request)
    };
    assert_eq!(changed(0, 4), ProtocolViolation::NoRequest(4));
    assert_eq!(changed(0, 0x55), ProtocolViolation::NoRequest(0x55));
    assert_eq!(changed(2, 127), ProtocolViolation::HeaderLength(127));
    assert_eq!(changed(4, 129), ProtocolViolation::Length(129));
    assert_eq!(changed(8, 1), ProtocolViolation::Version(1));
    assert_eq!(changed(10, 32), ProtocolViolation::Alignment(32));
    assert_eq!(first(&[ic_request(0, 0), ic_request(0, 0)].concat()), ProtocolViolation::SecondRequest);
    assert_eq!(first(b"GET / HTTP/1.1\r\n"), ProtocolViolation::NoRequest(b'G'));
}

#[test]
fn pdus_of_a_target_are_not_taken_from_a_host() {
    for kind in [1, 3, 5, 7, 8, 9, 10, 255] {
        let pdu = [kind, 0, 24, 0, 24, 0, 0, 0];
        assert_eq!(first(&[ic_request(0, 0), pdu.to_vec()].concat()), ProtocolViolation::Type(kind));
    }
}

/// The violation by a capsule whose header was changed.
fn changed_capsule(digests: u8, data: usize, change: impl FnOnce(&mut Vec<u8>)) -> ProtocolViolation {
    let (mut served, host, number) = one_queue(digests);
    let mut entry = access(1, 5, 0, 1);
    in_capsule(&mut entry, 512);
    let mut capsule = host.capsule(&entry, &vec![0; data]);
    change(&mut capsule);
    served.feed(number, &capsule);
    violation(&served, number)
}

#[test]
fn the_header_of_a_capsule_keeps_its_form() {
    assert_eq!(changed_capsule(0, 512, |pdu| pdu[2] = 64), ProtocolViolation::HeaderLength(64));
    assert_eq!(changed_capsule(0, 0, |pdu| pdu[4] = 71), ProtocolViolation::Length(71));
    assert_eq!(changed_capsule(0, 0, |pdu| set(pdu, 4, &[0; 4])), ProtocolViolation::Length(0));
    assert_eq!(changed_capsule(0, 0, |pdu| set(pdu, 4, &[0xff; 4])), ProtocolViolation::Length(u32::MAX));
    assert_eq!(changed_capsule(0, 512, |pdu| pdu[3] = 71), ProtocolViolation::DataOffset(71));
    assert_eq!(changed_capsule(0, 512, |pdu| pdu[3] = 74), ProtocolViolation::DataOffset(74));
    assert_eq!(changed_capsule(0, 512, |pdu| pdu[1] = 1), ProtocolViolation::DigestFlags(1));
    assert_eq!(changed_capsule(0, 512, |pdu| pdu[1] = 2), ProtocolViolation::DigestFlags(2));
    assert_eq!(changed_capsule(3, 512, |pdu| pdu[1] = 1), ProtocolViolation::DigestFlags(1));
    assert_eq!(changed_capsule(1, 512, |pdu| pdu[1] = 0), ProtocolViolation::DigestFlags(0));
    let too_long = IN_CAPSULE_BYTES_MAX + 4;
    let len = too_long + 72;
    let data = usize::try_from(too_long).unwrap();
    assert_eq!(changed_capsule(0, data, |_| ()), ProtocolViolation::Length(len));
}

#[test]
fn a_wrong_digest_of_a_header_ends_the_connection() {
    let digest = changed_capsule(1, 512, |pdu| pdu[72] ^= 1);
    assert!(matches!(digest, ProtocolViolation::HeaderDigest(_)));
    let entry_changed = changed_capsule(1, 512, |pdu| pdu[30] ^= 1);
    assert!(matches!(entry_changed, ProtocolViolation::HeaderDigest(_)));
}

/// A queue whose host was asked for 64 KiB of command 5 in parts of 16 KiB; the tag of the question.
fn asked(digests: u8) -> (Served, Host, usize, u16) {
    let (mut served, host, number) = one_queue(digests);
    let mut entry = access(1, 5, 0, 128);
    by_transport(&mut entry, 64 << 10);
    served.feed(number, &host.capsule(&entry, &[]));
    let tag = le16(&std::mem::take(&mut served.connections[number].out), 10);
    (served, host, number, tag)
}

#[test]
fn data_come_only_for_a_question_and_within_it() {
    let data = vec![1; 16 << 10];
    let sent = |make: &dyn Fn(&Host, u16) -> Vec<u8>| {
        let (mut served, host, number, tag) = asked(0);
        served.feed(number, &make(&host, tag));
        violation(&served, number)
    };
    assert!(matches!(sent(&|host, tag| host.data_pdu(5, tag ^ 1, (0, &data), true)), ProtocolViolation::NotAsked(_)));
    assert!(matches!(
        sent(&|host, tag| host.data_pdu(5, tag ^ 0x100, (0, &data), true)),
        ProtocolViolation::NotAsked(_)
    ));
    assert!(matches!(sent(&|host, tag| host.data_pdu(6, tag, (0, &data), true)), ProtocolViolation::NotAsked(_)));
    assert_eq!(sent(&|host, tag| host.data_pdu(5, tag, (512, &data), true)), ProtocolViolation::DataPlace(512));
    let long = vec![1; (16 << 10) + 4];
    assert_eq!(sent(&|host, tag| host.data_pdu(5, tag, (0, &long), true)), ProtocolViolation::DataLength(16388));
    assert_eq!(sent(&|host, tag| host.data_pdu(5, tag, (0, &data[..512]), true)), ProtocolViolation::EarlyLast);
    assert_eq!(sent(&|host, tag| host.data_pdu(5, tag, (0, &[]), false)), ProtocolViolation::Length(24));
    // The first part twice: the second time it is not the place that was asked for.
    let twice = |host: &Host, tag| {
        let pdu = host.data_pdu(5, tag, (0, &data), true);
        [&pdu[..], &pdu[..]].concat()
    };
    assert_eq!(sent(&twice), ProtocolViolation::DataPlace(0));
    let changed = |at: usize, value: u8| {
        sent(&|host, tag| {
            let mut pdu = host.data_pdu(5, tag, (0, &data), true);
            pdu[at] = value;
            pdu
        })
    };
    assert_eq!(changed(2, 25), ProtocolViolation::HeaderLength(25));
    assert_eq!(changed(3, 20), ProtocolViolation::DataOffset(20));
    assert_eq!(changed(3, 26), ProtocolViolation::DataOffset(26));
    assert_eq!(changed(1, 5), ProtocolViolation::DigestFlags(5));
    assert_eq!(changed(4, 0), ProtocolViolation::Length(16384), "the length disagrees with the data");
}

#[test]
fn data_after_the_end_of_a_command_are_not_taken() {
    let (mut served, mut host, number, tag) = asked(0);
    let data = vec![1; 16 << 10];
    for part in 0..4 {
        let pdu = host.data_pdu(5, tag, (part * data.len(), &data), true);
        served.feed(number, &pdu);
    }
    served.settle(number);
    served.connections[number].out.clear();
    host.out.clear();
    served.feed(number, &host.data_pdu(5, tag, (0, &data), true));
    assert_eq!(violation(&served, number), ProtocolViolation::NotAsked(tag));
}

#[test]
fn a_queue_has_no_more_commands_than_entries() {
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let mut host = Host::new(0, 0);
    let number = served.accept(0);
    connect_queue(&mut served, number, &mut host, (1, 7, controller), &names());
    let read = |id| {
        let mut entry = access(2, id, 0, 1);
        by_transport(&mut entry, 512);
        entry
    };
    for id in 0..8 {
        served.feed(number, &host.capsule(&read(id), &[]));
    }
    assert_eq!(served.connections[number].closed, None);
    served.feed(number, &host.capsule(&read(8), &[]));
    assert_eq!(violation(&served, number), ProtocolViolation::TooManyCommands);
}

#[test]
fn two_commands_under_way_have_different_ids() {
    let (mut served, host, number) = one_queue(0);
    let mut read = access(2, 5, 0, 1);
    by_transport(&mut read, 512);
    served.feed(number, &host.capsule(&read, &[]));
    assert!(served.connections[number].out.is_empty());
    served.feed(number, &host.capsule(&read, &[]));
    let out = &served.connections[number].out;
    assert_eq!((out.len(), le16(out, 22) >> 1), (24, FINAL | 3));
}

#[test]
fn a_command_that_breaks_a_rule_is_refused_and_the_connection_stays() {
    let (mut served, mut host, number) = one_queue(0);
    let mut status = |entry: [u8; 64], data: &[u8]| {
        host.send(&entry, data, 0, &[]);
        exchange(&mut served, number, &mut host, &mut Random::new(1));
        host.end_of(le16(&entry, 2)).status
    };
    let read = |first: u64, blocks: u32, len: u32| {
        let mut entry = access(2, 5, first, blocks);
        by_transport(&mut entry, len);
        entry
    };
    let changed = |mut entry: [u8; 64], at: usize, value: &[u8]| {
        set(&mut entry, at, value);
        entry
    };
    let blocks = SIZE / 512;
    assert_eq!(status(read(blocks, 1, 512), &[]), FINAL | 0x80, "beyond the end");
    assert_eq!(status(read(blocks - 1, 2, 1024), &[]), FINAL | 0x80);
    assert_eq!(status(read(u64::MAX, 1, 512), &[]), FINAL | 0x80);
    assert_eq!(status(read(u64::MAX / 512 + 1, 1, 512), &[]), FINAL | 0x80);
    assert_eq!(status(read(0, 1, 1024), &[]), FINAL | 0x0f, "the length of the descriptor");
    let too_long = TRANSFER_BYTES_MAX + 512;
    assert_eq!(status(read(0, too_long / 512, too_long), &[]), FINAL | 0x02);
    assert_eq!(status(changed(read(0, 1, 512), 4, &[2]), &[]), FINAL | 0x0b, "the namespace");
    assert_eq!(status(changed(read(0, 1, 512), 4, &[0]), &[]), FINAL | 0x0b);
    assert_eq!(status(changed(read(0, 1, 512), 4, &[0xff; 4]), &[]), FINAL | 0x0b);
    for flags in [0x00, 0x80, 0xc0, 0x41, 0x42] {
        assert_eq!(status(changed(read(0, 1, 512), 1, &[flags]), &[]), FINAL | 0x02, "PRP, or fused: {flags:#x}");
    }
    // Each other type of descriptor.
    for kind in (0..=255).filter(|kind| ![0x01, 0x5a].contains(kind)) {
        assert_eq!(status(changed(read(0, 1, 512), 39, &[kind]), &[]), FINAL | 0x11, "descriptor {kind:#x}");
    }
    assert_eq!(status(changed(read(0, 1, 512), 39, &[0x01]), &[]), FINAL | 0x11, "a read into the capsule");
    // Each other opcode.
    for opcode in (0..=255).filter(|opcode| ![0, 1, 2, 8, 9, 0x7f].contains(opcode)) {
        assert_eq!(status(changed(read(0, 1, 512), 0, &[opcode]), &[]), FINAL | 0x01, "opcode {opcode:#x}");
    }
    let mut write = access(1, 5, 0, 2);
    in_capsule(&mut write, 1024);
    assert_eq!(status(write, &[0; 512]), FINAL | 0x0f, "fewer data than announced");
    assert_eq!(status(changed(write, 24, &[0xff, 0xff]), &[0; 1024]), FINAL | 0x16, "the offset into the capsule");
    assert_eq!(status(changed(write, 24, &[0xff; 8]), &[0; 1024]), FINAL | 0x16);
    in_capsule(&mut write, 512);
    assert_eq!(status(write, &[0; 512]), FINAL | 0x0f);
    let mut again = entry(0x7f, 5, 0);
    again[4] = 1;
    assert_eq!(status(again, &[]), FINAL | 0x0c, "a second Connect");
    assert_eq!(served.connections[number].closed, None);
    assert_eq!(served.connections[number].commands.len(), 0, "none of them reached the engine");
}

#[test]
fn a_read_only_array_refuses_each_kind_of_write() {
    let (mut served, mut host, number) = one_queue(0);
    served.target.set_read_only(ARRAY, true).unwrap();
    for opcode in [1, 8, 9] {
        let mut write = access(opcode, 5, 0, 1);
        by_transport(&mut write, 512);
        assert_eq!(run(&mut served, number, &mut host, &write).status, FINAL | 0x20);
    }
    assert_eq!(run(&mut served, number, &mut host, &entry(0, 5, 0xffff_ffff)).status, 0, "a flush of all namespaces");
    assert_eq!(served.connections[number].commands.len(), 1);
}

#[test]
fn a_deallocation_beyond_the_end_does_nothing_at_all() {
    let (mut served, mut host, number) = one_queue(0);
    let mut deallocate = entry(9, 5, 1);
    in_capsule(&mut deallocate, 32);
    dword(&mut deallocate, 10, 1);
    dword(&mut deallocate, 11, 4);
    let mut list = vec![0; 32];
    set(&mut list, 4, &1_u32.to_le_bytes());
    set(&mut list, 20, &2_u32.to_le_bytes());
    set(&mut list, 24, &(SIZE / 512 - 1).to_le_bytes());
    host.send(&deallocate, &list, 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.end_of(5).status, FINAL | 0x80);
    // More ranges than came.
    dword(&mut deallocate, 10, 2);
    host.send(&deallocate, &list, 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.end_of(5).status, FINAL | 0x0f);
    assert_eq!(served.connections[number].commands.len(), 0);
    // A hint about access only.
    dword(&mut deallocate, 10, 1);
    dword(&mut deallocate, 11, 1);
    host.send(&deallocate, &list, 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.end_of(5).status, 0);
}

/// The status and result of a Connect with a change.
fn refused(
    served: &mut Served,
    queue: (u16, u16, u16),
    change: impl FnOnce(&mut [u8; 64], &mut Vec<u8>),
) -> (u16, u64) {
    let mut host = Host::new(0, 0);
    let number = served.accept(0);
    let (mut entry, mut data) = connect(1, queue.0, queue.1, queue.2, &names());
    change(&mut entry, &mut data);
    host.send(&entry, &data, 0, &[]);
    exchange(served, number, &mut host, &mut Random::new(1));
    assert_eq!(served.connections[number].closed, None);
    let ended = host.end_of(1);
    (ended.status, ended.result)
}

#[test]
fn connect_is_refused_with_the_place_of_the_wrong_field() {
    const PARAMETERS: u16 = FINAL | 0x182;
    const IO_PARAMETERS: u16 = 0x182;
    const IN_DATA: u64 = 1 << 16;
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let any = (0, 31, 0xffff);
    let mut check = |queue, change: &dyn Fn(&mut [u8; 64], &mut Vec<u8>)| refused(&mut served, queue, change);
    assert_eq!(check(any, &|entry, _| entry[40] = 1), (FINAL | 0x180, 0), "the format of the record");
    assert_eq!(check((0, 0, 0xffff), &|_, _| ()), (PARAMETERS, 44));
    assert_eq!(check((0, QUEUE_ENTRIES_MAX, 0xffff), &|_, _| ()), (PARAMETERS, 44));
    assert_eq!(check((0, 31, 5), &|_, _| ()), (PARAMETERS, IN_DATA | 16), "a controller of the host's choice");
    assert_eq!(check(any, &|_, data| data[300] = b'x'), (0x182, IN_DATA | 256), "an array that may be served later");
    assert_eq!(check(any, &|_, data| data[256..512].fill(b'x')), (PARAMETERS, IN_DATA | 256));
    assert_eq!(check(any, &|_, data| data[512] = 0), (PARAMETERS, IN_DATA | 512));
    assert_eq!(check(any, &|entry, _| in_capsule(entry, 1020)), (FINAL | 0x0f, 0));
    assert_eq!(check(any, &|entry, _| by_transport(entry, 1024)), (FINAL | 0x11, 0));
    assert_eq!(check(any, &|_, data| data.truncate(1020)), (FINAL | 0x0f, 0));
    // An I/O queue of an unknown controller, and one of another host. No refusal is final: a server that was killed has another one in its
    // place, with other controllers.
    assert_eq!(check((1, 31, 998), &|_, _| ()), (IO_PARAMETERS, IN_DATA | 16));
    assert_eq!(check((1, 31, controller), &|_, data| data[0] ^= 1), (IO_PARAMETERS, IN_DATA));
    assert_eq!(check((1, 31, controller), &|_, data| data[545] = b'z'), (IO_PARAMETERS, IN_DATA | 512));
    assert_eq!(check((IO_QUEUES_MAX + 1, 31, controller), &|_, _| ()), (IO_PARAMETERS, 42));
    assert_eq!(check((0xffff, 31, controller), &|_, _| ()), (IO_PARAMETERS, 42));
    let (_, number) = io(&mut served, 0, 0, (1, controller));
    assert_eq!(refused(&mut served, (1, 31, controller), |_, _| ()), (IO_PARAMETERS, 42), "the queue is taken");
    served.close(number);
    io(&mut served, 0, 0, (1, controller));
    assert_eq!(served.target.associations(), 1);
}

#[test]
fn an_io_queue_needs_an_enabled_controller_and_the_port_of_its_admin_queue() {
    let mut served = Served::new(SIZE);
    let mut host = Host::new(0, 0);
    let number = served.accept(1);
    let controller = connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &names());
    assert_eq!(refused(&mut served, (1, 31, controller), |_, _| ()).0, 0x182, "another port");
    let mut io_host = Host::new(0, 0);
    let io_number = served.accept(1);
    let (entry, data) = connect(1, 1, 31, controller, &names());
    io_host.send(&entry, &data, 0, &[]);
    exchange(&mut served, io_number, &mut io_host, &mut Random::new(1));
    assert_eq!(io_host.end_of(1).status, 0x0c, "not enabled");
    run(&mut served, number, &mut host, &property_set(2, 0x14, 0x0046_0001));
    connect_queue(&mut served, io_number, &mut io_host, (1, 31, controller), &names());
}

#[test]
fn associations_have_a_limit_and_a_host_beyond_it_may_try_again() {
    let mut served = Served::new(SIZE);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..ASSOCIATIONS_MAX {
        let mut host = Host::new(0, 0);
        let number = served.accept(0);
        assert!(seen.insert(connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &names())));
    }
    assert_eq!(refused(&mut served, (0, 31, 0xffff), |_, _| ()).0, 0x181);
    served.close(0);
    let mut host = Host::new(0, 0);
    let number = served.accept(0);
    let next = connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &names());
    assert!(seen.insert(next), "the number of a host that has gone is used last");
}

#[test]
fn event_requests_have_a_limit() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    for id in 0..2000 {
        host.send(&entry(0x0c, id, 0), &[], 0, &[]);
        exchange(&mut served, number, &mut host, &mut Random::new(1));
    }
    assert_eq!(host.running(), EVENT_REQUESTS_MAX);
    assert!(host.ended.values().all(|ended| ended.status == FINAL | 0x105));
    // The id of a request that waits.
    served.feed(number, &host.capsule(&entry(0x18, 0, 0), &[]));
    assert_eq!(le16(&served.connections[number].out, 22) >> 1, FINAL | 3);
}

#[test]
fn administrative_commands_that_break_a_rule_are_refused() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    let mut status = |entry: [u8; 64]| run(&mut served, number, &mut host, &entry).status;
    let changed = |mut entry: [u8; 64], at: usize, value: &[u8]| {
        set(&mut entry, at, value);
        entry
    };
    for kind in (0..256).filter(|kind| ![0, 1, 2, 3, 5, 6, 7, 8].contains(kind)) {
        assert_eq!(status(identify(9, kind, 1)), FINAL | 2, "page {kind:#x}");
    }
    for namespace in [0, 2, 0xffff_ffff] {
        assert_eq!(status(identify(9, 0, namespace)), FINAL | 0x0b);
    }
    assert_eq!(status(identify(9, 2, 0xffff_fffe)), FINAL | 0x0b);
    assert_eq!(status(changed(identify(9, 1, 0), 32, &[0, 8])), FINAL | 0x0f, "room for 2 KiB");
    assert_eq!(status(changed(identify(9, 6, 0), 47, &[2])), FINAL | 2, "another command set");
    let logs = [0, 1, 2, 3, 4, 5, 0x0c];
    for log in (0..=255).filter(|log| !logs.contains(log)) {
        assert_eq!(status(get_log(9, log, 512, 0)), FINAL | 0x109, "log {log:#x}");
    }
    assert_eq!(status(get_log(9, 2, 512, 2)), FINAL | 2, "a crooked offset");
    assert_eq!(status(get_log(9, 2, 512, 516)), FINAL | 2, "an offset beyond the end");
    assert_eq!(status(get_log(9, 2, 512, u64::MAX - 3)), FINAL | 2);
    assert_eq!(status(changed(get_log(9, 2, 512, 0), 42, &[0xff; 4])), FINAL | 2, "16 GiB of it");
    for feature in (0..=255).filter(|feature| ![1, 2, 4, 5, 6, 7, 0x0a, 0x0b, 0x0f].contains(feature)) {
        assert_eq!(status(get_feature(9, feature)), FINAL | 2, "feature {feature:#x}");
        assert_eq!(status(set_feature(9, feature, 0)), FINAL | 2, "feature {feature:#x}");
    }
    assert_eq!(status(set_feature(9, 6, 0)), FINAL | 0x10e);
    assert_eq!(status(changed(set_feature(9, 0x0b, 0), 43, &[0x80])), FINAL | 0x10d, "to be saved");
    assert_eq!(status(changed(get_feature(9, 0x0b), 41, &[1])), FINAL | 2, "default values");
    assert_eq!(status(set_feature(9, 7, 0xffff)), FINAL | 2);
    assert_eq!(status(set_feature(9, 7, 0xffff_0000)), FINAL | 2);
    for register in [0x04, 0x0c, 0x18, 0x20, 0x24, 0xffff_ffff] {
        assert_eq!(status(property_get(9, register, false)), FINAL | 2);
        assert_eq!(status(property_set(9, register, 1)), FINAL | 2);
    }
    assert_eq!(status(property_get(9, 0, false)), FINAL | 2, "half of the capabilities");
    assert_eq!(status(property_get(9, 8, true)), FINAL | 2);
    for opcode in (0..=255).filter(|opcode| ![2, 6, 8, 9, 0x0a, 0x0c, 0x18, 0x7f].contains(opcode)) {
        assert_eq!(status(entry(opcode, 9, 0)), FINAL | 1, "opcode {opcode:#x}");
    }
    for kind in (2..=255).filter(|kind| *kind != 4) {
        assert_eq!(status(changed(entry(0x7f, 9, 0), 4, &[kind])), FINAL | 1, "command {kind} of fabrics");
    }
    assert_eq!(status(changed(entry(0x7f, 9, 0), 4, &[1])), FINAL | 0x0c, "a second Connect");
    assert_eq!(served.connections[number].closed, None);
}

#[test]
fn a_host_may_end_the_connection_itself() {
    let mut served = Served::new(SIZE);
    let number = served.accept(0);
    served.feed(number, &ic_request(0, 0));
    let mut term = vec![2, 0, 24, 0, 24, 0, 0, 0, 3, 0];
    term.resize(24, 0);
    served.feed(number, &term);
    assert_eq!(served.connections[number].closed, Some(Closing::HostTerminated(3)));
    assert_eq!(first(&[ic_request(0, 0), vec![2, 0, 24, 0, 200, 0, 0, 0]].concat()), ProtocolViolation::Length(200));
}

#[test]
fn a_host_that_breaks_rules_does_not_disturb_another() {
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let (mut good, good_number) = io(&mut served, 0, 0, (1, controller));
    let (_, bad_admin, other) = admin(&mut served, 0);
    let (bad, bad_number) = io(&mut served, 0, 0, (1, other));
    let mut write = access(1, 5, 0, 128);
    by_transport(&mut write, 64 << 10);
    served.feed(bad_number, &bad.capsule(&write, &[]));
    served.feed(bad_number, &[0xee; 4000]);
    served.feed(bad_admin, &[0xee; 4000]);
    assert_eq!(served.target.associations(), 1);
    let mut read = access(2, 6, 0, 1);
    by_transport(&mut read, 512);
    assert_eq!(support::session::run_for(&mut served, good_number, &mut good, &read, 512).status, 0);
}

#[test]
fn arrays_and_settings_that_no_host_could_use_are_refused() {
    let mut served = Served::new(SIZE);
    let offered = |change: &dyn Fn(&mut Subsystem)| {
        let mut other = Subsystem { array: ArrayId(9), uuid: [9; 16], ..subsystem(SIZE) };
        change(&mut other);
        let mut target = NvmeTarget::new(settings()).unwrap();
        target.offer(subsystem(SIZE)).unwrap();
        target.offer(other)
    };
    assert_eq!(offered(&|_| ()), Ok(()));
    assert_eq!(offered(&|other| other.array = ARRAY), Err(SubsystemError::Taken));
    assert_eq!(offered(&|other| other.uuid = support::served::UUID), Err(SubsystemError::Taken));
    assert_eq!(offered(&|other| other.size = Bytes(0)), Err(SubsystemError::Size));
    assert_eq!(offered(&|other| other.size = Bytes(1000)), Err(SubsystemError::Size));
    let many = vec![Nqn::new("nqn.x").unwrap(); 257];
    assert_eq!(offered(&|other| other.hosts = AllowedHosts::Listed(many.clone())), Err(SubsystemError::Hosts));
    assert_eq!(served.target.withdraw(ArrayId(1)), Err(SubsystemError::Unknown));
    assert_eq!(served.target.set_size(ARRAY, Bytes(1)), Err(SubsystemError::Size));
    let with = |change: &dyn Fn(&mut TargetSettings)| {
        let mut settings = settings();
        change(&mut settings);
        NvmeTarget::new(settings).err()
    };
    assert_eq!(with(&|settings| settings.ports.clear()), Some(NvmeTargetError::Ports(0)));
    let port = Port { address: None, service: 1 };
    assert_eq!(with(&|settings| settings.ports = vec![port; 17]), Some(NvmeTargetError::Ports(17)));
    assert_eq!(with(&|settings| settings.controllers = 1..=0xfff0), Some(NvmeTargetError::Controllers));
    #[allow(clippy::reversed_empty_ranges)] // what the test is about
    let empty = 2..=1;
    assert_eq!(with(&|settings| settings.controllers = empty.clone()), Some(NvmeTargetError::Controllers));
    assert_eq!(with(&|settings| settings.version = "a b".into()), Some(NvmeTargetError::Version));
}
