//! The built-in profiles: all are correct, every value has a source, and every name has a profile.

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
fn drives_fit_ports_with_their_plug_and_sas_ports_take_sata_drives() {
    let library = Library::builtin();
    for controller in library.controllers() {
        let drive = library.drive(&controller.drive).unwrap();
        assert_eq!(library.fits(drive, controller), Ok(true), "{} on {}", drive.head.name, controller.head.name);
    }
    assert!(library.drives().all(|drive| library.bus(&drive.link).unwrap().plug.is_some()));
    // SATA, SAS, parallel SCSI, NVMe, and a synthetic drive.
    let drives = ["pm893_960", "mba3073rc", "st318453lw", "pm9a3_1920", "service-fixed"];
    for (controller, expected) in [
        ("3ware-9650se", [true, false, false, false, true]),
        ("3ware-8506-8", [true, false, false, false, true]),
        ("lsi-9260-8i", [true, true, false, false, true]),
        ("icp-9024ro", [false, false, true, false, true]),
        // The host does the work, and has slots.
        ("openraid", [true, true, false, true, true]),
        ("openraid-expander", [true, true, false, true, true]),
        ("intel-rst", [true, false, false, true, true]),
    ] {
        let controller = library.controller(controller).unwrap();
        let found = drives.map(|name| library.fits(library.drive(name).unwrap(), controller).unwrap());
        assert_eq!(found, expected, "{}", controller.head.name);
    }
}

#[test]
fn a_drive_has_one_lane_of_a_wide_port() {
    let library = Library::builtin();
    let wide = library.bus("sas3_x4").unwrap();
    assert_eq!((wide.lanes, wide.lane_rate().value.0), (4, 270_000_000));
    let drive = library.drive("pm893_960").unwrap();
    assert!(drive.exceeds(wide) && !library.drive("mba3073rc").unwrap().clone().slowed(400).exceeds(wide));
    assert_eq!(drive.clone().behind(wide).link_rate().map(|rate| rate.0), Some(270_000_000));
    assert!(library.buses().all(|bus| bus.lanes == 1 || bus.name.ends_with("_x4")));
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

/// A controller without a parity engine forwards commands. Its maker states the number per second.
#[test]
fn an_hba_passes_as_many_commands_as_its_maker_states() {
    let library = Library::builtin();
    let card = library.controller("lsi-hba92xx").unwrap();
    let each = card.cpu.command.value.get() + card.cpu.member_command.value.get();
    let rate = 1e9 / each as f64 * f64::from(card.cpu.cores.value);
    assert!((rate / 290_000.0 - 1.0).abs() < 0.05, "{rate} requests each second");
}

#[test]
fn card_and_slot_agree_on_the_older_generation_and_the_fewer_lanes() {
    let library = Library::builtin();
    let agreed = |controller: &str, slot: &str| {
        let (controller, slot) = (library.controller(controller).unwrap(), library.bus(slot).unwrap());
        library.agreed(controller, slot).name.clone()
    };
    // A card of generation 1 with eight lanes, in narrower slots and in newer and wider ones.
    for (slot, both) in
        [("pcie1_x1", "pcie1_x1"), ("pcie1_x4", "pcie1_x4"), ("pcie3_x4", "pcie1_x4"), ("pcie3_x16", "pcie1_x8")]
    {
        assert_eq!(agreed("3ware-9650se", slot), both);
    }
    assert_eq!(agreed("lsi-9260-8i", "pcie1_x16"), "pcie1_x8");
    assert_eq!(agreed("lsi-9260-8i", "pcie2_x4"), "pcie2_x4");
    // A profile without a bus of its card accepts every slot as it is.
    assert_eq!(agreed("areca-1220", "pcie3_x16"), "pcie3_x16");
    for controller in library.controllers() {
        let bus = library.bus(&controller.bus).unwrap();
        assert_eq!(library.agreed(controller, bus), bus, "{}", controller.head.name);
    }
}
