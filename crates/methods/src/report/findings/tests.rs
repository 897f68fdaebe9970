//! Tests that compare sentences with the words and numbers of their data.

use super::*;
use crate::report::data::{
    Bar, Bars, ChartAxis, DecisionRate, Effect, FindingKind, Guide, GuideKind, Level, PartLoad, Point, ReportCell,
    ReportRow, ReportSubject, ReportTable, Unit,
};
use crate::report::format::capital;

fn depth() -> ChartAxis {
    ChartAxis::new("outstanding", Unit::None, Scale::Log2)
}

fn speed() -> ChartAxis {
    ChartAxis::new("speed", Unit::named("MB/s"), Scale::Linear).better(Better::Higher)
}

fn busy(part: MachinePart, busy: f64) -> Evidence {
    Evidence {
        loads: vec![PartLoad { part, busy }, PartLoad { part: MachinePart::Parity, busy: 0.2 }],
        rates: vec![],
        commands: None,
    }
}

fn bus(share: f64) -> Evidence {
    busy(MachinePart::Bus("PCI 64/33".into()), share)
}

fn series(name: &str, points: Vec<Point>) -> Series {
    let Ok(subject) = name.parse::<crate::cell::Subject>().map(ReportSubject::from) else {
        panic!("no subject: {name}")
    };
    Series::line(subject, points)
}

fn plain(name: &str, ys: &[f64]) -> Series {
    let mut x = 0.5;
    let point = |&y: &f64| {
        x *= 2.0;
        Point::exact(x, y)
    };
    series(name, ys.iter().map(point).collect())
}

fn lines(series: Vec<Series>) -> LineChart {
    LineChart { x: depth(), y: speed(), series, guides: vec![] }
}

fn texts(lines: &LineChart) -> Vec<String> {
    of_chart(&Chart::Lines(lines.clone())).into_iter().map(|finding| finding.text).collect()
}

#[test]
fn a_level_part_of_a_curve_is_reported_with_the_part_that_limits_it() {
    let ys = [(1.0, 60.0, 0.3), (2.0, 120.0, 0.6), (4.0, 200.0, 0.96), (8.0, 203.5, 0.97), (16.0, 203.0, 0.974)];
    let points = ys.iter().map(|&(x, y, share)| Point::exact(x, y).with(bus(share))).collect();
    let found = texts(&lines(vec![series("raid0x4", points)]));
    assert_eq!(found, ["RAID 0 x4 levels off at 204 MB/s from 4 outstanding on: PCI 64/33 is the limit (97 % busy)."]);
}

#[test]
fn a_level_stretch_without_a_busy_part_names_no_limit() {
    let ys = [(1.0, 60.0), (2.0, 100.0), (4.0, 101.0), (8.0, 102.0)];
    let points = ys.iter().map(|&(x, y)| Point::exact(x, y).with(bus(0.4))).collect();
    let found = texts(&lines(vec![series("raid5x4", points)]));
    let wanted = "RAID 5 x4 levels off at 102 MB/s from 2 outstanding on: no part is at its limit; the busiest, PCI \
                  64/33, works 40 % of the time.";
    assert_eq!(found, [wanted]);
    let found = texts(&lines(vec![plain("raid5x4", &[60.0, 100.0, 101.0, 102.0])]));
    assert_eq!(found, ["RAID 5 x4 levels off at 102 MB/s from 2 outstanding on."]);
}

#[test]
fn level_stretches_with_one_limit_share_a_sentence() {
    let level = |name: &str, top: f64, share: f64| {
        let ys = [top / 2.0, top, top, top];
        let mut x = 0.5;
        let point = |y: f64| {
            x *= 2.0;
            Point::exact(x, y).with(bus(share))
        };
        series(name, ys.into_iter().map(point).collect())
    };
    let found = texts(&lines(vec![level("raid0x4", 200.0, 0.97), level("raid5x4", 170.0, 0.93)]));
    let wanted = "RAID 0 x4 levels off at 200 MB/s from 2 outstanding on and RAID 5 x4 at 170 MB/s from 2 outstanding \
                  on: PCI 64/33 is the limit (93 to 97 % busy).";
    assert_eq!(found, [wanted]);
}

