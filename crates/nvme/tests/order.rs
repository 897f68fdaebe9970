//! The steps of a host from its first connection to its last, and what it hears of changes.

mod support;

use openraid_nvme::{AllowedHosts, CommandOutcome, Nqn, PathState, PortId, Subsystem};
use openraid_units::{ArrayId, Bytes, Instant, Nanos};
use support::bytes::{
    access, by_transport, connect, dword, entry, get_feature, get_log, identify, in_capsule, le32, le64, property_get,
    property_set, set_feature, Names,
};
use support::host::{Ended, Host};
use support::random::Random;
use support::served::{subsystem, Served, ARRAY, BLOCK};
use support::session::{admin, connect_queue, exchange, io, names, run, run_for, HOST};

const SIZE: u64 = 4 << 20;
/// "Do not retry".
const FINAL: u16 = 1 << 14;

/// A write whose payload is in the capsule or is asked for, and its end.
fn write(served: &mut Served, (host, number): (&mut Host, usize), id: u16, first: u64, data: &[u8]) -> Ended {
    send_write(host, id, first, data);
    exchange(served, number, host, &mut Random::new(u64::from(id)));
    host.end_of(id)
}

fn send_write(host: &mut Host, id: u16, first: u64, data: &[u8]) {
    let len = u32::try_from(data.len()).unwrap();
    let mut entry = access(0x01, id, first, len / 512);
    if data.len() <= 8192 {
        in_capsule(&mut entry, len);
        host.send(&entry, data, 0, &[]);
    } else {
        by_transport(&mut entry, len);
        host.send(&entry, &[], 0, data);
    }
}

fn read(served: &mut Served, (host, number): (&mut Host, usize), id: u16, first: u64, len: usize) -> Ended {
    let bytes = u32::try_from(len).unwrap();
    let mut entry = access(0x02, id, first, bytes / 512);
    by_transport(&mut entry, bytes);
    run_for(served, number, host, &entry, len)
}

fn ranges(list: &[(u32, u64)]) -> Vec<u8> {
    list.iter()
        .flat_map(|(blocks, first)| [&[0; 4][..], &blocks.to_le_bytes(), &first.to_le_bytes()].concat())
        .collect()
}

