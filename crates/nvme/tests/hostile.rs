//! Sessions with all kinds of damage: a target may not panic, hang, or use more memory than its limits allow, and a good host
//! at the same target must not notice.
//!
//! `OPENRAID_NVME_SESSIONS` sets the number of mutated sessions (10,000 by default), and `OPENRAID_NVME_SEED` the first seed. A
//! failure prints the seed of its session.

mod support;

use openraid_nvme::limits::LOG_BYTES_MAX;
use openraid_nvme::HostQueue;
use openraid_units::Nanos;
use support::bytes::{
    access, by_transport, dword, entry, get_feature, get_log, ic_request, identify, in_capsule, property_get,
    property_set, set_feature,
};
use support::host::Host;
use support::random::Random;
use support::served::{Piece, Served};
use support::session::{admin, exchange, io, names};

const SIZE: u64 = 256 << 10;

/// An administrative command of any kind.
fn admin_command(id: u16, random: &mut Random) -> [u8; 64] {
    let number = |random: &mut Random, limit| u32::try_from(random.below(limit)).unwrap();
    let log = |random: &mut Random| *random.pick(&[0, 1, 2, 3, 4, 5, 0x0c, 0x70, 0x99]);
    match random.below(9) {
        0 => identify(id, number(random, 10), number(random, 3)),
        1 => get_log(id, log(random), 64 << random.below(9), 0),
        2 => set_feature(id, *random.pick(&[7, 0x0b, 0x0f, 6]), *random.pick(&[0, 0x0003_0003, u32::MAX])),
        3 => get_feature(id, *random.pick(&[7, 0x0b, 0x0f, 1])),
        4 => property_get(id, *random.pick(&[0, 8, 0x14, 0x1c]), random.below(2) == 0),
        5 => property_set(id, 0x14, *random.pick(&[0x0046_0001, 0x0046_0000, 0x0046_4001, 0])),
        6 => entry(0x18, id, 0),
        _ => entry(0x0c, id, 0),
    }
}

/// An I/O command of any kind, and the data in its capsule.
fn io_command(id: u16, random: &mut Random) -> ([u8; 64], Vec<u8>) {
    let blocks = 1 + random.below(40);
    let first = random.below(400) as u64;
    let len = u32::try_from(blocks * 512).unwrap();
    let opcode = *random.pick(&[0, 1, 1, 1, 2, 2, 8, 9]);
    let mut command = access(opcode, id, first, u32::try_from(blocks).unwrap());
    match opcode {
        1 if blocks <= 16 => {
            in_capsule(&mut command, len);
            return (command, random.bytes(blocks * 512));
        }
        9 => {
            dword(&mut command, 10, 1);
            dword(&mut command, 11, 4);
            in_capsule(&mut command, 32);
            let mut list = vec![0; 32];
            list[4] = 3;
            list[20] = 9;
            return (command, list);
        }
        1 | 2 => by_transport(&mut command, len),
        _ => {}
    }
    (command, vec![])
}

/// An intact session of one connection: what the host sends, apart from data that it is asked for.
fn session(served: &mut Served, random: &mut Random) -> (usize, Vec<u8>) {
    let digests = *random.pick(&[0, 0, 1, 2, 3]);
    let alignment = *random.pick(&[0, 0, 31]);
    let host = Host::new(digests, alignment);
    let mut bytes = ic_request(digests, alignment);
    let is_io = random.below(3) > 0;
    let controller = if is_io { admin(served, 0).2 } else { 0xffff };
    let number = served.accept(0);
    let (mut connect, data) = support::bytes::connect(1, u16::from(is_io), 31, controller, &names());
    connect[46] = *random.pick(&[0, 4]);
    dword(&mut connect, 12, *random.pick(&[0, 1, 5000, u32::MAX]));
    bytes.extend_from_slice(&host.capsule(&connect, &data));
    if !is_io {
        bytes.extend_from_slice(&host.capsule(&property_set(2, 0x14, 0x0046_0001), &[]));
    }
    for id in 0..u16::try_from(2 + random.below(12)).unwrap() {
        let (command, data) = if is_io { io_command(id, random) } else { (admin_command(id, random), vec![]) };
        bytes.extend_from_slice(&host.capsule(&command, &data));
        if command[0] == 1 && data.is_empty() {
            // A guess of the tag of the first command, which is often right.
            let tag = *random.pick(&[0, id, 0x0100]);
            let count = 1 + random.below(20);
            let data = random.bytes(512 * count);
            bytes.extend_from_slice(&host.data_pdu(id, tag, (0, &data), random.below(2) == 0));
        }
    }
    (number, bytes)
}

/// Extreme values for 32-bit fields.
const EXTREMES: [u32; 9] = [0, 1, 0xff, 0x48, 0x1_0000, 0x10_0001, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        if bytes.len() < 8 {
            return;
        }
        let reach = *random.pick(&[128, 300, 1400, bytes.len(), bytes.len()]);
        let at = random.below(reach.min(bytes.len() - 7));
        match random.below(9) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next().to_be_bytes()[0],
            2 => bytes[at..at + 4].copy_from_slice(&random.pick(&EXTREMES).to_le_bytes()),
            3 => bytes[at..at + 8].fill(*random.pick(&[0, 0xff])),
            4 => bytes.truncate(at),
            5 => {
                let end = (at + random.below(100)).min(bytes.len());
                bytes.drain(at..end);
            }
            6 => {
                let end = (at + random.below(200)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            7 => {
                let count = random.below(50);
                let noise = random.bytes(count);
                bytes.splice(at..at, noise);
            }
            // The common headers of PDUs: types, flags, lengths and offsets that are nearly right.
            _ => {
                let value = [*random.pick(&[0, 2, 4, 6, 9]), *random.pick(&[0, 1, 2, 4]), *random.pick(&[24, 72, 128])];
                bytes[at..at + 3].copy_from_slice(&value);
            }
        }
    }
}

