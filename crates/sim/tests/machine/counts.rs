//! The number of commands for a request, and the capacity of an array.

use openraid_core::admin::{PartialWritePolicy, Policy};
use openraid_sim::machine::{ArrayLevel, ArraySpec, HostIo, IoDone, IoKind, Machine, MachineError, MachineParts};
use openraid_units::{Bytes, Nanos};

use crate::support::{constant, machine, one, SECTORS};

const MS: Nanos = Nanos::from_millis(1);

fn rmw() -> MachineParts {
    MachineParts {
        policy: Policy { partial_write: PartialWritePolicy::ReadModifyWrite, ..Policy::default() },
        ..MachineParts::default()
    }
}

/// Reads, writes and used members of one request.
fn cost(level: ArrayLevel, members: u16, kind: IoKind, offset: u64, len: u32) -> (u64, u64, usize) {
    let mut machine = machine(rmw(), level, members, MS);
    one(&mut machine, kind, offset, len);
    let counters = machine.counters().members;
    let touched = counters.iter().filter(|member| member.reads + member.writes > 0).count();
    (counters.iter().map(|member| member.reads).sum(), counters.iter().map(|member| member.writes).sum(), touched)
}

#[test]
fn a_small_write_costs_what_the_level_says() {
    use ArrayLevel::*;
    let write = |level, members| cost(level, members, IoKind::Write, 8192, 8192);
    assert_eq!(write(Single, 1), (0, 1, 1));
    assert_eq!(write(Jbod, 3), (0, 1, 1));
    assert_eq!(write(Linear, 3), (0, 1, 1));
    assert_eq!(write(Raid0, 4), (0, 1, 1));
    assert_eq!(write(Raid1, 2), (0, 2, 2));
    assert_eq!(write(Raid1e, 3), (0, 2, 2));
    assert_eq!(write(Raid10, 4), (0, 2, 2));
    assert_eq!(write(Raid10, 8), (0, 2, 2));
    for members in [3, 4, 8] {
        assert_eq!(write(Raid5, members), (2, 2, 2), "RAID 5 on {members}");
    }
    for members in [5, 8] {
        assert_eq!(write(Raid6, members), (3, 3, 3), "RAID 6 on {members}");
    }
    assert_eq!(write(Raid50, 8), (2, 2, 2));
    assert_eq!(write(Raid60, 10), (3, 3, 3));
}

#[test]
fn a_full_stripe_is_written_without_reads() {
    use ArrayLevel::*;
    for (level, members, data) in [(Raid5, 4, 3), (Raid5, 8, 7), (Raid6, 8, 6), (Raid50, 8, 3), (Raid0, 8, 8)] {
        let stripe = data * 65_536;
        let span = if level == Raid50 { 4 } else { members };
        assert_eq!(
            cost(level, members, IoKind::Write, u64::from(stripe) * 2, stripe),
            (0, u64::from(span), usize::from(span)),
            "{level} on {members}"
        );
    }
}

#[test]
fn reads_cost_one_command_and_more_where_members_are_missing() {
    use ArrayLevel::*;
    for (level, members) in [(Single, 1), (Raid0, 4), (Raid1, 2), (Raid10, 4), (Raid5, 4), (Raid6, 6), (Raid50, 6)] {
        assert_eq!(cost(level, members, IoKind::Read, 65_536 + 8192, 8192), (1, 0, 1), "{level}");
    }
    // Every chunk of the first rows: a chunk on the missing member needs a read of all others.
    let array = ArraySpec { degraded: 1, ..ArraySpec::new(Raid5, 4) };
    let mut machine = Machine::with_drives(rmw(), &array, constant(4, MS), true).expect("it can run");
    for chunk in 0..12 {
        one(&mut machine, IoKind::Read, chunk * 65_536, 4096);
    }
    let reads: u64 = machine.counters().members.iter().map(|member| member.reads).sum();
    // In 4 rows the missing member has 3 chunks of data: 3 of the 12 reads take 3 commands.
    assert_eq!(reads, 9 + 3 * 3);
    assert_eq!(machine.counters().members[0].reads, 0);
}

#[test]
fn arrays_hold_what_their_members_hold() {
    use ArrayLevel::*;
    let drive = SECTORS * 512;
    let chunks = |bytes: u64| bytes / 65_536 * 65_536;
    for (level, members, data) in [
        (Single, 1, 1),
        (Jbod, 6, 6),
        (Linear, 3, 3),
        (Raid0, 8, 8),
        (Raid1, 2, 1),
        (Raid10, 8, 4),
        (Raid5, 8, 7),
        (Raid6, 8, 6),
        (Raid50, 8, 6),
        (Raid60, 8, 4),
    ] {
        let machine = machine(MachineParts::default(), level, members, MS);
        let capacity = machine.capacity().get();
        let full = chunks(drive) * data;
        assert!(capacity <= full, "{level}: {capacity} of {full}");
        // A nested array has its outer superblock on the spans.
        let slack = if matches!(level, Raid50 | Raid60) { 4 << 20 } else { 0 };
        assert!(capacity + slack >= full, "{level}: {capacity} of {full}");
    }
}

