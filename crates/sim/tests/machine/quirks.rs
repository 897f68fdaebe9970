//! Quirks are causes; these tests check their effects.

use openraid_models::{ArrayLevel, Library, Quirk, QuirkValue, Sourced};
use openraid_sim::machine::{ArraySpec, HostIo, IoKind, LoadHistory, Machine, MachineSpec};
use openraid_units::{Bytes, Nanos};

use crate::support::{closed_loop, fixed};

/// MB/s of one stream of 64 KiB requests.
fn stream(spec: &MachineSpec, library: &Library, kind: IoKind, depth: u64) -> f64 {
    let mut machine = Machine::in_library(spec, library).unwrap_or_else(|error| panic!("{error}"));
    let (requests, len, mut place) = (2_000, 65_536u32, 0);
    let next = |id: u64| {
        place += u64::from(len);
        HostIo { id, kind, offset: place - u64::from(len), len, worker: 0 }
    };
    let (time, _) = closed_loop(&mut machine, depth, requests, next);
    (requests * u64::from(len)) as f64 * 1e3 / time.0 as f64
}

fn spec(library: &Library, controller: &str, level: ArrayLevel, members: u16) -> MachineSpec {
    let controller = library.controller(controller).unwrap_or_else(|error| panic!("{error}")).clone();
    MachineSpec::new(controller, fixed(Bytes::gib(64), Nanos::from_micros(500)), ArraySpec::new(level, members))
}

#[test]
fn random_loads_teach_one_controller_to_distrust_streams() {
    let library = Library::builtin();
    let fresh = spec(&library, "9260-8i", ArrayLevel::Raid5, 8);
    let taught = MachineSpec { history: LoadHistory::Random, ..fresh.clone() };
    let rate = |spec: &MachineSpec| stream(spec, &library, IoKind::Write, 4);
    // One chunk at a time: two reads, then two writes, 500 us each, and the controller's own time. The first 32 of 125
    // MiB are not yet a long stream, and do not count.
    assert!(rate(&taught) < 65.6 * 125.0 / 93.0 && rate(&taught) > 40.0, "{}", rate(&taught));
    assert!(rate(&fresh) > 5.0 * rate(&taught), "{}", rate(&fresh));
    // The controller also learns from its own first requests.
    let mut machine = Machine::in_library(&fresh, &library).unwrap_or_else(|error| panic!("{error}"));
    let mut random = openraid_sim::Random::new(9);
    let next = |id: u64| HostIo { id, kind: IoKind::Read, offset: random.below(1 << 20) << 12, len: 4096, worker: 0 };
    closed_loop(&mut machine, 4, 1_000, next);
    let begun = machine.now();
    let mut place = 0;
    let next = |id: u64| {
        place += 1 << 20;
        HostIo { id, kind: IoKind::Write, offset: place, len: 1 << 20, worker: 0 }
    };
    // Four earlier reads end first.
    closed_loop(&mut machine, 4, 4 + 10, next);
    assert!(machine.now().since(begun) > Nanos::from_millis(10 * 16), "sixteen chunks of a millisecond each");
    // Other controllers do not learn.
    let other = spec(&library, "8708em2", ArrayLevel::Raid5, 8);
    let same = MachineSpec { history: LoadHistory::Random, ..other.clone() };
    assert!((rate(&other) - rate(&same)).abs() < 1e-9);
}

#[test]
fn a_stream_that_starts_again_on_each_member_is_not_read_ahead() {
    let library = Library::builtin();
    let rate = |anew: bool, depth| {
        let mut spec = spec(&library, "areca1220", ArrayLevel::Raid0, 4);
        spec.controller.quirks.push(Quirk {
            name: "ra_restart_on_stripe_hop".into(),
            value: QuirkValue::Truth(anew),
            explains: "a test".into(),
        });
        stream(&spec, &library, IoKind::Read, depth)
    };
    // 64 KiB in at least 500 us: 131 MB/s. A higher rate needs more than one drive.
    assert!(rate(true, 1) < 131.1 && rate(false, 1) > 200.0, "{} {}", rate(true, 1), rate(false, 1));
    assert!(rate(true, 4) > 300.0, "{}", rate(true, 4));
}

