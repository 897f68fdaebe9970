//! Tests that compare reports with the figures of their cells.

use super::*;
use crate::cell::{
    ArrayState, Axes, CacheMode, CellNote, CellResult, Component, Cycle, Direction, Effort, MemberPart, MemberShare,
    PartName, Sample, Subject,
};
use crate::method::{find, Suite};
use crate::metrics::Scheme;
use crate::report::data::{Level, Mark, ReportCell, ReportSubject};
use crate::report::{render, terminal_text};
use crate::run::Absence;

fn result(spec: &CellSpec, iops: f64) -> CellResult {
    let tally = crate::metrics::Tally::default();
    CellResult {
        spec: spec.clone(),
        elapsed_ns: 1_000_000_000,
        requests: 1000,
        iops,
        mbps: iops / 10.0,
        reads: tally.clone(),
        writes: tally,
        latency: crate::cell::LatencySummary {
            count: 1000,
            mean_ns: 5e6,
            deviation_ns: 1e6,
            min_ns: 1_000_000,
            max_ns: 90_000_000,
            percentiles: vec![(50.0, 4_000_000), (99.0, 20_000_000), (99.99, 90_000_000)],
        },
        errors: 0,
        workers: vec![],
        members: vec![MemberShare { busy: 0.97, part: MemberPart::Medium, reads: 0, writes: 0, sectors: 0 }],
        components: vec![Component { name: PartName::Bus, busy: 0.5 }],
        host_cpu: Some(0.1),
        reasons: vec![("ReadModifyWriteFewer".into(), 400), ("ReadModifyWriteForced".into(), 100)],
        slices: vec![],
        curve: vec![Sample { at: 0.0, value: 70.0 }, Sample { at: 1e9, value: 50.0 }],
        score: Some(iops),
        capacity: 1 << 40,
        notes: vec![],
        steady: true,
        never_asked: 0,
        flushes: 0,
        rebuild_mbps: None,
        reshape_mbps: None,
        flags: Vec::new(),
    }
}

/// A method whose figures depend only on the position in the list.
fn chapter(name: &str, subjects: &[&str]) -> Chapter {
    let Some(method) = find(name) else { panic!("no method {name}") };
    let subjects = subjects.iter().map(|word| word.parse().unwrap()).collect();
    let suite = Suite {
        given: Some((Pattern::WebServer, Axes::default())),
        ..Suite::new("3ware-9650se", subjects, Effort::QUICK, 1)
    };
    let trials = method.cells(&suite).into_iter().zip(1..).map(|(spec, number)| {
        let outcome = Measurement::Measured(Box::new(result(&spec, 100.0 + f64::from(number % 97))));
        CellTrial { spec, outcome }
    });
    Chapter { method, trials: trials.collect(), refusal: String::new(), rank: None }
}

#[test]
fn the_test_bed_is_that_of_the_controller_which_the_cell_is_run_on() {
    let library = openraid_models::Library::builtin();
    let other = Axes { ctl: Some("lsi-8708em2".into()), ..Axes::default() };
    let cell = CellSpec::new("lsi-9260-8i", "raid5x8".parse().unwrap(), Pattern::Database).with(other);
    let facts = bed(&library, &cell).unwrap();
    let fact = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.clone()).unwrap();
    let controller = library.controller("lsi-8708em2").unwrap();
    assert!(fact("controller").starts_with(&controller.head.title), "{}", fact("controller"));
    assert!(fact("target").ends_with("profile lsi-8708em2"));
    assert_eq!(fact("bus").split(':').next(), Some(library.bus(&controller.bus).unwrap().title.as_str()));
    let uncertain = fact("estimated parameters");
    assert!(uncertain.contains("lsi-8708em2: ") && !uncertain.contains("lsi-9260-8i: "), "{uncertain}");
    // The drives are still those of the system.
    assert!(fact("drives").contains("MBA3073RC"), "{}", fact("drives"));
    let ways = limits(
        &library,
        &CellSpec::new("3ware-9650se", cell.subject, Pattern::Database)
            .with(Axes { ctl: Some("3ware-8506-8".into()), ..Axes::default() }),
    );
    let names: Vec<String> = ways.unwrap().into_iter().map(|way| way.name).collect();
    assert_eq!(names, [library.bus("pci64_66").unwrap().title.clone(), "data path".into()]);
}

#[test]
fn the_test_bed_tells_builds_apart_and_names_the_port_that_drives_share() {
    let library = openraid_models::Library::builtin();
    let cell = |system| CellSpec::new(system, Subject::Single, Pattern::Database);
    let fact = |system, name: &str| {
        let facts = bed(&library, &cell(system)).unwrap();
        facts.into_iter().find(|fact| fact.name == name).map(|fact| fact.value)
    };
    // The beginning of each digest in the stamp of stored cells.
    let stamp = crate::run::fingerprint(&library);
    let words: Vec<&str> = stamp.split(' ').collect();
    let version = format!("openraid {}, program {}, profiles {}", words[0], &words[1][..8], &words[2][..8]);
    assert_eq!(fact("openraid", "version"), Some(version));
    let title = &library.bus("sas6_x4").unwrap().title;
    let port = fact("openraid-expander", "shared port").unwrap();
    assert!(port.starts_with(&format!("{title}, up to 24 drives on each: ")) && port.contains("MB/s read"), "{port}");
    assert!(fact("icp-9024ro", "shared port").is_some_and(|port| port.starts_with("Ultra320 SCSI")));
    assert_eq!(fact("openraid", "shared port"), None);
    // Stored results name it, too.
    for (system, named) in [("openraid-expander", true), ("openraid", false)] {
        let spec = crate::cell::machine_spec(&library, &cell(system)).unwrap();
        let target = crate::target::SimTarget::new("x", &spec, &library).unwrap();
        let lines = &crate::target::Target::facts(&target).bed;
        assert_eq!(lines.iter().any(|line| line.to_string().starts_with("shared port: ")), named, "{lines:?}");
    }
}

