//! The charts of one question: one for each write cache, with all arrays in it.
//!
//! Lines without a write cache, such as those of a target that existed before, are in every chart. If one cache has too
//! many lines for a chart, arrays with and without redundancy are in different charts, arrays of one shape are in the
//! same chart, and every chart has the single drive for comparison. An ideal is drawn in the chart of its array.

use super::data::{Level, LineChart, Mark, ReportCache, ReportSubject, Series};
use super::format::capital;
use super::LINES_MAX;

/// The lines of one chart.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitPart {
    /// The difference from the other charts; empty if there is only one.
    pub title: String,
    /// The write cache of the arrays, which their names then leave out.
    pub cache: Option<ReportCache>,
    pub lines: LineChart,
}

/// Maximum number of single drives that are in every chart.
const REFERENCES_MAX: usize = 2;

/// Distributes the lines of a panel.
#[must_use]
pub fn split(lines: &LineChart) -> Vec<SplitPart> {
    by_cache(lines).into_iter().flat_map(by_redundancy).collect()
}

/// The lines of each write cache. There is one part if the lines do not differ in that.
#[must_use]
pub fn by_cache(lines: &LineChart) -> Vec<SplitPart> {
    let cache_of = |subject: &ReportSubject| subject.variant.cache();
    let has = |cache: &ReportCache| lines.series.iter().any(|one| cache_of(&one.subject) == Some(*cache));
    let caches: Vec<ReportCache> = ReportCache::ALL.into_iter().filter(has).collect();
    // Measured points that are drawn over predicted lines belong to them, whatever their cache.
    let is_overlay = lines.series.iter().any(|series| series.mark == Mark::Points);
    if caches.len() < 2 || is_overlay {
        return vec![SplitPart { title: String::new(), cache: None, lines: lines.clone() }];
    }
    let part = |cache: ReportCache| {
        let is_in = |subject: &ReportSubject| cache_of(subject).is_none_or(|known| known == cache);
        let mut part = lines.clone();
        part.series.retain(|one| is_in(&one.subject));
        part.series.iter_mut().for_each(|one| one.subject = one.subject.without_cache());
        part.guides.retain(|guide| guide.subject.as_ref().is_none_or(is_in));
        part.guides.iter_mut().for_each(|one| one.subject = one.subject.as_ref().map(ReportSubject::without_cache));
        SplitPart { title: capital(cache.words()), cache: Some(cache), lines: part }
    };
    caches.into_iter().map(part).collect()
}

/// Distributes the lines of one write cache, if they are too many for a chart.
fn by_redundancy(whole: SplitPart) -> Vec<SplitPart> {
    let SplitPart { title: before, cache, lines } = &whole;
    if lines.series.len() <= LINES_MAX {
        return vec![whole];
    }
    let is_reference = |series: &&Series| series.subject.level == Level::Single && series.mark == Mark::Line;
    let references: Vec<&Series> = lines.series.iter().filter(is_reference).collect();
    // More single drives are subjects of their own, because they would leave no room for arrays.
    let reference: &[&Series] = if references.len() <= REFERENCES_MAX { &references } else { &[] };
    let mut parts = Vec::new();
    for redundant in [false, true] {
        let of_kind: Vec<&Series> = lines
            .series
            .iter()
            .filter(|series| series.subject.level.redundant() == redundant)
            .filter(|series| !reference.contains(series))
            .collect();
        let room = LINES_MAX - reference.len();
        let charts = deal(&of_kind, room);
        let count = charts.len();
        for (number, chart) in (1..).zip(charts) {
            let kind = if redundant { "with redundancy" } else { "without redundancy" };
            let place = if count == 1 { kind.to_owned() } else { format!("{kind}, {number} of {count}") };
            let title = if before.is_empty() { capital(&place) } else { format!("{before}, {place}") };
            let series: Vec<Series> = reference.iter().copied().chain(chart).cloned().collect();
            let mut guides = lines.guides.clone();
            guides.retain(|guide| guide.subject.iter().all(|subject| series.iter().any(|one| one.subject == *subject)));
            parts.push(SplitPart { title, cache: *cache, lines: LineChart { series, guides, ..lines.clone() } });
        }
    }
    parts
}

/// Charts with at most `room` lines. Lines of one shape are in one chart if they fit.
fn deal<'a>(series: &[&'a Series], room: usize) -> Vec<Vec<&'a Series>> {
    let shape = |series: &Series| (series.subject.level, series.subject.members);
    let mut shapes: Vec<Vec<&Series>> = Vec::new();
    for &one in series {
        match shapes.iter_mut().find(|group| shape(group[0]) == shape(one)) {
            Some(group) => group.push(one),
            None => shapes.push(vec![one]),
        }
    }
    // The last chart gets as many lines as the others, if that takes no more charts.
    let even = series.len().div_ceil(series.len().div_ceil(room).max(1)).max(1);
    let (even, full) = (fill(&shapes, even), fill(&shapes, room));
    if even.len() > full.len() {
        full
    } else {
        even
    }
}

