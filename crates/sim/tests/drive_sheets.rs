//! Every figure of every sheet, held against what the model does: commands at depth 1, data in order and times
//! within 3 percent, commands at greater depths within 10, flushes within 15.

use openraid_models::{DriveKind, DriveProfile, Library, SheetKey};
use openraid_sim::timing::drive::trial;

/// Relative error that is allowed.
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
        // Collecting needs many writes to settle.
        let count = if disk { 10_000 } else { 200_000 };
        let model = trial::sheet(profile, figure.key, 17, count);
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

#[test]
fn the_figures_do_not_hang_on_the_seed() {
    let library = Library::builtin();
    for name in ["hus728t8", "pm9a3_1920"] {
        let profile = library.drive(name).unwrap();
        let key = SheetKey::Random { write: false, depth: 32, fresh: false, time: false };
        let rates: Vec<f64> = (0..5).map(|seed| trial::sheet(profile, key, seed, 20_000)).collect();
        let (least, most) = rates.iter().fold((f64::MAX, 0f64), |(a, b), rate| (a.min(*rate), b.max(*rate)));
        assert!(most / least < 1.02, "{name}: {rates:?}");
    }
}
