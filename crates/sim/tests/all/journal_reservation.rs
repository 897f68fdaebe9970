//! The ring does not fill up by itself: every acknowledged write has room for its redo records, after crashes too. So
//! the journal gives up for lack of room only if an absent array or member needs the room.

use crate::support::journalled::{attach_journal, limits_with_journal, Journalled, JOURNAL};
use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{JournalState, Unprotected};
use openraid_core::limits::Limits;
use openraid_sim::drive::Latency;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Bytes, Nanos, Sectors};

const CHUNK: Sectors = Sectors::kib(32);

fn is_never_full(machine: &mut Journalled) {
    let notices = machine.rig.world.take_notices();
    let full = notices.iter().any(|notice| matches!(notice.kind, NoticeKind::JournalFull));
    assert!(!full, "nothing has failed, and the journal is full\n{}", machine.rig.world.dump());
    assert_eq!(machine.rig.world.journal().map(|journal| journal.state), Some(JournalState::Live));
}

/// Writes into the cache and past it, in whole blocks and in parts of lines, until the ring has little room. The power
/// is cut repeatedly before dirty data is on the members. Each time the cache must have all of it again.
#[test]
fn acknowledged_writes_have_room_after_every_crash() {
    for seed in seeds(8, 200) {
        for shape in [ArrayShape::raid5(4, CHUNK), ArrayShape::raid6(6, CHUNK)] {
            let _case = Case::new(seed, shape);
            let mut machine = Journalled::with_cache(shape, seed, Bytes::mib(2));
            let align = if seed % 2 == 0 { 512 } else { 4096 };
            let capacity = machine.rig.session.capacity();
            let load = Workload { len_max: 24 << 10, align, mix: [1, 12, 0, 0, 3], ..Workload::mixed(capacity) };
            for turn in 0..10 {
                machine.rig.session.run_on(&mut machine.rig.world, &load, 40 + 60 * (turn % 4));
                is_never_full(&mut machine);
                machine.cut();
            }
            machine.rig.session.run(&mut machine.rig.world, &load, 200);
            is_never_full(&mut machine);
            machine.rig.session.look_at_all(&mut machine.rig.world);
            machine.rig.rest();
            machine.rig.judge();
        }
    }
}

/// A header has 120 records. That suffices for each stripe of the widest protected array, written past the cache or
/// from it, in one piece or in many. A wider array is not protected.
#[test]
fn an_entry_has_records_for_the_widest_stripes() {
    let (cache, journal, work) = (Bytes::mib(4), Bytes::mib(4), Bytes::mib(8));
    let pool = cache + journal + work + Bytes::mib(8);
    let small = Limits { drives_max: 128, commands_max: 2048, piece_bytes_max: Bytes::mib(1), ..Limits::small() };
    let limits = Limits { pool, cache, journal, work, ..small };
    let chunk = Sectors::kib(16);
    for (seed, len_max) in [(1, 800 << 10), (2, 48 << 10)] {
        let mut machine =
            Journalled::with_limits(ArrayShape::raid6(60, chunk), RigOptions::new(seed), 1, limits.clone());
        let load = Workload { len_max, align: 4096, mix: [1, 3, 1, 0, 3], depth: 4, ..Workload::mixed(3 << 20) };
        for _ in 0..3 {
            machine.rig.session.run_on(&mut machine.rig.world, &load, 60);
            is_never_full(&mut machine);
            machine.cut();
        }
        machine.rig.session.run(&mut machine.rig.world, &load, 60);
        is_never_full(&mut machine);
        machine.rig.rest();
        machine.rig.judge();
    }
    let mut options = RigOptions { cuts: false, ..RigOptions::new(3) };
    options.world.limits = limits;
    let mut rig = Rig::new(ArrayShape::raid6(61, chunk), options);
    let devices = rig.world.make_journal(1, JOURNAL);
    attach_journal(&mut rig.world, &devices);
    rig.rest();
    assert_eq!(rig.world.controller().journal_protection(rig.array), Err(Unprotected::Shape));
}

/// Each write has an entry of its own. Before the table of entries is full, the oldest entries are written to the
/// members, whatever their age, although ring and cache have room.
#[test]
fn a_table_of_entries_that_fills_up_presses_destage() {
    let limits = Limits { journal_entries_max: 128, ..limits_with_journal(Bytes::mib(2)) };
    let mut machine = Journalled::with_limits(ArrayShape::raid5(4, CHUNK), RigOptions::new(1), 1, limits);
    let load = Workload { len_max: 4096, align: 4096, depth: 1, mix: [0, 1, 0, 0, 0], ..Workload::mixed(4 << 20) };
    machine.rig.session.run_on(&mut machine.rig.world, &load, 120);
    let world = &mut machine.rig.world;
    let written = world.journal().expect("it is there");
    assert!(written.counters.entries > 100, "each write is an entry: {written:?}");
    let delay = world.controller().limits().destage_delay;
    world.run_for(Nanos(delay.get() / 4));
    let known = world.journal().expect("it is there");
    assert!(known.entries <= 64 && known.counters.rounds > 0, "{known:?}");
    is_never_full(&mut machine);
    machine.rig.session.look_at_all(&mut machine.rig.world);
    machine.rig.rest();
    machine.rig.judge();
}

/// Each small write occupies many stripes of disks. They are written in the order of their places, each with an entry
/// of its own for its redo. The journal must not be full because of these entries.
#[test]
fn redo_of_many_stripes_finds_room_whatever_their_order() {
    let limits = Limits { journal_entries_max: 128, ..limits_with_journal(Bytes::mib(4)) };
    for seed in seeds(3, 60) {
        let _case = Case::new(seed, "spread");
        let options = RigOptions { latency: Latency::SPINDLE, rotational: true, ..RigOptions::new(seed) };
        let shape = ArrayShape::raid5(4, Sectors::kib(4));
        let mut machine = Journalled::with_limits(shape, options, 1, limits.clone());
        let capacity = machine.rig.session.capacity();
        let load =
            Workload { len_max: 4096, align: 4096, depth: 32, mix: [0, 1, 0, 0, 0], ..Workload::mixed(capacity) };
        for _ in 0..8 {
            machine.rig.session.run_on(&mut machine.rig.world, &load, 100);
            is_never_full(&mut machine);
        }
        machine.cut();
        is_never_full(&mut machine);
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}

/// Hosts write faster than slow members accept. The last places of the table are reserved for destage's records. So no
/// work is stuck, and the next start after a cut succeeds.
#[test]
fn a_table_of_entries_that_is_full_leaves_room_for_redo_and_for_the_next_start() {
    let limits = Limits { journal_entries_max: 256, ..limits_with_journal(Bytes::mib(2)) };
    for seed in seeds(4, 60) {
        let _case = Case::new(seed, "table");
        let options = RigOptions { latency: Latency::SPINDLE, ..RigOptions::new(seed) };
        let mut machine = Journalled::with_limits(ArrayShape::raid5(4, CHUNK), options, 1, limits.clone());
        let load = Workload { len_max: 4096, align: 4096, depth: 1, mix: [0, 1, 0, 0, 0], ..Workload::mixed(4 << 20) };
        let mut most = 0;
        for _ in 0..12 {
            for _ in 0..25 {
                machine.rig.session.run_on(&mut machine.rig.world, &load, 1);
                most = most.max(machine.rig.world.journal().expect("it is there").entries);
            }
            is_never_full(&mut machine);
        }
        assert!(most >= 128, "{most} of 256");
        machine.cut();
        machine.rig.session.look_at_all(&mut machine.rig.world);
        machine.rig.rest();
        machine.rig.judge();
    }
}