#[test]
fn every_method_has_something_to_show() {
    let subjects = ["single", "raid0x2", "raid0x4", "raid5x4", "raid6x5", "raid10x4"];
    let chapters: Vec<Chapter> =
        crate::method::methods().iter().map(|method| chapter(method.name.word(), &subjects)).collect();
    let ceilings = [Ceiling { name: "bus".into(), read_mbps: 100.0, write_mbps: 90.0, shared: false }];
    for chapter in &chapters {
        let section = section(chapter, &ceilings);
        assert!(section.panels.len() + section.tables.len() > 0, "{} shows nothing", chapter.method.id);
        assert_eq!(section.absent, [], "{}", chapter.method.id);
    }
    let review = review("All", vec![], &chapters, &ceilings);
    let page = render(&review);
    assert!(page.contains("M17 Write-back against write-through") && !page.contains("NaN"));
    assert_eq!(page, render(&super::review("All", vec![], &chapters, &ceilings)));
    assert!(terminal_text::render(&review, 100).lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn repetitions_become_a_median_with_its_range() {
    let spec = CellSpec::new("x", "raid5x4".parse().unwrap(), Pattern::Database);
    let trials: Vec<CellTrial> = [300.0, 100.0, 200.0]
        .into_iter()
        .map(|iops| CellTrial { spec: spec.clone(), outcome: Measurement::Measured(Box::new(result(&spec, iops))) })
        .collect();
    let all: Vec<&CellTrial> = trials.iter().collect();
    let point = Figure::Iops.point(4.0, &all).unwrap();
    assert_eq!((point.x, point.y, point.low, point.high, point.runs), (4.0, 200.0, 100.0, 300.0, 3));
    let evidence = point.evidence.unwrap();
    assert_eq!((evidence.rates.len(), evidence.rates[0].per_request), (1, 0.5));
    assert_eq!(evidence.rates[0].what, "read-modify-writes");
    assert_eq!(evidence.loads.len(), 2);
}

#[test]
fn the_ratio_table_divides_write_back_by_write_through() {
    let mut chapter = chapter("wb-wt", &["raid5x4"]);
    for trial in &mut chapter.trials {
        let back = trial.spec.axes.cache == Some(CacheMode::WriteBack);
        let iops = if back && trial.spec.axes.rd == Some(0) { 600.0 } else { 100.0 };
        trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, iops)));
    }
    let section = section(&chapter, &[]);
    let table = &section.tables[0];
    assert_eq!((table.rows.len(), table.columns.len()), (11, 5));
    assert!(table.rows[0].cells.iter().all(|cell| *cell == ReportCell::Ratio(6.0)));
    assert!(table.rows[1].cells.iter().all(|cell| *cell == ReportCell::Ratio(1.0)));
    let wanted = "RAID 5 x4: write-back helps in 5 of 55 cells (most 6.0 times, 0 % reads, depth 1).";
    assert_eq!(section.findings[0].text, wanted);
}

/// The cells of two write caches, labelled as those of arrays that a review makes.
fn of_two_caches(name: &str, subjects: &[&str], iops: impl Fn(&CellSpec) -> f64) -> Chapter {
    let mut both = chapter(name, subjects);
    let again = both.trials.clone();
    both.trials.extend(again);
    let half = both.trials.len() / 2;
    for (number, trial) in both.trials.iter_mut().enumerate() {
        trial.spec.label = Some(if number < half { "write-back" } else { "write-through" }.into());
        trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, iops(&trial.spec))));
    }
    both
}

#[test]
fn each_write_cache_has_one_chart_with_all_arrays_and_the_ideal_of_its_own_drive() {
    let arrays = ["single", "raid0x2", "raid0x4", "raid0x8", "raid1x2", "raid10x8", "raid5x8", "raid50x8", "raid6x8"];
    let chapter = of_two_caches("web-server", &arrays, |spec| {
        let back = spec.label.as_deref() == Some("write-back");
        f64::from(spec.subject.members()) * if back { 300.0 } else { 100.0 }
    });
    let found = section(&chapter, &[]);
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    let ideals = lines
        .guides
        .iter()
        .map(|guide| (guide.subject.as_ref().unwrap().variant.to_string(), guide.label.clone(), guide.corners[8].1));
    let ideal = |cache: &str, y| (cache.to_owned(), "ideal: 8 single drives".to_owned(), y);
    let wanted = [ideal("write-back", 2400.0), ideal("write-through", 800.0)];
    assert!(ideals.clone().all(|one| wanted.contains(&one)) && ideals.count() == 6, "{:?}", lines.guides);
    let page = render(&review("All", vec![], &[chapter], &[]));
    let sides: Vec<&str> = page.split("class=\"side\"").collect();
    assert_eq!(sides.len(), 3, "two charts side by side");
    for (side, dashes) in sides[1..].iter().zip([0, 9]) {
        let names = |name: &str| side.matches(&format!(">{name}<")).count();
        assert!(arrays
            .iter()
            .all(|array| names(&array.parse::<Subject>().map(ReportSubject::from).unwrap().to_string()) > 0));
        let chart = side.split("</svg>").next().unwrap();
        assert_eq!(
            (chart.matches("class=\"line\"").count(), chart.matches("stroke-dasharray=\"9 4\"").count()),
            (9, dashes)
        );
    }
}