#[test]
fn a_host_goes_from_the_first_connection_to_the_last_with_and_without_digests() {
    for digests in 0..4 {
        let mut served = Served::new(SIZE);
        // Admin queue, registers.
        let mut host = Host::new(digests, 0);
        let number = served.accept(0);
        let controller = connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &names());
        assert_eq!(run(&mut served, number, &mut host, &property_get(2, 0x1c, false)).result, 0, "not ready");
        assert_eq!(run(&mut served, number, &mut host, &identify(3, 1, 0)).status & 0xff, 0x0c, "not enabled");
        run(&mut served, number, &mut host, &property_set(4, 0x14, 0x0046_0001));
        assert_eq!(run(&mut served, number, &mut host, &property_get(2, 0x1c, false)).result, 1, "ready");
        // Identify, logs, features, keep-alive, events.
        run_for(&mut served, number, &mut host, &identify(3, 1, 0), 4096);
        run_for(&mut served, number, &mut host, &get_log(3, 0x05, 4096, 0), 4096);
        run_for(&mut served, number, &mut host, &get_log(3, 0x0c, 52, 0), 52);
        assert_eq!(run(&mut served, number, &mut host, &set_feature(5, 7, 0x0001_0001)).result, 0x0001_0001);
        assert_eq!(run(&mut served, number, &mut host, &set_feature(5, 0x0b, 0x900)).status, 0);
        assert_eq!(run(&mut served, number, &mut host, &entry(0x18, 6, 0)).status, 0);
        host.send(&entry(0x0c, 0x8001, 0), &[], 0, &[]);
        exchange(&mut served, number, &mut host, &mut Random::new(1));
        assert_eq!(host.running(), 1, "the event request waits");
        // Two I/O queues; a third was not granted.
        let (mut first, one) = io(&mut served, digests, 3, (1, controller));
        let (mut second, two) = io(&mut served, digests, 0, (2, controller));
        assert_eq!(served.connections[one].connected, Some((Some(ARRAY), true)));
        let mut third = Host::new(digests, 0);
        let three = served.accept(0);
        let (refused, data) = connect(1, 3, 127, controller, &names());
        third.send(&refused, &data, 0, &[]);
        exchange(&mut served, three, &mut third, &mut Random::new(1));
        let ended = third.end_of(1);
        assert_eq!((ended.status, ended.result), (0x182, 42), "the queue's number is wrong");
        // Namespaces.
        assert_eq!(le32(&run_for(&mut served, number, &mut host, &identify(3, 2, 0), 4096).data, 0), 1);
        run_for(&mut served, number, &mut host, &identify(3, 3, 1), 4096);
        let page = run_for(&mut served, number, &mut host, &identify(3, 0, 1), 4096).data;
        assert_eq!(le64(&page, 0), SIZE / BLOCK);
        // I/O: small, large, over the other queue, flush, zeroes, deallocation.
        let mut random = Random::new(9);
        let (small, large) = (random.bytes(4096), random.bytes(200 * 512));
        assert_eq!(write(&mut served, (&mut first, one), 10, 8, &small).status, 0);
        assert_eq!(write(&mut served, (&mut first, one), 11, 100, &large).status, 0);
        assert_eq!(read(&mut served, (&mut second, two), 12, 8, 4096).data, small);
        assert_eq!(read(&mut served, (&mut second, two), 13, 100, large.len()).data, large);
        assert_eq!(run(&mut served, one, &mut first, &entry(0x00, 14, 1)).status, 0);
        assert_eq!(run(&mut served, one, &mut first, &access(0x08, 15, 8, 4)).status, 0);
        assert_eq!(read(&mut served, (&mut first, one), 16, 8, 4096).data[..2048], [0; 2048]);
        let mut deallocate = entry(0x09, 17, 1);
        let list = ranges(&[(10, 100), (0, 0), (5, 120)]);
        in_capsule(&mut deallocate, u32::try_from(list.len()).unwrap());
        dword(&mut deallocate, 10, 2);
        dword(&mut deallocate, 11, 4);
        first.send(&deallocate, &list, 0, &[]);
        exchange(&mut served, one, &mut first, &mut Random::new(4));
        assert_eq!(first.end_of(17).status, 0);
        let mut expected = large.clone();
        expected[..10 * 512].fill(0);
        expected[20 * 512..25 * 512].fill(0);
        assert_eq!(read(&mut served, (&mut first, one), 18, 100, large.len()).data, expected);
        // The end: I/O queues first, then the shutdown.
        served.close(one);
        served.close(two);
        run(&mut served, number, &mut host, &property_set(4, 0x14, 0x0046_4001));
        assert_eq!(run(&mut served, number, &mut host, &property_get(2, 0x1c, false)).result & 0b1100, 0b1000);
        served.close(number);
        assert_eq!(served.target.associations(), 0);
    }
}

#[test]
fn a_larger_array_raises_one_event_until_the_host_has_read_the_log() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    run(&mut served, number, &mut host, &set_feature(8, 0x0b, 0x900));
    for id in [100, 101] {
        host.send(&entry(0x0c, id, 0), &[], 0, &[]);
    }
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    served.target.set_size(ARRAY, Bytes(SIZE + BLOCK)).unwrap();
    served.target.set_size(ARRAY, Bytes(SIZE + 2 * BLOCK)).unwrap();
    served.tick();
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!((host.end_of(100).result, host.running()), (0x0004_0002, 1), "one event for both");
    // Read without an end of the event, and with one.
    let mut kept = get_log(9, 4, 4096, 0);
    kept[41] |= 0x80;
    assert_eq!(le32(&run_for(&mut served, number, &mut host, &kept, 4096).data, 0), 1);
    assert_eq!(le32(&run_for(&mut served, number, &mut host, &get_log(9, 4, 4096, 0), 4096).data, 0), 1);
    assert_eq!(le32(&run_for(&mut served, number, &mut host, &get_log(9, 4, 4096, 0), 4096).data, 0), 0);
    let page = run_for(&mut served, number, &mut host, &identify(3, 0, 1), 4096).data;
    assert_eq!(le64(&page, 0), SIZE / BLOCK + 2);
    served.target.set_size(ARRAY, Bytes(SIZE)).unwrap();
    served.tick();
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.end_of(101).result, 0x0004_0002);
}

