//! Ratings: one figure for each array from its rates at several queue depths, for charts and as data.

use super::super::data::{Point, ReportSubject};
use super::curve::grouped;
use super::figure::{subject, Figure};
use super::tables::only;
use super::CellTrial;
use crate::cell::{self, ArrayState, CellSpec, Pattern, ZoneChoice};
use crate::method::{Method, ReportShape};
use crate::metrics::Scheme;
use serde::{Deserialize, Serialize};

/// A rating as results keep it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Rating {
    /// `R1` to `R5`.
    pub scheme: Scheme,
    /// How it is made of requests at depths.
    pub formula: String,
    /// The load.
    pub pattern: Pattern,
    /// The part of the array.
    pub zone: Option<ZoneChoice>,
    pub subject: cell::Subject,
    pub state: ArrayState,
    /// In a report of several targets: the words that set this one apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Requests each second; of an index how many times the single drive's.
    pub rating: f64,
    /// Made of the lowest of repetitions.
    pub low: f64,
    /// Made of the highest of them.
    pub high: f64,
    /// Was a result of which it is made not steady when it was measured?
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unsteady: bool,
}

/// The rating of each subject that has all queue depths of a formula: its name, one of its cells, and the figure.
pub fn rated<'a>(
    trials: &[&'a CellTrial],
    pattern: &Pattern,
    scheme: Scheme,
) -> Vec<(ReportSubject, &'a CellSpec, Point)> {
    let point =
        |trials: &[&CellTrial], depth| Figure::Iops.point(0.0, &only(trials, |spec| spec.axes.qd == Some(depth)));
    let one = |(name, of_subject): (ReportSubject, Vec<&'a CellTrial>)| {
        let label = &of_subject.first()?.spec.label;
        let singles = only(trials, |spec| spec.subject == cell::Subject::Single && spec.label == *label);
        let single = |depth| point(&singles, depth).map(|one| one.y);
        let at = |depth: u32, of: &dyn Fn(&Point) -> f64| point(&of_subject, depth).map(|point| of(&point));
        let rate = |of: &dyn Fn(&Point) -> f64| scheme.rate(pattern, |depth| at(depth, of), single).ok();
        let (y, low, high) = (rate(&|p| p.y)?, rate(&|p| p.low)?, rate(&|p| p.high)?);
        let unsteady = Figure::Iops.point(0.0, &of_subject).is_some_and(|point| point.unsteady);
        Some((name, &of_subject.first()?.spec, Point { unsteady, ..Point::spread(0.0, y, low, high, 1) }))
    };
    grouped(trials, subject).into_iter().filter_map(one).collect()
}

/// The ratings of a method's cells by every formula whose queue depths were measured. None if the method does not vary
/// the depth.
#[must_use]
pub fn ratings(method: &Method, trials: &[CellTrial]) -> Vec<Rating> {
    if !matches!(method.shape, ReportShape::Depths | ReportShape::Parts) {
        return Vec::new();
    }
    let all: Vec<&CellTrial> = trials.iter().collect();
    let mut found = Vec::new();
    for ((zone, pattern), of_part) in grouped(&all, |spec| (spec.axes.zone, spec.pattern.clone())) {
        for scheme in Scheme::ALL {
            found.extend(rated(&of_part, &pattern, scheme).into_iter().map(|(_, spec, value)| Rating {
                scheme,
                formula: scheme.formula(&pattern),
                pattern: pattern.clone(),
                zone,
                subject: spec.subject,
                state: spec.state,
                label: spec.label.clone(),
                rating: value.y,
                low: value.low,
                high: value.high,
                unsteady: value.unsteady,
            }));
        }
    }
    found
}