#[test]
fn tables_with_one_row_of_the_same_array_are_one_table() {
    let found = section(&chapter("fc-test", &["raid5x4"]), &[]);
    assert_eq!(found.tables.len(), 1);
    assert_eq!((found.tables[0].caption.as_str(), found.tables[0].rows.len()), ("RAID 5 x4", 8));
    assert_eq!(found.tables[0].rows[0].head, "NTFS, create: MB/s");
    assert_eq!(section(&chapter("fc-test", &["raid5x4", "raid6x5"]), &[]).tables.len(), 8);
    // A chart of one bar has no table.
    let page = |arrays: &[&str]| render(&review("All", vec![], &[chapter("fc-test", arrays)], &[]));
    assert_eq!(page(&["raid5x4"]).matches("<table").count(), 1);
    assert_eq!(page(&["raid5x4", "raid6x5"]).matches("<table").count(), 8 + 6);
}

#[test]
fn an_array_in_another_state_is_compared_with_itself_and_not_with_that_of_the_other_cache() {
    let both = of_two_caches("degraded", &["raid5x4"], |spec| {
        let back = if spec.label.as_deref() == Some("write-back") { 4.0 } else { 1.0 };
        back * if spec.state == ArrayState::Healthy { 100.0 } else { 50.0 }
    });
    let rows: Vec<String> = section(&both, &[]).tables[0].rows.iter().map(|row| row.head.clone()).collect();
    assert_eq!(rows, ["RAID 5 x4, write-back", "RAID 5 x4, write-through"]);
}

#[test]
fn a_cell_without_a_result_has_a_reason() {
    let mut chapter = chapter("file-server", &["single", "raid6x4"]);
    for trial in chapter.trials.iter_mut().filter(|trial| trial.spec.subject.members() == 4) {
        let reason = "the controller takes five drives for RAID 6".into();
        trial.outcome = Measurement::Absent(Absence { not_applicable: true, reason });
    }
    chapter.trials[2].outcome = Measurement::Absent(Absence { not_applicable: false, reason: "power failed".into() });
    let found = section(&chapter, &[]);
    let absent =
        Absent { what: "RAID 6, 4 drives".into(), reason: "the controller takes five drives for RAID 6".into() };
    assert_eq!(found.absent, [absent]);
    assert_eq!(found.findings[0].text, "1 of 18 cells failed and gave no result.");
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    assert_eq!((lines.series.len(), lines.series[0].points.len()), (1, 8));
    assert_eq!((lines.series[0].absent[0].x, lines.series[0].absent[0].reason.as_str()), (4.0, "power failed"));
    let refused = Chapter { refusal: "it writes".into(), ..chapter };
    assert_eq!(section(&refused, &[]).absent[0].reason, "it writes");
}

#[test]
fn a_cycle_that_differs_is_a_warning() {
    let mut chapter = chapter("repeatability", &["raid5x8"]);
    for trial in &mut chapter.trials {
        let mut result = result(&trial.spec, 100.0);
        let slow = trial.spec.axes.cyc == Some(Cycle::Second) && trial.spec.axes.op == Some(Direction::Write);
        result.latency.mean_ns = if slow { 9e6 } else { 6e6 };
        trial.outcome = Measurement::Measured(Box::new(result));
    }
    let found = section(&chapter, &[]);
    let wanted =
        "Response time, write: RAID 5 x8 depends on the order of the tests: +50 % in the second cycle. Something \
                  keeps a state.";
    assert_eq!(found.findings.iter().map(|finding| finding.text.as_str()).collect::<Vec<_>>(), [wanted]);
}

#[test]
fn a_real_target_that_differs_between_cycles_keeps_a_state_only_if_repetitions_say_so() {
    let real = |repeated: bool, unsteady: bool| {
        let mut chapter = chapter("repeatability", &["raid5x8"]);
        let again = if repeated { chapter.trials.clone() } else { Vec::new() };
        chapter.trials.extend(again.into_iter().map(|mut trial| {
            trial.spec.axes.rep = Some(2);
            trial
        }));
        for trial in &mut chapter.trials {
            trial.spec.effort = crate::review::Performance::real_effort(1);
            let mut result = result(&trial.spec, 100.0);
            let slow = trial.spec.axes.cyc == Some(Cycle::Second) && trial.spec.axes.op == Some(Direction::Write);
            result.latency.mean_ns = if slow { 9e6 } else { 6e6 };
            if unsteady {
                result.notes.push(CellNote::WarmUpUnsteady("after 10 requests and 1.000 s".into()));
            }
            trial.outcome = Measurement::Measured(Box::new(result));
        }
        let found = section(&chapter, &[]);
        found.findings.into_iter().map(|finding| finding.text).collect::<Vec<_>>()
    };
    let once =
        "1 of 2 results differ between the cycles by more than 5.0 %: +50 % (Response time, write: RAID 5 x8). Each \
                was measured once, and a real target also differs from run to run: --repeat 3 shows whether the order \
                of the tests is the cause.";
    assert_eq!(real(false, false)[0], once);
    let sure =
        "Response time, write: RAID 5 x8 depends on the order of the tests: +50 % in the second cycle. Something \
                keeps a state.";
    assert_eq!(real(true, false)[0], sure);
    assert!(real(false, true).iter().all(|text| !text.contains("differ") && !text.contains("state")));
}

