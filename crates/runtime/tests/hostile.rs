//! Clients that mean harm, or are just broken: the server outlives them, forgets them, and serves others meanwhile.
//!
//! `OPENRAID_RUNTIME_SESSIONS` sets how many mutated sessions there are (500), `OPENRAID_RUNTIME_SEED` where they
//! start.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use openraid_nbd::{Cookie, NbdCommand, NbdRequest};
use openraid_sys::Socket;
use openraid_units::{ArrayOffset, Bytes};
use socket2::SockRef;
use support::random::Random;
use support::victim::{serve_if_victim, Victim};

const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const WRITE: NbdCommand = NbdCommand::Write { fua: false };
/// KiB that a server may have grown by after all clients.
const GROWTH_MAX: u64 = 64 << 10;
/// Far below the 30 seconds after which a silent client is disconnected in any case, far above a slow machine's
/// hiccups.
const SERVED_WITHIN: Duration = Duration::from_secs(10);

/// What the server says until an export is chosen: its greeting, and two replies.
const CHOSEN_BYTES: usize = 18 + 20 + 12 + 20;

const FLAGS: [u8; 4] = [0, 0, 0, 3];

fn option(number: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    [&b"IHAVEOPT"[..], &number.to_be_bytes(), &length, payload].concat()
}

fn go() -> Vec<u8> {
    option(7, b"\0\0\0\x04disk\0\0")
}

fn head(command: NbdCommand, offset: u64, length: u64) -> Vec<u8> {
    let cookie = Cookie(offset ^ length);
    NbdRequest { cookie, command, offset: ArrayOffset(offset), length: Bytes(length) }.encode().to_vec()
}

fn raw(victim: &Victim) -> UnixStream {
    let stream = UnixStream::connect(victim.socket()).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    stream
}

/// A connection that has chosen its export; what the server said is read.
fn chosen(victim: &Victim) -> UnixStream {
    let mut stream = raw(victim);
    stream.write_all(&[&FLAGS[..], &go()].concat()).expect("the server reads");
    stream.read_exact(&mut [0; CHOSEN_BYTES]).expect("the server answers");
    stream
}

/// Can the client of this connection still ask?
fn is_there(stream: &mut UnixStream) -> bool {
    stream.write_all(&head(READ, 0, 4096)).is_ok() && stream.read_exact(&mut [0; 16 + 4096]).is_ok()
}

fn is_served(victim: &Victim) {
    let begun = Instant::now();
    let mut client = victim.connect();
    let payload = vec![3; 65_536];
    assert_eq!(client.call(WRITE, 0, 65_536, &payload).result, Ok(()));
    let answer = client.call(READ, 0, 65_536, &[]);
    assert!(answer.result.is_ok() && answer.data == payload);
    assert!(begun.elapsed() < SERVED_WITHIN, "another client waited {:?}", begun.elapsed());
    client.disconnect();
}

/// Run `attack`. After it the server must be as before.
fn bears(test: &str, attack: impl FnOnce(&Victim)) {
    serve_if_victim();
    let victim = Victim::start(test);
    is_served(&victim);
    let (memory, descriptors) = (victim.memory(), victim.descriptors());
    attack(&victim);
    is_served(&victim);
    victim.settle(descriptors);
    let grown = victim.memory().saturating_sub(memory);
    assert!(grown <= GROWTH_MAX, "the server has grown by {grown} KiB");
    println!("grown by {grown} KiB");
}

/// A connection that stops in the middle of the negotiation.
fn half_open(victim: &Victim, nth: usize) -> UnixStream {
    let mut stream = raw(victim);
    let begun = [&FLAGS[..], &option(7, &[0; 40_000])].concat();
    stream.write_all(&begun[..nth % 64]).expect("the server reads");
    stream
}