/// Pass bytes to a connection in pieces, and check the limits after each.
fn torment(served: &mut Served, number: usize, bytes: &[u8], random: &mut Random) {
    let mut rest = bytes;
    while !rest.is_empty() && served.connections[number].queue.is_some() {
        let count = if random.below(3) == 0 { rest.len() } else { 1 + random.below(rest.len()) };
        let held = served.feed(number, &rest[..count]);
        assert!(held <= HostQueue::<Piece>::BUFFER_MIN, "{held} bytes held");
        rest = &rest[count..];
        if served.connections[number].queue.is_some() && random.below(2) == 0 {
            served.work(number, random);
        }
        served.connections[number].out.clear();
        let open = served.connections[number].queue.as_ref().map_or(0, HostQueue::open_bytes);
        assert!(open <= 32 << 20, "{open} bytes of payload wanted");
    }
    served.settle(number);
    // The time in which a host must be heard passes for some.
    served.now = served.now + Nanos::from_millis(random.below(4000) as u64);
    served.tick();
    served.close(number);
}

fn number_from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Prints the seed of the session if a test panics in it.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the session that failed: OPENRAID_NVME_SEED={} OPENRAID_NVME_SESSIONS=1", self.0);
        }
    }
}

/// A target with a good host, and what the host has written.
struct Neighbour {
    served: Served,
    host: Host,
    number: usize,
    content: Vec<u8>,
}

/// The first block of the good host. It writes before each read, because mutated sessions reach all blocks.
const KEPT_FROM: u64 = 480;

impl Neighbour {
    fn new() -> Self {
        let mut served = Served::new(SIZE);
        served.output_max = LOG_BYTES_MAX as usize + 4096;
        let (_, _, controller) = admin(&mut served, 0);
        let (host, number) = io(&mut served, 3, 0, (1, controller));
        Self { served, host, number, content: vec![] }
    }

    /// The good host writes, and reads what it wrote.
    fn check(&mut self, random: &mut Random) {
        self.content = random.bytes(32 * 512);
        let mut write = access(1, 1, KEPT_FROM, 32);
        by_transport(&mut write, 32 * 512);
        self.host.send(&write, &[], 0, &self.content);
        exchange(&mut self.served, self.number, &mut self.host, random);
        assert_eq!(self.host.end_of(1).status, 0);
        let mut read = access(2, 2, KEPT_FROM, 32);
        by_transport(&mut read, 32 * 512);
        self.host.send(&read, &[], self.content.len(), &[]);
        exchange(&mut self.served, self.number, &mut self.host, random);
        assert!(self.host.end_of(2).data == self.content, "the good host reads other data");
    }

    /// Only the good host is left.
    fn clear(&mut self) {
        let count = self.served.connections.len();
        (2..count).for_each(|number| self.served.close(number));
        self.served.connections.truncate(2);
        assert_eq!(self.served.target.associations(), 1, "an association outlives its connections");
    }
}

#[test]
fn targets_survive_mutated_sessions_and_a_good_host_goes_on() {
    let first = number_from_environment("OPENRAID_NVME_SEED", 1);
    let mut neighbour = Neighbour::new();
    for seed in first..first + number_from_environment("OPENRAID_NVME_SESSIONS", 10_000) {
        let _named = Named(seed);
        let mut random = Random::new(seed);
        let (number, mut bytes) = session(&mut neighbour.served, &mut random);
        mutate(&mut bytes, &mut random);
        torment(&mut neighbour.served, number, &bytes, &mut random);
        if seed.is_multiple_of(16) {
            neighbour.check(&mut random);
        }
        neighbour.clear();
    }
}

#[test]
fn noise_is_borne() {
    let mut random = Random::new(99);
    let mut neighbour = Neighbour::new();
    for length in 0..1000 {
        let noise = random.bytes(length);
        let number = neighbour.served.accept(0);
        torment(&mut neighbour.served, number, &noise, &mut random);
        // Random bytes after a valid start reach later states.
        let (number, bytes) = session(&mut neighbour.served, &mut random);
        let start = random.below(bytes.len());
        torment(&mut neighbour.served, number, &[&bytes[..start], &noise].concat(), &mut random);
        neighbour.clear();
    }
}

#[test]
fn every_truncation_waits_for_more_and_does_nothing_else() {
    let mut random = Random::new(5);
    let mut neighbour = Neighbour::new();
    for seed in 1..40 {
        let (number, bytes) = session(&mut neighbour.served, &mut Random::new(seed));
        neighbour.served.feed(number, &bytes);
        let is_intact = neighbour.served.connections[number].closed.is_none();
        neighbour.clear();
        for length in (0..bytes.len()).step_by(37).filter(|_| is_intact) {
            let (number, bytes) = session(&mut neighbour.served, &mut Random::new(seed));
            neighbour.served.feed(number, &bytes[..length]);
            assert_eq!(neighbour.served.connections[number].closed, None, "cut at {length}");
            neighbour.served.settle(number);
            neighbour.clear();
        }
    }
    neighbour.check(&mut random);
}

#[test]
fn extreme_numbers_at_every_place_are_borne() {
    let mut random = Random::new(12);
    let mut neighbour = Neighbour::new();
    let count = session(&mut neighbour.served, &mut Random::new(12)).1.len().min(2200);
    neighbour.clear();
    for value in EXTREMES {
        for at in (0..count - 4).step_by(3) {
            let (number, mut bytes) = session(&mut neighbour.served, &mut Random::new(12));
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            torment(&mut neighbour.served, number, &bytes, &mut random);
            neighbour.clear();
        }
    }
    neighbour.check(&mut random);
}
