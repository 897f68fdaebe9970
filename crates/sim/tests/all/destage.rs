//! The time and order of destage: no destage below the high mark, then down to the low mark; full stripes before all
//! others, the oldest first; on disks in the order of position.

use openraid_core::admin::{MemberStatus, WriteCache};
use openraid_core::events::RequestKind;
use openraid_core::limits::Limits;
use openraid_core::reason::Reason;
use openraid_sim::drive::Latency;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::world::WorldSpec;
use openraid_sim::{ArrayShape, Rig, RigOptions};
use openraid_units::{Bytes, Nanos, Sectors};

const LINE: u64 = 4096;
/// With 256 lines, the high mark is 153 and the low mark is 102.
const CACHE: Bytes = Bytes::mib(1);
const HIGH: u64 = 153;
const LOW: u64 = 102;
/// Together with a whole stripe this is still below the high mark.
const COLLECTED: u64 = HIGH - 4;

/// Shapes, each with the bytes of data of one unit.
fn shapes() -> [(ArrayShape, u64); 3] {
    let chunk = Sectors::kib(4);
    // A unit of a set without parity has 128 KiB.
    [
        (ArrayShape::raid5(4, chunk), 12 << 10),
        (ArrayShape::raid6(6, chunk), 16 << 10),
        (ArrayShape::raid1(2), 128 << 10),
    ]
}

/// One zone of destage, so units are destaged in the order in which they were written.
fn rig(shape: ArrayShape) -> Rig {
    rig_on(shape, true)
}

fn rig_on(shape: ArrayShape, rotational: bool) -> Rig {
    rig_with(shape, rotational, |_| ())
}

fn rig_with(mut shape: ArrayShape, rotational: bool, change: impl Fn(&mut WorldSpec)) -> Rig {
    shape.data = Sectors::mib(24);
    let mut options = RigOptions { write_cache: WriteCache::Volatile, rotational, ..RigOptions::new(1) };
    let small = Limits::small();
    options.world.limits = Limits { pool: small.pool + CACHE, cache: CACHE, destage_units_max: 1, ..small };
    change(&mut options.world);
    let mut rig = Rig::new(shape, options);
    rig.rest();
    rig
}

fn ask(rig: &mut Rig, kind: RequestKind, at: u64, len: u64) {
    rig.session.ask(&mut rig.world, kind, at..at + len);
    rig.session.drain(&mut rig.world);
}

fn write(rig: &mut Rig, at: u64, len: u64) {
    ask(rig, RequestKind::Write { fua: false }, at, len);
}

fn sum(rig: &Rig, of: fn(&MemberStatus) -> u64) -> u64 {
    rig.status().members.iter().map(of).sum()
}

fn dirty_lines(rig: &Rig) -> u64 {
    rig.world.controller().cache_status().expect("it has one").dirty.get() / LINE
}

#[test]
fn nothing_is_written_below_the_high_mark_and_then_as_much_as_lies_above_the_low_one() {
    for (shape, unit) in shapes() {
        let mut rig = rig(shape);
        let (before, start) = (sum(&rig, |member| member.writes), rig.world.now());
        // One line of each unit, so no unit is full.
        for place in 0..HIGH {
            write(&mut rig, place * unit, LINE);
        }
        rig.run_for(Nanos::from_millis(500));
        assert_eq!((dirty_lines(&rig), sum(&rig, |member| member.writes) - before), (HIGH, 0), "{shape}");
        write(&mut rig, HIGH * unit, LINE);
        rig.run_for(Nanos::from_secs(1));
        assert_eq!(dirty_lines(&rig), LOW, "{shape}");
        let counters = rig.world.controller().cache_status().expect("it has one").counters;
        assert_eq!((counters.pressed, counters.aged, counters.urgent), (HIGH + 1 - LOW, 0, 0), "{shape}");
        // The rest is the youngest data. It is destaged when it reaches the age limit.
        assert!(rig.world.now().since(start) < Limits::small().destage_delay, "{shape}: nothing is old yet");
        rig.run_for(Limits::small().destage_delay * 2);
        let counters = rig.world.controller().cache_status().expect("it has one").counters;
        assert_eq!((dirty_lines(&rig), counters.aged), (0, LOW), "{shape}");
        rig.judge();
    }
}

