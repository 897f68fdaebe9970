//! Speed of the drive models: random 4 KiB commands per second of processor time, without a controller.

use openraid_core::actions::DriveOp;
use openraid_drives::Random;
use openraid_drives::{one_drive_load, DriveKit, DriveOptions, VirtualDrive};
use openraid_models::Library;
use std::time::Instant;

/// Processor time of this process, if the system reports it; otherwise the elapsed time.
fn processor_time(begun: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    nanoseconds.map_or_else(|| begun.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

const COMMANDS: u64 = 2_000_000;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    println!("{:<16} {:>6} {:>12} {:>16} {:>14}", "drive", "depth", "load", "simulated iops", "commands/s");
    let (library, start) = (Library::builtin(), Instant::now());
    for name in ["wd740gd", "mba3073rc", "exos_x18_18tb", "s3500_480", "pm9a3_1920"] {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let kit = DriveKit::new(library.drive(name).expect("a built-in drive"));
        for (load, share) in [("read", 100), ("66/34", 66), ("write", 0)] {
            for depth in [1, 4, 32] {
                let mut drive = kit.build(&DriveOptions { seed: 1, ..DriveOptions::default() });
                let mut random = Random::new(7);
                let places = drive.sectors() / 8;
                let begun = processor_time(start);
                let trial = one_drive_load::closed(&mut drive, depth, 0, COMMANDS, || {
                    let write = DriveOp::Write { fua: false };
                    (if random.chance(share, 100) { DriveOp::Read } else { write }, random.below(places) * 8, 8)
                });
                let speed = COMMANDS as f64 / (processor_time(start) - begun);
                println!("{name:<16} {depth:>6} {load:>12} {:>16.0} {speed:>14.0}", trial.rate());
            }
        }
    }
}
