//! The latency of requests: percentiles, distribution, and all figures of one load.

use super::super::data::{
    Better, Chart, ChartAxis, Heading, Heat, LineChart, Point, ReportSection, ReportSubject, Scale, Series, Unit,
};
use super::super::format::{list, number};
use super::curve::grouped;
use super::figure::{subject, Figure};
use super::shapes::{bars_of, done};
use super::{push, push_answered, CellTrial};
use crate::cell::LatencySummary;
use crate::metrics::{Histogram, Slice};
use std::ops::Range;

/// Latencies below a millisecond are printed in microseconds.
const MILLISECOND_NS: f64 = 1e6;
/// Start of the first band of a distribution, ns.
const BANDS_FROM: u64 = 10_000;
/// End of the last band, ns.
const BANDS_TO: u64 = 10_000_000_000;

/// A figure of a time slice, ns.
type OfSlice = fn(&Slice) -> u64;

/// The latency of all repetitions of a subject together.
struct SubjectLatency {
    subject: ReportSubject,
    summary: LatencySummary,
    histogram: Histogram,
    unsteady: bool,
}

/// One entry for each subject that has results.
fn known(trials: &[&CellTrial]) -> Vec<SubjectLatency> {
    let mut found = Vec::new();
    for (subject, of_subject) in grouped(trials, subject) {
        let results: Vec<_> = of_subject.iter().filter_map(|trial| trial.outcome.result()).collect();
        let mut histogram = Histogram::new();
        results.iter().for_each(|result| histogram.merge(&result.histogram()));
        let summary = match results.as_slice() {
            [] => continue,
            [one] => one.latency.clone(),
            _ => LatencySummary::of(&histogram),
        };
        if summary.count > 0 {
            let unsteady = results.iter().any(|result| result.is_unsteady());
            found.push(SubjectLatency { subject, summary, histogram, unsteady });
        }
    }
    found
}

/// M23: latency by percentile, and as a heat map.
pub fn latencies(section: &mut ReportSection, all: &[&CellTrial]) {
    for (op, trials) in grouped(all, |spec| spec.axes.op) {
        let known = known(&trials);
        push(section, format!("How slow are the slowest requests, {}?", done(op)), percentiles(&known));
        let before = section.panels.len();
        push(section, format!("How are the times distributed, {}?", done(op)), Chart::Heat(heat(&known)));
        if let Some(panel) = section.panels.get_mut(before) {
            panel.answer = most(&known);
        }
        let slices: [(&str, OfSlice); 2] = [
            ("How long does the slowest request of each time slice take", |slice| slice.max_ns),
            ("How long do the fastest 1 % of each time slice take at most", |slice| slice.first_ns),
        ];
        for (question, of) in slices {
            let answer = apart_by_slice(&trials, of);
            push_answered(section, format!("{question}, {}?", done(op)), answer, by_slice(&trials, of));
        }
    }
}

/// One figure of each time slice, with a line for each subject. For repetitions the first one is shown.
fn by_slice(trials: &[&CellTrial], of: OfSlice) -> Chart {
    let slow = known(trials).iter().any(|one| one.summary.mean_ns >= MILLISECOND_NS);
    let (unit, divisor) = if slow { ("ms", 1e6) } else { ("us", 1e3) };
    let series = grouped(trials, subject).into_iter().filter_map(|(name, of_subject)| {
        let result = of_subject.iter().find_map(|trial| trial.outcome.result())?;
        let points =
            result.slices.iter().map(|slice| Point::exact(slice.at_ns as f64 / 1e9, of(slice) as f64 / divisor));
        let points: Vec<Point> = points.collect();
        (!points.is_empty()).then(|| Series::line(name, points))
    });
    let x = ChartAxis::new("time", Unit::named("s"), Scale::Linear);
    let y = ChartAxis::new("latency", Unit::named(unit), Scale::Log10);
    Chart::Lines(LineChart { x, y, series: series.collect(), guides: Vec::new() })
}

/// The differences between the slices of each subject.
fn apart_by_slice(trials: &[&CellTrial], of: OfSlice) -> String {
    let words = grouped(trials, subject).into_iter().filter_map(|(name, of_subject)| {
        let slices = &of_subject.iter().find_map(|trial| trial.outcome.result())?.slices;
        let (low, high) = (slices.iter().map(of).min()?, slices.iter().map(of).max()?);
        Some(format!("{} to {} on {name}", exact(low), exact(high)))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("It is {}.", list(&words))
    }
}

/// A time with three digits: `26.3 ms`.
fn exact(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", number(ns as f64 / 1e3)),
        _ => format!("{} ms", number(ns as f64 / 1e6)),
    }
}