#[test]
fn a_dip_is_explained_by_what_happened_more_often_there() {
    let rate = |per_request: f64| Evidence {
        loads: vec![],
        commands: None,
        rates: vec![
            DecisionRate { what: "read-modify-write".into(), effect: Effect::Cost, per_request },
            DecisionRate { what: "read-ahead".into(), effect: Effect::Cost, per_request: 0.5 },
        ],
    };
    let points = vec![
        Point::exact(1.0, 60.0).with(rate(0.0)),
        Point::exact(2.0, 120.0).with(rate(0.02)),
        Point::exact(4.0, 88.0).with(rate(0.97)),
        Point::exact(8.0, 130.0).with(rate(0.05)),
        Point::exact(16.0, 160.0).with(rate(0.05)),
    ];
    let found = texts(&lines(vec![series("raid5x4", points)]));
    let wanted = "RAID 5 x4 dips to 88.0 MB/s at 4 outstanding (120 MB/s and 130 MB/s next to it): read-modify-write \
                  0.97 times per request, not 0.02 and 0.05.";
    assert_eq!(found, [wanted]);
}

#[test]
fn a_dip_within_the_spread_of_the_runs_is_none() {
    let points = vec![Point::exact(1.0, 120.0), Point::spread(2.0, 88.0, 80.0, 125.0, 3), Point::exact(4.0, 130.0)];
    let found = texts(&lines(vec![series("raid5x4", points)]));
    assert_eq!(found, ["1 of 3 results is noisy; the worst, RAID 5 x4 at 2 outstanding, spreads by 51 % over 3 runs."]);
}

#[test]
fn a_fall_is_reported_relative_to_its_peak() {
    let points = [(1.0, 50.0, 0.5), (2.0, 90.0, 0.7), (4.0, 80.0, 0.8), (8.0, 60.0, 0.99)];
    let part = MachinePart::ControllerCpu;
    let points = points.iter().map(|&(x, y, share)| Point::exact(x, y).with(busy(part.clone(), share))).collect();
    let found = texts(&lines(vec![series("raid50x8", points)]));
    let wanted = "RAID 50 x8 falls from 90.0 MB/s at 2 outstanding to 60.0 MB/s at 8 outstanding: the controller's \
                  processor works 99 % of the time, not 70 %.";
    assert_eq!(found, [wanted]);
}

#[test]
fn lines_with_the_same_limit_share_a_sentence() {
    let points =
        |y: f64, share: f64| vec![Point::exact(1.0, y).with(bus(0.4)), Point::exact(2.0, 2.0 * y).with(bus(share))];
    let all = vec![series("raid0x3", points(90.0, 0.93)), series("raid5x4", points(80.0, 0.98))];
    assert_eq!(texts(&lines(all)), ["PCI 64/33 is the limit of RAID 0 x3 and RAID 5 x4 at best (93 to 98 % busy)."]);
}

#[test]
fn doubtful_results_are_warned_of_first() {
    let mut all = lines(vec![series(
        "raid0x2",
        vec![Point::exact(1.0, 300.0), Point::exact(2.0, 700.0).with(busy(MachinePart::Generator, 0.95))],
    )]);
    all.guides.push(Guide {
        label: "DMI 2".into(),
        kind: GuideKind::Limit,
        subject: None,
        corners: vec![(0.0, 600.0)],
    });
    let wanted = [
        "From 2 outstanding on the load generator is the limit (95 % busy) of RAID 0 x2: the array may be faster than \
         shown.",
        "RAID 0 x2 makes 700 MB/s at 2 outstanding, more than DMI 2 can carry: a cache above it has answered.",
    ];
    assert_eq!(texts(&all), wanted);
    assert!(of_chart(&Chart::Lines(all)).iter().all(|finding| finding.kind == FindingKind::Warning));
}

