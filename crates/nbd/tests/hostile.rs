//! Recorded sessions with all kinds of damage: neither side may panic, hang, or use more memory than its limits allow.
//!
//! `OPENRAID_NBD_SESSIONS` sets the number of mutated sessions for each side (20,000 by default), and
//! `OPENRAID_NBD_SEED` the first seed. A failure prints the seed of its session.

mod support;

use openraid_nbd::client::{ClientOptions, ClientTransmission, Goal};
use openraid_nbd::limits::{OPTION_PAYLOAD_MAX, OPTION_REPLY_MAX};
use openraid_nbd::server::PayloadTuning;
use openraid_nbd::{BlockSizes, Cookie, ExportInfo, NbdCommand, NbdRequest};
use openraid_units::{ArrayOffset, Bytes};
use std::sync::Arc;
use support::connection::{Connection, Step};
use support::disk::{export, Disk};
use support::pipe::{converse, Cut, PipeClient};
use support::random::Random;

const SIZE: usize = 256 << 10;
/// Maximum payload of the exports in this test.
const PAYLOAD: usize = 16 << 10;
const TUNING: PayloadTuning = PayloadTuning { inline_below: 2048, wait_for_small: true };

fn exports() -> Arc<Vec<ExportInfo>> {
    let blocks = BlockSizes::new(1, 512, u32::try_from(PAYLOAD).unwrap()).unwrap();
    Arc::new(["disk", "other"].map(|name| ExportInfo { blocks, ..export(name, SIZE) }).to_vec())
}

fn server() -> Connection {
    Connection::new(exports(), Arc::new(Disk::new(SIZE)), TUNING)
}

fn requests(random: &mut Random) -> Vec<(NbdRequest, Vec<u8>)> {
    let commands = [
        NbdCommand::Read { dont_fragment: false },
        NbdCommand::Write { fua: true },
        NbdCommand::WriteZeroes { fua: false, no_hole: true, fast: true },
        NbdCommand::Trim { fua: false },
        NbdCommand::Cache,
        NbdCommand::BlockStatus { one: false },
        NbdCommand::Flush,
    ];
    (0..4 + random.below(12))
        .map(|number| {
            let command = *random.pick(&commands);
            let length = if command == NbdCommand::Flush { 0 } else { *random.pick(&[1, 512, 3000, 9000]) };
            let offset = if command == NbdCommand::Flush { 0 } else { random.below(SIZE - 9000) };
            let payload = if command.is_write() { random.bytes(length) } else { vec![] };
            let offset = ArrayOffset(offset as u64);
            (NbdRequest { cookie: Cookie(number as u64), command, offset, length: Bytes(length as u64) }, payload)
        })
        .collect()
}

fn options(random: &mut Random) -> ClientOptions {
    if random.below(10) == 0 {
        return ClientOptions { goal: Goal::List, structured: false, contexts: vec![] };
    }
    let structured = random.below(3) > 0;
    let contexts = if structured { vec!["base:allocation".into(), "openraid:degraded".into()] } else { vec![] };
    ClientOptions { goal: Goal::Use("disk".into()), structured, contexts }
}

/// An intact session: the client's requests, and all bytes in both directions.
struct Recording {
    options: ClientOptions,
    requests: Vec<(NbdRequest, Vec<u8>)>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

fn record(random: &mut Random) -> Recording {
    let (options, requests) = (options(random), requests(random));
    let mut client = PipeClient::new(options.clone(), requests.clone());
    let (to_server, to_client) = converse(&mut client, &mut server(), Cut::Whole);
    Recording { options, requests, to_server, to_client }
}

/// Extreme values for 32-bit fields.
const EXTREMES: [u32; 10] =
    [0, 1, 0xff, 0x1_0000, 0x1_0001, 0x200_0001, 0x400_0001, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// Extreme values for offsets and sizes.
const EXTREMES_64: [u64; 5] = [u64::MAX, u64::MAX - 511, 1 << 63, (1 << 63) - 1, 1 << 32];

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        if bytes.len() < 8 {
            return;
        }
        // Headers are at the start, so damage there has more effect.
        let reach = *random.pick(&[64, 256, bytes.len()]);
        let at = random.below(reach.min(bytes.len() - 7));
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next().to_be_bytes()[0],
            2 => bytes[at..at + 4].copy_from_slice(&random.pick(&EXTREMES).to_be_bytes()),
            3 => bytes[at..at + 8].copy_from_slice(&random.pick(&EXTREMES_64).to_be_bytes()),
            7 => bytes.truncate(at),
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let end = (at + random.below(60)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let count = random.below(50);
                let noise = random.bytes(count);
                bytes.splice(at..at, noise);
            }
        }
    }
}

/// Passes damaged bytes to a server and checks its limits after every piece.
fn torment_server(bytes: &[u8], cut: Cut) {
    let mut server = server();
    let mut steps = 0;
    for piece in cut.pieces(bytes) {
        server.feed(piece);
        loop {
            let end = server.step();
            steps += 1;
            assert!(server.out.len() <= 64 << 10, "{} bytes of output in one step", server.out.len());
            server.out.clear();
            match end {
                Step::Progress => assert!(steps <= 2 * bytes.len() + 16, "the server works without end"),
                Step::Starved => break,
                Step::Closed => return,
            }
        }
        assert!(server.held_bytes() <= OPTION_PAYLOAD_MAX.max(PAYLOAD), "{} bytes held", server.held_bytes());
    }
}