#[test]
fn shares_of_a_healthy_array_leave_out_what_was_not_steady() {
    let told = |all: bool| {
        let mut chapter = chapter("degraded", &["raid5x4"]);
        for trial in &mut chapter.trials {
            let is_write = trial.spec.axes.rd == Some(0);
            let left = if trial.spec.state == ArrayState::Healthy || !is_write { 1.0 } else { 9.0 };
            let mut result = result(&trial.spec, 100.0 * left);
            result.latency.mean_ns = 5e6;
            if all || is_write {
                result.notes.push(CellNote::WarmUpUnsteady("after 10 requests and 1.000 s".into()));
            }
            trial.outcome = Measurement::Measured(Box::new(result));
        }
        section(&chapter, &[]).answer
    };
    let wanted =
        "Arrays keep 100 % with 1 missing and 100 % while rebuilding, depending on level and load. Left out: 2 \
                  comparisons with a result that was not steady.";
    assert_eq!(told(false), wanted);
    assert_eq!(told(true), "No answer: none of this was steady when it was measured.");
}

#[test]
fn degraded_arrays_are_measured_by_what_they_leave() {
    let mut chapter = chapter("degraded", &["raid5x4", "raid0x2"]);
    for trial in &mut chapter.trials {
        let left = if trial.spec.state == ArrayState::Healthy { 1.0 } else { 0.5 };
        let mut result = result(&trial.spec, 100.0 * left);
        result.latency.mean_ns = 5e6 / left;
        trial.outcome = Measurement::Measured(Box::new(result));
    }
    let found = section(&chapter, &[]);
    let texts: Vec<&str> = found.findings.iter().map(|finding| finding.text.as_str()).collect();
    let wanted = [
        "RAID 5 x4, 1 missing: 50 % of the healthy array's speed.",
        "RAID 5 x4, rebuilding: 50 % of the healthy array's speed.",
    ];
    assert_eq!(texts, wanted);
    let none = ReportCell::NotApplicable("the level does not survive it".into());
    assert_eq!(found.tables[0].rows[1].cells[1], none);
}

#[test]
fn the_page_has_the_number_of_requests_that_were_never_sent() {
    let mut cut = chapter("file-server", &["single"]);
    assert!(!section(&cut, &[]).findings.iter().any(|finding| finding.text.contains("never issued")));
    for (trial, never_asked) in cut.trials.iter_mut().zip([1_000_000, 234_567]) {
        let Measurement::Measured(result) = &mut trial.outcome else { panic!("all have results") };
        result.never_asked = never_asked;
    }
    let wanted = "2 of 9 cells ended early, as the target could not keep up: 1,234,567 requests were never issued.";
    assert!(section(&cut, &[]).findings.iter().any(|finding| finding.text == wanted));
}

#[test]
fn a_comparison_has_the_change_of_every_cell_that_both_have() {
    let cell = |qd: u32| {
        let axes = Axes { qd: Some(qd), ..Axes::default() };
        CellSpec::new("a", "raid5x4".parse().unwrap(), Pattern::FileServer).with(axes)
    };
    let run = |system: &str, factor: f64, depths: &[u32]| -> Vec<CellTrial> {
        let trial = |&qd: &u32| {
            let spec = CellSpec { system: system.into(), ..cell(qd) };
            let outcome = Measurement::Measured(Box::new(result(&spec, f64::from(qd) * factor)));
            CellTrial { spec, outcome }
        };
        depths.iter().map(trial).collect()
    };
    let review = comparison(("simulated", "served"), &run("a", 100.0, &[1, 2, 4]), &run("b", 110.0, &[1, 2, 4, 8]));
    assert_eq!(review.summary[0], "0 of 3 results differ by at most 5.0 %.");
    assert_eq!(review.summary[1], "1 cell is in one of the two only, and left out.");
    let table = &review.sections[0].tables[0];
    let ReportCell::Change(change) = table.rows[0].cells[2] else { panic!("no change") };
    assert!((change - 10.0).abs() < 1e-9);
    let Chart::Lines(lines) = &review.sections[0].panels[0].chart else { panic!("no lines") };
    assert_eq!((lines.series[0].mark, lines.series[1].mark), (Mark::Line, Mark::Points));
    assert_eq!(lines.series[0].subject.level, Level::Raid5);
}

#[test]
fn cells_of_no_method_are_drawn_over_the_axis_with_most_values() {
    let mut trials = Vec::new();
    for bs in [4096, 65536] {
        for qd in [1, 4, 16] {
            let axes = Axes { qd: Some(qd), bs: Some(bs), ..Axes::default() };
            let spec = CellSpec::new("a", "raid5x4".parse().unwrap(), Pattern::Random).with(axes);
            let outcome = Measurement::Measured(Box::new(result(&spec, f64::from(qd))));
            trials.push(CellTrial { spec, outcome });
        }
    }
    let review = sweep("A look", vec![], &trials);
    let questions: Vec<&str> = review.sections[0].panels.iter().map(|panel| panel.question.as_str()).collect();
    let wanted =
        ["How does the speed change with the queue (4 KiB)?", "How does the speed change with the queue (64 KiB)?"];
    assert_eq!(questions, wanted);
}

#[test]
fn the_ideal_shares_the_queue_among_its_drives() {
    let mut chapter = chapter("file-server", &["single", "raid0x2", "raid0x4"]);
    for trial in &mut chapter.trials {
        // The single drive does 100 more requests per second with each doubling of the queue: 100, 200, ... at 1, 2, 4,
        // ...
        let depth = trial.spec.axes.qd.unwrap_or(1);
        trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, 100.0 * f64::from(depth.ilog2() + 1))));
    }
    let found = section(&chapter, &[]);
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    let guide = &lines.guides[0];
    assert_eq!(guide.label, "ideal: 4 single drives");
    // At depths 1 and 2 one and two drives work. At depth 4 all four work with one request each, at depth 16 with four
    // each.
    let wanted = [(1.0, 100.0), (2.0, 200.0), (4.0, 400.0), (8.0, 800.0), (16.0, 1200.0)];
    assert_eq!(guide.corners[..5], wanted);
}

