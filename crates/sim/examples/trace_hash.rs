//! Prints a hash of all decisions for several seeds: `trace_hash [FIRST [COUNT]]`. Builds of all profiles must print
//! the same.

use openraid_sim::oracle::knowing_host::Workload;
use openraid_sim::{ArrayShape, Loss, Rig, RigOptions};
use openraid_units::Slot;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse().expect("FIRST and COUNT are numbers"));
    let first: u64 = numbers.next().unwrap_or(1);
    let count: u64 = numbers.next().unwrap_or(5);
    for seed in first..first + count {
        for shape in ArrayShape::some(ArrayShape::all(), seed, 8) {
            let options = RigOptions { bitmap: seed.is_multiple_of(2), ..RigOptions::new(seed) };
            let mut rig = Rig::new(shape, options);
            let load = Workload::mixed(rig.session.capacity());
            rig.session.run_on(&mut rig.world, &load, 50);
            if shape.is_redundant() {
                rig.lose(Slot(0), Loss::Pulled);
            }
            rig.session.run(&mut rig.world, &load, 50);
            rig.rest();
            let digest = rig.world.digest();
            println!("{seed} {:016x} {} actions, {shape}", digest.value(), digest.actions);
        }
    }
}
