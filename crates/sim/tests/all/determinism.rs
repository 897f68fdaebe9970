//! The same seed gives the same run. A record that another controller replays gives the same decisions.

use crate::support::{seeds, Case};
use openraid_sim::digest::Digest;
use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::record::Record;
use openraid_sim::{ArrayShape, Loss, Random, Rig, RigOptions};
use openraid_units::{Sectors, Slot};

/// A run with all kinds of requests.
fn run(shape: ArrayShape, seed: u64, record: bool) -> Rig {
    let mut options =
        RigOptions { bitmap: seed.is_multiple_of(2), junk: seed.is_multiple_of(3), ..RigOptions::new(seed) };
    options.world.record = record;
    let mut rig = Rig::new(shape, options);
    let load = Workload { len_max: 64 << 10, ..Workload::mixed(rig.session.capacity()) };
    rig.session.run_on(&mut rig.world, &load, 60);
    if shape.is_redundant() {
        let how = *rig.random.pick(&Loss::ALL);
        rig.lose(Slot(0), how);
        rig.session.run_on(&mut rig.world, &load, 60);
        let drive = rig.new_drive();
        rig.world.add_member(rig.array, drive).unwrap();
    }
    rig.session.run(&mut rig.world, &load, 20);
    rig.rest();
    rig
}

fn digest(shape: ArrayShape, seed: u64) -> Digest {
    run(shape, seed, false).world.digest()
}

#[test]
fn the_same_seed_gives_the_same_decisions_and_another_seed_others() {
    for seed in seeds(1, 10) {
        for shape in ArrayShape::some(ArrayShape::all(), seed, 12) {
            let _case = Case::new(seed, shape);
            assert_eq!(digest(shape, seed), digest(shape, seed));
            assert_ne!(digest(shape, seed), digest(shape, seed + 1));
        }
    }
}

#[test]
fn a_recorded_run_replayed_into_a_new_controller_gives_the_same_actions() {
    for seed in seeds(1, 10) {
        for shape in ArrayShape::some(ArrayShape::all(), seed + 1, 20) {
            let _case = Case::new(seed, shape);
            let rig = run(shape, seed, true);
            let record = rig.world.record().expect("it was asked for");
            assert!(record.entries.len() > 200);
            assert_eq!(record.replay(), rig.world.digest());
        }
    }
}

#[test]
fn a_record_goes_to_bytes_and_back_and_damage_is_noticed_or_harmless() {
    let shape = ArrayShape::raid6(5, Sectors::kib(16));
    let rig = run(shape, 6, true);
    let record = rig.world.record().expect("it was asked for");
    let bytes = record.encode();
    let back = Record::decode(&bytes).unwrap();
    assert_eq!(back, *record);
    assert_eq!(back.replay(), rig.world.digest());
    // A few bytes for each call, so records of long runs can be kept.
    assert!(bytes.len() < record.entries.len() * 20 + 65_536, "{} for {}", bytes.len(), record.entries.len());
    for len in (0..bytes.len()).step_by(bytes.len() / 500 + 1) {
        Record::decode(&bytes[..len]).unwrap_err();
    }
    let mut random = Random::new(6);
    for _ in 0..2000 {
        let mut hurt = bytes.clone();
        for _ in 0..random.between(1, 4) {
            let at = random.index(hurt.len());
            hurt[at] ^= 1 << random.below(8);
        }
        // Any result is right, but the call must end.
        let _ = Record::decode(&hurt);
    }
}
