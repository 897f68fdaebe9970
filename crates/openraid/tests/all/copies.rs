//! What goes in comes out, on every level, whole and degraded, and copy-out writes to no member.

use std::fs::{self, File};
use std::process::Stdio;

use crate::support::{noise, Lab};

/// Level and options, members, chunk, and sets of members that may be lost (by place).
type Case = (&'static str, usize, &'static [&'static [usize]]);

const CASES: &[Case] = &[
    ("--level single", 1, &[]),
    ("--level linear", 3, &[]),
    ("--level 0 --chunk 64K", 3, &[]),
    ("--level 1", 3, &[&[0, 1], &[2]]),
    ("--level 1e --chunk 16K", 3, &[&[0], &[1], &[2]]),
    ("--level 10 --chunk 64K --layout f2", 4, &[&[0], &[3]]),
    ("--level 10 --chunk 64K --layout o2", 5, &[&[1], &[4]]),
    ("--level 10 --chunk 64K --layout n3 --metadata 1.0", 6, &[&[0, 1], &[5]]),
    ("--level 4 --chunk 32K", 4, &[&[0], &[3]]),
    ("--level 5 --chunk 64K", 3, &[&[0], &[1], &[2]]),
    ("--level 5 --chunk 4K --layout ra --metadata 1.1", 5, &[&[4]]),
    ("--level 5 --chunk 16K --layout parity-first --bitmap internal", 4, &[&[0]]),
    ("--level 6 --chunk 64K", 4, &[&[0, 1], &[1, 2], &[0, 3]]),
    ("--level 6 --chunk 16K --layout ddf-N-continue --metadata 1.0", 6, &[&[0, 5], &[2, 3]]),
    ("--level 6 --chunk 16K --layout left-symmetric-6", 5, &[&[1, 4]]),
    ("--level 50 --chunk 16K", 6, &[&[0, 3], &[2, 5]]),
    ("--level 60 --chunk 16K --spans 2", 8, &[&[0, 1, 6, 7]]),
];

#[test]
fn copies_in_and_out_agree_on_every_level_complete_and_degraded() {
    for (nth, (options, count, losses)) in CASES.iter().enumerate() {
        let lab = Lab::new("copies");
        let names: Vec<String> = (0..*count).map(|n| format!("d{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let create = format!("create data --file-size 8M {options} {} --json", names.join(" "));
        let made = lab.line(&create).expect(0).json();
        let size = usize::try_from(made["size_bytes"].as_u64().expect("a size")).expect("small");
        assert!(size >= 4 << 20, "{options}: {size}");
        // To the last byte, and the end is not aligned to anything.
        let image = noise(nth as u64 + 1, size - 1);
        fs::write(lab.path("image"), &image).expect("room");
        let input = File::open(lab.path("image")).expect("just written");
        let copied = lab.run_with(&[&["copy-in", "--json"], names.as_slice()].concat(), input.into()).expect(0).json();
        assert_eq!((&copied["bytes"], &copied["in_sync"]), (&(size as u64 - 1).into(), &true.into()), "{options}");
        let before = lab.fingerprints(&names);
        let none: &[usize] = &[];
        for lost in std::iter::once(&none).chain(*losses) {
            let left: Vec<&str> = (0..*count).filter(|n| !lost.contains(n)).map(|n| names[n]).collect();
            let ran = lab.run(&[&["copy-out"], left.as_slice()].concat());
            let ran = ran.expect(i32::from(!lost.is_empty()));
            assert_eq!(ran.out.len(), size, "{options} without {lost:?}");
            assert!(ran.out[..size - 1] == image, "{options} without {lost:?}: other bytes came out");
        }
        assert_eq!(lab.fingerprints(&names), before, "{options}: copy-out has written to a member");
    }
}

#[test]
fn losing_more_than_the_level_survives_is_an_error_and_gives_no_byte() {
    let lab = Lab::new("too-many");
    lab.line("create data --file-size 8M --level 5 d0 d1 d2").expect(0);
    lab.pipe(&["copy-in", "data"], &noise(1, 1 << 20)).expect(0);
    let ran = lab.line("copy-out d0").refused(2, &["not enough members", "slots 1 and 2"]);
    assert!(ran.out.is_empty());
}

#[test]
fn input_longer_than_the_array_is_refused_from_a_file_before_anything_is_written() {
    let lab = Lab::new("too-long");
    let names = ["d0", "d1", "d2"];
    let made = lab.line("create data --file-size 8M --level 5 --chunk 64K --assume-clean d0 d1 d2 --json").expect(0);
    let size = usize::try_from(made.json()["size_bytes"].as_u64().expect("a size")).expect("small");
    lab.pipe(&["copy-in", "data"], &noise(1, 1000)).expect(0);
    let before = lab.fingerprints(&names);
    let long = noise(2, size + 1);
    fs::write(lab.path("long"), &long).expect("room");
    let input = || Stdio::from(File::open(lab.path("long")).expect("just written"));
    // The superblocks alone are written: the array was started, and stopped without a change to its content.
    lab.run_with(&["copy-in", "data"], input()).refused(65, &["does not fit", "nothing was written"]);
    assert_eq!(lab.line("copy-out data").expect(0).out[..1000], noise(1, 1000), "the content is as it was");
    assert_eq!(lab.fingerprints(&names), before);
    lab.pipe(&["copy-in", "data"], &long).refused(74, &["is longer than"]);
    lab.line("show data").expect(0);
    // Exactly as long fits.
    lab.pipe(&["copy-in", "data"], &long[..size]).expect(0);
    assert!(lab.line("copy-out data").expect(0).out == long[..size]);
}

#[test]
fn a_pipe_may_end_anywhere_and_the_rest_stays() {
    let lab = Lab::new("short");
    lab.line("create data --file-size 8M --level 6 --chunk 16K d0 d1 d2 d3").expect(0);
    lab.pipe(&["copy-in", "data"], &noise(1, 3_000_001)).expect(0);
    lab.pipe(&["copy-in", "data"], &noise(2, 1_234_567)).expect(0);
    let out = lab.line("copy-out d1 d3").expect(1).out;
    assert!(out[..1_234_567] == noise(2, 1_234_567));
    assert!(out[1_234_567..3_000_001] == noise(1, 3_000_001)[1_234_567..]);
    assert!(out[3_000_001..].iter().all(|byte| *byte == 0));
    lab.pipe(&["copy-in", "data"], &[]).expect(0);
    assert!(lab.line("copy-out data").expect(0).out == out);
}