#[test]
fn news_wait_for_the_request_and_for_the_hosts_wish() {
    let mut served = Served::new(SIZE);
    let (mut host, number, _) = admin(&mut served, 0);
    served.target.set_path(ARRAY, PortId(0), PathState::NonOptimized).unwrap();
    served.tick();
    host.send(&entry(0x0c, 100, 0), &[], 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.running(), 1, "the event is not enabled");
    run(&mut served, number, &mut host, &set_feature(8, 0x0b, 0x800));
    assert_eq!(host.end_of(100).result, 0x000c_0302, "type notice, kind 3, log 0ch");
    assert_eq!(run(&mut served, number, &mut host, &get_feature(8, 0x0b)).result, 0x800);
}

#[test]
fn a_change_of_one_ports_path_reaches_its_hosts_and_stops_its_commands_only() {
    let mut served = Served::new(SIZE);
    let (mut admin_host, admin_number, controller) = admin(&mut served, 0);
    let (mut host, number) = io(&mut served, 0, 0, (1, controller));
    run(&mut served, admin_number, &mut admin_host, &set_feature(8, 0x0b, 0x900));
    admin_host.send(&entry(0x0c, 100, 0), &[], 0, &[]);
    exchange(&mut served, admin_number, &mut admin_host, &mut Random::new(1));
    served.target.set_path(ARRAY, PortId(1), PathState::Inaccessible).unwrap();
    served.tick();
    assert!(served.connections[admin_number].out.is_empty(), "the other port's path");
    assert_eq!(read(&mut served, (&mut host, number), 5, 0, 512).status, 0);
    for (state, status) in [(PathState::Inaccessible, 0x302), (PathState::Lost, 0x301), (PathState::NonOptimized, 0)] {
        served.target.set_path(ARRAY, PortId(0), state).unwrap();
        served.tick();
        assert_eq!(read(&mut served, (&mut host, number), 5, 0, 512).status, status, "and the host may try again");
    }
    exchange(&mut served, admin_number, &mut admin_host, &mut Random::new(1));
    assert_eq!(admin_host.end_of(100).result, 0x000c_0302);
}

#[test]
fn the_list_of_arrays_is_that_of_the_host_and_its_changes_are_told() {
    let mut served = Served::new(SIZE);
    let number = served.accept(0);
    let mut host = Host::new(0, 0);
    let discovery = Names { subsystem: "nqn.2014-08.org.nvmexpress.discovery".into(), ..names() };
    connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &discovery);
    run(&mut served, number, &mut host, &property_set(2, 0x14, 0x0046_0001));
    let count = |served: &mut Served, host: &mut Host| {
        le64(&run_for(served, number, host, &get_log(9, 0x70, 1024, 0), 1024).data, 8)
    };
    assert_eq!(count(&mut served, &mut host), 2);
    run(&mut served, number, &mut host, &set_feature(8, 0x0b, 0x8000_0000));
    host.send(&entry(0x0c, 100, 0), &[], 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    let other = AllowedHosts::Listed(vec![Nqn::new("nqn.2014-08.org.nvmexpress:uuid:another").unwrap()]);
    let second = Subsystem { array: ArrayId(8), uuid: [8; 16], hosts: other, ..subsystem(SIZE) };
    served.target.offer(second).unwrap();
    served.tick();
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.end_of(100).result, 0x0070_f002);
    assert_eq!(count(&mut served, &mut host), 2, "the second array is not for this host");
    served.target.withdraw(ARRAY).unwrap();
    assert_eq!(count(&mut served, &mut host), 0);
    // Commands that only arrays have.
    assert_eq!(run(&mut served, number, &mut host, &identify(9, 0, 1)).status, FINAL | 2);
    assert_eq!(run(&mut served, number, &mut host, &get_log(9, 0x0c, 52, 0)).status, FINAL | 0x109);
    assert_eq!(run(&mut served, number, &mut host, &set_feature(9, 7, 0)).status, FINAL | 2);
}

