//! Wrong files: each gives an error with place, field, reason and remedy, and none makes the reader panic.

use openraid_models::{BusFile, ControllerProfile, DriveProfile, HostProfile, Library, ModelError};
use std::path::{Path, PathBuf};

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// The first error of a disk profile with one changed line.
fn complaint(from: &str, to: &str) -> ModelError {
    let good = text("drives/wd740gd.toml");
    assert!(good.contains(from), "{from}");
    let bad = good.replacen(from, to, 1);
    let error = DriveProfile::parse("w.toml", &bad).unwrap_err();
    error.0[0].clone()
}

fn line_of(text: &str, part: &str) -> u32 {
    let before = &text[..text.find(part).unwrap()];
    u32::try_from(before.matches('\n').count() + 1).unwrap()
}

#[test]
fn a_complaint_has_file_line_column_field_reason_and_remedy() {
    let good = text("drives/wd740gd.toml");
    let bad = good.replacen("read_average_ms = { value = 4.5,", "read_average_ms = { value = 14.5,", 1);
    let error = DriveProfile::parse("w.toml", &bad).unwrap_err();
    let line = line_of(&good, "read_average_ms");
    let expected = format!(
        "w.toml:{line}:1: seek.read_average_ms: the average seek of 14.500 ms is longer than the full stroke of \
         10.200 ms; swap the two, or check the sheet"
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn values_without_unit_in_wrong_units_or_twice_are_refused() {
    let error = complaint("read_average_ms =", "read_average =");
    assert_eq!((error.field.as_str(), error.reason.as_str()), ("seek.read_average", "a time without a unit"));
    assert!(error.remedy.contains("read_average_ms"), "{}", error.remedy);
    let error = complaint("read_average_ms =", "read_average_mbs =");
    assert!(error.reason.contains("missing") || error.reason.contains("unit"), "{error}");
    let error = complaint("[queue]", "[queue]\nflush_ms = { value = 1, range = [0, 2], from = \"class\" }");
    assert!(error.reason.contains("twice"), "{error}");
}

#[test]
fn a_missing_field_is_named_with_its_remedy() {
    let error = complaint("spindle_rpm = { value = 10000, from = \"tr\" }\n", "");
    assert_eq!(error.field, "mechanics.spindle");
    assert!(error.remedy.contains("spindle_rpm = { value"), "{}", error.remedy);
    let error = complaint("[cache]", "[cash]");
    assert_eq!((error.field.as_str(), error.remedy.as_str()), ("cache", "add [cache]"));
    let error = complaint("schema = 1", "schema = 2");
    assert_eq!(error.field, "schema");
}

#[test]
fn unknown_keys_are_named_with_what_may_have_been_meant() {
    let error = complaint("heads =", "haeds =");
    let all = text("drives/wd740gd.toml").replacen("heads =", "haeds =", 1);
    let errors = DriveProfile::parse("w.toml", &all).unwrap_err();
    assert_eq!(error.field, "mechanics.heads");
    let unknown = errors.0.iter().find(|error| error.field == "mechanics.haeds").unwrap();
    assert_eq!(unknown.remedy, "perhaps heads is meant");
}

#[test]
fn contradictions_are_refused() {
    for (from, to, field) in [
        (
            "rate_inner_mbs = { value = 54, range = [50, 58]",
            "rate_inner_mbs = { value = 95, range = [50, 98]",
            "media.rate_inner_mbs",
        ),
        ("depth = { value = 32, range = [1, 32]", "depth = { value = 8, range = [1, 32]", "queue.sorting_window"),
        (
            "read_track_to_track_ms = { value = 0.6, range = [0.3, 0.7]",
            "read_track_to_track_ms = { value = 6, range = [0.3, 7]",
            "seek.read_average_ms",
        ),
        (
            "head_switch_ms = { value = 0.7, range = [0.5, 1]",
            "head_switch_ms = { value = 17, range = [5, 18]",
            "mechanics.head_switch_ms",
        ),
        (
            "capacity_sectors = { value = 145226112, range = [144000000, 146000000]",
            "capacity_sectors = { value = 4096, range = [4096, 4096]",
            "media.zones",
        ),
    ] {
        let error = complaint(from, to);
        assert_eq!(error.field, field, "{error}");
        assert!(error.line > 1 && !error.reason.is_empty() && !error.remedy.is_empty());
    }
}

#[test]
fn estimates_need_a_range_and_every_value_a_source() {
    let error = complaint(
        "zones = { value = 16, range = [8, 30], from = \"class\" }",
        "zones = { value = 16, from = \"class\" }",
    );
    assert!(error.reason.contains("'derived'") && error.remedy.contains("range"), "{error}");
    let error = complaint("zones = { value = 16, range = [8, 30], from = \"class\" }", "zones = 16");
    assert!(error.reason.contains("no source"), "{error}");
    let error =
        complaint("zones = { value = 16, range = [8, 30], from = \"class\" }", "zones = { value = 16, from = \"me\" }");
    assert!(error.reason.contains("'me'"), "{error}");
    let error = complaint("zones = { value = 16, range = [8, 30]", "zones = { value = 40, range = [8, 30]");
    assert!(error.reason.contains("outside of its own range"), "{error}");
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for bad in ["nan", "inf", "-4", "1e300", "\"4\"", "[4]", "true"] {
        let error = complaint("heads = { value = 4,", &format!("heads = {{ value = {bad},"));
        assert_eq!(error.field, "mechanics.heads", "{bad}: {error}");
    }
}

#[test]
fn text_that_is_not_toml_is_shown_with_its_place() {
    let error = DriveProfile::parse("w.toml", "schema = 1\nname = \"x\n").unwrap_err();
    assert!(error.0[0].line >= 2 && error.0[0].reason.starts_with("not TOML"), "{error}");
    assert!(DriveProfile::parse("w.toml", &"#".repeat(2 << 20)).unwrap_err().to_string().contains("1 MiB"));
    assert!(DriveProfile::parse("w.toml", "").is_err());
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(DriveProfile::parse("w.toml", &deep).is_err());
}

#[test]
fn a_controller_cannot_demand_less_than_a_level_needs_or_more_without_a_reason() {
    let good = text("controllers/plain-hba.toml");
    let complain = |to: &str| {
        let bad = good.replacen("raid6 = {}", to, 1);
        ControllerProfile::parse("c.toml", &bad).unwrap_err().to_string()
    };
    assert!(complain("raid6 = { members_min = 3 }").contains("raid6 needs 4 members"));
    assert!(complain("raid6 = { members_min = 5 }").contains("without a reason"));
    assert!(complain("raid7 = {}").contains("levels.raid7"));
}

#[test]
fn quirks_have_values_sources_and_ranges_as_all_values_have() {
    let good = text("controllers/plain-hba.toml");
    let read = |line: &str| ControllerProfile::parse("c.toml", &format!("{good}\n[quirks]\n{line}\n"));
    let profile = read(
        "ra_window_kib = { value = 64, range = [32, 512], from = \"class\", explains = \"one stream is slow\", note = \"x\" }\n\
         adapt_mode_state = { value = \"once\", from = \"rule\", explains = \"x\" }\n\
         xor_op_us = { value = 2.5, from = \"rule\", explains = \"x\" }",
    );
    let profile = profile.unwrap();
    assert_eq!((profile.quirk_number("ra_window_kib"), profile.quirk_number("xor_op_us")), (Some(64.0), Some(2.5)));
    assert_eq!(profile.quirk_text("adapt_mode_state"), Some("once"));
    let uncertain: Vec<_> = profile.head.uncertain.iter().filter(|field| field.starts_with("quirks.")).collect();
    assert_eq!(uncertain, ["quirks.ra_window_kib"]);
    let line = u32::try_from(good.matches('\n').count() + 3).unwrap();
    let window = "ra_window_kib = { value = 64, range = [32, 512], from = \"class\", explains = \"x\" }";
    let truth = "adapt_persist_across_arrays = { value = true, from = \"rule\", explains = \"x\" }";
    assert!(read(window).is_ok() && read(truth).is_ok());
    for (line_of_profile, from, to, field, reason, remedy) in [
        (window, "range = [32, 512], ", "", "quirks.ra_window_kib", "'derived' only and has no range", "add range"),
        (window, "[32, 512]", "[65, 512]", "quirks.ra_window_kib", "outside of its own range", "correct the value"),
        (window, "[32, 512]", "[32]", "quirks.ra_window_kib", "range that is none", "write range"),
        (window, "[32, 512]", "[-1, 512]", "quirks.ra_window_kib", "below zero", "from 0 on"),
        (window, "value = 64", "value = inf", "quirks.ra_window_kib", "outside of its own range", "correct"),
        (window, "[32, 512]", "[32, inf]", "quirks.ra_window_kib", "endless", "from 0 on"),
        (window, "value = 64", "value = true", "quirks.ra_window_kib", "has no number", "add value"),
        (window, "value = 64, ", "", "quirks.ra_window_kib", "has no number", "add value"),
        (window, "\"class\"", "\"nosuch\"", "quirks.ra_window_kib", "'nosuch', which is not a source", "[sources]"),
        (window, "from = \"class\", ", "", "quirks.ra_window_kib", "has no source", "from = "),
        (window, ", explains = \"x\"", "", "quirks.ra_window_kib.explains", "is missing", "add explains"),
        (
            window,
            "explains",
            "explain",
            "quirks.ra_window_kib.explain",
            "is not known",
            "value, range, from, note, explains",
        ),
        (window, "ra_window_kib", "result_iops", "quirks.result_iops", "is not known", "remove it"),
        (
            truth,
            "value = true",
            "value = 1",
            "quirks.adapt_persist_across_arrays.value",
            "neither true",
            "true or false",
        ),
        (truth, "value = true, ", "", "quirks.adapt_persist_across_arrays.value", "is missing", "add value"),
        (truth, "\"rule\"", "\"nosuch\"", "quirks.adapt_persist_across_arrays", "'nosuch'", "[sources]"),
        (truth, "from = \"rule\", ", "", "quirks.adapt_persist_across_arrays", "has no source", "from = "),
        (
            truth,
            "from",
            "range = [0, 1], from",
            "quirks.adapt_persist_across_arrays.range",
            "is not known",
            "remove it",
        ),
    ] {
        assert!(line_of_profile.contains(from), "{from}");
        let errors = read(&line_of_profile.replacen(from, to, 1)).unwrap_err().0;
        let found = errors.iter().find(|error| error.field == field).unwrap_or_else(|| panic!("{to}: {errors:?}"));
        assert!(found.reason.contains(reason) && found.remedy.contains(remedy), "{to}: {found}");
        assert_eq!(found.line, line, "{to}: {found}");
    }
}

#[test]
fn a_truth_with_a_source_names_one_of_the_file() {
    let good = text("controllers/plain-hba.toml");
    let parse = |from: &str| {
        let to = format!("write_back = {{ value = false, from = \"{from}\" }}");
        ControllerProfile::parse("c.toml", &good.replacen("write_back = false", &to, 1))
    };
    assert!(good.contains("write_back = false") && parse("rule").is_ok());
    assert!(parse("nosuch").unwrap_err().to_string().contains("'nosuch', which is not a source"));
}

#[test]
fn a_folder_replaces_built_in_profiles_or_gives_its_errors() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("profiles");
    let drives = folder.join("drives");
    std::fs::create_dir_all(&drives).unwrap();
    let mine = text("drives/wd740gd.toml").replace("name = \"wd740gd\"", "name = \"mine\"");
    std::fs::write(drives.join("mine.toml"), &mine).unwrap();
    let library = Library::builtin().with_dir(&folder).unwrap();
    assert!(library.drive("mine").is_ok() && library.drive("wd740gd").is_ok());
    std::fs::write(drives.join("bad.toml"), "schema = 1").unwrap();
    let error = Library::builtin().with_dir(&folder).unwrap_err().to_string();
    assert!(error.contains("bad.toml:1:1"), "{error}");
    std::fs::remove_file(drives.join("bad.toml")).unwrap();
    let error = Library::builtin().with_dir(&drives).unwrap_err().to_string();
    assert!(error.contains("none of the folders"), "{error}");
}

#[test]
fn a_contradiction_between_files_is_reported_with_file_and_line() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("between");
    let wrong = |kind: &str, name: &str, changes: &[(&str, &str)]| {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join(kind)).unwrap();
        let mut bad = text(&format!("{kind}/{name}.toml"));
        for (from, to) in changes {
            assert!(bad.contains(from), "{from}");
            bad = bad.replacen(from, to, 1);
        }
        std::fs::write(folder.join(kind).join("mine.toml"), &bad).unwrap();
        let error = Library::builtin().with_dir(&folder).unwrap_err().to_string();
        let line = line_of(&bad, changes.last().unwrap().1);
        assert!(error.contains(&format!("mine.toml:{line}:")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    let sata1 =
        [("link = \"sata6\"", "link = \"sata1\""), ("link_rate_mbs = { value = 550", "link_rate_mbs = { value = 550")];
    assert!(wrong("drives", "s3500_480", &sata1).contains("more than sata1 carries"));
    for link in ["sata9", "nvmeofx"] {
        let error = wrong("drives", "s3500_480", &[("link = \"sata6\"", &format!("link = \"{link}\""))]);
        assert!(error.contains(&format!("no bus profile '{link}'")) && error.contains("sata6"), "{error}");
    }
    let scsi = [("drive = \"exos_x18_18tb\"", "drive = \"st318453lw\"")];
    let error = wrong("controllers", "plain-hba", &scsi);
    assert!(error.contains("test_bed.drive") && error.contains("st318453lw does not fit ports of sas12"), "{error}");
    let error = wrong("controllers", "plain-hba", &[("bus = \"pcie3_x8\"", "bus = \"sata6\"")]);
    assert!(error.contains("host.bus") && error.contains("sata6 is a link of drives"), "{error}");
    let error = wrong("buses", "links", &[("plug = \"sata\"", "plug = \"usb\"")]);
    assert!(error.contains("'usb' is not known") && error.contains("sata, sas, scsi, pcie"), "{error}");
    let lanes = [("plug = \"sas\"\nlanes = 4", "plug = \"sata\"\nlanes = 4"), ("lanes = 4", "lanes = 4")];
    let error = wrong("buses", "links", &lanes);
    assert!(error.contains("only the wide port of an expander") && error.contains("leave lanes out"), "{error}");
    let error = wrong("buses", "links", &[("plug = \"sata\"", "plug = \"pcie\"")]);
    assert!(error.contains("begins with pcie") && error.contains("correct the plug"), "{error}");
    let error = wrong("buses", "links", &[("lanes = 4", "lanes = 0")]);
    assert!(error.contains("0 lanes cannot be") && error.contains("give 1 to 16"), "{error}");
    let changed = |from: &str, field: &str| {
        let good = text("controllers/plain-hba.toml");
        let line = good.lines().find(|line| line.starts_with(from)).unwrap_or_else(|| panic!("{from}"));
        let error = wrong("controllers", "plain-hba", &[(line, &format!("{from}\"nothing\""))]);
        assert!(error.contains(field), "{error}");
    };
    changed("link = ", "ports.link");
    changed("bus = ", "host.bus");
    changed("host = ", "test_bed.host");
    changed("drive = ", "test_bed.drive");
}

#[test]
fn one_mistake_is_reported_once() {
    for (from, to) in [
        ("cores = ", "cores = { value = 0, range = [0, 0], from = \"class\" } #"),
        ("drives = ", "drives = { value = 0, from = \"rule\" } #"),
    ] {
        let bad = text("controllers/plain-hba.toml").replacen(from, to, 1);
        let errors = ControllerProfile::parse("c.toml", &bad).unwrap_err().0;
        assert_eq!(errors.len(), 1, "{errors:?}");
    }
}

#[test]
fn a_card_without_a_parity_engine_has_no_level_with_parity() {
    let good = text("controllers/plain-hba.toml");
    let from = good.find("[xor]").unwrap();
    let to = from + good[from + 1..].find("\n[").unwrap() + 1;
    let without = format!("{}{}", &good[..from], &good[to..]);
    let hardware = without.replacen("work = \"software\"", "work = \"hardware\"", 1);
    let error = ControllerProfile::parse("c.toml", &hardware).unwrap_err().to_string();
    assert!(error.contains("xor: is missing, and raid5 needs parity"), "{error}");
    assert!(
        ControllerProfile::parse("c.toml", &hardware.replacen("work = \"hardware\"", "work = \"software\"", 1)).is_ok()
    );
}

/// A small generator of the test, so that the files are the same on every machine.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
fn files_that_were_changed_at_random_never_bring_the_reader_down() {
    let pieces =
        ["= ", "{", "}", "[", "]", "-1", "1e18", "0", "\"", "\n", "value", "range", "_ms", "999999999999", "."];
    let mut chance = Chance(1);
    let (mut right, mut wrong) = (0, 0);
    for path in [
        "drives/wd740gd.toml",
        "drives/s3500_480.toml",
        "drives/980pro_1tb.toml",
        "drives/service-fixed.toml",
        "buses/pci.toml",
        "hosts/linux-2020s.toml",
        "controllers/plain-hba.toml",
        "controllers/lsi-9260-8i.toml",
    ] {
        let good = text(path);
        for _ in 0..1500 {
            let mut bytes = good.clone().into_bytes();
            for _ in 0..=chance.below(3) {
                let at = chance.below(bytes.len());
                match chance.below(4) {
                    0 => bytes[at] = u8::try_from(chance.below(128)).unwrap(),
                    1 => drop(bytes.drain(at..(at + 1 + chance.below(20)).min(bytes.len()))),
                    2 => bytes.truncate(at.max(1)),
                    _ => {
                        let piece = pieces[chance.below(pieces.len())].bytes();
                        bytes.splice(at..at, piece).for_each(drop);
                    }
                }
                if bytes.is_empty() {
                    bytes.push(b'#');
                }
            }
            let changed = String::from_utf8_lossy(&bytes);
            let result = match path.split('/').next().unwrap() {
                "drives" => DriveProfile::parse("f", &changed).map(drop),
                "buses" => BusFile::parse("f", &changed).map(drop),
                "hosts" => HostProfile::parse("f", &changed).map(drop),
                _ => ControllerProfile::parse("f", &changed).map(drop),
            };
            match result {
                Ok(()) => right += 1,
                Err(errors) => {
                    assert!(!errors.0.is_empty() && errors.0.iter().all(|error| error.line > 0 && error.column > 0));
                    wrong += 1;
                }
            }
        }
    }
    // Changes of comments and notes are harmless.
    assert!(right > 100 && wrong > 1000, "{right} {wrong}");
}

#[test]
fn ways_of_a_controller_that_contradict_each_other_are_refused() {
    let good = text("controllers/3ware-9650se.toml");
    let adapters =
        "drives_per_link = { value = 1, from = \"rule\" }\ndrives_per_adapter = { value = 8, from = \"bed\" }\n";
    for (from, to, field) in [
        ("drives_per_link = { value = 1, from = \"rule\" }\n", adapters.to_owned(), "ports.adapter_bus"),
        (
            "drives_per_link = { value = 1, from = \"rule\" }\n",
            adapters.replace("value = 8", "value = 17") + "adapter_bus = \"pcix64_133\"\n",
            "ports.drives_per_adapter",
        ),
        (
            "drives_per_link = { value = 1, from = \"rule\" }\n",
            adapters.replace("link = { value = 1", "link = { value = 4") + "adapter_bus = \"pcix64_133\"\n",
            "ports.adapter_bus",
        ),
        ("memory_mbs = { value = 4264,", "memory_mbs = { value = 0.001,".to_owned(), "cache.memory_mbs"),
    ] {
        assert!(good.contains(from), "{from}");
        let errors = ControllerProfile::parse("w.toml", &good.replacen(from, &to, 1)).unwrap_err();
        let error = errors.0.iter().find(|error| error.field == field);
        let error = error.unwrap_or_else(|| panic!("{field}: {errors}"));
        assert!(!error.reason.is_empty() && !error.remedy.is_empty(), "{error}");
    }
    let software = text("controllers/plain-hba.toml").replacen(
        "size_mib = ",
        "memory_mbs = { value = 4000, from = \"rule\" }\nsize_mib = ",
        1,
    );
    let error = ControllerProfile::parse("w.toml", &software).unwrap_err();
    assert!(error.to_string().contains("is the host's"), "{error}");
    let empty = good.replacen("size_mib = { value = 256,", "size_mib = { value = 0,", 1);
    let empty = empty.replacen("write_back = true", "write_back = false", 1);
    let error = ControllerProfile::parse("w.toml", &empty).unwrap_err();
    assert!(error.to_string().contains("the cache has no size"), "{error}");
}

#[test]
fn a_host_says_how_much_of_its_file_descriptions_it_keeps_or_says_nothing() {
    let good = text("hosts/xeon-2003.toml");
    assert_eq!(HostProfile::parse("w.toml", &good).unwrap().kept_descriptions, None);
    let with = |line: &str| HostProfile::parse("w.toml", &format!("{good}[ntfs]\n{line}\n"));
    let kept = with("kept_mib = { value = 8, range = [4, 16], from = \"scaled\" }").unwrap().kept_descriptions;
    assert_eq!(kept.unwrap().value.get(), 8 << 20);
    for line in ["", "kept_mib = { value = -1, from = \"scaled\" }", "kept = 8", "kept_mib = 8\npages = 3"] {
        let errors = with(line).unwrap_err();
        assert!(errors.0.iter().all(|error| error.field.starts_with("ntfs.") && !error.remedy.is_empty()), "{errors}");
    }
}
