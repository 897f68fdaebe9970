//! Every built-in controller makes the arrays that it supports, and refuses the others with its reason.

use openraid_models::{Adapters, ArrayLevel, DriveKind, DriveProfile, Library, Sourced};
use openraid_sim::machine::{ArraySpec, CacheMode, CachePolicy, HostIo, IoKind, Machine, MachineError, MachineSpec};
use openraid_sim::Random;
use openraid_units::{Bytes, Nanos};

use crate::support::{closed_loop, fixed, one};

fn spec(library: &Library, controller: &str, level: ArrayLevel, members: u16) -> MachineSpec {
    let controller = library.controller(controller).unwrap_or_else(|error| panic!("{error}")).clone();
    let drive = fixed(Bytes::gib(16), Nanos::from_millis(4));
    MachineSpec::new(controller, drive, ArraySpec::new(level, members))
}

#[test]
fn every_level_of_every_controller_serves_reads_and_writes() {
    let library = Library::builtin();
    assert!(library.dangling().is_empty(), "{:?}", library.dangling());
    let mut arrays = 0;
    for controller in library.controllers() {
        for rule in &controller.levels {
            let name = format!("{} {}", controller.head.name, rule.level);
            let mut machine =
                Machine::in_library(&spec(&library, &controller.head.name, rule.level, rule.members_min), &library)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut random = Random::new(1);
            let blocks = machine.capacity().get() / 8192;
            let next = |id: u64| HostIo {
                id,
                kind: if id.is_multiple_of(2) { IoKind::Read } else { IoKind::Write },
                offset: random.below(blocks) * 8192,
                len: 8192,
                worker: 0,
            };
            let (time, _) = closed_loop(&mut machine, 8, 200, next);
            assert!(time > Nanos::ZERO, "{name}");
            arrays += 1;
        }
    }
    assert!(arrays > 100, "{arrays}");
}

#[test]
fn a_port_is_a_ceiling_for_its_drive() {
    let library = Library::builtin();
    let read = |controller: &str, drive: &str| {
        let controller = library.controller(controller).unwrap().clone();
        let drive = library.drive(drive).unwrap().clone();
        let spec = MachineSpec::new(controller, drive, ArraySpec::new(ArrayLevel::Single, 1));
        let mut machine = Machine::in_library(&spec, &library).unwrap();
        let mut at = 0;
        let next = |id: u64| {
            at += 1 << 20;
            HostIo { id, kind: IoKind::Read, offset: at, len: 1 << 20, worker: 0 }
        };
        let (time, _) = closed_loop(&mut machine, 16, 400, next);
        400.0 * f64::from(1 << 20) * 1e3 / time.0 as f64
    };
    let port = |name: &str| library.bus(name).unwrap().read.value.0 as f64 / 1e6;
    for (controller, link) in [("3ware-9650se", "sata3"), ("lsi-sas3041e-r", "sas3"), ("3ware-8506-8", "sata1")] {
        let mbs = read(controller, "pm893_960");
        assert!(mbs <= port(link) && mbs > port(link) * 0.9, "{controller}: {mbs} through {}", port(link));
    }
    // A drive in a slot of the host has no port.
    assert!(read("openraid", "pm9a3_1920") > port("sas12"));
}

#[test]
fn drives_in_slots_of_the_host_share_no_bus_and_drives_on_an_uplink_do() {
    let library = Library::builtin();
    let drive = || library.drive("980pro_1tb").unwrap().clone();
    let two = striped(&library, "openraid", drive(), 2, [IoKind::Read; 2]);
    let four = striped(&library, "openraid", drive(), 4, [IoKind::Read; 2]);
    // The data sheet has 7,000 MB/s for one.
    assert!(two > 13_000.0 && two <= 14_100.0, "two make {two} MB/s");
    assert!((four / two / 2.0 - 1.0).abs() < 0.05, "four make {four} MB/s, and two {two}");
    let uplink = library.bus("dmi2").unwrap().read.value.0 as f64 / 1e6;
    let shared = striped(&library, "intel-rst", drive(), 4, [IoKind::Read; 2]);
    assert!(shared <= uplink * 1.01, "{shared} through an uplink of {uplink}");
}