#[test]
fn the_ideal_of_a_mix_shares_the_queue_among_its_drives() {
    let mut chapter = chapter("database", &["single", "raid0x4", "raid10x4", "raid5x4"]);
    for trial in &mut chapter.trials {
        // The single drive: 100 at depth 1, 300 at 4, 500 at 16, ... and one more for each percent of reads.
        let depth = trial.spec.axes.qd.unwrap_or(1);
        let reads = f64::from(trial.spec.axes.rd.unwrap_or(0));
        let iops = f64::from(100 * (depth.ilog2() + 1)) + reads;
        trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, iops)));
    }
    let found = section(&chapter, &[]);
    for (question, at_none, at_all) in [("at 1 ", 100.0, 200.0), ("at 4 ", 400.0, 800.0), ("at 16 ", 1200.0, 1600.0)] {
        let panel = found.panels.iter().find(|panel| panel.question.contains(question)).unwrap();
        let Chart::Lines(lines) = &panel.chart else { panic!("no lines") };
        // In a mix the ideal number of drives is known only for RAID 0.
        let [guide] = lines.guides.as_slice() else { panic!("{question}: {:?}", lines.guides) };
        assert_eq!(guide.label, "ideal: 4 single drives");
        assert_eq!((guide.corners.first(), guide.corners.last()), (Some(&(0.0, at_none)), Some(&(100.0, at_all))));
    }
}

#[test]
fn ideals_are_of_the_drives_that_can_work() {
    let guides = |method: &str, op: Option<Direction>, subjects: &[&str]| {
        let mut chapter = chapter(method, subjects);
        for trial in &mut chapter.trials {
            trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, 720.0)));
        }
        chapter.trials.retain(|trial| trial.spec.axes.op == op);
        let found = section(&chapter, &[]);
        let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
        let labels: Vec<String> = lines.guides.iter().map(|guide| guide.label.clone()).collect();
        (labels, lines.guides.first().map(|guide| guide.corners[0].1))
    };
    // The single drive has 72 MB/s, so RAID 5 of four drives can reach at most 216 MB/s for its data.
    let alone = guides("sequential", Some(Direction::Read), &["single", "raid5x4"]);
    assert_eq!(alone, (vec!["ideal: 3 single drives".into()], Some(216.0)));
    let arrays = ["single", "raid0x4", "raid10x4", "raid6x5"];
    let (read, write) = (Some(Direction::Read), Some(Direction::Write));
    assert_eq!(
        guides("sequential", read, &arrays).0,
        ["ideal: 4 single drives", "ideal: 3 single drives", "ideal: 4 single drives"]
    );
    assert_eq!(
        guides("sequential", write, &arrays).0,
        ["ideal: 4 single drives", "ideal: 3 single drives", "ideal: 2 single drives"]
    );
    // Random reads find data on every drive. For a mix the ideal number of drives is unknown.
    assert_eq!(
        guides("web-server", None, &arrays).0,
        ["ideal: 4 single drives", "ideal: 5 single drives", "ideal: 4 single drives"]
    );
    assert_eq!(guides("file-server", None, &arrays).0, ["ideal: 4 single drives"]);
    assert_eq!(guides("file-server", None, &["single", "raid5x4"]).0, [""; 0]);
}

#[test]
fn a_single_drive_that_something_else_holds_back_promises_nothing() {
    let mut chapter = chapter("sequential", &["single", "raid0x4"]);
    for trial in &mut chapter.trials {
        let mut result = result(&trial.spec, 720.0);
        // Up to 2 KiB the bus has no idle time.
        result.components[0].busy = if trial.spec.axes.bs < Some(4096) { 0.99 } else { 0.5 };
        trial.outcome = Measurement::Measured(Box::new(result));
    }
    let found = section(&chapter, &[]);
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    assert_eq!(lines.guides[0].corners[0], (4096.0, 288.0));
}

