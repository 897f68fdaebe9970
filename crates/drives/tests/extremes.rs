//! Every profile that the reader accepts makes a drive that works: at every end of every range, and with sizes and
//! speeds that no real drive has.

use openraid_core::actions::DriveOp;
use openraid_drives::Random;
use openraid_drives::{one_drive_load, DriveKit, DriveOptions, DriveState, VirtualDrive};
use openraid_models::{DriveProfile, Edge, Edges, Library};

fn works(profile: &DriveProfile, seed: u64) {
    let kit = DriveKit::new(profile);
    for (state, write_cache) in [(DriveState::Fresh, Some(true)), (DriveState::Steady, Some(false))] {
        let mut drive = kit.build(&DriveOptions { write_cache, read_ahead: write_cache, state, seed, index: 3 });
        let sectors = drive.sectors();
        let mut random = Random::new(seed);
        let trial = one_drive_load::closed(&mut drive, 40, 10, 300, || {
            let len = random.between(1, 2048.min(sectors));
            let lba = match random.below(3) {
                0 => sectors - len,
                1 => 0,
                _ => random.below(sectors - len + 1),
            };
            match random.below(12) {
                0 => (DriveOp::Flush, 0, 0),
                1 => (DriveOp::Discard, lba, len),
                2 => (DriveOp::WriteZeroes { may_discard: true }, lba, len),
                3 => (DriveOp::Write { fua: true }, lba, len),
                4..=7 => (DriveOp::Write { fua: false }, lba, len),
                _ => (DriveOp::Read, lba, len),
            }
        });
        assert_eq!(trial.times.len(), 300);
    }
}

#[test]
fn every_drive_works_at_both_ends_of_all_its_ranges() {
    let library = Library::builtin();
    for profile in library.drives() {
        works(profile, 1);
        for edge in [Edge::Low, Edge::High] {
            let edges: Edges = profile.head.uncertain.iter().map(|field| (field.clone(), edge)).collect();
            works(&library.drive_at(&profile.head.name, &edges).unwrap(), 2);
        }
        works(&profile.clone().slowed(1), 3);
        works(&profile.clone().slowed(100_000), 4);
    }
}

#[test]
fn a_drive_of_any_number_that_the_reader_takes_works() {
    let mut random = Random::new(5);
    let mut taken = 0;
    for name in ["wd740gd", "hus728t8", "s3500_480", "980pro_1tb"] {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/drives");
        let good = std::fs::read_to_string(root.join(format!("{name}.toml"))).unwrap();
        for seed in 0..400 {
            let lines: Vec<String> = good.lines().map(|line| changed(line, &mut random)).collect();
            if let Ok(profile) = DriveProfile::parse("f", &lines.join("\n")) {
                taken += 1;
                works(&profile, seed);
            }
        }
    }
    assert!(taken > 100, "{taken}");
}

/// One line in twelve gets another number, and loses its range.
fn changed(line: &str, random: &mut Random) -> String {
    let Some((key, rest)) = line.split_once(" = { value = ").filter(|_| random.chance(1, 12)) else {
        return line.to_owned();
    };
    let numbers = ["0", "1", "2", "7", "64", "255", "4096", "100000", "1e7", "1e9", "1e12", "0.001", "0.3"];
    let number = random.pick(&numbers);
    let from = rest.split("from = ").nth(1).unwrap_or("\"class\" }");
    format!("{key} = {{ value = {number}, range = [{number}, {number}], from = {from}")
}
