//! After its start the engine takes no memory for host requests.

#[path = "../benches/counting.rs"]
mod counting;

use counting::{allocations, Counting};
use openraid_core::events::RequestKind;
use openraid_core::limits::Limits;
use openraid_sim::drive::null::NullMachine;
use openraid_sim::{ArrayShape, Random};
use openraid_units::{Bytes, Sectors};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WRITE: RequestKind = RequestKind::Write { fua: false };

fn takes_no_memory(shape: ArrayShape, limits: &Limits, depth: u32) {
    let (mut machine, array) = NullMachine::with_array(&shape, limits, Sectors::mib(64));
    if !limits.journal.is_zero() {
        machine.promise_all(array, Sectors::mib(64));
    }
    let capacity = machine.capacity(array).unwrap().get();
    let mut random = Random::new(1);
    let mut rounds = |machine: &mut NullMachine, requests: u64| {
        for (kind, len) in [(WRITE, 4096), (RequestKind::Read, 4096), (WRITE, 100_000), (RequestKind::Read, 70_001)] {
            machine.run(array, kind, len, depth, requests, || random.below(capacity - len) & !511);
        }
        machine.run(array, RequestKind::Flush, 0, depth, 3, || 0);
        machine.drain();
    };
    rounds(&mut machine, 500);
    let before = allocations();
    rounds(&mut machine, 2000);
    assert_eq!(allocations() - before, 0, "{shape} at depth {depth}");
}

#[test]
fn requests_of_all_kinds_take_no_memory_at_any_depth() {
    for shape in ArrayShape::all().into_iter().filter(|shape| !shape.unequal) {
        takes_no_memory(shape, &Limits::small(), 16);
    }
    for shape in [ArrayShape::raid5(4, Sectors::kib(64)), ArrayShape::raid6(8, Sectors::kib(64)), ArrayShape::raid1(2)]
    {
        for depth in [1, 32, 256] {
            takes_no_memory(shape, &Limits::default(), depth);
        }
    }
}

/// The ring is used in many cycles and the cache is full, so the load includes destage, redo and the tail's
/// superblocks.
#[test]
fn requests_with_cache_and_journal_take_no_memory() {
    let plain = Limits::default();
    let (cache, journal) = (Bytes::mib(8), Bytes::mib(4));
    let limits = Limits { pool: plain.pool + cache + journal, cache, journal, ..plain };
    let chunk = Sectors::kib(64);
    for shape in [ArrayShape::raid5(4, chunk), ArrayShape::raid6(8, chunk), ArrayShape::raid1(2)] {
        for depth in [1, 32] {
            takes_no_memory(shape, &limits, depth);
        }
    }
}
