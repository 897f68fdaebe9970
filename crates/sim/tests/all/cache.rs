//! The controller's cache: all data in it reads as it was written, and is on the members after a flush. The cache costs
//! the members no more than necessary.

use crate::support::{seeds, Case};
use openraid_core::actions::NoticeKind;
use openraid_core::admin::{AdminCommand, Health, MirrorRule, Policy, WriteCache};
use openraid_core::check_results::ScrubMode;
use openraid_core::events::RequestKind;
use openraid_core::geometry::Geometry;
use openraid_core::limits::Limits;
use openraid_sim::drive::Defect;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::oracle::Members;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::{Bytes, MemberLba, Nanos, Sectors, Slot, StripeIndex};

/// Options with a cache of this size in addition to the other memory.
fn options(seed: u64, cache: u64) -> RigOptions {
    let mut options = RigOptions { write_cache: WriteCache::Volatile, ..RigOptions::new(seed) };
    let small = Limits::small();
    options.world.limits = Limits { pool: small.pool + Bytes(cache), cache: Bytes(cache), ..small };
    options
}

/// Cache sizes: a few stripes, a part of the array, more than the array.
const SIZES: [u64; 3] = [128 << 10, 512 << 10, 16 << 20];

#[test]
fn every_level_holds_what_was_written_into_the_cache() {
    for seed in seeds(1, 20) {
        for (number, shape) in ArrayShape::all().into_iter().enumerate() {
            let cache = SIZES[number % 3];
            let _case = Case::new(seed, format!("{shape}, cache of {cache} bytes"));
            let mut rig = Rig::new(shape, options(seed, cache));
            let whole = Workload::mixed(rig.session.capacity());
            for (depth, len_max, align, requests) in
                [(1, 64 << 10, 1, 30), (32, 256 << 10, 512, 80), (8, 4096, 4096, 100), (16, 700, 1, 60)]
            {
                let load = Workload { depth, len_max, align, ..whole.clone() };
                rig.session.run(&mut rig.world, &load, requests);
            }
            let narrow = Workload { range: 0..96 << 10, ..whole };
            rig.session.run(&mut rig.world, &narrow, 100);
            rig.session.look_at_all(&mut rig.world);
            rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
            rig.judge();
        }
    }
}

#[test]
fn flushed_data_survives_a_power_cut_and_other_data_is_old_or_new() {
    for seed in seeds(2, 30) {
        let shapes: Vec<_> = ArrayShape::all().into_iter().filter(|shape| !shape.is_passthrough()).collect();
        for shape in ArrayShape::some(shapes, seed, 16) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, RigOptions { cuts: true, ..options(seed, SIZES[1]) });
            // All over the array, or all on a few units, so that flushes meet units that are being written.
            let range = if rig.random.chance(1, 2) { 0..96 << 10 } else { 0..rig.session.capacity() };
            let mix = [1, 6, 2, 0, 0];
            let load = Workload { len_max: 16 << 10, range, mix, ..Workload::mixed(rig.session.capacity()) };
            for _ in 0..3 {
                rig.session.run_on(&mut rig.world, &load, 60);
                let steps = u32::try_from(rig.random.below(200)).unwrap();
                rig.rest_or(steps);
                rig.cut_and_boot();
                let array = rig.array;
                let policy = Policy { write_cache: WriteCache::Volatile, ..Policy::default() };
                rig.world.admin(AdminCommand::SetPolicy { array, policy }).unwrap();
                rig.session.look_at_all(&mut rig.world);
            }
            rig.rest();
            rig.judge();
        }
    }
}