#[test]
fn impossible_arrays_are_refused_with_the_reason() {
    let refused = |array: ArraySpec| {
        let drives = constant(array.members, MS);
        Machine::with_drives(MachineParts::default(), &array, drives, true).map(|_| ()).expect_err("it cannot be")
    };
    let text = |array| refused(array).to_string();
    assert!(text(ArraySpec::new(ArrayLevel::Raid6, 3)).contains("give it at least 4"));
    assert!(text(ArraySpec::new(ArrayLevel::Raid5, 2)).contains("give it at least 3"));
    assert!(text(ArraySpec::new(ArrayLevel::Raid10, 5)).contains("even"));
    assert!(text(ArraySpec::new(ArrayLevel::Single, 2)).contains("one drive"));
    let degraded = |level, members, degraded| ArraySpec { degraded, ..ArraySpec::new(level, members) };
    for array in [
        degraded(ArrayLevel::Raid0, 4, 1),
        degraded(ArrayLevel::Jbod, 4, 1),
        degraded(ArrayLevel::Raid5, 4, 2),
        degraded(ArrayLevel::Raid6, 6, 3),
        degraded(ArrayLevel::Raid10, 4, 3),
        degraded(ArrayLevel::Raid50, 8, 3),
    ] {
        assert!(matches!(refused(array), MachineError::Missing { .. }), "{array:?}");
    }
    for array in [
        degraded(ArrayLevel::Raid1, 2, 1),
        degraded(ArrayLevel::Raid6, 6, 2),
        degraded(ArrayLevel::Raid10, 8, 4),
        degraded(ArrayLevel::Raid50, 8, 2),
    ] {
        let drives = constant(array.members, MS);
        let machine = Machine::with_drives(MachineParts::default(), &array, drives, true);
        assert!(machine.is_ok(), "{array:?}: {}", machine.map(|_| ()).unwrap_err());
    }
    let drives = constant(3, MS);
    let array = ArraySpec::new(ArrayLevel::Raid5, 4);
    let error = Machine::with_drives(MachineParts::default(), &array, drives, true).map(|_| ()).expect_err("too few");
    assert_eq!(error, MachineError::Drives { have: 3, members: 4 });
}

#[test]
fn a_rebuild_reads_the_others_and_fills_the_new_one() {
    let array = ArraySpec { degraded: 1, rebuilding: true, ..ArraySpec::new(ArrayLevel::Raid5, 4) };
    let drives = constant(4, Nanos::from_micros(100));
    let mut machine = Machine::with_drives(MachineParts::default(), &array, drives, true).expect("it can run");
    machine.advance(openraid_units::Instant(2_000_000_000), &mut Vec::new());
    let members = machine.counters().members;
    assert!(members[0].writes > 0 && members[0].reads == 0, "{members:?}");
    assert!(members[1..].iter().all(|member| member.reads > 0 && member.writes == 0), "{members:?}");
    assert!(members[1].sectors_read.abs_diff(members[0].sectors_written) < 64 * 2048);
}

#[test]
fn a_write_in_the_cache_is_answered_before_the_members_have_it() {
    let policy = Policy { write_cache: openraid_core::admin::WriteCache::Volatile, ..Policy::default() };
    let parts = MachineParts { cache: Bytes::mib(16), policy, ..MachineParts::default() };
    let mut machine = machine(parts, ArrayLevel::Raid5, 4, MS);
    assert_eq!(one(&mut machine, IoKind::Write, 0, 8192), Nanos::ZERO);
    // After the destage, the data can still be read.
    machine.advance(openraid_units::Instant(20_000_000_000), &mut Vec::new());
    assert_eq!(one(&mut machine, IoKind::Read, 0, 8192), Nanos::ZERO);
    let counters = machine.counters();
    assert_eq!((counters.cache.written, counters.cache.destaged, counters.cache.read_hits), (16, 16, 16));
    assert_eq!(one(&mut machine, IoKind::Read, 1 << 30, 8192), MS);
}

/// Reads one at a time next to bursts of small writes, which are destaged a moment later. Returns the 99th percentile
/// and the longest time.
fn reads_beside_destage(destage_beside_reads: u32) -> [Nanos; 2] {
    let policy = Policy { write_cache: openraid_core::admin::WriteCache::Volatile, ..Policy::default() };
    let parts = MachineParts {
        cache: Bytes::mib(256),
        policy,
        destage_delay: Nanos::from_millis(200),
        destage_beside_reads,
        ..MachineParts::default()
    };
    let mut machine = machine(parts, ArrayLevel::Raid5, 4, MS);
    let blocks = 2 * SECTORS * 512 / 4096;
    let mut state = 1_u64;
    let mut place = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % blocks * 4096
    };
    let (mut times, mut done) = (Vec::new(), Vec::new());
    for turn in 0..4000_u64 {
        let from = machine.now();
        machine.submit(HostIo { id: 1, kind: IoKind::Read, offset: place(), len: 4096, worker: 0 });
        if turn % 500 == 0 {
            for _ in 0..200 {
                machine.submit(HostIo { id: 2, kind: IoKind::Write, offset: place(), len: 4096, worker: 1 });
            }
        }
        done.clear();
        let end = loop {
            if let Some(end) = done.iter().find(|end: &&IoDone| end.id == 1) {
                break end.at;
            }
            machine.advance(openraid_units::Instant::NEVER, &mut done);
        };
        times.push(end.since(from));
    }
    assert!(machine.counters().cache.destaged > 8 * 1000, "{:?}", machine.counters().cache);
    times.sort_unstable();
    [times[times.len() * 99 / 100], times[times.len() - 1]]
}

#[test]
fn reads_keep_their_latency_while_dirty_data_is_written_back() {
    let (without, with) = (reads_beside_destage(u32::MAX), reads_beside_destage(2));
    println!("reads next to destage: {without:?}; if destage gives way {with:?}");
    // Two commands may precede a read, which then takes its own time.
    assert_eq!(with[0], Nanos(3 * MS.get()));
    assert!(without[0] > Nanos(10 * MS.get()) && with[1] < without[0], "{without:?} {with:?}");
}
