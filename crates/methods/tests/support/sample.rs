//! A report with everything in it: made-up figures with the shapes of a four-disk review.

use openraid_methods::cell;
use openraid_methods::report::data::{
    Absent, AbsentPoint, Bar, Bars, Better, Chart, ChartAxis, DecisionRate, Effect, Evidence, Fact, FindingKind, Guide,
    GuideKind, Heat, Level, LineChart, MachinePart, Panel, PartLoad, Point, ReportCell, ReportFinding, ReportRow,
    ReportSection, ReportSubject, ReportTable, Review, Scale, Series, Unit,
};
use openraid_methods::report::{findings, predicted_and_measured};

pub const ARRAYS: [&str; 8] = ["single", "raid0x2", "raid0x3", "raid0x4", "raid1x2", "raid10x4", "raid5x3", "raid5x4"];
const DEPTHS: [f64; 5] = [1.0, 4.0, 16.0, 64.0, 256.0];

pub fn subject(name: &str) -> ReportSubject {
    name.parse::<cell::Subject>().map_or_else(|error| panic!("{error}"), ReportSubject::from)
}

fn depth() -> ChartAxis {
    ChartAxis::new("outstanding", Unit::None, Scale::Log2)
}

fn iops() -> ChartAxis {
    ChartAxis::new("requests", Unit::named("IOPS"), Scale::Linear).better(Better::Higher)
}

fn speed() -> ChartAxis {
    ChartAxis::new("speed", Unit::named("MB/s"), Scale::Linear).better(Better::Higher)
}

/// Everything, with findings.
pub fn review() -> Review {
    let mut review = Review {
        title: "3ware 8506-8 with four WD740GD, simulated".into(),
        summary: vec![
            "RAID 0 on four drives is the fastest array; RAID 5 pays for its parity with small random writes.".into(),
            "The PCI bus and the controller's data path, not the drives, hold sequential reads down.".into(),
        ],
        bed: vec![
            Fact::new("controller", "3ware 8506-8 (profile 3ware-8506-8), write-back"),
            Fact::new("drives", "4 x WD740GD, 74 GB, 10,000 rpm, write cache on"),
            Fact::new("bus", "PCI 64/66, 528 MB/s by the standard"),
            Fact::new("chunk", "64 KiB"),
            Fact::new("target", "simulated, seed 1, 3 runs of 20,000 requests"),
            Fact::new("version", "openraid 0.1.0, program 1a2b3c4d, profiles 5e6f7a8b"),
        ],
        sections: vec![database(), ratio_table(), sequential(), latency(), linear(), degraded(), against_real()],
        files: vec![Fact::new("All results as JSON", "results.json"), Fact::new("source", "http://example.org/x")],
        glossary: vec![
            Fact::new("distributed parity", "the parity of RAID 5 takes turns over all drives"),
            Fact::new("read-modify-write", "a small write reads old data and parity, then writes both"),
        ],
        ..Review::default()
    };
    findings::explain(&mut review);
    review
}

/// Requests per second of an array: depth over service time, at most what its drives can do.
fn database_iops(name: &str, depth: f64) -> f64 {
    let subject = subject(name);
    let drives = f64::from(subject.members);
    let share = match subject.level {
        Level::Raid5 => 0.45,
        Level::Raid10 | Level::Raid1 => 0.8,
        _ => 1.0,
    };
    let served = drives * depth / (drives + depth - 1.0);
    126.0 * served * share * (1.0 + 0.2 * depth.log2() / 4.0)
}

fn database() -> ReportSection {
    let series = ARRAYS.map(|name| {
        let points = DEPTHS.iter().map(|&x| {
            let y = database_iops(name, x);
            let noise = if name == "raid5x3" && x == 16.0 { 0.05 } else { 0.012 };
            let busy = (0.5 + x.log2() / 14.0).min(0.99);
            let evidence =
                Evidence { loads: vec![PartLoad { part: MachinePart::Drives, busy }], rates: vec![], commands: None };
            let point = Point::spread(x, y, y * (1.0 - noise), y * (1.0 + noise), 3).with(evidence);
            Point { unsteady: name == "raid10x4" && x == 256.0, ..point }
        });
        Series::line(subject(name), points.collect())
    });
    let lines = LineChart { x: depth(), y: iops(), series: series.into(), guides: vec![] };
    let bars = ARRAYS.map(|name| {
        let y = DEPTHS.iter().map(|&x| database_iops(name, x)).sum::<f64>() / 5.0;
        Bar { subject: subject(name), value: Point::spread(0.0, y, y * 0.98, y * 1.03, 3) }
    });
    let rating = ChartAxis::new("rating", Unit::None, Scale::Linear).better(Better::Higher);
    let bars =
        Bars { value: rating, bars: bars.into(), formula: "R1 = mean of IOPS over depths 1, 4, 16, 64, 256".into() };
    ReportSection {
        method: "M01 Database: 8 KiB random, 66 % reads, depths 1 to 256".into(),
        question: "How many random requests does each array serve?".into(),
        how: vec!["300,000 requests a cell after 10 s of warming up; drives synchronised before.".into()],
        panels: vec![
            Panel::new("How does the speed grow with the queue?", Chart::Lines(lines)),
            Panel::new("Which array has the best rating?", Chart::Bars(bars)),
        ],
        absent: vec![Absent { what: "RAID 6 x4".into(), reason: "the controller has no RAID 6".into() }],
        ..ReportSection::default()
    }
}