#[test]
fn members_are_lost_while_much_is_dirty_and_nothing_is_lost_with_them() {
    for seed in seeds(2, 20) {
        let shapes: Vec<_> = ArrayShape::all().into_iter().filter(ArrayShape::is_redundant).collect();
        for shape in ArrayShape::some(shapes, seed, 16) {
            let _case = Case::new(seed, shape);
            let mut rig = Rig::new(shape, options(seed, SIZES[1]));
            let load = Workload { len_max: 64 << 10, depth: 16, ..Workload::mixed(rig.session.capacity()) };
            rig.session.run_on(&mut rig.world, &load, 80);
            let how = *rig.random.pick(&Loss::ALL);
            rig.lose(Slot(0), how);
            rig.session.run_on(&mut rig.world, &load, 80);
            let drive = rig.new_drive();
            rig.world.add_member(rig.array, drive).unwrap();
            rig.session.run(&mut rig.world, &load, 40);
            rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
            rig.rest();
            rig.session.look_at_all(&mut rig.world);
            rig.run_for(Nanos::from_secs(20));
            rig.judge();
        }
    }
}

#[test]
fn a_stopped_array_has_no_dirty_data_left() {
    for shape in [ArrayShape::raid5(4, Sectors::kib(16)), ArrayShape::raid1(2), ArrayShape::raid6(5, Sectors::kib(64))]
    {
        let mut rig = Rig::new(shape, options(3, SIZES[2]));
        let load = Workload { mix: [0, 1, 0, 0, 0], ..Workload::mixed(rig.session.capacity()) };
        rig.session.run(&mut rig.world, &load, 100);
        rig.restart();
        rig.session.look_at_all(&mut rig.world);
        assert_eq!(rig.health(), Health::Optimal);
        rig.judge();
    }
}

#[test]
fn small_writes_in_order_become_whole_stripes() {
    for (shape, data) in [(ArrayShape::raid5(5, Sectors::kib(64)), 4), (ArrayShape::raid6(6, Sectors::kib(64)), 4)] {
        for depth in [1, 32] {
            let mut rig = Rig::new(shape, options(1, 4 << 20));
            rig.rest();
            let before = rig.status();
            let total = 4 << 20;
            let mut begun = 0;
            while begun < total || rig.session.outstanding() > 0 {
                while begun < total && rig.session.outstanding() < depth {
                    rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, begun..begun + 4096);
                    begun += 4096;
                }
                rig.session.step(&mut rig.world);
            }
            rig.session.ask(&mut rig.world, RequestKind::Flush, 0..0);
            rig.rest();
            let after = rig.status();
            let sum = |status: &openraid_core::admin::ArrayStatus,
                       of: fn(&openraid_core::admin::MemberStatus) -> u64| {
                status.members.iter().map(of).sum::<u64>()
            };
            let reads = sum(&after, |m| m.reads) - sum(&before, |m| m.reads);
            let written = (sum(&after, |m| m.sectors_written) - sum(&before, |m| m.sectors_written)) * 512;
            let ideal = total * u64::from(shape.members) / data;
            assert_eq!(reads, 0, "{shape}, depth {depth}");
            assert!(written <= ideal + ideal / 50, "{shape}, depth {depth}: {written} bytes for {ideal}");
            rig.judge();
        }
    }
}

/// Dirty data waits for five seconds on disks, for twenty on other drives.
#[test]
fn dirty_data_waits_longer_for_more_if_no_member_spins() {
    for (rotational, early) in [(true, true), (false, false)] {
        let mut rig =
            Rig::new(ArrayShape::raid5(4, Sectors::kib(16)), RigOptions { rotational, ..options(1, SIZES[1]) });
        rig.rest();
        let written = |rig: &Rig| rig.status().members.iter().map(|member| member.writes).sum::<u64>();
        let before = written(&rig);
        rig.session.ask(&mut rig.world, RequestKind::Write { fua: false }, 0..4096);
        rig.session.drain(&mut rig.world);
        rig.world.run_for(Nanos::from_secs(6));
        assert_eq!(written(&rig) > before, early, "spins: {rotational}, after 6 s");
        rig.world.run_for(Nanos::from_secs(15));
        assert_eq!(written(&rig) - before, 2, "spins: {rotational}: a piece of data and of parity");
        rig.judge();
    }
}