#[test]
fn a_host_that_is_not_listed_is_refused_and_one_that_is_struck_off_is_closed() {
    let mut served = Served::new(SIZE);
    let (_, number, controller) = admin(&mut served, 0);
    let (_, io_number) = io(&mut served, 0, 0, (1, controller));
    let hosts = served.target.hosts(ARRAY).map(|host| (host.host.as_str().to_owned(), host.controller, host.port));
    assert_eq!(hosts.collect::<Vec<_>>(), [(HOST.to_owned(), controller, PortId(0))]);
    served.target.set_hosts(ARRAY, AllowedHosts::Listed(vec![Nqn::new("nqn.other").unwrap()])).unwrap();
    served.tick();
    assert!(served.connections[number].is_ended && served.connections[io_number].is_ended);
    assert_eq!(served.target.associations(), 0);
    let mut host = Host::new(0, 0);
    let number = served.accept(0);
    let (entry, data) = connect(1, 0, 31, 0xffff, &names());
    host.send(&entry, &data, 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    assert_eq!(host.end_of(1).status, FINAL | 0x184);
}

#[test]
fn no_host_is_told_to_give_up_an_array_that_may_start() {
    for (is_starting, expected) in [(true, 0x181), (false, 0x182)] {
        let mut served = Served::new(SIZE);
        served.target.withdraw(ARRAY).unwrap();
        served.target.set_starting(is_starting);
        let number = served.accept(0);
        let mut host = Host::new(0, 0);
        let (entry_of_connect, data) = connect(1, 0, 31, 0xffff, &names());
        host.send(&entry_of_connect, &data, 0, &[]);
        // Commands without Connect, of all kinds.
        for (id, opcode) in (2..).zip([0x00, 0x02, 0x06, 0x09, 0x18, 0x7f, 0xff]) {
            host.send(&entry(opcode, id, 0), &[], 0, &[]);
        }
        exchange(&mut served, number, &mut host, &mut Random::new(1));
        assert_eq!(host.ended.remove(&1).map(|ended| ended.status), Some(expected));
        assert!(host.ended.values().all(|ended| ended.status != 0 && (ended.status & FINAL == 0) == is_starting));
        if is_starting {
            // The same connection succeeds when the array is there.
            served.target.offer(subsystem(SIZE)).unwrap();
            connect_queue(&mut served, number, &mut host, (0, 31, 0xffff), &names());
            let status = run(&mut served, number, &mut host, &entry(0xff, 9, 0)).status;
            assert_eq!(status & FINAL, 0, "other arrays still start");
        }
    }
}

#[test]
fn a_silent_host_loses_all_connections_after_its_own_time_twice() {
    let mut served = Served::new(SIZE);
    let mut host = Host::new(0, 0);
    let number = served.accept(0);
    let (mut entry_of_connect, data) = connect(1, 0, 31, 0xffff, &names());
    // 4.2 seconds, which count as five.
    dword(&mut entry_of_connect, 12, 4200);
    host.send(&entry_of_connect, &data, 0, &[]);
    exchange(&mut served, number, &mut host, &mut Random::new(1));
    let controller = u16::try_from(host.end_of(1).result).unwrap();
    run(&mut served, number, &mut host, &property_set(2, 0x14, 0x0046_0001));
    assert_eq!(run(&mut served, number, &mut host, &get_feature(8, 0x0f)).result, 5000);
    let (mut io_host, io_number) = io(&mut served, 0, 0, (1, controller));
    let at = |ms| Instant::ZERO + Nanos::from_millis(ms);
    served.now = at(9_000);
    served.tick();
    // Any command is a sign of life, also on an I/O queue.
    assert_eq!(read(&mut served, (&mut io_host, io_number), 5, 0, 512).status, 0);
    served.now = at(18_999);
    served.tick();
    assert_eq!(served.target.associations(), 1);
    assert_eq!(served.target.next_deadline(), Some(at(19_000)));
    served.now = at(19_000);
    served.tick();
    assert_eq!((served.target.associations(), served.target.next_deadline()), (0, None));
    assert!(served.connections[number].is_ended && served.connections[io_number].is_ended);
}

#[test]
fn the_end_of_the_admin_connection_ends_the_others_and_no_other_host() {
    let mut served = Served::new(SIZE);
    let (_, number, controller) = admin(&mut served, 0);
    let (_, io_number) = io(&mut served, 0, 0, (1, controller));
    let (_, _, other) = admin(&mut served, 0);
    let (mut good, good_number) = io(&mut served, 0, 0, (1, other));
    assert_ne!(controller, other, "two associations of one host");
    served.close(number);
    assert!(served.connections[io_number].is_ended);
    assert_eq!(read(&mut served, (&mut good, good_number), 5, 0, 512).status, 0);
    assert_eq!(served.target.associations(), 1);
}

#[test]
fn a_controller_that_is_disabled_loses_its_queues_and_can_be_enabled_again() {
    let mut served = Served::new(SIZE);
    let (mut host, number, controller) = admin(&mut served, 0);
    let (_, io_number) = io(&mut served, 0, 0, (1, controller));
    run(&mut served, number, &mut host, &property_set(4, 0x14, 0x0046_0000));
    assert!(served.connections[io_number].is_ended);
    assert_eq!(run(&mut served, number, &mut host, &property_get(2, 0x1c, false)).result, 0);
    // Entries of queues with the wrong size: fatal status, until it is disabled again.
    run(&mut served, number, &mut host, &property_set(4, 0x14, 0x0000_0001));
    assert_eq!(run(&mut served, number, &mut host, &property_get(2, 0x1c, false)).result, 2);
    run(&mut served, number, &mut host, &property_set(4, 0x14, 0));
    run(&mut served, number, &mut host, &property_set(4, 0x14, 0x0046_0001));
    let (mut again, io_number) = io(&mut served, 0, 0, (1, controller));
    assert_eq!(read(&mut served, (&mut again, io_number), 5, 0, 512).status, 0);
}

#[test]
fn without_the_hosts_consent_each_read_has_a_response_with_the_place_in_the_queue() {
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let mut host = Host::new(0, 0);
    host.no_head = false;
    let number = served.accept(0);
    connect_queue(&mut served, number, &mut host, (1, 3, controller), &names());
    let heads: Vec<u16> = (0..6)
        .map(|id| {
            let ended = read(&mut served, (&mut host, number), 10 + id, 0, 512);
            assert!(!ended.by_data);
            ended.head
        })
        .collect();
    assert_eq!(heads, [2, 3, 0, 1, 2, 3], "Connect took the first of four entries");
}

#[test]
fn a_read_that_fails_never_ends_with_success() {
    for (outcome, status) in [
        (CommandOutcome::Lost, FINAL | 0x281),
        (CommandOutcome::OutOfRange, FINAL | 0x80),
        (CommandOutcome::Offline, 0x302),
    ] {
        for digests in [0, 3] {
            let mut served = Served::new(SIZE);
            let (_, _, controller) = admin(&mut served, 0);
            let (mut host, number) = io(&mut served, digests, 0, (1, controller));
            served.outcome = outcome;
            // Before the first data, and after some.
            for len in [512, 64 << 10] {
                let ended = read(&mut served, (&mut host, number), 5, 0, len);
                assert_eq!((ended.status, ended.by_data), (status, false), "{outcome:?}, {len} bytes");
            }
        }
    }
}

#[test]
fn every_failure_of_a_write_has_its_status() {
    for (outcome, status) in [
        (CommandOutcome::Lost, FINAL | 0x280),
        (CommandOutcome::ReadOnly, FINAL | 0x20),
        (CommandOutcome::NoSpace, FINAL | 0x81),
        (CommandOutcome::Offline, 0x302),
    ] {
        let mut served = Served::new(SIZE);
        let (_, _, controller) = admin(&mut served, 0);
        let (mut host, number) = io(&mut served, 0, 0, (1, controller));
        served.outcome = outcome;
        for len in [512, 64 << 10] {
            assert_eq!(write(&mut served, (&mut host, number), 5, 0, &vec![1; len]).status, status);
        }
    }
}

#[test]
fn a_write_is_answered_only_after_the_engine_has_ended_it() {
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let (mut host, number) = io(&mut served, 0, 0, (1, controller));
    for (id, len) in [(5, 4096), (6, 64 << 10)] {
        send_write(&mut host, id, 0, &vec![1; len]);
        // All bytes of the host are there, and the engine does nothing.
        while !host.out.is_empty() {
            let sent = std::mem::take(&mut host.out);
            served.feed(number, &sent);
            host.receive(&std::mem::take(&mut served.connections[number].out));
        }
        assert!(host.ended.is_empty() && host.running() == 1);
        assert_eq!(served.jobs(), 1, "the engine has the write with its payload");
        served.settle(number);
        host.receive(&std::mem::take(&mut served.connections[number].out));
        assert_eq!(host.end_of(id).status, 0);
    }
}

#[test]
fn each_part_of_a_large_write_is_asked_for_exactly_once() {
    let mut served = Served::new(SIZE);
    let (_, _, controller) = admin(&mut served, 0);
    let (mut host, number) = io(&mut served, 0, 0, (1, controller));
    host.piece = 5000;
    let mut random = Random::new(2);
    let data: Vec<Vec<u8>> = (0..8).map(|_| random.bytes(100 << 10)).collect();
    host.seen.clear();
    for (id, data) in (0..8).zip(&data) {
        send_write(&mut host, id, u64::from(id) * 300, data);
    }
    exchange(&mut served, number, &mut host, &mut random);
    assert_eq!(host.running(), 0, "a write without an answer: a part of it was not asked for");
    let questions = host.seen.iter().filter(|kind| **kind == 9).count();
    assert_eq!(questions, 8 * 7, "100 KiB in parts of 16 KiB");
    for (id, data) in (0..8_u64).zip(&data) {
        let start = usize::try_from(id * 300 * BLOCK).unwrap();
        assert!(served.disk[start..start + data.len()] == data[..]);
    }
}

#[test]
fn a_damaged_payload_is_not_written_and_the_host_may_try_again() {
    for len in [4096, 64 << 10] {
        let mut served = Served::new(SIZE);
        let (_, _, controller) = admin(&mut served, 0);
        let (mut host, number) = io(&mut served, 2, 0, (1, controller));
        send_write(&mut host, 5, 0, &vec![0x77; len]);
        let mut is_damaged = false;
        loop {
            let mut sent = std::mem::take(&mut host.out);
            if sent.is_empty() {
                break;
            }
            // The last byte before a digest.
            if sent.len() > 200 && !is_damaged {
                let at = sent.len() - 5;
                sent[at] ^= 1;
                is_damaged = true;
            }
            served.feed(number, &sent);
            host.receive(&std::mem::take(&mut served.connections[number].out));
        }
        assert!(is_damaged);
        served.settle(number);
        host.receive(&std::mem::take(&mut served.connections[number].out));
        assert_eq!(host.end_of(5).status, 0x22, "a transient error of the transport");
        assert!(served.disk.iter().all(|byte| *byte == 0));
        // The connection is as good as before.
        assert_eq!(write(&mut served, (&mut host, number), 5, 0, &vec![0x77; len]).status, 0);
        assert!(served.disk[..len].iter().all(|byte| *byte == 0x77));
    }
}

#[test]
fn random_loads_on_several_queues_leave_the_content_that_hosts_wrote() {
    for seed in 1..40 {
        let mut random = Random::new(seed);
        let mut served = Served::new(SIZE);
        served.piece = *random.pick(&[512, 4096, 16 << 10, 1 << 20]);
        let (_, _, controller) = admin(&mut served, 0);
        let mut hosts: Vec<(Host, usize)> = (1..=3)
            .map(|queue| {
                let (digests, alignment) = (*random.pick(&[0, 1, 2, 3]), *random.pick(&[0, 0, 7, 31]));
                io(&mut served, digests, alignment, (queue, controller))
            })
            .collect();
        let mut model = vec![0; usize::try_from(SIZE).unwrap()];
        for _ in 0..6 {
            // Writes to places that are 512 blocks apart, from all queues at once.
            for place in 0..16_u64 {
                let (host, _) = &mut hosts[random.below(3)];
                host.piece = *random.pick(&[512, 3000, 1 << 20]);
                let blocks = 1 + random.below(300);
                let data = random.bytes(512 * blocks);
                let id = u16::try_from(place).unwrap() | 0x3000;
                send_write(host, id, place * 512, &data);
                let start = usize::try_from(place * 512 * BLOCK).unwrap();
                model[start..start + data.len()].copy_from_slice(&data);
            }
            for (host, number) in &mut hosts {
                exchange(&mut served, *number, host, &mut random);
                assert_eq!(host.running(), 0);
                assert!(std::mem::take(&mut host.ended).values().all(|ended| ended.status == 0));
            }
        }
        assert!(served.disk == model, "seed {seed}");
        let (host, number) = &mut hosts[0];
        for place in 0..16_usize {
            let ended = read(&mut served, (host, *number), 7, place as u64 * 512, 100 << 10);
            let start = place * 512 * 512;
            assert!(ended.data == model[start..start + (100 << 10)], "seed {seed}");
        }
    }
}