#[test]
fn a_window_of_one_chunk_keeps_two_members_at_work() {
    let library = Library::builtin();
    let rate = |members| {
        let mut spec = spec(&library, "9650se", ArrayLevel::Raid0, members);
        spec.controller.quirks.retain(|quirk| quirk.name == "ra_window_kib");
        spec.controller.quirks[0].value = QuirkValue::Number(Sourced::exact(64.0));
        stream(&spec, &library, IoKind::Read, 1)
    };
    // The requested chunk and the next one: no more than two drives, however many there are.
    let (two, four) = (rate(2), rate(4));
    assert!(two > 140.0 && two < 2.0 * 131.1, "{two}");
    assert!((four / two - 1.0).abs() < 0.1, "{two} {four}");
}

/// Requests per second, of one kind and size, at random places.
fn random(spec: &MachineSpec, library: &Library, (kind, len): (IoKind, u32), depth: u64, seed: u64) -> f64 {
    let mut machine = Machine::in_library(spec, library).unwrap_or_else(|error| panic!("{error}"));
    let blocks = machine.capacity().get() / u64::from(len);
    let mut random = openraid_sim::Random::new(seed);
    let next = |id: u64| HostIo { id, kind, offset: random.below(blocks) * u64::from(len), len, worker: 0 };
    let (time, _) = closed_loop(&mut machine, depth, 20_000, next);
    20_000.0 * 1e9 / time.0 as f64
}

#[test]
fn slots_of_spans_bound_the_depth() {
    let library = Library::builtin();
    let rate = |level| random(&spec(&library, "9260-8i", level, 8), &library, (IoKind::Read, 4096), 256, 3);
    // Eight drives of 2000 requests per second each. N requests in K queues keep N / (N + K - 1) of the servers busy if
    // service times are exponential (a balanced closed network), and more if they are constant, as here: 32 requests
    // in the 4 queues of each span, 256 in 8 queues.
    let busy = |requests: f64, queues: f64| requests / (requests + queues - 1.0);
    let (wide, spans) = (rate(ArrayLevel::Raid5), rate(ArrayLevel::Raid50));
    let share = spans / wide;
    assert!(wide > 15_000.0 && share > busy(32.0, 4.0) / busy(256.0, 8.0) && share < 0.98, "{wide} {spans}");
}

#[test]
fn waits_on_the_way_to_the_host_overlap() {
    let library = Library::builtin();
    let rate = |members, depth| {
        let spec = spec(&library, "9650se", ArrayLevel::Raid0, members);
        stream(&spec, &library, IoKind::Read, depth)
    };
    let kib = library.controller("9650se").map(|card| card.quirk_number("read_kib_us")).ok().flatten();
    let alone = 1024.0 / kib.unwrap_or_default();
    // A single request waits for all of its bytes, whatever the array; four at a time do not.
    assert!(rate(4, 1) < alone && rate(4, 1) > 0.7 * alone, "{} {alone}", rate(4, 1));
    assert!(rate(2, 1) > rate(4, 1), "{} {}", rate(2, 1), rate(4, 1));
    assert!(rate(4, 4) > 2.5 * rate(4, 1), "{}", rate(4, 4));
}

#[test]
fn parts_of_stripes_without_a_stream_are_not_cached() {
    let library = Library::builtin();
    let rate = |stride: u64| {
        let spec = spec(&library, "8506-8", ArrayLevel::Raid5, 4);
        let mut machine = Machine::in_library(&spec, &library).unwrap_or_else(|error| panic!("{error}"));
        let mut place = 0;
        let next = |id: u64| {
            place += stride;
            HostIo { id, kind: IoKind::Write, offset: place, len: 8192, worker: 0 }
        };
        let (time, _) = closed_loop(&mut machine, 1, 2_000, next);
        2_000.0 * 1e9 / time.0 as f64
    };
    // Two reads, then two writes, 500 us each, and the controller's own time.
    assert!(rate(999_424) < 1_000.0 && rate(999_424) > 600.0, "{}", rate(999_424));
    assert!(rate(8_192) > 3_000.0, "{}", rate(8_192));
}

