//! Real and simulated targets in one report. On a linear scale the highest rate would show all others near zero.

use super::super::data::{Bars, Chart, LineChart, ReportSubject, Review, Scale};
use super::super::findings::answer;
use super::Chapter;
use std::collections::BTreeSet;

/// If the lines or bars of a chart differ by more than this factor, the chart gets a scale by powers of ten.
const FAR_APART: f64 = 20.0;

/// Does a report have both kinds of targets?
pub(super) fn is_mixed(chapters: &[Chapter]) -> bool {
    let trials = || chapters.iter().flat_map(|chapter| &chapter.trials);
    let real = |simulated: bool| trials().any(|trial| trial.spec.effort.is_a_time() != simulated);
    real(true) && real(false)
}

/// Gives each chart an answer for the measured subjects and one for the simulated ones. A single answer would compare a
/// machine with the model of another one.
pub(super) fn answer_apart(review: &mut Review, chapters: &[Chapter]) {
    let labels = |simulated: bool| -> BTreeSet<String> {
        let trials = chapters.iter().flat_map(|chapter| &chapter.trials);
        let of_kind = trials.filter(|trial| trial.spec.effort.is_a_time() != simulated);
        of_kind.filter_map(|trial| trial.spec.label.clone()).collect()
    };
    let simulated: BTreeSet<String> = labels(true).difference(&labels(false)).cloned().collect();
    for panel in review.sections.iter_mut().flat_map(|section| &mut section.panels) {
        if panel.answer.is_empty() {
            panel.answer = apart(&panel.chart, &simulated);
        }
    }
}

/// Both answers, or an empty text if the chart has subjects of one kind only.
fn apart(chart: &Chart, simulated: &BTreeSet<String>) -> String {
    let is_simulated = |subject: &ReportSubject| subject.variant.differences().any(|label| simulated.contains(label));
    let part = |wanted: bool| -> Option<Chart> {
        let part = match chart {
            Chart::Lines(lines) => {
                let of_kind = lines.series.iter().filter(|series| is_simulated(&series.subject) == wanted);
                Chart::Lines(LineChart { series: of_kind.cloned().collect(), ..lines.clone() })
            }
            Chart::Bars(bars) => {
                let of_kind = bars.bars.iter().filter(|bar| is_simulated(&bar.subject) == wanted);
                Chart::Bars(Bars { bars: of_kind.cloned().collect(), ..bars.clone() })
            }
            Chart::Heat(_) => return None,
        };
        Some(part)
    };
    let words = |wanted: bool| part(wanted).map(|chart| answer(&chart)).unwrap_or_default();
    match (words(false), words(true)) {
        (measured, predicted) if measured.is_empty() || predicted.is_empty() => String::new(),
        (measured, predicted) => format!("Measured: {measured} Simulated: {predicted}"),
    }
}

/// Gives a chart a scale by powers of ten if its subjects differ by more than [`FAR_APART`]. Charts of one group have
/// the same scale.
pub(super) fn by_powers(review: &mut Review) {
    for section in &mut review.sections {
        let far: Vec<(String, bool)> =
            section.panels.iter().map(|panel| (panel.group.clone(), far_apart(&panel.chart))).collect();
        for (number, panel) in section.panels.iter_mut().enumerate() {
            let grouped = far.iter().any(|(group, far)| *far && !group.is_empty() && *group == panel.group);
            if !far[number].1 && !grouped {
                continue;
            }
            match &mut panel.chart {
                Chart::Lines(lines) if lines.y.scale == Scale::Linear => lines.y.scale = Scale::Log10,
                Chart::Bars(bars) if bars.value.scale == Scale::Linear => bars.value.scale = Scale::Log10,
                _ => (),
            }
        }
    }
}