#[test]
fn under_pressure_the_oldest_go_first_and_whole_stripes_before_them() {
    let (shape, unit) = shapes()[0];
    let mut rig = rig_on(shape, false);
    for place in 0..COLLECTED {
        write(&mut rig, place * unit, LINE);
    }
    // A whole stripe, the youngest unit: it is destaged at once, and no other unit is.
    let before = (sum(&rig, |member| member.reads), sum(&rig, |member| member.sectors_written));
    let full = 400 * unit;
    write(&mut rig, full, unit);
    rig.run_for(Nanos::from_millis(500));
    let after = (sum(&rig, |member| member.reads), sum(&rig, |member| member.sectors_written));
    assert_eq!((after.0 - before.0, after.1 - before.1), (0, 4 * 8), "three columns and the parity, and no reads");
    assert_eq!(dirty_lines(&rig), COLLECTED);
    // Above the mark, the oldest writes are destaged. The remaining ones still hit the cache as dirty lines.
    for place in COLLECTED..=HIGH {
        write(&mut rig, place * unit, LINE);
    }
    rig.run_for(Nanos::from_secs(1));
    assert_eq!(dirty_lines(&rig), LOW);
    let overwritten = |rig: &Rig| rig.status().cached.merged;
    let start = overwritten(&rig);
    // The youngest LOW writes remain: rewriting these replaces dirty sectors, rewriting older ones does not.
    let left: Vec<u64> = (0..=HIGH).rev().take(usize::try_from(LOW).expect("few")).collect();
    let (first, last) = (left[left.len() - 1], left[0]);
    write(&mut rig, last * unit, LINE);
    write(&mut rig, first * unit, LINE);
    assert_eq!(overwritten(&rig) - start, 16, "both are still dirty");
    write(&mut rig, (first - 1) * unit, LINE);
    assert_eq!(overwritten(&rig) - start, 16, "the one before them has gone");
    rig.judge();
}

/// Whether the first line of this unit was still dirty. The function makes it dirty.
fn is_dirty(rig: &mut Rig, at: u64) -> bool {
    let before = rig.status().cached.merged;
    write(rig, at, LINE);
    rig.status().cached.merged > before
}

#[test]
fn under_pressure_members_that_spin_are_written_upwards_and_the_next_time_from_there() {
    for (shape, unit) in shapes() {
        let mut rig = rig(shape);
        // The highest places are the oldest.
        for place in (0..=HIGH).rev() {
            write(&mut rig, place * unit, LINE);
        }
        rig.run_for(Nanos::from_secs(1));
        assert_eq!(dirty_lines(&rig), LOW, "{shape}");
        // The number of destaged units is the number above the low mark. In a zone, which has room for eleven of the
        // smallest units, the oldest are destaged first.
        let (gone, zone) = (HIGH + 1 - LOW, 12);
        assert!(is_dirty(&mut rig, HIGH * unit), "{shape}: the oldest of all is far above");
        assert!(is_dirty(&mut rig, (gone + zone) * unit), "{shape}: the first above what was written");
        // Writes of the destaged amount below the current position, and of a small amount far above it: destage
        // continues at its position.
        for place in (0..gone).chain(HIGH + 1..=HIGH + zone) {
            write(&mut rig, place * unit, LINE);
        }
        rig.run_for(Nanos::from_secs(1));
        assert!(dirty_lines(&rig) < HIGH, "{shape}");
        let left = [0, 2 * gone + 2 * zone, HIGH].map(|place| is_dirty(&mut rig, place * unit));
        assert_eq!(left, [true; 3], "{shape}: the data below the hand, and the data above the written part");
        let went = [gone + zone, 2 * gone - zone].map(|place| is_dirty(&mut rig, place * unit));
        assert_eq!(went, [false; 2], "{shape}: went this time");
        rig.judge();
    }
}

