//! Prints the data sheet figures of all drives next to the results of their models.

use openraid_drives::one_drive_load;
use openraid_models::{DriveKind, Library, SheetKey};

fn main() {
    let only = std::env::args().nth(1);
    println!("{:<16} {:<26} {:>14} {:>14} {:>8}  source", "drive", "figure", "sheet", "model", "error");
    let library = Library::builtin();
    for profile in library.drives() {
        if only.as_ref().is_some_and(|only| !profile.head.answers_to(only)) {
            continue;
        }
        for figure in &profile.sheet {
            let disk = matches!(profile.kind, DriveKind::Disk(_));
            let count = match figure.key {
                SheetKey::Random { write: true, .. } if !disk => 400_000,
                _ => 20_000,
            };
            let model = one_drive_load::sheet(profile, figure.key, 1, count);
            let sheet = figure.value.value as f64;
            println!(
                "{:<16} {:<26} {:>14.0} {:>14.0} {:>7.1}%  {}",
                profile.head.name,
                figure.name,
                sheet,
                model,
                (model / sheet - 1.0) * 100.0,
                figure.value.confidence
            );
        }
    }
}