fn ratio_table() -> ReportSection {
    let rows = (0..=10).map(|step| {
        let reads = f64::from(step) * 10.0;
        let cells = DEPTHS.iter().map(|&depth| {
            if reads == 100.0 && depth == 256.0 {
                return ReportCell::NotApplicable("the run was interrupted".into());
            }
            ReportCell::Ratio(
                1.0 + (1.0 - reads / 100.0) * 5.0 / depth - if depth >= 64.0 { reads / 500.0 } else { 0.0 },
            )
        });
        ReportRow { head: format!("{reads} %"), level: None, cells: cells.collect() }
    });
    let table = ReportTable {
        caption: "RAID 5 x4: requests per second with write-back over write-through".into(),
        corner: "reads".into(),
        columns: DEPTHS.map(|depth| format!("depth {depth}").into()).into(),
        rows: rows.collect(),
        formula: "ratio = IOPS(write-back) / IOPS(write-through)".into(),
        notes: vec![],
    };
    ReportSection {
        method: "M17 WB/WT ratio".into(),
        question: "Where does deferred writing help?".into(),
        findings: findings::ratios(&table, "Write-back").into_iter().collect(),
        tables: vec![table],
        ..ReportSection::default()
    }
}

fn sequential() -> ReportSection {
    let x = ChartAxis::new("block size", Unit::Bytes, Scale::Log2);
    let names = ["single", "raid0x2", "raid0x4", "raid5x4", "raid10x4"];
    let series = names.map(|name| {
        let subject = subject(name);
        let drives = match subject.level {
            Level::Raid5 => f64::from(subject.members) - 1.0,
            Level::Raid10 => f64::from(subject.members) / 2.0,
            _ => f64::from(subject.members),
        };
        let points = (9..=20).map(|shift| {
            let block = f64::from(1 << shift);
            let wanted = drives * 70.0 * block / (block + 12_000.0);
            let mut y = 203.5 * wanted / (wanted.powi(4) + 203.5_f64.powi(4)).powf(0.25);
            let dip = name == "raid5x4" && shift == 17;
            if dip {
                y *= 0.6;
            }
            let busy = (y / 205.0).min(0.99);
            let evidence = Evidence {
                loads: vec![PartLoad { part: MachinePart::Bus("PCI 64/66".into()), busy }],
                rates: vec![DecisionRate {
                    what: "reads that skip the parity".into(),
                    effect: Effect::Cost,
                    per_request: if dip { 1.0 } else { 0.1 },
                }],
                commands: None,
            };
            Point::exact(block, y).with(evidence)
        });
        Series::line(subject, points.collect())
    });
    let mut series: Vec<Series> = series.into();
    // One place without a result: the line has a gap there.
    let lost = series[1].points.remove(6);
    series[1].absent.push(AbsentPoint { x: lost.x, reason: "the run was interrupted".into() });
    let guides = vec![
        Guide {
            label: "ideal: 4 single drives".into(),
            kind: GuideKind::Ideal,
            subject: Some(subject("raid0x4")),
            corners: vec![(512.0, 11.0), (8192.0, 114.0), (65_536.0, 237.0), (1_048_576.0, 277.0)],
        },
        Guide {
            label: "data path 205 MB/s".into(),
            kind: GuideKind::Limit,
            subject: None,
            corners: vec![(0.0, 205.0)],
        },
        Guide {
            label: "PCI 64/66 528 MB/s".into(),
            kind: GuideKind::Limit,
            subject: None,
            corners: vec![(0.0, 528.0)],
        },
    ];
    let lines = LineChart { x, y: speed(), series, guides };
    ReportSection {
        method: "M04 Sequential read, depth 4".into(),
        question: "How fast are large files read?".into(),
        panels: vec![Panel::new("How does the speed grow with the block?", Chart::Lines(lines))],
        ..ReportSection::default()
    }
}