#[test]
fn more_drives_with_little_gain_are_reported_with_the_reason() {
    let points =
        |y: f64, share: f64| vec![Point::exact(1.0, y / 2.0).with(bus(0.5)), Point::exact(2.0, y).with(bus(share))];
    let all = vec![series("raid0x4", points(1200.0, 0.85)), series("raid0x6", points(1224.0, 0.99))];
    let found = texts(&lines(all));
    let wanted =
        "RAID 0: the best speed grows from 4 to 6 drives 1.02 times (1.50 would be perfect): PCI 64/33 is the \
                  limit (99 % busy).";
    assert_eq!(found[1], wanted);
}

#[test]
fn steps_with_the_same_cause_share_a_sentence() {
    let drives =
        |name: &str, y: f64| series(name, vec![Point::exact(1.0, y / 2.0), Point::exact(2.0, y).with(bus(0.99))]);
    let all = vec![drives("jbodx3", 150.0), drives("jbodx4", 159.0), drives("jbodx5", 159.0)];
    let found = texts(&lines(all));
    let wanted =
        "JBOD: the best speed grows from 3 to 4 drives 1.06 times (1.33 would be perfect) and from 4 to 5 drives \
                  1.00 times (1.25): PCI 64/33 is the limit (99 % busy).";
    assert_eq!(found, ["PCI 64/33 is the limit of all of them at best (99 % busy).", wanted]);
}

#[test]
fn shares_of_the_ideal_and_of_the_healthy_array_are_reported() {
    let mut degraded = plain("raid5x4", &[40.0, 62.0]);
    degraded.subject.variant = "degraded".into();
    let mut all = lines(vec![plain("raid5x4", &[100.0, 100.0]), degraded]);
    let subject = ReportSubject::new(Level::Raid5, 4);
    let corners = vec![(1.0, 110.0), (2.0, 125.0)];
    all.guides.push(Guide {
        label: "ideal: 3 single drives".into(),
        kind: GuideKind::Ideal,
        subject: Some(subject),
        corners,
    });
    let wanted = [
        "RAID 5 x4 reaches 80 % of what 3 single drives would make at 2 outstanding.",
        "RAID 5 x4, degraded: 40 to 62 % of the speed of RAID 5 x4.",
    ];
    assert_eq!(texts(&all), wanted);
}

#[test]
fn tails_of_distributions_are_reported() {
    let axis = ChartAxis::new("latency", Unit::named("us"), Scale::Log10).better(Better::Lower);
    let points = |f: f64| vec![Point::exact(50.0, 20.0), Point::exact(99.0, 100.0 * f), Point::exact(100.0, 20_000.0)];
    let all = LineChart {
        x: ChartAxis::new("requests", Unit::Percent, Scale::Nines),
        y: axis,
        series: vec![series("single", points(1.0)), series("raid1x2", points(0.5))],
        guides: vec![],
    };
    let wanted =
        "Single: one request in a hundred takes 100 us or more, 5.00 times the median of 20.0 us; the slowest \
                  takes 20,000 us.";
    assert_eq!(capital(&texts(&all)[0]), wanted);
    let words = answer(&Chart::Lines(all));
    assert_eq!(words, "99 of 100 requests take at most 50.0 us on RAID 1 x2, 100 us on single.");
}