/// Do the highest figures of the subjects differ by more than [`FAR_APART`]? A chart with a figure that is not positive
/// cannot have such a scale.
fn far_apart(chart: &Chart) -> bool {
    let tops: Vec<f64> = match chart {
        Chart::Lines(lines) => {
            let points = || lines.series.iter().flat_map(|series| &series.points);
            if points().any(|point| point.y <= 0.0) {
                return false;
            }
            let top = |ys: &mut dyn Iterator<Item = f64>| ys.fold(0.0, f64::max);
            lines.series.iter().map(|series| top(&mut series.points.iter().map(|point| point.y))).collect()
        }
        Chart::Bars(bars) => bars.bars.iter().map(|bar| bar.value.y).collect(),
        Chart::Heat(_) => return false,
    };
    let known: Vec<f64> = tops.into_iter().filter(|top| top.is_finite()).collect();
    let least = known.iter().copied().fold(f64::INFINITY, f64::min);
    least > 0.0 && known.iter().any(|top| top / least > FAR_APART)
}

#[cfg(test)]
mod tests {
    use super::super::super::data::{
        Bar, Bars, ChartAxis, Level, LineChart, Panel, Point, ReportSection, ReportSubject, Series, Unit,
    };
    use super::*;

    fn chart(tops: [f64; 2]) -> Chart {
        let series = |(members, top): (u16, f64)| {
            let points = vec![Point::exact(1.0, top / 2.0), Point::exact(2.0, top)];
            Series::line(ReportSubject::new(Level::Raid0, members), points)
        };
        let axis = |name: &str| ChartAxis::new(name, Unit::None, Scale::Linear);
        let series = (2..).zip(tops).map(series).collect();
        Chart::Lines(LineChart { x: axis("x"), y: axis("y"), series, guides: Vec::new() })
    }

    fn bars(values: [f64; 2]) -> Chart {
        let bar = |(members, value): (u16, f64)| Bar {
            subject: ReportSubject::new(Level::Raid0, members),
            value: Point::exact(0.0, value),
        };
        let value = ChartAxis::new("rating", Unit::None, Scale::Linear);
        Chart::Bars(Bars { value, bars: (2..).zip(values).map(bar).collect(), formula: String::new() })
    }

    #[test]
    fn an_answer_never_compares_a_measured_subject_with_a_simulated_one() {
        let simulated = BTreeSet::from(["model".to_owned()]);
        let Chart::Bars(mut all) = bars([300.0, 200.0]) else { panic!("bars") };
        all.value.better = super::super::super::data::Better::Higher;
        all.bars.extend([3.0, 2.0].iter().zip(2..).map(|(y, members)| Bar {
            subject: ReportSubject::new(Level::Raid0, members).variant("model"),
            value: Point::exact(0.0, *y),
        }));
        assert_eq!(
            apart(&Chart::Bars(all), &simulated),
            "Measured: RAID 0 x2 is best with 300; RAID 0 x3 is last with 200. Simulated: RAID 0 x2, model is best with 3.00; \
             RAID 0 x3, model is last with 2.00."
        );
        assert_eq!(apart(&bars([3.0, 2.0]), &simulated), "");
    }

    #[test]
    fn only_subjects_that_are_far_apart_get_powers_of_ten() {
        let panel = |group: &str, chart| Panel { group: group.into(), ..Panel::new("?", chart) };
        let panels = vec![
            panel("", chart([100.0, 90_000.0])),
            panel("", chart([100.0, 900.0])),
            panel("", chart([0.0, 900.0])),
            panel("g", chart([100.0, 90_000.0])),
            panel("g", chart([100.0, 900.0])),
            panel("", bars([3.0, 300.0])),
            panel("", bars([0.0, 300.0])),
        ];
        let section = ReportSection { panels, ..ReportSection::default() };
        let mut review = Review { sections: vec![section], ..Review::default() };
        by_powers(&mut review);
        let scales = review.sections[0].panels.iter().map(|panel| match &panel.chart {
            Chart::Lines(lines) => lines.y.scale,
            Chart::Bars(bars) => bars.value.scale,
            Chart::Heat(_) => panic!("there is none"),
        });
        let (even, powers) = (Scale::Linear, Scale::Log10);
        assert_eq!(scales.collect::<Vec<_>>(), [powers, even, even, powers, powers, powers, even]);
    }
}