#[test]
fn a_thousand_idle_and_half_open_connections_cost_little_and_others_are_served() {
    bears("a_thousand_idle_and_half_open_connections_cost_little_and_others_are_served", |victim| {
        let before = victim.memory();
        let mut idle: Vec<_> = (0..500).map(|_| chosen(victim)).collect();
        let half_open: Vec<_> = (0..500).map(|nth| half_open(victim, nth)).collect();
        is_served(victim);
        assert!(idle.iter_mut().all(is_there), "a client that has chosen an export keeps its connection");
        let cost = victim.memory().saturating_sub(before);
        assert!(cost <= GROWTH_MAX, "{} connections cost {cost} KiB", half_open.len() + idle.len());
        println!("1000 connections cost {cost} KiB");
    });
}

#[test]
fn strangers_have_their_own_places_and_the_oldest_of_them_goes_first() {
    bears("strangers_have_their_own_places_and_the_oldest_of_them_goes_first", |victim| {
        let mut client = chosen(victim);
        // More than there are places for all connections.
        let mut strangers: Vec<_> = (0..1100).map(|nth| half_open(victim, nth)).collect();
        is_served(victim);
        assert!(is_there(&mut client));
        let greeting = |stream: &mut UnixStream| {
            stream.read_exact(&mut [0; 18]).expect("all are greeted");
            stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
            // It has ended, or it is silent.
            stream.read(&mut [0; 1]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let stay: Vec<bool> = strangers.iter_mut().map(greeting).collect();
        let count = stay.iter().filter(|stays| **stays).count();
        // The client that was served had one place of the 128 for a moment.
        assert_eq!((count, stay.iter().rposition(|stays| !stays)), (127, Some(1100 - 127 - 1)));
    });
}

#[test]
fn a_connection_above_the_limit_is_refused_at_once_until_another_one_ends() {
    bears("a_connection_above_the_limit_is_refused_at_once_until_another_one_ends", |victim| {
        let mut crowd = Vec::new();
        loop {
            let mut stream = raw(victim);
            let asked = stream.write_all(&[&FLAGS[..], &go()].concat());
            // One too many is closed before it is greeted, perhaps before it has asked.
            if asked.and_then(|()| stream.read_exact(&mut [0; CHOSEN_BYTES])).is_err() {
                break;
            }
            crowd.push(stream);
            assert!(crowd.len() <= 1024, "more connections than there may be");
        }
        assert!(crowd.len() > 500, "only {} connections", crowd.len());
        crowd.truncate(crowd.len() - 24);
        // A server that has much to do sees a little later that they have left.
        let greeted = || {
            let mut stream = raw(victim);
            matches!(stream.read(&mut [0; 1]), Ok(1))
        };
        let waited =
            (0..1000).take_while(|_| !greeted()).map(|_| std::thread::sleep(Duration::from_millis(10))).count();
        assert!(waited < 1000, "no client is accepted although there is room");
    });
}

#[test]
fn large_answers_that_a_client_does_not_read_delay_no_other_client() {
    bears("large_answers_that_a_client_does_not_read_delay_no_other_client", |victim| {
        let requests: Vec<u8> = (0..64).flat_map(|nth| head(READ, nth << 10, 16 << 20)).collect();
        let greedy: Vec<_> = (0..24)
            .map(|_| {
                let mut stream = chosen(victim);
                stream.write_all(&requests).expect("the server reads");
                stream
            })
            .collect();
        is_served(victim);
        // Half of them leave in the middle of an answer.
        drop(greedy.into_iter().step_by(2).collect::<Vec<_>>());
        is_served(victim);
    });
}

#[test]
fn answers_that_a_client_reads_in_small_pieces_delay_no_other_client() {
    bears("answers_that_a_client_reads_in_small_pieces_delay_no_other_client", |victim| {
        let requests: Vec<u8> = (0..16).flat_map(|nth| head(READ, nth << 10, 1 << 20)).collect();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let slow: Vec<_> = (0..16)
                .map(|_| {
                    let mut stream = chosen(victim);
                    stream.write_all(&requests).expect("the server reads");
                    stream
                })
                .collect();
            let stop = &stop;
            scope.spawn(move || {
                let mut slow = slow;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    slow.retain_mut(|stream| matches!(stream.read(&mut [0; 40_000]), Ok(1..)));
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            is_served(victim);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}

#[test]
fn payload_that_is_announced_and_never_sent_delays_no_other_client() {
    bears("payload_that_is_announced_and_never_sent_delays_no_other_client", |victim| {
        let silent: Vec<_> = (0..48)
            .map(|nth| {
                let mut stream = chosen(victim);
                stream.write_all(&head(WRITE, nth << 20, 32 << 20)).expect("the server reads");
                stream.write_all(&vec![1; 10_000]).expect("the server reads");
                stream
            })
            .collect();
        is_served(victim);
        drop(silent);
    });
}

#[test]
fn many_small_answers_that_a_client_does_not_read_delay_no_other_client() {
    bears("many_small_answers_that_a_client_does_not_read_delay_no_other_client", |victim| {
        let requests: Vec<u8> = (0..4096).flat_map(|nth| head(READ, nth << 12, 4096)).collect();
        let flushes: Vec<u8> = (0..4096).flat_map(|_| head(NbdCommand::Cache, 0, 1)).collect();
        let greedy: Vec<_> = (0..32)
            .map(|nth| {
                let mut stream = chosen(victim);
                stream.set_nonblocking(true).expect("a mode");
                let bytes = if nth % 2 == 0 { &requests } else { &flushes };
                // As much as the server takes.
                let _ = stream.write(bytes);
                stream
            })
            .collect();
        is_served(victim);
        drop(greedy);
    });
}

/// A connection whose close waits for an hour, because its peer takes no data; and that peer.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut one = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
    let (peer, _) = listener.accept().expect("the other end");
    one.set_nonblocking(true).expect("it may be");
    while one.write(&[0; 1 << 16]).is_ok() {}
    SockRef::from(&one).set_linger(Some(Duration::from_secs(3600))).expect("it may be");
    (one, peer)
}

#[test]
fn files_that_clients_send_hold_up_no_other() {
    bears("files_that_clients_send_hold_up_no_other", |victim| {
        let mut peers = Vec::new();
        // While the client negotiates, as a client of an array, and in the queue of a client that has broken the protocol.
        let streams = [raw(victim), chosen(victim), raw(victim)];
        victim.pause();
        for (nth, stream) in streams.into_iter().enumerate() {
            let socket = Socket::from(stream);
            if nth == 2 {
                socket.send_with_file(&[0xff; 64], None).expect("there is room");
            }
            let (file, peer) = lingering();
            let bytes = if nth == 1 { head(READ, 0, 4096) } else { vec![0; 3] };
            socket.send_with_file(&bytes, Some(file.as_fd())).expect("there is room");
            peers.push(peer);
            // The server has the only copies.
            drop(file);
        }
        victim.go_on();
        is_served(victim);
        // Then the closes end.
        drop(peers);
    });
}

#[test]
fn nonsense_at_every_place_ends_in_a_refusal_or_the_end_of_the_connection() {
    bears("nonsense_at_every_place_ends_in_a_refusal_or_the_end_of_the_connection", |victim| {
        let with_go = |rest: &[u8]| [&FLAGS[..], &go(), rest].concat();
        let mut long_option = option(7, &[]);
        long_option[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut skipped = option(6, &[]);
        skipped[12..16].copy_from_slice(&(1u32 << 20).to_be_bytes());
        let mut wrong_magic = head(READ, 0, 512);
        wrong_magic[0] ^= 0xff;
        let mut wrong_command = head(READ, 0, 512);
        wrong_command[7] = 77;
        let sessions: Vec<Vec<u8>> = vec![
            vec![],
            vec![0xff; 4],
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            [&FLAGS[..], &long_option].concat(),
            [&FLAGS[..], &skipped, &vec![0; 1 << 20], &option(2, &[])].concat(),
            [&FLAGS[..], &option(99, &[1, 2, 3]), &option(8, &[9]), &option(10, &[0xff; 30])].concat(),
            [&FLAGS[..], &option(1, b"no such export")].concat(),
            with_go(&wrong_magic),
            with_go(&wrong_command),
            with_go(&head(READ, u64::MAX - 100, 4096)),
            with_go(&head(WRITE, 0, u64::from(u32::MAX))),
            with_go(&[head(WRITE, 1 << 60, 1 << 20), vec![1; 1 << 20], head(READ, 0, 512)].concat()),
            with_go(&[head(WRITE, 0, 48 << 20), vec![1; 48 << 20], head(READ, 0, 512)].concat()),
            with_go(&head(WRITE, 0, 1 << 20)),
            with_go(&[head(WRITE, 0, 4096), vec![1; 17]].concat()),
            with_go(&head(READ, 0, 512)[..13]),
        ];
        for bytes in sessions {
            let mut stream = raw(victim);
            // The server may close before it has read everything.
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let ended = stream.read_to_end(&mut answer);
            let reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
            assert!(
                ended.as_ref().err().is_none_or(reset),
                "a session of {} bytes did not end: {ended:?}",
                bytes.len()
            );
        }
    });
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A sound session of random content.
fn session(random: &mut Random) -> Vec<u8> {
    let mut bytes = FLAGS.to_vec();
    if random.below(2) == 0 {
        bytes.extend(option(8, &[]));
        if random.below(2) == 0 {
            bytes.extend(option(10, b"\0\0\0\x04disk\0\0\0\x01\0\0\0\x0fbase:allocation"));
        }
    }
    if random.below(8) == 0 {
        bytes.extend(option(3, &[]));
    }
    bytes.extend(go());
    for _ in 0..random.below(24) {
        let length = *random.pick(&[1u64, 512, 4096, 5000, 40_000, 300_000]);
        let offset = random.below(64 << 20) as u64;
        let command = *random.pick(&[
            READ,
            NbdCommand::Read { dont_fragment: true },
            WRITE,
            NbdCommand::Write { fua: true },
            NbdCommand::Trim { fua: false },
            NbdCommand::WriteZeroes { fua: false, no_hole: false, fast: false },
            NbdCommand::Flush,
            NbdCommand::Cache,
            NbdCommand::BlockStatus { one: false },
        ]);
        let (offset, length) = if command == NbdCommand::Flush { (0, 0) } else { (offset, length) };
        bytes.extend(head(command, offset, length));
        if command.is_write() {
            bytes.extend(random.bytes(usize::try_from(length).expect("small")));
        }
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = *random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            2 => bytes.truncate(at.max(1)),
            3 => drop(bytes.drain(at..(at + 1 + random.below(40)).min(bytes.len()))),
            4 => {
                let copy = bytes[at..(at + 1 + random.below(60)).min(bytes.len())].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let count = 1 + random.below(16);
                let noise = random.bytes(count);
                bytes.splice(at..at, noise);
            }
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

#[test]
fn mutated_sessions_are_borne() {
    bears("mutated_sessions_are_borne", |victim| {
        let (sessions, seed) =
            (from_environment("OPENRAID_RUNTIME_SESSIONS", 500), from_environment("OPENRAID_RUNTIME_SEED", 1));
        for number in seed..seed + sessions {
            let mut random = Random::new(number);
            let mut bytes = session(&mut random);
            mutate(&mut bytes, &mut random);
            let mut stream = raw(victim);
            let leaves_at_once = random.below(10) == 0;
            // The server may close, or wait for its answers to be taken, before it has read everything.
            let mut reader = stream.try_clone().expect("a second descriptor");
            let taker = (!leaves_at_once).then(|| {
                std::thread::spawn(move || {
                    let mut sink = vec![0; 1 << 16];
                    while matches!(reader.read(&mut sink), Ok(1..)) {}
                })
            });
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            if let Some(taker) = taker {
                taker.join().expect("a reader");
            }
            if number % 100 == 0 {
                is_served(victim);
            }
        }
    });
}