#[test]
fn totals_and_indices_are_made_of_their_parts() {
    let mut scores = chapter("winmarks", &["raid5x4"]);
    for trial in &mut scores.trials {
        let score = match trial.spec.axes.app {
            Some(crate::cell::TraceApp::Photoshop40) => 60.0,
            Some(crate::cell::TraceApp::Soundforge40) => 30.0,
            Some(crate::cell::TraceApp::Visualcpp50) => 20.0,
            _ => 500.0,
        };
        trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, score)));
    }
    let found = section(&scores, &[]);
    let Chart::Bars(bars) = &found.panels[0].chart else { panic!("no bars") };
    // 3 / (1/60 + 1/30 + 1/20)
    assert!((bars.bars[0].value.y - 30.0).abs() < 1e-9 && found.panels[0].question.contains("High-End"));
    let mut rated = chapter("file-server", &["single", "raid0x2"]);
    for trial in &mut rated.trials {
        // Two, four and six times the single drive at depths 16, 64 and 256.
        let times = match (trial.spec.subject.members(), trial.spec.axes.qd) {
            (2, Some(16)) => 2.0,
            (2, Some(64)) => 4.0,
            (2, Some(256)) => 6.0,
            _ => 1.0,
        };
        let depth = f64::from(trial.spec.axes.qd.unwrap_or(1));
        trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, depth * times)));
    }
    let found = section(&rated, &[]);
    let table = found.tables.iter().find(|table| table.caption.contains("ratings")).unwrap();
    let column = table.columns.iter().position(|heading| heading.name == "R5").unwrap();
    let index: Vec<&ReportCell> = table.rows.iter().map(|row| &row.cells[column]).collect();
    assert_eq!(index, [&ReportCell::Number(1.0), &ReportCell::Number(4.0)]);
    // The same figures as data: every formula whose depths were measured, for each array.
    let kept = ratings(rated.method, &rated.trials);
    let of = |scheme: Scheme| {
        let ratings = kept.iter().filter(|one| one.scheme == scheme);
        ratings.map(|one| (one.subject.to_string(), one.rating)).collect::<Vec<_>>()
    };
    assert_eq!(of(Scheme::R5), [("single".to_owned(), 1.0), ("raid0x2".to_owned(), 4.0)]);
    // With qN = N, but twice that value at 16.
    assert_eq!(of(Scheme::R3), [("single".to_owned(), 6.0), ("raid0x2".to_owned(), 7.0)]);
    assert_eq!(kept.len(), 2 * Scheme::ALL.len());
    assert!(kept.iter().all(|one| (one.low, one.high) == (one.rating, one.rating) && one.formula.contains("q16")));
    rated.trials.retain(|trial| trial.spec.axes.qd != Some(256) && trial.spec.subject.members() == 2);
    let fewer: Vec<Scheme> = ratings(rated.method, &rated.trials).iter().map(|one| one.scheme).collect();
    assert_eq!(fewer, [Scheme::R2, Scheme::R3], "neither R1, R4 and R5 without 256, nor R5 without the single drive");
    assert!(ratings(scores.method, &scores.trials).is_empty());
}

#[test]
fn one_of_two_directions_without_a_result_says_why() {
    let mut chapter = chapter("response-time", &["single"]);
    for trial in chapter.trials.iter_mut().filter(|trial| trial.spec.axes.op == Some(Direction::Write)) {
        trial.outcome =
            Measurement::Absent(Absence { not_applicable: true, reason: "it was opened for reading".into() });
    }
    let found = section(&chapter, &[]);
    assert_eq!(
        found.absent,
        [Absent { what: "single drive, writing".into(), reason: "it was opened for reading".into() }]
    );
}

#[test]
fn a_real_target_has_its_name_and_a_time_instead_of_requests() {
    let suite = Suite {
        subjects: vec!["single".parse().unwrap()],
        ..Suite::new("/dev/sdx", vec![], crate::review::Performance::real_effort(10), 1)
    };
    let Some(method) = find("workstation") else { panic!("no method") };
    let trials = method.cells(&suite).into_iter().map(|spec| {
        let mut result = result(&spec, 100.0);
        result.notes.push(CellNote::WarmUpUnsteady("after 5 requests".into()));
        let reason = "the first 32 GB are all of it".into();
        let part = spec.axes.zone == Some(crate::cell::ZoneChoice::First32g);
        let absent = Measurement::Absent(Absence { not_applicable: true, reason });
        CellTrial { spec, outcome: if part { absent } else { Measurement::Measured(Box::new(result)) } }
    });
    let found = section(&Chapter { method, trials: trials.collect(), refusal: String::new(), rank: None }, &[]);
    assert_eq!(found.how, ["Each result is of 10 s, after at most 1 s of warming up; seed 1."]);
    let reason = "the first 32 GB are all of it".to_owned();
    assert_eq!(found.absent, [Absent { what: "/dev/sdx, in the first 32 GB".into(), reason }]);
    let wanted = "6 of 12 cells had not become steady when measured: use more --seconds.";
    assert_eq!(found.findings[0].text, wanted);
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    assert_eq!(lines.series[0].subject.to_string(), "/dev/sdx");
}

#[test]
fn a_generator_without_time_left_is_a_warning() {
    let mut chapter = chapter("response-time", &["single"]);
    let mut busy = result(&chapter.trials[0].spec, 100.0);
    busy.components = vec![Component { name: PartName::Generator, busy: 0.95 }];
    chapter.trials[0].outcome = Measurement::Measured(Box::new(busy));
    let found = section(&chapter, &[]);
    let wanted =
        "1 of 2 cells reached the limit of the load generator, whose thread had no time left: the target may be faster.";
    assert_eq!(found.findings[0].text, wanted);
}

#[test]
fn repetitions_are_one_line_of_a_distribution_and_bands_are_explained_only_where_they_are() {
    let Some(method) = find("latency") else { panic!("no method") };
    let suite = Suite { repeat: 3, ..Suite::new("x", vec!["single".parse().unwrap()], Effort::QUICK, 1) };
    let trials = method.cells(&suite).into_iter().map(|spec| {
        let mut result = result(&spec, 100.0);
        for _ in 0..10 {
            result.reads.add(4096, u64::from(spec.axes.rep.unwrap_or(0)) * 3_000_000);
        }
        CellTrial { spec, outcome: Measurement::Measured(Box::new(result)) }
    });
    let repeated = Chapter { method, trials: trials.collect(), refusal: String::new(), rank: None };
    let found = section(&repeated, &[]);
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    assert_eq!(lines.series.len(), 1);
    let Chart::Heat(heat) = &found.panels[1].chart else { panic!("no map") };
    // 3, 6 and 9 ms: a third of the requests in the first band, two thirds in the other.
    assert_eq!(heat.rows, ["2 ms to 5 ms", "5 ms to 10 ms"]);
    assert!((heat.shares[0][0] - 100.0 / 3.0).abs() < 1e-9 && (heat.shares[1][0] - 200.0 / 3.0).abs() < 1e-9);
    assert_eq!(found.panels[1].answer, "Most requests take 5 ms to 10 ms (66.7 %) on single.");
    let page = |chapter: &Chapter| render(&review("All", vec![], std::slice::from_ref(chapter), &[]));
    assert!(page(&repeated).contains("table class=\"heat\"") && !page(&repeated).contains("Bands and whiskers"));
    let mut bars = chapter("response-time", &["single"]);
    let mut again = bars.trials.clone();
    for trial in &mut again {
        trial.spec.axes.rep = Some(2);
    }
    assert!(!page(&bars).contains("Bands and whiskers"));
    bars.trials.extend(again);
    assert!(page(&bars).contains("Bands and whiskers"));
    assert!(crate::report::is_report(page(&bars).as_bytes()) && !crate::report::is_report(b"<html>"));
}