fn latency() -> ReportSection {
    let x = ChartAxis::new("requests that take no longer", Unit::Percent, Scale::Nines);
    let y = ChartAxis::new("latency", Unit::named("ms"), Scale::Log10).better(Better::Lower);
    let series = ["single", "raid0x4", "raid5x4"].map(|name| {
        let factor = f64::from(subject(name).members).sqrt();
        let points =
            [(1.0, 3.1), (50.0, 7.4), (90.0, 11.0), (99.0, 19.0), (99.9, 44.0), (99.99, 130.0), (100.0, 410.0)];
        Series::line(subject(name), points.map(|(x, y)| Point::exact(x, y * factor)).into())
    });
    let heat = Heat {
        x: "outstanding".into(),
        y: "latency".into(),
        columns: DEPTHS.map(|depth| format!("{depth}").into()).into(),
        rows: ["below 1 ms", "1 to 10 ms", "10 to 100 ms", "100 ms to 1 s", "above 1 s"].map(String::from).into(),
        shares: vec![
            vec![12.0, 4.0, 0.5, 0.0, 0.0],
            vec![86.0, 71.0, 22.0, 3.0, 0.02],
            vec![2.0, 25.0, 75.0, 62.0, 9.0],
            vec![0.0, 0.0, 2.5, 35.0, 84.0],
            vec![0.0, 0.0, 0.0, 0.0, 6.98],
        ],
    };
    ReportSection {
        method: "M23 Latency distribution: 4 KiB random reads, depth 1".into(),
        question: "How long do requests take, and the slowest of them?".into(),
        panels: vec![
            Panel::new(
                "How slow are the slowest requests?",
                Chart::Lines(LineChart { x, y, series: series.into(), guides: vec![] }),
            ),
            Panel::new("How does the distribution move with the load?", Chart::Heat(heat)),
        ],
        ..ReportSection::default()
    }
}

fn linear() -> ReportSection {
    let x = ChartAxis::new("place", Unit::named("GB"), Scale::Linear);
    let series = ["single", "raid0x4"].map(|name| {
        let factor = f64::from(subject(name).members).min(2.8);
        let points = (0..1200).map(|n| {
            let place = f64::from(n) / 1199.0;
            // Twelve zones and a little unrest that is the same every time.
            let zone = (place * 12.0).floor() / 12.0;
            let unrest = f64::from(n * 7919 % 101) / 101.0 - 0.5;
            Point::exact(place * 74.0, factor * (72.0 - 20.0 * zone + unrest))
        });
        Series::line(subject(name), points.collect())
    });
    ReportSection {
        method: "M11 Transfer graph".into(),
        question: "How does the speed fall from begin to end?".into(),
        panels: vec![Panel::new(
            "How fast is each place of the disk read?",
            Chart::Lines(LineChart { x, y: speed(), series: series.into(), guides: vec![] }),
        )],
        ..ReportSection::default()
    }
}

fn degraded() -> ReportSection {
    let healthy = Series::line(subject("raid5x4"), DEPTHS.map(|x| Point::exact(x, database_iops("raid5x4", x))).into());
    let worse = |variant: &str, share: f64| {
        let points = DEPTHS.map(|x| Point::exact(x, database_iops("raid5x4", x) * share)).into();
        Series::line(subject("raid5x4").variant(variant), points)
    };
    let series = vec![healthy, worse("degraded", 0.62), worse("rebuilding", 0.41)];
    ReportSection {
        method: "M31 Degraded arrays".into(),
        question: "How much speed is left when a drive fails?".into(),
        panels: vec![Panel::new(
            "How fast is RAID 5 with a drive missing?",
            Chart::Lines(LineChart { x: depth(), y: iops(), series, guides: vec![] }),
        )],
        findings: vec![ReportFinding::new(FindingKind::Warning, "A second failure now loses the array.")],
        ..ReportSection::default()
    }
}

fn against_real() -> ReportSection {
    let pair = |name: &str, error: f64| {
        let predicted = DEPTHS.map(|x| Point::exact(x, database_iops(name, x))).into();
        let measured = DEPTHS.map(|x| {
            let y = database_iops(name, x) * (1.0 - error * x.log2() / 8.0);
            Point::spread(x, y, y * 0.96, y * 1.03, 5)
        });
        (
            Series::line(subject(name).variant("predicted"), predicted),
            Series::line(subject(name).variant("measured"), measured.into()),
        )
    };
    let pairs = [pair("raid0x4", 0.08), pair("raid5x4", -0.12)];
    let (panel, table, findings) = predicted_and_measured::compare(
        "Does the prediction hold?",
        &depth(),
        &iops(),
        ("predicted", "measured"),
        &pairs,
    );
    ReportSection {
        method: "M01 Database, simulated and served".into(),
        question: "How far is the simulation from a served array?".into(),
        panels: vec![panel],
        tables: vec![table],
        findings,
        ..ReportSection::default()
    }
}