#[test]
fn answers_name_the_leader_and_its_lead() {
    let all = |series| answer(&Chart::Lines(lines(series)));
    let steady =
        all(vec![plain("single", &[50.0, 60.0]), plain("raid0x4", &[100.0, 240.0]), plain("raid5x4", &[99.0, 200.0])]);
    assert_eq!(steady, "RAID 0 x4 is best throughout, with 240 MB/s at 2 outstanding, 4.0 times the single drive.");
    let level = all(vec![plain("raid0x4", &[100.0, 240.0]), plain("raid5x4", &[99.0, 238.0])]);
    assert_eq!(level, "All are level throughout, with 240 MB/s at 2 outstanding.");
    let crossing =
        all(vec![plain("raid10x4", &[100.0, 110.0, 120.0, 130.0]), plain("raid0x4", &[80.0, 120.0, 170.0, 260.0])]);
    let wanted =
        "RAID 10 x4 is best at first (100 MB/s at 1 outstanding), from 2 outstanding on RAID 0 x4 (260 MB/s at 8 \
                  outstanding, 2.0 times RAID 10 x4).";
    assert_eq!(crossing, wanted);
    let alone = all(vec![plain("raid5x3", &[10.0, 40.0, 30.0])]);
    let wanted =
        "RAID 5 x3 goes from 10.0 MB/s at 1 outstanding to 30.0 MB/s at 4 outstanding, with a peak of 40.0 MB/s at \
                  2 outstanding.";
    assert_eq!(alone, wanted);
}

#[test]
fn tables_of_ratios_are_summed_up() {
    let row = |head: &str, cells: &[f64]| ReportRow {
        head: head.into(),
        level: None,
        cells: cells.iter().map(|&ratio| ReportCell::Ratio(ratio)).collect(),
    };
    let mut table = ReportTable {
        corner: "% reads".into(),
        columns: vec!["depth 1".into(), "depth 16".into()],
        rows: vec![row("0", &[6.04, 1.3]), row("100", &[1.0, 0.82])],
        ..ReportTable::default()
    };
    let found = ratios(&table, "Write-back").map(|finding| finding.text);
    let wanted =
        "Write-back helps in 2 of 4 cells (most 6.0 times, 0 % reads, depth 1) and harms in 1 (down to 0.8 times, \
                  100 % reads, depth 16).";
    assert_eq!(found.as_deref(), Some(wanted));
    table.rows.clear();
    assert_eq!(ratios(&table, "Write-back"), None);
}

#[test]
fn a_state_that_outlives_a_test_is_found_by_the_order_of_tests() {
    let (first, second) =
        (lines(vec![plain("raid5x8", &[400.0, 410.0])]), lines(vec![plain("raid5x8", &[402.0, 205.0])]));
    let wanted = "RAID 5 x8: 1 of 2 results depends on the order of the tests, most at 2 outstanding: 410 MB/s in the \
                  first cycle, 205 MB/s in the second. Something keeps a state between tests.";
    assert_eq!(order_effect(&first, &second)[0].text, wanted);
    assert_eq!(order_effect(&first, &first), []);
}

#[test]
fn the_figure_of_the_best_is_from_a_place_where_no_other_is_level() {
    let answer = |series: Vec<Series>| answer(&Chart::Lines(lines(series)));
    let leads = answer(vec![plain("single", &[100.0, 100.0, 125.0]), plain("raid0x2", &[100.0, 150.0, 125.0])]);
    let wanted = "RAID 0 x2 is best throughout, with 150 MB/s at 2 outstanding";
    assert!(leads.starts_with(wanted), "{leads}");
    let alone = answer(vec![plain("single", &[100.0, 100.0]), plain("raid0x2", &[150.0, 200.0])]);
    assert!(alone.starts_with("RAID 0 x2 is best throughout, with 200 MB/s at 2 outstanding"), "{alone}");
    // The figure is taken where the lead is largest.
    let most = answer(vec![plain("single", &[100.0, 130.0]), plain("raid0x2", &[190.0, 133.0])]);
    let wanted = "RAID 0 x2 is best throughout, with 190 MB/s at 1 outstanding, 1.9 times the single drive.";
    assert_eq!(most, wanted);
    let three = answer(vec![
        plain("single", &[100.0, 50.0]),
        plain("raid0x2", &[100.0, 100.0]),
        plain("raid1x2", &[50.0, 100.0]),
    ]);
    assert_eq!(three, "RAID 0 x2 is best or level with the best throughout, with 100 MB/s at 2 outstanding.");
}