#[test]
fn methods_with_one_figure_of_one_target_are_in_the_summary() {
    let chapters = [chapter("response-time", &["single"]), chapter("low-level", &["single"])];
    let wanted = [
        "Response time. How long does reading one sector take? single: 5.00 ms.",
        "Access time, rate, processor share. How long does an access take? single: 5.00 ms.",
    ];
    assert_eq!(review("All", vec![], &chapters, &[]).summary, wanted);
}

#[test]
fn bars_are_sorted_by_something_that_has_a_name() {
    let page = terminal_text::render(&review("All", vec![], &[chapter("low-level", &["single", "raid0x2"])], &[]), 100);
    assert!(page.contains("Sorted by share of the host's processor, lowest first"), "{page}");
}

/// The sweep over the cache size, in which the largest sizes are not steady.
fn cache_sweep(subjects: &[&str]) -> Chapter {
    let mut sweep = chapter("cache-sizes", subjects);
    for trial in &mut sweep.trials {
        let mib = trial.spec.axes.cache_mib.unwrap_or(0);
        let mut result = result(&trial.spec, [100.0, 150.0, 181.0, 185.0][mib.min(256).div_ceil(100) as usize]);
        if mib > 256 {
            (result.iops, result.notes) = (135.0, vec![CellNote::WarmUpUnsteady("after 9 requests".into())]);
        }
        trial.outcome = Measurement::Measured(Box::new(result));
    }
    sweep
}

#[test]
fn unsteady_results_are_marked_in_charts_and_tables() {
    let sweep = cache_sweep(&["single"]);
    let found = section(&sweep, &[]);
    let Chart::Lines(lines) = &found.panels[0].chart else { panic!("no lines") };
    let unsteady: Vec<f64> = lines.series[0].points.iter().filter(|point| point.unsteady).map(|p| p.x).collect();
    assert_eq!(unsteady, [512.0, 1024.0]);
    let marked = review("All", vec![], &[sweep], &[]);
    let (page, words) = (render(&marked), terminal_text::render(&marked, 100));
    assert_eq!(page.matches("class=\"hollow\"").count(), 4, "two in each chart");
    assert!(page.contains("<td>135&#8224;</td>") && page.contains("A hollow mark or bar"), "{page}");
    assert!(words.contains("! 135") && words.contains("! not steady when it was measured"), "{words}");
    let mut bars = chapter("response-time", &["single", "raid0x2"]);
    assert!(!render(&review("All", vec![], std::slice::from_ref(&bars), &[])).contains("A hollow mark or bar"));
    let mut doubtful = result(&bars.trials[0].spec, 100.0);
    doubtful.notes = vec![CellNote::WarmUpUnsteady("after 9 requests".into())];
    bars.trials[0].outcome = Measurement::Measured(Box::new(doubtful));
    assert_eq!(render(&review("All", vec![], &[bars], &[])).matches("class=\"bar hollow\"").count(), 1);
}

#[test]
fn a_ratio_with_a_side_that_was_not_steady_has_a_dagger_and_is_left_out_of_the_sentence() {
    let mut chapter = chapter("wb-wt", &["raid5x4"]);
    for trial in &mut chapter.trials {
        let (cache, reads, depth) = (trial.spec.axes.cache, trial.spec.axes.rd, trial.spec.axes.qd);
        let is_best = (cache, reads, depth) == (Some(CacheMode::WriteBack), Some(0), Some(1));
        let mut found = result(&trial.spec, if is_best { 900.0 } else { 100.0 });
        if is_best || (cache, reads, depth) == (Some(CacheMode::WriteThrough), Some(10), Some(1)) {
            found.notes = vec![CellNote::WarmUpUnsteady("after 9 requests".into())];
        }
        trial.outcome = Measurement::Measured(Box::new(found));
    }
    let found = section(&chapter, &[]);
    assert_eq!(found.tables[0].rows[0].cells[0], ReportCell::UnsteadyRatio(9.0));
    assert_eq!(found.tables[0].rows[1].cells[0], ReportCell::UnsteadyRatio(1.0));
    assert_eq!(found.tables[0].rows[2].cells[0], ReportCell::Ratio(1.0));
    let wanted = "RAID 5 x4: write-back changes nothing in any of 53 cells. Left out: 2 results that were not steady.";
    assert_eq!(found.findings[0].text, wanted);
    let marked = review("All", vec![], &[chapter], &[]);
    let (page, words) = (render(&marked), terminal_text::render(&marked, 100));
    assert!(
        page.contains("<td class=\"up3\">&#9650; 9.0&#8224;</td>") && page.contains("<td>1.0&#8224;</td>"),
        "{page}"
    );
    assert!(words.contains("! + 9.0") && words.contains("! 1.0"), "{words}");
    assert!(words.contains("! not steady when it was measured"), "{words}");
}

