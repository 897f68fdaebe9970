//! Distributes too many lines for one chart to several charts side by side.
//!
//! Arrays with and without redundancy are in different charts, arrays of one shape are in the same chart, and every
//! chart has the single drive for comparison; if there are two, as with two write caches, both. An ideal is drawn in the
//! chart of its array.

use super::data::{Level, LineChart, Mark, Series};
use super::LINES_MAX;

/// The lines of one chart.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitPart {
    /// The difference from the other charts; empty if there is only one.
    pub title: String,
    pub lines: LineChart,
}

/// Maximum number of single drives that are in every chart.
const REFERENCES_MAX: usize = 2;

/// Distributes the lines of a panel.
#[must_use]
pub fn split(lines: &LineChart) -> Vec<SplitPart> {
    if lines.series.len() <= LINES_MAX {
        return vec![SplitPart { title: String::new(), lines: lines.clone() }];
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
            let kind = if redundant { "With redundancy" } else { "Without redundancy" };
            let title = if count == 1 { kind.to_owned() } else { format!("{kind}, {number} of {count}") };
            let series: Vec<Series> = reference.iter().copied().chain(chart).cloned().collect();
            let mut guides = lines.guides.clone();
            guides.retain(|guide| guide.subject.iter().all(|subject| series.iter().any(|one| one.subject == *subject)));
            parts.push(SplitPart { title, lines: LineChart { series, guides, ..lines.clone() } });
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
    use crate::report::data::{ChartAxis, Guide, GuideKind, ReportSubject, Scale, Unit};

    fn lines(names: &[&str]) -> LineChart {
        let axis = ChartAxis::new("a", Unit::None, Scale::Linear);
        let series = names
            .iter()
            .filter_map(|name| name.parse::<crate::cell::Subject>().ok())
            .map(|subject| Series::line(subject.into(), vec![]));
        LineChart { x: axis.clone(), y: axis, series: series.collect(), guides: vec![] }
    }

    fn dealt(names: &[&str]) -> Vec<String> {
        let name = |series: &Series| series.subject.to_string();
        let parts = split(&lines(names));
        parts
            .iter()
            .map(|part| {
                let names: Vec<String> = part.lines.series.iter().map(name).collect();
                format!("{}: {}", part.title, names.join(", "))
            })
            .collect()
    }

    #[test]
    fn the_four_disk_review_has_two_charts_with_the_single_drive_in_both() {
        let names = ["single", "raid0x2", "raid0x3", "raid0x4", "raid1x2", "raid10x4", "raid5x3", "raid5x4"];
        let wanted = [
            "Without redundancy: single, RAID 0 x2, RAID 0 x3, RAID 0 x4",
            "With redundancy: single, RAID 1 x2, RAID 10 x4, RAID 5 x3, RAID 5 x4",
        ];
        assert_eq!(dealt(&names), wanted);
    }

    #[test]
    fn charts_of_two_caches_have_the_single_drive_with_both() {
        let names = ["single", "single", "raid0x4", "raid0x4", "raid10x4", "raid10x4", "raid5x4", "raid5x4"];
        let wanted = [
            "Without redundancy: single, single, RAID 0 x4, RAID 0 x4",
            "With redundancy, 1 of 2: single, single, RAID 10 x4, RAID 10 x4",
            "With redundancy, 2 of 2: single, single, RAID 5 x4, RAID 5 x4",
        ];
        assert_eq!(dealt(&names), wanted);
        let three = ["single", "single", "single", "raid10x4", "raid10x4", "raid10x4"];
        let wanted =
            ["Without redundancy: single, single, single", "With redundancy: RAID 10 x4, RAID 10 x4, RAID 10 x4"];
        assert_eq!(dealt(&three), wanted);
    }

    #[test]
    fn an_ideal_is_drawn_where_its_array_is_and_a_limit_everywhere() {
        let guide = |subject: &str| Guide {
            label: subject.into(),
            kind: GuideKind::Ideal,
            subject: subject.parse::<crate::cell::Subject>().ok().map(ReportSubject::from),
            corners: vec![(1.0, 1.0), (2.0, 2.0)],
        };
        let mut all = lines(&["single", "raid0x2", "raid0x3", "raid0x4", "raid5x3", "raid5x4"]);
        all.guides = vec![guide("raid0x4"), guide("raid5x4"), guide("bus")];
        let labels = |part: &SplitPart| part.lines.guides.iter().map(|guide| guide.label.clone()).collect::<Vec<_>>();
        assert_eq!(split(&all).iter().map(labels).collect::<Vec<_>>(), [["raid0x4", "bus"], ["raid5x4", "bus"]]);
    }

    #[test]
    fn charts_of_one_kind_have_about_as_many_lines() {
        let six = ["jbodx1", "jbodx2", "jbodx3", "jbodx4", "jbodx5", "jbodx6"];
        let wanted = [
            "Without redundancy, 1 of 2: JBOD x1, JBOD x2, JBOD x3",
            "Without redundancy, 2 of 2: JBOD x4, JBOD x5, JBOD x6",
        ];
        assert_eq!(dealt(&six), wanted);
    }

    #[test]
    fn five_lines_stay_in_one_chart_and_no_chart_has_more() {
        let five = ["raid0x2", "raid0x3", "raid0x4", "raid0x5", "raid5x4"];
        assert_eq!(split(&lines(&five)).len(), 1);
        let many: Vec<String> = (4..43).map(|n| format!("raid{}x{n}", [0, 5, 6, 10][n % 4])).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let parts = split(&lines(&many));
        assert!(parts.iter().all(|part| part.lines.series.len() <= LINES_MAX));
        assert_eq!(parts.iter().map(|part| part.lines.series.len()).sum::<usize>(), many.len());
    }
}