/// Puts shapes one after the other into charts of at most `room` lines.
fn fill<'a>(shapes: &[Vec<&'a Series>], room: usize) -> Vec<Vec<&'a Series>> {
    let mut charts: Vec<Vec<&Series>> = Vec::new();
    for piece in shapes.iter().flat_map(|group| group.chunks(room)) {
        match charts.last_mut() {
            Some(chart) if chart.len() + piece.len() <= room => chart.extend(piece),
            _ => charts.push(piece.to_vec()),
        }
    }
    charts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::{ChartAxis, Guide, GuideKind, Scale, Unit};

    fn lines(names: &[&str]) -> LineChart {
        let axis = ChartAxis::new("a", Unit::None, Scale::Linear);
        let series = names
            .iter()
            .filter_map(|name| name.parse::<crate::cell::Subject>().ok())
            .map(|subject| Series::line(subject.into(), vec![]));
        LineChart { x: axis.clone(), y: axis, series: series.collect(), guides: vec![] }
    }

    fn dealt(names: &[&str]) -> Vec<String> {
        told(&split(&lines(names)))
    }

    fn told(parts: &[SplitPart]) -> Vec<String> {
        let name = |series: &Series| series.subject.to_string();
        parts
            .iter()
            .map(|part| {
                let names: Vec<String> = part.lines.series.iter().map(name).collect();
                format!("{}: {}", part.title, names.join(", "))
            })
            .collect()
    }

    #[test]
    fn nine_arrays_are_in_one_chart_and_in_one_for_each_write_cache() {
        let names =
            ["single", "raid0x2", "raid0x4", "raid0x8", "raid1x2", "raid10x8", "raid5x8", "raid50x8", "raid6x8"];
        let wanted = "single, RAID 0 x2, RAID 0 x4, RAID 0 x8, RAID 1 x2, RAID 10 x8, RAID 5 x8, RAID 50 x8, RAID 6 x8";
        assert_eq!(dealt(&names), [format!(": {wanted}")]);
        let mut both = lines(&[]);
        for cache in ["write-through", "write-back"] {
            let with_cache = |mut one: Series| {
                one.subject.variant.add(cache);
                one
            };
            both.series.extend(lines(&names).series.into_iter().map(with_cache));
        }
        let of_both = |chart: &LineChart| told(&split(chart));
        assert_eq!(of_both(&both), [format!("Write-back: {wanted}"), format!("Write-through: {wanted}")]);
        // A target without such a cache is compared with both.
        both.series.push(Series::line(ReportSubject::new(Level::Single, 1).named("md"), vec![]));
        assert_eq!(of_both(&both), [format!("Write-back: {wanted}, md"), format!("Write-through: {wanted}, md")]);
        let caches: Vec<_> = split(&both).into_iter().map(|part| part.cache).collect();
        assert_eq!(caches, [Some(ReportCache::Back), Some(ReportCache::Through)]);
    }

    #[test]
    fn more_lines_than_a_chart_holds_have_the_single_drive_in_each_chart() {
        let mut names = vec!["single", "raid0x2", "raid0x3", "raid0x4", "raid1x2", "raid10x4", "raid5x3", "raid5x4"];
        names.extend(["raid5x5", "raid5x6", "raid5x7", "raid5x8", "raid6x8"]);
        let wanted = [
            "Without redundancy: single, RAID 0 x2, RAID 0 x3, RAID 0 x4",
            "With redundancy: single, RAID 1 x2, RAID 10 x4, RAID 5 x3, RAID 5 x4, RAID 5 x5, RAID 5 x6, RAID 5 x7, RAID 5 x8, \
             RAID 6 x8",
        ];
        assert_eq!(dealt(&names), wanted);
    }

    #[test]
    fn an_ideal_is_drawn_where_its_array_is_and_a_limit_everywhere() {
        let guide = |subject: &str| Guide {
            label: subject.into(),
            kind: GuideKind::Ideal,
            subject: subject.parse::<crate::cell::Subject>().ok().map(ReportSubject::from),
            corners: vec![(1.0, 1.0), (2.0, 2.0)],
        };
        let many: Vec<String> = (2..12).map(|members| format!("raid0x{members}")).collect();
        let many = many.iter().map(String::as_str).chain(["single", "raid5x3", "raid5x4"]);
        let mut all = lines(&many.collect::<Vec<_>>());
        all.guides = vec![guide("raid0x4"), guide("raid5x4"), guide("bus")];
        let labels = |part: &SplitPart| part.lines.guides.iter().map(|guide| guide.label.clone()).collect::<Vec<_>>();
        assert_eq!(split(&all).iter().map(labels).collect::<Vec<_>>(), [["raid0x4", "bus"], ["raid5x4", "bus"]]);
    }

    #[test]
    fn charts_of_one_kind_have_about_as_many_lines() {
        let many: Vec<String> = (1..15).map(|members| format!("jbodx{members}")).collect();
        let parts = split(&lines(&many.iter().map(String::as_str).collect::<Vec<_>>()));
        let counts: Vec<(&str, usize)> =
            parts.iter().map(|part| (part.title.as_str(), part.lines.series.len())).collect();
        assert_eq!(counts, [("Without redundancy, 1 of 2", 7), ("Without redundancy, 2 of 2", 7)]);
    }

    #[test]
    fn no_chart_has_more_lines_than_it_can_hold() {
        let many: Vec<String> = (4..43).map(|n| format!("raid{}x{n}", [0, 5, 6, 10][n % 4])).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let parts = split(&lines(&many));
        assert!(parts.iter().all(|part| part.lines.series.len() <= LINES_MAX));
        assert_eq!(parts.iter().map(|part| part.lines.series.len()).sum::<usize>(), many.len());
    }
}
