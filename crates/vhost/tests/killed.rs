//! A server that is killed at any place: the next one does again what was under way, in order, and nothing else.

mod support;

use openraid_vhost::DiskOutcome;
use support::{next, serve, File, Guest, ENTRIES, USED};

fn region(guest: &Guest) -> support::Shared {
    let Some(File::Memory(region)) = &guest.inflight else { panic!("no region") };
    region.clone()
}

#[test]
fn requests_that_a_killed_server_had_are_done_again_in_their_order() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    for head in [3, 0, 6] {
        guest.request(head, 1, u64::from(head) * 8);
    }
    let commands: Vec<_> = std::iter::from_fn(|| next(&mut session)).collect();
    // The one in the middle has ended, so the used index alone would say that the last one has not begun.
    session.end(commands[1].id, DiskOutcome::Done);
    assert_eq!(guest.marks(), [3, 6]);
    drop(session);
    guest.request(0, 1, 64);
    let mut session = guest.connect();
    let again: Vec<_> = std::iter::from_fn(|| next(&mut session)).collect();
    assert_eq!(again.iter().map(|command| command.offset).collect::<Vec<_>>(), [3 * 4096, 6 * 4096, 64 * 512]);
    again.iter().for_each(|command| session.end(command.id, DiskOutcome::Done));
    assert_eq!(guest.used(), [(0, 1), (3, 1), (6, 1), (0, 1)]);
    assert!(guest.marks().is_empty());
}

#[test]
fn a_request_that_was_killed_twice_keeps_its_place() {
    let mut guest = Guest::new();
    for head in [6, 3, 0] {
        guest.request(head, 1, u64::from(head) * 8);
    }
    let mut session = guest.connect();
    let first = next(&mut session).unwrap();
    assert_eq!(first.offset, 6 * 4096);
    next(&mut session).unwrap();
    for _ in 0..2 {
        let mut session = guest.connect();
        let all: Vec<_> = std::iter::from_fn(|| next(&mut session)).map(|command| command.offset).collect();
        assert_eq!(all, [6 * 4096, 3 * 4096, 0]);
    }
}

#[test]
fn a_kill_between_the_used_index_and_the_mark_does_nothing_again() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 1, 0);
    guest.request(3, 1, 0);
    let commands: Vec<_> = std::iter::from_fn(|| next(&mut session)).collect();
    session.end(commands[0].id, DiskOutcome::Done);
    // As if it had been killed before it took the mark away.
    let region = region(&guest);
    region.put(16, &[1]);
    region.put16(14, 0);
    let mut session = guest.connect();
    assert_eq!(guest.marks(), [3]);
    assert_eq!((serve(&mut session), guest.used()), (1, vec![(0, 1), (3, 1)]));
    assert_eq!(region.get16(14), 2);
}

#[test]
fn a_kill_between_the_mark_and_the_engine_takes_the_request_once() {
    let mut guest = Guest::new();
    drop(guest.connect());
    guest.request(3, 1, 0);
    // Marked, and not taken.
    region(&guest).put(16 + 16 * 3, &[1]);
    let mut session = guest.connect();
    assert_eq!((serve(&mut session), guest.used()), (1, vec![(3, 1)]));
}

#[test]
fn a_new_region_at_an_old_ring_begins_where_the_ring_is() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    for _ in 0..100 {
        guest.request(0, 1, 0);
        assert_eq!(serve(&mut session), 1);
    }
    guest.inflight = None;
    guest.request(3, 1, 8);
    let mut session = guest.connect();
    assert_eq!(serve(&mut session), 1);
    let last = USED + 4 + 8 * u64::from(100 % ENTRIES);
    assert_eq!(guest.memory.get(last, 4), [3, 0, 0, 0]);
    assert_eq!(region(&guest).get16(14), 101);
}

#[test]
fn a_head_that_is_used_again_after_a_recovery_is_not_forgotten_by_the_next() {
    let mut guest = Guest::new();
    let mut session = guest.connect();
    guest.request(0, 1, 0);
    assert_eq!(serve(&mut session), 1);
    // Killed between the used index and the mark; then the head has a new request, another one follows, and the next server is killed, too.
    region(&guest).put(16, &[1]);
    region(&guest).put16(14, 0);
    let mut session = guest.connect();
    guest.request(0, 1, 8);
    guest.request(3, 1, 16);
    assert_eq!(next(&mut session).unwrap().offset, 4096);
    assert_eq!(next(&mut session).unwrap().offset, 8192);
    let mut session = guest.connect();
    assert_eq!((serve(&mut session), guest.used()), (2, vec![(0, 1), (0, 1), (3, 1)]));
}
