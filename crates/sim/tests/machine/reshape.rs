//! The work of a change of shape at any position.

use openraid_sim::machine::{ArrayChange, ArrayLevel, ArraySpec, Machine, MachineParts};
use openraid_units::{Instant, Nanos};

use crate::support::constant;

/// Time for which an array without load moves its data.
const TIME: Instant = Instant(2_000_000_000);

/// Moved sectors of an array, and the sectors that its members read and wrote for that.
fn moved(from: (ArrayLevel, u16), to: (ArrayLevel, u16), percent: u8) -> (u64, u64, u64) {
    let change = ArrayChange { level: to.0, members: to.1, moved_percent: percent };
    let array = ArraySpec { change: Some(change), ..ArraySpec::new(from.0, from.1) };
    let drives = constant(array.drives(), Nanos::from_micros(100));
    let parts = MachineParts { metadata_in_front: true, ..MachineParts::default() };
    let mut machine = Machine::with_drives(parts, &array, drives, true).expect("it can run");
    let [before, all] = machine.counters().moved.expect("it moves");
    assert!(before.abs_diff(all / 100 * u64::from(percent)) < 64 << 10, "{before} of {all}");
    machine.advance(TIME, &mut Vec::new());
    let counters = machine.counters();
    assert_eq!(counters.rebuilt, None, "{from:?} {to:?} {percent}");
    let [after, _] = counters.moved.expect("it moves still");
    let sum = |of: fn(&openraid_sim::machine::MemberCounters) -> u64| counters.members.iter().map(of).sum();
    (after - before, sum(|member| member.sectors_read), sum(|member| member.sectors_written))
}

#[test]
fn a_change_of_shape_reads_the_old_data_once_and_writes_the_new_rows() {
    use ArrayLevel::{Raid10, Raid4, Raid5, Raid6};
    // Sectors that are written for each one that moves: the new members by the new data columns.
    let changes = [
        ((Raid5, 4), (Raid5, 5), 5.0 / 4.0),
        ((Raid4, 3), (Raid4, 5), 5.0 / 4.0),
        ((Raid6, 5), (Raid6, 6), 6.0 / 4.0),
        ((Raid10, 4), (Raid10, 6), 2.0),
        ((Raid5, 4), (Raid6, 5), 5.0 / 3.0),
    ];
    for (from, to, written) in changes {
        for percent in [0, 20, 45] {
            let (moved, read, wrote) = moved(from, to, percent);
            let name = format!("{from:?} to {to:?} at {percent} %: {moved} moved, {read} read, {wrote} written");
            assert!(moved > 64 << 10, "{name}");
            let near = |found: u64, wanted: f64| (found as f64 / moved as f64 / wanted - 1.0).abs() < 0.1;
            assert!(near(read, 1.0) && near(wrote, written), "{name}");
        }
    }
}
