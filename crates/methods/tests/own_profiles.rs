//! The examples of own profiles in docs/lab/machine-models.md: each is made as the page says, and does what the page says.

use openraid_methods::cell::{
    machine_spec, run_cell, Axes, CellResult, CellSpec, Direction, Effort, FileSystem, Pattern, TraceApp,
};
use openraid_methods::load::{one_size, AccessManner};
use openraid_methods::target::{SimTarget, Target};
use openraid_models::Library;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/lab/machine-models.md");

/// The copy as it is on the page.
const NO_CHANGE: (&str, &str) = ("", "");

/// The lines of the page's example for a profile, by the profile's file: lines to remove, and lines to have.
fn example(file: &str) -> Vec<(String, String)> {
    let (_, after) = PAGE.split_once(&format!("`{file}`")).expect("the page has an example for the file");
    let (_, block) = after.split_once("```diff\n").expect("a block follows");
    let (block, _) = block.split_once("```").expect("the block ends");
    let mut hunks: Vec<(String, String)> = Vec::new();
    let mut last = '+';
    for line in block.lines() {
        let (mark, text) = line.split_at(1);
        let mark = mark.chars().next().expect("a line has a mark");
        // After a line to add, any other line begins a new hunk.
        if last == '+' && mark != '+' {
            hunks.push(Default::default());
        }
        let (old, new) = hunks.last_mut().expect("a block does not begin with a line to add");
        for (side, other) in [(old, '+'), (new, '-')] {
            if mark != other {
                *side += &format!("{text}\n");
            }
        }
        last = mark;
    }
    hunks
}

/// The built-in profiles, and the copy that the page describes, with one more change.
fn library(file: &str, (from, to): (&str, &str)) -> Library {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut text = std::fs::read_to_string(models.join(file)).expect("a built-in profile");
    for (old, new) in example(file) {
        assert_eq!(text.matches(&old).count(), 1, "{file}: {old}");
        text = text.replace(&old, &new);
    }
    assert!(text.contains(from), "{file}: {from}");
    if !from.is_empty() {
        text = text.replace(from, to);
    }
    let name = file.replace('/', "-");
    let folder = std::env::temp_dir().join(format!("openraid-own-{}-{name}", std::process::id()));
    let place = folder.join(file);
    std::fs::create_dir_all(place.parent().expect("a folder")).unwrap();
    std::fs::write(&place, text).unwrap();
    let library = Library::builtin().with_dir(&folder).unwrap_or_else(|errors| panic!("{errors}"));
    std::fs::remove_dir_all(&folder).unwrap();
    library
}

fn run(library: &Library, system: &str, subject: &str, pattern: Pattern, axes: Axes) -> CellResult {
    let cell = CellSpec::new(system, subject.parse().unwrap(), pattern).with(axes);
    run_cell(library, &CellSpec { effort: Effort::QUICK, ..cell }).unwrap()
}

#[test]
fn each_of_two_adapters_has_its_own_limit() {
    let rate = |library: &Library| {
        let axes = Axes {
            op: Some(Direction::Read),
            bs: Some(1 << 20),
            qd: Some(16),
            drive: Some("s3500_480".into()),
            ..Axes::default()
        };
        run(library, "two-adapters", "raid0x8", Pattern::Sequential, axes).mbps
    };
    for (drives, most) in [("8", 1700.0), ("16", 850.0)] {
        let each = format!("drives_per_adapter = {{ value = {drives},");
        let found = rate(&library("controllers/plain-hba.toml", ("drives_per_adapter = { value = 8,", &each)));
        assert!((found / most - 1.0).abs() < 0.02, "{drives} on an adapter: {found} is not {most}");
    }
    // The test bed names them.
    let library = library("controllers/plain-hba.toml", NO_CHANGE);
    let cell = CellSpec::new("two-adapters", "raid0x8".parse().unwrap(), Pattern::Sequential);
    let target = SimTarget::new("x", &machine_spec(&library, &cell).unwrap(), &library).unwrap();
    let bed: Vec<String> = target.facts().bed.iter().map(ToString::to_string).collect();
    let way = bed.iter().find(|line| line.starts_with("host adapters: ")).unwrap_or_else(|| panic!("{bed:?}"));
    assert!(way.contains(&library.bus("pcix64_133").unwrap().title) && way.contains("up to 8 drives on each"), "{way}");
}

#[test]
fn reads_from_the_memory_of_the_host_do_not_pass_the_link() {
    let library = library("controllers/intel-rst.toml", NO_CHANGE);
    // Each chunk of 16 KiB is a transfer of its own: its bytes at 1600 MB/s, and 0.4 us.
    let link = 16_384.0 / (16_384.0 / 1600.0 + 0.4);
    let rate = |system: &str, mib: u64| {
        let part = AccessManner { start: Some(0), len: Some(mib << 20), ..AccessManner::default() };
        let load = one_size("part", 64 << 10, 100, 100).in_manner(part);
        let axes = Axes { qd: Some(16), workers: Some(2), ..Axes::default() };
        run(&library, system, "raid0x6", Pattern::Custom(load), axes).mbps
    };
    assert!((rate("intel-rst", 128) / link - 1.0).abs() < 0.02, "{}", rate("intel-rst", 128));
    // All places are read alike, so the share that is kept is found.
    for (mib, found) in [(128, 0.5), (256, 0.25)] {
        let (rate, expected) = (rate("rst-with-memory", mib), link / (1.0 - found));
        assert!((rate / expected - 1.0).abs() < 0.05, "{mib} MiB: {rate} is not {expected}");
    }
    // Everything is found: two workers, each with 6.7 us for a read and 20 ns for each KiB.
    let (rate, expected) = (rate("rst-with-memory", 32), 2.0 * 65_536.0 / (6.7 + 64.0 * 0.020));
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} is not {expected}");
}

#[test]
fn a_host_that_keeps_descriptions_reads_as_little_from_ntfs_as_from_fat32() {
    let (builtin, kept) = (Library::builtin(), library("hosts/xeon-2003.toml", NO_CHANGE));
    let reads = |library: &Library, fs: FileSystem| {
        let axes = Axes { app: Some(TraceApp::Visualcpp50), fs: Some(fs), ..Axes::default() };
        run(library, "icp-9024ro", "raid0x4", Pattern::Application, axes).reads.requests as f64
    };
    // The directories of FAT32 are always in memory, and nothing else differs between the reads of both.
    let (fat, ntfs) = (reads(&builtin, FileSystem::Fat32), reads(&builtin, FileSystem::Ntfs));
    let with_memory = reads(&kept, FileSystem::Ntfs);
    assert!((with_memory / fat - 1.0).abs() < 0.001, "{with_memory} {fat}");
    assert!(ntfs > fat * 1.005, "{ntfs} {fat}");
    assert_eq!(reads(&kept, FileSystem::Fat32), fat);
}