#[test]
fn every_leader_between_the_first_and_the_last_is_named() {
    let answer = |series: Vec<Series>| answer(&Chart::Lines(lines(series)));
    let three = answer(vec![
        plain("single", &[100.0, 100.0, 100.0, 100.0]),
        plain("raid0x2", &[90.0, 150.0, 150.0, 150.0]),
        plain("raid5x4", &[50.0, 90.0, 150.0, 200.0]),
    ]);
    let wanted = "single is best at first (100 MB/s at 1 outstanding), at 2 outstanding RAID 0 x2 (150 MB/s), from 4 \
                  outstanding on RAID 5 x4 (200 MB/s at 8 outstanding, 2.0 times the single drive).";
    assert_eq!(three, wanted);
    let at_the_last = answer(vec![plain("raid1x2", &[100.0, 100.0]), plain("raid0x2", &[90.0, 150.0])]);
    let wanted = "RAID 1 x2 is best at first (100 MB/s at 1 outstanding), at 2 outstanding RAID 0 x2 (150 MB/s, 1.5 \
                  times RAID 1 x2).";
    assert_eq!(at_the_last, wanted);
    let turns = |even: f64, other: f64| (0..6).map(|turn| if turn % 2 == 0 { even } else { other }).collect::<Vec<_>>();
    let many = answer(vec![plain("raid1x2", &turns(100.0, 50.0)), plain("raid0x2", &turns(50.0, 100.0))]);
    let wanted = "The lead changes 5 times: RAID 1 x2 at first (100 MB/s at 1 outstanding), RAID 0 x2 in the end (100 \
                  MB/s at 32 outstanding, 2.0 times RAID 1 x2).";
    assert_eq!(many, wanted);
}

fn bars(value: ChartAxis, bars: &[(&str, f64)]) -> Bars {
    let bar = |&(name, y): &(&str, f64)| match name.parse::<crate::cell::Subject>().ok().map(ReportSubject::from) {
        Some(subject) => Bar { subject, value: Point::exact(0.0, y) },
        None => Bar { subject: ReportSubject::new(Level::Single, 1).named(name), value: Point::exact(0.0, y) },
    };
    Bars { value, bars: bars.iter().map(bar).collect(), formula: String::new() }
}

fn response() -> ChartAxis {
    ChartAxis::new("mean response", Unit::named("ms"), Scale::Linear).better(Better::Lower)
}

#[test]
fn one_bar_alone_is_its_own_answer() {
    let answer = |value, all: &[(&str, f64)]| answer(&Chart::Bars(bars(value, all)));
    assert_eq!(answer(response(), &[("real.img", 0.439)]), "real.img: 0.439 ms.");
    assert_eq!(answer(response(), &[("real.img", 0.439), ("single", f64::NAN)]), "real.img: 0.439 ms.");
    let rating = ChartAxis::new("rating R1", Unit::None, Scale::Linear).better(Better::Higher);
    assert_eq!(answer(rating, &[("raid5x4", 512.0)]), "RAID 5 x4: rating R1 of 512.");
    assert_eq!(answer(response(), &[]), "");
}

#[test]
fn level_bars_with_one_figure_name_it_once() {
    let answer = |all: &[(&str, f64)]| answer(&Chart::Bars(bars(response(), all)));
    assert_eq!(answer(&[("single", 7.841), ("raid0x2", 7.842)]), "All are level, with 7.84 ms.");
    assert_eq!(answer(&[("single", 7.9), ("raid0x2", 7.84)]), "All are level, from 7.84 ms to 7.90 ms.");
}

