//! The cost of parsing: `cargo run --release -p openraid-nbd --example parse_speed`.
//!
//! Prints nanoseconds for each request out of a batch buffer, the best of several rounds: on a shared machine the time
//! above the best is other processes' work.

use openraid_nbd::client::{ChosenContext, ClientSession, ClientTransmission, Pending, PendingTable, ReplyEvent};
use openraid_nbd::server::{simple, NbdSession, PayloadTuning, RequestPayload, Transmission, TransmissionEvent};
use openraid_nbd::{BlockSizes, ContextSet, Cookie, ExportFlags, NbdCommand, NbdRequest};
use openraid_units::{ArrayOffset, Bytes};
use std::hint::black_box;
use std::time::Instant;

const REQUESTS: u64 = 64;
const ROUNDS: u32 = 30;
const REPEATS: u32 = 20_000;
const BLOCK: usize = 4096;

fn session() -> NbdSession {
    NbdSession {
        export: 0,
        size: Bytes(1 << 40),
        flags: ExportFlags::FLUSH.with(ExportFlags::FUA),
        blocks: BlockSizes::DEFAULT,
        structured: false,
        contexts: ContextSet::NONE,
    }
}

fn request(number: u64, command: NbdCommand) -> NbdRequest {
    let offset = ArrayOffset(number * BLOCK as u64);
    NbdRequest { cookie: Cookie(number), command, offset, length: Bytes(BLOCK as u64) }
}

fn batch(command: NbdCommand) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..REQUESTS {
        bytes.extend_from_slice(&request(number, command).encode());
        if command.is_write() {
            bytes.extend_from_slice(&[0x5a; BLOCK]);
        }
    }
    bytes
}

/// Best time of `work`, in nanoseconds for each of the requests it handles.
fn best(work: &mut dyn FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..REPEATS).for_each(|_| work());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS) / 64.0
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn parse_all(parser: &mut Transmission, bytes: &[u8]) -> u64 {
    let (mut at, mut sum) = (0, 0);
    loop {
        let parsed = parser.parse(&bytes[at..]);
        at += parsed.consumed;
        match parsed.event {
            TransmissionEvent::Request(request, payload) => {
                sum += request.offset.get() + u64::from(matches!(payload, RequestPayload::Inline(_)));
            }
            _ => return sum,
        }
    }
}

struct Slots(Vec<Pending>);

impl PendingTable for Slots {
    fn pending(&mut self, cookie: Cookie) -> Option<&mut Pending> {
        self.0.get_mut(usize::try_from(cookie.0).ok()?)
    }
}

fn replies(client: &mut ClientTransmission, bytes: &[u8], slots: &mut Slots) -> u64 {
    let (mut at, mut done) = (0, 0);
    loop {
        let parsed = client.parse(&bytes[at..], slots);
        at += parsed.consumed;
        match parsed.event {
            ReplyEvent::Done { .. } => done += 1,
            _ => return done,
        }
    }
}

fn main() {
    let mut parser = Transmission::new(&session(), PayloadTuning::default());
    for (name, command) in
        [("read", NbdCommand::Read { dont_fragment: false }), ("write", NbdCommand::Write { fua: false })]
    {
        let bytes = batch(command);
        let time = best(&mut || assert!(black_box(parse_all(&mut parser, black_box(&bytes))) > 0));
        println!("server, parse {name} of 4 KiB: {time:.2} ns");
    }
    let time = best(&mut || {
        for number in 0..REQUESTS {
            let request = black_box(request(number, NbdCommand::Read { dont_fragment: false }));
            black_box(session().success(&request).as_bytes());
        }
    });
    println!("server, header of a reply: {time:.2} ns");
    let contexts: Vec<ChosenContext> = Vec::new();
    let flags = ExportFlags::FLUSH;
    let session_of_client = ClientSession { size: Bytes(1 << 40), flags, blocks: None, structured: false, contexts };
    let mut client = ClientTransmission::new(session_of_client);
    let mut slots = Slots((0..REQUESTS).map(|n| Pending::new(request(n, NbdCommand::Write { fua: false }))).collect());
    let bytes: Vec<u8> = (0..REQUESTS).flat_map(|number| simple(Cookie(number), None)).collect();
    let time = best(&mut || assert_eq!(black_box(replies(&mut client, black_box(&bytes), &mut slots)), REQUESTS));
    println!("client, parse the reply of a write: {time:.2} ns");
}