fn percentiles(known: &[SubjectLatency]) -> Chart {
    let slow = known.iter().any(|one| one.summary.mean_ns >= MILLISECOND_NS);
    let (unit, divisor) = if slow { ("ms", 1e6) } else { ("us", 1e3) };
    let series = known.iter().map(|one| {
        let count = one.summary.count as f64;
        // If less than one request is above a percentile, that percentile is only the slowest request.
        let resolved = one.summary.percentiles.iter().filter(|(p, _)| count * (1.0 - p / 100.0) >= 1.0);
        let mut points: Vec<Point> = resolved.map(|(p, ns)| Point::exact(*p, *ns as f64 / divisor)).collect();
        points.push(Point::exact(100.0, one.summary.max_ns as f64 / divisor));
        points.iter_mut().for_each(|point| point.unsteady = one.unsteady);
        Series::line(one.subject.clone(), points)
    });
    let x = ChartAxis::new("requests that take no longer", Unit::Percent, Scale::Nines);
    let y = ChartAxis::new("latency", Unit::named(unit), Scale::Log10).better(Better::Lower);
    Chart::Lines(LineChart { x, y, series: series.collect(), guides: Vec::new() })
}

/// Limits of the bands: 1, 2 and 5 of each power of ten.
fn bands() -> Vec<Range<u64>> {
    let mut limits = vec![0];
    let mut power = BANDS_FROM;
    while power < BANDS_TO {
        limits.extend([power, 2 * power, 5 * power]);
        power *= 10;
    }
    limits.extend([BANDS_TO, u64::MAX]);
    limits.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// A time as text: `20 us`, `5 ms`, `1 s`.
fn time(ns: u64) -> String {
    match ns {
        0..1_000_000 => format!("{} us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        _ => format!("{} s", ns / 1_000_000_000),
    }
}

fn words(band: &Range<u64>) -> String {
    match (band.start, band.end) {
        (0, end) => format!("below {}", time(end)),
        (start, u64::MAX) => format!("above {}", time(start)),
        (start, end) => format!("{} to {}", time(start), time(end)),
    }
}

/// Shares of requests by band and array. Empty bands at both ends are left out.
fn heat(known: &[SubjectLatency]) -> Heat {
    let known: Vec<&SubjectLatency> = known.iter().filter(|one| one.histogram.count() > 0).collect();
    let mut rows: Vec<(String, Vec<f64>)> = bands()
        .iter()
        .map(|band| (words(band), known.iter().map(|one| one.histogram.share(band.clone()) * 100.0).collect()))
        .collect();
    let empty = |(_, shares): &(String, Vec<f64>)| shares.iter().all(|share| *share == 0.0);
    while rows.last().is_some_and(empty) {
        rows.pop();
    }
    let first = rows.iter().position(|row| !empty(row)).unwrap_or(rows.len());
    let (names, shares) = rows.drain(first..).unzip();
    let columns = known.iter().map(|one| Heading::of(&one.subject)).collect();
    Heat { x: "array".into(), y: "latency".into(), columns, rows: names, shares }
}

/// The band with most requests of each array.
fn most(known: &[SubjectLatency]) -> String {
    let bands = bands();
    let shares = known.iter().filter(|one| one.histogram.count() > 0).filter_map(|one| {
        let shares = bands.iter().map(|band| (one.histogram.share(band.clone()), band));
        let (share, band) = shares.max_by(|one, two| one.0.total_cmp(&two.0))?;
        Some(format!("{} ({} %) on {}", words(band), number(share * 100.0), one.subject))
    });
    format!("Most requests take {}.", list(&shares.collect::<Vec<_>>()))
}

/// The user's own load: the rate at which it is served, and its latency.
pub fn of_given(section: &mut ReportSection, all: &[&CellTrial]) {
    push(section, "How many requests a second?", bars_of(all, Figure::Iops));
    push(section, "How much data a second?", bars_of(all, Figure::Mbps));
    push(section, "How long does a request take?", bars_of(all, Figure::MeanMs));
    latencies(section, all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_follow_each_other_and_shares_add_to_all() {
        let bands = bands();
        assert!(bands.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((bands[0].start, bands[bands.len() - 1].end), (0, u64::MAX));
        assert_eq!(words(&bands[0]), "below 10 us");
        assert_eq!(words(&bands[7]), "1 ms to 2 ms");
        assert_eq!(words(&bands[bands.len() - 1]), "above 10 s");
        let mut histogram = Histogram::new();
        // Six requests of 3 ms, three of 30 ms, one of 20 s.
        for ns in [3, 3, 3, 3, 3, 3, 30, 30, 30, 20_000] {
            histogram.record(ns * 1_000_000);
        }
        let summary = LatencySummary::of(&histogram);
        let subject = ReportSubject::from("raid5x4".parse::<crate::cell::Subject>().unwrap());
        let known = [SubjectLatency { subject, summary, histogram, unsteady: false }];
        let heat = heat(&known);
        assert_eq!((heat.rows[0].as_str(), heat.shares[0][0]), ("2 ms to 5 ms", 60.0));
        assert_eq!((heat.rows[3].as_str(), heat.shares[3][0]), ("20 ms to 50 ms", 30.0));
        assert_eq!(heat.rows.last().unwrap(), "above 10 s");
        assert!((heat.shares.iter().map(|row| row[0]).sum::<f64>() - 100.0).abs() < 1e-9);
        assert_eq!(most(&known), "Most requests take 2 ms to 5 ms (60.0 %) on RAID 5 x4.");
    }
}
