//! Hosts and target together: bytes go to and fro until nothing moves.

use super::bytes::{connect, property_set, Names};
use super::host::Host;
use super::random::Random;
use super::served::{Served, NQN};

pub const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:feedface-0000-4000-8000-000000000001";

pub fn names() -> Names {
    Names { host_id: [0xab; 16], host: HOST.into(), subsystem: NQN.into() }
}

/// Move bytes both ways, in pieces of any length, and let the engine work, until nothing moves.
pub fn exchange(served: &mut Served, number: usize, host: &mut Host, random: &mut Random) {
    loop {
        let sent = std::mem::take(&mut host.out);
        let mut rest = &sent[..];
        while !rest.is_empty() {
            let count = if random.below(2) == 0 { rest.len() } else { 1 + random.below(rest.len()) };
            served.feed(number, &rest[..count]);
            rest = &rest[count..];
            if random.below(3) == 0 && served.connections[number].queue.is_some() {
                served.work(number, random);
            }
        }
        let is_open = served.connections[number].queue.is_some();
        let worked = is_open && served.work(number, random);
        let received = std::mem::take(&mut served.connections[number].out);
        host.receive(&received);
        if sent.is_empty() && received.is_empty() && !worked {
            return;
        }
    }
}

/// A host whose admin queue is connected and enabled, its connection, and the controller's number.
pub fn admin(served: &mut Served, digests: u8) -> (Host, usize, u16) {
    let mut host = Host::new(digests, 0);
    let number = served.accept(0);
    let controller = connect_queue(served, number, &mut host, (0, 31, 0xffff), &names());
    let enable = property_set(2, 0x14, 0x0046_0001);
    assert_eq!(run(served, number, &mut host, &enable).status, 0);
    (host, number, controller)
}

/// An I/O queue of an association.
pub fn io(served: &mut Served, digests: u8, alignment: u8, (queue, controller): (u16, u16)) -> (Host, usize) {
    let mut host = Host::new(digests, alignment);
    let number = served.accept(0);
    connect_queue(served, number, &mut host, (queue, 127, controller), &names());
    (host, number)
}

/// Connect a queue; the controller's number.
pub fn connect_queue(
    served: &mut Served,
    number: usize,
    host: &mut Host,
    (queue, entries, controller): (u16, u16, u16),
    names: &Names,
) -> u16 {
    let (mut entry, data) = connect(1, queue, entries, controller, names);
    entry[46] = if host.no_head { 4 } else { 0 };
    host.send(&entry, &data, 0, &[]);
    exchange(served, number, host, &mut Random::new(1));
    let ended = host.end_of(1);
    assert_eq!(ended.status, 0, "Connect is refused: {ended:x?}");
    u16::try_from(ended.result).unwrap()
}

/// One command without data, and its end.
pub fn run(served: &mut Served, number: usize, host: &mut Host, entry: &[u8; 64]) -> super::host::Ended {
    run_for(served, number, host, entry, 0)
}

/// One command that returns this number of bytes, and its end.
pub fn run_for(
    served: &mut Served,
    number: usize,
    host: &mut Host,
    entry: &[u8; 64],
    len: usize,
) -> super::host::Ended {
    host.send(entry, &[], len, &[]);
    exchange(served, number, host, &mut Random::new(1));
    host.end_of(u16::from_le_bytes([entry[2], entry[3]]))
}
