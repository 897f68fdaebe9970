//! Buses, channels and the parity engine as limits.

use openraid_sim::machine::parts::{ParityCost, WayCost};
use openraid_sim::machine::{ArrayLevel, HostIo, IoKind, MachineParts, TransferCost};
use openraid_units::Nanos;

use crate::support::{closed_loop, machine, one};

const QUICK: Nanos = Nanos(10);

/// MB/s of a load of one kind, or of alternating reads and writes.
fn rate(parts: &MachineParts, level: ArrayLevel, members: u16, len: u32, kinds: [IoKind; 2]) -> f64 {
    let mut machine = machine(parts.clone(), level, members, QUICK);
    let requests = 4_000;
    let mut count = 0;
    let stripe = u64::from(len);
    let next = |id: u64| {
        count += 1;
        let place = count * stripe % (1 << 33);
        HostIo { id, kind: kinds[id as usize % 2], offset: place / stripe * stripe, len, worker: 0 }
    };
    let (time, _) = closed_loop(&mut machine, 16, requests, next);
    (requests * u64::from(len)) as f64 * 1e3 / time.0 as f64
}

fn near(measured: f64, expected: f64) {
    assert!((measured / expected - 1.0).abs() < 0.01, "{measured} is not {expected}");
}

const READS: [IoKind; 2] = [IoKind::Read; 2];
const WRITES: [IoKind; 2] = [IoKind::Write; 2];
const BOTH: [IoKind; 2] = [IoKind::Read, IoKind::Write];

#[test]
fn each_direction_of_a_bus_has_its_own_ceiling_and_a_shared_bus_one_for_both() {
    let two = WayCost { read: TransferCost::mb_per_second(500), write: TransferCost::mb_per_second(400), shared: None };
    let parts = MachineParts { host_way: two, ..MachineParts::default() };
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, READS), 500.0);
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, WRITES), 400.0);
    // Reads and writes do not wait for each other.
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, BOTH), 900.0);
    let one =
        WayCost { read: TransferCost::FREE, write: TransferCost::FREE, shared: Some(TransferCost::mb_per_second(200)) };
    let parts = MachineParts { host_way: one, ..MachineParts::default() };
    for kinds in [READS, WRITES, BOTH] {
        near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, kinds), 200.0);
    }
    let both = WayCost { read: TransferCost::mb_per_second(180), write: TransferCost::mb_per_second(250), ..one };
    let parts = MachineParts { host_way: both, ..MachineParts::default() };
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, READS), 180.0);
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, WRITES), 200.0);
}

#[test]
fn a_bus_to_the_members_carries_redundancy_too() {
    let way =
        WayCost { read: TransferCost::mb_per_second(1600), write: TransferCost::mb_per_second(1000), shared: None };
    let parts = MachineParts { member_way: way, ..MachineParts::default() };
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, WRITES), 1000.0);
    near(rate(&parts, ArrayLevel::Raid1, 2, 65_536, WRITES), 500.0);
    near(rate(&parts, ArrayLevel::Raid5, 4, 3 * 65_536, WRITES), 750.0);
    near(rate(&parts, ArrayLevel::Raid1, 2, 65_536, READS), 1600.0);
}

#[test]
fn members_on_a_shared_channel_share_it() {
    let shared = Some(TransferCost { setup: Nanos::ZERO, picos: 4000 });
    let channel = WayCost { shared, ..WayCost::default() };
    let parts = |channels: usize| MachineParts { channels: vec![channel; channels], ..MachineParts::default() };
    near(rate(&parts(1), ArrayLevel::Raid0, 4, 4 * 65_536, READS), 250.0);
    near(rate(&parts(2), ArrayLevel::Raid0, 4, 4 * 65_536, READS), 500.0);
    near(rate(&parts(2), ArrayLevel::Raid0, 4, 4 * 65_536, WRITES), 500.0);
    near(rate(&parts(2), ArrayLevel::Raid5, 4, 3 * 65_536, WRITES), 375.0);
}

#[test]
fn everything_passes_the_memory_of_a_controller_as_often_as_it_goes_in_and_out() {
    // 300 MB/s for all bytes that the memory receives or gives, one after the other.
    let parts = MachineParts { memory: 1_000_000 / 300, ..MachineParts::default() };
    // A read is written to memory by a drive and read by the host; a write is stored once and read for each drive.
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, READS), 150.0);
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, WRITES), 150.0);
    near(rate(&parts, ArrayLevel::Raid0, 4, 65_536, BOTH), 150.0);
    near(rate(&parts, ArrayLevel::Raid1, 2, 65_536, WRITES), 100.0);
    // Three columns are stored, are read for parity, and give one column of parity; four are sent to drives.
    near(rate(&parts, ArrayLevel::Raid5, 4, 3 * 65_536, WRITES), 300.0 * 3.0 / 11.0);
}

#[test]
fn the_parity_engine_is_a_ceiling() {
    // 100 MB/s of input.
    let parity = ParityCost { setup: Nanos::ZERO, member: Nanos::ZERO, picos: 10_000, second_percent: 200 };
    let parts = MachineParts { parity, ..MachineParts::default() };
    near(rate(&parts, ArrayLevel::Raid5, 4, 3 * 65_536, WRITES), 100.0);
    // Two syndromes take twice the time.
    near(rate(&parts, ArrayLevel::Raid6, 8, 6 * 65_536, WRITES), 50.0);
    near(rate(&MachineParts { parity, ..MachineParts::default() }, ArrayLevel::Raid0, 4, 65_536, WRITES).min(1e4), 1e4);
}

#[test]
fn a_request_alone_takes_the_sum_of_its_parts() {
    let way =
        WayCost { read: TransferCost::mb_per_second(1000), write: TransferCost::mb_per_second(1000), shared: None };
    let parts = MachineParts { host_way: way, ..MachineParts::default() };
    let drive = Nanos::from_millis(3);
    let mut machine = machine(parts, ArrayLevel::Raid5, 4, drive);
    // The drive, followed by 8 KiB over the bus at a nanosecond a byte.
    assert_eq!(one(&mut machine, IoKind::Read, 0, 8192), drive + Nanos(8192));
    // The first write waits until the array is marked active.
    one(&mut machine, IoKind::Write, 0, 8192);
    // Bus, old data and parity, new data and parity.
    assert_eq!(one(&mut machine, IoKind::Write, 1 << 20, 8192), Nanos(8192) + drive + drive);
}