/// A line with unsteady points at these positions.
fn unsteady_at(name: &str, ys: &[f64], places: &[f64]) -> Series {
    let mut line = plain(name, ys);
    line.points.iter_mut().for_each(|point| point.unsteady = places.contains(&point.x));
    line
}

#[test]
fn sentences_use_unsteady_results_only_if_there_is_no_other() {
    let steady = vec![plain("raid0x2", &[100.0, 150.0]), plain("raid5x4", &[90.0, 140.0, 150.0])];
    let fallen = vec![plain("raid0x2", &[100.0, 150.0]), unsteady_at("raid5x4", &[90.0, 140.0, 150.0, 90.0], &[8.0])];
    let [steady, fallen] = [steady, fallen].map(|series| Chart::Lines(lines(series)));
    assert_eq!(answer(&fallen), format!("{} Left out: 1 result that was not steady.", answer(&steady)));
    assert_eq!(of_chart(&fallen), of_chart(&steady));
    let alone = Chart::Lines(lines(vec![unsteady_at("raid5x4", &[90.0, 140.0, 150.0, 90.0], &[4.0, 8.0])]));
    let wanted =
        "RAID 5 x4 goes from 90.0 MB/s at 1 outstanding to 140 MB/s at 2 outstanding. Left out: 2 results that \
                  were not steady.";
    assert_eq!(answer(&alone), wanted);
    let mut bars = bars(response(), &[("single", 5.0), ("raid0x2", 4.0), ("raid5x4", 3.0)]);
    bars.bars[2].value.unsteady = true;
    let wanted = "RAID 0 x2 is best with 4.00 ms; single is last with 5.00 ms. Left out: 1 result that was not steady.";
    assert_eq!(answer(&Chart::Bars(bars)), wanted);
}

#[test]
fn no_line_leads_if_a_better_one_was_not_steady() {
    let fast = unsteady_at("raid0x4", &[100.0, 200.0, 400.0], &[2.0]);
    let chart = Chart::Lines(lines(vec![fast, plain("raid5x4", &[50.0, 60.0, 70.0])]));
    let wanted =
        "RAID 0 x4 is best throughout, with 400 MB/s at 4 outstanding, 5.7 times RAID 5 x4. Left out: 1 result that \
                  was not steady.";
    assert_eq!(answer(&chart), wanted);
    // Most were not steady, so the rest is no answer.
    let fast = unsteady_at("raid0x4", &[100.0, 200.0, 400.0], &[1.0, 2.0]);
    let chart = Chart::Lines(lines(vec![fast, unsteady_at("raid5x4", &[50.0, 60.0, 70.0], &[1.0, 2.0])]));
    assert_eq!(answer(&chart), "No answer: 4 of 6 results were not steady when they were measured.");
    // Nothing is decided.
    let fast = unsteady_at("raid0x4", &[100.0, 200.0], &[1.0, 2.0]);
    let chart = Chart::Lines(lines(vec![fast, plain("raid5x4", &[50.0, 60.0])]));
    assert_eq!(answer(&chart), "No answer: 2 of 4 results were not steady when they were measured.");
}

#[test]
fn without_steady_results_there_is_no_answer() {
    let all = Chart::Lines(lines(vec![unsteady_at("raid5x4", &[90.0, 140.0], &[1.0, 2.0])]));
    let wanted = "No answer: none of this was steady when it was measured.";
    assert_eq!(answer(&all), wanted);
    let mut bars = bars(response(), &[("real.img", 0.439)]);
    bars.bars[0].value.unsteady = true;
    assert_eq!(answer(&Chart::Bars(bars)), wanted);
}

#[test]
fn a_prediction_is_held_against_measurements_that_were_not_steady() {
    let mut measured = unsteady_at("raid5x4", &[110.0, 110.0], &[1.0]);
    measured.mark = Mark::Points;
    let wanted =
        "Prediction differs from its counterpart by 9.1 % on average over 2 places, at worst by 9.1 % (RAID 5 x4 at 1 \
                  outstanding). Not steady when they were measured: 1 of 4 results.";
    assert_eq!(answer(&Chart::Lines(lines(vec![plain("raid5x4", &[100.0, 100.0]), measured]))), wanted);
}

