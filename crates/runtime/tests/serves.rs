//! An array over a unix socket, from the first byte to the last: every kind of request, both kinds of replies.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use openraid_format::MdLevel;
use openraid_nbd::{NbdCommand, NbdError, StatusExtent};
use openraid_runtime::service::ServiceEvent;
use openraid_units::Sectors;
use support::client::Client;
use support::random::Random;
use support::{noise, request, Server};

const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const WRITE: NbdCommand = NbdCommand::Write { fua: false };

fn ram(count: usize) -> Vec<String> {
    vec!["ram:16M".into(); count]
}

/// A reference disk: what every byte of the array must be.
struct Model {
    client: Client,
    bytes: Vec<u8>,
    random: Random,
}

impl Model {
    fn write(&mut self, offset: usize, len: usize, fua: bool) {
        let payload = self.random.bytes(len);
        let answer = self.client.call(NbdCommand::Write { fua }, offset as u64, len as u64, &payload);
        assert_eq!(answer.result, Ok(()));
        self.bytes[offset..offset + len].copy_from_slice(&payload);
    }
    fn read(&mut self, offset: usize, len: usize) {
        let answer = self.client.call(READ, offset as u64, len as u64, &[]);
        assert_eq!(answer.result, Ok(()));
        assert!(answer.data == self.bytes[offset..offset + len], "{len} bytes at {offset} are not what was written");
    }
    fn zero(&mut self, offset: usize, len: usize, no_hole: bool) {
        let command = NbdCommand::WriteZeroes { fua: false, no_hole, fast: false };
        assert_eq!(self.client.call(command, offset as u64, len as u64, &[]).result, Ok(()));
        self.bytes[offset..offset + len].fill(0);
    }
    fn churn(&mut self, rounds: usize) {
        let sizes = [1, 7, 511, 512, 513, 4096, 4097, 32 << 10, 65_537, 300_000, (1 << 20) + 1, 3 << 20];
        for round in 0..rounds {
            let len = *self.random.pick(&sizes);
            let offset = self.random.below(self.bytes.len() - len);
            match self.random.below(5) {
                0 | 1 => self.read(offset, len),
                2 | 3 => self.write(offset, len, round % 3 == 0),
                _ => self.zero(offset, len, round % 2 == 0),
            }
        }
        assert_eq!(self.client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
        self.read(0, self.bytes.len());
    }
}

fn model(server: &Server, structured: bool) -> Model {
    let client = server.connect_as(structured, &[]);
    let len = usize::try_from(client.session().size.get()).expect("small");
    Model { client, bytes: vec![0; len.min(20 << 20)], random: Random::new(7) }
}

#[test]
fn raid_5_on_memory_gives_back_what_was_written_with_both_kinds_of_replies() {
    let server = Server::new("serve");
    server.create(request(MdLevel::Raid5, Sectors::kib(64), &ram(4)));
    for structured in [true, false] {
        let mut model = model(&server, structured);
        model.zero(0, model.bytes.len(), false);
        model.churn(60);
        model.client.disconnect();
    }
}

#[test]
fn every_level_on_files_gives_back_what_was_written_and_again_after_a_restart() {
    let levels = [
        (MdLevel::Raid0, 3),
        (MdLevel::Raid1, 2),
        (MdLevel::Raid4, 3),
        (MdLevel::Raid5, 4),
        (MdLevel::Raid6, 5),
        (MdLevel::Raid10, 3),
        (MdLevel::Linear, 2),
    ];
    for (level, count) in levels {
        let first = Server::new("files");
        let members = first.folder.members(count, 16 << 20);
        first.create(request(level, Sectors::kib(64), &members));
        let mut model = model(&first, true);
        model.churn(25);
        let Model { client, bytes, random } = model;
        client.disconnect();
        let Server { folder, service, socket: _, handle: _ } = first;
        service.stop();

        let second = Server::new("again");
        let started = second.assemble(&members);
        assert!(started.failed.is_empty(), "{level}: {:?}", started.failed);
        second.offer(started.arrays[0].array, "disk");
        let client = second.connect_as(true, &[]);
        let mut model = Model { client, bytes, random };
        model.read(0, model.bytes.len());
        model.churn(10);
        drop(folder);
    }
}

#[test]
fn refusals_cost_nothing_but_the_request() {
    let server = Server::new("refuse");
    server.create(request(MdLevel::Raid5, Sectors::kib(64), &ram(3)));
    let mut client = server.connect();
    let size = client.session().size.get();
    let fast = NbdCommand::WriteZeroes { fua: false, no_hole: false, fast: true };
    assert_eq!(client.call(fast, 0, 4096, &[]).result, Err(NbdError::NotSupported));
    assert_eq!(client.call(NbdCommand::Cache, 0, 4096, &[]).result, Ok(()));
    assert_eq!(client.call(NbdCommand::Trim { fua: true }, 0, 4096, &[]).result, Ok(()));
    let status = client.call(NbdCommand::BlockStatus { one: false }, 0, size, &[]);
    assert_eq!(status.result, Ok(()));
    let length = u32::try_from(size).expect("small");
    let [(1, allocation), redundancy] = status.extents[..] else { panic!("{:?}", status.extents) };
    assert_eq!(allocation.status, StatusExtent::HOLE | StatusExtent::ZERO);
    assert_eq!(redundancy, (2, StatusExtent { length, status: 0 }));
    assert_eq!(client.session().blocks.map(|b| (b.minimum(), b.maximum())), Some((1, 32 << 20)));
    client.disconnect();
}

#[test]
fn many_requests_at_once_on_many_connections_all_find_their_way() {
    let server = Server::new("many");
    server.create(request(MdLevel::Raid6, Sectors::kib(16), &ram(5)));
    let threads: Vec<_> = (0..6u64)
        .map(|nth| {
            let uri = server.uri().parse().expect("an address");
            std::thread::spawn(move || {
                let mut client = Client::connect(&uri, nth % 2 == 0, &[]).expect("a connection");
                let size = 4096 + 512 * usize::try_from(nth).expect("small");
                let base = nth << 22;
                let payload = noise(nth, size * 256);
                for (at, piece) in (0u64..).zip(payload.chunks(size)) {
                    let request = client.request(WRITE, base + at * size as u64, size as u64);
                    client.send(request, piece);
                }
                for _ in 0..256 {
                    assert_eq!(client.wait().1.result, Ok(()));
                }
                let mut expected = std::collections::BTreeMap::new();
                for (at, piece) in (0u64..).zip(payload.chunks(size)) {
                    let request = client.request(READ, base + at * size as u64, size as u64);
                    expected.insert(request.cookie, piece);
                    client.send(request, &[]);
                }
                for _ in 0..256 {
                    let (cookie, answer) = client.wait();
                    assert!(answer.result.is_ok() && answer.data == expected[&cookie]);
                }
                client.disconnect();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a client"));
}

/// Clients connect without a pause while the service stops: the order to stop and a connection come in one round of the
/// shard, in which the listeners are gone already. A panic of the shard fails [`Service::stop`].
#[test]
fn a_client_that_connects_in_the_round_of_the_stop_does_not_end_the_service() {
    for _ in 0..30 {
        let server = Server::new("stop-round");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let knock = || {
                while !ended.load(Ordering::Relaxed) {
                    let _ = std::os::unix::net::UnixStream::connect(&server.socket);
                }
            };
            let clients = [scope.spawn(knock), scope.spawn(knock)];
            std::thread::sleep(std::time::Duration::from_millis(3));
            server.handle.begin_stop();
            let stopped = server.service.events().iter().any(|event| matches!(event, ServiceEvent::Stopped));
            ended.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| client.join().expect("it only connects"));
            assert!(stopped, "the service ended without having stopped");
        });
    }
}
