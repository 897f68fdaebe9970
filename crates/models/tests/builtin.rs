//! The profiles that are built in: all of them are right, every value has a source, and names lead somewhere.

use openraid_models::{ArrayLevel, DriveKind, DriveProfile, Edge, Edges, Library};
use openraid_units::Nanos;

#[test]
fn every_file_is_right() {
    if let Err(errors) = Library::checked_builtin() {
        panic!("{errors}");
    }
}

#[test]
fn every_name_that_a_profile_uses_is_there() {
    let missing: Vec<String> = Library::builtin().dangling().iter().map(|error| format!("{error}")).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_names_of_reviews_and_claims_are_there() {
    let library = Library::builtin();
    for name in [
        "wd740gd",
        "wd360gd",
        "mba3073rc",
        "st318453lw",
        "best15k",
        "s3500",
        "s3700",
        "ssd2009",
        "desktop_ssd",
        "exos_x18_18tb",
        "hus728t8",
        "cheetah9lp",
        "atlas10k",
        "evo870_1tb",
        "pm9a3_1920",
        "p5510_3840",
    ] {
        assert!(library.drive(name).is_ok(), "{name}");
    }
    for name in ["pci64_33", "pci64_66", "pcix64_133", "dmi2", "sas3", "sas6", "sata1", "sata3", "sata6", "u320"] {
        assert!(library.bus(name).is_ok(), "{name}");
    }
    for generation in 1..=3 {
        for width in [1, 4, 8] {
            assert!(library.bus(&format!("pcie{generation}_x{width}")).is_ok());
        }
    }
    let error = library.drive("wd7400").unwrap_err().to_string();
    assert!(error.contains("there is no drive profile 'wd7400'") && error.contains("wd740gd"), "{error}");
}

#[test]
fn best15k_is_the_fastest_of_its_kind() {
    let library = Library::builtin();
    let best = library.drives().filter_map(|drive| match &drive.kind {
        DriveKind::Disk(disk) if disk.spindle_rpm.value == 15_000 => Some((disk.rate_outer.value, &drive.head.name)),
        _ => None,
    });
    assert_eq!(best.max().map(|(_, name)| name), Some(&library.drive("best15k").unwrap().head.name));
}

#[test]
fn a_value_can_be_taken_from_the_end_of_its_range() {
    let library = Library::builtin();
    let drive = library.drive("wd740gd").unwrap();
    let field = "seek.read_full_stroke_ms";
    assert!(drive.head.uncertain.iter().any(|known| known == field), "{:?}", drive.head.uncertain);
    let full = |edge: Option<Edge>| {
        let edges: Edges = edge.map(|edge| (field.to_owned(), edge)).into_iter().collect();
        match library.drive_at("wd740gd", &edges).unwrap().kind {
            DriveKind::Disk(disk) => disk.seek_read.full_stroke.value,
            _ => panic!("the drive is a disk"),
        }
    };
    assert_eq!(full(None), Nanos::from_micros(10_200));
    assert_eq!(full(Some(Edge::Low)), Nanos::from_millis(9));
    assert_eq!(full(Some(Edge::High)), Nanos::from_millis(11));
}

#[test]
fn a_slowed_drive_has_half_of_everything() {
    let library = Library::builtin();
    let (fast, slow) = (library.drive("mba3073rc").unwrap(), library.drive("mba3073rc").unwrap().clone().slowed(200));
    let (DriveKind::Disk(fast), DriveKind::Disk(slow)) = (&fast.kind, &slow.kind) else { panic!("disks") };
    assert_eq!(slow.rate_outer.value.0 * 2, fast.rate_outer.value.0);
    assert_eq!(slow.turn(), Nanos::from_millis(8));
    assert_eq!(slow.seek_read.average.value.0, 2 * fast.seek_read.average.value.0);
}

#[test]
fn the_example_controller_reads_as_it_stands() {
    let library = Library::builtin();
    let hba = library.controller("plain-hba").unwrap();
    assert_eq!(hba.level(ArrayLevel::Raid6).map(|rule| rule.members_min), Some(4));
    assert!(!hba.write_back && hba.quirks.is_empty());
}

#[test]
fn figures_of_a_sheet_that_no_model_reads_make_nothing_uncertain() {
    let library = Library::builtin();
    let ranged = |drive: &&DriveProfile| drive.sheet.iter().any(|figure| figure.value.low < figure.value.high);
    assert!(library.drives().filter(ranged).count() > 0);
    for drive in library.drives() {
        assert!(!drive.head.uncertain.iter().any(|field| field.starts_with("sheet.")), "{}", drive.head.name);
    }
}
