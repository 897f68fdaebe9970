//! A journal with drives of its own, compared with counts and closed forms.

use openraid_core::admin::{Policy, WriteCache};
use openraid_drives::AnyDrive;
use openraid_sim::machine::{ArrayLevel, ArraySpec, HostIo, IoKind, Machine, MachineParts, JOURNAL_DEVICE};
use openraid_units::{Bytes, Nanos};

use crate::support::{closed_loop, constant, one};

/// Time of one command at a device of the journal, and at a member.
const DEVICE: Nanos = Nanos::from_millis(1);
const MEMBER: Nanos = Nanos::from_micros(10);
const BLOCK: u64 = 4096;

/// RAID 5 of four with a journal on this number of devices. The cache is so large that a short load is not destaged.
fn machine(devices: u16, level: ArrayLevel) -> Machine<AnyDrive> {
    let policy = Policy { write_cache: WriteCache::Journal, ..Policy::default() };
    let (cache, journal) = (Bytes::mib(64), if devices > 0 { JOURNAL_DEVICE } else { Bytes::ZERO });
    let parts = MachineParts { cache, journal, policy, metadata_in_front: true, ..MachineParts::default() };
    let drives = constant(4, MEMBER);
    let array = ArraySpec::new(level, 4);
    Machine::with_journal(parts, &array, drives, constant(devices, DEVICE), false).expect("it can run")
}

fn write(id: u64) -> HostIo {
    HostIo { id, kind: IoKind::Write, offset: id % 1000 * BLOCK * 16, len: 4096, worker: 0 }
}

/// Write until the array is marked as protected by the journal; writes before that are written through.
fn begun(machine: &mut Machine<AnyDrive>) {
    for id in 0..4 {
        one(machine, IoKind::Write, write(id).offset, 4096);
    }
}

#[test]
fn a_write_takes_the_time_of_its_entry_on_one_device_or_two() {
    for devices in [1, 2] {
        for level in [ArrayLevel::Raid5, ArrayLevel::Raid6, ArrayLevel::Raid10] {
            let mut machine = machine(devices, level);
            begun(&mut machine);
            let (before, from) = (machine.counters(), machine.now());
            let writes = 100;
            let mut id = 0;
            let (time, response) = closed_loop(&mut machine, 1, writes, |slot| {
                id += 1;
                HostIo { id: slot, ..write(id) }
            });
            // A header and its payload, one after the other, on a device that does one thing at a time.
            let each = response / writes as f64;
            assert!((each / (2.0 * DEVICE.0 as f64) - 1.0).abs() < 0.01, "{level} on {devices}: {each} ns");
            let after = machine.counters();
            let busy = [&after, &before].map(|counters| counters.journal_busy.expect("it has one").0);
            let busy = Nanos(busy[0] - busy[1]);
            assert!(busy.0 as f64 > 0.99 * time.0 as f64, "{level}: busy for {busy:?} of {time:?} from {from:?}");
            for (device, old) in after.journal.iter().zip(&before.journal) {
                // One entry for each write, including the one under way: 4 KiB of header, 4 KiB of payload.
                let (commands, sectors) = (device.writes - old.writes, device.sectors_written - old.sectors_written);
                assert!((2 * writes..=2 * (writes + 1)).contains(&commands), "{commands} commands");
                assert_eq!(sectors, commands * BLOCK / 512);
            }
            assert_eq!(after.journal.len(), usize::from(devices));
        }
    }
}

#[test]
fn writes_that_come_meanwhile_go_together_and_none_faster_than_its_entry() {
    for depth in [2, 8, 32] {
        let mut machine = machine(1, ArrayLevel::Raid5);
        begun(&mut machine);
        let mut id = 0;
        let writes = 60 * depth;
        let (time, _) = closed_loop(&mut machine, depth, writes, |slot| {
            id += 1;
            HostIo { id: slot, ..write(id) }
        });
        // Two consecutive entries together have all outstanding writes, and each entry takes 2 ms.
        let rate = writes as f64 / (time.0 as f64 / 1e9);
        let (least, most) = (depth as f64 / 4e-3, depth as f64 / 2e-3);
        assert!(rate > 0.95 * least && rate < 1.01 * most, "depth {depth}: {rate} of {least} to {most}");
    }
}

#[test]
fn a_machine_without_a_journal_has_no_busy_time_of_one() {
    let policy = Policy { write_cache: WriteCache::Volatile, ..Policy::default() };
    let parts = MachineParts { cache: Bytes::mib(64), policy, ..MachineParts::default() };
    let array = ArraySpec::new(ArrayLevel::Raid5, 4);
    let machine = Machine::with_drives(parts, &array, constant(4, MEMBER), false).expect("it can run");
    let counters = machine.counters();
    assert_eq!((counters.journal.len(), counters.journal_busy, counters.members.len()), (0, None, 4));
}
