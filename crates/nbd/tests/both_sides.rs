//! Tests client and server of this crate against each other. The bytes between them are cut in every way; the oracle
//! for reads is a plain array of bytes.

mod support;

use openraid_nbd::client::{ClientOptions, Goal};
use openraid_nbd::server::{PayloadTuning, Reason};
use openraid_nbd::{Cookie, ExportFlags, NbdCommand, NbdError, NbdRequest, StatusExtent};
use openraid_units::{ArrayOffset, Bytes};
use proptest::prelude::*;
use std::sync::Arc;
use support::client::Answer;
use support::connection::{Connection, Entry};
use support::disk::{export, is_zero, Disk, STATUS_UNIT};
use support::pipe::{converse, Cut, PipeClient};
use support::random::Random;

const SIZE: usize = 512 << 10;

fn options(structured: bool) -> ClientOptions {
    let contexts = if structured { vec!["base:allocation".into(), "openraid:degraded".into()] } else { vec![] };
    ClientOptions { goal: Goal::Use("disk".into()), structured, contexts }
}

fn request(number: usize, command: NbdCommand, offset: usize, length: usize) -> NbdRequest {
    let offset = ArrayOffset(offset as u64);
    NbdRequest { cookie: Cookie(number as u64), command, offset, length: Bytes(length as u64) }
}

/// Requests of all kinds, some of them invalid, with the payload of writes.
fn requests(seed: u64, count: usize, structured: bool) -> Vec<(NbdRequest, Vec<u8>)> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|number| {
            let longest = *random.pick(&[16, 600, 5000, 200_000]);
            let length = 1 + random.below(longest);
            let outside = random.below(20) == 0;
            let offset = if outside { SIZE - length / 2 } else { random.below(SIZE - length) };
            let command = match random.below(if structured { 8 } else { 7 }) {
                0 | 1 => NbdCommand::Read { dont_fragment: structured && random.below(2) == 0 },
                2 | 3 => NbdCommand::Write { fua: random.below(2) == 0 },
                4 => NbdCommand::WriteZeroes { fua: false, no_hole: true, fast: false },
                5 => NbdCommand::Trim { fua: true },
                6 => return (request(number, NbdCommand::Flush, 0, 0), vec![]),
                _ => NbdCommand::BlockStatus { one: random.below(2) == 0 },
            };
            let payload = if command.is_write() { random.bytes(length) } else { vec![] };
            (request(number, command, offset, length), payload)
        })
        .collect()
}

/// The expected results, from a plain array.
fn expected(requests: &[(NbdRequest, Vec<u8>)]) -> (Vec<Result<Vec<u8>, NbdError>>, Vec<u8>) {
    let mut model = vec![0; SIZE];
    let answers = requests.iter().map(|(request, payload)| {
        let start = usize::try_from(request.offset.get()).unwrap();
        let end = start + usize::try_from(request.length.get()).unwrap();
        if end > SIZE {
            return Err(match request.command {
                NbdCommand::Write { .. } | NbdCommand::WriteZeroes { .. } => NbdError::NoSpace,
                _ => NbdError::Invalid,
            });
        }
        match request.command {
            NbdCommand::Read { .. } => return Ok(model[start..end].to_vec()),
            NbdCommand::Write { .. } => model[start..end].copy_from_slice(payload),
            NbdCommand::WriteZeroes { .. } | NbdCommand::Trim { .. } => model[start..end].fill(0),
            _ => {}
        }
        Ok(vec![])
    });
    let answers = answers.collect();
    (answers, model)
}

struct Outcome {
    log: Vec<Entry>,
    answers: Vec<(Cookie, Answer)>,
    disk: Vec<u8>,
}

fn run(requests: &[(NbdRequest, Vec<u8>)], structured: bool, tuning: PayloadTuning, cut: Cut) -> Outcome {
    let disk = Arc::new(Disk::new(SIZE));
    let mut server = Connection::new(Arc::new(vec![export("disk", SIZE)]), Arc::clone(&disk), tuning);
    server.log = Some(Vec::new());
    let mut client = PipeClient::new(options(structured), requests.to_vec());
    converse(&mut client, &mut server, cut);
    assert_eq!((client.failure, client.violation), (None, None));
    let bytes = disk.read().clone();
    Outcome { log: server.log.unwrap(), answers: client.answers, disk: bytes }
}

