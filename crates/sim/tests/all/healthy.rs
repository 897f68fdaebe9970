//! On a healthy array of any level and layout, every byte reads as it was written, with any requests at the same time.

use crate::support::{seeds, Case};
use openraid_core::geometry::Level;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Rig, RigOptions};

/// Random requests of all kinds, at several depths and sizes.
fn random_requests(shape: ArrayShape, seed: u64) {
    let _case = Case::new(seed, shape);
    let mut rig = Rig::new(shape, RigOptions::new(seed));
    let whole = Workload::mixed(rig.session.capacity());
    for (depth, len_max, align, requests) in
        [(1, 64 << 10, 1, 30), (32, 256 << 10, 512, 80), (8, 4096, 4096, 60), (16, 700, 1, 60), (4, 2 << 20, 1, 6)]
    {
        let load = Workload { depth, len_max, align, ..whole.clone() };
        rig.session.run(&mut rig.world, &load, requests);
    }
    // All requests at one place, so that they overlap.
    let narrow = Workload { range: 0..96 << 10, ..whole };
    rig.session.run(&mut rig.world, &narrow, 100);
    rig.judge();
}

fn all_of(seed_slice: u64, wanted: impl Fn(&ArrayShape) -> bool) {
    for seed in seeds(seed_slice, 20) {
        for shape in ArrayShape::all().into_iter().filter(|shape| wanted(shape)) {
            random_requests(shape, seed);
        }
    }
}

#[test]
fn levels_without_redundancy_hold_what_was_written() {
    all_of(2, |shape| !shape.is_redundant());
}

#[test]
fn mirrors_hold_what_was_written_on_all_copies() {
    all_of(1, |shape| shape.is_redundant() && matches!(shape.level, Level::Raid1 | Level::Raid10));
}

#[test]
fn single_parity_holds_what_was_written_and_fits() {
    all_of(1, |shape| matches!(shape.level, Level::Raid4 | Level::Raid5));
}

#[test]
fn double_parity_holds_what_was_written_and_fits() {
    all_of(1, |shape| shape.level == Level::Raid6);
}
