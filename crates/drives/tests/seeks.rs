//! The motion of the arm, compared with measured seek curves. The inputs are the three figures that a data sheet of
//! each drive would have. The outputs are the times over other distances.

use openraid_models::{ArmMotion, SeekPoints, Sourced};
use openraid_units::Nanos;

/// A measured curve: cylinders, mean, times in ms by distance.
struct SeekCurve {
    drive: &'static str,
    cylinders: f64,
    mean: f64,
    rows: Vec<(f64, f64)>,
}

fn measured() -> Vec<SeekCurve> {
    let lines = include_str!("seeks.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let read = |line: &'static str| {
        let mut parts = line.split('\t');
        let mut part = || parts.next().expect("four columns");
        let (drive, cylinders, mean) = (part(), number(part()), number(part()));
        let row = |row: &str| row.split_once(':').map(|(distance, ms)| (number(distance), number(ms)));
        SeekCurve { drive, cylinders, mean, rows: part().split(' ').filter_map(row).collect() }
    };
    lines.map(read).collect()
}

/// Mean and largest error of a curve over the distances of a drive, as shares.
fn errors(drive: &SeekCurve, curve: impl Fn(f64) -> f64) -> (f64, f64) {
    let off = |(distance, ms): &(f64, f64)| (curve((distance - 1.0) / (drive.cylinders - 2.0)) / ms - 1.0).abs();
    let all: Vec<f64> = drive.rows.iter().map(off).collect();
    (all.iter().sum::<f64>() / all.len() as f64, all.iter().copied().fold(0.0, f64::max))
}

#[test]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some milliseconds
fn an_arm_of_three_figures_moves_as_arms_were_measured() {
    let (mut sum, mut before) = (0.0, 0.0);
    let drives = measured();
    for drive in &drives {
        let [first, last] = [drive.rows[0].1, drive.rows[drive.rows.len() - 1].1];
        let time = |ms: f64| Sourced::exact(Nanos((ms * 1e6) as u64));
        let points = SeekPoints { track_to_track: time(first), average: time(drive.mean), full_stroke: time(last) };
        let arm = ArmMotion::of(&points);
        let (mean, most) = errors(drive, |share| arm.time(share) / 1e6);
        // A root and a line through the same three figures, the former model (until November 2026).
        let line = 5.0 * ((last - first) * 8.0 / 15.0 - (drive.mean - first));
        let root = last - first - line;
        let (other, _) = errors(drive, |share| first + root * share.sqrt() + line * share);
        println!(
            "{:12} {:.1} %, at most {:.1} %; a root and a line {:.1} %",
            drive.drive,
            mean * 1e2,
            most * 1e2,
            other * 1e2
        );
        assert!(mean < other, "{}: {mean} is no better than {other}", drive.drive);
        // The mean of the motion equals the figure from which it was made.
        let shares = (0..100_000).map(|n| (f64::from(n) + 0.5) / 1e5);
        let found = shares.map(|share| 2.0 * (1.0 - share) * arm.time(share)).sum::<f64>() / 1e5 / 1e6;
        assert!((found / drive.mean - 1.0).abs() < 0.001, "{}: {found} is not {}", drive.drive, drive.mean);
        (sum, before) = (sum + mean, before + other);
    }
    let count = drives.len() as f64;
    assert!(sum / count < 0.10 && before / count > 0.12, "{} {}", sum / count, before / count);
}