#[test]
fn enough_is_the_first_place_that_is_level_with_the_best() {
    let cache = ChartAxis::new("cache", Unit::named("MiB"), Scale::Linear);
    let line = |name: &str, ys: [f64; 3]| {
        let points = [0.0, 128.0, 256.0].into_iter().zip(ys).map(|(x, y)| Point::exact(x, y)).collect();
        series(name, points)
    };
    // 98.1 of 100 count as equal, 97.9 do not. The last line falls and equals no other.
    let all = vec![
        line("single", [98.1, 100.0, 100.0]),
        line("raid0x2", [97.9, 99.0, 100.0]),
        line("raid5x4", [50.0, 100.0, 60.0]),
    ];
    let mut lines = LineChart { x: cache, ..lines(all) };
    let wanted =
        "The smallest cache within 2.0 % of the best is 0 MiB for single (98.1 MB/s); 128 MiB for RAID 0 x2 (99.0 \
                  MB/s) and RAID 5 x4 (100 MB/s).";
    assert_eq!(enough(&lines, "cache"), wanted);
    lines.series.truncate(2);
    lines.series[0].points[0].unsteady = true;
    let wanted =
        "The smallest cache within 2.0 % of the best is 128 MiB for RAID 0 x2 (99.0 MB/s). Left out: 1 result that was \
                  not steady.";
    assert_eq!(enough(&lines, "cache"), wanted, "the smaller cache of the single drive is not known");
    // One steady size of a line is the best of nothing.
    lines.series.truncate(1);
    lines.series[0].points[0].unsteady = false;
    lines.series[0].points[1].unsteady = true;
    lines.series[0].points[2].unsteady = true;
    let wanted = "No answer: 2 of 3 results were not steady when they were measured.";
    assert_eq!(enough(&lines, "cache"), wanted);
    lines.series.clear();
    assert_eq!(enough(&lines, "cache"), "");
}

/// Bars with three runs: lowest, median, highest.
fn runs(value: ChartAxis, all: &[(&str, [f64; 3])]) -> Bars {
    let mut bars = bars(value, &all.iter().map(|(name, _)| (*name, 0.0)).collect::<Vec<_>>());
    for (bar, (_, [low, y, high])) in bars.bars.iter_mut().zip(all) {
        bar.value = Point::spread(0.0, *y, *low, *high, 3);
    }
    bars
}

#[test]
fn repetitions_are_reported_by_the_largest_spread() {
    let (narrow, wide) = (("raid5x4", [99.0, 100.0, 101.0]), ("single", [48.0, 50.0, 51.0]));
    let wanted = "single spreads most, by 6.0 %, from 48.0 MB/s to 51.0 MB/s in 3 runs.";
    assert_eq!(apart(&runs(speed(), &[narrow, wide])), wanted);
    let wanted = "RAID 5 x4 spreads by 2.0 %, from 99.0 MB/s to 101 MB/s in 3 runs.";
    assert_eq!(apart(&runs(speed(), &[narrow])), wanted);
    let same = [("single", [50.0; 3]), ("raid0x2", [90.0; 3])];
    let wanted = "All runs come to the same: single with 50.0 MB/s and RAID 0 x2 with 90.0 MB/s.";
    assert_eq!(apart(&runs(speed(), &same)), wanted);
    assert_eq!(apart(&bars(speed(), &[("single", 50.0)])), "", "of one run nothing is apart");
}

