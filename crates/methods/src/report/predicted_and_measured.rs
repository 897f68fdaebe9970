//! Compares predictions with measurements: their differences as figures.

use super::data::{
    Chart, ChartAxis, FindingKind, LineChart, Mark, Panel, ReportCell, ReportFinding, ReportRow, ReportTable, Series,
};
use super::findings::value_at;
use super::format::{percent, place, tick};

/// The errors of predictions, relative to the measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Mean of the signed errors; if it is above zero, the predictions are too high.
    pub bias: f64,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// The largest absolute error.
    pub worst: f64,
    /// Position of the largest error.
    pub worst_at: f64,
    /// Number of positions with both values.
    pub places: u32,
}

/// Compares both at every common position. `None` if there is none, or if all measurements are zero.
#[must_use]
pub fn errors(predicted: &Series, measured: &Series) -> Option<Errors> {
    let mut sum = Errors { bias: 0.0, mean: 0.0, worst: 0.0, worst_at: 0.0, places: 0 };
    for point in &measured.points {
        let Some(error) = value_at(predicted, point.x).and_then(|value| error(value, point.y)) else { continue };
        if sum.places == 0 || error.abs() > sum.worst.abs() {
            (sum.worst, sum.worst_at) = (error, point.x);
        }
        sum.bias += error;
        sum.mean += error.abs();
        sum.places += 1;
    }
    let places = f64::from(sum.places);
    (sum.places > 0).then(|| Errors { bias: sum.bias / places, mean: sum.mean / places, ..sum })
}

/// Relative error of a prediction.
fn error(predicted: f64, measured: f64) -> Option<f64> {
    let error = (predicted - measured) / measured;
    error.is_finite().then_some(error)
}

/// Chart, table and sentence for pairs of figures. The second figure of a pair is the reference for the first. `names`
/// are their names, for instance `predicted` and `served`. The members of a pair must have different variants.
#[must_use]
pub fn compare(
    question: &str,
    x: &ChartAxis,
    y: &ChartAxis,
    names: (&str, &str),
    pairs: &[(Series, Series)],
) -> (Panel, ReportTable, Vec<ReportFinding>) {
    let mut rows = Vec::new();
    let mut findings = Vec::new();
    let mut series = Vec::new();
    for (predicted, measured) in pairs {
        series.push(Series { mark: Mark::Line, ..predicted.clone() });
        series.push(Series { mark: Mark::Points, ..measured.clone() });
        for point in &measured.points {
            let Some(value) = value_at(predicted, point.x) else { continue };
            let change = error(value, point.y)
                .map_or(ReportCell::NotApplicable(format!("the value of {} is zero", names.1)), |error| {
                    ReportCell::Text(signed(error))
                });
            let head = format!("{}, {}", predicted.subject, tick(x, point.x));
            rows.push(ReportRow {
                head,
                level: Some(predicted.subject.level),
                cells: vec![ReportCell::Number(value), ReportCell::Number(point.y), change],
            });
        }
        findings.extend(errors(predicted, measured).map(|errors| difference_of(predicted, names.1, x, &errors)));
    }
    let table = ReportTable {
        caption: format!("{}: {} and {}", y.name, names.0, names.1),
        corner: format!("array, {}", x.name),
        columns: vec![names.0.into(), names.1.into(), "difference".into()],
        rows,
        formula: format!("difference = {} / {} - 1", names.0, names.1),
        notes: Vec::new(),
    };
    let lines = LineChart { x: x.clone(), y: y.clone(), series, guides: Vec::new() };
    (Panel::new(question, Chart::Lines(lines)), table, findings)
}

fn signed(error: f64) -> String {
    super::format::change(error * 100.0)
}

fn difference_of(predicted: &Series, other: &str, x: &ChartAxis, errors: &Errors) -> ReportFinding {
    let text = format!(
        "{} differs from {other} by {} on average over {} places (bias {}), at worst by {} at {}.",
        predicted.subject,
        percent(errors.mean),
        errors.places,
        signed(errors.bias),
        signed(errors.worst),
        place(x, errors.worst_at)
    );
    ReportFinding::new(FindingKind::Comparison, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::{Level, Point, ReportSubject, Scale, Unit};

    #[test]
    fn errors_are_relative_to_what_was_measured() {
        let series = |ys: [f64; 3], variant: &str| {
            let points = [1.0, 2.0, 4.0].into_iter().zip(ys).map(|(x, y)| Point::exact(x, y)).collect();
            Series::line(ReportSubject::new(Level::Raid5, 4).variant(variant), points)
        };
        let (predicted, measured) = (series([110.0, 190.0, 300.0], "predicted"), series([100.0, 200.0, 300.0], "m"));
        let found = errors(&predicted, &measured);
        let Some(errors) = found else { panic!("no errors") };
        assert!((errors.bias - 0.05 / 3.0).abs() < 1e-12 && (errors.mean - 0.05).abs() < 1e-12);
        assert_eq!((errors.worst_at, errors.places), (1.0, 3));
        let axis = ChartAxis::new("outstanding", Unit::None, Scale::Log2);
        let (_, table, findings) = compare("?", &axis, &axis, ("predicted", "served"), &[(predicted, measured)]);
        assert_eq!(table.rows[1].cells[2], ReportCell::Text("-5.0 %".into()));
        let wanted = "RAID 5 x4, predicted differs from served by 5.0 % on average over 3 places (bias +1.7 %), at \
                    worst by +10 % at 1 outstanding.";
        assert_eq!(findings[0].text, wanted);
    }
}