#[test]
fn destage_delays_no_request_while_hosts_write_more_than_members_take() {
    // Ten times the size of the cache at depth 8: every write ends, and none takes as long as emptying the cache.
    let (shape, _) = shapes()[0];
    let mut rig = rig(shape);
    let load = Workload {
        len_max: LINE,
        align: LINE,
        mix: [0, 1, 0, 0, 0],
        depth: 8,
        ..Workload::mixed(rig.session.capacity())
    };
    let mut dirty_most = 0;
    for _ in 0..10 {
        rig.session.run_on(&mut rig.world, &load, CACHE.get() / LINE);
        dirty_most = dirty_most.max(dirty_lines(&rig));
    }
    let limit = Limits::small().dirty_max_percent * (CACHE.get() / LINE) / 100;
    assert!((LOW..=limit).contains(&dirty_most), "{dirty_most} of {limit} lines");
    rig.session.drain(&mut rig.world);
    assert!(dirty_lines(&rig) >= LOW - 1, "it was never emptied for them");
    rig.judge();
}

/// Sixteen writes of one to three lines are outstanding at a time, while a drive frees one unit at a time. Writes that
/// need few lines do not overtake older ones that need more. The last write is served last.
#[test]
fn writes_get_lines_of_a_full_cache_in_the_order_of_their_arrival() {
    const WRITES: u64 = 180;
    let (shape, unit) = shapes()[2];
    // Payload arrives in the order of its requests.
    let at_once = Latency { least: Nanos::ZERO, most: Nanos::ZERO, grain: Nanos(1) };
    let mut rig = rig_with(shape, true, |world| (world.transfers, world.jobs) = (at_once, at_once));
    let mut tokens = Vec::new();
    for place in 0..WRITES {
        let len = (1 + place % 3) * LINE;
        let payload = vec![u8::try_from(place).expect("few"); usize::try_from(len).expect("small")];
        tokens.push(rig.world.submit(rig.array, RequestKind::Write { fua: false }, place * unit, len, payload));
    }
    while rig.world.outstanding() > 0 {
        rig.world.step();
    }
    let waited = rig.status().reasons.iter().find(|(reason, _)| *reason == Reason::WaitedForCache).map_or(0, |r| r.1);
    assert!(waited > WRITES / 3, "the cache was full for {waited} of them only");
    let ended: Vec<_> = rig.world.take_finished().map(|(token, _)| token).collect();
    assert_eq!(ended, tokens);
}

/// A write waits for a line. All lines in work are written again meanwhile, so none of them becomes clean. More units
/// must be destaged at once, before their age limit.
#[test]
fn a_write_that_waits_for_a_full_cache_does_not_wait_for_dirty_data_to_age() {
    // All lines except one of a unit of 32; two thirds of the low mark may be in work.
    const LINES: u64 = 31;
    let (shape, unit) = shapes()[2];
    let at_once = Latency { least: Nanos::ZERO, most: Nanos::ZERO, grain: Nanos(1) };
    let mut rig = rig_with(shape, true, |world| {
        (world.transfers, world.jobs) = (at_once, at_once);
        world.limits.destage_units_max = 8;
    });
    let whole = |rig: &mut Rig, place: u64| {
        let payload = vec![7; usize::try_from(LINES * LINE).expect("small")];
        rig.world.submit(rig.array, RequestKind::Write { fua: false }, place * unit, LINES * LINE, payload)
    };
    let most = rig.world.controller().cache_status().expect("it has one").dirty_max.get() / LINE;
    for place in 0..most / LINES {
        let token = whole(&mut rig, place);
        rig.world.run_until(token);
    }
    let payload = vec![7; usize::try_from(LINES * LINE).expect("small")];
    let waits = rig.world.submit(rig.array, RequestKind::Write { fua: false }, 100 * unit, LINES * LINE, payload);
    let start = rig.world.now();
    // The lines that destage has copied are dirty again before the drives have the data.
    while sum(&rig, |member| u64::from(member.outstanding)) == 0 {
        rig.world.step();
    }
    for place in 0..most / LINES {
        let token = whole(&mut rig, place);
        rig.world.run_until(token);
    }
    rig.world.run_until(waits);
    assert!(rig.world.now().since(start) < Limits::small().destage_delay, "{:?}", rig.world.now().since(start));
}