#[test]
fn a_rating_of_depths_that_were_not_steady_is_none_itself() {
    let mut rated = chapter("file-server", &["single"]);
    let mut doubtful = result(&rated.trials[3].spec, 100.0);
    doubtful.notes = vec![CellNote::WarmUpUnsteady("after 9 requests".into())];
    rated.trials[3].outcome = Measurement::Measured(Box::new(doubtful));
    let found = section(&rated, &[]);
    let Chart::Bars(bars) = &found.panels[1].chart else { panic!("no bars") };
    assert!(bars.bars[0].value.unsteady);
    assert!(matches!(found.tables[0].rows[0].cells[0], ReportCell::Unsteady { .. }));
}

#[test]
fn the_time_to_become_steady_may_be_a_range() {
    let mut sweep = chapter("cache-sizes", &["single"]);
    sweep.trials[0].spec.effort.warm_seconds_max = 500;
    sweep.trials[1].spec.effort.warm_seconds_max = 2500;
    let how = &section(&sweep, &[]).how;
    assert!(how[0].contains("after at most 500 to 2500 s of warming up"), "{how:?}");
    sweep.trials[1].spec.effort.requests += 1;
    assert_eq!(section(&sweep, &[]).how, [""; 0]);
}

#[test]
fn a_method_is_summed_up_by_the_answer_to_its_own_question() {
    let arrays = ["single", "raid5x4"];
    let summed = |chapter: Chapter| review("All", vec![], &[chapter], &[]).summary.join(" ");
    let wanted =
        "Cache-size sweep. How much cache pays (Database)? The smallest cache within 2.0 % of the best is 256 MiB \
                  for single (185 IOPS) and RAID 5 x4 (185 IOPS). Left out: 4 results that were not steady.";
    assert_eq!(summed(cache_sweep(&arrays)), wanted);
    let figures = |name: &str, figure: &dyn Fn(&CellSpec) -> f64| {
        let mut chapter = chapter(name, &arrays);
        for trial in &mut chapter.trials {
            trial.outcome = Measurement::Measured(Box::new(result(&trial.spec, figure(&trial.spec))));
        }
        chapter
    };
    let rep = |spec: &CellSpec| f64::from(spec.axes.rep.unwrap_or(0));
    let seven = figures("best-of-seven", &|spec| 100.0 * f64::from(spec.subject.members()) + rep(spec));
    let wanted = "Best of seven. How far apart are the repetitions: WinMark 99? The best of 7 runs is RAID 5 x4 with 407 \
                  kB/s, 0.7 % better than its median; of the others the best run is 2.9 % better than theirs. single spreads most, by 5.8 %, from 101 kB/s to 107 kB/s in 7 \
                  runs.";
    assert_eq!(summed(seven), wanted);
    let cold = figures("cold-repetitions", &|spec| 100.0 * f64::from(spec.subject.members()) + rep(spec));
    let wanted =
        "Three cold repetitions. How far apart are the repetitions: File server? single spreads most, by 2.0 %, from \
                  101 IOPS to 103 IOPS in 3 runs.";
    assert_eq!(summed(cold), wanted);
    // The larger cache gains nothing for the single drive. For RAID 5 it gains a tenth, most with FAT32.
    let gains = figures("applications", &|spec| {
        let large = spec.axes.cache_mib == Some(256) && spec.subject.members() > 1;
        let fat = spec.axes.fs == Some(crate::cell::FileSystem::Fat32);
        100.0 + if large { 10.0 + if fat { 5.0 } else { 0.0 } } else { 0.0 }
    });
    let tables = section(&gains, &[]).tables;
    let heads: Vec<&str> = tables[0].rows.iter().map(|row| row.head.as_str()).collect();
    assert_eq!(tables.len(), 1, "one table of all applications");
    assert_eq!(heads[3..], ["RAID 5 x4, 128 MiB of cache", "RAID 5 x4, 256 MiB of cache", "RAID 5 x4, gain"]);
    assert!(matches!(tables[0].rows[5].cells[0], ReportCell::Change(gain) if (gain - 10.0).abs() < 1e-9));
    let wanted =
        "Application traces, imitated: 256 MiB of cache instead of 128 MiB bring from 0.0 % (single, WinMark 99, \
                  NTFS) to +15 % (RAID 5 x4, WinMark 99, FAT32).";
    assert_eq!(summed(gains), wanted);
    let begin = figures("first-32-gb", &|spec| {
        let gain = if spec.axes.qd == Some(256) { 1.5 } else { 1.2 };
        if spec.axes.zone == Some(crate::cell::ZoneChoice::Full) {
            100.0
        } else {
            100.0 * gain
        }
    });
    let wanted = "The first 32 GB: The first 32 GB make 1.20 (single at 1 outstanding) to 1.50 times (single at 256 \
                  outstanding) the requests of the whole array.";
    assert_eq!(summed(begin), wanted);
}

#[test]
fn a_total_with_missing_parts_has_a_note() {
    let page = terminal_text::render(&review("All", vec![], &[chapter("winmarks", &["single", "raid5x4"])], &[]), 200);
    assert!(page.contains("- Disk WinMarks, imitated (High-End: 3 of 7 parts). Which array scores best"), "{page}");
    assert!(page.contains("\nWhich array scores best: High-End, 3 of 7 parts, NTFS?\n"), "{page}");
    let found = section(&chapter("winmarks", &["single"]), &[]);
    let Chart::Bars(bars) = &found.panels[0].chart else { panic!("no bars") };
    assert!(["weighted average", "AVS/Express", "FrontPage", "MicroStation", "Premiere"]
        .iter()
        .all(|part| bars.formula.contains(part)));
}