#[test]
fn the_best_run_is_reported_with_its_distance_from_the_median() {
    let three = [("raid5x4", [99.0, 100.0, 101.0]), ("single", [48.0, 50.0, 51.0]), ("raid0x2", [72.0, 80.0, 84.0])];
    let wanted = "The best of 3 runs is RAID 5 x4 with 101 MB/s, 1.0 % better than its median; of the others the best run \
                  is 2.0 to 5.0 % better than theirs. RAID 0 x2 spreads most, by 15 %, from 72.0 MB/s to 84.0 MB/s in 3 \
                  runs.";
    assert_eq!(best_run(&runs(speed(), &three)), wanted);
    let wanted =
        "The best of 3 runs is single with 48.0 ms, 4.0 % better than its median. single spreads by 6.0 %, from \
                  48.0 ms to 51.0 ms in 3 runs.";
    assert_eq!(best_run(&runs(response(), &three[1..2])), wanted);
    assert_eq!(best_run(&bars(speed(), &[("single", 50.0)])), "");
}

#[test]
fn changes_are_reported_from_the_lowest_to_the_highest() {
    let named =
        |all: &[(f64, &str)]| changes(&all.iter().map(|(y, name)| (*y, (*name).to_owned())).collect::<Vec<_>>());
    let all = named(&[(3.0, "single"), (-0.3, "RAID 0 x2"), (14.2, "RAID 5 x4"), (f64::NAN, "none")]);
    assert_eq!(all.as_deref(), Some("from -0.3 % (RAID 0 x2) to +14 % (RAID 5 x4)"));
    assert_eq!(named(&[(0.02, "a"), (0.01, "b")]).as_deref(), Some("0.0 % for all"));
    assert_eq!(named(&[(3.0, "single")]).as_deref(), Some("+3.0 % (single)"));
    assert_eq!(named(&[]), None);
}

#[test]
fn a_part_is_described_by_its_share_of_the_whole() {
    let whole = lines(vec![plain("single", &[100.0, 100.0]), plain("raid5x4", &[200.0, 400.0])]);
    let mut part = lines(vec![plain("raid5x4", &[230.0, 600.0, 900.0]), plain("single", &[104.0, 110.0])]);
    let text_of = |part: &LineChart| part_of_whole(part, &whole, "The first halves");
    let wanted =
        "The first halves make 1.04 (single at 1 outstanding) to 1.50 times (RAID 5 x4 at 2 outstanding) the speed \
                  of the whole array.";
    assert_eq!(text_of(&part), wanted);
    part.series[0].points[1].unsteady = true;
    let wanted =
        "The first halves make 1.04 (single at 1 outstanding) to 1.15 times (RAID 5 x4 at 1 outstanding) the speed \
                  of the whole array. Left out: 1 result that was not steady.";
    assert_eq!(text_of(&part), wanted);
    assert_eq!(text_of(&whole), "The first halves make 1.00 times the speed of the whole array.");
    assert_eq!(text_of(&lines(vec![])), "");
}

#[test]
fn each_write_cache_has_an_answer_and_its_effect_a_sentence() {
    let with = |name: &str, ys: &[f64], cache: &str| {
        let mut one = plain(name, ys);
        one.subject.variant.add(cache);
        one
    };
    let all = Chart::Lines(lines(vec![
        with("single", &[100.0, 100.0], "write-back"),
        with("single", &[50.0, 80.0], "write-through"),
        with("raid5x4", &[150.0, 240.0], "write-back"),
        with("raid5x4", &[40.0, 60.0], "write-through"),
    ]));
    let wanted =
        "Write-back: RAID 5 x4 is best throughout, with 240 MB/s at 2 outstanding, 2.4 times the single drive. \
                  Write-through: single is best throughout, with 80.0 MB/s at 2 outstanding, 1.3 times RAID 5 x4.";
    assert_eq!(answer(&all), wanted);
    let found = of_chart(&all);
    let wanted =
        "Write-back makes 1.25 (single at 2 outstanding) to 4.00 times (RAID 5 x4 at 2 outstanding) the speed of \
                  write-through.";
    assert_eq!(found.last().map(|finding| finding.text.as_str()), Some(wanted));
}
