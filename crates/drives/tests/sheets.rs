//! Every figure of every data sheet, compared with the model. Allowed errors: 3 percent for commands at depth 1,
//! sequential data and times, 10 percent for commands at greater depths, 15 percent for flushes.

use openraid_drives::one_drive_load;
use openraid_models::{DriveKind, DriveProfile, Library, SheetKey};

/// The allowed relative error.
fn tolerance(key: SheetKey) -> f64 {
    match key {
        SheetKey::Random { depth: 1, .. } | SheetKey::Sequential { .. } => 0.03,
        SheetKey::Random { .. } => 0.10,
        SheetKey::Flush => 0.15,
    }
}

fn compare(profile: &DriveProfile) -> Vec<String> {
    let disk = matches!(profile.kind, DriveKind::Disk(_));
    let mut wrong = Vec::new();
    for figure in &profile.sheet {
        // Collecting needs many writes before it is stable.
        let count = if disk { 10_000 } else { 200_000 };
        let model = one_drive_load::sheet(profile, figure.key, 17, count);
        let error = model / figure.value.value as f64 - 1.0;
        if error.abs() > tolerance(figure.key) {
            wrong.push(format!("{} {}: {:+.1} %", profile.head.name, figure.name, error * 100.0));
        }
    }
    wrong
}

#[test]
fn every_model_does_what_its_sheet_says() {
    let library = Library::builtin();
    let wrong: Vec<String> = library.drives().flat_map(compare).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(library.drives().map(|profile| profile.sheet.len()).sum::<usize>() >= 40);
}

/// Drives whose profile has no figure of a sheet: their models are compared with closed forms only.
const WITHOUT_A_SHEET: [&str; 9] = [
    "atlas10k",
    "cheetah9lp",
    "cheetah_15k7",
    "d7k2000",
    "f1_1tb",
    "hts721010",
    "mba3073rc",
    "mg08_16tb",
    "st318453lw",
];

#[test]
fn drives_without_a_sheet_are_named() {
    let library = Library::builtin();
    let synthetic = |profile: &&DriveProfile| matches!(profile.kind, DriveKind::Constant(_));
    let bare = library.drives().filter(|profile| !synthetic(profile) && profile.sheet.is_empty());
    let mut names: Vec<&str> = bare.map(|profile| profile.head.name.as_str()).collect();
    names.sort_unstable();
    println!("not compared with anything: {}", names.join(", "));
    assert_eq!(names, WITHOUT_A_SHEET, "a drive was added without figures of its sheet, or got some");
    let docs = include_str!("../../../docs/lab/drive-models.md");
    let (_, section) = docs.split_once("Not compared with anything").expect("docs/lab/drive-models.md names them");
    let section = section.split("\n\n").next().unwrap_or_default();
    for name in names {
        assert!(
            section.contains(&format!("`{name}`")),
            "docs/lab/drive-models.md does not say that {name} has no sheet"
        );
    }
}

#[test]
fn the_page_counts_the_drives_that_are_held_against_a_figure() {
    let library = Library::builtin();
    let drives: Vec<_> = library.drives().filter(|profile| !matches!(profile.kind, DriveKind::Constant(_))).collect();
    let held = |fits: &dyn Fn(SheetKey) -> bool| {
        drives.iter().filter(|drive| drive.sheet.iter().any(|figure| fits(figure.key))).count()
    };
    let deep = |at: u32| held(&|key| matches!(key, SheetKey::Random { depth, .. } if depth == at));
    let sentence = format!(
        "The library has {} drives (the service drives not counted), {} of them with figures in `[sheet]`: {} are compared at depth \
         1, {} at depth 32 ({} more at depth 16), {} in sequential order, {} in the time of a flush.",
        drives.len(),
        held(&|_| true),
        deep(1),
        deep(32),
        deep(16),
        held(&|key| matches!(key, SheetKey::Sequential { .. })),
        held(&|key| key == SheetKey::Flush),
    );
    let docs = include_str!("../../../docs/lab/drive-models.md").replace('\n', " ");
    assert!(docs.contains(&sentence), "docs/lab/drive-models.md does not say: {sentence}");
}

#[test]
fn the_figures_do_not_hang_on_the_seed() {
    let library = Library::builtin();
    for name in ["hus728t8", "pm9a3_1920"] {
        let profile = library.drive(name).unwrap();
        let key = SheetKey::Random { write: false, depth: 32, fresh: false, time: false };
        let rates: Vec<f64> = (0..5).map(|seed| one_drive_load::sheet(profile, key, seed, 20_000)).collect();
        let (least, most) = rates.iter().fold((f64::MAX, 0f64), |(a, b), rate| (a.min(*rate), b.max(*rate)));
        assert!(most / least < 1.02, "{name}: {rates:?}");
    }
}