/// MB/s of this number of drives in RAID 0, with sequential requests of 128 KiB for each drive. All requests have one
/// kind, or one half are reads and the other half writes.
fn striped(library: &Library, controller: &str, drive: DriveProfile, members: u16, kinds: [IoKind; 2]) -> f64 {
    let controller = library.controller(controller).unwrap().clone();
    let array = ArraySpec { chunk: Some(Bytes::kib(64)), ..ArraySpec::new(ArrayLevel::Raid0, members) };
    let through = CachePolicy { controller: CacheMode::WriteThrough, drives: true };
    let spec =
        MachineSpec { cache: through, cache_bytes: Some(Bytes::ZERO), ..MachineSpec::new(controller, drive, array) };
    let mut machine = Machine::in_library(&spec, library).unwrap();
    let len = 65_536 * u32::from(members) * 2;
    let mut count = 0;
    let next = |id: u64| {
        count += 1;
        let kind = kinds[usize::from(id % 2 == 1)];
        HostIo { id, kind, offset: count * u64::from(len) % (8 << 30), len, worker: 0 }
    };
    let requests = 2_000;
    let (time, _) = closed_loop(&mut machine, 16, requests, next);
    (requests * u64::from(len)) as f64 * 1e3 / time.0 as f64
}

#[test]
fn drives_on_an_expander_have_their_own_rates_until_the_wide_port_is_full() {
    let library = Library::builtin();
    for (controller, link) in [("openraid-expander", "sas6_x4"), ("plain-hba-expander", "sas3_x4")] {
        let port = library.bus(link).unwrap().read.value.0 as f64 / 1e6;
        let lane = port / 4.0;
        // Drives slower than a lane, and faster ones: each drive then has the rate of a lane.
        for drive in ["exos_x18_18tb", "pm893_960"] {
            let drive = library.drive(drive).unwrap();
            let of_drive = match &drive.kind {
                DriveKind::Disk(disk) => disk.rate_outer.value.0 as f64 / 1e6,
                _ => drive.link_rate().unwrap().0 as f64 / 1e6,
            };
            for members in [2, 4, 8, 24] {
                let expected = (f64::from(members) * of_drive.min(lane)).min(port);
                let found = striped(&library, controller, drive.clone(), members, [IoKind::Read; 2]);
                let name = format!("{members} of {} on {link}", drive.head.name);
                assert!((found / expected - 1.0).abs() < 0.05, "{name}: {found} is not {expected}");
            }
        }
    }
}

#[test]
fn both_directions_of_an_expanders_port_work_at_once() {
    let library = Library::builtin();
    let bus = library.bus("sas6_x4").unwrap();
    let (read, write) = (bus.read.value.0 as f64 / 1e6, bus.write.value.0 as f64 / 1e6);
    let fast = || fixed(Bytes::gib(16), Nanos(10));
    let rate = |kinds| striped(&library, "openraid-expander", fast(), 8, kinds);
    // A drive's part of a request is 128 KiB. The preceding command occupies the outward way for its time.
    let bytes = f64::from(128 << 10);
    let out = bytes / (bytes / write + bus.command.value.0 as f64 / 1e3);
    let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.02, "{found} is not {expected}");
    near(rate([IoKind::Read; 2]), read);
    near(rate([IoKind::Write; 2]), out);
    // Neither direction waits for the other, except for the commands of reads, which are sent after written data.
    let (both, most) = (rate([IoKind::Read, IoKind::Write]), read + out);
    assert!(both > 0.9 * most && both <= most, "{both} of {most}");
}

#[test]
fn the_names_of_the_claims_are_there() {
    let library = Library::builtin();
    for name in [
        "9650se",
        "8506-8",
        "8500-8",
        "rst",
        "9260-8i",
        "8708em2",
        "hba92xx",
        "sas3041e-r",
        "icp9024ro",
        "areca1220",
        "openraid",
        "plain-hba",
    ] {
        assert!(library.controller(name).is_ok(), "{name}");
    }
}

#[test]
fn raid_6_of_four_is_refused_by_one_maker_with_its_reason() {
    let library = Library::builtin();
    let make =
        |controller, members| Machine::in_library(&spec(&library, controller, ArrayLevel::Raid6, members), &library);
    let error = make("9650se", 4).map(|_| ()).expect_err("the maker says no");
    assert!(matches!(error, MachineError::TooFewMembers { have: 4, need: 5, .. }));
    let text = error.to_string();
    assert!(text.contains("a rule of its maker") && text.contains("at least 5"), "{text}");
    assert!(make("9650se", 5).is_ok() && make("openraid", 4).is_ok() && make("9260-8i", 4).is_ok());
    for (controller, level) in
        [("8506-8", ArrayLevel::Raid6), ("hba92xx", ArrayLevel::Raid5), ("8506-8", ArrayLevel::Raid50)]
    {
        let refused = Machine::in_library(&spec(&library, controller, level, 8), &library).map(|_| ());
        assert!(matches!(refused, Err(MachineError::LevelNotOffered { .. })), "{controller}");
    }
    let full = Machine::in_library(&spec(&library, "9650se-4lpml", ArrayLevel::Raid0, 5), &library).map(|_| ());
    assert!(matches!(full, Err(MachineError::TooManyMembers { most: 4, .. })));
}