#[test]
fn a_wide_array_keeps_its_drives_as_busy_with_small_writes_as_a_narrow_one() {
    let library = Library::builtin();
    let rate =
        |members| random(&spec(&library, "9650se", ArrayLevel::Raid5, members), &library, (IoKind::Write, 8192), 64, 7);
    // Two commands for each of M - 1 stripes on M drives: N / (N + M - 1) is two thirds for all M.
    let narrow = rate(4);
    for members in [8, 16] {
        let ratio = rate(members) * 4.0 / (narrow * f64::from(members));
        assert!((ratio - 1.0).abs() < 0.15, "{members}: {} {narrow}", rate(members));
    }
}

#[test]
fn a_mirror_is_read_from_both_halves_if_enough_is_requested_at_once() {
    let library = Library::builtin();
    let rate = |kib: u64| {
        // A stream stays with a head, so the drives must have heads.
        let controller = library.controller("9650se").unwrap_or_else(|error| panic!("{error}")).clone();
        let drive = library.drive("exos_x18_18tb").unwrap_or_else(|error| panic!("{error}")).clone();
        let spec = MachineSpec::new(controller, drive, ArraySpec::new(ArrayLevel::Raid1, 2));
        let mut machine = Machine::in_library(&spec, &library).unwrap_or_else(|error| panic!("{error}"));
        let (len, mut place) = (kib << 10, 0);
        let next = |id: u64| {
            place += len;
            HostIo { id, kind: IoKind::Read, offset: place - len, len: u32::try_from(len).expect("short"), worker: 0 }
        };
        closed_loop(&mut machine, 4, 200, next);
        let members = machine.counters().members;
        (members[0].sectors_read, members[1].sectors_read)
    };
    // Four requests of 128 KiB do not exceed 1 MiB: one half reads them. Four of 512 KiB do, and are read evenly from
    // both halves.
    assert_eq!(rate(128).1, 0);
    let (one, other) = rate(512);
    assert!(one.abs_diff(other) < (one + other) / 10, "{one} {other}");
}

#[test]
fn redundant_arrays_take_the_writes_of_a_stream_one_after_the_other() {
    let library = Library::builtin();
    let rate = |level, depth| stream(&spec(&library, "9260-8i", level, 8), &library, IoKind::Write, depth);
    let card = library.controller("9260-8i").unwrap_or_else(|error| panic!("{error}"));
    let number = |name| card.quirk_number(name).unwrap_or_default();
    // At the rate of the stage. With two levels, the time of the second level is added for each 64 KiB.
    let stage = number("redundancy_stage_mbs");
    let nested = 65_536.0 / (65_536.0 / stage + number("nested_level_overhead_us"));
    for (level, most) in [(ArrayLevel::Raid5, stage), (ArrayLevel::Raid6, stage), (ArrayLevel::Raid10, nested)] {
        assert!((rate(level, 4) / most - 1.0).abs() < 0.01, "{level:?} {} {most}", rate(level, 4));
        // Requests that arrive one at a time rarely wait for the stage.
        assert!(rate(level, 4) < 1.08 * rate(level, 1), "{level:?} {}", rate(level, 1));
    }
    assert!(rate(ArrayLevel::Raid0, 4) > 1.5 * rate(ArrayLevel::Raid0, 1), "{}", rate(ArrayLevel::Raid0, 4));
}