fn check_extents(request: &NbdRequest, answer: &Answer, disk: &[u8]) {
    let NbdCommand::BlockStatus { one } = request.command else { return assert!(answer.extents.is_empty()) };
    for context in [1, 2] {
        let extents: Vec<StatusExtent> =
            answer.extents.iter().filter(|(id, _)| *id == context).map(|(_, extent)| *extent).collect();
        let total: u64 = extents.iter().map(|extent| u64::from(extent.length)).sum();
        assert!(!extents.is_empty() && (!one || extents.len() == 1));
        assert!(total <= request.length.get() && (one || total == request.length.get()));
        assert!(extents.windows(2).all(|pair| pair[0].status != pair[1].status), "neighbours are merged");
    }
    let first = answer.extents.iter().find(|(id, _)| *id == 1).expect("checked above").1;
    let start = usize::try_from(request.offset.get()).unwrap();
    let unit = start / STATUS_UNIT * STATUS_UNIT;
    let end = (start + first.length as usize).min(unit + STATUS_UNIT);
    assert_eq!(first.status == 3, is_zero(&disk[start..end]));
}

fn check(seed: u64, count: usize, structured: bool, tuning: PayloadTuning) {
    let requests = requests(seed, count, structured);
    let (results, model) = expected(&requests);
    let whole = run(&requests, structured, tuning, Cut::Whole);
    assert!(whole.disk == model, "the disk differs from the model");
    assert_eq!(whole.answers.len(), requests.len());
    for (((request, _), expected), (cookie, answer)) in requests.iter().zip(&results).zip(&whole.answers) {
        assert_eq!(*cookie, request.cookie);
        assert_eq!(answer.result, expected.as_ref().map(|_| ()).map_err(|error| *error));
        if let (Ok(data), true) = (expected, request.command.is_read()) {
            assert!(answer.data == *data, "request {request:?} read something else");
        }
    }
    for cut in [Cut::EachByte, Cut::Random(seed), Cut::Random(seed + 1)] {
        let other = run(&requests, structured, tuning, cut);
        assert!(other.log == whole.log && other.answers == whole.answers && other.disk == model, "{cut:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_do_not_depend_on_how_bytes_arrive(seed: u64, structured: bool, wait_for_small: bool, inline in 0u32..70_000) {
        check(seed >> 1, 24, structured, PayloadTuning { inline_below: inline, wait_for_small });
    }
}

#[test]
fn extents_tell_zeroes_where_the_disk_has_them() {
    let write = request(1, NbdCommand::Write { fua: false }, 3 * STATUS_UNIT + 5, 10);
    let all = request(2, NbdCommand::BlockStatus { one: false }, 100, SIZE - 200);
    let one = request(3, NbdCommand::BlockStatus { one: true }, 3 * STATUS_UNIT, STATUS_UNIT + 1);
    let requests = vec![(write, vec![1; 10]), (all, vec![]), (one, vec![])];
    let outcome = run(&requests, true, PayloadTuning::default(), Cut::Whole);
    let unit = u32::try_from(STATUS_UNIT).unwrap();
    let size = u32::try_from(SIZE).unwrap();
    let extents = |index: usize| outcome.answers[index].1.extents.iter().map(|(c, e)| (*c, e.length, e.status));
    let expected = [(1, 3 * unit - 100, 3), (1, unit, 0), (1, size - 4 * unit - 100, 3), (2, size - 200, 0)];
    assert!(extents(1).eq(expected));
    assert!(extents(2).eq([(1, unit, 0), (2, unit + 1, 0)]));
    for (index, request) in [(1, &all), (2, &one)] {
        check_extents(request, &outcome.answers[index].1, &outcome.disk);
    }
}

#[test]
fn the_client_gets_the_values_that_the_server_advertised() {
    for structured in [false, true] {
        let disk = Arc::new(Disk::new(SIZE));
        let export = export("disk", SIZE);
        let mut server = Connection::new(Arc::new(vec![export.clone()]), disk, PayloadTuning::default());
        let mut client = PipeClient::new(options(structured), vec![]);
        converse(&mut client, &mut server, Cut::EachByte);
        let session = client.session.unwrap();
        assert_eq!((session.size, session.blocks), (export.size, Some(export.blocks)));
        assert_eq!(session.structured, structured);
        assert_eq!(session.flags.contains(ExportFlags::DONT_FRAGMENT), structured);
        assert_eq!(session.contexts.len(), if structured { 2 } else { 0 });
    }
}

#[test]
fn a_refused_request_leaves_the_connection_usable() {
    let beyond = request(1, NbdCommand::Write { fua: false }, SIZE - 5, 100_000);
    let read = request(2, NbdCommand::Read { dont_fragment: false }, 0, 100);
    let requests = vec![(beyond, vec![0x25; 100_000]), (read, vec![])];
    for structured in [false, true] {
        let outcome = run(&requests, structured, PayloadTuning::default(), Cut::Random(7));
        let refused = outcome.log.iter().find_map(|entry| match entry {
            Entry::Refused(refusal) => Some(refusal.reason),
            _ => None,
        });
        assert_eq!(refused, Some(Reason::OutOfRange));
        assert_eq!(outcome.answers[0].1.result, Err(NbdError::NoSpace));
        assert_eq!(outcome.answers[1].1.result, Ok(()));
        assert_eq!(outcome.log.last(), Some(&Entry::Closed("goodbye".into())));
    }
}
