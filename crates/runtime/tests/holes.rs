//! Block status tells the holes of members that know theirs, and nothing that holds data; zeroes are fast where members write them without data.

mod support;

use std::process::Command;

use openraid_core::admin::{AdminCommand, Policy, WriteCache};
use openraid_core::limits::Limits;
use openraid_format::MdLevel;
use openraid_nbd::{NbdCommand, NbdError, StatusExtent};
use openraid_runtime::service::ServiceConfig;
use openraid_units::{ArrayId, Bytes, Sectors};
use support::client::Client;
use support::random::Random;
use support::{has, request, Server};

const WRITE: NbdCommand = NbdCommand::Write { fua: false };
const BLOCK: usize = 4096;
const HOLE: u32 = StatusExtent::HOLE | StatusExtent::ZERO;

fn ram(count: usize) -> Vec<String> {
    vec!["ram:6M".into(); count]
}

/// A client, and what the array has.
struct Disk {
    client: Client,
    bytes: Vec<u8>,
    random: Random,
}

impl Disk {
    fn new(server: &Server) -> Self {
        let client = server.connect_as(true, &["base:allocation"]);
        let size = usize::try_from(client.session().size.get()).expect("small");
        Self { client, bytes: vec![0; size], random: Random::new(5) }
    }

    fn change(&mut self) {
        let len = *self.random.pick(&[512, 4096, 5000, 65_536, 200_000, 1 << 20]);
        let at = self.random.below(self.bytes.len() - len);
        let kind = self.random.below(4);
        let payload = if kind < 2 { self.random.bytes(len) } else { vec![0; len] };
        let command = match kind {
            0..3 => WRITE,
            _ => NbdCommand::WriteZeroes { fua: false, no_hole: false, fast: false },
        };
        let sent = if command == WRITE { &payload[..] } else { &[] };
        assert_eq!(self.client.call(command, at as u64, len as u64, sent).result, Ok(()));
        self.bytes[at..at + len].copy_from_slice(&payload);
    }

    /// Is each block of the array a hole, by block status?
    fn map(&mut self) -> Vec<bool> {
        let (mut at, mut holes) = (0, vec![false; self.bytes.len() / BLOCK]);
        while at < self.bytes.len() {
            let (offset, left) = (at as u64, (self.bytes.len() - at) as u64);
            let answer = self.client.call(NbdCommand::BlockStatus { one: false }, offset, left, &[]);
            assert_eq!(answer.result, Ok(()));
            assert!(!answer.extents.is_empty(), "an answer tells at least one extent");
            for (_, extent) in answer.extents {
                let len = usize::try_from(extent.length).expect("small");
                assert!(len > 0 && [0, HOLE].contains(&extent.status), "{extent:?}");
                if extent.status == HOLE {
                    assert!(self.bytes[at..at + len] == vec![0; len], "data at {at} are a hole");
                    holes[at.div_ceil(BLOCK)..(at + len) / BLOCK].fill(true);
                }
                at += len;
            }
        }
        holes
    }

    fn zero_blocks(&self) -> Vec<bool> {
        self.bytes.chunks_exact(BLOCK).map(|block| *block == [0; BLOCK]).collect()
    }
}

/// A server whose arrays may have a cache.
fn cached(name: &str) -> Server {
    let limits = Limits { cache: Bytes::mib(8), ..support::small_limits() };
    Server::with(name, |config| ServiceConfig { limits, ..config })
}