#[test]
fn whole_stripes_pass_no_stage() {
    // A stripe of eight drives has 448 KiB of data on RAID 5 and 256 KiB on RAID 10.
    let library = Library::builtin();
    let card = library.controller("9260-8i").unwrap_or_else(|error| panic!("{error}"));
    let stage = card.quirk_number("redundancy_stage_mbs").unwrap_or_default();
    for (level, kib) in [(ArrayLevel::Raid5, 448), (ArrayLevel::Raid10, 256)] {
        let rate = |shift: u64| {
            let spec = spec(&library, "9260-8i", level, 8);
            let mut machine = Machine::in_library(&spec, &library).unwrap_or_else(|error| panic!("{error}"));
            let len = kib << 10;
            let next =
                |id: u64| HostIo { id, kind: IoKind::Write, offset: id * len + shift, len: len as u32, worker: 0 };
            let (time, _) = closed_loop(&mut machine, 4, 1000, next);
            (1000 * len) as f64 * 1e3 / time.0 as f64
        };
        // With an offset of half a stripe, each write fills two stripes in part.
        assert!(rate(0) > 2.0 * stage, "{level:?} {}", rate(0));
        assert!(rate(kib << 9) < 1.01 * stage, "{level:?} {}", rate(kib << 9));
    }
}
#[test]
fn a_driver_with_one_lock_fills_parts_of_stripes_one_after_the_other() {
    // Ten thousand small writes per second with three to six SSDs and 2 to 128 outstanding requests: from a page of the
    // review that is not the source of any claim or other value of the profile. Whole stripes do not pass the stage.
    let library = Library::builtin();
    let spec = |members| {
        let [controller, drive] = ["intel-rst", "s3500_480"];
        let controller = library.controller(controller).unwrap_or_else(|error| panic!("{error}")).clone();
        let drive = library.drive(drive).unwrap_or_else(|error| panic!("{error}")).clone();
        MachineSpec::new(controller, drive, ArraySpec::new(ArrayLevel::Raid5, members))
    };
    for members in [3, 4, 6] {
        for depth in [8, 128] {
            let rate = random(&spec(members), &library, (IoKind::Write, 4096), depth, 7);
            assert!((rate / 10_000.0 - 1.0).abs() < 0.05, "{members} drives, {depth} outstanding: {rate}");
        }
    }
    // Stripes of three members have 32 KiB: requests of 64 KiB fill whole stripes only. Stripes of four have 48 KiB:
    // requests of 64 KiB fill one or two of them in part.
    let (whole, parts) = (stream(&spec(3), &library, IoKind::Write, 32), stream(&spec(4), &library, IoKind::Write, 32));
    assert!(parts < 65.6 / 0.1 && whole > 1.2 * parts, "{whole} {parts}");
}

#[test]
fn hosts_go_before_a_rebuild() {
    let library = Library::builtin();
    let rate = |rebuilding: bool| {
        let controller = library.controller("openraid").unwrap_or_else(|error| panic!("{error}")).clone();
        let drive = library.drive("exos_x18_18tb").unwrap_or_else(|error| panic!("{error}")).clone();
        let array = ArraySpec { degraded: u16::from(rebuilding), rebuilding, ..ArraySpec::new(ArrayLevel::Raid5, 4) };
        let spec = MachineSpec::new(controller, drive, array);
        let mut machine = Machine::in_library(&spec, &library).unwrap_or_else(|error| panic!("{error}"));
        let blocks = machine.capacity().get() / 4096;
        let mut random = openraid_sim::Random::new(5);
        let next =
            |id: u64| HostIo { id, kind: IoKind::Read, offset: random.below(blocks) * 4096, len: 4096, worker: 0 };
        let (time, _) = closed_loop(&mut machine, 1, 500, next);
        500.0 * 1e9 / time.0 as f64
    };
    // A quarter of the reads needs three drives. Each of them waits for one command of the rebuild, of a chunk.
    let (healthy, rebuilding) = (rate(false), rate(true));
    assert!(rebuilding > 0.35 * healthy && rebuilding < healthy, "{rebuilding} {healthy}");
}
