//! Ranks arrays by a rating.

use openraid_methods::cell::{ArrayState, ZoneChoice};
use openraid_methods::metrics::Scheme;
use openraid_methods::report::assemble::Rating;
use openraid_methods::review::{MethodOutcome, ReviewResults};
use serde::Serialize;

use openraid::output::table::TextTable;
use openraid::quantity::figure;

/// An array with its rating.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct Ranked {
    /// Number of the method, such as `M06`.
    method: String,
    /// The method's title, with the part of the array if the method has several.
    title: String,
    /// Place in the order of the arrays, 1 for the best.
    place: usize,
    /// The array, such as `raid5x4`.
    array: String,
    /// Name of the rating: `R1` to `R5`, or `R5-light`.
    scheme: &'static str,
    /// The formula of the rating.
    formula: String,
    /// The rating: requests each second, or an index without unit for `R5` and `R5-light`.
    rating: f64,
    /// The lowest rating that the cells' errors allow.
    low: f64,
    /// The highest rating that the cells' errors allow.
    high: f64,
}

/// The arrays of each method that has ratings, the best first. None if the user requested no rating. A rating of results
/// that were not steady has no place.
pub(super) fn of(results: &ReviewResults) -> Vec<Ranked> {
    let Some(scheme) = results.rank else { return Vec::new() };
    let mut found = Vec::new();
    for method in &results.methods {
        let ratings = || method.ratings.iter().filter(|rating| rating.scheme == scheme);
        let mut zones: Vec<Option<ZoneChoice>> = ratings().map(|rating| rating.zone).collect();
        zones.sort_unstable();
        zones.dedup();
        for zone in zones {
            let mut of_zone: Vec<&Rating> =
                ratings().filter(|rating| rating.zone == zone && !rating.unsteady).collect();
            of_zone.sort_by(|a, b| b.rating.total_cmp(&a.rating));
            let title = match zone {
                Some(ZoneChoice::First32g) => format!("{}, first 32 GB", method.title),
                _ => method.title.clone(),
            };
            found.extend((1..).zip(of_zone).map(|(place, rating)| Ranked {
                method: method.id.clone(),
                title: title.clone(),
                place,
                array: array(rating),
                scheme: scheme.name(),
                formula: rating.formula.clone(),
                rating: rating.rating,
                low: rating.low,
                high: rating.high,
            }));
        }
    }
    found
}

fn array(rating: &Rating) -> String {
    let state = match rating.state {
        ArrayState::Healthy => String::new(),
        ArrayState::Degraded(missing) => format!("{missing} missing"),
        ArrayState::Rebuilding => "rebuilding".into(),
        ArrayState::Changing(to) => format!("changing to {to}"),
    };
    let words = [rating.subject.title(), rating.label.clone().unwrap_or_default(), state];
    words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The arrays of each method that have no place, because their results were not steady.
fn unranked(results: &ReviewResults) -> Vec<String> {
    let of_method = |method: &MethodOutcome| {
        let is_unsteady = |rating: &&Rating| results.rank == Some(rating.scheme) && rating.unsteady;
        let names: Vec<String> = method.ratings.iter().filter(is_unsteady).map(array).collect();
        let (id, title, names) = (&method.id, &method.title, names.join("; "));
        (!names.is_empty()).then(|| format!("{id} {title}: not ranked, as not steady when measured: {names}"))
    };
    results.methods.iter().filter_map(of_method).collect()
}

/// Were all depths of the formula measured, on some array?
fn has_depths(method: &MethodOutcome, scheme: Scheme) -> bool {
    let measured: Vec<u32> = method
        .cells
        .iter()
        .filter(|known| known.outcome.result().is_some())
        .filter_map(|known| known.cell.axes.qd)
        .collect();
    method.ratings.iter().any(|rating| scheme.depths(&rating.pattern).iter().all(|depth| measured.contains(depth)))
}

/// A table for each method. If a rating was requested but there is none, the reason.
pub(super) fn text(ranking: &[Ranked], results: &ReviewResults) -> Vec<String> {
    let unranked = unranked(results);
    if let Some(scheme) = results.rank.filter(|_| ranking.is_empty() && unranked.is_empty()) {
        let why = if scheme.is_index() && results.methods.iter().any(|method| has_depths(method, scheme)) {
            "its formula compares with the single drive, which was not measured; name it among the arrays, as single"
        } else {
            "no method here has the depths of its formula; --methods file-server,web-server,workstation have them"
        };
        return vec![format!("nothing is ranked by {}: {why}", scheme.name())];
    }
    let mut lines = Vec::new();
    let same = |a: &Ranked, b: &Ranked| (&a.method, &a.title) == (&b.method, &b.title);
    for group in ranking.chunk_by(same) {
        let first = &group[0];
        lines.push(format!("{} {}, by {}: {}", first.method, first.title, first.scheme, first.formula));
        let mut table = TextTable::new(&["", "ARRAY", "RATING"]).indented(2);
        for ranked in group {
            table.row([ranked.place.to_string(), ranked.array.clone(), figure(ranked.rating)]);
        }
        lines.push(table.text().trim_end().into());
    }
    lines.extend(unranked);
    lines
}