#[test]
fn caches_are_as_the_controller_allows() {
    let library = Library::builtin();
    let write = |spec: &MachineSpec| {
        let mut machine = Machine::in_library(spec, &library).unwrap_or_else(|error| panic!("{error}"));
        one(&mut machine, IoKind::Write, 0, 8192);
        one(&mut machine, IoKind::Write, 1 << 20, 8192)
    };
    let through = CachePolicy { controller: CacheMode::WriteThrough, drives: true };
    let back = spec(&library, "9260-8i", ArrayLevel::Raid5, 4);
    assert!(write(&back) < Nanos::from_millis(1));
    // Old data and parity, then new data and parity.
    assert!(write(&MachineSpec { cache: through, ..back.clone() }) > Nanos::from_millis(8));
    assert!(write(&MachineSpec { cache_bytes: Some(Bytes::ZERO), ..back }) > Nanos::from_millis(8));
    assert!(write(&spec(&library, "hba92xx", ArrayLevel::Raid0, 4)) > Nanos::from_millis(4));
    // A drive with its cache off, by its factory setting or by an explicit switch, waits for its medium: on average at
    // least half a turn, 4 ms. With its cache on it answers from memory.
    let array = || ArraySpec::new(ArrayLevel::Raid0, 4);
    let with = |drive_cache: Option<bool>| {
        let drive = library.drive("cheetah_15k7").unwrap().clone();
        let controller = library.controller("lsi-hba92xx").unwrap().clone();
        MachineSpec { drive_cache, ..MachineSpec::new(controller, drive, array()) }
    };
    assert!(!with(None).drive_caches() && with(Some(true)).drive_caches());
    assert_eq!(write(&with(None)), write(&with(Some(false))));
    assert!(write(&with(None)) > Nanos::from_millis(1) && write(&with(Some(true))) < Nanos::from_micros(500));
    let follows = MachineSpec { cache: through, ..spec(&library, "8506-8", ArrayLevel::Raid5, 4) };
    assert!(!follows.drive_caches() && spec(&library, "8506-8", ArrayLevel::Raid5, 4).drive_caches());
}

#[test]
fn drives_of_an_adapter_share_its_bus() {
    let library = Library::builtin();
    let rate = |adapter: Option<(u32, &str)>| {
        let mut spec = spec(&library, "plain-hba", ArrayLevel::Raid0, 8);
        spec.drives = vec![fixed(Bytes::gib(16), Nanos::from_micros(10))];
        spec.controller.adapters =
            adapter.map(|(drives, bus)| Adapters { drives: Sourced::exact(drives), bus: bus.to_owned() });
        let mut machine = Machine::in_library(&spec, &library).unwrap();
        let mut at = 0;
        let next = |id: u64| {
            at += 4 << 20;
            HostIo { id, kind: IoKind::Read, offset: at, len: 4 << 20, worker: 0 }
        };
        let (time, _) = closed_loop(&mut machine, 16, 400, next);
        400.0 * f64::from(4 << 20) * 1e3 / time.0 as f64
    };
    let bus = |name: &str| library.bus(name).unwrap().read.value.0 as f64 / 1e6;
    // One adapter for eight drives, and two for four each; the host's bus has a higher rate than both.
    for (drives, name, adapters) in [(8, "pcie1_x4", 1.0), (4, "pcie1_x4", 2.0), (4, "pcix64_133", 2.0)] {
        let (found, most) = (rate(Some((drives, name))), adapters * bus(name));
        assert!((found / most - 1.0).abs() < 0.02, "{drives} on {name}: {found} is not {most}");
    }
    assert!(rate(None) > 3.0 * bus("pcie1_x4"), "{}", rate(None));
    let mut spec = spec(&library, "plain-hba", ArrayLevel::Raid0, 8);
    spec.controller.adapters = Some(Adapters { drives: Sourced::exact(8), bus: "nonsense".into() });
    assert!(Machine::in_library(&spec, &library).is_err());
}