fn set_cache(server: &Server, array: ArrayId, write_cache: WriteCache) {
    let policy = Policy { write_cache, ..Policy::default() };
    let set = server.handle.admin(AdminCommand::SetPolicy { array, policy });
    set.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn members_in_memory_tell_every_block_of_zeroes_and_no_data() {
    let levels = [
        (MdLevel::Raid0, 3),
        (MdLevel::Raid1, 2),
        (MdLevel::Raid5, 4),
        (MdLevel::Raid6, 5),
        (MdLevel::Raid10, 3),
        (MdLevel::Linear, 2),
    ];
    for (level, count) in levels {
        let server = Server::new("holes");
        server.create(request(level, Sectors::kib(64), &ram(count)));
        let mut disk = Disk::new(&server);
        for round in 0..12 {
            assert!(disk.map() == disk.zero_blocks(), "{level}, round {round}");
            disk.change();
        }
        disk.client.disconnect();
    }
}

#[test]
fn what_only_the_cache_has_is_no_hole() {
    let server = cached("holes-cache");
    let array = server.create(request(MdLevel::Raid5, Sectors::kib(64), &ram(4)));
    set_cache(&server, array, WriteCache::Volatile);
    let mut disk = Disk::new(&server);
    for _ in 0..40 {
        // The map compares each hole with the data.
        disk.map();
        disk.change();
    }
    disk.client.disconnect();
}

#[test]
fn data_of_a_missing_member_are_no_hole_and_the_rest_is_told() {
    let server = Server::new("holes-degraded");
    let mut request = request(MdLevel::Raid5, Sectors::kib(64), &ram(4));
    request.slots[1] = None;
    server.create(request);
    let mut disk = Disk::new(&server);
    (0..8).for_each(|_| disk.change());
    let (map, zero) = (disk.map(), disk.zero_blocks());
    let [told, there] = [map, zero].map(|blocks| blocks.iter().filter(|is_hole| **is_hole).count());
    // A stripe has three columns, and one of them is lost, or the parity is.
    assert!(told * 8 > there * 5 && told < there, "{told} of {there} blocks");
    disk.client.disconnect();
}

#[test]
fn fast_zeroes_are_written_where_no_parity_is_and_refused_at_once_elsewhere() {
    let fast = |fua| NbdCommand::WriteZeroes { fua, no_hole: false, fast: true };
    for (level, count, result) in [
        (MdLevel::Raid1, 2, Ok(())),
        (MdLevel::Raid0, 2, Ok(())),
        (MdLevel::Raid10, 4, Ok(())),
        (MdLevel::Raid5, 3, Err(NbdError::NotSupported)),
    ] {
        let server = cached("fast");
        let array = server.create(request(level, Sectors::kib(64), &ram(count)));
        let mut client = server.connect();
        let data = vec![7; 1 << 20];
        assert_eq!(client.call(WRITE, 0, 1 << 20, &data).result, Ok(()));
        assert_eq!(client.call(fast(false), 5000, 900_000, &[]).result, result, "{level}");
        let read = client.call(NbdCommand::Read { dont_fragment: false }, 0, 1 << 20, &[]).data;
        let mut wanted = data.clone();
        if result.is_ok() {
            wanted[5000..905_000].fill(0);
        }
        assert!(read == wanted, "{level}");
        // Durable zeroes are data, and a cache takes zeroes as data.
        assert_eq!(client.call(fast(true), 0, 4096, &[]).result, Err(NbdError::NotSupported));
        set_cache(&server, array, WriteCache::Volatile);
        assert_eq!(client.call(fast(false), 0, 4096, &[]).result, Err(NbdError::NotSupported));
        client.disconnect();
    }
}

/// What a foreign program prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn foreign_programs_find_the_same_holes() {
    if !["nbdinfo", "qemu-img"].iter().all(|program| has(program)) {
        return;
    }
    let server = Server::new("holes-foreign");
    server.create(request(MdLevel::Raid5, Sectors::kib(64), &ram(4)));
    let mut disk = Disk::new(&server);
    let (at, len) = (1 << 20, 3 << 16);
    assert_eq!(disk.client.call(WRITE, at, len, &vec![1; 3 << 16]).result, Ok(()));
    disk.client.disconnect();
    let size = disk.bytes.len() as u64;
    let wanted = [(0, at, true), (at, len, false), (at + len, size - at - len, true)];
    let uri = server.uri();
    let info = said("nbdinfo", &["--map", &uri]);
    let rows = info.lines().map(|line| {
        let columns: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        (columns[0], columns[1], columns[2] == 3)
    });
    assert_eq!(joined(rows), wanted);
    let map = said("qemu-img", &["map", "--output=json", "-f", "raw", &uri]);
    let rows = map.lines().filter(|line| line.contains("start")).map(|line| {
        let is_hole = line.contains("\"zero\": true") && line.contains("\"data\": false");
        (number(line, "start"), number(line, "length"), is_hole)
    });
    assert_eq!(joined(rows), wanted);
}

/// The number of this key in a line of JSON.
fn number(line: &str, key: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{key}\": ")).expect("the key");
    rest.split(|c: char| !c.is_ascii_digit()).next().expect("text").parse().expect("a number")
}

/// Neighbours of one kind are one extent: start, length, and whether it is a hole.
fn joined(extents: impl Iterator<Item = (u64, u64, bool)>) -> Vec<(u64, u64, bool)> {
    let mut joined: Vec<(u64, u64, bool)> = Vec::new();
    for (start, len, is_hole) in extents {
        match joined.last_mut() {
            Some((_, last, kind)) if *kind == is_hole => *last += len,
            _ => joined.push((start, len, is_hole)),
        }
    }
    joined
}