#[test]
fn the_figures_of_the_cache_are_those_of_the_load() {
    // RAID 5 of three: two columns of 16 KiB make a unit of 64 sectors.
    let shape = ArrayShape::raid5(3, Sectors::kib(16));
    let mut rig = Rig::new(shape, RigOptions { rotational: true, ..options(1, SIZES[2]) });
    let ask = |rig: &mut Rig, kind, at: u64, len: u64| {
        rig.session.ask(&mut rig.world, kind, at..at + len);
        rig.session.drain(&mut rig.world);
    };
    let write = RequestKind::Write { fua: false };
    ask(&mut rig, write, 0, 4096);
    rig.run_for(Nanos::from_secs(1));
    // Half of the first unit again, and a whole unit.
    ask(&mut rig, write, 2048, 4096);
    ask(&mut rig, write, 32 << 10, 32 << 10);
    rig.run_for(Nanos::from_secs(1));
    let early = rig.status().cached;
    assert_eq!((early.written, early.merged), (8 + 8 + 64, 4));
    assert_eq!((early.destaged, early.units), (64, 1), "the whole unit waits for nothing");
    assert!(early.waited < Nanos::from_secs(1), "{early:?}");
    ask(&mut rig, RequestKind::Read, 0, 8192);
    rig.run_for(Nanos::from_secs(20));
    let figures = rig.status().cached;
    assert_eq!((figures.destaged, figures.units), (64 + 12, 2));
    // The oldest line of the other unit was dirty for the five seconds of destage's delay, and for the time of its
    // write.
    let delay = Limits::small().destage_delay;
    assert!(figures.waited_max >= delay && figures.waited_max < delay + Nanos::from_secs(1), "{figures:?}");
    assert_eq!(figures.waited, early.waited + figures.waited_max);
    // The first line and half of the second one were in the cache, the rest was not.
    assert_eq!((figures.read_hits, figures.read_misses), (12, 4));
    let status = rig.world.controller().cache_status().expect("it has one");
    assert_eq!((status.size, status.dirty), (Bytes(SIZES[2]), Bytes(0)));
    assert_eq!(status.counters.written, figures.written);
    // Until now no host has made requests. Hosts begin, and only their counters start again.
    let before = rig.status();
    rig.world.admin(AdminCommand::CountHosts { array: rig.array }).unwrap();
    let begun = rig.status();
    assert_eq!((before.requests, begun.requests, begun.bytes), ([1, 3, 0, 0], [0; 4], [0; 2]));
    assert_eq!((begun.cached.read_hits, begun.cached.read_misses), (0, 0));
    assert_eq!((begun.cached.written, &begun.members, &begun.reasons), (80, &before.members, &before.reasons));
    ask(&mut rig, RequestKind::Read, 0, 4096);
    let one = rig.status();
    assert_eq!((one.requests, one.bytes), ([1, 0, 0, 0], [4096, 0]));
    assert_eq!((one.cached.read_hits, one.cached.read_misses), (8, 0));
    rig.judge();
}

#[test]
fn a_change_of_the_policy_is_reported_with_old_and_new_value() {
    let mut rig = Rig::new(ArrayShape::raid1(2), options(1, SIZES[0]));
    rig.world.take_notices();
    let (array, from) = (rig.array, rig.status().policy);
    let to = Policy { write_cache: WriteCache::Through, sorting: false, ..from };
    for policy in [from, to, to, Policy { background_depth: 0, ..to }] {
        rig.world.admin(AdminCommand::SetPolicy { array, policy }).expect("it is taken");
    }
    let notices: Vec<NoticeKind> = rig.world.take_notices().iter().map(|notice| notice.kind).collect();
    // A depth of zero counts as one.
    let least = Policy { background_depth: 1, ..to };
    let expected = [NoticeKind::PolicyChanged { from, to }, NoticeKind::PolicyChanged { from: to, to: least }];
    assert_eq!(notices, expected);
}