/// Passes damaged bytes to a client that has sent its requests, and checks its limits after every piece.
fn torment_client(recording: &Recording, bytes: &[u8], cut: Cut) {
    let mut client = PipeClient::new(recording.options.clone(), recording.requests.clone());
    for piece in cut.pieces(bytes) {
        client.receive(piece);
        client.out.clear();
        let limit = OPTION_REPLY_MAX.max(ClientTransmission::BUFFER_MIN);
        assert!(client.held_bytes() <= limit, "{} bytes held", client.held_bytes());
        assert!(client.answers.len() <= recording.requests.len());
        if client.is_over() {
            return;
        }
    }
}

fn number_from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Prints the seed of the session if a test panics in it.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the session that failed: OPENRAID_NBD_SEED={} OPENRAID_NBD_SESSIONS=1", self.0);
        }
    }
}

fn each_session(mut test: impl FnMut(&mut Random)) {
    let first = number_from_environment("OPENRAID_NBD_SEED", 1);
    for seed in first..first + number_from_environment("OPENRAID_NBD_SESSIONS", 20_000) {
        let _named = Named(seed);
        test(&mut Random::new(seed));
    }
}

#[test]
fn servers_survive_mutated_sessions() {
    each_session(|random| {
        let mut bytes = record(random).to_server;
        mutate(&mut bytes, random);
        torment_server(&bytes, Cut::Random(random.next()));
    });
}

#[test]
fn clients_survive_mutated_sessions() {
    each_session(|random| {
        let recording = record(random);
        let mut bytes = recording.to_client.clone();
        mutate(&mut bytes, random);
        torment_client(&recording, &bytes, Cut::Random(random.next()));
    });
}

#[test]
fn noise_is_borne() {
    let mut random = Random::new(99);
    let recording = record(&mut random);
    for length in 0..2000 {
        let noise = random.bytes(length);
        torment_server(&noise, Cut::Whole);
        torment_client(&recording, &noise, Cut::Whole);
        // Random bytes after a valid start reach later states.
        let start = random.below(recording.to_server.len());
        torment_server(&[&recording.to_server[..start], &noise].concat(), Cut::Random(1));
        let start = random.below(recording.to_client.len());
        torment_client(&recording, &[&recording.to_client[..start], &noise].concat(), Cut::Random(1));
    }
}

#[test]
fn every_truncation_starves_and_does_nothing_else() {
    let recording = record(&mut Random::new(5));
    for length in 0..recording.to_server.len() - 28 {
        let mut server = server();
        assert_eq!(server.run(&recording.to_server[..length]), Step::Starved, "cut at {length}");
    }
    for length in 0..recording.to_client.len() {
        let mut client = PipeClient::new(recording.options.clone(), recording.requests.clone());
        client.receive(&recording.to_client[..length]);
        assert_eq!((client.failure, client.violation), (None, None), "cut at {length}");
    }
}

#[test]
fn extreme_numbers_at_every_place_are_borne() {
    let recording = record(&mut Random::new(12));
    let overwritten = |bytes: &[u8], at: usize, value: &[u8]| {
        let mut bytes = bytes.to_vec();
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    let short = EXTREMES.iter().map(|value| value.to_be_bytes().to_vec());
    let long = EXTREMES_64.iter().map(|value| value.to_be_bytes().to_vec());
    for value in short.chain(long) {
        for at in 0..(recording.to_server.len() - 8).min(3000) {
            torment_server(&overwritten(&recording.to_server, at, &value), Cut::Whole);
        }
        for at in 0..(recording.to_client.len() - 8).min(3000) {
            torment_client(&recording, &overwritten(&recording.to_client, at, &value), Cut::Whole);
        }
    }
}

/// The reaction of a server to an input: whether the connection is open, and the number of reply bytes.
fn outcome(bytes: &[u8]) -> String {
    let mut server = server();
    server.feed(bytes);
    let mut answered = 0;
    loop {
        let end = server.step();
        answered += server.out.len();
        server.out.clear();
        match end {
            Step::Progress => {}
            Step::Starved => return format!("open-{answered}"),
            Step::Closed => return format!("closed-{answered}"),
        }
    }
}

fn corpus() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Bytes as text: two digits each, 64 to a line.
fn to_text(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(64).map(line).collect()
}

fn from_text(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// Maximum size of an input in the corpus.
const KEPT_BYTES_MAX: usize = 2048;

/// `tests/corpus` keeps one input for each outcome that mutations reached. With `OPENRAID_CORPUS=write` new outcomes
/// are added to it.
#[test]
fn every_input_of_the_corpus_has_the_outcome_it_is_named_after() {
    if std::env::var_os("OPENRAID_CORPUS").is_some() {
        for seed in 1..400 {
            let mut random = Random::new(seed);
            let mut bytes = record(&mut random).to_server;
            mutate(&mut bytes, &mut random);
            let path = corpus().join(format!("{}.txt", outcome(&bytes)));
            if bytes.len() <= KEPT_BYTES_MAX && !path.exists() {
                std::fs::write(path, to_text(&bytes)).expect("the corpus is writable");
            }
        }
    }
    let mut seen = 0;
    for entry in std::fs::read_dir(corpus()).expect("the corpus is there") {
        let path = entry.expect("a file").path();
        let bytes = from_text(&std::fs::read_to_string(&path).expect("text"));
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert_eq!(outcome(&bytes), name, "{}", path.display());
        // The outcome is the same for every way to cut the bytes into pieces.
        torment_server(&bytes, Cut::Random(seen));
        seen += 1;
    }
    assert!(seen >= 20, "the corpus is missing");
}