/// A long read meets a bad sector of the first copy, so all its data comes from the second copy. The second copy lacks
/// data that a cut left on the first. If the resync then copies the first, the cached data of the second is no longer
/// on any member. If the bad sector is repaired before that, the second copy stays.
#[test]
fn data_read_from_another_copy_does_not_outlive_the_resync() {
    const OLD: [u8; 512] = [1; 512];
    const NEW: [u8; 512] = [2; 512];
    let (mut other, mut first) = (0, 0);
    for (seed, at) in seeds(8, 60).flat_map(|seed| (0..8).map(move |place| (seed, place * 32))) {
        let _case = Case::new(seed, format!("at sector {at}"));
        let through = RigOptions { write_cache: WriteCache::Through, ..options(seed, SIZES[1]) };
        let mut rig = Rig::new(ArrayShape::raid1(2), through);
        rig.rest();
        rig.world.write(rig.array, at * 512, &[1; 128 * 512]).unwrap();
        rig.world.flush(rig.array).unwrap();
        rig.world.write(rig.array, (at + 59) * 512, &NEW).unwrap();
        let members = Members::of(&rig.world, rig.array);
        let bad = members.place(Slot(0), MemberLba(at + 125)).unwrap();
        let lacks = members.place(Slot(1), MemberLba(at + 59)).unwrap();
        rig.world.kill();
        rig.world.drive_mut(bad.0).faults.add_defects(bad.1, Sectors(1), Defect::UntilWritten);
        rig.world.drive_mut(lacks.0).poke(lacks.1, &OLD);
        rig.boot();
        let read = rig.world.read(rig.array, (at + 48) * 512, 80 * 512).unwrap();
        rig.world.run_until_idle();
        assert_eq!(rig.status().consistent_to, Sectors::MAX);
        let known = rig.world.read(rig.array, (at + 59) * 512, 512).unwrap();
        rig.judge_redundancy();
        rig.world.kill();
        rig.boot();
        let found = rig.world.read(rig.array, (at + 59) * 512, 512).unwrap();
        assert_eq!(found, known, "it was read otherwise after the resync");
        other += u32::from(read[11 * 512..12 * 512] == OLD);
        first += u32::from(read[11 * 512..12 * 512] == OLD && known == NEW);
    }
    println!("the second copy was read {other} times, and {first} times the first one stayed");
    assert!(first > 0, "the second copy was read {other} times, and always stayed");
}

/// A bit flips, hosts read it, and a patrol follows: hosts then read the corrected data.
#[test]
fn data_that_was_read_wrong_is_right_after_a_check_has_corrected_it() {
    const RIGHT: [u8; 512] = [7; 512];
    for shape in [ArrayShape::raid6(6, Sectors::kib(16)), ArrayShape::raid1(3)] {
        let _case = Case::new(4, shape);
        let through = RigOptions { write_cache: WriteCache::Through, ..options(4, SIZES[1]) };
        let mut rig = Rig::new(shape, through);
        let primary = Policy { mirror_read: MirrorRule::Primary, ..Policy::default() };
        rig.world.admin(AdminCommand::SetPolicy { array: rig.array, policy: primary }).unwrap();
        rig.rest();
        rig.world.write(rig.array, 0, &RIGHT.repeat(32)).unwrap();
        rig.world.flush(rig.array).unwrap();
        rig.rest();
        let first = match shape.geometry() {
            Geometry::Parity(parity) => parity.slot_of(StripeIndex(0), 0),
            _ => Slot(0),
        };
        let (drive, lba) = Members::of(&rig.world, rig.array).place(first, MemberLba(5)).unwrap();
        rig.world.drive_mut(drive).flip(lba, 9, 0x20);
        assert_ne!(rig.world.read(rig.array, 5 * 512, 512).unwrap(), RIGHT, "{shape}: it is read as it is");
        rig.world.admin(AdminCommand::Scrub { array: rig.array, mode: ScrubMode::Repair }).unwrap();
        rig.rest();
        let mut now = [0; 512];
        rig.world.drive(drive).peek(lba, &mut now);
        assert_eq!(now, RIGHT, "{shape}: the patrol has put it right");
        assert_eq!(rig.world.read(rig.array, 5 * 512, 512).unwrap(), RIGHT, "{shape}: the cache goes on to tell it");
    }
}
